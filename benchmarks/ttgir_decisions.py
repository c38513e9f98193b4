"""``python -m benchmarks.ttgir_decisions``: what decides the speed of a kernel, in our TTGIR and in Triton 3.6's.

Both start from the TTIR that Triton printed (tests/ir/reference), for sm_90 and for AMD's GPUs; a word chooses the
targets whose names have it. Shared memory is allocated by our pass in both, so the bytes differ only where the buffers
do.

    vector widths     bits that a thread moves at once in each access to global memory, in order
    instruction       shape of the matrix instruction of each dot
    buffers           of each pipelined array: how many, of which shape
    shared memory     bytes
    converts in loops layout conversions that are executed in every iteration
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import allocations
from tilework.analysis.axis_info import axis_info
from tilework.ir import amdg, scf, tt, ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import find_target
from tilework.ir.parser import parse_module
from tilework.ir.types import bit_width, element_type, shape_of
from tilework.layouts.to_linear import contig_per_thread, order
from tilework.target import GPUTarget
from tilework.targets.base import find_backend
from tilework.transforms.ttg.coalesce import pointer_access

REFERENCE = Path(__file__).parent.parent / "tests" / "ir" / "reference"
KERNELS = {  # warps and stages
    **{"add": (4, 3), "softmax": (8, 3), "layernorm": (8, 3), "transpose": (4, 3), "cumsum": (4, 3), "sort": (1, 3)},
    **{"matmul_f16": (8, 3), "matmul_f16_128": (4, 2), "matmul_f16_small": (4, 4), "matmul_tf32": (4, 3)},
    **{"matmul_fp8": (4, 3), "attention": (4, 3), "attention_causal": (8, 3), "histogram": (4, 3)},
}
COMPARED = {  # what the table has of each target
    "cuda:90": ("add", "softmax", "matmul_f16", "attention"),
    "hip:gfx942": ("add", "matmul_f16_128", "matmul_f16_small", "matmul_tf32", "attention", "histogram"),
    "hip:gfx950": ("matmul_f16_128",),
    "hip:gfx1100": ("matmul_f16_128", "matmul_f16_small"),
}
POINTER = re.compile(r"(!tt\.ptr<\w+> \{tt\.divisibility = 16 : i32)\}")
WIDEST = 128
LOOPS = (scf.ForOp, scf.WhileOp)
DOTS = (tt.DotOp, ttng.WarpGroupDotOp)
OFFSET_ACCESSES = (amdg.BufferLoadOp, amdg.BufferStoreOp, amdg.BufferAtomicRMWOp, amdg.BufferLoadToLocalOp)


@dataclass(frozen=True)
class Decisions:
    """The decisions for one kernel."""

    vector_widths: tuple[int, ...]
    instruction: tuple[str, ...]
    buffers: tuple[str, ...]
    shared_memory: int
    converts_in_loops: int


def decisions(module: ModuleOp, shared_memory: int | None = None) -> Decisions:
    """Read them off the TTGIR; shared memory is allocated by our pass unless it is known."""
    if shared_memory is None:
        shared_memory = max(one.size for one in allocations(module, find_target(module)))
    return Decisions(
        tuple(widths(module)),
        tuple(instructions(module)),
        tuple(buffers(module)),
        shared_memory,
        sum(type(op) is ttg.ConvertLayoutOp and is_in_loop(op) for op in module.walk()),
    )


def widths(module: ModuleOp) -> Iterator[int]:
    """The bits that a thread moves at once, as code generation decides it."""
    facts = axis_info(module)
    for op in module.walk():
        if (access := pointer_access(op)) is not None:
            kind, bits = access.type, access.bits
            dims = order(encoding_of(kind), shape_of(kind))
            width = facts.alignment(access.pointers, dims)
        elif isinstance(op, OFFSET_ACCESSES):
            kind = op.offsets.type
            bits = bit_width(element_type((op.results or op.operands)[0].type))
            dims = order(encoding_of(kind), shape_of(kind))
            info, base = facts.of(op.offsets), facts.of(op.ptr).divisibility[0]
            width = min(info.contiguity[dims[0]], info.divisibility[dims[0]], base * 8 // bits)
        else:
            continue
        width = min(width, contig_per_thread(encoding_of(kind), shape_of(kind))[dims[0]])
        mask = getattr(op, "mask", None)
        if mask is not None:
            width = min(width, facts.mask_alignment(mask, dims))
        yield min(WIDEST, width * bits)


def instructions(module: ModuleOp) -> Iterator[str]:
    for op in module.walk():
        if isinstance(op, DOTS):
            encoding: Any = encoding_of(op.results[0].type)
            shape = getattr(encoding, "instr_shape", None)
            yield "x".join(map(str, shape)) if shape else "no tensor core"


def buffers(module: ModuleOp) -> Iterator[str]:
    for op in module.walk():
        if isinstance(op, ttg.LocalAllocOp) and not op.operands:
            memory = op.results[0].type
            assert isinstance(memory, ttg.MemDescType)
            yield "x".join(map(str, memory.dims))


def is_in_loop(op: Operation) -> bool:
    while (parent := op.parent_op()) is not None:
        if isinstance(parent, LOOPS):
            return True
        op = parent
    return False


def text_for(kernel: str, target: str) -> str:
    """Triton's TTIR, which is the same for all targets but for what AMD's know of pointers."""
    text = sorted(REFERENCE.glob(f"*/{kernel}.ttir"))[-1].read_text()
    return POINTER.sub(r"\1, tt.pointer_range = 32 : i32}", text) if target.startswith("hip") else text


def ours(kernel: str, target: str) -> ModuleOp:
    """The result of our passes for Triton's TTIR."""
    text = text_for(kernel, target)
    backend = find_backend(GPUTarget.parse(target))
    warps, stages = KERNELS[kernel]
    return backend.stages(backend.parse_options({"num_warps": warps, "num_stages": stages}))["ttgir"](
        parse_module(text)
    )


def theirs(kernel: str, target: str) -> ModuleOp:
    vendor, _, arch = target.partition(":")
    path = f"amd/{kernel}.{arch}.ttgir" if vendor == "hip" else f"sm_{arch}/{kernel}.ttgir"
    return parse_module((REFERENCE / path).read_text())


def is_as_good(name: str, own: Any, other: Any) -> bool:
    """Equal, or better where less is better."""
    if name == "shared_memory":
        return own <= other * 1.1
    if name == "converts_in_loops":
        return own <= other
    if name == "vector_widths":
        return sorted(own) >= sorted(other) and len(own) <= len(other)
    return sorted(own) == sorted(other)


def shown(value: Any) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def main(words: Sequence[str]) -> int:
    worse = 0
    for target in (name for name in COMPARED if not words or any(word in name for word in words)):
        print(f"{target:18}{'decision':20}{'tilework':48}{'Triton 3.6':48}")
        for kernel in COMPARED[target]:
            own, other = decisions(ours(kernel, target)), decisions(theirs(kernel, target))
            for field in fields(Decisions):
                a, b = getattr(own, field.name), getattr(other, field.name)
                good = is_as_good(field.name, a, b)
                worse += not good
                verdict = "same" if a == b else "as good" if good else "WORSE"
                print(f"{kernel:18}{field.name.replace('_', ' '):20}{shown(a):48}{shown(b):48}{verdict}")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
