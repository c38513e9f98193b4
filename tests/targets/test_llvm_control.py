"""Loops, conditions and what the builder remembers across blocks."""

import numpy as np
import pytest

from tests.targets.llvm_run import opaque, run
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import check
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i1, i32, i64, void
from tilework.targets.llvm.values import Value, constant


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def unknown(b: Builder, value: int) -> Value:
    return opaque(b, constant(i32, value))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_loop_with_unknown_bounds(count: int) -> None:
    out = ints(0, 0)

    def body(b: Builder, p: Value) -> None:
        with b.loop_carrying(0, unknown(b, count), 1, [constant(i32, 100)]) as loop:
            loop.next([b.add(loop.carried[0], loop.index)])
        b.store(loop.results[0], p, align=4)

    run([out], body)
    assert out[0] == 100 + sum(range(count))


def test_a_loop_with_constant_bounds_tests_at_the_bottom() -> None:
    out = ints(0)
    texts = []

    def body(b: Builder, p: Value) -> None:
        with b.loop_carrying(0, constant(i32, 10), 3, [constant(i32, 0)], unroll=1) as loop:
            loop.next([b.add(loop.carried[0], loop.index)])
        b.store(loop.results[0], p, align=4)
        texts.append(len(b.function.blocks))

    run([out], body)
    assert out[0] == 0 + 3 + 6 + 9 and texts == [3], "entry, loop, done"


def test_nested_loops_and_conditions() -> None:
    out = np.zeros(16, np.int32)

    def body(b: Builder, p: Value) -> None:
        with b.loop(0, unknown(b, 4)) as i, b.loop(0, constant(i32, 4)) as j:
            address = b.gep(p, b.zext(b.add(b.mul(i, 4), j), i64), i32)
            with b.if_(b.icmp("sgt", i, j), weights=(1, 3)):
                b.store(b.add(i, 10), address, align=4)
            (value,) = b.if_else(b.icmp("eq", i, j), lambda: [b.mul(i, 100)], lambda: [b.load(i32, address, align=4)])
            b.store(value, address, align=4)

    run([out], body)
    assert [list(row) for row in out.reshape(4, 4)] == [
        [0, 0, 0, 0],
        [11, 100, 0, 0],
        [12, 12, 200, 0],
        [13, 13, 13, 300],
    ]


def test_constant_conditions_build_one_side() -> None:
    b = Builder(Module().function("f", void, []))
    assert b.if_else(constant(i1, 1), lambda: [constant(i32, 1)], lambda: [constant(i32, 2)])[0].constant == 1
    with b.if_(constant(i1, 1)):
        pass
    assert len(b.function.blocks) == 1


def test_branches_by_hand() -> None:
    out = ints(0)

    def body(b: Builder, p: Value) -> None:
        one, two, other, end = (b.new_block(name) for name in ("one", "two", "other", "end"))
        b.switch(unknown(b, 2), other, [(1, one), (2, two)])
        for block in (one, two, other):
            b.enter(block)
            b.br(end)
        b.enter(end)
        value = b.phi(i32, [(constant(i32, 10), one), (constant(i32, 20), two), (constant(i32, 30), other)])
        b.store(value, p, align=4)

    run([out], body)
    assert out[0] == 20


def test_what_is_known_follows_dominance() -> None:
    function = Module().function("f", void, [(i32, "x"), (i32, "n")])
    b = Builder(function)
    x, n = function.args
    before = b.mul(x, 3)
    with b.loop(0, n) as i:
        inside = b.mul(i, x)
        assert b.mul(x, 3) is before and b.mul(x, i) is inside
        only_here = b.mul(x, 5)
    assert b.mul(x, 3) is before
    assert b.mul(x, 5) is not only_here
    free, promised = b.new_block("free"), b.new_block("promised", inherit=True)
    b.cond_br(b.icmp("eq", x, 1), free, promised)
    b.enter(free)
    assert b.mul(x, 3) is not before
    b.ret()
    b.enter(promised)
    assert b.mul(x, 3) is before
    b.ret()
    check(function.module.text())
