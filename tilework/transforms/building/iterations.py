"""How often a loop runs.

    scf.for %k = %lower to %upper step %step       ceil((upper - lower) / step) where lower < upper, else 0

The distance of two signed integers fits without a sign, and the number of iterations is one without a sign, too; so bounds may be
anything, also where sums of them wrap around.
"""

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tilework.ir.rewrite import constant_value
from tilework.transforms.building.emitter import Emitter


def iterations(code: Emitter, lower: SSAValue, upper: SSAValue, step: SSAValue) -> SSAValue:
    """The iterations of a loop of signed integers, in their type."""
    first, last, each = (constant_value(value) for value in (lower, upper, step))
    if isinstance(first, int) and isinstance(last, int) and isinstance(each, int) and each > 0:
        return code.constant(max(0, -((first - last) // each)), lower.type)
    zero = code.constant(0, lower.type)
    if first == 0:
        span = code.binary(arith.MaxSIOp, upper, zero)
    else:
        span = code.binary(arith.SubiOp, upper, lower)
        span = code.select(code.compare("slt", lower, upper), span, zero)
    return span if each == 1 else code.binary(arith.CeilDivUIOp, span, step)
