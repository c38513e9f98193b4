"""Many cases in several processes, each case by itself: one that crashes or hangs is a failure like any other.

A program that sweeps has cases, tuples that end with the size of a tile, and a function that raises for a case that is
wrong:

    parser = options(__doc__)
    args = parser.parse_args()
    return sweep(chosen(cases(), args), run_case, repeat, args)

``--jobs 16`` are processes, which are given one case after the other. ``--seconds 500`` begins no case after that time;
the order is shuffled, so that the cases that were done are a fair sample of all. ``--part 2/3`` is the second third of
them, and ``--draw 40`` are so many, the rows in turn. Failures are printed as they come, and at the end with the
commands that repeat them.
"""

import argparse
import multiprocessing
import random
import sys
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tests.differential.devices import Refused

Case = tuple[Any, ...]  # the row's name, what else there is, the size
EVERY = 10  # seconds between lines about progress


class Outcome(NamedTuple):
    """The outcome of a case: right, wrong or refused, and why."""

    case: Case
    verdict: str
    text: str = ""


def size_of(text: str) -> tuple[int, ...]:
    """The size of a tile, `12x7` or `96`."""
    return tuple(int(part) for part in text.split("x"))


def size_text(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


def part_of(text: str) -> tuple[int, int]:
    """The number of a part and how many there are, `2/3`."""
    number, of = (int(part) for part in text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number, of


def options(text: str | None) -> argparse.ArgumentParser:
    """A parser of what all sweeps take."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows; 'sort*' are those that begin so")
    parser.add_argument("--size", type=size_of, action="append", help="only tiles of this size, 96 or 12x7")
    parser.add_argument("--most", type=int, default=1 << 20, help="elements of a tile")
    parser.add_argument("--draw", type=int, help="so many of the cases, rows in turn")
    parser.add_argument("--part", type=part_of, default=(1, 1), help="one of equal parts of the cases, 2/3")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, help="no case begins later")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one case")
    return parser


def chosen(cases: Iterable[Case], args: argparse.Namespace) -> list[Case]:
    """The cases that the options ask for, in the order in which they run."""
    found = [case for case in cases if is_asked(case, args)]
    random.Random(args.seed).shuffle(found)
    number, parts = args.part
    found = found[number - 1 :: parts]
    if args.draw is None:
        return found
    before: Counter[Any] = Counter()
    turns: dict[Case, int] = {}
    for case in found:
        turns[case] = before[case[:-1]]
        before[case[:-1]] += 1
    return sorted(found, key=turns.__getitem__)[: args.draw]


def is_asked(case: Case, args: argparse.Namespace) -> bool:
    elements = 1
    for length in case[-1]:
        elements *= length
    is_named = not args.rows or any(fnmatchcase(case[0], row) for row in args.rows)
    return is_named and (not args.size or case[-1] in args.size) and elements <= args.most


def serve(run: Callable[..., None], pipe: Connection, inherited: Sequence[Connection]) -> None:
    """The life of a worker: a case comes, what came of it goes back; it ends when the parent's end of the pipe does."""
    for other in inherited:  # the parent's ends, of which a fork is a copy
        other.close()
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        try:
            run(*case)
            pipe.send(("right", ""))
        except Refused as error:
            pipe.send(("refused", str(error)[-1500:]))
        except Exception:
            pipe.send(("wrong", traceback.format_exc()[-1500:]))


class Worker:
    """A process and the case that it has."""

    def __init__(self, run: Callable[..., None], others: Sequence["Worker"]) -> None:
        context = multiprocessing.get_context("fork")  # the parent has imported all and run nothing
        self.pipe, theirs = context.Pipe()
        inherited = [self.pipe, *(other.pipe for other in others)]
        self.process = context.Process(target=serve, args=(run, theirs, inherited), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, case: Case) -> None:
        self.case, self.began = case, time.monotonic()
        with suppress(BrokenPipeError):  # it is dead, and `outcome` will find out
            self.pipe.send(case)

    def outcome(self, limit: float) -> Outcome | None:
        """The outcome of the case, or None while it runs."""
        if self.pipe.poll():
            try:
                return Outcome(self.case, *self.pipe.recv())
            except (EOFError, ConnectionResetError):
                self.process.join()
                return Outcome(self.case, "wrong", f"the process ended with exit code {self.process.exitcode}")
        if time.monotonic() - self.began > limit:
            return Outcome(self.case, "wrong", f"no result after {limit:g} seconds")
        return None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def outcomes(cases: Sequence[Case], run: Callable[..., None], jobs: int, limit: float, end: float) -> Iterator[Outcome]:
    """Yield the outcomes of the cases that begin before `end`; a process with a case that was not right is not used
    again."""
    waiting, idle, busy = deque(cases), list[Worker](), list[Worker]()
    try:
        while len(idle) < min(jobs, len(cases)):
            idle.append(Worker(run, idle))
        while busy or (waiting and time.monotonic() < end):
            while idle and waiting and time.monotonic() < end:
                busy.append(idle.pop())
                busy[-1].give(waiting.popleft())
            wait([worker.pipe for worker in busy], timeout=1)
            for worker in tuple(busy):
                if (found := worker.outcome(limit)) is None:
                    continue
                busy.remove(worker)
                if found.verdict == "right":
                    idle.append(worker)
                else:
                    worker.stop()
                    idle.append(Worker(run, [*busy, *idle]))
                yield found
    finally:
        for worker in (*busy, *idle):
            worker.stop()


def sweep(
    cases: Sequence[Case], run: Callable[..., None], repeat: Callable[[Case], str], args: argparse.Namespace
) -> int:
    """``run(*case)`` for all cases, say what came of them; 1 if one is not right."""
    warnings.simplefilter("ignore")
    start = reported = time.monotonic()
    end = start + (float("inf") if args.seconds is None else args.seconds)
    count: Counter[str] = Counter()
    failures: list[Outcome] = []
    for found in outcomes(cases, run, args.jobs, args.limit, end):
        count[found.verdict] += 1
        if found.verdict != "right":
            failures.append(found)
            print(f"{found.verdict}: {repeat(found.case)}\n{found.text}", flush=True)
        if time.monotonic() - reported > EVERY:
            reported = time.monotonic()
            print(
                f"{count.total()} of {len(cases)} after {reported - start:.0f} s, {len(failures)} not right", flush=True
            )
    for failure in failures:
        print(f"{failure.verdict}: {repeat(failure.case)}")
    of_all = f"{count.total()} cases of {len(cases)}" + (", the time is over" if count.total() < len(cases) else "")
    verdicts = ", ".join(f"{count[verdict]} {verdict}" for verdict in ("right", "wrong", "refused"))
    print(f"{of_all}: {verdicts}; {time.monotonic() - start:.0f} s in {args.jobs} processes")
    sys.stdout.flush()
    return int(bool(failures))
