"""The rules that turn elementwise ops into LLVM, the same on every target; targets put their own in front.

    @scalar_rule(arith.AddiOp)
    def lower_addi(low: Emitting, op: Operation, lhs: Value, rhs: Value) -> Value:
        return low.builder.add(lhs, rhs)

A rule is given the operands of its op and returns the result. All operands have the same shape, scalars or vectors of one
width. `scalars.py` and `elementary.py` fill the table.
"""

from collections.abc import Callable
from typing import Any, Protocol

from xdsl.ir import Attribute, Operation

from tilework.ir.types import element_type
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.values import Value

Rule = Callable[..., Any]
SCALARS: dict[type[Operation], Rule] = {}


class Emitting(Protocol):
    """What these rules need of a target."""

    @property
    def device(self) -> str:
        """Its name in messages: ``the CPU``."""
        ...

    @property
    def builder(self) -> Builder: ...

    @property
    def fuses(self) -> bool:
        """Whether a product and a sum may become one fused multiply-add."""
        ...

    def function(self, name: str, *args: Value) -> Value:
        """An elementary function of f32 or f64: ``low.function("exp", x)``."""
        ...


def scalar_rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the rule of one or more op classes."""

    def register(rule: Rule) -> Rule:
        for cls in classes:
            assert cls not in SCALARS, f"{cls.name} has a rule already"
            SCALARS[cls] = rule
        return rule

    return register


def result_type(op: Operation) -> Attribute:
    """The type of one element of the result."""
    return element_type(op.results[0].type)


def operand_type(op: Operation) -> Attribute:
    """The type of one element of the first operand."""
    return element_type(op.operands[0].type)
