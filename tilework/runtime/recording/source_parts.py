"""The parts of a key that a source has, as plain dictionaries: what is stored with the files of every compilation.

Nothing is defined here that takes time: each process that compiles loads this. `key_parts.py` makes values of them.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from tilework.language.constant_text import constant_text, is_of_language
from tilework.language.function import JITCallable
from tilework.runtime.kernel_cache.key import triton_key
from tilework.runtime.launch.python.specialize import flags, leaves_of

LONGEST = 120  # characters of a constant that is kept as it is


def source_parts(source: Any, backend: Any) -> dict[str, Any]:
    """The parts that a source has before options and environment are known, as they are stored with its files."""
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
            "facts": flags(source.attrs.get(path, ())),
            "constant": text(source.constants[path]) if path in source.constants else None,
            "declared": declared.get(leaf.partition("[")[0], False),
        }
        for leaf, path, type in leaves_of(source.signature, source.fn.arg_names)
    }


def code_parts(fn: JITCallable) -> dict[str, str]:
    """The parts of a key that the code of a kernel has, with its file and lines, which messages of compiled code
    contain."""
    if fn.fn is None:  # it was pickled without its text
        return {"source": fn.cache_key, "line": "", "file": ""}
    parts = {
        "source": digest(fn.src, str(getattr(fn, "noinline", False))),
        "line": str(fn.def_line),
        "file": fn._reported_file,
    }
    for function in code_of(fn):
        if function is not fn:
            parts[f"function {function.__qualname__}"] = digest(
                function.src, str(function.def_line), function._reported_file
            )
        found = function.dependencies
        for (name, _), (value, _) in found.global_values.items():
            parts[f"global {name}"] = shortened(constant_text(value))
        for other in (*found.functions, *found.plain_functions, *found.classes):
            if not isinstance(other, JITCallable) or other.fn is None:
                parts[f"function {getattr(other, '__qualname__', repr(other))}"] = digest(constant_text(other))
    return parts


def portable_parts(fn: JITCallable) -> dict[str, str]:
    """`code_parts` without files and lines, the same on every machine."""
    from tilework.language.portable_key import globals_of  # lazily: only bundles need it

    parts = {"source": digest(fn.src, str(getattr(fn, "noinline", False)))}
    for function in code_of(fn):
        if function is not fn:
            parts[f"function {function.__qualname__}"] = digest(function.src)
        parts |= {f"global {name}": text for name, text in globals_of(function).items()}
    return parts


def code_of(fn: JITCallable) -> list[JITCallable]:
    """A kernel and the jit functions that it calls, each once, without those of the language, which are a part of the
    package."""
    found = [fn]
    for function in found:
        for other in function.dependencies.functions:
            if isinstance(other, JITCallable) and other.fn is not None and not is_of_language(other.fn):
                found += [] if any(other is known for known in found) else [other]
    return found


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def shortened(text: str) -> str:
    """A text as it is, or its beginning and a hash."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}... ({digest(text)})"
