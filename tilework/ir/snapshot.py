"""Locations that point into the text of a module itself, for debugging a compiler with the tools of its users.

    module = snapshot_locations(module, "/cache/KEY/add.ttir")      # loc("/cache/KEY/add.ttir":4:5)

What comes after (other stages, machine code, profiles) then names lines of that file instead of lines of the kernel.
"""

from bisect import bisect_right

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir.locations import file_loc, unknown
from tilework.ir.parser import IRParser, parse_module
from tilework.ir.printer import print_module


class PlaceParser(IRParser):
    """Every op gets the place at which its text starts; with `only_missing` those that have no location."""

    def __init__(self, text: str, filename: str, only_missing: bool = False) -> None:
        super().__init__(text, filename)
        self.file, self.only_missing = filename, only_missing
        self.line_starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        if self.only_missing and op.location != unknown:
            return op
        line = bisect_right(self.line_starts, start)
        op.location = file_loc(self.file, line, start - self.line_starts[line - 1] + 1)
        return op


def snapshot_locations(module: ModuleOp, path: str) -> ModuleOp:
    """The same module, with the places of its ops in the text that stands in `path`."""
    return PlaceParser(print_module(module), path).parse_module()


def parse_with_places(text: str, path: str, only_missing: bool) -> ModuleOp:
    """The module that a user's file holds, with the places of its ops in it (of those without a location, if so asked)."""
    return parse_module(text, path, lambda text, path: PlaceParser(text, path, only_missing))
