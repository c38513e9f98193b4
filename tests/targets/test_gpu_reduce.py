"""Reductions, scans, gathers, histograms and maps in generated layouts, run in the emulator and compared with NumPy
exactly.

A random layout gives any bit of a coordinate to a register, a lane or a warp, in any order, with copies at every level.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.pipeline.gpu import Config
from tests.targets.gpu_run import check
from tests.targets.gpu_text import kernel_ptx, launch
from tests.targets.gpu_tiles import Array, Tile, blocked, compiled, element, layout, module_text, run
from tilework.errors import PassError
from tilework.oracles.emulator.device import Device
from tilework.targets.gpu import reduce_rules
from tilework.targets.nvidia import ptx_text

DRAWS = range(5)
ARCHS = [80, 90]


def region(kinds: list[str], body: str, end: str) -> str:
    """A combine function of %a0, %a1 ... and %b0, %b1 ..., whose `body` ends in the values that it returns."""
    args = ", ".join(f"%{side}{number}: {kind}" for side in "ab" for number, kind in enumerate(kinds))
    *lines, returned = body.strip().splitlines()
    return "({\n^bb0(" + args + "):\n" + "\n".join(lines) + f"\n{end} {returned} : {', '.join(kinds)}\n}})"


def combine(op: str, kind: str) -> str:
    return f"%r = {op} %a0, %b0 : {kind}\n%r"


LARGEST_WITH_INDEX = """
%more = arith.cmpi sgt, %a0, %b0 : i32
%same = arith.cmpi eq, %a0, %b0 : i32
%before = arith.cmpi slt, %a1, %b1 : i32
%left = arith.andi %same, %before : i1
%first = arith.ori %more, %left : i1
%value = arith.select %first, %a0, %b0 : i32
%index = arith.select %first, %a1, %b1 : i32
%value, %index"""
AFFINE = """
%p = arith.muli %a0, %b0 : i32
%m = arith.muli %a1, %b0 : i32
%q = arith.addi %m, %b1 : i32
%p, %q"""
SUM_AND_LARGEST = """
%s = arith.addi %a0, %b0 : i64
%l = arith.maxsi %a1, %b1 : i8
%s, %l"""


def generated(rng: np.random.Generator, largest: tuple[int, int, int] = (9, 6, 4)) -> tuple[tuple[int, ...], int, int]:
    """A shape, an axis, and a number of warps."""
    rank = int(rng.integers(1, 4))
    shape = tuple(int(2 ** rng.integers(0, largest[rank - 1])) for _ in range(rank))
    return shape, int(rng.integers(rank)), int(2 ** rng.integers(0, 4))


def reduce(
    tile: Tile, axis: int, sources: list[Array], body: str, warps: int, arch: int = 80
) -> tuple[list[Array], list[Array]]:
    """The results, and each of them broadcast over the tile again, which stores every thread's copy."""
    kinds = [element(source.dtype) for source in sources]
    left = tile.without(axis) if len(tile.shape) > 1 else Tile(())
    names = [f"x{number}" for number in range(len(sources))]
    text = [
        f"{', '.join(f'%y{number}' for number in range(len(sources)))} = "
        f'"tt.reduce"({", ".join("%" + name for name in names)}) <{{axis = {axis} : i32}}> '
        f"{region(kinds, body, 'tt.reduce.return')} : ({', '.join(map(tile.type, kinds))}) "
        f"-> ({', '.join(map(left.type, kinds))})"
    ]
    for number, kind in enumerate(kinds):
        one = tile.with_one(axis).type(kind)
        if left.shape:
            text.append(f"%e{number} = tt.expand_dims %y{number} {{axis = {axis} : i32}} : {left.type(kind)} -> {one}")
            text.append(f"%z{number} = tt.broadcast %e{number} : {one} -> {tile.type(kind)}")
        else:
            text.append(f"%z{number} = tt.splat %y{number} : {kind} -> {tile.type(kind)}")
    outputs = [(f"y{number}", left, source.dtype) for number, source in enumerate(sources)]
    outputs += [(f"z{number}", tile, source.dtype) for number, source in enumerate(sources)]
    inputs = [(name, tile, source) for name, source in zip(names, sources, strict=True)]
    found = run("\n".join(text), inputs, outputs, warps, arch)
    return found[: len(sources)], found[len(sources) :]


def check_reduce(
    tile: Tile, axis: int, sources: list[Array], body: str, wanted: list[Array], warps: int, arch: int = 80
) -> None:
    results, spread = reduce(tile, axis, sources, body, warps, arch)
    for result, copies, array in zip(results, spread, wanted, strict=True):
        np.testing.assert_array_equal(result, array)
        np.testing.assert_array_equal(copies, np.broadcast_to(np.expand_dims(array, axis), tile.shape))


@pytest.mark.parametrize("seed", DRAWS)
def test_sum_in_generated_layouts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, axis, warps = generated(rng)
    tile = Tile(shape, layout(rng, shape, warps))
    x = rng.integers(-1000, 1000, shape).astype(np.int32)
    check_reduce(tile, axis, [x], combine("arith.addi", "i32"), [x.sum(axis, dtype=np.int32)], warps, ARCHS[seed % 2])


@pytest.mark.parametrize("seed", DRAWS)
def test_argmax_in_generated_layouts(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    shape, axis, warps = generated(rng)
    tile = Tile(shape, layout(rng, shape, warps))
    x = rng.integers(-5, 5, shape).astype(np.int32)
    positions = np.broadcast_to(
        np.expand_dims(np.arange(shape[axis]), [d for d in range(len(shape)) if d != axis]), shape
    )
    check_reduce(
        tile,
        axis,
        [x, positions.astype(np.int32)],
        LARGEST_WITH_INDEX,
        [x.max(axis), x.argmax(axis).astype(np.int32)],
        warps,
    )


@pytest.mark.parametrize("rows", [1, 4])
def test_far_lanes_and_warps_are_added_first_as_in_triton(rows: int) -> None:
    """Real programs repeat Triton's order with other shapes, and compare bits."""
    x = np.random.default_rng(3).standard_normal((rows, 256)).astype(np.float32)
    tile = Tile((rows, 256), blocked([1, 1], [1, 32], [1, 8], [1, 0]))
    left = x.reshape(rows, 8, 32)
    while left.shape[2] > 1:
        left = left[:, :, : left.shape[2] // 2] + left[:, :, left.shape[2] // 2 :]
    while left.shape[1] > 1:
        left = left[:, : left.shape[1] // 2] + left[:, left.shape[1] // 2 :]
    check_reduce(tile, 1, [x], combine("arith.addf", "f32"), [left[:, 0, 0]], 8)


def test_maxima_of_scores_are_those_of_floats() -> None:
    """Results of tensor cores are compared three at a time as integers; rows without a non-negative value are a
    separate case."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((64, 128)).astype(np.float32)
    x[16:32] = -np.abs(x[16:32])
    x[0, 5], x[1, 7], x[2], x[3], x[4], x[5] = np.inf, np.nan, np.nan, -np.inf, -0.0, -np.nan
    x[5, 1], x[6, 3] = -3, -np.nan
    tile = Tile(
        (64, 128),
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>",
    )
    wanted = np.fmax.reduce(x, 1)
    check_reduce(tile, 1, [x], combine("arith.maxnumf", "f32"), [wanted], 4, 90)


KINDS: list[tuple[str, str, Callable[[Array, int], Array]]] = [
    ("float32", "arith.addf", lambda x, axis: x.sum(axis)),
    ("float32", "arith.maxnumf", lambda x, axis: x.max(axis)),
    ("float16", "arith.minnumf", lambda x, axis: x.min(axis)),
    ("float64", "arith.addf", lambda x, axis: x.sum(axis)),
    ("int64", "arith.addi", lambda x, axis: x.sum(axis)),
    ("int32", "arith.maxsi", lambda x, axis: x.max(axis)),
    ("int32", "arith.minui", lambda x, axis: x.view(np.uint32).min(axis).view(np.int32)),
    ("int16", "arith.minsi", lambda x, axis: x.min(axis)),
    ("int8", "arith.xori", lambda x, axis: np.bitwise_xor.reduce(x, axis)),
    ("int8", "arith.maxui", lambda x, axis: x.view(np.uint8).max(axis).view(np.int8)),
]


@pytest.mark.parametrize(("dtype", "op", "numpy"), KINDS, ids=[f"{dtype}-{op}" for dtype, op, _ in KINDS])
def test_reduce_types(dtype: str, op: str, numpy: Callable[[Array, int], Array]) -> None:
    """Whole numbers, so that the order of sums does not matter; both axes, whole warps and warps apart."""
    rng = np.random.default_rng(5)
    tile = Tile((8, 128), blocked((1, 2), (1, 32), (2, 2), (1, 0)))
    x = rng.integers(-100, 100, tile.shape).astype(dtype)
    for axis in (0, 1):
        check_reduce(tile, axis, [x], combine(op, element(dtype)), [numpy(x, axis)], 4)


def test_reduce_of_different_sizes() -> None:
    """The parts of the operands lie one behind the other in scratch memory, aligned."""
    rng = np.random.default_rng(6)
    tile = Tile((4, 64), blocked((1, 1), (1, 32), (1, 4), (1, 0)))
    wide, narrow = rng.integers(-(2**40), 2**40, tile.shape), rng.integers(-100, 100, tile.shape).astype(np.int8)
    swapped = "%l = arith.maxsi %a0, %b0 : i8\n%s = arith.addi %a1, %b1 : i64\n%l, %s"
    check_reduce(tile, 1, [wide, narrow], SUM_AND_LARGEST, [wide.sum(1), narrow.max(1)], 4)
    check_reduce(tile, 1, [narrow, wide], swapped, [narrow.max(1), wide.sum(1)], 4)


def affine_of(x: Array, y: Array, axis: int) -> list[Array]:
    """The composition of the functions ``t -> t * x + y`` along `axis`."""
    product, rest = np.ones_like(x.take(0, axis)), np.zeros_like(x.take(0, axis))
    with np.errstate(over="ignore"):
        for position in range(x.shape[axis]):
            factor = x.take(position, axis)
            product, rest = product * factor, rest * factor + y.take(position, axis)
    return [product, rest]


def odd_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (2 * rng.integers(-9, 9, shape) + 1).astype(np.int32)


@pytest.mark.parametrize(("size", "warps"), [(512, 8), (1024, 4), (4096, 1), (2048, 8)])
def test_reduce_keeps_the_order(size: int, warps: int) -> None:
    """An associative function that is not commutative, where registers, lanes and warps follow each other, and where
    they do not."""
    rng = np.random.default_rng(7)
    tile = Tile((size,), blocked((2,), (32,), (warps,), (0,)))
    x, y = (odd_numbers(rng, tile.shape) for _ in range(2))
    check_reduce(tile, 0, [x, y], AFFINE, affine_of(x, y, 0), warps)


@pytest.mark.parametrize("seed", range(8))
def test_reduce_keeps_the_order_in_generated_layouts(seed: int) -> None:
    rng = np.random.default_rng(300 + seed)
    shape, axis, warps = generated(rng)
    tile = Tile(shape, layout(rng, shape, warps))
    x, y = (odd_numbers(rng, shape) for _ in range(2))
    check_reduce(tile, axis, [x, y], AFFINE, affine_of(x, y, axis), warps, ARCHS[seed % 2])


def test_copies_agree_where_lanes_combine_differently() -> None:
    """`%a0` returns its first argument: with butterflies alone every lane would have another one."""
    tile = Tile((32, 4), blocked((1, 1), (32, 1), (1, 4), (0, 1)))
    x = np.arange(128, dtype=np.int32).reshape(32, 4)
    check_reduce(tile, 0, [x], "%a0", [x[0]], 4)


@pytest.mark.parametrize(
    ("last", "by", "count"), [("math.absf %s", 1, 2), ("arith.divf %s, %n", 0.25, 3), ("arith.mulf %s, %n", 4, 3)]
)
def test_lanes_agree_where_arguments_may_change_places(last: str, by: float, count: int) -> None:
    """No lane has to tell the others; but a product may be fused with the sum behind it, in one lane and not in
    another."""
    body = f"%n = arith.constant 4.0 : f32\n%s = arith.addf %a0, %b0 : f32\n%r = {last} : f32\n%r"
    tile = Tile((4, 8), blocked((1, 1), (4, 8), (1, 1), (0, 1)))
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    check_reduce(tile, 0, [x], body, [((x[0] + x[1]) * by + (x[2] + x[3]) * by) * by], 1)
    line = tile.without(0)
    summed = f'"tt.reduce"(%x) <{{axis = 0 : i32}}> {region(["f32"], body, "tt.reduce.return")}'
    text = f"%y = {summed} : ({tile.type('f32')}) -> {line.type('f32')}"
    ptx = compiled(module_text(text, [("x", tile, x)], [("y", line, np.float32)], 1, 80), 80)
    assert ptx.count("shfl") == count


@pytest.fixture
def lanes_always_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lane reads one partial result of the warps, even where it does not pay."""
    monkeypatch.setattr(reduce_rules, "SHUFFLE_CYCLES", -(10**9))


@pytest.mark.usefixtures("lanes_always_read")
@pytest.mark.parametrize("seed", range(10))
def test_lanes_that_read_partial_results(seed: int) -> None:
    """Sums, choices and a function that needs the order, of generated layouts, also with more warps than free lanes."""
    rng = np.random.default_rng(500 + seed)
    shape, axis, _ = generated(rng)
    warps = int(2 ** rng.integers(1, 6))
    tile, arch = Tile(shape, layout(rng, shape, warps)), ARCHS[seed % 2]
    x, y = (odd_numbers(rng, shape) for _ in range(2))
    index = np.indices(shape, np.int32)[axis]
    largest = [x.max(axis), x.argmax(axis).astype(np.int32)]
    check_reduce(tile, axis, [x], combine("arith.addi", "i32"), [x.sum(axis, dtype=np.int32)], warps, arch)
    check_reduce(tile, axis, [x], combine("arith.maxsi", "i32"), [x.max(axis)], warps, arch)
    check_reduce(tile, axis, [x, index], LARGEST_WITH_INDEX, largest, warps, arch)
    check_reduce(tile, axis, [x, y], AFFINE, affine_of(x, y, axis), warps, arch)


@pytest.mark.usefixtures("lanes_always_read")
@pytest.mark.parametrize(("dtype", "op", "numpy"), KINDS, ids=[f"{dtype}-{op}" for dtype, op, _ in KINDS])
def test_lanes_that_read_partial_results_of_any_type(dtype: str, op: str, numpy: Callable[[Array, int], Array]) -> None:
    rng = np.random.default_rng(8)
    tile = Tile((16, 128), blocked((4, 2), (2, 16), (1, 8), (1, 0)))
    x = rng.integers(-100, 100, tile.shape).astype(dtype)
    check_reduce(tile, 1, [x], combine(op, element(dtype)), [numpy(x, 1)], 8)


@pytest.mark.usefixtures("lanes_always_read")
@pytest.mark.parametrize("rows", [1, 4])
def test_lanes_that_read_partial_results_keep_the_order_of_sums(rows: int) -> None:
    test_far_lanes_and_warps_are_added_first_as_in_triton(rows)


@pytest.mark.parametrize(("warps", "load", "shuffles"), [(4, "ld.shared.v4.b32", 5), (32, "ld.shared.b32", 10)])
def test_many_partial_results_are_read_by_lanes(warps: int, load: str, shuffles: int) -> None:
    size = 32 * warps
    tile = Tile((size,), blocked((1,), (32,), (warps,), (0,)))
    summed = f'"tt.reduce"(%x) <{{axis = 0 : i32}}> {region(["f32"], combine("arith.addf", "f32"), "tt.reduce.return")}'
    text = f"%y = {summed} : ({tile.type('f32')}) -> f32"
    x = np.zeros(size, np.float32)
    ptx = compiled(module_text(text, [("x", tile, x)], [("y", Tile(()), np.float32)], warps, 90), 90)
    assert (re.findall(r"ld\.shared\S*", ptx), ptx.count("shfl")) == ([load], shuffles)


def test_a_whole_warp_of_integers_is_one_instruction() -> None:
    tile = Tile((128,), blocked((1,), (32,), (4,), (0,)))
    body = (
        f'%y = "tt.reduce"(%x) <{{axis = 0 '
        f": i32}}> {region(['i32'], combine('arith.addi', 'i32'), 'tt.reduce.return')} "
    )
    text = module_text(
        f"{body} : ({tile.type('i32')}) -> i32",
        [("x", tile, np.zeros(128, np.int32))],
        [("y", Tile(()), np.int32)],
        4,
        80,
    )
    ptx = compiled(text, 80)
    assert ptx.count("redux.sync.add") == 1 and "shfl" not in ptx


def test_an_axis_of_several_blocks_is_refused() -> None:
    encoding = "#ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = [[32]]}>"
    tile = Tile((64,), encoding)
    for name, end in (("tt.reduce", "i32"), ("tt.scan", tile.type("i32"))):
        extra = ", reverse = false" if name == "tt.scan" else ""
        body = region(["i32"], combine("arith.addi", "i32"), f"{name}.return")
        stored = Tile(()) if name == "tt.reduce" else tile
        text = module_text(
            f'%y = "{name}"(%x) <{{axis = 0 : i32{extra}}}> {body} : ({tile.type("i32")}) -> {end}',
            [("x", tile, np.zeros(64, np.int32))], [("y", stored, np.int32)], 1, 90,
        )  # fmt: skip
        with pytest.raises(PassError, match="split between the blocks of a cluster cannot be compiled for cuda:90"):
            compiled(text.replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2'), 90)


# Scans


def scan(
    tile: Tile, axis: int, reverse: bool, sources: list[Array], body: str, warps: int, arch: int = 80
) -> list[Array]:
    kinds = [element(source.dtype) for source in sources]
    types = ", ".join(map(tile.type, kinds))
    results, operands = (", ".join(f"%{letter}{number}" for number in range(len(sources))) for letter in "yx")
    text = (
        f'{results} = "tt.scan"({operands}) <{{axis = {axis} : i32, reverse = {str(reverse).lower()}}}> '
        f"{region(kinds, body, 'tt.scan.return')} : ({types}) -> ({types})"
    )
    inputs = [(f"x{number}", tile, source) for number, source in enumerate(sources)]
    outputs = [(f"y{number}", tile, source.dtype) for number, source in enumerate(sources)]
    return run(text, inputs, outputs, warps, arch)


def test_what_stands_in_front_of_a_piece_is_combined_once() -> None:
    """Sixteen elements of a thread in four pieces, on lanes and eight warps: fronts of pieces are added, then one to
    each element."""
    tile = Tile((4096,), blocked((4,), (32,), (8,), (0,)))
    body = (
        f'%y = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> '
        f"{region(['f32'], combine('arith.addf', 'f32'), 'tt.scan.return')}"
    )
    text = f"{body} : ({tile.type('f32')}) -> {tile.type('f32')}"
    x = np.zeros(4096, np.float32)
    ptx = compiled(module_text(text, [("x", tile, x)], [("y", tile, np.float32)], 8, 80), 80)
    in_threads, in_warps, across_warps, fronts, elements = 12, 4 * 5, 4 * 7 - 1, 4 + 3 + 2, 16
    assert len(re.findall(r"add(?:\.rn)?\.f32", ptx)) == in_threads + in_warps + across_warps + fronts + elements


def plain_scan(
    sources: list[Array], axis: int, reverse: bool, function: Callable[..., tuple[Array, ...]]
) -> list[Array]:
    """One step after the other."""
    step = -1 if reverse else 1
    parts = [np.moveaxis(source, axis, 0)[::step].copy() for source in sources]
    with np.errstate(over="ignore"):
        for position in range(1, len(parts[0])):
            made = function(*(part[position - 1] for part in parts), *(part[position] for part in parts))
            for part, value in zip(parts, made, strict=True):
                part[position] = value
    return [np.moveaxis(part[::step], 0, axis) for part in parts]


def affine(a0: Array, a1: Array, b0: Array, b1: Array) -> tuple[Array, ...]:
    return a0 * b0, a1 * b0 + b1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("seed", DRAWS)
def test_scan_in_generated_layouts(seed: int, reverse: bool) -> None:
    """Not commutative, two values at once, in any order of registers, lanes and warps."""
    rng = np.random.default_rng(200 + seed)
    shape, axis, warps = generated(rng)
    tile = Tile(shape, layout(rng, shape, warps))
    sources = [rng.integers(-9, 9, shape).astype(np.int32) for _ in range(2)]
    found = scan(tile, axis, reverse, sources, AFFINE, warps, ARCHS[seed % 2])
    for result, wanted in zip(found, plain_scan(sources, axis, reverse, affine), strict=True):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dtype", "op"), [("float32", "add"), ("float16", "add"), ("int64", "mul"), ("int8", "add")])
def test_cumulative_sums_and_products(dtype: str, op: str, reverse: bool) -> None:
    """The layout goes over the axis twice."""
    rng = np.random.default_rng(9)
    tile = Tile((2, 256), blocked((1, 2), (1, 32), (1, 2), (1, 0)))
    x = rng.choice([-1, 1], tile.shape).astype(dtype)
    kind = element(dtype)
    (found,) = scan(tile, 1, reverse, [x], combine(f"arith.{op}{kind[0] if kind[0] == 'i' else 'f'}", kind), 2)
    numpy: Any = np.cumsum if op == "add" else np.cumprod
    wanted = numpy(x[:, ::-1], 1)[:, ::-1] if reverse else numpy(x, 1)
    np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_lanes_take_turns_where_warps_come_before_them() -> None:
    """Axis bits: warp, lane, register, lane, warp: each lane has totals of its own for the first warps."""
    tile = Tile(
        (32,), "#ttg.linear<{register = [[4]], lane = [[2], [8], [0], [0], [0]], warp = [[1], [16]], block = []}>"
    )
    rng = np.random.default_rng(10)
    sources = [rng.integers(-9, 9, 32).astype(np.int32) for _ in range(2)]
    for reverse in (False, True):
        found = scan(tile, 0, reverse, sources, AFFINE, 4)
        for result, wanted in zip(found, plain_scan(sources, 0, reverse, affine), strict=True):
            np.testing.assert_array_equal(result, wanted)


# Gathers and histograms


def check_gather(source: Tile, indices: Tile, axis: int, x: Array, index: Array, warps: int) -> None:
    types = (source.type(element(x.dtype)), indices.type(element(index.dtype)), indices.type(element(x.dtype)))
    text = f"%y = tt.gather %x[%i] {{axis = {axis} : i32}} : ({types[0]}, {types[1]}) -> {types[2]}"
    (found,) = run(text, [("x", source, x), ("i", indices, index)], [("y", indices, x.dtype)], warps)
    np.testing.assert_array_equal(found, np.take_along_axis(x, index.astype(np.int64), axis))


@pytest.mark.parametrize("seed", DRAWS)
def test_gather_in_generated_layouts(seed: int) -> None:
    rng = np.random.default_rng(300 + seed)
    shape, axis, warps = generated(rng)
    picked = tuple(int(2 ** rng.integers(0, 6)) if dim == axis else size for dim, size in enumerate(shape))
    source, indices = (Tile(sizes, layout(rng, sizes, warps)) for sizes in (shape, picked))
    x = rng.integers(-100, 100, shape).astype(rng.choice(["int8", "int16", "int32", "int64"]))
    index = rng.integers(0, min(127, shape[axis]), picked).astype(rng.choice(["int8", "int16", "int32", "int64"]))
    check_gather(source, indices, axis, x, index, warps)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_gather_within_warps(axis: int, dtype: str) -> None:
    """By shuffles, with the wanted register chosen by the index; the warps are across the axis."""
    rng = np.random.default_rng(11)
    lanes, warps = ((8, 4), (1, 4)) if axis == 0 else ((4, 8), (4, 1))
    encoding = blocked((1, 2), lanes, warps, (1, 0))
    source, indices = Tile((32, 32), encoding), Tile((16, 32) if axis == 0 else (32, 16), encoding)
    x = rng.integers(-100, 100, source.shape).astype(dtype)
    index = rng.integers(0, 32, indices.shape).astype(np.int32)
    check_gather(source, indices, axis, x, index, 4)


@pytest.mark.parametrize("seed", DRAWS)
def test_histogram_in_generated_layouts(seed: int) -> None:
    """With and without a mask; values outside are not counted, copies once."""
    rng = np.random.default_rng(400 + seed)
    count, bins, warps = (int(2 ** rng.integers(0, limit)) for limit in (10, 9, 4))
    tile, result = Tile((count,), layout(rng, (count,), warps)), Tile((bins,), layout(rng, (bins,), warps))
    values, mask = rng.integers(-3, bins + 3, count).astype(np.int32), rng.integers(0, 2, count).astype(np.int32)
    i32 = tile.type("i32")
    text = f"""
    %no = arith.constant dense<0> : {i32}
    %k = arith.cmpi ne, %m, %no : {i32}
    %h = tt.histogram %v, %k : {i32} -> {result.type("i32")}
    %g = tt.histogram %v : {i32} -> {result.type("i32")}"""
    masked, all_of_them = run(
        text, [("v", tile, values), ("m", tile, mask)], [("h", result, np.int32), ("g", result, np.int32)], warps
    )
    inside = (values >= 0) & (values < bins)
    np.testing.assert_array_equal(all_of_them, np.bincount(values[inside], minlength=bins))
    np.testing.assert_array_equal(masked, np.bincount(values[inside & (mask != 0)], minlength=bins))


# Maps

SWAP_IF_MORE = """^bb0(%a: i32, %b: i32):
%more = arith.cmpi sgt, %a, %b : i32
cf.cond_br %more, ^bb1, ^bb2(%a, %b : i32, i32)
^bb1:
cf.br ^bb2(%b, %a : i32, i32)
^bb2(%c: i32, %d: i32):
tt.map_elementwise.return %c, %d : i32, i32"""


NEIGHBOURS = pytest.mark.parametrize(
    "encoding",
    [blocked((2,), (32,), (4,), (0,)), blocked((1,), (32,), (4,), (0,)),
     "#ttg.linear<{register = [[0], [64]], lane = [[4], [2], [1], [8], [0]], warp = [[16], [32]], block = []}>"],
)  # fmt: skip


@NEIGHBOURS
def test_map_of_pairs_with_branches(encoding: str) -> None:
    """Neighbours are two registers of a thread, or two lanes of a warp."""
    tile = Tile((128,), encoding)
    x = np.random.default_rng(12).integers(-100, 100, 128).astype(np.int32)
    i32 = tile.type("i32")
    text = f'%y = "tt.map_elementwise"(%x) <{{pack = 2 : i32}}> ({{\n{SWAP_IF_MORE}\n}}) : ({i32}) -> {i32}'
    (found,) = run(text, [("x", tile, x)], [("y", tile, np.int32)], 4)
    np.testing.assert_array_equal(found, np.sort(x.reshape(-1, 2), axis=1).reshape(-1))


@NEIGHBOURS
def test_map_of_four_keeps_their_order(encoding: str) -> None:
    """Each of four neighbours in a thread and a lane, or in four lanes, becomes the next one."""
    tile = Tile((128,), encoding)
    x = np.random.default_rng(13).integers(-100, 100, 128).astype(np.int32)
    i32 = tile.type("i32")
    rotate = """^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
tt.map_elementwise.return %b, %c, %d, %a : i32, i32, i32, i32"""
    text = f'%y = "tt.map_elementwise"(%x) <{{pack = 4 : i32}}> ({{\n{rotate}\n}}) : ({i32}) -> {i32}'
    (found,) = run(text, [("x", tile, x)], [("y", tile, np.int32)], 4)
    np.testing.assert_array_equal(found, np.roll(x.reshape(-1, 4), -1, axis=1).reshape(-1))


def test_map_of_neighbours_in_two_warps_is_refused() -> None:
    tile = Tile((64,), "#ttg.linear<{register = [], lane = [[2], [4], [8], [16], [32]], warp = [[1]], block = []}>")
    i32 = tile.type("i32")
    text = f'%y = "tt.map_elementwise"(%x) <{{pack = 2 : i32}}> ({{\n{SWAP_IF_MORE}\n}}) : ({i32}) -> {i32}'
    with pytest.raises(PassError, match="pack=2"):
        run(text, [("x", tile, np.zeros(64, np.int32))], [("y", tile, np.int32)], 2)


@pytest.mark.parametrize(
    ("name", "arch", "warps"), [("softmax", 80, 8), ("split_tiles", 90, 4), ("streamed_sum", 80, 4)]
)
def test_samples(name: str, arch: int, warps: int) -> None:
    """The last one scans in a loop: the stores before a barrier must not be behind a branch."""
    assert check(Config(name, arch, warps)) is None


def test_reductions_in_turn_use_the_same_bytes() -> None:
    """As Triton's do: each waits for those that still read what the one before wrote."""
    tile = Tile((256,), blocked((1,), (32,), (8,), (0,)))
    x = np.random.default_rng(3).integers(-99, 99, 256).astype(np.int32)
    sums = ""
    for number in range(3):
        summed = (
            f'"tt.reduce"(%x{number}) <{{axis = 0 : i32}}> '
            f"{region(['i32'], combine('arith.addi', 'i32'), 'tt.reduce.return')}"
        )
        sums += (
            f"%s{number} = {summed} : ({tile.type('i32')}) -> i32\n"
            f"%t{number} = tt.splat %s{number} : i32 -> {tile.type('i32')}\n"
        )
        sums += f"%x{number + 1} = arith.subi %x{number}, %t{number} : {tile.type('i32')}\n"
    inputs, outputs = [("x0", tile, x)], [("x3", tile, np.int32)]
    assert compiled(module_text(sums, inputs, outputs, 8, 80), 80).count("bar.sync") == 5
    expected = x
    for _ in range(3):
        expected = expected - expected.sum(dtype=np.int32)
    np.testing.assert_array_equal(run(sums, inputs, outputs, 8)[0], expected)


@tilework.jit
def dot_products(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * N + at) * tl.load(y_ptr + row * N + at), 0))


@pytest.mark.parametrize(("size", "each"), [(32, 1), (64, 2), (128, 4), (256, 8), (512, 16), (2048, 64)])
def test_each_product_is_fused_with_an_addition_of_its_sum(size: int, each: int) -> None:
    """`each` products of a thread are in up to four sums, and every one but the first of a sum is fused."""
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32"}
    text = kernel_ptx(dot_products, types, {"N": size}, 90, 1)
    sums = max(1, min(4, each // 4))
    assert text.count("fma.rn.f32") == each - sums and text.count("mul.f32") + text.count("mul.rn.f32") == sums
    rng = np.random.default_rng(size)
    x, y = rng.standard_normal((2, 3, size), np.float32)
    out = np.zeros(3, np.float32)
    launch(text, "dot_products", [x, y, out], 1, 3)
    np.testing.assert_allclose(out, (x.astype(float) * y).sum(1), rtol=1e-5, atol=1e-4)


@tilework.jit
def column_sums(x_ptr, out_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
def test_two_lanes_of_a_column_exchange_their_totals_once(reverse: bool) -> None:
    """A lane has 32 of the tile's elements, all of different totals."""
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32"}
    text = kernel_ptx(column_sums, types, {"N": 64, "REVERSE": reverse}, 90, 4)
    assert text.count("shfl.sync") <= 32
    x = np.random.default_rng(3).integers(-50, 50, (64, 64)).astype(np.float32)
    out = np.zeros_like(x)
    launch(text, "column_sums", [x, out], 4)
    np.testing.assert_array_equal(out, x[::-1].cumsum(0)[::-1] if reverse else x.cumsum(0))


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "fp32"), ("float16", "fp16"), ("int64", "i64")])
def test_warps_exchange_totals_of_columns_without_bank_conflicts(dtype: str, kind: str) -> None:
    """A thread has many totals: those that move together are 16 bytes, next to those of other lanes."""
    text = kernel_ptx(column_sums, {"x_ptr": f"*{kind}", "out_ptr": f"*{kind}"}, {"N": 64, "REVERSE": False}, 90, 2)
    x = np.random.default_rng(4).integers(-9, 9, (64, 64)).astype(dtype)
    device = Device(check=True, counters=True)
    addresses = [device.upload(array) for array in (x, np.zeros_like(x))]
    function = device.load(text).function("column_sums")
    device.launch(function, (1,), 64, [*addresses, 0, 0], ptx_text.metadata(text)["shared"])
    device.synchronize()
    np.testing.assert_array_equal(device.download(addresses[1], x), x.cumsum(0).astype(dtype))
    assert device.counters is not None
    assert device.counters.total.conflicts == 0 < device.counters.total.wavefronts


@tilework.jit
def first_largest(a, i, b, j):
    is_first = (a > b) | ((a == b) & (i < j))
    return tl.where(is_first, a, b), tl.where(is_first, i, j)


@tilework.jit
def last_largest(a, i, b, j):
    is_second = (b > a) | ((a == b) & (j >= i))
    return tl.where(is_second, b, a), tl.where(is_second, j, i)


@tilework.jit
def furthest(a, i, b, j):
    return tl.where(i > j, a, b), tl.where(i > j, i, j)


@tilework.jit
def sum_of_positions(a, i, b, j):
    return tl.where(i <= j, a, b), i + j


@tilework.jit
def reduced(x_ptr, value_ptr, at_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, KIND: tl.constexpr,
            FUNCTION: tl.constexpr):  # fmt: skip
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    size: tl.constexpr = M if AXIS == 0 else N
    position = tl.expand_dims(tl.arange(0, size), 1 - AXIS)
    if KIND == "wide":
        position = position.to(tl.int64)
    elif KIND == "backward":
        position = size - 1 - position
    value, at = tl.reduce((x, tl.broadcast_to(position, (M, N))), AXIS, FUNCTION)
    rest: tl.constexpr = N if AXIS == 0 else M
    tl.store(value_ptr + tl.arange(0, rest), value)
    tl.store(at_ptr + tl.arange(0, rest), at.to(tl.int32))


@pytest.mark.parametrize("kind", ["plain", "wide", "backward"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "function", [first_largest, last_largest, furthest, sum_of_positions], ids=lambda one: one.__name__
)
def test_functions_of_values_and_positions(function: Any, axis: int, kind: str) -> None:
    """A thread knows the order of its own positions along the axis; what is not one is compared, or added, as it is."""
    constants = {"M": 32, "N": 64, "AXIS": axis, "KIND": kind, "FUNCTION": function}
    text = kernel_ptx(reduced, {"x_ptr": "*i32", "value_ptr": "*i32", "at_ptr": "*i32"}, constants, 90, 4)
    x = np.random.default_rng(axis).integers(-4, 4, (32, 64)).astype(np.int32)
    size, rest = x.shape[axis], x.shape[1 - axis]
    value, at = np.zeros((2, rest), np.int32)
    launch(text, "reduced", [x, value, at], 4)
    rows = np.moveaxis(x, axis, 1)
    order = np.arange(size)[:: -1 if kind == "backward" else 1]
    by_position = rows[:, order]
    last = size - 1 - by_position[:, ::-1].argmax(1)
    wanted: dict[Any, tuple[Array, Array]] = {
        first_largest: (rows.max(1), by_position.argmax(1)),
        last_largest: (rows.max(1), last),
        furthest: (by_position[:, -1], np.full(rest, size - 1)),
        sum_of_positions: (by_position[:, 0], np.full(rest, size * (size - 1) // 2)),
    }
    if function is not sum_of_positions:  # its value depends on sums of positions
        np.testing.assert_array_equal(value, wanted[function][0])
    np.testing.assert_array_equal(at, wanted[function][1])


@tilework.jit
def largest_at(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0), tl.argmax(tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N)), 0))


def test_positions_of_a_thread_are_not_compared() -> None:
    """Lanes and warps compare positions; a thread adds its first one to the position that it has chosen."""
    counts = {}
    for size in (512, 4096):  # 4 and 32 elements of a thread
        text = kernel_ptx(largest_at, {"x_ptr": "*fp32", "out_ptr": "*i32"}, {"N": size}, 90, 4)
        counts[size] = [len(re.findall(name, text)) for name in (r"setp\.\w+\.[su]32", r"\bor\.b32|add\.s32")]
    (compared, added), (compared_by_four, added_by_four) = counts[4096], counts[512]
    assert compared == compared_by_four and added == added_by_four
