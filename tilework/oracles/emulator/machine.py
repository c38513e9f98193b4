"""Executes a block: all its threads at once, apart where they take different branches, together again where they meet.

The instructions of a function are cut into runs that end where control may go elsewhere. Threads that are at the same run form a
strand; the strand that is furthest behind in the text goes first, so that the others wait for it where the paths join:

    entry ── @%p bra ──▶ left          strands {left: 1100, right: 0011}, left runs first, then right, and both meet at join
                └──────▶ right ──▶ join

A called function is laid out anew for each place it is called from, when that place is first reached; its runs lie between the
call and what follows it. Barriers hold strands back; when all threads are held, the block cannot go on and that is an error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from tilework.oracles.emulator.arenas import Array, MemoryFault
from tilework.oracles.emulator.calls import BUILT_IN
from tilework.oracles.emulator.layout import frame_layout, local_variables, names_in
from tilework.oracles.emulator.syntax import (
    EmulatorError,
    Function,
    Instruction,
    PtxModule,
    Reg,
    Symbol,
    Trapped,
    Vector,
    placed,
)
from tilework.oracles.emulator.translate import (
    COLLECTIVE,
    MISTAKES,
    WARP,
    Block,
    Mask,
    Op,
    Translator,
    Unsupported,
    load_rules,
)
from tilework.oracles.emulator.waiting import CLUSTER, Barrier, Stuck, Waiting, spans

DEEPEST_CALL = 64
WARP_GROUP = 4 * WARP
PATIENCE = 1000  # runs of one strand after which another one gets a turn
RETRIES = 32  # of every strand, where all of them have asked in vain
ENDS = {"bra", "brx", "ret", "exit", "trap", "call", "bar", "barrier", "brkpt", "setmaxnreg"}
ENOUGH = 256  # registers of each thread
MAX_INSTRUCTIONS = 100_000_000

Key = tuple[int, ...]


def is_aligned_barrier(end: Instruction) -> bool:
    """Whether all lanes of a warp have to be at this instruction together."""
    return (
        end.opcode in ("bar", "barrier", "setmaxnreg")
        and "warp" not in end.modifiers
        and (end.opcode == "bar" or "aligned" in end.modifiers)
    )


def threads_together(first: Instruction | None, end: Instruction | None) -> int:
    """How many threads have to be at a run together, which starts with `first`; see `Run`."""
    if first is not None and first.opcode == "wgmma" and "mma_async" in first.modifiers:
        return WARP_GROUP
    return (
        WARP
        if (first is not None and first.opcode in COLLECTIVE) or (end is not None and is_aligned_barrier(end))
        else 0
    )


@dataclass(eq=False)
class Run:
    """Instructions without a way in or out but at the ends. `key` orders runs as the text does."""

    key: Key
    instructions: list[Instruction]
    code: "Code"
    end: Instruction | None = None  # what decides where to go; None: on to the next run
    together: int = 0  # threads that have to be here at the same time: those of a warp, or of a warp group
    ops: list[Op] | None = None  # made when the run is first reached

    def next(self) -> "Run | None":
        at = self.key[-1] + 1
        return self.code.runs[at] if at < len(self.code.runs) else None


@dataclass(eq=False)
class Code:
    """A function laid out for one place it is called from (`caller` is the run that calls it; None for the kernel)."""

    function: Function
    translator: Translator
    prefix: Key
    caller: Run | None
    runs: list[Run] = field(default_factory=list)
    at_label: dict[str, Run] = field(default_factory=dict)
    callees: dict[tuple[Key, str], "Code"] = field(default_factory=dict)
    frame_end: int = 0  # in the local window
    copies: list[tuple[Array, int]] = field(default_factory=list)  # arguments that go to the frame, and their offsets


class Observer(Protocol):
    """Sees instructions: `wrap` gives the operation to run instead, `ending` is told of branches, calls and barriers."""

    def wrap(self, ins: Instruction, t: Translator, op: Op) -> Op: ...
    def ending(self, end: Instruction, t: Translator, mask: Array) -> None: ...


class Machine(Waiting):
    """The code of one kernel for one block shape. `run_block` executes one block; the translation is kept for the next."""

    def __init__(
        self, module: PtxModule, kernel: Function, block: Block, symbols: dict[str, int], functions: dict[int, str],
        max_instructions: int = MAX_INSTRUCTIONS, output: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        load_rules()
        self.module, self.block, self.symbols, self.functions = module, block, symbols, functions
        self.max_instructions, self.output = max_instructions, output or (lambda text: print(text, end=""))
        self.kernel = self.lay_out(kernel, (), None, {})
        (self.limit,) = kernel.limits.get("maxnreg", (ENOUGH,))
        self.executed = 0  # instructions, each counted once for all its threads
        self.thread_instructions = 0
        self.stalled = False  # set by an instruction that waits in vain, as a failed try_wait does
        self.progress = 0  # counted up by whatever may end such a wait
        self.strands: dict[tuple[int, Run], Array] = {}
        self.barriers: dict[int, Barrier] = {}
        self.finished = np.zeros(block.threads, bool)
        self.last_run = np.zeros(block.threads, np.int64)  # when threads had a turn
        self.in_vain = np.zeros(block.threads, bool)  # threads whose last question of that kind was answered no
        self.observers: list[Observer] = []
        self.meetings: dict[tuple[int, int], Barrier] = {}  # lanes at bar.warp.sync, by warp and member mask
        self.parameters = 0  # where the arguments of a launch are written

    def begin_launch(self, grid: tuple[int, int, int]) -> None:
        """Before the first block; for those who watch."""

    def end_launch(self) -> None:
        """After the last block; for those who watch."""

    # laying out code

    def lay_out(self, function: Function, prefix: Key, caller: Run | None, params: dict[str, Array]) -> Code:
        frame, end = frame_layout(function, caller.code.frame_end if caller is not None else self.block.local.size)
        self.block.local.grow(end, self.block.threads)
        sizes = {variable.name: variable.size for variable in function.params}
        copies = [(params[name][:, : sizes[name]], offset) for name, offset in frame.items() if name in params]
        params = {name: data for name, data in params.items() if name not in frame} | local_variables(
            function, self.block.threads
        )
        translator = Translator(function, self.block, names_in(function, self.symbols) | frame, params, self)
        code = Code(function, translator, prefix, caller, frame_end=end, copies=copies)
        starts = {0, *function.labels.values()}
        for index, ins in enumerate(function.instructions):
            if ins.opcode in ENDS:
                starts.add(index + 1)
            elif ins.opcode in COLLECTIVE:
                starts.add(index)
        edges = sorted(start for start in starts if start < len(function.instructions))
        for number, (start, stop) in enumerate(pairwise([*edges, len(function.instructions)])):
            body = function.instructions[start:stop]
            end = body.pop() if body[-1].opcode in ENDS else None
            together = threads_together(body[0] if body else None, end)
            code.runs.append(Run((*prefix, number), body, code, end, together))
        by_start = dict(zip(edges, code.runs, strict=True))
        code.runs.append(
            Run((*prefix, len(code.runs)), [], code, Instruction("ret", (), (), line=function.line, text="}"))
        )
        code.at_label = {label: by_start.get(at, code.runs[-1]) for label, at in function.labels.items()}
        return code

    def operations(self, run: Run) -> list[Op]:
        if run.ops is None:
            run.ops = [self.watched(ins, run.code.translator) for ins in run.instructions]
        return run.ops

    def watched(self, ins: Instruction, translator: Translator) -> Op:
        """The operation of an instruction, inside of what its observers do."""
        op = translator.translate(ins)
        for observer in self.observers:
            op = observer.wrap(ins, translator, op)
        return op

    # running

    def run_block(self, ctaid: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        self.block.start(ctaid, grid)
        self.executed, self.stalled, self.progress, self.idle = 0, False, 0, 0
        self.in_vain = np.zeros(self.block.threads, bool)
        self.barriers, self.strands, self.meetings, self.wanting = {}, {}, {}, []
        self.registers = np.full(self.block.threads // WARP, self.limit)
        self.finished = ~self.block.exists
        for translator in self.translators(self.kernel):
            for pool in translator.pools:
                pool.fill(0)
        self.begin()
        with np.errstate(all="ignore"):
            while self.strands:
                self.step()
        for finish in self.block.state.get("at the end", ()):
            finish()
        if self.barriers or self.meetings or self.wanting:
            self.check_stuck()

    def translators(self, code: Code) -> list[Translator]:
        found = [code.translator]
        for callee in code.callees.values():
            found += self.translators(callee)
        return found

    def begin(self) -> None:
        """All threads start together."""
        self.strands[(0, self.kernel.runs[0])] = self.block.exists.copy()

    patience = 0
    last: Any = None

    def pick(self) -> tuple[int, Run]:
        """The strand to run next: the one furthest behind, unless it has to wait for the rest of its warps or has run for long."""
        if len(self.strands) == 1:
            return next(iter(self.strands))
        order = sorted(self.strands, key=lambda at: (at[1].key, at[0]))
        self.patience += 1
        ready = list(filter(self.is_complete, order)) or order
        if np.count_nonzero(self.in_vain):
            awake = [at for at in ready if np.count_nonzero(self.strands[at] & ~self.in_vain)]
            if not awake:
                return min(ready, key=lambda at: int(self.last_run[self.strands[at]].min()))
            ready = awake
        if self.patience % PATIENCE == 0:
            behind = [at for at in ready if at != self.last]
            return behind[self.patience // PATIENCE % len(behind)] if behind else ready[0]
        return ready[0]

    def is_whole(self, mask: Array, together: int = WARP) -> bool:
        """Whether the warps, or the groups of warps, of these threads are complete, but for threads that have ended."""
        together = together if len(mask) % together == 0 else WARP
        lanes = (mask | self.finished).reshape(-1, together)
        some = mask.reshape(-1, together).any(axis=1)
        return bool(lanes[some].all())

    def is_complete(self, at: tuple[int, Run]) -> bool:
        """Whether a strand need not wait for threads that have to be there, too."""
        return not at[1].together or self.is_whole(self.strands[at], at[1].together)

    def step(self) -> None:
        at = self.pick()
        group, run = self.last = at
        mask = self.strands.pop(at)
        count = np.count_nonzero(mask)
        before = self.progress
        self.stalled = False
        if self.strands:
            self.last_run[mask] = self.patience
        self.execute(run, True if count == len(mask) else mask)
        self.executed += len(run.instructions) + 1
        self.thread_instructions += (len(run.instructions) + 1) * count
        if self.executed > self.max_instructions:
            what = f"the block executed {self.max_instructions} instructions and has not ended; is a loop endless?"
            raise self.failure(what, run.end or run.instructions[-1], mask)
        try:
            self.leave(group, run, mask)
        except (EmulatorError, *MISTAKES) as error:
            raise self.explained(error, run.end or run.instructions[-1]) from error
        if self.progress != before:
            self.idle, self.stalled = 0, False
            self.in_vain[:] = False
        elif self.stalled:
            self.idle += 1
            tries = RETRIES if all(self.in_vain[mask].all() for mask in self.strands.values()) else PATIENCE
            if self.idle > tries * max(1, len(self.strands)):
                last = run.instructions[-1] if run.instructions else run.end
                what = f"all threads wait for something that does not happen{self.elsewhere(run)}"
                raise self.failure(what, last, mask, Stuck)
        elif self.idle and np.count_nonzero(mask & ~self.in_vain):
            self.idle = 0

    def elsewhere(self, here: Run) -> str:
        """Where the threads are that are not `here`, in brackets."""
        at: dict[int, Array] = {}
        for (_, run), mask in self.strands.items():
            if run is not here and (last := run.instructions[-1] if run.instructions else run.end) is not None:
                at[last.line] = at.get(last.line, False) | mask
        for barrier in (*self.barriers.values(), *self.meetings.values()):
            for (_, _, end), mask in barrier.waiting:
                at[end.line] = at.get(end.line, False) | mask
        told = [f"threads {spans(np.flatnonzero(mask))} at PTX line {line}" for line, mask in sorted(at.items())]
        return f" (also {'; '.join(told)})" if told else ""

    idle = 0  # waits in vain since something happened

    def waited(self, threads: Array, over: Array) -> None:
        """Threads asked for something; those that are not `over` will ask again."""
        self.in_vain[threads] = ~over
        self.stalled = self.stalled or not bool(over.all())

    def execute(self, run: Run, mask: Mask) -> None:
        ops = run.ops if run.ops is not None else self.operations(run)
        at = 0
        try:
            for at, op in enumerate(ops):  # noqa: B007  (the number says which one failed)
                op(mask)
        except (EmulatorError, *MISTAKES) as error:
            raise self.explained(error, run.instructions[at]) from error

    def explained(self, error: Exception, ins: Instruction) -> EmulatorError:
        """An error with the instruction, the block and the thread, unless it names them already."""
        if isinstance(error, MemoryFault):
            return MemoryFault(self.located(error.what, ins, error.thread), error.thread, error.address, ins)
        if not isinstance(error, EmulatorError):
            return Unsupported(ins, f"{type(error).__name__}: {error}")
        if getattr(error, "located", False) or isinstance(error, Unsupported) or "PTX line" in str(error):
            return error
        return placed(type(error), self.located(str(error), ins))

    def failure(
        self, what: str, ins: Instruction | None, mask: Array, kind: type[EmulatorError] = EmulatorError
    ) -> EmulatorError:
        """An error about the first of some threads."""
        return kind(self.located(what, ins, int(np.flatnonzero(mask)[0])))

    def located(self, what: str, ins: Instruction | None, thread: int | None = None) -> str:
        """A message with the instruction, its source line, the block and the thread."""
        if ins is None:
            return what
        ctaid = self.block_of(thread or 0)
        who = f"block {ctaid}" + (f", thread {self.thread_id(thread)}" if thread is not None else "")
        source = f"\n  at {ins.place}" if ins.source else ""
        return f"{what} ({who}){source}\n  PTX line {ins.line}: {ins.text}"

    def block_of(self, thread: int) -> tuple[int, int, int]:
        """The place in the grid of a thread's block."""
        specials, threads = self.block.specials, self.block.threads
        return tuple(int(np.broadcast_to(specials[f"%ctaid.{axis}"], threads)[thread]) for axis in "xyz")  # type: ignore[return-value]

    def thread_id(self, thread: int) -> tuple[int, int, int]:
        return tuple(int(self.block.specials[f"%tid.{axis}"][thread]) for axis in "xyz")  # type: ignore[return-value]

    # leaving a run

    def go(self, group: int, run: Run | None, mask: Array) -> None:
        """Threads go on at a run, joining those that are there; None is the end of the function."""
        assert run is not None  # the last run of a function is a return
        at = (group, run)
        here = self.strands.get(at)
        self.strands[at] = mask if here is None else here | mask

    def leave(self, group: int, run: Run, mask: Array) -> None:
        end = run.end
        if end is None:
            return self.go(group, run.next(), mask)
        for observer in self.observers:
            observer.ending(end, run.code.translator, mask)
        taken = mask
        if end.predicate is not None:
            register = run.code.translator.registers[end.predicate.name]
            taken = mask & (~register if end.negated else register)
            rest = mask ^ taken
            if np.count_nonzero(rest):
                self.go(group, run.next(), rest)
                if not np.count_nonzero(taken):
                    return None
        getattr(self, self.ENDINGS[end.opcode])(group, run, end, taken)
        return None

    def branch(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        label = end.operands[0]
        if not isinstance(label, Symbol) or label.name not in run.code.at_label:
            raise Unsupported(end, "its target is not a label of the function")
        self.go(group, run.code.at_label[label.name], mask)

    def branch_indexed(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        index, table = end.operands
        targets = run.code.function.targets.get(table.name) if isinstance(table, Symbol) else None
        if targets is None:
            raise Unsupported(end, "its table of targets is not declared")
        values = np.broadcast_to(run.code.translator.read(index, np.uint32), mask.shape)
        for value in np.unique(values[mask]):
            if value >= len(targets):
                raise EmulatorError(f"brx.idx to target {value} of {len(targets)}")
            self.go(group, run.code.at_label[targets[value]], mask & (values == value))

    def back(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        caller = run.code.caller
        if caller is None:
            return self.stop(group, run, end, mask)
        return self.go(group, caller.next(), mask)

    def stop(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        self.finished |= mask
        for number in list(self.barriers):
            self.release(group, number)
        for warp, members in list(self.meetings):
            self.part(warp, members)

    def trap(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        raise self.failure("trap", end, mask, Trapped)

    def call(self, group: int, run: Run, end: Instruction, mask: Array) -> None:
        results, callee, arguments = end.operands[:3]
        assert isinstance(results, Vector) and isinstance(arguments, Vector)
        translator = run.code.translator
        if isinstance(callee, Reg):
            values = translator.registers[callee.name]
            for value in np.unique(values[mask]):
                if int(value) not in self.functions:
                    raise EmulatorError(f"call of {int(value):#x}, which is no function")
                self.enter(group, run, end, self.functions[int(value)], mask & (values == value))
            return
        if not isinstance(callee, Symbol):
            raise Unsupported(end, "what it calls is not a function")
        if callee.name in BUILT_IN:
            names = [item.name for item in arguments.items if isinstance(item, Symbol | Reg)]
            outs = [item.name for item in results.items if isinstance(item, Symbol | Reg)]
            BUILT_IN[callee.name](self, translator, end, names, outs, mask)
            self.go(group, run.next(), mask)
            return
        self.enter(group, run, end, callee.name, mask)

    def enter(self, group: int, run: Run, end: Instruction, name: str, mask: Array) -> None:
        function = self.module.functions.get(name)
        if function is None or not function.has_body:
            raise Unsupported(end, f"the function {name} has no body")
        code = run.code.callees.get((run.key, name))
        if code is None:
            if len(run.key) > DEEPEST_CALL:
                raise Unsupported(end, f"calls are nested more than {DEEPEST_CALL} deep")
            results, _, arguments = end.operands[:3]
            assert isinstance(results, Vector) and isinstance(arguments, Vector)
            params = {}
            for declared, given in ((function.params, arguments.items), (function.returns, results.items)):
                if len(declared) != len(given):
                    raise EmulatorError(f"{name} takes {len(declared)} values and is given {len(given)}")
                for variable, item in zip(declared, given, strict=True):
                    if not isinstance(item, Symbol) or item.name not in run.code.translator.params:
                        raise Unsupported(end, "an argument is not a .param variable")
                    params[variable.name] = run.code.translator.params[item.name]
            code = run.code.callees[(run.key, name)] = self.lay_out(function, run.key, run, params)
        for data, offset in code.copies:
            self.block.local.rows(self.block.threads)[mask, offset : offset + data.shape[1]] = data[mask]
        self.go(group, code.runs[0], mask)

    ENDINGS = {
        "bra": "branch", "brx": "branch_indexed", "ret": "back", "exit": "stop", "trap": "trap", "brkpt": "trap", "call": "call",
        "bar": "arrive", "barrier": "arrive", "setmaxnreg": "change_registers",
    }  # fmt: skip


__all__ = ["CLUSTER", "MAX_INSTRUCTIONS", "PATIENCE", "Machine", "Observer", "Run", "Stuck", "Trapped", "placed"]
