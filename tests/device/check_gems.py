"""FlagGems (written for 5.0.2): its operators with tilework and (on a GPU) with Triton, compared with torch's own.

    python -m tests.device.check_gems [NAME ...] [--jobs 8] [--seconds 140]      on a GPU, both compilers
    python -m tests.device.check_gems [NAME ...] --device cpu                    on the CPU, tilework only

Inputs are the samples of torch's own operator database (`OpInfo`: odd shapes, empty and non-contiguous tensors, special
values), forward and backward, and those of `gems_cases.py`. `gems_beside.py` runs them: every operator of aten that
torch reaches and that FlagGems implements, both ways on copies of the same memory, arguments that change included; what
torch computes goes on. Random operators, and functions that torch does not have, are compared between compilers. One
configuration of each tuned kernel is used (`--configs` more). Processes have a few operators each; one that dies or
hangs is one row, and another goes on with the rest. Needs torch and flag_gems (with sqlalchemy, pyyaml, packaging);
torch's database asks for expecttest.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

KINDS = ("float32", "bfloat16", "int32", "float16", "int64", "bool", "uint8", "int16")
NAMES = """
nn.functional.group_norm remainder cos constant_pad_nd zero_ full_like kron slice randn corrcoef cummax aminmax sin
randn_like signbit allclose nn.functional.softshrink maximum round cosh t_copy nn.functional.interpolate cumsum hstack
logical_and linspace zeros slice_scatter nn.functional.binary_cross_entropy_with_logits amax nn.functional.hardsigmoid
tril
argmin floor_divide ldexp nonzero clamp atan minimum ones native_group_norm isinf combinations logical_xor
nn.functional.conv3d alias_copy special.i0e argmax nn.functional.conv1d logical_or resolve_conj multinomial logaddexp
log_softmax angle arange eye square nn.functional.prelu bmm sum select prod addr add clamp_min nn.functional.rrelu
bernoulli
nn.functional.margin_ranking_loss trace acos mean cumprod native_batch_norm sub masked_fill mm triu polar
nn.functional.pixel_unshuffle erf neg nn.functional.linear_cross_entropy tile nn.functional.scaled_dot_product_attention
diagonal fmin nn.functional.rms_norm exp2 sqrt index_put gt vstack repeat_interleave nn.functional.glu dot
take_along_dim
nn.functional.nll_loss nn.functional.selu mvlgamma log zeros_like stack diag_embed isclose nn.functional.normalize vdot
equal
unique index_add where i0 ones_like masked_select _softmax_backward_data cat gather nn.functional.batch_norm atan2 lerp
eq
quantile normal isneginf nn.functional.softplus logical_not count_nonzero all uniform rsqrt nn.functional.dropout
logspace
nn.functional.relu6 cummin bitwise_or nn.functional.gelu resolve_neg baddbmm lt logit diag pow min full
nn.functional.conv2d
addmv max_pool2d_with_indices_backward nn.functional.soft_margin_loss nn.functional.embedding index_select isnan div
nn.functional.gaussian_nll_loss select_scatter nn.functional.fractional_max_pool2d log10 var_mean isin digamma
bitwise_and
nn.functional.pad mul softmax isfinite nn.functional.avg_pool2d roll repeat logcumsumexp flip nn.functional.one_hot var
native_dropout_backward exponential nn.functional.layer_norm std mv expm1 scatter true_divide abs nn.functional.mse_loss
unfold addcmul addcdiv topk le bitwise_not nn.functional.silu fill sort hypot native_layer_norm sigmoid __rand__
nn.functional.threshold nan_to_num max addmm nn.functional.cosine_embedding_loss bincount exp masked_scatter reciprocal
nn.functional.celu ne tan nn.functional.elu ceil ge any tanh unique_consecutive nn.functional.relu conj_physical
deg2rad rad2deg erfinv frac fix trunc sign sgn sinc heaviside xlogy special.xlog1py logaddexp2 log2 acosh atanh amin
take expand unsqueeze permute
nn.functional.hardshrink nn.functional.hardtanh nn.functional.hardswish nn.functional.huber_loss
nn.functional.leaky_relu
nn.functional.pixel_shuffle nn.functional.smooth_l1_loss nn.functional.unfold nn.functional.max_pool2d
"""


def run_side(side: str, names: list[str], path: Path, options: Any, until: float) -> None:
    """Run `names` with one compiler, in as many processes as it takes."""
    how = ["-m", "tilework.as_triton"] if side == "tilework" else []
    left = list(names)
    while left and (time_left := until - time.monotonic()) > 5:
        command = [
            sys.executable,
            *how,
            "-m",
            "tests.device.check_gems",
            *left,
            "--run",
            str(path),
            "--device",
            options.device,
        ]
        command += ["--configs", str(options.configs), "--samples", str(options.samples), "--each", str(options.each)]
        command += ["--kinds", *options.kinds, "--part", f"{path.stem.split('-')[1]}/{options.jobs}"]
        folder = path.parent
        caches = {"TRITON_CACHE_DIR": f"{folder}/cache-{side}", "FLAGGEMS_CACHE_DIR": f"{folder}/gems-{path.stem}"}
        with path.with_suffix(".log").open("a") as log:
            try:
                code = subprocess.run(
                    command, stdout=log, stderr=log, timeout=time_left, env={**os.environ, **caches}
                ).returncode
            except subprocess.TimeoutExpired:
                return
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        ended = {row["op"] for row in rows if "end" in row}
        begun = [row["op"] for row in rows if "begin" in row and row["op"] not in ended]
        if code and begun:
            last = next(row for row in reversed(rows) if "begin" in row)
            if "key" in last and rows[-1] is last:
                with path.open("a") as output:
                    print(json.dumps({**last, "begin": None, "error": f"the process ended with {code}"}), file=output)
        elif code:
            print(f"{side}: no operator could be run, see {path.with_suffix('.log')}")
            return
        left = [name for name in left if name not in ended and name not in begun]


def rows_of(paths: list[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """The results by operator and case."""
    rows = [json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines()]
    return {(row["key"], row["case"]): row for row in rows if row.get("key") and not row.get("begin")}


def are_close(some: Any, others: Any) -> bool:
    """Values of two compilers that differ by rounding; for those that cannot be compared with torch."""
    if len(some) != len(others) or any(len(a) != len(b) for a, b in zip(some, others, strict=True)):
        return False
    pairs = [(a, b) for row, other in zip(some, others, strict=True) for a, b in zip(row, other, strict=True)]
    size = sum(abs(b) for _, b in pairs if math.isfinite(b)) / max(1, len(pairs))
    return all(a == b or (a != a and b != b) or abs(a - b) <= 0.02 * (abs(b) + size) for a, b in pairs)


def verdict_of(row: dict[str, Any]) -> str:
    if "error" in row:
        return "refused"
    return "random" if row["random"] else "right" if row["apart"] <= 1 else "wrong"


def report(folder: Path, sides: list[str]) -> None:
    found = {side: rows_of(sorted(folder.glob(f"{side}-*.jsonl"))) for side in sides}
    ours, theirs = found[sides[-1]], found[sides[0]]
    counts: Counter[str] = Counter()
    operators: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for index, row in ours.items():
        verdict, other = verdict_of(row), theirs.get(index)
        if len(sides) == 1:
            word = verdict
        elif other is None:
            word = f"{verdict}, not run with Triton"
        else:
            theirs_is = verdict_of(other)
            same = row.get("digest") == other.get("digest")
            word = f"{verdict} in both" if verdict == theirs_is else f"{verdict}, {theirs_is} with Triton"
            if verdict == theirs_is and verdict in ("wrong", "random"):
                close = are_close(row["values"], other["values"])
                word += ", the same bits" if same else ", close to Triton's" if close else ", APART"
            seconds[row["key"]][0] += row.get("seconds", 0)
            seconds[row["key"]][1] += other.get("seconds", 0)
        counts[word] += 1
        operators[word].add(row["key"])
        if verdict in ("wrong", "refused") or word.endswith("APART"):
            print(f"{word}: {row['kind']} {row['case'][:230]}: {row.get('error', row.get('apart'))}")
    for word, count in sorted(counts.items()):
        print(f"{count:6} cases of {len(operators[word]):4} operators: {word}")
    print(
        f"{len({key for key, _ in ours})} operators, {sum(row.get('seconds', 0) for row in ours.values()):.0f} s "
        "of calls"
    )
    slow = sorted(seconds.items(), key=lambda item: item[1][1] - item[1][0])
    print("seconds of calls with tilework and Triton:", *(f"{key} {a:.1f}/{b:.1f}" for key, (a, b) in slow[:25]))
    print(f"in all {sum(a for a, _ in seconds.values()):.0f}/{sum(b for _, b in seconds.values()):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--each", type=float, default=60, help="seconds of one operator")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--configs", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--keep", help="folder for what was found")
    parser.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("flag_gems") is None or importlib.util.find_spec("torch") is None:
        print("skipped: flag_gems or torch is not installed")
        return
    if options.run:
        from tests.device.gems_beside import run_operators  # lazily: torch may not be there

        run_operators(options.names, options)
        return
    until = time.monotonic() + options.seconds
    names = options.names or NAMES.split()
    sides = ["triton", "tilework"] if options.device == "cuda" else ["tilework"]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(options.jobs * len(sides)) as pool:
        folder = Path(options.keep or made)
        folder.mkdir(exist_ok=True)
        for job in range(options.jobs):
            for side in sides:
                mine = [*names[job :: options.jobs], *(["cases"] if not options.names else [])]
                pool.submit(run_side, side, mine, folder / f"{side}-{job}.jsonl", options, until)
        pool.shutdown()
        report(folder, sides)


if __name__ == "__main__":
    main()
