"""One specialisation of a kernel: the type of every parameter, the constants, and the facts about the rest.

    KernelSignature.of(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64},
                       {(0,): [["tt.divisibility", 16]]})

Index paths name parameters and, for tuples, their leaves: ``(2,)`` is the third parameter, ``(2, 0)`` its first element.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from xdsl.ir import Attribute

from tilework.errors import CompilationError
from tilework.frontend.semantic.type_mapping import ir_types
from tilework.ir.types import i32, int_attr, string_attr
from tilework.language import core as tl
from tilework.language.function import JITFunction, ascii_symbol

Path = tuple[int, ...]


@dataclass(frozen=True)
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
