"""`constexpr`, `tuple` and `slice` on the host."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import tilework
import tilework.language as tl
from tilework.language.core import _unwrap_if_constexpr, _unwrap_iterable, _unwrap_shape

BINARY = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor),
]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", BINARY + COMPARE)
@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, 3), (0, 5)])
def test_operators_are_pythons_on_either_side(op: Callable[[Any, Any], Any], a: int, b: int) -> None:
    expected = op(a, b)
    for result in (op(tl.constexpr(a), tl.constexpr(b)), op(tl.constexpr(a), b), op(a, tl.constexpr(b))):
        assert isinstance(result, tl.constexpr)
        assert type(result.value) is type(expected) and result.value == expected


def test_unary_operators() -> None:
    c = tl.constexpr(5)
    assert ((-c).value, (+c).value, (~c).value, c.__not__().value) == (-5, 5, -6, False)
    assert c.logical_and(0).value == 0 and c.logical_or(0).value == 5


def test_nested_constexprs_flatten() -> None:
    assert tl.constexpr(tl.constexpr(tl.constexpr(3))).value == 3
    assert tl.constexpr(tl.constexpr(3)) == tl.constexpr(3)


def test_text() -> None:
    c = tl.constexpr(5)
    assert (repr(c), str(c), f"{c}") == ("constexpr[5]",) * 3
    assert repr(c.type) == "constexpr_type[5]" and c.type.mangle() == "c5"


def test_conversions() -> None:
    assert bool(tl.constexpr(0)) is False and bool(tl.constexpr("a")) is True
    assert list(range(tl.constexpr(3))) == [0, 1, 2] and [10, 20][tl.constexpr(1)] == 20
    assert int(tl.constexpr(3)) == 3 and float(tl.constexpr(2)) == 2.0 and float(tl.constexpr(0.5)) == 0.5
    assert tl.constexpr(2) in [1, 2] and tl.constexpr(5) not in [1, 2]


def test_iteration_call_and_indexing_reach_the_value() -> None:
    assert list(tl.constexpr([1, 2])) == [1, 2]
    assert tl.constexpr(max)(1, 2) == 2
    c = tl.constexpr((1, 2, 3))
    assert c[tl.constexpr(1)] == 2 and type(c[1]) is int
    assert c[tl.slice(1, tl.constexpr(3))] == (2, 3)
    assert tl.constexpr({"a": 1})["a"] == 1


def test_only_own_attributes_on_the_host() -> None:
    with pytest.raises(AttributeError):
        _ = tl.constexpr("abc").upper  # pyright: ignore[reportAttributeAccessIssue]


def test_hash_is_by_value_and_type() -> None:
    assert {tl.constexpr(1): "x"}[tl.constexpr(1)] == "x"
    assert hash(tl.constexpr(1)) != hash(tl.constexpr(1.0)) or tl.constexpr(1).type != tl.constexpr(1.0).type


def test_the_type_follows_the_value() -> None:
    c = tl.constexpr(1)
    c.value = 2
    assert c.type == tl.constexpr_type(2)
    assert tl.constexpr(1).type != tl.constexpr(True).type and tl.constexpr(1).type != tl.constexpr(1.0).type


def test_a_runtime_operand_decides_itself() -> None:
    with pytest.raises(ValueError, match="@jit"):
        operator.add(tl.constexpr(1), tl.tensor("x", tl.int32))


def test_types_of_unusual_constants() -> None:
    nan = float("nan")
    assert tl.constexpr_type(nan) == tl.constexpr_type(float("nan"))
    assert tl.constexpr_type(0.0) != tl.constexpr_type(-0.0)
    assert tl.constexpr_type([1, 2]) == tl.constexpr_type([1, 2]) != tl.constexpr_type([1, 3])
    assert len({tl.constexpr_type([1]), tl.constexpr_type([1]), tl.constexpr_type(nan), tl.constexpr_type(nan)}) == 2


@pytest.mark.parametrize("value", [tl.constexpr(3), tl.tuple([1, tl.constexpr(2)]), tl.float32, tl.pi32_t])
def test_values_can_be_copied(value: Any) -> None:
    assert copy.deepcopy(value) == value and pickle.loads(pickle.dumps(value)) == value


class Point(NamedTuple):
    x: Any
    y: Any


def test_tuple_types() -> None:
    x = tl.tensor("x", tl.int32)
    t = tl.tuple([x, tl.constexpr(4), None, tl.float32, 2])
    expected = [tl.int32, *map(tl.constexpr_type, (4, None, tl.float32, 2))]
    assert t.type == tl.tuple_type(expected) and list(t.type) == expected and t.type[0] == tl.int32
    assert t.type.mangle() == ("Ti32_c4_cNone_cfp32_c2T")


def test_tuple_indexing() -> None:
    t = tl.tuple([10, 20, 30])
    assert (t[0], t[-1], t[tl.constexpr(1)], len(t)) == (10, 30, 20, 3)
    assert t[1:] == (20, 30) and isinstance(t[1:], tl.tuple) and t[tl.slice(None, tl.constexpr(-1))] == [10, 20]
    with pytest.raises(TypeError, match="compile time"):
        t[tl.tensor("i", tl.int32)]
    with pytest.raises(TypeError):
        t[0] = 1  # pyright: ignore[reportIndexIssue]


def test_tuple_fields() -> None:
    t = tl.tuple(Point(1, 2))
    assert t.fields == ["x", "y"] and (t.x, t.y) == (1, 2)
    assert tl.tuple(t).fields == ["x", "y"]
    with pytest.raises(AttributeError, match="'tuple' object has no attribute z"):
        _ = t.z
    assert t.type != tl.tuple([1, 2]).type


def test_tuple_operators() -> None:
    t = tl.tuple([1, 2])
    assert t + [3] == (1, 2, 3) and [0] + t == (0, 1, 2) and (0,) + t == (0, 1, 2)
    assert t * tl.constexpr(2) == (1, 2, 1, 2)
    assert isinstance(t == (1, 2), tl.constexpr) and (t == [1, 2]).value is True and (t != [1, 2]).value is False
    assert (t == 3).value is False and (t == (1, 3)).value is False
    assert bool(tl.tuple([])) is False and bool(t) is True
    assert tl.tuple([tl.constexpr(1)]) == tl.tuple([1])
    x = tl.tensor("x", tl.int32)
    assert tl.tuple([x, 1]) == (x, 1)
    for bad in (lambda: tl.tuple([x]) == (1,), lambda: t + 1, lambda: t * tl.tensor("n", tl.int32)):
        with pytest.raises(TypeError):
            bad()


def test_tuple_text() -> None:
    assert str(tl.tuple([32, 4])) == "['32', '4']" and repr(tl.tuple([32, tl.constexpr(4)])) == "(32, constexpr[4])"


def test_tuples_flatten_to_their_runtime_parts() -> None:
    x, y = tl.tensor("x", tl.int32), tl.tensor("y", tl.pointer_type(tl.float32))
    t = tl.tuple([x, tl.constexpr(4), tl.tuple([None, y])])
    handles: list[Any] = []
    t._flatten_ir(handles)
    assert handles == ["x", "y"]
    rebuilt, cursor = t.type._unflatten_ir(["-", "a", "b"], 1)
    assert cursor == 3 and rebuilt.type == t.type
    assert (rebuilt[0].handle, rebuilt[1].value, rebuilt[2][0].value, rebuilt[2][1].handle) == ("a", 4, None, "b")
    assert rebuilt[2][1].type == tl.pointer_type(tl.float32)


def test_slices() -> None:
    assert tl.slice(None, None, None).is_full() and tl.slice(tl.constexpr(None)).is_full()
    assert not tl.slice(1, None).is_full()
    assert tl.slice(1, tl.constexpr(2)).to_python() == slice(1, 2)
    assert tl.slice(1).type == tl.slice(2).type


def test_unwrapping() -> None:
    assert _unwrap_if_constexpr([tl.constexpr(2), (tl.constexpr(3), 4)]) == [2, (3, 4)]
    assert _unwrap_shape(tl.constexpr([4, tl.constexpr(8)])) == [4, 8] and _unwrap_shape(4) == [4]
    assert _unwrap_shape(tl.tuple([tl.constexpr(4)])) == [4]
    assert list(_unwrap_iterable((4, 8))) == [4, 8] and list(_unwrap_iterable(([4, 8],))) == [4, 8]
    assert list(_unwrap_iterable((tl.tuple([4, 8]),))) == [4, 8] and list(_unwrap_iterable((4,))) == [4]


@pytest.mark.parametrize("bits", range(64))
def test_next_power_of_2_is_the_next_one(bits: int) -> None:
    power = 1 << bits
    assert tilework.next_power_of_2(power) == power
    assert tilework.next_power_of_2(power + 1) == 2 * power
