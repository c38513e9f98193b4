"""Launches whose arguments overlap run code that keeps program order, however they are launched; others run the fast
code."""

import threading
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.test_native_launch import Counted, native  # noqa: F401  # the fixture is used by all tests here
from tilework.compiler import ASTSource, compile
from tilework.runtime.devices.host.pack import EVERYTHING, NOTHING, overlap_check, reach
from tilework.runtime.launch.python.wrappers import reinterpret
from tilework.tools.tensor_descriptor import TensorDescriptor

N = 64


def shift(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + i + 1, tl.load(a + i))


shift_kernel = tilework.jit(shift)


def arrays(first: int, second: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (all memory, two views, what the memory holds after a launch); the views are apart if `second` is None."""
    whole = np.arange(4 * N, dtype=np.int32)
    a, b = whole[first : first + N + 1], whole[2 * N :] if second is None else whole[second : second + N + 1]
    wanted = whole.copy()
    start = 2 * N if second is None else second
    wanted[start + 1 : start + 1 + N] = whole[first : first + N]
    return whole, a, b, wanted


OFFSETS: tuple[tuple[int, int | None], ...] = ((0, 0), (0, None), (0, 1), (5, 0), (0, N), (0, None), (0, 0), (N + 1, 0))


def test_native_entries_choose_by_the_memory() -> None:
    """The Python path is taken once for arguments that overlap, and once for others."""
    k = Counted(shift)
    for _ in range(3):
        for offsets in OFFSETS:
            whole, a, b, wanted = arrays(*offsets)
            k[(1,)](a, b, N)
            np.testing.assert_array_equal(whole, wanted, err_msg=str(offsets))
    aligned = {(a.ctypes.data % 16 == 0, b.ctypes.data % 16 == 0) for _, a, b, _ in (arrays(*p) for p in OFFSETS)}
    assert k.slow <= 2 * len(aligned)


def test_compiled_kernels_choose_too() -> None:
    source = ASTSource(shift_kernel, {"a": "*i32", "b": "*i32", "N": "constexpr"}, {"N": N})
    kernel = compile(source)
    assert kernel.metadata.interface["apart"] == [[0, 1]]
    for offsets in OFFSETS * 2:
        for launch in (lambda a, b: kernel[(1, 1, 1)](a, b, N), lambda a, b: run(kernel, a, b)):
            whole, a, b, wanted = arrays(*offsets)
            launch(a, b)
            np.testing.assert_array_equal(whole, wanted, err_msg=str(offsets))


def run(kernel: Any, *args: Any) -> None:
    kernel.run(1, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, *args, N)


def test_addresses_may_be_anywhere() -> None:
    """Pass addresses of arrays whose sizes the kernel does not know."""
    source = ASTSource(shift_kernel, {"a": "*i32", "b": "*i32", "N": "constexpr"}, {"N": N})
    kernel = compile(source)
    whole, a, b, wanted = arrays(0, 1)
    run(kernel, a.ctypes.data, b.ctypes.data)
    np.testing.assert_array_equal(whole, wanted)


def test_bound_launches_and_threads() -> None:
    whole, a, b, wanted = arrays(0, 1)
    launch = shift_kernel.bind(a, b, N, grid=(1,))
    launch()
    np.testing.assert_array_equal(whole, wanted)
    errors: list[BaseException] = []

    def many(number: int) -> None:
        try:
            for offsets in OFFSETS[number:] + OFFSETS[:number]:
                whole, a, b, wanted = arrays(*offsets)
                launch(a=a, b=b)
                np.testing.assert_array_equal(whole, wanted)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=many, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


@tilework.jit
def shift_both(both, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(both[1] + i + 1, tl.load(both[0] + i))
    tl.store(out, 1)


@tilework.jit
def shift_described(source, b, N: tl.constexpr):
    tl.store(b + tl.arange(0, N) + 1, source.load([0]))


def test_arguments_in_tuples_and_descriptors() -> None:
    for offsets in OFFSETS * 2:
        whole, a, b, wanted = arrays(*offsets)
        shift_both[(1,)]((a, b), np.zeros(1, np.int32), N)
        np.testing.assert_array_equal(whole, wanted, err_msg=str(offsets))
        whole, a, b, wanted = arrays(*offsets)
        if a.ctypes.data % 16:  # no descriptor begins there
            continue
        shift_described[(1,)](TensorDescriptor(a, [N], [1], [N]), b, N)
        np.testing.assert_array_equal(whole, wanted, err_msg=str(offsets))


def test_another_dtype_of_the_same_memory() -> None:
    whole, a, b, wanted = arrays(0, 1)
    shift_kernel[(1,)](a.view(np.uint32), b, N)
    np.testing.assert_array_equal(whole, wanted)


def test_a_kernel_that_came_as_code_refuses_arguments_that_overlap(tmp_path) -> None:
    source = ASTSource(shift_kernel, {"a": "*i32", "b": "*i32", "N": "constexpr"}, {"N": N})
    made = compile(source)
    for stage in ("ttir", "ttcir", "llir"):
        path = tmp_path / f"shift.{stage}"
        path.write_text(made.asm[stage])
        kernel = compile(str(path))
        whole, a, b, wanted = arrays(0, None)
        kernel[(1, 1, 1)](a, b)
        np.testing.assert_array_equal(whole, wanted)
        whole, a, b, wanted = arrays(0, 1)
        if stage == "ttir":
            kernel[(1, 1, 1)](a, b)
            np.testing.assert_array_equal(whole, wanted)
            continue
        with pytest.raises(ValueError, match=f"arguments of shift overlap, and it came as {stage}"):
            kernel[(1, 1, 1)](a, b)


def test_the_option_keeps_the_order() -> None:
    whole, a, b, wanted = arrays(0, 1)
    kernel = shift_kernel[(1,)](a, b, N, may_alias=True)
    np.testing.assert_array_equal(whole, wanted)
    assert kernel.metadata.interface["apart"] == []


def test_only_pairs_that_were_reordered_are_compared() -> None:
    """Accesses ordered by a loop or a branch need no check."""

    @tilework.jit
    def summed(a, b, c, n, N: tl.constexpr):
        total = tl.zeros((N,), tl.int32)
        for k in range(n):
            total += tl.load(a + k * N + tl.arange(0, N)) * tl.load(b + tl.arange(0, N))
        tl.store(c + tl.arange(0, N), total)

    x = np.ones(3 * N, np.int32)
    assert summed[(1,)](x, x, x, 3, N).metadata.interface["apart"] == []


class Pointer:
    """An object with an address, and perhaps a size."""

    def __init__(self, address: int, **facts: Any) -> None:
        self.address = address
        vars(self).update(facts)

    def data_ptr(self) -> int:
        return self.address


class Storage(Pointer):
    def nbytes(self) -> int:
        return self.size  # pyright: ignore[reportAttributeAccessIssue]


class Stored(Pointer):
    def untyped_storage(self) -> Any:
        return Storage(0x1000, size=0x100)


def test_reach_of_arguments() -> None:
    whole = np.zeros((4, 8), np.float32)
    start = whole.ctypes.data
    assert reach(None) == NOTHING
    assert reach(0x1234) == EVERYTHING
    assert reach(whole) == (start, start + 128)
    assert reach(whole[1:3]) == (start + 32, start + 96)
    assert reach(whole[:, 2]) == (start + 8, start + 3 * 32 + 12)
    assert reach(whole[::-1, ::-2]) == (start + 4, start + 128)
    assert reach(np.broadcast_to(whole[0], (9, 8))) == (start, start + 32)
    assert reach(np.array(2.5)[()].reshape(())) != NOTHING
    assert reach(Pointer(0x10)) == EVERYTHING
    assert reach(Pointer(0x10, nbytes=8)) == (0x10, 0x18)
    assert reach(Stored(0x1010)) == (0x1000, 0x1100)
    assert reach(reinterpret(whole[1:], tl.int32)) == (start + 32, start + 128)


def test_overlaps_of_pairs() -> None:
    x = np.zeros(8, np.int8)
    check = overlap_check([(0, 1), (1, 2)], ["args[0]", "args[1]", "args[2]"])
    assert check is not None
    assert check((x[:4], x[3:], x[:0])) and check((x[:2], x[2:4], x[3:])) and not check((x[:4], x[4:], x[:4]))
    assert overlap_check([(0, 1)], ["args[0]", None]) is None


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    k = Counted(shift)
    for _ in range(3):
        for offsets in OFFSETS:
            whole, _, _, wanted = arrays(*offsets)
            memory = torch.from_numpy(whole)
            second = 2 * N if offsets[1] is None else offsets[1]
            k[(1,)](memory[offsets[0] :], memory[second:], N)
            np.testing.assert_array_equal(whole, wanted, err_msg=str(offsets))
        x, out = torch.arange(N + 1, dtype=torch.int32), torch.zeros(N + 1, dtype=torch.int32)
        k[(1,)](x, out, N)
        assert torch.equal(out[1:], x[:N])
    assert k.slow <= 8
