"""Small functions that Triton's modules share, and that programs which prepare launches import.

>>> values = [1, ("D", [2, "S"])]
>>> find_paths_if(values, lambda path, value: isinstance(value, str))
[(1, 0), (1, 1, 1)]
>>> get_iterable_path(values, (1, 1, 1))
'S'
"""

# pyright: reportUnusedImport=false

import builtins
from collections.abc import Callable
from functools import reduce
from typing import Any

from tilework.frontend.scopes import is_named_tuple_class
from tilework.language.compile_time import tuple as kernel_tuple
from tilework.language.dtypes import TRITON_MAX_TENSOR_NUMEL, validate_block_shape
from tilework.language.signature_types import (
    DTYPE_OF_CODE,
    canonicalize_dtype,
    canonicalize_ptr_dtype,
    type_canonicalisation_dict,
)

Path = builtins.tuple[int, ...]
NESTED = (list, builtins.tuple, kernel_tuple)
BITWIDTH_DICT = {
    name: 0 if code == "void" else 1 if code == "u1" else DTYPE_OF_CODE[code].primitive_bitwidth
    for name, code in type_canonicalisation_dict.items()
}


def is_namedtuple(val: Any) -> bool:
    """Whether a class is a NamedTuple."""
    return is_named_tuple_class(val)


def find_paths_if(iterable: Any, pred: Callable[[Path, Any], Any]) -> list[Path]:
    """The index paths to the values in nested sequences that `pred(path, value)` holds for."""
    found: list[Path] = []

    def look(path: Path, value: Any) -> None:
        if isinstance(value, NESTED):
            for index, item in enumerate(value):
                look((*path, index), item)
        elif pred(path, value):
            found.append(path)

    look((), iterable)
    return found


def get_iterable_path(iterable: Any, path: Path) -> Any:
    """The value at an index path."""
    return reduce(lambda value, index: value[index], path, iterable)


def set_iterable_path(iterable: Any, path: Path, val: Any) -> None:
    """Replace the value at an index path; what holds it is a kernel's tuple, or a list."""
    assert path, "an empty path names no value inside"
    holder = get_iterable_path(iterable, path[:-1])
    assert isinstance(holder, kernel_tuple | list), f"{type(holder).__name__} cannot be changed"
    (holder.values if isinstance(holder, kernel_tuple) else holder)[path[-1]] = val


def get_primitive_bitwidth(dtype: str) -> int:
    """The bits of a type by any of its names: ``"fp16"``, ``"float16"``, ``"half"``."""
    return BITWIDTH_DICT[dtype]


def is_power_of_two(x: int) -> bool:
    """Whether at most one bit is set."""
    return (x & (x - 1)) == 0
