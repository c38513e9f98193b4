"""LDS of one workgroup: its bytes, which of them anybody has written, and who accessed them when.

A wave counts its barriers (its *epoch*), and its accesses are over when it has waited for them (``s.waitcnt`` with lgkmcnt 0, a release
fence). An access is ordered before one of another wave if it was over before a barrier that the other wave has passed:

    wave 0    store [0]   wait   barrier                      epoch 0 | 1
    wave 1                       barrier   load [0]           ordered: over in epoch 0, and the load is in epoch 1

Lanes of one wave go in step. Copies from global memory to LDS arrive at the wait for them; until then nobody may touch their place.

Tables have an element for each *grain*: the largest power of two that all accesses so far are multiples of.
"""

from collections.abc import Callable

import numpy as np

from tilework.oracles.emulator.arenas import Array, Bytes
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.lane_values import UNWRITTEN
from tilework.oracles.emulator.ports import Port, element_width

GRAIN = 16
ATOMIC = 128  # set in the record of an atomic access; two of them do not race
NEVER = np.iinfo(np.int32).max
Report = Callable[..., None]


class Lds:
    """`report(kind, what, ins, thread, other instruction)` is told of mistakes."""

    def __init__(self, size: int, waves: int, wave: int, report: Report, checks: bool) -> None:
        self.port = Port("LDS", Bytes.zeros(size), size)
        self.waves, self.wave, self.report, self.checks = waves, wave, report, checks
        self.instructions: list[Instruction] = []
        self.numbers: dict[Instruction, int] = {}
        self.start()

    def start(self) -> None:
        """A new workgroup."""
        count = (self.port.size + GRAIN - 1) // GRAIN
        self.port.data.data[:] = 0xCD  # what is there before means nothing
        self.grain = GRAIN
        self.written = np.zeros(count, bool)
        self.arriving = np.zeros(count, bool)
        self.writer = np.zeros(count, np.int64)  # time << 32 | instruction << 8 | ATOMIC | wave + 1; 0 is nobody
        self.readers = np.zeros((self.waves, count), np.int64)
        self.time = np.zeros(self.waves, np.int64)  # of each wave: barriers and waits that it has seen
        self.epoch = np.zeros(self.waves, np.int64)
        self.over = np.full((self.waves, 64), NEVER, np.int32)  # in which epoch what was done at a time was over
        self.pending = np.zeros(self.waves, np.int64)  # the first time that is not over
        self.queue: list[list[tuple[int, Callable[[], None]]]] = [[] for _ in range(self.waves)]
        self.issued = np.zeros(self.waves, np.int64)  # accesses to global memory that vmcnt counts

    # time

    def tick(self, waves: Array) -> None:
        self.time[waves] += 1
        if int(self.time.max()) >= self.over.shape[1]:
            self.over = np.concatenate([self.over, np.full_like(self.over, NEVER)], axis=1)

    def wait(self, waves: Array) -> None:
        """What these waves have done in LDS is over."""
        for wave in waves.tolist():
            now = self.over[wave, self.pending[wave] : self.time[wave] + 1]
            np.minimum(now, self.epoch[wave], out=now)
            self.pending[wave] = self.time[wave] + 1
        self.tick(waves)

    def barrier(self, waves: Array) -> None:
        self.epoch[waves] += 1
        self.tick(waves)

    # copies from global memory

    def issue(self, waves: Array) -> None:
        self.issued[waves] += 1

    def start_copy(self, wave: int, addresses: Array, size: int, arrive: Callable[[], None]) -> None:
        units = self.units(addresses, size).reshape(-1)
        self.arriving[units] = True

        def land() -> None:
            self.arriving[self.units(addresses, size).reshape(-1)] = False
            self.tick(np.array([wave]))
            arrive()
            self.over[wave, self.time[wave]] = self.epoch[wave]
            self.tick(np.array([wave]))

        self.queue[wave].append((int(self.issued[wave]), land))

    def wait_for_copies(self, waves: Array, left: int) -> None:
        """All but the last `left` accesses of each wave to global memory are over."""
        for wave in waves.tolist():
            while self.queue[wave] and self.queue[wave][0][0] <= self.issued[wave] - left:
                self.queue[wave].pop(0)[1]()

    # grains

    def refine(self, size: int) -> None:
        while self.grain > size:
            self.grain //= 2
            self.written, self.arriving = np.repeat(self.written, 2), np.repeat(self.arriving, 2)
            self.writer, self.readers = np.repeat(self.writer, 2), np.repeat(self.readers, 2, axis=1)

    def units(self, addresses: Array, size: int) -> Array:
        """[address, grain] of accesses of `size` bytes."""
        together = int(np.bitwise_or.reduce(addresses)) | size
        if together & (self.grain - 1):
            self.refine(together & -together)
        first = (addresses // np.uint64(self.grain)).astype(np.int64)
        return first[:, None] + np.arange(size // self.grain)

    # accesses

    def read(
        self, addresses: Array, size: int, threads: Array, align: int, ins: Instruction, atomic: bool = False
    ) -> tuple[Array, Array | None]:
        """The bytes [address, byte], and why they mean nothing [address, byte] (None: they do)."""
        rows = self.port.read_bytes(addresses, size, align, threads)
        if not self.checks:
            return rows, None
        units = self.units(addresses, size)
        self.check_arrived(units, threads, ins)
        waves = threads // self.wave
        self.check_order(self.writer[units], units, waves, threads, ins, "reads", "wrote", atomic)
        if not atomic:
            self.readers[waves[:, None], units] = self.record(waves, ins)[:, None]
        missing = ~self.written[units]
        return rows, np.repeat(missing, self.grain, axis=1).astype(np.uint8) * np.uint8(
            UNWRITTEN
        ) if missing.any() else None

    def write(
        self, addresses: Array, rows: Array, threads: Array, align: int, ins: Instruction, undefined: Array | None = None,
        atomic: bool = False,
    ) -> None:  # fmt: skip
        """Rows of bytes; `undefined` is [address, byte]."""
        size = rows.shape[1]
        if not self.checks:
            self.port.write_bytes(addresses, rows, align, threads)
            return
        self.port.check(addresses, size, align, threads)
        if undefined is not None:
            self.refine(element_width(size, align))
        units = self.units(addresses, size)
        self.check_arrived(units, threads, ins)
        waves = threads // self.wave
        before = self.writer[units]
        if (before != 0).any():
            there = self.port.read_bytes(addresses, size, align, threads)
            changed = (there != rows).reshape(*units.shape, -1).any(axis=2)
            self.check_order(np.where(changed, before, 0), units, waves, threads, ins, "writes", "wrote", atomic)
        for wave in np.flatnonzero(self.readers[:, units.reshape(-1)].any(axis=1)).tolist():
            self.check_order(self.readers[wave, units], units, waves, threads, ins, "writes", "read")
        self.port.write_bytes(addresses, rows, align, threads)
        lost = (self.port.read_bytes(addresses, size, align, threads) != rows).any(axis=1)
        if lost.any():
            at = int(lost.argmax())
            what = f"writes LDS address {int(addresses[at]):#x} together with another thread, and something else"
            self.report("race", what, ins, int(threads[at]))
        self.writer[units] = self.record(waves, ins)[:, None] | ATOMIC * atomic
        self.written[units] = True
        if undefined is not None:
            bad = (undefined != 0).reshape(*units.shape, -1).any(axis=2)
            self.written[units[bad]] = False

    def record(self, waves: Array, ins: Instruction) -> Array:
        number = self.numbers.get(ins)
        if number is None:
            number = self.numbers[ins] = len(self.instructions)
            self.instructions.append(ins)
        return self.time[waves] << 32 | number << 8 | waves + 1

    def check_arrived(self, units: Array, threads: Array, ins: Instruction) -> None:
        if self.arriving.any() and (early := self.arriving[units].any(axis=1)).any():
            at = int(early.argmax())
            what = f"uses LDS address {int(units[at, 0]) * self.grain:#x}, where a copy has not arrived that nobody has waited for"
            self.report("used before its wait", what, ins, int(threads[at]))

    def check_order(
        self, records: Array, units: Array, waves: Array, threads: Array, ins: Instruction, verb: str, was: str, atomic: bool = False,
    ) -> None:  # fmt: skip
        """Each access comes after the one that is recorded at its place, if that was another wave's."""
        others = (records & ATOMIC - 1) - 1
        suspects = (records != 0) & (others != waves[:, None])
        if atomic:
            suspects &= records & ATOMIC == 0
        if not suspects.any():
            return
        wrong = suspects & (self.over[np.maximum(others, 0), records >> 32] >= self.epoch[waves][:, None])
        if not wrong.any():
            return
        at, unit = (int(index) for index in np.unravel_index(int(wrong.argmax()), wrong.shape))
        record, other = int(records[at, unit]), int(others[at, unit])
        first = self.instructions[record >> 8 & 0xFFFFFF]
        place = f"LDS address {int(units[at, unit]) * self.grain:#x}"
        passed = int(self.over[other, record >> 32]) == NEVER and self.crossed(other, record >> 32)
        kind = "barrier without its wait" if passed else "race"
        why = "that wave passed a barrier since without waiting for it" if passed else "nothing orders the two"
        self.report(kind, f"{verb} {place}, which wave {other} {was}, and {why}", ins, int(threads[at]), first)

    def crossed(self, wave: int, time: int) -> bool:
        """Whether a wave has passed a barrier after this time, without a wait: its ticks since then are barriers."""
        return bool(self.time[wave] > time)
