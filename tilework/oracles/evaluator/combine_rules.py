"""Rules of the ops with a region of scalar code: reduce, scan and map_elementwise.

The function is not called once per element. If it has only elementwise ops, arrays replace its scalar arguments, and
one execution combines as many pairs as possible. A reduction of 8 elements takes three:

    a b c d e f g h   ->   ab cd ef gh   ->   abcd efgh   ->   abcdefgh

Neighbours are combined in order, so the function must be associative but need not be commutative. A scan walks the axis
from its first element to its last. A function with control flow runs element by element.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, Region

from tilework.ir import tt, ttc
from tilework.ir.module_facts import follows_tree
from tilework.ir.types import shape_of
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.rules import ELEMENTWISE, evaluates
from tilework.oracles.evaluator.values import storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

RETURNS = frozenset({tt.ReduceReturnOp, tt.ScanReturnOp, tt.MapElementwiseReturnOp, tt.ReturnOp, ttc.YieldOp})


@evaluates(tt.ReduceOp)
def eval_reduce(machine: "Machine", op: Operation, *sources: Array) -> list[Array]:
    return reduced(machine, op.regions[0], machine.integer(op, "axis"), sources)


def reduced(machine: "Machine", region: Region, axis: int, sources: Sequence[Array]) -> list[Array]:
    """Reduce arrays of one shape along `axis`."""
    parts = [np.moveaxis(source, axis, 0) for source in sources]
    while (length := parts[0].shape[0]) > 1:
        even = length - length % 2
        pairs = [part[0:even:2] for part in parts], [part[1:even:2] for part in parts]
        rest = [part[even:] for part in parts]
        combined = apply(machine, region, *pairs)
        parts = [np.concatenate(both) for both in zip(combined, rest, strict=True)] if length % 2 else combined
    return [np.asarray(part[0]) for part in parts]


@evaluates(tt.ScanOp)
def eval_scan(machine: "Machine", op: Operation, *sources: Array) -> list[Array]:
    step = -1 if machine.integer(op, "reverse") else 1
    scheme = scanned_by_tree if follows_tree(op) else scanned
    return scheme(machine, op.regions[0], machine.integer(op, "axis"), step, sources)


def scanned(machine: "Machine", region: Region, axis: int, step: int, sources: Sequence[Array]) -> list[Array]:
    """Return running combinations of arrays of one shape; a `step` of -1 starts at the end."""
    parts = [np.moveaxis(source, axis, 0)[::step] for source in sources]
    totals = [np.empty_like(part, order="C", subok=False) for part in parts]
    carry = [np.asarray(part[0]) for part in parts]
    for position in range(parts[0].shape[0]):
        if position:
            carry = apply(machine, region, carry, [np.asarray(part[position]) for part in parts])
        for total, value in zip(totals, carry, strict=True):
            total[position] = value
    return [np.moveaxis(total[::step], 0, axis) for total in totals]


def scanned_by_tree(machine: "Machine", region: Region, axis: int, step: int, sources: Sequence[Array]) -> list[Array]:
    """Like `scanned` by the tree of `ir/reproducible.py`: bit by bit, each half is combined with the total of the other
    half before it."""
    totals = [np.moveaxis(source, axis, 0).copy() for source in sources]
    indices = np.arange(totals[0].shape[0])
    for bit in range(max(len(indices) - 1, 0).bit_length()):
        blocks = indices >> bit
        if step > 0:
            later = indices[blocks & 1 == 1]
            total_at = ((later >> bit) << bit) - 1  # the last element of the previous block
        else:
            later = indices[(blocks & 1 == 0) & ((blocks + 1) << bit < len(indices))]
            total_at = ((later >> bit) + 1) << bit  # the first element of the next block
        joined = apply(machine, region, [total[total_at] for total in totals], [total[later] for total in totals])
        for total, made in zip(totals, joined, strict=True):
            total[later] = made
    return [np.moveaxis(total, 0, axis) for total in totals]


@evaluates(tt.MapElementwiseOp)
def eval_map_elementwise(machine: "Machine", op: Operation, *sources: Array) -> list[Array]:
    """Map `pack` neighbours at a time: the function's arguments are those of the first operand, then of the second,
    ..."""
    pack = machine.integer(op, "pack", 1)
    groups = [source.reshape(-1, pack) for source in sources]
    returned = apply(machine, op.regions[0], [group[:, lane] for group in groups for lane in range(pack)])
    results: list[Array] = []
    for index, result in enumerate(op.results):
        lanes = returned[index * pack : (index + 1) * pack]
        results.append(np.stack(lanes, axis=-1).reshape(shape_of(result.type)))
    return results


def apply(machine: "Machine", region: Region, *groups: Sequence[Array]) -> list[Array]:
    """Apply the function of `region` to arrays of one shape, lane by lane."""
    args = [arg for group in groups for arg in group]
    shape = args[0].shape
    if vectorises(machine, region):
        _, returned = machine.run_region(region, args)
        return [np.broadcast_to(value, shape) for value in returned]
    terminator = next(block.last_op for block in region.blocks if type(block.last_op) in RETURNS)
    assert terminator is not None, "a combine region ends in a return"
    results = [np.empty(shape, storage(operand.type)) for operand in terminator.operands]
    for lane in np.ndindex(shape):
        for result, value in zip(
            results, run_blocks(machine, region, [np.asarray(arg[lane]) for arg in args]), strict=True
        ):
            result[lane] = value
    return results


def run_blocks(machine: "Machine", region: Region, args: Sequence[Array]) -> list[Array]:
    """Return the values of `region`, which may branch between its blocks."""
    terminator, values = machine.run_region(region, args)
    while type(terminator) not in RETURNS:
        block, passed = machine.next_block(terminator, values)
        terminator, values = machine.run_block(block, passed)
    return values


def vectorises(machine: "Machine", region: Region) -> bool:
    """Return True if every op of `region` accepts arrays in place of scalars; calls are followed."""
    if (known := machine.vectorises.get(region)) is None:
        machine.vectorises[region] = False  # a recursive function does not vectorise
        known = machine.vectorises[region] = len(region.blocks) == 1 and all(
            is_lanewise(machine, op) for op in region.blocks[0].ops
        )
    return known


def is_lanewise(machine: "Machine", op: Operation) -> bool:
    if isinstance(op, tt.CallOp) and isinstance(callee := op.properties["callee"], SymbolRefAttr):
        function = machine.functions.get(callee.root_reference.data)
        return function is not None and vectorises(machine, function.regions[0])
    return type(op) in ELEMENTWISE or type(op) in RETURNS
