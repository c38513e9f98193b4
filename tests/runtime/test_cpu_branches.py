"""Tiles that one branch passes on and the other replaces: updated in place, in code of the CPU and in the evaluator."""

# pyright: reportMissingParameterType=false, reportOptionalOperand=false

import re
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.runtime.devices.active_driver import default_driver
from tilework.runtime.devices.active_driver import driver as drivers

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def replaced(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a = tl.load(x + i)
    if flag > 0:
        a = a * 2 + 1
    tl.store(y + i, tl.dot(a, a))


@tilework.jit
def transposed(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a = tl.load(x + i)
    if flag > 0:
        a = tl.trans(a) + a
    tl.store(y + i, tl.dot(a, a))


@tilework.jit
def swapped(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a, b = tl.load(x + i), tl.load(x + W * W + i)
    if flag > 0:
        a, b = b + 1, tl.trans(a)
    tl.store(y + i, tl.dot(a, b))


@tilework.jit
def used_later(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a = tl.load(x + i)
    b = a
    if flag > 0:
        b = a * 2
    tl.store(y + i, tl.dot(a, b))


@tilework.jit
def two_results(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a = tl.load(x + i)
    if flag > 0:
        b, c = a, a + 3
    else:
        b, c = a - 1, a
    tl.store(y + i, tl.dot(b, c))


@tilework.jit
def nested(x, y, flag, W: tl.constexpr):
    i = tl.arange(0, W)[:, None] * W + tl.arange(0, W)[None, :]
    a = tl.load(x + i)
    for k in range(0, 3):
        if flag > k:
            a = a + 1
            if flag > k + 1:
                a = tl.trans(a)
        else:
            a = a - k
    tl.store(y + i, tl.dot(a, a))


def nested_rows(a, b, flag):
    for k in range(3):
        if flag > k:
            a = a + 1
            a = a.T if flag > k + 1 else a
        else:
            a = a - k
    return a @ a


EXPECTED: dict[Any, Any] = {
    replaced: lambda a, b, flag: (c := a * 2 + 1 if flag else a) @ c,
    transposed: lambda a, b, flag: (c := a.T + a if flag else a) @ c,
    swapped: lambda a, b, flag: (b + 1) @ a.T if flag else a @ b,
    used_later: lambda a, b, flag: a @ (a * 2 if flag else a),
    two_results: lambda a, b, flag: a @ (a + 3) if flag else (a - 1) @ a,
    nested: nested_rows,
}


@pytest.mark.parametrize("device", ["native", "evaluator"])
@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda kernel: kernel.__name__)
def test_branches_that_pass_tiles_on(kernel: Any, device: str) -> None:
    width = 16
    x = np.random.default_rng(1).integers(-4, 4, (2, width, width)).astype("f4")
    before = drivers._active
    knobs.runtime.device = device
    drivers.set_active(default_driver())
    try:
        for flag in (0, 1, 2, 3):
            y = np.zeros((width, width), "f4")
            kernel.device_caches.clear()
            kernel[(1,)](x, y, flag, width)
            np.testing.assert_array_equal(y, EXPECTED[kernel](*x, flag), err_msg=f"flag {flag}")
    finally:
        drivers._active = before


@pytest.mark.parametrize(("kernel", "copies"), [(replaced, 0), (used_later, 1)])
def test_the_tile_is_not_copied_if_nothing_else_needs_it(kernel: Any, copies: int) -> None:
    types = {"x": "*fp32", "y": "*fp32", "flag": "i32"}
    text = lower(ASTSource(kernel, types, {"W": 16}), GPUTarget("cpu", "host", 1), ["ttcir"])["ttcir"]
    assert len(re.findall(r"\} else \{", text)) == copies
