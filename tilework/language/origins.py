"""Origins of functions, classes and modules: this package, a library with its version, or the user's program.

origin_of("numpy.linalg")     "numpy.linalg 2.3.1"
origin_of("train")            "": a module of the program may have another name in another process
name_of(OrderedDict)          "collections:OrderedDict"
"""

import os
import sys
from types import FunctionType
from typing import Any

LANGUAGE = __name__.rpartition(".")[0]
PACKAGE = LANGUAGE.partition(".")[0]
FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep
STANDARD = os.path.dirname(os.__file__) + os.sep
OWN_MODULES: dict[int, str] = {}  # by the id of an object whose `__module__` shows another one
HEAP_TYPE = 1 << 9  # of `type.__flags__`: not a class in C that is always there
ORIGINS: dict[str, str] = {}  # of the modules of libraries


def name_of(value: Any) -> str:
    """The qualified name of a class or a function, or of the class of any other value; with the module of a library."""
    named = value if hasattr(value, "__qualname__") else type(value)
    origin = origin_of(module_of(named))
    return f"{origin}:{named.__qualname__}" if origin else named.__qualname__


def origin_of(module: str) -> str:
    """The name and the version of a library's module; empty for a module of the user, which is identified by
    content."""
    if (known := ORIGINS.get(module)) is not None:
        return known
    if module.partition(".")[0] == PACKAGE or module in sys.builtin_module_names:
        return ORIGINS.setdefault(module, module)
    loaded = sys.modules.get(module)
    spec, file = getattr(loaded, "__spec__", None), getattr(loaded, "__file__", None)
    if loaded is None or module == "__main__":
        return ""
    if not isinstance(file, str):
        return ORIGINS.setdefault(module, module) if getattr(spec, "origin", None) in ("frozen", "built-in") else ""
    if is_in_packages(file):
        version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", None)
        return "" if version is None else ORIGINS.setdefault(module, f"{module} {version}")
    if file.startswith(STANDARD):
        return ORIGINS.setdefault(module, module)
    if file.endswith((".py", ".pyc")):
        return ""
    with open(file, "rb") as content:  # an extension module of the user
        return ORIGINS.setdefault(module, f"{module} {digest(content.read())}")


def module_of(value: Any) -> str:
    """The name of the module that defines a function or a class, or the class of any other value; see
    `set_shown_module`."""
    for named in (value, type(value)):
        if (module := OWN_MODULES.get(id(named))) is not None:
            return module
    return getattr(value, "__module__", None) or ""


def set_shown_module(value: Any, module: str) -> None:
    """Set the `__module__` of a function or a class, by which other programs import it; `module_of` still gives the
    real one."""
    OWN_MODULES.setdefault(id(value), value.__module__)
    value.__module__ = module


def is_of_library(cls: type) -> bool:
    """Return True if a library defines a class. A class that a program creates at run time may have a library's name in
    `__module__`; it does not count."""
    module = module_of(cls)
    if not origin_of(module):
        return False
    if not cls.__flags__ & HEAP_TYPE:
        return True
    found: Any = sys.modules.get(module)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls or is_of_language(cls)


def is_of_language(value: Any) -> bool:
    """Return True if a function or a class belongs to this package, whose version is part of every key."""
    if not f"{module_of(value)}.".startswith(f"{LANGUAGE}."):
        return False
    code = getattr(value, "__code__", None)  # a function of the user may have the name of the function that it wraps
    return code is None or code.co_filename.startswith((FOLDER, "<"))


def is_versioned(function: FunctionType) -> bool:
    """Return True if a function is from a library whose version is known: the key then contains its own code, but not
    all that it refers to."""
    file = function.__code__.co_filename
    if is_in_packages(file):
        root = function.__globals__.get("__name__", "").partition(".")[0]
        return getattr(sys.modules.get(root), "__version__", None) is not None
    return file.startswith(STANDARD) or file.startswith("<frozen ")


def is_in_packages(file: str) -> bool:
    """Return True for a file of an installed package."""
    folders = file.replace(os.sep, "/").split("/")
    return "site-packages" in folders or "dist-packages" in folders


def digest(data: bytes) -> str:
    import hashlib  # lazily: few programs need it, and it is slow to load

    return hashlib.sha256(data).hexdigest()
