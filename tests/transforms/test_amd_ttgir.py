"""All passes for AMD GPUs, one after the other, make the ops and layouts that Triton 3.6 makes of the same TTIR."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.target import Target
from tilework.targets.amd.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline

REFERENCE = Path(__file__).parents[1] / "ir" / "reference"
POINTER = re.compile(r"(!tt\.ptr<\w+> \{tt\.divisibility = 16 : i32)(?=\})")
LAYOUT = re.compile(r"^#\w+ = (#ttg\.(?!shared_memory).*)$", re.MULTILINE)
OP = re.compile(r"^ *(?:%[\w:]+ = )?((?:tt|ttg|amdg|rocdl|gpu|scf)\.(?!splat)[\w.]+)", re.MULTILINE)  # splats are free


@pytest.mark.parametrize(
    ("kernel", "arch", "warps", "stages"),
    [("matmul_f16_128", "gfx942", 4, 2), ("matmul_f16_small", "gfx1100", 4, 4), ("attention", "gfx942", 4, 3)],
)
def test_ops_and_layouts_are_tritons(kernel: str, arch: str, warps: int, stages: int) -> None:
    target = Target.parse(f"hip:{arch}")
    source = next(
        path for path in (REFERENCE / folder / f"{kernel}.ttir" for folder in ("amd", "sm_90")) if path.exists()
    )
    module = parse_module(POINTER.sub(r"\1, tt.pointer_range = 32 : i32", source.read_text()))
    for item in ttgir_pipeline(target, warps, stages):
        run_pipeline(module, parse_pipeline(item))
    wanted = parse_module((REFERENCE / "amd" / f"{kernel}.{arch}.ttgir").read_text())
    ours, theirs = print_module(module), print_module(wanted)  # wmma by bases
    assert Counter(OP.findall(ours)) == Counter(OP.findall(theirs))
    assert sorted(LAYOUT.findall(ours)) == sorted(LAYOUT.findall(theirs))
