"""Some kernels after each pass on each GPU; all of them: ``python -m tests.pipeline.round_trips``."""

import pytest

from tests.pipeline.round_trips import Sample, covering, problem_of


@pytest.mark.parametrize("sample", list(covering()), ids=str)
def test_the_text_after_every_pass_is_read_as_the_same_module(sample: Sample) -> None:
    assert problem_of(sample) is None
