"""`benchmarks.against`: what counts as slower, and how processes of one tree are measured."""

from pathlib import Path

import pytest

from benchmarks import against

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("differs", "noise", "wanted"),
    [
        ((1.05, 1.06), (1.01, 0.99), "slower"),
        ((0.90, 0.80), (1.01, 0.99), "faster"),
        ((1.05, 1.06), (1.00, 0.97), "slower?"),  # the base differs from itself by 3 %
        ((1.02, 1.30), (1.00, 1.00), ""),
        ((1.10, 0.90), (1.00, 1.00), ""),
    ],
)
def test_slower_is_what_both_ratios_say(differs: tuple[float, float], noise: tuple[float, float], wanted: str) -> None:
    assert against.verdict(differs, noise) == wanted


def test_both_counters_are_understood() -> None:
    assert against.counted("123456,,instructions:u,0,100.00,,\n") == 123456
    assert against.counted("<not supported>,,instructions:u,0,100.00,,\n") is None
    assert against.counted("==1== \n==1== I   refs:      1,234,567\n") == 1234567


def test_a_process_measures_the_tree_that_it_is_given() -> None:
    rows, _ = against.run((), "import", 1, ROOT, ROOT)
    (wall, cpu) = rows["import tilework"]
    assert 0 < cpu[0] < 60 and 0 < wall[0] < 60
