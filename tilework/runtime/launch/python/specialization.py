"""One specialisation of a kernel: types, constants, facts and options, and the keys that name it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tilework import knobs
from tilework.language import core as tl
from tilework.language.compile_time import same_constant
from tilework.language.constant_text import constant_text
from tilework.language.dependencies import functions_in
from tilework.language.function import JITCallable, JITFunction
from tilework.language.object_state import methods_of
from tilework.language.origins import is_of_language
from tilework.runtime.launch.python.specialize import Spec, parse_attr

if TYPE_CHECKING:
    from tilework.runtime.compile.compiled import CompiledKernel
    from tilework.runtime.compile.sources import ASTSource
    from tilework.target import GPUTarget
    from tilework.targets.options import CompileOptions

Path = tuple[int, ...]
HOOK_OPTIONS = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")


class JitFunctionInfo:
    """The kernel that a compile hook is called for."""

    def __init__(self, module: str, name: str, jit_function: JITFunction) -> None:
        self.module, self.name, self.jit_function = module, name, jit_function

    def __repr__(self) -> str:
        return f"JitFunctionInfo(module={self.module!r}, name={self.name!r}, jit_function={self.jit_function!r})"


class Specialization:
    """The facts about a launch that the compiler needs; `values` are its arguments, for messages."""

    # a plain class: every first launch makes one, and making the methods of a dataclass takes half a millisecond

    def __init__(
        self,
        fn: JITFunction,
        signature: dict[str, object],
        constants: dict[Path, object],
        attrs: dict[Path, list[list[object]]],
        options: dict[str, object],
        key: str = "",
        values: Sequence[object] = (),
    ) -> None:
        self.fn, self.signature, self.constants, self.attrs = fn, signature, constants, attrs
        self.options, self.key, self.values = options, key, values

    @classmethod
    def of(
        cls,
        fn: JITFunction,
        values: Sequence[Any],
        specs: Sequence[Spec],
        options: dict[str, object],
        stages: object = None,
    ) -> "Specialization":
        """Make one from the bound arguments of a launch and their specs; `stages` is the hash of the user's stages."""
        signature: dict[str, object] = {}
        constants: dict[Path, object] = {}
        attrs: dict[Path, list[list[object]]] = {}
        for index, (name, value, (type, key)) in enumerate(zip(fn.arg_names, values, specs, strict=True)):
            signature[name] = type
            collect(type, key, value, (index,), constants, attrs)
        version = knobs.language.triton_version
        custom: list[object] = [] if version == knobs.TRITON_VERSION else [("triton_version", version)]
        if stages is not None:
            custom.append(("custom_pipeline", stages))
        text = constant_text([*specs, *custom]) + constant_text(options)
        return cls(fn, signature, constants, attrs, options, text, values)

    def source(self) -> "ASTSource":
        """The source to compile."""
        from tilework.runtime.compile.sources import ASTSource  # lazily: the compiler loads when something is compiled

        constants = {path: unwrapped(value) for path, value in self.constants.items()}
        return ASTSource(self.fn, self.signature, constants, self.attrs)

    def compile_for(self, target: "GPUTarget", **more: object) -> "CompiledKernel":
        """The compiled kernel for a target, from the disk cache if it is there; `more` are further options."""
        from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled

        return compile(self.source(), target, {**self.options, **more})

    def text(self, options: "CompileOptions") -> str:
        """``add[num_warps=4, ...](x: *fp32, n: i32)``, for people."""
        arguments = ", ".join(f"{name}: {type}" for name, type in self.signature.items())
        return (
            f"{self.fn.__name__}[{', '.join(f'{name}={getattr(options, name)}' for name in HOOK_OPTIONS)}]({arguments})"
        )

    def describe(self, options: "CompileOptions", target: "GPUTarget", device: object, warmup: bool) -> dict[str, Any]:
        """The arguments of compile hooks."""
        return {
            "key": self.key,
            "signature": self.signature,
            "device": device,
            "constants": self.constants,
            **{name: getattr(options, name) for name in HOOK_OPTIONS},
            "extern_libs": options.extern_libs,
            "configs": [self.attrs],
            "specialization_data": self.to_data(options, target),
            "is_warmup": warmup,
        }

    def to_data(self, options: "CompileOptions", target: "GPUTarget") -> str:
        """JSON from which `preload` rebuilds the specialisation in another process."""
        return json.dumps(
            {
                "name": f"{self.fn.fn.__module__}.{self.fn.fn.__qualname__}",
                "signature": {name: encode(type, is_plain=True) for name, type in self.signature.items()},
                "constant_keys": [list(path) for path in self.constants],
                "constant_vals": [encode(value) for value in self.constants.values()],
                "attrs_keys": [list(path) for path in self.attrs],
                "attrs_vals": list(self.attrs.values()),
                "options": as_json(asdict(options)),
                "launch_options": as_json(self.options),  # with these the kernel is the one that a launch compiles
                "key": self.key,
                "target": target_data(target),
            }
        )

    @classmethod
    def from_data(cls, fn: JITFunction, data: Mapping[str, Any]) -> "Specialization":
        """The inverse of `to_data`."""
        values = (decode(value, key=data["key"]) for value in data["constant_vals"])
        constants = {tuple(path): value for path, value in zip(data["constant_keys"], values, strict=True)}
        attrs = {tuple(path): value for path, value in zip(data["attrs_keys"], data["attrs_vals"], strict=True)}
        signature = {name: decode(type, is_plain=True) for name, type in data["signature"].items()}
        given = data.get("launch_options", data["options"])
        options = {name: decode(value, is_plain=True) for name, value in given.items()}
        return cls(fn, signature, constants, attrs, options, data["key"])


def unwrapped(value: object) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def collect(
    type: Any, key: Any, value: Any, path: Path, constants: dict[Path, object], attrs: dict[Path, list[list[object]]]
) -> None:
    """The constants and facts of one argument and, for tuples, of its leaves."""
    if isinstance(type, tuple):
        for index, (inner, inner_key, item) in enumerate(zip(type, key, value, strict=True)):
            collect(inner, inner_key, item, (*path, index), constants, attrs)
    elif type == "constexpr":
        constants[path] = value if len(path) > 1 else unwrapped(value)
    elif facts := parse_attr(key):
        attrs[path] = facts


def encode(value: object, is_plain: bool = False) -> Any:
    """A constant as JSON: dtypes by name, tuples as lists, everything else that could be taken for these marked.

    In types and options (`is_plain`) a text is a text, also if it names a dtype.
    """
    if isinstance(value, tl.constexpr):
        return {"constexpr": encode(value.value)}
    if isinstance(value, tl.dtype):
        return str(value)
    if isinstance(value, str):
        return {"text": value} if not is_plain and tl.dtype.is_dtype(value) else value
    if isinstance(value, JITCallable):
        return {"jit_function": named(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        cls = type(value)
        items = [encode(item, is_plain) for item in value]
        return {"named_tuple": f"{cls.__module__}:{cls.__qualname__}", "items": items}
    if isinstance(value, tuple):
        return [encode(item, is_plain) for item in value]
    if isinstance(value, list):
        return {"list": [encode(item, is_plain) for item in value]}
    return value


def as_json(options: Mapping[str, object]) -> dict[str, Any]:
    return {name: encode(value, is_plain=True) for name, value in options.items()}


def decode(value: object, is_plain: bool = False, key: str | None = None) -> Any:
    """The inverse of `encode`; `key` is that of a specialisation with the value, which has the hashes of functions."""
    if isinstance(value, str):
        return tl.dtype(value) if not is_plain and tl.dtype.is_dtype(value) else value
    if isinstance(value, list):
        return tuple(decode(item, is_plain, key) for item in value)
    if not isinstance(value, dict):
        return value
    (kind, inner), *_ = value.items()
    if kind == "constexpr":
        return tl.constexpr(decode(inner, key=key))
    if kind == "text":
        return inner
    if kind == "list":
        return [decode(item, is_plain, key) for item in inner]
    if kind in ("jit_function", "named_tuple"):
        if kind == "jit_function":
            return function_named(inner, key)
        from pkgutil import resolve_name  # lazily: few preload

        return resolve_name(inner)(*(decode(item, is_plain, key) for item in value["items"]))
    return value


# ---- jit functions by name: constants of a kernel may be functions, and local ones cannot be imported


FUNCTIONS: "defaultdict[str, WeakSet[JITCallable]]" = defaultdict(WeakSet)  # local ones may share a name


def named(function: JITCallable) -> str:
    """``module:qualname``."""
    return f"{function.__module__}:{function.__qualname__}"


def function_named(name: str, key: str | None = None) -> Any:
    """Return the function that `named` gives this name, importing its module if that has not been done; with the `key`
    of a specialisation the one whose code that was compiled with."""
    found: Iterable[Any] = [*FUNCTIONS[name]] if name in FUNCTIONS else ()
    if not found:
        from pkgutil import resolve_name  # lazily: few preload

        try:
            found = [resolve_name(name)]
        except (ImportError, AttributeError, ValueError) as error:
            raise RuntimeError(f"Unable to resolve JITFunction {name} for preload") from error
    for function in found:
        if key is None or constant_text(function) in key:
            return function
    raise RuntimeError(f"Unable to resolve JITFunction {name} for preload: its code has changed")


def target_data(target: "GPUTarget") -> dict[str, object]:
    """A target as JSON."""
    return {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}


# ---- globals that a kernel reads are fixed when it is compiled; a launch after one of them changed is an error


Captured = dict[tuple[str, int], tuple[Any, Any]]


def collect_globals(fn: Any, found: Captured | None = None, seen: set[int] | None = None) -> Captured:
    """The globals that `fn` and all functions it calls read, with the values they were compiled with."""
    found = {} if found is None else found
    seen = set() if seen is None else seen
    if id(fn) in seen:
        return found
    seen.add(id(fn))
    for key, (value, scope) in fn.used_global_vals.items():
        if key in found and not same(found[key][0], value):
            name = key[0]
            raise RuntimeError(
                f"Global variable {name} has value {value} when compiling {fn.__name__}, but inner kernel"
                f" {fn.__name__} has conflicting value {found[key][0]} from when it was first compiled."
                "  This is not allowed."
            )
        found[key] = (value, scope)
    methods = (method for cls in fn.dependencies.classes for _, method in methods_of(cls))
    for function in (*fn.dependencies.functions, *methods):
        if hasattr(type(function), "used_global_vals") and not is_library(function):
            collect_globals(function, found, seen)
    return found


def is_library(function: Any) -> bool:
    """Return True for functions of this package, whose globals are a part of the version."""
    return function.fn is not None and is_of_language(function.fn)


def unless_same(old: Captured | None, new: Captured) -> Captured:
    """Return `old` if `new` is equal, so that watchers of its identity see no change."""
    if old is None or old.keys() != new.keys():
        return new
    return old if all(old[key][0] is value for key, (value, _) in new.items()) else new


def globals_of_constants(constants: Iterable[object]) -> Captured:
    """The globals that functions among the constants of a kernel read."""
    found: Captured = {}
    for function in functions_in(list(constants)):
        if hasattr(function, "used_global_vals"):
            collect_globals(function, found)
    return found


def same(old: object, new: object) -> bool:
    """Return True if two values are equal as constants of a kernel; a constexpr is compared by its value."""
    try:
        return same_constant(getattr(old, "value", old), getattr(new, "value", new))
    except Exception:  # a user's __eq__ may raise anything; unequal only compiles again
        return False


def check_globals(captured: Captured) -> None:
    """Raise an error if a global has another value than when the kernel was compiled."""
    for (name, _), (old, scope) in captured.items():
        new = scope.get(name)
        if new is not old and not same(old, new):
            raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {old} to {new}")
