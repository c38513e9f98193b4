"""From a kernel's syntax tree to a TTIR module.

`ModuleGenerator` owns the module: the kernel, and every function it calls, each compiled once per specialization.
`FunctionGenerator` walks one function body. The walk is one table look-up per node (`visitors`); the visitors know
Python, `semantic` knows types and builds the ops.

    >>> module = compile_to_ttir(add_kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})

An exception raised while a node is visited becomes a `CompilationError` at that node, with the types of the variables
in it; the frames of the compiler are cut from the traceback.

In a kernel with ordered atomics (`tl.atomic_add(..., ordered=True)`) the programs execute them one after the
other, in the order of their ids:

    %s = ...                                   %s = ...
    scf.for ...                                tt.ordered_begin
      tt.atomic_rmw ... {tilework.ordered}     scf.for ...
    %t = ...                         ==>         tt.atomic_rmw ... {tilework.ordered}
    tt.return                                  tt.ordered_end
                                               %t = ...
                                               tt.return

The critical section of a program lasts from its first ordered atomic (or the loop, branch or call around it) to its
last. In a kernel with several returns it lasts from the start to the end.
"""

import ast
import re
from collections.abc import Hashable, Mapping, Sequence
from types import TracebackType
from typing import Any

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilework.errors import CompilationError, UnsupportedLanguageConstruct, split_help, warn_at, warn_beyond_triton
from tilework.frontend import (
    VISITORS,
    calls,
    control_flow,  # noqa: F401  # pyright: ignore[reportUnusedImport]  # this and those below fill `VISITORS`
    expressions,  # noqa: F401  # pyright: ignore[reportUnusedImport]
    loops,  # noqa: F401  # pyright: ignore[reportUnusedImport]
    statements,  # noqa: F401  # pyright: ignore[reportUnusedImport]
)
from tilework.frontend.control_flow import visit_body
from tilework.frontend.kernel import FrontendOptions, KernelSignature, Mangler
from tilework.frontend.messages import syntax_name
from tilework.frontend.returns import DeadReturn, Return, insert_returns
from tilework.frontend.scopes import Scope, describe, flatten, is_storable, unflatten, unflatten_all, unwrap
from tilework.frontend.semantic import Semantic
from tilework.frontend.semantic.building import Builder, ir_types
from tilework.ir import tt
from tilework.ir.functions import functions, is_private, symbol_of
from tilework.ir.locations import expression_loc, file_loc, name_loc
from tilework.ir.module_facts import mark_reproducible
from tilework.ir.rewrite import insert_after, insert_before
from tilework.language import core as tl
from tilework.language import target_info
from tilework.language.advice import not_jit, with_advice
from tilework.language.dependencies import TOO_DEEP, deeply, levels_of
from tilework.language.function import BoundJITMethod, JITCallable, JITFunction
from tilework.language.typing import triton_messages
from tilework.light_dataclass import light_dataclass


def insert_ordering(module: ModuleOp) -> None:
    """Put the ends of the critical section of ordered atomics into each kernel."""
    ordered: set[str] = set()
    while found := {symbol_of(op) for op in functions(module) if has_ordered_atomic(op, ordered)} - ordered:
        ordered |= found
    for kernel in functions(module):
        if symbol_of(kernel) not in ordered or is_private(kernel):
            continue
        blocks = kernel.regions[0].blocks
        if len(blocks) == 1:
            inside = [op for op in blocks[0].ops if has_ordered_atomic(op, ordered)]
            insert_before(inside[0], tt.OrderedBeginOp.make(inside[0].location))
            insert_after(inside[-1], tt.OrderedEndOp.make(inside[-1].location))
            continue
        first = blocks[0].first_op
        assert first is not None, "a kernel has a return"
        insert_before(first, tt.OrderedBeginOp.make(first.location))
        for end in [block.last_op for block in blocks if type(block.last_op) is tt.ReturnOp]:
            assert end is not None
            insert_before(end, tt.OrderedEndOp.make(end.location))


def has_ordered_atomic(op: Operation, ordered: set[str]) -> bool:
    """Return True if `op` is, holds or calls an ordered atomic."""
    for inner in op.walk():
        if tt.is_ordered(inner):
            return True
        if type(inner) is tt.CallOp and isinstance(callee := inner.properties["callee"], SymbolRefAttr):
            if callee.root_reference.data in ordered:
                return True
    return False


MANY_CALLS = 10
ENDLESS = (
    "`{}` is called inside itself again and again"
    "\nhelp: recursion must end at compile time, for example by a constexpr that counts down"
)


def compile_to_ttir(
    fn: JITFunction,
    signature: Mapping[str, Any],
    constexprs: Mapping[Any, Any] | None = None,
    attrs: Mapping[tuple[int, ...], Sequence[Sequence[Any]]] | None = None,
    options: FrontendOptions | None = None,
) -> ModuleOp:
    """The TTIR of kernel `fn` for one specialisation, before any pass.

    `signature` maps parameters to type codes (``"*fp32"``, ``"i32"``, ``"constexpr"``); `constexprs` maps names or
    index paths to values; `attrs` maps index paths to lists of [attribute name, value].
    """
    options = options or FrontendOptions()
    generator = ModuleGenerator(options)
    token = target_info.TARGET.set(options.target)
    try:
        return generator.compile_kernel(KernelSignature.of(fn, signature, constexprs or {}, attrs or {}))
    except CompilationError as error:
        if options.front_end_debugging:
            raise
        hide_compiler_frames(error)
        raise error.with_traceback(None) from error.__cause__
    finally:
        target_info.TARGET.reset(token)


@light_dataclass(frozen=False)
class CompiledFunction:
    """A callee: its symbol and, once its body is done, its result type and op."""

    symbol: str
    result: Any = None
    op: tt.FuncOp | None = None
    done: bool = False


class ModuleGenerator:
    """Compiles a kernel and, as they are called, its functions."""

    def __init__(self, options: FrontendOptions) -> None:
        self.options = options
        self.builder = Builder()
        self.semantic = Semantic(self.builder, options)
        self.mangler = Mangler()
        self.functions: dict[Hashable, CompiledFunction] = {}  # by function and argument types

    def compile_kernel(self, kernel: KernelSignature) -> ModuleOp:
        """The module of one kernel: the kernel first, then its callees in order of first call."""
        entry = CompiledFunction(kernel.symbol)
        self.functions[kernel.symbol] = entry
        self.compile_function(entry, kernel.fn, kernel.types, is_kernel=True, leaf_attrs=kernel.leaf_attributes())
        module = ModuleOp([])
        module.location = file_loc(kernel.fn.where.file, kernel.fn.where.first_line, 0)
        module.body.block.add_ops(function.op for function in self.functions.values() if function.op is not None)
        if self.options.reproducible:
            mark_reproducible(module)
        if self.semantic.has_ordered_atomics:
            insert_ordering(module)
        return module

    def compile_function(
        self,
        target: CompiledFunction,
        fn: JITCallable,
        types: Sequence[Any],
        is_kernel: bool = False,
        leaf_attrs: Sequence[dict[str, Attribute]] | None = None,
    ) -> None:
        """Compile the body of `fn` for arguments of `types` and store result type and op in `target`."""
        arguments = [ir_types(type) for type in types]
        flat = [leaf for leaves in arguments for leaf in leaves]
        entry = Block()
        loc = file_loc(fn.where.file, fn.where.first_line, 0)
        names = fn.signature.parameters
        for name, leaves in zip(names, arguments, strict=True):
            for leaf in leaves:
                entry.insert_arg(leaf, len(entry.args), name_loc(name, loc))
        body = Region(entry)
        values = unflatten_all(types, entry.args)
        scope = Scope(dict(zip(names, values, strict=True)), fn.get_capture_scope(), fn.parse(), fn.where)
        function = FunctionGenerator(self, fn, scope, body, is_kernel)
        calls = self.semantic.called_at
        self.semantic.called_at = (*calls, self.builder.loc)
        with self.builder.saved(), self.builder.enter_function(entry):
            self.builder.loc = loc
            deeply(levels_of(fn.parse()), function.compile_body)
        self.semantic.called_at = calls
        result = function.result
        target.result = result
        target.op = tt.FuncOp.make(
            target.symbol,
            flat,
            ir_types(result),
            body,
            loc,
            "public" if is_kernel else "private",
            bool(getattr(fn, "noinline", False)),
            leaf_attrs,
        )
        target.done = True


class FunctionGenerator:
    """Compiles one function body. Visitors get it as `gen`; builtins as `_generator`."""

    def __init__(self, parent: ModuleGenerator, fn: JITCallable, scope: Scope, body: Region, is_kernel: bool) -> None:
        self.parent = parent
        self.options = parent.options
        self.builder = parent.builder
        self.semantic = parent.semantic
        self.fn = fn
        self.src = fn.src
        self.where = fn.where
        self.scope = scope
        self.body = body
        self.is_kernel = is_kernel
        self.statement: ast.expr | None = None  # the expression that is a statement of its own: its value is unused
        self.result: Any = None  # the type of what it returns, once its body is done
        self.returns: list[Return] = []
        self.dead_returns: list[DeadReturn] = []  # behind an `if` that has returned: they decide the result's type too
        self.terminated = False  # what follows in this block is dead: it returns or leaves a loop
        self.leaves = False  # a loop, or a function in one, was left early somewhere
        self.structured = 0  # how many scf regions are open: no return in there
        self.naming: str | None = None  # the variable that the current statement assigns
        self.start = (fn.where.first_line, 0)  # line and column of the node in work
        self.starts: dict[SSAValue, SSAValue] = {}  # what the arguments of loops are in the first round
        self._file, self._line, self._shift = fn.where.file, fn.where.first_line - 1, fn.where.indent

    def compile_body(self) -> None:
        """Compile every statement of the function, and its returns."""
        definition = self.fn.parse().body[0]
        assert isinstance(definition, ast.FunctionDef)
        visit_body(self, definition.body)
        self.start = self.position(definition.body[-1])
        self.builder.loc = self.location(definition.body[-1])
        self.result = insert_returns(self)

    # -- the walk ------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Any:
        """Compile one node; the value of an expression, None for a statement."""
        visitor = VISITORS.get(node.__class__)
        if visitor is None:
            kind = type(node).__name__
            if isinstance(node, ast.FunctionDef):
                raise self.unsupported(node, triton_messages.NESTED_FUNCTION)
            raise self.unsupported(node, f"unsupported AST node type: {kind}: kernels have no {syntax_name(kind)}")
        builder = self.builder
        outer, self.start = self.start, self.position(node)
        builder.loc = self.location(node)
        try:
            return visitor(self, node)
        except CompilationError:
            raise
        except RecursionError:
            if self.options.front_end_debugging or not isinstance(node, ast.stmt):
                raise
            open_calls = sum(not function.done for function in self.parent.functions.values())
            text = ENDLESS.format(self.fn.__name__) if open_calls > MANY_CALLS else TOO_DEEP
            raise self.error(node, RecursionError(text)) from None
        except Exception as error:
            if self.options.front_end_debugging:
                raise
            raise self.error(node, error) from None
        finally:
            self.start = outer
            builder.loc = self.location(node)

    def position(self, node: Any) -> tuple[int, int]:
        """Line and column of `node` in the user's file."""
        return self._line + node.lineno, node.col_offset + self._shift

    def location(self, node: Any) -> Any:
        """Return the location of ops that the current node builds after it has visited `node`, under the name of the
        assigned variable."""
        return expression_loc(self._file, *self.position(node), self.naming, self.start)

    def rename(self, value: SSAValue | None, name: str) -> None:
        """Let the result of an op be called `name`; for what a loop carries, also what it starts with."""
        while value is not None:
            owner = value.owner
            if isinstance(owner, Operation):
                owner.location = name_loc(name, owner.location)
            elif value in self.starts:
                assert isinstance(value, BlockArgument)
                value.location = name_loc(name, value.location)
            value = self.starts.get(value)

    def error(
        self, node: ast.AST, error: Exception, *, from_builtin: bool = False, title: str | None = None
    ) -> CompilationError:
        """`error` as the user sees it, at `node`."""
        text = str(error) if from_builtin else repr(error)
        title = title if title is not None else with_advice(error, code=ast.unparse(node))
        return CompilationError(self.src, node, text, where=self.where, label=self.describe_names(node), title=title)

    def unsupported(self, node: ast.AST, text: str) -> UnsupportedLanguageConstruct:
        """Return the error about Python that the language does not have."""
        error = UnsupportedLanguageConstruct(self.src, node, split_help(text)[0], where=self.where)
        error.title = with_advice(error, text, ast.unparse(node))
        return error

    def beyond_triton(self, node: ast.AST, refusal: str | Exception) -> None:
        """Report Python that Triton refuses with the text `refusal`: an error or a warning, if the option requests
        it."""
        if self.options.beyond_triton == "error":
            raise refusal if isinstance(refusal, Exception) else self.unsupported(node, refusal)
        if self.options.beyond_triton == "warn":
            warn_beyond_triton(refusal, self._file, self._line + getattr(node, "lineno", 1))

    def warn(self, node: ast.AST, text: str) -> None:
        """Warn at the user's line."""
        warn_at(text, UserWarning, self._file, self._line + getattr(node, "lineno", 1))

    def describe_names(self, node: ast.AST) -> str:
        """The values in `node`, in the user's words: `` `a` is fp32[64, 16], `b` is fp32[32, 16]``."""
        if isinstance(node, ast.stmt):
            return ""
        facts: dict[str, str] = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in facts:
                value = self.scope.locals.get(part.id)
                if value is not None and (text := describe(value)) is not None:
                    facts[part.id] = text
        return ", ".join(f"`{name}` is {text}" for name, text in list(facts.items())[:4])

    # -- calls, also from builtins that take a function -----------------------------------------------------------

    def call_JitFunction(  # the name that user-written builtins call
        self, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], caller_context: Any = None
    ) -> Any:
        """Compile `fn` for these arguments (once per specialisation) and call it; return its value."""
        if isinstance(fn, BoundJITMethod):
            args, fn = [fn.__self__, *args], fn.__func__
        if not isinstance(fn, JITFunction):
            raise TypeError(not_jit(fn))
        values = calls.bind_arguments(fn, args, kwargs)
        types = [value.type if is_storable(value) else tl.constexpr_type(unwrap(value)) for value in values]
        if fn.noinline:
            calls.check_noinline_arguments(self, fn, values)
        key = fn, *types
        function = self.parent.functions.get(key)
        if function is None:
            function = self.parent.functions[key] = CompiledFunction(self.parent.mangler.symbol(fn, types))
            self.parent.compile_function(function, fn, types)
        elif not function.done:
            raise RuntimeError(
                f"`{fn.__name__}` calls itself with the same argument types: recursion must end at compile time"
                "\nhelp: make each level different, for example by a constexpr that counts down"
            )
        handles = [handle for value in values if is_storable(value) for handle in flatten(value)]
        call = tt.CallOp.make(function.symbol, handles, ir_types(function.result), self.builder.loc)
        return unflatten(function.result, self.builder.insert(call).results)

    def call(self, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call anything callable in a kernel."""
        return calls.call_value(self, fn, list(args), dict(kwargs))

    # -- regions ------------------------------------------------------------------------------------------------

    @property
    def at_top_level(self) -> bool:
        """The insertion point is in a block of the function's own region, where a return is allowed."""
        return self.structured == 0


def hide_compiler_frames(error: BaseException | None) -> None:
    """Cut tracebacks: none for compilation errors; from the language's `core.py` on for what a builtin raised."""
    while error is not None:
        if isinstance(error, CompilationError):
            error.__traceback__ = None
        else:
            error.__traceback__ = from_core(error.__traceback__)
        error = error.__cause__


def from_core(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that starts in the language."""
    start = traceback
    while start is not None and not re.search(r"[/\\]core\.py$", start.tb_frame.f_code.co_filename):
        start = start.tb_next
    return start if start is not None else traceback
