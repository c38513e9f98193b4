"""Programs of LLVM on this machine, for what llvmlite has not: `ld.lld`, `llvm-mc`, `clang`. None is required.

They come from ROCm, from the PATH, and `ld.lld` also from the package ziglang (``pip install tilework[amd]``).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from tilework import knobs


def commands(name: str) -> Iterator[list[str]]:
    """How a program can be called, the best way first."""
    rocm = os.path.join(knobs.getenv("ROCM_PATH") or "/opt/rocm", "llvm", "bin")
    yield from ([path] for place in (rocm, None) if (path := shutil.which(name, path=place)))
    if name == "ld.lld" and find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", name]


def made_by(command: Sequence[str], data: bytes) -> tuple[bytes | None, str]:
    """What a program makes of a file: the bytes, or None and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = (os.path.join(folder, file) for file in ("kernel.in", "kernel.out"))
        with open(source, "wb") as file:
            file.write(data)
        try:
            done = subprocess.run([*command, source, "-o", made], capture_output=True, text=True, check=False)
        except OSError as error:
            return None, str(error)
        if done.returncode or not os.path.isfile(made):
            return None, "\n".join(done.stderr.strip().splitlines()[:3])
        with open(made, "rb") as file:
            return file.read(), ""
