"""Work that may crash, or that other threads should not notice, in a copy of this process.

    found = isolated(lambda: compare(launch))      what `compare` returned, as JSON has it; a Died if the copy did not survive it

A launch is repeated on drivers and devices that the program did not choose. The copy has the same memory, so nothing has to be put
back, and a kernel that kills its process kills the copy. Where processes cannot be copied (Windows, a GPU that is in use) it is done here.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilework.runtime.devices.active_driver import driver


@dataclass(frozen=True)
class Died:
    """How a copy ended that has no result."""

    how: str


def isolated(work: Callable[[], Any]) -> Any:
    """The result of `work`, which JSON must have a form for."""
    if not hasattr(os, "fork") or getattr(driver.active, "has_own_memory", False):
        return json.loads(json.dumps(work(), default=str))
    sys.stdout.flush()
    sys.stderr.flush()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        answer(work, writable)
    os.close(writable)
    with open(readable, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return Died(signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}")
    return json.loads(text) if text else Died(f"exit code {code}")


def answer(work: Callable[[], Any], writable: int) -> None:
    """In the copy: write the result and end, without what a process does at its end."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with open(writable, "w", encoding="utf-8") as pipe:
            json.dump(work(), pipe, default=str)
        code = 0
    except BaseException as error:
        print(f"tilework explain: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)
