"""A run of the fuzzer: kernels for devices by share of time, in several processes; failures are reduced and written."""

import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

from tests.fuzz.devices import CRASHED, FAILURES, KINDS, LOST, REFUSED, Outcome, generated, outcome_of
from tests.fuzz.failures import Failure, commit, write_failure
from tests.fuzz.reduction import outcome_in_folder, reduced, tried
from tests.fuzz.workers import Last, Lost, results

SHARES = {"native": 3.0, "evaluator": 1.0, "cuda:80": 2.0, "cuda:90": 4.0, "hip:gfx942": 2.0}  # of the time
LIMIT, REDUCTION = 120.0, 60.0  # seconds for one kernel, and for making one smaller
KEPT = 3  # failures of one kind
Found = tuple[str, Outcome, float] | Failure  # generator, outcome and seconds of a kernel


@dataclass(frozen=True)
class Task:
    """One kernel on one device, or one failure that is to become smaller."""

    device: str
    seed: int
    failure: Failure | None = None


def work(task: Task) -> Found | Last[Found]:
    """The outcome of a kernel, its generator and its seconds; or a failure that was reduced."""
    if task.failure is not None:
        failure = task.failure
        if task.device == "gpu" and failure.outcome.kind == CRASHED:
            return Last(failure)  # it needs a process for each candidate: `python -m tests.fuzz.reduction`
        kernel = reduced(failure.kernel, failure.outcome, partial(tried, device=task.device), REDUCTION)
        return replace(failure, kernel=kernel, outcome=outcome_in_folder(kernel, task.device))
    start = time.monotonic()
    generator, kernel = generated(task.seed, task.device)
    with tempfile.TemporaryDirectory() as folder:
        found = outcome_of(kernel, task.device, Path(folder))
    made = generator, found, time.monotonic() - start
    return Last(made) if task.device == "gpu" and found.kind == CRASHED else made  # no kernel runs in a dead context


class Campaign:
    """One run of the fuzzer: kernels are handed out until the time is over, outcomes are counted, failures are
    reduced."""

    def __init__(self, devices: Sequence[str], first: int, most: float, end: float, out: Path) -> None:
        self.devices, self.first, self.most, self.end, self.out = devices, first, most, end, out
        self.begun = 0
        self.start = time.monotonic()
        self.seconds = dict.fromkeys(devices, 0.0)
        self.outcomes: dict[str, Counter[str]] = {device: Counter() for device in devices}
        self.generators: Counter[str] = Counter()
        self.refusals: dict[str, list[str]] = defaultdict(list)
        self.failures: dict[str, list[str]] = defaultdict(list)
        self.waiting: list[Failure] = []
        self.reducing: dict[int, Failure] = {}
        out.mkdir(parents=True, exist_ok=True)
        self.results = (out / "results.jsonl").open("a")

    @property
    def done(self) -> int:
        return sum(counts.total() for counts in self.outcomes.values())

    def tasks(self) -> Iterator[Task]:
        """Failures first; then kernels for the device that has had the smallest part of its share of time."""
        for seed in count(self.first):
            while self.waiting:
                failure = self.waiting.pop()
                self.reducing[failure.kernel.seed] = failure
                yield Task(failure.device, failure.kernel.seed, failure)
            if self.begun >= self.most:
                return
            self.begun += 1
            device = min(self.devices, key=lambda name: self.seconds[name] / SHARES.get(name, 1.0))
            self.seconds[device] += 0.3  # until it is known
            yield Task(device, seed)

    def add(self, task: Task, found: Found | Lost) -> None:
        if task.failure is not None:
            self.reducing.pop(task.seed, None)
            self.keep(found if isinstance(found, Failure) else task.failure)
            return
        assert not isinstance(found, Failure)
        lost = "", Outcome(LOST, getattr(found, "why", "")), 1.0
        generator, outcome, seconds = lost if isinstance(found, Lost) else found
        self.seconds[task.device] += seconds - 0.3
        self.outcomes[task.device][outcome.kind] += 1
        self.generators[generator] += 1
        line = {"device": task.device, "seed": task.seed, "generator": generator, "outcome": outcome.kind}
        self.results.write(json.dumps(line | {"why": outcome.first_line, "seconds": round(seconds, 2)}) + "\n")
        self.results.flush()
        name = f"{task.device} {task.seed}"
        if outcome.kind == REFUSED:
            self.refusals[outcome.first_line[:200]].append(name)
        if outcome.kind in FAILURES:
            print(f"{name} ({generator}): {outcome.kind}: {outcome.first_line}"[:300], flush=True)
            generator, kernel = generated(task.seed, task.device)
            self.found(Failure(kernel, task.device, outcome, generator))

    def found(self, failure: Failure) -> None:
        """Write a failure as it is; a smaller one takes its place, unless enough are waiting for that."""
        alike = sum(failure.outcome.first_line[:40] == other.outcome.first_line[:40] for other in self.waiting)
        if failure.outcome.kind == LOST or alike >= KEPT:
            self.keep(failure)
            return
        self.waiting.append(failure)
        write_failure(failure, self.out / failure.name)

    def keep(self, failure: Failure) -> None:
        """Count a failure, and keep its file if it is one of the first of its kind."""
        names = self.failures[failure.fold]
        names.append(f"{failure.device} {failure.kernel.seed}")
        if len(names) <= KEPT:
            write_failure(failure, self.out / failure.name)
        else:
            (self.out / failure.name).unlink(missing_ok=True)

    def summary(self) -> str:
        elapsed = time.monotonic() - self.start
        rows = [["", *KINDS, "kernels", "seconds"]]
        for device in self.devices:
            counts = self.outcomes[device]
            rows.append(
                [device, *(str(counts[kind]) for kind in KINDS), str(counts.total()), f"{self.seconds[device]:.0f}"]
            )
        totals = [sum(self.outcomes[device][kind] for device in self.devices) for kind in KINDS]
        rows.append(["all", *map(str, totals), str(self.done), f"{sum(self.seconds.values()):.0f}"])
        lines = ["".join(f"{cell:>12}" for cell in row) for row in rows]
        lines += [f"commit {commit()}, seeds from {self.first}, {elapsed:.0f} s"]
        lines += ["generators: " + ", ".join(f"{name or 'lost'} {n}" for name, n in sorted(self.generators.items()))]
        for title, found in (("refused", self.refusals), ("", self.failures)):
            for why, names in sorted(found.items(), key=lambda item: -len(item[1])):
                lines.append(f"{len(names):5}  {title} {why}   {', '.join(names[:4])}")
        return "\n".join(lines)

    def run(self, jobs: int, is_over_at_a_failure: bool = False) -> None:
        reported = time.monotonic()
        for task, found in results(work, self.tasks(), jobs, LIMIT, self.end):
            self.add(task, found)
            if is_over_at_a_failure and self.waiting:
                break
            if time.monotonic() - reported > 20:
                reported = time.monotonic()
                (self.out / "summary.txt").write_text(self.summary() + "\n")
                failed = sum(counts[kind] for counts in self.outcomes.values() for kind in FAILURES)
                print(f"{self.done} kernels, {failed} failures, {reported - self.start:.0f} s", flush=True)
        for failure in (*self.reducing.values(), *self.waiting):
            self.keep(failure)
        (self.out / "summary.txt").write_text(self.summary() + "\n")
