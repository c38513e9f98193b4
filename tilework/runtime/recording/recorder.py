"""Record compilations, disk-cache hits, loads and tunings, with the running line of the program.

    TILEWORK_EXPLAIN=1 python train.py              prints why a kernel is compiled again, when that happens
    TILEWORK_EXPLAIN=folder python train.py         a file of JSON lines per process, which `tilework explain` reads

A record is a dictionary with `event`, `kernel`, `process` and `time`. Each line is written when its event happens, so
that the file of a process that crashes has everything until then. Nothing here runs unless
TILEWORK_EXPLAIN is set.
"""

import json
import math
import os
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from tilework import knobs
from tilework.errors import Diagnostic, Span, span_at
from tilework.process.events import LISTENERS, above, is_worker
from tilework.process.forks import held_at_fork
from tilework.runtime.kernel_cache.key import file_stem
from tilework.runtime.recording.key_parts import Comparison, KeyParts, compared, parts_of, stored_parts

LONGEST_VALUE = 60


class Quiet(threading.local):
    """A thread-local switch that disables recording: explanations launch, too."""

    is_quiet = False


QUIET = Quiet()


RECORDING = held_at_fork(threading.RLock())  # for all that are active


class Recorder:
    """The records of one process: kept in `records`, written to a file in `folder` if given, printed to stderr if
    `is_live`."""

    def __init__(self, folder: str | None = None, is_live: bool = False) -> None:
        self.folder, self.is_live = folder, is_live
        self.process = os.getpid()
        self.records: list[dict[str, Any]] = []
        self.seen: dict[str, list[KeyParts]] = {}  # by kernel, what this process had so far
        self.thread = threading.local()
        self.loading: dict[str, float] = {}

    def __call__(self, what: str, facts: dict[str, Any]) -> None:
        """One event of `process/events.py`."""
        if (rule := RULES.get(what)) is not None and not QUIET.is_quiet:
            with RECORDING:
                rule(self, facts)

    def write(self, event: str, **facts: Any) -> None:
        if self.process != os.getpid():  # after a fork
            self.process, self.records = os.getpid(), []
        record = {"event": event, "process": self.process, "time": time.time(), **facts}
        self.records.append(record)
        if self.folder is None:
            return
        line = json.dumps(record, default=str) + "\n"
        with open(os.path.join(self.folder, f"{self.process}.jsonl"), "a", encoding="utf-8") as file:
            file.write(line)

    # loads

    def load_started(self, module: Any, function: Any, name: str, group: Any, key: str) -> None:
        self.loading[key] = time.perf_counter()

    def load_ended(self, module: Any, function: Any, name: str, group: Any, key: str) -> None:
        if (start := self.loading.pop(key, None)) is not None and not QUIET.is_quiet:
            with RECORDING:
                self.write("loaded", kernel=name, key=key, seconds=time.perf_counter() - start)


def note_values(recorder: Recorder, facts: Mapping[str, Any]) -> None:
    """Remember the arguments of a launch that needs a new specialisation."""
    fn = facts["fn"]
    recorder.thread.values = (fn, dict(zip(fn.arg_names, map(value_text, facts["values"]), strict=False)))


def value_text(value: Any) -> str:
    """An argument as text for people: its `repr`, or the dtype and shape of an array."""
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "dtype"):
        return f"{value.dtype}{list(shape)}"
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def record_compilation(recorder: Recorder, facts: Mapping[str, Any]) -> None:
    """Record that a kernel was compiled, or found on disk."""
    source, kernel = facts["source"], facts["kernel"]
    parts = parts_of(source, facts["target"], facts["backend"], facts["options"], facts["environment"])
    if parts is None:
        return recorder.write(
            "compiled", kernel=source.name, key=kernel.hash, hit=facts["hit"], seconds=facts["seconds"]
        )
    fn, values = getattr(recorder.thread, "values", (None, {}))
    if fn is source.fn:
        parts = KeyParts(parts.kernel, parts.arguments, parts.others, values)
    earlier = recorder.seen.setdefault(parts.kernel, [])
    found, where = compared(parts, earlier), "process"
    if not earlier and not facts["hit"]:
        found, where = compared(parts, on_disk(source.name, parts, kernel.hash, source.fn.where.file)), "disk"
    earlier.append(parts)
    calls = user_calls()
    recorder.write(
        "compiled",
        kernel=parts.kernel,
        location=[source.fn.where.file, source.fn.def_line],
        key=kernel.hash,
        hit=facts["hit"],
        seconds=facts["seconds"],
        parts=parts.to_json(),
        against=where if found.nearest is not None else None,
        nearest=None if found.nearest is None else found.nearest.to_json(),
        differences=[difference.to_json() for difference in found.differences],
        calls=[asdict(call) for call in calls],
        is_tuning=is_tuning(),
        files={name: str(path) for name, path in kernel.metadata_group.items()},
        metadata={name: getattr(kernel.metadata, name, None) for name in ("shared", "n_regs", "n_spills", "num_warps")},
    )
    if recorder.is_live and not facts["hit"] and found.nearest is not None:
        print(live_text(parts, found, calls, facts["seconds"]), file=sys.stderr)


def is_tuning() -> bool:
    """Return True if this thread compiles configurations of an autotuner, here or in a worker process."""
    if is_worker():
        return True
    module = sys.modules.get("tilework.runtime.tuning.autotuner")
    return module is not None and module.LAUNCH.named is not None


def record_tuning(recorder: Recorder, facts: Mapping[str, Any]) -> None:
    """Record that an autotuner has chosen a configuration for a new key."""
    tuner, key = facts["tuner"], facts["key"]
    recorder.write("tuned", calls=[asdict(call) for call in user_calls()], **tuning_record(tuner, key))


def tuning_record(tuner: Any, key: tuple[Any, ...]) -> dict[str, Any]:
    """Return the record of one tuning: its differences from the nearest earlier key, and all configurations."""
    found, keys = tuner.tunings[key], list(tuner.tunings)
    name = f"{tuner.base_fn.__module__}.{tuner.base_fn.__qualname__}"
    parts = {one: KeyParts(name, {}, tuner.tunings[one]["parts"]) for one in keys[: keys.index(key) + 1]}
    new = parts.pop(key)
    comparison = compared(new, list(parts.values()))
    return {
        "kernel": name,
        "key": str(key),
        "tuning": dict(new.others),
        "differences": [difference.to_json() for difference in comparison.differences],
        "seconds": found["seconds"],
        "from_disk": found["from_disk"],
        "elsewhere": found["elsewhere"],
        "best": str(found["best"]),
        "settings": {name: repr(value) for name, value in found["best"].all_kwargs().items()},
        "configs": list(config_records(found)),
    }


def config_records(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a record for each configuration: its time, or the reason that it has none."""
    for config, reason in found["pruned"].items():
        yield {"config": str(config), "state": "pruned", "reason": reason}
    for config, timing in found["timings"].items():
        times = list(timing) if isinstance(timing, list | tuple) else [timing]
        if isinstance(times[0], float) and math.isinf(times[0]):
            error = found["failures"].get(config)
            needs = {name: getattr(error, name) for name in ("required", "limit", "name") if hasattr(error, name)}
            reason = (
                "it could not run when it was measured before" if error is None else f"{type(error).__name__}: {error}"
            )
            yield {"config": str(config), "state": "failed", "reason": reason, **needs}
            continue
        stopped = found["stopped"].get(config)
        state = "best" if config == found["best"] else "stopped" if stopped else "slower"
        yield {"config": str(config), "state": state, "milliseconds": times[0], "reason": stopped or ""}


def on_disk(name: str, new: KeyParts, own: str, where: str = "") -> list[KeyParts]:
    """Return the specialisations of a kernel in the disk cache, oldest first, without the entry `own`.

    They are of the same text, or of a kernel of that name in the file `where`.
    """
    paths = [path for path in Path(knobs.cache.dir).glob(f"*/{file_stem(name)}.json") if path.is_file()]
    found: list[KeyParts] = []
    for path in sorted(paths, key=modified):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            parts, file = stored_parts(data["key_parts"], data), data["locations"]["files"][0]
            is_same = parts.others["source"] == new.others["source"] or file == where
        except (OSError, ValueError, KeyError, TypeError):  # removed by another process, damaged, of another version
            continue
        if data.get("hash") != own and parts.kernel == new.kernel and is_same:
            found.append(parts)
    return found


def modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def live_text(parts: KeyParts, found: Comparison, calls: tuple[Span, ...], seconds: float) -> str:
    """Return the text about a recompilation in a running program, at the line of the launch."""
    name = parts.kernel.rpartition(".")[2]
    title = f"{name} is compiled again ({seconds * 1e3:.0f} ms): {found.message()}"
    helps = [difference.help for difference in found.differences if difference.help]
    if not calls:
        return f"{name}: note: {title}"
    return Diagnostic(calls[0], title, help=helps[0] if helps else "", callers=calls[1:], severity="note").render()


RULES = {"new": note_values, "compiled": record_compilation, "tuned": record_tuning}
ACTIVE: list[Recorder] = []


def install() -> None:
    """Start recording once, if TILEWORK_EXPLAIN requests it."""
    setting = knobs.runtime.explain
    folder = None if setting is None or setting.lower() in (*knobs.TRUE, *knobs.FALSE) else setting
    if setting is None or setting.lower() in knobs.FALSE:
        return
    with RECORDING:
        if not any(one.folder == folder for one in ACTIVE):
            begin(folder)


def begin(folder: str | None) -> None:
    """Record into a folder, or print to stderr; a folder that cannot be created is reported once, and the program goes
    on."""
    if folder is not None:
        try:
            os.makedirs(folder, exist_ok=True)
            Path(folder, f".{os.getpid()}").touch()
            Path(folder, f".{os.getpid()}").unlink()
        except OSError as error:
            ACTIVE.append(Recorder(folder))
            print(f"TILEWORK_EXPLAIN: nothing is recorded: {error}", file=sys.stderr)
            return
    start(recorder := Recorder(folder, is_live=folder is None))
    if folder is not None and os.path.isfile(os.path.join(folder, "settings.json")):
        LISTENERS.append(above("watch").watch(recorder))  # `tilework explain` wants more than records


def start(recorder: Recorder) -> None:
    ACTIVE.append(recorder)
    LISTENERS.append(recorder)
    knobs.runtime.kernel_load_start_hook.add(recorder.load_started)
    knobs.runtime.kernel_load_end_hook.add(recorder.load_ended)


def stop(recorder: Recorder) -> None:
    ACTIVE.remove(recorder)
    LISTENERS.remove(recorder)
    knobs.runtime.kernel_load_start_hook.remove(recorder.load_started)
    knobs.runtime.kernel_load_end_hook.remove(recorder.load_ended)


def read_records(folder: str | Path) -> Iterator[dict[str, Any]]:
    """The records of all processes, in the order of time; a line that was cut short is left out."""
    rows: list[dict[str, Any]] = []
    for path in Path(folder).glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    yield from sorted(rows, key=lambda row: row["time"])


# ---- the running line of the user's program

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
STANDARD = sysconfig.get_path("stdlib") + os.sep
PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})


def user_calls() -> tuple[Span, ...]:
    """The lines that are being executed: the nearest one outside of tilework and, if that is in an installed package,
    the nearest one outside of all of them."""
    outside = list(frames_outside(sys._getframe(1)))
    own = [frame for frame in outside if is_own(frame.f_code.co_filename)]
    chosen = outside[:1] if not own or (outside and outside[0] is own[0]) else [outside[0], own[0]]
    return tuple(span_of(frame) for frame in chosen)


def warn_user(text: str) -> None:
    """Warn at the line of the user's program that is running."""
    calls = user_calls()
    warnings.warn_explicit(text, RuntimeWarning, *((calls[0].file, calls[0].line) if calls else ("<launch>", 0)))


def is_own(file: str) -> bool:
    """Return True for a file of this program: not an installed one, nor one that torch's compiler generated."""
    return not file.startswith((*PACKAGES, "<")) and "torchinductor_" not in file


def frames_outside(frame: FrameType | None) -> "list[FrameType]":
    found: list[FrameType] = []
    while frame is not None:
        file = frame.f_code.co_filename
        is_standard = file.startswith(STANDARD) and not file.startswith(PACKAGES)  # packages may be below
        if not is_standard and not file.startswith((PACKAGE, "<frozen", "<binder")):
            found.append(frame)
        frame = frame.f_back
    return found


def span_of(frame: FrameType) -> Span:
    """The expression that a frame is executing."""
    positions = list(frame.f_code.co_positions())
    line, end_line, column, end = positions[frame.f_lasti // 2] if frame.f_lasti >= 0 else (None, None, None, None)
    line = line or frame.f_lineno
    found = span_at(frame.f_code.co_filename, line, column or 0)
    if column is None:
        return found
    raw = found.text.encode()
    start = len(raw[:column].decode(errors="ignore"))  # counted in bytes
    last = len(raw[:end].decode(errors="ignore")) if end_line == line and end is not None else len(found.text)
    return Span(found.file, found.line, start, max(last, start + 1), found.text)
