"""Find kernels by name: those of a manifest, by importing their modules or in the file of a script that is not run, and
those of a command line, in a file.

    finder = Finder(scripts=["app.py"], folders=["src"])
    fn = finder.kernel({"kernel": "__main__:add", "file": "/home/me/app.py", ...})
    fn = load_kernel(Path("app.py"), "add")                     a UsageError says what is wrong with the file

A script is called `__main__` when it runs. Of its file only what the kernel needs is executed
(`workers/sent_kernel.py`), and if that is not enough, all of it but what is under ``if __name__ == "__main__":``.
"""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from tilework.errors import UsageError, did_you_mean, message_of
from tilework.language.function import JITFunction
from tilework.runtime.launch.python.kernel_interface import KernelInterface
from tilework.runtime.tuning.heuristics import jit_function
from tilework.runtime.workers.sent_kernel import load_slice

MAIN = "__main__"
AS_MODULE = "__mp_main__"  # as multiprocessing calls a script that is imported


class Finder:
    """Finds kernels, and keeps the modules that it has loaded. `scripts` and `folders` are searched for files that have
    moved."""

    def __init__(self, scripts: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
        self.scripts, self.folders = list(scripts), list(folders)
        self.parts: dict[tuple[str, str], ModuleType] = {}

    def kernel(self, record: Mapping[str, Any]) -> JITFunction:
        """The kernel of a record; UsageError says why not."""
        if record.get("triton"):
            importlib.import_module("tilework.as_triton").as_triton()
        module, _, qualname = record["kernel"].partition(":")
        loaders = self.of_script(record, qualname) if module == MAIN else self.of_module(record, module)
        reasons: list[str] = []
        for load in loaders:
            try:
                return kernel_in(load(), qualname)
            except UsageError as error:
                reasons.append(str(error))
            except (Exception, SystemExit) as error:  # modules do what they like when they are imported
                reasons.append(f"{type(error).__name__}: {error}")
        raise UsageError("; then ".join(dict.fromkeys(reasons)))

    def of_script(self, record: Mapping[str, Any], qualname: str) -> list[Callable[[], ModuleType]]:
        file = self.script(record.get("file", ""))
        name = qualname.partition(".")[0]
        add_folder(os.path.dirname(file))
        return [lambda: self.part(file, name), lambda: self.whole(file)]

    def script(self, file: str) -> str:
        """Return the current path of a script."""
        name = os.path.basename(file)
        for path in (*self.scripts, file, *(os.path.join(folder, name) for folder in (*self.folders, os.curdir))):
            if os.path.basename(path) == name and os.path.isfile(path):
                return os.path.abspath(path)
        raise UsageError(f"the script {file} is not there: --script {name} says where it is")

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


def executed(file: str | Path, name: str, is_registered: bool = True) -> ModuleType:
    """Execute a file as the module of that name, registered in `sys.modules` unless another module has the name."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    if is_registered:
        sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if is_registered:
            sys.modules.pop(name, None)
        raise
    return module


def kernel_in(module: ModuleType, qualname: str) -> JITFunction:
    """The kernel of that name; a tuned one is the kernel inside."""
    try:
        found = attrgetter(qualname)(module)
    except AttributeError:
        raise UsageError(f"{getattr(module, '__file__', module)} does not define {qualname}") from None
    if (kernel := jit_function(found)) is None:
        raise UsageError(f"{qualname} of {getattr(module, '__file__', module)} is no kernel")
    return kernel


# ---- kernels that a command line names


def load_kernel(path: Path, name: str = "") -> JITFunction:
    """Return the kernel of that name in a file, or its only one; of a tuned kernel, the kernel inside."""
    module = load_file(path)
    own = {
        key: fn
        for key, value in vars(module).items()
        if isinstance(value, KernelInterface)
        and (fn := jit_function(value)) is not None
        and fn.__module__ == module.__name__
    }
    if not name and len(own) == 1:
        (kernel,) = own.values()
        return kernel
    if name:
        with suppress(UsageError):
            return kernel_in(module, name)
    if not own:
        raise UsageError(f"{path} has no kernels: those are functions under @tilework.jit")
    if not name:
        raise UsageError(f"say which kernel: {' or '.join(f'{path}:{key}' for key in own)}")
    guess = did_you_mean(name, own) or f"; it has {', '.join(own)}"
    raise UsageError(f"{path} has no kernel {name!r}{guess}")


def load_file(path: Path) -> ModuleType:
    """Execute a file as a module named after it, which may import what it could as a script and as a part of a package;
    an error in its code is a UsageError with the line."""
    if not path.is_file():
        raise UsageError(f"no file {path}")
    folder = path.resolve().parent
    outside = next(above for above in (folder, *folder.parents) if not (above / "__init__.py").exists())
    sys.path[:0] = [str(folder), str(outside), str(Path.cwd())]
    try:
        return executed(path, path.stem, is_registered=path.stem not in sys.modules)
    except SystemExit as error:
        text = f"{path} ends the program while it is imported (line {line_in(path, error)}: exit code {error.code})"
        raise UsageError(f'{text}; put that under `if __name__ == "__main__":`') from error
    except UsageError:
        raise
    except Exception as error:
        line = line_in(path, error)
        where = f" (line {line})" if line is not None else ""
        raise UsageError(f"{path} cannot be imported{where}: {type(error).__name__}: {message_of(error)}") from error
    finally:
        sys.path.pop(0)


def line_in(path: Path, error: BaseException) -> int | None:
    """The line of the file that an exception comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if Path(frame.filename) == path.resolve()), None)
