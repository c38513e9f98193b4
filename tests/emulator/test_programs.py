"""CUDA C programs through nvcc's PTX: results equal NumPy's, all threads at once and warp by warp under the checker."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator.programs.table import BY_NAME, PROGRAMS, Out, Program
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.machine import Trapped

HERE = Path(__file__).parent / "programs"


def run(program: Program, device: Device) -> list[Any]:
    """The arguments after a launch; arrays as the device holds them."""
    arguments = program.arguments()
    arrays = {
        n: np.zeros(a.size, a.dtype) if isinstance(a, Out) else a
        for n, a in enumerate(arguments)
        if isinstance(a, Out) or is_array(a)
    }
    addresses = {n: device.upload(a) for n, a in arrays.items()}
    passed = [addresses.get(n, a) for n, a in enumerate(arguments)]
    kernel = device.load((HERE / f"{program.module}.ptx").read_text()).function(program.name)
    device.launch(kernel, program.grid, program.block, passed, program.shared)
    return [device.download(addresses[n], arrays[n]) if n in addresses else a for n, a in enumerate(arguments)]


def is_array(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and argument.dtype.names is None


def check(program: Program, results: list[Any]) -> None:
    for number, expected in program.expected(*program.arguments()).items():
        found = results[number].reshape(expected.shape)
        if program.tolerance:
            rows = (found.reshape(-1, expected.shape[-1]), expected.reshape(-1, expected.shape[-1]))
            error = np.abs(rows[0].astype(np.float64) - rows[1].astype(np.float64)).max(axis=1)
            assert (error <= program.tolerance * np.abs(rows[1].astype(np.float64)).max(axis=1)).all(), (
                program.name,
                number,
                error,
            )
        else:
            np.testing.assert_array_equal(found.astype(expected.dtype), expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_computes_what_numpy_does(program: Program) -> None:
    check(program, run(program, Device()))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_checker_finds_nothing_in_a_correct_program(program: Program) -> None:
    check(program, run(program, Device(check=True, seed=len(program.name))))


def test_printf_formats_as_c_does() -> None:
    lines: list[str] = []
    device = Device(output=lines.append)
    x, y = np.array([5, -3, 300, 0, 0, 7, 0, 0], np.int32), np.arange(8) * 1.5
    kernel = device.load((HERE / "printing.ptx").read_text()).function("report")
    device.launch(kernel, 1, 8, [device.upload(x), device.upload(y)])
    wanted = ["thread 0:     5|5   |5 first 0.000 a%\n", "thread 1:    -3|253 |fffffffd later 1.500 b%\n"]
    wanted += ["thread 2:   300|44  |12c later 3.000 c%\n", "70000000000 7.500000e+00\n"]
    assert sorted("".join(lines).splitlines(keepends=True)) == sorted(wanted)


def test_a_failed_assertion_names_the_line_and_the_thread() -> None:
    device = Device()
    x = np.array([1, 2, 3, 0, 5, 6, 7, 8], np.int32)
    kernel = device.load((HERE / "printing.ptx").read_text()).function("positive")
    with pytest.raises(
        Trapped,
        match=(
            r"printing.cu:13: void positive\(const int \*, "
            r"int \*\): assertion `x\[t\] > 0` failed .*thread \(3, 0, 0\)"
        ),
    ):
        device.launch(kernel, 1, 8, [device.upload(x), device.upload(x)])


def test_every_program_has_a_row() -> None:
    kernels = set()
    for path in HERE.glob("*.ptx"):
        kernels |= set(Device().load(path.read_text()).ptx.kernels)
    assert kernels == set(BY_NAME) | {"report", "positive"}
