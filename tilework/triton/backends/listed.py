"""The interface that programs know of Triton's backends, over the list of stages that a backend of tilework is."""

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.compile.stages import text_facts
from tilework.triton.backends.compiler import BaseBackend, Language


def plain(product: Any) -> Any:
    """A module as passes take it, out of the handle that programs hold (`_C.libtriton.ir.module`)."""
    return getattr(product, "wrapped", product)


def shown(product: Any) -> Any:
    """The product of a stage as programs see it: modules as handles, text and bytes as they are."""
    if isinstance(product, str | bytes) or hasattr(product, "wrapped"):
        return product
    from tilework.triton._C.libtriton import ir

    return ir.context().adopt(product)


class ListedBackend(BaseBackend):
    """A stage here takes (product of the stage before, metadata); tilework's take the product alone."""

    instrumentation = None

    def run_stage(
        self, stage: Callable[[Any], Any], name: str, product: Any, metadata: dict[str, Any], options: Any
    ) -> Any:
        """Run one of tilework's stages, and tell `metadata` what the launcher will have to know."""
        found = stage(plain(product))
        if isinstance(found, str):
            metadata |= text_facts(self, name, found, metadata.get("name", ""), options, ())  # pyright: ignore[reportArgumentType]
        return shown(found)

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        if language is not Language.TRITON:
            raise ValueError("tilework compiles kernels of the tile language, not Gluon")
        listed: Mapping[str, Any] = getattr(self, "stages")(options)  # noqa: B009  # of the class beside this one
        for name, stage in listed.items():
            stages[name] = self.two_arguments(name, stage, options)

    def two_arguments(self, name: str, stage: Callable[[Any], Any], options: Any) -> Callable[..., Any]:
        """A stage as a function of the product and the metadata."""
        return lambda product, metadata=None: self.run_stage(
            stage, name, product, metadata if metadata is not None else {}, options
        )

    def offer_stages(
        self, hook: Callable[..., Any], stages: Mapping[str, Any], options: Any, metadata: dict[str, Any]
    ) -> dict[str, Any]:
        """The stages after `hook` (`knobs.runtime.add_stages_inspection_hook`) has seen, and perhaps replaced, them."""
        offered = {name: self.two_arguments(name, stage, options) for name, stage in stages.items()}
        ours = dict(offered)
        hook(self, offered, options, Language.TRITON, self.target.arch)
        return {
            name: stages[name] if offered[name] is ours.get(name) else self.one_argument(offered[name], metadata)
            for name in offered
        }

    @staticmethod
    def one_argument(stage: Callable[..., Any], metadata: dict[str, Any]) -> Callable[[Any], Any]:
        """A stage of the user's as tilework calls it; it may leave the metadata out."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(stage).parameters.values()
        wants = sum(param.kind in kinds for param in parameters) >= 2 or any(
            param.kind is param.VAR_POSITIONAL for param in parameters
        )
        return lambda product: plain(stage(shown(product), *([metadata] if wants else [])))

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
