"""The guards of the native launcher, one function for each kind of argument, and the builder that writes them.

``i32 guard_int(arg, guard, class, expected, slot)`` says whether an argument is of exactly the class and as the settings at
`guard` want it (`launcher.py` has their layout), and if so stores it in its slot.
"""

from tilework.targets.cpu.run.launcher_layout import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    CONTEXT,
    MULTIPLE,
    ONE,
    OTHER,
    SAME_FLOAT,
    SAME_INT,
    SAME_TEXT,
    TYPE,
    WRITEABLE,
)
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, f32, f64, i16, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

NULL = constant(ptr, 0)


def num(value: int) -> Value:
    return constant(i64, value)


class Writer(Builder):
    """A builder with what every function here needs: leaving early, and the C API."""

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
        """An item of a tuple; no reference is taken."""
        return self.api("PyTuple_GetItem", tuple, num(index) if isinstance(index, int) else index)

    def keep(self, object: Value) -> None:
        self.api("Py_IncRef", object, result=void)

    def drop(self, object: Value) -> None:
        self.api("Py_DecRef", object, result=void)

    def context(self, name: str) -> Value:
        """An address that Python has filled in."""
        return self.at(Value(ptr, "@launch.context"), 8 * CONTEXT.index(name), ptr)

    def is_null(self, object: Value) -> Value:
        return self.icmp("eq", object, NULL)

    def is_object(self, object: Value) -> Value:
        return self.icmp("ne", object, NULL)


def guard(module: Module, name: str) -> tuple[Writer, Value, Value, Value, Value]:
    """Start a guard, which has checked that the class is right: (writer, argument, settings, expected, slot)."""
    params = [(ptr, "arg"), (ptr, "guard"), (ptr, "type"), (ptr, "expected"), (ptr, "slot")]
    function = module.function(name, i32, params, attributes=("nounwind",))
    b = Writer(function)
    arg, settings, type, expected, slot = function.args
    b.need(b.icmp("eq", b.at(arg, TYPE, ptr), type))
    return b, arg, settings, expected, slot


YES = constant(i32, 1)


def settings_low(b: Writer, guard: Value) -> Value:
    return b.at(guard, 8)


def settings_mode(b: Writer, guard: Value) -> Value:
    return b.at(guard, 24, i32)


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
    """A torch tensor of one dtype in host memory; its attributes are read as Python would."""
    b, arg, settings, expected, slot = guard(module, "guard_tensor")
    for name, wanted in (("dtype", expected), ("is_cpu", b.context("true"))):
        found = b.api("PyObject_GetAttr", arg, b.context(name))
        b.need(b.is_object(found))
        b.drop(found)
        b.need(b.icmp("eq", found, wanted))
    store_data_pointer(b, arg, settings, slot)
    b.finish(YES)


def write_fields(module: Module) -> None:
    """The same, but dtype and device are read from the tensor's implementation, see `tensor_places.py`."""
    b, arg, settings, _, slot = guard(module, "guard_fields")
    implementation = b.load(ptr, b.gep(arg, b.ptrtoint(b.context("implementation"), i64)))
    b.need(b.is_object(implementation))
    keys = b.load(i64, b.gep(implementation, b.ptrtoint(b.context("keys"), i64)))
    b.need(b.icmp("eq", keys, settings_low(b, settings)))
    element = b.load(i16, b.gep(implementation, b.ptrtoint(b.context("element"), i64)))
    b.need(b.icmp("eq", b.zext(element, i64), b.at(settings, 16)))
    store_data_pointer(b, arg, settings, slot)
    b.finish(YES)


def store_data_pointer(b: Writer, arg: Value, settings: Value, slot: Value) -> None:
    """``arg.data_ptr()``: torch may have to copy before it gives an address away."""
    place = b.alloca(ptr)
    b.store(arg, place)
    found = b.api("PyObject_VectorcallMethod", b.context("data_ptr"), place, num(1), NULL)
    b.need(b.is_object(found))
    address = b.api("PyLong_AsUnsignedLongLongMask", found, result=i64)
    b.drop(found)
    b.need(b.icmp("ne", address, 0))  # nothing to point at, or freed: the Python path knows which
    store_address(b, address, settings, slot)


def write_int(module: Module) -> None:
    """An int between two bounds: 1, a multiple of 16, another, or any of these."""
    b, arg, settings, _, slot = guard(module, "guard_int")
    value = read_int(b, arg)
    b.need(b.icmp("sge", value, settings_low(b, settings)))
    b.need(b.icmp("sle", value, b.at(settings, 16)))
    multiple = b.icmp("eq", b.and_(value, 15), 0)
    bit = b.select(multiple, constant(i32, MULTIPLE), constant(i32, OTHER))
    bit = b.select(b.icmp("eq", value, 1), constant(i32, ONE), bit)
    need_member(b, settings_mode(b, settings), bit)
    b.store(value, slot)
    b.finish(YES)


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


WRITERS = (write_constant, write_array, write_tensor, write_fields, write_int, write_float, write_bool)
