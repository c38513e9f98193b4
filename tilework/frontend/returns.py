"""Returned values: the result type of a function is decided once all of its `return` statements are known.

    def f(x):
        if x > 0:
            return x, 1, "a"        # int32, the constants 1 and "a"
        return x + 1, 2, "a"        # int32, the constants 2 and "a"        ==>  (int32, int32, constexpr "a")

A constant that all returns agree on stays one, and no IR value is returned for it. A constant beside another constant
or a run-time value becomes a run-time value of the type it has in an assignment; then the types must be equal. The
constants that this needs are created at the end of the block of each return, after the whole body. Triton also counts
returns that are dead because a branch in front of them has returned: it visits them. Here they are only read: numbers
that are not the same in the text of a dead return become run-time values, whatever it returns.

A value returned from inside a region (a loop, or a branch in one: see `control_flow`) is a run-time value at once,
since the region yields it. Triton 3.6 does that with every returned number, and compares each return with the first.
"""

import ast
import functools
import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block

from tilework.frontend import FunctionGenerator
from tilework.frontend.scopes import NUMBERS, as_constexpr, describe_type, flatten, is_storable, unwrap
from tilework.frontend.semantic.building import ir_types
from tilework.ir import tt
from tilework.ir.ub import poison
from tilework.language import core as tl
from tilework.language.compile_time import same_constant
from tilework.language.typing.promotion import constant_dtype
from tilework.language.typing.python_names import assigned_names, make_tuple
from tilework.light_dataclass import light_dataclass
from tilework.process.triton_version import follows, message

ADVICE = "\nhelp: cast both to one dtype and shape, or return once at the end"
NO_VALUE = "\nhelp: every path of a function returns a value of one type, or none of them a value"


@light_dataclass
class Return:
    """A returned value and the block that it ends: None for a `return` in a region, which yields the value. That value
    ends a block where the region has been left; then `in_region` is true."""

    value: Any
    block: Block | None
    loc: LocationAttr
    in_region: bool = False

    @property
    def type(self) -> Any:
        return self.value.type


def record(gen: FunctionGenerator, value: Any, block: Block | None, in_region: bool = False) -> None:
    """Remember that `value` is returned at the end of `block`; `insert_returns` will build the op."""
    if not in_region and (block is None or not follows("return-promotion")):
        check_earlier(gen, value)
    gen.returns.append(Return(value, block, gen.builder.loc, in_region))


def check_earlier(gen: FunctionGenerator, value: Any) -> None:
    """Compare the type of a returned value with the type of an earlier one that is compared in this way too."""
    everywhere = not follows("return-promotion")
    earlier = next((found for found in gen.returns if everywhere or found.block is None), None)
    if earlier is not None and earlier.type != value.type:
        error = mismatch(earlier.type, value.type, [*statement_types(gen), value.type])
        raise error if everywhere else gen.error(definition(gen), error)


@light_dataclass
class DeadReturn:
    """A `return` that is not compiled, and the names that have other values there."""

    node: ast.Return
    changed: set[str]

    def reads(self, part: ast.expr) -> bool:
        """Return True if `part` of the returned expression has another value than the same text elsewhere."""
        return any(isinstance(node, ast.Name) and node.id in self.changed for node in ast.walk(part))


def note_dead(gen: FunctionGenerator, statements: Sequence[ast.stmt]) -> None:
    """Remember the `return` statements of code that is not compiled, because a branch in front of it has returned."""
    changed = assigned_names(statements)
    gen.dead_returns += [DeadReturn(node, changed) for statement in statements for node in returns_in(statement)]


def note_dead_rounds(gen: FunctionGenerator, node: ast.For) -> None:
    """Remember what later rounds of an unrolled loop would return, where that is not what this round returns."""
    found = [DeadReturn(each, assigned_names([node])) for each in returns_in(node) if each.value is not None]
    gen.dead_returns += [dead for dead in found if dead.node.value is not None and dead.reads(dead.node.value)]


def returns_in(tree: ast.AST) -> list[ast.Return]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Return)]


def position_of(node: ast.Return) -> tuple[int, int]:
    """Return the line and the column of a statement."""
    return node.lineno, node.col_offset


def statement_types(gen: FunctionGenerator) -> list[Any]:
    """Return the types of the values of all `return` statements."""
    return [returned.type for returned in gen.returns if not returned.in_region]


def insert_returns(gen: FunctionGenerator) -> Any:
    """Insert the return ops of a finished body and return the type of the function's result."""
    types = statement_types(gen)
    try:
        result = functools.reduce(functools.partial(common_type, types), types) if types else tl.constexpr_type(None)
        if gen.dead_returns:
            dead_positions = {position_of(dead.node) for dead in gen.dead_returns}
            live = [node.value for node in returns_in(definition(gen)) if position_of(node) not in dead_positions]
            for dead in gen.dead_returns:
                result = beside_dead(gen, result, dead, dead.node.value, live)
    except TypeError as error:
        raise gen.error(definition(gen), error) from None
    end, loc = gen.builder.block, gen.builder.loc
    for returned in gen.returns:
        if returned.block is not None:
            gen.builder.set_to_end(returned.block)
            gen.builder.loc = returned.loc
            insert_return(gen, flatten(converted(gen, returned.value, result)))
    if not gen.terminated:  # the end of the body is reached: the result is undefined there
        assert end is not None
        gen.builder.set_to_end(end)
        gen.builder.loc = loc
        insert_return(gen, [gen.builder.insert(poison(leaf, loc)).results[0] for leaf in ir_types(result)])
    return result


def insert_return(gen: FunctionGenerator, handles: list[Any]) -> None:
    gen.builder.insert(tt.ReturnOp.make(handles, gen.builder.loc))


def definition(gen: FunctionGenerator) -> ast.AST:
    return gen.fn.parse().body[0]


def common_type(types: list[Any], left: Any, right: Any) -> Any:
    """Return the type of two returned values; `types` are those of all returns, for the message."""
    if isinstance(left, tl.constexpr_type) and isinstance(right, tl.constexpr_type) and agree(left.value, right.value):
        return left
    left, right = opened(left), opened(right)
    if isinstance(left, tl.tuple_type) and isinstance(right, tl.tuple_type):
        if left.fields != right.fields or len(left) != len(right):
            raise mismatch(left, right, types)
        items = [common_type(types, *pair) for pair in zip(left.types, right.types, strict=True)]
        return tl.tuple_type(items, left.fields)
    if isinstance(left, tl.tuple_type) or isinstance(right, tl.tuple_type):
        raise mismatch(left, right, types)
    left, right = (run_time_type(side.value) if isinstance(side, tl.constexpr_type) else side for side in (left, right))
    if left != right:
        raise mismatch(left, right, types)
    return left


def beside_dead(
    gen: FunctionGenerator, type: Any, dead: DeadReturn, part: ast.expr | None, live: Sequence[ast.expr | None]
) -> Any:
    """Return the type of a result, or of an element of it, where a dead return has `part` of its expression.

    What has the text of a compiled return, one of `live`, or is the same constant leaves the type as it is. Anything
    else makes run-time values of the numbers: what it would return is not known.
    """
    if part is None:
        return type
    if isinstance(type, tl.tuple_type) and isinstance(part, ast.Tuple) and len(part.elts) == len(type):
        tuples = [value.elts for value in live if isinstance(value, ast.Tuple) and len(value.elts) == len(type)]
        columns = zip(*tuples, strict=True) if tuples else [()] * len(type)
        parts = zip(type.types, part.elts, columns, strict=True)
        return tl.tuple_type([beside_dead(gen, kind, dead, item, column) for kind, item, column in parts], type.fields)
    if not dead.reads(part) and ast.unparse(part) in {ast.unparse(value) for value in live if value is not None}:
        return type
    known = gen.scope.locals.get(part.id) if isinstance(part, ast.Name) else constant_of(part)
    if isinstance(known, tl.constexpr) and isinstance(type, tl.constexpr_type) and not dead.reads(part):
        return type if agree(known.value, type.value) else numbers_at_run_time(type)
    return numbers_at_run_time(type)


def numbers_at_run_time(type: Any) -> Any:
    """Return a type in which numbers are run-time values, also in tuples."""
    type = opened(type)
    if isinstance(type, tl.tuple_type):
        return tl.tuple_type([numbers_at_run_time(item) for item in type.types], type.fields)
    is_number = isinstance(type, tl.constexpr_type) and isinstance(type.value, NUMBERS)
    return run_time_type(type.value) if is_number else type


def constant_of(node: ast.expr) -> tl.constexpr | None:
    """Return the value of a literal, with a sign or without."""
    try:
        return tl.constexpr(ast.literal_eval(node))
    except ValueError:
        return None


def agree(left: Any, right: Any) -> bool:
    """Return True if two returned constants are one: equal numbers are, but 0.0 and -0.0 are two."""
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return (left == right and math.copysign(1, left) == math.copysign(1, right)) or same_constant(left, right)
    return same_constant(left, right)


def opened(type: Any) -> Any:
    """Return the type of a constant tuple as a tuple of constants; other types as they are."""
    is_tuple = isinstance(type, tl.constexpr_type) and isinstance(type.value, tuple | tl.tuple)
    return tl.tuple(type.value).type if is_tuple else type


def run_time_type(value: Any) -> Any:
    """Return the type of a constant as a run-time value."""
    if not isinstance(value, NUMBERS):
        raise TypeError(f"cannot convert {value} of type {type(value)} to tensor{NO_VALUE}")
    return constant_dtype(value)


def converted(gen: FunctionGenerator, value: Any, type: Any) -> Any:
    """Return a returned value as one of the function's result type."""
    if isinstance(type, tl.constexpr_type) or value.type == type:
        return value
    if isinstance(type, tl.tuple_type):
        items = [as_constexpr(item) for item in unwrap(value)]
        return make_tuple([converted(gen, *pair) for pair in zip(items, type.types, strict=True)], type.fields)
    return gen.semantic.to_tensor(value)


def mismatch(left: Any, right: Any, types: list[Any]) -> TypeError:
    """Return the error about two returned values whose types are not one."""
    shown = [described(type) for type in (left, right)]
    every = ", ".join(map(repr, types))
    return TypeError(message("return-promotion", left=shown[0], right=shown[1], every=every) + ADVICE)


def described(type: Any) -> str:
    if not follows("return-promotion") and isinstance(type, tl.constexpr_type) and type.value is None:
        return "nothing"
    return describe_type(type)


def returned_value(value: Any) -> Any:
    """Return what a `return` statement gives: language values as they are, everything else as a constant."""
    value = as_constexpr(value)
    return value if is_storable(value) else tl.constexpr(value)
