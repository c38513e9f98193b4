"""Where the compile server of this user is, and how one is started.

    $XDG_RUNTIME_DIR/tilework/9f86d081884c7d65      or <temporary folder>/tilework-<user>/...

The folder is the user's own and nobody else may enter it; both ends also ask the kernel who the other one is. The name of the
socket is a hash of whatever a server cannot change for a client: the package, Python, the cores, and the view of the file
system. So another tilework never answers, and a process that is bound to few cores gets a server that is bound to them.
"""

import _socket as socket  # without the classes of `socket`, which take longer to load than a server to answer
import hashlib
import json
import os
import stat
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from tilework import knobs
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars
from tilework.runtime.kernel_cache.key import triton_key
from tilework.runtime.workers.line_channel import Channel

CREDENTIALS = struct.Struct("3i")  # process, user, group
START = os.path.join(os.path.dirname(__file__), "start_server.py")
FIXED = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME", "PYTHONPATH")  # what acts when a process starts
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # who forks should have no threads
LONGEST_PATH = 100  # of a socket, in bytes; the system's limit is little more


def socket_path() -> str | None:
    """The path of the socket, whose folder exists; None where there can be no server."""
    is_program = not sys.executable or getattr(sys, "frozen", False)  # no Python, but a program
    if not hasattr(socket, "SO_PEERCRED") or is_program or not os.path.isfile(START):  # it may be in an archive
        return None
    name, base = server_name(), knobs.getenv("XDG_RUNTIME_DIR")
    folders = [os.path.join(base, "tilework")] if base and os.path.isabs(base) else []
    folders += [os.path.join(place, f"tilework-{os.getuid()}") for place in temporary_folders()]
    for folder in folders:
        path = os.path.join(folder, name)
        if len(os.fsencode(path)) <= LONGEST_PATH and is_own_folder(folder):
            return path
    return None


def temporary_folders() -> list[str]:
    """Where `tempfile` looks, too; loading that takes a few milliseconds."""
    named = (knobs.getenv(key) for key in ("TMPDIR", "TEMP", "TMP"))
    return [place for place in (*named, "/tmp", "/var/tmp", "/usr/tmp") if place and os.path.isabs(place)]


def is_own_folder(folder: str) -> bool:
    """Whether a folder, which is made if need be, is this user's and nobody else's."""
    try:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def server_name() -> str:
    """What a server is called that can work for this process."""
    environment = [knobs.getenv(key) for key in FIXED]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    environment += [knobs.getenv(key) for key in (*knobs.nvidia.variables, "CUDA_HOME")]  # what the compiler remembers
    settings = f"{cache_invalidating_env_vars()} {knobs.runtime.cpu_dots}"
    parts = [triton_key(), sys.executable, sys.prefix, str(environment), settings, str(cores), file_system()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def file_system() -> str:
    """Which mounts this process sees: a container may share the folder of the socket and little else."""
    try:
        return os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""


def connect(path: str) -> Channel | None:
    """A connection to the server at a path, if one listens there and is this user's."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        connection.connect(path)
        if is_own_peer(connection):
            return Channel(connection)
    except OSError:
        pass
    connection.close()
    return None


def is_own_peer(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user, as the kernel says."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return CREDENTIALS.unpack(data)[1] == os.getuid()


def is_ready(path: str) -> bool:
    """Whether the server at a path has loaded the compiler: its socket can be executed then (`start_server.py`)."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IXUSR)
    except OSError:
        return False


def start(path: str, target: Sequence[Any] | None, in_background: bool = False, owner: int | None = None) -> bool:
    """Start a server for a path: a new interpreter, never a fork of this process, and no child of it. It loads the compiler for a target, or
    for the device that this machine is likely to have; with `in_background` while nobody else wants the cores. It ends with the process `owner`."""
    search = [os.path.abspath(folder) for folder in sys.path if isinstance(folder, str)]
    command = [sys.executable, START, json.dumps([path, search, triton_key(), target, in_background, owner])]
    environment = {**knobs.environment_without(()), **ONE_THREAD}
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    detached = ["/bin/sh", "-c", 'exec "$@" &', "sh", *command]  # ends at once, which takes Python ten times as long
    for arguments in (detached, command):
        try:
            child = os.posix_spawn(arguments[0], arguments, environment, file_actions=nothing)
        except OSError:
            continue
        with suppress(ChildProcessError):  # somebody waits for all children
            os.waitpid(child, 0)
        return True
    return False
