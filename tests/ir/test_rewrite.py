"""Helpers that build and change IR."""

import math

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.traits import IsTerminator, Pure

from tilework.frontend.semantic.building import Builder
from tilework.ir import arith, scf, tt, ttg
from tilework.ir.arith import binary, cmpi, convert
from tilework.ir.constraints import Elementwise
from tilework.ir.effects import (
    DECLARED,
    DIVISIONS,
    ELEMENTWISE,
    PURE,
    RECURSIVE,
    SPECULATABLE,
    TERMINATORS,
    is_elementwise,
    is_pure,
    is_speculatable,
    reads,
    writes,
)
from tilework.ir.enums import AddrSpace
from tilework.ir.locations import callsite_loc, file_loc, name_loc, name_of, unknown
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.rewrite import (
    constant,
    constant_bits,
    constant_value,
    defining_op,
    insert_after,
    insert_before,
    recreate,
    replace_op,
    splat_attr,
)
from tilework.ir.scf import make_for, make_if, make_yield
from tilework.ir.types import bf16, f8E5M2, f16, f32, f64, i1, i8, i32, i64, is_float, pointer_type, tensor_type
from tilework.transforms.common.dce import dce

LOC = file_loc("k.py", 1, 2)


def test_recreate_keeps_what_is_not_given() -> None:
    block = Block(arg_types=[i32, i32])
    a, b = block.args
    op = cmpi("slt", a, b, LOC)
    op.attributes["hint"] = splat_attr(1, i32)
    new = recreate(op, operands=(b, a))
    assert type(new) is arith.CmpiOp and list(new.operands) == [b, a]
    assert new.properties == op.properties and new.attributes == op.attributes and new.location is LOC
    assert new.results[0].type == i1 and new.parent is None


def test_recreate_moves_regions_only_when_given() -> None:
    function = tt.FuncOp.make("f", (), (), Region(Block()), LOC)
    assert not recreate(function).regions
    body = function.regions[0]
    assert recreate(function, regions=(body,)).regions == (body,) and not function.regions


def test_insert_and_replace() -> None:
    block = Block(arg_types=[i32])
    (a,) = block.args
    first, second = binary(arith.AddiOp, a, a, LOC), binary(arith.MuliOp, a, a, LOC)
    block.add_op(first)
    insert_after(first, second)
    third = binary(arith.SubiOp, first.results[0], second.results[0], LOC)
    insert_after(second, third)
    replacement, extra = binary(arith.XOrIOp, a, a, LOC), binary(arith.AndIOp, a, a, LOC)
    insert_before(first, extra)
    replace_op(first, replacement)
    assert [op.name for op in block.ops] == ["arith.andi", "arith.xori", "arith.muli", "arith.subi"]
    assert third.operands[0] is replacement.results[0]
    replace_op(replacement, results=(a,))
    assert third.operands[0] is a and defining_op(a) is None
    assert defining_op(third.results[0]) is third


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (-1, i32, -1),
        (0xFFFFFFFF, i32, -1),
        (1, i1, 1),
        (0, i1, 0),
        (300, i8, 44),
        (7, i64, 7),
        (1.5, f32, 1.5),
        (0.1, f32, 0.10000000149011612),
        (0.1, f64, 0.1),
        (2, f16, 2.0),
        (1.01, bf16, 1.0078125),
        (-math.inf, f8E5M2, -math.inf),
    ],
)
def test_constants_are_numbers_of_their_type(value: int | float, type: Attribute, expected: int | float) -> None:
    for whole in (type, tensor_type((4, 2), type)):
        op = constant(value, whole, LOC)
        op.verify()
        assert constant_value(op.results[0]) == expected
        assert splat_attr(value, whole) is splat_attr(value, whole)


def test_signed_zeros_and_nans_stay_what_they_are() -> None:
    for type in (f32, tensor_type((4,), f32)):
        assert str(constant_value(constant(-0.0, type, LOC).results[0])) == "-0.0"
        assert splat_attr(0.0, type) != splat_attr(-0.0, type)
        assert math.isnan(constant_value(constant(math.nan, type, LOC).results[0]) or 0.0)


@pytest.mark.parametrize("type", [i1, i8, i32, i64, f16, bf16, f32, f64])
def test_constants_have_equal_bits_if_their_attributes_are_equal(type: Attribute) -> None:
    values: list[int | float] = [0, 1, -1, 255, 256, 2**31, 2**32 + 1, 2**64 - 1, -(2**63)]
    if is_float(type):
        values = [0.0, -0.0, 0.1, 0.1000000001, 1.0, 1, math.inf, math.nan, -math.nan, 1e-45, 65504.0]
    for either in (type, tensor_type((4,), type)):
        for a in values:
            for b in values:
                same = splat_attr(a, either) == splat_attr(b, either)
                assert (constant_bits(a, either) == constant_bits(b, either)) == same, (a, b)


def test_only_splats_have_a_constant_value() -> None:
    module = parse_module("module { %0 = arith.constant dense<[1, 2]> : tensor<2xi32> }")
    (op,) = module.body.block.ops
    assert constant_value(op.results[0]) is None
    assert constant_value(Block(arg_types=[i32]).args[0]) is None


def test_dead_ops_go_in_one_walk() -> None:
    module = parse_module(
        """
        tt.func @f(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
          %0 = arith.addi %n, %n : i32
          %1 = arith.muli %0, %n : i32
          %2 = tt.load %p : !tt.ptr<f32>
          %3 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
          %4 = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (i32) : i32 {
            %6 = arith.addi %a, %i : i32
            scf.yield %6 : i32
          }
          scf.if %c {
            %7 = arith.addi %n, %n : i32
            tt.store %p, %3 : !tt.ptr<f32>
          }
          tt.return
        }
        """
    )
    for function in module.ops:
        dce(function)
    module.verify()
    names = [op.name for op in module.walk()]
    assert names == ["builtin.module", "tt.func", "tt.load", "scf.if", "tt.store", "scf.yield", "tt.return"]


def test_effect_tables_agree_with_the_traits() -> None:
    for op in tt.TT.operations:
        assert (op in TERMINATORS) == op.has_trait(IsTerminator), op.name
        assert (op in PURE) == (op.has_trait(Pure) or op is tt.CatOp), op.name
        assert (op in ELEMENTWISE) == op.has_trait(Elementwise), op.name
    assert SPECULATABLE < PURE and not (DECLARED | RECURSIVE) & PURE and DIVISIONS < PURE


def test_effects() -> None:
    block = Block(arg_types=[pointer_type(f32), f32, i32])
    p, x, n = block.args
    load, store = tt.LoadOp.make(p, None, None, LOC), tt.StoreOp.make(p, x, None, LOC)
    volatile = tt.LoadOp.make(p, None, None, LOC, is_volatile=True)
    barrier, call = ttg.BarrierOp.make(AddrSpace.ALL, LOC), tt.CallOp.make("f", (), (), LOC)
    asm = [tt.ElementwiseInlineAsmOp.make((x,), (f32,), "", "=r,r", pure, 1, LOC) for pure in (True, False)]
    facts = {op: (is_pure(op), reads(op), writes(op)) for op in (load, store, volatile, barrier, call, *asm)}
    assert facts[load] == (False, True, False)
    assert facts[store] == (False, False, True)
    assert facts[volatile] == facts[barrier] == facts[call] == facts[asm[1]] == (False, True, True)
    assert facts[asm[0]] == (True, False, False) and is_speculatable(asm[0])
    assert is_elementwise(asm[0]) and not is_elementwise(load) and not is_speculatable(load)
    assert not is_speculatable(binary(arith.DivSIOp, n, n, LOC))
    for divisor, safe in ((2, True), (0, False), (-1, False)):
        op = binary(arith.DivSIOp, n, constant(divisor, i32, LOC).results[0], LOC)
        assert is_pure(op) and is_speculatable(op) == safe


def loop(body: list[Operation], step: int) -> scf.ForOp:
    start, end, stride = (constant(value, i32, LOC).results[0] for value in (0, 8, step))
    block = Block([*body, make_yield((), LOC)], arg_types=[i32])
    return make_for(start, end, stride, (), Region(block), LOC)


def test_effects_of_a_loop_are_those_of_its_body() -> None:
    pure, stores = Block(arg_types=[i32]).args[0], Block(arg_types=[pointer_type(f32), f32]).args
    for step, speculatable in ((1, True), (2, False)):
        op = loop([binary(arith.AddiOp, pure, pure, LOC)], step)
        op.verify()
        assert is_pure(op) and not reads(op) and not writes(op) and is_speculatable(op) == speculatable
    op = loop([tt.StoreOp.make(*stores, None, LOC)], 1)
    assert not is_pure(op) and writes(op) and not is_speculatable(op)
    block = Block([make_yield((), LOC)])
    branch = make_if(Block(arg_types=[i1]).args[0], (), Region(block), None, LOC)
    branch.verify()
    assert is_pure(branch) and is_speculatable(branch)


def test_builder_keeps_constants_once_at_the_start_of_the_function() -> None:
    entry = Block(arg_types=[i32])
    function = tt.FuncOp.make("f", (i32,), (), Region(entry), LOC)
    builder = Builder()
    builder.loc = LOC
    with builder.enter_function(entry):
        builder.insert(binary(arith.AddiOp, entry.args[0], builder.constant(4, i32), LOC))
        assert builder.constant(4, i32) is builder.constant(4, i32)
        wide = builder.constant(4, i64)
        with builder.saved():
            builder.set_to_end(entry)
            builder.loc = unknown
            builder.insert(convert(arith.TruncIOp, wide, i32, LOC))
        assert builder.block is entry and builder.loc is LOC
        builder.insert(tt.ReturnOp.make((), LOC))
    module = ModuleOp([function])
    module.verify()
    assert [op.name for op in entry.ops] == [
        "arith.constant",
        "arith.constant",
        "arith.addi",
        "arith.trunci",
        "tt.return",
    ]
    assert "arith.constant 4 : i64" in print_module(module)
    assert builder.block is None


def test_locations_are_interned_and_named() -> None:
    here = file_loc("k.py", 3, 4)
    assert here is file_loc("k.py", 3, 4) and name_loc("x", here) is name_loc("x", here)
    assert name_of(name_loc("x", here)) == "x" and name_of(here) is None and name_of(unknown) is None
    assert name_of(callsite_loc(name_loc("x", here), here)) == "x"
