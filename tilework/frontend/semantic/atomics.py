"""Atomic read-modify-write and compare-and-swap.

Every atomic returns the value that was in memory. There is no float maximum in hardware, but the bit patterns of
floats are ordered like integers: upwards for positive numbers, downwards for negative ones. So ``atomic_max(p, v)``
of floats is two masked integer atomics, of which the sign bit of v picks one:

    v >= 0:   max  on the bits as signed integers      (a negative float in memory is a negative integer)
    v <  0:   umin on the bits as unsigned integers    (a positive float in memory is below every negative one)

The sign *bit* decides, so -0.0 counts as negative and is ordered below +0.0.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from typing import TYPE_CHECKING, TypeAlias

from tilework.frontend.semantic.load_store import check_pointer, is_block_pointer, option, pointer_of
from tilework.frontend.semantic.operands import plain
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, get_int_dtype, int1, pointer_type

from .shape import block, shape_of

if TYPE_CHECKING:
    from . import Semantic

SEMANTICS = {
    "": MemSemantic.ACQ_REL,
    "acquire": MemSemantic.ACQUIRE,
    "release": MemSemantic.RELEASE,
    "acq_rel": MemSemantic.ACQ_REL,
    "relaxed": MemSemantic.RELAXED,
}
SCOPES = {"": MemSyncScope.GPU, "gpu": MemSyncScope.GPU, "cta": MemSyncScope.CTA, "sys": MemSyncScope.SYS}
BITWISE = {"and": RMWOp.AND, "or": RMWOp.OR, "xor": RMWOp.XOR, "xchg": RMWOp.EXCH}
SIGNED = {"max": RMWOp.MAX, "min": RMWOp.MIN}
UNSIGNED = {"max": RMWOp.UMAX, "min": RMWOp.UMIN}
OPPOSITE = {"max": RMWOp.UMIN, "min": RMWOp.UMAX}
Order: TypeAlias = tuple[MemSemantic, MemSyncScope]


def memory_order(sem: str | None, scope: str | None) -> Order:
    """What an atomic orders, and for whom; acq_rel and gpu by default."""
    return option(SEMANTICS, "Memory semantic", sem), option(SCOPES, "Memory semantic scope", scope)


def check_atomic_pointer(ptr: object, function: str) -> dtype:
    """The element type an atomic works on."""
    check_pointer(ptr, function)
    assert isinstance(ptr, tl.tensor)
    pointer = pointer_of(ptr)
    if is_block_pointer(pointer):
        raise ValueError(f"`{function}` does not work on block pointers: use a pointer or a block of pointers")
    if pointer.is_const():
        raise ValueError(f"Cannot store to a constant pointer: `{function}` writes through it")
    return pointer.element_ty


def check_rmw_dtype(kind: str, element: dtype) -> None:
    """Refuse element types without the atomic `kind`."""
    bits = element.primitive_bitwidth
    supported = element.name in ("fp16", "bf16") if kind == "add" and bits == 16 else bits >= 32
    if not supported or element.is_ptr():
        raise ValueError(f"atomic_{kind} does not support {element}: use a 32- or 64-bit type")


class AtomicMixin:
    """`atomic_add`, `atomic_max` and their kin."""

    def atomic_rmw(
        self: "Semantic",
        kind: str,
        ptr: tl.tensor,
        val: object,
        mask: tl.tensor | tl.constexpr | bool | None,
        sem: str | None,
        scope: str | None,
    ) -> tl.tensor:
        """Combine `val` with memory where `mask` is true; `kind` is add, max, min, and, or, xor or xchg."""
        element = check_atomic_pointer(ptr, f"tl.atomic_{kind}")
        check_rmw_dtype(kind, element)
        order = memory_order(sem, scope)
        shape = shape_of(ptr)
        fitted, condition = self._fit_operands(shape, plain(val), self.optional_tensor(mask))
        value = self.as_element(fitted, element, shape)
        if condition is None:
            condition = self.constant(True, block(int1, shape))

        if kind in SIGNED and element.is_floating():
            return self._float_extremum(kind, ptr, value, condition, order)
        if kind == "add":
            rmw = RMWOp.FADD if element.is_floating() else RMWOp.ADD
        elif kind in SIGNED:
            rmw = SIGNED[kind] if element.is_int_signed() else UNSIGNED[kind]
        else:
            rmw = BITWISE[kind]
        return self._rmw(rmw, ptr, value, condition, order)

    def _float_extremum(self: "Semantic", kind: str, ptr, value, mask, order: Order) -> tl.tensor:
        """The maximum or minimum of floats by two integer atomics (see the module docstring)."""
        element, bits = value.type.scalar, value.type.scalar.primitive_bitwidth
        signed, unsigned = get_int_dtype(bits, True), get_int_dtype(bits, False)
        pattern = self.bitcast(value, unsigned)
        pointers = self.cast(ptr, pointer_type(signed, pointer_of(ptr).address_space))
        sign = self.lshr(pattern, self.scalar_constant(bits - 1, unsigned))
        is_negative = self.not_equal(sign, self.scalar_constant(0, unsigned))
        is_positive = self.not_(is_negative)
        for_positive = self._rmw(SIGNED[kind], pointers, pattern, self.and_(mask, is_positive), order)
        for_negative = self._rmw(OPPOSITE[kind], pointers, pattern, self.and_(mask, is_negative), order)
        return self.bitcast(self.where(is_positive, for_positive, for_negative), element)

    def _rmw(self: "Semantic", rmw: RMWOp, ptr, value, mask, order: Order) -> tl.tensor:
        sem, scope = order
        op = tt.AtomicRMWOp.make(rmw, ptr.handle, value.handle, mask.handle, sem, scope, self.builder.loc)
        type = block(pointer_of(ptr).element_ty, shape_of(ptr))
        return tl.tensor(self.builder.insert(op).results[0], type)

    def atomic_cas(
        self: "Semantic", ptr: tl.tensor, cmp: object, val: object, sem: str | None, scope: str | None
    ) -> tl.tensor:
        """Write `val` where memory holds `cmp`; nothing is cast or broadcast."""
        element = check_atomic_pointer(ptr, "tl.atomic_cas")
        order = memory_order(sem, scope)
        if element.primitive_bitwidth not in (16, 32, 64) or element.is_ptr():
            raise ValueError(f"atomic_cas only supports elements with width {{16, 32, 64}}, got {element}")
        type = block(element, shape_of(ptr))
        expected, desired = (self._cas_operand(value, type) for value in (cmp, val))
        op = tt.AtomicCASOp.make(ptr.handle, expected.handle, desired.handle, *order, self.builder.loc)
        return tl.tensor(self.builder.insert(op).results[0], type)

    def _cas_operand(self: "Semantic", value: object, type: dtype) -> tl.tensor:
        """A number as a constant of `type`; a tensor must already have that type, up to the sign of integers."""
        if not isinstance(value, tl.tensor):
            return self.as_element(value, type.scalar, tuple(type.shape.values) if isinstance(type, block_type) else ())
        if value.handle.type != ir_type(type):
            raise ValueError(
                f"atomic_cas takes cmp and val of the type in memory, {type}, but got {value.type}; cast or broadcast "
                "it first"
            )
        return value
