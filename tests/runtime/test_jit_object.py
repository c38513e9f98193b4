"""The object that `jit` makes: attributes, parameters, names, sources."""

# Kernels annotate parameters with values and texts that are no Python types.
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import add_one, fill
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.oracles.interpreter import InterpretedFunction
from tilework.triton.runtime import create_function_from_signature, get_jit_fn_file_line

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def kernel(
    p, n: tl.int64, c: tl.const,
    STEP: tl.constexpr = 4,  # pyright: ignore[reportArgumentType]
    other: "Unknown" = None,  # noqa: F821
):  # fmt: skip
    """Doc."""
    tl.store(p, add_one(n) * STEP)


def test_attributes() -> None:
    assert kernel.__name__ == "kernel"
    assert kernel.__doc__ == "Doc."
    assert kernel.arg_names == ["p", "n", "c", "STEP", "other"]
    assert kernel.constexprs == [3]
    assert kernel.src.startswith("def kernel(")
    assert kernel.params[3].has_default and kernel.params[3].default == 4
    assert kernel.params[2].is_const and kernel.params[3].is_constexpr
    assert repr(kernel) == f"JITFunction({__name__}:kernel)"
    assert kernel.parse().body[0].name == "kernel"
    assert "tl" in kernel.get_capture_scope()
    assert kernel.fn.__name__ == "kernel" and kernel.module == __name__
    with pytest.raises(AttributeError):
        kernel.src = "x"


def test_no_source_is_a_value_error() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x): return x", scope)
    with pytest.raises(ValueError, match="Python file"):
        tilework.jit(scope["f"])


def test_names_from_repr() -> None:
    @tilework.jit(repr=lambda spec: f"named_{spec.constants['N']}_{spec.signature['p'][1:]}")
    def k(p, N: tl.constexpr):
        tl.store(p, N)

    assert k.warmup(np.zeros(1, "i4"), 3, grid=(1,)).name == "named_3_i32"


def test_constexpr_and_do_not_specialize() -> None:
    @tilework.jit(do_not_specialize=["N"])
    def k(p, N: tl.constexpr):
        tl.store(p, N)

    with pytest.raises(tilework.CompilationError, match="N marked as constexpr and listed in do_not_specialize"):
        k[(1,)](np.zeros(1, "i4"), 5)


def test_parameters_may_have_any_name() -> None:
    @tilework.jit
    def k(specialize, kind: tl.constexpr, forced_int: tl.int64, default_kind=5):
        tl.store(specialize, kind + forced_int + default_kind)

    out = np.zeros(1, "i4")
    k[(1,)](out, 3, 4)
    assert out[0] == 12


@tilework.jit
def inner(x):
    return x + 1


@tilework.jit(version=7, noinline=True, debug=True)
def configured(p, n, STEP: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
    """Doc."""
    tl.store(p, inner(n) * STEP)


@tilework.jit
def store(p, v):
    tl.store(p, v)


def test_version_is_stored() -> None:
    assert configured.version == 7 and store.version is None


def test_jit_with_and_without_brackets() -> None:
    bare, empty = tilework.jit(store.fn), tilework.jit()(store.fn)
    for kernel in (bare, empty, tilework.JITFunction(store.fn)):
        out = np.zeros(1, "i4")
        kernel[(1,)](out, 5)
        assert out[0] == 5


def test_noinline_makes_a_real_function() -> None:
    helper = tilework.jit(noinline=True)(inner.fn)
    assert helper.noinline and not inner.noinline

    @tilework.jit
    def calls(p):
        tl.store(p, helper(tl.load(p)))

    assert "attributes {noinline = true}" in calls.warmup(np.zeros(1, "i4"), grid=(1,)).asm["source"]


@pytest.mark.parametrize("which", [["n"], [1], (1,), ("n",)])
@pytest.mark.parametrize("parameter", ["do_not_specialize", "do_not_specialize_on_alignment"])
def test_do_not_specialize_by_name_and_index(parameter: str, which: Any) -> None:
    kernel = tilework.jit(**{parameter: which})(lambda_free_store())
    out = np.zeros(1, "i4")
    for value in (2, 3, 16, 32):
        kernel[(1,)](out, value)
        assert out[0] == value
    assert len(kernel.device_caches[0][0]) == 1
    kernel[(1,)](out, 1)
    assert len(kernel.device_caches[0][0]) == (1 if parameter == "do_not_specialize" else 2)
    assert kernel.params[1].do_not_specialize is (parameter == "do_not_specialize")


def lambda_free_store() -> Any:
    def store_it(p, n):
        tl.store(p, n)

    return store_it


def test_interpreter_at_decoration_time() -> None:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        kernel = tilework.jit(store.fn)
    assert isinstance(kernel, InterpretedFunction) and not isinstance(store, InterpretedFunction)


ATTRIBUTES = (
    "fn signature params arg_names constexprs src raw_src starting_line_number hash cache_key used_global_vals "
    "device_caches"
    " noinline debug module __name__ __qualname__ __doc__ __globals__ pre_run_hooks launch_metadata "
    "do_not_specialize version"
    " run warmup preload add_pre_run_hook parse get_capture_scope repr _unsafe_update_src create_binder _pack_args"
)


PARAMETER_ATTRIBUTES = "name num annotation annotation_type is_constexpr is_const do_not_specialize has_default default"


def test_every_attribute_is_there() -> None:
    assert [name for name in ATTRIBUTES.split() if not hasattr(configured, name)] == []
    assert [name for name in PARAMETER_ATTRIBUTES.split() if not hasattr(configured.params[2], name)] == []


def test_values_of_attributes() -> None:
    lines, start = inspect.getsourcelines(configured.fn)
    assert configured.raw_src == lines
    assert configured.starting_line_number == start and configured.__globals__ is globals()
    assert configured.signature == inspect.signature(configured.fn) and configured.debug is True
    assert configured.params[2].num == 2 and configured.params[2].default == 4 and not configured.params[0].has_default
    key = configured.cache_key
    assert configured.hash == key and len(key) == 64


def test_pack_args_and_the_binder() -> None:
    x = np.zeros(64, "f4")
    backend = store.create_binder()[3]
    bound, specialization, options = store_binder(fill, backend)(x, 1.5, 32, num_warps=8)
    parsed, signature, constants, attrs = fill._pack_args(backend, options, bound, specialization, options)
    assert (parsed.num_warps, signature) == (8, {"p": "*fp32", "value": "fp32", "n": "i32", "BLOCK": "constexpr"})
    assert constants == {(3,): 16} and attrs[(2,)] == [["tt.divisibility", 16]]


def store_binder(kernel: Any, backend: Any) -> Any:
    return create_function_from_signature(kernel.signature, kernel.params, backend)


def test_launch_metadata_gets_grid_metadata_and_arguments() -> None:
    seen: list[Any] = []

    def describe(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, Any]:
        seen.append((grid, metadata, args))
        return {"flops": 7}

    kernel = tilework.jit(launch_metadata=describe)(fill.fn)
    out, hooked = np.zeros(16, "f4"), []
    kernel[(2,)](out, 1.0, 16)
    assert not seen, "there is no listener"
    knobs.runtime.launch_enter_hook.add(lambda lazy: hooked.append(lazy))
    compiled = kernel[(2,)](out, 1.0, 16)
    assert not seen, "not read yet"
    assert hooked[0].get() == {"name": "fill", "function": compiled.function, "stream": 0, "flops": 7}
    ((grid, metadata, args),) = seen
    assert grid == (2,) and metadata is compiled.metadata
    assert args == {"p": out, "value": 1.0, "n": 16, "BLOCK": 16}


def test_names_see_constants_and_signature() -> None:
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


def test_attributes_hold_what_was_given() -> None:
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
    assert (kernel.__name__, kernel.__qualname__, kernel.module) == ("fill", "fill", fill.module)
    assert kernel.fn is fill.fn and kernel.pre_run_hooks == [] and kernel.get_capture_scope()["tl"] is tl
    assert [param.num for param in kernel.params] == [0, 1, 2, 3] and kernel.params[3].annotation == "constexpr"
    assert [param.do_not_specialize for param in kernel.params] == [False, False, True, False]
    assert kernel.used_global_vals == {} and kernel.src == inspect.getsource(fill.fn).partition("\n")[2]
    run = inspect.signature(kernel.run).parameters
    assert "grid" in run and "warmup" in run and "grid" in inspect.signature(kernel.warmup).parameters


def test_a_function_can_be_given_another_source() -> None:
    def original(p):
        tl.store(p, 1)

    kernel, out = tilework.JITFunction(original), np.zeros(1, "i4")
    kernel[(1,)](out)
    assert (
        out[0] == 1
        and repr(kernel).startswith("JITFunction(")
        and repr(kernel).endswith(":" + original.__qualname__ + ")")
    )
    before = kernel.cache_key
    kernel._unsafe_update_src(kernel.src.replace("1)", "9)"))
    assert kernel.hash is None and kernel.cache_key != before
    kernel[(1,)](out)
    assert out[0] == 9
    with pytest.raises(AttributeError):
        kernel.src = "def f(): pass"  # pyright: ignore[reportAttributeAccessIssue]


def test_lines(tmp_path: Path) -> None:
    """`raw_src` with its decorators starts at `starting_line_number`; the `def` may be further down."""
    text = "\n@tilework.jit(\n    debug=True,\n)\ndef k(p):\n    tl.store(p, 1)\n"
    kernel = load_module(tmp_path, text, "lines").k
    lines = (tmp_path / "lines.py").read_text().splitlines(keepends=True)
    start = kernel.starting_line_number
    assert lines[start - 1 :] == kernel.raw_src and kernel.raw_src[0] == "@tilework.jit(\n"
    path, number = get_jit_fn_file_line(kernel)
    assert (
        path == str(tmp_path / "lines.py") and lines[number - 1] == "def k(p):\n" and kernel.src.startswith("def k(p):")
    )
