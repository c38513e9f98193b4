"""Decision trees from the sizes of a launch to a configuration, and `autotune(choose=...)`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.test_autotuner import cache_dir as cache_dir
from tests.runtime.test_autotuner import in_process as in_process
from tests.runtime.tuning_kernels import add_one
from tilework import knobs
from tilework.errors import AutotunerError
from tilework.runtime.tuning.autotuner import Autotuner, Config, autotune
from tilework.runtime.tuning.search import Search
from tilework.runtime.tuning.tree import Family, Leaf, Measured, Split, fitted, source, tree_from_json, tree_to_json

INF = float("inf")


def test_a_tree_splits_where_it_pays() -> None:
    measured: list[Measured] = [
        ({"M": 16, "N": 4096}, {"small": 1.0, "big": 2.0}),
        ({"M": 64, "N": 4096}, {"small": 1.0, "big": 1.5}),
        ({"M": 4096, "N": 4096}, {"small": 3.0, "big": 2.0}),
        ({"M": 8192, "N": 64}, {"small": 9.0, "big": 6.0}),
    ]
    tree = fitted(measured)
    assert tree == Split("M", 512, Leaf("small", 0.0), Leaf("big", 0.0))
    assert tree.answer({"M": 512, "N": 1}) == "small" and tree.answer({"M": 513, "N": 1}) == "big"


def test_what_counts_is_lost_time() -> None:
    """One shape with a large loss outweighs three with small losses."""
    measured: list[Measured] = [({"n": n}, {"a": 1.0, "b": 1.001}) for n in (1, 2, 3)]
    measured.append(({"n": 4}, {"a": 2.0, "b": 1.0}))
    assert fitted(measured, depth=0) == Leaf("b", pytest.approx(0.003))  # pyright: ignore[reportArgumentType]
    assert fitted([({"n": n}, {"a": 1.0, "b": 1.001 + n / 1000}) for n in (1, 2)]) == Leaf("a", 0.0)


@pytest.mark.parametrize(("best", "other"), [(0.0, 0.5), (-3.0, -1.0), (-3.0, 0.0), (0.0, INF)])
def test_values_of_a_benchmarker_that_are_no_times(best: float, other: float) -> None:
    measured: list[Measured] = [({"n": 1}, {"a": best, "b": other}), ({"n": 2}, {"a": best, "b": other})]
    assert fitted(measured) == Leaf("a", 0.0)
    assert "choose_k" in source([Family("k", "", "cpu", measured)], {"a": {"B": 1}, "b": {"B": 2}}, "today")


def test_missing_and_failed_times() -> None:
    measured: list[Measured] = [({"n": 1}, {"a": 1.0, "c": 1.2}), ({"n": 2}, {"b": 1.0, "c": 1.2, "a": INF})]
    assert fitted(measured, depth=0).answer({"n": 1}) == "c", "one that runs everywhere"
    assert isinstance(fitted(measured, depth=1), Split)


def test_depth_is_limited() -> None:
    measured: list[Measured] = [({"n": 2**k}, {str(j): 1.0 + (j != k) for j in range(16)}) for k in range(16)]

    def depth(tree: Any) -> int:
        return 1 + max(depth(tree.left), depth(tree.right)) if isinstance(tree, Split) else 0

    assert depth(fitted(measured)) == 4 and fitted(measured, 16).loss == 0


def test_families_have_names_of_their_own() -> None:
    """A kernel may be called as the second family of another one."""
    measured: list[Measured] = [({"M": 16}, {"a": 1.0})]
    families = [Family(kernel, "", "cpu", measured) for kernel in ("f", "f_1", "f", "g", "f_3", "f")]
    found = [name for name in choose_of(families, {"a": {"BM": 1}}) if name.startswith("choose_")]
    assert found == ["choose_f_2", "choose_f_1", "choose_f_4", "choose_g", "choose_f_3", "choose_f_5"]


def test_json_is_the_same_tree() -> None:
    tree = Split("n", 2.5, Leaf('{"B": 1}', 0.0), Split("m", 7, Leaf('{"B": 2}', 0.5), Leaf("{}", 1)))
    assert tree_from_json(json.loads(json.dumps(tree_to_json(tree))), ["n", "m"]) == tree
    with pytest.raises(ValueError, match="it splits at 'm', and the sizes are n"):
        tree_from_json(tree_to_json(tree), ["n"])


def choose_of(families: list[Family], settings: dict[str, dict[str, Any]]) -> dict[str, Any]:
    text = source(families, settings, "today")
    scope: dict[str, Any] = {}
    exec(compile(text, "tuned.py", "exec"), scope)
    return {name: value for name, value in scope.items() if name.startswith("choose")} | {"text": text}


def test_source_can_be_read_and_run() -> None:
    settings = {
        "a": {"BM": 32, "WAY": "row", "num_warps": 4, "num_stages": 2, "num_ctas": 1},
        "b": {"BM": 128, "num_warps": 8, "num_stages": 3, "num_ctas": 2, "waves_per_eu": 1},
    }
    measured: list[Measured] = [({"M": 16, "alpha": 0.5}, {"a": 1.0, "b": 2.0}), ({"M": 64, "alpha": 0.5}, {"b": 1.0})]
    made = choose_of(
        [Family("matmul", "fp16", "a GPU", measured), Family("matmul", "fp8", "a GPU", measured[:1])], settings
    )
    assert made["choose_matmul_1"](16, 0.5) == Config({"BM": 32, "WAY": "row"}, num_warps=4, num_stages=2)
    assert made["choose_matmul_1"](M=99, alpha=1) == Config({"BM": 128, "waves_per_eu": 1}, 8, 3, 2)
    assert made["choose_matmul_2"](1, 2).kwargs["BM"] == 32
    assert "#   16, 0.5: 1 ms, 0.0%" in made["text"] and "matmul of fp8 on a GPU." in made["text"]


# ---- choose=


def launched(n: int, measured: list[int], **settings: Any) -> Autotuner:
    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        measured.append(n)
        return [1.0] * 3

    configs = [Config({"BLOCK": 2**power}) for power in range(4, 9)]
    tuned = autotune(configs, ["n"], do_bench=bench, **settings)(add_one)
    relaunch(tuned, n)
    return tuned


def relaunch(tuned: Autotuner, n: int) -> None:
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    tuned[lambda meta: (-(-n // meta["BLOCK"]),)](x, y, n)
    assert np.array_equal(y, x + 1)


def choose(n: int) -> Config:
    return Config({"BLOCK": 32 if n < 100 else 512})


def test_nothing_is_measured_with_choose(cache_dir: Path, in_process: None) -> None:
    measured: list[int] = []
    tuned = launched(50, measured, choose=choose)
    assert tuned.best_config == Config({"BLOCK": 32}) and not measured
    for _ in range(3):
        relaunch(tuned, 300)
    assert tuned.best_config == Config({"BLOCK": 512}), "which need not be one of the configurations"
    assert not measured and len(tuned.cache) == 2


def test_choose_alone(cache_dir: Path, in_process: None) -> None:
    tuned = autotune(None, ["n"], choose=choose)(add_one)
    relaunch(tuned, 50)
    assert tuned.best_config == Config({"BLOCK": 32})


def test_measuring_is_asked_for(cache_dir: Path, in_process: None) -> None:
    measured: list[int] = []
    tuned = launched(50, measured, choose=choose, search=Search(budget_configs=3))
    assert len(measured) == 3 and Config({"BLOCK": 32}) in tuned.configs_timings, "a search begins there"
    with knobs.autotuning.scope():
        knobs.autotuning.save = True
        launched(51, measured, choose=choose)
    assert measured.count(51) == 5, "`tilework tune` measures"


def test_mistakes(cache_dir: Path, in_process: None) -> None:
    with pytest.raises(AutotunerError, match="`choose` of add_one asks for m, which is not an argument of it"):
        launched(50, [], choose=lambda m: m)
    with pytest.raises(AutotunerError, match="`choose` of add_one must return a Config, and returned 50"):
        launched(50, [], choose=lambda n: n)
    for choose in (max, 3, "choose_add_one", lambda *sizes: sizes[0]):
        with pytest.raises(AutotunerError, match="`choose` of add_one must be a function with named parameters, "):
            launched(50, [], choose=choose)


def test_choose_may_take_all_arguments_by_name(cache_dir: Path, in_process: None) -> None:
    tuned = launched(50, [], choose=lambda n, **others: Config({"BLOCK": 64 if n == 50 and "x" in others else 16}))
    assert tuned.best_config == Config({"BLOCK": 64})
