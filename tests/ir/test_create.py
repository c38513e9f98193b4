"""`create_op` and its companions do to xDSL's IR what xDSL's own methods do."""

from typing import Any

import pytest
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NameLoc,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.core import SSAValues

from tilework.ir import arith, tt
from tilework.ir.arith import binary
from tilework.ir.create import (
    add_result,
    append_op,
    clone_op,
    clone_region,
    create_op,
    erase_op,
    replace_all_uses,
    set_type,
)
from tilework.ir.locations import callsite_loc, expression_loc, file_loc, name_loc
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.types import i1, i32, int_attr

LOC = file_loc("k.py", 1, 2)


def uses(value: SSAValue) -> list[tuple[Operation, int]]:
    """The uses of a value, checking the links in both directions."""
    found, previous, use = [], None, value.first_use
    while use is not None:
        assert use._prev_use is previous
        found.append((use.operation, use.index))
        previous, use = use, use._next_use
    return found


def test_create_op_sets_what_create_sets() -> None:
    block = Block(arg_types=[i32, i32])
    arguments: dict[str, Any] = {"properties": {"axis": int_attr(0, i32)}, "attributes": {"hint": int_attr(1, i1)}}
    ours = create_op(arith.AddiOp, (block.args[0], block.args[0]), (i32,), LOC, **arguments)
    theirs = arith.AddiOp.create(
        operands=(block.args[1], block.args[1]), result_types=(i32,), location=LOC, **arguments
    )
    for field in vars(theirs):
        mine, other = getattr(ours, field), getattr(theirs, field)
        assert type(mine) is type(other), field
        if field not in ("_operands", "_operand_uses", "results"):
            assert mine == other, field
    assert uses(block.args[0]) == [(ours, index) for _, index in uses(block.args[1])]
    assert [(r.type, r.index, r.op) for r in ours.results] == [(i32, 0, ours)]
    assert ours.properties is not arguments["properties"]


def test_relink_uses_moves_every_use() -> None:
    block = Block(arg_types=[i32, i32])
    a, b = block.args
    ops = [binary(arith.AddiOp, a, b, LOC), binary(arith.MuliOp, a, a, LOC)]
    replace_all_uses(a, b)
    assert uses(a) == []
    assert sorted((op.name, index) for op, index in uses(b)) == [
        ("arith.addi", 0),
        ("arith.addi", 1),
        ("arith.muli", 0),
        ("arith.muli", 1),
    ]
    assert [list(op.operands) for op in ops] == [[b, b], [b, b]]


def test_drop_op_refuses_used_results_and_unlinks_operands() -> None:
    block = Block(arg_types=[i32])
    (a,) = block.args
    first = binary(arith.AddiOp, a, a, LOC)
    second = binary(arith.MuliOp, first.results[0], a, LOC)
    append_op(block, first)
    append_op(block, second)
    assert list(block.ops) == [first, second] and first.parent is block and second.prev_op is first
    with pytest.raises(ValueError, match=r"arith\.addi cannot be erased"):
        erase_op(first)
    erase_op(second)
    erase_op(first)
    assert uses(a) == [] and block.is_empty and first.parent is None


def test_drop_op_drops_the_ops_inside() -> None:
    outer = Block(arg_types=[i32])
    body = Block()
    append_op(body, binary(arith.AddiOp, outer.args[0], outer.args[0], LOC))
    function = tt.FuncOp.make("f", (), (), Region(body), LOC)
    append_op(outer, function)
    erase_op(function)
    assert uses(outer.args[0]) == [] and outer.is_empty


def test_add_result_and_set_type() -> None:
    block = Block(arg_types=[i32])
    op = binary(arith.AddiOp, block.args[0], block.args[0], LOC)
    result = add_result(op, i1)
    assert list(op.results) == [op.results[0], result] and (result.op, result.index, result.type) == (op, 1, i1)
    set_type(result, i32)
    assert result.type == i32 and [value.type for value in op.results] == [i32, i32]


def test_clone_op_clones_loops_and_branches() -> None:
    module = parse_module(
        """module { tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
          %c = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          %x = scf.for %i = %c to %n step %c1 iter_args(%a = %c) -> (i32) : i32 {
            %b = arith.addi %a, %i : i32
            scf.yield %b : i32 }
          %f = arith.cmpi slt, %x, %n : i32
          cf.cond_br %f, ^bb1, ^bb2(%x : i32)
        ^bb1:
          cf.br ^bb2(%n : i32)
        ^bb2(%y: i32):
          tt.print "y" {hex = false, isSigned = array<i32: 1>} : %y : i32
          tt.return } }"""
    )
    ours, theirs = clone_op(module, {}), module.clone()
    assert print_module(ours) == print_module(theirs) == print_module(module)
    for mine, other in zip(ours.walk(), theirs.walk(), strict=True):
        assert mine.parent is None or mine.parent_op() is not other.parent_op()
        order = [[(use.operation.name, use.index) for use in result.uses] for result in mine.results]
        assert order == [[(use.operation.name, use.index) for use in result.uses] for result in other.results]
        assert not {id(value.owner) for value in mine.operands} & {id(op) for op in module.walk()}


def test_what_is_queried_most_is_answered_as_before() -> None:
    block = Block(arg_types=[i32])
    value = block.args[0]
    first, second, third = ops = [binary(arith.AddiOp, value, value, LOC) for _ in range(3)]
    for op in ops:
        append_op(block, op)
    assert len({first, second, first}) == 2 and first != second and second == second and value != first.results[0]
    assert len({value, first.results[0], block, *value.uses}) == 3 + 6
    assert first.next_op is second and third.next_op is None and first.results[0].owner is first
    assert [(use.operation, use.index) for use in value.uses] == uses(value)
    several = SSAValues([value, first.results[0], second.results[0]])
    assert several[0] is value and several[-1] is second.results[0]
    assert type(several[1:]) is SSAValues and several[1:].types == (i32, i32)
    with pytest.raises(AttributeError):
        value.type = i1  # pyright: ignore[reportAttributeAccessIssue]
    seen = []
    for op in block.ops:  # the one that is looked at may go
        seen.append(op)
        erase_op(op)
    assert seen == ops and block.is_empty and list(block.ops) == []


def test_create_attr_is_what_the_constructor_makes() -> None:
    theirs = CallSiteLoc(
        NameLoc(StringAttr("x"), FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(8))), UNKNOWN_LOC
    )
    ours = callsite_loc(name_loc("x", file_loc("k.py", 3, 8)), UNKNOWN_LOC)
    assert ours == theirs and hash(ours) == hash(theirs) and str(ours) == str(theirs)
    assert ours.parameters == theirs.parameters and isinstance(ours.callee, NameLoc)
    assert ours.callee.location == expression_loc("k.py", 3, 8, None, (3, 4))


def test_equal_types_and_numbers_have_one_hash_and_others_are_distinguished() -> None:
    make = [
        lambda: IntegerType(32),
        lambda: IntegerType(32, Signedness.SIGNED),
        lambda: IntegerType(16),
        lambda: TensorType(IntegerType(32), [4]),
        lambda: TensorType(IntegerType(32), [4, 1]),
        lambda: IntegerAttr(3, IntegerType(32)),
        lambda: IntegerAttr(3, IntegerType(64)),
    ]
    for one in make:
        assert hash(one()) == hash(one()) and {one(): 1}[one()] == 1
    assert len({one() for one in make}) == len(make)


def test_clone_region_is_what_clone_makes() -> None:
    text = (
        "tt.func @f(%p: i1, %x: i32) { %y = scf.if %p -> (i32) { scf.yield %x "
        ": i32 } else { %z = arith.addi %x, %x : i32 scf.yield %z : i32 } tt.return }"
    )
    body = parse_module(text).body.block.first_op.regions[0]  # pyright: ignore[reportOptionalMemberAccess]
    ours, theirs = clone_region(body), body.clone()
    assert ours.is_structurally_equivalent(theirs) and not {*ours.walk()} & {*body.walk()}
    assert [value.name_hint for value in ours.block.args] == ["p", "x"]
    assert [op.location for op in ours.walk()] == [op.location for op in body.walk()]
