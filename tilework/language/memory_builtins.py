"""Builtins that read and write memory: pointers, block pointers, tensor descriptors, atomics."""

from collections.abc import Callable
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, _unwrap_shape, base_value, tuple
from tilework.language.shapes import _none_or


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    _semantic: Any = None,
) -> Any:
    """Read memory through a pointer, a block of pointers, or a block pointer.

        x = tl.load(ptr + offsets, mask=offsets < n, other=0.0)

    Where `mask` is false nothing is read and the result is `other`; without `other` it is undefined there. A block pointer
    takes `boundary_check`, the axes to check, and `padding_option` ("zero" or "nan") instead; without a padding, elements
    outside are undefined. The sanitizer warns where an undefined element is used (docs/sanitizer.md).
    """
    return _semantic.load(
        pointer,
        _none_or(mask),
        _none_or(other),
        _axes(boundary_check),
        _unwrap_if_constexpr(padding_option),
        _unwrap_if_constexpr(cache_modifier),
        _unwrap_if_constexpr(eviction_policy),
        _unwrap_if_constexpr(volatile),
    )


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    _semantic: Any = None,
) -> Any:
    """Write memory where `mask` is true: ``tl.store(ptr + offsets, x, mask=offsets < n)``.

    The value is converted to the element type of the pointer and broadcast to its shape.
    """
    return _semantic.store(
        pointer,
        value,
        _none_or(mask),
        _axes(boundary_check),
        _unwrap_if_constexpr(cache_modifier),
        _unwrap_if_constexpr(eviction_policy),
    )


def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any, _semantic: Any = None
) -> Any:
    """A pointer to a block of an array, for `load`, `store` and `advance`.

    p = tl.make_block_ptr(a, shape=(M, K), strides=(K, 1), offsets=(row, 0), block_shape=(64, 32), order=(1, 0))
    """
    return _semantic.make_block_ptr(
        base, _items(shape), _items(strides), _items(offsets), _unwrap_shape(block_shape), _unwrap_shape(order)
    )


def advance(base: Any, offsets: Any, _semantic: Any = None) -> Any:
    """A block pointer moved by `offsets`; the old one is unchanged: ``p = tl.advance(p, (0, BLOCK_K))``."""
    return _semantic.advance(base, _items(offsets))


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero", _semantic: Any = None
) -> Any:
    """Describe an array in memory whose blocks will be moved; the last stride is 1.

    desc = tl.make_tensor_descriptor(ptr, shape=[M, N], strides=[N, 1], block_shape=[64, 32])
    desc.store([row, col], desc.load([row, col]) + 1)
    """
    block, padding = _unwrap_shape(block_shape), _unwrap_if_constexpr(padding_option)
    return _semantic.make_tensor_descriptor(base, _items(shape), _items(strides), block, padding)


def load_tensor_descriptor(desc: Any, offsets: Any, _semantic: Any = None) -> Any:
    """The function form of ``desc.load(offsets)``."""
    return desc.load(offsets, _semantic=_semantic)


def store_tensor_descriptor(desc: Any, offsets: Any, value: Any, _semantic: Any = None) -> Any:
    """The function form of ``desc.store(offsets, value)``."""
    return desc.store(offsets, value, _semantic=_semantic)


def _experimental_descriptor_load(
    desc_pointer: Any, offsets: Any, shape: Any, dtype: Any, _semantic: Any = None
) -> Any:
    """Removed in Triton 3.1: a pointer to a descriptor says nothing about its shape."""
    raise TypeError(
        "_experimental_descriptor_load was removed: pass a TensorDescriptor to the kernel, or make one with"
        " tl.make_tensor_descriptor, and call desc.load(offsets)"
    )


def _experimental_descriptor_store(desc_pointer: Any, value: Any, offsets: Any, _semantic: Any = None) -> Any:
    """Removed in Triton 3.1: a pointer to a descriptor says nothing about its shape."""
    raise TypeError(
        "_experimental_descriptor_store was removed: pass a TensorDescriptor to the kernel, or make one with"
        " tl.make_tensor_descriptor, and call desc.store(offsets, value)"
    )


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None, _semantic: Any = None) -> Any:
    """Where memory equals `cmp`, replace it by `val`; returns what was there before.

    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    """
    return _semantic.atomic_cas(pointer, cmp, val, _unwrap_if_constexpr(sem), _unwrap_if_constexpr(scope))


def _atomic(kind: str, doc: str) -> Callable[..., Any]:
    def function(
        pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
    ) -> Any:
        sem, scope = _unwrap_if_constexpr(sem), _unwrap_if_constexpr(scope)
        return _semantic.atomic_rmw(kind, pointer, val, _none_or(mask), sem, scope)

    function.__name__ = function.__qualname__ = f"atomic_{kind}"
    function.__doc__ = f"""{doc}; returns what was there before.

    `sem` is acq_rel (default), acquire, release or relaxed; `scope` is gpu (default), cta or sys.
    """
    return function


atomic_xchg = _atomic("xchg", "Replace memory by `val`: ``tl.atomic_xchg(lock, 0)`` frees a lock")
atomic_add = _atomic("add", "Add `val` to memory: ``ticket = tl.atomic_add(counter, 1)``")
atomic_max = _atomic("max", "Keep the larger of memory and `val`")
atomic_min = _atomic("min", "Keep the smaller of memory and `val`")
atomic_and = _atomic("and", "Clear the bits of memory that are 0 in `val`")
atomic_or = _atomic("or", "Set the bits of memory that are 1 in `val`")
atomic_xor = _atomic("xor", "Flip the bits of memory that are 1 in `val`")


def _axes(boundary_check: Any) -> list[Any]:
    """The axes of a `boundary_check`, None meaning no axis."""
    return [] if _unwrap_if_constexpr(boundary_check) is None else _unwrap_shape(boundary_check)


def _items(values: Any) -> list[Any]:
    """The elements of a list argument as they are; one value stands for a list of one."""
    if isinstance(values, base_value) and not isinstance(values, tuple):
        values = _unwrap_if_constexpr(values)
    return list(values) if hasattr(values, "__iter__") else [values]
