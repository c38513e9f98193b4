"""The `ttng` dialect: what NVIDIA GPUs from Hopper on have, warp-group dots, barriers and TMA.

All names are here too, so that users write ``ttng.WarpGroupDotOp``.
"""

from xdsl.ir import Dialect

from tilework.ir.declare import dialect_ops
from tilework.ir.ttng.barrier_ops import (
    ArriveBarrierOp,
    AsyncCopyMbarrierArriveOp,
    BarrierExpectOp,
    ClusterArriveOp,
    ClusterWaitOp,
    FenceAsyncSharedOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
)
from tilework.ir.ttng.tensormap_ops import ReinterpretTensorDescOp, TensormapCreateOp, TensormapFenceproxyAcquireOp
from tilework.ir.ttng.tma_ops import (
    AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp,
    AsyncTMAGatherOp,
    AsyncTMAReduceOp,
    AsyncTMAScatterOp,
    AsyncTMAStoreWaitOp,
)
from tilework.ir.ttng.warp_group_dot_ops import WarpGroupDotOp, WarpGroupDotWaitOp

TTNG = Dialect("ttng", dialect_ops("ttng"))

__all__ = [
    "TTNG",
    "ArriveBarrierOp",
    "AsyncCopyMbarrierArriveOp",
    "AsyncTMACopyGlobalToLocalOp",
    "AsyncTMACopyLocalToGlobalOp",
    "AsyncTMAGatherOp",
    "AsyncTMAReduceOp",
    "AsyncTMAScatterOp",
    "AsyncTMAStoreWaitOp",
    "BarrierExpectOp",
    "ClusterArriveOp",
    "ClusterWaitOp",
    "FenceAsyncSharedOp",
    "InitBarrierOp",
    "InvalBarrierOp",
    "ReinterpretTensorDescOp",
    "TensormapCreateOp",
    "TensormapFenceproxyAcquireOp",
    "WaitBarrierOp",
    "WarpGroupDotOp",
    "WarpGroupDotWaitOp",
]
