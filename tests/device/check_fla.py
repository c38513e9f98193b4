"""flash-linear-attention on a GPU: every operation forward and backward with Triton and with tilework, compared.

    python -m tests.device.check_fla [NAME ...] [--jobs 6] [--seconds 400]

Each operation runs in processes of its own (one with Triton, one under `as_triton`), so that a crash or a hang is one
row of the table. Needs a GPU, torch, Triton and fla (pip: fla-core). Kernels are not tuned: both compilers use the
first configuration that fits (`--configs` more of them), or most of the time would go into tuning. Results are compared
by their relative distance.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

B, T, H, D = 2, 250, 4, 64
LIMIT = 5e-3


def draw(*shape: int, kind: str = "normal") -> Any:
    """A tensor of bf16 that asks for its gradient: normal, a decay in logarithms, a rate, or unit vectors."""
    import torch
    from torch.nn.functional import logsigmoid, normalize

    x = torch.randn(*shape, device="cuda")
    x = {
        "normal": lambda: x,
        "decay": lambda: logsigmoid(x) / 4,
        "rate": lambda: x.sigmoid(),
        "unit": lambda: normalize(x, dim=-1),
    }[kind]()
    return x.to(torch.float32 if kind == "decay" else torch.bfloat16).requires_grad_()


def heads(kind: str = "normal") -> Any:
    return draw(B, T, H, D, kind=kind)


def each(kind: str) -> Any:
    return draw(B, T, H, kind=kind)


def qkv() -> list[Any]:
    return [heads(), heads("unit"), heads()]


CASES: dict[str, Callable[[], tuple[list[Any], dict[str, Any]]]] = {
    "chunk_abc": lambda: ([*qkv(), draw(B, T, H, 32)], {}),
    "chunk_comba": lambda: ([*qkv(), heads("unit"), each("decay"), each("rate")], {}),
    "chunk_delta_rule": lambda: ([*qkv(), each("rate")], {}),
    "chunk_dplr_delta_rule": lambda: ([*qkv(), heads("unit"), heads("unit"), heads("decay")], {}),
    "chunk_gated_delta_rule": lambda: ([*qkv(), each("decay"), each("rate")], {}),
    "chunk_gla": lambda: ([*qkv(), heads("decay")], {"output_final_state": True}),
    "chunk_gsa": lambda: ([*qkv(), draw(B, T, H, 32), draw(B, T, H, 32, kind="decay")], {}),
    "chunk_iplr_delta_rule": lambda: ([*qkv(), heads("unit"), heads("unit")], {}),
    "chunk_kda": lambda: ([*qkv(), heads("decay"), each("rate")], {}),
    "chunk_lightning_attn": lambda: (qkv(), {"layer_idx": 1, "num_layers": 4}),
    "chunk_linear_attn": lambda: (qkv(), {"normalize": False}),
    "chunk_mesa_net": lambda: ([*qkv(), each("decay"), each("rate"), draw(H, D, kind="rate")], {"max_CG_iteration": 3}),
    "chunk_retention": lambda: (qkv(), {}),
    "chunk_rwkv6": lambda: ([*qkv(), heads("decay"), draw(H, D)], {}),
    "chunk_rwkv7": lambda: ([heads(), heads("decay"), heads("unit"), heads(), heads("unit"), heads("unit")], {}),
    "chunk_simple_gla": lambda: ([*qkv(), each("decay")], {"output_final_state": True}),
    "fused_chunk_linear_attn": lambda: (qkv(), {"normalize": False}),
    "fused_chunk_simple_gla": lambda: ([*qkv(), each("decay")], {}),
    "fused_recurrent_delta_rule": lambda: ([*qkv(), each("rate")], {}),
    "fused_recurrent_gla": lambda: ([*qkv(), heads("decay")], {}),
    "fused_recurrent_hgrn": lambda: ([draw(B, T, D), draw(B, T, D, kind="decay")], {}),
    "fused_recurrent_rwkv6": lambda: ([*qkv(), heads("decay"), draw(H, D)], {}),
    "fused_recurrent_simple_gla": lambda: ([*qkv(), each("decay")], {}),
    "parallel_attn": lambda: (qkv(), {}),
    "parallel_based": lambda: ([draw(B, 256, H, 16), draw(B, 256, H, 16), draw(B, 256, H, D)], {}),
    "parallel_forgetting_attn": lambda: ([*qkv(), each("decay")], {}),
    "parallel_nsa": lambda: (
        [draw(B, T, 64, D), heads(), heads()],
        {"block_indices": blocks(), "block_size": 32, "block_counts": 4},
    ),
    "parallel_path_attn": lambda: ([*qkv(), heads("unit"), each("rate"), each("decay")], {}),
    "parallel_retention": lambda: (qkv(), {}),
    "parallel_simple_gla": lambda: ([*qkv(), each("decay")], {}),
    "parallel_stickbreaking_attn": lambda: (qkv(), {}),
}


def blocks() -> Any:
    """The blocks of keys that each query of sparse attention sees: the first four that exist."""
    import torch

    latest = torch.arange(T, device="cuda")[None, :, None, None] // 32
    return torch.minimum(torch.arange(4, device="cuda"), latest).expand(B, T, H, 4).contiguous()


def tune_less(count: int) -> None:
    """Let every autotuner that is made from now on have its first configurations only."""
    from triton.runtime.autotuner import Autotuner

    whole = Autotuner.__init__

    def begin(self: Any, fn: Any, arg_names: Any, configs: Any, *args: Any, **kwargs: Any) -> None:
        whole(self, fn, arg_names, list(configs)[:count], *args, **kwargs)

    Autotuner.__init__ = begin


def run_case(name: str, path: str, configs: int) -> None:
    """One operation, its results and its gradients, into a file."""
    tune_less(configs)
    import fla.ops
    import torch

    torch.manual_seed(0)
    tensors, options = CASES[name]()
    results = getattr(fla.ops, name)(*tensors, **options)
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if isinstance(r, torch.Tensor)]
    weights = [torch.randn_like(r, dtype=torch.float32) for r in results if r.requires_grad]
    terms = [(r.float() * w).sum() for r, w in zip([r for r in results if r.requires_grad], weights, strict=True)]
    torch.stack(terms).sum().backward()
    torch.cuda.synchronize()
    torch.save([r.detach().cpu() for r in results] + [t.grad.cpu() for t in tensors if t.grad is not None], path)


def compare(name: str, seconds: float, configs: int) -> str:
    """The row of one operation."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        texts, files = [], []
        for side in ("triton", "tilework"):
            files.append(str(Path(folder) / f"{side}.pt"))
            how = ["-m", "tilework.as_triton"] if side == "tilework" else []
            command = [
                sys.executable,
                *how,
                "-m",
                "tests.device.check_fla",
                "--configs",
                str(configs),
                "--run",
                name,
                files[-1],
            ]
            start = time.perf_counter()
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    timeout=seconds,
                    env={**os.environ, "TRITON_CACHE_DIR": f"{folder}/{side}"},
                )
                bad = "" if done.returncode == 0 else reason(done.stdout + done.stderr)
            except subprocess.TimeoutExpired:
                bad = f"not ready after {seconds:.0f} s"
            texts.append((time.perf_counter() - start, bad))
        row = f"{name:28} {texts[0][0]:7.1f} {texts[1][0]:7.1f}  "
        if texts[0][1]:
            return row + f"Triton itself: {texts[0][1]}"
        if texts[1][1]:
            return row + f"FAILED: {texts[1][1]}"
        theirs, ours = (torch.load(file) for file in files)
        worst = max(
            float((a.double() - b.double()).norm() / (a.double().norm() + 1e-9))
            for a, b in zip(theirs, ours, strict=True)
        )
        return row + (f"{worst:.1e} equal" if worst <= LIMIT else f"{worst:.1e} WRONG")


def reason(text: str) -> str:
    """The line of a process's output that says what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1][:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--configs", type=int, default=1)
    parser.add_argument("--run", nargs=2, metavar=("NAME", "FILE"))
    options = parser.parse_args()
    if options.run:
        return run_case(*options.run, configs=options.configs)
    print(f"{'operation':28} {'Triton':>7} {'ours':>7}  seconds in all; relative distance")
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = []
        for row in pool.map(lambda name: compare(name, options.seconds, options.configs), options.names or CASES):
            print(row, flush=True)
            rows.append(row)
    sys.exit(any("FAILED" in row or "WRONG" in row for row in rows))


if __name__ == "__main__":
    main()
