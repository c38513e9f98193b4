"""The contract of each stage of the compiler, for tests of passes: which ops and types may appear.

check_stage(module, "ttir")      raises StageError: tt.splat: ttir has no encodings, but found tensor<4xf32, #...>
check_stage(module, "ttgir")     raises StageError: tt.splat: every tensor of ttgir has an encoding, but found
                                 tensor<4xf32>
"""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation

from tilework.ir import cf, math, scf, ub
from tilework.ir.amdg import AMDG, ROCDL
from tilework.ir.arith import Arith
from tilework.ir.effects import DECLARED, ELEMENTWISE
from tilework.ir.llvm import LLVM
from tilework.ir.tt import (
    TT,
    AdvanceOp,
    AtomicCASOp,
    AtomicRMWOp,
    CallOp,
    ExternElementwiseOp,
    FuncOp,
    GetNumProgramsOp,
    GetProgramIdOp,
    LoadOp,
    MakeTensorPtrOp,
    ReturnOp,
    StoreOp,
)
from tilework.ir.ttc import TTC
from tilework.ir.ttg import TTG, BarrierOp, MaskOp, MaskReturnOp, PredicateStageOp
from tilework.ir.ttng import TTNG
from tilework.ir.types import PointerType, TensorDescType, is_tensor
from tilework.ir.verify import layout_problem


@dataclass(frozen=True)
class Stage:
    """The ops of a stage, whether it has tensors, and whether all of those have encodings or none has one."""

    name: str
    ops: frozenset[type[Operation]]
    encodings: bool
    tensors: bool = True


class StageError(Exception):
    """An op that does not belong to a stage."""

    def __init__(self, stage: str, op: Operation, reason: str) -> None:
        super().__init__(f"{op.name}: {reason}\n{op}")
        self.stage, self.op, self.reason = stage, op, reason


TTIR = Stage(
    name="ttir",
    ops=frozenset(
        {
            ModuleOp,
            *TT.operations,
            *Arith.operations,
            *math.Math.operations,
            BarrierOp,
            *LLVM.operations,
            scf.ForOp,
            scf.IfOp,
            scf.WhileOp,
            scf.ConditionOp,
            scf.YieldOp,
            cf.BranchOp,
            cf.ConditionalBranchOp,
            ub.PoisonOp,
        }
    ),
    encodings=False,
)
SCALAR_TT = frozenset(
    {
        *(ExternElementwiseOp, LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp),
        *(GetProgramIdOp, GetNumProgramsOp, FuncOp, CallOp, ReturnOp),
        *(ELEMENTWISE.intersection(TT.operations) - DECLARED),
    }
)
OTHER_TT = frozenset(TT.operations) - SCALAR_TT
TTCIR = Stage(
    name="ttcir",
    ops=TTIR.ops - OTHER_TT | {*TTC.operations, scf.ExecuteRegionOp},
    encodings=False,
    tensors=False,
)
# Block pointers are gone before; predicated code lives only inside the pipeliner.
TTGIR = Stage(
    name="ttgir",
    ops=(TTIR.ops | {*TTG.operations, *TTNG.operations, *AMDG.operations, *ROCDL.operations})
    - {AdvanceOp, MakeTensorPtrOp, MaskOp, MaskReturnOp, PredicateStageOp},
    encodings=True,
)
STAGES = {stage.name: stage for stage in (TTIR, TTCIR, TTGIR)}


def check_stage(module: ModuleOp, stage: str) -> None:
    """Raise for the first op of `module` that breaks the contract of `stage`."""
    contract = STAGES[stage]
    for op in module.walk():
        if type(op) not in contract.ops:
            raise StageError(stage, op, f"is not an op of {stage}")
        if not contract.tensors and (found := first_tensor(types_in(op))) is not None:
            raise StageError(stage, op, f"{stage} has no tensors, but found {found}")
        if not contract.encodings and (found := first_encoded(types_in(op))) is not None:
            raise StageError(stage, op, f"{stage} has no encodings, but found {found}")
        if contract.encodings and (found := first_bare(types_in(op))) is not None:
            raise StageError(stage, op, f"every tensor of {stage} has an encoding, but found {found}")
        if contract.encodings and (problem := layout_problem(op)) is not None:
            raise StageError(stage, op, problem)


def types_in(op: Operation) -> Iterable[Attribute]:
    """The types of the results of `op` and of the arguments of its blocks."""
    for result in op.results:
        yield result.type
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                yield argument.type


def first_tensor(types: Iterable[Attribute]) -> Attribute | None:
    """The first type that is, or points to, a tensor."""
    for type in types:
        if is_tensor(type.pointee if isinstance(type, PointerType) else type) or isinstance(type, TensorDescType):
            return type
    return None


def first_bare(types: Iterable[Attribute]) -> Attribute | None:
    """The first tensor without an encoding."""
    for type in types:
        if isinstance(type, TensorType) and isinstance(type.encoding, NoneAttr):
            return type
    return None


def first_encoded(types: Iterable[Attribute]) -> Attribute | None:
    """The first type that is, points to or describes a tensor with an encoding."""
    for type in types:
        inner = type
        if isinstance(inner, PointerType):
            inner = inner.pointee
        elif isinstance(inner, TensorDescType):
            inner = inner.block
        if isinstance(inner, TensorType) and not isinstance(inner.encoding, NoneAttr):
            return type
    return None
