"""Counts of the work of a kernel on the CPU, by line, and the minimum time of a launch, without running machine code.

    counts = host_counts(request, made)             a dictionary for a page, as `count` of `replay.py` makes for GPUs
    host_limits(request, made, counts, measures=False)

The evaluator runs the optimised TTIR of the first programs of a launch: bytes that are loaded and stored where masks
are on, operations on floats, and from these an estimate of vector instructions, an element of the tile in each lane of
a register. Addresses, masks and integers count nothing: most of them are not computed element by element. The assembly
says how many instructions a line has, how many of them work on vectors, of which width, and which of them move
something to the stack or back (spills). Caches, cycles and branches are not counted.

A launch takes at least as long as its bytes need at the bandwidth of a copy, and its operations at the rate of a matrix
multiplication, both measured on this machine (`profiler/limits.py`). The estimate lets each vector instruction take as
long as a multiply-add of that multiplication.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tilework.inspect.compilation import Compilation, Request
from tilework.inspect.profiler.estimate import FLOATING, elements, estimate, is_float_op
from tilework.inspect.profiler.launches import Work, bytes_of
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.replay import COUNTED_PROGRAMS, NO_LAUNCH
from tilework.inspect.source_lines import located
from tilework.ir import arith, math, tt
from tilework.ir.locations import source_positions
from tilework.ir.parser import parse_module
from tilework.ir.types import bit_width, element_type, is_float, is_tensor
from tilework.oracles.evaluator import evaluate
from tilework.runtime.devices.host.evaluator_launcher import runtime_values
from tilework.runtime.devices.launcher import declared_types
from tilework.targets.cpu.machines import named_machine
from tilework.targets.cpu.target import HostTarget

Line = tuple[str, int]
STATIC = (
    ("code", "in assembly", "instructions of the assembly, however often they run"),
    ("vector", "on vectors", "those of them that work on vector registers"),
    ("width", "bits", "of the widest vector registers"),
    ("spills", "spills", "instructions that move something to the stack or back"),
)
DYNAMIC = (
    (
        "instructions",
        "vector instructions",
        "estimated: an element in each lane; without addresses, masks and integers",
    ),
    ("flops", "operations", "on floats, as the kernel's author wrote them"),
    ("loaded", "bytes loaded", "of the elements whose masks are on"),
    ("stored", "bytes stored", "of the elements whose masks are on"),
)
FUNCTION, DIVISION = 20, 8  # vector instructions, roughly
WEIGHTS: dict[Any, int] = {
    **dict.fromkeys((math.ExpOp, math.Exp2Op, math.LogOp, math.Log2Op, math.SinOp, math.CosOp), FUNCTION),
    **dict.fromkeys((math.ErfOp, math.TanhOp), FUNCTION),
    **dict.fromkeys((arith.DivfOp, tt.PreciseDivFOp, tt.PreciseSqrtOp, math.SqrtOp, math.RsqrtOp), DIVISION),
}
FREE = (tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.UnsplatOp)
COMBINING = (tt.ReduceOp, tt.ScanOp)


@dataclass
class HostCounts:
    """The counts of one line."""

    instructions: float = 0.0
    flops: float = 0.0
    loaded: int = 0
    stored: int = 0
    code: int = 0
    vector: int = 0
    width: int = 0
    spills: int = 0

    def add(self, other: "HostCounts") -> None:
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            setattr(self, one.name, max(mine, theirs) if one.name == "width" else mine + theirs)

    def data(self, columns: Sequence[Sequence[str]]) -> dict[str, int]:
        return {name: ceil(getattr(self, name)) for name, *_ in columns}


def host_counts(request: Request, made: Compilation) -> dict[str, Any]:
    """Return the counts of a kernel that was compiled for a CPU, by line and in total."""
    lines: dict[Line, HostCounts] = {}
    for text, positions in located("asm", made.texts.get("asm", "")):
        count_instruction(text, lines, positions)
    why, launch = "", request.launch
    try:
        if launch is not None and "ttir" in made.texts:
            Evaluation(lines, named_machine(str(request.target.arch or "")).facts).run(request, made.texts["ttir"])
    except Exception as error:  # any error of the user's kernel is shown beside the other facts
        why = f"the launch failed in the evaluator: {error}"
    is_run = launch is not None and not why
    columns = (*DYNAMIC, *STATIC) if is_run else STATIC
    total = HostCounts()
    for counts in lines.values():
        total.add(counts)
    note = "" if is_run else f"These are of the assembly alone: {why or NO_LAUNCH}."
    found: dict[str, Any] = {
        "by": "the evaluator and in the assembly" if is_run else "the assembly",
        "columns": columns,
        "total": total.data(columns),
        "lines": [(line, counts.data(columns)) for line, counts in sorted(lines.items())],
        "findings": [],
        "note": note,
    }
    if launch is not None and is_run:
        found |= {
            "grid": list(launch.grid),
            "programs": min(launch.programs, COUNTED_PROGRAMS),
            "of": launch.programs,
        }
    return found


# ---- what programs do


class Evaluation:
    """Runs the first programs of a launch and adds what they do to the counts of lines."""

    def __init__(self, lines: dict[Line, HostCounts], machine: HostTarget) -> None:
        self.lines, self.machine = lines, machine

    def run(self, request: Request, ttir: str) -> None:
        launch = request.launch.copied() if request.launch is not None else None
        types = declared_types(request.source)
        if launch is None or types is None:
            raise ValueError("its arguments are too large, or of unknown types")
        values: list[Any] = []
        for type, arg in zip(types.values(), launch.values, strict=True):
            runtime_values(type, arg, values)
        x, y, _ = launch.grid
        chosen = [(i % x, i // x % y, i // (x * y)) for i in range(min(launch.programs, COUNTED_PROGRAMS))]
        evaluate(
            parse_module(ttir),
            request.source.name,
            values,
            launch.grid,
            program_ids=chosen,
            foreign=True,
            on_print=lambda line: None,
            watched=self.watched,
        )

    def watched(self, op: Operation, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return a rule that also counts what the op does."""
        count = self.counter_of(op)
        if count is None or (around := op.parent_op()) is None or isinstance(around, COMBINING):
            return rule
        positions = source_positions(op.location)
        counts = self.lines.setdefault(positions[0][:2] if positions else ("", 0), HostCounts())

        def counted(machine: Any, op: Operation, *operands: Any) -> Any:
            result = rule(machine, op, *operands)
            count(counts, operands)
            return result

        return counted

    def counter_of(self, op: Operation) -> Callable[[HostCounts, Sequence[Any]], None] | None:
        """Return what adds one execution of an op to counts; None for one that counts nothing."""
        kind = type(op)
        if kind in (tt.LoadOp, tt.StoreOp):
            moved = op.results[0] if kind is tt.LoadOp else op.operands[1]
            return partial(self.count_access, moved, kind is tt.StoreOp, 1 if kind is tt.LoadOp else 2)
        if kind is tt.DotOp:
            left, _, total, *_ = tt.visible_sizes(op)
            flops = 2.0 * float(np.prod(total)) * left[-1]
            return partial(add_fixed, flops / 2 / self.lanes(op.results[0]), flops)
        if kind in COMBINING:
            floats = [value for value in op.operands if is_tensor(value.type) and is_float(element_type(value.type))]
            flops = float(sum(map(elements, floats)))
            return partial(add_fixed, sum(elements(value) / self.lanes(value) for value in floats), flops)
        if len(op.results) != 1 or kind in FREE or not op.operands or not is_float_op(op):
            return None
        result = op.results[0]
        size = elements(result)
        vectors = ceil(size / self.lanes(result)) if is_tensor(result.type) else 1
        return partial(add_fixed, float(WEIGHTS.get(kind, 1) * vectors), float(FLOATING.get(kind, 0) * size))

    def count_access(
        self, moved: Any, is_store: bool, mask_at: int, counts: HostCounts, operands: Sequence[Any]
    ) -> None:
        count = elements(moved)
        counts.instructions += ceil(count / self.lanes(moved)) if is_tensor(moved.type) else 1
        if len(operands) > mask_at:
            count = int(np.count_nonzero(np.broadcast_to(operands[mask_at], np.shape(operands[0]))))
        size = count * max(bit_width(moved.type), 8) // 8
        if is_store:
            counts.stored += size
        else:
            counts.loaded += size

    def lanes(self, value: Any) -> int:
        return self.machine.lanes(max(bit_width(value.type), 8))


def add_fixed(instructions: float, flops: float, counts: HostCounts, operands: Sequence[Any]) -> None:
    counts.instructions += instructions
    counts.flops += flops


# ---- what the assembly has

INSTRUCTION = re.compile(r"\s+([a-z]\w*(?:\.\w+)?)(?:\s+(.*))?$")
X86_WIDTHS = {"zmm": 512, "ymm": 256, "xmm": 128}
X86_VECTOR = re.compile(r"%([xyz]mm)\d")
X86_SCALAR = re.compile(r"s[sd]$|^v?mov[dq]$|^v?comis|^v?ucomis|^v?cvt.*si$|^v?cvttsi|^v?cvtsi")
X86_STACK = re.compile(r"^v?mov.*-?\d*\(%rsp")
ARM_VECTOR = re.compile(r"\bv\d+\.\d*[bhsd]|\bq\d+\b")
ARM_STACK = re.compile(r"^(?:ldr|str|ldp|stp|ldur|stur)\b.*\[sp(?:, #-?\w+)?\]$")


def count_instruction(text: str, lines: dict[Line, HostCounts], positions: Iterable[Any]) -> None:
    """Add a line of assembly to the counts of its line in the source; directives and labels are none."""
    line = next((position[:2] for position in positions), None)
    if line is None or (found := INSTRUCTION.match(text)) is None:
        return
    opcode, operands = found[1], found[2] or ""
    counts, whole = lines.setdefault(line, HostCounts()), f"{opcode} {operands}"
    counts.code += 1
    widths = [X86_WIDTHS[name] for name in X86_VECTOR.findall(operands)]
    if widths and not X86_SCALAR.search(opcode):
        counts.vector += 1
        counts.width = max(counts.width, *widths)
    elif not widths and ARM_VECTOR.search(operands):
        counts.vector += 1
        counts.width = max(counts.width, 128)
    counts.spills += X86_STACK.search(whole) is not None or ARM_STACK.search(whole) is not None


# ---- how long it takes at least

MEMORY, ARITHMETIC, INSTRUCTIONS = "memory", "arithmetic", "vector instructions"
HOST = ("cpu", "cpu:host", "cpu:native")
UNMEASURED = (
    "The limits of this machine have not been measured: `tilework explore` and `tilework profile` of a program do it."
)


def host_limits(request: Request, made: Compilation, counts: Mapping[str, Any], measures: bool) -> dict[str, Any]:
    """Return the limit of the known launch and an estimate, as a page shows them; {"why": reason} if there is none."""
    launch = request.launch
    if str(request.target) not in HOST:
        return {"why": f"Limits are measured on this machine, and this is code for {request.target}: none is known."}
    if launch is None:
        return {"why": f"A limit is that of a launch, and {NO_LAUNCH}."}
    limits = Limits.load()
    if not limits.is_host or not limits.is_real:
        return {"why": f"The active device is {limits.device}: the limits of the CPU are not measured beside it."}
    get = limits.get if measures else lambda name, _: limits.found.get(name)
    bandwidth, rate = get("copy", limits.measure_copy), get("fp32", lambda: limits.measure_rate("fp32"))
    if bandwidth is None or rate is None:
        return {"why": UNMEASURED}
    named = dict(zip(launch.fn.arg_names if launch.fn is not None else (), launch.values, strict=False))
    integers = tuple((name, int(value)) for name, value in named.items() if isinstance(value, int))
    sizes = tuple((name, size) for name, value in named.items() if (size := bytes_of(value)) is not None)
    work: Any = Work(None, launch.grid, integers, sizes)  # pyright: ignore[reportArgumentType]
    found = estimate(parse_module(made.texts["ttir"]), work)
    seconds: dict[str, float] = {}
    facts: list[str] = []
    if found.bytes:
        seconds[MEMORY] = found.bytes / bandwidth
        facts.append(f"{found.bytes / 1e6:.3g} MB at {bandwidth / 1e9:.3g} GB/s of a copy")
    if found.flops:
        flops = sum(found.flops.values())
        seconds[ARITHMETIC] = flops / rate
        facts.append(f"{flops / 1e6:.3g} million operations at {rate / 1e9:.3g} GFLOP/s of a matrix multiplication")
    if not seconds:
        return {"why": "What a launch moves and computes is not known: its loops depend on what is in memory."}
    limit = max(seconds, key=lambda name: seconds[name])
    bound = seconds[limit]
    text = f"At least {microseconds(bound)} us, for {limit}: {'; '.join(facts)}."
    if found.flops is None:
        text += " How many operations there are is not known."
    if "programs" in counts:
        lanes = named_machine("").facts.lanes(32)
        each = counts["total"]["instructions"] / counts["programs"]
        seconds[INSTRUCTIONS] = each * counts["of"] * 2 * lanes / rate
    guess = max(seconds.values())
    text += f" About {microseconds(guess)} us, if each vector instruction takes as long as a multiply-add there."
    text += " Data that are in caches are faster than this memory; waking threads takes longer."
    if limits.disturbed:
        text += f" {limits.disturbed[:1].upper()}{limits.disturbed[1:]} while the machine was measured."
    cycles = {name: 1e6 * value for name, value in seconds.items()}
    code = {"limit": limit, "bound": 1e6 * bound, "estimate": 1e6 * guess, "cycles": cycles, "location": []}
    return {"codes": [{**code, "what": "launch", "title": "Microseconds of the launch, at least", "text": text}]}


def host_metrics(limits: Mapping[str, Any]) -> list[list[Any]]:
    """Return the limit and the estimate in a line each, as for GPUs."""
    return [
        row
        for code in limits.get("codes", ())
        for row in (
            ["limit", code["limit"], f"{code['bound']:.3g} us of the launch"],
            ["estimate", round(100 * code["bound"] / code["estimate"]), "% of the limit, by vector instructions"],
        )
    ]


def microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}"
