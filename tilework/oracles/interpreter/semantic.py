"""The semantic object of the interpreter: it carries out `tilework.language.semantic.Semantic` over NumPy arrays.

The families inherit from each other in the order in which they use each other:

    Values, Operators, Shapes, Reductions, Descriptors, Access, Dots, Program
"""

from typing import Any

from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.running_program import Program


class Semantic(Program):
    """Carries out the operations of one launch."""

    def __init__(self, options: Any, memory: Memory, grid: tuple[int, int, int]) -> None:
        super().__init__(options)
        self.memory = memory
        memory.is_reproducible = options.reproducible
        self.grid = grid

    def enter_program(self, program: tuple[int, int, int]) -> None:
        """Become another program of the grid."""
        self.program = self.memory.program = program
