"""From a kernel, or an IR file, to the product of any stage.

    >>> source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> print(lower(source, GPUTarget("cuda", 90, 32))["ttir"])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.backends.base import GPUTarget, find_backend
from tilework.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.options import FrontendOptions
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.language.function import JITFunction

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "IRSource",
    "UnsupportedLanguageConstruct",
    "lower",
]

IR_EXTENSIONS = ("ttir",)


@dataclass(frozen=True)
class ASTSource:
    """A kernel with the types of its arguments; parameters that are not in `signature` must be constants."""

    fn: JITFunction
    signature: Mapping[str, Any]
    constexprs: Mapping[Any, Any] = field(default_factory=dict)
    attrs: Mapping[tuple[int, ...], Sequence[Sequence[Any]]] = field(default_factory=dict)

    ext = "ttir"

    def module(self, options: FrontendOptions) -> Any:
        """The module before any pass."""
        return compile_to_ttir(self.fn, self.signature, self.constexprs, self.attrs, options)


@dataclass(frozen=True)
class IRSource:
    """An IR file; its extension says which stage it is the product of."""

    path: Path

    @property
    def ext(self) -> str:
        return self.path.suffix.lstrip(".")

    def module(self, options: FrontendOptions) -> Any:
        """The module as it stands in the file."""
        if self.ext not in IR_EXTENSIONS:
            raise ValueError(f"{self.path.name}: a source is a .{' or .'.join(IR_EXTENSIONS)} file")
        return parse_module(self.path.read_text(), str(self.path))


def frontend_options(target: GPUTarget, settings: Mapping[str, Any]) -> FrontendOptions:
    """What the frontend must know, from the target, the user's settings and the knobs."""
    known = {
        "allow_non_constexpr_globals": knobs.compilation.allow_non_constexpr_globals,
        "front_end_debugging": knobs.compilation.front_end_debugging,
        "f32_default": knobs.language.fp32_default,
        "debug": knobs.runtime.debug,
    } | {key: value for key, value in settings.items() if value is not None}
    if target.backend == "cpu":
        return FrontendOptions.for_cpu(**known)
    assert isinstance(target.arch, int)
    return FrontendOptions.for_cuda(target.arch, **known)


def lower(
    source: ASTSource | IRSource, target: GPUTarget, stages: Sequence[str] = ("ttir",), **settings: Any
) -> dict[str, str]:
    """The text of each asked-for stage: `lower(source, target, ["ttir"], num_warps=8)["ttir"]`."""
    backend = find_backend(target)
    available = backend.stages(settings)
    for name in stages:
        if name not in available:
            raise ValueError(f"target {target} has no stage {name!r}; it has {', '.join(available)}")
    product = source.module(frontend_options(target, settings))
    texts: dict[str, str] = {}
    for name, stage in available.items():
        product = stage(product)
        if name in stages:
            texts[name] = print_module(product, debuginfo=not knobs.compilation.disable_line_info)
        if len(texts) == len(stages):
            break
    return texts
