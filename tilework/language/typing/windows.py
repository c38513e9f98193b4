"""Block pointers and tensor descriptors: windows of a fixed block shape on an array in memory.

Element (i, j) of a block is at ``base + (offset0 + i) * stride0 + (offset1 + j) * stride1``. Shape and strides are
64-bit, offsets 32-bit; the shape of a descriptor is 32-bit. A base of bools points to bytes, so the block holds int8.
The last dimension of a descriptor is contiguous: its stride is the compile-time 1.
"""

from collections.abc import Sequence
from typing import Any

from tilework.language.compile_time import tuple as language_tuple
from tilework.language.dtypes import dtype, int32, int64, pointer_type
from tilework.language.typing.access import (
    EVICTION,
    LOAD_CACHE,
    PADDING,
    Access,
    is_block_pointer,
    option,
)
from tilework.language.typing.carrier import Shape
from tilework.language.typing.promotion import plain
from tilework.language.typing.shapes import block, plain_shape, shape_of
from tilework.language.values import Offsets, Sizes, Value, tensor, tensor_descriptor
from tilework.process.triton_version import follows

DEPRECATED = "tl.make_block_ptr is deprecated. Use TensorDescriptor or tl.make_tensor_descriptor instead."
REMOVED = "Triton 3.8 has no tl.make_block_ptr\nhelp: use TensorDescriptor or tl.make_tensor_descriptor"
INTEGERS = ("uint32", "int32", "uint64", "int64")
ATOMIC_DTYPES = {
    "add": ("uint32", "int32", "uint64", "fp32", "fp16", "bf16"),
    **dict.fromkeys(("min", "max"), (*INTEGERS, "fp16", "bf16")),
    **dict.fromkeys(("and", "or", "xor"), INTEGERS),
}


class Windows(Access):
    """`make_block_ptr`, `advance`, `make_tensor_descriptor` and the methods of descriptors."""

    def make_block_ptr(
        self, base: tensor, shape: Offsets, strides: Offsets, offsets: Offsets, block_shape: Sizes, order: Sizes
    ) -> tensor:
        """A pointer to the block at `offsets`; `order` lists the dimensions, the fastest-varying first."""
        if not is_plain_pointer(base):
            raise ValueError(
                "Expected `base` to be a pointer type (but not a block pointer type or others), got "
                f"{getattr(base, 'type', base)}"
            )
        if follows("block-pointers-removed"):
            raise TypeError(REMOVED)
        if follows("block-pointers-deprecated"):
            self.warn(DEPRECATED, UserWarning)
        base = self._byte_pointers(base)
        sizes = self.checked_shape(plain_shape(as_list(block_shape)))
        axes = plain_shape(as_list(order))
        lists = {"shape": as_list(shape), "strides": as_list(strides), "offsets": as_list(offsets), "order": axes}
        for name, values in lists.items():
            if len(values) != len(sizes):
                raise AssertionError(
                    f"Expected shape/strides/offsets/block_shape to have the same length: {name} has "
                    f"{len(values)} elements, block_shape {len(sizes)}"
                )
        assert sorted(axes) == list(range(len(axes))), (
            f"Expected a permutation of (0, 1, ..., len(order)-1) in order, got {list(axes)}"
        )
        pointer = base.type
        return self.block_pointer(
            base,
            self.indices(lists["shape"], int64, "shape"),
            self.indices(lists["strides"], int64, "strides"),
            self.indices(lists["offsets"], int32, "offsets"),
            axes,
            pointer_type(block(pointer.element_ty, sizes), pointer.address_space, pointer.const),
        )

    def advance(self, base: tensor, offsets: Offsets) -> tensor:
        """A block pointer moved by `offsets` elements along each dimension."""
        if not isinstance(base, tensor) or not is_block_pointer(base.type):
            raise ValueError(f"advance takes a block pointer made by make_block_ptr, got {getattr(base, 'type', base)}")
        steps, rank = as_list(offsets), len(base.type.element_ty.shape)  # pyright: ignore[reportAttributeAccessIssue]
        if len(steps) != rank:
            raise ValueError(f"advance takes one offset per dimension: the block has {rank}, got {len(steps)}")
        return self.advanced(base, self.indices(steps, int32, "offsets"))

    def indices(self, values: Sequence[Any], type: dtype, what: str, narrow: bool = False) -> list[Any]:
        """Numbers and scalar integers as `index` gives them; a wider value is refused, or cut off if `narrow`."""
        return [self.index(checked_index(plain(value), type, what, narrow), type) for value in values]

    def make_tensor_descriptor(
        self, base: tensor, shape: Offsets, strides: Offsets, block_shape: Sizes, padding_option: str = "zero"
    ) -> tensor_descriptor:
        """A descriptor of the array at `base`, moving blocks of `block_shape`."""
        if not is_plain_pointer(base):
            raise ValueError(f"Expected `base` to be a pointer, got {getattr(base, 'type', base)}")
        sizes, dims, steps = plain_shape(as_list(block_shape)), as_list(shape), as_list(strides)
        rank = len(dims)
        if not 1 <= rank <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
        if len(steps) != rank:
            raise ValueError(f"Expected {rank} strides but got {len(steps)}")
        if len(sizes) != rank:
            raise ValueError(f"Expected block_shape to have {rank} dimensions but got {len(sizes)}")
        self.checked_shape(sizes)
        base = self._byte_pointers(base)
        element = base.type.element_ty
        self.check_dtype(element)
        if (size := sizes[-1] * element.itemsize) < 16:
            got = f"{sizes[-1]} * {element.itemsize} = {size} bytes"
            refusal = f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {got}"
            self.beyond_triton(ValueError(refusal))
        last = plain(steps[-1])
        if not isinstance(last, int) or last != 1:
            raise ValueError(f"Tensor descriptor last dim must be 1 but got {last}: that stride is the constant 1")
        padding = descriptor_padding(padding_option, element)
        extents = self.indices(dims, int32, "shape", narrow=True)
        distances = self.indices(steps, int64, "strides")
        return self.descriptor(base, extents, distances, block(element, sizes), padding)

    def descriptor_load(
        self, desc: tensor_descriptor, offsets: Offsets, cache_modifier: str = "", eviction_policy: str = ""
    ) -> tensor:
        """The block at `offsets`; elements outside the array read as the padding."""
        cache = option(LOAD_CACHE, "Cache modifier", cache_modifier)
        evict = option(EVICTION, "Eviction policy", eviction_policy)
        return self.read_window(desc, self._offsets(desc, offsets), cache, evict)

    def descriptor_store(self, desc: tensor_descriptor, value: Value, offsets: Offsets) -> tensor:
        """Write a block at `offsets`; elements outside the array are dropped."""
        value = self._block_for(desc, value, "store")
        self.write_window(desc, value, self._offsets(desc, offsets))
        return self.nothing()

    def descriptor_atomic(self, kind: str, desc: tensor_descriptor, offsets: Offsets, value: Value) -> tensor:
        """Combine a block with the array at `offsets`, element by element, without returning the old values."""
        name, known = desc.dtype.name, ATOMIC_DTYPES[kind]
        assert name in known, (
            f"Unsupported dtype: atomic_{kind} of a descriptor does not support {name}, only {sorted(known)}"
        )
        if kind in ("min", "max") and desc.dtype.is_floating():
            self.check_native_reduction(kind, name)
        self.check_any_order(f"atomic_{kind}", desc.dtype, kind == "add")
        value = self._block_for(desc, value, f"atomic_{kind}")
        self.update_window(kind, desc, value, self._offsets(desc, offsets))
        return self.nothing()

    def check_native_reduction(self, kind: str, name: str) -> None:
        """Min and max of 16-bit floats are an instruction, or do not exist; the interpreter computes them itself."""
        needs = f"atomic_{kind} of {name} through a descriptor needs a target with TMA (sm_90 or newer)"
        assert "tma" in self.options.features, needs

    def descriptor_gather(self, desc: tensor_descriptor, x_offsets: tensor, y_offset: Value) -> tensor:
        """Row ``x_offsets[i]``, columns from `y_offset` on, as row i of the result."""
        shape = rows_moved(desc, x_offsets, "gather")
        (column,) = self.indices([y_offset], int32, "y_offset")
        return self.gather_rows(desc, x_offsets, column, block(desc.dtype, shape))

    def descriptor_scatter(self, desc: tensor_descriptor, value: tensor, x_offsets: tensor, y_offset: Value) -> tensor:
        """Write row i of `value` to row ``x_offsets[i]``, columns from `y_offset` on."""
        shape = rows_moved(desc, x_offsets, "scatter")
        assert shape_of(value) == shape, (
            f"descriptor scatter of {shape[0]} rows takes a value of shape {list(shape)}, got {list(shape_of(value))}"
        )
        value = self.cast(value, desc.dtype)
        (column,) = self.indices([y_offset], int32, "y_offset")
        self.scatter_rows(desc, value, x_offsets, column)
        return self.nothing()

    def _block_for(self, desc: tensor_descriptor, value: Value, what: str) -> tensor:
        """`value` cast to the element type of `desc`, after checking its shape."""
        value, sizes = self.to_tensor(value), block_shape_of(desc)
        assert shape_of(value) == sizes, (
            f"descriptor {what} takes a value of the block shape {list(sizes)}, got {list(shape_of(value))}"
        )
        return self.cast(value, desc.dtype)

    def _offsets(self, desc: tensor_descriptor, offsets: Offsets) -> list[Any]:
        values, rank = as_list(offsets), len(block_shape_of(desc))
        assert len(values) == rank, f"expected {rank} offsets, but got {len(values)}"
        return self.indices(values, int32, "descriptor offsets")


def as_list(values: object) -> list[Any]:
    """The elements of a list or tuple of any kind; a bare value is a list of one."""
    values = plain(values)
    if isinstance(values, language_tuple):
        return list(values.values)
    return list(values) if isinstance(values, (list, tuple)) else [values]


def is_plain_pointer(base: object) -> bool:
    """Return True for a scalar pointer to an element."""
    return isinstance(base, tensor) and isinstance(base.type, pointer_type) and not is_block_pointer(base.type)


def checked_index(value: object, type: dtype, what: str, narrow: bool) -> int | tensor:
    """A number or a scalar integer that fits the integer type `type`."""
    if isinstance(value, int):
        if not type.get_int_min_value() <= value <= type.get_int_max_value():
            raise ValueError(f"{what} element {value} does not fit in {type}")
        return int(value)
    if not isinstance(value, tensor) or value.type.is_block() or not value.type.is_int():
        got = value.type if isinstance(value, tensor) else repr(value)
        raise ValueError(f"{what} must be compile-time ints or scalar integers, got {got}")
    if value.type.int_bitwidth > type.int_bitwidth and not narrow:
        raise ValueError(f"{what} must be {type}, got {value.type}; cast it with .to(tl.{type}) if it is known to fit")
    return value


def descriptor_padding(padding: str, element: dtype) -> str:
    """Return the padding of reads outside the array: "zero" or "nan"."""
    padding = option(PADDING[1:], "Padding option", padding or "zero")
    if padding == "nan" and element.is_int():
        raise ValueError(f"Padding option `nan` is not supported for integer blocks, here of {element}")
    return padding


def block_shape_of(desc: tensor_descriptor) -> Shape:
    """The shape of the blocks that `desc` moves."""
    return desc.type.block_type.sizes


def rows_moved(desc: tensor_descriptor, x_offsets: tensor, what: str) -> Shape:
    """The shape a gather or scatter moves: one row per offset."""
    sizes = block_shape_of(desc)
    assert len(sizes) == 2 and sizes[0] == 1, (
        f"descriptor block must have 1 row, but got {list(sizes)}: {what} takes one row for each index"
    )
    rows = shape_of(x_offsets)
    assert len(rows) == 1 and x_offsets.dtype.is_int32(), (
        f"descriptor {what} takes its x offsets as a 1-D block of int32, got {x_offsets.type}"
    )
    assert rows[0] >= 8, f"descriptor {what} must have at least 8 rows, but got {rows[0]}"
    least = 256 // desc.dtype.primitive_bitwidth
    assert sizes[1] >= least, (
        f"descriptor {what} of {desc.dtype} must have at least {least} columns, but got {sizes[1]}"
    )
    return rows[0], sizes[1]
