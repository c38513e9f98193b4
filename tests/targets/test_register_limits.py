"""Kernels that spill, or whose registers leave few warps on a multiprocessor, are assembled a second time."""

import re
from collections.abc import Iterator
from functools import partial

import pytest

from tests.targets.cuda_tools import needs_ptxas
from tilework import jit, knobs
from tilework import language as tl
from tilework.analysis.cost import assembled_cost, registers_for_another_block, registers_for_blocks
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.errors import PTXASError
from tilework.target import Target
from tilework.targets.nvidia import cubin
from tilework.targets.nvidia.cubin import Answer, CubinSettings, answer_of, assemble, to_cubin
from tilework.targets.nvidia.ptx_text import with_maxnreg
from tilework.targets.nvidia.variants import Variants, loaded_registers, variants_of

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


def test_cost() -> None:
    """Another block is worth the latency that it hides, up to half of the warps; spills cost their bytes."""
    cost = partial(assembled_cost, HOPPER, shared=0, warps=16)
    assert cost(68, 0) == 2 * cost(64, 0) and cost(64, 0) == cost(32, 0)
    assert cost(64, 40) < cost(68, 0) < cost(64, 400)
    assert cost(255, 0) < cost(32, 400)
    assert cost(64, 0) == cost(64, 0, loaded=48) < cost(63, 0, loaded=48) < cost(68, 0, loaded=48)


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "most"), [(42, 0, 32, 64), (48, 0, 16, 64), (68, 0, 16, 128), (30, 0, 4, 32)]
)
def test_most_registers_of_as_many_blocks(registers: int, shared: int, warps: int, most: int) -> None:
    assert registers_for_blocks(HOPPER, registers, shared, warps) == most


def test_runs_of_loads() -> None:
    assert loaded_registers(kernel()) == VALUES
    assert loaded_registers("") == 0
    loads = (
        "@%p2 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5];\nld.global.L1::evict_last.v2.b64 {%rd1, %rd2}, [%rd5];\n"
    )
    assert loaded_registers(loads) == loaded_registers(loads + "st.global.b32 [%rd1], %r1;\n" + loads) == 8
    assert loaded_registers(loads + "ld.global.b16 %rs1, [%rd5];\nld.shared.b32 %r1, [%r2];") == 9
    assert loaded_registers("".join(f"{loads}{end}\n" for end in ("bar.sync 0;", "@%p1 bra $L1;", "$L1:"))) == 8


def others(ptx: str, answer: Answer, reordered: str | None = None, loaded: int = 0) -> list[str]:
    found = variants_of(ptx, HOPPER, None if reordered is None else lambda: reordered)
    if found is None:
        return []
    found = Variants(found.ptx, found.target, found.shared, found.warps, loaded, found.reordered)
    return [text for text, _ in found.others(answer)]


def limited(*limits: int) -> list[str]:
    return [with_maxnreg(kernel(), limit) for limit in limits]


def test_other_variants() -> None:
    assert others(kernel(), Answer(60, 0), "other") == []  # two blocks, half of the warps
    assert others(kernel(), Answer(48, 0), "other", loaded=40) == [*limited(64), "other"]
    assert others(kernel(), Answer(30, 0), "other", loaded=16) == ["other"]  # ptxas aims at 32 by itself
    assert others(kernel(), Answer(48, 0), "other", loaded=60) == ["other"]  # with 76 registers one block fits
    assert others(kernel(), Answer(68, 0)) == others(kernel(), Answer(68, 0), kernel()) == limited(64)
    assert others(kernel(), Answer(68, 0), "other") == [*limited(64), "other"]
    assert others(kernel(), Answer(128, 0), "other") == others(kernel(), Answer(128, 400), "other") == ["other"]
    assert others(kernel(), Answer(32, 400), "other") == limited(128)  # ptxas has not used what there is
    assert others(kernel(), Answer(64, 8), "other") == []  # a spill that costs less than a block


def test_kernels_that_are_assembled_once() -> None:
    for ptx in (
        kernel(".reqntid 512\n.maxnreg 100"),
        kernel(".reqntid 512\n.minnctapersm 1"),
        kernel(".maxntid 512"),
        kernel().partition("\n")[2],  # not ours
    ):
        assert others(ptx, Answer(68, 0), "other") == others(ptx, Answer(32, 400)) == []
    copying = kernel(more="cp.async.wait_all;")
    assert others(copying, Answer(68, 0), "other") == others(copying, Answer(128, 400), "other") == []
    assert others(copying, Answer(32, 400)) == [with_maxnreg(copying, 128)]
    assert variants_of(kernel(), Target.parse("cuda:75"), None) is None  # its rates are not known


def test_cheapest_variant_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variants are assembled until one costs less than the others before it and does not spill."""
    failed = Answer(0, 0)

    def kept(*answers: Answer) -> tuple[int, int]:
        """Return the index of the cubin that is kept, and the number of assemblies."""
        left = list(enumerate(answers))

        def assemble(*_: object) -> tuple[str, bytes]:
            index, answer = left.pop(0)
            if answer is failed:
                raise PTXASError("more registers are needed")
            log = f"0 bytes stack frame, {answer.spilled} bytes spill stores, 0 bytes spill loads\n"
            return f"{log}Used {answer.registers} registers", bytes([index])

        monkeypatch.setattr(cubin, "assemble", assemble)
        monkeypatch.setattr(Variants, "others", lambda self, answer: [("", "")] * (len(answers) - 1))
        data = to_cubin(kernel(), "scale", CubinSettings("sm_90a"), "ptxas", variants_of(kernel(), HOPPER, None))
        return data[0], len(answers) - len(left)

    first, two_blocks, spilling, little = Answer(78, 0), Answer(58, 0), Answer(64, 800), Answer(64, 4)
    assert kept(first) == (0, 1)
    assert kept(first, two_blocks, two_blocks) == (1, 2)
    assert (
        kept(first, spilling, two_blocks)
        == kept(first, little, two_blocks)
        == kept(first, failed, two_blocks)
        == (2, 3)
    )
    assert kept(first, little, first) == (1, 3)
    assert kept(first, spilling, Answer(86, 0)) == (0, 3)


@needs_ptxas
def test_answer_of_ptxas() -> None:
    def answer(ptx: str) -> Answer | None:
        return answer_of(assemble(ptx, "scale", CubinSettings("sm_90a"), knobs.nvidia.ptxas.path)[0])

    free, tight = answer(kernel()), answer(with_maxnreg(kernel(), 24))
    assert free is not None and tight is not None
    assert free.registers > VALUES and free.spilled == 0 and tight.registers == 24 and tight.spilled > 8 * VALUES
    assert answer(kernel() + kernel().split(".address_size 64")[1].replace("scale", "other")) is None  # two kernels


@jit
def gated(grad, a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    g = tl.load(grad + at, mask=inside, other=0).to(tl.float32)
    x = tl.load(a + at, mask=inside, other=0).to(tl.float32)
    y = tl.load(b + at, mask=inside, other=0)
    gate = tl.sigmoid(x)
    tl.store(a + at, g * (gate + x * gate * (1 - gate)) * y, mask=inside)
    tl.store(b + at, g * x * gate, mask=inside)


@needs_ptxas
def test_order_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages pass the other order to the assembler, if PTX is that of this compilation."""
    source = ASTSource(
        gated, dict.fromkeys(("grad", "a", "b"), "*bf16") | {"n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 16384}
    )
    seen: list[str] = []
    reordered = Variants.others

    def others(self: Variants, answer: Answer) -> Iterator[tuple[str, str]]:
        assert self.reordered is not None
        seen.extend((self.ptx, self.reordered()))
        return reordered(self, answer)

    monkeypatch.setattr(Variants, "others", others)
    ptx = lower(source, GPUTarget("cuda", 90, 32), ["ptx", "cubin"], num_warps=16)["ptx"]
    given, other = seen
    assert given == ptx and given != other and instructions(given) == instructions(other)


def instructions(ptx: str) -> list[str]:
    return sorted(re.findall(r"^\s+([a-z][\w.]+)[^;\n]*;$", ptx, re.MULTILINE))
