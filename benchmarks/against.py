"""`make bench-against BASE=commit`: has anything become slower? Compile, launch and import times beside those of
another commit.

    python -m benchmarks.against ca471ea                       the working tree against that commit
    python -m benchmarks.against ca471ea HEAD~3                two commits
    python -m benchmarks.against ca471ea --only cuda:90        one group of rows: import, cpu, cuda:90, hip:gfx942,
                                                               launch, launch cuda
    python -m benchmarks.against ca471ea --instructions        and count instructions, by perf or, where that cannot, by
                                                               valgrind (minutes)

Either may also be a folder with the tree in it. Both are copied to a temporary folder, and processes of base, now, base
again take turns, each of them new, without a cache. The examples' kernels are those of the base. A time is CPU time, of
the process and its children: the fastest of all rounds, and the median of the processes' fastest. `noise` is what the
base differs from itself by, in this run. A row counts as slower or faster if the fastest and the median both differ by
more than 3 % and the larger noise; what differs by more than 3 % and not by more than the noise is marked with a
question mark.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROCESS = Path(__file__).with_name("against_process.py")
ALLOWED = 0.03
ROUNDS = {"import": 1, "launch": 20, "launch cuda": 20}  # in a process; of the others:
COMPILES = 3
ARMS = ("base", "now", "base again")


@dataclass
class Times:
    """Of one row and one arm: the least of each process, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall: float, cpu: float) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)


Rows = dict[str, tuple[list[float], list[float]]]  # seconds of each round, and CPU seconds
Found = Mapping[str, Mapping[str, Times]]  # by row, by arm


def copy_of(part: str, name: str, folder: Path) -> Path:
    """A package as it is in a commit, or in a folder; it can be imported from what is returned."""
    folder.mkdir(exist_ok=True)
    if Path(name).is_dir():
        shutil.copytree(Path(name) / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", name, part], capture_output=True, check=False)
        if archive.returncode != 0:
            sys.exit(archive.stderr.decode().strip())
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / part)], check=True)
    return folder


def environment(side: Path, examples: Path, cache: str) -> dict[str, str]:
    """The environment of a process: its own tilework, the base's examples, and an empty cache."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("TILEWORK_", "TRITON_", "PYTHON"))}
    path = os.pathsep.join((str(side), str(examples)))
    return {**kept, "PYTHONPATH": path, "TRITON_CACHE_DIR": cache, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}


def run(command: Sequence[str], group: str, rounds: int, side: Path, examples: Path) -> tuple[Rows, str]:
    """The rows of one new process, and what it, or the command before it, wrote to standard error."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [*command, sys.executable, "-P", str(PROCESS), group, str(rounds)],
            env=environment(side, examples, cache),
            capture_output=True,
            text=True,
            check=False,
            cwd=cache,
        )
    if done.returncode != 0:
        sys.exit(f"{group} cannot be measured with {side.name}:\n{done.stderr[-3000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["file"] is None or Path(said["file"]).is_relative_to(side), f"{said['file']} is not of {side}"
    return said["rows"], done.stderr


def measured(groups: Sequence[str], sides: Mapping[str, Path], examples: Path, turns: int) -> Found:
    """All rows; the three arms take turns, and who begins changes."""
    found: dict[str, dict[str, Times]] = defaultdict(lambda: {arm: Times() for arm in ARMS})
    for group in groups:
        for turn in range(turns):
            show(f"{group}: turn {turn + 1} of {turns}")
            for arm in (*ARMS[turn % 3 :], *ARMS[: turn % 3]):
                rows, _ = run((), group, ROUNDS.get(group, COMPILES), sides[arm.split()[0]], examples)
                for row, (wall, cpu) in rows.items():
                    found[row][arm].add(min(wall), min(cpu))
                if len(rows) > 1:  # the sum is less noisy than its parts
                    wall, cpu = (sum(min(seconds[kind]) for seconds in rows.values()) for kind in (0, 1))
                    found[f"{group}, all"][arm].add(wall, cpu)
    show("")
    return found


def counter() -> list[str] | None:
    """A command that counts instructions and says how many on standard error; None where there is none."""
    perf = ["perf", "stat", "-x,", "-e", "instructions:u"]
    if shutil.which("perf"):
        tried = subprocess.run([*perf, "true"], capture_output=True, text=True, check=False)
        if counted(tried.stderr) is not None:
            return perf
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    return valgrind if shutil.which("valgrind") else None


def counted(text: str) -> int | None:
    """The number that perf or valgrind wrote."""
    found = re.search(r"^(\d+),.*instructions|I +refs: *([\d,]+)", text, re.MULTILINE)
    return int((found[1] or found[2]).replace(",", "")) if found else None


def instructions(command: Sequence[str], group: str, side: Path, examples: Path) -> float:
    """Those of one round, or of the import: with it, less without it. What is compiled before launches is not quite the
    same twice."""
    rounds = ROUNDS.get(group, 1)
    without, counts = (counted(run(command, group, number, side, examples)[1]) for number in (0, rounds))
    assert without is not None and counts is not None, f"{command[0]} did not count"
    return (counts - without) / rounds


def show(text: str) -> None:
    """Show the progress on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def ratio(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Of the fastest, and of the medians."""
    return min(one) / min(other), statistics.median(one) / statistics.median(other)


def verdict(differs: tuple[float, float], noise: tuple[float, float]) -> str:
    """The conclusion from both ratios: nothing, slower, faster, or that the machine is too busy."""
    away = [value - 1 for value in differs]
    if away[0] * away[1] <= 0 or min(map(abs, away)) <= ALLOWED:
        return ""
    beyond = min(map(abs, away)) > ALLOWED + max(abs(value - 1) for value in noise)
    return ("slower" if away[0] > 0 else "faster") + ("" if beyond else "?")


def in_units(seconds: float) -> str:
    return f"{seconds * 1e3:9.1f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:9.3f} us"


def table(found: Found) -> dict[str, str]:
    """Print it; the verdicts of the rows that have one."""
    print(f"{'CPU time':38}{'base':>12}{'now':>12}{'fastest':>9}{'noise':>8}{'median':>9}{'noise':>8}{'wall':>8}")
    outside = {}
    for row, arms in found.items():
        base, now, again = (arms[arm] for arm in ARMS)
        differs, noise = ratio(now.cpu, base.cpu), ratio(again.cpu, base.cpu)
        if said := verdict(differs, noise):
            outside[row] = said
        cells = f"{differs[0]:9.3f}{noise[0]:8.3f}{differs[1]:9.3f}{noise[1]:8.3f}{ratio(now.wall, base.wall)[0]:8.3f}"
        print(f"{row:38}{in_units(min(base.cpu))}{in_units(min(now.cpu))}{cells}  {said}")
    return outside


def groups_here() -> list[str]:
    """The groups that can be measured on this machine."""
    here = ["import", "launch", "cpu", "hip:gfx942", *(["cuda:90"] if shutil.which("ptxas") else [])]
    probe = [sys.executable, "-c", "import torch; torch.ones(1, device='cuda')"]
    return [
        *here,
        *(["launch cuda"] if subprocess.run(probe, capture_output=True, check=False).returncode == 0 else []),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="a commit or a folder")
    parser.add_argument("now", nargs="?", default=str(ROOT), help="likewise; the working tree unless given")
    parser.add_argument("--turns", type=int, default=9, help="processes of each arm and group; 0: only instructions")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help="groups of rows")
    parser.add_argument("--instructions", action="store_true", help="count instructions too")
    options = parser.parse_args()
    groups = options.only or groups_here()
    with tempfile.TemporaryDirectory() as folder:
        sides = {name: copy_of("tilework", getattr(options, name), Path(folder, name)) for name in ("base", "now")}
        examples = copy_of("examples", options.base, Path(folder, "of_base"))
        outside = table(measured(groups, sides, examples, options.turns)) if options.turns else {}
        if options.instructions and (command := counter()):
            print(f"\n{'instructions of one round':38}{'base':>18}{'now':>18}   ratio   ({command[0]})")
            for group in groups:
                base, now = (instructions(command, group, sides[name], examples) for name in ("base", "now"))
                print(f"{group:38}{base:18,.0f}{now:18,.0f}{now / base:8.4f}", flush=True)
    for said in ("slower", "faster", "slower?", "faster?"):
        if rows := [row for row, found in outside.items() if found == said]:
            print(f"\n{said}: {'; '.join(rows)}")
    if options.turns and not outside:
        print(f"\nno row is outside of {ALLOWED:.0%}")
    return "slower" in outside.values()


if __name__ == "__main__":
    sys.exit(main())
