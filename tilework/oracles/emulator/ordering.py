"""The ordering effects of instructions other than barriers: waits for copy groups, mbarriers, fences, atomic accesses.

    cp.async.wait_group 0         orders the thread's copies before it; a barrier passes that on to other threads
    mbarrier.arrive, .try_wait    orders the arrivals and the copies of a phase before a thread that has seen its end
    fence; st.relaxed [flag]      orders earlier accesses before a thread that reads the flag and then executes a fence
    fence.proxy.async             makes earlier accesses visible to copies and tensor cores; with a space, there only

`HOOKS` has for each opcode a function that returns what to do before and after the instruction, for the mask of its
threads.

"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilework.oracles.emulator.async_operations import Pending
from tilework.oracles.emulator.definedness import Definedness, registers
from tilework.oracles.emulator.memory import SHARED_BASE, WINDOW, Array
from tilework.oracles.emulator.rules.load_store import space_of
from tilework.oracles.emulator.rules.mbarrier import Phase, shared_address
from tilework.oracles.emulator.shadow import HANDED, PROXIES, Clocks, Stamp
from tilework.oracles.emulator.syntax import Address, Imm, Instruction
from tilework.oracles.emulator.translate import WARP, Block, Mask, Op, Translator

KINDS = ("cp.async", "bulk", "wgmma")
RELEASES = {"release", "acq_rel", "sc"}
ACQUIRES = {"acquire", "acq_rel", "sc"}
STRONG = {"relaxed", "volatile", "mmio"} | RELEASES | ACQUIRES

Now = Callable[[], "Ordering"]  # of the block that is running
Orders = tuple[Op, Op] | None
Hook = Callable[[Now, Definedness, Instruction, Translator], Orders]
HOOKS: dict[str, Hook] = {}


@dataclass(eq=False)
class MbarrierState:
    """The checker's state of an mbarrier: the agent of its copies, the thread that initialised it, the completed
    phases, and the clocks that came with the arrivals of this phase and of the earlier ones."""

    agent: int
    made: tuple[int, int] = (0, 0)  # initialised by (thread, step)
    phase: int = 0
    parity: int = 0
    gathering: Stamp | None = None
    done: Stamp | None = None


class Ordering:
    """The ordering state of one block. `atomics` are stamps left at addresses of global memory, by address and block,
    for the whole launch."""

    def __init__(self, clocks: Clocks, block: Block, atomics: dict[int, dict[int, Stamp]]) -> None:
        self.clocks, self.block = clocks, block
        self.count = {kind: np.zeros(block.threads, np.int64) for kind in KINDS}
        self.ends: dict[str, list[list[int]]] = {kind: [[] for _ in range(block.threads)] for kind in KINDS}
        self.mbarriers: dict[int, MbarrierState] = {}
        self.released: dict[int, Stamp] = {}  # clocks of a thread at its last fence
        self.acquirable: dict[int, list[Stamp]] = {}  # stamps a thread has read, which take effect at its next fence
        self.atomics, self.shared_atomics = atomics, dict[int, dict[int, Stamp]]()

    # groups

    def agents(self, operation: Pending) -> tuple[Array, Array, Array]:
        """Return (reader, writer, step) of each transfer of an operation that has just been started."""
        threads, kind, clocks = operation.threads, operation.kind, self.clocks
        if operation.barrier is not None:
            barrier = self.mbarrier(operation.barrier)
            agents = np.full(len(threads), barrier.agent)
            return agents, agents, np.full(len(threads), barrier.phase + 1)
        self.count[kind][threads] += 1
        steps = self.count[kind][threads]
        if kind == "wgmma":
            agents = clocks.column(kind, self.block.threads // WARP) + threads // WARP
            return agents, agents, steps
        reader = clocks.column((kind, "read"), self.block.threads) + threads
        writer = clocks.column((kind, "write"), self.block.threads) + threads
        return reader, writer, steps

    def commit(self, kind: str, threads: Array) -> None:
        for thread, count in zip(threads.tolist(), self.count[kind][threads].tolist(), strict=True):
            self.ends[kind][thread].append(count)

    def wait(self, kind: str, threads: Array, left: int | None, only_read: bool = False) -> None:
        """Wait until all groups but the last `left` are complete; None: until all operations are."""
        if left is None:
            steps = self.count[kind][threads]
        else:
            ends = [self.ends[kind][thread] for thread in threads.tolist()]
            steps = np.array([one[-left - 1] if len(one) > left else 0 for one in ends])
        clocks = self.clocks
        if kind == "wgmma":
            clocks.learn(threads, clocks.column(kind, self.block.threads // WARP) + threads // WARP, steps)
            return
        clocks.learn(threads, clocks.column((kind, "read"), self.block.threads) + threads, steps)
        if not only_read:
            clocks.learn(threads, clocks.column((kind, "write"), self.block.threads) + threads, steps)

    # mbarriers

    def mbarrier(self, address: int) -> MbarrierState:
        if address not in self.mbarriers:
            self.mbarriers[address] = MbarrierState(self.clocks.column(("mbarrier", address)))
        return self.mbarriers[address]

    def initialise(self, address: int, thread: int) -> None:
        barrier = self.mbarrier(address)
        barrier.made = thread, int(self.clocks.known[thread, thread])
        barrier.phase, barrier.parity, barrier.gathering = barrier.phase + 1, 0, None

    def look(self, addresses: Array) -> None:
        """Record the ends of phases of these mbarriers."""
        if not self.mbarriers:
            return
        for address in self.mbarriers.keys() & set(addresses.tolist()):
            barrier = self.mbarriers[address]
            bits = int(self.block.shared.data.views[8][address // 8])
            if bits >> 63 and Phase.unpack(bits).parity != barrier.parity:
                self.end_phase(barrier)

    def end_phase(self, barrier: MbarrierState) -> None:
        barrier.phase += 1
        barrier.parity ^= 1
        stamp = self.empty() if barrier.gathering is None else barrier.gathering
        done = stamp.merged(barrier.done)
        known = np.zeros(max(len(done.known), barrier.agent + 1), np.int32)
        known[: len(done.known)] = done.known
        known[barrier.agent] = barrier.phase
        barrier.done, barrier.gathering = replace(done, known=known), None

    def empty(self) -> Stamp:
        return Stamp(np.zeros(0, np.int32), np.zeros((len(PROXIES), 0), np.int32), {}, self.clocks.block)

    def arrive(self, address: int, threads: Array) -> None:
        barrier = self.mbarrier(address)
        self.clocks.fence_proxy(threads, (HANDED,))
        barrier.gathering = self.clocks.collect(threads).merged(barrier.gathering)
        self.clocks.tick(threads)

    def signal(self, operation: Pending) -> None:
        """cp.async.mbarrier.arrive: the end of the phase orders the copies so far."""
        assert operation.barrier is not None
        threads, clocks = operation.threads, self.clocks
        for what in ("read", "write"):
            column = clocks.column(("cp.async", what), self.block.threads)
            stamp = self.clocks.collect(threads)
            stamp.known[column + threads] = self.count["cp.async"][threads]
            barrier = self.mbarrier(operation.barrier)
            barrier.gathering = stamp.merged(barrier.gathering)
        clocks.tick(threads)

    # fences and atomic accesses

    def fence(self, threads: Array) -> None:
        for thread in threads.tolist():
            one = np.array([thread])
            for stamp in self.acquirable.pop(thread, ()):
                self.clocks.deliver(one, stamp)
            self.released[thread] = self.clocks.collect(one)
        self.clocks.tick(threads)

    def stamps(self, key: int, create: bool = False) -> dict[int, Stamp]:
        where = self.shared_atomics if SHARED_BASE <= key < SHARED_BASE + WINDOW else self.atomics
        return where.setdefault(key, {}) if create else where.get(key, {})

    def strong_write(self, keys: Array, threads: Array, release: bool) -> None:
        if not release and not self.released:
            return
        for key, thread in zip(keys.tolist(), threads.tolist(), strict=True):
            stamp = self.clocks.collect(np.array([thread])) if release else self.released.get(thread)
            if stamp is not None:
                left = self.stamps(key, create=True)
                left[stamp.block] = stamp.merged(left.get(stamp.block))
        if release:
            self.clocks.tick(threads)

    def strong_read(self, keys: Array, threads: Array, acquire: bool) -> None:
        if not self.atomics and not self.shared_atomics:
            return
        for key, thread in zip(keys.tolist(), threads.tolist(), strict=True):
            for stamp in self.stamps(key).values():
                if acquire:
                    self.clocks.deliver(np.array([thread]), stamp)
                else:
                    self.acquirable.setdefault(thread, []).append(stamp)


def hook(*opcodes: str) -> Callable[[Hook], Hook]:
    def register(function: Hook) -> Hook:
        for opcode in opcodes:
            HOOKS[opcode] = function
        return function

    return register


def nothing(mask: Mask) -> None:
    return None


@hook("fence", "membar")
def fence(ordering: Now, known: Definedness, ins: Instruction, t: Translator) -> Orders:
    if "proxy" in ins.modifiers:
        proxies = proxies_of(ins)
        return (nothing, lambda mask: ordering().clocks.fence_proxy(np.flatnonzero(mask), proxies)) if proxies else None
    if ins.modifiers[:1] == ("mbarrier_init",):
        return None
    return nothing, lambda mask: ordering().fence(np.flatnonzero(mask))


def proxies_of(ins: Instruction) -> tuple[str, ...]:
    """Return the proxies of a fence: ``fence.proxy.async`` is for all memory, with a space for that one."""
    if "tensormap::generic" in ins.modifiers:
        return ("tensormap",) if "acquire" in ins.modifiers else ()
    if not any(modifier.startswith("async") for modifier in ins.modifiers):
        return ()
    spaces = {modifier.split("::")[0] for modifier in ins.modifiers}
    return tuple(space for space in ("shared", "global") if space in spaces) or ("shared", "global")


@hook("cp", "wgmma")
def groups(ordering: Now, known: Definedness, ins: Instruction, t: Translator) -> Orders:
    kind = "wgmma" if ins.opcode == "wgmma" else "bulk" if "bulk" in ins.modifiers else "cp.async"
    if "commit_group" in ins.modifiers:
        return nothing, lambda mask: ordering().commit(kind, np.flatnonzero(mask))
    if "wait_all" in ins.modifiers:
        return nothing, lambda mask: ordering().wait(kind, np.flatnonzero(mask), None)
    if "wait_group" not in ins.modifiers:
        return None
    (left,) = ins.operands
    assert isinstance(left, Imm)

    def after(mask: Mask) -> None:
        threads = np.flatnonzero(mask)
        ordering().wait(kind, threads, left.value, "read" in ins.modifiers)
        if kind == "wgmma":
            commits = np.array([len(ordering().ends[kind][thread]) for thread in threads.tolist()])
            known.finished[threads] = np.maximum(known.finished[threads], commits - left.value)

    return nothing, after


@hook("mbarrier")
def mbarrier(ordering: Now, known: Definedness, ins: Instruction, t: Translator) -> Orders:
    address = next((operand for operand in ins.operands if isinstance(operand, Address)), None)
    if address is None:
        return None
    where = shared_address(t, address, space_of(ins))
    kind, relaxed = ins.modifiers[0], "relaxed" in ins.modifiers
    answer = next(registers(ins.operands[0]), None)

    def before(mask: Mask) -> None:
        threads = np.flatnonzero(mask)
        addresses = where(threads)
        for address in np.unique(addresses).tolist():
            mine = threads[addresses == address]
            if kind == "init":
                ordering().initialise(address, int(mine[0]))
                continue
            maker, step = ordering().mbarrier(address).made
            if np.count_nonzero(early := ordering().clocks.known[mine, maker] < step):
                what = f"the mbarrier at {address:#x} is used, and nothing orders that after its initialisation"
                known.report("race", what, ins, int(mine[early][0]))
            if kind.startswith("arrive") and not relaxed:
                ordering().arrive(address, mine)

    def after(mask: Mask) -> None:
        threads = np.flatnonzero(mask)
        addresses = where(threads)
        ordering().look(addresses)
        if kind not in ("test_wait", "try_wait") or relaxed or answer is None:
            return
        over = t.registers[answer][threads]
        for address in np.unique(addresses).tolist():
            done = ordering().mbarrier(address).done
            mine = threads[(addresses == address) & over]
            if done is not None and len(mine):
                ordering().clocks.deliver(mine, done)

    return before, after


@hook("ld", "st", "atom", "red")
def strong(ordering: Now, known: Definedness, ins: Instruction, t: Translator) -> Orders:
    modifiers = set(ins.modifiers)
    address: Any = next((operand for operand in ins.operands if isinstance(operand, Address)), None)
    space = space_of(ins)
    is_strong = ins.opcode in ("atom", "red") or modifiers & STRONG
    if not is_strong or "async" in modifiers or address is None or space in ("param", "local", "const"):
        return None
    where = t.address(address)
    base = np.uint64(SHARED_BASE if space == "shared" else 0)
    release, acquire = bool(modifiers & RELEASES), bool(modifiers & ACQUIRES)

    def before(mask: Mask) -> None:
        threads = np.flatnonzero(mask)
        keys = where(threads) + base
        if ins.opcode != "st":
            ordering().strong_read(keys, threads, acquire)
        if ins.opcode != "ld":
            ordering().strong_write(keys, threads, release)

    return before, nothing
