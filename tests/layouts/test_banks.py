"""Bank conflicts, against a count of words and banks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layouts.strategies import distributed, powers, shapes, shared
from tilework.layouts.banks import BANKS, bank_conflicts, offsets_of, vector_bits, warp_access
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import Blocked, DotOperand, NvidiaMma, NvmmaShared, SwizzledShared
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import to_linear


@st.composite
def accesses(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout, int]:
    rank = draw(st.integers(1, 2))
    shape = draw(shapes(rank, 2, 6))
    memory = draw(shared(rank))
    try:
        layout = to_linear(memory, shape)
    except LayoutError:  # smaller than the tile of its swizzle
        layout = to_linear(SwizzledShared(4, 1, 4, tuple(range(rank))), shape)
    if layout.in_size("block") > 1:
        layout = to_linear(SwizzledShared(2, 2, 4, tuple(reversed(range(rank)))), shape)
    return to_linear(draw(distributed(rank, cga=False)), shape), layout, draw(powers(3, 6))


@given(accesses())
def test_conflicts_are_words_of_one_bank(access: tuple[LinearLayout, LinearLayout, int]) -> None:
    registers, memory, bits = access
    offsets = offsets_of(registers, memory)
    vector = 1 << vector_bits(offsets, bits)
    together = 32 if vector * bits <= 32 else 32 * 32 // (vector * bits)
    requested: dict[int, set[int]] = {}
    for lane in range(together):
        first = offsets.apply(lane=lane)["offset"]
        for word in {(first + step) * bits // 32 for step in range(vector)}:
            requested.setdefault(word % BANKS, set()).add(word)
    assert bank_conflicts(registers, memory, bits) == max(map(len, requested.values())) - 1


@given(accesses())
def test_a_vector_is_contiguous_and_aligned(access: tuple[LinearLayout, LinearLayout, int]) -> None:
    registers, memory, bits = access
    vector = 1 << vector_bits(offsets_of(registers, memory), bits)
    assert vector * bits <= 128
    indices = sorted(offsets_of(registers, memory).images("register"))
    runs = {index // vector for index in indices}
    assert {run * vector + step for run in runs for step in range(vector)} == set(indices)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_swizzled_column_of_pieces_has_no_conflicts(swizzle: int, bits: int) -> None:
    """Eight rows of 16 bytes: one `ldmatrix` tile."""
    layout = to_linear(NvmmaShared(swizzle, False, bits), (64, 8 * swizzle // bits))
    assert warp_access(layout, 0, 128 // bits, 1, bits) == 0
    assert warp_access(layout, 1, 128 // bits, 1, bits) == 0


@pytest.mark.parametrize("k", [16, 32, 64, 128])
@pytest.mark.parametrize(("width", "bits"), [(1, 32), (2, 16), (4, 8)])
def test_dot_operands_are_read_without_conflicts(width: int, bits: int, k: int) -> None:
    """`ldmatrix` reads 8 rows of 16 bytes at a time from the encoding that is chosen for it."""
    encoding = dot_shared(DotOperand(0, NvidiaMma(2, 0, (2, 2), (16, 8)), width), (64, k), (1, 0), bits)
    assert warp_access(to_linear(encoding, (64, k)), 0, 128 // bits, 1, bits) == 0


def test_conflicts_of_an_unswizzled_tile() -> None:
    plain = to_linear(SwizzledShared(1, 1, 1, (1, 0)), (32, 32))
    assert bank_conflicts(to_linear(Blocked((1, 4), (4, 8), (1, 1), (1, 0)), (32, 32)), plain, 32) == 0
    assert warp_access(plain, 0, 1, 1, 32) == 31
    assert warp_access(plain, 1, 1, 1, 32) == 0


def test_pieces_that_are_not_contiguous() -> None:
    scattered = to_linear(SwizzledShared(1, 1, 4, (1, 0)), (32, 32))
    assert warp_access(scattered, 0, 4, 1, 32) is None
    assert warp_access(to_linear(SwizzledShared(1, 1, 1, (0,)), (8,)), 0, 1, 0, 32) is None
