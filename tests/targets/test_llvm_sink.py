"""Values that are needed only after a loop are computed there, and programs compute the same."""

import random

import numpy as np
import pytest

from tests.targets.llvm_run import load, new_module
from tilework.targets.gpu.sink import sink_past_loops
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i32, i64, ptr, void
from tilework.targets.llvm.values import Value


def sunk(write: object) -> dict[str, list[str]]:
    """Return the instructions of each block after `sink_past_loops`, without their operands."""
    module = Module("m")
    function = module.function("f", void, [(i32, "n"), (ptr, "p")])
    b = Builder(function)
    write(b, *function.args)  # type: ignore[operator]
    b.ret()
    sink_past_loops(function)
    return {
        block.name: [line.strip().partition(" = ")[2].split(" ")[0] or line.split()[0] for line in block.lines]
        for block in function.blocks
    }


def count(b: Builder, n: Value, p: Value) -> None:
    """A loop with a store."""
    with b.loop(0, b.sext(n, i64)) as index:
        b.store(index, p, align=8)


def test_addresses_move_behind_the_loop_with_what_they_need() -> None:
    def write(b, n, p):
        thread = b.call("thread", i32, [], is_pure=True)
        target = b.gep(p, b.mul(b.sext(b.and_(thread, 31), i64), 4))
        count(b, n, p)
        b.store(n, target, align=4)

    made = sunk(write)
    assert made["entry"] == ["call", "sext", "br"]
    assert made["done"] == ["and", "sext", "mul", "getelementptr", "store", "ret"]


def test_values_stay_whose_operands_take_more() -> None:
    def write(b, n, p):
        one, other = b.load(i32, p, align=4), b.load(i32, b.gep(p, 4), align=4)
        total = b.add(one, other)
        count(b, n, p)
        b.store(total, p, align=4)

    assert "add" in sunk(write)["entry"]


def test_values_stay_that_a_loop_uses() -> None:
    def write(b, n, p):
        offset = b.mul(n, 3)
        with b.loop(0, b.sext(n, i64)):
            b.store(offset, p, align=4)
        b.store(offset, p, align=4)

    assert "mul" in sunk(write)["entry"]


def test_values_of_a_second_loop_are_computed_before_it() -> None:
    def write(b, n, p):
        offset = b.mul(n, 3)
        count(b, n, p)
        with b.loop(0, b.sext(n, i64)):
            b.store(offset, p, align=4)

    made = sunk(write)
    assert "mul" not in made["entry"] and "mul" in made["done"] and "mul" not in made["body.1"]


def test_values_of_one_branch_move_into_it() -> None:
    def write(b, n, p):
        offset = b.mul(n, 3)
        count(b, n, p)
        with b.if_(b.icmp("slt", n, 7)):
            b.store(offset, p, align=4)

    made = sunk(write)
    assert "mul" in made["then"] and "mul" not in made["entry"]


class Program:
    """A random function of loops, branches and integer arithmetic that stores some of its values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def write(self, b: Builder, n: Value, p: Value) -> None:
        self.stored = 0
        values = [b.load(i32, b.gep(p, 4 * index), align=4) for index in range(4)]
        self.region(b, [*values, n], p, 3)

    def region(self, b: Builder, values: list[Value], p: Value, depth: int) -> None:
        values = list(values)
        for _ in range(self.random.randint(3, 8)):
            kind = self.random.choice(["value"] * 6 + ["store"] * 2 + ["loop", "loop", "branch"] * (depth > 0))
            if kind == "value":
                op = self.random.choice(["add", "sub", "mul", "and", "xor", "select"])
                one, other = self.random.choice(values), self.random.choice(values)
                made = b.select(b.icmp("slt", one, other), other, one) if op == "select" else b.binary(op, one, other)
                values.append(made)
            elif kind == "store":
                b.store(self.random.choice(values), b.gep(p, 4 * (8 + self.stored % 200)), align=4)
                self.stored += 1
            elif kind == "branch":
                with b.if_(b.icmp("slt", self.random.choice(values), self.random.choice(values))):
                    self.region(b, values, p, depth - 1)
            else:
                carried = self.random.choice(values)
                with b.loop_carrying(b.and_(self.random.choice(values), 1), 3, 1, [carried]) as loop:
                    self.region(b, [*values, loop.index, *loop.carried], p, depth - 1)
                    loop.next([b.add(loop.carried[0], self.random.choice(values))])
                values += loop.results


def result(seed: int, sinks: bool) -> tuple[np.ndarray, str]:
    module = new_module()
    function = module.function("kernel", void, [(ptr, "p"), (i64, "n")])
    b = Builder(function)
    memory, size = function.args
    Program(seed).write(b, b.trunc(size, i32), memory)
    b.ret()
    if sinks:
        sink_past_loops(function)
    out = np.random.default_rng(seed).integers(-100, 100, 256).astype(np.int32)
    load(module, "kernel", 2)(out.ctypes.data, seed)
    return out, function.text()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_programs_compute_the_same(first: int) -> None:
    changed = 0
    for seed in range(first, first + 20):
        (plain, before), (moved, after) = result(seed, sinks=False), result(seed, sinks=True)
        assert (plain == moved).all(), seed
        changed += before != after
    assert changed > 2
