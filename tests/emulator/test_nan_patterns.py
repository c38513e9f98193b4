"""NaNs have the bits of the GPU, whatever host the emulator runs on: instructions, whole kernels, folded constants."""

import struct

import numpy as np
import pytest

import tilework.language as tl
from tests.differential.devices import run_amd_emulator, run_emulator
from tests.emulator.nan_rows import ROWS, Row, name_of, operand_bytes
from tests.emulator.ptx import run
from tilework.language.function import jit
from tilework.target import Target
from tilework.targets.llvm.folding import fold_binary, fold_fma
from tilework.targets.llvm.types import f32
from tilework.targets.llvm.values import constant, float_bits


@pytest.mark.parametrize("row", ROWS, ids=map(name_of, ROWS))
def test_instruction(row: Row) -> None:
    size, text, operands, wanted = row
    found = run(text, *(np.array([bits], f"u{operand_bytes(text)}") for bits in operands), out=f"u{size}")[0]
    assert f"{int(found):x}" == f"{wanted:x}"


@jit
def invalid(x_ptr, out_ptr):
    """Each kind of NaN, from bits so that nothing is folded: 0, inf, 1, a NaN with a payload, a negative one."""
    zero = tl.load(x_ptr).to(tl.float32, bitcast=True)
    inf = tl.load(x_ptr + 1).to(tl.float32, bitcast=True)
    one = tl.load(x_ptr + 2).to(tl.float32, bitcast=True)
    quiet = tl.load(x_ptr + 3).to(tl.float32, bitcast=True)
    minus = tl.load(x_ptr + 4).to(tl.float32, bitcast=True)
    tl.store(out_ptr, (inf - inf).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 1, (inf * zero).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 2, (zero / zero).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 3, (quiet + one).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 4, (one + minus).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 5, tl.fma(inf, zero, one).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 6, tl.sqrt(-one).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 7, quiet.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF)
    tl.store(out_ptr + 8, tl.maximum(quiet, one, propagate_nan=tl.PropagateNan.ALL).to(tl.int32, bitcast=True))
    wide = tl.load(x_ptr + 1).to(tl.float32, bitcast=True).to(tl.float64)
    tl.store(out_ptr + 9, ((wide - wide).to(tl.int64, bitcast=True) >> 32).to(tl.int32))
    tl.store(out_ptr + 10, (quiet.to(tl.float64).to(tl.int64, bitcast=True) >> 32).to(tl.int32))


GIVEN = np.array([0, 0x7F800000, 0x3F800000, 0x7FC01234, 0xFFC00077], np.uint32).view(np.int32)
NVIDIA = "7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fff 7fffffff fff80000 7ff80246"
AMD = "7fc00000 7fc00000 ffc00000 7fc01234 ffc00077 7fc00000 7fc00000 7e00 7fc01234 7ff80000 7ff80246"


def found_by(target: str) -> list[str]:
    args, parsed = {"x_ptr": GIVEN, "out_ptr": np.zeros(11, np.int32)}, Target.parse(target)
    if parsed.backend == "hip":
        run_amd_emulator(parsed, invalid, args, {}, (1,))
    else:
        run_emulator(invalid, args, {}, (1,), parsed)
    return [f"{bits:x}" for bits in args["out_ptr"].view(np.uint32)]


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_kernel_on_nvidia(target: str) -> None:
    assert found_by(target) == NVIDIA.split()


@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx950", "hip:gfx1100"])
def test_kernel_on_amd(target: str) -> None:
    """Payloads stay, and 0 / 0 is negative."""
    assert found_by(target) == AMD.split()


def test_folded_constants_are_the_same_on_every_host() -> None:
    """Of inf - inf, inf * 0 and the like: x86-64 gives NaN a sign, ARM none."""
    negative = struct.unpack("<d", bytes.fromhex("000000000000f8ff"))[0]
    inf, zero, none = (constant(f32, number) for number in (float("inf"), 0.0, negative))
    folded = [fold_binary("fsub", inf, inf), fold_binary("fmul", inf, zero), fold_binary("fdiv", zero, zero)]
    folded += [fold_binary("fdiv", inf, inf), fold_binary("fadd", none, inf), fold_fma(inf, zero, inf)]
    assert {float_bits(f32, value.constant) for value in folded if value is not None} == {0x7FC00000}
    assert len(folded) == 6 and None not in folded
