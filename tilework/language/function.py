"""The object that `@jit` makes: a function's source, its parameters, what it depends on, and a hash of all that.

    >>> @jit
    ... def double(x):
    ...     return x + x
    >>> double.arg_names
    ['x']

Nothing is compiled here. The frontend reads from a `JITFunction` its syntax tree (`parse`) and the names it can see
(`get_capture_scope`); the runtime reads its parameters and `cache_key`, which changes when anything changes that
the compiled code depends on: the text, its file and line, the functions it calls, the `constexpr` globals it reads.
`portable_key` is the same without files and lines.
"""

import ast
import inspect
import linecache
import os
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from tilework.errors import LIBRARY, SourceMap
from tilework.language.compile_time import (
    ACTIVE,
    RunTimeOnly,
    _unwrap_if_constexpr,
    base_value,
    constexpr,
    constexpr_type,
)
from tilework.language.compile_time import tuple as kernel_tuple
from tilework.language.constant_text import (
    EMPTY_CELL,
    RULES,
    Writer,
    annotation_text,
    mark_of,
)
from tilework.language.dependencies import (
    TOO_DEEP,
    Dependencies,
    deeply,
    dependencies_of,
    levels_of,
    library_dependencies,
)
from tilework.language.origins import digest, is_of_language, module_of, name_of
from tilework.language.parameters import FunctionSignature, KernelParam, params_of, signature_of
from tilework.language.typing.python_names import check_compile_time
from tilework.process.forks import cached_property, held_at_fork

if TYPE_CHECKING:
    from tilework.language.dependencies import Block

SOURCES = {"revision": 0}  # counts the functions whose source was replaced: hashes of an earlier revision are void
ON_CHANGE: list[Callable[[], None]] = []  # called after each of these
HASHING = held_at_fork(threading.RLock())  # one for all functions: those that call each other are hashed together
BEING_HASHED: "list[JITCallable]" = []  # each because the one before refers to it

# what is found again from the rest, and what only this process can use
DERIVED = frozenset(
    ("_lines", "_tree", "_dependencies", "_block", "_used_global_vals", "device_caches", "_globals", "_written")
    + ("_argument_globals", "_compiled_as", "_bind_grid", "_hash_lock", "_referred")
)


class JITCallable:
    """A Python function known by its source: what `@jit` and `@constexpr_function` have in common."""

    runs_at_compile_time = False
    needs_source = True
    _is_in_cycle = False
    _mark = ""  # of a key that no other process can have
    _referred: "dict[int, tuple[str, Any]]" = {}  # replaced, never changed
    _of_function: tuple[str, ...] = ("signature",)  # what is found in the Python function
    _hash_lock: Any = HASHING
    __signature__ = FunctionSignature()

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not inspect.isfunction(fn):
            raise TypeError(f"a Python function is needed, got {type(fn).__name__}")
        if fn.__code__.co_name == "<lambda>" or inspect.iscoroutinefunction(fn):
            raise TypeError(f"{fn.__qualname__}: a function made by a plain `def` is needed")
        self.fn = self._written = fn
        self._file: str = fn.__code__.co_filename
        # the line of the first decorator: as reported, which a program may change, and as an index into `_lines`
        self._line = self._first_line = fn.__code__.co_firstlineno
        # the lines are taken now (the file may change later); the block is cut out of them at first use
        self._lines = source_lines(fn)
        self._is_updated = False
        if self.needs_source and not self.has_source:
            raise no_source(fn)
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self._src: str | None = None
        self._hash: str | None = None
        self._portable, self._portable_revision = "", 0
        self._hash_revision = 0
        self._tree: ast.Module | None = None
        self._dependencies: Dependencies | None = None
        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__globals__ = fn.__globals__
        self.__module__ = fn.__module__

    def __copy__(self) -> Self:
        """Another object for the same function."""
        made = type(self).__new__(type(self))
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_bind_grid"})
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that shares what the function refers to, as `copy.deepcopy` does for Python functions."""
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by name, as Python does with functions: the receiver imports it. Without its Python function (``f.fn =
        None``, as torch's compile workers send it), pickle the text, the parameters and the hash that are known."""
        return self.__qualname__ if self.fn is not None else object.__reduce_ex__(self, protocol)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the parts that only this process can use."""
        for name in ("src", "_header", *self._of_function):  # so that the lines of the file need not be pickled
            getattr(self, name)
        if self._portable:
            self.cache_key  # noqa: B018  # while it is known what the function refers to
        return {
            name: value for name, value in self.__dict__.items() if name not in DERIVED and not is_method(value, self)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lines, self._tree, self._dependencies = [], None, None
        self._is_updated = True  # the text is all there is

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters of the Python function; few functions of the library need theirs."""
        return signature_of(self._written)

    @property
    def has_source(self) -> bool:
        """Return True if the text of the function is known: what `exec` makes has none."""
        return self._is_updated or self._has_lines

    @property
    def _has_lines(self) -> bool:
        return len(self._lines) >= self._first_line

    @cached_property
    def raw_src(self) -> list[str]:
        """The lines of the function in its file, decorators included."""
        if not self._has_lines:
            raise no_source(self.fn)
        return self._block.lines

    @cached_property
    def _block(self) -> "Block":
        """The function in its file."""
        from tilework.language.dependencies import block_of  # lazily: not every kernel is launched

        return self._parsed(lambda: block_of(self._lines[self._first_line - 1 :]))

    @cached_property
    def _header(self) -> tuple[int, str]:
        """Return the number of lines before the `def` in its file, and the white space in front of it; 0 for a
        replaced source whose location in the file is unknown."""
        if not self._has_lines:
            return 0, ""
        try:
            block = self._block
        except ValueError:
            if self._is_updated:
                return 0, ""
            raise
        first = block.lines[0]
        return block.header, first[: len(first) - len(first.lstrip())]

    @property
    def starting_line_number(self) -> int:
        """The line of the first decorator; programs that replace the source may say where the new one comes from."""
        return self._line

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self._change_text(_line=line)

    @property
    def def_line(self) -> int:
        """The line of the `def` in its file."""
        return self._line + self._header[0]

    @property
    def _reported_file(self) -> str:
        """The file that compiled kernels name in their messages; "" for a notebook's cell, whose name differs in every
        process, and for the library, which moves with the compiler."""
        return self._file if os.path.isfile(self._file) and not self._file.startswith(LIBRARY) else ""

    @property
    def src(self) -> str:
        """The dedented text from `def` on; read-only."""
        if self._src is None:
            self._src = self._text()
        return self._src

    def _text(self) -> str:
        """The text of the file: lines inside a long string may be indented less than the function."""
        header, indent = self._header
        lines = (line.removeprefix(indent) for line in self.raw_src[header:])
        return "".join(lines).rstrip() + "\n"

    @property
    def where(self) -> SourceMap:
        """The location of line 1 of `src` in the user's file."""
        return SourceMap(self._file, self.def_line, len(self._header[1]))

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replace the source."""
        self._change_text(_src=new_src, _is_updated=True)

    def _change_text(self, **attributes: Any) -> None:
        """Change the source or its location; the hash and everything derived from the text is forgotten."""
        with HASHING:
            vars(self).update(attributes)
            self._hash = self._tree = self._dependencies = None
            self._portable = ""
            self.__dict__.pop("_used_global_vals", None)
            SOURCES["revision"] += 1
        for callback in ON_CHANGE:
            callback()

    def parse(self) -> ast.Module:
        """The syntax tree of `src`, parsed once."""
        if self._tree is None:
            self._tree = self._parsed_text() if self._is_updated else self._block.tree
        return self._tree

    def _parsed_text(self) -> ast.Module:
        from tilework.language.dependencies import block_of_text  # lazily: few texts are replaced

        return self._parsed(lambda: block_of_text(self.src)).tree

    def _parsed(self, find: "Callable[[], Block | None]") -> "Block":
        """Return the parsed source, or raise an error if it is no function."""
        try:
            block = find()
        except SyntaxError as error:
            raise ValueError(f"{self._fn_name}: its file does not have the text of this function: {error}") from None
        except (RecursionError, MemoryError):  # of Python's parser
            raise RecursionError(f"{self._fn_name}: {TOO_DEEP}") from None
        if block is None:
            raise ValueError(f"{self._fn_name}: the source of a jit function must be one `def`")
        return block

    def get_capture_scope(self) -> dict[str, Any]:
        """Globals, overlaid with the values of closure variables."""
        closure = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return {**self.__globals__, **{name: cell.cell_contents for name, cell in closure if cell != EMPTY_CELL}}

    def _flatten_ir(self, handles: list[Any]) -> None:
        """Add nothing: a function has no value at run time."""

    @property
    def type(self) -> Any:
        """The type of the function as a value in a kernel: a constant."""
        return constexpr_type(self)

    @cached_property
    def is_positional(self) -> bool:
        """Return True if every parameter takes one argument and can be passed by position."""
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        return all(param.kind in kinds for param in self.signature.parameters.values())

    @property
    def dependencies(self) -> Dependencies:
        """The functions and global values that the text refers to."""
        if self._dependencies is None:
            tree = self.parse()
            self._dependencies = deeply(levels_of(tree), lambda: dependencies_of(tree, self))
        return self._dependencies

    @property
    def used_global_vals(self) -> Any:
        """(name, id of its dict) -> (value when first seen, the dict) for each plain global that is read; what was set
        otherwise."""
        found = self.__dict__.get("_used_global_vals")
        return self.dependencies.global_values if found is None and self.fn is not None else found

    @used_global_vals.setter
    def used_global_vals(self, values: dict[tuple[str, int], tuple[Any, Any]] | None) -> None:
        self._used_global_vals = values

    @property
    def hash(self) -> str | None:
        """`cache_key` if it was computed, else None."""
        return self._hash

    @hash.setter
    def hash(self, value: str | None) -> None:
        self._hash, self._hash_revision = value, SOURCES["revision"]

    @property
    def cache_key(self) -> str:
        """SHA-256 over all that the compiled code depends on, and over the lines that its messages name."""
        if self._hash is not None and (self.fn is None or self._hash_revision == SOURCES["revision"]):
            return self._hash
        key = self.portable_key
        if self.fn is None or not self.is_of_library:
            lines = [f"{each.def_line} {each._reported_file}" for each in (self, *functions_among(self._referred))]
            key = digest(f"{key} {lines}".encode())
        self.hash = key
        return key

    @property
    def portable_key(self) -> str:
        """SHA-256 over all that the compiled code depends on, the same wherever the file is: see `constant_text`."""
        if self._portable and (self.fn is None or self._portable_revision == SOURCES["revision"]):
            return self._portable
        if self.fn is None:
            assert self._hash is not None, f"{self._fn_name} was pickled without its function before it had a key"
            return self._hash
        with HASHING:
            return self._hash_now()

    def _hash_now(self) -> str:
        """Compute the key, and keep it unless it contains only the name of a function whose key is being computed too,
        as in a recursion."""
        if self in BEING_HASHED:
            for function in BEING_HASHED[BEING_HASHED.index(self) + 1 :]:
                function._is_in_cycle = True
            return f"recursion:{self.__qualname__}"
        self._is_in_cycle = False
        BEING_HASHED.append(self)
        try:
            writer = Writer()
            text = self.key_text(writer)
            key = digest(text.encode())
        finally:
            BEING_HASHED.pop()
        self._referred, self._mark = writer.seen, mark_of(text)
        if not self._is_in_cycle:
            self._portable, self._portable_revision = key, SOURCES["revision"]
        return key

    @property
    def is_of_library(self) -> bool:
        """Return True for a function of this package, whose text and lines are part of the version."""
        return self._file.startswith(LIBRARY) and is_of_language(self.fn) and not self._is_updated

    @property
    def referred(self) -> dict[int, tuple[str, Any]]:
        """The functions of kernels and the classes that the key contains; see `Writer.seen`."""
        self.portable_key  # noqa: B018  # it collects them
        return self._referred

    def key_text(self, writer: Writer) -> str:
        """The text of which the key is a hash: the function, and all that it refers to."""
        if self.is_of_library:
            found = library_dependencies(self)
            own = f"{name_of(self.fn)} {self.starting_line_number}"
            return f"{own}\n{writer.items((found.functions, found.defaults))}"
        found = self.dependencies
        settings = getattr(self, "noinline", False), writer.text(getattr(self, "_repr", None))
        notes = [f"{name}: {annotation_text(note)}" for name, note in self._annotations.items()]
        outside = [f"{path}={writer.text(value)}" for path, value in found.references.items()]
        return "\n".join((f"{len(self.src)} {self.src}", f"{settings} {notes}", *outside, writer.text(found.defaults)))

    @property
    def _annotations(self) -> Mapping[str, Any]:
        """The annotations of the parameters."""
        if sys.version_info < (3, 14):
            return self.fn.__annotations__
        return {name: one.annotation for name, one in self.signature.parameters.items() if one.annotation != one.empty}

    def __hash__(self) -> int:
        return hash(self._fn_name)


def no_source(fn: Callable[..., Any]) -> ValueError:
    from tilework.language.dependencies import no_source  # lazily: only mistakes need it

    return no_source(fn)


def is_method(value: Any, owner: Any) -> bool:
    """Return True if `value` is a method that is bound to `owner`, perhaps stored in it under another name."""
    return getattr(value, "__self__", None) is owner


def source_lines(fn: Callable[..., Any]) -> list[str]:
    """The lines of the function's file, or what is found for code without one ("<string>", "<stdin>")."""
    file = fn.__code__.co_filename
    if not file.startswith("<"):
        if not file.startswith(LIBRARY):
            linecache.checkcache(file)  # a file that was written again since it was last read is read again
        return linecache.getlines(file, fn.__globals__)
    from tilework.language.dependencies import unfiled_lines  # lazily: most functions have a file

    return unfiled_lines(fn)


def function_text(writer: Writer, function: JITCallable) -> str:
    """The text of a function of kernels that is used as a constant."""
    if function.fn is not None and writer.is_whole and not function.is_of_library:
        known = writer.again(function)
        return known if known is not None else f"{function.__name__}({function.key_text(writer)})"
    key = function.cache_key if writer.is_located else function.portable_key
    writer.seen.update(function._referred)
    if function.fn is None or not function.is_of_library:
        writer.seen[id(function)] = key, function
    return f"{function.__name__}#{key}{function._mark}"


RULES[JITCallable] = function_text


def functions_among(seen: Mapping[int, tuple[str, Any]]) -> Iterator[JITCallable]:
    """The functions of kernels among what a key refers to."""
    return (value for _, value in seen.values() if isinstance(value, JITCallable))


class Bound:
    """A function taken from an aggregate: calling it passes the aggregate first."""

    def __init__(self, __self__: Any, __func__: Any) -> None:
        self.__self__ = __self__
        self.__func__ = __func__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)


RULES[Bound] = Writer.bound


class BoundJITMethod(Bound):
    """A jit method."""


class BoundConstexprFunction(Bound):
    """A constexpr_function."""

    def __init__(self, instance: Any, fn: Any) -> None:
        super().__init__(instance, fn)


class JITFunction(JITCallable):
    """A kernel, or a function that kernels call. See the module docstring."""

    _of_function = ("signature", "params", "arg_names")

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Iterable[str | int] | None = None,
        do_not_specialize_on_alignment: Iterable[str | int] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(fn)
        self.version = version
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self.debug = debug
        self.noinline = bool(noinline)
        self._repr = repr
        self.launch_metadata = launch_metadata
        self.module = fn.__module__
        self.pre_run_hooks: list[Callable[..., Any]] = []

    @cached_property
    def params(self) -> list[KernelParam]:
        """The parameters with their annotations."""
        return params_of(self.signature, self.do_not_specialize, self.do_not_specialize_on_alignment)

    @cached_property
    def arg_names(self) -> list[str]:
        return [param.name for param in self.params]

    @cached_property
    def constexprs(self) -> list[int]:
        """Indices of the compile-time parameters."""
        return [param.num for param in self.params if param.is_constexpr]

    def is_gluon(self) -> bool:
        return False

    def repr(self, specialization: Any) -> str:
        """The symbol of this kernel for one specialisation."""
        return self._fn_name if self._repr is None else self._repr(specialization)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        from tilework.language.notebook import function_html  # lazily: only notebooks need it

        return function_html(self)

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(*args, **kwargs)` before every launch."""
        if not callable(hook):
            raise TypeError("a pre-run hook must be callable")
        self.pre_run_hooks.append(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (active := ACTIVE.get()) is not None:  # a kernel is being interpreted, and this is a call in it
            return active.call_JitFunction(self, args, kwargs)
        raise RuntimeError(
            f"Cannot call @jit'd function `{self.__name__}` outside of the scope of a kernel:"
            f" launch it over a grid, `{self.__name__}[grid](...)`"
        )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method of an aggregate is bound to it; any other object just holds the function."""
        return BoundJITMethod(instance, self) if getattr(instance, "__triton_aggregate__", False) else self

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        raise RuntimeError(
            f"`{self.__name__}[grid](...)` needs a device, and this version of tilework has none yet: it compiles"
            " kernels to TTIR (`tilework compile`) and evaluates that (`tilework.oracles.evaluator.evaluate`)"
        )

    def __repr__(self) -> str:
        return f"JITFunction({self.module}:{self.__qualname__})"


def run_on_host(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of an interpreted kernel in which those of the language mean nothing, as outside of kernels."""
    active = ACTIVE.set(None)
    try:
        return function(*args, **kwargs)
    finally:
        ACTIVE.reset(active)


class ConstexprFunction(JITCallable):
    """A Python function that kernels run at compile time; on the host it is that function.

    Of a run-time value it may read the type, as ``x.dtype`` and ``x.shape``, and return the value; computing with it is
    refused.
    """

    runs_at_compile_time = True

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        plain = [unwrap_nested(arg, _unwrap_if_constexpr) for arg in args]
        named = {key: unwrap_nested(value, _unwrap_if_constexpr) for key, value in kwargs.items()}
        try:
            result = self.fn(*plain, **named)
        except RunTimeOnly:
            check_compile_time(self, (*plain, *named.values()))
            raise
        if _semantic is None:
            return result
        return result if isinstance(result, JITCallable | constexpr) or is_language_value(result) else constexpr(result)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundConstexprFunction(instance, self)

    def _text(self) -> str:
        """The text, which Inductor copies into its own files. A function of the library calls others of its module
        there, so its text is an import of it."""
        if not is_of_language(self.fn):
            return super()._text()
        name = self.fn.__name__
        found = f"    from {module_of(self.fn)} import {name} as function\n"
        return f"def {name}(*args, **kwargs):\n{found}    return function(*args, **kwargs)\n"

    def key_text(self, writer: Writer) -> str:
        """The text of the code that Python runs at compile time."""
        if self.is_of_library:
            return super().key_text(writer)
        self.dependencies  # noqa: B018  # it refuses functions that may not be called
        return f"{self.src if self._is_updated else ''}{writer.function(self.fn, is_setting=True)}"

    def __repr__(self) -> str:
        return f"ConstexprFunction({self.__module__}:{self.__qualname__})"


def unwrap_nested(value: Any, unwrap: Callable[[Any], Any]) -> Any:
    """Replace constexprs by their values, also inside lists and tuples; a tuple with named fields keeps them."""
    value = unwrap(value)
    if type(value) in (list, tuple):
        return type(value)(unwrap_nested(item, unwrap) for item in value)
    if isinstance(value, tuple) and (make := getattr(value, "_make", None)) is not None:
        return make(unwrap_nested(item, unwrap) for item in value)
    if isinstance(value, kernel_tuple):
        items = (unwrap_nested(item, unwrap) for item in value.values)
        return tuple(items) if value.fields is None else named_tuple_class(tuple(value.fields))._make(items)
    return value


@cache
def named_tuple_class(fields: tuple[str, ...]) -> Any:
    """Return the class of tuples with these fields; a kernel's tuple does not know the one that it was made from."""
    return namedtuple("tuple", fields)  # noqa: PYI024  # its fields are not known before


def is_language_value(value: Any) -> bool:
    """A value that flows through a kernel as it is (an aggregate, for example)."""
    return (
        isinstance(value, base_value) or getattr(value, "__triton_aggregate__", False) or isinstance(value, ModuleType)
    )


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Iterable[str | int] | None = None,
    do_not_specialize_on_alignment: Iterable[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Any:
    """The decorator of the language's own functions: `tilework.jit` for functions that are called but never
    launched."""
    settings = (version, do_not_specialize, do_not_specialize_on_alignment, debug, noinline, repr, launch_metadata)

    def decorate(function: Callable[..., Any]) -> JITFunction:
        return JITFunction(function.fn if isinstance(function, JITFunction) else function, *settings)

    return decorate(fn) if fn is not None else decorate


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Let kernels call a Python function at compile time, on compile-time values. The host can call it too.

    Example:
        @tilework.constexpr_function
        def bits(n):
            return n.bit_length() - 1

        assert bits(1024) == 10 and call(bits, 1024) == 10  # called by the host, and by a kernel
    """
    return ConstexprFunction(fn)


def ascii_symbol(name: str) -> str:
    """A name of Python as identifiers of PTX, of C and of most assemblers are: ``größe`` is ``gr_u00f6__u00df_e``."""
    return "".join(char if char.isascii() else f"_u{ord(char):04x}_" for char in name)
