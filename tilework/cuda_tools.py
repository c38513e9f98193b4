"""Programs of the CUDA toolkit on this machine, and its library of elementary functions.

    >>> find_tool("ptxas", None, None)
    NvidiaTool(path='/usr/local/cuda/bin/ptxas', version='13.0')

They come from the PATH, a CUDA toolkit or NVIDIA's wheels; the newest wins. Nothing is bundled, and nothing is required.
"""

import glob
import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

TOOLKIT = "/usr/local/cuda"
LIBDEVICE = os.path.join("nvvm", "libdevice", "libdevice.10.bc")


class NvidiaTool(NamedTuple):
    """A program that runs here: its path and its release, such as "12.8"."""

    path: str
    version: str

    @staticmethod
    def from_path(path: str) -> "NvidiaTool | None":
        """The tool at `path`, or None if it does not run or does not tell its release."""
        version = release(path)
        return None if version is None else NvidiaTool(path, version)


def find_tool(binary: str, path: str | None, toolkit: str | None) -> NvidiaTool | None:
    """The tool at `path` if it runs, else the newest `binary` that does, else None."""
    return (path and NvidiaTool.from_path(path)) or newest(binary, toolkit or TOOLKIT)


@cache
def release(path: str) -> str | None:
    """What ``path --version`` calls its release."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"release (\d+\.\d+)", done.stdout) if done.returncode == 0 else None
    return found[1] if found else None


@cache
def newest(binary: str, toolkit: str) -> NvidiaTool | None:
    """The newest `binary` on the PATH, in the toolkit and in NVIDIA's wheels."""
    binary = binary.removesuffix("-blackwell")  # a ptxas that is new enough serves every architecture
    paths = [shutil.which(binary), os.path.join(toolkit, "bin", binary)]
    paths += in_wheels(os.path.join("bin", binary))
    tools = [tool for path in paths if path and (tool := NvidiaTool.from_path(path))]
    return max(tools, key=lambda tool: [int(part) for part in tool.version.split(".")], default=None)


@cache
def find_libdevice(toolkit: str | None) -> str | None:
    """libdevice.10.bc of a toolkit, of the toolkit that has ptxas, or of a wheel; None if there is none."""
    found = [os.path.join(toolkit or TOOLKIT, LIBDEVICE), *reversed(in_wheels(LIBDEVICE))]
    if (ptxas := shutil.which("ptxas")) is not None:
        found.append(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(ptxas))), LIBDEVICE))
    return next((path for path in found if os.path.isfile(path)), None)


def in_wheels(path: str) -> list[str]:
    """Files of NVIDIA's wheels: ``in_wheels("bin/ptxas")``."""
    wheels = find_spec("nvidia")
    folders = (wheels.submodule_search_locations or ()) if wheels else ()
    return [found for folder in folders for found in sorted(glob.glob(os.path.join(folder, "*", path)))]
