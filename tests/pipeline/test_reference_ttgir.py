"""From Triton's TTIR our passes make the TTGIR that Triton 3.7.1 makes, op by op, for its reference kernels."""

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.transforms.ttg.reference import normal
from tilework.ir.module_facts import num_warps, target
from tilework.ir.parser import parse_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline
from tilework.transforms.ttg import coalesce

REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
PAIRS = {
    f"{path.parent.name}/{path.stem}": path
    for path in sorted(REFERENCE.glob("sm_*/*.ttgir"))
    if path.with_suffix(".ttir").exists()
}
NUM_STAGES = {"matmul_f16_small": 4}
CONSTANT = re.compile(r"\s*%\S+ = arith\.constant ")


def lines(module: ModuleOp) -> list[str]:
    """The normalised text; the constants of a function, in no order, come first."""
    found = normal(module).splitlines()
    return sorted(line for line in found if CONSTANT.match(line)) + [line for line in found if not CONSTANT.match(line)]


@pytest.mark.parametrize("kernel", PAIRS)
def test_our_passes_decide_as_tritons(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_PLAIN_DOTS", "1")
    monkeypatch.setenv("TILEWORK_WARP_SPECIALIZE", "1")
    monkeypatch.setattr(coalesce, "loads_for_tables", lambda *_: {})  # atomics that we collect in shared memory
    path = PAIRS[kernel]
    wanted = parse_module(path.read_text())
    module = parse_module(path.with_suffix(".ttir").read_text())
    items = ttgir_pipeline(target(wanted), num_warps(wanted), NUM_STAGES.get(path.stem, 3))
    run_pipeline(module, [one for item in items for one in parse_pipeline(item)])
    assert lines(module) == lines(wanted)


def test_there_are_pairs() -> None:
    assert len(PAIRS) >= 12
