"""The guards of host tensor descriptors: their members, the integers in their lists, and their tensor maps.

A program may change a descriptor in any way: assign another base or list, change an item of a list, resize the tensor.
Reading all members at every launch is slow, so each entry has a small cache of descriptors, indexed by the version of
the descriptor's dictionary. `guard_known` looks there: while the version is the same and the lists hold the same
objects, the members have not changed. `guard_remember` adds a line to the cache. The guard of the base runs at every
launch.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import YES, Guard, Writer, guard, is_class
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value

SPREAD = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio
MAP_SHIFT = layout.MAP_WORDS.bit_length() - 1
MEMBERS = 6  # of a descriptor: base, sizes, strides, block, padding, rounding


def dictionary_here(b: Writer, object: Value) -> Value:
    """Load the pointer to an object's dictionary, which is in front of the object (`dictionary_offset` of
    `machine.py`). It is null or odd if there is no dictionary yet.
    """
    return b.load(ptr, b.gep(object, b.ptrtoint(b.context("dictionary"), i64)))


def dictionary(b: Writer, object: Value, otherwise: Block | None = None) -> Value:
    """The `__dict__` of an object."""

    def made() -> list[Value]:
        found = b.api("PyObject_GenericGetDict", object, NULL)
        b.need(b.is_object(found), otherwise)
        b.drop(found)  # the object has it
        return [found]

    def here() -> list[Value]:
        found = dictionary_here(b, object)
        is_there = b.and_(b.is_object(found), b.icmp("eq", b.and_(b.ptrtoint(found, i64), 1), 0))
        return list(b.if_else(is_there, lambda: [found], made))

    (found,) = b.if_else(b.is_object(b.context("dictionary")), here, made)
    return found


def known_line(b: Writer, version: Value) -> Value:
    """Return the index of a version's cache line: a hash, because the distance of versions depends on Python."""
    return b.lshr(b.mul(version, num(SPREAD)), num(64 - (layout.KNOWN_LINES - 1).bit_length()))


def need_lists(b: Writer, lists: Value, rank: Value, items: Value, otherwise: Block) -> None:
    """Continue if all lists of a descriptor (NULL: it is a tuple) hold the `rank` objects that they held before."""
    for part in range(3):
        holder = b.at(lists, 8 * part, ptr)
        with b.if_(b.is_object(holder)):
            b.need(b.icmp("eq", b.size(holder), rank), otherwise)
            both = b.at(holder, layout.LIST_ITEMS, ptr), b.gep(items, b.mul(rank, part), ptr)
            with b.loop(0, rank) as index:
                item, known = (b.load(ptr, b.gep(first, index, ptr)) for first in both)
                b.need(b.icmp("eq", item, known), otherwise)


@guard
def guard_known(b: Writer, g: Guard) -> None:
    """Accept a descriptor that has not changed since `guard_remember`: store its base, sizes and strides, and skip the
    guards that would read them.
    """
    unknown = b.new_block("unknown")
    version, rank = b.at(dictionary(b, g.arg), layout.DICT_VERSION), b.sext(g.mode(), i64)
    line = b.gep(g.low_address(), b.mul(known_line(b, version), 8 * layout.KNOWN_LINE))
    b.need(b.icmp("eq", version, b.load(i64, line)), unknown)
    items = b.gep(b.at(line, layout.KNOWN_ITEMS, ptr), b.host.tuple_items)
    need_lists(b, b.gep(line, layout.KNOWN_LISTS), rank, items, unknown)
    second = g.mask()  # a second copy of sizes and strides
    with b.loop(0, b.mul(rank, 2)) as index:
        value = b.load(i64, b.gep(b.gep(line, layout.KNOWN_VALUES), index, i64))
        b.store(value, b.gep(g.slot, index, i64))
        with b.if_(b.icmp("ne", second, 0)):
            b.store(value, b.gep(g.slot_at(second), index, i64))
    b.store(b.at(line, layout.KNOWN_BASE), g.slot_at(g.other()))
    b.ret(g.stored())
    b.enter(unknown)


@guard
def guard_members(b: Writer, g: Guard) -> None:
    """Accept an object whose `__dict__` has the expected names, and store their values for the guards that follow.

    The version of the dictionary, which no other dictionary has, and the values are also stored at `low`.
    """
    found, kept = dictionary(b, g.arg), g.low_address()
    version = b.at(found, layout.DICT_VERSION)
    with b.loop(0, b.size(g.expected)) as index:
        member = b.api("PyDict_GetItemWithError", found, b.item(g.expected, index))
        b.need(b.is_object(member))
        b.store(member, b.gep(g.slot, index, i64))
        b.store(member, b.gep(b.gep(kept, 8), index, i64))
    b.store(version, kept)


@guard
def guard_remember(b: Writer, g: Guard) -> None:
    """Write a descriptor into the cache of `guard_known`, if nothing of it has changed since the guards before read it.

    At `high` are the version and the members that `guard_members` has stored, and the sizes of the block; `stored` has
    a bit for each of sizes, strides and block that is a tuple. The expected list keeps the items alive. No code of the
    user's runs between the comparisons and the stores.
    """
    leave, saved = b.new_block("leave"), b.at(g.settings, 16, ptr)
    rank = b.sext(g.mode(), i64)
    items = b.api("PyTuple_New", b.mul(rank, 3))  # may collect garbage, and so run anything
    b.need(b.is_object(items))
    version = b.at(dictionary(b, g.arg), layout.DICT_VERSION)
    b.need(b.icmp("eq", version, b.load(i64, saved)), leave)
    objects = g.slot_at(g.other())
    with b.loop(0, MEMBERS) as index:
        member, kept = (b.load(ptr, b.gep(first, index, ptr)) for first in (objects, b.gep(saved, 8)))
        b.need(b.icmp("eq", member, kept), leave)
    row, overflow = known_line(b, version), b.alloca(i32)
    line = b.gep(g.low_address(), b.mul(row, 8 * layout.KNOWN_LINE))
    b.store(num(0), line)
    with b.loop(0, 3) as part:
        holder = b.load(ptr, b.gep(b.gep(objects, 8), part, ptr))
        is_list = b.icmp("eq", b.and_(b.lshr(b.zext(g.stored(), i64), part), 1), 0)
        b.need(b.icmp("eq", b.size(holder), rank), leave)
        found = b.select(is_list, b.at(holder, layout.LIST_ITEMS, ptr), b.gep(holder, b.host.tuple_items))
        first = b.mul(rank, part)
        values = b.select(b.icmp("eq", part, 2), b.gep(saved, 8 * (1 + MEMBERS)), b.gep(g.slot, first, i64))
        with b.loop(0, rank) as index:
            item = b.load(ptr, b.gep(found, index, ptr))
            b.need(is_class(b, item, "int"), leave)
            value = b.api("PyLong_AsLongLongAndOverflow", item, overflow, result=i64)
            b.need(b.icmp("eq", b.load(i32, overflow), 0), leave)
            b.need(b.icmp("eq", value, b.load(i64, b.gep(values, index, i64))), leave)
            b.keep(item)
            b.store(item, b.gep(b.gep(items, b.host.tuple_items), b.add(first, index), ptr))
        b.store(b.select(is_list, holder, NULL), b.gep(b.gep(line, layout.KNOWN_LISTS), part, ptr))
    b.api("PyList_SetItem", g.expected, row, items, result=i32)
    b.store(b.load(ptr, objects), b.gep(line, layout.KNOWN_BASE))
    b.store(items, b.gep(line, layout.KNOWN_ITEMS))
    b.copy(b.gep(line, layout.KNOWN_VALUES), g.slot, b.mul(rank, 16))
    b.store(version, line)
    b.ret(YES)
    b.enter(leave)
    b.drop(items)


@guard
def guard_sizes(b: Writer, g: Guard) -> None:
    """Accept a list (a tuple, if `stored` is 1) of `mode` ints, each between `low` and `high`."""
    count = b.size(g.arg)
    b.need(b.icmp("eq", count, b.sext(g.mode(), i64)))
    overflow, is_list = b.alloca(i32), b.icmp("eq", g.stored(), 0)
    items = b.select(is_list, b.at(g.arg, layout.LIST_ITEMS, ptr), b.gep(g.arg, b.host.tuple_items))
    with b.loop(0, count) as index:
        item = b.load(ptr, b.gep(items, index, ptr))
        b.need(is_class(b, item, "int"))
        value = b.api("PyLong_AsLongLongAndOverflow", item, overflow, result=i64)
        b.need(b.icmp("eq", b.load(i32, overflow), 0))
        b.need(b.icmp("sge", value, g.low()))
        b.need(b.icmp("sle", value, g.high()))
        b.store(value, b.gep(g.slot, index, i64))


@guard
def guard_map(b: Writer, g: Guard) -> None:
    """Store the 128 bytes of a descriptor's tensor map, from the cache at `low` or from the expected function.

    The key of the cache is the address in the slot `other`, and the `mode` sizes and strides in the slots behind the
    map.
    """
    sizes, count = b.gep(g.slot, 8 * layout.MAP_WORDS), b.sext(g.mode(), i64)
    address = b.load(i64, g.slot_at(g.other()))
    mixed = b.xor(b.lshr(address, 9), b.lshr(address, 21))
    offset = b.mul(b.and_(mixed, layout.MAP_LINES - 1), 8 * layout.MAP_LINE)
    line = b.gep(g.low_address(), offset)
    kept, made, done = b.gep(line, 8), b.new_block("made"), b.new_block("done")
    known = b.gep(line, 8 * (layout.MAP_LINE - layout.MAP_WORDS))
    b.need(b.icmp("eq", b.load(i64, line), address), made)
    with b.loop(0, count) as index:
        is_equal = b.icmp("eq", b.load(i64, b.gep(sizes, index, i64)), b.load(i64, b.gep(kept, index, i64)))
        b.need(is_equal, made)
    b.br(done)
    b.enter(made)
    found = b.call_object(g.expected, [g.arg])
    b.need(b.is_object(found))
    b.store(num(0), line)
    b.copy(known, b.api("PyBytes_AsString", found), num(8 * layout.MAP_WORDS))
    b.drop(found)
    b.copy(kept, sizes, b.mul(count, 8))
    b.store(address, line)
    b.br(done)
    b.enter(done)
    b.copy(g.slot, known, num(8 * layout.MAP_WORDS))


@guard
def guard_hidden_maps(b: Writer, g: Guard) -> None:
    """Store hidden tensor maps, which depend on the values in some slots and on the grid: from the cache at `low`, or
    from the expected function.

    The function takes the bytes of the values, and returns None if they do not justify the maps; `stored` is the result
    (JUSTIFIED or REFUSED) with which the entry fits. While the grid is not known there are no maps, and every launch
    fits. The first 64 bits of a map are its address.
    """
    table = g.low_address()
    count, size = b.sext(g.mode(), i64), b.mul(g.high(), 8)
    grid = b.gep(g.frame, 8 * layout.FRAME)
    with b.if_(b.icmp("eq", b.load(i64, grid), num(-1))):
        b.ret(YES)
    values, key = b.alloca(i64, layout.MOST_INPUTS + 3), b.alloca(i64, layout.MOST_INPUTS + 3)
    mixed, key_count = b.alloca(i64), b.add(count, 3)
    key_size = b.mul(key_count, 8)
    line_size = b.add(b.add(key_size, size), 8)
    slots = b.gep(table, b.mul(line_size, layout.HIDDEN_LINES))
    masks = b.gep(slots, count, i64)
    with b.loop(0, count) as index:
        value = b.load(i64, b.gep(g.frame, b.load(i64, b.gep(slots, index, i64)), i64))
        b.store(value, b.gep(values, index, i64))
        b.store(b.and_(value, b.load(i64, b.gep(masks, index, i64))), b.gep(key, index, i64))
    for whole in (values, key):
        b.copy(b.gep(whole, count, i64), grid, num(24))
    b.store(num(0), mixed)
    with b.loop(0, key_count) as index:
        both = b.xor(b.load(i64, mixed), b.load(i64, b.gep(key, index, i64)))
        b.store(b.mul(both, num(SPREAD)), mixed)
    row = b.lshr(b.load(i64, mixed), num(64 - (layout.HIDDEN_LINES - 1).bit_length()))
    line = b.gep(table, b.mul(row, line_size))
    kept = b.gep(line, 8)
    maps = b.gep(kept, key_size)
    made, done = b.new_block("made"), b.new_block("done")
    b.need(b.icmp("ne", b.load(i64, line), 0), made)
    with b.loop(0, key_count) as index:
        known = b.load(i64, b.gep(kept, index, i64))
        b.need(b.icmp("eq", known, b.load(i64, b.gep(key, index, i64))), made)
    b.br(done)
    b.enter(made)
    argument = b.api("PyBytes_FromStringAndSize", values, key_size)
    b.need(b.is_object(argument))
    found = b.call_object(g.expected, [argument])
    b.drop(argument)
    b.need(b.is_object(found))
    is_refused = b.icmp("eq", found, b.context("none"))
    b.store(num(0), line)
    with b.if_(b.icmp("eq", is_refused, 0)):
        b.copy(maps, b.api("PyBytes_AsString", found), size)
    b.drop(found)
    b.copy(kept, key, key_size)
    b.store(b.select(is_refused, num(layout.REFUSED), num(layout.JUSTIFIED)), line)
    b.br(done)
    b.enter(done)
    b.need(b.icmp("eq", b.load(i64, line), b.sext(g.stored(), i64)))
    b.copy(g.slot, maps, size)
    bases = b.gep(masks, count, i64)
    with b.loop(0, g.high(), layout.MAP_WORDS) as offset:
        base, first = b.load(i64, b.gep(bases, b.lshr(offset, MAP_SHIFT), i64)), b.gep(g.slot, offset, i64)
        with b.if_(b.icmp("ne", base, num(layout.AS_FOUND))):
            address = b.add(b.load(i64, first), b.load(i64, b.gep(g.frame, base, i64)))
            b.need(b.icmp("sgt", address, 0))
            b.store(address, first)
