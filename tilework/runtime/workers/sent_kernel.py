"""A kernel as a message: another process makes it again from its text, without running any of the user's code.

    @tilework.jit                            {"name": "scale", "file": "train.py", "line": 7, "lines": ["def scale(x): ..."],
    def scale(x):                      ==>    "names": {"tl": {"module": "tilework.language"}, "FACTOR": {"constexpr": 3},
        tl.store(x, FACTOR * helper(x))                 "helper": {"function": 1}}, ...}, {"name": "helper", ...}

Sent are the kernel and the jit functions that it refers to, each with its place and whatever its text names outside of itself:
constants as they are now, parts of tilework by name. Everything else is not known to be the same in another process (what runs at
compile time, classes, objects), and a kernel that refers to it is not sent. So where a kernel was defined does not matter: in a
script, a notebook, another function. Both sides compute the kernel's `cache_key`.
"""

import ast
import linecache
from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter
from types import FunctionType, ModuleType
from typing import Any

from tilework.language import core as tl
from tilework.language.constant_text import module_of
from tilework.language.dependencies import COMPILE_TIME_MODULES, PACKAGE
from tilework.language.function import JITFunction
from tilework.runtime.workers.line_channel import Message

PLAIN = (bool, int, float, str, type(None))
KIND = (
    JITFunction.__name__
)  # of ours; a class that inherits from it under another name may read its text in a way of its own


class NotSendable(Exception):
    """Something that another process may not have, or not like this."""


class Sender:
    """Collects the functions of one compilation: ``sender.value(kernel)`` is ``{"function": 0}``, `sender.functions` has the rest."""

    def __init__(self) -> None:
        self.functions: list[Message] = []
        self.numbers: dict[int, int] = {}

    def value(self, value: Any, members: Mapping[str, list[str]] | None = None) -> Any:
        """A constant, a function or a part of tilework as JSON; of other modules those members that are named."""
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
        if isinstance(value, JITFunction) and not (value.fn is not None and is_ours(module_of(value.fn))):
            return {"function": self.function(value)}
        if kind is ModuleType and (is_ours(value.__name__) or value.__name__ in COMPILE_TIME_MODULES):
            return {"module": value.__name__}
        if kind is ModuleType and members is not None:
            named = {name: getattr(value, name) for name in members.get(value.__name__, ()) if hasattr(value, name)}
            return {
                "made": value.__name__,
                "members": {name: self.value(item, members) for name, item in named.items()},
            }
        module, name = module_of(value), getattr(value, "__qualname__", None)
        if isinstance(name, str) and is_ours(module):
            for place in (module, tl.__name__):  # the second has builtins as kernels call them
                if named_object(place, name) is value:
                    return {"part": [place, name]}
        raise NotSendable(f"{kind.__name__} {name or ''}")

    def function(self, fn: JITFunction) -> int:
        """The number of a jit function, which is sent once."""
        if id(fn) in self.numbers:
            return self.numbers[id(fn)]
        kind = type(fn)
        if kind.__name__ != KIND or not is_ours(kind.__module__) or type(fn.fn) is not FunctionType:
            raise NotSendable(f"{fn._fn_name} is a kernel of another kind")
        if fn._is_updated or fn._file.startswith("<") or fn._repr is not None:
            raise NotSendable(f"{fn._fn_name} is not what its file says")
        number = self.numbers[id(fn)] = len(self.functions)
        self.functions.append({})
        found, scope = fn.dependencies, fn.get_capture_scope()
        if found.plain_functions or found.classes:
            raise NotSendable(f"{fn._fn_name} runs functions or has classes")
        members: dict[str, list[str]] = {}
        for module, attribute in found.members:
            members.setdefault(module, []).append(attribute)
        self.functions[number] = {
            "module": fn.fn.__module__,
            "name": fn.fn.__name__,
            "qualname": fn.fn.__qualname__,
            "file": fn._file,
            "line": fn.def_line,
            "lines": fn.raw_src[fn._header[0] :],
            "names": {name: self.value(scope[name], members) for name in found.names if name in scope},
            "defaults": constants(fn.fn.__defaults__),
            "kwdefaults": constants(fn.fn.__kwdefaults__),
            "notes": {param.name: param._note for param in fn.params if param._param.annotation is not Parameter.empty},
            "settings": {
                "noinline": self.value(fn.noinline),
                "debug": self.value(fn.debug),
                "do_not_specialize": fn.do_not_specialize,
                "do_not_specialize_on_alignment": fn.do_not_specialize_on_alignment,
            },
        }
        return number


def described(source: Any, target: Any, options: Mapping[str, Any], key: str) -> Message | None:
    """A compilation with the text of its kernel, for the key that it should have; None if it cannot be sent."""
    sender = Sender()
    try:
        return {
            "source": {
                "fn": {"function": sender.function(source.fn)},
                "signature": sender.value(source.signature),
                "constants": [sender.value(item) for item in source.constants.items()],
                "attrs": [sender.value(item) for item in source.attrs.items()],
            },
            "options": sender.value(dict(options)),
            "functions": sender.functions,
            "fn_key": source.fn.cache_key,
            "entry_key": key,
            "target": (target.backend, target.arch, target.warp_size),
        }
    except NotSendable:
        return None


def constants(values: Any) -> Any:
    """Default arguments as JSON; functions among them would have to be there before those that have them."""
    sender = Sender()
    sent = sender.value(values)
    if sender.functions:
        raise NotSendable("functions as default arguments")
    return sent


class Receiver:
    """The inverse: ``Receiver(functions).value({"function": 0})`` is the kernel."""

    def __init__(self, functions: list[Message]) -> None:
        self.made: list[JITFunction] = []
        for sent in functions:
            place_lines(sent["file"], sent["line"], sent["lines"])
        plain = [self.defined(sent) for sent in functions]
        self.made = [JITFunction(fn, **sent["settings"]) for fn, sent in zip(plain, functions, strict=True)]
        for fn, sent in zip(plain, functions, strict=True):
            fn.__globals__.update({name: self.value(item) for name, item in sent["names"].items()})

    def defined(self, sent: Message) -> FunctionType:
        """The Python function of a message, without the names that it refers to."""
        fn = defined(sent)
        fn.__module__, fn.__name__, fn.__qualname__ = sent["module"], sent["name"], sent["qualname"]
        fn.__defaults__, fn.__kwdefaults__ = self.value(sent["defaults"]), self.value(sent["kwdefaults"])
        fn.__annotations__ = sent["notes"]
        return fn

    def value(self, sent: Any) -> Any:
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
        if kind == "part":
            return named_object(*inner)
        module = ModuleType(inner)
        vars(module).update({name: self.value(item) for name, item in dict(rest)["members"].items()})
        return module


def is_ours(module: str) -> bool:
    return f"{module}.".startswith(f"{PACKAGE}.")


def named_object(module: str, name: str) -> Any:
    """What a module calls so; None if nothing."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def place_lines(file: str, line: int, lines: list[str]) -> None:
    """Let Python find these lines in a file, whatever is there now."""
    known = linecache.cache.get(file)
    text = list(known[2]) if known is not None and len(known) == 4 else []
    text += ["\n"] * (line - 1 + len(lines) - len(text))
    text[line - 1 : line - 1 + len(lines)] = lines
    linecache.cache[file] = (sum(map(len, text)), None, text, file)  # without a time: never looked at again


def defined(sent: Message) -> FunctionType:
    """The function of a text, at its line; annotations and defaults are left out."""
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
