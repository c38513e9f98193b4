"""Work that may crash, or that other threads should not notice, in a copy of this process.

    found = isolated(lambda: compare(launch))      what `compare` returned, as JSON has it; a Died if the copy did not survive it

A launch is repeated on drivers and devices that the program did not choose. The copy has the same memory, so nothing has to be put
back, and a kernel that kills its process kills the copy. Where processes cannot be copied (Windows, a GPU that is in use) it is done here.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilework.runtime.devices.active_driver import driver


@dataclass(frozen=True)
class Died:
    """How a copy ended that has no result."""

    how: str


def isolated(work: Callable[[], Any], seconds: float = 900.0) -> Any:
    """The result of `work`, which JSON must have a form for; after so many seconds the copy is given up."""
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
    text = read_until(readable, time.monotonic() + seconds)
    if text is None:  # another thread held a lock when it was copied, perhaps
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if text is None:
        return Died(f"no answer in {seconds:.0f} s")
    if code < 0:
        return Died(signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}")
    return json.loads(text) if text else Died(f"exit code {code}")


def read_until(readable: int, deadline: float) -> bytes | None:
    """All that comes through a pipe; None if it is still open at the deadline."""
    found = b""
    with open(readable, "rb", buffering=0) as pipe:
        while (left := deadline - time.monotonic()) > 0:
            if select.select([pipe], [], [], left)[0]:
                data = pipe.read(1 << 16)
                if not data:
                    return found
                found += data
    return None


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
