"""Which function executes which op.

    @evaluates(tt.SplatOp)
    def eval_splat(machine: Machine, op: Operation, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(op.results[0].type))

A rule receives the machine, the op and the values of its operands, and returns the value of the result, or a list of the values of all
results. An *elementwise* rule also works when a scalar of the program is replaced by an array of
scalars; the combine region of a reduction made only of such ops is executed on whole sub-arrays at once.
"""

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

Rule = Callable[..., Any]

RULES: dict[type[Operation], Rule] = {}
ELEMENTWISE: set[type[Operation]] = set()


def evaluates(*ops: type[Operation], elementwise: bool = False) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of each of `ops`."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            assert op not in RULES, f"two rules for {op.name}"
            RULES[op] = rule
        if elementwise:
            ELEMENTWISE.update(ops)
        return rule

    return register


def rules(table: dict[type[Operation], Rule], elementwise: bool = False) -> None:
    """Register many short ones."""
    for op, rule in table.items():
        evaluates(op, elementwise=elementwise)(rule)
