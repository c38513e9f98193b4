"""One specialization of a kernel: the types of its parameters, its constants and options, and the symbols of its
functions.

    KernelSignature.of(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64},
                       {(0,): [["tt.divisibility", 16]]})

Index paths name parameters and, for tuples, their leaves: ``(2,)`` is the third parameter, ``(2, 0)`` its first
element.

`FrontendOptions` are the properties of the target and the user's settings that the frontend needs. The backend derives
those of the target (its fp8 formats, dot precisions ...); `runtime/compile/sources.py` copies them.

    >>> FrontendOptions(arch=80, supported_fp8_dtypes=("fp8e5",)).target.arch
    80

The symbol of a specialized function has its name, argument types and constants:

    sum of a tensor<4096xf32> with axis 0   ->   tilework.language.standard.sum__fp32S4096S_c0_cFalse_cNone

The text is for people (and for tests that look for parts of it) and is not unique: two functions made by the same
factory look the same. Two calls share a function if the types of their arguments,
constants among them, are equal; of two functions with the same symbol, the later one gets a numeric suffix.

Symbols are ASCII, as identifiers of PTX and of most assemblers are: another character is written as its code,
``größe`` is ``gr_u00f6__u00df_e``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from xdsl.ir import Attribute

from tilework.errors import CompilationError
from tilework.frontend.semantic.building import ir_types
from tilework.ir.types import i32, int_attr, string_attr
from tilework.language import core as tl
from tilework.language.function import JITCallable, JITFunction, ascii_symbol
from tilework.light_dataclass import light_dataclass
from tilework.numerics.formats import DOT_PRECISIONS, FP8_TYPES
from tilework.process.triton_version import follows

MinDotSize = Callable[[Any, Any], tuple[int, int, int]]


def any_dot_size(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    """A target without tensor cores takes any size."""
    return (1, 1, 1)


@light_dataclass
class FrontendOptions:
    """One value per decision that depends on the target or on a knob."""

    backend_name: str = "cuda"
    arch: int | str | None = None  # 90, "gfx942", "host"
    features: frozenset[str] = frozenset()  # of the target, by name
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    debug: bool = False
    sanitize: bool | str = False
    sanitize_overflow: bool = True
    reproducible: bool = False
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    min_dot_size: MinDotSize = any_dot_size
    f32_default: str | None = None
    warp_size: int = 32
    allow_non_constexpr_globals: bool = False
    front_end_debugging: bool = False
    beyond_triton: str = "allow"  # or "warn", or "error": Python that Triton does not have

    @property
    def target(self) -> SimpleNamespace:
        """The target that `tl.target_info.current_target()` returns in the kernel."""
        return SimpleNamespace(backend=self.backend_name, arch=self.arch, warp_size=self.warp_size)


class Mangler:
    """Makes the symbols of one module, all different."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.text_of = callee_name if follows("callee-names") else callee_name_of_3_6

    def symbol(self, fn: JITCallable, types: Sequence[Any]) -> str:
        """A new symbol for `fn` on arguments of `types`."""
        text = ascii_symbol(self.text_of(f"{fn.fn.__module__}.{fn.fn.__qualname__}", types))
        count = self.used[text] = self.used.get(text, -1) + 1
        return f"{text}.{count}" if count else text


QUOTES = (("'", "_sq_"), ("[", "_"), ("]", "_"))


def callee_name(name: str, types: Sequence[Any]) -> str:
    """Return the text of a function and its arguments in a symbol, constants among them."""
    return replaced(f"{name}__{'_'.join(type.mangle() for type in types)}", QUOTES)


def callee_name_of_3_6(name: str, types: Sequence[Any]) -> str:
    """Return the text in Triton 3.6: types first, then the constants with their index paths."""
    runtime = "_".join(leaf.mangle() for type in types for leaf in runtime_types_in(type))
    constants = "_".join(
        f"{path}c{constant_text(value)}"
        for index, type in enumerate(types)
        for path, value in constants_in(type, (index,))
    )
    constants = replaced(constants, ((".", "_d_"), *QUOTES))
    return f"{name.replace('.<locals>.', '.')}__{runtime}__{constants}"


def replaced(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return `text` with each first part of `pairs` replaced by the second."""
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def constant_text(value: Any) -> str:
    """Return the text of a constant in a symbol."""
    return repr(value) if value is None or isinstance(value, JITCallable) else repr(tl.constexpr(value))


def runtime_types_in(type: Any) -> Iterator[Any]:
    """The run-time leaves of an argument type."""
    if isinstance(type, tl.tuple_type):
        for item in type.types:
            yield from runtime_types_in(item)
    elif not isinstance(type, tl.constexpr_type):
        yield type


def constants_in(type: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The compile-time leaves of an argument type with their index paths."""
    if isinstance(type, tl.constexpr_type):
        yield path, type.value
    elif isinstance(type, tl.tuple_type):
        for index, item in enumerate(type.types):
            yield from constants_in(item, (*path, index))


Path = tuple[int, ...]


@light_dataclass
class KernelSignature:
    """A kernel with all its parameter types; constants are types of their own (`constexpr_type`)."""

    fn: JITFunction
    types: tuple[Any, ...]
    attrs: Mapping[Path, Sequence[Sequence[Any]]]
    symbol: str

    @classmethod
    def of(
        cls,
        fn: JITFunction,
        signature: Mapping[str, Any],
        constexprs: Mapping[Any, Any],
        attrs: Mapping[Path, Sequence[Sequence[Any]]],
    ) -> "KernelSignature":
        """Check names and build the types; raises CompilationError or TypeError about the signature."""
        check_specialization_flags(fn)
        for key in signature:
            if not isinstance(key, str):
                raise TypeError(f"signature keys must be parameter names, got {key!r}")
            if key not in fn.arg_names:
                raise TypeError(f"{fn.__name__} has no parameter {key!r}; its parameters are {', '.join(fn.arg_names)}")
        constants = {cls._path(fn, key): value for key, value in constexprs.items()}
        types = []
        for index, name in enumerate(fn.arg_names):
            code = signature.get(name, "constexpr")
            if code == "constexpr" and (index,) not in constants:
                param = fn.params[index]
                if not param.has_default:
                    raise TypeError(f"no type and no value for parameter {name!r} of {fn.__name__}")
                constants[(index,)] = param.default
            types.append(parameter_type(code, (index,), constants))
        named = {fn.arg_names[path[0]]: value for path, value in constants.items() if len(path) == 1}
        text = fn.repr(SimpleNamespace(constants=named, signature=dict(signature)))
        name = text.rpartition(".")[2]
        if not name.isidentifier():
            raise CompilationError(fn.src, fn.parse().body[0], f"invalid kernel name {name!r}", where=fn.where)
        return cls(fn, tuple(types), attrs, ascii_symbol(name))

    @staticmethod
    def _path(fn: JITFunction, key: Any) -> Path:
        if isinstance(key, str):
            if key not in fn.arg_names:
                raise TypeError(f"{fn.__name__} has no parameter {key!r}; its parameters are {', '.join(fn.arg_names)}")
            return (fn.arg_names.index(key),)
        return key if isinstance(key, tuple) else (key,)

    def leaf_attributes(self) -> list[dict[str, Attribute]]:
        """One dictionary of argument attributes per IR argument."""
        found: list[dict[str, Attribute]] = []
        for index, type in enumerate(self.types):
            for path, leaf in leaves(type, (index,)):
                facts = {name: argument_attribute(value) for name, value in self.attrs.get(path, ())}
                found += [dict(facts) for _ in ir_types(leaf)]
        return found


def check_specialization_flags(fn: JITFunction) -> None:
    """A constexpr parameter is specialised by nature; saying otherwise is a mistake."""
    for param in fn.params:
        if param.is_constexpr and (param.do_not_specialize or param.do_not_specialize_on_alignment):
            raise CompilationError(
                fn.src,
                fn.parse().body[0],
                f"{param.name} marked as constexpr and listed in do_not_specialize/do_not_specialize_on_alignment."
                " Remove constexpr designation or skip specialization for it.",
                where=fn.where,
            )


def parameter_type(code: Any, path: Path, constants: Mapping[Path, Any]) -> Any:
    """The language type of a signature entry; tuples are walked, constants looked up by their path."""
    if isinstance(code, tuple):
        fields = getattr(code, "_fields", None)
        return tl.tuple_type(
            [parameter_type(item, (*path, index), constants) for index, item in enumerate(code)], fields
        )
    if path in constants or code == "constexpr":
        return constant_type(constants.get(path))
    if not isinstance(code, str):
        raise TypeError(f"{code!r} is no type code; codes are texts like 'i32' and '*fp16'")
    return tl.str_to_ty(code, None)


def constant_type(value: Any) -> Any:
    """The type of a constant; a tuple of constants is a tuple in the kernel."""
    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, tuple):
        return tl.tuple_type([constant_type(item) for item in value], getattr(value, "_fields", None))
    return tl.constexpr_type(value)


def leaves(type: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The parts of a parameter that have attributes of their own."""
    if isinstance(type, tl.tuple_type):
        for index, item in enumerate(type.types):
            yield from leaves(item, (*path, index))
    else:
        yield path, type


def argument_attribute(value: Any) -> Attribute:
    """The value of an argument attribute as IR."""
    return int_attr(value, i32) if isinstance(value, int) else string_attr(str(value))
