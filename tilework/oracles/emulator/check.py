"""Check mode: warps run one at a time in a random order, and every access is compared with the earlier accesses.

    device = Device(check=True, seed=1)
    device.launch(...)                      # raises CheckFailed with all findings at the end of the launch

Two accesses to a byte by different agents, one of them a write, race unless the first happens before the second:
through a barrier, an mbarrier, a wait, a fence with an atomic access, or because a launch ended between them. The order
in which they happened to run does not matter, so one run finds races that a GPU may show rarely. A copy that a thread
has started is an agent of its own, ordered after nothing before its wait. A write of the value that is already there is
no race.

Blocks run one after the other: accesses of two blocks are ordered only by fences and atomic accesses.

With `together` the warps of a block run at once as long as they are at the same instruction, in less than half of the
time; only instructions that order accesses run one warp at a time. The findings are the same, because they follow from
happens-before; but results that depend on the order of atomic accesses are those of one order, whatever the `seed`.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilework.oracles.emulator.async_operations import STATE, Access, Pending
from tilework.oracles.emulator.barriers import NEXT_BLOCK
from tilework.oracles.emulator.definedness import Definedness, registers
from tilework.oracles.emulator.findings import CheckFailed, Finding, Findings, Site
from tilework.oracles.emulator.machine import CLUSTER, PATIENCE, Machine, Run, Trapped, is_aligned_barrier
from tilework.oracles.emulator.memory import BITS, COLUMNS, FIRST, SHARED_BASE, WINDOW, Array, Memory, MemoryFault
from tilework.oracles.emulator.ordering import HOOKS, Ordering
from tilework.oracles.emulator.shadow import (
    ASYNC,
    COMBINED,
    HANDED,
    LARGEST,
    PLAIN,
    STRONG,
    Accesses,
    Clocks,
    Conflict,
    PagedShadow,
    ReplicaShadow,
    Shadow,
    Stamp,
)
from tilework.oracles.emulator.syntax import EmulatorError, Instruction
from tilework.oracles.emulator.translate import WARP, Block, Mask, Op, Translator, Unsupported

SHARED_SLOTS, GLOBAL_SLOTS = 8, 4
STRONG_MODIFIERS = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}
ISSUES = {"cp", "wgmma", "st", "red"}  # instructions that may start an asynchronous operation
MAY_RACE = ("global", "shared")


class Checker:
    """Observes one device. `findings` grow during a launch; the launch raises them, unless `collect`."""

    def __init__(self, memory: Memory, collect: bool = False, replicas: bool = False) -> None:
        self.memory, self.collect = memory, collect
        self.new_arena = ReplicaShadow if replicas else PagedShadow
        self.findings = Findings()
        self.instructions: list[Instruction] = []
        self.ids: dict[int, int] = {}
        self.registers = Definedness(self.report_at)
        self.blocks: list[tuple[int, int, int]] = []  # in launch order
        self.machine: CheckingMachine
        self.block: Block
        self.clocks: Clocks
        self.shared: Shadow
        self.ordering: Ordering
        self.arena: Shadow

    # a launch, a block

    def begin_launch(self, machine: "CheckingMachine") -> None:
        self.machine, self.block = machine, machine.block
        self.everyone = np.ones(self.block.threads, bool)
        self.findings, self.blocks = Findings(), []
        self.shared = Shadow(-(-self.block.shared.size // LARGEST), min(SHARED_SLOTS, self.block.threads // WARP))
        self.arena = self.new_arena(GLOBAL_SLOTS)
        self.atomics: dict[int, dict[int, Stamp]] = {}

    def start(self, ctaid: tuple[int, int, int]) -> None:
        self.blocks.append(ctaid)
        self.clocks = Clocks(self.block.threads, len(self.blocks) - 1)
        self.ordering = Ordering(self.clocks, self.block, self.atomics)
        self.shared.clear()
        self.stamped: dict[int, Pending] = {}
        self.registers.start(self.block.threads)

    def end_launch(self, kernel: str) -> None:
        if self.findings and not self.collect:
            raise CheckFailed(kernel, self.findings)

    # findings

    def thread_name(self, thread: int, block: int | None = None) -> str:
        index = self.machine.block_of(thread) if block in (None, len(self.blocks) - 1) else self.blocks[block]
        return f"thread {self.machine.thread_id(thread)} of block {index}"

    def report_at(self, kind: str, what: str, ins: Instruction, thread: int) -> None:
        self.findings.add(Finding(kind, f"{what} ({self.thread_name(thread)})", (Site.of(ins),)))

    def report_conflict(self, space: str, base: int, verb: str, accesses: Accesses, conflict: Conflict) -> None:
        ins, other = self.instructions[accesses.ins], self.instructions[conflict.ins]
        thread, address = int(accesses.threads[conflict.index]), accesses.address(conflict.index) + base
        was = self.agent(conflict.agent, conflict.block, conflict.was_write, other)
        kind = "used before its wait" if conflict.agent >= self.block.threads else "race"
        subject = self.thread_name(thread)
        if accesses.kind >= ASYNC:
            subject = f"{ins.opcode}.{ins.modifiers[0]} of {subject}"
        what = f"{subject} {verb} {space} address {address:#x}, which {was}, and nothing orders the two"
        self.findings.add(Finding(kind, what, (Site.of(ins), Site.of(other))))

    def agent(self, agent: int, block: int, was_write: bool, ins: Instruction) -> str:
        verb = "wrote" if was_write else "read"
        if agent < self.block.threads:
            return f"{self.thread_name(agent, block)} {verb}"
        owner = self.clocks.owner(agent) if block == self.clocks.block else None
        issuer = f"block {self.blocks[block]}"
        if owner is not None:
            issuer = (
                f"{self.thread_name(owner[0], block)}"
                if owner[0] == owner[1]
                else f"warp {owner[0] // WARP} of {issuer}"
            )
        return f"{ins.opcode}.{ins.modifiers[0]} of {issuer} {'writes' if was_write else 'reads'} asynchronously"

    def id_of(self, ins: Instruction) -> int:
        found = self.ids.get(id(ins))
        if found is None:
            found = self.ids[id(ins)] = len(self.instructions)
            self.instructions.append(ins)
        return found

    # accesses

    def access(
        self, ins: Instruction | None, space: str, kind: str, addresses: Array, size: int, threads: Array,
        values: Array | None = None,
    ) -> None:  # fmt: skip
        if (
            ins is None
            or space not in MAY_RACE
            or kind.startswith("async")
            or (ins.opcode == "ld" and "param" in ins.modifiers)
        ):
            return
        if space == "shared":
            self.ordering.look(addresses)
        strong = kind == "atomic" or (ins.opcode in ("ld", "st") and not STRONG_MODIFIERS.isdisjoint(ins.modifiers))
        if ins.opcode == "mbarrier" and ins.modifiers[0] in ("init", "inval"):
            strong = False
        writes = kind == "store" or (kind == "atomic" and values is not None)
        base = FIRST if space == "global" else 0
        unit, at = self.units(space, addresses - np.uint64(base), size)
        agents = np.repeat(threads, size // unit)
        accesses = Accesses(
            at, agents, self.clocks.own(agents), agents, self.id_of(ins), STRONG if strong else PLAIN, unit
        )
        self.check(ins, space, base, accesses, writes, values)

    def units(self, space: str, addresses: Array, size: int) -> tuple[int, Array]:
        """Return the size of the shadow's unit in bytes, and the index of every unit of accesses of `size` bytes."""
        unit = (self.shared if space == "shared" else self.arena).unit_of(addresses, size)
        first = addresses.astype(np.int64) // unit
        return unit, first if size == unit else (first[:, None] + COLUMNS[size // unit]).reshape(-1)

    def check(
        self, ins: Instruction, space: str, base: int, accesses: Accesses, writes: bool, values: Array | None
    ) -> None:
        shadow = self.shared if space == "shared" else self.arena
        if not len(accesses):
            return
        located = replace(accesses, at=shadow.locate(accesses.at))
        if not writes:
            if space == "shared":
                self.check_written(shadow, ins, accesses)
            found = shadow.read(located, self.clocks)
        else:
            harmless = None
            if values is not None and accesses.kind == PLAIN:
                new = np.ascontiguousarray(values).view(BITS[accesses.unit]).reshape(-1)
                data = self.block.shared.data if space == "shared" else self.memory.bytes
                harmless = data.views[accesses.unit][accesses.at] == new
                self.check_twice(space, base, accesses, new)
            found = shadow.write(located, self.clocks, harmless)
        if found is not None:
            self.report_conflict(space, base, "writes" if writes else "reads", accesses, found)

    def check_written(self, shadow: Shadow, ins: Instruction, accesses: Accesses) -> None:
        unwritten = shadow.unwritten(accesses)
        if np.count_nonzero(unwritten):
            index = int(unwritten.argmax())
            what = f"shared address {accesses.address(index):#x} is read and was never written"
            self.report_at("uninitialised shared memory", what, ins, int(accesses.threads[index]))
            reported = replace(accesses, steps=np.zeros_like(accesses.steps))  # report it once
            shadow.put(0, reported, np.flatnonzero(unwritten), self.clocks.block)

    def check_twice(self, space: str, base: int, accesses: Accesses, new: Array) -> None:
        """Report two threads that write different values to one address in one instruction."""
        order = np.argsort(accesses.at, kind="stable")
        at, data, agents = accesses.at[order], new[order], accesses.agents[order]
        twice = (at[1:] == at[:-1]) & (data[1:] != data[:-1]) & (agents[1:] != agents[:-1])
        if np.count_nonzero(twice):
            index = int(twice.argmax())
            site, address = Site.of(self.instructions[accesses.ins]), int(at[index]) * accesses.unit + base
            first, second = (self.thread_name(int(agents[at])) for at in (index, index + 1))
            what = f"{first} and {second} write different values to {space} address {address:#x}"
            self.findings.add(Finding("race", what, (site, site)))

    def check_proxy(self, ins: Instruction, space: str, base: int, proxy: str, accesses: Accesses, verb: str) -> None:
        """Report a missing fence.proxy between a thread's write and a copy or a tensor core that reads or writes the
        bytes; in shared memory also between a thread's read and an overwrite, unless the thread arrived at an mbarrier
        in between, as a consumer does."""
        shadow = self.shared if space == "shared" else self.arena
        at = shadow.locate(accesses.at)
        cells = range(1 + 2 * shadow.slots) if space == "shared" and verb == "writes" else (0,)
        for cell in cells:
            agents, steps, blocks, kinds = (
                field[cell, at] for field in (shadow.agent, shadow.step, shadow.block, shadow.kind)
            )
            hidden = (agents > 0) & (agents <= self.block.threads) & (steps > 0)
            hidden &= kinds == PLAIN if space == "shared" else kinds < ASYNC
            if space == "shared" and cell == 0:
                hidden |= self.clocks.works_as(agents - 1, ("cp.async", "write"))
            some = np.flatnonzero(hidden)
            if not len(some):
                continue
            facts = accesses.threads[some], blocks[some], agents[some] - 1, steps[some]
            hidden[some] = ~self.clocks.visible(proxy, *facts) & self.clocks.ordered(*facts)
            if cell:
                hidden[some] &= ~self.clocks.visible(HANDED, *facts)
            if np.count_nonzero(hidden):
                index = int(hidden.argmax())
                other = self.instructions[int(shadow.ins[cell, at[index]])]
                fence = "fence.proxy.tensormap" if proxy == "tensormap" else "fence.proxy.async"
                agent = int(agents[index]) - 1
                thread = agent if agent < self.block.threads else (self.clocks.owner(agent) or (0,))[0]
                did = f"{self.thread_name(thread, int(blocks[index]))} {'read' if cell else 'wrote'}"
                what = f"{ins.opcode} {verb} {space} address {accesses.address(index) + base:#x}, which {did}"
                what += f", without {fence} between them"
                self.findings.add(Finding("missing proxy fence", what, (Site.of(ins), Site.of(other))))
                return

    # asynchronous operations

    def issued(self, t: Translator) -> None:
        """Record the operations that have been started since the last call."""
        operations = self.block.state.get(STATE)
        if operations is None:
            return
        for operation in operations.pending:
            if id(operation) not in self.stamped:
                self.stamped[id(operation)] = operation
                self.stamp(operation, t)

    def stamp(self, operation: Pending, t: Translator) -> None:
        if operation.kind == "signal":
            self.ordering.signal(operation)
            return
        reader, writer, steps = self.ordering.agents(operation)
        if operation.kind == "wgmma":
            for names in operation.registers:
                self.registers.take_off(t, names, operation.threads, operation.groups)
        for writes, agents, found in ((False, reader, operation.reads), (True, writer, operation.writes)):
            for access in found:
                self.check_async(operation, access, agents, steps, writes)

    def check_async(self, operation: Pending, access: Access, agents: Array, steps: Array, writes: bool) -> None:
        if not len(access.addresses):
            return
        addresses, space, base = access.addresses, access.space, 0
        if space == "generic":
            space = "shared" if SHARED_BASE <= int(addresses[0]) < SHARED_BASE + WINDOW else "global"
            addresses = addresses - np.uint64(SHARED_BASE if space == "shared" else 0)
        own = len(agents) == len(addresses)
        which = np.arange(len(addresses)) if own else np.zeros(len(addresses), np.int64)
        if space == "global":
            base = FIRST
            valid = self.memory.valid(addresses, access.size)
            if valid is not True:  # copies that read nothing may have any address
                addresses, which = addresses[valid], which[valid]
        unit, at = self.units(space, addresses - np.uint64(base), access.size)
        which = np.repeat(which, access.size // unit)
        kind = COMBINED if writes and "reduce" in operation.ins.modifiers else ASYNC
        ins_id = self.id_of(operation.ins)
        accesses = Accesses(at, agents[which], steps[which], operation.threads[which], ins_id, kind, unit)
        if operation.kind in ("bulk", "wgmma") and len(at):
            proxy = "tensormap" if access.is_map else space
            self.check_proxy(operation.ins, space, base, proxy, accesses, "writes" if writes else "reads")
        self.check(operation.ins, space, base, accesses, writes, None)

    # instructions

    def wrap(self, ins: Instruction, t: Translator, op: Op) -> Op:
        """Return an instruction with the checks before and after it."""
        before = self.registers.watch(ins, t)
        orders = self.ordering_of(ins, t)
        issues = ins.opcode in ISSUES
        guard = ins.predicate.name if ins.predicate is not None else None
        everyone = self.everyone

        def warp_by_warp(mask: Mask) -> None:
            for part in by_warp(everyone if mask is True else mask):
                checked(part)

        def checked(mask: Mask) -> None:
            mine = everyone if mask is True else mask
            if guard is not None:
                self.registers.require(t, ins, (guard,), mine, "a predicate")
                mine = mine & (t.registers[guard] ^ ins.negated)
                if not np.count_nonzero(mine):
                    return
            before(mine)
            if orders is not None:
                orders[0](mine)
            op(mask)
            if issues:
                self.issued(t)
            if orders is not None:
                orders[1](mine)

        return warp_by_warp if orders is not None and self.machine.together else checked

    def ordering_of(self, ins: Instruction, t: Translator) -> tuple[Op, Op] | None:
        """Return the ordering effects of an instruction: (before it, after it)."""
        hook = HOOKS.get(ins.opcode)
        return hook(lambda: self.ordering, self.registers, ins, t) if hook is not None else None

    def ending(self, end: Instruction, t: Translator, mask: Array) -> None:
        """Check a branch, a call or a barrier."""
        if end.predicate is not None:
            self.registers.require(t, end, (end.predicate.name,), mask, "a predicate")
        if end.opcode != "call":
            names = tuple(name for operand in end.operands for name in registers(operand))
            self.registers.require(t, end, names, mask, "an operand") if "red" not in end.modifiers else None
        if "red" in end.modifiers and end.opcode in ("bar", "barrier"):
            for name in registers(end.operands[0]):
                self.registers.array(t, name)[mask] = True


def by_warp(mask: Array) -> list[Array]:
    """Split a mask by warp."""
    warps = np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist()
    if len(warps) == 1:
        return [mask]
    parts = [np.zeros(len(mask), bool) for _ in warps]
    for part, warp in zip(parts, warps, strict=True):
        part[warp * WARP : (warp + 1) * WARP] = mask[warp * WARP : (warp + 1) * WARP]
    return parts


class CheckingMachine(Machine):
    """Runs warps one at a time; each runs until it waits or exits, then a random one is next. With `together`, the same
    for the blocks of a cluster."""

    checker: Checker
    rng: random.Random
    together: bool = False
    current = -1

    def begin_launch(self, grid: tuple[int, int, int]) -> None:
        self.checker.begin_launch(self)

    def end_launch(self) -> None:
        self.checker.end_launch(self.kernel.function.name)

    def run_block(self, ctaid: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        self.early: dict[int, Stamp] = {}
        self.checker.start(ctaid)
        try:
            super().run_block(ctaid, grid)
        except (Unsupported, Trapped):
            raise
        except EmulatorError as error:
            if isinstance(error, MemoryFault) and error.ins is not None:
                what = str(error).partition("\n")[0]
                address = None if "shared" in what or "local" in what else error.address
                self.checker.findings.add(Finding("bad access", what, (Site.of(error.ins),), address, ctaid))
            else:
                self.checker.findings.add(Finding("error", str(error)))

    def begin(self) -> None:
        if not self.kernel.runs:
            return
        groups = self.block.ranks if self.together else self.block.everyone // WARP
        for group in np.unique(groups).tolist():
            self.strands[(group, self.kernel.runs[0])] = self.block.exists & (groups == group)

    def pick(self) -> tuple[int, Run]:
        self.patience += 1
        ready = self.ready()
        mine = ready.get(self.current)
        if mine is None or self.stalled or self.patience % PATIENCE == 0:
            others = sorted(group for group in ready if group != self.current)
            if others:
                self.current = self.rng.choice(others)
            mine = ready[self.current]
        if self.stalled and len(mine) > 1:
            return self.rng.choice(mine)
        return mine[0]

    def ready(self) -> dict[int, list[tuple[int, Run]]]:
        """Return the strands that can run, by warp, those furthest behind first."""
        found: dict[int, list[tuple[int, Run]]] = {}
        order: Sequence[tuple[int, Run]] = sorted(self.strands, key=lambda at: (at[1].key, at[0]))
        whole = list(filter(self.is_complete, order)) or order
        awake = (
            [at for at in whole if np.count_nonzero(self.strands[at] & ~self.polling)]
            if np.count_nonzero(self.polling)
            else whole
        )
        for at in awake or whole:
            found.setdefault(at[0], []).append(at)
        return found

    # barriers

    def arrive(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        for part in by_warp(mask):
            self.arrive_warp(group, run, end, part)

    def arrive_warp(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        kinds, clocks = set(end.modifiers), self.checker.clocks
        threads = np.flatnonzero(mask)
        if is_aligned_barrier(end) and not self.is_whole(mask):
            lanes = (mask | self.finished).reshape(-1, WARP)
            warp = int(np.flatnonzero(mask.reshape(-1, WARP).any(axis=1))[0])
            lane = int(np.flatnonzero(~lanes[warp])[0])
            what = f"lane {lane} of warp {warp} is elsewhere while others of it are at a barrier"
            self.checker.report_at("barrier in divergent code", what, end, int(threads[0]))
        if is_aligned_barrier(end) and "sync" in kinds:
            barrier_id = self.uniform(run.code.translator, end.operands[0], mask, end)
            barrier = self.barriers.get(barrier_id + int(self.block.ranks[threads[0]]) * NEXT_BLOCK)
            others = {id(there): there for (_, _, there), _ in (barrier.waiting if barrier else ())} | {id(end): end}
            if sum(map(is_aligned_barrier, others.values())) > 1:
                what = f"some wait for barrier {barrier_id} here, others elsewhere; "
                what += "bar.sync is the same one for all, barrier.sync need not be"
                self.checker.report_at("barrier in divergent code", what, end, int(threads[0]))
        if "cluster" in kinds and "wait" in kinds and (done := self.early.get(-1)) is not None:
            clocks.deliver(threads, done)
        if "arrive" in kinds:
            barrier_id = (
                CLUSTER if "cluster" in kinds else self.uniform(run.code.translator, end.operands[0], mask, end)
            )
            barrier_id += 0 if "cluster" in kinds else int(self.block.ranks[threads[0]]) * NEXT_BLOCK  # it is one warp
            self.early[barrier_id] = clocks.collect(threads).merged(self.early.get(barrier_id))
            clocks.tick(threads)
        super().arrive(group, run, end, mask)

    def released(self, barrier_id: int, barrier: Any) -> None:
        clocks = self.checker.clocks
        waiting = np.flatnonzero(
            np.logical_or.reduce([mask for _, mask in barrier.waiting] or [np.zeros(self.block.threads, bool)])
        )
        stamp = self.early.pop(barrier_id, None)
        if len(waiting):
            stamp = clocks.collect(waiting).merged(stamp)
            clocks.deliver(waiting, stamp)
            clocks.tick(waiting)
        if barrier_id == CLUSTER and stamp is not None:
            self.early[-1] = stamp

    def warp_synced(self, mask: Array) -> None:
        clocks, threads = self.checker.clocks, np.flatnonzero(mask)
        clocks.deliver(threads, clocks.collect(threads))
        clocks.tick(threads)
