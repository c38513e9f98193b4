"""Every language type has the IR type that the reference compiler prints for it."""

from typing import Any

import pytest

from tilework.frontend.semantic.building import ir_type, ir_types
from tilework.language import core as tl
from tilework.language.dtypes import (
    block_type,
    dtype,
    float16,
    float32,
    int1,
    int32,
    int64,
    pointer_type,
    uint8,
    void,
)
from tilework.language.parameters import str_to_ty
from tilework.language.values import tensor_descriptor_type

TEXT = {
    "int1": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "fp8e4nv": "f8E4M3FN",
    "fp8e5": "f8E5M2",
    "fp8e4b8": "f8E4M3FNUZ",
    "fp8e5b16": "f8E5M2FNUZ",
    "fp8e4b15": "i8",
    "fp16": "f16",
    "bf16": "bf16",
    "fp32": "f32",
    "fp64": "f64",
}


@pytest.mark.parametrize(("name", "text"), TEXT.items())
def test_elements(name: str, text: str) -> None:
    element = dtype(name)
    assert str(ir_type(element)) == text
    assert str(ir_type(pointer_type(element))) == f"!tt.ptr<{text}>"
    assert str(ir_type(block_type(element, [4, 8]))) == f"tensor<4x8x{text}>"
    assert ir_type(block_type(element, [4, 8])) is ir_type(block_type(dtype(name), [4, 8]))


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (pointer_type(float32, 3), "!tt.ptr<f32, 3>"),
        (pointer_type(float32, const=True), "!tt.ptr<f32>"),
        (block_type(pointer_type(int1), [16]), "tensor<16x!tt.ptr<i1>>"),
        (pointer_type(block_type(float16, [64, 32])), "!tt.ptr<tensor<64x32xf16>>"),
        (str_to_ty("tensordesc<fp16[16, 16]>"), "!tt.tensordesc<tensor<16x16xf16>>"),
        (str_to_ty("tensordesc<i8[16, 16]>"), "!tt.tensordesc<tensor<16x16xsi8>>"),
        (str_to_ty("tensordesc<u32[16, 16]>"), "!tt.tensordesc<tensor<16x16xui32>>"),
        (str_to_ty("tensordesc<fp8e4b15[16, 16]>"), "!tt.tensordesc<tensor<16x16xui8>>"),
    ],
)
def test_composite_types(type: Any, text: str) -> None:
    assert str(ir_type(type)) == text


def test_flattening() -> None:
    descriptor = tensor_descriptor_type(
        block_type(uint8, [4, 16]), tl.tuple_type([int32, int32]), tl.tuple_type([int64, tl.constexpr_type(1)])
    )
    nested = tl.tuple_type([int32, tl.constexpr_type(4), tl.tuple_type([float32, descriptor]), void])
    assert [str(part) for part in ir_types(nested)] == [
        "i32",
        "f32",
        "!tt.tensordesc<tensor<4x16xui8>>",
        "i32",
        "i32",
        "i64",
    ]


def test_an_aggregate_is_its_fields() -> None:
    pair = tl._aggregate_type(object, [("x", int32), ("size", tl.constexpr_type(4)), ("y", float16)])
    assert [str(part) for part in ir_types(pair)] == ["i32", "f16"]


def test_types_without_runtime_values() -> None:
    assert ir_types(tl.constexpr_type(None)) == []
    with pytest.raises(TypeError, match="cannot exist at run time"):
        ir_types(tl.base_type())
    with pytest.raises(TypeError, match="no single IR value"):
        ir_type(tl.tuple_type([int32]))
