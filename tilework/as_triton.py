"""Run programs written for Triton: `import triton` gives tilework, in this process only.

    import tilework
    tilework.as_triton()
    import triton                      # this is tilework
    import triton.language as tl       # and this tilework.language

or, for a program that shall stay as it is:

    python -m tilework.as_triton script.py --its arguments
    python -m tilework.as_triton -m pytest tests

Submodules are the same objects under both names: a knob set as `triton.knobs` is set in `tilework.knobs`, and classes
compare equal; only `triton.__version__` is Triton's. An installed Triton is not looked at; one that was already imported is an error, because objects of two compilers
would meet. Processes that the program starts are on their own: they call `as_triton` too, or run under the command.

Most of Triton's modules have the same name here. `PLACES` lists those that live elsewhere, and `EMPTY` those that exist
only to have others inside.
"""

import builtins
import importlib
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

PLACES = {
    "triton._C.libtriton": "tilework.tools.native_names",
    "triton._filecheck": "tilework.tools.filecheck",
    "triton._internal_testing": "tilework.tools.internal_testing",
    "triton._utils": "tilework.language.dtypes",
    "triton.compiler.code_generator": "tilework.frontend.generator",
    "triton.compiler.compiler": "tilework.compiler",
    "triton.compiler.errors": "tilework.errors",
    "triton.experimental.gluon.language._layouts": "tilework.layouts.shared",
    "triton.experimental.gluon.nvidia.hopper": "tilework.tools.gluon_descriptor",
    "triton.runtime.interpreter": "tilework.interpreter",
}
EMPTY = {
    "triton._C": "",
    "triton.experimental": "",
    "triton.experimental.gluon": "tilework does not compile Gluon, only the tile language",
    "triton.experimental.gluon.language": "tilework does not compile Gluon, only the tile language",
    "triton.experimental.gluon.nvidia": "tilework does not compile Gluon, only the tile language",
}
ROOT, OURS = "triton", "tilework"
TRITON_VERSION = "3.6.0"  # programs choose their code paths by it


def place_of(name: str) -> str:
    """The module that stands for one of Triton's: ``triton.knobs`` -> ``tilework.knobs``."""
    return PLACES.get(name) or OURS + name.removeprefix(ROOT)


def exists(name: str) -> bool:
    """Whether there is such a module of ours."""
    parent = name.rpartition(".")[0]
    if parent and not hasattr(importlib.import_module(parent), "__path__"):
        return False
    return importlib.util.find_spec(name) is not None


class EmptyModule(ModuleType):
    """A package of Triton's that only has other modules inside; `reason` says why there is nothing else."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason or "Only its submodules exist in tilework.")
        self.__path__: list[str] = []
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}. {self.reason}".rstrip(". "))


class RootModule(ModuleType):
    """`triton` itself: tilework under Triton's name, and with the version of Triton whose language it speaks."""

    def __init__(self) -> None:
        super().__init__(ROOT, sys.modules[OURS].__doc__)
        self.__path__: list[str] = []
        self.__version__ = TRITON_VERSION

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[OURS], name)

    def __dir__(self) -> list[str]:
        return dir(sys.modules[OURS])


class AliasLoader(Loader):
    """Answers an import with a module that has another name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name in EMPTY:
            return EmptyModule(spec.name, EMPTY[spec.name])
        module = importlib.import_module(place_of(spec.name))
        if spec.name == ROOT:
            adopt_children(spec.name, module)
            return RootModule()
        self.own_spec = module.__spec__
        adopt_children(spec.name, module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if not isinstance(module, EmptyModule | RootModule):
            module.__spec__ = self.own_spec  # the import machinery has just overwritten it


class TritonFinder(MetaPathFinder):
    """Stands in front of all other finders, and knows every module called triton."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != ROOT:
            return None
        if fullname in EMPTY or exists(place_of(fullname)):
            return ModuleSpec(fullname, AliasLoader(), is_package=True)
        return None


def adopt_children(name: str, module: ModuleType) -> None:
    """Name what is inside a module too, where an import could not find it or would replace what the attribute means.

    `tilework.compiler` is no package, so ``import triton.compiler.errors`` would stop at it; and an import of
    ``triton.runtime.driver`` would put the module where the driver object is.
    """
    for inner in sys.modules.copy():
        if inner.startswith(f"{module.__name__}.") and place_of(alias := name + inner[len(module.__name__) :]) == inner:
            sys.modules.setdefault(alias, sys.modules[inner])
    if not hasattr(module, "__path__"):
        for inner, place in PLACES.items():
            if inner.rpartition(".")[0] == name:
                child = importlib.import_module(place)
                sys.modules.setdefault(inner, child)
                if not hasattr(module, leaf := inner.rpartition(".")[2]):
                    setattr(module, leaf, child)


def is_active() -> bool:
    """Whether `import triton` means tilework in this process."""
    return any(type(finder).__name__ == TritonFinder.__name__ for finder in sys.meta_path)


def as_triton() -> ModuleType:
    """Make `import triton` mean tilework from now on; returns what it gives. Calling it again does nothing."""
    importlib.import_module(OURS)
    present = sys.modules.get(ROOT)
    if present is not None and type(present).__name__ != RootModule.__name__:
        where = getattr(present, "__file__", None) or "an unknown place"
        raise RuntimeError(
            f"Triton is already imported, from {where}. Call tilework.as_triton() before the first `import triton`"
            " (also before modules that import it, such as parts of torch), or run the program with"
            " `python -m tilework.as_triton`."
        )
    if not is_active():
        sys.meta_path.insert(0, TritonFinder())
    return importlib.import_module(ROOT)


class CallableModule(ModuleType):
    """This module, which is also the function of the same name."""

    def __call__(self) -> ModuleType:
        return as_triton()


def main(arguments: Sequence[str]) -> None:
    """Run a script, or with ``-m`` a module, as `python` would."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print("usage: python -m tilework.as_triton [-m MODULE | SCRIPT] [ARGUMENT ...]", file=sys.stderr)
        raise SystemExit(0 if arguments and arguments[0] != "-m" else 2)
    as_triton()
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    script = Path(arguments[0])
    if script.is_file():
        run_script(script)
    elif script.is_dir():
        runpy.run_path(str(script), run_name="__main__")
    else:
        print(f"tilework.as_triton: there is no file {script}", file=sys.stderr)
        raise SystemExit(2)


def run_script(script: Path) -> None:
    """Run a file as the main module, which stays there after its last line (`atexit`, threads and pickles need it)."""
    module = ModuleType("__main__")
    vars(module).update(__file__=str(script.absolute()), __builtins__=builtins)
    sys.modules["__main__"] = module
    sys.path[0] = str(script.resolve().parent)  # -m had put the current folder there
    exec(compile(script.read_bytes(), str(script.absolute()), "exec"), vars(module))


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__].__class__ = CallableModule
