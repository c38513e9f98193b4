"""Warp-specialised kernels on a GPU: products and attention beside torch, many rounds, and the time with and without.

    python -m tests.device.check_warp_specialize [--rounds 20] [--small] [NAME ...]                (needs torch)
    compute-sanitizer --tool memcheck  python -m tests.device.check_warp_specialize --small --rounds 2
    compute-sanitizer --tool racecheck python -m tests.device.check_warp_specialize --small --rounds 2
    compute-sanitizer --tool synccheck python -m tests.device.check_warp_specialize --small --rounds 2
    TILEWORK_DEVICE=emulator python -m tests.device.check_warp_specialize --small --rounds 1       (without a GPU)

Each line names its kernel before that runs: where regions wait for each other for ever, it is the last one. Numbers are
small integers, so products are exact. Rates are by the words of TILEWORK_WARP_SPECIALIZE: 1 is the default, 0 the same
loop run by all warps.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import torch

import tilework
import tilework.language as tl
from tests.transforms.warp_specialized_kernels import attention, blocks, descriptors, pointers
from tilework import knobs
from tilework.testing import do_bench
from tilework.tools.tensor_descriptor import TensorDescriptor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512), (1000, 1064, 72), (136, 4096, 16)]
SMALL = [(136, 136, 80), (200, 64, 16)]
TILES = [((128, 256, 64), 8, 3), ((128, 128, 64), 4, 4), ((64, 128, 32), 4, 2)]


@tilework.jit
def persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, FLAT: tl.constexpr
):
    num_n = tl.cdiv(N, BN)
    count = tl.cdiv(M, BM) * num_n
    for tile in tl.range(
        tl.program_id(0), count, tl.num_programs(0), flatten=FLAT, warp_specialize=True, num_stages=STAGES
    ):
        om, on = (tile // num_n) * BM, (tile % num_n) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([om, k * BK]), b.load([on, k * BK]).T, acc)
        c.store([om, on], acc.to(c.dtype))


KERNELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "blocks": (blocks, {}),
    "descriptors": (descriptors, {}),
    "pointers": (pointers, {}),
    "persistent": (persistent, {"FLAT": False}),
    "flat": (persistent, {"FLAT": True}),
}


def rounds_of(launch: Callable[[Any], Any], kernel: Any, out: torch.Tensor, wanted: torch.Tensor, given: Any) -> str:
    """Return the count of wrong rounds for each way to compile the kernel, and its TFLOP/s."""
    bad, reported = 0, []
    for way, rounds in given.ways.items():
        own = tilework.jit(kernel.fn)  # each way keeps its own compiled code
        with knobs.nvidia.scope():
            knobs.nvidia.warp_specialize = way
            for _ in range(rounds):
                out.fill_(float("nan"))
                launch(own)
                bad += not torch.allclose(out.float(), wanted, atol=2e-3, rtol=1e-3)
            time = do_bench(lambda own=own: launch(own)) if DEVICE == "cuda" else 0.0
            reported.append(f"{way} {given.work / time / 1e9:.1f}" if time else way)
    return f"{f'FAIL {bad} rounds' if bad else 'PASS'}  {', '.join(reported)} TFLOP/s"


def product(
    name: str, size: tuple[int, int, int], tile: tuple[int, int, int], warps: int, stages: int, given: Any
) -> int:
    (kernel, more), (m, n, k), (bm, bn, bk) = KERNELS[name], size, tile
    a, b = (torch.randint(-2, 3, (rows, k), device=DEVICE).half() for rows in (m, n))
    c = torch.empty(m, n, device=DEVICE).half()
    args: list[Any] = [a, b, c]
    if name not in ("descriptors", "pointers"):
        boxes = ([bm, bk], [bn, bk], [bm, bn])
        args = [TensorDescriptor.from_tensor(array, box) for array, box in zip(args, boxes, strict=True)]
    grid = (min(132, -(-m // bm) * -(-n // bn)),) if "FLAT" in more else (-(-m // bm), -(-n // bn))

    def launch(own: Any) -> Any:
        return own[grid](*args, m, n, k, BM=bm, BN=bn, BK=bk, STAGES=stages, num_warps=warps, **more)

    wanted = (a.float() @ b.float().T).half().float()
    return report(f"{name} {m}x{n}x{k} {tile} W{warps} S{stages}", launch, kernel, c, wanted, given, 2.0 * m * n * k)


def softmaxed(length: int, d: int, warps: int, given: Any) -> int:
    q, k, v, o = (torch.randn(length, d, device=DEVICE).half() for _ in range(4))
    box = 64 if d == 128 else 128
    descs = [TensorDescriptor.from_tensor(array, [rows, d]) for array, rows in ((q, 128), (k, box), (v, box), (o, 128))]

    def launch(own: Any) -> Any:
        return own[(-(-length // 128),)](*descs, length, 0.18, BM=128, BN=box, D=d, STAGES=2, num_warps=warps)

    wanted = torch.softmax(q.float() @ k.float().T * (0.18 * 0.6931471805599453), 1) @ v.float()
    return report(f"attention {length} D{d} W{warps}", launch, attention, o, wanted, given, 4.0 * length * length * d)


def report(
    name: str, launch: Any, kernel: Any, out: torch.Tensor, wanted: torch.Tensor, given: Any, work: float
) -> int:
    print(f"{name:52}", end="", flush=True)
    given.work = work
    try:
        said = rounds_of(launch, kernel, out, wanted, given)
    except Exception as error:
        said = f"FAIL {type(error).__name__}: {str(error)[:300]}"
    print(said, flush=True)
    return int(said.startswith("FAIL"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"{', '.join(KERNELS)}, attention")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    given.ways = {"1": given.rounds, "0": 1}
    tilework.set_allocator(lambda size, alignment, stream: torch.empty(size, device=DEVICE, dtype=torch.int8))
    failures = 0
    names = given.names or [*KERNELS, "attention"]
    for name in (name for name in names if name in KERNELS):
        for size in SMALL if given.small else SIZES:
            for tile, warps, stages in TILES[-1:] if given.small else TILES:
                failures += product(name, size, tile, warps, stages, given)
    if "attention" in names:
        for length, d, warps in [(256, 64, 4)] if given.small else [(8192, 64, 4), (8192, 128, 4), (8192, 128, 8)]:
            failures += softmaxed(length, d, warps, given)
    print(f"{failures} failed")
    return min(failures, 99)


if __name__ == "__main__":
    sys.exit(main())
