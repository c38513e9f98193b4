"""Block pointers: the address of a whole block inside an array whose shape and strides are known.

    bp = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (16, 32), (1, 0))     tt.make_tensor_ptr -> !tt.ptr<tensor<16x32xf32>>
    bp = tl.advance(bp, (0, 32))                                            tt.advance

Element (i, j) of the block lies at ``base + (offset0 + i) * stride0 + (offset1 + j) * stride1``. Shape and strides are
64-bit, offsets 32-bit. A base of bools points to bytes, so the block holds int8.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from tilework.frontend.semantic.load_store import is_block_pointer
from tilework.ir import tt
from tilework.language import core as tl
from tilework.language.dtypes import dtype, int8, int32, int64, pointer_type

from .shape import block, check_shape, plain_shape

if TYPE_CHECKING:
    from . import Semantic


def as_list(values: object) -> list:
    """The elements of a list or tuple of any kind; a bare value is a list of one."""
    if isinstance(values, tl.constexpr):
        values = values.value
    if isinstance(values, tl.tuple):
        return list(values.values)
    return list(values) if isinstance(values, (list, tuple)) else [values]


class BlockPointerMixin:
    """`make_block_ptr` and `advance`, and the scalar lists that descriptors take too."""

    def make_block_ptr(
        self: "Semantic",
        base: tl.tensor,
        shape: object,
        strides: object,
        offsets: object,
        block_shape: object,
        order: object,
    ) -> tl.tensor:
        """A pointer to the block at `offsets`; `order` lists the dimensions, the fastest-varying first."""
        pointer = base.type if isinstance(base, tl.tensor) else None
        if not isinstance(pointer, pointer_type) or is_block_pointer(pointer):
            raise ValueError(
                f"Expected `base` to be a pointer type (but not a block pointer type or others), got {pointer or base}"
            )
        if pointer.element_ty.is_bool():
            pointer = pointer_type(int8, pointer.address_space, pointer.const)
            base = self.cast(base, pointer)
        sizes = check_shape(plain_shape(as_list(block_shape)))
        axes = plain_shape(as_list(order))
        lists = {"shape": as_list(shape), "strides": as_list(strides), "offsets": as_list(offsets), "order": axes}
        for name, values in lists.items():
            if len(values) != len(sizes):
                raise ValueError(
                    f"Expected shape/strides/offsets/block_shape/order to have the same length: {name} has "
                    f"{len(values)} elements, block_shape {len(sizes)}"
                )
        assert sorted(axes) == list(range(len(axes))), (
            f"Expected a permutation of (0, 1, ..., len(order)-1) in order, got {list(axes)}"
        )
        op = tt.MakeTensorPtrOp.make(
            base.handle,
            self.integer_handles(lists["shape"], int64, "shape"),
            self.integer_handles(lists["strides"], int64, "strides"),
            self.integer_handles(lists["offsets"], int32, "offsets"),
            sizes,
            axes,
            self.builder.loc,
        )
        block_pointer = pointer_type(block(pointer.element_ty, sizes), pointer.address_space, pointer.const)
        return tl.tensor(self.builder.insert(op).results[0], block_pointer)

    def advance(self: "Semantic", base: tl.tensor, offsets: object) -> tl.tensor:
        """A block pointer moved by `offsets` elements along each dimension."""
        if not isinstance(base, tl.tensor) or not is_block_pointer(base.type):
            raise ValueError(f"advance takes a block pointer made by make_block_ptr, got {getattr(base, 'type', base)}")
        steps, rank = as_list(offsets), len(base.type.element_ty.shape)
        if len(steps) != rank:
            raise ValueError(f"advance takes one offset per dimension: the block has {rank}, got {len(steps)}")
        op = tt.AdvanceOp.make(base.handle, self.integer_handles(steps, int32, "offsets"), self.builder.loc)
        return tl.tensor(self.builder.insert(op).results[0], base.type)

    def integer_handles(self: "Semantic", values: Sequence, type: dtype, what: str) -> list[SSAValue]:
        """Each of `values` (numbers or scalar integers) as an SSA value of the integer type `type`."""
        return [self.integer_scalar(value, type, what).handle for value in values]

    def integer_scalar(self: "Semantic", value: object, type: dtype, what: str, narrow: bool = False) -> tl.tensor:
        """One number or scalar integer as a scalar of `type`; a wider value is refused, or cut off if `narrow`."""
        if isinstance(value, tl.constexpr):
            value = value.value
        if isinstance(value, int):
            if not type.get_int_min_value() <= value <= type.get_int_max_value():
                raise ValueError(f"{what} element {value} does not fit in {type}")
            return self.scalar_constant(int(value), type)
        if not isinstance(value, tl.tensor) or value.type.is_block() or not value.type.is_int():
            got = value.type if isinstance(value, tl.tensor) else repr(value)
            raise ValueError(f"{what} must be compile-time ints or scalar integers, got {got}")
        if value.type.int_bitwidth > type.int_bitwidth and not narrow:
            raise ValueError(
                f"{what} must be {type}, got {value.type}; cast it with .to(tl.{type}) if it is known to fit"
            )
        return self.cast(value, type)
