"""What the text of a jit function refers to: functions (by their own hash) and global values.

    @jit
    def kernel(p):
        tl.store(p, helper(SCALE))      # functions: helper; global values: SCALE

Both branches of every `if` count: the hash is made before anything is known about the arguments. Names that the
function assigns itself are still read as globals if that is all they can be at that point, so a local that hides a
global costs at most an unneeded recompile.
"""

import ast
import builtins
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tilework.language.compile_time import base_type, constexpr

COMPILE_TIME_MODULES = ("math", "copy")
ARRAY_LIBRARIES = ("numpy", "torch", "cupy", "jax")
PACKAGE = __name__.split(".", maxsplit=1)[0]


@dataclass
class Dependencies:
    """The functions, classes and global values that one jit function uses, in order of first use."""

    functions: list[Any] = field(default_factory=list)
    classes: list[type] = field(default_factory=list)
    global_values: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = field(default_factory=dict)

    def update(self, digest: Any) -> None:
        """Feed everything that decides the compiled code into `digest`."""
        for function in self.functions:
            digest.update(function.cache_key.encode())
            digest.update(str(getattr(function, "noinline", False)).encode())
        for cls in self.classes:
            for name, member in aggregate_members(cls):
                digest.update(f"{name}:{member.cache_key}".encode())
        for (name, _), (value, _) in self.global_values.items():
            digest.update(f"{name}={value!r}".encode())


def aggregate_members(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods of an aggregate class that have a hash."""
    for name, member in sorted(vars(cls).items()):
        member = getattr(member, "__func__", member)
        if hasattr(member, "cache_key"):
            yield name, member


def dependencies_of(tree: ast.AST, function: Any) -> Dependencies:
    """Collect the dependencies of the function whose syntax tree is `tree`."""
    found = Dependencies()
    scope = function.get_capture_scope()
    defaults = {id(node) for node in default_nodes(tree)}
    finder = _Finder(found, scope, function, defaults)
    finder.visit(tree)
    return found


def default_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Default values and annotations of the parameters: evaluated once by Python, never by the compiler."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
                yield from ast.walk(default)
            for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs):
                if arg.annotation is not None:
                    yield from ast.walk(arg.annotation)


EVALUATED_FIRST = {"value": 0, "iter": 0, "generators": 0, "test": 0}


class _Finder:
    def __init__(self, found: Dependencies, scope: dict[str, Any], function: Any, skip: set[int]) -> None:
        self.found = found
        self.scope = scope
        self.function = function
        self.skip = skip
        self.seen: set[int] = set()
        self.locals: set[str] = {arg.arg for node in ast.walk(function.parse()) if isinstance(node, ast.arguments)
                                 for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs)}  # fmt: skip

    def visit(self, node: ast.AST) -> None:
        if id(node) in self.skip:
            return
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self.record_name(node.id)
            else:
                self.locals.add(node.id)
        elif isinstance(node, ast.Attribute):
            self.record_attribute(node)
        elif isinstance(node, ast.FunctionDef):
            for statement in node.body:
                self.visit(statement)
        else:
            # in the order of evaluation: what is read before its name is assigned here is a global
            names = sorted(node._fields, key=lambda name: EVALUATED_FIRST.get(name, 1))
            for name in names:
                value = getattr(node, name, None)
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.visit(child)

    def record_attribute(self, node: ast.Attribute) -> None:
        """``module.f``: the member is the dependency, however long the chain."""
        owner = self.resolve(node.value)
        if isinstance(owner, ModuleType):
            self.record(getattr(owner, node.attr, None), None)
        elif isinstance(owner, type):
            self.record(owner, None)
            self.record(getattr(owner, node.attr, None), None)
        else:
            self.visit(node.value)

    def resolve(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name) and node.id not in self.locals:
            return self.scope.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None

    def record_name(self, name: str) -> None:
        if name in self.locals or name not in self.scope:
            return
        self.record(self.scope[name], name)

    def record(self, value: Any, name: str | None) -> None:
        if value is None and name is None:
            return
        if isinstance(value, constexpr):
            if name is not None:
                self.record_value(name, value)
            return
        if isinstance(value, ModuleType) or is_language_member(value):
            if hasattr(value, "cache_key"):
                self.record_function(value)
            return
        if hasattr(value, "cache_key") and callable(value):
            self.record_function(value)
        elif getattr(value, "__triton_aggregate__", False) and isinstance(value, type):
            if id(value) not in self.seen:
                self.seen.add(id(value))
                self.found.classes.append(value)
        elif callable(value) and not isinstance(value, type):
            self.refuse_function(value, name)
        elif name is not None and not (isinstance(value, type) or hasattr(builtins, name) or callable(value)):
            self.record_value(name, value)

    def record_function(self, value: Any) -> None:
        if id(value) not in self.seen and value is not self.function:
            self.seen.add(id(value))
            self.found.functions.append(value)

    def refuse_function(self, value: Any, name: str | None) -> None:
        """A plain Python function has no hash: the compiler refuses its bare name in a kernel, all others are refused here."""
        inner = getattr(value, "base_fn", None) or getattr(value, "fn", None)
        if hasattr(inner, "cache_key"):
            self.record_function(inner)
            return
        module = getattr(value, "__module__", "") or ""
        is_named = name is not None or array_library(value) is not None
        is_seen_by_compiler = is_named and not self.function.runs_at_compile_time
        if not is_seen_by_compiler and module.split(".")[0] not in (*COMPILE_TIME_MODULES, "builtins", "_operator"):
            raise RuntimeError(
                f"Unsupported function referenced: {value!r}. Kernels may call @jit functions, tl.* builtins,"
                " @constexpr_function functions and functions of the math module"
            )

    def record_value(self, name: str, value: Any) -> None:
        """Values that a kernel can use; an array of the same name as something in the kernel is none of its business."""
        if value is not None and not isinstance(value, constexpr | base_type | int | float | str | tuple):
            return
        module = self.function.__globals__
        captured: Any = module if module.get(name, _MISSING) is value else Closure(self.function.fn)
        key = (name, id(module) if captured is module else id(self.function))
        if key not in self.found.global_values:
            self.found.global_values[key] = (copy.deepcopy(value), captured)


def array_library(value: Any) -> str | None:
    """The library of host arrays that a function is from: "numpy" for np.sqrt, "torch" for torch.exp."""
    owner = getattr(value, "__self__", None)
    if isinstance(value, type) or not callable(value) or not (owner is None or isinstance(owner, type | ModuleType)):
        return None  # a method of a compile-time value is Python's business
    for place in (value, type(value), owner):
        root = str(getattr(place, "__module__", None) or "").split(".")[0]
        if root in ARRAY_LIBRARIES:
            return root
    return None


class Closure:
    """The variables that a function captured, as they are now."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def get(self, name: str) -> Any:
        """The value of a captured variable; None if it is unbound."""
        try:
            return self.fn.__closure__[self.fn.__code__.co_freevars.index(name)].cell_contents
        except ValueError:
            return None


_MISSING = object()


def is_language_member(value: Any) -> bool:
    """Code of the language package (builtins, classes, library functions): part of the version, not of the user's state.

    So is what another package marks as a builtin, as Inductor does for functions that run while its kernels are compiled.
    """
    if not callable(value):
        return False
    if getattr(value, "__triton_builtin__", False):
        return True
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.startswith(f"{PACKAGE}.language")
