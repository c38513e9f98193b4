"""What is printed for a kernel that does not compile and an error that nobody catches: the user's lines and the diagnostic.

    Traceback (most recent call last):
      File "train.py", line 30, in <module>
        add[(4,)](x, y, out, n, BLOCK=1000)
    tilework.errors.CompilationError:
    train.py:12:36: error: arange's range must be a power of 2
       12 |     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
          |                                    ^^^^^^^^^^^^^^^^^^^

Frames inside tilework are left out; TRITON_FRONT_END_DEBUGGING=1 shows everything. Notebooks ask the exception itself.
"""

import os
import sys
import threading
from types import TracebackType
from typing import Any

from tilework import knobs
from tilework.errors import CompilationError

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def render(error: CompilationError, trace: TracebackType | None) -> list[str]:
    """The lines of the text in the module docstring."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(PACKAGE)]
    lines = ["Traceback (most recent call last):", *(line.rstrip("\n") for line in traceback.format_list(frames))]
    kind = type(error)
    return [*lines, f"{kind.__module__}.{kind.__qualname__}:", *error.diagnostic().render().split("\n")]


def is_ours(error: BaseException | None) -> bool:
    """Whether the error is about a kernel, and to be shown as such."""
    return isinstance(error, CompilationError) and not knobs.compilation.front_end_debugging


def show_diagnostics() -> None:
    """Put ourselves before the functions that Python calls for uncaught errors."""
    main, thread = sys.excepthook, threading.excepthook

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        if is_ours(error) and sys.stderr is not None:
            assert isinstance(error, CompilationError)
            print("\n".join(render(error, trace)), file=sys.stderr)
            return None
        return main(kind, error, trace)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> Any:
        if is_ours(args.exc_value) and sys.stderr is not None:
            assert isinstance(args.exc_value, CompilationError)
            name = args.thread.name if args.thread is not None else "<unknown>"
            print(f"Exception in thread {name}:", *render(args.exc_value, args.exc_traceback), sep="\n", file=sys.stderr)
            return None
        return thread(args)

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    CompilationError._render_traceback_ = lambda self: render(self, self.__traceback__)  # type: ignore[attr-defined]
