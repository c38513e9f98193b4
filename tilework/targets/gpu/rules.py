"""Tables of rules: the neutral one, which the files of this folder fill, and one of each vendor in front of it.

    @lowers(tt.SplatOp)
    def lower_splat(low: Lowering, op: Operation) -> Registers:
        return low[op.operands[0]] * register_count(op.results[0].type)

    TOY = Rules(NEUTRAL)

    @TOY.lowers(tt.DotOp, overrides=True)       # a vendor says where it replaces a neutral rule
    def lower_dot(low: Lowering, op: Operation) -> Registers: ...

A rule returns the registers of its result, a list of those for several results, or None. An *elementwise* rule is given one
register of each operand and returns one of the result; what has no rule here goes the way of all targets
(`targets/llvm/rules.py`).
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from xdsl.ir import Operation

from tilework.targets.llvm import elementary, scalars
from tilework.targets.llvm.rules import SCALARS

Rule = Callable[..., Any]
Table = dict[type[Operation], Rule]

RULE_FILES = (elementary, scalars)  # importing these fills SCALARS


class Resolved(NamedTuple):
    """The rules that count: of whole ops, and of single registers. No op has both."""

    whole: Table
    elementwise: Table


class Rules:
    """A table of rules in front of another."""

    def __init__(self, behind: "Rules | None" = None) -> None:
        self.behind = behind
        self.own = Resolved({}, {})
        self.overriding: set[type[Operation]] = set()

    def lowers(
        self, *classes: type[Operation], elementwise: bool = False, overrides: bool = False
    ) -> Callable[[Rule], Rule]:
        """Register the rule of one or more op classes; a class has one rule, and `overrides` that of the table behind."""

        def register(rule: Rule) -> Rule:
            for cls in classes:
                assert cls not in self.own.whole and cls not in self.own.elementwise, f"{cls.name} has a rule already"
                self.own[elementwise][cls] = rule
            if overrides:
                self.overriding.update(classes)
            return rule

        return register

    @property
    def known(self) -> set[type[Operation]]:
        """What has a rule here or behind."""
        return {*self.own.whole, *self.own.elementwise, *(self.behind.known if self.behind is not None else ())}

    @cached_property
    def resolved(self) -> Resolved:
        """All rules, once the files that register them are imported."""
        found, hidden = Resolved({}, dict(SCALARS)), set[type[Operation]]()
        if self.behind is not None:
            found = Resolved(*map(dict, self.behind.resolved))
            hidden = self.behind.known & {*self.own.whole, *self.own.elementwise}
        wrong = sorted(cls.name for cls in hidden ^ self.overriding)
        assert not wrong, f"rules that replace others must say so, and only they: {', '.join(wrong)}"
        for kind, table in enumerate(self.own):
            for cls, rule in table.items():
                found[1 - kind].pop(cls, None)
                found[kind][cls] = rule
        return found


NEUTRAL = Rules()
lowers = NEUTRAL.lowers
