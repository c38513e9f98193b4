"""Loops that ptxas may unroll, and shared memory of kernels that have none."""

import pytest

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource, GPUTarget, lower


@tilework.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + tl.arange(0, BLOCK), total)


@tilework.jit
def dots(a, b, c, n, BLOCK: tl.constexpr):
    row, column = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        left = tl.load(a + row * n + start + column)
        total = tl.dot(left, tl.load(b + (start + row) * BLOCK + column), total)
    tl.store(c + row * BLOCK + column, total)


def ptx(kernel: tilework.JITFunction, types: dict[str, str], block: int) -> str:
    source = ASTSource(kernel, {**types, "BLOCK": "constexpr"}, {"BLOCK": block})
    return lower(source, GPUTarget.parse("cuda:90"), ["ptx"])["ptx"]


@pytest.mark.parametrize("type", ["fp32", "bf16"])
def test_ptxas_may_unroll_a_loop_that_nothing_pipelines(type: str) -> None:
    """Its loads are in flight together only if it is unrolled."""
    assert '.pragma "nounroll"' not in ptx(row_sum, {"x": f"*{type}", "out": "*fp32", "n": "i32"}, 512)


def test_pipelined_loops_are_not_unrolled() -> None:
    assert '.pragma "nounroll"' in ptx(dots, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32"}, 64)


def test_a_kernel_without_shared_memory_declares_none() -> None:
    """A declaration takes as many bytes as its alignment, and so occupancy."""
    assert "global_smem" not in ptx(row_sum, {"x": "*fp32", "out": "*fp32", "n": "i32"}, 512)
    assert "global_smem" in ptx(dots, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32"}, 64)
