"""Neighbouring programs that share tiles (clusters of two, multicast), in the checking emulator: values, and planted mistakes."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.targets.gpu_descriptors import Block, compiled, drawn, launched
from tests.transforms.warp_specialized_kernels import block, ttgir
from tilework import knobs
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.oracles.emulator.check import CheckFailed

TILE = (64, 128, 16)  # 128 columns are two boxes


@tw.jit
def product(a, b, c, M, N, K, STEEP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The tiles of a column follow each other; where it is `STEEP`, tiles have fewer steps the further down they are."""
    pid, rows = tl.program_id(0), tl.cdiv(M, BM)
    if STEEP == 2:
        pid = tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x; // $1", "=r,r", [pid], tl.int32, True, 1)
    row, column = pid % rows * BM, pid // rows * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK) - pid % rows * STEEP, warp_specialize=True, num_stages=2):
        acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, column]), acc)
    c.store([row, column], acc.to(c.dtype))


def given(m: int, n: int, k: int) -> tuple[dict[str, Any], Any]:
    """Arguments, and the array of the result."""
    (bm, bn, bk), c = TILE, np.zeros((m, n), np.float16)
    arrays = zip(
        "abc", (drawn((m, k), np.float16), drawn((k, n), np.float16), c), ((bm, bk), (bk, bn), (bm, bn)), strict=True
    )
    return {name: Block(array, shape) for name, array, shape in arrays} | {"M": m, "N": n, "K": k}, c


@cache
def text_of(steep: int) -> str:
    args, _ = given(*TILE)
    types = {name: value.type if isinstance(value, Block) else "i32" for name, value in args.items()}
    with knobs.nvidia.scope():
        knobs.nvidia.cluster = True
        return compiled(
            product, types, dict(zip(("STEEP", "BM", "BN", "BK"), (steep, *TILE), strict=True)), aligned="MNK"
        )


@pytest.mark.parametrize(
    ("m", "n", "k", "steep"),
    [(192, 256, 48, 0), (192, 128, 16, 0), (128, 128, 48, 1)],
    ids=["two of three pairs share", "an odd grid and fewer steps than stages", "other numbers of steps"],
)
def test_values(m: int, n: int, k: int, steep: int) -> None:
    args, c = given(m, n, k)
    launched(text_of(steep), "product", args, -(-m // 64) * -(-n // 128))
    wanted = args["a"].array.astype(np.float32) @ args["b"].array.astype(np.float32)
    if steep:
        wanted[64:] = args["a"].array[64:, :32].astype(np.float32) @ args["b"].array[:32].astype(np.float32)
    np.testing.assert_array_equal(c, wanted)


def test_the_text_is_read_again() -> None:
    types = {"a": block((64, 16)), "b": block((16, 128)), "c": block((64, 128)), **dict.fromkeys("MNK", "i32")}
    with knobs.nvidia.scope():
        knobs.nvidia.cluster = True
        text, asked = (
            print_module(ttgir(product, types, {"STEEP": steep, "BM": 64, "BN": 128, "BK": 16}, 4, "asked"))
            for steep in (0, 2)
        )
    assert "tilework.pairs" not in asked  # assembly may give other numbers in another program
    assert "module attributes {tilework.pairs," in text and "ttng.cluster_size : i32" in text
    assert text.count("{multicast}") == 3 and print_module(parse_module(text)) == text


MISTAKES = {
    "copied to one block only": (r"(multicast::cluster \[.*), 3;", r"\1, 1;", "all threads wait|race|wait"),
    "given back in one block only": (
        r"(mapa.shared::cluster.u32 there, %r\d+), %r\d+",
        r"\1, 0",
        "used before its wait",
    ),
    "barriers that may not be there yet": (r"barrier.cluster.\S+;", "", "no initialised mbarrier|race|uninitialised"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    old, new, words = MISTAKES[mistake]
    wrong, count = re.subn(old, new, text_of(0))
    assert count
    with pytest.raises(CheckFailed, match=words):
        launched(wrong, "product", given(128, 128, 48)[0], 2)
