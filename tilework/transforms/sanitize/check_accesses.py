"""Check every access to memory before it happens, and the integers its address is made of.

    %r = arith.addi %start, %i : i32                 %r = arith.addi %start, %i : i32
    %p = tt.addptr %x, %r                            ttc.assert <no overflow or masked off>, "int32 overflow ..." : i1
    tt.store %p, %v, %m : !tt.ptr<f32>       ==>     %q = ttc.check %p, %m {arguments = array<i32: 0>, verb = "writes"}
                                                     tt.store %q, %v, %m : !tt.ptr<f32>

Where a pointer may come from is a fact of the whole module (`analysis/provenance.py`). Overflow is looked for in the sums,
differences and products between an address and what it is computed from: loaded values, values of buffers,
and results of other operations (a remainder brings a number back into its range on purpose). An `arith.select` is followed
on the side that it takes. Lanes that are masked off are not checked, except for sums that loops and branches pass on: those
are checked where they are made.
Stage: TTCIR to TTCIR. Cost: one walk, and the addresses of each access.
"""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.provenance import UNKNOWN, Provenance, pointer_provenance
from tilework.analysis.value_flows import sources_of
from tilework.ir import tt, ttc
from tilework.ir.arith_ext import SelectOp, convert
from tilework.ir.create import create_op
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import put
from tilework.ir.types import bit_width, i64, is_integer
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.masks import mask_of
from tilework.transforms.passes import module_pass

VERBS: dict[type[Operation], str] = {  # what reports say of the accesses that are checked
    tt.LoadOp: "reads",
    tt.StoreOp: "writes",
    **dict.fromkeys((tt.AtomicRMWOp, tt.AtomicCASOp), "updates"),
}
OVERFLOW = "sanitizer: int{width} overflow detected for operation {name}, in the address of {what}"
NAMES: dict[type[Operation], str] = {arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul"}
EXTENSIONS = (arith.ExtSIOp, arith.ExtUIOp)
MOST_SIDES = 4  # selects inside selects: what is deeper is not followed
REACH = 1 << 59  # elements; no array is as long, and the bytes up to there can be counted in 64 bits


@module_pass("ttc-sanitize")
def check_accesses(module: ModuleOp) -> None:
    origins, done = pointer_provenance(module), set[object]()
    for access in [inner for inner in module.walk() if type(inner) in VERBS]:
        guard(access, origins, done)
    module.attributes[ttc.SANITIZED] = UnitAttr()


def guard(access: Operation, origins: Provenance, done: set[object]) -> None:
    """Put the checks of one access in front of it, but for those of sums that an access before it has `done`."""
    pointer, mask = access.operands[0], mask_of(access)
    found = origins.get(pointer, frozenset({UNKNOWN}))
    arguments = () if UNKNOWN in found else sorted(found)
    what = f"argument #{arguments[0]}" if len(arguments) == 1 else "memory"
    cone = Cone()
    cone.visit(pointer, True, ())
    for item in cone.found:
        if (key := (access.parent, mask, item)) not in done:
            done.add(key)
            refuse_overflow(access, mask, what, *item)
    for op, signed in cone.carried:
        if (op, signed) not in done and op.next_op is not None:
            done.add((op, signed))
            refuse_overflow(op.next_op, None, what, op, signed, ())
    check = ttc.CheckOp.make(pointer, mask, arguments, VERBS[type(access)], access.location)
    access.operands[0] = put(access, check)


Side = tuple[SSAValue, bool]  # a condition, and whether it must hold or not


class Cone:
    """The arithmetic below an address, innermost first.

    `found` are (op, is signed, the sides of selects on which it counts), `carried` those in a loop or branch that passes
    their result on: where the access happens they cannot be seen.
    """

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.found: list[tuple[Operation, bool, tuple[Side, ...]]] = []
        self.carried: list[tuple[Operation, bool]] = []

    def visit(self, value: SSAValue, signed: bool, sides: tuple[Side, ...], inside: Operation | None = None) -> None:
        """What makes `value`; `inside` is the loop or branch that passes it on, for what is computed there."""
        if inside is not None and not inside.is_ancestor(value.owner):
            inside = None  # computed before, once
        key = (value, signed, sides, inside)
        if key in self.seen or is_bounded(value):
            return
        self.seen.add(key)
        entering, inner = sources_of(value)
        for source in entering:
            self.visit(source, signed, sides, inside)
        for source in () if sides else inner:
            self.visit(source, signed, sides, owner_of(value))
        if not inner and isinstance(value, OpResult):
            self.visit_op(value.op, signed, sides, inside)

    def visit_op(self, op: Operation, signed: bool, sides: tuple[Side, ...], inside: Operation | None) -> None:
        kind = type(op)
        if kind is SelectOp:
            condition, yes, no = op.operands
            if len(sides) < MOST_SIDES and inside is None:
                self.visit(yes, signed, (*sides, (condition, True)))
                self.visit(no, signed, (*sides, (condition, False)))
        elif kind is tt.AddPtrOp:
            self.visit(op.operands[0], True, sides, inside)
            self.visit(op.operands[1], True, sides, inside)
            if is_wide(op.operands[1]):
                self.add(op, True, sides, inside)
        elif kind is tt.BitcastOp or kind is arith.ExtSIOp or kind is ttc.CheckOp:
            self.visit(op.operands[0], True, sides, inside)
        elif kind is arith.ExtUIOp:
            self.visit(op.operands[0], False, sides, inside)
        elif kind in NAMES and is_integer(op.results[0].type) and bit_width(op.results[0].type) >= 8:
            for operand in op.operands:
                self.visit(operand, signed, sides, inside)
            self.add(op, signed, sides, inside)

    def add(self, op: Operation, signed: bool, sides: tuple[Side, ...], inside: Operation | None) -> None:
        if inside is not None:
            self.carried.append((op, signed))
        else:
            self.found.append((op, signed, sides))


def is_bounded(value: SSAValue) -> bool:
    """A number made of constants and the indices of a nest: less than the size of the tile."""
    if not isinstance(value, OpResult):
        parent = value.block.parent_op()  # pyright: ignore[reportAttributeAccessIssue]
        return type(parent) is ttc.NestOp
    kind = type(value.op)
    return kind is arith.ConstantOp or (kind in NAMES and all(is_bounded(operand) for operand in value.op.operands))


def is_wide(offset: SSAValue) -> bool:
    """An offset of 64 bits that uses them."""
    extended = isinstance(offset, OpResult) and type(offset.op) in EXTENSIONS
    return bit_width(offset.type) == 64 and not extended and not is_bounded(offset)


def refuse_overflow(
    before: Operation, mask: SSAValue | None, what: str, op: Operation, signed: bool, sides: tuple[Side, ...]
) -> None:
    """Stop in front of an access where the result of `op` is not the exact one, in lanes that count."""
    code = Emitter(op.location)
    left, right = op.operands
    holds = FITS[type(op), signed](code, left, right, op.results[0])
    for condition, wanted in [*sides, *([(mask, True)] if mask is not None else [])]:
        holds = code.binary(arith.OrIOp, holds, code.negated(condition) if wanted else condition)
    text = OVERFLOW.format(width=bit_width(op.operands[1].type), name=NAMES.get(type(op), "addptr"), what=what)
    code.ops.append(ttc.AssertOp.make(holds, text, op.location))
    code.insert_before(before)


def signed_sum(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """The sign of a sum is that of one of its terms: ``(a ^ r) & (b ^ r)`` is not negative."""
    both = code.binary(arith.AndIOp, code.binary(arith.XOrIOp, a, result), code.binary(arith.XOrIOp, b, result))
    return code.compare("sge", both, code.constant(0, both.type))


def signed_difference(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    both = code.binary(arith.AndIOp, code.binary(arith.XOrIOp, a, b), code.binary(arith.XOrIOp, a, result))
    return code.compare("sge", both, code.constant(0, both.type))


def signed_product(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Of 64 bits: the upper half repeats the sign of the lower."""
    if bit_width(result.type) <= 32:
        return in_64_bits(code, arith.ExtSIOp, a, b, result)
    shift = code.constant(63, a.type)
    upper = code.append(create_op(tt.MulhiUIOp, (a, b), (result.type,), code.loc))
    for one, other in ((a, b), (b, a)):
        negative = code.binary(arith.ShRSIOp, one, shift)
        upper = code.binary(arith.SubiOp, upper, code.binary(arith.AndIOp, negative, other))
    return code.compare("eq", upper, code.binary(arith.ShRSIOp, result, shift))


def in_64_bits(code: Emitter, extend: type[Operation], a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Whether a product of up to 32 bits is the same in 64."""
    wide = [code.append(convert(extend, value, i64, code.loc)) for value in (a, b, result)]
    return code.compare("eq", code.binary(arith.MuliOp, wide[0], wide[1]), wide[2])


def unsigned_product(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    if bit_width(result.type) <= 32:
        return in_64_bits(code, arith.ExtUIOp, a, b, result)
    upper = code.append(create_op(tt.MulhiUIOp, (a, b), (result.type,), code.loc))
    return code.compare("eq", upper, code.constant(0, upper.type))


def reaching(code: Emitter, pointer: SSAValue, offset: SSAValue, result: SSAValue) -> SSAValue:
    """An offset whose bytes do not wrap around."""
    return code.compare(
        "ult",
        code.binary(arith.AddiOp, offset, code.constant(REACH, offset.type)),
        code.constant(2 * REACH, offset.type),
    )


Fits = Callable[[Emitter, SSAValue, SSAValue, SSAValue], SSAValue]
FITS: dict[tuple[type[Operation], bool], Fits] = {
    (arith.AddiOp, True): signed_sum,
    (arith.AddiOp, False): lambda code, a, b, result: code.compare("uge", result, a),
    (arith.SubiOp, True): signed_difference,
    (arith.SubiOp, False): lambda code, a, b, result: code.compare("uge", a, b),
    (arith.MuliOp, True): signed_product,
    (arith.MuliOp, False): unsigned_product,
    (tt.AddPtrOp, True): reaching,
}
