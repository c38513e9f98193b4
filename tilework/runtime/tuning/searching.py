"""The search of one tuning: configurations that `search.py` proposes are compiled and measured, the best once more.

    estimate ─▶ propose ─▶ compile ─▶ measure shortly ─▶ propose ... ─▶ measure the best

Most proposals need no precise time, so the rounds spend a fifth of a full measurement on each. A user's own benchmarker
is called once for each configuration. Timings that are known already cost nothing, and count as measured.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from statistics import median_low
from typing import Any, TypeVar

from tilework.runtime.tuning.benchmark import effort
from tilework.runtime.tuning.config import Config
from tilework.runtime.tuning.estimates import Estimates, Grid
from tilework.runtime.tuning.results import TuningResults, has_failed, order
from tilework.runtime.tuning.search import LEAST_BATCH, Explorer, Search

ESTIMATED = 4  # estimates for each measurement of the budget
ESTIMATE_S = 5.0  # seconds for estimates of the other configurations
SHORT = 0.2  # the share of a full measurement that a short round spends on each configuration
BEST = 12  # at most so many are measured again in turns
TURN = 0.25  # the share of a full measurement that a turn spends on each of them
ROUNDS = ((1.3, 2), (1.05, 2), (1.02, 4))  # those within 1.3 times the best in two turns, then fewer of them

Key = TypeVar("Key")


class Searching:
    """A search in `configs`, whose timings so far are in `timings`; the caller measures what `batches` yields."""

    def __init__(
        self,
        tuner: Any,
        configs: Sequence[Config],
        timings: MutableMapping[Config, Any],
        results: TuningResults,
        args: tuple[object, ...],
        kwargs: dict[str, Any],
        first: Config | None = None,
    ) -> None:
        assert tuner.search is not None
        self.tuner, self.search, self.configs, self.timings = tuner, tuner.search, list(configs), timings
        self.results, self.args, self.kwargs, self.first = results, args, kwargs, first
        self.start, self.estimated = time.monotonic(), 0
        self.budget = self.search.budget(len(self.configs))
        self.fresh: list[Config] = []
        self.is_short = tuner._do_bench is None and not tuner.use_cuda_graph

    def batches(self) -> Iterator[list[Config]]:
        """Yield the configurations to compile and measure next."""
        known = self.times().values()
        if len(known) >= self.budget and any(map(math.isfinite, known)):
            return
        if self.first is not None and self.first in self.configs and self.first not in self.timings:
            yield from self.short([self.first])
        explorer = Explorer(self.configs, self.search, self.costs())
        explorer.start = self.start
        times = self.times()
        for indices in explorer.batches(times):
            yield from self.short([self.configs[index] for index in indices])
            times |= self.times()

    def short(self, batch: list[Config]) -> Iterator[list[Config]]:
        """Yield a batch to be measured in a short round."""
        self.fresh += batch
        token = effort.set(SHORT if self.is_short else 1.0)
        try:
            yield batch
        finally:
            effort.reset(token)

    def times(self) -> dict[int, float]:
        """Return the known times in milliseconds, by index of the configuration."""
        found = ((index, self.timings.get(config)) for index, config in enumerate(self.configs))
        return {index: order(timing)[0] for index, timing in found if timing is not None}

    def measure_best(self) -> None:
        """Measure the best of the short rounds again, in turns, and set the timings of all measured here."""
        known = {
            config: order(self.timings[config])
            for config in self.fresh
            if config in self.timings and not has_failed(self.timings[config])
        }
        if not self.is_short or len(known) < 2:
            return
        token = effort.set(TURN)
        try:
            again = in_turns(known, lambda config: order(self.tuner.measure(config, {}, None, self.args, self.kwargs)))
        finally:
            effort.reset(token)
        for config, timing in again.items():
            self.timings[config] = timing
            self.results.store(config, timing, self.tuner.failures.get(config))

    # ---- the cost model

    def costs(self) -> dict[int, float]:
        """Return estimates by index: those of `estimated_costs`, then others while there is time."""
        options = {name: value for name, value in self.kwargs.items() if name not in ("grid", "warmup")}
        launches = [self.tuner.launch_of(config, self.args, options) for config in self.configs]
        estimates = Estimates(self.tuner.fn, launches, [self.grid_of(config) for config in self.configs])
        found = estimated_costs(self.configs, self.search, estimates.of, ESTIMATED * self.budget)
        rest = [index for index in range(len(self.configs)) if index not in found] if found else []
        share = self.search.budget_seconds
        end = self.start + (ESTIMATE_S if share is None else min(ESTIMATE_S, share / 4))
        while rest and time.monotonic() < end:
            found |= estimates.of(rest[: self.budget])
            del rest[: self.budget]
        self.estimated = estimates.count
        return found

    def grid_of(self, config: Config) -> Grid | None:
        """Return the sizes of the grid of a launch with a configuration; None if they are not known."""
        grid: Any = self.kwargs.get("grid")
        named = dict(zip(self.tuner.arg_names, self.args, strict=False))
        try:
            if callable(grid):
                grid = grid({**named, **self.kwargs, **config.all_kwargs()})
            sizes = tuple(map(int, grid if isinstance(grid, tuple | list) else (grid,)))
        except Exception:  # the user's function; the launch raises it again
            return None
        return sizes if sizes and min(sizes) > 0 else None


def in_turns(known: Mapping[Key, list[float]], measure: Callable[[Key], list[float]]) -> dict[Key, list[float]]:
    """Measure the best candidates again in turns; return timings of all candidates, which can be compared.

    The clocks of a GPU change by some percent within seconds, and some measurements are slow by chance. So one turn
    goes through the candidates forwards, the next one backwards, and the lower median of a candidate's turns counts.
    Timings of those that are not in a round are scaled by the factor by which the best one changed in it: none of them
    wins because the clocks were higher before.
    """
    times = dict(known)
    for bound, turns in ROUNDS:
        before = min(times.values())[0]
        best = sorted(times, key=lambda key: times[key])[:BEST]
        left = [key for key in best if times[key][0] <= bound * before]
        if len(left) < 2:
            break
        taken: dict[Key, list[list[float]]] = {key: [] for key in left}
        for turn in range(turns):
            for key in reversed(left) if turn % 2 else left:
                taken[key].append(measure(key))
        found = {key: [median_low(column) for column in zip(*timings, strict=False)] for key, timings in taken.items()}
        least = min(found.values())[0]
        change = least / before if before > 0 and least < math.inf else 1.0
        times = {key: found.get(key) or [change * each for each in timing] for key, timing in times.items()}
    return times


def estimated_costs(configs: Sequence[Config], search: Search, cost: Any, count: int) -> dict[int, float]:
    """Return the estimates `cost(indices)` of `count` configurations: half are spread over the space, the others are
    those for which the first half predicts the shortest times."""
    explorer = Explorer(configs, search)
    count = min(count, len(configs))
    first = explorer.spread({}, count if count == len(configs) else -(-count // 2))
    found: dict[int, float] = dict(cost(first))
    if len(found) <= LEAST_BATCH or len(first) == count:
        return found
    finite = {index: math.log(value) for index, value in found.items() if math.isfinite(value) and value > 0}
    if len(finite) > LEAST_BATCH:
        filled = explorer.filled(finite)
        asked = set(first)
        small = [int(index) for index in filled.argsort(kind="stable") if int(index) not in asked]
        found |= cost(small[: count - len(first)])
    return found
