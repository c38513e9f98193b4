"""`torch.compile` with tilework as Inductor's Triton: a function, a kernel of one's own inside of it, and a training
step.

    python -m tilework.as_triton -m examples.torch_compile

Needs torch. Time and result beside eager, Inductor's C++ and, on a GPU, Triton: `python -m benchmarks.torch_compile`.
"""

import sys
import time

try:
    import torch
except ImportError:
    sys.exit("examples.torch_compile needs torch: pip install torch")

import triton
import triton.language as tl
from torch._inductor import config

config.cpu_backend = "triton"  # Triton kernels also for the CPU, where Inductor writes C++ otherwise
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@torch.compile
def normalised(x: torch.Tensor) -> torch.Tensor:
    """Normalise and apply gelu: torch compiles this to one kernel, a reduction with everything pointwise around it."""
    return torch.nn.functional.gelu((x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5))


@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * scale, mask=i < n)


@torch.compile
def with_a_kernel(x: torch.Tensor) -> torch.Tensor:
    """A kernel that a user wrote becomes part of the compiled function."""
    y = x.sin()
    out = torch.empty_like(y)
    scaled_kernel[(triton.cdiv(y.numel(), 1024),)](y, out, y.numel(), 3.0, BLOCK=1024)
    return out + 1


def train(steps: int = 20) -> tuple[float, float]:
    """The first and the last loss of a small network whose forward and backward are compiled."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 1)).to(DEVICE)
    compiled, optimizer = torch.compile(network), torch.optim.SGD(network.parameters(), lr=0.05)
    x = torch.randn(256, 16, device=DEVICE)
    wanted, losses = x.square().mean(-1, keepdim=True), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(compiled(x), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def main() -> None:
    x = torch.randn(64, 256, device=DEVICE)
    for name, function in (("normalised", normalised), ("with_a_kernel", with_a_kernel)):
        eager = function._torchdynamo_orig_callable if name == "normalised" else lambda x: x.sin() * 3.0 + 1
        start = time.perf_counter()
        found = function(x)
        first = time.perf_counter() - start
        difference = (found - eager(x)).abs().max().item()
        print(f"{name:16} first call {first:5.2f} s, largest difference from eager {difference:.1e}")
    before, after = train()
    print(f"{'train':16} loss {before:.4f} -> {after:.4f}")


if __name__ == "__main__":
    main()
