"""Programs of the CUDA toolkit on this machine, and its library of elementary functions.

    >>> find_tool("ptxas", None, None)
    NvidiaTool(path='/usr/local/cuda/bin/ptxas', version='13.0')

They come from the PATH, a CUDA toolkit or NVIDIA's wheels; the newest wins. Nothing is bundled, and nothing is
required. Running a program for its release takes 20 ms, so the results are kept (`RELEASE_KEEPERS`).
"""

import os
import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

TOOLKIT = "/usr/local/cuda"
LIBDEVICE = os.path.join("nvvm", "libdevice", "libdevice.10.bc")
# functions of layers above that remember releases: keeper(identity of a program, its query)
RELEASE_KEEPERS: list[Callable[[str, Callable[[], str | None]], str | None]] = []


class NvidiaTool(NamedTuple):
    """A program that runs here: its path and its release, such as "12.8"."""

    path: str
    version: str

    @staticmethod
    def from_path(path: str) -> "NvidiaTool | None":
        """The tool at `path`, or None if it does not run or does not print its release."""
        version = release(path)
        return None if version is None else NvidiaTool(path, version)


def find_tool(binary: str, path: str | None, toolkit: str | None) -> NvidiaTool | None:
    """The tool at `path` if it runs, else the newest `binary` that does, else None."""
    return (path and NvidiaTool.from_path(path)) or newest(binary, toolkit or TOOLKIT)


@cache
def release(path: str) -> str | None:
    """The release in the output of ``path --version``."""
    if os.sep in path and not os.path.isfile(path):
        return None
    identity = identity_of(path) if RELEASE_KEEPERS else None
    return printed_release(path) if identity is None else RELEASE_KEEPERS[0](identity, lambda: printed_release(path))


def identity_of(path: str) -> str | None:
    """A value that changes whenever a program does; None for a script, which may call another program tomorrow."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            is_program = file.read(4) == b"\x7fELF"
    except OSError:
        return None
    facts = (os.path.realpath(path), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return repr(facts) if is_program else None


def printed_release(path: str) -> str | None:
    """The release that the program itself prints."""
    import subprocess  # lazily: an answer that is kept needs no process

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
    paths = [on_path(binary), os.path.join(toolkit, "bin", binary)]
    paths += in_wheels(os.path.join("bin", binary))
    tools = [tool for path in paths if path and (tool := NvidiaTool.from_path(path))]
    return max(tools, key=lambda tool: [int(part) for part in tool.version.split(".")], default=None)


@cache
def find_libdevice(toolkit: str | None) -> str | None:
    """libdevice.10.bc of a toolkit, of the toolkit that has ptxas, or of a wheel; None if there is none."""
    found = [os.path.join(toolkit or TOOLKIT, LIBDEVICE), *reversed(in_wheels(LIBDEVICE))]
    if (ptxas := on_path("ptxas")) is not None:
        found.append(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(ptxas))), LIBDEVICE))
    return next((path for path in found if os.path.isfile(path)), None)


def in_wheels(path: str) -> list[str]:
    """Files of NVIDIA's wheels: ``in_wheels("bin/ptxas")``."""
    wheels = find_spec("nvidia")
    if wheels is None:
        return []
    import glob  # lazily: few have wheels

    folders = wheels.submodule_search_locations or ()
    return [found for folder in folders for found in sorted(glob.glob(os.path.join(folder, "*", path)))]


def on_path(binary: str) -> str | None:
    """The first program of this name on the PATH; `shutil.which` takes longer to load than to look."""
    paths = (os.path.join(folder, binary) for folder in os.get_exec_path() if folder)
    return next((path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path)), None)
