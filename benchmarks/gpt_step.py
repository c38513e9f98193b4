"""The training step of a GPT under `torch.compile`, with Triton and with tilework as Inductor's compiler.

    python -m benchmarks.gpt_step                on a GPU; the interpreter has torch and Triton
    python -m benchmarks.gpt_step --turns 2      twice each, in turns

Six layers in bf16, 8 sequences of 1024 tokens: loss, gradients and AdamW. Each compiler has a process of its own with
empty caches. `first` is the seconds of the first step, everything included; `step` the milliseconds of a later one.
`pool` is when the compile workers were ready: kernels that are needed earlier compile in the process itself, and the
next column counts both. The line below has the parts of the first step by torch's own clock, the longest first.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

LAYERS, WIDTH, HEADS, WORDS, BATCH, LENGTH = 6, 1024, 16, 50304, 8, 1024
WARM, STEPS, ROUNDS = 3, 10, 5


def model() -> Any:
    """A GPT with causal attention."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            heads = [t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1)]
            mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
            x = x + self.out(mixed)
            return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks, self.last = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.words(tokens) + self.places.weight
            scores = self.last(self.blocks(x)) @ self.words.weight.T
            return F.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())

    torch.manual_seed(0)
    return Gpt()


def child() -> None:
    """Measure in the process of one compiler."""
    began = time.perf_counter()
    import torch
    from torch._dynamo.utils import compilation_time_metrics
    from torch._inductor.async_compile import AsyncCompile

    uses: list[tuple[float, bool]] = []
    use = AsyncCompile.use_process_pool

    def watched() -> bool:
        uses.append((time.perf_counter(), bool(use())))
        return uses[-1][1]

    AsyncCompile.use_process_pool = staticmethod(watched)  # pyright: ignore[reportAttributeAccessIssue]
    net = model().to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device="cuda")
    compiled = torch.compile(net)

    def step() -> Any:
        loss = compiled(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    torch.cuda.synchronize()
    start = time.perf_counter()
    first_loss = step().item()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    ready = [when - start for when, is_ready in uses if is_ready]
    for _ in range(WARM):
        step()
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        at = time.perf_counter()
        for _ in range(STEPS):
            loss = step()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - at) / STEPS * 1e3)
    phases = {name: sum(times) for name, times in compilation_time_metrics.items() if sum(times) > 0.05}
    print(
        json.dumps(
            {
                "import": start - began,
                "first": first,
                "step": statistics.median(rounds),
                "loss": [first_loss, loss.item()],
                "pool": ready[0] if ready else None,
                "asked before": sum(not is_ready for _, is_ready in uses),
                "asked after": len(ready),
                "phases": phases,
            }
        )
    )


def measure(compiler: str) -> dict[str, Any]:
    under = ["-m", "tilework.as_triton"] if compiler == "tilework" else []
    with tempfile.TemporaryDirectory() as folder:
        names = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": os.path.join(folder, "triton")}
        command = [sys.executable, *under, "-m", "benchmarks.gpt_step", "--child"]
        done = subprocess.run(command, env={**os.environ, **names}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{compiler}: {done.stderr[-1500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child()
    print(f"{'':10}{'first s':>9}{'step ms':>9}{'import s':>10}{'pool s':>8}  before/after  losses")
    for turn in range(given.turns):
        for compiler in ("triton", "tilework") if turn % 2 == 0 else ("tilework", "triton"):
            found = measure(compiler)
            pool = "-" if found["pool"] is None else f"{found['pool']:.1f}"
            asked = f"{found['asked before']}/{found['asked after']}"
            losses = ", ".join(f"{loss:.4f}" for loss in found["loss"])
            print(
                f"{compiler:10}{found['first']:9.2f}{found['step']:9.2f}{found['import']:10.1f}{pool:>8}  {asked:>12}"
                f"  {losses}"
            )
            slowest = sorted(found["phases"].items(), key=lambda one: -one[1])[:16]
            print("          " + ", ".join(f"{name} {spent:.2f}" for name, spent in slowest), flush=True)


if __name__ == "__main__":
    main()
