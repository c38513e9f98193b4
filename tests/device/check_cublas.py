"""`triton._C.libtriton.nvidia.cublas.CublasLt` against torch, on a GPU: `python -m tests.device.check_cublas` (needs
torch)."""

import sys
from typing import Any

import torch

import tilework


def main() -> int:
    tilework.as_triton()
    from triton._C.libtriton import nvidia  # pyright: ignore[reportMissingImports]

    blas = nvidia.cublas.CublasLt(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
    torch.manual_seed(0)
    wrong = 0
    kinds = [("float16", "float16"), ("bfloat16", "bfloat16"), ("float32", "float32")]
    if torch.cuda.get_device_capability() >= (9, 0):
        kinds += [("float8_e4m3fn", "float16"), ("float8_e4m3fn", "float8_e4m3fn")]
    for given, result in kinds:
        for m, n, k in ((16, 16, 16), (64, 128, 256), (512, 256, 1024)):
            a = (torch.randn(m, k, device="cuda") / 4).to(getattr(torch, given))
            b = (torch.randn(n, k, device="cuda") / 4).to(getattr(torch, given))
            c = torch.zeros(m, n, device="cuda").to(getattr(torch, result))
            blas.matmul(a, b, c)
            expected = a.to(torch.float64) @ b.to(torch.float64).T
            error = (c.to(torch.float64) - expected).abs().max().item() / expected.abs().max().item()
            good = error < (0.07 if "float8" in result else 0.01)
            wrong += not good
            print(f"{'ok   ' if good else 'WRONG'} matmul {given} -> {result} {m}x{n}x{k}: error {error:.2e}")
    if torch.cuda.get_device_capability() >= (9, 0):
        wrong += accumulates_slowly(blas)
    a, b, c = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    d = torch.empty_like(c)
    blas.gemm(a, b, c, d, 2.0, 0.5)
    good = torch.allclose(d.float(), 2 * a.float() @ b.float().T + 0.5 * c.float(), atol=0.1, rtol=0.01)
    print("ok   " if good else "WRONG", "gemm with alpha and beta")
    return wrong + (not good)


def accumulates_slowly(blas: Any) -> bool:
    """Return True if a product of fp8 is nearer to torch's with exact sums than to torch's with fast accumulation."""
    a, b = (torch.randn(size, 4096, device="cuda").to(torch.float8_e4m3fn) for size in (512, 256))
    c = torch.zeros(512, 256, device="cuda", dtype=torch.float16)
    blas.matmul(a, b, c)
    one = torch.ones((), device="cuda")
    kinds = (True, False)
    torchs = [
        torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=torch.float16, use_fast_accum=kind)
        for kind in kinds
    ]
    fast, exact = ((c.float() - result.float()).abs().max().item() for result in torchs)
    good = fast <= exact
    print(f"{'ok   ' if good else 'WRONG'} fp8 sums: {fast:.3g} from fast accumulation, {exact:.3g} from exact sums")
    return not good


if __name__ == "__main__":
    sys.exit(main())
