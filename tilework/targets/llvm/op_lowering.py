"""What rules of every target work with: the values known so far, the builder of a function, and the lines of the source."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir.locations import name_of, source_positions
from tilework.targets.llvm import elementary, scalars
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.debug import LineTable
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.rules import Rules
from tilework.targets.llvm.values import Value

RULE_FILES = (elementary, scalars)  # importing these fills the table of all targets
Held = TypeVar("Held")


class OpLowering(ABC, Generic[Held]):
    """One function; of an IR value is known what a target holds of it."""

    device: str

    def __init__(self, module: Module, builder: Builder, rules: Rules, fuses: bool = True) -> None:
        self.module, self.builder = module, builder
        self.rules, self.elementwise = rules.resolved
        self.fuses = fuses  # whether a product and a sum may become one fused multiply-add
        self.values: dict[SSAValue, Held] = {}
        self.branches: Any = None  # the blocks of the function, where it has `cf` branches
        self.lines: LineTable | None = None

    def __getitem__(self, value: SSAValue) -> Held:
        return self.values[value]

    def __setitem__(self, value: SSAValue, made: Held) -> None:
        self.values[value] = made

    def function(self, name: str, *args: Value) -> Value:
        """An elementary function of f32 or f64 (`targets/llvm/math`): ``low.function("exp", x)``."""
        return FUNCTIONS[name](self.builder, args)

    def lower_block(self, block: Block) -> None:
        """Every op of a block in order."""
        for op in block.ops:
            self.lower(op)

    @abstractmethod
    def lower(self, op: Operation) -> None:
        """One op; its results become known."""

    def refuse(self, op: Operation, what: str) -> PassError:
        """The error about something that this target cannot do, at the user's line."""
        return PassError(f"{what} cannot be compiled for {self.device}", op.location)

    def describe(self, lines: LineTable, function: Operation) -> None:
        """Give every following instruction the line of its op, if `function` knows its own."""
        if places := source_positions(function.location):
            file, line, _ = places[0]
            lines.describe(self.builder.function, file, line)
            self.lines = lines
            self.locate(function)

    def locate(self, op: Operation) -> None:
        """What is built next comes from the source line of `op`."""
        if self.lines is not None and (places := source_positions(op.location)):
            self.builder.location = self.lines.location(self.builder.function, *places[0])

    def name_result(self, op: Operation, made: Value) -> None:
        """Tell debuggers, if they are told, that `made` is the variable to which the user assigned the result of `op`."""
        if self.lines is None or not self.lines.has_variables:
            return
        name, places = name_of(op.location), source_positions(op.location)
        if name is not None and places:
            self.lines.variable(self.builder, name, made, *places[0][:2])
