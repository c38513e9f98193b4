"""The last steps: LLVM text to machine code in memory, to an object file, or to PTX.

    data = to_object(text, 1)                    # parsed and optimised: bytes to keep in a cache
    library = jit_load(data, ["add"])            # in this process or a later one
    function = ctypes.CFUNCTYPE(...)(library["add"])

Text goes in, and text or bytes come out: contexts and modules are opened and closed here, in a thread of their own (see
`apart.py`). What lives on are the code generators and the JIT, for ever, and libraries: keep the object returned by
`jit_load` as long as its addresses are used; the code of one that is gone is freed when the next one is loaded.
llvmlite takes one lock for the whole process but releases the GIL. A fork waits until no other thread is inside of
LLVM: the child has no such thread, and would find its locks taken for ever.
"""

import itertools
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite

from tilework import knobs
from tilework.knobs import is_on
from tilework.process.forks import held_at_fork
from tilework.targets.llvm.apart import apart

# ---- `llvmlite.binding`, imported without the classes of llvmlite's own IR: a quarter of the time, for one method that
# this package never calls.
#
#     from tilework.targets.llvm.compile import llvm
#
# The module that has that method, `TypeRef.as_ir`, gets a proxy for ``llvmlite.ir`` that imports it when it is
# used. Other users of ``llvmlite.ir`` get the real module.


class Later:
    """A module, or a class in it, that is imported when it is used."""

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    def __getattr__(self, name: str) -> Any:
        return (
            getattr(getattr(import_module(self._module), self._name), name) if self._name else Later(self._module, name)
        )


@contextmanager
def without_ir() -> Iterator[None]:
    """Let ``from llvmlite import ir`` return a lazy module, unless the program has imported it already."""
    package: Any = llvmlite
    if hasattr(package, "ir"):
        yield
        return
    lazy = package.ir = Later("llvmlite.ir")
    try:
        yield
    finally:
        if package.__dict__.get("ir") is lazy:  # no other thread has imported it in the meantime
            del package.ir


with without_ir():
    import llvmlite.binding as llvm

__all__ = ["llvm"]


# ---- The last steps: LLVM text to machine code in memory, to an object file, or to PTX.


# ---- The settings of LLVM that the environment requests, for every target.
#
#     LLVM_IR_ENABLE_DUMP=1          the text that the code generator gets, on standard error
#     LLVM_ENABLE_TIMING=1           how long each pass of the code generator took, on standard error
#     DISABLE_LLVM_OPT=1             no optimisation; or the names of LLVM's own switches: DISABLE_LLVM_OPT=disable-lsr
#     TRITON_ENABLE_LLVM_DEBUG=1     what LLVM's passes say about their work, on standard error; very long
#     TRITON_LLVM_DEBUG_ONLY=isel    the same, from the named passes only
#     TRITON_DUMP_MIR=DIR            the machine instructions after selection, as DIR/KERNEL.mir (on AMD GPUs .txt)
#     LLVM_PASS_PLUGIN_PATH=FILE     has no effect, and a warning says so: llvmlite cannot load plugins
#
#     with watching(text):
#         machine.emit_object(module)
#
# LLVM has these settings once per process, so code that other threads generate in the meantime is shown too.


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
)
AMD_KERNEL = "amdgpu_kernel"  # the calling convention


def optimisation_level(wanted: int) -> int:
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
    if knobs.amd.swap_mir and AMD_KERNEL in text:
        raise ValueError(f"TRITON_SWAP_MIR={knobs.amd.swap_mir}: llvmlite cannot read machine instructions")
    if not any(knobs.getenv(variable) for variable in WATCHED) and not knobs.amd.dump_mir:
        yield
        return
    name = kernel_name(text)
    if is_on("LLVM_IR_ENABLE_DUMP"):
        sys.stderr.write(f"; *** LLVM IR of {name} ***\n{text}")
    times, folder = is_on("LLVM_ENABLE_TIMING"), knobs.amd.dump_mir
    file = f"{re.sub(UNFIT, '_', name)[:150]}.{'txt' if AMD_KERNEL in text else 'mir'}"
    with debugging(), machine_code_in(Path(folder, file) if folder else None):
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
    """Set one of LLVM's switches inside the block, and reset it afterwards. Other threads cannot use LLVM in
    between."""
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
    from tilework.process.output import bytes_in  # lazily: nothing else here needs it

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
            path.write_bytes(bytes_in(printed))


@cache
def warn_plugin(path: str) -> None:
    """Warn once that a plugin is not loaded."""
    warnings.warn(
        f"LLVM_PASS_PLUGIN_PATH={path} has no effect: tilework uses LLVM through llvmlite, which cannot load plugins",
        stacklevel=2,
    )


# ---- The last steps: LLVM text to machine code in memory, to an object file, or to PTX.


class LibraryLock:
    """llvmlite's own."""

    def acquire(self, blocking: bool = True) -> bool:
        library = llvm.ffi.lib._lock
        if not library._lock.acquire(blocking):
            return False
        library.__enter__()  # once more, for it calls others then
        library._lock.release()
        return True

    def release(self) -> None:
        llvm.ffi.lib._lock.__exit__()


_COUNTER = itertools.count()
held_at_fork(LibraryLock())
_JIT_LOCK = held_at_fork(threading.RLock())  # a signal handler may load a kernel while this very thread does
_JITS: list[Any] = []  # one, or two if a signal handler came between; code in use must not go away with its JIT


@cache
@apart
def initialize_host() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
@apart
def initialize_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


# x86 conversions to bf16 that read and write denormals as zero; without them LLVM rounds with integers, exactly
FLUSHING = ("avx512bf16", "avxneconvert", "avx10.2")


@cache
@apart
def flushing_features() -> frozenset[str]:
    """Return the features of FLUSHING that this machine has."""
    found = llvm.get_host_cpu_features()
    return frozenset(name for name in FLUSHING if found.get(name))


@cache
@apart
def host_features() -> tuple[str, str]:
    """(cpu name, feature string) of this machine, without the features whose arithmetic is not IEEE's."""
    found = llvm.get_host_cpu_features()
    found.update({name: False for name in FLUSHING if name in found})
    return llvm.get_host_cpu_name(), found.flatten()


@cache
@apart
def host_target_machine(level: int = 2, cpu: str | None = None, features: str | None = None) -> Any:
    """The code generator for this machine, kept for reuse. `cpu` and `features` override the host's."""
    initialize_host()
    name, found = host_features()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu or name,
        features=found if features is None else features,
        opt=level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


LINUX, NVPTX, AMDGCN = "{}-unknown-linux-gnu", "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"  # triples


@cache
@apart
def target_machine(triple: str, cpu: str, features: str, level: int = 2, short: bool = False) -> Any:
    """The code generator for a GPU, or for a Linux machine: ``target_machine(NVPTX, "sm_90a", "+ptx86")``.

    With `short` addresses of NVIDIA's shared and local memory have 32 bits.
    """
    initialize_all()
    as_loaded = {"reloc": "pic", "codemodel": "small", "jit": True} if "linux" in triple else {}
    with switched("nvptx-short-ptr", True) if short else nullcontext():
        return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=level, **as_loaded)


@cache
@apart
def data_layout(machine: Any) -> str:
    """The data layout of a code generator, as LLVM text writes it."""
    with machine.target_data as data:
        return str(data)


def opened(text: str, owner: ExitStack, verify: bool = False) -> Any:
    """A module of LLVM text, in a context of its own; `owner` closes both. A syntax error shows the line."""
    context = owner.enter_context(llvm.create_context())
    module = owner.enter_context(llvm.parse_assembly(text, context))
    if verify:
        module.verify()
    return module


@contextmanager
def closing(manager: Any) -> Iterator[Any]:
    """A pass manager, whose own `close` finds the wrong method and frees nothing."""
    try:
        yield manager
    finally:
        llvm.newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()


def optimize(module: Any, level: int, machine: Any) -> None:
    """Level 0 does nothing; 1 runs LLVM's function simplification, 2 and 3 its module pipeline.

    Our own text is folded and shared already and vectorised by hand, so LLVM's vectorisers are off below level 3.
    """
    if level == 0:
        return
    with ExitStack() as owner:
        tuning = owner.enter_context(llvm.create_pipeline_tuning_options(speed_level=min(level, 3)))
        tuning.loop_vectorization = tuning.slp_vectorization = level >= 3
        tuning.loop_interleaving = tuning.loop_unrolling = level >= 2
        passes = owner.enter_context(llvm.create_pass_builder(machine, tuning))
        if level == 1:
            manager = owner.enter_context(closing(passes.getFunctionPassManager()))
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, passes)
        else:
            owner.enter_context(closing(passes.getModulePassManager())).run(module, passes)


@apart
def check(text: str) -> None:
    """Refuse LLVM text that is not valid: a RuntimeError."""
    with ExitStack() as owner:
        opened(text, owner, verify=True)


@apart
def to_object(text: str, level: int = 0, machine: Any = None, *, verify: bool = False, watched: bool = False) -> bytes:
    """The bytes of an object file; `watched` prints the dumps of code generation that the environment requests."""
    machine = host_target_machine() if machine is None else machine
    with ExitStack() as owner:
        module = opened(text, owner, verify)
        optimize(module, level, machine)
        with watching(text) if watched else nullcontext():
            return machine.emit_object(module)


@apart
def to_assembly(text: str, level: int, machine: Any) -> str:
    """The output of `to_object`, as assembly text."""
    with ExitStack() as owner:
        module = opened(text, owner)
        optimize(module, level, machine)
        return machine.emit_assembly(module)


@cache
@apart
def host_jit() -> Any:
    """The JIT of this process; it links finished objects and compiles nothing."""
    initialize_host()
    # JITLink allocates the sections of an object next to each other; the older linker scatters them
    _JITS.append(llvm.create_lljit_compiler(host_target_machine(), use_jit_link=True))
    return _JITS[-1]


_LOADED: dict[int, Any] = {}  # what holds the code of each library: never garbage itself
_UNUSED: list[int] = []  # the libraries that are gone


class Library:
    """Machine code in memory; `library["name"]` is the address of an exported symbol."""

    def __init__(self, index: int, symbols: Iterable[str]) -> None:
        self.index = index
        self.addresses = {symbol: _LOADED[index][symbol] for symbol in symbols}

    def __getitem__(self, symbol: str) -> int:
        return self.addresses[symbol]

    def __del__(
        self, unused: list[int] = _UNUSED
    ) -> None:  # in any thread, at any moment: LLVM is not called from here
        unused.append(self.index)


def unload_unused() -> None:
    """Free the code of libraries that are gone."""
    while _UNUSED:
        _LOADED.pop(_UNUSED.pop()).close()


@apart
def jit_load(data: bytes, symbols: Iterable[str], imports: Mapping[str, int] | None = None) -> Library:
    """Link an object file into this process. `imports` are addresses of functions it calls; libc and libm are found."""
    symbols, index = list(symbols), next(_COUNTER)
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol in symbols:
        library.export_symbol(symbol)
    for name, address in (imports or {}).items():
        library.import_symbol(name, address)
    with _JIT_LOCK:  # a second JIT, made by another thread, would take the code it holds with it
        jit = host_jit()
    unload_unused()
    _LOADED[index] = library.link(jit, f"tilework.{index}")
    return Library(index, symbols)
