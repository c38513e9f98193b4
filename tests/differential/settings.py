"""Settings of all property tests: few examples, always the same ones."""

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

few_examples = settings(
    derandomize=True,
    max_examples=int(os.environ.get("DIFFERENTIAL_EXAMPLES", "3")),
    deadline=None,
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]  an untyped metaclass
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
seeds = st.integers(0, 2**16)


def shapes(min_rank: int = 1, max_rank: int = 3, max_log: int = 3) -> Any:
    """Shapes of powers of two, and of any sizes."""
    sizes = st.one_of(st.integers(0, max_log).map(lambda n: 2**n), st.integers(1, 2**max_log))
    return st.lists(sizes, min_size=min_rank, max_size=max_rank).map(tuple)
