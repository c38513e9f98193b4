"""A loop nest: the work it collects, and the emission of its code.

A nest iterates over an index below `count`. Its work (`Root`) is collected first; the loops are chosen when it is
built: the index is cut wherever a root, or a value it reads, needs a separate row and column, and nowhere else. A copy
of a 64x128 tile whose addresses are `row * stride + column` becomes ``ttc.nest [64, 128]``, an elementwise sum of two
buffers ``ttc.nest [8192]``.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tilework.ir import arith, tt, ttc
from tilework.ir.arith import SelectOp, binary, cmpi, convert
from tilework.ir.create import append_op, create_op
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import attr_value, insert_before, splat_attr
from tilework.ir.types import Shape, axis_of, bit_width, element_type, i32, is_tensor, shape_of
from tilework.layouts.encodings import is_power_of_two
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttc.loops.hazards import Access
from tilework.transforms.ttc.loops.index_maps import (
    Digit,
    Digits,
    Source,
    cuts_of,
    part,
    selector,
    sources,
    spans,
    whole,
)

MAX_BUFFER_RANK = 3  # tiles of more dimensions are kept flat


@light_dataclass(frozen=False, eq=False)
class Buffer:
    """A tile in scratch memory. Its shape may be that of the nest that writes it, until `exact`."""

    shape: Shape
    element: Attribute
    scope: "Scope"
    value: SSAValue | None = None
    writer: "Item | None" = None
    exact: bool = True
    is_reusable: bool = True  # no caller or other block sees it: a later value may overwrite it


@light_dataclass(frozen=False, eq=False)
class Scope:
    """The tiles in buffers and the nests that compute tiles, in one scope. `region` outlives single blocks."""

    parent: "Scope | None" = None
    region: "Scope | None" = None
    stored: dict[SSAValue, Buffer] = field(default_factory=dict)
    homes: dict[SSAValue, "Nest"] = field(default_factory=dict)

    def buffer(self, value: SSAValue) -> Buffer | None:
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.stored.get(value)) is not None:
                return found
            scope = scope.parent
        return None

    def home(self, value: SSAValue) -> "tuple[Nest, Scope] | None":
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.homes.get(value)) is not None:
                return found, scope
            scope = scope.parent
        return None


Emit: TypeAlias = "Callable[[Nest, Sequence[SSAValue]], None]"


@light_dataclass(frozen=False, eq=False)
class Root:
    """Work of a nest for each index: it needs some elements, and may define some at the index of the nest."""

    needs: Sequence[Source]
    emit: Emit
    location: LocationAttr
    defines: Sequence[SSAValue] = ()
    access: Access | None = None
    fold: tuple[int, int] | None = None
    target: Buffer | None = None  # written at the index of the nest


@light_dataclass(frozen=False, eq=False)
class Code:
    """Ops that run once, between nests."""

    ops: Sequence[Operation]
    accesses: Sequence[Access] = ()


@light_dataclass(frozen=False, eq=False)
class Nest:
    """A nest over an index below `count`, of tiles of `shape`."""

    count: int
    shape: Shape
    scope: Scope
    constants: "Constants"
    location: LocationAttr
    roots: list[Root] = field(default_factory=list)
    last: list[Root] = field(default_factory=list)  # writes after everything that may read the same buffer
    values: set[SSAValue] = field(default_factory=set)
    cuts: set[int] = field(default_factory=set)
    buffer_cuts: set[int] = field(default_factory=set)  # optional: the buffers can also be accessed as one row
    accesses: list[Access] = field(default_factory=list)
    reads: dict[Buffer, bool] = field(default_factory=dict)  # all at the index of the nest?
    choices: dict[tuple[SSAValue, Digits], Buffer | None] = field(default_factory=dict)
    loads: dict[SSAValue, Root] = field(default_factory=dict)  # executed where their value is first used
    memo: dict[tuple[object, Digits], SSAValue] = field(default_factory=dict)
    loops: list[tuple[int, int, SSAValue]] = field(default_factory=list)  # step, step times size, index variable
    block: Block | None = None
    end: Operation | None = None
    loc: LocationAttr | None = None

    def read(self, buffer: Buffer, digits: Digits | None) -> None:
        """Record that elements `digits` of `buffer` are read; None means computed indices."""
        self.reads[buffer] = self.reads.get(buffer, True) and digits == whole(self.count)
        if digits is not None:
            for span in spans(buffer.shape):
                self.buffer_cuts |= cuts_of(part(digits, *span))

    def build(self) -> Operation:
        """The `ttc.nest`."""
        marks = self.marks()
        pairs = list(zip(marks[1:], marks, strict=False)) or [(1, 1)]
        self.block = block = Block(arg_types=[i32] * len(pairs))
        self.loops = [(low, high, arg) for (low, high), arg in zip(pairs, block.args, strict=True)]
        for root in (*self.roots, *self.last):
            self.run(root)
        self.end = ttc.EndOp.make(self.location)
        append_op(self.block, self.end)
        return ttc.NestOp.make(tuple(high // low for low, high in pairs), Region(self.block), self.location)

    def marks(self) -> list[int]:
        """The cuts of the index, the highest first: each is a multiple of the next; of cuts that are not, the first
        requested one."""
        folds = [root.fold for root in self.roots if root.fold is not None]
        found = {1, self.count, *(end for fold in folds for end in fold)}
        written = {
            end
            for root in (*self.roots, *self.last)
            if root.target is not None
            for span in spans(root.target.shape)
            for end in span
        }
        for wishes in (self.cuts, self.buffer_cuts | written):
            for cut in sorted(wishes - found, reverse=True):
                is_inside = any(low < cut < high for low, high in folds)
                if not is_inside and all(cut % mark == 0 or mark % cut == 0 for mark in found):
                    found.add(cut)
        return sorted(found, reverse=True)

    def run(self, root: Root) -> None:
        outer, self.loc = self.loc, root.location
        root.emit(self, [self.element(value, digits) for value, digits in root.needs])
        self.loc = outer

    def add_late(self, root: Root) -> None:
        """Add a root, also to a nest that is already built."""
        if self.block is None:
            self.roots.append(root)
        else:
            self.run(root)

    def insert(self, op: Operation) -> Operation:
        assert self.block is not None, "the nest is being built"
        if self.end is not None:
            insert_before(self.end, op)
        elif op.regions:
            self.block.add_op(op)
        else:
            append_op(self.block, op)
        return op

    def define(self, value: SSAValue, scalar: SSAValue) -> None:
        """`scalar` is the element of the tile `value` at the index of the nest."""
        self.memo[value, whole(self.count)] = scalar

    def fold_loop(self, fold: tuple[int, int]) -> int | None:
        """The loop that covers exactly `fold`; None when that is a single element."""
        if fold[0] == fold[1]:
            return None
        return next(n for n, (low, high, _) in enumerate(self.loops) if (low, high) == fold)

    # Elements.

    def element(self, value: SSAValue, digits: Digits) -> SSAValue:
        """The element `digits` of `value`, computed or read in the body."""
        if not is_tensor(value.type):
            return value
        key = value, digits
        if (known := self.memo.get(key)) is None:
            buffer = self.choices.get(key)
            known = self.memo[key] = self.compute(value, digits) if buffer is None else self.load(buffer, digits)
        return known

    def load(self, buffer: Buffer, digits: Digits) -> SSAValue:
        return self.insert(ttc.ReadOp.make(slot(buffer), self.buffer_indices(buffer.shape, digits), self.here)).results[
            0
        ]

    def store(self, value: SSAValue, buffer: Buffer) -> None:
        """Write an element at the index of the nest."""
        indices = self.buffer_indices(buffer.shape, whole(self.count))
        self.insert(ttc.WriteOp.make(value, slot(buffer), indices, self.here))

    def compute(self, value: SSAValue, digits: Digits) -> SSAValue:
        if (load := self.loads.get(value)) is not None:
            self.run(load)
            return self.memo[value, digits]
        assert isinstance(value, OpResult), f"{value} must be stored or computed in this nest"
        op = value.op
        if (rule := ELEMENTS.get(type(op))) is not None:
            return rule(self, op, value.index, digits)
        operands = [self.element(operand, inner) for operand, inner in sources(value, digits)]
        types = [element_type(result.type) for result in op.results]
        new = create_op(type(op), operands, types, op.location, op.properties)
        return self.insert(new).results[value.index]

    # Indices.

    @property
    def here(self) -> LocationAttr:
        return self.loc or self.location

    def buffer_indices(self, shape: Shape, digits: Digits) -> list[SSAValue]:
        """Return an index per dimension of a buffer, or one into the flat buffer where that is cheaper to compute."""
        is_even = is_power_of_two(self.count)  # any cut is between bits
        if len(shape) > 1 and not is_even and self.is_whole_loops(digits):
            if not all(self.is_whole_loops(part(digits, *span)) for span in spans(shape)):
                return [self.index(digits)]
        return self.indices(shape, digits)

    def is_whole_loops(self, digits: Digits) -> bool:
        """Return True if every digit consists of loop indices, or of digits of them."""
        return all(not digit.of and (digit.divisor == 0 or self.pieces(digit) is not None) for digit in digits)

    def indices(self, shape: Shape, digits: Digits) -> list[SSAValue]:
        """Return an index per dimension."""
        return [self.index(part(digits, *span)) for span in spans(shape)]

    def index(self, digits: Digits) -> SSAValue:
        """The index with the given digits."""
        if (known := self.memo.get((None, digits))) is None:
            known = self.memo[None, digits] = self.compute_index(digits)
        return known

    def compute_index(self, digits: Digits) -> SSAValue:
        weight, known = 1, 0
        terms: list[tuple[int, int, tuple[SSAValue, int, int, int]]] = []  # loop, scale, field of an index
        for digit in digits:
            if digit.divisor == 0:
                known += weight * digit.value
            elif digit.of or (found := self.pieces(digit)) is None:
                base, size = digit.of or whole(self.count), prod(d.radix for d in digit.of) if digit.of else self.count
                terms.append((len(self.loops), weight, (self.index(base), digit.divisor, digit.radix, size)))
            else:
                for loop, low, high in found:
                    start, end, argument = self.loops[loop]
                    field = argument, low // start, high // low, end // start
                    terms.append((loop, weight * (low // digit.divisor), field))
            weight *= digit.radix
        total: SSAValue | None = None
        for _, scale, field in sorted(terms, key=lambda term: term[0]):
            term = self.field(*field)
            term = self.binary(arith.MuliOp, term, self.constants.integer(scale)) if scale > 1 else term
            total = term if total is None else self.binary(arith.AddiOp, total, term)
        if total is None:
            return self.constants.integer(known)
        return self.binary(arith.AddiOp, total, self.constants.integer(known)) if known else total

    def pieces(self, digit: Digit) -> list[tuple[int, int, int]] | None:
        """(loop, low, high) of each loop that a digit of the nest's index consists of; None if a loop would have to be
        cut."""
        first, behind = digit.divisor, digit.divisor * digit.radix
        found: list[tuple[int, int, int]] = []
        for loop, (start, end, _) in enumerate(self.loops):
            low, high = max(first, start), min(behind, end)
            if low < high:
                if low % start or low % first or high % low or end % high or behind % high:
                    return None
                found.append((loop, low, high))
        return found

    def field(self, argument: SSAValue, divisor: int, radix: int, size: int) -> SSAValue:
        """``argument // divisor % radix`` of an index below `size`."""
        if divisor > 1:
            argument = self.divided(argument, divisor)
        if divisor * radix < size:
            argument = self.modulo(argument, radix)
        return argument

    def divided(self, value: SSAValue, by: int) -> SSAValue:
        if is_power_of_two(by):
            return self.binary(arith.ShRUIOp, value, self.constants.integer(by.bit_length() - 1))
        return self.binary(arith.DivUIOp, value, self.constants.integer(by))

    def modulo(self, value: SSAValue, by: int) -> SSAValue:
        if is_power_of_two(by):
            return self.binary(arith.AndIOp, value, self.constants.integer(by - 1))
        return self.binary(arith.RemUIOp, value, self.constants.integer(by))

    def binary(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        key = (kind, lhs, rhs), ()
        if (known := self.memo.get(key)) is None:
            known = self.memo[key] = self.insert(binary(kind, lhs, rhs, self.here)).results[0]
        return known


Item = Nest | Code


def slot(buffer: Buffer) -> SSAValue:
    """The IR value of a buffer that exists."""
    assert buffer.value is not None, "a buffer is read after it was written"
    return buffer.value


class Constants:
    """Scalar constants and buffers, kept once per function at its start."""

    def __init__(self, entry: Block, location: LocationAttr) -> None:
        self.entry, self.location = entry, location
        self.first = entry.first_op
        self.known: dict[tuple[int, int], SSAValue] = {}

    def at_start(self, op: Operation) -> SSAValue:
        assert self.first is not None, "a function has a terminator"
        insert_before(self.first, op)
        return op.results[0]

    def attribute(self, value: Attribute, type: Attribute) -> SSAValue:
        key = id(value), id(type)
        if (known := self.known.get(key)) is None:
            op = create_op(arith.ConstantOp, (), (type,), self.location, {"value": value})
            known = self.known[key] = self.at_start(op)
        return known

    def integer(self, value: int) -> SSAValue:
        return self.attribute(splat_attr(value, i32), i32)

    def allocate(self, buffer: Buffer, location: LocationAttr) -> SSAValue:
        """Allocate `buffer`."""
        buffer.value = self.at_start(ttc.AllocOp.make(ttc.buffer_type(buffer.shape, buffer.element), location))
        return buffer.value


# Elements of lazy values that are not elementwise.


def range_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    start = attr_value(op.properties["start"])
    index = nest.index(digits)
    return nest.binary(arith.AddiOp, index, nest.constants.integer(int(start))) if start else index


def constant_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    value = attr_value(op.properties["value"])
    assert value is not None, "a table is stored"
    element = element_type(op.results[0].type)
    return nest.constants.attribute(splat_attr(value, element), element)


def same_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    ((operand, inner),) = sources(op.results[result], digits)
    return nest.element(operand, inner)


def chosen_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    found = [nest.element(operand, inner) for operand, inner in sources(op.results[0], digits)]
    if len(found) == 1:
        return found[0]
    which = nest.index(selector(op, digits))
    zero = nest.insert(cmpi("eq", which, nest.constants.integer(0), op.location)).results[0]
    return nest.insert(SelectOp.make(zero, found[0], found[1], op.location)).results[0]


def folded_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    """A reduction of one or two elements, without a loop."""
    found = [nest.element(operand, inner) for operand, inner in sources(op.results[0], digits)]
    width = len(op.operands)
    results = found if len(found) == width else inline(nest, op.regions[0].block, found)
    for value, element in zip(op.results, results, strict=True):
        nest.memo[value, digits] = element
    return results[result]


def inline(nest: Nest, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Emit the ops of a combine region on `arguments`, and return its results."""
    mapping: dict[SSAValue, SSAValue] = {}
    mapping.update(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if op is block.last_op:
            break
        nest.insert(op.clone(value_mapper=mapping))
    return [mapping.get(value, value) for value in end_of(block).operands]


def gathered_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    """Read at a computed index; an index out of bounds is taken modulo the size."""
    index = nest.element(op.operands[1], digits)
    if (wide := bit_width(index.type)) != 32:
        kind = arith.TruncIOp if wide > 32 else arith.ExtSIOp
        index = nest.insert(convert(kind, index, i32, op.location)).results[0]
    buffer = nest.choices[op.operands[0], ()]
    assert buffer is not None
    shape, axis = shape_of(op.operands[0].type), axis_of(op)
    if index_bound(op.operands[1]) >= shape[axis]:
        index = wrapped(nest, index, shape[axis])
    indices = nest.indices(shape_of(op.results[0].type), digits)
    indices[axis] = index
    return nest.insert(ttc.ReadOp.make(slot(buffer), indices, op.location)).results[0]


def resized_element(nest: Nest, op: Operation, result: int, digits: Digits) -> SSAValue:
    """The element at the same index of a larger buffer."""
    buffer = nest.choices[op.operands[0], ()]
    assert buffer is not None
    indices = nest.indices(shape_of(op.results[0].type), digits)
    return nest.insert(ttc.ReadOp.make(slot(buffer), indices, op.location)).results[0]


def wrapped(nest: Nest, index: SSAValue, size: int) -> SSAValue:
    """A signed index modulo `size`."""
    if is_power_of_two(size):
        return nest.modulo(index, size)
    rest = nest.binary(arith.RemSIOp, index, nest.constants.integer(size))
    below = nest.insert(cmpi("slt", rest, nest.constants.integer(0), nest.here)).results[0]
    moved = nest.binary(arith.AddiOp, rest, nest.constants.integer(size))
    return nest.insert(SelectOp.make(below, moved, rest, nest.here)).results[0]


def index_bound(value: SSAValue) -> int:
    """An upper bound of an index, from its definition: ``range ^ 4`` does not leave the range."""
    op = value.op if isinstance(value, OpResult) else None
    kind = type(op)
    if op is None:
        return UNBOUNDED
    if kind is tt.MakeRangeOp:
        return int(attr_value(op.properties["end"]) or 0) - 1
    if kind is arith.ConstantOp:
        known = attr_value(op.properties["value"])
        return known if isinstance(known, int) and known >= 0 else UNBOUNDED
    if kind in (tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp):
        return index_bound(op.operands[0])
    if kind in (arith.XOrIOp, arith.OrIOp):
        return (1 << max(index_bound(operand) for operand in op.operands).bit_length()) - 1
    if kind is arith.AndIOp:
        return min(index_bound(operand) for operand in op.operands)
    return UNBOUNDED


UNBOUNDED = (1 << 64) - 1
ELEMENTS: dict[type[Operation], Callable[[Nest, Operation, int, Digits], SSAValue]] = {
    arith.ConstantOp: constant_element,
    tt.BroadcastOp: same_element,
    tt.CatOp: chosen_element,
    tt.ExpandDimsOp: same_element,
    tt.GatherOp: gathered_element,
    tt.JoinOp: chosen_element,
    tt.MakeRangeOp: range_element,
    tt.ReduceOp: folded_element,
    tt.ReshapeOp: same_element,
    tt.ResizeOp: resized_element,
    tt.SplatOp: same_element,
    tt.SplitOp: same_element,
    tt.TransOp: same_element,
}
