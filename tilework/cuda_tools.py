"""Programs of the CUDA toolkit on this machine.

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
    wheels = find_spec("nvidia")
    for folder in (wheels.submodule_search_locations or ()) if wheels else ():
        paths += sorted(glob.glob(os.path.join(folder, "*", "bin", binary)))
    tools = [tool for path in paths if path and (tool := NvidiaTool.from_path(path))]
    return max(tools, key=lambda tool: [int(part) for part in tool.version.split(".")], default=None)
