"""Ordering between the programs of one launch: waiting for a flag, locks with every `sem`, barriers."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tilework.compiler import ASTSource, compile
from tilework.targets.base import GPUTarget


def finishes_after(flag: np.ndarray, launch: Callable[[], Any]) -> None:
    """`launch` waits for the flag that this thread sets, and is done then."""
    thread = threading.Thread(target=launch, daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive(), "the thread did not wait"
    flag[:] = 1
    thread.join(20)
    assert not thread.is_alive(), "the flag was not seen"


@tw.jit
def wait_plain(flag, out):
    while tl.load(flag) == 0:
        pass
    tl.store(out, tl.load(flag) + 6)


@tw.jit
def wait_volatile(flag, out):
    while tl.load(flag, mask=flag.to(tl.int64) != 0, volatile=True) == 0:
        pass
    tl.store(out, tl.load(flag) + 6)


@tw.jit
def wait_later(flag, out):
    before = tl.load(flag)
    go = True
    while go:
        go = tl.load(flag) == 0
    tl.store(out, tl.load(flag) + 6 + before)


@tw.jit
def is_unset(flag):
    return tl.load(flag) == 0


@tw.jit
def wait_called(flag, out):
    while is_unset(flag):
        pass
    tl.store(out, tl.load(flag) + 6)


@tw.jit(noinline=True)
def is_unset_apart(flag):
    return tl.load(flag) == 0


@tw.jit
def wait_apart(flag, out):
    while is_unset_apart(flag):
        pass
    tl.store(out, tl.load(flag) + 6)


@tw.jit
def wait_tile(flag, out):
    offsets = tl.arange(0, 16)
    while tl.sum(tl.load(flag + offsets)) < 16:
        pass
    tl.store(out, tl.load(flag) + 6)


WAITING = [wait_plain, wait_volatile, wait_later, wait_called, wait_apart, wait_tile]


@pytest.mark.parametrize("kernel", WAITING, ids=lambda kernel: kernel.__name__)
def test_a_flag_is_read_again(kernel: Any) -> None:
    flag, out = np.zeros(16, np.int32), np.zeros(1, np.int32)
    kernel[(1,)](flag + 1, out)  # compiled outside of the thread
    out[0] = 0
    finishes_after(flag, lambda: kernel[(1,)](flag, out))
    assert out[0] == 7


@pytest.mark.parametrize("kernel", WAITING, ids=lambda kernel: kernel.__name__)
def test_a_gpu_reads_the_flag_again(kernel: Any) -> None:
    """The load is in the loop: behind the label that its branch goes back to."""
    signature = dict.fromkeys(kernel.arg_names, "*i32")
    ptx = compile(ASTSource(kernel, signature=signature), target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    before, _, loop = ptx.partition("$L__BB0_1:")
    assert "ld.volatile.global" not in before
    body, _, behind = loop.rpartition("$L__BB0_1")
    assert "ld.volatile.global" in (behind if kernel is wait_apart else body)
    assert kernel is not wait_apart or "call.uni" in body


@tw.jit
def locked_sum(lock, total, tile, out, SEM: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=SEM) == 1:
        pass
    tl.store(total, tl.load(total) + 1)
    offsets = tl.arange(0, 16)
    old = tl.load(tile + offsets)
    tl.store(tile + offsets, old + 1)
    tl.atomic_xchg(lock, 0, sem=SEM)
    tl.store(out + tl.program_id(0) * 16 + offsets, old)


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_locks_hold_with_every_sem(sem: str) -> None:
    """Plain loads and stores, of an element and of a tile, stay between taking the lock and giving it back."""
    programs = 20_000
    lock, total, tile = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(16, np.int32)
    out = np.zeros((programs, 16), np.int32)
    locked_sum[(programs,)](lock, total, tile, out, SEM=sem)
    assert total[0] == programs
    np.testing.assert_array_equal(tile, programs)
    np.testing.assert_array_equal(np.sort(out, axis=0), np.arange(programs)[:, None].repeat(16, 1))


@tw.jit
def publish(data, flag, out):
    offsets = tl.arange(0, 64)
    if tl.program_id(0) == 0:
        tl.store(data + offsets, offsets + 1)
        tl.debug_barrier()
        tl.store(flag, 1)
    else:
        while tl.load(flag) == 0:
            pass
        tl.store(out + offsets, tl.load(data + offsets))


def test_barriers_order_memory() -> None:
    for _ in range(50):
        data, flag, out = np.zeros(64, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)
        publish[(2,)](data, flag, out)
        np.testing.assert_array_equal(out, np.arange(64) + 1)


def test_what_the_processor_is_reported() -> None:
    """Fences around a tile of atomics that may signal, none around one that only counts."""

    def text(kernel: Any, **constants: Any) -> str:
        signature = {name: "constexpr" if name in constants else "*i32" for name in kernel.arg_names}
        source = ASTSource(kernel, signature=signature, constexprs=constants)
        return compile(source, target=GPUTarget("cpu", "host", 1)).asm["llir"]

    assert text(publish).count("fence seq_cst") == 1
    assert "load atomic volatile i32" in text(publish)
    relaxed, ordered = (text(count, SEM=sem) for sem in ("relaxed", "acq_rel"))
    assert "fence" not in relaxed
    assert ordered.index("fence release") < ordered.index("atomicrmw add") < ordered.index("fence acq_rel")


@tw.jit
def count(counters, SEM: tl.constexpr):
    tl.atomic_add(counters + tl.arange(0, 16), 1, sem=SEM)
