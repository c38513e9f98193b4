"""What a backend is: a target, its options, and a list of named stages.

    >>> backend = find_backend(GPUTarget.parse("cuda:90"))
    >>> list(backend.stages(backend.parse_options({})))
    ['ttir', 'ttgir', 'llir', 'ptx', 'cubin']

A stage turns the product of the stage before it into its own. Its name is also the file extension of its product, so a
compilation can be entered and left at any stage. Other packages join through the entry point group `tilework.backends`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from tilework.plugins import plugins
from tilework.target import GPUTarget
from tilework.targets.observe import observer
from tilework.targets.options import CompileOptions

BUILTIN = {
    "cuda": "tilework.targets.nvidia.pipeline:CudaBackend",
    "cpu": "tilework.targets.cpu.pipeline:CpuBackend",
}
GROUP = "tilework.backends"


Stage = Callable[[Any], Any]


class Backend(Protocol):
    """A target's compiler. `binary_ext` is the stage whose product the driver loads; compiling for a launch ends there.

    A stage's product is a module, text or bytes. If there is a method ``metadata(stage, text) -> dict``, it is asked what
    the launcher must know about the kernel after every stage whose product is text. More that a backend may have:
    ``entering(options)``, by stage what is done with a file that the user brings as its product; ``binary_after(stage,
    options)``, where a compilation ends that such a file entered;
    ``kernel_facts(stage, text, name, options, given)``, as `metadata`, with the options that the user named.
    """

    target: GPUTarget
    binary_ext: str

    def __init__(self, target: GPUTarget) -> None: ...

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        """Options from launch keywords; unknown ones are a KeyError."""
        ...

    def stages(self, options: CompileOptions) -> dict[str, Stage]:
        """The stages in order: name to function from the previous product (the frontend's module) to its own."""
        ...

    def hash(self) -> str:
        """What identifies the tools behind the stages, for the cache key."""
        ...


def find_backend(target: GPUTarget) -> Backend:
    """The backend for a target, from this package or one that registered itself."""
    return backend_class(target.backend)(target)


@cache
def backend_class(name: str) -> type[Backend]:
    """The class registered for a backend name."""
    if name in BUILTIN:
        module, _, attribute = BUILTIN[name].partition(":")
        return getattr(import_module(module), attribute)
    for entry in plugins(GROUP):
        if entry.name == name:
            return entry.load()
    raise ValueError(f"no backend called {name!r}; known: {', '.join(sorted(BUILTIN))}")


@cache
def pass_of(item: str) -> Any:
    """The pass that an item of a pipeline names, with its options; passes have no state, so one serves all."""
    from tilework.transforms.registry import parse_pipeline

    (found,) = parse_pipeline(item)
    return found


def run_passes(module: Any, names: list[str], tag: str = "passes") -> Any:
    """Run passes, written as in a pipeline (``name{option=value}``), in order, in place; `tag` names them to observers."""
    if (watching := observer(module, names, tag)) is None:
        for name in names:
            pass_of(name).apply(None, module)
        return module
    with watching:
        for name in names:
            watching.before(name, module)
            pass_of(name).apply(None, module)
            watching.after(name)
    return module
