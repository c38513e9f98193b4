"""Scripts that launch kernels in odd situations; they all start with the same kernels, and with what checks them.

print(Scripts(folder).run("check()\nprint(pool.POOL.count)", TILEWORK_NUM_THREADS="300"))
"""

import os
from pathlib import Path

import tilework
from tests.python_programs import run_python

ROOT = Path(tilework.__file__).parent.parent
KERNELS = """
import atexit, ctypes, gc, os, resource, signal, sys, threading, time
import numpy as np
import tilework
import tilework.language as tl
from tilework import knobs
from tilework.targets.cpu.run import pool

signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored below nohup and `&`

@tilework.jit
def add(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

@tilework.jit
def sums(x, out, B: tl.constexpr):  # needs scratch memory
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.sort(tl.load(x + i))))

@tilework.jit
def show(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.sort(tl.load(x + i))
    tl.device_print("largest", tl.max(v))
    tl.store(out + i, tl.cumsum(v))

@tilework.jit
def positive(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.device_assert(tl.load(x + i) > 0, "not positive")

def check_add(n=1 << 16, B=256):
    x, y = np.arange(n, dtype="f4"), np.zeros(n, "f4")
    add[(n // B,)](x, y, n, B=B)
    assert (y == x + 1).all()

def numbers(programs, B=1024):
    return np.random.default_rng().integers(-50, 50, (programs, B)).astype("f4")

def expected(x):
    return np.cumsum(np.sort(x, 1), 1)

def check_sums(programs=16):
    x = numbers(programs)
    y = np.zeros_like(x)
    sums[(programs,)](x, y, B=1024)
    assert (y == expected(x)).all()

def check():
    for _ in range(3):
        check_add()
        check_sums()

def ready():
    return ctypes.c_int64.from_address(pool.POOL.fields[4]).value

def until(condition):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return True

"""


class Scripts:
    """Runs scripts, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.variables = {
            "TRITON_CACHE_DIR": str(folder),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore::DeprecationWarning",
        }
        self.script = folder / "attack.py"

    def run(self, text: str, *, limit: float = 240, **environment: str) -> str:
        """Return the output of a script, which must exit by itself with code 0."""
        self.script.write_text(KERNELS + text)
        variables = {**os.environ, **self.variables, "TILEWORK_NUM_THREADS": "4", **environment}
        done = run_python(str(self.script), env=variables, timeout=limit)
        assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout
