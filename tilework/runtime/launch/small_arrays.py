"""Arrays of which every element is less than 2**31 bytes behind the pointer that a kernel gets: the letter ``S`` of their key.

    specialize_small(x)      x a float32 array of 1 MiB      ->  ("*fp32", "DS")

Offsets of 32 bits reach all of such an array, and none is negative: a view that does not begin where its memory begins is not one
of them, since a kernel may look at what is in front of it.
"""

from typing import Any

from tilework.runtime.launch.specialize import Spec, array_address, is_array, specialize
from tilework.runtime.launch.wrappers import address

LIMIT = 2**31 - 2  # bytes that buffer instructions reach


def is_small(arg: Any) -> bool:
    """Whether an array is known to be small."""
    if hasattr(arg, "ptr_range"):
        return arg.ptr_range() <= LIMIT
    if hasattr(arg, "untyped_storage"):
        storage = arg.untyped_storage()
        has_size = storage is not arg and hasattr(storage, "size")  # a pointer with a type may call itself its storage
        return has_size and storage.size() <= LIMIT and begins_with(arg, storage)
    if not is_array(arg):  # a TensorWrapper
        return (
            hasattr(arg, "base")
            and hasattr(arg, "data_ptr")
            and is_small(arg.base)
            and arg.data_ptr() == address(arg.base)
        )
    whole = arg
    while is_array(whole.base):
        whole = whole.base
    return whole.nbytes <= LIMIT and array_address(whole) == array_address(arg)


def begins_with(arg: Any, storage: Any) -> bool:
    """Whether nothing of the storage is in front of an array; wrappers of tensors do not always tell their offset."""
    return not arg.storage_offset() if hasattr(arg, "storage_offset") else arg.data_ptr() == storage.data_ptr()


def specialize_small(arg: Any, is_const: bool = False, specialize_value: bool = True, align: bool = True) -> Spec:
    """As `specialize`, with the letter; items of a tuple have their own."""
    type_, key = specialize(arg, is_const, specialize_value, align)
    return type_, with_letter(type_, key, arg)


def with_letter(type: Any, key: Any, arg: Any) -> Any:
    if isinstance(type, tuple):
        items = [with_letter(*item) for item in zip(type, key, arg, strict=True)]
        return key.__class__(*items) if hasattr(key, "_fields") else tuple(items)
    is_pointer = isinstance(type, str) and type.startswith("*")
    return key + "S" if is_pointer and key is not None and is_small(arg) else key


def small_address(arg: Any) -> int:
    """Where a small array begins; an error for others (`native_entry.py`)."""
    if not is_small(arg):
        raise ValueError("an array of 2 GiB or more, or a part of one, in place of a small one")
    return address(arg)
