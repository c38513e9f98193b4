"""LLVM_EXTRACT_DI_LOCAL_VARIABLES=1: the LLVM text says which value is which of the user's variables, and still
compiles."""

import re

import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.targets.base import GPUTarget

VARIABLES = {"pid", "offsets", "mask", "x", "output", "y"}


@tilework.jit
def kernel(p, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(p + offsets, mask=mask)
    output = x + 1.0
    for i in range(0, n):
        output += i
    if n > 3:
        y = output * 2.0
    else:
        y = output
    tl.store(p + offsets, y, mask=mask)


def stages(target: GPUTarget, *names: str) -> dict[str, str]:
    source = ASTSource(kernel, {"p": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16})
    return lower(source, target, list(names))


@pytest.mark.parametrize(
    ("target", "last"),
    [(GPUTarget("cuda", 90, 32), "ptx"), (GPUTarget("cpu", "native", 1), "obj")],
    ids=["cuda", "cpu"],
)
def test_values_have_the_names_of_variables(target: GPUTarget, last: str) -> None:
    with knobs.compilation.scope():
        knobs.compilation.dump_ir_extract_di_local_variables = True
        made = stages(target, "llir", last)
    text = made["llir"]
    assert set(re.findall(r'!DILocalVariable\(name: "(\w+)"', text)) >= VARIABLES
    declared = set(re.findall(r"^(!\d+) = !DILocalVariable", text, re.MULTILINE))
    assert declared == set(re.findall(r"#dbg_value\(.*, (!\d+), !DIExpression", text))
    assert made[last]


@pytest.mark.parametrize("target", [GPUTarget("cuda", 90, 32), GPUTarget("cpu", "native", 1)], ids=["cuda", "cpu"])
def test_nothing_is_said_unless_requested(target: GPUTarget) -> None:
    assert "dbg_value" not in stages(target, "llir")["llir"]
