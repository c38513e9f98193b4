"""Run generated matmul-like kernels as sm_90 code beside an oracle: warp specialization, persistent CTAs, copies by
TMA.

    python -m tests.fuzz.run_matmuls --cases 100  no GPU: the emulator with all its checks, beside the interpreter
    python -m tests.fuzz.run_matmuls --cases 400 --workers 12     a GPU: beside the same kernel without any of the three
    python -m tests.fuzz.run_matmuls --seed 17                    one case: its source, its launches, and what is wrong

(needs torch.) All must be equal. Only failures are printed, and the counts of what was exercised.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import tilework
from tests.fuzz.gpu import REFUSED
from tests.fuzz.matmul_pairs import Pair, PairGenerator
from tests.fuzz.matmuls import Case, Launch, Layout, MatmulGenerator, grid_of
from tilework import knobs
from tilework.errors import PerformanceWarning
from tilework.oracles.interpreter import InterpretedFunction
from tilework.tools.tensor_descriptor import TensorDescriptor

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "i8": torch.int8,
}
SMALLEST_ARRAY = 4096
GUARD = 64  # elements on both sides of an array


def array(layout: Layout, rows: int, columns: int, dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, int]:
    """(memory of a matrix with padding around it, the offset of its first element)."""
    row, column = layout.row, layout.column
    spans = [(max(rows, 1) + 300) * row, (max(columns, 1) + 300) * column]
    low = -min(0, *spans) + GUARD
    size = low + sum(max(span, 0) for span in spans) + GUARD + layout.offset + SMALLEST_ARRAY
    made = torch.randint(-2, 3, (size,), generator=torch.Generator().manual_seed(seed)).to(torch.float32).to(dtype)
    return made, -(-low // 16) * 16 + max(layout.offset, 0)


def arguments(case: Case, launch: Launch, number: int) -> tuple[dict[str, torch.Tensor], Callable[..., list[Any]]]:
    """The memory of a launch, and a function from this memory on some device to the arguments."""
    dtype, out = DTYPES[case.dtype], torch.float32
    if case.dtype in ("f16", "bf16"):
        out = DTYPES[case.dtype] if case.dtype == "f16" else torch.float32
    if case.dtype == "i8":
        out = torch.int32
    if case.alias == "c":
        out = dtype
    shapes = {"a": (launch.m, launch.k), "b": (launch.k, launch.n), "c": (launch.m, launch.n)}
    made, starts = {}, {}
    for name, shape in shapes.items():
        made[name], starts[name] = array(
            launch.layouts[name], *shape, out if name == "c" else dtype, case.seed * 10 + number + ord(name)
        )
    if case.alias == "b" and made["a"].numel() < made["b"].numel():
        made["a"] = array(launch.layouts["b"], *shapes["b"], dtype, case.seed)[0]
    made["d"] = torch.randint(-2, 3, (4096 + launch.n,)).to(torch.float16)
    made["e"] = torch.zeros(4096, dtype=torch.int32)
    made["e"][300] = 2
    size = (launch.m + case.tile[0]) * (launch.n + case.tile[1])
    made["g"] = torch.randint(-2, 3, (max(size, 1 << 16),)).to(torch.float16)
    made["o"] = torch.zeros(size)

    def given(memory: dict[str, torch.Tensor]) -> list[Any]:
        if case.alias == "b":
            memory["b"] = memory["a"]
        if case.alias == "c":
            memory["c"] = memory["a"]
        args: list[Any] = [memory[name][starts["a" if name == "c" and case.alias == "c" else name] :] for name in "abc"]
        where = launch.layouts
        if case.way == "descriptors":
            bm, bn, bk = case.tile
            a = torch.as_strided(args[0], (launch.m, launch.k), (where["a"].row, 1))
            args[0] = TensorDescriptor.from_tensor(a, [bm, bk])
            if where["b"].row == 1 and where["b"].column != 1:
                b = torch.as_strided(args[1], (launch.n, launch.k), (where["b"].column, 1))
                args[1] = TensorDescriptor.from_tensor(b, [bn, bk])
            else:
                b = torch.as_strided(args[1], (launch.k, launch.n), (where["b"].row, 1))
                args[1] = TensorDescriptor.from_tensor(b, [bk, bn])
        if case.stores:
            c = torch.as_strided(args[2], (launch.m, launch.n), (where["c"].row, 1))
            args[2] = TensorDescriptor.from_tensor(c, list(case.tile[:2])) if case.way == "descriptors" else args[2]
        strides = (
            where["a"].row,
            where["a"].column,
            where["b"].row,
            where["b"].column,
            where["c"].row,
            where["c"].column,
        )
        return [*args, memory["d"], memory["e"], memory["g"], memory["o"], launch.m, launch.n, launch.k, *strides]

    return made, given


def pair_arguments(pair: Pair, length: int) -> tuple[dict[str, torch.Tensor], Callable[..., list[Any]]]:
    """As `arguments`, of two products."""
    bm, bn, depth = pair.tile
    rows, keys = 2 * bm * pair.programs, max(length, 1) + bn
    draw = torch.Generator().manual_seed(pair.seed)
    shapes = {"q": (rows, depth), "k": (keys, depth), "v": (keys, depth), "d": (20000,)}
    made = {name: torch.randint(-2, 3, shape, generator=draw).half() for name, shape in shapes.items()}
    made |= {"o": torch.zeros(rows, depth), "o2": torch.zeros(64 + rows)}

    def given(memory: dict[str, torch.Tensor]) -> list[Any]:
        args: list[Any] = [memory[name] for name in ("q", "k", "v")]
        if pair.way == "descriptors":
            boxes = [(bm, depth), (bn, depth), (bn, depth)]
            args = [TensorDescriptor.from_tensor(array, list(box)) for array, box in zip(args, boxes, strict=True)]
        out = TensorDescriptor.from_tensor(memory["o"], [bm, depth]) if pair.stores else memory["o"]
        return [*args, out, memory["o2"], memory["d"], length]

    return made, given


def launches_of(case: Case | Pair) -> list[tuple[Any, ...]]:
    """(grid, memory, its arguments) of each launch."""
    if isinstance(case, Pair):
        return [((case.programs,), *pair_arguments(case, length)) for length in case.lengths]
    return [(grid_of(case, launch), *arguments(case, launch, number)) for number, launch in enumerate(case.launches)]


def constants_of(case: Case | Pair) -> dict[str, Any]:
    if isinstance(case, Pair):
        return dict(zip(("BM", "BN", "D"), case.tile, strict=True))
    return {**dict(zip(("BM", "BN", "BK"), case.tile, strict=True)), "GROUP": 3 + case.seed % 6}


def load(case: Case | Pair, folder: Path) -> Any:
    path = folder / f"products_{case.seed}.py"
    path.write_text(case.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def plain_launcher(kernel: Any) -> Callable[..., Any]:
    own = tilework.jit(kernel.fn)

    def launch(grid: tuple[int, ...], args: list[Any], constants: dict[str, Any]) -> None:
        with knobs.nvidia.scope():
            knobs.nvidia.warp_specialize, knobs.nvidia.persistent_programs = "0", False
            own[grid](*args, **{**constants, "auto_tma": False})

    return launch


def interpreted(kernel: Any) -> Callable[..., Any]:
    own = InterpretedFunction(kernel.fn)
    return lambda grid, args, constants: own[grid](*args, **constants)


def check(case: Case | Pair, folder: Path, seen: Counter[str]) -> list[str]:
    """Return the failure of a case."""
    kernel = load(case, folder)
    oracle = (plain_launcher if ON_GPU else interpreted)(kernel)
    problems: list[str] = []
    constants = {**constants_of(case), **case.options}
    for number, (grid, memory, given) in enumerate(launches_of(case)):
        ours = {name: value.to(DEVICE) for name, value in memory.items()}
        wanted = (
            {name: value.to(DEVICE) for name, value in memory.items()}
            if ON_GPU
            else {name: value.clone() for name, value in memory.items()}
        )
        try:
            oracle(grid, given(wanted), constants)
        except Exception as error:  # noqa: BLE001 - what the oracle does not run proves nothing
            seen[f"oracle: {type(error).__name__}"] += 1
            if os.environ.get("SHOW"):
                problems.append(f"launch {number}: oracle {type(error).__name__}: {str(error)[:1500]}")
            continue
        try:
            made = kernel[grid](*given(ours), **constants)
            if ON_GPU:
                torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001 - it is the result
            text = f"{type(error).__name__}: {error}"
            if any(words in text for words in ("OutOfResources", "DoesNotFit", "between the blocks of a cluster")):
                seen["does not fit"] += 1
                return problems
            if "num_ctas" in case.options and REFUSED.search(text):
                seen["refused"] += 1
                return problems
            problems.append(f"launch {number}: {text[:3000]}")
            if os.environ.get("SHOW"):
                problems.append(traceback.format_exc()[-1500:])
            continue
        count(made, seen)
        for name in memory:
            x, y = ours[name].cpu().float(), wanted[name].cpu().float()
            if not torch.equal(x.nan_to_num(7e4), y.nan_to_num(7e4)):
                wrong = (x.nan_to_num(7e4) != y.nan_to_num(7e4)).nonzero().flatten()
                start = wrong[0].item()
                problems.append(
                    f"launch {number}: {name}: {len(wrong)} of {x.numel()} wrong, "
                    f"first at {start}: {x[start].item()} for {y[start].item()}"
                )
    return problems


def count(made: Any, seen: Counter[str]) -> None:
    seen["launches"] += 1
    text = made.asm["ttgir"]
    seen["copies"] += bool(made.has_copies)
    seen["partitions"] += "ttg.warp_specialize" in text
    seen["staying"] += "%nsmid" in text
    seen["products of groups"] += "warp_group_dot" in text


def run(seeds: list[int], pairs: bool, verbose: bool, seconds: float) -> int:
    seen: Counter[str] = Counter()
    failures, done, end = 0, 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            if time.monotonic() > end:
                break
            done += 1
            case = PairGenerator(seed).pair() if pairs else MatmulGenerator(seed, ON_GPU).case()
            if verbose:
                print(case.source, case, sep="\n")
            try:
                problems = check(case, Path(name), seen)
            except Exception:  # noqa: BLE001 - the script's own
                problems = ["script: " + traceback.format_exc()[-1500:]]
            if problems:
                failures += 1
                print(f"seed {seed}: {case.way} {case.tile} {case.options}", *problems, sep="\n    ", flush=True)
    print(
        f"{failures} of {done} failed;",
        ", ".join(f"{name} {count}" for name, count in sorted(seen.items())),
        flush=True,
    )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--pairs", action="store_true", help="loops with two products")
    parser.add_argument("--seconds", type=float, default=1e9, help="no new case after so long")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore", PerformanceWarning)
    if not ON_GPU:
        os.environ["TILEWORK_DEVICE"] = "emulator:sm_90"
    if ON_GPU:
        tilework.set_allocator(lambda size, alignment, stream: torch.empty(size, device=DEVICE, dtype=torch.int8))
    if given.seed is not None:
        return run([given.seed], given.pairs, True, given.seconds)
    if given.workers == 1:
        return run(list(range(given.first, given.first + given.cases)), given.pairs, False, given.seconds)
    each = -(-given.cases // given.workers)
    own = [
        sys.executable,
        "-m",
        "tests.fuzz.run_matmuls",
        *(["--pairs"] if given.pairs else []),
        "--cases",
        str(each),
    ]
    own += ["--seconds", str(given.seconds)]
    started = [subprocess.Popen([*own, "--first", str(given.first + number * each)]) for number in range(given.workers)]
    return sum(process.wait() != 0 for process in started)


if __name__ == "__main__":
    sys.exit(min(main(), 99))
