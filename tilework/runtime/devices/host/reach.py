"""The bytes that a kernel may reach through an argument, and whether those of two arguments overlap.

    reach(x[4:8])             (0x7f10, 0x7f20)        of a NumPy array from its first byte to its last, strides included
    reach(tensor)             all of its storage, which a kernel may reach by offsets
    reach(0x7f00)             EVERYTHING: an address says nothing about the end of its memory

`overlap_check(...)` returns the function that a launcher calls before it runs code that loads and stores through some
pairs of parameters in another order than the program (`Interface.apart`). The native launcher compares the same numbers
in machine code (`runtime/launch/native/code/guards.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from tilework.runtime.launch.python import specialize

Extent = tuple[int, int]  # first byte, and the one behind the last
EVERYTHING: Extent = 0, 1 << 64
NOTHING: Extent = 0, 0


def overlap_check(
    pairs: Sequence[tuple[int, int]], texts: Sequence[str | None]
) -> Callable[[Sequence[Any]], bool] | None:
    """A function that returns True if the two arguments of one of `pairs` overlap; None if there is nothing to check.

    `texts` are the Python expressions of the parameters, of `args`; None: the launcher allocates the memory itself.
    """
    known = [(one, two) for one, two in pairs if texts[one] is not None and texts[two] is not None]
    if not known:
        return None
    lines = [
        f"    s{slot}, e{slot} = reach({texts[slot]})" for slot in sorted({slot for pair in known for slot in pair})
    ]
    tests = [f"s{one} < e{two} and s{two} < e{one}" for one, two in known]
    source = "\n".join(["def overlaps(args):", *lines, f"    return {' or '.join(tests)}"])
    scope: dict[str, Any] = {"reach": reach}
    exec(compile(source, "<overlaps of arguments>", "exec"), scope)
    return scope["overlaps"]


def reach(arg: Any) -> Extent:
    """See the module docstring."""
    rule = RULES.get(type(arg))
    if rule is None:
        rule = RULES[type(arg)] = reach_rule(arg)
    return rule(arg)


def reach_rule(arg: Any) -> Callable[[Any], Extent]:
    """The rule for a class, found once by what its instances offer."""
    if isinstance(arg, int):
        return lambda arg: EVERYTHING
    if hasattr(arg, "data_ptr"):
        return tensor_reach
    if specialize.is_array(arg):
        return array_reach
    return converted_reach


def array_reach(array: Any) -> Extent:
    """From the first byte of a NumPy array to its last."""
    first = last = array.__array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        step = (size - 1) * stride
        if step > 0:
            last += step
        else:
            first += step
    return first, last + array.itemsize


def tensor_reach(tensor: Any) -> Extent:
    """All of a tensor's storage; a wrapper reaches what it wraps."""
    base = getattr(tensor, "base", None)
    if base is not None and not hasattr(tensor, "untyped_storage"):
        return reach(base)
    if (extent := storage_extent(tensor)) is not None:
        return extent[0], sum(extent)
    size = bytes_of(tensor)
    return EVERYTHING if size is None else (tensor.data_ptr(), tensor.data_ptr() + size)


def converted_reach(arg: Any) -> Extent:
    """Of what offers NumPy's array interface or DLPack."""
    import numpy as np  # lazily: few arguments are of such classes

    return array_reach(np.asarray(arg) if hasattr(arg, "__array_interface__") else np.from_dlpack(arg))


def storage_extent(tensor: Any) -> tuple[int, int] | None:
    """(address, bytes) of the storage of a tensor or its wrapper; a pointer with a type may call itself its storage."""
    storage: Any = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else None
    if not callable(getattr(storage, "nbytes", None)):
        return None
    try:
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:  # torch: a storage without memory, which is refused when the argument is packed
        return 0, 0


def bytes_of(tensor: Any) -> int | None:
    """The size of the memory of an object with `data_ptr()`; None if it does not say."""
    for name in ("nbytes", "size_bytes"):
        if isinstance(size := getattr(tensor, name, None), int):
            return size
    if hasattr(tensor, "numel") and hasattr(tensor, "element_size"):
        return tensor.numel() * tensor.element_size()
    return None


RULES: dict[type, Callable[[Any], Extent]] = {type(None): lambda arg: NOTHING}
