"""Every name that programs written for Triton import, and how its exceptions behave."""

import ast
import pickle
from dataclasses import FrozenInstanceError
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tilework
from tilework.compiler import CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError
from tilework.triton.backends import GPUTarget, Language
from tilework.triton.finder import added_names, has_source, resolve, source_of
from tilework.triton.gluon import NVMMASharedLayout, TensorDescriptor
from tilework.triton.names import MODULES, NAMES
from tilework.triton.runtime import native_specialize_impl


def test_the_tables_name_what_exists() -> None:
    for name in (*MODULES, *NAMES):
        if (source := source_of(name)) is not None:
            assert has_source(source.removeprefix("tilework")), name
    for module in NAMES:
        for source, name in added_names(module).values():
            assert source == "triton" or resolve(source, name) is not None


def test_the_driver_is_an_object_even_after_its_module_was_imported() -> None:
    import_module("tilework.runtime.devices.active_driver")
    driver = tilework.runtime.driver
    for name in ("default", "set_active", "reset_active", "_active", "_default"):
        assert hasattr(type(driver), name) or name in vars(driver)
    assert isinstance(type(driver).active, property)


def test_as_triton_is_a_function_and_a_module() -> None:
    assert callable(tilework.as_triton) and tilework.as_triton is import_module("tilework.as_triton")


def test_targets_are_values() -> None:
    target = GPUTarget("cuda", 90, 32)
    assert target == GPUTarget(backend="cuda", arch=90, warp_size=32) and hash(target) == hash(
        GPUTarget("cuda", 90, 32)
    )
    with pytest.raises(FrozenInstanceError):
        target.arch = 80  # pyright: ignore[reportAttributeAccessIssue]
    assert (Language.TRITON.value, Language.GLUON.value) == (0, 1)


NODE = ast.parse("x = 1\ny = x +  z", mode="exec").body[1]


@pytest.mark.parametrize(
    "kind",
    [tilework.CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct],
    ids=lambda k: k.__name__,
)
def test_compilation_errors(kind: type[tilework.CompilationError]) -> None:
    error = kind("x = 1\ny = x +  z", NODE, "z is not defined")
    assert isinstance(error, tilework.CompilationError) and isinstance(error, tilework.TritonError)
    assert (error.src, error.node, error.error_message) == ("x = 1\ny = x +  z", NODE, "z is not defined")
    assert str(error) == error.message and "at 2:0:" in str(error) and "z is not defined" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) and again.error_message == error.error_message
    assert kind("x", NODE).error_message is None


def test_out_of_resources() -> None:
    error = OutOfResources(250000, 232448, "shared memory")
    text = (
        "out of resource: shared memory, Required: 250000, Hardware limit: 232448."
        " Reducing block sizes or `num_stages` may help."
    )
    assert isinstance(error, tilework.TritonError) and str(error) == text
    assert (error.required, error.limit, error.name) == (250000, 232448, "shared memory")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is OutOfResources and (str(again), again.required) == (text, 250000)
    assert tilework.OutOfResources is OutOfResources


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PTXASError("no such instruction"), "PTXAS error: no such instruction"),
        (AutotunerError("nothing left"), "Autotuner error: nothing left"),
        (InterpreterError("ValueError('x')"), "ValueError('x')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_errors(error: Exception, text: str) -> None:
    assert isinstance(error, tilework.TritonError) and str(error) == text
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == text


def test_every_error_is_an_exception_of_ours() -> None:
    assert tilework.TritonError.__bases__ == (Exception,)
    assert tilework.InterpreterError is InterpreterError
    assert import_module("tilework.errors").TritonError is tilework.TritonError


def test_gluon_descriptors_carry_a_layout() -> None:
    layout = NVMMASharedLayout(128, 16)
    assert (layout.rank, layout.transposed, layout.fp4_padded, len(layout.cga_layout)) == (2, False, False, 0)
    assert layout == NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16) and len({layout, layout}) == 1
    for wrong in ((48, 16), (128, 12)):
        with pytest.raises(AssertionError, match="must be one of"):
            NVMMASharedLayout(*wrong)
    a = np.zeros((64, 128), np.float16)
    found = TensorDescriptor.from_tensor(a, [16, 32], layout)
    assert (found.layout, found.padding, list(found.strides)) == (layout, "zero", [128, 1])
    assert TensorDescriptor(a, [64, 128], [128, 1], [16, 32], layout).block_shape == [16, 32]
    with pytest.raises(AssertionError, match="layout"):
        TensorDescriptor.from_tensor(a, [16, 32], None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(AssertionError, match="round_f32_to_tf32 is only supported for float32 tensors"):
        TensorDescriptor.from_tensor(a, [16, 32], layout, round_f32_to_tf32=True)
    kind, key = native_specialize_impl(None, found, False, True, True)
    assert (kind, key) == (f"tensordesc<fp16[16, 32],{layout!r}>", None)


def test_a_folder_that_an_older_tilework_left_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backends" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr("tilework.triton.finder.PACKAGE", str(tmp_path))
    assert not has_source(".backends")
