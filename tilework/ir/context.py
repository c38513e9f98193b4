"""The xDSL context with every dialect of the compiler, built once."""

from functools import cache

from xdsl.context import Context
from xdsl.dialects import cf, math, scf, ub
from xdsl.dialects.builtin import Builtin

from tilework.ir.amdg import AMDG, ROCDL
from tilework.ir.arith_ext import Arith
from tilework.ir.gpu import GPU
from tilework.ir.legacy.shared_tensor_ops import TRITON_GPU
from tilework.ir.legacy.tt_ops import OLD_TT_OPS
from tilework.ir.llvm import LLVM
from tilework.ir.tt import TT
from tilework.ir.ttc import TTC
from tilework.ir.ttg import TTG
from tilework.ir.ttng import TTNG

DIALECTS = (Builtin, Arith, math.Math, scf.Scf, cf.Cf, ub.UB, GPU, LLVM, TT, TTC, TTG, TTNG, TRITON_GPU, AMDG, ROCDL)


@cache
def make_context() -> Context:
    """The shared context; callers must not load more into it."""
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    for op in OLD_TT_OPS:
        context.load_op(op)
    return context
