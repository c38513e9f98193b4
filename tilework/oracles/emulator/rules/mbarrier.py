"""Waiting without a barrier instruction: mbarrier objects, fences, and hints to the machine.

An mbarrier is eight bytes of shared memory. It goes through phases; one ends when all arrivals it expects have come and
as many bytes have been copied as were announced:

    mbarrier.init.shared::cta.b64  [%r1], 1;                          expects one arrival in every phase
    mbarrier.arrive.expect_tx.shared::cta.b64  _, [%r1], 128;         arrives, and announces 128 bytes
    cp.async.bulk...mbarrier::complete_tx::bytes  [%r2], [%rd1], 128, [%r1];
    mbarrier.try_wait.parity.shared::cta.b64  %p1, [%r1], 0;          true: the phase of parity 0 is over

The object is kept in memory, as `Phase.pack` writes it; an object that was never initialised, or overwritten, is an
error. A phase also serves as the state that an arrival returns. Fences order memory that this machine never reorders:
they do nothing here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.oracles.emulator.async_operations import Access, operations
from tilework.oracles.emulator.memory import BLOCK_BITS, SHARED_BASE, Array, MemoryFault
from tilework.oracles.emulator.rules.load_store import FUNCTIONS, registers, space_of, width_of
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Operand, Sink
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

LARGEST = (1 << 20) - 1  # of a count of arrivals or bytes
BIAS = 1 << 21


@dataclass
class Phase:
    """The state of an mbarrier: the arrivals that each phase expects, the arrivals and bytes that this phase still
    waits for, its parity."""

    expected: int
    arrivals: int
    bytes: int = 0
    parity: int = 0

    def pack(self) -> int:
        return self.expected | self.arrivals << 20 | (self.bytes + BIAS) << 40 | self.parity << 62 | 1 << 63

    @classmethod
    def unpack(cls, bits: int) -> "Phase":
        return cls(bits & LARGEST, bits >> 20 & LARGEST, (bits >> 40 & (2 * BIAS - 1)) - BIAS, bits >> 62 & 1)

    def settle(self) -> bool:
        """Begin the next phase if nothing is missing in this one."""
        if self.arrivals or self.bytes:
            return False
        self.arrivals, self.parity = self.expected, self.parity ^ 1
        return True


class Barriers:
    """The mbarriers of a block."""

    def __init__(self, t: Translator, ins: Instruction) -> None:
        self.t, self.ins, self.port = t, ins, t.port("shared")

    def load(self, address: int, thread: int) -> Phase:
        bits = int(
            self.port.read(np.array([address], np.uint64), np.uint64, 1, np.array([thread]), self.ins, "atomic")[0, 0]
        )
        block, rank = self.t.block, address >> BLOCK_BITS
        if block.blocks > 1 and rank != block.ranks[thread] and self.t.machine.finished[block.ranks == rank].all():
            raise EmulatorError(f"the block of the mbarrier at {address:#x} has ended")
        if not bits >> 63:
            raise EmulatorError(f"shared address {address:#x} holds no initialised mbarrier")
        return Phase.unpack(bits)

    def save(self, address: int, thread: int, phase: Phase | None) -> None:
        bits = np.array([[0 if phase is None else phase.pack()]], np.uint64)
        self.port.write(np.array([address], np.uint64), bits, np.array([thread]), self.ins, "atomic")

    def arrive(
        self, address: int, thread: int, count: int = 1, announced: int = 0, drop: bool = False, may_end: bool = True
    ) -> int:
        """Arrive `count` times, after announcing `announced` bytes; return the state before."""
        if not 0 < count <= LARGEST:
            raise EmulatorError(f"{count} arrivals at an mbarrier; 1 to {LARGEST} are possible")
        phase = self.load(address, thread)
        if phase.arrivals < count and operations(self.t).complete(address):
            phase = self.load(address, thread)
        before = phase.pack()
        if phase.arrivals < count:
            raise EmulatorError(
                f"the mbarrier at {address:#x} expects {phase.arrivals} more of {phase.expected} arrivals, "
                f"and {count} come"
            )
        phase.bytes += announced
        phase.arrivals -= count
        phase.expected -= count if drop else 0
        self.check_bytes(address, phase)
        if phase.settle():
            if not may_end:
                raise EmulatorError(f"an arrival with .noComplete ends the phase of the mbarrier at {address:#x}")
            self.t.machine.progress += 1
        self.save(address, thread, phase)
        return before

    def transfer(self, address: int, thread: int, count: int) -> None:
        """Announce bytes (count > 0), or report that they have been copied (count < 0)."""
        phase = self.load(address, thread)
        phase.bytes += count
        self.check_bytes(address, phase)
        if phase.settle():
            self.t.machine.progress += 1
        self.save(address, thread, phase)

    def expect_more(self, address: int, thread: int) -> None:
        """Expect one more arrival in this phase only."""
        phase = self.load(address, thread)
        phase.arrivals += 1
        self.save(address, thread, phase)

    def check_bytes(self, address: int, phase: Phase) -> None:
        if abs(phase.bytes) > LARGEST:
            raise EmulatorError(
                f"the mbarrier at {address:#x} would wait for {phase.bytes} bytes; at most {LARGEST} are possible"
            )


def shared_address(t: Translator, operand: Operand, space: str) -> Any:
    """Return a function from thread indices to shared addresses; generic ones are converted."""
    where = t.address(operand)
    if space == "shared":
        return where

    def generic(threads: Array) -> Array:
        addresses = where(threads)
        wrong = (addresses < SHARED_BASE) | (addresses >= SHARED_BASE + (1 << 32))
        if np.count_nonzero(wrong):
            raise MemoryFault.first(wrong, addresses, threads, "%#x is no address of shared memory")
        return addresses - np.uint64(SHARED_BASE)

    return generic


def per_thread(t: Translator, operand: Operand | None, default: int = 0, dtype: Any = np.uint32) -> Array:
    """Return an operand with a value for every thread."""
    return np.broadcast_to(t.read(operand, dtype) if operand is not None else np.array(default, dtype), (t.threads,))


def each(threads: Array, addresses: Array) -> Iterator[tuple[int, int]]:
    return zip(threads.tolist(), addresses.tolist(), strict=True)


def at_each(ins: Instruction, t: Translator, act: Callable[[Barriers, int, int], None]) -> Op:
    """Call `act` for the mbarrier of each thread, with its address and the thread."""
    where, barriers = shared_address(t, ins.operands[0], space_of(ins)), Barriers(t, ins)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        for thread, address in each(threads, where(threads)):
            act(barriers, address, thread)

    return op


@rule("mbarrier.init")
def init(ins: Instruction, t: Translator) -> Op:
    counts = per_thread(t, ins.operands[1])

    def act(barriers: Barriers, address: int, thread: int) -> None:
        count = int(counts[thread])
        if not 0 < count <= LARGEST:
            raise EmulatorError(f"an mbarrier for {count} arrivals; 1 to {LARGEST} are possible")
        barriers.save(address, thread, Phase(count, count))

    return at_each(ins, t, act)


@rule("mbarrier.inval")
def inval(ins: Instruction, t: Translator) -> Op:
    def act(barriers: Barriers, address: int, thread: int) -> None:
        operations(t).complete(address)
        barriers.load(address, thread)
        barriers.save(address, thread, None)

    return at_each(ins, t, act)


@rule("mbarrier.expect_tx", "mbarrier.complete_tx")
def transaction(ins: Instruction, t: Translator) -> Op:
    counts, sign = per_thread(t, ins.operands[1]), 1 if ins.modifiers[0] == "expect_tx" else -1
    return at_each(
        ins, t, lambda barriers, address, thread: barriers.transfer(address, thread, sign * int(counts[thread]))
    )


@rule("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(ins: Instruction, t: Translator) -> Op:
    announces = "expect_tx" in ins.modifiers
    state, address, *rest = ins.operands
    where, barriers = shared_address(t, address, space_of(ins)), Barriers(t, ins)
    values = per_thread(t, rest[0] if rest else None, 1)
    put = t.scatter(state, np.uint64)
    drop, may_end = ins.modifiers[0] == "arrive_drop", "noComplete" not in ins.modifiers

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        states = []
        for thread, address in each(threads, where(threads)):
            value = int(values[thread])
            count, announced = (1, value) if announces else (value, 0)
            states.append(barriers.arrive(address, thread, count, announced, drop, may_end))
        if not isinstance(state, Sink):
            put(np.array(states, np.uint64), threads)

    return op


@rule("mbarrier.test_wait", "mbarrier.try_wait")
def wait(ins: Instruction, t: Translator) -> Op:
    """test_wait and try_wait: test if a phase is complete, given its parity or a state from an arrival in it. Both poll
    once."""
    done, address, which = ins.operands[:3]
    by_parity = "parity" in ins.modifiers
    where, barriers = shared_address(t, address, space_of(ins)), Barriers(t, ins)
    states = per_thread(t, which, dtype=np.uint32 if by_parity else np.uint64)
    put = t.scatter(done, np.bool_)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        addresses = where(threads)
        over = np.zeros(len(threads), bool)
        parities = states[threads] & np.uint32(1) if by_parity else states[threads] >> np.uint64(62) & np.uint64(1)
        for address in np.unique(addresses).tolist():
            here = addresses == address
            operations(t).complete(address)
            over[here] = barriers.load(address, int(threads[here][0])).parity != parities[here]
        put(over, threads)
        t.machine.waited(threads, over)

    return op


@rule("mbarrier.pending_count")
def pending_count(ins: Instruction, t: Translator) -> Op:
    out, state = t.write(ins.operands[0], np.uint32), per_thread(t, ins.operands[1], dtype=np.uint64)
    return lambda mask: np.copyto(out, (state >> np.uint64(20) & np.uint64(LARGEST)).astype(np.uint32), where=mask)


# stores and reductions that signal an mbarrier


@rule("st.async", "atom.async", "red.async")
def signalled(ins: Instruction, t: Translator) -> Op:
    """``st.async...mbarrier::complete_tx::bytes [a], b, [bar]``, ``red.async...mbarrier::complete_tx::bytes.add.u32
    [a], b, [bar]``."""
    function = next((FUNCTIONS[modifier] for modifier in ins.modifiers if modifier in FUNCTIONS), None)
    if (function is None) != (ins.opcode == "st"):
        raise Unsupported(ins)
    if "mbarrier::complete_tx::bytes" not in ins.modifiers:
        raise Unsupported(ins, "it completes by mbarrier::complete_tx::bytes only")
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    count = width_of(ins)
    sources = [per_thread(t, item, dtype=dtype) for item in registers(ins, ins.operands[1], count)]
    space = space_of(ins)
    where, signal = shared_address(t, ins.operands[0], space), shared_address(t, ins.operands[2], space)
    barriers, port = Barriers(t, ins), t.port("shared")
    size = dtype.itemsize * count

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        addresses, mbarriers = where(threads), signal(threads)
        port.check(addresses, size, size, threads)
        values = np.stack([source[threads] for source in sources], axis=1)
        for index, mbarrier in enumerate(mbarriers.tolist()):
            here = slice(index, index + 1)
            store = single_store(addresses[here], values[here], threads[here], mbarrier)
            write = (Access("shared", addresses[here], size),)
            operations(t).issue(ins, "bulk", threads[here], (), write, mbarrier, store=store)

    def single_store(addresses: Array, values: Array, threads: Array, mbarrier: int) -> Any:
        def store(which: Array, fetched: Any) -> None:
            new = values
            if function is not None:
                new = function(port.read(addresses, dtype, count, threads, ins, "async load"), values).astype(dtype)
            port.write(addresses, new, threads, ins, "async store")
            barriers.transfer(mbarrier, int(threads[0]), -size)

        return store

    return op


# fences and performance hints

PROXIES = [(proxy,) for proxy in ("alias", "async", "tensormap::generic", "async::generic")]
FENCES = {"sc", "acq_rel", "acquire", "release", "proxy", "mbarrier_init", "cta", "cluster", "gpu", "sys"}


@rule("fence", "membar")
def fence(ins: Instruction, t: Translator) -> Op:
    """No effect, because accesses happen in program order. The form is checked, so that a wrong one is rejected."""
    first = ins.modifiers[0] if ins.modifiers else ""
    if first not in (FENCES if ins.opcode == "fence" else {"cta", "gl", "sys", "proxy"}):
        raise Unsupported(ins)
    if first == "proxy" and ins.modifiers[1:2] not in PROXIES:
        raise Unsupported(ins, "this proxy")
    return lambda mask: None


@rule("griddepcontrol")
def griddepcontrol(ins: Instruction, t: Translator) -> Op:
    """No effect: launches run one after the other, so the previous launch is always complete."""
    if ins.modifiers not in (("wait",), ("launch_dependents",)):
        raise Unsupported(ins)
    return lambda mask: None
