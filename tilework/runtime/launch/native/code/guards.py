"""The guards of the native launcher, one function for each kind of argument, and the builder that writes them.

``i32 guard_int(arg, settings, class, expected, frame)`` compares an argument of a launch with an entry. If the argument
has exactly the class and meets the conditions in `settings` (`layout.Guard`), the guard stores its value in a slot of
the frame and returns how many guards to advance, mostly 1; otherwise it returns 0. The guards of tuples and descriptors
(`descriptor_guards.py`) also store the objects inside of them in the frame, as the arguments of later guards.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilework.runtime.launch.native import layout
from tilework.targets.cpu.run.machine_code import NULL, Functions, NativeBuilder, memory, num
from tilework.targets.llvm.module import Block, Function
from tilework.targets.llvm.types import Type, f32, f64, i32, i64, ptr, vector, void
from tilework.targets.llvm.values import Value, constant

YES = constant(i32, 1)
EQUAL = 2  # Py_EQ
MANY = constant(i32, 1 << 30)  # references; of what lives for ever Python counts more
LIKELY = (1000, 1)
FOUR = 4  # words that are copied at once
routine = Functions()
GUARDS = Functions("nounwind")


class Host(NamedTuple):
    """The platform: the id of the monotonic clock for `clock_gettime`, and the offset of the items of a tuple."""

    clock: int
    tuple_items: int


class Writer(NativeBuilder):
    """A builder for functions that return early and call the C API of Python."""

    def __init__(self, function: Function, host: Host) -> None:
        super().__init__(function)
        self.host = host
        self.failed: Block | None = None

    def need(self, condition: Value, otherwise: Block | None = None) -> None:
        """Continue if the condition holds; else branch to `otherwise`, or return 0."""
        if otherwise is None:
            otherwise = self.failed = self.failed or self.function.block("failed")
        go = self.function.block("go")
        self.cond_br(condition, go, otherwise)
        self.resume(go)

    def finish(self, result: Value) -> None:
        """Return the result, and write the block that failed conditions lead to."""
        self.ret(result)
        if self.failed is not None:
            self.enter(self.failed)
            self.ret(constant(self.function.result, 0))

    def at(self, base: Value, offset: int, type: Type = i64) -> Value:
        """Load from an address and an offset in bytes."""
        return self.load(type, self.gep(base, offset))

    def api(self, name: str, *args: Value, result: Type = ptr) -> Value:
        """Call a function of Python's C API, or another one, by name."""
        return self.call(name, result, args)

    def item(self, tuple: Value, index: int | Value) -> Value:
        """An item of a tuple, as a borrowed reference, without any check."""
        items = self.gep(tuple, self.host.tuple_items)
        return self.load(ptr, self.gep(items, num(index) if isinstance(index, int) else index, ptr))

    def size(self, object: Value) -> Value:
        """The length of a tuple or a list."""
        return self.at(object, layout.SIZE)

    def keep(self, object: Value) -> None:
        self.api("Py_IncRef", object, result=void)

    def drop(self, object: Value) -> None:
        self.api("Py_DecRef", object, result=void)

    def keep_here(self, object: Value) -> None:
        """As `keep`, without a call unless the object is immortal or has very many references."""
        count = self.load(i32, object)
        self.count_or_call(object, self.icmp("ult", count, MANY), self.add(count, 1), self.keep)

    def drop_here(self, object: Value) -> None:
        """As `drop`, without a call if there are other references."""
        count = self.load(i32, object)
        self.count_or_call(object, self.icmp("ult", self.sub(count, 2), MANY), self.sub(count, 1), self.drop)

    def count_or_call(self, object: Value, plain: Value, count: Value, call: Callable[[Value], None]) -> None:
        def here() -> list[Value]:
            self.store(count, object)
            return []

        def there() -> list[Value]:
            call(object)
            return []

        self.if_else(plain, here, there, LIKELY)

    def copy_words(self, target: Value, source: Value, count: Value) -> None:
        """Copy a few 64-bit words; a call of memcpy would take longer."""
        with self.loop(0, count) as index:
            self.store(self.load(i64, self.gep(source, index, i64)), self.gep(target, index, i64))

    def copy_fours(self, target: Value, source: Value, count: Value, added: Value | None = None) -> None:
        """Copy 64-bit words, `added` to each; up to three words behind the last are copied, too."""
        with self.loop(0, count, FOUR) as index:
            words = self.load(vector(i64, FOUR), self.gep(source, index, i64), align=8)
            words = words if added is None else self.add(words, self.splat(added, FOUR))
            self.store(words, self.gep(target, index, i64), align=8)

    def call_object(self, function: Value, objects: Sequence[Value]) -> Value:
        """Call a Python function; return a new reference, NULL if it raises."""
        arguments = self.alloca(ptr, len(objects))
        for index, object in enumerate(objects):
            self.store(object, self.gep(arguments, 8 * index))
        return self.api("PyObject_Vectorcall", function, arguments, num(len(objects)), NULL)

    def call_method(self, object: Value, name: str) -> Value:
        """Call ``object.name()``; return a new reference, NULL if it raises."""
        address = self.alloca(ptr)
        self.store(object, address)
        return self.api("PyObject_VectorcallMethod", self.context(f"name_{name}"), address, num(1), NULL)

    def take_int(self, object: Value, otherwise: Block | None = None) -> Value:
        """Return the low 64 bits of a Python int and release it; branch to `otherwise` if `object` is NULL."""
        self.need(self.is_object(object), otherwise)
        value = self.api("PyLong_AsUnsignedLongLongMask", object, result=i64)
        self.drop(object)
        return value

    def context(self, name: str) -> Value:
        """Load an address that `machine.py` has put into `launch.context`."""
        return self.at(memory("launch.context"), 8 * layout.CONTEXT.index(name), ptr)

    def is_object(self, object: Value) -> Value:
        return self.icmp("ne", object, NULL)


def call_with(b: Writer, function: Value, objects: list[Value]) -> Value:
    """Call a Python function and release its arguments; return True, as an i1, unless it raises."""
    result = b.call_object(function, objects)
    for object in objects:
        b.drop(object)
    done = b.is_object(result)
    with b.if_(done):
        b.drop(result)
    return done


class Guard:
    """The inputs of a guard. Creating one emits the check of the argument's class."""

    def __init__(self, b: Writer, arg: Value, settings: Value, cls: Value, expected: Value, frame: Value) -> None:
        self.b, self.arg, self.settings, self.expected, self.frame = b, arg, settings, expected, frame
        b.need(b.icmp("eq", b.at(arg, layout.TYPE, ptr), cls))
        self.slot = self.slot_at(b.at(settings, 28, i32))  # for what it finds

    def slot_at(self, index: Value) -> Value:
        """The address of a slot of the frame."""
        return self.b.gep(self.frame, self.b.sext(index, i64), i64)

    def low(self) -> Value:
        return self.b.at(self.settings, 8)

    def high(self) -> Value:
        return self.b.at(self.settings, 16)

    def mode(self) -> Value:
        return self.b.at(self.settings, 24, i32)

    def stored(self) -> Value:
        return self.b.at(self.settings, 32, i32)

    def mask(self) -> Value:
        return self.b.at(self.settings, 36, i32)

    def other(self) -> Value:
        return self.b.at(self.settings, layout.GUARD_OTHER, i32)

    def low_address(self) -> Value:
        return self.b.at(self.settings, 8, ptr)


Body = Callable[[Writer, Guard], None]


def guard(body: Body) -> Body:
    """Register a guard under the name of its body; reaching the end of the body means that the argument fits."""

    @GUARDS(f"i32 {body.__name__}(ptr arg, ptr guard, ptr type, ptr expected, ptr frame)")
    def write(b: Writer, *given: Value) -> None:
        body(b, Guard(b, *given))
        b.finish(YES)

    return body


def read_small_int(b: Writer, object: Value) -> Value:
    """Read a Python int of at most 64 bits, without a call if it has one digit in a known representation."""
    kind, tag = b.ptrtoint(b.context("digits"), i64), b.at(object, layout.SIZE)
    by_tag = b.icmp("eq", kind, layout.DIGITS_BY_TAG)
    sign = b.select(by_tag, b.sub(num(1), b.and_(tag, 3)), tag)
    has_one = b.select(by_tag, b.icmp("ult", tag, 16), b.icmp("ult", b.add(tag, 1), 3))
    is_small = b.and_(has_one, b.icmp("ne", kind, layout.DIGITS_UNKNOWN))
    digit = b.zext(b.at(object, layout.DIGIT, i32), i64)
    (value,) = b.if_else(is_small, lambda: [b.mul(digit, sign)], lambda: [read_int(b, object)], LIKELY)
    return value


def read_int(b: Writer, object: Value) -> Value:
    """Read a Python int; leave if it does not fit into 64 bits."""
    overflow = b.alloca(i32)
    value = b.api("PyLong_AsLongLongAndOverflow", object, overflow, result=i64)
    b.need(b.icmp("eq", b.load(i32, overflow), 0))
    return value


def need_member(b: Writer, g: Guard, bit: Value) -> None:
    """Leave unless the bit is in the set `mode`."""
    b.need(b.icmp("ne", b.and_(g.mode(), bit), 0))


@guard
def guard_constant(b: Writer, g: Guard) -> None:
    """Accept the expected object, or an equal int, str or float."""
    same, unequal = b.new_block("same"), b.new_block("unequal")
    b.cond_br(b.icmp("eq", g.arg, g.expected), same, unequal)
    b.resume(unequal)
    kinds = {mode: b.new_block("compare") for mode in (layout.SAME_INT, layout.SAME_TEXT, layout.SAME_FLOAT)}
    b.failed = b.failed or b.function.block("failed")
    b.switch(g.mode(), b.failed, list(kinds.items()))
    for mode, block in kinds.items():
        b.enter(block)
        if mode == layout.SAME_INT:
            equal = b.icmp("eq", read_int(b, g.arg), g.low())
        elif mode == layout.SAME_TEXT:
            equal = b.icmp("eq", b.api("PyUnicode_Compare", g.arg, g.expected, result=i32), 0)
        else:
            bits = b.bitcast(b.api("PyFloat_AsDouble", g.arg, result=f64), i64)
            equal = b.icmp("eq", bits, g.low())
        b.need(equal)
        b.br(same)
    b.enter(same)


def store_address(b: Writer, g: Guard, address: Value) -> None:
    """Store the address of memory; leave if its alignment is not one that the entry allows."""
    aligned = b.icmp("eq", b.and_(address, 15), 0)
    need_member(b, g, b.select(aligned, constant(i32, layout.MULTIPLE), constant(i32, layout.OTHER)))
    b.need(b.icmp("eq", b.and_(address, b.zext(g.mask(), i64)), 0))
    b.store(address, g.slot)


@guard
def guard_array(b: Writer, g: Guard) -> None:
    """Accept a NumPy array of the expected dtype, writable if the kernel writes to it.

    Its members are read as C extensions do: the fields of `PyArrayObject` are a part of NumPy's stable ABI.
    """
    b.need(b.icmp("eq", b.at(g.arg, layout.ARRAY_DTYPE, ptr), g.expected))
    writable = b.icmp("ne", b.and_(b.at(g.arg, layout.ARRAY_FLAGS, i32), layout.WRITEABLE), 0)
    read_only = b.icmp("eq", g.stored(), 0)
    b.need(b.or_(writable, read_only))
    store_address(b, g, b.at(g.arg, layout.ARRAY_DATA))
    with b.if_(b.icmp("ne", g.other(), 0)):
        first, last = b.alloca(i64), b.alloca(i64)
        for end in (first, last):
            b.store(b.at(g.arg, layout.ARRAY_DATA), end)
        sizes, strides = (b.at(g.arg, at, ptr) for at in (layout.ARRAY_SIZES, layout.ARRAY_STRIDES))
        with b.loop(0, b.zext(b.at(g.arg, layout.ARRAY_RANK, i32), i64)) as axis:
            size, stride = (b.load(i64, b.gep(extents, axis, i64)) for extents in (sizes, strides))
            step = b.mul(b.sub(size, 1), stride)
            end = b.select(b.icmp("sgt", step, 0), last, first)
            b.store(b.add(b.load(i64, end), step), end)
        store_ends(b, g, b.load(i64, first), b.add(b.load(i64, last), g.high()))


def store_ends(b: Writer, g: Guard, first: Value, end: Value) -> None:
    """Store the extent that a kernel may reach through an argument, as `runtime/devices/host/pack.py` finds it."""
    address = g.slot_at(g.other())
    b.store(first, address)
    b.store(end, b.gep(address, 8))


@guard
def guard_apart(b: Writer, g: Guard) -> None:
    """Require that no pair of `mode` pairs of arguments overlaps, or (`stored` 1) that one does.

    `low` is the address of the slots that hold the ends of each pair.
    """
    overlaps, pairs = b.alloca(i32), g.low_address()
    b.store(constant(i32, 0), overlaps)
    with b.loop(0, b.mul(b.sext(g.mode(), i64), 16), 16) as offset:
        one, two = (b.gep(g.frame, b.load(i64, b.gep(b.gep(pairs, offset), at)), i64) for at in (0, 8))
        meets = b.and_(*(b.icmp("ult", b.at(a, 0), b.at(z, 8)) for a, z in ((one, two), (two, one))))
        with b.if_(meets):
            b.store(YES, overlaps)
    b.need(b.icmp("eq", b.load(i32, overlaps), g.stored()))


@guard
def guard_tensor(b: Writer, g: Guard) -> None:
    """Accept memory whose `dtype` and `device` equal the two expected ones; `data_ptr()` is its address.

    With `high` 1 the argument is a torch tensor, of a torch without DLPack's exchange interface.
    """
    for index, name in enumerate(("dtype", "device")):
        found = b.api("PyObject_GetAttr", g.arg, b.context(f"name_{name}"))
        b.need(b.is_object(found))
        same = b.api("PyObject_RichCompareBool", found, b.item(g.expected, index), constant(i32, EQUAL), result=i32)
        b.drop(found)
        b.need(b.icmp("eq", same, 1))
    with b.if_(b.icmp("ne", g.high(), 0)):
        b.need(b.icmp("ne", b.run("is_false", b.call_method(g.arg, "is_neg")), 0))
    address = b.take_int(b.call_method(g.arg, "data_ptr"))
    b.need(b.icmp("ne", address, 0))  # nothing to point at, or freed: the Python path knows which
    store_address(b, g, address)
    store_storage(b, g)


@guard
def guard_dlpack(b: Writer, g: Guard) -> None:
    """A torch tensor, which the function at `high` describes (DLPack's exchange interface): `low` is its
    `element_bits`, and the expected object is the method `is_neg`.

    Torch negates the elements of some views when it reads them: imaginary parts, which are at odd multiples of their
    size. At another address is one only if `as_strided` or `set_` has moved such a view to the real parts, which is not
    noticed here.
    """
    found = b.alloca(i64, layout.DL_WORDS)
    b.need(b.icmp("eq", b.call(b.inttoptr(g.high(), ptr), i32, [g.arg, found]), 0))
    element, kind, device = (
        b.zext(b.at(found, at, i32), i64) for at in (layout.DL_ELEMENT, layout.DL_KIND, layout.DL_DEVICE)
    )
    b.need(b.icmp("eq", b.or_(element, b.or_(b.shl(kind, 32), b.shl(device, 48))), g.low()))
    start = b.at(found, layout.DL_DATA)
    b.need(b.icmp("ne", start, 0))  # nothing in it, or freed: the Python path knows which
    address = b.add(start, b.at(found, layout.DL_OFFSET))
    pair = b.lshr(b.and_(b.lshr(element, 8), 0xFF), 2)  # bytes of two elements
    with b.if_(b.icmp("ne", b.and_(address, b.sub(pair, 1)), 0)):
        b.need(b.icmp("ne", b.run("is_false", b.call_object(g.expected, [g.arg])), 0))
    store_address(b, g, address)
    store_storage(b, g)


@routine("i32 is_false(ptr answer)")
def is_false(b: Writer, answer: Value) -> None:
    """Return 1 if the result of a method is False; 0 if it is not, or NULL. Releases the result."""
    b.need(b.is_object(answer))
    is_true = b.api("PyObject_IsTrue", answer, result=i32)
    b.drop(answer)
    b.finish(b.zext(b.icmp("eq", is_true, 0), i32))


def store_storage(b: Writer, g: Guard) -> None:
    """Store both ends of a torch tensor's storage, all of which a kernel may reach, if the entry compares extents."""
    with b.if_(b.icmp("ne", g.other(), 0)):
        address = g.slot_at(g.other())
        b.need(b.icmp("ne", b.run("storage_extent", g.arg, address), 0))


@routine("i32 storage_extent(ptr tensor, ptr ends)")
def storage_extent(b: Writer, tensor: Value, ends: Value) -> None:
    """Write the first address of a torch tensor's storage and the end of it; return 0 if torch raises."""
    storage, leave = b.call_method(tensor, "untyped_storage"), b.new_block("leave")
    b.need(b.is_object(storage))
    first = b.take_int(b.call_method(storage, "data_ptr"), leave)
    size = b.take_int(b.call_method(storage, "nbytes"), leave)
    b.drop(storage)
    b.store(first, ends)
    b.store(b.add(first, size), b.gep(ends, 8))
    b.ret(YES)
    b.enter(leave)
    b.drop(storage)
    b.finish(constant(i32, 0))


@guard
def guard_small(b: Writer, g: Guard) -> None:
    """Accept a torch tensor whose storage begins at the address in the slot, and has at most `high` bytes."""
    ends = b.alloca(i64, 2)
    b.need(b.icmp("ne", b.run("storage_extent", g.arg, ends), 0))
    b.need(b.icmp("eq", b.at(ends, 0), b.load(i64, g.slot)))
    b.need(b.icmp("ule", b.sub(b.at(ends, 8), b.at(ends, 0)), g.high()))


@guard
def guard_converted(b: Writer, g: Guard) -> None:
    """Accept an object that the expected function converts to an address or to the bits of a float."""
    store_address(b, g, b.take_int(b.call_object(g.expected, [g.arg])))


@guard
def guard_interface(b: Writer, g: Guard) -> None:
    """Accept an array on a GPU with the expected `typestr` in its ``__cuda_array_interface__``, and no stream to wait
    for.
    """
    found = b.api("PyObject_GetAttr", g.arg, b.context("name___cuda_array_interface__"))
    b.need(b.is_object(found))
    address = b.run("interface_address", found, g.expected)
    b.drop(found)
    b.need(b.icmp("ne", address, 0))
    store_address(b, g, address)


@routine("i64 interface_address(ptr interface, ptr expected)")
def interface_address(b: Writer, interface: Value, expected: Value) -> None:
    """Return the address in a ``__cuda_array_interface__``; 0 if its items are not the expected ones."""
    name = b.api("PyDict_GetItemWithError", interface, b.context("name_typestr"))
    b.need(b.is_object(name))
    b.need(is_class(b, name, "str"))
    b.need(b.icmp("eq", b.api("PyUnicode_Compare", name, expected, result=i32), 0))
    stream = b.api("PyDict_GetItemWithError", interface, b.context("name_stream"))
    b.need(b.or_(b.is_null(stream), b.icmp("eq", stream, b.context("none"))))
    data = b.api("PyDict_GetItemWithError", interface, b.context("name_data"))
    b.need(b.is_object(data))
    b.need(is_class(b, data, "tuple"))
    b.need(b.icmp("sge", b.size(data), 1))
    address = b.item(data, 0)
    b.need(is_class(b, address, "int"))
    b.finish(b.api("PyLong_AsUnsignedLongLongMask", address, result=i64))


@guard
def guard_int(b: Writer, g: Guard) -> None:
    """Accept an int between `low` and `high` whose kind (1, a multiple of 16, other) is in the set `mode`."""
    value = read_small_int(b, g.arg)
    b.need(b.icmp("sge", value, g.low()))
    b.need(b.icmp("sle", value, g.high()))
    multiple = b.icmp("eq", b.and_(value, 15), 0)
    bit = b.select(multiple, constant(i32, layout.MULTIPLE), constant(i32, layout.OTHER))
    bit = b.select(b.icmp("eq", value, 1), constant(i32, layout.ONE), bit)
    need_member(b, g, bit)
    b.store(value, g.slot)


@guard
def guard_float(b: Writer, g: Guard) -> None:
    """Accept a float, and store it as f32, or as f64 if `mode` is 1."""
    value = b.api("PyFloat_AsDouble", g.arg, result=f64)
    narrow = b.zext(b.bitcast(b.fptrunc(value, f32), i32), i64)
    wide = b.icmp("eq", g.mode(), 1)
    b.store(b.select(wide, b.bitcast(value, i64), narrow), g.slot)


@guard
def guard_bool(b: Writer, g: Guard) -> None:
    """Accept True (the expected object) or False."""
    b.store(b.zext(b.icmp("eq", g.arg, g.expected), i64), g.slot)


def is_class(b: Writer, object: Value, name: str) -> Value:
    """Return True if an object is exactly of one of the classes of the context."""
    return b.icmp("eq", b.at(object, layout.TYPE, ptr), b.context(name))


@guard
def guard_equal(b: Writer, g: Guard) -> None:
    """Accept an object that equals the expected one by Python's ``==``."""
    same = b.api("PyObject_RichCompareBool", g.arg, g.expected, constant(i32, EQUAL), result=i32)
    b.need(b.icmp("eq", same, 1))


@guard
def guard_tuple(b: Writer, g: Guard) -> None:
    """Accept a tuple of `mode` items, and store the items for the guards that follow."""
    count = b.size(g.arg)
    b.need(b.icmp("eq", count, b.sext(g.mode(), i64)))
    with b.loop(0, count) as index:
        b.store(b.item(g.arg, index), b.gep(g.slot, index, i64))


def need_guards(b: Writer, guards: Value, end: Value, frame: Value) -> None:
    """Run the guards of an entry, `end` bytes of settings at `guards`; leave if an argument does not fit."""
    reached = b.alloca(i64)
    objects = b.gep(frame, 8 * layout.OBJECTS)
    look, again, done = b.new_block("look"), b.new_block("again"), b.new_block("done")
    b.store(num(0), reached)
    b.br(again)
    b.resume(again)
    position = b.load(i64, reached)
    b.cond_br(b.icmp("slt", position, end), look, done)
    with b.scope():
        b.resume(look)
        settings = b.gep(guards, position)
        object = b.load(ptr, b.gep(objects, b.sext(b.at(settings, layout.GUARD_SOURCE, i32), i64), ptr))
        count = write_guard(b, object, settings, frame)
        b.need(b.icmp("ne", count, 0))
        b.store(b.add(position, b.mul(b.zext(count, i64), layout.GUARD.size)), reached)
        b.br(again)
    b.resume(done)


def write_guard(b: Writer, object: Value, settings: Value, frame: Value) -> Value:
    """Run a guard, the two most frequent ones inline; return how many guards to advance, 0 if the object does not
    fit.
    """
    function, cls = b.at(settings, 0, ptr), b.at(settings, layout.GUARD_CLASS, ptr)

    def called() -> list[Value]:
        return [b.call(function, i32, [object, settings, cls, b.at(settings, layout.GUARD_EXPECTED, ptr), frame])]

    def unless(body: Body, otherwise: Callable[[], list[Value]]) -> list[Value]:
        def here() -> list[Value]:
            body(b, Guard(b, object, settings, cls, b.at(settings, layout.GUARD_EXPECTED, ptr), frame))
            return [YES]

        return list(b.if_else(b.icmp("eq", function, memory(body.__name__)), here, otherwise))

    (count,) = unless(guard_dlpack, lambda: unless(guard_int, called))
    return count
