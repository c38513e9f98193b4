"""The guards of host descriptors: which members an object has, which numbers are in its lists, and its tensor map.

What a descriptor is may change in every way that Python has: another base, another list, another item of a list, a
resized tensor. A line of `guard_known` says that it has not: the dictionary has the version in which it was seen, and
the items of its lists are the objects that they were. The guard of its base runs at every launch.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import YES, Guard, Writer, guard, is_class
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value

SPREAD = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio
MAP_SHIFT = layout.MAP_WORDS.bit_length() - 1
MEMBERS = 5  # of a descriptor: base, sizes, strides, block, padding


def dictionary_here(b: Writer, object: Value) -> Value:
    """The dictionary of an object where `dictionary_place` of `machine.py` has found it: no address, or an odd one, if
    there is none yet.
    """
    return b.load(ptr, b.gep(object, b.ptrtoint(b.context("dictionary"), i64)))


def dictionary(b: Writer, object: Value, otherwise: Block | None = None) -> Value:
    """The dictionary of an object's members."""

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
    """The number of the line for a version; how far apart versions are depends on Python."""
    return b.lshr(b.mul(version, num(SPREAD)), num(64 - (layout.KNOWN_LINES - 1).bit_length()))


def need_lists(b: Writer, lists: Value, rank: Value, items: Value, otherwise: Block) -> None:
    """Go on if all lists of a descriptor (a tuple is NULL) have `rank` items, and these are the objects that they were."""
    for part in range(3):
        holder = b.at(lists, 8 * part, ptr)
        with b.if_(b.is_object(holder)):
            b.need(b.icmp("eq", b.size(holder), rank), otherwise)
            places = b.at(holder, layout.LIST_ITEMS, ptr), b.gep(items, b.mul(rank, part), ptr)
            with b.loop(0, rank) as index:
                item, known = (b.load(ptr, b.gep(place, index, ptr)) for place in places)
                b.need(b.icmp("eq", item, known), otherwise)


@guard
def guard_known(b: Writer, g: Guard) -> None:
    """A descriptor as `guard_remember` has seen it: gives its base and numbers, and skips the guards that would find
    them.
    """
    unknown = b.new_block("unknown")
    version, rank = b.at(dictionary(b, g.arg), layout.DICT_VERSION), b.sext(g.mode(), i64)
    line = b.gep(b.at(g.settings, 8, ptr), b.mul(known_line(b, version), 8 * layout.KNOWN_LINE))
    b.need(b.icmp("eq", version, b.load(i64, line)), unknown)
    items = b.gep(b.at(line, layout.KNOWN_ITEMS, ptr), b.host.tuple_items)
    need_lists(b, b.gep(line, layout.KNOWN_LISTS), rank, items, unknown)
    second = b.at(g.settings, 36, i32)  # another place for the numbers
    with b.loop(0, b.mul(rank, 2)) as index:
        number = b.load(i64, b.gep(b.gep(line, layout.KNOWN_NUMBERS), index, i64))
        b.store(number, b.gep(g.slot, index, i64))
        with b.if_(b.icmp("ne", second, 0)):
            b.store(number, b.gep(g.word(second), index, i64))
    b.store(b.at(line, layout.KNOWN_BASE), g.word(b.at(g.settings, layout.GUARD_OTHER, i32)))
    b.ret(b.at(g.settings, 32, i32))
    b.enter(unknown)


@guard
def guard_members(b: Writer, g: Guard) -> None:
    """An object whose dictionary has the names that are expected; what they stand for is looked at next, and stored at
    `low`.

    The version of the dictionary comes first there: no two dictionaries have the same one.
    """
    found, kept = dictionary(b, g.arg), b.at(g.settings, 8, ptr)
    version = b.at(found, layout.DICT_VERSION)
    with b.loop(0, b.size(g.expected)) as index:
        member = b.api("PyDict_GetItemWithError", found, b.item(g.expected, index))
        b.need(b.is_object(member))
        b.store(member, b.gep(g.slot, index, i64))
        b.store(member, b.gep(b.gep(kept, 8), index, i64))
    b.store(version, kept)


@guard
def guard_remember(b: Writer, g: Guard) -> None:
    """Keep what the guards before have found in a descriptor where `guard_known` looks for it, if all of it still
    holds.

    At `high` are version and members of `guard_members`, and the numbers of the block; `stored` has a bit for each of
    sizes, strides and block that is a tuple. The list that is expected keeps items alive. No code of the user's runs
    between what is compared and stored.
    """
    leave, room = b.new_block("leave"), b.at(g.settings, 16, ptr)
    rank = b.sext(g.mode(), i64)
    items = b.api("PyTuple_New", b.mul(rank, 3))  # may collect garbage, and so run anything
    b.need(b.is_object(items))
    version = b.at(dictionary(b, g.arg), layout.DICT_VERSION)
    b.need(b.icmp("eq", version, b.load(i64, room)), leave)
    objects = g.word(b.at(g.settings, layout.GUARD_OTHER, i32))
    with b.loop(0, MEMBERS) as index:
        member, kept = (b.load(ptr, b.gep(place, index, ptr)) for place in (objects, b.gep(room, 8)))
        b.need(b.icmp("eq", member, kept), leave)
    number, overflow = known_line(b, version), b.alloca(i32)
    line = b.gep(b.at(g.settings, 8, ptr), b.mul(number, 8 * layout.KNOWN_LINE))
    b.store(num(0), line)
    with b.loop(0, 3) as part:
        holder = b.load(ptr, b.gep(b.gep(objects, 8), part, ptr))
        is_list = b.icmp("eq", b.and_(b.lshr(b.zext(b.at(g.settings, 32, i32), i64), part), 1), 0)
        b.need(b.icmp("eq", b.size(holder), rank), leave)
        found = b.select(is_list, b.at(holder, layout.LIST_ITEMS, ptr), b.gep(holder, b.host.tuple_items))
        first = b.mul(rank, part)
        numbers = b.select(b.icmp("eq", part, 2), b.gep(room, 8 * (1 + MEMBERS)), b.gep(g.slot, first, i64))
        with b.loop(0, rank) as index:
            item = b.load(ptr, b.gep(found, index, ptr))
            b.need(is_class(b, item, "int"), leave)
            value = b.api("PyLong_AsLongLongAndOverflow", item, overflow, result=i64)
            b.need(b.icmp("eq", b.load(i32, overflow), 0), leave)
            b.need(b.icmp("eq", value, b.load(i64, b.gep(numbers, index, i64))), leave)
            b.keep(item)
            b.store(item, b.gep(b.gep(items, b.host.tuple_items), b.add(first, index), ptr))
        b.store(b.select(is_list, holder, NULL), b.gep(b.gep(line, layout.KNOWN_LISTS), part, ptr))
    b.api("PyList_SetItem", g.expected, number, items, result=i32)
    b.store(b.load(ptr, objects), b.gep(line, layout.KNOWN_BASE))
    b.store(items, b.gep(line, layout.KNOWN_ITEMS))
    b.copy(b.gep(line, layout.KNOWN_NUMBERS), g.slot, b.mul(rank, 16))
    b.store(version, line)
    b.ret(YES)
    b.enter(leave)
    b.drop(items)


@guard
def guard_sizes(b: Writer, g: Guard) -> None:
    """A list (a tuple, if `stored` is 1) of as many ints as `mode` says, each between two bounds."""
    count = b.size(g.arg)
    b.need(b.icmp("eq", count, b.sext(g.mode(), i64)))
    overflow, is_list = b.alloca(i32), b.icmp("eq", b.at(g.settings, 32, i32), 0)
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
    """The 128 bytes of a descriptor's tensor map, from one of the lines at `low` or from the function that is expected.

    The key are the address, in the slot `other`, and `mode` sizes and strides behind the map.
    """
    sizes, words = b.gep(g.slot, 8 * layout.MAP_WORDS), b.sext(g.mode(), i64)
    address = b.load(i64, g.word(b.at(g.settings, layout.GUARD_OTHER, i32)))
    mixed = b.xor(b.lshr(address, 9), b.lshr(address, 21))
    place = b.mul(b.and_(mixed, layout.MAP_LINES - 1), 8 * layout.MAP_LINE)
    line = b.gep(b.at(g.settings, 8, ptr), place)
    kept, made, done = b.gep(line, 8), b.new_block("made"), b.new_block("done")
    known = b.gep(line, 8 * (layout.MAP_LINE - layout.MAP_WORDS))
    b.need(b.icmp("eq", b.load(i64, line), address), made)
    with b.loop(0, words) as index:
        is_equal = b.icmp("eq", b.load(i64, b.gep(sizes, index, i64)), b.load(i64, b.gep(kept, index, i64)))
        b.need(is_equal, made)
    b.br(done)
    b.enter(made)
    found = b.ask(g.expected, [g.arg])
    b.need(b.is_object(found))
    b.store(num(0), line)
    b.copy(known, b.api("PyBytes_AsString", found), num(8 * layout.MAP_WORDS))
    b.drop(found)
    b.copy(kept, sizes, b.mul(words, 8))
    b.store(address, line)
    b.br(done)
    b.enter(done)
    b.copy(g.slot, known, num(8 * layout.MAP_WORDS))


@guard
def guard_hidden_maps(b: Writer, g: Guard) -> None:
    """Hidden maps, made of the numbers in some slots and of the grid: from one of the lines at `low`, or from the
    function that is expected.

    It is given the bytes of the numbers, and gives None if they justify no maps; `stored` says which of the two fits.
    While the grid is not known there are no maps, and everything does. The first word of a map is its address.
    """
    room = b.at(g.settings, 8, ptr)
    count, size = b.sext(g.mode(), i64), b.mul(g.high(), 8)
    grid = b.gep(g.frame, 8 * layout.FRAME)
    with b.if_(b.icmp("eq", b.load(i64, grid), num(-1))):
        b.ret(YES)
    numbers, key = b.alloca(i64, layout.MOST_NUMBERS + 3), b.alloca(i64, layout.MOST_NUMBERS + 3)
    mixed, words = b.alloca(i64), b.add(count, 3)
    key_size = b.mul(words, 8)
    line_size = b.add(b.add(key_size, size), 8)
    slots = b.gep(room, b.mul(line_size, layout.HIDDEN_LINES))
    masks = b.gep(slots, count, i64)
    with b.loop(0, count) as index:
        value = b.load(i64, b.gep(g.frame, b.load(i64, b.gep(slots, index, i64)), i64))
        b.store(value, b.gep(numbers, index, i64))
        b.store(b.and_(value, b.load(i64, b.gep(masks, index, i64))), b.gep(key, index, i64))
    for whole in (numbers, key):
        b.copy(b.gep(whole, count, i64), grid, num(24))
    b.store(num(0), mixed)
    with b.loop(0, words) as index:
        both = b.xor(b.load(i64, mixed), b.load(i64, b.gep(key, index, i64)))
        b.store(b.mul(both, num(SPREAD)), mixed)
    number = b.lshr(b.load(i64, mixed), num(64 - (layout.HIDDEN_LINES - 1).bit_length()))
    line = b.gep(room, b.mul(number, line_size))
    kept = b.gep(line, 8)
    maps = b.gep(kept, key_size)
    made, done = b.new_block("made"), b.new_block("done")
    b.need(b.icmp("ne", b.load(i64, line), 0), made)
    with b.loop(0, words) as index:
        known = b.load(i64, b.gep(kept, index, i64))
        b.need(b.icmp("eq", known, b.load(i64, b.gep(key, index, i64))), made)
    b.br(done)
    b.enter(made)
    told = b.api("PyBytes_FromStringAndSize", numbers, key_size)
    b.need(b.is_object(told))
    found = b.ask(g.expected, [told])
    b.drop(told)
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
    b.need(b.icmp("eq", b.load(i64, line), b.sext(b.at(g.settings, 32, i32), i64)))
    b.copy(g.slot, maps, size)
    bases = b.gep(masks, count, i64)
    with b.loop(0, g.high(), layout.MAP_WORDS) as place:
        base, first = b.load(i64, b.gep(bases, b.lshr(place, MAP_SHIFT), i64)), b.gep(g.slot, place, i64)
        with b.if_(b.icmp("ne", base, num(layout.AS_FOUND))):
            address = b.add(b.load(i64, first), b.load(i64, b.gep(g.frame, base, i64)))
            b.need(b.icmp("sgt", address, 0))
            b.store(address, first)
