"""Look at the cache of compiled kernels, and tidy it.

    tilework cache info                          where it is, how much is in it, how much may be
    tilework cache list                          one line per kernel, the least recently used first
    tilework cache verify [--remove]             read everything and compare with the checksums
    tilework cache prune [--max-size 2G] [--older-than 30]
    tilework cache clear

Only entries that tilework made are shown or deleted. All of this may run while other processes use the cache.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence

from tilework import knobs
from tilework.errors import UsageError
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.managers import (
    GRACE,
    Entry,
    disk_time,
    entries_of,
    evict,
    foreign_entries,
    oldest_first,
    remove_stale,
    verify,
)

MISTAKES = (OSError, RuntimeError)
DAY = 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework cache`."""
    add = parser.add_argument
    add("action", choices=list(ACTIONS), help="what to do")
    add("--dir", default=None, metavar="DIR", help="the cache directory; TRITON_CACHE_DIR by default")
    add("--remove", action="store_true", help="verify: delete damaged entries")
    add("--max-size", default=None, metavar="SIZE", help="prune: bytes to keep, such as 500M; the bound by default")
    add("--older-than", type=float, default=None, metavar="DAYS", help="prune: also delete what was not used for DAYS")


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code."""
    store = EntryStore(args.dir or knobs.cache.dir)
    if args.older_than is not None and not args.older_than >= 0:
        raise UsageError(f"--older-than {args.older_than:g}: expected a number of days")
    bound = knobs.cache.max_size if args.max_size is None else parse_size(args.max_size)
    if not store.check_root():
        print(f"{store.root}: empty (the directory does not exist)")
        return 0
    return ACTIONS[args.action](store, args, bound)


def info(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    entries = entries_of(store)
    limit = f"of {size_text(bound)}" if bound > 0 else "without a bound (TILEWORK_CACHE_MAX_SIZE=0)"
    print(f"directory  {store.root}")
    print(f"entries    {len(entries)}")
    print(f"size       {size_text(total(entries))} {limit}")
    if others := foreign_entries(store):
        print(f"others     {others} (not made by tilework; left alone)")
    return 0


def show(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    now = time.time()
    for entry in oldest_first(entries_of(store), now):
        age = age_text(entry.age(now)) if math.isfinite(entry.age(now)) else "?"
        print(f"{entry.folder}  {size_text(entry.bytes):>9}  {age:>5} ago  {entry.files:>2} files  {entry.title}")
    return 0


def check(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    entries = entries_of(store)
    damaged = 0
    for entry in entries:
        if problems := verify(store, entry):
            damaged += 1
            print(f"{entry.folder}  {entry.title}: {'; '.join(problems)}")
            if args.remove:
                store.discard(entry.folder)
    removed = ", deleted" if args.remove and damaged else ""
    print(f"{len(entries)} entries, {damaged} damaged{removed}")
    return int(damaged > 0 and not args.remove)


def prune(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    deleted: list[Entry] = []
    if args.older_than is not None:
        now = disk_time(store)
        deleted = [entry for entry in entries_of(store) if entry.age(now) > args.older_than * DAY]
        discard(store, deleted)
    if bound > 0 or args.max_size is not None:
        deleted += evict(store, bound, grace=0)
    return report(store, deleted, remove_stale(store))


def clear(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    entries = entries_of(store)
    discard(store, entries)
    return report(store, entries, remove_stale(store, GRACE))


ACTIONS: dict[str, Callable[[EntryStore, argparse.Namespace, int], int]] = {
    "info": info,
    "list": show,
    "verify": check,
    "prune": prune,
    "clear": clear,
}


def discard(store: EntryStore, entries: Sequence[Entry]) -> None:
    for entry in entries:
        store.discard(entry.folder)


def report(store: EntryStore, deleted: Sequence[Entry], unfinished: int) -> int:
    """Say what was deleted; 0, or 1 if some of it is still there."""
    left = {entry.folder for entry in entries_of(store)}
    kept = [entry for entry in deleted if entry.folder in left]
    count = len(deleted) - len(kept)
    rest = f" and {unfinished} unfinished" if unfinished else ""
    print(f"deleted {count} entries{rest}, {size_text(total(deleted) - total(kept))}; {len(left)} left")
    for entry in kept:
        print(f"tilework cache: error: {store.path(entry.folder)} cannot be deleted", file=sys.stderr)
    return int(bool(kept))


def total(entries: Sequence[Entry]) -> int:
    return sum(entry.bytes for entry in entries)


def parse_size(text: str) -> int:
    """2G -> 2147483648, as in TILEWORK_CACHE_MAX_SIZE."""
    return knobs.env_size("--max-size").transform(text)


def size_text(size: int) -> str:
    """1536 -> 1.5 KiB"""
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def age_text(seconds: float) -> str:
    """7300 -> 2h"""
    for unit, length in (("d", DAY), ("h", 3600.0), ("m", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"
