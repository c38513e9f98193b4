"""Locations and names in the IR: user lines, variables as value names, arguments, loops."""

import re

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import after_passes, text, ttir
from tilework.ir.printer import print_module


@tilework.jit
def callee(a):
    doubled = a + a
    return doubled


@tilework.jit
def kernel(out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.load(out + offsets + i)
    if n > 3:
        total = total * 2.0
    k = n
    while k > 0:
        k -= 1
    result = callee(total)
    tl.store(out + offsets, result + k)


def names(module: str) -> set[str]:
    return set(re.findall(r"%([A-Za-z_]\w*)", module))


def test_values_are_named_after_variables() -> None:
    module = text(kernel, np.zeros(4, np.float32), 3, BLOCK=4)
    assert {"out", "n", "offsets", "total", "i", "k", "result", "doubled", "a"} <= names(module)
    lines = module.splitlines()
    assert any(re.search(r"%total\w* = scf.for %i = .* iter_args\(%total\w* = %total", line) for line in lines)
    assert any(re.search(r"%k\w* = scf.while \(%k\w* = %n\)", line) for line in lines)
    assert any(re.search(r"%result = tt.call @tests.frontend.test_locations.callee", line) for line in lines)


def test_names_can_be_left_out() -> None:
    module = print_module(ttir(kernel, np.zeros(4, np.float32), 3, BLOCK=4), nameloc_prefix=False)
    assert "%offsets" not in module


def locations(module: str) -> dict[str, str]:
    return dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", module, re.MULTILINE))


def test_every_op_has_the_line_of_the_user() -> None:
    module = ttir(kernel, np.zeros(4, np.float32), 3, BLOCK=4)
    first = kernel.def_line
    printed = print_module(module, debuginfo=True)
    known = locations(printed)

    def location(line: str) -> str:
        """The file location behind the (possibly named) location of an op."""
        found = re.search(r"loc\((#loc\d*)\)\s*$", line)
        assert found, line
        inner = known[found.group(1)]
        while (named := re.fullmatch(r'"\w+"\((#loc\d*)\)', inner)) is not None:
            inner = known[named.group(1)]
        return inner

    lines = printed.splitlines()
    (load,) = (line for line in lines if "tt.load" in line)
    assert location(load).startswith(f'"{__file__}":{first + 4}:')
    (store,) = (line for line in lines if "tt.store" in line)
    assert location(store).startswith(f'"{__file__}":{first + 11}:')
    (add,) = (line for line in lines if "%doubled" in line and "addf" in line)
    assert location(add).startswith(f'"{__file__}":{callee.def_line + 1}:')
    nowhere = [name for name, inner in known.items() if inner == "unknown"]
    found = [line for line in lines if any(f"loc({name})" in line for name in nowhere)]
    assert found and all("arith.constant" in line for line in found)  # shared ones


def test_columns_are_those_of_the_file() -> None:
    class Indented:
        @tilework.jit
        def method(out, n):
            tl.store(out, n)  # pyright: ignore[reportArgumentType]

    fn = Indented.__dict__["method"]
    printed = text(fn, np.zeros(1), 1, debuginfo=True)
    assert f'"{__file__}":{fn.def_line + 1}:12' in printed


def test_inlined_calls_keep_both_locations() -> None:
    module = after_passes(ttir(kernel, np.zeros(4, np.float32), 3, BLOCK=4))
    printed = print_module(module, debuginfo=True)
    assert "callsite(" in printed
    assert f'"{__file__}":{callee.def_line + 1}:' in printed


@tilework.jit
def last_line(out, n):
    if n > 3:
        return
    tl.store(out, n)


def test_the_implicit_return_is_at_the_last_statement() -> None:
    printed = text(last_line, np.zeros(1), 1, debuginfo=True)
    known = locations(printed)
    (*_, final) = (line for line in printed.splitlines() if "tt.return" in line)
    location = known[re.search(r"loc\((#loc\d*)\)", final).group(1)]  # pyright: ignore[reportOptionalMemberAccess]
    assert location.startswith(f'"{__file__}":{last_line.def_line + 3}:')


@tilework.jit
def combine(a, b):
    c = a * b
    return c


@tilework.jit
def mapped(out, x):
    o = tl.arange(0, 4)
    y = tl.map_elementwise(combine, tl.load(x + o), tl.load(x + o))
    tl.store(out + o, y)


def test_mapped_functions_have_locations() -> None:
    printed = text(mapped, np.zeros(4, np.float32), np.zeros(4, np.float32), debuginfo=True)
    assert "^bb0(%y_" in printed
    assert "loc(unknown)" not in printed


@pytest.mark.parametrize("value", ["x", 'quote"d', "two words", "new\nline", "ü"])
def test_any_constant_can_be_part_of_a_symbol(value: str) -> None:
    module = text(with_constant, np.zeros(1), TEXT=value)
    assert module.count("tt.func private") == 1


@tilework.jit
def length(text):
    return len(text)


@tilework.jit
def with_constant(out, TEXT: tl.constexpr):
    tl.store(out, length(TEXT))
