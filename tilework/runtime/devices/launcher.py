"""The steps of a launch around running a kernel, whatever the device: scratch memory, hooks, the three sizes of the
grid.

    class MyLauncher(Launcher):
        def start(self, grid, stream, function, args, scratch):
            enqueue(function, grid, stream, [*args, *scratch])        # as the device does it

    class MyDriver:
        launcher_cls = MyLauncher

A launcher is made once per kernel and called once per launch. A kernel whose metadata requests scratch memory gets it
from the allocator of the user (`set_allocator`) at every launch, one buffer for all programs together; the memory of
instrumented kernels comes from `set_profile_allocator`. `scratch` holds both buffers, None for the one that is not
needed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any, ClassVar, Protocol

# ---- Scratch memory of kernels: it comes from a function of the user's.
#
#     set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
#
# It is called at every launch of a kernel that needs scratch memory, with the bytes of all programs together. The
# functions live in context variables, so that each thread and each task can have its own.


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
    """Allocate scratch memory with `allocator(size, alignment, stream)`; `NullAllocator()` undoes this.

    GPUs need it for descriptors that kernels make (`tl.make_tensor_descriptor`). Every launch of such a kernel calls
    the allocator with the number of bytes for all programs together; it returns an object with `data_ptr()`. Each
    thread and task has its own allocator. The CPU needs none.

    Example:
        from tilework.runtime.devices.launcher import NullAllocator

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


# ---- The steps of a launch around running a kernel, whatever the device: scratch memory, hooks, the three sizes of the


Extent = tuple[int, int, int]
Scratch = tuple[Buffer | None, Buffer | None]
Hook = Callable[[object], object] | None  # called with the metadata of a launch

NO_SCRATCH: Scratch = (None, None)
HIDDEN = ("*i8", "*i8")  # the types of the two parameters that scratch memory arrives in


def declared_types(source: object) -> dict[str, Any] | None:
    """The types by which a launch passes its arguments; None for a file of IR, which declares no types."""
    return getattr(source, "signature", None) if getattr(source, "is_declared", True) else None


class Launcher:
    """See the module docstring."""

    natively_scratched = False  # True if `native` launches allocate scratch memory
    watch: ClassVar[Callable[..., None] | None] = (
        None  # what starts launches while they are logged (`launch/launch_log.py`)
    )

    def __init__(self, source: Any, metadata: Any) -> None:
        self.name: str = metadata.name
        self.source, self.metadata = source, metadata
        declared = declared_types(source)
        self.signature: list[Any] | None = None if declared is None else list(declared.values())
        self.num_ctas: int = getattr(metadata, "num_ctas", 1)
        self.scratch_size: int = getattr(metadata, "global_scratch_size", 0)
        self.scratch_align: int = getattr(metadata, "global_scratch_align", 1)
        self.profile_size: int = getattr(metadata, "profile_scratch_size", 0)
        self.profile_align: int = getattr(metadata, "profile_scratch_align", 1)
        self.needs_scratch = self.scratch_size > 0 or self.profile_size > 0

    def start(self, grid: Extent, stream: int, function: object, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid; a launcher says here how its device does it."""
        raise TypeError(f"{type(self).__name__} has no method `start`, which runs the programs of a grid")

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: object,
        packed_metadata: object,
        launch_metadata: object,
        enter_hook: Hook,
        exit_hook: Hook,
        *args: object,
    ) -> None:
        """One launch, called as Triton's launchers are; the caller keeps `args` and the scratch memory alive until
        `start` returns.

        Chains of hooks may be empty: generated launching code, such as Inductor's, passes
        `knobs.runtime.launch_enter_hook` as it is.
        """
        scratch = self.allocate((x, y, z), stream) if self.needs_scratch else NO_SCRATCH
        if enter_hook:
            enter_hook(launch_metadata)
        if (watch := Launcher.watch) is None:
            self.start((x, y, z), stream, function, args, scratch)
        else:
            watch(self, (x, y, z), stream, function, args, scratch, launch_metadata)
        if exit_hook:
            exit_hook(launch_metadata)

    def repeated(
        self, function: object, check: Callable[[Sequence[object]], None] | None = None
    ) -> Callable[..., None]:
        """The function to call instead of this launcher, in the same way, for many launches of one function; `check`
        sees new kinds of arguments.
        """
        return self

    def native(self, driver: object, function: object, args: Sequence[object], *, follows: bool = False) -> Any:
        """The facts that the native launcher needs to repeat a launch of `function` with such arguments
        (`launch/native/entries.py`), or None.

        `follows`: it goes to the device of its arguments, whichever is the current one.
        """
        return None

    def refusing(self, plain: object) -> Any:
        """The record that the launcher of `without()` gave to the native launcher, for launches only that do not
        justify this kernel.
        """
        return plain

    def memory_of(self, value: object) -> Any:
        """The guard by which the native launcher recognises memory like `value`; None if it cannot."""
        return None

    def allocate(self, grid: Extent, stream: int) -> Scratch:
        """The buffers for all programs of a grid."""
        programs = prod(grid) * self.num_ctas
        scratch = profile = None
        if self.scratch_size > 0:
            scratch = _allocator.get()(programs * self.scratch_size, self.scratch_align, stream)
        if self.profile_size > 0:
            profile = _profile_allocator.get()(programs * self.profile_size, self.profile_align, stream)
        return checked(scratch, self.scratch_align), checked(profile, self.profile_align)


def checked(buffer: Any, alignment: int) -> Any:
    """Return the memory of an allocator, if it has an address with the requested alignment."""
    if buffer is None:
        return None
    gave = "the allocator that was set with set_allocator gave"
    if not hasattr(buffer, "data_ptr"):
        raise TypeError(f"{gave} a {type(buffer).__name__}, which has no `data_ptr()`")
    if (address := buffer.data_ptr()) % alignment:
        raise ValueError(f"{gave} memory at {address:#x}, which is not aligned to {alignment} bytes, as requested")
    return buffer


def refuse_negated(position: int, tensor: Any) -> None:
    """Refuse a torch tensor whose memory holds the negated values."""
    if hasattr(tensor, "is_neg") and tensor.is_neg():
        raise ValueError(
            f"Pointer argument (at {position}) is a view whose elements torch negates when it reads them, and a kernel"
            " does not: pass `tensor.resolve_neg()`"
        )
