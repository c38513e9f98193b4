"""The last steps: LLVM text to machine code in memory, to an object file, or to PTX.

    machine = host_target_machine()
    module = optimize(text, 1, machine)          # a parsed, verified, optimised llvmlite module
    data = to_object(module, machine)            # bytes to keep in a cache
    library = jit_load(data, ["add"])            # in this process or a later one
    function = ctypes.CFUNCTYPE(...)(library["add"])

A library lives as long as the object returned by `jit_load`; keep it as long as its addresses are used. llvmlite takes
one lock for the whole process but releases the GIL. A fork waits until no other thread is inside of LLVM: the child has no
such thread, and would find its locks taken for ever.
"""

import itertools
import os
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm

_COUNTER = itertools.count()
_JIT_LOCK = threading.RLock()  # a signal handler may load a kernel while this very thread does
_JITS: list[Any] = []  # one, or two if a signal handler came between; code in use must not go away with its JIT


def hold_locks() -> None:
    """Before a fork: in the order in which `jit_load` takes them."""
    _JIT_LOCK.acquire()
    llvm.ffi.lib._lock.__enter__()


def release_locks() -> None:
    """After a fork, in parent and child."""
    llvm.ffi.lib._lock.__exit__()
    _JIT_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=hold_locks, after_in_parent=release_locks, after_in_child=release_locks)


@cache
def initialize_host() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def initialize_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


# x86 conversions to bf16 that read and write denormals as zero; without them LLVM rounds with integers, exactly
FLUSHING = ("avx512bf16", "avxneconvert", "avx10.2")


@cache
def host_features() -> tuple[str, str]:
    """(cpu name, feature string) of this machine, without the features whose arithmetic is not IEEE's."""
    found = llvm.get_host_cpu_features()
    found.update({name: False for name in FLUSHING if name in found})
    return llvm.get_host_cpu_name(), found.flatten()


@cache
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


@cache
def nvptx_target_machine(cpu: str, ptx: str, level: int = 2) -> Any:
    """The code generator for an NVIDIA GPU: ``nvptx_target_machine("sm_90a", "+ptx86")``."""
    initialize_all()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=cpu, features=ptx, opt=level)


def data_layout(machine: Any) -> str:
    return str(machine.target_data)


def parse(text: str, verify: bool = False) -> Any:
    """Read LLVM text in a context of its own; a syntax error shows the line."""
    module = llvm.parse_assembly(text, llvm.create_context())
    if verify:
        module.verify()
    return module


def optimize(text: str, level: int, machine: Any, *, verify: bool = False) -> Any:
    """Parse and optimise. Level 0 parses only; 1 runs LLVM's function simplification, 2 and 3 its module pipeline.

    Our own text is folded and shared already and vectorised by hand, so LLVM's vectorisers stay off below level 3.
    """
    module = parse(text, verify)
    if level == 0:
        return module
    tuning = llvm.create_pipeline_tuning_options(speed_level=min(level, 3))
    tuning.loop_vectorization = tuning.slp_vectorization = level >= 3
    tuning.loop_interleaving = tuning.loop_unrolling = level >= 2
    passes = llvm.create_pass_builder(machine, tuning)
    if level == 1:
        manager = passes.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                manager.run(function, passes)
    else:
        passes.getModulePassManager().run(module, passes)
    return module


def to_object(module: Any, machine: Any | None = None) -> bytes:
    """Machine code as the bytes of an object file."""
    return (machine or host_target_machine()).emit_object(module)


def to_assembly(module: Any, machine: Any | None = None) -> str:
    return (machine or host_target_machine()).emit_assembly(module)


def to_ptx(module: Any, cpu: str, ptx: str = "+ptx80") -> str:
    """PTX text; the module's data layout must be that of `nvptx_target_machine(cpu, ptx)`."""
    return nvptx_target_machine(cpu, ptx).emit_assembly(module)


@cache
def host_jit() -> Any:
    """The JIT of this process; it links finished objects and compiles nothing."""
    initialize_host()
    _JITS.append(llvm.create_lljit_compiler(host_target_machine()))
    return _JITS[-1]


class Library:
    """Machine code in memory; `library["name"]` is the address of an exported symbol."""

    def __init__(self, tracker: Any, symbols: Iterable[str]) -> None:
        self.tracker = tracker
        self.addresses = {symbol: tracker[symbol] for symbol in symbols}

    def __getitem__(self, symbol: str) -> int:
        return self.addresses[symbol]


def jit_load(data: bytes, symbols: Iterable[str], imports: Mapping[str, int] | None = None) -> Library:
    """Link an object file into this process. `imports` are addresses of functions it calls; libc and libm are found."""
    symbols = list(symbols)
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol in symbols:
        library.export_symbol(symbol)
    for name, address in (imports or {}).items():
        library.import_symbol(name, address)
    with _JIT_LOCK:  # a second JIT, made by another thread, would take the code it holds with it
        jit = host_jit()
    return Library(library.link(jit, f"tilework.{next(_COUNTER)}"), symbols)
