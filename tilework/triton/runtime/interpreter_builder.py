"""`interpreter_builder`: the operations of the interpreter as methods `create_...` on `TensorHandle`s, as Triton has them.

    original = interpreter_builder.create_masked_load

    def traced(ptrs, mask, other, *options):
        print(ptrs.data[mask.data])                 # NumPy arrays
        return original(ptrs, mask, other, *options)

    interpreter_builder.create_masked_load = traced

A method that was replaced on the builder (or in its class) is called for every operation of its kind; one that was not costs
nothing. A launch asks once whether there are any; then `ToolSemantic` asks before each operation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.active import ACTIVE
from tilework.oracles.interpreter.formats import storage
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import plain, tensor

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
        """What a pointer points to, or the type itself."""
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
    """A tensor as a handle."""
    return TensorHandle(value.handle, value.dtype) if isinstance(value, tl.tensor) else value


def unwrapped(value: Any) -> Any:
    """A handle as a tensor."""
    if not isinstance(value, TensorHandle):
        return value
    return tensor(value.data, value.dtype) if is_array(value.data) else tl.tensor(value.data, value.dtype)


def is_array(data: Any) -> bool:
    """Elements, and no block pointer."""
    return isinstance(data, np.ndarray | np.generic)


class InterpreterBuilder:
    """See the module docstring; each method (`METHODS`) does what the interpreter does."""

    def set_grid_dim(self, nx: int, ny: int, nz: int) -> None:
        self.grid_dim = (nx, ny, nz)
        if (active := ACTIVE.get()) is not None:
            active.semantic.grid = self.grid_dim

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        """Become another program."""
        self.grid_idx = (x, y, z)
        if (active := ACTIVE.get()) is not None:
            active.semantic.enter_program(self.grid_idx)

    def create_load(self, ptr: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any) -> TensorHandle:
        return self.create_masked_load(ptr, everywhere(ptr), None, cache_modifier, eviction_policy, is_volatile)  # pyright: ignore[reportAttributeAccessIssue]

    def create_store(self, ptr: Any, val: Any, cache_modifier: Any, eviction_policy: Any) -> None:
        return self.create_masked_store(ptr, val, everywhere(ptr), cache_modifier, eviction_policy)  # pyright: ignore[reportAttributeAccessIssue]


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
    """Whether a tool has put something in the place of one of these methods."""
    own, cls = vars(interpreter_builder), vars(InterpreterBuilder)
    return any(name in own or cls.get(name) is not OWN.get(name) for name in names)


def make_semantic(options: Any, memory: Any, grid: tuple[int, int, int]) -> Semantic:
    """The operations of a launch."""
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
    "product": lambda lhs, rhs, acc, type, precision, limit: (
        ("create_dot", lhs, rhs, no_sum(type) if acc is None else acc, precision, 0)
    ),
    "absolute": lambda x: ("create_fabs" if x.dtype.is_floating() else "create_iabs", x),
    "high_product": lambda x, y: ("create_umulhi", x, y),
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
