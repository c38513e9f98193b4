"""NVIDIA GPUs without torch, with the names of torch.cuda (`gpu/own_interface.py`), and their tensor maps."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tilework.runtime.devices.gpu import own_interface
from tilework.runtime.devices.gpu.parameters import device_address
from tilework.runtime.devices.host.pack import rounds_to_tf32
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import Cuda, library

GPUS = own_interface.Gpus(libcuda.FOUND)


class DeviceArray(own_interface.DeviceArray):
    """Memory on an NVIDIA GPU."""

    gpus = GPUS


# ---- tensor maps: the descriptions by which Hopper's copy engine (TMA) finds a tensor and the box that one copy moves
#
#     layout = {"block_size": [64, 64], "shape": [512, 256], "strides": [256, 1]}
#     bits = fill_tma_descriptor_tiled(x.data_ptr(), swizzle=3, elem_size=2, elem_type=6, **layout)
#     bytes(bits)                                      # 128 bytes, which a kernel takes by value
#
# Sizes, strides (in elements) and blocks are given outermost first, as for a `TensorDescriptor`; the driver wants them
# the other way round and in bytes. The ids of element types and swizzles are those of PTX (`tensormap.replace`):
# elem_type 0 u8, 1 u16, 2 u32, 3 s32, 4 u64, 5 s64, 6 f16, 7 f32, 8 f32.ftz, 9 f64, 10 bf16, 11 tf32, 12 tf32.ftz;
# swizzle 0 none, 1 32 bytes, 2 64, 3 128. Encoding takes the driver 7 us, so the maps of recent descriptors are kept.


SIZE, ALIGNMENT = 128, 64
DRIVER_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12)  # by the ids in PTX
FLOAT32, TFLOAT32 = 7, 11  # TMA rounds what it loads to tf32 if that is the type of the elements
L2_PROMOTION_128 = 2


class TensorMap:
    """The 128 bytes of a tensor map, at an aligned address."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(SIZE + ALIGNMENT)
        start = ctypes.addressof(self._buffer)
        self.address = start + -start % ALIGNMENT

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.address, SIZE)


def fill_tma_descriptor_tiled(
    base: int,
    swizzle: int,
    elem_size: int,
    elem_type: int,
    block_size: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    padding: int = 0,
) -> TensorMap:
    """The map of a tensor at the address `base`; with `padding` 1 elements outside of it read as NaN."""
    made = TensorMap()
    ranks = {len(block_size), len(shape), len(strides)}
    if len(ranks) != 1 or not 1 <= (rank := ranks.pop()) <= 5:
        raise ValueError(f"a tensor map has 1 to 5 dimensions: block {block_size}, shape {shape}, strides {strides}")
    if not 0 <= elem_type < len(DRIVER_TYPES):
        raise ValueError(f"a tensor map has no element type {elem_type}: 0 to {len(DRIVER_TYPES) - 1} are known")
    if strides[-1] != 1:
        raise ValueError(f"the last dimension of a tensor map is contiguous, and this one has the stride {strides[-1]}")
    dimensions = (ctypes.c_uint64 * rank)(*reversed(shape))
    steps = (ctypes.c_uint64 * rank)(*(stride * elem_size for stride in reversed(strides[:-1])))
    box = (ctypes.c_uint32 * rank)(*reversed(block_size))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    cuda = library()
    code = cuda.code(
        "cuTensorMapEncodeTiled", made.address, DRIVER_TYPES[elem_type], rank, base, dimensions, steps, box, ones,
        0, swizzle, L2_PROMOTION_128, padding,
    )  # fmt: skip
    given = f"address {base:#x}, shape {list(shape)}, strides {list(strides)}, block {list(block_size)}"
    cuda.check(code, f" (cuTensorMapEncodeTiled: {given}, {elem_size}-byte elements, swizzle {swizzle})")
    return made


def fill_tma_descriptor_im2col(
    base: int,
    swizzle: int,
    elem_size: int,
    elem_type: int,
    block_size: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    padding: int,
    pixel_box_lower_corner: Sequence[int],
    pixel_box_upper_corner: Sequence[int],
    element_strides: Sequence[int] | None = None,
) -> TensorMap:
    """The map of a tensor of images, ``[batch, ..., channel]``, whose copies are (pixels, channels): `block_size`.

    The corners are offsets to the first and the last pixel of a box, without batch and channel.
    """
    made, rank = TensorMap(), len(shape)
    corners = (pixel_box_lower_corner, pixel_box_upper_corner)
    if not 3 <= rank <= 5 or len(strides) != rank or len(block_size) != 2 or any(len(c) != rank - 2 for c in corners):
        raise ValueError(
            f"a map of images has 3 to 5 dimensions, corners of two less, and a block of pixels and channels: shape"
            f" {shape}, strides {strides}, corners {corners}, block {block_size}"
        )
    dimensions = (ctypes.c_uint64 * rank)(*reversed(shape))
    steps = (ctypes.c_uint64 * rank)(*(stride * elem_size for stride in reversed(strides[:-1])))
    lower, upper = ((ctypes.c_int * (rank - 2))(*reversed(corner)) for corner in corners)
    jumps = (ctypes.c_uint32 * rank)(*reversed(element_strides or [1] * rank))
    pixels, channels = block_size
    cuda = library()
    code = cuda.code(
        "cuTensorMapEncodeIm2col", made.address, DRIVER_TYPES[elem_type], rank, base, dimensions, steps, lower, upper,
        channels, pixels, jumps, 0, swizzle, L2_PROMOTION_128, padding,
    )  # fmt: skip
    cuda.check(code, f" (cuTensorMapEncodeIm2col: shape {list(shape)}, block {list(block_size)}, corners {corners})")
    return made


def map_of_descriptor(descriptor: Any, meta: Mapping[str, Any]) -> bytes:
    """The map of a host `TensorDescriptor`; `meta` is what the compiler chose: swizzle, elem_size, elem_type,
    block_size.
    """
    base = device_address(descriptor.base)
    padding = int(getattr(descriptor, "padding", "zero") == "nan")
    if meta.get("fp4_padded"):
        raise ValueError("tensor maps that spread out 4-bit elements are for GPUs of compute capability 10.0 and up")
    rounds = meta["elem_type"] == FLOAT32 and rounds_to_tf32(descriptor)
    element = TFLOAT32 if rounds else meta["elem_type"]
    facts = (meta["swizzle"], meta["elem_size"], element, tuple(meta["block_size"]))
    return encoded(library(), base, *facts, tuple(descriptor.shape), tuple(descriptor.strides), padding)


@lru_cache(1024)
def encoded(
    cuda: Cuda, base: int, swizzle: int, elem_size: int, elem_type: int, block: tuple[int, ...], shape: tuple[int, ...],
    strides: tuple[int, ...], padding: int,
) -> bytes:  # fmt: skip
    """The bytes of a map; the library takes part only so that each has its own."""
    return bytes(fill_tma_descriptor_tiled(base, swizzle, elem_size, elem_type, block, shape, strides, padding))
