"""Passes: a class with a name, whose fields are its options; or a function, for a pass without options.

class SinkSplatPass(Pass):
    name = "tt-sink-splat"
    max_uses: int = 1

    def run(self, module: ModuleOp) -> None: ...

@function_pass("cse")
def eliminate_common_subexpressions(function: Operation) -> None: ...
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeVar, dataclass_transform

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir.functions import functions, functions_by_name, has_body, modules, ops_in_order
from tilework.ir.tt.function_ops import FuncOp
from tilework.light_dataclass import light_dataclass


@dataclass_transform(frozen_default=True)
class Pass(ABC):
    """A change of a module."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        light_dataclass(cls)

    @abstractmethod
    def run(self, module: ModuleOp) -> None: ...


Change = TypeVar("Change", bound=Callable[..., object])
DECLARED: dict[object, type[Pass]] = {}  # the passes that functions are


def declare(name: str, change: Change, run: Callable[[ModuleOp], object]) -> Change:
    """`change` is the pass `name`, which is to `run` on a module."""
    members = {"name": name, "run": lambda self, module: run(module), "__module__": change.__module__}
    DECLARED[change] = type(change.__name__, (Pass,), members)
    return change


def module_pass(name: str) -> Callable[[Change], Change]:
    """The function changes a module."""
    return lambda change: declare(name, change, change)


def function_pass(name: str) -> Callable[[Change], Change]:
    """The function changes each function that has a body, also in modules inside of the module."""
    return lambda change: declare(name, change, lambda module: list(map(change, filter(has_body, functions(module)))))


def names_pass(name: str) -> Callable[[Callable[[dict[str, FuncOp]], object]], object]:
    """The function changes the functions that can call each other, by name: those of one module, not of modules inside
    of it."""
    return lambda change: declare(
        name, change, lambda module: list(map(change, map(functions_by_name, modules(module))))
    )


def op_pass(name: str, *kinds: type[Operation]) -> Callable[[Change], Change]:
    """The function changes each op of the classes `kinds`, in the order of the program."""

    def each(module: ModuleOp) -> list[Operation]:
        return [op for op in ops_in_order(*module.regions) if type(op) in kinds]

    return lambda change: declare(name, change, lambda module: list(map(change, each(module))))
