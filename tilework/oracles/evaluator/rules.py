"""The table of rules, one for each op, and the errors that they raise.

    @evaluates(tt.SplatOp)
    def eval_splat(machine: Machine, op: Operation, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(op.results[0].type))

A rule receives the machine, the op and the values of its operands, and returns the value of the result, or a list of
the values of all results. An *elementwise* rule also works if an array replaces a scalar of the program; the combine
region of a reduction that has only such ops is executed on whole sub-arrays at once.

A rule raises `Fault` with the reason alone; the machine, which knows the op and the running program, converts it to an
`EvaluationError`:

    kernel.py:7:13: error: tt.load reads element 1030 of argument 'x', which has 1024 elements [program (1, 0, 0)]

"""

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from tilework.ir.locations import location_text

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
    """Register a table of short rules."""
    for op, rule in table.items():
        evaluates(op, elementwise=elementwise)(rule)


class Fault(Exception):
    """The reason of an `EvaluationError`, raised where neither op nor program is known."""


class EvaluationError(Exception):
    """Execution stopped at `location` (text such as ``kernel.py:7:13``): the op named `op` and the `reason`."""

    def __init__(self, reason: str, op: str, location: str, program: tuple[int, int, int]) -> None:
        super().__init__(f"{location}: error: {op} {reason} [program {program}]")
        self.reason, self.op, self.location, self.program = reason, op, location, program


def fault_at(fault: Fault, op: Operation, program: tuple[int, int, int]) -> EvaluationError:
    """Return the error for a `fault` that `op` of `program` raised."""
    return EvaluationError(str(fault), op.name, location_text(op.location, innermost=True) or "<unknown>", program)
