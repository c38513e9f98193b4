"""NVIDIA's compute-sanitizer on the kernels of `make bench-gpu`: every row with every tool.

    python -m tests.device.check_sanitize --tools                     all rows
    python -m tests.device.check_sanitize --tools attention sort      rows whose name has one of the words
    python -m tests.device.check_sanitize --tools --only racecheck --seconds 100

A row runs in a process of its own, with all its configurations at a small size at which blocks stay
(`Sizes.BLOCKS_STAY`). What is expected comes from the host, so that hardly any kernel but ours is launched. Processes
of all rows and tools run side by side. A line of the table has, for each tool, what it found in how many launches, and
seconds. What a tool says follows the table. The exit code is the number of cells that are not clean, 99 at most.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tilework.process.output import bytes_in

TOOLS: dict[str, Sequence[str]] = {
    "none": (),  # also compiles everything, for the others
    "memcheck": (),
    "synccheck": ("--num-cuda-barriers", "65536"),
    "racecheck": ("--racecheck-report", "all"),
}
TERSE = ("--print-limit", "20", "--show-backtrace", "device")
SUMMARY = re.compile(r"SUMMARY: (\d+) errors?|SUMMARY: .* \((\d+) errors?, (\d+) warnings?\)")
LAUNCHES = re.compile(r"(\d+) of (\d+) configurations are right")


class Cell(NamedTuple):
    """The findings of a tool in a row; `found` is None if the tool did not finish."""

    found: int | None
    launches: int
    seconds: float
    said: str

    @property
    def is_clean(self) -> bool:
        return self.found == 0

    def __str__(self) -> str:
        return f"{'cut off' if self.found is None else self.found} in {self.launches}, {self.seconds:.0f} s"


def run(row: str, tool: str, limit: float) -> Cell:
    command = [sys.executable, "-m", "benchmarks.gpu", "--check", "--rows", row]
    if tool != "none":
        command = ["compute-sanitizer", "--tool", tool, *TERSE, *TOOLS[tool], *command]
    start = time.monotonic()
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            code = child.wait()
        said = bytes_in(printed).decode(errors="replace")
    right = LAUNCHES.search(said)
    summary = SUMMARY.search(said)
    found = None
    if tool == "none" and right is not None:
        found = int(right[2]) - int(right[1])
    elif summary is not None and right is not None:
        found = sum(int(count or 0) for count in summary.groups()) + abs(code)
    return Cell(found, int(right[2]) if right is not None else 0, time.monotonic() - start, said)


def table(rows: Sequence[str], tools: Sequence[str], limit: float, processes: int) -> Iterable[tuple[str, list[Cell]]]:
    """The cells of each row, as they get ready; first all rows without a tool."""
    with ThreadPoolExecutor(processes) as pool:
        plain = [pool.submit(run, row, "none", limit) for row in rows]
        for cell in plain:
            cell.result()
        started = {tool: [pool.submit(run, row, tool, limit) for row in rows] for tool in reversed(tools)}
        for index, row in enumerate(rows):
            yield row, [plain[index].result(), *(started[tool][index].result() for tool in tools)]


def main(arguments: Sequence[str]) -> int:
    from benchmarks.gpu import chosen
    from benchmarks.gpu_rows import ONLY_CHECKED

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="words of the names of rows")
    parser.add_argument("--only", nargs="*", choices=TOOLS, default=[tool for tool in TOOLS if tool != "none"])
    parser.add_argument("--seconds", type=float, default=600, help="that one row may take with one tool")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    rows = chosen(given.words, ONLY_CHECKED)
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())
    print(f"{'errors in launches':50}" + "".join(f"{tool:>20}" for tool in ("no tool: wrong", *given.only)), flush=True)
    unclean: list[str] = []
    for row, cells in table(rows, given.only, given.seconds, given.processes):
        print(f"{row:50}" + "".join(f"{cell!s:>20}" for cell in cells), flush=True)
        unclean += [
            f"== {row}, {tool}\n{cell.said}"
            for tool, cell in zip(("no tool", *given.only), cells, strict=True)
            if not cell.is_clean
        ]
    print(*unclean, sep="\n", flush=True)
    return min(len(unclean), 99)
