"""Specialisations as JSON, and `preload`, which compiles what they say."""

import gc
import inspect
import json
import re
from collections import namedtuple
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import fill
from tilework import knobs
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.specialization import decode, encode
from tilework.targets.base import find_backend

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


def test_data_of_triton_have_all_options() -> None:
    """Triton's data has no `launch_options`."""
    data = data_of(lambda: fill[(1,)](np.zeros(4, "f4"), 1.0, 4, num_warps=2))
    options = find_backend(driver.active.get_current_target()).parse_options({"num_warps": 2})
    assert data["options"].keys() == asdict(options).keys() and data["options"]["num_warps"] == 2
    fill.device_caches.clear()
    del data["launch_options"]
    assert fill.preload(json.dumps(data)).metadata.num_warps == 2


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


def data_of(launch: Any) -> dict[str, Any]:
    """The specialisation data of a compilation."""
    data: list[str] = []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
        launch()
    (found,) = data
    return json.loads(found)


@tilework.jit
def apply(x, out, F: tl.constexpr):
    tl.store(out, F(tl.load(x)))


@tilework.jit
def doubled(x):
    return x * 2


def test_a_function_as_a_constant_is_found_by_its_name() -> None:
    @tilework.jit
    def tripled(x):
        return x * 3

    x, out = np.ones(1, "f4"), np.zeros(1, "f4")
    for function, result, name in ((doubled, 2, "doubled"), (tripled, 3, "<locals>.tripled")):
        apply.device_caches.clear()
        data = data_of(lambda function=function: apply[(1,)](x, out, function))
        (constant,) = data["constant_vals"]
        assert constant["jit_function"].startswith(f"{__name__}:") and constant["jit_function"].endswith(name)
        apply.device_caches.clear()
        kernel = apply.preload(json.dumps(data))
        assert apply[(1,)](x, out, function) is kernel and out[0] == result


def test_local_functions_of_one_name_are_told_apart() -> None:
    """The function whose code was compiled is meant, not the latest of its name."""

    def adding(number: int) -> Any:
        n = tl.constexpr(number)

        @tilework.jit
        def added(x):
            return x + n

        return added

    x, functions = np.zeros(1, "f4"), [adding(n) for n in (1, 100, 10)]
    recorded = []
    for function in functions:
        recorded.append(data_of(lambda function=function: apply[(1,)](x, np.zeros(1, "f4"), function)))
        apply.device_caches.clear()
    preloaded = [apply.preload(json.dumps(data)) for data in recorded]
    for index, result in enumerate((1, 100, 10)):
        out = np.zeros(1, "f4")
        assert apply[(1,)](x, out, functions[index]) is preloaded[index] and out[0] == result
    apply.device_caches.clear()
    del functions[0], preloaded
    gc.collect()
    with pytest.raises(RuntimeError, match=r"Unable to resolve JITFunction .*added for preload: its code has changed"):
        apply.preload(json.dumps(recorded[0]))


def test_a_function_that_is_gone_cannot_be_preloaded() -> None:
    data = data_of(lambda: apply[(1,)](np.ones(1, "f4"), np.zeros(1, "f4"), doubled))
    apply.device_caches.clear()
    for name in (f"{__name__}:test.<locals>.gone", f"{__name__}:gone", "no_such_module:f"):
        data["constant_vals"] = [{"jit_function": name}]
        with pytest.raises(RuntimeError, match=rf"^Unable to resolve JITFunction {name} for preload$"):
            apply.preload(json.dumps(data))


def test_preload_refuses_another_target() -> None:
    data = data_of(lambda: fill[(1,)](np.zeros(4, "f4"), 1.0, 4))
    target = driver.active.get_current_target()
    assert data["target"] == {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}
    fill.device_caches.clear()
    data["target"] = {"backend": "cuda", "arch": 90, "warp_size": 32}
    said = f"Specialization data is for {data['target']} but trying to preload for {target!r}"
    with pytest.raises(RuntimeError, match=f"^{re.escape(said)}$"):
        fill.preload(json.dumps(data))
    del data["target"]  # of an older version
    assert fill.preload(json.dumps(data)).name == "fill"


HOOK_KEYS = ["key", "repr", "fn", "compile", "is_manual_warmup", "already_compiled"]
COMPILE_KEYS = [
    "key", "signature", "device", "constants", "num_warps", "num_ctas", "num_stages", "enable_fp_fusion",
    "launch_cooperative_grid", "extern_libs", "configs", "specialization_data", "is_warmup",
]  # fmt: skip


def test_what_a_compile_hook_is_passed() -> None:
    seen: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **info: seen.append(info)
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    assert list(seen[0]) == HOOK_KEYS and list(seen[0]["compile"]) == COMPILE_KEYS
    info = seen[0]["fn"]
    assert vars(info) == {"module": fill.module, "name": "fill", "jit_function": fill}
    assert repr(info) == f"JitFunctionInfo(module={fill.module!r}, name='fill', jit_function={fill!r})"
    parameters = "self hook key signature target device constants options configs is_warmup"
    assert list(inspect.signature(type(fill)._call_hook).parameters) == parameters.split()
    target, info = driver.active.get_current_target(), seen[0]["compile"]
    options = find_backend(target).parse_options({"num_warps": 8})
    parts = (info["key"], info["signature"], target, 0, info["constants"], options, info["configs"], True)
    assert fill._call_hook(lambda **info: seen.append(info) or 1, *parts) is True
    assert list(seen[1]) == HOOK_KEYS and seen[1]["compile"]["num_warps"] == 8 and seen[1]["is_manual_warmup"]
    assert fill._call_hook(None, *parts) is False
    fill.device_caches.clear()
    knobs.runtime.jit_cache_hook = None
    assert fill.preload(seen[1]["compile"]["specialization_data"]).metadata.num_warps == 8
