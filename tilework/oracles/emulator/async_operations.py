"""Asynchronous operations: issued by one instruction, carried out when a thread waits for them.

`cp.async`, bulk and tensor copies do nothing when they are issued. The bytes move at the wait that makes them visible,
so a program that reads too early gets the old bytes, and one that overwrites a source too early copies the wrong ones:

    cp.async  [s], [g], 16      a `Pending` in the list, in the group that the thread is filling
    cp.async.commit_group       the group is closed
    cp.async.wait_group 0       the bytes move

Copies that signal an mbarrier are carried out when a thread polls that barrier (test_wait, try_wait). wgmma computes
when it is issued, because its registers may be renamed by plain moves before the wait, which ptxas allows; it is listed
here until its wait all the same. The checker reads `operations(block).pending`: the issuing threads, the bytes and the
registers.

"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import Instruction
from tilework.oracles.emulator.translate import Block, Translator

STATE = "async"


@dataclass(frozen=True)
class Access:
    """`size` bytes at each of these addresses of a space ("shared", "global", "generic"); tensor maps are read through
    a proxy of their own."""

    space: str
    addresses: Array
    size: int
    is_map: bool = False


@dataclass(eq=False)
class Pending:
    """One instruction in flight. `threads[i]` issued the i-th transfer, in its group `groups[i]`; `reads[i]` and
    `writes[i]` belong to it if there is one transfer per thread, else to all. `registers` are (read, written) names,
    for wgmma."""

    ins: Instruction
    kind: str  # "cp.async", "bulk", "wgmma", or "signal" for an arrival that follows copies
    threads: Array
    groups: Array
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    barrier: int | None = None
    registers: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    fetch: Callable[[Array], Any] | None = None  # reads the sources of these transfers
    store: Callable[[Array, Any], None] | None = None  # writes them
    waiting: Array = field(default_factory=lambda: np.zeros(0, bool))  # transfers that are not done
    fetched: Any = None  # contents of a source that may be overwritten

    def __post_init__(self) -> None:
        self.waiting = np.ones(len(self.threads), bool)

    def do(self, which: Array) -> None:
        """Carry out these transfers."""
        if self.fetched is None and self.fetch is not None:
            self.fetched = self.fetch(which)
        if self.store is not None:
            self.store(which, self.fetched)
        self.fetched = None
        self.waiting[which] = False

    def look(self) -> None:
        """Read the source, which may then be overwritten."""
        if self.fetched is None and self.fetch is not None:
            self.fetched = self.fetch(np.flatnonzero(self.waiting))


class Operations:
    """All operations in flight in a block."""

    def __init__(self, block: Block, machine: Any) -> None:
        self.block, self.machine = block, machine
        self.pending: list[Pending] = []
        self.committed = {kind: np.zeros(block.threads, np.int64) for kind in ("cp.async", "bulk", "wgmma")}

    def issue(self, ins: Instruction, kind: str, threads: Array, *accesses: Any, **rest: Any) -> None:
        """Start an operation, in the group that each thread is filling."""
        groups = self.committed["cp.async" if kind == "signal" else kind][threads]
        self.pending.append(Pending(ins, kind, threads, groups, *accesses, **rest))

    def commit(self, kind: str, threads: Array) -> None:
        self.committed[kind][threads] += 1

    def wait(self, kind: str, threads: Array, left: int, only_read: bool = False, uncommitted: bool = False) -> None:
        """Complete all groups of these threads but the last `left`; `only_read`: read their sources."""
        here = np.zeros(self.block.threads, bool)
        here[threads] = True
        last = self.committed[kind] - left
        for operation in [one for one in self.pending if one.kind == kind]:
            ready = (
                operation.waiting & here[operation.threads] & (operation.groups < last[operation.threads] + uncommitted)
            )
            if not np.count_nonzero(ready):
                continue
            if only_read:
                operation.look()
            else:
                self.do(operation, np.flatnonzero(ready))

    def do(self, operation: Pending, which: Array) -> None:
        operation.do(which)
        self.machine.progress += 1
        if not np.count_nonzero(operation.waiting) and operation in self.pending:
            self.pending.remove(operation)

    def complete(self, barrier: int) -> bool:
        """Carry out the operations that signal this mbarrier; return True if there were any."""
        found = [one for one in self.pending if one.barrier == barrier]
        for operation in found:
            if operation not in self.pending:  # done by an earlier one
                continue
            if operation.kind == "signal":
                self.before(operation)
            self.pending.remove(operation)
            self.do(operation, np.flatnonzero(operation.waiting))
        return bool(found)

    def before(self, signal: Pending) -> None:
        """Carry out the copies that the threads of a signal issued before it."""
        here = np.zeros(self.block.threads, bool)
        here[signal.threads] = True
        for operation in self.pending[: self.pending.index(signal)]:
            if operation.kind == "cp.async" and np.count_nonzero(ready := operation.waiting & here[operation.threads]):
                self.do(operation, np.flatnonzero(ready))

    def finish(self) -> None:
        """Carry out the writes to global memory for which no thread waited, at the end of the block."""
        for operation in list(self.pending):
            if operation.kind == "bulk" and operation.barrier is None:
                self.do(operation, np.flatnonzero(operation.waiting))


def operations(t: Translator) -> Operations:
    """Return the operations of the running block."""
    state = t.block.state
    found = state.get(STATE)
    if found is None:
        found = state[STATE] = Operations(t.block, t.machine)
        state.setdefault("at the end", []).append(found.finish)
    return found
