"""`Space`: all combinations of some values, as the configurations of `autotune`."""

from typing import Any

import numpy as np
import pytest

import tilework
from tests.runtime.tuning_kernels import add_one
from tilework.errors import AutotunerError
from tilework.runtime.tuning.autotuner import Config, Space, autotune


def test_every_combination_in_order() -> None:
    space = Space(BM=[64, 128], BN=(32,), num_warps=range(1, 3))
    assert [(one.kwargs["BM"], one.num_warps) for one in space] == [(64, 1), (64, 2), (128, 1), (128, 2)]
    assert len(space) == 4 and space[-1] == Config({"BM": 128, "BN": 32}, num_warps=2)
    assert space[1:3] == list(space)[1:3] and Config({"BM": 64, "BN": 32}, num_warps=1) in space
    assert repr(space) == "Space(BM=[64, 128], BN=[32], num_warps=[1, 2])"
    with pytest.raises(IndexError):
        space[4]


def test_where_keeps_some() -> None:
    asked: list[tuple[int, int]] = []

    def where(BM: int, num_warps: int, other: int = 0) -> bool:
        asked.append((BM, num_warps))
        return BM == 64 or num_warps == 8

    space = Space(BM=[64, 128], BN=[32, 64], num_warps=[4, 8], where=where)
    assert not asked, "nothing is made before it is needed"
    assert len(space) == 6 and len(list(space)) == 6 and len(asked) == 8
    assert len(Space(BM=[1, 2], BN=[1, 2], where=lambda **values: values["BM"] == values["BN"])) == 2


def test_a_space_of_millions_is_not_listed() -> None:
    values: dict[str, Any] = {name: range(64) for name in "ABCDE"}
    space = Space(**values)
    assert len(space) == 64**5 and space[64**5 - 1].kwargs == dict.fromkeys("ABCDE", 63)


def test_options_become_those_of_the_configuration() -> None:
    hook = lambda args: None
    (one,) = Space(BLOCK=[64], num_stages=[2], maxnreg=[None], waves_per_eu=[1], pre_hook=hook)
    assert one == Config({"BLOCK": 64, "waves_per_eu": 1}, num_stages=2, pre_hook=hook)


def test_autotune_takes_a_space() -> None:
    tuned = autotune(Space(BLOCK=[16, 32]), ["n"], do_bench=lambda call, quantiles: call() or [1.0] * 3)(add_one)
    x, y = np.zeros(20, np.float32), np.zeros(20, np.float32)
    tuned[lambda meta: (-(-20 // meta["BLOCK"]),)](x, y, 20)
    assert y.tolist() == [1.0] * 20 and len(tuned.configs) == 2
    assert tilework.Space is Space


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "a Space needs the values of at least one parameter or option: Space(BLOCK=[64, 128])"),
        ({"BLOCK": []}, "Space: the list of BLOCK is empty"),
        ({"BLOCK": 64}, "Space: BLOCK is 64, and must be a list of values: BLOCK=[64]"),
        ({"BLOCK": "abc"}, "Space: BLOCK is 'abc', and must be a list of values: BLOCK=['abc']"),
        ({"BLOCK": [16, 32, 16]}, "Space: BLOCK has the value 16 twice"),
        ({"BLOCK": [16, [32]]}, "Space: BLOCK has the value [32], which cannot be hashed"),
        ({"FLAG": [1, True]}, "Space: FLAG has the values 1 and True, which are equal"),  # as keys of `configs_timings`
        ({"BLOK": [16]}, "Space: BLOK is neither a parameter of add_one nor an option: did you mean 'BLOCK'?"),
        (
            {"num_warp": [4]},
            "Space: num_warp is neither a parameter of add_one nor an option: did you mean 'num_warps'?",
        ),
        (
            {"BLOCK": [16], "where": lambda BLOK: True},
            "Space: `where` asks for BLOK, which the space does not have: did you mean 'BLOCK'?",
        ),
        (
            {"BLOCK": [16], "where": lambda BLOCK: BLOCK > 16},
            "`where` is true for no combination of Space(BLOCK=[16], where=...)",
        ),
    ],
)
def test_mistakes(values: dict[str, Any], message: str) -> None:
    with pytest.raises(AutotunerError) as caught:
        autotune(Space(**values), [])(add_one)
    assert str(caught.value) == f"Autotuner error: {message}"


def test_a_function_of_positions_cannot_select() -> None:
    for where in (max, eval("lambda BLOCK, /: True"), lambda *values: True, 3):
        with pytest.raises(AutotunerError, match="`where` must be a function with named parameters"):
            Space(BLOCK=[16], where=where)  # pyright: ignore[reportArgumentType]
