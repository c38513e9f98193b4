"""Rules of `tt.extern_elementwise` for every symbol of libdevice, and of inline assembly, which is not executed: the error quotes it."""

from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.numerics import libdevice_in_numpy as libdevice
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import storage
from tilework.oracles.evaluator.table import evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


@evaluates(tt.ExternElementwiseOp, elementwise=True)
def eval_extern(machine: "Machine", op: Operation, *args: Array) -> Array:
    symbol = op.properties["symbol"].data  # pyright: ignore[reportAttributeAccessIssue]
    answer = libdevice.call(symbol, args, storage(op.results[0].type))
    if answer is None:
        raise Fault(f"calls '{symbol}', which the evaluator does not know")
    return answer


@evaluates(tt.ElementwiseInlineAsmOp)
def eval_inline_asm(machine: "Machine", op: Operation, *args: Array) -> Array:
    text = op.properties["asm_string"].data  # pyright: ignore[reportAttributeAccessIssue]
    if text == "mov.u32 $0, %nsmid;":  # one multiprocessor, which runs everything
        return np.ones((), np.int32)
    raise Fault(f"is assembly, which the evaluator does not execute: {text!r}")
