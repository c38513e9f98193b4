"""Rules of ops on whole tensors: shapes, reductions and scans, dots.

The function of a reduction is not called once per element. If it has only elementwise ops, arrays replace its scalar
arguments, and one execution combines as many pairs as possible. A reduction of 8 elements takes three:

    a b c d e f g h   ->   ab cd ef gh   ->   abcd efgh   ->   abcdefgh

Neighbours are combined in order, so the function must be associative but need not be commutative. A scan walks the axis
from its first element to its last. A function with control flow runs element by element.

Dots of floats accumulate in f32 (f64 in f64) and are rounded once to the result; int8 accumulates in int32, wrapping.
tf32 operands are exact unless the caller of `evaluate` requests truncation. A scaled dot multiplies each group of 32
elements along K by a power of two first, in f16 or bf16, as hardware without scaled instructions does.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, Region

from tilework.ir import tt, ttc
from tilework.ir.enums import InputPrecision, RoundingMode, ScaleDotElemType
from tilework.ir.module_facts import follows_tree, is_reproducible
from tilework.ir.types import PointerType, element_type, shape_of
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import (
    BF16,
    E4M3FN,
    E5M2,
    E8M0_BIAS,
    E8M0_NAN,
    F16,
    F32,
    F64,
    Array,
    is_float8,
    narrow,
    narrow_to_zero,
    saturate,
    to_tf32,
    unpack_e2m1,
)
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.values import (
    ELEMENTWISE,
    INT64,
    Fault,
    evaluates,
    memory_bytes,
    rules,
    signed,
    storage,
    unsigned,
)

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

rules(
    {
        tt.SplatOp: lambda machine, op, src: np.broadcast_to(src, shape_of(op.results[0].type)),
        tt.BroadcastOp: lambda machine, op, src: np.broadcast_to(src, shape_of(op.results[0].type)),
        tt.UnsplatOp: lambda machine, op, src: src.reshape(()),
        # in row-major order, also where `allow_reorder` would permit another
        tt.ReshapeOp: lambda machine, op, src: src.reshape(shape_of(op.results[0].type)),
        tt.ExpandDimsOp: lambda machine, op, src: src.reshape(shape_of(op.results[0].type)),
        tt.CatOp: lambda machine, op, lhs, rhs: np.concatenate((lhs, rhs)),
        tt.JoinOp: lambda machine, op, lhs, rhs: np.stack((lhs, rhs), axis=-1),
        tt.SplitOp: lambda machine, op, src: [src[..., 0], src[..., 1]],
        tt.TransOp: lambda machine, op, src: src.transpose(machine.integers(op, "order")),
        tt.MakeRangeOp: lambda machine, op: np.arange(
            machine.integer(op, "start"), machine.integer(op, "end"), dtype=np.int32
        ),
    }
)
rules(
    {
        tt.IntToPtrOp: lambda machine, op, src: src,
        tt.PtrToIntOp: lambda machine, op, src: plain(src),
    },
    elementwise=True,
)


@evaluates(tt.ResizeOp)
def eval_resize(machine: "Machine", op: Operation, src: Array) -> Array:
    """The undefined elements are copies of others, which would change every sum, sort and dot that uses them."""
    return src[
        np.ix_(*(np.arange(size) % have for size, have in zip(shape_of(op.results[0].type), src.shape, strict=True)))
    ]


@evaluates(tt.GatherOp)
def eval_gather(machine: "Machine", op: Operation, src: Array, indices: Array) -> Array:
    """An index outside of the axis is undefined; it is taken modulo the size."""
    axis = machine.integer(op, "axis")
    return np.take_along_axis(src, indices.astype(INT64) % src.shape[axis], axis)


@evaluates(tt.SortRunsOp)
def eval_sort_runs(machine: "Machine", op: Operation, src: Array) -> Array:
    """Execute the steps of the sorting network, so that the result is defined also for runs that are not bitonic."""
    bits, order = (machine.integer(op, name) for name in ("bits", "order"))
    is_signed = machine.integer(op, "signed")
    keys = (signed(src) if is_signed else unsigned(src)).reshape(-1).copy()
    index = np.arange(keys.size)
    for stage in range(bits if machine.integer(op, "merges") else 1, bits + 1):
        downwards = index >> stage & 1 if stage < bits or order == tt.SortOrder.ALTERNATING else order
        for bit in reversed(range(stage)):
            other = keys[index ^ 1 << bit]
            wants_larger = (index >> bit & 1) != downwards
            keys = np.where(wants_larger, np.maximum(keys, other), np.minimum(keys, other))
    return keys.view(src.dtype).reshape(src.shape)


@evaluates(tt.HistogramOp)
def eval_histogram(machine: "Machine", op: Operation, src: Array, *mask: Array) -> Array:
    """Count the occurrences of 0 .. bins-1; other values are not counted."""
    (bins,) = shape_of(op.results[0].type)
    return histogram(src[mask[0]] if mask else src, bins).astype(storage(op.results[0].type))


def histogram(src: Array, bins: int) -> Array:
    counted = unsigned(src).reshape(-1)
    return np.bincount(counted[counted < bins].astype(INT64), minlength=bins)


@evaluates(tt.AddPtrOp, elementwise=True)
def eval_addptr(machine: "Machine", op: Operation, pointer: Array, offset: Array) -> Array:
    element = element_type(op.results[0].type)
    assert isinstance(element, PointerType), "tt.addptr moves a pointer"
    return np.asarray(pointer + signed(offset).astype(INT64) * np.int64(memory_bytes(element.pointee)))


@evaluates(tt.FpToFpOp, elementwise=True)
def eval_fp_to_fp(machine: "Machine", op: Operation, src: Array) -> Array:
    """8-bit floats saturate when rounding to nearest; towards zero never overflows."""
    dtype = storage(op.results[0].type)
    if machine.integer(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ:
        return narrow_to_zero(src, dtype)
    return narrow(saturate(src, dtype) if is_float8(dtype) else src, dtype)


# reductions, scans and mapped functions

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


# dots

FORMATS: dict[int, np.dtype[Any]] = {
    ScaleDotElemType.E4M3: E4M3FN,
    ScaleDotElemType.E5M2: E5M2,
    ScaleDotElemType.BF16: BF16,
    ScaleDotElemType.FP16: F16,
}


@evaluates(tt.DotOp)
def eval_dot(machine: "Machine", op: Operation, a: Array, b: Array, c: Array) -> Array:
    """Return ``a @ b + c``."""
    if a.dtype.kind == "i":  # exact in f64: K * 2**14 is below 2**53
        result = np.matmul(a.astype(F64), b.astype(F64)).astype(np.int64)
        return (result + c).astype(c.dtype)
    accumulator = F64 if c.dtype == F64 else F32
    a, b = a.astype(accumulator), b.astype(accumulator)
    if machine.truncate_tf32 and machine.integer(op, "inputPrecision", InputPrecision.IEEE) == InputPrecision.TF32:
        a, b = (to_tf32(x.view(np.uint32), "rz").view(F32) for x in (a, b))
    if is_reproducible(op):
        return narrow(fma_chain(a, b, c.astype(accumulator)), c.dtype)
    return narrow(np.matmul(a, b) + c.astype(accumulator), c.dtype)


@evaluates(tt.DotScaledOp)
def eval_dot_scaled(machine: "Machine", op: Operation, *operands: Array) -> Array:
    sizes = iter(machine.integers(op, "operandSegmentSizes"))
    values = iter(operands)
    a, b, c, a_scale, b_scale = (next(values) if next(sizes) else None for _ in range(5))
    assert a is not None and b is not None and c is not None
    a_format, b_format = machine.integer(op, "a_elem_type"), machine.integer(op, "b_elem_type")
    compute = F16 if ScaleDotElemType.FP16 in (a_format, b_format) else BF16
    fast = bool(machine.integer(op, "fastMath"))
    lhs = scaled(unpacked(a, a_format, -1 if machine.integer(op, "lhs_k_pack", -1) else -2), a_scale, compute, fast)
    rhs = unpacked(b, b_format, -2 if machine.integer(op, "rhs_k_pack", -1) else -1)
    rhs = scaled(rhs.swapaxes(-1, -2), b_scale, compute, fast).swapaxes(-1, -2)
    if is_reproducible(op):
        return narrow(fma_chain(lhs.astype(F32), rhs.astype(F32), c.astype(F32)), c.dtype)
    return narrow(np.matmul(lhs.astype(F32), rhs.astype(F32)) + c.astype(F32), c.dtype)


def fma_chain(a: Array, b: Array, total: Array) -> Array:
    """Return ``total + a @ b`` by fused multiply-adds in the order of K."""
    arithmetic = Arithmetic.of(total.dtype)
    for k in range(a.shape[-1]):
        row, column = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :])
        total = arithmetic.fma(row, column, total)
    return total


def unpacked(value: Array, format: int, axis: int) -> Array:
    """Return the elements as f32; e2m1 bytes hold two along `axis`, the low nibble first."""
    if format == ScaleDotElemType.E2M1:
        return unpack_e2m1(value, axis)
    if format not in FORMATS:
        raise Fault(f"has operands of format {ScaleDotElemType(format).keyword}, which the evaluator does not read")
    dtype = FORMATS[format]
    return (value if value.dtype == dtype else np.ascontiguousarray(value).view(dtype)).astype(F32)


def scaled(value: Array, scale: Array | None, compute: np.dtype[Any], fast: bool) -> Array:
    """Multiply rows of `value` by their scales, one for each group of neighbours along the last axis."""
    if scale is None:
        return narrow(value, compute)
    group = value.shape[-1] // scale.shape[-1]
    if scale.dtype.kind == "i":
        bits = np.ascontiguousarray(scale).view(np.uint8)
        factor, is_nan = np.ldexp(np.float32(1), bits.astype(np.int32) - E8M0_BIAS), bits == E8M0_NAN
    else:
        factor, is_nan = scale.astype(F32), np.zeros(scale.shape, bool)
    result = narrow(value * np.repeat(factor, group, axis=-1), compute)
    if fast:
        return result
    return np.where(np.repeat(is_nan, group, axis=-1), np.asarray(np.nan, dtype=compute), result)
