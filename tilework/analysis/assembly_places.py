"""What the text of inline assembly asks about its place on the GPU: which block runs it, or which threads run beside it.

    tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", ...)        the block: which program that is must stay as it was
    tl.inline_asm_elementwise("bar.sync 0; ...", ...)              all warps: they must run the same code

Assembly may be declared pure and ask, as both are the same for all of a program.
"""

import re

from xdsl.ir import Operation

from tilework.ir import tt

BLOCK = re.compile(r"%n?(ctaid|clusterid|cluster_\w+)")
THREADS = re.compile(r"%n?(tid|warpid)\b|\b(bar|barrier)\.(?!warp)")


def asks_for_block(op: Operation) -> bool:
    return type(op) is tt.ElementwiseInlineAsmOp and BLOCK.search(op.asm_string.data) is not None


def asks_for_threads(op: Operation) -> bool:
    return type(op) is tt.ElementwiseInlineAsmOp and THREADS.search(op.asm_string.data) is not None
