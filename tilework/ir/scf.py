"""The `scf` dialect: loops and branches with regions, their loop options as attributes, and additional loop-carried
values.

    %r = scf.for %i = %a to %b step %c iter_args(%x = %y) -> (f32)  : i32 { ... } {tt.num_stages = 3 : i32}
    tl.range(0, n, num_stages=4, flatten=True)   ->   {tt.flatten, tt.num_stages = 4 : i32}

Loops and branches get further values, after the existing ones:

    (%n,) = also_carry(loop, [%zero])            scf.for ... iter_args(..., %n = %zero) -> (..., i32)
    also_yield(body_of(loop), [%next])             scf.yield ..., %next
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from xdsl.dialects.builtin import IndexType, LocationAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from tilework.ir.arith import is_int_or_index
from tilework.ir.attr_text import OpPrinter, result_types
from tilework.ir.constraints import I1, Kind
from tilework.ir.create import add_result, append_op, create_op
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.fields import (
    RETURN,
    operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from tilework.ir.form_text import attributes_text, signature_text, types_text
from tilework.ir.llvm import LICM_DISABLED
from tilework.ir.locations import unknown
from tilework.ir.nesting import body_of, end_of, ops_around
from tilework.ir.types import i1, i32, index, int_attr

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand

BOUND = Kind("an integer or index", is_int_or_index)


def read_types(parser: "Parser") -> Sequence[Attribute]:
    """``-> i32`` or ``-> (i32, f32)``, perhaps nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return (parser.parse_type(),) if types is None else types


def read_body(parser: "Parser", arguments: Sequence["Parser.Argument"] = ()) -> Region:
    """``{ ... }``; the yield of nothing at its end may be left out."""
    region = parser.parse_region(arguments)
    last = region.blocks[-1].last_op
    if last is None or not last.has_trait(IsTerminator, value_if_unregistered=False):
        append_op(region.blocks[-1], create_op(YieldOp, (), (), unknown))
    return region


def read_assignment(parser: "Parser") -> tuple["Parser.UnresolvedArgument", "UnresolvedOperand"]:
    """``%a = %x``."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def assignments(printer: OpPrinter, arguments: Iterable[SSAValue], values: Iterable[SSAValue]) -> str:
    """``(%a = %x, %b = %y)``."""
    names = printer.names
    pairs = zip(arguments, values, strict=True)
    return f"({', '.join(f'{names[argument]} = {names[value]}' for argument, value in pairs)})"


class YieldOp(Op):
    """Pass values on at the end of a region: ``scf.yield %x : f32``."""

    name = "scf.yield"
    arguments = var_operand_def()
    form = RETURN
    traits = traits_def(IsTerminator(), Pure())


class ConditionOp(Op):
    """Go on with a `while` loop, or leave it: ``scf.condition(%c) %x : f32``."""

    name = "scf.condition"
    condition = operand_def(I1)
    args = var_operand_def()
    form = "($condition) {}(? $args : type($args))"
    traits = traits_def(IsTerminator(), Pure())


class ForOp(Op):
    """A counted loop with carried values; its block takes the induction variable, then one argument per value.

    ``%r = scf.for %i = %a to %b step %c iter_args(%x = %y) -> (f32)  : i32 { ... } {k = v}``
    """

    name = "scf.for"
    lb = operand_def(BOUND)
    ub = operand_def(BOUND)
    step = operand_def(BOUND)
    iter_args = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        """``%i = %a to %b step %c iter_args(%x = %y) -> (f32) : i32 { ... } {k = v}``; the index type is optional."""
        variable = parser.parse_argument(expect_type=False)
        bounds = []
        for separator in ("=", "to", "step"):
            parser.parse_characters(separator)
            bounds.append(parser.parse_unresolved_operand())
        pairs = []
        if parser.parse_optional_keyword("iter_args"):
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: read_assignment(parser))
        position = parser.pos
        types = read_types(parser)
        type = parser.parse_type() if parser.parse_optional_punctuation(":") else index
        limits = [parser.resolve_operand(bound, type) for bound in bounds]
        carried = parser.resolve_operands([operand for _, operand in pairs], types, position)
        arguments = [argument.resolve(value.type) for (argument, _), value in zip(pairs, carried, strict=True)]
        body = read_body(parser, [variable.resolve(type), *arguments])  # pyright: ignore[reportAttributeAccessIssue]
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=[*limits, *carried], result_types=types, attributes=attributes, regions=[body])

    def text(self, printer: OpPrinter) -> str:
        lower, upper, step, *initial = self.operands
        variable, *carried = self.regions[0].blocks[0].args
        names = printer.names
        text = f" {names[variable]} = {names[lower]} to {names[upper]} step {names[step]} "
        if initial:
            text += f"iter_args{assignments(printer, carried, initial)} -> ({types_text(printer, self.results)}) "
        if not isinstance(variable.type, IndexType):
            text += f" : {printer.texts.of(variable.type)} "
        printer.out.append(text)
        printer.region(self.regions[0], entry_arguments=False, empty_block=False, terminators=bool(initial))
        return attributes_text(printer, self)


class IfOp(Op):
    """One of two regions: ``%r = scf.if %c -> (i32) { ... } else { ... } {k = v}``."""

    name = "scf.if"
    cond = operand_def(I1)
    output = var_result_def()
    true_region = region_def("single_block")
    false_region = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        """``%c -> (i32) { ... } else { ... } {k = v}``."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        types = read_types(parser)
        regions = [read_body(parser), read_body(parser) if parser.parse_optional_keyword("else") else Region()]
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=(condition,), result_types=types, attributes=attributes, regions=regions)

    def text(self, printer: OpPrinter) -> str:
        results = f" -> ({types_text(printer, self.results)})" if self.results else ""
        printer.out.append(f" {printer.names[self.operands[0]]}{results} ")
        for position, region in enumerate(self.regions):
            if region.blocks or not position:
                printer.out.append(" else " if position else "")
                printer.region(region, entry_arguments=False, empty_block=False, terminators=bool(self.results))
        return attributes_text(printer, self)


class WhileOp(Op):
    """A loop whose first region decides whether its second one runs.

    ``%r = scf.while (%a = %x) : (i32) -> i32 { ... } do { ... } attributes {k = v}``
    """

    name = "scf.while"
    arguments = var_operand_def()
    res = var_result_def()
    before_region = region_def("single_block")
    after_region = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        """``(%a = %x) : (i32) -> i32 { ... } do { ... } attributes {...}``, or `` : () -> () { ... }``."""
        pairs = (
            parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: read_assignment(parser)) or []
        )
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        values = parser.resolve_operands([operand for _, operand in pairs], types.inputs.data, position)
        arguments = [argument.resolve(value.type) for (argument, _), value in zip(pairs, values, strict=True)]
        before = parser.parse_region(arguments)
        parser.parse_keyword("do")
        after = parser.parse_region()
        extra = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            operands=values,
            result_types=types.outputs.data,
            attributes={} if extra is None else dict(extra.data),
            regions=[before, after],
        )

    def text(self, printer: OpPrinter) -> str:
        before, after = self.regions
        start = f" {assignments(printer, before.blocks[0].args, self.operands)}" if self.operands else ""
        printer.out.append(f"{start} : {signature_text(printer, self)} ")
        printer.region(before, entry_arguments=False, empty_block=False)
        printer.out.append(" do ")
        printer.region(after, empty_block=False)
        extra = attributes_text(printer, self)
        return f" attributes{extra}" if extra else ""


class ExecuteRegionOp(Op):
    """A region of several blocks, executed once: ``%r = scf.execute_region -> i32 { ... }``. One that is `no_inline`
    keeps its ops together."""

    name = "scf.execute_region"
    no_inline = opt_prop_def(UnitAttr)
    outs = var_result_def()
    region = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        types = read_types(parser)
        given = {"no_inline": UnitAttr()} if parser.parse_optional_keyword("no_inline") is not None else {}
        region = read_body(parser)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=types, properties=given, attributes=attributes, regions=[region])

    def text(self, printer: OpPrinter) -> str:
        types = tuple(result.type for result in self.results)
        printer.out.append(f" -> {result_types(printer.texts, types)} " if types else " ")
        if "no_inline" in self.properties:
            printer.out.append("no_inline ")
        printer.region(self.regions[0], empty_block=False)
        return attributes_text(printer, self, ("no_inline",))


Scf = Dialect("scf", dialect_ops("scf"), [])
LOOPS: frozenset[type[Operation]] = frozenset({ForOp, WhileOp})


def loop_around(op: Operation, kinds: Collection[type[Operation]] = LOOPS) -> Operation | None:
    """The innermost loop that holds `op`."""
    return next((outer for outer in ops_around(op) if type(outer) in kinds), None)


def make_for(
    lb: SSAValue,
    ub: SSAValue,
    step: SSAValue,
    iter_args: Sequence[SSAValue],
    body_region: Region,
    loc: LocationAttr,
    attributes: Mapping[str, Attribute] | None = None,
) -> ForOp:
    """``scf.for``; the body's block takes the index, then one argument per carried value."""
    return ForOp.create(
        operands=(lb, ub, step, *iter_args),
        result_types=[value.type for value in iter_args],
        attributes=attributes or {},
        regions=(body_region,),
        location=loc,
    )


def make_if(
    cond: SSAValue,
    result_types: Sequence[Attribute],
    then_region: Region,
    else_region: Region | None,
    loc: LocationAttr,
) -> IfOp:
    """``scf.if``; both regions end with a yield."""
    return IfOp.create(
        operands=(cond,),
        result_types=result_types,
        regions=(then_region, Region() if else_region is None else else_region),
        location=loc,
    )


def make_while(
    inits: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    before_region: Region,
    after_region: Region,
    loc: LocationAttr,
) -> WhileOp:
    """``scf.while``; `before_region` ends with a condition, `after_region` with a yield."""
    return WhileOp.create(
        operands=inits, result_types=result_types, regions=(before_region, after_region), location=loc
    )


def make_yield(values: Sequence[SSAValue], loc: LocationAttr) -> YieldOp:
    """``scf.yield``."""
    return create_op(YieldOp, values, (), loc)


def make_condition(cond: SSAValue, values: Sequence[SSAValue], loc: LocationAttr) -> ConditionOp:
    """``scf.condition``: go on with the loop while `cond`; `values` go to the body, or are the results."""
    return create_op(ConditionOp, (cond, *values), (), loc)


NUMBERS = ("num_stages", "loop_unroll_factor")
UNIT = UnitAttr()
COUNTED = "tt.counted"  # of an `scf.while`: a `for` that may be left early
SKIPS = "tt.skips"  # of a loop: it has `continue`


def loop_attributes(hints: Mapping[str, Any]) -> dict[str, Attribute]:
    """The attributes of a loop, in alphabetical order; a hint that is None or False is absent."""
    found: dict[str, Attribute] = {}
    for name, value in sorted(hints.items()):
        if value is None or value is False:
            continue
        if name == "disable_licm":
            found["llvm.loop_annotation"] = LICM_DISABLED
        else:
            found[f"tt.{name}"] = int_attr(int(value), i32) if name in NUMBERS else UNIT
    return dict(sorted(found.items()))


def also_carry(loop: Operation, values: Sequence[SSAValue], location: LocationAttr = unknown) -> list[BlockArgument]:
    """The new arguments of an `scf.for`, which starts with `values` and has results for them; yields are for the
    caller."""
    body = body_of(loop)
    loop.operands = (*loop.operands, *values)
    for value in values:
        also_give(loop, value.type)
    return [body.insert_arg(value.type, len(body.args), location) for value in values]


def also_give(op: Operation, type: Attribute) -> OpResult:
    """A further result; the name that was given to those before does not cover all of them."""
    for result in op.results:
        result.name_hint = None
    return add_result(op, type)


def also_yield(block: Block, values: Sequence[SSAValue]) -> None:
    """Hand `values` on at the end of `block`, too."""
    end = end_of(block)
    end.operands = (*end.operands, *values)


def both_sides(branch: Operation) -> list[Block]:
    """The blocks of an `scf.if`; one that it lacks is made."""
    for region in branch.regions:
        if not region.blocks:
            region.add_block(Block([make_yield((), branch.location)]))
    return [region.blocks[0] for region in branch.regions]


def carry_beside(
    op: Operation,
    wanted: Callable[[SSAValue], bool],
    types: Callable[[SSAValue], Sequence[Attribute]],
    given: Callable[[SSAValue, SSAValue, Operation], Sequence[SSAValue]],
    learn: Callable[[SSAValue, Sequence[SSAValue]], None],
    visit: Callable[[Block], None] = lambda block: None,
) -> None:
    """Let a loop or branch hand on, beside each value that is `wanted`, further ones of the `types` for it.

    `given(value, like, before)` are those of a value that becomes `like`, known in front of `before`. The
    values added beside an argument or a result are passed to `learn`; a block is visited after its arguments and before
    its terminator.
    """

    def hand(end: Operation, first: int, likes: Sequence[SSAValue]) -> None:
        pairs = [(end.operands[first + n], like) for n, like in enumerate(likes) if wanted(like)]
        end.operands = (*end.operands, *[new for value, like in pairs for new in given(value, like, end)])

    def through(block: Block, arguments: Sequence[SSAValue], first: int, likes: Sequence[SSAValue]) -> None:
        for argument in arguments:
            if wanted(argument):
                learn(argument, [block.insert_arg(type, len(block.args)) for type in types(argument)])
        visit(block)
        hand(end_of(block), first, likes)

    blocks, results = [region.blocks[0] for region in op.regions if region.blocks], tuple(op.results)
    own = [tuple(block.args) for block in blocks]
    if type(op) is ForOp:
        hand(op, 3, own[0][1:])
        through(blocks[0], own[0][1:], 0, results)
    elif type(op) is WhileOp:
        hand(op, 0, own[0])
        through(blocks[0], own[0], 1, own[1])
        through(blocks[1], own[1], 0, own[0])
    else:
        for block in blocks:
            through(block, (), 0, results)
    for result in results:
        if wanted(result):
            learn(result, [also_give(op, type) for type in types(result)])
