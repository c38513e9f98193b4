"""Modules as text, as the reference compiler writes them.

    module {
      tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
        %c16_i32 = arith.constant 16 : i32
        ...

Names come from `ir/names.py`, attributes and aliases from `ir/attr_text.py`, most ops from `ir/op_text.py`. Here are
the layout (blocks, regions, locations) and the ops that have regions. An op that none of these tables knows prints
itself through xDSL's printer, wired to the same names and attributes; unregistered ops use the generic form:

    %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      ...
    }) : (tensor<64xf32>) -> tensor<64xf32>
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FunctionType, IndexType, LocationAttr, ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from tilework.ir.attr_text import AttributeText, dictionary, result_types, signature
from tilework.ir.declare import writer_of
from tilework.ir.names import ValueNames
from tilework.ir.op_text import (
    LEAVES,
    attributes_text,
    generic_head,
    generic_tail,
    symbol_text,
    types_text,
)


def print_module(op: Operation, debuginfo: bool = False, nameloc_prefix: bool = True) -> str:
    """The text of `op` (a module, or any op) and all it contains.

    `debuginfo` writes locations; `nameloc_prefix` names values after their locations.
    """
    return ModulePrinter(op, debuginfo, nameloc_prefix).text()


class ModulePrinter:
    """Appends text to `out`; `indent` is the white space before the op being printed."""

    def __init__(self, root: Operation, debuginfo: bool, nameloc_prefix: bool) -> None:
        self.root = root
        self.debuginfo = debuginfo
        self.value_names = ValueNames(root, nameloc_prefix)
        self.names = self.value_names.of
        self.texts = AttributeText()
        self.out: list[str] = []
        self.indent = ""
        self.blocks: dict[Block, str] = {}

    @cached_property
    def self_printer(self) -> "SelfPrinter":
        """xDSL's printer, writing here."""
        return SelfPrinter(self)

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
        if (leaf := LEAVES.get(name)) is not None:
            self.out.append(f"{self.indent}{left}{name}{leaf(self, op)}{location}\n")
            return
        if (nested := NESTED.get(name)) is not None:
            self.out.append(f"{self.indent}{left}{'module' if name == 'builtin.module' else name}")
            nested(self, op)
        elif (writer := writer_of(type(op))) is not None:
            self.out.append(f"{self.indent}{left}{name}")
            self.out.append(writer(self, op))
        elif isinstance(op, UnregisteredOp):
            attributes = {key: value for key, value in op.attributes.items() if key != "op_name__"}
            self.generic(op, left, op.op_name.data, attributes)
        elif type(op).print is Operation.print:
            self.generic(op, left, name, op.attributes)
        else:
            self.out.append(f"{self.indent}{left}{name}")
            op.print(self.self_printer)
        self.out.append(f"{location}\n")

    def generic(self, op: Operation, left: str, name: str, attributes: Mapping[str, Attribute]) -> None:
        self.out.append(f'{self.indent}{left}"{name}"{generic_head(self, op)}')
        for index, region in enumerate(op.regions):
            self.out.append(", " if index else " (")
            self.region(region)
        if op.regions:
            self.out.append(")")
        self.out.append(generic_tail(self, op, attributes))

    def region(
        self, region: Region, *, entry_arguments: bool = True, empty_block: bool = True, terminators: bool = True
    ) -> None:
        """``{ ... }``, indented by two; labels stand at the indentation of the op."""
        blocks = list(region.blocks)
        for index, block in enumerate(blocks):
            self.blocks[block] = f"^bb{index}"
        predecessors = predecessor_blocks(blocks) if len(blocks) > 1 else {}
        self.out.append("{\n")
        outer, self.indent = self.indent, self.indent + "  "
        for index, block in enumerate(blocks):
            labelled = (
                (entry_arguments and bool(block.args)) or (empty_block and block.is_empty) if index == 0 else True
            )
            if labelled:
                self.label(block, outer, self.predecessor_comment(predecessors.get(block, []), index))
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


def predecessor_blocks(blocks: list[Block]) -> dict[Block, list[Block]]:
    """The blocks that branch to each block, one entry per edge, in the order of the region."""
    found: dict[Block, list[Block]] = {}
    for block in blocks:
        if block.last_op is not None:
            for successor in block.last_op.successors:
                found.setdefault(successor, []).append(block)
    return found


def print_module_op(printer: ModulePrinter, op: Operation) -> None:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    printer.out.append(f" {symbol_text(name)}" if name is not None else "")
    shown = {key: value for key, value in (op.properties | op.attributes).items() if key != "sym_name"}
    printer.out.append(f" attributes {dictionary(printer.texts, shown)} " if shown else " ")
    printer.region(op.regions[0], empty_block=False)


FUNCTION_PROPERTIES = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


def print_function(printer: ModulePrinter, op: Operation) -> None:
    """`tt.func` and `func.func`."""
    properties, texts = op.properties, printer.texts
    type = properties["function_type"]
    assert isinstance(type, FunctionType), type
    visibility: Any = properties.get("sym_visibility")
    word = "" if visibility is None else f" {visibility.data}"
    printer.out.append(f"{word} {symbol_text(properties['sym_name'])}(")
    arguments = op.regions[0].blocks[0].args if op.regions[0].blocks else ()
    extras = dictionaries(properties.get("arg_attrs"), len(type.inputs))
    parts: list[str] = []
    for index, (input, extra) in enumerate(zip(type.inputs, extras, strict=True)):
        shown = f" {dictionary(texts, extra)}" if extra else ""
        if arguments:
            location = printer.argument_location(arguments[index].location)
            parts.append(f"{printer.names[arguments[index]]}: {texts.of(input)}{shown}{location}")
        else:
            parts.append(f"{texts.of(input)}{shown}")
    printer.out.append(f"{', '.join(parts)}){function_results(printer, op, tuple(type.outputs))}")
    shown = {key: value for key, value in properties.items() if key not in FUNCTION_PROPERTIES} | op.attributes
    printer.out.append(f" attributes {dictionary(texts, shown)}" if shown else "")
    if op.regions[0].blocks:
        printer.out.append(" ")
        printer.region(op.regions[0], entry_arguments=False, empty_block=False)


def function_results(printer: ModulePrinter, op: Operation, types: tuple[Attribute, ...]) -> str:
    """`` -> (i32, f32 {k = v})``, or nothing."""
    if not types:
        return ""
    extras = dictionaries(op.properties.get("res_attrs"), len(types))
    if not any(extras):
        return f" -> {result_types(printer.texts, types)}"
    of = printer.texts.of
    parts = [of(t) + (f" {dictionary(printer.texts, e)}" if e else "") for t, e in zip(types, extras, strict=True)]
    return f" -> ({', '.join(parts)})"


def dictionaries(attribute: Attribute | None, count: int) -> list[Mapping[str, Attribute]]:
    """The attributes of each argument or result; empty ones where there are none."""
    if not isinstance(attribute, ArrayAttr):
        return [{}] * count
    return [entry.data for entry in attribute]  # pyright: ignore[reportAttributeAccessIssue]


def assignments(printer: ModulePrinter, arguments: Iterable[SSAValue], values: Iterable[SSAValue]) -> str:
    """``(%a = %x, %b = %y)``."""
    names = printer.names
    pairs = zip(arguments, values, strict=True)
    return f"({', '.join(f'{names[argument]} = {names[value]}' for argument, value in pairs)})"


def print_for(printer: ModulePrinter, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    variable, *carried = op.regions[0].blocks[0].args
    names = printer.names
    text = f" {names[variable]} = {names[lower]} to {names[upper]} step {names[step]} "
    if initial:
        types = types_text(printer, op.results)
        text += f"iter_args{assignments(printer, carried, initial)} -> ({types}) "
    if not isinstance(variable.type, IndexType):
        text += f" : {printer.texts.of(variable.type)} "
    printer.out.append(text)
    printer.region(op.regions[0], entry_arguments=False, empty_block=False, terminators=bool(initial))
    printer.out.append(attributes_text(printer, op))


def print_if(printer: ModulePrinter, op: Operation) -> None:
    results = f" -> ({types_text(printer, op.results)})" if op.results else ""
    printer.out.append(f" {printer.names[op.operands[0]]}{results} ")
    yields = bool(op.results)
    then, *others = op.regions
    printer.region(then, entry_arguments=False, empty_block=False, terminators=yields)
    for other in others:
        if other.blocks:
            printer.out.append(" else ")
            printer.region(other, entry_arguments=False, empty_block=False, terminators=yields)
    printer.out.append(attributes_text(printer, op))


def print_while(printer: ModulePrinter, op: Operation) -> None:
    before, after = op.regions
    start = f" {assignments(printer, before.blocks[0].args, op.operands)}" if op.operands else ""
    types = signature(printer.texts, (v.type for v in op.operands), (v.type for v in op.results))
    printer.out.append(f"{start} : {types} ")
    printer.region(before, entry_arguments=False, empty_block=False)
    printer.out.append(" do ")
    printer.region(after, empty_block=False)
    if extra := attributes_text(printer, op):
        printer.out.append(f" attributes{extra}")


def print_execute_region(printer: ModulePrinter, op: Operation) -> None:
    types = tuple(result.type for result in op.results)
    printer.out.append(f" -> {result_types(printer.texts, types)} " if types else " ")
    printer.region(op.regions[0], empty_block=False)
    printer.out.append(attributes_text(printer, op))


NESTED: dict[str, Callable[[ModulePrinter, Operation], None]] = {
    ModuleOp.name: print_module_op,
    "tt.func": print_function,
    "func.func": print_function,
    "scf.for": print_for,
    "scf.if": print_if,
    "scf.while": print_while,
    "scf.execute_region": print_execute_region,
}


class SelfPrinter(Printer):
    """xDSL's printer for ops that print themselves, with the names, attributes and layout of a `ModulePrinter`."""

    def __init__(self, owner: ModulePrinter) -> None:
        super().__init__(OutputList(owner.out))
        self.owner = owner

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self.owner.names.get(value, "%<unnamed value>")
        self.print_string(name)
        return name[1:]

    def print_attribute(self, attribute: Attribute) -> None:
        self.print_string(self.owner.texts.of(attribute))

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        self.print_string(dictionary(self.owner.texts, attr_dict))

    def print_block_name(self, block: Block) -> str:
        name = self.owner.block_name(block)
        self.print_string(name)
        return name[1:]

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        self.print_string(self.owner.argument(arg) if print_type else self.owner.names[arg])

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        self.owner.region(
            region,
            entry_arguments=print_entry_block_args,
            empty_block=print_empty_block,
            terminators=print_block_terminators,
        )

    def print_op(self, op: Operation) -> None:
        self.owner.op(op)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        """The next line, at the indentation of the op."""
        self.print_string(f"\n{self.owner.indent}")


class OutputList(StringIO):
    """A stream that appends to a list."""

    def __init__(self, parts: list[str]) -> None:
        super().__init__()
        self.parts = parts

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)
