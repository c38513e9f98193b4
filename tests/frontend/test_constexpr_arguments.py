"""Arguments that decide a shape must be known when a kernel is compiled."""

from pathlib import Path

import numpy as np
import pytest

import tilework
from tests.runtime.modules import load_module


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        ("tl.sum(x, keep_dims=n)", "keep_dims"), ("tl.max(x, 0, keep_dims=n)", "keep_dims"),
        ("tl.sum(x, axis=n)", "axis"),
        ("tl.reduce(x, 0, add, keep_dims=n)", "keep_dims"), ("tl.reduce(x, n, add)", "axis"),
        ("tl.associative_scan(x, n, add)", "axis"), ("tl.associative_scan(x, 0, add, reverse=n)", "reverse"),
        ("tl.cumsum(x, 0, reverse=n)", "reverse"),
    ],
)  # fmt: skip
def test_what_decides_a_shape_must_be_constexpr(call: str, parameter: str, mode: str, tmp_path: Path) -> None:
    text = (
        "@tilework.jit\ndef add(a, b):\n    return a + b\n"
        f"@tilework.jit(interpret={mode == 'interpreted'})\n"
        f"def k(p, n):\n    x = tl.load(p + tl.arange(0, 4))\n    tl.store(p + tl.arange(0, 4), {call})\n"
    )
    module = load_module(tmp_path, text, "shapes")
    error = tilework.CompilationError if mode == "compiled" else tilework.runtime.InterpreterError
    with pytest.raises(error) as caught:
        module.k[(1,)](np.zeros(4, "i4"), 5)
    words = f"`{parameter}` must be constexpr, but is int32 at run time"
    if isinstance(caught.value, tilework.CompilationError):
        shown = caught.value.diagnostic().render()
        assert f"shapes.py:9:{text.splitlines()[-1].index(call) + 1}: error: " in shown and words in shown
        assert "help: declare the parameter `NAME: tl.constexpr`" in shown
    else:
        assert words in str(caught.value)
