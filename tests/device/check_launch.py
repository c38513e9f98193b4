"""Native launches on a real GPU, with torch: every kind of argument, streams, graphs, threads, attributes, errors.

    python -m tests.device.check_launch [WORD ...]        only the checks whose names contain one of the words

What each launch computes is compared with the same launch through Python; a launch that should run in machine code and
does not is a failure. Needs an NVIDIA GPU of compute capability 9.0 or later, and torch. Each check prints a line with
PASS or FAIL.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tilework
import tilework.language as tl
from tests.device import table
from tests.device.table import expect, expect_error
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.launch.native.machine import machine
from tilework.tools.tensor_descriptor import TensorDescriptor

ROOT = Path(__file__).parent.parent.parent
CHECKS: list[tuple[str, Callable[[], Any]]] = []


def check(function: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS.append((function.__name__, function))
    return function


def write_all(out, a, b, c, flag, items, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i) * b + c + items[0] + tl.where(flag, 100, 200) + tl.load(items[1][0] + i))


def add_one(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) + 1, mask=i < n)


def copy_block(source, target, row, ROWS: tl.constexpr):
    target.store([row, 0], source.load([row, 0]))


class Counted:
    """A kernel whose launches through Python are counted."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.kernel: Any = tilework.jit(function)
        self.options, self.slow = options, 0
        machine()  # now, and not when it has paid
        state = self.kernel[(1,)].__self__[0]
        python = state[0]

        def count(*args: Any, **kwargs: Any) -> Any:
            self.slow += 1
            return python(*args, **kwargs)

        state[0] = count

    def __call__(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        return self.kernel[grid](*args, **kwargs, **self.options)


def torch() -> Any:
    return sys.modules["torch"]


def ramp(count: int = 64) -> Any:
    return torch().arange(count, dtype=torch().float32, device="cuda")


class Interface:
    """A tensor as another library would show it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.tensor.__cuda_array_interface__


@check
def every_kind_of_argument() -> str:
    k, seen = Counted(write_all, BLOCK=64), []
    kinds: list[Callable[[Any], Any]] = [lambda t: t, Interface, torch().nn.Parameter, lambda t: t.clone()[:64]]
    for make in kinds:
        for round in range(3):
            out, a, inner = ramp(), ramp() + round, ramp()
            args = (make(a), 3 + 2 * round, 0.5 + round, round == 1, (round + 2, (inner,)))
            before = k.slow
            k(out, *args)
            want = a * args[1] + args[2] + args[4][0] + (100 if args[3] else 200) + inner
            expect(bool(torch().equal(out, want)), True)
            expect(k.slow - before, int(round == 0 and make is not kinds[-1]))
        seen.append(getattr(make, "__name__", "tensor"))
    own, out = DeviceArray.of(__import__("numpy").arange(64, dtype="f4")), ramp()
    for _ in range(2):
        k(out, own, 3, 0.5, True, (2, (own,)))
        expect(bool(torch().equal(out, ramp() * 4 + 102.5)), True)
    return ", ".join(seen)


@check
def tensors_that_are_special() -> None:
    k, x = Counted(add_one, BLOCK=64), ramp()
    k(x, 60)
    whole = ramp(200)
    k(whole[48:], 60)
    expect(k.slow, 1)
    k(whole[1:], 60)  # not aligned
    expect(k.slow, 2)
    with torch().inference_mode():
        k(ramp(), 60)
    freed = ramp()
    freed.untyped_storage().resize_(0)
    expect_error(ValueError, "its storage was freed", lambda: k(freed, 60))
    if hasattr(torch(), "_lazy_clone"):
        lazy = torch()._lazy_clone(x)
        k(lazy, 60)
        expect(float((lazy - x).sum()), 60.0)


@check
def descriptors() -> None:
    k, rows = Counted(copy_block, ROWS=16), 64
    bases = [torch().randn(rows, 64, device="cuda", dtype=torch().float16) for _ in range(12)]

    def described(tensor: Any) -> TensorDescriptor:
        return TensorDescriptor.from_tensor(tensor, [16, 64])

    for _ in range(3):
        for base in bases:
            out = torch().zeros_like(base)
            for row in range(16, 64, 16):
                k(described(base), described(out), row)
            expect(bool(torch().equal(out[16:], base[16:])) and float(out[:16].abs().sum()) == 0.0, True)
    expect(k.slow, 1)
    source, out = described(bases[0]), torch().zeros_like(bases[0])
    shape = source.shape
    assert isinstance(shape, list)
    shape[0] = 8  # the same object, changed: rows beyond the eighth read as zero
    out[:] = 1
    k(source, described(out), 16)
    expect((k.slow, float(out[16:32].abs().sum())), (1, 0.0))
    shape[0] = rows
    target = described(out)
    for change in (
        lambda: None,
        lambda: setattr(source, "base", bases[1]),
        lambda: bases[1].set_(bases[2]),
        shape.reverse,
    ):
        change()
        k(source, target, 16)
        expect(bool(torch().equal(out[16:32], source.base[16:32])), True)
    expect(k.slow, 1)


@check
def arrays_of_jax() -> str:
    """Its bf16 can be had through DLPack only."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    try:
        import jax.numpy as jnp
    except ImportError:
        return "no JAX"
    k = Counted(add_one, BLOCK=64)
    for dtype in (jnp.float32, jnp.bfloat16):
        before = k.slow
        for start in range(3):
            x = jnp.arange(start, 64 + start).astype(dtype)
            k(x, 64)
            torch().cuda.synchronize()
            expect(float(x[5]), 6.0 + start)
        expect(k.slow - before, 1)
    return str(type(x).__module__)


def with_descriptor(x, out, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    tl.store(out + tl.arange(0, BLOCK), source.load([0]))


def scaled(out, a: tl.float16, b: tl.bfloat16):  # pyright: ignore[reportInvalidTypeForm]  types of the language
    tl.store(out, a.to(tl.float32) * 4096 + b.to(tl.float32))


@check
def scratch_memory_and_short_numbers() -> None:
    requested: list[int] = []
    tilework.set_allocator(
        lambda size, alignment, stream: requested.append(size) or torch().empty(size, device="cuda", dtype=torch().int8)
    )
    k, x = Counted(with_descriptor, BLOCK=64), ramp()
    for n in (64, 48, 32, 64):
        out = torch().ones(64, device="cuda")
        k(x, out, n)
        expect(bool(torch().equal(out, torch().where(x < n, x, 0))), True)
    expect((k.slow, len(requested)), (1, 4))
    k, out = Counted(scaled), torch().zeros(1, device="cuda")
    for a, b in ((0.5, 1.0), (1 + 2**-10, 1 + 2**-8), (-0.25, 3.0)):
        k(out, a, b)
        want = torch().tensor(a).half().float() * 4096 + torch().tensor(b).bfloat16().float()
        expect(float(out), float(want))
    expect(k.slow, 1)


@check
def the_stream_of_this_moment() -> None:
    k, x = Counted(add_one, BLOCK=64), ramp()
    k(x, 60)
    torch().cuda.synchronize()
    side = torch().cuda.Stream()
    with torch().cuda.stream(side):
        torch().cuda._sleep(50_000_000)
        k(x, 60)
        expect(side.query(), False)
        done = torch().cuda.Event()
        done.record()
    expect(done.query(), False)  # it waits behind the sleep: it is in that stream
    done.synchronize()
    expect((k.slow, float(x[0])), (1, 2.0))


@check
def graphs() -> None:
    k, x = Counted(add_one, BLOCK=64), ramp()
    k(x, 60)
    graph = torch().cuda.CUDAGraph()
    with torch().cuda.graph(graph):
        allocated = torch().cuda.memory_allocated()
        k(x, 60)
        k(x, 60)
        expect(torch().cuda.memory_allocated(), allocated)
    for _ in range(3):
        graph.replay()
    expect((k.slow, float(x[0])), (1, 7.0))
    first = Counted(add_one, BLOCK=32)
    first.kernel.warmup(x, 30, BLOCK=32, grid=(1,))
    fresh = torch().cuda.CUDAGraph()
    with torch().cuda.graph(fresh):  # described while the stream records
        first(x, 30)
        first(x, 30)
    fresh.replay()
    expect((first.slow, float(x[0])), (1, 9.0))


@check
def threads() -> None:
    k, failed = Counted(add_one, BLOCK=64), []

    def work() -> None:
        try:
            with torch().cuda.stream(stream := torch().cuda.Stream()):
                x = ramp().zero_()  # on this stream: what another one writes may come later
                for _ in range(500):
                    k(x, 60)
                stream.synchronize()
                expect(float(x.sum()), 500.0 * 60)
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            failed.append(repr(error))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expect(failed, [])
    expect(k.slow <= 16, True)


@check
def several_devices() -> str:
    if torch().cuda.device_count() < 2:
        return "there is one"
    k = Counted(add_one, BLOCK=64)
    for _ in range(3):
        for device in range(2):
            with torch().cuda.device(device):
                x = ramp()
                k(x, 60)
                expect(float(x[0]), 1.0)
    expect(k.slow, 2)
    return "two"


@check
def attributes() -> None:
    for options in ({"launch_pdl": True}, {"launch_cooperative_grid": True}, {"num_ctas": 2}, {"num_warps": 8}):
        k, x = Counted(add_one, BLOCK=64, **options), ramp(256)
        for _ in range(3):
            k(x, 250, grid=(4,))
        expect((k.slow, float(x[0]), float(x[249]), float(x[250])), (1, 3.0, 252.0, 250.0))


@check
def errors() -> str:
    k, x = Counted(add_one, BLOCK=64), ramp()
    k(x, 60)
    expect(k.slow, 1)
    return expect_error(RuntimeError, "Triton Error [CUDA]", lambda: k(x, 60, grid=(1, 70000)))


DEAD = """
import sys
from tests.device.check_launch import *
import torch as loaded
k, x = Counted(add_one, BLOCK=64), ramp()
k(x, 60)
k(x, 60)
class Nowhere:
    __cuda_array_interface__ = {"shape": (64,), "typestr": "<f4", "data": (16, False), "version": 3}
k(Nowhere(), 60)
expect_error(RuntimeError, "illegal", loaded.cuda.synchronize)
for _ in range(2):
    print(expect_error(RuntimeError, "Triton Error [CUDA]", lambda: k(x, 60)))
expect(k.slow, 2)
"""


@check
def a_dead_context_is_a_clear_error() -> str:
    """In a process of its own, because no context survives it."""
    done = subprocess.run(
        [sys.executable, "-c", DEAD], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    expect((done.returncode, done.stderr[-600:] if done.returncode else ""), (0, ""))
    return done.stdout.strip().splitlines()[-1]


def main(words: list[str]) -> int:
    import torch as loaded

    if not loaded.cuda.is_available():
        print("FAIL  torch cannot use a GPU")
        return 1
    table.CHECKS[:] = CHECKS
    failed = table.run(words, "with torch")
    print(f"{failed} failed")
    return min(failed, 99)


if __name__ == "__main__":
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tilework-check-"))
    sys.exit(main(sys.argv[1:]))
