"""One pattern for every NaN: machines make NaNs of different signs and payloads, and hand on those of their operands or not.

>>> canonical(np.array([0xFFC12345], np.uint32).view(np.float32)).view(np.uint32) == 0x7FC00000
array([ True])
"""

from typing import Any

import numpy as np

from tilework.numerics.rounding import FORMAT_OF, Array, bits_of


def canonical(values: Array) -> Array:
    """`values` with the positive quiet NaN in place of others; what is not a float stays as it is."""
    format = FORMAT_OF.get(values.dtype)
    if format is None or (last := format.last_number) is None:
        return values
    bits = bits_of(values)
    word: Any = bits.dtype.type
    is_nan = (bits & word((1 << (format.bits - 1)) - 1)) > word(last)
    return np.where(is_nan, word(format.nan), bits).astype(bits.dtype).view(values.dtype) if is_nan.any() else values
