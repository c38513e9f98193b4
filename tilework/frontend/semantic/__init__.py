"""The ops of the language's builtins.

A builtin of `tilework.language` calls the method of the same name; the rules of `tilework.language.typing` check its operands
and give them their types, and one method here builds the ops:

    semantic = Semantic(builder, options)
    pid = semantic.program_id(0)                       tt.get_program_id x : i32
    offsets = semantic.add(semantic.mul(pid, 64), semantic.arange(0, 64))

`Semantic` has one mixin per family of operations, each in the file of that name; `self` is the whole of it. What is refused raises `ValueError`,
`TypeError` or `AssertionError` with the values in the text; the frontend adds the position in the user's source.
"""

from typing import Any

from xdsl.dialects.builtin import LocationAttr

from tilework.errors import LIBRARY, warn_beyond_triton
from tilework.frontend.semantic.arith import ArithMixin
from tilework.frontend.semantic.casts import CastMixin
from tilework.frontend.semantic.constants import ConstantMixin
from tilework.frontend.semantic.dot import DotMixin
from tilework.frontend.semantic.indexing import IndexMixin
from tilework.frontend.semantic.load_store import MemoryMixin
from tilework.frontend.semantic.reduce import ReduceMixin
from tilework.frontend.semantic.running import ProgramMixin
from tilework.frontend.semantic.shape import ShapeMixin
from tilework.frontend.semantic.windows import WindowMixin
from tilework.ir.builder import Builder
from tilework.ir.locations import source_positions
from tilework.language.semantic import Semantic as Meaning


class Semantic(
    ConstantMixin,
    ArithMixin,
    CastMixin,
    ShapeMixin,
    IndexMixin,
    MemoryMixin,
    WindowMixin,
    DotMixin,
    ReduceMixin,
    ProgramMixin,
    Meaning,
):
    """Builds the ops of builtins at the insertion point of `builder`; `options` describe the target and the build."""

    def __init__(self, builder: Builder, options: Any) -> None:
        self.builder = builder
        self.options = options
        self.argument_hints = {}
        self.takes_turns = False  # whether there are atomics at which programs take turns
        self.called_at: tuple[LocationAttr, ...] = ()  # the calls that led to the function that is being compiled

    def beyond_triton(self, refusal: Exception) -> None:
        """An error or a warning, at the user's line, where programs shall run on Triton too."""
        if self.options.beyond_triton == "error":
            raise refusal
        if self.options.beyond_triton == "warn":
            places = [place for loc in (self.builder.loc, *reversed(self.called_at)) for place in source_positions(loc)]
            file, line, _ = next((place for place in places if not place[0].startswith(LIBRARY)), places[0])
            warn_beyond_triton(refusal, file, line)
