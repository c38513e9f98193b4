"""Generated kernels of all kinds on all devices that need no GPU; `make fuzz` runs more of them."""

from pathlib import Path

import pytest

from tests.fuzz.amount import EXAMPLES, amount
from tests.fuzz.comparison import explain
from tests.fuzz.devices import FAILURES, REFUSED, generated, outcome_of

CHUNK = 4
CHUNKS = [(device, first) for device, few in EXAMPLES.items() for first in range(0, amount(few), CHUNK)]


@pytest.mark.parametrize(("device", "first"), CHUNKS)
def test_generated_kernels_agree_with_the_interpreter(device: str, first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        generator, kernel = generated(seed, device)
        found = outcome_of(kernel, device, tmp_path)
        words = f"python -m tests.fuzz --seed {seed} --only {device}"
        assert found.kind not in (*FAILURES, REFUSED), f"{words} ({generator})\n{explain(kernel, found.why)}"
