"""LLVM text to PTX, with LLVM's own code generator.

    settings = PtxSettings("sm_90a", 90)
    text = to_ptx("define ptx_kernel void @k() { ret void }", settings)      # ".version 9.0\\n.target sm_90a\\n..."

Text of our own compiler has a `contract` flag on each operation that may be fused (its metadata comment says so: ``;
tilework: {"fp_contract": "explicit"}``). In any other text the option `enable_fp_fusion` decides: multiplications and
additions get the flag, or lose it. LLVM aborts the process at an operation that it cannot generate code for, so text of
the user is compiled in another process first (`survives`).

`without_mistakes` rewrites PTX that ptxas (12.8 and 13.0, for sm_90) miscompiles:

    mul.hi.u32 %r1, %r2, %r3     the borrow of the difference is computed as the carry of adding ``-y``, which is lost
    cvt.u64.u32 %rd1, %r1;       where the lower half of y is 0: the result is 2**32 too small
    sub.s64 %rd2, %rd1, %y

    ld.param.b32 %r1, [n]        fused into a three-operand minimum of n instead of -n; the same for 0 - n, n * -1,
    neg.s32 %r2, %r1             the negated half of an i64, a negated element of a vector of parameters ...
    min.s32 %r3, %r2, %r4
    min.s32 %r5, %r3, %r6

    neg.s16 %rs2, %rs1           is 32768 for -32768 where the 16 bits are extended, compared or shifted next; so is
    cvt.s32.s16 %r1, %rs2        abs.s16, which besides is converted to floats as a signed integer

Fuzz tests found them on an H200 (`tests/device/check_generated.py`); no emulator of PTX can. The cost is a search in
the text of a kernel that has such instructions.

Bitcode libraries are NVIDIA's libdevice and those that the user names in `extern_libs`:

    define ptx_kernel void @k(...) { ... %y = call float @__nv_expf(float %x) ... }
    declare float @__nv_expf(float)

A library is read only if the text declares a function that it may define. Libdevice has 400 functions, and parsing and
optimising all of them takes ten times as long as a kernel: each needed function is extracted once, with its callees,
and its text is cached. Other libraries are linked whole and stripped afterwards.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import StageError
from tilework.light_dataclass import light_dataclass
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.compile import (
    NVPTX,
    WATCHED,
    closing,
    data_layout,
    kernel_name,
    llvm,
    optimisation_level,
    target_machine,
    unguarded_strength_reduction,
    watching,
)
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.ptx_text import dotted, written_version

GUARD, NAME = r"(@!?[\w$%]+\s+)?", r"[\w$%]+"
# Patterns are text here: `re` compiles and keeps them at their first use, which most kernels do not have.
UPPER_HALF = rf"{GUARD}mul\.hi\.u32\s+({NAME}),\s*([^,;]+),\s*([^;]+);"
EXTENDED = rf"cvt\.[su]64\.u32\s+{NAME},\s*({NAME});|mov\.[bsu]64\s+{NAME},\s*\{{\s*({NAME})\s*,"
MOVE = rf"mov\.[bsu]32\s+({NAME}),\s*({NAME});"
WHOLE = "{{ .reg .b64 %whole; mul.wide.u32 %whole, {}, {}; shr.u64 %whole, %whole, 32; {}cvt.u32.u64 {}, %whole; }}"
NEGATIVES = [
    rf"{GUARD}{form};"
    for form in (
        rf"neg\.s32\s+({NAME}),\s*({NAME})",
        rf"sub\.[su]32\s+({NAME}),\s*0,\s*({NAME})",
        rf"mul\.lo\.[su]32\s+({NAME}),\s*({NAME}),\s*-1",
        rf"mad\.lo\.[su]32\s+({NAME}),\s*({NAME}),\s*-1,\s*0",
    )
]
SHORT_NEGATIVE = rf"{GUARD}(?:neg\.s16\s+({NAME}),|sub\.[su]16\s+({NAME}),\s*0,)\s*({NAME});"
SHORT_SIZE = rf"{GUARD}abs\.s16\s+({NAME}),\s*({NAME});"
WIDE_SIZE = "{{ .reg .b32 %wide; cvt.s32.s16 %wide, {}; abs.s32 %wide, %wide; {}cvt.u16.u32 {}, %wide; }}"
EXTREME = r"\b(?:min|max)\.[su]32\b"


def without_mistakes(text: str) -> str:
    """Return PTX without the instruction sequences that ptxas miscompiles."""
    return with_wide_multiplications(with_plain_negatives(with_wrapping_shorts(text)))


def with_wrapping_shorts(text: str) -> str:
    """Replace 16-bit negations by bit operations, and 16-bit absolute values by 32-bit ones."""
    if ".s16" not in text and ".u16" not in text:
        return text
    text = re.sub(SHORT_SIZE, lambda m: WIDE_SIZE.format(m[3], m[1] or "", m[2]), text)
    return re.sub(SHORT_NEGATIVE, lambda m: plain_negative(m[1] or "", m[2] or m[3], m[4], 16), text)


def with_wide_multiplications(text: str) -> str:
    """Replace `mul.hi.u32` by `mul.wide.u32` where the result is extended to 64 bits."""
    if "mul.hi.u32" not in text:
        return text
    extended, moves = {name for names in re.findall(EXTENDED, text) for name in names}, re.findall(MOVE, text)
    while more := {source for result, source in moves if result in extended} - extended:
        extended |= more
    return re.sub(UPPER_HALF, lambda m: wide_multiplication(*m.groups(default="")) if m[2] in extended else m[0], text)


def wide_multiplication(guard: str, result: str, one: str, two: str) -> str:
    return WHOLE.format(one, two, guard, result)


def with_plain_negatives(text: str) -> str:
    """Replace negations by bit operations in text with minima or maxima, whether or not the operand comes from a
    parameter: that is hard to see in the text.
    """
    if re.search(EXTREME, text) is not None:
        for form in NEGATIVES:
            text = re.sub(form, lambda m: plain_negative(m[1] or "", m[2], m[3]), text)
    return text


def plain_negative(guard: str, result: str, value: str, bits: int = 32) -> str:
    return f"{guard}not.b{bits} {result}, {value}; {guard}add.s{bits} {result}, {result}, 1;"


PREFIX = "__nv_"
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
FLUSHING = '!llvm.module.flags = !{!0}\n!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'


def missing(module: Any) -> list[str]:
    """Return the functions that a module declares but does not define, without intrinsics."""
    return [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]


def link_libraries(
    module: Any, context: Any, machine: Any, libraries: Sequence[tuple[str, str]], flushes: bool
) -> bool:
    """Link the functions that the module needs from the libraries; return True if there were any."""
    linked = False
    for name, path in libraries:
        if name != "libdevice" and (wanted := set(missing(module))):
            with read_library(name, path, context) as library:
                if any(f.name in wanted for f in library.functions if not f.is_declaration):
                    link(module, library)
                    linked = True
    if wanted := [name for name in missing(module) if name.startswith(PREFIX)]:
        path = dict(libraries).get("libdevice") or knobs.nvidia.find_libdevice()
        if path is None:
            raise StageError(
                f"{wanted[0]} is a function of NVIDIA's libdevice, and there is no libdevice.10.bc on this machine:"
                " install nvidia-nvvm or a CUDA toolkit, or set TRITON_LIBDEVICE_PATH to the file"
            )
        for name in wanted:
            with llvm.parse_assembly(cut_out(path, stamp(path), name, machine, flushes), context) as function:
                link(module, function)
        linked = True
    if linked:
        strip(module, machine)
    return linked


def read_library(name: str, path: str, context: Any) -> Any:
    """Parse a library: bitcode or LLVM text."""
    try:
        data = Path(path).read_bytes()
        return llvm.parse_bitcode(data, context) if data[:4] in BITCODE else llvm.parse_assembly(data.decode(), context)
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise StageError(f"the library {name!r} ({path}) cannot be read: {error}") from None


def link(module: Any, library: Any) -> None:
    """Link a library into a module, with internal linkage."""
    library.triple, library.data_layout = module.triple, module.data_layout
    names = [f.name for f in library.functions if not f.is_declaration and not is_defined(module, f.name)]
    try:
        module.link_in(library)
    except RuntimeError as error:
        raise StageError(f"a library does not fit the kernel: {error}") from None
    for name in names:
        module.get_function(name).linkage = "internal"


def is_defined(module: Any, name: str) -> bool:
    """Return True if the module defines a function."""
    return any(f.name == name and not f.is_declaration for f in module.functions)


@contextmanager
def pass_manager(machine: Any, level: int) -> Iterator[tuple[Any, Any]]:
    with (
        llvm.create_pipeline_tuning_options(speed_level=level) as tuning,
        llvm.create_pass_builder(machine, tuning) as passes,
        closing(llvm.create_new_module_pass_manager()) as manager,
    ):
        yield passes, manager


def strip(module: Any, machine: Any) -> None:
    """Inline functions marked for it, and drop functions without callers."""
    with pass_manager(machine, 1) as (passes, manager):
        manager.add_always_inliner_pass()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(module, passes)


def stamp(path: str) -> tuple[int, int]:
    """Return a value that changes when the file does."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise StageError(
            f"libdevice ({path}) cannot be read: {error}; TRITON_LIBDEVICE_PATH names another file"
        ) from None
    return status.st_mtime_ns, status.st_size


@cache
@apart
def cut_out(path: str, changed: tuple[int, int], name: str, machine: Any, flushes: bool) -> str:
    """Return a function of libdevice with its callees, optimised, as LLVM text.

    With `flushes` it is the variant that flushes denormals to zero.
    """
    with llvm.create_context() as context, read_library("libdevice", path, context) as library:
        library.triple, library.data_layout = machine.triple, data_layout(machine)
        if not is_defined(library, name):
            raise StageError(f"libdevice ({path}) has no function {name}")
        if flushes:
            with llvm.parse_assembly(FLUSHING, context) as flags:
                library.link_in(flags)
        for function in library.functions:
            if not function.is_declaration:
                function.linkage = "external" if function.name == name else "internal"
        with pass_manager(machine, 2) as (passes, manager):
            manager.add_global_dead_code_eliminate_pass()
            manager.run(library, passes)
            with closing(passes.getModulePassManager()) as pipeline:
                pipeline.run(library, passes)
        return str(library)


LEVEL = 2  # of the code generator; the optimiser before it is not run: ptxas optimises
SHORT = re.compile(r"p[3-7]:32:32-")  # the size of shared pointers, which the text may have either way
FLAGS = r"(?:(?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) )*"
FUSED = rf"(= (?:fadd|fsub|fmul) )({FLAGS})"
FLAGGED = rf"(= (?:(?:tail |musttail |notail )?call|[a-z]+) )({FLAGS})"
MULTIPLY_ADD = (
    rf"(?P<to>%[\w.$-]+) = (?:(?:tail|musttail|notail) )?call (?P<flags>{FLAGS})"
    r"(?P<type>\w+|<\d+ x \w+>) @llvm\.fmuladd\.\w+\("
    r"(?P=type) (?P<a>[^,()]+), (?P=type) (?P<b>[^,()]+), (?P=type) (?P<c>[^,()]+)\)[^,\n]*"
)
UNHARMED, REFUSED = 0, 3  # exit codes of the trial process
TRY = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tilework.targets.nvidia.ptx import try_here
try_here(sys.argv[2])
"""


@light_dataclass
class PtxSettings:
    """The settings that determine the PTX of a text, apart from the environment."""

    cpu: str
    version: int
    fuses: bool = True
    flushes: bool = True
    maxnreg: int | None = None
    keeps_debug: bool = False
    libraries: tuple[tuple[str, str], ...] = ()


@apart
def to_ptx(text: str, settings: PtxSettings) -> str:
    """Compile LLVM text to PTX; raise a StageError if LLVM does not accept it."""
    facts = ptx_text.metadata(text)
    is_ours = facts.get("fp_contract") == "explicit"
    if not is_ours:
        text = with_fusion(text, settings.fuses)
    version = f"+ptx{written_version(settings.version)}"
    machine = target_machine(NVPTX, settings.cpu, version, optimisation_level(LEVEL), short=is_ours)
    with ExitStack() as owner:
        context = owner.enter_context(llvm.create_context())
        module = parse(text, context, machine, owner)
        is_linked = link_libraries(module, context, machine, settings.libraries, settings.flushes)
        if settings.flushes and "__nvvm_reflect" in text and "nvvm-reflect-ftz" not in text:
            with llvm.parse_assembly(FLUSHING, context) as flags:
                module.link_in(flags)
        # the only flag in our own text is the nsw of a loop's increment, which LLVM does not exploit
        has_flags = is_linked or not is_ours
        with watching(text), unguarded_strength_reduction(has_flags):
            ptx = machine.emit_assembly(module)
    ptx = without_mistakes(ptx_text.with_version(ptx, dotted(settings.version)))
    if not settings.keeps_debug:
        ptx = ptx_text.without_debug(ptx)
    if settings.maxnreg is not None:
        ptx = ptx_text.with_maxnreg(ptx, settings.maxnreg)
    return ptx_text.with_metadata(ptx, {name: fact for name, fact in facts.items() if name != "fp_contract"})


def parse(text: str, context: Any, machine: Any, owner: ExitStack) -> Any:
    """Parse text into a verified module for this target, which `owner` closes."""
    try:
        module = owner.enter_context(llvm.parse_assembly(text, context))
        module.verify()
    except RuntimeError as error:
        raise StageError(f"LLVM does not accept the text of {kernel_name(text)}: {error}") from None
    layout = data_layout(machine)
    if module.triple and not module.triple.startswith("nvptx"):
        raise StageError(f"the LLVM text of {kernel_name(text)} is for {module.triple}, not for {NVPTX}")
    if module.data_layout and SHORT.sub("", module.data_layout) != SHORT.sub("", layout):
        raise StageError(
            f"the LLVM text of {kernel_name(text)} has the data layout {module.data_layout}, which is not {layout}"
        )
    module.triple, module.data_layout = NVPTX, layout
    return module


def with_fusion(text: str, allowed: bool) -> str:
    """Return LLVM text in which multiply-adds may, or may not, be fused."""
    if allowed:
        return re.sub(
            FUSED,
            lambda found: found[0] if "contract" in found[2] or "fast" in found[2] else f"{found[0]}contract ",
            text,
        )

    def separate(found: re.Match[str]) -> str:
        flags = found[2].replace("fast", "nnan ninf nsz arcp afn reassoc").replace("contract ", "")
        return found[1] + flags

    return re.sub(MULTIPLY_ADD, multiply_then_add, re.sub(FLAGGED, separate, text))


def multiply_then_add(found: re.Match[str]) -> str:
    """Split ``%r = call float @llvm.fmuladd.f32(float %a, float %b, float %c)`` into two operations."""
    product = f'%"product of {found["to"][1:]}"'
    return (
        f"{product} = fmul {found['flags']}{found['type']} {found['a']}, {found['b']}\n"
        f"  {found['to']} = fadd {found['flags']}{found['type']} {product}, {found['c']}"
    )


@lru_cache(maxsize=64)
def survives(text: str, settings: PtxSettings) -> None:
    """Compile in another process, and raise a StageError if LLVM aborts; other errors recur in this process."""
    if not sys.executable:
        return
    command = [sys.executable, "-c", TRY, json.dumps(sys.path), json.dumps(asdict(settings))]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env=knobs.environment_without(WATCHED)
    )
    if done.returncode not in (UNHARMED, REFUSED):
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        why = next(
            (line for line in said if line.startswith("LLVM ERROR")),
            said[-1] if said else f"exit code {done.returncode}",
        )
        raise StageError(f"LLVM cannot generate code for {kernel_name(text)} ({settings.cpu}): {why}")


def try_here(settings: str) -> None:
    """Run in the trial process: compile LLVM text from standard input."""
    values = json.loads(settings)
    values["libraries"] = tuple(map(tuple, values["libraries"]))
    try:
        to_ptx(sys.stdin.buffer.read().decode(), PtxSettings(**values))
    except (StageError, ValueError, OSError, RuntimeError):
        sys.exit(REFUSED)
