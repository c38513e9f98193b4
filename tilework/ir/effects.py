"""The memory effects of ops, as table look-ups by class. Our ops declare them as traits; the others are listed here.

    reads   it may read memory                 tt.load, atomics, unknown ops
    writes  it may write memory, print, stop   tt.store, atomics, tt.print, unknown ops
    pure    neither; ops with a body are as pure as the ops in it

A pure op may still be undefined for some operands (a division by zero): only `is_speculatable` ops may be moved to
where they were not executed before.
"""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Dialect, Operation, OpResult, SSAValue
from xdsl.traits import (
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    Pure,
    RecursiveMemoryEffect,
)

from tilework.ir import arith, cf, math, scf, tt, ttg, ub
from tilework.ir.arith import Arith
from tilework.ir.attr_text import is_true
from tilework.ir.constraints import Elementwise

Ops = set[type[Operation]]

ARITHMETIC: Ops = {*Arith.operations, *math.Math.operations}
BRANCHES: Ops = {cf.BranchOp, cf.ConditionalBranchOp, scf.ConditionOp, scf.YieldOp}
# Effects follow from the property `pure`.
DECLARED: Ops = {tt.ExternElementwiseOp, tt.ElementwiseInlineAsmOp}
# Undefined or expensive where the divisor is 0.
DIVISIONS: Ops = {arith.DivSIOp, arith.DivUIOp, arith.CeilDivSIOp, arith.CeilDivUIOp}

# `register` adds the ops of dialects that declare effects as traits.

TERMINATORS: Ops = {*BRANCHES}
ELEMENTWISE: Ops = ARITHMETIC - {arith.ConstantOp}
# Effects are those of the ops inside.
RECURSIVE: Ops = {scf.ForOp, scf.IfOp, scf.WhileOp, scf.ExecuteRegionOp}
PURE: Ops = ARITHMETIC | BRANCHES | {ub.PoisonOp}
SPECULATABLE: Ops = PURE - BRANCHES - DIVISIONS
READ_ONLY: Ops = set()
# A buffer is made where it is allocated: two allocations are not one, but one that is unused may go. So is one filled
# by a `ttg.local_alloc`, which no other op can see yet.
WRITE_ONLY: Ops = set()


def register(dialect: Dialect) -> None:
    """Add the ops of a dialect to the sets that their traits name. `tt` and `ttg` are registered here, the other
    dialects of ours where they are defined: a compilation imports only those of its target."""
    for op in dialect.operations:
        traits = {type(trait) for trait in op.traits}
        if IsTerminator in traits:
            TERMINATORS.add(op)
        if Elementwise in traits:
            ELEMENTWISE.add(op)
        if RecursiveMemoryEffect in traits:
            RECURSIVE.add(op)
        if Pure in traits or NoMemoryEffect in traits:
            PURE.add(op)
        if Pure in traits and NoMemoryEffect not in traits and IsTerminator not in traits:
            SPECULATABLE.add(op)
        if (MemoryReadEffect in traits) != (MemoryWriteEffect in traits):
            (READ_ONLY if MemoryReadEffect in traits else WRITE_ONLY).add(op)


register(tt.TT)
register(ttg.TTG)


def is_pure(op: Operation) -> bool:
    """`op` neither reads nor writes memory."""
    kind = type(op)
    if kind in PURE:
        return True
    if kind is ttg.LocalAllocOp:
        return is_value_alloc(op)
    if kind in RECURSIVE:
        return all(is_pure(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return kind in DECLARED and is_true(op.properties.get("pure"))


def reads(op: Operation) -> bool:
    """`op` may read memory; unknown ops do."""
    kind = type(op)
    if kind in PURE or kind in WRITE_ONLY:
        return False
    if kind in RECURSIVE:
        return any(reads(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return not (kind in DECLARED and is_true(op.properties.get("pure")))


def writes(op: Operation) -> bool:
    """`op` may write memory, or do something else that must not be lost; unknown ops do.

    A `while` that reads may wait until another program has written: it must not be lost, and memory is different after
    it.
    """
    kind = type(op)
    if kind in PURE:
        return False
    if kind is scf.WhileOp and reads(op):
        return True
    if kind is ttg.LocalAllocOp:
        return "allocation.offset" in op.attributes
    if kind in READ_ONLY:
        return is_true(op.properties.get("isVolatile"))
    if kind in RECURSIVE:
        return any(writes(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return not (kind in DECLARED and is_true(op.properties.get("pure")))


def is_speculatable(op: Operation) -> bool:
    """`op` has no effect and is defined for all operands: it may run where it did not before."""
    kind = type(op)
    if kind in SPECULATABLE or (kind is ttg.LocalAllocOp and is_value_alloc(op)):
        return True
    if kind in DIVISIONS:
        return has_safe_divisor(op)
    if kind is scf.ForOp and not is_constant_one(op.operands[2]):
        return False
    if kind is scf.ForOp or kind is scf.IfOp:
        return all(
            is_speculatable(inner) or type(inner) in TERMINATORS
            for region in op.regions
            for block in region.blocks
            for inner in block.ops
        )
    return kind in DECLARED and is_true(op.properties.get("pure"))


def is_value_alloc(op: Operation) -> bool:
    """A `ttg.local_alloc` of memory that is never written again: as long as it has no address, it is a value."""
    memory = op.results[0].type
    assert isinstance(memory, ttg.MemDescType)
    return not memory.is_mutable and "allocation.offset" not in op.attributes


def is_elementwise(op: Operation) -> bool:
    """Return True if each element of the result depends only on the same elements of the operands."""
    return type(op) in ELEMENTWISE


def is_terminator(op: Operation) -> bool:
    return type(op) in TERMINATORS


def has_safe_divisor(op: Operation) -> bool:
    """The divisor is a constant without 0; nor -1, which overflows a signed division."""
    value = constant_attribute(op.operands[1])
    signed = type(op) is arith.DivSIOp or type(op) is arith.CeilDivSIOp
    unsafe = (0, -1) if signed else (0,)
    if isinstance(value, IntegerAttr):
        return value.value.data not in unsafe
    return isinstance(value, DenseIntOrFPElementsAttr) and not any(divisor in unsafe for divisor in value.iter_values())


def is_constant_one(value: SSAValue) -> bool:
    """`value` is the constant 1."""
    attribute = constant_attribute(value)
    return isinstance(attribute, IntegerAttr) and attribute.value.data == 1


def constant_attribute(value: SSAValue) -> object:
    """The attribute of the constant that defines `value`, or None."""
    if isinstance(value, OpResult) and type(value.op) is arith.ConstantOp:
        return value.op.properties["value"]
    return None
