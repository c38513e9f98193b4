"""TILEWORK_RECORD=file: what a program uses, so that `tilework precompile` can compile it elsewhere.

    {"record": "kernel", "version": 1, "kernel": "app:add", "signature": {"x": "*fp32", ...}, ...}
    {"record": "tuning", "version": 1, "kernel": "app:matmul", "tuning": [1024, "fp32"], "config": {...}, ...}
    {"record": "candidate", "version": 1, "kernel": "app:matmul", "signature": {...}, "config": {...}, ...}

The file has a line of JSON for each specialisation (`specialization_record.py`), and for each choice of an autotuner.
The line of a choice has the times of all configurations. A candidate is the specialisation that the same launch would
need with another configuration, which a decision tree may choose for another size (`aot/trees.py`).
Any number of processes append to it at once, and later runs add what they need: a line is written in one step, under a
lock, and duplicates are read once. Files can be concatenated with `cat`, and lines deleted with an editor.

The recorder is a listener (`process/events.py`). It is called for each specialisation that a launch needs, wherever its
code then comes from, and for each choice of an autotuner. Launches like earlier ones cost nothing more.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tilework import knobs
from tilework.errors import BundleError
from tilework.process.events import LISTENERS, is_worker
from tilework.process.forks import held_at_fork
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import changes_stages
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.constants_json import (
    Unwritable,
    constant_text,
    name_of,
    settings_to_json,
)
from tilework.runtime.recording.key_parts import Argument, KeyParts
from tilework.runtime.recording.recorder import QUIET, is_tuning, warn_user
from tilework.runtime.recording.specialization_record import VERSION, SpecializationRecord, is_kernel
from tilework.runtime.recording.tuning_family import TunedLaunch
from tilework.runtime.tuning.config import Config, device_part, is_reproducible
from tilework.runtime.tuning.results import has_failed, is_storable, order

SPECIALIZATION = ("kernel", "source", "signature", "constants", "facts", "options", "environment", "key")
NEEDS = {
    "kernel": SPECIALIZATION,
    "tuning": ("kernel", "source", "tuning", "config"),
    "candidate": (*SPECIALIZATION, "family", "config"),
}
TYPES = {"kernel": str, "source": str, "signature": dict, "constants": dict, "facts": dict, "options": dict}
FOR_PEOPLE, TIMES = ("values", "file"), "timings"


def append(path: str, record: Mapping[str, Any]) -> None:
    """Append a record to a file; raise OSError if it cannot be written."""
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
    """Lock a file until it is closed. On systems without locks, only the append of each line is atomic."""
    try:
        import fcntl  # not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX)
    except (ImportError, OSError):
        return


def identity(record: Mapping[str, Any]) -> str:
    """Return the identity of a record: its content without the values of arguments, which are informational, and
    without times, which differ in each run."""
    left_out = (*FOR_PEOPLE, TIMES)
    return json.dumps({name: value for name, value in record.items() if name not in left_out}, sort_keys=True)


def read_manifest(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return the distinct records of some files, sorted."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for record in records_in(path):
            known = found.setdefault(identity(record), record)
            if json.dumps(record, sort_keys=True) < json.dumps(known, sort_keys=True):
                found[identity(record)] = record
    return [found[name] for name in sorted(found)]


def record_text(record: Mapping[str, Any]) -> str:
    """``app:add(x: *fp32:16, n: i32, BLOCK=256, num_warps=8)``: the specialisation of a record, for people."""
    facts, constants = record["facts"], {leaf: constant_text(value) for leaf, value in record["constants"].items()}
    arguments = {
        name: Argument(constant_text(type).strip("'"), facts.get(name, ""), constants.get(name))
        for name, type in record["signature"].items()
    }
    options = {f"option {name}": constant_text(value) for name, value in record["options"].items()}
    return KeyParts(record["kernel"], arguments, options).text(with_options=True)


def records_in(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records of one file; a line that is no record is an error that names it."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"the manifest {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if line_number == len(lines):  # a process was killed while it wrote
                continue
            raise BundleError(f"{path}:{line_number}: this is not JSON") from None
        kind = record.get("record") if isinstance(record, dict) else None
        if not isinstance(kind, str) or kind not in NEEDS:
            raise BundleError(f"{path}:{line_number}: this is no record of TILEWORK_RECORD")
        if record.get("version") != VERSION:
            raise BundleError(
                f"{path}:{line_number}: version {record.get('version')} of the format; this tilework reads {VERSION}"
            )
        if missing := [name for name in NEEDS[kind] if name not in record]:
            raise BundleError(f"{path}:{line_number}: the record has no {', '.join(missing)}")
        if wrong := [name for name, type in TYPES.items() if not isinstance(record.get(name, type()), type)]:
            raise BundleError(f"{path}:{line_number}: {wrong[0]} is {json.dumps(record[wrong[0]])[:80]}")
        if not has_times(record):
            raise BundleError(f"{path}:{line_number}: the times of the configurations are none")
        yield record


def has_times(record: Mapping[str, Any]) -> bool:
    """Return False if the times of a tuning record are malformed; other records have none."""
    if record["record"] != "tuning" or "family" not in record:
        return True
    family, shape, times = (record.get(name) for name in ("family", "shape", TIMES))
    if not (isinstance(family, dict) and isinstance(shape, dict) and isinstance(times, list)):
        return False
    return all(map(is_number, shape.values())) and all(map(is_time, times))


def is_number(value: object) -> bool:
    return type(value) in (int, float)


def is_time(row: object) -> bool:
    """Return True for a configuration and its time, which is None if it cannot run."""
    match row:
        case [dict(), time]:
            return time is None or (type(time) in (int, float) and time > 0)
        case _:
            return False


class ProgramRecorder:
    """A listener that appends records to one file; see the module docstring."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.known: set[str] = set()

    def __call__(self, what: str, facts: Mapping[str, Any]) -> None:
        """Record one event."""
        if (rule := RULES.get(what)) is not None and not QUIET.is_quiet and not is_worker():
            rule(self, facts)

    def write(self, fn: Any, make: Callable[[], dict[str, Any]]) -> bool:
        """Write a record, unless this process has written it, or it cannot be written; return True if it is new."""
        try:
            record = make()
        except Unwritable as error:
            self.warn(f"{fn.__qualname__} is not recorded: {error}")
            return False
        if (same := identity(record)) in self.known:
            return False
        self.known.add(same)
        try:
            append(self.path, record)
        except OSError as error:
            self.warn(f"nothing is written to {self.path}: {error.strerror}")
        return True

    def warn(self, text: str) -> None:
        if text not in self.known:
            self.known.add(text)
            warn_user(f"TILEWORK_RECORD: {text}")

    def needed(
        self, specialization: Specialization, backend: Any, more: Callable[[], Mapping[str, Any]] = dict[str, Any]
    ) -> bool:
        """Write a specialisation, with more entries of its record; return True if it is new."""
        fn = specialization.fn
        if changes_stages():
            self.warn(f"{fn.__qualname__} is not recorded: a hook, or TRITON_KERNEL_OVERRIDE, changes what is compiled")
            return False
        file = source_file_of(fn)
        return self.write(fn, lambda: {**SpecializationRecord(specialization, backend).to_json(), **file, **more()})


def record_needed(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    if not is_tuning():  # what is chosen of it will be launched
        recorder.needed(facts["specialization"], facts["backend"])


def record_choice(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    """Write the configuration of a launch and the specialisation that it needs, which may have been compiled when the
    configuration was tried; then the candidates."""
    tuner, config, args, kwargs = facts["tuner"], facts["config"], facts["args"], facts["kwargs"]
    if (found := needed_with(tuner, args, {**kwargs, **config.all_kwargs()})) is None:
        return
    is_new = recorder.needed(*found)
    if len(tuner.configs) == 1:
        return
    fn, named = found[0].fn, dict(zip(tuner.arg_names, args, strict=False))
    is_new |= recorder.write(fn, lambda: choice(tuner, fn, config, named, kwargs))
    for other in candidates(tuner, config, named, kwargs) if is_new else ():
        try:
            found = needed_with(tuner, *tuner.launch_of(other, args, kwargs))
        except Exception as error:  # the user's heuristics, which may raise anything, refuse the configuration
            recorder.warn(f"{fn.__qualname__} is not recorded with {other}: {type(error).__name__}: {error}")
            continue
        if found is not None:
            recorder.needed(*found, lambda other=other: candidate(tuner, other, {**named, **kwargs}, kwargs))


def needed_with(
    tuner: Any, args: Sequence[object], settings: Mapping[str, object]
) -> tuple[Specialization, Any] | None:
    """Return (the specialisation of a tuner's launch with these keyword arguments, the backend); None if the launch is
    recorded elsewhere, or is an error."""
    fn, arguments = tuner.fn, settings
    while not is_kernel(fn):
        if not hasattr(fn, "extend"):
            return None  # interpreted, or a foreign wrapper, whose launches are recorded separately
        fn, arguments = fn.fn, fn.extend(args, arguments)
    arguments = {name: value for name, value in arguments.items() if name not in ("grid", "warmup")}
    _, _, _, backend, bind = fn.device_caches[driver.cache_key(driver.active)]
    try:
        values, specs, _, options = bind(*args, **arguments)
    except (TypeError, ValueError, OverflowError):
        return None  # the launch, which comes next, says what is wrong with the call
    return Specialization.of(fn, values, specs, fn.full_options(options, backend)), backend


def choice(tuner: Any, fn: Any, config: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an autotuner's choice and its arguments."""
    reproducible = is_reproducible(tuner.fn, kwargs)
    launch = TunedLaunch.of(tuner, {**named, **kwargs}, reproducible)
    return {
        "record": "tuning",
        "version": VERSION,
        "kernel": name_of(fn),
        "source": fn.portable_key,
        "tuning": launch.key,
        "family": launch.family,
        "shape": launch.shape,
        "device": str(*device_part()),
        "reproducible": reproducible,
        "config": settings_to_json(config),
        TIMES: times_to_json(times_of(tuner, named, kwargs)),
        **source_file_of(fn),
    }


def candidate(tuner: Any, config: Config, given: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries by which the record of a candidate differs from that of a launch."""
    family = TunedLaunch.of(tuner, given, is_reproducible(tuner.fn, kwargs)).family
    return {"record": "candidate", "family": family, "config": settings_to_json(config)}


def times_to_json(times: Mapping[Config, Any]) -> list[Any]:
    """Times as JSON, without those of configurations that another process cannot have."""
    found: list[Any] = []
    for config, time in times.items():
        with suppress(Unwritable):
            found.append([settings_to_json(config), None if has_failed(time) else order(time)[0]])
    return found


def times_of(tuner: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[Config, Any]:
    """Return the timings for the arguments of a launch; none if it was not measured, or a benchmarker's results are not
    times."""
    found: dict[Config, Any] = tuner.tunings.get(tuner.tuning_key(named, kwargs), {}).get("timings", {})
    return found if all(is_storable(time) and order(time)[0] > 0 for time in found.values()) else {}


def candidates(tuner: Any, config: Config, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[Config]:
    """Return the other configurations that may be chosen for other sizes: those that ran, and with `choose` all of
    them."""
    ran = [one for one, time in times_of(tuner, named, kwargs).items() if not has_failed(time)]
    return [one for one in (ran if tuner.choose is None else tuner.configs) if one != config]


def source_file_of(fn: Any) -> dict[str, Any]:
    """The file of a kernel, for kernels of the main program, which cannot be imported by name."""
    return {"file": os.path.abspath(fn.where.file), **({"triton": True} if knobs.language.is_triton else {})}


RULES: dict[str, Callable[[ProgramRecorder, Mapping[str, Any]], None]] = {
    "needed": record_needed,
    "chosen": record_choice,
}
INSTALLING = held_at_fork(threading.RLock())


def record_into(path: str) -> None:
    """Start to record into a file, unless this process does so already."""
    with INSTALLING:
        full_path = os.path.abspath(path)
        if not any(isinstance(one, ProgramRecorder) and one.path == full_path for one in LISTENERS):
            LISTENERS.append(ProgramRecorder(full_path))
