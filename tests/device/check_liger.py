"""Liger-Kernel: every operation forward and backward, with tilework and (on a GPU) with Triton, compared with plain
torch.

    python -m tests.device.check_liger [NAME ...] [--jobs 6] [--seconds 140]      on a GPU, both compilers
    python -m tests.device.check_liger [NAME ...] --device cpu                    on the CPU, tilework only

Each operation is run in fp32 and bf16, with sizes that are powers of two and with odd ones. Processes have a few
operations each (`as_triton` or not); one that dies or hangs is one row, and another process goes on with the rest. The
reference is computed in float64 from the same rounded numbers (`liger_cases.py`, `liger_losses.py`). A result is wrong
if it is further from the reference than LIMITS allow and more than twice as far as Triton's. Seconds are those of the
first calls: compiling and tuning.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from tests.device import liger_cases as cases
from tests.device import liger_losses as losses

LIMITS = {"fp32": 2e-5, "bf16": 2e-2}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
SINGLE_ONLY = {"sparse_multi_token_attention", "mm_int8int2"}

CASES: dict[str, Any] = {
    "rms_norm": cases.rms_norm("llama", 0.0),
    "rms_norm_gemma": cases.rms_norm("gemma", 1.0),
    "rms_norm_none": cases.rms_norm("none", 0.0),
    "fused_add_rms_norm": cases.fused_add_rms_norm,
    "modulated_rms_norm": cases.modulated_rms_norm,
    "layer_norm": cases.layer_norm,
    "group_norm": cases.group_norm,
    "poly_norm": cases.poly_norm,
    "dyt": cases.dyt,
    "attn_res": cases.attn_res,
    "swiglu": cases.pair("liger_swiglu", lambda a, b: F.silu(a) * b),
    "geglu": cases.pair("liger_geglu", lambda a, b: F.gelu(a, approximate="tanh") * b),
    "relu_squared": cases.single("liger_relu_squared", lambda x: F.relu(x).square()),
    "softmax": cases.single("liger_softmax", lambda x: torch.softmax(x, -1)),
    "sparsemax": cases.single("liger_sparsemax", cases.sparsemax_plain),
    "tiled_mlp": cases.tiled_mlp,
    "rope": cases.rope,
    "partial_rope": cases.partial_rope,
    "qwen2vl_mrope": cases.qwen2vl_mrope,
    "llama4_rope": cases.llama4_rope,
    "fused_neighborhood_attention": cases.neighborhood(1),
    "dilated_neighborhood_attention": cases.neighborhood(2),
    "multi_token_attention": cases.multi_token_attention(sparse=False),
    "sparse_multi_token_attention": cases.multi_token_attention(sparse=True),
    "mhc_coefficients": cases.mhc_coefficients,
    "mhc_streams": cases.mhc_streams,
    "fused_moe": cases.fused_moe,
    "embedding": cases.embedding,
    "mm_int8int2": cases.mm_int8int2,
    "cross_entropy": losses.cross_entropy(),
    "cross_entropy_smoothed": losses.cross_entropy(label_smoothing=0.1, lse_square_scale=1e-3),
    "cross_entropy_capped": losses.cross_entropy(softcap=10.0),
    "cross_entropy_weighted": losses.weighted_cross_entropy,
    "fused_linear_cross_entropy": losses.fused_linear_cross_entropy,
    "vocab_parallel_cross_entropy": losses.vocab_parallel_cross_entropy,
    "fused_ce_tvd": losses.fused_ce_tvd,
    "jsd": losses.jsd(0.3),
    "jsd_forward_kl": losses.jsd(0.0),
    "jsd_reverse_kl": losses.jsd(1.0),
    "fused_linear_jsd": losses.fused_linear_jsd,
    "kl_div": losses.kl_div("batchmean", in_logs=False),
    "kl_div_log_target": losses.kl_div("mean", in_logs=True),
    "fused_linear_kl_div": losses.fused_linear_kl_div,
    "tvd": losses.tvd("batchmean"),
    "tvd_each": losses.tvd("none"),
    "grpo": losses.grpo("grpo"),
    "grpo_sequence": losses.grpo("grpo", "sequence"),
    "grpo_cispo": losses.grpo("cispo"),
    "grpo_sapo": losses.grpo("sapo"),
}


def results_of(call: Any, tensors: dict[str, torch.Tensor], weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the results of the call and the gradients of a weighted sum of them; the first caller generates the
    weights."""
    made = call(**tensors)
    results = [r for r in (made if isinstance(made, tuple) else (made,)) if r is not None]
    if not weights:
        generator = torch.Generator().manual_seed(1)
        weights += [torch.randn(r.shape, generator=generator, dtype=torch.float64) for r in results]
    terms = [(r.double() * w.to(r.device)).sum() for r, w in zip(results, weights, strict=True) if r.requires_grad]
    if terms:
        torch.stack(terms).sum().backward()
    return [r.detach().double().cpu() for r in results] + [
        t.grad.double().cpu() for t in tensors.values() if t.grad is not None
    ]


def distance(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    """The largest relative distance of a result or a gradient; infinite where one is missing."""
    if [r.shape for r in found] != [r.shape for r in wanted]:
        return float("inf")
    apart = [float((a - b).norm() / (b.norm() + 1e-9)) for a, b in zip(found, wanted, strict=True)]
    return max(float("inf") if each != each else each for each in apart)


def run_case(name: str, device: str) -> dict[str, tuple[float, float]]:
    """For each type: the largest distance from the reference over both sizes, and the seconds of the first calls."""
    found: dict[str, tuple[float, float]] = {}
    for kind, dtype in DTYPES.items():
        if kind != "fp32" and name in SINGLE_ONLY:
            continue
        worst = seconds = 0.0
        for odd in (False, True):
            case = CASES[name](cases.Draw(dtype), odd)
            weights: list[torch.Tensor] = []
            exact = {
                key: (t.detach().double() if t.is_floating_point() else t).requires_grad_(t.requires_grad)
                for key, t in case.tensors.items()
            }
            wanted = results_of(case.plain, exact, weights)
            mine = {key: t.detach().to(device).requires_grad_(t.requires_grad) for key, t in case.tensors.items()}
            start = time.perf_counter()
            with torch.device(device):
                results = results_of(case.liger, mine, weights)
            seconds += time.perf_counter() - start
            if os.environ.get("CHECK_LIGER_VERBOSE"):
                apart = [f"{float((a - b).norm() / (b.norm() + 1e-9)):.1e}" for a, b in zip(results, wanted)]
                print(name, kind, "odd" if odd else "even", *apart, flush=True)
            worst = max(worst, distance(results, wanted))
        found[kind] = (worst, seconds)
    return found


def run_cases(names: list[str], path: str, device: str) -> None:
    """Several operations in this process; each one's findings are on disk before the next begins."""
    torch.backends.cuda.matmul.allow_tf32 = False
    if device == "cpu":
        os.environ["LIGER_FUSED_MOE_AUTOTUNE"] = "0"  # of some hundred configurations one is enough
        import liger_kernel.ops.dyt as without_cpu

        without_cpu.infer_device = lambda: "npu"  # it asks for the number of cores, and knows no CPUs
    for name in names:
        print(f"begin {name}", flush=True)
        try:
            found: Any = run_case(name, device)
        except Exception as error:
            if os.environ.get("CHECK_LIGER_VERBOSE"):
                raise
            found = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"[:160]
        torch.save(found, f"{path}/{name}.pt")


def run_side(side: str, names: list[str], folder: str, device: str, until: float) -> None:
    """Run `names` with one compiler, in as many processes as it takes."""
    path = Path(folder) / side
    path.mkdir(exist_ok=True)
    how = ["-m", "tilework.as_triton"] if side == "tilework" else []
    left = list(names)
    while left and (time_left := until - time.monotonic()) > 0:
        command = [sys.executable, *how, "-m", "tests.device.check_liger", *left]
        command += ["--device", device, "--run", str(path)]
        environment = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/cache-{side}"}
        log = path / f"log-{left[0]}"
        with log.open("w") as output:
            try:
                subprocess.run(command, stdout=output, stderr=output, timeout=time_left, env=environment)
                reason = "the process died"
            except subprocess.TimeoutExpired:
                reason = "not ready in time"
        begun = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("begin ")]
        done = [name for name in left if (path / f"{name}.pt").exists()]
        stopped = [name for name in begun if name not in done] or left[: not done]
        for name in stopped:
            torch.save(f"{reason}: {last_line(log)}", path / f"{name}.pt")
        left = [name for name in left if name not in done and name not in stopped]


def last_line(log: Path) -> str:
    return ([line for line in log.read_text().splitlines() if line.strip()] or ["no output"])[-1][:160]


def row_of(name: str, folder: str, sides: list[str]) -> str:
    """The line of one operation: distances and seconds of each side, and what that means."""
    paths = [Path(folder) / side / f"{name}.pt" for side in sides]
    found = [torch.load(path) if path.exists() else "not run: no time left" for path in paths]
    texts: list[str] = []
    for kind in DTYPES:
        for result in found:
            known = result.get(kind) if isinstance(result, dict) else None
            texts.append(f"{known[0]:8.1e} {known[1]:6.1f}" if known else " " * 15)
    ours, theirs = found[-1], found[0]
    verdict = "right"
    if isinstance(ours, str):
        verdict = f"FAILED: {ours}"
    elif bad := [
        kind
        for kind, (worst, _) in ours.items()
        if worst > max(LIMITS[kind], 2 * theirs[kind][0] if len(found) == 2 and isinstance(theirs, dict) else 0.0)
    ]:
        verdict = "WRONG in " + ", ".join(bad)
    if len(found) == 2 and isinstance(theirs, str):
        verdict += f" (Triton: {theirs})"
    return f"{name:31} {'  '.join(texts)}  {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--run", metavar="FOLDER")
    options = parser.parse_args()
    names = options.names or list(CASES)
    if options.run:
        return run_cases(names, options.run, options.device)
    sides = ["triton", "tilework"] if options.device == "cuda" else ["tilework"]
    until = time.monotonic() + options.seconds
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(options.jobs * len(sides)) as pool,
    ):
        parts = [names[start :: options.jobs] for start in range(options.jobs)]
        work = [(side, part) for part in parts for side in sides if part]
        list(pool.map(lambda item: run_side(*item, folder=folder, device=options.device, until=until), work))
        print(f"{'':31} " + "  ".join(f"{kind} {side:10}" for kind in DTYPES for side in sides))
        print(f"{'operation':31} " + "  ".join(["distance  secs"] * (2 * len(sides))))
        rows = list(map(partial(row_of, folder=folder, sides=sides), names))
    print("\n".join(rows))
    sys.exit(any("FAILED" in row or "WRONG" in row for row in rows))


if __name__ == "__main__":
    main()
