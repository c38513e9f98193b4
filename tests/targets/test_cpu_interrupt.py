"""Launches that take long, or wait: signals, threads for programs that wait for each other, and messages."""

import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.targets.cpu_run import compile_text
from tilework import knobs

PATIENCE = 30  # seconds after which a launch counts as hung: the machine may be busy


class Alarm(Exception):
    """The exception that the signal handler of a test raises."""


def interrupted(launch: Any, after: float = 0.05) -> float:
    """Launch, let an alarm ring, and give the seconds from then to its exception."""

    def ring(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        with pytest.raises(Alarm):
            launch()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return time.perf_counter() - start - after


@tw.jit
def spin(flag, out, n):
    while tl.load(flag) == 0:
        pass
    tl.store(out, n)


@tw.jit
def cheap_for(flag, out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.5 + i
    tl.store(out, total)


@tw.jit
def long_for(flag, out, n):
    total = 0.0
    for i in range(n.to(tl.int64) * n):
        total = total * 0.5 + i
    tl.store(out, total)


@tw.jit
def cheap_while(flag, out, n):
    total, i = 0.0, n
    while i > 0:
        total = total * 0.5 + i
        i -= tl.where(total < 0, 1, 0)
    tl.store(out, total)


@tw.jit
def tiles(flag, out, n):
    total = tl.zeros([256], tl.float32)
    for i in range(n):
        total += tl.exp(total - i)
    tl.store(out + tl.arange(0, 256), total)


@tw.jit(noinline=True)
def called(out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.5 + i
    return out + total.to(tl.int32)  # pyright: ignore[reportAttributeAccessIssue]


@tw.jit
def in_function(flag, out, n):
    tl.store(called(out, n), 1.0)


@tw.jit
def programs(flag, out, n):
    total = tl.zeros([1024], tl.float32)
    for _ in tl.static_range(8):
        total += tl.sin(total + n)
    tl.store(out + tl.arange(0, 1024), total)


KERNELS = [spin, cheap_for, long_for, cheap_while, tiles, in_function]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("grid", [1, 100])
def test_a_signal_ends_loops(kernel: Any, grid: int) -> None:
    """Whatever the handler raises comes out of the launch, and the process goes on."""
    flag, out = np.zeros(1, np.int32), np.zeros(1024, np.float32)
    kernel[(grid,)](flag + 1, out, 16 if kernel is not cheap_while else 0)
    assert interrupted(lambda: kernel[(grid,)](flag, out, 2**31 - 16)) < PATIENCE
    kernel[(grid,)](flag + 1, out, 16 if kernel is not cheap_while else 0)


def test_a_signal_ends_between_programs() -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(1024, np.float32)
    programs[(10,)](flag, out, 1)
    assert interrupted(lambda: programs[(2**30,)](flag, out, 1)) < PATIENCE


def test_ctrl_c() -> None:
    """The usual handler, through the Python path and the machine code of the launcher."""
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.float32)
    for _ in range(2):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            spin[(3,)](flag, out, 1)
    spin[(3,)](flag + 1, out, 1)
    assert out[0] == 1


def test_a_handler_that_raises_nothing_does_not_end_a_launch() -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.float32)
    before = signal.signal(signal.SIGALRM, lambda number, frame: flag.fill(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        spin[(3,)](flag, out, 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert out[0] == 1


def test_other_threads_are_left_alone() -> None:
    """A launch of another thread goes on while the main thread handles a signal."""
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.float32)
    thread = threading.Thread(target=lambda: spin[(3,)](flag, out, 1), daemon=True)
    thread.start()
    assert interrupted(lambda: time.sleep(PATIENCE)) < PATIENCE
    assert thread.is_alive()
    flag[0] = 1
    thread.join(PATIENCE)
    assert not thread.is_alive() and out[0] == 1


@tw.jit
def barrier(counter, data, out, ROUNDS: tl.constexpr):
    """All programs meet, several times."""
    count, me = tl.num_programs(0), tl.program_id(0)
    for round in range(ROUNDS):
        tl.store(data + me, me + round)
        tl.atomic_add(counter, 1)
        while tl.load(counter) < (round + 1) * count:
            pass
        tl.store(out + me, tl.load(data + (me + 1) % count))
        tl.atomic_add(counter + 1, 1)
        while tl.atomic_add(counter + 1, 0) < (round + 1) * count:
            pass


@pytest.mark.parametrize("threads", [None, 1])
def test_programs_that_wait_for_each_other(threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier of the whole grid works with many more programs than cores."""
    if threads is not None:
        monkeypatch.setattr(knobs.runtime, "num_threads", threads)
    for count in (2, 3, 256):
        counter, data, out = np.zeros(2, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32)
        for _ in range(2):
            counter[:] = 0
            barrier[(count,)](counter, data, out, ROUNDS=2)
        np.testing.assert_array_equal(out, (np.arange(count) + 1) % count + 1)


@tw.jit
def last_first(flag, out):
    """The first program waits for the last one."""
    me = tl.program_id(0)
    if me == 0:
        while tl.load(flag, volatile=True) == 0:
            pass
    if me == tl.num_programs(0) - 1:
        tl.store(flag, 1)
    tl.store(out + me, me)


@tw.jit
def looks_past_caches(flags, out):
    """As `last_first`, with loads that move on, so that only their cache modifier tells that others write there."""
    me = tl.program_id(0)
    if me == 0:
        seen = 0
        while seen < 2:
            seen += tl.load(flags + seen, cache_modifier=".cv")
    if me == tl.num_programs(0) - 1:
        tl.store(flags, 1)
        tl.store(flags + 1, 1)
    tl.store(out + me, me)


@pytest.mark.parametrize("kernel", [last_first, looks_past_caches])
def test_the_first_waits_for_the_last(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (6, 5000):
        for threads in (None, None, 1):
            monkeypatch.setattr(knobs.runtime, "num_threads", threads)
            flags, out = np.zeros(2, np.int32), np.zeros(count, np.int32)
            kernel[(count,)](flags, out)
            np.testing.assert_array_equal(out, np.arange(count))


def test_a_starved_launch_says_so() -> None:
    from tilework.targets.cpu.run.interface import STARVED, Interface
    from tilework.targets.cpu.run.pool import fault_error

    text = str(fault_error(Interface("k", ()), (5000, 1, 1), STARVED, 1026))
    assert "1026 of 5000 programs have begun and wait" in text and "launch fewer" in text


def test_loops_burn_fuel_in_portions() -> None:
    """The innermost loop of a cheap one is as it was; one that is known to be short has no looks at all."""
    text = """tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {{
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c9 = arith.constant 9 : i32
      %z = arith.constant 0.0 : f32
      %r = scf.for %i = %c0 to {end} step %c1 iter_args(%a = %z) -> (f32) : i32 {{
        %b = arith.sitofp %i : i32 to f32
        %s = arith.addf %a, %b : f32
        scf.yield %s : f32
      }}
      tt.store %p, %r : !tt.ptr<f32>
      tt.return
    }}"""
    out = np.zeros(1, np.float32)
    for end, looks in (("%c9", 0), ("%n", 1)):
        kernel = compile_text(text.format(end=end))
        body = kernel.text[: kernel.text.index("@k_range")]
        assert body.count("call i32 @tilework.poll") == looks
        for n in (0, 1, 9, 20_000):
            kernel(out, n)
            assert out[0] == np.arange(n if looks else 9, dtype=np.float32).cumsum(dtype=np.float32)[-1:].sum()


WILD = """
import sys
import numpy as np
import tilework as tw, tilework.language as tl

@tw.jit
def wild(out, n):
    tl.store(out + n, 1.0)

out = np.zeros(16, np.float32)
for _ in range(3):
    wild[(int(sys.argv[2]),)](out, 3)
print("ready", flush=True)
for place in (2**45, 2**46):  # beyond what a process can have
    wild[(int(sys.argv[2]),)](out, place)
"""


@pytest.mark.parametrize("grid", ["1", "100"])
def test_a_wild_store_leaves_a_line(grid: str, tmp_path: Path) -> None:
    """In a program of its own, since it dies; one program goes through the launcher's machine code, many through the
    pool."""
    file = tmp_path / "wild.py"
    file.write_text(WILD)
    done = subprocess.run([sys.executable, file, "-", grid], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "ready\n" and done.returncode < 0
    assert done.stderr.startswith("tilework: the kernel wild ") and "TRITON_SANITIZE=1" in done.stderr


UNMASKED = """
import ctypes
import numpy as np
import tilework as tw, tilework.language as tl

@tw.jit
def unmasked(out):
    tl.store(out + tl.arange(0, 512), 7)

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = {libc.malloc(2000) for _ in range(100)}
first = next(block for block in blocks if block + 2016 in blocks)
unmasked[(1,)](np.frombuffer((ctypes.c_int32 * 500).from_address(first), np.int32))
print("ready", flush=True)
libc.free(first + 2016)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators do not look")
def test_a_forgotten_mask_leaves_a_line(tmp_path: Path) -> None:
    """The allocator finds the damage after the launch, and aborts."""
    file = tmp_path / "unmasked.py"
    file.write_text(UNMASKED)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "ready\n" and done.returncode == -signal.SIGABRT
    assert "the kernel unmasked " in done.stderr and "TRITON_SANITIZE=1" in done.stderr


SIGNALLED = """
import faulthandler, os, signal, sys

number, when = int(sys.argv[1]), sys.argv[2]
if when == "stack before":
    faulthandler.enable()
if when == "handler":
    signal.signal(number, lambda *call: print("handled", flush=True))
if when == "ignored":
    signal.signal(number, signal.SIG_IGN)

import numpy as np
import tilework as tw, tilework.language as tl

@tw.jit
def fine(out):
    tl.store(out, 7)

if when != "idle":
    for _ in range(2):
        fine[(1,)](np.zeros(1, np.int32))
if when == "stack after":
    faulthandler.enable()
os.kill(os.getpid(), number)
print("goes on", flush=True)
"""


@pytest.mark.parametrize("when", ["launched", "idle", "stack before", "stack after", "handler", "ignored"])
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"])
def test_every_fatal_signal_leaves_a_line_and_ends_the_process_as_before(name: str, when: str, tmp_path: Path) -> None:
    number, file = int(getattr(signal, name)), tmp_path / "signalled.py"
    file.write_text(SIGNALLED)
    command = [sys.executable, file, str(number), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    is_fatal = when not in ("handler", "ignored")
    assert done.returncode == (-number if is_fatal else 0), done.stderr
    assert ("the kernel fine has run before" in done.stderr) is (is_fatal and when != "idle")
    assert ("Fatal Python error" in done.stderr) is when.startswith("stack")
    assert done.stdout == {"handler": "handled\ngoes on\n", "ignored": "goes on\n"}.get(when, "")
