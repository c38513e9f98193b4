"""Run a loaded kernel over a grid, and say what went wrong in the user's words.

    kernel = load(data, interface.name)
    run(kernel, interface, slots, (64, 1, 1))

`slots` are the arguments as `interface.py` lays them out. The call returns when every program is done.
"""

from collections.abc import Callable

from tilework import knobs
from tilework.targets.cpu.processor import available_cores
from tilework.targets.cpu.run.interface import STARVED, Interface
from tilework.targets.cpu.run.launch_record import MOST_EXTRA
from tilework.targets.cpu.run.library import NativeKernel
from tilework.targets.cpu.run.pool import (
    POOL,
    Grid,
    Programs,
    is_short,
    is_worth_sharing,
    run_inline,
    run_shared,
    run_unknown,
)

MOST_PROGRAMS = 2**31
MOST_THREADS = 4096  # more would take what the process needs for itself

ErrorOf = Callable[[Interface, Grid, int, int], Exception]  # of a fault code and the number of a program


def run(kernel: NativeKernel, interface: Interface, slots: bytes, grid: Grid, error_of: ErrorOf | None = None) -> None:
    """Run all programs of `grid`; a failed assert is a RuntimeError, or what `error_of` makes of it."""
    total = grid[0] * grid[1] * grid[2]
    if total < 1:
        return
    work = Programs(kernel, slots, grid, total, interface.arena)
    if (is_short(kernel, total) and not interface.waits) or (total == 1 and not is_worth_sharing(kernel)):
        failure = run_inline(work)
    elif total > MOST_PROGRAMS:
        raise ValueError(
            f"a grid of {' x '.join(map(str, grid))} has {total} programs; at most {MOST_PROGRAMS} can be run"
        )
    elif (threads := thread_count()) == 1 and not interface.waits:
        failure = run_inline(work)
    elif kernel.program_ns is None and not interface.waits and POOL.words[1] < min(threads, total) - 1:
        failure = run_unknown(work, threads)
    else:
        failure = run_shared(work, threads, interface.waits)
    if failure is not None:
        error = fault_error if failure[0] < 0 else error_of or fault_error
        raise error(interface, grid, *failure)


def starved_error(interface: Interface, total: int, begun: int) -> RuntimeError:
    """Programs that wait for others for which there is no thread."""
    return RuntimeError(
        f"kernel {interface.name}: {begun} of {total} programs have begun and wait, and no thread can be started for another."
        f" Programs that wait for each other need a thread each: launch fewer of them at a time (at most"
        f" {MOST_EXTRA} are certain to run, if the system allows that many threads), or let each do more of the work"
    )


def thread_count() -> int:
    """TILEWORK_NUM_THREADS, or one per core."""
    wanted = knobs.runtime.num_threads
    if wanted is None:
        return available_cores()
    if not 1 <= wanted <= MOST_THREADS:
        raise ValueError(f"TILEWORK_NUM_THREADS must be at least 1 and at most {MOST_THREADS}, got {wanted}")
    return wanted


def fault_error(interface: Interface, grid: Grid, code: int, linear: int) -> RuntimeError:
    """The error of a failed assert."""
    if code == STARVED:
        return starved_error(interface, grid[0] * grid[1] * grid[2], linear)
    faults = interface.faults
    message, place = faults[code - 1] if 0 < code <= len(faults) else (f"fault {code}", "")
    program = (linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1]))
    where = f"{place}: " if place else ""
    return RuntimeError(f"{where}device-side assert triggered: {message} [kernel {interface.name}, program {program}]")
