"""Images of launches that were done by bound launches: how they are made, and what keeps them. `bound_launch.py` says what they are for."""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.descriptor_guards import dictionary, dictionary_here, known_line
from tilework.runtime.launch.native.code.gpu_launch import LARGEST, write_addresses, write_config
from tilework.runtime.launch.native.code.guards import FOUR, Writer, routine
from tilework.runtime.launch.native.code.tensors import Tensors
from tilework.targets.cpu.run.machine_code import NULL, memory, num
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i32, i64, ptr, void
from tilework.targets.llvm.values import Value

LINE = 64  # bytes of the cache
BYTES_HEADER = 32  # of a bytes object: images begin on the next line
CALL_SELF, CALL_GIVEN, CALL_NAMES, CALL_COUNT, CALL_NUMBER, CALL_POSITIONS = range(
    0, 48, 8
)  # of which an image is made
CALL_WORDS = CALL_POSITIONS // 8 + layout.MOST_OBJECTS
# guards of what cannot become another while it is bound, or depends on nothing but what others guard
SETTLED = (
    "guard_int",
    "guard_constant",
    "guard_small",
    "guard_map",
    "guard_proof",
    "guard_tuple",
    "guard_float",
    "guard_bool",
)


def image_number(b: Writer, given: Value, names: Value) -> Value:
    """Where the image for a call with so many positional arguments is, and with names."""
    some = b.and_(given, layout.IMAGE_SOME - 1)
    return b.add(some, b.select(b.is_null(names), num(0), num(layout.IMAGE_NAMED)))


def image_table(b: Writer, self: Value) -> Value:
    return b.at(b.item(self, layout.IMAGES), layout.BYTES_START, ptr)


def image_of(b: Writer, object: Value) -> Value:
    """The image in a bytes object."""
    return b.inttoptr(b.and_(b.add(b.ptrtoint(object, i64), BYTES_HEADER + LINE - 1), -LINE), ptr)


def wants_image(b: Writer, table: Value, number: Value) -> Value:
    """Whether another image is worth its making: not if many in a row were of no use."""
    image, misses = b.load(ptr, b.gep(table, number, ptr)), b.gep(b.gep(table, layout.IMAGE_MISSES), number, i64)
    (hits,) = b.if_else(b.is_null(image), lambda: [num(0)], lambda: [b.at(image, layout.IMAGE_HITS)])
    in_vain = b.select(b.icmp("slt", hits, layout.IMAGE_PAYS), b.add(b.load(i64, misses), 1), num(0))
    b.store(in_vain, misses)
    with b.if_(b.is_object(image)):
        b.store(num(0), b.gep(image, layout.IMAGE_HITS))
    is_new = b.icmp("slt", in_vain, layout.IMAGE_TRIES)
    return b.or_(is_new, b.icmp("eq", b.and_(in_vain, layout.IMAGE_AGAIN - 1), 0))


@routine("ptr make_image(ptr call, ptr entry, ptr record, ptr frame, ptr sizes)")
def make_image(b: Writer, call: Value, entry: Value, record: Value, frame: Value, sizes: Value) -> None:
    """The image of a launch that is to begin, a bytes object, or NULL. The launch fits, and nothing here runs Python code."""
    leave = b.new_block("leave")
    b.need(b.icmp("eq", b.at(record, layout.RUN, ptr), memory("run_gpu")))
    b.need(b.icmp("eq", b.item(b.item(entry, layout.DEVICE_CALL), 2), b.context("none")))
    extent = [b.at(sizes, 8 * axis) for axis in range(3)]
    blocks = [b.mul(extent[0], b.at(record, layout.CLUSTER)), *extent[1:]]
    for size, most in zip(blocks, LARGEST, strict=True):
        b.need(b.icmp("ult", b.sub(size, 1), num(most)))
    slots, guards = b.at(record, layout.SLOT_COUNT), b.at(record, layout.GUARD_COUNT)
    given = b.at(call, CALL_COUNT)
    parts = (
        (layout.IMAGE_SLOTS, b.mul(b.add(slots, FOUR), 8)),
        (layout.IMAGE_ADDRESSES, b.mul(b.add(b.at(record, layout.PARAMETER_COUNT), FOUR), 8)),
        (layout.IMAGE_POSITIONS, b.mul(given, 8)),
        (layout.IMAGE_KEPT, b.mul(guards, 8)),
        (layout.IMAGE_GUARDS, b.mul(guards, layout.GUARD.size)),
        (layout.IMAGE_DESCRIPTORS, b.mul(guards, layout.DESCRIPTOR_LINE)),
        (layout.IMAGE_TENSORS, b.mul(guards, layout.TENSOR_LINE)),
    )
    total = num(layout.IMAGE_HEADER + LINE)
    for _, size in parts:
        total = b.add(total, size)
    made = b.api("PyBytes_FromStringAndSize", NULL, total)
    with b.if_(b.is_null(made)):
        b.api("PyErr_Clear", result=void)
        b.ret(NULL)
    image = image_of(b, made)
    here = b.gep(image, layout.IMAGE_HEADER)
    for at, size in parts:
        b.store(here, b.gep(image, at))
        here = b.gep(here, size)
    for at, start in ENDS.items():
        b.store(b.at(image, start), b.gep(image, at))
    b.need(b.icmp("ule", b.api("PyBytes_AsString", made), image), leave)
    for at, value in (
        (layout.IMAGE_GIVEN, b.at(call, CALL_GIVEN)),
        (layout.IMAGE_NAMES, b.at(call, CALL_NAMES)),
        (layout.IMAGE_ENTRY, entry),
        (layout.IMAGE_RECORD, record),
        (layout.IMAGE_HITS, num(0)),
        *zip(range(layout.IMAGE_GRID, layout.IMAGE_GRID + 24, 8), extent, strict=True),
    ):
        b.store(value, b.gep(image, at))
    write_config(b, b.gep(image, layout.IMAGE_CONFIG), record, blocks)
    write_lines(b, call, record, frame, image, leave)
    copy = b.at(image, layout.IMAGE_SLOTS, ptr)
    b.copy(copy, frame, b.mul(slots, 8))
    write_addresses(b, b.at(image, layout.IMAGE_ADDRESSES, ptr), record, copy)
    b.ret(made)
    b.enter(leave)
    b.run("drop_image", made)
    b.finish(NULL)


ENDS = {
    layout.IMAGE_KEPT_END: layout.IMAGE_KEPT,
    layout.IMAGE_POSITIONS_END: layout.IMAGE_POSITIONS,
    layout.IMAGE_GUARDS_END: layout.IMAGE_GUARDS,
    layout.IMAGE_DESCRIPTORS_END: layout.IMAGE_DESCRIPTORS,
    layout.IMAGE_TENSORS_END: layout.IMAGE_TENSORS,
}


def room(b: Writer, image: Value, at: int, size: int) -> Value:
    """Where the next line of a kind goes."""
    line = b.at(image, at, ptr)
    b.store(b.gep(line, size), b.gep(image, at))
    return line


def write_lines(b: Writer, call: Value, record: Value, frame: Value, image: Value, leave: Block) -> None:
    """What an image depends on, from the guards of the entry: those of what is given themselves, lines of what is bound and can change."""
    flags, count = b.alloca(i64, layout.MOST_OBJECTS), b.at(call, CALL_COUNT)
    b.fill(flags, 0, 8 * layout.MOST_OBJECTS)
    with b.loop(0, count) as index:
        position = b.load(i64, b.gep(b.gep(call, CALL_POSITIONS), index, i64))
        b.store(position, room(b, image, layout.IMAGE_POSITIONS_END, 8))
        b.store(num(1), b.gep(flags, position, i64))
    guards, roots = (b.gep(record, b.at(record, at)) for at in (layout.GUARDS_AT, layout.ROOTS_AT))
    next, tensors = b.alloca(i64), Tensors(b)
    b.store(num(0), next)
    again, look, done = b.new_block("again"), b.new_block("look"), b.new_block("done")
    b.br(again)
    b.resume(again)
    number = b.load(i64, next)
    b.cond_br(b.icmp("slt", number, b.at(record, layout.GUARD_COUNT)), look, done)
    with b.scope():
        b.resume(look)
        settings, root = b.gep(guards, b.mul(number, layout.GUARD.size)), b.load(i64, b.gep(roots, number, i64))
        b.store(b.add(number, 1), next)
        (is_given,) = b.if_else(b.icmp("slt", root, 0), lambda: [count], lambda: [b.load(i64, b.gep(flags, root, i64))])
        function = b.load(ptr, settings)
        object = b.load(
            ptr, b.gep(b.gep(frame, 8 * layout.OBJECTS), b.sext(b.at(settings, layout.GUARD_SOURCE, i32), i64), ptr)
        )
        with b.if_(b.icmp("ne", is_given, 0)):
            b.copy(room(b, image, layout.IMAGE_GUARDS_END, layout.GUARD.size), settings, num(layout.GUARD.size))
            b.br(again)
        with b.if_(b.icmp("eq", function, memory("guard_fields"))):
            write_tensor(b, tensors, object, settings, frame, image, leave)
            b.br(again)
        with b.if_(b.icmp("eq", function, memory("guard_known"))):
            write_descriptor(b, object, settings, frame, image, leave)
            b.store(b.add(number, b.sext(b.at(settings, 32, i32), i64)), next)
            b.br(again)
        for name in SETTLED:
            b.need(b.icmp("ne", function, memory(name)), again)
        b.br(leave)
    b.resume(done)


def write_tensor(
    b: Writer, tensors: Tensors, object: Value, settings: Value, frame: Value, image: Value, leave: Block
) -> None:
    """A line of a tensor, if its guard still finds what it found: later ones may have run Python code."""
    slot = b.gep(frame, b.sext(b.at(settings, 28, i32), i64), i64)
    before, parts = b.load(i64, slot), tensors.need_plain(object, leave)
    cls, expected = (b.at(settings, at, ptr) for at in (layout.GUARD_CLASS, layout.GUARD_EXPECTED))
    b.need(b.icmp("ne", b.run("guard_fields", object, settings, cls, expected, frame), 0), leave)
    b.need(b.icmp("eq", b.load(i64, slot), before), leave)
    tensors.write(room(b, image, layout.IMAGE_TENSORS_END, layout.TENSOR_LINE), object, *parts)


def write_descriptor(b: Writer, object: Value, settings: Value, frame: Value, image: Value, leave: Block) -> None:
    """A line of a descriptor, if it is one that `guard_known` knows, with the base and the numbers that are in the frame."""
    b.need(b.is_object(b.context("dictionary")), leave)
    members, rank = dictionary(b, object, leave), b.sext(b.at(settings, 24, i32), i64)
    b.need(b.icmp("eq", dictionary_here(b, object), members), leave)
    version = b.at(members, layout.DICT_VERSION)
    known = b.gep(b.at(settings, 8, ptr), b.mul(known_line(b, version), 8 * layout.KNOWN_LINE))
    b.need(b.icmp("eq", b.load(i64, known), version), leave)
    base = b.load(i64, b.gep(frame, b.sext(b.at(settings, layout.GUARD_OTHER, i32), i64), i64))
    b.need(b.icmp("eq", b.at(known, layout.KNOWN_BASE), base), leave)
    slot = b.gep(frame, b.sext(b.at(settings, 28, i32), i64), i64)
    with b.loop(0, b.mul(rank, 2)) as index:
        number = b.load(i64, b.gep(b.gep(known, layout.KNOWN_NUMBERS), index, i64))
        b.need(b.icmp("eq", number, b.load(i64, b.gep(slot, index, i64))), leave)
    items = b.at(known, layout.KNOWN_ITEMS, ptr)
    b.keep_here(items)
    b.store(items, room(b, image, layout.IMAGE_KEPT_END, 8))
    line = room(b, image, layout.IMAGE_DESCRIPTORS_END, layout.DESCRIPTOR_LINE)
    for at, value in (
        (layout.SEEN_OBJECT, object),
        (layout.SEEN_CLASS, b.at(settings, layout.GUARD_CLASS)),
        (layout.SEEN_DICTIONARY, members),
        (layout.SEEN_VERSION, version),
        *((layout.SEEN_LISTS + 8 * part, b.at(known, layout.KNOWN_LISTS + 8 * part)) for part in range(3)),
        (layout.SEEN_ITEMS, b.gep(items, b.host.tuple_items)),
        (layout.SEEN_RANK, rank),
    ):
        b.store(value, b.gep(line, at))


@routine("void drop_image(ptr made)")
def drop_image(b: Writer, made: Value) -> None:
    """Give an image up that nobody has."""
    image = image_of(b, made)
    with b.loop(b.at(image, layout.IMAGE_KEPT), b.at(image, layout.IMAGE_KEPT_END), 8) as place:
        b.drop(b.load(ptr, b.inttoptr(place, ptr)))
    b.drop(made)
    b.ret()


@routine("void keep_image(ptr call, ptr made)")
def keep_image(b: Writer, call: Value, made: Value) -> None:
    """Put an image where `launch_bound` finds it; a tuple keeps it and what it needs."""
    image = image_of(b, made)
    first = b.at(image, layout.IMAGE_KEPT)
    size = b.sub(b.at(image, layout.IMAGE_KEPT_END), first)
    holder = b.api("PyTuple_New", b.add(b.lshr(size, 3), 3))
    with b.if_(b.is_null(holder)):
        b.api("PyErr_Clear", result=void)
        b.run("drop_image", made)
        b.ret()
    names = b.at(image, layout.IMAGE_NAMES, ptr)
    names, entry = b.select(b.is_null(names), b.context("none"), names), b.at(image, layout.IMAGE_ENTRY, ptr)
    b.keep(names)
    b.keep(entry)
    items = b.gep(holder, b.host.tuple_items)
    for index, object in enumerate((made, entry, names)):
        b.store(object, b.gep(items, 8 * index))
    b.copy(b.gep(items, 24), b.inttoptr(first, ptr), size)
    b.store(holder, b.gep(image, layout.IMAGE_SELF))
    self, number = b.at(call, CALL_SELF, ptr), b.at(call, CALL_NUMBER)
    b.store(image, b.gep(image_table(b, self), number, ptr))
    b.api("PyList_SetItem", b.item(self, layout.IMAGES_KEPT), number, holder, result=i32)
    b.ret()
