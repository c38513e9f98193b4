"""Python's own names in kernels: `len`, `int`, `min`, `range` ... take compile-time values, or are refused.

The compiler and the interpreter call these functions, each with its own values: a constant in a `constexpr`, or plain.
"""

import ast
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilework.language.compile_time import base_value, constexpr, constexpr_type, tuple, tuple_type
from tilework.language.dtypes import block_type, dtype, int32, pointer_type
from tilework.language.elementwise_builtins import PropagateNan
from tilework.language.typing.promotion import plain, wider
from tilework.language.values import tensor
from tilework.process.triton_version import follows

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic

ARITY: dict[str, Any] = {  # how many arguments, at least and at most, by position
    "range": (1, 3),
    "len": (1, 1),
    "int": (0, 2),
    "float": (0, 1),
    "isinstance": (2, 2),
    "hasattr": (2, 2),
    "getattr": (2, 3),
}
TUPLE_INDEX = "a tuple can only be indexed by a compile-time integer\nhelp: iterate with tl.static_range"


def names_constexpr(annotation: ast.expr, scope: Mapping[str, Any]) -> bool:
    """Return True if an annotation is `tl.constexpr`, in any spelling, without evaluating anything else."""
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and annotation.value.rpartition(".")[2] == "constexpr"
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    return isinstance(annotation, ast.Name) and scope.get(annotation.id) is constexpr


def assigned_name(node: ast.AST) -> str | None:
    """The variable to which a node of a syntax tree gives a value, if it does: `x` for the targets ``x`` and ``x[i]``,
    as an assignment to a part gives the whole variable a new value, and for a name in a pattern of `match`."""
    if isinstance(node, ast.MatchAs | ast.MatchStar):
        return node.name
    if isinstance(node, ast.Name | ast.Subscript) and isinstance(node.ctx, ast.Store):
        name = node if isinstance(node, ast.Name) else node.value
        return name.id if isinstance(name, ast.Name) else None
    return None


def assigned_names(statements: Sequence[ast.AST]) -> set[str]:
    """The variables that get values anywhere in `statements`."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return {name for node in nodes if (name := assigned_name(node)) is not None}


def ignored_operands(value: object) -> str:
    """Return the warning about ``x or 1.0`` of a run-time `x`, which is 1.0 for every `x`; empty for ``c or True``."""
    value = plain(value)
    if type(value) not in (int, float):
        return ""
    return (
        f"`or` gives {value!r} here, whatever the run-time operand is; to replace zeros: tl.where(x != 0, x, {value!r})"
    )


def mixed_comparison(node: ast.Compare, source: str) -> str | None:
    """Return the warning about ``i < n & i > 2``, which is ``i < (n & i) > 2`` in Python: `&` and `|` bind closer than
    comparisons do. Brackets in the source show that this is meant."""
    operands = [node.left, *node.comparators]
    if not any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd | ast.BitOr) for part in operands):
        return None
    text = ast.unparse(node)
    if (ast.get_source_segment(source, node) or "").count("(") > text.count("("):
        return None
    parts = [
        f"{ast.unparse(part.left)}) {'&' if isinstance(part.op, ast.BitAnd) else '|'} ({ast.unparse(part.right)}"
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd | ast.BitOr)
        else ast.unparse(part)
        for part in operands
    ]
    signs = [ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[2:-2] for op in node.ops]
    meant = "".join(f"{part} {sign} " for part, sign in zip(parts, signs, strict=False)) + parts[-1]
    return f"`&` and `|` bind closer than comparisons: `{text}` is a chain of comparisons; did you mean `({meant})`?"


def use_as_constant(tree: ast.AST, name: str) -> ast.AST | None:
    """Return the first use of `name` that Triton refuses if the variable is declared as tl.constexpr but has a run-time
    value: as an argument, a condition or the first operand. Others (``x + name``, ``name[0]``, ``name.to``) it takes.
    """
    for node in ast.walk(tree):
        used: list[ast.expr] = []
        match node:
            case ast.Call():
                used = [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.BinOp(left=ast.Constant()):
                used = [node.right]
            case ast.BinOp() | ast.Compare():
                used = [node.left]
            case ast.BoolOp():
                used = node.values
            case ast.UnaryOp():
                used = [node.operand]
            case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
                used = [node.test]
            case _:
                continue
        if any(isinstance(part, ast.Name) and part.id == name for part in used):
            return node
    return None


def check_arity(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Python's own builtins take so many arguments, by position."""
    least, most = ARITY.get(name, (0, len(args)))
    if kwargs and name in ARITY:
        raise TypeError(f"{name}() takes no keyword arguments, got {next(iter(kwargs))!r}")
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise TypeError(f"{name}() takes {wanted} arguments by position, got {len(args)}")


def is_storable(value: object) -> bool:
    """Return True for a value that is known at run time: a tensor, a descriptor, or an aggregate of such values."""
    if isinstance(value, base_value):
        return not isinstance(value, constexpr)
    return getattr(value, "__triton_aggregate__", False) and not isinstance(value, type)


def make_tuple(values: Sequence[Any], fields: Sequence[str] | None) -> tuple:
    """A tuple of `values`, with field names if it has some."""
    types = [value.type if isinstance(value, base_value) else constexpr_type(value) for value in values]
    return tuple(values, tuple_type(types, fields))


def describe_type(type: object) -> str:
    """``fp32[64, 16]`` for a block, the name for everything else."""
    if isinstance(type, block_type):
        return f"{describe_type(type.element_ty)}[{', '.join(str(plain(size)) for size in type.shape)}]"
    if isinstance(type, pointer_type):
        return f"{'const ' if type.const else ''}pointer to {describe_type(type.element_ty)}"
    return str(type)


def check_compile_time(callee: Any, args: Sequence[object]) -> None:
    """Refuse run-time values where Python runs now; aggregates and tuples may hold them."""
    for value in args:
        if isinstance(value, tensor):
            name = getattr(getattr(callee, "fn", callee), "__name__", "this function")
            raise TypeError(
                f"`{name}` runs at compile time, but one argument is known only at run time:"
                f" {describe_type(value.type)}"
                f"\nhelp: {'use tl.cdiv' if name == 'cdiv' else 'pass constexprs, or make it a @jit function'}"
            )


def kept_items(semantic: Any, items: Sequence[Any], count: int) -> Sequence[Any]:
    """Return the values that `count` names are assigned: Triton 3.7 drops what is left over."""
    if len(items) == count:
        return items
    if len(items) < count or follows("unpacking-length"):
        raise ValueError(f"cannot unpack {len(items)} values into {count} names")
    text = f"{len(items)} values for {count} names: those left over are dropped, and Triton 3.8 refuses it"
    semantic.warn(text, UserWarning)
    return items[:count]


def check_assigned(value: object) -> None:
    """Refuse a text where a run-time value is wanted."""
    if isinstance(value, str | bytes):
        raise TypeError(
            f"cannot convert {value} of type {type(value)} to tensor"
            "\nhelp: keep it at compile time: annotate the variable, `x: tl.constexpr = ...`"
        )


def length(value: Any) -> int:
    """``len`` of a tuple, a shape or a compile-time sequence."""
    if isinstance(value, tensor):
        advice = "use x.shape[0], or x.numel" if value.type.is_block() else "pass the size as an argument of the kernel"
        raise TypeError(f"object of type 'tensor' has no len()\nhelp: {advice}")
    return len(plain(value))


def converted(convert: type, args: Sequence[Any]) -> int | float:
    """``int`` and ``float`` of compile-time values."""
    if any(is_storable(arg) for arg in args):
        name = convert.__name__
        raise TypeError(f"{name}() needs a compile-time value\nhelp: convert at run time with x.to(tl.{name}32)")
    return convert(*map(plain, args))


def extremum(semantic: "Semantic", name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tensor | int | float:
    """Python's min and max on compile-time values, `tl.minimum` and `tl.maximum` on run-time ones."""
    values = args[0].values if len(args) == 1 and isinstance(args[0], tuple) else args
    if unknown := [key for key in kwargs if key != "propagate_nan"]:
        raise TypeError(f"{name}() takes no keyword {unknown[0]!r} in a kernel")
    if kwargs:
        semantic.warn(f"passing propagate_nan to builtin {name} is deprecated, use tl.{name}imum instead", shown())
    if not any(isinstance(value, tensor) for value in values):
        constants = list(map(plain, values))
        for value in constants:
            if isinstance(value, float) and (math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)):
                raise ValueError(f"{name}() of nan or -0.0 is ambiguous at compile time")
        return min(constants) if name == "min" else max(constants)
    if len(values) < 2:
        raise TypeError(f"{name} requires at least 2 values\nhelp: tl.{name}(x, axis) reduces a block")
    combine, rule = getattr(semantic, f"{name}imum"), plain(kwargs.get("propagate_nan", PropagateNan.NONE))
    tensors = [semantic.to_tensor(value) for value in values]
    result = functools.reduce(lambda left, right: combine(left, right, rule), tensors)
    if result.type.is_block():
        text = f"builtin {name} on non-scalar tensor values is deprecated, use tl.{name}imum instead"
        semantic.warn(text, shown())
    return result


def shown() -> type[Warning]:
    """Return the class of warnings about deprecated uses of `max` and `min`."""
    return UserWarning if follows("deprecations-shown") else DeprecationWarning


def attribute_name(function: str, name: object) -> str:
    """The second argument of ``getattr`` and ``hasattr``."""
    text = plain(name)
    if not isinstance(text, str):
        shown = describe_type(text.type) if isinstance(text, base_value) else f"the constexpr {text!r}"
        raise TypeError(f"the attribute name for {function} must be a compile-time string, not {shown}")
    return text


def loop_index_type(types: Sequence[dtype]) -> dtype:
    """The type of the variable of a loop, from those of its bounds and its step: at least 32 bits wide."""
    if not all(type.is_int() and not type.is_block() for type in types):
        raise TypeError(
            f"For loop bounds and step must all be ints, are ({', '.join(map(describe_type, types))})"
            "\nhelp: loop bounds are integers: divide with `//`, or cast with .to(tl.int32)"
        )
    index = functools.reduce(wider, types)
    return int32 if index.primitive_bitwidth < 32 else index
