"""Results of tuning on disk, which need a kernel with a source, and configurations as values."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.test_autotuner import blocks, floats
from tests.runtime.test_autotuner import cache_dir as cache_dir
from tests.runtime.test_autotuner import in_process as in_process
from tests.runtime.tuning_kernels import add_one
from tilework import knobs
from tilework.errors import OutOfResources, PTXASKilled, StageError
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.tuning.autotuner import Autotuner, Config, autotune
from tilework.runtime.tuning.results import config_text


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (-(-meta["n"] // meta["BLOCK"]),)


class Timer:
    """A benchmarker that runs a call, returns a longer time for each, and counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        call()
        self.count += 1
        return [float(self.count)] * 3


def tune_on_disk(configs: list[Config], n: int = 100, **settings: Any) -> tuple[Autotuner, int]:
    timer = Timer()
    tuned = autotune(configs, ["n"], do_bench=timer, cache_results=True, **settings)(add_one)
    x, y = np.arange(n, dtype=np.float32), floats(n)
    tuned[grid](x, y, n)
    assert np.array_equal(y, x + 1)
    return tuned, timer.count


def test_results_are_kept_per_configuration(cache_dir: Path) -> None:
    first, measured = tune_on_disk(blocks(16, 32))
    assert measured == 2 and first.best_config == Config({"BLOCK": 16})
    again, measured = tune_on_disk(blocks(16, 32))
    assert measured == 0 and again.configs_timings == first.configs_timings and again.best_config == first.best_config
    longer, measured = tune_on_disk(blocks(32, 16, 64))
    assert measured == 1 and list(longer.configs_timings) == blocks(32, 16, 64)
    assert tune_on_disk(blocks(32, 64))[1] == 0
    assert tune_on_disk(blocks(32, 64, num_warps=8))[1] == 2
    assert tune_on_disk(blocks(16, 32), n=101)[1] == 2


@pytest.mark.parametrize("timing", [np.float32(2), np.array([2.0, 1.0]), (np.float64(2), 2), np.int64(2)], ids=repr)
def test_timings_in_numbers_of_numpy_are_kept(cache_dir: Path, timing: Any) -> None:
    counts = list[int]()
    for _ in range(2):
        bench = lambda call, quantiles: counts.append(1) or timing
        tuned = autotune(blocks(16, 32), ["n"], do_bench=bench, cache_results=True)(add_one)
        tuned[grid](floats(64), floats(64), 64)
    assert len(counts) == 2


def test_it_is_said_what_is_not_kept(cache_dir: Path) -> None:
    bench = lambda call, quantiles: (1.0, "with a note")
    tuned = autotune(blocks(16, 32), ["n"], do_bench=bench, cache_results=True)(add_one)
    with pytest.warns(UserWarning, match="2 of 2 timings of add_one are not kept: .* for example .*a note"):
        tuned[grid](floats(64), floats(64), 64)
    hooked = [Config({"BLOCK": size}, pre_hook=lambda args: None) for size in (16, 32)]
    with knobs.autotuning.scope():
        knobs.autotuning.save = True
        with pytest.warns(
            UserWarning, match="the timings of add_one are not kept, because a configuration has a pre_h"
        ):
            autotune(hooked, ["n"], do_bench=Timer())(add_one)[grid](floats(64), floats(64), 64)


def test_the_file_is_json_in_the_cache(cache_dir: Path) -> None:
    tune_on_disk(blocks(16, 32))
    (path,) = cache_dir.rglob("add_one.autotune.json")
    data = json.loads(path.read_text())
    assert data["kernel"] == "add_one" and data["key"] == "(100, 'float32', 'float32')"
    assert list(data["timings"].values()) == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"timings": 3}', '{"timings": {"x": ["a"]}}'])
def test_a_damaged_file_is_ignored(cache_dir: Path, damage: str) -> None:
    tune_on_disk(blocks(16, 32))
    (path,) = cache_dir.rglob("*.autotune.json")
    for file in path.parent.glob("*.json"):
        file.write_text(damage)
    assert tune_on_disk(blocks(16, 32))[1] == 2
    assert tune_on_disk(blocks(16, 32))[1] == 0


def test_results_follow_the_environment(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune_on_disk(blocks(16, 32))
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    assert tune_on_disk(blocks(16, 32))[1] == 2


def test_the_knob_keeps_results_too(cache_dir: Path) -> None:
    knobs.autotuning.cache = True
    timer = Timer()
    for _ in range(2):
        autotune(blocks(16, 32), ["n"], do_bench=timer)(add_one)[grid](floats(64), floats(64), 64)
    assert timer.count == 2


def test_hooks_of_configurations_switch_it_off(cache_dir: Path) -> None:
    configs = [Config({"BLOCK": 16}, pre_hook=lambda args: None), Config({"BLOCK": 32})]
    assert [tune_on_disk(configs)[1] for _ in range(2)] == [2, 2]
    assert not list(cache_dir.rglob("*.autotune.json"))


def test_failures_of_this_moment_are_not_remembered(cache_dir: Path) -> None:
    for error in (PTXASKilled("out of memory"), MemoryError(), StageError("no ptxas")):
        timings = iter([error, [2.0], [1.0]])  # the first configuration fails, and is measured again by the next tuner

        def bench(call: Any, quantiles: Any) -> Any:
            if isinstance(found := next(timings), Exception):  # noqa: B023
                raise found
            return found

        for best in (16, 32):
            configs = [Config({"BLOCK": size}, num_stages=1 + len(str(error))) for size in (32, 16)]
            tuned = autotune(configs, ["n"], do_bench=bench, cache_results=True)(add_one)
            tuned[grid](floats(64), floats(64), 64)
            assert tuned.best_config is not None and tuned.best_config.kwargs["BLOCK"] == best


def test_failures_are_remembered(cache_dir: Path, capsys: Any) -> None:
    def fail_for_large_blocks(call: Any, quantiles: Any) -> list[float]:
        call()
        counts.append(1)
        if len(counts) == 2:
            raise OutOfResources(2, 1, "threads")
        return [1.0, 1.0, 1.0]

    counts: list[int] = []
    for _ in range(2):
        tuned = autotune(blocks(16, 32), ["n"], do_bench=fail_for_large_blocks, cache_results=True)(add_one)
        with knobs.autotuning.scope():
            knobs.autotuning.print = True
            tuned[grid](floats(64), floats(64), 64)
        assert tuned.configs_timings[Config({"BLOCK": 32})] == [math.inf] * 3
    assert len(counts) == 2
    assert "2 of 2 timings from disk" in capsys.readouterr().out


def test_the_default_benchmarker_is_the_drivers(cache_dir: Path) -> None:
    tuned = autotune(blocks(64, 128), ["n"])(add_one)
    y = floats(100)
    tuned[grid](floats(100), y, 100)
    assert y.tolist() == [1.0] * 100
    assert all(len(timing) == 3 and timing[0] > 0 for timing in tuned.configs_timings.values())
    kernels = tuned.warmup(floats(100), y, 100, grid=(1,))
    assert [kernel.name for kernel in kernels] == [kernels[0].name] * 2


def test_a_configuration_may_replace_a_stage(cache_dir: Path, tmp_path: Path) -> None:
    text = add_one.warmup(floats(64), floats(64), 64, grid=(1,), BLOCK=64).asm["ttir"]
    changed = tmp_path / "add_seven.ttir"
    changed.write_text(text.replace("dense<1.000000e+00>", "dense<7.000000e+00>"))
    for config in (Config({"BLOCK": 64}, ir_override=str(changed)), Config({"BLOCK": 64, "ir_override": str(changed)})):
        y = floats(64)
        autotune([config], [])(add_one)[grid](floats(64), y, 64)
        assert y.tolist() == [7.0] * 64


def test_interpreted_kernels_are_tuned(cache_dir: Path) -> None:
    interpreted = jit(add_one.fn, interpret=True)
    tuned = autotune(blocks(64, 128), ["n"], do_bench=Timer(), cache_results=True)(interpreted)
    y = floats(100)
    tuned[grid](floats(100), y, 100)
    assert y.tolist() == [1.0] * 100 and tuned.best_config == Config({"BLOCK": 64})
    assert tuned.warmup(floats(100), y, 100, grid=(1,)) == [None, None]
    assert not list(cache_dir.rglob("*.autotune.json"))


@pytest.mark.parametrize("option", ["ir_override", "extern_libs"])
def test_files_of_a_configuration_count_by_content(option: str, tmp_path: Path) -> None:
    file = tmp_path / "changed.ttir"
    texts = []
    for content in ("one", "two", "one"):
        file.write_text(content)
        texts.append(config_text(Config({option: str(file) if option == "ir_override" else {"mine": str(file)}})))
    assert texts[0] == texts[2] != texts[1]


def test_config_text_and_launch_arguments() -> None:
    config = Config({"A": 1}, num_warps=2, maxnreg=64, ir_override="x.ttir")
    assert str(config) == "A: 1, num_warps: 2, num_ctas: 1, num_stages: 3, maxnreg: 64"
    assert config.all_kwargs() == {
        "A": 1, "num_warps": 2, "num_ctas": 1, "num_stages": 3, "maxnreg": 64, "ir_override": "x.ttir",
    }  # fmt: skip
    assert Config({"ir_override": "x.ttir"}).all_kwargs()["ir_override"] == "x.ttir"


def test_configs_are_values() -> None:
    hook = print
    assert Config({"A": 1, "B": 2}) == Config({"B": 2, "A": 1})
    assert hash(Config({"A": 1, "B": 2})) == hash(Config({"B": 2, "A": 1}))
    assert Config({"A": 1}) != Config({"A": 2}) and Config({"A": 1}) != Config({"A": 1}, num_warps=8)
    assert Config({"A": 1}, pre_hook=hook) != Config({"A": 1}) and Config({"A": 1}) != 1
    assert Config({"A": 1}, pre_hook=hook) == Config({"A": 1}, pre_hook=hook)


def test_configs_are_pickled() -> None:
    config = Config({"A": 1}, num_warps=8, num_stages=1)
    assert pickle.loads(pickle.dumps(config)) == config
    old = Config.__new__(Config)
    old.__setstate__({"kwargs": {"A": 1}})
    assert old == Config({"A": 1}) and old.ir_override is None
