"""Rules of control flow for every target: `scf`, `cf`, calls and returns carry the LLVM values of all their values.

Each target defines the LLVM values of a value, and what a call passes beside its arguments (`OpLowering`).

A launch passes scalars, pointers and tensor descriptors to a kernel. Tensors are loaded inside.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, Region

from tilework.errors import PassError
from tilework.ir import cf, scf, tt
from tilework.ir.functions import callee_of, symbol_of
from tilework.ir.llvm import AssumeOp, licm_hints
from tilework.ir.ttc import BufferType
from tilework.ir.types import array_values
from tilework.targets.llvm import scalars
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.control import Loop
from tilework.targets.llvm.module import plain_symbol
from tilework.targets.llvm.rules import COMMON, Low
from tilework.targets.llvm.types import i64, ptr, result_of, void
from tilework.targets.llvm.values import Value, signed


def check_parameters(op: tt.FuncOp, device: str) -> None:
    """Refuse a kernel with a parameter that is a tensor (or the buffer it was lowered to), at its line."""
    for position, arg in enumerate(op.regions[0].blocks[0].args):
        if isinstance(arg.type, TensorType | BufferType):
            shown = f"%{arg.name_hint}" if arg.name_hint else f"{position}"
            raise PassError(
                f"a kernel argument that is a tensor cannot be compiled for {device}: argument {shown} of"
                f" @{symbol_of(op)}"
                "\nhelp: pass a pointer, and load the tensor in the kernel",
                op.location,
            )


RULE_FILES = (scalars,)  # importing it fills the table of all targets
lowers = COMMON.lowers


def lower_body(low: Low, region: Region) -> None:
    """The body of a function, from its entry block on."""
    blocks = list(region.blocks)
    if len(blocks) == 1:
        low.lower_block(blocks[0])
        return
    low.branches = low.branches_of(blocks)
    low.branches.run(low.lower_block)


@lowers(cf.BranchOp)
def lower_br(low: Low, op: Operation) -> None:
    low.branches.jump(op.successors[0], passed(low, op, op.operands))


@lowers(cf.ConditionalBranchOp)
def lower_cond_br(low: Low, op: Operation) -> None:
    b = low.builder
    condition, *values = op.operands
    _, first, _ = array_values(op.properties["operandSegmentSizes"])
    sides = [b.new_block("edge", inherit=True) for _ in range(2)]
    # both ways even if the condition is constant: no block may be left without an edge
    b.end(f"br {low.scalar(condition).typed}, label %{sides[0].name}, label %{sides[1].name}")
    for side, target, carried in zip(sides, op.successors, (values[:first], values[first:]), strict=True):
        b.enter(side)
        low.branches.jump(target, passed(low, op, carried))


@lowers(tt.ReturnOp)
def lower_return(low: Low, op: Operation) -> None:
    low.builder.ret_all(passed(low, op, op.operands))


def passed(low: Low, op: Operation, values: Sequence[Any]) -> list[Value]:
    """The LLVM values of what leaves its block or function."""
    held = [low[value] for value in values]
    low.check_passed(op, held)
    return low.flat(held)


def call(low: Low, op: Operation, frame: Sequence[Value], attributes: str = "") -> list[Any]:
    """The results of a `tt.call`; the function gets `frame` behind its arguments."""
    b, types = low.builder, [result.type for result in op.results]
    target = Value(ptr, f"@{plain_symbol(callee_of(op))}")  # defined in this module, maybe further down
    args = [*passed(low, op, op.operands), *frame]
    result = result_of([part for type in types for part in low.types_of(type)])
    made = b.fields(b.call(target, result, args, attributes=attributes))
    return low.held(types, made)


@lowers(AssumeOp)
def lower_assume(low: Low, op: Operation) -> None:
    if (condition := low.scalar(op.operands[0])).constant is None:
        low.builder.call("llvm.assume", void, [condition])


@lowers(scf.IfOp)
def lower_if(low: Low, op: Operation) -> list[Any]:
    forms: list[list[Any]] = []

    def side(region: Region) -> list[Value]:
        forms.append(low.region(region.block, []) if region.blocks else [])
        return low.carried(forms[-1])

    then, otherwise = op.regions
    made = low.builder.if_else(low.scalar(op.operands[0]), lambda: side(then), lambda: side(otherwise))
    low.check_joined(op, *forms)
    return low.taken(forms[0], made)


class Carried:
    """The values that an `scf.for` carries from iteration to iteration, in LLVM."""

    def __init__(self, low: Low, op: Operation) -> None:
        self.low, self.initial = low, [low[operand] for operand in op.operands[3:]]

    def start(self) -> list[Value]:
        return self.low.carried(self.initial)

    def held(self, carried: Sequence[Value]) -> list[Any]:
        """Return the values that these carried ones represent."""
        return self.low.taken(self.initial, carried)

    def next(self, following: Sequence[Any]) -> list[Value]:
        """The values that the next iteration carries, at the end of one that yields these."""
        return self.low.carried(following)


@lowers(scf.ForOp)
def lower_for(low: Low, op: Operation, kind: type[Carried] = Carried, unroll: int | None = 1) -> list[Any]:
    start, end, step = (low.scalar(operand) for operand in op.operands[:3])
    carried = kind(low, op)
    wraps = may_wrap(end, step)
    build = low.builder.loop_up_to if wraps or unroll is None else low.builder.loop_carrying
    with build(start, end, step, carried.start(), unroll=unroll, may_wrap=wraps, hints=licm_hints(op)) as loop:
        induction = low.held([op.operands[0].type], [loop.index])
        following = low.region(op.regions[0].block, [*induction, *carried.held(loop.carried)])
        low.check_joined(op, carried.initial, following)
        loop.next(carried.next(following))
    return carried.held(loop.results)


def may_wrap(end: Value, step: Value) -> bool:
    """Return True if the sum behind the last round of a loop may not fit into its type."""
    if step.constant == 1:
        return False
    if end.constant is None or step.constant is None:
        return True
    return signed(end.type, end.constant) + signed(step.type, step.constant) >= 1 << (end.type.bits - 1)


@contextmanager
def for_loop(
    b: Builder, start: Value, end: Value, step: Value, carried: Sequence[Value], may_wrap: bool, **hints: Any
) -> Iterator[tuple[Loop, Value]]:
    """A loop and its index; if the last sum may not fit it is counted in 64 bits, and goes no further than these do."""
    type = start.type
    if may_wrap and type.bits < 64:
        start, end, step = (b.sext(value, i64) for value in (start, end, step))
    with b.loop_carrying(start, end, step, carried, may_wrap=may_wrap and type.bits == 64, **hints) as loop:
        yield loop, loop.index if loop.index.type is type else b.trunc(loop.index, type)


class Rounds:
    """The code that a target adds to each iteration of a loop, and the values it carries for that; by default none."""

    start: Sequence[Value] = ()

    def next(self, left: Sequence[Value]) -> Sequence[Value]:
        """Return the values that the next iteration carries, at the end of one."""
        return left


PLAIN = Rounds()


@lowers(scf.WhileOp)
def lower_while(low: Low, op: Operation, rounds: Rounds = PLAIN) -> list[Any]:
    b = low.builder
    before, after = op.regions
    initial = [low[operand] for operand in op.operands]
    starts = (*rounds.start, *low.carried(initial))
    preheader = b.block
    header, body, done = (b.function.block(name) for name in ("while", "do", "done"))
    b.br(header)
    with b.scope():
        b.resume(header)
        opened = [b.open_phi(value.type, value, preheader) for value in starts]
        own, carried = opened[: len(rounds.start)], opened[len(rounds.start) :]
        condition, *values = low.region(before.block, low.taken(initial, [made for made, _ in carried]))
        (test,) = low.flat([condition])
        b.end(f"br {test.typed}, label %{body.name}, label %{done.name}")  # both blocks are placed in any case
        b.resume(body)
        following = low.region(after.block, values)
        low.check_joined(op, initial, following)
        ends = [*rounds.next([made for made, _ in own]), *low.carried(following)]
        latch = b.block
        b.br(header, b.loop_node(None, licm_hints(op)))
        for (_, close), value in zip(opened, ends, strict=True):
            close(value, latch)
    b.resume(done)
    return values
