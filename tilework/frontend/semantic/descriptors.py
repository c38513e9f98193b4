"""Tensor descriptors: an array with its shape and strides, read and written in blocks with bounds checks.

    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])   tt.make_tensor_descriptor : <i32>, <tensor<16x32xsi32>>
    d.store([0, 32], d.load([0, 0]))                             tt.descriptor_load, tt.descriptor_store

Inside a descriptor type (only there) integers keep their sign, since reductions need it. The last dimension is
contiguous: its stride is the compile-time 1, and a row of the block has at least 16 bytes.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from typing import TYPE_CHECKING

from tilework.frontend.semantic.load_store import EVICTION, LOAD_CACHE, is_block_pointer, option
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.enums import DescriptorReduceKind, PaddingOption
from tilework.language import core as tl
from tilework.language.dtypes import block_type, int8, int32, int64, pointer_type, tensor_descriptor_type

from .pointers import as_list
from .shape import block, check_shape, plain_shape, shape_of

if TYPE_CHECKING:
    from . import Semantic

PADDING = {"zero": PaddingOption.ZERO, "nan": PaddingOption.NAN}
INTEGERS = frozenset({"uint32", "int32", "uint64", "int64"})
ATOMIC_DTYPES = {
    "add": frozenset({"uint32", "int32", "uint64", "fp32", "fp16", "bf16"}),
    "min": INTEGERS | {"fp16", "bf16"},
    "max": INTEGERS | {"fp16", "bf16"},
    "and": INTEGERS,
    "or": INTEGERS,
    "xor": INTEGERS,
}
NATIVE_ONLY = frozenset({("min", "fp16"), ("min", "bf16"), ("max", "fp16"), ("max", "bf16")})
FIRST_ARCH_WITH_TMA = 90


class DescriptorMixin:
    """`make_tensor_descriptor` and the methods of a descriptor."""

    def make_tensor_descriptor(
        self: "Semantic",
        base: tl.tensor,
        shape: object,
        strides: object,
        block_shape: object,
        padding_option: str = "zero",
    ) -> tl.tensor_descriptor:
        """A descriptor of the array at `base`, moving blocks of `block_shape`."""
        pointer = base.type if isinstance(base, tl.tensor) else None
        if not isinstance(pointer, pointer_type) or is_block_pointer(pointer):
            raise ValueError(f"Expected `base` to be a pointer, got {pointer or base}")
        sizes, dims, steps = plain_shape(as_list(block_shape)), as_list(shape), as_list(strides)
        rank = len(dims)
        if not 1 <= rank <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
        if len(steps) != rank or len(sizes) != rank:
            raise ValueError(
                f"Expected one stride and one block size per dimension: {rank} dimensions, {len(steps)} strides, "
                f"{len(sizes)} block sizes"
            )
        check_shape(sizes)
        if pointer.element_ty.is_bool():
            base = self.cast(base, pointer := pointer_type(int8, pointer.address_space, pointer.const))
        element = pointer.element_ty
        self.check_dtype(element)
        if (size := sizes[-1] * element.itemsize) < 16:
            raise ValueError(
                f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {sizes[-1]} * "
                f"{element.itemsize} = {size} bytes"
            )
        last = steps[-1].value if isinstance(steps[-1], tl.constexpr) else steps[-1]
        if not isinstance(last, int) or last != 1:
            raise ValueError(
                f"Tensor descriptor last dim must be contiguous: its stride must be the compile-time 1, got {last}"
            )
        padding = option(PADDING, "Padding option", padding_option or "zero")
        if padding == PaddingOption.NAN and element.is_int():
            raise ValueError(f"Padding option `nan` is not supported for integer blocks, here of {element}")

        extents = [self.integer_scalar(dim, int32, "shape", narrow=True) for dim in dims]
        distances = [self.integer_scalar(step, int64, "strides") for step in steps]
        type = block(element, sizes)
        assert isinstance(type, block_type)
        extents, distances = tl.tuple(extents), tl.tuple(distances)
        descriptor_type = tensor_descriptor_type(type, extents.type, distances.type)
        op = tt.MakeTensorDescOp.make(
            base.handle,
            [value.handle for value in extents.values],
            [value.handle for value in distances.values],
            ir_type(descriptor_type).block,  # pyright: ignore[reportAttributeAccessIssue]
            padding,
            self.builder.loc,
        )
        return tl.tensor_descriptor(self.builder.insert(op).results[0], extents, distances, type)

    def descriptor_load(
        self: "Semantic",
        desc: tl.tensor_descriptor,
        offsets: object,
        cache_modifier: str = "",
        eviction_policy: str = "",
    ) -> tl.tensor:
        """The block at `offsets`; elements outside the array read as the padding."""
        indices = self._descriptor_offsets(desc, offsets)
        op = tt.DescriptorLoadOp.make(
            desc.handle,
            indices,
            self.builder.loc,
            cache=option(LOAD_CACHE, "Cache modifier", cache_modifier),
            evict=option(EVICTION, "Eviction policy", eviction_policy),
        )
        return tl.tensor(self.builder.insert(op).results[0], block(desc.dtype, block_shape_of(desc)))

    def descriptor_store(self: "Semantic", desc: tl.tensor_descriptor, value: tl.tensor, offsets: object) -> tl.tensor:
        """Write a block at `offsets`; elements outside the array are dropped."""
        value = self._block_for(desc, value, "store")
        indices = self._descriptor_offsets(desc, offsets)
        self.builder.insert(tt.DescriptorStoreOp.make(desc.handle, value.handle, indices, self.builder.loc))
        return self.nothing()

    def descriptor_atomic(
        self: "Semantic", kind: str, desc: tl.tensor_descriptor, offsets: object, value: tl.tensor
    ) -> tl.tensor:
        """Combine a block with the array at `offsets`, element by element, without returning the old values."""
        name = desc.dtype.name
        assert name in ATOMIC_DTYPES[kind], (
            f"atomic_{kind} through a descriptor does not support {name}: use one of {sorted(ATOMIC_DTYPES[kind])}"
        )
        has_tma = (self.options.arch or 0) >= FIRST_ARCH_WITH_TMA
        assert has_tma or (kind, name) not in NATIVE_ONLY, (
            f"atomic_{kind} of {name} through a descriptor needs sm_{FIRST_ARCH_WITH_TMA} or newer"
        )
        value = self._block_for(desc, value, f"atomic_{kind}")
        indices = self._descriptor_offsets(desc, offsets)
        reduce_kind = DescriptorReduceKind[kind.upper()]
        op = tt.DescriptorReduceOp.make(reduce_kind, desc.handle, value.handle, indices, self.builder.loc)
        self.builder.insert(op)
        return self.nothing()

    def descriptor_gather(
        self: "Semantic", desc: tl.tensor_descriptor, x_offsets: tl.tensor, y_offset: object
    ) -> tl.tensor:
        """Row ``x_offsets[i]``, columns from `y_offset` on, as row i of the result."""
        shape = self._rows_of(desc, x_offsets, "gather")
        column = self.integer_scalar(y_offset, int32, "y_offset")
        type = ir_type(block(desc.dtype, shape))
        op = tt.DescriptorGatherOp.make(desc.handle, x_offsets.handle, column.handle, type, self.builder.loc)
        return tl.tensor(self.builder.insert(op).results[0], block(desc.dtype, shape))

    def descriptor_scatter(
        self: "Semantic", desc: tl.tensor_descriptor, value: tl.tensor, x_offsets: tl.tensor, y_offset: object
    ) -> tl.tensor:
        """Write row i of `value` to row ``x_offsets[i]``, columns from `y_offset` on."""
        shape = self._rows_of(desc, x_offsets, "scatter")
        assert shape_of(value) == shape, (
            f"descriptor scatter of {shape[0]} rows takes a value of shape {list(shape)}, got {list(shape_of(value))}"
        )
        value = self.cast(value, desc.dtype)
        column = self.integer_scalar(y_offset, int32, "y_offset")
        op = tt.DescriptorScatterOp.make(desc.handle, x_offsets.handle, column.handle, value.handle, self.builder.loc)
        self.builder.insert(op)
        return self.nothing()

    def _rows_of(self: "Semantic", desc: tl.tensor_descriptor, x_offsets: tl.tensor, what: str) -> tuple[int, int]:
        """The shape a gather or scatter moves: one row per offset."""
        sizes = block_shape_of(desc)
        assert len(sizes) == 2 and sizes[0] == 1, (
            f"descriptor {what} needs a 2-D descriptor with one row per block, got block shape {list(sizes)}"
        )
        rows = shape_of(x_offsets)
        assert len(rows) == 1 and x_offsets.type.scalar.is_int32(), (
            f"descriptor {what} takes its x offsets as a 1-D block of int32, got {x_offsets.type}"
        )
        assert rows[0] >= 8, f"descriptor {what} must have at least 8 rows, but got {rows[0]}"
        least = 256 // desc.dtype.primitive_bitwidth
        assert sizes[1] >= least, (
            f"descriptor {what} of {desc.dtype} must have at least {least} columns, but got {sizes[1]}"
        )
        return rows[0], sizes[1]

    def _block_for(self: "Semantic", desc: tl.tensor_descriptor, value: tl.tensor, what: str) -> tl.tensor:
        """`value` cast to the element type of `desc`, after checking its shape."""
        value = self.to_tensor(value)
        sizes = block_shape_of(desc)
        assert shape_of(value) == sizes, (
            f"descriptor {what} takes a value of the block shape {list(sizes)}, got {list(shape_of(value))}"
        )
        return self.cast(value, desc.dtype)

    def _descriptor_offsets(self: "Semantic", desc: tl.tensor_descriptor, offsets: object) -> list:
        values, rank = as_list(offsets), len(block_shape_of(desc))
        assert len(values) == rank, f"expected one offset per dimension: {rank}, but got {len(values)}"
        return self.integer_handles(values, int32, "descriptor offsets")


def block_shape_of(desc: tl.tensor_descriptor) -> tuple[int, ...]:
    """The shape of the blocks that `desc` moves."""
    return tuple(desc.type.block_type.shape.values)
