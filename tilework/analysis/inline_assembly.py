"""Inline assembly that depends on the block that runs it, or on the threads that run with it.

    tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", ...)    the block: programs must not be remapped to other blocks
    tl.inline_asm_elementwise("bar.sync 0; ...", ...)          all warps: they must run the same code

Such assembly may be declared pure, because both are uniform in a program.
"""

import re

from xdsl.ir import Operation

from tilework.ir import tt

BLOCK = re.compile(r"%n?(ctaid|clusterid|cluster_\w+)")
THREADS = re.compile(r"%n?(tid|warpid)\b|\b(bar|barrier)\.(?!warp)")


def depends_on_block(op: Operation) -> bool:
    return type(op) is tt.ElementwiseInlineAsmOp and BLOCK.search(op.asm_string.data) is not None


def depends_on_threads(op: Operation) -> bool:
    return type(op) is tt.ElementwiseInlineAsmOp and THREADS.search(op.asm_string.data) is not None
