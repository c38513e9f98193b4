"""The errors that a launch raises if its kernel fails: an `InterpreterError` whose `__cause__` is the kernel's
exception.

A kernel that would not have compiled fails with an error that is a `CompilationError` too, at the node that was
running:

    y = tl.reshape(tl.arange(0, 64), (32,))    InterpretedCompilationError: ValueError('reshape() cannot change ...')

Errors about values (an index out of bounds, a false `device_assert`) exist only at run time. They are marked by
`at_run_time`, or are of the classes in `RUN_TIME`.
"""

import ast
from itertools import islice
from types import FrameType
from typing import Any, TypeVar

import tilework.language as language
from tilework.errors import (
    LIBRARY,
    CompilationError,
    CompileTimeAssertionFailure,
    InterpreterError,
    SourceMap,
    UnsupportedLanguageConstruct,
)
from tilework.language.advice import with_advice
from tilework.language.function import JITCallable
from tilework.oracles.interpreter.allowed_memory import MARK, AccessError

RUN_TIME = (AccessError, MemoryError, RecursionError, OSError, NotImplementedError)
PYTHONS_LIMIT = "maximum recursion depth exceeded"  # Python also says in what, which varies
Error = TypeVar("Error", bound=BaseException)


def at_run_time(error: Error) -> Error:
    """Mark an error as one about values, not about the program."""
    error.at_run_time = True  # pyright: ignore[reportAttributeAccessIssue]
    return error


class InterpretedCompilationError(InterpreterError, CompilationError):
    """A kernel that failed in the interpreter, and does not compile either."""

    def __init__(self, text: str, title: str, src: str | None, node: ast.AST, where: SourceMap | None) -> None:
        CompilationError.__init__(self, src, node, text, where=where, title=title)
        self.error_message = text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.error_message, self.title, self.src, self.node, self.where)


class InterpretedStaticAssertion(InterpretedCompilationError, CompileTimeAssertionFailure):
    """A `tl.static_assert` is false."""


class InterpretedUnsupported(InterpretedCompilationError, UnsupportedLanguageConstruct):
    """Python that the tile language does not support."""


class Refused(SyntaxError):
    """Python that no kernel may have, at a node of the function's tree in its file."""

    def __init__(self, text: str, node: ast.AST) -> None:
        super().__init__(text)
        self.node = node
        self.function: JITCallable | None = None


def failure(error: Exception) -> InterpreterError:
    """Return the error that a launch raises for an error of its kernel."""
    if isinstance(error, RecursionError) and str(error).startswith(PYTHONS_LIMIT):
        error = RecursionError(f"{PYTHONS_LIMIT}: do the calls of the kernel's functions end?")
    if isinstance(error, RUN_TIME) or getattr(error, "at_run_time", False):
        return InterpreterError(repr(error))
    src, node, where = location_of(error)
    code = ast.get_source_segment(src, node) if src is not None else None
    text = f"{error}{similar_name(error)}" if isinstance(error, NameError) else None
    scope = found[0].f_globals if (found := kernel_frame(error)) is not None else {}
    return class_of(error)(repr(error), with_advice(error, text, code, scope), src, node, where)


def similar_name(error: NameError) -> str:
    """Advice for an undefined name: the most similar one that the kernel sees; empty if there is none."""
    if error.name is None or (found := kernel_frame(error)) is None:
        return ""
    if hasattr(language, error.name):
        return f"\nhelp: did you mean `tl.{error.name}`?"
    import difflib  # lazily: only mistakes need it

    frame = found[0]
    known = [name for name in (*frame.f_locals, *frame.f_globals) if not name.startswith("_")]
    close = difflib.get_close_matches(error.name, known, n=1, cutoff=0.75)
    return f"\nhelp: did you mean `{close[0]}`?" if close else ""


def class_of(error: Exception) -> type[InterpretedCompilationError]:
    if isinstance(error, SyntaxError):
        return InterpretedUnsupported
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_static_assert = trace is not None and trace.tb_frame.f_code.co_name == "static_assert"
    return InterpretedStaticAssertion if is_static_assert else InterpretedCompilationError


def location_of(error: Exception) -> tuple[str | None, ast.AST, SourceMap | None]:
    """Return (text of the function, node, its source map) of the kernel's innermost line outside of the library."""
    if isinstance(error, Refused) and error.function is not None:
        where = error.function.where
        return error.function.src, in_source(error.node, where), where
    if (found := kernel_frame(error)) is None:
        return None, ast.Pass(), None
    frame, instruction, line = found
    fn: JITCallable = frame.f_globals[MARK]
    where = fn.where
    node: Any = ast.Pass(lineno=line - where.first_line + 1, col_offset=0, end_lineno=line - where.first_line + 1)
    return (fn.src if fn.has_source else None), with_columns(node, frame, instruction, where), where


def kernel_frame(error: BaseException) -> tuple[FrameType, int, int] | None:
    """Return (frame, instruction, line of the file) of the kernel's innermost line outside of the library."""
    trace, found = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        if MARK in frame.f_globals and not frame.f_code.co_filename.startswith(LIBRARY):
            found = frame, trace.tb_lasti, trace.tb_lineno
        trace = trace.tb_next
    return found


def in_source(node: Any, where: SourceMap) -> ast.AST:
    """The position of a node of the file, in the text of its function."""
    first = where.first_line - 1
    return ast.Pass(
        lineno=node.lineno - first,
        end_lineno=node.end_lineno - first,
        col_offset=node.col_offset - where.indent,
        end_col_offset=node.end_col_offset - where.indent,
    )


def with_columns(node: Any, frame: FrameType, instruction: int, where: SourceMap) -> ast.AST:
    """Return the node with the columns of an instruction, as far as Python knows them."""
    _, end_line, column, end_column = next(islice(frame.f_code.co_positions(), instruction // 2, None))
    if column is not None and end_column is not None and end_line is not None:
        node.col_offset, node.end_col_offset = column - where.indent, end_column - where.indent
        node.end_lineno = end_line - where.first_line + 1
    return node
