"""Replace block pointers by tensors of pointers.

    %b = tt.make_tensor_ptr %p, [%n, %n], [%s, %c1], [%o, %c0] : <tensor<8x4xf32>>
    %c = tt.advance %b, [%c0, %c4] : <tensor<8x4xf32>>
    %v = tt.load %c {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x4xf32>>

becomes the arithmetic of `block_access.py` on ``extsi %o + extsi %c0`` and ``extsi %c0 + extsi %c4``, a mask for axis
0 and a load of ``tensor<8x4x!tt.ptr<f32>>`` with zeros where the mask is off. Only the offsets of a block pointer ever
change, so a loop carries `rank` offsets (i64) in its place and a branch yields them. Base, shape and strides are those
of the pointer that enters; where the branches of an `scf.if` disagree about one of them, it is yielded too. Limits, all
reported at the op: a loop whose body moves to another array, `scf.while`, `cf`, calls.
Stage: TTIR to TTIR. Cost: one walk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp
from tilework.ir.enums import PaddingOption
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import constant_value, erase_op, insert_before, recreate, replace_op
from tilework.ir.types import Shape, element_type, i64, is_block_pointer, is_float, shape_of
from tilework.transforms.building.block_access import BlockAccess
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass


class RewriteTensorPointerPass(Pass):
    name = "triton-rewrite-tensor-pointer"

    def run(self, module: ModuleOp) -> None:
        if any(has_block_pointers(inner) for inner in ops_in_order(*module.regions)):
            rewrite = Rewrite()
            rewrite.regions(module)
            for pointer in reversed(rewrite.dead):
                erase_op(pointer)


def has_block_pointers(op: Operation) -> bool:
    """It makes a block pointer, or is a function that takes one."""
    if type(op) is tt.FuncOp:
        return any(is_block_pointer(input) for input in op.properties["function_type"].inputs)  # pyright: ignore
    return any(is_block_pointer(result.type) for result in op.results)


@dataclass(frozen=True)
class BlockPointer:
    """What is known about one block pointer: where the array is, and where the block is in it."""

    base: SSAValue
    shape: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]
    offsets: tuple[SSAValue, ...]
    block: Shape

    @property
    def array(self) -> tuple[SSAValue, ...]:
        """The parts that never change: base, shape, strides."""
        return (self.base, *self.shape, *self.strides)

    def with_parts(self, array: Sequence[SSAValue], offsets: Sequence[SSAValue]) -> "BlockPointer":
        rank = len(self.block)
        return BlockPointer(array[0], tuple(array[1 : 1 + rank]), tuple(array[1 + rank :]), tuple(offsets), self.block)


class Rewrite:
    """One walk in program order; `pointers` knows each block pointer seen so far."""

    def __init__(self) -> None:
        self.pointers: dict[SSAValue, BlockPointer] = {}
        self.dead: list[Operation] = []

    def regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def block(self, block: Block) -> None:
        for argument in block.args:
            if is_block_pointer(argument.type) and argument not in self.pointers:
                owner = block.parent_op()
                assert owner is not None
                raise unsupported(owner)
        for op in tuple(block.ops):
            if (rule := RULES.get(type(op))) is not None:
                rule(self, op)
            else:
                if any(is_block_pointer(value.type) for value in (*op.operands, *op.results)):
                    raise unsupported(op)
                self.regions(op)

    def known(self, value: SSAValue, user: Operation) -> BlockPointer:
        """What `value` points at."""
        if (pointer := self.pointers.get(value)) is None:
            raise unsupported(user)
        return pointer


def unsupported(op: Operation) -> PassError:
    return PassError(
        f"'{op.name}' uses a block pointer here: block pointers can be carried by `scf.for` and `scf.if` only; "
        "use a tensor descriptor, or build the tensor of pointers with tl.arange",
        op.location,
    )


def rewrite_make(rewrite: Rewrite, op: Operation) -> None:
    code = Emitter(op.location)
    block = shape_of(op.results[0].type.pointee)  # pyright: ignore
    rank = len(block)
    base, *rest = op.operands
    offsets = tuple(code.sign_extended(offset) for offset in rest[2 * rank :])
    code.insert_before(op)
    rewrite.pointers[op.results[0]] = BlockPointer(
        base, tuple(rest[:rank]), tuple(rest[rank : 2 * rank]), offsets, block
    )
    rewrite.dead.append(op)


def rewrite_advance(rewrite: Rewrite, op: Operation) -> None:
    pointer = rewrite.known(op.operands[0], op)
    code = Emitter(op.location)
    offsets = [
        code.binary(arith.AddiOp, offset, code.sign_extended(delta))
        for offset, delta in zip(pointer.offsets, op.operands[1:], strict=True)
    ]
    code.insert_before(op)
    rewrite.pointers[op.results[0]] = pointer.with_parts(pointer.array, offsets)
    rewrite.dead.append(op)


def rewrite_access(rewrite: Rewrite, op: Operation) -> None:
    """A load or a store; those through tensors of pointers stay."""
    if not is_block_pointer(op.operands[0].type):
        return
    pointer = rewrite.known(op.operands[0], op)
    code = Emitter(op.location)
    access = BlockAccess(code, pointer.block, pointer.offsets)
    pointers = access.pointers(pointer.base, pointer.strides)
    mask = access.mask(pointer.shape, op.properties["boundaryCheck"].get_values())  # pyright: ignore
    options = {name: op.properties[name].value.data for name in ("cache", "evict")}  # pyright: ignore
    if type(op) is tt.LoadOp:
        other = None if mask is None else padding(code, op)
        is_volatile = bool(op.properties["isVolatile"].value.data)  # pyright: ignore
        new: Operation = tt.LoadOp.make(pointers, mask, other, op.location, is_volatile=is_volatile, **options)
    else:
        new = tt.StoreOp.make(pointers, op.operands[1], mask, op.location, **options)
    new.attributes.update(op.attributes)
    code.insert_before(op)
    replace_op(op, new)


def padding(code: Emitter, load: Operation) -> SSAValue | None:
    """What a load gives outside of the array: zeros, NaN, or anything."""
    option = load.properties.get("padding")
    if option is None:
        return None
    type = load.results[0].type
    is_nan = option.value.data == PaddingOption.NAN  # pyright: ignore
    if is_nan and not is_float(element_type(type)):
        raise PassError(f"padding with NaN needs a block of floats, not {type}", load.location)
    value = nan if is_nan else 0.0 if is_float(element_type(type)) else 0
    return code.splat(code.constant(value, element_type(type)), shape_of(type))


# Per value that a loop or branch hands over: None, or a block pointer and which parts of its array vary.
Plan = Sequence[tuple[BlockPointer, tuple[int, ...]] | None]


def rewrite_for(rewrite: Rewrite, op: Operation) -> None:
    """Carry offsets in place of each block pointer."""
    initial = op.operands[3:]
    plan: Plan = [(rewrite.known(v, op), ()) if is_block_pointer(v.type) else None for v in initial]
    if not any(plan):
        rewrite.regions(op)
        return
    (body,) = op.regions[0].blocks
    old_arguments = [argument for argument in body.args if is_block_pointer(argument.type)]
    for argument, value in zip(old_arguments, filter(lambda v: is_block_pointer(v.type), initial), strict=True):
        pointer = rewrite.pointers[value]
        first = argument.index
        offsets = [body.insert_arg(i64, first + axis, argument.location) for axis in range(len(pointer.block))]
        rewrite.pointers[argument] = pointer.with_parts(pointer.array, offsets)
    rewrite.block(body)
    check_loop_invariant(rewrite, body, plan)
    flatten_yield(rewrite, body, plan)
    for argument in old_arguments:
        body.erase_arg(argument, safe_erase=False)
    replace_structured(rewrite, op, (*op.operands[:3], *flattened(rewrite, initial, plan)), plan)


def check_loop_invariant(rewrite: Rewrite, body: Block, plan: Plan) -> None:
    terminator = end_of(body)
    for value, part in zip(terminator.operands, plan, strict=True):
        if part is not None and not all(map(same, rewrite.known(value, terminator).array, part[0].array)):
            raise PassError(
                "the block pointer changes its base, shape or strides from one iteration to the next; "
                "only its offsets may change (tl.advance)",
                terminator.location,
            )


def same(a: SSAValue, b: SSAValue) -> bool:
    """The same value, or equal constants."""
    return a is b or (constant_value(a) is not None and constant_value(a) == constant_value(b))


def rewrite_if(rewrite: Rewrite, op: Operation) -> None:
    """Yield offsets in place of each block pointer, and what else the branches disagree about."""
    rewrite.regions(op)
    if not any(is_block_pointer(result.type) for result in op.results):
        return
    blocks = [block for region in op.regions for block in region.blocks]
    then, otherwise = (block.last_op for block in blocks)
    assert then is not None and otherwise is not None
    plan: Plan = [
        merged(rewrite.known(a, then), rewrite.known(b, otherwise)) if is_block_pointer(a.type) else None
        for a, b in zip(then.operands, otherwise.operands, strict=True)
    ]
    for block in blocks:
        flatten_yield(rewrite, block, plan)
    replace_structured(rewrite, op, tuple(op.operands), plan)


def merged(a: BlockPointer, b: BlockPointer) -> tuple[BlockPointer, tuple[int, ...]]:
    """`a`, and the parts of its array in which `b` differs."""
    return a, tuple(index for index, (x, y) in enumerate(zip(a.array, b.array, strict=True)) if x is not y)


def flatten_yield(rewrite: Rewrite, block: Block, plan: Plan) -> None:
    terminator = end_of(block)
    terminator.operands = flattened(rewrite, terminator.operands, plan)


def flattened(rewrite: Rewrite, values: Sequence[SSAValue], plan: Plan) -> list[SSAValue]:
    """`values` with the offsets and the varying parts in place of each block pointer."""
    flat: list[SSAValue] = []
    for value, part in zip(values, plan, strict=True):
        if part is None:
            flat.append(value)
        else:
            pointer = rewrite.pointers[value]
            flat.extend((*pointer.offsets, *(pointer.array[index] for index in part[1])))
    return flat


def replace_structured(rewrite: Rewrite, op: Operation, operands: Sequence[SSAValue], plan: Plan) -> None:
    """Put a loop or branch with flattened results in front of `op`, whose dead block pointers stay till the end."""
    types: list[Attribute] = []
    for result, part in zip(op.results, plan, strict=True):
        if part is None:
            types.append(result.type)
        else:
            pointer, varying = part
            types.extend((*(i64,) * len(pointer.block), *(pointer.array[index].type for index in varying)))
    new = recreate(op, operands=operands, result_types=types, regions=op.regions)
    insert_before(op, new)
    results = iter(new.results)
    for result, part in zip(op.results, plan, strict=True):
        if part is None:
            result.replace_all_uses_with(next(results))
        else:
            pointer, varying = part
            offsets = [next(results) for _ in pointer.block]
            array = list(pointer.array)
            for index in varying:
                array[index] = next(results)
            rewrite.pointers[result] = pointer.with_parts(array, offsets)
    rewrite.dead.append(op)


def rewrite_select(rewrite: Rewrite, op: Operation) -> None:
    """Choose between the parts that differ."""
    condition, a, b = op.operands
    if not is_block_pointer(a.type):
        return
    first, second = rewrite.known(a, op), rewrite.known(b, op)
    code = Emitter(op.location)

    def choose(x: SSAValue, y: SSAValue) -> SSAValue:
        return x if x is y else code.append(SelectOp.make(condition, x, y, op.location))

    array = [choose(x, y) for x, y in zip(first.array, second.array, strict=True)]
    offsets = [choose(x, y) for x, y in zip(first.offsets, second.offsets, strict=True)]
    code.insert_before(op)
    rewrite.pointers[op.results[0]] = first.with_parts(array, offsets)
    rewrite.dead.append(op)


def keep(rewrite: Rewrite, op: Operation) -> None:
    """Yields are rewritten with the loop or branch that they end."""


RULES: dict[type[Operation], Callable[[Rewrite, Operation], None]] = {
    tt.MakeTensorPtrOp: rewrite_make,
    tt.AdvanceOp: rewrite_advance,
    tt.LoadOp: rewrite_access,
    tt.StoreOp: rewrite_access,
    scf.ForOp: rewrite_for,
    scf.IfOp: rewrite_if,
    scf.YieldOp: keep,
    SelectOp: rewrite_select,
}
