"""Machine code of real kernels, ours beside Triton's, without a GPU: instructions, registers, spills, occupancy.

    TRITON_PYTHON=/path/to/python python -m benchmarks.static_kernels FOLDER        a corpus (see corpus.py)
    python -m benchmarks.static_kernels FOLDER --only softmax --json now.json       launches with a word; save counts
    python -m benchmarks.static_kernels FOLDER --against before.json                ours now beside ours then
    python -m benchmarks.static_kernels FOLDER --triton before.json                 Triton's counts of that run

Every launch of the corpus is specialised as the launcher specialises it and compiled for sm_90. One ptxas with the same
options assembles the PTX of both compilers, so differences are those of the code that it gets; our cubin is the variant
that our compiler has chosen. Without TRITON_PYTHON
only our code is counted. `--keep DIR` leaves PTX and cubins in a folder.

`occupancy` is the blocks of a kernel that fit into a multiprocessor of an H200. `loops` are backward branches; spills
are the instructions LDL and STL. Compilations are named like launches; equal compilations count once.
"""

import argparse
import importlib
import json
import math
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import Launch, Parameter, read, type_of
from benchmarks.sass_counts import Listing, listing, opcode

LIMIT = 300  # seconds of a compilation
WIDTHS = {"": 4, "64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}


@dataclass
class Counts:
    """Counts of a kernel's machine code, each instruction once, and the time of its compilation."""

    instructions: int
    registers: int
    spills: int
    shared: int  # bytes
    threads: int
    occupancy: int  # blocks per multiprocessor
    loops: int
    loads: int  # of global memory, copies included
    load_bytes: int  # that one thread reads, copies excluded
    stores: int
    store_bytes: int
    shared_loads: int
    shared_stores: int
    mufu: int
    shuffles: int
    barriers: int
    tensor: int
    seconds: float
    widths: dict[str, int]  # of loads and stores of global memory: {"LDG.128": 4}


def width_of(name: str) -> tuple[str, int]:
    """Return `("LDG.128", 16)` for LDG.E.128.CONSTANT."""
    base, *suffixes = name.split(".")
    found = next((one for one in suffixes if one in WIDTHS), "")
    return f"{base}.{found or 32}", WIDTHS[found]


def counts_of(listed: Listing, shared: int, threads: int, seconds: float) -> Counts:
    from tilework.analysis.cost import resident_blocks  # lazily: Triton's interpreter has no tilework
    from tilework.targets.nvidia.arch import target_of

    held = resident_blocks(target_of("sm_90"), listed.registers, shared, -(-threads // 32))
    assert held is not None
    names = [opcode(line) for line in listed.code]
    of = Counter(name.split(".")[0] for name in names)
    widths = [width_of(name) for name in names if name.split(".")[0] in ("LDG", "LD", "STG", "ST")]
    loads = [size for name, size in widths if name.startswith("LD")]
    stores = [size for name, size in widths if name.startswith("ST")]
    return Counts(
        instructions=len(names),
        registers=listed.registers,
        spills=of["LDL"] + of["STL"],
        shared=shared,
        threads=threads,
        occupancy=held.blocks,
        loops=len(listed.loops()),
        loads=len(loads) + of["LDGSTS"] + of["UTMALDG"] + of["UBLKCP"],
        load_bytes=sum(loads),
        stores=len(stores),
        store_bytes=sum(stores),
        shared_loads=of["LDS"] + of["LDSM"],
        shared_stores=of["STS"] + of["STSM"],
        mufu=of["MUFU"],
        shuffles=of["SHFL"] + of["REDUX"],
        barriers=of["BAR"],
        tensor=sum(count for name, count in of.items() if re.fullmatch("[HQI]G?MMA", name)),
        seconds=round(seconds, 3),
        widths=dict(sorted(Counter(name for name, _ in widths).items())),
    )


def compile_launches(compiler: str, folder: Path) -> None:
    """The child process: compile the launches whose indices come as lines, print a line of JSON for each."""
    launches, out, sys.stdout = read(folder), sys.stdout, sys.stderr  # kernels print while they are compiled
    made = importlib.import_module(f"{compiler}.compiler")
    where = "tilework.targets.base" if compiler == "tilework" else "triton.backends.compiler"
    target = importlib.import_module(where).GPUTarget("cuda", 90, 32)
    for line in sys.stdin:
        launch = launches[int(line)]
        try:
            kernel = launch.load(compiler)
            source = made.ASTSource(kernel, *launch.specialization(kernel))
            start = time.perf_counter()
            binary = made.compile(source, target=target, options=dict(launch.options))
            seconds = time.perf_counter() - start
            result = {"ptx": binary.asm["ptx"], "shared": binary.metadata.shared, "seconds": seconds}
            if compiler == "tilework":
                result["cubin"] = b64encode(binary.asm["cubin"]).decode()
        except Exception as error:  # whatever a kernel runs into is its result
            result = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(result), file=out, flush=True)


def compilation_key(launch: Launch) -> str:
    """Return a text that launches with the same compilation share."""

    def constant_or_type(value: Any, param: Parameter) -> Any:
        if isinstance(value, tuple):
            return [constant_or_type(item, param) for item in value]
        type, is_multiple = ("constexpr", False) if param.is_constexpr else type_of(value, param)
        return repr(value) if type == "constexpr" else [type, is_multiple]

    values = [constant_or_type(launch.arguments[param.name], param) for param in launch.parameters]
    return json.dumps([launch.module, launch.function, values, launch.options], sort_keys=True)


class Compiler:
    """A child process that compiles rows; a new one is started behind a crash."""

    def __init__(self, name: str, python: str, folder: Path) -> None:
        self.name, self.cache = name, tempfile.TemporaryDirectory(prefix="static-kernels-")
        self.command = [python, "-m", "benchmarks.static_kernels", str(folder.absolute()), "--compiler", name]
        self.process: Any = None

    def compile(self, index: int) -> dict[str, Any]:
        if self.process is None:
            env = os.environ | {"TRITON_CACHE_DIR": self.cache.name, "TRITON_ALWAYS_COMPILE": "1"}
            env["TILEWORK_PTXAS_TIMEOUT"] = str(LIMIT // 2)  # a killed compiler leaves its ptxas running
            root = Path(__file__).parent.parent
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(self.command, cwd=root, env=env, text=True, **pipes)
        timer = threading.Timer(LIMIT, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{index}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        if not line:
            code, self.process = self.process.wait(), None
            return {"error": f"the compiler ended with code {code}"}
        return json.loads(line)


def measured(name: str, launch: Launch, made: dict[str, Any], keep: Path | None) -> Counts | str:
    """Assemble and count what a compiler made of a launch; or its error."""
    from tilework import knobs
    from tilework.errors import PTXASError
    from tilework.targets.nvidia.cubin import CubinSettings, to_cubin

    if "error" in made:
        return made["error"]
    settings = CubinSettings("sm_90a", launch.options.get("enable_fp_fusion", True))
    try:
        given = made.get("cubin")
        cubin = b64decode(given) if given else to_cubin(made["ptx"], launch.function, settings, knobs.nvidia.ptxas.path)
    except PTXASError as error:
        return str(error)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        file = re.sub(r"[^\w.-]", "_", name)
        (keep / f"{file}.ptx").write_text(made["ptx"])
        (keep / f"{file}.cubin").write_bytes(cubin)
    threads = re.search(r"\.reqntid (\d+)", made["ptx"])
    return counts_of(listing(cubin), made["shared"], int(threads[1]) if threads else 1024, made["seconds"])


GROUPS: dict[str, Callable[[Counts, Counts], bool]] = {  # ours, the other's
    "over 1.25x the instructions": lambda a, b: a.instructions > 1.25 * b.instructions,
    "over 1.25x the registers": lambda a, b: a.registers > 1.25 * b.registers,
    "new spills": lambda a, b: a.spills > b.spills,
    "fewer threads on a multiprocessor": lambda a, b: a.occupancy * a.threads < b.occupancy * b.threads,
    "more shared memory": lambda a, b: a.shared > b.shared,
    "more loops": lambda a, b: a.loops > b.loops,
    "a loop where there was none": lambda a, b: a.loops > 0 == b.loops,
    "more global loads": lambda a, b: a.loads > b.loads,
    "more global stores": lambda a, b: a.stores > b.stores,
    "more shared-memory accesses": lambda a, b: (
        a.shared_loads + a.shared_stores > 1.25 * (b.shared_loads + b.shared_stores)
    ),
    "more MUFU": lambda a, b: a.mufu > 1.1 * b.mufu,
    "more shuffles": lambda a, b: a.shuffles > 1.1 * b.shuffles,
    "more barriers": lambda a, b: a.barriers > b.barriers,
}
SUMS = ("instructions", "spills", "loads", "stores", "shared_loads", "shared_stores", "mufu", "shuffles", "seconds")
MEANS = ("instructions", "registers", "occupancy", "seconds")
SHOWN = ("instructions", "registers", "spills", "shared", "occupancy", "loops", "loads", "stores", "mufu", "shuffles")


def compared(ours: dict[str, Counts], others: dict[str, Counts], label: str) -> None:
    """Print sums, geometric means and outliers by group."""
    names = [name for name in ours if name in others]
    pairs = [(ours[name], others[name]) for name in names]
    if not pairs:
        return print("nothing was compiled by both")
    print(f"{len(pairs)} compilations, ours beside {label}")
    for field in SUMS:
        a, b = (sum(getattr(pair[side], field) for pair in pairs) for side in (0, 1))
        print(f"  sum of {field:16}{a:12.6g}{b:12.6g}   {f'{a / b:.3f}x' if b else ''}")
    for field in MEANS:
        ratios = [getattr(a, field) / getattr(b, field) for a, b in pairs if getattr(b, field) and getattr(a, field)]
        print(f"  mean of {field:15}{math.exp(sum(map(math.log, ratios)) / len(ratios)):24.3f}x")
    for group, is_outlier in GROUPS.items():
        found = [name for name in names if is_outlier(ours[name], others[name])]
        print(f"\n{group}: {len(found)}")
        for name in sorted(found, key=lambda name: -ours[name].instructions / others[name].instructions):
            a, b = ours[name], others[name]
            changed = [f for f in SHOWN if getattr(a, f) != getattr(b, f)]
            print(f"  {name:60} " + ", ".join(f"{f} {getattr(a, f)}/{getattr(b, f)}" for f in changed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the corpus")
    parser.add_argument("--only", metavar="WORD", default="", help="launches whose name has the word")
    parser.add_argument("--json", metavar="FILE", type=Path, help="save the counts")
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare with ours in a saved file")
    parser.add_argument("--triton", metavar="FILE", type=Path, help="take Triton's counts from a saved file")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave PTX and cubins there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compiler", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compiler:
        return compile_launches(given.compiler, given.folder)
    launches = read(given.folder)
    names = {name: index for name, index in compilations(launches).items() if given.only in name}
    pythons = {"tilework": sys.executable}
    if not given.against and not given.triton and (python := os.environ.get("TRITON_PYTHON")):
        pythons["triton"] = python
    found = {compiler: count_all(names, launches, compiler, python, given) for compiler, python in pythons.items()}
    counts = {
        which: {name: one for name, one in made.items() if isinstance(one, Counts)} for which, made in found.items()
    }
    for which, made in found.items():
        for name, one in made.items():
            if isinstance(one, str):
                print(f"{which} refuses {name}: {one.splitlines()[0][:200]}")
    if given.triton:
        counts["triton"] = read_counts(given.triton, "triton")
    if given.json:
        saved = {which: {name: asdict(one) for name, one in made.items()} for which, made in counts.items()}
        given.json.write_text(json.dumps(saved, indent=1))
    if given.against:
        counts["before"] = read_counts(given.against, "tilework")
    for which in list(counts)[1:]:
        compared(counts["tilework"], counts[which], which)


def read_counts(file: Path, compiler: str) -> dict[str, Counts]:
    return {name: Counts(**fields) for name, fields in json.loads(file.read_text())[compiler].items()}


def compilations(launches: list[Launch]) -> dict[str, int]:
    """Return the index of a launch for each compilation, by a name of its own."""
    first: dict[str, int] = {}
    for index, launch in enumerate(launches):
        first.setdefault(compilation_key(launch), index)
    found: dict[str, int] = {}
    used: Counter[str] = Counter()
    for index in first.values():
        name = f"{launches[index].library} {launches[index].name}"
        used[name] += 1
        found[name if used[name] == 1 else f"{name} #{used[name]}"] = index
    return found


def count_all(
    names: dict[str, int], launches: list[Launch], compiler: str, python: str, given: argparse.Namespace
) -> dict[str, Counts | str]:
    """Compile and count launches, `--jobs` at a time."""
    idle: queue.SimpleQueue[Compiler] = queue.SimpleQueue()
    for _ in range(given.jobs):
        idle.put(Compiler(compiler, python, given.folder))

    def count(name: str) -> Counts | str:
        child = idle.get()
        try:
            made = child.compile(names[name])
        finally:
            idle.put(child)
        return measured(name, launches[names[name]], made, given.keep / compiler if given.keep else None)

    with ThreadPoolExecutor(given.jobs) as pool:
        return dict(zip(names, pool.map(count, names), strict=True))


if __name__ == "__main__":
    main()
