"""Executes a workgroup: all its threads at once, which diverge at branches and reconverge where the paths join.

Blocks are split at barriers and at calls of functions into *segments*. Threads at the same segment form a strand; the
one that is furthest behind in the text runs first, so that the others wait for it where the paths join. A phi takes its
value on the edge from one block to the next. A barrier blocks whole waves until all waves have arrived at one, the same
or another, as the hardware does.

`Lds` is the LDS of a workgroup: its bytes, which of them have been written, and the last accesses. A wave counts its
barriers (its *epoch*), and its accesses are complete when it has waited for them (``s.waitcnt`` with lgkmcnt 0, a
release fence). An access is ordered before one of another wave if it was complete before a barrier that the other wave
has passed:

    wave 0    store [0]   wait   barrier                      epoch 0 | 1
    wave 1                       barrier   load [0]           ordered: complete in epoch 0, and the load is in epoch 1

Lanes of one wave run in lockstep. Copies from global memory to LDS arrive at the wait for them; until then no access
may touch their bytes. Tables have an element for each *grain*: the largest power of two that divides all accesses so
far.

"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.oracles.emulator.findings import Finding, Findings, Site
from tilework.oracles.emulator.llvm.ir import Function, Instruction, Module
from tilework.oracles.emulator.llvm.translate_ir import (
    COLLECTIVE,
    UNWRITTEN,
    Mask,
    Op,
    Translator,
    known_name,
    load_rules,
)
from tilework.oracles.emulator.llvm.wave_counters import WaveCounters
from tilework.oracles.emulator.memory import (
    ArenaPort,
    Array,
    Bytes,
    LocalPort,
    Memory,
    MemoryFault,
    Port,
    element_width,
)
from tilework.oracles.emulator.syntax import EmulatorError, Trapped, Unsupported, located_error

GRAIN = 16
ATOMIC = 128  # set in the record of an atomic access; two of them do not race
NEVER = np.iinfo(np.int32).max
Report = Callable[..., None]


class Lds:
    """The LDS of a workgroup; `report(kind, what, ins, thread, other instruction)` is called for errors."""

    def __init__(self, size: int, waves: int, wave: int, report: Report, checks: bool) -> None:
        self.port = Port("LDS", Bytes.zeros(size), size)
        self.waves, self.wave, self.report, self.checks = waves, wave, report, checks
        self.instructions: list[Instruction] = []
        self.ids: dict[Instruction, int] = {}
        self.start()

    def start(self) -> None:
        """Begin a new workgroup."""
        count = (self.port.size + GRAIN - 1) // GRAIN
        self.port.data.data[:] = 0xCD  # what is there before means nothing
        self.grain = GRAIN
        self.written = np.zeros(count, bool)
        self.arriving = np.zeros(count, bool)
        self.writer = np.zeros(count, np.int64)  # time << 32 | instruction << 8 | ATOMIC | wave + 1; 0: no access
        self.readers = np.zeros((self.waves, count), np.int64)
        self.time = np.zeros(self.waves, np.int64)  # of each wave: barriers and waits that it has seen
        self.epoch = np.zeros(self.waves, np.int64)
        self.over = np.full((self.waves, 64), NEVER, np.int32)  # in which epoch what was done at a time was over
        self.pending = np.zeros(self.waves, np.int64)  # the first time that is not over
        self.queue: list[list[tuple[int, Callable[[], None]]]] = [[] for _ in range(self.waves)]
        self.issued = np.zeros(self.waves, np.int64)  # accesses to global memory that vmcnt counts

    # time

    def tick(self, waves: Array) -> None:
        self.time[waves] += 1
        if int(self.time.max()) >= self.over.shape[1]:
            self.over = np.concatenate([self.over, np.full_like(self.over, NEVER)], axis=1)

    def wait(self, waves: Array) -> None:
        """Complete the LDS accesses of these waves."""
        for wave in waves.tolist():
            now = self.over[wave, self.pending[wave] : self.time[wave] + 1]
            np.minimum(now, self.epoch[wave], out=now)
            self.pending[wave] = self.time[wave] + 1
        self.tick(waves)

    def barrier(self, waves: Array) -> None:
        self.epoch[waves] += 1
        self.tick(waves)

    # copies from global memory

    def issue(self, waves: Array) -> None:
        self.issued[waves] += 1

    def start_copy(self, wave: int, addresses: Array, size: int, arrive: Callable[[], None]) -> None:
        units = self.units(addresses, size).reshape(-1)
        self.arriving[units] = True

        def land() -> None:
            self.arriving[self.units(addresses, size).reshape(-1)] = False
            self.tick(np.array([wave]))
            arrive()
            self.over[wave, self.time[wave]] = self.epoch[wave]
            self.tick(np.array([wave]))

        self.queue[wave].append((int(self.issued[wave]), land))

    def wait_for_copies(self, waves: Array, left: int) -> None:
        """Complete all but the last `left` global accesses of each wave."""
        for wave in waves.tolist():
            while self.queue[wave] and self.queue[wave][0][0] <= self.issued[wave] - left:
                self.queue[wave].pop(0)[1]()

    # grains

    def refine(self, size: int) -> None:
        while self.grain > size:
            self.grain //= 2
            self.written, self.arriving = np.repeat(self.written, 2), np.repeat(self.arriving, 2)
            self.writer, self.readers = np.repeat(self.writer, 2), np.repeat(self.readers, 2, axis=1)

    def units(self, addresses: Array, size: int) -> Array:
        """Return [address, grain] of accesses of `size` bytes."""
        together = int(np.bitwise_or.reduce(addresses)) | size
        if together & (self.grain - 1):
            self.refine(together & -together)
        first = (addresses // np.uint64(self.grain)).astype(np.int64)
        return first[:, None] + np.arange(size // self.grain)

    # accesses

    def read(
        self, addresses: Array, size: int, threads: Array, align: int, ins: Instruction, atomic: bool = False
    ) -> tuple[Array, Array | None]:
        """Return the bytes [address, byte], and the reasons why they are undefined [address, byte] (None: defined)."""
        rows = self.port.read_bytes(addresses, size, align, threads)
        if not self.checks:
            return rows, None
        units = self.units(addresses, size)
        self.check_arrived(units, threads, ins)
        waves = threads // self.wave
        self.check_order(self.writer[units], units, waves, threads, ins, "reads", "wrote", atomic)
        if not atomic:
            self.readers[waves[:, None], units] = self.record(waves, ins)[:, None]
        missing = ~self.written[units]
        return rows, np.repeat(missing, self.grain, axis=1).astype(np.uint8) * np.uint8(
            UNWRITTEN
        ) if missing.any() else None

    def write(
        self, addresses: Array, rows: Array, threads: Array, align: int, ins: Instruction,
        undefined: Array | None = None, atomic: bool = False,
    ) -> None:  # fmt: skip
        """Write rows of bytes; `undefined` is [address, byte]."""
        size = rows.shape[1]
        if not self.checks:
            self.port.write_bytes(addresses, rows, align, threads)
            return
        self.port.check(addresses, size, align, threads)
        if undefined is not None:
            self.refine(element_width(size, align))
        units = self.units(addresses, size)
        self.check_arrived(units, threads, ins)
        waves = threads // self.wave
        before = self.writer[units]
        if (before != 0).any():
            there = self.port.read_bytes(addresses, size, align, threads)
            changed = (there != rows).reshape(*units.shape, -1).any(axis=2)
            self.check_order(np.where(changed, before, 0), units, waves, threads, ins, "writes", "wrote", atomic)
        for wave in np.flatnonzero(self.readers[:, units.reshape(-1)].any(axis=1)).tolist():
            self.check_order(self.readers[wave, units], units, waves, threads, ins, "writes", "read")
        self.port.write_bytes(addresses, rows, align, threads)
        lost = (self.port.read_bytes(addresses, size, align, threads) != rows).any(axis=1)
        if lost.any():
            at = int(lost.argmax())
            what = f"writes LDS address {int(addresses[at]):#x} together with another thread, and something else"
            self.report("race", what, ins, int(threads[at]))
        self.writer[units] = self.record(waves, ins)[:, None] | ATOMIC * atomic
        self.written[units] = True
        if undefined is not None:
            bad = (undefined != 0).reshape(*units.shape, -1).any(axis=2)
            self.written[units[bad]] = False

    def record(self, waves: Array, ins: Instruction) -> Array:
        ins_id = self.ids.get(ins)
        if ins_id is None:
            ins_id = self.ids[ins] = len(self.instructions)
            self.instructions.append(ins)
        return self.time[waves] << 32 | ins_id << 8 | waves + 1

    def check_arrived(self, units: Array, threads: Array, ins: Instruction) -> None:
        if self.arriving.any() and (early := self.arriving[units].any(axis=1)).any():
            at = int(early.argmax())
            what = f"uses LDS address {int(units[at, 0]) * self.grain:#x}, the target of a copy that was not waited for"
            self.report("used before its wait", what, ins, int(threads[at]))

    def check_order(
        self, records: Array, units: Array, waves: Array, threads: Array, ins: Instruction, verb: str, was: str,
        atomic: bool = False,
    ) -> None:  # fmt: skip
        """Report accesses that are not ordered after the recorded access of another wave to the same bytes."""
        others = (records & ATOMIC - 1) - 1
        suspects = (records != 0) & (others != waves[:, None])
        if atomic:
            suspects &= records & ATOMIC == 0
        if not suspects.any():
            return
        wrong = suspects & (self.over[np.maximum(others, 0), records >> 32] >= self.epoch[waves][:, None])
        if not wrong.any():
            return
        at, unit = (int(index) for index in np.unravel_index(int(wrong.argmax()), wrong.shape))
        record, other = int(records[at, unit]), int(others[at, unit])
        first = self.instructions[record >> 8 & 0xFFFFFF]
        where = f"LDS address {int(units[at, unit]) * self.grain:#x}"
        passed = int(self.over[other, record >> 32]) == NEVER and self.crossed(other, record >> 32)
        kind = "barrier without its wait" if passed else "race"
        why = "that wave passed a barrier since without waiting for it" if passed else "nothing orders the two"
        self.report(kind, f"{verb} {where}, which wave {other} {was}, and {why}", ins, int(threads[at]), first)

    def crossed(self, wave: int, time: int) -> bool:
        """Return True if a wave has passed a barrier after this time, without a wait: its ticks since then are
        barriers."""
        return bool(self.time[wave] > time)


BARRIERS = ("llvm.amdgcn.s.barrier", "llvm.amdgcn.s.barrier.wait")

DEEPEST_CALL = 32
STACK = 4096
Key = tuple[int, ...]


@dataclass(eq=False)
class Segment:
    """Instructions that control enters at the first and leaves at the last. `key` orders segments as in the text."""

    key: Key
    label: str
    instructions: list[Instruction]
    end: Instruction
    code: "Code"
    collective: bool
    ops: list[Op] | None = None


@dataclass(eq=False)
class Code:
    """A function laid out for one call site."""

    function: Function
    translator: Translator
    caller: Segment | None = None
    segments: list[Segment] = field(default_factory=list)
    at_label: dict[str, Segment] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[list[int], list[int]]] = field(default_factory=dict)
    callees: dict[Segment, "Code"] = field(default_factory=dict)


class Workgroup:
    """The translated code of one kernel for one workgroup size. `run` executes one workgroup; the translation is
    kept."""

    def __init__(
        self, module: Module, kernel: Function, memory: Memory, symbols: dict[str, int], sizes: tuple[int, int, int],
        wave: int, lds_bytes: int, arch: str, checks: bool,
    ) -> None:  # fmt: skip
        load_rules()
        self.module, self.memory, self.symbols, self.wave, self.arch = module, memory, symbols, wave, arch
        count = sizes[0] * sizes[1] * sizes[2]
        self.threads = (count + wave - 1) // wave * wave
        self.waves = self.threads // wave
        self.everyone = np.arange(self.threads)
        self.exists = self.everyone < count
        self.is_ragged = ~self.exists.reshape(-1, wave).all(axis=1)  # waves of which some lanes do not exist
        x, y = sizes[0], sizes[1]
        parts = (self.everyone % x, self.everyone // x % y, self.everyone // (x * y))
        self.items = [part.astype(np.uint32) for part in parts]
        self.arena = ArenaPort(memory)
        self.private = LocalPort("private", Bytes.zeros(STACK * self.threads), STACK)
        self.stack = 0
        self.lds = Lds(lds_bytes, self.waves, wave, self.report, checks)
        self.hidden, self.packet = 0, 0
        self.findings = Findings()
        self.max_instructions, self.executed = 0, 0
        self.counters: WaveCounters | None = None
        self.counts_accesses = False  # set by code that copies to LDS
        self.saturates = False
        self.index = (0, 0, 0)
        self.finished = ~self.exists
        self.apart: dict[str, bool] = {}  # functions that lanes may call on their own
        self.kernel = self.lay_out(kernel, (), None)

    # for rules

    def active(self, mask: Mask) -> Array:
        return self.exists if mask is True else mask

    def indices(self, mask: Mask) -> Array:
        """Return the indices of the active threads."""
        if mask is True:
            return self.everyone if self.exists.all() else np.flatnonzero(self.exists)
        return np.flatnonzero(mask)

    def mask_of(self, threads: Array) -> Array:
        found = np.zeros(self.threads, bool)
        found[threads] = True
        return found

    def stack_address(self, size: int, align: int) -> int:
        """Allocate a variable of each thread."""
        address = (self.stack + align - 1) // align * align
        self.stack = address + size
        if self.stack > self.private.size:
            self.private.grow(2 * self.stack, self.threads)
        return address

    def count_access(self, threads: Array) -> None:
        """Count an access of an instruction to global memory."""
        if self.counts_accesses:
            self.lds.issue(np.unique(threads // self.wave))

    def report(
        self, kind: str, what: str, ins: Instruction, thread: int, other: Instruction | None = None,
        address: int | None = None
    ) -> None:  # fmt: skip
        sites = tuple(Site.of(one) for one in (ins, other) if one is not None)
        subject = f"thread {self.item(thread)} of workgroup {self.index}"
        self.findings.add(Finding(kind, f"{subject}: {what}", sites, address, self.index))

    def item(self, thread: int) -> tuple[int, ...]:
        return tuple(int(axis[thread]) for axis in self.items)

    # laying out code

    def lay_out(self, function: Function, prefix: Key, caller: Segment | None) -> Code:
        code = Code(function, Translator(function, self), caller)
        for label, instructions in function.blocks.items():
            body: list[Instruction] = []
            for ins in instructions:
                if ins.opcode == "phi":
                    continue
                is_end = ins.opcode in ENDS or (ins.opcode == "call" and self.ends_segment(ins))
                if not is_end:
                    body.append(ins)
                    continue
                collective = self.brings_together(ins) or any(map(is_collective, body))
                segment = Segment((*prefix, len(code.segments)), label, body, ins, code, collective)
                code.segments.append(segment)
                code.at_label.setdefault(label, segment)
                body = []
        return code

    def ends_segment(self, ins: Instruction) -> bool:
        return ins.callee in BARRIERS or ins.callee in self.module.functions

    def brings_together(self, ins: Instruction) -> bool:
        """Return True if lanes must execute a call together: it is a barrier, or leads to a collective instruction."""
        if ins.opcode != "call":
            return False
        if ins.callee in self.apart:
            return not self.apart[ins.callee]
        if ins.callee not in self.module.functions:
            return ins.callee in BARRIERS or is_collective(ins)
        self.apart[ins.callee] = True  # ends the recursion of a function that calls itself
        blocks = self.module.functions[ins.callee].blocks.values()
        self.apart[ins.callee] = not any(self.brings_together(one) for block in blocks for one in block)
        return not self.apart[ins.callee]

    def operations(self, segment: Segment) -> list[Op]:
        if segment.ops is None:
            segment.ops = [segment.code.translator.translate(ins) for ins in segment.instructions]
        return segment.ops

    def codes(self, code: Code) -> list[Code]:
        return [code, *(inner for callee in code.callees.values() for inner in self.codes(callee))]

    # running

    def run(self, index: tuple[int, int, int], arguments: list[Any]) -> None:
        self.index, self.executed, self.saturates = index, 0, False
        self.lds.start()
        for code in self.codes(self.kernel):
            code.translator.clear()
        for (_, name), value in zip(self.kernel.function.params, arguments, strict=True):
            translator = self.kernel.translator
            translator.put(translator.name(name), value, True)
        self.finished = ~self.exists
        self.strands: dict[Segment, Array] = {self.kernel.segments[0]: self.exists.copy()}
        self.held: list[tuple[Segment, Array]] = []  # at barriers
        with np.errstate(all="ignore"):
            while self.strands or self.held:
                if not self.strands:
                    self.check_stuck()
                    return
                self.step()

    def pick(self) -> Segment:
        if len(self.strands) == 1:
            return next(iter(self.strands))
        order = sorted(self.strands, key=lambda segment: segment.key)
        return next((one for one in order if not one.collective or self.is_whole(self.strands[one])), order[0])

    def is_whole(self, mask: Array) -> bool:
        """Return True if the waves of these threads are complete, except for threads that have exited."""
        lanes = (mask | self.finished).reshape(-1, self.wave)
        return bool(lanes[mask.reshape(-1, self.wave).any(axis=1)].all())

    def step(self) -> None:
        segment = self.pick()
        mask = self.strands.pop(segment)
        whole: Mask = True if np.array_equal(mask, self.exists) else mask
        ins = segment.end
        try:
            ops = self.operations(segment)
            for at, op in enumerate(ops):
                ins = segment.instructions[at]
                op(whole)
            ins = segment.end
            if self.counters is not None:
                self.counters.executed([*segment.instructions, ins], mask)
            self.executed += len(ops) + 1
            if self.executed > self.max_instructions:
                raise EmulatorError(f"{self.max_instructions} instructions, and no end; is a loop endless?")
            self.leave(segment, mask, whole)
        except (EmulatorError, LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
            raise self.explained(error, ins) from error

    def explained(self, error: Exception, ins: Instruction) -> EmulatorError:
        """Return an error with the instruction and the thread."""
        if isinstance(error, Unsupported) or getattr(error, "located", False):
            return error  # type: ignore[return-value]
        if not isinstance(error, EmulatorError):
            return Unsupported(ins, f"{type(error).__name__}: {error}")
        thread = f", thread {self.item(error.thread)}" if isinstance(error, MemoryFault) else ""
        source = f"\n  at {ins.location}" if ins.locations else ""
        text = f"{error} (workgroup {self.index}{thread}){source}\n  LLVM line {ins.line}: {ins.text}"
        if isinstance(error, MemoryFault):
            self.report("bad access", error.what, ins, error.thread, address=error.address)
            return MemoryFault(text, error.thread, error.address)
        return located_error(Trapped if isinstance(error, Trapped) else EmulatorError, text)

    # leaving a segment

    def go(self, segment: Segment, mask: Array) -> None:
        here = self.strands.get(segment)
        self.strands[segment] = mask if here is None else here | mask

    def follow(self, segment: Segment, label: str, mask: Array, whole: Mask) -> None:
        """Continue threads at another block of the function; its phis get their values."""
        code, t = segment.code, segment.code.translator
        edge = code.edges.get((segment.label, label))
        if edge is None:
            edge = code.edges[(segment.label, label)] = self.edge(code, segment.label, label)
        values = [t.slots[slot] for slot in edge[1]]
        for slot, value in zip(edge[0], values, strict=True):
            t.put(slot, value, whole)
        self.go(code.at_label[label], mask)

    def edge(self, code: Code, start: str, label: str) -> tuple[list[int], list[int]]:
        """Return (slots of the phis of a block, slots of their values on the edge from `start`)."""
        phis = [ins for ins in code.function.blocks[label] if ins.opcode == "phi"]
        where = [ins.extra["labels"].index(start) for ins in phis]
        t = code.translator
        return [t.output(ins) for ins in phis], [t.slot(ins.operands[at]) for ins, at in zip(phis, where, strict=True)]

    def leave(self, segment: Segment, mask: Array, whole: Mask) -> None:
        ENDS.get(segment.end.opcode, Workgroup.leave_call)(self, segment, mask, whole)

    def leave_branch(self, segment: Segment, mask: Array, whole: Mask) -> None:
        end, t = segment.end, segment.code.translator
        labels = end.extra["labels"]
        if not end.operands:
            self.follow(segment, labels[0], mask, whole)
            return
        value = t.slots[t.slot(end.operands[0])]
        t.require(value, whole, end, "a branch")
        if len(value[0]) == 1:
            self.follow(segment, labels[0 if value[0][0] else 1], mask, whole)
            return
        for label, side in zip(labels, (mask & value[0], mask & ~value[0]), strict=True):
            if side.any():
                self.follow(segment, label, side, whole if whole is True and np.array_equal(side, mask) else side)

    def leave_switch(self, segment: Segment, mask: Array, whole: Mask) -> None:
        end, t = segment.end, segment.code.translator
        value = t.slots[t.slot(end.operands[0])]
        t.require(value, whole, end, "a branch")
        rest = mask
        for typed, label in zip(end.operands[1:], end.extra["labels"][1:], strict=True):
            side = rest & (value[0] == t.slots[t.slot(typed)][0])
            if side.any():
                self.follow(segment, label, side, side)
                rest = rest & ~side
        if rest.any():
            self.follow(segment, end.extra["labels"][0], rest, rest)

    def leave_return(self, segment: Segment, mask: Array, whole: Mask) -> None:
        caller = segment.code.caller
        if caller is None:
            self.finished = self.finished | mask
            self.release()
            return
        if segment.end.operands and caller.end.result is not None:
            t = segment.code.translator
            value = t.slots[t.slot(segment.end.operands[0])]
            caller.code.translator.put(caller.code.translator.output(caller.end), value, whole)
        self.go(self.after(caller), mask)

    def leave_unreachable(self, segment: Segment, mask: Array, whole: Mask) -> None:
        raise Trapped("a thread is where none can be")

    def after(self, segment: Segment) -> Segment:
        return segment.code.segments[segment.key[-1] + 1]

    def leave_call(self, segment: Segment, mask: Array, whole: Mask) -> None:
        if segment.end.callee in BARRIERS:
            self.arrive(segment, mask)
            return
        code = segment.code.callees.get(segment)
        if code is None:
            if len(segment.key) > DEEPEST_CALL:
                raise EmulatorError(f"{segment.end.callee} calls itself, or calls are more than {DEEPEST_CALL} deep")
            function = self.module.functions[segment.end.callee]
            code = segment.code.callees[segment] = self.lay_out(function, (*segment.key, 0), segment)
        t = segment.code.translator
        for (_, name), typed in zip(code.function.params, segment.end.operands, strict=True):
            code.translator.put(code.translator.name(name), t.slots[t.slot(typed)], whole)
        self.go(code.segments[0], mask)

    # barriers

    def arrive(self, segment: Segment, mask: Array) -> None:
        lanes = (mask | ~self.exists).reshape(-1, self.wave)
        partial = mask.reshape(-1, self.wave).any(axis=1) & ~lanes.all(axis=1)
        if partial.any():
            wave = int(partial.argmax())
            lane = int(np.flatnonzero(~lanes[wave])[0])
            what = f"lane {lane} of wave {wave} is elsewhere while others of it are at a barrier"
            self.report("barrier in divergent code", what, segment.end, int(np.flatnonzero(mask)[0]))
        self.held.append((segment, mask))
        self.release()

    def release(self) -> None:
        """Release threads if all that have not exited are at barriers."""
        if not self.held:
            return
        here = np.logical_or.reduce([mask for _, mask in self.held])
        if not (here | self.finished).all():
            return
        ended = self.finished.reshape(-1, self.wave).all(axis=1)
        if ended.any():
            what = f"wave {int(ended.argmax())} has ended and will never come to this barrier"
            self.report("barrier that not all reach", what, self.held[0][0].end, int(here.argmax()))
        self.lds.barrier(np.flatnonzero(here.reshape(-1, self.wave).any(axis=1)))
        held, self.held = self.held, []
        for segment, mask in held:
            self.go(self.after(segment), mask)

    def check_stuck(self) -> None:
        segment, mask = self.held[0]
        self.report("barrier that not all reach", "the others never come", segment.end, int(mask.argmax()))


def is_collective(ins: Instruction) -> bool:
    return ins.opcode == "call" and known_name(ins.callee) in COLLECTIVE


ENDS: dict[str, Callable[[Workgroup, Segment, Array, Mask], None]] = {
    "br": Workgroup.leave_branch,
    "switch": Workgroup.leave_switch,
    "ret": Workgroup.leave_return,
    "unreachable": Workgroup.leave_unreachable,
}
