"""Statistics of the shared cache for the processes of this machine, shown by `tilework cache info`.

    <cache dir>/.remote/statistics.jsonl      a line per process that asked a shared cache, written when it ends

A line has the counters of `tilework.metrics` whose names begin with ``remote_``. A process that is killed, or whose
disk is full, is missing from them: they are for people, and nothing depends on them. When the file has `LARGEST` bytes
it becomes the older one of two.
"""

import json
import os
import time
from contextlib import suppress
from typing import Any

from tilework import knobs
from tilework.process.metrics import snapshot
from tilework.runtime.kernel_cache.entry import NOTES, is_private, make_folders

LARGEST = 1 << 20
FILE = "statistics.jsonl"
OLDER = ".old"

Totals = dict[str, dict[str, float]]  # of a counter, by its label


def file_of(root: str) -> str:
    return os.path.join(root, NOTES, FILE)


def counters() -> Totals:
    """Return the counters of this process."""
    found = {name: rows for name, rows in snapshot().items() if name.startswith("remote_") and rows}
    return {name: {label.split('"')[1]: value for label, value in rows.items()} for name, rows in found.items()}


def keep() -> None:
    """Append the counters of this process to the file."""
    if not (found := counters()):
        return
    path = file_of(knobs.cache.dir)
    line = json.dumps({"time": int(time.time()), **found}, separators=(",", ":")).encode() + b"\n"
    with suppress(OSError):
        make_folders(os.path.dirname(path))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line)
            is_large = os.fstat(handle).st_size > LARGEST
        finally:
            os.close(handle)
        if is_large:
            os.replace(path, path + OLDER)


def known(root: str) -> tuple[float, int, Totals]:
    """Return (the time of the first line, the number of processes, the sums of their counters)."""
    since, processes, totals = time.time(), 0, Totals()
    for path in (file_of(root) + OLDER, file_of(root)):
        for line in lines_of(path):
            try:
                data: dict[str, Any] = json.loads(line)
                begin = float(data.pop("time"))
                counts = [(name, str(label), float(count)) for name in data for label, count in data[name].items()]
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # a line that was cut short
            since, processes = min(since, begin), processes + 1
            for name, label, count in counts:
                into = totals.setdefault(name, {})
                into[label] = into.get(label, 0.0) + count
    return since, processes, totals


def lines_of(path: str) -> list[bytes]:
    """Return the lines of a file that only this user can have written."""
    try:
        with open(path, "rb") as file:
            return file.read(2 * LARGEST).splitlines() if is_private(os.fstat(file.fileno())) else []
    except OSError:
        return []
