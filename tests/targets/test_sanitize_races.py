"""Races between programs: which are found, at which lines, and what orders programs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.sanitized import every_warning_once, line_of
from tilework import knobs
from tilework.errors import SanitizerError, SanitizerWarning
from tilework.oracles.interpreter.allowed_memory import AccessError

HERE = Path(__file__)


@pytest.fixture(autouse=True)
def every_warning() -> Iterator[None]:
    with every_warning_once():
        yield


def report(kernel: Any, grid: int, *args: Any, **settings: Any) -> str:
    with pytest.raises(SanitizerError) as found:
        kernel[(grid,)](*args, **settings)
    return str(found.value)


@tilework.jit(sanitize="race")
def stencil(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    here = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, left + here, mask=i < n)


def test_reading_what_another_program_writes() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    stencil[(4,)](x, out, 64, BLOCK=16)
    np.testing.assert_array_equal(out[1:], 2)
    text = report(stencil, 4, x, x, 64, BLOCK=16)
    line, other = line_of("left = tl.load(x + i - 1"), line_of("tl.store(out + i, left + here")
    assert text.splitlines() == [
        f"{HERE}:{line}:12: error: program (1, 0, 0) reads element 15 of argument 'x', which program (0, 0, 0) writes;"
        " nothing orders them (race)",
        f"{line:5d} |     left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)",
        "      |            ^",
        f"   note: program (0, 0, 0) writes it in line {other}: tl.store(out + i, left + here, mask=i < n)",
    ]


def test_writing_what_another_program_has_read() -> None:
    x = np.ones(65, np.float32)
    text = report(shifted, 4, x, BLOCK=16)
    assert "program (1, 0, 0) writes element 16 of argument 'x', which program (0, 0, 0) reads" in text
    assert text.startswith(f"{HERE}:{shifted.def_line + 3}:") and "right = tl.load(x + i + 1)" in text


@tilework.jit(sanitize="race")
def shifted(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x + i + 1)
    tl.store(x + i, right * 2)


@tilework.jit(sanitize="race")
def total(x, out, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + i), 0)
    if KIND == "store":
        tl.store(out, s)
    elif KIND == "update":
        before = tl.load(out)
        tl.store(out, before + s)
    elif KIND == "atomic":
        tl.atomic_add(out, s)
    elif KIND == "relaxed":
        tl.atomic_add(out, s, sem="relaxed")
    elif KIND == "mixed":
        tl.atomic_add(out, s)
        tl.store(out + 1, tl.load(out))


def test_writing_what_another_program_writes() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(2, np.float32)
    text = report(total, 4, x, out, KIND="store", BLOCK=16)
    assert "program (1, 0, 0) writes element 0 of argument 'out', and so does program (0, 0, 0)" in text
    line = line_of("tl.store(out, s)")
    assert text.startswith(f"{HERE}:{line}:") and f"writes it in line {line}: tl.store(out, s)" in text
    total[(1,)](x, out, KIND="store", BLOCK=16)
    assert "reads element 0 of argument 'out', which program (0, 0, 0) writes" in report(
        total, 4, x, out, KIND="update", BLOCK=16
    )


def test_atomics_do_not_race_with_each_other() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(2, np.float32)
    for kind in ("atomic", "relaxed"):
        total[(4,)](x, out, KIND=kind, BLOCK=16)
    assert out[0] == 2 * x.sum()
    text = report(total, 4, x, out, KIND="mixed", BLOCK=16)
    assert "argument 'out'" in text and "(race)" in text


def test_programs_that_write_the_same_get_a_warning() -> None:
    x, out = np.ones(64, np.float32), np.zeros(1, np.float32)
    with pytest.warns(SanitizerWarning, match="harmless as long as all write the same") as found:
        total[(4,)](x, out, KIND="store", BLOCK=16)
    assert (found[0].filename, found[0].lineno) == (str(HERE), line_of("tl.store(out, s)"))
    assert out[0] == 16


@tilework.jit(sanitize="race")
def locked(lock, data, KIND: tl.constexpr, SEM: tl.constexpr):
    if KIND != "none":
        while tl.atomic_cas(lock, 0, 1, sem=SEM) == 1:
            pass
    i = tl.arange(0, 16)
    tl.store(data + i, tl.load(data + i) + 1)
    if KIND == "exchange":
        tl.atomic_xchg(lock, 0, sem=SEM)
    elif KIND == "store":
        tl.debug_barrier()
        tl.store(lock, 0)


@pytest.mark.parametrize("sem", ["acq_rel", "acquire", "release", "relaxed"])
@pytest.mark.parametrize("kind", ["exchange", "store"])
def test_locks_order_what_they_guard(kind: str, sem: str) -> None:
    lock, data = np.zeros(1, np.int32), np.zeros(16, np.int32)
    locked[(8,)](lock, data, KIND=kind, SEM=sem)
    assert (data == 8).all() and lock[0] == 0


def test_without_the_lock() -> None:
    lock, data = np.zeros(1, np.int32), np.zeros(16, np.int32)
    assert "of argument 'data'" in report(locked, 8, lock, data, KIND="none", SEM="acq_rel")


@tilework.jit(sanitize="race")
def last_one_adds(x, parts, count, out, GOOD: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    if GOOD:
        tl.store(parts + pid, s)
        ticket = tl.atomic_add(count, 1)
    else:
        ticket = tl.atomic_add(count, 1)
        tl.store(parts + pid, s)
    if ticket == tl.num_programs(0) - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, 4)), 0))


def test_the_last_program_may_read_what_a_counter_has_released() -> None:
    x, parts, out = np.arange(64, dtype=np.float32), np.zeros(4, np.float32), np.zeros(1, np.float32)
    last_one_adds[(4,)](x, parts, np.zeros(1, np.int32), out, GOOD=True, BLOCK=16)
    assert out[0] == x.sum()
    text = report(last_one_adds, 4, x, parts, np.zeros(1, np.int32), out, GOOD=False, BLOCK=16)
    assert "of argument 'parts'" in text and "tl.store(parts + pid, s)" in text


@tilework.jit(sanitize="race")
def chained(x, flags, out, VOLATILE: tl.constexpr):
    pid = tl.program_id(0)
    before = tl.zeros([], tl.float32)
    if pid > 0:
        while tl.load(flags + pid - 1, volatile=VOLATILE) == 0:
            pass
        before = tl.load(out + pid - 1)
    tl.store(out + pid, before + tl.load(x + pid))
    tl.store(flags + pid, 1)


def test_flags_that_volatile_loads_wait_for() -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    chained[(8,)](x, np.zeros(8, np.int32), out, VOLATILE=True)
    np.testing.assert_array_equal(out, np.arange(1, 9))
    assert "(race)" in report(chained, 8, x, np.zeros(8, np.int32), out, VOLATILE=False)


@tilework.jit(sanitize="race")
def waiting(flag, ATOMIC: tl.constexpr):
    if tl.program_id(0) == 1:
        tl.atomic_xchg(flag, 1)
    elif ATOMIC:
        while tl.atomic_cas(flag, 1, 2) == 0:
            pass
    else:
        while tl.load(flag, volatile=True) == 0:
            pass


@pytest.mark.parametrize("atomic", [False, True])
def test_a_program_that_waits_for_a_later_one_is_reported_so(atomic: bool) -> None:
    text = report(waiting, 2, np.zeros(1, np.int32), ATOMIC=atomic)
    assert "program (0, 0, 0) waits for another program" in text and "programs run one after another here" in text


@tilework.jit(sanitize="race")
def bytes_and_words(x, y):
    pid = tl.program_id(0)
    tl.store(x + pid, pid.to(tl.int8))
    tl.store(y + pid, pid)


def test_neighbours_do_not_race_and_views_share_memory() -> None:
    raw = np.zeros(64, np.int8)
    bytes_and_words[(4,)](raw[:8], raw[8:24].view(np.int32))
    text = report(bytes_and_words, 4, raw, raw[:16].view(np.int32))
    assert "(race)" in text


def test_bounds_are_checked_too_and_plain_launches_are_not_slowed() -> None:
    x = np.ones(64, np.float32)
    with pytest.raises(AccessError, match="reads element 64 of argument 'x'"):
        stencil[(5,)](x, np.zeros(80, np.float32), 80, BLOCK=16)
    out = np.zeros(2, np.float32)
    kernel = total[(4,)](np.arange(64, dtype=np.float32), out, KIND="store", BLOCK=16, sanitize=False)
    assert "obj" in kernel.asm


@tilework.jit
def plain(out):
    tl.store(out, tl.program_id(0))


def test_the_knob() -> None:
    out = np.zeros(1, np.int32)
    with knobs.runtime.scope():
        knobs.runtime.sanitize = "race"
        assert "(race)" in report(plain, 4, out)
