"""The errors that authors of kernels see, and how they are rendered.

Two renderings of the same facts. `CompilationError` is the exception; its text has the layout that Triton users (and
their tests) know: position in the function, the source up to the mistake, a caret, the message:

    at 3:8: (softmax.py, line 12)
    def kernel(a_ptr, b_ptr):
        ...
        c = a + b
            ^
    ValueError('...')

`Diagnostic` is the one for terminals: file, line and column, the span underlined, the values involved, what to do.

    softmax.py:12:9: error: shapes do not broadcast
       12 |     c = a + b
          |         ^^^^^ `a` is fp32[64, 16], `b` is fp32[32, 16]
       help: give both the same block size, or make axis 0 of one of them 1
"""

import ast
import linecache
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tilework.light_dataclass import light_dataclass

CONTEXT_LINES = 12
SHOWN_CALLS = 4  # of a long chain of calls, so many at each end
LIBRARY = os.path.join(os.path.dirname(__file__), "language")
LOCATION = re.compile(r'"([^"]+)":(\d+):(\d+)')  # as locations print it
NAME = re.compile(r"[\w.]+")
POSITIONS: list[
    Callable[[Any], list[tuple[str, int, int]]]
] = [  # file, line and column of a location; `ir.locations` knows better than text
    lambda loc: [(file, int(line), int(column)) for file, line, column in LOCATION.findall(str(loc or ""))]
]


class TritonError(Exception):
    """The base of every error that tilework raises about a kernel.

    Example:
        assert issubclass(tilework.CompilationError, tilework.TritonError)
    """


@light_dataclass
class Span:
    """A location in a user's file: 1-based line, 0-based columns, and the text of that line."""

    file: str
    line: int
    column: int
    end_column: int
    text: str

    def render(self, label: str = "") -> list[str]:
        """The line of source, underlined, with `label` behind the carets."""
        line = f"{self.line:5d}"
        width = max(1, min(self.end_column, len(self.text)) - self.column)
        underline = " " * self.column + "^" * width
        return [
            f"{line} | {self.text}".rstrip(),
            f"{' ' * len(line)} | {underline} {label}".rstrip(),
        ]


@light_dataclass
class Diagnostic:
    """One mistake, or one remark: where, what, with which values, and what to do about it."""

    span: Span
    title: str
    label: str = ""
    help: str = ""
    notes: tuple[str, ...] = ()
    callers: tuple["Span", ...] = ()
    severity: str = "error"

    def render(self) -> str:
        """The text for a terminal; see the module docstring."""
        lines = [f"{self.span.file}:{self.span.line}:{self.span.column + 1}: {self.severity}: {self.title}"]
        lines += self.span.render(self.label)
        lines += [f"   note: {note}" for note in self.notes]
        if self.help:
            lines.append(f"   help: {self.help}")
        hidden = len(self.callers) - 2 * SHOWN_CALLS
        for position, caller in enumerate(self.callers):
            if hidden > 1 and SHOWN_CALLS <= position < SHOWN_CALLS + hidden:
                lines += [f"   note: {hidden} more calls"] if position == SHOWN_CALLS else []
                continue
            lines.append(f"{caller.file}:{caller.line}:{caller.column + 1}: note: called from here")
            lines += caller.render()
        return "\n".join(lines)


@light_dataclass
class SourceMap:
    """The position of a function's (dedented) source in its file: line 1 of it is `first_line`, shifted by `indent`."""

    file: str
    first_line: int
    indent: int = 0

    def span(self, source: str, node: ast.AST) -> Span:
        """The span of `node` in the user's file."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        rows = source.split("\n")
        text = rows[line - 1] if line <= len(rows) else ""
        end = getattr(node, "end_col_offset", None) or column + 1
        if getattr(node, "end_lineno", line) != line:
            end = len(text)
        # ast counts columns in UTF-8 bytes, people in characters
        raw = text.encode()
        column, end = len(raw[:column].decode(errors="ignore")), len(raw[:end].decode(errors="ignore"))
        shift = self.indent
        return Span(self.file, self.first_line + line - 1, column + shift, end + shift, " " * shift + text)


class CompilationError(TritonError):
    """A kernel does not compile; the error is at `node` of the function whose text is `src`.

    The message shows the lines of the function up to the mistake, with a caret. `error_message` is None for the call
    sites around the innermost error. In that case, the innermost error is the `__cause__`, and its message follows
    those of the call sites, because logs and other processes have only the text.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out + tl.arange(0, 3), 1)  # not a power of two

        try:
            kernel.warmup(np.zeros(4), grid=(1,))
        except tilework.CompilationError as error:
            assert "power of 2" in str(error)
    """

    source_line_count_max_in_message = CONTEXT_LINES

    def __init__(
        self,
        src: str | None,
        node: ast.AST,
        error_message: str | None = None,
        *,
        where: SourceMap | None = None,
        label: str = "",
        title: str | None = None,
    ) -> None:
        self.src = src
        self.node = node
        self.error_message = error_message
        self.where = where
        self.label = label
        self.title = title
        self.message = self._format_message()
        super().__init__(self.message)

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(type(self), where=self.where, label=self.label, title=self.title)
        inner, parts = self.__cause__, (self.src, self.node, self.error_message)
        return (again, parts, {"__cause__": inner}) if isinstance(inner, CompilationError) else (again, parts)

    def __str__(self) -> str:
        inner = self.__cause__
        is_outer = self.error_message is None and isinstance(inner, CompilationError)
        return f"{self.message}\n{inner}" if is_outer else self.message

    def set_message(self, text: str) -> None:
        """Replace the text only."""
        self.error_message = text
        self.message = self._format_message()

    def _format_message(self) -> str:
        node: Any = self.node
        text = self.error_message
        if self.src is None:
            source = " <source unavailable>"
        elif hasattr(node, "lineno"):
            head = f"at {node.lineno}:{node.col_offset}:"
            if self.where is not None:
                head += f" ({self.where.file}, line {self.where.first_line + node.lineno - 1})"
            rows = self.src.split("\n")[: node.lineno]
            rows = rows[-self.source_line_count_max_in_message :]
            rows.append(" " * node.col_offset + "^")
            source = "\n".join([head, *rows])
        else:
            source = self.src
        return f"{source}\n{text}" if text else source

    def diagnostic(self) -> Diagnostic:
        """The innermost mistake with the chain of calls that led to it."""
        chain = list(_causes(self))
        title, advice = split_help(chain[-1].title or chain[-1].error_message or "")
        first, *rest = title.split("\n") if title else ("this does not compile",)
        # a mistake shows inside the library that it was handed to; the user's line is what can be changed
        while len(chain) > 1 and chain[-1].in_library:
            chain.pop()
        inner = chain[-1]
        return Diagnostic(
            span=inner.span,
            title=first,
            label=inner.label,
            help=advice,
            notes=tuple(rest),
            callers=tuple(outer.span for outer in reversed(chain[:-1])),
        )

    @property
    def span(self) -> Span:
        """The node in the user's file."""
        return (self.where or SourceMap("<unknown>", 1)).span(self.src or "", self.node)

    @property
    def in_library(self) -> bool:
        """The function is one of the language's own."""
        return self.where is not None and self.where.file.startswith(LIBRARY)


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` is false.

    Example:
        @tilework.jit
        def kernel(N: tl.constexpr):
            tl.static_assert(N > 4, "N is too small")

        try:
            kernel.warmup(N=2, grid=(1,))
        except tilework.errors.CompileTimeAssertionFailure as error:
            assert "N is too small" in str(error)
    """


class UnsupportedLanguageConstruct(CompilationError):
    """A kernel uses Python that the language does not have.

    Example:
        @tilework.jit
        def kernel(out):
            try:
                tl.store(out, 1)
            finally:
                pass

        try:
            kernel.warmup(np.zeros(1), grid=(1,))
        except tilework.errors.UnsupportedLanguageConstruct as error:
            assert "Try" in str(error) or "try" in str(error)
    """


@light_dataclass(frozen=False, eq=False)
class PassError(TritonError):
    """A pass found IR that it cannot rewrite; `loc` is the location of the op, whose text has the user's line."""

    message: str
    loc: object = None

    def __str__(self) -> str:
        if (shown := self.diagnostic()) is not None:
            return shown.render()
        return f"{self.loc}: {self.message}" if self.loc is not None else self.message

    def diagnostic(self) -> Diagnostic | None:
        """The message at the user's line; None where the location has no line of a Python file that can be read."""
        spans = [span_at(*position) for position in POSITIONS[-1](self.loc) or POSITIONS[0](self.loc)]
        spans = [span for span in spans if span.text and span.file.endswith(".py")]
        own = [span for span in spans if not span.file.startswith(LIBRARY)] or spans
        if not own:
            return None
        title, advice = split_help(self.message)
        return Diagnostic(own[0], title, help=advice, callers=tuple(own[1:]))


class ArgumentError(TritonError, TypeError):
    """The arguments of a launch do not fit the kernel; also a TypeError.

    Example:
        @tilework.jit
        def kernel(out, n):
            pass

        try:
            kernel[(1,)](np.zeros(1), "three")
        except tilework.errors.ArgumentError as error:
            assert "n" in str(error)
    """


class CompilerMissing(TritonError, ImportError):
    """Something must be compiled where the compiler is not installed."""


class OptionError(TritonError, KeyError):
    """A keyword of a launch is neither a parameter of the kernel nor an option; also a KeyError.

    Example:
        @tilework.jit
        def kernel(out):
            pass

        try:
            kernel[(1,)](np.zeros(1), num_wraps=4)
        except KeyError as error:
            assert "num_warps" in str(error)  # what was meant
    """

    def __str__(self) -> str:  # KeyError's own is the repr of its argument
        return str(self.args[0]) if self.args else ""


SANITIZER, SANITIZER_WARNING = "sanitizer: ", "sanitizer warning: "  # texts of its asserts begin so


class SanitizerError(TritonError, RuntimeError):
    """A kernel compiled with `sanitize` found a mistake while it ran; for memory accesses also an IndexError. See
    docs/sanitizer.md.

    Example:
        @tilework.jit(sanitize=True)
        def kernel(x):
            tl.store(x + 8, 1)

        try:
            kernel[(1,)](np.zeros(8))
        except tilework.errors.SanitizerError as error:
            assert "out of bounds" in str(error)
    """


class SanitizerWarning(UserWarning):
    """A kernel compiled with `sanitize` found a possible mistake and continued. See docs/sanitizer.md.

    Example:
        import warnings

        @tilework.jit(sanitize=True)
        def kernel(x, out, n):
            i = tl.arange(0, 4)
            tl.store(out + i, tl.load(x + i, mask=i < n))  # no `other`: undefined from n on

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kernel[(1,)](np.zeros(2), np.zeros(4), 2)
        assert any(issubclass(warning.category, tilework.errors.SanitizerWarning) for warning in seen)
    """


class BeyondTriton(UserWarning):
    """A kernel of a program written for Triton uses what Triton does not have."""


def warn_beyond_triton(refusal: str | Exception, file: str, line: int) -> None:
    """Warn at the user's line, with the message of Triton's refusal."""
    warn_at(f"Triton refuses this: {refusal}", BeyondTriton, file, line)


SHOWN: defaultdict[str, dict[Any, Any]] = defaultdict(dict)  # by file: Python shows each warning of a line once


def warn_at(text: str | Warning, category: type[Warning], file: str, line: int) -> None:
    """Warn at a line of the user's, once for all specialisations unless filters say otherwise."""
    warnings.warn_explicit(text, category, file, line, registry=SHOWN[file])


RETURNING: set[tuple[str, int]] = set()  # the lines that `warn_returned` has warned of


def warn_returned(name: str, file: str, line: int) -> None:
    """Warn once at the line where a kernel returns a value."""
    if (file, line) not in RETURNING:
        RETURNING.add((file, line))
        text = f"the kernel {name} returns a value, which its launches drop: store it through a pointer"
        warnings.warn_explicit(text, UserWarning, file, line)


class PerformanceWarning(UserWarning):
    """A kernel in the emulator made a memory access that would be slow on a GPU: see docs/emulator.md.

    Example:
        import warnings

        warnings.simplefilter("ignore", tilework.errors.PerformanceWarning)
    """


class ReportedError(TritonError):
    """An error with a message from another program; `prefix` names its origin."""

    prefix = ""

    def __init__(self, error_message: str | None = None) -> None:
        self.error_message = error_message or ""
        super().__init__(self.error_message)

    def __str__(self) -> str:
        return f"{self.prefix}{self.error_message}"


class InterpreterError(ReportedError):
    """A kernel failed in the interpreter; `__cause__` is the exception that it raised.

    Example:
        @tilework.jit(interpret=True)
        def kernel(out):
            tl.store(out, 1 // 0)

        try:
            kernel[(1,)](np.zeros(1))
        except tilework.InterpreterError as error:
            assert isinstance(error.__cause__, ZeroDivisionError)
    """


class StageError(TritonError, RuntimeError):
    """A compilation stage is impossible: LLVM rejects the text, a library or tool is missing, or a feature is not
    implemented.

    Example:
        assert issubclass(tilework.errors.StageError, RuntimeError)
    """


class BundleError(TritonError, RuntimeError):
    """A file of compiled kernels cannot be used: it is damaged, changed, of another version, or for other machines.

    Example:
        import pathlib, tempfile

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "app.tilebundle")
            file.write_bytes(b"something else")
            try:
                tilework.load(file)
            except tilework.errors.BundleError as error:
                assert "no bundle" in str(error)
            else:
                raise AssertionError("it was taken")
    """


class NotRecorded(TritonError, RuntimeError):
    """A launch needs compiled code or a choice of the autotuner that is missing, and TILEWORK_NO_JIT=1 forbids
    compiling.

    Example:
        @tilework.jit
        def kernel(out, N: tl.constexpr):
            tl.store(out, N)

        with tilework.knobs.runtime.scope():
            tilework.knobs.runtime.no_jit = True
            try:
                kernel[(1,)](np.zeros(1, np.int32), N=987_654_321)
            except tilework.errors.NotRecorded as error:
                assert "N=987654321" in str(error)
            else:
                raise AssertionError("it was compiled")
    """


class AutotunerError(ReportedError):
    """The autotuner has no configuration left to try.

    Example:
        assert str(tilework.errors.AutotunerError("nothing fits")) == "Autotuner error: nothing fits"
    """

    prefix = "Autotuner error: "


class PTXASError(ReportedError):
    """The assembler refused the PTX.

    Example:
        assert str(tilework.errors.PTXASError("line 3")) == "PTXAS error: line 3"
    """

    prefix = "PTXAS error: "


class PTXASKilled(PTXASError):
    """ptxas crashed or was killed; another attempt may succeed."""


class OutOfResources(TritonError):
    """A kernel needs more of a resource than the device has: `name` is the resource, `required` the amount, `limit` the
    maximum.

    The autotuner skips configurations that raise it.

    Example:
        error = tilework.OutOfResources(300_000, 232_448, "shared memory")
        assert error.limit == 232_448 and "shared memory" in str(error)
    """

    def __init__(self, required: int, limit: int, name: str) -> None:
        self.required, self.limit, self.name = required, limit, name
        super().__init__(
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}."
            " Reducing block sizes or `num_stages` may help."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.required, self.limit, self.name))


class DoesNotFit(OutOfResources):
    """An `OutOfResources` that is known before code generation."""


class UsageError(ValueError):
    """A mistake in a command line or in a file that it names, shown without a traceback."""


def message_of(error: BaseException) -> str:
    """The message of an error that a user can mend, without Python's jargon.

    >>> message_of(FileNotFoundError(2, "No such file or directory", "add.py"))
    'add.py: no such file or directory'
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        reason = error.strerror[0].lower() + error.strerror[1:]
        return f"{error.filename}: {reason}"
    if isinstance(error, UnicodeDecodeError):
        return f"not text: byte {error.object[error.start]:#04x} at position {error.start} is not {error.encoding}"
    return str(error) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[CompilationError]:
    """`error` and the compilation errors inside it, outermost first."""
    while isinstance(error, CompilationError):
        yield error
        error = error.__cause__


def split_help(text: str) -> tuple[str, str]:
    """Separate the advice from a message: ``"bad mask\\nhelp: compare it"`` -> ``("bad mask", "compare it")``."""
    head, _, advice = text.partition("\nhelp: ")
    return head.strip(), advice.strip()


def span_at(file: str, line: int, column: int) -> Span:
    """The span of a location with the text of its line, if the file is there; columns count from 0."""
    text = linecache.getline(file, line).rstrip("\n")
    name = NAME.match(text, column)
    return Span(file, line, column, max(column + 1, name.end() if name else 0), text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``": did you mean 'num_warps'?"``, or nothing where no known name is like it."""
    import difflib  # only mistakes need it

    folded = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), folded, n=1)
    return f": did you mean {folded[close[0]]!r}?" if close else ""
