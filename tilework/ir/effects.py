"""What an op does to memory, as table look-ups by class.

    reads   it may read memory                 tt.load, atomics, unknown ops
    writes  it may write memory, print, stop   tt.store, atomics, tt.print, unknown ops
    pure    neither; ops with a body are as pure as the ops in it

A pure op may still be undefined for some operands (a division by zero): only `is_speculatable` ops may be moved to
where they were not executed before.
"""

from xdsl.dialects import arith, cf, math, scf, ub
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import tt, ttc, ttg, ttng
from tilework.ir.arith_ext import Arith
from tilework.ir.tt.text_parts import is_true

Ops = frozenset[type[Operation]]

TERMINATORS: Ops = frozenset(
    {
        cf.BranchOp,
        cf.ConditionalBranchOp,
        scf.ConditionOp,
        scf.YieldOp,
        tt.MapElementwiseReturnOp,
        tt.ReduceReturnOp,
        tt.ReturnOp,
        tt.ScanReturnOp,
        ttc.EndOp,
        ttc.YieldOp,
        ttg.MaskReturnOp,
        ttg.WarpReturnOp,
        ttg.WarpYieldOp,
    }
)
TT_ELEMENTWISE: Ops = frozenset(
    {
        tt.AddPtrOp,
        tt.BitcastOp,
        tt.ClampFOp,
        tt.FpToFpOp,
        tt.IntToPtrOp,
        tt.MulhiUIOp,
        tt.PreciseDivFOp,
        tt.PreciseSqrtOp,
        tt.PtrToIntOp,
    }
)
# Effects follow from the property `pure`.
DECLARED: Ops = frozenset({tt.ExternElementwiseOp, tt.ElementwiseInlineAsmOp})
# Effects are those of the ops inside.
RECURSIVE: Ops = frozenset({scf.ForOp, scf.IfOp, scf.WhileOp, scf.ExecuteRegionOp, tt.MapElementwiseOp, ttg.MaskOp})
# Undefined or expensive where the divisor is 0.
DIVISIONS: Ops = frozenset({arith.DivSIOp, arith.DivUIOp, arith.CeilDivSIOp, arith.CeilDivUIOp})
ELEMENTWISE: Ops = (
    frozenset(Arith.operations) - {arith.ConstantOp} | frozenset(math.Math.operations) | TT_ELEMENTWISE | DECLARED
)
PURE: Ops = (
    frozenset(Arith.operations)
    | frozenset(math.Math.operations)
    | TT_ELEMENTWISE
    | TERMINATORS
    | {
        ub.PoisonOp,
        tt.AdvanceOp,
        tt.BroadcastOp,
        tt.CatOp,
        tt.DotOp,
        tt.DotScaledOp,
        tt.ExpandDimsOp,
        tt.GatherOp,
        tt.GetNumProgramsOp,
        tt.GetProgramIdOp,
        tt.HistogramOp,
        tt.JoinOp,
        tt.MakeRangeOp,
        tt.MakeTensorDescOp,
        tt.MakeTensorPtrOp,
        tt.ReduceOp,
        tt.ReshapeOp,
        tt.ScanOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        tt.UnsplatOp,
        ttc.TableOp,
        ttg.ConvertLayoutOp,
        ttg.Fp4ToFpOp,
        ttg.MemDescIndexOp,
        ttg.MemDescReinterpretOp,
        ttg.MemDescReshapeOp,
        ttg.MemDescSubsliceOp,
        ttg.MemDescTransOp,
        ttg.PredicateStageOp,
        ttng.ReinterpretTensorDescOp,
    }
)
SPECULATABLE: Ops = PURE - TERMINATORS - DIVISIONS - {tt.CatOp}
READ_ONLY: Ops = frozenset(
    {tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp, ttc.ReadOp, ttg.LocalLoadOp, ttng.WarpGroupDotOp}
)
# A buffer is made where it is allocated: two allocations are not one, but one that is unused may go. So is one filled by
# a `ttg.local_alloc`, which nobody else can see yet.
WRITE_ONLY: Ops = frozenset({tt.StoreOp, tt.PrintOp, tt.AssertOp, ttc.WriteOp, ttg.LocalStoreOp})


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
    if kind in PURE or kind in WRITE_ONLY or kind is ttg.LocalAllocOp:
        return False
    if kind in RECURSIVE:
        return any(reads(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return not (kind in DECLARED and is_true(op.properties.get("pure")))


def writes(op: Operation) -> bool:
    """`op` may write memory, or do something else that must not be lost; unknown ops do.

    A `while` that reads may wait until another program has written: it must not be lost, and memory is different after it.
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
    """Each element of the result depends on the same element of the operands."""
    return type(op) in ELEMENTWISE


def is_terminator(op: Operation) -> bool:
    """`op` ends a block."""
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
