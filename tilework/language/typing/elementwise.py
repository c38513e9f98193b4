"""Functions of elements: `minimum`, `clamp`, mathematics, and code written in another language.

Numbers are not weak here, they have their own type: ``tl.maximum(h, 1.0)`` of an fp16 `h` is fp32.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.language.dtypes import dtype, float32
from tilework.language.elementwise_builtins import PropagateNan
from tilework.language.typing.carrier import Pair
from tilework.language.typing.indexing import Indexing
from tilework.language.typing.shapes import retype
from tilework.language.values import Value, tensor

WIDE_FLOATS = ("fp32", "fp64")
MULHI_TYPES = ("int32", "int64", "uint32", "uint64")


class Elementwise(Indexing):
    """Functions that treat every element alike."""

    def minimum(self, a: Value, b: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """The smaller of each pair of elements."""
        name = "minimum_nan" if keeps_nan(propagate_nan) else "minimum"
        return self.binary(name, *self._without_bf16(a, b, "minimum"))

    def maximum(self, a: Value, b: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """The larger of each pair of elements."""
        name = "maximum_nan" if keeps_nan(propagate_nan) else "maximum"
        return self.binary(name, *self._without_bf16(a, b, "maximum"))

    def _without_bf16(self, a: Value, b: Value, name: str) -> Pair:
        """Strong operands of one type, with bf16 widened to fp32 before anything else."""
        a, b = (self.cast(x, float32) if isinstance(x, tensor) and x.dtype.is_bf16() else x for x in (a, b))
        return self.operands(a, b, name, weak=False)

    def clamp(self, x: Value, min: Value, max: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """``minimum(maximum(x, min), max)`` of floats; a NaN becomes `min` unless it propagates."""
        propagates = keeps_nan(propagate_nan)
        low, high = self._without_bf16(min, max, "clamp")
        value, low = self._without_bf16(x, low, "clamp")
        value, high = self._without_bf16(value, high, "clamp")
        if not value.dtype.is_standard_floating():
            raise TypeError(
                f"Unexpected dtype {value.dtype}. Only floating point clamp is supported; "
                "use tl.minimum and tl.maximum for integers"
            )
        return self.clamped(value, low, high, propagates)

    def math_op(self, name: str, x: Value) -> tensor:
        """The elementary function `name` of fp32 or fp64; ``sqrt_rn`` of fp32 only."""
        value = self.to_tensor(x)
        expect_dtype(value, ("fp32",) if name == "sqrt_rn" else WIDE_FLOATS, name)
        return self.elementary(name, value)

    def math_method(self, name: str, x: tensor) -> tensor:
        """``x.exp()``: unlike ``tl.exp(x)`` it takes halves too; they are computed in fp32 and rounded once."""
        if name != "sqrt_rn" and (x.dtype.is_fp16() or x.dtype.is_bf16()):
            return self.cast(self.elementary(name, self.cast(x, float32)), x.dtype)
        return self.math_op(name, x)

    def abs(self, x: Value) -> tensor:
        """The absolute value; unsigned integers are returned as they are."""
        value = self.to_tensor(x)
        element = value.dtype
        assert element.is_floating() or element.is_int(), f"Unexpected dtype {element}: abs takes numbers"
        return value if element.is_int_unsigned() else self.absolute(value)

    def fma(self, x: Value, y: Value, z: Value) -> tensor:
        """``x * y + z`` with one rounding, in the common type of the three."""
        a, b = self.operands(x, y, "fma", weak=False)
        a, c = self.operands(a, z, "fma", weak=False)
        b, c = self.operands(b, c, "fma", weak=False)
        if not c.dtype.is_standard_floating():
            raise TypeError(f"fma takes floats of 16 bits or more, got {c.dtype}; use x * y + z for integers")
        return self.fused(a, b, c)

    def umulhi(self, x: Value, y: Value) -> tensor:
        """The high half of the unsigned product, as wide as the operands."""
        return self.multiplied_high(*self._of_types(x, y, MULHI_TYPES, "umulhi"))

    def div_rn(self, x: Value, y: Value) -> tensor:
        """``x / y`` in fp32, correctly rounded."""
        return self.precise_quotient(*self._of_types(x, y, ("fp32",), "div_rn"))

    def _of_types(self, x: Value, y: Value, names: Sequence[str], function: str) -> Pair:
        """Two operands of one type, which is one of `names` before and after promotion."""
        expect_dtype(x, names, function)
        expect_dtype(y, names, function)
        a, b = self.operands(x, y, function, weak=False)
        expect_dtype(a, names, function)
        return a, b

    def inline_asm_elementwise(
        self, asm: str, constraints: str, args: Sequence[Any], dtypes: Sequence[dtype], is_pure: bool, pack: int
    ) -> Sequence[tensor]:
        """One tensor per element of `dtypes`, computed by assembly; `pack` elements at a time."""
        if not isinstance(asm, str) or not isinstance(constraints, str):
            raise TypeError(
                f"the assembly and its constraints must be compile-time strings, got {asm} and {constraints}"
            )
        if not isinstance(pack, int) or pack < 1 or pack & (pack - 1):
            raise ValueError(f"pack must be a compile-time power of 2, got {pack}")
        if not dtypes or not all(isinstance(element, dtype) for element in dtypes):
            raise TypeError(f"inline assembly returns one dtype, or a tuple of them, got {', '.join(map(str, dtypes))}")
        if self.options.reproducible:
            raise ValueError(NOT_OURS.format("inline assembly"))
        values = self.broadcast_all([self.to_tensor(x) for x in args])
        shaped = values[0].type if values else dtypes[0]
        types = [retype(shaped, element) for element in dtypes]
        return self.assembly(asm, constraints, values, types, is_pure, pack)

    def extern_elementwise(
        self,
        lib_name: str,
        lib_path: str,
        args: Sequence[Any],
        arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
        is_pure: bool,
    ) -> tensor:
        """Call a library function on every element; the argument types choose its symbol and result type."""
        values = [self.to_tensor(x) for x in args]
        key = tuple(value.dtype for value in values)
        if key not in arg_type_symbol_dict:
            known = "; ".join(", ".join(map(str, types)) for types in arg_type_symbol_dict)
            raise ValueError(f"no function for arguments of type ({', '.join(map(str, key))}); it exists for: {known}")
        symbol, result = arg_type_symbol_dict[key]
        if self.options.reproducible:
            from tilework.numerics.libdevice_table import SYMBOLS  # lazily: few kernels are

            if symbol not in SYMBOLS:
                raise ValueError(NOT_OURS.format(f"the library function {symbol}"))
        values = self.broadcast_all(values)
        type = retype(values[0].type, result) if values else result
        return self.external(lib_name, lib_path, symbol, values, type, is_pure)


NOT_OURS = (
    "{} cannot be in a reproducible kernel: other devices do not compute its bits;"
    " write it with operations of the language, or leave out reproducible=True"
)


def keeps_nan(propagate_nan: object) -> bool:
    """Return True if NaN wins over numbers."""
    if (name := getattr(propagate_nan, "name", "")) not in ("NONE", "ALL"):
        raise ValueError(f"Unexpected propagate_nan {propagate_nan!r}: use tl.PropagateNan.NONE or tl.PropagateNan.ALL")
    return name == "ALL"


def expect_dtype(value: object, names: Sequence[str], function: str) -> None:
    """Refuse a tensor whose element type the function does not take; numbers are converted later."""
    if isinstance(value, tensor) and value.dtype.name not in names:
        raise ValueError(f"Expected dtype {list(names)} but got {value.dtype}: cast the argument of {function}")
