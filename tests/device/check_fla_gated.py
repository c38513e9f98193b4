"""flash-linear-attention's gated operations, forward and backward, compared with its references in plain torch.

The gated delta rule in many forms, simple GLA and Comba:

    python -m tests.device.check_fla_gated [CASE ...] [--jobs 8] [--seconds 200]
    python -m tests.device.check_fla_gated --device cpu            without a GPU, tilework only

Every case runs in three processes: FLA's reference (in fp32), the kernels under `as_triton`, and the kernels with the
Triton that is installed. FLA refuses the backward pass on Hopper before Triton 3.7.1; what a side refuses is shown, and
its forward results still count. Each line has the largest relative distance from the reference for the results and for
the gradients, of tilework and of Triton. A distance is wrong if it is above LIMITS and more than twice Triton's. Needs
torch, fla (pip: fla-core) and einops. Kernels are not tuned.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.device.check_fla import reason, tune_less

LIMITS = {"result": 6e-3, "gradient": 2e-2}  # bf16 rounds to 4e-3; decays are differences of sums
SIDES = {"reference": ["-m", "tilework.as_triton"], "tilework": ["-m", "tilework.as_triton"], "triton": []}


@dataclass(frozen=True)
class Case:
    """The sizes and options of one call of an operation."""

    form: str  # chunk or fused_recurrent
    length: int
    rule: str = "gated_delta_rule"
    heads: int = 4
    value_heads: int = 4
    depth: int = 64
    values: int = 64
    batch: int = 2
    has_states: bool = False
    starts: tuple[int, ...] = ()  # of packed sequences
    dtype: str = "bfloat16"
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "chunk": Case("chunk", 256),
    "chunk_ragged": Case("chunk", 250, has_states=True),
    "chunk_d128": Case("chunk", 512, depth=128, values=128, has_states=True),
    "chunk_wide_values": Case("chunk", 192, depth=128, values=256),
    "chunk_d96": Case("chunk", 192, depth=96, values=96),
    "chunk_grouped_values": Case("chunk", 256, heads=2, value_heads=4, has_states=True),
    "chunk_norm": Case("chunk", 256, options={"use_qk_l2norm_in_kernel": True}),
    "chunk_packed": Case("chunk", 320, batch=1, starts=(0, 17, 150, 320), has_states=True),
    "chunk_values_first": Case("chunk", 256, has_states=True, options={"state_v_first": True}),
    "chunk_fp16": Case("chunk", 256, dtype="float16"),
    "chunk_simple_gla": Case("chunk", 250, rule="simple_gla", has_states=True),
    "chunk_comba": Case("chunk", 250, rule="comba", has_states=True),
    "recurrent": Case("fused_recurrent", 128),
    "recurrent_decode": Case("fused_recurrent", 1, batch=8, depth=128, values=128, has_states=True),
    "recurrent_grouped_values": Case("fused_recurrent", 64, heads=2, value_heads=4, has_states=True),
    "recurrent_norm": Case("fused_recurrent", 64, options={"use_qk_l2norm_in_kernel": True}),
    "recurrent_packed": Case("fused_recurrent", 96, batch=1, starts=(0, 5, 50, 96), has_states=True),
    "recurrent_fp32": Case("fused_recurrent", 128, dtype="float32"),
}


def tensors(case: Case, device: str) -> dict[str, Any]:
    """Return the inputs, the same on every side: keys are unit vectors, `g` logarithms of decays, `beta` rates."""
    import torch
    from torch.nn.functional import logsigmoid, normalize

    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    b, t, h, hv = case.batch, case.length, case.heads, case.value_heads
    dtype = getattr(torch, case.dtype)
    made = {
        "q": normal(b, t, h, case.depth).to(dtype),
        "k": normalize(normal(b, t, h, case.depth), dim=-1).to(dtype),
        "v": normal(b, t, hv, case.values).to(dtype),
        "g": logsigmoid(normal(b, t, hv)),
        "beta": normal(b, t, hv).sigmoid().to(dtype),
    }
    if case.rule == "simple_gla":
        del made["beta"]
    if case.rule == "comba":
        made["p"] = normalize(normal(b, t, h, case.depth), dim=-1).to(dtype)
    if case.has_states:
        count = max(1, len(case.starts) - 1) if case.starts else b
        shape = (case.values, case.depth) if case.options.get("state_v_first") else (case.depth, case.values)
        made["initial_state"] = normal(count, hv, *shape)
    return {name: one.to(device).requires_grad_() for name, one in made.items()}


def reference(case: Case, given: dict[str, Any]) -> list[Any]:
    """Return the outputs and the final states by FLA's reference."""
    import torch
    from torch.nn.functional import normalize

    form = "chunk" if case.rule == "comba" else "recurrent"  # Comba's recurrent reference differs from its chunked one
    step = getattr(import_module(f"fla.ops.{case.rule}.naive"), f"naive_{form}_{case.rule}")
    q, k = given["q"].float(), given["k"].float()
    if case.options.get("use_qk_l2norm_in_kernel"):
        q, k = normalize(q, dim=-1, eps=1e-6), normalize(k, dim=-1, eps=1e-6)
    repeats = case.value_heads // case.heads
    q, k = (one.repeat_interleave(repeats, 2) for one in (q, k))
    sequences = {**given, "q": q, "k": k}
    states = sequences.pop("initial_state", None)
    swapped = bool(case.options.get("state_v_first"))
    states = states.transpose(-1, -2) if states is not None and swapped else states
    outputs, finals = [], []
    for index, (first, end) in enumerate(pairwise(case.starts or (0, case.length))):
        parts = {name: one[:, first:end] for name, one in sequences.items()}
        state = states if states is None or not case.starts else states[index : index + 1]
        out, final = step(**parts, initial_state=state, output_final_state=True)
        outputs.append(out)
        finals.append(final.transpose(-1, -2) if swapped else final)
    return [torch.cat(outputs, 1), torch.cat(finals, 0)]


def by_kernels(case: Case, given: dict[str, Any]) -> list[Any]:
    """Return the outputs and the final states by FLA's kernels."""
    import torch

    operation = getattr(import_module(f"fla.ops.{case.rule}"), f"{case.form}_{case.rule}")
    starts = torch.tensor(case.starts, device=given["q"].device) if case.starts else None
    return list(operation(**given, output_final_state=True, cu_seqlens=starts, **case.options))


def run_case(name: str, side: str, path: str, device: str) -> None:
    """Write what one side computes into a file, the forward results first: the backward pass may be refused."""
    tune_less(1)
    import torch

    case = CASES[name]
    given = tensors(case, device)
    results = (reference if side == "reference" else by_kernels)(case, given)
    found = {"result": [one.detach().cpu() for one in results], "gradient": []}
    torch.save(found, path)
    if (case.form, case.rule) == ("fused_recurrent", "gated_delta_rule"):  # FLA has no backward pass of it
        return
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(one.shape, generator=generator).to(device) for one in results]
    torch.stack([(one.float() * weight).sum() for one, weight in zip(results, weights, strict=True)]).sum().backward()
    found["gradient"] = [one.grad.cpu() for one in given.values()]
    torch.save(found, path)


@dataclass
class Side:
    """What one side computed, and why it computed no more."""

    found: dict[str, list[Any]]
    refusal: str
    seconds: float


def run_side(name: str, side: str, path: str, given: argparse.Namespace) -> Side:
    """Run one side of a case in a process of its own."""
    import torch

    command = [sys.executable, *SIDES[side], "-m", "tests.device.check_fla_gated", "--device", given.device,
               "--run", name, side, path]  # fmt: skip
    environment = {**os.environ, "TRITON_CACHE_DIR": f"{path}.cache", "PYTHONWARNINGS": "ignore"}
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=given.seconds, env=environment)
        refusal = "" if done.returncode == 0 else reason(done.stdout + done.stderr)
    except subprocess.TimeoutExpired:
        refusal = f"not ready after {given.seconds:.0f} s"
    found = torch.load(path) if Path(path).exists() else {"result": [], "gradient": []}
    return Side(found, refusal, time.perf_counter() - start)


def compare(name: str, given: argparse.Namespace) -> str:
    """Return the line of one case."""
    with tempfile.TemporaryDirectory() as folder:
        names = [side for side in SIDES if side != "triton" or given.device != "cpu"]
        sides = {side: run_side(name, side, f"{folder}/{side}.pt", given) for side in names}
    wanted, ours = sides["reference"], sides["tilework"]
    triton = sides.get("triton", Side({"result": [], "gradient": []}, "", 0.0))
    shown, is_wrong = [], bool(wanted.refusal or ours.refusal)
    for kind, limit in LIMITS.items():
        one, other = (worst(side.found[kind], wanted.found[kind]) for side in (ours, triton))
        shown += [f"{'' if value is None else format(value, '.1e'):>10}" for value in (one, other)]
        is_wrong |= one is not None and not one <= max(limit, 2 * other if other is not None else 0.0)
    refusals = [f"{label}: {side.refusal}" for label, side in sides.items() if side.refusal]
    verdict = "WRONG" if is_wrong else "right"
    return f"{name:26}{''.join(shown)}{ours.seconds:8.1f}  {verdict}  {'; '.join(refusals)}".rstrip()


def worst(found: list[Any], wanted: list[Any]) -> float | None:
    """Return the largest relative distance of some tensors, or None if there are none."""
    return max(distance(one, other) for one, other in zip(found, wanted, strict=True)) if found else None


def distance(one: Any, other: Any) -> float:
    return float((one.double() - other.double()).norm() / (other.double().norm() + 1e-9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200, help="for one side of a case")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--run", nargs=3, metavar=("CASE", "SIDE", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        return run_case(*given.run, device=given.device)
    print(f"{'':26}{'results':>10}{'Triton':>10}{'gradients':>10}{'Triton':>10}{'seconds':>8}")
    rows: list[str] = []
    run: Callable[[str], str] = lambda name: compare(name, given)
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(run, given.names or CASES):
            print(row, flush=True)
            rows.append(row)
    wrong = sum("WRONG" in row for row in rows)
    print(f"{wrong} of {len(rows)} wrong")
    sys.exit(min(wrong, 99))


if __name__ == "__main__":
    main()
