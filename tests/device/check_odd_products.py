"""Odd launches of products and histograms on a GPU: CUDA graphs, streams, grids and arrays beyond 31 bits, masks and
windows of atomics.

python -m tests.device.check_odd_products            (needs torch and a GPU with TMA; `tests/fuzz/run_matmuls.py` draws
                                                     odd kernels)
"""

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

import tilework
import tilework.language as tl
from benchmarks.gpu_kernels import matmul
from tilework.oracles.interpreter import InterpretedFunction

LARGE = {"BM": 128, "BN": 256, "BK": 64, "num_warps": 8, "num_stages": 3}


@tilework.jit
def wide(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Offsets of 64 bits."""
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    rows = rm.to(tl.int64)
    pa, pb = a + rows[:, None] * sa + rk[None, :], b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa + k * BK, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        y = tl.load(pb + k * BK * sb, mask=(rn[None, :] < N) & (rk[:, None] < K - k * BK), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * sc + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@tilework.jit
def histogram(
    x,
    counts,
    n,
    shift,
    BLOCK: tl.constexpr,
    KIND: tl.constexpr,
    MASK: tl.constexpr,
    SHAPE: tl.constexpr,
    SEM: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if SHAPE == 2:
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK // 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    mask = offsets < n
    at = tl.load(x + offsets, mask=mask, other=0)
    if MASK == 1:
        mask = mask & (at >= 0) & (at < 256)
    if MASK == 2:
        mask = mask & (at % 3 == 0)
    value = (at + 1).to(counts.dtype.element_ty)
    if KIND == "add":
        tl.atomic_add(counts + shift + at, 1, mask=mask, sem=SEM)
    elif KIND == "add value":
        tl.atomic_add(counts + shift + at, value, mask=mask, sem=SEM)
    elif KIND == "max":
        tl.atomic_max(counts + shift + at, value, mask=mask, sem=SEM)
    elif KIND == "min":
        tl.atomic_min(counts + shift + at, value, mask=mask, sem=SEM)
    elif KIND == "xor":
        tl.atomic_xor(counts + shift + at, value, mask=mask, sem=SEM)
    elif KIND == "and":
        tl.atomic_and(counts + shift + at, value, mask=mask, sem=SEM)
    else:
        tl.atomic_or(counts + shift + at, value, mask=mask, sem=SEM)


def operands(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b = torch.randint(-2, 3, (m, k), device="cuda").half(), torch.randint(-2, 3, (k, n), device="cuda").half()
    return a, b, torch.full((m, n), float("nan"), device="cuda").half()


def launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, **more: Any) -> Any:
    (m, k), n = a.shape, b.shape[1]
    grid = (-(-m // 128) * -(-n // 256),)
    return matmul[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), GROUP=8, **LARGE, **more)


def graph() -> bool:
    a, b, c = operands(1024, 2048, 512)
    made = launch(a, b, c)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        launch(a, b, c)
    good = made.has_copies and "%nsmid" in made.asm["ttgir"]
    for _ in range(3):
        a.copy_(torch.randint(-2, 3, a.shape, device="cuda"))
        c.fill_(float("nan"))
        captured.replay()
        good &= torch.equal(c, a @ b)
    return good


def streams() -> bool:
    pairs = [operands(1024, 512 * (1 + number), 64 * (2 + number)) for number in range(6)]
    made = [torch.cuda.Stream() for _ in pairs]
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, (a, b, c) in zip(made, pairs, strict=True):
            with torch.cuda.stream(stream):
                launch(a, b, c)
    torch.cuda.synchronize()
    return all(torch.equal(c, a @ b) for a, b, c in pairs)


def cooperative() -> bool:
    a, b, c = operands(1024, 2048, 512)
    launch(a, b, c, launch_cooperative_grid=True)
    return torch.equal(c, a @ b)


def large_grid() -> bool:
    a, b, c = operands(128 * 60001, 256, 128)
    made = launch(a, b, c)
    same = all(torch.equal(c[at : at + 100000], a[at : at + 100000] @ b) for at in range(0, len(a), 100000))
    return same and "%nsmid" in made.asm["ttgir"]


def far_rows() -> bool:
    """Rows that are 2^25 elements apart: 5 10^9 elements."""
    m, n, k, stride = 150, 512, 200, 1 << 25
    room = torch.zeros(m * stride, device="cuda", dtype=torch.float16)
    a = room.as_strided((m, k), (stride, 1))
    a.copy_(torch.randint(-2, 3, (m, k), device="cuda"))
    b, c = torch.randint(-2, 3, (k, n), device="cuda").half(), torch.empty(m, n, device="cuda").half()
    own = tilework.jit(wide.fn)
    made = own[(2, 2)](a, b, c, m, n, k, stride, n, n, **LARGE, auto_tma=True)
    print("    copies:", made.has_copies)
    return torch.equal(c, a.contiguous() @ b)


def many_columns() -> bool:
    """One row of B is 2^31 + 8 elements from the next but few are used."""
    m, n, k, stride = 256, 256, 4, (1 << 31) + 8
    room = torch.zeros(k * stride, device="cuda", dtype=torch.float16)
    b = room.as_strided((k, n), (stride, 1))
    b.copy_(torch.randint(-2, 3, (k, n), device="cuda"))
    a, c = torch.zeros(m, 64, device="cuda").half(), torch.empty(m, n, device="cuda").half()
    a[:, :k] = torch.randint(-2, 3, (m, k), device="cuda").half()
    made = tilework.jit(wide.fn)[(2, 1)](a, b, c, m, n, k, 64, stride, n, **LARGE, auto_tma=True)
    print("    copies:", made.has_copies)
    return torch.equal(c, a[:, :k] @ b.contiguous())


def histograms() -> bool:
    good, collected = True, 0
    for seed in range(60):
        draw = random.Random(seed)
        kind = draw.choice(["add", "add", "add value", "max", "min", "xor", "and", "or"])
        dtype = draw.choice(
            [
                torch.int32,
                torch.int32,
                torch.int32,
                torch.int64,
                torch.float32 if kind.startswith("add") else torch.int32,
            ]
        )
        block, warps, grid = draw.choice([512, 1024, 4096]), draw.choice([1, 4, 8, 16]), draw.choice([1, 3, 200])
        lowest, spread = draw.choice([0, -50]), draw.choice([1, 2, 256, 3000])
        x = torch.randint(lowest, lowest + spread, (block * grid,), dtype=torch.int32)
        counts = torch.randint(0, 100, (8192,)).to(dtype)
        if draw.random() < 0.3 and dtype is torch.int32:
            counts.fill_((1 << 31) - 3)
        found, wanted = counts.cuda(), counts.clone()
        constants = {
            "BLOCK": block,
            "KIND": kind,
            "MASK": draw.choice([0, 1, 2]),
            "SHAPE": draw.choice([1, 2]),
            "SEM": draw.choice(["relaxed", "acq_rel"]),
        }
        made = histogram[(grid,)](x.cuda(), found, block * grid - 7, 4000, **constants, num_warps=warps)
        InterpretedFunction(histogram.fn)[(grid,)](x, wanted, block * grid - 7, 4000, **constants)
        collected += "shared" in made.asm["ptx"]
        if not torch.equal(found.cpu(), wanted):
            print("    WRONG", seed, dtype, warps, grid, constants)
            good = False
    print("    collected:", collected, "of 60")
    return good


CHECKS: dict[str, Callable[[], bool]] = {
    "a CUDA graph": graph, "streams side by side": streams, "a cooperative grid": cooperative,
    "a grid of 60001": large_grid,
    "rows far apart": far_rows, "many columns": many_columns, "histograms": histograms,
}  # fmt: skip


def main() -> int:
    failed = 0
    for name, check in CHECKS.items():
        try:
            good, said = check(), ""
        except Exception as error:  # noqa: BLE001 - it is the result
            good, said = False, f"{type(error).__name__}: {str(error)[:500]}"
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name} {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
