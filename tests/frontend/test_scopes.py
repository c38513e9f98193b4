"""Names: locals, globals that may be read, closures, builtins, shadowing."""

# The kernels are odd on purpose.
# ruff: noqa: F403, F405, F823
# pyright: reportArgumentType=false, reportUnboundVariable=false, reportUndefinedVariable=false

import math as python_math
import textwrap
from math import floor as round_down
from math import sqrt as root

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, ttir
from tilework.errors import CompilationError
from tilework.language import *

GLOBAL = 5
ANNOTATED: tl.constexpr = 6  # pyright: ignore[reportAssignmentType]
CONSTANT = tl.constexpr(7)
STRING = tl.constexpr("abc")
TYPE = tl.pointer_type(tl.int32)
HALF = tl.float16
NOTHING = None
SHADOWED = tl.constexpr(100)
PLAIN = (1, 2)


def python_function(x):
    return x


@tilework.jit
def allowed(out, n):
    tl.static_assert(NOTHING is None)
    tl.static_assert(STRING == "abc")
    tl.static_assert(n.to(HALF).dtype == tl.float16)
    q = n.to(tl.int64).to(TYPE)
    tl.static_assert(q.dtype == TYPE)
    tl.store(out, n + CONSTANT)
    tl.store(out + 1, round_down(root(CONSTANT + 2)))
    tl.store(out + 2, int(python_math.pi))
    tl.store(out + 3, int(np.pi * 2))


def test_globals_that_may_be_read() -> None:
    assert result(allowed, 1, size=4) == [8, 3, 3, 6]


@tilework.jit
def shadowing(out, n):
    a = n + SHADOWED
    SHADOWED = n * 2
    tl.store(out, a + SHADOWED)


def test_a_global_is_read_until_the_name_is_assigned() -> None:
    assert result(shadowing, 3) == [109]


@tilework.jit
def star_import(out, n):
    o = arange(0, 4)
    store(out + o, o + n)


def test_names_of_a_star_import() -> None:
    assert result(star_import, 3, size=4) == [3, 4, 5, 6]


@tilework.jit
def reads_global(out, n):
    tl.store(out, GLOBAL)


@tilework.jit
def reads_annotated(out, n):
    tl.store(out, ANNOTATED)


@tilework.jit
def reads_tuple(out, n):
    tl.store(out, PLAIN[0])


@tilework.jit
def calls_python(out, n):
    tl.store(out, python_function(n))


@tilework.jit
def calls_module_function(out, n):
    tl.store(out, np.square(n))


@tilework.jit
def calls_other_module(out, n):
    tl.store(out, textwrap.dedent(n))


@pytest.mark.parametrize("kernel", [reads_global, reads_annotated, reads_tuple])
def test_other_globals_are_refused(kernel) -> None:
    message = message_of(error(kernel, np.zeros(1), 3))
    assert "Cannot access global variable" in message and "tl.constexpr" in message
    ttir(kernel, np.zeros(1), 3, options={"allow_non_constexpr_globals": True})


def test_python_functions_are_refused() -> None:
    assert "global variable" in message_of(error(calls_python, np.zeros(1), 3))
    assert "numpy.square works on arrays of the host" in message_of(error(calls_module_function, np.zeros(1), 3))
    with pytest.raises(RuntimeError, match="Unsupported function referenced") as caught:
        _ = calls_other_module.cache_key
    assert isinstance(caught.value, CompilationError)
    line, marks, help = caught.value.diagnostic().render().splitlines()[1:]
    assert line.endswith("tl.store(out, textwrap.dedent(n))") and marks.endswith("| " + 18 * " " + "^" * 15)
    assert help.startswith("   help: call it before the launch")


@tilework.jit
def default_from_global(out, x=GLOBAL, y: tl.constexpr = PLAIN):
    tl.store(out, callee(x) + y[1])


@tilework.jit
def callee(x, scale=GLOBAL):
    return x * scale


def test_defaults_may_use_any_global() -> None:
    assert result(default_from_global) == [27]


def make(value):
    constant = tl.constexpr(value)
    plain = value

    @tilework.jit
    def kernel(out, n):
        tl.store(out, n + constant)

    @tilework.jit
    def reads_plain(out, n):
        tl.store(out, n + plain)

    @tilework.jit
    def unbound(out, n):
        tl.store(out, n)
        if n is None:
            tl.store(out, later)

    if value > 1:
        later = 3
    return kernel, reads_plain, unbound


def test_closure_variables() -> None:
    assert [result(make(value)[0], 1) for value in (1, 2)] == [[2], [3]]
    assert "Cannot access global variable" in message_of(error(make(1)[1], np.zeros(1), 1))
    assert result(make(1)[2], 4) == [4]
    assert make(1)[0].cache_key != make(2)[0].cache_key


@tilework.jit
def own_builtin(out, range):
    tl.store(out, range)


def test_a_parameter_hides_a_builtin() -> None:
    assert result(own_builtin, 3) == [3]


@tilework.jit
def misspelled(out, offsets):
    tl.store(out, offset)


@tilework.jit
def without_prefix(out, n):
    tl.store(out, program_ids(0))


def test_suggestions() -> None:
    assert "did you mean `offsets`" in error(misspelled, np.zeros(1), 3).diagnostic().render()


class Holder:
    @staticmethod
    @tilework.jit
    def kernel(out, n):
        tl.store(out, n * CONSTANT)

    @tilework.jit
    def method(out, n):
        tl.store(out, n + CONSTANT)


def test_kernels_in_a_class_body() -> None:
    assert result(Holder.kernel, 2) == [14]
    assert result(Holder.__dict__["method"], 2) == [9]
