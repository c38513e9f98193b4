"""The function that compiled code calls to print the lines of `tl.device_print`.

    void tilework_print(ptr description, i32 x, i32 y, i32 z, ptr addresses)

The description is the JSON of a constant: prefix, hex, and (shape, element, signed) of each operand. `addresses` has
one pointer per operand, to the elements of a tile or to one scalar. One call prints all lines of one op of one program:

    pid (0, 0, 0) idx (3) x: 1.000000

The loader resolves PRINT_SYMBOL to `print_address()`. Nothing of the compiler is imported: kernels come from the cache.
"""

import _thread
import ctypes
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from tilework.numerics.formats import IR_NAMES, of_ir

AGAIN = 0.05  # seconds
INTERRUPTS: list[threading.Timer] = []  # at most one, which is to be sent again
SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)
FLOATS = {"f16": "f2", "f32": "f4", "f64": "f8"}  # those of NumPy; of others the bits are read
INTEGERS = {"i1": "u1", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "ptr": "u8"}


def describe(prefix: str, as_hex: bool, operands: Sequence[tuple[Sequence[int], str, bool]]) -> str:
    return json.dumps([prefix, as_hex, [[list(shape), element, signed] for shape, element, signed in operands]])


def element_name(type: str) -> str:
    """The name of an element type in a description; integers of odd widths take the bytes of the next wider one."""
    if type.startswith("!tt.ptr"):
        return "ptr"
    if type in INTEGERS or type in IR_NAMES:
        return type
    width = int(type.removeprefix("i"))
    return next(name for name in ("i8", "i16", "i32", "i64") if width <= int(name[1:]))


@cache
def dtype_of(element: str) -> Any:
    """The NumPy type of an element."""
    import numpy as np  # lazily: few launches need NumPy, which is slow to load

    known = FLOATS | INTEGERS
    return np.dtype(known[element] if element in known else f"u{of_ir(element).bits // 8}")


@cache
def parsed(description: bytes) -> Any:
    return json.loads(description)


def lines(description: bytes, program: tuple[int, int, int], addresses: Sequence[int]) -> Iterator[str]:
    import numpy as np  # lazily: few launches need NumPy, which is slow to load

    prefix, as_hex, operands = parsed(description)
    start = "pid ({}, {}, {})".format(*program)
    if not operands:
        yield f"{start}{prefix}"
    for position, ((shape, element, signed), address) in enumerate(zip(operands, addresses, strict=True)):
        dtype = dtype_of(element)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        values = np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8).view(dtype).reshape(shape)
        which = f"(operand {position}) " if len(operands) > 1 else ""
        widths = [len(str(extent - 1)) for extent in shape]
        for index in np.ndindex(*shape):
            spot = ", ".join(f"{part:>{width}}" for part, width in zip(index, widths, strict=True))
            yield f"{start} idx ({spot}){prefix}{which}{element_text(values[index], element, as_hex, signed)}"


def element_text(value: Any, element: str, as_hex: bool, signed: bool) -> str:
    """One value: floats as %f, integers by their sign, pointers and hex with all digits of their width."""
    size = value.dtype.itemsize
    if as_hex or element == "ptr":
        return f"0x{int.from_bytes(value.tobytes(), 'little'):0{size * 2}x}"
    if element not in INTEGERS:
        return f"{float(value) if element in FLOATS else of_ir(element).value(int(value)):f}"
    integer = int(value)
    return str(integer if signed or integer >= 0 else integer + (1 << (size * 8)))


def print_lines(description: bytes, x: int, y: int, z: int, addresses: Any) -> None:
    """Print all lines in one write, so that those of other threads do not interleave; nothing without a standard
    output.

    A KeyboardInterrupt is for the launching thread, and machine code cannot pass it on: the signal is sent again a
    little later.
    """
    try:
        count = len(parsed(description)[2])
        text = "\n".join(lines(description, (x, y, z), addresses[:count]))
        if sys.stdout is not None:
            sys.stdout.write(f"{text}\n")
    except KeyboardInterrupt:
        if not INTERRUPTS:
            INTERRUPTS.append(threading.Timer(AGAIN, interrupt_again))
            INTERRUPTS[0].start()


def interrupt_again() -> None:
    """Send a real signal where the system has them: it also ends a wait of the main thread, such as `time.sleep`."""
    import signal  # lazily: few launches print and are interrupted

    INTERRUPTS.clear()
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


CALLBACK = SIGNATURE(print_lines)  # machine code holds its address


def print_address() -> int:
    """The address of PRINT_SYMBOL; valid as long as the process."""
    address = ctypes.cast(CALLBACK, ctypes.c_void_p).value
    assert address is not None
    return address
