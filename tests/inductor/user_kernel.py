"""A Triton kernel as users write it, called from functions that torch compiles."""

# pyright takes tests/triton for triton.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import torch
import triton
import triton.language as tl


@triton.jit
def add_scaled_kernel(x_ptr, y_ptr, out_ptr, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + SCALE * y, mask=i < n)


def add_scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    add_scaled_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), SCALE=3.0, BLOCK=256)
    return out
