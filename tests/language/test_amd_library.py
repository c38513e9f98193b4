"""AMD's device library and real-time clock."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.compiler
import tilework.language as tl
from tilework.language.function import JITFunction


@tilework.jit
def whole_and_finite(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.extra.hip.libdevice.rint(a))
    tl.store(out + N + i, tl.extra.hip.libdevice.rint(b).to(tl.float32))
    tl.store(out + 2 * N + i, tl.extra.hip.libdevice.finitef(a) != 0)
    tl.store(out + 3 * N + i, tl.extra.hip.libdevice.isfinited(b) != 0)


@pytest.mark.parametrize("interpret", [False, True])
def test_functions_of_amds_library(interpret: bool) -> None:
    values = np.array([0.5, 1.5, -2.5, 2.4, np.inf, -np.inf, np.nan, -0.0])
    out = np.zeros((4, 8), np.float32)
    tilework.jit(whole_and_finite.fn, interpret=interpret)[(1,)](values.astype(np.float32), values, out, N=8)
    np.testing.assert_array_equal(out[:2], np.tile(np.rint(values), (2, 1)))
    np.testing.assert_array_equal(out[2:], np.tile(np.isfinite(values), (2, 1)))


def stages_on(arch: str, fn: JITFunction, signature: dict[str, str], constants: dict[str, Any], stage: str) -> str:
    source = tilework.compiler.ASTSource(fn, signature, constants)
    width = 64 if arch.startswith("gfx9") else 32
    return tilework.compiler.lower(source, tilework.compiler.GPUTarget("hip", arch, width), [stage])[stage]


def test_symbols_of_amds_library() -> None:
    signature = {"x": "*fp32", "y": "*fp64", "out": "*fp32", "N": "constexpr"}
    module = stages_on("gfx942", whole_and_finite, signature, {"N": 64}, "ttir")
    assert module.count('symbol = "__triton_hip_rint"') == 2
    assert '"__ocml_isfinite_f32"' in module and '"__ocml_isfinite_f64"' in module
    assert "__triton_hip" not in stages_on("gfx942", whole_and_finite, signature, {"N": 64}, "llir")  # its own code


@tilework.jit
def clock(out):
    tl.store(out, tl.extra.hip.memrealtime())


@pytest.mark.parametrize(
    ("arch", "read", "wait"),
    [("gfx942", "s_memrealtime", "s_waitcnt vmcnt(0)"), ("gfx1100", "MSG_RTN_GET_REALTIME", "s_waitcnt lgkmcnt(0)"),
     ("gfx1201", "MSG_RTN_GET_REALTIME", "s_wait_kmcnt 0")],
)  # fmt: skip
def test_clock_of_amd_gpus(arch: str, read: str, wait: str) -> None:
    module = stages_on(arch, clock, {"out": "*i64"}, {}, "ttir")
    assert read in module and wait in module
    assert "llvm.readsteadycounter" in stages_on(arch, clock, {"out": "*i64"}, {}, "llir")
