"""Run-time values: `tensor`, a scalar or a block of data, and `tensor_descriptor`, an array in memory that is accessed
in blocks.

    x = tl.load(ptr + tl.arange(0, 64))     # tensor of type <['64'], fp32>
    y = x * 2 + 1                            # each operator calls the semantic object, which builds the operation
    y.shape, y.dtype                         # (constexpr[64],), fp32

    desc = tl.make_tensor_descriptor(ptr, shape=[M, N], strides=[N, 1], block_shape=[64, 32])
    block = desc.load([row, col])       # elements outside the array read as the padding value
    desc.store([row, col], block * 2)   # elements outside the array are dropped

A tensor is a `handle` with a `type`. The handle is opaque: an SSA value in the compiler, data in the interpreter. An
operator is a method with a hidden `_semantic` argument, the object that executes it (`semantic.py`). The methods here
become builtins in `core.py`, which also attaches the library functions as methods.
"""

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tilework.language.compile_time import (
    ACTIVE,
    SUPPLIED,
    RunTimeOnly,
    _unwrap_if_constexpr,
    base_type,
    base_value,
    constexpr,
    slice,
    tuple,
    tuple_type,
)
from tilework.language.dtypes import block_type, dtype

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


def _operator(name: str, doc: str | None = None) -> "Callable[[tensor, Value], tensor]":
    """``self op other``: the semantic method `name`."""

    def method(self: "tensor", other: "Value", _semantic: "Semantic" = SUPPLIED) -> "tensor":
        return getattr(_semantic, name)(self, other)

    method.__doc__ = doc
    return method


def _swapped(name: str) -> "Callable[[tensor, Value], tensor]":
    """``other op self``, for an `other` that is not a tensor."""

    def method(self: "tensor", other: "Value", _semantic: "Semantic" = SUPPLIED) -> "tensor":
        return getattr(_semantic, name)(other, self)

    return method


def _unary_operator(name: str) -> "Callable[[tensor], tensor]":
    def method(self: "tensor", _semantic: "Semantic" = SUPPLIED) -> "tensor":
        return getattr(_semantic, name)(self)

    return method


class tensor(base_value):
    """A run-time value: one element (its type is a dtype or a pointer), or a block of elements (its type is a
    `block_type`).

    Python's operators, ``+ - * / // % & | ^ << >> ~`` and comparisons, work element by element and broadcast as in
    NumPy. A Python number takes the type of the tensor operand (``x + 1`` of int8 is int8) unless it is of a higher
    kind (``x + 0.5`` of int8 is fp32). ``/`` of integers gives a float; ``//`` and ``%`` of integers round towards
    zero, as in C, not as in Python. ``and``, ``or`` and ``not`` are for scalars and constants, ``&``, ``|`` and ``~``
    for blocks. ``x[:, None]``, ``x[3]`` and ``x[2:10]`` mean what they mean in NumPy.

    Most functions of `tl` on a tensor are methods too: ``x.sum(0)`` is ``tl.sum(x, 0)``.

    Example:
        @tilework.jit
        def outer(x, y):
            return x[:, None] * y[None, :] + 1

        x, y = np.array([1, 2]), np.array([3, 4])
        assert call(outer, x, y).tolist() == [[4, 5], [7, 9]]

        @tilework.jit
        def quotient(x, y):
            return x // y, x % y

        towards_zero, remainder = call(quotient, np.array([-7, 7]), 2)
        assert towards_zero.tolist() == [-3, 3] and remainder.tolist() == [-1, 1]
    """

    def __init__(self, handle: Any, type: dtype) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar

    @property
    def shape(self) -> tuple:
        """The sizes as constants; empty for a scalar. It compares equal to a list or tuple of ints: ``x.shape == [4,
        8]``.

        Example:
            @tilework.jit
            def mean(x):
                return tl.sum(x, 1) / x.shape[1]

            assert_close(call(mean, np.array([[1.0, 2.0], [3.0, 5.0]])), [1.5, 4])
        """
        return self.type.constexpr_shape if isinstance(self.type, block_type) else tuple()

    @property
    def numel(self) -> constexpr:
        """The number of elements, a constant; 1 for a scalar.

        Example:
            @tilework.jit
            def mean(x):
                return tl.sum(x) / x.numel

            assert call(mean, np.array([[1.0, 2.0], [3.0, 6.0]])) == 3
        """
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    @property
    def T(self) -> "tensor":
        """``x.T`` in a kernel is `trans(x)` of a 2-D block.

        Example:
            @tilework.jit
            def transposed(x):
                return x.T

            x = np.arange(8).reshape(2, 4)
            assert_close(call(transposed, x), x.T)
        """
        if (active := ACTIVE.get()) is not None:
            return active.semantic.transposed(self)
        raise ValueError("x.T exists only inside a function decorated with @jit")

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(size) for size in self.shape)}]"

    __repr__ = __str__

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if (active := ACTIVE.get()) is not None:
            return active.truth(self)
        text = f"{self} has no truth value while compiling: compare it with None, or branch on it in a kernel"
        raise RunTimeOnly(text, "__bool__", self)

    def __index__(self) -> int:
        if (active := ACTIVE.get()) is not None and self.dtype.is_int():
            return int(active.number(self))
        raise RunTimeOnly(f"{self} is not an integer known at compile time", "__index__", self)

    def __int__(self) -> int:
        return int(_known_value(self))

    def __float__(self) -> float:
        return float(_known_value(self))

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("truediv"), _swapped("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _swapped("floordiv")
    __mod__, __rmod__ = _operator("mod"), _swapped("mod")
    __and__, __rand__ = _operator("and_"), _swapped("and_")
    __or__, __ror__ = _operator("or_"), _swapped("or_")
    __xor__, __rxor__ = _operator("xor_"), _swapped("xor_")
    __lshift__, __rlshift__ = _operator("shl"), _swapped("shl")
    __rshift__, __rrshift__ = _operator("shr"), _swapped("shr")
    __lt__, __rlt__ = _operator("less_than"), _swapped("less_than")
    __le__, __rle__ = _operator("less_equal"), _swapped("less_equal")
    __gt__, __rgt__ = _operator("greater_than"), _swapped("greater_than")
    __ge__, __rge__ = _operator("greater_equal"), _swapped("greater_equal")
    __req__, __rne__ = _swapped("equal"), _swapped("not_equal")
    __neg__, __pos__ = _unary_operator("minus"), _unary_operator("plus")
    __invert__, __not__ = _unary_operator("invert"), _unary_operator("not_")
    logical_and = _operator(
        "logical_and",
        """True where both operands are true. For comparisons, ``x & y`` is the same; numbers must be compared first.

        Example:
            @tilework.jit
            def both(x, y):
                return (x > 0).logical_and(y > 0)

            assert call(both, np.array([0, 2]), np.array([1, 1])).tolist() == [False, True]
        """,
    )
    logical_or = _operator(
        "logical_or",
        """True where at least one operand is true. For comparisons, ``x | y`` is the same; numbers must be compared
        first.

        Example:
            @tilework.jit
            def either(x, y):
                return (x > 0).logical_or(y > 0)

            assert call(either, np.array([0, 0]), np.array([0, 3])).tolist() == [False, True]
        """,
    )

    def __eq__(self, other: object, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        return _semantic.equal(self, other)

    def __ne__(self, other: object, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        return _semantic.not_equal(self, other)

    def __getitem__(self, slices: object, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """``x[:, None]``, ``x[3]``, ``x[i]``, ``x[2:10]``, ``x[..., ::2]``, with NumPy's meaning.

        None inserts an axis of size 1, an integer or run-time scalar picks one element of an axis, and a slice whose
        bounds are known at compile time takes several; ``x[2:10] = v`` gives `x` a new value. A run-time index outside
        the block is undefined behaviour; debug builds detect it. For blocks of indices, use `gather`.

        A scalar has no axis to keep: ``s[:, None]`` and ``s[None, :]`` are blocks of one element, as ``s[None]`` is.

        Example:
            @tilework.jit
            def column(x):
                return x[:, None]

            @tilework.jit
            def ends(x):
                x[0] = 7
                return x[::3]

            assert call(column, np.arange(4)).shape == (4, 1)
            assert call(ends, np.arange(4)).tolist() == [7, 3]
        """
        items, is_scalar = _index_list(slices), not self.type.is_block()
        new_axes = [_unwrap_if_constexpr(index) is None for index in items]
        if not all(is_new or is_full_slice(index) for index, is_new in zip(items, new_axes)):
            return _semantic.subscript(self, slices)
        result = self
        for axis, is_new in enumerate(new_axes):
            if is_new:
                result = _semantic.expand_dims(result, 0 if is_scalar else axis)
        return result

    def to(
        self,
        dtype: dtype | constexpr,
        fp_downcast_rounding: str | constexpr | None = None,
        bitcast: bool | constexpr = False,
        _semantic: "Semantic" = SUPPLIED,
    ) -> "tensor":
        """Convert the elements, or with `bitcast` reinterpret their bits: ``x.to(tl.float16)``. See `cast`.

        Example:
            @tilework.jit
            def whole(x):
                return x.to(tl.int32)

            assert call(whole, np.array([1.7, -1.7])).tolist() == [1, -1]
        """
        if _unwrap_if_constexpr(bitcast):
            return _semantic.bitcast(self, _unwrap_if_constexpr(dtype))
        return _semantic.cast(self, _unwrap_if_constexpr(dtype), _unwrap_if_constexpr(fp_downcast_rounding))

    def item(self, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """The element of a block that has exactly one; a scalar is returned unchanged.

        Example:
            @tilework.jit
            def scalar_of(x):
                return x.item()

            assert call(scalar_of, np.array([[7]])) == 7
        """
        assert self.numel.value == 1, f"item() needs exactly one element, {self} has {self.numel.value}"
        return _semantic.unsplat(self) if self.type.is_block() else self

    if TYPE_CHECKING:  # functions of `tl` that `core.tensor_method` makes methods

        def abs(self) -> "tensor": ...

        ceil = cos = erf = exp = exp2 = floor = log = log2 = rsqrt = sigmoid = sin = sqrt = sqrt_rn = abs

        def advance(self, offsets: "Offsets") -> "tensor": ...
        def argmax(
            self, axis: int | constexpr, tie_break_left: bool | constexpr = True, keep_dims: bool | constexpr = False
        ) -> "tensor": ...

        argmin = argmax

        def associative_scan(
            self, axis: int | constexpr, combine_fn: Callable[..., Any], reverse: bool | constexpr = False
        ) -> "tensor": ...
        def atomic_add(
            self,
            val: "Value",
            mask: "Value | None" = None,
            sem: str | constexpr | None = None,
            scope: str | constexpr | None = None,
            ordered: bool | constexpr = False,
        ) -> "tensor": ...

        atomic_and = atomic_max = atomic_min = atomic_or = atomic_xchg = atomic_xor = atomic_add

        def atomic_cas(
            self, cmp: "Value", val: "Value", sem: str | constexpr | None = None, scope: str | constexpr | None = None
        ) -> "tensor": ...
        def atomic_poll(
            self,
            expected_value: "Value",
            sem: str | constexpr | None = None,
            scope: str | constexpr | None = None,
            timeout_ns: int | constexpr | None = None,
        ) -> None: ...
        def broadcast_to(self, *shape: "Sizes") -> "tensor": ...
        def cast(
            self,
            dtype: dtype | constexpr,
            fp_downcast_rounding: str | constexpr | None = None,
            bitcast: bool | constexpr = False,
        ) -> "tensor": ...
        def cdiv(self, div: "Value") -> "tensor": ...
        def cumprod(self, axis: int | constexpr = 0, reverse: bool | constexpr = False) -> "tensor": ...
        def cumsum(
            self, axis: int | constexpr = 0, reverse: bool | constexpr = False, dtype: dtype | constexpr | None = None
        ) -> "tensor": ...
        def expand_dims(self, axis: "Sizes") -> "tensor": ...
        def flip(self, dim: int | constexpr | None = None) -> "tensor": ...
        def gather(self, index: "tensor", axis: int | constexpr) -> "tensor": ...
        def histogram(self, num_bins: int | constexpr, mask: "Value | None" = None) -> "tensor": ...
        def max(
            self,
            axis: int | constexpr | None = None,
            return_indices: bool | constexpr = False,
            return_indices_tie_break_left: bool | constexpr = True,
            keep_dims: bool | constexpr = False,
        ) -> Any: ...

        min = max

        def permute(self, *dims: "Sizes") -> "tensor": ...

        trans = permute

        def ravel(self, can_reorder: bool | constexpr = False) -> "tensor": ...
        def reduce(
            self, axis: int | constexpr | None, combine_fn: Callable[..., Any], keep_dims: bool | constexpr = False
        ) -> "tensor": ...
        def reduce_or(self, axis: int | constexpr, keep_dims: bool | constexpr = False) -> "tensor": ...
        def reshape(self, *shape: "Sizes", can_reorder: bool | constexpr = False) -> "tensor": ...
        def softmax(
            self,
            dim: int | constexpr | None = None,
            keep_dims: bool | constexpr = False,
            ieee_rounding: bool | constexpr = False,
        ) -> "tensor": ...
        def sort(self, dim: int | constexpr | None = None, descending: bool | constexpr = False) -> "tensor": ...
        def split(self) -> tuple: ...
        def store(
            self,
            value: "Value",
            mask: "Value | None" = None,
            boundary_check: "Sizes | None" = (),
            cache_modifier: str | constexpr = "",
            eviction_policy: str | constexpr = "",
        ) -> "tensor": ...
        def sum(
            self,
            axis: int | constexpr | None = None,
            keep_dims: bool | constexpr = False,
            dtype: dtype | constexpr | None = None,
        ) -> "tensor": ...
        def topk(
            self, k: int | constexpr, dim: int | constexpr | None = None, descending: bool | constexpr = True
        ) -> "tensor": ...
        def view(self, *shape: "Sizes") -> "tensor": ...
        def xor_sum(self, axis: int | constexpr | None = None, keep_dims: bool | constexpr = False) -> "tensor": ...


def _known_value(value: tensor) -> int | float:
    """The data of a scalar, which exists only while a kernel is interpreted."""
    if (active := ACTIVE.get()) is None:
        raise TypeError(f"{value} is not a number known at compile time: convert it with .to() in the kernel")
    return active.number(value)


def _index_list(slices: Any) -> Any:
    slices = _unwrap_if_constexpr(slices)
    return slices if isinstance(slices, (list, tuple, builtins.tuple)) else [slices]


def is_full_slice(index: object) -> bool:
    """Return True for ``:``; the bounds of other slices may be run-time values, which do not compare with None."""
    index = _unwrap_if_constexpr(index)
    if isinstance(index, slice):
        return index.is_full()
    is_slice = isinstance(index, builtins.slice)
    return is_slice and index.start is None and index.stop is None and index.step is None


dtype.value_class = tensor
Value = tensor | constexpr | int | float  # an operand: data, or a number that is known at compile time
Sizes = (
    Sequence[int | constexpr] | tuple | constexpr | int
)  # a shape or some axes, known at compile time; one is a list
Offsets = Sequence[Value] | tuple | Value  # one operand per dimension; one is a list


_ATOMIC_DOC = """{does}, element by element and atomically{more}.

        Example:
            @tilework.jit
            def kernel(out):
                blocks = tl.make_tensor_descriptor(out, [2, 4], [4, 1], [2, 4])
                blocks.atomic_{kind}([0, 0], tl.full((2, 4), {value}, tl.{type}))

            out = np.full((2, 4), 3, np.{type})
            kernel[(1,)](out)
            assert (out == {result}).all()
        """


def _descriptor_atomic(
    kind: str, does: str, value: int, result: int, type: str = "int32", more: str = ""
) -> "Callable[[tensor_descriptor, Offsets, Value], tensor]":
    """A method that changes memory; `result` is what it makes of memory that is 3 everywhere, and of `value`."""

    def method(
        self: "tensor_descriptor", offsets: "Offsets", value: "Value", _semantic: "Semantic" = SUPPLIED
    ) -> "tensor":
        return _semantic.descriptor_atomic(kind, self, _unwrap_if_constexpr(offsets), value)

    method.__doc__ = _ATOMIC_DOC.format(kind=kind, does=does, value=value, result=result, type=type, more=more)
    return method


class tensor_descriptor_type(base_type):
    """The type of a `tensor_descriptor`: the block it moves, and the types of its shape and strides.

    Example:
        assert str(tl.str_to_ty("tensordesc<fp16[64, 32]>")) .startswith("tensor_descriptor<")
    """

    def __init__(self, block_type: block_type, shape_type: tuple_type, strides_type: tuple_type) -> None:
        self.block_type, self.shape_type, self.strides_type = block_type, shape_type, strides_type

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, tensor_descriptor_type)
            and self.block_type == other.block_type
            and self.shape_type == other.shape_type
            and self.strides_type == other.strides_type
        )

    def __hash__(self) -> int:
        return hash((self.block_type, self.shape_type, self.strides_type))

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    __repr__ = __str__

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple[Any, int]:
        handle = handles[cursor]
        shape, cursor = self.shape_type._unflatten_ir(handles, cursor + 1)
        strides, cursor = self.strides_type._unflatten_ir(handles, cursor)
        return tensor_descriptor(handle, shape, strides, self.block_type), cursor


class tensor_descriptor(base_value):
    """A descriptor of an array in memory that is accessed in blocks, made by `make_tensor_descriptor` or passed by the
    host.

    `shape` and `strides` are those of the array, `block_shape` and `dtype` those of the blocks that its methods move.
    On NVIDIA GPUs from Hopper on, the copy engine (TMA) moves them; elsewhere, ordinary masked loads and stores do.

    Example:
        from tilework.tools.tensor_descriptor import TensorDescriptor

        @tilework.jit
        def double(blocks):
            row = tl.program_id(0) * 2
            blocks.store([row, 0], blocks.load([row, 0]) * 2)

        x = np.ones((4, 8), np.float32)
        double[(2,)](TensorDescriptor.from_tensor(x, [2, 8]))
        assert (x == 2).all()
    """

    def __init__(self, handle: Any, shape: Iterable[Any], strides: Iterable[Any], block_type: block_type) -> None:
        self.handle = handle
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.strides = strides if isinstance(strides, tuple) else tuple(strides)
        self.type = tensor_descriptor_type(block_type, self.shape.type, self.strides.type)

    @property
    def block_type(self) -> block_type:
        """The type of its blocks.

        Example:
            @tilework.jit
            def kernel(x):
                blocks = tl.make_tensor_descriptor(x, [4, 4], [4, 1], [2, 4])
                tl.static_assert(blocks.block_type == tl.block_type(tl.float32, [2, 4]))

            kernel[(1,)](np.zeros((4, 4), np.float32))
        """
        return self.type.block_type

    @property
    def block_shape(self) -> tuple:
        """The sizes of its blocks.

        Example:
            @tilework.jit
            def kernel(x):
                blocks = tl.make_tensor_descriptor(x, [4, 4], [4, 1], [2, 4])
                tl.static_assert(blocks.block_shape[0] == 2)

            kernel[(1,)](np.zeros((4, 4), np.float32))
        """
        return self.type.block_type.shape

    @property
    def dtype(self) -> dtype:
        """The element type of the array.

        Example:
            @tilework.jit
            def kernel(x):
                blocks = tl.make_tensor_descriptor(x, [4, 4], [4, 1], [2, 4])
                tl.static_assert(blocks.dtype == tl.float32)

            kernel[(1,)](np.zeros((4, 4), np.float32))
        """
        return self.type.block_type.element_ty

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)
        self.shape._flatten_ir(handles)
        self.strides._flatten_ir(handles)

    def __str__(self) -> str:
        return str(self.type)

    __repr__ = __str__

    def load(self, offsets: "Offsets", _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """The block whose first element is at `offsets`: ``desc.load([row, col])``. Elements outside the array read as
        the padding.

        Example:
            @tilework.jit
            def kernel(x, out):
                blocks = tl.make_tensor_descriptor(x, [3, 4], [4, 1], [2, 4])
                value = blocks.load([2, 0])  # its second row is outside: zeros
                tl.store(out + tl.arange(0, 2), tl.sum(value, 1))

            out = np.zeros(2, np.float32)
            kernel[(1,)](np.ones((3, 4), np.float32), out)
            assert out.tolist() == [4, 0]
        """
        return _semantic.descriptor_load(self, _unwrap_if_constexpr(offsets), "", "")

    def store(self, offsets: "Offsets", value: "Value", _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """Write a block of shape `block_shape`, converted to the descriptor's dtype; elements outside the array are
        dropped.

        Example:
            @tilework.jit
            def kernel(out):
                blocks = tl.make_tensor_descriptor(out, [3, 4], [4, 1], [2, 4])
                blocks.store([2, 0], tl.full((2, 4), 5, tl.float32))

            out = np.zeros((3, 4), np.float32)
            kernel[(1,)](out)
            assert out.sum(1).tolist() == [0, 0, 20]
        """
        return _semantic.descriptor_store(self, value, _unwrap_if_constexpr(offsets))

    def gather(self, *args: Any, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """Load the rows `x_offsets`, from the column `y_offset` on: ``desc.gather(rows, col)``. The block shape must be
        (1, C).

        NVIDIA GPUs have instructions for it from sm_100 on; for earlier ones it is an error. The CPU and the
        interpreter load the rows.

        Example:
            @tilework.jit
            def kernel(x, rows, out):
                lines = tl.make_tensor_descriptor(x, [4, 8], [8, 1], [1, 8])
                picked = lines.gather(tl.load(rows + tl.arange(0, 8)), 0)
                tl.store(out + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], picked)

            x, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((8, 8), np.float32)
            rows = np.array([3, 3, 0, 1, 2, 2, 1, 0], np.int32)
            kernel[(1,)](x, rows, out)
            assert_close(out, x[rows])
        """
        assert len(args) == 2, f"descriptor gather takes x_offsets and y_offset, got {len(args)} arguments"
        return _semantic.descriptor_gather(self, *args)

    def scatter(self, value: tensor, *args: Any, _semantic: "Semantic" = SUPPLIED) -> "tensor":
        """The inverse of `gather`: row i of `value` goes to row ``x_offsets[i]``.

        Example:
            @tilework.jit
            def kernel(out, rows):
                lines = tl.make_tensor_descriptor(out, [8, 8], [8, 1], [1, 8])
                value = tl.broadcast_to(tl.arange(0, 8)[:, None].to(tl.float32), (8, 8))
                lines.scatter(value, tl.load(rows + tl.arange(0, 8)), 0)

            out, rows = np.zeros((8, 8), np.float32), np.array([7, 6, 5, 4, 3, 2, 1, 0], np.int32)
            kernel[(1,)](out, rows)
            assert out[:, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
        """
        assert len(args) == 2, f"descriptor scatter takes x_offsets and y_offset, got {len(args)} arguments"
        return _semantic.descriptor_scatter(self, value, *args)

    atomic_add = _descriptor_atomic("add", "Add a block to memory", 4, 7, "float32", "; nothing is returned")
    atomic_min = _descriptor_atomic("min", "Store the smaller of memory and `value`", 4, 3)
    atomic_max = _descriptor_atomic("max", "Store the larger of memory and `value`", 4, 4)
    atomic_and = _descriptor_atomic("and", "Clear the bits that are 0 in `value`", 6, 2)
    atomic_or = _descriptor_atomic("or", "Set the bits that are 1 in `value`", 6, 7)
    atomic_xor = _descriptor_atomic("xor", "Flip the bits that are 1 in `value`", 6, 5)
