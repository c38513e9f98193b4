"""`interpreter_builder`: the operations of the interpreter as methods `create_...` on `TensorHandle`s, as Triton has them.

    original = interpreter_builder.create_masked_load

    def traced(ptrs, mask, other, *options):
        print(ptrs.data[mask.data])                 # NumPy arrays
        return original(ptrs, mask, other, *options)

    interpreter_builder.create_masked_load = traced

A method that was replaced on the builder (or in its class) is called for every operation of its kind; one that was not costs
nothing. A launch asks once whether there are any; then `ToolSemantic` asks before each operation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.active import ACTIVE
from tilework.language.typing.carrier import AccessOptions
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import plain, tensor

PLAIN = AccessOptions()
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


def our(method: Callable[..., Any], *args: Any) -> Any:
    """A method of the interpreter on handles; what it does inside is no operation of the kernel."""
    active = ACTIVE.get()
    if active is None:
        raise RuntimeError(f"interpreter_builder.{method.__name__} needs a kernel that is running")
    semantic = active.semantic
    outer, semantic.is_own = getattr(semantic, "is_own", False), True
    try:
        return wrapped(method(semantic, *map(unwrapped, args)))
    finally:
        semantic.is_own = outer


class InterpreterBuilder:
    """See the module docstring; each method does what the interpreter does."""

    def set_grid_dim(self, nx: int, ny: int, nz: int) -> None:
        self.grid_dim = (nx, ny, nz)
        if (active := ACTIVE.get()) is not None:
            active.semantic.grid = self.grid_dim

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        """Become another program."""
        self.grid_idx = (x, y, z)
        if (active := ACTIVE.get()) is not None:
            active.semantic.enter_program(self.grid_idx)

    def create_get_program_id(self, axis: int) -> TensorHandle:
        return our(Semantic.program_id, axis)

    def create_get_num_programs(self, axis: int) -> TensorHandle:
        return our(Semantic.num_programs, axis)

    def create_load(self, ptr: Any, _0: Any, _1: Any, is_volatile: Any) -> TensorHandle:
        mask = TensorHandle(np.ones(np.shape(ptr.data), np.bool_), tl.int1)
        return self.create_masked_load(ptr, mask, None, _0, _1, is_volatile)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> TensorHandle:
        return our(Semantic.load_pointers, ptrs, mask, other)

    def create_store(self, ptr: Any, val: Any, _0: Any, _1: Any) -> None:
        mask = TensorHandle(np.ones(np.shape(ptr.data), np.bool_), tl.int1)
        return self.create_masked_store(ptr, val, mask, _0, _1)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> None:
        our(Semantic.store_pointers, ptrs, value, mask)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> TensorHandle:
        return our(Semantic.atomic_rmw, rmwOp, ptr, val, mask, sem, scope)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> TensorHandle:
        return our(Semantic.atomic_cas, ptr, cmp, val, sem, scope)

    def create_make_range(self, ret_ty: Any, start: int, stop: int) -> TensorHandle:
        return our(Semantic.arange, start, stop)

    def create_addptr(self, ptr: Any, offset: Any) -> TensorHandle:
        return our(Semantic.moved, ptr, offset, "+")

    def create_expand_dims(self, arg: Any, axis: int) -> TensorHandle:
        return our(Semantic.expand_dims, arg, axis)

    def create_broadcast(self, arg: Any, shape: Sequence[int]) -> TensorHandle:
        return our(Semantic.broadcast_to, arg, shape)

    def create_splat(self, ret_ty: Any, arg: Any) -> TensorHandle:
        return our(Semantic.broadcast_to, arg, ret_ty.shape)

    def create_reshape(self, arg: Any, shape: Sequence[int], allow_reorder: bool) -> TensorHandle:
        return our(Semantic.reshape, arg, shape, allow_reorder)

    def create_trans(self, arg: Any, perm: Sequence[int]) -> TensorHandle:
        return our(Semantic.permute, arg, perm)

    def create_join(self, lhs: Any, rhs: Any) -> TensorHandle:
        return our(Semantic.join, lhs, rhs)

    def create_select(self, cond: Any, lhs: Any, rhs: Any) -> TensorHandle:
        return our(Semantic.where, cond, lhs, rhs)

    def create_fma(self, x: Any, y: Any, z: Any) -> TensorHandle:
        return our(Semantic.fma, x, y, z)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> TensorHandle:
        return our(Semantic.dot, a, b, d, None, None, None, d.dtype)

    def create_fabs(self, arg: Any) -> TensorHandle:
        return our(Semantic.abs, arg)

    create_iabs = create_fabs

    def create_umulhi(self, lhs: Any, rhs: Any) -> TensorHandle:
        return our(Semantic.umulhi, lhs, rhs)

    def create_cat(self, lhs: Any, rhs: Any) -> TensorHandle:
        return our(Semantic.cat, lhs, rhs, True)

    def cast_impl(self, src: Any, dst_type: Any) -> TensorHandle:
        return our(Semantic.cast, src, dst_type)

    def create_bitcast(self, src: Any, dst_type: Any) -> TensorHandle:
        return our(Semantic.bitcast, src, dst_type)

    def create_tensor_pointer_load(
        self,
        ptr: Any,
        boundary_check: Any,
        padding_option: Any,
        cache_modifier: Any,
        eviction_policy: Any,
        is_volatile: Any,
    ) -> TensorHandle:
        return our(Semantic.load_block, ptr, boundary_check, padding_option)

    def create_tensor_pointer_store(
        self, ptr: Any, value: Any, boundary_check: Any, cache_modifier: Any, eviction_policy: Any
    ) -> None:
        our(Semantic.store_block, ptr, value, boundary_check)

    def create_gather(self, src: Any, indices: Any, axis: int) -> TensorHandle:
        return our(Semantic.gather, src, indices, axis)

    def create_histogram(self, data: Any, bins: int, mask: Any) -> TensorHandle:
        return our(Semantic.histogram, data, bins, mask)


def binary_method(name: str, operator: str) -> Callable[..., Any]:
    """``create_fadd(lhs, rhs)`` and its kin."""
    method = OPERATORS[operator]

    def create(self: Any, lhs: Any, rhs: Any) -> TensorHandle:
        return our(method, lhs, rhs)

    create.__name__ = f"create_{name}"
    return create


OPERATORS: dict[str, Callable[..., Any]] = {
    **{"+": Semantic.add, "-": Semantic.sub, "*": Semantic.mul, "/": Semantic.truediv, "//": Semantic.floordiv},
    **{"%": Semantic.mod, "&": Semantic.and_, "|": Semantic.or_, "^": Semantic.xor_, "<<": Semantic.shl},
    **{">>": Semantic.shr, "==": Semantic.equal, "!=": Semantic.not_equal, "<": Semantic.less_than},
    **{"<=": Semantic.less_equal, ">": Semantic.greater_than, ">=": Semantic.greater_equal},
    "minimum": lambda semantic, a, b: Semantic.binary(semantic, "minimum", a, b),
    "maximum": lambda semantic, a, b: Semantic.binary(semantic, "maximum", a, b),
}


def math_method(name: str) -> Callable[..., Any]:
    """``create_exp(arg)`` and its kin."""

    def create(self: Any, arg: Any) -> TensorHandle:
        return our(lambda semantic, x: Semantic.math_op(semantic, name, x), arg)

    create.__name__ = f"create_{name}"
    return create


def names_of(kinds: Any) -> list[str]:
    return [name for kind in kinds for name in ((kind,) if isinstance(kind, str) else kind)]


for _operator, _kinds in ARITHMETIC.items():
    for _name in names_of(_kinds):
        setattr(InterpreterBuilder, f"create_{_name}", binary_method(_name, _operator))
for _operator, _name in COMPARISONS.items():
    for _prefix in ("icmp", "fcmpO", "fcmpU") if _operator in ("==", "!=") else ("icmpS", "icmpU", "fcmpO", "fcmpU"):
        setattr(InterpreterBuilder, f"create_{_prefix}{_name}", binary_method(f"{_prefix}{_name}", _operator))
for _name in MATH:
    setattr(InterpreterBuilder, f"create_{_name}", math_method(_name))

interpreter_builder = InterpreterBuilder()
OWN = {
    name: method
    for name, method in vars(InterpreterBuilder).items()
    if name.startswith("create_") or name == "cast_impl"
}


def replaced(*names: str) -> bool:
    """Whether a tool has put something in the place of one of these methods."""
    own, cls = vars(interpreter_builder), vars(InterpreterBuilder)
    return any(name in own or cls.get(name) is not OWN.get(name) for name in names)


def make_semantic(options: Any, memory: Any, grid: tuple[int, int, int]) -> Semantic:
    """The operations of a launch."""
    return (ToolSemantic if replaced(*OWN) else Semantic)(options, memory, grid)


class ToolSemantic(Semantic):
    """The interpreter's operations, by way of the builder's methods that tools have replaced."""

    is_own = False  # inside one of the builder's own methods

    def routes(self, *names: str) -> bool:
        return not self.is_own and replaced(*names)

    def program_id(self, axis: int) -> tl.tensor:
        if not self.routes("create_get_program_id"):
            return super().program_id(axis)
        return unwrapped(interpreter_builder.create_get_program_id(axis))

    def num_programs(self, axis: int) -> tl.tensor:
        if not self.routes("create_get_num_programs"):
            return super().num_programs(axis)
        return unwrapped(interpreter_builder.create_get_num_programs(axis))

    def load_pointers(self, ptr: tl.tensor, mask: tl.tensor | None, other: Any, options: Any = PLAIN) -> tl.tensor:
        if not self.routes("create_load", "create_masked_load") or (mask is None and other is not None):
            return super().load_pointers(ptr, mask, other, options)
        if mask is None:
            return unwrapped(interpreter_builder.create_load(wrapped(ptr), None, None, False))
        filler = None if other is None else self.cast(other, ptr.dtype.element_ty)  # pyright: ignore[reportAttributeAccessIssue]
        ptr, mask = self.broadcast(ptr, mask)
        return unwrapped(
            interpreter_builder.create_masked_load(wrapped(ptr), wrapped(mask), wrapped(filler), None, None, False)
        )

    def store_pointers(self, ptr: tl.tensor, value: Any, mask: tl.tensor | None, options: Any = PLAIN) -> None:
        if not self.routes("create_store", "create_masked_store"):
            super().store_pointers(ptr, value, mask, options)
        elif mask is None:
            interpreter_builder.create_store(wrapped(ptr), wrapped(value), None, None)
        else:
            interpreter_builder.create_masked_store(wrapped(ptr), wrapped(value), wrapped(mask), None, None)

    def atomic_rmw(self, kind: str, ptr: Any, val: Any, mask: Any, sem: str | None, scope: str | None) -> tl.tensor:
        if not self.routes("create_atomic_rmw"):
            return super().atomic_rmw(kind, ptr, val, mask, sem, scope)
        handles = (wrapped(ptr), wrapped(self.to_tensor(val)), wrapped(self.optional_tensor(mask)))
        return unwrapped(interpreter_builder.create_atomic_rmw(kind, *handles, sem, scope))

    def atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: str | None, scope: str | None) -> tl.tensor:
        if not self.routes("create_atomic_cas"):
            return super().atomic_cas(ptr, cmp, val, sem, scope)
        element = ptr.dtype.element_ty
        expected, wanted = (wrapped(x if isinstance(x, tl.tensor) else self.cast(x, element)) for x in (cmp, val))
        return unwrapped(interpreter_builder.create_atomic_cas(wrapped(ptr), expected, wanted, sem, scope))

    def arange(self, start: int, end: int) -> tl.tensor:
        if not self.routes("create_make_range"):
            return super().arange(start, end)
        return unwrapped(interpreter_builder.create_make_range(None, start, end))

    def moved(self, pointer: Any, offset: Any, operator: str) -> tl.tensor:
        if operator != "+" or not isinstance(offset, tl.tensor) or not self.routes("create_addptr"):
            return super().moved(pointer, offset, operator)
        return unwrapped(interpreter_builder.create_addptr(wrapped(pointer), wrapped(offset)))

    def expand_dims(self, x: Any, axis: int) -> tl.tensor:
        if not self.routes("create_expand_dims"):
            return super().expand_dims(x, axis)
        return unwrapped(interpreter_builder.create_expand_dims(wrapped(self.to_tensor(x)), axis))

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> tl.tensor:
        value = self.to_tensor(x)
        if not value.type.is_block() or not self.routes("create_broadcast"):
            return super().broadcast_to(x, shape)
        return unwrapped(interpreter_builder.create_broadcast(wrapped(value), tuple(map(plain, shape))))

    def reshape(self, x: Any, shape: Sequence[int], can_reorder: bool = False) -> tl.tensor:
        if not self.routes("create_reshape"):
            return super().reshape(x, shape, can_reorder)
        return unwrapped(
            interpreter_builder.create_reshape(wrapped(self.to_tensor(x)), tuple(map(plain, shape)), can_reorder)
        )

    def permute(self, x: tl.tensor, dims: Sequence[int]) -> tl.tensor:
        if not self.routes("create_trans"):
            return super().permute(x, dims)
        return unwrapped(interpreter_builder.create_trans(wrapped(x), tuple(map(plain, dims))))

    def where(self, condition: Any, x: Any, y: Any) -> tl.tensor:
        if not self.routes("create_select"):
            return super().where(condition, x, y)
        mask = self.to_tensor(condition)
        return unwrapped(interpreter_builder.create_select(wrapped(mask), *map(wrapped, self.choices(x, y))))

    def abs(self, x: Any) -> tl.tensor:
        value = self.to_tensor(x)
        name = "create_fabs" if value.dtype.is_floating() else "create_iabs"
        return unwrapped(getattr(interpreter_builder, name)(wrapped(value))) if self.routes(name) else super().abs(x)

    def umulhi(self, x: Any, y: Any) -> tl.tensor:
        if not self.routes("create_umulhi"):
            return super().umulhi(x, y)
        return unwrapped(interpreter_builder.create_umulhi(*map(wrapped, self.operands(x, y, "umulhi", weak=False))))

    def cast(self, x: Any, dtype: Any, fp_downcast_rounding: str | None = None) -> tl.tensor:
        value = self.to_tensor(x)
        if fp_downcast_rounding is not None or value.dtype == dtype.scalar or not self.routes("cast_impl"):
            return super().cast(x, dtype, fp_downcast_rounding)
        return unwrapped(interpreter_builder.cast_impl(wrapped(value), dtype.scalar))

    def bitcast(self, x: Any, dtype: Any) -> tl.tensor:
        if not self.routes("create_bitcast"):
            return super().bitcast(x, dtype)
        return unwrapped(interpreter_builder.create_bitcast(wrapped(self.to_tensor(x)), dtype))

    def join(self, a: Any, b: Any) -> tl.tensor:
        if not self.routes("create_join"):
            return super().join(a, b)
        return unwrapped(interpreter_builder.create_join(wrapped(self.to_tensor(a)), wrapped(self.to_tensor(b))))

    def gather(self, src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        if not self.routes("create_gather"):
            return super().gather(src, index, axis)
        return unwrapped(interpreter_builder.create_gather(wrapped(src), wrapped(index), axis))

    def load_block(self, ptr: Any, boundary_check: Any, padding: Any, options: Any = PLAIN) -> tl.tensor:
        if not self.routes("create_tensor_pointer_load"):
            return super().load_block(ptr, boundary_check, padding, options)
        handle, rest = TensorHandle(ptr.handle, ptr.type), (boundary_check, padding, None, None, False)
        return unwrapped(interpreter_builder.create_tensor_pointer_load(handle, *rest))

    def store_block(self, ptr: Any, value: Any, boundary_check: Any, options: Any = PLAIN) -> tl.tensor:
        if not self.routes("create_tensor_pointer_store"):
            return super().store_block(ptr, value, boundary_check, options)
        handle = TensorHandle(ptr.handle, ptr.type)
        interpreter_builder.create_tensor_pointer_store(
            handle, wrapped(self.to_tensor(value)), boundary_check, None, None
        )
        return self.nothing()

    def math_op(self, name: str, x: Any) -> tl.tensor:
        if not self.routes(f"create_{name}"):
            return super().math_op(name, x)
        return unwrapped(getattr(interpreter_builder, f"create_{name}")(wrapped(self.to_tensor(x))))

    def binary(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        name = builder_name(operator, a.dtype)
        if name is None or not self.routes(name):
            return super().binary(operator, a, b)
        return unwrapped(getattr(interpreter_builder, name)(wrapped(a), wrapped(b)))

    def compare(self, operator: str, a: Any, b: Any) -> tl.tensor:
        a, b = self.operands(a, b, operator, weak=False)
        name = comparison_name(operator, a.dtype)
        if not self.routes(name):
            return super().compare(operator, a, b)
        return unwrapped(getattr(interpreter_builder, name)(wrapped(a), wrapped(b)))

    def dot(
        self,
        lhs: Any,
        rhs: Any,
        acc: Any,
        input_precision: Any,
        allow_tf32: Any,
        max_num_imprecise_acc: Any,
        out_dtype: Any,
    ) -> tl.tensor:
        if not self.routes("create_dot"):
            return super().dot(lhs, rhs, acc, input_precision, allow_tf32, max_num_imprecise_acc, out_dtype)
        shape = (*lhs.handle.shape[:-1], rhs.handle.shape[-1])
        total = self.full(shape, 0, out_dtype) if plain(acc) is None else acc
        return unwrapped(interpreter_builder.create_dot(wrapped(lhs), wrapped(rhs), wrapped(total), input_precision, 0))


def builder_name(operator: str, element: tl.dtype) -> str | None:
    """The method of an operator on a type: ``create_fadd`` for + of floats."""
    kinds = ARITHMETIC.get(operator)
    if kinds is None:
        return None
    kind = kinds[1] if element.is_floating() else kinds[0]
    return f"create_{kind if isinstance(kind, str) else kind[0 if element.is_int_signed() else 1]}"


def comparison_name(operator: str, element: tl.dtype) -> str:
    """``create_fcmpOLT`` for < of floats, ``create_icmpULT`` of unsigned integers; != of floats is unordered."""
    name = COMPARISONS[operator]
    if element.is_floating():
        return f"create_fcmp{'U' if operator == '!=' else 'O'}{name}"
    sign = "" if operator in ("==", "!=") else "S" if element.is_int_signed() else "U"
    return f"create_icmp{sign}{name}"
