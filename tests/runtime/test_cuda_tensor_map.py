"""Tensor maps of the CUDA driver, host descriptors as arguments, and what PTX declares."""

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_programs import kernel_of
from tests.runtime.emulated_cuda import emulated_cuda
from tilework.oracles.emulator.tensor_map import decode
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda import device as cuda_tensor_map
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.gpu.parameters import Parameter, packer_for, parameters_of_ptx
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.tools.tensor_descriptor import TensorDescriptor

TYPES = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz"]


@pytest.fixture
def cuda() -> Iterator[EmulatedCuda]:
    with emulated_cuda() as library:
        yield library


def fill(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "base": 3 << 40, "swizzle": 0, "elem_size": 4, "elem_type": 7, "block_size": [8, 16], "shape": [64, 32],
        "strides": [48, 1],
    }  # fmt: skip
    utils: Any = driver.active.utils
    return utils.fill_tma_descriptor_tiled(*(given | changes).values())


def test_a_map_has_what_was_requested(cuda: EmulatedCuda) -> None:
    made = fill()
    assert len(bytes(made)) == 128 and made.address % 64 == 0
    found = decode(bytes(made))
    assert (found.type, found.sizes, found.strides, found.box) == ("f32", (32, 64), (192,), (16, 8))
    assert (found.swizzle, found.fill, found.promotion) == ("none", "zero", "128B")
    assert decode(bytes(fill(padding=1))).fill == "nan"


def test_elements_are_numbered_as_in_ptx(cuda: EmulatedCuda) -> None:
    for number, name in enumerate(TYPES):
        size = {"8": 1, "16": 2, "64": 8}.get(name.partition(".")[0].lstrip("usbf"), 4)
        made = fill(elem_type=number, elem_size=size, strides=[64, 1])
        assert decode(bytes(made)).type == name


@pytest.mark.parametrize(("swizzle", "name"), [(1, "32B"), (2, "64B"), (3, "128B")])
def test_swizzles(cuda: EmulatedCuda, swizzle: int, name: str) -> None:
    assert decode(bytes(fill(swizzle=swizzle, block_size=[8, 8]))).swizzle == name


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(cuda: EmulatedCuda, rank: int) -> None:
    strides = [4 * 4 ** (rank - 1 - axis) for axis in range(rank - 1)] + [1]
    found = decode(bytes(fill(block_size=[4] * rank, shape=[4] * rank, strides=strides)))
    assert found.rank == rank and found.strides == tuple(4 * stride for stride in reversed(strides[:-1]))


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        (
            {"base": (3 << 40) + 8},
            RuntimeError,
            r"^Triton Error \[CUDA\]: invalid argument .*cuTensorMapEncodeTiled: address 0x",
        ),
        ({"block_size": [512, 16]}, RuntimeError, "invalid argument"),
        ({"block_size": [8, 64], "swizzle": 3}, RuntimeError, r"block \[8, 64\], 4-byte elements, swizzle 3"),
        ({"strides": [48, 2]}, ValueError, "the last dimension of a tensor map is contiguous"),
        ({"elem_type": 13}, ValueError, "no element type 13"),
        ({"shape": [64]}, ValueError, "1 to 5 dimensions"),
        ({"shape": [], "strides": [], "block_size": []}, ValueError, "1 to 5 dimensions"),
    ],
)
def test_impossible_maps(cuda: EmulatedCuda, changes: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        fill(**changes)


META = {"swizzle": 0, "elem_size": 2, "elem_type": 6, "block_size": [8, 16]}
SHAPE = ".param .u32 s0, .param .u32 s1, .param .u64 t0, .param .u64 t1, "


def test_a_host_descriptor_is_a_map_then_shape_and_strides(cuda: EmulatedCuda) -> None:
    a = np.arange(32 * 64, dtype=np.float16).reshape(32, 64)
    descriptor = TensorDescriptor.from_tensor(WithStrides(a), block_shape=[8, 16])
    out = DeviceArray((8, 16), np.float16)
    signature = {"desc": "tensordesc<fp16[8, 16]>", "out": "*fp16"}
    kernel = kernel_of(
        programs.tensor_copy(256, more=SHAPE), "tensor_copy", signature, tensordesc_meta=[META], num_warps=1
    )
    kernel[(1, 1, 1)](descriptor, out)
    assert (out.numpy() == a[:8, :16]).all()
    values = [int.from_bytes(value, "little") for value in cuda.launches[0].parameters[1:5]]
    assert values == [32, 64, 64, 1]


def test_maps_are_made_once(cuda: EmulatedCuda) -> None:
    descriptor = TensorDescriptor.from_tensor(WithStrides(np.zeros((32, 64), np.float16)), block_shape=[8, 16])
    before = cuda_tensor_map.encoded.cache_info().misses
    first = cuda_tensor_map.map_of_descriptor(descriptor, META)
    assert cuda_tensor_map.map_of_descriptor(descriptor, META) is first
    assert cuda_tensor_map.encoded.cache_info().misses == before + 1
    with pytest.raises(ValueError, match="4-bit elements"):
        cuda_tensor_map.map_of_descriptor(descriptor, META | {"fp4_padded": True})


def test_kernels_see_the_shape_without_the_padding_of_4_bit_elements(cuda: EmulatedCuda) -> None:
    """Only the map has twice the size that the descriptor's bytes have; `desc.shape` is the user's."""
    descriptor = TensorDescriptor.from_tensor(WithStrides(np.zeros((64, 32), np.uint8)), [16, 16])
    meta = META | {"fp4_padded": True}
    packer = packer_for("k", ["tensordesc<u8[16, 16]>"], [meta], lambda of, facts: bytes([facts["fp4_padded"]] * 128))
    data = ctypes.create_string_buffer(packer.layout.total)
    packer.pack(data, [descriptor], (0, 0))
    assert packer.kinds == ("map", "i32", "i32", "i64", "i64") and data.raw[:128] == bytes([1] * 128)
    assert struct.unpack_from("<i4xi4xqq", data, 128) == (64, 32, 32, 1)


def test_padding_with_nan(cuda: EmulatedCuda) -> None:
    descriptor = TensorDescriptor.from_tensor(WithStrides(np.zeros((32, 64), np.float16)), [8, 16], padding="nan")
    assert decode(cuda_tensor_map.map_of_descriptor(descriptor, META)).fill == "nan"


def test_rounding_to_tf32_is_a_type_of_elements(cuda: EmulatedCuda) -> None:
    base, meta = WithStrides(np.zeros((32, 64), np.float32)), META | {"elem_size": 4, "elem_type": 7}
    for rounds, type in ((False, "f32"), (True, "tf32")):
        descriptor = TensorDescriptor.from_tensor(base, [8, 16], round_f32_to_tf32=rounds)
        assert decode(cuda_tensor_map.map_of_descriptor(descriptor, meta)).type == type


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_without_a_map_a_descriptor_is_pointer_sizes_strides_flags(
    cuda: EmulatedCuda, flags: tuple[bool, bool]
) -> None:
    padding = "nan" if flags[0] else "zero"
    descriptor = TensorDescriptor.from_tensor(WithStrides(np.zeros((32, 64), np.float32)), [8, 16], padding, flags[1])
    kinds = ["u64"] * 5 + ["u8"] * 2 + ["u32"] * 2 + ["u64"] * 2
    sizes = [int(kind[1:]) // 8 for kind in kinds]
    text = programs.copy_parameters(", ".join(f".param .{kind} a{n}" for n, kind in enumerate(kinds)), sizes)
    out = DeviceArray(len(kinds), "uint64")
    out.fill(0)
    kernel_of(text, "all", {"out": "*i8", "desc": "tensordesc<fp32[8, 16]>"})[(1, 1, 1)](out, descriptor)
    assert out.numpy().tolist() == [descriptor.base.data_ptr(), 32, 64, 64, 1, *flags, 32, 64, 64, 1]


class WithStrides(DeviceArray):
    """A device array as torch describes it: strides in elements."""

    def __init__(self, array: Any) -> None:
        super().__init__(array.shape, array.dtype)
        self.copy_from(array)
        self.steps = tuple(step // array.itemsize for step in array.strides)

    def stride(self) -> tuple[int, ...]:
        return self.steps

    def element_size(self) -> int:
        return self.dtype.itemsize


def test_bfloat16_arrays(cuda: EmulatedCuda) -> None:
    x = DeviceArray.of(np.ones(8, ml_dtypes.bfloat16))
    assert (x.numpy() == 1).all() and x.nbytes == 16


# -- what PTX declares ---------------------------------------------------------------------------------------------


def test_parameters_of_ptx() -> None:
    text = """
    .visible .entry first() { ret; }   // .entry k(.param .f64 wrong)
    .visible .entry /* k( */ k(
        .param .u64 .ptr .global .align 16 k_param_0,   // a pointer (of course)
        .param .align 128 .b8 k_param_1[128],
        .param .f32 k_param_2, .param .s8 k_param_3, .param .align 2 .b8 k_param_4[2]
    ) .reqntid 128 { ret; }
    .entry k2 { ret; }
    """
    assert parameters_of_ptx(text, "first") == parameters_of_ptx(text, "k2") == ()
    expected = (Parameter(8, "u64"), Parameter(128, "b8"), Parameter(4, "f32"), Parameter(1, "s8"), Parameter(2, "b8"))
    assert parameters_of_ptx(text, "k") == expected
    assert parameters_of_ptx(text, "missing") is None
    with pytest.raises(ValueError, match="without a type"):
        parameters_of_ptx(".entry k(.param x) {}", "k")


# -- the host's answers --------------------------------------------------------------------------------------------


def test_the_host_has_every_member_of_utils() -> None:
    utils: Any = CpuDriver().utils
    utils.set_printf_fifo_size(1 << 20)
    with pytest.raises(ValueError, match="-1 bytes"):
        utils.set_printf_fifo_size(-1)
    with pytest.raises(RuntimeError, match=r"fill_tma_descriptor_tiled .*\(TMA\).* the active device is the CPU"):
        utils.fill_tma_descriptor_tiled(0)
    assert callable(utils.load_binary) and callable(utils.get_device_properties)
