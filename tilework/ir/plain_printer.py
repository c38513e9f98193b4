"""xDSL's printer as what our text functions write to: for ops that are printed alone, as in a message."""

from collections.abc import Callable
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.printer import Printer


class PlainPrinter:
    """Names and attributes as xDSL's printer writes them."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self.names: Any = Lookup(self.of_value)
        self.texts: Any = self
        self.out: Any = self
        self.append = printer.print_string

    def captured(self, print: Callable[[Any], Any], what: Any) -> str:
        outer, self.printer.stream = self.printer.stream, StringIO()
        try:
            print(what)
            return self.printer.stream.getvalue()
        finally:
            self.printer.stream = outer

    def of_value(self, value: SSAValue) -> str:
        return self.captured(self.printer.print_ssa_value, value)

    def of(self, attribute: Attribute) -> str:
        return self.captured(self.printer.print_attribute, attribute)

    def argument_location(self, location: LocationAttr) -> str:
        return ""

    def block_name(self, block: Block) -> str:
        return self.captured(self.printer.print_block_name, block)

    def region(
        self, region: Region, *, entry_arguments: bool = True, empty_block: bool = True, terminators: bool = True
    ) -> None:
        self.printer.print_region(region, entry_arguments, empty_block, terminators)


class Lookup:
    """A mapping that computes its values."""

    def __init__(self, compute: Callable[[Any], str]) -> None:
        self.compute = compute

    def __getitem__(self, key: Any) -> str:
        return self.compute(key)
