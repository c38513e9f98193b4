"""Kernels as Python: breakpoints, print, tracebacks, assertions, and the rules that differ from Python."""

import bdb
import inspect
import linecache
import pdb
import pickle
import sys
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tilework.errors import (
    CompilationError,
    CompileTimeAssertionFailure,
    InterpreterError,
    UnsupportedLanguageConstruct,
)
from tilework.language.function import constexpr_function
from tilework.oracles.interpreter import InterpretedFunction

LIMIT = tl.constexpr(3)
KIND = tl.constexpr(tl.float32)


@InterpretedFunction
def printing(x):
    value = tl.load(x + tl.arange(0, 4))
    print("value", value)
    print(f"first {value} of {LIMIT}")
    tl.device_print("sum", tl.sum(value, 0))
    tl.device_print("bits", value, hex=True)
    tl.static_print(value, LIMIT)


def test_print_shows_data(capsys: pytest.CaptureFixture[str]) -> None:
    printing[(1,)](np.arange(4, dtype=np.int32))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["value [0 1 2 3]", "first [0 1 2 3] of 3", "pid (0, 0, 0) sum: 6"]
    assert lines[3] == "pid (0, 0, 0) bits: [0x00000000 0x00000001 0x00000002 0x00000003]"
    assert lines[4] == "int32[constexpr[4]] 3"


@InterpretedFunction
def failing(x):
    n = tl.load(x)
    scaled = inner(n, 2)
    tl.store(x, scaled)


@InterpretedFunction
def inner(n, factor):
    tl.device_assert(n < 5, "too large")
    return n * factor


def test_tracebacks_show_the_lines_of_the_kernel() -> None:
    with pytest.raises(InterpreterError) as caught:
        failing[(1,)](np.array([7], np.int32))
    assert caught.value.__cause__ is not None
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    shown = [(frame.name, frame.line) for frame in frames if frame.filename == __file__]
    assert shown == [("failing", "scaled = inner(n, 2)"), ("inner", 'tl.device_assert(n < 5, "too large")')]
    assert "device-side assert in program (0, 0, 0): too large" in str(caught.value)


class Debugger(bdb.Bdb):
    """Remembers the variables of a kernel at its breakpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def user_line(self, frame: Any) -> None:
        if self.break_here(frame):
            self.seen.append((frame.f_code.co_name, int(frame.f_locals["n"])))
        self.set_continue()


def test_breakpoints_in_the_file_stop_in_the_kernel() -> None:
    lines, first = inspect.getsourcelines(failing.fn)
    debugger = Debugger()
    assert debugger.set_break(__file__, first + len(lines) - 1) is None
    x = np.array([4], np.int32)
    debugger.runcall(failing[(1,)], x)
    assert debugger.seen == [("failing", 4)] and x[0] == 8


@InterpretedFunction
def stops(x):
    n = tl.load(x)
    breakpoint()
    tl.store(x, n + 1)


@InterpretedFunction
def stops_in_pdb(x):
    n = tl.load(x)
    pdb.set_trace()
    tl.store(x, n + 1)


def test_breakpoint_stops_in_the_frame_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    hook = lambda *args, **kwargs: names.append(sys._getframe(1).f_code.co_name)  # noqa: E731
    monkeypatch.setattr(sys, "breakpointhook", hook)
    monkeypatch.setattr(pdb, "set_trace", hook)
    x = np.array([1], np.int32)
    stops[(1,)](x)
    stops_in_pdb[(1,)](x)
    assert names == ["stops", "stops_in_pdb"] and x[0] == 3


def test_quitting_the_debugger_is_not_a_kernel_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*args: Any, **kwargs: Any) -> None:
        raise bdb.BdbQuit

    monkeypatch.setattr(sys, "breakpointhook", leave)
    with pytest.raises(bdb.BdbQuit):
        stops[(1,)](np.array([1], np.int32))


@InterpretedFunction
def local_hides_global(x):
    tl.store(x, LIMIT)  # pyright: ignore[reportUnboundVariable]  # noqa: F823
    LIMIT = 9  # noqa: F841
    tl.store(x + 1, LIMIT)
    tl.store(x + 2, KIND.primitive_bitwidth)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_global_is_read_until_a_local_hides_it() -> None:
    x = np.zeros(3, np.int32)
    local_hides_global[(1,)](x)
    assert x.tolist() == [3, 9, 32]


@InterpretedFunction
def evaluation_order(x, LOG: tl.constexpr, FLAG: tl.constexpr):
    n = tl.load(x)
    a = LOG(n > 5) and LOG(n < 3)
    b = FLAG or LOG(n > 5)
    c = LOG(n > 5) or FLAG
    tl.store(x, (a or b or c) if FLAG else 0)


def test_run_time_operands_of_and_or_are_all_evaluated() -> None:
    calls: list[bool] = []

    @tl.core.builtin
    def log(value: Any, _semantic: Any = None) -> Any:
        calls.append(bool(value))
        return value

    evaluation_order[(1,)](np.array([1], np.int32), log, True)
    assert calls == [False, True, False]  # both sides of the first `and`; the compile-time True ends the second


@InterpretedFunction
def not_bool(x):
    if tl.load(x) and tl.load(x) > 1:
        tl.store(x, 5)


@InterpretedFunction
def ambiguous(x):
    if tl.load(x + tl.arange(0, 4)) > 1:
        tl.store(x, 5)


@InterpretedFunction
def one_element(x):
    if tl.load(x + tl.arange(0, 1)) > 1:
        tl.store(x, 5)


def test_truth() -> None:
    x = np.array([7, 0, 0, 0], np.int32)
    with pytest.raises(InterpreterError, match="Cannot bitcast data-type of size 32 to data-type of size 1"):
        not_bool[(1,)](x)
    with pytest.raises(InterpreterError, match="Boolean value of Tensor with more than one value is ambiguous"):
        ambiguous[(1,)](x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one_element[(1,)](x)
    assert x[0] == 5 and "If conditional called with multidimensional Tensor" in str(caught[0].message)


@InterpretedFunction
def asserts(x, n):
    assert n > 2, "n is small"
    tl.assume(n < 10)
    tl.device_assert(tl.arange(0, 4) < n, "lane", mask=tl.arange(0, 4) < 3)


def test_assertions_and_assumptions_raise() -> None:
    x = np.zeros(1, np.int32)
    asserts[(1,)](x, 3)
    with pytest.raises(InterpreterError, match="n is small"):
        asserts[(1,)](x, 2)
    with pytest.raises(InterpreterError, match="assume"):
        asserts[(1,)](x, 11)


@InterpretedFunction
def static(x, N: tl.constexpr):
    tl.static_assert(N > 2, "N is small")


@InterpretedFunction
def assembly(x):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, True, 1)


@InterpretedFunction
def unknown_function(x):
    tl.store(x, tl.core.extern_elementwise("", "", [tl.load(x)], {(tl.int32,): ("__nv_nothing", tl.int32)}, True))


@InterpretedFunction
def in_place(x):
    x.value = 3


@pytest.mark.parametrize(
    ("kernel", "args", "text"),
    [
        (static, {"N": 1}, "N is small"),
        (assembly, {}, r"inline_asm_elementwise\('mov.b32"),
        (unknown_function, {}, "__nv_nothing cannot be interpreted"),
        (in_place, {}, "cannot be changed in place"),
    ],
)
def test_clear_errors(kernel: InterpretedFunction, args: dict[str, Any], text: str) -> None:
    with pytest.raises(InterpreterError, match=text):
        kernel[(1,)](np.zeros(1, np.int32), **args)


def test_overflow_checks_in_debug_mode() -> None:
    x = np.array([2**31 - 1], np.int32)
    increment[(1,)](x)
    assert x[0] == -(2**31)
    x[0] = 2**31 - 1
    with pytest.raises(InterpreterError, match="int32 overflow detected for operation add"):
        increment[(1,)](x, debug=True)
    increment[(1,)](x, debug=True, sanitize_overflow=False)


@InterpretedFunction
def increment(x):
    tl.store(x, tl.load(x) + 1)


def test_closures_and_factories() -> None:
    def make(step: int) -> InterpretedFunction:
        amount = tl.constexpr(step)

        @constexpr_function
        def twice(n):
            return 2 * n

        @InterpretedFunction
        def kernel(x):
            tl.store(x, tl.load(x) + twice(amount))

        return kernel

    x = np.array([1], np.int32)
    for step in (1, 10):
        make(step)[(1,)](x)
    assert x[0] == 23


def test_globals_are_read_at_launch() -> None:
    global LIMIT
    x = np.zeros(1, np.int32)
    before, LIMIT = LIMIT, tl.constexpr(40)
    try:
        read_limit[(1,)](x)
        assert x[0] == 40
    finally:
        LIMIT = before
    read_limit[(1,)](x)
    assert x[0] == 3


@InterpretedFunction
def read_limit(x):
    tl.store(x, LIMIT)


def test_builtins_outside_kernels_still_fail() -> None:
    with pytest.raises(ValueError, match="did you forget the @jit decorator"):
        tl.arange(0, 4)


@InterpretedFunction
def constants(out, n, BLOCK: tl.constexpr):
    start: tl.constexpr = n + BLOCK.value
    nothing: tl.constexpr = None  # pyright: ignore[reportAssignmentType]
    tl.static_assert(nothing is None)
    tl.store(out, start)


def test_an_annotated_value_of_run_time_and_the_value_of_a_constant() -> None:
    out = np.zeros(1, np.int32)
    constants[(1,)](out, 3, BLOCK=4)
    assert out.tolist() == [7]


def kernel_of(statement: str) -> InterpretedFunction:
    namespace: dict[str, Any] = {"tl": tl}
    source = f"def kernel(p, n, BLOCK: tl.constexpr):\n    {statement}\n"
    exec(compile(source, name := f"<{statement}>", "exec"), namespace)
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    return InterpretedFunction(namespace["kernel"])


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("x = tl.reshape(tl.arange(0, 64), (32,))", "reshape() cannot change total number of elements"),
        ("x = tl.arange(0, n)", "arange's arguments must be of type tl.constexpr"),
        ("x = tl.arange(0, 8) + tl.arange(0, 4)", "incompatible dimensions at index 0: 8 and 4"),
        ("x = tl.load(n)", "Unsupported ptr type int32"),
        (
            "x = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((32, 16), tl.float16))",
            "input and other must have equal reduction dimensions",
        ),
        ("x = undefined", "'undefined' is not defined"),
    ],
)
def test_what_does_not_compile_is_a_compilation_error(statement: str, text: str) -> None:
    with pytest.raises(CompilationError) as caught:
        kernel_of(statement)[(1,)](np.zeros(64, np.float32), 3, BLOCK=4)
    error = caught.value
    assert isinstance(error, InterpreterError) and text in str(error) and repr(error.__cause__) == str(error)
    shown = error.diagnostic().render().splitlines()
    assert f":2:{9 if '=' in statement else 5}: error: " in shown[0] and statement in shown[1] and "^" in shown[2]
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.diagnostic().render() == error.diagnostic().render()


def test_static_asserts_and_python_that_kernels_do_not_have() -> None:
    with pytest.raises(CompileTimeAssertionFailure, match="hello"):
        kernel_of("tl.static_assert(BLOCK == 3, 'hello')")[(1,)](np.zeros(1), 3, BLOCK=4)
    with pytest.raises(UnsupportedLanguageConstruct, match="a pointer is not an array"):
        kernel_of("p[0] = 3")[(1,)](np.zeros(1), 3, BLOCK=4)


@pytest.mark.parametrize("statement", ["tl.store(p + 100, 1.0)", "tl.device_assert(n == 4)", "tl.assume(n == 4)"])
def test_what_fails_at_run_time_is_not(statement: str) -> None:
    with pytest.raises(InterpreterError) as caught:
        kernel_of(statement)[(1,)](np.zeros(64, np.float32), 3, BLOCK=4)
    assert not isinstance(caught.value, CompilationError)
