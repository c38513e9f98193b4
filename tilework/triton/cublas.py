"""Matrix multiplication by cuBLAS, for comparison: `CublasLt(workspace).matmul(a, b, c)` is ``c = a @ b.T``.

The library is loaded with ctypes when the first `CublasLt` is made: one that the process has already, one of NVIDIA's
wheels, or one that the system finds. A RuntimeError reports that there is none.

cuBLAS stores matrices by columns; a row-major matrix is a column-major one transposed. So
``C[m, n] = A[m, k] B[n, k]^T`` by rows is ``C^T = B A^T`` by columns: the first operand is B, transposed, the second A.

Matmuls of blocks with scales (`block_scaled_matmul_mxfp8`, `block_scaled_matmul_nvfp4`) need tensor cores of
compute capability 10.

Matmuls of fp8 use fast accumulation, as Triton's `CublasLt` and kernels do: tensor cores accumulate with fewer bits
than f32 has, and without it cuBLAS adds partial sums in f32.
"""

import ctypes
import ctypes.util
import glob
import math
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tilework.runtime.devices.active_driver import driver

FP32, FP16, BF16, FP8E4M3, FP4E2M1 = 0, 2, 14, 28, 33  # cudaDataType_t
DATA_TYPES = {"float32": FP32, "float16": FP16, "bfloat16": BF16, "float8_e4m3fn": FP8E4M3}
COMPUTE_FP32 = 68  # cublasComputeType_t
TRANSPOSE_A, TRANSPOSE_B, FAST_ACCUMULATION = 3, 4, 25  # cublasLtMatmulDescAttributes_t
SCALE_POINTERS, SCALE_MODES = (17, 18), (31, 32)  # of A and B
MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t
NO, YES = 0, 1  # cublasOperation_t
NAMES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so")
RESULT_BYTES = 96  # of cublasLtMatmulHeuristicResult_t; the algorithm is its first 64
HANDLE = ctypes.c_void_p
SCALED_CAPABILITY = (10, 0)
SCALE_TILE = (128, 4)  # rows and blocks along K; scales are stored by whole tiles


class Scaled(NamedTuple):
    """A format of operands with a scale for each block of elements along K."""

    name: str
    dtype: str  # of the tensors that hold the elements
    type: int
    per_byte: int
    block: int
    mode: int  # cublasLtMatmulMatrixScale_t


MXFP8 = Scaled("mxfp8", "float8_e4m3fn", FP8E4M3, 1, 32, 2)
NVFP4 = Scaled("nvfp4", "uint8", FP4E2M1, 2, 16, 1)


def candidates() -> Iterator[str]:
    """Yield the possible paths of the library: NVIDIA's wheels, then the search path of the system."""
    for folder in sys.path:
        for pattern in ("nvidia/cu*/lib/libcublasLt.so.*", "nvidia/cublas/lib/libcublasLt.so.*"):
            yield from sorted(glob.glob(os.path.join(folder, pattern)), reverse=True)
    yield from NAMES
    if (found := ctypes.util.find_library("cublasLt")) is not None:
        yield found


@cache
def library() -> Any:
    """cuBLAS; a RuntimeError where it is not installed."""
    for path in candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise RuntimeError("cublasLt is not on this machine: install nvidia-cublas (pip) or a CUDA toolkit")


def check(name: str, status: int) -> None:
    if status != 0:
        raise RuntimeError(f"{name} failed with the cuBLAS status {status}")


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library; its status must be success."""
    check(name, getattr(library(), name)(*arguments))


HANDLES: "dict[int, CublasLt]" = {}  # by device
WORKSPACE = 32 << 20  # bytes


def current_handle() -> "CublasLt | None":
    """Return cuBLAS for the current device (`triton.testing.cublas` of Triton 3.8), created at the first call;
    None on devices that are not NVIDIA's."""
    if driver.active.get_current_target().backend != "cuda":
        return None
    device = driver.active.get_current_device()
    if device not in HANDLES:
        import torch  # lazily: the workspace is a tensor

        HANDLES[device] = CublasLt(torch.empty(WORKSPACE, dtype=torch.uint8, device=f"cuda:{device}"))
    return HANDLES[device]


class CublasLt:
    """A handle, with memory on the GPU as workspace of the multiplications."""

    def __init__(self, workspace: Any) -> None:
        if getattr(workspace, "device", None) is None or workspace.device.type != "cuda":
            raise RuntimeError("the workspace of CublasLt is a tensor on a CUDA device")
        self.workspace = workspace
        self.bytes = workspace.numel() * workspace.element_size()
        self.handle = HANDLE()
        call("cublasLtCreate", ctypes.byref(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None) and library is not None:  # None while Python ends
            library().cublasLtDestroy(self.handle)

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """``c = a @ b.T``."""
        self.multiply(a, b, c, c, 1.0, 0.0)

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """``d = alpha * a @ b.T + beta * c``."""
        self.multiply(a, b, c, d, alpha, beta)

    def block_scaled_matmul_mxfp8(self, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any) -> None:
        """``c = a @ b.T`` of fp8 with a scale (e8m0, in cuBLAS's order) for each 32 elements along K."""
        self.multiply_scaled(MXFP8, a, b, c, scale_a, scale_b)

    def block_scaled_matmul_nvfp4(self, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any) -> None:
        """``c = a @ b.T`` of fp4, two in a byte, with a scale (fp8, in cuBLAS's order) for each 16 elements along K."""
        self.multiply_scaled(NVFP4, a, b, c, scale_a, scale_b)

    def multiply_scaled(self, kind: Scaled, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any) -> None:
        check_scaled(kind, a, b, c, scale_a, scale_b)
        rows, columns = a.shape[0], b.shape[0]
        size = rows, columns, a.shape[1] * kind.per_byte
        self.product((a, b, c, c), (kind.type, kind.type), size, 1.0, 0.0, (kind, scale_a, scale_b))

    def multiply(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        check_operands(a, b, c, d)
        operand = DATA_TYPES[dtype_name(a)]
        self.product((a, b, c, d), (operand, operand), (a.shape[0], b.shape[0], a.shape[1]), alpha, beta)

    def product(
        self,
        tensors: tuple[Any, Any, Any, Any],
        operands: tuple[int, int],
        size: tuple[int, int, int],
        alpha: float,
        beta: float,
        scales: tuple[Scaled, Any, Any] | None = None,
    ) -> None:
        """Multiply matrices A and B of the types `operands` and the sizes M, N and K: ``d = alpha * a @ b.T + beta *
        c``."""
        (a, b, c, d), (m, n, k) = tensors, size
        types = [operands[1], operands[0], *(DATA_TYPES[dtype_name(tensor)] for tensor in (c, d))]
        if types[2] == FP8E4M3:
            types[2] = FP16  # what is added to an fp8 result is wider; here it is nothing
        operation = HANDLE()
        call("cublasLtMatmulDescCreate", ctypes.byref(operation), COMPUTE_FP32, FP32)
        layouts = [HANDLE() for _ in types]
        preference = HANDLE()
        try:
            self.set(operation, TRANSPOSE_A, YES)
            self.set(operation, TRANSPOSE_B, NO)
            if FP8E4M3 in types[:2]:
                self.set(operation, FAST_ACCUMULATION, YES, ctypes.c_int8)
            if scales is not None:
                kind, *held = scales
                for pointer, mode, scale in zip(SCALE_POINTERS, SCALE_MODES, reversed(held), strict=True):
                    self.set(operation, mode, kind.mode)
                    self.set(operation, pointer, scale.data_ptr(), ctypes.c_void_p)
            for layout, kind, (rows, columns) in zip(layouts, types, [(k, n), (k, m), (n, m), (n, m)], strict=True):
                sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
                call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), kind, *sizes)
            call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
            limit = ctypes.byref(ctypes.c_uint64(self.bytes)), ctypes.c_size_t(8)
            call("cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE, *limit)
            self.run(operation, layouts, preference, (b, a, c, d), alpha, beta)
        finally:
            for layout in layouts:
                library().cublasLtMatrixLayoutDestroy(layout)
            library().cublasLtMatmulPreferenceDestroy(preference)
            library().cublasLtMatmulDescDestroy(operation)

    @staticmethod
    def set(operation: Any, attribute: int, value: int, type: Any = ctypes.c_int32) -> None:
        """Set an attribute of a matmul descriptor."""
        held, size = type(value), ctypes.c_size_t(ctypes.sizeof(type))
        call("cublasLtMatmulDescSetAttribute", operation, attribute, ctypes.byref(held), size)

    def run(
        self, operation: Any, layouts: list[Any], preference: Any, tensors: tuple[Any, ...], alpha: float, beta: float
    ) -> None:
        """Run the best algorithm that cuBLAS suggests on the current stream."""
        result, count = (ctypes.c_uint8 * RESULT_BYTES)(), ctypes.c_int(0)
        found = ctypes.byref(result), ctypes.byref(count)
        call("cublasLtMatmulAlgoGetHeuristic", self.handle, operation, *layouts, preference, 1, *found)
        if count.value == 0:
            raise RuntimeError("cuBLAS has no algorithm for these operands")
        b, a, c, d = (HANDLE(tensor.data_ptr()) for tensor in tensors)
        if dtype_name(tensors[2]).startswith("float8"):
            c = HANDLE()  # its layout is not that of the result, so it may not be the same memory
        factor, addend = ctypes.byref(ctypes.c_float(alpha)), ctypes.byref(ctypes.c_float(beta))
        operands = factor, b, layouts[0], a, layouts[1], addend, c, layouts[2], d, layouts[3]
        space = HANDLE(self.workspace.data_ptr()), ctypes.c_size_t(self.bytes)
        stream = HANDLE(current_stream(self.workspace))
        call("cublasLtMatmul", self.handle, operation, *operands, ctypes.byref(result), *space, stream)


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rsplit(".", 1)[-1]


def check_operands(a: Any, b: Any, c: Any, d: Any) -> None:
    """Raise RuntimeError unless the operands are contiguous matrices on a GPU, A and B have one type, and the shapes
    fit."""
    for name, tensor in (("A", a), ("B", b), ("C", c), ("D", d)):
        if tensor.device.type != "cuda":
            raise RuntimeError(f"{name} is not on a CUDA device")
        if tensor.ndim != 2 or not tensor.is_contiguous():
            raise RuntimeError(f"{name} must be a contiguous matrix, and has shape {tuple(tensor.shape)}")
        if dtype_name(tensor) not in DATA_TYPES:
            raise RuntimeError(f"{name} has dtype {tensor.dtype}; cuBLAS multiplies {', '.join(DATA_TYPES)}")
    if a.dtype != b.dtype or c.dtype != d.dtype:
        raise RuntimeError("A and B have one dtype, and so have C and D")
    if c is not d and dtype_name(d).startswith("float8"):
        raise RuntimeError("gemm cannot add to an fp8 result")
    if a.shape[1] != b.shape[1]:
        raise RuntimeError(f"A is {tuple(a.shape)} and B {tuple(b.shape)}: B is given transposed, both end with K")
    if tuple(c.shape) != (a.shape[0], b.shape[0]) or c.shape != d.shape:
        raise RuntimeError(f"C is {tuple(c.shape)}, and A @ B.T is {(a.shape[0], b.shape[0])}")


def check_scaled(kind: Scaled, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any) -> None:
    """Raise RuntimeError unless the GPU multiplies blocks with scales, and the operands and their scales fit."""
    name = f"block_scaled_matmul_{kind.name}"
    for letter, tensor in (("A", a), ("B", b), ("C", c), ("the scale of A", scale_a), ("the scale of B", scale_b)):
        if tensor.device.type != "cuda":
            raise RuntimeError(f"{name}: {letter} is not on a CUDA device")
        if not tensor.is_contiguous():
            raise RuntimeError(f"{name}: {letter} must be contiguous")
    if (found := capability(a)) < SCALED_CAPABILITY:
        raise RuntimeError(f"{name} needs a GPU of compute capability 10.0 or more; this one has {found[0]}.{found[1]}")
    for letter, tensor in (("A", a), ("B", b)):
        if tensor.ndim != 2 or dtype_name(tensor) != kind.dtype:
            raise RuntimeError(
                f"{name}: {letter} is a matrix of {kind.dtype}, not {tensor.dtype} {tuple(tensor.shape)}"
            )
    if a.shape[1] != b.shape[1] or tuple(c.shape) != (a.shape[0], b.shape[0]):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (a, b, c))
        raise RuntimeError(f"{name}: C is A @ B.T with B given transposed, and the shapes of A, B and C are {shapes}")
    for letter, tensor, scale in (("A", a, scale_a), ("B", b, scale_b)):
        rows, blocks = tensor.shape[0], -(-tensor.shape[1] * kind.per_byte // kind.block)
        least = math.prod(-(-size // tile) * tile for size, tile in zip((rows, blocks), SCALE_TILE, strict=True))
        if (given := scale.numel() * scale.element_size()) < least:
            raise RuntimeError(
                f"{name}: {letter} has {rows} rows of {blocks} blocks, for which cuBLAS reads {least} scales in tiles"
                f" of {SCALE_TILE[0]} x {SCALE_TILE[1]}; there are {given}"
            )
    if dtype_name(c) not in DATA_TYPES or dtype_name(c).startswith("float8"):
        raise RuntimeError(f"{name}: C is float16, bfloat16 or float32, not {c.dtype}")


def capability(tensor: Any) -> tuple[int, int]:
    """Return the compute capability of the device of a tensor."""
    return sys.modules["torch"].cuda.get_device_capability(tensor.device)


def current_stream(tensor: Any) -> int:
    """The stream that torch launches on, for the device of a tensor."""
    return sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream
