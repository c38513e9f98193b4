"""The hash of a kernel's source: what it calls, the globals it reads, and globals that change."""

import linecache
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import fill
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.compiler import ASTSource
from tilework.language.dependencies import library_dependencies
from tilework.runtime.kernel_cache.key import hash_of_files

pytestmark = pytest.mark.usefixtures("fresh_cache")


def test_the_key_changes_with_text_line_and_callees(tmp_path: Path) -> None:
    text = "@tilework.jit\ndef f(x):\n    return x + {n}\n@tilework.jit\ndef k(p):\n    tl.store(p, f(1))\n"
    keys = [
        load_module(tmp_path, text.format(n=1), "same").k.cache_key,
        load_module(tmp_path, text.format(n=2), "same").k.cache_key,
        load_module(tmp_path, "\n" + text.format(n=1), "same").k.cache_key,
    ]
    assert len(set(keys)) == 3
    assert load_module(tmp_path, text.format(n=1), "same").k.cache_key == keys[0]


def test_both_branches_of_a_constexpr_if_count(tmp_path: Path) -> None:
    text = (
        "@tilework.jit\ndef f(x):\n    return x + {n}\n@tilework.jit\ndef k(p, C: tl.constexpr):\n"
        "    if C:\n        tl.store(p, 1)\n    else:\n        tl.store(p, f(1))\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same").k.cache_key for n in (1, 2))
    assert one != two


def test_combine_functions_count(tmp_path: Path) -> None:
    text = (
        "@tilework.jit\ndef f(a, b):\n    return a + b + {n}\n@tilework.jit\ndef k(p):\n"
        "    tl.store(p, tl.reduce(tl.arange(0, 4), 0, f))\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same").k.cache_key for n in (1, 2))
    assert one != two


def test_functions_of_the_library_count_by_what_they_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the library is a part of every key and is not parsed; a function that a program has replaced
    counts."""

    @tilework.jit
    def other(a: Any, b: Any):
        return a

    def again(function: Any) -> Any:
        return tilework.jit(function.fn)

    for function in (tl.sum, tl.softmax):
        found = library_dependencies(function).functions
        assert {id(item) for item in found} == {id(item) for item in function.dependencies.functions}
    parsed = again(tl.sum)
    assert parsed.cache_key == tl.sum.cache_key != again(tl.max).cache_key
    assert parsed._tree is None
    (combine,) = (item for item in library_dependencies(tl.sum).functions if item.__name__ == "_sum_combine")
    monkeypatch.setitem(combine.fn.__globals__, "_sum_combine", other)
    assert again(tl.sum).cache_key != parsed.cache_key
    parsed._unsafe_update_src("def sum(x):\n    return x\n")
    assert parsed.cache_key != tl.sum.cache_key


def test_globals_are_recorded(tmp_path: Path) -> None:
    module = load_module(
        tmp_path, "C = tl.constexpr(3)\nT = tl.float32\n@tilework.jit\ndef k(p):\n    tl.store(p, C)\n    x = T\n"
    )
    assert sorted(name for name, _ in module.k.used_global_vals) == ["C", "T"]


def test_same_source_other_capture_is_another_kernel() -> None:
    def make(value: int) -> Any:
        constant = tl.constexpr(value)

        @tilework.jit
        def k(p):
            tl.store(p, constant)

        return k

    out = np.zeros(1, "i4")
    for value in (5, 6):
        make(value)[(1,)](out)
        assert out[0] == value


def test_locals_hide_globals(tmp_path: Path) -> None:
    module = load_module(
        tmp_path,
        "import numpy as np\nx = np.zeros(4)\ni = 3\nlate = tl.constexpr(2)\n@tilework.jit\ndef k(p):\n"
        "    y = late\n    x = tl.load(p)\n    for i in range(2):\n        x += i\n    late = x + y\n"
        "    tl.store(p, late)\n",
        "hidden",
    )
    assert [name for name, _ in module.k.used_global_vals] == ["late"]
    out = np.zeros(1, "i4")
    module.k[(1,)](out)
    module.x = np.ones(4)
    module.k[(1,)](out)
    assert out[0] == 6


def test_rebinding_a_captured_constant_is_noticed() -> None:
    constant = tl.constexpr(3)

    @tilework.jit
    def k(p):
        tl.store(p, constant)

    out = np.zeros(1, "i4")
    k[(1,)](out)
    assert out[0] == 3
    constant = tl.constexpr(4)
    with pytest.raises(RuntimeError, match="constant has changed since we compiled this kernel"):
        k[(1,)](out)


SCALE = tl.constexpr(42)


@tilework.jit
def scaled(p):
    tl.store(p, SCALE)


def test_changed_globals_stop_the_launch() -> None:
    out = np.zeros(1, "i4")
    scaled[(1,)](out)
    assert out[0] == 42
    global SCALE
    SCALE = tl.constexpr(43)
    try:
        with pytest.raises(
            RuntimeError,
            match=r"SCALE has changed since we compiled this kernel, from constexpr\[42\] to constexpr\[43\]",
        ):
            scaled[(1,)](out)
    finally:
        SCALE = tl.constexpr(42)


def test_cache_key_follows_noinline_and_constexpr_globals(tmp_path: Path) -> None:
    text = (
        "N = tl.constexpr({n})\n@tilework.jit{options}\ndef helper(x):\n    return x + N\n@tilework.jit\n"
        "def k(p):\n    tl.store(p, helper(1))\n"
    )
    keys = {
        load_module(tmp_path, text.format(n=n, options=options), "same").k.cache_key
        for n in (1, 2)
        for options in ("", "(noinline=True)")
    }
    assert len(keys) == 4


def test_recursion_does_not_hang_the_hash(tmp_path: Path) -> None:
    text = "@tilework.jit\ndef odd(x):\n    return even(x)\n@tilework.jit\ndef even(x):\n    return odd(x)\n"
    module = load_module(tmp_path, text, "recursive")
    assert len(module.odd.cache_key) == 64 and module.odd.cache_key != module.even.cache_key


def test_aggregates_count_with_their_methods(tmp_path: Path) -> None:
    text = (
        "from tilework.language.core import _aggregate as aggregate\n@aggregate\nclass Pair:\n    a: tl.tensor\n"
        "    def __init__(self, a):\n        self.a = a\n    @tilework.jit\n    def total(self):\n"
        "        return self.a + {n}\n"
        "@tilework.jit\ndef k(p):\n    tl.store(p, Pair(tl.load(p)).total())\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same").k for n in (1, 2))
    assert one.cache_key != two.cache_key


def test_default_arguments_are_fixed_at_definition(tmp_path: Path) -> None:
    module = load_module(tmp_path, "N = 3\n@tilework.jit\ndef k(p, n=N):\n    tl.store(p, n)\n", "defaults")
    out = np.zeros(1, "i4")
    module.k[(1,)](out)
    module.N = 4
    module.k[(1,)](out)
    assert out[0] == 3


def test_dtype_globals_are_checked_too(tmp_path: Path) -> None:
    text = "T = tl.constexpr(tl.int32)\n@tilework.jit\ndef k(p):\n    tl.store(p, tl.full((), 3, T))\n"
    module = load_module(tmp_path, text, "types")
    out = np.zeros(1, "i4")
    module.k[(1,)](out)
    module.T = tl.constexpr(tl.int64)
    with pytest.raises(RuntimeError, match="Global variable T has changed since we compiled this kernel, from"):
        module.k[(1,)](out)


def test_caller_and_callee_saw_different_values(tmp_path: Path) -> None:
    text = (
        "N = tl.constexpr(1)\n@tilework.jit\ndef helper(x):\n    return x + N\n"
        "@tilework.jit\ndef first(p):\n    tl.store(p, helper(0))\n"
        "@tilework.jit\ndef second(p):\n    tl.store(p, helper(0) + N)\n"
    )
    module = load_module(tmp_path, text, "conflict")
    out = np.zeros(1, "i4")
    module.first[(1,)](out)
    assert out[0] == 1
    module.N = tl.constexpr(2)
    with pytest.raises(RuntimeError, match=r"^Global variable N has value"):
        module.second[(1,)](out)


def test_a_changed_function_argument_is_compiled_again_and_found_again() -> None:
    @tilework.jit
    def helper(x):
        return x + 1

    @tilework.jit
    def apply(p, f: tl.constexpr):
        tl.store(p, f(tl.load(p)))

    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    original, hashes = helper.src, []
    for text in (original, original.replace("+ 1", "+ 5"), original):
        helper._unsafe_update_src(text)
        out = np.zeros(1, "i4")
        hashes.append(apply[(1,)](out, helper).hash)
        assert out[0] == (5 if "+ 5" in text else 1)
        apply.device_caches.clear()
    assert hashes[0] == hashes[2] != hashes[1] and hits == [False, False, True]


@tilework.constexpr_function
def twice(x):
    return 2 * x


def test_functions_count_through_others(tmp_path: Path) -> None:
    text = (
        "@tilework.constexpr_function\ndef inner(x):\n    return x + {n}\n"
        "@tilework.jit\ndef middle(x):\n    return x * inner(3)\n"
        "@tilework.jit\ndef outer(p):\n    tl.store(p, middle(tl.load(p)))\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same") for n in (1, 2))
    assert one.inner.cache_key != two.inner.cache_key
    assert one.middle.cache_key != two.middle.cache_key and one.outer.cache_key != two.outer.cache_key


def test_the_same_text_in_another_folder_is_the_same_kernel(tmp_path: Path) -> None:
    """The messages of a kernel name its file, although its key does not contain it."""
    text = "@tilework.jit\ndef k(p):\n    tl.device_assert(tl.load(p) == 0, 'not zero')\n"
    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    for folder, lines in ((tmp_path / "one", 0), (tmp_path / "two", 0), (tmp_path / "two", 7)):
        folder.mkdir(exist_ok=True)
        kernel = load_module(folder, "\n" * lines + text).k
        with pytest.raises(RuntimeError, match=re.escape(f"{folder / 'generated.py'}:{5 + lines}:4")):
            kernel[(1,)](np.ones(1, "i4"), debug=True)
    assert hits == [False, True, True]


def test_cells_of_a_notebook_have_no_file(tmp_path: Path) -> None:
    """Names of cells differ in every process, and the keys of their kernels do not."""
    keys = set()
    for process in ("1", "2"):
        text = "@tilework.jit\ndef k(p):\n    tl.store(p, 1)\n"
        file, lines = str(tmp_path / f"ipykernel_{process}" / "12345.py"), list[str](text.splitlines(True))
        linecache.cache[file] = (len(text), None, lines, file)
        scope: dict[str, Any] = {"tilework": tilework, "tl": tl}
        exec(compile(text, file, "exec"), scope)
        keys.add(scope["k"].cache_key)
    assert len(keys) == 1


def test_functions_count_as_attributes_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for number in (1, 2):
        found = load_module(tmp_path, f"@tilework.jit\ndef add(x):\n    return x + {number}\n", "library")
        monkeypatch.setitem(sys.modules, "some_library", found)
        text = "import some_library as lib\n@tilework.jit\ndef k(p):\n    tl.store(p, lib.add(tl.load(p)))\n"
        keys.add(load_module(tmp_path, text, "uses_library").k.cache_key)
    assert len(keys) == 2


def test_used_globals_are_copies_with_their_scope(tmp_path: Path) -> None:
    text = (
        "import math\nDEFAULT = 5\nN = tl.constexpr(3)\nT = tl.float32\nSIZE = [1, 2]\n"
        "@tilework.jit\ndef helper(x):\n    return x\n"
        "@tilework.jit\ndef k(p, n=DEFAULT):\n    tl.store(p, helper(N) + min(n, math.pi) + tl.zeros((), T))\n"
    )
    module = load_module(tmp_path, text, "used")
    used = module.k.used_global_vals
    assert sorted(name for name, _ in used) == ["N", "T"]
    for (name, scope_id), (value, scope) in used.items():
        assert scope_id == id(scope) and scope[name] == value and isinstance(scope, dict)
    assert used["T", id(vars(module))][0] == tl.float32


def test_used_closure_variables() -> None:
    def make(number: int) -> Any:
        amount = tl.constexpr(number)

        @tilework.jit
        def k(p):
            tl.store(p, amount)

        return k

    assert [name for name, _ in make(3).used_global_vals] == ["amount"]


def test_sources_differ_by_each_part() -> None:
    types = {"p": "*fp32", "value": "fp32", "n": "i32"}
    base = ASTSource(fill, types, {"BLOCK": 16})
    others = [
        ASTSource(fill, {**types, "n": "i64"}, {"BLOCK": 16}),
        ASTSource(fill, types, {"BLOCK": 32}),
        ASTSource(fill, types, {"BLOCK": 16}, {(0,): [["tt.divisibility", 16]]}),
        ASTSource(fill, types, {"BLOCK": twice}),
    ]
    assert len({source.hash() for source in (base, *others)}) == 5
    elsewhere = tilework.jit(types_module().fill)
    assert elsewhere.cache_key != fill.cache_key
    assert ASTSource(elsewhere, types, {"BLOCK": 16}).hash() == base.hash()
    assert (
        base.hash() == ASTSource(fill, dict(reversed(types.items())), {"BLOCK": 16}).hash() and len(base.hash()) == 64
    )


def types_module() -> Any:
    """Return a module with a function of the same text at another line."""

    def fill(p, value, n, BLOCK: tl.constexpr = 16):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(p + i, value, mask=i < n)

    return types.SimpleNamespace(fill=fill)


def test_every_byte_of_a_library_file_counts(tmp_path: Path) -> None:
    """Files are read in pieces of 64 KiB."""
    path, found = tmp_path / "file.py", set()
    for size in (0, 1, 65535, 65536, 65537, 200_000):
        path.write_bytes(bytes(size))
        found.add(hash_of_files(str(tmp_path), [str(path)]))
        for index in {0, size // 2, size - 1} if size else ():
            path.write_bytes(bytes(index) + b"1" + bytes(size - index - 1))
            found.add(hash_of_files(str(tmp_path), [str(path)]))
    assert len(found) == 1 + 2 + 4 * 4
