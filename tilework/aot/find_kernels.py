"""The kernels that a manifest names, found again: by importing their modules, or in the file of a script that is not
run.

    finder = Finder(scripts=["app.py"], folders=["src"])
    fn = finder.kernel({"kernel": "__main__:add", "file": "/home/me/app.py", ...})

A script is called `__main__` when it runs. Of its file only what the kernel needs is executed
(`workers/module_slice.py`), and if that is not enough, all of it but what stands under ``if __name__ == "__main__":``.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any

from tilework.language.function import JITFunction
from tilework.runtime.tuning.heuristics import jit_function
from tilework.runtime.workers.module_slice import load_slice

MAIN = "__main__"
AS_MODULE = "__mp_main__"  # as multiprocessing calls a script that is imported


class NotFound(ValueError):
    """A kernel that is not where it was; the message says what was tried."""


class Finder:
    """Finds kernels, and keeps the modules that it has loaded. `scripts` and `folders` are searched for files that have
    moved."""

    def __init__(self, scripts: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
        self.scripts, self.folders = list(scripts), list(folders)
        self.parts: dict[tuple[str, str], ModuleType] = {}

    def kernel(self, record: Mapping[str, Any]) -> JITFunction:
        """The kernel of a record; NotFound says why not."""
        if record.get("triton"):
            importlib.import_module("tilework.as_triton").as_triton()
        module, _, qualname = record["kernel"].partition(":")
        loaders = self.of_script(record, qualname) if module == MAIN else self.of_module(record, module)
        reasons: list[str] = []
        for load in loaders:
            try:
                return kernel_in(load(), qualname)
            except NotFound as error:
                reasons.append(str(error))
            except (Exception, SystemExit) as error:  # modules do what they like when they are imported
                reasons.append(f"{type(error).__name__}: {error}")
        raise NotFound("; then ".join(dict.fromkeys(reasons)))

    def of_script(self, record: Mapping[str, Any], qualname: str) -> list[Callable[[], ModuleType]]:
        file = self.script(record.get("file", ""))
        name = qualname.partition(".")[0]
        add_folder(os.path.dirname(file))
        return [lambda: self.part(file, name), lambda: self.whole(file)]

    def script(self, file: str) -> str:
        """Return the current path of a script."""
        name = os.path.basename(file)
        for place in (*self.scripts, file, *(os.path.join(folder, name) for folder in (*self.folders, os.curdir))):
            if os.path.basename(place) == name and os.path.isfile(place):
                return os.path.abspath(place)
        raise NotFound(f"the script {file} is not there: --script {name} says where it is")

    def part(self, file: str, name: str) -> ModuleType:
        """Load the part of a script that defines a name, as the main program; other attributes of that are loaded on
        demand."""
        found = self.parts.get((file, name))
        if found is None:
            found = self.parts[file, name] = load_slice(file, MAIN, name)
            found.__dict__["__getattr__"] = lambda other: self.other(file, found, other)
        sys.modules[MAIN] = found
        return found

    def other(self, file: str, module: ModuleType, name: str) -> Any:
        """A name that a part does not have: a class or a function among the constants."""
        part = load_slice(file, MAIN, name)
        if name not in vars(part):
            raise AttributeError(f"{file} does not define {name}")
        setattr(module, name, vars(part)[name])
        return vars(part)[name]

    def whole(self, file: str) -> ModuleType:
        """A script as a module."""
        if (found := self.parts.get((file, ""))) is None:
            found = self.parts[file, ""] = executed(file, AS_MODULE)
        sys.modules[MAIN] = found
        return found

    def of_module(self, record: Mapping[str, Any], module: str) -> list[Callable[[], ModuleType]]:
        for folder in (*self.folders, os.curdir, root_of(record.get("file", ""), module)):
            add_folder(folder)
        file = record.get("file", "")
        loaders: list[Callable[[], ModuleType]] = [lambda: importlib.import_module(module)]
        if os.path.isfile(file):
            loaders.append(lambda: executed(file, module))
        return loaders


def root_of(file: str, module: str) -> str:
    """The folder that must be on the path for a module of that file: ``/src/pkg/kernels.py``, ``pkg.kernels`` ->
    ``/src``."""
    for _ in range(module.count(".") + 1 + (os.path.basename(file) == "__init__.py")):
        file = os.path.dirname(file)
    return file


def add_folder(folder: str) -> None:
    if folder and os.path.isdir(folder) and os.path.abspath(folder) not in sys.path:
        sys.path.append(os.path.abspath(folder))


def executed(file: str, name: str) -> ModuleType:
    """A file as the module of that name."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise NotFound(f"{file} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def kernel_in(module: ModuleType, qualname: str) -> JITFunction:
    """The kernel of that name; a tuned one is the kernel inside."""
    try:
        found = attrgetter(qualname)(module)
    except AttributeError:
        raise NotFound(f"{getattr(module, '__file__', module)} does not define {qualname}") from None
    if (kernel := jit_function(found)) is None:
        raise NotFound(f"{qualname} of {getattr(module, '__file__', module)} is no kernel")
    return kernel
