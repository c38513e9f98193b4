"""Generated kernels under the sanitizer; `python -m tests.fuzz.sanitizer` runs more of them."""

from pathlib import Path

import pytest

from tests.fuzz.amount import amount
from tests.fuzz.sanitizer import SUSPECTS, draw, problem_of
from tilework import knobs


@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
def test_mistakes_are_reported_and_nothing_else(gpu: bool, tmp_path: Path) -> None:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        for seed in (*range(amount(4 if gpu else 6)), *(() if gpu else (2371,))):  # the last one has a histogram
            problem = problem_of(seed, tmp_path, gpu)
            assert problem is None, f"{draw(seed).kernel.source}\n{problem}"


def test_every_mistake_is_generated_with_and_without_a_guard() -> None:
    found = {(generated.suspect.text, generated.is_guarded) for generated in map(draw, range(150))}
    assert {text for text, is_guarded in found if not is_guarded} == {suspect.text for suspect in SUSPECTS.values()}
    assert len({text for text, is_guarded in found if is_guarded}) == len({s.text for s in SUSPECTS.values()}) - 2
