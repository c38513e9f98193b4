"""`ttc.check` (and `ttc.assert` in nests): what the sanitizer has put before each access.

A launch of a sanitized kernel passes one slot more than the kernel has parameters: the address of the *table*, i64 words
that `NAME_range` keeps at byte TABLE of the arena.

    -code    0, or 1 + the linear id of a program in which the assert of this code, a warning, did not hold
    0        0, or 1 once a check has failed: programs that have not begun are left out then
    1        the address that must not be touched
    2        the code of the check (interface.py)
    3 4 5    the program
    6        the number of entries
    7 ..     entries of three words: first byte, byte behind the last, 1 if it is no array but an address of unknown extent

There is one entry per parameter, then one per array that was registered; an entry of an argument that is no array is
empty. Addresses must be multiples of the size of an element, counted from the start of the array (which may lie anywhere);
those of atomics, also counted from 0. A chunk whose first and last address lie in one of the arrays it may come from is good, whatever its mask; only
otherwise the lanes that are on are looked at one by one, by one function of the module. A check that fails sets the fault
code and ends the function; a function that called it ends too.
"""

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from tilework.ir import ttc
from tilework.ir.types import PointerType, array_values
from tilework.targets.cpu.lower.debug import code_of, stop
from tilework.targets.cpu.lower.lanes import Interval, Kind, Linear
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.nest_access import mask_bits, pointer_vector
from tilework.targets.cpu.lower.open_nest import OpenNest
from tilework.targets.cpu.lower.table import ENTRIES, TABLE, WORDS
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes
from tilework.targets.llvm.types import i1, i32, i64, ptr
from tilework.targets.llvm.values import Value, constant

STOPPED = 0
ANYWHERE = -1  # in place of the bits of the arguments
MOST_BITS = 63
MOST_ARRAYS = 4  # that are tried without a call
SYMBOL = "tilework.check"
RARE = (1, 1 << 20)


@lowers(ttc.CheckOp)
def lower_check(low: Lowering, op: Operation) -> Value:
    """Outside of nests: one address."""
    pointer, *mask = (low[operand] for operand in op.operands)
    check(low, op, [pointer], lambda: pointer, lambda: low.builder.zext(mask[0] if mask else constant(i1, 1), i64))
    return pointer


def emit_check(nest: OpenNest, op: Operation) -> None:
    """In a nest: the addresses of all lanes."""
    pointer, *rest = op.operands
    address = nest.kind(pointer)
    nest.kinds[op.results[0]] = address
    mask: Kind = nest.kind(rest[0]) if rest else constant(i1, 1)
    if isinstance(mask, Linear) or (rest and nest.lanes == 1):
        mask = nest.vector(rest[0])
    elif isinstance(mask, Interval) and nest.mode == "fast":
        mask = constant(i1, 1)
    found = extremes(nest, address)
    places = (lambda: found[0]) if nest.lanes == 1 else (lambda: pointer_vector(nest, address))
    check(nest.low, op, found, places, lambda: lane_bits(nest, mask))


def extremes(nest: OpenNest, address: Kind) -> list[Value]:
    """Addresses between which all others lie: those of the first lane and of the last, or all."""
    if not isinstance(address, Linear):
        assert isinstance(address, Value)
        return [address]
    first = nest.base(address)
    return [first] if nest.lanes == 1 else [first, nest.b.gep(first, nest.b.mul(address.stride, nest.lanes - 1))]


def lane_bits(nest: OpenNest, mask: Kind) -> Value:
    """The lanes that are on, as the bits of an i64."""
    b = nest.b
    if isinstance(mask, Value) and not mask.type.is_vector:
        return b.select(mask, constant(i64, (1 << nest.lanes) - 1), constant(i64, 0))
    return mask_bits(nest, mask)


def check(
    low: Lowering, op: Operation, extremes: list[Value], places: Callable[[], Value], bits: Callable[[], Value]
) -> None:
    """Stop unless every address that counts lies in an array it may come from."""
    b = low.builder
    low.uses_checks = True
    type = op.operands[0].type
    assert isinstance(type, PointerType)
    size, slots = element_bytes(type.pointee), array_values(op.properties["arguments"])
    table = b.load(ptr, b.gep(low.arena, TABLE), align=8)
    strict = size - 1 if is_atomic(op) else 0
    with b.if_(b.not_(all_inside(low, table, extremes, size, strict, slots)), weights=RARE):
        found = places()
        held = b.alloca(found.type, align=64)
        b.store(found, held, align=64)
        which = sum(1 << slot for slot in slots) if slots and max(slots) < MOST_BITS else ANYWHERE
        numbers = [*(constant(i64, number) for number in (size, strict, which)), constant(i32, code_of(low, op))]
        failed = b.call(Value(ptr, f"@{SYMBOL}"), i1, [table, held, bits(), *numbers, *low.program])
        with b.if_(failed, weights=RARE):
            stop(low, code_of(low, op))


def is_atomic(op: Operation) -> bool:
    verb = op.properties["verb"]
    assert isinstance(verb, StringAttr)
    return verb.data == "updates"


def all_inside(
    low: Lowering, table: Value, extremes: list[Value], size: int, strict: int, slots: Sequence[int]
) -> Value:
    """Whether all addresses are in one array, and aligned; false where that is not cheap to say."""
    b = low.builder
    if not slots or len(slots) > MOST_ARRAYS:
        return constant(i1, 0)
    numbers = [b.ptrtoint(address, address.type.with_scalar(i64)) for address in extremes]
    inside: Value | None = None
    for slot in slots:
        start, end = (b.load(i64, b.gep(table, 8 * (ENTRIES + WORDS * slot + word)), align=8) for word in (0, 1))
        room = b.sub(b.umax(b.sub(end, start), constant(i64, size - 1)), size - 1)
        places = [b.sub(number, like(b, start, number)) for number in numbers]
        here = reduce(b.and_, [every(b, b.icmp("ult", place, like(b, room, place))) for place in places])
        if size > 1:
            here = b.and_(here, is_multiple(b, reduce(b.or_, places), size - 1))
        inside = here if inside is None else b.or_(inside, here)
    assert inside is not None
    return b.and_(inside, is_multiple(b, reduce(b.or_, numbers), strict)) if strict else inside


def is_multiple(b: Builder, numbers: Value, low_bits: int) -> Value:
    return every(b, b.icmp("eq", b.and_(numbers, low_bits), constant(numbers.type, 0)))


def like(b: Builder, value: Value, other: Value) -> Value:
    """A scalar in as many lanes as `other` has."""
    return b.splat(value, other.type.count) if other.type.is_vector else value


def every(b: Builder, condition: Value) -> Value:
    return b.icmp("eq", b.mask_bits(condition), -1) if condition.type.is_vector else condition


def emit_assert(nest: OpenNest, op: Operation) -> None:
    """A condition of one element, for all lanes at once."""
    low, holds = nest.low, nest.vector(op.operands[0])
    with low.builder.if_(low.builder.not_(every(low.builder, holds)), weights=RARE):
        stop(low, code_of(low, op))


def stop_with_callee(low: Lowering) -> None:
    """A function that was called and could not go on ends its caller too."""
    b = low.builder
    code = b.load(i32, low.arena, align=4)
    with b.if_(b.icmp("ne", code, 0), weights=RARE):
        stop(low, code)


def begin_range(b: Builder, args: Value, slots: int, arena: Value) -> Value:
    """At the start of `NAME_range`: the table."""
    table = b.load(ptr, b.gep(args, 8 * slots), align=8)
    b.store(table, b.gep(arena, TABLE), align=8)
    return table


def leave_if_stopped(b: Builder, table: Value) -> None:
    """Before each program: nothing to do any more after a failure elsewhere."""
    stopped = b.load(i64, b.gep(table, 8 * STOPPED), align=8, ordering="monotonic")
    with b.if_(b.icmp("ne", stopped, 0), weights=RARE):
        b.ret(constant(i32, 0))


FUNCTION = f"""
define internal i1 @{SYMBOL}(ptr %table, ptr %places, i64 %bits, i64 %size, i64 %strict, i64 %which, i32 %code, i32 %x, i32 %y, i32 %z) cold noinline nounwind {{
entry:
  %count.at = getelementptr i64, ptr %table, i64 {ENTRIES - 1}
  %count = load i64, ptr %count.at, align 8
  %entries = getelementptr i64, ptr %table, i64 {ENTRIES}
  br label %widen
widen:
  %w = phi i64 [ 0, %entry ], [ %w.next, %widen.more ]
  %wide = phi i64 [ %which, %entry ], [ %wide.next, %widen.more ]
  %w.done = icmp uge i64 %w, %count
  br i1 %w.done, label %lanes, label %widen.more
widen.more:
  %w.word = mul i64 %w, {WORDS}
  %w.entry = getelementptr i64, ptr %entries, i64 %w.word
  %w.at = getelementptr i64, ptr %w.entry, i64 2
  %w.flag = load i64, ptr %w.at, align 8
  %w.many = icmp ugt i64 %w, 63
  %w.small = select i1 %w.many, i64 63, i64 %w
  %w.bit = lshr i64 %which, %w.small
  %w.both = and i64 %w.bit, %w.flag
  %w.any = icmp ne i64 %w.both, 0
  %wide.next = select i1 %w.any, i64 {ANYWHERE}, i64 %wide
  %w.next = add i64 %w, 1
  br label %widen
lanes:
  %left = phi i64 [ %bits, %widen ], [ %left.next, %good ]
  %number = phi i64 [ 0, %widen ], [ %number.next, %good ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %fine, label %lane.on
lane.on:
  %on = trunc i64 %left to i1
  br i1 %on, label %lane, label %good
lane:
  %place = getelementptr i64, ptr %places, i64 %number
  %address = load i64, ptr %place, align 8
  %low = sub i64 %size, 1
  %odd = and i64 %address, %strict
  %aligned = icmp eq i64 %odd, 0
  br i1 %aligned, label %search, label %bad
search:
  %e = phi i64 [ 0, %lane ], [ %e.next, %other ]
  %e.done = icmp uge i64 %e, %count
  br i1 %e.done, label %bad, label %look
look:
  %e.word = mul i64 %e, {WORDS}
  %start.at = getelementptr i64, ptr %entries, i64 %e.word
  %end.at = getelementptr i64, ptr %start.at, i64 1
  %start = load i64, ptr %start.at, align 8
  %end = load i64, ptr %end.at, align 8
  %e.many = icmp ugt i64 %e, 63
  %e.small = select i1 %e.many, i64 63, i64 %e
  %e.bit = lshr i64 %wide, %e.small
  %allowed = trunc i64 %e.bit to i1
  %after = icmp uge i64 %address, %start
  %before = icmp ult i64 %address, %end
  %space = sub i64 %end, %address
  %fits = icmp uge i64 %space, %size
  %offset = sub i64 %address, %start
  %rest = and i64 %offset, %low
  %multiple = icmp eq i64 %rest, 0
  %in.1 = and i1 %allowed, %after
  %in.2 = and i1 %before, %fits
  %in.3 = and i1 %in.1, %multiple
  %in = and i1 %in.2, %in.3
  br i1 %in, label %good, label %other
other:
  %e.next = add i64 %e, 1
  br label %search
good:
  %left.next = lshr i64 %left, 1
  %number.next = add i64 %number, 1
  br label %lanes
fine:
  ret i1 false
bad:
  %claim = cmpxchg ptr %table, i64 0, i64 1 monotonic monotonic, align 8
  %won = extractvalue {{ i64, i1 }} %claim, 1
  br i1 %won, label %record, label %failed
record:
  %address.at = getelementptr i64, ptr %table, i64 1
  store i64 %address, ptr %address.at, align 8
  %code.wide = zext i32 %code to i64
  %code.at = getelementptr i64, ptr %table, i64 2
  store i64 %code.wide, ptr %code.at, align 8
  %x.wide = zext i32 %x to i64
  %x.at = getelementptr i64, ptr %table, i64 3
  store i64 %x.wide, ptr %x.at, align 8
  %y.wide = zext i32 %y to i64
  %y.at = getelementptr i64, ptr %table, i64 4
  store i64 %y.wide, ptr %y.at, align 8
  %z.wide = zext i32 %z to i64
  %z.at = getelementptr i64, ptr %table, i64 5
  store i64 %z.wide, ptr %z.at, align 8
  br label %failed
failed:
  ret i1 true
}}
"""
