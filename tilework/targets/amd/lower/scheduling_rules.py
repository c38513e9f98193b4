"""Rules for scheduling: priorities of waves, barriers to LLVM's scheduler, barriers of some waves.

rocdl.s.setprio 1          call void @llvm.amdgcn.s.setprio(i16 1) rocdl.sched.barrier 0      call void
@llvm.amdgcn.sched.barrier(i32 0) amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<attention>}
call void @llvm.amdgcn.iglp.opt(i32 2) amdg.cond_barrier %p       br i1 %p, label %wait, label %after         wait: call
void @llvm.amdgcn.s.barrier()

Assembly that reads the clock of 100 MHz, which `tl.extra.hip.memrealtime` is, as LLVM's function: no assembler is
needed.
"""

from xdsl.ir import Operation

from tilework.ir import amdg, tt
from tilework.targets.amd.lower import lowers
from tilework.targets.gpu import foreign
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.llvm.rules import number_of, text_of
from tilework.targets.llvm.types import i16, i32, i64, void
from tilework.targets.llvm.values import Value, constant

READS_CLOCK = ("s_memrealtime $0", "s_sendmsg_rtn_b64 $0, sendmsg(MSG_RTN_GET_REALTIME)")


@lowers(tt.ElementwiseInlineAsmOp, overrides=True)
def lower_inline_asm(low: Lowering, op: Operation) -> list[Registers]:
    first, *others = text_of(op, "asm_string").strip().splitlines()
    if first in READS_CLOCK and all(line.strip().startswith("s_waitcnt") for line in others):
        return [(low.builder.call("llvm.readsteadycounter", i64, []),)]
    return foreign.lower_inline_asm(low, op)


def tell(low: Lowering, name: str, *args: Value) -> None:
    low.builder.call(f"llvm.amdgcn.{name}", void, args, attributes="convergent")


@lowers(amdg.SetPrioOp, amdg.SchedBarrierOp)
def lower_setting(low: Lowering, op: Operation) -> None:
    is_priority = type(op) is amdg.SetPrioOp
    setting = constant(i16, number_of(op, "priority")) if is_priority else constant(i32, number_of(op, "mask"))
    tell(low, "s.setprio" if is_priority else "sched.barrier", setting)


@lowers(amdg.InstructionSchedHintOp)
def lower_hint(low: Lowering, op: Operation) -> None:
    """The number of the variant is that of LLVM's strategy."""
    if variant := number_of(op, "variant"):
        tell(low, "sched.barrier", constant(i32, 0))
        tell(low, "iglp.opt", constant(i32, variant))


@lowers(amdg.CondBarrierOp)
def lower_cond_barrier(low: Lowering, op: Operation) -> None:
    """Orders no memory: the waves that wait here are one barrier behind the others."""
    (pred,) = low[op.operands[0]]
    with low.builder.if_(pred):
        tell(low, "s.barrier")


@lowers(amdg.WorkitemIdXOp)
def lower_workitem(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.thread_id(low.builder),)
