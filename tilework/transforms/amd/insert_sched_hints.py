"""Tell LLVM's scheduler what a loop is (`schedule_hint="attention"`): one dot of it is the left operand of another.

    scf.for ... { amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<attention>} ...

Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tilework.ir import amdg, tt
from tilework.ir.enums import SchedHint
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import insert_before
from tilework.transforms.amd.matrix_choice import is_chain_head
from tilework.transforms.passes import Pass


class InsertInstructionSchedHintsPass(Pass):
    name = "triton-amdgpu-insert-instruction-sched-hints"
    variant: str = "none"

    def run(self, module: ModuleOp) -> None:
        if self.variant != SchedHint.ATTENTION.keyword:
            return
        for op in tuple(module.walk()):
            if type(op) is scf.ForOp and any(type(one) is tt.DotOp and is_chain_head(one) for one in body_of(op).ops):
                insert_before(start_of(body_of(op)), amdg.InstructionSchedHintOp.make(SchedHint.ATTENTION, op.location))
