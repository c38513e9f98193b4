"""Buffer instructions: a base that all lanes share, and a 32-bit offset in bytes for each lane.

    resource of base      llvm.amdgcn.make.buffer.rsrc(base, stride 0, 2**31 - 2 bytes, flags)
    a masked lane         has the offset 2**31, beyond the end: it reads 0 and writes nothing, without a branch

A `BufferAddress` takes the place of a pointer in `device.Access` and `device.Atomic`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilework.ir.enums import CacheModifier, MemSemantic, RMWOp
from tilework.target import Target
from tilework.targets.amd.arch import AmdFeature
from tilework.targets.gpu.device import Access, Atomic
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i32, i64, integer, pointer, ptr, vector, void
from tilework.targets.llvm.values import Value, constant

GLOBAL, RESOURCE = pointer(1), pointer(8)
BYTES = (1 << 31) - 2
OFF = constant(i32, 1 << 31)
FLAGS = 7 << 12 | 4 << 15  # 32-bit integer elements
RDNA_FLAGS = FLAGS | 1 << 24 | 3 << 28  # bounds are checked in bytes
LOAD_BITS = {CacheModifier.CG: 3, CacheModifier.CS: 3, CacheModifier.CV: 17}
STORE_BITS = {CacheModifier.CS: 3, CacheModifier.WT: 17}
OTHERWISE = {RMWOp.MAX: "smax", RMWOp.MIN: "smin", RMWOp.EXCH: "swap"}  # names that differ from the kind's keyword
FLOAT_ATOMICS = {bf16: AmdFeature.BUFFER_BF16_ATOMICS, f64: AmdFeature.BUFFER_F64_ATOMICS}
RELEASING = (MemSemantic.RELEASE, MemSemantic.ACQ_REL)
ACQUIRING = (MemSemantic.ACQUIRE, MemSemantic.ACQ_REL)


class BufferAddress(NamedTuple):
    """An offset in bytes into a buffer; `plain` emits the equivalent pointer, for ops without a buffer instruction."""

    resource: Value
    offset: Value
    plain: Callable[[], Value]

    @property
    def text(self) -> str:
        """A text that identifies the address."""
        return f"{self.resource.text}[{self.offset.text}]"

    def where(self, b: Builder, predicate: Value | None) -> list[Value]:
        """Return the address operands of an instruction."""
        offset = self.offset if predicate is None else b.select(predicate, self.offset, OFF)
        return [self.resource, offset, constant(i32, 0)]


def resource_of(b: Builder, target: Target, base: Value) -> Value:
    flags = FLAGS if target.warp_size == 64 else RDNA_FLAGS
    settings = [constant(integer(16), 0), constant(i64, BYTES), constant(i32, flags)]
    at = b.addrspacecast(base, GLOBAL) if base.type is ptr else base
    return b.call("llvm.amdgcn.make.buffer.rsrc.p8.p1", RESOURCE, [at, *settings], is_pure=True)


def bits_of(target: Target, table: dict[CacheModifier, int], at: Access) -> Value:
    return constant(i32, table.get(at.hints.cache, 0) if AmdFeature.CACHE_SCOPES in target.features else 0)


def form_of(at: Access) -> Type:
    """Return the type of an access: a byte, 16 bits, or 32-bit registers."""
    _, count, size = at.shape
    total = size * count
    return integer(total) if total <= 32 else vector(i32, total // 32)


def load(b: Builder, target: Target, address: BufferAddress, at: Access, other: Sequence[Value] | None) -> list[Value]:
    """As `device.Gpu.load`."""
    type, count, size = at.shape
    form = form_of(at)
    operands = [*address.where(b, at.predicate), bits_of(target, LOAD_BITS, at)]
    found = b.call(f"llvm.amdgcn.raw.ptr.buffer.load.{form.suffix}", form, operands)
    if size < type.bits:
        parts = [b.zext(found, type)]
    else:
        parts = b.lanes(b.bitcast(found, vector(type, count) if count > 1 else type))
    if other is None or at.predicate is None:
        return parts
    return b.select_all(at.predicate, parts, other)


def store(b: Builder, target: Target, address: BufferAddress, at: Access, given: Sequence[Value]) -> None:
    """As `device.Gpu.store`."""
    type, _, size = at.shape
    form = form_of(at)
    value = b.trunc(given[0], form) if size < type.bits else b.bitcast(b.joined(given), form)
    operands = [value, *address.where(b, at.predicate), bits_of(target, STORE_BITS, at)]
    b.call(f"llvm.amdgcn.raw.ptr.buffer.store.{form.suffix}", void, operands)


def has_rmw(target: Target, kind: RMWOp, type: Type) -> bool:
    """Return True if there is an instruction for this atomic; `type` may be a pair of 16-bit floats."""
    if AmdFeature.BUFFER_ATOMICS not in target.features:
        return False
    if kind is not RMWOp.FADD:
        return type.bits in (32, 64) and not type.is_vector
    if (feature := FLOAT_ATOMICS.get(type.scalar)) is not None and feature not in target.features:
        return False
    return type in (f32, f64) or (type.is_vector and type.count == 2 and type.scalar in (f16, bf16))


def rmw(b: Builder, address: BufferAddress, at: Atomic, kind: RMWOp, value: Value, scope: str) -> Value:
    """Perform an atomic; return the old value, or 0 where it is masked off."""
    held = value if kind is RMWOp.FADD else b.bitcast(value, integer(value.type.bits))
    return b.bitcast(ordered(b, address, at, OTHERWISE.get(kind, kind.keyword), [held], scope), value.type)


def cas(b: Builder, address: BufferAddress, at: Atomic, compared: Value, value: Value, scope: str) -> Value:
    values = [b.bitcast(one, integer(one.type.bits)) for one in (value, compared)]
    return b.bitcast(ordered(b, address, at, "cmpswap", values, scope), value.type)


def ordered(b: Builder, address: BufferAddress, at: Atomic, name: str, values: Sequence[Value], scope: str) -> Value:
    """Emit an atomic with fences around it, since the instruction orders nothing."""
    if at.sem in RELEASING:
        b.fence("release", scope)
    type = values[0].type
    operands = [*values, *address.where(b, at.may), constant(i32, int(at.is_used))]
    found = b.call(f"llvm.amdgcn.raw.ptr.buffer.atomic.{name}.{type.suffix}", type, operands)
    if at.sem in ACQUIRING:
        b.fence("acquire", scope)
    return found
