"""Modules as text, as the reference compiler writes them.

    module {
      tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
        %c16_i32 = arith.constant 16 : i32
        ...

Attributes and aliases come from `ir/attr_text.py`, ops from their forms (`ir/declare.py`). Here are the layout
(blocks, regions, locations) and the names of values. Ops that have no form use the generic one:

    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      ...
    }) : (tensor<64xf32>) -> tensor<64xf32>

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
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr, ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tilework.ir.arith import ConstantOp
from tilework.ir.attr_text import AttributeText, OpPrinter, bare_or_quoted, dictionary, integer_type_text
from tilework.ir.form_text import WRITERS, operands_text, signature_text, writer_of
from tilework.ir.locations import name_of
from tilework.ir.nesting import ops_around, predecessors

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
    """`of[value]` is the text of each value, `%` included; `results[op]` the left-hand side of ops with several
    results."""

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
        """`%name`, made unique; an index if there is no name."""
        if name is None:
            index = self._value
            self._value = index + 1
            return f"%{index}"
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
    return f"c{value.value.data}_{integer_type_text(value.type)}"


def identifier(name: str) -> str:
    """`name` with what an identifier may not have replaced: blanks by `_`, other bytes by their code."""
    text = "".join(chr(byte) if byte in PLAIN_BYTES else "_" if byte == 0x20 else f"{byte:X}" for byte in name.encode())
    return f"_{text}" if text[0].isdigit() else text


def print_module(op: Operation, debuginfo: bool = False, nameloc_prefix: bool = True) -> str:
    """The text of `op` (a module, or any op, with the names that values have in the module) and all it contains.

    `debuginfo` writes locations; `nameloc_prefix` names values after their locations.
    """
    return ModulePrinter(op, debuginfo, nameloc_prefix).text()


class ModulePrinter:
    """Appends text to `out`; `indent` is the white space before the op being printed."""

    def __init__(self, root: Operation, debuginfo: bool, nameloc_prefix: bool) -> None:
        self.root = root
        self.debuginfo = debuginfo
        self.value_names = ValueNames([root, *ops_around(root)][-1], nameloc_prefix)
        self.names = self.value_names.of
        self.texts = AttributeText()
        self.out: list[str] = []
        self.indent = ""
        self.blocks: dict[Block, str] = {}

    def text(self) -> str:
        self.op(self.root)
        return self.texts.finish(self.out)

    def op(self, op: Operation) -> None:
        """One op with its results, location and line end."""
        # The location takes its alias before those inside the op.
        location = self.texts.location(op.location) if self.debuginfo else ""
        name, results = op.name, op.results
        if not results:
            left = ""
        elif len(results) == 1:
            left = f"{self.names[results[0]]} = "
        else:
            left = self.value_names.results[op]
        writer = writer_of(op.__class__)
        if writer is not None:
            self.out.append(f"{self.indent}{left}{'module' if name == 'builtin.module' else name}")
            self.out.append(f"{writer(self, op)}{location}\n")
            return
        if isinstance(op, UnregisteredOp):
            attributes = {key: value for key, value in op.attributes.items() if key != "op_name__"}
            self.generic(op, left, op.op_name.data, attributes)
        else:
            self.generic(op, left, name, op.attributes)
        self.out.append(f"{location}\n")

    def generic(self, op: Operation, left: str, name: str, attributes: Mapping[str, Attribute]) -> None:
        successors = f"[{', '.join(map(self.block_name, op.successors))}]" if op.successors else ""
        properties = f" <{dictionary(self.texts, op.properties)}>" if op.properties else ""
        self.out.append(f'{self.indent}{left}"{name}"({operands_text(self, op.operands)}){successors}{properties}')
        for index, region in enumerate(op.regions):
            self.out.append(", " if index else " (")
            self.region(region)
        if op.regions:
            self.out.append(")")
        extra = f" {dictionary(self.texts, attributes)}" if attributes else ""
        self.out.append(f"{extra} : {signature_text(self, op)}")

    def region(
        self, region: Region, *, entry_arguments: bool = True, empty_block: bool = True, terminators: bool = True
    ) -> None:
        """``{ ... }``, indented by two; labels have the indentation of the op."""
        blocks = list(region.blocks)
        for index, block in enumerate(blocks):
            self.blocks[block] = f"^bb{index}"
        before = predecessors(blocks) if len(blocks) > 1 else {}
        self.out.append("{\n")
        outer, self.indent = self.indent, self.indent + "  "
        for index, block in enumerate(blocks):
            labelled = (
                (entry_arguments and bool(block.args)) or (empty_block and block.is_empty) if index == 0 else True
            )
            if labelled:
                self.label(block, outer, self.predecessor_comment(before.get(block, []), index))
            for op in block.ops:
                if terminators or op is not block.last_op or not is_implicit(op):
                    self.op(op)
        self.indent = outer
        self.out.append(f"{outer}}}")

    def label(self, block: Block, indent: str, comment: str) -> None:
        arguments = f"({', '.join(map(self.argument, block.args))})" if block.args else ""
        self.out.append(f"{indent}{self.blocks[block]}{arguments}:{comment}\n")

    def predecessor_comment(self, predecessors: list[Block], index: int) -> str:
        names = ", ".join(self.blocks[block] for block in predecessors)
        if len(predecessors) == 1:
            return f"  // pred: {names}"
        if predecessors:
            return f"  // {len(predecessors)} preds: {names}"
        return "  // no predecessors" if index else ""

    def argument(self, argument: BlockArgument) -> str:
        """``%x: i32 loc("x"(#loc))``."""
        type = self.texts.of(argument.type)
        return f"{self.names[argument]}: {type}{self.argument_location(argument.location)}"

    def argument_location(self, location: LocationAttr) -> str:
        return self.texts.argument_location(location) if self.debuginfo else ""

    def block_name(self, block: Block) -> str:
        return self.blocks.get(block, "^<unlinked block>")


def is_implicit(op: Operation) -> bool:
    """A terminator that says nothing: it is left out where the op around it allows that."""
    return not op.operands and not op.attributes and op.has_trait(IsTerminator)


def write_module(printer: OpPrinter, op: Operation) -> str:
    name: Any = op.properties.get("sym_name", op.attributes.get("sym_name"))
    printer.out.append(f" @{bare_or_quoted(name.data)}" if name is not None else "")
    shown = {key: value for key, value in (op.properties | op.attributes).items() if key != "sym_name"}
    printer.out.append(f" attributes {dictionary(printer.texts, shown)} " if shown else " ")
    printer.region(op.regions[0], empty_block=False)
    return ""


WRITERS[ModuleOp] = write_module
