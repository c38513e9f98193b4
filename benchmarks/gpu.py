"""Kernels on an NVIDIA GPU beside Triton's code for the same source and torch's routine for the same work (`make
bench-gpu`).

    python -m benchmarks.gpu --rows matmul attention       rows whose name has one of the words
    python -m benchmarks.gpu --rows "D64 full" --knob TILEWORK_WARP_SPECIALIZE=1 --knob A=1,B=0
                                                           ours once more for each --knob, with these variables set
    python -m benchmarks.gpu --rows histogram --ncu  what limits one launch of the best configuration, in ncu's words
    python -m benchmarks.gpu --emulate  no GPU: values of every row at a small size, in the emulator; with
                                                           TILEWORK_DEVICE=emulator:gfx942 as AMD's
    python -m benchmarks.gpu --check  the same on the GPU, all configurations; `tests/device/check_sanitize.py`
                                                           runs it in compute-sanitizer

Each compiler runs every configuration of a row (`gpu_rows.py`), looks at the values, and keeps its fastest one; what a
compiler refuses is printed. Then torch, Triton and ours are timed in turns: the figures are the medians of the even and
of the odd turns, which shows the noise. A time is the median of launches, with the L2 cache emptied before each.
Kernels are compiled before in several processes, which share a cache. A row that ends its process (a kernel that kills
the context), or does not end, costs that row.
"""

import argparse
import importlib
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.compiler_of_kernels import load

if TYPE_CHECKING:
    from benchmarks.gpu_rows import Config, Row

COMPILERS = ("tilework", "triton")
SCREEN_MS, BURST_MS = 15, 30
TURNS = 8  # of torch, Triton and ours, each for a burst: a GPU at its limit of power slows down during a longer one
COPY_TURNS = (
    24  # beside a copy, where a hundredth is looked at: two turns of layernorm differ by 1.7 %, one standard deviation
)
ROW_SECONDS = 100
CHECKED = 2  # configurations of a row
WARMERS = 8  # processes that compile
CLOSE = 1.1  # configurations that are so near to the fastest one are timed again,
# those of all compilers in so many turns, there and back: what comes first finds a cool GPU, where joules do not matter
SCREENS = 4
BEST = "    best: "
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "WarpStateStats", "Occupancy")
SAID = (
    "Throughput",
    "Duration",
    "SM Frequency",
    "Elapsed Cycles",
    "Registers Per",
    "Achieved Occ",
    "Theoretical Occ",
    "Warp Cycles Per Issued",
    "OPT",
    "INF",
    "WRN",
)


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def standard_error(file: Any) -> Iterator[None]:
    """Redirect the standard error of this process and its libraries into a file: compilers print whole modules
    there."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def why(error: Exception, printed: str) -> str:
    """The line that says what a compiler did not like."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    reported = [line.strip() for line in printed.splitlines() if "Assertion" in line or " error: " in line]
    return " ".join([f"{type(error).__name__}: {lines[-1][:160]}", *(line[-160:] for line in reported[:1])])


class Variant:
    """One compiler with some environment variables, and what it makes of a row."""

    def __init__(self, compiler: str, settings: Mapping[str, str] | None = None) -> None:
        self.compiler, self.settings = compiler, dict(settings or {})
        if self.settings:
            self.settings["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
        self.files: dict[str, ModuleType] = {}
        self.descriptor = importlib.import_module(f"{compiler}.tools.tensor_descriptor").TensorDescriptor
        self.best: Callable[[], Any] | None = None
        self.config: Config = {}
        self.times: dict[int, list[float]] = {}  # of configurations

    def kernel(self, row: "Row") -> Any:
        if row.file not in self.files:
            self.files[row.file] = load(self.compiler, row.file)
        return getattr(self.files[row.file], row.kernel)

    def launch(self, row: "Row", config: "Config") -> Callable[[], Any]:
        """A launch of a configuration."""
        kernel = self.kernel(row)[row.grid(config)]
        args, settings = row.args(config, self.descriptor), {**row.constants, **config}
        return lambda: kernel(*args, **settings)

    def warm(self, row: "Row") -> None:
        """Compile every configuration, in the cache."""
        for config in row.configs:
            try:
                args = row.args(config, self.descriptor)
                self.kernel(row).warmup(*args, grid=(1,), **row.constants, **config)
            except Exception:  # noqa: BLE001 - it is met again, and told, when the row is measured
                continue

    def screen(self, row: "Row", expected: Any, bench: Callable[[Callable[[], Any]], float]) -> list[str]:
        """Time the configurations whose values are right, and forget those that are slow; what was refused."""
        times: dict[int, list[float]] = {}
        said: list[str] = []
        for number, config in enumerate(row.configs):
            with tempfile.TemporaryFile("w+", errors="replace") as printed:
                try:
                    with standard_error(printed):
                        launch = self.launch(row, config)
                        row.result.zero_()
                        launch()
                        wrong = error_of(row, expected)
                    if wrong is None:
                        times[number] = [bench(launch)]
                except Exception as error:  # noqa: BLE001 - whatever it is, it is the row's result
                    printed.seek(0)
                    wrong = why(error, printed.read())
            if wrong is not None:
                said.append(f"{shown(config)}: {wrong}")
        fastest = min((found[0] for found in times.values()), default=0)
        self.times = {number: found for number, found in times.items() if found[0] <= CLOSE * fastest}
        return said

    def decide(self, row: "Row") -> None:
        """Keep the fastest one of the turns; the first time is that of the screen."""
        if self.times:
            best = min(self.times, key=lambda number: statistics.median(self.times[number][1:] or self.times[number]))
            self.config = row.configs[best]
            self.best = self.launch(row, self.config)


def choose(
    variants: Sequence[Variant],
    row: "Row",
    expected: Any,
    milliseconds: Callable[[int], Callable[[Callable[[], Any]], float]],
) -> list[list[str]]:
    """Find the fastest configuration of each; what each has refused."""
    said: list[list[str]] = []
    for variant in variants:
        with environment(variant.settings):
            said.append(variant.screen(row, expected, milliseconds(SCREEN_MS)))
    again = [(variant, number) for variant in variants if len(variant.times) > 1 for number in variant.times]
    for turn in range(SCREENS):
        for variant, number in again[:: -1 if turn % 2 else 1]:
            with environment(variant.settings):
                variant.times[number].append(milliseconds(BURST_MS)(variant.launch(row, row.configs[number])))
    for variant in variants:
        variant.decide(row)
    return said


def shown(config: "Config") -> str:
    return " ".join(f"{name}={value}" for name, value in config.items())


def error_of(row: "Row", expected: Any) -> str | None:
    """Return the error of a result, relative to the largest value."""
    found, wanted = row.result.to(expected.device).float(), expected.float()
    error = ((found - wanted).abs().max() / wanted.abs().max()).item()
    return None if error <= row.tolerance else f"WRONG by {error:.2g}"


def median_ms(milliseconds: int) -> Callable[[Callable[[], Any]], float]:
    from tilework.testing import do_bench  # loads the compiler

    return lambda call: do_bench(call, warmup=milliseconds // 4, rep=milliseconds, return_mode="median")


def copy_of(torch: Any, row: "Row") -> Callable[[], Any]:
    """A copy on the device that reads and writes as many bytes in all: the row's own tensors, if they are as large.

    Where tensors lie made the same copy of 67 MB up to 3 % slower (`results/gpu-h200.txt`), so that others would
    compare addresses, too.
    """
    if row.copied is not None:
        source, target = row.copied
    else:
        source, target = (torch.empty(int(row.work) // 2, device="cuda", dtype=torch.uint8) for _ in range(2))
    return lambda: target.copy_(source)


def measure(name: str, knobs: Sequence[Mapping[str, str]]) -> None:
    """Measure one row and print it."""
    import torch  # lazily: only children need it

    from benchmarks.gpu_rows import Device
    from benchmarks.serving_rows import ALL_ROWS

    torch.manual_seed(0)
    row = ALL_ROWS[name](Device())
    expected = row.expected()
    variants = {compiler: Variant(compiler) for compiler in installed()}
    variants |= {words(settings): Variant("tilework", settings) for settings in knobs}
    notes: list[str] = []
    for title, refused in zip(variants, choose([*variants.values()], row, expected, median_ms), strict=True):
        notes += [f"    {title}: {said}" for said in refused]
    bench, rate = median_ms(BURST_MS), row.work / (1e6 if row.unit == "GB/s" else 1e9)
    calls = {"torch": row.reference} if row.reference is not None else {}
    calls |= {"copy": copy_of(torch, row)} if row.must.copy else {}
    calls |= {title: variant.best for title, variant in variants.items() if variant.best is not None}
    turns: dict[str, list[float]] = {title: [] for title in calls}
    order = list(calls.items())
    for turn in range(COPY_TURNS if row.must.copy else TURNS):
        start = turn % len(order)  # what ran before decides the clock of the GPU
        for title, call in (*order[start:], *order[:start]):
            with environment(variants[title].settings if title in variants else {}):
                turns[title].append(rate / bench(call))
    rates = {title: [statistics.median(found[first::2]) for first in (0, 1)] for title, found in turns.items()}
    print_row(name, row, rates)
    for title, variant in variants.items():
        ratio = f" {max(rates[title]) / max(rates['tilework']):.2f}x" if title in rates and "tilework" in rates else ""
        figures = " ".join(f"{figure:.0f}" for figure in rates.get(title, ()))
        if title not in COMPILERS:
            print(f"    {title}: {figures}{ratio}, {shown(variant.config)}")
        elif title in rates:
            print(f"    {title}: {shown(variant.config)}")
    if "copy" in rates:
        ratio = f"; ours {max(rates['tilework']) / max(rates['copy']):.2f} of it" if "tilework" in rates else ""
        print(f"    a copy of as many bytes: {' '.join(f'{figure:.0f}' for figure in rates['copy'])}{ratio}")
    print("\n".join(notes), end="\n" if notes else "", flush=True)


def print_row(name: str, row: "Row", rates: Mapping[str, list[float]]) -> None:
    """Both figures of each, ours beside what it must reach."""
    best = {title: max(found) for title, found in rates.items()}
    cells = [
        "/".join(f"{figure:.0f}" for figure in rates.get(title, ())) or "-" for title in ("torch", "triton", "tilework")
    ]
    ours = best.get("tilework")
    compared = [(factor, best.get(title)) for title, factor in vars(row.must).items() if factor]
    reached = ours is not None and all(not other or round(ours / other, 2) >= factor for factor, other in compared)
    verdict = "NOT reached" if not reached else "reached" if all(other for _, other in compared) else "not compared"
    ratio = f"{ours / best['triton']:.2f}x" if ours and "triton" in best else "-"
    print(
        f"{name:50}{row.unit:8}{cells[0]:>12}{cells[1]:>12}{cells[2]:>12}{ratio:>8}  {row.must}: {verdict}", flush=True
    )


def installed() -> list[str]:
    return [name for name in COMPILERS if importlib.util.find_spec(name) is not None]


def words(settings: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in settings.items())


def settings_of(knob: str) -> dict[str, str]:
    """``A=1,B=2,x`` sets A to 1 and B to ``2,x``."""
    pairs = [pair.partition("=") for pair in re.split(r",(?=\w+=)", knob)]
    if not all(sign for _, sign, _ in pairs):
        sys.exit(f"--knob {knob}: it is NAME=VALUE, or several with commas between")
    return {name: value for name, _, value in pairs}


def profile(name: str, compiler: str) -> None:
    """The child of ncu: one launch of the best configuration between its marks."""
    import torch

    from benchmarks.gpu_rows import Device
    from benchmarks.serving_rows import ALL_ROWS

    torch.manual_seed(0)
    row, variant = ALL_ROWS[name](Device()), Variant(compiler)
    (said,) = choose([variant], row, row.expected(), median_ms)
    if variant.best is None:
        sys.exit("\n".join(said))
    print(f"{BEST}{shown(variant.config)}", flush=True)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    variant.best()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def run_ncu(names: Sequence[str], knobs: Sequence[Mapping[str, str]]) -> None:
    """Profile one launch of each row with ncu, of each compiler and of ours with each knob."""
    variants = [*((compiler, {}) for compiler in installed()), *(("tilework", settings) for settings in knobs)]
    for name in names:
        for compiler, settings in variants:
            sections = [part for section in SECTIONS for part in ("--section", section)]
            command = [
                "ncu",
                "--clock-control",
                "none",
                "--profile-from-start",
                "off",
                *sections,
                *own("--profile", compiler, name),
            ]
            with environment(settings):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [line.rstrip() for line in done.stdout.splitlines()]
            keep = [line for line in lines if line.startswith(BEST) or any(word in line for word in SAID)]
            failed = ["ncu failed", *lines[-5:], *done.stderr.splitlines()[-5:]]
            print(f"== {name}, {words(settings) or compiler}", *(keep or failed), sep="\n", flush=True)


def own(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.gpu", *arguments]


def check(wanted: Sequence[str], device: str) -> bool:
    """Values of our code at small sizes; whether all are right."""
    import torch

    from benchmarks.gpu_rows import ONLY_CHECKED, Device, Sizes
    from benchmarks.serving_rows import ALL_ROWS

    rows = ALL_ROWS | ONLY_CHECKED
    good, emulated = True, device == "cpu"
    sizes = Sizes.EMULATED if emulated else Sizes.BLOCKS_STAY
    fitting = {"num_stages": 2} if ":gfx" in os.environ.get("TILEWORK_DEVICE", "") else {}  # 64 KB of LDS
    for name in chosen(wanted, ONLY_CHECKED):
        torch.manual_seed(0)
        expected = rows[name](Device("cpu", sizes)).expected()
        torch.manual_seed(0)
        row, variant = rows[name](Device(device, sizes)), Variant("tilework")
        row.configs = [{**config, **fitting} for config in row.configs[: CHECKED if emulated else None]]
        said = variant.screen(row, expected, lambda call: 0.0)
        good &= not said
        right = f"{len(row.configs) - len(said)} of {len(row.configs)} configurations are right"
        print(f"{name:50}{right}", *said, sep="\n    " if said else "", flush=True)
    return good


def run_rows(names: list[str], knobs: Sequence[str]) -> None:
    """Measure in a child; the next one goes on behind a row that it did not survive."""
    passed = [part for knob in knobs for part in ("--knob", knob)]
    while names:
        with tempfile.NamedTemporaryFile("r") as done:
            measuring = subprocess.Popen(own("--child", done.name, *passed, "--rows", *names))
            finished, since = 0, time.monotonic()
            while (code := measuring.poll()) is None:
                time.sleep(0.2)
                new = len(done.read().splitlines())
                if new:
                    finished, since = finished + new, time.monotonic()
                elif time.monotonic() - since > ROW_SECONDS:  # a kernel that waits for ever
                    measuring.kill()
            finished += len(done.read().splitlines())
        if code == 0:
            return
        if finished < len(names):
            print(f"{names[finished]:50}the process ended with {code}", flush=True)
        names = names[finished + 1 :]


def warm_up(names: Sequence[str]) -> None:
    """Compile everything, in processes that take turns with the rows."""
    count = min(WARMERS, len(names), os.cpu_count() or 1)
    children = [
        subprocess.Popen(own("--warm", "--rows", *names[first::count]), stderr=subprocess.DEVNULL)
        for first in range(count)
    ]
    for child in children:
        child.wait()


def warm(names: Sequence[str]) -> None:
    from benchmarks.gpu_rows import Device
    from benchmarks.serving_rows import ALL_ROWS

    variants = [Variant(compiler) for compiler in installed()]
    for name in names:
        row = ALL_ROWS[name](Device())
        for variant in variants:
            variant.warm(row)


def child(names: Sequence[str], knobs: Sequence[Mapping[str, str]], done: str) -> None:

    for name in names:
        measure(name, knobs)
        with open(done, "a") as file:
            print(name, file=file)


def chosen(wanted: Sequence[str], also: Collection[str] = ()) -> list[str]:
    from benchmarks.serving_rows import ALL_ROWS

    rows = [*ALL_ROWS, *also]
    exact = [name for name in rows if name in wanted]
    found = exact or [name for name in rows if not wanted or any(word in name for word in wanted)]
    return found or sys.exit(f"no row has one of {', '.join(wanted)}; there are: {'; '.join(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[], help="words of the names of rows")
    parser.add_argument(
        "--knob", action="append", default=[], metavar="NAME=VALUE", help="also ours with variables set"
    )
    parser.add_argument("--ncu", action="store_true", help="profile one launch of each row")
    parser.add_argument("--emulate", action="store_true", help="check values in the emulator")
    parser.add_argument("--check", action="store_true", help="check values at small sizes")
    for hidden in ("--child", "--profile"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help="as --rows")
    given = parser.parse_args()
    wanted = [*given.rows, *given.words]
    knobs = [settings_of(knob) for knob in given.knob]
    if importlib.util.find_spec("torch") is None:
        sys.exit("the table is measured with torch on an NVIDIA GPU, and there is no torch here")
    if given.emulate:
        os.environ.setdefault("TILEWORK_DEVICE", "emulator:sm_90")
        sys.exit(not check(wanted, "cpu"))
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        sys.exit("the table is measured on an NVIDIA GPU, and torch finds none here")
    if given.check:
        sys.exit(not check(wanted, "cuda"))
    if given.profile:
        return profile(wanted[0], given.profile)
    names = chosen(wanted)
    if given.child:
        return child(names, knobs, given.child)
    if given.warm:
        return warm(names)
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    if given.ncu:
        return run_ncu(names, knobs)
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, compilers: {', '.join(installed())}; "
        "two runs of each"
    )
    print(f"{'':50}{'':8}{'torch':>12}{'Triton':>12}{'tilework':>12}{'ratio':>8}  must reach", flush=True)
    warm_up(names)
    run_rows(names, given.knob)


if __name__ == "__main__":
    main()
