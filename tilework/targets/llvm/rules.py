"""Tables of rules that turn ops into LLVM: one for what is the same on every target, and in front of it one for each
target.

    @scalar_rule(arith.AddiOp)                                  # everywhere
    def lower_addi(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
        return low.builder.add(lhs, rhs)

    NEUTRAL = Rules(COMMON)

    @NEUTRAL.lowers(arith.DivfOp, elementwise=True, overrides=True)
    def lower_quotient(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value: ...

An *elementwise* rule is given the operands of its op and returns the result; all operands have the same shape, scalars
or vectors of one width. Other rules read `low[operand]`. A class has one rule in a table, and a table says what it
overrides. `scalars.py` and `scalars.py` fill the table of all targets. Other files are imported when a module has one
of their ops:

    MORE_RULES = {"mine.dot_rules": "tt.dot ttg.local_dot", ...}
    load_rules(MORE_RULES, module)
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from tilework.ir.enums import RMWOp
from tilework.ir.functions import ops_in_order
from tilework.ir.types import element_type

Rule = Callable[..., Any]
Table = dict[type[Operation], Rule]


class Resolved(NamedTuple):
    """The rules that count: of whole ops, and of single registers. No op has both."""

    whole: Table
    elementwise: Table


NONE = Resolved({}, {})


class Rules:
    """A table of rules in front of another."""

    def __init__(self, behind: "Rules | None" = None) -> None:
        self.behind = behind
        self.own = Resolved({}, {})
        self.overriding: set[type[Operation]] = set()
        self.differing: set[type[Operation]] = set()
        self.found: dict[bool, tuple[int, Resolved]] = {}  # of so many rules, also those behind: the exact ones, or all

    def lowers(
        self, *classes: type[Operation], elementwise: bool = False, overrides: bool = False, differs: bool = False
    ) -> Callable[[Rule], Rule]:
        """Register the rule of one or more op classes; a class has one rule, and `overrides` that of the table behind.

        A rule that `differs` may give other bits than that one, and is none of the `exact` ones.
        """

        def register(rule: Rule) -> Rule:
            if overrides:  # first: another thread may look at the rules
                self.overriding.update(classes)
            if differs:
                self.differing.update(classes)
            for cls in classes:
                assert cls not in self.own.whole and cls not in self.own.elementwise, f"{cls.name} has a rule already"
                self.own[elementwise][cls] = rule
            return rule

        return register

    @property
    def size(self) -> int:
        """The number of rules, with those of the fallback."""
        return len(self.own.whole) + len(self.own.elementwise) + (self.behind.size if self.behind is not None else 0)

    @property
    def known(self) -> set[type[Operation]]:
        """The op classes with a rule here or behind."""
        return {*self.own.whole, *self.own.elementwise, *(self.behind.known if self.behind is not None else ())}

    @property
    def resolved(self) -> Resolved:
        """All rules of the files that are imported."""
        return self.of(is_exact=False)

    @property
    def exact(self) -> Resolved:
        """The rules of kernels that shall compute the same bits everywhere: none that differs from the one it
        overrides.
        """
        return self.of(is_exact=True)

    def of(self, is_exact: bool) -> Resolved:
        count, found = self.found.get(is_exact, (0, NONE))
        if count != self.size:
            behind, without = NONE, self.differing if is_exact else set[type[Operation]]()
            if self.behind is not None:
                behind = self.behind.of(is_exact)
                hidden = self.behind.known & {*self.own.whole, *self.own.elementwise}
                wrong = sorted(cls.name for cls in hidden - self.overriding)
                assert not wrong, f"rules that replace others must say so: {', '.join(wrong)}"
            count, found = self.size, self.in_front(behind, without)
            self.found[is_exact] = count, found
        return found

    def in_front(self, behind: Resolved, without: set[type[Operation]]) -> Resolved:
        """The own rules, but for those of some classes, in place of those behind."""
        found = Resolved(*map(dict, behind))
        for kind, table in enumerate(self.own):
            for cls, rule in dict(table).items():  # of this moment: another thread may import a file of rules
                if cls not in without:
                    found[1 - kind].pop(cls, None)
                    found[kind][cls] = rule
        return found


def load_rules(files: Mapping[str, str], module: Operation) -> set[str]:
    """Import those of the `files` that may have a rule of one of its ops: beside each is how the names of those begin.

    The names of its ops."""
    present = {op.name for op in ops_in_order(*module.regions)}
    for file, starts in files.items():
        if any(name.startswith(tuple(starts.split())) for name in present):
            import_module(file)
    return present


CHANGES = {kind: kind.keyword for kind in RMWOp} | {RMWOp.EXCH: "xchg"}  # what LLVM calls atomics
COMMON = Rules()
SCALARS = COMMON.own.elementwise


def scalar_rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the elementwise rule of all targets."""
    return COMMON.lowers(*classes, elementwise=True)


def result_type(op: Operation) -> Attribute:
    """The type of one element of the result."""
    return element_type(op.results[0].type)


def operand_type(op: Operation) -> Attribute:
    """The type of one element of the first operand."""
    return element_type(op.operands[0].type)


def text_of(op: Operation, name: str) -> str:
    """A string property of an op."""
    found = op.properties[name]
    assert isinstance(found, StringAttr)
    return found.data
