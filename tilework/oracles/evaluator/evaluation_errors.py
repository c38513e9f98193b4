"""What goes wrong while a module is executed, always with the place in the program.

    kernel.py:7:13: error: tt.load reads element 1030 of argument 'x', which has 1024 elements [program (1, 0, 0)]

A rule of the evaluator raises `Fault` with the words alone; the machine, which knows the op and the program that
was running, turns it into an `EvaluationError`.
"""

from xdsl.ir import Operation

from tilework.ir.locations import location_text


class Fault(Exception):
    """The words of an `EvaluationError`, raised where neither op nor program is known."""


class EvaluationError(Exception):
    """Execution stopped at `location` (text such as ``kernel.py:7:13``): the op named `op` and the `reason`."""

    def __init__(self, reason: str, op: str, location: str, program: tuple[int, int, int]) -> None:
        super().__init__(f"{location}: error: {op} {reason} [program {program}]")
        self.reason, self.op, self.location, self.program = reason, op, location, program


def fault_at(fault: Fault, op: Operation, program: tuple[int, int, int]) -> EvaluationError:
    """The error that `fault` is when `op` of `program` raised it."""
    return EvaluationError(str(fault), op.name, location_text(op.location, innermost=True) or "<unknown>", program)
