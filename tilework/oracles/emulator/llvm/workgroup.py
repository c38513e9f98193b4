"""Executes a workgroup: all its threads at once, apart where they take different branches, together again where they meet.

Blocks are cut at barriers and at calls of functions into *segments*. Threads at the same segment form a strand; the one that is furthest
behind in the text goes first, so that the others wait for it where the paths join. A phi takes its value on the way from one block
to the next. A barrier holds whole waves back until all waves have come to one, be it the same or another, as the hardware does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array, Bytes, Memory, MemoryFault
from tilework.oracles.emulator.findings import Finding, Findings, Site
from tilework.oracles.emulator.llvm.ir_text import Function, Instruction, Module
from tilework.oracles.emulator.llvm.lds import Lds
from tilework.oracles.emulator.llvm.translate_ir import (
    COLLECTIVE,
    Mask,
    Op,
    Translator,
    known_name,
    load_rules,
)
from tilework.oracles.emulator.ports import ArenaPort, LocalPort
from tilework.oracles.emulator.syntax import EmulatorError, Trapped, Unsupported, placed

BARRIERS = ("llvm.amdgcn.s.barrier", "llvm.amdgcn.s.barrier.wait")

DEEPEST_CALL = 32
STACK = 4096
Key = tuple[int, ...]


@dataclass(eq=False)
class Segment:
    """Instructions without a way in or out but at the ends. `key` orders segments as the text does."""

    key: Key
    label: str
    instructions: list[Instruction]
    end: Instruction
    code: "Code"
    collective: bool
    ops: list[Op] | None = None


@dataclass(eq=False)
class Code:
    """A function laid out for one place that it is called from."""

    function: Function
    translator: Translator
    caller: Segment | None = None
    segments: list[Segment] = field(default_factory=list)
    at_label: dict[str, Segment] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[list[int], list[int]]] = field(default_factory=dict)
    callees: dict[Segment, "Code"] = field(default_factory=dict)


class Workgroup:
    """The code of one kernel for one size of workgroup. `run` executes one of them; what is translated stays for the next."""

    def __init__(
        self, module: Module, kernel: Function, memory: Memory, symbols: dict[str, int], sizes: tuple[int, int, int], wave: int,
        lds_bytes: int, arch: str, checks: bool,
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
        self.counts_accesses = False  # set by code that copies to LDS
        self.saturates = False
        self.place = (0, 0, 0)
        self.finished = ~self.exists
        self.apart: dict[str, bool] = {}  # functions that lanes may call on their own
        self.kernel = self.lay_out(kernel, (), None)

    # for rules

    def active(self, mask: Mask) -> Array:
        return self.exists if mask is True else mask

    def numbers(self, mask: Mask) -> Array:
        """The threads that take part."""
        if mask is True:
            return self.everyone if self.exists.all() else np.flatnonzero(self.exists)
        return np.flatnonzero(mask)

    def mask_of(self, threads: Array) -> Array:
        found = np.zeros(self.threads, bool)
        found[threads] = True
        return found

    def stack_place(self, size: int, align: int) -> int:
        """Room for a variable of each thread."""
        place = (self.stack + align - 1) // align * align
        self.stack = place + size
        if self.stack > self.private.size:
            self.private.grow(2 * self.stack, self.threads)
        return place

    def count_access(self, threads: Array) -> None:
        """An instruction has accessed global memory."""
        if self.counts_accesses:
            self.lds.issue(np.unique(threads // self.wave))

    def report(
        self, kind: str, what: str, ins: Instruction, thread: int, other: Instruction | None = None, address: int | None = None
    ) -> None:  # fmt: skip
        sites = tuple(Site.of(one) for one in (ins, other) if one is not None)
        who = f"thread {self.item(thread)} of workgroup {self.place}"
        self.findings.add(Finding(kind, f"{who}: {what}", sites, address, self.place))

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
        """Whether lanes must be together for a call: it is a barrier, or leads to something that needs them all."""
        if ins.opcode != "call":
            return False
        if ins.callee in self.apart:
            return not self.apart[ins.callee]
        if ins.callee not in self.module.functions:
            return ins.callee in BARRIERS or is_collective(ins)
        self.apart[ins.callee] = True  # by itself, should it call itself
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

    def run(self, place: tuple[int, int, int], arguments: list[Any]) -> None:
        self.place, self.executed, self.saturates = place, 0, False
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
        """Whether the waves of these threads are complete, but for threads that have ended."""
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
            self.executed += len(ops) + 1
            if self.executed > self.max_instructions:
                raise EmulatorError(f"{self.max_instructions} instructions, and no end; is a loop endless?")
            self.leave(segment, mask, whole)
        except (EmulatorError, LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
            raise self.explained(error, ins) from error

    def explained(self, error: Exception, ins: Instruction) -> EmulatorError:
        """An error with the instruction and the thread."""
        if isinstance(error, Unsupported) or getattr(error, "located", False):
            return error  # type: ignore[return-value]
        if not isinstance(error, EmulatorError):
            return Unsupported(ins, f"{type(error).__name__}: {error}")
        thread = f", thread {self.item(error.thread)}" if isinstance(error, MemoryFault) else ""
        source = f"\n  at {ins.place}" if ins.places else ""
        text = f"{error} (workgroup {self.place}{thread}){source}\n  LLVM line {ins.line}: {ins.text}"
        if isinstance(error, MemoryFault):
            self.report("bad access", error.what, ins, error.thread, address=error.address)
            return MemoryFault(text, error.thread, error.address)
        return placed(Trapped if isinstance(error, Trapped) else EmulatorError, text)

    # leaving a segment

    def go(self, segment: Segment, mask: Array) -> None:
        here = self.strands.get(segment)
        self.strands[segment] = mask if here is None else here | mask

    def follow(self, segment: Segment, label: str, mask: Array, whole: Mask) -> None:
        """Threads go on to another block of the function; its phis get their values."""
        code, t = segment.code, segment.code.translator
        edge = code.edges.get((segment.label, label))
        if edge is None:
            edge = code.edges[(segment.label, label)] = self.edge(code, segment.label, label)
        values = [t.slots[slot] for slot in edge[1]]
        for slot, value in zip(edge[0], values, strict=True):
            t.put(slot, value, whole)
        self.go(code.at_label[label], mask)

    def edge(self, code: Code, start: str, label: str) -> tuple[list[int], list[int]]:
        """(slots of the phis of a block, slots of what they are for who comes from `start`)."""
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
        """Let threads go on if all that have not ended are at barriers."""
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
