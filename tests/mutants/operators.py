"""The mutants of a source file: small mistakes that people make, each one replacement of a piece of text.

    >>> for mutant in mutants_of("a.py", "def f(a, b):\n    return gcd(a, b)\n"):
    ...     print(mutant.kind, mutant.old, "->", mutant.new)
    gcd gcd(a, b) -> a
    return return gcd(a, b) -> return None
    name a -> b
    name b -> a

Annotations, decorators, assertions, raised errors, texts and module-level assignments of type aliases are left alone.
"""

import ast
import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
}
EQUALITIES = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any"}
FIRST_ARGUMENT = {"gcd", "lcm"}
COMMUTATIVE = {*FIRST_ARGUMENT, "min", "max", "two_sum", "two_product"}
SKIPPED_FUNCTIONS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Mutant:
    """One mistake: `new` instead of `old` at `start` (an offset into the file's text)."""

    file: str
    function: str  # qualified name, or "" at module level
    kind: str
    line: int
    start: int
    old: str
    new: str
    number: int  # among the equal replacements of the same function

    @cached_property
    def id(self) -> str:
        """The same as long as the function keeps this piece of text."""
        parts = (self.file, self.function, self.kind, self.old, self.new, str(self.number))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def apply(self, source: str) -> str:
        assert source.startswith(self.old, self.start), f"{self.file} has changed"
        return source[: self.start] + self.new + source[self.start + len(self.old) :]

    def compiles(self, source: str) -> bool:
        """Return True if the mutated text is Python: a replacement may lack parentheses that its surroundings need."""
        try:
            compile(self.apply(source), self.file, "exec")
        except SyntaxError:
            return False
        return True

    def diff(self, source: str) -> str:
        before, after = (text.splitlines() for text in (source, self.apply(source)))
        lines = list(difflib.unified_diff(before, after, self.file, self.file, lineterm="", n=2))
        return "\n".join(lines[2:])


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of the text `source`, by position."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found: list[Mutant] = []
    numbers: dict[tuple[str, ...], int] = {}
    for function, node, kind, new in replacements(ast.parse(source)):
        assert node.end_lineno is not None and node.end_col_offset is not None
        start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
        old = source[start:end]
        if old == new:
            continue
        key = (function, kind, old, new)
        number = numbers[key] = numbers.get(key, -1) + 1
        found.append(Mutant(file, function, kind, node.lineno, start, old, new, number))
    return found


Replacement = tuple[str, ast.expr | ast.stmt, str, str]  # qualified name, node, kind, new text


def replacements(tree: ast.Module) -> Iterator[Replacement]:
    for statement in tree.body:
        yield from in_statement(statement, "", {})


def in_statement(node: ast.stmt, function: str, siblings: dict[str, str]) -> Iterator[Replacement]:
    """The replacements in a statement; `siblings` maps a name to another one of the same kind in this function."""
    if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
        return
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        inner = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.FunctionDef):
            if node.name in SKIPPED_FUNCTIONS:
                return
            siblings = {**siblings, **names_alike(node)}
        for statement in node.body:
            yield from in_statement(statement, inner, siblings)
        return
    for kind, new in of_statement(node, function):
        yield function, node, kind, new
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield from in_statement(child, function, siblings)
        elif isinstance(child, ast.expr) and not is_annotation(node, child):
            yield from in_expression(child, function, siblings)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            for statement in child.body:
                yield from in_statement(statement, function, siblings)
        elif isinstance(child, ast.withitem):
            yield from in_expression(child.context_expr, function, siblings)
    if isinstance(node, (ast.If, ast.While)):
        yield from of_condition(node.test, function)


def is_annotation(node: ast.stmt, child: ast.expr) -> bool:
    if isinstance(node, ast.AnnAssign):
        return child is node.annotation
    return isinstance(node, ast.Expr) and isinstance(child, ast.Constant)  # a docstring


def of_statement(node: ast.stmt, function: str) -> Iterator[tuple[str, str]]:
    """A statement that is forgotten, a value that is not returned."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if is_call or isinstance(node, (ast.AugAssign, ast.Continue, ast.Break)):
        yield "forgotten", "pass"
    elif isinstance(node, ast.Return) and node.value is not None and function:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            yield "return", f"return {not node.value.value}"
        elif not isinstance(node.value, ast.Constant):
            yield "return", "return None"


def of_condition(test: ast.expr, function: str) -> Iterator[Replacement]:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], EQUALITIES):  # "comparison" inverts these
        yield function, test, "condition", f"not ({ast.unparse(test)})"
    yield function, test, "condition", "False"


def names_alike(node: ast.FunctionDef) -> dict[str, str]:
    """Parameters beside each other with the same annotation, and targets that one assignment unpacks to."""
    alike: dict[str, str] = {}
    arguments = [*node.args.posonlyargs, *node.args.args]
    for left, right in pairwise(arguments):
        if left.arg not in ("self", "cls") and same_annotation(left, right):
            alike.setdefault(left.arg, right.arg)
            alike.setdefault(right.arg, left.arg)
    for inner in ast.walk(node):
        targets = (
            inner.targets if isinstance(inner, ast.Assign) else [inner.target] if isinstance(inner, ast.For) else []
        )
        for target in targets:
            names = [name.id for name in getattr(target, "elts", ()) if isinstance(name, ast.Name)]
            for left, right in pairwise(names):
                alike.setdefault(left, right)
                alike.setdefault(right, left)
    return alike


def same_annotation(left: ast.arg, right: ast.arg) -> bool:
    texts = [ast.unparse(argument.annotation) if argument.annotation else "" for argument in (left, right)]
    return texts[0] == texts[1]


def in_expression(
    node: ast.expr, function: str, siblings: dict[str, str], is_ordered: bool = True
) -> Iterator[Replacement]:
    """The replacements in an expression; the order of elements means nothing to `in` and `fromkeys`."""
    if isinstance(node, (ast.JoinedStr, ast.Constant)):
        if isinstance(node, ast.Constant):
            for kind, new in of_constant(node):
                yield function, node, kind, new
        return
    if isinstance(node, ast.Lambda):
        yield from in_expression(node.body, f"{function}.<lambda>" if function else "<lambda>", siblings)
        return
    for kind, new in of_expression(node):
        yield function, node, kind, new
    if isinstance(node, (ast.List, ast.Tuple)) and is_ordered:
        for kind, new in of_order(node):
            yield function, node, kind, new
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in siblings:
        yield function, node, "name", siblings[node.id]
    if isinstance(node, ast.IfExp):
        yield from of_condition(node.test, function)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from in_expression(child, function, siblings, not is_collection(node))
        elif isinstance(child, ast.keyword) and child.arg != "strict":
            yield from in_expression(child.value, function, siblings)
        elif isinstance(child, ast.comprehension):
            yield from in_expression(child.iter, function, siblings)
            for test in child.ifs:
                yield from in_expression(test, function, siblings)
                yield function, test, "condition", "True"


def of_constant(node: ast.Constant) -> Iterator[tuple[str, str]]:
    if isinstance(node.value, bool):
        yield "constant", str(not node.value)
    elif isinstance(node.value, int):
        yield "constant", str(node.value + 1)
        if node.value > 0:
            yield "constant", str(node.value - 1)


def of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    """The mistakes in an expression whose operands are right."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield "comparison", f"{left} {COMPARISONS[type(node.ops[0])]} {right}"
    elif isinstance(node, ast.Compare):
        yield "comparison", with_parts(node, ops=[swapped(node.ops[0]), *node.ops[1:]])
        yield "comparison", with_parts(node, ops=[*node.ops[:-1], swapped(node.ops[-1])])
    elif isinstance(node, ast.BoolOp):
        yield "and-or", with_parts(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield "and-or", ast.unparse(rest[0]) if len(rest) == 1 else with_parts(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "sign", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not is_text(node):
        left, right = parenthesized(node.left), parenthesized(node.right)
        yield "operator", f"({left} {ARITHMETIC[type(node.op)]} {right})"
        yield "operand", f"({ast.unparse(node.left)})"
        yield "operand", f"({ast.unparse(node.right)})"
    elif isinstance(node, ast.Call):
        yield from of_call(node)
    elif isinstance(node, ast.IfExp):
        yield "branches", f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)})"
    elif isinstance(node, (ast.Set, ast.List, ast.Tuple)) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        if len(node.elts) > 1 and not any(isinstance(element, ast.Starred) for element in node.elts):
            yield "element", with_parts(node, elts=node.elts[:-1])
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        yield "element", with_parts(node, keys=node.keys[:-1], values=node.values[:-1])
        yield "element", with_parts(node, keys=node.keys[1:], values=node.values[1:])


def of_order(node: ast.List | ast.Tuple) -> Iterator[tuple[str, str]]:
    is_plain = not any(isinstance(element, ast.Starred) for element in node.elts)
    if len(node.elts) > 1 and is_plain and isinstance(node.ctx, ast.Load):
        yield "element", with_parts(node, elts=[node.elts[1], node.elts[0], *node.elts[2:]])


def is_collection(node: ast.expr) -> bool:
    """True where the elements of an operand are only looked up or become keys."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[-1], (ast.In, ast.NotIn))
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
        "fromkeys", "frozenset", "isinstance", "set",
    )  # fmt: skip


def of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if name in OTHER_FUNCTION and isinstance(node.func, ast.Name):
        yield "min-max", with_parts(node, func=ast.Name(OTHER_FUNCTION[name]))
    if name in FIRST_ARGUMENT and node.args and plain:
        yield "gcd", ast.unparse(node.args[0])
    if len(node.args) > 1 and plain and name not in {*COMMUTATIVE, "isinstance", "cast", "getattr", "hasattr", "zip"}:
        yield "arguments", with_parts(node, args=[node.args[1], node.args[0], *node.args[2:]])
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in ("strict", "location", "loc"):
            yield "keyword", with_parts(node, keywords=node.keywords[:index] + node.keywords[index + 1 :])


def swapped(op: ast.cmpop) -> ast.cmpop:
    return ast.parse(f"a {COMPARISONS[type(op)]} b", mode="eval").body.ops[0]  # type: ignore[attr-defined]


def with_parts(node: ast.expr, **parts: Any) -> str:
    """The text of `node` with other fields."""
    fields = {name: getattr(node, name) for name in node._fields}
    text = ast.unparse(type(node)(**{**fields, **parts}))
    return f"({text})" if isinstance(node, (ast.BoolOp, ast.Compare)) else text


def parenthesized(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Constant, ast.Call)) else f"({ast.unparse(node)})"


def is_text(node: ast.BinOp) -> bool:
    """True for texts and lists that are joined, formatted or repeated, and for unions of types."""
    parts = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Constant, ast.JoinedStr, ast.List))]
    return any(not isinstance(part, ast.Constant) or isinstance(part.value, (str, type(None))) for part in parts)
