"""Compile options: keyword arguments of a launch, beside the arguments of the kernel.

    kernel[grid](x, y, n, BLOCK=1024, num_warps=8)      # num_warps is an option

All targets accept all of them, so that a launch written for one runs on another; a target reads those that mean
something to it.
"""

import hashlib
import time
import warnings
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import OptionError, did_you_mean
from tilework.light_dataclass import light_dataclass
from tilework.numerics.formats import DOT_PRECISIONS, FP8_TYPES
from tilework.process.triton_version import follows
from tilework.target import LAUNCH_SIZES, launch_size

REPRODUCIBLE = {"reproducible": True, "enable_fp_fusion": False, "default_dot_input_precision": "ieee"}


@light_dataclass
class CompileOptions:
    """One value per option, in Triton's order; frozen, because its hash is part of the cache key."""

    IS_INSTRUMENTED = True  # Triton's sanitizers check such kernels
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 1
    maxnreg: int | None = None
    ptx_version: int | None = None
    ptx_options: str | None = None
    ir_override: str | None = None
    enable_fp_fusion: bool = True
    enable_reflect_ftz: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] = ()
    debug: bool = False
    backend_name: str = "cpu"
    sanitize_overflow: bool = True
    arch: str | None = None
    instrumentation_mode: str = ""
    min_shared_mem: int | None = None  # bytes that a program takes at least, on NVIDIA GPUs: fewer run at a time
    sanitize: bool | str = False  # or "strict" or "race"
    auto_tma: bool | str = (
        False  # loads of rectangles become copies through descriptors that the launch makes; or "pays": some
    )
    cluster_dims: tuple[int, int, int] = (1, 1, 1)
    reproducible: bool = False  # the same bits everywhere
    may_alias: bool = (
        False  # on CPUs: arguments may overlap, so all accesses keep their order; launches detect it by themselves
    )

    def __init__(self, **given: Any) -> None:
        names = option_names(CompileOptions)
        if unknown := given.keys() - names:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        vars(self).update({name: getattr(CompileOptions, name) for name in names}, **given)
        self.__post_init__()

    def __post_init__(self) -> None:
        for name in LAUNCH_SIZES:
            object.__setattr__(self, name, launch_size(name, getattr(self, name)))
        least = self.min_shared_mem
        if least is not None and (type(least) is not int or least < 0):
            raise ValueError(f"min_shared_mem is a number of bytes, got {least!r}")
        if isinstance(self.extern_libs, Mapping):
            object.__setattr__(self, "extern_libs", tuple(self.extern_libs.items()))

    @classmethod
    def of(cls, settings: Mapping[str, Any], **derived: Any) -> "CompileOptions":
        """Options from launch keywords; None means not given, an unknown name is a KeyError."""
        known = option_names(cls)
        settings = without_foreign(settings, derived.get("backend_name", cls.backend_name))
        refuse_others(settings, known)
        given = {name: value for name, value in settings.items() if value is not None}
        defaults = {
            "enable_fp_fusion": knobs.language.default_fp_fusion,
            "debug": knobs.runtime.debug,
            "sanitize": knobs.runtime.sanitize,
            "sanitize_overflow": knobs.runtime.sanitize_overflow,
            "reproducible": knobs.runtime.reproducible,
        }
        chosen = {**defaults, **derived, **given}
        if cls.IS_INSTRUMENTED and is_instrumented(chosen.get("instrumentation_mode", "")):
            chosen |= {"debug": True, **({"sanitize_overflow": False} if follows("consan-overflow") else {})}
        return cls(**(chosen | REPRODUCIBLE if chosen["reproducible"] else chosen))

    def hash(self) -> str:
        """The SHA-256 over all fields; of files that the options name, it includes the content and not the path."""
        texts = {name: by_content(name, getattr(self, name)) for name in option_names(type(self))}
        return hashlib.sha256(repr(texts).encode()).hexdigest()


def by_content(name: str, value: Any) -> Any:
    """The value of an option for keys; a file that it names is replaced by a hash of its content."""
    if name == "ir_override" and value is not None:
        return file_text(str(value))
    if name == "extern_libs" and value:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(library, file_text(str(path))) for library, path in pairs]
    return value


def file_text(path: str) -> str:
    """Return a text that identifies a file regardless of its path: its extension, which names a stage, and a hash of
    its content."""
    return f"{Path(path).suffix}{content_digest(path).hex()}" if Path(path).is_file() else path


def content_digest(path: str) -> bytes:
    """SHA-256 of a file, which is read again when it has changed: libdevice is half a megabyte, and part of every
    key.
    """
    found = Path(path).stat()
    is_settled = abs(time.time_ns() - found.st_mtime_ns) > RECENTLY  # two versions of one moment look alike
    digest = digest_of_version if is_settled else digest_of_version.__wrapped__
    return digest(path, found.st_mtime_ns, found.st_size, found.st_ino)


RECENTLY = 2 * 10**9  # nanoseconds


@lru_cache(maxsize=64)
def digest_of_version(path: str, changed: int, size: int, inode: int) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


@cache
def option_names(kind: type[CompileOptions]) -> dict[str, None]:
    """The options that a class has, those of its bases first: the names of its fields."""
    return dict.fromkeys(name for cls in kind.__mro__[::-1] for name in getattr(cls, "__annotations__", ()))


def is_instrumented(mode: str) -> bool:
    """Return True for a mode of Triton's sanitizers that turns on what `debug` does."""
    return any(word in mode for word in ("consan", "iisan"))


NAMES = tuple(option_names(CompileOptions))
FACTS_OF_TARGET = ("warp_size", "backend_name")  # no launch chooses these
AMD_OPTIONS = (
    "waves_per_eu", "matrix_instr_nonkdim", "kpack", "allow_flush_denorm", "schedule_hint", "llvm_fn_attrs",
)  # fmt: skip
# options of Triton 3.8 that have no effect yet, and the value with which a launch may name them
LATER_OPTIONS = {"clc": False, "fpsan_homomorphic_casts": False}
_warned: set[str] = set()


def chosen_names(kind: type[CompileOptions]) -> set[str]:
    """Return the options of a class that launches choose."""
    return option_names(kind).keys() - set(FACTS_OF_TARGET)


def refuse_others(settings: Mapping[str, Any], known: Collection[str]) -> None:
    """An OptionError for the first name that is not known."""
    for name in settings:
        if name not in known:
            raise OptionError(f"Keyword argument {name} was specified but unrecognised{did_you_mean(name, known)}")


def without_foreign(settings: Mapping[str, Any], backend: str) -> Mapping[str, Any]:
    """Options that only other devices have are left out, with one warning each; autotuned kernels often name them.

    `num_ctas` is kept, and has no effect on the CPU.
    """
    if later := settings.keys() & LATER_OPTIONS.keys():
        for name in sorted(later):
            if settings[name] not in (LATER_OPTIONS[name], None):
                raise OptionError(f"{name}={settings[name]!r} is of Triton 3.8, and tilework does not have it")
        settings = {name: value for name, value in settings.items() if name not in later}
    foreign = () if backend == "hip" else AMD_OPTIONS
    ignored = {name: "AMD GPUs" for name in foreign if name in settings}
    blocks = settings.get("num_ctas")
    if backend == "cpu" and isinstance(blocks, int) and blocks != 1:
        ignored["num_ctas"] = "NVIDIA GPUs"
    if not ignored:
        return settings
    for name, owner in ignored.items():
        if name not in _warned:
            _warned.add(name)
            text = f"the option {name}={settings[name]!r} is for {owner}: the target {backend} ignores it"
            warnings.warn(text, stacklevel=2)
    return {name: value for name, value in settings.items() if name not in foreign}
