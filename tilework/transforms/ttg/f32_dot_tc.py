"""Emulate dots of f32 with more precision than one tensor-core dot has by several dots of parts.

    x = big + small            big: x rounded to tf32 (or bf16), small: the remainder

    a @ b + c   with tf32x3   ==>   c + (aBig @ bBig + (aBig @ bSmall + aSmall @ bBig))

The small dots are accumulated first. Where an element of x is infinite, `small` is NaN and so is the sum of the small
dots: it is replaced by 0, and the last dot computes the right infinity. `bf16x3` does the same with two bf16 parts,
`bf16x6` with three parts and six dots.

`emu_tf32`: the target has tf32 (CC >= 80); without it dots of tf32x3 are left alone.
Stage: TTGIR. Cost: one walk.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.ir import arith, tt
from tilework.ir.arith import binary, cmpf
from tilework.ir.enums import InputPrecision
from tilework.ir.functions import functions, ops_in_order
from tilework.ir.types import bf16, element_type, f32, int_property, with_element
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.folding.worklist import Driver, rule_table
from tilework.transforms.passes import Pass

TO_TF32 = "cvt.rna.tf32.f32 $0, $1;"


class F32DotTCPass(Pass):
    name = "tritongpu-F32DotTC"

    emu_tf32: bool = False

    def run(self, module: ModuleOp) -> None:
        splits = (
            dict(SPLITS) if self.emu_tf32 else {key: s for key, s in SPLITS.items() if key != InputPrecision.TF32X3}
        )
        rules = rule_table({}, {tt.DotOp: lambda dot, driver: emulate(dot, driver, splits)})
        for function in functions(module):
            if any(type(dot) is tt.DotOp and split_of(dot, splits) for dot in ops_in_order(*function.regions)):
                Driver(rules).run(function)


Parts = Sequence[SSAValue]  # the largest first


@light_dataclass
class Split:
    """The split of f32 into parts, and the dots of parts (of a, of b) that are summed, in order."""

    parts: Callable[[SSAValue, Emitter], Parts]
    terms: tuple[tuple[int, int], ...]
    precision: InputPrecision


def split_of(dot: Operation, splits: dict[InputPrecision, Split]) -> Split | None:
    """Return the emulation of `dot`; None if it is not a dot of f32 that requests it."""
    if any(element_type(value.type) != f32 for value in dot.operands):
        return None
    return splits.get(InputPrecision(int_property(dot, "inputPrecision")))


def emulate(dot: Operation, driver: Driver, splits: dict[InputPrecision, Split]) -> bool:
    """Replace `dot` by the dots of its parts."""
    if (split := split_of(dot, splits)) is None:
        return False
    a, b, c = dot.operands
    code = Emitter(dot.location)
    of_a, of_b = split.parts(a, code), split.parts(b, code)
    total = zero = code.constant(0.0, c.type)
    for left, right in split.terms:
        total = dot_of_parts(code, dot, (of_a[left], of_b[right], total), split.precision)
    is_nan = code.append(cmpf("uno", total, total, code.loc))
    total = dot_of_parts(code, dot, (of_a[0], of_b[0], code.select(is_nan, zero, total)), split.precision)
    return driver.replace_with(dot, *code.ops, binary(arith.AddfOp, total, c, code.loc))


def dot_of_parts(code: Emitter, dot: Operation, operands: Parts, precision: InputPrecision) -> SSAValue:
    """Emit a dot of parts; those in bf16 accumulate in f32 throughout."""
    count = int_property(dot, "maxNumImpreciseAcc") if precision is InputPrecision.TF32 else 0
    return code.append(tt.DotOp.make(*operands, code.loc, precision, count))


def tf32_parts(value: SSAValue, code: Emitter) -> Parts:
    """Split `value` into its rounding to tf32 and the remainder."""
    big = code.append(tt.ElementwiseInlineAsmOp.make((value,), (value.type,), TO_TF32, "=r,r", True, 1, code.loc))
    return big, code.binary(arith.SubfOp, value, big)


def bf16_parts(count: int) -> Callable[[SSAValue, Emitter], Parts]:
    """Return a function that splits a value into `count` bf16 parts, each of the remainder of the preceding ones."""

    def parts(value: SSAValue, code: Emitter) -> Parts:
        wide, narrow = value.type, with_element(value.type, bf16)
        found = [code.convert(arith.TruncFOp, value, narrow)]
        while len(found) < count:
            value = code.binary(arith.SubfOp, value, code.convert(arith.ExtFOp, found[-1], wide))
            found.append(code.convert(arith.TruncFOp, value, narrow))
        return found

    return parts


SPLITS: dict[InputPrecision, Split] = {
    InputPrecision.TF32X3: Split(tf32_parts, ((1, 0), (0, 1)), InputPrecision.TF32),
    InputPrecision.BF16X3: Split(bf16_parts(2), ((1, 0), (0, 1)), InputPrecision.IEEE),
    InputPrecision.BF16X6: Split(bf16_parts(3), ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1)), InputPrecision.IEEE),
}
