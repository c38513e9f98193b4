"""Replace block pointers by tensors of pointers.

    %b = tt.make_tensor_ptr %p, [%n, %n], [%s, %c1], [%o, %c0] : <tensor<8x4xf32>>
    %c = tt.advance %b, [%c0, %c4] : <tensor<8x4xf32>>
    %v = tt.load %c {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x4xf32>>

becomes the arithmetic of `building/flattening.py` on ``extsi %o + extsi %c0`` and ``extsi %c0 + extsi %c4``, a mask for
axis 0 and a load of ``tensor<8x4x!tt.ptr<f32>>`` with zeros where the mask is false. A block pointer becomes 1 + 3 *
rank values: base, shape, strides and offsets (i64), wherever it is passed on (`flattening.py`).
Stage: TTIR to TTIR. Cost: one walk.
"""

from math import nan

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, tt
from tilework.ir.enums import PaddingOption
from tilework.ir.functions import given_types, ops_in_order
from tilework.ir.rewrite import replace_op
from tilework.ir.tt.memory_ops import element_pointer
from tilework.ir.types import PointerType, element_type, i64, int_property, is_block_pointer, is_float, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.flattening import BlockAccess, Flattening, Rule
from tilework.transforms.passes import module_pass


@module_pass("triton-rewrite-tensor-pointer")
def rewrite_tensor_pointer(module: ModuleOp) -> None:
    if any(is_block_pointer(type) for op in ops_in_order(*module.regions) for type in given_types(op)):
        Flattening("a block pointer", is_block_pointer, components, RULES).run(module)


def components(type: Attribute) -> tuple[Attribute, ...]:
    """Base, shape, strides and offsets."""
    return (element_pointer(type), *(i64,) * (3 * len(shape_of(block_of(type)))))


def block_of(type: Attribute) -> Attribute:
    """The block that a block pointer points to."""
    assert isinstance(type, PointerType)
    return type.pointee


def rewrite_make(rewrite: Flattening, op: Operation) -> None:
    code = Emitter(op.location)
    first = len(op.operands) - len(shape_of(block_of(op.results[0].type)))
    offsets = [code.sign_extended(offset) for offset in op.operands[first:]]
    rewrite.replace(op, code, (*op.operands[:first], *offsets))


def rewrite_advance(rewrite: Flattening, op: Operation) -> None:
    values, deltas = rewrite.values(op.operands[0], op), op.operands[1:]
    array, offsets = values[: -len(deltas)], values[-len(deltas) :]
    code = Emitter(op.location)
    moved = [
        code.binary(arith.AddiOp, offset, code.sign_extended(delta))
        for offset, delta in zip(offsets, deltas, strict=True)
    ]
    rewrite.replace(op, code, (*array, *moved))


def rewrite_access(rewrite: Flattening, op: Operation) -> None:
    """Rewrite a load or a store; those through tensors of pointers are kept."""
    if not is_block_pointer(op.operands[0].type):
        return
    block = shape_of(block_of(op.operands[0].type))
    rank = len(block)
    base, *rest = rewrite.values(op.operands[0], op)
    shape, strides, offsets = rest[:rank], rest[rank : 2 * rank], rest[2 * rank :]
    code = Emitter(op.location)
    access = BlockAccess(code, block, offsets)
    pointers = access.pointers(base, strides)
    mask = access.mask(shape, op.properties["boundaryCheck"].get_values())  # pyright: ignore
    options = {name: op.properties[name].value.data for name in ("cache", "evict")}  # pyright: ignore
    if type(op) is tt.LoadOp:
        other = None if mask is None else padding(code, op)
        is_volatile = bool(int_property(op, "isVolatile"))
        new: Operation = tt.LoadOp.make(pointers, mask, other, op.location, is_volatile=is_volatile, **options)
    else:
        new = tt.StoreOp.make(pointers, op.operands[1], mask, op.location, **options)
    new.attributes.update(op.attributes)
    code.insert_before(op)
    replace_op(op, new)


def padding(code: Emitter, load: Operation) -> SSAValue | None:
    """The value that a load returns outside of the array: zeros, NaN, or undefined."""
    option = load.properties.get("padding")
    if option is None:
        return None
    type = load.results[0].type
    is_nan = option.value.data == PaddingOption.NAN  # pyright: ignore
    if is_nan and not is_float(element_type(type)):
        raise PassError(f"padding with NaN needs a block of floats, not {type}", load.location)
    value = nan if is_nan else 0.0 if is_float(element_type(type)) else 0
    return code.splat(code.constant(value, element_type(type)), shape_of(type))


RULES: dict[type[Operation], Rule] = {
    tt.MakeTensorPtrOp: rewrite_make,
    tt.AdvanceOp: rewrite_advance,
    tt.LoadOp: rewrite_access,
    tt.StoreOp: rewrite_access,
}
