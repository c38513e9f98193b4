"""``python -m benchmarks.ttgir_decisions``: what decides the speed of a kernel, in our TTGIR and in Triton 3.6's.

Both start from the TTIR that Triton printed (tests/ir/reference), for sm_90. Shared memory is allocated by our pass in
both, so the bytes differ only where the buffers do.

    vector widths     bits that a thread moves at once in each access to global memory, in order
    instruction       shape of the tensor-core instruction of each dot
    buffers           of each pipelined array: how many, of which shape
    shared memory     bytes
    converts in loops layout conversions that are executed in every iteration
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import axis_info
from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import integer
from tilework.ir.parser import parse_module
from tilework.ir.types import shape_of
from tilework.layouts.queries import contig_per_thread, order
from tilework.target import Target
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline
from tilework.transforms.ttg.coalesce import pointer_access

REFERENCE = Path(__file__).parent.parent / "tests" / "ir" / "reference" / "sm_90"
KERNELS = {"add": 4, "softmax": 8, "matmul_f16": 8, "attention": 4}
CAPABILITY, STAGES, WIDEST = 90, 3, 128
LOOPS = (scf.ForOp, scf.WhileOp)
DOTS = (tt.DotOp, ttng.WarpGroupDotOp)


@dataclass(frozen=True)
class Decisions:
    """What was decided for one kernel."""

    vector_widths: tuple[int, ...]
    instruction: tuple[str, ...]
    buffers: tuple[str, ...]
    shared_memory: int
    converts_in_loops: int


def decisions(module: ModuleOp, capability: int = CAPABILITY, shared_memory: int | None = None) -> Decisions:
    """Read them off the TTGIR; shared memory is allocated by our pass unless it is known."""
    if shared_memory is None:
        allocated = module.clone()
        run_pipeline(allocated, parse_pipeline(f"allocate-shared-memory-nv{{compute-capability={capability}}}"))
        shared_memory = integer(allocated.attributes, "ttg.shared") or 0
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
        if (access := pointer_access(op)) is None:
            continue
        encoding: Any = encoding_of(access.type)
        shape = shape_of(access.type)
        dims = order(encoding, shape)
        width = facts.contiguity(access.pointers, dims, contig_per_thread(encoding, shape))
        mask = getattr(op, "mask", None)
        if mask is not None:
            width = min(width, facts.mask_alignment(mask, dims))
        yield min(WIDEST, width * access.bits)


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


def ours(kernel: str) -> ModuleOp:
    module = parse_module((REFERENCE / f"{kernel}.ttir").read_text())
    passes = ttgir_pipeline(Target.parse(f"cuda:{CAPABILITY}"), KERNELS[kernel], STAGES)
    run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
    return module


def theirs(kernel: str) -> ModuleOp:
    return parse_module((REFERENCE / f"{kernel}.ttgir").read_text())


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


def main() -> int:
    worse = 0
    print(f"{'kernel':12}{'decision':20}{'tilework':48}{'Triton 3.6':48}")
    for kernel in KERNELS:
        own, other = decisions(ours(kernel)), decisions(theirs(kernel))
        for field in fields(Decisions):
            a, b = getattr(own, field.name), getattr(other, field.name)
            good = is_as_good(field.name, a, b)
            worse += not good
            verdict = "same" if a == b else "as good" if good else "WORSE"
            print(f"{kernel:12}{field.name.replace('_', ' '):20}{shown(a):48}{shown(b):48}{verdict}")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
