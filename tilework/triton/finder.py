"""The finder that `as_triton` installs: it serves tilework's modules under Triton's names (`names.py` has the tables).

A module of Triton is the very module of tilework that the tables or the path name, so that a knob set as `triton.knobs`
is set in `tilework.knobs`. `extend` lets it resolve the further names that Triton's module has, each on first use. A
module that tilework has no counterpart for is created empty and extended in the same way.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

from tilework.process import plugins, triton_version
from tilework.triton import BACKENDS
from tilework.triton.names import GLUON_MODULES, MODULES, NAMES

ROOT, OURS = "triton", "tilework"
# modules whose functions and classes carry Triton's names; one that is in several carries the first of these
SHOWN = tuple(f"triton.language{inner}" for inner in (".core", ".math", ".standard", ".random", ".target_info", ""))
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
IMPORT_PATH = os.path.join(HERE, "import_path")  # the folder in which other processes find `triton`
COMPILE_WORKER = os.path.join("torch", "_inductor", "compile_worker", "__main__.py")  # the program, of torch


def source_of(name: str) -> str | None:
    """Return the module of tilework that serves as one of Triton's: ``triton.knobs`` -> ``tilework.knobs``; None if
    only the tables describe it."""
    if name in MODULES:
        return MODULES[name]
    inner = name.removeprefix(ROOT)
    return OURS + inner if name not in GLUON_MODULES and has_source(inner) else None


def has_source(inner: str) -> bool:
    """Return True if this package has a file for a module: ``.runtime.jit``. A folder without one is a left-over of an
    older tilework."""
    path = os.path.join(PACKAGE, *inner.split("."))
    return os.path.isfile(f"{path}.py") or os.path.isfile(os.path.join(path, "__init__.py"))


@cache
def children() -> dict[str, dict[str, str]]:
    """The modules of the tables and their packages, by package: ``{"triton._C": {"libtriton":
    "triton._C.libtriton"}}``."""
    found: dict[str, dict[str, str]] = {}
    for name in (*MODULES, *NAMES, *GLUON_MODULES):
        while name != ROOT:
            parent, _, leaf = name.rpartition(".")
            found.setdefault(parent, {})[leaf] = name
            name = parent
    return found


def is_listed(name: str) -> bool:
    """Return True if the tables have a module, or one inside of it."""
    parent, _, leaf = name.rpartition(".")
    return leaf in children().get(parent, {})


@cache
def extended() -> dict[str, list[str]]:
    """The modules of tilework that have more names under Triton's name, with Triton's names of them."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys((*NAMES, *children())):
        source = source_of(name) if name != ROOT else None
        if source is not None:
            found.setdefault(source, []).append(name)
    return found


@cache
def added_names(name: str) -> dict[str, tuple[str, str]]:
    """The names that a module of Triton has beside those of its source: ``{"getenv": ("tilework.knobs",
    "getenv")}``."""
    found: dict[str, tuple[str, str]] = {}
    for source, names in NAMES.get(name, {}).items():
        for item in names.split():
            new, _, old = item.partition("=")
            found[new] = (source, old or new)
    return found


def resolve(source: str, name: str) -> Any:
    """Return an attribute of a module, or the module of that name inside it."""
    module = importlib.import_module(source)
    return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{source}.{name}")


def root_module() -> ModuleType:
    """Return `triton` itself: tilework under Triton's name, and with the version of Triton whose language it
    implements.

    It is a plain module, and so are those that `extend` changes, because torch checks for exactly that type.
    """
    module, ours, added = ModuleType(ROOT, sys.modules[OURS].__doc__), sys.modules[OURS], added_names(ROOT)

    def find(name: str) -> Any:
        if name == "__version__":  # programs choose their code paths by it
            return triton_version.selected()
        if name == "__all__":
            return [*ours.__all__, *added]
        if name in added:
            return resolve(*added[name])
        value = getattr(ours, name, module)
        is_module = isinstance(value, ModuleType) and has_source(f".{name}")
        if is_module or (value is module and is_listed(f"{ROOT}.{name}")):
            return importlib.import_module(f"{ROOT}.{name}")
        return getattr(ours, name) if value is module else value

    vars(module).update(__path__=[], __getattr__=find, __tilework__=True)
    vars(module)["__dir__"] = lambda: sorted({*dir(ours), *ours.__all__, *added, "backends"})  # loaded on first use
    return module


def extend(module: ModuleType, aliases: Iterable[str]) -> None:
    """Let a module resolve the names and the modules that the tables add to it under Triton's names of it."""
    names, own, own_listed = vars(module), vars(module).get("__getattr__"), vars(module).get("__dir__")
    if getattr(own, "__module__", None) == __name__:
        return
    added = {name: (alias, location) for alias in aliases for name, location in added_names(alias).items()}
    inside = {leaf: child for alias in aliases for leaf, child in children().get(alias, {}).items()}

    def find(name: str) -> Any:
        if name in added:
            alias, location = added[name]
            value = names.setdefault(name, resolve(*location))
            show_names(alias, module, [name])
            return value
        if own is not None and name not in inside:
            return own(name)
        if name in inside:
            return importlib.import_module(inside[name])
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted({*(own_listed() if own_listed is not None else names), *added, *inside})

    names.update(__getattr__=find, __dir__=listed)
    if "__all__" in names:  # which packages of Triton have, and its other modules do not
        packages = [added_names(alias) for alias in aliases if alias in children()]
        public = [name for package in packages for name, (_, old) in package.items() if name == old]
        names["__all__"] = list(dict.fromkeys((*names["__all__"], *public)))


def empty_module(name: str) -> ModuleType:
    """Return a module of Triton that tilework has no counterpart for: its names are those of the tables."""
    module = ModuleType(name)
    if name in GLUON_MODULES:
        vars(module)["__getattr__"] = importlib.import_module("tilework.triton.gluon").placeholders(name)
    extend(module, [name])
    return module


def show_names(name: str, module: ModuleType, members: Iterable[str] = ()) -> None:
    """Let functions and classes of the language carry the name of Triton's module that has them: programs that write
    source text, as Inductor does, import them by it."""
    if not name.startswith("triton.language"):
        return
    origins = importlib.import_module("tilework.language.origins")
    callables = importlib.import_module("tilework.language.function").JITCallable
    for member in members or list(vars(module)):
        value = vars(module)[member]
        if isinstance(value, FunctionType | type | callables) and value.__name__ == member:
            if value.__module__.startswith(("tilework.language", "tilework.triton.language")):
                origins.set_shown_module(value, name)


class AliasLoader(Loader):
    """Answers an import with a module that has another name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == ROOT:
            adopt_children(spec.name, importlib.import_module(OURS))
            return root_module()
        if (source := source_of(spec.name)) is None:
            module = empty_module(spec.name)
            adopt_inside(spec.name, module)
            return module
        module = importlib.import_module(source)
        self.own_spec = module.__spec__
        adopt_children(spec.name, module)
        show_names(spec.name, module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if hasattr(self, "own_spec"):
            module.__spec__ = self.own_spec  # the import machinery has just overwritten it

    def get_code(self, fullname: str) -> Any:
        """Return the code of a module that is run as a program: ``python -m triton.tools.compile``."""
        source = source_of(fullname)
        spec = importlib.util.find_spec(source) if source is not None else None
        loader: Any = None if spec is None else spec.loader
        return None if loader is None else loader.get_code(source)


class TritonFinder(MetaPathFinder):
    """The first finder of the process: it answers every import of a module called triton, and extends tilework's
    modules."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root == OURS and fullname in extended():
            return extending(PathFinder.find_spec(fullname, path, target))
        if root != ROOT:
            return None
        source = OURS if fullname == ROOT else source_of(fullname)
        if source is None and not is_listed(fullname):
            return None
        file = None if source is None else os.path.join(PACKAGE, *source.split(".")[1:]) + ".py"
        return ModuleSpec(fullname, AliasLoader(), origin=file, is_package=is_package(fullname, source))


def is_package(name: str, source: str | None) -> bool:
    """Return True if Triton's module has others inside; one that has none can be run as a program."""
    is_folder = source is not None and os.path.isdir(os.path.join(PACKAGE, *source.split(".")[1:]))
    return is_folder or name in GLUON_MODULES or name in children()


def extending(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Return the spec, changed so that its module is extended once it is executed."""
    if spec is not None and (loader := spec.loader) is not None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            extend(module, extended()[module.__name__])

        loader.exec_module = exec_module
    return spec


def adopt_children(name: str, module: ModuleType) -> None:
    """Register the modules inside a module under Triton's names too, where an import could not find them or would
    replace another attribute.

    `tilework.compiler` is no package, so ``import triton.compiler.errors`` would stop at it.
    """
    for inner in sys.modules.copy():
        if inner.startswith(f"{module.__name__}."):
            alias = name + inner[len(module.__name__) :]
            if alias not in sys.modules and source_of(alias) == inner:
                sys.modules[alias] = sys.modules[inner]
                show_names(alias, sys.modules[inner])
                adopt_inside(alias, sys.modules[inner])
    adopt_inside(name, module)


def adopt_inside(name: str, module: ModuleType) -> None:
    """Let imports find the modules that Triton has inside a module, which may be no package here."""
    inside = children().get(name, {})
    for leaf, alias in inside.items():  # `triton.runtime.driver`: the module must not replace the driver
        if alias in MODULES and not isinstance(vars(module).get(leaf, module), ModuleType):
            sys.modules.setdefault(alias, importlib.import_module(MODULES[alias]))
    if inside and not hasattr(module, "__path__"):
        vars(module)["__path__"] = []


def is_active() -> bool:
    """Return True if `import triton` means tilework in this process."""
    return any(isinstance(finder, TritonFinder) for finder in sys.meta_path)


def as_triton() -> ModuleType:
    """Make `import triton` mean tilework from now on, and return the module. Calling it again does nothing."""
    importlib.import_module(OURS)
    present = sys.modules.get(ROOT)
    if present is not None and not hasattr(present, "__tilework__"):
        where = getattr(present, "__file__", None) or "an unknown file"
        raise RuntimeError(
            f"Triton is already imported, from {where}. Call tilework.as_triton() before the first `import triton`"
            " (also before modules that import it, such as parts of torch), or run the program with"
            " `python -m tilework.as_triton`."
        )
    if not is_active():
        sys.meta_path.insert(0, TritonFinder())
        for target, backend in BACKENDS.items():
            plugins.prefer("tilework.backends", target, backend)
        for name, aliases in extended().items():
            if name in sys.modules:
                extend(sys.modules[name], aliases)
        importlib.import_module(f"{OURS}.runtime.devices.active_driver").driver.only_active()
        importlib.import_module(f"{OURS}.knobs").language.is_triton = True
        for name in SHOWN:
            show_names(name, importlib.import_module(str(source_of(name))))
        reach_children()
    return importlib.import_module(ROOT)


def reach_children() -> None:
    """Let processes that this one starts find `import_path/triton`, and the installed version of it beside.

    Some inherit this process's search path (multiprocessing, pytest-xdist, torch's compile workers), all others its
    environment. The first entry of the path is left alone: it is the folder of the script.
    """
    folders = [IMPORT_PATH, os.path.join(IMPORT_PATH, triton_version.selected())]
    sys.path[1:1] = [folder for folder in folders if folder not in sys.path]
    knobs = importlib.import_module(f"{OURS}.knobs")
    inherited = [folder for folder in (knobs.getenv("PYTHONPATH") or "").split(os.pathsep) if folder]
    added = [folder for folder in folders if folder not in inherited]
    if added:
        knobs.setenv("PYTHONPATH", os.pathsep.join([*added, *inherited]))


def replace_stand_in(name: str) -> None:
    """Make the name of a package called `triton`, which consists of this call, mean tilework."""
    del sys.modules[name]  # the import in progress returns the entry that is there at its end
    as_triton()
    if sys.argv[:1] and sys.argv[0].endswith(COMPILE_WORKER):
        importlib.import_module("tilework.triton.compile_worker").load_compiler()
