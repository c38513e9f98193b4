"""The counts of a profiler for kernels on AMD GPUs, by source line; `counters.py` has those of NVIDIA's.

    counters = WaveCounters("gfx942", wave=64)
    loaded.launch(grid, threads, arguments, counters=counters)
    counters.total.sectors

Instructions are those of the LLVM text, once for each wave: before code generation, which joins some and splits others.
Global memory is counted in requests of 64 bytes to L2. LDS has 32 banks of 4 bytes, 64 on gfx950: the lanes of a wave
go in groups, in order, of as many as could fill all banks once, and each group takes as many cycles (wavefronts) as the
busiest bank has words. The hardware groups lanes of wide accesses in other orders, which are not modelled.
"""

import re

import numpy as np

from tilework.oracles.emulator.counters import BANKS, Counters, Counts, sectors_of, wavefronts_of
from tilework.oracles.emulator.llvm.ir import Float, Instruction, Sequence, Type
from tilework.oracles.emulator.memory import Array, Memory

REQUEST = 64  # bytes
LDS, PRIVATE = 3, 5
SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")

KINDS = {
    "memory": "load store", "atomic": "atomicrmw cmpxchg", "branch": "br switch ret unreachable",
    "barrier": "fence", "convert": "fpext fptrunc fptosi fptoui sitofp uitofp sext zext trunc",
    "move": "bitcast freeze extractelement insertelement extractvalue insertvalue shufflevector select inttoptr",
}  # fmt: skip
KIND_OF = {opcode: kind for kind, opcodes in KINDS.items() for opcode in opcodes.split()}
CALLED = {  # by a part of the name of an intrinsic, the first that fits
    "mfma": "tensor", "wmma": "tensor", "smfmac": "tensor", "swmmac": "tensor", "atomic": "atomic",
    "buffer.load": "memory", "buffer.store": "memory", "load.to.lds": "memory", "load.lds": "memory",
    "load.tr": "memory", "ds.read": "memory", "barrier": "barrier", "wait": "barrier", "ds.bpermute": "warp",
    "ds.swizzle": "warp", "dpp": "warp", "readlane": "warp", "readfirstlane": "warp", "permlane": "warp",
    "ballot": "warp", "cvt": "convert", "workgroup.id": "move", "workitem.id": "move",
}  # fmt: skip


class WaveCounts(Counts):
    """The counts of one source line; a sector is a request to L2."""

    granule = REQUEST


class WaveCounters(Counters):
    """The counts of launches; `lines` by (file, line), or ("LLVM", line) of code without a location."""

    def __init__(self, arch: str, wave: int, memory: Memory | None = None) -> None:
        super().__init__(memory)
        self.wave, self.banks = wave, 2 * BANKS if arch == "gfx950" else BANKS

    def of(self, ins: Instruction) -> Counts:
        key = ins.locations[0] if ins.locations else (ins.language, ins.line)
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = WaveCounts()
        return found

    def executed(self, instructions: list[Instruction], mask: Array) -> None:
        """Count instructions that the threads of a mask execute."""
        waves, lanes = int(mask.reshape(-1, self.wave).any(axis=1).sum()), int(np.count_nonzero(mask))
        for ins in instructions:
            counts = self.of(ins)
            counts.instructions[kind_of(ins)] += waves
            counts.threads += lanes
            counts.tensor_operations += waves * matrix_operations(ins, self.wave)

    def accessed(self, ins: Instruction, space: int, addresses: Array, size: int, threads: Array) -> None:
        """Count one access of each of some threads."""
        counts = self.of(ins)
        if space == LDS:
            wavefronts, best, waves = wavefronts_of(addresses, size, threads, lanes=self.wave, banks=self.banks)
            counts.wavefronts += wavefronts
            counts.conflicts += wavefronts - best
            counts.shared_requests += waves
        elif space != PRIVATE:
            addresses = self.as_aligned(addresses, REQUEST)
            sectors, wanted, waves = sectors_of(addresses, size, threads, self.wave, REQUEST)
            counts.sectors += sectors
            counts.bytes += wanted
            counts.requests += waves


def kind_of(ins: Instruction) -> str:
    """Return the kind of an instruction, as for PTX."""
    if (found := KIND_OF.get(ins.opcode)) is not None:
        return found
    if (called := next((kind for part, kind in CALLED.items() if part in ins.callee), None)) is not None:
        return called
    return "float" if is_floating(ins.type) or ins.opcode == "fcmp" else "integer"


def is_floating(kind: Type) -> bool:
    return isinstance(kind.element if isinstance(kind, Sequence) else kind, Float)


def matrix_operations(ins: Instruction, wave: int) -> int:
    """Return the multiplications and additions of a matrix instruction; an mfma may have several blocks."""
    if ins.opcode != "call" or kind_of(ins) != "tensor" or (shape := SHAPE.search(ins.callee)) is None:
        return 0
    rows, columns, depth = map(int, shape.groups())
    held = wave * ins.type.count if isinstance(ins.type, Sequence) and "mfma" in ins.callee else 0
    return 2 * depth * max(rows * columns, held)
