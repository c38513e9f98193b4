"""`python -m tests.mutants`: see `tests/mutants/__init__.py`; `make mutants` does all of it.

State is in `.mutants` (or --state): the records of `reach`, and `results.jsonl`, one line per mutant. `run` goes on
where it stopped; a mutant is run again only with --again. A mutant that cannot change any result is listed with a
reason in `equivalent.toml`.
"""

import argparse
import collections
import json
import os
import queue
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

from tests.mutants.cores import use_cores
from tests.mutants.operators import Mutant
from tests.mutants.reached import Reached, stages
from tests.mutants.rooms import ROOMS, files_of, sample
from tests.mutants.trees import ROOT, Outcome, Tree

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
NOTICED = ("killed", "timeout")


def reach(options: argparse.Namespace) -> int:
    """Run the suite with the recording plugin; tests that fail are listed, and are not used."""
    folder = options.state / "reach"
    folder.mkdir(parents=True, exist_ok=True)
    for record in folder.glob("reach-*"):
        record.unlink()
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name:
        tree = Tree(Path(name))
        arguments = [
            "-n",
            str(options.jobs),
            "--dist",
            "worksteal",
            "-p",
            "tests.mutants.reach",
            "--tb=line",
            *options.tests,
        ]
        tree.pytest(
            arguments, {"MUTANTS_REACH": str(folder.resolve())}, Path(name), options.minutes and 60 * options.minutes
        )
        (options.state / "reach.log").write_text((Path(name) / "output").read_text(errors="replace"))
    found = Reached(folder)
    print(
        f"{found.count} tests passed, {len(found.failed)} failed or were skipped and are left out; "
        f"see {options.state / 'reach.log'}"
    )
    return 0 if found.count else 1


def run(options: argparse.Namespace) -> int:
    """Run the mutants that have no result yet; print the survivors."""
    mutants = chosen_mutants(options)
    reached = Reached(options.state / "reach")
    known = {} if options.again else results(options.state)
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    equivalent = equivalent_mutants()
    todo = [mutant for mutant in mutants if mutant.id not in equivalent and needs_run(known.get(mutant.id), options)]
    for mutant in sorted(todo, key=lambda mutant: mutant.id):  # rooms mixed: a run that is stopped has some of each
        waiting.put(mutant)
    print(f"{len(mutants)} mutants, {len(todo)} to run, {reached.count} tests", flush=True)
    ends = time.monotonic() + 60 * options.minutes if options.minutes else None
    lock = threading.Lock()
    with (
        (options.state / "results.jsonl").open("a") as log,
        tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name,
    ):
        warm = Tree(Path(name))  # has bytecode of all that pytest imports
        warm.pytest(["--collect-only", "-q"], {}, Path(name), 600)

        def work(number: int) -> None:
            use_cores(number)
            folder = Path(name) / str(number)
            folder.mkdir()
            tree = Tree(folder, warm.folder)
            while ends is None or time.monotonic() < ends:
                try:
                    mutant = waiting.get_nowait()
                except queue.Empty:
                    return
                begun = time.monotonic()
                entry = result_of(tree, mutant, reached, options.budget)
                entry["seconds"] = round(time.monotonic() - begun, 1)
                with lock:
                    log.write(json.dumps(entry) + "\n")
                    log.flush()
                    print(f"{entry['verdict']:9} {mutant.id} {mutant.file} {mutant.function} {entry['by']}", flush=True)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return report(mutants, options)


def needs_run(entry: dict[str, Any] | None, options: argparse.Namespace) -> bool:
    return entry is None or (options.survivors and entry["verdict"] not in NOTICED)


def result_of(tree: Tree, mutant: Mutant, reached: Reached, budget: float) -> dict[str, Any]:
    """A line of `results.jsonl`."""
    tests = reached.tests(mutant)
    runs, left_out = stages(tests, budget)
    outcome = Outcome("unreached", "")
    for stage in runs:
        outcome = tree.run(mutant, stage)
        if outcome.verdict != "survived":
            break
    facts = {
        "id": mutant.id,
        "file": mutant.file,
        "function": mutant.function,
        "verdict": outcome.verdict,
        "by": outcome.by,
    }
    return {**facts, "tests": len(tests), "left_out": left_out}


def results(state: Path) -> dict[str, dict[str, Any]]:
    """The last result of each mutant."""
    path = state / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def equivalent_mutants() -> dict[str, str]:
    """The reason for each mutant that changes no result."""
    return {entry["id"]: entry["reason"] for entry in tomllib.loads(EQUIVALENT.read_text()).get("mutant", ())}


def chosen_mutants(options: argparse.Namespace) -> list[Mutant]:
    mutants = sample(options.sample, options.seed, ROOT, options.rooms)
    return [mutant for mutant in mutants if mutant.id in options.only] if options.only else mutants


def show(options: argparse.Namespace) -> int:
    return report(chosen_mutants(options), options)


def report(mutants: list[Mutant], options: argparse.Namespace) -> int:
    """Print each survivor with its diff, and the figures of each room."""
    known, equivalent = results(options.state), equivalent_mutants()
    figures: dict[str, collections.Counter[str]] = {room: collections.Counter() for room in options.rooms}
    rooms = {str(file.relative_to(ROOT)): room for room in options.rooms for file in files_of(room, ROOT)}
    for mutant in mutants:
        entry = known.get(mutant.id)
        verdict = "equivalent" if mutant.id in equivalent else entry["verdict"] if entry else "waiting"
        figures[rooms[mutant.file]][verdict] += 1
        if entry is None or verdict in (*NOTICED, "equivalent"):
            continue
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        left_out = f", {entry['left_out']} left out" if entry["left_out"] else ""
        print(
            f"\n{verdict} {mutant.id} {mutant.file}: {mutant.function} ({entry['tests']} tests{left_out}) {entry['by']}"
        )
        print(mutant.diff(source))
    print()
    for room, counts in [*figures.items(), ("all", sum(figures.values(), collections.Counter()))]:
        noticed = sum(counts[verdict] for verdict in NOTICED)
        judged = sum(counts.values()) - counts["equivalent"] - counts["waiting"]
        share = f"{100 * noticed / judged:5.1f} %" if judged else "     -"
        print(f"{room:16} {share} noticed: {', '.join(f'{count} {name}' for name, count in sorted(counts.items()))}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("command", choices=("reach", "run", "show"))
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--minutes", type=float, help="begin nothing after that time")
    parser.add_argument("--sample", type=int, default=400, help="mutants, over all rooms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--only", nargs="+", help="ids of mutants")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests per mutant")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--survivors", action="store_true", help="run survivors again")
    options, options.tests = parser.parse_known_args()  # reach: the rest is pytest's
    if options.tests and options.command != "reach":
        parser.error(f"unknown arguments: {options.tests}")
    options.state.mkdir(parents=True, exist_ok=True)
    return {"reach": reach, "run": run, "show": show}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
