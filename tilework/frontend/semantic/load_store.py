"""Loads, stores, atomics, block pointers and tensor descriptors as ops.

    tl.load(p + tl.arange(0, 64), mask, other=0)     tt.load %ptrs, %mask, %other : tensor<64x!tt.ptr<f32>>
    tl.load(block_ptr, boundary_check=(0,))          tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<...>>
    bp = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (16, 32), (1, 0))  tt.make_tensor_ptr : !tt.ptr<tensor<16x32xf32>>
    bp = tl.advance(bp, (0, 32))                                            tt.advance
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])   tt.make_tensor_descriptor : <i32>, <tensor<16x32xsi32>>
    d.store([0, 32], d.load([0, 0]))                             tt.descriptor_load, tt.descriptor_store

Inside a descriptor type (only there) integers keep their sign, since reductions need it.

Every atomic returns the value that was in memory. The hardware has no maximum of floats, but the bit patterns of floats
are ordered like integers: ascending for positive values, descending for negative ones. So ``atomic_max(p, v)`` of
floats is two masked integer atomics, of which the sign bit of v selects one:

    v >= 0:   max  on the bits as signed integers      (a negative float in memory is a negative integer)
    v <  0:   umin on the bits as unsigned integers    (a positive float in memory is below every negative one)

The sign *bit* decides, so -0.0 counts as negative and is ordered below +0.0.
"""

from typing import Any

from xdsl.ir import SSAValue

from tilework.frontend.semantic.building import ir_type
from tilework.frontend.semantic.shape import Reductions, handle_of
from tilework.ir import tt
from tilework.ir.enums import (
    CacheModifier,
    DescriptorReduceKind,
    EvictionPolicy,
    MemSemantic,
    MemSyncScope,
    PaddingOption,
    RMWOp,
)
from tilework.language import core as tl
from tilework.language.dtypes import dtype, get_int_dtype, int1, int32, int64, pointer_type
from tilework.language.typing.access import block_pointed_to, pointee
from tilework.language.typing.carrier import AccessOptions, Shape
from tilework.language.typing.shapes import block, shape_of
from tilework.language.values import tensor_descriptor_type

CACHE = {**{f".{mode.keyword}": mode for mode in CacheModifier}, "": CacheModifier.NONE}
EVICTION = {"": EvictionPolicy.NORMAL, "evict_first": EvictionPolicy.FIRST, "evict_last": EvictionPolicy.LAST}
PADDING = {"": None, "zero": PaddingOption.ZERO, "nan": PaddingOption.NAN}
BITWISE = {"and": RMWOp.AND, "or": RMWOp.OR, "xor": RMWOp.XOR, "xchg": RMWOp.EXCH}
SIGNED = {"add": RMWOp.ADD, "max": RMWOp.MAX, "min": RMWOp.MIN, **BITWISE}
UNSIGNED = {"add": RMWOp.ADD, "max": RMWOp.UMAX, "min": RMWOp.UMIN, **BITWISE}
FLOATING = {"add": RMWOp.FADD, **BITWISE}
OPPOSITE = {"max": RMWOp.UMIN, "min": RMWOp.UMAX}


def cache_hints(options: AccessOptions) -> dict[str, Any]:
    """Return the cache options of an access, as properties of its op."""
    return {"cache": CACHE[options.cache], "evict": EVICTION[options.evict]}


class Accesses(Reductions):
    """The ops of `load`, `store` and the atomics."""

    def read(
        self, ptr: tl.tensor, mask: tl.tensor | None, other: tl.tensor | None, options: AccessOptions
    ) -> tl.tensor:
        """`tt.load` through pointers."""
        hints = {**cache_hints(options), "is_volatile": options.volatile}
        op = tt.LoadOp.make(ptr.handle, handle_of(mask), handle_of(other), self.builder.loc, **hints)
        return self._emit(op, block(pointee(ptr), shape_of(ptr)))

    def read_block(self, ptr: tl.tensor, checked: Shape, padding: str, options: AccessOptions) -> tl.tensor:
        """`tt.load` through a block pointer."""
        hints = {**cache_hints(options), "is_volatile": options.volatile, "padding": PADDING[padding]}
        op = tt.LoadOp.make(ptr.handle, None, None, self.builder.loc, boundary_check=checked, **hints)
        return self._emit(op, pointee(ptr))

    def store_pointers(self, ptr: tl.tensor, value: tl.tensor, mask: tl.tensor | None, options: AccessOptions) -> None:
        """`tt.store` through pointers."""
        op = tt.StoreOp.make(ptr.handle, value.handle, handle_of(mask), self.builder.loc, **cache_hints(options))
        self.builder.insert(op)

    def write_block(self, ptr: tl.tensor, value: tl.tensor, checked: Shape, options: AccessOptions) -> None:
        """`tt.store` through a block pointer."""
        hints = cache_hints(options)
        op = tt.StoreOp.make(ptr.handle, value.handle, None, self.builder.loc, boundary_check=checked, **hints)
        self.builder.insert(op)

    def update(
        self,
        kind: str,
        ptr: tl.tensor,
        value: tl.tensor,
        mask: tl.tensor | None,
        sem: str,
        scope: str,
        ordered: bool = False,
    ) -> tl.tensor:
        """`tt.atomic_rmw`; the maximum or minimum of floats is two of them (see the module docstring)."""
        element = value.dtype
        if mask is None:
            mask = self.constant(True, block(int1, shape_of(ptr)))
        if not (kind in OPPOSITE and element.is_floating()):
            kinds = FLOATING if element.is_floating() else SIGNED if element.is_int_signed() else UNSIGNED
            return self._rmw(kinds[kind], ptr, value, mask, sem, scope, ordered)
        bits = element.primitive_bitwidth
        signed, unsigned = get_int_dtype(bits, True), get_int_dtype(bits, False)
        pattern = self.bitcast(value, unsigned)
        space = ptr.dtype.address_space  # pyright: ignore[reportAttributeAccessIssue]
        pointers = self.cast(ptr, pointer_type(signed, space))
        sign = self.lshr(pattern, self.scalar_constant(bits - 1, unsigned))
        is_negative = self.not_equal(sign, self.scalar_constant(0, unsigned))
        is_positive = self.not_(is_negative)
        for_positive = self._rmw(SIGNED[kind], pointers, pattern, self.and_(mask, is_positive), sem, scope, ordered)
        for_negative = self._rmw(OPPOSITE[kind], pointers, pattern, self.and_(mask, is_negative), sem, scope, ordered)
        return self.bitcast(self.where(is_positive, for_positive, for_negative), element)

    def _rmw(
        self,
        rmw: RMWOp,
        ptr: tl.tensor,
        value: tl.tensor,
        mask: tl.tensor,
        sem: str,
        scope: str,
        ordered: bool,
    ) -> tl.tensor:
        order = MemSemantic[sem.upper()], MemSyncScope[scope.upper()]
        op = tt.AtomicRMWOp.make(rmw, ptr.handle, value.handle, mask.handle, *order, self.builder.loc)
        if ordered:
            tt.mark_ordered(op)
            self.has_ordered_atomics = True
        return self._emit(op, block(pointee(ptr), shape_of(ptr)))

    def compare_and_swap(
        self, ptr: tl.tensor, expected: tl.tensor, desired: tl.tensor, sem: str, scope: str
    ) -> tl.tensor:
        order = MemSemantic[sem.upper()], MemSyncScope[scope.upper()]
        op = tt.AtomicCASOp.make(ptr.handle, expected.handle, desired.handle, None, *order, self.builder.loc)
        return self._emit(op, block(pointee(ptr), shape_of(ptr)))


Handles = list[SSAValue]


class Windows(Accesses):
    """The ops of `make_block_ptr`, `make_tensor_descriptor` and the methods of descriptors."""

    def block_pointer(
        self, base: tl.tensor, shape: Handles, strides: Handles, offsets: Handles, order: Shape, type: dtype
    ) -> tl.tensor:
        result = tl.tensor(None, type)
        _, sizes = block_pointed_to(result)
        op = tt.MakeTensorPtrOp.make(base.handle, shape, strides, offsets, sizes, order, self.builder.loc)
        return self._emit(op, type)

    def advanced(self, base: tl.tensor, offsets: Handles) -> tl.tensor:
        return self._emit(tt.AdvanceOp.make(base.handle, offsets, self.builder.loc), base.type)

    def descriptor(
        self, base: tl.tensor, shape: Handles, strides: Handles, type: dtype, padding: str
    ) -> tl.tensor_descriptor:
        extents = tl.tuple([tl.tensor(handle, int32) for handle in shape])
        distances = tl.tuple([tl.tensor(handle, int64) for handle in strides])
        block = ir_type(tensor_descriptor_type(type, extents.type, distances.type)).block  # pyright: ignore
        op = tt.MakeTensorDescOp.make(base.handle, shape, strides, block, PADDING[padding], self.builder.loc)
        return tl.tensor_descriptor(self.builder.insert(op).results[0], extents, distances, type)  # pyright: ignore

    def read_window(self, desc: tl.tensor_descriptor, offsets: Handles, cache: str, evict: str) -> tl.tensor:
        op = tt.DescriptorLoadOp.make(desc.handle, offsets, self.builder.loc, cache=CACHE[cache], evict=EVICTION[evict])
        return self._emit(op, desc.block_type)

    def write_window(self, desc: tl.tensor_descriptor, value: tl.tensor, offsets: Handles) -> None:
        self.builder.insert(tt.DescriptorStoreOp.make(desc.handle, value.handle, offsets, self.builder.loc))

    def update_window(self, kind: str, desc: tl.tensor_descriptor, value: tl.tensor, offsets: Handles) -> None:
        reduce_kind = DescriptorReduceKind[kind.upper()]
        op = tt.DescriptorReduceOp.make(reduce_kind, desc.handle, value.handle, offsets, self.builder.loc)
        self.builder.insert(op)

    def gather_rows(self, desc: tl.tensor_descriptor, rows: tl.tensor, column: SSAValue, type: dtype) -> tl.tensor:
        op = tt.DescriptorGatherOp.make(desc.handle, rows.handle, column, ir_type(type), self.builder.loc)
        return self._emit(op, type)

    def scatter_rows(self, desc: tl.tensor_descriptor, value: tl.tensor, rows: tl.tensor, column: SSAValue) -> None:
        op = tt.DescriptorScatterOp.make(desc.handle, rows.handle, column, value.handle, self.builder.loc)
        self.builder.insert(op)
