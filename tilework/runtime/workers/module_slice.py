"""The part of a script that a kernel needs, so that another process can define the kernel without running the script.

    import tilework, tilework.language as tl            import tilework, tilework.language as tl
    SIZE = tl.constexpr(4)                              SIZE = tl.constexpr(4)
    @tilework.jit                                       @tilework.jit
    def add(x, y): ... SIZE ...                  ==>    def add(x, y): ... SIZE ...
    x = make_input()
    benchmark(x)

Kept are the statements that bind a name the kernel refers to, directly or through other statements that are kept; how
it is tuned (`autotune`, `heuristics`) is left out. Line numbers are preserved, so the kernel's source and hash are
those of the original. What the slice misses (names bound by calls, for example) shows as an error or as another hash,
and the caller then compiles the kernel where it is.
"""

import ast
from collections.abc import Iterable
from types import ModuleType

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def load_slice(file: str, name: str, wanted: str) -> ModuleType:
    """A module called `name` with what `file` needs to define `wanted`."""
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read(), file)
    module = ModuleType(name)
    module.__file__, module.__package__ = file, name.rpartition(".")[0]
    exec(compile(slice_for(tree, wanted), file, "exec"), module.__dict__)
    return module


def slice_for(tree: ast.Module, wanted: str) -> ast.Module:
    """The statements of a module that `wanted` depends on, in order."""
    statements = [statement for statement in tree.body if not is_main_guard(statement)]
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            statement.decorator_list = [d for d in statement.decorator_list if not is_about_tuning(d)]
    needed, kept = {wanted}, set[int]()
    grown = True
    while grown:
        grown = False
        for index, statement in enumerate(statements):
            if index not in kept and (is_unconditional(statement) or bound_names(statement) & needed):
                kept.add(index)
                needed |= used_names([statement])
                grown = True
    return ast.Module([statements[index] for index in sorted(kept)], type_ignores=[])


def is_main_guard(statement: ast.stmt) -> bool:
    """``if __name__ == "__main__":``, whose body is the program."""
    return isinstance(statement, ast.If) and "__name__" in used_names([statement.test])


def is_about_tuning(decorator: ast.expr) -> bool:
    """``@triton.autotune(...)`` or ``@heuristics(...)``: what they wrap is compiled the same without them."""
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in (
        "autotune",
        "heuristics",
    )


def is_unconditional(statement: ast.stmt) -> bool:
    """Imports that bind names without naming them."""
    if not isinstance(statement, ast.ImportFrom):
        return False
    return statement.module == "__future__" or any(alias.name == "*" for alias in statement.names)


def bound_names(statement: ast.AST) -> set[str]:
    """The names that a statement may bind in its own scope; what a bare call does is not known."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Store) else set()
    if isinstance(statement, ast.Lambda):
        return set()
    return set().union(*(bound_names(child) for child in ast.iter_child_nodes(statement)))


def used_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that code looks up outside of its own function scopes."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found |= used_by_function(node)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        else:
            found |= used_names(ast.iter_child_nodes(node))
    return found


def used_by_function(function: Function) -> set[str]:
    """Decorators, defaults and annotations, and the body without its parameters and local variables."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    local = {parameter.arg for parameter in parameters}.union(*(bound_names(statement) for statement in body))
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Global):
                local -= set(node.names)
    outside: list[ast.AST | None] = [*arguments.defaults, *arguments.kw_defaults, *(p.annotation for p in parameters)]
    if not isinstance(function, ast.Lambda):
        outside += [*function.decorator_list, function.returns]
    return used_names(node for node in outside if node is not None) | (used_names(body) - local)
