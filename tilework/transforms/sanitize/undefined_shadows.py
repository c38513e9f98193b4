"""Shadows: for each element of a value, the id of the source that made it undefined, or 0.

A tile whose elements are all undefined or all defined has a scalar for its shadow. One that is undefined where a mask
is false has none until it is needed: most loads are stored under their own mask. See `check_undefined.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import prod

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tilework.analysis.provenance import Provenance
from tilework.errors import SANITIZER, SANITIZER_WARNING
from tilework.ir import arith, tt
from tilework.ir.arith import signed
from tilework.ir.create import create_op
from tilework.ir.locations import location_text
from tilework.ir.scf import make_if, make_yield
from tilework.ir.types import bit_width, element_type, i8, i16, is_tensor, shape_of, tensor_type, with_element
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.sanitize.undefined_values import CONDITIONS, SAFE, Source

MOST_IN_BYTE = 255
Sources = tuple[Source, ...]


@light_dataclass(eq=False)
class Shadow:
    """The undefined elements of a value: where `value` is not 0 or, without one, where any of `masks` is false."""

    sources: Sources  # that it may come from
    masks: tuple[tuple[SSAValue, Source], ...] = ()
    value: SSAValue | None = None  # a scalar beside a tile counts for all elements


class Shadows(ABC):
    """The shadows of the values of one function."""

    def __init__(
        self,
        sources: dict[Operation, list[Source]],
        partial: set[SSAValue],
        varied: set[SSAValue],
        provenance: Provenance,
    ) -> None:
        self.sources, self.partial, self.varied, self.provenance = sources, partial, varied, provenance
        everything = [source for made in sources.values() for source in made]
        self.element = i8 if len(everything) <= MOST_IN_BYTE else i16
        self.last_overflow = max((source.id for source in everything if source.is_overflow), default=0)
        self.known: dict[SSAValue, Shadow] = {}

    def of(self, value: SSAValue) -> Shadow | None:
        return self.known.get(value)

    @abstractmethod
    def visit_block(self, block: Block) -> None:
        """Compute the shadows of the values of a block."""

    def type_of(self, value: SSAValue) -> Attribute:
        """The type of the shadow of a value."""
        whole = not is_tensor(value.type) or value not in self.varied
        return self.element if whole else with_element(value.type, self.element)

    def id(self, code: Emitter, id: int, like: Attribute) -> SSAValue:
        """The id of a source (0: defined) as a constant in the shape of `like`."""
        return code.constant(signed(id, bit_width(self.element)), with_element(like, self.element))

    def tile(self, code: Emitter, value: SSAValue) -> SSAValue:
        """The shadow of `value` in its own shape."""
        shadow = self.of(value)
        if shadow is None:
            return self.id(code, 0, value.type)
        if shadow.value is None:
            zero = self.id(code, 0, value.type)
            parts = [code.select(mask, zero, self.id(code, one.id, value.type)) for mask, one in shadow.masks]
            return highest(code, parts)
        if is_tensor(value.type) and not is_tensor(shadow.value.type):
            return code.splat(shadow.value, shape_of(value.type))
        return shadow.value

    def carried(self, code: Emitter, value: SSAValue, like: SSAValue) -> SSAValue:
        """The shadow of `value` with the type that the shadow of `like` has."""
        shadow = self.of(value)
        if is_tensor(self.type_of(like)) or not is_tensor(value.type):
            return self.tile(code, value)
        if shadow is None:
            return self.id(code, 0, self.element)
        assert shadow.value is not None, "a shadow of masks is varied"
        return shadow.value

    def joined(self, code: Emitter, values: Sequence[SSAValue], type: Attribute) -> Shadow | None:
        """Undefined where one of `values` is; a scalar among tiles counts for all elements."""
        found = [(value, shadow) for value in values if (shadow := self.of(value)) is not None]
        if not found:
            return None
        sources = joined_sources(shadow for _, shadow in found)
        if all(shadow.value is None and shape_of(value.type) == shape_of(type) for value, shadow in found):
            return Shadow(sources, tuple(dict.fromkeys(mask for _, shadow in found for mask in shadow.masks)))
        whole = [shadow.value for _, shadow in found if shadow.value is not None and not is_tensor(shadow.value.type)]
        if len(whole) == len(found):
            return Shadow(sources, value=highest(code, whole))
        parts = []
        for value, _ in found:
            part = self.tile(code, value)
            parts.append(part if is_tensor(part.type) or not is_tensor(type) else code.splat(part, shape_of(type)))
        return Shadow(sources, value=highest(code, parts))

    def cleaned(self, code: Emitter, result: SSAValue, shadow: Shadow) -> Shadow | None:
        """Return `shadow` without the ids of overflows."""
        sources = tuple(source for source in shadow.sources if not source.is_overflow)
        if len(sources) == len(shadow.sources) or shadow.value is None:
            return shadow
        if not sources:
            return None
        type = shadow.value.type
        over = code.compare("ugt", shadow.value, self.id(code, self.last_overflow, type))
        return Shadow(sources, value=code.select(over, shadow.value, self.id(code, 0, type)))

    def with_own(self, code: Emitter, op: Operation, operands: Shadow | None) -> Shadow:
        """Add the undefined elements that `op` itself creates to those of its operands, where the operands are defined.

        `op` gets an operand that is safe on every target: LLVM assumes that a divisor is not 0.
        """
        result, mine = op.results[0], self.sources[op]
        value = zero = self.id(code, 0, result.type)
        safe = SAFE.get(type(op))
        before = code if safe is None else Emitter(op.location)
        conditions = CONDITIONS[type(op)](before, op)
        if safe is not None:
            operand = op.operands[1]
            for condition in conditions:
                operand = before.select(condition, before.constant(safe, operand.type), operand)
            before.insert_before(op)
            op.operands[1] = operand
        for condition, source in zip(conditions, mine, strict=True):
            value = code.select(condition, self.id(code, source.id, result.type), value)
        if operands is None:
            return Shadow(tuple(mine), value=value)
        self.known[result] = operands
        given = self.tile(code, result)
        value = code.select(code.compare("eq", given, zero), value, given)
        return Shadow((*operands.sources, *mine), value=value)

    # Uses that must not see anything undefined.

    def refuse(
        self, op: Operation, value: SSAValue, active: SSAValue | None, use: str, *, overflow: bool = False
    ) -> None:
        """Stop in front of `op` where an element of `value` is undefined, in lanes that are `active`."""
        shadow = self.of(value)
        if shadow is None or (shadow.value is None and active is not None and implies_all(active, shadow.masks)):
            return
        sources = [source for source in shadow.sources if overflow or not source.is_overflow]
        if not sources:
            return
        code = Emitter(op.location)
        whole = shadow.value if shadow.value is not None and not is_tensor(shadow.value.type) else None
        if whole is not None and active is None:
            self.assert_not(code, whole, sources, use, op)
        elif whole is not None:
            inner = Emitter(op.location)
            self.assert_not(inner, self.among(inner, whole, active), sources, use, op)
            inner.ops.append(make_yield((), op.location))
            some = code.compare("ne", whole, self.id(code, 0, whole.type))
            code.ops.append(make_if(some, (), Region(Block(inner.ops)), None, op.location))
        else:
            self.assert_not(code, self.among(code, self.tile(code, value), active), sources, use, op)
        code.insert_before(op)

    def among(self, code: Emitter, bad: SSAValue, active: SSAValue | None) -> SSAValue:
        """The highest source id among active lanes."""
        if active is not None:
            shape = shape_of(bad.type) or shape_of(active.type)
            active, bad = (
                code.splat(one, shape) if shape and not is_tensor(one.type) else one for one in (active, bad)
            )
            bad = code.select(active, bad, self.id(code, 0, bad.type))
        return folded_tile(code, bad)

    def assert_not(self, code: Emitter, bad: SSAValue, sources: Sequence[Source], use: str, op: Operation) -> None:
        """Emit one assert per source, at its location."""
        location = f"\n{text}" if (text := location_text(op.location)) is not None else ""
        for source in sources:
            holds = code.compare("ne", bad, self.id(code, source.id, bad.type))
            text = f"{source.text.format(what=self.memory_text(source.op))} {use}{location}"
            prefix = SANITIZER_WARNING if source.is_warning else SANITIZER
            code.ops.append(tt.AssertOp.make(holds, prefix + text, source.op.location))

    def memory_text(self, op: Operation) -> str:
        """Name the memory that a load reads, for a message; the launcher inserts the names of arguments."""
        found = self.provenance.get(op.operands[0], frozenset())
        return f"argument #{min(found)}" if len(found) == 1 and min(found) >= 0 else "memory"


def joined_sources(shadows: Iterable[Shadow]) -> Sources:
    return tuple(dict.fromkeys(source for shadow in shadows for source in shadow.sources))


def sources_below(shadows: Shadows, op: Operation) -> Sources:
    """The sources that the operands of an op may come from."""
    return joined_sources(shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None)


def highest(code: Emitter, parts: Sequence[SSAValue]) -> SSAValue:
    total = parts[0]
    for part in parts[1:]:
        total = code.binary(arith.MaxUIOp, total, part)
    return total


def highest_region(end: type[Operation], element: Attribute, loc: LocationAttr) -> Region:
    """The region of a fold that returns the highest source id."""
    block = Block(arg_types=(element, element))
    both = create_op(arith.MaxUIOp, tuple(block.args), (element,), loc)
    block.add_ops((both, create_op(end, tuple(both.results), (), loc)))
    return Region(block)


def folded(code: Emitter, shadow: SSAValue, axis: int) -> SSAValue:
    """The highest source id along `axis`."""
    region = highest_region(tt.ReduceReturnOp, element_type(shadow.type), code.loc)
    return code.append(tt.ReduceOp.make([shadow], axis, region, code.loc))


def folded_bits(code: Emitter, bits: SSAValue) -> SSAValue:
    """Return 1 if any element of a tile of i1 is set, else 0, as an i8."""
    return folded_tile(code, code.convert(arith.ExtUIOp, bits, with_element(bits.type, i8)))


def folded_tile(code: Emitter, bad: SSAValue) -> SSAValue:
    """The highest source id of a tile, as a scalar."""
    if not is_tensor(bad.type):
        return bad
    flat = tensor_type((prod(shape_of(bad.type)),), element_type(bad.type))
    return folded(code, code.append(tt.ReshapeOp.make(bad, flat, code.loc, allow_reorder=True)), 0)


def implies_all(condition: SSAValue, masks: Sequence[tuple[SSAValue, Source]]) -> bool:
    """Return True if `condition` implies all of `masks`, as far as conjunctions show it."""
    known, stack = set[SSAValue](), [condition]
    while stack:
        value = stack.pop()
        known.add(value)
        if isinstance(value, OpResult) and type(value.op) is arith.AndIOp:
            stack += value.op.operands
    return all(mask in known or implies_parts(mask, known) for mask, _ in masks)


def implies_parts(mask: SSAValue, known: set[SSAValue]) -> bool:
    """Return True for a conjunction whose parts are all known."""
    if isinstance(mask, OpResult) and type(mask.op) is arith.AndIOp:
        return all(part in known or implies_parts(part, known) for part in mask.op.operands)
    return False
