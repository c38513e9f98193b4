"""Targets and backends under the names Triton gives them.

`BaseBackend` is Triton's interface of a backend, for packages that bring one and programs that ask one about arguments. It is a
`Backend` of tilework: what `add_stages` lists are its stages, and what they write into their metadata are its facts.

    >>> BaseBackend.get_int_specialization(1024, align=True), BaseBackend.parse_attr("D")
    ('D', [['tt.divisibility', 16]])
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

from tilework.target import GPUTarget
from tilework.targets.base import Backend, Stage
from tilework.targets.options import NAMES, refuse_others, without_foreign

__all__ = ["BaseBackend", "GPUTarget", "Language"]

ALIGNMENT = 16


class Language(Enum):
    """What a source is written in."""

    TRITON = 0
    GLUON = 1


def plain(product: Any) -> Any:
    """A module as passes take it, out of the handle that programs hold (`_C.libtriton.ir.module`)."""
    return getattr(product, "wrapped", product)


def shown(product: Any) -> Any:
    """The product of a stage as programs see it: modules as handles, text and bytes as they are."""
    if isinstance(product, str | bytes) or hasattr(product, "wrapped"):
        return product
    from tilework.triton._C.libtriton import ir  # lazily: most programs never see a module

    return ir.context().adopt(product)


def one_argument(stage: Callable[..., Any], metadata: dict[str, Any]) -> Stage:
    """A stage of another package's as tilework calls it; it may leave the metadata out."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(stage).parameters.values()
    wants = sum(param.kind in kinds for param in parameters) >= 2 or any(
        param.kind is param.VAR_POSITIONAL for param in parameters
    )
    return lambda product: plain(stage(shown(product), *([metadata] if wants else [])))


class BaseBackend(Backend):
    """The compiler of one kind of target."""

    supports_native_tensor_specialization = True

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.told: dict[str, Any] = {}  # by the stages of `add_stages`, in their metadata
        assert self.supports_target(target), f"{type(self).__name__} does not compile for {target}"

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether it compiles for `target`."""

    @abstractmethod
    def parse_options(self, options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # Triton's name
        """Options from launch keywords."""

    def launch_options(self, settings: Mapping[str, Any]) -> Any:
        own = without_foreign(settings, self.target.backend)
        options = self.parse_options(own)
        refuse_others(own, (*NAMES, *vars(options)))  # every target takes the options of tilework
        return options

    @abstractmethod
    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        """Put functions from (product of the stage before, metadata) to a product into `stages`, in order."""

    @abstractmethod
    def load_dialects(self, context: Any) -> None:
        """Make dialects of its own known."""

    @abstractmethod
    def get_module_map(self) -> dict[str, ModuleType]:
        """Modules that stand for others in kernels, such as libdevice."""

    def stages(self, options: Any) -> dict[str, Stage]:
        listed: dict[str, Any] = {}
        takes_language = len(inspect.signature(self.add_stages).parameters) > 2
        self.add_stages(listed, options, *([Language.TRITON] if takes_language else []))
        return {name: one_argument(stage, self.told) for name, stage in listed.items()}

    def kernel_facts(self, stage: str, product: Any, name: str, options: Any, given: Collection[str]) -> dict[str, Any]:
        return dict(self.told)

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
