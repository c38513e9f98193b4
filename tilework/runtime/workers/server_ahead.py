"""A compile server that loads on another core while a program does something else between its kernels' definition and their launch.

    @tilework.jit                               this file was changed after the cache: a server is started
    def kernel(...): ...
    x = torch.rand(n, device="cuda")            meanwhile it loads the compiler
    kernel[grid](x)                             asks it (`first_kernels.py`), if it has done half of that by now

Whether a kernel is in the cache is known when it is launched, and then it is too late. But who has changed a file since something was last
put into the cache is likely to compile. So a start sets the cache's time, and there is one for each change of a file, or a new cache: a library
whose kernels nobody launches does not start one in every process. The server ends with this process, except at a terminal.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tilework import knobs

LOOKED_AT: set[str] = set()  # files with kernels
OURS = "tilework."


def expect_compilation(fn: Callable[..., Any]) -> None:
    """Called for each kernel that is defined: start a server if it pays, once."""
    file = getattr(getattr(fn, "__code__", None), "co_filename", None)
    if file is None or file in LOOKED_AT or getattr(fn, "__module__", None) is None or fn.__module__.startswith(OURS):
        return
    LOOKED_AT.add(file)
    with suppress(OSError, ValueError):  # no file, no cache to share, a word that is no mode: the launch says it
        if is_changed(file) and is_wanted():
            begin()


def is_wanted() -> bool:
    return (
        knobs.compilation.server in ("auto", "start")
        and knobs.autotuning.workers != 0
        and knobs.cache.manager_class is None
        and not (knobs.runtime.no_jit or knobs.runtime.bundle)
        and hasattr(os, "pidfd_open")
        and os.getloadavg()[0] + 1 < len(os.sched_getaffinity(0))  # one more core than others and this process need
    )


def is_changed(file: str) -> bool:
    """Whether a file was changed after something was last put into the cache, and not in the future."""
    changed = os.stat(file).st_mtime
    try:
        return os.stat(knobs.cache.dir).st_mtime < changed <= time.time()
    except FileNotFoundError:
        return True


def begin() -> None:
    """Start a server, unless there is one."""
    # lazily: few programs come here
    from tilework.runtime.compile.compiler_presence import has_compiler, is_compiler_loaded
    from tilework.runtime.workers import server_place

    path = server_place.socket_path() if has_compiler() and not is_compiler_loaded() else None
    if path is None:
        return
    os.makedirs(knobs.cache.dir, exist_ok=True)
    os.utime(knobs.cache.dir)
    if (channel := server_place.connect(path)) is not None:
        channel.close()
    else:
        server_place.start(path, None, owner=None if server_place.is_for_others() else os.getpid())
