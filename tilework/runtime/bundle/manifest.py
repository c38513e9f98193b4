"""The file of TILEWORK_RECORD: a line of JSON for each specialisation that a program uses, and for each choice of an autotuner.

    {"record": "kernel", "version": 1, "kernel": "app:add", "signature": {"x": "*fp32", ...}, ...}      see `needed.py`
    {"record": "tuning", "version": 1, "kernel": "app:matmul", "tuning": [1024, "fp32"], "config": {...}, ...}

Any number of processes append to it at once, and runs that come later add what they need: a line is written in one step, under a
lock, and read once however often it stands there. Files can be put together with `cat`, and lines deleted with an editor.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilework.errors import BundleError

KINDS = ("kernel", "tuning")
VERSION = 1
NEEDS = {
    "kernel": ("kernel", "source", "signature", "constants", "facts", "options", "environment", "key"),
    "tuning": ("kernel", "source", "tuning", "config"),
}


def append(path: str, record: Mapping[str, Any]) -> None:
    """Add a line; OSError where that cannot be done."""
    line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        lock(handle)
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":  # a process was killed, or an editor left no end
            line = b"\n" + line
        while line:
            line = line[os.write(handle, line) :]
    finally:
        os.close(handle)


def lock(handle: int) -> None:
    """Until the file is closed; where there are no locks, appending has to do."""
    try:
        import fcntl  # not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX)
    except (ImportError, OSError):
        return


def identity(record: Mapping[str, Any]) -> str:
    """What tells lines that say the same from others: the values of arguments are for people only."""
    return json.dumps({name: value for name, value in record.items() if name not in ("values", "file")}, sort_keys=True)


def read_manifest(paths: Iterable[str]) -> list[dict[str, Any]]:
    """All records of some files, each once, in an order that does not depend on who came first."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for record in records_in(path):
            known = found.setdefault(identity(record), record)
            if json.dumps(record, sort_keys=True) < json.dumps(known, sort_keys=True):
                found[identity(record)] = record
    return [found[name] for name in sorted(found)]


def records_in(path: str) -> Iterator[dict[str, Any]]:
    """The lines of one file; what is no record is an error that names the line."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"the manifest {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if number == len(lines):  # a process was killed while it wrote
                continue
            raise BundleError(f"{path}:{number}: this is not JSON") from None
        kind = record.get("record") if isinstance(record, dict) else None
        if kind not in KINDS:
            raise BundleError(f"{path}:{number}: this is no record of TILEWORK_RECORD")
        if record.get("version") != VERSION:
            raise BundleError(
                f"{path}:{number}: version {record.get('version')} of the format; this tilework reads {VERSION}"
            )
        if missing := [name for name in NEEDS[kind] if name not in record]:
            raise BundleError(f"{path}:{number}: the record has no {', '.join(missing)}")
        yield record
