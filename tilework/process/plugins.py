"""Built-in parts and those of other packages: backends, drivers, targets and options of passes, by name.

    >>> find("tilework.backends", "cuda").value
    'tilework.targets.nvidia.pipeline:CudaBackend'

| group | a name of it gives |
|---|---|
| `tilework.backends` | the class that compiles for targets of this name |
| `tilework.drivers` | the class that launches on them |
| `tilework.targets` | a function from an architecture to its `Target` |
| `tilework.target_options` | a function from such an option of a pass to a target: ``compute-capability=90`` |
| `tilework.passes` | a pass, as `tilework.transforms.passes` declares one |
| `tilework.ops` | a function from a builder and a list of values to a value: a method of the frontend's builder |

The last two are what Triton's compiled plugins (TRITON_PLUGIN_PATHS) offer: passes by name, for pipelines and
`passes.plugin`, and ops that builtins of a program build with ``_semantic.builder.NAME([value, ...])``.

`BUILT_IN` lists what this package has, so that a copy of its folder needs nothing beside it. Other packages declare
entry points of these groups; with TRITON_BACKENDS_IN_TREE=1 they are ignored.

`importlib.metadata` imports an e-mail parser and half of the standard library, 30 ms in every process that launches a
kernel, so `entry_points.txt` of installed packages is read here; `importlib.metadata` is used only where sys.path has
entries that only it can search.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, NoReturn

from tilework.knobs import getenv, is_on

OWN = "tilework"
INSTALLED = (".dist-info", ".egg-info")
GROUPS = b"tilework."  # the prefix of all groups
STANDARD_LIBRARY = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
BUILT_IN: dict[str, dict[str, str]] = {
    "tilework.backends": {
        "cuda": "tilework.targets.nvidia.pipeline:CudaBackend",
        "hip": "tilework.targets.amd.pipeline:HipBackend",
        "cpu": "tilework.targets.cpu.pipeline:CpuBackend",
    },
    "tilework.drivers": {
        "cuda": "tilework.runtime.devices.cuda.driver:CudaDriver",
        "hip": "tilework.runtime.devices.hip_driver:HipDriver",
        "cpu": "tilework.runtime.devices.host.driver:CpuDriver",
        "emulator": "tilework.runtime.devices.emulated.emulated_driver:emulated_driver",
    },
    "tilework.targets": {
        "cuda": "tilework.targets.nvidia.arch:describe",
        "hip": "tilework.targets.amd.arch:describe",
        "cpu": "tilework.targets.cpu.target:describe",
    },
    "tilework.target_options": {
        "compute-capability": "tilework.targets.nvidia.arch:of_option",
        "arch": "tilework.targets.amd.arch:of_option",
        "arch-generation-name": "tilework.targets.amd.arch:of_option",
        "target-arch": "tilework.targets.amd.arch:of_option",
    },
}


class PluginError(RuntimeError):
    """An entry point that leads nowhere, or one name that two packages claim."""


class Plugin:
    """One entry of a list: ``name = module:attribute``."""

    def __init__(self, group: str, name: str, value: str, package: str) -> None:
        self.group, self.name, self.value, self.package = group, name, value, package

    def __repr__(self) -> str:
        return f"Plugin({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def load(self) -> Any:
        """The object that the line names; its module is imported now."""
        module, _, attribute = self.value.partition(":")
        try:
            found = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):
                raise  # the module is there, and misses another one
            raise PluginError(f"{self.problem} there is no module {error.name}; install the package again") from None
        except AttributeError:
            raise PluginError(f"{self.problem} {module} has no {attribute}; install the package again") from None
        return found

    @property
    def problem(self) -> str:
        return f"the package {self.package} lists {self.name} = {self.value!r} under {self.group}, but"


def refuse_libraries() -> None:
    """Raise an error if TRITON_PLUGIN_PATHS names compiled plugins, which are for Triton's own compiler."""
    for path in filter(None, (getenv("TRITON_PLUGIN_PATHS") or "").split(":")):
        extend_with(path, "TRITON_PLUGIN_PATHS")


def extend_with(path: str, by: str = "extend_with") -> NoReturn:
    """Refuse a compiled plugin, under the name of Triton 3.8's function that loads one."""
    raise PluginError(
        f"Failed to load plugin from path: {path}: {by} names libraries for Triton's own compiler, which tilework"
        " cannot load; plugins of tilework are Python packages with entry points of the groups tilework.passes and"
        " tilework.ops"
    )


PREFERRED: dict[tuple[str, str], Plugin] = {}


def prefer(group: str, name: str, value: str | None) -> None:
    """Let `name` refer to ``module:attribute`` in this process from now on, whatever packages declare; None undoes
    this.

    Example:
        from tilework.process.plugins import find, prefer

        prefer("tilework.backends", "abacus", "collections:OrderedDict")
        assert find("tilework.backends", "abacus").value == "collections:OrderedDict"
        prefer("tilework.backends", "abacus", None)
    """
    PREFERRED.pop((group, name), None)
    if value is not None:
        PREFERRED[group, name] = Plugin(group, name, value, OWN)


def plugins(group: str) -> tuple[Plugin, ...]:
    """Return the entries of a group: built-in ones, then entry points of other packages, then those set by `prefer`.

    Example:
        from tilework.process.plugins import plugins

        assert {"cpu", "cuda", "hip"} <= {plugin.name for plugin in plugins("tilework.backends")}
    """
    ours = (Plugin(group, name, value, OWN) for name, value in BUILT_IN.get(group, {}).items())
    others = () if is_on("TRITON_BACKENDS_IN_TREE") else listed(tuple(sys.path), has_other_finders())
    found = (*ours, *(plugin for plugin in others if plugin.group == group))
    declared = (plugin for plugin in found if (group, plugin.name) not in PREFERRED)
    return (*declared, *(plugin for plugin in PREFERRED.values() if plugin.group == group))


def find(group: str, name: str) -> Plugin | None:
    """Return the entry point with this name, or None.

    Example:
        from tilework.process.plugins import find

        assert find("tilework.backends", "cuda").package == "tilework"
        assert find("tilework.backends", "abacus") is None
    """
    found = [plugin for plugin in plugins(group) if plugin.name == name]
    if len(found) > 1:
        owners = " and ".join(plugin.package for plugin in found)
        raise PluginError(f"the packages {owners} have both an entry point {name} in {group}: uninstall one of them")
    return found[0] if found else None


def has_other_finders() -> bool:
    """Return True if packages can be found in other ways than by looking into the folders of the path."""
    return any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder)


@cache
def listed(path: tuple[str, ...], needs_metadata: bool) -> tuple[Plugin, ...]:
    """The entry points of other packages; of two copies of a package the first on the path."""
    needs_metadata |= any(is_archive(folder) for folder in path)
    packages: dict[str, Iterable[Plugin]] = {OWN: ()}  # whose metadata may be that of another release
    for package, found in from_metadata() if needs_metadata else from_folders(path):
        packages.setdefault(package, found)
    return tuple(plugin for found in packages.values() for plugin in found)


def is_archive(folder: str) -> bool:
    return os.path.isfile(folder) and not folder.endswith(STANDARD_LIBRARY)


def from_folders(path: Iterable[str]) -> Iterator[tuple[str, Iterable[Plugin]]]:
    """Yield the packages with entry points that are installed in the folders of the path, with these entry points."""
    for folder in path:
        with suppress(FileNotFoundError):  # a relative one, in a process whose own folder was deleted
            yield from from_folder(os.path.abspath(folder))


@cache
def from_folder(folder: str) -> list[tuple[str, list[Plugin]]]:
    """Return the packages with entry points in one folder."""
    found: list[tuple[str, list[Plugin]]] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in sorted(name for name in names if name.endswith(INSTALLED)):
        try:
            file = os.open(f"{folder}{os.sep}{name}{os.sep}entry_points.txt", os.O_RDONLY)
        except OSError:  # most have none; a file object would take twice as long to say so
            continue
        with open(file, "rb", 0) as stream:
            text = stream.read()
        package = plain_name(name.rpartition(".")[0].partition("-")[0])
        found.append((package, list(entries(text.decode().splitlines() if GROUPS in text else (), package))))
    return found


def from_metadata() -> Iterator[tuple[str, Iterable[Plugin]]]:
    """The same, as Python finds them: also in archives and wherever else packages can be imported from."""
    from importlib.metadata import distributions  # slow, see above

    for found in distributions():
        if (text := found.read_text("entry_points.txt")) is not None:
            package = plain_name(found.name)
            yield package, entries(text.splitlines(), package)


def plain_name(package: str) -> str:
    """Return the normalized name of a package: lower case, with ``-`` for ``_`` and ``.``."""
    return package.replace("_", "-").replace(".", "-").lower()


def entries(lines: Iterable[str], package: str) -> Iterator[Plugin]:
    """The entry points in a file: ``[group]`` above ``name = module:attribute``."""
    group = None
    for line in lines:
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            group = line.strip("[]")
        elif group is not None and ":" in line:
            name, _, value = line.partition("=")
            yield Plugin(group, name.strip(), value.partition("[")[0].strip(), package)
