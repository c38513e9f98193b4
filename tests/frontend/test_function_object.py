"""The object that `@jit` makes: its source wherever it is written, its hash, what cannot be a kernel."""

# The kernels are odd on purpose.
# ruff: noqa: F821

import functools
import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, result
from tilework.language.function import JITFunction


def decorate(*args, **kwargs):
    return lambda fn: fn


@decorate(
    "def spread(out, n):",
    text="""
def spread(out, n):
    never
""",
)
@tilework.jit
@decorate(lambda: "def spread(")
def spread(
    out,  # a comment
    n=[1, (lambda x: x)(2)][1],
):
    """Text
    at the margin, as long strings may be.
      def spread(
    """
    tl.store(
        out,
        n,
    )


def test_decorators_and_headers_over_several_lines() -> None:
    assert spread.src.startswith("def spread(\n    out,  # a comment")
    assert result(spread) == [2]
    assert result(spread, 5) == [5]


class Holder:
    class Inner:
        @tilework.jit
        def indented(out, n):
            """Text
            at the margin.
            """
            if n > 3:
                # a comment
                # less indented than the code
                tl.store(out, n)  # pyright: ignore[reportArgumentType]

    def method(self):
        @tilework.jit
        def local(out, n):
            tl.store(out, n + nothing)  # pyright: ignore[reportUndefinedVariable]

        return local


def test_indented_functions() -> None:
    assert result(Holder.Inner.indented, 5) == [5]
    problem = error(Holder().method(), np.zeros(1), 1)
    assert str(problem).startswith("at 2:22:")
    assert problem.span.text[problem.span.column :].startswith("nothing")
    assert problem.span.line == Holder().method().def_line + 1


def test_a_renamed_function_keeps_its_source() -> None:
    def original(out, n):
        tl.store(out, n)

    original.__name__ = "renamed"
    fn = tilework.jit(original)
    assert fn.src.startswith("def original(")


def test_one_liners_and_tabs(tmp_path) -> None:
    path = tmp_path / "made.py"
    path.write_text(
        "import tilework, tilework.language as tl\n"
        "if True:\n"
        "\t@tilework.jit\n"
        "\tdef tabs(out, n):\n"
        "\t\ttl.store(out, n)\n"
        "one = tilework.jit\n"
        "@tilework.jit\n"
        "def line(out, n): tl.store(out, n); tl.store(out + 1, 2)\n"
    )
    spec = importlib.util.spec_from_file_location("made", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert result(module.tabs, 3) == [3]
    assert result(module.line, 3, size=2) == [3, 2]
    path.write_text("something else\n")
    assert result(module.line, 4, size=2) == [4, 2]


def test_no_source_no_kernel() -> None:
    space: dict = {}
    exec("def f(x): pass", space)
    with pytest.raises(ValueError, match="Python file"):
        tilework.jit(space["f"])


@pytest.mark.parametrize("thing", [lambda x: x, 3, len, functools.partial(print), Holder])
def test_what_cannot_be_a_kernel(thing: Any) -> None:
    with pytest.raises(TypeError):
        tilework.jit(thing)


def test_async_functions_cannot_be_kernels() -> None:
    async def f(x):
        pass

    with pytest.raises(TypeError, match="plain `def`"):
        tilework.jit(f)


def test_outside_of_a_kernel() -> None:
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        spread(1, 2)
    with pytest.raises(ValueError, match="@jit"):
        tl.load(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RuntimeError):
        iter(tl.static_range(3))


# -- hash ------------------------------------------------------------------------------------------------------------


def kernels(constant, helper_constant):
    value = tl.constexpr(constant)
    inner = tl.constexpr(helper_constant)

    @tilework.jit
    def helper(x):
        return x + inner

    @tilework.jit
    def kernel(out, n):
        tl.store(out, helper(n) * value)

    return kernel


def test_the_hash_covers_captured_constants_and_callees() -> None:
    keys = {kernels(a, b).cache_key for a in (1, 2) for b in (1, 2)}
    assert len(keys) == 4
    assert kernels(1, 2).cache_key == kernels(1, 2).cache_key
    assert [name for name, _ in kernels(1, 2).used_global_vals] == ["value"]


def test_a_new_text_gives_a_new_hash() -> None:
    kernel = kernels(1, 1)
    before = kernel.cache_key
    kernel._unsafe_update_src(kernel.src.replace("helper(n)", "helper(n + 1)"))
    assert kernel.cache_key != before
    assert result(kernel, 4) == [6]


def test_recursive_functions_have_a_hash() -> None:
    assert len(recursive.cache_key) == 64


@tilework.jit
def recursive(n: tl.constexpr):
    return 0 if n == 0 else recursive(n - 1)


def test_it_describes_itself() -> None:
    assert isinstance(spread, JITFunction)
    assert repr(spread) == "JITFunction(tests.frontend.test_function_object:spread)"
    assert spread.arg_names == ["out", "n"] and spread.params[1].default == 2


def test_errors_can_be_pickled() -> None:
    problem = error(Holder().method(), np.zeros(1), 1)
    copy = pickle.loads(pickle.dumps(problem))
    assert str(copy) == str(problem) and type(copy) is type(problem)
    assert copy.diagnostic() == problem.diagnostic()
