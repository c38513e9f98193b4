"""The forms that Triton 3.0 had for a kernel with its types."""

import pytest

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource


@tilework.jit
def scale(x, out, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step, mask=i < n), mask=i < n)


TYPES = {"x": "*fp32", "out": "*fp32", "n": "i32", "step": "i32", "BLOCK": "constexpr"}


def test_every_form_is_the_same_kernel() -> None:
    today = ASTSource(scale, TYPES, {"BLOCK": 64})
    old = [
        ASTSource(scale, "*fp32,*fp32,i32,i32", constants={"BLOCK": 64}),
        ASTSource(scale, " *fp32, *fp32, i32, i32", {4: 64}),
        ASTSource(scale, {0: "*fp32", 1: "*fp32", 2: "i32", 3: "i32", 4: "constexpr"}, constants={4: 64}),
    ]
    for source in old:
        assert (
            source.signature == today.signature
            and source.constants == today.constants
            and source.hash() == today.hash()
        )


def test_wrong_forms() -> None:
    with pytest.raises(TypeError, match="has 4 parameters that are no constants and is given 2 types"):
        ASTSource(scale, "*fp32,i32", constants={"BLOCK": 64})
    with pytest.raises(TypeError, match="Signature keys must be string"):
        ASTSource(scale, {0: "*fp32"}, {"BLOCK": 64})
