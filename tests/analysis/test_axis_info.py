"""AxisInfo: the numbers of known programs, and soundness on generated ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.axis_info import AxisFacts, AxisInfo, axis_info
from tilework.analysis.axis_transfer import MAX, join
from tilework.ir import arith, tt
from tilework.ir.arith import SelectOp
from tilework.ir.locations import unknown
from tilework.ir.parser import parse_module
from tilework.ir.rewrite import constant
from tilework.ir.types import i1, i32, i64, int_attr, tensor_type, with_element

Numbers = tuple[list[int], list[int], list[int]]


def facts_of_last(body: str, arguments: str = "") -> tuple[AxisFacts, SSAValue]:
    """The facts about the first operand of the last op but one (a `use`), of a function with that body."""
    module = parse_module(f"module {{ tt.func @f({arguments}) {{\n{body}\ntt.return }} }}")
    (function,) = module.body.block.ops
    terminator = function.regions[0].blocks[-1].last_op
    last = None if terminator is None else terminator.prev_op
    assert last is not None
    return axis_info(module), last.results[0]


def numbers(body: str, arguments: str = "") -> Numbers:
    facts, value = facts_of_last(body, arguments)
    info = facts.of(value)
    return list(info.contiguity), list(info.divisibility), list(info.constancy)


RANGE = "%r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
SUM_WITH_ARGUMENT = """%s = tt.splat %n : i32 -> tensor<128xi32>
        %x = arith.addi %r, %s : tensor<128xi32>
        %c = arith.constant dense<64> : tensor<128xi32>
        """
KNOWN: dict[str, tuple[str, str, Numbers]] = {
    "range": ("", RANGE, ([128], [1 << 30], [1])),
    "constant": ("", "%c = arith.constant dense<24> : tensor<128xi32>", ([1], [8], [128])),
    "zero": ("", "%c = arith.constant 0 : i32", ([1], [MAX], [1])),
    "program block": (
        "",
        """%c = arith.constant 64 : i32
        %p = tt.get_program_id x : i32
        %m = arith.muli %p, %c : i32
        %s = tt.splat %m : i32 -> tensor<64xi32>
        %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
        %o = arith.addi %s, %r : tensor<64xi32>""",
        ([64], [64], [1]),
    ),
    "addresses": (
        "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}",
        RANGE
        + """%s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
        %q = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>""",
        ([128], [16], [1]),
    ),
    "strided": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + "%s = tt.splat %n : i32 -> tensor<128xi32>\n %m = arith.muli %r, %s : tensor<128xi32>",
        ([1], [16], [1]),
    ),
    "mask": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + "%s = tt.splat %n : i32 -> tensor<128xi32>\n %m = arith.cmpi slt, %r, %s : tensor<128xi32>",
        ([1], [1], [16]),
    ),
    "mask, other side": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + "%s = tt.splat %n : i32 -> tensor<128xi32>\n %m = arith.cmpi sgt, %s, %r : tensor<128xi32>",
        ([1], [1], [16]),
    ),
    "no aligned mask for <=": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + "%s = tt.splat %n : i32 -> tensor<128xi32>\n %m = arith.cmpi sle, %r, %s : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "remainder": (
        "",
        RANGE + "%c = arith.constant dense<16> : tensor<128xi32>\n %m = arith.remsi %r, %c : tensor<128xi32>",
        ([16], [16], [1]),
    ),
    "remainder of a remainder": (
        "",
        RANGE
        + "%c = arith.constant dense<16> : tensor<128xi32>\n %d = arith.constant dense<24> : tensor<128xi32>\n"
        + "%s = arith.remsi %r, %c : tensor<128xi32>\n %m = arith.remsi %s, %d : tensor<128xi32>",
        ([8], [8], [1]),
    ),
    "remainder by one": (
        "",
        RANGE + "%c = arith.constant dense<1> : tensor<128xi32>\n %m = arith.remsi %r, %c : tensor<128xi32>",
        ([1], [MAX], [128]),
    ),
    "quotient": (
        "",
        RANGE + "%c = arith.constant dense<16> : tensor<128xi32>\n %m = arith.divsi %r, %c : tensor<128xi32>",
        ([1], [1], [16]),
    ),
    "quotient of what may be negative": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + SUM_WITH_ARGUMENT + "%m = arith.divsi %x, %c : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "remainder of what may be negative": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + SUM_WITH_ARGUMENT + "%m = arith.remsi %x, %c : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "quotient without signs": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        RANGE + SUM_WITH_ARGUMENT + "%m = arith.divui %x, %c : tensor<128xi32>",
        ([1], [1], [16]),
    ),
    "difference": (
        "",
        RANGE + "%c = arith.constant dense<8> : tensor<128xi32>\n %m = arith.subi %r, %c : tensor<128xi32>",
        ([128], [8], [1]),
    ),
    "falling": (
        "",
        RANGE + "%c = arith.constant dense<8> : tensor<128xi32>\n %m = arith.subi %c, %r : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "sum of runs": (
        "",
        RANGE + "%c = arith.constant dense<16> : tensor<128xi32>\n %m = arith.muli %r, %c : tensor<128xi32>\n"
        "%k = arith.addi %m, %r : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "shift left": (
        "",
        RANGE + "%c = arith.constant dense<3> : tensor<128xi32>\n %m = arith.shli %r, %c : tensor<128xi32>",
        ([1], [8], [1]),
    ),
    "shift right": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        "%c = arith.constant 3 : i32\n %m = arith.shrsi %n, %c : i32",
        ([1], [2], [1]),
    ),
    "expand and broadcast": (
        "",
        RANGE
        + """%e = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
        %b = tt.broadcast %e : tensor<128x1xi32> -> tensor<128x64xi32>""",
        ([128, 1], [1 << 30, 1], [1, 64]),
    ),
    "transpose": (
        "",
        RANGE
        + """%e = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
        %b = tt.trans %e {order = array<i32: 1, 0>} : tensor<128x1xi32> -> tensor<1x128xi32>""",
        ([1, 128], [1, 1 << 30], [1, 1]),
    ),
    "select of runs": (
        "%c: tensor<128xi1>",
        RANGE
        + """%k = arith.constant dense<64> : tensor<128xi32>
        %s = arith.addi %r, %k : tensor<128xi32>
        %m = arith.select %c, %r, %s : tensor<128xi1>, tensor<128xi32>""",
        ([1], [1], [1]),
    ),
    "maximum": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        "%c = arith.constant 8 : i32\n %m = arith.maxsi %n, %c : i32",
        ([1], [8], [1]),
    ),
    "bits": (
        "",
        RANGE + "%c = arith.constant dense<8> : tensor<128xi32>\n %m = arith.andi %r, %c : tensor<128xi32>",
        ([1], [1], [1]),
    ),
    "load": (
        "%p: !tt.ptr<f32>",
        """%s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
        %v = tt.load %s : tensor<128x!tt.ptr<f32>>""",
        ([1], [1], [128]),
    ),
    "load with other": (
        "%p: !tt.ptr<i32>, %m: i1",
        RANGE
        + """%s = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
        %k = tt.splat %m : i1 -> tensor<128xi1>
        %v = tt.load %s, %k, %r : tensor<128x!tt.ptr<i32>>""",
        ([1], [1], [1]),
    ),
    "hints": (
        "%n: i32",
        """%m = arith.addi %n, %n {tt.divisibility = dense<32> : tensor<1xi32>,
            tt.contiguity = dense<4> : tensor<1xi32>, tt.constancy = dense<2> : tensor<1xi32>} : i32""",
        ([4], [32], [2]),
    ),
    "bytes of another type": (
        "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}",
        RANGE
        + """%s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
        %q = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
        %b = tt.bitcast %q : tensor<128x!tt.ptr<f32>> -> tensor<128x!tt.ptr<i8>>""",
        ([1], [4], [1]),
    ),
    "for": (
        "%n: i32",
        """%c0 = arith.constant 0 : i32
        %c4 = arith.constant 4 : i32
        %c16 = arith.constant 16 : i32
        %x = scf.for %i = %c0 to %n step %c4 iter_args(%a = %c16) -> (i32) : i32 {
          %b = arith.addi %a, %i : i32
          scf.yield %b : i32
        }""",
        ([1], [4], [1]),
    ),
    "nested for": (
        "%n: i32",
        """%c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c24 = arith.constant 24 : i32
        %x = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {
          %y = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (i32) : i32 {
            %c = arith.addi %b, %c24 : i32
            scf.yield %c : i32
          }
          scf.yield %y : i32
        }""",
        ([1], [8], [1]),
    ),
    "while": (
        "%n: i32",
        """%c0 = arith.constant 0 : i32
        %c4 = arith.constant 4 : i32
        %x = scf.while (%a = %c0) : (i32) -> i32 {
          %t = arith.cmpi slt, %a, %n : i32
          scf.condition(%t) %a : i32
        } do {
        ^bb0(%b: i32):
          %c = arith.addi %b, %c4 : i32
          scf.yield %c : i32
        }""",
        ([1], [4], [1]),
    ),
    "if": (
        "%n: i32 {tt.divisibility = 16 : i32}, %t: i1",
        """%c4 = arith.constant 4 : i32
        %x = scf.if %t -> (i32) {
          scf.yield %n : i32
        } else {
          scf.yield %c4 : i32
        }""",
        ([1], [4], [1]),
    ),
    "if with a constant condition": (
        "%n: i32 {tt.divisibility = 16 : i32}",
        """%c4 = arith.constant 4 : i32
        %t = arith.constant true
        %x = scf.if %t -> (i32) {
          scf.yield %n : i32
        } else {
          scf.yield %c4 : i32
        }""",
        ([1], [16], [1]),
    ),
    "blocks": (
        "%n: i32 {tt.divisibility = 16 : i32}, %t: i1",
        """%c8 = arith.constant 8 : i32
        cf.cond_br %t, ^bb1(%n : i32), ^bb2(%c8 : i32)
      ^bb1(%a: i32):
        %b = arith.addi %a, %c8 : i32
        cf.cond_br %t, ^bb1(%b : i32), ^bb2(%b : i32)
      ^bb2(%c: i32):
        %d = arith.muli %c, %c8 : i32""",
        ([1], [64], [1]),
    ),
    "poison": (
        "%n: i32 {tt.divisibility = 16 : i32}, %t: i1",
        "%u = ub.poison : i32\n %m = arith.select %t, %u, %n : i32",
        ([1], [16], [1]),
    ),
    "unknown": ("%p: !tt.ptr<i32>", "%i = tt.ptr_to_int %p : !tt.ptr<i32> -> i64", ([1], [1], [1])),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_programs(name: str) -> None:
    arguments, body, expected = KNOWN[name]
    assert numbers(body, arguments) == expected


def test_text_of_a_fact() -> None:
    info = AxisInfo((1, 4), (1, 2), (1, 1), 3)
    assert str(info) == "contiguity = [1, 4], divisibility = [1, 2], constancy = [1, 1], constant_value = 3"
    assert str(info._replace(constant=None)).endswith("constant_value = <none>")


def test_join_weakens_divisors_of_different_runs() -> None:
    long, short = AxisInfo((8,), (16,), (1,)), AxisInfo((4,), (32,), (1,))
    assert join(long, short) == AxisInfo((4,), (4,), (1,))
    assert join(long, long) is long


def test_arguments_of_a_callee_hold_at_all_calls() -> None:
    module = parse_module("""module {
      tt.func private @g(%a: i32, %b: i32) attributes {noinline = true} {
        %s = arith.addi %a, %a : i32
        tt.return
      }
      tt.func public @f(%n: i32 {tt.divisibility = 16 : i32}) {
        %c8 = arith.constant 8 : i32
        tt.call @g(%n, %n) : (i32, i32) -> ()
        tt.call @g(%c8, %c8) : (i32, i32) -> ()
        tt.return
      }
    }""")
    callee = module.body.block.first_op
    assert callee is not None
    facts = axis_info(module)
    assert facts.of(callee.regions[0].blocks[0].args[0]).divisibility == (8,)


def test_questions_about_an_access() -> None:
    arguments, body, _ = KNOWN["addresses"]
    facts, pointers = facts_of_last(body, arguments)
    assert facts.alignment(pointers, [0]) == 4
    assert facts.contiguity(pointers, [0], [2]) == 2
    arguments, body, _ = KNOWN["mask"]
    facts, mask = facts_of_last(body, arguments)
    assert facts.mask_alignment(mask, [0]) == 16


# --- soundness --------------------------------------------------------------------------------------------------------


@dataclass
class Program:
    """A function under construction, with the concrete value of everything in it."""

    block: Block
    values: list[tuple[SSAValue, np.ndarray]]

    def add(self, op: Operation, array: np.ndarray) -> None:
        """Keep `op`, unless its values overflow i32 (the analysis assumes that they do not)."""
        if np.all(np.abs(array.astype(np.int64)) < 1 << 31):
            self.block.add_op(op)
            self.values.append((op.results[0], array))


SIZES = st.sampled_from([1, 2, 4, 8, 16])
SMALL = st.integers(-40, 40) | st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64])
CMP = {2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal, 0: np.equal, 1: np.not_equal}


def binary(kind: type[Operation], a: SSAValue, b: SSAValue) -> Operation:
    return kind.create(operands=(a, b), result_types=(a.type,), location=unknown)


ARITHMETIC: dict[type[Operation], Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: lambda a, b: np.sign(a) * (np.abs(a) // b),
    arith.RemSIOp: np.fmod,
    arith.DivUIOp: np.floor_divide,
    arith.RemUIOp: np.remainder,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
}
DIVISIONS = frozenset({arith.DivSIOp, arith.RemSIOp, arith.DivUIOp, arith.RemUIOp})
UNSIGNED = frozenset({arith.DivUIOp, arith.RemUIOp})
SHIFTS = frozenset({arith.ShLIOp, arith.ShRSIOp})


def is_defined(kind: type[Operation], a: np.ndarray, b: np.ndarray) -> bool:
    """Division: by a positive number. Shifts: by less than the width."""
    if kind in DIVISIONS:
        return bool(np.all(b > 0) and (kind not in UNSIGNED or np.all(a >= 0)))
    return kind not in SHIFTS or bool(np.all((b >= 0) & (b < 16)))


STEPS = ("range", "constant", "splat", "binary", "compare", "select", "expand", "broadcast")


def random_step(data: st.DataObject, program: Program) -> None:
    """Add one op on values already there."""
    what = data.draw(st.sampled_from(STEPS))
    if what == "range":
        size = data.draw(SIZES)
        start = data.draw(st.integers(0, 64))
        program.add(tt.MakeRangeOp.make(start, start + size, unknown), np.arange(start, start + size))
        return
    value, array = data.draw(st.sampled_from(program.values))
    if what == "constant":
        number = data.draw(SMALL)
        if array.dtype != bool:
            program.add(constant(number, value.type, unknown), np.full(array.shape, number))
    elif what == "splat" and not array.shape and value.type == i32:
        shape = tuple(data.draw(st.lists(SIZES, min_size=1, max_size=2)))
        program.add(tt.SplatOp.make(value, tensor_type(shape, i32), unknown), np.full(shape, array))
    elif what == "expand" and array.ndim == 1:
        axis = data.draw(st.integers(0, 1))
        program.add(tt.ExpandDimsOp.make(value, axis, unknown), np.expand_dims(array, axis))
    elif what == "broadcast" and 1 in array.shape:
        shape = tuple(data.draw(SIZES) if size == 1 else size for size in array.shape)
        type = tensor_type(shape, value.type.element_type)  # pyright: ignore
        program.add(tt.BroadcastOp.make(value, type, unknown), np.broadcast_to(array, shape))
    elif what in ("binary", "compare", "select"):
        generate_elementwise(data, program, what, value, array)


def generate_elementwise(data: st.DataObject, program: Program, what: str, value: SSAValue, array: np.ndarray) -> None:
    if array.dtype == bool:
        return
    other, second = data.draw(st.sampled_from([pair for pair in program.values if pair[0].type == value.type]))
    if what == "binary":
        kind = data.draw(st.sampled_from(list(ARITHMETIC)))
        if is_defined(kind, array, second):
            program.add(binary(kind, value, other), ARITHMETIC[kind](array, second))
    elif what == "compare":
        predicate = data.draw(st.sampled_from(list(CMP)))
        op = arith.CmpiOp.create(
            operands=(value, other),
            result_types=(with_element(value.type, i1),),
            properties={"predicate": int_attr(predicate, i64)},
            location=unknown,
        )
        program.add(op, CMP[predicate](array, second))
    else:
        conditions = [pair for pair in program.values if pair[1].dtype == bool and pair[1].shape in ((), array.shape)]
        if conditions:
            condition, chosen = data.draw(st.sampled_from(conditions))
            program.add(SelectOp.make(condition, value, other, unknown), np.where(chosen, array, second))


def check(info: AxisInfo, array: np.ndarray, is_boolean: bool) -> None:
    """Assert that the claims of `info` hold for `array`."""
    array = np.atleast_1d(array).astype(np.int64)
    if info.constant is not None:
        assert np.all(array & 0xFFFFFFFF == info.constant)
    for axis, (run, divisor, equal) in enumerate(zip(*info[:3], strict=True)):
        lines = np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])
        runs = lines.reshape(len(lines), -1, run)
        assert np.all(np.diff(runs, axis=-1) == 1), f"contiguity {run} of {lines}"
        assert is_boolean or np.all(runs[..., 0] % divisor == 0), f"divisibility {divisor} of {lines}"
        groups = lines.reshape(len(lines), -1, equal)
        assert np.all(np.diff(groups, axis=-1) == 0), f"constancy {equal} of {lines}"


@settings(max_examples=75, deadline=None)
@given(st.data())
def test_claims_are_true_of_generated_programs(data: st.DataObject) -> None:
    divisors = data.draw(st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=2, max_size=2))
    numbers = [divisor * data.draw(st.integers(-6, 12)) for divisor in divisors]
    block = Block(arg_types=[i32, i32])
    program = Program(block, [(a, np.asarray(n)) for a, n in zip(block.args, numbers, strict=True)])
    for size in (8, 16):
        program.add(tt.MakeRangeOp.make(0, size, unknown), np.arange(size))
    for _ in range(data.draw(st.integers(1, 25))):
        random_step(data, program)
    block.add_op(tt.ReturnOp.make((), unknown))
    attributes: list[dict[str, Attribute]] = [{"tt.divisibility": int_attr(divisor, i32)} for divisor in divisors]
    function = tt.FuncOp.make("f", [i32, i32], [], Region(block), unknown, arg_attrs=attributes)
    facts = axis_info(function)
    for value, array in program.values:
        check(facts.of(value), array, array.dtype == bool)
