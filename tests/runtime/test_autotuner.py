"""`autotune`, `heuristics`, `Config`, mostly on kernels that only record how they are run."""

import ast
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework import knobs
from tilework.errors import AutotunerError, CompileTimeAssertionFailure, OutOfResources, PTXASError, StageError
from tilework.runtime.launch.python.kernel_interface import KernelInterface
from tilework.runtime.launch.python.wrappers import reinterpret
from tilework.runtime.tuning import autotuner
from tilework.runtime.tuning.autotuner import Autotuner, Config, autotune, heuristics
from tilework.tools.tensor_descriptor import TensorDescriptor


class Recorder(KernelInterface):
    """A kernel that records its launches, and fails for some blocks."""

    def __init__(self, failures: Mapping[int, Exception] | None = None) -> None:
        def kernel(x, y, n, BLOCK, FLAG=None):
            """Does nothing."""

        self.fn = kernel
        self.arg_names = ["x", "y", "n", "BLOCK", "FLAG"]
        self.failures = failures or {}
        self.launches: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.launches.append((args, kwargs))
        if (error := self.failures.get(kwargs["BLOCK"])) is not None:
            raise error
        args[0][...] = args[0] + kwargs["BLOCK"]
        return ("compiled", kwargs["BLOCK"])

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        return ("warm", kwargs["BLOCK"])

    def blocks(self) -> list[int]:
        return [kwargs["BLOCK"] for _, kwargs in self.launches]


class Clock:
    """A benchmarker: one call, and a time from a table of blocks."""

    def __init__(self, kernel: Recorder, times: dict[int, Any]) -> None:
        self.kernel, self.times, self.quantiles = kernel, times, []

    def __call__(self, call: Any, quantiles: Any) -> Any:
        self.quantiles.append(quantiles)
        call()
        return self.times[self.kernel.blocks()[-1]]


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_COMPILE_WORKERS", "0")


@pytest.fixture
def cache_dir(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope(), knobs.autotuning.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path / "cache"


TIMES = {16: [3.0, 1.0, 4.0], 32: [1.0, 1.0, 1.0], 64: [1.0, 0.5, 9.0], 128: [2.0, 2.0, 2.0]}


def blocks(*sizes: int, **settings: Any) -> list[Config]:
    return [Config({"BLOCK": size}, **settings) for size in sizes]


def tuner(kernel: Recorder, configs: list[Config], times: dict[int, Any] = TIMES, **settings: Any) -> Autotuner:
    return autotune(configs, settings.pop("key", ["n"]), do_bench=Clock(kernel, times), **settings)(kernel)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_the_fastest_is_chosen_remembered_and_run() -> None:
    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32, 64, 128))
    result = tuned[(1,)](floats(4), floats(4), 4)
    assert result == ("compiled", 64)  # lists compare element by element
    assert kernel.blocks() == [16, 32, 64, 128, 64]
    assert tuned.best_config == Config({"BLOCK": 64})
    assert tuned.configs_timings == {Config({"BLOCK": block}): time for block, time in TIMES.items()}
    assert tuned.bench_time > 0
    assert tuned.cache == {(4, "float32", "float32"): Config({"BLOCK": 64})}
    tuned[(1,)](floats(4), floats(4), 4)
    assert kernel.blocks()[5:] == [64]
    args, kwargs = kernel.launches[-1]
    assert len(args) == 3
    assert kwargs == {"grid": (1,), "warmup": False, "BLOCK": 64, "num_warps": 4, "num_ctas": 1, "num_stages": 3}


def test_benchmarkers_get_three_quantiles_and_may_return_a_number() -> None:
    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32, 64), {16: 2.0, 32: 1.0, 64: 3.0})
    tuned[(1,)](floats(1), floats(1), 1)
    assert tuned.best_config == Config({"BLOCK": 32})
    assert isinstance(tuned._do_bench, Clock) and tuned._do_bench.quantiles == [(0.5, 0.2, 0.8)] * 3


def test_the_tuning_key_is_values_and_dtypes_however_passed() -> None:
    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32))
    x, y = floats(4), floats(4)
    tuned[(1,)](x, y, 4)
    tuned[(1,)](x, y, n=4)
    tuned[(1,)](x, n=4, y=y)
    assert len(tuned.cache) == 1
    tuned[(1,)](x, y, 5)
    tuned[(1,)](x, y.astype(np.int8), 4)
    tuned[(1,)](x, y.astype(np.int8), 4, FLAG=True)
    assert list(tuned.cache) == [(4, "float32", "float32"), (5, "float32", "float32"), (4, "float32", "int8")]


def test_one_configuration_is_not_measured() -> None:
    kernel, seen = Recorder(), []
    tuned = autotune([Config({"BLOCK": 8}, pre_hook=seen.append)], key=["n"], pre_hook=None)(kernel)
    tuned[(1,)](floats(1), floats(1), 3)
    assert kernel.blocks() == [8] and tuned.cache == {} and tuned.best_config is tuned.configs[0]
    assert seen[0]["n"] == 3 and seen[0]["BLOCK"] == 8


def test_without_configurations_there_is_a_default() -> None:
    tuned = autotune([], key=[])(Recorder())
    assert tuned.configs == [Config({}, num_warps=4, num_stages=3)]


@pytest.mark.parametrize("sizes", [(16,), (16, 32)])
@pytest.mark.parametrize("given", [{"BLOCK": 4}, {"num_warps": 2}])
def test_a_launch_may_not_set_what_a_configuration_sets(sizes: tuple[int, ...], given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"Conflicting meta-parameters: {next(iter(given))}"):
        tuner(Recorder(), blocks(*sizes))[(1,)](floats(1), floats(1), 1, **given)
    with pytest.raises(ValueError, match="BLOCK"):
        tuner(Recorder(), blocks(*sizes))[(1,)](floats(1), floats(1), 1, 64)


def test_hooks_come_in_pairs_and_see_the_failure() -> None:
    error = OutOfResources(10, 5, "threads")
    kernel, log = Recorder({32: error}), []

    def pre(args: dict[str, Any], reset_only: bool = False) -> None:
        log.append(("pre", args["BLOCK"], reset_only))

    def post(*args: Any, exception: Exception | None) -> None:
        log.append(("post", args[0]["BLOCK"], exception))

    tuned = tuner(kernel, blocks(16, 32), pre_hook=pre, post_hook=post)
    tuned[(1,)](floats(1), floats(1), 1)
    assert log == [
        ("pre", 16, False), ("post", 16, None), ("pre", 32, False), ("post", 32, error), ("pre", 16, True),
    ]  # fmt: skip
    assert tuned.configs_timings[Config({"BLOCK": 32})] == [math.inf] * 3
    assert tuned.failures == {Config({"BLOCK": 32}): error}


@pytest.mark.parametrize(
    "error",
    [
        OutOfResources(2, 1, "shared memory"),
        PTXASError("no such register"),
        StageError("LLVM cannot"),
        MemoryError("much"),
    ],
)
def test_a_configuration_that_cannot_run_is_skipped_and_named(error: Exception, capsys: Any) -> None:
    tuned = tuner(Recorder({64: error}), blocks(64, 128))
    with knobs.autotuning.scope():
        knobs.autotuning.print = True
        tuned[(1,)](floats(1), floats(1), 1)
    assert tuned.best_config == Config({"BLOCK": 128})
    text = capsys.readouterr().out
    assert "Autotuning kernel kernel with config BLOCK: 64, num_warps: 4" in text
    assert f"failed config: BLOCK: 64, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None: {error}" in text
    assert "with key as (1, 'float32', 'float32')" in text
    assert "best config selected: BLOCK: 128, num_warps: 4" in text and "finished after " in text


def test_a_failed_static_assertion_is_skipped() -> None:
    error = CompileTimeAssertionFailure("tl.static_assert(False)", ast.parse("tl.static_assert(False)"), "no")
    tuned = tuner(Recorder({64: error}), blocks(64, 128))
    tuned[(1,)](floats(1), floats(1), 1)
    assert tuned.failures == {Config({"BLOCK": 64}): error}


def test_nothing_is_printed_unless_requested(capsys: Any) -> None:
    tuner(Recorder(), blocks(64, 128))[(1,)](floats(1), floats(1), 1)
    assert capsys.readouterr() == ("", "")


def test_other_errors_reach_the_user() -> None:
    with pytest.raises(ZeroDivisionError):
        tuner(Recorder({32: ZeroDivisionError()}), blocks(16, 32))[(1,)](floats(1), floats(1), 1)


def test_when_all_fail_the_error_reaches_the_user() -> None:
    errors = {block: OutOfResources(2, 1, "threads") for block in (16, 32)}
    with pytest.raises(OutOfResources):
        tuner(Recorder(errors), blocks(16, 32))[(1,)](floats(1), floats(1), 1)


def test_configuration_hooks_run_before_every_launch() -> None:
    kernel, seen = Recorder(), []
    configs = [Config({"BLOCK": 16}), Config({"BLOCK": 32}, pre_hook=lambda args: seen.append(args["n"]))]
    tuned = tuner(kernel, configs)
    tuned[(1,)](floats(1), floats(1), 7)
    tuned[(1,)](floats(1), floats(1), 7)
    assert seen == [7, 7, 7]


def test_restored_arguments_change_once() -> None:
    x = floats(3)
    tuner(Recorder(), blocks(16, 32, 64), restore_value=["x"])[(1,)](x, floats(1), 1)
    assert x.tolist() == [64, 64, 64]


def test_arguments_are_zeroed_before_every_measurement_and_the_real_run() -> None:
    x = np.full(3, 7, np.float32)
    tuner(Recorder(), blocks(16, 32, 64), reset_to_zero=["x"])[(1,)](x, floats(1), 1)
    assert x.tolist() == [64, 64, 64]


def test_arguments_that_are_none_are_not_restored() -> None:
    """As in Triton 3.8; in 3.7 they are an error."""
    x = np.full(3, 7, np.float32)
    tuned = tuner(Recorder(), blocks(16, 32), reset_to_zero=["x", "y"], restore_value=["y"])
    tuned[(1,)](x, None, 1)
    assert x.tolist() == [32, 32, 32]


def test_descriptors_and_wrappers_stand_for_their_memory() -> None:
    x, y = floats(4), np.full(16, 5, np.float32)
    desc = TensorDescriptor(y, [16], [1], [16])
    tuned = tuner(Recorder(), blocks(16, 32), restore_value=["y"], reset_to_zero=["y"])
    tuned[(1,)](x, desc, 1)
    assert y.tolist() == [0] * 16
    tuner(Recorder(), blocks(16, 32), reset_to_zero=["y"])[(1,)](x, reinterpret(x, "int32"), 2)
    assert x.tolist() == [32] * 4


def test_torch_arguments_are_restored() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.zeros(3), torch.ones(3)
    tuner(Recorder(), blocks(16, 32, 64), restore_value=["x"], reset_to_zero=["y"])[(1,)](x, y, 1)
    assert x.tolist() == [64] * 3 and y.tolist() == [0] * 3


def test_early_pruning_sees_positional_and_keyword_arguments() -> None:
    seen = []

    def prune(configs: list[Config], named_args: dict[str, Any], **kwargs: Any) -> list[Config]:
        seen.append((set(named_args), kwargs["n"]))
        return configs[1:3]

    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32, 64, 128), prune_configs_by={"early_config_prune": prune})
    tuned[(1,)](floats(1), floats(1), n=9)
    assert seen == [({"x", "y"}, 9)] and kernel.blocks() == [32, 64, 64]


def test_pruning_everything_is_an_error() -> None:
    tuned = tuner(Recorder(), blocks(16, 32), prune_configs_by={"early_config_prune": lambda *a, **k: []})
    with pytest.raises(AutotunerError) as error:
        tuned[(1,)](floats(1), floats(1), 1)
    assert str(error.value) == (
        "Autotuner error: No valid autotuner configs after pruning."
        " `early_config_prune` should return at least one config."
    )


@pytest.mark.parametrize(
    "top_k, measured", [(1, [128]), (2, [128, 64]), (0.5, [128, 64]), (0.1, [128]), (9, [16, 32, 64, 128])]
)
def test_a_model_keeps_the_most_promising(top_k: Any, measured: list[int]) -> None:
    kernel = Recorder()
    model = lambda n, BLOCK, num_warps, **others: -BLOCK * n * num_warps
    tuned = tuner(kernel, blocks(16, 32, 64, 128), prune_configs_by={"perf_model": model, "top_k": top_k})
    tuned[(1,)](floats(1), floats(1), 2)
    assert kernel.blocks()[:-1] == measured


@pytest.mark.parametrize(("version", "measured"), [("3.7.1", [64, 32, 16]), ("3.8.0", [64])])
def test_a_fraction_of_what_is_left(version: str, measured: list[int]) -> None:
    kernel = Recorder()
    prune = {"early_config_prune": lambda configs, named, **kwargs: configs[:3], "top_k": 0.5}
    prune["perf_model"] = lambda BLOCK, **others: -BLOCK
    tuned = tuner(kernel, blocks(16, 32, 64, 128, 256, 512), prune_configs_by=prune)
    with knobs.language.scope() as language:
        language.triton_version = version
        tuned[(1,)](floats(1), floats(1), 2)
    assert sorted(kernel.blocks()[:-1], reverse=True) == measured * (version == "3.7.1")
    assert tuned.best_config is not None
    assert tuned.best_config.kwargs["BLOCK"] == (64 if version == "3.8.0" else kernel.blocks()[-1])


@pytest.mark.parametrize(("version", "measured"), [("3.7.1", 1), ("3.8.0", 0)])
def test_the_only_configuration_left(version: str, measured: int) -> None:
    kernel, x = Recorder(), np.full(3, 7, np.float32)
    prune = {"early_config_prune": lambda configs, named, **kwargs: configs[1:]}
    tuned = tuner(kernel, blocks(16, 32), prune_configs_by=prune, reset_to_zero=["x"])
    with knobs.language.scope() as language:
        language.triton_version = version
        tuned[(1,)](x, floats(1), 2)
        assert kernel.blocks() == [32] * (measured + 1) and len(tuned.configs_timings) == measured
        assert x.tolist() == [32, 32, 32]
        assert tuned.best_config is not None and tuned.best_config.kwargs == {"BLOCK": 32}
        tuned[(1,)](x, floats(1), 2)
    assert kernel.blocks() == [32] * (measured + 2)


@pytest.mark.parametrize("top_k", [1.5, "2", None, True])
def test_other_counts_are_refused(top_k: Any) -> None:
    tuned = tuner(Recorder(), blocks(16, 32), prune_configs_by={"perf_model": lambda **args: 0, "top_k": top_k})
    with pytest.raises(TypeError, match="top_k"):
        tuned[(1,)](floats(1), floats(1), 1)


def test_deprecated_settings_warn_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def bench(call: Any, **settings: Any) -> list[float]:
        calls.append(settings)
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(autotuner, "default_do_bench", bench)
    monkeypatch.setattr(autotuner, "do_bench_cudagraph", bench)
    kernel = Recorder()
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({"warmup": 5}, {"warmup": 5, "rep": 100}),
        ({"rep": 7}, {"warmup": 25, "rep": 7}),
        ({"use_cuda_graph": True}, {"rep": 100}),
    ]
    for settings, expected in cases:
        with pytest.warns(DeprecationWarning, match="do_bench"):
            tuned = autotune(blocks(16, 32), ["n"], **settings)(kernel)
        tuned[(1,)](floats(1), floats(1), 1)
        assert calls[-1] == expected | {"quantiles": (0.5, 0.2, 0.8)}


def test_warmup_compiles_every_configuration() -> None:
    kernel = Recorder()
    tuned = tuner(
        kernel, blocks(16, 32, 64), prune_configs_by={"early_config_prune": lambda configs, *a, **k: configs[:2]}
    )
    assert tuned.warmup(floats(1), floats(1), 1, grid=(1,)) == [("warm", 16), ("warm", 32)]
    assert tuned.run(floats(1), floats(1), 1, grid=(1,), warmup=True) == [("warm", 16), ("warm", 32)]
    assert kernel.launches == []


def test_attributes() -> None:
    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32), key=("n", "absent"))
    assert (tuned.fn, tuned.base_fn, tuned.keys) == (kernel, kernel.fn, ["n", "absent"])
    assert tuned.arg_names == kernel.arg_names and tuned.__name__ == "kernel" and tuned.__doc__ == "Does nothing."
    assert isinstance(tuned, KernelInterface)


def test_interpreted_kernels_keep_nothing(cache_dir: Path) -> None:
    kernel = Recorder()
    for _ in range(2):
        tuner(kernel, blocks(16, 32), cache_results=True)[(1,)](floats(1), floats(1), 1)
    assert len(kernel.launches) == 6


# ---- heuristics


def test_heuristics_see_arguments_and_earlier_heuristics() -> None:
    kernel = Recorder()
    ruled = heuristics(
        {"BLOCK": lambda args: 2 * args["n"], "FLAG": lambda args: args["BLOCK"] > 4 and args["y"] is None}
    )(kernel)
    ruled[(1,)](floats(1), None, n=3)
    assert kernel.launches[0][1] == {"grid": (1,), "warmup": False, "n": 3, "BLOCK": 6, "FLAG": True}
    assert ruled.warmup(floats(1), None, 4, grid=(1,)) == ("warm", 8)
    assert isinstance(ruled, KernelInterface) and ruled.base_fn is kernel.fn and ruled.arg_names == kernel.arg_names


def test_heuristics_under_autotune() -> None:
    kernel = Recorder()
    ruled = heuristics({"FLAG": lambda args: args["n"] % args["BLOCK"] == 0})(kernel)
    tuned = autotune(blocks(16, 24), ["n"], do_bench=Clock(kernel, {16: 2, 24: 1}))(ruled)
    tuned[(1,)](floats(1), floats(1), 48)
    assert [(kwargs["BLOCK"], kwargs["FLAG"]) for _, kwargs in kernel.launches] == [(16, True), (24, True), (24, True)]
    assert tuned.base_fn is kernel.fn


def test_heuristics_over_autotune() -> None:
    kernel = Recorder()
    tuned = tuner(kernel, blocks(16, 32), key=["FLAG"])
    ruled = heuristics({"FLAG": lambda args: args["n"] > 10})(tuned)
    for n in (1, 2, 100):
        ruled[(1,)](floats(1), floats(1), n)
    assert list(tuned.cache) == [(False, "float32", "float32"), (True, "float32", "float32")]
    assert ruled.warmup(floats(1), floats(1), 1, grid=(1,)) == [("warm", 16), ("warm", 32)]


def test_one_configuration_over_two_heuristics() -> None:
    kernel = Recorder()
    both = heuristics({"FLAG": lambda args: args["n"]})(heuristics({"y": lambda args: args["FLAG"] + 1})(kernel))
    tuned = autotune([Config({"BLOCK": 4})], key=[])(both)
    tuned[(1,)](floats(1), n=5)
    assert {k: kernel.launches[0][1][k] for k in ("FLAG", "y", "BLOCK")} == {"FLAG": 5, "y": 6, "BLOCK": 4}
    assert tuned.base_fn.__name__ == "kernel"
