"""The source of a kernel as executable Python: the same statements, on the same lines of the same file.

    def kernel(x, n: tl.constexpr):            def kernel(x, n):
        total = 0                                  total = __tw__.assign(0)
        for i in range(n):              ==>        for i in __tw__.loop_over(__tw__.call(range, n)):
            total += tl.load(x + i)                    total = __tw__.assign(total + tl.load(x + i))
        if total > 3 and flag:                     if __tw__.truth(__tw__.bool_op(True, lambda: total > 3, ...)):

Only constructs with another meaning in the tile language are rewritten (the functions of `__tw__` are in `calls.py`).
Operators are kept: tensors define them. Line numbers and the file name are the user's, so breakpoints, `pdb` and
tracebacks work in the user's file.
"""

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from tilework.language import core as tl
from tilework.language.dependencies import COMPILE_TIME_MODULES, SHALLOW, array_library, deeply, levels_of
from tilework.language.function import ConstexprFunction, JITCallable
from tilework.language.typing import triton_messages
from tilework.language.typing.python_names import assigned_names, mixed_comparison, names_constexpr, use_as_constant
from tilework.oracles.interpreter.failures import Refused

RUNTIME = "__tw__"
PATHS = "__tw_paths__"  # in a function: true if a branch or loop with a return in it has been decided at run time
SPECIAL = frozenset({"range", "len", "int", "float", "isinstance", "getattr", "hasattr", "min", "max", "print", "list"})
# statements and expressions that would run without the effect that they have in Python
NEVER = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)


class FunctionRewriter:
    """The rewritten code of one function; `def_file_lineno` is the line of its `def` in the file."""

    def __init__(self, function: JITCallable) -> None:
        self.function = function

    @property
    def def_file_lineno(self) -> int:
        return self.function.def_line

    def rewrite(self) -> Callable[[dict[str, Any]], Callable[..., Any]]:
        """Return a factory of the Python function, which takes the globals of the function."""
        if not self.function.has_source:
            return lambda namespace: copy_of(self.function, namespace)
        levels = levels_of(self.function.parse())
        make = deeply(levels, lambda: self.rewritten(ast.parse(self.function.src)))
        return make if levels <= SHALLOW else lambda namespace: running_deeply(levels, make(namespace))

    def rewritten(self, tree: ast.Module) -> Callable[[dict[str, Any]], Callable[..., Any]]:
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef), "the source of a jit function must be one `def`"
        where = self.function.where
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and len(node.ops) > 1:
                vars(node)["_warning"] = mixed_comparison(node, self.function.src)
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno += where.first_line - 1  # pyright: ignore[reportAttributeAccessIssue]
                node.end_lineno += where.first_line - 1  # pyright: ignore[reportAttributeAccessIssue]
                node.col_offset += where.indent  # pyright: ignore[reportAttributeAccessIssue]
                node.end_col_offset += where.indent  # pyright: ignore[reportAttributeAccessIssue]
        try:
            Rewriter(definition, self.function.get_capture_scope()).rewrite()
        except Refused as error:
            error.function = self.function
            raise
        code = compile(ast.fix_missing_locations(tree), where.file, "exec")
        return lambda namespace: make_function(code, definition.name, namespace, self.function)


def running_deeply(levels: int, made: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs code with deeply nested expressions and calls."""
    return wrapper_of(made, lambda *args, **kwargs: deeply(levels, lambda: made(*args, **kwargs)))


def wrapper_of(function: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Return `wrapper` with the name, annotations and signature of `function`, which tools inspect."""
    vars(wrapper)["__signature__"] = inspect.signature(function)
    return functools.update_wrapper(wrapper, function)


def make_function(code: CodeType, name: str, namespace: dict[str, Any], original: JITCallable) -> Callable[..., Any]:
    """Run the `def`, and give the function the defaults of the original, which were evaluated at its definition."""
    local: dict[str, Any] = {}
    exec(code, namespace, local)
    return with_defaults(local[name], original.fn)


def copy_of(original: JITCallable, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Return a function without source unchanged, except for its globals and the meanings of Python's names."""
    fn = original.fn
    names = namespace[RUNTIME].python_names() if RUNTIME in namespace else {}
    cells = tuple(CellType(namespace[name]) if name in namespace else CellType() for name in fn.__code__.co_freevars)
    return with_defaults(FunctionType(fn.__code__, {**names, **namespace}, fn.__name__, None, cells), fn)


def with_defaults(made: Any, fn: Any) -> Callable[..., Any]:
    made.__defaults__ = tuple(map(unwrapped, fn.__defaults__)) if fn.__defaults__ else None
    made.__kwdefaults__ = {key: unwrapped(value) for key, value in (fn.__kwdefaults__ or {}).items()} or None
    made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
    return made


def unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def returns_in(node: ast.AST) -> list[ast.Return]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Return)]


def agreed(values: Sequence[ast.expr | None]) -> Iterator[int]:
    """Yield the ids of the returned values, or of elements of returned tuples, whose text is that of all returns."""
    tuples = [value for value in values if isinstance(value, ast.Tuple) and not has_starred(value)]
    if tuples and len(tuples) == len(values) and len({len(value.elts) for value in tuples}) == 1:
        for column in zip(*(value.elts for value in tuples), strict=True):
            yield from agreed(column)
    elif len({value and ast.unparse(value) for value in values}) == 1:
        yield from map(id, values)


def dead_behind(
    block: Sequence[ast.stmt], outside: list[ast.stmt], changed: set[str]
) -> Iterator[tuple[ast.Return, list[ast.Return], set[str]]]:
    """Yield each `return`, those behind it, which are dead if it is taken at compile time, and the names that have
    other values there or in later rounds of a loop around it."""
    for position, statement in enumerate(block):
        if isinstance(statement, ast.Return):
            yield (
                statement,
                [node for later in outside for node in returns_in(later)],
                changed | assigned_names(outside),
            )
            continue
        behind = [*block[position + 1 :], *outside]
        inside = changed | assigned_names([statement]) if isinstance(statement, ast.For) else changed
        for name in ("body", "orelse"):
            yield from dead_behind(getattr(statement, name, ()), behind, inside)


def has_starred(node: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.elts)


class Rewriter(ast.NodeTransformer):
    """One walk over one function; see the module docstring."""

    def __init__(self, definition: ast.FunctionDef, scope: dict[str, Any]) -> None:
        self.definition = definition
        self.scope = scope
        arguments = definition.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.parameters = {parameter.arg for parameter in parameters}
        stored = [node for node in ast.walk(definition) if isinstance(node, ast.Name)]
        self.assigned = {node.id for node in stored if not isinstance(node.ctx, ast.Load)} - self.parameters
        imports = [node for node in ast.walk(definition) if isinstance(node, ast.Import | ast.ImportFrom)]
        self.imported = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
        self.assigned -= self.imported
        self.loops = 0  # run-time loops around the node being rewritten
        self.returns = returns_in(definition)
        self.agreed = set(agreed([statement.value for statement in self.returns]))
        self.beside_dead = {
            id(taken.value): ([statement.value for statement in (taken, *dead)], changed)
            for taken, dead, changed in dead_behind(definition.body, [], set())
        }
        self.returns_from_loop = any(
            returns_in(loop)
            for loop in ast.walk(definition)
            if isinstance(loop, ast.For | ast.While) and not self.is_unrolled(loop)
        )

    def rewrite(self) -> None:
        definition = self.definition
        for node in ast.walk(definition):
            if isinstance(node, NEVER):
                kind = type(node).__name__
                word = kind.removesuffix("From").lower()
                raise Refused(f"unsupported AST node type: {kind}: kernels have no `{word}`", node)
        definition.decorator_list, definition.returns = [], None
        arguments = definition.args
        for parameter in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            parameter.annotation = None
        arguments.defaults = [self.nothing(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.nothing(default) for default in arguments.kw_defaults]
        definition.body = [*self.prologue(), *self.block(definition.body)]

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements, each of which may become several."""
        made = map(self.visit, statements)
        return [statement for part in made for statement in (part if isinstance(part, list) else [part])]

    def nothing(self, node: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Constant(None), node)

    def prologue(self) -> list[ast.stmt]:
        """A name that is both a global and assigned here reads the global until it is assigned, unlike in Python."""
        loaded = {node.id for node in ast.walk(self.definition) if isinstance(node, ast.Name)}
        hidden = sorted(name for name in self.assigned & loaded if name in self.scope or name in SPECIAL)
        first = self.definition.body[0]
        values = [self.runtime_call("outer", first, ast.Constant(name)) for name in hidden]
        paths = [self.assigned_to(PATHS, ast.List([], ast.Load()), first)] if len(self.returns) > 1 else []
        return [*paths, *(self.assigned_to(name, value, first) for name, value in zip(hidden, values, strict=True))]

    def assigned_to(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)

    def runtime_call(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        """Return ``__tw__.name(*args)`` at the location of a node; new nodes inside get that location at the end.

        The name of the function takes no space: Python reports a call of a method at the last line of its name.
        """
        function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
        for part in (function, function.value):
            ast.copy_location(part, at)
            if hasattr(at, "lineno"):
                part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
        return ast.copy_location(ast.Call(function, list(args), []), at)

    def beyond(self, node: ast.stmt, message: str) -> ast.stmt:
        """Return a check in front of a statement that Triton refuses with this message."""
        return ast.copy_location(ast.Expr(self.runtime_call("beyond", node, ast.Constant(message))), node)

    def later(self, node: ast.expr) -> ast.expr:
        """``lambda: node``."""
        no_arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(no_arguments, self.visit(node)), node)

    def static_value(self, node: ast.expr) -> Any:
        """Return the value of a name, or of an attribute of modules, outside of this function; None if it is
        unknown."""
        if isinstance(node, ast.Name):
            if node.id in self.assigned or node.id in self.parameters or node.id in self.imported:
                return None
            return self.scope.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute) and isinstance(owner := self.static_value(node.value), ModuleType):
            return getattr(owner, node.attr, None)
        return None

    # -- statements --------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        refused = [self.beyond(node, triton_messages.ASSIGNMENTS)] if len(node.targets) > 1 else []
        parts = [part for target in node.targets for part in self.take_parts(target, node)]
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and len(node.targets) == 1:
                message = triton_messages.PART.format(ast.unparse(target))
                return [self.beyond(node, message), self.new_part(target, self.visit(node.value))]
            self.check_target(target)
            if isinstance(target, ast.List):
                refused.append(self.beyond(node, triton_messages.LIST_TARGET.format(ast.unparse(target))))
            if any(isinstance(element, ast.Starred) for element in getattr(target, "elts", ())):
                refused.append(self.beyond(node, triton_messages.STARRED_TARGET.format(ast.unparse(target))))
        node.value = self.runtime_call("assign", node.value, self.visit(node.value))
        first = node.targets[0]
        if len(node.targets) == 1 and isinstance(first, ast.Tuple | ast.List) and not has_starred(first):
            node.value = self.runtime_call("kept", node.value, node.value, ast.Constant(len(first.elts)))
        starred = [part.value for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Starred)]
        names = [name.id for name in starred if isinstance(name, ast.Name)]
        made = [self.runtime_call("tuple_of", node, ast.Name(name, ast.Load())) for name in names]
        starred_tuples = [self.assigned_to(*pair, node) for pair in zip(names, made, strict=True)]
        return [*refused, node, *starred_tuples, *parts]

    def take_parts(self, target: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """Return the assignments to the targets ``x[i], y`` in their order, if parts are among them; the targets become
        names of their own."""
        if not any(isinstance(part, ast.Subscript) for part in getattr(target, "elts", ())):
            return [each for part in getattr(target, "elts", ()) for each in self.take_parts(part, node)]
        found: list[ast.stmt] = []
        for position, element in enumerate(target.elts):  # pyright: ignore[reportAttributeAccessIssue]
            if not isinstance(element, ast.Name | ast.Subscript):
                raise Refused(f"assignment to {ast.unparse(target)} is not supported: parts beside tuples", target)
            name = f"__part_{position}"
            target.elts[position] = ast.copy_location(ast.Name(name, ast.Store()), element)  # pyright: ignore[reportAttributeAccessIssue]
            value = ast.Name(name, ast.Load())
            if isinstance(element, ast.Name):
                found.append(self.assigned_to(element.id, value, element))
                continue
            if not isinstance(element.value, ast.Name):
                self.check_target(element)
            message = triton_messages.PART.format(ast.unparse(element))
            found += [self.beyond(node, message), self.new_part(element, value)]
        return found

    def new_part(self, target: ast.Subscript, value: ast.expr) -> ast.stmt:
        """``x[i] = v`` gives `x` a new value."""
        assert isinstance(target.value, ast.Name)
        name = target.value.id
        call = self.runtime_call("with_item", target, ast.Name(name, ast.Load()), self.key(target.slice), value)
        return self.assigned_to(name, call, target)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        if isinstance(target := node.target, ast.Subscript) and isinstance(target.value, ast.Name):
            read = ast.copy_location(
                ast.Subscript(ast.Name(target.value.id, ast.Load()), target.slice, ast.Load()), target
            )
            value = ast.copy_location(ast.BinOp(self.visit(read), node.op, self.visit(node.value)), node)
            return [
                self.beyond(node, triton_messages.AUGMENTED.format(ast.unparse(target))),
                self.new_part(target, value),
            ]
        self.check_target(node.target)
        assert isinstance(node.target, ast.Name)
        current = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        result = ast.copy_location(ast.BinOp(current, node.op, self.visit(node.value)), node)
        return ast.copy_location(ast.Assign([node.target], self.runtime_call("assign", node, result)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.check_target(node.target)
        value = self.visit(node.value) if node.value is not None else self.nothing(node)
        is_constant = names_constexpr(node.annotation, self.scope)
        if node.value is None and not is_constant:
            return ast.copy_location(ast.Pass(), node)
        if not is_constant:
            call = self.runtime_call("assign", node, value)
        else:
            assert isinstance(node.target, ast.Name)
            name = node.target.id
            refusal = use_as_constant(self.definition, name) and triton_messages.KNOWN_AT_RUN_TIME.format(name)
            call = self.runtime_call("constant", node, value, ast.Constant(refusal))
        return ast.copy_location(ast.Assign([node.target], call), node)

    def check_target(self, target: ast.expr) -> None:
        """Values of a kernel cannot be changed in place."""
        for node in ast.walk(target):
            if isinstance(node, ast.Attribute | ast.Subscript):
                text = "values of a kernel cannot be changed in place"
                raise Refused(f"assignment to {ast.unparse(node)} is not supported: {text}", node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        if node.value is not None:
            values, changed = self.beside_dead.get(id(node.value), ([node.value], set()))
            node.value = self.returned(node.value, set(agreed(values)), changed)
        return [*([self.beyond(node, triton_messages.RETURN_IN_LOOP)] if self.loops else []), node]

    def returned(self, node: ast.expr, same: set[int], changed: set[str]) -> ast.expr:
        """Rewrite a returned value, or one element of a returned tuple; those in `same` are what dead code returns,
        unless they read names of `changed`."""
        if isinstance(node, ast.Tuple) and not has_starred(node):
            return self.runtime_call(
                "tuple_of", node, ast.List([self.returned(item, same, changed) for item in node.elts], ast.Load())
            )
        decays: list[ast.expr] = [] if id(node) in self.agreed else [ast.Name(PATHS, ast.Load())]
        reads_changed = any(isinstance(name, ast.Name) and name.id in changed for name in ast.walk(node))
        if self.loops or self.returns_from_loop or id(node) not in same or reads_changed:
            decays = [ast.Constant(True)]
        return self.runtime_call("returned", node, self.visit(node), *decays)

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [self.beyond(node, triton_messages.BREAK), node]

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [self.beyond(node, triton_messages.CONTINUE), node]

    def visit_If(self, node: ast.If) -> ast.AST:
        paths = [ast.Name(PATHS, ast.Load())] if len(self.returns) > 1 and returns_in(node) else []
        node.test = self.runtime_call("truth", node.test, self.visit(node.test), *paths)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        node.test = self.runtime_call("goes_on", node.test, self.visit(node.test))
        return self.loop(node, triton_messages.WHILE_ELSE, True)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        is_unrolled = self.is_unrolled(node)
        if not isinstance(node.target, ast.Name):
            raise Refused(triton_messages.LOOP_TARGET, node)
        texts = [ast.Constant(ast.unparse(part)) for part in (node.target, node.iter)]
        node.iter = self.runtime_call("loop_over", node.iter, self.visit(node.iter), *texts)
        return self.loop(node, triton_messages.FOR_ELSE, not is_unrolled)

    def is_unrolled(self, node: ast.For | ast.While) -> bool:
        if isinstance(node, ast.While) or not isinstance(node.iter, ast.Call):
            return False
        return self.static_value(node.iter.func) is tl.static_range

    def loop(self, node: ast.For | ast.While, message: str, at_run_time: bool) -> list[ast.stmt]:
        """Rewrite the body and the `else` of a loop."""
        refused = [self.beyond(node, message)] if node.orelse else []
        self.loops += at_run_time
        node.body = self.block(node.body)
        self.loops -= at_run_time
        node.orelse = self.block(node.orelse)
        return [*refused, node]

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        """Leave matching to Python: only subject, guards and bodies are rewritten."""
        node.subject = self.runtime_call("subject", node.subject, self.visit(node.subject))
        for case in node.cases:
            if strange := [
                part for part in ast.walk(case.pattern) if isinstance(part, ast.MatchMapping | ast.MatchClass)
            ]:
                message = ast.Constant(triton_messages.PATTERN.format(ast.unparse(strange[0])))
                case.guard = self.runtime_call("refuse", case.pattern, message)
                case.pattern = ast.copy_location(ast.MatchAs(), case.pattern)
            elif case.guard is not None:
                case.guard = self.runtime_call("truth", case.guard, self.visit(case.guard))
            case.body = self.block(case.body)
        return [self.beyond(node, triton_messages.MATCH), node]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = self.visit(node.msg) if node.msg is not None else ast.Constant("")
        call = self.runtime_call("check", node, self.visit(node.test), message)
        return ast.copy_location(ast.Expr(call), node)

    # -- expressions -------------------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        is_and = ast.Constant(isinstance(node.op, ast.And))
        return self.runtime_call("bool_op", node, is_and, *map(self.later, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self.runtime_call("not_", node, operand)
        return ast.copy_location(ast.UnaryOp(node.op, operand), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self.runtime_call("choose", node, self.visit(node.test), self.later(node.body), self.later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            warning = ast.Constant(vars(node)["_warning"])
            kinds = ast.Constant(" ".join(type(op).__name__ for op in node.ops))
            return self.runtime_call("chain", node, warning, kinds, *map(self.visit, (node.left, *node.comparators)))
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            same = self.runtime_call("same", node, self.visit(node.left), self.visit(node.comparators[0]))
            return same if isinstance(node.ops[0], ast.Is) else ast.copy_location(ast.UnaryOp(ast.Not(), same), node)
        return self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        """``(a, b)`` and ``[a, b]`` are tuples of the tile language; targets of assignments are kept."""
        if not isinstance(node.ctx, ast.Load):
            return node
        return self.runtime_call("tuple_of", node, ast.List([self.visit(item) for item in node.elts], ast.Load()))

    def visit_List(self, node: ast.List) -> ast.AST:
        return self.visit_Tuple(ast.copy_location(ast.Tuple(node.elts, node.ctx), node))

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        message = triton_messages.NESTED_COMPREHENSIONS if len(node.generators) > 1 else ""
        for generator in node.generators:
            is_name = ast.Constant(isinstance(generator.target, ast.Name))
            generator.iter = self.runtime_call("items", generator.iter, self.visit(generator.iter), is_name)
            generator.ifs = [self.runtime_call("truth", test, self.visit(test)) for test in generator.ifs]
        node.elt = self.visit(node.elt)
        first = node.generators[0]
        if any(generator.ifs for generator in node.generators):
            first.iter = self.runtime_call("filtered", first.iter, first.iter)
        if message:
            first.iter = self.runtime_call("beyond", first.iter, ast.Constant(message), first.iter)
        return self.runtime_call("tuple_of", node, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.runtime_call("shown", node.value, self.visit(node.value))
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An attribute of a module is kept; others may belong to compile-time values, or be `x.T`."""
        if isinstance(node.value, ast.Name) and node.value.id in self.imported:
            return node
        if isinstance(self.static_value(node.value), ModuleType):
            return node
        return self.runtime_call("attribute", node, self.visit(node.value), ast.Constant(node.attr))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self.runtime_call("item", node, self.visit(node.value), self.key(node.slice))

    def key(self, index: ast.expr) -> ast.expr:
        """Rewrite a subscript."""
        if isinstance(index, ast.Tuple):
            parts = [self.index(part) for part in index.elts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), index)
        return self.index(index)

    def index(self, node: ast.expr) -> ast.expr:
        """Rewrite one part of a subscript; a slice becomes a call of Python's `slice`."""
        if not isinstance(node, ast.Slice):
            return self.visit(node)
        parts = (node.lower, node.upper, node.step)
        return self.runtime_call(
            "slice_of", node, *(self.nothing(node) if part is None else self.visit(part) for part in parts)
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A builtin or jit function is called directly; other callees may need their arguments unwrapped."""
        args = [self.visit(argument) for argument in node.args]
        keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        callee = self.visit(node.func)
        if self.is_plain_call(node.func):
            return ast.copy_location(ast.Call(callee, args, keywords), node)
        call = self.runtime_call("call", node, callee, *args)
        call.keywords = keywords
        return call

    def is_plain_call(self, callee: ast.expr) -> bool:
        owner = callee.value if isinstance(callee, ast.Attribute) else callee
        if isinstance(owner, ast.Name) and owner.id in self.imported:
            return True  # a module that a debugging line imports: import pdb; pdb.set_trace()
        value = self.static_value(callee)
        if value is None or getattr(value, "_libdevice_name", None) is not None:
            return False
        if isinstance(callee, ast.Name) and callee.id in SPECIAL and callee.id not in self.scope:
            return False
        if isinstance(value, ConstexprFunction):
            return False
        if tl.is_builtin(value) or isinstance(value, JITCallable):
            return True
        if array_library(value) is not None or getattr(value, "__module__", None) in COMPILE_TIME_MODULES:
            return False
        return callable(value) and not isinstance(value, type)
