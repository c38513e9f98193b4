"""Which casts exist, and with which rounding."""

from tilework.language.dtypes import dtype
from tilework.language.values import tensor

ROUNDINGS = ("rtne", "rtz")
TRUNCATING_CASTS = {("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5"), ("fp32", "fp8e4b15"), ("fp16", "fp8e4b15")}
ADDRESSES = ("int64", "uint64")


def check_cast(value: tensor, target: dtype, rounding: str | None) -> None:
    """Refuse a cast between two types, neither of them a pointer, that does not exist."""
    source = value.dtype
    if rounding is not None:
        check_rounding(source, target, rounding)
    if not is_castable(source, target):
        advice = ""
        if source.is_fp8() or target.is_fp8():
            through = "tl.float16" if "fp8e4b15" in (source.name, target.name) else "tl.float32"
            advice = f": convert through {through}"
        raise AssertionError(f"cannot cast {value} to {target}{advice}")


def is_castable(source: dtype, target: dtype) -> bool:
    """Between integers and floats always; fp8 only from and to other floats, and never directly from fp64."""
    if source.is_void() or target.is_void():
        return False
    if source.is_int() or target.is_int():
        return not (source.is_fp8() or target.is_fp8())
    return not (target.is_fp8() and source.is_fp64()) and not (target.is_fp8e4b15() and source.is_bf16())


def check_rounding(source: dtype, target: dtype, rounding: str) -> None:
    """A rounding mode belongs to a cast that loses bits of a float, and must exist for that pair."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"Invalid rounding mode: {rounding}. Supported rounding modes are 'rtne' and 'rtz'.")
    narrowing = source.is_floating() and target.is_floating() and source.primitive_bitwidth > target.primitive_bitwidth
    if not narrowing:
        raise ValueError(
            "fp_downcast_rounding should be set only for truncating fp conversions. "
            f"Source scalar type is {source} and destination type is {target}"
        )
    if rounding == "rtz" and (source.name, target.name) not in TRUNCATING_CASTS:
        raise ValueError(
            f"a cast from {source} to {target} cannot round toward zero: only from fp32 to fp16, bf16 and fp8e5"
        )


def check_pointer_cast(value: tensor, target: dtype, rounding: str | None) -> None:
    """A pointer becomes another pointer, an integer of 64 bits, or a bool; the integer becomes a pointer again."""
    source = value.dtype
    if rounding is not None:
        check_rounding(source, target, rounding)
    to_integer = target.is_ptr() or target.is_bool() or target.name in ADDRESSES
    if not (to_integer if source.is_ptr() else source.name in ADDRESSES):
        raise AssertionError(f"cannot cast {value} to {target}: only 64-bit integers hold an address; use tl.int64")


def check_bitcast(source: dtype, target: dtype) -> None:
    """Both types have one width."""
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise ValueError(
            f"Cannot bitcast data-type of size {source.primitive_bitwidth} to data-type of size "
            f"{target.primitive_bitwidth}: {source} and {target} differ in width"
        )
