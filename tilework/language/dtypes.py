"""Element types, pointers and blocks; `parameters.py` has the short strings that name them in kernel signatures.

    float32.primitive_bitwidth          # 32
    pointer_type(float32)               # pointer<fp32>, written "*fp32" in a signature
    block_type(float16, [4, 8]).numel   # 32: a block of 4 by 8 elements

Each of these types is one object, however it is made, copied or unpickled: ``x.dtype is tl.float32`` is a valid test.
``str`` is the short name (``fp32``); ``repr`` is the spelling users write (``triton.language.float32``). `mangle` gives
the text used in names of specialised functions.
"""

import builtins
from collections.abc import Callable, Sequence
from enum import Enum
from functools import total_ordering
from math import prod
from typing import Any, ClassVar

from tilework.language.compile_time import (
    _unwrap_if_constexpr,
    _unwrap_shape,
    base_type,
    constexpr,
    tuple,
)
from tilework.numerics.formats import FORMATS
from tilework.process.forks import cached_property

TRITON_MAX_TENSOR_NUMEL = 1048576
"""The maximum number of elements of a block.

Example:
    assert tl.TRITON_MAX_TENSOR_NUMEL == 2**20
"""


class Interned(type):
    """The class of classes whose equal instances are one object; `__reduce__` says what is equal."""

    made: ClassVar[dict[Any, Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        new = super().__call__(*args, **kwargs)
        return Interned.made.setdefault(new.__reduce__(), new)

    @property
    def __signature__(cls) -> Any:
        """The signature that `inspect.signature` returns for the class: that of its constructor."""
        from inspect import signature  # lazily: few programs need it, and it is slow to load

        made = signature(cls.__init__)
        return made.replace(parameters=list(made.parameters.values())[1:])


def is_named(name: str) -> Callable[..., bool]:
    """The predicate of a dtype: ``is_fp16 = is_named("fp16")``."""
    return lambda self: self.name == name


class dtype(base_type, metaclass=Interned):
    """The type of one element: ``dtype("fp32")`` is `float32`. Predicates are methods: ``x.dtype.is_floating()``.

    Kernels read it at compile time, so an `if` on a dtype selects code. `primitive_bitwidth` is its size in bits;
    integers have `int_bitwidth`, `get_int_min_value()` and `get_int_max_value()`, floats have `fp_mantissa_width` and
    `exponent_bias`. ``str`` gives the name used in IR and signatures ("fp32").

    Example:
        @tilework.jit
        def half(x):
            if x.dtype.is_floating():
                return x * 0.5
            else:
                return x >> 1

        assert_close(call(half, np.array([3.0, 5.0])), [1.5, 2.5])
        assert call(half, np.array([3, 5])).tolist() == [1, 2]
        assert tl.float16.primitive_bitwidth == 16 and str(tl.float16) == "fp16"
    """

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
        """The generality of a type; a weak number takes the other operand's type if its kind is not higher."""

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
        """Return the constructor call that gives this object again: copies and unpickled types are identical to it."""
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


ADDRESS_SPACES: dict[str, int] = {"global": 1, "shared": 3}


class pointer_type(dtype):
    """The address of an `element_ty`: ``pointer_type(float32)``. `const` forbids stores through it.

    `address_space` is LLVM's number for it, or "global" or "shared".

    An array argument is such a pointer in the kernel. A pointer to a block is a block pointer, made by
    `make_block_ptr`.

    Example:
        @tilework.jit
        def bytes_of(x, out):
            as_bytes = x.to(tl.pointer_type(tl.uint8), bitcast=True)
            i = tl.arange(0, 4)
            tl.store(out + i, tl.load(as_bytes + i))

        out = np.zeros(4, np.uint8)
        bytes_of[(1,)](np.array([0x04030201], np.int32), out)
        assert out.tolist() == [1, 2, 3, 4]
    """

    def __init__(self, element_ty: Any, address_space: Any = 1, const: Any = False) -> None:
        element_ty = _unwrap_if_constexpr(element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"a pointer needs the dtype it points to, not {type(element_ty).__name__}")
        self.element_ty = element_ty
        space: Any = _unwrap_if_constexpr(address_space)
        if isinstance(space, str) and space not in ADDRESS_SPACES:
            raise ValueError(f"an address space is a number or one of {', '.join(ADDRESS_SPACES)}, not {space!r}")
        self.address_space: int = ADDRESS_SPACES[space] if isinstance(space, str) else int(space)
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
    """A read-only pointer: ``*kfp32`` in a signature.

    Example:
        assert tl.const_pointer_type(tl.float32) == tl.pointer_type(tl.float32, const=True)
    """
    return pointer_type(element_ty, address_space, const=True)


class block_type(dtype):
    """A block of elements: ``block_type(float16, [4, 8])``. Sizes are any positive integers, such as ``[3, 5]``.

    The type of a `tensor` that is not a scalar: ``x.type``.

    Example:
        block = tl.block_type(tl.float16, [4, 8])
        assert block.numel == 32 and block.scalar == tl.float16 and block.nbytes == 64
    """

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        sizes = _unwrap_shape(shape)
        if not sizes:
            raise TypeError("a block needs at least one dimension; a value of rank 0 has its plain dtype")
        self.element_ty: dtype = _unwrap_if_constexpr(element_ty)
        self.numel = count_elements(sizes)
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


def count_elements(shape: Sequence[Any]) -> int:
    """The number of elements of a legal block shape: positive constants, whose product is at most
    `TRITON_MAX_TENSOR_NUMEL`."""
    for index, size in enumerate(shape):
        if not isinstance(size, int):
            raise TypeError(f"Shape element {index} must have type `constexpr[int]`, got `{size}`")
        if size <= 0:
            raise ValueError(f"Shape element {index} must be positive, got {size}")
    numel = prod(shape)
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"numel ({numel}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})")
    return numel


def odd_size(shape: Sequence[Any]) -> str | None:
    """Return Triton's message for the first size that is no power of two."""
    for index, size in enumerate(shape):
        if isinstance(size, int) and (size <= 0 or size & (size - 1)):
            return f"Shape element {index} must be a power of 2"
    return None


def validate_block_shape(shape: Sequence[Any]) -> int:
    """`count_elements` of a shape that Triton takes too: of powers of two."""
    if (refusal := odd_size(shape)) is not None:
        raise ValueError(refusal)
    return count_elements(shape)


void = dtype("void")
"""No value: the type of the result of a function that returns nothing.

Example:
    assert tl.void.is_void() and tl.void.primitive_bitwidth == 0
"""
int1 = dtype("int1")
"""Truth values: the type of comparisons and masks. One value takes a byte in memory.

Example:
    assert call(tl.cast, np.array([0, 1, 2, 3]), tl.int1).tolist() == [False, True, True, True]
"""
int8 = dtype("int8")
"""8-bit signed integers.

Example:
    assert call(tl.cast, np.array([1.9, -1.9]), tl.int8).tolist() == [1, -1]
    assert tl.int8.get_int_max_value() == np.iinfo(np.int8).max
"""
int16 = dtype("int16")
"""16-bit signed integers.

Example:
    assert call(tl.cast, np.array([1.9, -1.9]), tl.int16).tolist() == [1, -1]
    assert tl.int16.get_int_max_value() == np.iinfo(np.int16).max
"""
int32 = dtype("int32")
"""32-bit signed integers: the type of `program_id`, `arange` and small Python integers.

Example:
    assert call(tl.cast, np.array([1.9, -1.9]), tl.int32).tolist() == [1, -1]
    assert tl.int32.get_int_max_value() == np.iinfo(np.int32).max
"""
int64 = dtype("int64")
"""64-bit signed integers, for offsets into arrays of more than 2**31 elements.

Example:
    assert call(tl.cast, np.array([1.9, -1.9]), tl.int64).tolist() == [1, -1]
    assert tl.int64.get_int_max_value() == np.iinfo(np.int64).max
"""
uint8 = dtype("uint8")
"""8-bit unsigned integers: bytes, and pairs of fp4 for `dot_scaled`. Division, remainder, comparison and right shift
are unsigned.

Example:
    assert call(tl.cast, np.array([-1, 5]), tl.uint8).tolist() == [2**8 - 1, 5]
"""
uint16 = dtype("uint16")
"""16-bit unsigned integers. Division, remainder, comparison and right shift are unsigned.

Example:
    assert call(tl.cast, np.array([-1, 5]), tl.uint16).tolist() == [2**16 - 1, 5]
"""
uint32 = dtype("uint32")
"""32-bit unsigned integers, the result of `randint`. Division, remainder, comparison and right shift are unsigned.

Example:
    assert call(tl.cast, np.array([-1, 5]), tl.uint32).tolist() == [2**32 - 1, 5]
"""
uint64 = dtype("uint64")
"""64-bit unsigned integers. Division, remainder, comparison and right shift are unsigned.

Example:
    assert call(tl.cast, np.array([-1, 5]), tl.uint64).tolist() == [2**64 - 1, 5]
"""
float8e5 = dtype("fp8e5")
"""8-bit floats with a 2-bit fraction, a maximum of 57344 and infinities (OCP's E5M2). NVIDIA GPUs multiply them from
sm_89 on.

Example:
    assert call(tl.cast, np.array([1.3, 60000.0], np.float32), tl.float8e5).tolist() == [1.25, 57344]
"""
float8e5b16 = dtype("fp8e5b16")
"""`float8e5` with an exponent bias of 16 instead of 15: no infinities, one NaN. Some AMD GPUs multiply it.

Example:
    assert call(tl.cast, np.array([1.3, -3.0], np.float32), tl.float8e5b16).tolist() == [1.25, -3]
"""
float8e4nv = dtype("fp8e4nv")
"""8-bit floats with a 3-bit fraction, a maximum of 448 and no infinities (OCP's E4M3). NVIDIA GPUs have them from sm_89
on.

Example:
    assert call(tl.cast, np.array([1.3, 448.0], np.float32), tl.float8e4nv).tolist() == [1.25, 448]
"""
float8e4b8 = dtype("fp8e4b8")
"""`float8e4nv` with an exponent bias of 8 instead of 7: a maximum of 240, and one NaN. AMD's MI300 multiplies it.

Example:
    assert call(tl.cast, np.array([1.3, 240.0], np.float32), tl.float8e4b8).tolist() == [1.25, 240]
"""
float8e4b15 = dtype("fp8e4b15")
"""8-bit floats with a 3-bit fraction, an exponent bias of 15 and a maximum of 1.75, for weights. They are converted in
software.

Example:
    assert call(tl.cast, np.array([1.3, 0.5], np.float32), tl.float8e4b15).tolist() == [1.25, 0.5]
"""
float16 = dtype("fp16")
"""16-bit floats with a 10-bit fraction; the largest is 65504. Elementary functions take `float32`:
``tl.exp(x.to(tl.float32))``.

Example:
    x = np.array([1 / 3, 1e5])
    assert_close(call(tl.cast, x, tl.float16), [0.33325195, np.inf], atol=1e-6)
"""
bfloat16 = dtype("bf16")
"""16-bit floats with a 7-bit fraction and the range of `float32`. NumPy does not have this type; torch does.

Example:
    x = np.array([1 / 3, 1e5], np.float32)
    assert call(tl.cast, x, tl.bfloat16).tolist() == [0.333984375, 99840]
"""
float32 = dtype("fp32")
"""32-bit floats: the type of Python floats in a kernel, and the accumulator of a `dot` of narrower floats.

Example:
    assert call(tl.cast, np.array([1, 2]), tl.float32).dtype == np.float32
"""
float64 = dtype("fp64")
"""64-bit floats. A Python float does not widen an fp32 block; ``x.to(tl.float64)`` does.

Example:
    assert call(tl.cast, np.array([1, 2]), tl.float64).dtype == np.float64
"""
pi32_t = pointer_type(int32)
"""The type of a pointer to int32.

Example:
    assert tl.pi32_t == tl.pointer_type(tl.int32)
"""


def get_int_dtype(bitwidth: Any, signed: Any) -> dtype:
    """The integer dtype of a width: ``get_int_dtype(8, signed=False)`` is `uint8`. One bit gives `int1` in either case.

    Example:
        assert tl.core.get_int_dtype(16, signed=True) == tl.int16
    """
    bitwidth, signed = _unwrap_if_constexpr(bitwidth), _unwrap_if_constexpr(signed)
    of_width = {1: int1, 8: uint8, 16: uint16, 32: uint32, 64: uint64}
    if signed:
        of_width = {1: int1, 8: int8, 16: int16, 32: int32, 64: int64}
    if bitwidth not in of_width:
        raise ValueError(f"there is no integer type of {bitwidth} bits (signed: {signed})")
    return of_width[bitwidth]
