"""The launch of a kernel on a GPU: get the stream, and call `cuLaunchKernelEx` or `hipModuleLaunchKernel`.

The current stream comes from torch's `current_work_stream` (DLPack), if the record has it, else from Python. An entry
is for one context (on AMD GPUs: one device). A thread that uses another device, or none yet, switches to the context
for the launch if the arguments choose the device (their guards have checked that the memory is there); else it takes
the Python path. The driver receives the addresses of the slots; its call may wait for room in the stream, and runs
without the GIL. Functions of Python: `stream(device)` returns the current stream, `scratch(x, y, z, stream)` the
addresses of the scratch memory and the objects that keep it alive until the driver has been called, and `fault(code, x,
y, z)` raises the error of a failed call.
"""

from collections.abc import Callable, Sequence

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import YES, Writer, call_with, routine
from tilework.runtime.launch.native.code.log_lines import Events
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

INVALID_VALUE = 1
LARGEST = layout.LARGEST_X, layout.LARGEST_YZ, layout.LARGEST_YZ


@routine("i32 ready_gpu(ptr record)")
def ready_gpu(b: Writer, record: Value) -> None:
    """Return 1 if this thread uses the context of the entry, or may switch to it."""
    with b.if_(b.icmp("eq", b.at(record, layout.SET_CONTEXT), 0)):
        current = b.alloca(i64)
        b.store(num(0), current)
        b.need(b.icmp("eq", b.call(b.at(record, layout.GET_CONTEXT, ptr), i32, [current]), 0))
        b.need(b.icmp("eq", b.load(i64, current), b.at(record, layout.DEVICE_CONTEXT)))
    b.finish(YES)


def call_driver(b: Writer, record: Value, config: Value, addresses: Value) -> Value:
    """Call the driver; its result."""
    call, function = b.at(record, layout.LAUNCH_CALL, ptr), b.at(record, layout.FUNCTION, ptr)

    def by_config() -> list[Value]:
        """As `cuLaunchKernelEx` is called."""
        return [b.call(call, i32, [config, function, addresses, NULL])]

    def by_values() -> list[Value]:
        """As `hipModuleLaunchKernel` is; that for cooperative grids does not look at the last argument."""
        values = [b.at(config, offset, i32) for offset in (*range(0, layout.CONFIG_SHARED, 4), layout.CONFIG_SHARED)]
        stream = b.at(config, layout.CONFIG_STREAM, ptr)
        return [b.call(call, i32, [function, *values, stream, addresses, NULL])]

    (code,) = b.if_else(b.icmp("eq", b.at(record, layout.BY_VALUES), 0), by_config, by_values)
    return code


@routine("i32 run_gpu(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_gpu(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, _total: Value) -> None:
    """Put the kernel into the stream; 0 with an exception on failure."""
    handle = current_stream(b, entry, record)
    extent = [b.at(sizes, 8 * axis) for axis in range(3)]
    blocks = [b.mul(extent[0], b.at(record, layout.CLUSTER)), *extent[1:]]
    for size, most in zip(blocks, LARGEST, strict=True):
        with b.if_(b.icmp("ugt", size, num(most))):
            fail(b, entry, constant(i32, INVALID_VALUE), extent)
            b.ret(constant(i32, 0))
    config, addresses = b.alloca(i8, layout.CONFIG_BYTES, align=16), b.alloca(ptr, layout.MOST_SLOTS)
    write_config(b, config, record, blocks)
    b.store(handle, b.gep(config, layout.CONFIG_STREAM))
    write_addresses(b, addresses, record, slots)
    allocate, kept = b.item(b.item(entry, layout.DEVICE_CALL), 2), b.alloca(ptr)
    b.store(NULL, kept)
    with b.if_(b.icmp("ne", allocate, b.context("none"))):
        b.store(scratch(b, record, allocate, [*extent, handle], slots), kept)
    set, here = b.at(record, layout.SET_CONTEXT, ptr), b.at(record, layout.DEVICE_CONTEXT)
    before = b.alloca(i64)  # the driver of AMD's GPUs writes half of it
    b.store(b.select(b.is_object(set), num(0), here), before)
    with b.if_(b.is_object(set)):
        b.call(b.at(record, layout.GET_CONTEXT, ptr), i32, [before])
    events, stream = Events.taken(b, sizes), b.inttoptr(handle, ptr)

    def start() -> Value:
        events.put(b, 0, stream)
        code = call_driver(b, record, config, addresses)
        events.put(b, 1, stream)
        return code

    code = in_context(b, set, here, b.load(i64, before), start)
    with b.if_(b.is_object(b.load(ptr, kept))):
        b.drop(b.load(ptr, kept))
    with b.if_(b.icmp("ne", code, 0)):
        fail(b, entry, code, extent)
        b.ret(constant(i32, 0))
    b.finish(YES)


def current_stream(b: Writer, entry: Value, record: Value, otherwise: Block | None = None) -> Value:
    """Return the current stream; leave with the exception of torch or of Python."""
    get_stream = b.at(record, layout.GET_STREAM, ptr)

    def from_torch() -> list[Value]:
        """From torch."""
        kind, device = (b.trunc(b.at(record, at), i32) for at in (layout.STREAM_KIND, layout.DEVICE_INDEX))
        stream = b.alloca(i64)
        b.need(b.icmp("eq", b.call(get_stream, i32, [kind, device, stream]), 0), otherwise)
        return [b.load(i64, stream)]

    def through_python() -> list[Value]:
        call = b.item(entry, layout.DEVICE_CALL)
        return [b.take_int(b.call_object(b.item(call, 0), [b.item(call, 1)]), otherwise)]

    (handle,) = b.if_else(b.is_object(get_stream), from_torch, through_python)
    return handle


def write_config(b: Writer, config: Value, record: Value, blocks: Sequence[Value]) -> None:
    """The configuration of a launch, but for its stream."""
    b.copy(config, b.gep(record, layout.CONFIG), num(layout.CONFIG_BYTES))
    for axis, size in enumerate(blocks):
        b.store(b.trunc(size, i32), b.gep(config, 4 * axis))


def write_addresses(b: Writer, addresses: Value, record: Value, slots: Value) -> None:
    """The addresses of the parameters, as the driver takes them."""
    offsets, count = b.gep(record, layout.PARAMETERS), b.at(record, layout.PARAMETER_COUNT)
    b.copy_fours(addresses, offsets, count, b.ptrtoint(slots, i64))


def in_context(b: Writer, set: Value, here: Value, before: Value, start: Callable[[], Value]) -> Value:
    """Call the driver without the GIL, in the context of the entry; its result."""
    is_elsewhere = b.icmp("ne", before, here)
    with b.if_(is_elsewhere):
        b.call(set, i32, [b.inttoptr(here, ptr)])
    thread = b.api("PyEval_SaveThread")
    code = start()
    b.api("PyEval_RestoreThread", thread, result=void)
    with b.if_(is_elsewhere):
        b.call(set, i32, [b.inttoptr(before, ptr)])
    return code


def scratch(b: Writer, record: Value, allocate: Value, values: list[Value], slots: Value) -> Value:
    """Put the addresses of scratch memory into the last two slots; return the object that keeps it alive. Leave with
    the allocator's exception.
    """
    objects = [b.api("PyLong_FromLongLong", value) for value in values[:3]]
    objects.append(b.api("PyLong_FromUnsignedLongLong", values[3]))
    found = b.call_object(allocate, objects)
    for object in objects:
        b.drop(object)
    b.need(b.is_object(found))
    first = b.sub(b.at(record, layout.PARAMETER_COUNT), 2)
    for index in range(2):
        offset = b.load(i64, b.gep(b.gep(record, layout.PARAMETERS), b.add(first, index), i64))
        address = b.api("PyLong_AsUnsignedLongLongMask", b.item(found, index), result=i64)
        b.store(address, b.gep(slots, offset))
    return found


def fail(b: Writer, entry: Value, code: Value, extent: list[Value]) -> None:
    """Raise the exception of a result."""
    values = [b.api("PyLong_FromLongLong", value) for value in (b.sext(code, i64), *extent)]
    call_with(b, b.item(entry, layout.FAULT_CALL), values)
