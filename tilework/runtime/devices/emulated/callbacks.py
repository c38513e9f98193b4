"""Functions of the emulated library that machine code calls, as it calls those of the real one: with addresses."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from tilework.targets import driver_library
from tilework.targets.amd import libhip
from tilework.targets.nvidia import libcuda

TYPES = libcuda.FUNCTIONS | libhip.FUNCTIONS


class Reference:
    """The equivalent of `ctypes.byref` for an address."""

    def __init__(self, type: Any, address: int) -> None:
        self._obj = type.from_address(address)


def places(address: int, parameters: Sequence[object]) -> Any:
    """The addresses of what a launch passes."""
    return (ctypes.c_void_p * len(parameters)).from_address(address)


def cuda_launch(cuda: Any, config: int, function: int, addresses: int, extra: None) -> tuple[Any, ...]:
    parameters = cuda.objects[function].function.function.params
    return Reference(driver_library.LaunchConfig, config), function, places(addresses, parameters), None


def hip_launch(hip: Any, function: int, *rest: Any) -> tuple[Any, ...]:
    *numbers, addresses = rest
    return function, *numbers, places(addresses, hip.objects[function].given)


# what the functions in Python are called with, where that is not what machine code has
ARGUMENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cuLaunchKernelEx": cuda_launch,
    "cuCtxGetCurrent": lambda cuda, place: (Reference(ctypes.c_void_p, place),),
    "cuCtxSetCurrent": lambda cuda, context: (ctypes.c_void_p(context),),
    "hipModuleLaunchKernel": lambda hip, *given: (*hip_launch(hip, *given[:-1]), given[-1]),
    "hipModuleLaunchCooperativeKernel": hip_launch,
    "hipGetDevice": lambda hip, place: (Reference(ctypes.c_int, place),),
}


def callback(library: object, symbol: str) -> Any:
    """A function of an emulated library as one of C."""
    arguments = ARGUMENTS.get(symbol, lambda library, *given: given)
    call = lambda *given: getattr(library, symbol)(*arguments(library, *given))  # noqa: E731
    return ctypes.CFUNCTYPE(ctypes.c_int, *TYPES[symbol])(call)
