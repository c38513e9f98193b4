"""Executes a block: all its threads at once, which diverge at branches and reconverge where the paths join.

The instructions of a function are split into runs that end where control flow may change. Threads at the same run form
a strand; the strand that is furthest behind in the text runs first, so that the others wait for it where the paths
join:

    entry ── @%p bra ──▶ left          strands {left: 1100, right: 0011}: left runs first, then right; both join
                └──────▶ right ──▶ join

A called function is laid out anew for each call site, when the call is first reached; its runs come between the call
and the instruction after it. Barriers block strands; if all threads are blocked, the block is deadlocked, which is an
error.

`BUILT_IN` has the functions that the CUDA runtime provides: vprintf, __assertfail, malloc and free. Their arguments are
parameter variables of the caller, each an array (threads, bytes).

"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from tilework.oracles.emulator.barriers import CLUSTER, Barrier, BarrierWaits, Stuck, spans
from tilework.oracles.emulator.memory import (
    LOCAL_BASE,
    WINDOW,
    Array,
    MemoryFault,
    frame_layout,
    local_variables,
    names_in,
)
from tilework.oracles.emulator.printf import printf_text
from tilework.oracles.emulator.syntax import (
    EmulatorError,
    Function,
    Instruction,
    PtxModule,
    Reg,
    Symbol,
    Trapped,
    Vector,
    located_error,
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

LONGEST = 4096  # bytes of a string


def argument(t: Translator, name: str, dtype: Any) -> Array:
    """Return a parameter variable as one value per thread."""
    return t.params[name][:, : np.dtype(dtype).itemsize].view(dtype)[:, 0]


def string_at(t: Translator, address: int, thread: int) -> str:
    """Return the zero-terminated string at a generic address."""
    found = bytearray()
    port, active = t.port("generic"), np.array([thread])
    while len(found) < LONGEST:
        byte = int(port.read(np.array([address + len(found)], np.uint64), np.uint8, 1, active)[0, 0])
        if byte == 0:
            break
        found.append(byte)
    return found.decode(errors="replace")


def vprintf(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    formats, buffers = argument(t, names[0], np.uint64), argument(t, names[1], np.uint64)
    texts: dict[int, str] = {}  # by address, for memory that all threads share
    for thread in np.flatnonzero(mask).tolist():
        at = int(formats[thread])
        if at not in texts or LOCAL_BASE <= at < LOCAL_BASE + WINDOW:
            texts[at] = string_at(t, at, thread)
        text, count = formatted(t, texts[at], int(buffers[thread]), thread)
        machine.output(text)
        if outs:
            argument(t, outs[0], np.int32)[thread] = count


def formatted(t: Translator, format: str, buffer: int, thread: int) -> tuple[str, int]:
    """Return the formatted text and the number of values. The values are consecutive in `buffer`, aligned to their
    size."""
    port, active = t.port("generic"), np.array([thread])
    at, count = buffer, 0

    def value(dtype: Any) -> Any:
        nonlocal at, count
        size = np.dtype(dtype).itemsize
        at = (at + size - 1) // size * size
        found = port.read(np.array([at], np.uint64), dtype, 1, active)[0, 0]
        at, count = at + size, count + 1
        return found

    return printf_text(format, value, lambda: string_at(t, int(value(np.uint64)), thread)), count


def assertfail(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    thread = int(np.flatnonzero(mask)[0])
    message, file = (string_at(t, int(argument(t, name, np.uint64)[thread]), thread) for name in names[:2])
    line = int(argument(t, names[2], np.uint32)[thread])
    function = string_at(t, int(argument(t, names[3], np.uint64)[thread]), thread)
    raise located_error(
        Trapped, machine.located(f"{file}:{line}: {function}: assertion `{message}` failed", ins, thread)
    )


def allocate(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    sizes, results = argument(t, names[0], np.uint64), argument(t, outs[0], np.uint64)
    for thread in np.flatnonzero(mask).tolist():
        try:
            results[thread] = t.block.arena.memory.allocate(int(sizes[thread]))
        except EmulatorError:
            results[thread] = 0  # as malloc does


def free(machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array) -> None:
    for address in argument(t, names[0], np.uint64)[mask].tolist():
        if address:
            t.block.arena.memory.free(address)


BUILT_IN = {"vprintf": vprintf, "__assertfail": assertfail, "malloc": allocate, "free": free}


DEEPEST_CALL = 64
WARP_GROUP = 4 * WARP
PATIENCE = 1000  # runs of one strand after which another one is scheduled
RETRIES = 32  # of every strand, if all of them poll unsuccessfully
ENDS = {"bra", "brx", "ret", "exit", "trap", "call", "bar", "barrier", "brkpt", "setmaxnreg"}
ENOUGH = 256  # registers per thread
MAX_INSTRUCTIONS = 100_000_000

Key = tuple[int, ...]


def is_aligned_barrier(end: Instruction) -> bool:
    """Return True if all lanes of a warp have to execute this instruction together."""
    return (
        end.opcode in ("bar", "barrier", "setmaxnreg")
        and "warp" not in end.modifiers
        and (end.opcode == "bar" or "aligned" in end.modifiers)
    )


def threads_together(first: Instruction | None, end: Instruction | None) -> int:
    """Return the number of threads that have to execute a run together, which starts with `first`; see `Run`."""
    if first is not None and first.opcode == "wgmma" and "mma_async" in first.modifiers:
        return WARP_GROUP
    return (
        WARP
        if (first is not None and first.opcode in COLLECTIVE) or (end is not None and is_aligned_barrier(end))
        else 0
    )


@dataclass(eq=False)
class Run:
    """A basic block: instructions that control enters at the first and leaves at the last. `key` orders runs as in the
    text."""

    key: Key
    instructions: list[Instruction]
    code: "Code"
    end: Instruction | None = None  # the instruction that ends it; None: falls through
    together: int = 0  # number of threads that execute it together: a warp, or a warp group
    ops: list[Op] | None = None  # translated when the run is first reached

    def next(self) -> "Run | None":
        at = self.key[-1] + 1
        return self.code.runs[at] if at < len(self.code.runs) else None


@dataclass(eq=False)
class Code:
    """A function laid out for one call site (`caller` is the run that calls it; None for the kernel)."""

    function: Function
    translator: Translator
    prefix: Key
    caller: Run | None
    runs: list[Run] = field(default_factory=list)
    at_label: dict[str, Run] = field(default_factory=dict)
    callees: dict[tuple[Key, str], "Code"] = field(default_factory=dict)
    frame_end: int = 0  # in the local window
    copies: list[tuple[Array, int]] = field(default_factory=list)  # arguments copied to the frame, and their offsets


class Observer(Protocol):
    """Observes instructions: `wrap` returns the operation to run instead; `ending` is called for branches, calls and
    barriers."""

    def wrap(self, ins: Instruction, t: Translator, op: Op) -> Op: ...
    def ending(self, end: Instruction, t: Translator, mask: Array) -> None: ...


class Machine(BarrierWaits):
    """The translated code of one kernel for one block shape. `run_block` executes one block; the translation is
    kept."""

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
        self.stalled = False  # set by an instruction that polls unsuccessfully, such as a failed try_wait
        self.progress = 0  # incremented by every event that may end such a wait
        self.strands: dict[tuple[int, Run], Array] = {}
        self.barriers: dict[int, Barrier] = {}
        self.finished = np.zeros(block.threads, bool)
        self.last_run = np.zeros(block.threads, np.int64)  # step in which each thread last ran
        self.polling = np.zeros(block.threads, bool)  # threads whose last poll was unsuccessful
        self.observers: list[Observer] = []
        self.warp_barriers: dict[tuple[int, int], Barrier] = {}  # lanes at bar.warp.sync, by warp and member mask
        self.parameters = 0  # address of the arguments of a launch

    def begin_launch(self, grid: tuple[int, int, int]) -> None:
        """Called before the first block; a hook for subclasses."""

    def end_launch(self) -> None:
        """Called after the last block; a hook for subclasses."""

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
        for index, (start, stop) in enumerate(pairwise([*edges, len(function.instructions)])):
            body = function.instructions[start:stop]
            end = body.pop() if body[-1].opcode in ENDS else None
            together = threads_together(body[0] if body else None, end)
            code.runs.append(Run((*prefix, index), body, code, end, together))
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
        """Return the operation of an instruction, wrapped by the observers."""
        op = translator.translate(ins)
        for observer in self.observers:
            op = observer.wrap(ins, translator, op)
        return op

    # running

    def run_block(self, ctaid: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        self.block.start(ctaid, grid)
        self.executed, self.stalled, self.progress, self.idle = 0, False, 0, 0
        self.polling = np.zeros(self.block.threads, bool)
        self.barriers, self.strands, self.warp_barriers, self.register_requests = {}, {}, {}, []
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
        if self.barriers or self.warp_barriers or self.register_requests:
            self.check_stuck()

    def translators(self, code: Code) -> list[Translator]:
        found = [code.translator]
        for callee in code.callees.values():
            found += self.translators(callee)
        return found

    def begin(self) -> None:
        """Start all threads together."""
        self.strands[(0, self.kernel.runs[0])] = self.block.exists.copy()

    patience = 0
    last: Any = None

    def pick(self) -> tuple[int, Run]:
        """Return the strand to run next: the one furthest behind, unless it waits for the rest of its warps or has run
        for long."""
        if len(self.strands) == 1:
            return next(iter(self.strands))
        order = sorted(self.strands, key=lambda at: (at[1].key, at[0]))
        self.patience += 1
        ready = list(filter(self.is_complete, order)) or order
        if np.count_nonzero(self.polling):
            awake = [at for at in ready if np.count_nonzero(self.strands[at] & ~self.polling)]
            if not awake:
                return min(ready, key=lambda at: int(self.last_run[self.strands[at]].min()))
            ready = awake
        if self.patience % PATIENCE == 0:
            behind = [at for at in ready if at != self.last]
            return behind[self.patience // PATIENCE % len(behind)] if behind else ready[0]
        return ready[0]

    def is_whole(self, mask: Array, together: int = WARP) -> bool:
        """Return True if the warps, or the warp groups, of these threads are complete, except for threads that have
        exited."""
        together = together if len(mask) % together == 0 else WARP
        lanes = (mask | self.finished).reshape(-1, together)
        some = mask.reshape(-1, together).any(axis=1)
        return bool(lanes[some].all())

    def is_complete(self, at: tuple[int, Run]) -> bool:
        """Return True if a strand need not wait for other threads of its warps."""
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
            self.polling[:] = False
        elif self.stalled:
            self.idle += 1
            tries = RETRIES if all(self.polling[mask].all() for mask in self.strands.values()) else PATIENCE
            if self.idle > tries * max(1, len(self.strands)):
                last = run.instructions[-1] if run.instructions else run.end
                what = f"all threads wait for something that does not happen{self.other_locations(run)}"
                raise self.failure(what, last, mask, Stuck)
        elif self.idle and np.count_nonzero(mask & ~self.polling):
            self.idle = 0

    def other_locations(self, here: Run) -> str:
        """Describe the locations of the threads that are not `here`, in brackets."""
        at: dict[int, Array] = {}
        for (_, run), mask in self.strands.items():
            if run is not here and (last := run.instructions[-1] if run.instructions else run.end) is not None:
                at[last.line] = at.get(last.line, False) | mask
        for barrier in (*self.barriers.values(), *self.warp_barriers.values()):
            for (_, _, end), mask in barrier.waiting:
                at[end.line] = at.get(end.line, False) | mask
        texts = [f"threads {spans(np.flatnonzero(mask))} at PTX line {line}" for line, mask in sorted(at.items())]
        return f" (also {'; '.join(texts)})" if texts else ""

    idle = 0  # unsuccessful polls since the last progress

    def waited(self, threads: Array, over: Array) -> None:
        """Record the outcome of a poll: threads whose condition is not `over` will poll again."""
        self.polling[threads] = ~over
        self.stalled = self.stalled or not bool(over.all())

    def execute(self, run: Run, mask: Mask) -> None:
        ops = run.ops if run.ops is not None else self.operations(run)
        at = 0
        try:
            for at, op in enumerate(ops):  # noqa: B007  (the index of the op that failed)
                op(mask)
        except (EmulatorError, *MISTAKES) as error:
            raise self.explained(error, run.instructions[at]) from error

    def explained(self, error: Exception, ins: Instruction) -> EmulatorError:
        """Return an error with the instruction, the block and the thread, unless it names them already."""
        if isinstance(error, MemoryFault):
            return MemoryFault(self.located(error.what, ins, error.thread), error.thread, error.address, ins)
        if not isinstance(error, EmulatorError):
            return Unsupported(ins, f"{type(error).__name__}: {error}")
        if getattr(error, "located", False) or isinstance(error, Unsupported) or "PTX line" in str(error):
            return error
        return located_error(type(error), self.located(str(error), ins))

    def failure(
        self, what: str, ins: Instruction | None, mask: Array, kind: type[EmulatorError] = EmulatorError
    ) -> EmulatorError:
        """Return an error about the first of some threads."""
        return kind(self.located(what, ins, int(np.flatnonzero(mask)[0])))

    def located(self, what: str, ins: Instruction | None, thread: int | None = None) -> str:
        """Return a message with the instruction, its source line, the block and the thread."""
        if ins is None:
            return what
        ctaid = self.block_of(thread or 0)
        subject = f"block {ctaid}" + (f", thread {self.thread_id(thread)}" if thread is not None else "")
        source = f"\n  at {ins.location}" if ins.source else ""
        return f"{what} ({subject}){source}\n  PTX line {ins.line}: {ins.text}"

    def block_of(self, thread: int) -> tuple[int, int, int]:
        """Return the grid index of a thread's block."""
        specials, threads = self.block.specials, self.block.threads
        x, y, z = (int(np.broadcast_to(specials[f"%ctaid.{axis}"], threads)[thread]) for axis in "xyz")
        return x, y, z

    def thread_id(self, thread: int) -> tuple[int, int, int]:
        return tuple(int(self.block.specials[f"%tid.{axis}"][thread]) for axis in "xyz")  # type: ignore[return-value]

    # leaving a run

    def go(self, group: int, run: Run | None, mask: Array) -> None:
        """Continue threads at a run, joining those that are there already."""
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
        for barrier in list(self.barriers):
            self.release(group, barrier)
        for warp, members in list(self.warp_barriers):
            self.release_warp(warp, members)

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
        "bra": "branch", "brx": "branch_indexed", "ret": "back", "exit": "stop", "trap": "trap", "brkpt": "trap",
        "call": "call", "bar": "arrive", "barrier": "arrive", "setmaxnreg": "change_registers",
    }  # fmt: skip


__all__ = ["CLUSTER", "MAX_INSTRUCTIONS", "PATIENCE", "Machine", "Observer", "Run", "Stuck", "Trapped", "located_error"]
