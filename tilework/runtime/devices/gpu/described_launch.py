"""Launches of which the caller describes every argument, as Triton's launchers call `utils.launch`.

    signature = signature_metadata(["*fp32", "i32"])            one byte for each value that the kernel takes
    annotations = [PyKernelArg(None, ARG_KERNEL), PyKernelArg(None, ARG_KERNEL), PyKernelArg(None, ARG_CONSTEXPR)]
    utils.launch(4, 1, 1, stream, function, False, False, (4, 1, 0), None, None, None, None, None,
                 annotations, signature, (x, 1024, 64))

Annotations have the structure of the arguments: constants are left out, tuples are flattened.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from tilework.runtime.devices.gpu.gpu_launcher import GpuLauncher
from tilework.runtime.devices.gpu.parameters import GIVEN_MAP, KINDS

ARG_CONSTEXPR, ARG_KERNEL, ARG_TUPLE = range(3)
POINTER = "*i8"  # all pointers are passed in the same way
CODES = (POINTER, GIVEN_MAP, *KINDS)  # a type by its byte


class PyKernelArg(NamedTuple):
    """The description of one argument; `nested_tuple` has the annotations of the items of a tuple."""

    nested_tuple: "Sequence[PyKernelArg] | None"
    type: int


def signature_metadata(types: Sequence[str]) -> bytes:
    """Return the types of the values that a kernel takes as bytes."""
    return bytes(map(code_of, types))


def code_of(type: str) -> int:
    name = POINTER if type.startswith("*") else type
    if name not in CODES:
        raise ValueError(f"Unknown data type: {type}")
    return CODES.index(name)


def kernel_values(annotations: Sequence[PyKernelArg], args: Sequence[Any]) -> Iterator[Any]:
    """Return what the kernel takes of the arguments."""
    for (nested, type), arg in zip(annotations, args, strict=True):
        if type == ARG_TUPLE:
            yield from kernel_values(nested or (), arg)
        elif type == ARG_KERNEL:
            yield arg


@lru_cache(256)
def launcher_for(
    cls: type[GpuLauncher], functions: Any, function: int, cooperative: bool, pdl: bool, facts: tuple[int, ...],
    warp_size: int, signature: bytes,
) -> GpuLauncher:  # fmt: skip
    """Return the launcher of such launches; `facts` are warps, CTAs and bytes of shared memory."""
    num_warps, num_ctas, shared = facts
    types = {str(index): CODES[code] for index, code in enumerate(signature)}
    metadata = SimpleNamespace(
        name="the kernel", num_warps=num_warps, num_ctas=num_ctas, shared=shared, launch_cooperative_grid=cooperative,
        launch_pdl=pdl, target=SimpleNamespace(warp_size=warp_size),
    )  # fmt: skip
    return cls(functions, SimpleNamespace(signature=types), metadata)


def launch_described(
    launcher: GpuLauncher, grid: tuple[int, int, int], stream: int, function: int, launch_metadata: object,
    hooks: tuple[Callable[[object], object] | None, Callable[[object], object] | None],
    scratch: tuple[Any, Any], values: Sequence[Any],
) -> None:  # fmt: skip
    """Launch, between the hooks."""
    enter, leave = hooks
    if enter:
        enter(launch_metadata)
    launcher.start(grid, stream, function, values, scratch)
    if leave:
        leave(launch_metadata)
