"""The meaning of the language's builtins: check the operands, then build the ops.

A builtin of `tilework.language` checks nothing itself. It calls the method of the same name here:

    semantic = Semantic(builder, options)
    pid = semantic.program_id(0)                       tt.get_program_id x : i32
    offsets = semantic.add(semantic.mul(pid, 64), semantic.arange(0, 64))

`Semantic` is made of one mixin per family of operations, each in the file of that name. Rejected operands raise
`ValueError`, `TypeError` or `AssertionError` with the values in the text; the frontend adds the position in the
user's source.
"""

from typing import Any

from tilework.frontend.semantic.load_store import MemoryMixin
from tilework.frontend.semantic.operands import ValuesMixin
from tilework.frontend.semantic.running import ProgramMixin
from tilework.ir.builder import Builder
from tilework.language import core as tl

from .arith import ArithMixin
from .atomics import AtomicMixin
from .casts import CastMixin
from .compare import CompareMixin
from .descriptors import DescriptorMixin
from .dot import DotMixin
from .elementwise import ElementwiseMixin
from .pointers import BlockPointerMixin
from .reduce import ReduceMixin
from .shape import ShapeMixin


class Semantic(
    ValuesMixin,
    ArithMixin,
    CompareMixin,
    CastMixin,
    ElementwiseMixin,
    ShapeMixin,
    MemoryMixin,
    BlockPointerMixin,
    DescriptorMixin,
    AtomicMixin,
    DotMixin,
    ReduceMixin,
    ProgramMixin,
):
    """Builds the ops of builtins at the insertion point of `builder`; `options` describe the target and the build."""

    tensor = tl.tensor

    def __init__(self, builder: Builder, options: Any) -> None:
        self.builder = builder
        self.options = options
        self.argument_hints = {}
