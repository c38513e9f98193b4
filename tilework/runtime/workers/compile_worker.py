"""A process that compiles kernels for another one; started by `compile_workers`.

It reads requests, one JSON object per line, from its standard input, and answers each on its standard output with lines
``{"state": "loaded"}`` (the kernel is there; from now on it is the compiler's fault) and then one of
``{"state": "compiled" | "refused" | "failed", "detail": ..., "output": ...}``. It ends when its input ends, its parent
is gone, or nothing was asked for minutes. What kernels print while they are compiled is in `output`; standard output
itself belongs to the protocol.
"""

import io
import json
import os
import signal
import sys
import threading
import time
from contextlib import redirect_stdout
from typing import Any, BinaryIO

from tilework.runtime.workers import compile_workers
from tilework.runtime.workers.compile_requests import Refused, Request, adopt, compile_into_cache, specialization_of

WATCH_EVERY = 1.0  # seconds
MOST_IDLE = 300.0  # seconds; a program that tunes and then runs for days should get its memory back


def main(parent: int) -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes our input
    compile_workers.is_worker = True
    idle = Idle()
    threading.Thread(target=watch, args=(parent, idle), daemon=True).start()
    requests, answers = private_channel()
    for line in requests:
        with idle.busy:
            for answer in serve(json.loads(line)):
                answers.write(json.dumps(answer).encode() + b"\n")
                answers.flush()
            idle.since = time.monotonic()
    os._exit(0)  # nothing to clean up, and user modules may have left threads


class Idle:
    """Since when there is nothing to do, and a lock that is held while there is."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.busy = threading.Lock()


def private_channel() -> tuple[BinaryIO, BinaryIO]:
    """Input and output as files that user code cannot reach by accident; its own output goes to standard error."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, answers


def watch(parent: int, idle: Idle) -> None:
    """End with the parent, even in the middle of a compilation; end when nothing was asked for long."""
    while os.getppid() == parent:
        if not idle.busy.locked() and time.monotonic() - idle.since > MOST_IDLE:
            break
        time.sleep(WATCH_EVERY)
    os._exit(1)


def serve(message: dict[str, Any]) -> Any:
    """The answers to one request."""
    request = Request(**message)
    printed = io.StringIO()
    loaded = False
    try:
        with redirect_stdout(io.StringIO()):  # what a module prints was printed when the parent imported it
            adopt(request)
            specialization = specialization_of(request)
        loaded = True
        yield {"state": "loaded"}
        with redirect_stdout(printed):
            compile_into_cache(request, specialization)
        yield {"state": "compiled", "detail": "", "output": printed.getvalue()}
    except Refused as refusal:
        yield {"state": "refused", "detail": str(refusal), "output": ""}
    except (Exception, SystemExit) as error:  # the parent meets the same error again, and raises it for the user
        state = "failed" if loaded else "refused"
        yield {"state": state, "detail": f"{type(error).__name__}: {error}", "output": ""}


if __name__ == "__main__":
    main(int(sys.argv[1]))
