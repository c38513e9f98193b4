"""Chunks in which no quotient changes, for addresses like ``x % 64 + 192 * (x // 64)``.

    for e in 0, 32, 64, ..:
        r, q = (start + e) % 64, (start + e) // 64        scalars
        if start + e >= 0 and r <= 64 - 32:               all lanes lie between two multiples of 64
            load p[r + 192 * q ..]                        one vector
        else:
            ...                                           lane by lane, exactly

Such a chunk is a *piece*: in it ``x // d`` is uniform and ``x % d`` a line, and so are most of the values that are
computed from them (`Nest.whole`). Which chunks are pieces is tested while the loop runs, so nothing has to be known of
`start` or of its sign. A nest tests only if that makes an address a line.
"""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt
from tilework.targets.cpu.lower.lanes import CHECK, FAST, Interval, Kind, Linear, Strides, division
from tilework.targets.cpu.lower.nest_access import access_stride
from tilework.targets.llvm.types import i1
from tilework.targets.llvm.values import Value, constant

if TYPE_CHECKING:
    from tilework.targets.cpu.lower.nests import Nest
    from tilework.targets.cpu.lower.reduce_rules import Fold

FEWEST = 8  # lanes of a piece
ENOUGH = 4  # times the lanes: so large a divisor has mostly pieces, whatever it is a multiple of


def piece_lanes(nest: "Nest", wanted: int) -> int:
    """The number of lanes of pieces, at most `wanted`; 0 if the nest has none, or they would not help."""
    if nest.whole is nest.strides or any(fold.is_tree for fold in nest.folds) or nest.order[-1] != nest.dim:
        return 0
    if not any(is_helped(nest, op) for op in nest.ops):
        return 0
    divisors = [part.divisor for op in quotients(nest) if (part := division(op)) is not None]
    lanes = wanted
    while lanes >= FEWEST:
        if lanes <= nest.shape[nest.dim] and all(d % lanes == 0 or d >= ENOUGH * lanes for d in divisors):
            return lanes
        lanes //= 2
    return 0


def is_helped(nest: "Nest", op: Operation) -> bool:
    """Return True if an access of memory is a vector, or one element for all lanes, in pieces alone."""
    if type(op) is not tt.LoadOp and type(op) is not tt.StoreOp:
        return False
    before, found = access_stride(op, nest.strides, nest.dim), access_stride(op, nest.whole, nest.dim)
    return before is not None and found is not None and before[0] is None and found[0] in (0, found[1])


def quotients(nest: "Nest") -> list[Operation]:
    """The divisions that decide what a piece is: of lines that go from lane to lane."""

    def along(known: dict[SSAValue, Strides], value: SSAValue) -> object:
        return known[value][nest.dim] if value in known else 0

    return [
        op
        for op in nest.ops
        if division(op) is not None
        and along(nest.strides, op.results[0]) is None
        and along(nest.whole, op.results[0]) is not None
        and along(nest.whole, op.operands[0]) == 1
    ]


def scouts(nest: "Nest") -> list[Operation]:
    """The divisions and what they are computed from in the loop, in order."""
    needed, left = set[Operation](), quotients(nest)
    while left:
        op = left.pop()
        if op not in needed and nest.stride(op.results[0]) is None:
            needed.add(op)
            left += [owner for value in op.operands if isinstance(owner := value.owner, Operation)]
    return [op for op in nest.ops if op in needed]


def emit_in_piece(nest: "Nest", op: Operation) -> None:
    """An op that makes no line in every chunk, in a piece."""
    result = op.results[0]
    if result not in nest.kinds:  # else it is one of those that decided
        nest.kinds[result] = nest.line(op) if nest.whole[result][nest.dim] else nest.apply(op)


def emit_chunk(nest: "Nest", dim: int, depth: int, folds: "Sequence[Fold]") -> None:
    """The ops in a step of the loop along `dim`: twice if it may be a piece."""
    outside = nest.kinds
    is_piece = None
    if nest.has_pieces and dim == nest.dim and nest.mode == CHECK:
        nest.kinds = dict(outside)
        is_piece = condition(nest)
    in_piece, nest.kinds = nest.kinds, outside
    if is_piece is None:
        nest.level(depth)
        return
    before, after = [fold.values for fold in folds], list[list[Value]]()

    def emit(mode: str, kinds: dict[SSAValue, Kind]) -> list[Value]:
        nest.mode, nest.kinds = mode, kinds
        for fold, values in zip(folds, before, strict=True):
            fold.values = values
        nest.level(depth)
        after[:] = [fold.values for fold in folds]
        return list(chain.from_iterable(after))

    found = iter(nest.b.if_else(is_piece, lambda: emit(FAST, in_piece), lambda: emit(CHECK, dict(outside))))
    nest.mode, nest.kinds = CHECK, outside
    for fold, values in zip(folds, after, strict=True):
        fold.values = [next(found) for _ in values]


def condition(nest: "Nest") -> Value | None:
    """Return True if the chunk is a piece with all lanes on; None if that cannot be said. The quotients are among the
    kinds then.
    """
    b, lanes = nest.b, nest.lanes
    holds = constant(i1, 1)
    for value in nest.intervals:
        kind = nest.kinds.get(value)
        if isinstance(kind, Interval):
            holds = b.and_(holds, b.icmp("sle", b.add(nest.chunk, lanes), kind.high))
            if kind.low.constant != 0:
                holds = b.and_(holds, b.icmp("sge", nest.chunk, kind.low))
    found = set(quotients(nest))
    for op in scouts(nest):
        if type(op) not in nest.low.elementwise:
            return None
        if op not in found:
            emit_in_piece(nest, op)
            continue
        line, part = nest.kind(op.operands[0]), division(op)
        if not isinstance(line, Linear) or not line.is_exact or part is None:
            return None
        first, divisor = nest.base(line), part.divisor
        largest = (1 << (first.type.bits - 1)) - lanes
        rest = b.urem(first, divisor)
        holds = b.and_(holds, b.icmp("ule", first, largest))
        holds = b.and_(holds, b.icmp("ule", rest, divisor - lanes))
        if part.is_rest:
            start = b.sub(rest, b.cast(nest.chunk, first.type, is_signed=True))
            nest.kinds[op.results[0]] = Linear(start, constant(first.type, 1))
        else:
            nest.kinds[op.results[0]] = b.udiv(first, divisor)
    return holds
