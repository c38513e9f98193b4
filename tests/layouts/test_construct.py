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
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.errors import LayoutError
from tilework.layouts.queries import (
    cga_bases,
    contig_per_thread,
    cta_order,
    cta_split_num,
    ctas_per_cga,
    elems_per_thread,
    is_expensive_view,
    num_ctas,
    num_threads_per_warp,
    num_warps,
    order,
    order_for_memory,
    shape_per_cta,
    thread_order,
    threads_per_warp,
    total_elems_per_thread,
    warp_order,
    warps_per_cta,
)
from tilework.layouts.to_linear import to_linear

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
        (FIRST, (1, 0), (1, 0), (1, 0)),
        (Blocked((1, 1), (32, 1), (4, 1), (0, 1)), (0, 1), (0, 1), (0, 1)),
        (AMPERE, (1, 0), (1, 0), (1, 0)),
        (HOPPER, (1, 0), (1, 0), (0, 1)),
        (DotOperand(0, AMPERE, 2), (1, 0), (1, 0), (1, 0)),
        (DotOperand(1, AMPERE, 2), (0, 1), (0, 1), (1, 0)),
        (Slice(0, Blocked((1, 1, 1), (1, 1, 32), (1, 1, 4), (0, 2, 1))), (1, 0), (1, 0), (1, 0)),
        (Linear(to_linear(DotOperand(1, AMPERE, 2), (64, 64))), (0, 1), (0, 1), (1, 0)),
    ],
)
def test_declared_orders(encoding: Distributed, registers: Shape, lanes: Shape, warps: Shape) -> None:
    assert (order(encoding), thread_order(encoding), warp_order(encoding)) == (registers, lanes, warps)


def test_orders_of_a_shape() -> None:
    assert order(DotOperand(1, AMPERE, 2), (64, 64)) == (0, 1)
    assert warp_order(HOPPER, (128, 64)) == (0, 1)
    column = Blocked((1, 1), (32, 1), (4, 1), (0, 1))
    assert order(column, (128, 64)) == (1, 0)
    assert thread_order(column, (128, 64)) == (0, 1)
    assert order_for_memory(column, (128, 64)) == (0, 1)
    assert order_for_memory(FIRST, (64, 64)) == (1, 0)


def test_orders_of_shared_memory() -> None:
    assert order(SwizzledShared(1, 1, 1, (0, 1))) == (0, 1)
    assert order(NvmmaShared(128, True, 16)) == (0, 1)
    assert order(NvmmaShared(128, False, 16, rank=3)) == (2, 1, 0)
    assert order(SharedLinear(to_linear(SwizzledShared(1, 1, 1, (0, 1)), (4, 8)))) == (0, 1)


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


def test_grids_of_lanes_and_warps() -> None:
    assert threads_per_warp(AMPERE) == (8, 4)
    assert threads_per_warp(Slice(0, FIRST)) == (8,)
    assert threads_per_warp(FIRST, (16, 16)) == (4, 8)
    assert threads_per_warp(Linear(to_linear(FIRST, (16, 32)))) == (4, 8)
    assert warps_per_cta(HOPPER) == (4, 2)
    assert warps_per_cta(Slice(0, AMPERE)) == (2,)
    assert warps_per_cta(DotOperand(0, AMPERE, 2)) == (2, 1)
    assert warps_per_cta(Linear(to_linear(HOPPER, (64, 64)))) == (4, 2)
    for encoding in (FIRST, AMPERE, Slice(0, FIRST), DotOperand(0, AMPERE, 2), Linear(to_linear(FIRST, (16, 32)))):
        assert (num_warps(encoding), num_threads_per_warp(encoding)) == (4, 32)
    with pytest.raises(LayoutError, match="only for a given shape"):
        threads_per_warp(DotOperand(0, AMPERE, 2))


def test_blocks_of_a_cluster() -> None:
    four = Blocked((1, 1), (1, 32), (4, 1), (1, 0), ((0, 1), (0, 0)))
    assert (cta_split_num(four), ctas_per_cga(four), cta_order(four), num_ctas(four)) == ((1, 2), (1, 4), (1, 0), 4)
    assert shape_per_cta(four, (64, 64)) == (64, 32)
    assert shape_per_cta(four, (3, 64, 1)) == (3, 64, 1)
    assert cga_bases(Slice(0, four)) == ((1,), (0,))
    assert cga_bases(DotOperand(0, four)) == ((0, 0), (0, 0))
    assert cga_bases(Linear(to_linear(four, (64, 64)))) == ((0, 1), (0, 0))
    assert shape_per_cta(FIRST, (64, 64)) == (64, 64)


def test_expensive_views() -> None:
    flat = Blocked((4,), (32,), (4,), (0,))
    assert not is_expensive_view((16, 32), FIRST, (512,), flat)
    assert is_expensive_view((16, 32), FIRST, (512,), Blocked((1,), (32,), (2,), (0,)))
    assert is_expensive_view((16, 16), FIRST, (256,), Blocked((4,), (32,), (4,), (0,)))
