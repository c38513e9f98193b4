"""The launch of a kernel on a GPU: get the stream, and call `cuLaunchKernelEx` or `hipModuleLaunchKernel`.

The stream is asked for by torch's `current_work_stream` (DLPack), if the record has it, else by Python. An entry is for
one context (on AMD GPUs: one device): a thread that uses another device, or none yet, uses it for the launch if the
arguments choose the device (their guards have seen that they are there), else it takes the Python path. The driver gets
the addresses of the slots; its call may wait for room in the stream, and runs without the GIL. Calls of Python:
`stream(device)` is the one that launches go to at this moment, `scratch(x, y, z, stream)` gives the addresses of the
scratch memory and what keeps it alive until the driver has been called, `fault(code, x, y, z)` raises what a failed
call means.
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
    """Return 1 if this thread uses the context of the entry, or may for the launch."""
    with b.if_(b.icmp("eq", b.at(record, layout.SET_CONTEXT), 0)):
        place = b.alloca(i64)
        b.store(num(0), place)
        b.need(b.icmp("eq", b.call(b.at(record, layout.ASK_CONTEXT, ptr), i32, [place]), 0))
        b.need(b.icmp("eq", b.load(i64, place), b.at(record, layout.DEVICE_CONTEXT)))
    b.finish(YES)


def call_driver(b: Writer, record: Value, config: Value, addresses: Value) -> Value:
    """Call the driver; its result."""
    call, function = b.at(record, layout.LAUNCH_CALL, ptr), b.at(record, layout.FUNCTION, ptr)

    def by_config() -> list[Value]:
        """As `cuLaunchKernelEx` is called."""
        return [b.call(call, i32, [config, function, addresses, NULL])]

    def by_numbers() -> list[Value]:
        """As `hipModuleLaunchKernel` is; that for cooperative grids does not look at the last argument."""
        numbers = [b.at(config, place, i32) for place in (*range(0, layout.CONFIG_SHARED, 4), layout.CONFIG_SHARED)]
        stream = b.at(config, layout.CONFIG_STREAM, ptr)
        return [b.call(call, i32, [function, *numbers, stream, addresses, NULL])]

    (code,) = b.if_else(b.icmp("eq", b.at(record, layout.BY_NUMBERS), 0), by_config, by_numbers)
    return code


@routine("i32 run_gpu(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_gpu(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, _total: Value) -> None:
    """Put the kernel into the stream; 0 with an exception on failure."""
    handle = ask_stream(b, entry, record)
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
        b.call(b.at(record, layout.ASK_CONTEXT, ptr), i32, [before])
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


def ask_stream(b: Writer, entry: Value, record: Value, otherwise: Block | None = None) -> Value:
    """The stream that launches go to at this moment; leaves with the exception of torch or of Python."""
    ask = b.at(record, layout.ASK_STREAM, ptr)

    def asked() -> list[Value]:
        """By torch."""
        kind, device = (b.trunc(b.at(record, at), i32) for at in (layout.STREAM_KIND, layout.DEVICE_NUMBER))
        place = b.alloca(i64)
        b.need(b.icmp("eq", b.call(ask, i32, [kind, device, place]), 0), otherwise)
        return [b.load(i64, place)]

    def through_python() -> list[Value]:
        call = b.item(entry, layout.DEVICE_CALL)
        return [b.take_word(b.ask(b.item(call, 0), [b.item(call, 1)]), otherwise)]

    (handle,) = b.if_else(b.is_object(ask), asked, through_python)
    return handle


def write_config(b: Writer, config: Value, record: Value, blocks: Sequence[Value]) -> None:
    """The configuration of a launch, but for its stream."""
    b.copy(config, b.gep(record, layout.CONFIG), num(layout.CONFIG_BYTES))
    for axis, size in enumerate(blocks):
        b.store(b.trunc(size, i32), b.gep(config, 4 * axis))


def write_addresses(b: Writer, addresses: Value, record: Value, slots: Value) -> None:
    """The addresses of the parameters, as the driver takes them."""
    places, count = b.gep(record, layout.PARAMETERS), b.at(record, layout.PARAMETER_COUNT)
    b.copy_fours(addresses, places, count, b.ptrtoint(slots, i64))


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


def scratch(b: Writer, record: Value, allocate: Value, numbers: list[Value], slots: Value) -> Value:
    """Put the addresses of scratch memory into the last two slots; what keeps it alive. Leaves with the allocator's
    exception.
    """
    objects = [b.api("PyLong_FromLongLong", number) for number in numbers[:3]]
    objects.append(b.api("PyLong_FromUnsignedLongLong", numbers[3]))
    found = b.ask(allocate, objects)
    for object in objects:
        b.drop(object)
    b.need(b.is_object(found))
    first = b.sub(b.at(record, layout.PARAMETER_COUNT), 2)
    for index in range(2):
        place = b.load(i64, b.gep(b.gep(record, layout.PARAMETERS), b.add(first, index), i64))
        address = b.api("PyLong_AsUnsignedLongLongMask", b.item(found, index), result=i64)
        b.store(address, b.gep(slots, place))
    return found


def fail(b: Writer, entry: Value, code: Value, extent: list[Value]) -> None:
    """Raise the exception of a result."""
    numbers = [b.api("PyLong_FromLongLong", number) for number in (b.sext(code, i64), *extent)]
    call_with(b, b.item(entry, layout.FAULT_CALL), numbers)
