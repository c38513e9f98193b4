"""Arguments of jit functions that are no values of the language, and tuples (3.7.1)."""

from pathlib import Path

import pytest

import tilework.language as tl
from tests.frontend.rows import Refused, check
from tests.language.both_ways import check_both
from tilework import knobs

CALLED = """
@tilework.jit
def two(x, y):
    return x + y

@tilework.jit
def chosen(t):
    tl.static_assert(t[1] == "add")
    tl.static_assert(t[2] is None)
    return t[3](t[0], tl.full((), 4, t[4]))

@tilework.jit
def chosen_by_name(op, function, type):
    tl.static_assert(op == "add")
    return function(1, tl.full((), 4, type))
"""
CALLS = {
    "constants in a tuple": ("tl.store(out, chosen((n, 'add', None, two, tl.int32)))", [7]),
    "constants": ("tl.store(out, chosen_by_name('add', two, tl.int32))", [5]),
    "missing": ("two(n)", Refused(TypeError, "missing a required argument: 'y'")),
    "unknown": ("two(n, 1, q=2)", Refused(TypeError, "got an unexpected keyword argument 'q'")),
    "too many": ("two(n, 1, 2)", Refused(TypeError, "too many positional arguments")),
    "twice": ("two(n, 1, y=2)", Refused(TypeError, "multiple values for argument 'y'")),
}  # fmt: skip


@pytest.mark.parametrize("row", CALLS)
def test_call(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *CALLS[row], header=CALLED)


def test_wrong_calls_in_triton_3_6(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        check(tmp_path, "two(n)", Refused(TypeError, "two() missing 1 required positional argument: 'y'"), CALLED)


TUPLES = """
class Pair(NamedTuple):
    foo: tl.tensor
    bar: tl.tensor

@tilework.constexpr_function
def same(x):
    return x

@tilework.constexpr_function
def swapped(pair):
    return Pair(pair.bar, pair.foo)
"""
TUPLE_ROWS = {
    "not": ("tl.static_assert(not ())\nif not (n, 1):\n    tl.store(out, 1)\nelse:\n    tl.store(out, 2)", [2]),
    "not is a constant": ("a: tl.constexpr = not (n, 1)\ntl.static_assert(a == False)", []),
    "an unknown attribute": ("t = (n, 1)\nt.foo", Refused(AttributeError, "'tuple' object has no attribute foo")),
    "an unknown field": ("t = Pair(n, 1)\nt.x", Refused(AttributeError, "'tuple' object has no attribute x")),
    "a named tuple through a constexpr_function": ("tl.store(out, same(Pair(5, 6)).foo)\n"
                                                   "tl.store(out + 1, swapped(Pair(5, 6)).foo)", [5, 6]),
}  # fmt: skip


@pytest.mark.parametrize("row", TUPLE_ROWS)
def test_tuple(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *TUPLE_ROWS[row], header=TUPLES)


def test_names_of_tuple_types() -> None:
    plain, named = tl.tuple_type([tl.int32, tl.float32]), tl.tuple_type([tl.int32, tl.float32], ["x", "y"])
    assert plain.fields is None and plain.name == str(plain) == "[int32,fp32]"
    assert named.fields == ["x", "y"] and named.name == "[x:int32,y:fp32]"
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        assert plain.name == "[:int32,:fp32]"
