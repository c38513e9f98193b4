"""Kernels whose registers leave few warps on a multiprocessor are assembled a second time, with fewer."""

from collections.abc import Callable

import pytest

from tests.targets.cuda_tools import needs_ptxas
from tilework import knobs
from tilework.analysis.cost import registers_for_another_block
from tilework.target import Target
from tilework.targets.nvidia import cubin
from tilework.targets.nvidia.cubin import CubinSettings, to_cubin
from tilework.targets.nvidia.pipeline import fewer_registers

HOPPER = Target.parse("cuda:90")
VALUES = 60


def kernel(directives: str = ".reqntid 512", more: str = "") -> str:
    """Return PTX that multiplies values by their sum: all of them are live when it is known."""
    body = [f"ld.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(VALUES)]
    body += ["mov.f32 %g0, %f0;", *(f"add.f32 %g{i}, %g{i - 1}, %f{i};" for i in range(1, VALUES))]
    for i in range(VALUES):
        body += [f"mul.f32 %f{i}, %f{i}, %g{VALUES - 1};", f"st.global.f32 [%rd1+{4 * i}], %f{i};"]
    return f"""// tilework: {{"shared": 0}}
.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 p)
{directives}
{{
  .reg .b64 %rd<2>; .reg .f32 %f<{VALUES}>; .reg .f32 %g<{VALUES}>;
  ld.param.u64 %rd1, [p];
  {" ".join(body)}
  {more}
  ret;
}}
"""


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "fewer"),
    [
        (68, 0, 16, 64),  # one block of 16 warps, two with 64 registers
        (64, 0, 16, None),  # half of the warps
        (128, 0, 16, None),  # 64 are far fewer
        (128, 0, 4, 96),
        (100, 0, 8, 80),
        (68, 200 << 10, 16, None),  # shared memory limits it
    ],
)
def test_limit(registers: int, shared: int, warps: int, fewer: int | None) -> None:
    assert registers_for_another_block(HOPPER, registers, shared, warps) == fewer


def test_kernels_without_a_second_assembly() -> None:
    asked = fewer_registers(kernel(), HOPPER)
    assert asked is not None and asked(68) == 64 and asked(60) is None
    assert fewer_registers(kernel(".reqntid 512\n.maxnreg 100"), HOPPER) is None
    assert fewer_registers(kernel(".reqntid 512\n.minnctapersm 1"), HOPPER) is None
    assert fewer_registers(kernel(more="cp.async.wait_all;"), HOPPER) is None
    assert fewer_registers(kernel().partition("\n")[2], HOPPER) is None  # not ours


@needs_ptxas
def test_cubins_that_spill_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    assemble = cubin.assemble

    def counted(ptx: str, *rest: object) -> tuple[str, bytes]:
        seen.append(assemble(ptx, *rest)[0])  # type: ignore[arg-type]
        return seen[-1], bytes([len(seen)])

    def made(fewer: Callable[[int], int | None] | None) -> bytes:
        seen.clear()
        return to_cubin(kernel(), "scale", CubinSettings("sm_90a"), knobs.nvidia.ptxas.path, fewer)

    monkeypatch.setattr(cubin, "assemble", counted)
    assert made(None) == made(lambda used: None) == b"\x01" and len(seen) == 1
    assert made(lambda used: 24) == b"\x01" and len(seen) == 2 and " 0 bytes spill stores" not in seen[1]
    assert made(lambda used: used + 8) == b"\x02" and " 0 bytes spill stores" in seen[1]
