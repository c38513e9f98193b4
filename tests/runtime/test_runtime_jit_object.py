"""The object that `jit` makes (6.1), annotations (6.2), source hashes and globals (6.6), compiled kernels (6.8)."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.compiler import ASTSource, compile
from tilework.targets.base import GPUTarget

CUDA = GPUTarget("cuda", 90, 32)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Any:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


@tilework.jit
def add_one(x):
    return x + 1


@tilework.jit
def kernel(p, n: tl.int64, c: tl.const, STEP: tl.constexpr = 4, other: "Unknown" = None):  # noqa: F821
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


def test_annotations() -> None:
    types = {param.name: param.annotation_type for param in kernel.params}
    assert types == {"p": "", "n": "i64", "c": "", "STEP": "", "other": ""}


@pytest.mark.parametrize(
    ("note", "expected"),
    [("tl.int8", "i8"), ("'fp16'", "fp16"), ("int", "i32"), ("float", "fp32"), ("'*i32'", "*i32"), ("'const int*'", "*ki32"),
     ("tl.pointer_type(tl.float32)", "*fp32"), ("bool", "u1"), ("'tl.uint64'", "u64"), ("list", "")],
)  # fmt: skip
def test_forced_types(note: str, expected: str, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    pass\n")
    assert module.k.params[1].annotation_type == expected


@pytest.mark.parametrize("note", ["tl.constexpr", "'tl.constexpr'", "'constexpr'"])
def test_constexpr_annotations(note: str, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, X: {note}):\n    tl.store(p, X)\n")
    assert module.k.constexprs == [1]


def test_postponed_annotations(tmp_path: Path) -> None:
    path = tmp_path / "postponed.py"
    path.write_text(
        "from __future__ import annotations\nimport tilework\nimport tilework.language as tl\n"
        "@tilework.jit\ndef k(p, X: tl.constexpr):\n    tl.store(p, X)\n"
    )
    spec = importlib.util.spec_from_file_location("postponed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = np.zeros(1, "i4")
    module.k[(1,)](out, 7)
    assert out[0] == 7


def test_float_annotations_change_the_type(tmp_path: Path) -> None:
    for code, ir in (("fp16", "f16"), ("bf16", "bf16"), ("fp32", "f32"), ("fp64", "f64")):
        module = load_module(tmp_path, f"@tilework.jit\ndef k(p, val: '{code}'):\n    tl.store(p, val)\n", f"f_{code}")
        out = np.zeros(1, "f4")
        compiled = module.k[(1,)](out, 0.5)
        assert f"%val: {ir}" in compiled.asm["ttir"]
        assert out[0] == 0.5


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


def test_updating_the_source() -> None:
    @tilework.jit
    def k(p):
        tl.store(p, 1)

    out = np.zeros(1, "i4")
    k[(1,)](out)
    k._unsafe_update_src(k.src.replace("1)", "2)"))
    assert k.hash is None
    k[(1,)](out)
    assert out[0] == 2


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


def test_compile_without_a_device(tmp_path: Path) -> None:
    source = ASTSource(add_kernel, {"BLOCK": "constexpr", "n": "i32", "x": "*fp32"}, {"BLOCK": 16})
    compiled = compile(source, CUDA, {"num_warps": 8})
    assert compiled.metadata.target == CUDA
    assert compiled.metadata.num_warps == 8
    assert "tt.load" in compiled.asm["ttir"]
    path = tmp_path / "k.ttir"
    path.write_text(compiled.asm["ttir"])
    again = compile(str(path), CUDA)
    assert again.name == "add_kernel"


@tilework.jit
def add_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_signature_keys_are_strings() -> None:
    with pytest.raises(TypeError):
        ASTSource(add_kernel, {0: "*fp32"})


def test_num_ctas_needs_hopper() -> None:
    source = ASTSource(add_kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16})
    with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
        compile(source, GPUTarget("cuda", 80, 32), {"num_ctas": 2})


def test_the_cache_is_used_and_can_be_bypassed() -> None:
    source = ASTSource(add_kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16})
    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    compile(source, CUDA)
    compile(source, CUDA)
    knobs.compilation.always_compile = True
    compile(source, CUDA)
    assert hits == [False, True, False]


def test_dump_and_override(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.cache.override_dir = str(tmp_path / "override")
    knobs.compilation.always_compile = True
    out = np.zeros(1, "i4")
    knobs.compilation.dump_ir = True

    @tilework.jit
    def k(p):
        tl.store(p, 11)

    k[(1,)](out)
    (dumped,) = (tmp_path / "dump").rglob("k.ttir")
    knobs.compilation.dump_ir = False
    target = tmp_path / "override" / dumped.parent.name / "k.ttir"
    target.parent.mkdir(parents=True)
    target.write_text(dumped.read_text().replace("11 : i32", "12 : i32"))
    knobs.compilation.override = True
    k.device_caches.clear()
    k[(1,)](out)
    assert out[0] == 12
    assert "Overriding kernel with file" in capsys.readouterr().out


def test_ir_override(tmp_path: Path) -> None:
    @tilework.jit
    def k(p):
        tl.store(p, 11)

    out = np.zeros(1, "i4")
    text = k[(1,)](out).asm["ttir"]
    path = tmp_path / "other.ttir"
    path.write_text(text.replace("11 : i32", "13 : i32"))
    k[(1,)](out, ir_override=str(path))
    assert out[0] == 13


def test_load_hooks() -> None:
    seen: list[str] = []
    knobs.runtime.kernel_load_start_hook.add(lambda *args: seen.append("start"))
    knobs.runtime.kernel_load_end_hook.add(lambda *args: seen.append(args[2]))

    @tilework.jit
    def k(p):
        tl.store(p, 1)

    try:
        k[(1,)](np.zeros(1, "i4"))
    finally:
        knobs.runtime.kernel_load_start_hook.calls.clear()
        knobs.runtime.kernel_load_end_hook.calls.clear()
    assert seen == ["start", "k"]


def test_tuples_as_arguments() -> None:
    @tilework.jit
    def k(p, pair, n):
        tl.store(p, pair[0] * n + pair[1])

    out = np.zeros(1, "i4")
    k[(1,)](out, (3, 1), 5)
    assert out[0] == 16


def test_none_arguments_are_constants() -> None:
    @tilework.jit
    def k(p, bias):
        if bias is None:
            tl.store(p, 1)
        else:
            tl.store(p, tl.load(bias))

    out = np.zeros(1, "i4")
    k[(1,)](out, None)
    assert out[0] == 1
    k[(1,)](out, np.full(1, 9, "i4"))
    assert out[0] == 9


def test_locals_hide_globals(tmp_path: Path) -> None:
    module = load_module(
        tmp_path,
        "import numpy as np\nx = np.zeros(4)\ni = 3\nlate = tl.constexpr(2)\n@tilework.jit\ndef k(p):\n"
        "    y = late\n    x = tl.load(p)\n    for i in range(2):\n        x += i\n    late = x + y\n    tl.store(p, late)\n",
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


def test_parameters_may_have_any_name() -> None:
    @tilework.jit
    def k(specialize, kind: tl.constexpr, forced_int: tl.int64, default_kind=5):
        tl.store(specialize, kind + forced_int + default_kind)

    out = np.zeros(1, "i4")
    k[(1,)](out, 3, 4)
    assert out[0] == 12
