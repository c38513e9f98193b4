"""`kernel.run(x, y, z, stream, ...)` again and again: in machine code where it fits, with the same results
everywhere."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.runtime.launch.native.machine import machine

if machine() is None:
    pytest.skip("there is no native launcher here", allow_module_level=True)


@tilework.jit
def scaled(x_ptr, out_ptr, n, scale, add, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) * scale
    if add:
        x += tl.program_id(1) + 1
    tl.store(out_ptr + i, x, mask=i < n)


@tilework.jit
def refuses(x_ptr, n):
    tl.device_assert(n > 0, "n is not positive")
    tl.store(x_ptr, n)


class Counted:
    """A kernel's `run`, and how often its launcher was called."""

    def __init__(self, kernel: Any) -> None:
        kernel._init_handles()
        self.kernel, self.slow = kernel, 0
        launcher = kernel.launcher
        self.start = launcher.start
        launcher.start = self.counting
        self.run = kernel.run

    def counting(self, *args: Any) -> None:
        self.slow += 1
        self.start(*args)

    def __call__(self, grid: tuple[int, int, int], *args: Any, enter: Any = None, leave: Any = None) -> None:
        self.run(*grid, 0, self.kernel.function, self.kernel.packed_metadata, None, enter, leave, *args)


def made() -> tuple[Counted, Any, Any]:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    scaled.device_caches.clear()  # what one test has described is none of another's business
    return Counted(scaled.warmup(x, out, 100, 2.0, True, BLOCK=32, grid=(1,))), x, out


def test_only_the_first_launch_takes_the_python_path() -> None:
    run, x, out = made()
    for scale, n, grid in ((2.0, 100, (4, 1, 1)), (3.0, 70, (4, 1, 1)), (4.0, 33, (2, 1, 1)), (5.0, 100, (4, 1, 1))):
        out[:] = -1
        run(grid, x, out, n, scale, True, 32)
        expected = np.where(np.arange(100) < n, x * scale + 1, -1)
        np.testing.assert_array_equal(out, expected.astype(np.float32))
    assert run.slow == 1


def test_other_arguments_are_described_too() -> None:
    run, x, out = made()
    wide = np.zeros(100, np.float64).view(np.float32)[:100]
    for target in (out, wide, out, wide):
        run((4, 1, 1), x, target, 100, 2.0, False, 32)
        np.testing.assert_array_equal(target, 2 * x)
    run((4, 1, 1), x, out, 2**32 + 100, 2.0, True, 32)  # an i32, which wraps around on both paths
    np.testing.assert_array_equal(out, 2 * x + 1)
    assert run.slow == 1
    run((4, 1, 1), x, out, np.int32(100), 2.0, True, 32)  # no guard for its class: the launcher packs it
    run((4, 1, 1), x, out, np.int32(100), 2.0, True, 32)
    assert run.slow == 3


def test_hooks_and_functions_of_others_take_the_python_path() -> None:
    run, x, out = made()
    run((4, 1, 1), x, out, 100, 2.0, True, 32)
    enter, seen = knobs.HookChain(), []
    run((4, 1, 1), x, out, 100, 2.0, True, 32, enter=enter)
    assert run.slow == 1  # an empty chain is none
    enter.add(seen.append)
    run((4, 1, 1), x, out, 100, 2.0, True, 32, enter=enter)
    assert run.slow == 2 and seen == [None]


def test_read_only_memory_and_wrong_counts_are_errors_as_before() -> None:
    run, x, out = made()
    for _ in range(2):
        run((4, 1, 1), x, out, 100, 2.0, True, 32)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run((4, 1, 1), x, frozen, 100, 2.0, True, 32)
    with pytest.raises(TypeError, match="scaled takes 6 arguments, constants included, and is given 4"):
        run((4, 1, 1), x, out, 100, 2.0)


def test_failed_asserts_and_the_number_of_threads() -> None:
    x = np.zeros(1, np.int32)
    run = Counted(refuses.warmup(x, 5, grid=(1,), debug=True))
    for n in (5, 7):
        run((1, 1, 1), x, n)
        assert x[0] == n
    with pytest.raises(RuntimeError, match="n is not positive"):
        run((1, 1, 1), x, -1)
    assert run.slow == 1
    with knobs.runtime.scope():
        knobs.runtime.num_threads = 1
        run((1, 1, 1), x, 9)
    assert run.slow == 2 and x[0] == 9


def test_a_grid_without_programs_and_many_grids() -> None:
    run, x, out = made()
    run((0, 1, 1), x, out, 100, 2.0, True, 32)
    assert not out.any()
    for count in range(1, 80):
        run((4, count, 1), x, out, 100, 2.0, False, 32)
    np.testing.assert_array_equal(out, 2 * x)


def test_a_compiled_kernel_with_a_grid_launches_the_same_way() -> None:
    run, x, out = made()
    launch, seen = run.kernel[(4,)], []
    for scale in (2.0, 3.0, 4.0):
        launch(x, out, 100, scale, True, 32)
        run.kernel[(4, 1, 1)](x, out, 100, scale, True, 32, stream=0)
        np.testing.assert_array_equal(out, scale * x + 1)
    assert run.slow == 1
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()["name"]))
        launch(x, out, 100, 5.0, True, 32)
    assert run.slow == 2 and seen == ["scaled"]
    with pytest.raises(TypeError, match="scaled takes 6 arguments"):
        launch(x, out)


def test_a_compiled_kernel_with_a_grid_refuses_memory_that_it_cannot_reach() -> None:
    class Elsewhere:
        is_cuda, device, dtype = True, "cuda:0", np.float32

        def data_ptr(self) -> int:
            return 16

    run, x, out = made()
    for _ in range(2):
        run.kernel[(4,)](x, out, 100, 2.0, True, 32)
        with pytest.raises(ValueError, match="cuda"):
            run.kernel[(4,)](Elsewhere(), out, 100, 2.0, True, 32)
