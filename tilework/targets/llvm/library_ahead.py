"""LLVM's library is opened by a thread while Python loads the compiler: it takes a hundredth of a second, and no
interpreter.

open_ahead()                                                # returns at once
from tilework.targets.llvm.binding import llvm              # later: finds the library open, or waits for it
"""

import ctypes
import os
import sys
import threading
from contextlib import suppress

from tilework.process.forks import held_at_fork

OPENING = held_at_fork(threading.Lock())  # a child of a fork would find the locks of the linker taken for ever


def open_ahead() -> None:
    """Begin to open the library, unless it is."""
    if sys.platform == "linux" and "llvmlite.binding" not in sys.modules:
        with suppress(RuntimeError):  # no more threads
            threading.Thread(target=open_library, name="tilework open LLVM").start()


def open_library() -> None:
    """Open the file that llvmlite is going to open. Errors are left to llvmlite, which reports them."""
    import llvmlite  # lazily, as the next: says where it is, and opens nothing
    from llvmlite.utils import get_library_name

    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    with OPENING, suppress(AttributeError):
        dlopen = ctypes.CDLL(None).dlopen  # Python's import would hold the GIL during the load
        dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        dlopen(os.fsencode(path), os.RTLD_NOW)
