"""Attributes of a tensor."""

from typing import Any

import pytest

import tilework.language as tl

BLOCK = tl.tensor("x", tl.block_type(tl.int32, [128, 2]))
SCALAR = tl.tensor("s", tl.int32)
POINTER = tl.tensor("p", tl.pointer_type(tl.float32))


def test_shape_and_dtype() -> None:
    assert BLOCK.shape == [128, 2] and BLOCK.shape == (128, 2) and BLOCK.shape != [128]
    assert isinstance(BLOCK.shape[0], tl.constexpr) and isinstance(BLOCK.shape, tl.tuple)
    assert BLOCK.shape[1:] + [4] == [2, 4] and len(BLOCK.shape) == 2
    assert BLOCK.numel == 256 and SCALAR.numel == 1 and isinstance(SCALAR.numel, tl.constexpr)
    assert SCALAR.shape == () and BLOCK.dtype == tl.int32 and POINTER.dtype == tl.pointer_type(tl.float32)
    assert BLOCK.type == tl.block_type(tl.int32, [128, 2])


def test_text() -> None:
    assert str(tl.tensor("x", tl.block_type(tl.int32, [128]))) == "int32[constexpr[128]]"
    assert str(SCALAR) == "int32[]" and str(POINTER) == "pointer<fp32>[]"


def test_flattening() -> None:
    handles: list[Any] = []
    BLOCK._flatten_ir(handles)
    assert handles == ["x"]
    copy, cursor = BLOCK.type._unflatten_ir(["a", "b"], 1)
    assert (copy.handle, copy.type, cursor) == ("b", BLOCK.type, 2)


def test_item_needs_one_element() -> None:
    class Semantic(Any):
        def unsplat(self, x: tl.tensor) -> str:
            return f"the element of {x.handle}"

    one = tl.tensor("x", tl.block_type(tl.int32, [1, 1]))
    assert one.item(_semantic=Semantic()) == "the element of x"
    assert SCALAR.item(_semantic=Semantic()) is SCALAR
    with pytest.raises(AssertionError, match="256"):
        BLOCK.item(_semantic=Semantic())


def test_there_is_no_truth_or_transpose_outside_kernels() -> None:
    with pytest.raises(TypeError, match="truth"):
        bool(BLOCK)
    with pytest.raises(ValueError, match="@jit"):
        _ = BLOCK.T


def test_a_tensor_can_be_a_key() -> None:
    assert {BLOCK: 1}[BLOCK] == 1
