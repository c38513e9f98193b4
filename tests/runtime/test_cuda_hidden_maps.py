"""Native launches of kernels whose loads became copies: hidden maps follow arguments and grid, or the plain kernel
runs."""

import numpy as np

import tilework
import tilework.language as tl
from tests.runtime.test_cuda_native_launch import Counted, Interface, array, as_python_does, blocks
from tests.runtime.test_cuda_native_launch import cuda as cuda
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.guarded_launch import addresses_come_first
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.launcher import NullAllocator, set_allocator
from tilework.targets.nvidia import libcuda


def test_hidden_maps_follow_the_arguments_and_the_grid(cuda: EmulatedCuda) -> None:
    """Native launches get the maps of their own numbers, or launch the kernel without, once that was launched; the
    kernel tells which."""
    k = Counted(blocks, BLOCK=32, auto_tma=True)
    x, out = array(64), array(64)
    k(x, out, 64)
    for arrays in ((x, out), (out, x), (array(128), array(128))):
        for n, grid in (
            (64, (2,)),
            (48, (2,)),
            (48, (1,)),
            (64, lambda meta: (meta["n"] // 32,)),
            (48, lambda meta: (1,)),
        ):
            as_python_does(cuda, k, *arrays, n, grid=grid, slow=0)
    for number in range(40):  # more than are kept
        as_python_does(cuda, k, array(64), out, 64 - 16 * (number % 3), grid=(2,), slow=0)
    room = DeviceArray(4096, "u1")
    set_allocator(lambda size, alignment, stream: room)
    try:
        as_python_does(cuda, k, x, out, 0, slow=1)
        for n, grid in ((0, (2,)), (64, (1,)), (0, lambda meta: (1,)), (64, lambda meta: (1,)), (0, (1,))):
            as_python_does(cuda, k, x, out, n, grid=grid, slow=0)
            assert bool(k(x, out, n, grid=grid).metadata.global_scratch_size) == (n == 0)
    finally:
        set_allocator(NullAllocator())


def square(x, out):
    r = tl.arange(0, 16)
    tile = tl.load(x + r[:, None] * 16 + r[None, :])
    tl.store(out + r[:, None] * 16 + r[None, :], tl.dot(tile, tile))


def test_hidden_maps_have_the_addresses_of_the_launch(cuda: EmulatedCuda) -> None:
    """Of aligned arrays; others are loaded."""
    assert addresses_come_first(libcuda.library(), 0, 2, 6)
    kernel = tilework.jit(square, do_not_specialize_on_alignment=["x"])
    k, out, x = Counted(kernel, auto_tma=True), array(256), DeviceArray.of(np.zeros(512, "f2"))
    for number, first in enumerate((0, 8, 16, 64, 128, 24, 0)):  # bytes
        args = Interface(x, "<f2", first), out
        as_python_does(cuda, k, *args, slow=int(number < 2))
        assert k(*args).has_copies == (first % 16 == 0)
