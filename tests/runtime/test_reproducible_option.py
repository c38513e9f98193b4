"""The option `reproducible`: where it can be said, and that nothing changes without it."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import AMPERE, fill_source
from tilework import knobs
from tilework.compiler import compile, lower
from tilework.ir.module_facts import is_reproducible
from tilework.ir.parser import parse_module

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def scale(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 3 + 1)


def launched(kernel: Any, **options: Any) -> Any:
    return kernel[(1,)](np.ones(16, np.float32), np.ones(16, np.float32), N=16, **options)


def is_marked(kernel: Any) -> bool:
    assert ("tilework.reproducible" in kernel.asm["ttir"]) == kernel.metadata.reproducible
    assert kernel.metadata.enable_fp_fusion != kernel.metadata.reproducible
    return kernel.metadata.reproducible


def test_a_kernel_a_launch_and_the_environment_can_ask() -> None:
    plain = launched(scale)
    assert not is_marked(plain)
    assert is_marked(launched(scale, reproducible=True)) and launched(scale).hash == plain.hash
    requested = tilework.jit(reproducible=True)(scale)
    assert is_marked(launched(requested)) and not is_marked(launched(requested, reproducible=False))
    with knobs.runtime.scope():
        knobs.runtime.reproducible = True
        assert is_marked(launched(scale)) and not is_marked(launched(tilework.jit(reproducible=False)(scale)))
    assert not is_marked(launched(scale))


def test_reproducible_IR_stays_so(tmp_path: Any) -> None:
    text = lower(fill_source(), AMPERE, ["ttgir"], reproducible=True)["ttgir"]
    assert is_reproducible(parse_module(text))
    file = tmp_path / "fill.ttgir"
    file.write_text(text)
    assert compile(file, AMPERE).metadata.reproducible


def test_dots_use_all_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    @tilework.jit
    def square(a: Any, N: tl.constexpr, HOW: tl.constexpr) -> None:
        at = a + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
        tl.store(at, tl.dot(tl.load(at), tl.load(at), input_precision=HOW))

    source = tilework.compiler.ASTSource(square, {"a": "*fp32"}, {"N": 16, "HOW": "tf32x3"})
    assert "tf32" not in lower(source, AMPERE, reproducible=True)["ttir"]
    assert "tf32x3" in lower(source, AMPERE)["ttir"]
