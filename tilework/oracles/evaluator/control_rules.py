"""Rules of control flow (calls, `scf`) and of ops that query the program."""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation

from tilework.ir import scf, tt, ttc, ub
from tilework.ir.llvm import AssumeOp
from tilework.ir.ttg.memdesc_types import AsyncTokenType, MemDescType
from tilework.ir.types import TensorDescType, element_type, is_float, is_pointer, shape_of
from tilework.numerics.rounding import Array, is_float8
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.rules import Fault, evaluates, rules
from tilework.oracles.evaluator.shared_memory import assigned_offset
from tilework.oracles.evaluator.values import fit, storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


@evaluates(tt.CallOp)
def eval_call(machine: "Machine", op: Operation, *args: Any) -> Any:
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    name = callee.root_reference.data
    if name not in machine.functions:
        raise Fault(f"calls '{name}', which the module does not define")
    outer, calls = machine.shared.frame, machine.calls
    machine.shared.frame += assigned_offset(op) or 0
    machine.calls = (*calls, op)
    results = machine.call(machine.functions[name], args)
    machine.shared.frame, machine.calls = outer, calls
    return results


@evaluates(scf.ForOp)
def eval_for(machine: "Machine", op: Operation, lower: Array, upper: Array, step: Array, *carried: Any) -> Any:
    """Signed bounds, a positive step; the trip count is known before the first iteration."""
    region, values = op.regions[0], list(carried)
    start, stop, stride = int(lower), int(upper), int(step)
    if stride <= 0:
        raise Fault(f"has a step of {stride}: a step must be positive")
    for index in range(start, stop, stride):
        _, values = machine.run_region(region, [fit(np.asarray(index), op.operands[0].type), *values])
    return values


@evaluates(scf.IfOp)
def eval_if(machine: "Machine", op: Operation, condition: Array) -> Any:
    region = op.regions[0 if condition else 1]
    return machine.run_region(region, ())[1] if region.blocks else []


@evaluates(scf.WhileOp)
def eval_while(machine: "Machine", op: Operation, *carried: Any) -> Any:
    before, after = op.regions
    values = list(carried)
    while True:
        _, (condition, *values) = machine.run_region(before, values)
        if not condition:
            return values
        _, values = machine.run_region(after, values)


@evaluates(scf.ExecuteRegionOp)
def eval_execute_region(machine: "Machine", op: Operation) -> Any:
    block, args = op.regions[0].blocks[0], []
    while True:
        terminator, values = machine.run_block(block, args)
        if type(terminator) is scf.YieldOp:
            return values
        block, args = machine.next_block(terminator, values)


rules(
    {
        tt.GetProgramIdOp: lambda machine, op: np.asarray(machine.program[machine.integer(op, "axis")], np.int32),
        tt.GetNumProgramsOp: lambda machine, op: np.asarray(machine.grid[machine.integer(op, "axis")], np.int32),
        ttc.CheckOp: lambda machine, op, pointer, *mask: pointer,  # each access is checked anyway
    },
    elementwise=True,
)


@evaluates(ub.PoisonOp, elementwise=True)
def eval_poison(machine: "Machine", op: Operation) -> Any:
    """An undefined value is zero, always the same one; tokens, memory and descriptors are None."""
    if isinstance(op.results[0].type, AsyncTokenType | MemDescType | TensorDescType):
        return None
    return np.zeros(shape_of(op.results[0].type), storage(op.results[0].type))


@evaluates(AssumeOp, elementwise=True)
def eval_assume(machine: "Machine", op: Operation, condition: Array, *rest: Any) -> None:
    if not np.all(condition):
        raise Fault("assumes a condition that does not hold")


@evaluates(tt.AssertOp, ttc.AssertOp, elementwise=True)
def eval_assert(machine: "Machine", op: Operation, condition: Array) -> None:
    if not np.all(condition):
        message = op.properties["message"].data  # pyright: ignore[reportAttributeAccessIssue]
        lanes = np.argwhere(~np.asarray(condition))
        where = f" at index {tuple(lanes[0].tolist())}" if np.ndim(condition) else ""
        raise Fault(f"failed{where}: {message}")


@evaluates(tt.PrintOp, ttc.PrintOp)
def eval_print(machine: "Machine", op: Operation, *args: Array) -> None:
    """One line for each element: ``pid (0, 0, 0) idx (3) x: 1.000000``."""
    prefix = op.properties["prefix"].data  # pyright: ignore[reportAttributeAccessIssue]
    program = "pid ({}, {}, {})".format(*machine.program)
    if not args:
        machine.on_print(f"{program}{prefix}")
    as_hex, signs = bool(machine.integer(op, "hex")), machine.integers(op, "isSigned")
    shown = tt.visible_sizes(op)
    for position, arg in enumerate(args):
        operand = f"(operand {position}) " if len(args) > 1 else ""
        type_ = op.operands[position].type
        is_signed = bool(signs[position]) if position < len(signs) else True
        shape = shown[position] or arg.shape  # a buffer has no sizes of its own
        widths = [len(str(size - 1)) for size in shape]
        for index in np.ndindex(shape):
            spot = ", ".join(f"{i:>{width}}" for i, width in zip(index, widths, strict=True))
            text = element_text(arg[index], element_type(ttc.element_of(type_)), as_hex, is_signed)
            machine.on_print(f"{program} idx ({spot}){prefix}{operand}{text}")


def element_text(value: Any, type: Any, as_hex: bool, is_signed: bool) -> str:
    """Return one printed element, in the format of the reference."""
    array = np.asarray(plain(value) if is_pointer(type) else value)
    size = array.dtype.itemsize
    if as_hex or is_pointer(type):
        bits = int.from_bytes(array.tobytes(), "little")
        return f"0x{bits:0{size * 2}x}"
    if is_float(type) or is_float8(array.dtype):
        return f"{float(array):f}"
    integer = int(array)
    return str(integer if is_signed or integer >= 0 else integer + (1 << (size * 8)))
