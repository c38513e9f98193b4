"""What a launch has to compute before a kernel may do something that only its arguments can justify, as data.

    numbers = LaunchNumbers(forms)
    numbers.of(form)            # the number of a node, or None if a launch cannot know the value
    numbers.nodes               # [["arg", 3], ["pid", 0], ["poly", [[128, [1]]]], ...]

    ["arg", i]  ["pid", axis]  ["programs", axis]  ["place", size]      an argument; which program of how many; 0 to size - 1
    ["loop", low, high, step]                                           the counter of a loop
    ["poly", [[coefficient, [node, ...]], ...]]                         a sum of products
    ["div" | "rem" | "min" | "max", left, right]                        as the ops of signed integers
    ["wrapped" | "inside", start, size, block]                          `index_forms.Wrapped`

Nodes come after those that they name. Whoever evaluates them (`runtime/devices/cuda/launch_proof.py`) finds for each the interval of
values that it has in all programs and iterations. They can be written as JSON.
"""

from typing import Any

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue

from tilework.analysis.index_forms import QUOTIENTS, IndexForms, Poly, Wrapped
from tilework.ir import tt
from tilework.ir.rewrite import defining_op
from tilework.ir.types import axis_of, bit_width, shape_of

Node = list[Any]


class LaunchNumbers:
    """Nodes, each once."""

    def __init__(self, forms: IndexForms) -> None:
        self.forms = forms
        self.nodes: list[Node] = []
        self.places: dict[str, int] = {}
        self.of_atom: dict[int, int | None] = {}

    def add(self, *node: Any) -> int | None:
        """The number of a node; None where it names something unknown."""
        if any(part is None for part in node):
            return None
        text = repr(node)
        if text not in self.places:
            self.places[text] = len(self.nodes)
            self.nodes.append(list(node))
        return self.places[text]

    def of(self, poly: Poly | None, shape: tuple[int, ...] = ()) -> int | None:
        """The node of a polynomial; `shape` says how far the places along dimensions go."""
        if poly is None:
            return None
        terms: list[tuple[int, list[int]]] = []
        for monomial, coefficient in sorted(poly.items()):
            factors = [self.add("place", shape[-1 - n]) if n < 0 else self.atom(n) for n in monomial]
            if None in factors:
                return None
            terms.append((coefficient, [factor for factor in factors if factor is not None]))
        return self.add("poly", terms)

    def atom(self, number: int) -> int | None:
        if number not in self.of_atom:
            self.of_atom[number] = None  # of a value that depends on itself
            self.of_atom[number] = self.find(number)
        return self.of_atom[number]

    def find(self, number: int) -> int | None:
        atom = self.forms.atoms[number]
        if isinstance(atom, Wrapped):
            return self.add(atom.way, self.of(dict(atom.start)), self.of(dict(atom.size)), atom.block)
        op = defining_op(atom)
        if op is not None:
            if type(op) is tt.GetProgramIdOp or type(op) is tt.GetNumProgramsOp:
                return self.add("pid" if type(op) is tt.GetProgramIdOp else "programs", axis_of(op))
            word = QUOTIENTS.get(type(op))
            return None if word is None else self.add(word, *(self.of(self.forms.of(value)) for value in op.operands))
        return self.of_argument(atom) if isinstance(atom, BlockArgument) else None

    def of_argument(self, argument: BlockArgument) -> int | None:
        parent = argument.block.parent_op()
        if type(parent) is tt.FuncOp:
            return self.add("arg", argument.index)
        if type(parent) is scf.ForOp and argument.index == 0:
            return self.add("loop", *(self.of(self.forms.of(value)) for value in parent.operands[:3]))
        return None

    def fits(self, *roots: SSAValue) -> list[tuple[int, int]] | None:
        """(node, bits) of every sum and product behind `roots`: as long as they fit, polynomials are what is computed."""
        found: dict[tuple[int, int], None] = {}
        for value in self.forms.computed(*roots):
            node = self.of(self.forms.of(value), shape_of(value.type))
            if node is None:
                return None
            found[node, bit_width(value.type)] = None
        return list(found)
