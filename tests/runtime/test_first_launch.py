"""The first launch on a machine whose cache is empty: through Python, while the launcher is compiled."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, types
import numpy as np
import tilework
import tilework.language as tl
from tilework.runtime.launch.native import machine as native_machine

@tilework.jit
def more(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + 1)

x = np.zeros(64, np.float32)
launch = more[(1,)]
launch(x, B=64)
if native_machine.is_possible():
    assert type(launch) is types.FunctionType and not native_machine.MADE
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
else:  # it has no thread that compiles
    more[(1,)](x, B=64)
    more[(1,)](x, B=64)
    os._exit(int(not (x == 3).all()))
{rest}
"""
LATER = """
launch(x, B=64)
more[(1,)](x, B=64)
bound = more.bind(x, B=64, grid=(1,))
bound()
if native_machine.is_possible():
    assert {types.BuiltinFunctionType} == {type(more[(1,)]), type(bound)}
assert (x == 4).all(), x
"""


def run(folder: Path, rest: str) -> set[str]:
    """Return the contents of the cache after the program."""
    script = folder / "more.py"
    script.write_text(PROGRAM.format(rest=rest))
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TILEWORK_DEVICE": "native"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name for path in (folder / "cache").rglob("*.obj")}


def test_later_launches_are_native(tmp_path: Path) -> None:
    run(tmp_path, LATER)


def test_what_is_begun_is_kept_for_the_next_process(tmp_path: Path) -> None:
    assert run(tmp_path, "") == {"tilework_pool.obj", "tilework_launcher.obj", "more.obj"}
