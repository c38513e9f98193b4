"""Returned values: the result type of a function is decided once all of its `return` statements are known.

    def f(x):
        if x > 0:
            return x, 1, "a"        # int32, the constants 1 and "a"
        return x + 1, 2, "a"        # int32, the constants 2 and "a"        ==>  (int32, int32, constexpr "a")

A constant that all returns agree on stays one, and no IR value is returned for it. A constant beside another constant
or a run-time value becomes a run-time value of the type it has in an assignment; then the types must be equal. The
constants that this needs are created at the end of the block of each return, after the whole body. Returns that are not
compiled because a branch in front of them has returned count too, as far as they can be read.

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
from tilework.language.typing.python_names import make_tuple
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


def note_dead(gen: FunctionGenerator, statements: Sequence[ast.stmt]) -> None:
    """Remember the `return` statements of code that is not compiled, because a branch in front of it has returned."""
    gen.dead_returns += [node for statement in statements for node in returns_in(statement)]


def returns_in(tree: ast.AST) -> list[ast.Return]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Return)]


def place(node: ast.Return) -> tuple[int, int]:
    return node.lineno, node.col_offset


def statement_types(gen: FunctionGenerator) -> list[Any]:
    """Return the types of the values of all `return` statements."""
    return [returned.type for returned in gen.returns if not returned.in_region]


def insert_returns(gen: FunctionGenerator) -> Any:
    """Insert the return ops of a finished body and return the type of the function's result."""
    types = statement_types(gen)
    try:
        result = functools.reduce(functools.partial(common_type, types), types) if types else tl.constexpr_type(None)
        dead_places = {place(node) for node in gen.dead_returns}
        live = [node.value for node in returns_in(definition(gen)) if place(node) not in dead_places]
        for dead in gen.dead_returns:
            result = beside_dead(gen, result, dead.value, live)
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


def beside_dead(gen: FunctionGenerator, type: Any, dead: ast.expr | None, live: Sequence[ast.expr | None]) -> Any:
    """Return the type of a result where code that is not compiled returns `dead`: another number than that makes it a
    run-time value, as in Triton, which visits this code. What has the text of a compiled return, one of `live`, is the
    same number."""
    if isinstance(type, tl.tuple_type):
        if not isinstance(dead, ast.Tuple) or len(dead.elts) != len(type):
            return type
        tuples = [value.elts for value in live if isinstance(value, ast.Tuple) and len(value.elts) == len(type)]
        columns = zip(*tuples, strict=True) if tuples else [()] * len(type)
        items = [beside_dead(gen, *each) for each in zip(type.types, dead.elts, columns, strict=True)]
        return tl.tuple_type(items, type.fields)
    if dead is None or not isinstance(type, tl.constexpr_type) or not isinstance(type.value, NUMBERS):
        return type
    known = gen.scope.locals.get(dead.id) if isinstance(dead, ast.Name) else constant_of(dead)
    is_same = ast.unparse(dead) in {ast.unparse(value) for value in live if value is not None}
    is_same = is_same or (isinstance(known, tl.constexpr) and agree(known.value, type.value))
    return type if is_same else run_time_type(type.value)


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
