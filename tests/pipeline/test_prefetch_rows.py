"""Programs ask for the rows of later ones: for those that are there, and for no memory beside them."""

import re

import numpy as np
import pytest

from benchmarks import gpu_kernels
from tilework.compiler import ASTSource, lower
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.targets.base import GPUTarget

ROWS, COLUMNS, AHEAD = 356, 4000, 352  # 43 KB for each of 132 multiprocessors, of rows of 4096 x 4 bytes
TYPES = {"out_ptr": "*fp32", "in_ptr": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
ALIGNED = {(index,): [["tt.divisibility", 16]] for index in range(3)}


def compiled(stage: str, arch: int = 90) -> str:
    source = ASTSource(gpu_kernels.softmax, TYPES, {"BLOCK": 4096}, ALIGNED)
    return str(lower(source, GPUTarget("cuda", arch, 32), [stage], num_warps=4)[stage])


def run(ttgir: str, *programs: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype("f4")
    out = np.zeros_like(x)
    evaluate(parse_module(ttgir), "softmax", [out, x, COLUMNS], (ROWS,), program_ids=[(one,) for one in programs])
    return out, x


def test_what_is_requested_is_there() -> None:
    """The evaluator reads it: the last rows have none behind them, and rows that end within a tile end there."""
    ttgir = compiled("ttgir")
    assert ttgir.count("ttg.fetch") == 1
    programs = (0, ROWS - AHEAD - 1, ROWS - AHEAD, ROWS - 1)
    out, x = run(ttgir, *programs)
    for row in programs:
        expected = np.exp(x[row] - x[row].max())
        np.testing.assert_allclose(out[row], expected / expected.sum(), rtol=1e-5)


def test_a_number_that_has_wrapped_is_no_program() -> None:
    """As behind the last of 2^31 - 1; where the comparison is signed the evaluator finds what is not there."""
    text = compiled("ttgir").replace(f"constant {AHEAD} : i32", f"constant {-ROWS} : i32")
    run(text, 1)
    with pytest.raises(EvaluationError, match=r"ttg\.fetch"):
        run(text.replace("cmpi ult", "cmpi slt"), 1)


def test_one_thread_asks_for_a_line() -> None:
    """Eight parts of 16 bytes of a thread, 2 KB apart: whether the first begins a line is asked once."""
    text = compiled("ptx")
    assert len(re.findall(r"@%p\d+ prefetch\.global\.L2 \[%rd\d+\];", text)) == 8
    assert len(re.findall(r"and\.b32 \t(%r\d+), %r\d+, 127;\n\tsetp\.lt\.u32 \t%p\d+, \1, 16;", text)) == 1


def test_gpus_that_were_not_measured_do_not_ask() -> None:
    assert "ttg.fetch" not in compiled("ttgir", arch=89)
