"""Scripts that launch kernels in odd situations; they all start with the same kernels, and with what checks them.

print(Scripts(folder).run("check()\nprint(pool.POOL.count)", TILEWORK_NUM_THREADS="300"))
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import tilework

ROOT = Path(tilework.__file__).parent.parent
KERNELS = """
import atexit, gc, os, resource, signal, sys, threading, time
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

"""


SERVER = """
import gc, json, os, sys
import numpy, numpy.random
import tilework, tilework.language
from tilework.targets.cpu.run import pool
for line in sys.stdin:
    script, stdout, stderr, environment = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
for number, path in enumerate((os.devnull, stdout, stderr)):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
os.environ.update(environment)
__file__ = script
exec(compile(open(script).read(), script, "exec"))
"""


class Scripts:
    """Runs scripts, each in a process of its own that has imported everything and launched nothing: it is forked from one that does no
    more than that, and ends as any other."""

    def __init__(self, folder: Path) -> None:
        variables = {"TRITON_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
        self.script, self.outputs = folder / "attack.py", (folder / "stdout", folder / "stderr")
        self.server = subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **variables}, bufsize=0,
        )  # fmt: skip

    def run(self, text: str, *, limit: float = 240, **environment: str) -> str:
        """What a script prints; it must end by itself, and well."""
        self.script.write_text(KERNELS + text)
        request = str(self.script), *map(str, self.outputs), {"TILEWORK_NUM_THREADS": "4", **environment}
        self.server.stdin.write(f"{json.dumps(request)}\n".encode())
        process = int(self.server.stdout.readline())
        ready, _, _ = select.select([self.server.stdout], [], [], limit)
        if not ready:
            os.kill(process, signal.SIGKILL)
        code = int(self.server.stdout.readline())
        stdout, stderr = (path.read_text() for path in self.outputs)
        assert code == 0, f"ended with {code}{'' if ready else ', as it hung'}: {stderr[-2000:]}"
        return stdout
