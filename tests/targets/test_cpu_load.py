"""Kernels from the cache in a new process: nothing of the compiler is imported, and the results are the same."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
before = set(sys.modules)
import tilework
import tilework.language as tl
{at_import}

@tilework.jit
def scaled(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

{launches}
print(*sorted(name for name in HEAVY if name in sys.modules and name not in before))
"""
ON_THE_HOST = """
x = np.arange(100, dtype=np.float32)
out = np.zeros_like(x)
for factor in (2.0, 3.0):
    scaled[(2,)](x, out, 100, factor, BLOCK=64)
assert (out == 3 * x).all()
"""
FOR_A_GPU = """
from tilework.target import GPUTarget
types = {"x": "*fp32", "out": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}
tilework.compile(tilework.ASTSource(scaled, types, {"BLOCK": 64}), target=GPUTarget.parse("cuda:90"))
"""
HEAVY = (
    *("xdsl", "llvmlite.binding", "importlib.metadata", "shutil", "subprocess", "tempfile"),
    *("tilework.ir", "tilework.frontend", "tilework.analysis", "tilework.transforms", "tilework.layouts"),
    *(
        "tilework.oracles",
        "tilework.runtime.compile.stages",
        "tilework.targets.llvm.compile",
        "tilework.targets.llvm.builder",
    ),
)
AT_IMPORT = f"HEAVY = {HEAVY!r}; assert not {{*HEAVY, 'llvmlite', 'tilework.targets'}} & (set(sys.modules) - before)"


def launch(folder: Path, launches: str = ON_THE_HOST) -> list[str]:
    """The parts of the compiler that a new process loads for two launches."""
    script = folder / "scaled.py"
    script.write_text(PROGRAM.format(at_import=AT_IMPORT, launches=launches))
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TILEWORK_DEVICE": "native"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment["PATH"] = str(folder)  # a ptxas that is a script is asked for its release in every process
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_kernel_from_the_cache_needs_no_compiler(tmp_path: Path) -> None:
    assert "xdsl" in launch(tmp_path)
    assert launch(tmp_path) == []


def test_a_kernel_for_a_gpu_from_the_cache_needs_no_compiler(tmp_path: Path) -> None:
    """Nor ptxas, nor what would ask it for its release; "launching" is compiling here."""
    assert "xdsl" in launch(tmp_path, FOR_A_GPU)
    assert launch(tmp_path, FOR_A_GPU) == []


MOST_MODULES = 235  # of tilework, for the first kernel of a process; the fewer, the faster


def test_a_first_launch_imports_few_modules(tmp_path: Path) -> None:
    own = "print(sum(name.split('.')[0] == 'tilework' for name in sys.modules), 'xdsl.parser' in sys.modules)"
    count, loads_parser, *_ = launch(tmp_path, f"{ON_THE_HOST}\n{own}")
    assert int(count) <= MOST_MODULES and loads_parser == "False"
