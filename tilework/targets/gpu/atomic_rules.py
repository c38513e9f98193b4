"""`tt.atomic_rmw` and `tt.atomic_cas` on global memory.

Where neighbours are known to have one address (``out + i // 64``), nobody reads what was there, and the order cannot be
seen, that is for integers, a thread combines its own, its warp combines theirs, and one lane does what is left.

Of the threads that hold copies of an element, one performs the atomic; where the old value is used, the others get it
through the op's scratch memory. A scalar is done by the first thread, and all get its result the same way. What is
masked off touches nothing and gives 0. The atomics of a tile are in no order: one fence before them, one behind them
order them with the rest.

Atomics at which programs take turns, and the elements of a tile too.

    tt.take_turn        the first thread waits until the counter of the launch is the number of this program
    tt.atomic_rmw       element after element: registers in program order; where a bit of the index is one of the lane or
                        warp, a loop over its values, in which the others wait
    tt.pass_turn        the counter goes to the next program; the last one sets it to 0, for the next launch

The counter comes in the second hidden parameter of a kernel (`runtime/devices/gpu/turn_counters.py`). Blocks must start
in the order of their numbers, x fastest: one that runs and waits keeps its place, and the one that it waits for has got
one before.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.private_atomics import NEUTRAL, Window, window
from tilework.ir import tt
from tilework.ir.effects import reads, writes
from tilework.ir.encodings import layout_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.functions import is_private
from tilework.ir.types import element_type, is_float, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import Bit, moving_bits, subsets
from tilework.targets.gpu.device import Atomic
from tilework.targets.gpu.global_access import both, copied_registers, pointee, store_predicate, width_of
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of, register_count
from tilework.targets.gpu.shared_access import Move, Table
from tilework.targets.gpu.words import from_memory, held_type, to_memory
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value, constant

Found = dict[int, Value]  # what was in memory, by register
Step = Callable[[int, Value | None], Value]


@lowers(tt.TakeTurnOp)
def lower_take_turn(low: Lowering, op: Operation) -> None:
    b, number = low.builder, turn_of(low, op)[0]
    counter = Atomic(low.turns, None, MemSemantic.ACQUIRE, MemSyncScope.GPU, True)

    def look(_: Value) -> tuple[Value, Value]:
        (seen,) = low.gpu.atomic_load(low, counter, i32)
        return seen, b.icmp("eq", seen, number)

    with b.if_(b.icmp("eq", low.thread, 0)):
        b.until(constant(i32, 0), look)
    low.barrier(all_memory=True)


@lowers(tt.PassTurnOp)
def lower_pass_turn(low: Lowering, op: Operation) -> None:
    b, (number, total) = low.builder, turn_of(low, op)
    following = b.add(number, 1)
    low.barrier(all_memory=True)
    with b.if_(b.icmp("eq", low.thread, 0)):
        low.gpu.fence(b, MemSyncScope.GPU)
        counter = Atomic(low.turns, None, MemSemantic.RELEASE, MemSyncScope.GPU, False)
        low.gpu.atomic_rmw(low, counter, RMWOp.EXCH, [b.select(b.icmp("eq", following, total), 0, following)])


def turn_of(low: Lowering, op: Operation) -> tuple[Value, Value]:
    """The number of this program, and how many there are."""
    if low.facts.num_ctas > 1:
        raise low.refuse(op, "an ordered atomic in a kernel with num_ctas > 1")
    low.takes_turns = True
    b, gpu = low.builder, low.gpu
    x, y, z = (gpu.program_id(b, axis, clusters=False) for axis in range(3))
    width, height, depth = (gpu.num_programs(b, axis, clusters=False) for axis in range(3))
    return b.add(b.mul(b.add(b.mul(z, height), y), width), x), b.mul(b.mul(depth, height), width)


def one_by_one(low: Lowering, op: Operation, change: Step, nothing: Value, is_used: bool) -> Found:
    """``change(register, where)`` for every element of a tile, in row-major order; what it gives, `nothing` where that
    is not used.
    """
    bits = sorted(moving_bits(low, op, layout_of(op.operands[0].type)), key=lambda bit: (bit.dim, -bit.place))
    return Elements(low, change, nothing, is_used).emit(bits, 0, None)


class Elements(NamedTuple):
    """Walks over the bits of an index, the highest first."""

    low: Lowering
    change: Step
    nothing: Value
    is_used: bool

    def emit(self, bits: Sequence[Bit], register: int, where: Value | None) -> Found:
        if not bits:
            return {register: self.change(register, where)}
        if bits[0].level == "register":
            halves = [self.emit(bits[1:], register | on << bits[0].number, where) for on in (0, 1)]
            return halves[0] | halves[1]
        run = next((place for place, bit in enumerate(bits) if bit.level == "register"), len(bits))
        return self.turns(bits[:run], bits[run:], register, where)

    def turns(self, run: Sequence[Bit], rest: Sequence[Bit], register: int, where: Value | None) -> Found:
        """The lanes and warps that `run` tells apart, one after the other."""
        low, b = self.low, self.low.builder
        mine = constant(i32, 0)
        for bit in run:
            mine = b.or_(b.shl(mine, 1), b.and_(b.lshr(low.places[bit.level], bit.number), 1))
        inside = [register | place for place in subsets([bit.number for bit in rest if bit.level == "register"])]
        kept = [self.nothing] * len(inside) if self.is_used else []
        with b.loop_carrying(constant(i32, 0), constant(i32, 1 << len(run)), 1, kept, unroll=1) as loop:
            is_turn = b.icmp("eq", mine, loop.index)
            made = self.emit(rest, register, is_turn if where is None else b.and_(where, is_turn))
            if any(bit.level == "warp" for bit in run):
                low.barrier(all_memory=True)
            else:
                low.warp_barrier()
            if self.is_used:
                pairs = zip(inside, loop.carried, strict=True)
                loop.next([b.select(is_turn, made[number], old) for number, old in pairs])
        return dict(zip(inside, loop.results or [self.nothing] * len(inside), strict=True))


BITWISE = (RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH)
REDUCTIONS = {kind: kind.name.lower() for kind in NEUTRAL}  # as instructions of a warp are called
SIMPLE = {"add": "add", "and": "and_", "or": "or_", "xor": "xor"}  # as the builder calls them
LEAST_LANES = 2  # bits: fewer shuffles cost as much as they save
READING = (MemSemantic.RELAXED, MemSemantic.ACQUIRE)
Change = Callable[[int, Atomic], Sequence[Value]]  # from a register on


@lowers(tt.AtomicRMWOp)
def lower_rmw(low: Lowering, op: Operation) -> Registers:
    pointers, given, *masked = op.operands
    mask = masked[0] if masked else None
    element, addresses = pointee(pointers.type), low[pointers]
    gpu, held, kind = low.gpu, held_type(element), RMWOp(number_of(op, "atomic_rmw_op"))
    if only_reads(op, kind, low[given][0]):
        return perform(low, op, addresses, mask, 1, lambda place, at: gpu.atomic_load(low, at, held))
    counts = is_float(element) and kind is not RMWOp.FADD and kind not in BITWISE
    if counts or not gpu.has_atomic(kind, held):
        raise low.refuse(op, f"an atomic {kind.name.lower()} on {element}")
    if tt.is_ordered(op) and is_tensor(op.results[0].type):
        return change_in_order(low, op, kind, mask)
    if (place := window(op)) is not None:
        return collect(low, op, kind, mask, place)
    if any(equal := equal_addresses(low, op, kind)):
        return meet_in_warps(low, op, kind, mask, *equal)
    return change_tile(low, op, addresses, width_of(low, pointers, mask, held.bits), given, mask)


def change_tile(
    low: Lowering, op: Operation, addresses: Registers, most: int, given: SSAValue, mask: SSAValue | None
) -> Registers:
    """Change what is at the addresses, each `most` of which are neighbours, by the given values."""
    element, kind = element_type(given.type), RMWOp(number_of(op, "atomic_rmw_op"))
    width = low.gpu.atomic_width(kind, held_type(element), most)

    def change(place: int, at: Atomic) -> Sequence[Value]:
        changes = [to_memory(low, element, value) for value in low[given][place : place + width]]
        return low.gpu.atomic_rmw(low, at, kind, changes)

    return perform(low, op, addresses, mask, width, change)


def equal_addresses(low: Lowering, op: Operation, kind: RMWOp) -> tuple[int, int]:
    """The bits of registers' and of lanes' numbers along which values go to one place, and can meet before they do."""
    pointers, result = op.operands[0], op.results[0]
    if result.first_use is not None or kind not in NEUTRAL or register_type(element_type(result.type)) is not i32:
        return 0, 0
    registers, lanes = (low.equal_along(pointers, name) for name in ("register", "lane"))
    return registers & ~copied_registers(result.type), lanes if lanes.bit_count() >= LEAST_LANES else 0


def meet_in_warps(
    low: Lowering, op: Operation, kind: RMWOp, mask: SSAValue | None, registers: int, lanes: int
) -> Registers:
    """Combine what goes to one place, of registers and of lanes; the first lane of those that have it changes
    memory.
    """
    b, scope = low.builder, MemSyncScope(number_of(op, "scope", 1))
    pointers, values = op.operands[:2]
    neutral = constant(i32, NEUTRAL[kind])
    groups: dict[int, list[tuple[Value, Value | None]]] = {}

    def change(register: int, at: Atomic) -> Sequence[Value]:
        groups.setdefault(register & ~registers, []).append((low[values][register], at.may))
        return ()

    def merge() -> None:
        first = b.icmp("eq", b.and_(low.lane, lanes), 0) if lanes else None
        if lanes and MemSemantic(number_of(op, "sem", 4)) is not MemSemantic.RELAXED:
            low.warp_barrier()  # what lanes did before comes before what another one does for them
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
            low.warp_barrier()  # and what they do behind it, after

    return perform(low, op, low[pointers], mask, 1, change, merge)


def over_lanes(low: Lowering, kind: RMWOp, lanes: int, value: Value) -> Value:
    """The values of lanes that differ in the bits `lanes` of their numbers, combined, in all of them."""
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
    """Change what is at the addresses of a tile, one element after the other."""
    pointers, given = op.operands[:2]
    type, element, scope = op.results[0].type, element_type(given.type), MemSyncScope(number_of(op, "scope", 1))
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
    return told(low, op, found, copied_registers(type), mine)


def collect(low: Lowering, op: Operation, kind: RMWOp, mask: SSAValue | None, place: Window) -> Registers:
    """Change a table in shared memory where an element is within reach of it, then what it stands for."""
    b, gpu = low.builder, low.gpu
    pointers, values = op.operands[:2]
    element, address = pointee(pointers.type), low.scratch_address(op)
    base, neutral = low.scalar(place.base), constant(i32, NEUTRAL[kind])
    scope = MemSyncScope(number_of(op, "scope", 1))
    table = Table(low, address, place.entries, layout_of(values.type), element)
    left: list[tuple[Atomic, Value]] = []  # what is out of its reach
    table.fill(neutral)
    low.barrier()

    def change(register: int, at: Atomic) -> Sequence[Value]:
        apart, value = b.sub(b.ptrtoint(at.address, i64), b.ptrtoint(base, i64)), low[values][register]
        inside = b.icmp("ult", apart, 4 * place.entries)
        gpu.change_shared(b, b.gep(address, b.trunc(apart, i32)), both(low, at.may, inside), kind, value)
        left.append((at._replace(may=both(low, at.may, b.not_(inside))), value))
        return ()

    def merge() -> None:
        if any_left := [
            at.may for at, _ in left if at.may is not None
        ]:  # not if all is masked off, as the compiler knows
            with b.if_(reduce(b.or_, any_left)):
                for at, value in left:
                    gpu.atomic_rmw(low, at, kind, [value])
        low.barrier()
        for number, value in table.read():
            may = both(low, table.mine, b.icmp("ne", value, neutral))
            first, more = b.exact.get(number.text, (number, 0))
            where = b.gep(b.gep(base, b.mul(b.zext(first, i64), 4)), 4 * more)
            gpu.atomic_rmw(low, Atomic(where, may, MemSemantic.RELAXED, scope, False, True), kind, [value])

    made = perform(low, op, low[pointers], mask, 1, change, merge)
    if not ends_kernel(op):  # a thread reads what others have changed for it
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
    """Put the given values where the expected ones are."""
    element = element_type(given.type)

    def change(place: int, at: Atomic) -> Sequence[Value]:
        compared, value = (to_memory(low, element, low[operand][place]) for operand in (expected, given))
        return low.gpu.atomic_cas(low, at, compared, value)

    return perform(low, op, addresses, mask, 1, change)


def only_reads(op: Operation, kind: RMWOp, value: Value) -> bool:
    """Adding 0 to a scalar is a way to read it with an ordering."""
    is_zero = kind is RMWOp.ADD and value.constant == 0
    return is_zero and not is_tensor(op.results[0].type) and number_of(op, "sem", 4) in READING


def ends_kernel(op: Operation) -> bool:
    """Return True if nothing touches memory behind an op."""
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
    """Let the one thread that should do so change each group of `width` registers, and tell all what was there before.

    Then do `more` of the kind, if given.
    """
    type = op.results[0].type
    sem, scope = MemSemantic(number_of(op, "sem", 4)), MemSyncScope(number_of(op, "scope", 1))
    is_used = op.results[0].first_use is not None
    masks: Registers | None = low[mask] if mask is not None else None
    mine, copies = store_predicate(low, type), copied_registers(type)
    found: dict[int, Value] = {}
    places = [first for first in range(0, len(addresses), width) if not first & copies]
    is_fenced = (len(places) > 1 or more is not None) and sem is not MemSemantic.RELAXED
    if is_fenced and sem is not MemSemantic.ACQUIRE:
        low.gpu.fence(low.builder, scope)
    own, is_tile = MemSemantic.RELAXED if is_fenced else sem, is_tensor(type)
    for first in places:
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
    return told(low, op, found, copies, mine)


def told(low: Lowering, op: Operation, found: dict[int, Value], copies: int, mine: Value | None) -> Registers:
    """The old values, in all threads that hold the elements."""
    result, element, count = op.results[0], element_type(op.results[0].type), register_count(op.results[0].type)
    if result.first_use is None:
        return (constant(register_type(element), 0),) * count
    if op not in low.allocation.scratch:
        return tuple(found[register & ~copies] for register in range(count))
    if low.facts.num_ctas > 1 and shared_by_blocks(result.type):
        raise low.refuse(op, "an atomic whose result several blocks of a cluster use")
    places = dense(layout_of(result.type)) if is_tensor(result.type) else SCALAR
    move = Move(low, low.scratch_address(op), places, element)
    move.store_words(mine, found)
    low.barrier(all_memory=True)
    return move.load()


SCALAR = LinearLayout({"register": [], "lane": [], "warp": []}, (("offset", 1),))


def shared_by_blocks(type: Attribute) -> bool:
    """Return True if several blocks hold the same elements."""
    return not is_tensor(type) or not all(layout_of(type).by_in.get("block", ()))


def dense(tensor: LinearLayout) -> LinearLayout:
    """An offset for each different element of a block: neighbouring registers first, then lanes, then warps."""
    taken = 0
    bases: dict[str, list[tuple[int]]] = {}
    for name in ("register", "lane", "warp"):
        bases[name] = []
        for column in tensor.by_in[name]:
            bases[name].append((1 << taken if column else 0,))
            taken += bool(column)
    return LinearLayout(bases, (("offset", 1 << taken),))
