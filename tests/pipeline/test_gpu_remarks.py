"""With the knob, what makes a kernel slow is told at the user's line; without it nothing is."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_kernels
from tests.pipeline import slow_kernels
from tests.rows import row
from tilework import knobs
from tilework.analysis import cost
from tilework.compiler import ASTSource, lower
from tilework.ir import tt
from tilework.ir.parser import parse_module
from tilework.runtime.launch.python.specialize import parse_attr
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.tools.cli import main

LINES = Path(slow_kernels.__file__).read_text().splitlines()


def remarks(kernel: str, types: dict[str, str], capsys: pytest.CaptureFixture[str], **settings: Any) -> list[list[str]]:
    """The remarks about a kernel, each as its lines."""
    function = getattr(slow_kernels, kernel)
    aligned = {(index,): parse_attr("DS") for index, code in enumerate(types.values()) if code[0] == "*"}
    source = ASTSource(function, {**types, "BLOCK": "constexpr"}, {"BLOCK": settings.pop("BLOCK", 1024)}, aligned)
    with knobs.compilation.scope():
        knobs.compilation.performance_remarks = True
        lower(source, settings.pop("target", GPUTarget("cuda", 90, 32)), ["ttgir"], **settings)
    found: list[list[str]] = []
    for line in capsys.readouterr().err.splitlines():
        if ": remark: " in line:
            found.append([])
        found[-1].append(line)
    return [remark for remark in found if ": remark: the limit of this " not in remark[0]]


def line_of(text: str) -> int:
    """The line of the slow kernels that contains `text`."""
    return next(number for number, line in enumerate(LINES, 1) if text in line)


@pytest.mark.parametrize("target", [GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)])
def test_an_access_with_a_stride(target: GPUTarget, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = remarks("strided", {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32"}, capsys, target=target)
    number = line_of("offsets * stride")
    assert found[0].startswith(f"{slow_kernels.__file__}:{number}:")
    assert "this load is not coalesced: a warp reads 4 contiguous bytes, a memory sector has 32" in found[0]
    assert "Adjacent elements are not known to be contiguous in memory" in found[0]
    assert found[1].endswith(f"| {LINES[number - 1]}") and found[2].rstrip().endswith("^")


def test_an_access_without_alignment(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = remarks("unaligned", {"x_ptr": "*fp16", "y_ptr": "*fp16", "start": "i32"}, capsys)
    assert f":{line_of('x_ptr + start')}:" in found[0]
    assert "this load is narrow: a thread reads 2 bytes at a time" in found[0]
    assert "Its addresses are only known to be multiples of 2 bytes" in found[0]


def test_a_dot_that_does_not_use_tensor_cores(capsys: pytest.CaptureFixture[str]) -> None:
    types = {"a_ptr": "*fp32", "b_ptr": "*fp32", "c_ptr": "*fp32", "n": "i32"}
    found = remarks("exact_dot", types, capsys, BLOCK=32)
    dots = [remark[0] for remark in found if f":{line_of('tl.dot')}:" in remark[0]]
    assert any("does not use tensor cores" in text for text in dots), found
    assert any("cannot be used for this dot: " in text for text in dots)


def test_a_loop_that_is_not_pipelined(capsys: pytest.CaptureFixture[str]) -> None:
    types = {"a_ptr": "*fp32", "b_ptr": "*fp32", "c_ptr": "*fp32", "n": "i32"}
    found = remarks("exact_dot", types, capsys, BLOCK=32, num_stages=1)
    loops = [remark[0] for remark in found if f":{line_of('range(0, n, BLOCK)')}:" in remark[0]]
    assert any("the loop is not pipelined: " in text for text in loops), found


def test_a_conversion_through_shared_memory_in_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    found = remarks("transposed", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, capsys, BLOCK=64)
    texts = [remark[0] for remark in found if "a layout conversion goes through shared memory" in remark[0]]
    (text,) = texts
    assert f":{line_of('columns * BLOCK + rows')}:" in text and "between warps, 16384 bytes at a time" in text


def test_nothing_is_said_about_good_code_or_without_the_knob(capsys: pytest.CaptureFixture[str]) -> None:
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32"}
    source = ASTSource(slow_kernels.strided, {**types, "BLOCK": "constexpr"}, {"BLOCK": 1024})
    lower(source, GPUTarget("cuda", 90, 32), ["ttgir"])
    assert capsys.readouterr().err == ""
    good = ASTSource(
        slow_kernels.unaligned,
        {**types, "BLOCK": "constexpr", "start": "constexpr"},
        {"BLOCK": 1024, "start": 0},
        {(index,): [["tt.divisibility", 16]] for index in range(2)},
    )
    del good.signature["stride"]
    with knobs.compilation.scope():
        knobs.compilation.performance_remarks = True
        lower(good, GPUTarget("cuda", 90, 32), ["ttgir"])
    assert capsys.readouterr().err.count("remark: ") == 1  # its limit


LIMITS: dict[str, tuple[dict[str, str], dict[str, int], dict[str, Any], str, dict[str, float]]] = {
    "matmul": (
        {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"),
            **dict.fromkeys(("M", "N", "K", "stride_a", "stride_b", "stride_c"), "i32"),
        },
        {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
        {"num_warps": 8, "num_stages": 3},
        "loop is tensor cores: an iteration takes at least 1024 cycles, 989 TFLOP/s",
        {"tensor cores": 1024, "shared memory": 1024, "L2": 768, "DRAM": 0, "MUFU": 0},
    ),
    "attention": (
        dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16") | {"length": "i32", "scale": "fp32"},
        {"BM": 128, "BN": 128, "D": 64},
        {},
        "loop is MUFU: ",
        {"tensor cores": 1024, "L2": 512},
    ),
    "add": (
        dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), "*fp32") | {"n": "i32"},
        {"BLOCK": 1024},
        {},
        "kernel is DRAM: a program takes at least 690 cycles, 4300 GB/s",
        {"L2": 192, "tensor cores": 0},
    ),
}  # fmt: skip


@row("name", LIMITS)
def test_the_limit_of_a_kernel(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The arithmetic of docs/cost-model.md, and that the remark says it, of loops that all warps run."""
    monkeypatch.setenv("TILEWORK_WARP_SPECIALIZE", "1")
    types, constants, settings, said, cycles = LIMITS[name]
    kernel = getattr(gpu_kernels, name)
    aligned = {(index,): [["tt.divisibility", 16]] for index, code in enumerate(types.values()) if code != "fp32"}
    source = ASTSource(kernel, {**types, **dict.fromkeys(constants, "constexpr")}, constants, aligned)
    with knobs.compilation.scope():
        knobs.compilation.performance_remarks = True
        text = lower(source, GPUTarget("cuda", 90, 32), ["ttgir"], **settings)["ttgir"]
    shown = capsys.readouterr().err
    assert f"remark: the limit of this {said}" in shown and "on a multiprocessor, for its " in shown
    function = next(op for op in parse_module(text).ops if type(op) is tt.FuncOp)
    loops = cost.hot_loops(function)
    found = cost.loop_cost(loops[0] if loops else function)
    assert found is not None and {name: found.cycles[name] for name in cycles} == cycles
    assert 0.8 < found.cycles["MUFU"] / 1024 < 1.1 or name != "attention"
    held = cost.occupancy(function, registers=200)
    assert held is not None and held.blocks == {"matmul": 1, "attention": 2, "add": 2}[name]


def test_the_layout_of_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    """What it costs in each layout that it may have, at its line."""
    types = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16") | {"length": "i32", "scale": "fp32"}
    constants = {"BM": 128, "BN": 64, "D": 64}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(5)}
    source = ASTSource(gpu_kernels.attention, {**types, **dict.fromkeys(constants, "constexpr")}, constants, aligned)
    with knobs.compilation.scope():
        knobs.compilation.performance_remarks = True
        lower(source, GPUTarget("cuda", 90, 32), ["ttgir"], num_warps=4)
    found = capsys.readouterr().err.split(": remark: ")
    before, text = next((position, text) for position, text in pairwise(found) if text.startswith("this store"))
    lines = Path(gpu_kernels.__file__).read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "tl.store(o_ptr" in line)
    assert before.splitlines()[-1].startswith(f"{gpu_kernels.__file__}:{number}:")
    chosen, *others = text.splitlines()[0].split("; ")
    assert chosen == "this store is made by the warps that have its rows: 1176 cycles"
    assert others == ["in the layout of its pointers 1336", "in the layout of its value 3682"]
    assert (
        "note: in the layout of its pointers: DRAM 920, L2 256, shared memory 256, issue slots 24 cycles, 4 barriers"
        in text
    )


def test_opt_prints_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    types = {"a_ptr": "*fp32", "b_ptr": "*fp32", "c_ptr": "*fp32", "n": "i32"}
    source = ASTSource(slow_kernels.exact_dot, {**types, "BLOCK": "constexpr"}, {"BLOCK": 32})
    file = tmp_path / "exact.ttir"
    file.write_text(lower(source, GPUTarget("cuda", 90, 32), ["ttir"])["ttir"])
    command = ["opt", str(file), "-p", ",".join(ttgir_pipeline(Target.parse("cuda:90"))), "-o", str(tmp_path / "out")]
    with knobs.compilation.scope():
        knobs.compilation.performance_remarks = True
        assert main(command) == 0
    assert (
        f"slow_kernels.py:{line_of('tl.dot')}:14: remark: this dot does not use tensor cores" in capsys.readouterr().err
    )
    assert main(command) == 0
    assert capsys.readouterr().err == ""


def test_an_access_that_is_not_vectorized(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers are those of the reference compiler: what the pointers allow, and what the mask leaves."""
    found = remarks("masked", {"x_ptr": "*fp32", "y_ptr": "*i8", "n": "i32"}, capsys, num_warps=1)
    texts = [remark[0].partition(": remark: ")[2] for remark in found]
    assert texts[0] == "Warning: vectorization fails vec = 1 origin vec = 4 numElems = 32 mask is 1"
    assert texts[1].startswith("Warning: vectorization fails vec = 1 origin vec = 16 elemsPerThread = 32 mask is 1. ")
