"""The names of values: what stands after `%` in the text.

A value is named after its source name, if its location has one; constants after their value (`%c16_i32`, `%cst`,
`%true`); other arguments are `%arg0`, other results `%0`. A name taken twice gets a suffix from one counter that
runs through the whole function, so `%x`, `%y`, `%x_0`, `%y_1` appear in this order:

    %pid = tt.get_program_id x : i32                          "pid"
    %c16_i32 = arith.constant 16 : i32                        no name: the constant's own
    %pid_0 = arith.muli %pid, %c16_i32 : i32                  "pid" again
    %acc:2 = scf.for %k = ... iter_args(%a = ..., %b = ...)   several results share a name: %acc#0, %acc#1

All values of a region are named before those of the regions nested in it, and each of these starts with the counters
its parent ended with; that is why sibling regions reuse names. Values read from text keep the name they had there
(their name hint) unless a location says otherwise.
"""

import re

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tilework.ir.locations import name_of

# Ops that name their results one by one.
RESULT_NAMES: dict[str, tuple[str, ...]] = {
    "tt.split": ("outLHS", "outRHS"),
    "arith.addui_extended": ("sum", "overflow"),
}
PLAIN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789$._-")
IDENTIFIER = re.compile(r"[A-Za-z_$.-][\w$.-]*", re.ASCII)


class Names(dict[SSAValue, str]):
    def __missing__(self, value: SSAValue) -> str:
        return "%<unnamed value>"  # of another tree


class ValueNames:
    """`of[value]` is the text of each value, `%` included; `results[op]` the left-hand side of ops with several results."""

    def __init__(self, root: Operation, from_locations: bool = True) -> None:
        self.of: dict[SSAValue, str] = Names()
        self.results: dict[Operation, str] = {}
        self._from_locations = from_locations
        self._source_names: dict[int, str | None] = {}  # by id of the location
        self._used: set[str] = set()
        self._value = self._argument = self._conflict = 0
        self._name_results(root)
        self._name_regions(root)

    def _name_regions(self, root: Operation) -> None:
        """Depth first, with an explicit stack: a list entry is the names to forget when its region is left."""
        stack: list[tuple[Region, int, int, int] | list[str]] = [
            (region, self._value, self._argument, self._conflict) for region in reversed(root.regions)
        ]
        while stack:
            entry = stack.pop()
            if isinstance(entry, list):
                self._used.difference_update(entry)
                continue
            region, self._value, self._argument, self._conflict = entry
            self._added: list[str] = []
            stack.append(self._added)
            nested = self._name_values_of(region)
            counters = (self._value, self._argument, self._conflict)
            stack.extend((inner, *counters) for inner in reversed(nested))

    def _name_values_of(self, region: Region) -> list[Region]:
        """Name the values of one region; returns the regions of its ops."""
        nested: list[Region] = []
        names = self.of
        entry = True
        for block in region.blocks:
            for argument in block.args:
                default = None
                if entry:
                    default = f"arg{self._argument}"
                    self._argument += 1
                names[argument] = self._text(self._given_name(argument, argument.location) or default)
            entry = False
            for op in block.ops:
                if op.results:
                    self._name_results(op)
                if op.regions:
                    nested.extend(op.regions)
        return nested

    def _name_results(self, op: Operation) -> None:
        results = op.results
        if len(results) == 1:
            result = results[0]
            name = self._given_name(result, op.location)
            if name is None and type(op) is ConstantOp:
                name = constant_name(op.properties["value"])
            self.of[result] = self._text(name)
            return
        if not results:
            return
        hints = [result.name_hint for result in results]
        source = self._source_name(op.location)
        if (defaults := RESULT_NAMES.get(op.name)) is not None:
            chosen = [source or hint or default for hint, default in zip(hints, defaults, strict=True)]
        elif source is None and None not in hints and len(set(hints)) == len(hints):
            chosen = hints
        else:
            group = self._text(source or hints[0])
            for index, result in enumerate(results):
                self.of[result] = f"{group}#{index}"
            self.results[op] = f"{group}:{len(results)} = "
            return
        for result, name in zip(results, chosen, strict=True):
            self.of[result] = self._text(name)
        self.results[op] = ", ".join(self.of[result] for result in results) + " = "

    def _given_name(self, value: SSAValue, location: LocationAttr) -> str | None:
        return self._source_name(location) or value.name_hint

    def _source_name(self, location: LocationAttr) -> str | None:
        if not self._from_locations:
            return None
        key = id(location)
        if key not in self._source_names:
            self._source_names[key] = name_of(location)
        return self._source_names[key]

    def _text(self, name: str | None) -> str:
        """`%name`, made unique; numbers when there is no name."""
        if name is None:
            number = self._value
            self._value = number + 1
            return f"%{number}"
        if IDENTIFIER.fullmatch(name) is None:
            name = identifier(name)
        used = self._used
        if name in used:
            stem = name
            while name in used:
                name = f"{stem}_{self._conflict}"
                self._conflict += 1
        used.add(name)
        self._added.append(name)
        return f"%{name}"

    _added: list[str] = []  # names of the region being visited; the root op itself has none


def constant_name(value: Attribute) -> str:
    """`c16_i32`, `c5` (index), `true`, or `cst`."""
    if not isinstance(value, IntegerAttr):
        return "cst"
    if not isinstance(value.type, IntegerType):
        return f"c{value.value.data}"
    if value.type.width.data == 1:
        return "true" if value.value.data else "false"
    return f"c{value.value.data}_{value.type}"


def identifier(name: str) -> str:
    """`name` with what an identifier may not have replaced: blanks by `_`, other bytes by their code."""
    text = "".join(chr(byte) if byte in PLAIN_BYTES else "_" if byte == 0x20 else f"{byte:X}" for byte in name.encode())
    return f"_{text}" if text[0].isdigit() else text
