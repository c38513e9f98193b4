"""Block pointers and tensor descriptors as ops.

    bp = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (16, 32), (1, 0))     tt.make_tensor_ptr -> !tt.ptr<tensor<16x32xf32>>
    bp = tl.advance(bp, (0, 32))                                            tt.advance
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])   tt.make_tensor_descriptor : <i32>, <tensor<16x32xsi32>>
    d.store([0, 32], d.load([0, 0]))                             tt.descriptor_load, tt.descriptor_store

Inside a descriptor type (only there) integers keep their sign, since reductions need it.
"""

from xdsl.ir import SSAValue

from tilework.frontend.semantic.load_store import CACHE, EVICTION, PADDING, Accesses
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.enums import DescriptorReduceKind
from tilework.language import core as tl
from tilework.language.descriptor_values import tensor_descriptor_type
from tilework.language.dtypes import dtype, int32, int64
from tilework.language.typing.access import block_pointed_to
from tilework.language.typing.carrier import Shape

Handles = list[SSAValue]


class Windows(Accesses):
    """What `make_block_ptr`, `make_tensor_descriptor` and the methods of descriptors build."""

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
