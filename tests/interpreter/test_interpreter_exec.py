"""Kernels whose text is not known (made by `exec`) run as they are; `_unsafe_update_src` gives a kernel another
text."""

import inspect
import linecache
import textwrap

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import jit

WIDTH = tl.constexpr(8)


def made(source: str, **names):
    """The function of a source that no file and no `linecache` has."""
    namespace = {"jit": jit, "tl": tl, "WIDTH": WIDTH, **names}
    exec(textwrap.dedent(source), namespace)
    return namespace["kernel"]


def test_a_kernel_made_by_exec_runs():
    kernel = made("""
    @jit(interpret=True)
    def kernel(x, out, n, BLOCK: tl.constexpr, SCALE=3):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n, other=0) * SCALE + WIDTH, mask=i < n)
    """)
    x, out = np.arange(13, dtype=np.int32), np.zeros(13, np.int32)
    kernel[(2,)](x, out, 13, BLOCK=8)
    assert out.tolist() == (x * 3 + 8).tolist()


@pytest.mark.filterwarnings("ignore:builtin:UserWarning")
def test_its_loops_branches_and_python_names():
    kernel = made("""
    @jit(interpret=True)
    def half(a, b):
        return max(a, b), min(a, b)

    @jit(interpret=True)
    def kernel(x, out, n):
        total = tl.zeros((4, 2), tl.float32)
        for k in range(n):
            if k % 2 == 0 and n > 2:
                continue
            total += tl.load(x + k)
        for k in tl.static_range(2):
            total = total + k
        for k in tl.range(0, n, 2):
            total += k.to(tl.float32)
        while n > 4:
            n = n - 1
        high, low = half(total, 5.0)
        flipped = (high + low).T
        assert flipped.shape[0] == 2 and not isinstance(flipped, tl.constexpr)
        places = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
        tl.store(out + places, flipped * (2 if n == 4 else 3))
    """)
    x, out = np.arange(6, dtype=np.float32), np.zeros((2, 4), np.float32)
    kernel[(1,)](x, out, 6)
    assert (out == 2 * ((1 + 3 + 5) + 1 + (0 + 2 + 4) + 5.0)).all()


def test_its_closure_and_globals_are_those_of_now():
    kernel = made("""
    def outer(add):
        @jit(interpret=True)
        def inner(out):
            tl.store(out, add + tl.load(out) + len((1, 2)))
        return inner
    kernel = outer(tl.constexpr(5))
    """)
    out = np.array([1], np.int32)
    kernel[(1,)](out)
    assert out.tolist() == [8]


def test_what_needs_the_text_says_so():
    with pytest.raises(ValueError, match="@jit functions should be defined in a Python file"):
        made("""
        @jit(interpret=False)
        def kernel(out):
            tl.store(out, 1)
        """)
    kernel = made("""
    @jit(interpret=True)
    def kernel(out):
        tl.store(out + 100, 1)
    """)
    with pytest.raises(ValueError, match="should be defined in a Python file"):
        kernel.src  # noqa: B018
    with pytest.raises(tilework.errors.InterpreterError, match=r"<string>:4: program \(0, 0, 0\) writes element 100"):
        kernel[(1,)](np.zeros(4, np.int32))
    assert kernel.rewriter.def_file_lineno == 2


def test_the_text_of_a_kernel_can_be_replaced():
    @jit(interpret=True)
    def kernel(x, out):
        i = tl.arange(0, 8)
        a = tl.load(x + i)  # noqa: F841
        tl.store(out + i, EXPRESSION)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel._unsafe_update_src(kernel.src.replace("EXPRESSION", "a * 4"))
    kernel[(1,)](x, out)
    assert out.tolist() == (x * 4).tolist()
    kernel._unsafe_update_src(kernel.src.replace("a * 4", "a + a + 1"))
    kernel[(1,)](x, out)
    assert out.tolist() == (x * 2 + 1).tolist()


def test_a_compiled_kernel_gets_another_text():
    def template(x, out):
        i = tl.arange(0, 8)
        a = tl.load(x + i)  # noqa: F841
        tl.store(out + i, EXPRESSION)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    kernels = []
    for expression in ("a * 4", "a + 1"):
        kernel = tilework.JITFunction(template)
        kernel._unsafe_update_src(kernel.src.replace("EXPRESSION", expression))
        kernels.append(kernel)
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernels[0][(1,)](x, out)
    assert out.tolist() == (x * 4).tolist()
    kernels[1][(1,)](x, out)
    assert out.tolist() == (x + 1).tolist()
    assert kernels[0].cache_key != kernels[1].cache_key


@pytest.mark.parametrize("file", ["<generated>", "generated_kernel"])
def test_the_text_is_found_in_linecache(file):
    for factor in (3, 4):  # the second text replaces the first under the same name
        source = textwrap.dedent(f"""
        @jit
        def kernel(out):
            tl.store(out, {factor})
        """)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        namespace = {"jit": jit, "tl": tl}
        exec(compile(source, file, "exec"), namespace)
        out = np.zeros(1, np.int32)
        namespace["kernel"][(1,)](out)
        assert out.tolist() == [factor]


def test_a_file_that_changed_is_read_again(tmp_path):
    path = tmp_path / "changing.py"
    for factor in (3, 14):
        source = f"@jit\ndef kernel(out):\n    tl.store(out, {factor})\n"
        path.write_text(source)
        namespace = {"jit": jit, "tl": tl}
        exec(compile(source, str(path), "exec"), namespace)
        out = np.zeros(1, np.int32)
        namespace["kernel"][(1,)](out)
        assert out.tolist() == [factor]
        assert inspect.getsource(namespace["kernel"].fn) == source
