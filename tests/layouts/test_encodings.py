"""Encodings are checked values, and each means a layout of the whole tensor."""

import ast
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layouts.strategies import distributed, shapes, shared
from tilework.layouts import encodings
from tilework.layouts.amd import AmdMfma, AmdWmma, RotatingShared
from tilework.layouts.encodings import (
    KINDS,
    Blocked,
    DotOperand,
    Linear,
    NvidiaMma,
    NvmmaShared,
    PaddedShared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import to_linear

PACKAGE = Path(__file__).parents[2] / "tilework"
TILE = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
AMPERE, HOPPER = NvidiaMma(2, 0, (2, 2), (16, 8)), NvidiaMma(3, 0, (4, 1), (16, 64, 16))


def linear(register: list[tuple[int, ...]], lane: list[tuple[int, ...]]) -> LinearLayout:
    return LinearLayout({"register": register, "lane": lane, "warp": [], "block": []}, ("dim0", "dim1"))


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Blocked((1,), (4, 8), (4, 1), (1, 0)), "must all have the same rank"),
    (lambda: Blocked((), (), (), ()), "at least one dimension"),
    (lambda: Blocked((1, 1), (4, 7), (4, 1), (1, 0)), "Every element in threadsPerWarp must be a power of two"),
    (
        lambda: Blocked((1, 1), (4, 8), (4, 1), (1, 1)),
        r"order must be a permutation of 0..\(rank-1\), but was \[1, 1\]",
    ),
    (lambda: Blocked((1, 1), (4, 8), (4, 1), (1, 0), ((1,),)), "rank 2"),
    (lambda: Slice(0, Blocked((1,), (32,), (4,), (0,))), "at least rank >= 2"),
    (lambda: Slice(2, TILE), "dim=2 must be less than the parent rank=2"),
    (lambda: DotOperand(2, TILE), "can be 0 or 1, got: 2"),
    (lambda: DotOperand(0, AMPERE), "kWidth parameter is mandatory"),
    (lambda: DotOperand(0, TILE, 2), "kWidth parameter is not supported"),
    (lambda: DotOperand(1, HOPPER, 2), "must be 0 for Hopper MMA parent"),
    (lambda: DotOperand(0, Slice(0, TILE)), "unexpected parent layout"),
    (lambda: NvidiaMma(4, 0, (1, 1), (16, 8)), "versionMajor = 4"),
    (lambda: NvidiaMma(2, 0, (1,), (16, 8)), "rank 2 or 3, not 1"),
    (lambda: NvidiaMma(3, 0, (4, 1), (16, 8)), r"instrShape = \[16, 8\] does not fit version 3"),
    (lambda: Linear(linear([(1, 1)], [(1, 0)])), "moves in more than one dimension"),
    (lambda: Linear(linear([(0, 2)], [(1, 0)])), "After removing the zero bases the layout must be bijective"),
    (lambda: Linear(linear([(0, 1), (0, 2)], [(0, 3)])), "is not a power of two"),
    (lambda: Linear(LinearLayout({"lane": [(1,)]}, ("dim0",))), "maps"),
    (lambda: SwizzledShared(3, 1, 1, (0,)), "power of two"),
    (lambda: NvmmaShared(16, False, 16), "swizzlingByteWidth must be 0, 32, 64, or 128, not 16"),
    (lambda: NvmmaShared(32, False, 12), "elementBitWidth = 12"),
    (lambda: SharedLinear(LinearLayout({"offset": [(2,)], "block": []}, ("dim0",))), "must be surjective"),
    (lambda: SharedLinear(LinearLayout({"offset": [(1,), (1,)], "block": []}, ("dim0",))), "invertible"),
    (lambda: SharedLinear(LinearLayout({"offset": [(1,)], "block": []}, ("dim0",)), 12), "alignment = 12"),
    (lambda: SharedLinear(LinearLayout({"offset": [(1,)], "block": []}, ("x",))), "gives dim0, dim1"),
    (lambda: PaddedShared((), LinearLayout({"offset": [(1,)], "block": []}, ("dim0",))), "at least one interval"),
    (lambda: PaddedShared(((4, 1), (4, 2)), LinearLayout({"offset": [(1,)], "block": []}, ("dim0",))), "duplicates"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_encodings(make: Callable[[], object], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(LayoutError, match="rank 2 does not fit"):
        to_linear(TILE, (16,))
    with pytest.raises(LayoutError, match="24 is not a power of two"):
        to_linear(TILE, (24, 16))
    with pytest.raises(LayoutError, match="smaller than the tile of a 128-byte swizzle: 8 rows of 64 elements"):
        to_linear(NvmmaShared(128, False, 16), (16, 32))
    with pytest.raises(LayoutError, match="rank 2 or more"):
        to_linear(NvmmaShared(128, False, 16, rank=1), (64,))
    with pytest.raises(LayoutError, match="does not fit a tensor"):
        to_linear(SharedLinear(LinearLayout({"offset": [(1,)], "block": []}, ("dim0",))), (4,))


@given(st.data())
def test_a_distributed_encoding_covers_the_tensor(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    encoding, shape = data.draw(distributed(rank)), data.draw(shapes(rank))
    layout = to_linear(encoding, shape)
    assert layout.is_surjective
    assert layout.in_names == ("register", "lane", "warp", "block")
    assert layout.outs == tuple((f"dim{dim}", size) for dim, size in enumerate(shape))
    assert layout.in_size("lane") == 32
    assert to_linear(Linear(layout), shape) == layout


@given(st.data())
def test_a_shared_encoding_has_one_offset_for_each_element(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    encoding, shape = data.draw(shared(rank)), data.draw(shapes(rank, 3, 8))
    if isinstance(encoding, NvmmaShared) and encoding.swizzling_byte_width:
        shape = tuple(128 for _ in shape)
    layout = to_linear(encoding, shape)
    assert layout.is_surjective
    assert layout.sublayout(["offset"], layout.out_names).is_injective
    assert layout.remove_zero_bases("block").is_invertible


@given(st.data())
def test_encodings_are_values(data: st.DataObject) -> None:
    encoding = data.draw(distributed(2))
    again = pickle.loads(pickle.dumps(encoding))
    assert again == encoding
    assert hash(again) == hash(encoding)
    assert eval(repr(encoding), {**vars(encodings)}) == encoding


def test_padding_of_four_bit_elements() -> None:
    """Eight bytes of data, then eight that nothing uses."""
    layout = to_linear(NvmmaShared(128, False, 8, fp4_padded=True), (16, 64))
    assert dict(layout.bases)["offset"] == (
        (0, 1), (0, 2), (0, 4), (0, 0), (0, 8), (0, 16), (0, 32), (1, 8), (2, 16), (4, 32), (8, 0),
    )  # fmt: skip


def test_the_alignment_of_swizzled_tiles() -> None:
    assert [NvmmaShared(swizzle, False, 16).alignment for swizzle in (0, 32, 64, 128)] == [128, 256, 512, 1024]


def test_passes_rarely_ask_for_a_kind() -> None:
    """Code does not test the kind of an encoding if its linear layout or a property of `Encoding` has the answer."""
    kinds = {kind.__name__ for kind in (*KINDS, AmdMfma, AmdWmma, RotatingShared)}
    found = []
    for path in (*PACKAGE.glob("transforms/**/*.py"), *PACKAGE.glob("analysis/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                if kinds & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}:
                    found.append(f"{path.name}:{node.lineno}")
    assert len(found) <= 12, found
