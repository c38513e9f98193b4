"""Estimate the operations and bytes of a launch from the kernel's TTIR and the launch's arguments.

    found = estimate(module, work)
    found.flops        {"fp16": 2 * M * N * K}            by the type of a dot's operands; "simd" is everything else
    found.bytes        each array once for being read, and once for being written, but no more than programs access

Loops run as often as their bounds say for the launch's integers; where bounds depend on the program, three
are looked at. A loop whose bounds are not known (read from memory, `while`) makes the operations unknown. Of branches
whose condition is not known the longer one counts. Masks are not looked at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilework.inspect.profiler.launches import Work
from tilework.ir import arith, math, scf, tt
from tilework.ir.arith import SelectOp
from tilework.ir.functions import callee_of, functions_by_name, is_private
from tilework.ir.types import bit_width, element_type, is_float, is_tensor, shape_of
from tilework.oracles.evaluator.global_memory import Memory
from tilework.oracles.evaluator.machine import Machine
from tilework.oracles.evaluator.values import ELEMENTWISE, fit

SIMD = "simd"
SAMPLES = 3  # programs that are looked at
Known = dict[SSAValue, Any]  # integers, as arrays without dimensions


@dataclass
class Count:
    """Operations by kind, and requested bytes by array; `is_complete` is false if some are unknown."""

    flops: dict[str, float] = field(default_factory=dict)
    loaded: dict[str, float] = field(default_factory=dict)
    stored: dict[str, float] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, other: "Count", times: float) -> None:
        for mine, theirs in zip(self.parts(), other.parts(), strict=True):
            for name, value in theirs.items():
                mine[name] = mine.get(name, 0.0) + times * value
        self.is_complete &= other.is_complete

    def parts(self) -> tuple[dict[str, float], ...]:
        return self.flops, self.loaded, self.stored

    @property
    def total(self) -> float:
        return sum(sum(part.values()) for part in self.parts())


@dataclass(frozen=True)
class Estimate:
    """The operations and bytes of a launch; None if unknown."""

    flops: Mapping[str, float] | None
    bytes: float | None


def estimate(module: ModuleOp, work: Work) -> Estimate:
    """See the module docstring."""
    entry = next((op for op in functions_by_name(module).values() if not is_private(op)), None)
    if entry is None:
        return Estimate(None, None)
    samples = [(2 * index + 1) * work.programs // (2 * SAMPLES) for index in range(SAMPLES)]
    whole = Count()
    for linear in samples:
        x, y, _ = work.grid
        program = (linear % x, linear // x % y, linear // (x * y))
        with np.errstate(all="ignore"):
            whole.add(Counter(module, work, program).function(entry), work.programs / len(samples))
    sizes = dict(work.sizes)
    moved = 0.0
    for accessed in (whole.loaded, whole.stored):
        for name, count in accessed.items():
            moved += min(count, sizes.get(name, count)) if whole.is_complete else sizes.get(name, count)
    return Estimate(whole.flops if whole.is_complete else None, moved if sizes else None)


class Counter:
    """Counts what one program does."""

    def __init__(self, module: ModuleOp, work: Work, program: tuple[int, int, int]) -> None:
        self.functions = functions_by_name(module)
        self.work = work
        self.machine = Machine({}, Memory(), work.grid, program=program)
        self.known: Known = {}
        self.bases: dict[SSAValue, frozenset[str]] = {}  # the arrays that a pointer points into

    def function(self, function: Operation) -> Count:
        block = function.regions[0].blocks[0]
        integers = dict(self.work.integers)
        for arg in block.args:
            name = arg.name_hint or ""
            if name in integers and is_integer(arg):
                self.known[arg] = np.asarray(integers[name])
            self.bases[arg] = frozenset({name})
        return self.block(block)

    def block(self, block: Block) -> Count:
        count = Count()
        for op in block.ops:
            self.op(op, count)
        return count

    def op(self, op: Operation, count: Count) -> None:
        kind = type(op)
        if (structure := STRUCTURES.get(kind)) is not None:
            structure(self, op, count)
            return
        if (rule := RULES.get(kind)) is not None:
            rule(self, op, count)
        elif kind in FLOATING and is_float_op(op):
            add(count.flops, SIMD, FLOATING[kind] * elements(op.results[0]))
        self.follow(op)

    def follow(self, op: Operation) -> None:
        """Propagate the known integers and base pointers to the results."""
        inside = frozenset[str]().union(*(self.bases.get(value, frozenset()) for value in op.operands))
        for result in op.results:
            if inside and is_pointing(result):
                self.bases[result] = inside
        if len(op.results) == 1 and is_integer(op.results[0]):
            self.compute(op, op.results[0])

    def compute(self, op: Operation, result: SSAValue) -> None:
        """Evaluate an op on known integers."""
        known: list[Any] = [self.known.get(operand) for operand in op.operands]
        if type(op) is SelectOp and known[0] is not None:
            known = [known[0], *[known[1] if known[0] else known[2]] * 2]
        if type(op) in ELEMENTWISE and all(value is not None for value in known):
            values = [fit(value, operand.type) for value, operand in zip(known, op.operands, strict=True)]
            self.known[result] = self.machine.rules[type(op)](self.machine, op, *values)

    def carry(self, target: SSAValue, source: SSAValue) -> None:
        self.bases[target] = self.bases.get(target, frozenset()) | self.bases.get(source, frozenset())

    def touched(self, pointer: SSAValue) -> frozenset[str]:
        return self.bases.get(pointer, frozenset())


def elements(value: SSAValue) -> int:
    return prod(shape_of(value.type)) if is_tensor(value.type) else 1


def is_integer(value: SSAValue) -> bool:
    return isinstance(value.type, IntegerType | IndexType)


def is_pointing(value: SSAValue) -> bool:
    text = str(value.type)
    return "tt.ptr" in text or "tensordesc" in text


def is_float_op(op: Operation) -> bool:
    value = op.results[0].type
    return is_float(element_type(value) if is_tensor(value) else value)


def add(counts: dict[str, float], name: str, value: float) -> None:
    counts[name] = counts.get(name, 0.0) + value


# ---- loops, branches, calls


def loop(counter: Counter, op: Operation, count: Count) -> None:
    """``scf.for``: as many times as its bounds say; the counter is in the middle of its way."""
    lower, upper, step, *initial = op.operands
    body = op.regions[0].blocks[0]
    first, last, by = (
        None if value not in counter.known else int(counter.known[value]) for value in (lower, upper, step)
    )
    for arg, value in zip(body.args[1:], initial, strict=True):
        counter.carry(arg, value)
    trips = max(0, -(-(last - first) // by)) if None not in (first, last, by) and by else None  # pyright: ignore
    if trips is not None and first is not None and by is not None:
        counter.known[body.args[0]] = np.asarray(first + by * (trips // 2))
    inside = counter.block(body)
    yielded = body.last_op
    for arg, result, value in zip(body.args[1:], op.results, yielded.operands if yielded else (), strict=False):
        counter.carry(arg, value)
        counter.carry(result, value)
    if inside.total:
        count.add(inside, 1 if trips is None else trips)
        count.is_complete &= trips is not None


def unknown_loop(counter: Counter, op: Operation, count: Count) -> None:
    """``scf.while``: the trip count is unknown."""
    for region in op.regions:
        for block in region.blocks:
            for arg, value in zip(block.args, op.operands, strict=False):
                counter.carry(arg, value)
            inside = counter.block(block)
            count.add(inside, 1)
            count.is_complete &= not inside.total
    for result, value in zip(op.results, op.operands, strict=False):
        counter.carry(result, value)


def branch(counter: Counter, op: Operation, count: Count) -> None:
    """``scf.if``: the side that is taken, or the longer one."""
    sides = [counter.block(region.blocks[0]) if region.blocks else Count() for region in op.regions]
    condition = counter.known.get(op.operands[0])
    chosen = max(sides, key=lambda side: side.total) if condition is None else sides[0 if condition else 1]
    count.add(chosen, 1)
    for region in op.regions:
        last = region.blocks[0].last_op if region.blocks else None
        for result, value in zip(op.results, last.operands if last else (), strict=False):
            counter.carry(result, value)


def called(counter: Counter, op: Operation, count: Count) -> None:
    """``tt.call``: what the function does with these arguments."""
    function = counter.functions.get(callee_of(op))
    if function is None:
        return
    block = function.regions[0].blocks[0]
    for arg, value in zip(block.args, op.operands, strict=True):
        counter.bases[arg] = counter.touched(value)
        counter.known.pop(arg, None)
        if value in counter.known:
            counter.known[arg] = counter.known[value]
    count.add(counter.block(block), 1)


# ---- operations and accesses


def dot(counter: Counter, op: Operation, count: Count) -> None:
    left, _, total, *_ = tt.visible_sizes(op)
    add(count.flops, operand_kind(op.operands[0].type), 2.0 * prod(total) * left[-1])


def operand_kind(type: Any) -> str:
    """``fp16``, ``bf16``, ``fp32``, ``fp64``, ``int8``, ``fp8``."""
    element, bits = element_type(type), bit_width(type)
    if "bf16" in str(element):
        return "bf16"
    return f"fp{max(bits, 8)}" if is_float(element) else f"int{max(bits, 8)}"


def reduction(counter: Counter, op: Operation, count: Count) -> None:
    for operand in op.operands:
        if is_tensor(operand.type) and is_float(element_type(operand.type)):
            add(count.flops, SIMD, elements(operand))


def load(counter: Counter, op: Operation, count: Count) -> None:
    move(counter, count.loaded, op, op.results[0])


def store(counter: Counter, op: Operation, count: Count) -> None:
    move(counter, count.stored, op, op.operands[1])


def atomic(counter: Counter, op: Operation, count: Count) -> None:
    for part in (count.loaded, count.stored):
        move(counter, part, op, op.results[0])


def move(counter: Counter, counts: dict[str, float], op: Operation, value: SSAValue) -> None:
    count = prod(tt.visible_sizes(op)[0]) if tt.VISIBLE in op.attributes else elements(value)
    size = count * max(bit_width(value.type), 8) / 8
    for name in counter.touched(op.operands[0]):
        add(counts, name, size)


Structure = Callable[[Counter, Operation, Count], None]
STRUCTURES: dict[type[Operation], Structure] = {
    scf.ForOp: loop,
    scf.WhileOp: unknown_loop,
    scf.IfOp: branch,
    tt.CallOp: called,
}
RULES: dict[type[Operation], Structure] = {
    tt.DotOp: dot,
    tt.DotScaledOp: dot,
    tt.ReduceOp: reduction,
    tt.ScanOp: reduction,
    tt.LoadOp: load,
    tt.StoreOp: store,
    tt.DescriptorLoadOp: load,
    tt.DescriptorGatherOp: load,
    tt.DescriptorStoreOp: store,
    tt.DescriptorReduceOp: store,
    tt.DescriptorScatterOp: store,
    tt.AtomicRMWOp: atomic,
    tt.AtomicCASOp: atomic,
}
# operations per element, as the kernel's author wrote them
FLOATING: dict[Any, int] = dict.fromkeys(
    (
        arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp,
        arith.MinnumfOp, arith.NegfOp, tt.PreciseDivFOp, tt.PreciseSqrtOp, tt.ClampFOp, math.ExpOp, math.Exp2Op,
        math.LogOp,
        math.Log2Op, math.SqrtOp, math.RsqrtOp, math.SinOp, math.CosOp, math.ErfOp, math.AbsFOp, math.TanhOp,
    ),
    1,
) | {math.FmaOp: 2}  # fmt: skip
