"""The settings of LLVM that the environment requests, for every target.

    LLVM_IR_ENABLE_DUMP=1          the text that the code generator gets, on standard error
    LLVM_ENABLE_TIMING=1           how long each pass of the code generator took, on standard error
    DISABLE_LLVM_OPT=1             no optimisation; or the names of LLVM's own switches: DISABLE_LLVM_OPT=disable-lsr
    TRITON_ENABLE_LLVM_DEBUG=1     what LLVM's passes say about their work, on standard error; very long
    TRITON_LLVM_DEBUG_ONLY=isel    the same, from the named passes only
    TRITON_DUMP_MIR=DIR            the machine instructions after selection, as DIR/KERNEL.mir
    LLVM_PASS_PLUGIN_PATH=FILE     has no effect, and a warning says so: llvmlite cannot load plugins

    with watching(text):
        machine.emit_object(module)

LLVM has these settings once per process, so code that other threads generate in the meantime is shown too.
"""

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tilework import knobs
from tilework.knobs import is_on
from tilework.targets.llvm.binding import llvm

TRUE_TEXTS = ("1", "on", "true", "y", "yes")  # DISABLE_LLVM_OPT means everything; other texts are names of switches
STDERR = 2
UNFIT = r"[^\w.-]"  # for the name of a file
NAME = r'@(?:"([^"]+){0}"|([\w.$-]+){0})\s*\('
KERNELS = [
    r"\bptx_kernel\b[^@\n]*" + NAME.format(""),
    r"(?m)^define [^@\n]*" + NAME.format("_range"),
    r"(?m)^define [^@\n]*" + NAME.format(""),
]
WATCHED = (
    "LLVM_IR_ENABLE_DUMP",
    "LLVM_ENABLE_TIMING",
    "TRITON_ENABLE_LLVM_DEBUG",
    "TRITON_LLVM_DEBUG_ONLY",
    "TRITON_DUMP_MIR",
)


def level(wanted: int) -> int:
    """The optimisation level for LLVM: `wanted`, or 0 if the environment forbids optimisation."""
    text = (knobs.getenv("DISABLE_LLVM_OPT") or "").strip()
    if not is_on("DISABLE_LLVM_OPT"):
        return wanted
    if text.lower() in TRUE_TEXTS:
        return 0
    for name in re.split(r"[\s,]+", text):
        set_switch(name.lstrip("-"))
    return wanted


@cache
def set_switch(name: str) -> None:
    """Set one of LLVM's own switches; it remains set. LLVM ignores a name that it does not know."""
    if not re.fullmatch(r"[\w-]+(=\w+)?", name):
        raise ValueError(f"DISABLE_LLVM_OPT is 1 or names of LLVM's switches, for example disable-lsr; not {name!r}")
    llvm.set_option("tilework", f"-{name}")


@contextmanager
def watching(text: str) -> Iterator[None]:
    """Print the dumps that the environment requests, of the code generation of the LLVM `text` in the block."""
    if plugin := knobs.getenv("LLVM_PASS_PLUGIN_PATH"):
        warn_plugin(plugin)
    if not any(knobs.getenv(variable) for variable in WATCHED):
        yield
        return
    name = kernel_name(text)
    if is_on("LLVM_IR_ENABLE_DUMP"):
        sys.stderr.write(f"; *** LLVM IR of {name} ***\n{text}")
    times, folder = is_on("LLVM_ENABLE_TIMING"), knobs.getenv("TRITON_DUMP_MIR")
    with debugging(), machine_code_in(Path(folder, f"{re.sub(UNFIT, '_', name)[:150]}.mir") if folder else None):
        llvm.set_time_passes(times)
        try:
            yield
        finally:
            llvm.set_time_passes(False)
    if times:
        sys.stderr.write(llvm.report_and_reset_timings())


@contextmanager
def unguarded_strength_reduction(has_flags: bool) -> Iterator[None]:
    """Strength reduction in straight lines without its guard, for code whose operations have no flags like nsw and
    inbounds.

    Before it makes ``x * 4`` of an earlier ``x * 3`` LLVM checks whether that could be poison where ``x * 4`` is not,
    which needs a flag; the answer takes up to nine tenths of the time that code generation takes. Other threads
    generate no code at the same time: theirs may need the guard.
    """
    if has_flags:
        yield
        return
    with switched("enable-poison-reuse-guard", False):
        yield


@contextmanager
def switched(name: str, on: bool) -> Iterator[None]:
    """One of LLVM's own switches is the other way in this block, in which other threads do nothing with LLVM."""
    with llvm.ffi.lib._lock:
        llvm.set_option("tilework", f"-{name}={str(on).lower()}")
        try:
            yield
        finally:
            llvm.set_option("tilework", f"-{name}={str(not on).lower()}")


def kernel_name(text: str) -> str:
    """The kernel of an LLVM text: marked as one, or with a function for ranges of programs, or the first function."""
    for pattern in KERNELS:
        if (found := re.search(pattern, text)) is not None:
            return found[1] or found[2]
    return "kernel"


@contextmanager
def debugging() -> Iterator[None]:
    """LLVM's debug output: of all passes, or of those in TRITON_LLVM_DEBUG_ONLY."""
    only = knobs.getenv("TRITON_LLVM_DEBUG_ONLY")
    if not only and not is_on("TRITON_ENABLE_LLVM_DEBUG"):
        yield
        return
    if only:
        show_only(only)
    llvm.set_option("tilework", "-debug")
    try:
        yield
    finally:
        llvm.set_option("tilework", "-debug=false")


@cache
def show_only(names: str) -> None:
    """Limit debug output to some passes; LLVM adds names to those it has and forgets none."""
    llvm.set_option("tilework", f"-debug-only={names}")


@contextmanager
def machine_code_in(path: Path | None) -> Iterator[None]:
    """Write the machine instructions of every function to a file; None does nothing.

    LLVM prints them on standard error and nowhere else, so it is redirected to a file for this time.
    """
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(STDERR)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), STDERR)
        llvm.set_option("tilework", "-print-after-isel")
        try:
            yield
        finally:
            llvm.set_option("tilework", "-print-after-isel=false")
            os.dup2(kept, STDERR)
            os.close(kept)
            printed.seek(0)
            path.write_bytes(printed.read())


@cache
def warn_plugin(path: str) -> None:
    """Warn once that a plugin is not loaded."""
    warnings.warn(
        f"LLVM_PASS_PLUGIN_PATH={path} has no effect: tilework uses LLVM through llvmlite, which cannot load plugins",
        stacklevel=2,
    )
