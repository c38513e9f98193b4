"""The guards of the native launcher, one function for each kind of argument, and the builder that writes them.

``i32 guard_int(arg, guard, class, expected, frame)`` says whether an object is of exactly the class and as the settings at
`guard` want it (`launcher_layout.py`), and if so stores it in its slot of the frame: 0 if not, else by how many guards to go on. Guards
of tuples and descriptors (`launcher_descriptors.py`) store what is inside of them in the frame, where later guards look at it.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from tilework.targets.cpu.run.launcher_layout import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    CONTEXT,
    DIGIT,
    DIGITS_BY_TAG,
    DIGITS_UNKNOWN,
    MULTIPLE,
    ONE,
    OTHER,
    SAME_FLOAT,
    SAME_INT,
    SAME_TEXT,
    SIZE,
    TYPE,
    WRITEABLE,
)
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, f32, f64, i8, i16, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

NULL = constant(ptr, 0)
MANY = constant(i32, 1 << 30)  # references; of what lives for ever Python counts more
LIKELY = (1000, 1)


def num(value: int) -> Value:
    return constant(i64, value)


class Writer(Builder):
    """A builder with what every function here needs: leaving early, and the C API."""

    tuple_items: ClassVar[int] = 24  # where the items of a tuple begin

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.failed: Block | None = None

    def need(self, condition: Value) -> None:
        """Go on if the condition holds, else give 0."""
        if self.failed is None:
            self.failed = self.function.block("failed")
        go = self.function.block("go")
        self.cond_br(condition, go, self.failed)
        self.resume(go)

    def finish(self, result: Value) -> None:
        """The last line, and the place where failed conditions lead."""
        self.ret(result)
        if self.failed is not None:
            self.enter(self.failed)
            self.ret(constant(self.function.result, 0))

    def at(self, base: Value, offset: int, type: Type = i64) -> Value:
        """What lies some bytes behind an address."""
        return self.load(type, self.gep(base, offset))

    def api(self, name: str, *args: Value, result: Type = ptr) -> Value:
        """Call a function of Python's C API, or another one, by name."""
        return self.call(name, result, args)

    def item(self, tuple: Value, index: int | Value) -> Value:
        """An item of a tuple; no reference is taken, and nothing checked."""
        items = self.gep(tuple, self.tuple_items)
        return self.load(ptr, self.gep(items, num(index) if isinstance(index, int) else index, ptr))

    def size(self, object: Value) -> Value:
        """How many items a tuple or a list has."""
        return self.at(object, SIZE)

    def keep(self, object: Value) -> None:
        self.api("Py_IncRef", object, result=void)

    def drop(self, object: Value) -> None:
        self.api("Py_DecRef", object, result=void)

    def keep_here(self, object: Value) -> None:
        """As `keep`, without a call unless it lives for ever, or for as many."""
        count = self.load(i32, object)
        self.count_or_call(object, self.icmp("ult", count, MANY), self.add(count, 1), self.keep)

    def drop_here(self, object: Value) -> None:
        """As `drop`, without a call where others keep it, too."""
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
        """Few words: a call of memcpy would take longer."""
        with self.loop(0, count) as index:
            self.store(self.load(i64, self.gep(source, index, i64)), self.gep(target, index, i64))

    def context(self, name: str) -> Value:
        """An address that Python has filled in."""
        return self.at(Value(ptr, "@launch.context"), 8 * CONTEXT.index(name), ptr)

    def is_null(self, object: Value) -> Value:
        return self.icmp("eq", object, NULL)

    def is_object(self, object: Value) -> Value:
        return self.icmp("ne", object, NULL)


def call_with(b: Writer, function: Value, objects: list[Value]) -> Value:
    """Call a Python function with new objects, which are given up; whether it succeeded, as an i1."""
    places = b.alloca(ptr, len(objects))
    for index, object in enumerate(objects):
        b.store(object, b.gep(places, 8 * index))
    result = b.api("PyObject_Vectorcall", function, places, num(len(objects)), NULL)
    for object in objects:
        b.drop(object)
    done = b.is_object(result)
    with b.if_(done):
        b.drop(result)
    return done


def slot_of(b: Writer, settings: Value, frame: Value) -> Value:
    """Where a guard puts what it found."""
    return word(b, frame, b.at(settings, 28, i32))


def guard(module: Module, name: str) -> tuple[Writer, Value, Value, Value, Value]:
    """Start a guard, which has checked that the class is right: (writer, object, settings, expected, slot)."""
    params = [(ptr, "arg"), (ptr, "guard"), (ptr, "type"), (ptr, "expected"), (ptr, "frame")]
    function = module.function(name, i32, params, attributes=("nounwind",))
    b = Writer(function)
    arg, settings, type, expected, frame = function.args
    b.need(b.icmp("eq", b.at(arg, TYPE, ptr), type))
    return b, arg, settings, expected, slot_of(b, settings, frame)


def word(b: Writer, base: Value, index: Value) -> Value:
    """The address of a word of 8 bytes."""
    return b.gep(base, b.sext(index, i64), i64)


YES = constant(i32, 1)


def settings_low(b: Writer, guard: Value) -> Value:
    return b.at(guard, 8)


def settings_mode(b: Writer, guard: Value) -> Value:
    return b.at(guard, 24, i32)


def read_small_int(b: Writer, object: Value) -> Value:
    """A Python int that fits into 64 bits, without a call if it has one digit and this Python keeps it as we know."""
    kind, tag = b.ptrtoint(b.context("digits"), i64), b.at(object, SIZE)
    by_tag = b.icmp("eq", kind, DIGITS_BY_TAG)
    sign = b.select(by_tag, b.sub(num(1), b.and_(tag, 3)), tag)
    has_one = b.select(by_tag, b.icmp("ult", tag, 16), b.icmp("ult", b.add(tag, 1), 3))
    is_small = b.and_(has_one, b.icmp("ne", kind, DIGITS_UNKNOWN))
    digit = b.zext(b.at(object, DIGIT, i32), i64)
    (value,) = b.if_else(is_small, lambda: [b.mul(digit, sign)], lambda: [read_int(b, object)], LIKELY)
    return value


def read_int(b: Writer, object: Value) -> Value:
    """A Python int that fits into 64 bits."""
    overflow = b.alloca(i32)
    value = b.api("PyLong_AsLongLongAndOverflow", object, overflow, result=i64)
    b.need(b.icmp("eq", b.load(i32, overflow), 0))
    return value


def need_member(b: Writer, mode: Value, bit: Value) -> None:
    """The bit must be in the set `mode`."""
    b.need(b.icmp("ne", b.and_(mode, bit), 0))


def write_constant(module: Module) -> None:
    """The same object, or an equal int, text or float of the same class."""
    b, arg, settings, expected, _ = guard(module, "guard_constant")
    same, unequal = b.new_block("same"), b.new_block("unequal")
    b.cond_br(b.icmp("eq", arg, expected), same, unequal)
    b.resume(unequal)
    kinds = {mode: b.new_block("compare") for mode in (SAME_INT, SAME_TEXT, SAME_FLOAT)}
    b.failed = b.failed or b.function.block("failed")
    b.switch(settings_mode(b, settings), b.failed, list(kinds.items()))
    for mode, block in kinds.items():
        b.enter(block)
        if mode == SAME_INT:
            equal = b.icmp("eq", read_int(b, arg), settings_low(b, settings))
        elif mode == SAME_TEXT:
            equal = b.icmp("eq", b.api("PyUnicode_Compare", arg, expected, result=i32), 0)
        else:
            bits = b.bitcast(b.api("PyFloat_AsDouble", arg, result=f64), i64)
            equal = b.icmp("eq", bits, settings_low(b, settings))
        b.need(equal)
        b.br(same)
    b.enter(same)
    b.finish(YES)


def store_address(b: Writer, address: Value, settings: Value, slot: Value) -> None:
    """An address whose alignment is as it should be."""
    aligned = b.icmp("eq", b.and_(address, 15), 0)
    need_member(b, settings_mode(b, settings), b.select(aligned, constant(i32, MULTIPLE), constant(i32, OTHER)))
    b.need(b.icmp("eq", b.and_(address, b.zext(b.at(settings, 36, i32), i64)), 0))
    b.store(address, slot)


def write_array(module: Module) -> None:
    """A NumPy array of one dtype, writable if the kernel writes to it."""
    b, arg, settings, expected, slot = guard(module, "guard_array")
    b.need(b.icmp("eq", b.at(arg, ARRAY_DTYPE, ptr), expected))
    writable = b.icmp("ne", b.and_(b.at(arg, ARRAY_FLAGS, i32), WRITEABLE), 0)
    read_only = b.icmp("eq", b.at(settings, 32, i32), 0)
    b.need(b.or_(writable, read_only))
    store_address(b, b.at(arg, ARRAY_DATA), settings, slot)
    b.finish(YES)


def write_tensor(module: Module) -> None:
    """Memory that says what it is: `dtype` and `device` equal the two that are expected, and `data_ptr()` is its address."""
    b, arg, settings, expected, slot = guard(module, "guard_tensor")
    for index, name in enumerate(("dtype", "device")):
        found = b.api("PyObject_GetAttr", arg, b.context(f"name_{name}"))
        b.need(b.is_object(found))
        same = b.api("PyObject_RichCompareBool", found, b.item(expected, index), constant(i32, EQUAL), result=i32)
        b.drop(found)
        b.need(b.icmp("eq", same, 1))
    store_address(b, data_pointer(b, arg), settings, slot)
    b.finish(YES)


EQUAL = 2  # Py_EQ


def write_fields(module: Module) -> None:
    """A torch tensor of one dtype on one device, whose members are read where `tensor_places.py` has found them.

    Torch may have to copy before it gives an address away (`checked`); then it is asked.
    """
    b, arg, settings, _, slot = guard(module, "guard_fields")
    look_at_fields(b, arg, settings, slot)
    b.finish(YES)


def look_at_fields(b: Writer, arg: Value, settings: Value, slot: Value) -> None:
    member = partial(member_of, b)
    implementation = member(arg, "implementation", ptr)
    b.need(b.is_object(implementation))
    b.need(b.icmp("eq", member(implementation, "keys"), settings_low(b, settings)))
    element, device = (b.zext(member(implementation, name, i16), i64) for name in ("element", "device"))
    b.need(b.icmp("eq", b.or_(element, b.shl(device, 16)), b.and_(b.at(settings, 16), 0xFFFFFFFF)))
    b.need(b.icmp("ne", member(implementation, "count"), 0))
    storage = member(implementation, "storage", ptr)
    b.need(b.is_object(storage))
    size = b.lshr(b.at(settings, 16), 32)

    def address() -> list[Value]:
        start = member(storage, "data")
        b.need(b.icmp("ne", start, 0))
        return [b.add(start, b.mul(member(implementation, "offset"), size))]

    is_plain = b.icmp("eq", member(storage, "checked", i8), 0)
    (found,) = b.if_else(is_plain, address, lambda: [data_pointer(b, arg)])
    store_address(b, found, settings, slot)


def member_of(b: Writer, holder: Value, name: str, type: Type = i64) -> Value:
    """A member of a torch tensor."""
    return b.load(type, b.gep(holder, b.ptrtoint(b.context(name), i64)))


def write_small(module: Module) -> None:
    """A torch tensor whose guard `guard_fields` was: it begins where its storage begins, which has at most `high` bytes."""
    b, arg, settings, _, _ = guard(module, "guard_small")
    implementation = member_of(b, arg, "implementation", ptr)
    b.need(b.icmp("eq", member_of(b, implementation, "offset"), 0))
    size = member_of(b, member_of(b, implementation, "storage", ptr), "size")
    b.need(b.icmp("ule", size, b.at(settings, 16)))
    b.finish(YES)


def data_pointer(b: Writer, arg: Value) -> Value:
    """``arg.data_ptr()``, if it is not null."""
    place = b.alloca(ptr)
    b.store(arg, place)
    found = b.api("PyObject_VectorcallMethod", b.context("name_data_ptr"), place, num(1), NULL)
    b.need(b.is_object(found))
    address = b.api("PyLong_AsUnsignedLongLongMask", found, result=i64)
    b.drop(found)
    b.need(b.icmp("ne", address, 0))  # nothing to point at, or freed: the Python path knows which
    return address


def write_asked(module: Module) -> None:
    """What the function that is expected makes of an object: an address, or bits of another kind."""
    b, arg, settings, expected, slot = guard(module, "guard_asked")
    place = b.alloca(ptr)
    b.store(arg, place)
    found = b.api("PyObject_Vectorcall", expected, place, num(1), NULL)
    b.need(b.is_object(found))
    word = b.api("PyLong_AsUnsignedLongLongMask", found, result=i64)
    b.drop(found)
    store_address(b, word, settings, slot)
    b.finish(YES)


def write_interface(module: Module) -> None:
    """An array on a GPU that describes itself in ``__cuda_array_interface__``; its `typestr` is expected."""
    b, arg, settings, expected, slot = guard(module, "guard_interface")
    found = b.api("PyObject_GetAttr", arg, b.context("name___cuda_array_interface__"))
    b.need(b.is_object(found))
    address = b.call("interface_address", i64, [found, expected])
    b.drop(found)
    b.need(b.icmp("ne", address, 0))
    store_address(b, address, settings, slot)
    b.finish(YES)


def write_interface_address(module: Module) -> None:
    """`interface_address(interface, typestr)`: the address in a dictionary of the interface, 0 if it is not as it should be."""
    function = module.function("interface_address", i64, [(ptr, "interface"), (ptr, "expected")], linkage="internal")
    b = Writer(function)
    interface, expected = function.args
    name = b.api("PyDict_GetItemWithError", interface, b.context("name_typestr"))
    b.need(b.is_object(name))
    b.need(is_class(b, name, "str"))
    b.need(b.icmp("eq", b.api("PyUnicode_Compare", name, expected, result=i32), 0))
    data = b.api("PyDict_GetItemWithError", interface, b.context("name_data"))
    b.need(b.is_object(data))
    b.need(is_class(b, data, "tuple"))
    b.need(b.icmp("sge", b.size(data), 1))
    address = b.item(data, 0)
    b.need(is_class(b, address, "int"))
    b.finish(b.api("PyLong_AsUnsignedLongLongMask", address, result=i64))


def write_int(module: Module) -> None:
    """An int between two bounds: 1, a multiple of 16, another, or any of these."""
    b, arg, settings, _, slot = guard(module, "guard_int")
    look_at_int(b, arg, settings, slot)
    b.finish(YES)


def look_at_int(b: Writer, arg: Value, settings: Value, slot: Value) -> None:
    value = read_small_int(b, arg)
    b.need(b.icmp("sge", value, settings_low(b, settings)))
    b.need(b.icmp("sle", value, b.at(settings, 16)))
    multiple = b.icmp("eq", b.and_(value, 15), 0)
    bit = b.select(multiple, constant(i32, MULTIPLE), constant(i32, OTHER))
    bit = b.select(b.icmp("eq", value, 1), constant(i32, ONE), bit)
    need_member(b, settings_mode(b, settings), bit)
    b.store(value, slot)


def write_float(module: Module) -> None:
    """A float, as 32 bits or (mode 1) as 64."""
    b, arg, settings, _, slot = guard(module, "guard_float")
    value = b.api("PyFloat_AsDouble", arg, result=f64)
    narrow = b.zext(b.bitcast(b.fptrunc(value, f32), i32), i64)
    wide = b.icmp("eq", settings_mode(b, settings), 1)
    b.store(b.select(wide, b.bitcast(value, i64), narrow), slot)
    b.finish(YES)


def write_bool(module: Module) -> None:
    """True or False."""
    b, arg, _, expected, slot = guard(module, "guard_bool")
    b.store(b.zext(b.icmp("eq", arg, expected), i64), slot)
    b.finish(YES)


def is_class(b: Writer, object: Value, name: str) -> Value:
    """Whether an object is exactly of one of Python's own classes."""
    return b.icmp("eq", b.at(object, TYPE, ptr), b.context(name))


def write_equal(module: Module) -> None:
    """An object that equals the expected one, as Python compares them."""
    b, arg, _, expected, _ = guard(module, "guard_equal")
    same = b.api("PyObject_RichCompareBool", arg, expected, constant(i32, EQUAL), result=i32)
    b.need(b.icmp("eq", same, 1))
    b.finish(YES)


def write_tuple(module: Module) -> None:
    """A tuple with as many items as `mode` says; they are looked at next."""
    b, arg, settings, _, slot = guard(module, "guard_tuple")
    count = b.size(arg)
    b.need(b.icmp("eq", count, b.sext(settings_mode(b, settings), i64)))
    with b.loop(0, count) as index:
        b.store(b.item(arg, index), b.gep(slot, index, i64))
    b.finish(YES)


WRITERS = (
    write_constant, write_equal, write_array, write_tensor, write_fields, write_small, write_interface_address, write_interface, write_asked,
    write_int, write_float, write_bool, write_tuple,
)  # fmt: skip
