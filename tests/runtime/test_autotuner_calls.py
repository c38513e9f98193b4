"""Tuned launches: what is called, in which order, with which arguments."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.test_autotuner import TIMES, Clock, Recorder, blocks, floats, tuner
from tests.runtime.test_autotuner_results import Timer, grid
from tests.runtime.tuning_kernels import add_one
from tilework import knobs
from tilework.errors import OutOfResources
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.tuning import results as tuning_results
from tilework.runtime.tuning.autotuner import Autotuner, Config, autotune, heuristics


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TILEWORK_COMPILE_WORKERS", "0")
    with knobs.cache.scope(), knobs.autotuning.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


def launch(tuned: Any, n: int = 4) -> Any:
    return tuned[(1,)](floats(4), floats(4), n)


# -- the table -----------------------------------------------------------------------------------------------------


def test_no_configurations_means_one() -> None:
    kernel = Recorder()
    ruled = heuristics({"BLOCK": lambda args: 8})(kernel)
    for configs in ([], None):
        tuned = autotune(configs, key=["n"])(ruled)
        (config,) = tuned.configs
        assert (config.kwargs, config.num_warps, config.num_stages) == ({}, 4, 3)
        launch(tuned)
    assert kernel.launches[0][1] == {
        "grid": (1,), "warmup": False, "BLOCK": 8, "num_warps": 4, "num_ctas": 1, "num_stages": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("decorate", "name"), [(autotune([], key=["n"]), "autotune"), (heuristics({"n": lambda args: 8}), "heuristics")]
)
def test_the_decorators_belong_above_jit(decorate: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"`add_one` is no kernel yet: place @{name} above @jit, not below it"):
        jit(decorate(add_one.fn))


def test_one_configuration_runs_only_its_own_hook() -> None:
    kernel, seen = Recorder(), []
    never = lambda *args, **kwargs: seen.append("never")
    tuned = autotune(
        [Config({"BLOCK": 8}, pre_hook=lambda args: seen.append("own"))], ["n"], pre_hook=never, post_hook=never,
        reset_to_zero=["x"], do_bench=never,
    )(kernel)  # fmt: skip
    x = np.ones(2, "f4")
    tuned[(1,)](x, floats(1), 3)
    assert seen == ["own"] and x.tolist() == [9, 9] and tuned.cache == {}


def test_key_names_that_are_no_parameters_are_left_out() -> None:
    tuned = tuner(Recorder(), blocks(16, 32), key=["absent", "n", "FLAG", "grid", "warmup"])
    launch(tuned)
    tuned[(1,)](floats(4), floats(4), 4, FLAG="set")
    assert list(tuned.cache) == [(4, "float32", "float32"), (4, "set", "float32", "float32")]


def test_each_measured_call_is_hook_hook_kernel_hook() -> None:
    log: list[Any] = []

    class Logged(Recorder):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            log.append(("kernel", kwargs["BLOCK"]))
            return super().run(*args, **kwargs)

    kernel = Logged()
    configs = [
        Config({"BLOCK": size}, pre_hook=lambda args: log.append(("config", args["BLOCK"]))) for size in (16, 32)
    ]
    tuned = autotune(
        configs, ["n"], do_bench=Clock(kernel, TIMES),
        pre_hook=lambda args, reset_only=False: log.append(("pre", args["BLOCK"], args["n"], reset_only)),
        post_hook=lambda args, exception: log.append(("post", args["BLOCK"], exception)),
    )(kernel)  # fmt: skip
    launch(tuned)
    one = lambda size: [("config", size), ("pre", size, 4, False), ("kernel", size), ("post", size, None)]
    assert log == [*one(16), *one(32), ("pre", 32, 4, True), ("config", 32), ("kernel", 32)]


def test_compiling_ahead_calls_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_COMPILE_WORKERS", "2")
    seen: list[int] = []
    configs = [Config({"BLOCK": size}, pre_hook=lambda args: seen.append(args["BLOCK"])) for size in (16, 32)]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1])(jit(add_one.fn))
    x, y = floats(16), floats(16)
    tuned[(1,)](x, y, 16)
    assert seen == [16, 32, 16] and np.array_equal(y, x + 1)


class Tensor:
    """A tensor that counts the calls of its methods."""

    dtype = "float32"

    def __init__(self) -> None:
        self.log: list[str] = []

    def zero_(self) -> None:
        self.log.append("zero")

    def clone(self) -> str:
        self.log.append("clone")
        return "copy"

    def copy_(self, source: str) -> None:
        assert source == "copy"
        self.log.append("restore")


class Idle(Recorder):
    """A kernel that does not use its arguments."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.launches.append((args, kwargs))
        if (error := self.failures.get(kwargs["BLOCK"])) is not None:
            raise error


def test_tensors_are_zeroed_cloned_and_restored() -> None:
    x, y = Tensor(), Tensor()
    tuner(Idle(), blocks(16, 32), reset_to_zero=["x"], restore_value=["y"])[(1,)](x, y, 4)
    assert x.log == ["zero", "zero", "zero"], "before both measurements and the run"
    assert y.log == ["clone", "restore", "clone", "restore"], "the run may change it"


def test_a_failed_configuration_is_restored_too() -> None:
    y = Tensor()
    tuned = tuner(Idle({16: OutOfResources(2, 1, "threads")}), blocks(16, 32), restore_value=["y"])
    tuned[(1,)](Tensor(), y, 4)
    assert y.log == ["clone", "restore"] * 2 and tuned.configs_timings[tuned.configs[0]] == [math.inf] * 3


def test_a_users_hook_replaces_the_default() -> None:
    x, y = Tensor(), Tensor()
    nothing = lambda args, reset_only=False: None
    tuner(Idle(), blocks(16, 32), pre_hook=nothing, reset_to_zero=["x"], restore_value=["y"])[(1,)](x, y, 4)
    assert x.log == [] and y.log == []


def test_a_model_is_not_queried_about_few() -> None:
    requested: list[int] = []
    model = lambda BLOCK, **others: requested.append(BLOCK) or -BLOCK
    launch(tuner(Recorder(), blocks(16, 32), prune_configs_by={"perf_model": model, "top_k": 2}))
    assert requested == []
    kernel = Recorder()
    launch(tuner(kernel, blocks(16, 32, 64), prune_configs_by={"perf_model": model, "top_k": 2}))
    assert requested == [16, 32, 64] and kernel.blocks() == [64, 32, 64]


def test_a_fraction_is_one_of_all_configurations() -> None:
    """Half of four is two, also when one of the four was pruned before."""
    kernel = Recorder()
    pruning = {
        "early_config_prune": lambda configs, named, **kwargs: configs[1:],
        "perf_model": lambda BLOCK, **others: BLOCK,
        "top_k": 0.5,
    }
    launch(tuner(kernel, blocks(16, 32, 64, 128), prune_configs_by=pruning))
    assert sorted(kernel.blocks()[:-1]) == [32, 64]


def test_a_model_gets_every_argument() -> None:
    seen: list[dict[str, Any]] = []
    model = lambda **args: seen.append(args) or 1
    tuned = tuner(Recorder(), blocks(16, 32, num_warps=8), prune_configs_by={"perf_model": model, "top_k": 1})
    tuned[(1,)](floats(1), floats(1), n=7)
    wanted = {"x", "y", "n", "BLOCK", "num_warps", "num_stages", "num_ctas"}
    assert wanted <= set(seen[0]) and (seen[0]["n"], seen[0]["BLOCK"], seen[0]["num_warps"]) == (7, 16, 8)


@pytest.mark.parametrize("decorate", ["tuned over ruled", "ruled over tuned", "ruled twice"])
def test_any_order_that_ends_in_a_kernel(decorate: str) -> None:
    rule = heuristics({"n": lambda args: 100})
    tune = autotune([Config({"BLOCK": 64}), Config({"BLOCK": 128})], ["n"], do_bench=Timer())
    kernel = {"tuned over ruled": lambda f: tune(rule(f)), "ruled over tuned": lambda f: rule(tune(f)),
              "ruled twice": lambda f: rule(tune(rule(f)))}[decorate](add_one)  # fmt: skip
    y = floats(100)
    compiled = kernel[lambda meta: (2,)](floats(100), y)
    assert (y == 1).all() and compiled.name == "add_one"
    assert [found.name for found in kernel.warmup(floats(100), y, grid=(1,))] == ["add_one"] * 2


def test_the_driver_has_the_benchmarker(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        seen.append(quantiles)
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(type(driver.active), "get_benchmarker", lambda self: bench)
    launch(autotune(blocks(16, 32), ["n"])(Recorder()))
    assert seen == [(0.5, 0.2, 0.8)] * 2


def test_a_tuned_launch_takes_the_keywords_of_the_kernel() -> None:
    tuned = autotune(blocks(64), ["n"])(add_one)
    compiled = tuned[grid](x=floats(100), y=floats(100), n=100)
    assert compiled.metadata.num_warps == 4 and tuned.best_config == Config({"BLOCK": 64})


def test_printing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    launch(tuner(Recorder(), blocks(16, 32)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        f"Autotuning kernel kernel with config BLOCK: {size}, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None"
        for size in (16, 32)
    ]
    assert lines[2].startswith("Triton autotuning for function kernel") and "finished after" in lines[4]
    assert lines[-1].startswith("best config selected: BLOCK: 32, num_warps: 4")


# -- results on disk -----------------------------------------------------------------------------------------------


def measured(fn: Any = add_one, configs: Any = None) -> int:
    timer = Timer()
    configs = configs or [Config({"BLOCK": 16}), Config({"BLOCK": 32})]
    tuned = autotune(configs, ["n"], do_bench=timer, cache_results=True)(fn)
    tuned[grid](floats(64), floats(64), 64)
    return timer.count


def test_results_belong_to_the_source_the_package_and_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (measured(), measured()) == (2, 0)
    other = jit(add_one.fn)
    assert measured(other) == 0, "the same source"
    other._unsafe_update_src(other.src + "\n")
    assert measured(other) == 2
    with monkeypatch.context() as patch:
        patch.setattr(tuning_results, "triton_key", lambda: "another version")
        assert measured() == 2
    backend = type(tuning_results.find_backend(driver.active.get_current_target()))
    with monkeypatch.context() as patch:
        patch.setattr(backend, "hash", lambda self: "another compiler")
        assert measured() == 2
    assert measured() == 0


def test_the_name_of_the_file(tmp_path: Path) -> None:
    measured()
    (path,) = (tmp_path / "cache").rglob("*.autotune.json")
    assert path.name == "add_one.autotune.json"


def test_the_interpreter_keeps_no_results(tmp_path: Path) -> None:
    knobs.autotuning.cache = True
    interpreted = jit(add_one.fn, interpret=True)
    assert (measured(interpreted), measured(interpreted)) == (2, 2)
    assert not list((tmp_path / "cache").rglob("*.autotune.json"))


# -- Config, heuristics --------------------------------------------------------------------------------------------


def test_the_fields_of_a_configuration_have_an_order() -> None:
    config = Config({"A": 1}, 8, 2, 4, 128, print, "file.ttgir")
    fields = ("num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "ir_override")
    assert tuple(getattr(config, name) for name in fields) == (8, 2, 4, 128, print, "file.ttgir")
    defaults = Config({})
    assert tuple(getattr(defaults, name) for name in fields) == (4, 3, 1, None, None, None)
    assert defaults.all_kwargs() == {"num_warps": 4, "num_ctas": 1, "num_stages": 3}
    assert str(defaults) == "num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None"
    assert (
        len({Config({"A": 1}), Config({"A": 1}), Config({"A": 1}, num_ctas=2), Config({"A": 1}, pre_hook=print)}) == 3
    )


def test_parameters_of_autotune_by_position() -> None:
    import inspect

    names = (
        "configs key prune_configs_by reset_to_zero restore_value pre_hook post_hook warmup rep use_cuda_graph do_bench"
    )
    wanted = [*names.split(), "cache_results"]
    assert list(inspect.signature(autotune).parameters)[: len(wanted)] == wanted
    assert isinstance(autotune(blocks(1), ["n"])(Recorder()), Autotuner)


def test_heuristics_run_before_every_launch_with_all_arguments() -> None:
    seen: list[dict[str, Any]] = []
    kernel = heuristics({"BLOCK": lambda args: seen.append(dict(args)) or 64})(add_one)
    x, y = floats(64), floats(64)
    kernel[(1,)](x, y, n=64)
    kernel.run(x, y, 64, grid=(1,), warmup=False)
    assert kernel.warmup(x, y, 64, grid=(1,)).name == "add_one"
    assert len(seen) == 3 and all({"x", "y", "n"} <= set(args) for args in seen) and (y == 1).all()
