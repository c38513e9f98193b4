"""`tensor_descriptor`, a window on an array in memory, and its type.

    desc = tl.make_tensor_descriptor(ptr, shape=[M, N], strides=[N, 1], block_shape=[64, 32])
    block = desc.load([row, col])       # elements outside the array read as the padding value
    desc.store([row, col], block * 2)   # elements outside the array are dropped

The methods here become builtins in `core.py`, as those of `tensor` do.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, base_type, base_value, tuple, tuple_type
from tilework.language.dtypes import block_type, dtype

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
) -> Callable[..., Any]:
    """A method that changes memory; `result` is what it makes of memory that is 3 everywhere, and of `value`."""

    def method(self: "tensor_descriptor", offsets: Any, value: Any, _semantic: Any = None) -> Any:
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
    """A block-shaped window on an array in memory, made by `make_tensor_descriptor` or passed in by the host.

    `shape` and `strides` are those of the array, `block_shape` and `dtype` those of the blocks that its methods move. On NVIDIA GPUs
    from Hopper on the copy engine (TMA) moves them; elsewhere they are plain accesses with a mask.

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

    def __init__(self, handle: Any, shape: Any, strides: Any, block_type: block_type) -> None:
        self.handle = handle
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.strides = strides if isinstance(strides, tuple) else tuple(strides)
        self.type = tensor_descriptor_type(block_type, self.shape.type, self.strides.type)

    @property
    def block_type(self) -> block_type:
        """The type of the blocks it moves.

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
        """Sizes of the blocks it moves.

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

    def load(self, offsets: Any, _semantic: Any = None) -> Any:
        """The block whose first element is at `offsets`: ``desc.load([row, col])``. What lies outside of the array is the padding.

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

    def store(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Write a block of `block_shape`, converted to the descriptor's dtype; what lies outside is dropped.

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

    def gather(self, *args: Any, _semantic: Any = None) -> Any:
        """Rows `x_offsets` and columns from `y_offset` on: ``desc.gather(rows, col)``, for a block shape of (1, C).

        GPUs have instructions for it from sm_100 on, and earlier NVIDIA GPUs refuse it; the CPU and the interpreter load the rows.

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

    def scatter(self, value: Any, *args: Any, _semantic: Any = None) -> Any:
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
    atomic_min = _descriptor_atomic("min", "Keep the smaller of memory and `value`", 4, 3)
    atomic_max = _descriptor_atomic("max", "Keep the larger of memory and `value`", 4, 4)
    atomic_and = _descriptor_atomic("and", "Clear the bits that are 0 in `value`", 6, 2)
    atomic_or = _descriptor_atomic("or", "Set the bits that are 1 in `value`", 6, 7)
    atomic_xor = _descriptor_atomic("xor", "Flip the bits that are 1 in `value`", 6, 5)
