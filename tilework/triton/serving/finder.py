"""What `import triton` means once `as_triton` was called: finds modules called triton, and adds the names of the mirror to ours.

Most of Triton's modules have the same name here. `PLACES` lists those that live elsewhere. What only Triton calls so is in
`tilework/triton`, a folder with Triton's own tree: its modules stand for Triton's where tilework has none of that name, and else
add their names to tilework's module, each when it is first asked for (`offers`).
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

from tilework import plugins

ROOT, OURS, MIRROR = "triton", "tilework", "tilework.triton"
PROFILER = (
    *(
        "",
        ".context",
        ".flags",
        ".hooks",
        ".hooks.hook",
        ".hooks.instrumentation",
        ".hooks.launch",
        ".language",
        ".mode",
    ),
    *(".profile", ".proton", ".scope", ".specs", ".state", ".viewer"),
)
PLACES = {
    "triton._filecheck": "tilework.tools.filecheck",
    "triton.compiler.code_generator": "tilework.frontend.generator",
    "triton.compiler.compiler": "tilework.compiler",
    "triton.compiler.errors": "tilework.errors",
    "triton.experimental.gluon.language.extra": "tilework.language.extra",
    "triton.language.extra.cuda.utils": "tilework.language.extra.cuda",
    "triton.language.extra.hip.utils": "tilework.language.extra.hip",
    "triton.language.extra.cpu.libdevice": "tilework.language.extra.libdevice",
    **{f"triton.profiler{inner}": f"tilework.inspect.profiler{inner}" for inner in PROFILER},
    "triton.runtime": "tilework.triton.runtime",
    "triton.runtime._allocation": "tilework.runtime.devices.allocators",
    "triton.runtime._async_compile": "tilework.runtime.workers.async_compile",
    "triton.runtime.autotuner": "tilework.runtime.tuning.autotuner",
    "triton.runtime.cache": "tilework.runtime.kernel_cache.managers",
    "triton.runtime.driver": "tilework.runtime.devices.active_driver",
    "triton.runtime.jit": "tilework.runtime.launch.python.jit",
    "triton.tools.compile": "tilework.triton.tools.compile",
    "triton.tools.link": "tilework.triton.tools.link",
}
GLUON = "triton.experimental.gluon"
# modules whose functions and classes carry Triton's names; one that is in several carries the first of these
SHOWN = tuple(f"triton.language{inner}" for inner in (".core", ".math", ".standard", ".random", ".target_info", ""))
TRITON_VERSION = "3.6.0"  # programs choose their code paths by it
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))
IMPORT_PATH = os.path.join(HERE, "import_path")  # where other processes find `triton`


def place_of(name: str) -> str:
    """The module that stands for one of Triton's: ``triton.knobs`` -> ``tilework.knobs``."""
    if name in PLACES:
        return PLACES[name]
    inner = name.removeprefix(ROOT)
    return OURS + inner if has_source(inner) or not has_source(f".triton{inner}") else MIRROR + inner


def has_source(inner: str) -> bool:
    """Whether this package has a file for a module: ``.runtime.jit``. A folder without one is a left-over of an older tilework."""
    path = os.path.join(PACKAGE, *inner.split("."))
    return os.path.isfile(f"{path}.py") or os.path.isfile(os.path.join(path, "__init__.py"))


@cache
def additions() -> dict[str, list[str]]:
    """Modules of ours that get more names as Triton's, with the modules of the mirror that have them."""
    found: dict[str, list[str]] = {}
    for name in mirrored():
        place = place_of(ROOT + name)
        if not place.startswith(MIRROR):
            found.setdefault(place, []).append(MIRROR + name)
    return found


@cache
def mirrored() -> tuple[str, ...]:
    """Every module of the mirror: ``.backends``, ``.runtime.jit``."""
    return tuple(files_of_mirror())


def files_of_mirror() -> Iterator[str]:
    root = os.path.join(PACKAGE, "triton")
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders.remove("serving")
        inside = os.path.relpath(folder, root).split(os.sep) if folder != root else []
        for file in sorted(files):
            if file.endswith(".py"):
                parts = [*inside, file.removesuffix(".py")]
                name = "".join(f".{part}" for part in parts if part != "__init__")
                if name:
                    yield name


@cache
def inside_of() -> dict[str, list[str]]:
    """Triton's modules that are elsewhere here, or of the mirror, by the one that has them inside: {"triton.compiler": ["triton.compiler.errors"]}."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys([*PLACES, *(f"{ROOT}{inner}" for inner in mirrored())]):
        found.setdefault(name.rpartition(".")[0], []).append(name)
    return found


def exists(name: str) -> bool:
    """Whether there is such a module of ours."""
    parent = name.rpartition(".")[0]
    if parent and (not exists(parent) or not hasattr(importlib.import_module(parent), "__path__")):
        return False
    return importlib.util.find_spec(name) is not None


def is_gluon_name(name: str) -> bool:
    """Whether a module of Gluon's is here by name only."""
    return name.startswith(f"{GLUON}.") and name in importlib.import_module(place_of(GLUON)).MODULES


def root_module() -> ModuleType:
    """`triton` itself: tilework under Triton's name, and with the version of Triton whose language it speaks.

    It is a plain module, and so are those that `extend` changes: torch takes nothing else for one.
    """
    module, ours = ModuleType(ROOT, sys.modules[OURS].__doc__), sys.modules[OURS]

    def find(name: str) -> Any:
        value = getattr(ours, name, module)
        is_module = isinstance(value, ModuleType) and has_source(f".{name}")
        if is_module or (value is module and has_source(f".triton.{name}")):
            return importlib.import_module(f"{ROOT}.{name}")
        return getattr(ours, name) if value is module else value

    vars(module).update(__path__=[], __version__=TRITON_VERSION, __getattr__=find, __tilework__=True)
    vars(module)["__dir__"] = lambda: sorted({*dir(ours), *ours.__all__, "backends"})  # loaded when asked for
    return module


def extend(module: ModuleType) -> None:
    """Let a module of ours have what the mirror adds to it."""
    names, own = vars(module), vars(module).get("__getattr__")

    def find(name: str) -> Any:
        for mirror in additions()[module.__name__] if not name.startswith("__") else ():
            if offers(added := addition(mirror), name):
                value = names.setdefault(name, getattr(added, name))
                show_names(ROOT + mirror.removeprefix(MIRROR), module, [name])
                return value
        if own is not None:
            return own(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def listed() -> list[str]:
        added = map(addition, additions()[module.__name__])
        return sorted({*names, *(name for mirror in added for name in dir(mirror) if offers(mirror, name))})

    for mirror in additions()[module.__name__]:
        if mirror in sys.modules:
            addition(mirror)
    if getattr(own, "__module__", None) != __name__:
        names.update(__getattr__=find, __dir__=listed)


def addition(mirror: str) -> ModuleType:
    """A module of the mirror; it is no attribute of its package, which stands for Triton's and means the module that is extended."""
    added = importlib.import_module(mirror)
    parent, _, leaf = mirror.rpartition(".")
    if vars(sys.modules[parent]).get(leaf) is added:
        delattr(sys.modules[parent], leaf)
    return added


def offers(mirror: ModuleType, name: str) -> bool:
    """Whether a module of the mirror adds a name: one in its `__all__`, or without that any which is not Python's own."""
    if name.startswith("__") or "__all__" in vars(mirror):
        return name in getattr(mirror, "__all__", ())
    value = getattr(mirror, name, os)
    home = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", OURS)
    return str(home).partition(".")[0] in (OURS, ROOT)


def show_names(name: str, module: ModuleType, members: Iterable[str] = ()) -> None:
    """Let functions and classes of the language carry the name of Triton's module that has them: programs that write source text,
    as Inductor does, import them by it."""
    if not name.startswith("triton.language"):
        return
    language = importlib.import_module("tilework.language.constant_text")
    callables = importlib.import_module("tilework.language.function").JITCallable
    for member in members or list(vars(module)):
        value = vars(module)[member]
        if isinstance(value, FunctionType | type | callables) and value.__name__ == member:
            if value.__module__.startswith(("tilework.language", "tilework.triton.language")):
                language.set_shown_module(value, name)


class AliasLoader(Loader):
    """Answers an import with a module that has another name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if is_gluon_name(spec.name):
            return importlib.import_module(place_of(GLUON)).GluonModule(spec.name)
        module = importlib.import_module(place_of(spec.name))
        if spec.name == ROOT:
            adopt_children(spec.name, module)
            return root_module()
        self.own_spec = module.__spec__
        adopt_children(spec.name, module)
        show_names(spec.name, module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if hasattr(self, "own_spec"):
            module.__spec__ = self.own_spec  # the import machinery has just overwritten it

    def get_code(self, fullname: str) -> Any:
        """The code of a module that is run as a program: ``python -m triton.tools.compile``."""
        place = place_of(fullname)
        spec = importlib.util.find_spec(place)
        return None if spec is None or spec.loader is None else spec.loader.get_code(place)  # pyright: ignore[reportAttributeAccessIssue]


class TritonFinder(MetaPathFinder):
    """Stands in front of all other finders, and knows every module called triton; modules of ours get what is added to them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root == OURS and fullname in additions():
            return extending(PathFinder.find_spec(fullname, path, target))
        if root == ROOT and (is_gluon_name(fullname) or exists(place_of(fullname))):
            file = os.path.join(PACKAGE, *place_of(fullname).split(".")[1:]) + ".py"
            return ModuleSpec(fullname, AliasLoader(), origin=file, is_package=has_inside(fullname))
        return None


def has_inside(name: str) -> bool:
    """Whether Triton's module has others inside; one that has none can be run as a program."""
    place = place_of(name)
    is_folder = os.path.isdir(os.path.join(PACKAGE, *place.split(".")[1:]))
    return is_folder or is_gluon_name(name) or any(f"{ROOT}{inner}".startswith(f"{name}.") for inner in mirrored())


def extending(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The module of a spec will have what the mirror adds to it."""
    if spec is not None and (loader := spec.loader) is not None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            extend(module)

        loader.exec_module = exec_module
    return spec


def adopt_children(name: str, module: ModuleType) -> None:
    """Name what is inside a module too, where an import could not find it or would replace what the attribute means.

    `tilework.compiler` is no package, so ``import triton.compiler.errors`` would stop at it.
    """
    for inner in sys.modules.copy():
        if inner.startswith(f"{module.__name__}.") and place_of(alias := name + inner[len(module.__name__) :]) == inner:
            if alias not in sys.modules:
                sys.modules[alias] = sys.modules[inner]
                show_names(alias, sys.modules[inner])
                adopt_inside(alias, sys.modules[inner])
    adopt_inside(name, module)


def adopt_inside(name: str, module: ModuleType) -> None:
    """Name what Triton has inside a module that is no package here."""
    inside = [(alias, alias.rpartition(".")[2]) for alias in inside_of().get(name, ())]
    for alias, leaf in inside:  # `triton.runtime.driver`: the module must not replace the driver
        if alias in PLACES and not isinstance(vars(module).get(leaf, module), ModuleType):
            sys.modules.setdefault(alias, importlib.import_module(PLACES[alias]))
    if hasattr(module, "__path__"):
        return
    for alias, leaf in inside:
        child = importlib.import_module(place_of(alias))
        sys.modules.setdefault(alias, child)
        if not hasattr(module, leaf):
            setattr(module, leaf, child)


def is_active() -> bool:
    """Whether `import triton` means tilework in this process."""
    return any(isinstance(finder, TritonFinder) for finder in sys.meta_path)


def as_triton() -> ModuleType:
    """Make `import triton` mean tilework from now on; returns what it gives. Calling it again does nothing."""
    importlib.import_module(OURS)
    present = sys.modules.get(ROOT)
    if present is not None and not hasattr(present, "__tilework__"):
        where = getattr(present, "__file__", None) or "an unknown place"
        raise RuntimeError(
            f"Triton is already imported, from {where}. Call tilework.as_triton() before the first `import triton`"
            " (also before modules that import it, such as parts of torch), or run the program with"
            " `python -m tilework.as_triton`."
        )
    if not is_active():
        sys.meta_path.insert(0, TritonFinder())
        for target, backend in importlib.import_module(MIRROR).BACKENDS.items():
            plugins.prefer("tilework.backends", target, backend)
        for name in additions():
            if name in sys.modules:
                extend(sys.modules[name])
        importlib.import_module(f"{OURS}.runtime.devices.active_driver").driver.only_active()
        importlib.import_module(f"{OURS}.knobs").language.is_triton = True
        for name in SHOWN:
            show_names(name, importlib.import_module(place_of(name)))
        reach_children()
    return importlib.import_module(ROOT)


def reach_children() -> None:
    """Let processes that this one starts find `import_path/triton`.

    Some get this process's search path (multiprocessing, pytest-xdist, torch's compile workers), all others its environment.
    The first place stays what it is: programs know it as the folder of the script.
    """
    if IMPORT_PATH not in sys.path:
        sys.path.insert(1, IMPORT_PATH)
    knobs = importlib.import_module(f"{OURS}.knobs")
    inherited = knobs.getenv("PYTHONPATH")
    if IMPORT_PATH not in (inherited or "").split(os.pathsep):
        knobs.setenv("PYTHONPATH", os.pathsep.join([IMPORT_PATH, inherited] if inherited else [IMPORT_PATH]))


def replace_stand_in(name: str) -> None:
    """For a package called `triton` that consists of this call: from here on its name means tilework."""
    del sys.modules[name]  # the import that is under way answers with what stands there at its end
    as_triton()
