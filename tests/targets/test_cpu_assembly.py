"""Assembly for the host, shown with source lines, has the instructions that run."""

import re

import numpy as np

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource, lower
from tilework.targets.base import GPUTarget
from tilework.targets.cpu import assembly
from tilework.targets.llvm.compile import host_target_machine, to_assembly

INSTRUCTION = re.compile(r"\t([a-z]\w*.*)")


@tilework.jit
def row_softmax(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    high = tl.exp(row - tl.max(row))
    tl.store(out + tl.program_id(0) * n + i, high / tl.sum(high), mask=i < n)


def instructions(text: str) -> list[str]:
    return [found[1] for line in text.splitlines() if (found := INSTRUCTION.match(line)) is not None]


def test_line_tables_change_no_instruction() -> None:
    x = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    compiled = row_softmax[(3,)](x, np.empty_like(x), 100, BLOCK=128)
    run = instructions(to_assembly(compiled.asm["llir"], 0, host_target_machine(2)))
    shown = instructions(compiled.asm["asm"])
    assert len(shown) > 50
    assert run[: len(shown)] == shown, "what follows takes chunks of programs"
    assert "asm" in compiled.asm


def test_comments_stand_where_the_line_changes() -> None:
    text = (
        '\t.file\t1 "/nowhere" "k.py"\nk:\n\t.loc\t1 3 0\n\tnop\n\t.loc\t1 3 8\n\tnop\n\t.loc\t1 4 1\n\tret\n'
        '\t.section\t.debug_info,"",@progbits\n\t.byte 1\n'
    )
    assert assembly.readable(text, "//") == "k:\n// k.py:3\n\tnop\n\tnop\n// k.py:4\n\tret\n"


def test_assembly_is_that_of_the_target() -> None:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(row_softmax, types, {"BLOCK": 128})
    for target, register in (("cpu:armv8-a", r"\bv\d+\.4s"), ("cpu:x86-64-v3", "%ymm"), ("cpu:x86-64-v4", "%zmm")):
        text = lower(source, GPUTarget.parse(target), ["asm"])["asm"]
        assert re.search(register, text) and ("# test_cpu" in text) == ("x86" in target), target
        assert ("%zmm" in text) == (target == "cpu:x86-64-v4"), target
