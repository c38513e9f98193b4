"""Machine code of the runtime itself, compiled once for a machine and kept in the cache like a kernel.

    pool = OwnObject("tilework_pool", pool_text, 1)
    pool.begin()        # where the cache does not have it, a thread compiles it while this one goes on
    pool.take()         # the object file

A new machine compiles some 3000 lines of this for its first launch, as long as all else that the launch does; LLVM
needs neither Python nor its lock for that.
"""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from tilework import knobs

if TYPE_CHECKING:
    from tilework.targets.llvm.apart import Work

PROVIDERS: list[Callable[[str], bytes | None]] = []  # bundles, which bring objects of these names


# the files with the interface of machine code and Python: kernels contain constants of them
LAYOUTS = "targets/cpu/run/interface.py", "runtime/launch/native/layout.py"


def layout_key() -> str:
    """The hash of these files; empty where they cannot be read. Between versions it may change with every
    commit.
    """
    content, package = hashlib.sha256(), os.path.dirname(os.path.abspath(knobs.__file__)) + "/../"
    try:
        for name in LAYOUTS:
            with open(package + name, "rb", 0) as file:
                content.update(file.read())
    except OSError:
        return ""
    return content.hexdigest()[:16]


def own_name(name: str, system: str = sys.platform, machine: str = "") -> str:
    """The name of an object in a bundle: ``linux-x86_64/tilework_pool``."""
    return f"{system}-{machine or platform.machine().lower()}/{name}"


class OwnObject:
    """An object file, of the LLVM text that `text` writes; from a bundle, or from the cache on disk unless that is the
    user's own.
    """

    def __init__(self, name: str, text: Callable[[], str], level: int = 0, arguments: tuple[int, ...] = ()) -> None:
        self.name, self.text, self.level, self.arguments = name, text, level, arguments
        self.variant = "".join(f"-{argument}" for argument in arguments)
        self.data: bytes | None = None
        # and the process whose thread does it: a forked child has no such thread
        self.work: tuple[int, Work] | None = None

    def key(self) -> str:
        from tilework.runtime.kernel_cache.managers import triton_key  # lazily: one from a bundle needs no cache
        from tilework.targets.cpu.pipeline import native_identity  # lazily: only launches on the host need it

        return hashlib.sha256(f"{self.name}-{triton_key()}-{native_identity()}{self.variant}".encode()).hexdigest()

    def is_possible(self) -> bool:
        """Return True if the object file exists or can be compiled."""
        if self.given():
            return True
        # lazily: one from a bundle does not need it
        from tilework.runtime.compile.compiler_presence import has_compiler

        return has_compiler()

    def given(self) -> bool:
        """Return True if the object file is loaded already, or is in a bundle."""
        if self.data is None:
            found = (provide(own_name(f"{self.name}{self.variant}")) for provide in PROVIDERS)
            self.data = next((data for data in found if data is not None), None)
        return self.data is not None

    def begin(self) -> bool:
        """Start the compilation if it is needed; return False if this call started it: a caller with another way should
        take that."""
        if self.given() or (self.work is not None and self.work[0] == os.getpid()):
            return True
        # lazily: one from a bundle needs neither a compiler nor a cache
        from tilework.runtime.compile.compiler_presence import require_compiler
        from tilework.runtime.kernel_cache.managers import load_entry, takes_own_code

        require_compiler()
        if takes_own_code() and (files := load_entry(self.key(), self.name)) is not None:
            self.data = files.get(f"{self.name}.obj")
        if self.data is None:
            self.work = os.getpid(), self.begun()
        return self.data is not None

    def begun(self) -> "Work":
        """Start the thread that compiles the object file, and return it."""
        # to store it may need `shutil`, in a thread that must not import
        import shutil  # noqa: F401  # pyright: ignore[reportUnusedImport]

        # lazily: loads LLVM, which a kernel from the cache does not need
        import tilework.runtime.kernel_cache.compile_once  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from tilework.targets.llvm.apart import begin
        from tilework.targets.llvm.compile import host_target_machine

        return begin(self.make, self.text(), host_target_machine(), self.key())

    def make(self, text: str, machine: object, key: str) -> bytes:
        """Compile and keep it: in a thread of its own, which imports nothing, or a fork would leave a lock behind."""
        from tilework.runtime.kernel_cache.compile_once import making  # lazily, and imported by now
        from tilework.runtime.kernel_cache.managers import store_entry, takes_own_code
        from tilework.targets.llvm.compile import to_object

        object_file = f"{self.name}.obj"
        with making(key, self.name, "", is_shared=takes_own_code()) as claim:
            if claim.found is not None and object_file in claim.found:
                return claim.found[object_file]
            began = time.perf_counter()
            data = to_object(text, self.level, machine)
            if takes_own_code():
                files = {object_file: data, f"{self.name}.json": b"{}"}
                paths = store_entry(key, self.name, files, seconds=time.perf_counter() - began)
                claim.is_done = bool(paths)
        return data

    def take(self) -> bytes:
        """Wait for the object file, and return it."""
        self.begin()
        if self.data is None and self.work is not None:
            self.data = self.work[1].result()
        assert self.data is not None, "it was in the cache, or has begun"
        return self.data


@cache
def pool_object() -> OwnObject:
    """Return the object of the thread pool."""
    # lazily: only launches on the host need it
    from tilework.targets.cpu.run.pool import POOL, POOL_LEVEL, host_pool_text

    made = OwnObject("tilework_pool", host_pool_text, POOL_LEVEL)
    POOL.source = made.take
    return made
