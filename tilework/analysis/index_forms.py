"""What integers and pointers of TTIR and TTGIR are, as polynomials of what a launch knows.

    rows = (pid * 128 + tl.arange(0, 128))[:, None] * stride       stride*r0 + 128*pid*stride          (r0 counts along dimension 0)
    ptrs = a_ptr + rows + tl.arange(0, 64)[None, :]                a_ptr + stride*r0 + 128*pid*stride + r1
    ptrs += 64                        (in ``for k in range(n)``)   ... + 64*k

A polynomial maps monomials (sorted numbers of atoms) to coefficients. Atoms are scalars that are not sums and products of others
(arguments, program numbers, counters of loops, quotients), and remainders of tiles (`Wrapped`). The number -1-d stands for the place
along dimension d. A pointer is a polynomial in elements, of which its base is an atom.

Polynomials are over the integers: they are what a program computes as long as nothing overflows. `computed` lists the intermediate
values for which that has to be shown. Facts only; cost: what is asked for, once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import tt, ttg
from tilework.ir.arith_ext import SelectOp
from tilework.ir.integer_ops import SLT, predicate_of
from tilework.ir.nesting import end_of, is_defined_in
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import axis_of, bit_width, is_float, shape_of

Monomial = tuple[int, ...]
Poly = dict[Monomial, int]
DEEPEST = 8  # sums between what a loop carries and what it yields


def plus(one: Poly, two: Poly, factor: int = 1) -> Poly:
    """`one` + `factor` * `two`."""
    total = dict(one)
    for monomial, coefficient in two.items():
        total[monomial] = total.get(monomial, 0) + factor * coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def times(one: Poly, two: Poly) -> Poly:
    total: Poly = {}
    for left, a in one.items():
        for right, b in two.items():
            monomial = tuple(sorted(left + right))
            total[monomial] = total.get(monomial, 0) + a * b
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def place(dim: int) -> int:
    """The atom that counts along a dimension."""
    return -1 - dim


def frozen(poly: Poly) -> tuple[tuple[Monomial, int], ...]:
    return tuple(sorted(poly.items()))


def has_places(poly: Poly) -> bool:
    return any(number < 0 for monomial in poly for number in monomial)


@dataclass(frozen=True)
class Wrapped:
    """The first place of a tile of `block` that is kept inside of `size` in one of two ways, of which the launch must see that they do nothing inside.

    "wrapped"   ``(start + arange) % size`` is ``start % size + arange`` where `size` is a multiple of `block`, as `start` is
    "inside"    ``where(start + arange < size, start + arange, ...)`` is ``start + arange`` where that is always less
    """

    way: str
    start: tuple[tuple[Monomial, int], ...]
    size: tuple[tuple[Monomial, int], ...]
    block: int


Atom = SSAValue | Wrapped


class IndexForms:
    """The polynomials of the values of a function, found when they are asked for."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.numbers: dict[Atom, int] = {}
        self.known: dict[SSAValue, Poly | None] = {}

    def atom(self, atom: Atom) -> Poly:
        if (number := self.numbers.get(atom)) is None:
            number = self.numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return {(number,): 1}

    def of(self, value: SSAValue) -> Poly | None:
        """The polynomial of an integer or a pointer; None for tiles that are none."""
        if value not in self.known:
            found = self.find(value)
            self.known[value] = self.atom(value) if found is None and not shape_of(value.type) else found
        return self.known[value]

    def find(self, value: SSAValue) -> Poly | None:
        op = defining_op(value)
        if op is None:
            return self.carried(value) if isinstance(value, BlockArgument) else None
        if bit_width(value.type) == 1:  # of a sign that is a bit nothing of this holds
            return None
        if type(op) is arith.ConstantOp:
            number = None if is_float(value.type) else constant_value(value)
            return None if number is None else ({(): int(number)} if number else {})
        rule = RULES.get(type(op))
        return None if rule is None else rule(self, op)

    def carried(self, argument: BlockArgument) -> Poly | None:
        """What a loop carries and moves by the same amount in each iteration: initial value + amount * iterations."""
        loop = argument.block.parent_op()
        if type(loop) is not scf.ForOp or argument.index == 0:
            return None
        self.known[argument] = (
            None if shape_of(argument.type) else self.atom(argument)
        )  # for who depends on it in the loop
        low, _, step, *initial = loop.operands
        start, first, stride = self.of(initial[argument.index - 1]), self.of(low), self.of(step)
        amount = self.moved(end_of(argument.block).operands[argument.index - 1], argument, DEEPEST)
        if start is None or first is None or amount is None or stride is None or stride.keys() != {()}:
            return None
        if has_places(amount) or any(coefficient % stride[()] for coefficient in amount.values()):
            return None
        if not all(self.is_outside(number, loop) for monomial in amount for number in monomial):
            return None
        iterations = plus(self.atom(argument.block.args[0]), first, -1)
        per_step = {monomial: coefficient // stride[()] for monomial, coefficient in amount.items()}
        return plus(start, times(per_step, iterations))

    def moved(self, value: SSAValue, origin: SSAValue, depth: int) -> Poly | None:
        """`value` - `origin`, if that is a sum."""
        if value is origin:
            return {}
        op = defining_op(value)
        if op is None or not depth or type(op) not in (tt.AddPtrOp, arith.AddiOp, arith.SubiOp):
            return None
        ways = [(0, 1)] if type(op) is not arith.AddiOp else [(0, 1), (1, 0)]
        for old, new in ways:
            if (before := self.moved(op.operands[old], origin, depth - 1)) is not None:
                more = self.of(op.operands[new])
                return None if more is None else plus(before, more, -1 if type(op) is arith.SubiOp else 1)
        return None

    def is_outside(self, number: int, loop: Operation) -> bool:
        """Whether an atom does not change in a loop."""
        atom = self.atoms[number]
        if isinstance(atom, Wrapped):
            return all(self.is_outside(n, loop) for part in (atom.start, atom.size) for m, _ in part for n in m)
        return not is_defined_in(atom, loop)

    def is_launch_constant(self, number: int) -> bool:
        """Whether an atom is the same in all programs and known when they are launched."""
        if number < 0 or isinstance(atom := self.atoms[number], Wrapped):
            return False
        op = defining_op(atom)
        if op is None:
            return isinstance(atom, BlockArgument) and type(atom.block.parent_op()) is tt.FuncOp
        if type(op) is tt.GetNumProgramsOp:
            return True
        return type(op) in QUOTIENTS and all(self.is_constant(self.of(operand)) for operand in op.operands)

    def is_constant(self, poly: Poly | None) -> bool:
        """Whether a polynomial is the same in all programs and known when they are launched."""
        return poly is not None and all(self.is_launch_constant(number) for monomial in poly for number in monomial)

    def computed(self, *roots: SSAValue) -> Iterator[SSAValue]:
        """The sums, differences, products and narrowed integers that `roots` are computed from, each once."""

        def sources(value: SSAValue) -> Sequence[SSAValue]:
            if (op := defining_op(value)) is not None:
                return op.operands
            if not isinstance(value, BlockArgument) or type(loop := value.block.parent_op()) is not scf.ForOp:
                return ()
            return [*loop.operands[:3], *chain(*sources_of(value))]

        return (value for value in reached(roots, sources) if type(defining_op(value)) in CAN_OVERFLOW)


def add(forms: IndexForms, op: Operation, factor: int = 1) -> Poly | None:
    left, right = map(forms.of, op.operands)
    return None if left is None or right is None else plus(left, right, factor)


def multiply(forms: IndexForms, op: Operation) -> Poly | None:
    left, right = map(forms.of, op.operands)
    return None if left is None or right is None else times(left, right)


def shift(forms: IndexForms, op: Operation) -> Poly | None:
    left, right = map(forms.of, op.operands)
    if left is None or right is None or not right.keys() <= {()} or not 0 <= right.get((), 0) < 31:
        return None
    return times(left, {(): 1 << right.get((), 0)})


def same(forms: IndexForms, op: Operation) -> Poly | None:
    return None if bit_width(op.operands[0].type) == 1 else forms.of(op.operands[0])


def make_range(forms: IndexForms, op: Operation) -> Poly | None:
    start, end = (op.properties[name].value.data for name in ("start", "end"))  # pyright: ignore
    return plus({(): start} if start else {}, {(place(0),): 1} if end - start > 1 else {})


def expand_dims(forms: IndexForms, op: Operation) -> Poly | None:
    source, axis = forms.of(op.operands[0]), axis_of(op)
    if source is None:
        return None
    moved = {number: number - (number <= place(axis)) for monomial in source for number in monomial}
    return {tuple(sorted(moved[number] for number in monomial)): value for monomial, value in source.items()}


def remainder(forms: IndexForms, op: Operation) -> Poly | None:
    """Of a tile that starts at a multiple of its size."""
    return kept(forms, "wrapped", *op.operands)


def select(forms: IndexForms, op: Operation) -> Poly | None:
    """What is less than a bound, else something that is never used."""
    condition, value, _ = op.operands
    test = defining_op(condition)
    if type(test) is not arith.CmpiOp or predicate_of(test) != SLT or test.operands[0] is not value:
        return None
    return kept(forms, "inside", *test.operands)


def kept(forms: IndexForms, way: str, tile: SSAValue, bound: SSAValue) -> Poly | None:
    """A tile of neighbours that something keeps below a bound known at launch; see `Wrapped`."""
    shape, start, size = shape_of(tile.type), forms.of(tile), forms.of(bound)
    if not shape or start is None or size is None or has_places(size) or not forms.is_constant(size):
        return None
    places = {monomial: value for monomial, value in start.items() if any(number < 0 for number in monomial)}
    if len(places) != 1 or list(places.values()) != [1] or len(along := next(iter(places))) != 1:
        return None
    block, rest = shape[place(along[0])], plus(start, places, -1)
    if way == "wrapped" and any(value % block for value in rest.values()):
        return None
    return plus(places, forms.atom(Wrapped(way, frozen(rest), frozen(size), block)))


RULES: dict[type[Operation], Callable[[IndexForms, Operation], Poly | None]] = {
    arith.AddiOp: add,
    arith.SubiOp: lambda forms, op: add(forms, op, -1),
    arith.MuliOp: multiply,
    arith.ShLIOp: shift,
    arith.ExtSIOp: same,
    arith.RemSIOp: remainder,
    SelectOp: select,
    tt.AddPtrOp: add,
    tt.SplatOp: same,
    tt.BroadcastOp: same,
    tt.ExpandDimsOp: expand_dims,
    tt.MakeRangeOp: make_range,
    ttg.ConvertLayoutOp: same,
}
CAN_OVERFLOW = frozenset({arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp})
QUOTIENTS: dict[type[Operation], str] = {
    arith.DivSIOp: "div",
    arith.RemSIOp: "rem",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
}


def divided(poly: Poly, divisor: Poly) -> tuple[Poly, Poly]:
    """(quotient, rest) by a polynomial of one monomial: the terms that it divides, and the others."""
    ((factors, coefficient),) = divisor.items()
    quotient: Poly = {}
    rest: Poly = {}
    for monomial, value in poly.items():
        left = without(monomial, factors)
        if left is None or value % coefficient:
            rest[monomial] = value
        else:
            quotient[left] = value // coefficient
    return quotient, rest


def without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """`monomial` / `factors`, if it is one."""
    left = list(monomial)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)
