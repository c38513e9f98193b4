"""The `ttg` dialect: tiles laid out over threads, and shared memory.

One file per family of ops (`convert`, `memory`, `views`, `async_copy`, ...). All names are here too, so that users
write ``ttg.ConvertLayoutOp``. Encodings are in `ir/encodings.py`.
"""

from xdsl.ir import Dialect

from tilework.ir.declare import dialect_ops
from tilework.ir.encodings import ENCODING_ATTRIBUTES
from tilework.ir.ttg.async_copy_ops import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from tilework.ir.ttg.convert_op import ConvertLayoutOp, Fp4ToFpOp
from tilework.ir.ttg.legacy import OLD_NAMES, MemDescSubviewOp
from tilework.ir.ttg.memdesc_types import AsyncTokenType, MemDescType, async_token, is_memdesc, memdesc_type
from tilework.ir.ttg.predicated_ops import MaskOp, MaskReturnOp, PredicateStageOp
from tilework.ir.ttg.shared_memory_ops import (
    GlobalScratchAllocOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalDeallocOp,
    LocalLoadOp,
    LocalStoreOp,
)
from tilework.ir.ttg.view_ops import (
    MemDescIndexOp,
    MemDescReinterpretOp,
    MemDescReshapeOp,
    MemDescSubsliceOp,
    MemDescTransOp,
)
from tilework.ir.ttg.warp_specialize_ops import WarpReturnOp, WarpSpecializeOp, WarpSpecializePartitionsOp, WarpYieldOp

TTG = Dialect(
    "ttg",
    [*dialect_ops("ttg"), *sorted(OLD_NAMES, key=lambda op: op.name)],
    [*ENCODING_ATTRIBUTES, MemDescType, AsyncTokenType],
)

__all__ = [
    "OLD_NAMES",
    "TTG",
    "AsyncCommitGroupOp",
    "AsyncCopyGlobalToLocalOp",
    "AsyncTokenType",
    "AsyncWaitOp",
    "ConvertLayoutOp",
    "Fp4ToFpOp",
    "GlobalScratchAllocOp",
    "LocalAllocOp",
    "LocalBarrierOp",
    "LocalDeallocOp",
    "LocalLoadOp",
    "LocalStoreOp",
    "MaskOp",
    "MaskReturnOp",
    "MemDescIndexOp",
    "MemDescReinterpretOp",
    "MemDescReshapeOp",
    "MemDescSubsliceOp",
    "MemDescSubviewOp",
    "MemDescTransOp",
    "MemDescType",
    "PredicateStageOp",
    "WarpReturnOp",
    "WarpSpecializeOp",
    "WarpSpecializePartitionsOp",
    "WarpYieldOp",
    "async_token",
    "is_memdesc",
    "memdesc_type",
]
