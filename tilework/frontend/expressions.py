"""Expressions: names, literals, operators, attributes, indexing, comprehensions.

Operators on compile-time values are Python's; as soon as a tensor takes part they are the tile language's,
and `semantic` builds them.
"""

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tilework.errors import CompilationError, CompileTimeAssertionFailure
from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.kernel import FrontendOptions
from tilework.frontend.scopes import as_constexpr, compile_time_function, describe, is_aggregate, is_storable, unwrap
from tilework.language import core as tl
from tilework.language.advice import MATMUL, POWER
from tilework.language.function import BoundJITMethod, JITCallable, JITFunction
from tilework.language.typing import triton_messages
from tilework.language.typing.indexing import is_one_pointer, is_plain_view
from tilework.language.typing.python_names import (
    TUPLE_INDEX,
    attribute_name,
    converted,
    extremum,
    ignored_operands,
    length,
    mixed_comparison,
)
from tilework.process.triton_version import follows

# ---- The Python builtins that kernels may use, the calls that the compiler evaluates itself, and attributes of values.
#
# `tl.extra.libdevice` is a neutral module of stubs; `resolve_stub` replaces one by the function of the target. Every
# target implements the symbols of NVIDIA's library (`__nv_tanhf` ...); AMD's library has its own names for some.


def resolve_stub(value: Any, options: FrontendOptions) -> Any:
    """The real function behind a stub; anything else unchanged."""
    name = getattr(value, "_libdevice_name", None) if callable(value) else None
    if name is None:
        return value
    from tilework.language.extra.libdevice import of_target  # few kernels call it

    function = of_target(name, options.backend_name)
    if function is None:
        raise AttributeError(
            f"libdevice function {name} is not available on target {options.backend_name}:{options.arch}"
        )
    return function


def get_attribute(gen: FunctionGenerator, owner: Any, name: str) -> Any:
    """An attribute of a module, a tensor, a type, an aggregate, a named tuple or a compile-time value."""
    if isinstance(owner, tl.tensor) and name == "T":
        return gen.semantic.transposed(owner)
    if isinstance(owner, tl.constexpr) and name not in ("value", "type"):
        if not hasattr(owner.value, name) and (hasattr(tl.tensor, name) or name == "dtype"):
            text = f"{describe(owner) or 'this value'} is not a tensor: it has no `{name}`"
            raise AttributeError(f"{text}\nhelp: pass a tensor; tl.full((), x, dtype) makes one of a number")
        return as_constexpr(getattr(owner.value, name))
    if is_aggregate(owner):
        static = next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), None)
        if isinstance(static, JITFunction):
            return BoundJITMethod(owner, static)
    value = getattr(owner, name)
    if isinstance(owner, ModuleType):
        value = resolve_stub(value, gen.options)
        if compile_time_function(value) is not None:
            return value
    return as_constexpr(value)


def python_range(*args: Any) -> Any:
    """Python's own `range`: one to three bounds by position. `tl.range` has more parameters."""
    return tl.range(*args)


python_range.__name__ = "range"

SAME = (len, list, float, int, isinstance, getattr, hasattr, min, max)
BUILTINS: dict[str, Any] = {
    **{function.__name__: function for function in SAME},
    "range": python_range,
    "print": tl.device_print,
}

COMPILE_TIME = frozenset({list})

Special = Callable[[FunctionGenerator, ast.Call, list[Any], dict[str, Any]], Any]


def call_unwrapped(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a Python function with the values inside of constexprs."""
    return function(*[unwrap(arg) for arg in args], **{key: unwrap(value) for key, value in kwargs.items()})


def call_isinstance(gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``isinstance`` on unwrapped values; run-time ones are `tl.tensor`."""
    value, classes = args
    classes = unwrap(classes)
    wanted = tuple(unwrap(item) for item in classes.values) if isinstance(classes, tl.tuple) else classes
    if isinstance(value, tl.constexpr) and wanted is tl.constexpr:
        if gen.options.beyond_triton == "warn":
            gen.warn(node, "isinstance(x, tl.constexpr) is always False in Triton, which tests the value of x")
        return tl.constexpr(gen.options.beyond_triton != "error")
    return tl.constexpr(isinstance(unwrap(value), wanted))


def call_getattr(gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``getattr`` with a compile-time name; may return a function."""
    owner, name = args[0], attribute_name("getattr", args[1])
    if len(args) == 3 and not hasattr(unwrap(owner), name):
        return args[2]
    return get_attribute(gen, owner, name)


def call_extremum(name: str, gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Python's min and max on compile-time values, `tl.minimum` and `tl.maximum` on run-time ones."""
    result = extremum(gen.semantic, name, args, kwargs)
    return result if isinstance(result, tl.tensor) else tl.constexpr(result)


def static_assert(gen: FunctionGenerator, node: ast.Call) -> None:
    """Stop compiling unless the condition holds; as in Triton, the message is evaluated only then."""
    if not 1 <= len(node.args) <= 2 or node.keywords:
        raise TypeError("`static_assert` requires one or two positional arguments only")
    condition = visit_elements(gen, node.args[:1])[0]
    passed = unwrap(condition)
    if not isinstance(passed, bool):
        is_known = not isinstance(passed, tl.tensor)
        why = f"must be a bool, not {describe(condition) or repr(passed)}" if is_known else "is known at run time only"
        help = "compare it: `x == y`" if is_known else "use tl.device_assert"
        raise CompilationError(
            gen.src,
            node,
            "Assertion condition could not be determined at compile-time. Make sure that it depends only on `constexpr`"
            " values",
            where=gen.where,
            label=gen.describe_names(node),
            title=f"the condition of static_assert {why}\nhelp: {help}",
        )
    if passed:
        return
    message = unwrap(gen.visit(node.args[1])) if len(node.args) > 1 else ""
    if is_storable(message):
        raise TypeError(
            "the message of static_assert is a compile-time string\nhelp: print values with tl.static_print"
        )
    error = CompileTimeAssertionFailure(gen.src, node, str(message) if message else None, where=gen.where)
    error.title = f"static assertion failed: {message}" if message else "static assertion failed"
    error.label = gen.describe_names(node)
    raise error


STATEMENT_BUILTINS: dict[Any, Special] = {
    python_range: lambda gen, node, args, kwargs: python_range(*args),
    len: lambda gen, node, args, kwargs: tl.constexpr(length(args[0])),
    int: lambda gen, node, args, kwargs: tl.constexpr(converted(int, args)),
    float: lambda gen, node, args, kwargs: tl.constexpr(converted(float, args)),
    isinstance: call_isinstance,
    hasattr: lambda gen, node, args, kwargs: tl.constexpr(hasattr(unwrap(args[0]), attribute_name("hasattr", args[1]))),
    getattr: call_getattr,
    min: functools.partial(call_extremum, "min"),
    max: functools.partial(call_extremum, "max"),
    tl.static_print: lambda gen, node, args, kwargs: call_unwrapped(print, args, kwargs),
}


# ---- Expressions: names, literals, operators, attributes, indexing, comprehensions.


Binary = tuple[str, Callable[[Any, Any], Any]]

BINARY: dict[type[ast.operator], Binary] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.MatMult: ("matmul", operator.matmul),
}

SEMANTIC_BINARY = {"lshift": "shl", "rshift": "shr", "and": "and_", "or": "or_", "xor": "xor_"}
NOT_FOR_TENSORS = {
    "pow": f"`**` needs compile-time operands\nhelp: {POWER}",
    "matmul": f"`@` is not an operator of the tile language\nhelp: {MATMUL}",
}

UNARY: dict[type[ast.unaryop], tuple[str, str, Callable[[Any], Any]]] = {
    ast.USub: ("-", "minus", operator.neg),
    ast.UAdd: ("+", "plus", operator.pos),
    ast.Invert: ("~", "invert", operator.invert),
    ast.Not: ("not", "not_", operator.not_),
}

COMPARE: dict[type[ast.cmpop], Binary] = {
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
    ast.Lt: ("less_than", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater_than", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
}

DUNDER = {name: python.__name__ for name, python in COMPARE.values()}  # "equal": "eq"


@visits(ast.Constant)
def visit_constant(gen: FunctionGenerator, node: ast.Constant) -> Any:
    return tl.constexpr(node.value)


@visits(ast.Name)
def visit_name(gen: FunctionGenerator, node: ast.Name) -> Any:
    """Locals, globals, builtins."""
    value = gen.scope.lookup(node.id, BUILTINS, gen.options.allow_non_constexpr_globals)
    return resolve_stub(as_constexpr(value), gen.options)


@visits(ast.Tuple, ast.List)
def visit_tuple(gen: FunctionGenerator, node: ast.Tuple | ast.List) -> Any:
    """``(a, b)`` and ``[a, b]`` are tuples."""
    return tl.tuple(visit_elements(gen, node.elts))


def visit_elements(gen: FunctionGenerator, nodes: list[ast.expr]) -> list[Any]:
    """Visit expressions; a starred tuple gives its elements."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            inner = unwrap(gen.visit(node.value))
            if not isinstance(inner, tl.tuple | list | tuple):
                raise TypeError(f"`{ast.unparse(node)}` needs a tuple, not {describe(inner) or repr(inner)}")
            values += [as_constexpr(item) for item in inner]
        else:
            values.append(gen.visit(node))
    return values


@visits(ast.BinOp)
def visit_binary(gen: FunctionGenerator, node: ast.BinOp) -> Any:
    return apply_binary(gen, node.op, gen.visit(node.left), gen.visit(node.right))


def apply_binary(gen: FunctionGenerator, op: ast.operator, left: Any, right: Any) -> Any:
    """An operator on two visited operands."""
    return apply_operator(gen, *BINARY[type(op)], left, right)


def apply_operator(gen: FunctionGenerator, name: str, python: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """An arithmetic or comparison operator: of the language on tensors, `python` on compile-time values."""
    if isinstance(left, tl.tensor) or isinstance(right, tl.tensor):
        if name in NOT_FOR_TENSORS:
            raise TypeError(NOT_FOR_TENSORS[name])
        for value in (left, right):
            if not isinstance(value, tl.tensor | tl.constexpr | int | float):
                shown = describe(value) or f"{value} (of type {type(value).__name__})"
                raise TypeError(f"unsupported operand for {name}: {shown}")
        return getattr(gen.semantic, SEMANTIC_BINARY.get(name, name))(left, right)
    if is_aggregate(left) or is_aggregate(right):
        return apply_method(gen, name, left, right)
    if isinstance(left, tl.tuple) or isinstance(right, tl.tuple):
        return as_constexpr(apply_tuple(python, left, right))
    return as_constexpr(python(unwrap(left), unwrap(right)))


def apply_tuple(python: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Concatenation and repetition of tuples."""

    def plain(value: Any) -> Any:
        value = unwrap(value)
        return tl.tuple([as_constexpr(item) for item in value]) if isinstance(value, list | tuple) else value

    return python(plain(left), plain(right))


def apply_method(gen: FunctionGenerator, name: str, left: Any, right: Any) -> Any:
    """``a + b`` on aggregates: the user's ``__add__`` or ``__radd__``."""
    name = DUNDER.get(name, name)
    if is_aggregate(left) and hasattr(left, f"__{name}__"):
        return gen.call(get_attribute(gen, left, f"__{name}__"), [right], {})
    if is_aggregate(right) and hasattr(right, f"__r{name}__"):
        return gen.call(get_attribute(gen, right, f"__r{name}__"), [left], {})
    raise TypeError(f"{type(left).__name__} and {type(right).__name__} have no operator {name}")


@visits(ast.UnaryOp)
def visit_unary(gen: FunctionGenerator, node: ast.UnaryOp) -> Any:
    """``-x``, ``~x``, ``not x``, ``+x``."""
    value, (text, method, python) = gen.visit(node.operand), UNARY[type(node.op)]
    if isinstance(value, tl.tensor):
        return getattr(gen.semantic, method)(value)
    if isinstance(value, tl.tuple) and isinstance(node.op, ast.Not):
        return tl.constexpr(not value.values)
    if not isinstance(value, tl.constexpr):
        raise TypeError(f"`{text}` does not work on {describe(value) or type(value).__name__}")
    return tl.constexpr(python(value.value))


@visits(ast.Compare)
def visit_compare(gen: FunctionGenerator, node: ast.Compare) -> Any:
    """``a < b``, and ``a < b < c``, whose operands are all evaluated, each once; `is` and `in` are decided at compile
    time."""
    if len(node.ops) == 1:
        return compare(gen, node.ops[0], gen.visit(node.left), gen.visit(node.comparators[0]))
    if (problem := mixed_comparison(node, gen.src)) is not None:
        gen.warn(node, problem)
    gen.beyond_triton(node, triton_messages.COMPARISONS)
    left, result = gen.visit(node.left), tl.constexpr(True)
    for op, operand in zip(node.ops, node.comparators, strict=True):
        right = gen.visit(operand)
        found = compare(gen, op, left, right)
        if isinstance(found, tl.tensor):
            result = gen.semantic.logical_and(result, found) if isinstance(result, tl.tensor) else found
        elif not truth(found):
            return found
        left = right
    return result


def compare(gen: FunctionGenerator, op: ast.cmpop, left: Any, right: Any) -> Any:
    """Compare two visited operands."""
    if isinstance(op, ast.Is | ast.IsNot):
        same = unwrap(left) is unwrap(right)
        return tl.constexpr(same if isinstance(op, ast.Is) else not same)
    if isinstance(op, ast.In | ast.NotIn):
        return tl.constexpr(is_member(left, right) == isinstance(op, ast.In))
    found = apply_operator(gen, *COMPARE[type(op)], left, right)
    return found if isinstance(found, tl.base_value) else tl.constexpr(found)


def is_member(item: Any, container: Any) -> bool:
    """`in` on compile-time values."""
    container = unwrap(container)
    if isinstance(container, tl.tuple):
        container = container.values
    if isinstance(container, tl.tensor) or any(isinstance(x, tl.tensor) for x in (item, *container)):
        raise TypeError("`in` needs compile-time operands")
    return any(bool(unwrap(entry) == unwrap(item)) for entry in container)


@visits(ast.BoolOp)
def visit_bool_op(gen: FunctionGenerator, node: ast.BoolOp) -> Any:
    """``a and b``: compile-time operands short-circuit, run-time ones are all evaluated."""
    is_and = isinstance(node.op, ast.And)
    runtime: list[tuple[ast.expr, Any]] = []
    last: Any = tl.constexpr(is_and)
    for operand in node.values:
        value = gen.visit(operand)
        if isinstance(value, tl.tensor):
            runtime.append((operand, value))
            continue
        if runtime and unwrap(value) is None and isinstance(operand, ast.Call):
            gen.semantic.logical_and(runtime[0][1], gen.semantic.nothing())  # refused: the call is made in any case
        last = value
        if truth(value) != is_and:
            if not is_and and runtime and (warning := ignored_operands(value)):
                gen.warn(operand, warning)
            return value
    if not runtime:
        return last
    result = runtime.pop()[1]
    combine = gen.semantic.logical_and if is_and else gen.semantic.logical_or
    while runtime:
        operand, value = runtime.pop()
        if value.type.is_block() or result.type.is_block():
            gen.warn(
                operand,
                "logical operators `and` and `or` are deprecated for non-scalar tensors; please use `&` or `|` instead",
            )
        result = combine(value, result)
    return result


def truth(value: Any) -> bool:
    """Return True if a compile-time value is true, as Python sees it."""
    value = unwrap(value)
    return bool(value.values) if isinstance(value, tl.tuple) else bool(value)


@visits(ast.Attribute)
def visit_attribute(gen: FunctionGenerator, node: ast.Attribute) -> Any:
    return get_attribute(gen, gen.visit(node.value), node.attr)


@visits(ast.Subscript)
def visit_subscript(gen: FunctionGenerator, node: ast.Subscript) -> Any:
    """``x[:, None]``, ``t[0]``, ``shape[1:]``."""
    owner = gen.visit(node.value)
    index = gen.visit(node.slice)
    if isinstance(owner, tl.tensor):
        if not is_one_pointer(owner):
            check_index(gen, node, index)
        return gen.call(type(owner).__getitem__, [owner, index], {})
    if is_aggregate(owner):
        return gen.call(get_attribute(gen, owner, "__getitem__"), [index], {})
    if isinstance(index, tl.tensor):
        raise TypeError(TUPLE_INDEX)
    if isinstance(owner, tl.tuple):
        return index_tuple(owner, index)
    plain = unwrap(owner)
    if isinstance(plain, JITCallable):
        name = plain.__name__
        raise TypeError(f"a kernel cannot launch `{name}` on a grid\nhelp: call it without the grid: `{name}(...)`")
    key = python_slice(index) if isinstance(index, tl.slice) else unwrap(index)
    if isinstance(key, tl.tuple):
        key = tuple(unwrap(item) for item in key.values)
    return as_constexpr(plain[key])


def check_index(gen: FunctionGenerator, node: ast.AST, index: Any) -> None:
    """Warn about or refuse an index that selects elements of a block, which Triton does not support."""
    if not is_plain_view(index):
        gen.beyond_triton(node, ValueError(triton_messages.INDEX.format(unwrap(index))))


def index_tuple(owner: Any, index: Any) -> Any:
    """One element, or a slice of a tuple."""
    if isinstance(index, tl.slice):
        return tl.tuple(owner.values[python_slice(index)])
    position = unwrap(index)
    if not isinstance(position, int):
        raise TypeError(f"a tuple is indexed by an integer, not {describe(index) or repr(position)}")
    return as_constexpr(owner[position])


def python_slice(index: Any) -> slice:
    """The Python slice of a `tl.slice` with compile-time bounds."""
    return slice(unwrap(index.start), unwrap(index.stop), unwrap(index.step))


@visits(ast.Slice)
def visit_slice(gen: FunctionGenerator, node: ast.Slice) -> Any:
    parts = [
        gen.visit(part) if part is not None else tl.constexpr(None) for part in (node.lower, node.upper, node.step)
    ]
    return tl.slice(*parts)


@visits(ast.JoinedStr)
def visit_f_string(gen: FunctionGenerator, node: ast.JoinedStr) -> Any:
    """An f-string of compile-time values."""
    pieces = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = gen.visit(part.value)
        if isinstance(value, tl.tensor):
            raise gen.unsupported(node, "Cannot evaluate f-string containing non-constexpr conversion values")
        convert = {-1: lambda x: x, ord("s"): str, ord("r"): repr, ord("a"): ascii}[part.conversion]
        spec = unwrap(gen.visit(part.format_spec)) if part.format_spec is not None else ""
        pieces.append(format(convert(unwrap(value)), spec))
    return tl.constexpr("".join(pieces))


@visits(ast.ListComp)
def visit_list_comprehension(gen: FunctionGenerator, node: ast.ListComp) -> Any:
    """``[f(x) for x in t if cond]`` over sequences known at compile time; a tuple."""
    if len(node.generators) != 1:
        gen.beyond_triton(node, triton_messages.NESTED_COMPREHENSIONS)
    if any(generator.ifs for generator in node.generators) and not follows("comprehension-filters"):
        gen.beyond_triton(node, triton_messages.FILTERS)
    hidden = dict(gen.scope.locals)
    results: list[Any] = []

    def collect(generators: Sequence[ast.comprehension]) -> None:
        if not generators:
            results.append(gen.visit(node.elt))
            return
        generator, *inner = generators
        for item in compile_time_items(gen, generator.iter):
            bind_item(gen, generator.target, item)
            if all(keeps(gen, condition) for condition in generator.ifs):
                collect(inner)

    collect(node.generators)
    for name in {
        part.id for generator in node.generators for part in ast.walk(generator.target) if isinstance(part, ast.Name)
    }:
        gen.scope.locals.pop(name, None)
        if name in hidden:
            gen.scope.locals[name] = hidden[name]
    return tl.tuple(results)


def compile_time_items(gen: FunctionGenerator, node: ast.expr) -> list[Any]:
    """Return the items of a comprehension's iterable: a tuple, a list, or a range with known bounds."""
    source = unwrap(gen.visit(node))
    if isinstance(source, tl.static_range | tl.range):
        gen.beyond_triton(node, triton_messages.COMPREHENSION)
        bounds = [unwrap(bound) for bound in (source.start, source.end, source.step)]
        if all(type(bound) is int for bound in bounds):
            source = list(range(*bounds))
    items = source.values if isinstance(source, tl.tuple) else source
    if not isinstance(items, list | tuple):
        raise gen.unsupported(
            node, "only comprehensions over tuples and ranges that are known at compile time are supported"
        )
    return [as_constexpr(item) for item in items]


def bind_item(gen: FunctionGenerator, target: ast.expr, item: Any) -> None:
    """Let the names of a comprehension be an item, or its parts."""
    if isinstance(target, ast.Name):
        gen.scope.locals[target.id] = item
        return
    gen.beyond_triton(target, triton_messages.COMPREHENSION)
    value = unwrap(item)
    parts = value.values if isinstance(value, tl.tuple) else value
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    if not names or not isinstance(parts, list | tuple) or len(parts) != len(names):
        raise gen.unsupported(target, f"cannot unpack {shown(item)} into `{ast.unparse(target)}`")
    for name, part in zip(names, parts, strict=True):
        bind_item(gen, name, as_constexpr(part))


def shown(value: Any) -> str:
    return describe(value) or repr(unwrap(value))


def keeps(gen: FunctionGenerator, condition: ast.expr) -> bool:
    """The truth of a comprehension's filter, which must be known now."""
    value = gen.visit(condition)
    if isinstance(value, tl.tensor):
        raise gen.unsupported(condition, "the filter of a comprehension must be a compile-time value")
    return truth(value)
