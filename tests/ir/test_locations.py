"""Locations, names and constants of kernels that were compiled long ago are freed."""

import gc
import weakref
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import f64, i64

from tilework.ir import locations
from tilework.ir.rewrite import float_constant, int_constant
from tilework.ir.types import RECENT, string_attr

UNUSED = 987_654_321_123  # other tests of this process may have kernels, and so constants, that live longer
MAKERS: dict[str, Callable[[int], object]] = {
    "position": lambda n: locations.file_loc("long.py", n, 0),
    "position read from text": lambda n: locations.read_loc("long.py", n, 1),
    "expression": lambda n: locations.expression_loc("long.py", n, 9, None, (n, 4)),
    "name": lambda n: locations.name_loc("x", locations.file_loc("long.py", n, 2)),
    "string": lambda n: string_attr(f"name {n}"),
    "integer": lambda n: int_constant(n + UNUSED, i64),
    "float": lambda n: float_constant((n + UNUSED).to_bytes(8, "little"), f64),
}


@pytest.mark.parametrize("name", MAKERS)
def test_old_attributes_are_freed(name: str) -> None:
    make = MAKERS[name]
    first = weakref.ref(make(0))
    for number in range(1, 2 * RECENT):
        make(number)
    gc.collect()
    assert first() is None
