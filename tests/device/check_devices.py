"""The device follows the arguments, on a machine with a GPU: torch's tensors of both kinds and NumPy arrays in one
process.

python -m tests.device.check_devices
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tilework
import tilework.language as tl
from tests.device.table import check, expect, expect_error, run
from tests.installed_example import ROOT, first_example

N = 1000
AS_TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
x = torch.arange(8.0)
try:
    print(double[(1,)](x, 8, BLOCK=8).metadata.target.backend, x[1].item())
except ValueError as error:
    print(str(error)[:75])
"""


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def launched(x: Any, y: Any, out: Any, kernel: Any = add) -> str:
    return kernel[(4,)](x, y, out, N, BLOCK=256).metadata.target.backend


def arrays(kind: str) -> tuple[Any, Any, Any]:
    """Two drawn arrays and a third for their sum."""
    draw = np.random.default_rng(0)
    made = [draw.standard_normal(N, dtype=np.float32) for _ in range(3)]
    return tuple(made if kind == "numpy" else (torch.from_numpy(one).to(kind) for one in made))  # type: ignore[return-value]


def program(text: str, *command: str, **environment: str) -> str:
    """Return the output of a program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(text)
        variables = {name: value for name, value in os.environ.items() if name != "TILEWORK_DEVICE"}
        done = subprocess.run(
            [sys.executable, *command, str(script)], capture_output=True, text=True, check=False, cwd=ROOT,
            env={**variables, "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)), **environment},
        )  # fmt: skip
    expect(done.returncode, 0) if done.returncode == 0 else expect(done.stderr[-800:], "")
    return done.stdout.strip()


@check
def three_kinds_of_memory_in_turn() -> str:
    for _ in range(3):
        for kind, backend in (("numpy", "cpu"), ("cuda", "cuda"), ("cpu", "cpu")):
            x, y, out = arrays(kind)
            expect(launched(x, y, out), backend)
            expect(bool((out == x + y).all()), True)
    return f"kernels under {sorted(map(str, add.device_caches))}"


@check
def mixes_are_refused() -> str:
    x, y, out = arrays("cuda")
    said = expect_error(
        ValueError, "x_ptr (cuda:0), out_ptr (cuda:0) on a GPU, y_ptr in", lambda: launched(x, y.cpu(), out)
    )
    expect_error(ValueError, "out_ptr in the memory of the host", lambda: launched(x, y, out.cpu().numpy()))
    return said[:60]


@check
def pinned_memory_goes_with_tensors_of_the_gpu() -> str:
    x, y, out = arrays("cuda")
    expect(launched(x, y.cpu().pin_memory(), out), "cuda")
    expect(bool((out == x + y).all()), True)
    return ""


@check
def tuning_on_both() -> str:
    grid = lambda meta: (tilework.cdiv(N, meta["BLOCK"]),)
    tuned = tilework.autotune([tilework.Config({"BLOCK": size}) for size in (128, 512)], key=["n"])(
        tilework.jit(add.fn)
    )
    for kind in ("cpu", "cuda", "cpu", "cuda"):
        x, y, out = arrays(kind)
        tuned[grid](x, y, out, N)
        expect(bool((out == x + y).all()), True)
    expect(len(tuned.cache), 2)
    return str([config.kwargs["BLOCK"] for config in tuned.cache.values()])


@check
def another_gpu() -> str:
    if torch.cuda.device_count() < 2:
        return "one GPU only: not checked"
    x, y, out = (one.to("cuda:1") for one in arrays("cuda"))
    expect(launched(x, y, out), "cuda")
    expect((bool((out == x + y).all()), torch.cuda.current_device()), (True, 0))
    return "on cuda:1 while cuda:0 is current"


@check
def readme_first_example() -> str:
    text = first_example() + "\nassert np.allclose(out, x + y)\nprint('right')\n"
    for device in ({}, {"TILEWORK_DEVICE": "auto"}, {"TILEWORK_DEVICE": "native"}, {"TILEWORK_DEVICE": "emulator"}):
        expect(program(text, **device), "right")
    return "with a GPU, and without one in the emulator"


@check
def programs_that_import_triton() -> str:
    command = ("-m", "tilework.as_triton")
    said = program(AS_TRITON, *command)
    expect(said[:66], "Pointer argument (at 0) cannot be accessed from Triton (cpu tensor")
    expect(program(AS_TRITON, *command, TILEWORK_DEVICE="auto"), "cpu 2.0")
    return said


@check
def microseconds_of_a_launch() -> str:
    """The same kernel object on both devices, in machine code."""

    def least(call: Callable[[], Any]) -> float:
        found = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                call()
            found.append(time.perf_counter() - start)
            torch.cuda.synchronize()
        return min(found) / 200 * 1e6

    return ", ".join(f"{kind} {least(lambda a=arrays(kind): launched(*a)):.2f}" for kind in ("numpy", "cpu", "cuda"))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], "both devices"))
