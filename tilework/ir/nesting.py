"""The nesting of ops in regions: parents, ancestors, order."""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue


def ops_around(op: Operation) -> Iterator[Operation]:
    """The ops that hold `op`, from the innermost on."""
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


class OpOrder:
    """The order of ops in their blocks: each block is numbered once, and ops that are inserted later get numbers in the
    gaps. Ops must not be moved while an `OpOrder` is in use."""

    GAP, STEP = 1 << 40, 1 << 20  # STEP: many ops may be inserted in front of one

    def __init__(self) -> None:
        self.numbers: dict[Operation, int] = {}

    def is_before(self, first: Operation, second: Operation) -> bool:
        """Return True if `first` precedes `second` in their block."""
        return self.number(first) < self.number(second)

    def number(self, op: Operation) -> int:
        numbers = self.numbers
        if (known := numbers.get(op)) is not None:
            return known
        low, unnumbered = op.prev_op, [op]
        while low is not None and low not in numbers:
            unnumbered.append(low)
            low = low.prev_op
        unnumbered.reverse()
        high = op.next_op
        while high is not None and high not in numbers:
            unnumbered.append(high)
            high = high.next_op
        start = 0 if low is None else numbers[low]
        step = self.GAP
        if high is not None:
            step = min((numbers[high] - start) // (len(unnumbered) + 1), self.STEP)
        if not step:
            assert op.parent is not None, "ops of a block have an order"
            start, step, unnumbered = 0, self.GAP, op.parent.ops
        for position, each in enumerate(unnumbered, 1):
            numbers[each] = start + position * step
        return numbers[op]


def is_inside(op: Operation, outer: Operation) -> bool:
    """Return True if `op` is `outer` or inside of it."""
    return op is outer or any(around is outer for around in ops_around(op))


def enclosing_op(op: Operation, block: Block) -> Operation | None:
    """Return the op of `block` that is `op` or contains it; None if there is none."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def body_of(loop: Operation) -> Block:
    """The block of an `scf.for`, or the first one of another op with regions."""
    block = loop.regions[0].first_block
    assert block is not None, "a loop has a body"
    return block


def start_of(block: Block) -> Operation:
    """The first op of a block."""
    assert block.first_op is not None, "a block ends with a terminator"
    return block.first_op


def end_of(block: Block | None) -> Operation:
    """The terminator of a block."""
    assert block is not None and block.last_op is not None, "a block ends with a terminator"
    return block.last_op


def behind(value: SSAValue) -> Operation:
    """The op in front of which `value` is known first."""
    following = value.owner.next_op if isinstance(value.owner, Operation) else value.owner.first_op
    assert following is not None, "a block ends with a terminator"
    return following


def ops_behind(op: Operation, end: Operation | None = None) -> Iterator[Operation]:
    """The ops of the block after `op`, up to `end`."""
    while (following := op.next_op) is not None and following is not end:
        yield following
        op = following


def blocks_within(op: Operation) -> Iterator[Block]:
    """The blocks of `op` and of the ops in them."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if inner.regions:
                    yield from blocks_within(inner)


def home_of(value: SSAValue) -> Block | None:
    """The block that `value` is defined in."""
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner


def is_defined_in(value: SSAValue, op: Operation) -> bool:
    """Return True if `value` is made inside of `op`: by an op in a region of it, or as an argument there."""
    home = home_of(value)
    return home is not None and (parent := home.parent_op()) is not None and is_inside(parent, op)


def successors(block: Block) -> Sequence[Block]:
    """The blocks that `block` may branch to."""
    return block.last_op.successors if block.last_op is not None else ()


def predecessors(blocks: Iterable[Block]) -> dict[Block, list[Block]]:
    """Those of `blocks` that branch to each block, one entry per edge, in their order."""
    found: dict[Block, list[Block]] = {}
    for block in blocks:
        for successor in successors(block):
            found.setdefault(successor, []).append(block)
    return found


def values_of(op: Operation) -> list[SSAValue]:
    """The results of `op`, and the arguments of its blocks."""
    return [*op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args)]


def only_op(block: Block) -> Operation | None:
    """The op that is all that a function of two values does: it takes both, and its result is what the function
    returns."""
    first, last = block.first_op, block.last_op
    if first is None or last is None or first.next_op is not last or len(block.args) != 2:
        return None
    is_all = set(first.operands) == set(block.args) and tuple(last.operands) == tuple(first.results)
    return first if is_all else None


def owner_of(value: SSAValue) -> Operation | None:
    """The op that computes `value`, or that has it as an argument of a region."""
    return value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()


def location_of(value: SSAValue) -> LocationAttr:
    """Return the source location of `value`."""
    if isinstance(value, OpResult):
        return value.op.location
    assert isinstance(value, BlockArgument)
    return value.location
