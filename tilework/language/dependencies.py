"""The dependencies of a jit function, and its source.

The dependencies are the functions (by their own hash) and global values that its text refers to.

    @jit
    def kernel(p):
        tl.store(p, helper(SCALE))      # functions: helper; global values: SCALE; references: tl, helper, SCALE

Both branches of every `if` count: the hash is made before anything is known about the arguments. Names that the
function assigns itself are still read as globals if that is all they can be at that point, so a local that hides a
global costs at most an unneeded recompile.
"""

import ast
import builtins
import inspect
import linecache
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from tilework import knobs
from tilework.errors import CompilationError
from tilework.language.compile_time import base_type, base_value, constexpr
from tilework.language.constant_text import names_in
from tilework.language.origins import is_of_language, module_of, origin_of
from tilework.process.forks import held_at_fork

COMPILE_TIME_MODULES = ("math", "copy")
ARRAY_LIBRARIES = ("numpy", "torch", "cupy", "jax")
CALLABLE_IN_KERNELS = (
    "Kernels may call @jit functions, tl.* builtins, @constexpr_function functions and functions of the math module"
    "\nhelp: call it before the launch, and pass the result as an argument of the kernel"
)
PACKAGE = __name__.split(".", maxsplit=1)[0]


class UnsupportedFunction(CompilationError, RuntimeError):
    """A function of a module that a kernel cannot call."""


class Dependencies:
    """The functions, classes and global values that one jit function uses, in order of first use, and its default
    arguments.

    The defaults are kept as values: their text in the source is a name that was looked up when the function was
    defined."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self.functions: list[Any] = []
        self.plain_functions: list[Any] = []
        self.classes: list[type] = []
        self.global_values: dict[tuple[str, int], tuple[Any, Any]] = {}
        self.names: dict[str, None] = {}  # that are looked up outside of the function
        self.members: dict[tuple[str, str], None] = {}  # of modules: the name of the module and the attribute
        self.references: dict[str, Any] = {}  # the values of the names and ``module.member`` in the text, for keys
        self.defaults = defaults


def dependencies_of(tree: ast.Module, function: Any) -> Dependencies:
    """Collect the dependencies of the function whose syntax tree is `tree`."""
    found = Dependencies(defaults_of(function.fn))
    scope = function.get_capture_scope()
    inner = "lambda" in function.src or function.src.count("def") > 1  # most kernels have one list of parameters
    parameters = list(parameter_lists(tree)) if inner else [function_of(tree).args]
    defaults = {id(node) for node in default_nodes(parameters)}
    finder = _Finder(found, scope, function, defaults, parameters, tree)
    finder.visit(tree)
    return found


def library_dependencies(function: Any) -> Dependencies:
    """The jit functions that a function of this package may call, by the names in its code. Its text and its constants
    are a part of every key, so the text is not read and parsed; only replaced functions count."""
    names, holders, called = names_in(function.fn.__code__), [function.get_capture_scope()], {id(function): function}
    for holder in holders:
        for value in [holder[name] for name in names if name in holder]:
            if isinstance(value, ModuleType) and all(vars(value) is not other for other in holders):
                holders.append(vars(value))
            called.update((id(item), item) for item in functions_in(value))
    found = Dependencies(defaults_of(function.fn))
    found.functions = [item for item in called.values() if item is not function]
    return found


def defaults_of(fn: Any) -> dict[str, Any]:
    """The default arguments of a Python function, by name."""
    code, values = fn.__code__, fn.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(values) :]
    return {**dict(zip(names, values, strict=True)), **(fn.__kwdefaults__ or {})}


def function_of(tree: ast.Module) -> ast.FunctionDef:
    """The only function definition of `tree`."""
    (found,) = tree.body
    assert isinstance(found, ast.FunctionDef), "the parser has checked that it is one function"
    return found


def parameter_lists(tree: ast.AST) -> Iterator[ast.arguments]:
    """The parameters of all functions below, in any order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.arguments):
            yield node
        waiting += children(node)


def default_nodes(parameters: Sequence[ast.arguments]) -> Iterator[ast.AST]:
    """Default values and annotations of the parameters: evaluated once by Python, never by the compiler."""
    for node in parameters:
        for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
            yield from ast.walk(default)
        for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs):
            if arg.annotation is not None:
                yield from ast.walk(arg.annotation)


EVALUATED_FIRST = {"value": 0, "iter": 0, "generators": 0, "test": 0}
WITHOUT_NAMES = ("op", "ops", "ctx", "id", "attr", "arg", "kind", "type_comment")  # texts and kinds of operators


@cache
def ordered_fields(kind: type[ast.AST]) -> list[str]:
    """Return the child fields of a node in the order of evaluation: a name that is read before it is assigned is a
    global."""
    if kind is ast.Constant:
        return []
    ordered = sorted(kind._fields, key=lambda name: EVALUATED_FIRST.get(name, 1))
    return [name for name in ordered if name not in WITHOUT_NAMES]


class _Finder:
    def __init__(
        self,
        found: Dependencies,
        scope: dict[str, Any],
        function: Any,
        skip: set[int],
        parameters: Sequence[ast.arguments],
        tree: ast.Module,
    ) -> None:
        self.found = found
        self.scope = scope
        self.function = function
        self.skip = skip
        self.seen: set[int] = set()
        self.node: ast.AST = tree.body[0]  # the last name or attribute that was looked up
        self.locals: set[str] = {
            arg.arg for node in parameters for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs)
        }
        own = parameters[0] if len(parameters) == 1 else function_of(tree).args
        self.parameters = {arg.arg for arg in (*own.posonlyargs, *own.args, *own.kwonlyargs)}

    def is_readable(self, value: Any, name: str) -> bool:
        """Return True if the compiler may read an outer variable, also one that has the name of a local variable that
        is assigned on some paths only. With the knob `allow_non_constexpr_globals` it may read all."""
        if isinstance(value, constexpr | base_type | ModuleType | type) or value is None or callable(value):
            return True
        return knobs.compilation.allow_non_constexpr_globals and name not in self.locals

    def visit(self, node: ast.AST) -> None:
        if id(node) in self.skip:
            return
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self.node = node
                self.record_name(node.id)
            else:
                self.locals.add(node.id)
        elif isinstance(node, ast.Attribute):
            self.node = node
            self.record_attribute(node)
        elif isinstance(node, ast.FunctionDef):
            for statement in node.body:
                self.visit(statement)
        else:
            for child in children(node):
                self.visit(child)

    def record_attribute(self, node: ast.Attribute) -> None:
        """Record the dependency of ``module.f``: the member, however long the chain."""
        owner = self.resolve(node.value)
        if not isinstance(owner, ModuleType | type):
            self.visit(node.value)
            return
        self.refer(node, getattr(owner, node.attr, None), owner)
        if isinstance(owner, type):
            self.record(owner, None)
        else:
            self.found.members[owner.__name__, node.attr] = None
        holders = (vars(cls) for cls in owner.__mro__) if isinstance(owner, type) else (vars(owner),)
        holder = next((members for members in holders if node.attr in members), None)
        module = module_of(owner) if isinstance(owner, type) else owner.__name__
        is_known = module.split(".")[0] in (PACKAGE, *COMPILE_TIME_MODULES)
        self.record(getattr(owner, node.attr, None), None if is_known or holder is None else node.attr, holder)

    def refer(self, node: ast.Attribute, value: Any, owner: Any) -> None:
        """Record the value of ``module.member`` for the key. Functions and types of this package's modules are part of
        its version, unless they have been replaced; of the modules of libraries, the name is part of the key."""
        names, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            names, root = [root.attr, *names], root.value
        name = root.id if isinstance(root, ast.Name) else ""
        if isinstance(owner, ModuleType) and is_ours(owner):
            self.found.references.setdefault(name, self.scope[name])
            is_plain = isinstance(value, constexpr | int | float | str)  # a value that the program may have set
            if not is_plain and not has_key(value) and getattr(value, "__name__", node.attr) == node.attr:
                return
        elif isinstance(owner, ModuleType) and origin_of(owner.__name__):
            self.found.references.setdefault(name, self.scope[name])
        if not isinstance(value, ModuleType):
            self.found.references[".".join((name, *names))] = snapshot(unwrapped(value))

    def resolve(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name) and node.id not in self.locals:
            self.found.names[node.id] = None
            return self.scope.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if isinstance(owner, ModuleType):
                self.found.members[owner.__name__, node.attr] = None
                return getattr(owner, node.attr, None)
        return None

    def record_name(self, name: str) -> None:
        if name not in self.scope:
            return
        if name not in self.parameters and self.is_readable(self.scope[name], name):
            self.found.references[name] = snapshot(unwrapped(self.scope[name]))
        if name in self.locals:
            return
        self.found.names[name] = None
        self.record(self.scope[name], name)

    def record(self, value: Any, name: str | None, holder: Any = None) -> None:
        """Record the value of a name: a global or captured variable, or a member of `holder`."""
        if value is None and name is None:
            return
        if isinstance(value, constexpr):
            for function in functions_in(value):
                self.record_function(function)
            if name is not None:
                self.record_value(name, value, holder)
            return
        if isinstance(value, ModuleType) or is_language_member(value):
            if has_key(value):
                self.record_function(value)
            elif isinstance(value, FunctionType):
                self.keep(value, self.found.plain_functions)
            return
        if has_key(value) and callable(value):
            self.record_function(value)
        elif getattr(value, "__triton_aggregate__", False) and isinstance(value, type):
            self.keep(value, self.found.classes)
        elif callable(value) and not isinstance(value, type):
            self.record_plain_function(value, None if holder is not None else name)
        elif name is not None and not (isinstance(value, type) or hasattr(builtins, name) or callable(value)):
            self.record_value(name, value, holder)

    def record_function(self, value: Any) -> None:
        if value is not self.function:
            self.keep(value, self.found.functions)

    def keep(self, value: Any, found: list[Any]) -> None:
        """Add it to one of the lists, once; what this package defines is part of every key."""
        if id(value) not in self.seen and not (isinstance(value, FunctionType) and is_of_language(value)):
            self.seen.add(id(value))
            found.append(value)

    def record_plain_function(self, value: Any, name: str | None) -> None:
        """Record a plain Python function that the compiler runs, or refuses with a location; refuse all others here."""
        if (inner := unwrapped(value)) is not value:
            self.record_function(inner)
            return
        module = getattr(value, "__module__", "") or ""
        is_named = name is not None or array_library(value) is not None
        is_seen_by_compiler = is_named and not self.function.runs_at_compile_time
        if not is_seen_by_compiler and module.split(".")[0] not in (*COMPILE_TIME_MODULES, "builtins", "_operator"):
            text = f"Unsupported function referenced: {value!r}. {CALLABLE_IN_KERNELS}"
            raise UnsupportedFunction(self.function.src, self.node, text, where=self.function.where)
        if isinstance(value, FunctionType) and array_library(value) is None:
            self.keep(value, self.found.plain_functions)

    def record_value(self, name: str, value: Any, holder: Any = None) -> None:
        """Values that a kernel can use; an array that has the name of a variable of the kernel is ignored.

        Those of this package are a part of its version: its target, which is no constant, is a part of every key.
        """
        if is_of_language(self.function.fn):
            return
        is_constant = value is None or isinstance(value, constexpr | base_type | int | float | str | tuple)
        if not is_constant and not self.function.runs_at_compile_time:  # such a function may use anything
            return
        module = self.function.__globals__
        if holder is None:
            holder = module if module.get(name, _MISSING) is value else Closure(self.function.fn)
        key = (name, id(self.function) if isinstance(holder, Closure) else id(holder))
        if key not in self.found.global_values:
            self.found.global_values[key] = (snapshot(value), holder)


def unwrapped(value: Any) -> Any:
    """Return the function of kernels inside of an autotuner or of heuristics; any other value unchanged."""
    if value is None or has_key(value) or isinstance(value, type | ModuleType):
        return value
    inner = getattr(value, "base_fn", None) or getattr(value, "fn", None)
    return inner if has_key(inner) else value


def is_ours(module: ModuleType) -> bool:
    """Return True for a module of this package."""
    return module.__name__.partition(".")[0] == PACKAGE


def snapshot(value: Any) -> Any:
    """A constant as it is now; functions, classes and types are what they are."""
    if isinstance(value, constexpr):
        return constexpr(snapshot(value.value))
    if type(value) in (tuple, list):
        return type(value)(map(snapshot, value))
    if type(value) is dict:
        return {key: snapshot(item) for key, item in value.items()}
    return value


def has_key(value: Any) -> bool:
    """Return True if it has a hash, which takes long to compute."""
    return hasattr(type(value), "cache_key") or hasattr(value, "cache_key")


def functions_in(value: Any) -> Iterator[Any]:
    """The functions with a hash inside a constant."""
    value = value.value if isinstance(value, constexpr) else value
    if has_key(value) and callable(value):
        yield value
    elif hasattr(value, "__func__"):  # a method of an aggregate
        yield from functions_in(value.__func__)
        yield from functions_in(value.__self__)
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from functions_in(item)
    elif isinstance(value, dict):
        yield from functions_in(list(value.values()))
    elif isinstance(value, base_value) or hasattr(type(value), "__dataclass_fields__"):
        yield from functions_in(vars(value)) if hasattr(value, "__dict__") else ()


def array_library(value: Any) -> str | None:
    """The library of host arrays that a function is from: "numpy" for np.sqrt, "torch" for torch.exp."""
    owner = getattr(value, "__self__", None)
    if type(owner).__module__.startswith("numpy.random"):  # `np.random.rand` is a method of a hidden generator
        return "numpy"
    if isinstance(value, type) or not callable(value) or not (owner is None or isinstance(owner, type | ModuleType)):
        return None  # a method of a compile-time value: Python calls it
    for holder in (value, type(value), owner):
        root = str(getattr(holder, "__module__", None) or "").split(".")[0]
        if root in ARRAY_LIBRARIES:
            return root
    return None


class Closure:
    """The variables that a function captured, as they are now."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def get(self, name: str) -> Any:
        """The value of a captured variable; None if it is unbound."""
        try:
            return self.fn.__closure__[self.fn.__code__.co_freevars.index(name)].cell_contents
        except ValueError:
            return None


_MISSING = object()


def is_language_member(value: Any) -> bool:
    """Code of the language package (builtins, classes, library functions): part of the version, not of the user's
    state.

    So is what another package marks as a builtin, as Inductor does for functions that run while its kernels are
    compiled.
    """
    if not callable(value):
        return False
    if getattr(value, "__triton_builtin__", False):
        return True
    return is_of_language(value)


# ---- The source of functions: their lines, their syntax trees, and walks over deep trees.
#
#     block = block_of(lines)         lines of a file from the first decorator on
#     block.lines, block.header       those of the function; the number of lines before its `def`
#     block.tree                      a module with the function, line 1 at the `def`, without its decorators
#
# A function ends before the first line that is indented no more than its `def`, unless that line is a comment, or
# closes a bracket. Where a long string is indented less, that is wrong, and the lines do not parse; then Python's
# tokenizer finds the end, which takes ten times as long.
#
# A function that was created by `exec` or typed at a prompt has no file. Notebooks, IPython and the prompt of Python
# 3.13 keep the text where `linecache` finds it. `exec` keeps nothing, but the text may be next to the function, as
# `__source__` of its globals. The prompt of earlier Pythons keeps nothing either; the lines are in the history of
# `readline`, if they were typed. Both are used only if they compile to the code that the function has.
#
# Generated kernels have expressions with thousands of terms:
#
#     deeply(levels_of(tree), lambda: visitor.visit(tree))
#
# Python refuses more than 1,000 nested calls, which a walk needs for a few hundred levels; with a higher limit alone a
# walk can overflow the stack of its thread, which ends the process. So a deep tree is walked in a thread with a stack
# for its depth, and the limit is higher until that walk ends. Context variables are those of the caller.


T = TypeVar("T")

SHALLOW = 40  # levels of most kernels, which are walked where the caller is
DEEPEST = 20_000  # levels; Python itself compiles fewer
FRAMES = 12  # nested Python calls of a walk for each level, at most
LEVEL_BYTES, LEAST_BYTES = 16 * 1024, 16 << 20  # of the stack
TOO_DEEP = "this is nested too deeply\nhelp: give parts of it names, in statements of their own"
_LOCK = held_at_fork(threading.RLock())
_RAISED: list[int] = []  # Python's own limit, once for each walk that needs a higher one


def levels_of(tree: ast.AST) -> int:
    """Return the depth of a syntax tree without the kinds of its operators; the tree keeps the number."""
    if (known := vars(tree).get("_levels")) is not None:
        return known
    levels, level = 0, [tree]
    while level:
        levels, level = levels + 1, [child for node in level for child in children(node)]
    vars(tree)["_levels"] = levels
    return levels


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly below that may have nodes below them; `ast.iter_child_nodes` takes three times as
    long."""
    found: list[ast.AST] = []
    for name in ordered_fields(node.__class__):
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            found += [child for child in value if isinstance(child, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def deeply(levels: int, call: Callable[[], T]) -> T:
    """``call()``, which recurses through so many levels of a tree."""
    if levels <= SHALLOW:
        return call()
    if levels > DEEPEST:
        raise RecursionError(TOO_DEEP)
    found: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            errors.append(error)

    with raised_limit(levels * FRAMES):
        context = copy_context()
        with _LOCK:
            before = threading.stack_size(LEAST_BYTES + levels * LEVEL_BYTES)
            try:
                thread = threading.Thread(target=context.run, args=(run,), name="tilework deep tree", daemon=True)
                thread.start()
            finally:
                threading.stack_size(before)
        thread.join()
    if errors:
        raise errors.pop()
    return found[0]


@contextmanager
def raised_limit(frames: int) -> Iterator[None]:
    """Let all threads nest `frames` more calls than before."""
    with _LOCK:
        limit = sys.getrecursionlimit()
        _RAISED.append(_RAISED[0] if _RAISED else limit)
        sys.setrecursionlimit(max(limit, _RAISED[0] + frames))
    try:
        yield
    finally:
        with _LOCK:
            limit = _RAISED.pop()
            if not _RAISED:
                sys.setrecursionlimit(limit)


DEFINITION = ("def ", "def\t", "def\\")
CLOSING = (")", "]", "}")


class Block:
    """See the module docstring."""

    def __init__(self, lines: list[str], header: int, tree: ast.Module) -> None:
        self.lines, self.header, self.tree = lines, header, tree


def block_of(lines: Sequence[str]) -> Block | None:
    """The function whose first line is the first; None, or a SyntaxError, if it is no function."""
    if (found := cut(lines)) is not None:
        return found
    try:
        raw = inspect.getblock(list(lines))
    except tokenize.TokenError as error:
        raise SyntaxError(error.args[0]) from None
    indent = indent_of(raw[0])
    block = block_of_text("".join(line.removeprefix(indent) for line in raw))
    return None if block is None else Block(raw, block.header, block.tree)


def block_of_text(text: str) -> Block | None:
    """The function that a text is."""
    tree = ast.parse(text)
    if len(tree.body) != 1 or not isinstance(function := tree.body[0], ast.FunctionDef):
        return None
    header = function.lineno - 1  # decorators may contain anything, so the parser has to say where they end
    if header:
        function.decorator_list = []
        ast.increment_lineno(tree, -header)
    return Block(text.splitlines(keepends=True), header, tree)


def indent_of(line: str) -> str:
    """The white space in front of it."""
    return line[: len(line) - len(line.lstrip())]


def cut(lines: Sequence[str]) -> Block | None:
    """The function by its indentation; None if that is not certain."""
    indent = indent_of(lines[0])
    depth = len(indent)
    starts = (at for at, line in enumerate(lines) if line.startswith(indent) and line.startswith(DEFINITION, depth))
    if (header := next(starts, None)) is None:
        return None
    last, comments, inner = header, header, 0
    for at in range(header + 1, len(lines)):
        text = lines[at].lstrip()
        column = len(lines[at]) - len(text)
        if not text:
            continue
        if text.startswith("#"):
            comments = at if column > depth and column >= inner else comments
        elif column > depth or text.startswith(CLOSING):
            inner = min(inner or column, column) if column > depth else inner
            last = at
        else:
            break
    end = max(last, comments) + 1
    raw = list(lines[:end])
    plain = [line.removeprefix(indent) for line in raw]
    try:
        if header:
            ast.parse("".join(plain[:header]) + "def f(): pass\n")
        block = block_of_text("".join(plain[header:]))
    except SyntaxError:
        return None
    return None if block is None else Block(raw, header, block.tree)


TYPED = ("<stdin>", "<console>")
ADVICE = {
    "<stdin>": (
        "it was typed at the plain prompt or piped into Python, which keep no source: use Python 3.13 or later, IPython"
        " or a"
        " notebook, or write it into a file and import that"
    ),
    "<string>": (
        "it was made by exec or `python -c`, which keep no source: put the text into the globals as `__source__`"
        ' (exec(text, {"__source__": text, ...})), or write it into a file and import that'
    ),
}


def unfiled_lines(fn: Callable[..., Any]) -> list[str]:
    """The lines of what has no file, up to the function at least; none if they cannot be had."""
    name, first = fn.__code__.co_filename, fn.__code__.co_firstlineno
    lines = linecache.getlines(name)
    if any(f"def {fn.__name__}" in line for line in lines[first - 1 :]):
        return lines
    beside = fn.__globals__.get("__source__")
    if isinstance(beside, str) and any(part.co_firstlineno == first for part in same_parts(beside, fn)):
        return beside.splitlines(True)
    return from_history(fn) if name in TYPED and "readline" in sys.modules else []


def from_history(fn: Callable[..., Any]) -> list[str]:
    """The lines as they were typed last, if they are those of this function."""
    import readline  # only where the prompt has loaded it: not every Python has one

    count = readline.get_current_history_length()
    typed = [(readline.get_history_item(index + 1) or "") + "\n" for index in range(count)]
    start = next((at for at in reversed(range(count)) if typed[at].startswith(f"def {fn.__name__}(")), None)
    if start is None:
        return []
    above = start
    while above and typed[above - 1].startswith("@"):
        above -= 1
    body = inspect.getblock(typed[start:])
    return [*typed[above:start], *body] if any(same_parts("".join(body), fn)) else []


def same_parts(text: str, fn: Callable[..., Any]) -> Iterator[CodeType]:
    """The functions in a text that do what `fn` does; none if it is no Python."""
    try:
        left = [compile(text, "<text>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return
    while left:
        code = left.pop()
        left += [part for part in code.co_consts if isinstance(part, CodeType)]
        if is_same(code, fn.__code__):
            yield code


def is_same(one: CodeType, other: CodeType) -> bool:
    """Return True if two functions do the same, wherever they are defined."""
    facts = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount")
    plain = [[const for const in code.co_consts if not isinstance(const, CodeType)] for code in (one, other)]
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts) and plain[0] == plain[1]


def no_source(fn: Callable[..., Any]) -> ValueError:
    """An error that says what to do."""
    name = fn.__code__.co_filename
    advice = ADVICE.get("<stdin>" if name in TYPED else name)
    if advice is None:
        advice = (
            "its text is not registered with linecache; write it into a file and import that"
            if name.startswith("<")
            else f"{name} cannot be read as text, or has changed since it was imported"
        )
    return ValueError(f"@jit functions should be defined in a Python file: no source for `{fn.__qualname__}`; {advice}")
