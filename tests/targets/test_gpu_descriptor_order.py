"""Descriptors and the memory behind them, in order: which descriptor is which, and what a load sees of the stores
before it.

On sm_90 copies by TMA, on sm_80 the same kernels with pointers. The emulator delays what TMA writes until it is waited
for, and reports accesses that no barrier, wait or proxy fence orders.
"""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.device.descriptor_kernels import CASES, N
from tests.targets.gpu_descriptors import Block, compiled, generated, run

ARCHS = pytest.mark.parametrize("arch", [90, 80])


@pytest.mark.parametrize(("name", "arch"), [(name, arch) for name in CASES for arch in (90, 80)])
def test_case(name: str, arch: int) -> None:
    case, programs = CASES[name], 2
    if arch < 90 and case.needs_barrier_without_tma:
        pytest.skip("without TMA what another thread stored needs a tl.debug_barrier, as with pointers")
    x, y = case.arrays(programs, np.random.default_rng(3))
    wanted = case.wanted(x, y)
    run(case.kernel, {"x": x, "y": y}, case.constants, grid=programs, arch=arch, warps=2)
    np.testing.assert_array_equal(x, wanted[0])
    np.testing.assert_array_equal(y, wanted[1])


@tilework.jit
def kept_from_host(x, first, y, n, N: tl.constexpr):
    """A host descriptor, until one is made."""
    saved = first
    for i in range(n):
        to = tl.make_tensor_descriptor(y + i * 8 * N, [8, N], [N, 1], [8, N])
        to.store([0, 0], saved.load([0, 0]))
        made = tl.make_tensor_descriptor(x + i * 8 * N, [8, N], [N, 1], [8, N])
        if i == 1:
            saved = made


@ARCHS
def test_kept_from_host(arch: int) -> None:
    x, first, y = generated((32, N), np.float32), generated((8, N), np.float32), np.zeros((32, N), np.float32)
    run(kept_from_host, {"x": x, "first": Block(first, (8, N)), "y": y, "n": 4}, {"N": N}, arch=arch, warps=2)
    np.testing.assert_array_equal(y, np.concatenate([first, first, x[8:16], x[8:16]]))


@tilework.jit
def handed_over(x, flag, N: tl.constexpr, PLAINLY: tl.constexpr, TMA: tl.constexpr):
    """Programs wait for the one before them, and go on from what it has stored."""
    program = tl.program_id(0)
    d = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    while tl.atomic_add(flag, 0, sem="acquire") != program:
        pass
    value = d.load([0, 0]) + 1
    if PLAINLY:
        tl.store(x + cells, value)
    else:
        d.store([0, 0], value)
    if PLAINLY or not TMA:
        tl.debug_barrier()
    tl.atomic_xchg(flag, program + 1, sem="release")


@ARCHS
@pytest.mark.parametrize("plainly", [False, True])
def test_programs_hand_over(arch: int, plainly: bool) -> None:
    x, flag = generated((8, N), np.float32), np.zeros(1, np.int32)
    wanted = x + 3
    constants = {"N": N, "PLAINLY": plainly, "TMA": arch == 90}
    run(handed_over, {"x": x, "flag": flag}, constants, grid=3, arch=arch, warps=2)
    np.testing.assert_array_equal(x, wanted)


@tilework.jit
def two_arguments(d, e, x, y, N: tl.constexpr):
    """Arguments that are the same memory: a barrier orders what is done through the one and the other."""
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    d.store([0, 0], d.load([0, 0]) + 1)
    tl.debug_barrier()
    tl.store(y + cells, e.load([0, 0]) + tl.load(x + cells))


@ARCHS
def test_barrier_orders_other_arguments(arch: int) -> None:
    x, y = generated((8, N), np.float32), np.zeros((8, N), np.float32)
    wanted = 2 * (x + 1)
    run(two_arguments, {"d": Block(x, (8, N)), "e": Block(x, (8, N)), "x": x, "y": y}, {"N": N}, arch=arch)
    np.testing.assert_array_equal(y, wanted)


@tilework.jit(noinline=True)
def copy_rows(source, target, N: tl.constexpr):
    """A function with copies of its own."""
    a = tl.make_tensor_descriptor(source, [8, N], [N, 1], [8, N])
    b = tl.make_tensor_descriptor(target, [8, N], [N, 1], [8, N])
    b.store([0, 0], a.load([0, 0]))


@tilework.jit
def stored_twice(x, y, z, N: tl.constexpr):
    """Two stores by threads, each read by TMA, in a kernel that calls a function with copies."""
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    dx = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    dy = tl.make_tensor_descriptor(y, [8, N], [N, 1], [8, N])
    tl.store(x + cells, cells.to(tl.float32))
    first = dx.load([0, 0])
    tl.store(y + cells, first + 1)
    second = dy.load([0, 0])
    tl.store(z + cells, first + second)
    copy_rows(z, z + 8 * N, N)


def test_copies_of_a_callee_do_not_remove_fences_of_the_caller() -> None:
    x, y, z = (np.zeros((8, N), np.float32) for _ in range(3))
    z = np.concatenate([z, z])
    run(stored_twice, {"x": x, "y": y, "z": z}, {"N": N}, arch=90, warps=2)
    wanted = np.arange(8 * N, dtype=np.float32).reshape(8, N)
    np.testing.assert_array_equal(z, np.concatenate([2 * wanted + 1] * 2))


@tilework.jit
def tiles(a, b, c, bias, n, K, M: tl.constexpr, BY_POINTER: tl.constexpr):
    """A persistent matmul: loads by TMA, and a store at the end of each tile."""
    for tile in range(tl.program_id(0), n, 2):
        acc = tl.zeros((M, M), tl.float32)
        for k in range(0, K, 32):
            acc = tl.dot(a.load([tile * M, k]), b.load([k, 0]), acc)
        if BY_POINTER:
            cells = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
            tl.store(bias + tile * M * M + cells, acc)
        else:
            c.store([tile * M, 0], acc)


@pytest.mark.parametrize(("by_pointer", "fences"), [(False, 0), (True, 1)])
def test_persistent_matmul_waits_for_nothing(by_pointer: bool, fences: int) -> None:
    """Stores through other parameters cost a persistent kernel no wait, and those of threads one fence for each
    tile."""
    blocks = {"a": "tensordesc<fp16[64, 32]>", "b": "tensordesc<fp16[32, 64]>", "c": "tensordesc<fp32[64, 64]>"}
    types = {**blocks, "bias": "*fp32", "n": "i32", "K": "i32"}
    text = compiled(tiles, types, {"M": 64, "BY_POINTER": by_pointer})
    assert text.count("fence.proxy.async.global") == fences
    assert "cp.async.bulk.wait_group 0" not in text
