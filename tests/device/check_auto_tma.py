"""Loads that become copies (`auto_tma`), on a GPU: results bit by bit those of the loads, and the time of both.

    python -m tests.device.check_auto_tma            (needs torch and a GPU with TMA)

Shapes with tails, padded rows, offsets and wrapped tiles; the last column says whether the launch proved the copies or
launched the loads. What only hardware knows is asked too: whether the driver takes maps whose axes interleave (heads
between rows).
"""

import sys
from typing import Any

import torch

import tilework
import tilework.language as tl
from benchmarks.gpu_kernels import attention, matmul
from tests.transforms.warp_specialized_kernels import pointers
from tilework.testing import do_bench


@tilework.jit
def head_products(q_ptr, k_ptr, o_ptr, stride_b, stride_h, stride_m, H, L, BM: tl.constexpr, D: tl.constexpr):
    """``q @ k.T`` of tiles of [batch, length, head, D]: heads lie between rows."""
    pid, rm, rd = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    at = (pid // H).to(tl.int64) * stride_b + (pid % H) * stride_h
    offsets = at + rm[:, None] * stride_m + rd[None, :]
    q = tl.load(q_ptr + offsets, mask=rm[:, None] < L, other=0.0)
    k = tl.load(k_ptr + offsets, mask=rm[:, None] < L, other=0.0)
    tl.store(o_ptr + (pid * L + rm)[:, None] * BM + tl.arange(0, BM)[None, :], tl.dot(q, k.T), mask=rm[:, None] < L)


def compare(name: str, launch: Any, out: torch.Tensor, work: float) -> bool:
    """Launch with and without copies, natively: whether the results are equal."""
    results, times = [], []
    kernel: Any = None
    for copies in (False, True):
        launch(copies)
        out.fill_(float("nan"))
        kernel = launch(copies)
        results.append(out.clone())
        times.append(do_bench(lambda copies=copies: launch(copies)))
    same = torch.equal(results[0].nan_to_num(7e4), results[1].nan_to_num(7e4))
    way = "copies" if kernel.has_copies else "loads"
    rates = " ".join(f"{work / time / 1e9:8.1f}" for time in times)
    print(f"{'ok   ' if same else 'WRONG'} {name:36} {rates} TFLOP/s with loads, with copies ({way})", flush=True)
    return same


def product(
    m: int,
    n: int,
    k: int,
    pad: int = 0,
    first: int = 0,
    tile: tuple[int, int, int] = (128, 256, 64),
    parts: bool = False,
) -> bool:
    room = torch.randn(m * (k + pad) + first, device="cuda").half()
    a = room[first:].view(m, k + pad)
    b, c = torch.randn(k, n, device="cuda").half(), torch.empty(m, n, device="cuda").half()
    bm, bn, bk = tile

    def launch(copies: bool) -> Any:
        grid = (-(-m // bm) * -(-n // bn),)
        settings = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "SPECIALIZE": parts}
        return matmul[grid](a, b, c, m, n, k, k + pad, n, n, **settings, num_warps=8, num_stages=3, auto_tma=copies)

    return compare(f"matmul {m}x{n}x{k} +{pad} @{first}{' in parts' * parts}", launch, c, 2.0 * m * n * k)


def specialized(m: int, n: int, k: int) -> bool:
    """Pointers in a loop that asks for partitions: with copies its producer is one thread."""
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(n, k, device="cuda").half()
    c = torch.empty(m, n, device="cuda").half()

    def launch(copies: bool) -> Any:
        settings = {"BM": 128, "BN": 256, "BK": 64, "STAGES": 3, "num_warps": 8, "auto_tma": copies}
        return pointers[(-(-m // 128), -(-n // 256))](a, b, c, m, n, k, **settings)

    return compare(f"warp specialized {m}x{n}x{k}", launch, c, 2.0 * m * n * k)


def softmaxed(length: int, d: int, parts: bool = False) -> bool:
    q, k, v, o = (torch.randn(4, 16, length, d, device="cuda").half() for _ in range(4))

    def launch(copies: bool) -> Any:
        settings = {"BM": 128, "BN": 128 if d == 64 else 64, "D": d, "SPECIALIZE": parts}
        return attention[(length // 128, 64)](q, k, v, o, length, 0.1, **settings, num_warps=8, auto_tma=copies)

    return compare(f"attention {length} D{d}{' in parts' * parts}", launch, o, 4.0 * 64 * length * length * d)


def interleaved() -> bool:
    b, length, h, d = 2, 1000, 4, 64
    q, k = (torch.randn(b, length, h, d, device="cuda").half() for _ in range(2))
    o = torch.empty(b * h, length, 128, device="cuda")

    def launch(copies: bool) -> Any:
        return head_products[(8, b * h)](
            q, k, o, *q.stride()[:1], q.stride(2), q.stride(1), h, length, BM=128, D=d, auto_tma=copies
        )

    return compare("rows of interleaved heads", launch, o, 2.0 * b * h * length * 128 * d)


def main() -> int:
    torch.manual_seed(0)
    good = [product(4096, 4096, 4096), product(8192, 8192, 8192), product(8192, 8192, 8192, tile=(128, 128, 64))]
    good += [product(512, 512, 520), product(512, 512, 520, pad=8), product(512, 512, 513), product(500, 512, 512)]
    good += [product(512, 512, 512, first=8), product(512, 512, 512, first=4), product(384, 768, 72, pad=56)]
    good += [specialized(8192, 8192, 8192), specialized(1000, 1064, 72)]
    good += [product(4096, 4096, 4096, parts=True), product(8192, 8192, 8192, parts=True)]
    good += [softmaxed(8192, d, parts) for d in (64, 128) for parts in (False, True)] + [interleaved()]
    return good.count(False)


if __name__ == "__main__":
    sys.exit(main())
