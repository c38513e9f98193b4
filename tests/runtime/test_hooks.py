"""Hooks of compiling, loading and launching."""

import json
from typing import Any

import numpy as np
import pytest

import tilework
from tests.runtime.launch_kernels import HOPPER, HOST, fill, fill_source
from tilework import knobs
from tilework.compiler import GPUTarget, compile

pytestmark = pytest.mark.usefixtures("fresh_cache")


def test_a_hook_can_skip_compilation() -> None:
    knobs.runtime.jit_cache_hook = lambda **info: True
    assert fill[(1,)](np.zeros(4, "f4"), 1.0, 4) is None


COMPILE_KEYS = (
    "key signature device constants num_warps num_ctas num_stages enable_fp_fusion launch_cooperative_grid extern_libs"
    " configs specialization_data is_warmup"
)


@pytest.mark.parametrize("owner", ["knob", "class attribute"])
def test_compile_hooks_get_everything(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def hook(**info: Any) -> bool:
        seen.append({**info, "in cache": info["key"] in fill.device_caches[0][0]})
        return False

    if owner == "knob":
        knobs.runtime.jit_cache_hook = knobs.runtime.jit_post_compile_hook = hook
    else:
        monkeypatch.setattr(tilework.JITFunction, "cache_hook", staticmethod(hook))
        monkeypatch.setattr(tilework.JITFunction, "compiled_hook", staticmethod(hook))
    fill.warmup(np.zeros(16, "f4"), 1.5, 16, grid=(1,))
    fill[(1,)](np.zeros(16, "f4"), 1.5, 17)
    assert len(seen) == 4
    before, after = seen[:2]
    assert set(before) == {"key", "repr", "fn", "compile", "is_manual_warmup", "already_compiled", "in cache"}
    assert (before["already_compiled"], before["in cache"]) == (False, False)
    assert (after["already_compiled"], after["in cache"]) == (False, True)
    assert [info["is_manual_warmup"] for info in seen] == [True, True, False, False]
    assert set(before["compile"]) == set(COMPILE_KEYS.split()) and before["compile"]["is_warmup"] is True
    assert before["compile"]["configs"] == [{(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}]
    assert before["compile"]["extern_libs"] == () and before["compile"]["key"] == before["key"]
    assert (before["fn"].module, before["fn"].name, before["fn"].jit_function) == (fill.module, "fill", fill)
    assert before["repr"].startswith("fill[num_warps=4") and before["repr"].endswith("BLOCK: constexpr)")
    data = json.loads(before["compile"]["specialization_data"])
    assert {"name", "signature", "constant_keys", "constant_vals", "attrs_keys", "attrs_vals", "options", "key"} <= set(
        data
    )


def test_launch_hooks_run_in_order_and_out_in_reverse() -> None:
    events: list[str] = []
    for name in ("one", "two"):
        knobs.runtime.launch_enter_hook.add(lambda metadata, name=name: events.append(f"enter {name}"))
        knobs.runtime.launch_exit_hook.add(lambda metadata, name=name: events.append(f"exit {name}"))
    seen: list[dict[str, Any]] = []
    knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()))
    kernel = fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    assert events == ["enter one", "enter two", "exit two", "exit one"]
    assert (seen[0]["name"], seen[0]["function"], seen[0]["stream"]) == ("fill", kernel.function, 0)


def test_load_hooks_get_five_arguments_each() -> None:
    seen: list[tuple[Any, ...]] = []
    for chain in (knobs.runtime.kernel_load_start_hook, knobs.runtime.kernel_load_end_hook):
        for _ in range(2):
            chain.add(lambda *args: seen.append(args))
    kernel = fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    assert len(seen) == 4
    assert seen[0] == (None, None, "fill", kernel.metadata_group, kernel.hash)
    assert seen[3] == (kernel.module, kernel.function, "fill", kernel.metadata_group, kernel.hash)


def test_the_listener_gets_everything() -> None:
    events: list[dict[str, Any]] = []
    knobs.compilation.listener = lambda **event: events.append(event)
    kernel = compile(fill_source())
    (event,) = events
    assert set(event) == {"src", "metadata", "metadata_group", "times", "cache_hit"}
    assert event["metadata"]["hash"] == kernel.hash and event["metadata"]["target"] == HOST
    assert event["metadata_group"] == kernel.metadata_group
    times = event["times"]
    assert times.lowering_stages[0][0] == "ttir" and times.total_lowering > 0 and times.store_results > 0
    assert times.total_lowering == sum(spent for _, spent in times.lowering_stages)
    assert times.total == times.ir_initialization + times.total_lowering + times.store_results
    compile(fill_source())
    assert (event["cache_hit"], events[1]["cache_hit"], events[1]["times"].ir_initialization > 0) == (False, True, True)
    assert (events[1]["times"].total_lowering, events[1]["times"].store_results) == (0, 0)


KEY = ("what the hook does", "0123")  # which such hooks return when they are called without arguments


def test_stages_can_be_looked_at() -> None:
    seen: list[tuple[Any, ...]] = []
    knobs.runtime.add_stages_inspection_hook = lambda *args: seen.append(args) if args else KEY
    compile(fill_source(), HOPPER)
    ((backend, stages, options, language, capability),) = seen
    assert backend.target == HOPPER and "ttir" in stages and options.num_warps == 4
    assert (language, capability) == (0, 90)


def test_values_of_the_compile_hook() -> None:
    seen: list[dict[str, Any]] = []
    knobs.runtime.jit_cache_hook = lambda **info: seen.append(info["compile"])
    fill[(1,)](np.zeros(4, "f4"), 1.5, 5, num_warps=8, num_stages=2, enable_fp_fusion=False)
    (info,) = seen
    assert info["signature"] == {"p": "*fp32", "value": "fp32", "n": "i32", "BLOCK": "constexpr"}
    assert info["constants"] == {(3,): 16} and info["device"] == 0
    assert (info["num_warps"], info["num_ctas"], info["num_stages"]) == (8, 1, 2)
    assert (info["enable_fp_fusion"], info["launch_cooperative_grid"], info["is_warmup"]) == (False, False, False)


def test_hooks_can_be_removed() -> None:
    events: list[str] = []
    hooks = [lambda *args, name=name: events.append(name) for name in ("one", "two")]
    chains = ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook")
    for chain in chains:
        for hook in hooks:
            getattr(knobs.runtime, chain).add(hook)
        getattr(knobs.runtime, chain).remove(hooks[0])
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    assert events == ["two"] * 4


def test_pre_run_hooks_get_every_call() -> None:
    seen: list[Any] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, n=4, num_warps=2)
    fill.warmup(out, 1.0, 4, grid=(1,))
    assert [args[0] is out for args, _ in seen] == [True, True]
    assert [(args[1:], kwargs) for args, kwargs in seen] == [((1.0,), {"n": 4, "num_warps": 2}), ((1.0, 4), {})]


def test_stages_can_be_changed() -> None:
    """The hook gets the stages themselves: one that it replaces is the one that runs."""
    ran: list[str] = []

    def inspect(backend: Any = None, stages: Any = None, *more: Any) -> Any:
        if stages is None:
            return KEY
        original = stages["ttir"]
        stages["ttir"] = lambda module: ran.append("mine") or original(module)

    knobs.runtime.add_stages_inspection_hook = inspect
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    assert ran == ["mine"]


def test_a_kernel_with_changed_stages_is_not_taken_for_another() -> None:
    """A process with the hook does not load a kernel compiled without it, nor the other way round."""
    ran: list[str] = []
    plain = compile(fill_source())
    keys = [("first", "1"), ("second", "2"), ("first", "1")]

    def inspect(*args: Any) -> Any:
        if not args:
            return keys[0]
        ran.append(keys[0][0])
        return None

    knobs.runtime.add_stages_inspection_hook = inspect
    hashes = []
    while keys:
        hashes += [compile(fill_source()).hash, compile(fill_source()).hash]
        del keys[0]
    knobs.runtime.add_stages_inspection_hook = None
    first, second = hashes[0], hashes[2]
    assert ran == ["first", "second"] and hashes == [first, first, second, second, first, first]
    assert len({plain.hash, first, second}) == 3 and compile(fill_source()).hash == plain.hash


def older(backend: Any, stages: Any, options: Any, language: Any, capability: Any) -> None:
    """A hook of Triton 3.6."""
    OLDER.append((list(stages), language, capability))


OLDER: list[Any] = []


def test_the_hook_is_called_for_its_key_at_each_launch_and_for_the_stages_once() -> None:
    calls: list[str] = []

    def inspect(
        self: Any = None, stages: Any = None, options: Any = None, language: Any = None, capability: Any = None
    ):
        calls.append("key" if stages is None else "stages")
        assert (self is None) == (options is None) == (stages is None)
        return ("key", hashes[-1]) if stages is None else None

    hashes, out = ["1"], np.zeros(4, "f4")
    plain = fill[(1,)](out, 1.0, 4)
    fill[(1,)](out, 1.0, 4)  # natively, if it can be
    knobs.runtime.add_stages_inspection_hook = inspect
    first = fill[(1,)](out, 1.0, 4)
    assert calls == ["key", "key", "stages"] and first is not plain
    assert fill[(1,)](out, 1.0, 4) is first and calls[3:] == ["key"]
    hashes.append("2")
    assert fill[(1,)](out, 1.0, 4) is not first and calls[4:] == ["key", "key"], "the disk cache goes by the key"
    (kernels,) = (entry[0] for entry in fill.device_caches.values())
    assert [key.count("custom_pipeline") for key in kernels] == [0, 1, 1]
    knobs.runtime.add_stages_inspection_hook = None
    assert fill[(1,)](out, 1.0, 4) is plain


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (
            older,
            r"^older\(\) missing 5 required positional arguments: 'backend', .*called without arguments.*3\.6\.0",
        ),
        (lambda *args: None, r"returned None: .* returns the key and the hash"),
        (lambda *args: ("key", 3), r"returned \('key', 3\)"),
        (lambda *args: "kh", r"returned 'kh'"),
    ],
)
def test_a_hook_without_a_key_says_what_to_write(hook: Any, said: str) -> None:
    knobs.runtime.add_stages_inspection_hook = hook
    with pytest.raises(TypeError, match=said):
        fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    with pytest.raises(TypeError, match=said):
        compile(fill_source())


def test_a_hook_may_return_a_list() -> None:
    knobs.runtime.add_stages_inspection_hook = lambda *args: ["key", "hash"]
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    (key,) = (key for entry in fill.device_caches.values() for key in entry[0])
    assert "('custom_pipeline', 'hash')" in key


def test_hooks_of_triton_36_work_with_its_version() -> None:
    OLDER.clear()
    knobs.language.triton_version = "3.6.0"
    knobs.runtime.add_stages_inspection_hook = older
    compile(fill_source(), HOPPER)
    compile(fill_source(), HOPPER)
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    (stages, *more), again, host = OLDER
    assert stages[:2] == ["ttir", "ttgir"] and more == [0, 90] and again == (stages, *more) and host[2] is None


def test_targets_whose_architecture_is_a_name_have_no_capability() -> None:
    seen: list[Any] = []
    knobs.runtime.add_stages_inspection_hook = lambda *args: seen.append(args[4]) if args else KEY
    compile(fill_source(), GPUTarget("hip", "gfx942", 64))
    assert seen == [None]
