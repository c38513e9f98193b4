"""Reductions, scans and dots in kernels that promise the same bits: one order on every device, with any number of
warps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.differential.everywhere import everywhere
from tilework import knobs
from tilework.inspect.replay import NATIVE, Launch, run_on
from tilework.oracles.interpreter import InterpretedFunction
from tilework.targets.cpu import machines
from tilework.targets.cpu.run.pool import POOL
from tilework.targets.cpu.target import HostTarget
from tilework.triton.interpreter import execute_with_tools

RNG = np.random.default_rng(5)


def wild(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Numbers of many magnitudes: their sum depends on the order."""
    return (RNG.standard_normal(shape) * 10.0 ** RNG.uniform(-3, 3, shape)).astype(dtype)


@tilework.jit
def weighted(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * 0.5 + c, b + d * 0.25  # neither commutative nor associative


@tilework.jit
def reductions(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    block = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M), tl.sum(block, axis=1))
    tl.store(out + M + tl.arange(0, N), tl.sum(block, axis=0))
    left, right = tl.reduce((block.reshape(M * N), block.reshape(M * N)), 0, weighted)
    tl.store(out + M + N, left + right + tl.sum(block))


def test_a_reduction_is_one_tree() -> None:
    x = wild(8, 32)
    found = everywhere(reductions, {"x": x, "out": np.zeros(41, np.float32)}, {"M": 8, "N": 32})["out"]
    tree = x
    while tree.shape[1] > 1:
        tree = tree[:, 0::2] + tree[:, 1::2]
    assert (found[:8] == tree[:, 0]).all()


@tilework.jit
def scans(x: Any, out: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    value = tl.load(x + at)
    up, down = (
        tl.associative_scan((value, value), 0, weighted),
        tl.associative_scan((value, value), 0, weighted, reverse=True),
    )
    tl.store(out + at, up[0] + up[1] + down[0] + down[1])


def test_a_scan_is_one_tree() -> None:
    for size in (64, 33):
        everywhere(scans, {"x": wild(size), "out": np.zeros(size, np.float32)}, {"N": size})


@tilework.jit
def product(a: Any, b: Any, c: Any, N: tl.constexpr, K: tl.constexpr) -> None:
    i, k = tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + i[None, :])
    at = c + i[:, None] * N + i[None, :]
    tl.store(at, tl.load(at) + tl.dot(left, right, tl.load(at)))


def test_a_dot_is_one_chain() -> None:
    for dtype, size, inner in ((np.float32, 16, 32), (np.float16, 32, 64)):  # in registers, and from shared memory
        a, b, c = wild(size, inner, dtype=dtype), wild(inner, size, dtype=dtype), wild(size, size)
        everywhere(product, {"a": a, "b": b, "c": c}, {"N": size, "K": inner})


@tilework.jit
def in_a_loop(a: Any, b: Any, c: Any, K: Any, N: tl.constexpr, BK: tl.constexpr) -> None:
    i, k = tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + i[:, None] * K + start + k[None, :])
        total = tl.dot(left, tl.load(b + i[None, :] * K + start + k[:, None]), total)
    tl.store(c + i[:, None] * N + i[None, :], total)


def test_a_dot_reads_buffers_that_are_filled_again() -> None:
    a, b, c = wild(32, 256), wild(32, 256), np.zeros((32, 32), np.float32)
    everywhere(in_a_loop, {"a": a, "b": b, "c": c, "K": 256}, {"N": 32, "BK": 64})


@tilework.jit
def meeting(x: Any, offsets: Any, out: Any, N: tl.constexpr) -> None:
    at = (tl.program_id(0) + 2 * tl.program_id(1)) * N + tl.arange(0, N)
    for _ in range(2):
        before = tl.atomic_add(out + tl.load(offsets + at), tl.load(x + at), ordered=True)
        tl.store(x + at, before)


def test_ordered_atomics_take_turns() -> None:
    x, offsets = wild(4, 16), RNG.integers(0, 3, (4, 16)).astype(np.int32)
    arguments = {"x": x, "offsets": offsets, "out": np.zeros(3, np.float32)}
    few_warps = ("interpreter", "evaluator", "cpu, 2 threads", "sm_80, 1 warp", "gfx942, 4 warps")
    found = everywhere(meeting, arguments, {"N": 16}, (2, 2), few_warps)["out"]
    wanted = np.zeros(3, np.float32)
    for row, targets in zip(x.copy(), offsets, strict=True):
        for _ in range(2):
            for element, target in enumerate(targets):
                row[element], wanted[target] = wanted[target], wanted[target] + row[element]
    assert (found == wanted).all()


@tilework.jit
def all_in_turn(x: Any, out: Any, old: Any) -> None:
    program = tl.program_id(0)
    value = tl.load(x + program)
    found = old + program * 6
    tl.store(found, tl.atomic_max(out, value, ordered=True))
    tl.store(found + 1, tl.atomic_min(out + 1, value, ordered=True))
    tl.store(found + 2, tl.atomic_and(out + 2, value, ordered=True))
    tl.store(found + 3, tl.atomic_or(out + 3, value, ordered=True))
    tl.store(found + 4, tl.atomic_xor(out + 4, value, ordered=True))
    tl.store(found + 5, tl.atomic_xchg(out + 5, value, ordered=True))


def test_turns_go_on_where_helpers_are_started_late() -> None:
    """The first programs of a first launch run before there are helpers."""
    x, offsets, sums = wild(64, 16), np.zeros((64, 16), np.int32), []
    for threads in (1, POOL.fields[1] + 2):
        out = np.zeros(1, np.float32)
        with knobs.runtime.scope():
            knobs.runtime.num_threads = threads
            run_on(NATIVE, Launch(meeting, (x.copy(), offsets, out, 16), (2, 32, 1), {"reproducible": True}))
        sums.append(out[0])
    assert sums[0] == sums[1]


def test_what_ordered_atomics_return() -> None:
    arrays = {"x": RNG.integers(0, 99, 8).astype(np.int32), "out": np.zeros(6, np.int32), "old": np.zeros(48, np.int32)}
    found = everywhere(all_in_turn, arrays, {}, (8,), ("interpreter", "evaluator", "cpu, 2 threads", "sm_80, 1 warp"))
    assert found["old"].reshape(8, 6)[:, 5].tolist() == [0, *arrays["x"][:-1].tolist()]


def test_turns_in_the_interpreter_of_tools_for_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InterpretedFunction, "execute", execute_with_tools)
    arguments = {"x": wild(4, 16), "offsets": np.zeros((4, 16), np.int32), "out": np.zeros(3, np.float32)}
    everywhere(meeting, arguments, {"N": 16}, (2, 2), ("interpreter", "evaluator"))


@tilework.jit
def racing(out: Any, KIND: tl.constexpr) -> None:
    if KIND == "add":
        tl.atomic_add(out, 1.0)
    elif KIND == "xchg":
        tl.atomic_xchg(out, 1.0)
    elif KIND == "cas":
        tl.atomic_cas(out, 0.0, 1.0)
    else:
        tl.atomic_max(out, 1.0)


def test_atomics_whose_order_matters_are_refused() -> None:
    out = np.zeros(1, np.float32)
    for kind in ("add", "xchg", "cas"):
        with pytest.raises(tilework.CompilationError, match=f"atomic_{kind} of fp32 in a reproducible kernel"):
            racing[(1,)](out, KIND=kind, reproducible=True)
    racing[(1,)](out, KIND="max", reproducible=True)
    assert out[0] == 1


def test_a_cpu_without_fused_multiply_adds_computes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = wild(16, 29), wild(29, 16), wild(16, 16)  # no other test has this size in the cache
    a[0], c[0] = (
        1 + 2.0**-12,
        -(2.0**-24),
    )  # sums that a double holds half way between two floats, but for what it misses
    b[:, 0] = 1 + 2.0**-12
    a[1, :3], c[1] = [np.inf, 1e38, 2.0**-140], 3e38
    machine = replace(HostTarget.detect(), has_fma=False)
    monkeypatch.setattr(HostTarget, "detect", staticmethod(lambda: machine))
    monkeypatch.setattr(machines, "named_machine", machines.named_machine.__wrapped__)  # without what it remembers
    with np.errstate(all="ignore"):
        everywhere(product, {"a": a, "b": b, "c": c}, {"N": 16, "K": 29}, setups=("interpreter", "cpu, 1 thread"))
