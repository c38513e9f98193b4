"""`triton.runtime.interpreter`: its classes and functions under Triton's names, for tools that instrument kernels.

A tool replaces a method or a name, and every later launch in this process calls the replacement:

    GridExecutor.__call__ = traced                              # the loop over the programs of a grid
    interpreter_builder.create_masked_load = traced             # an operation, on `TensorHandle`s
    interpreter._patch_lang = traced                            # called before the programs of a launch run

`interpreter_builder` has the operations of the interpreter as methods `create_...` on `TensorHandle`s:

    original = interpreter_builder.create_masked_load

    def traced(ptrs, mask, other, *options):
        print(ptrs.data[mask.data])                             # NumPy arrays
        return original(ptrs, mask, other, *options)

Operations that are not replaced cost nothing extra: a launch checks once whether any method is replaced, and only then
does `ToolSemantic` check before each operation.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.compile_time import ACTIVE
from tilework.language.parameters import KernelParam
from tilework.oracles.interpreter import InterpretedFunction
from tilework.oracles.interpreter.arguments import Arguments
from tilework.oracles.interpreter.function import (
    COMPILER_OPTIONS,
    FP8_TYPES,
    Interpreter,
    call_of,
    is_ordered,
    programs_of,
)
from tilework.oracles.interpreter.function import Options as LaunchOptions
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import plain, storage, tensor

ARITHMETIC = {  # operator: (of integers, of floats); a pair of integer names is (signed, unsigned)
    "+": ("add", "fadd"),
    "-": ("sub", "fsub"),
    "*": ("mul", "fmul"),
    "/": ("sdiv", "fdiv"),
    "//": (("sdiv", "udiv"), "fdiv"),
    "%": (("srem", "urem"), "frem"),
    "&": ("and", "and"),
    "|": ("or", "or"),
    "^": ("xor", "xor"),
    "<<": ("shl", "shl"),
    ">>": (("ashr", "lshr"), "ashr"),
    "minimum": (("minsi", "minui"), "minnumf"),
    "maximum": (("maxsi", "maxui"), "maxnumf"),
}
COMPARISONS = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
MATH = ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "floor", "ceil", "erf")


@dataclass
class TensorHandle:
    """The elements of a value as a NumPy array, with their type."""

    data: Any
    dtype: Any
    attr: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(np.all(self.data))

    def get_element_ty(self) -> Any:
        """Return the pointee of a pointer, or the type itself."""
        return self.dtype.element_ty if isinstance(self.dtype, tl.pointer_type) else self.dtype

    def clone(self) -> "TensorHandle":
        return TensorHandle(self.data.copy(), self.dtype, dict(self.attr))

    def set_attr(self, key: str, value: Any) -> None:
        self.attr[key] = value


class BlockPointerHandle:
    """A block pointer."""

    def __init__(self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> None:
        self.base, self.shape, self.strides, self.offsets = base, shape, strides, offsets
        self.block_shape, self.order = block_shape, order


class TensorDescHandle:
    """A tensor descriptor."""

    def __init__(self, base: Any, shape: Any, strides: Any, block_shape: Any, padding: Any) -> None:
        self.base, self.shape, self.strides, self.block_shape, self.padding = base, shape, strides, block_shape, padding


def wrapped(value: Any) -> Any:
    """Return a tensor as a handle."""
    return TensorHandle(value.handle, value.dtype) if isinstance(value, tl.tensor) else value


def unwrapped(value: Any) -> Any:
    """Return a handle as a tensor."""
    if not isinstance(value, TensorHandle):
        return value
    return tensor(value.data, value.dtype) if is_array(value.data) else tl.tensor(value.data, value.dtype)


def is_array(data: Any) -> bool:
    """Return True for elements, False for a block pointer."""
    return isinstance(data, np.ndarray | np.generic)


class InterpreterBuilder:
    """See the module docstring; each method (`METHODS`) does what the interpreter does."""

    def set_grid_dim(self, nx: int, ny: int, nz: int) -> None:
        self.grid_dim = (nx, ny, nz)
        if (active := ACTIVE.get()) is not None:
            active.semantic.grid = self.grid_dim

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        """Continue as another program of the grid."""
        self.grid_idx = (x, y, z)
        if (active := ACTIVE.get()) is not None:
            active.semantic.enter_program(self.grid_idx)

    def create_load(self, ptr: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any) -> TensorHandle:
        load: Any = self.create_masked_load  # pyright: ignore[reportAttributeAccessIssue]
        return load(ptr, everywhere(ptr), None, cache_modifier, eviction_policy, is_volatile)

    def create_store(self, ptr: Any, val: Any, cache_modifier: Any, eviction_policy: Any) -> None:
        store: Any = self.create_masked_store  # pyright: ignore[reportAttributeAccessIssue]
        return store(ptr, val, everywhere(ptr), cache_modifier, eviction_policy)


def everywhere(ptr: TensorHandle) -> TensorHandle:
    return TensorHandle(np.ones(np.shape(ptr.data), np.bool_), tl.int1)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{"+": Semantic.add, "-": Semantic.sub, "*": Semantic.mul, "/": Semantic.truediv, "//": Semantic.floordiv},
    **{"%": Semantic.mod, "&": Semantic.and_, "|": Semantic.or_, "^": Semantic.xor_, "<<": Semantic.shl},
    **{">>": Semantic.shr, "==": Semantic.equal, "!=": Semantic.not_equal, "<": Semantic.less_than},
    **{"<=": Semantic.less_equal, ">": Semantic.greater_than, ">=": Semantic.greater_equal},
    "minimum": lambda semantic, a, b: Semantic.binary(semantic, "minimum", a, b),
    "maximum": lambda semantic, a, b: Semantic.binary(semantic, "maximum", a, b),
}


def math_function(name: str) -> Callable[..., Any]:
    return lambda semantic, x: Semantic.math_op(semantic, name, x)


def names_of(kinds: Any) -> list[str]:
    return [name for kind in kinds for name in ((kind,) if isinstance(kind, str) else kind)]


def comparisons(operator: str) -> list[str]:
    prefixes = ("icmp", "fcmpO", "fcmpU") if operator in ("==", "!=") else ("icmpS", "icmpU", "fcmpO", "fcmpU")
    return [f"{prefix}{COMPARISONS[operator]}" for prefix in prefixes]


METHODS: dict[str, Callable[..., Any]] = {  # of a semantic, and the arguments as tensors
    "create_get_program_id": Semantic.program_id,
    "create_get_num_programs": Semantic.num_programs,
    "create_masked_load": lambda semantic, ptrs, mask, other, *_: Semantic.load_pointers(semantic, ptrs, mask, other),
    "create_masked_store": lambda semantic, ptrs, value, mask, *_: Semantic.store_pointers(semantic, ptrs, value, mask),
    "create_tensor_pointer_load": lambda semantic, ptr, checked, padding, *_: Semantic.load_block(
        semantic, ptr, checked, padding
    ),
    "create_tensor_pointer_store": lambda semantic, ptr, value, checked, *_: Semantic.store_block(
        semantic, ptr, value, checked
    ),
    "create_atomic_rmw": Semantic.atomic_rmw,
    "create_atomic_cas": Semantic.atomic_cas,
    "create_make_range": lambda semantic, ret_ty, start, stop: Semantic.arange(semantic, start, stop),
    "create_addptr": lambda semantic, ptr, offset: Semantic.moved(semantic, ptr, offset, "+"),
    "create_expand_dims": Semantic.expand_dims,
    "create_broadcast": Semantic.broadcast_to,
    "create_splat": lambda semantic, ret_ty, arg: Semantic.broadcast_to(semantic, arg, ret_ty.shape),
    "create_reshape": Semantic.reshape,
    "create_trans": Semantic.permute,
    "create_join": Semantic.join,
    "create_cat": lambda semantic, lhs, rhs: Semantic.cat(semantic, lhs, rhs, True),
    "create_select": Semantic.where,
    "create_fma": Semantic.fma,
    "create_dot": lambda semantic, a, b, d, *_: Semantic.dot(semantic, a, b, d, None, None, None, d.dtype),
    "create_fabs": Semantic.abs,
    "create_iabs": Semantic.abs,
    "create_umulhi": Semantic.umulhi,
    "cast_impl": Semantic.cast,
    "create_bitcast": Semantic.bitcast,
    "create_gather": Semantic.gather,
    "create_histogram": Semantic.histogram,
    **{f"create_{name}": OPERATORS[sign] for sign, kinds in ARITHMETIC.items() for name in names_of(kinds)},
    **{f"create_{name}": OPERATORS[sign] for sign in COMPARISONS for name in comparisons(sign)},
    **{f"create_{name}": math_function(name) for name in MATH},
}


def builder_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the interpreter on handles; what it does inside is no operation of the kernel."""

    def create(self: Any, *args: Any) -> Any:
        active = ACTIVE.get()
        if active is None:
            raise RuntimeError(f"interpreter_builder.{name} needs a kernel that is running")
        semantic = active.semantic
        outer, semantic.is_own = getattr(semantic, "is_own", False), True
        try:
            return wrapped(method(semantic, *map(unwrapped, args)))
        finally:
            semantic.is_own = outer

    create.__name__ = name
    return create


for _name, _method in METHODS.items():
    setattr(InterpreterBuilder, _name, builder_method(_name, _method))

interpreter_builder = InterpreterBuilder()
OWN = {name: method for name, method in vars(InterpreterBuilder).items() if name in METHODS or "create_" in name}
MASKED = {
    plain: (plain, f"create_masked_{plain[7:]}") for plain in ("create_load", "create_store")
}  # the first calls the second


def replaced(*names: str) -> bool:
    """Return True if a tool has replaced one of these methods."""
    own, cls = vars(interpreter_builder), vars(InterpreterBuilder)
    return any(name in own or cls.get(name) is not OWN.get(name) for name in names)


def make_semantic(options: Any, memory: Any, grid: tuple[int, int, int]) -> Semantic:
    """Return the semantic object of a launch."""
    return (ToolSemantic if replaced(*OWN) else Semantic)(options, memory, grid)


class ToolSemantic(Semantic):
    """The interpreter's operations, by way of the builder's methods that tools have replaced (`ROUTES`)."""

    is_own = False  # inside one of the builder's own methods


def no_sum(type: tl.dtype) -> tl.tensor:
    return tensor(np.zeros(type.sizes, storage(type.scalar)), type.scalar)


ROUTES: dict[
    str, Callable[..., tuple[Any, ...] | None]
] = {  # what is carried out: (the builder's method, its arguments)
    "own_index": lambda axis: ("create_get_program_id", axis),
    "grid_size": lambda axis: ("create_get_num_programs", axis),
    "read": lambda ptr, mask, other, options: (
        ("create_load", ptr, None, None, False)
        if mask is None
        else ("create_masked_load", ptr, mask, other, None, None, False)
    ),
    "store_pointers": lambda ptr, value, mask, options=None: (
        ("create_store", ptr, value, None, None)
        if mask is None
        else ("create_masked_store", ptr, value, mask, None, None)
    ),
    "read_block": lambda ptr, checked, padding, options: (
        "create_tensor_pointer_load",
        ptr,
        checked,
        padding,
        None,
        None,
        False,
    ),
    "write_block": lambda ptr, value, checked, options: (
        "create_tensor_pointer_store",
        ptr,
        value,
        checked,
        None,
        None,
    ),
    "update": lambda *args: ("create_atomic_rmw", *args[:6]),  # programs run in order anyway
    "compare_and_swap": lambda *args: ("create_atomic_cas", *args),
    "counting": lambda start, end: ("create_make_range", None, start, end),
    "move_pointer": lambda pointer, offset, operator: (
        ("create_addptr", pointer, offset) if operator == "+" and isinstance(offset, tl.tensor) else None
    ),
    "with_axis": lambda x, axis: ("create_expand_dims", x, axis),
    "broadcast_to": lambda x, shape: (
        ("create_broadcast", x, tuple(map(plain, shape))) if isinstance(x, tl.tensor) and x.type.is_block() else None
    ),
    "reshaped": lambda x, shape, can_reorder: ("create_reshape", x, shape, can_reorder),
    "permuted": lambda x, order: ("create_trans", x, order),
    "joined": lambda x, y: ("create_join", x, y),
    "concatenated": lambda x, y: ("create_cat", x, y),
    "select": lambda mask, x, y: ("create_select", mask, x, y),
    "fused": lambda x, y, z: ("create_fma", x, y, z),
    "matmul": lambda lhs, rhs, acc, type, precision, limit: (
        ("create_dot", lhs, rhs, no_sum(type) if acc is None else acc, precision, 0)
    ),
    "absolute": lambda x: ("create_fabs" if x.dtype.is_floating() else "create_iabs", x),
    "multiplied_high": lambda x, y: ("create_umulhi", x, y),
    "convert": lambda x, target, rounding: ("cast_impl", x, target) if rounding is None else None,
    "convert_pointer": lambda x, target: ("cast_impl", x, target),
    "reinterpret": lambda x, target: ("create_bitcast", x, target),
    "gathered": lambda src, index, axis: ("create_gather", src, index, axis),
    "counted": lambda x, bins, mask: ("create_histogram", x, bins, mask),
    "elementary": lambda name, x: (f"create_{name}", x),
    "binary": lambda operator, a, b: (builder_name(operator, a.dtype), a, b),
    "compared": lambda operator, a, b: (comparison_name(operator, a.dtype), a, b),
}


def routed(name: str) -> Callable[..., Any]:
    own, route = getattr(Semantic, name), ROUTES[name]

    def carry_out(self: ToolSemantic, *args: Any) -> Any:
        found = None if self.is_own else route(*args)
        if found is None or not replaced(*MASKED.get(found[0], found[:1])):
            return own(self, *args)
        return unwrapped(getattr(interpreter_builder, found[0])(*map(wrapped, found[1:])))

    return carry_out


for _name in ROUTES:
    setattr(ToolSemantic, _name, routed(_name))


def builder_name(operator: str, element: tl.dtype) -> str:
    """The method of an operator on a type: ``create_fadd`` for + of floats; "" if there is none."""
    if operator not in ARITHMETIC:
        return ""
    kind = ARITHMETIC[operator][element.is_floating()]
    return f"create_{kind if isinstance(kind, str) else kind[0 if element.is_int_signed() else 1]}"


def comparison_name(operator: str, element: tl.dtype) -> str:
    """``create_fcmpOLT`` for < of floats, ``create_icmpULT`` of unsigned integers; != of floats is unordered."""
    name = COMPARISONS[operator]
    if element.is_floating():
        return f"create_fcmp{'U' if operator == '!=' else 'O'}{name}"
    sign = "" if operator in ("==", "!=") else "S" if element.is_int_signed() else "U"
    return f"create_icmp{sign}{name}"


RESERVED_KWS = [*sorted(COMPILER_OPTIONS), "grid", "warmup"]


@dataclass(frozen=True)
class InterpreterOptions:
    """The compiler options that kernels can read while they are interpreted."""

    extern_libs: dict[str, str] | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    arch: str | None = None
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee")
    max_num_imprecise_acc_default: int = 0
    backend_name: str = "interpreter"


class _LangPatchScope:
    """Attributes that were replaced for the time of a launch."""

    def __init__(self) -> None:
        self._changes: list[tuple[Any, str, Any]] = []

    def set_attr(self, obj: object, name: str, value: object) -> None:
        self._changes.append((obj, name, getattr(obj, name, _MISSING)))
        setattr(obj, name, value)

    def restore(self) -> None:
        """Put everything back, the last change first."""
        while self._changes:
            obj, name, value = self._changes.pop()
            delattr(obj, name) if value is _MISSING else setattr(obj, name, value)


_MISSING = object()


def _patch_lang(fn: Any) -> _LangPatchScope:
    """Called before the programs of a launch; builtins find the interpreter by themselves, so nothing has to be
    patched."""
    return _LangPatchScope()


class GridExecutor:
    """One launch: `fn` for every program of `grid`. The arrays are those of the host, so nothing is copied."""

    def __init__(
        self, fn: Callable[..., Any], arg_names: Sequence[str], grid: Any, pre_run_hooks: Sequence[Any] = ()
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.grid = grid
        self.pre_run_hooks = list(pre_run_hooks)
        notes = getattr(fn, "__annotations__", {})
        self.constexprs = [name for name in self.arg_names if "constexpr" in str(notes.get(name, ""))]
        self.is_ordered = False

    def _init_args_hst(self, args_dev: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return list(args_dev), dict(kwargs)

    def _restore_args_dev(self, args_dev: Any, args_hst: Any, kwargs: Any, kwargs_hst: Any) -> None:
        """Do nothing: no argument was copied."""

    def __call__(self, *args_dev: Any, **kwargs: Any) -> None:
        for hook in self.pre_run_hooks:
            hook(*args_dev, **kwargs)
        args_hst, kwargs_hst = self._init_args_hst(args_dev, kwargs)
        named = inspect.getcallargs(self.fn, *args_hst, **kwargs_hst)
        values = {name: value if name in self.constexprs else _implicit_cvt(value) for name, value in named.items()}
        grid: Any = self.grid(named) if callable(self.grid) else self.grid
        x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
        interpreter_builder.set_grid_dim(x, y, z)
        call = call_of(self.fn, values)
        for program in programs_of((x, y, z), self.is_ordered):
            interpreter_builder.set_grid_idx(*program)
            call()
        self._restore_args_dev(args_dev, args_hst, kwargs, kwargs_hst)


def _implicit_cvt(arg: Any) -> Any:
    """An argument of a launch as a value of the kernel; a value of the kernel is returned unchanged."""
    if arg is None or isinstance(arg, tl.base_value) or callable(arg):
        return arg
    active = ACTIVE.get()
    interpreter = active if isinstance(active, Interpreter) else STANDALONE
    parameter = KernelParam(0, inspect.Parameter("arg", inspect.Parameter.POSITIONAL_ONLY), True, True)
    return Arguments(interpreter.semantic, interpreter.memory).convert(parameter, arg)


def _unwrap_tensor(t: Any) -> Any:
    """The plain tensor under a view with another element type."""
    return t.base if hasattr(t, "base") and hasattr(t, "data_ptr") and hasattr(t.base, "data_ptr") else t


def _get_np_dtype(tt_dtype: tl.dtype) -> np.dtype[Any]:
    """The NumPy type that holds elements of a type."""
    return storage(tt_dtype.scalar)


class ReduceScanOpInterface:
    """A reduction or a scan along `axis`; `apply` takes one block or a tuple of them."""

    def __init__(self, axis: Any, combine_fn: Any) -> None:
        self.axis, self.combine_fn = axis, combine_fn

    def check_axis(self, shape: Sequence[int], axis: int | None) -> None:
        if axis is not None and not -len(shape) <= axis < len(shape):
            raise ValueError(f"axis {axis} out of bounds for shape {list(shape)}")

    def check_tensor(self, input: Any) -> None:
        for value in input if isinstance(input, tuple) else (input,):
            if not isinstance(value, tl.tensor):
                raise ValueError(f"input must be a tensor, got {type(value).__name__}")
            self.check_axis(value.handle.shape, self.axis)

    def to_tensor(self, ret: Any, dtype: tl.dtype) -> tl.tensor:
        return unwrapped(TensorHandle(np.asarray(ret, dtype=_get_np_dtype(dtype)), dtype.scalar))

    def apply(self, input: Any) -> Any:
        self.check_tensor(input)
        return self.apply_impl(input)

    def apply_impl(self, input: Any) -> Any:
        raise NotImplementedError("a reduction or a scan says what it does")


class ReduceOps(ReduceScanOpInterface):
    """`tl.reduce`."""

    def __init__(self, axis: Any, combine_fn: Any, keep_dims: bool) -> None:
        super().__init__(axis, combine_fn)
        self.keep_dims = keep_dims

    def apply_impl(self, input: Any) -> Any:
        return tl.reduce(input, self.axis, self.combine_fn, keep_dims=self.keep_dims)

    generic_reduce = apply_impl


class ScanOps(ReduceScanOpInterface):
    """`tl.associative_scan`."""

    def __init__(self, axis: Any, combine_fn: Any, reverse: bool) -> None:
        super().__init__(axis, combine_fn)
        self.reverse = reverse

    def apply_impl(self, input: Any) -> Any:
        return tl.associative_scan(input, self.axis, self.combine_fn, self.reverse)

    generic_scan = apply_impl


class ExtraFunctions:
    """The functions that a backend replaces in the language while kernels are interpreted."""

    @staticmethod
    def _convert_custom_types(input: Any, dst_ty: Any, fp_downcast_rounding: Any, _semantic: Any) -> Any:
        return _semantic.cast(input, dst_ty, fp_downcast_rounding)


def execute_with_tools(
    self: Any, interpreter: Interpreter, values: Mapping[str, Any], grid: tuple[int, int, int]
) -> None:
    """A launch through what tools may have replaced; it is `InterpretedFunction.execute` once this module is
    imported."""
    names = globals()
    scope = names["_patch_lang"](self.fn)
    try:
        executor = names["GridExecutor"](self.program(interpreter), self.arg_names, grid)
        executor.constexprs = [name for name, value in values.items() if not isinstance(value, tl.base_value)]
        executor.is_ordered = is_ordered(interpreter, self.fn)
        executor(**values)
    finally:
        if hasattr(scope, "restore"):
            scope.restore()


STANDALONE = Interpreter(LaunchOptions(), (1, 1, 1))
interpreter_semantic = STANDALONE.semantic
vars(interpreter_semantic)["builder"] = interpreter_builder  # the one of all launches, as in Triton
Interpreter.semantic_class = staticmethod(make_semantic)
InterpretedFunction.execute = execute_with_tools
