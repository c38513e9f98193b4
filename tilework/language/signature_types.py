"""The short strings that name types in the signature of a kernel, and the names that other libraries have for them.

str_to_ty("*kfp32")                 # a pointer to fp32 that is only read
canonicalize_dtype("torch.half")    # fp16
"""

import builtins
from collections.abc import Iterable
from typing import Any

from tilework.language.compile_time import base_type, constexpr_type, tuple, tuple_type
from tilework.language.descriptor_values import tensor_descriptor_type
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


class const:
    """Annotation of a pointer parameter whose data the kernel only reads: ``def kernel(src: tl.const)``.

    A store through it is refused while compiling.

    Example:
        @tilework.jit
        def copy(source: tl.const, out):
            tl.store(out, tl.load(source))

        out = np.zeros(1)
        copy[(1,)](np.ones(1), out)
        assert out[0] == 1
    """


class function_type(base_type):
    """What a function takes and gives back; kept for code written for Triton 3.0.

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
    """The type a signature string names: ``"*kfp32"``, ``"i32"``, ``"tensordesc<fp16[64, 32]>"``, ``"constexpr"``.

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
