"""Running machine code on the host: arguments, grids, threads, faults, read-only arrays, loading.

The kernels here are LLVM text, so that nothing but the launch is tested.
"""

import os
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
from tilework import knobs
from tilework.compiler import IRSource, compile, lower
from tilework.errors import TritonError
from tilework.runtime.devices.host.pack import bfloat16_bits, slots_of
from tilework.runtime.launch.python.wrappers import TensorWrapper
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower.codegen import Emitter
from tilework.targets.cpu.pipeline import object_code
from tilework.targets.cpu.run import pool
from tilework.targets.cpu.run import pool as driver
from tilework.targets.cpu.run.interface import Interface, NativeKernel, load
from tilework.targets.cpu.target import HostTarget

CPU = GPUTarget("cpu", "host", 1)
FAULTY = 123456789

# counts the runs of every program in p[program], beside its number of programs; fails where it finds FAULTY
COUNT = f"""
define i32 @"count_range"(ptr %args, i64 %first, i64 %last, i32 %np0, i32 %np1, i32 %np2, ptr %arena) {{
entry:
  %p = load ptr, ptr %args
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %after, %next ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %body, label %done
body:
  %scratch = getelementptr i8, ptr %arena, i64 4095
  store i8 1, ptr %scratch
  %q = getelementptr i32, ptr %p, i64 %i
  %old = load i32, ptr %q
  %new = add i32 %old, 1
  store i32 %new, ptr %q
  %bad = icmp eq i32 %old, {FAULTY}
  br i1 %bad, label %fault, label %next
next:
  %after = add i64 %i, 1
  br label %head
fault:
  %place = getelementptr i8, ptr %arena, i64 8
  store i64 %i, ptr %place
  ret i32 1
done:
  ret i32 0
}}
"""
INTERFACE = Interface("count", ("ptr",), (0,), 4096, (("no more", "count.py:7:4"),))
EMITTER = Emitter(HostTarget.detect(), fuses=True, lines=False, layout="")
EMITTER.work("count")
TEXT = INTERFACE.line() + COUNT + EMITTER.module.functions["count_work"].text()


@pytest.fixture(scope="module")
def kernel() -> NativeKernel:
    return load(object_code(TEXT), "count")


def run(kernel: NativeKernel, array: Any, grid: tuple[int, int, int], *, shared: bool = False) -> None:
    """Launch; `shared` makes it worth waking workers."""
    kernel.program_ns = 1e9 if shared else None
    driver.run(kernel, INTERFACE, struct.pack("<Q", array.ctypes.data), grid)


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 4, 5), (100_003, 1, 1)])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_program_runs_once(kernel: NativeKernel, grid: Any, threads: int) -> None:
    out = np.zeros(grid, "i4")
    with knobs.runtime.scope():
        knobs.runtime.num_threads = threads
        for _ in range(3):
            run(kernel, out, grid, shared=True)
        run(kernel, out, grid)
    assert (out == 4).all()


def test_launches_from_several_threads(kernel: NativeKernel) -> None:
    arrays = [np.zeros(1000, "i4") for _ in range(6)]

    def launch(array: Any) -> None:
        for _ in range(100):
            run(kernel, array, (1000, 1, 1), shared=True)

    threads = [threading.Thread(target=launch, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array == 100).all() for array in arrays)


def test_short_grids_run_in_the_calling_thread(kernel: NativeKernel, monkeypatch: Any) -> None:
    out = np.zeros(8, "i4")
    kernel.program_ns = 100.0
    monkeypatch.setattr(pool.POOL, "add_worker", lambda *args: pytest.fail("a worker was woken"))
    driver.run(kernel, INTERFACE, struct.pack("<Q", out.ctypes.data), (8, 1, 1))
    assert (out == 1).all()


@pytest.mark.parametrize("shared", [False, True])
def test_a_fault_names_the_line_and_the_program(kernel: NativeKernel, shared: bool) -> None:
    out = np.zeros((4, 5, 1000), "i4")
    out[2, 3, 321] = FAULTY
    message = r"count.py:7:4: device-side assert triggered: no more \[kernel count, program \(321, 3, 2\)\]"
    with pytest.raises(RuntimeError, match=message):
        run(kernel, out, (1000, 5, 4), shared=shared)
    out[:] = 0
    run(kernel, out, (1000, 5, 4), shared=shared)
    assert (out == 1).all()


def test_too_many_programs(kernel: NativeKernel) -> None:
    with pytest.raises(ValueError, match="programs"):
        run(kernel, np.zeros(1, "i4"), (2**20, 2**20, 1))


def test_bad_thread_count(kernel: NativeKernel) -> None:
    with knobs.runtime.scope(), pytest.raises(ValueError, match="TILEWORK_NUM_THREADS"):
        knobs.runtime.num_threads = 0
        run(kernel, np.zeros(8, "i4"), (8, 1, 1), shared=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_starts_its_own_threads() -> None:
    script = """
        import os, struct, sys
        import numpy as np
        from tests.runtime import test_runtime_host as host
        from tilework.targets.cpu.run.interface import load
        kernel = load(host.object_code(host.TEXT), "count")
        out = np.zeros(1000, "i4")
        host.run(kernel, out, (1000, 1, 1), shared=True)
        child = os.fork()
        if child == 0:
            host.run(kernel, out, (1000, 1, 1), shared=True)
            os._exit(0 if (out == 2).all() else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    root = Path(tilework.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], cwd=root, timeout=60, check=False
    )
    assert done.returncode == 0


def test_arenas_grow_and_are_aligned() -> None:
    arena = pool.Arena()
    for size in (64, 5000, 1 << 20, 64):
        address = arena.at_least(size)
        assert address % 64 == 0 and arena.size >= size and bytes(arena.control) == pool.FRESH


# Arguments


def test_slots_of_all_kinds() -> None:
    x = np.zeros(4, "f4")
    kinds = ("ptr", "i64", "i32", "i16", "i8", "i1", "f64", "f32", "f16", "bf16")
    pack = slots_of(kinds, None, ()).packer()
    slots = pack((x, -(2**40), -5, -6, -7, True, 0.1, 0.5, 1.5, 2.5))
    assert len(slots) == 8 * len(kinds)
    assert struct.unpack("<Qqi4xh6xb7x?7xdf4xe6xH6x", slots) == (
        x.ctypes.data, -(2**40), -5, -6, -7, True, 0.1, 0.5, 1.5, 0x4020,
    )  # fmt: skip


def test_integers_wrap_and_floats_overflow_to_infinity() -> None:
    pack = slots_of(("i32", "i64", "f32"), None, ()).packer()
    assert struct.unpack("<i4xqf4x", pack((2**32 - 1, 2**64 - 2, 1e300))) == (-1, -2, float("inf"))


@pytest.mark.parametrize(("kind", "value"), [("i32", 0.5), ("i32", "x"), ("f32", "x"), ("ptr", "x"), ("ptr", 1.5)])
def test_arguments_that_do_not_fit(kind: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        slots_of((kind,), None, ()).packer()((value,))


@pytest.mark.parametrize("value", [0.0, -1.0, 1.00390625, 3.0e38, 1e-40, float("inf"), float("nan")])
def test_bfloat16(value: float) -> None:
    import ml_dtypes

    assert bfloat16_bits(value) == int(np.array(value, ml_dtypes.bfloat16).view(np.uint16))


def test_constants_and_tuples_take_no_slots_of_their_own() -> None:
    pack = slots_of(("i32", "f32", "i32"), ["constexpr", ("i32", "constexpr", ("fp32",)), "i32"], ()).packer()
    assert struct.unpack("<i4xf4xi4x", pack((64, (1, "c", (2.0,)), 3))) == (1, 2.0, 3)


@pytest.mark.parametrize("beside", [True, False])
def test_descriptors_take_the_slots_of_all_they_hold(beside: bool) -> None:
    from tilework.tools.tensor_descriptor import TensorDescriptor

    base = np.zeros((8, 16), "f4")
    desc = TensorDescriptor.from_tensor(base, [4, 4], padding="nan")
    kinds = ["ptr", "i64", "i64", "i64", "i64", "i1", "i1", *(["i32", "i32", "i64", "i64"] if beside else []), "i32"]
    slots = slots_of(kinds, ["tensordesc<fp32[4, 4]>", "i32"], ()).packer()((desc, 9))
    found = struct.unpack("<Qqqqq?7x?7x" + ("i4xi4xqq" if beside else "") + "i4x", slots)
    assert found == (base.ctypes.data, 8, 16, 16, 1, True, False, *((8, 16, 16, 1) if beside else ()), 9)


def test_addresses() -> None:
    x = np.arange(16, dtype="f4")
    pack = slots_of(("ptr",), None, (0,)).packer()

    class Tensor:
        dtype = "float32"

        def data_ptr(self) -> int:
            return 4096

    class Shared:
        __array_interface__ = x.__array_interface__

    expected = [(x, x.ctypes.data), (x[3:], x.ctypes.data + 12), (None, 0), (4096, 4096), (Tensor(), 4096)]
    expected += [(Shared(), x.ctypes.data), (TensorWrapper(x, "int32"), x.ctypes.data), (np.zeros(0), None)]
    for arg, address in expected:
        (found,) = struct.unpack("<Q", pack((arg,)))
        assert address is None or found == address


def test_read_only_arrays_that_are_written_to() -> None:
    x = np.zeros(4, "f4")
    x.flags.writeable = False
    assert slots_of(("ptr",), None, ()).packer()((x,))
    for arg in (x, TensorWrapper(x, "int32")):
        with pytest.raises(ValueError, match="kernel writes to an array that is read-only"):
            slots_of(("ptr",), None, (0,)).packer()((arg,))


# Files of stages


@pytest.fixture
def own_cache(tmp_path: Path) -> Any:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


def test_llir_files_compile_and_launch(tmp_path: Path, own_cache: None) -> None:
    path = tmp_path / "count.llir"
    path.write_text(TEXT)
    for _ in range(2):  # from the file, then from the cache
        compiled = compile(path, CPU)
        assert compiled.name == "count"
        assert isinstance(compiled.asm["obj"], bytes) and compiled.asm["llir"] == TEXT
        out = np.zeros(6, "i4")
        compiled[(3, 2, 1)](out)
        assert (out == 1).all()
        compiled[(0, 2, 1)](out)
        assert (out == 1).all()
        compiled[(6,)](out)
        assert (out == 2).all()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="count writes to an array that is read-only"):
        compiled[(3, 2, 1)](out)
    assert set(lower(IRSource(path), CPU, ["llir", "obj"])) == {"llir", "obj"}
    with pytest.raises(ValueError, match="past the stage"):
        lower(IRSource(path), CPU, ["ttir"])


def test_llir_without_an_interface(tmp_path: Path, own_cache: None) -> None:
    path = tmp_path / "count.llir"
    path.write_text(COUNT)
    with pytest.raises(TritonError, match="begins with a line"):
        compile(path, CPU)
    with pytest.raises(TritonError, match="the PTX of count has no kernel"):
        compile(path, GPUTarget("cuda", 90, 32))


def test_an_interface_is_read_back() -> None:
    assert vars(Interface.read(TEXT)) == vars(INTERFACE)
