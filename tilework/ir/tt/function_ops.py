"""`tt` functions, calls and returns, and the ops of the running program: its id, prints and assertions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, LocationAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, Region
from xdsl.traits import IsolatedFromAbove, IsTerminator, MemoryWriteEffect, Pure, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import STRING, OpPrinter, bare_or_quoted, dictionary, result_types
from tilework.ir.constraints import ANY, BOOL_LIKE, I1_PROPERTY, I32, I32_ARRAY, Kind, TensorSize, enum_property, names
from tilework.ir.declare import Op
from tilework.ir.enums import ProgramDim
from tilework.ir.fields import (
    ASSERT,
    PRINT,
    RETURN,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from tilework.ir.types import Shape, array_values, i1, i32_array, int_attr, shape_of, string_attr
from tilework.light_dataclass import light_dataclass

if TYPE_CHECKING:
    from xdsl.parser import Parser

VISIBILITIES = ("public", "private", "nested")
RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


def function_type_of(op: Operation) -> FunctionType:
    """The type of a function."""
    type = op.properties["function_type"]
    assert isinstance(type, FunctionType), type
    return type


@cache
def function_type(inputs: tuple[Attribute, ...], outputs: tuple[Attribute, ...]) -> FunctionType:
    """``(i32) -> f32``."""
    return FunctionType.from_lists(inputs, outputs)


@light_dataclass
class Parameter:
    """One entry of the list of arguments; a function without a body may leave the name out."""

    name: "Parser.Argument | None"
    type: Attribute
    attributes: dict[str, Attribute]


def parse_parameter(parser: "Parser") -> Parameter:
    """``%x: i32 {tt.divisibility = 16 : i32} loc("x")`` or ``i32 {tt.divisibility = 16 : i32}``."""
    if (name := parser.parse_optional_argument()) is None:
        type = parser.parse_type()
        return Parameter(None, type, parser.parse_optional_attr_dict())
    assert isinstance(name, parser.Argument)
    attributes = parser.parse_optional_attr_dict()
    if (location := parser.parse_optional_location()) is not None:
        name = parser.Argument(name.name, name.type, location)
    return Parameter(name, name.type, attributes)


def parse_results(parser: "Parser") -> list[tuple[Attribute, dict[str, Attribute]]]:
    """``-> i32`` or ``-> (i32, f32 {k = v})``, perhaps nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return []
    results = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_type(), parser.parse_optional_attr_dict())
    )
    return [(parser.parse_type(), {})] if results is None else list(results)


def parse_body(parser: "Parser", parameters: Sequence[Parameter]) -> Region:
    """``{ ... }``, or nothing for a function that is only declared. The label of the first block may name the
    arguments."""
    named = [parameter.name for parameter in parameters if parameter.name is not None]
    position = parser.pos
    region = parser.parse_optional_region(named)
    entry = None if region is None else region.first_block
    if entry is not None and len(entry.args) != len(parameters):
        parser.raise_error("a function with a body has a name for each argument", position)
    return Region() if region is None else region


class FuncOp(Op):
    """A kernel, or a function that kernels call.

    ``tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} { ... }``
    """

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @classmethod
    def make(
        cls,
        name: str,
        arg_types: Sequence[Attribute],
        result_types: Sequence[Attribute],
        body: Region,
        loc: LocationAttr,
        visibility: str = "public",
        noinline: bool = False,
        arg_attrs: Sequence[dict[str, Attribute]] | None = None,
    ) -> Self:
        properties: dict[str, Attribute] = {
            "sym_name": string_attr(name),
            "function_type": function_type(tuple(arg_types), tuple(result_types)),
            "sym_visibility": string_attr(visibility),
        }
        if arg_attrs is not None and any(arg_attrs):
            properties["arg_attrs"] = ArrayAttr([DictionaryAttr(attrs) for attrs in arg_attrs])
        attributes = {"noinline": int_attr(noinline, i1)}
        return cls.create(properties=properties, attributes=attributes, regions=(body,), location=loc)

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        parameters = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_parameter(parser))
        results = parse_results(parser)
        extra = parser.parse_optional_attr_dict_with_keyword(RESERVED)
        region = parse_body(parser, parameters)
        # Not as they were written: older forms of ops may have given an argument its type of today.
        inputs = region.blocks[0].arg_types if region.blocks else [parameter.type for parameter in parameters]
        properties: dict[str, Attribute] = {
            "sym_name": string_attr(name),
            "function_type": function_type(tuple(inputs), tuple(type for type, _ in results)),
        }
        if visibility is not None:
            properties["sym_visibility"] = visibility
        for key, attrs in (
            ("arg_attrs", [parameter.attributes for parameter in parameters]),
            ("res_attrs", [attributes for _, attributes in results]),
        ):
            if any(attrs):
                properties[key] = ArrayAttr([DictionaryAttr(entry) for entry in attrs])
        attributes = {} if extra is None else dict(extra.data)
        return cls.create(properties=properties, attributes=attributes, regions=(region,))

    def text(self, printer: OpPrinter) -> str:
        properties, texts = self.properties, printer.texts
        type = properties["function_type"]
        assert isinstance(type, FunctionType), type
        visibility: Any = properties.get("sym_visibility")
        keyword = "" if visibility is None else f" {visibility.data}"
        printer.out.append(f"{keyword} @{bare_or_quoted(self.sym_name.data)}(")
        arguments = self.regions[0].blocks[0].args if self.regions[0].blocks else ()
        extras = dictionaries(properties.get("arg_attrs"), len(type.inputs))
        parts: list[str] = []
        for index, (input, extra) in enumerate(zip(type.inputs, extras, strict=True)):
            shown = f" {dictionary(texts, extra)}" if extra else ""
            if arguments:
                location = printer.argument_location(arguments[index].location)
                parts.append(f"{printer.names[arguments[index]]}: {texts.of(input)}{shown}{location}")
            else:
                parts.append(f"{texts.of(input)}{shown}")
        printer.out.append(f"{', '.join(parts)}){function_results(printer, self, tuple(type.outputs))}")
        shown = {key: value for key, value in properties.items() if key not in RESERVED} | self.attributes
        printer.out.append(f" attributes {dictionary(texts, shown)}" if shown else "")
        if self.regions[0].blocks:
            printer.out.append(" ")
            printer.region(self.regions[0], entry_arguments=False, empty_block=False)
        return ""

    def verify_(self) -> None:
        name, type = f"@{self.sym_name.data}", self.function_type
        if self.arg_attrs is not None and len(self.arg_attrs) != len(type.inputs):
            raise VerifyException(f"{name} has attributes for {len(self.arg_attrs)} of {len(type.inputs)} arguments")
        if self.res_attrs is not None and len(self.res_attrs) != len(type.outputs):
            raise VerifyException(f"{name} has attributes for {len(self.res_attrs)} of {len(type.outputs)} results")
        visibility = "public" if self.sym_visibility is None else self.sym_visibility.data
        if visibility not in VISIBILITIES:
            raise VerifyException(f"{name} must be one of {', '.join(VISIBILITIES)}, not {visibility}")
        entry = self.body.blocks.first
        if entry is None:
            if visibility == "public":
                raise VerifyException(f"symbol declaration cannot have public visibility: {name} has no body")
        elif (found := [arg.type for arg in entry.args]) != (declared := list(type.inputs)):
            raise VerifyException(f"{name} takes {names(declared)}, but its entry block has {names(found)}")
        for last in (block.last_op for block in self.body.blocks):
            if last is None or not last.has_trait(IsTerminator):
                raise VerifyException(f"{name} has a block that ends with {last.name if last else 'nothing'}")


def function_results(printer: OpPrinter, op: Operation, types: tuple[Attribute, ...]) -> str:
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


class CallOp(Op):
    """Call a function of the module: ``%y = tt.call @f(%x) : (f32) -> f32``."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    arg_operands = var_operand_def()
    result = var_result_def()
    form = "$callee($arg_operands) {} : signature"
    traits = traits_def()  # what it does to memory is for the called function to say

    def verify_(self) -> None:
        function = SymbolTable.lookup_symbol(self, self.callee)
        symbol = self.callee.root_reference.data
        if not isinstance(function, FuncOp):
            raise VerifyException(f"'{symbol}' does not reference a valid function")
        inputs, outputs = list(function.function_type.inputs), list(function.function_type.outputs)
        verify_types(symbol, "operand", [value.type for value in self.operands], inputs)
        verify_types(symbol, "result", [value.type for value in self.results], outputs)


def verify_types(symbol: str, what: str, found: Sequence[Attribute], declared: Sequence[Attribute]) -> None:
    """The operands (results) of a call are what the function takes (gives)."""
    if len(found) != len(declared):
        raise VerifyException(
            f"incorrect number of {what}s for callee: @{symbol} has {names(declared)}, not {names(found)}"
        )
    for index, (type, other) in enumerate(zip(declared, found, strict=True)):
        if type != other:
            raise VerifyException(
                f"{what} type mismatch: expected {what} type '{type}', but provided '{other}' for {what} number {index}"
            )


class ReturnOp(Op):
    """Leave a function: ``tt.return %v : f32``."""

    name = "tt.return"
    srcs = var_operand_def()
    form = RETURN
    traits = traits_def(Pure(), IsTerminator())

    def verify_(self) -> None:
        function = self.parent_op()
        if not isinstance(function, FuncOp):
            other = "it has none" if function is None else f"its parent is '{function.name}'"
            raise VerifyException(f"tt.return expects parent op 'tt.func', but {other}")
        declared, found = list(function.function_type.outputs), [value.type for value in self.operands]
        symbol = function.sym_name.data
        if len(declared) != len(found):
            raise VerifyException(
                f"has {len(found)} operands, but enclosing function (@{symbol}) returns {len(declared)}"
            )
        for index, (type, other) in enumerate(zip(declared, found, strict=True)):
            if type != other:
                raise VerifyException(
                    f"type of return operand {index} ('{other}') doesn't match function result type ('{type}') "
                    f"in function @{symbol}"
                )


class GetProgramIdOp(Op):
    """The id of this program along an axis: ``%pid = tt.get_program_id x : i32``."""

    name = "tt.get_program_id"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    form = "(? $axis) {} : type($result)"
    traits = traits_def(Pure())


class GetNumProgramsOp(Op):
    """The number of programs along an axis: ``%n = tt.get_num_programs x : i32``."""

    name = "tt.get_num_programs"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    form = "(? $axis) {} : type($result)"
    traits = traits_def(Pure())


def parse_message(parser: "Parser") -> str | None:
    """A string; an older compiler wrote file, function and line behind it."""
    found = parser.parse_optional_str_literal()
    while parser.parse_optional_punctuation(","):
        if parser.parse_optional_str_literal() is None:
            parser.parse_integer()
    return found


MESSAGE: Kind[StringAttr] = Kind(
    "a string", lambda value: isinstance(value, StringAttr), codec=replace(STRING, parse=parse_message)
)


class PrintBase(Op):
    """The base of the `print` ops of tensors and of buffers."""

    prefix = prop_def(StringAttr)
    hex = prop_def(I1_PROPERTY)

    def verify_(self) -> None:
        if (flags := len(array_values(self.properties["isSigned"]))) != len(self.operands):
            raise VerifyException(f"isSigned has {flags} entries for {len(self.operands)} values")


class PrintOp(PrintBase):
    """Print values from the device: ``tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : i32``."""

    name = "tt.print"
    args = var_operand_def(ANY)
    is_signed = prop_def(I32_ARRAY, prop_name="isSigned")
    form = PRINT
    traits = traits_def(MemoryWriteEffect(), TensorSize())


VISIBLE = "tilework.visible"


def set_visible_sizes(op: Operation, sizes: Iterable[Shape]) -> None:
    """Note how much of each operand is no padding, for code that prints or counts the visible elements."""
    op.attributes[VISIBLE] = ArrayAttr([i32_array(*size) for size in sizes])


def visible_sizes(op: Operation) -> list[Shape]:
    """Return the visible size of each operand that `op` had before its tiles were padded."""
    if isinstance(given := op.attributes.get(VISIBLE), ArrayAttr):
        return [array_values(size) for size in given]
    return [shape_of(operand.type) for operand in op.operands]


class AssertOp(Op):
    """Stop the kernel with a message where the condition is false: ``tt.assert %cond, "message" : tensor<8xi1>``."""

    name = "tt.assert"
    condition = operand_def(BOOL_LIKE)
    message = prop_def(MESSAGE)
    form = ASSERT
    traits = traits_def(MemoryWriteEffect(), TensorSize())
