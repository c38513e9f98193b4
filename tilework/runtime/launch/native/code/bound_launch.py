"""Bound launches: `kernel.bind(...)` is called with what changes, and does again what it did before.

`self` is ``(state, Python, names, values, keywords, images, what keeps them)``; the grid is the last of the values. A launch leaves an image
behind (`layout.py`) for calls of its shape, that is with values for the same parameters: the slots that the driver was given,
and what they depend on. That is little. A number that is bound cannot become another. A tensor is the same memory if its members are
what they were, and a descriptor describes the same if its dictionary has its version and the items of its lists are the same objects. What a
call gives is looked at by its guards, into a copy of the slots. Then nothing is left to find out but the stream and the context.

Images are never written to but for their counter: other threads may be in the driver with them, and keep them. What does not fit an image is a launch
with all arguments, as by `kernel[grid]`, which leaves a new image behind.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.descriptor_guards import dictionary_here, need_lists
from tilework.runtime.launch.native.code.gpu_launch import ask_stream, call_driver, fail, in_context
from tilework.runtime.launch.native.code.guards import YES, Writer, is_class, need_guards, routine
from tilework.runtime.launch.native.code.images import (
    CALL_POSITIONS,
    CALL_WORDS,
    LINE,
    image_number,
    image_table,
    wants_image,
)
from tilework.runtime.launch.native.code.tensors import Tensors
from tilework.runtime.launch.native.code.watched import need_unchanged
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value


@routine("ptr launch_bound(ptr self, ptr args, i64 nargs, ptr kwnames)")
def launch_bound(b: Writer, self: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """See the module docstring."""
    other, unfit, raised = (b.new_block(name) for name in ("other", "unfit", "raised"))
    image = b.load(ptr, b.gep(image_table(b, self), image_number(b, nargs, kwnames), ptr))
    b.need(b.is_object(image), other)
    b.need(b.icmp("eq", nargs, b.at(image, layout.IMAGE_GIVEN)), other)
    names = b.at(image, layout.IMAGE_NAMES, ptr)
    with b.if_(b.icmp("ne", kwnames, names)):
        b.need(b.icmp("ne", b.run("same_names", kwnames, names), 0), other)
    b.need(b.is_null(b.context("log")), other)
    holder = b.at(image, layout.IMAGE_SELF, ptr)
    b.keep_here(holder)  # what runs from here on may replace the image
    entry, record = b.at(image, layout.IMAGE_ENTRY, ptr), b.at(image, layout.IMAGE_RECORD, ptr)
    frame, own = b.alloca(i64, layout.FRAME_WORDS, align=LINE), b.alloca(ptr, layout.MOST_SLOTS)

    def with_given() -> list[Value]:
        b.need(b.icmp("ne", b.run("fill_given", image, record, args, frame, own), 0), unfit)
        return [own]

    is_whole = b.icmp("eq", b.at(image, layout.IMAGE_GUARDS), b.at(image, layout.IMAGE_GUARDS_END))
    (addresses,) = b.if_else(is_whole, lambda: [b.at(image, layout.IMAGE_ADDRESSES, ptr)], with_given)
    need_unchanged(b, entry, record, unfit)
    handle = ask_stream(b, entry, record, raised)
    # from here on no Python code runs
    need_descriptors(b, image, unfit)
    need_tensors(b, image, unfit)
    set, here, place = b.at(record, layout.SET_CONTEXT, ptr), b.at(record, layout.DEVICE_CONTEXT), b.alloca(i64)
    b.store(num(0), place)
    asked = b.call(b.at(record, layout.ASK_CONTEXT, ptr), i32, [place])
    before = b.load(i64, place)
    with b.if_(b.or_(b.icmp("ne", asked, 0), b.icmp("ne", before, here))):
        b.need(b.is_object(set), unfit)
    config = b.alloca(i8, layout.CONFIG_BYTES, align=16)
    b.copy(config, b.gep(image, layout.IMAGE_CONFIG), num(layout.CONFIG_BYTES))
    b.store(handle, b.gep(config, layout.CONFIG_STREAM))
    hits = b.gep(image, layout.IMAGE_HITS)
    b.store(b.add(b.load(i64, hits), 1), hits)
    code = in_context(b, set, here, before, lambda: call_driver(b, record, config, addresses))
    with b.if_(b.icmp("ne", code, 0)):
        fail(b, entry, code, [b.at(image, layout.IMAGE_GRID + 8 * axis) for axis in range(3)])
        b.br(raised)
    kernel = b.item(entry, layout.KERNEL)
    b.keep_here(kernel)
    b.drop_here(holder)
    b.ret(kernel)
    b.enter(raised)
    b.drop(holder)
    b.ret(NULL)
    b.enter(unfit)
    b.api("PyErr_Clear", result=void)
    b.drop(holder)
    b.br(other)
    b.enter(other)
    b.finish(b.run("launch_merged", self, args, nargs, kwnames))


@routine("i32 same_names(ptr one, ptr two)")
def same_names(b: Writer, one: Value, two: Value) -> None:
    """Whether two tuples, or NULL, have the same names in them, as Python interns them."""
    for names in (one, two):
        b.need(b.is_object(names))
    b.need(b.icmp("eq", b.size(one), b.size(two)))
    with b.loop(0, b.size(one)) as index:
        b.need(b.icmp("eq", b.item(one, index), b.item(two, index)))
    b.finish(YES)


@routine("i32 fill_given(ptr image, ptr record, ptr args, ptr frame, ptr addresses)")
def fill_given(b: Writer, image: Value, record: Value, args: Value, frame: Value, addresses: Value) -> None:
    """A copy of the slots with what is given, and the addresses of its parameters."""
    slots, count = b.at(image, layout.IMAGE_SLOTS), b.at(record, layout.SLOT_COUNT)
    b.copy_fours(frame, b.inttoptr(slots, ptr), count)
    for axis in range(3):
        b.store(b.at(image, layout.IMAGE_GRID + 8 * axis), b.gep(frame, 8 * (layout.FRAME + axis)))
    first, objects = b.at(image, layout.IMAGE_POSITIONS), b.gep(frame, 8 * layout.OBJECTS)
    positions = b.inttoptr(first, ptr)
    with b.loop(0, b.sub(b.at(image, layout.IMAGE_POSITIONS_END), first), 8) as place:
        position = b.load(i64, b.gep(positions, place))
        b.store(b.load(ptr, b.gep(args, place)), b.gep(objects, position, ptr))
    guards = b.at(image, layout.IMAGE_GUARDS)
    need_guards(b, b.inttoptr(guards, ptr), b.sub(b.at(image, layout.IMAGE_GUARDS_END), guards), frame)
    known, parameters = b.at(image, layout.IMAGE_ADDRESSES, ptr), b.at(record, layout.PARAMETER_COUNT)
    b.copy_fours(addresses, known, parameters, b.sub(b.ptrtoint(frame, i64), slots))
    b.finish(YES)


def need_descriptors(b: Writer, image: Value, otherwise: Block) -> None:
    """Go on if no descriptor has changed."""
    first, end = b.at(image, layout.IMAGE_DESCRIPTORS), b.at(image, layout.IMAGE_DESCRIPTORS_END)
    with b.loop(first, end, layout.DESCRIPTOR_LINE) as place:
        line = b.inttoptr(place, ptr)
        object = b.at(line, layout.SEEN_OBJECT, ptr)
        b.need(b.icmp("eq", b.at(object, layout.TYPE), b.at(line, layout.SEEN_CLASS)), otherwise)
        members = b.at(line, layout.SEEN_DICTIONARY, ptr)
        b.need(b.icmp("eq", dictionary_here(b, object), members), otherwise)
        b.need(b.icmp("eq", b.at(members, layout.DICT_VERSION), b.at(line, layout.SEEN_VERSION)), otherwise)
        rank, items = b.at(line, layout.SEEN_RANK), b.at(line, layout.SEEN_ITEMS, ptr)
        need_lists(b, b.gep(line, layout.SEEN_LISTS), rank, items, otherwise)


def need_tensors(b: Writer, image: Value, otherwise: Block) -> None:
    """Go on if every tensor is the memory that it was."""
    first, end, tensors = b.at(image, layout.IMAGE_TENSORS), b.at(image, layout.IMAGE_TENSORS_END), Tensors(b)
    with b.loop(first, end, layout.TENSOR_LINE) as place:
        tensors.need(b.inttoptr(place, ptr), otherwise)


@routine("ptr launch_merged(ptr self, ptr args, i64 nargs, ptr kwnames)")
def launch_merged(b: Writer, self: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """With all arguments, those that are bound and those that are given. Python is called with all that is not simply a value for a name."""
    names, values, keywords = (
        b.item(self, at) for at in (layout.BOUND_NAMES, layout.BOUND_VALUES, layout.BOUND_KEYWORDS)
    )
    (named,) = b.if_else(is_class(b, keywords, "tuple"), lambda: [b.size(keywords)], lambda: [num(0)])
    last = b.sub(b.size(names), 1)
    positional = b.sub(last, named)
    merged, other = b.alloca(ptr, layout.MOST_OBJECTS), b.new_block("other")
    found, call = b.alloca(i64), b.alloca(i64, CALL_WORDS)
    positions = b.gep(call, CALL_POSITIONS)

    b.need(b.icmp("sle", nargs, positional), other)
    with b.loop(nargs, b.add(last, 1)) as index:
        b.store(b.item(values, index), b.gep(merged, index, ptr))
    with b.loop(0, nargs) as index:
        b.store(b.load(ptr, b.gep(args, index, ptr)), b.gep(merged, index, ptr))
        b.store(index, b.gep(positions, index, i64))
    (given,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
    with b.loop(0, given) as index:
        name, number = b.item(kwnames, index), b.add(nargs, index)
        b.store(num(-1), found)
        with b.loop(nargs, b.add(last, 1)) as place, b.if_(b.icmp("eq", b.item(names, place), name)):
            b.store(place, found)
        position = b.load(i64, found)
        b.need(b.icmp("sge", position, 0), other)
        b.store(b.load(ptr, b.gep(args, number, ptr)), b.gep(merged, position, ptr))
        b.store(position, b.gep(positions, number, i64))
    number = image_number(b, nargs, kwnames)
    for place, value in zip(
        range(0, CALL_POSITIONS, 8), (self, nargs, kwnames, b.add(nargs, given), number), strict=True
    ):
        b.store(value, b.gep(call, place))
    grid = b.load(ptr, b.gep(merged, last, ptr))
    is_wanted = b.and_(b.icmp("eq", grid, b.item(values, last)), wants_image(b, image_table(b, self), number))
    shape = b.select(b.icmp("eq", named, 0), NULL, keywords)
    made_of = b.select(is_wanted, call, NULL)
    b.ret(b.run("launch_with", b.item(self, layout.STATE), grid, merged, positional, shape, made_of))
    b.enter(other)
    b.finish(b.api("PyObject_Vectorcall", b.item(self, layout.BY_PYTHON), args, nargs, kwnames))
