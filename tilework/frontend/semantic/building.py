"""What all families of operations build on: the insertion point, the options, and an op as a value."""

from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.errors import LIBRARY, warn_beyond_triton
from tilework.ir.builder import Builder
from tilework.ir.locations import source_positions
from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.language.semantic import Semantic as Meaning


class Building(Meaning):
    """Builds ops at the insertion point of `builder`; `options` describe the target and the build."""

    def __init__(self, builder: Builder, options: Any) -> None:
        self.builder = builder
        self.options = options
        self.argument_hints: dict[SSAValue, dict[str, Attribute]] = {}
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

    def _emit(self, op: Operation, type: dtype) -> tl.tensor:
        return tl.tensor(self.builder.insert(op).results[0], type)
