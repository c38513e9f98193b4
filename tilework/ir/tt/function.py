"""`tt` functions, calls and returns, and ops whose older names are still read."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    CallableOpInterface,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import names
from tilework.ir.tt.shape import ReshapeOp
from tilework.ir.tt.text import (
    UNIT,
    Attributes,
    parse_attr_dict,
    parse_signature,
    parse_values_with_types,
    print_attr_dict,
    print_signature,
    print_values_with_types,
)
from tilework.ir.types import i1, int_attr, string_attr

EMPTY = DictionaryAttr({})
RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


class Callable(CallableOpInterface):
    """The region and type of a function, for passes over calls."""

    @classmethod
    def get_callable_region(cls, op: Operation) -> Region:
        return op.regions[0]

    @classmethod
    def get_argument_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return function_type_of(op).inputs.data

    @classmethod
    def get_result_types(cls, op: Operation) -> tuple[Attribute, ...]:
        return function_type_of(op).outputs.data


def function_type_of(op: Operation) -> FunctionType:
    """The type of a function."""
    type = op.properties["function_type"]
    assert isinstance(type, FunctionType), type
    return type


@cache
def function_type(inputs: tuple[Attribute, ...], outputs: tuple[Attribute, ...]) -> FunctionType:
    """``(i32) -> f32``."""
    return FunctionType.from_lists(inputs, outputs)


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel, or a function that kernels call.

    ``tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} { ... }``
    """

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), Callable())

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
        arg_attrs: Sequence[Attributes] | None = None,
    ) -> Self:
        properties: Attributes = {
            "sym_name": string_attr(name),
            "function_type": function_type(tuple(arg_types), tuple(result_types)),
            "sym_visibility": string_attr(visibility),
        }
        if arg_attrs is not None and any(arg_attrs):
            properties["arg_attrs"] = ArrayAttr([DictionaryAttr(attrs) for attrs in arg_attrs])
        attributes = {"noinline": int_attr(noinline, i1)}
        return cls.create(properties=properties, attributes=attributes, regions=(body,), location=loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        visibility = parser.parse_optional_visibility_keyword()
        name, inputs, outputs, region, extra, arg_attrs, res_attrs = parse_func_op_like(
            parser, reserved_attr_names=RESERVED
        )
        properties: Attributes = {
            "sym_name": string_attr(name),
            "function_type": function_type(tuple(inputs), tuple(outputs)),
        }
        if visibility is not None:
            properties["sym_visibility"] = visibility
        for key, attrs in (("arg_attrs", arg_attrs), ("res_attrs", res_attrs)):
            if attrs is not None and any(entry.data for entry in attrs):
                properties[key] = attrs
        attributes = {} if extra is None else dict(extra.data)
        return cls.create(properties=properties, attributes=attributes, regions=(region,))

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            dict(sorted(self.attributes.items())),
            arg_attrs=self.arg_attrs,
            res_attrs=self.res_attrs,
            reserved_attr_names=RESERVED,
            print_empty_outputs=False,
        )

    def verify_(self) -> None:
        entry = self.body.blocks.first
        if entry is None:
            return
        declared, found = list(self.function_type.inputs), [arg.type for arg in entry.args]
        if declared != found:
            raise VerifyException(
                f"@{self.sym_name.data} takes {names(declared)}, but its entry block has {names(found)}"
            )
        if self.arg_attrs is not None and len(self.arg_attrs) != len(found):
            raise VerifyException(
                f"@{self.sym_name.data} has attributes for {len(self.arg_attrs)} of {len(found)} arguments"
            )


@cache
def callee_property(callee: str) -> Attributes:
    return {"callee": SymbolRefAttr(callee)}


@irdl_op_definition
class CallOp(IRDLOperation):
    """Call a function of the module: ``%y = tt.call @f(%x) : (f32) -> f32``."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    arg_operands = var_operand_def()
    result = var_result_def()

    @classmethod
    def make(cls, callee: str, args: Sequence[SSAValue], result_types: Sequence[Attribute], loc: LocationAttr) -> Self:
        return create_op(cls, args, result_types, loc, callee_property(callee))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        callee = parser.parse_symbol_name()
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        inputs, outputs = parse_signature(parser)
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, position),
            result_types=outputs,
            properties={**properties, **callee_property(callee.data)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.root_reference.data)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        print_attr_dict(self, printer, ("callee",))
        print_signature(self, printer)

    def verify_(self) -> None:
        function = SymbolTable.lookup_symbol(self, self.callee)
        symbol = self.callee.root_reference.data
        if not isinstance(function, FuncOp):
            raise VerifyException(f"'{symbol}' does not reference a valid function")
        inputs, outputs = list(function.function_type.inputs), list(function.function_type.outputs)
        if (found := [value.type for value in self.operands]) != inputs:
            raise VerifyException(f"@{symbol} takes {names(inputs)}, but is called with {names(found)}")
        if (found := [value.type for value in self.results]) != outputs:
            raise VerifyException(f"@{symbol} gives {names(outputs)}, but is called for {names(found)}")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Leave a function: ``tt.return %v : f32``."""

    name = "tt.return"
    srcs = var_operand_def()
    traits = traits_def(Pure(), IsTerminator())

    @classmethod
    def make(cls, values: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, values, (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attr_dict(cls, parser)
        return cls.create(operands=parse_values_with_types(parser), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer)
        print_values_with_types(printer, self.operands)

    def verify_(self) -> None:
        function = self.parent_op()
        if not isinstance(function, FuncOp):
            return
        declared, found = list(function.function_type.outputs), [value.type for value in self.operands]
        if declared != found:
            raise VerifyException(f"@{function.sym_name.data} gives {names(declared)}, but returns {names(found)}")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The older name of a reshape that may reorder: ``tt.view %x : T -> U`` is read as ``tt.reshape`` allow_reorder."""

    name = "tt.view"

    @classmethod
    def parse(cls, parser: Parser) -> ReshapeOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        op = ReshapeOp.parse(parser)
        op.properties["allow_reorder"] = UNIT
        return op
