"""What is printed for an error of ours that nobody catches: the user's lines and what is wrong, no line of tilework.

    Traceback (most recent call last):
      File "train.py", line 30, in <module>
        add[(4,)](x, y, out, n, BLOCK=1000)
    tilework.errors.CompilationError:
    train.py:12:36: error: arange's range must be a power of 2
       12 |     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
          |                                    ^^^^^^^^^^^^^^^^^^^

Errors of passes, the interpreter, the sanitizer, tools, and wrong launches are shown in the same way; those of the interpreter
with the lines of the kernel that Python was running. Frames inside tilework are left out; TRITON_FRONT_END_DEBUGGING=1 shows
everything. Notebooks ask the exception itself.
"""

import contextlib
import faulthandler
import os
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tilework import errors, knobs
from tilework.errors import InterpreterError, TritonError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from traceback import FrameSummary

DURING = "\nDuring handling of the above exception, another exception occurred:\n"
STANDARD_ERROR = 2  # the descriptor: `sys.stderr` may be any object
SAID = (TypeError, ValueError, RuntimeError)
PACKAGE = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep


def render(error: BaseException, trace: TracebackType | None) -> list[str]:
    """The lines of the text in the module docstring."""
    import traceback  # lazily: only mistakes need it

    lines = [] if (earlier := handled(error)) is None else [*traceback.format_exception(earlier), DURING]
    traces = [trace]
    if isinstance(error, InterpreterError) and error.__cause__ is not None:
        traces.append(error.__cause__.__traceback__)
    frames = [frame for part in traces for frame in shown_frames(traceback.extract_tb(part))]
    lines += ["Traceback (most recent call last):", *traceback.format_list(frames)]
    kind = (
        type(error).__qualname__
        if type(error).__module__ == "builtins"
        else f"{type(error).__module__}.{type(error).__qualname__}"
    )
    find = getattr(error, "diagnostic", None)
    diagnostic = find() if find is not None else None
    words = f":\n{diagnostic.render()}" if diagnostic is not None else f": {error}"
    lines += [f"{kind}{words}", *getattr(error, "__notes__", ())]
    return [part for line in lines for part in str(line).rstrip("\n").split("\n")]


def shown_frames(frames: "Iterable[FrameSummary]") -> "Iterator[FrameSummary]":
    """Those of the user; between ours there are some of Python's, where decorators call what they decorate."""
    is_inside = False
    for frame in frames:
        is_inside = not is_shown(frame.filename) or (is_inside and frame.filename == contextlib.__file__)
        if not is_inside:
            yield frame


def is_shown(file: str) -> bool:
    """Whether a file is the user's: neither ours nor made by us on the way (binders, launchers)."""
    return not file.startswith(PACKAGE) and not file.startswith("<binder of ")


def handled(error: BaseException) -> BaseException | None:
    """The error of the user that was being handled when the kernel was compiled."""
    seen: set[int] = set()
    earlier: BaseException | None = error
    while earlier is not None and id(earlier) not in seen:
        seen.add(id(earlier))
        if earlier is not error and not is_from_inside(earlier):
            return earlier
        earlier = earlier.__cause__ or (None if earlier.__suppress_context__ else earlier.__context__)
    return None


def is_from_inside(error: BaseException) -> bool:
    """Whether an error came about while tilework was at work."""
    trace, code = error.__traceback__, None
    while trace is not None and not (code := trace.tb_frame.f_code).co_filename.startswith(PACKAGE):
        trace = trace.tb_next
    return trace is not None or code is None


def is_ours(error: BaseException | None) -> bool:
    """Whether the error is about a kernel or its launch, and to be shown as such."""
    return (isinstance(error, TritonError) or is_said(error)) and not knobs.compilation.front_end_debugging


def is_said(error: BaseException | None) -> bool:
    """Whether tilework itself raised the error: a wrong grid, an array without memory. One that happened to it is a bug, shown whole."""
    import linecache  # lazily: only mistakes need it

    trace = error.__traceback__ if isinstance(error, SAID) else None
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename
    return file.startswith(PACKAGE) and linecache.getline(file, trace.tb_lineno).lstrip().startswith("raise ")


def show(head: str, error: BaseException | None, trace: TracebackType | None) -> bool:
    """Print an error of ours; false if it is none, or cannot be printed like this: then Python's own way is the best one."""
    if not is_ours(error) or sys.stderr is None:
        return False
    assert error is not None
    try:
        text = "\n".join(render(error, trace))
        coding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(f"{head}{text}\n".encode(coding, "backslashreplace").decode(coding))
        sys.stderr.flush()
    except Exception:
        return False
    return True


def show_diagnostics() -> None:
    """Put ourselves in place of the functions of Python that are called for uncaught errors, unless the user has."""
    main, thread = sys.excepthook, threading.excepthook

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        return None if show("", error, trace) else main(kind, error, trace)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> Any:
        name = args.thread.name if args.thread is not None else "<unknown>"
        return None if show(f"Exception in thread {name}:\n", args.exc_value, args.exc_traceback) else thread(args)

    if main is sys.__excepthook__:
        sys.excepthook = uncaught
    if thread is threading.__excepthook__:
        threading.excepthook = uncaught_in_thread
    TritonError._render_traceback_ = in_notebook  # type: ignore[attr-defined]
    sys.meta_path.append(AbsentModules())


class AbsentModules:
    """Asked last, for modules that nobody has: one of ours is missing because the compiler is not installed, and that is said."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if not name.startswith("tilework."):
            return
        from tilework.runtime.compile.compiler_presence import PARTS, require_compiler  # lazily: only mistakes need it

        if name not in PARTS:  # for which it looks itself
            require_compiler()


def in_notebook(error: TritonError, *_: Any) -> list[str]:
    """What IPython shows for the error."""
    import traceback  # lazily: only mistakes need it

    return render(error, error.__traceback__) if is_ours(error) else traceback.format_exception(error)


def show_stack_on_crash() -> None:
    """Have Python print its stack at fatal signals if TRITON_ENABLE_PYTHON_STACKTRACE is set, unless the user has done so.

    A kernel that reads memory of others, or a compiler that aborts, ends the process without a message.
    """
    if knobs.is_on("TRITON_ENABLE_PYTHON_STACKTRACE") and not faulthandler.is_enabled():
        faulthandler.enable(STANDARD_ERROR)
