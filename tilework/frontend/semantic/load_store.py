"""Loads and stores: through one pointer, a block of pointers, or a block pointer.

The three kinds follow different rules. A block of pointers broadcasts with its mask and padding value; a block
pointer has its bounds inside and takes no mask:

    tl.load(p + tl.arange(0, 64), mask, other=0)     tt.load %ptrs, %mask, %other : tensor<64x!tt.ptr<f32>>
    tl.load(block_ptr, boundary_check=(0,))          tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<...>>

A bool in memory is a byte. It is read as ``byte != 0``, and a value stored to a bool pointer is cast to int8.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from tilework.frontend.semantic.operands import plain
from tilework.frontend.semantic.promotion import converted_number, number_dtype
from tilework.frontend.semantic.shape import Shape, block, plain_shape, shape_of
from tilework.ir import tt
from tilework.ir.enums import CacheModifier, EvictionPolicy, PaddingOption
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, int1, int8, pointer_type, void

if TYPE_CHECKING:
    from tilework.frontend.semantic import Semantic

LOAD_CACHE = {
    "": CacheModifier.NONE,
    ".ca": CacheModifier.CA,
    ".cg": CacheModifier.CG,
    ".cv": CacheModifier.CV,
}
STORE_CACHE = {
    "": CacheModifier.NONE,
    ".wb": CacheModifier.WB,
    ".cg": CacheModifier.CG,
    ".cs": CacheModifier.CS,
    ".wt": CacheModifier.WT,
}
EVICTION = {
    "": EvictionPolicy.NORMAL,
    "evict_first": EvictionPolicy.FIRST,
    "evict_last": EvictionPolicy.LAST,
}
PADDING = {"": None, "zero": PaddingOption.ZERO, "nan": PaddingOption.NAN}


def option(table: dict[str, Any], what: str, name: str | None) -> Any:
    """The enum member called `name`; None means the default."""
    if (member := table.get(name or "", table)) is table:
        known = ", ".join(repr(key) for key in table)
        raise ValueError(f"{what} {name} not supported: use one of {known}")
    return member


def is_block_pointer(type: dtype) -> bool:
    """A pointer made by `make_block_ptr`."""
    return isinstance(type, pointer_type) and isinstance(type.element_ty, block_type)


def pointer_of(value: tl.tensor) -> pointer_type:
    """The pointer type of a pointer, or of each element of a block of pointers."""
    pointer = value.type.scalar
    assert isinstance(pointer, pointer_type), f"expected pointers, got {value.type}"
    return pointer


def check_boundary(dims: object, shape: Sequence[int]) -> tuple[int, ...]:
    """The dimensions to check, sorted; each at most once, each a dimension of the block."""
    if isinstance(dims, int):
        dims = (dims,)
    axes = plain_shape(dims)  # pyright: ignore[reportArgumentType]
    for axis in axes:
        assert 0 <= axis < len(shape), f"boundary_check {axis} is not a dimension of a block of shape {list(shape)}"
    assert len(set(axes)) == len(axes), f"Duplicate dimension in `boundary_check`: {list(axes)}"
    return tuple(sorted(axes))


class MemoryMixin:
    """`load` and `store`."""

    def load(
        self: "Semantic",
        ptr: tl.tensor,
        mask: tl.tensor | tl.constexpr | bool | None,
        other: object,
        boundary_check: Sequence[int],
        padding_option: str,
        cache_modifier: str,
        eviction_policy: str,
        volatile: bool,
    ) -> tl.tensor:
        """The value in memory; `other` where `mask` is false."""
        options = {
            "cache": option(LOAD_CACHE, "Cache modifier", cache_modifier),
            "evict": option(EVICTION, "Eviction policy", eviction_policy),
            "is_volatile": bool(volatile),
        }
        padding = option(PADDING, "Padding option", padding_option)
        if isinstance(ptr, tl.tensor) and is_block_pointer(ptr.type):
            return self._load_block_pointer(ptr, mask, other, boundary_check, padding, options)
        check_pointer(ptr, "tl.load")
        if boundary_check or padding is not None:
            raise ValueError(
                "`padding_option` or `boundary_check` argument is not supported for loading a tensor of pointers or "
                "loading a scalar; use mask and other"
            )
        return self._load_pointers(ptr, self.optional_tensor(mask), plain(other), options)

    def _load_block_pointer(
        self: "Semantic", ptr: tl.tensor, mask, other, boundary_check, padding, options
    ) -> tl.tensor:
        if plain(mask) is not None or plain(other) is not None:
            raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
        target = pointer_of(ptr).element_ty
        assert isinstance(target, block_type)
        element = target.element_ty
        if padding == PaddingOption.NAN and element.is_int():
            raise ValueError(f"Padding option `nan` is not supported for integer block pointers, here of {element}")
        self.check_dtype(element)
        dims = check_boundary(boundary_check, target.shape.values)
        op = tt.LoadOp.make(ptr.handle, None, None, self.builder.loc, boundary_check=dims, padding=padding, **options)
        return tl.tensor(self.builder.insert(op).results[0], target)

    def _load_pointers(self: "Semantic", ptr: tl.tensor, mask: tl.tensor | None, other, options) -> tl.tensor:
        if mask is None and other is not None:
            raise ValueError("`other` cannot be provided without `mask`")
        if not ptr.type.is_block():
            refuse_block(mask, "Mask")
            refuse_block(other, "Other")
        if mask is not None:
            check_mask(mask)
            if isinstance(other, tl.tensor):
                ptr, mask, other = self.broadcast_all([ptr, mask, other])
            else:
                ptr, mask = self.broadcast(ptr, mask)

        is_bool = pointer_of(ptr).element_ty.is_bool()
        ptr = self._byte_pointers(ptr)
        element, shape = pointer_of(ptr).element_ty, shape_of(ptr)
        self.check_dtype(element)
        op = tt.LoadOp.make(
            ptr.handle,
            None if mask is None else mask.handle,
            None if other is None else self.as_element(other, element, shape).handle,
            self.builder.loc,
            **options,
        )
        loaded = tl.tensor(self.builder.insert(op).results[0], block(element, shape))
        return self.cast(loaded, int1) if is_bool else loaded

    def _byte_pointers(self: "Semantic", ptr: tl.tensor) -> tl.tensor:
        """Pointers to bools as pointers to bytes; others as they are."""
        pointer = pointer_of(ptr)
        if not pointer.element_ty.is_bool():
            return ptr
        return self.cast(ptr, pointer_type(int8, pointer.address_space, pointer.const))

    def as_element(self: "Semantic", value: object, element: dtype, shape: Shape) -> tl.tensor:
        """`value` cast to `element`. A number becomes a constant of the final type and shape at once."""
        number = plain(value)
        if not isinstance(number, (bool, int, float)):
            return self.cast(number, element)
        if element.is_ptr() or (element.is_int() and not isfinite(number)):
            return self.splat(self.cast(number, element), shape)
        if not element.is_fp8():
            number = converted_number(number, number_dtype(number), element)
        return self.constant(number, block(element, shape))

    def store(
        self: "Semantic",
        ptr: tl.tensor,
        value: object,
        mask: tl.tensor | tl.constexpr | bool | None,
        boundary_check: Sequence[int],
        cache_modifier: str,
        eviction_policy: str,
    ) -> tl.tensor:
        """Write `value`, cast to the element type, where `mask` is true."""
        options = {
            "cache": option(STORE_CACHE, "Cache modifier", cache_modifier),
            "evict": option(EVICTION, "Eviction policy", eviction_policy),
        }
        if isinstance(ptr, tl.tensor) and (ptr.type.is_const() or ptr.type.scalar.is_const()):
            raise ValueError("Cannot store to a constant pointer")
        if isinstance(ptr, tl.tensor) and is_block_pointer(ptr.type):
            return self._store_block_pointer(ptr, value, mask, boundary_check, options)
        check_pointer(ptr, "tl.store")
        if boundary_check:
            raise ValueError(
                "`boundary_check` argument is not supported for storing a tensor of pointers or storing a scalar; use "
                "mask"
            )
        return self._store_pointers(ptr, value, self.optional_tensor(mask), options)

    def _store_block_pointer(self: "Semantic", ptr: tl.tensor, value, mask, boundary_check, options) -> tl.tensor:
        if plain(mask) is not None:
            raise ValueError("`mask` argument cannot be specified for storing block pointers")
        target = pointer_of(ptr).element_ty
        assert isinstance(target, block_type)
        element, shape = target.element_ty, tuple(target.shape.values)
        if not isinstance(value, tl.tensor):
            value = self.as_element(value, element, shape)
        elif not value.type.is_block():
            value = self.splat(value, shape)
        assert shape_of(value) == shape, (
            f"Block shape ({list(shape)}) and value shape ({list(shape_of(value))}) mismatch"
        )
        assert value.dtype == element, (
            f"Block element type ({element}) and value element type ({value.dtype}) mismatch: cast the value with "
            f".to({element})"
        )
        dims = check_boundary(boundary_check, shape)
        op = tt.StoreOp.make(ptr.handle, value.handle, None, self.builder.loc, boundary_check=dims, **options)
        self.builder.insert(op)
        return self.nothing()

    def _store_pointers(self: "Semantic", ptr: tl.tensor, value, mask: tl.tensor | None, options) -> tl.tensor:
        value, mask = self._fit_operands(shape_of(ptr), value, mask)
        ptr = self._byte_pointers(ptr)
        value = self.as_element(value, pointer_of(ptr).element_ty, shape_of(ptr))
        op = tt.StoreOp.make(
            ptr.handle, value.handle, None if mask is None else mask.handle, self.builder.loc, **options
        )
        self.builder.insert(op)
        return self.nothing()

    def _fit_operands(
        self: "Semantic", shape: Shape, value: object, mask: tl.tensor | None
    ) -> tuple[object, tl.tensor | None]:
        """A value and a mask for pointers of `shape`: tensors are broadcast to it, numbers left as they are."""
        if mask is not None:
            check_mask(mask)
        if not shape:
            refuse_block(value, "Value")
            refuse_block(mask, "Mask")
            return value, mask
        if isinstance(value, tl.tensor):
            value = self._fit(value, shape, "value")
        return value, None if mask is None else self._fit(mask, shape, "mask")

    def _fit(self: "Semantic", value: tl.tensor, shape: tuple[int, ...], what: str) -> tl.tensor:
        """`value` broadcast to `shape`, which it may not widen."""
        have = shape_of(value)
        fits = len(have) <= len(shape) and all(a == b or a == 1 for a, b in zip(reversed(have), reversed(shape)))
        if not fits:
            raise ValueError(
                f"Expected pointer argument to have shape {list(have)} but got {list(shape)}: the {what} does not "
                "broadcast to the pointers"
            )
        return self._stretch(value, shape)

    def nothing(self: "Semantic") -> tl.tensor:
        """The result of an operation done for its effect."""
        return tl.tensor(None, void)


def check_pointer(ptr: object, function: str) -> None:
    """Refuse anything that is not a pointer or a block of pointers."""
    if not isinstance(ptr, tl.tensor) or not ptr.type.scalar.is_ptr():
        kind = ptr.type if isinstance(ptr, tl.tensor) else ptr
        raise ValueError(f"Unsupported ptr type {kind} in `{function}`: expected a pointer or a block of pointers")


def check_mask(mask: tl.tensor) -> None:
    """A mask is made of int1."""
    if not mask.type.scalar.is_bool():
        raise ValueError(f"Mask must have boolean scalar type, got {mask.type.scalar}; compare it with 0")


def refuse_block(value: object, name: str) -> None:
    """A scalar pointer takes scalars only."""
    if isinstance(value, tl.tensor) and value.type.is_block():
        raise ValueError(
            f"{name} argument cannot be block type if pointer argument is not a block: it has shape "
            f"{list(shape_of(value))}"
        )
