"""Tiles of pointers that a loop advances: the loop carries one pointer, and each register has a fixed distance from it.

    %p = scf.for ... iter_args(%q = %start) {              %base = phi ptr [ ... ], [ %next, ... ]
      tt.load %q                                           ld [%base + %row0], ld [%base + %row1] ...
      %r = tt.addptr %q, (tt.splat %step)          ==>     %next = add %base, %step
      scf.yield %r
    }

The pointers of adjacent elements differ by constants, others by the terms of their address sums that they do not share,
which the builder records. A distance takes one register where a pointer takes two, and the loop advances only one.
"""

from collections import Counter
from functools import reduce
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import arith, scf, tt, ttg
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.types import PointerType, element_type, is_tensor, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.targets.gpu.global_access import width_of
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.llvm.control_rules import Carried, lower_for
from tilework.targets.llvm.scalar_types import pointee_bytes
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value


@light_dataclass
class Tile:
    """A base pointer, and the distances from it of the first of each `width` adjacent elements of `size` bytes."""

    base: Value
    apart: list[tuple[Value | None, int]]
    width: int
    size: int

    def registers(self, low: Lowering, base: Value) -> Registers:
        """Return the pointers for the current base."""
        b, made = low.builder, list[Value]()
        low.bases.add(base.text)
        for own, fixed in self.apart:
            first = b.gep(base if own is None else b.gep(base, own), fixed)
            made += [b.gep(first, index * self.size) for index in range(self.width)]
        return tuple(made)

    def moved(self, low: Lowering, first: Value) -> Value:
        """Return the base pointer that corresponds to this first pointer."""
        base, terms, bytes = taken_apart(low, first)
        own, fixed = self.apart[0]
        if base.text in low.bases and bytes == fixed and terms == ([] if own is None else [own]):
            return base
        b = low.builder
        return b.gep(first if own is None else b.gep(first, b.sub(0, own)), -fixed)


class CarriedPointers(Carried):
    """The values that a loop carries: one base pointer for each tile whose pointers advance together."""

    low: Lowering

    def __init__(self, low: Lowering, op: Operation) -> None:
        super().__init__(low, op)
        self.tiles = [tile_of(low, op, position, value) for position, value in enumerate(self.initial)]
        pairs = zip(self.initial, self.tiles, strict=True)
        self.forms = [value if tile is None else (tile.base,) for value, tile in pairs]

    def start(self) -> list[Value]:
        return self.low.carried(self.forms)

    def held(self, carried: Any) -> list[Any]:
        pairs = zip(self.tiles, self.low.taken(self.forms, carried), strict=True)
        return [value if tile is None else tile.registers(self.low, value[0]) for tile, value in pairs]

    def next(self, following: Any) -> list[Value]:
        pairs = zip(self.tiles, following, strict=True)
        return self.low.carried([value if tile is None else (tile.moved(self.low, value[0]),) for tile, value in pairs])


@lowers(scf.ForOp, overrides=True)
def lower_for_with_pointers(low: Lowering, op: Operation) -> list[Any]:
    from tilework.targets.gpu.shared_access import prepare_reads  # lazily: many kernels without loops have no buffers

    prepare_reads(low, op)
    is_pipelined = any(op.name.startswith(low.gpu.pipelined_ops) for op in ops_in_order(*op.regions))
    return lower_for(low, op, CarriedPointers, unroll=1 if is_pipelined else None)


def tile_of(low: Lowering, op: Operation, position: int, registers: Any) -> Tile | None:
    """Return a carried value as a `Tile`, if it is a tile of pointers that advance together."""
    body = op.regions[0].block
    arg = body.args[position + 1]
    if not is_tensor(arg.type) or not isinstance(element_type(arg.type), PointerType):
        return None
    if not move_together(low, arg, end_of(body).operands[position]):
        return None
    size = pointee_bytes(element_type(arg.type))
    width = width_of(low, arg, None, 8 * size)
    parts = [taken_apart(low, register) for register in registers[::width]]
    root, _, fixed = parts[0]
    if any(other.text != root.text for other, _, _ in parts):
        return None
    b = low.builder
    by_name = {term.text: term for _, terms, _ in parts for term in terms}
    counts = [Counter(term.text for term in terms) for _, terms, _ in parts]
    common = reduce(Counter.__and__, counts)
    base = b.gep(reduce(b.gep, [by_name[name] for name in common.elements()], root), fixed)
    apart: list[tuple[Value | None, int]] = []
    hides = is_copied_from(arg) and has_given_stride(low, op.operands[3 + position])
    zero = low.gpu.hidden_zero(b, op) if hides else None
    for count, (_, _, bytes) in zip(counts, parts, strict=True):
        own = [by_name[name] for name in (count - common).elements()]
        distance = reduce(b.add, own) if own else None
        apart.append((distance if distance is None or zero is None else b.xor(distance, zero), bytes - fixed))
    return Tile(base, apart, width, size)


def is_copied_from(pointers: SSAValue) -> bool:
    """Return True if an asynchronous copy reads from these pointers or from ones derived from them."""
    return any(
        type(use.operation) is ttg.AsyncCopyGlobalToLocalOp
        or (type(use.operation) is tt.AddPtrOp and is_copied_from(use.operation.results[0]))
        for use in pointers.uses
    )


def has_given_stride(low: Lowering, pointers: SSAValue) -> bool:
    """Return True if the pointers depend on a tile multiplied by a value that is unknown at compile time (a stride)."""
    seen, pending = set[SSAValue](), [pointers]
    while pending:
        if (value := pending.pop()) in seen or not isinstance(value, OpResult) or not is_tensor(value.type):
            continue
        seen.add(value)
        if type(value.op) is arith.MuliOp and all(low.axis.of(one).constant is None for one in value.op.operands):
            return True
        pending += value.op.operands
    return False


def move_together(low: Lowering, arg: SSAValue, last: SSAValue) -> bool:
    """Return True if `last` is `arg` plus uniform offsets."""
    while last is not arg:
        if not isinstance(last, OpResult):
            return False
        op, index = last.op, last.index
        if type(op) is scf.ForOp:
            body = op.regions[0].block
            if not move_together(low, body.args[index + 1], end_of(body).operands[index]):
                return False
            last = op.operands[3 + index]
        elif type(op) is tt.AddPtrOp and is_uniform(low, op.operands[1]):
            last = op.operands[0]
        else:
            return False
    return True


def is_uniform(low: Lowering, value: SSAValue) -> bool:
    """Return True if all elements of a tile are equal."""
    return is_tensor(value.type) and low.axis.of(value).constancy == shape_of(value.type)


def taken_apart(low: Lowering, pointer: Value) -> tuple[Value, list[Value], int]:
    """Split a pointer into a base, the variable terms added to it, and the constant offset."""
    b, terms, fixed = low.builder, list[Value](), 0
    while pointer.text not in low.bases:
        if (constant := b.offsets.get(pointer.text)) is not None:
            pointer, fixed = constant[0], fixed + constant[1]
        elif (moved := b.terms.get(pointer.text)) is not None:
            pointer = moved[0]
            terms.append(moved[1])
        else:
            break
    return pointer, terms[::-1], fixed


def moved_by(low: Lowering, pointer: Value, offset: Value, size: int) -> Value:
    """Return `pointer` moved by `offset` elements; what is constant is added last, where an access can add it."""
    b = low.builder
    pointer, bytes = b.offsets.get(pointer.text, (pointer, 0))
    offset, elements = b.exact.get(offset.text, (offset, 0))
    return b.gep(b.gep(pointer, in_bytes(low, offset, size)), bytes + elements * size)


def in_bytes(low: Lowering, offset: Value, size: int) -> Value:
    return low.builder.mul(low.builder.cast(offset, i64, is_signed=True), size)


@lowers(tt.AddPtrOp, overrides=True)
def lower_addptr(low: Lowering, op: Operation) -> Registers:
    """Add offsets to a tile of pointers; a uniform offset is added to the base pointer only."""
    b, size = low.builder, pointee_bytes(element_type(op.operands[0].type))
    pairs = list(zip(low[op.operands[0]], low[op.operands[1]], strict=True))
    if not low.bases or not is_uniform(low, op.operands[1]):
        return tuple([moved_by(low, pointer, offset, size) for pointer, offset in pairs])
    added, moved = in_bytes(low, pairs[0][1], size), dict[str, Value]()
    made: list[Value] = []
    for pointer, _ in pairs:
        base, terms, fixed = taken_apart(low, pointer)
        if base.text not in low.bases:
            made.append(b.gep(pointer, added))
            continue
        if base.text not in moved:
            moved[base.text] = low.gpu.advance(b, base, added)
        made.append(b.gep(reduce(b.gep, terms, moved[base.text]), fixed))
    low.bases.update(one.text for one in moved.values())
    return tuple(made)
