"""Functions of the emulated library that machine code calls, as it calls those of the real one: with addresses."""

import ctypes
from typing import Any

from tilework.targets import driver_library
from tilework.targets.amd import libhip
from tilework.targets.nvidia import libcuda


class Reference:
    """What `ctypes.byref` gives, for an address."""

    def __init__(self, type: Any, address: int) -> None:
        self._obj = type.from_address(address)


def launch_callback(cuda: Any) -> Any:
    """`cuLaunchKernelEx` as a function of addresses."""

    def launch(config: int, function: int, addresses: int, extra: None) -> int:
        count = len(cuda.objects[function].function.function.params)
        places = (ctypes.c_void_p * count).from_address(addresses)
        return cuda.cuLaunchKernelEx(Reference(driver_library.LaunchConfig, config), function, places, None)

    return ctypes.CFUNCTYPE(ctypes.c_int, *libcuda.FUNCTIONS["cuLaunchKernelEx"])(launch)


def context_callback(cuda: Any) -> Any:
    """`cuCtxGetCurrent` as a function of an address."""
    ask = lambda place: cuda.cuCtxGetCurrent(Reference(ctypes.c_void_p, place))  # noqa: E731
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ask)


def set_context_callback(cuda: Any) -> Any:
    """`cuCtxSetCurrent` as a function of a handle."""
    set = lambda context: cuda.cuCtxSetCurrent(ctypes.c_void_p(context))  # noqa: E731
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(set)


def hip_launch_callback(hip: Any) -> Any:
    """`hipModuleLaunchKernel` as a function of numbers and addresses."""

    def launch(function: int, *rest: Any) -> int:
        *numbers, addresses, extra = rest
        places = (ctypes.c_void_p * len(hip.objects[function].given)).from_address(addresses)
        return hip.hipModuleLaunchKernel(function, *numbers, places, extra)

    return ctypes.CFUNCTYPE(ctypes.c_int, *libhip.FUNCTIONS["hipModuleLaunchKernel"])(launch)


def hip_cooperative_callback(hip: Any) -> Any:
    """`hipModuleLaunchCooperativeKernel`, likewise."""

    def launch(function: int, *rest: Any) -> int:
        places = (ctypes.c_void_p * len(hip.objects[function].given)).from_address(rest[-1])
        return hip.hipModuleLaunchCooperativeKernel(function, *rest[:-1], places)

    return ctypes.CFUNCTYPE(ctypes.c_int, *libhip.FUNCTIONS["hipModuleLaunchCooperativeKernel"])(launch)


def hip_device_callback(hip: Any) -> Any:
    """`hipGetDevice` as a function of an address."""
    ask = lambda place: hip.hipGetDevice(Reference(ctypes.c_int, place))  # noqa: E731
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ask)


def event_callback(name: str) -> Any:
    """What records an event as a function of handles; the default stream is an address of 0."""

    def made(library: Any) -> Any:
        record = lambda event, stream: getattr(library, name)(event, stream or 0)  # noqa: E731
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(record)

    return made


CALLBACKS = {
    "cuEventRecord": event_callback("cuEventRecord"),
    "hipEventRecord": event_callback("hipEventRecord"),
    "cuLaunchKernelEx": launch_callback,
    "cuCtxGetCurrent": context_callback,
    "cuCtxSetCurrent": set_context_callback,
    "hipModuleLaunchKernel": hip_launch_callback,
    "hipModuleLaunchCooperativeKernel": hip_cooperative_callback,
    "hipGetDevice": hip_device_callback,
    "hipSetDevice": lambda hip: ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(hip.hipSetDevice),
}
