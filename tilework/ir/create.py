"""Build, insert and look at ops at a third of the cost of xDSL's own constructors and accessors.

`create_op` does what `Operation.create` does for an op without regions and successors, with the same result: it sets
the same fields and links the same uses, but calls no property setters and loops once over the operands. What ops and
values are asked for most often (hash, type, neighbour) is answered by Python itself instead of functions that say the
same (`quicken`). This file is the only one that knows the private fields of xDSL's IR; `tests/ir/test_create.py`
compares each function with xDSL's.
"""

# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockOps, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues, _IRNode

OpT = TypeVar("OpT", bound=Operation)
AttributeT = TypeVar("AttributeT", bound=Attribute)

NONE: Mapping[str, Attribute] = {}
operands_of = attrgetter("_operands")  # the tuple itself; `op.operands` is an object made each time


def quicken() -> None:
    """Let xDSL's classes answer as before, without calling functions."""
    identical: Any
    for identical in (SSAValue, Use, _IRNode):  # all of them are themselves and nothing else
        identical.__hash__, identical.__eq__ = object.__hash__, object.__eq__
    fields: tuple[tuple[Any, str, str], ...] = (
        (SSAValue, "type", "_type"),
        (OpResult, "owner", "op"),
        (Operation, "next_op", "_next_op"),
        (Use, "operation", "_operation"),
        (Use, "index", "_index"),
    )
    for cls, name, field in fields:
        setattr(cls, name, property(attrgetter(field)))

    def ops(self: BlockOps) -> Iterator[Operation]:
        following = self.block._first_op
        while (op := following) is not None:
            following = op._next_op  # the caller may detach `op`
            yield op

    def item(self: Any, index: Any, item: Any = tuple.__getitem__) -> Any:
        return SSAValues(item(self, index)) if index.__class__ is slice else item(self, index)

    BlockOps.__iter__, SSAValues.__getitem__ = ops, item  # pyright: ignore[reportAttributeAccessIssue]


quicken()


def create_attr(cls: type[AttributeT], **fields: Any) -> AttributeT:
    """An attribute of `cls` with these parameters, which are right: xDSL's constructor would verify them."""
    attribute = cls.__new__(cls)
    vars(attribute).update(fields)  # they are frozen, and have no slots
    return attribute


def create_op(
    cls: type[OpT],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    location: LocationAttr,
    properties: Mapping[str, Attribute] = NONE,
    attributes: Mapping[str, Attribute] = NONE,
) -> OpT:
    """A detached op of `cls`; fields that are not set here have the class's defaults (`DEFAULTS` for properties)."""
    op = cls.__new__(cls)
    uses = []
    for index, value in enumerate(operands):
        use = Use(op, index)
        first = value.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operands = SSAValues(operands)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties = {**getattr(cls, "DEFAULTS", NONE), **properties}
    op.attributes = dict(attributes)
    op.location = location
    return op


def replace_all_uses(old: SSAValue, new: SSAValue) -> None:
    """Replace every use of `old` by `new`: the list of uses is moved as a whole. Names, which come from locations, are
    not."""
    first = old.first_use
    if first is None or old is new:
        return
    use = last = first
    while use is not None:
        operation = use._operation
        operands = list(operation._operands)
        operands[use._index] = new
        operation._operands = SSAValues(operands)
        last, use = use, use._next_use
    last._next_use = new.first_use
    if new.first_use is not None:
        new.first_use._prev_use = last
    new.first_use = first
    old.first_use = None


def set_type(value: SSAValue, type: Attribute) -> None:
    """Give `value` another type, in place; its users must accept that."""
    value._type = type


def erase_op(op: Operation) -> None:
    """Take `op` out of its block and out of the uses of its operands; its results must have no uses."""
    for result in op.results:
        if result.first_use is not None:
            raise ValueError(f"{op.name} cannot be erased: its results still have uses")
    if op.parent is not None:
        op.parent.detach_op(op)
    if op.regions or op._successors:
        op.drop_all_references()
        return
    for operand, use in zip(op._operands, op._operand_uses, strict=True):
        operand.remove_use(use)
    op._operand_uses = ()


def append_op(block: Block, op: Operation) -> None:
    """Put `op` at the end of `block`."""
    if op.regions or op.parent is not None:
        block.add_op(op)
        return
    last = block._last_op
    op.parent = block
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


Values = dict[SSAValue, SSAValue]
Blocks = dict[Block, Block]


def clone_op(op: OpT, values: Values, blocks: Blocks | None = None) -> OpT:
    """Clone as `Operation.clone` does, for an op without successors; `values` and `blocks` map old objects to new
    ones."""
    operands, types = [values.get(value, value) for value in op._operands], [result._type for result in op.results]
    new = create_op(type(op), operands, types, op.location, op.properties, op.attributes)
    for result, own in zip(op.results, new.results, strict=True):
        values[result] = own
        own._name = result._name
    for region in op.regions:
        new.add_region(inner := Region())
        clone_into(inner, region, values, {} if blocks is None else blocks)
    return new


def clone_region(region: Region) -> Region:
    """Clone as `Region.clone` does."""
    copy = Region()
    clone_into(copy, region, {}, {})
    return copy


def clone_into(target: Region, source: Region, values: Values, blocks: Blocks) -> None:
    """Clone as `Region.clone_into` does, where `target` is empty.

    Where control flow is structured a value is defined in front of its uses, and is known when they are copied.
    """
    if len(source.blocks) != 1 or ((last := source.blocks[0]._last_op) is not None and last._successors):
        source.clone_into(target, value_mapper=values, block_mapper=blocks)
        return
    block = source.blocks[0]
    blocks[block] = copy = Block()
    for index, argument in enumerate(block.args):
        values[argument] = own = copy.insert_arg(argument.type, index, argument.location)
        own._name = argument._name
    op = block._first_op
    while op is not None:
        new = clone_op(op, values, blocks)
        append_op(copy, new)
        op = op._next_op
    target.add_block(copy)


def list_ops(region: Region, found: list[Operation]) -> None:
    """Append every op of `region` to `found`, each before those nested in it."""
    block = region._first_block
    while block is not None:
        op = block._first_op
        while op is not None:
            found.append(op)
            for inner in op.regions:
                list_ops(inner, found)
            op = op._next_op
        block = block._next_block


def add_result(op: Operation, type: Attribute) -> OpResult:
    """A new last result of `op`."""
    result = OpResult(type, op, len(op.results))
    op.results = SSAValues([*op.results, result])
    return result
