"""TILEWORK_RECORD=file: write down what a program needs, so that `tilework precompile` can compile it elsewhere.

A listener (`knobs/hooks.py`) hears of each specialisation that a launch needs, wherever its code then comes from, and of each
choice of an autotuner; what the autotuner only tries is not written. Nothing is done in launches like earlier ones.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tilework import knobs
from tilework.forks import held_at_fork
from tilework.knobs.hooks import LISTENERS, WORKERS
from tilework.language.portable_key import portable_key
from tilework.runtime.bundle.manifest import VERSION, append, identity
from tilework.runtime.bundle.needed import Needed, is_kernel
from tilework.runtime.bundle.written_constants import Unwritable, name_of, written
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.environment import changes_stages
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.callers import warn_user
from tilework.runtime.recording.recorder import QUIET, is_tuning
from tilework.runtime.tuning.same_bits import is_reproducible
from tilework.runtime.tuning.tuning_key import argument_key, device_part


class ProgramRecorder:
    """Appends to one file; see the module."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.known: set[str] = set()

    def __call__(self, what: str, facts: Mapping[str, Any]) -> None:
        """One event."""
        if (rule := RULES.get(what)) is not None and not QUIET.is_quiet and os.getpid() not in WORKERS:
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
        self.write(fn, lambda: {**Needed(specialization, backend).to_json(), **place_of(fn)})


def record_needed(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    if not is_tuning():  # what is chosen of it will be launched
        recorder.needed(facts["specialization"], facts["backend"])


def record_choice(recorder: ProgramRecorder, facts: Mapping[str, Any]) -> None:
    """The configuration of a launch, and the specialisation that it needs: it may have been compiled when it was tried."""
    tuner, config, args, kwargs = facts["tuner"], facts["config"], facts["args"], facts["kwargs"]
    fn, arguments = tuner.fn, {**kwargs, **config.all_kwargs()}
    while not is_kernel(fn):
        if not hasattr(fn, "extend"):
            return  # interpreted, or a wrapper of somebody else's, whose launches come by themselves
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
    """What an autotuner chose, for which arguments."""
    given = {**named, **kwargs}
    key = argument_key(tuner.keys, tuner.arg_names, given)
    return {
        "record": "tuning",
        "version": VERSION,
        "kernel": name_of(fn),
        "source": portable_key(fn),
        "tuning": [written(value) for value in key],
        "names": list(tuner.key_parts(key, given)),
        "device": str(*device_part()),
        "reproducible": is_reproducible(tuner.fn, kwargs),
        "config": {name: written(value) for name, value in config.all_kwargs().items()},
        **place_of(fn),
    }


def place_of(fn: Any) -> dict[str, Any]:
    """Where a kernel is, for who cannot import it by its name: the main program is a file."""
    return {"file": os.path.abspath(fn.where.file), **({"triton": True} if knobs.language.is_triton else {})}


RULES: dict[str, Callable[[ProgramRecorder, Mapping[str, Any]], None]] = {
    "needed": record_needed,
    "chosen": record_choice,
}
INSTALLING = held_at_fork(threading.RLock())


def record_into(path: str) -> None:
    """Record into a file from now on; once."""
    with INSTALLING:
        asked = os.path.abspath(path)
        if not any(isinstance(one, ProgramRecorder) and one.path == asked for one in LISTENERS):
            LISTENERS.append(ProgramRecorder(asked))
