"""Programs that have worker processes: how they start, fork and end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.python_programs import is_running, run_python, wait_until

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """
import concurrent.futures, os, signal, sys, threading, time
import numpy as np
import tilework
import tilework.language as tl
from tilework.runtime.tuning import precompile
from tilework.runtime.workers import pool

print("the script runs", flush=True)
precompile.Precompilation.costs = lambda self: (1.0, 1e-9)
SCALE = tl.constexpr(3)

@tilework.autotune(
    [tilework.Config({"BLOCK": 2**k}) for k in range(3, 9)], key=["n"], do_bench=lambda call, quantiles: call() or [1.0]
)
@tilework.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * SCALE, mask=i < n)

def tune():
    scale[lambda meta: (2,)](np.ones(32, np.float32), 32)

def processes():
    return [worker.process.pid for worker in pool.shared_pool().workers.values() if worker.process is not None]
"""


def program(tmp_path: Path, text: str, *command: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run a script, and check that the processes whose ids it prints last end soon."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "script_cache")}
    environment |= {"TILEWORK_COMPILE_WORKERS": "2", "TILEWORK_NATIVE_LAUNCH": "0", **settings}
    ran = run_python(*command, str(path), env=environment)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("workers ")]
    assert lines, ran.stderr
    wait_until(lambda: not any(is_running(int(process)) for line in lines for process in line.split()[1:]), 10.0)
    return ran


def test_a_script_is_not_run_again(tmp_path: Path) -> None:
    ran = program(tmp_path, "tune()\nprint('workers', *processes())\n", TRITON_PRINT_AUTOTUNING="1")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("the script runs") == 1 and "the script runs" not in ran.stderr
    assert "configurations compiled in other processes" in ran.stdout and len(ran.stdout.splitlines()[-1].split()) > 1
    assert "autotuning scale: 6/6" in ran.stderr and "s left" in ran.stderr


def test_a_script_that_says_triton(tmp_path: Path) -> None:
    text = "import triton\nscale = triton.autotune(scale.configs, ['n'])(triton.jit(scale.fn.fn))\ntune()\n"
    ran = program(
        tmp_path, text + "print('workers', *processes())\n", "-m", "tilework.as_triton", TRITON_PRINT_AUTOTUNING="1"
    )
    assert ran.returncode == 0, ran.stderr
    assert "configurations compiled in other processes" in ran.stdout


@pytest.mark.parametrize(
    "end, code",
    [
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(3)", 3),
        ("sys.exit(4)", 4),
    ],
)
def test_a_program_that_ends_in_the_middle_leaves_nothing(end: str, code: int, tmp_path: Path) -> None:
    text = f"""
signal.signal(signal.SIGINT, signal.default_int_handler)
def wait(*futures, **how):
    while not processes():
        time.sleep(0.01)
    print("workers", *processes(), flush=True)
    {end}
precompile.wait = wait
concurrent.futures.Future.cancel = lambda self: False  # nothing is compiled here, also if the workers start late
precompile.Precompilation.compile_here = lambda self, index: None
tune()
"""
    began = time.monotonic()
    ran = program(tmp_path, text)
    assert ran.returncode == code and time.monotonic() - began < 100, ran.stderr
    assert ("KeyboardInterrupt" in ran.stderr) == (code == -signal.SIGINT)


def test_a_daemon_thread_that_tunes_does_not_keep_the_program(tmp_path: Path) -> None:
    text = """
threading.Thread(target=tune, daemon=True).start()
while not pool.POOL or not processes():
    time.sleep(0.01)
print("workers", *processes(), flush=True)
"""
    ran = program(tmp_path, text)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr


def test_a_program_that_forks(tmp_path: Path) -> None:
    """Workers end with their program while its child lives, and the child has workers of its own."""
    text = """
tune()
own = processes()
child = os.fork()
if not child:
    assert not pool.POOL
    scale.cache.clear()
    scale.fn.device_caches.clear()
    os.environ["TRITON_CACHE_DIR"] += "_child"
    tune()
    assert not set(own) & set(processes())
    print("workers", *processes(), flush=True)
    if os.fork():
        sys.exit(5)
    time.sleep(20)  # a process that has inherited everything
print("workers", *own, flush=True)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
print("sleeps", flush=True)
"""
    ran = program(tmp_path, text)
    assert ran.returncode == 0 and ran.stdout.splitlines()[-1] == "sleeps", ran.stderr
