"""The `tt` dialect: kernels on tiles, before the tiles are laid out over threads.

One file per family of ops. All names are here too, so that
users write ``tt.SplatOp``.
"""

# ruff: noqa: F403

from xdsl.ir import Dialect

from tilework.ir.declare import dialect_ops
from tilework.ir.tt.elementwise_ops import *
from tilework.ir.tt.function_ops import *
from tilework.ir.tt.memory_ops import *
from tilework.ir.tt.reduce_ops import *
from tilework.ir.tt.shape_ops import *
from tilework.ir.types import PointerType, TensorDescType

TT = Dialect("tt", dialect_ops("tt"), [PointerType, TensorDescType])
