"""Find a fast configuration without measuring all of them.

    explorer = Explorer(configs, Search(budget_configs=24), costs={0: 1.2, 7: 3.4})
    for batch in explorer.batches(times):         # `times`: milliseconds by index, of what is known
        times |= measured(batch)                  # the caller measures; infinite: it cannot run

The first batches cover the space and, if there are costs, the configurations that the cost model ranks best. Then a
Gaussian process is fitted to the logarithms of all times, and a batch is chosen greedily: each configuration has the
most expected improvement if those chosen before it take their predicted times.

The coordinates of a configuration, scaled to [0, 1], are the logarithms of its numbers (one axis for each value of
anything else), of the product of all its sizes, of that product per warp, and of its cost. The length scale of each
axis is the one of `LENGTHS` that makes the measured times likeliest.

The proposals depend only on the times and the seed.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from tilework.errors import AutotunerError
from tilework.light_dataclass import light_dataclass
from tilework.runtime.tuning.config import Config

Array = np.ndarray[Any, Any]

PART, LEAST, MOST = 10, 8, 128  # by default a tenth of a space is measured, at least 8 and at most 128
FIRST = 0.33  # the share of the budget that is measured before a model is fitted
ROUNDS = 5  # batches after that, each at least LEAST_BATCH
HOPELESS = math.log(10)  # a configuration is not proposed if its estimate exceeds the best one by more than this
LEAST_BATCH = 3
WORST = math.log(4)  # times that exceed the best one by more than this are clipped to it
BETTER = 0.995  # what counts as an improvement
LOCAL = 2  # every second proposal is a neighbour of the best one, with another value on one axis
CANDIDATES = 4096  # of a larger space, a batch considers a sample of this size and the neighbours of the best
SAMPLE = 256  # the largest sample that represents the space when the first configurations are chosen
FAR = 100.0  # the distance to the nearest chosen configuration as long as none is chosen
POINTS = 160  # the model is fitted to at most this number of the fastest configurations: more take seconds
LARGE = 1e300  # larger numbers and infinity have no place on an axis: each of them has its own, as a text has
LENGTHS = (0.3, 0.6, 1.2, 2.5, 5.0, 20.0)
TREND = (0.0, 0.5, 2.0)
NOISE = (1e-4, 1e-3, 1e-2)


@light_dataclass
class Search:
    """The limits of a search among the configurations of `autotune`, given as its `search=`.

    At most `budget_configs` configurations are measured (by default a tenth, at least 8 and at most 128), in batches;
    if all of these fail, others follow until one runs. No batch is begun after `budget_seconds`, nor after `patience`
    measurements that found nothing better. `seed` varies where the search begins.

    Example:
        @tilework.autotune(
            tilework.Space(BLOCK=[2**k for k in range(4, 12)], WIDE=[False, True]),
            key=["n"],
            search=tilework.Search(budget_configs=5, patience=3),
        )
        @tilework.jit
        def fill(out, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, i.to(tl.int64) if WIDE else i, mask=i < n)

        out = np.zeros(1000, np.int32)
        fill[lambda meta: (tilework.cdiv(1000, meta["BLOCK"]),)](out, 1000)
        assert len(fill.configs) == 16 and len(fill.configs_timings) <= 5
    """

    budget_configs: int | None = None
    budget_seconds: float | None = None
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("budget_configs", "budget_seconds", "patience"):
            value = getattr(self, name)
            what, kinds = ("a number", int | float) if name == "budget_seconds" else ("an int", int)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise AutotunerError(f"Search: {name} must be {what}, got {value!r}")
            if value is not None and not value > 0:
                raise AutotunerError(f"Search: {name} must be more than 0, got {value!r}")
        if type(self.seed) is not int or self.seed < 0:
            raise AutotunerError(f"Search: seed must be an int, and not negative, got {self.seed!r}")

    @classmethod
    def of(cls, given: object) -> "Search | None":
        """Return the search that a value of `search=` describes; None for None."""
        if given is None or isinstance(given, Search):
            return given
        if given == "model":
            return cls()
        raise AutotunerError(f'search must be None, "model" or a Search(...), got {given!r}')

    def budget(self, space: int) -> int:
        """Return the number of configurations of a space that may be measured."""
        wanted = max(LEAST, min(space // PART, MOST)) if self.budget_configs is None else self.budget_configs
        return min(wanted, space)


class Explorer:
    """Proposes the configurations to measure next; see the module docstring.

    `costs` are estimates of times by index, in any unit; infinite: the configuration cannot run.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        search: Search,
        costs: Mapping[int, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.search, self.clock, self.start = search, clock, clock()
        self.budget = search.budget(len(configs))
        self.points, self.codes = coordinates(configs)
        self.rng = np.random.default_rng(search.seed)
        self.excluded = {index for index, cost in (costs or {}).items() if math.isinf(cost)}
        self.guess: Array | None = None
        finite = {index: math.log(cost) for index, cost in (costs or {}).items() if 0 < cost < math.inf}
        if len(finite) > LEAST_BATCH and max(finite.values()) > min(finite.values()):
            self.guess = self.filled(finite)
            low, high = self.guess.min(), self.guess.max()
            self.excluded |= {int(index) for index in np.flatnonzero(self.guess > min(finite.values()) + HOPELESS)}
            self.points = np.column_stack([self.points, (self.guess - low) / (high - low)])

    def filled(self, known: Mapping[int, float]) -> Array:
        """Return estimates for the whole space: the known ones, and predictions from them for the others."""
        indices = sorted(known)
        values = np.array([known[index] for index in indices])
        if len(indices) == len(self.points):
            return values
        model = Process(self.points[indices], np.minimum(values, values.min() + 2 * WORST))
        found, _ = model.predict(self.points)
        found[indices] = values
        return found

    def batches(self, times: MutableMapping[int, float]) -> Iterator[list[int]]:
        """Yield the indices to measure next until a limit is reached; the caller adds their times to `times`."""
        since, best = 0, min(times.values(), default=math.inf)
        while batch := self.next_batch(times):
            yield batch
            for index in batch:
                since += 1
                if times.setdefault(index, math.inf) < best * (BETTER if best > 0 else 2 - BETTER):
                    since, best = 0, times[index]
            if self.search.patience is not None and since >= self.search.patience and math.isfinite(best):
                return

    def next_batch(self, times: Mapping[int, float]) -> list[int]:
        """Return the indices to measure next; none when a limit is reached.

        As long as no configuration runs, others are tried beyond the budget, and at last those that the cost model
        expects not to run.
        """
        has_run = any(map(math.isfinite, times.values()))
        count = self.next_size(len(times)) or (0 if has_run or self.is_late(len(times)) else LEAST)
        batch = self.propose(times, count) if count else []
        if count and not batch and not has_run and self.excluded:
            self.excluded = set()
            batch = self.propose(times, count)
        return batch

    def is_late(self, known: int) -> bool:
        """Return True if the time is up; the first batch is always measured."""
        seconds = self.search.budget_seconds
        return seconds is not None and known > 0 and self.clock() - self.start >= seconds

    def next_size(self, known: int) -> int:
        """Return the size of the next batch; 0 when the budget is spent."""
        left = self.budget - known
        if left <= 0 or self.is_late(known):
            return 0
        if self.budget >= len(self.points):
            return left  # all of them, in any order
        first = max(LEAST_BATCH, round(FIRST * self.budget))
        size = first - known if known < first else max(LEAST_BATCH, -(-(self.budget - first) // ROUNDS))
        return min(size, left)

    def propose(self, times: Mapping[int, float], count: int) -> list[int]:
        """Return the indices of `count` configurations not measured so far, or of all that are left."""
        if sum(map(math.isfinite, times.values())) < LEAST_BATCH:
            return self.spread(times, count)
        return self.improving(times, count)

    def spread(self, times: Mapping[int, float], count: int) -> list[int]:
        """Return indices of configurations that cover the space.

        Each minimises the sum of distances from a sample of the space to the nearest chosen configuration, so few are
        in corners. Every other one is chosen from those with the least estimates.
        """
        free = self.free(times)
        fast = len(free)
        if self.guess is not None:
            free = free[np.argsort(self.guess[free], kind="stable")]
            fast = min(fast, max(count, fast // 12))
        sample = self.points[self.rng.choice(free, min(-(-len(free) // 2), SAMPLE), replace=False)]
        gaps = distances(self.points[free], sample)
        nearest = distances(self.points[[*times]], sample).min(0, initial=FAR)
        is_taken = np.zeros(len(free), bool)
        chosen: list[int] = []
        for turn in range(min(count, len(free))):
            end = fast if turn % 2 == 0 and not is_taken[:fast].all() else len(free)
            left = np.minimum(gaps[:end], nearest).sum(1)
            left[is_taken[:end]] = math.inf
            row = 0 if self.guess is not None and not times and not turn else int(left.argmin())
            chosen.append(int(free[row]))
            is_taken[row] = True
            nearest = np.minimum(nearest, gaps[row])
        return chosen

    def free(self, times: Mapping[int, float]) -> Array:
        """Return the indices that may be proposed; of a large space, a sample and the neighbours of the fastest."""
        is_free = np.ones(len(self.points), bool)
        is_free[[*times, *self.excluded]] = False
        free = np.flatnonzero(is_free)
        if len(free) <= CANDIDATES:
            return free
        some = self.rng.choice(free, CANDIDATES, replace=False)
        for index in sorted(times, key=lambda one: times[one])[:LEAST_BATCH]:
            near = (self.codes != self.codes[index]).sum(1) == 1
            some = np.concatenate([some, np.flatnonzero(near & is_free)])
        return np.unique(some)

    def improving(self, times: Mapping[int, float], count: int) -> list[int]:
        """Return indices of configurations with the most expected improvement."""
        fitted = [*times] if len(times) <= POINTS else sorted(times, key=lambda one: times[one])[:POINTS]
        logs = clipped([times[index] for index in fitted])
        free, chosen = self.free(times), list[int]()
        model = Process(self.points[fitted], logs)
        best, fastest = logs.min(), fitted[int(logs.argmin())]
        for _ in range(min(count, len(free))):
            mean, deviation = model.predict(self.points[free])
            gain = expected_improvement(best - mean, deviation)
            is_last = len(times) + count >= self.budget
            if is_last or len(chosen) % LOCAL == LOCAL - 1:  # a neighbour of the best, whatever the model predicts
                near = (self.codes[free] != self.codes[fastest]).sum(1) == 1
                gain[near] += gain.max() + 1e-12 - mean[near] + mean.max()
            gain[np.isin(free, chosen)] = -1.0
            row = int(np.argmax(gain))
            chosen.append(int(free[row]))
            model = model.extended(self.points[free[row]], mean[row])
        return chosen


def clipped(times: Sequence[float]) -> Array:
    """Return the logarithms of times relative to the best, at most `WORST`; an infinite time gives `WORST`.

    What a user's benchmarker returns may be zero or negative. Such values have differences instead of logarithms, and
    the largest one counts as `WORST`.
    """
    found = np.array(times, float)
    best, is_finite = found.min(), np.isfinite(found)
    if best > 0:
        return np.minimum(np.log(np.where(is_finite, found, best * math.exp(WORST)) / best), WORST)
    differences = np.where(is_finite, found, found[is_finite].max()) - best
    return np.where(is_finite, WORST * differences / (differences.max() or 1.0), WORST)


def expected_improvement(gain: Array, deviation: Array) -> Array:
    """Return the expected value of max(0, x), for x with a normal distribution of mean `gain` and this deviation."""
    score = gain / deviation
    density = np.exp(-0.5 * score**2) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + np.vectorize(math.erf)(score / math.sqrt(2)))
    return gain * below + deviation * density


# ---- coordinates


def coordinates(configs: Sequence[Config]) -> tuple[Array, Array]:
    """Return (a row of numbers in [0, 1] for each configuration, a row with the indices of its values)."""
    rows = [config.all_kwargs() for config in configs]
    names = dict.fromkeys(name for row in rows for name in row)
    columns, codes = list[Array](), list[Array]()
    for name in names:
        values: list[Any] = [row.get(name) for row in rows]
        texts = {text: index for index, text in enumerate(dict.fromkeys(map(repr, values)))}
        if len(texts) == 1:
            continue
        code = np.array([texts[repr(value)] for value in values])
        codes.append(code)
        if all(type(value) in (int, float) and abs(value) < LARGE for value in values):
            numbers = np.array(values, float)
            numbers = np.log2(numbers) if (numbers > 0).all() else numbers
            columns.append(scaled(numbers))
        else:
            columns += [(code == index).astype(float) for index in range(len(texts))]
    if not columns:
        return np.zeros((len(rows), 1)), np.zeros((len(rows), 1), int)
    for numbers in products(configs):
        if np.ptp(numbers) > 0 and not any(np.allclose(scaled(numbers), column) for column in columns):
            columns.append(scaled(numbers))
    return np.column_stack(columns), np.column_stack(codes)


def products(configs: Sequence[Config]) -> list[Array]:
    """Return the logarithms of the product of all parameters that are positive integers, and of that product per warp.

    Most of these parameters are sizes of a tile. What limits a kernel, such as registers, follows from their product.
    """
    total = np.zeros(len(configs))
    for name in configs[0].kwargs:
        values: list[Any] = [config.kwargs.get(name) for config in configs]
        if all(type(value) is int and value > 0 for value in values):
            total += [math.log2(value) for value in values]
    return [total, total - np.log2([config.num_warps for config in configs])]


def scaled(numbers: Array) -> Array:
    """Return the numbers scaled to [0, 1]."""
    return (numbers - numbers.min()) / (numbers.max() - numbers.min())


# ---- the model


class Process:
    """A Gaussian process with a Matern 5/2 kernel, one length scale for each axis, and a linear trend."""

    def __init__(self, points: Array, values: Array, settings: "tuple[Array, float, float] | None" = None) -> None:
        self.points, self.values = points, values
        self.middle = float(values.mean())
        self.lengths, self.trend, self.noise = settings or self.likeliest()
        self.solve()

    def solve(self) -> None:
        correlation = self.kernel(self.points, self.points) + self.noise * np.eye(len(self.values))
        self.factor = np.linalg.cholesky(correlation)
        rest = self.values - self.middle
        half = np.linalg.solve(self.factor, rest)
        self.weights = np.linalg.solve(self.factor.T, half)
        self.scale = max(float(half @ half) / len(rest), 1e-8)

    def kernel(self, left: Array, right: Array) -> Array:
        return correlation(left / self.lengths, right / self.lengths) + self.trend * plane(left, right)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return (expected values, standard deviations) at some points."""
        shared = self.kernel(points, self.points)
        own = 1 + self.trend * ((points - 0.5) ** 2).sum(1)
        reduced = own - (np.linalg.solve(self.factor, shared.T) ** 2).sum(0)
        return self.middle + shared @ self.weights, np.sqrt(self.scale * np.maximum(reduced, 1e-9))

    def extended(self, point: Array, value: float) -> "Process":
        """Return the process with one more value and the same settings."""
        found = Process.__new__(Process)
        found.points, found.values = np.vstack([self.points, point]), np.append(self.values, value)
        found.middle, found.lengths, found.trend, found.noise = self.middle, self.lengths, self.trend, self.noise
        scale = self.scale
        found.solve()
        found.scale = scale
        return found

    def likeliest(self) -> tuple[Array, float, float]:
        """Return the likeliest (lengths, weight of the trend, noise), found one coordinate at a time."""
        count = self.points.shape[1]
        self.lengths, self.trend, self.noise = np.full(count, LENGTHS[2]), TREND[1], NOISE[1]
        best = self.badness()
        for _ in range(2):
            for axis in range(count):
                best = self.choose(best, LENGTHS, lambda value, axis=axis: self.lengths.__setitem__(axis, value))
            best = self.choose(best, TREND, lambda value: setattr(self, "trend", value))
            best = self.choose(best, NOISE, lambda value: setattr(self, "noise", value))
        return self.lengths, self.trend, self.noise

    def choose(self, best: float, values: Sequence[float], assign: Callable[[float], object]) -> float:
        """Set one setting to the likeliest of some values, and return the least `badness`."""
        kept = (self.lengths.copy(), self.trend, self.noise)
        for value in values:
            assign(value)
            if (found := self.badness()) < best - 1e-9:
                best, kept = found, (self.lengths.copy(), self.trend, self.noise)
        self.lengths, self.trend, self.noise = kept
        return best

    def badness(self) -> float:
        """Return the negative logarithm of the likelihood, with a prior for lengths near the size of the space."""
        try:
            self.solve()
        except np.linalg.LinAlgError:
            return math.inf
        count = len(self.values)
        fit = 0.5 * count * math.log(self.scale) + float(np.log(np.diag(self.factor)).sum())
        return fit + 0.5 * float((np.log(self.lengths / LENGTHS[2]) ** 2).sum()) / 2


def distances(left: Array, right: Array) -> Array:
    gaps = (left**2).sum(1)[:, None] + (right**2).sum(1)[None, :] - 2 * left @ right.T
    return np.sqrt(np.maximum(gaps, 0))


def correlation(left: Array, right: Array) -> Array:
    far = math.sqrt(5) * distances(left, right)
    return (1 + far + far**2 / 3) * np.exp(-far)


def plane(left: Array, right: Array) -> Array:
    return (left - 0.5) @ (right - 0.5).T
