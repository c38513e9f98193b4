"""Compilations as JSON messages: another process repeats one from the text of its kernel, and runs no other user code.

    @tilework.jit                            {"name": "scale", "file": "train.py", "line": 7, "lines": ["def ..."],
    def scale(x):                      ==>    "names": {"tl": {"module": "tilework.language"},
        tl.store(x, FACTOR * scaled(x))                 "FACTOR": {"constexpr": 3}, "scaled": {"function": 1}}, ...},
                                             {"name": "scaled", ...}

A message has the kernel and the jit functions that it calls, each with its file and line and the values of the names
that its text uses: constants as they are now, parts of tilework by name. So a kernel may be defined in a script, in a
notebook's file or inside of a function, and torch is not loaded for a constant. Other values (functions that run at
compile time, classes, objects) are not known to be the same in another process. A kernel that uses some is sent by
name, `{"named": [module, file, qualname]}`, and the receiver executes the part of its file that defines it
(`slice_for`), or imports the module. Both sides compare the kernel's `cache_key`.

The `specialization_data` of compile hooks (`launch/python/specialization.py`) is Triton's format for constants, which
names functions and never sends their text; that is why it is not used here.
"""

import ast
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import Parameter
from types import FunctionType, ModuleType
from typing import Any

from tilework.language import core as tl
from tilework.language.dependencies import COMPILE_TIME_MODULES, PACKAGE
from tilework.language.function import JITFunction
from tilework.language.origins import module_of
from tilework.runtime.compile.sources import ASTSource
from tilework.target import GPUTarget

Message = dict[str, Any]  # JSON

PLAIN = (bool, int, float, str, type(None))
KIND = JITFunction.__name__  # a subclass of another name may read its text in a way of its own
NO_LINE = "pass\n"  # not an empty line: a function before an indented one would not end
RECEIVERS: "list[Receiver]" = []  # the last one: configurations of one kernel follow each other
SLICES: dict[tuple[str, str], ModuleType] = {}  # modules that this process has loaded in part, by file and kernel


class NotSendable(Exception):
    """A value that another process may not have, or not with the same meaning."""


class Refused(Exception):
    """This process cannot repeat a compilation that was sent to it; the text is the reason."""


def send(file: int, data: bytes) -> None:
    """Write a message, or a part of one, to a pipe."""
    while data:
        data = data[os.write(file, data) :]


# ---- sending


class Sender:
    """Encodes values, and collects the jit functions that they refer to.

    ``sender.value(kernel)`` is ``{"function": 0}``; ``sender.functions[0]`` describes that kernel.
    """

    def __init__(self) -> None:
        self.functions: list[Message] = []
        self.indices: dict[int, int] = {}  # of the functions, by id()

    def value(self, value: Any, members: Mapping[str, list[str]] | None = None) -> Any:
        """Return a constant, a function or a part of tilework as JSON; of other modules only `members[module]`."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is tl.constexpr:
            return {"constexpr": self.value(value.value)}
        if kind is tl.dtype:
            return {"dtype": value.name}
        if kind is tuple or kind is list:
            return {kind.__name__: [self.value(item) for item in value]}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.value(item) for key, item in value.items()}}
        if isinstance(value, JITFunction) and not (value.fn is not None and is_of_tilework(module_of(value.fn))):
            return {"function": self.function(value)}
        if kind is ModuleType and (is_of_tilework(value.__name__) or value.__name__ in COMPILE_TIME_MODULES):
            return {"module": value.__name__}
        if kind is ModuleType and members is not None:
            used = {name: getattr(value, name) for name in members.get(value.__name__, ()) if hasattr(value, name)}
            sent = {name: self.value(item, members) for name, item in used.items()}
            return {"partial_module": value.__name__, "members": sent}
        module, name = module_of(value), getattr(value, "__qualname__", None)
        if isinstance(name, str) and is_of_tilework(module):
            for holder in (module, tl.__name__):  # the second has builtins as kernels call them
                if named_object(holder, name) is value:
                    return {"object": [holder, name]}
        raise NotSendable(f"{kind.__name__} {name or ''}")

    def function(self, fn: JITFunction) -> int:
        """Return the index of a jit function, which is described once."""
        if id(fn) in self.indices:
            return self.indices[id(fn)]
        kind = type(fn)
        if kind.__name__ != KIND or not is_of_tilework(kind.__module__) or type(fn.fn) is not FunctionType:
            raise NotSendable(f"{fn._fn_name} is a subclass of JITFunction")
        if fn._is_updated or fn._file.startswith("<") or fn._repr is not None:
            raise NotSendable(f"{fn._fn_name} differs from its file")
        index = self.indices[id(fn)] = len(self.functions)
        self.functions.append({})
        found, scope = fn.dependencies, fn.get_capture_scope()
        if found.plain_functions or found.classes:
            raise NotSendable(f"{fn._fn_name} calls Python functions or classes")
        members: dict[str, list[str]] = {}
        for module, attribute in found.members:
            members.setdefault(module, []).append(attribute)
        self.functions[index] = {
            "module": fn.fn.__module__,
            "name": fn.fn.__name__,
            "qualname": fn.fn.__qualname__,
            "file": fn._file,
            "line": fn.def_line,
            "lines": fn.raw_src[fn._header[0] :],
            "names": {name: self.value(scope[name], members) for name in found.names if name in scope},
            "defaults": encoded_defaults(fn.fn.__defaults__),
            "kwdefaults": encoded_defaults(fn.fn.__kwdefaults__),
            "notes": {param.name: param._note for param in fn.params if param._param.annotation is not Parameter.empty},
            "settings": {
                "noinline": self.value(fn.noinline),
                "debug": self.value(fn.debug),
                "do_not_specialize": fn.do_not_specialize,
                "do_not_specialize_on_alignment": fn.do_not_specialize_on_alignment,
            },
        }
        return index


def encoded_defaults(values: tuple[object, ...] | dict[str, Any] | None) -> Any:
    """Return default arguments as JSON; functions among them would have to exist before those that have them."""
    sender = Sender()
    sent = sender.value(values)
    if sender.functions:
        raise NotSendable("functions as default arguments")
    return sent


def encoded_compilation(
    source: ASTSource, target: GPUTarget, options: Mapping[str, object], key: str
) -> Message | None:
    """Return the message for a compilation whose cache entry is called `key`; None if it cannot be sent."""
    sender = Sender()
    try:
        try:
            fn: Message = {"function": sender.function(source.fn)}
        except NotSendable:
            sender = Sender()
            fn = {"named": kernel_name(source.fn)}
        return {
            "source": {
                "fn": fn,
                "signature": sender.value(source.signature),
                "constants": [sender.value(item) for item in source.constants.items()],
                "attrs": [sender.value(item) for item in source.attrs.items()],
            },
            "options": sender.value(dict(options)),
            "functions": sender.functions,
            "fn_key": source.fn.cache_key,
            "entry_key": key,
            "target": [target.backend, target.arch, target.warp_size],
        }
    except NotSendable:
        return None


def kernel_name(fn: JITFunction) -> list[str]:
    """Return the module, file and qualified name that define a kernel."""
    file, name = fn._file, fn.__qualname__
    if "<locals>" in name or getattr(fn.fn, "__closure__", None) or not os.path.isfile(file):
        raise NotSendable(f"{name} is not at the top level of a file")
    if fn.__module__ == "__main__" and "." in name:
        raise NotSendable(f"{name} is in a class of a script")
    return [fn.__module__, os.path.abspath(file), name]


# ---- receiving


def decoded_compilation(message: Message) -> tuple[ASTSource, GPUTarget, dict[str, Any]]:
    """Return the source, the target and the options of a message; raise `Refused` if the kernel differs here."""
    if not RECEIVERS or RECEIVERS[0].functions != message["functions"]:
        RECEIVERS[:] = [Receiver(message["functions"])]
    receiver, sent = RECEIVERS[0], message["source"]
    if "named" in sent["fn"]:
        module, file, name = sent["fn"]["named"]
        kernel = find_kernel(module, file, name, message["fn_key"])
    else:
        kernel = receiver.value(sent["fn"])
        if kernel.cache_key != message["fn_key"]:
            raise Refused(f"{kernel} is a different kernel in this process")
    constants, attrs = (dict(receiver.value(item) for item in sent[part]) for part in ("constants", "attrs"))
    source = ASTSource(kernel, receiver.value(sent["signature"]), constants, attrs)
    return source, GPUTarget(*message["target"]), receiver.value(message["options"])


class Receiver:
    """The inverse of `Sender`: ``Receiver(functions).value({"function": 0})`` is the kernel."""

    def __init__(self, functions: list[Message]) -> None:
        self.functions = functions
        self.made: list[JITFunction] = []
        for sent in functions:
            provide_lines(sent["file"], sent["line"], sent["lines"])
        plain = [self.defined(sent) for sent in functions]
        self.made = [JITFunction(fn, **sent["settings"]) for fn, sent in zip(plain, functions, strict=True)]
        for fn, sent in zip(plain, functions, strict=True):
            fn.__globals__.update({name: self.value(item) for name, item in sent["names"].items()})

    def defined(self, sent: Message) -> FunctionType:
        """Return the Python function of a message, without the names that it refers to."""
        fn = defined_function(sent)
        fn.__module__, fn.__name__, fn.__qualname__ = sent["module"], sent["name"], sent["qualname"]
        fn.__defaults__, fn.__kwdefaults__ = self.value(sent["defaults"]), self.value(sent["kwdefaults"])
        fn.__annotations__ = sent["notes"]
        return fn

    def value(self, sent: object) -> Any:
        if not isinstance(sent, dict):
            return sent
        (kind, inner), *rest = sent.items()
        if kind == "constexpr":
            return tl.constexpr(self.value(inner))
        if kind == "dtype":
            return tl.dtype(inner)
        if kind in ("tuple", "list"):
            items = [self.value(item) for item in inner]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {key: self.value(item) for key, item in inner.items()}
        if kind == "function":
            return self.made[inner]
        if kind == "module":
            return import_module(inner)
        if kind == "object":
            return named_object(*inner)
        module = ModuleType(inner)
        vars(module).update({name: self.value(item) for name, item in dict(rest)["members"].items()})
        return module


def is_of_tilework(module: str) -> bool:
    return f"{module}.".startswith(f"{PACKAGE}.")


def named_object(module: str, name: str) -> Any:
    """Return what a module calls `name`, which may have dots; None if nothing."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def provide_lines(file: str, line: int, lines: list[str]) -> None:
    """Let Python find these lines in a file, whatever the file contains now."""
    known = linecache.cache.get(file)
    text = list(known[2]) if known is not None and len(known) == 4 else []
    text += [NO_LINE] * (line - 1 + len(lines) - len(text))
    text[line - 1 : line - 1 + len(lines)] = lines
    linecache.cache[file] = (sum(map(len, text)), None, text, file)  # without a time: never read from the file again


def defined_function(sent: Message) -> FunctionType:
    """Define the function of a text at its line, without annotations and defaults."""
    indent = len(sent["lines"][0]) - len(sent["lines"][0].lstrip())
    text = "".join(line[indent:] if not line[:indent].strip() else line for line in sent["lines"])
    tree = ast.parse(text)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    arguments, nothing = function.args, ast.Constant(None)
    for parameter in ast.walk(arguments):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    arguments.defaults = [nothing for _ in arguments.defaults]
    arguments.kw_defaults = [default and nothing for default in arguments.kw_defaults]
    function.returns = None
    ast.increment_lineno(ast.fix_missing_locations(tree), sent["line"] - 1)
    scope: dict[str, Any] = {"__name__": sent["module"]}
    exec(compile(tree, sent["file"], "exec"), scope)
    return scope.pop(function.name)


# ---- kernels that are sent by name


def find_kernel(module: str, file: str, name: str, key: str) -> JITFunction:
    """Return the kernel that a file defines, from a part of it or all of it; raise `Refused` if its key differs."""
    refusal = Refused(f"{file} is not a Python module")
    linecache.cache.pop(file, None)  # lines of kernels that came as text
    for load in (slice_of, load_module) if module != "__main__" else (slice_of,):  # a script is not run again
        try:
            return kernel_in(load(module, file, name), name, key)
        except Refused as error:
            refusal = error
        except Exception as error:  # the whole module may have what a part lacks
            refusal = Refused(f"{type(error).__name__}: {error}")
    raise refusal


def found_again(fn: JITFunction) -> JITFunction:
    """Return the kernel that came without its Python function (``fn.fn = None``, as torch's compile workers send it),
    as its file defines it."""
    try:
        module, file, name = kernel_name(fn)
        return find_kernel(module, file, name, fn.cache_key)
    except (NotSendable, Refused) as error:
        raise RuntimeError(
            f"{fn._fn_name} was sent without its Python function, cannot be read from {fn._file} ({error}), and so"
            " cannot be compiled again"
        ) from error


def kernel_in(module: ModuleType, name: str, key: str) -> JITFunction:
    """Return the kernel `name` of a module if `key` is its cache key."""
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused(f"{module.__name__} does not define {name}")
        found = getattr(found, part)
    while not isinstance(found, JITFunction):
        if not hasattr(found, "fn"):
            raise Refused(f"{module.__name__}.{name} is not a kernel")
        found = found.fn
    if found.cache_key != key:
        raise Refused(f"{module.__name__}.{name} is another kernel after importing it again")
    return found


def slice_of(module: str, file: str, name: str) -> ModuleType:
    """Return the part of a file that a kernel needs, as a module."""
    if (file, name) not in SLICES:
        SLICES[file, name] = load_slice(file, module, name)
    if module == "__main__":
        sys.modules["__main__"] = SLICES[file, name]
    return SLICES[file, name]


def load_module(name: str, file: str, _: str) -> ModuleType:
    """Import the module that defines a kernel."""
    try:
        found = import_module(name)
    except ImportError:
        found = None
    if found is not None and is_same_file(getattr(found, "__file__", None), file):
        return found
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Refused(f"{file} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_same_file(one: str | None, other: str) -> bool:
    return one is not None and os.path.exists(one) and os.path.samefile(one, other)


# ---- the part of a script that a kernel needs, so that another process can define the kernel without running the
# script.
#
#     import tilework, tilework.language as tl            import tilework, tilework.language as tl
#     SIZE = tl.constexpr(4)                              SIZE = tl.constexpr(4)
#     @tilework.jit                                       @tilework.jit
#     def add(x, y): ... SIZE ...                  ==>    def add(x, y): ... SIZE ...
#     x = make_input()
#     benchmark(x)
#
# Kept are the statements that bind a name the kernel refers to, directly or through other statements that are kept; how
# it is tuned (`autotune`, `heuristics`) is left out. Line numbers are preserved, so the kernel's source and hash are
# those of the original. What the slice misses (names bound by calls, for example) shows as an error or as another hash,
# and the caller then compiles the kernel where it is.


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
