"""The registry of programs, and how a program imports kernels of a library that has compiled parts."""

# pyright: basic, reportMissingImports=false

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from benchmarks.record_launches import Recorder

Program = Callable[[Recorder], None]
PROGRAMS: dict[str, list[Program]] = {}


def program(library: str) -> Callable[[Program], Program]:
    """Add a function to the programs of a library."""

    def add(function: Program) -> Program:
        PROGRAMS.setdefault(library, []).append(function)
        return function

    return add


def both_ways(r: Recorder, function: Any, *args: Any, **kwargs: Any) -> None:
    """Run the forward and the backward pass of a function."""
    out = function(*args, **kwargs)
    out = next(one for one in out if isinstance(one, torch.Tensor)) if isinstance(out, tuple) else out
    r.backward(out)


F32 = torch.float32


class Stub(ModuleType):
    """A module that is not installed: every name in it is a harmless class, decorator or context manager."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Anything:
    """An object that can be called, used as a decorator or context manager, compared and looked into."""

    is_stub = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __bool__(self) -> bool:
        return False

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    def __gt__(self, other: Any) -> bool:
        return False

    __lt__ = __ge__ = __le__ = __gt__

    __ror__ = __or__


class StubFinder(MetaPathFinder, Loader):
    """Finds stubs for modules under given names, and packages without running their `__init__`."""

    def __init__(self, stubs: tuple[str, ...]) -> None:
        self.stubs = stubs

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if any(fullname == one or fullname.startswith(f"{one}.") for one in self.stubs):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def bare(*packages: str, stubs: tuple[str, ...] = ()) -> None:
    """Let modules inside of packages be imported without the packages' own code, and stub other modules."""
    if stubs:
        sys.meta_path.insert(0, StubFinder(stubs))
    for name in packages:
        if name in sys.modules:
            continue
        parent, _, leaf = name.rpartition(".")
        folders = sys.modules[parent].__path__ if parent else sys.path
        found = [str(Path(folder) / leaf) for folder in folders if (Path(folder) / leaf).is_dir()]
        module = ModuleType(name)
        module.__path__ = found
        sys.modules[name] = module
        if parent:
            setattr(sys.modules[parent], leaf, module)
