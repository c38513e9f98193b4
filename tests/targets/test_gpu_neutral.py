"""The neutral GPU rules on another GPU: a toy with 64 lanes, whose threads run on the host (`gpu_toy.py`)."""

import numpy as np
import pytest
from xdsl.ir import Operation

from tests.targets.gpu_tiles import Tile, blocked, layout
from tests.targets.gpu_toy import LANES, run_toy, toy_text
from tilework.errors import PassError
from tilework.ir import tt
from tilework.targets.llvm.rules import Rules

LINE = Tile((512,), blocked([2], [LANES], [2], [0]))
REGION = """({{
  ^bb0(%a: i32, %b: i32):
    %r = arith.{op} %a, %b : i32
    tt.{kind}.return %r : i32
  }})"""
rng = np.random.default_rng(5)


def numbers(shape: tuple[int, ...], most: int = 1000) -> np.ndarray:
    return rng.integers(0, most, shape).astype(np.int32)


def test_elementwise() -> None:
    x = rng.standard_normal(512).astype(np.float32)
    t = LINE.type("f32")
    (y,) = run_toy(f"%e = math.exp %x : {t}\n%y = arith.divf %e, %x : {t}", [("x", LINE, x)], [("y", LINE, x.dtype)])
    np.testing.assert_allclose(y, np.exp(x) / x, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_all_lanes(axis: int) -> None:
    tile = Tile((32, 64), layout(np.random.default_rng(axis), (32, 64), 2, LANES))
    x = numbers(tile.shape)
    region = REGION.format(op="addi", kind="reduce")
    body = (
        f'%y = "tt.reduce"(%x) <{{axis = {axis} : i32}}> {region} : ({tile.type("i32")}) '
        f"-> {tile.without(axis).type('i32')}"
    )
    (y,) = run_toy(body, [("x", tile, x)], [("y", tile.without(axis), x.dtype)])
    np.testing.assert_array_equal(y, x.sum(axis))


def test_a_scan_of_all_lanes_and_warps() -> None:
    x = numbers(LINE.shape)
    region = REGION.format(op="addi", kind="scan")
    t = LINE.type("i32")
    body = f'%y = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> {region} : ({t}) -> {t}'
    (y,) = run_toy(body, [("x", LINE, x)], [("y", LINE, x.dtype)])
    np.testing.assert_array_equal(y, np.cumsum(x))


def generated(seed: int) -> tuple[Tile, Tile]:
    draw = np.random.default_rng(seed)
    source, result = (Tile((32, 32), layout(draw, (32, 32), 2, LANES)) for _ in range(2))
    return source, result


TRANSPOSED = tuple(Tile((8, 8), blocked([1, 1], [8, 8], [1, 2], order)) for order in ([1, 0], [0, 1]))


@pytest.mark.parametrize(
    ("source", "result"), [generated(0), generated(1), TRANSPOSED], ids=["memory", "memory2", "shuffles"]
)
def test_layout_conversions(source: Tile, result: Tile) -> None:
    x = numbers(source.shape)
    body = f"%y = ttg.convert_layout %x : {source.type('i32')} -> {result.type('i32')}"
    (y,) = run_toy(body, [("x", source, x)], [("y", result, x.dtype)])
    np.testing.assert_array_equal(y, x)


def test_a_gather_and_a_histogram() -> None:
    x, i = numbers(LINE.shape, 64), numbers(LINE.shape, 512)
    bins = Tile((64,), blocked([1], [LANES], [2], [0]))
    t = LINE.type("i32")
    body = f"""%g = tt.gather %x[%i] {{axis = 0 : i32}} : ({t}, {t}) -> {t}
    %h = tt.histogram %x : {t} -> {bins.type("i32")}"""
    g, h = run_toy(body, [("x", LINE, x), ("i", LINE, i)], [("g", LINE, x.dtype), ("h", bins, x.dtype)])
    np.testing.assert_array_equal(g, x[i])
    np.testing.assert_array_equal(h, np.bincount(x, minlength=64))


def test_atomics_and_a_while_loop() -> None:
    """A scalar atomic is done once for all threads; the loop runs until all have seen its old value grow."""
    counter = np.zeros((), np.int32)
    body = """%one = arith.constant 1 : i32
    %all = arith.constant true
    %few = arith.constant 5 : i32
    %y = scf.while (%old = %zero) : (i32) -> i32 {
      %more = arith.cmpi slt, %old, %few : i32
      scf.condition(%more) %old : i32
    } do {
    ^bb0(%old: i32):
      %was = tt.atomic_rmw add, acq_rel, gpu, %c_base, %one, %all : (!tt.ptr<i32>, i32, i1) -> i32
      scf.yield %was : i32
    }"""
    (y,) = run_toy(body, [("c", Tile(()), counter)], [("y", Tile(()), np.int32)])
    assert (int(y), int(counter)) == (5, 6)


def test_a_vendor_says_what_it_replaces() -> None:
    behind = Rules()
    behind.lowers(tt.DotOp)(lambda low, op: "neutral")
    silent, loud = Rules(behind), Rules(behind)

    def mine(low: object, op: Operation) -> str:
        return "mine"

    silent.lowers(tt.DotOp)(mine)
    loud.lowers(tt.DotOp, overrides=True)(mine)
    assert loud.resolved.whole[tt.DotOp] is mine
    with pytest.raises(AssertionError, match=r"tt\.dot"):
        _ = silent.resolved
    with pytest.raises(AssertionError, match="has a rule already"):
        loud.lowers(tt.DotOp, overrides=True)(mine)
    behind.lowers(tt.SplatOp)(mine)  # of a file that is loaded later
    assert loud.resolved.whole[tt.SplatOp] is mine


BARE = """module attributes {{"ttg.num-ctas" = {blocks} : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90",
                    "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel({parameter}) {{
    tt.return
  }} loc("user.py":7:1)
}}
"""
DESCRIPTOR = "%d: !tt.tensordesc<tensor<16x16xf32>>"


@pytest.mark.parametrize(
    ("blocks", "parameter", "what"),
    [(2, "", "a cluster of 2 blocks"), (1, DESCRIPTOR, "a tensor descriptor as argument")],
)
def test_what_a_gpu_does_not_have_is_refused_at_the_line(blocks: int, parameter: str, what: str) -> None:
    with pytest.raises(PassError, match=rf"{what} cannot be compiled for toy") as caught:
        toy_text(BARE.format(blocks=blocks, parameter=parameter))
    assert '"user.py":7:1' in str(caught.value)
