"""The parameters of a jit function: their annotations, their type codes, and how they are specialized.

    def kernel(x: tl.const, n: tl.int64, BLOCK: tl.constexpr): ...

`x` points to data that is only read, `n` has 64 bits whatever is passed, and `BLOCK` is part of the code.

Since Python 3.14 an annotation is evaluated on first use, which fails if it names something that does not exist (yet).
Kernels are decorated while their module is being imported, so such names are kept as text:

    @jit
    def kernel(x: Later, N: tl.constexpr): ...      # `Later` remains "Later", N is compile-time

Type codes are the short strings that name types in the signature of a kernel:

    str_to_ty("*kfp32")                 # a pointer to fp32 that is only read
    canonicalize_dtype("torch.half")    # fp16
"""

import builtins
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tilework.language.compile_time import base_type, constexpr_type, tuple, tuple_type
from tilework.language.dtypes import (
    ALL_NAMES,
    CODE_OF,
    block_type,
    dtype,
    int1,
    int32,
    int64,
    pointer_type,
)
from tilework.language.values import tensor_descriptor_type
from tilework.process.forks import cached_property

ARGUMENT_KINDS = "pass an array, a Python number, None, a tuple of these, or declare the parameter tl.constexpr"


def no_element_type(dtype: object) -> str:
    """The message about an array of a type that kernels do not have."""
    if getattr(dtype, "isnative", True) is False:
        copy = "`array.astype(array.dtype.newbyteorder('='))`"
        return f"kernels read numbers in this machine's byte order, not {dtype}: pass a copy of the array, {copy}"
    return f"kernels have no element type {dtype}: pass an array of integers, floats or booleans"


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`; an annotation whose names are unknown is its text."""
    if sys.version_info < (3, 14):
        return inspect.signature(fn)
    from annotationlib import Format  # lazily: from Python 3.14 on

    signature = inspect.signature(fn, annotation_format=Format.FORWARDREF)
    parameters = [p.replace(annotation=as_text(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=as_text(signature.return_annotation))


class LazySignature(inspect.Signature):
    """The signature of a function, found when it is first read: for all builtins of the language this takes 6 ms."""

    __slots__ = ("_fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def _found(self) -> inspect.Signature:
        return signature_of(self._fn)

    @property
    def parameters(self) -> Any:
        return self._found().parameters

    @property
    def return_annotation(self) -> Any:
        return self._found().return_annotation

    def replace(self, **parts: Any) -> Any:
        return self._found().replace(**parts)

    def __reduce__(self) -> Any:
        return self._found().__reduce__()


def annotations_of(cls: type) -> dict[str, Any]:
    """The annotations in the body of a class itself, not of its bases."""
    if sys.version_info < (3, 14):
        return dict(vars(cls).get("__annotations__", {}))
    from annotationlib import Format, get_annotations  # lazily: from Python 3.14 on

    return {name: as_text(note) for name, note in get_annotations(cls, format=Format.FORWARDREF).items()}


def as_text(note: Any) -> Any:
    """A forward reference as the text it was written as; anything else unchanged."""
    return note.__forward_arg__ if hasattr(note, "__forward_arg__") else note


class FunctionSignature:
    """The descriptor through which `inspect.signature` finds the parameters of a kernel's Python function. Classes
    keep their own."""

    def __get__(self, instance: Any, owner: type | None = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return instance.signature


class const:
    """The annotation of a pointer parameter whose data the kernel only reads: ``def kernel(src: tl.const)``.

    A store through it is a compilation error.

    Example:
        @tilework.jit
        def copy(source: tl.const, out):
            tl.store(out, tl.load(source))

        out = np.zeros(1)
        copy[(1,)](np.ones(1), out)
        assert out[0] == 1
    """


class function_type(base_type):
    """The parameter and result types of a function; kept for code written for Triton 3.0.

    Example:
        assert str(tl.function_type([tl.int32], [tl.float32])) == "fn (fp32) -> int32"
    """

    def __init__(self, ret_types: Iterable[base_type], param_types: Iterable[base_type]) -> None:
        self.ret_types, self.param_types = list(ret_types), list(param_types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, function_type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"fn ({', '.join(map(str, self.param_types))}) -> {', '.join(map(str, self.ret_types))}"


def _alias_table() -> dict[str, str]:
    codes = {"u1": ("bool", "int1", "uint1", "i1"), "i32": ("int",)}
    codes |= {code: (name,) for name, code in CODE_OF.items() if name not in ("int1", "int32")}
    codes["i32"] += ("int32",)
    codes |= {"fp16": ("half", "float16"), "bf16": ("bfloat16",), "fp32": ("float", "float32")}
    codes |= {"fp64": ("double", "float64"), "fp8e4nv": ("float8e4nv", "float8_e4m3fn"), "void": ()}
    codes |= {"fp8e5": ("float8e5", "float8_e5m2"), "fp8e4b8": ("float8e4b8", "float8_e4m3fnuz")}
    codes |= {"fp8e5b16": ("float8e5b16", "float8_e5m2fnuz"), "fp8e4b15": ("float8e4b15",)}
    return {alias: code for code, aliases in codes.items() for alias in (code, *aliases)}


type_canonicalisation_dict = _alias_table()
DTYPE_OF_CODE: dict[str, dtype] = {CODE_OF.get(name, name): dtype(name) for name in sorted(ALL_NAMES)}
DTYPE_OF_CODE |= {"i1": int1, "B": int1}


def canonicalize_dtype(dtype: Any) -> str:
    """The signature code of a dtype of any library: ``"torch.float16"`` gives ``fp16``; unknown: KeyError."""
    return type_canonicalisation_dict[str(dtype).rsplit(".", 1)[-1]]


def canonicalize_ptr_dtype(dtype: Any, is_const: bool) -> str:
    """The signature of a pointer: ``*fp16``, or ``*kfp16`` if its data must not change."""
    return ("*k" if is_const else "*") + canonicalize_dtype(dtype)


def str_to_ty(name: Any, c: Any = None) -> Any:
    """The type that a signature string names: ``"*kfp32"``, ``"i32"``, ``"tensordesc<fp16[64, 32]>"``, ``"constexpr"``.

    A tuple of strings gives a `tuple_type`, with field names if it is a NamedTuple. `c` is the constant (or the tuple
    of constants) behind ``constexpr``.

    Example:
        assert tl.str_to_ty("*fp16") == tl.pointer_type(tl.float16)
        assert tl.str_to_ty("constexpr", 7) == tl.constexpr_type(7)
    """
    if isinstance(name, builtins.tuple):
        constants = c if isinstance(c, (builtins.tuple, list, tuple)) else (None,) * len(name)
        return tuple_type(map(str_to_ty, name, constants), getattr(name, "_fields", None))
    if name.startswith("*k"):
        return pointer_type(str_to_ty(name[2:]), const=True)
    if name.startswith("*"):
        return pointer_type(str_to_ty(name[1:]))
    if name.startswith("tensordesc<"):
        element, sizes = name.removeprefix("tensordesc<").removesuffix(">").rstrip("]").split("[")
        shape = [int(size) for size in sizes.split(",")]
        block = block_type(str_to_ty(element), shape)
        return tensor_descriptor_type(block, tuple_type([int32] * len(shape)), tuple_type([int64] * len(shape)))
    if name.startswith("constexpr"):
        return constexpr_type(c)
    if name not in DTYPE_OF_CODE:
        name = type_canonicalisation_dict.get(name, name)
    if name not in DTYPE_OF_CODE:
        raise ValueError(f"{name!r} is not a type in a kernel signature, such as i32, *fp16 or constexpr")
    return DTYPE_OF_CODE[name]


class KernelParam:
    """One parameter of a jit function and how it is specialised."""

    def __init__(
        self,
        num: int,
        param: inspect.Parameter,
        do_not_specialize: bool,
        do_not_specialize_on_alignment: bool,
    ) -> None:
        self.num = num
        self._param = param
        self.name = param.name
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment

    @cached_property
    def _note(self) -> str:
        """The annotation as text, prefix `tl.` removed: ``constexpr``, ``*kfloat``, ``int64``; "" without one."""
        note = self._param.annotation
        if note is inspect.Parameter.empty:
            return ""
        return normalize_annotation(note)

    @cached_property
    def annotation(self) -> str:
        """The annotation as text, types under one name each: ``constexpr``, ``*kfp32``, ``i64``; "" without one."""
        return self.annotation_type or self._note

    @cached_property
    def annotation_type(self) -> str:
        """The signature code that the annotation forces (``i64``, ``*fp32``), or ""."""
        note = self._note
        stars = note[: len(note) - len(note.lstrip("*"))]
        rest = note[len(stars) :]
        const = "k" if stars and rest.startswith("k") and rest not in type_canonicalisation_dict else ""
        code = type_canonicalisation_dict.get(rest[len(const) :])
        return f"{stars}{const}{code}" if code else ""

    @cached_property
    def is_constexpr(self) -> bool:
        return "constexpr" in self._note

    @cached_property
    def is_const(self) -> bool:
        """A pointer to read-only data."""
        return self._note == "const" or self._note.startswith("*k")

    @property
    def default(self) -> Any:
        return self._param.default

    @property
    def has_default(self) -> bool:
        return self._param.default is not inspect.Parameter.empty


def params_of(
    signature: inspect.Signature, plain: Collection[str | int], unaligned: Collection[str | int]
) -> list[KernelParam]:
    """The parameters of a function, those that are not specialised, or not on alignment, by name or index."""
    return [
        KernelParam(index, param, not {index, name}.isdisjoint(plain), not {index, name}.isdisjoint(unaligned))
        for index, (name, param) in enumerate(signature.parameters.items())
    ]


CONST = "*const "


def normalize_annotation(note: Any) -> str:
    """Text of an annotation in signature form: ``tl.int64`` -> ``int64``, ``const int*`` -> ``*kint``."""
    if isinstance(note, type):
        return note.__name__
    if isinstance(note, str):
        text = note.strip().strip("'\"").strip()
    elif hasattr(note, "is_ptr") and note.is_ptr():
        return ("*k" if note.const else "*") + normalize_annotation(note.element_ty)
    elif hasattr(note, "name") and isinstance(note.name, str):
        return note.name
    else:
        text = str(note)
    if "." in text:
        text = re.sub(r"\b(tl|triton\.language|tilework\.language)\.", "", text)
    if text.endswith("*"):
        text = "*" + text[:-1].strip()
    return f"*k{text.removeprefix(CONST)}" if text.startswith(CONST) else text
