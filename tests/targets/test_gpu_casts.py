"""Casts from every type to all others on emulated GPUs, compared with the interpreter: one kernel for each source
type."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.differential.devices import (
    CE,
    FLOATS,
    FP8,
    INTS,
    NUMPY,
    Array,
    Device,
    run_amd_emulator,
    run_emulator,
    run_interpreter,
)
from tilework import jit
from tilework.target import Target

COUNT = 128
GPUS: dict[str, Device] = {
    **{name: partial(run_emulator, target=Target.parse(name)) for name in ("cuda:80", "cuda:90")},
    **{name: partial(run_amd_emulator, Target.parse(name)) for name in ("hip:gfx942", "hip:gfx950", "hip:gfx1100")},
}


@jit
def to_others(x, i8, i16, i32, i64, u8, u16, u32, u64, fp16, bf16, fp32, fp64):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 128)
    value = tl.load(x + at)
    for other in tl.static_range(12):
        out = (i8, i16, i32, i64, u8, u16, u32, u64, fp16, bf16, fp32, fp64)[other]
        tl.store(out + at, value.to(out.dtype.element_ty))


@jit
def to_floats(x, fp16, bf16, fp32):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 128)
    value = tl.load(x + at)
    for other in tl.static_range(3):
        out = (fp16, bf16, fp32)[other]
        tl.store(out + at, value.to(out.dtype.element_ty))


@jit
def to_fp8(x, fp8e5, fp8e4nv, HAS_E4: CE):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 128)
    value = tl.load(x + at)
    tl.store(fp8e5 + at, value.to(tl.float8e5))
    if HAS_E4:
        tl.store(fp8e4nv + at, value.to(tl.float8e4nv))


@jit
def small_to_floats(x, fp16, bf16, fp32, MASK: CE, OFFSET: CE, UNSIGNED: CE):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 128)
    value = (tl.load(x + at) >> (at % 2)) & MASK
    value = value + OFFSET
    if UNSIGNED:
        value = value.to(tl.uint32, bitcast=True)
    for other in tl.static_range(3):
        out = (fp16, bf16, fp32)[other]
        tl.store(out + at, value.to(out.dtype.element_ty))


def values_of(code: str) -> Array:
    """Values that every integer type holds after truncation, with fractions, halfway cases and subnormals."""
    if code in INTS:
        return np.arange(COUNT).astype(NUMPY[code])
    numbers = np.concatenate([np.arange(64) * 1.3125, np.arange(32) / 16, 2.0 ** -np.arange(32.0)])
    return numbers.astype(np.float32).astype(NUMPY[code])


def results(run: Device, kernel: Any, source: Array, codes: tuple[str, ...], constants: dict[str, Any]) -> list[bytes]:
    outs = {code: np.zeros(COUNT, NUMPY[code]) for code in codes}
    run(kernel, {"x": source, **outs}, constants, (1,))
    return [out.tobytes() for out in outs.values()]


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("code", [*INTS, *FLOATS, *FP8])
def test_casts_are_those_of_the_interpreter(gpu: str, code: str) -> None:
    target = Target.parse(gpu)
    has_e4 = gpu in ("cuda:90", "hip:gfx942", "hip:gfx950")
    if code == "fp8e4nv" and not has_e4:
        pytest.skip(f"{target} has no fp8e4nv")
    source = values_of(code)
    runs: list[tuple[Any, tuple[str, ...], dict[str, Any]]] = []
    if code in FP8:
        runs.append((to_floats, FLOATS[:3], {}))
    else:
        runs.append((to_others, (*INTS, *FLOATS), {}))
    if code in FLOATS[:3]:
        runs.append((to_fp8, FP8, {"HAS_E4": has_e4}))
    for kernel, codes, constants in runs:
        found = results(GPUS[gpu], kernel, source, codes, constants)
        wanted = results(run_interpreter, kernel, source, codes, constants)
        wrong = [name for name, one, other in zip(codes, found, wanted, strict=True) if one != other]
        assert not wrong, f"{code} to {', '.join(wrong)}"


MASKS = (1, 15, 127, 128, 255, 1023, 1024, 2**23 - 1, 2**23, 2**31 - 1, -1, -16)
OFFSETS = (0, -1, -8, -128, -129, -1024, -1025, 7, 128, 1024, 1025, 2**23, -(2**23), 2**23 + 1, 2**31 - 1)


@pytest.mark.parametrize("gpu", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("mask", MASKS)
def test_integers_under_a_mask_plus_a_constant(gpu: str, mask: int) -> None:
    """Those that are small are converted without the conversion instruction."""
    source = np.random.default_rng(abs(mask)).integers(-(2**31), 2**31, COUNT).astype(np.int32)
    source[:8] = [0, -1, mask, (mask >> 1) << 1, mask >> 1, ~mask, 2**31 - 1, -(2**31)]
    for offset in OFFSETS:
        for unsigned in (False, True):
            constants = {"MASK": mask, "OFFSET": offset, "UNSIGNED": unsigned}
            found = results(GPUS[gpu], small_to_floats, source, FLOATS[:3], constants)
            assert found == results(run_interpreter, small_to_floats, source, FLOATS[:3], constants), constants
