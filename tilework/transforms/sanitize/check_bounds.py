"""Check every access to memory, on GPUs and on the CPU, before it happens.

Two passes insert the checks, because the two devices need different ones. A GPU must survive a bad access, since a trap
would destroy the context of the process: `triton-check-bounds` masks the bad lanes off, records them in a table, and
lets the program go on. The CPU can stop a program: `ttc-sanitize` puts a `ttc.check` in front of each access of a loop
nest, which tests a whole vector by its first and last address, and also checks the integers that the address is
computed from. Both use `VERBS` and the provenance of pointers, a fact about the whole module
(`analysis/provenance.py`).

On a GPU:

    tt.store %p, %v, %m          ==>     %a = tt.ptr_to_int %p
                                         %in = (%a - start < extent) and (%a is aligned)
                                         record the lanes of %m where %in is false
                                         tt.store %p, %v, (%m and %in)

where start and extent come from the table.

The kernel, and every function that it calls, gets one more parameter: the address of the *table*, 64-bit words in
device memory.

    0              the count of failed checks
    1              a dummy: atomics without a mask are redirected to it where they must not touch their address
    2 3 4          the first failure: the lowest address, inverted and bit 63 set; its code; the program, which is
                   x + (y << 32) + (z << 48)
    CODES ..       one word per code: 0, or 1 + a program in which the assert of this code, a warning, did not hold
    then           the count of entries, and for each entry its first byte and the byte behind its last: the parameters,
                   then the registered arrays

A program that fails increments word 0, and writes its record if it is the first: records of several programs do not
mix. The asserts that `check_undefined.py` inserts become such records too; asserts of the user remain. An attribute of
the module describes the codes to the launcher, in JSON: `parameters`, `faults` and `checks` as in
`targets/cpu/run/interface.py`, and the offsets of the parts of the table.

On the CPU:

    %r = arith.addi %start, %i : i32                 %r = arith.addi %start, %i : i32
    %p = tt.addptr %x, %r                            ttc.assert <no overflow or masked off>, "int32 overflow ..." : i1
    tt.store %p, %v, %m : !tt.ptr<f32>       ==>     %q = ttc.check %p, %m {arguments = array<i32: 0>, verb = "writes"}
                                                     tt.store %q, %v, %m : !tt.ptr<f32>

Overflow is checked in the sums, differences and products between an address and the values it starts from: loads,
buffers, and results of other operations (a remainder brings an integer back into its range on purpose). Of an
`arith.select` only the chosen side counts. Masked-off lanes are not checked, except for sums that loops and branches
pass on: those are checked where they are computed.
Stages: TTIR to TTIR, and TTCIR to TTCIR. Cost: one walk; on a GPU about 25 ops per access, one of them a reduction.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tilework.analysis.provenance import UNKNOWN, Provenance, pointer_provenance
from tilework.analysis.value_flows import sources_of
from tilework.errors import SANITIZER, SANITIZER_WARNING
from tilework.ir import arith, tt, ttc
from tilework.ir.arith import SelectOp
from tilework.ir.create import create_op
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.functions import function_around, functions, has_body, is_private
from tilework.ir.locations import location_text
from tilework.ir.module_facts import SANITIZER_FACTS
from tilework.ir.nesting import owner_of, start_of
from tilework.ir.rewrite import erase_op, put
from tilework.ir.scf import make_for, make_if, make_yield
from tilework.ir.types import (
    PointerType,
    bit_width,
    element_type,
    i1,
    i64,
    is_integer,
    is_tensor,
    pointer_type,
    shape_of,
    string_attr,
    with_element,
)
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter, mask_of, set_mask
from tilework.transforms.passes import module_pass
from tilework.transforms.sanitize.undefined_shadows import folded_bits, folded_tile
from tilework.transforms.sanitize.undefined_values import NAMES

VERBS: dict[type[Operation], str] = {  # what reports say about the accesses that are checked
    tt.LoadOp: "reads",
    tt.StoreOp: "writes",
    **dict.fromkeys((tt.AtomicRMWOp, tt.AtomicCASOp), "updates"),
}
OVERFLOW = "sanitizer: int{width} overflow detected for operation {name}, in the address of {what}"
EXTENSIONS = (arith.ExtSIOp, arith.ExtUIOp)
MOST_SIDES = 4  # nested selects beyond this depth are not followed
REACH = 1 << 59  # elements; no array is that long, and its bytes can be counted in 64 bits


@module_pass("ttc-sanitize")
def check_accesses(module: ModuleOp) -> None:
    provenance, done = pointer_provenance(module), set[object]()
    for access in [inner for inner in module.walk() if type(inner) in VERBS]:
        guard_native(access, provenance, done)
    module.attributes[ttc.SANITIZED] = UnitAttr()


def guard_native(access: Operation, provenance: Provenance, done: set[object]) -> None:
    """Put the checks of one access in front of it, except those of sums that an earlier access has `done`."""
    pointer, mask = access.operands[0], mask_of(access)
    found = provenance.get(pointer, frozenset({UNKNOWN}))
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


Side = tuple[SSAValue, bool]  # a condition, and the value it must have


class Cone:
    """The arithmetic that computes an address, innermost first.

    `found` are (op, is signed, the sides of selects on which it counts), `carried` the ops inside a loop or branch that
    passes their result on: they are out of scope at the access.
    """

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.found: list[tuple[Operation, bool, tuple[Side, ...]]] = []
        self.carried: list[tuple[Operation, bool]] = []

    def visit(self, value: SSAValue, signed: bool, sides: tuple[Side, ...], inside: Operation | None = None) -> None:
        """Follow the definition of `value`; `inside` is the loop or branch that computes and yields it, if any."""
        if inside is not None and not inside.is_ancestor(value.owner):
            inside = None  # computed before the loop or branch
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
    """Return True for an integer computed from constants and the indices of a nest, which is less than the size of the
    tile."""
    if not isinstance(value, OpResult):
        parent = value.block.parent_op()  # pyright: ignore[reportAttributeAccessIssue]
        return type(parent) is ttc.NestOp
    kind = type(value.op)
    return kind is arith.ConstantOp or (kind in NAMES and all(is_bounded(operand) for operand in value.op.operands))


def is_wide(offset: SSAValue) -> bool:
    """Return True for a 64-bit offset that is not an extended 32-bit one."""
    extended = isinstance(offset, OpResult) and type(offset.op) in EXTENSIONS
    return bit_width(offset.type) == 64 and not extended and not is_bounded(offset)


def refuse_overflow(
    before: Operation, mask: SSAValue | None, what: str, op: Operation, signed: bool, sides: tuple[Side, ...]
) -> None:
    """Stop in front of an access where the result of `op` is not exact, in lanes that count."""
    code = Emitter(op.location)
    left, right = op.operands
    holds = FITS[type(op), signed](code, left, right, op.results[0])
    for condition, wanted in [*sides, *([(mask, True)] if mask is not None else [])]:
        holds = code.binary(arith.OrIOp, holds, code.negated(condition) if wanted else condition)
    text = OVERFLOW.format(width=bit_width(op.operands[1].type), name=NAMES.get(type(op), "addptr"), what=what)
    code.ops.append(ttc.AssertOp.make(holds, text, op.location))
    code.insert_before(before)


def signed_sum(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """A signed sum fits if it has the sign of one of its terms: ``(a ^ r) & (b ^ r)`` is not negative."""
    both = code.binary(arith.AndIOp, code.binary(arith.XOrIOp, a, result), code.binary(arith.XOrIOp, b, result))
    return code.compare("sge", both, 0)


def signed_difference(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    both = code.binary(arith.AndIOp, code.binary(arith.XOrIOp, a, b), code.binary(arith.XOrIOp, a, result))
    return code.compare("sge", both, 0)


def signed_product(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """A 64-bit product fits if its upper half repeats the sign of the lower."""
    if bit_width(result.type) <= 32:
        return in_64_bits(code, arith.ExtSIOp, a, b, result)
    shift = code.constant(63, a.type)
    upper = code.append(create_op(tt.MulhiUIOp, (a, b), (result.type,), code.loc))
    for one, other in ((a, b), (b, a)):
        negative = code.binary(arith.ShRSIOp, one, shift)
        upper = code.binary(arith.SubiOp, upper, code.binary(arith.AndIOp, negative, other))
    return code.compare("eq", upper, code.binary(arith.ShRSIOp, result, shift))


def in_64_bits(code: Emitter, extend: type[Operation], a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Return True if a product of up to 32 bits is the same in 64 bits."""
    wide = [code.convert(extend, value, i64) for value in (a, b, result)]
    return code.compare("eq", code.binary(arith.MuliOp, wide[0], wide[1]), wide[2])


def unsigned_product(code: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    if bit_width(result.type) <= 32:
        return in_64_bits(code, arith.ExtUIOp, a, b, result)
    upper = code.append(create_op(tt.MulhiUIOp, (a, b), (result.type,), code.loc))
    return code.compare("eq", upper, 0)


def reaching(code: Emitter, pointer: SSAValue, offset: SSAValue, result: SSAValue) -> SSAValue:
    """An offset fits if its bytes do not wrap around."""
    return code.compare("ult", code.binary(arith.AddiOp, offset, REACH), 2 * REACH)


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


FIRST = 2
CODES = FIRST + 3
MARK = -(1 << 63)  # so that the record of an address is not 0
MOST_ARGUMENTS = 4  # a pointer that may come from more is compared with all


@module_pass("triton-check-bounds")
def check_bounds(module: ModuleOp) -> None:
    found = [inner for inner in module.walk() if type(inner) in VERBS or is_report(inner)]
    facts = Facts(parameters_of(module))
    provenance = pointer_provenance(module)
    codes = [facts.code_of(inner, sorted(provenance.get(inner.operands[0], {UNKNOWN}))) for inner in found]
    bodies = [inner for inner in functions(module) if isinstance(inner, tt.FuncOp) and has_body(inner)]
    tables = {function: Table(function, len(facts.faults)) for function in bodies}
    for call in [inner for inner in module.walk() if type(inner) is tt.CallOp]:
        call.operands = (*call.operands, tables[function_around(call)].address)
    for inner, code in zip(found, codes, strict=True):
        table = tables[function_around(inner)]
        if type(inner) in VERBS:
            guard(inner, table, code, facts.checks[code])
        else:
            report(inner, table, code)
    for table in tables.values():
        table.finish()
    module.attributes[SANITIZER_FACTS] = string_attr(facts.text())


def is_report(op: Operation) -> bool:
    """Return True for an assert that the sanitizer inserted."""
    return type(op) is tt.AssertOp and message_of(op).startswith((SANITIZER, SANITIZER_WARNING))


def message_of(op: Operation) -> str:
    message: Any = op.properties["message"]
    return message.data


def parameters_of(module: ModuleOp) -> list[str]:
    """ "ptr" or the type of each parameter of the kernel."""
    for op in functions(module):
        if isinstance(op, tt.FuncOp) and not is_private(op):
            inputs = op.properties["function_type"].inputs  # pyright: ignore[reportAttributeAccessIssue]
            return ["ptr" if isinstance(type, PointerType) else str(type) for type in inputs]
    return []


@light_dataclass(frozen=False)
class Facts:
    """The meaning of the codes, for the launcher."""

    parameters: list[str]
    faults: list[tuple[str, str]] = field(default_factory=list)
    checks: dict[int, tuple[str, int, list[int]]] = field(default_factory=dict)  # verb, bytes, parameters

    def code_of(self, op: Operation, parameters: Sequence[int]) -> int:
        """Add an access or assert, and return its code: 1 + its position."""
        is_access = type(op) in VERBS
        self.faults.append(("" if is_access else message_of(op), location_text(op.location) or ""))
        code = len(self.faults)
        if is_access:
            arguments = [] if UNKNOWN in parameters or len(parameters) > MOST_ARGUMENTS else list(parameters)
            self.checks[code] = (VERBS[type(op)], bytes_of(op), arguments)
        return code

    def text(self) -> str:
        checks = [(code, *check) for code, check in self.checks.items()]
        table = {"records": FIRST, "codes": CODES}
        return json.dumps({"parameters": self.parameters, "faults": self.faults, "checks": checks, "table": table})


def bytes_of(access: Operation) -> int:
    """The size of an element in memory."""
    pointer = element_type(access.operands[0].type)
    assert isinstance(pointer, PointerType)
    pointee = pointer.pointee
    return 8 if isinstance(pointee, PointerType) else max(1, bit_width(pointee) // 8)


class Table:
    """The table in one function; what does not depend on the access is computed once, at the start of the function."""

    def __init__(self, function: tt.FuncOp, codes: int) -> None:
        block, type = function.body.blocks[0], pointer_type(i64)
        self.address: SSAValue = block.insert_arg(type, len(block.args), function.location)
        old = function.properties["function_type"]
        assert isinstance(old, FunctionType)
        function.properties["function_type"] = FunctionType.from_lists([*old.inputs, type], list(old.outputs))
        if isinstance(attributes := function.properties.get("arg_attrs"), ArrayAttr):
            function.properties["arg_attrs"] = ArrayAttr([*attributes, DictionaryAttr({})])
        self.entries = CODES + codes  # the index of the count of entries
        self.block, self.code = block, Emitter(function.location)
        self.known: dict[object, SSAValue] = {}

    def finish(self) -> None:
        self.code.insert_before(start_of(self.block))

    def once(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def word_address(self, index: int) -> SSAValue:
        """The address of the word at an index."""
        code = self.code
        offset = self.once(index, lambda: code.constant(index, i64))
        return self.once(("at", index), lambda: code.append(tt.AddPtrOp.make(self.address, offset, code.loc)))

    def word(self, index: int) -> SSAValue:
        """The word at an index, as it was when the function began."""
        address, code = self.word_address(index), self.code
        return self.once(("word", index), lambda: code.append(tt.LoadOp.make(address, None, None, code.loc)))

    def extent(self, slot: int, size: int) -> tuple[SSAValue, SSAValue]:
        """The first byte of a parameter's array, and the number of offsets from there at which elements of `size` bytes
        may start."""
        code = self.code
        start, end = (self.word(self.entries + 1 + 2 * slot + part) for part in (0, 1))
        return start, self.once(("extent", slot, size), lambda: extent_between(code, start, end, size))

    def program(self) -> SSAValue:
        """x + (y << 32) + (z << 48)."""
        code = self.code

        def make() -> SSAValue:
            total = None
            for axis, shift in enumerate((0, 32, 48)):
                id = code.convert(arith.ExtUIOp, code.append(tt.GetProgramIdOp.make(axis, code.loc)), i64)
                part = code.binary(arith.ShLIOp, id, shift) if shift else id
                total = part if total is None else code.binary(arith.OrIOp, total, part)
            assert total is not None
            return total

        return self.once("program", make)


def extent_between(code: Emitter, start: SSAValue, end: SSAValue, size: int) -> SSAValue:
    """The number of bytes from `start` on at which an element may begin."""
    left = code.binary(arith.SubiOp, code.binary(arith.SubiOp, end, start), size - 1)
    return code.binary(arith.MaxSIOp, left, 0)


class Lanes:
    """Code for all lanes of an access; scalars are splat if the access is a tile."""

    def __init__(self, code: Emitter, like: Attribute) -> None:
        self.code, self.shape = code, shape_of(like) if is_tensor(like) else None

    def spread(self, value: SSAValue) -> SSAValue:
        return value if self.shape is None or is_tensor(value.type) else self.code.splat(value, self.shape)

    def both(self, a: SSAValue, b: SSAValue | None) -> SSAValue:
        return a if b is None else self.code.binary(arith.AndIOp, a, self.spread(b))


def guard(access: Operation, table: Table, code: int, check: tuple[str, int, list[int]]) -> None:
    """Let an access touch only what it may."""
    pointer = access.operands[0]
    _, size, slots = check
    lanes = Lanes(Emitter(access.location), pointer.type)
    emit = lanes.code
    address = emit.convert(tt.PtrToIntOp, pointer, with_element(pointer.type, i64))
    if slots:
        inside = [is_inside(lanes, address, *table.extent(slot, size)) for slot in slots]
        good = inside[0]
        for other in inside[1:]:
            good = emit.binary(arith.OrIOp, good, other)
    else:
        good = is_anywhere(lanes, address, table, size)
    if size > 1:
        good = lanes.both(good, emit.compare("eq", emit.binary(arith.AndIOp, address, size - 1), 0))
    mask = mask_of(access)
    bad = lanes.both(emit.negated(good), mask)
    marked = emit.binary(arith.OrIOp, emit.binary(arith.XOrIOp, address, -1), MARK)
    key = folded_tile(emit, emit.select(bad, marked, emit.constant(0, address.type)))
    record(emit, table, emit.compare("ne", key, 0), key, code)
    if type(access) is tt.AtomicCASOp:
        dummy = emit.convert(tt.BitcastOp, table.word_address(1), element_type(pointer.type))
        access.operands[0] = emit.select(good, pointer, lanes.spread(dummy))
    else:
        set_mask(access, lanes.both(good, mask))
    emit.insert_before(access)


def is_inside(lanes: Lanes, address: SSAValue, start: SSAValue, extent: SSAValue) -> SSAValue:
    offset = lanes.code.binary(arith.SubiOp, address, lanes.spread(start))
    return lanes.code.compare("ult", offset, lanes.spread(extent))


def is_anywhere(lanes: Lanes, address: SSAValue, table: Table, size: int) -> SSAValue:
    """Return True in lanes whose address is in an array of the table: a loop over its entries."""
    code, loc = lanes.code, lanes.code.loc
    count = table.word(table.entries)
    inner = Emitter(loc)
    body = Block(arg_types=(i64, with_element(address.type, i1)))
    entry, found = body.args
    at = inner.binary(arith.MuliOp, entry, 2)
    ends = []
    for part in (1, 2):
        word_address = inner.append(tt.AddPtrOp.make(table.word_address(table.entries + part), at, loc))
        ends.append(inner.append(tt.LoadOp.make(word_address, None, None, loc)))
    here = is_inside(Lanes(inner, address.type), address, ends[0], extent_between(inner, ends[0], ends[1], size))
    inner.ops.append(make_yield((inner.binary(arith.OrIOp, found, here),), loc))
    body.add_ops(inner.ops)
    none = code.constant(0, with_element(address.type, i1))
    return code.append(make_for(code.constant(0, i64), count, code.constant(1, i64), [none], Region(body), loc))


def record(emit: Emitter, table: Table, bad: SSAValue, address: SSAValue | None, code: int) -> None:
    """If `bad`, count the failure, and write a record if it is the first."""
    loc = emit.loc
    inner = Emitter(loc)
    one = inner.constant(1, i64)
    ticket = inner.append(
        tt.AtomicRMWOp.make(RMWOp.ADD, table.word_address(0), one, None, MemSemantic.RELAXED, MemSyncScope.GPU, loc)
    )
    first = inner.compare("eq", ticket, 0)
    values = (address if address is not None else inner.constant(0, i64), inner.constant(code, i64), table.program())
    for word, value in enumerate(values, FIRST):
        inner.ops.append(tt.StoreOp.make(table.word_address(word), value, first, loc))
    inner.ops.append(make_yield((), loc))
    emit.ops.append(make_if(bad, (), Region(Block(inner.ops)), None, loc))


def report(check: Operation, table: Table, code: int) -> None:
    """Emit a record, or a warning, instead of an assert."""
    lanes = Lanes(Emitter(check.location), check.operands[0].type)
    emit = lanes.code
    bad = emit.negated(check.operands[0])
    if is_tensor(bad.type):
        bad = emit.compare("ne", folded_bits(emit, bad), 0)
    if message_of(check).startswith(SANITIZER_WARNING):
        seen = table.once("seen", lambda: table.code.binary(arith.AddiOp, table.program(), 1))
        emit.ops.append(tt.StoreOp.make(table.word_address(CODES + code - 1), seen, bad, check.location))
    else:
        record(emit, table, bad, None, code)
    emit.insert_before(check)
    erase_op(check)
