"""Lower `ttc.nest`: choose a way to run it, share large nests among threads, prefetch the lines of later stores.

**Shared nests.** In a grid with fewer programs than cores, several threads run one large nest:

    ttc.nest [1048576] {...}
    ==>
    void @tilework.fork.0(ptr %slots, i64 %chunk, ptr)   take `chunk` indices of the outermost loop from the counter in
                                                         slot 0 until none are left; the other slots hold the values
                                                         that the body uses
    in the kernel:
        slots = 0, values ...
        if the arena names a worker: worker(@tilework.fork.0, slots, size, step, arena)
        call @tilework.fork.0(slots, size, null)         the rest: everything, or nothing

The launcher decides (`pool.py`) by the address at byte FORK of the arena: that of `pool_share` (`pool_code.py`), or 0
in a large grid, where the nest costs one test and one call more. A nest qualifies if its work is worth waking a thread
for, if no reduction runs along the outermost loop, and if different indices of that loop write to different addresses.
Large dots are shared in the same way, by strips of columns (`dot_rules.py`), and large scans, by rows or columns
(`scan.py`).

**Lines of later stores.** A store to a line that is not in the cache waits for memory, so a kernel that first computes
and then stores takes as long as both. A nest that computes without loads and stores prefetches the lines:

    ttc.nest [4096] {... %e = math.exp ...; ttc.write %e, %row[%j]}       prefetches lines of %out, one with each vector
    ttc.nest [4096] {... %y = arith.divf ...; tt.store %p, %y}            %p = %out + %j: finds them in the cache

The address is computed by the ops of the later nest for the same indices, if they are arithmetic on known values.

**Remarks**, if a compilation is recorded (`targets/observe.py`), report where the code uses no whole vectors:

    add.py:6:9: remark: this load is done one element at a time: its addresses are 8 bytes apart, and an element has 4
    add.py:9:5: remark: this is computed one element at a time: tt.atomic_rmw has no vector form
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import TypeVar

from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import tt, ttc
from tilework.ir.types import array_values
from tilework.targets.cpu.lower.lanes import NEVER, RUNTIME, Linear, Stride, strides
from tilework.targets.cpu.lower.lowering import Lowering, lowers, shaped
from tilework.targets.cpu.lower.nest_access import (
    Promised,
    access_stride,
    element_address,
    is_large,
    is_volatile,
    stores_past,
    streams,
)
from tilework.targets.cpu.lower.nests import MOST_LANES, SPECIAL, Nest
from tilework.targets.cpu.run.interface import FORK, FORK_SYMBOL
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes
from tilework.targets.llvm.types import i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant
from tilework.targets.observe import is_recording
from tilework.transforms.ttc.loops.hazards import ATOMICS, only_counts

# ---- Nests whose innermost dimensions are smaller than a vector: one vector spans several of them.
#
#     ttc.nest [256, 2, 2] {^bb0(%i, %j, %k): ... read %keys[%i * 4 + %j * 2 + %k] ... read %half[%i * 2 + %j] ...}
#
#     for i in 0, 4, 8, ..:                 sixteen lanes are i .. i+3, both j, both k
#         keys[4i .. 4i + 15]               one vector
#         half[2i .. 2i + 7]                eight elements, each of them in two lanes:  0 0 1 1 2 2 ..
#
# An index, and every address computed from indices, is a base per chunk plus a constant offset per lane (`offsets`).
# A read takes the whole stretch of memory between its lowest and its highest lane and deals the elements out by a
# shuffle; a write must fill its stretch. Nests where that is not so, with masks or with reductions are left to `Nest`.
# The same serves a dimension that is walked in steps of two or three elements: sorting networks consist of such nests.


READS = (tt.LoadOp, ttc.ReadOp)
ACCESSES = (*READS, tt.StoreOp, ttc.WriteOp)
WIDEST = 2  # a stretch of memory has at most so many times the elements that are wanted


def nest_of(low: Lowering, op: Operation) -> Nest:
    """The better of the two ways to emit a nest."""
    plain = Nest(low, op)
    grouped = GroupedNest(low, op) if is_candidate(plain) else None
    return grouped if grouped is not None and grouped.is_possible() else plain


def is_candidate(nest: Nest) -> bool:
    """Return True if the nest has elementwise ops only, and not just full vectors with contiguous or uniform
    accesses.
    """
    if not nest.shape or nest.folds or any(nest.is_single(op) for op in nest.ops):
        return False
    found = [access_stride(op, nest.strides, nest.dim) for op in nest.ops]
    is_smooth = all(access is None or access[0] in (0, access[1]) for access in found)
    return not (is_smooth and nest.lanes == nest.wanted_lanes())


class GroupedNest(Nest):
    """Lanes along `group`: `step` indices of dimension `dim`, and all of the dimensions behind it."""

    def __init__(self, low: Lowering, op: Operation) -> None:
        super().__init__(low, op)
        self.intervals, self.has_pieces = {}, False
        lanes, inner, self.dim = self.wanted_lanes(), 1, len(self.shape) - 1
        while self.dim and inner * self.shape[self.dim] < lanes:
            inner *= self.shape[self.dim]
            self.dim -= 1
        self.step = min(max(1, lanes // inner), self.shape[self.dim])
        self.lanes = self.step * inner
        self.group = range(self.dim, len(self.shape))
        self.known_indices: dict[int, list[list[int]]] = {}  # by the step
        self.order = list(range(self.dim + 1))
        self.depths = self.find_depths()

    def is_possible(self) -> bool:
        """Return True if every access is one stretch of memory, also of the fewer lanes at the end, and the lanes are
        worth it.
        """
        if self.lanes < 4 or not self.has_stretches():
            return False
        if not (rest := self.shape[self.dim] % self.step):
            return True
        with self.fewer_lanes(rest):
            return self.has_stretches()

    def has_stretches(self) -> bool:
        return all(self.is_stretch(op) for op in self.ops if type(op) in SPECIAL)

    def is_stretch(self, op: Operation) -> bool:
        kind = type(op)
        if kind not in ACCESSES or (kind is tt.LoadOp and (len(op.operands) > 1 or is_volatile(op))):
            return False
        if kind is tt.StoreOp and len(op.operands) > 2:
            return False
        offsets = self.offsets(op)
        if offsets is None:
            return False
        if kind not in READS:
            return sorted(offsets) == list(range(self.lanes))
        span = max(offsets) - min(offsets) + 1
        return span <= WIDEST * self.lanes and (kind is ttc.ReadOp or len(set(offsets)) == span)

    def offsets(self, op: Operation) -> list[int] | None:
        """The distance in elements of each lane of an access from lane 0; None where it is unknown."""
        found = [access_stride(op, self.strides, dim) for dim in range(len(self.shape))]
        strides = [access[0] if access else 0 for access in found]
        if not all(isinstance(strides[dim], int) for dim in self.group):
            return None
        size = found[0][1] if found[0] else 1
        moved = self.lane_offsets(strides)
        return None if any(offset % size for offset in moved) else [offset // size for offset in moved]

    # Values

    def stride(self, value: SSAValue, dim: int | None = None) -> Stride:
        """0: the same in all lanes; RUNTIME: an offset per lane; None: a vector."""
        known = self.strides.get(value)
        found = () if known is None else known[self.dim :]
        if not any(found) and None not in found:
            return 0
        return RUNTIME if all(isinstance(stride, int) for stride in found) else None

    def lane_indices(self) -> list[list[int]]:
        """The index of every lane along each dimension of the group."""
        if (known := self.known_indices.get(self.step)) is not None:
            return known
        sizes = [self.step, *self.shape[self.dim + 1 :]]
        behind = [prod(sizes[position + 1 :]) for position in range(len(sizes))]
        found = [
            [lane // after % size for lane in range(self.lanes)] for size, after in zip(sizes, behind, strict=True)
        ]
        self.known_indices[self.step] = found
        return found

    def lane_offsets(self, strides: Sequence[Stride]) -> list[int]:
        """The offset of each lane from lane 0, for a value with these strides along all dimensions."""
        total = [0] * self.lanes
        for dim, indices in zip(self.group, self.lane_indices(), strict=True):
            stride = strides[dim]
            assert isinstance(stride, int), "the offsets of lanes are known"
            total = [offset + stride * index for offset, index in zip(total, indices, strict=True)]
        return total

    def vector(self, value: SSAValue) -> Value:
        kind = self.kind(value)
        if not isinstance(kind, Linear):
            assert isinstance(kind, Value), "there are no intervals here"
            return kind
        if not kind.is_exact:
            owner = value.owner
            assert isinstance(owner, Operation)
            return self.apply(owner)
        base, offsets = self.base(kind), self.lane_offsets(self.strides[value])
        if not any(offsets):
            return base
        b = self.b
        if base.type.is_pointer:
            return b.gep(base, constant(shaped(i64, self.lanes), offsets))
        return b.add(b.splat(base, self.lanes), constant(shaped(base.type, self.lanes), offsets))

    # Emission

    def emit(self) -> None:
        for dim in self.group:
            self.kinds[self.block.args[dim]] = Linear(constant(i32, 0), constant(i32, int(dim == self.dim)))
        self.level(0)

    def emit_op(self, op: Operation) -> None:
        if type(op) not in ACCESSES:
            super().emit_op(op)
            return
        if self.low.lines is not None:
            self.low.locate(op)
        offsets = self.offsets(op)
        assert offsets is not None, "every access is a stretch"
        if type(op) in READS:
            self.kinds[op.results[0]] = self.read(op, offsets)
        else:
            self.write(op, offsets)

    def read(self, op: Operation, offsets: list[int]) -> Value:
        """Load one vector from the lowest offset to the highest, and distribute it to the lanes."""
        b, element = self.b, op.results[0].type
        address, first, span = self.lane_0(op, 0), min(offsets), max(offsets) - min(offsets) + 1
        if span == 1:
            return self.low.read(element, address)
        if type(op) is ttc.ReadOp and type(op.operands[0].owner) is ttc.AllocOp:
            more = -span % self.low.target.lanes(8 * element_bytes(element))
            first, span = first - more, span + more  # whole machine vectors: an arena has other bytes before a buffer
        stretch = self.low.read(element, b.gep(address, first * element_bytes(element)), span)
        return b.shuffle(stretch, None, [offset - first for offset in offsets])

    def write(self, op: Operation, offsets: list[int]) -> None:
        b, buffer = self.b, int(type(op) is ttc.WriteOp)
        given = op.operands[1 - buffer]
        value = self.vector(given)
        if self.lanes == 1:
            self.low.write(given.type, value, self.lane_0(op, buffer))
            return
        if not value.type.is_vector:
            value = b.splat(value, self.lanes)
        lanes = [offsets.index(offset) for offset in range(self.lanes)]
        self.low.write(given.type, b.shuffle(value, None, lanes), self.lane_0(op, buffer))

    def lane_0(self, op: Operation, position: int) -> Value:
        """The address that lane 0 accesses; operand `position` is the pointer or the buffer."""
        if type(op) is tt.LoadOp or type(op) is tt.StoreOp:
            return self.first(op.operands[position])
        return element_address(self.low, op, position, self.first)

    def first(self, value: SSAValue) -> Value:
        """The value in lane 0."""
        kind = self.kind(value)
        if isinstance(kind, Linear):
            return self.base(kind)
        assert isinstance(kind, Value) and not kind.type.is_vector, "an address is a line"
        return kind


# ---- Lower `ttc.nest`: choose a way to run it, share large nests among threads, prefetch the lines of later stores.


FORK_WORK = 1 << 21  # instructions on elements: about 0.1 ms
ACCESS_COST = 4  # of an element that comes from memory, beside the instructions
Key = TypeVar("Key")
Emit = Callable[[Builder, Mapping[Key, Value], Value, Value], None]
SHAREABLE = (tt.LoadOp, tt.StoreOp, ttc.ReadOp, ttc.WriteOp, ttc.ReduceOp)


@lowers(ttc.NestOp)
def lower_nest(low: Lowering, op: Operation) -> None:
    nest = nest_of(low, op)
    nest.past = stores_past(nest, op)
    if is_recording():
        remark_nest(nest)
    if is_shareable(nest):
        share_nest(low, op, nest)
        return
    nest.promised = promised_stores(nest, op)
    releases, acquires = any(map(orders, nest.ops)), any(map(is_ordered, nest.ops))
    if releases:
        low.builder.fence("release")
    emit_nest(nest)
    if acquires:
        low.builder.fence("acq_rel" if releases else "acquire")


def emit_nest(nest: Nest) -> None:
    """The nest, then a fence after stores past the caches, which x86 does not order."""
    nest.emit()
    if nest.low.target.arch == "x86_64" and nest.past:
        with nest.b.if_(reduce(nest.b.or_, nest.past.values())):
            nest.b.call("llvm.x86.sse.sfence", void, [])


def orders(op: Operation) -> bool:
    """Return True for an atomic of a tile that fences surround."""
    return type(op) in ATOMICS and not only_counts(op)


def is_ordered(op: Operation) -> bool:
    """Return True if the ops that follow must run after it."""
    return orders(op) or (type(op) is tt.LoadOp and is_volatile(op))


def is_shareable(nest: Nest) -> bool:
    """See the module docstring."""
    if not nest.shape or prod(nest.shape) * (nest.cost() + ACCESS_COST) < FORK_WORK:
        return False
    outermost = nest.order[0]
    step = nest.step if outermost == nest.dim else 1
    if nest.shape[outermost] < 2 * step or any(fold.axis == outermost for fold in nest.folds):
        return False
    if any(fold.is_tree and fold.axis != nest.order[-1] for fold in nest.folds):  # its partial results are in the arena
        return False
    return all(is_independent(nest, op, outermost) for op in nest.ops)


def is_independent(nest: Nest, op: Operation, dim: int) -> bool:
    """Return True if the op may run for several indices of `dim` at once."""
    kind = type(op)
    if kind is tt.StoreOp or kind is ttc.WriteOp:
        access = access_stride(op, nest.strides, dim)
        return access is not None and access[0] not in (0, None)
    return kind in nest.low.elementwise or (kind in SHAREABLE and not (kind is tt.LoadOp and is_volatile(op)))


def share_nest(low: Lowering, op: Operation, nest: Nest) -> None:
    """Write the nest as a function of its own, and call it."""
    outermost = nest.order[0]

    def emit(first: Value, last: Value, *past: Value) -> None:
        nest.b, nest.bounds, nest.past = low.builder, (first, last), dict(zip(nest.past, past, strict=True))
        emit_nest(nest)

    step = nest.step if outermost == nest.dim else 1
    share_op(low, op, nest.shape[outermost], step, emit, *nest.past.values())


def share_op(low: Lowering, op: Operation, size: int, step: int, emit: Callable[..., None], *more: Value) -> None:
    """`share` the loop that ``emit(first, last, *more)`` writes for an op, with all values that it uses."""
    used = list(outer_values(op))
    moved = {index: value for index, value in enumerate([*map(low.__getitem__, used), *more]) if not is_fixed(value)}
    outer, values, lines = low.builder, low.values, low.lines

    def inside(b: Builder, known: Mapping[int, Value], first: Value, last: Value) -> None:
        there = {value: known[index] for index, value in enumerate(used) if index in known}
        low.builder, low.values, low.lines = b, {**values, **there}, None
        emit(first, last, *(known.get(index, value) for index, value in enumerate(more, len(used))))
        low.builder, low.values, low.lines = outer, values, lines

    share(low, moved, size, step, inside)


def share(low: Lowering, moved: Mapping[Key, Value], size: int, step: int, emit: Emit[Key]) -> None:
    """Distribute indices 0 to `size` - 1 over several threads, multiples of `step` at once.

    ``emit(builder, moved values, first, last)`` writes the code for the indices from `first` to `last` - 1.
    """
    b = low.builder
    name = f"{FORK_SYMBOL}{sum(known.startswith(FORK_SYMBOL) for known in low.module.functions)}"
    slots = b.alloca(i64, 1 + len(moved), align=8)
    b.store(constant(i64, 0), slots, align=8)
    for slot, value in enumerate(moved.values(), 1):
        b.store(value, b.gep(slots, 8 * slot), align=8)
    define(low, name, moved, size, emit)
    function = Value(ptr, f"@{name}")
    worker = b.load(ptr, b.gep(low.arena, FORK), align=8)
    with b.if_(b.icmp("ne", worker, constant(ptr, 0)), weights=(1, 1000)):
        b.call(worker, void, [function, slots, constant(i64, size), constant(i64, step), low.arena])
    b.call(name, void, [slots, constant(i64, size), constant(ptr, 0)])


def outer_values(op: Operation) -> Iterator[SSAValue]:
    """The values that the body of a nest uses but does not define, once each."""
    seen: set[SSAValue] = set()
    for inner in op.walk():
        seen.update(inner.results)
        seen.update(arg for region in inner.regions for block in region.blocks for arg in block.args)
        for operand in inner.operands:
            if operand not in seen:
                seen.add(operand)
                yield operand


def is_fixed(value: Value) -> bool:
    """A constant or a global: the same text in every function."""
    return value.constant is not None or not value.text.startswith("%")


def define(low: Lowering, name: str, moved: Mapping[Key, Value], size: int, emit: Emit[Key]) -> None:
    """The function that threads run."""
    params = [(ptr, "slots"), (i64, "chunk"), (ptr, "worker")]
    function = low.module.function(name, void, params, linkage="internal", attributes=("nounwind",))
    b = Builder(function)
    b.flags = low.builder.flags
    slots, chunk, _ = function.args
    inside = {
        key: b.load(known.type, b.gep(slots, 8 * slot), align=8) for slot, (key, known) in enumerate(moved.items(), 1)
    }
    claim, run, done = (function.block(label) for label in ("claim", "run", "done"))
    b.br(claim)
    b.resume(claim)
    first = b.atomic_rmw("add", slots, chunk, align=8)
    b.cond_br(b.icmp("slt", first, size), run, done)
    b.resume(run)
    emit(b, inside, first, b.smin(b.add(first, chunk), constant(i64, size)))
    b.br(claim)
    b.resume(done)
    b.ret()


FEW = 16  # elements of a tile that is not worth a remark
NOUNS: dict[type[Operation], str] = {tt.LoadOp: "load", tt.StoreOp: "store"}


def remark(op: Operation, text: str) -> None:
    """Report `text` about `op` to all listeners."""
    from tilework.transforms import remarks  # lazily: most nests use whole vectors

    remarks.remark(op, text)


def remark_nest(nest: Nest) -> None:
    """Report the ops of a nest that do not use whole vectors."""
    if prod(nest.shape) < FEW or isinstance(nest, GroupedNest):
        return
    if nest.lanes == 1:
        return remark_single(nest)
    if nest.lanes < (whole := min(nest.register_lanes(), MOST_LANES)):
        size, bits = nest.shape[nest.dim], 8 * nest.low.target.vector_bytes
        worth = [op for op in nest.ops if type(op) in NOUNS]
        if worth:
            text = f"vectors have {nest.lanes} elements here, and a register of {bits} bits holds {whole}"
            remark(worth[0], f"{text}: the tile has {size} along dimension {nest.dim}")
    known = nest.whole if nest.has_pieces else nest.strides
    for op in nest.ops:
        if type(op) in NOUNS and (found := access_stride(op, known, nest.dim)) is not None:
            stride, size = found
            if stride not in (0, size, -size):
                remark(op, f"this {NOUNS[type(op)]} is done one element at a time: {reason(stride, size)}")


def remark_single(nest: Nest) -> None:
    """The op because of which a nest has no vectors."""
    singles = [op for op in nest.ops if nest.is_single(op)]
    for op in singles[:1]:
        remark(op, f"this is computed one element at a time: {op.name} has no vector form")
    if not singles and (folds := [fold for fold in nest.folds if not nest.low.is_elementwise(fold.combine)]):
        remark(folds[0].op, "this reduction takes one element at a time: what it combines them with has no vector form")


def reason(stride: Stride, size: int) -> str:
    if stride == RUNTIME:
        return "how far its addresses are apart is known only at run time"
    if stride is None:
        return "its addresses follow no line that the compiler can see"
    return f"its addresses are {stride} bytes apart, and an element has {size}"


LEAST_COST = 20  # instructions per vector, in which a line can come
MOST_BYTES = 1 << 18  # of a tile, so that it is still there when it is stored to


def promised_stores(nest: Nest, op: Operation) -> list[Promised]:
    """The stores that nests behind `op` do at the same indices; none if this nest does not leave memory idle."""
    if not nest.low.target.stream_ahead or type(nest) is not Nest or nest.lanes == 1 or nest.cost() < LEAST_COST:
        return []
    if any(type(inner) in (tt.LoadOp, tt.StoreOp) for inner in nest.ops):
        return []
    found: list[Promised] = []
    unknown, later = set[SSAValue](), op.next_op
    while later is not None:
        if type(later) is ttc.NestOp and list(array_values(later.properties["shape"])) == list(nest.shape):
            found += stores_of(nest, later.regions[0].block, unknown)
        unknown.update(later.results)
        later = later.next_op
    return found


def stores_of(nest: Nest, block: Block, unknown: set[SSAValue]) -> list[Promised]:
    known, found = strides(block, nest.shape), list[Promised]()
    for store in block.ops:
        if type(store) is not tt.StoreOp or streams(store):
            continue
        size = element_bytes(store.operands[1].type)
        is_contiguous = access_stride(store, known, nest.dim) == (size, size)
        if is_contiguous and prod(nest.shape) * size <= MOST_BYTES:
            ops = address_ops(nest, block, store.operands[0], unknown)
            if ops is not None:
                past = NEVER
                if store in nest.low.streamed and (later := block.parent_op()) is not None:
                    past = is_large(nest.low, later, prod(nest.shape) * size)
                found.append(Promised(block, ops, store.operands[0], size, past))
    return found


def address_ops(nest: Nest, block: Block, address: SSAValue, unknown: set[SSAValue]) -> list[Operation] | None:
    """The ops of a block that make an address, in order; None if one is more than arithmetic or a value is not known
    yet.
    """
    needed, left = set[Operation](), [address]
    while left:
        value = left.pop()
        owner = value.owner
        if owner is block:
            continue
        if isinstance(owner, Block) or owner.parent_block() is not block:
            if value in unknown or value not in nest.low.values:
                return None
        elif type(owner) not in nest.low.elementwise:
            return None
        elif owner not in needed:
            needed.add(owner)
            left += owner.operands
    return [op for op in block.ops if op in needed]
