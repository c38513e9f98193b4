"""The machine code of a kernel for a CPU, for people: each instruction under the line of Python that it comes from.

    compiled.asm["asm"]

    // add.py:6: tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)
            ldp q2, q3, [x15], #64
            fadd    v1.4s, v2.4s, v6.4s

Kernels are compiled without line tables, so the text is made again from the loop nests, with them: what the table adds
are directives, no instructions. They are shown as comments, and what only debuggers and linkers read is left out.
"""

import linecache
import os
import re

from tilework import knobs
from tilework.targets.cpu.lower.codegen import emit_module
from tilework.targets.cpu.machines import named_machine
from tilework.targets.llvm.compile import optimisation_level, to_assembly
from tilework.targets.observe import is_recording

COMMENTS = {"x86_64": "#"}  # other assemblers take //
FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
DEBUG_SECTION = re.compile(r"\s*\.section\s+[\".]*(debug_|note)")
SECTION = re.compile(r"\s*\.(section|text|data|bss)\b")
NOISE = re.compile(r"\s*\.(file|loc|cfi_\w+|size|type|globl|ident|addrsig\w*)\b|\.(Lfunc_begin|Lfunc_end|Ltmp)\d+:")


def assembly(ttcir: str, fuses: bool, level: int, optimisation: int, arch: str = "host") -> str:
    """The text of the instructions that loop nests become."""
    from tilework.ir.parser import parse_module  # lazily: the reader of an assembly has often compiled it elsewhere

    lines, machine = not knobs.compilation.disable_line_info, named_machine(arch)
    module = parse_module(ttcir, "kernel.ttcir")
    text = emit_module(module, machine.facts, fuses=fuses, lines=lines, layout=machine.layout)
    made = to_assembly(text, optimisation_level(optimisation), machine.code_generator(optimisation_level(level)))
    return made if is_recording() else readable(made, COMMENTS.get(machine.facts.arch, "//"))


def readable(text: str, comment: str) -> str:
    """Assembly with comments that show source lines instead of directives about them."""
    files: dict[str, str] = {}
    kept: list[str] = []
    shown, is_debug = "", False
    for line in text.splitlines():
        if SECTION.match(line):
            is_debug = DEBUG_SECTION.match(line) is not None
        if (found := FILE.match(line)) is not None:
            files[found[1]] = os.path.join(found[2], found[3] or "")
        if (found := LOCATION.match(line)) is not None and found[2] != "0":  # line 0: LLVM's own
            location = source_line(files.get(found[1], ""), int(found[2]))
            if location != shown:
                kept.append(f"{comment} {location}")
                shown = location
        if not is_debug and not NOISE.match(line):
            shown = "" if line and not line[0].isspace() else shown  # behind a label the line is said again
            kept.append(line)
    return "\n".join(kept).strip("\n") + "\n"


def source_line(path: str, index: int) -> str:
    """``add.py:6: tl.store(...)``"""
    code = linecache.getline(path, index).strip()
    return f"{os.path.basename(path)}:{index}{': ' + code if code else ''}"
