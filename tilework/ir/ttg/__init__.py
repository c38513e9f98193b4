"""The `ttg` dialect: tiles laid out over threads, and shared memory.

One file per family of ops. All names are here too, so that users
write ``ttg.ConvertLayoutOp``. Encodings are in `ir/encodings.py`.
"""

# ruff: noqa: F403

from xdsl.ir import Dialect

from tilework.ir.declare import dialect_ops
from tilework.ir.encodings import ENCODING_ATTRIBUTES
from tilework.ir.ttg.memory_types import *
from tilework.ir.ttg.memory_types import AsyncTokenType, MemDescType
from tilework.ir.ttg.shared_memory_ops import *
from tilework.ir.ttg.tensor_ops import *
from tilework.ir.ttg.warp_specialize_ops import *

TTG = Dialect("ttg", dialect_ops("ttg"), [*ENCODING_ATTRIBUTES, MemDescType, AsyncTokenType])
