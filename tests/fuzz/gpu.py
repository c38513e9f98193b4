"""Generated kernels as PTX, or as LLVM text for AMD's GPUs, in the emulator with all its checks, against the
interpreter.

python -m tests.fuzz.gpu --kernels 300 --target cuda:90      progress, then the failures, the most frequent kind first
python -m tests.fuzz.gpu --seed 17 --target hip:gfx942       one kernel: its source, and what is wrong with it

The seed decides the number of warps too. Multiplications and additions are not fused, so that floats differ only by
what elementary functions and the order of sums allow. `--ptxas` assembles every kernel as well, `--descriptors`
generates kernels that make, carry and share descriptors and the memory behind them, `--python` those that leave loops,
take parts of blocks and so on, `--loops` short ones of nested loops with bounds, masks and addresses of all kinds,
`--strides` tiles that go backwards and have edges everywhere, `--tiles` odd tiles with many uses each. With `--ctas 2`
two blocks run each program; kernels whose blocks would have to exchange something are refused, and replaced by others.

Generated kernels read and write the same global memory without barriers, in one program and in several: races of
threads in global memory are not looked at, and where there are some, another result is no failure. Shared memory is the
compiler's own, and so is the order of copies by TMA and of the threads of the same program. Nor is there an order among
the elements of one atomic operation that meet at the same address, or among those of two in the blocks of a cluster.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.comparison import Unordered, arguments, interpreted, problem_with
from tests.fuzz.cpu import kind
from tests.fuzz.kernels import Kernel, generate_kernel
from tests.fuzz.run import compile_generated
from tests.targets.gpu_tiles import CPU as CHIPS
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.findings import Finding
from tilework.oracles.emulator.llvm.run_llvm import run as run_llvm
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.targets.amd import code_object
from tilework.targets.amd import pipeline as amd_pipeline
from tilework.targets.amd.lower.emit import emit_module as emit_for_amd
from tilework.targets.nvidia import pipeline as nvidia_pipeline
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

WARPS = (1, 2, 4, 8)
PIPELINES = {"cuda": nvidia_pipeline.ttgir_pipeline, "hip": amd_pipeline.ttgir_pipeline}
HOPPER = Target.parse("cuda:90")
REFUSED = re.compile(r"([^:\n]*) cannot be compiled for")  # what blocks of a cluster would have to exchange
MOST_REFUSED = 10  # for each kernel that is wanted
BLOCK = re.compile(r"block (\(\d+, \d+, \d+\))")
ATOMIC = re.compile(r"tl\.atomic_(\w+)\([^\n]*?\b(io_\w+)")
MEETING = re.compile(r"tl\.atomic_\w+\(.*// 2")  # atomics of which two elements have one address


def warps_of(seed: int) -> int:
    return WARPS[seed * 7 // 3 % len(WARPS)]


def compiled(kernel: Kernel, folder: Path, warps: int, target: Target, ctas: int = 1) -> str:
    """The PTX or LLVM text of a generated kernel, each program of which is run by `ctas` blocks."""
    numbers = {name: x for name, x in arguments(kernel, kernel.seed).items() if name not in kernel.inputs}
    multiples = [name for name, x in numbers.items() if isinstance(x, int) and not isinstance(x, bool) and x % 16 == 0]
    divisible = (*(name for name in kernel.divisible if name in kernel.inputs), *multiples)
    ranges = tuple(kernel.inputs) if kernel.seed % 2 else ()  # which AMD's GPUs access through buffers
    module = compile_generated(replace(kernel, divisible=divisible), folder, target.name, ranges)
    passes = PIPELINES[target.backend](target, warps, **({"num_ctas": ctas} if ctas > 1 else {}))
    run_pipeline(module, [one for item in (*ttir_pipeline(target), *passes) for one in parse_pipeline(item)])
    if target.backend == "hip":
        return emit_for_amd(module, target, fuses=False)
    return to_ptx(emit_module(module, kernel.capability, fuses=False), PtxSettings(CHIPS[kernel.capability], 88))


def emulate(
    kernel: Kernel, text: str, args: dict[str, Any], warps: int, target: Target, ctas: int = 1
) -> list[Finding]:
    """Run the code on the arrays of `args`, which change; what the checker found."""
    if target.backend == "hip":
        facts = code_object.metadata(text)
        scratch = np.zeros(max(16, facts.get("global_scratch_size", 0) * kernel.grid[0]), np.uint8)
        values = [*(args[name] for name in kernel.signature), scratch, None]
        threads = target.warp_size * warps
        return run_llvm(text, values, kernel.grid, threads, facts.get("shared", 0), str(target.arch), collect=True)
    device = Device(check=True, collect=True)
    arrays = {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    wholes = {id(whole): whole for whole in map(whole_of, arrays.values())}  # arrays may overlap
    placed = {position: device.upload(whole) for position, whole in wholes.items()}
    addresses = {
        name: placed[id(whole_of(value))] + value.ctypes.data - whole_of(value).ctypes.data
        for name, value in arrays.items()
    }
    facts = ptx_text.metadata(text)
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * kernel.grid[0] * ctas))
    values = [addresses.get(name, args[name]) for name in kernel.signature]
    function = device.load(text).function("kernel")
    device.launch(function, kernel.grid[0] * ctas, 32 * warps, [*values, scratch, 0], facts.get("shared", 0))
    device.synchronize()
    for name, address in addresses.items():
        args[name][...] = device.download(address, args[name])
    assert device.checker is not None
    return device.checker.findings


def whole_of(array: Any) -> Any:
    """The array that owns the memory."""
    return array if array.base is None else array.base


def compare(kernel: Kernel, folder: Path, target: Target, assembles: bool = False, ctas: int = 1) -> str | None:
    """Return the first difference from the interpreter, or None; raise `Unordered` if the kernel has no single
    result."""
    warps = warps_of(kernel.seed)
    text = compiled(kernel, folder, warps, target, ctas)
    if assembles and (problem := refused(text, kernel.capability)):
        return problem
    got = arguments(kernel, kernel.seed)
    findings = emulate(kernel, text, got, warps, target, ctas)
    own = [finding for finding in findings if is_ours(finding)]
    if len(own) < len(findings):  # copies of a racing value in several warps may race in shared memory, too
        raise Unordered
    if own:
        where = own[0].sites[0].text.split()[0] if own[0].sites else ""
        return f"{own[0].kind}: {where}\n{own[0]}"
    wanted = interpreted(kernel, folder)
    has_barriers = ctas == 1 and "tl.debug_barrier()" in kernel.source
    if MEETING.search(kernel.source) or (ctas > 1 and has_unordered_atomics(kernel)):
        raise Unordered
    problem = problem_with(kernel, folder, got, wanted)
    if problem and has_unordered_atomics(kernel) and not has_barriers:
        raise Unordered
    if problem and target.backend == "hip" and finds_races(kernel, folder, warps):
        raise Unordered
    return problem


def has_unordered_atomics(kernel: Kernel) -> bool:
    """Return True if atomics of two kinds change one array: without a barrier, threads and blocks do so in any
    order."""
    kinds = {(kind, array) for kind, array in ATOMIC.findall(kernel.source)}
    return len({array for _, array in kinds}) < len(kinds)


def finds_races(kernel: Kernel, folder: Path, warps: int) -> bool:
    """Return True if threads race in global memory, which only the emulator of PTX detects."""
    text = compiled(kernel, folder, warps, HOPPER)
    return bool(emulate(kernel, text, arguments(kernel, kernel.seed), warps, HOPPER))


def depends_on_order(kernel: Kernel, folder: Path) -> bool:
    """Return True if programs have atomic operations whose results depend on their order."""
    module = compile_generated(kernel, folder)
    programs = list(np.ndindex(kernel.grid))
    found = []
    for order in (programs, programs[::-1]):
        args = arguments(kernel, kernel.seed)
        evaluate(module, "kernel", list(args.values()), kernel.grid, program_ids=order)
        found.append([args[name].tobytes() for name in kernel.inputs])
    return found[0] != found[1]


def is_ours(finding: Finding) -> bool:
    """Return True if the compiler should have prevented it: anything in shared memory, and TMA within one program."""
    if " global address " not in finding.what:
        return True
    return finding.kind != "race" and len(set(BLOCK.findall(finding.what))) == 1


def refused(text: str, arch: int) -> str | None:
    """Return the errors of ptxas for the PTX."""
    done = subprocess.run(
        ["ptxas", f"-arch={CHIPS[arch]}", "-", "-o", "/dev/null"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"ptxas: {done.stderr.strip()[:300]}" if done.returncode else None


class Refused(Exception):
    """The compiler has no code for a cluster of blocks that run this kernel."""


def problem_of(
    seed: int, target: str, folder: Path, assembles: bool = False, ctas: int = 1, **about: bool
) -> str | None:
    """`compare` of one seed; errors of the compiler and of the emulator are problems too, but `Refused` is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compare(generated(seed, target, **about), folder, Target.parse(target), assembles, ctas)
        except Unordered:
            return None
        except Exception as error:
            if ctas > 1 and (why := REFUSED.search(str(error))):
                raise Refused(why[1]) from None
            last = (str(error).strip() or "no message").splitlines()[-1]
            return f"{type(error).__name__}: {last}\n{error}"


def generated(seed: int, target: str, **about: bool) -> Kernel:
    return generate_kernel(seed, int(target[5:]) if target.startswith("cuda:") else 90, **about)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--target", default="cuda:90", help="cuda:80, cuda:90, or one of AMD's: hip:gfx942")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--ptxas", action="store_true")
    parser.add_argument("--ctas", type=int, default=1, help="blocks for each program, in a cluster")
    parser.add_argument("--descriptors", action="store_true", help="mostly statements about descriptors")
    parser.add_argument("--odd", action="store_true", help="sizes that are no powers of two")
    parser.add_argument(
        "--loops", action="store_true", help="mostly loops, with all kinds of bounds and carried values"
    )
    parser.add_argument(
        "--hashes", action="store_true", help="integers that overflow, in addresses, masks and divisors"
    )
    parser.add_argument("--strides", action="store_true", help="tiles with strides of any sign, masks at every edge")
    parser.add_argument("--tiles", action="store_true", help="odd tiles of which each has many uses")
    parser.add_argument("--python", action="store_true", help="mostly Python that Triton does not have")
    args = parser.parse_args(words)
    about = {
        "about_descriptors": args.descriptors,
        "about_python": args.python,
        "about_loops": args.loops,
        "about_hashes": args.hashes,
        "about_strides": args.strides,
        "about_tiles": args.tiles,
        "odd": args.odd,
    }
    start = time.perf_counter()
    failures: dict[str, list[int]] = defaultdict(list)
    refusals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.seed is not None:
            source = generated(args.seed, args.target, **about).source
            print(source[source.index("@jit\ndef kernel") :], f"warps = {warps_of(args.seed)}")
            try:
                problem = problem_of(args.seed, args.target, folder, args.ptxas, args.ctas, **about)
            except Refused as error:
                problem = f"refused: {error}"
            print(problem or "no difference")
            return int(problem is not None)
        count, end = 0, args.first + args.kernels * (MOST_REFUSED if args.ctas > 1 else 1)
        for seed in range(args.first, end):
            try:
                problem = problem_of(seed, args.target, folder, args.ptxas, args.ctas, **about)
            except Refused as error:
                refusals[str(error)] += 1
                continue
            if problem is not None:
                failures[kind(problem)].append(seed)
                print(f"seed {seed}: {problem}"[:400], flush=True)
            count += 1
            if count % 25 == 0 or count == args.kernels:
                bad, others = sum(map(len, failures.values())), sum(refusals.values())
                reported = f", {others} others refused" if others else ""
                seconds = time.perf_counter() - start
                print(f"{count}/{args.kernels} kernels, {bad} failures{reported}, {seconds:.0f} s", flush=True)
            if count == args.kernels:
                break
    for name, times in refusals.most_common():
        print(f"{times:5}  refused: {name}")
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5}  {name}   seeds {', '.join(map(str, seeds[:8]))}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
