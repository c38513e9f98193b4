"""Assembly that reads the clock of 100 MHz, which `tl.extra.hip.memrealtime` is, as LLVM's function: no assembler is needed."""

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.targets.amd.lower.own_rules import lowers
from tilework.targets.gpu import foreign
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.llvm.rules import text_of
from tilework.targets.llvm.types import i64

READS_CLOCK = ("s_memrealtime $0", "s_sendmsg_rtn_b64 $0, sendmsg(MSG_RTN_GET_REALTIME)")


@lowers(tt.ElementwiseInlineAsmOp, overrides=True)
def lower_inline_asm(low: Lowering, op: Operation) -> list[Registers]:
    first, *others = text_of(op, "asm_string").strip().splitlines()
    if first in READS_CLOCK and all(line.strip().startswith("s_waitcnt") for line in others):
        return [(low.builder.call("llvm.readsteadycounter", i64, []),)]
    return foreign.lower_inline_asm(low, op)
