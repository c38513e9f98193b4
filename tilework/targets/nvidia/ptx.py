"""LLVM text to PTX, with LLVM's own code generator.

    settings = PtxSettings("sm_90a", 90)
    text = to_ptx("define ptx_kernel void @k() { ret void }", settings)      # ".version 9.0\\n.target sm_90a\\n..."

Our own text says for each operation whether it may be fused with another (a comment ``; tilework: {"fp_contract":
"explicit"}`` tells). In any other text the option `enable_fp_fusion` decides: multiplications and additions get LLVM's
flag `contract`, or lose it. LLVM ends the process when it meets an operation that it cannot generate code for, so text
that the user brings is compiled in another process first (`survives`).
"""

import json
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from tilework import knobs
from tilework.errors import StageError
from tilework.targets.llvm import switches
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.binding import llvm
from tilework.targets.llvm.compile import NVPTX, data_layout, target_machine
from tilework.targets.llvm.switches import kernel_name
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.bitcode import FLUSHING, link_libraries
from tilework.targets.nvidia.ptx_version import dotted, written_version
from tilework.targets.nvidia.ptxas_mistakes import without_mistakes

LEVEL = 2  # of the code generator; the optimiser before it is not run: ptxas optimises
SHORT = re.compile(r"p[3-7]:32:32-")  # text for shared pointers of one size also works with the other
FLAGS = r"(?:(?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) )*"
FUSED = re.compile(rf"(= (?:fadd|fsub|fmul) )({FLAGS})")
FLAGGED = re.compile(rf"(= (?:(?:tail |musttail |notail )?call|[a-z]+) )({FLAGS})")
MULTIPLY_ADD = re.compile(
    rf"(?P<to>%[\w.$-]+) = (?:(?:tail|musttail|notail) )?call (?P<flags>{FLAGS})"
    r"(?P<type>\w+|<\d+ x \w+>) @llvm\.fmuladd\.\w+\("
    r"(?P=type) (?P<a>[^,()]+), (?P=type) (?P<b>[^,()]+), (?P=type) (?P<c>[^,()]+)\)[^,\n]*"
)
UNHARMED, REFUSED = 0, 3  # exit codes of the process that tries
TRY = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tilework.targets.nvidia.ptx import try_here
try_here(sys.argv[2])
"""


@dataclass(frozen=True)
class PtxSettings:
    """What decides the PTX of a text, apart from the environment."""

    cpu: str
    version: int
    fuses: bool = True
    flushes: bool = True
    maxnreg: int | None = None
    keeps_debug: bool = False
    libraries: tuple[tuple[str, str], ...] = ()


@apart
def to_ptx(text: str, settings: PtxSettings) -> str:
    """PTX from LLVM text; what LLVM does not accept is a StageError."""
    facts = ptx_text.told(text)
    is_ours = facts.get("fp_contract") == "explicit"
    if not is_ours:
        text = with_fusion(text, settings.fuses)
    version = f"+ptx{written_version(settings.version)}"
    machine = target_machine(NVPTX, settings.cpu, version, switches.level(LEVEL), short=is_ours)
    with ExitStack() as owner:
        context = owner.enter_context(llvm.create_context())
        module = parse(text, context, machine, owner)
        is_linked = link_libraries(module, context, machine, settings.libraries, settings.flushes)
        if settings.flushes and "__nvvm_reflect" in text and "nvvm-reflect-ftz" not in text:
            with llvm.parse_assembly(FLUSHING, context) as flags:
                module.link_in(flags)
        # our own text has only the nsw of a loop's last addition, from which nothing is made
        has_flags = is_linked or not is_ours
        with switches.watching(text), switches.quick_reduction(has_flags):
            ptx = machine.emit_assembly(module)
    ptx = without_mistakes(ptx_text.with_version(ptx, dotted(settings.version)))
    if not settings.keeps_debug:
        ptx = ptx_text.without_debug(ptx)
    if settings.maxnreg is not None:
        ptx = ptx_text.with_maxnreg(ptx, settings.maxnreg)
    return ptx_text.with_told(ptx, {name: fact for name, fact in facts.items() if name != "fp_contract"})


def parse(text: str, context: Any, machine: Any, owner: ExitStack) -> Any:
    """The text as a verified module for this target, which `owner` closes."""
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
    """LLVM text in which a product and a sum may, or may not, be computed as one operation."""
    if allowed:
        return FUSED.sub(
            lambda found: found[0] if "contract" in found[2] or "fast" in found[2] else f"{found[0]}contract ", text
        )

    def separate(found: re.Match[str]) -> str:
        flags = found[2].replace("fast", "nnan ninf nsz arcp afn reassoc").replace("contract ", "")
        return found[1] + flags

    return MULTIPLY_ADD.sub(multiply_then_add, FLAGGED.sub(separate, text))


def multiply_then_add(found: re.Match[str]) -> str:
    """``%r = call float @llvm.fmuladd.f32(float %a, float %b, float %c)`` as two operations."""
    product = f'%"product of {found["to"][1:]}"'
    return (
        f"{product} = fmul {found['flags']}{found['type']} {found['a']}, {found['b']}\n"
        f"  {found['to']} = fadd {found['flags']}{found['type']} {product}, {found['c']}"
    )


@lru_cache(maxsize=64)
def survives(text: str, settings: PtxSettings) -> None:
    """Compile in another process: a StageError if LLVM does not survive it; other errors come up again here."""
    if not sys.executable:
        return
    command = [sys.executable, "-c", TRY, json.dumps(sys.path), json.dumps(asdict(settings))]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env=knobs.environment_without(switches.WATCHED)
    )
    if done.returncode not in (UNHARMED, REFUSED):
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        why = next(
            (line for line in said if line.startswith("LLVM ERROR")),
            said[-1] if said else f"exit code {done.returncode}",
        )
        raise StageError(f"LLVM cannot generate code for {kernel_name(text)} ({settings.cpu}): {why}")


def try_here(settings: str) -> None:
    """The other process: LLVM text on standard input."""
    values = json.loads(settings)
    values["libraries"] = tuple(map(tuple, values["libraries"]))
    try:
        to_ptx(sys.stdin.buffer.read().decode(), PtxSettings(**values))
    except (StageError, ValueError, OSError, RuntimeError):
        sys.exit(REFUSED)
