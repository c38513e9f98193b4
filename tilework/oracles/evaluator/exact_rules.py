"""Rules of reproducible modules: functions by the formulas that all targets share (`targets/llvm/math`), ordered zeros.

Everything else that the evaluator computes is exact or rounded once, as on all targets.

"""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import PropagateNan
from tilework.numerics.arithmetic import greater, greater_number, lesser, lesser_number
from tilework.numerics.rounding import Array, narrow
from tilework.oracles.evaluator.arith_rules import FUNCTIONS
from tilework.oracles.evaluator.rules import Fault, Rule
from tilework.oracles.evaluator.values import storage, wide
from tilework.targets.llvm.math import in_numpy

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

NAMES: dict[type[Operation], str] = {math_dialect.RoundEvenOp: "rint", math_dialect.PowFOp: "pow"}


def eval_function(machine: "Machine", op: Operation, *args: Array) -> Array:
    name = NAMES.get(type(op)) or op.name.removeprefix("math.")
    return narrow(in_numpy.compute(name, *(wide(np.asarray(arg)) for arg in args)), args[0].dtype)


def eval_clampf(machine: "Machine", op: Operation, x: Array, low: Array, high: Array) -> Array:
    if machine.integer(op, "propagateNan") == PropagateNan.ALL:
        return lesser(greater(x, low), high)
    return lesser_number(greater_number(x, low), high)


def eval_extern(machine: "Machine", op: Operation, *args: Array) -> Array:
    symbol = op.properties["symbol"].data  # pyright: ignore[reportAttributeAccessIssue]
    answer = in_numpy.call(symbol, args, storage(op.results[0].type))
    if answer is None:
        raise Fault(f"calls '{symbol}', which the evaluator does not know")
    return answer


def binary(compute: Any) -> Rule:
    return lambda machine, op, lhs, rhs: compute(lhs, rhs)


EXACT: dict[type[Operation], Rule] = {
    **dict.fromkeys(FUNCTIONS, eval_function),
    arith.MaximumfOp: binary(greater),
    arith.MinimumfOp: binary(lesser),
    arith.MaxnumfOp: binary(greater_number),
    arith.MinnumfOp: binary(lesser_number),
    tt.ClampFOp: eval_clampf,
    tt.ExternElementwiseOp: eval_extern,
}
