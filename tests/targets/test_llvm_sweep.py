"""Unused text is removed; instructions with an effect are kept."""

import llvmlite.binding as llvm

from tilework.targets.gpu.codegen import sweep
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i32, ptr, void
from tilework.targets.llvm.values import constant


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
