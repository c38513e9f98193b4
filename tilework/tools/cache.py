"""Show the cache of compiled kernels, and clean it up.

    tilework cache info                          where it is, how much is in it, how much may be; the shared cache
    tilework cache list                          one line per kernel, the least recently used first
    tilework cache verify [--remove]             read everything and compare with the checksums
    tilework cache prune [--max-size 2G] [--older-than 30]
    tilework cache clear
    tilework cache push [--kernel NAME]          send entries to the shared cache (TILEWORK_CACHE_URL)
    tilework cache pull [--kernel NAME]          copy entries of the shared cache here

Only entries that tilework created are shown or deleted. All commands are safe while other processes use the cache.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tilework import knobs
from tilework.errors import UsageError
from tilework.inspect.findings import counted
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.eviction import (
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
from tilework.runtime.kernel_cache.managers import has_shared_cache

if TYPE_CHECKING:
    from tilework.tools.cache_transfer import Moved

OUTCOMES = {
    "hit": "hits",
    "miss": "misses",
    "refused": "refused",
    "failed": "failed",
    "skipped": "not asked for",
}
MISTAKES = (OSError, RuntimeError)
DAY = 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework cache`."""
    add = parser.add_argument
    add("action", choices=list(ACTIONS), help="what to do")
    add("--dir", default=None, metavar="DIR", help="the cache folder; default: TRITON_CACHE_DIR")
    add("--remove", action="store_true", help="with verify: delete damaged entries")
    add(
        "--max-size",
        default=None,
        metavar="SIZE",
        help="with prune: the maximum size to keep, such as 500M; default: the maximum size of the cache",
    )
    add(
        "--older-than",
        type=float,
        default=None,
        metavar="DAYS",
        help="with prune: also delete entries that were not used for DAYS",
    )
    add(
        "--kernel",
        action="append",
        default=[],
        metavar="NAME",
        help="with push, pull: only this kernel; may be given several times, and be a pattern such as 'attention_*'",
    )


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code."""
    store = EntryStore(args.dir or knobs.cache.dir)
    if args.older_than is not None and not args.older_than >= 0:
        raise UsageError(f"--older-than {args.older_than:g}: expected a number of days")
    bound = knobs.cache.max_size if args.max_size is None else parse_size(args.max_size)
    if args.action == "pull":
        return pull(store, args)
    if args.action != "info" and not store.check_root():
        print(f"{store.root}: empty (the directory does not exist)")
        return 0
    return ACTIONS[args.action](store, args, bound)


def info(store: EntryStore, args: argparse.Namespace, bound: int) -> int:
    if not store.check_root():
        print(f"{store.root}: empty (the directory does not exist)")
        return show_shared(store)
    entries = entries_of(store)
    limit = f"of {size_text(bound)}" if bound > 0 else "without a bound (TILEWORK_CACHE_MAX_SIZE=0)"
    print(f"directory  {store.root}")
    print(f"entries    {len(entries)}")
    print(f"size       {size_text(total(entries))} {limit}")
    if others := foreign_entries(store):
        print(f"others     {others} (not made by tilework; left alone)")
    return show_shared(store)


def show_shared(store: EntryStore) -> int:
    """Print the state of the shared cache, if there is one, and its statistics for this machine."""
    if not has_shared_cache():
        return 0
    from tilework.runtime.kernel_cache.remote import shared_cache, statistics  # lazily: few have one

    server, key = shared_cache.opened()
    trust = f"signed with the {key!r}".replace("<", "").replace(">", "") if key else "not signed: " + (
        "the server is trusted" if knobs.cache.trust_server else "no machine code is loaded or sent"
    )  # fmt: skip
    print(f"shared     {server.address}, {trust}")
    began = time.perf_counter()
    try:
        server.ping()
        milliseconds = 1e3 * (time.perf_counter() - began)
        facts = [f"{name} {value}" for name, value in server.facts().items()]
        print(f"server     {', '.join([f'answers in {milliseconds:.1f} ms', *facts])}")
    except Exception as error:  # whatever its client raises
        failure = server.failure(error)
        print(f"server     {failure.kind}: {server.address.hidden(failure.text)}")
    since, processes, totals = statistics.known(store.root)
    if processes:
        day = time.strftime("%Y-%m-%d", time.localtime(since))
        users = counted(processes, "process", "processes")
        print(f"use        since {day}, by {users} that used this directory and ended normally")
        print(*(f"           {line}" for line in use_lines(totals)), sep="\n")
    return 0


def use_lines(totals: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield lines of text with the statistics of `metrics`."""
    requests, seconds, size = (totals.get(f"remote_{name}", {}) for name in ("requests", "seconds", "bytes"))
    yield ", ".join(f"{requests.get(outcome, 0):.0f} {text}" for outcome, text in OUTCOMES.items())
    yield f"waited {seconds.get('waited', 0):.1f} s, saved {seconds.get('saved', 0):.1f} s of compilation"
    entries = totals.get("remote_entries", {})
    ways = (f"{way} {entries.get(way, 0):.0f} ({size_text(int(size.get(way, 0)))})" for way in ("received", "sent"))
    yield ", ".join([*ways, f"dropped {entries.get('dropped', 0):.0f}"])
    if failures := totals.get("remote_failures"):
        yield "failures: " + ", ".join(f"{kind} {count:.0f}" for kind, count in sorted(failures.items()))


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


def push(store: EntryStore, args: argparse.Namespace, bound: int = 0) -> int:
    from tilework.tools import cache_transfer  # lazily: the others need no shared cache

    return moved(cache_transfer.push(store, args.kernel), "sent to")


def pull(store: EntryStore, args: argparse.Namespace, bound: int = 0) -> int:
    from tilework.tools import cache_transfer  # lazily, as above

    return moved(cache_transfer.pull(store, args.kernel), "received from")


def moved(found: "Moved", where: str) -> int:
    """Print the number of objects sent or received, and return the exit code."""
    entries = "entry" if found.count == 1 else "entries"
    failed = f", {found.failed} failed" if found.failed else ""
    size = size_text(found.bytes)
    print(f"{found.count} {entries} {where} {found.address}, {size}; {found.present} already there{failed}")
    return int(found.failed > 0)


ACTIONS: dict[str, Callable[[EntryStore, argparse.Namespace, int], int]] = {
    "info": info,
    "list": show,
    "verify": check,
    "prune": prune,
    "clear": clear,
    "push": push,
    "pull": pull,
}


def discard(store: EntryStore, entries: Sequence[Entry]) -> None:
    for entry in entries:
        store.discard(entry.folder)


def report(store: EntryStore, deleted: Sequence[Entry], unfinished: int) -> int:
    """Print what was deleted; return 0, or 1 if a part of it still exists."""
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
