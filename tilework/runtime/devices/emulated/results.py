"""Result codes of driver functions and their messages: CUDA and HIP have the same codes."""

from typing import Any

OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
NO_DEVICE, INVALID_DEVICE, INVALID_IMAGE, INVALID_CONTEXT, NO_BINARY, INVALID_PTX = 100, 101, 200, 201, 209, 218
INVALID_HANDLE, NOT_FOUND, NOT_READY = 400, 500, 600
ILLEGAL_ADDRESS, LAUNCH_FAILED, CAPTURE_UNSUPPORTED = 700, 719, 900
TEXTS = {
    INVALID_VALUE: "invalid argument",
    OUT_OF_MEMORY: "out of memory",
    NOT_INITIALIZED: "initialization error",
    NO_DEVICE: "no capable device is detected",
    INVALID_DEVICE: "invalid device ordinal",
    INVALID_IMAGE: "device kernel image is invalid",
    INVALID_CONTEXT: "invalid device context",
    NO_BINARY: "no kernel image is available for execution on the device",
    INVALID_PTX: "a PTX JIT compilation failed",
    INVALID_HANDLE: "invalid resource handle",
    NOT_FOUND: "named symbol not found",
    NOT_READY: "device not ready",
    ILLEGAL_ADDRESS: "an illegal memory access was encountered",
    LAUNCH_FAILED: "unspecified launch failure",
    CAPTURE_UNSUPPORTED: "operation not permitted when stream is capturing",
}


def given(target: Any, value: Any) -> int:
    """The result of a function that has put a value where its caller wants it."""
    target._obj.value = value
    return OK
