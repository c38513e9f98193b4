"""Scratch memory of kernels: it comes from a function of the user's.

    set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))

It is called at every launch of a kernel that needs scratch memory, with the bytes of all programs together. The
functions live in context variables, so that each thread and each task can have its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Buffer(Protocol):
    """Memory that is freed with this object."""

    def data_ptr(self) -> int: ...


class Allocator(Protocol):
    """Memory of `size` bytes for work on a stream."""

    def __call__(self, size: int, alignment: int, stream: int | None, /) -> Buffer: ...


class NullAllocator:
    """The allocator until one is set: needing memory is an error."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer:
        raise RuntimeError(
            f"Kernel requires a runtime memory allocation ({size} bytes), but no allocator was set."
            " Use triton.set_allocator to specify an allocator."
        )


_NULL_ALLOCATOR = NullAllocator()
_allocator: ContextVar[Allocator] = ContextVar("_allocator", default=_NULL_ALLOCATOR)
_profile_allocator: ContextVar[Allocator] = ContextVar("_profile_allocator", default=_NULL_ALLOCATOR)


def set_allocator(allocator: Allocator) -> None:
    """Take scratch memory from `allocator(size, alignment, stream)`; `NullAllocator()` undoes it.

    GPUs need it for descriptors that kernels make (`tl.make_tensor_descriptor`); it is called at every launch of such a
    kernel, with the bytes of all programs together, and returns something with `data_ptr()`. Each thread and task has
    its own. The CPU needs none.

    Example:
        from tilework.runtime.devices.allocators import NullAllocator

        def allocate(size, alignment, stream):
            import torch

            return torch.empty(size, device="cuda", dtype=torch.int8)

        tilework.set_allocator(allocate)
        tilework.set_allocator(NullAllocator())  # needing memory is an error again
    """
    _allocator.set(allocator)


@contextmanager
def otherwise(allocator: Allocator) -> Iterator[None]:
    """Take memory from `allocator` in the block where the user has set none."""
    unset = [variable for variable in (_allocator, _profile_allocator) if isinstance(variable.get(), NullAllocator)]
    tokens = [(variable, variable.set(allocator)) for variable in unset]
    try:
        yield
    finally:
        for variable, token in tokens:
            variable.reset(token)


def set_profile_allocator(allocator: Allocator | None) -> None:
    """Take the memory of instrumented kernels from `allocator`; None undoes it."""
    _profile_allocator.set(_NULL_ALLOCATOR if allocator is None else allocator)
