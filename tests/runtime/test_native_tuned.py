"""Launches of autotuned kernels without Python code: the same configurations, hooks and errors as with it."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import Config, knobs
from tilework.runtime.launch.native import machine as native_machine

CALLS: list[Any] = []


def fixed(call: Any, quantiles: Any) -> list[float]:
    """A benchmark that finds every configuration equally fast; the first is chosen."""
    call()
    return [1.0] * len(quantiles)


def make(configs: list[Config], key: list[str], **options: Any) -> Any:
    @tilework.autotune(configs=configs, key=key, do_bench=fixed, **options)
    @tilework.jit
    def scale(x, out, n, factor, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

    return scale


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the launches that took the autotuner's Python path."""
    from tilework.runtime.tuning.autotuner import Autotuner

    calls: list[int] = []
    run = Autotuner.run
    monkeypatch.setattr(Autotuner, "run", lambda self, *a, **k: (calls.append(1), run(self, *a, **k))[1])
    if native_machine.machine() is None:
        pytest.skip("there is no native launcher on this Python")
    yield calls


TWO = [Config({"BLOCK": 64}), Config({"BLOCK": 128})]


def check(kernel: Any, n: int, factor: float = 2.0, **kwargs: Any) -> Any:
    x, out = np.arange(n, dtype="f4"), np.zeros(n, "f4")
    made = kernel[lambda meta: (tilework.cdiv(n, meta["BLOCK"]),)](x, out, n, factor, **kwargs)
    np.testing.assert_array_equal(out, x * np.float32(factor))
    return made


def test_the_second_launch_runs_no_python(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    first = check(kernel, 640)
    assert check(kernel, 640, 3.0) is first and len(counted) == 1
    assert kernel.best_config is TWO[0]


def test_a_new_key_is_tuned(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    for n, calls in ((640, 1), (640, 1), (641, 2), (641, 2)):
        check(kernel, n)
        assert len(counted) == calls, n
    assert len(kernel.cache) == 2
    for n in (640, 641, 640, 641):
        check(kernel, n)
    assert len(counted) == 2  # compiling for 641 has left the description for 640 as it was


def test_a_parameter_outside_the_key_may_change(counted: list[int]) -> None:
    kernel = make(TWO, [])
    for n in (640, 656, 672):
        check(kernel, n)
    assert len(counted) == 1


def test_the_best_configuration_is_that_of_the_last_launch(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    check(kernel, 640)
    check(kernel, 641)
    kernel.cache[(641, "float32", "float32")] = TWO[1]
    for n, config in ((641, TWO[1]), (640, TWO[0]), (641, TWO[1]), (641, TWO[1])):
        check(kernel, n)
        assert kernel.best_config is config, n


def test_clearing_the_cache_tunes_again(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    check(kernel, 640)
    kernel.cache.clear()
    check(kernel, 640)
    assert len(counted) == 2


def test_one_configuration(counted: list[int]) -> None:
    kernel = make(TWO[:1], ["n"])
    for n in (640, 641, 657):  # 640 is a multiple of 16, and its own specialisation
        check(kernel, n)
    assert len(counted) == 2


def test_hooks_of_configurations_see_every_launch(counted: list[int]) -> None:
    seen: list[int] = []
    kernel = make([Config({"BLOCK": 64}, pre_hook=lambda args: seen.append(args["BLOCK"]))], [])
    check(kernel, 640)
    check(kernel, 640)
    assert seen == [64, 64] and len(counted) == 2


def test_changing_a_configuration_changes_the_next_launch(counted: list[int]) -> None:
    config = Config({"BLOCK": 64})
    kernel = make([config], [])
    first = check(kernel, 640)
    config.kwargs["BLOCK"] = 32
    assert check(kernel, 640) is not first
    config.num_warps = 2
    assert check(kernel, 640).metadata.num_warps == 2


def test_a_parameter_that_the_configuration_sets_is_refused() -> None:
    kernel = make(TWO, ["n"])
    check(kernel, 640)
    with pytest.raises(ValueError, match="BLOCK"):
        check(kernel, 640, BLOCK=64)


def test_dtypes_are_part_of_the_key(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    check(kernel, 640)
    x, out = np.arange(640, dtype="f8"), np.zeros(640, "f8")
    kernel[(10,)](x, out, 640, 2.0)
    np.testing.assert_array_equal(out, x * 2)
    assert len(kernel.cache) == 2


def test_a_copy_is_tuned_by_itself(counted: list[int]) -> None:
    kernel = make(TWO, ["n"])
    check(kernel, 640)
    other = copy.copy(kernel)
    other.cache = {}
    check(other, 640)
    assert len(counted) == 2 and len(other.cache) == 1


def test_threads_follow_the_knob() -> None:
    kernel = make(TWO, ["n"])
    with knobs.runtime.scope():
        for threads in (1, 3, 2, 0):
            knobs.runtime.num_threads = threads
            if threads:
                check(kernel, 1 << 20)
                check(kernel, 1 << 20)
            else:
                with pytest.raises(ValueError, match="TILEWORK_NUM_THREADS"):
                    check(kernel, 1 << 20)


def test_what_wrappers_wrap_is_launched_without_python(monkeypatch: pytest.MonkeyPatch, counted: list[int]) -> None:
    """Rules and choices are Python; the kernel inside of them is not, after its first launch."""
    from tilework.runtime.launch.python.jit import JITFunction

    inner: list[int] = []
    run = JITFunction.run
    monkeypatch.setattr(JITFunction, "run", lambda self, *a, **k: (inner.append(1), run(self, *a, **k))[1])

    @tilework.heuristics({"EVEN": lambda args: args["n"] % 2 == 0 and args["grid"] == (1,)})
    @tilework.autotune(configs=[Config({"BLOCK": 64}, pre_hook=lambda args: args["out"].fill(0))], key=[])
    @tilework.heuristics({"MORE": lambda args: args["BLOCK"] + 1})
    @tilework.jit
    def fill(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, MORE: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, MORE if EVEN else -1, mask=i < n)

    out = np.zeros(64, np.int32)
    for n, value in ((6, 65), (7, -1), (8, 65), (9, -1), (10, 65)):
        fill[(1,)](out, n)
        assert out.tolist() == [value] * n + [0] * (64 - n)
    assert len(inner) == 2  # one for each constant
    assert fill.warmup(out, 6, grid=(1,))[0].name == "fill" and len(counted) == 5
