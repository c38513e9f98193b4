"""Decisions of Triton 3.6, recorded in `reference.json` from its own answers to generated layouts."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tilework.layouts import encodings
from tilework.layouts.conversion import scratch_bytes
from tilework.layouts.infer import infer_join, infer_reshape, infer_trans
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear
from tilework.target import Target

DATA: dict[str, list[list[Any]]] = json.loads((Path(__file__).parent / "reference.json").read_text())
Case = list[Any]


def value(data: Any) -> Any:
    """The layout that a list names by its class and fields; other lists are tuples."""
    if not isinstance(data, list):
        return data
    if data and isinstance(data[0], str):
        if data[0] == "LinearLayout":
            return LinearLayout([(name, vectors) for name, vectors in data[1]], [(n, size) for n, size in data[2]])
        kind = getattr(encodings, data[0])
        names = [field.name for field in sorted(fields(kind), key=lambda field: bool(field.kw_only))]
        return kind(**dict(zip(names, map(value, data[1:]), strict=False)))
    return tuple(map(value, data))


def check_all(table: str, check: Callable[[Case], tuple[Any, Any]]) -> None:
    """Every row of a table, and all that differ at once."""
    wrong = [(row, got) for row in DATA[table] for got, wanted in [check(row)] if got != wanted]
    assert not wrong, f"{len(wrong)} of {len(DATA[table])}; the first is {wrong[0]}"


def shape_of(row: Case) -> tuple[int, ...]:
    return tuple(row[1])


def test_linear_layouts_of_encodings() -> None:
    def check(row: Case) -> tuple[Any, Any]:
        wanted = tuple((name, tuple(map(tuple, vectors))) for name, vectors in row[2])
        return to_linear(value(row[0]), shape_of(row)).bases, wanted

    check_all("linear", check)


def test_linear_layouts_of_shared_encodings() -> None:
    def check(row: Case) -> tuple[Any, Any]:
        bases = dict(to_linear(value(row[0]), shape_of(row)).bases)
        return (bases["offset"], bases["block"]), (tuple(map(tuple, row[2])), tuple(map(tuple, row[3])))

    check_all("shared", check)


def test_reshapes() -> None:
    check_all("reshapes", lambda row: (infer_reshape(shape_of(row), value(row[0]), tuple(row[2])), value(row[3])))


def test_a_reshape_back_gives_the_same_indices() -> None:
    def check(row: Case) -> tuple[Any, Any]:
        back = infer_reshape(tuple(row[2]), value(row[3]), shape_of(row))
        return to_linear(back, shape_of(row)), to_linear(value(row[0]), shape_of(row))

    check_all("reshapes", check)


def test_transposes() -> None:
    check_all("transposes", lambda row: (infer_trans(value(row[0]), tuple(row[2]), shape_of(row)), value(row[3])))


def test_joins() -> None:
    check_all("joins", lambda row: (infer_join(value(row[0]), shape_of(row)), value(row[2])))


@pytest.mark.parametrize("capability", [80, 90])
def test_shared_memory_of_conversions(capability: int) -> None:
    """The conversions that go through shared memory, and their bytes of it."""

    def check(row: Case) -> tuple[Any, Any]:
        src, dst, shape, bits, target, wanted = row
        if target != capability:
            return None, None
        sides = [to_linear(value(side), tuple(shape)) for side in (src, dst)]
        return scratch_bytes(sides[0], sides[1], bits, *Target.parse(f"cuda:{capability}").matrix_access), wanted

    check_all("conversions", check)
