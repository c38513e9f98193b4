"""Functions whose results must be used."""

from pathlib import Path

import pytest

from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import result
from tilework.errors import CompilationError

UNUSED = """
@tl.core._aggregate
class Cell:
    value: tl.tensor

    def __init__(self, value):
        self.value = value

    @tilework.must_use_result("Nothing changes in place.")
    @tilework.jit
    def get(self):
        return self.value

    @tilework.must_use_result
    @tl.core.builtin
    def built_in(self, _semantic=None):
        return self.value
"""
MUST_USE = {
    "a method": ("a = Cell(n)\na.get()", "The result of a.get is not being used. Nothing changes in place."),
    "a builtin method": ("a = Cell(n)\na.built_in()", "The result of a.built_in is not being used."),
    "a member": ("b = tl.make_block_ptr(p, (8,), (1,), (0,), (4,), (0,))\nb.advance([1])",
                 "The result of b.advance is not being used. Note that tl.advance does not have any side effects."),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize("row", MUST_USE)
def test_a_result_must_be_used(tmp_path: Path, row: str) -> None:
    body, words = MUST_USE[row]
    check(tmp_path, body, Refused(CompilationError, words), UNUSED)
    body, _, last = body.rpartition("\n")
    assert result(kernel(tmp_path, f"{body}\nc = {last}\ntl.store(out, 1)", UNUSED), *arguments(), size=8, C=4)[0] == 1
