"""`tests/rows.py`: no cell is left out, and the one that fails is named."""

import inspect

import pytest

from tests.rows import row


@pytest.mark.parametrize("a", ["x", "y"])
def test_every_cell_is_run(a: str) -> None:
    seen: list[tuple[str, int, int]] = []

    @row("b", [1, 2])
    @row("c", [3, 4])
    def note(a: str, b: int, c: int) -> None:
        seen.append((a, b, c))

    note(a=a)
    assert seen == [(a, 1, 3), (a, 1, 4), (a, 2, 3), (a, 2, 4)]
    assert list(inspect.signature(note).parameters) == ["a"]


def test_a_failure_names_its_cell() -> None:
    @row(("a", "b"), [(1, 1), (2, 3)])
    def equal(a: int, b: int) -> None:
        assert a == b

    with pytest.raises(AssertionError) as caught:
        equal()
    assert caught.value.__notes__ == ["in the cell {'a': 2, 'b': 3}"]
