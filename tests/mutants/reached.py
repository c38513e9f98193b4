"""The tests to run for a mutant: those that execute its line, fastest first."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.operators import Mutant
from tests.mutants.rooms import ROOMS

FIRST_TESTS = 60


@dataclass(frozen=True)
class TimedTest:
    id: str
    seconds: float
    starts: bool  # other programs, whose lines are not known

    @property
    def file(self) -> str:
        return self.id.split("::")[0]

    @property
    def function(self) -> str:
        return self.id.split("[")[0]


class Reached:
    """The tests that execute each line of each file, from the records in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.lines: dict[tuple[str, int], list[TimedTest]] = defaultdict(list)
        self.files: dict[str, list[TimedTest]] = defaultdict(list)
        self.starters: list[TimedTest] = []
        self.failed: list[str] = []
        self.count = 0
        for record in sorted(folder.glob("reach-*.jsonl.gz")):
            for entry in entries(record):
                if not entry["passed"]:
                    self.failed.append(entry["test"])
                    continue
                self.count += 1
                self.add(TimedTest(entry["test"], entry["seconds"], entry["starts"]), entry["hits"])

    def add(self, test: TimedTest, hits: dict[str, str]) -> None:
        if test.starts:
            self.starters.append(test)
        for file, mask in hits.items():
            self.files[file].append(test)
            bits = bin(int(mask, 16))[:1:-1]
            position = bits.find("1")
            while position >= 0:
                self.lines[file, position].append(test)
                position = bits.find("1", position + 1)

    def tests(self, mutant: Mutant) -> list[TimedTest]:
        """The tests that execute the mutant's first line. Code that runs at import time is executed by no test in
        particular: all tests that reach its file, or else its folder. What the runtime does is often done in other
        programs: tests that start some."""
        found = self.lines.get((mutant.file, mutant.line)) if mutant.function else None
        if not found:
            found = self.files.get(mutant.file)
        if not found:
            folder = mutant.file.rpartition("/")[0] + "/"
            found = [test for file, tests in self.files.items() if file.startswith(folder) for test in tests]
        wanted = {test.id: test for test in found}
        if any(mutant.file == f"tilework/{file}" for room in ("launch_keys", "cache_keys") for file in ROOMS[room]):
            wanted.update((test.id, test) for test in self.starters)
        return list(wanted.values())


def entries(record: Path) -> Iterable[dict]:
    with gzip.open(record, "rt") as lines:
        try:
            for line in lines:
                yield json.loads(line)
        except (EOFError, json.JSONDecodeError):  # a run that was stopped: its last line is cut
            return


def stages(tests: Iterable[TimedTest], budget: float) -> tuple[list[list[TimedTest]], int]:
    """The tests in two runs, and how many are left out since all others take `budget` seconds.

    The first run has one test of each function, the fastest ones: it fails soon, and collects few files. In the second
    one the tests of a file stay together, because of fixtures that a file shares.
    """
    ordered = sorted(tests, key=lambda test: (test.seconds, test.id))
    seen: set[str] = set()
    first: list[TimedTest] = []
    for test in ordered:
        if test.function not in seen and len(first) < FIRST_TESTS:
            seen.add(test.function)
            first.append(test)
    chosen = set(first)
    spent = sum(test.seconds for test in first)
    rest: dict[str, list[TimedTest]] = {}
    left_out = 0
    for test in ordered:
        if test in chosen:
            continue
        if spent + test.seconds > budget:
            left_out += 1
            continue
        spent += test.seconds
        rest.setdefault(test.file, []).append(test)
    second = [
        test for file in sorted(rest, key=lambda file: sum(test.seconds for test in rest[file])) for test in rest[file]
    ]
    return [stage for stage in (first, second) if stage], left_out
