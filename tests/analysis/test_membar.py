"""Barriers suffice: generated programs of loads, stores, copies and dots of shared memory, with all barriers that
`membar` asks for, run without a race between threads in the evaluator."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir import Operation

from tilework.ir import ttg
from tilework.ir.create import clone_op
from tilework.ir.enums import AddrSpace
from tilework.ir.parser import parse_module
from tilework.ir.rewrite import erase_op
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.transforms.registry import parse_pipeline, run_pipeline

HEAD = """
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#t = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 8], order = [0, 1]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 16, 16]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
"""  # noqa: E501
TILES = {"a": "128x16xf16", "b": "16x16xf16"}
TILE = {kind: f"tensor<{tile}, #b>" for kind, tile in TILES.items()}
MEMORY = {kind: f"!ttg.memdesc<{tile}, #nv, #smem, mutable>" for kind, tile in TILES.items()}
POINTERS = {kind: f"tensor<{tile[:-3]}!tt.ptr<f16>, #b>" for kind, tile in TILES.items()}
SUM = "tensor<128x16xf32, #mma>"
BUFFERS = ("a0", "a1", "b0", "b1")


class Programs:
    """Generates programs that wait for every dot and copy before they touch its memory, and order threads nowhere."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.running: list[tuple[str, str]] = []  # the buffers that each unfinished dot reads
        self.copied: set[str] = set()
        kinds = (self.store, self.load, self.copy, self.scratch, self.temporary, self.dot, self.some_wait, self.barrier)
        # few kinds of ops and few buffers in each program: more of them meet
        self.kinds: list[Callable[[], None]] = [
            *self.random.sample(kinds, 2),
            self.dot,
            self.some_wait,
            self.barrier,
            self.store,
        ]
        self.used = [*self.random.choices(BUFFERS[:2], k=2), *self.random.choices(BUFFERS[2:], k=2)]

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str) -> None:
        self.lines.append(text)

    def finish_dots(self, buffer: str) -> None:
        """Wait until no dot reads `buffer`; later dots may go on."""
        for position in reversed(range(len(self.running))):
            if buffer in self.running[position]:
                self.wait(len(self.running) - 1 - position)
                return

    def wait(self, pendings: int) -> None:
        self.emit(f"{self.name()} = ttng.warp_group_dot_wait %sum {{pendings = {pendings} : i32}} : {SUM}")
        self.running = self.running[len(self.running) - pendings :] if pendings else []

    def finish_copies(self) -> None:
        if self.copied:
            group, done = self.name(), self.name()
            self.emit(f"{group} = ttg.async_commit_group")
            self.emit(f"{done} = ttg.async_wait {group} {{num = 0 : i32}}")
            self.copied.clear()

    def ready(self, buffer: str, is_written: bool) -> str:
        """A buffer that may be used; its kind."""
        if buffer in self.copied:
            self.finish_copies()
        if is_written:
            self.finish_dots(buffer)
        return buffer[0]

    def store(self) -> None:
        buffer = self.random.choice(self.used)
        kind = self.ready(buffer, True)
        self.emit(f"ttg.local_store %x{kind}, %{buffer} : {TILE[kind]} -> {MEMORY[kind]}")

    def load(self) -> None:
        buffer = self.random.choice(self.used)
        kind = self.ready(buffer, False)
        self.emit(f"{self.name()} = ttg.local_load %{buffer} : {MEMORY[kind]} -> {TILE[kind]}")

    def copy(self) -> None:
        buffer = self.random.choice(self.used)
        kind = self.ready(buffer, True)
        self.emit(
            f"{self.name()} = ttg.async_copy_global_to_local %q{kind}, %{buffer} : {POINTERS[kind]} -> {MEMORY[kind]}"
        )
        self.copied.add(buffer)

    def dot(self) -> None:
        a, b = self.random.choice(self.used[:2]), self.random.choice(self.used[2:])
        for buffer in (a, b):
            self.ready(buffer, False)
        is_async = self.random.random() < 0.8
        self.emit(
            f"{self.name()} = ttng.warp_group_dot %{a}, %{b}, %sum {{inputPrecision = 0 : i32, "
            f"isAsync = {str(is_async).lower()}}} : "
            f"{MEMORY['a']} * {MEMORY['b']} -> {SUM}"
        )
        self.running = [*self.running, (a, b)] if is_async else []

    def some_wait(self) -> None:
        if self.running:
            self.wait(self.random.randrange(len(self.running)))

    def scratch(self) -> None:
        """A tile that goes through memory of its own: it may lie where a buffer was."""
        self.emit(f"{self.name()} = ttg.convert_layout %xa : {TILE['a']} -> tensor<128x16xf16, #t>")

    def temporary(self) -> None:
        memory = self.name()
        self.emit(f"{memory} = ttg.local_alloc %xb : ({TILE['b']}) -> {MEMORY['b']}")
        self.emit(f"{self.name()} = ttg.local_load {memory} : {MEMORY['b']} -> {TILE['b']}")

    def barrier(self) -> None:
        self.emit("ttg.barrier all")

    def loop(self) -> None:
        self.emit(f"scf.for {self.name()} = %c0 to %c2 step %c1 : i32 {{")
        self.nested()
        self.emit("}")

    def branch(self) -> None:
        running, copied = self.running, set(self.copied)
        self.emit(f"scf.if {self.random.choice(['%yes', '%no'])} {{")
        self.nested()
        self.running, self.copied = running, copied
        if self.random.random() < 0.5:
            self.emit("} else {")
            self.nested()
        self.emit("}")

    def nested(self) -> None:
        """Dots and copies that were started before may go on inside; nothing is under way at the end."""
        self.ops(self.random.randint(2, 5), nest=False)
        self.settle()

    def settle(self) -> None:
        self.finish_copies()
        if self.running:
            self.wait(0)

    def ops(self, count: int, nest: bool) -> None:
        for _ in range(count):
            nests = nest and self.random.random() < 0.15
            self.random.choice([self.loop, self.branch] if nests else self.kinds)()

    def text(self) -> str:
        for kind, shape in (("a", (128, 16)), ("b", (16, 16))):
            self.emit(f"%x{kind} = arith.constant dense<{1.0 + len(shape)}> : {TILE[kind]}")
            self.emit(f"%q{kind} = tt.splat %p : !tt.ptr<f16> -> {POINTERS[kind]}")
        self.emit(f"%sum = arith.constant dense<0.0> : {SUM}")
        for number in range(3):
            self.emit(f"%c{number} = arith.constant {number} : i32")
        for buffer in BUFFERS:
            self.emit(f"%{buffer} = ttg.local_alloc : () -> {MEMORY[buffer[0]]}")
        self.ops(self.random.randint(6, 16), nest=True)
        self.settle()
        for buffer in BUFFERS:  # no buffer is given away before all that reads or fills it is waited for
            self.emit(f"{self.name()} = ttg.local_load %{buffer} : {MEMORY[buffer[0]]} -> {TILE[buffer[0]]}")
        body = "\n".join(self.lines)
        return f"{HEAD}tt.func public @f(%p: !tt.ptr<f16>, %yes: i1, %no: i1) {{\n{body}\ntt.return\n}}\n}}\n"


def run(module: object) -> None:
    evaluate(module, "f", [np.ones(4, np.float16), True, False], barriers=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_the_barriers_of_generated_programs_suffice(first: int) -> None:
    def is_local(op: Operation) -> bool:  # the program's own barriers are for all memory
        return isinstance(op, ttg.BarrierOp) and op.addr_space.value.data == AddrSpace.LOCAL

    needed = 0
    for seed in range(first, first + 100):
        text = Programs(seed).text()
        module = parse_module(text)
        run_pipeline(module, parse_pipeline("allocate-shared-memory-nv{compute-capability=90},test-print-membar"))
        try:
            run(module)
        except EvaluationError as error:
            pytest.fail(f"seed {seed}: {error}\n{text}")
        without = clone_op(module, {})
        for op in [op for op in without.walk() if is_local(op)]:
            erase_op(op)
        try:
            run(without)
        except EvaluationError as error:
            needed += "barrier is missing" in str(error)
    assert needed > 50, "most programs race without the barriers"
