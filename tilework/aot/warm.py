"""Compile a manifest into the cache: `tilework warm`.

    done = warm(read_manifest(["app.jsonl"]), [driver.active.get_current_target()])
    done.compiled, done.present, done.failures

Every specialisation is compiled for every target into the cache of this machine, and so into the shared one if there
is one; entries that either of them has are not replaced. The key of an entry is that of a launch of the same kernel on
such a device. The machine code of the runtime itself is compiled, too.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilework import knobs
from tilework.aot.find_kernels import Finder
from tilework.aot.in_processes import results
from tilework.aot.precompile import Job, changes, found
from tilework.process import metrics
from tilework.runtime.devices.host.own_code import pool_object
from tilework.runtime.kernel_cache.managers import unwritten_entries
from tilework.runtime.launch.native.machine import is_possible, launcher_object, tuple_items
from tilework.target import GPUTarget

DIED = "the compiler did not survive it (%s)"


@dataclass
class Warmed:
    """The result of `warm`: how many kernels were compiled, how many were present, and the failures."""

    compiled: int = 0
    present: int = 0
    failures: list[tuple[Job, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def warm(
    records: Sequence[Mapping[str, Any]],
    targets: Sequence[GPUTarget],
    finder: Finder | None = None,
    workers: int = 1,
    step: Callable[[Job, str | None], None] = lambda job, error: None,
) -> Warmed:
    """Fill the cache; `step` is called with each finished job and its error, if any."""
    jobs = [Job(record, target) for record in records if record["record"] == "kernel" for target in targets]
    finder, done, notes = finder or Finder(), Warmed(), set[str]()
    work = lambda index: into_cache(jobs[index], finder)  # noqa: E731
    for index, result, error in results(work, len(jobs), workers, DIED):
        step(jobs[index], error)
        if error is not None:
            done.failures.append((jobs[index], error))
            continue
        is_new, changed = result
        done.compiled += is_new
        done.present += not is_new
        notes |= set(changed)
    done.notes = sorted(notes)
    done.failures.sort(key=lambda failure: jobs.index(failure[0]))
    make_own_objects()
    return done


def into_cache(job: Job, finder: Finder) -> tuple[bool, list[str]]:
    """Compile one specialisation, in a separate process. Return whether the cache lacked it, and notes for the user."""
    specialization, recorded = found(job, finder)
    before, unkept = metrics.total("compiles"), unwritten_entries()
    specialization.compile_for(job.target)
    if unwritten_entries() - unkept:
        raise OSError(f"it was compiled, and could not be written to the cache {knobs.cache.dir}")
    return metrics.total("compiles") > before, changes(job.record, recorded)


def make_own_objects() -> None:
    """Compile the thread pool of the host and the native launcher, if the cache does not have them."""
    if is_possible():
        launcher_object(time.CLOCK_MONOTONIC, tuple_items()).take()
    pool_object().take()
