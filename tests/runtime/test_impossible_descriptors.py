"""Bases, strides and sizes that no tensor map can have: refused where they are known, and never copied from on a
GPU."""

# pyright: reportMissingParameterType=false

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tests.runtime.launch_kernels import AMPERE, HOPPER
from tests.runtime.test_tensor_descriptors import aligned
from tilework.compiler import ASTSource, lower
from tilework.errors import InterpreterError, PassError, SanitizerError
from tilework.oracles.emulator import tensor_map


@tilework.jit
def constant_strides(x, ROWS: tl.constexpr, STRIDE: tl.constexpr):
    blocks = tl.make_tensor_descriptor(x, [ROWS, 64], [STRIDE, 1], [8, 64])
    blocks.store([0, 0], blocks.load([8, 0]))


def first_rows(x, out, numbers):
    rows, stride, start = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    blocks = tl.make_tensor_descriptor(x + start, [rows.to(tl.int32), 64], [stride, 1], [8, 64])
    offsets = tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :]
    if tl.load(numbers + 3) == 0:
        tl.store(out + offsets, blocks.load([0, 0]))


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"STRIDE": -64}, "at least 0 and less than 2.40 bytes, stride 0 is -256 bytes"),
        ({"STRIDE": 1 << 38}, "less than 2.40 bytes, stride 0 is 1099511627776 bytes"),
        ({"STRIDE": 66}, "16-byte aligned, stride 0 is 264 bytes"),
        ({"ROWS": -1}, "must not be negative, axis 0 has -1 elements"),
    ],
)
def test_constants_are_refused_when_compiled(constants: dict[str, int], said: str) -> None:
    def compiled(target: Any, **constants: int) -> Any:
        return lower(
            ASTSource(constant_strides, {"x": "*fp32"}, {"ROWS": 32, "STRIDE": 64, **constants}), target, ["ttgir"]
        )

    compiled(HOPPER, STRIDE=0)
    compiled(HOPPER, STRIDE=66, ROWS=1)
    compiled(AMPERE, **constants)
    with pytest.raises(PassError, match=said) as refused:
        compiled(HOPPER, **constants)
    assert "test_impossible_descriptors.py:" in str(refused.value)


IMPOSSIBLE = {
    "backwards": ((32, -64, 31 * 64), "-256 bytes"),
    "too far": ((32, 1 << 38, 0), "1099511627776 bytes"),
    "odd stride": ((32, 66, 0), "264 bytes"),
    "odd base": ((32, 64, 2), "address 0x|aligned to 16 bytes"),
}
STRIDES = [case for case in IMPOSSIBLE if case != "odd base"]  # the hardware sees that one when it copies


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Any]:
    with emulator(cache=str(tmp_path)):
        yield tilework.jit(first_rows)


def rows_of(kernel: Any, numbers: tuple[int, ...]) -> np.ndarray:
    x, out = aligned((32 * 64,)), np.zeros((8, 64), np.float32)
    x[:] = np.arange(32 * 64)
    kernel[(1,)](x, out, np.array([*numbers, 0][:4], np.int64))
    return out


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_the_emulator_names_the_number(device: Any, case: str) -> None:
    numbers, said = IMPOSSIBLE[case]
    with pytest.raises(SanitizerError, match=said):
        rows_of(device, numbers)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_the_interpreter_names_the_number(case: str) -> None:
    numbers, said = IMPOSSIBLE[case]
    with pytest.raises(InterpreterError, match=said):
        rows_of(tilework.jit(first_rows, interpret=True), numbers)


@pytest.mark.parametrize("case", STRIDES)
def test_a_gpu_that_checks_nothing_reaches_a_trap(device: Any, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    unchecked(monkeypatch)
    with pytest.raises(RuntimeError, match="assert triggered: trap"):
        rows_of(device, IMPOSSIBLE[case][0])


def test_the_stride_of_a_single_row_is_never_used(device: Any) -> None:
    assert (rows_of(device, (1, 65, 64))[0] == np.arange(64, 128)).all()
    assert (rows_of(device, (32, 0, 64)) == np.arange(64, 128)).all()


@pytest.mark.parametrize(("rows", "start"), [(0, 0), (-5, 0), (32, 2)])
def test_what_no_copy_uses_may_be_impossible(device: Any, rows: int, start: int) -> None:
    """As on an H200, where only the copy fails: groups of a product may be empty."""
    assert (rows_of(device, (rows, 64, start, 1)) == 0).all()
    with pytest.raises(SanitizerError, match=f"a dimension of {rows} elements|address 0x"):
        rows_of(device, (rows, 64, start))


def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy engine of the emulator takes any strides, as that of a GPU does."""
    monkeypatch.setattr(tensor_map, "refuse_stride", lambda stride, unit=0: None)
