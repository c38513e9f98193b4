"""`tt.atomic_rmw` and `tt.atomic_cas` on global memory.

Where adjacent elements are known to have one address (``out + i // 64``), the old value is unused and the order is
unobservable (integers), each thread combines its own elements, each warp combines those of its threads, and one lane
performs the atomic.

Of the threads that hold duplicates of an element, one performs the atomic; where the old value is used, the others get
it through the op's scratch memory. The first thread performs a scalar atomic, and all get its result the same way.
Elements that are masked off access no memory and return 0. The atomics of a tile are unordered among themselves: one
fence before and one after them order them with other accesses.

Ordered atomics run in program order, and within a tile in element order:

    tt.ordered_begin        the first thread waits until the counter of the launch equals the id of this program
    tt.atomic_rmw       one element at a time: registers in program order; an index bit that is a lane or warp bit
                        becomes a loop over its values, in which the other lanes or warps wait
    tt.ordered_end        the counter advances to the next program; the last one resets it to 0 for the next launch

The counter is the second hidden parameter of a kernel (`runtime/devices/gpu/gpu_launcher.py`). This relies on blocks
being scheduled in the order of their ids, x fastest: a block that waits is resident, and so is the one it waits for.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import NamedTuple

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.scratch import NEUTRAL, Window, window
from tilework.ir import scf, tt
from tilework.ir.effects import reads, writes
from tilework.ir.encodings import layout_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.functions import is_private
from tilework.ir.types import element_type, int_property, is_float, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import Bit, moving_bits, subsets
from tilework.targets.gpu.device import Atomic
from tilework.targets.gpu.global_access import both, copied_registers, pointee, store_predicate, width_of
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, register_count
from tilework.targets.gpu.packing import from_memory, held_type, to_memory
from tilework.targets.gpu.shared_access import Move, Table
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value, constant

Found = dict[int, Value]  # the old values, by register
Step = Callable[[int, Value | None], Value]


@lowers(tt.OrderedBeginOp)
def lower_ordered_begin(low: Lowering, op: Operation) -> None:
    b, program = low.builder, program_order(low, op)[0]
    counter = Atomic(low.ticket_counter, None, MemSemantic.ACQUIRE, MemSyncScope.GPU, True)

    def look(_: Value) -> tuple[Value, Value]:
        (seen,) = low.gpu.atomic_load(low, counter, i32)
        return seen, b.icmp("eq", seen, program)

    with b.if_(b.icmp("eq", low.thread, 0)):
        b.until(constant(i32, 0), look)
    low.barrier(all_memory=True)


@lowers(tt.OrderedEndOp)
def lower_ordered_end(low: Lowering, op: Operation) -> None:
    b, (program, total) = low.builder, program_order(low, op)
    following = b.add(program, 1)
    low.barrier(all_memory=True)
    with b.if_(b.icmp("eq", low.thread, 0)):
        low.gpu.fence(b, MemSyncScope.GPU)
        counter = Atomic(low.ticket_counter, None, MemSemantic.RELEASE, MemSyncScope.GPU, False)
        low.gpu.atomic_rmw(low, counter, RMWOp.EXCH, [b.select(b.icmp("eq", following, total), 0, following)])


def program_order(low: Lowering, op: Operation) -> tuple[Value, Value]:
    """Return the linear id of this program, and the number of programs."""
    if low.facts.num_ctas > 1:
        raise low.refuse(op, "an ordered atomic in a kernel with num_ctas > 1")
    low.orders_programs = True
    b, gpu = low.builder, low.gpu
    x, y, z = (gpu.program_id(b, axis, clusters=False) for axis in range(3))
    width, height, depth = (gpu.num_programs(b, axis, clusters=False) for axis in range(3))
    return b.add(b.mul(b.add(b.mul(z, height), y), width), x), b.mul(b.mul(depth, height), width)


def one_by_one(low: Lowering, op: Operation, change: Step, nothing: Value, is_used: bool) -> Found:
    """Emit ``change(register, where)`` for every element of a tile, in row-major order, and return the results
    (`nothing` if they are unused).
    """
    bits = sorted(moving_bits(low, op, layout_of(op.operands[0].type)), key=lambda bit: (bit.dim, -bit.position))
    return Elements(low, change, nothing, is_used).emit(bits, 0, None)


class Elements(NamedTuple):
    """A walk over the bits of an index, from the highest."""

    low: Lowering
    change: Step
    nothing: Value
    is_used: bool

    def emit(self, bits: Sequence[Bit], register: int, where: Value | None) -> Found:
        if not bits:
            return {register: self.change(register, where)}
        if bits[0].level == "register":
            halves = [self.emit(bits[1:], register | on << bits[0].index, where) for on in (0, 1)]
            return halves[0] | halves[1]
        run = next((index for index, bit in enumerate(bits) if bit.level == "register"), len(bits))
        return self.serialize(bits[:run], bits[run:], register, where)

    def serialize(self, run: Sequence[Bit], rest: Sequence[Bit], register: int, where: Value | None) -> Found:
        """Loop over the lanes and warps that the bits of `run` distinguish, one at a time."""
        low, b = self.low, self.low.builder
        mine = constant(i32, 0)
        for bit in run:
            mine = b.or_(b.shl(mine, 1), b.and_(b.lshr(low.ids[bit.level], bit.index), 1))
        inside = [register | other for other in subsets([bit.index for bit in rest if bit.level == "register"])]
        kept = [self.nothing] * len(inside) if self.is_used else []
        with b.loop_carrying(constant(i32, 0), constant(i32, 1 << len(run)), 1, kept, unroll=1) as loop:
            is_selected = b.icmp("eq", mine, loop.index)
            made = self.emit(rest, register, is_selected if where is None else b.and_(where, is_selected))
            if any(bit.level == "warp" for bit in run):
                low.barrier(all_memory=True)
            else:
                low.warp_barrier()
            if self.is_used:
                pairs = zip(inside, loop.carried, strict=True)
                loop.next([b.select(is_selected, made[member], old) for member, old in pairs])
        return dict(zip(inside, loop.results or [self.nothing] * len(inside), strict=True))


BITWISE = (RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH)
REDUCTIONS = {kind: kind.name.lower() for kind in NEUTRAL}  # the names of warp reductions
SIMPLE = {"add": "add", "and": "and_", "or": "or_", "xor": "xor"}  # methods of the builder
LEAST_LANES = 2  # bits of the lane id: with fewer, shuffles cost as much as they save
READING = (MemSemantic.RELAXED, MemSemantic.ACQUIRE)
Change = Callable[[int, Atomic], Sequence[Value]]  # the first register, and the access


@lowers(tt.AtomicRMWOp)
def lower_rmw(low: Lowering, op: Operation) -> Registers:
    pointers, given, *masked = op.operands
    mask = masked[0] if masked else None
    element, addresses = pointee(pointers.type), low[pointers]
    gpu, held, kind = low.gpu, held_type(element), RMWOp(int_property(op, "atomic_rmw_op"))
    if only_reads(op, kind, low[given][0]):
        return perform(low, op, addresses, mask, 1, lambda _, at: gpu.atomic_load(low, at, held))
    counts = is_float(element) and kind is not RMWOp.FADD and kind not in BITWISE
    if counts or not gpu.has_atomic(kind, held):
        raise low.refuse(op, f"an atomic {kind.name.lower()} on {element}")
    if tt.is_ordered(op) and is_tensor(op.results[0].type):
        return change_in_order(low, op, kind, mask)
    if (reach := window(op)) is not None:
        return collect(low, op, kind, mask, reach)
    if any(equal := equal_addresses(low, op, kind)):
        return meet_in_warps(low, op, kind, mask, *equal)
    return change_tile(low, op, addresses, width_of(low, pointers, mask, held.bits), given, mask)


def change_tile(
    low: Lowering, op: Operation, addresses: Registers, most: int, given: SSAValue, mask: SSAValue | None
) -> Registers:
    """Perform an atomic read-modify-write at the addresses, groups of `most` of which are adjacent."""
    element, kind = element_type(given.type), RMWOp(int_property(op, "atomic_rmw_op"))
    width = low.gpu.atomic_width(kind, held_type(element), most)

    def change(first: int, at: Atomic) -> Sequence[Value]:
        changes = [to_memory(low, element, value) for value in low[given][first : first + width]]
        return low.gpu.atomic_rmw(low, at, kind, changes)

    return perform(low, op, addresses, mask, width, change)


def equal_addresses(low: Lowering, op: Operation, kind: RMWOp) -> tuple[int, int]:
    """Return the masks of register and lane index bits along which values have one address and can be combined."""
    pointers, result = op.operands[0], op.results[0]
    if result.first_use is not None or kind not in NEUTRAL or register_type(element_type(result.type)) is not i32:
        return 0, 0
    registers, lanes = (low.equal_along(pointers, name) for name in ("register", "lane"))
    return registers & ~copied_registers(result.type), lanes if lanes.bit_count() >= LEAST_LANES else 0


def meet_in_warps(
    low: Lowering, op: Operation, kind: RMWOp, mask: SSAValue | None, registers: int, lanes: int
) -> Registers:
    """Combine the values of registers and lanes that have one address; the first of these lanes performs the atomic."""
    b, scope = low.builder, MemSyncScope(int_property(op, "scope", 1))
    pointers, values = op.operands[:2]
    neutral = constant(i32, NEUTRAL[kind])
    groups: dict[int, list[tuple[Value, Value | None]]] = {}

    def change(register: int, at: Atomic) -> Sequence[Value]:
        groups.setdefault(register & ~registers, []).append((low[values][register], at.may))
        return ()

    def merge() -> None:
        first = b.icmp("eq", b.and_(low.lane, lanes), 0) if lanes else None
        if lanes and MemSemantic(int_property(op, "sem", 4)) is not MemSemantic.RELAXED:
            low.warp_barrier()  # earlier accesses of all lanes precede the atomic that one lane performs
        for register, given in groups.items():
            counted = [value if may is None else b.select(may, value, neutral) for value, may in given]
            value = over_lanes(low, kind, lanes, reduce(partial(combined, low, kind), counted))
            wanted = [may for _, may in given if may is not None]
            may = None
            if len(wanted) == len(given):
                may = b.icmp("ne", over_lanes(low, RMWOp.OR, lanes, b.zext(reduce(b.or_, wanted), i32)), 0)
            at = Atomic(low[pointers][register], both(low, first, may), MemSemantic.RELAXED, scope, False, True)
            low.gpu.atomic_rmw(low, at, kind, [value])
        if lanes and not ends_kernel(op):
            low.warp_barrier()  # later accesses of all lanes follow it

    return perform(low, op, low[pointers], mask, 1, change, merge)


def over_lanes(low: Lowering, kind: RMWOp, lanes: int, value: Value) -> Value:
    """Combine the values of all lanes that differ only in the bits `lanes` of their ids; each gets the result."""
    if lanes == low.lane_mask and (made := low.gpu.reduce_warp(low.builder, REDUCTIONS[kind], value)) is not None:
        return made
    for bit in bits_of(lanes):
        value = combined(low, kind, value, low.shuffle_xor(value, bit))
    return value


def combined(low: Lowering, kind: RMWOp, one: Value, other: Value) -> Value:
    name = REDUCTIONS[kind]
    if name in SIMPLE:
        return getattr(low.builder, SIMPLE[name])(one, other)
    return low.builder.intrinsic(name if name.startswith("u") else f"s{name}", i32, one, other)


def bits_of(mask: int) -> list[int]:
    return [1 << bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def change_in_order(low: Lowering, op: Operation, kind: RMWOp, mask: SSAValue | None) -> Registers:
    """Perform the atomics of a tile one element at a time."""
    pointers, given = op.operands[:2]
    type, element, scope = op.results[0].type, element_type(given.type), MemSyncScope(int_property(op, "scope", 1))
    is_used, mine = op.results[0].first_use is not None, store_predicate(low, type)
    nothing = constant(register_type(element), 0)

    def change(register: int, where: Value | None) -> Value:
        may = both(low, both(low, mine, low[mask][register] if mask is not None else None), where)
        at = Atomic(low[pointers][register], may, MemSemantic.RELAXED, scope, is_used, is_of_tile=True)
        old = low.gpu.atomic_rmw(low, at, kind, [to_memory(low, element, low[given][register])])
        return from_memory(low, element, old[0]) if is_used else nothing

    low.gpu.fence(low.builder, scope)
    found = one_by_one(low, op, change, nothing, is_used)
    low.gpu.fence(low.builder, scope)
    return broadcast_old(low, op, found, copied_registers(type), mine)


def collect(low: Lowering, op: Operation, kind: RMWOp, mask: SSAValue | None, reach: Window) -> Registers:
    """Accumulate into a table in shared memory where an address is in its window, then update global memory from it."""
    b, gpu = low.builder, low.gpu
    pointers, values = op.operands[:2]
    element, address = pointee(pointers.type), low.scratch_address(op)
    base, neutral = low.scalar(reach.base), constant(i32, NEUTRAL[kind])
    scope = MemSyncScope(int_property(op, "scope", 1))
    table = Table(low, address, reach.entries, layout_of(values.type), element)
    left: list[tuple[Atomic, Value]] = []  # atomics outside the window
    table.fill(neutral)
    low.barrier()

    def change(register: int, at: Atomic) -> Sequence[Value]:
        apart, value = b.sub(b.ptrtoint(at.address, i64), b.ptrtoint(base, i64)), low[values][register]
        inside = b.icmp("ult", apart, 4 * reach.entries)
        gpu.change_shared(b, b.gep(address, b.trunc(apart, i32)), both(low, at.may, inside), kind, value)
        left.append((at._replace(may=both(low, at.may, b.not_(inside))), value))
        return ()

    def merge() -> None:
        # empty if the mask is a constant false
        if any_left := [at.may for at, _ in left if at.may is not None]:
            with b.if_(reduce(b.or_, any_left)):
                for at, value in left:
                    gpu.atomic_rmw(low, at, kind, [value])
        low.barrier()
        for entry, value in table.read():
            may = both(low, table.mine, b.icmp("ne", value, neutral))
            first, more = b.exact.get(entry.text, (entry, 0))
            where = b.gep(b.gep(base, b.mul(b.zext(first, i64), 4)), 4 * more)
            gpu.atomic_rmw(low, Atomic(where, may, MemSemantic.RELAXED, scope, False, True), kind, [value])

    made = perform(low, op, low[pointers], mask, 1, change, merge)
    if not ends_kernel(op):  # a thread may read what others updated on its behalf
        low.barrier(all_memory=True)
    return made


@lowers(tt.AtomicCASOp)
def lower_cas(low: Lowering, op: Operation) -> Registers:
    held = held_type(pointee(op.operands[0].type))
    if not low.gpu.has_atomic(None, held):
        raise low.refuse(op, f"an atomic on {held.bits} bits")
    return exchange_tile(low, op, low[op.operands[0]], *op.operands[1:])


def exchange_tile(
    low: Lowering,
    op: Operation,
    addresses: Registers,
    expected: SSAValue,
    given: SSAValue,
    mask: SSAValue | None = None,
) -> Registers:
    """Compare and swap the elements of a tile."""
    element = element_type(given.type)

    def change(register: int, at: Atomic) -> Sequence[Value]:
        compared, value = (to_memory(low, element, low[operand][register]) for operand in (expected, given))
        return low.gpu.atomic_cas(low, at, compared, value)

    return perform(low, op, addresses, mask, 1, change)


def only_reads(op: Operation, kind: RMWOp, value: Value) -> bool:
    """Return True for an addition of 0 to a scalar: an idiom for an ordered load."""
    is_zero = kind is RMWOp.ADD and value.constant == 0
    return is_zero and not is_tensor(op.results[0].type) and int_property(op, "sem", 4) in READING


def ends_kernel(op: Operation) -> bool:
    """Return True if no op after this one accesses memory."""
    following = op.next_op
    while following is not None:
        if reads(following) or writes(following):
            return False
        following = following.next_op
    parent = op.parent_op()
    if type(parent) is scf.IfOp:
        return ends_kernel(parent)
    return isinstance(parent, tt.FuncOp) and not is_private(parent) and len(parent.regions[0].blocks) == 1


def perform(
    low: Lowering,
    op: Operation,
    addresses: Registers,
    mask: SSAValue | None,
    width: int,
    change: Change,
    more: Callable[[], None] | None = None,
) -> Registers:
    """Update each group of `width` registers by one of the threads that hold it, and broadcast the old values.

    `more`, if given, emits further atomics after them.
    """
    type = op.results[0].type
    sem, scope = MemSemantic(int_property(op, "sem", 4)), MemSyncScope(int_property(op, "scope", 1))
    is_used = op.results[0].first_use is not None
    masks: Registers | None = low[mask] if mask is not None else None
    mine, copies = store_predicate(low, type), copied_registers(type)
    found: dict[int, Value] = {}
    firsts = [first for first in range(0, len(addresses), width) if not first & copies]
    is_fenced = (len(firsts) > 1 or more is not None) and sem is not MemSemantic.RELAXED
    if is_fenced and sem is not MemSemantic.ACQUIRE:
        low.gpu.fence(low.builder, scope)
    own, is_tile = MemSemantic.RELAXED if is_fenced else sem, is_tensor(type)
    for first in firsts:
        may = both(low, mine, masks[first] if masks is not None else None)
        if may is not None and may.constant == 0:
            found.update(dict.fromkeys(range(first, first + width), constant(register_type(element_type(type)), 0)))
            continue
        old = change(first, Atomic(addresses[first], may, own, scope, is_used, is_tile))
        found.update(enumerate([from_memory(low, element_type(type), value) for value in old], first))
    if more is not None:
        more()
    if is_fenced and sem is not MemSemantic.RELEASE and not ends_kernel(op):
        low.gpu.fence(low.builder, scope)
    return broadcast_old(low, op, found, copies, mine)


def broadcast_old(low: Lowering, op: Operation, found: dict[int, Value], copies: int, mine: Value | None) -> Registers:
    """Return the old values in all threads that hold the elements."""
    result, element, count = op.results[0], element_type(op.results[0].type), register_count(op.results[0].type)
    if result.first_use is None:
        return (constant(register_type(element), 0),) * count
    if op not in low.allocation.scratch:
        return tuple(found[register & ~copies] for register in range(count))
    if low.facts.num_ctas > 1 and shared_by_blocks(result.type):
        raise low.refuse(op, "an atomic whose result several blocks of a cluster use")
    offsets = dense(layout_of(result.type)) if is_tensor(result.type) else SCALAR
    move = Move(low, low.scratch_address(op), offsets, element)
    move.store_vectors(mine, found)
    low.barrier(all_memory=True)
    return move.load()


SCALAR = LinearLayout({"register": [], "lane": [], "warp": []}, (("offset", 1),))


def shared_by_blocks(type: Attribute) -> bool:
    """Return True if several blocks hold the same elements."""
    return not is_tensor(type) or not all(layout_of(type).by_in.get("block", ()))


def dense(tensor: LinearLayout) -> LinearLayout:
    """Return dense offsets of the distinct elements of a block: registers fastest, then lanes, then warps."""
    taken = 0
    bases: dict[str, list[tuple[int]]] = {}
    for name in ("register", "lane", "warp"):
        bases[name] = []
        for column in tensor.by_in[name]:
            bases[name].append((1 << taken if column else 0,))
            taken += bool(column)
    return LinearLayout(bases, (("offset", 1 << taken),))
