"""Targets and backends under the names Triton gives them.

A backend of this package is a `tilework.targets.base.Backend`. `BaseBackend` is the older, wider interface, for
programs that bring a backend of their own or ask one about arguments:

    >>> BaseBackend.get_int_specialization(1024, align=True), BaseBackend.parse_attr("D")
    ('D', [['tt.divisibility', 16]])
"""

from abc import ABC, abstractmethod
from enum import Enum
from types import ModuleType
from typing import Any

from tilework.targets.base import GPUTarget

__all__ = ["BaseBackend", "GPUTarget", "Language"]

ALIGNMENT = 16


class Language(Enum):
    """What a source is written in."""

    TRITON = 0
    GLUON = 1


class BaseBackend(ABC):
    """The compiler of one kind of target."""

    supports_native_tensor_specialization = True

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        assert self.supports_target(target), f"{type(self).__name__} does not compile for {target}"

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether it compiles for `target`."""

    @abstractmethod
    def hash(self) -> str:
        """What identifies the tools behind the stages."""

    @abstractmethod
    def parse_options(self, options: dict[str, Any]) -> Any:
        """Options from launch keywords."""

    @abstractmethod
    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        """Put functions from (product of the stage before, metadata) to a product into `stages`, in order."""

    @abstractmethod
    def load_dialects(self, context: Any) -> None:
        """Make dialects of its own known."""

    @abstractmethod
    def get_module_map(self) -> dict[str, ModuleType]:
        """Modules that stand for others in kernels, such as libdevice."""

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The argument attributes that a key stands for."""
        return [["tt.divisibility", ALIGNMENT]] if "D" in desc else []

    @staticmethod
    def get_int_specialization(arg: int, **kwargs: Any) -> str:
        """The key of an integer."""
        return "D" if kwargs.get("align", False) and arg % ALIGNMENT == 0 else ""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """The key of a pointer."""
        return "D" if kwargs.get("align", False) and arg.data_ptr() % ALIGNMENT == 0 else ""
