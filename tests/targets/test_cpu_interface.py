"""Facts about kernels that launches need: which parameters are written through, what can fail and where."""

from typing import Any

import pytest

import tilework.language as tl
from tilework.compiler import ASTSource
from tilework.language.function import jit
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower.interface_of import fault_codes, interface_of, stored_parameters
from tilework.targets.cpu.pipeline import CpuBackend
from tilework.targets.cpu.target import HostTarget

CPU = GPUTarget("cpu", "host", 1)


def ttir(kernel: Any, optimised: bool, **types: str) -> Any:
    backend = CpuBackend(CPU)
    options = backend.parse_options({"debug": True})
    module = ASTSource(kernel, types).module(frontend_options(CPU, options))
    return backend.stages(options)["ttir"](module) if optimised else module


@jit
def plain(x, y, n):
    tl.store(y + n, tl.load(x + n))


@jit
def carried(x, y, n):
    i = tl.arange(0, 16)
    source, target = x + i, y + i
    for _ in range(n):
        tl.store(target, tl.load(source))
        source += 16
        target += 16


@jit
def swapped(x, y, n):
    source, target = x, y
    for _ in range(n):
        tl.store(target, tl.load(source))
        source, target = target, source


@jit
def chosen(x, y, n):
    target = x
    if n > 3:
        target = y
    tl.store(target, 1.0)


@jit
def in_while(x, y, n):
    target = y
    while n > 0:
        tl.store(target, tl.load(x))
        target += 1
        n -= 1


@jit
def counted(x, y, n):
    tl.atomic_add(x + n, 1.0)
    tl.store(y, 1.0)
    tl.atomic_cas(y.to(tl.pointer_type(tl.int64)), 0, 1)


@jit(noinline=True)
def write(p, q):
    tl.store(q, tl.load(p))


@jit
def calling(x, y, n):
    write(x, y + n)


@jit
def indirect(x, y, n):
    pointer = tl.load(x.to(tl.pointer_type(tl.int64))).to(tl.pointer_type(tl.float32))
    tl.store(pointer + n, tl.load(y))


@jit
def silent(x, y, n):
    tl.load(x + n)


CASES = [  # a kernel, and the alignments of what it writes through
    (plain, {1: 1}), (carried, {1: 1}), (swapped, {0: 1, 1: 1}), (chosen, {0: 1, 1: 1}), (in_while, {1: 1}),
    (counted, {0: 4, 1: 8}), (calling, {1: 1}), (indirect, {}), (silent, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "stored"), CASES, ids=[kernel.__name__ for kernel, _ in CASES])
@pytest.mark.parametrize("optimised", [False, True])
def test_stored_parameters(kernel: Any, stored: dict[int, int], optimised: bool) -> None:
    module = ttir(kernel, optimised, x="*fp32", y="*fp32", n="i32")
    assert stored_parameters(module, kernel.__name__) == stored


@jit
def asserting(x, n):
    tl.device_assert(n > 0, "positive")
    tl.device_assert(tl.load(x) < 1.0, "small")


def test_faults() -> None:
    module = ttir(asserting, True, x="*fp32", n="i32")
    interface = interface_of(module, 128)
    assert interface.parameters == ("ptr", "i32") and interface.arena == 128
    assert [message for message, _ in interface.faults] == ["positive", "small"]
    first = asserting.def_line + 1
    assert [int(index.split(":")[-2]) for _, index in interface.faults] == [first, first + 1]
    assert sorted(fault_codes(module).values()) == [1, 2]


@pytest.mark.parametrize(
    ("arch", "features", "vector", "registers", "fma"),
    [
        ("x86_64", {"sse2"}, 16, 16, False),
        ("x86_64", {"avx", "avx2", "fma", "f16c"}, 32, 16, True),
        ("x86_64", {"avx2", "fma", "avx512f"}, 64, 32, True),
        ("aarch64", {"neon"}, 16, 32, True),
    ],
)
def test_targets(arch: str, features: set[str], vector: int, registers: int, fma: bool) -> None:
    target = HostTarget.of(arch, "some", features)
    assert (target.vector_bytes, target.vector_registers, target.has_fma) == (vector, registers, fma)
    assert target.lanes(32) == vector // 4


def test_this_machine() -> None:
    host = HostTarget.detect()
    assert host is HostTarget.detect() and host.cores >= 1
