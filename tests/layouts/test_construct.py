"""Encodings chosen by rule, and the questions passes ask about encodings."""

import pytest

from tests.layouts.worked_examples import FIRST
from tilework.layouts.construct import cga_from, default_blocked, dot_shared, nvmma_shared
from tilework.layouts.encodings import (
    Blocked,
    Distributed,
    DotOperand,
    Linear,
    NvidiaMma,
    NvmmaShared,
    Slice,
    SwizzledShared,
)
from tilework.layouts.to_linear import (
    contig_per_thread,
    elems_per_thread,
    is_expensive_view,
    machine_of,
    order,
    order_for_memory,
    shape_per_cta,
    thread_order,
    to_linear,
    total_elems_per_thread,
    warp_order,
)

Shape = tuple[int, ...]
AMPERE, HOPPER = NvidiaMma(2, 0, (2, 2), (16, 8)), NvidiaMma(3, 0, (4, 2), (16, 32, 16))


@pytest.mark.parametrize(
    ("shape", "lanes", "warps"),
    [
        ((64, 2, 32), (1, 1, 32), (2, 2, 1)),
        ((32, 64, 2), (1, 16, 2), (1, 4, 1)),
        ((64, 2, 64, 2), (1, 1, 16, 2), (1, 1, 4, 1)),
        ((128, 32), (1, 32), (4, 1)),
        ((64,), (32,), (4,)),
        ((64, 1), (32, 1), (4, 1)),
        ((1, 64), (1, 32), (2, 2)),
    ],
)
def test_the_default_of_a_tensor(shape: Shape, lanes: Shape, warps: Shape) -> None:
    ones = (1,) * len(shape)
    assert default_blocked(shape) == Blocked(ones, lanes, warps, tuple(reversed(range(len(shape)))))


def test_the_default_with_more_elements_per_thread() -> None:
    assert default_blocked((128, 128), (4, 4)) == Blocked((4, 4), (1, 32), (4, 1), (1, 0))
    assert default_blocked((32, 1, 1), (1, 1, 2)) == Blocked((1, 1, 2), (32, 1, 1), (4, 1, 1), (2, 1, 0))


def test_the_default_on_several_blocks() -> None:
    assert default_blocked((128, 32), num_ctas=2).cga == ((1, 0),)
    assert default_blocked((2, 64), num_ctas=4).cga == ((0, 1), (1, 0))
    assert default_blocked((2, 2), num_ctas=8).cga == ((0, 1), (0, 0), (1, 0))
    assert cga_from((2, 2), (1, 2), (0, 1)) == ((0, 0), (0, 1))


def test_shared_memory_of_dot_operands() -> None:
    a, b = DotOperand(0, AMPERE, 2), DotOperand(1, AMPERE, 2)
    assert dot_shared(a, (128, 64), (1, 0), 16) == SwizzledShared(8, 1, 8, (1, 0))
    assert dot_shared(a, (128, 32), (1, 0), 16) == SwizzledShared(8, 2, 4, (1, 0))
    assert dot_shared(b, (32, 128), (1, 0), 16) == SwizzledShared(8, 1, 8, (1, 0))
    assert dot_shared(DotOperand(0, AMPERE, 1), (64, 32), (1, 0), 32) == SwizzledShared(4, 1, 8, (1, 0))
    assert dot_shared(DotOperand(1, AMPERE, 1), (32, 64), (1, 0), 32) == SwizzledShared(8, 1, 4, (1, 0))
    assert dot_shared(DotOperand(0, FIRST), (64, 32), (1, 0), 16) == SwizzledShared(1, 1, 1, (1, 0))


@pytest.mark.parametrize(
    ("shape", "order", "bits", "swizzle", "transposed"),
    [
        ((128, 64), (1, 0), 16, 128, False),
        ((128, 32), (1, 0), 16, 64, False),
        ((128, 16), (1, 0), 16, 32, False),
        ((128, 8), (1, 0), 16, 0, False),
        ((64, 128), (0, 1), 16, 128, True),
        ((4, 64), (1, 0), 16, 0, False),
        ((4, 2, 64), (2, 1, 0), 16, 128, False),
        ((128, 64), (1, 0), 8, 64, False),
    ],
)
def test_shared_memory_of_wgmma(shape: Shape, order: Shape, bits: int, swizzle: int, transposed: bool) -> None:
    assert nvmma_shared(shape, order, bits) == NvmmaShared(swizzle, transposed, bits, False, len(shape))


def test_one_block_has_its_part_of_a_row() -> None:
    assert nvmma_shared((128, 128), (1, 0), 8, ((0, 1),)).swizzling_byte_width == 64


# Queries


@pytest.mark.parametrize(
    ("encoding", "registers", "lanes", "warps"),
    [
        (FIRST, (1, 0), (1, 0), (0, 1)),
        (Blocked((1, 1), (32, 1), (4, 1), (0, 1)), (0, 1), (0, 1), (0, 1)),
        (AMPERE, (1, 0), (1, 0), (1, 0)),
        (HOPPER, (1, 0), (1, 0), (0, 1)),
        (DotOperand(0, AMPERE, 2), (1, 0), (1, 0), (0, 1)),
        (DotOperand(1, AMPERE, 2), (0, 1), (0, 1), (1, 0)),
        (Slice(0, Blocked((1, 1, 1), (1, 1, 32), (1, 1, 4), (0, 2, 1))), (1, 0), (1, 0), (1, 0)),
        (Linear(to_linear(DotOperand(1, AMPERE, 2), (64, 64))), (0, 1), (0, 1), (1, 0)),
    ],
)
def test_orders(encoding: Distributed, registers: Shape, lanes: Shape, warps: Shape) -> None:
    shape = (256, 256)
    assert (order(encoding, shape), thread_order(encoding, shape), warp_order(encoding, shape)) == (
        registers,
        lanes,
        warps,
    )


def test_orders_of_a_shape() -> None:
    assert order(DotOperand(1, AMPERE, 2), (64, 64)) == (0, 1)
    assert warp_order(HOPPER, (128, 64)) == (0, 1)
    column = Blocked((1, 1), (32, 1), (4, 1), (0, 1))
    assert order(column, (128, 64)) == (1, 0)
    assert thread_order(column, (128, 64)) == (0, 1)
    assert order_for_memory(column, (128, 64)) == (0, 1)
    assert order_for_memory(FIRST, (64, 64)) == (1, 0)


def test_what_a_thread_holds() -> None:
    assert elems_per_thread(FIRST, (64, 64)) == (4, 8)
    assert elems_per_thread(FIRST, (16, 2)) == (1, 4)
    assert elems_per_thread(AMPERE, (64, 32)) == (4, 4)
    assert elems_per_thread(DotOperand(0, AMPERE, 2), (32, 32)) == (2, 8)
    assert total_elems_per_thread(FIRST, (64, 64)) == 32
    assert total_elems_per_thread(Slice(1, FIRST), (64,)) == 4
    assert contig_per_thread(FIRST, (64, 64)) == (1, 4)
    assert contig_per_thread(Blocked((2, 4), (4, 8), (4, 1), (1, 0)), (64, 4)) == (2, 4)
    assert contig_per_thread(DotOperand(1, AMPERE, 4), (32, 32)) == (4, 1)


def test_the_machine_that_holds_a_tensor() -> None:
    for encoding in (FIRST, AMPERE, Slice(0, FIRST), DotOperand(0, AMPERE, 2), Linear(to_linear(FIRST, (16, 32)))):
        assert machine_of(encoding) == (4, 32, 1)
    assert machine_of(HOPPER) == (8, 32, 1)


def test_what_an_encoding_is_made_from() -> None:
    tile = Blocked((1, 1, 1), (1, 1, 32), (1, 1, 4), (0, 2, 1))
    twice = Slice(0, Slice(1, tile))
    assert (twice.root, twice.root_dim(0), Slice(2, tile).root_dim(1)) == (tile, 2, 1)
    other = Blocked((2, 1, 1), (1, 1, 32), (1, 1, 4), (0, 2, 1))
    assert twice.with_root(other) == Slice(0, Slice(1, other))
    assert DotOperand(1, AMPERE, 2).with_root(FIRST.with_root(AMPERE)) == DotOperand(1, AMPERE, 2)
    assert (twice.before_slice(0), twice.before_slice(1), tile.before_slice(0)) == (Slice(1, tile), None, None)
    assert [e.operand_index for e in (DotOperand(1, AMPERE, 2), DotOperand(0, FIRST), AMPERE)] == [1, 0, None]


def test_blocks_of_a_cluster() -> None:
    four = Blocked((1, 1), (1, 32), (4, 1), (1, 0), ((0, 1), (0, 0)))
    assert machine_of(four) == (4, 32, 4)
    assert shape_per_cta(four, (64, 64)) == (64, 32)
    assert shape_per_cta(four, (3, 64, 1)) == (3, 64, 1)
    assert Slice(0, four).cga_bases == ((1,), (0,))
    assert DotOperand(0, four).cga_bases == ((0, 0), (0, 0))
    assert Linear(to_linear(four, (64, 64))).cga_bases == ((0, 1), (0, 0))
    assert shape_per_cta(FIRST, (64, 64)) == (64, 64)


def test_expensive_views() -> None:
    flat = Blocked((4,), (32,), (4,), (0,))
    assert not is_expensive_view((16, 32), FIRST, (512,), flat)
    assert is_expensive_view((16, 32), FIRST, (512,), Blocked((1,), (32,), (2,), (0,)))
    assert is_expensive_view((16, 16), FIRST, (256,), Blocked((4,), (32,), (4,), (0,)))
