"""The stack of a program that dies of a signal, if TRITON_ENABLE_PYTHON_STACKTRACE asks for it.

    $ TRITON_ENABLE_PYTHON_STACKTRACE=1 python train.py
    Fatal Python error: Segmentation fault

    Current thread 0x0000ffff9f0c7020 (most recent call first):
      File ".../tilework/backends/llvm/compile.py", line 61 in to_object
      ...
      File "train.py", line 41 in step

A kernel that reads memory that is not its own, or a compiler that aborts, ends the process without a word. Python can still
say where it was. The processes that compile for the autotuner inherit the setting.
"""

import faulthandler

from tilework.knobs import is_on

STANDARD_ERROR = 2  # the number: `sys.stderr` may be anything, and its owner may be what crashed


def show_stack_on_crash() -> None:
    """Ask Python for its stack at fatal signals, if the user wants it and has not set that up already."""
    if is_on("TRITON_ENABLE_PYTHON_STACKTRACE") and not faulthandler.is_enabled():
        faulthandler.enable(STANDARD_ERROR)
