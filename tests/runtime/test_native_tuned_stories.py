"""Odd launches of autotuned kernels, each done with the native launcher and without: the same results, errors,
configurations.

A story gets a tuner and launches it, changing something in between; it runs twice, and what it saw must be equal.
"""

import copy
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import Config, knobs
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.tuning.autotuner import Autotuner


class InPython(Autotuner):
    """A subclass of the autotuner, which is launched through Python."""


def fixed(call: Any, quantiles: Any) -> list[float]:
    """Return equal times for all configurations, so that the first is chosen."""
    call()
    return [1.0] * len(quantiles)


def scale(
    x, out, n, factor=2.0, mode=None,
    BLOCK: tl.constexpr = 64, EXTRA: tl.constexpr = 0,  # pyright: ignore[reportArgumentType]
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor + EXTRA, mask=i < n)


def configs() -> list[Config]:
    return [Config({"BLOCK": 64}), Config({"BLOCK": 128})]


def tuner(
    kind: type[Autotuner], choices: list[Config] | None = None, key: tuple[str, ...] = ("n",), **more: Any
) -> Any:
    kernel = tilework.jit(scale)
    return kind(kernel, kernel.arg_names, configs() if choices is None else choices, key, do_bench=fixed, **more)


def launch(kernel: Any, *args: Any, n: int = 200, grid: Any = None, **kwargs: Any) -> Any:
    """Return the output of a launch, or its error, and the configuration."""
    x, out = np.arange(n, dtype="f4"), np.zeros(n, "f4")
    grid = grid or (lambda meta: (tilework.cdiv(n, meta["BLOCK"]),))
    try:
        made = kernel[grid](x, out, n, *args, **kwargs)
        seen: Any = (made.metadata.num_warps, round(float(out.sum()), 3))
    except Exception as error:  # noqa: BLE001 - what is raised is compared
        seen = (type(error).__name__, str(error))
    best = getattr(kernel, "best_config", None)
    return (*seen, str(best), len(getattr(kernel, "cache", ())))


def thrice(kernel: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return [launch(kernel, *args, **kwargs) for _ in range(3)]


STORIES: dict[str, Callable[[type[Autotuner]], Any]] = {}


def story(run: Callable[[type[Autotuner]], Any]) -> Callable[[type[Autotuner]], Any]:
    STORIES[run.__name__] = run
    return run


@story
def keys_of_all_kinds(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, key=("n", "factor", "mode"))
    values = [2.0, 2, True, 1, 1.0, 0.0, -0.0, float("inf"), 3, 2**40, 2.0]
    modes = [None, 0, 1, True, False, 1.5, None]
    seen = [launch(kernel, value) for value in values for _ in range(2)]
    seen += [launch(kernel, 2.0, mode) for mode in modes for _ in range(2)]
    return seen + [sorted(map(str, kernel.cache))]


@story
def a_key_that_is_not_a_number(kind: type[Autotuner]) -> Any:
    kernel, nothing = tuner(kind, key=("factor",)), float("nan")
    return [launch(kernel, nothing) for _ in range(3)]


@story
def texts_for_constants(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, key=("mode",))
    return [launch(kernel, 2.0, text) for text in ("a", "a", "b", "a" + str(len("")), "a")]


@story
def keys_by_keyword_and_default(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, key=("factor", "mode"))
    seen = thrice(kernel) + thrice(kernel, 2.0) + thrice(kernel, factor=2.0) + thrice(kernel, factor=3.0)
    return seen + thrice(kernel, mode=None, factor=2.0) + thrice(kernel, 2.0, mode=None)


@story
def a_configuration_is_exchanged(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, [Config({"BLOCK": 64})])
    seen = thrice(kernel)
    kernel.configs[0] = Config({"BLOCK": 32}, num_warps=2)
    return seen + thrice(kernel)


@story
def a_configuration_is_added(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, [Config({"BLOCK": 64})])
    seen = thrice(kernel)
    kernel.configs.insert(0, Config({"BLOCK": 32}, num_warps=2))
    return seen + thrice(kernel)


@story
def configurations_are_taken_away(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    del kernel.configs[0]
    seen += thrice(kernel)
    kernel.configs = [Config({"BLOCK": 16})]
    seen += thrice(kernel)
    kernel.configs.clear()
    return seen + thrice(kernel)


@story
def a_key_is_added(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel, 2.0)
    kernel.keys.append("factor")
    seen += thrice(kernel, 2.0) + thrice(kernel, 3.0)
    kernel.keys[:] = []
    seen += thrice(kernel, 2.0)
    kernel.keys = ["mode"]
    return seen + thrice(kernel, 2.0)


@story
def a_configuration_gets_more_settings(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    kernel.configs[0].kwargs["EXTRA"] = 5
    seen += thrice(kernel)
    kernel.configs[0].kwargs["num_warps"] = 2
    seen += thrice(kernel)
    kernel.configs[0].kwargs.pop("num_warps")
    kernel.configs[0].kwargs.pop("BLOCK")
    seen += thrice(kernel, grid=(4,))
    kernel.configs[0].kwargs = {"BLOCK": 256}
    return seen + thrice(kernel)


class Moody(Config):
    """A configuration that decides anew each time."""

    moods = 0

    def all_kwargs(self) -> dict[str, Any]:
        Moody.moods += 1
        return {**super().all_kwargs(), "EXTRA": Moody.moods}


@story
def a_configuration_that_computes_its_settings(kind: type[Autotuner]) -> Any:
    Moody.moods = 0
    return thrice(tuner(kind, [Moody({"BLOCK": 64})]))


@story
def keys_and_configurations_in_tuples(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    kernel.keys, kernel.configs = tuple(kernel.keys), tuple(kernel.configs)
    return thrice(kernel) + thrice(kernel, n=201)


@story
def a_configuration_gets_a_hook(kind: type[Autotuner]) -> Any:
    kernel, seen = tuner(kind), []
    reported = thrice(kernel)
    kernel.configs[0].pre_hook = lambda args: seen.append((args["BLOCK"], args["n"]))
    return reported + thrice(kernel) + seen


@story
def the_cache_is_exchanged(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    key = next(iter(kernel.cache))
    kernel.cache = {key: kernel.configs[1]}
    seen += thrice(kernel)
    kernel.cache[key] = Config({"BLOCK": 16})
    seen += thrice(kernel)
    del kernel.cache[key]
    return seen + thrice(kernel)


@story
def arguments_that_are_reset(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind, reset_to_zero=["out"], restore_value=["x"])
    seen = []
    for n in (200, 200, 200, 201, 200):
        x, out = np.arange(n, dtype="f4"), np.full(n, 7, "f4")
        kernel[(1,)](x, out, 100, 2.0)
        seen.append((out.tolist(), x.tolist()))
    return seen


@story
def one_kernel_and_two_tuners(kind: type[Autotuner]) -> Any:
    kernel = tilework.jit(scale)
    one, two = (
        kind(kernel, kernel.arg_names, choices, ("n",), do_bench=fixed)
        for choices in (configs(), [Config({"BLOCK": 32}, num_warps=2), Config({"BLOCK": 16})])
    )
    plain = [launch(kernel, BLOCK=16, grid=(13,)) for _ in range(3)]
    return [launch(each) for _ in range(4) for each in (one, two)] + plain


@story
def tuners_of_tuners_and_heuristics(kind: type[Autotuner]) -> Any:
    inner = tuner(kind)
    outer = kind(inner, inner.arg_names, [Config({"EXTRA": 1}), Config({"EXTRA": 2})], ("factor",), do_bench=fixed)
    computed = tilework.heuristics({"EXTRA": lambda args: args["n"] % 7})(tuner(kind))
    around = tilework.heuristics({"EXTRA": lambda args: args["n"] % 7})(tilework.jit(scale))
    tuned = kind(around, around.arg_names, configs(), ("n",), do_bench=fixed)
    return [launch(kernel, n=n) for kernel in (outer, computed, tuned) for n in (200, 200, 201, 200, 200)]


@story
def run_is_replaced(kind: type[Autotuner]) -> Any:
    kernel, calls = tuner(kind), []
    seen = thrice(kernel)
    run = kernel.fn.run
    kernel.fn.run = lambda *args, **kwargs: (calls.append("kernel"), run(*args, **kwargs))[1]
    seen += thrice(kernel)
    del kernel.fn.run
    seen += thrice(kernel)
    own = kernel.run
    kernel.run = lambda *args, **kwargs: (calls.append("tuner"), own(*args, **kwargs))[1]
    seen += thrice(kernel)
    del kernel.run
    return seen + thrice(kernel) + calls


@story
def the_kernel_is_exchanged(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    kernel.fn = tilework.heuristics({"EXTRA": lambda args: 3})(kernel.fn)
    return seen + thrice(kernel)


@story
def copies(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    for made in (copy.copy(kernel), copy.deepcopy(kernel)):
        made.configs = [Config({"BLOCK": 16}, num_warps=2)]
        seen += thrice(made)
    return seen + thrice(kernel)


@story
def wrong_counts_and_names(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    seen = thrice(kernel)
    x, out = np.arange(200, dtype="f4"), np.zeros(200, "f4")
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}), ((x,), {}), ((x, out), {}), ((x, out, 200, 2.0, None, 64), {}),
        ((x, out, 200, 2.0, None, 64, 0, 1), {}),
        ((x, out, 200), {"BLOCK": 64}), ((x, out, 200), {"num_warps": 4}), ((x, out, 200), {"nonsense": 4}),
        ((x, out, 200), {"n": 200}), ((x, out, "200"), {}), ((x, out, None), {}), ((None, out, 200), {}),
        ((x, 3.5, 200), {}), ((x, out, 2**70), {}), ((x, out, 200), {"grid": (1,)}),
    ]  # fmt: skip
    for args, kwargs in wrong:
        for _ in range(2):
            try:
                kernel[(4,)](*args, **kwargs)
                seen.append("fine")
            except Exception as error:  # noqa: BLE001 - what is raised is compared
                seen.append((type(error).__name__, str(error)))
    return seen + thrice(kernel)


@story
def odd_grids(kind: type[Autotuner]) -> Any:
    kernel, seen = tuner(kind), []

    def nested(meta: Any) -> tuple[int, ...]:
        seen.append(launch(kernel, 5.0, grid=(4,)))
        return (4,)

    def changing(meta: Any) -> tuple[int, ...]:
        meta["BLOCK"] = meta["n"] = 1
        return (4,)

    def breaking(meta: Any) -> Any:
        raise LookupError("grid")

    def emptied(meta: Any) -> Any:
        kernel.fn.device_caches.clear()
        return (4,)

    grids = [
        (4,),
        nested,
        changing,
        breaking,
        emptied,
        lambda meta: [4],
        lambda meta: 4,
        lambda meta: (4, 1),
        lambda meta: (),
    ]
    grids += [lambda meta: (0,), lambda meta: (4, -1), lambda meta: (2**31, 2), lambda meta: (True,), lambda meta: None]
    for grid in grids:
        seen += thrice(kernel, 3.0, grid=grid)
    return seen


@story
def hooks_come_and_go(kind: type[Autotuner]) -> Any:
    kernel, calls = tuner(kind), []
    seen = thrice(kernel)

    def hook(*args: Any, **kwargs: Any) -> None:
        calls.append(len(calls))

    for hooks in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        hooks.add(hook)
        seen += thrice(kernel)
        hooks.remove(hook)
        seen += thrice(kernel)
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook = hook  # pyright: ignore[reportAttributeAccessIssue]
        seen += thrice(kernel)
    kernel.fn.add_pre_run_hook(hook)
    seen += thrice(kernel)
    kernel.fn.pre_run_hooks.clear()
    return seen + thrice(kernel) + calls


@story
def threads_drivers_and_switches(kind: type[Autotuner]) -> Any:
    kernel, seen = tuner(kind), []
    old = driver.active
    with knobs.runtime.scope():
        for threads in (3, 1, "2", None, 2):
            knobs.runtime.num_threads = threads
            seen += thrice(kernel, n=70_000)
    before = os.environ.get("TILEWORK_NUM_THREADS")
    for text in ("3", "1", "2"):
        os.environ["TILEWORK_NUM_THREADS"] = text
        seen += thrice(kernel, n=70_000)
    os.environ.pop("TILEWORK_NUM_THREADS") if before is None else os.environ.update(TILEWORK_NUM_THREADS=before)
    driver.set_active(CpuDriver())
    seen += thrice(kernel)
    driver.set_active(old)
    for name, value in (("debug", True), ("sanitize", True), ("debug", False), ("sanitize", False)):
        with knobs.runtime.scope():
            setattr(knobs.runtime, name, value)
            seen += thrice(kernel)
        setattr(kernel.fn, name, value)
        seen += thrice(kernel)
    return seen


@story
def a_warm_start(kind: type[Autotuner]) -> Any:
    kernel = tuner(kind)
    x, out = np.arange(200, dtype="f4"), np.zeros(200, "f4")
    made = kernel.warmup(x, out, 200, 2.0, grid=(4,))
    return [len(made), out.sum().item(), *thrice(kernel)]


@pytest.mark.parametrize("name", STORIES)
def test_with_and_without_the_native_launcher(name: str) -> None:
    assert list(map(repr, STORIES[name](Autotuner))) == list(map(repr, STORIES[name](InPython)))


def test_a_tuner_that_was_launched_is_copied_and_pickled_as_before() -> None:
    kernel = tuner(Autotuner)
    launch(kernel)
    launch(kernel)
    assert "_bind_grid" not in kernel.__getstate__()
    errors = []
    for made in (tuner(Autotuner), kernel):
        try:
            pickle.dumps(made)
        except Exception as error:  # noqa: BLE001 - only the kind of failure is compared
            errors.append(type(error))
    assert len(errors) in (0, 2) and len(set(errors)) <= 1
