"""The keys of cache entries: a hash of everything that determines the output of the compiler.

>>> folder_of("ab" * 32)
'VOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOVQ'
"""

import base64
import hashlib
import inspect
import marshal
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source, find_spec
from typing import Any, Protocol

from tilework import knobs
from tilework.language.compile_time import constexpr
from tilework.language.constant_text import portable_text
from tilework.language.function import JITCallable
from tilework.language.origins import is_of_language
from tilework.process import triton_version
from tilework.process.plugins import Plugin, plugins
from tilework.runtime.launch.python.specialize import flags, leaves_of
from tilework.version import __version__

NAME_CHARS = 150
NAME_BYTES = 200  # with prefix and extension below the 255 of most file systems
KEY_BYTES = 64
HASH_DIGITS = 64
ROOT = os.path.abspath(os.path.join(__file__, *[os.pardir] * 3))
NOTHING_KEPT = (OSError, EOFError, ValueError, TypeError, LookupError)
TICK = 2_000_000_000  # nanoseconds: the coarsest resolution of file times


class Hashed(Protocol):
    """A part of a key: a source, a backend or its options."""

    def hash(self) -> str: ...


def get_cache_key(src: Hashed, backend: Hashed, backend_options: Hashed, env_vars: Mapping[str, str]) -> str:
    """The cache key of a compilation, a SHA-256 digest in hex. It covers this package, the source, tools, options and
    environment.

    Example:
        from tilework.compiler import ASTSource, GPUTarget, get_cache_key, make_backend

        @tilework.jit
        def kernel(out):
            tl.store(out, 7)

        source, backend = ASTSource(kernel, {"out": "*i32"}), make_backend(GPUTarget("cuda", 90, 32))
        key = get_cache_key(source, backend, backend.parse_options({"num_warps": 8}), {})
        assert len(key) == 64
    """
    variables = sorted(env_vars.items())
    text = f"{triton_key()}-{src.hash()}-{backend.hash()}-{backend_options.hash()}-{variables}{plugins_key()}"
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def triton_key() -> str:
    """The identity of this compiler: version, Python, and a hash of its sources."""
    return f"{__version__}-{sys.implementation.cache_tag}-{hash_of_sources(ROOT)}"


def plugins_key() -> str:
    """Return the ops and passes that packages add, each with a hash of its module's file; empty without any."""
    found = [plugin for group in ("tilework.ops", "tilework.passes") for plugin in plugins(group)]
    return "".join(sorted(f"-{plugin.group}:{plugin.name}={plugin.value}@{file_hash(plugin)}" for plugin in found))


def file_hash(plugin: Plugin) -> str:
    """Return a hash of the file of a plugin's module; empty where there is none."""
    module = plugin.value.partition(":")[0]
    try:
        spec = find_spec(module)
    except (ModuleNotFoundError, ValueError):  # a package that is gone; a main program
        spec = None
    file = getattr(sys.modules.get(module), "__file__", None) if spec is None else spec.origin
    return hashlib.sha256(content_of(file)).hexdigest() if file and os.path.isfile(file) else ""


def hash_of_sources(root: str) -> str:
    """A hash of the Python files of a package.

    Reading the files takes tens of milliseconds, so the hash is stored beside Python's bytecode. Like bytecode, it is
    valid while the size and the modification time of every file, and the modification time of every folder (which
    changes with its list of names), are unchanged.
    """
    if not os.path.isdir(root):  # imported from an archive
        return hashlib.sha256(content_of(archive_around(root))).hexdigest()
    kept = kept_states(root)
    try:
        content = content_of(kept)
        known, (paths, states) = content[:HASH_DIGITS].decode(), marshal.loads(memoryview(content)[HASH_DIGITS:])
        if paths[0] == root and states_of(paths) == states and len(known) == HASH_DIGITS:
            return known
    except NOTHING_KEPT:
        pass
    found_files = sorted(files_below(root))
    paths = [root, *(path for path, _ in found_files)]
    states = states_of(paths)
    found = hash_of_files(root, [path for path, is_source in found_files if is_source])
    now = time.time_ns()
    settled = all(abs(now - changed) > TICK for _, changed in states)  # a change now would have another time
    if settled and not sys.dont_write_bytecode and states_of(paths) == states:
        keep(kept, found.encode() + marshal.dumps((paths, states)))
    return found


def archive_around(root: str) -> str:
    """The archive that a package is imported from: ``/app/lib.zip`` of ``/app/lib.zip/tilework``."""
    while not os.path.exists(root):
        root = os.path.dirname(root)
    return root


def kept_states(root: str) -> str:
    """Return the file that keeps the hash, followed by the paths it covers and their sizes and times."""
    return cache_from_source(os.path.join(root, "sources.py")) + ".known"  # not as in files of earlier versions


def states_of(paths: list[str]) -> list[tuple[int, int]]:
    """The size of each file or folder, and when it was changed."""
    return [(status.st_size, status.st_mtime_ns) for status in map(os.stat, paths)]


def hash_of_files(root: str, paths: list[str]) -> str:
    content = hashlib.sha256()
    for path in paths:
        data = content_of(path)
        content.update(f"{path[len(root) + 1 :]} {len(data)}\n".encode())
        content.update(data)
    return content.hexdigest()


def keep(path: str, content: bytes) -> None:
    """Write a file, whole or not at all."""
    draft = f"{path}.{os.getpid()}"
    try:
        with open(draft, "xb") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError:  # a package that its user may not change, as its bytecode
        with suppress(OSError):
            os.remove(draft)


def content_of(path: str) -> bytes:
    """Return the content of a file, read in half of the time that a file object takes."""
    source = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(source, 1 << 16)
        while more := os.read(source, 1 << 16):
            data += more
        return data
    finally:
        os.close(source)


def files_below(folder: str) -> Iterator[tuple[str, bool]]:
    """Every Python file below a folder of a package, and every folder that may have some; whether it is a file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path, True
            elif entry.name != "__pycache__" and entry.is_dir():
                yield entry.path, False
                yield from files_below(entry.path)


def folder_of(key: str) -> str:
    """The folder of a key: base32 without padding; a key that is not hex is hashed first."""
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raw = b""
    if not 0 < len(raw) <= KEY_BYTES:
        raw = hashlib.sha256(key.encode()).digest()
    return base64.b32encode(raw).decode().rstrip("=")


def file_stem(name: str) -> str:
    """A kernel's name, cut so that files can be named after it: use it for ``<name>.ttir``."""
    return name[:NAME_CHARS].encode()[:NAME_BYTES].decode(errors="ignore")


# ---- the environment variables that change what is compiled: a part of every key


CACHE_INVALIDATING = (
    "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE", "AMDGCN_ENABLE_DUMP", "AMDGCN_USE_BUFFER_ATOMICS",
    "AMDGCN_USE_BUFFER_OPS", "DISABLE_LLVM_OPT", "DISABLE_MMA_V3",
    "DISABLE_MMA_V5", "DISABLE_PTXAS_OPT", "LLVM_IR_ENABLE_DUMP", "LLVM_ENABLE_TIMING", "LLVM_PASS_PLUGIN_PATH",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES", "MLIR_ENABLE_DIAGNOSTICS", "MLIR_ENABLE_DUMP", "MLIR_DUMP_PATH",
    "MLIR_ENABLE_TIMING", "MLIR_DISABLE_MULTITHREADING", "TRITON_DEFAULT_FP_FUSION", "TRITON_DISABLE_LINE_INFO",
    "TRITON_DUMP_MIR", "TRITON_ENABLE_LLVM_DEBUG", "TRITON_HIP_USE_ASYNC_COPY", "TRITON_HIP_USE_BLOCK_PINGPONG",
    "TRITON_HIP_USE_IN_THREAD_TRANSPOSE", "TRITON_LLVM_DEBUG_ONLY", "TRITON_ENABLE_ASAN", "TRITON_OVERRIDE_ARCH",
    "USE_IR_LOC", "NVPTX_ENABLE_DUMP", "PTXAS_OPTIONS", "ALLOW_LHS_TMEM_LAYOUT_CONVERSION", "TRITON_F32_DEFAULT",
    "TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY", "TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY",
    "TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT", "TRITON_PLUGIN_PATHS", "TRITON_PLUGIN_VERSION_CHECK",
    "TRITON_PREFER_TMEM_16x256_LAYOUT", "TRITON_SWAP_MIR", "TRITON_ENABLE_EXPERIMENTAL_CONSAN",
    "TILEWORK_PERFORMANCE_REMARKS",
    "TILEWORK_PERSISTENT_PROGRAMS", "TILEWORK_PLAIN_DOTS", "TILEWORK_STRICT_TRITON", "TILEWORK_TRITON_VERSION",
    "TILEWORK_WARP_SPECIALIZE",
)  # fmt: skip


def cache_invalidating_env_vars() -> dict[str, str]:
    """Return the set variables that change what is compiled; "1" and "on" as "true", "0" and "off" as "false"."""
    texts = {key: knobs.getenv(key) for key in CACHE_INVALIDATING}
    for group in (knobs.compilation, knobs.runtime, knobs.language, knobs.nvidia, knobs.amd):
        values = vars(group)
        for name, knob in group.knob_descriptors.items():  # with propagate_env off only the knob knows
            if knob.key in texts and name in values:
                texts[knob.key] = knobs.toenv(values[name])
        for name, knob in group.READ_ONCE.items():  # the environment may have changed since
            if knob.key in texts:
                texts[knob.key] = None if values[name] == knob.default else knobs.toenv(values[name])
    return {key: normalised(text) for key, text in sorted(texts.items()) if text}


def normalised(text: str) -> str:
    """One spelling for each truth value."""
    lowered = text.lower()
    return "true" if lowered in {"1", "on", "true"} else "false" if lowered in {"0", "off", "false"} else text


def changes_stages() -> bool:
    """Return True if the user replaces stages of the compiler or their output."""
    return knobs.runtime.add_stages_inspection_hook is not None or knobs.compilation.override


def stages_key() -> tuple[str, str] | None:
    """Return the (key, hash) by which the user's hook names its stages; None without a hook that does."""
    hook: Any = knobs.runtime.add_stages_inspection_hook
    if hook is None or not triton_version.follows("stages-hook-key"):
        return None
    name = getattr(hook, "__qualname__", repr(hook))
    try:
        inspect.signature(hook).bind()
    except TypeError:
        try:
            hook()  # raises an error with Python's own text
        except TypeError as error:
            raise TypeError(f"{error}: {STAGES_HOOK}") from None
    except ValueError:  # a callable whose signature is not available
        pass
    found = hook()
    if not (isinstance(found, tuple | list) and len(found) == 2 and all(isinstance(part, str) for part in found)):
        raise TypeError(f"{name}() returned {found!r}: {STAGES_HOOK}")
    return found[0], found[1]


STAGES_HOOK = (
    "a hook that inspects stages is also called without arguments, and then returns the key and the hash of its"
    " stages, two strings, which become part of the keys of kernels. Write `def hook(self=None, stages=None,"
    " options=None, language=None, capability=None)` that begins with `if stages is None: return key, hash`, or set"
    " TILEWORK_TRITON_VERSION=3.6.0, whose hooks are called with stages only"
)


# ---- the parts of a key that a source has, as plain dictionaries: what is stored with the files of every compilation
#
# Nothing is defined here that takes time: each process that compiles loads this. `key_parts.py` makes values of them.


LONGEST = 120  # characters of a constant that is kept as it is


def source_parts(source: Any, backend: Any) -> dict[str, Any]:
    """The parts that a source has before options and environment are known, as they are stored with its files."""
    fn = source.fn
    return {
        "kernel": fn._fn_name.replace("__mp_main__", "__main__"),  # as multiprocessing calls the main program
        "arguments": arguments_of(source, lambda constant: shortened(portable_text(constant))),
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
    """The parts of a key that the code of a kernel has: its text, and that of all that it refers to."""
    if fn.fn is None:  # it was pickled without its text
        return {"source": fn.portable_key}
    parts = {"source": digest(fn.src, str(getattr(fn, "noinline", False)))}
    for function in code_of(fn):
        if function is not fn:
            parts[f"function {function.__qualname__}"] = digest(function.src)
        parts |= {f"global {name}": shortened(text) for name, text in globals_of(function).items()}
        found = function.dependencies
        for other in (*found.functions, *found.plain_functions, *found.classes):
            if not isinstance(other, JITCallable) or other.fn is None:
                parts[f"function {getattr(other, '__qualname__', repr(other))}"] = digest(portable_text(other))
    return parts


def globals_of(fn: JITCallable) -> Mapping[str, str]:
    """The globals that the text of a function names, with their values; one that is a `constexpr` as what it holds.
    Default arguments are called ``helper.n``."""
    found = fn.dependencies
    values = {name: value for (name, _), (value, _) in found.global_values.items()}
    values |= {f"{fn.__qualname__}.{name}": value for name, value in found.defaults.items()}
    return {
        name: portable_text(value.value if isinstance(value, constexpr) else value) for name, value in values.items()
    }


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
