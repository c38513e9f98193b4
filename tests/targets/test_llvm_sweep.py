"""Unused text is removed; instructions with an effect are kept, others move to their uses."""

from functools import reduce

import llvmlite.binding as llvm

from tilework.targets.gpu.codegen import order_by_use, sweep
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i32, ptr, void
from tilework.targets.llvm.values import Value, constant


def swept(write: object) -> str:
    module = Module("m")
    function = module.function("f", void, [(i32, "n"), (ptr, "p")])
    b = Builder(function)
    write(b, *function.args)  # type: ignore[operator]
    b.ret()
    sweep(function)
    llvm.parse_assembly(module.text()).verify()
    return module.text()


def test_unused_values_go_and_what_they_needed() -> None:
    def write(b, n, p):
        b.mul(b.add(n, 3), 5)
        b.load(i32, p, align=4)
        b.store(b.add(n, 7), p, align=4)

    text = swept(write)
    assert "mul" not in text and "load" not in text and "add i32 %n, 3" not in text and "add i32 %n, 7" in text


def test_values_that_only_go_round_a_loop() -> None:
    def write(b, n, p):
        with b.loop_carrying(constant(i32, 0), n, 1, [n, n]) as loop:
            idle, used = loop.carried
            loop.next([b.add(idle, n), b.mul(used, n)])
        b.store(loop.results[1], p, align=4)

    text = swept(write)
    assert text.count(" = phi ") == 2 and "mul" in text  # the index, and what is stored


def test_effects_stay() -> None:
    def write(b, n, p):
        b.load(i32, p, align=4, volatile=True)
        b.atomic_rmw("add", p, n)
        b.call("g", i32, [n])
        b.assembly("bar.sync 0;", "=r", [i32], [], sideeffect=True)
        b.assembly("mov.b32 $0, 1;", "=r", [i32], [])

    text = swept(write)
    assert (
        "load volatile" in text
        and "atomicrmw" in text
        and "@g(" in text
        and "bar.sync" in text
        and "mov.b32" not in text
    )


def test_branches_and_conditions_stay() -> None:
    def write(b, n, p):
        with b.if_(b.icmp("slt", n, 3)):
            b.store(n, p, align=4)

    text = swept(write)
    assert "icmp slt" in text and "br i1" in text


MANY = 96  # elements of a tile


def ordered(write: object) -> list[str]:
    """Return the instructions of a block after `order_by_use`, without their operands."""
    module = Module("m")
    function = module.function("f", void, [(i32, "n"), (ptr, "p")])
    b = Builder(function)
    write(b, *function.args)  # type: ignore[operator]
    b.ret()
    order_by_use(function, ["@exchange"])
    llvm.parse_assembly(module.text()).verify()
    return [line.strip().partition(" = ")[2].split(" ")[0] or line.split()[0] for line in function.entry.lines]


def squares(b: Builder, p: Value) -> list[Value]:
    """Load a tile and square it, operation by operation."""
    tile = [b.load(i32, b.gep(p, 4 * index), align=4) for index in range(MANY)]
    more = [b.add(value, 1) for value in tile]
    return [b.mul(x, y) for x, y in zip(more, tile, strict=True)]


def test_elements_are_computed_one_after_the_other() -> None:
    def write(b, n, p):
        b.store(reduce(b.add, squares(b, p)), p, align=4)

    made = [text for text in ordered(write) if text not in ("getelementptr", "load")]
    assert made == ["add", "mul", *["add", "mul", "add"] * (MANY - 1), "store", "ret"]


def test_values_needed_after_an_exchange_keep_their_order() -> None:
    def write(b, n, p):
        values = squares(b, p)
        total = b.call("exchange", i32, [reduce(b.add, values)])
        for index, value in enumerate(values):
            b.store(b.sub(value, total), b.gep(p, 4 * index), align=4)

    made = [text for text in ordered(write) if text not in ("getelementptr", "load")]
    assert made[: 2 * MANY] == ["add"] * MANY + ["mul"] * MANY


def test_loads_and_effects_keep_their_order() -> None:
    def write(b, n, p):
        first = squares(b, p)
        b.store(first[-1], p, align=4)
        b.store(reduce(b.add, [*first[:-1], b.load(i32, p, align=4)]), p, align=4)

    made = [text for text in ordered(write) if text in ("load", "store")]
    assert made == ["load"] * MANY + ["store", "load", "store"]
