"""The table of checks for a GPU, on the emulated driver: all rows but those that only a GPU can do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tests.device.check_cuda_driver  # noqa: F401  it fills the table
from tests.device import kernels
from tests.device.table import CHECKS, check, expect, expect_error, run
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.gpu import gpu_driver

NEEDS_A_GPU = {"clusters", "an_illegal_access_is_an_error"}
ROWS = [(name, function) for name, function in CHECKS if name not in NEEDS_A_GPU]


@pytest.mark.parametrize("function", [function for _, function in ROWS], ids=[name for name, _ in ROWS])
def test_the_check_passes(function: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernels, "LARGE", 1 << 9)
    monkeypatch.setattr(gpu_driver, "FLUSH_BYTES", 256 << 20 if "flush" in function.__name__ else 1 << 12)
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: cubins are not emulated
    with knobs.cache.scope(), emulated_cuda():
        knobs.cache.dir = str(tmp_path)
        function()


def test_a_failing_check_is_a_line_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.device.table.CHECKS", [])

    @check
    def wrong() -> None:
        expect(1, 2)

    @check
    def right() -> str:
        return expect_error(ZeroDivisionError, "division", lambda: 1 // 0)

    assert run([], "round") == 1 and run(["right"], "round") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  round         wrong") and "found 1, expected 2" in lines[0]
    assert lines[1].split() == ["PASS", "round", "right", "integer", "division", "or", "modulo", "by", "zero"]
    for kind, said in ((ValueError, ""), (ZeroDivisionError, "something else")):
        with pytest.raises((AssertionError, ZeroDivisionError)):
            expect_error(kind, said, lambda: 1 // 0)
    with pytest.raises(AssertionError, match="nothing was raised"):
        expect_error(ValueError, "", lambda: None)
