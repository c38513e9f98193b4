"""Rules of control flow (calls, `scf`, the loop nests of `ttc`) and of ops that query the program.

A buffer of `ttc` is an array that is changed in place.

A nest is executed on many indices at once: its arguments are arrays of indices, and the scalar code of its body works
on arrays. The order of the indices is not defined, so a nest that could depend on it (it both reads and writes) runs in
pieces, the last one first: a value that one index writes and another one reads is then wrong, as it would be in machine
code. Reductions are done when all indices have been visited.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue

from tilework.ir import scf, tt, ttc, ub
from tilework.ir.llvm import AssumeOp
from tilework.ir.ttg.memory_types import AsyncTokenType, MemDescType
from tilework.ir.types import TensorDescType, array_values, element_type, is_float, is_pointer, shape_of
from tilework.numerics.rounding import Array, is_float8
from tilework.oracles.evaluator.arith_rules import constant_array
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.shared_memory import assigned_offset
from tilework.oracles.evaluator.tensor_rules import eval_dot, eval_gather, eval_sort_runs, histogram, reduced, scanned
from tilework.oracles.evaluator.values import ELEMENTWISE, Fault, evaluates, fit, rules, storage

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


PIECES = 4
ATOMICS = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
ON_ARRAYS = ATOMICS | {tt.StoreOp, ttc.ReadOp, ttc.WriteOp, ttc.ReduceOp, ttc.EndOp}
Indices = list[Array]


@evaluates(ttc.AllocOp)
def eval_alloc(machine: "Machine", op: Operation) -> Array:
    """Fill the buffer with unlikely bytes, so that a read before a write is detected."""
    type = op.results[0].type
    assert isinstance(type, ttc.BufferType), type
    buffer = np.empty(type.shape, storage(type.element))
    buffer.reshape(-1).view(np.uint8)[:] = 1 if buffer.dtype == np.bool_ else 0x7F
    return buffer


rules(
    {
        ttc.TableOp: lambda machine, op: constant_array(op.properties["value"]),
        ttc.ReadOp: lambda machine, op, buffer, *indices: np.asarray(element(buffer, indices)),
    }
)


@evaluates(ttc.WriteOp)
def eval_write(machine: "Machine", op: Operation, value: Array, buffer: Array, *indices: Array) -> None:
    if not any(np.ndim(index) for index in indices):  # one element, whatever the indices of the nest
        value = np.asarray(value).reshape(-1)[-1]
    buffer = seen_by(buffer, indices)
    buffer[checked(buffer, indices)] = value


def element(buffer: Array, indices: Sequence[Array]) -> Array:
    buffer = seen_by(buffer, indices)
    return buffer[checked(buffer, indices)]


def seen_by(buffer: Array, indices: Sequence[Array]) -> Array:
    """Return the buffer, flattened if there is one index for all dimensions."""
    return buffer.reshape(-1) if len(indices) < buffer.ndim else buffer


def checked(buffer: Array, indices: Sequence[Array]) -> tuple[Array, ...]:
    """Check that the indices are in bounds."""
    for dimension, (index, size) in enumerate(zip(indices, buffer.shape, strict=True)):
        if np.any((index < 0) | (index >= size)):
            raise Fault(f"has an index outside dimension {dimension} of a buffer of shape {buffer.shape}")
    return tuple(indices)


@evaluates(ttc.NestOp)
def eval_nest(machine: "Machine", op: Operation) -> None:
    outer, machine.folds = machine.folds, {}
    shape, region = array_values(op.properties["shape"]), op.regions[0]
    for indices in pieces(op, shape):
        machine.lanes = np.shape(indices[0])
        machine.run_region(region, indices)
    machine.lanes = ()
    backwards = runs_backwards(op)
    for fold, seen in machine.folds.items():
        assert isinstance(fold, ttc.ReduceOp)
        count = len(seen[0])
        ordered = seen[::-1] if backwards else seen
        sources = [join([part[position] for part in ordered], shape) for position in range(count)]
        axis = ttc.reduced_axis(fold)
        assert axis is not None, "one index is folded"
        accumulators = [machine.values[operand] for operand in fold.accumulators]
        for accumulator, total in zip(accumulators, reduced(machine, fold.regions[0], axis, sources), strict=True):
            accumulator[...] = total
    machine.folds = outer


def join(parts: list[Array], shape: tuple[int, ...]) -> Array:
    return np.concatenate([part.reshape(-1) for part in parts]).reshape(shape)


@evaluates(ttc.ReduceOp)
def eval_fold(machine: "Machine", op: Operation, *operands: Array) -> None:
    assert isinstance(op, ttc.ReduceOp) and op.parent is not None
    shape = np.shape(machine.values[op.parent.args[0]])
    sources = [np.broadcast_to(value, shape) for value in operands[: len(op.srcs)]]
    machine.folds.setdefault(op, []).append(sources)


def pieces(op: Operation, shape: tuple[int, ...]) -> Iterator[Indices]:
    """Yield arrays of indices that together cover `shape`."""
    grids = [np.asarray(grid, dtype=np.int32) for grid in np.indices(shape)]
    block = op.regions[0].block
    if not all(type(inner) in ELEMENTWISE or type(inner) in ON_ARRAYS for inner in block.ops):
        for position in np.ndindex(*shape):
            yield [np.asarray(index, dtype=np.int32) for index in position]
        return
    if not is_order_visible(block.ops) or shape[0] < 2:
        yield grids
        return
    rows = np.array_split(np.arange(shape[0]), min(PIECES, shape[0]))
    for part in reversed(rows) if runs_backwards(op) else rows:
        yield [grid[part] for grid in grids]


def runs_backwards(op: Operation) -> bool:
    """Return True if the pieces run backwards. Atomics return values in order, so nests with them run forwards."""
    kinds = {type(inner) for inner in op.regions[0].block.ops}
    is_whole = all(kind in ELEMENTWISE or kind in ON_ARRAYS for kind in kinds)
    return is_whole and not kinds & ATOMICS and is_order_visible(op.regions[0].block.ops)


def is_order_visible(ops: Any) -> bool:
    """Return True if an index could see what another one wrote."""
    loads, stores, read, written = False, False, set[SSAValue](), set[SSAValue]()
    for op in ops:
        kind = type(op)
        loads |= kind is tt.LoadOp or kind in ATOMICS
        stores |= kind is tt.StoreOp or kind in ATOMICS
        if kind is ttc.ReadOp:
            read.add(op.operands[0])
        elif kind is ttc.WriteOp:
            written.add(op.operands[1])
    return (loads and stores) or bool(read & written)


@evaluates(ttc.DotOp)
def eval_tile_dot(machine: "Machine", op: Operation, a: Array, b: Array, c: Array) -> None:
    c[...] = eval_dot(machine, op, a, b, c)


@evaluates(ttc.ScanOp)
def eval_tile_scan(machine: "Machine", op: Operation, *buffers: Array) -> None:
    count = len(buffers) // 2
    step = -1 if machine.integer(op, "reverse") else 1
    results = scanned(machine, op.regions[0], machine.integer(op, "axis"), step, buffers[:count])
    for target, result in zip(buffers[count:], results, strict=True):
        target[...] = result


@evaluates(ttc.SortRunsOp)
def eval_tile_sort_runs(machine: "Machine", op: Operation, src: Array, target: Array) -> None:
    target[...] = eval_sort_runs(machine, op, src).reshape(target.shape)


@evaluates(ttc.GatherOp)
def eval_tile_gather(machine: "Machine", op: Operation, src: Array, indices: Array, target: Array) -> None:
    target[...] = eval_gather(machine, op, src, indices)


@evaluates(ttc.HistogramOp)
def eval_tile_histogram(machine: "Machine", op: Operation, src: Array, *rest: Array) -> None:
    *mask, target = rest
    target[...] = histogram(src[mask[0]] if mask else src, target.size)
