"""The size of machine code: no sample kernel gets more than 10 % worse than what is recorded.

    python -m tests.targets.test_machine_code_counts        records the counts anew

The samples are rows of `benchmarks.sass_counts`. Counts depend on the release of ptxas, so another one than that of the
record skips the test. `benchmarks.static_kernels` counts more, over a corpus and beside Triton.
"""

import json
from pathlib import Path

import pytest

from benchmarks.compiler_of_kernels import load
from benchmarks.sass_counts import ROWS, cubin_of, registers_of
from tests.targets.cuda_tools import needs_ptxas
from tilework import knobs
from tilework.targets.elf_sections import read_sections
from tilework.targets.nvidia.cubin_info import info_records

RECORD = Path(__file__).with_suffix(".json")
SAMPLE = [
    "matmul f16 128x128x64", "descriptors f16 128x256x64", "attention f16 D64", "softmax f32", "layernorm bf16",
    "transpose f32", "cumsum f32", "sort f32", "histogram i32", "rms_norm f16", "gather_rows bf16", "silu_times bf16",
    "row_sums f32", "small_matmul f16",
]  # fmt: skip
NOP, FRAME_SIZE = 0x918, 0x11


def counts(cubin: bytes) -> dict[str, int]:
    """Return the instructions of a kernel, the registers of a thread and its bytes of stack (spills)."""
    sections = read_sections(cubin)
    code = b"".join(section.data for section in sections if section.name.startswith(".text."))
    opcodes = [int.from_bytes(code[at : at + 2], "little") & 0xFFF for at in range(0, len(code), 16)]
    info = next(section.data for section in sections if section.name == ".nv.info")
    frames = [
        int.from_bytes(value[4:8], "little") for attribute, value in info_records(info) if attribute == FRAME_SIZE
    ]
    return {
        "instructions": len(opcodes) - opcodes.count(NOP),
        "registers": registers_of(cubin),
        "stack": max(frames, default=0),
    }


def counts_of_row(name: str) -> dict[str, int]:
    return counts(cubin_of(ROWS[name], "tilework", load("tilework")))


@needs_ptxas
@pytest.mark.parametrize("name", SAMPLE)
def test_machine_code_is_not_worse_than_recorded(name: str) -> None:
    recorded = json.loads(RECORD.read_text())
    if (release := knobs.nvidia.ptxas.version) != recorded["ptxas"]:
        pytest.skip(f"the record is of ptxas {recorded['ptxas']}, this is {release}")
    now, before = counts_of_row(name), recorded["counts"][name]
    worse = {field: (now[field], most) for field, most in before.items() if now[field] > most * 1.1}
    assert not worse, f"{name}: (now, recorded) {worse}; see the docstring of this file"


def record() -> None:
    made = {name: counts_of_row(name) for name in SAMPLE}
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in made.items())
    RECORD.write_text(f'{{"ptxas": {json.dumps(knobs.nvidia.ptxas.version)}, "counts": {{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    record()
