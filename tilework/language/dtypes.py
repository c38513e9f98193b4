"""Element types, pointers and blocks, and the short strings that name them in kernel signatures.

    float32.primitive_bitwidth          # 32
    pointer_type(float32)               # pointer<fp32>, written "*fp32" in a signature
    block_type(float16, [4, 8]).numel   # 32: a block of 4 by 8 elements

Each of these types is one object, however it is made, copied or unpickled: ``x.dtype is tl.float32`` may be asked. ``str``
is the short name (``fp32``); ``repr`` is the spelling users write (``triton.language.float32``). `mangle` gives the text
used in names of specialised functions.
"""

import builtins
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property, total_ordering
from math import prod
from typing import Any, ClassVar

from tilework.language.compile_time import (
    _unwrap_if_constexpr,
    _unwrap_shape,
    base_type,
    constexpr,
    constexpr_type,
    tuple,
    tuple_type,
)
from tilework.numerics.formats import FORMATS

TRITON_MAX_TENSOR_NUMEL = 1048576


class Interned(type):
    """The class of classes whose equal instances are one object; `__reduce__` says what is equal."""

    made: ClassVar[dict[Any, Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        new = super().__call__(*args, **kwargs)
        return Interned.made.setdefault(new.__reduce__(), new)

    @property
    def __signature__(cls) -> Any:
        """What `inspect.signature` shows of the class: how an instance is made."""
        from inspect import signature  # lazily: few programs need it, and it is slow to load

        made = signature(cls.__init__)
        return made.replace(parameters=list(made.parameters.values())[1:])


def is_named(name: str) -> Callable[..., bool]:
    """The predicate of a dtype: ``is_fp16 = is_named("fp16")``."""
    return lambda self: self.name == name


class dtype(base_type, metaclass=Interned):
    """The type of one element: ``dtype("fp32")`` is `float32`. Predicates are methods: ``x.dtype.is_floating()``."""

    SINT_TYPES: ClassVar = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar = list(FORMATS)
    STANDARD_FP_TYPES: ClassVar = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar = ["void"]

    class SIGNEDNESS(Enum):
        SIGNED = 0
        UNSIGNED = 1

    @total_ordering
    class KIND(Enum):
        """How general a type is; a weak number takes the other operand's type if its kind is not higher."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

        def __lt__(self, other: "dtype.KIND") -> bool:
            return self.value < other.value

    value_class: ClassVar[Any]  # what `_unflatten_ir` builds: `tensor`, set where that class is defined
    sizes: builtins.tuple[int, ...] = ()  # of a block, in each dimension

    def __init__(self, name: Any) -> None:
        name = _unwrap_if_constexpr(name)
        assert dtype.is_dtype(name), f"{name!r} is not the name of a dtype"
        self.name: str = name
        if (format := FORMATS.get(name)) is not None:
            self.primitive_bitwidth = format.bits
            self.fp_mantissa_width, self.exponent_bias = format.fraction, format.bias
        elif name == "void":
            self.primitive_bitwidth = 0
        else:
            signed = name in dtype.SINT_TYPES
            self.int_signedness = dtype.SIGNEDNESS.SIGNED if signed else dtype.SIGNEDNESS.UNSIGNED
            self.int_bitwidth = self.primitive_bitwidth = int(name.split("int")[-1])

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """True if `type_str` is the short name of an element type."""
        return type_str in ALL_NAMES

    @property
    def itemsize(self) -> int:
        return self.primitive_bitwidth // 8

    @property
    def scalar(self) -> "dtype":
        """The element type; itself unless this is a block."""
        return self

    @property
    def cache_key_part(self) -> str:
        return self.name

    def is_fp8(self) -> bool:
        return self.name.startswith("fp8")

    is_fp8e4nv, is_fp8e4b8, is_fp8e4b15 = is_named("fp8e4nv"), is_named("fp8e4b8"), is_named("fp8e4b15")
    is_fp8e5, is_fp8e5b16 = is_named("fp8e5"), is_named("fp8e5b16")
    is_fp16, is_bf16, is_fp32, is_fp64 = is_named("fp16"), is_named("bf16"), is_named("fp32"), is_named("fp64")
    is_int1, is_int8, is_int16 = is_named("int1"), is_named("int8"), is_named("int16")
    is_int32, is_int64 = is_named("int32"), is_named("int64")
    is_uint8, is_uint16 = is_named("uint8"), is_named("uint16")
    is_uint32, is_uint64 = is_named("uint32"), is_named("uint64")
    is_bool, is_void = is_int1, is_named("void")

    def is_floating(self) -> bool:
        return self.name in FORMATS

    def is_standard_floating(self) -> bool:
        return self.name in STANDARD_FLOATS

    def is_int_signed(self) -> bool:
        return self.name in SIGNED

    def is_int_unsigned(self) -> bool:
        return self.name in UNSIGNED

    def is_int(self) -> bool:
        return self.name in SIGNED or self.name in UNSIGNED

    @staticmethod
    def is_block() -> bool:
        return False

    @staticmethod
    def is_ptr() -> bool:
        return False

    @staticmethod
    def is_const() -> bool:
        return False

    def codegen_name(self) -> str:
        """The name in `tl`: ``float32``."""
        return repr(self).rpartition(".")[2]

    def kind(self) -> "dtype.KIND":
        """BOOLEAN < INTEGRAL < FLOATING."""
        if self.is_bool():
            return dtype.KIND.BOOLEAN
        if self.is_int():
            return dtype.KIND.INTEGRAL
        assert self.is_floating(), f"{self} has no kind: it is neither an integer nor a float"
        return dtype.KIND.FLOATING

    def get_int_max_value(self) -> int:
        """127 for int8, 255 for uint8."""
        assert self.is_int(), f"{self} is not an integer type"
        return 2 ** (self.int_bitwidth - self.is_int_signed()) - 1

    def get_int_min_value(self) -> int:
        """-128 for int8, 0 for uint8."""
        assert self.is_int(), f"{self} is not an integer type"
        return -(2 ** (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    def with_element_ty(self, element_ty: "dtype") -> "dtype":
        """The same shape with another element type; for a scalar, just that type."""
        return element_ty

    def __eq__(self, other: object) -> bool:
        return self is (other.value if isinstance(other, constexpr) else other)

    __hash__ = object.__hash__

    def __reduce__(self) -> builtins.tuple[Any, ...]:
        """Made again from what it was made of, copies and pickles are the same object."""
        return type(self), (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"triton.language.{user_name(self.name)}"

    def mangle(self) -> str:
        """``i32``, ``u8``, ``fp32``: the signature code, with ``u1`` for booleans."""
        return CODE_OF.get(self.name, self.name)

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple[Any, int]:
        return self.value_class(handles[cursor], self), cursor + 1


ALL_NAMES = frozenset([*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES, *dtype.OTHER_TYPES])
SIGNED, UNSIGNED = frozenset(dtype.SINT_TYPES), frozenset(dtype.UINT_TYPES)
STANDARD_FLOATS = frozenset(dtype.STANDARD_FP_TYPES)
CODE_OF = {name: name.replace("uint", "u").replace("int", "i") for name in SIGNED | UNSIGNED} | {"int1": "u1"}


def user_name(name: str) -> str:
    """The name in `tilework.language` of a dtype: ``fp32`` is `float32`, ``bf16`` is `bfloat16`."""
    return name.replace("bf16", "bfloat16") if name == "bf16" else name.replace("fp", "float")


class pointer_type(dtype):
    """The address of an `element_ty`: ``pointer_type(float32)``. `const` forbids stores through it.

    A pointer to a block is a block pointer, made by `make_block_ptr`.
    """

    def __init__(self, element_ty: Any, address_space: Any = 1, const: Any = False) -> None:
        element_ty = _unwrap_if_constexpr(element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"a pointer needs the dtype it points to, not {type(element_ty).__name__}")
        self.element_ty = element_ty
        self.address_space: int = int(_unwrap_if_constexpr(address_space))
        self.const: bool = bool(_unwrap_if_constexpr(const))
        self.name = f"{'const_' if self.const else ''}pointer<{element_ty}>"
        self.primitive_bitwidth = 64

    @staticmethod
    def is_ptr() -> bool:
        return True

    def is_const(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.const

    def __reduce__(self) -> builtins.tuple[Any, ...]:
        return type(self), (self.element_ty, self.address_space, self.const)

    def __repr__(self) -> str:
        return self.name

    def mangle(self) -> str:
        return ("Pk" if self.const else "P") + self.element_ty.mangle()


def const_pointer_type(element_ty: Any, address_space: int = 1) -> pointer_type:
    """A pointer that must not be stored to: ``*kfp32`` in a signature."""
    return pointer_type(element_ty, address_space, const=True)


class block_type(dtype):
    """A block of elements: ``block_type(float16, [4, 8])``. Every size is a power of two."""

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        sizes = _unwrap_shape(shape)
        if not sizes:
            raise TypeError("a block needs at least one dimension; a value of rank 0 has its plain dtype")
        self.element_ty: dtype = _unwrap_if_constexpr(element_ty)
        self.numel = validate_block_shape(sizes)
        self.sizes = builtins.tuple(map(int, sizes))
        self.shape = tuple(self.sizes)
        self.name = f"<{self.shape}, {self.element_ty}>"

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        return self.numel * (self.element_ty.primitive_bitwidth // 8)

    @cached_property
    def constexpr_shape(self) -> tuple:
        """The shape as kernels see it: ``x.shape``."""
        return tuple([constexpr(size) for size in self.sizes])

    def get_block_shapes(self) -> tuple:
        return self.shape

    @staticmethod
    def is_block() -> bool:
        return True

    def with_element_ty(self, scalar_ty: dtype) -> "block_type":  # pyright: ignore[reportIncompatibleMethodOverride]
        return block_type(scalar_ty, self.shape)

    def __reduce__(self) -> builtins.tuple[Any, ...]:
        return type(self), (self.element_ty, self.sizes)

    def __repr__(self) -> str:
        return self.name

    def mangle(self) -> str:
        """``i32S4_8S`` for a 4 by 8 block of int32."""
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self.sizes))}S"


def validate_block_shape(shape: Sequence[Any]) -> int:
    """The number of elements of a legal block shape: constant powers of two, at most `TRITON_MAX_TENSOR_NUMEL`."""
    for index, size in enumerate(shape):
        if not isinstance(size, int):
            raise TypeError(f"Shape element {index} must have type `constexpr[int]`, got `{size}`")
        if size <= 0 or size & (size - 1):
            raise ValueError(f"Shape element {index} must be a power of 2")
    numel = prod(shape)
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"numel ({numel}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})")
    return numel


class function_type(base_type):
    """What a function takes and gives back; kept for code written for Triton 3.0."""

    def __init__(self, ret_types: Iterable[base_type], param_types: Iterable[base_type]) -> None:
        self.ret_types, self.param_types = list(ret_types), list(param_types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, function_type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"fn ({', '.join(map(str, self.param_types))}) -> {', '.join(map(str, self.ret_types))}"


class tensor_descriptor_type(base_type):
    """The type of a `tensor_descriptor`: the block it moves, and the types of its shape and strides."""

    value_class: ClassVar[Any]  # `tensor_descriptor`, set where that class is defined

    def __init__(self, block_type: block_type, shape_type: tuple_type, strides_type: tuple_type) -> None:
        self.block_type, self.shape_type, self.strides_type = block_type, shape_type, strides_type

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, tensor_descriptor_type)
            and self.block_type == other.block_type
            and self.shape_type == other.shape_type
            and self.strides_type == other.strides_type
        )

    def __hash__(self) -> int:
        return hash((self.block_type, self.shape_type, self.strides_type))

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    __repr__ = __str__

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple[Any, int]:
        handle = handles[cursor]
        shape, cursor = self.shape_type._unflatten_ir(handles, cursor + 1)
        strides, cursor = self.strides_type._unflatten_ir(handles, cursor)
        return self.value_class(handle, shape, strides, self.block_type), cursor


class const:
    """Annotation of a pointer parameter whose data the kernel only reads: ``def k(src: tl.const): ...``"""


void = dtype("void")
int1, int8, int16, int32, int64 = map(dtype, ("int1", "int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(dtype, ("uint8", "uint16", "uint32", "uint64"))
float8e5, float8e5b16, float8e4nv = map(dtype, ("fp8e5", "fp8e5b16", "fp8e4nv"))
float8e4b8, float8e4b15 = map(dtype, ("fp8e4b8", "fp8e4b15"))
float16, bfloat16, float32, float64 = map(dtype, ("fp16", "bf16", "fp32", "fp64"))
pi32_t = pointer_type(int32)


def get_int_dtype(bitwidth: Any, signed: Any) -> dtype:
    """``get_int_dtype(8, signed=False)`` is `uint8`; one bit is `int1` either way."""
    bitwidth, signed = _unwrap_if_constexpr(bitwidth), _unwrap_if_constexpr(signed)
    name = "int1" if bitwidth == 1 else f"{'' if signed else 'u'}int{bitwidth}"
    if name not in ALL_NAMES:
        raise ValueError(f"there is no integer type of {bitwidth} bits (signed: {signed})")
    return dtype(name)


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
