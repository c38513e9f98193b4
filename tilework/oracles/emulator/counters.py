"""The counts of a profiler, by source line: instructions by kind, memory sectors, bank conflicts, tensor-core
operations.

    device = Device(counters=True)
    device.launch(...)
    print(device.counters.table())
    device.counters.total.coalescing           # bytes requested / bytes moved, 1.0 is best

Global memory moves in sectors of 32 bytes: the 32 lanes of a warp that read neighbouring floats need 4 sectors, at a
stride of 32 bytes they need 32 and use an eighth of each. Shared memory has 32 banks of 4 bytes: accesses to different
words of one bank are serialised into several wavefronts. A warp needs at least one wavefront for up to 4 bytes per
lane, 2 for 8 bytes, 4 for 16 bytes.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from tilework.oracles.emulator.memory import Array, Memory
from tilework.oracles.emulator.rules.floating import FLOATS
from tilework.oracles.emulator.syntax import Instruction
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator

SECTOR = 32
BANKS, BANK_BYTES = 32, 4
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
WARPS_OF_WGMMA = 4

KINDS = {
    "memory": "ld ldu st prefetch ldmatrix stmatrix", "atomic": "atom red", "copy": "cp", "tensor": "mma wgmma",
    "branch": "bra brx call ret exit trap", "barrier": "bar barrier mbarrier fence membar",
    "warp": "shfl vote match redux activemask elect", "convert": "cvt", "move": "mov selp cvta prmt",
}  # fmt: skip
KIND_OF = {opcode: kind for kind, opcodes in KINDS.items() for opcode in opcodes.split()}
HEAD = ("line", "instructions", "threads", "sectors", "coalescing", "wavefronts", "conflicts", "tensor ops", "kinds")


def kind_of(ins: Instruction) -> str:
    """Return the kind of an instruction: "memory", "tensor", "float" and so on; by its type if it computes."""
    found = KIND_OF.get(ins.opcode)
    if found is None:
        found = "float" if not set(FLOATS).isdisjoint(ins.modifiers) else "integer"
    return found


@dataclass
class Counts:
    """The counts of one source line, or of all. Instructions are counted once per warp, `threads` once per thread."""

    granule: ClassVar[int] = SECTOR  # bytes that move together

    instructions: "Counter[str]" = field(default_factory=Counter)
    threads: int = 0
    requests: int = 0  # of warps to global memory
    sectors: int = 0
    tile_sectors: int = 0  # distinct ones of all accesses of a `Tile`
    least_sectors: int = 0  # that would hold the bytes of a `Tile`
    bytes: int = 0  # distinct bytes that threads requested
    shared_requests: int = 0
    wavefronts: int = 0  # of shared memory
    conflicts: int = 0  # wavefronts beyond the minimum
    tensor_operations: int = 0  # multiplications and additions

    @property
    def coalescing(self) -> float:
        """The fraction of the moved bytes that threads requested."""
        return self.bytes / (self.granule * self.sectors) if self.sectors else 1.0

    def add(self, other: "Counts") -> None:
        self.instructions.update(other.instructions)
        for count in fields(self)[1:]:
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))


@dataclass
class Tile:
    """The accesses of a warp for one line before it executes the same instruction again: usually one load or store of a
    kernel. A sector that several instructions use in part counts once, because it is cached."""

    counts: Counts
    accesses: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # sectors and words by PTX line

    def close(self) -> None:
        if self.accesses:
            sectors, words = (np.unique(np.concatenate(part)) for part in zip(*self.accesses.values(), strict=True))
            self.counts.tile_sectors += len(sectors)
            by_warp = np.unique(words >> 48, return_counts=True)[1]
            self.counts.least_sectors += int((-(-by_warp * BANK_BYTES // SECTOR)).sum())
            self.accesses.clear()


class Counters:
    """The counts of the last launch; `lines` by (file, line), or ("PTX", line) if the code has no .loc."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory
        self.tiles: dict[tuple[int, tuple[str, int]], Tile] = {}  # by the first thread of a warp and the line
        self.lines: dict[tuple[str, int], Counts] = {}
        self.here: Array | None = None  # the mask that was counted last, its warps and its threads
        self.warps = self.lanes = 0
        # accesses of an atomic instruction, whose threads are serialised
        self.atomic_accesses: list[tuple[str, Array, int, Array]] = []

    def begin_launch(self) -> None:
        self.lines.clear()

    @property
    def total(self) -> Counts:
        found = next((type(counts)() for counts in self.lines.values()), Counts())
        for counts in self.lines.values():
            found.add(counts)
        return found

    def line(self, ins: Instruction) -> Counts:
        key = ins.source or ("PTX", ins.line)
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = Counts()
        return found

    # instructions

    def wrap(self, ins: Instruction, t: Translator, op: Op) -> Op:
        kind, operations = kind_of(ins), tensor_operations(ins)
        guard = t.registers[ins.predicate.name] if ins.predicate is not None else None
        everyone = t.block.exists

        def counted(mask: Mask) -> None:
            here = everyone if mask is True else mask
            if here is not self.here:  # the instructions of a run have one mask
                self.here, self.warps, self.lanes = here, warps_of(here), int(np.count_nonzero(here))
            mine = here if guard is None else here & (guard ^ ins.negated)
            counts = self.line(ins)
            counts.instructions[kind] += self.warps
            counts.threads += self.lanes if guard is None else int(np.count_nonzero(mine))
            if operations:
                counts.tensor_operations += operations * warps_of(mine)
            op(mask)
            if self.atomic_accesses:
                self.settle(ins, counts)

        return counted

    def ending(self, end: Instruction, t: Translator, mask: Array) -> None:
        counts = self.line(end)
        counts.instructions[kind_of(end)] += warps_of(mask)
        counts.threads += int(np.count_nonzero(mask))
        if end.opcode in ("ret", "exit"):
            self.close_tiles()

    # memory

    def access(
        self, ins: Instruction | None, space: str, kind: str, addresses: Array, size: int, threads: Array,
        values: Array | None = None,
    ) -> None:  # fmt: skip
        if (
            ins is None
            or (kind == "atomic" and (values is not None or ins.opcode == "mbarrier" or "mbarrier" in ins.modifiers))
            or "param" in ins.modifiers
        ):
            return
        if kind == "atomic":
            self.atomic_accesses.append((space, addresses, size, threads))
        elif space == "global" and "const" not in ins.modifiers:
            self.count_global(ins, addresses, size, threads)
        elif space == "shared" and "bulk" not in ins.modifiers and ins.opcode != "wgmma":
            self.count_shared(self.line(ins), addresses, size, threads)

    def settle(self, ins: Instruction, counts: Counts) -> None:
        """Count the accesses of an atomic instruction, all its rounds together."""
        for space in ("global", "shared"):
            mine = [access for access in self.atomic_accesses if access[0] == space]
            if mine:
                addresses, threads = (np.concatenate([access[part] for access in mine]) for part in (1, 3))
                if space == "global":
                    self.count_global(ins, addresses, mine[0][2], threads)
                else:
                    self.count_shared(counts, addresses, mine[0][2], threads, one_by_one=True)
        self.atomic_accesses.clear()

    def count_global(self, ins: Instruction, addresses: Array, size: int, threads: Array) -> None:
        addresses = self.as_aligned(addresses, SECTOR)
        counts = self.line(ins)
        sectors, wanted, warps = sectors_of(addresses, size, threads)
        counts.sectors += sectors
        counts.bytes += wanted
        counts.requests += warps
        tile = self.tiles.setdefault((int(threads[0]) // WARP, ins.source or ("PTX", ins.line)), Tile(counts))
        if ins.line in tile.accesses:
            tile.close()
        tile.accesses[ins.line] = sectors_and_words(addresses, size, threads)

    def as_aligned(self, addresses: Array, granule: int) -> Array:
        """Return the addresses as if the array that they are in began where a GPU would put it."""
        base = 0 if self.memory is None else self.memory.sector_base(int(addresses[0]))
        return addresses - np.uint64(base % granule) if base % granule else addresses

    def close_tiles(self) -> None:
        """End all tiles."""
        for tile in self.tiles.values():
            tile.close()
        self.tiles.clear()

    def count_shared(
        self, counts: Counts, addresses: Array, size: int, threads: Array, one_by_one: bool = False
    ) -> None:
        wavefronts, best, warps = wavefronts_of(addresses, size, threads, one_by_one)
        counts.wavefronts += wavefronts
        counts.conflicts += wavefronts - best
        counts.shared_requests += warps

    # text

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """Return one row per source line, and the total."""
        rows: list[tuple[str, ...]] = [HEAD]
        for (file, line), counts in sorted(self.lines.items()):
            rows.append(row(f"{file}:{line}", counts))
        rows.append(row("total", self.total))
        widths = [max(len(cells[index]) for cells in rows) for index in range(len(HEAD))]
        lines = []
        for cells in rows:
            columns = (cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1], strict=True))
            lines.append("  ".join([cells[0].ljust(widths[0]), *columns, cells[-1]]).rstrip())
        return "\n".join(lines)


def row(name: str, counts: Counts) -> tuple[str, ...]:
    coalescing = f"{counts.coalescing:.0%}" if counts.sectors else "-"
    shared = (counts.wavefronts, counts.conflicts, counts.tensor_operations)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.instructions.items()))
    first = (str(sum(counts.instructions.values())), str(counts.threads), str(counts.sectors or "-"), coalescing)
    return (name, *first, *(str(count or "-") for count in shared), kinds)


def warps_of(mask: Array) -> int:
    """Return the number of warps that have a thread in `mask`."""
    return int(np.count_nonzero(mask.reshape(-1, WARP).any(axis=1)))


def tensor_operations(ins: Instruction) -> int:
    """Return the multiplications and additions of a matrix instruction, per warp."""
    if ins.opcode not in ("mma", "wgmma"):
        return 0
    shape = next((match for modifier in ins.modifiers if (match := SHAPE.match(modifier))), None)
    if shape is None:
        return 0
    rows, columns, depth = (int(part) for part in shape.groups())
    return 2 * rows * columns * depth // (WARPS_OF_WGMMA if ins.opcode == "wgmma" else 1)


def sectors_of(
    addresses: Array, size: int, threads: Array, lanes: int = WARP, sector: int = SECTOR
) -> tuple[int, int, int]:
    """Return (sectors, distinct bytes, warps) of one access per thread; each warp fetches its own sectors."""
    warps = threads.astype(np.int64) // lanes
    first = addresses.astype(np.int64)
    starts = np.unique(warps << 48 | first & ((1 << 48) - 1))
    warp, start = starts >> 48, starts & ((1 << 48) - 1)
    steps = np.arange(0, size, min(size, sector))
    sectors = np.unique((warp << 48 | start // sector)[:, None] + steps // sector)
    crossing = np.unique(warp << 48 | (start + size - 1) // sector)
    ends = np.minimum(start[1:], start[:-1] + size)
    wanted = int(np.where(warp[1:] == warp[:-1], ends - start[:-1], size).sum()) + size
    return len(np.union1d(sectors, crossing)), wanted, len(np.unique(warps))


def sectors_and_words(addresses: Array, size: int, threads: Array) -> tuple[Array, Array]:
    """Return the sectors and the 4-byte words that threads access, each with its warp above bit 48."""
    warps, first = threads.astype(np.int64) // WARP << 48, addresses.astype(np.int64) // BANK_BYTES
    words = (warps + first)[:, None] + np.arange(max(1, size // BANK_BYTES))
    return (words // (SECTOR // BANK_BYTES)).reshape(-1), words.reshape(-1)


def wavefronts_of(
    addresses: Array, size: int, threads: Array, one_by_one: bool = False, *, lanes: int = WARP, banks: int = BANKS
) -> tuple[int, int, int]:
    """Return (wavefronts, minimum of them, warps) of one access to shared memory per thread. Lanes share a word that
    they read or write, unless `one_by_one`, as in atomic operations."""
    together = min(lanes, banks * BANK_BYTES // size)  # lanes whose bytes fit into one wavefront
    group = threads.astype(np.int64) // together
    words = addresses.astype(np.int64)[:, None] // BANK_BYTES + np.arange((size + BANK_BYTES - 1) // BANK_BYTES)
    accesses = (group[:, None] << 40 | words).reshape(-1)
    accesses = accesses if one_by_one else np.unique(accesses)
    keys, counts = np.unique((accesses >> 40) * banks + accesses % banks, return_counts=True)
    most = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(most, keys // banks, counts)
    return int(most.sum()), len(np.unique(group)), len(np.unique(threads // lanes))
