"""Turn loads, stores and atomics whose offsets are known to fit into buffer instructions.

    %p = tt.addptr (tt.splat %a), %o                        %a {tt.pointer_range = 32}, or %o is in [0, 2**31 bytes)
    %x = tt.load %p, %mask, %zero                   ==>     %x = amdg.buffer_load %a[%o], %mask

Buffer instructions use 31 bits of a byte offset, and need no branch where a mask is off. An argument's
`tt.pointer_range` states that its whole array is in that range; for other pointers range analysis of the offsets must
show it. `contiguity` is the number of elements of a thread that one instruction may access.
Stage: TTGIR to TTGIR. Cost: one walk, and range analysis of the offsets.
"""

from collections.abc import Callable
from math import copysign

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir import amdg, arith, tt, ttg
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import CacheModifier, MemSemantic, MemSyncScope, RMWOp
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.llvm import AssumeOp
from tilework.ir.module_facts import chosen_target
from tilework.ir.rewrite import constant, constant_value, defining_op, replace_op
from tilework.ir.types import (
    PointerType,
    bf16,
    bit_width,
    element_type,
    f64,
    i1,
    i32,
    int_property,
    is_float,
    is_tensor,
    shape_of,
)
from tilework.layouts.to_linear import order
from tilework.process.forks import cached_property
from tilework.transforms.amd.canonicalize_pointers import arrays_of, small_arguments
from tilework.transforms.building.emitter import mask_of
from tilework.transforms.passes import Pass, function_pass
from tilework.transforms.ttg.pipeline.load_plans import copy_width

BYTES = (1 << 31) - 2
ON_INTEGERS = (RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.ADD, RMWOp.UMAX, RMWOp.UMIN, RMWOp.EXCH)
SCOPES = (MemSyncScope.GPU, MemSyncScope.CTA)
ATOMICS = "buffer_atomics"  # a feature of targets, as are those for some types
FLOAT_ATOMICS: dict[Attribute, str] = {bf16: "buffer_bf16_atomics", f64: "buffer_f64_atomics"}


class AmdConvertBufferOpsPass(Pass):
    name = "tritonamdgpu-convert-buffer-ops"
    allow_buffer_atomics: bool = True
    target: str = ""
    analyze_small_tensor_ofst: bool = False  # also show that offsets into small arrays are not negative

    def run(self, module: ModuleOp) -> None:
        features = chosen_target(module, self.target).features
        for function in functions(module):
            if has_body(function):
                ops = ops_in_order(*function.regions)
                small = set(small_arguments(function))
                search = Search(module, features, small, IntegerRanges(function), self.analyze_small_tensor_ofst)
                for op in ops:
                    rule = RULES.get(type(op))
                    if rule is None or (type(op) in CHANGING and not self.allow_buffer_atomics):
                        continue
                    if (address := search.address_of(op.operands[0])) is not None:
                        rule(search, op, *address)


class Search:
    """The facts that decide if an access of a function can become a buffer access."""

    def __init__(
        self,
        module: ModuleOp,
        features: frozenset[str],
        small: set[SSAValue],
        ranges: IntegerRanges,
        proves_small: bool,
    ) -> None:
        self.features = features
        self.module, self.small, self.ranges = module, small, ranges
        self.proves_small = proves_small

    @cached_property
    def facts(self) -> AxisFacts:
        return axis_info(self.module)

    def address_of(self, pointers: SSAValue) -> tuple[SSAValue, SSAValue] | None:
        """Return the base and the offsets of a tile of pointers, if they fit."""
        moved = defining_op(pointers)
        if not isinstance(moved, tt.AddPtrOp) or not is_tensor(pointers.type) or moved.attributes:
            return None
        start, offsets = moved.operands
        if not isinstance(splat := defining_op(start), tt.SplatOp) or element_type(offsets.type) != i32:
            return None
        base = splat.operands[0]
        fits = self.is_small(base) if not self.proves_small else False
        return (base, offsets) if fits or self.is_inside(base, offsets) else None

    def is_small(self, base: SSAValue) -> bool:
        return arrays_of(base) <= self.small

    def is_inside(self, base: SSAValue, offsets: SSAValue) -> bool:
        """Return True if all offsets are known to be in range; for a small array, not to be negative."""
        least, most = self.ranges.of(offsets)
        if least < 0:
            return False
        assert isinstance(base.type, PointerType)
        return self.is_small(base) or (most + 1) * max(1, bit_width(base.type.pointee) // 8) <= BYTES

    def pairs(self, op: Operation) -> bool:
        """Return True if two adjacent elements can be updated at a time."""
        pointers = op.operands[0]
        encoding = encoding_of(pointers.type)
        assert encoding is not None
        facts, dims = self.facts, order(encoding, shape_of(pointers.type))
        alike = facts.mask_alignment(op.operands[2], dims) if len(op.operands) > 2 else 2
        return min(facts.alignment(pointers, dims), alike) > 1


def stride_of(offsets: SSAValue) -> SSAValue | None:
    """Return the row stride: `s` of ``broadcast(x * splat(s)) + ...``."""
    total = defining_op(offsets)
    if total is None or type(total) is not arith.AddiOp:
        return None
    for operand in total.operands:
        spread = defining_op(operand)
        scaled = defining_op(spread.operands[0]) if isinstance(spread, tt.BroadcastOp) else None
        for factor in scaled.operands if scaled is not None and type(scaled) is arith.MuliOp else ():
            if isinstance(splat := defining_op(factor), tt.SplatOp):
                return splat.operands[0]
    return None


def buffer_mask(op: Operation) -> SSAValue | None:
    """Return the mask of an access, unless it is true everywhere."""
    mask = mask_of(op)
    return None if mask is not None and is_true(mask) else mask


def is_true(mask: SSAValue) -> bool:
    op = defining_op(mask)
    return bool(constant_value(op.operands[0] if isinstance(op, tt.SplatOp) else mask))


def other_of(other: SSAValue | None, mask: SSAValue | None) -> SSAValue | None:
    """Return the value of masked elements; None if it is 0, which buffer loads return anyway."""
    default = None if other is None else constant_value(other)
    is_zero = default is not None and default == 0 and copysign(1, default) > 0
    return None if is_zero or mask is None else other


def convert_load(search: Search, op: Operation, base: SSAValue, offsets: SSAValue) -> None:
    if int_property(op, "isVolatile"):
        return
    assert isinstance(op, tt.LoadOp)
    mask = buffer_mask(op)
    other = other_of(op.other, mask)
    cache = CacheModifier(int_property(op, "cache"))
    type_ = op.results[0].type
    width, stride = copy_width(op, search.facts), stride_of(offsets)
    made = amdg.BufferLoadOp.make(base, offsets, stride, mask, other, type_, op.location, cache=cache, contiguity=width)
    replace_op(op, made)


def convert_copy(search: Search, op: Operation, base: SSAValue, offsets: SSAValue) -> None:
    mask = buffer_mask(op)
    stride, width = stride_of(offsets), int_property(op, "contiguity")
    cache = CacheModifier(int_property(op, "cache"))
    made = amdg.BufferLoadToLocalOp.make(
        op.operands[1], base, offsets, mask, None, stride, op.location, cache=cache, contiguity=width
    )
    replace_op(op, made)


def convert_store(search: Search, op: Operation, base: SSAValue, offsets: SSAValue) -> None:
    value, mask = op.operands[1], buffer_mask(op)
    cache = CacheModifier(int_property(op, "cache"))
    width, stride = copy_width(op, search.facts), stride_of(offsets)
    replace_op(
        op, amdg.BufferStoreOp.make(value, base, offsets, stride, mask, op.location, cache=cache, contiguity=width)
    )


def convert_rmw(search: Search, op: Operation, base: SSAValue, offsets: SSAValue) -> None:
    kind, sem = RMWOp(int_property(op, "atomic_rmw_op")), MemSemantic(int_property(op, "sem"))
    scope = MemSyncScope(int_property(op, "scope"))
    element = element_type(op.results[0].type)
    bits = bit_width(element)
    if tt.is_ordered(op):
        return
    known = kind is RMWOp.FADD if is_float(element) and kind is not RMWOp.EXCH else kind in ON_INTEGERS
    if ATOMICS not in search.features or scope not in SCOPES or not known or bits < 16:
        return
    if kind is RMWOp.FADD and FLOAT_ATOMICS.get(element, ATOMICS) not in search.features:
        return
    if bits == 16 and (kind is not RMWOp.FADD or not search.pairs(op)):
        return
    mask, stride = buffer_mask(op), stride_of(offsets)
    made = amdg.BufferAtomicRMWOp.make(kind, op.operands[1], base, offsets, stride, sem, scope, mask, op.location)
    replace_op(op, made)


def convert_cas(search: Search, op: Operation, base: SSAValue, offsets: SSAValue) -> None:
    element, scope = element_type(op.results[0].type), MemSyncScope(int_property(op, "scope"))
    if is_float(element) or bit_width(element) < 32 or scope not in SCOPES or len(op.operands) > 3:  # with a mask
        return
    sem = MemSemantic(int_property(op, "sem"))
    _, compared, value = op.operands
    made = amdg.BufferAtomicCASOp.make(compared, value, base, offsets, stride_of(offsets), sem, scope, op.location)
    replace_op(op, made)


CHANGING = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
RULES: dict[type[Operation], Callable[[Search, Operation, SSAValue, SSAValue], None]] = {
    tt.LoadOp: convert_load,
    tt.StoreOp: convert_store,
    ttg.AsyncCopyGlobalToLocalOp: convert_copy,
    tt.AtomicRMWOp: convert_rmw,
    tt.AtomicCASOp: convert_cas,
}


# Fold comparisons of scalars that are always true by the ranges of their operands.
#
#     llvm.intr.assume (arith.cmpi slt, %pid, %n)         an assumption itself is kept, for LLVM
#     %m = arith.cmpi sge, %pid, %c0            ==>       %m = arith.constant true
#
# Stage: TTGIR to TTGIR. Cost: one walk, and range analysis of the comparisons.


@function_pass("tritonamdgpu-fold-true-cmpi")
def fold_true_cmpi(function: Operation) -> None:
    ranges = IntegerRanges(function)
    for op in ops_in_order(*function.regions):
        if type(op) is arith.CmpiOp and op.results[0].type == i1 and ranges.of(op.results[0]) == (1, 1):
            if not any(type(use.operation) is AssumeOp for use in op.results[0].uses):
                replace_op(op, constant(1, i1, op.location))
