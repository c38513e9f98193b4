"""Every access is checked: the message names the line, the program, the argument and the index."""

import gc
import inspect
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tilework import jit
from tilework.errors import InterpreterError
from tilework.oracles.interpreter import AccessError, InterpretedFunction, register_memory


def line_of(kernel: InterpretedFunction, text: str) -> int:
    """The line of this file on which a piece of a kernel stands."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(number for number, line in enumerate(lines) if text in line)


def fails(kernel: InterpretedFunction, *args: Any, grid: Any = (1,), **kwargs: Any) -> str:
    with pytest.raises(InterpreterError) as caught:
        kernel[grid](*args, **kwargs)
    assert isinstance(caught.value.__cause__, AccessError)
    return str(caught.value.__cause__)


@InterpretedFunction
def read(x, out, n):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value)


def test_reading_past_the_end() -> None:
    message = fails(read, np.zeros(6, np.float32), np.zeros(8, np.float32), 8, grid=(2,))
    where = f"{__file__}:{line_of(read, 'value =')}"
    assert (
        message == f"{where}: program (1, 0, 0) reads element 6 of argument 'x', which has 6 elements (out of bounds)"
    )


def test_writing_past_the_end() -> None:
    message = fails(read, np.zeros(8, np.float32), np.zeros(7, np.float32), 8, grid=(2,))
    assert f":{line_of(read, 'tl.store')}: program (1, 0, 0) writes element 7 of argument 'out'" in message


def test_masked_lanes_are_not_accessed() -> None:
    out = np.ones(4, np.float32)
    read[(1,)](np.zeros(1, np.float32), out, 1)
    assert out.tolist() == [0, 0, 0, 0]


def test_negative_indices() -> None:
    assert "reads element -3 of argument 'x'" in fails(before, np.zeros(8, np.int16))


@InterpretedFunction
def before(x):
    tl.load(x - 3)


def test_one_argument_does_not_reach_another() -> None:
    """Even where the memory of another argument begins, unless both are views of one array."""
    base = np.arange(16, dtype=np.int32)
    halves = base[:8], base[8:]
    reach[(1,)](*halves)
    assert base[8] == 9
    apart = [np.zeros(8, np.int32), np.zeros(8, np.int32)]
    apart.sort(key=lambda array: array.ctypes.data)
    distance = (apart[1].ctypes.data - apart[0].ctypes.data) // 4
    assert f"reads element {distance} of argument 'a'" in fails(reach_by, *apart, distance)


@InterpretedFunction
def reach(a, b):
    tl.store(b, tl.load(a + 8) + 1)


@InterpretedFunction
def reach_by(a, b, distance):
    tl.store(b, tl.load(a + distance))


def test_misaligned() -> None:
    message = fails(skewed, np.zeros(8, np.int32))
    assert "(misaligned)" in message and "element 0 of argument 'x' plus 2 bytes" in message


@InterpretedFunction
def skewed(x):
    half = x.to(tl.pointer_type(tl.int16)) + 1
    tl.load(half.to(tl.pointer_type(tl.int32)))


def test_dangling() -> None:
    message = fails(follow, np.array([16], np.int64))
    assert message.endswith("reads address 0x10, which is in no array the kernel was given")
    x = np.zeros(1, np.int64)
    x[0] = x.ctypes.data + 16
    assert "the nearest is argument 'x': it would be element 2 of it" in fails(follow, x)


@InterpretedFunction
def follow(x):
    pointer = tl.load(x).to(tl.pointer_type(tl.float32))
    tl.store(x + 0, tl.load(pointer).to(tl.int64))


def test_read_only() -> None:
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    assert "writes element 2 of argument 'x', which is read-only" in fails(write, x)


@InterpretedFunction
def write(x):
    tl.store(x + 2, 1.0)


def test_strided_views() -> None:
    base = np.arange(20, dtype=np.int64).reshape(4, 5)
    column, out = base[:, 1], np.zeros(4, np.int64)
    strided[(1,)](column, out, 5)
    assert out.tolist() == [1, 6, 11, 16]
    backwards = base[::-1, 0]
    strided[(1,)](backwards, out, -5)
    assert out.tolist() == [15, 10, 5, 0]


@InterpretedFunction
def strided(x, out, stride):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(x + i * stride))


def test_registered_memory_is_held_weakly() -> None:
    far = register_memory(np.array([2.5], np.float32))
    table = np.array([far.ctypes.data], np.int64)
    follow[(1,)](table)
    assert table[0] == 2
    table[0] = far.ctypes.data
    del far
    gc.collect(1)  # it is young
    assert "in no array" in fails(follow, table)


def test_pointers_into_other_arguments() -> None:
    values = np.arange(4, dtype=np.float32)
    table = np.array([values.ctypes.data + 4 * i for i in (3, 0, 2, 1)], np.int64)
    out = np.zeros(4, np.float32)
    gather[(1,)](table, values, out)
    assert out.tolist() == [3, 0, 2, 1]


@InterpretedFunction
def gather(table, values, out):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(tl.load(table + i).to(tl.pointer_type(tl.float32))))


def test_block_pointers_and_atomics_are_checked() -> None:
    assert "reads element 16 of argument 'x'" in fails(block_read, np.zeros(16, np.float32))
    assert "reads element 4 of argument 'x'" in fails(count, np.zeros(4, np.int32))


@InterpretedFunction
def block_read(x):
    pointer = tl.make_block_ptr(x, (4, 4), (4, 1), (2, 0), (4, 4), (1, 0))
    tl.load(pointer)


@InterpretedFunction
def count(x):
    tl.atomic_add(x + tl.arange(0, 8), 1)


def test_lines_of_library_code_are_not_shown() -> None:
    assert f"{__file__}:{line_of(through_library, 'tl.load_tensor')}" in fails(
        through_library, np.zeros(16, np.float32)
    )


@InterpretedFunction
def through_library(x):
    d = tl.make_tensor_descriptor(x, [8, 4], [4, 1], [8, 4])
    tl.load_tensor_descriptor(d, [0, 0])


def test_a_histogram_leaves_out_what_is_in_no_bin() -> None:
    def count(x, out):
        i = tl.arange(0, 4)
        tl.store(out + i, tl.histogram(tl.load(x + i), 4))

    x, out = np.array([-1, 2, 4, 2], np.int32), np.zeros(4, np.int32)
    jit(count, interpret=True)[(1,)](x, out)
    assert out.tolist() == [0, 0, 2, 0]
    with pytest.raises(InterpreterError, match="value -1 is outside the 4 bins"):
        jit(count, interpret=True, sanitize=True)[(1,)](x, out)
    with pytest.raises(InterpreterError, match="value -1 is outside the 4 bins"):
        jit(count, interpret=True)[(1,)](x, out, sanitize=True)
