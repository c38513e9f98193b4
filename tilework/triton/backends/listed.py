"""The interface that programs know of Triton's backends, over the list of stages that a backend of tilework is."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tilework.compiler import frontend_options
from tilework.triton.backends.compiler import BaseBackend, Language


class ListedBackend(BaseBackend):
    """A stage here takes (product of the stage before, metadata); tilework's take the product alone."""

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        if language is not Language.TRITON:
            raise ValueError("tilework compiles kernels of the tile language, not Gluon")
        listed: Mapping[str, Any] = getattr(self, "stages")(options)  # noqa: B009  # of the class beside this one
        for name, stage in listed.items():
            stages[name] = lambda product, metadata, stage=stage: stage(product)

    def load_dialects(self, ctx: Any) -> None:
        """Nothing to do: a context has every dialect."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """Nothing is replaced: `tl.extra.libdevice` resolves by target in the compiler."""
        return {}

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """What the frontend asks the target: the smallest dot that it takes."""
        return {"min_dot_size": frontend_options(self.target, options).min_dot_size}

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """What every launch passes to the launcher."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared
