"""What regions that run at the same time know of each other's accesses to shared memory.

Only mbarriers order the regions of a `ttg.warp_specialize`. A region counts its arrivals: everything it did so far belongs to the
number of the next one. A barrier remembers what those knew that arrived, and tells it to those that wait for the end of
the phase; its own number, the phase, stands for the copies that it counted:

    producer   writes m (producer, 1)    arrive b: b knows {producer: 1}    writes n (producer, 2)
    consumer   wait b: knows {producer: 1}        reads m        reads n: a fault, (producer, 2) is not known

A region may read what it knows to be written, and write what it knows to be read and written.
"""

from typing import Any

import numpy as np

from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.evaluation_errors import Fault

Clocks = dict[object, int]  # by region or barrier


def learn(known: Clocks, told: Clocks) -> None:
    for who, number in told.items():
        known[who] = max(known.get(who, 0), number)


class RegionOrder:
    """Who wrote and who read each byte last, as numbers of `events`."""

    def __init__(self) -> None:
        self.events: list[tuple[object, int]] = [(None, 0)]
        self.names: dict[object, str] = {}
        self.written: dict[object, Array] = {}  # by buffer
        self.read: dict[tuple[object, object], Array] = {}  # by buffer and region

    def note_write(self, view: Any, who: object, number: int) -> None:
        self.note(self.written, view.buffer, view, who, number)

    def note_read(self, view: Any, who: object, number: int) -> None:
        self.note(self.read, (view.buffer, who), view, who, number)

    def note(self, table: dict[Any, Array], key: Any, view: Any, who: object, number: int) -> None:
        if (found := table.get(key)) is None:
            found = table[key] = np.zeros(len(view.buffer.data), np.int32)
        if self.events[-1] != (who, number):
            self.events.append((who, number))
        found[view.places] = len(self.events) - 1

    def check_read(self, view: Any, known: Clocks) -> None:
        if (table := self.written.get(view.buffer)) is not None:
            self.check(table, view, known, "reads shared memory that {} wrote")

    def check_write(self, view: Any, known: Clocks) -> None:
        if (table := self.written.get(view.buffer)) is not None:
            self.check(table, view, known, "writes shared memory that {} wrote")
        for (buffer, _), table in self.read.items():
            if buffer is view.buffer:
                self.check(table, view, known, "writes shared memory that {} read")

    def check(self, table: Array, view: Any, known: Clocks, words: str) -> None:
        for number in np.unique(table[view.places]).tolist():
            who, count = self.events[number]
            if known.get(who, 0) < count:
                name = self.names.get(who, "a copy")
                raise Fault(f"{words.format(name)}, and no wait for an mbarrier orders the two")
