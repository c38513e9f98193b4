"""Compiling from several threads at once: no errors, and the same products as from one."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, threading
import tilework.language as tl
from tests.fuzz.kernels import generate_kernel
from tests.fuzz.run import load
from tilework.targets.base import GPUTarget
from tilework.targets.llvm import types
from tilework.compiler import ASTSource, lower
from pathlib import Path

THREADS, KERNELS = 4, 1
folder = Path(sys.argv[1])
sources = []
for seed in range(THREADS * KERNELS):
    kernel = generate_kernel(seed)
    sources.append(ASTSource(load(kernel, folder), kernel.signature))
stages = ["ttir", "ttcir", "llir", "obj"]

def products(source):
    made = lower(source, GPUTarget("cpu", "host", 1), stages)
    return [made[stage] for stage in stages]

found, errors, start = {}, [], threading.Barrier(THREADS)

def work(number):
    start.wait()
    try:
        for index in range(number, len(sources), THREADS):
            found[index] = products(sources[index])
        for width in range(1, 40):
            found["types", number, width] = types.vector(types.integer(width), 3)
    except BaseException as error:
        errors.append(f"kernel {index}: {error!r}")

sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setswitchinterval(5e-3)
assert not errors, errors
for width in range(1, 40):
    assert len({found["types", number, width] for number in range(THREADS)}) == 1, width
for index, source in enumerate(sources):
    for stage, one, many in zip(stages, products(source), found[index]):
        assert one == many, f"kernel {index}: {stage} differs"
print("ok")
"""
ROOT = Path(__file__).parents[2]


def test_threads_compile_different_kernels_at_once(tmp_path: Path) -> None:
    """In a new process: nothing is imported, no type exists and no cache is filled when the threads begin."""
    script = tmp_path / "threads.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TILEWORK_DEVICE": "native"}
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "ok", done.stderr[-3000:]
