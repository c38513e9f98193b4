"""Work that may crash, or that other threads should not notice, in a copy of this process.

    found = isolated(lambda: compare(launch))      what `compare` returned, as JSON has it; a Died if the copy did not survive it

A launch is repeated on drivers and devices that the program did not choose. The copy has the same memory, so nothing has to be put
back, and a kernel that kills its process kills the copy. Where processes cannot be copied (Windows, a GPU that is in use) it is done here.
"""

import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilework.aot.in_processes import results
from tilework.runtime.devices.active_driver import driver

SECONDS = 900.0  # after which a copy is given up: another thread held a lock when it was made, perhaps


@dataclass(frozen=True)
class Died:
    """How a copy ended that has no result."""

    how: str


def isolated(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The result of `work`, which JSON must have a form for."""

    def answer(number: int) -> str:
        return json.dumps(work(), default=str)

    has_own_memory = getattr(driver.active, "has_own_memory", False)
    if not hasattr(os, "fork") or has_own_memory or multiprocessing.current_process().daemon:
        return json.loads(answer(0))
    _, text, error = next(results(answer, 1, 1, seconds=seconds))
    return json.loads(text) if error is None else Died(error)
