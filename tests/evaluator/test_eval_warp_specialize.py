"""Regions of one program that run at the same time: Triton's own code, right and with one thing wrong."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluator.test_eval_gpu import fails, run
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate

REFERENCE = Path(__file__).parent.parent / "ir" / "reference" / "warp_specialize"
Array = np.ndarray[Any, Any]


def read(name: str) -> str:
    return (REFERENCE / f"{name}.ttgir").read_text()


def matmul(text: str, grid: tuple[int, ...], size: tuple[int, int, int] = (200, 136, 264)) -> None:
    """Run it on arrays that are no multiples of a tile, and compare."""
    m, n, k = size
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float16)
    evaluate(parse_module(text), None, [a, b, c, m, n, k], grid, fences=True)
    assert np.allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, atol=2e-2, rtol=1e-3)


def test_a_producer_and_two_consumers() -> None:
    matmul(read("matmul_ws_device"), (2, 2))


def test_the_ring_goes_on_across_tiles() -> None:
    text = read("matmul_ws_persistent_device")
    assert text.count(" 132 : i32") == 3
    matmul(text.replace(" 132 : i32", " 2 : i32"), (2,), (300, 200, 136))


def test_attention() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (200, 384, 384))
    out, scale = np.zeros_like(q), 0.18
    evaluate(parse_module(read("attention_ws_device")), None, [q, k, v, out, 200, 384, scale], (2,), fences=True)
    scores = q.astype(np.float32) @ k.astype(np.float32).T * scale
    p = np.exp2(scores - scores.max(1, keepdims=True))
    assert np.allclose(out, p @ v.astype(np.float32) / p.sum(1, keepdims=True), atol=1e-3)


CONSUMER_WAIT = r"( +ttng\.wait_barrier %\w+, %\w+ \{async_task_id = array<i32: 1>\}.*\n)"
RELEASE = r"( +ttng\.arrive_barrier %\w+, 128 \{async_task_id = array<i32: 1>\}.*\n)"
MISTAKES = {
    "no wait": (CONSUMER_WAIT, "", "has not finished writing: a wait is missing"),
    "wrong phase": (
        r"%52 = arith\.extsi %x_24 .*",
        "%52 = arith.constant 1 : i32",
        "waits for ever: the default region",
    ),
    "only one consumer waits": (
        r" +ttng\.wait_barrier %55, .*\n",
        "",
        "that a copy wrote, and no wait for an mbarrier orders",
    ),
    "no wait for one consumer": (
        r" +ttng\.wait_barrier %52, .*\n",
        "",
        "waits for ever: the default region",
    ),
    "no release": (RELEASE, "", "waits for ever: the default region waits in ttng.wait_barrier"),
    "a producer that does not wait": (
        r"arith\.xori %x_14, %true",
        "arith.ori %x_14, %true",
        "has not finished writing",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    pattern, new, words = MISTAKES[mistake]
    wrong, count = re.subn(pattern, new, read("matmul_ws_device"), count=1)
    assert count == 1
    with pytest.raises(EvaluationError, match=words) as caught:
        matmul(wrong, (1, 1), (128, 128, 320))
    if mistake == "no release":
        for region in ("default region waits", "partition0 waits", "partition1 waits", "0 of 128 arrivals came"):
            assert region in str(caught.value), region


BAR = "!ttg.memdesc<1xi64, #one, #smem, mutable>"
M = "!ttg.memdesc<16x64xf16, #s, #smem, mutable>"
T = "tensor<16x64xf16, #b>"
EXCHANGE = f"""
 %z = arith.constant 0 : i32
 %full = ttg.local_alloc : () -> {BAR}
 ttng.init_barrier %full, 1 : {BAR}
 %m = ttg.local_alloc : () -> {M}
 %r = ttg.warp_specialize(%full, %m, %x)
 default {{
  ttng.wait_barrier %full, %z : {BAR}
  %v = ttg.local_load %m : {M} -> {T}
  ttg.warp_yield %v : {T}
 }}
 partition0(%f: {BAR}, %n: {M}, %y: {T}) num_warps(4) {{
  %w = arith.addf %y, %y : {T}
  ttg.local_store %w, %n : {T} -> {M}
  ttng.arrive_barrier %f, 1 : {BAR}
  ttg.warp_return
 }} : ({BAR}, {M}, {T}) -> {T}
 tt.return %r : {T}"""
X = np.arange(1024, dtype=np.float16).reshape(16, 64)


def test_captures_come_in_and_what_is_yielded_goes_out() -> None:
    """Barriers count within a region: what the partition wrote is no business of the default region's barriers."""
    (out,) = run(f"%x: {T}", T, EXCHANGE, X, barriers=True)
    assert (out == X + X).all()


def test_all_waiting_is_an_error_that_names_each_barrier() -> None:
    words = fails(f"%x: {T}", T, EXCHANGE.replace("%full, 1", "%full, 2"), X)
    assert "waits for ever: the default region waits in ttng.wait_barrier" in words
    assert "for %full, phase 0 of the barrier, of parity 0, is not over; 1 of 2 arrivals came" in words
