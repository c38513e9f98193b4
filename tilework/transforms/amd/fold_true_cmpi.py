"""Fold comparisons of scalars that are always true by the ranges of their operands.

    llvm.intr.assume (arith.cmpi slt, %pid, %n)         an assumption itself is kept, for LLVM
    %m = arith.cmpi sge, %pid, %c0            ==>       %m = arith.constant true

Stage: TTGIR to TTGIR. Cost: one walk, and range analysis of the comparisons.
"""

from xdsl.ir import Operation

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir import arith
from tilework.ir.functions import ops_in_order
from tilework.ir.llvm import AssumeOp
from tilework.ir.rewrite import constant, replace_op
from tilework.ir.types import i1
from tilework.transforms.passes import function_pass


@function_pass("tritonamdgpu-fold-true-cmpi")
def fold_true_cmpi(function: Operation) -> None:
    ranges = IntegerRanges(function)
    for op in ops_in_order(*function.regions):
        if type(op) is arith.CmpiOp and op.results[0].type == i1 and ranges.of(op.results[0]) == (1, 1):
            if not any(type(use.operation) is AssumeOp for use in op.results[0].uses):
                replace_op(op, constant(1, i1, op.location))
