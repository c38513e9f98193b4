"""The sum of a product that is rescaled row by row, as attention does: where every factor of a warp is 1, nothing is done.

    acc = acc * shrink[:, None]              %any = vote.any (shrink0 != 1 or shrink1 != 1)
    acc = tl.dot(p, v, acc)          ==>     br %any, label %then, label %endif      ; over 32 products or more

The maxima of rows change seldom behind the first blocks of keys. A product by 1 gives what was there, bit by bit.
"""

from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import Operation

from tilework.targets.gpu.arithmetic import lower_native
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.llvm.types import f32
from tilework.targets.llvm.values import Value
from tilework.targets.nvidia.lower.nvidia_gpu import any_lane
from tilework.targets.nvidia.lower.own_rules import lowers
from tilework.transforms.ttg.shorten_partitions import SKIP_ONES

MANY = 8  # products with one factor


@lowers(arith.MulfOp, overrides=True)
def lower_product(low: Lowering, op: Operation) -> Registers:
    factors = distinct(low[op.operands[1]])
    if SKIP_ONES not in op.attributes or len(factors) * MANY > len(low[op.operands[1]]):
        return lower_native(low, op)
    b = low.builder
    differs = reduce(b.or_, [b.fcmp("une", factor, 1.0) for factor in factors])
    return b.if_else(any_lane(b, differs), lambda: lower_native(low, op), lambda: low[op.operands[0]])


def distinct(registers: Registers) -> list[Value]:
    return list({value.text: value for value in registers if value.type is f32}.values())
