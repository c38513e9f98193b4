"""TILEWORK_RECORD=file: what a program uses, so that `tilework precompile` can compile it elsewhere.

    {"record": "kernel", "version": 1, "kernel": "app:add", "signature": {"x": "*fp32", ...}, ...}
    {"record": "tuning", "version": 1, "kernel": "app:matmul", "tuning": [1024, "fp32"], "config": {...}, ...}

The file has a line of JSON for each specialisation (`specialization_record.py`), and for each choice of an autotuner.
Any number of processes append to it at once, and later runs add what they need: a line is written in one step, under a
lock, and duplicates are read once. Files can be concatenated with `cat`, and lines deleted with an editor.

The recorder is a listener (`process/events.py`). It hears of each specialisation that a launch needs, whatever its code
then comes from, and of each choice of an autotuner; configurations that the autotuner only tries are not written.
Launches like earlier ones cost nothing more.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tilework import knobs
from tilework.errors import BundleError
from tilework.language.portable_key import portable_key
from tilework.process.events import LISTENERS, is_worker
from tilework.process.forks import held_at_fork
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import changes_stages
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.constants_json import Unwritable, constant_text, constant_to_json, name_of
from tilework.runtime.recording.key_parts import Argument, KeyParts
from tilework.runtime.recording.recorder import QUIET, is_tuning, warn_user
from tilework.runtime.recording.specialization_record import VERSION, SpecializationRecord, is_kernel
from tilework.runtime.tuning.config import argument_key, device_part, is_reproducible

KINDS = ("kernel", "tuning")
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
    """The identity of a record: its content without the values of arguments, which are for people only."""
    return json.dumps({name: value for name, value in record.items() if name not in ("values", "file")}, sort_keys=True)


def read_manifest(paths: Iterable[str]) -> list[dict[str, Any]]:
    """All records of some files, each once, sorted."""
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
    """The lines of one file; what is no record is an error that names the line."""
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
        if kind not in KINDS:
            raise BundleError(f"{path}:{line_number}: this is no record of TILEWORK_RECORD")
        if record.get("version") != VERSION:
            raise BundleError(
                f"{path}:{line_number}: version {record.get('version')} of the format; this tilework reads {VERSION}"
            )
        if missing := [name for name in NEEDS[kind] if name not in record]:
            raise BundleError(f"{path}:{line_number}: the record has no {', '.join(missing)}")
        yield record


class ProgramRecorder:
    """Appends to one file; see the module."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.known: set[str] = set()

    def __call__(self, what: str, facts: Mapping[str, Any]) -> None:
        """One event."""
        if (rule := RULES.get(what)) is not None and not QUIET.is_quiet and not is_worker():
            rule(self, facts)

    def write(self, fn: Any, make: Callable[[], dict[str, Any]]) -> None:
        """A record, unless this process has written it, or it cannot be written."""
        try:
            record = make()
        except Unwritable as error:
            self.warn(f"{fn.__qualname__} is not recorded: {error}")
            return
        if (same := identity(record)) in self.known:
            return
        self.known.add(same)
        try:
            append(self.path, record)
        except OSError as error:
            self.warn(f"nothing is written to {self.path}: {error.strerror}")

    def warn(self, text: str) -> None:
        if text not in self.known:
            self.known.add(text)
            warn_user(f"TILEWORK_RECORD: {text}")

    def needed(self, specialization: Specialization, backend: Any) -> None:
        fn = specialization.fn
        if changes_stages():
            self.warn(f"{fn.__qualname__} is not recorded: a hook, or TRITON_KERNEL_OVERRIDE, changes what is compiled")
            return
        self.write(fn, lambda: {**SpecializationRecord(specialization, backend).to_json(), **source_file_of(fn)})


def record_needed(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    if not is_tuning():  # what is chosen of it will be launched
        recorder.needed(facts["specialization"], facts["backend"])


def record_choice(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    """The configuration of a launch, and the specialisation that it needs: it may have been compiled when it was
    tried."""
    tuner, config, args, kwargs = facts["tuner"], facts["config"], facts["args"], facts["kwargs"]
    fn, arguments = tuner.fn, {**kwargs, **config.all_kwargs()}
    while not is_kernel(fn):
        if not hasattr(fn, "extend"):
            return  # interpreted, or a foreign wrapper, whose launches are recorded separately
        fn, arguments = fn.fn, fn.extend(args, arguments)
    arguments = {name: value for name, value in arguments.items() if name not in ("grid", "warmup")}
    _, _, _, backend, bind = fn.device_caches[driver.cache_key(driver.active)]
    try:
        values, specs, _, options = bind(*args, **arguments)
    except (TypeError, ValueError, OverflowError):
        return  # the launch, which comes next, says what is wrong with the call
    specialization = Specialization.of(fn, values, specs, fn.full_options(options, backend))
    recorder.needed(specialization, backend)
    if len(tuner.configs) > 1:
        recorder.write(fn, lambda: choice(tuner, fn, config, dict(zip(tuner.arg_names, args, strict=False)), kwargs))


def choice(tuner: Any, fn: Any, config: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an autotuner's choice and its arguments."""
    given = {**named, **kwargs}
    key = argument_key(tuner.keys, tuner.arg_names, given)
    return {
        "record": "tuning",
        "version": VERSION,
        "kernel": name_of(fn),
        "source": portable_key(fn),
        "tuning": [constant_to_json(value) for value in key],
        "names": list(tuner.key_parts(key, given)),
        "device": str(*device_part()),
        "reproducible": is_reproducible(tuner.fn, kwargs),
        "config": {name: constant_to_json(value) for name, value in config.all_kwargs().items()},
        **source_file_of(fn),
    }


def source_file_of(fn: Any) -> dict[str, Any]:
    """The file of a kernel, for kernels of the main program, which cannot be imported by name."""
    return {"file": os.path.abspath(fn.where.file), **({"triton": True} if knobs.language.is_triton else {})}


RULES: dict[str, Callable[[ProgramRecorder, Mapping[str, Any]], None]] = {
    "needed": record_needed,
    "chosen": record_choice,
}
INSTALLING = held_at_fork(threading.RLock())


def record_into(path: str) -> None:
    """Record into a file from now on; once."""
    with INSTALLING:
        full_path = os.path.abspath(path)
        if not any(isinstance(one, ProgramRecorder) and one.path == full_path for one in LISTENERS):
            LISTENERS.append(ProgramRecorder(full_path))
