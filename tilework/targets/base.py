"""A backend: a target, its options, and a list of named stages.

    >>> backend = find_backend(GPUTarget.parse("cuda:90"))
    >>> list(backend.stages(backend.parse_options({})))
    ['ttir', 'ttgir', 'llir', 'ptx', 'cubin']

A stage transforms the output of the previous stage. Its name is also the file extension of its output, so a
compilation can be entered and left at any stage. Other packages join through the entry point group `tilework.backends`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from tilework.process.plugins import find, plugins
from tilework.target import GPUTarget

if TYPE_CHECKING:
    from tilework.target import Target
    from tilework.targets.options import CompileOptions

GROUP = "tilework.backends"
IR_STAGES = ("ttir", "ttcir", "ttgir")  # their outputs are modules
TEXT_STAGES = ("llir", "ptx", "amdgcn")  # these are text as it is; all others are bytes

Stage = Callable[[Any], Any]
View = tuple[str, Callable[[Any, Mapping[str, Any]], str]]
Library = tuple[str, Callable[[Any, Mapping[str, Any]], bytes]]


class Backend(ABC):
    """A target's compiler. The output of a stage is a module, text or bytes."""

    target: GPUTarget
    binary_ext: str  # the stage whose output the driver loads; compiling for a launch ends there
    specializes_small_arrays: bool = False  # kernels are compiled for arrays of less than 2 GiB
    # more texts by name: the stage that they show, and how, from its output and the options of the compilation, among
    # which is `target`
    views: ClassVar[Mapping[str, View]] = {}
    # binaries that are built only when a caller reads them from `asm`; their functions also get the kernel's `source`
    libraries: ClassVar[Mapping[str, Library]] = {}

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @abstractmethod
    def parse_options(self, settings: Mapping[str, Any]) -> "CompileOptions":
        """Options from launch keywords; unknown ones are a KeyError."""

    def launch_options(self, settings: Mapping[str, Any]) -> "CompileOptions":
        """The same for a launch, which refuses names that there are not, whatever `parse_options` does."""
        return self.parse_options(settings)

    def option_names(self) -> Collection[str]:
        """Return the options that a launch can choose, also by a keyword that is a parameter of the kernel, too."""
        from tilework.targets.options import CompileOptions, chosen_names  # lazily: rarely needed

        return chosen_names(CompileOptions)

    def launch_defaults(self) -> dict[str, Any]:
        """Options of kernels that are compiled to be launched here, where the launch names no others."""
        return {}

    def target_for(self, options: "CompileOptions") -> "Target":
        """The target of the code, where the options can select another architecture than the device's."""
        from tilework.target import Target  # lazily: what a bundle serves is not compiled

        return Target.of(self.target)

    @abstractmethod
    def stages(self, options: "CompileOptions") -> dict[str, Stage]:
        """The stages in order: name to function from the previous output (the frontend's module) to its own."""

    def separate_stages(self, options: "CompileOptions") -> dict[str, Stage]:
        """The stages for a user who replaces some: also those that compilation usually skips."""
        return self.stages(options)

    @abstractmethod
    def hash(self) -> str:
        """A key of the tools behind the stages, for the cache."""

    def entering(self, options: "CompileOptions") -> Mapping[str, Stage]:
        """Return by stage a function that converts a file that the user provides as its output; others are used
        unchanged."""
        return {}

    def binary_after(self, stage: str, options: "CompileOptions") -> str:
        """The stage that the driver loads, of a kernel that the output of `stage` describes."""
        return self.binary_ext

    def kernel_facts(
        self, stage: str, artifact: Any, name: str, options: "CompileOptions", given: Collection[str]
    ) -> dict[str, Any]:
        """The facts that the launcher needs, from the output of a stage for the kernel `name`; `given` are the options
        that the user set.
        """
        return {}

    def check_fit(  # noqa: B027
        self, stage: str, artifact: Any, options: "CompileOptions", properties: Mapping[str, int]
    ) -> None:
        """Raise DoesNotFit if the output of a stage shows that a device with these properties cannot run it."""

    @property
    def capability(self) -> int | None:
        """The compute capability; None for targets whose architectures have names."""
        return self.target.arch if isinstance(self.target.arch, int) else None

    def inspected(
        self, hook: Callable[..., Any], stages: dict[str, Stage], options: "CompileOptions", facts: dict[str, Any]
    ) -> dict[str, Stage]:
        """The stages after the user's hook (`knobs.runtime.add_stages_inspection_hook`) has seen, and perhaps replaced,
        them.

        `facts` is where stages of the hook leave what the launcher must know.
        """
        hook(self, stages, options, 0, self.capability)
        return stages


def find_backend(target: GPUTarget) -> Backend:
    """Return the backend for a target, from this package or from one that registered a backend.

    Example:
        from tilework.compiler import GPUTarget, make_backend

        backend = make_backend(GPUTarget("cuda", 90, 32))
        assert list(backend.stages(backend.parse_options({})))[:2] == ["ttir", "ttgir"]
    """
    return backend_class(target.backend)(target)


def backend_class(name: str) -> type[Backend]:
    """The class registered for a backend name."""
    if (found := find(GROUP, name)) is not None:
        return found.load()
    known = sorted(plugin.name for plugin in plugins(GROUP))
    raise ValueError(f"no backend called {name!r}; known: {', '.join(known)}")


def llvmlite_release() -> str:
    import llvmlite  # lazily: the package says its version, and loads LLVM only when that is used

    return llvmlite.__version__


@cache
def pass_of(item: str) -> Any:
    """The pass that an item of a pipeline names, with its options; passes have no state, so one serves all."""
    from tilework.transforms.registry import parse_pipeline  # lazily: the compiler loads when something is compiled

    (found,) = parse_pipeline(item)
    return found


def run_needed(module: Any, names: list[str]) -> None:
    """Run passes in order; those that have nothing to do are not even loaded."""
    # lazily: the compiler loads when something is compiled
    from tilework.transforms.registry import NEEDS, Present

    present: Present | None = None  # in the module, if nothing has changed it since
    for name in names:
        if (needs := NEEDS.get(name.partition("{")[0])) is not None:
            if present is None:
                present = Present(module)
            if not present.serves(needs):
                continue
        pass_of(name).run(module)
        present = None


def run_passes(module: Any, names: list[str], tag: str = "passes") -> Any:
    """Run passes, written as in a pipeline (``name{option=value}``), in order, in place; `tag` names them to
    observers.
    """
    from tilework.targets.observe import observer  # lazily: what a bundle serves is not compiled

    if (watching := observer(module, names, tag)) is None:
        run_needed(module, names)
        return module
    with watching:
        for name in names:
            watching.before(name, module)
            pass_of(name).run(module)
            watching.after(name)
    return module
