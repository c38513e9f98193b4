"""The text of a module with one kernel and everything it uses, which imports nothing but Triton.

`module_text(kernel)` follows the global names of a kernel: functions it calls are copied, recursively, constants are
written as literals, and what Triton provides is imported. Names that mean different things in different modules are
renamed. The kernels may be Triton's or tilework's.
"""

import ast
import builtins
import dis
import enum
import importlib
import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

COMPILERS = ("triton", "tilework")
NO_DECORATOR_ARGUMENTS: dict[str, Any] = {"do_not_specialize": [], "do_not_specialize_on_alignment": [],
                                          "noinline": False}  # fmt: skip


class CannotExtract(Exception):
    """A kernel uses an object that has no text."""


def module_text(kernel: Any, functions: tuple[Any, ...] = ()) -> tuple[str, dict[int, str]]:
    """Return the module's text, and the names of the kernel and of further functions in it by their `id`."""
    text = ModuleText()
    names = {id(one): text.name_of(one, unwrapped(one).fn.__name__) for one in (kernel, *functions)}
    return text.render(), names


def unwrapped(kernel: Any) -> Any:
    """Return the jitted function inside of tuners and heuristics."""
    while hasattr(kernel, "fn") and not isinstance(kernel.fn, FunctionType):
        kernel = kernel.fn
    return kernel


class ModuleText:
    """A module that grows by what its functions use."""

    def __init__(self) -> None:
        self.imports: list[str] = ["import triton"]
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.wrapped: list[str] = []  # constants that are functions
        self.names: dict[Any, str] = {}
        self.taken: set[str] = {"triton", *dir(builtins)}
        self.kept: list[Any] = []  # so that no `id` is used twice

    def render(self) -> str:
        parts = ["\n".join([*self.imports, *self.constants]), *self.functions, "\n".join(self.wrapped)]
        return "\n\n\n".join(part for part in parts if part) + "\n"

    def new_name(self, wanted: str) -> str:
        name, count = wanted, 2
        while name in self.taken:
            name, count = f"{wanted}__{count}", count + 1
        self.taken.add(name)
        return name

    def name_of(self, value: Any, wanted: str) -> str:
        """Return the name under which the module has an object, and add the object."""
        value = unwrapped(value) if is_function(value) else value
        key = (id(value),) if not is_literal(value) else (type(value), repr(value), wanted)
        if key not in self.names:
            self.kept.append(value)
            self.add(key, value, wanted)
        return self.names[key]

    def add(self, key: Any, value: Any, wanted: str) -> None:
        if isinstance(value, ModuleType):
            self.names[key] = self.import_module(value, wanted)
        elif (origin := origin_in_compiler(value)) is not None:
            self.names[key] = name = self.new_name(wanted)
            self.imports.append(f"from {origin[0]} import {origin[1]} as {name}")
        elif is_function(value) or isinstance(value, FunctionType):
            self.names[key] = name = self.new_name(wanted)
            self.functions.append(self.function_text(value, name))
        elif is_of_compiler(value, "constexpr") and isinstance(value.value, FunctionType):
            self.names[key] = name = self.new_name(wanted)
            function = self.name_of(value.value, f"{wanted}_function")
            self.wrapped.append(f"{name} = {self.language()}.constexpr({function})")
        else:
            text = self.literal(value)  # a kernel may use no global number that is no constexpr
            text = f"{self.language()}.constexpr({text})" if is_literal(value) else text
            self.names[key] = name = self.new_name(wanted)
            self.constants.append(f"{name} = {text}")

    def import_module(self, module: ModuleType, wanted: str) -> str:
        root = module.__name__.partition(".")[0]
        if root not in (*COMPILERS, "math"):
            raise CannotExtract(f"the module {module.__name__} as a value")
        if module.__name__ in COMPILERS and wanted == "triton":
            return "triton"
        name = self.new_name(wanted)
        self.imports.append(f"import {with_triton(module.__name__)} as {name}")
        return name

    def language(self) -> str:
        """Return the name of triton.language."""
        module = next(importlib.import_module(f"{root}.language") for root in COMPILERS if root in sys.modules)
        return self.name_of(module, "tl")

    def literal(self, value: Any) -> str:
        """Return an expression for a constant."""
        if isinstance(value, enum.Enum) and not isinstance(value, int | str):
            value = value.value
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if isinstance(value, bool | int | float | str | bytes) or value is None:
            plain: Any = next((made for made in (bool, int, float, str, bytes) if isinstance(value, made)), None)
            return repr(value if plain is None else plain(value))
        if type(value) in (tuple, list, set):
            items = "".join(f"{self.literal(item)}, " for item in value)
            return f"({items})" if isinstance(value, tuple) else f"{type(value).__name__}([{items}])"
        if type(value) is dict:
            return "{" + ", ".join(f"{self.literal(k)}: {self.literal(v)}" for k, v in value.items()) + "}"
        if is_of_compiler(value, "constexpr"):
            return f"{self.language()}.constexpr({self.literal(value.value)})"
        if is_of_compiler(value, "dtype"):
            return f"{self.language()}.dtype({value.name!r})"
        raise CannotExtract(f"a value of type {type(value).__module__}.{type(value).__qualname__}")

    def function_text(self, function: Any, name: str) -> str:
        """Return the definition of a function under a new name, with the global names of this module."""
        raw = function if isinstance(function, FunctionType) else function.fn
        try:
            node = ast.parse(textwrap.dedent(inspect.getsource(raw))).body[0]
        except (OSError, SyntaxError, IndentationError) as error:
            raise CannotExtract(f"no source of {raw.__qualname__}: {error}") from None
        if not isinstance(node, ast.FunctionDef):
            raise CannotExtract(f"{raw.__qualname__} is no plain function")
        node.name, node.returns = name, None
        node.decorator_list = [] if function is raw else [expression(decorator(function))]
        return ast.unparse(ast.fix_missing_locations(Renaming(self, raw).rewrite(node)))


class Renaming(ast.NodeTransformer):
    """Replaces the global names of one function by those of the new module."""

    def __init__(self, text: ModuleText, function: FunctionType) -> None:
        self.text = text
        closed = inspect.getclosurevars(function).nonlocals
        self.values = {**function.__globals__, **closed}
        self.used = global_names(function.__code__)

    def rewrite(self, node: ast.FunctionDef) -> ast.FunctionDef:
        names = (one for outer in (*node.args.defaults, *node.args.kw_defaults) if outer for one in ast.walk(outer))
        self.used |= {one.id for one in names if isinstance(one, ast.Name)}
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            arg.annotation = self.annotation(arg.annotation)
        node.args.defaults = [self.default(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.default(one) for one in node.args.kw_defaults]
        node.body = [self.visit(one) for one in node.body]
        return node

    def default(self, node: ast.expr) -> ast.expr:
        """Return the default of a parameter: a number instead of the name of one."""
        value = self.values.get(node.id, self) if isinstance(node, ast.Name) else self
        return expression(self.text.literal(value)) if is_literal(value) else self.visit(node)

    def annotation(self, node: ast.expr | None) -> ast.expr | None:
        """Return the annotation of a parameter if it means something to the compiler."""
        if node is None or isinstance(node, ast.Constant):
            return node
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        if root.id not in self.values:
            return node if hasattr(builtins, root.id) else None
        value = self.values[root.id]
        owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if str(owner).partition(".")[0] not in COMPILERS:
            return None
        self.used.add(root.id)
        return self.visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        is_constant = "constexpr" in ast.unparse(node.annotation)
        if node.value is None:
            return ast.Pass()
        value = self.visit(node.value)
        if not is_constant:
            return ast.Assign([self.visit(node.target)], value)
        annotation = self.annotation(node.annotation) or node.annotation
        return ast.AnnAssign(self.visit(node.target), annotation, value, node.simple)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.used or node.id not in self.values or not isinstance(node.ctx, ast.Load):
            return node
        return ast.Name(self.text.name_of(self.values[node.id], node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value, path = self.value_of(node)
        if path and (is_literal(value) or isinstance(value, enum.Enum)):
            return expression(self.text.literal(value))
        if path and not isinstance(value, ModuleType):
            return ast.Name(self.text.name_of(value, "_".join(path)), node.ctx)
        return self.generic_visit(node)

    def value_of(self, node: ast.expr) -> tuple[Any, list[str]]:
        """Return the object that a dotted name of a library's module, or of an enumeration, means; its path."""
        if isinstance(node, ast.Name):
            known = node.id in self.used and node.id in self.values
            return (self.values[node.id], [node.id]) if known and is_foreign(self.values[node.id]) else (None, [])
        if isinstance(node, ast.Attribute):
            value, path = self.value_of(node.value)
            if path and is_foreign(value):
                return getattr(value, node.attr), [*path, node.attr]
        return None, []


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def is_foreign(value: Any) -> bool:
    """Return True for what is no value of a kernel, and has some as attributes that are written down: modules of
    libraries, enumerations, limits of torch's number types."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] not in (*COMPILERS, "math")
    return isinstance(value, enum.Enum | enum.EnumType) or type(value).__name__ in ("finfo", "iinfo")


def global_names(code: CodeType) -> set[str]:
    """Return the global names and those of enclosing functions that a function's code reads."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in loads}
    inner = (global_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return found.union(*inner) - set(code.co_varnames)


def is_function(value: Any) -> bool:
    """Return True for a jitted or compile-time function of either compiler, tuned or not."""
    return type(value).__module__.partition(".")[0] in COMPILERS and isinstance(
        getattr(unwrapped(value), "fn", None), FunctionType
    )


def is_literal(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | bytes | tuple)


def is_of_compiler(value: Any, name: str) -> bool:
    """Return True if a value is an instance of a class of a compiler's language."""
    classes = type(value).__mro__
    return any(one.__name__ == name and one.__module__.partition(".")[0] in COMPILERS for one in classes)


def decorator(function: Any) -> str:
    """Return the decorator of a function, with what changes its code."""
    if "Constexpr" in type(function).__name__:
        return "triton.constexpr_function"
    given = {name: getattr(function, name, None) or none for name, none in NO_DECORATOR_ARGUMENTS.items()}
    given = {name: list(value) if isinstance(value, tuple | list) else value for name, value in given.items()}
    shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value != NO_DECORATOR_ARGUMENTS[name])
    return f"triton.jit({shown})" if shown else "triton.jit"


def with_triton(module: str) -> str:
    """Return Triton's name of a compiler's module."""
    root, dot, inner = module.partition(".")
    return f"triton{dot}{inner}" if root == "tilework" else module


def origin_in_compiler(value: Any) -> tuple[str, str] | None:
    """Return the module and the name under which a compiler provides a function or class."""
    function = value.fn if is_function(value) else value
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not isinstance(value, Callable):
        return None
    if module.partition(".")[0] not in COMPILERS or "triton_kernels" in module:
        return None
    public = ("language", "language.math", "language.extra.libdevice", "language.extra.cuda.libdevice")
    root = module.partition(".")[0]
    for place in (*(f"{root}.{inner}" for inner in public), module):
        if getattr(sys.modules.get(place), name, None) is value:
            return with_triton(place), name
    raise CannotExtract(f"{module}.{name} is not where it says")
