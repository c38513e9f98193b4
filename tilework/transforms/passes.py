"""What a pass is: a class with a name, whose fields are its options.

class SinkSplatPass(FunctionPass):
    name = "tt-sink-splat"
    max_uses: int = 1

    def run_on(self, function: Operation) -> None: ...
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir.functions import functions, has_body


@dataclass_transform(frozen_default=True)
class Pass(ABC):
    """A change of a module."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @abstractmethod
    def run(self, module: ModuleOp) -> None: ...


class FunctionPass(Pass):
    """A change of each function that has a body, also in modules inside of the module."""

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            if has_body(function):
                self.run_on(function)

    @abstractmethod
    def run_on(self, function: Operation) -> None: ...
