"""What functions of the driver return, and what it says about that."""

OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
INVALID_DEVICE, INVALID_CONTEXT, INVALID_PTX, INVALID_HANDLE, NOT_FOUND, NOT_READY = 101, 201, 218, 400, 500, 600
ILLEGAL_ADDRESS, LAUNCH_FAILED, CAPTURE_UNSUPPORTED = 700, 719, 900
TEXTS = {
    INVALID_VALUE: "invalid argument",
    OUT_OF_MEMORY: "out of memory",
    NOT_INITIALIZED: "initialization error",
    INVALID_DEVICE: "invalid device ordinal",
    INVALID_CONTEXT: "invalid device context",
    INVALID_PTX: "a PTX JIT compilation failed",
    INVALID_HANDLE: "invalid resource handle",
    NOT_FOUND: "named symbol not found",
    NOT_READY: "device not ready",
    ILLEGAL_ADDRESS: "an illegal memory access was encountered",
    LAUNCH_FAILED: "unspecified launch failure",
    CAPTURE_UNSUPPORTED: "operation not permitted when stream is capturing",
}
