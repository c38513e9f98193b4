"""Arguments that a kernel changes, put back between the measurements of the autotuner.

Arrays are recognised by what they offer: NumPy arrays, anything with `zero_`, `clone` and `copy_` (torch), and tensor
descriptors or reinterpreted tensors, which stand for their base.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.runtime.launch.python.wrappers import TensorWrapper


class Restore:
    """The default hooks around a measured call: zero some arguments before it, put others back after it."""

    def __init__(self, reset_to_zero: Sequence[str], restore_value: Sequence[str]) -> None:
        self.reset_to_zero = list(reset_to_zero)
        self.restore_value = list(restore_value)
        self.copies: dict[str, Any] = {}

    def before(self, args: Mapping[str, Any], reset_only: bool = False) -> None:
        """Zero what is to be zero; remember what is to be restored, unless nothing follows (`reset_only`)."""
        for name in self.reset_to_zero:
            fill_with_zero(memory_of(args[name]))
        if not reset_only:
            self.copies = {name: copy_of(memory_of(args[name])) for name in self.restore_value}

    def after(self, args: Mapping[str, Any], exception: BaseException | None = None) -> None:
        """Put the remembered values back, whether the call succeeded or not."""
        for name, copy in self.copies.items():
            overwrite(memory_of(args[name]), copy)
        self.copies = {}


def memory_of(arg: Any) -> Any:
    """The array behind an argument; descriptors and wrappers stand for their base."""
    return memory_of(arg.base) if hasattr(arg, "block_shape") or isinstance(arg, TensorWrapper) else arg


def fill_with_zero(array: Any) -> None:
    """In place."""
    if hasattr(array, "zero_"):
        array.zero_()
    else:
        array.fill(0)


def copy_of(array: Any) -> Any:
    """Its own memory, on the same device."""
    return array.clone() if hasattr(array, "clone") else array.copy()


def overwrite(array: Any, source: Any) -> None:
    """In place."""
    if hasattr(array, "copy_"):
        array.copy_(source)
    else:
        array[...] = source
