"""Native launches of kernels whose loads became copies: hidden maps follow arguments and grid, or the plain kernel
runs."""

import pickle

import numpy as np

import tilework
import tilework.language as tl
from tests.runtime.test_cuda_native_launch import Counted, Interface, array, as_python_does, blocks
from tests.runtime.test_cuda_native_launch import cuda as cuda
from tests.runtime.test_pickling import restore, strip
from tilework.compiler import ASTSource, compile
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.guarded_launch import addresses_come_first
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.launcher import NullAllocator, set_allocator
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import libcuda


def test_hidden_maps_follow_the_arguments_and_the_grid(cuda: EmulatedCuda) -> None:
    """Native launches get the maps of their own numbers, or launch the kernel without, once that was launched; the
    kernel reports which."""
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


@tilework.jit
def square(x, out):
    r = tl.arange(0, 16)
    tile = tl.load(x + r[:, None] * 16 + r[None, :])
    tl.store(out + r[:, None] * 16 + r[None, :], tl.dot(tile, tile))


def test_hidden_maps_have_the_addresses_of_the_launch(cuda: EmulatedCuda) -> None:
    """Aligned arrays are copied through hidden maps of the launch's addresses; other arrays are loaded."""
    assert addresses_come_first(libcuda.library(), 0, 2, 6)
    kernel = tilework.jit(square.fn, do_not_specialize_on_alignment=["x"])
    k, out, x = Counted(kernel, auto_tma=True), array(256), DeviceArray.of(np.zeros(512, "f2"))
    for number, first in enumerate((0, 8, 16, 64, 128, 24, 0)):  # bytes
        args = Interface(x, "<f2", first), out
        as_python_does(cuda, k, *args, slow=int(number < 2))
        assert k(*args).has_copies == (first % 16 == 0)


def test_a_kernel_without_its_function_is_compiled_without_hidden_maps(cuda: EmulatedCuda) -> None:
    """Torch's compile workers send it with ``fn.fn = None``: a launch that does not justify the maps compiles it
    again, from its file."""
    source = ASTSource(square, {"x": "*fp16", "out": "*fp32"}, {})
    made = compile(source, GPUTarget("cuda", 90, 32), {"auto_tma": True})
    old = strip(square)
    try:
        sent = pickle.loads(pickle.dumps(made))
    finally:
        restore(square, old)
    assert sent.src.fn.fn is None and sent.metadata.rectangles
    values = np.arange(512).astype("f2") % 7
    x = DeviceArray.of(values)
    for first in (0, 1):  # element; the second is not aligned
        out = array(256)
        args = Interface(x, "<f2", 2 * first), out
        sent[(1, 1, 1)](*args)
        assert sent.justified((1, 1, 1), args).has_copies == (first == 0)
        tile = values[first : first + 256].reshape(16, 16).astype("f4")
        assert (out.numpy().reshape(16, 16) == tile @ tile).all()
