"""`ttg.warp_specialize`: warps of one block that run different code.

    %r = ttg.warp_specialize(%a, %b)
    default {                                                the warps that came here
      ttg.warp_yield %x : i32
    }
    partition0(%arg0: i32, %arg1: i1) num_warps(4) {         four more, that see nothing but the captured values
      ttg.warp_return
    } : (i32, i1) -> i32

The partitions are the regions of an op of their own, `ttg.warp_specialize.partitions`, in the second region: it is
isolated from above, while the default region is not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import OpPrinter, dictionary
from tilework.ir.declare import Op
from tilework.ir.fields import (
    COMBINE_RETURN,
    fields_of,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from tilework.ir.form_text import operands_text, signature_text
from tilework.ir.types import array_values, i32_array

if TYPE_CHECKING:
    from xdsl.parser import Parser


class WarpYieldOp(Op):
    """The end of the default region, with the results of the op: ``ttg.warp_yield %x : i32``."""

    name = "ttg.warp_yield"
    values = var_operand_def()
    form = COMBINE_RETURN
    traits = traits_def(Pure(), IsTerminator())


class WarpReturnOp(Op):
    """The end of a partition: ``ttg.warp_return``."""

    name = "ttg.warp_return"
    form = "{}"
    traits = traits_def(Pure(), IsTerminator())


class WarpSpecializePartitionsOp(Op):
    """Holds the partitions of a `ttg.warp_specialize`; has no text of its own."""

    name = "ttg.warp_specialize.partitions"
    partitions = var_region_def()
    traits = traits_def(IsolatedFromAbove(), IsTerminator())

    @classmethod
    def make(cls, partitions: Sequence[Region], loc: LocationAttr) -> Self:
        return cls.create(regions=partitions, location=loc)


class WarpSpecializeOp(Op):
    """Give warps different code; see the module."""

    name = "ttg.warp_specialize"
    captures = var_operand_def()
    partition_num_warps = prop_def(DenseArrayBase, prop_name="partitionNumWarps")
    warp_group_start_ids = opt_prop_def(DenseArrayBase, prop_name="warpGroupStartIds")
    requested_registers = opt_prop_def(DenseArrayBase, prop_name="requestedRegisters")
    actual_registers = opt_prop_def(DenseArrayBase, prop_name="actualRegisters")
    result = var_result_def()
    default_region = region_def()
    partition_holder = region_def()

    @classmethod
    def make(
        cls,
        captures: Sequence[SSAValue],
        types: Sequence[Attribute],
        num_warps: Sequence[int],
        default: Region,
        partitions: Sequence[Region],
        loc: LocationAttr,
    ) -> Self:
        return cls.create(
            operands=captures,
            result_types=types,
            properties={"partitionNumWarps": i32_array(*num_warps)},
            regions=(default, holder(partitions, loc)),
            location=loc,
        )

    @property
    def partitions(self) -> Sequence[Region]:
        """The region of each partition."""
        first = self.partition_holder.blocks[0].first_op
        assert isinstance(first, WarpSpecializePartitionsOp), first
        return first.regions

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        extra = parser.parse_optional_attr_dict_with_keyword()
        given: dict[str, Attribute] = {} if extra is None else dict(extra.data)
        parser.parse_keyword("default")
        default = parser.parse_region()
        warps: list[int] = []
        partitions: list[Region] = []
        while parser.parse_optional_keyword(f"partition{len(partitions)}"):
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_capture(parser))
            parser.parse_keyword("num_warps")
            with parser.in_parens():
                warps.append(parser.parse_integer(False, False))
            partitions.append(parser.parse_region(arguments))
        position = parser.pos
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        known = {field.key for field in fields_of(cls).properties.values()}
        op = cls.create(
            operands=parser.resolve_operands(operands, signature.inputs.data, position),
            result_types=signature.outputs.data,
            properties={
                **{name: value for name, value in given.items() if name in known},
                "partitionNumWarps": i32_array(*warps),
            },
            attributes={name: value for name, value in given.items() if name not in known},
            regions=(default, Region(Block([WarpSpecializePartitionsOp.create(regions=partitions)]))),
        )
        return op

    def text(self, printer: OpPrinter) -> str:
        shown = {k: v for k, v in self.properties.items() if k != "partitionNumWarps"} | self.attributes
        extra = f" attributes {dictionary(printer.texts, shown)}" if shown else ""
        printer.out.append(f"({operands_text(printer, self.operands)}){extra}\n{printer.indent}default ")
        printer.region(self.default_region, entry_arguments=False)
        warps = array_values(self.properties["partitionNumWarps"])
        for index, (region, count) in enumerate(zip(self.partitions, warps, strict=True)):
            arguments = ", ".join(map(printer.argument, region.blocks[0].args))
            printer.out.append(f"\n{printer.indent}partition{index}({arguments}) num_warps({count}) ")
            printer.region(region, entry_arguments=False)
        return f" : {signature_text(printer, self)}"

    def verify_(self) -> None:
        first = self.partition_holder.blocks[0].first_op if self.partition_holder.blocks else None
        if not isinstance(first, WarpSpecializePartitionsOp):
            raise VerifyException("ttg.warp_specialize needs ttg.warp_specialize.partitions in its second region")
        warps = array_values(self.partition_num_warps)
        if len(warps) != len(first.regions):
            raise VerifyException(
                f"has {len(first.regions)} partitions but `partitionNumWarps` has {len(warps)} elements"
            )
        for index, count in enumerate(warps):
            if count < 1 or count & (count - 1):
                raise VerifyException(f"partition #{index} number of warps ({count}) must be a power of 2")
        starts = self.warp_group_start_ids
        if starts is not None and (count := len(array_values(starts))) != len(warps):
            raise VerifyException(f"has {count} warp group start IDs but expected {len(warps)}")
        verify_partitions(self, first.regions)
        verify_default(self)


def parse_capture(parser: "Parser") -> "Parser.Argument":
    """``%a: i32``, perhaps with a location."""
    found = parser.parse_argument()
    location = parser.parse_optional_location()
    return found if location is None else parser.Argument(found.name, found.type, location)


def verify_partitions(op: WarpSpecializeOp, partitions: Sequence[Region]) -> None:
    """Check that each partition takes the captured values and returns nothing."""
    wanted = [value.type for value in op.captures]
    for position, region in enumerate(partitions):
        found = [argument.type for argument in region.blocks[0].args] if region.blocks else []
        if len(found) != len(wanted):
            raise VerifyException(f"partition region #{position} has {len(found)} arguments but expected {len(wanted)}")
        for index, (type, captured) in enumerate(zip(found, wanted, strict=True)):
            if type != captured:
                raise VerifyException(
                    f"partition region #{position} argument #{index} has type '{type}' "
                    f"but corresponding capture has type '{captured}'"
                )
        for block in region.blocks:
            last = block.last_op
            if last is None or not (last.successors or isinstance(last, WarpReturnOp)):
                raise VerifyException(f"partition region #{position} must end with ttg.warp_return")


def verify_default(op: WarpSpecializeOp) -> None:
    """The default region yields the results."""
    wanted = [value.type for value in op.result]
    for block in op.default_region.blocks:
        last = block.last_op
        if last is None or not (last.successors or isinstance(last, WarpYieldOp)):
            raise VerifyException("the default region must end with ttg.warp_yield")
        if not isinstance(last, WarpYieldOp):
            continue
        found = [value.type for value in last.operands]
        if len(found) != len(wanted):
            raise VerifyException(f"ttg.warp_yield has {len(found)} operands but parent op expected {len(wanted)}")
        for index, (type, result) in enumerate(zip(found, wanted, strict=True)):
            if type != result:
                raise VerifyException(
                    f"ttg.warp_yield operand #{index} has type '{type}' but parent op expected '{result}'"
                )


def holder(partitions: Sequence[Region], loc: LocationAttr) -> Region:
    """The second region."""
    return Region(Block([WarpSpecializePartitionsOp.make(partitions, loc)]))
