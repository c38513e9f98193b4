"""A block view of a tensor, made on the host and passed to a kernel, where it is a `tl.tensor_descriptor`.

    a = np.zeros((64, 128), np.float16)
    desc = TensorDescriptor.from_tensor(a, block_shape=[16, 32])
    kernel[grid](desc)                  # in the kernel: desc.load([row, column]) is a 16 by 32 block

Loads outside of `shape` give zero, or NaN with ``padding="nan"``; stores outside are dropped. Strides are in elements.
The rules below are those of the hardware that copies blocks asynchronously (TMA); they hold on every target, so that a
program that runs on one runs on all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilework import knobs
from tilework.language.dtypes import count_elements, validate_block_shape
from tilework.runtime.devices.dlpack import exported, is_cuda_export
from tilework.runtime.launch.python.specialize import dtype_code
from tilework.target import MAP_ALIGNMENT, refused_stride

MAX_RANK = 5
LARGEST_SIZE = (1 << 31) - 1
PADDINGS = ("zero", "nan")


class IllegalBlockShape(AssertionError, ValueError):
    """The block shape of a descriptor breaks a rule for all blocks, such as being positive."""


@dataclass
class TensorDescriptor:
    """Describes a tensor that starts at `base` and is accessed in blocks of `block_shape`; in a kernel it is a
    `tl.tensor_descriptor`.

    Loads outside `shape` give zero, or NaN with ``padding="nan"``; stores outside are dropped. Strides are in elements.
    The last one is 1; the others (at least 0 and below 2^40 bytes) and the address are multiples of 16 bytes, as TMA
    requires. These rules apply on every target. With `round_f32_to_tf32`, loads of float32 are rounded to the nearest
    tf32, ties to even; dots in tf32 truncate operands that are not rounded.

    Example:
        from tilework.tools.tensor_descriptor import TensorDescriptor

        @tilework.jit
        def negate(blocks):
            row = tl.program_id(0) * 2
            blocks.store([row, 0], -blocks.load([row, 0]))

        x = np.ones((4, 8), np.float32)
        negate[(2,)](TensorDescriptor(x, shape=[4, 8], strides=[8, 1], block_shape=[2, 8]))
        assert (x == -1).all()
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        check_descriptor(self)

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> "TensorDescriptor":
        """The descriptor of a whole NumPy array or torch tensor.

        Example:
            from tilework.tools.tensor_descriptor import TensorDescriptor

            blocks = TensorDescriptor.from_tensor(np.zeros((64, 128), np.float16), [16, 32])
            assert blocks.shape == [64, 128] and blocks.strides == [128, 1]
        """
        sizes, strides = list(tensor.shape), strides_of(tensor)
        return TensorDescriptor(tensor, sizes, strides, list(block_shape), padding, round_f32_to_tf32)


def check_descriptor(descriptor: Any) -> None:
    """Refuse a descriptor that breaks a rule of TMA."""
    rank = len(descriptor.shape)
    assert len(descriptor.strides) == rank, f"rank mismatch: {rank} sizes but {len(descriptor.strides)} strides"
    assert len(descriptor.block_shape) == rank, (
        f"rank mismatch: {rank} sizes but a block of rank {len(descriptor.block_shape)}"
    )
    assert rank > 0, "rank must not be zero"
    assert rank <= MAX_RANK, f"rank cannot be more than {MAX_RANK}, got {rank}"
    assert address_of(descriptor.base) % MAP_ALIGNMENT == 0, f"base must be {MAP_ALIGNMENT}-byte aligned"
    check_block_shape(descriptor.block_shape)
    assert all(size > 0 for size in descriptor.shape), f"shape must be positive, got {list(descriptor.shape)}"
    assert all(size <= LARGEST_SIZE for size in descriptor.shape), (
        f"every size must fit in int32, got {list(descriptor.shape)}"
    )
    check_strides(descriptor)
    assert descriptor.padding in PADDINGS, (
        f"Illegal value for padding: {descriptor.padding!r}, use one of {', '.join(PADDINGS)}"
    )
    if descriptor.padding == "nan":
        assert is_floating(descriptor.base), "Padding option `nan` is only supported for floating point tensors"
    if getattr(descriptor, "round_f32_to_tf32", False):
        is_float32 = dtype_code(descriptor.base.dtype) == "fp32"
        assert is_float32, "round_f32_to_tf32 is only supported for float32 tensors"


def check_strides(descriptor: Any) -> None:
    """Refuse strides that TMA cannot use."""
    strides, size = descriptor.strides, itemsize_of(descriptor.base)
    assert strides[-1] == 1, f"Last dimension must be contiguous, its stride is {strides[-1]}"
    for axis, stride in enumerate(strides[:-1]):
        refusal = refused_stride(axis, stride, size)
        assert refusal is None, refusal


def check_block_shape(shape: Sequence[int]) -> None:
    """Positive sizes, and not too many elements in all; powers of two where only Triton's language is wanted."""
    try:
        (validate_block_shape if knobs.language.strict_triton else count_elements)(shape)
    except (TypeError, ValueError) as error:
        raise IllegalBlockShape(str(error)) from None


def address_of(base: Any) -> int:
    """The address of the first element."""
    if hasattr(base, "data_ptr"):
        return base.data_ptr()
    for interface in ("__array_interface__", "__cuda_array_interface__"):
        if (found := getattr(base, interface, None)) is not None:
            return found["data"][0]
    if is_cuda_export(base):
        return exported(base, 0).address
    raise AssertionError(f"base must be an array or a tensor, got {type(base).__name__}")


def itemsize_of(base: Any) -> int:
    """Bytes per element."""
    if hasattr(base, "element_size"):
        return base.element_size()
    if (size := getattr(base.dtype, "itemsize", None)) is not None:
        return size
    return max(1, base.dtype.primitive_bitwidth // 8)


def strides_of(tensor: Any) -> list[int]:
    """Strides in elements; NumPy counts bytes."""
    if hasattr(tensor, "stride"):
        return list(tensor.stride())
    return [stride // itemsize_of(tensor) for stride in tensor.strides]


def is_floating(base: Any) -> bool:
    """Return True if the elements can be NaN, also for bf16 and the fp8 types of ml_dtypes."""
    return dtype_code(base.dtype).startswith(("fp", "bf"))
