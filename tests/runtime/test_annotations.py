"""Annotations of parameters: types that are forced, constants, and what is not looked at."""

# Kernels annotate parameters with values and texts that are no Python types.
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import entries
from tests.runtime.modules import load_module
from tilework.runtime.launch.python.specialize import make_binder

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def kernel(
    p, n: tl.int64, c: tl.const,
    STEP: tl.constexpr = 4,  # pyright: ignore[reportArgumentType]
    other: "Unknown" = None,  # noqa: F821
):  # fmt: skip
    pass


def test_annotations() -> None:
    types = {param.name: param.annotation_type for param in kernel.params}
    assert types == {"p": "", "n": "i64", "c": "", "STEP": "", "other": ""}


def test_float_annotations_change_the_type(tmp_path: Path) -> None:
    for code, ir in (("fp16", "f16"), ("bf16", "bf16"), ("fp32", "f32"), ("fp64", "f64")):
        module = load_module(tmp_path, f"@tilework.jit\ndef k(p, val: '{code}'):\n    tl.store(p, val)\n", f"f_{code}")
        out = np.zeros(1, "f4")
        compiled = module.k[(1,)](out, 0.5)
        assert f"%val: {ir}" in compiled.asm["ttir"]
        assert out[0] == 0.5


@tilework.jit
def typed(p, i: tl.int32):
    tl.store(p, i)


def test_forced_integers_have_three_entries() -> None:
    out = np.zeros(1, "i4")
    for value in (1, 8, 16, 17):
        typed[(1,)](out, value)
        assert out[0] == value
    assert entries(typed) == 3


FORCED = {
    "'int32*'": "*i32", "'*fp16'": "*fp16", "'tl.float64'": "fp64", "'const tl.float32*'": "*kfp32",
    "tl.bfloat16": "bf16",
    "'uint16'": "u16", "'int1'": "u1", "'float8e5'": "fp8e5", "tl.tensor": "", "tl.pointer_type(tl.int8)": "*i8",
    "tl.int8": "i8", "'fp16'": "fp16", "int": "i32", "float": "fp32", "'*i32'": "*i32", "'const int*'": "*ki32",
    "bool": "u1", "'tl.uint64'": "u64", "list": "",
}  # fmt: skip


def test_normalised(tmp_path: Path) -> None:
    notes = ", ".join(f"x{number}: {note}" for number, note in enumerate(FORCED))
    module = load_module(tmp_path, f"@tilework.jit\ndef k({notes}):\n    pass\n", "normalised")
    for (note, expected), param in zip(FORCED.items(), module.k.params, strict=True):
        assert param.annotation_type == expected, note
        assert param.annotation == (expected or note.removeprefix("tl.")), note


def test_annotations_that_are_no_types(tmp_path: Path) -> None:
    path = tmp_path / "no_types.py"
    path.write_text(
        "from __future__ import annotations\nimport tilework\nimport tilework.language as tl\n"
        "@tilework.jit\ndef k(p, X: tl.constexpr, q: tl.const, r: Later):\n    tl.store(p, X + tl.load(q))\n"
    )
    spec = importlib.util.spec_from_file_location("no_types", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for param, name in zip(module.k.params[1:], ("constexpr", "const", "Later"), strict=True):
        assert (param.annotation, param.annotation_type) == (name, "")
        assert (param.is_constexpr, param.is_const) == (name == "constexpr", name == "const")
    out = np.zeros(1, "i4")
    module.k[(1,)](out, 7, np.ones(1, "i4"), 5)
    assert out[0] == 8


def test_a_text_that_contains_constexpr(tmp_path: Path) -> None:
    notes = ("tl.constexpr", "'constexpr'", "'tl.constexpr'", "'Optional[tl.constexpr]'", "'tl.constexpr | None'")
    parameters = ", ".join(f"X{number}: {note}" for number, note in enumerate(notes))
    total = " + ".join(f"X{number}" for number in range(len(notes)))
    text = f"@tilework.jit\ndef k(p, {parameters}):\n    tl.store(p, {total})\n    tl.static_assert({total} == 31)\n"
    kernel, out = load_module(tmp_path, text, "contains").k, np.zeros(1, "i4")
    kernel[(1,)](out, 1, 2, 4, 8, 16)
    assert out[0] == 31 and kernel.constexprs == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "type", ["u1", "fp64", "fp32", "fp16", "bf16", "fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15"]
)
def test_floats_of_a_forced_type_have_one_specialisation(type: str, tmp_path: Path) -> None:
    kernel = load_module(tmp_path, f"@tilework.jit\ndef k(x: '{type}'):\n    pass\n", "one").k
    bind = make_binder(kernel)
    assert {bind(value)[1] for value in (0, 1, 16, 3, 1.0, 2.5, float("nan"))} == {((type, None),)}


@pytest.mark.parametrize("note", ["float", "'fp64'", "tl.float16", "bool", "'u1'"])
def test_forced_floats_and_bools_are_one_kernel(note: str, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", "forced_float")
    out = np.zeros(1, "f4")
    for value in (1, 16, 0, 3) if "float" in note or "fp" in note else (True, False):
        module.k[(1,)](out, value)
        assert out[0] == value
    assert entries(module.k) == 1


@pytest.mark.parametrize(("note", "exact"), [("'fp16'", np.float16), ("'fp64'", np.float64), ("'fp32'", np.float32)])
def test_floats_arrive_in_the_format_of_their_annotation(note: str, exact: Any, tmp_path: Path) -> None:
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", "format")
    out = np.zeros(1, "f8")
    for _ in range(2):
        module.k[(1,)](out, 1 / 3)
        assert out[0] == float(exact(1 / 3))


def test_a_forced_one_is_a_value_at_run_time(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p, i: tl.int32):\n    tl.store(p, i)\n", "one")
    compiled = module.k[(1,)](np.zeros(1, "i4"), 1)
    assert "%i: i32" in compiled.asm["ttir"] and compiled.src.signature["i"] == "i32"


def test_const_pointer_is_read_only(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p: tl.const, q):\n    tl.store(p, tl.load(q))\n", "const")
    with pytest.raises(tilework.CompilationError, match="Cannot store to a constant pointer"):
        module.k[(1,)](np.zeros(1, "f4"), np.zeros(1, "f4"))


@pytest.mark.parametrize(
    "note", ["bool", "int", "float", "object", "'torch.Tensor'", "list[int]", "None", "'not python'"]
)
def test_annotations_are_never_evaluated_in_the_kernel(note: str, tmp_path: Path) -> None:
    name = f"note_{abs(hash(note))}"
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", name)
    out = np.zeros(1, "f4")
    module.k[(1,)](out, 3)
    assert out[0] == (1 if note == "bool" else 3)


def test_forced_pointer_types(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p: '*i32'):\n    tl.store(p, 5)\n", "forced")
    out = np.zeros(1, "i4")
    module.k[(1,)](out.ctypes.data)  # an address
    assert out[0] == 5


def test_forced_integers_wrap_in_their_type(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p, x: tl.uint8):\n    tl.store(p, x)\n", "byte")
    out = np.zeros(1, "i4")
    module.k[(1,)](out, 255)
    assert out[0] == 255
