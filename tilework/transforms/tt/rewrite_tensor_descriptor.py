"""Replace tensor descriptors by their components, and their accesses by masked loads and stores (sm < 90).

    %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %c1] : <f16>, <tensor<8x16xf16>>
    %v = tt.descriptor_load %d[%x, %y] : !tt.tensordesc<tensor<8x16xf16>> -> tensor<8x16xf16>

A descriptor becomes 3 + 2 * rank values: ``!tt.ptr<f16>``, the shape and the strides (i64), and two i1, "pad with NaN"
and "round to tf32". These replace it in signatures, calls, loops, branches and selects. A load becomes the arithmetic
of `building/flattening.py` with all axes masked; a reduction becomes an atomic. Attributes of an access move to the
load or store. Loads of f32 are followed by the rounding that TMA does by itself (`rounded`), unless the kernel has made
the descriptor. On targets with TMA only descriptors of blocks whose sizes are no powers of two, or with rows of less
than 16 bytes, are replaced (`tt-odd-descriptors-to-pointers`): padded tiles need masks, which copies do not have. The
pointer of such an argument is marked (`DESCRIBED`).
Stage: TTIR to TTIR. Cost: one walk.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import nan

from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, tt
from tilework.ir.enums import DescriptorReduceKind, MemSemantic, MemSyncScope, PaddingOption, RMWOp
from tilework.ir.functions import given_types, ops_in_order
from tilework.ir.module_facts import DESCRIBED
from tilework.ir.rewrite import constant_value, erase_op
from tilework.ir.scf import make_if, make_yield
from tilework.ir.types import (
    Shape,
    TensorDescType,
    bit_width,
    element_type,
    f32,
    i1,
    i32,
    i64,
    int_property,
    integer_type,
    is_descriptor,
    is_float,
    is_odd,
    pointer_type,
    shape_of,
    tensor_type,
    with_element,
)
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.flattening import BlockAccess, Flattening
from tilework.transforms.building.tma import stored_value
from tilework.transforms.passes import module_pass


@module_pass("triton-rewrite-tensor-descriptor-to-pointer")
def rewrite_tensor_descriptor(module: ModuleOp) -> None:
    rewrite_descriptors(module, {type for op in ops_in_order(*module.regions) for type in descriptors_of(op)})


COPIED_BYTES = 16  # the shortest row that TMA copies


@module_pass("tt-odd-descriptors-to-pointers")
def odd_descriptors_to_pointers(module: ModuleOp) -> None:
    ops = ops_in_order(*module.regions)
    if types := {type for op in ops for type in descriptors_of(op)}:
        odd = {type for type in types if is_odd(block_of(type)) or row_bytes(type) < COPIED_BYTES} | {
            type for op in ops for type in odd_rows(op)
        }
        rewrite_descriptors(module, odd, marks=True)


def rewrite_descriptors(module: ModuleOp, types: Collection[Attribute], marks: bool = False) -> None:
    """Replace the descriptors of `types`; with `marks`, mark arguments that were descriptors."""

    def replaces(type: Attribute) -> bool:
        return is_descriptor(type) and type in types  # the cheap test first

    if types:
        mark = {DESCRIBED: UnitAttr()} if marks else None
        Flattening("a tensor descriptor", replaces, components, RULES, mark).run(module)


def descriptors_of(op: Operation) -> Iterable[Attribute]:
    """The types of descriptors among the results of an op, or the parameters of a function."""
    return filter(is_descriptor, given_types(op))


def odd_rows(op: Operation) -> Iterable[Attribute]:
    """The type of the descriptor, if the number of its gathered or scattered rows is no power of two."""
    if isinstance(op, tt.DescriptorGatherOp | tt.DescriptorScatterOp) and is_odd(op.x_offsets.type):
        yield op.desc.type


def row_bytes(descriptor: Attribute) -> int:
    """The bytes of a row of the block."""
    block = block_of(descriptor)
    return shape_of(block)[-1] * bit_width(block) // 8


def components(type: Attribute) -> tuple[Attribute, ...]:
    """The types that replace `type`; for a descriptor: pointer, shape, strides, "pad with NaN", "round to tf32"."""
    if not isinstance(type, TensorDescType):
        return (type,)
    sizes = (i64,) * (2 * len(shape_of(type.block)))
    return (pointer_type(signless(element_type(type.block))), *sizes, i1, i1)


def signless(element: Attribute) -> Attribute:
    """``ui8`` and ``si8`` are ``i8`` outside of descriptors."""
    return integer_type(element.width.data) if isinstance(element, IntegerType) else element


@light_dataclass
class Descriptor:
    """The values a descriptor holds."""

    base: SSAValue
    shape: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]
    pad_nan: SSAValue
    round_tf32: SSAValue


def descriptor_of(values: Sequence[SSAValue]) -> Descriptor:
    base, *sizes, pad_nan, round_tf32 = values
    rank = len(sizes) // 2
    return Descriptor(base, tuple(sizes[:rank]), tuple(sizes[rank:]), pad_nan, round_tf32)


def rewrite_make(rewrite: Flattening, op: Operation) -> None:
    if not rewrite.replaces(op.results[0].type):
        return
    base, *rest = op.operands
    rank = len(rest) // 2
    code = Emitter(op.location)
    shape = tuple(code.sign_extended(size) for size in rest[:rank])
    option = op.properties.get("padding")
    pad_nan = code.constant(int(option is not None and option.value.data == PaddingOption.NAN), i1)  # pyright: ignore
    rewrite.replace(op, code, (base, *shape, *rest[rank:], pad_nan, code.constant(0, i1)))


def block_of(type: Attribute) -> Attribute:
    """The block that a descriptor reads and writes."""
    assert isinstance(type, TensorDescType)
    return type.block


def access_rows(code: Emitter, block: Shape, rows: SSAValue, column: SSAValue) -> BlockAccess:
    """Access the rows with the indices `rows`, from `column` on: gather and scatter."""
    expanded = code.expanded(rows, (1,))
    access = BlockAccess(code, block, (rows, code.sign_extended(column)))
    access.expanded[0] = code.sign_extended(expanded)
    access.offset(1)
    return access


def padding(code: Emitter, descriptor: Descriptor, type: Attribute) -> SSAValue:
    """The value that a load returns outside of the array."""
    if not is_float(element_type(type)):
        return code.constant(0, type)
    filled, zero = code.constant(nan, type), code.constant(0.0, type)
    return code.select(descriptor.pad_nan, filled, zero)


def addresses(access: BlockAccess, descriptor: Descriptor) -> tuple[SSAValue, SSAValue]:
    """Pointers and mask, checked on all axes."""
    axes = range(len(access.block))
    for axis in axes:
        access.offset(axis)
    pointers = access.pointers(descriptor.base, descriptor.strides)
    mask = access.mask(descriptor.shape, axes)
    assert mask is not None, "a descriptor has at least one axis"
    return pointers, mask


def make_load(code: Emitter, op: Operation, access: BlockAccess, descriptor: Descriptor) -> Operation:
    type = tensor_type(access.block, element_type(op.results[0].type))
    if isinstance(op, tt.DescriptorGatherOp):  # in the order of Triton's code
        pointers, mask = addresses(access, descriptor)
        other = padding(code, descriptor, type)
    else:
        other = padding(code, descriptor, type)
        pointers, mask = addresses(access, descriptor)
    options = {name: int_property(op, name) for name in ("cache", "evict") if name in op.properties}
    return tt.LoadOp.make(pointers, mask, other, op.location, **options)


# The bits of f32: 8 of the exponent, and 13 that tf32 drops. Exponents of ones, infinities and NaN, are kept.
EXPONENT, DROPPED = 0x7F800000, 13


def rounded(code: Emitter, descriptor: Descriptor, value: SSAValue, branches: bool) -> SSAValue:
    """Return what a load of `descriptor` gives, rounded to tf32 (to nearest even) if the descriptor says so.

    The rounding is in a branch, or its result is selected.
    """
    if element_type(value.type) != f32 or constant_value(descriptor.round_tf32) == 0:
        return value
    body = Emitter(code.loc) if branches else code
    bits = body.convert(tt.BitcastOp, value, with_element(value.type, i32))
    kept = body.compare("eq", body.binary(arith.AndIOp, bits, EXPONENT), EXPONENT)
    last = body.binary(arith.AndIOp, body.binary(arith.ShRUIOp, bits, DROPPED), 1)
    added = body.binary(arith.AddiOp, bits, body.binary(arith.AddiOp, last, (1 << DROPPED - 1) - 1))
    chosen = body.select(kept, bits, body.binary(arith.AndIOp, added, -1 << DROPPED))
    result = body.convert(tt.BitcastOp, chosen, value.type)
    if not branches:
        return code.select(descriptor.round_tf32, result, value)
    body.ops.append(make_yield([result], code.loc))
    otherwise = Region(Block([make_yield([value], code.loc)]))
    return code.append(make_if(descriptor.round_tf32, [value.type], Region(Block(body.ops)), otherwise, code.loc))


def make_store(code: Emitter, op: Operation, access: BlockAccess, descriptor: Descriptor) -> Operation:
    pointers, mask = addresses(access, descriptor)
    return tt.StoreOp.make(pointers, code.reshaped(stored_value(op), access.block), mask, op.location)


def make_atomic(code: Emitter, op: Operation, access: BlockAccess, descriptor: Descriptor) -> Operation:
    element = element_type(block_of(op.operands[0].type))
    atomic = ATOMICS.get(DescriptorReduceKind(int_property(op, "kind")), {}).get(element_kind(element))
    if atomic is None:
        raise PassError(f"Cannot fallback on descriptor atomic op, unsupported for type {element}", op.location)
    pointers, mask = addresses(access, descriptor)
    value = code.reshaped(stored_value(op), access.block)
    return tt.AtomicRMWOp.make(atomic, pointers, value, mask, MemSemantic.RELEASE, MemSyncScope.GPU, op.location)


def element_kind(element: Attribute) -> str:
    """``float``, or the signedness of an integer: ``signed``, ``unsigned``, ``signless``."""
    if not isinstance(element, IntegerType):
        return "float"
    return SIGNEDNESS[element.signedness.data]


SIGNEDNESS = {Signedness.SIGNED: "signed", Signedness.UNSIGNED: "unsigned", Signedness.SIGNLESS: "signless"}
INTEGERS = ("signed", "unsigned", "signless")
ATOMICS: dict[DescriptorReduceKind, dict[str, RMWOp]] = {
    DescriptorReduceKind.ADD: {"float": RMWOp.FADD, **dict.fromkeys(INTEGERS, RMWOp.ADD)},
    DescriptorReduceKind.MIN: {"signed": RMWOp.MIN, "unsigned": RMWOp.UMIN},
    DescriptorReduceKind.MAX: {"signed": RMWOp.MAX, "unsigned": RMWOp.UMAX},
    DescriptorReduceKind.AND: dict.fromkeys(INTEGERS, RMWOp.AND),
    DescriptorReduceKind.OR: dict.fromkeys(INTEGERS, RMWOp.OR),
    DescriptorReduceKind.XOR: dict.fromkeys(INTEGERS, RMWOp.XOR),
}


ACCESSES: dict[type[Operation], Callable[[Emitter, Operation, BlockAccess, Descriptor], Operation]] = {
    tt.DescriptorLoadOp: make_load,
    tt.DescriptorGatherOp: make_load,
    tt.DescriptorStoreOp: make_store,
    tt.DescriptorScatterOp: make_store,
    tt.DescriptorReduceOp: make_atomic,
}


def rewrite_access(rewrite: Flattening, op: Operation) -> None:
    """Replace an access by its code; the descriptor is the first operand."""
    desc = op.operands[0]
    if not rewrite.replaces(desc.type):
        return
    descriptor, code = descriptor_of(rewrite.values(desc, op)), Emitter(op.location)
    if isinstance(op, tt.DescriptorGatherOp | tt.DescriptorScatterOp):
        tile = op.results[0] if op.results else stored_value(op)
        access = access_rows(code, shape_of(tile.type), op.x_offsets, op.y_offset)
    else:
        offsets = [code.sign_extended(index) for index in op.indices]  # pyright: ignore[reportAttributeAccessIssue]
        access = BlockAccess(code, shape_of(block_of(desc.type)), offsets)
    new = ACCESSES[type(op)](code, op, access, descriptor)
    if type(op) is not tt.DescriptorReduceOp:
        new.attributes.update(op.attributes)
    code.ops.append(new)
    if op.results:
        found = rounded(code, descriptor, new.results[0], branches=type(op) is tt.DescriptorLoadOp)
        op.results[0].replace_all_uses_with(code.reshaped(found, shape_of(op.results[0].type)))
    code.insert_before(op)
    erase_op(op)


RULES: dict[type[Operation], Callable[[Flattening, Operation], None]] = {
    tt.MakeTensorDescOp: rewrite_make,
    **dict.fromkeys(ACCESSES, rewrite_access),
}
