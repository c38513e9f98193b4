"""The encoding of a result, and what cannot be inferred. `test_reference.py` has many more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layouts.strategies import distributed, shapes
from tests.layouts.worked_examples import FIRST, MMA2
from tilework.layouts.conversion import conversion
from tilework.layouts.encodings import (
    Blocked,
    Linear,
    NvmmaShared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.infer import (
    infer_expand_dims,
    infer_join,
    infer_memdesc_reshape,
    infer_memdesc_trans,
    infer_reduce,
    infer_reshape,
    infer_split,
    infer_trans,
    reshape_row_major,
)
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear

FLAT = Blocked((4,), (32,), (4,), (0,))


def test_reduce_and_expand_dims() -> None:
    assert infer_reduce(FIRST, 1) == Slice(1, FIRST)
    assert infer_expand_dims(Slice(1, FIRST), 1) == FIRST
    with pytest.raises(LayoutError, match="must be SliceEncodingAttr"):
        infer_expand_dims(FLAT, 0)
    with pytest.raises(LayoutError, match="Incompatible slice dimension"):
        infer_expand_dims(Slice(1, FIRST), 0)


def test_trans() -> None:
    assert infer_trans(FIRST, (1, 0), (16, 32)) == Blocked((4, 1), (8, 4), (1, 4), (0, 1))
    assert infer_trans(MMA2, (0, 1), (16, 32)) == MMA2
    box = Blocked((1, 2, 4), (2, 4, 4), (4, 1, 1), (2, 0, 1))
    assert infer_trans(box, (2, 0, 1), (8, 8, 8)) == Blocked((4, 1, 2), (4, 2, 4), (1, 4, 1), (0, 1, 2))
    with pytest.raises(LayoutError, match="not a permutation"):
        infer_trans(FIRST, (0, 0), (16, 32))


@given(st.data())
def test_trans_moves_nothing(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    encoding, shape = data.draw(distributed(rank)), data.draw(shapes(rank, 0, 5))
    perm = tuple(data.draw(st.permutations(range(rank))))
    transposed = to_linear(infer_trans(encoding, perm, shape), tuple(shape[dim] for dim in perm))
    plain = to_linear(encoding, shape)
    for name in plain.in_names:
        for before, after in zip(dict(plain.bases)[name], dict(transposed.bases)[name], strict=True):
            assert after == tuple(before[dim] for dim in perm)


@given(st.data())
def test_reshape_moves_nothing(data: st.DataObject) -> None:
    """Every thread keeps its elements, and which copies there are; the result goes back."""
    rank = data.draw(st.integers(1, 3))
    encoding, shape = data.draw(distributed(rank)), data.draw(shapes(rank, 0, 5))
    flat = data.draw(st.permutations([2] * sum(size.bit_length() - 1 for size in shape)))
    cut = data.draw(st.integers(0, len(flat)))
    target = (1 << cut, 1 << (len(flat) - cut))
    there = infer_reshape(shape, encoding, target)
    before, after = reshape_row_major(to_linear(encoding, shape), target), to_linear(there, target)
    if isinstance(there, Linear):
        assert before == after
    elif not isinstance(encoding, Blocked) or any(size > 1 for size in encoding.size_per_thread):
        assert conversion(before, after).kind in ("none", "register")
    assert infer_reshape(shape, encoding, shape) == encoding


def test_reshape() -> None:
    assert infer_reshape((16, 32), FIRST, (16, 4, 8)) == Blocked((1, 1, 4), (4, 4, 2), (4, 1, 1), (2, 1, 0))
    assert infer_reshape((512,), FLAT, (128, 4)) == Blocked((1, 4), (32, 1), (4, 1), (1, 0))
    assert isinstance(infer_reshape((16, 32), FIRST, (512,)), Blocked)
    assert isinstance(infer_reshape((16, 32), Blocked((1, 4), (4, 8), (4, 1), (0, 1)), (512,)), Linear)
    assert isinstance(infer_reshape((64, 32), MMA2, (2, 32, 32)), Linear)
    assert infer_reshape((16, 32), FIRST, (512,), allow_reorder=True) == Blocked((1,), (32,), (4,), (0,))
    with pytest.raises(LayoutError, match="different sizes"):
        infer_reshape((16, 32), FIRST, (16, 16))


def test_join_and_split() -> None:
    joined = infer_join(FLAT, (512,))
    assert joined == Blocked((4, 2), (32, 1), (4, 1), (1, 0))
    assert infer_split(joined, (512, 2)) == FLAT
    assert infer_join(Slice(1, joined), (512,)) == joined
    accumulator = infer_join(MMA2, (64, 32))
    assert isinstance(accumulator, Linear)
    assert infer_split(accumulator, (64, 32, 2)) == Linear(to_linear(MMA2, (64, 32)))
    with pytest.raises(LayoutError, match="requires at least 2 elements per thread in the axis/last dimension"):
        infer_split(Blocked((1, 1), (16, 2), (4, 1), (1, 0)), (64, 2))
    with pytest.raises(LayoutError, match="last dimension to have size 2"):
        infer_split(Blocked((1, 4), (32, 1), (4, 1), (1, 0)), (64, 4))


def test_memdesc_trans() -> None:
    assert infer_memdesc_trans(SwizzledShared(8, 1, 8, (1, 0)), (1, 0), (64, 64)) == SwizzledShared(8, 1, 8, (0, 1))
    assert infer_memdesc_trans(NvmmaShared(128, False, 16), (1, 0), (64, 64)) == NvmmaShared(128, True, 16)
    assert infer_memdesc_trans(NvmmaShared(128, False, 16), (0, 1), (64, 64)) == NvmmaShared(128, False, 16)
    transposed = infer_memdesc_trans(NvmmaShared(128, False, 16, rank=3), (0, 2, 1), (2, 64, 64))
    assert isinstance(transposed, SharedLinear)
    assert transposed.alignment == 1024


def test_memdesc_reshape() -> None:
    tile = NvmmaShared(128, False, 16)
    assert infer_memdesc_reshape((64, 64), tile, (4, 16, 64)) == NvmmaShared(128, False, 16, rank=3)
    narrow = infer_memdesc_reshape((64, 128), tile, (64, 2, 64))
    assert isinstance(narrow, SharedLinear)
    assert narrow.alignment == 1024
    assert isinstance(infer_memdesc_reshape((8, 8), SwizzledShared(2, 1, 4, (1, 0)), (64,)), SharedLinear)
    with pytest.raises(LayoutError, match="different sizes"):
        infer_memdesc_reshape((8, 8), tile, (8,))
