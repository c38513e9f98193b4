"""What makes a launch on the CPU slow beside its code: cores without work, programs that are too small, tiles that leave the caches."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from tilework.inspect.explain.findings import Finding, counted
from tilework.targets.cpu.run.run_grid import thread_count

if TYPE_CHECKING:
    from tilework.inspect.explain.slow import Case

WORTH_SHARING = 1 << 20  # bytes that take about 0.1 ms; waking threads for less gains nothing
CACHE = 1 << 20  # bytes of the second cache of a core, on most machines


def grid_findings(case: "Case", facts: Mapping[str, Any]) -> Iterator[Finding]:
    """The grid against the cores, and the scratch memory of a program against their caches."""
    threads = thread_count()
    is_worth_it = case.bytes >= WORTH_SHARING and not facts.get("is_shared")
    if case.grid is not None and 0 < prod(case.grid) < threads and is_worth_it:
        number = prod(case.grid)
        yield Finding(
            kernel=case.kernel,
            title=f"the grid has {counted(number, 'program')} for {threads} threads, and no loop of it is long enough to be shared",
            help="smaller blocks, or another axis of the grid: one program is one unit of work, on one core",
            severity="slow",
            weight=min(threads / number, 4.0),
            facts={"target": "cpu", "grid": case.grid, "threads": threads},
        )
    arena = facts.get("interface", {}).get("arena", 0)
    if arena > CACHE:
        yield Finding(
            kernel=case.kernel,
            title=f"the tiles of a program take {arena / 1e6:.1f} MB of scratch memory, more than the caches of a core",
            help="smaller blocks: a tile that is computed in one go and stored needs no memory, one that is used twice does",
            severity="slow",
            weight=1.5,
            facts={"target": "cpu", "arena": arena},
        )
