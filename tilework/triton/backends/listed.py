"""The interface that programs know of Triton's backends, over the list of stages that a backend of tilework is."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import ModuleType
from typing import Any

from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import Stage
from tilework.targets.options import CompileOptions
from tilework.triton.backends.compiler import BaseBackend, Language, one_argument, plain, shown


def known(opts: Mapping[str, Any], options: type[CompileOptions]) -> dict[str, Any]:
    """The options that there are. Triton's backends take no notice of others, launches refuse them (`launch_options`)."""
    names = {field.name for field in fields(options)}
    return {name: value for name, value in opts.items() if name in names}


class ListedBackend(BaseBackend):
    """A stage here takes (product of the stage before, metadata); tilework's take the product alone."""

    instrumentation = None

    def run_stage(
        self, stage: Callable[[Any], Any], name: str, product: Any, metadata: dict[str, Any], options: Any
    ) -> Any:
        """Run one of tilework's stages, and tell `metadata` what the launcher will have to know."""
        found = stage(plain(product))
        metadata |= self.kernel_facts(name, found, metadata.get("name", ""), options, ())
        return shown(found)

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        if language is not Language.TRITON:
            raise ValueError("tilework compiles kernels of the tile language, not Gluon")
        for name, stage in self.stages(options).items():  # of the class beside this one
            stages[name] = self.two_arguments(name, stage, options)

    def two_arguments(self, name: str, stage: Callable[[Any], Any], options: Any) -> Callable[..., Any]:
        """A stage as a function of the product and the metadata."""
        return lambda product, metadata=None: self.run_stage(
            stage, name, product, metadata if metadata is not None else {}, options
        )

    def inspected(
        self, hook: Callable[..., Any], stages: dict[str, Stage], options: Any, facts: dict[str, Any]
    ) -> dict[str, Stage]:
        offered = {name: self.two_arguments(name, stage, options) for name, stage in stages.items()}
        ours = dict(offered)
        hook(self, offered, options, Language.TRITON, self.target.arch)
        return {
            name: stages[name] if offered[name] is ours.get(name) else one_argument(offered[name], facts)
            for name in offered
        }

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
