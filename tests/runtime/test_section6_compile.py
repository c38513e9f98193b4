"""Options, compiled kernels and drivers: what `test_rows_compile.py` and the files it names leave open."""

import gc
import json
import weakref
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import fake_gpu
from tilework import knobs
from tilework.compiler import ASTSource, compile, lower
from tilework.errors import OutOfResources
from tilework.runtime.launch.specialization import decode, encode
from tilework.targets.base import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor

AMPERE, HOPPER = GPUTarget("cuda", 80, 32), GPUTarget("cuda", 90, 32)


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.jit
def copy_of(x):
    return x


@tilework.jit
def axpy(x, y, a):
    i = tl.arange(0, 16)
    tl.store(y + i, tl.load(x + i) * a + tl.load(y + i))


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in (fill, axpy):
        kernel.device_caches.clear()
        kernel.pre_run_hooks.clear()


# -- 6.7 -----------------------------------------------------------------------------------------------------------


def test_6_7_fusion_rounds_once_or_twice() -> None:
    x = np.full(16, 1 + 2**-12, "f4")
    once = np.float32(np.float64(x[0]) * x[0] - 1)
    twice = np.float32(np.float32(x[0] * x[0]) - np.float32(1))
    assert once != twice
    for fuses, wanted in ((True, (once, twice)), (False, (twice,))):
        y = np.full(16, -1, "f4")
        axpy[(1,)](x, y, float(x[0]), enable_fp_fusion=fuses)
        assert y[0] in wanted, fuses


def test_6_7_overflow_checks_can_be_left_out() -> None:
    @tilework.jit(debug=True)
    def add(p, n):
        tl.store(p, tl.load(p) + n)

    out = np.zeros(1, "i4")
    checked = add.warmup(out, 5, grid=(1,)).asm["ttir"]
    plain = add.warmup(out, 5, grid=(1,), sanitize_overflow=False).asm["ttir"]
    assert "tt.assert" in checked and "tt.assert" not in plain


def test_6_7_libraries_are_pairs_in_hooks() -> None:
    seen: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **info: seen.append(info["compile"]["extern_libs"])
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4, extern_libs={"mine": "/nowhere.bc", "other": "/else.bc"})
    assert seen == [(("mine", "/nowhere.bc"), ("other", "/else.bc"))]


@pytest.mark.parametrize("stage", ["ttir", "ttcir", "llir"])
def test_6_7_a_file_replaces_its_stage(stage: str, tmp_path: Path) -> None:
    @tilework.jit
    def constant(p):
        tl.store(p, 11)

    out = np.zeros(1, "i4")
    text = constant[(1,)](out).asm[stage]
    assert out[0] == 11 and ("i32 11" in text or "11 : i32" in text)
    file = tmp_path / f"other.{stage}"
    file.write_text(text.replace("i32 11", "i32 13").replace("11 : i32", "13 : i32"))
    kernel = constant[(1,)](out, ir_override=str(file))
    assert out[0] == 13 and kernel.metadata.ir_override == str(file)


def test_6_7_options_without_a_value_are_those_by_default() -> None:
    out = np.zeros(4, "f4")
    nothing = {"num_warps": None, "num_stages": None, "maxnreg": None, "enable_fp_fusion": None}
    assert fill[(1,)](out, 1.0, 4, **nothing).hash == fill[(1,)](out, 1.0, 4).hash


# -- 6.8 -----------------------------------------------------------------------------------------------------------

LOCATED = """module {
  tt.func public @copy(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>) {
    %0 = tt.load %a : !tt.ptr<f32> loc("model.py":31:4)
    tt.store %b, %0 : !tt.ptr<f32> loc("model.py":32:4)
    tt.return
  }
}
"""


@pytest.mark.parametrize("setting", [None, "ttir", "ttgir"])
def test_6_8_lines_of_a_file_of_ir(setting: str | None, tmp_path: Path) -> None:
    """Locations in the file stay, ops without one are where they stand; with USE_IR_LOC all are."""
    file = tmp_path / "copy.ttir"
    file.write_text(LOCATED)
    knobs.compilation.use_ir_loc = setting
    kernel = compile(str(file), HOPPER)
    ttir, ttgir = kernel.asm["ttir"], kernel.asm["ttgir"]
    assert f'loc("{file}":5:5)' in ttir
    assert ('loc("model.py":31:4)' in ttir) is (setting is None) is not (f'loc("{file}":3:5)' in ttir)
    place = kernel.metadata_group["copy.ttgir"] if setting == "ttgir" else str(file)
    assert f'loc("{place}":' in ttgir and ("model.py" in ttgir) is (setting is None)


def test_6_8_a_file_starts_at_its_stage(tmp_path: Path) -> None:
    texts = lower(
        ASTSource(fill, {"p": "*fp32", "value": "fp32", "n": "i32"}, {"BLOCK": 16}), HOPPER, ["ttir", "ttgir"]
    )
    seen: list[list[str]] = []
    knobs.runtime.add_stages_inspection_hook = lambda backend, stages, *more: seen.append(list(stages))
    for stage in ("ttir", "ttgir"):
        file = tmp_path / f"{stage}.{stage}"
        file.write_text(texts[stage])
        assert compile(str(file), HOPPER).asm["ttgir"].count("tt.store") == 1
    assert seen[0][:2] == ["ttir", "ttgir"] and seen[1] == seen[0][1:]
    other = tmp_path / "kernel.txt"
    other.write_text(texts["ttir"])
    with pytest.raises(ValueError, match=r"kernel\.txt: a source is a \.ttir"):
        compile(str(other), HOPPER)


def test_6_8_launch_metadata_of_a_compiled_kernel() -> None:
    kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
    assert kernel.launch_metadata((1, 1, 1), 5, None) is None, "nobody listens"
    knobs.runtime.launch_enter_hook.add(lambda metadata: None)
    found = kernel.launch_metadata((1, 1, 1), 5, None).get()
    assert found == {"name": "fill", "function": kernel.function, "stream": 5}


def test_6_8_a_compiled_kernel_launches_on_the_stream_it_is_given() -> None:
    streams: list[int] = []
    knobs.runtime.launch_enter_hook.add(lambda metadata: streams.append(metadata.get()["stream"]))
    kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
    out = np.zeros(4, "f4")
    kernel[(1, 1, 1)](out, 2.0, 4, 16)
    kernel[(1, 1, 1)](out, 2.0, 4, 16, stream=3)
    assert streams == [0, 3] and (out == 2).all()


def test_6_8_the_error_of_a_later_launch_keeps_nothing_alive() -> None:
    class Big:
        """Something that a frame of the caller holds."""

    def launch() -> weakref.ref[Big]:
        big = Big()
        with pytest.raises(OutOfResources):
            fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
        return weakref.ref(big)

    fill.device_caches.clear()
    with fake_gpu(shared=1 << 20) as gpu:
        alive = [launch() for _ in range(3)]
        gc.collect()
        assert [reference() for reference in alive] == [None] * 3 and gpu.loads == 0
    fill.device_caches.clear()


# -- 6.10 ----------------------------------------------------------------------------------------------------------


@tilework.jit
def copy_block(source, target):
    target.store([0, 0], source.load([0, 0]))


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=["without TMA", "with TMA"])
def test_6_10_descriptors_compile_with_and_without_tma(target: GPUTarget) -> None:
    types = dict.fromkeys(("source", "target"), "tensordesc<fp16[16, 64]>")
    text = lower(ASTSource(copy_block, types), target, ["ttgir"])["ttgir"]
    assert ("ttng.async_tma_copy" in text) is (target is HOPPER)
    assert ("tt.load" in text) is (target is AMPERE)


def test_6_10_descriptors_run_here() -> None:
    base, out = np.arange(1024, dtype="f2").reshape(16, 64), np.zeros((16, 64), "f2")
    copy_block[(1,)](TensorDescriptor.from_tensor(base, [16, 64]), TensorDescriptor.from_tensor(out, [16, 64]))
    assert (out == base).all()


# -- 6.11 ----------------------------------------------------------------------------------------------------------


def test_6_11_hooks_hear_of_preloading_and_may_skip_it() -> None:
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
    assert fill.preload(data[0]).name == "fill" and seen[2:] == [True]


def test_6_11_values_of_the_compile_hook() -> None:
    seen: list[dict[str, Any]] = []
    knobs.runtime.jit_cache_hook = lambda **info: seen.append(info["compile"])
    fill[(1,)](np.zeros(4, "f4"), 1.5, 5, num_warps=8, num_stages=2, enable_fp_fusion=False)
    (info,) = seen
    assert info["signature"] == {"p": "*fp32", "value": "fp32", "n": "i32", "BLOCK": "constexpr"}
    assert info["constants"] == {(3,): 16} and info["device"] == 0
    assert (info["num_warps"], info["num_ctas"], info["num_stages"]) == (8, 1, 2)
    assert (info["enable_fp_fusion"], info["launch_cooperative_grid"], info["is_warmup"]) == (False, False, False)


def test_6_11_specialisation_data_is_json_by_name() -> None:
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
def test_6_11_constants_survive_the_journey(constant: Any) -> None:
    """Texts that name a dtype are no dtypes, lists are no tuples."""
    travelled = decode(json.loads(json.dumps(encode(constant))))
    assert travelled == constant and type(travelled) is type(constant)
    assert (
        [type(item) for item in travelled] == [type(item) for item in constant]
        if type(constant) in (tuple, list)
        else True
    )


def test_6_11_preload_refuses_another_kernel() -> None:
    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    with pytest.raises(RuntimeError, match=rf"^Specialization data is for {__name__}.fill but .* {__name__}.axpy"):
        axpy.preload(data[0])


def test_6_11_hooks_can_be_removed() -> None:
    events: list[str] = []
    hooks = [lambda *args, name=name: events.append(name) for name in ("one", "two")]
    chains = ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook")
    for chain in chains:
        for hook in hooks:
            getattr(knobs.runtime, chain).add(hook)
        getattr(knobs.runtime, chain).remove(hooks[0])
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    assert events == ["two"] * 4


def test_6_11_pre_run_hooks_get_the_call() -> None:
    seen: list[Any] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, n=4, num_warps=2)
    assert (
        len(seen) == 1 and seen[0][0][0] is out and seen[0][0][1:] == (1.0,) and seen[0][1] == {"n": 4, "num_warps": 2}
    )


def test_6_11_stages_can_be_changed() -> None:
    """The hook gets the stages themselves: one that it replaces is the one that runs."""
    ran: list[str] = []

    def inspect(backend: Any, stages: dict[str, Any], options: Any, language: Any, capability: Any) -> None:
        original = stages["ttir"]
        stages["ttir"] = lambda module: ran.append("mine") or original(module)

    knobs.runtime.add_stages_inspection_hook = inspect
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    assert ran == ["mine"]


def test_6_11_async_launches_wait_for_their_kernel() -> None:
    out = np.zeros(4, "f4")
    with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool) as mode:
        future = fill.warmup(out, 1.0, 4, grid=(1,))
        assert isinstance(future, tilework.FutureKernel) and mode is not None
        assert fill[(1,)](out, 4.0, 4) is future.result() and (out == 4).all()
        with pytest.raises(RuntimeError, match=r"(?i)async|nest"), tilework.AsyncCompileMode(pool):
            raise AssertionError("not reached")
    fill.device_caches.clear()
    assert not isinstance(fill.warmup(out, 1.0, 4, grid=(1,)), tilework.FutureKernel), "the mode has ended"
