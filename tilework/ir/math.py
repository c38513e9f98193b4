"""The `math` dialect: elementary functions of scalars and, element by element, of tensors.

%y = math.exp2 %x fastmath<afn> : tensor<64xf32>
%n = math.ctpop %i : i32
"""

from xdsl.ir import Dialect
from xdsl.traits import Pure

from tilework.ir.arith import FAST_MATH, INTEGER_LIKE, NO_FAST_MATH, FloatBinary, FloatUnary
from tilework.ir.constraints import FLOAT_LIKE, Elementwise, SameType
from tilework.ir.declare import Op, declare_op, dialect_ops
from tilework.ir.fields import operand_def, opt_prop_def, result_def, traits_def


class IntegerUnary(Op):
    """An integer to one of the same type: ``%y = math.absi %x : i32``."""

    operand = operand_def(INTEGER_LIKE)
    result = result_def(INTEGER_LIKE)
    form = "$operands {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType())


class FmaOp(Op):
    """``a * b + c`` with one rounding: ``%y = math.fma %a, %b, %c : f32``."""

    name = "math.fma"
    a = operand_def(FLOAT_LIKE)
    b = operand_def(FLOAT_LIKE)
    c = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    fastmath = opt_prop_def(FAST_MATH, default_value=NO_FAST_MATH)
    form = "$operands(? $fastmath) {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType())


AbsIOp = declare_op(IntegerUnary, "math.absi")
CountLeadingZerosOp = declare_op(IntegerUnary, "math.ctlz")
CountTrailingZerosOp = declare_op(IntegerUnary, "math.cttz")
CtPopOp = declare_op(IntegerUnary, "math.ctpop")
AbsFOp = declare_op(FloatUnary, "math.absf")
AcosOp = declare_op(FloatUnary, "math.acos")
AcoshOp = declare_op(FloatUnary, "math.acosh")
AsinOp = declare_op(FloatUnary, "math.asin")
AsinhOp = declare_op(FloatUnary, "math.asinh")
AtanOp = declare_op(FloatUnary, "math.atan")
AtanhOp = declare_op(FloatUnary, "math.atanh")
CbrtOp = declare_op(FloatUnary, "math.cbrt")
CeilOp = declare_op(FloatUnary, "math.ceil")
CosOp = declare_op(FloatUnary, "math.cos")
CoshOp = declare_op(FloatUnary, "math.cosh")
ErfOp = declare_op(FloatUnary, "math.erf")
Exp2Op = declare_op(FloatUnary, "math.exp2")
ExpM1Op = declare_op(FloatUnary, "math.expm1")
ExpOp = declare_op(FloatUnary, "math.exp")
FloorOp = declare_op(FloatUnary, "math.floor")
Log10Op = declare_op(FloatUnary, "math.log10")
Log1pOp = declare_op(FloatUnary, "math.log1p")
Log2Op = declare_op(FloatUnary, "math.log2")
LogOp = declare_op(FloatUnary, "math.log")
RoundEvenOp = declare_op(FloatUnary, "math.roundeven")
RoundOp = declare_op(FloatUnary, "math.round")
RsqrtOp = declare_op(FloatUnary, "math.rsqrt")
SinOp = declare_op(FloatUnary, "math.sin")
SinhOp = declare_op(FloatUnary, "math.sinh")
SqrtOp = declare_op(FloatUnary, "math.sqrt")
TanOp = declare_op(FloatUnary, "math.tan")
TanhOp = declare_op(FloatUnary, "math.tanh")
TruncOp = declare_op(FloatUnary, "math.trunc")
Atan2Op = declare_op(FloatBinary, "math.atan2")
CopySignOp = declare_op(FloatBinary, "math.copysign")
PowFOp = declare_op(FloatBinary, "math.powf")
Math = Dialect("math", dialect_ops("math"), [])
