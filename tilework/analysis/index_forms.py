"""Integers and pointers of TTIR and TTGIR as polynomials of values that a launch knows.

    rows = (pid * 128 + tl.arange(0, 128))[:, None] * stride     stride*r0 + 128*pid*stride    (r0: index along dim 0)
    ptrs = a_ptr + rows + tl.arange(0, 64)[None, :]              a_ptr + stride*r0 + 128*pid*stride + r1
    ptrs += 64                        (in ``for k in range(n)``) ... + 64*k

A polynomial maps monomials (sorted ids of atoms) to coefficients. Atoms are scalars that are not sums and products of
others (arguments, program ids, loop counters, quotients), and remainders of tiles (`Wrapped`). The id -1-d is the index
along dimension d. A pointer is a polynomial in elements, of which its base is an atom.

Polynomials are over the integers: they equal what a program computes as long as nothing overflows. `computed` lists the
intermediate values for which that has to be shown.

`LaunchExpressions` writes them as data, for what a launch has to compute before a kernel may do something that depends
on its arguments:

    expressions = LaunchExpressions(forms)
    expressions.of(form)            # the index of a node, or None if a launch cannot know the value
    expressions.nodes               # [["arg", 3], ["pid", 0], ["poly", [[128, [1]]]], ...]

    ["arg", i]  ["pid", axis]  ["programs", axis]                     an argument; program id, grid size
    ["tile_index", size]                                              the index along an axis of a tile
    ["loop", low, high, step]                                         the counter of a loop
    ["poly", [[coefficient, [node, ...]], ...]]                       a sum of products
    ["div" | "rem" | "min" | "max", left, right]                      as the ops of signed integers
    ["wrapped" | "inside", start, size, block]                        `Wrapped`

Nodes come after those that they refer to, and can be written as JSON. `runtime/devices/cuda/guarded_launch.py`
evaluates the interval of each over all programs and iterations. Facts only; cost: the queried values, once.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import arith, scf, tt, ttg
from tilework.ir.arith import SLT, SelectOp, predicate_of
from tilework.ir.nesting import body_of, end_of, is_defined_in
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import axis_of, bit_width, is_float, shape_of
from tilework.light_dataclass import light_dataclass

Monomial = tuple[int, ...]
Poly = dict[Monomial, int]
DEEPEST = 8  # sums between a carried value and the yielded one


def plus(one: Poly, two: Poly, factor: int = 1) -> Poly:
    """Return `one` + `factor` * `two`."""
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


def axis_atom(dim: int) -> int:
    """Return the atom that counts along a dimension."""
    return -1 - dim


def frozen(poly: Poly) -> tuple[tuple[Monomial, int], ...]:
    return tuple(sorted(poly.items()))


def has_axis_atoms(poly: Poly) -> bool:
    return any(atom < 0 for monomial in poly for atom in monomial)


@light_dataclass
class Wrapped:
    """The first index of a tile of `block` that is kept below `size` in one of two ways. The launch must check that the
    tile itself is contiguous.

        "wrapped"   ``(start + arange) % size`` is ``start % size + arange`` if both are multiples of `block`
        "inside"    ``where(start + arange < size, start + arange, ...)`` is ``start + arange`` if that is always less
    """

    way: str
    start: tuple[tuple[Monomial, int], ...]
    size: tuple[tuple[Monomial, int], ...]
    block: int


Atom = SSAValue | Wrapped


class IndexForms:
    """The polynomials of the values of a function, computed on demand."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.ids: dict[Atom, int] = {}
        self.known: dict[SSAValue, Poly | None] = {}

    def atom(self, atom: Atom) -> Poly:
        if (atom_id := self.ids.get(atom)) is None:
            atom_id = self.ids[atom] = len(self.atoms)
            self.atoms.append(atom)
        return {(atom_id,): 1}

    def of(self, value: SSAValue) -> Poly | None:
        """Return the polynomial of an integer or a pointer; None for tiles that have none."""
        if value not in self.known:
            found = self.find(value)
            self.known[value] = self.atom(value) if found is None and not shape_of(value.type) else found
        return self.known[value]

    def find(self, value: SSAValue) -> Poly | None:
        op = defining_op(value)
        if op is None:
            return self.carried(value) if isinstance(value, BlockArgument) else None
        if bit_width(value.type) == 1:  # polynomials do not hold for a single bit
            return None
        if type(op) is arith.ConstantOp:
            constant = None if is_float(value.type) else constant_value(value)
            return None if constant is None else ({(): int(constant)} if constant else {})
        rule = RULES.get(type(op))
        return None if rule is None else rule(self, op)

    def carried(self, argument: BlockArgument) -> Poly | None:
        """A value that a loop carries and moves by the same amount in each iteration: initial value + amount *
        iterations."""
        loop = argument.block.parent_op()
        if type(loop) is not scf.ForOp or argument.index == 0:
            return None
        # for values of the loop that depend on it
        self.known[argument] = None if shape_of(argument.type) else self.atom(argument)
        low, _, step, *initial = loop.operands
        start, first, stride = self.of(initial[argument.index - 1]), self.of(low), self.of(step)
        amount = self.moved(end_of(argument.block).operands[argument.index - 1], argument, DEEPEST)
        if start is None or first is None or amount is None or stride is None or stride.keys() != {()}:
            return None
        if has_axis_atoms(amount) or any(coefficient % stride[()] for coefficient in amount.values()):
            return None
        if not all(self.is_outside(atom_id, loop) for monomial in amount for atom_id in monomial):
            return None
        iterations = plus(self.atom(argument.block.args[0]), first, -1)
        per_step = {monomial: coefficient // stride[()] for monomial, coefficient in amount.items()}
        return plus(start, times(per_step, iterations))

    def moved(self, value: SSAValue, base: SSAValue, depth: int) -> Poly | None:
        """Return `value` - `base`, if that is a sum."""
        if value is base:
            return {}
        op = defining_op(value)
        if op is None or not depth or type(op) not in (tt.AddPtrOp, arith.AddiOp, arith.SubiOp):
            return None
        ways = [(0, 1)] if type(op) is not arith.AddiOp else [(0, 1), (1, 0)]
        for old, new in ways:
            if (before := self.moved(op.operands[old], base, depth - 1)) is not None:
                more = self.of(op.operands[new])
                return None if more is None else plus(before, more, -1 if type(op) is arith.SubiOp else 1)
        return None

    def is_outside(self, atom_id: int, loop: Operation) -> bool:
        """Return True if an atom does not change in a loop."""
        atom = self.atoms[atom_id]
        if isinstance(atom, Wrapped):
            return all(self.is_outside(n, loop) for part in (atom.start, atom.size) for m, _ in part for n in m)
        return not is_defined_in(atom, loop)

    def is_launch_constant(self, atom_id: int) -> bool:
        """Return True if an atom is the same in all programs and known at launch."""
        if atom_id < 0 or isinstance(atom := self.atoms[atom_id], Wrapped):
            return False
        op = defining_op(atom)
        if op is None:
            return isinstance(atom, BlockArgument) and type(atom.block.parent_op()) is tt.FuncOp
        if type(op) is tt.GetNumProgramsOp:
            return True
        return type(op) in QUOTIENTS and all(self.is_constant(self.of(operand)) for operand in op.operands)

    def is_constant(self, poly: Poly | None) -> bool:
        """Return True if a polynomial is the same in all programs and known at launch."""
        return poly is not None and all(self.is_launch_constant(atom_id) for monomial in poly for atom_id in monomial)

    def computed(self, *roots: SSAValue) -> Iterator[SSAValue]:
        """Yield the sums, differences, products and truncated integers from which `roots` are computed, each once."""

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
    return plus({(): start} if start else {}, {(axis_atom(0),): 1} if end - start > 1 else {})


def expand_dims(forms: IndexForms, op: Operation) -> Poly | None:
    source, axis = forms.of(op.operands[0]), axis_of(op)
    if source is None:
        return None
    moved = {atom: atom - (atom <= axis_atom(axis)) for monomial in source for atom in monomial}
    return {tuple(sorted(moved[atom] for atom in monomial)): value for monomial, value in source.items()}


def remainder(forms: IndexForms, op: Operation) -> Poly | None:
    """The remainder of a tile that starts at a multiple of its size."""
    return kept(forms, "wrapped", *op.operands)


def select(forms: IndexForms, op: Operation) -> Poly | None:
    """A value that is less than a bound, else one that is never used."""
    condition, value, _ = op.operands
    test = defining_op(condition)
    if type(test) is not arith.CmpiOp or predicate_of(test) != SLT or test.operands[0] is not value:
        return None
    return kept(forms, "inside", *test.operands)


def kept(forms: IndexForms, way: str, tile: SSAValue, bound: SSAValue) -> Poly | None:
    """Return a contiguous tile that is kept below a bound known at launch; see `Wrapped`."""
    shape, start, size = shape_of(tile.type), forms.of(tile), forms.of(bound)
    if not shape or start is None or size is None or has_axis_atoms(size) or not forms.is_constant(size):
        return None
    along_axis = {monomial: value for monomial, value in start.items() if any(atom < 0 for atom in monomial)}
    if len(along_axis) != 1 or list(along_axis.values()) != [1] or len(along := next(iter(along_axis))) != 1:
        return None
    block, rest = shape[axis_atom(along[0])], plus(start, along_axis, -1)
    if way == "wrapped" and any(value % block for value in rest.values()):
        return None
    return plus(along_axis, forms.atom(Wrapped(way, frozen(rest), frozen(size), block)))


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
    """Return (quotient, rest) by a polynomial of one monomial: the terms that it divides, and the others."""
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
    """Return `monomial` / `factors`, if `factors` divides it."""
    left = list(monomial)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


Node = list[Any]


class LaunchExpressions:
    """Nodes of expressions, each once."""

    def __init__(self, forms: IndexForms) -> None:
        self.forms = forms
        self.nodes: list[Node] = []
        self.indices: dict[str, int] = {}
        self.of_atom: dict[int, int | None] = {}

    def add(self, *node: Any) -> int | None:
        """Return the index of a node; None if it refers to something unknown."""
        if any(part is None for part in node):
            return None
        text = repr(node)
        if text not in self.indices:
            self.indices[text] = len(self.nodes)
            self.nodes.append(list(node))
        return self.indices[text]

    def of(self, poly: Poly | None, shape: tuple[int, ...] = ()) -> int | None:
        """Return the node of a polynomial; `shape` bounds the indices along dimensions."""
        if poly is None:
            return None
        terms: list[tuple[int, list[int]]] = []
        for monomial, coefficient in sorted(poly.items()):
            factors = [self.add("tile_index", shape[-1 - n]) if n < 0 else self.atom(n) for n in monomial]
            if None in factors:
                return None
            terms.append((coefficient, [factor for factor in factors if factor is not None]))
        return self.add("poly", terms)

    def atom(self, atom_id: int) -> int | None:
        if atom_id not in self.of_atom:
            self.of_atom[atom_id] = None  # of a value that depends on itself
            self.of_atom[atom_id] = self.find(atom_id)
        return self.of_atom[atom_id]

    def find(self, atom_id: int) -> int | None:
        atom = self.forms.atoms[atom_id]
        if isinstance(atom, Wrapped):
            return self.add(atom.way, self.of(dict(atom.start)), self.of(dict(atom.size)), atom.block)
        op = defining_op(atom)
        if op is not None:
            if type(op) is tt.GetProgramIdOp or type(op) is tt.GetNumProgramsOp:
                return self.add("pid" if type(op) is tt.GetProgramIdOp else "programs", axis_of(op))
            name = QUOTIENTS.get(type(op))
            return None if name is None else self.add(name, *(self.of(self.forms.of(value)) for value in op.operands))
        return self.of_argument(atom) if isinstance(atom, BlockArgument) else None

    def of_argument(self, argument: BlockArgument) -> int | None:
        parent = argument.block.parent_op()
        if type(parent) is tt.FuncOp:
            return self.add("arg", argument.index)
        if type(parent) is scf.ForOp and argument.index == 0:
            return self.add("loop", *(self.of(self.forms.of(value)) for value in parent.operands[:3]))
        return None

    def fits(self, *roots: SSAValue) -> list[tuple[int, int]] | None:
        """Return (node, bits) of every sum and product behind `roots`: as long as they fit, polynomials equal what is
        computed."""
        found: dict[tuple[int, int], None] = {}
        for value in self.forms.computed(*roots):
            node = self.of(self.forms.of(value), shape_of(value.type))
            if node is None:
                return None
            found[node, bit_width(value.type)] = None
        return list(found)


FAR = 1 << 24  # a larger step may wrap around after some iterations: offsets have 32 bits


def never_returns(pointers: SSAValue, loop: Operation) -> bool:
    """Return True if `pointers` never contain an address of an earlier iteration of `loop`."""
    step = constant_value(loop.operands[2]) if type(loop) is scf.ForOp else None
    forms = IndexForms()
    if not isinstance(step, int) or (form := forms.of(pointers)) is None:
        return False
    sizes = {(axis_atom(dim),): size for dim, size in enumerate(shape_of(pointers.type))}
    width = 1 + sum(abs(form.pop(monomial, 0)) * (size - 1) for monomial, size in sizes.items())
    (counter,) = forms.atom(body_of(loop).args[0])
    rate = step * form.pop(counter, 0)
    is_fixed = all(atom_id >= 0 and forms.is_outside(atom_id, loop) for monomial in form for atom_id in monomial)
    return is_fixed and width <= abs(rate) < FAR


def same_address(one: SSAValue, other: SSAValue) -> bool:
    """Return True if both are one value, or computed from the same ones in the same way."""
    if one is other:
        return True
    if not (isinstance(one, OpResult) and isinstance(other, OpResult)):
        return False
    return type(one.op) is type(other.op) is tt.AddPtrOp and list(one.op.operands) == list(other.op.operands)
