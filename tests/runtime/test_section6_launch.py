"""Kernels, arguments and launches: what `test_rows_launch.py` and the files it names leave open."""

import importlib.util
import inspect
import linecache
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.compiler import ASTSource
from tilework.runtime.launch.specialize import mangle_type, specialize
from tilework.tools.tensor_descriptor import TensorDescriptor
from tilework.triton._C.libtriton.native_specialize import native_specialize_impl


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.constexpr_function
def twice(x):
    return 2 * x


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    fill.device_caches.clear()
    fill.pre_run_hooks.clear()


def entries(kernel: Any) -> int:
    return len(kernel.device_caches[0][0])


# -- 6.1 -----------------------------------------------------------------------------------------------------------


def test_6_1_launch_metadata_gets_grid_metadata_and_arguments() -> None:
    seen: list[Any] = []

    def describe(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, Any]:
        seen.append((grid, metadata, args))
        return {"flops": 7}

    kernel = tilework.jit(launch_metadata=describe)(fill.fn)
    out, hooked = np.zeros(16, "f4"), []
    kernel[(2,)](out, 1.0, 16)
    assert not seen, "nobody listens"
    knobs.runtime.launch_enter_hook.add(lambda lazy: hooked.append(lazy))
    compiled = kernel[(2,)](out, 1.0, 16)
    assert not seen, "nobody has looked"
    assert hooked[0].get() == {"name": "fill", "function": compiled.function, "stream": 0, "flops": 7}
    ((grid, metadata, args),) = seen
    assert tuple(grid)[:1] == (2,) and metadata is compiled.metadata
    assert args == {"p": out, "value": 1.0, "n": 16, "BLOCK": 16}


def test_6_1_names_see_constants_and_signature() -> None:
    seen: list[Any] = []

    def name(spec: Any) -> str:
        seen.append((dict(spec.constants), dict(spec.signature)))
        return "a_name"

    kernel = tilework.jit(repr=name)(fill.fn)
    compiled = kernel[(1,)](np.zeros(16, "f4"), 1.0, 16)
    assert (compiled.name, compiled.metadata.name) == ("a_name", "a_name") and "tt.func public @a_name" in compiled.asm[
        "ttir"
    ]
    constants, signature = seen[0]
    assert constants == {"BLOCK": 16} and signature == {"p": "*fp32", "value": "fp32", "n": "i32", "BLOCK": "constexpr"}


def test_6_1_attributes_hold_what_was_given() -> None:
    def describe(*args: Any) -> dict[str, Any]:
        return {}

    kernel = tilework.jit(
        launch_metadata=describe,
        do_not_specialize=["n"],
        do_not_specialize_on_alignment=["p"],
        debug=True,
        noinline=True,
    )(fill.fn)
    assert kernel.launch_metadata is describe and list(kernel.do_not_specialize) == ["n"]
    assert (kernel.debug, kernel.noinline, kernel.version) == (True, True, None)
    assert (kernel.__name__, kernel.__qualname__, kernel.module) == ("fill", "fill", __name__)
    assert kernel.fn is fill.fn and kernel.pre_run_hooks == [] and kernel.get_capture_scope()["tl"] is tl
    assert [param.num for param in kernel.params] == [0, 1, 2, 3] and kernel.params[3].annotation == "constexpr"
    assert [param.do_not_specialize for param in kernel.params] == [False, False, True, False]
    assert kernel.used_global_vals == {} and kernel.src == inspect.getsource(fill.fn).partition("\n")[2]
    run = inspect.signature(kernel.run).parameters
    assert "grid" in run and "warmup" in run and "grid" in inspect.signature(kernel.warmup).parameters


def test_6_1_a_function_can_be_given_another_source() -> None:
    def original(p):
        tl.store(p, 1)

    kernel = tilework.JITFunction(original)
    assert repr(kernel).startswith("JITFunction(") and repr(kernel).endswith(":" + original.__qualname__ + ")")
    before = kernel.cache_key
    kernel._unsafe_update_src(kernel.src.replace("1)", "9)"))
    assert kernel.hash is None and kernel.cache_key != before
    out = np.zeros(1, "i4")
    kernel[(1,)](out)
    assert out[0] == 9
    with pytest.raises(AttributeError):
        kernel.src = "def f(): pass"


def test_6_1_lines(tmp_path: Path) -> None:
    """`raw_src` with its decorators starts at `starting_line_number`; the `def` may be further down."""
    text = "\n@tilework.jit(\n    debug=True,\n)\ndef k(p):\n    tl.store(p, 1)\n"
    kernel = load_module(tmp_path, text, "lines").k
    lines = (tmp_path / "lines.py").read_text().splitlines(keepends=True)
    start = kernel.starting_line_number
    assert lines[start - 1 :] == kernel.raw_src and kernel.raw_src[0] == "@tilework.jit(\n"
    path, number = tilework.runtime.launch.jit.get_jit_fn_file_line(kernel)
    assert (
        path == str(tmp_path / "lines.py") and lines[number - 1] == "def k(p):\n" and kernel.src.startswith("def k(p):")
    )


# -- 6.2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("note", "expected"),
    [("'int32*'", "*i32"), ("'*fp16'", "*fp16"), ("'tl.float64'", "fp64"), ("'const tl.float32*'", "*kfp32"),
     ("tl.bfloat16", "bf16"), ("'uint16'", "u16"), ("'int1'", "u1"), ("'float8e5'", "fp8e5"), ("tl.tensor", ""),
     ("tl.pointer_type(tl.int8)", "*i8")],
)  # fmt: skip
def test_6_2_normalised(note: str, expected: str, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    pass\n", "normalised")
    param = module.k.params[1]
    assert param.annotation_type == expected and param.annotation == (expected or "tensor")


@pytest.mark.parametrize(("note", "name"), [("tl.constexpr", "constexpr"), ("tl.const", "const"), ("Later", "Later")])
def test_6_2_annotations_that_are_no_types(note: str, name: str, tmp_path: Path) -> None:
    text = f"from __future__ import annotations\nimport tilework\n@tilework.jit\ndef k(p, x: {note}):\n    pass\n"
    path = tmp_path / "no_types.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("no_types", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    param = module.k.params[1]
    assert (param.annotation, param.annotation_type) == (name, "")
    assert (param.is_constexpr, param.is_const) == (name == "constexpr", name == "const")


@pytest.mark.parametrize("note", ["'constexpr'", "'Optional[tl.constexpr]'", "'tl.constexpr | None'"])
def test_6_2_a_text_that_contains_constexpr(note: str, tmp_path: Path) -> None:
    module = load_module(
        tmp_path, f"@tilework.jit\ndef k(p, X: {note}):\n    tl.store(p + tl.arange(0, X), X)\n", "contains"
    )
    out = np.zeros(4, "i4")
    module.k[(1,)](out, 4)
    assert out.tolist() == [4] * 4 and module.k.constexprs == [1]


@pytest.mark.parametrize("note", ["float", "'fp64'", "tl.float16", "bool", "'u1'"])
def test_6_2_forced_floats_and_bools_are_one_kernel(note: str, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", "forced_float")
    out = np.zeros(1, "f4")
    for value in (1, 16, 0, 3) if "float" in note or "fp" in note else (True, False):
        module.k[(1,)](out, value)
        assert out[0] == value
    assert entries(module.k) == 1


@pytest.mark.parametrize(("note", "exact"), [("'fp16'", np.float16), ("'fp64'", np.float64), ("'fp32'", np.float32)])
def test_6_2_floats_arrive_in_the_format_of_their_annotation(note: str, exact: Any, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", "format")
    out = np.zeros(1, "f8")
    for _ in range(2):
        module.k[(1,)](out, 1 / 3)
        assert out[0] == float(exact(1 / 3))


def test_6_2_a_forced_one_is_a_value_at_run_time(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p, i: tl.int32):\n    tl.store(p, i)\n", "one")
    compiled = module.k[(1,)](np.zeros(1, "i4"), 1)
    assert "%i: i32" in compiled.asm["ttir"] and compiled.src.signature["i"] == "i32"


# -- 6.3 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [False, True], ids=["first launch", "native launch"])
@pytest.mark.parametrize("device", ["native", "evaluator"])
def test_6_3_a_callable_grid_that_gives_a_callable(warm: bool, device: str) -> None:
    """The same error on every path, and the second callable is never called."""
    knobs.runtime.device = device
    fill.device_caches.clear()
    kernel, calls = tilework.jit(fill.fn), []
    out = np.zeros(4, "f4")
    if warm:
        kernel[(1,)](out, 1.0, 4)
        kernel[(1,)](out, 1.0, 4)

    def sizes(meta: Any) -> Any:
        calls.append(meta)
        return (1,)

    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"a callable grid returns one to three integers, and this one returned <function"
        ):
            kernel[lambda meta: sizes](out, 1.0, 4)
    with pytest.raises(TypeError, match="a callable grid returns one to three integers"):
        tilework.jit(interpret=True)(fill.fn)[lambda meta: sizes](out, 1.0, 4)
    assert calls == []


def test_6_3_a_grid_without_brackets() -> None:
    out = np.zeros(4, "f4")
    fill[1,](out, 3.0, 4)
    assert (out == 3).all()


def test_6_3_run_is_a_launch_and_its_hooks_run() -> None:
    seen: list[Any] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[1:], kwargs)))
    out = np.zeros(4, "f4")
    compiled = fill.run(out, 2.0, grid=(1,), warmup=False, n=4)
    assert (out == 2).all() and seen == [((2.0,), {"n": 4})] and compiled.name == "fill"
    out[:] = 0
    assert fill.run(out, 2.0, 4, grid=(1,), warmup=True) is compiled and not out.any() and len(seen) == 2


def test_6_3_globals_are_checked_before_the_grid_is_asked(tmp_path: Path) -> None:
    text = "N = tl.constexpr(1)\n@tilework.jit\ndef k(p):\n    tl.store(p, N)\n"
    module, events = load_module(tmp_path, text, "order"), []
    module.k.add_pre_run_hook(lambda *args, **kwargs: events.append("hook"))
    out = np.zeros(1, "i4")
    module.k[lambda meta: events.append("grid") or (1,)](out)
    module.N = tl.constexpr(2)
    with pytest.raises(RuntimeError, match=r"^Global variable N has changed"):
        module.k[lambda meta: events.append("grid") or (1,)](out)
    assert events == ["hook", "grid", "hook"] and out[0] == 1


def test_6_3_dtypes_of_torch_in_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of that name is all that is needed."""
    dtype = type("dtype", (), {"__module__": "torch", "__repr__": lambda self: "torch.float32"})
    kernel = fill.warmup(dtype(), 1.0, 16, grid=(1,))
    assert kernel is fill[(1,)](np.zeros(16, "f4"), 1.0, 16) and entries(fill) == 1


def test_6_3_addresses_and_null() -> None:
    @tilework.jit
    def first(p: "*fp32", q, given: tl.constexpr):  # noqa: F722
        tl.store(q, tl.load(p) if given else -1.0)

    x, out = np.full(4, 7, "f4"), np.zeros(1, "f4")
    first[(1,)](x.ctypes.data, out, True)
    assert out[0] == 7
    first[(1,)](None, out, False)
    assert out[0] == -1


# -- 6.4 -----------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: Any
    b: Any


VALUES = [None, True, 1, 0, 16, 17, 2**31, 2**63, 1.5, np.float64(2), (1, 16, Pair(None, 3)), (), tl.constexpr(3)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("specialize_value", "align"), [(True, True), (True, False), (False, True)])
def test_6_4_the_function_that_tests_call(value: Any, specialize_value: bool, align: bool) -> None:
    found = native_specialize_impl(None, value, False, specialize_value, align)
    assert found == specialize(value, False, specialize_value, align)
    assert mangle_type(value, specialize_value) == native_specialize_impl(None, value, False, specialize_value, True)[0]


def test_6_4_elements_of_tuples_are_always_specialised() -> None:
    data = np.zeros(16, "f4")
    types = ("constexpr", "i32", "*fp32")
    assert specialize((1, 16, data), True, False, False)[0] == types
    assert specialize((1, 16), False, False, True) == (("constexpr", "i32"), (1, "D"))
    kernel = tilework.jit(do_not_specialize=["pair"])(pair_sum)
    out = np.zeros(1, "i4")
    for pair in ((1, 16), (1, 17), (2, 17)):
        kernel[(1,)](out, pair)
        assert out[0] == sum(pair)
    assert entries(kernel) == 3


def pair_sum(p, pair):
    tl.store(p, pair[0] + pair[1])


def test_6_4_functions_are_constants_by_their_hash() -> None:
    assert specialize(fill) == ("constexpr", fill.cache_key)
    assert specialize(twice) == ("constexpr", twice.cache_key)
    assert specialize(twice, False, False, True) == ("constexpr", twice.cache_key)


def test_6_4_descriptors() -> None:
    base = np.zeros((8, 64), "f2")
    assert specialize(TensorDescriptor.from_tensor(base, [4, 16])) == ("tensordesc<fp16[4, 16]>", None)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**30])
def test_6_4_integers_that_no_type_holds(value: int) -> None:
    with pytest.raises(OverflowError):
        native_specialize_impl(None, value, False, True, True)
    with pytest.raises(OverflowError):
        fill[(1,)](np.zeros(4, "f4"), 1.0, value)


@pytest.mark.parametrize("value", ["text", [1], {}, np.complex64(3), object()], ids=lambda value: type(value).__name__)
def test_6_4_what_has_no_type(value: Any) -> None:
    name = type(value).__name__
    with pytest.raises(TypeError, match=rf"failed to specialize argument of type.*{name}"):
        fill[(1,)](np.zeros(4, "f4"), 1.0, value)


# -- 6.6 -----------------------------------------------------------------------------------------------------------


def test_6_6_functions_count_through_others(tmp_path: Path) -> None:
    text = (
        "@tilework.constexpr_function\ndef inner(x):\n    return x + {n}\n"
        "@tilework.jit\ndef middle(x):\n    return x * inner(3)\n"
        "@tilework.jit\ndef outer(p):\n    tl.store(p, middle(tl.load(p)))\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same") for n in (1, 2))
    assert one.inner.cache_key != two.inner.cache_key
    assert one.middle.cache_key != two.middle.cache_key and one.outer.cache_key != two.outer.cache_key


def test_6_6_the_same_text_in_another_folder_is_another_kernel(tmp_path: Path) -> None:
    """Messages name the file, and so does what the disk cache keeps."""
    text = "@tilework.jit\ndef k(p):\n    tl.device_assert(tl.load(p) == 0, 'not zero')\n"
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        kernel = load_module(folder, text).k
        with pytest.raises(RuntimeError, match=re.escape(f"{folder / 'generated.py'}:5")):
            kernel[(1,)](np.ones(1, "i4"), debug=True)


def test_6_6_cells_of_a_notebook_have_no_file(tmp_path: Path) -> None:
    """Their names differ in every process, their kernels do not."""
    keys = set()
    for process in ("1", "2"):
        text, file = (
            "@tilework.jit\ndef k(p):\n    tl.store(p, 1)\n",
            str(tmp_path / f"ipykernel_{process}" / "12345.py"),
        )
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"tilework": tilework, "tl": tl}
        exec(compile(text, file, "exec"), scope)
        keys.add(scope["k"].cache_key)
    assert len(keys) == 1


def test_6_6_functions_count_as_attributes_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for number in (1, 2):
        found = load_module(tmp_path, f"@tilework.jit\ndef add(x):\n    return x + {number}\n", "library")
        monkeypatch.setitem(sys.modules, "some_library", found)
        text = "import some_library as lib\n@tilework.jit\ndef k(p):\n    tl.store(p, lib.add(tl.load(p)))\n"
        keys.add(load_module(tmp_path, text, "uses_library").k.cache_key)
    assert len(keys) == 2


def test_6_6_used_globals_are_copies_with_their_scope(tmp_path: Path) -> None:
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


def test_6_6_used_closure_variables() -> None:
    def make(number: int) -> Any:
        amount = tl.constexpr(number)

        @tilework.jit
        def k(p):
            tl.store(p, amount)

        return k

    assert [name for name, _ in make(3).used_global_vals] == ["amount"]


def test_6_6_sources_differ_by_each_part() -> None:
    types = {"p": "*fp32", "value": "fp32", "n": "i32"}
    base = ASTSource(fill, types, {"BLOCK": 16})
    others = [
        ASTSource(tilework.jit(types_module().fill), types, {"BLOCK": 16}),
        ASTSource(fill, {**types, "n": "i64"}, {"BLOCK": 16}),
        ASTSource(fill, types, {"BLOCK": 32}),
        ASTSource(fill, types, {"BLOCK": 16}, {(0,): [["tt.divisibility", 16]]}),
        ASTSource(fill, types, {"BLOCK": twice}),
    ]
    assert len({source.hash() for source in (base, *others)}) == 6
    assert (
        base.hash() == ASTSource(fill, dict(reversed(types.items())), {"BLOCK": 16}).hash() and len(base.hash()) == 64
    )


def types_module() -> Any:
    """A function of the same text in another place."""

    def fill(p, value, n, BLOCK: tl.constexpr = 16):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(p + i, value, mask=i < n)

    return types.SimpleNamespace(fill=fill)


# -- 6.17 wrappers -------------------------------------------------------------------------------------------------


def test_6_17_a_reinterpreted_array_has_the_attributes_of_a_tensor() -> None:
    base = np.arange(6, dtype="f4").reshape(2, 3)
    view = tilework.reinterpret(base, tl.int32)
    assert isinstance(view, tilework.TensorWrapper) and view.base is base and view.dtype == tl.int32
    assert view.shape == (2, 3) and view.stride() == (3, 1) and view.element_size() == 4
    assert view.data is not None and view.data_ptr() == base.ctypes.data and view.device is not None
    assert tilework.reinterpret(view, np.dtype("f4")) is base, "back to what it was"
    other = tilework.reinterpret(view, tl.uint32)
    assert other.base is base and other.dtype == tl.uint32


def test_6_17_a_mock_tensor() -> None:
    mock = tilework.MockTensor(tl.float32, [4, 5])
    assert (mock.data_ptr(), mock.stride(), mock.shape, mock.dtype) == (0, (5, 1), [4, 5], tl.float32)


# -- shapes are known when a kernel is compiled --------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        ("tl.sum(x, keep_dims=n)", "keep_dims"), ("tl.max(x, 0, keep_dims=n)", "keep_dims"),
        ("tl.sum(x, axis=n)", "axis"),
        ("tl.reduce(x, 0, add, keep_dims=n)", "keep_dims"), ("tl.reduce(x, n, add)", "axis"),
        ("tl.associative_scan(x, n, add)", "axis"), ("tl.associative_scan(x, 0, add, reverse=n)", "reverse"),
        ("tl.cumsum(x, 0, reverse=n)", "reverse"),
    ],
)  # fmt: skip
def test_4_7_what_decides_a_shape_must_be_constexpr(call: str, parameter: str, mode: str, tmp_path: Path) -> None:
    text = (
        "@tilework.jit\ndef add(a, b):\n    return a + b\n"
        f"@tilework.jit(interpret={mode == 'interpreted'})\n"
        f"def k(p, n):\n    x = tl.load(p + tl.arange(0, 4))\n    tl.store(p + tl.arange(0, 4), {call})\n"
    )
    module = load_module(tmp_path, text, "shapes")
    error = tilework.CompilationError if mode == "compiled" else tilework.runtime.InterpreterError
    with pytest.raises(error) as caught:
        module.k[(1,)](np.zeros(4, "i4"), 5)
    words = f"`{parameter}` must be constexpr, but is int32 at run time"
    if isinstance(caught.value, tilework.CompilationError):
        shown = caught.value.diagnostic().render()
        assert f"shapes.py:9:{text.splitlines()[-1].index(call) + 1}: error: " in shown and words in shown
        assert "help: declare the parameter `NAME: tl.constexpr`" in shown
    else:
        assert words in str(caught.value)
