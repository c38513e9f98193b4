"""Split pointers into small arrays into the array's base pointer and a 32-bit offset, so that buffer instructions can
be used.

    %a {tt.pointer_range = 32}                              %row = arith.muli %pid_m, %stride             a scalar
    %p = tt.addptr (tt.splat %a), %rows           ==>       %o = arith.addi (tt.splat %row), %rest        i32
    %q = tt.addptr (tt.broadcast %p), %columns              tt.load (tt.addptr (tt.splat %a), %o)
    tt.load %q

Loops, branches and selects pass on the offset, and the base where it may be one of several small arrays. Terms that are
uniform are added as scalars. 64-bit sums are truncated to 32 bits, which is exact for every element of the array,
because it is smaller than 2**31 bytes. Pointers whose elements belong to several arrays, or to one that is not known to
be small, are left alone, and so are uses other than accesses.
With `enable-large-tensor-ptr-canon` pointers into other arrays are split too: their offsets have 64 bits, and sums of
32 bits remain whole, because they may overflow.
Stage: TTGIR to TTGIR. Cost: one walk, and the address computations of the accesses.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.axis_transfer import pointee_bytes
from tilework.analysis.value_flows import reached, sources_of, targets_of
from tilework.ir import arith, scf, tt, ttg
from tilework.ir.arith import SelectOp, binary, convert
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.nesting import behind, body_of, end_of, ops_around, owner_of
from tilework.ir.rewrite import constant, constant_value, insert_before, put, recreate
from tilework.ir.scf import LOOPS, carry_beside
from tilework.ir.types import PointerType, bit_width, element_type, i32, i64, is_tensor, with_element
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import Pass

RANGE, SMALL = "tt.pointer_range", 32
ACCESSES = frozenset({tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp, ttg.AsyncCopyGlobalToLocalOp})
SHAPING = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, ttg.ConvertLayoutOp, tt.TransOp, tt.ReshapeOp})
ALONG = SHAPING | {tt.AddPtrOp, tt.SplatOp, tt.BitcastOp}  # ops whose first operand is the pointer that they move
MOVING = ALONG | {SelectOp, scf.ForOp, scf.WhileOp, scf.IfOp, scf.YieldOp, scf.ConditionOp}
EXTENSIONS = frozenset({arith.ExtSIOp, arith.ExtUIOp})


@light_dataclass
class Offset:
    """The distance of a pointer from the start of its array, in elements modulo 2**32: a scalar part and a per-element
    part; None is 0.
    """

    uniform: SSAValue | None = None
    varying: SSAValue | None = None


def arrays_of(base: SSAValue) -> set[SSAValue]:
    """Return the values that a base may be, without its casts."""

    def sources(value: SSAValue) -> list[SSAValue]:
        op = owner_of(value)
        if isinstance(value, OpResult) and type(op) in (tt.BitcastOp, SelectOp):
            return list(value.op.operands[type(op) is SelectOp :])
        return [*sources_of(value)[0], *sources_of(value)[1]]

    return {value for value in reached([base], sources) if not sources(value)}


def small_arguments(function: Operation) -> Iterator[SSAValue]:
    """Yield the parameters that point to arrays of less than 2**31 bytes."""
    attributes = function.properties.get("arg_attrs")
    given = attributes.data if isinstance(attributes, ArrayAttr) else ()
    for argument, known in zip(function.regions[0].blocks[0].args, given, strict=False):
        found = known.data.get(RANGE) if isinstance(known, DictionaryAttr) else None
        if found is not None and found.value.data <= SMALL:  # pyright: ignore
            yield argument


class CanonicalizePointersPass(Pass):
    name = "tritonamdgpu-canonicalize-pointers"
    enable_large_tensor_ptr_canon: bool = False

    def run(self, module: ModuleOp) -> None:
        for function in filter(has_body, functions(module)):
            small = set(small_arguments(function))
            split_pointers(function, small, i32)
            if self.enable_large_tensor_ptr_canon:
                arguments = function.regions[0].blocks[0].args
                split_pointers(function, {one for one in arguments if is_pointer(one.type) and one not in small}, i64)


def split_pointers(function: Operation, arrays: Collection[SSAValue], integer: Attribute) -> None:
    """Split the pointers into `arrays`, with offsets of the type `integer`."""
    if arrays:
        rewrite = Rewrite(arrays, integer)
        for op in ops_in_order(*function.regions):
            if type(op) in ACCESSES and is_tensor(op.operands[0].type):
                rewrite.access(op)
        rewrite.drop_unused()


class Rewrite:
    """The rewrite of one function; `offsets` holds those of the pointers requested so far."""

    def __init__(self, arrays: Collection[SSAValue], integer: Attribute) -> None:
        self.arrays, self.integer = arrays, integer
        self.bits = bit_width(integer)
        self.offsets: dict[SSAValue, Offset] = {}
        self.roots: dict[SSAValue, Collection[SSAValue]] = {}
        self.bases: dict[SSAValue, SSAValue] = {}  # of pointers into one of several arrays
        self.parts: dict[SSAValue, Offset] = {}  # the parts of integers
        self.begun: set[Operation] = set()  # loops that carry offsets, or are about to
        # pointers that loops carry, with the terminator and the index of the next value
        self.carried: list[tuple[BlockArgument, Operation, int]] = []

    def access(self, op: Operation) -> None:
        pointers = op.operands[0]
        has_hints = isinstance(pointers, OpResult) and pointers.op.attributes
        if has_hints or not self.is_split(pointers):
            return
        offset = self.total(self.of(pointers), self.offset_type(pointers), op)
        splat = tt.SplatOp.make(self.base_of(pointers), pointers.type, op.location)
        moved = tt.AddPtrOp.make(splat.results[0], offset, op.location)
        insert_before(op, splat, moved)
        op.operands[0] = moved.results[0]

    def roots_of(self, pointers: SSAValue) -> Collection[SSAValue]:
        """Return the arrays that are bases of `pointers`; none if other pointers are, or if elements may have others
        than their neighbours."""
        if pointers not in self.roots:
            sources, found = self.origins(pointers)
            mixes = len(found) > 1 and any(map(self.mixes, sources))
            self.roots[pointers] = () if mixes or not all(map(self.is_start, found)) else found
        return self.roots[pointers]

    def origins(self, *pointers: SSAValue) -> tuple[Collection[SSAValue], set[SSAValue]]:
        """Return all pointers from which some are derived, and those of them that are derived from none."""
        sources = tuple(reached(pointers, self.sources))
        return sources, {value for value in sources if not self.sources(value)}

    def mixes(self, value: SSAValue) -> bool:
        """Return True if elements of `value` are chosen one by one from several arrays."""
        op = owner_of(value)
        if type(op) is not SelectOp or not is_tensor(op.operands[0].type):
            return False
        return len(self.origins(*op.operands[1:])[1]) > 1

    def is_split(self, value: SSAValue) -> bool:
        """Return True if a value is a pointer that has a base and an offset."""
        return is_pointer(value.type) and bool(self.roots_of(value))

    def base_of(self, value: SSAValue) -> SSAValue:
        """Return the base of a pointer, with its type of elements."""
        type_ = element_type(value.type)
        if len(roots := self.roots_of(value)) == 1:
            return in_type(next(iter(roots)), type_)
        if value not in self.bases:
            op = owner_of(value)
            if type(op) is SelectOp:
                yes, no = map(self.base_of, op.operands[1:])
                self.bases[value] = put(op, SelectOp.make(op.operands[0], yes, no, op.location))
            elif isinstance(value, OpResult) and type(op) in ALONG:
                self.bases[value] = in_type(self.base_of(value.op.operands[0]), type_)
            else:
                self.of(value)  # a loop or branch passes on both parts
        return self.bases[value]

    def is_start(self, value: SSAValue) -> bool:
        """Return True if a pointer is one of the arrays, possibly cast to another element type."""
        if isinstance(value, OpResult) and type(value.op) is tt.BitcastOp:
            value = value.op.operands[0]
        return value in self.arrays

    def sources(self, value: SSAValue) -> list[SSAValue]:
        """Return the pointers from which a pointer is derived by ops that have an offset rule; none for others."""
        op = owner_of(value)
        if isinstance(value, OpResult) and type(op) in ALONG and size_of(value) == size_of(value.op.operands[0]):
            return [value.op.operands[0]]
        if type(op) is SelectOp:
            return list(op.operands[1:])
        return [*sources_of(value)[0], *sources_of(value)[1]]

    def of(self, value: SSAValue) -> Offset:
        """Return the offset of a pointer that has a base."""
        if value not in self.offsets:
            op = owner_of(value)
            rule = RULES.get(type(op)) if op is not None else None
            self.offsets[value] = Offset() if op is None or rule is None else rule(self, op, value)
        return self.offsets[value]

    def drop_unused(self) -> None:
        """Make loops carry constants instead of pointers that only feed themselves."""
        for argument, end, index in self.carried:
            loop = argument.block.parent_op()
            assert loop is not None
            if not is_used(argument) and not is_used(end.operands[index]):
                end.operands[index] = argument if type(loop) is scf.ForOp else loop.operands[index]

    # Integers

    def offset_type(self, like: SSAValue) -> Attribute:
        """Return the type of the offset of a pointer, or of a tile of pointers."""
        return with_element(like.type, self.integer)

    def total(self, offset: Offset, type: Attribute, before: Operation) -> SSAValue:
        """Return the sum of the two parts as one value of `type`, an integer or a tensor of it."""
        uniform, varying = offset.uniform, offset.varying
        if uniform is None and varying is None:
            return put(before, constant(0, type, before.location))
        if uniform is not None and is_tensor(type):
            uniform = put(before, tt.SplatOp.make(uniform, type, before.location))
        found = self.sum(uniform, varying, before)
        assert found is not None
        return found

    def sum(self, a: SSAValue | None, b: SSAValue | None, before: Operation) -> SSAValue | None:
        if a is None or b is None:
            return b if a is None else a
        return put(before, binary(arith.AddiOp, a, b, before.location))

    def plus(self, a: Offset, b: Offset, before: Operation) -> Offset:
        return Offset(self.sum(a.uniform, b.uniform, before), self.sum(a.varying, b.varying, before))

    def apart(self, value: SSAValue) -> Offset:
        """Split an integer modulo 2**32 (or 2**64) in a uniform part and the rest; not values with hints."""
        if value not in self.parts:
            made, is_whole = self.take_apart(value), bit_width(value.type) == self.bits
            if made is None or (made.uniform is None and made.varying is not None and is_whole):
                made = whole(self.cut(value))
            self.parts[value] = made
        return self.parts[value]

    def take_apart(self, value: SSAValue) -> Offset | None:
        if not is_tensor(value.type) or not isinstance(value, OpResult):
            return None
        op, before = value.op, behind(value)
        kind = type(op)
        if (known := constant_value(value)) is not None:
            return Offset(put(before, constant(known, self.integer, op.location)) if known else None)
        if kind is tt.SplatOp:
            return Offset(self.cut(op.operands[0]))
        if op.attributes or bit_width(value.type) < self.bits:  # a sum may overflow
            return None
        if kind is arith.AddiOp or kind is arith.MuliOp:
            left, right = map(self.apart, op.operands)
            return (self.plus if kind is arith.AddiOp else self.times)(left, right, before)
        if kind in SHAPING:
            return self.shaped(self.apart(op.operands[0]), op, before)
        if kind in EXTENSIONS and bit_width(op.operands[0].type) == self.bits:
            return self.apart(op.operands[0])
        return None

    def times(self, a: Offset, b: Offset, before: Operation) -> Offset | None:
        """Multiply two offsets, one of which has only a scalar part; None if neither has."""
        if a.varying is not None:
            a, b = b, a
        if a.varying is not None:
            return None
        if a.uniform is None:
            return Offset()

        def scaled(one: SSAValue | None, type: Attribute | None = None) -> SSAValue | None:
            if one is None or a.uniform is None:
                return None
            factor = a.uniform if type is None else put(before, tt.SplatOp.make(a.uniform, type, before.location))
            return put(before, binary(arith.MuliOp, one, factor, before.location))

        return Offset(scaled(b.uniform), scaled(b.varying, b.varying.type if b.varying is not None else None))

    def shaped(self, offset: Offset, op: Operation, before: Operation) -> Offset:
        """Apply the shape change of `op` to an offset."""
        if offset.varying is None:
            return offset
        type = self.offset_type(op.results[0])
        moved = recreate(op, operands=(offset.varying,), result_types=(type,), attributes={})
        return Offset(offset.uniform, put(before, moved))

    def cut(self, value: SSAValue) -> SSAValue:
        """Return the lowest bits of an integer, or all of them and its sign."""
        bits, type_ = bit_width(value.type), self.offset_type(value)
        if bits == self.bits:
            return value
        if isinstance(value, OpResult) and type(value.op) in EXTENSIONS and value.op.operands[0].type == type_:
            return value.op.operands[0]
        before = behind(value)
        return put(
            before, convert(arith.TruncIOp if bits > self.bits else arith.ExtSIOp, value, type_, before.location)
        )


def in_type(base: SSAValue, type: Attribute) -> SSAValue:
    """Return a pointer cast to another type."""
    return base if base.type == type else put(behind(base), tt.BitcastOp.make(base, type, behind(base).location))


def is_used(pointer: SSAValue) -> bool:
    """Return True if a pointer reaches an op other than address computations and control flow."""

    def targets(value: SSAValue) -> Iterator[SSAValue]:
        for use in value.uses:
            found = targets_of(use.operation, use.index)
            yield from use.operation.results if found is None else found

    return any(type(use.operation) not in MOVING for value in reached([pointer], targets) for use in value.uses)


def is_pointer(type: Attribute) -> bool:
    return isinstance(element_type(type), PointerType)


def size_of(pointer: SSAValue) -> int:
    """Return the bytes of the pointee; 1 for a value that is not a pointer."""
    return pointee_bytes(pointer.type)


# Rules for the offsets of ops


def of_bitcast(rewrite: Rewrite, op: Operation, value: SSAValue) -> Offset:
    """Keep the offset in elements of the same size; a cast to another size is one of the array itself, at offset 0."""
    source = op.operands[0]
    return rewrite.of(source) if size_of(source) == size_of(value) else Offset()


def of_select(rewrite: Rewrite, op: Operation, value: SSAValue) -> Offset:
    condition, *ways = op.operands
    type = rewrite.offset_type(value)
    yes, no = (rewrite.total(rewrite.of(way), type, op) for way in ways)
    return whole(put(op, SelectOp.make(condition, yes, no, op.location)))


def whole(offset: SSAValue) -> Offset:
    return Offset(None, offset) if is_tensor(offset.type) else Offset(offset)


def of_control(rewrite: Rewrite, op: Operation, value: SSAValue) -> Offset:
    """A loop also carries the offsets of all its pointers that have one; a branch yields that of one result.

    Outer loops come first: their terminators request the results of inner loops, which must be computed only once.
    """
    for outer in reversed([one for one in ops_around(op) if type(one) in LOOPS and one not in rewrite.begun]):
        for pointer in body_of(outer).args:
            if rewrite.is_split(pointer):
                rewrite.of(pointer)
    if value in rewrite.offsets:
        return rewrite.offsets[value]
    rewrite.begun.add(op)
    is_loop, ends = type(op) in LOOPS, (op, *(end_of(region.blocks[0]) for region in op.regions))

    def has_bases(pointer: SSAValue) -> bool:
        return len(rewrite.roots_of(pointer)) > 1

    def types(pointer: SSAValue) -> list[Attribute]:
        bases = [element_type(pointer.type)] if has_bases(pointer) else []
        return [rewrite.offset_type(pointer), *bases]

    def given(pointer: SSAValue, like: SSAValue, before: Operation) -> list[SSAValue]:
        offset = rewrite.total(rewrite.of(pointer), rewrite.offset_type(like), before)
        return [offset, *([rewrite.base_of(pointer)] if has_bases(like) else [])]

    def learn(pointer: SSAValue, parts: Sequence[SSAValue]) -> None:
        rewrite.offsets[pointer] = whole(parts[0])
        if len(parts) > 1:
            rewrite.bases[pointer] = parts[1]

    carry_beside(op, lambda one: rewrite.is_split(one) if is_loop else one is value, types, given, learn)
    if is_loop:
        arguments, first = body_of(op).args[type(op) is scf.ForOp :], ends[-1]
        pointers = [(index, one) for index, one in enumerate(arguments) if one in rewrite.offsets]
        rewrite.carried += [(one, first, index) for index, one in pointers]
    return rewrite.offsets[value]


RULES: dict[type[Operation], Callable[[Rewrite, Operation, SSAValue], Offset]] = {
    tt.AddPtrOp: lambda rewrite, op, value: rewrite.plus(rewrite.of(op.operands[0]), rewrite.apart(op.operands[1]), op),
    tt.SplatOp: lambda rewrite, op, value: rewrite.of(op.operands[0]),
    tt.BitcastOp: of_bitcast,
    SelectOp: of_select,
    **dict.fromkeys((*LOOPS, scf.IfOp), of_control),
    **dict.fromkeys(SHAPING, lambda rewrite, op, value: rewrite.shaped(rewrite.of(op.operands[0]), op, op)),
}
