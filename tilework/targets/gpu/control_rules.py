"""Rules of control flow: loops, branches and calls carry the registers of all their values.

flat = flatten(values)             # the LLVM values of several IR values, one after the other
parts = split(values, flat)
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.ir import tt
from tilework.ir.ttg.memdesc_types import AsyncTokenType, MemDescType
from tilework.ir.types import TensorDescType, array_values, element_type
from tilework.targets.gpu.lowering import SHARED_SPACE, Lowering, lowers, register_count
from tilework.targets.gpu.shared_access import Shared
from tilework.targets.llvm.branches import Branches
from tilework.targets.llvm.module import plain_symbol
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, i64, pointer, ptr, result_of
from tilework.targets.llvm.values import Value, signed


def flatten(values: Sequence[Any]) -> list[Value]:
    """The LLVM values of several values: registers, or the address of memory."""
    found: list[Value] = []
    for value in values:
        found.extend((value.base,) if isinstance(value, Shared) else value)
    return found


def split(like: Sequence[Any], flat: Sequence[Value]) -> list[Any]:
    """Undo `flatten` for values of the same form."""
    left = iter(flat)
    return [
        Shared(next(left), value.origin) if isinstance(value, Shared) else tuple(islice(left, len(value)))
        for value in like
    ]


def types_of(type: Attribute) -> list[Type]:
    """The LLVM types of one value."""
    if isinstance(type, AsyncTokenType):
        return []
    if isinstance(type, MemDescType):
        return [pointer(SHARED_SPACE)]
    if isinstance(type, TensorDescType):
        return [ptr]
    return [register_type(element_type(type))] * register_count(type)


def regroup(types: Iterable[Attribute], flat: Iterable[Value]) -> list[Any]:
    """Values of these types, made of their LLVM values one after the other."""
    left = iter(flat)
    parts = [(type, tuple(islice(left, len(types_of(type))))) for type in types]
    return [Shared(part[0]) if isinstance(type, MemDescType) else part for type, part in parts]


@lowers(scf.ForOp)
def lower_for(low: Lowering, op: Operation) -> list[Any]:
    b, block = low.builder, op.regions[0].block
    start, end, step = (low.scalar(operand) for operand in op.operands[:3])
    initial = [low[operand] for operand in op.operands[3:]]
    type_ = start.type
    if type_.bits < 64 and may_wrap(end, step):
        start, end, step = (b.sext(value, i64) for value in (start, end, step))
    with b.loop_carrying(start, end, step, flatten(initial), unroll=1) as loop:
        index = loop.index if loop.index.type is type_ else b.trunc(loop.index, type_)
        following = low.region(block, [(index,), *split(initial, loop.carried)])
        same_origins(low, op, initial, following)
        loop.next(flatten(following))
    return split(initial, loop.results)


def may_wrap(end: Value, step: Value) -> bool:
    """Whether the sum behind the last round of a loop may not fit into its type."""
    if step.constant == 1:
        return False
    if end.constant is None or step.constant is None:
        return True
    return signed(end.type, end.constant) + signed(step.type, step.constant) >= 1 << (end.type.bits - 1)


def same_origins(low: Lowering, op: Operation, *sides: Sequence[Any]) -> None:
    """Refuse memory that begins at different places of its buffers, depending on the way: only addresses are carried."""
    for values in zip(*sides, strict=True):
        if len({value.origin for value in values if isinstance(value, Shared)}) > 1:
            raise low.refuse(op, "memory that is one or another part of a buffer")


def no_origins(low: Lowering, op: Operation, values: Sequence[Any]) -> None:
    """Refuse parts of buffers where only the address of a buffer can pass."""
    if any(isinstance(value, Shared) and value.origin for value in values):
        raise low.refuse(op, "a part of a buffer that is passed on")


@lowers(scf.IfOp)
def lower_if(low: Lowering, op: Operation) -> list[Any]:
    forms: list[list[Any]] = []

    def side(region: Region) -> list[Value]:
        values = low.region(region.block, []) if region.blocks else []
        forms.append(values)
        return flatten(values)

    then, otherwise = op.regions
    made = low.builder.if_else(low.scalar(op.operands[0]), lambda: side(then), lambda: side(otherwise))
    same_origins(low, op, *forms)
    return split(forms[0], made)


@lowers(scf.WhileOp)
def lower_while(low: Lowering, op: Operation) -> list[Any]:
    b = low.builder
    before, after = op.regions
    initial = [low[operand] for operand in op.operands]
    origin = b.block
    header, body, done = (b.function.block(name) for name in ("while", "do", "done"))
    b.br(header)
    with b.scope():
        b.resume(header)
        opened = [b.open_phi(value.type, value, origin) for value in flatten(initial)]
        condition, *values = low.region(before.block, split(initial, [made for made, _ in opened]))
        b.end(f"br {condition[0].typed}, label %{body.name}, label %{done.name}")
        b.resume(body)
        carried = low.region(after.block, values)
        same_origins(low, op, initial, carried)
        following = flatten(carried)
        latch = b.block
        b.br(header)
        for (_, close), value in zip(opened, following, strict=True):
            close(value, latch)
    b.resume(done)
    return list(values)


def branches_of(low: Lowering, blocks: list[Block]) -> Branches:
    """The blocks of a region; an argument has a phi per register."""

    def bind(arg: SSAValue, made: list[Value]) -> None:
        (low[arg],) = regroup([arg.type], made)

    return Branches(low.builder, blocks, types_of, bind)


def lower_body(low: Lowering, region: Region) -> None:
    """The body of a function, from its entry block on."""
    blocks = list(region.blocks)
    if len(blocks) == 1:
        low.lower_block(blocks[0])
        return
    low.branches = branches_of(low, blocks)
    low.branches.run(low.lower_block)


@lowers(cf.BranchOp)
def lower_br(low: Lowering, op: Operation) -> None:
    values = [low[value] for value in op.operands]
    no_origins(low, op, values)
    low.branches.jump(op.successors[0], flatten(values))


@lowers(cf.ConditionalBranchOp)
def lower_cond_br(low: Lowering, op: Operation) -> None:
    b = low.builder
    _, first, _ = array_values(op.properties["operandSegmentSizes"])
    values = [low[value] for value in op.operands[1:]]
    sides = [b.new_block("edge", inherit=True) for _ in range(2)]
    no_origins(low, op, values)
    # both ways even if the condition is constant: no block may be left without an edge
    b.end(f"br {low.scalar(op.operands[0]).typed}, label %{sides[0].name}, label %{sides[1].name}")
    for side, target, carried in zip(sides, op.successors, (values[:first], values[first:]), strict=True):
        b.enter(side)
        low.branches.jump(target, flatten(carried))


@lowers(tt.ReturnOp)
def lower_return(low: Lowering, op: Operation) -> None:
    no_origins(low, op, [low[operand] for operand in op.operands])
    low.builder.ret_all(flatten([low[operand] for operand in op.operands]))


def result_type(types: Iterable[Attribute]) -> Type:
    """What a function returns that has results of these types."""
    return result_of([type for result in types for type in types_of(result)])


@lowers(tt.CallOp)
def lower_call(low: Lowering, op: Operation) -> list[Any]:
    """Functions get the starts of their shared memory and of their scratch memory behind their arguments."""
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr) and isinstance(callee.root_reference, StringAttr)
    b, assigned = low.builder, low.allocation
    assert assigned is not None
    frame = assigned.scratch.get(op)
    no_origins(low, op, [low[operand] for operand in op.operands])
    args = flatten([low[operand] for operand in op.operands])
    args += [
        b.gep(low.smem, frame.offset if frame is not None else 0),
        b.gep(low.scratch, low.scratch_offsets.get(op, 0)),
    ]
    target = Value(pointer(), f"@{plain_symbol(callee.root_reference.data)}")
    types = [result.type for result in op.results]
    return regroup(types, b.fields(b.call(target, result_type(types), args, attributes="convergent")))


def bind(low: Lowering, args: Sequence[SSAValue], flat: Sequence[Value]) -> None:
    """Give the parameters of a function their LLVM values."""
    low.values.update(zip(args, regroup([arg.type for arg in args], flat), strict=True))
