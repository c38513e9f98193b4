"""Timings of the autotuner on disk, one per configuration.

    <cache dir>/<key>/matmul.autotune.json
    {"kernel": "matmul", "key": "(1024, 'fp32')", "timings": {"{'BLOCK': 64, 'num_warps': 4, ...}": [0.41, 0.40, 0.43]}}

The key covers everything that a timing depends on besides the configuration: this package, the backend and its tools,
the kernel's source, the environment and the tuning key. So a list of configurations that grew by one needs one
measurement. A configuration that cannot run has the timing null, and is not tried again. A file that cannot be read, or
is not valid, is ignored.

During a tuning each timing is a file of its own (``matmul.<hash>.timing.json``), written in one step: the timings of a
killed process are kept, and other processes with the same tuning find them. `tilework tune` writes all timings also to
``matmul.tuned.json``, which every run reads; the other files are read by runs that request them
(TRITON_CACHE_AUTOTUNING=1, `cache_results`). Machines with a shared cache share all these files. Only timings are read
from the file of another machine, so it needs no signature.
"""

import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import AutotunerError, DoesNotFit, PTXASKilled, StageError
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.claims import HELD, LATE, MEASURING, claimed
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.file_manager import warn_unusable
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars, file_stem, folder_of, triton_key
from tilework.runtime.kernel_cache.managers import has_shared_cache, local_class
from tilework.runtime.tuning.config import Config
from tilework.runtime.workers.async_compile import CompilerDied
from tilework.targets.base import find_backend

Timing = Any  # the result of a benchmarker: a float, or a list of them
FAILED = (math.inf, math.inf, math.inf)
HASH_CHARS = 16
PASSING = (
    CompilerDied,
    PTXASKilled,
    MemoryError,
    StageError,
)  # what a configuration may fail with here and now, and not elsewhere
CACHED, SAVED, TIMING = "autotune", "tuned", "timing"  # kinds of files


@dataclass(frozen=True)
class TuningResults:
    """The results of one kernel and one tuning key; without a folder nothing is found or stored."""

    kernel: str
    tuning_key: str
    folder: str | None
    is_kept: bool
    facts: Mapping[str, Any]  # for `tilework tune --export`

    @classmethod
    def of(
        cls, fn: Any, tuning_key: tuple[Any, ...], is_kept: bool, shape: Mapping[str, Any] | None = None
    ) -> "TuningResults":
        """Return the results for a kernel (or None) on the active device; with `is_kept` this process stores timings.

        `shape` are the numbers in the tuning key, by name.
        """
        if fn is None:
            return cls("", "", None, False, {})
        target = driver.active.get_current_target()
        parts = [
            triton_key(),
            find_backend(target).hash(),
            str(target),
            str(sorted(driver.active.utils.get_device_properties(driver.active.get_current_device()).items())),
            fn.portable_key,
            str(sorted(cache_invalidating_env_vars().items())),
            str(tuning_key),
        ]
        folder = hashlib.sha256("-".join(["autotune", *parts]).encode()).hexdigest()
        facts = {
            "package": triton_key(),
            "source": fn.portable_key,
            "device": str(driver.active.device_kind() or target),
            "shape": shape or {},
            "types": [str(part) for part in tuning_key if isinstance(part, str)],
        }
        return cls(fn.__name__, str(tuning_key), folder, is_kept or knobs.autotuning.save, facts)

    def file(self, kind: str) -> str:
        """The name of a file: ``matmul.autotune.json``."""
        return f"{file_stem(self.kernel)}.{kind}.json"

    def part(self, config: Config) -> str:
        """The file of one configuration."""
        return self.file(f"{hashlib.sha256(config_text(config).encode()).hexdigest()[:HASH_CHARS]}.{TIMING}")

    def load(self, configs: Iterable[Config], is_search: bool = False) -> dict[Config, Timing]:
        """Return the known timings of these configurations. For a search, the shared cache is read later, for each
        configuration that it would measure."""
        if self.folder is None:
            return {}
        known = self.read(self.file(SAVED))
        if self.is_kept:
            known |= self.read(self.file(CACHED))
        is_near = is_search and has_shared_cache()
        found = {config: known.get(config_text(config)) or self.load_one(config, is_near) for config in configs}
        return {config: timing for config, timing in found.items() if timing is not None}

    def load_one(self, config: Config, is_near: bool = False) -> Timing | None:
        """Return the timing of a configuration that this or another process has just measured."""
        if self.folder is None or not self.is_kept:
            return None
        return self.read(self.part(config), is_near).get(config_text(config))

    def read(self, file: str, is_near: bool = False) -> dict[str, Timing]:
        """The timings in a file by `config_text`; none if there is no such file. `is_near`: on this machine."""
        if self.folder is None:
            return {}
        path = local_class()(self.folder).get_file(file)
        try:
            if path is not None:
                return timings_in(Path(path).read_bytes())
            return self.fetch(file) if has_shared_cache() and not is_near else {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def fetch(self, file: str) -> dict[str, Timing]:
        """Return the timings that another machine has written, and store them here."""
        from tilework.runtime.kernel_cache.remote.shared_cache import fetch_text  # lazily: few have a shared cache

        assert self.folder is not None
        read = timings_in(fetch_text(self.folder, file) or b'{"timings": {}}')
        found = {text: time for text, time in read.items() if has_failed(time) or all(one >= 0 for one in order(time))}
        if found:
            self.write(file, found, is_new=False)
        return found

    @contextmanager
    def claim(self, config: Config, patience: float) -> Iterator[bool]:
        """Yield True if this process must measure a configuration; wait while another process measures it.

        A process may claim a configuration twice.
        """
        path = self.lock_path(config)
        with claimed(None if path in HELD else path, patience, rank=MEASURING) as claim:
            yield claim.outcome != LATE
            claim.is_done = True

    def lock_path(self, config: Config) -> str | None:
        """Return the path of the file to lock, whose folder exists; None if timings are not shared."""
        if not self.is_kept or self.folder is None:
            return None
        store, folder = EntryStore(knobs.cache.dir), folder_of(self.folder)
        try:
            store.make_entry(folder)
        except OSError:
            return None
        return os.path.join(store.path(folder), f".{self.part(config)}")

    def store(self, config: Config, timing: Timing, failure: Exception | None = None) -> None:
        """Store one timing, unless the configuration failed for a reason that may be temporary."""
        if self.is_kept and is_storable(timing) and not isinstance(failure, PASSING):
            self.write(self.part(config), {config_text(config): timing})

    def finish(self, timings: Mapping[Config, Timing], failures: Mapping[Config, Exception]) -> None:
        """Store the timings of a tuning that has ended, with those already stored."""
        if not self.is_kept or knobs.autotuning.part:
            return
        if strange := [timing for timing in timings.values() if not is_storable(timing)]:
            what = f"{len(strange)} of {len(timings)} timings of {self.kernel} are not kept"
            warnings.warn(f"{what}: they are no numbers, but for example {strange[0]!r}", stacklevel=2)
        new = {
            config_text(config): timing
            for config, timing in timings.items()
            if is_storable(timing) and not isinstance(failures.get(config), PASSING)
        }
        for kind in (CACHED, SAVED) if knobs.autotuning.save else (CACHED,):
            known = self.read(self.file(kind))
            if any(known.get(text) != timing for text, timing in new.items()):
                self.write(self.file(kind), {**known, **new})

    def write(self, file: str, timings: Mapping[str, Timing], is_new: bool = True) -> None:
        """Write a file in one step, and send it to other machines if `is_new`. If it cannot be written, the next
        process measures again.
        """
        assert self.folder is not None
        encoded = {text: encode_timing(value) for text, value in timings.items()}
        data = json.dumps({"kernel": self.kernel, "key": self.tuning_key, **self.facts, "timings": encoded}, indent=1)
        try:
            local_class()(self.folder).put(data, file, binary=False)
        except OSError as error:
            warn_unusable(knobs.cache.dir, error)
        if is_new and has_shared_cache():
            from tilework.runtime.kernel_cache.remote.shared_cache import send_text  # lazily, as above

            send_text(self.folder, file, data.encode())


def part_of(configs: Sequence[Config]) -> Sequence[Config]:
    """Return the configurations to measure here: all, or with TILEWORK_TUNING_PART=2/8 every eighth from the third."""
    if not knobs.autotuning.part:
        return configs
    first, count = map(int, knobs.autotuning.part.split("/"))
    return configs[first::count] or configs[:1]


def config_text(config: Config) -> str:
    """Return the text that identifies a configuration everywhere; files that it names count by content."""
    from tilework.targets.options import by_content  # lazily: a launch whose result is known needs no options

    return str({name: by_content(name, value) for name, value in sorted(config.all_kwargs().items())})


def is_storable(timing: Timing) -> bool:
    """Return True for ints and floats; other results of a user's benchmarker cannot be stored."""
    values = timing if isinstance(timing, list | tuple) else [timing]
    return all(isinstance(value, int | float) for value in values)


def plain(timing: Any) -> Timing:
    """Return the result of a user's benchmarker with Python numbers instead of those of NumPy or torch.

    NaN, such as the mean of no times, becomes infinity: it is not less than any time, so it would win if it came first.
    """
    if hasattr(timing, "tolist"):
        timing = timing.tolist()
    values = list(timing) if isinstance(timing, list | tuple) else [timing]
    values = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    if not values or not isinstance(values[0], Real):
        raise AutotunerError(f"do_bench must return milliseconds, a number or several, and returned {timing!r}")
    values = [math.inf if value != value else value for value in values]
    return values if isinstance(timing, list | tuple) else values[0]


def timings_in(text: bytes) -> dict[str, Timing]:
    """Return the timings in the text of a file; raise one of several exceptions if it is not valid."""
    found = json.loads(text)["timings"]
    return {str(text): decode_timing(value) for text, value in found.items()}


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
    if found["space"] > len(timings):
        estimated = f", {found['estimated']} by the cost model" if found["estimated"] else ""
        lines.append(f"searched: {len(timings)} of {found['space']} configurations compiled and measured{estimated},")
    if found["elsewhere"]:
        lines.append(f"{found['elsewhere']} configurations compiled in other processes,")
    if misfits := [error for error in failures.values() if isinstance(error, DoesNotFit)]:
        lines.append(f"{len(misfits)} of {len(timings)} configurations pruned: they cannot fit,")
    for config in (config for config, timing in timings.items() if has_failed(timing)):
        reason = failures.get(config)
        lines.append(f"failed config: {config}: {'as before' if reason is None else reason},")
    return "\n".join([*lines, f"best config selected: {found['best']};"])
