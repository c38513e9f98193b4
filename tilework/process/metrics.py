"""Counters for monitoring a server: compilations, cache hits, loads, refusals, and how long they took.

    tilework.metrics.snapshot()          a dictionary
    tilework.metrics.prometheus()        the same as text, as Prometheus scrapes it
    tilework.metrics.subscribe(print)    call a function for each count as it happens

What is counted happens once for a kernel and not in every launch, so launches cost what they always did. A launch whose
kernel is in use already is counted nowhere; ``memory`` are those that look different and need the same code. Each
process counts for itself, a forked one from zero.

| name | labels | |
|---|---|---|
| `compiles`, `compile_seconds` | kernel, target | kernels that were compiled, and the time that took |
| `waits`, `wait_seconds` | kernel, outcome | kernels that another process was compiling: `outcome` is done, or why they
are compiled here: ours (the other process is dead or stopped), unfinished (it failed), late |
| `fallbacks` | without, kernel, target | compilations repeated without an option (`auto_tma`) that exceeds the device |
| `cache_hits` | kernel, cache | kernels that were not: `cache` is memory, disk, remote or bundle |
| `remote_requests` | outcome | entries that the shared cache was asked for: hit, miss, refused, failed or skipped
(a miss is one, although the server is asked again before the kernel is compiled) |
| `remote_seconds` | what | time `waited` for it, and time of compilations that its hits `saved` |
| `remote_bytes`, `remote_entries` | direction | what was `received` from it and `sent` to it, or `dropped` |
| `remote_failures` | kind | what went wrong with it: unreachable, time-out, signature ... |
| `loads`, `load_seconds` | kernel, target | code that was put into memory or onto a GPU |
| `refusals` | kernel | launches and tunings that TILEWORK_NO_JIT=1, or the lack of a compiler, prevented |
| `tunings`, `tuning_seconds` | kernel | choices of autotuners that had to be measured |
"""

import threading
from collections.abc import Callable, Mapping

from tilework.process.forks import held_at_fork, in_child

Labels = tuple[tuple[str, str], ...]
Callback = Callable[[str, float, Mapping[str, str]], object]

HELP = {
    "compiles": "Kernels that were compiled.",
    "compile_seconds": "Time that compiling took.",
    "waits": "Kernels that another process was compiling when they were needed.",
    "wait_seconds": "Time that waiting for other processes took.",
    "fallbacks": "Compilations repeated without a choice of the compiler that does not fit the device.",
    "cache_hits": "Kernels that did not have to be compiled.",
    "remote_requests": "Entries that the shared cache was asked for.",
    "remote_seconds": "Time that the shared cache cost and saved.",
    "remote_bytes": "Bytes of entries of the shared cache.",
    "remote_entries": "Entries that the shared cache received, sent or did not get.",
    "remote_failures": "Failures of the shared cache.",
    "loads": "Kernels whose code was loaded.",
    "load_seconds": "Time that loading took.",
    "refusals": "Launches and tunings that were refused because nothing may be compiled.",
    "tunings": "Tunings that were measured.",
    "tuning_seconds": "Time that measuring took.",
}
PREFIX = "tilework_"
COUNTS: dict[str, dict[Labels, float]] = {name: {} for name in HELP}
CALLBACKS: list[Callback] = []
LOCK = held_at_fork(threading.RLock())  # reentrant: a callback may take a snapshot


def count(name: str, amount: float = 1, **labels: str) -> None:
    """Add to a counter; the runtime does."""
    key = tuple(labels.items())
    with LOCK:
        COUNTS[name][key] = COUNTS[name].get(key, 0) + amount
    for callback in tuple(CALLBACKS):
        callback(name, amount, labels)


def snapshot() -> dict[str, dict[str, float]]:
    """All counters, by name and by labels as Prometheus writes them (``'kernel="app.add",cache="disk"'``).

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, 7)

        kernel[(1,)](np.zeros(1, np.int32))
        found = tilework.metrics.snapshot()
        assert sum(found["loads"].values()) >= 1 and sum(found["load_seconds"].values()) > 0
    """
    with LOCK:
        return {name: {label_text(key): value for key, value in rows.items()} for name, rows in COUNTS.items()}


def total(name: str, **labels: str) -> float:
    """The sum of a counter over all entries that have these labels.

    Example:
        before = tilework.metrics.total("cache_hits", cache="bundle")
        assert before >= 0 and tilework.metrics.total("cache_hits") >= before
    """
    with LOCK:
        return sum(value for key, value in COUNTS[name].items() if labels.items() <= dict(key).items())


def prometheus() -> str:
    """All counters in Prometheus's text format (version 0.0.4).

    Example:
        lines = tilework.metrics.prometheus().splitlines()
        assert "# TYPE tilework_compiles_total counter" in lines
    """
    lines: list[str] = []
    for name, rows in snapshot().items():
        full = f"{PREFIX}{name}_total"
        lines += [f"# HELP {full} {HELP[name]}", f"# TYPE {full} counter"]
        lines += [f"{full}{{{labels}}} {value_text(value)}" for labels, value in sorted(rows.items())]
    return "\n".join([*lines, ""])


def subscribe(callback: Callback) -> Callable[[], None]:
    """Call ``callback(name, amount, labels)`` for every count from now on. Calling the returned function ends the
    subscription.

    Example:
        seen = []
        stop = tilework.metrics.subscribe(lambda name, amount, labels: seen.append((name, labels["kernel"])))

        @tilework.jit
        def kernel(out):
            tl.store(out, 7)

        kernel[(1,)](np.zeros(1, np.int32))
        stop()
        assert any(name == "loads" and kernel.endswith("kernel") for name, kernel in seen)
    """
    CALLBACKS.append(callback)

    def stop() -> None:
        if callback in CALLBACKS:
            CALLBACKS.remove(callback)

    return stop


def reset() -> None:
    """Begin at zero.

    Example:
        tilework.metrics.reset()
        assert tilework.metrics.total("compiles") == 0
    """
    with LOCK:
        for rows in COUNTS.values():
            rows.clear()


in_child(reset)


def label_text(labels: Labels) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels)


def escaped(value: str) -> str:
    """A label's value between its quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def value_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
