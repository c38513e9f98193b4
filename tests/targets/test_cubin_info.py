"""The sizes of a kernel's parameters from its cubin are those that its PTX declares; what is damaged says nothing."""

import random

import pytest

from tests.targets.cuda_tools import needs_ptxas
from tilework.errors import StageError
from tilework.runtime.devices.cuda import driver
from tilework.runtime.devices.gpu.parameters import parameters_of_ptx
from tilework.targets.elf_sections import read_sections
from tilework.targets.nvidia.cubin import CubinSettings, to_cubin
from tilework.targets.nvidia.cubin_info import parameter_sizes
from tilework.targets.nvidia.pipeline import assembler

PTX = """.version 8.6
.target sm_80
.address_size 64
.visible .entry mixed(.param .u8 a, .param .u64 .ptr .global .align 16 p, .param .u16 b, .param .align 64 .b8 map[128],
.param .f64 c,
    .param .s32 d, .param .f32 e, .param .align 1 .b8 f[3], .param .align 8 .b8 g[24], .param .u64 scratch,
    .param .u8 h) { ret; }
.visible .entry mixed_too(.param .u64 p) { ret; }
.visible .entry large(.param .u8 a, .param .align 4 .b8 b[20000], .param .u64 p) { ret; }
.visible .entry none() { ret; }
"""
DECLARED = {
    name: tuple(one.size for one in parameters_of_ptx(PTX, name) or ())
    for name in ("mixed", "mixed_too", "large", "none")
}


def assembled(cpu: str) -> bytes:
    tool = assembler(int(cpu.rstrip("a")))
    assert tool is not None
    return to_cubin(PTX, "mixed", CubinSettings(f"sm_{cpu}"), tool.path)


@needs_ptxas
@pytest.mark.parametrize("cpu", ["80", "90a", "100a"])
def test_sizes_are_those_of_the_ptx(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(driver, "library")  # it is not asked: its refusals are errors to tools that look at the program
    data, utils = assembled(cpu), driver.CudaUtils()
    assert {name: tuple(one.size for one in utils.declared(0, name, data) or ()) for name in DECLARED} == DECLARED
    assert parameter_sizes(data, "none") == () and parameter_sizes(data, "mix") is None


@needs_ptxas
def test_damage_is_not_believed() -> None:
    data, draw = assembled("90a"), random.Random(0)
    records = next(section.data for section in read_sections(data) if section.name == ".nv.info.mixed")
    start, declared = data.index(records), DECLARED["mixed"]
    for cut in range(0, len(data), 97):
        assert parameter_sizes(data[:cut], "mixed") in (None, declared)
    for at in range(start, start + len(records), 4):
        assert parameter_sizes(data[:at] + bytes(4) + data[at + 4 :], "mixed") in (None, declared)
    for _ in range(300):  # in the tables of the file
        at = draw.choice([draw.randrange(64), draw.randrange(len(data) - 2048, len(data))])
        parameter_sizes(data[:at] + draw.randbytes(8) + data[at + 8 :], "mixed")


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"\x7fELF.version 8.0", b"\x50\xed\x55\xba" + bytes(99), b"\x7fELF\2\1" + b"\xff" * 99]
)
def test_other_files(data: bytes) -> None:
    assert parameter_sizes(data, "mixed") is None
    with pytest.raises(StageError, match="ELF file"):
        read_sections(data)
