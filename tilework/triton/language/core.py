"""What Triton's core module has beside what `tilework.language.core` has."""

# pyright: reportUnusedImport=false

import math
from functools import reduce
from typing import Any

from tilework import knobs
from tilework.language import core
from tilework.language.compile_time import constexpr
from tilework.language.function import JITCallable
from tilework.triton._utils import get_primitive_bitwidth

CONSTEXPR_0 = constexpr(0)
tensor_descriptor_base = core.tensor_descriptor  # there is one kind here, and `isinstance` is what they are used for
tensor_descriptor_base_type = core.tensor_descriptor_type
item = core.tensor.item


def is_negative_zero(x: Any) -> bool:
    """Whether a number is -0.0."""
    return x == 0.0 and math.copysign(1.0, x) < 0


def check_bit_width(value: Any, shift_value: Any) -> None:
    """Refuse a shift by a constant that leaves nothing of the value."""
    if isinstance(value, core.tensor) and isinstance(shift_value, constexpr):
        bits = value.type.scalar.primitive_bitwidth
        if shift_value.value >= bits:
            raise ValueError(f"Value {shift_value.value} exceeds the maximum bitwidth ({bits}) for type {value.dtype}")


def _normalize_tuple(t: Any) -> Any:
    """A Python tuple as a kernel's; anything else as it is."""
    return core.tuple(t) if type(t) is tuple else t


def _extremum(name: str, args: tuple[Any, ...], propagate_nan: Any, semantic: Any) -> Any:
    values = args[0].values if len(args) == 1 and isinstance(args[0], core.tuple) else args
    if not any(isinstance(value, core.tensor) for value in values):
        plain = [core._unwrap_if_constexpr(value) for value in values]
        return constexpr(max(plain) if name == "max" else min(plain))
    mode = core.PropagateNan.NONE if propagate_nan is None else core._unwrap_if_constexpr(propagate_nan)
    combine = core.maximum if name == "max" else core.minimum
    return reduce(lambda left, right: combine(left, right, propagate_nan=mode, _semantic=semantic), values)


@core.builtin
def builtin_max(*args: Any, propagate_nan: Any = None, _semantic: Any = None) -> Any:
    """What Python's `max` means in a kernel."""
    return _extremum("max", args, propagate_nan, _semantic)


@core.builtin
def builtin_min(*args: Any, propagate_nan: Any = None, _semantic: Any = None) -> Any:
    """What Python's `min` means in a kernel."""
    return _extremum("min", args, propagate_nan, _semantic)
