"""Compare searches with measuring every configuration: the speed of what they find, and their cost.

    python -m benchmarks.tune_search [ROW ...]                  on this device: the whole space, a search, and Triton's
                                                                autotuner over the 40 best, where it can run
    python -m benchmarks.tune_search --record FOLDER [ROW ...]  keep the times of the whole space: FOLDER/ROW.json
    python -m benchmarks.tune_search --replay FOLDER [ROW ...]  search in kept times, with many seeds

Rows are those of `tune_spaces.ROWS`, on the GPU if there is one. Every tuning is a new process with an empty cache. The
configurations that were found are compared by measuring both of them in turns. A record holds the median of each
configuration in the order of the space, in milliseconds (null: it cannot run), and what the cost model estimates.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.tune import has_gpu

Setting = dict[str, Any]
TURNS = 8
SETTLED_S, SHORT_S = 0.1, 0.035  # seconds of the warm-up after a rest, and of a short measurement
CLOCKS = ((0.05, 0.9), (0.09, 0.95), (0.2, 0.985), (1.0, 1.0), (1.15, 1.15), (1.25, 1.05), (math.inf, 1.0))  # after s
NAMES = ("matmul", "attention", "layernorm", "softmax", "thin", "transpose")


def row_of(name: str) -> Any:
    """Return a row. Its kernel is one of tilework or, in a process that has not called `as_triton`, of Triton."""
    from benchmarks import tune_spaces

    return tune_spaces.ROWS[name]


def arguments_of(row: Any) -> tuple[Any, ...]:
    """Return the arrays and sizes of a launch."""
    if has_gpu():
        import torch

        def draw(*shape: int, wide: bool = False) -> Any:
            return torch.randn(shape, device="cuda", dtype=torch.float32 if wide else torch.float16)

        return row.arguments(draw, *row.size)
    import numpy as np

    rng = np.random.default_rng(0)
    return row.arguments(lambda *shape, wide=False: rng.standard_normal(shape, dtype="f4"), *row.host_size)


def device_name() -> str:
    """Return the name of the device, for records."""
    if has_gpu():
        import torch

        return torch.cuda.get_device_name()
    return "cpu"


class TimeUp(KeyboardInterrupt):
    """The time for a record is over. It interrupts a tuning as Ctrl-C does: whatever handles errors lets it pass."""


def tuned(name: str, **settings: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Return (autotuner over the row's space, arguments, grid)."""
    import tilework

    tilework.as_triton()
    row = row_of(name)
    space = tilework.Space(**(row.space if has_gpu() else row.host), where=row.where if has_gpu() else None)
    return tilework.autotune(space, row.key, cache_results=True, **settings)(row.kernel), arguments_of(row), row.grid


def tune(name: str, seconds: float, **settings: Any) -> Setting:
    """Tune in this process; return the measurements and the seconds that they took."""
    tuner, args, grid = tuned(name, **settings)

    def end(*_: object) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, end)
    signal.alarm(max(1, int(seconds)))
    start, is_cut = time.perf_counter(), False
    try:
        tuner[grid](*args)
        timings = tuner.configs_timings
    except TimeUp:
        (timings,), is_cut = tuner.unfinished.values(), True
    finally:
        signal.alarm(0)
    took = time.perf_counter() - start
    times = [median(timings.get(config)) for config in tuner.configs]
    known = [index for index, config in enumerate(tuner.configs) if config in timings]
    if not known:
        sys.exit(f"{name}: {took:.0f} s were not enough for one measurement; --seconds allows more")
    best = min(known, key=lambda index: times[index] or math.inf)
    facts = {"row": name, "device": device_name(), "seconds": took, "measured": len(known), "best": best}
    facts |= {"estimated": next((one["estimated"] for one in tuner.tunings.values()), None), "is_cut": is_cut}
    return {**facts, "space": len(times), "times": times}


def tune_all(name: str, seconds: float) -> Setting:
    """Estimate and measure the whole space."""
    from tilework.runtime.tuning.estimates import Estimates

    tuner, args, grid = tuned(name)
    named = dict(zip(tuner.arg_names, args, strict=False))
    launches = [tuner.launch_of(config, args, {}) for config in tuner.configs]
    grids = [grid({**named, **config.all_kwargs()}) for config in tuner.configs]
    costs = Estimates(tuner.fn, launches, grids).of(range(len(launches)))
    finite = {index: cost for index, cost in costs.items() if cost < math.inf}
    found = tune(name, seconds)
    return {**found, "estimates": [finite.get(index) for index in range(len(launches))]}


def tune_by_model(name: str, seconds: float, seed: int = 0) -> Setting:
    import tilework

    return tune(name, seconds, search=tilework.Search(seed=seed))


def compare(name: str, seconds: float, indices: Sequence[int]) -> Setting:
    """Measure some configurations in turns; return the median and the settings of each.

    The first turn is thrown away: a GPU that comes from a rest is some percent faster for 0.1 s.
    """
    tuner, args, grid = tuned(name)
    import triton  # which is tilework

    bench = triton.runtime.driver.active.get_benchmarker()
    times: dict[int, list[float]] = {index: [] for index in indices}
    for turn in range(1 + TURNS):
        for index in reversed(indices) if turn % 2 else indices:
            call = lambda index=index: tuner.fn[grid](*args, **tuner.configs[index].all_kwargs())
            times[index].append(bench(call, quantiles=(0.5, 0.2, 0.8))[0])
    found = {index: statistics.median(measured[1:]) for index, measured in times.items()}
    texts = [", ".join(f"{key}={value}" for key, value in tuner.configs[one].all_kwargs().items()) for one in indices]
    return {"found": [found[index] for index in indices], "texts": texts}


def tune_triton(name: str, seconds: float, indices: Sequence[int]) -> Setting:
    """Run Triton's autotuner over some configurations of the space."""
    import triton

    from tilework.runtime.tuning.space import Space  # the list alone: kernels are Triton's

    row = row_of(name)
    space = Space(**(row.space if has_gpu() else row.host), where=row.where if has_gpu() else None)
    options = ("num_warps", "num_stages")
    configs = [
        triton.Config(dict(space[index].kwargs), **{option: getattr(space[index], option) for option in options})
        for index in indices
    ]
    tuner, args = triton.autotune(configs, key=row.key)(row.kernel), arguments_of(row)
    start = time.perf_counter()
    tuner[row.grid](*args)
    took = time.perf_counter() - start
    timings = [timing[0] if isinstance(timing, list) else timing for timing in tuner.configs_timings.values()]
    return {"seconds": took, "best": min(timings), "measured": len(timings)}


JOBS = {"all": tune_all, "model": tune_by_model, "compare": compare, "triton": tune_triton}


def median(timing: Any) -> float | None:
    return None if timing is None or timing[0] == math.inf else round(timing[0], 6)


def in_process(mode: str, name: str, seconds: float, **facts: Any) -> Setting | None:
    """Run one setting in another process with an empty cache, and return what it prints; None if it failed."""
    command = [sys.executable, "-m", "benchmarks.tune_search", "--job", json.dumps([mode, name, seconds, facts])]
    with tempfile.TemporaryDirectory(prefix="tune") as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": folder, "TMPDIR": folder}
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=seconds + 30
            )
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def live(names: Sequence[str], seconds: float, folder: Path | None, known: Path | None, seeds: int) -> None:
    """Print lines for each row: the whole space (measured or from `known`), the searches, Triton."""
    end = time.monotonic() + seconds
    print(f"{device_name()}, at most {seconds:g} s for all rows (--seconds); Triton is compared on a GPU only")
    print(
        f"{'':<11} {'space':>5} {'all':>8} {'search':>8} {'measured':>8} {'estimated':>9} {'slower by':>9}   in turns"
    )
    for done, name in enumerate(names):
        left = (end - time.monotonic()) / (len(names) - done)
        if known is not None:
            whole = json.loads((known / f"{name}.json").read_text())
        else:
            whole = in_process("all", name, 0.6 * left) if left > 5 else None
        if whole is None:
            print(f"{name:<11} no time left, or it failed", flush=True)
            continue
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps({**whole, "seconds": round(whole["seconds"], 1)}))
        allowed = (left if known is not None else 0.4 * left) / (seeds + 1)
        searches = [in_process("model", name, max(10, allowed), seed=seed) for seed in range(seeds)]
        found = [searched for searched in searches if searched is not None]
        indices = list(dict.fromkeys([whole["best"], *(searched["best"] for searched in found)]))
        both = in_process("compare", name, 60, indices=indices) if found else None
        took = {} if both is None else dict(zip(indices, both["found"], strict=True))
        for searched in searches:
            print(f"{name:<11} {line_of(whole, searched, took)}", flush=True)
        for index, text in enumerate([] if both is None else both["texts"]):
            print(f"{'':<11} {'found:   ' if index else 'the best:'} {text}", flush=True)
        left = (end - time.monotonic()) / (len(names) - done)
        if known is None and has_gpu() and find_spec("triton") is not None and left > 20:
            best = sorted(range(whole["space"]), key=lambda one: whole["times"][one] or math.inf)[:40]
            theirs = in_process("triton", name, left - 30, indices=best)
            failed = theirs is None or f"{theirs['seconds']:.1f} s, {theirs['best']:.4g} ms"
            print(
                f"{'':<11} Triton, best 40: {'it failed, or took too long' if failed is True else failed}", flush=True
            )


def line_of(whole: Setting, searched: Setting | None, took: dict[int, float]) -> str:
    """Return a line that compares a search with the whole space; `took`: milliseconds by index, measured in turns."""
    if searched is None:
        return "the search failed"
    found, best = searched["best"], whole["best"]
    estimated = "?" if searched["estimated"] is None else searched["estimated"]
    slower = f"{took[found] / min(took[best], took[found]) - 1:.1%}" if took else "?"
    text = f"{whole['space']:>5} {whole['seconds']:>6.1f} s {searched['seconds']:>6.1f} s"
    text += f" {searched['measured']:>8} {estimated:>9} {slower:>9}"
    if took:
        text += f"   best {took[best]:.4g}, found {took[found]:.4g} ms"
    recorded = whole["times"][found]
    text += f"; in the record {whole['times'][best]:.4g} and {'none' if recorded is None else f'{recorded:.4g}'}"
    text += ", CUT OFF" if searched["is_cut"] else ""
    return text + (f", the space CUT OFF after {whole['measured']}" if whole.get("is_cut") else "")


def record(names: Sequence[str], seconds: float, folder: Path) -> None:
    """Measure and write whole spaces until the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    for done, name in enumerate(names):
        left = 2 * (end - time.monotonic()) / (len(names) - done + 1)
        found = in_process("all", name, left) if left > 5 else None
        if found is not None:
            (folder / f"{name}.json").write_text(json.dumps(found))
        print(f"{name:<11} {'no time left, or it failed' if found is None else found['seconds']}", flush=True)


class Noise:
    """Simulated noise of a GPU on recorded times, as an H200 shows it (results/tune-search-h200.txt).

    Each measurement varies by 1.2 %, one of fifty is slower by 20 %. After a rest the clocks are higher for 0.1 s, and
    once power reaches its limit, a second later, they are low for a moment.
    """

    def __init__(self, times: Sequence[float], seed: int) -> None:
        self.times, self.rng, self.busy = times, random.Random(seed), 0.0

    def rest(self) -> None:
        """Let the device wait for the compiler; the first measurement after that is warmed up for longer."""
        self.busy = SETTLED_S

    def measure(self, index: int) -> float:
        slower = next(factor for end, factor in CLOCKS if self.busy < end) * (1.2 if self.rng.random() < 0.02 else 1.0)
        self.busy += SHORT_S
        return self.times[index] * slower * math.exp(self.rng.gauss(0, 0.012))


def replay(folder: Path, names: Sequence[str], seeds: int, is_noisy: bool) -> None:
    """Search in recorded times, and print how close the results are to the best."""
    from benchmarks import tune_spaces
    from tilework.runtime.tuning.search import Explorer, Search
    from tilework.runtime.tuning.searching import in_turns
    from tilework.runtime.tuning.space import Space

    print(f"seeds of {seeds} within 2 %, and the slowest: with the cost model, without")
    print(f"{'':<11} {'space':>5} {'measured':>8}")
    for name in names:
        if not (path := folder / f"{name}.json").is_file():
            continue
        kept, row = json.loads(path.read_text()), tune_spaces.ROWS[name]
        is_host = kept["device"] == "cpu"
        configs = list(Space(**(row.host if is_host else row.space), where=None if is_host else row.where))
        assert len(configs) == kept["space"], f"{path} is of another space"
        times = [math.inf if one is None else one for one in kept["times"]]
        costs = {index: cost for index, cost in enumerate(kept.get("estimates", ())) if cost is not None}
        texts: list[str] = []
        for model in ([costs] if costs else []) + [{}]:
            ratios: list[float] = []
            for seed in range(seeds):
                known, noise = dict[int, float](), Noise(times, seed)
                measure = noise.measure if is_noisy else times.__getitem__
                for batch in Explorer(configs, Search(seed=seed), model).batches(known):
                    noise.rest()
                    known |= {index: measure(index) for index in batch}
                runs = {index: [time] for index, time in known.items() if time < math.inf}
                again = in_turns(runs, lambda index, measure=measure: [measure(index)])
                ratios.append(times[min(again, key=again.__getitem__)] / min(times))
            within = sum(ratio <= 1.02 for ratio in ratios) / seeds
            texts.append(f"{within:>4.0%} {max(ratios) - 1:>6.1%}")
        print(f"{name:<11} {len(times):>5} {Search().budget(len(times)):>8}   {'    '.join(texts)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("rows", nargs="*", help="rows of tune_spaces; all by default")
    add("--record", type=Path, metavar="FOLDER", help="keep the times of whole spaces")
    add("--live", action="store_true", help="with --record: and the comparison")
    add("--known", type=Path, metavar="FOLDER", help="a record of this kind of device, for the whole space; no Triton")
    add("--replay", type=Path, metavar="FOLDER", help="search in kept times")
    add("--noise", action="store_true", help="with --replay: measure with noise, outliers and changing clocks")
    add("--seeds", type=int, default=None, help="of a replay; of a comparison as many, 1 by default")
    add("--seconds", type=float, default=900, help="for everything")
    add("--job", type=json.loads, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        mode, name, seconds, facts = options.job
        print(json.dumps(JOBS[mode](name, seconds, **facts)))
        return
    names = options.rows or NAMES
    if options.replay:
        import tilework

        tilework.as_triton()
        replay(options.replay, names, options.seeds or 20, options.noise)
    elif options.record and not options.live:
        record(names, options.seconds, options.record)
    else:
        live(names, options.seconds, options.record, options.known, options.seeds or 1)


if __name__ == "__main__":
    main()
