"""The limits of the machine (bandwidth of a copy, operations per second), measured once and kept in the cache folder.

    limits = Limits.load()
    limits.bandwidth                    1.2e10 bytes per second, read and written ones together
    limits.rate("fp32")                 9.1e10 operations per second; measured at its first use

On the host NumPy's copies (in all threads) and matrix multiplications count as well as our kernels: a limit is the best
of them. A measurement takes some tenths of a second. What is measured while other programs use the machine is a lower
bound: it counts for this report, which says so (`disturbed`), and is not kept. An emulated GPU has no limits.
"""

import hashlib
import json
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.errors import TritonError
from tilework.inspect.profiler.disturbance import Disturbance
from tilework.inspect.profiler.estimate import SIMD
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.launch.python.wrappers import reinterpret
from tilework.runtime.tuning.benchmark import do_bench
from tilework.targets.cpu.target import available_cores

VERSION, FILE = 2, "limits.json"
ROUNDS, LEAST_SECONDS = 5, 0.3  # others may use the machine: one of the calls should be alone
ATTEMPTS = 2  # at a measurement that was disturbed
COPIED = 64 << 20  # bytes of each array, on the host
GPU_COPIED = 256 << 20
MATRIX = 768  # rows and columns of NumPy's matrices
# by kind: operands and result; on GPUs also the sizes of a tile
HOST_DOTS = {"fp16": ("f2", "f4", tl.float32), "int8": ("i1", "i4", tl.int32)}
GPU_DOTS = {
    "fp16": (tl.float16, tl.float32, (128, 256, 64)),
    "bf16": (tl.bfloat16, tl.float32, (128, 256, 64)),
    "fp32": (tl.float32, tl.float32, (128, 128, 32)),
    "fp64": (tl.float64, tl.float64, (64, 64, 16)),
    "int8": (tl.int8, tl.int32, (128, 256, 128)),
}
LIKE = {"bf16": "fp16", "fp8": "int8", SIMD: "fp32"}  # on the host: what is as fast


class Limits:
    """See the module docstring."""

    def __init__(self, device: str, found: dict[str, float], store: EntryStore | None) -> None:
        self.device, self.found, self.store = device, found, store
        self.kept = dict(found)  # what was measured undisturbed
        self.before: dict[str, float] = {}
        self.disturbed = ""  # what disturbed a measurement that the report uses
        self.watch = Disturbance()

    @classmethod
    def load(cls) -> "Limits":
        """Return the limits of the active device, as far as they have been measured."""
        device = device_facts()
        store = None if is_emulated() else EntryStore(knobs.cache.dir)
        found: dict[str, float] = {}
        if store is not None and (path := store.file(folder(device), FILE)) is not None:
            try:
                found = {name: float(value) for name, value in json.loads(Path(path).read_text())["found"].items()}
            except (OSError, ValueError, LookupError, AttributeError):
                found = {}
        return cls(device, found, store)

    def measure_again(self) -> None:
        """Measure again at the next use, and keep the larger value: the machine may have been busy."""
        self.before, self.found = self.kept, {}

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of a copy, those read and those written; None on an emulated GPU."""
        return self.get("copy", self.measure_copy)

    def rate(self, kind: str) -> float | None:
        """Operations per second of dots of a kind, or of other code (`SIMD`)."""
        kind = self.measured_as(kind)
        return self.get(kind, lambda: self.measure_rate(kind))

    def measured_as(self, kind: str) -> str:
        """The kind whose measurement counts for a kind."""
        return LIKE.get(kind, kind) if self.is_host or kind == "fp8" else kind

    @property
    def is_real(self) -> bool:
        """True if the device's clock measures time, as an emulated one does not."""
        return not is_emulated()

    @property
    def is_host(self) -> bool:
        return self.device.startswith("cpu")

    def get(self, name: str, measure: Callable[[], float | None]) -> float | None:
        if self.store is None:
            return None
        if name not in self.found and (value := self.measured(name, measure)) is not None:
            self.found[name] = value
        return self.found.get(name)

    def measured(self, name: str, measure: Callable[[], float | None]) -> float | None:
        """Measure, again if that was disturbed; keep what was not."""
        best = self.before.get(name, 0.0)
        for _ in range(ATTEMPTS):
            outer, self.watch = self.watch, Disturbance()
            try:
                value = measure()
                reason = self.watch.reason
            finally:
                self.watch = outer  # one measurement may need another
            if value is None:
                return None
            if not reason:
                self.keep(name, max(best, value))
                return max(best, value)
            if value > best:
                best, self.disturbed = value, reason
        return best

    def keep(self, name: str, value: float) -> None:
        """Write a value into the cache folder."""
        assert self.store is not None
        self.kept[name] = value
        data = {"device": self.device, "found": self.kept}
        try:
            self.store.put(folder(self.device), FILE, json.dumps(data, indent=1).encode())
        except OSError as error:
            print(f"tilework profile: the limits of this machine cannot be kept: {error}", file=sys.stderr)

    def measure_copy(self) -> float | None:
        if not self.is_host:
            arrays = [gpu_array(GPU_COPIED // 4, tl.float32) for _ in range(2)]
            blocks = (GPU_COPIED // 4 // 4096,)
            return 2 * GPU_COPIED / self.watch.best(gpu_times(lambda: copy[blocks](*arrays, BLOCK=4096)))
        source, target = np.ones(COPIED // 4, np.float32), np.zeros(COPIED // 4, np.float32)
        blocks = (COPIED // 4 // 4096,)
        ours = self.watch.best(self.times_of(lambda: copy[blocks](source, target, BLOCK=4096)))
        return 2 * COPIED / min(ours, self.watch.best(self.times_of(lambda: copy_in_threads(source, target))))

    def measure_rate(self, kind: str) -> float | None:
        if not self.is_host:
            return self.gpu_fma_rate() if kind == SIMD else self.gpu_dot_rate(kind)
        if kind in ("fp32", "fp64"):
            return self.matmul_rate(np.float64 if kind == "fp64" else np.float32)
        if kind not in HOST_DOTS:
            return None
        element, result, out = HOST_DOTS[kind]
        count, size, steps = 16, 64, 64
        left, right = np.ones((size, size), element), np.ones((size, size), element)
        target = np.empty((count, size, size), result)
        call = lambda: dots[(count,)](left, right, target, steps, M=size, N=size, K=size, OUT=out)  # noqa: E731
        rate = 2.0 * size**3 * count * steps / self.watch.best(self.times_of(call))
        return max(rate, self.rate("fp32") or 0.0) if kind == "fp16" else rate

    def times_of(self, call: Callable[[], Any]) -> list[float]:
        """The seconds of some calls, after one that compiles."""
        call()
        times: list[float] = []
        with self.watch:
            while len(times) < ROUNDS or sum(times) < LEAST_SECONDS:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
        return times

    def matmul_rate(self, dtype: Any) -> float:
        """Operations per second of NumPy's matrix multiplication."""
        left, target = np.ones((MATRIX, MATRIX), dtype), np.empty((MATRIX, MATRIX), dtype)
        return 2.0 * MATRIX**3 / self.watch.best(self.times_of(lambda: np.matmul(left, left, out=target)))

    def gpu_fma_rate(self) -> float:
        count, block, steps = 16 * multiprocessors(), 1024, 512
        target = gpu_array(count * block, tl.float32)
        seconds = self.watch.best(gpu_times(lambda: multiply_add[(count,)](target, 0.5, steps, BLOCK=block)))
        return 16.0 * count * block * steps / seconds

    def gpu_dot_rate(self, kind: str) -> float | None:
        """Operations per second of dots of resident tiles; None if the GPU does not support the type."""
        if kind not in GPU_DOTS:
            return None
        element, out, (rows, columns, inner) = GPU_DOTS[kind]
        count, steps = 2 * multiprocessors(), 512
        left, right = gpu_array(rows * inner, element), gpu_array(inner * columns, element)
        target = gpu_array(count * rows * columns, out)
        tiles = {"M": rows, "N": columns, "K": inner, "OUT": out, "num_warps": 8}
        try:
            seconds = self.watch.best(gpu_times(lambda: dots[(count,)](left, right, target, steps, **tiles)))
        except TritonError:
            return None
        return 2.0 * rows * columns * inner * steps * count / seconds


def is_emulated() -> bool:
    return (knobs.runtime.device or "").startswith("emulator")


def device_facts() -> str:
    """Return a text that identifies this machine, or its GPU."""
    active = driver.active
    target = active.get_current_target()
    if target.backend == "cpu":
        from tilework.targets.cpu.run.pool import thread_count  # lazily: only the host has threads

        return f"cpu, {cpu_name()}, {thread_count()} threads"
    found = active.utils.get_device_properties(active.get_current_device())
    clocks = f"{found['sm_clock_rate'] / 1e6:.2f} GHz, {found['mem_bus_width']} bits"
    return f"{target.backend}:{target.arch}, {found['multiprocessor_count']} multiprocessors, {clocks}"


def cpu_name() -> str:
    """Return the model name that Linux shows, else the kind of processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def folder(device: str) -> str:
    return folder_of(hashlib.sha256(f"limits {VERSION} {platform.node()} {device}".encode()).hexdigest())


# ---- the host


def copy_in_threads(source: Any, target: Any) -> None:
    """NumPy's copy, a part in each thread: it does not hold Python's lock."""
    count = available_cores()
    parts = zip(np.array_split(target, count), np.array_split(source, count), strict=True)
    threads = [threading.Thread(target=np.copyto, args=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- GPUs


def gpu_array(count: int, dtype: tl.dtype) -> Any:
    """Memory of the GPU for some elements."""
    active: Any = driver.active
    return reinterpret(active.array_cls(count * dtype.primitive_bitwidth // 8), dtype)


def gpu_times(call: Callable[[], Any]) -> list[float]:
    """The seconds of some calls; the clock is the GPU's."""
    times: Any = do_bench(call, warmup=10, rep=40, return_mode="all")
    return [time / 1e3 for time in times]


def multiprocessors() -> int:
    active = driver.active
    return active.utils.get_device_properties(active.get_current_device())["multiprocessor_count"]


@tilework.jit
def copy(source: Any, target: Any, BLOCK: tl.constexpr):
    """Copy memory, and nothing else."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + i, tl.load(source + i))


@tilework.jit
def multiply_add(target: Any, scale: Any, steps: Any, BLOCK: tl.constexpr):
    """Fused multiply-adds in registers; eight independent chains."""
    i = tl.arange(0, BLOCK)
    start = i.to(tl.float32)
    a, b, c, d = start, start + 1, start + 2, start + 3
    e, f, g, h = start + 4, start + 5, start + 6, start + 7
    for _ in range(steps):
        a = a * scale + start
        b = b * scale + start
        c = c * scale + start
        d = d * scale + start
        e = e * scale + start
        f = f * scale + start
        g = g * scale + start
        h = h * scale + start
    tl.store(target + tl.program_id(0) * BLOCK + i, a + b + c + d + e + f + g + h)


@tilework.jit
def dots(
    left: Any, right: Any, target: Any, steps: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr
):
    """Accumulated dots of the same two tiles."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(left + m[:, None] * K + k[None, :])
    b = tl.load(right + k[:, None] * N + n[None, :])
    total = tl.zeros((M, N), OUT)
    for _ in range(steps):
        total = tl.dot(a, b, total, out_dtype=OUT)
    tl.store(target + tl.program_id(0) * M * N + m[:, None] * N + n[None, :], total)
