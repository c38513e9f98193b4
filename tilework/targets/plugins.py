"""Classes that other installed packages register under an entry point group.

    plugins("tilework.drivers")        the entry points of the group; mostly none

With TRITON_BACKENDS_IN_TREE=1 there are none: only what is part of tilework is used.

Python's own search imports an e-mail parser and half of the standard library, 30 ms in every process that launches a
kernel. So the files are looked through for the name of the group first, which takes one.
"""

import os
import sys
from importlib.machinery import PathFinder
from typing import Any

from tilework.targets.observe import is_on

INSTALLED = (".dist-info", ".egg-info")


def plugins(group: str) -> list[Any]:
    """The entry points of a group, from all installed packages."""
    if is_on("TRITON_BACKENDS_IN_TREE") or not is_mentioned(group):
        return []
    from importlib.metadata import entry_points

    return list(entry_points(group=group))


def is_mentioned(group: str) -> bool:
    """Whether an installed package may have the group: its name stands in a file, or there are places we cannot read."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in finders):
        return True
    heading = f"[{group}]".encode()
    return any(mentions(folder or os.curdir, heading) for folder in sys.path)


def mentions(folder: str, heading: bytes) -> bool:
    """Whether a package that is installed in `folder` has `heading` in its list of entry points."""
    try:
        names = os.listdir(folder)
    except NotADirectoryError:  # an archive
        return not folder.endswith(f"python{sys.version_info.major}{sys.version_info.minor}.zip")
    except OSError:
        return False
    for name in names:
        if name.endswith(INSTALLED):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if heading in file.read():
                        return True
            except OSError:
                continue
    return False
