"""Analyse how the code of a plain Python function uses modules, for the key of kernels that call it while compiling.

takes_members_only(code, "cfg")     True if ``cfg`` occurs in it as ``cfg.x`` only
imports_of(function)                {"cfg": <module>, "cfg.x": 5} of ``import cfg`` and ``from cfg import x`` in it
environment_names(code, readers)    ["A"] of ``os.environ["A"]``
"""

import dis
import sys
from collections.abc import Collection, Iterator
from importlib.util import resolve_name
from types import CodeType, FunctionType
from typing import Any

MEMBER = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
LOADS |= {"LOAD_ATTR", "LOAD_FROM_DICT_OR_DEREF"}  # `package.cfg` is one too


def takes_members_only(code: CodeType, name: str) -> bool:
    """Return True if code, and the functions that it defines, use a module only to read members."""
    for part in parts_of(code):
        before = None
        for step in steps_of(part):
            if before is not None and before.opname in LOADS and before.argval == name and step.opname not in MEMBER:
                return False
            before = step
    return True


def parts_of(code: CodeType) -> Iterator[CodeType]:
    """Yield the code and all code that is defined in it."""
    yield code
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from parts_of(item)


def steps_of(code: CodeType) -> list[dis.Instruction]:
    """The instructions of code, without those that only support others (`CACHE`, `PUSH_NULL`, `EXTENDED_ARG`)."""
    return [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PUSH_NULL", "EXTENDED_ARG")]


def environment_names(code: CodeType, readers: Collection[str]) -> list[str] | None:
    """Return the environment variables that code reads as ``os.environ["A"]``, ``os.environ.get("A")`` or
    ``os.getenv("A")``; None if it may read others."""
    found: set[str] = set()
    for part in parts_of(code):
        steps = steps_of(part)
        for index, step in enumerate(steps):
            if not isinstance(step.argval, str) or step.argval not in readers:
                continue
            one, two = [*steps[index + 1 : index + 3], step, step][:2]
            if step.argval.startswith("environ"):
                is_item = two.opname == "BINARY_SUBSCR" or two.argrepr == "[]"
                one = one if is_item else two if one.opname in MEMBER and one.argval == "get" else step
            if step.opname not in LOADS | MEMBER or one.opname != "LOAD_CONST" or not isinstance(one.argval, str):
                return None
            found.add(one.argval)
    return sorted(found)


def imports_of(function: FunctionType) -> dict[str, Any]:
    """Return the modules and members that a function imports when it runs, by name. A module that is not loaded yet is
    not imported; a new object represents it, so that the key is not portable. Modules of the standard
    library are represented by the imported names."""
    found: dict[str, Any] = {}
    for code in parts_of(function.__code__):
        steps = steps_of(code)
        for level, members, step in zip(steps, steps[1:], steps[2:]):
            if step.opname != "IMPORT_NAME":
                continue
            name = resolved("." * level.argval + step.argval, function.__globals__)
            root = name.partition(".")[0]
            if root in sys.stdlib_module_names:
                found[name] = members.argval
                continue
            there = vars(sys.modules[name]) if name in sys.modules else {}
            for member in members.argval or ():
                path = f"{name}.{member}"
                found[path] = there[member] if member in there else sys.modules.get(path, object())
            if not members.argval:  # the statement binds the package of ``import package.module``
                found |= {path: sys.modules.get(path, object()) for path in (name, root)}
    return found


def resolved(name: str, scope: dict[str, Any]) -> str:
    """The full name of a module that an import statement names."""
    try:
        return resolve_name(name, scope.get("__package__"))
    except ImportError:  # the function fails too
        return name
