"""The `ttng` dialect: what NVIDIA GPUs from Hopper on have, warp-group dots, barriers and TMA.

All names are here too, so that users write ``ttng.WarpGroupDotOp``.
"""

# ruff: noqa: F403

from xdsl.ir import Dialect

from tilework.ir.declare import dialect_ops
from tilework.ir.ttng.barrier_ops import *
from tilework.ir.ttng.tensormap_ops import *
from tilework.ir.ttng.tma_ops import *
from tilework.ir.ttng.warp_group_dot_ops import *

TTNG = Dialect("ttng", dialect_ops("ttng"))
