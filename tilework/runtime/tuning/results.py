"""Timings of the autotuner on disk, one per configuration.

    <cache dir>/<key>/matmul.autotune.json
    {"kernel": "matmul", "key": "(1024, 'fp32')", "timings": {"{'BLOCK': 64, 'num_warps': 4, ...}": [0.41, 0.40, 0.43]}}

The key covers everything that a timing depends on besides the configuration: this package, the backend and its tools,
the kernel's source, the environment and the tuning key. So a list of configurations that grew by one needs one
measurement. A configuration that cannot run has the timing null, and is not tried again. A file that cannot be read, or
that holds something else, is as good as none.

While a tuning goes on each timing is a file of its own (``matmul.<hash>.timing.json``), written in one step: the
timings of a process that is killed are kept, and others that tune the same find them. `tilework tune`
writes all timings also to ``matmul.tuned.json``, which is read by every run; the other files by those that request it
(TRITON_CACHE_AUTOTUNING=1, `cache_results`). With a remote cache all of them are shared by its machines.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tilework import knobs
from tilework.errors import DoesNotFit, PTXASKilled, StageError
from tilework.language.portable_key import portable_key
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import file_stem, folder_of, get_cache_manager, triton_key, warn_unusable
from tilework.runtime.tuning.config import Config
from tilework.runtime.workers.async_compile import CompilerDied
from tilework.targets.base import find_backend

Timing = Any  # the result of a benchmarker: a float, or a list of them
FAILED = (math.inf, math.inf, math.inf)
HASH_CHARS = 16
LOCK_CHECK_SECONDS = 0.02
PASSING = (
    CompilerDied,
    PTXASKilled,
    MemoryError,
    StageError,
)  # what a configuration may fail with here and now, and not elsewhere
CLAIMED: set[str] = set()  # what this process measures
CACHED, SAVED, TIMING = "autotune", "tuned", "timing"  # kinds of files


@dataclass(frozen=True)
class TuningResults:
    """The results of one kernel and one tuning key; without a folder nothing is found, and nothing kept."""

    kernel: str
    tuning_key: str
    folder: str | None
    is_kept: bool

    @classmethod
    def of(cls, fn: Any, tuning_key: tuple[Any, ...], is_kept: bool) -> "TuningResults":
        """The results for a kernel on the active device, none for None; `is_kept` if this process shall keep them."""
        if fn is None:
            return cls("", "", None, False)
        target = driver.active.get_current_target()
        parts = [
            triton_key(),
            find_backend(target).hash(),
            str(target),
            str(sorted(driver.active.utils.get_device_properties(driver.active.get_current_device()).items())),
            portable_key(fn),
            str(sorted(cache_invalidating_env_vars().items())),
            str(tuning_key),
        ]
        folder = hashlib.sha256("-".join(["autotune", *parts]).encode()).hexdigest()
        return cls(fn.__name__, str(tuning_key), folder, is_kept or knobs.autotuning.save)

    def file(self, kind: str) -> str:
        """The name of a file: ``matmul.autotune.json``."""
        return f"{file_stem(self.kernel)}.{kind}.json"

    def part(self, config: Config) -> str:
        """The file of one configuration."""
        return self.file(f"{hashlib.sha256(config_text(config).encode()).hexdigest()[:HASH_CHARS]}.{TIMING}")

    def load(self, configs: Iterable[Config]) -> dict[Config, Timing]:
        """The timings of those configurations that were measured."""
        if self.folder is None:
            return {}
        known = self.read(self.file(SAVED))
        if self.is_kept:
            known |= self.read(self.file(CACHED))
        found = {config: known.get(config_text(config)) or self.load_one(config) for config in configs}
        return {config: timing for config, timing in found.items() if timing is not None}

    def load_one(self, config: Config) -> Timing | None:
        """The timing of a configuration that this or another process measured just now."""
        if self.folder is None or not self.is_kept:
            return None
        return self.read(self.part(config)).get(config_text(config))

    def read(self, file: str) -> dict[str, Timing]:
        """The timings in a file by `config_text`; none if there is no such file."""
        path = None if self.folder is None else get_cache_manager(self.folder).get_file(file)
        if path is None:
            return {}
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))["timings"]
            return {str(text): decode_timing(value) for text, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    @contextmanager
    def claim(self, config: Config, patience: float) -> Iterator[bool]:
        """Yield True if this process is to measure a configuration: not while another one does, which it waits for.

        A claim is a lock on a file, and ends with its process. A process may claim a configuration twice.
        """
        path = self.lock_path(config)
        lock = None if path is None or path in CLAIMED else Lock.open(path)
        if path is None or lock is None:
            yield True
            return
        CLAIMED.add(path)
        try:
            yield lock.take(patience)
        finally:
            CLAIMED.discard(path)
            lock.close()

    def lock_path(self, config: Config) -> str | None:
        """The file to lock, whose folder exists; None where nothing is shared."""
        if not self.is_kept or self.folder is None:
            return None
        store, folder = EntryStore(knobs.cache.dir), folder_of(self.folder)
        try:
            store.make_entry(folder)
        except OSError:
            return None
        return os.path.join(store.path(folder), f".{self.part(config)}")

    def store(self, config: Config, timing: Timing, failure: Exception | None = None) -> None:
        """Keep one timing, unless it failed for a reason that may not be there again."""
        if self.is_kept and is_storable(timing) and not isinstance(failure, PASSING):
            self.write(self.part(config), {config_text(config): timing})

    def finish(self, timings: Mapping[Config, Timing], failures: Mapping[Config, Exception]) -> None:
        """Keep the timings of a tuning that has ended, with those that were there."""
        if not self.is_kept or knobs.autotuning.part:
            return
        new = {
            config_text(config): timing
            for config, timing in timings.items()
            if is_storable(timing) and not isinstance(failures.get(config), PASSING)
        }
        for kind in (CACHED, SAVED) if knobs.autotuning.save else (CACHED,):
            known = self.read(self.file(kind))
            if any(known.get(text) != timing for text, timing in new.items()):
                self.write(self.file(kind), {**known, **new})

    def write(self, file: str, timings: Mapping[str, Timing]) -> None:
        """Write a file in one step; if it cannot be written the next process measures again."""
        assert self.folder is not None
        encoded = {text: encode_timing(value) for text, value in timings.items()}
        data = {"kernel": self.kernel, "key": self.tuning_key, "timings": encoded}
        try:
            get_cache_manager(self.folder).put(json.dumps(data, indent=1), file, binary=False)
        except OSError as error:
            warn_unusable(knobs.cache.dir, error)


def part_of(configs: Sequence[Config]) -> Sequence[Config]:
    """Return the configurations to measure here: all, or with TILEWORK_TUNING_PART=2/8 every eighth from the third."""
    if not knobs.autotuning.part:
        return configs
    first, count = map(int, knobs.autotuning.part.split("/"))
    return configs[first::count] or configs[:1]


def config_text(config: Config) -> str:
    """Return the text that identifies a configuration everywhere; a file that replaces a stage counts by its hash."""
    settings = config.all_kwargs()
    if isinstance(path := settings.get("ir_override"), str) and Path(path).is_file():
        settings["ir_override"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return str(dict(sorted(settings.items())))


def is_storable(timing: Timing) -> bool:
    """Return True for ints and floats; other results of a user's benchmarker cannot be stored."""
    values = timing if isinstance(timing, list | tuple) else [timing]
    return all(isinstance(value, int | float) for value in values)


def encode_timing(timing: Timing) -> Any:
    """JSON has no infinity: a failed configuration is null."""
    return None if has_failed(timing) else timing


def decode_timing(value: object) -> Timing:
    """The inverse of `encode_timing`; anything that is not a timing is a TypeError."""
    if value is None:
        return list(FAILED)
    if not is_storable(value) or value == []:
        raise TypeError(f"not a timing: {value!r}")
    return value


def order(timing: Timing) -> list[float]:
    """Return a timing as a list, by which timings are compared."""
    return list(timing) if isinstance(timing, list | tuple) else [timing]


def has_failed(timing: Timing) -> bool:
    """Return True if the configuration could not run."""
    return math.isinf(order(timing)[0])


class Lock:
    """A file that one process at a time may lock: ``lock = Lock.open(path)``, then `take` and `close`.

    The lock ends with its process, and the file is removed by the process that held the lock.
    """

    def __init__(self, path: str, handle: int) -> None:
        self.path, self.handle, self.is_held = path, handle, False

    @classmethod
    def open(cls, path: str) -> Self | None:
        """Open the file; None if it cannot be created."""
        try:
            return cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return None

    def take(self, patience: float) -> bool:
        """Lock the file, and wait some seconds for it; True where files cannot be locked."""
        end = time.monotonic() + patience
        while not (taken := self.try_now()) and time.monotonic() < end:
            time.sleep(LOCK_CHECK_SECONDS)
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


def summary(tuner: Any, key: tuple[Any, ...]) -> str:
    """Return the text of TRITON_PRINT_AUTOTUNING=1: Triton's lines, and those about processes and misfits."""
    found = tuner.tunings[key]
    timings, failures = found["timings"], found["failures"]
    lines = [
        f"Triton autotuning for function {tuner.__name__},",
        f"with key as {key},",
        f"finished after {found['seconds']:.2f}s,",
    ]
    if found["from_disk"]:
        lines.append(f"{found['from_disk']} of {len(timings)} timings from disk,")
    if found["elsewhere"]:
        lines.append(f"{found['elsewhere']} configurations compiled in other processes,")
    if misfits := [error for error in failures.values() if isinstance(error, DoesNotFit)]:
        lines.append(f"{len(misfits)} of {len(timings)} configurations pruned: they cannot fit,")
    for config in (config for config, timing in timings.items() if has_failed(timing)):
        reason = failures.get(config)
        lines.append(f"failed config: {config}: {'as before' if reason is None else reason},")
    return "\n".join([*lines, f"best config selected: {found['best']};"])
