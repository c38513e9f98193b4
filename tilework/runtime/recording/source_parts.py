"""The parts of a key that a source has, as plain dictionaries: what is stored with the products of every compilation.

Nothing is defined here that takes time: each process that compiles loads this. `key_parts.py` makes values of them.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from tilework.language.constant_text import constant_text, module_of
from tilework.language.function import JITCallable
from tilework.runtime.kernel_cache.key import triton_key
from tilework.runtime.launch.python.specialize import leaves_of, letters

LONGEST = 120  # characters of a constant that is kept as it is


def source_parts(source: Any, backend: Any) -> dict[str, Any]:
    """The parts that a source has before options and environment are known, as they are stored with its products."""
    fn = source.fn
    return {
        "kernel": fn._fn_name.replace("__mp_main__", "__main__"),  # as multiprocessing calls the main program
        "arguments": arguments_of(source, lambda constant: shortened(constant_text(constant))),
        "others": {"package": triton_key(), "tools": backend.hash(), **code_parts(fn)},
    }


def arguments_of(source: Any, text: Callable[[Any], str]) -> dict[str, dict[str, Any]]:
    """The arguments of a source, or of a specialisation, by name; `text` shows their constants."""
    declared = {param.name: param.is_constexpr for param in source.fn.params}
    return {
        leaf: {
            "type": type,
            "facts": letters(source.attrs.get(path, ())),
            "constant": text(source.constants[path]) if path in source.constants else None,
            "declared": declared.get(leaf.partition("[")[0], False),
        }
        for leaf, path, type in leaves_of(source.signature, source.fn.arg_names)
    }


def code_parts(fn: JITCallable) -> dict[str, str]:
    """The text of a kernel and its place, the functions that it calls, with theirs, and the globals that they read."""
    if fn.fn is None:  # it was pickled without its text
        return {"source": fn.cache_key, "line": "", "file": ""}
    parts = {"source": digest(fn.src, str(getattr(fn, "noinline", False))), "line": str(fn.def_line), "file": fn._place}
    waiting, seen = [fn], {id(fn)}
    for function in waiting:
        found = function.dependencies
        for (name, _), (value, _) in found.global_values.items():
            parts[f"global {name}"] = shortened(constant_text(value))
        for other in (*found.functions, *found.plain_functions, *found.classes):
            if id(other) in seen:
                continue
            seen.add(id(other))
            name = f"function {getattr(other, '__qualname__', repr(other))}"
            if not isinstance(other, JITCallable) or other.fn is None:
                parts[name] = digest(constant_text(other))
            elif not module_of(other.fn).startswith("tilework."):  # ours are a part of the package
                parts[name] = digest(other.src, str(other.def_line), other._place)
                waiting.append(other)
    return parts


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def shortened(text: str) -> str:
    """A text as it is, or its beginning and a hash."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}... ({digest(text)})"
