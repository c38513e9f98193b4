"""One declaration gives reader, writer and builder: on ops that exist only here."""

import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir import parser
from tilework.ir.constraints import ANY, BOOL_LIKE, I32, I32_ARRAY, PTR_LIKE, enum_property
from tilework.ir.create import create_op
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.enums import CacheModifier
from tilework.ir.fields import (
    fields_of,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from tilework.ir.locations import unknown
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.tt import loaded_type, mask_type
from tilework.ir.types import f32, i1, i32, i32_array, int_attr, pointer_type


class FetchOp(Op):
    """Everything that a form can say, in one op."""

    name = "testing.fetch"
    ptr = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    indices = var_operand_def(I32)
    order = prop_def(I32_ARRAY)
    result = result_def(ANY)
    cache = prop_def(enum_property(CacheModifier), default_value=int_attr(CacheModifier.NONE, i32))
    fast = opt_prop_def(UnitAttr)
    body = region_def()
    form = "$ptr[$indices](? where $mask) $order(? $fast)(? by $cache) $body {} : type($ptr)"
    infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result")}
    traits = traits_def(Pure())


class EndOp(Op):
    name = "testing.end"
    form = "{}"


@pytest.fixture(autouse=True)
def dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parser.make_context.__wrapped__()
    made.load_dialect(Dialect("testing", dialect_ops("testing"), []))
    monkeypatch.setattr("tilework.ir.parser.make_context", lambda: made)


PLAIN = "testing.fetch %p[] [1, 0] {\n      testing.end\n    } : !tt.ptr<f32>"
FULL = "testing.fetch %p[%i, %i] where %c [2] fast by ca {\n      testing.end\n    } {k = 1 : i32, pure} : !tt.ptr<f32>"


def module(text: str) -> str:
    head = "  tt.func public @f(%p: !tt.ptr<f32>, %i: i32, %c: i1) attributes {noinline = false} {\n"
    return f"module {{\n{head}    %0 = {text}\n    tt.return\n  }}\n}}\n"


@pytest.mark.parametrize("text", [PLAIN, FULL])
def test_what_is_written_is_read(text: str) -> None:
    assert print_module(parse_module(module(text))) == module(text)


def fetched(text: str) -> Operation:
    return next(op for op in parse_module(module(text)).walk() if op.name == "testing.fetch")


def test_the_builder_takes_fields_in_order_and_python_values() -> None:
    block = Block(arg_types=[pointer_type(f32), i32, i1])
    pointer, index, mask = block.args
    body = Region(Block([EndOp.make(unknown)]))
    op = FetchOp.make(pointer, mask, (index, index), [2], body, unknown, cache=CacheModifier.CA, fast=True)
    read = fetched(FULL)
    assert op.properties == read.properties and op.properties["order"] == i32_array(2)
    assert [v.type for v in (*op.operands, *op.results)] == [v.type for v in (*read.operands, *read.results)]
    plain = FetchOp.make(pointer, None, (), (1, 0), Region(), unknown)
    assert plain.properties == fetched(PLAIN).properties and "fast" not in plain.properties


@pytest.mark.parametrize(
    "text, message",
    [
        ("testing.fetch %p[%i] where [1] { testing.end } : !tt.ptr<f32>", "operand expected"),
        ("testing.fetch %p[%i] { testing.end } : !tt.ptr<f32>", "expected a list of integers"),
        ("testing.fetch %p[] [1] by xx { testing.end } : !tt.ptr<f32>", "expected one of none, ca"),
        ("testing.fetch %p[] [1] { testing.end } !tt.ptr<f32>", "Expected ':'"),
        ("testing.fetch %p[] [1] { testing.end } : i32", "a pointer or a tensor of pointers is loaded from"),
    ],
)
def test_what_is_missing_is_named(text: str, message: str) -> None:
    with pytest.raises(IRSyntaxError, match=message.replace("[", "\\[")):
        parse_module(module(text))


class Halves(Op):
    """A base of ops: it has fields, and no name."""

    low = operand_def(I32)


class JoinOp(Halves):
    name = "late.join"
    high = operand_def(I32)
    kind = opt_prop_def(UnitAttr)
    result = result_def(I32)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if self.low is self.high:
            raise VerifyException("late.join needs two values")


def test_fields_are_accessors() -> None:
    a, b = Block(arg_types=[i32, i32]).args
    op = create_op(JoinOp, (b, a), (i32,), unknown)
    op.kind = UnitAttr()
    assert op.properties == {"kind": UnitAttr()} and op.kind == UnitAttr()
    assert (op.high, op.low, op.result) == (b, a, op.results[0])
    op.verify()
    with pytest.raises(VerifyException, match="two values"):
        JoinOp.create(operands=[a, a], result_types=[i32]).verify()
    assert list(fields_of(JoinOp).operands) == ["high", "low"]
