"""The schedule of the nests of a block, built while its ops are read.

Waiting items (nests, and scalar code that depends on them) form a list. Each new root goes into the earliest nest of
its shape that comes after everything it depends on, else into a new nest at the earliest position:

    %x = tt.load  64x128        [nest 64x128: load x]
    %b = tt.load  128           [nest 128: load b] [nest 64x128: load x]
    tt.store x + b              [nest 128: load b, keep b] [nest 64x128: load x, store x + b]

Tiles are computed where they are used, once per nest. A tile that another nest computed is kept in a buffer if that is
cheaper than computing it again (`Costs`). `flush` emits the list.
"""

from collections.abc import Sequence
from dataclasses import field
from itertools import islice
from math import prod

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, math, tt, ttc, ub
from tilework.ir.arith import RemfOp
from tilework.ir.nesting import location_of
from tilework.ir.rewrite import constant_value, insert_before
from tilework.ir.types import Shape, bit_width, element_type, is_float, is_pointer, is_tensor, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttc.loops.hazards import Access, Bases, may_overlap
from tilework.transforms.ttc.loops.index_maps import (
    PICKING,
    Digits,
    Source,
    agree,
    cuts_of,
    is_lazy,
    part,
    selector,
    sources,
    spans,
    whole,
)
from tilework.transforms.ttc.loops.nests import MAX_BUFFER_RANK, Buffer, Code, Constants, Emit, Item, Nest, Root, Scope
from tilework.transforms.ttc.loops.waiting import Waiting

# The cost of recomputing one element of a tile, compared with storing the tile in a buffer.
#
# The unit is about one vector instruction. An op costs its own price plus that of its operands; an operand that is
# broadcast along a dimension is paid once per element of its own:
#
#     range, splat, constant          0       float add, multiply, compare, cast   0.5
#     integer, address and mask ops   0.25    division, square root, remainder     4
#     a value in memory               2       exp, log, sin, library functions     8
#
# A value of cost `LIMIT` or more is kept: it is computed once, in a nest of its own shape, and stored if another nest
# needs it.

LIMIT = 4.0
STORED = 2.0
CHEAP_INT, CHEAP_FLOAT, NARROW_FLOAT, SLOW, FUNCTION = 0.25, 0.5, 1.0, 4.0, 8.0
FREE = frozenset(
    {
        arith.ConstantOp,
        tt.BroadcastOp,
        tt.ExpandDimsOp,
        tt.MakeRangeOp,
        tt.ReshapeOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        ub.PoisonOp,
    }
)
PRICES: dict[type[Operation], float] = {
    **dict.fromkeys(FREE, 0.0),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp), SLOW),
    **dict.fromkeys((arith.CeilDivSIOp, arith.CeilDivUIOp, arith.DivfOp, RemfOp), SLOW),
    **dict.fromkeys((tt.PreciseDivFOp, tt.PreciseSqrtOp, math.SqrtOp, math.RsqrtOp, tt.MulhiUIOp), SLOW),
    **dict.fromkeys((math.AbsFOp, math.AbsIOp, math.FmaOp, math.FloorOp, math.CeilOp, math.TruncOp), CHEAP_FLOAT),
    tt.GatherOp: STORED,
    tt.ResizeOp: STORED,
}
VIEWS = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplitOp, tt.TransOp})
REPEATED = frozenset({tt.BroadcastOp, tt.SplatOp})


class Costs:
    """The cost of each requested value, memoized."""

    def __init__(self) -> None:
        self.known: dict[SSAValue, float] = {}

    def of(self, value: SSAValue) -> float:
        """The cost of one element of `value`."""
        if not is_tensor(value.type):
            return 0.0
        if (known := self.known.get(value)) is not None:
            return known
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [v for v in lazy_operands(top) if v not in self.known]
            if missing:
                stack += missing
            else:
                self.known[stack.pop()] = self.total(top)
        return self.known[value]

    def is_kept(self, value: SSAValue) -> bool:
        """Return True if `value` should be stored rather than computed again.

        Of pointers only the parts are stored: their base and their contiguity must remain visible. Of a view its source
        is stored.
        """
        if is_pointer(element_type(value.type)) or (isinstance(value, OpResult) and type(value.op) in VIEWS):
            return False
        return self.of(value) >= LIMIT

    def is_read(self, value: SSAValue) -> bool:
        """Return True if `value` should be read from its buffer: addresses and masks are better recomputed."""
        if not is_lazy_value(value):
            return True
        return not is_pointer(element_type(value.type)) and self.of(value) >= STORED

    def total(self, value: SSAValue) -> float:
        if not isinstance(value, OpResult) or not is_lazy_value(value):
            return STORED
        op = value.op
        below = sum(self.known.get(operand, 0.0) for operand in op._operands)
        if type(op) in REPEATED:
            count = prod(shape_of(op.results[0].type))
            return below * prod(shape_of(op.operands[0].type)) / count
        if type(op) is tt.ReduceOp:
            return 2 * below + CHEAP_FLOAT * len(list(op.regions[0].block.ops))
        return min(below + price(op), 1e9)


def lazy_operands(value: SSAValue) -> list[SSAValue]:
    """The tiles that `value` is computed from."""
    if not isinstance(value, OpResult) or not is_lazy_value(value):
        return []
    return [operand for operand in value.op._operands if is_tensor(operand.type)]


def is_lazy_value(value: SSAValue) -> bool:
    """Return True for a tile that is computed where it is used."""
    return isinstance(value, OpResult) and is_lazy(value.op)


def price(op: Operation) -> float:
    """The cost of `op` itself."""
    if (known := PRICES.get(type(op))) is not None:
        return known
    if type(op).name.startswith("math.") or type(op) is tt.ExternElementwiseOp:
        return FUNCTION
    element = element_type(op.results[0].type)
    if not is_float(element):
        return CHEAP_INT
    return CHEAP_FLOAT if bit_width(element) >= 32 else NARROW_FLOAT


@light_dataclass(frozen=False, eq=False)
class Needs:
    """The dependences of a root: items it must follow, and nests it may join or follow."""

    count: int
    behind: list[Item] = field(default_factory=list)
    joins: list[Nest] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    seen: set[tuple[SSAValue, Digits]] = field(default_factory=set)


class Schedule:
    """The waiting items of the current block of a function, and what is known about its tiles."""

    def __init__(self, entry: Block, location: LocationAttr, may_alias: bool = False) -> None:
        self.constants = Constants(entry, location)
        self.costs = Costs()
        self.bases = Bases(may_alias)
        self.scope = Scope()
        self.waiting = Waiting(self.bases)
        self.items = self.waiting.items
        self.pending: dict[SSAValue, Item] = {}
        self.deferred: dict[SSAValue, tuple[Root, Shape]] = {}

    # Loads wait until they are needed, or until something may overwrite what they read.

    def defer(self, root: Root, shape: Shape) -> None:
        """Load where the value is first used."""
        self.deferred[root.defines[0]] = root, shape

    def force(self, value: SSAValue) -> None:
        root, shape = self.deferred.pop(value)
        self.add(root, shape)

    def force_before(self, access: Access) -> None:
        """Schedule the loads that must not see what `access` writes."""
        if access.writes or access.orders:
            for value, (root, _) in tuple(self.deferred.items()):
                if value in self.deferred and root.access is not None and may_overlap(root.access, access, self.bases):
                    self.force(value)

    # Choosing a nest for each root.

    def add(self, root: Root, shape: Shape) -> Nest:
        """Put `root` into a nest over tiles of `shape`."""
        needs = Needs(prod(shape))
        if root.access is not None:
            self.force_before(root.access)
            needs.accesses.append(root.access)
        for value, digits in root.needs:
            self.require(value, digits, needs)
        nest = self.nest_for(root, tuple(size for size in shape if size > 1), needs)
        nest.roots.append(root)
        if root.access is not None:
            self.waiting.access(nest, root.access)
        for value, digits in root.needs:
            self.commit(nest, value, digits)
        for value in root.defines:
            nest.values.add(value)
            (self.scope.region or self.scope).homes[value] = nest
        return nest

    def nest_for(self, root: Root, shape: Shape, needs: Needs) -> Nest:
        """The nest for `root`: one of those it reads from if possible, else the first of its shape, else a new one."""
        position = self.waiting.position
        joined = max((position(nest) for nest in needs.joins), default=-1)
        floor = max((position(item) + 1 for item in needs.behind), default=0)
        floor = max(floor, joined)
        for access in needs.accesses:
            floor = max(floor, self.waiting.last_conflict(access, floor) + 1)
        for nest in sorted((n for n in needs.joins if position(n) >= floor), key=position, reverse=True):
            if nest.count == needs.count and agree(nest.shape, shape) and fits(nest, root):
                return nest
        for item in islice(self.items, floor, None):
            if isinstance(item, Nest) and item.shape == shape and fits(item, root):
                return item
        return self.new_nest(shape, root.location, max(floor, joined + 1))

    def new_nest(self, shape: Shape, location: LocationAttr, position: int) -> Nest:
        """An empty nest at `position` of the list."""
        nest = Nest(prod(shape), shape, self.scope, self.constants, location)
        self.waiting.insert(position, nest)
        return nest

    def require(self, value: SSAValue, digits: Digits, needs: Needs) -> None:
        """Collect what the element `digits` of `value` depends on; expensive repeated values get their own nest."""
        if (value, digits) in needs.seen:
            return
        needs.seen.add((value, digits))
        if not is_tensor(value.type):
            if (item := self.pending.get(value)) is not None:
                needs.behind.append(item)
            return
        if (buffer := self.readable(value)) is not None:
            if buffer.writer is not None:
                needs.behind.append(buffer.writer)
            return
        is_whole = digits == whole(needs.count)
        if value in self.deferred:
            if is_whole:
                root = self.deferred[value][0]
                needs.accesses += [root.access] if root.access is not None else []
                for operand, inner in root.needs:
                    self.require(operand, inner, needs)
                return
            self.force(value)
        kept = not is_lazy_value(value) or self.costs.is_kept(value)
        if (found := self.scope.home(value)) is not None:
            home = found[0]
            if is_whole and home.count == needs.count:
                needs.joins.append(home)
                if kept or home.block is None:
                    return
            elif kept:
                needs.behind.append(home)
                return
        if not is_whole and kept:
            buffer = self.materialise(value)
            if buffer.writer is not None:
                needs.behind.append(buffer.writer)
            return
        if type(op := owner(value)) in PICKING:
            source = self.materialise(op.operands[0], exact=True)
            if source.writer is not None:
                needs.behind.append(source.writer)
        for operand, inner in sources(value, digits):
            self.require(operand, inner, needs)

    def commit(self, nest: Nest, value: SSAValue, digits: Digits) -> None:
        """Decide whether `nest` reads the element `digits` of `value` from a buffer or computes it."""
        key = value, digits
        if not is_tensor(value.type) or key in nest.choices:
            return
        is_whole = digits == whole(nest.count)
        if is_whole and value in nest.values:
            return
        buffer = self.readable(value)
        if buffer is None and (found := self.scope.home(value)) is not None and found[0] is not nest:
            if not is_lazy_value(value) or self.costs.is_kept(value):
                buffer = self.keep(value, *found)
        nest.choices[key] = buffer
        if buffer is not None:
            nest.read(buffer, digits)
            return
        if value in self.deferred:
            self.load_here(nest, value)
            return
        op = owner(value)
        if is_whole:
            nest.values.add(value)
            self.scope.homes[value] = nest
        if type(op) is tt.MakeRangeOp:
            nest.cuts |= cuts_of(digits)
        elif type(op) is tt.JoinOp or type(op) is tt.CatOp:
            nest.cuts |= cuts_of(selector(op, digits))
        elif type(op) in PICKING:
            if type(op) is tt.ResizeOp:
                for span in spans(shape_of(value.type)):
                    nest.cuts |= cuts_of(part(digits, *span))
            source = self.materialise(op.operands[0], exact=True)
            nest.choices[op.operands[0], ()] = source
            nest.read(source, None)
        for operand, inner in sources(value, digits):
            self.commit(nest, operand, inner)

    def readable(self, value: SSAValue) -> Buffer | None:
        """The buffer to read `value` from, if it has one and is not computed more cheaply."""
        buffer = self.scope.buffer(value)
        return buffer if buffer is not None and self.costs.is_read(value) else None

    def load_here(self, nest: Nest, value: SSAValue) -> None:
        """Make a waiting load part of `nest`."""
        root, _ = self.deferred.pop(value)
        nest.loads[value] = root
        nest.values.add(value)
        (self.scope.region or self.scope).homes[value] = nest
        if root.access is not None:
            self.waiting.access(nest, root.access)
        for operand, inner in root.needs:
            self.commit(nest, operand, inner)

    # Buffers.

    def new_buffer(self, type: Attribute, location: LocationAttr, exact: bool = False) -> Buffer:
        """Allocate scratch for a tile of `type`."""
        shape = shape_of(type)
        if len(shape) > MAX_BUFFER_RANK and not exact:
            shape = (prod(shape),)
        buffer = Buffer(shape, element_type(type), self.scope, exact=shape == shape_of(type))
        self.constants.allocate(buffer, location)
        return buffer

    def keep(self, value: SSAValue, home: Nest, scope: Scope) -> Buffer:
        """A buffer for `value`, written where it is computed."""
        location = location_of(value)
        buffer = self.new_buffer(value.type, location)
        buffer.scope, buffer.writer = home.scope, home
        scope.stored[value] = buffer
        home.add_late(writing(value, buffer))
        return buffer

    def materialise(self, value: SSAValue, exact: bool = False) -> Buffer:
        """The buffer that holds `value`; with its own shape if `exact`."""
        buffer = self.scope.buffer(value)
        if buffer is not None and (buffer.exact or not exact):
            return buffer
        if buffer is None and (found := self.scope.home(value)) is not None:
            kept = self.keep(value, *found)
            if kept.exact or not exact:
                return kept
        new = self.new_buffer(value.type, location_of(value), exact)
        self.write(value, new)
        self.scope.stored[value] = new
        return new

    def write(self, value: SSAValue, buffer: Buffer) -> Nest:
        """Put `value` into `buffer`."""
        nest = self.add(writing(value, buffer), shape_of(value.type))
        buffer.writer = nest
        return nest

    # Scalar code and whole-tile ops.

    def append(self, op: Operation) -> Code:
        """Insert an op behind all waiting items."""
        return self.insert_behind(None, op)

    def insert_behind(self, item: Item | None, *ops: Operation) -> Code:
        """Insert code directly behind a waiting item, or behind all."""
        code = Code(ops)
        self.waiting.insert(len(self.items) if item is None else self.waiting.position(item) + 1, code)
        self.pending.update((result, code) for op in ops for result in op.results)
        return code

    def delay(self, op: Operation) -> bool:
        """Make a scalar op wait for the items it depends on; False if there are none."""
        waits = [item for operand in op.operands if (item := self.pending.get(operand)) is not None]
        if not waits:
            return False
        op.detach()
        self.insert_behind(max(waits, key=self.waiting.position), op)
        return True

    def flush(self, op: Operation) -> None:
        """Emit the waiting items in front of `op`."""
        while self.deferred:
            self.force(next(iter(self.deferred)))
        for item in self.items:
            if isinstance(item, Nest):
                insert_before(op, item.build())
            else:
                insert_before(op, *item.ops)
        self.waiting.clear()
        self.pending.clear()


def at_index(values: Sequence[SSAValue]) -> list[Source]:
    """Scalars, and the elements of tiles at the index of the nest."""
    return [(value, whole(prod(shape_of(value.type)))) for value in values]


def writing(value: SSAValue, buffer: Buffer) -> Root:
    """Store each element of `value`."""
    emit: Emit = lambda nest, values: nest.store(values[0], buffer)  # noqa: E731
    return Root(at_index((value,)), emit, location_of(value), target=buffer)


def fits(nest: Nest, root: Root) -> bool:
    """Return True if the folded dimension of `root` is a loop of `nest` like those already there."""
    fold = root.fold
    return fold is None or all(
        other.fold is None or other.fold == fold or apart(other.fold, fold) for other in nest.roots
    )


def apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if one of two loops can be around the other."""
    (_, end), (start, _) = sorted((one, other))
    return start % end == 0


def owner(value: SSAValue) -> Operation:
    """The op that computes a lazy value."""
    if not isinstance(value, OpResult) or not is_lazy_value(value):
        raise PassError(f"cannot make loops of {value}", location_of(value))
    return value.op


def is_table(op: Operation) -> bool:
    """Return True for a constant tile whose elements differ."""
    return type(op) is arith.ConstantOp and is_tensor(op.results[0].type) and constant_value(op.results[0]) is None


def table(op: Operation) -> Operation:
    """The buffer of such a constant."""
    type = op.results[0].type
    return ttc.TableOp.make(op.properties["value"], ttc.buffer_type(shape_of(type), element_type(type)), op.location)
