"""Inductor's code for GPUs: generated, compiled in every configuration that would be tried, run in the emulator and
compared.

    python -m tilework.as_triton -m tests.inductor.emulated            all but what cannot work
    python -m tilework.as_triton -m tests.inductor.emulated softmax matmul

Left out are cooperative reductions (blocks of the emulator run one after the other), models with parameters of their
own (they stay on the CPU), random numbers (the wrapper draws the seed on the GPU) and what chooses its kernel by
timing.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention.flex_attention import flex_attention

from tests.inductor.models import CASES, floats, leaves
from tests.inductor.without_gpu import EmulatedKernel, generate, run_emulated

TEMPLATES = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON", "max_autotune_conv_backends": "TRITON"}
LEFT_OUT = (
    "cooperative_reductions",
    "layer_norm",
    "embeddings",
    "convolutions",
    "random_numbers",
    "the_same_random_numbers",
)
LEFT_OUT += ("multi_kernel", "associative_scan", "control_flow", "dynamic_shapes", "attention", "a_kernel_of_the_users")

Made = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def half(*shape: int, seed: int = 1) -> torch.Tensor:
    return floats(*shape, device="cpu", dtype=torch.float16, seed=seed) / 4


def templates() -> dict[str, Made]:
    return {
        "matmul": (lambda a, b: (torch.mm(a, b).relu(),), (half(128, 64), half(64, 64, seed=2))),
        "bmm": (lambda a, b: (torch.bmm(a, b) + 1,), (half(2, 64, 32), half(2, 32, 64, seed=2))),
        "convolution": (lambda x, w: (torch.conv2d(x, w, padding=1),), (half(1, 16, 8, 8), half(16, 16, 3, 3, seed=2))),
        "flex_attention": (causal, tuple(half(1, 2, 128, 32, seed=seed) for seed in (1, 2, 3))),
    }


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return (flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.where(i >= j, score, float("-inf"))),)


def compare(name: str, folder: Path) -> str:
    """Generate, compile, run and compare; what was compiled."""
    if name in (made := templates()):
        function, args = made[name]
        traced = torch._dynamo.export(function)(*args).graph_module if function is causal else function
        program = generate(traced, args, choice=0 if function is causal else 1, **TEMPLATES)
        expected, tolerance = [one.half() for one in function(*(arg.float() for arg in args))], 1e-2
    else:
        chosen = CASES[name]
        function, args = chosen.make("cpu")
        args = tuple(arg.detach() for arg in args)
        program = generate(lambda *given: tuple(leaves(function(*given))), args, **chosen.settings)
        expected, tolerance = leaves(function(*args)), chosen.tolerance
    assert program.kernels, "Inductor wrote no kernel"
    count = 0
    for kernel, text in program.kernels.items():
        written = EmulatedKernel(kernel, text, folder)
        count += len({written.compiled(choice).hash for choice in range(len(written.tuner.configs))})
    found = run_emulated(program, list(args), folder)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return f"{len(program.kernels)} kernels, {count} variants"


def main(names: list[str]) -> int:
    wrong = 0
    for name in names or [*templates(), *(name for name in CASES if name not in LEFT_OUT)]:
        start = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory() as folder:
                said = f"same  {compare(name, Path(folder))}"
        except Exception as error:
            wrong += 1
            said = f"WRONG {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(f"{name:28} {time.perf_counter() - start:6.1f} s  {said}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
