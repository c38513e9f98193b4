"""Keys of constants that Python finds equal, and of functions whose source or globals change."""

import ast
import struct
import subprocess
import sys
import threading
from collections import namedtuple
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.language.compile_time import same_constant
from tilework.language.constant_text import constant_text

ROOT = Path(tilework.__file__).parent.parent


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Any:
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "a b")


@dataclass(frozen=True)
class Box:
    value: Any


class Plain:
    pass


NAN, PAYLOAD = float("nan"), struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
PLAIN = Plain()
EACH = [
    1,
    True,
    1.0,
    "1",
    b"1",
    0,
    False,
    0.0,
    -0.0,
    None,
    "None",
    1 + 0j,
    NAN,
    PAYLOAD,
    np.float32(0.0),
    np.float32(-0.0),
]
EACH += [tl.float32, "fp32", tl.int32, tl.constexpr_type(1), tl.constexpr_type("1"), np.int32(1), np.arange(2000)]
EACH += [np.where(np.arange(2000) == 1000, 5, np.arange(2000)), Plain, PLAIN, Plain(), lambda: 1, lambda: 2, print, np]
KINDS = [
    tl.constexpr,
    lambda x: (x,),
    lambda x: [x],
    lambda x: Pair(x, 0),
    lambda x: Other(x, 0),
    Box,
    lambda x: {"a": x},
]
KINDS += [
    lambda x: tl.tuple([x]),
    lambda x: {"b": x},
    lambda x: (x, x),
    lambda x: tl.constexpr((x,)),
    lambda x: ((x,),),
]


def test_a_constant_has_a_text_of_its_own() -> None:
    every = [*EACH, *(kind(item) for kind in KINDS for item in EACH)]
    assert len({constant_text(item) for item in every}) == len(every)
    assert [constant_text(item) for item in every] == [constant_text(item) for item in every]
    assert constant_text((1, True, 1.0, -0.0, "1")) == "(1, True, 1.0, -0.0, '1')"


def test_text_of_what_contains_itself() -> None:
    items: list[Any] = [1]
    items.append(items)
    assert constant_text(items) == "[1, <level 0>]"


def test_an_address_is_not_used_again() -> None:
    for kind in (Plain, threading.Lock, lambda: ContextVar("name")):
        texts = {constant_text((kind(),)) for _ in range(50)}
        assert len(texts) == 50, kind


LIBRARY_KEYS = """
from tilework.language import standard, target_info
items = [item for module in (standard, target_info) for item in vars(module).values()]
found = [item for item in items if hasattr(item, "cache_key")]
keys = {item.__name__: item.cache_key for item in found}
"""


def test_functions_of_the_language_have_the_same_key_in_every_process() -> None:
    """Kernels that sort were compiled again by each process: the target was in their keys, with its address."""
    command = [sys.executable, "-W", "ignore", "-c", f"{LIBRARY_KEYS}\nprint(keys)"]
    other = ast.literal_eval(subprocess.check_output(command, cwd=ROOT, text=True))
    here: dict[str, Any] = {}
    exec(LIBRARY_KEYS, here)
    ours = here["keys"]
    assert "sort" in ours and "is_cuda" in ours
    assert [name for name in ours if ours[name] != other[name]] == []


def test_same_constant() -> None:
    plain = [item for item in EACH if item is not PAYLOAD and not isinstance(item, np.ndarray)]
    for wrap in (
        lambda x: x,
        tl.constexpr,
        lambda x: (x, 2),
        lambda x: [x],
        lambda x: Pair(x, 1),
        Box,
        lambda x: {"a": x},
    ):
        for one in plain:
            assert [other for other in plain if same_constant(wrap(one), wrap(other))] == [one] or one != one


@tilework.jit
def describe(out, X: tl.constexpr):
    """Return `X` as bits that distinguish 1, True, 1.0, 0.0 and -0.0."""
    tl.store(out, tl.full((), X, tl.float32).to(tl.int32, bitcast=True))
    tl.store(out + 1, tl.where(True, X, X).dtype.primitive_bitwidth)
    tl.store(out + 2, tl.where(True, X, X).dtype.is_floating())


@tilework.jit
def describe_with_an_option(out, X: tl.constexpr, num_stages=2):
    describe(out, X)


@tilework.jit
def describe_item(out, X: tl.constexpr):
    tl.store(out, tl.full((), X[0], tl.float32).to(tl.int32, bitcast=True))
    tl.store(out + 1, tl.where(True, X[0], X[0]).dtype.primitive_bitwidth)
    tl.store(out + 2, tl.where(True, X[0], X[0]).dtype.is_floating())


@tilework.jit
def describe_argument(out, X):
    tl.store(out, tl.full((), X[0], tl.float32).to(tl.int32, bitcast=True))
    tl.store(out + 1, tl.where(True, X[0], X[0]).dtype.primitive_bitwidth)
    tl.store(out + 2, tl.where(True, X[0], X[0]).dtype.is_floating())


def expected(value: Any) -> list[int]:
    bits = int(np.float32(value).view(np.int32))
    return [bits, 1 if isinstance(value, bool) else 32, int(isinstance(value, float))]


WAYS = {
    "argument": (describe, lambda x: x),
    "constexpr": (describe, tl.constexpr),
    "beside a parameter that is an option": (describe_with_an_option, lambda x: x),
    "tuple": (describe_item, lambda x: (x,)),
    "list": (describe_item, lambda x: [x]),
    "named tuple": (describe_item, lambda x: Pair(x, 0)),
    "constexpr in a tuple": (describe_item, lambda x: (tl.constexpr(x),)),
    "tuple in a constexpr": (describe_item, lambda x: tl.constexpr((x,))),
    "constexpr in a tuple argument": (describe_argument, lambda x: (tl.constexpr(x), 0)),
    "constexpr in a named tuple argument": (describe_argument, lambda x: Pair(tl.constexpr(x), 0)),
}


@pytest.mark.parametrize("way", WAYS)
def test_equal_constants_are_not_the_same(way: str) -> None:
    kernel, wrap = WAYS[way]
    out = np.zeros(3, np.int32)
    for value in (1, True, 1.0, 0.0, -0.0, False, 0, 0.0, True, -0.0, 1) * 2:
        kernel[(1,)](out, wrap(value))
        assert out.tolist() == expected(value), value


def test_nan_is_compiled_once() -> None:
    kernels = {describe.warmup(np.zeros(3, np.int32), value, grid=(1,)) for value in (NAN, float("nan"), float("NAN"))}
    assert len(kernels) == 1


GLOBALS = """
X = tl.constexpr({value})

@tilework.jit
def kernel(out):
    tl.store(out, X + 1.0)
"""


def test_globals_that_change(tmp_path: Path) -> None:
    """Also to a value that Python finds equal; a NaN has not changed."""
    out = np.zeros(1, np.float32)
    for number, (value, other) in enumerate([("1", "True"), ("0.0", "-0.0"), ("2", "3"), ("'1'", "1")]):
        module = load_module(tmp_path, GLOBALS.format(value=value), f"case{number}")
        if value != "'1'":
            module.kernel[(1,)](out)
            assert out[0] == float(eval(value)) + 1
        else:
            module.kernel.cache_key  # noqa: B018
        again = load_module(tmp_path, GLOBALS.format(value=other), f"case{number}")
        assert again.kernel.cache_key != module.kernel.cache_key
        module.X = again.X
        if value != "'1'":
            with pytest.raises(RuntimeError, match="Global variable X has changed"):
                module.kernel[(1,)](out)
    module = load_module(tmp_path, GLOBALS.format(value="float('nan')"), "nan")
    for _ in range(3):
        module.kernel[(1,)](out)
        module.X = tl.constexpr(float("nan"))


@pytest.mark.parametrize("owner", ["module", "class"])
def test_members_are_part_of_the_key(owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import settings_of_test as settings\n@tilework.jit\ndef kernel(out):\n    tl.store(out, settings{}.X)\n"
    text = text.format("" if owner == "module" else ".Values")
    settings = load_module(tmp_path, "class Values:\n    X = tl.constexpr(5)\nX = Values.X\n", "settings_of_test")
    monkeypatch.setitem(__import__("sys").modules, "settings_of_test", settings)
    out, first = np.zeros(1, np.int32), load_module(tmp_path, text)
    first.kernel[(1,)](out)
    assert out[0] == 5
    settings.X = settings.Values.X = tl.constexpr(6)
    with pytest.raises(RuntimeError, match="Global variable X has changed"):
        first.kernel[(1,)](out)
    load_module(tmp_path, text).kernel[(1,)](out)
    assert out[0] == 6


FUNCTIONS = """
SCALE = tl.constexpr({scale})

@tilework.jit
def inner(x):
    return x * SCALE + {inner}

@tilework.jit
def step(x):
    return inner(x)

@tilework.constexpr_function
def number(n):
    return n + {inner}

@tl.core._aggregate
class Shift:
    by: tl.constexpr

    def __init__(self, by):
        self.by = tl.constexpr(by + {inner})

    @tilework.jit
    def apply(self, x):
        return step(x) + self.by

GLOBAL = tl.constexpr(step)
SEVERAL = tl.constexpr((1, step))

def made():
    f = step

    @tilework.jit
    def captured(out, F: tl.constexpr = None):
        tl.store(out, f(10))

    return captured

@tilework.jit
def argument(out, F: tl.constexpr):
    tl.store(out, F(10))

@tilework.jit
def item(out, F: tl.constexpr):
    tl.store(out, F[1](10))

@tilework.jit
def nested(out, F: tl.constexpr):
    tl.store(out, F[0][0](10))

@tilework.jit
def unmarked(out, F):
    tl.store(out, F(10))

@tilework.jit
def unmarked_item(out, F):
    tl.store(out, F[1](10))

@tilework.jit
def by_default(out, F: tl.constexpr = step):
    tl.store(out, F(10))

@tilework.jit
def through_global(out, F: tl.constexpr = None):
    tl.store(out, GLOBAL(10))

@tilework.jit
def through_tuple(out, F: tl.constexpr = None):
    tl.store(out, SEVERAL[1](10))

@tilework.jit
def at_compile_time(out, F: tl.constexpr):
    tl.store(out, F(10 * {scale}))

@tilework.jit
def of_aggregate(out, F: tl.constexpr = None):
    tl.store(out, Shift(0).apply(10) - {inner})

captured = made()
"""
PASSED = {
    "argument": lambda module: module.step,
    "item": lambda module: (0, module.step),
    "nested": lambda module: [(module.step,)],
    "unmarked": lambda module: module.step,
    "unmarked_item": lambda module: (0, module.step),
    "by_default": None,
    "through_global": None,
    "through_tuple": None,
    "captured": None,
    "at_compile_time": lambda module: module.number,
    "of_aggregate": None,
}


def launch(module: Any, name: str) -> float:
    out = np.zeros(1, np.int32)
    passed = PASSED[name]
    getattr(module, name)[(1,)](out, *([] if passed is None else [passed(module)]))
    return float(out[0])


@pytest.mark.parametrize("name", PASSED)
def test_another_process_with_another_source(tmp_path: Path, name: str) -> None:
    """The same names in the same file: what is on disk is for the old text."""
    for scale, inner in ((2, 1), (2, 5), (3, 5), (2, 1)):
        module = load_module(tmp_path, FUNCTIONS.format(scale=scale, inner=inner))
        assert [launch(module, name) for _ in range(3)] == [10 * scale + inner] * 3


@pytest.mark.parametrize("name", [name for name in PASSED if name not in ("at_compile_time",)])
def test_a_source_that_is_replaced(tmp_path: Path, name: str) -> None:
    """In this process, of a function that a function calls; also after launches in machine code."""
    module = load_module(tmp_path, FUNCTIONS.format(scale=2, inner=1))
    for inner in (1, 7, 8, 1):
        module.inner._unsafe_update_src(f"def inner(x):\n    return x * SCALE + {inner}\n")
        assert [launch(module, name) for _ in range(3)] == [20 + inner] * 3


@pytest.mark.parametrize("name", [name for name in PASSED if name not in ("at_compile_time",)])
def test_globals_of_functions_that_are_constants(tmp_path: Path, name: str) -> None:
    module = load_module(tmp_path, FUNCTIONS.format(scale=2, inner=1))
    assert [launch(module, name) for _ in range(3)] == [21] * 3
    module.SCALE = tl.constexpr(9)
    with pytest.raises(RuntimeError, match="Global variable SCALE has changed"):
        launch(module, name)


def test_functions_that_call_each_other(tmp_path: Path) -> None:
    text = """
@tilework.jit
def even(x, N: tl.constexpr):
    return odd(x, N - 1) if N > 0 else x

@tilework.jit
def odd(x, N: tl.constexpr):
    return even(x * {0}, N - 1) if N > 0 else x
"""
    two, three = (load_module(tmp_path, text.format(factor)) for factor in (2, 3))
    for module in (two, three):
        assert module.even.cache_key != module.odd.cache_key
    assert two.odd.cache_key != three.odd.cache_key
    assert two.even.cache_key != three.even.cache_key


def test_threads_see_whole_keys(tmp_path: Path) -> None:
    lines = [f"@tilework.jit\ndef f{n}(x):\n    return f{n + 1}(x)\n" for n in range(60)]
    module = load_module(tmp_path, "\n".join([*lines, "@tilework.jit\ndef f60(x):\n    return x\n"]))
    found: list[str] = []
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait()
        found.append(module.f0.cache_key)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and not found[0].startswith("recursion")


def test_plain_functions_that_run_while_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
def scale(x, _semantic=None):
    return factor(x)

def factor(x):
    return {0}

@tilework.jit
def kernel(out):
    tl.store(out, scale(10))
"""
    out = np.zeros(1, np.int32)
    monkeypatch.setattr(knobs.compilation, "allow_non_constexpr_globals", True)
    for number in (3, 4, 3):
        load_module(tmp_path, text.format(number)).kernel[(1,)](out)
        assert out[0] == number
