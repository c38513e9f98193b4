"""Decisions that determine the speed of matmul and attention on AMD GPUs, compared with Triton 3.6 (``python -m
benchmarks.ttgir_decisions hip``)."""

import pytest

from benchmarks.ttgir_decisions import decisions, ours, theirs


@pytest.mark.parametrize(
    ("kernel", "target"),
    [("matmul_f16_128", "hip:gfx942"), ("attention", "hip:gfx942"), ("matmul_f16_128", "hip:gfx950")],
)
def test_decisions_are_tritons(kernel: str, target: str) -> None:
    """Matrix instructions, widths of accesses, buffers, bytes of LDS, conversions in loops."""
    assert decisions(ours(kernel, target)) == decisions(theirs(kernel, target))
