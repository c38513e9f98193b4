"""A file that one process at a time may hold; the lock ends with the process, however that ends."""

import os
import time
from contextlib import suppress
from typing import Self

LOOK_EVERY = 0.02  # seconds


class Lock:
    """``lock = Lock.open(path)``, then `take` and `close`; the file goes when the one who had it is done."""

    def __init__(self, path: str, handle: int) -> None:
        self.path, self.handle, self.is_held = path, handle, False

    @classmethod
    def open(cls, path: str) -> Self | None:
        """None where there can be no such file."""
        try:
            return cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return None

    def take(self, patience: float) -> bool:
        """Whether this process has it now, or after some seconds; also where files cannot be locked."""
        end = time.monotonic() + patience
        while not (taken := self.try_now()) and time.monotonic() < end:
            time.sleep(LOOK_EVERY)
        return taken

    def try_now(self) -> bool:
        try:
            import fcntl  # lazily: not every system has it

            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_held = True
        except BlockingIOError:
            return False
        except (ImportError, OSError):
            pass
        return True

    def close(self) -> None:
        if self.is_held:
            with suppress(OSError):
                os.unlink(self.path)
        os.close(self.handle)
