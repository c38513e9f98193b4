"""Specialisations as JSON, and `preload`, which compiles what they say."""

import json
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import fill
from tilework import knobs
from tilework.runtime.launch.python.specialization import decode, encode

pytestmark = pytest.mark.usefixtures("fresh_cache")


def test_preload_keeps_dtypes_constexprs_and_tuples() -> None:
    @tilework.jit
    def convert(p, pair, T: tl.constexpr, SHAPE: tl.constexpr, F: tl.constexpr):
        tl.store(p, (pair[0] + pair[1] + SHAPE[0] + F).to(T))

    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    out = np.zeros(1, "f4")
    first = convert[(1,)](out, (2, 1), tl.float32, (3, 4), 0.5)
    assert out[0] == 6.5
    knobs.runtime.jit_cache_hook = None
    convert.device_caches.clear()
    second = convert.preload(data[0])
    assert second.hash == first.hash
    assert convert[(1,)](out, (2, 1), tl.float32, (3, 4), 0.5) is second


@tilework.jit
def copy_of(x):
    return x


@tilework.jit
def axpy(x, y, a):
    i = tl.arange(0, 16)
    tl.store(y + i, tl.load(x + i) * a + tl.load(y + i))


def test_hooks_hear_of_preloading_and_may_skip_it() -> None:
    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    fill.device_caches.clear()
    seen: list[Any] = []

    def hook(**info: Any) -> bool:
        seen.append((info["is_manual_warmup"], info["compile"]["is_warmup"], info["already_compiled"]))
        return True

    knobs.runtime.jit_cache_hook = hook
    assert fill.preload(data[0]) is None and seen == [(True, True, False)]
    assert fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,)) is None and len(seen) == 2
    assert fill.device_caches[0][0] == {}
    knobs.runtime.jit_cache_hook = None
    knobs.runtime.jit_post_compile_hook = lambda **info: seen.append(info["already_compiled"])
    assert fill.preload(data[0]).name == "fill" and seen[2:] == [False]


def test_specialisation_data_is_json_by_name() -> None:
    @tilework.jit
    def convert(p, pair, T: tl.constexpr, SHAPE: tl.constexpr, N):
        tl.store(p, (pair[0] + pair[1] + SHAPE[0] + N).to(T))

    data: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **info: (
        data.append(json.loads(info["compile"]["specialization_data"])) and False
    )
    convert[(1,)](np.zeros(1, "f4"), (2, 16), tl.float32, (3, 4), tl.constexpr(7))
    (found,) = data
    assert found["name"].endswith("convert") and found["signature"]["p"] == "*fp32"
    values = dict(zip(map(tuple, found["constant_keys"]), found["constant_vals"], strict=True))
    assert values == {(2,): "fp32", (3,): [3, 4], (4,): 7} and found["signature"]["pair"] == ["i32", "i32"]
    attrs = dict(zip(map(tuple, found["attrs_keys"]), found["attrs_vals"], strict=True))
    assert attrs == {(0,): [["tt.divisibility", 16]], (1, 1): [["tt.divisibility", 16]]}
    assert found["key"] in convert.device_caches[0][0]


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "constant",
    ["fp32", "text", tl.float32, (3, "int8", tl.int8), [1, 2], Point(1, tl.float16), tl.constexpr(3),
     (tl.constexpr(tl.int32), ()), None, 2.5, True, copy_of],
    ids=str,
)  # fmt: skip
def test_constants_survive_the_journey(constant: Any) -> None:
    """Texts that name a dtype are no dtypes, lists are no tuples."""
    travelled = decode(json.loads(json.dumps(encode(constant))))
    assert travelled == constant and type(travelled) is type(constant)
    assert (
        [type(item) for item in travelled] == [type(item) for item in constant]
        if type(constant) in (tuple, list)
        else True
    )


def test_preload_refuses_another_kernel() -> None:
    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    with pytest.raises(RuntimeError, match=rf"^Specialization data is for {fill.module}.fill but .* {__name__}.axpy"):
        axpy.preload(data[0])
