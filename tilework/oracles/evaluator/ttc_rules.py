"""Rules of the `ttc` dialect: nests over buffers. A buffer is an array that is changed in place.

A nest is executed on many indices at once: its arguments are arrays of indices, and the scalar code of its body works
on arrays. The order of the indices is not defined, so a nest that could depend on it (it both reads and writes) runs in
pieces, the last one first: a value that one index writes and another one reads is then wrong, as it would be in machine
code. Reductions are done when all indices have been visited.

"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttc
from tilework.ir.types import array_values
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.arith_rules import constant_array
from tilework.oracles.evaluator.rules import ELEMENTWISE, Fault, evaluates, rules
from tilework.oracles.evaluator.tensor_rules import eval_dot, eval_gather, eval_sort_runs, histogram, reduced, scanned
from tilework.oracles.evaluator.values import storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

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
