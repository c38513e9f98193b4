"""Statements about the order of memory: locks, waiting for a flag, volatile loads, barriers.

No other program accesses these addresses, so no wait is long; but a compiler that deletes the loop, hoists its
load, or moves an access across a lock gives another result.
"""

from math import prod

from tests.fuzz.expressions import Value, unknown
from tests.fuzz.memory_statements import MemoryStatements
from tests.fuzz.rules import FP32, INT8, INT32, INT64

SEMS = ("relaxed", "acquire", "release", "acq_rel")
OWN = 8000  # from this element on, no other statement accesses an array


class OrderStatements(MemoryStatements):
    """Statements that wait, or that nothing may move across."""

    def index(self) -> str:
        """One element that belongs to this program, and holds 0."""
        pointer, name = self.pointer(INT32, "io"), self.fresh("p")
        self.line(f"{name} = {pointer} + {OWN + 16 * self.random.randrange(6)} + pid")
        self.line(f"tl.store({name}, 0)")  # in a loop, threads may still look at what the round before has left
        return name

    def barrier(self) -> None:
        self.line("tl.debug_barrier()")

    def volatile_read(self) -> None:
        shape, dtype = self.random.choice(((), self.shape())), self.random.choice((INT8, INT32, INT64, FP32))
        pointer = self.pointer(dtype, self.random.choice(("in", "io")))
        address = f"{pointer} + {self.offsets(shape)}" if shape else f"{pointer} + pid"
        masked = ", mask=flag, other=3" if not shape and self.random.random() < 0.4 else ""
        self.assign(Value(f"tl.load({address}{masked}, volatile=True)", dtype, shape, unknown))

    def locked(self) -> None:
        """Take a lock, change a tile and an element, release it."""
        dtype, shape = self.random.choice((INT32, FP32, INT64)), self.shape(limit=256)
        lock, pointer, address = self.index(), self.pointer(dtype, "io"), self.fresh("p")
        old = self.fresh()
        self.line(f"{address} = {pointer} + pid * {prod(shape)} + {self.offsets(shape)}")
        with self.block(f'while tl.atomic_cas({lock}, 0, 1, sem="{self.random.choice(SEMS)}") == 1:'):
            self.line("pass")
        self.line(f"{old} = tl.load({address})")
        self.line(f"tl.store({address}, {old} + {self.typed(shape, dtype, 1).text})")
        if self.random.random() < 0.3:
            self.line("tl.debug_barrier()")
        self.line(f'tl.atomic_xchg({lock}, 0, sem="{self.random.choice(SEMS)}")')
        self.define(old, dtype, shape)
        self.assign(Value(f"tl.load({address})", dtype, shape, unknown))

    def awaited(self) -> None:
        """Wait for a flag that is set already, with all ways to look at it; read it before and behind the loop."""
        flag, before, go = self.index(), self.fresh(), self.fresh("g")
        self.line(f"{before} = tl.load({flag})")
        self.line(f"tl.store({flag}, {self.random.randint(1, 9)})")
        volatile = self.random.choice(("", ", volatile=True"))
        form = self.random.randrange(3)
        if form == 0:
            with self.block(f"while tl.load({flag}{volatile}) == 0:"):
                self.line("pass")
        elif form == 1:
            self.line(f"{go} = True")
            with self.block(f"while {go}:"):
                self.line(f"{go} = tl.load({flag}{volatile}) == 0")
        else:
            with self.block(f"while tl.sum(tl.load({flag} + tl.zeros([16], tl.int32){volatile}), 0) == 0:"):
                self.line("pass")
        self.define(before, INT32, ())
        self.assign(Value(f"{before} + tl.load({flag})", INT32, (), unknown))
