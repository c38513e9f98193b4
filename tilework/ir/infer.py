"""The types that follow from other types: `infer` of an op class, used by its reader and its builder.

    infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result"), "other": "result"}

The type of `result` is a function of that of `ptr`; `other` has the type of `result` (and the other way round). An
argument may be a property, as its Python value: ``{"result": (expanded_type, "src", "axis")}``; such a rule is for
builders alone. A fixed type stands for itself. ``{"$operands": "result"}`` is about every operand. Of a variadic operand each type is taken on its own. A kind that only one
type is of (`I32`) and the trait `SameType` say as much without a rule.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute, Operation

from tilework.ir.constraints import SameType
from tilework.ir.forms import FORMS, Fields

OPERANDS = "$operands"


@dataclass(frozen=True)
class Rule:
    """The type of `target`: that of the first source, or `function` of all sources."""

    target: str
    function: Callable[..., Attribute] | None
    sources: tuple[str, ...]
    fixed: Attribute | None = None

    def apply(self, types: Mapping[str, Any]) -> Any:
        if self.fixed is not None:
            return self.fixed
        first, *others = (types[source] for source in self.sources)
        if self.function is None:
            return first
        if isinstance(first, Attribute):
            return self.function(first, *others)
        return [self.function(type, *others) for type in first]


def rules_of(cls: type[Operation], fields: Fields) -> list[Rule]:
    """What the class says about its types, the surest first."""
    slots = [*fields.operands.values(), *fields.results.values()]
    rules = [Rule(slot.name, None, (), slot.only) for slot in slots if slot.only is not None]
    turned: list[Rule] = []
    declared = dict(FORMS[cls].infer) if cls in FORMS else {}
    if (source := declared.pop(OPERANDS, None)) is not None:
        declared = dict.fromkeys(fields.operands, source) | declared
    if cls.has_trait(SameType):
        declared |= {slot.name: slots[0].name for slot in slots[1:]}
    for target, rule in declared.items():
        if isinstance(rule, str):
            rules.append(Rule(target, None, (rule,)))
            turned.append(Rule(rule, None, (target,)))
        elif isinstance(rule, Attribute):
            rules.append(Rule(target, None, (), rule))
        else:
            function, *sources = rule
            rules.append(Rule(target, function, tuple(sources)))
    return rules + turned


def solve(cls: type[Operation], fields: Fields, known: Collection[str]) -> list[Rule]:
    """The rules to apply, in order, where the types of `known` are given."""
    given, order = set(known), []
    rules = rules_of(cls, fields)
    optional = {slot.name for slot in fields.operands.values() if slot.is_optional}
    while True:
        usable = (
            rule
            for rule in rules
            if rule.target not in given and all(source in given and source not in optional for source in rule.sources)
        )
        if (rule := next(usable, None)) is None:
            return order
        given.add(rule.target)
        order.append(rule)
