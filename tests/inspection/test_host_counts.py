"""Counts, limit and estimate of kernels on the CPU, as the explorer shows them."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.inspection.documents import SIZE, line_of, request
from tilework.compiler import ASTSource
from tilework.inspect import host_counts
from tilework.inspect.compilation import Request
from tilework.inspect.explorer.compare import compare, comparison_text
from tilework.inspect.explorer.document import build
from tilework.inspect.host_counts import HostCounts, count_instruction
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.replay import Launch
from tilework.targets.base import GPUTarget

Numbers = dict[str, int]


def use_limits(monkeypatch: pytest.MonkeyPatch, machine: str, rates: dict[str, float]) -> None:
    """Have these been measured on the machine of this test."""
    found = Limits(machine, rates, None)
    monkeypatch.setattr(Limits, "load", staticmethod(lambda: found))


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with round numbers."""
    known = {"copy": 1e10, "fp32": 6.4e10}
    use_limits(monkeypatch, "cpu, test", known)


def by_line(document: dict[str, Any], index: int = 0) -> dict[int, Numbers]:
    counters = document["kernels"][index]["counters"]
    return {document["locations"][location][0][1]: numbers for location, numbers in counters["lines"]}


def test_what_masks_leave_is_counted() -> None:
    document = build([request("cpu:x86-64-v3")])
    lines, counters = by_line(document), document["kernels"][0]["counters"]
    assert (counters["programs"], counters["of"], counters["note"]) == (4, 4, "")
    # 1008 of 4 * 256 elements of 4 bytes; a register holds 8
    assert lines[line_of("x = tl.load")] | {"code": 0, "vector": 0} == {
        **{"instructions": 4 * 256 // 8, "flops": 0, "loaded": 4 * SIZE, "stored": 0},
        **{"code": 0, "vector": 0, "width": 256, "spills": 0},
    }
    assert lines[line_of("tl.store")]["stored"] == 4 * SIZE and lines[line_of("return x")]["flops"] == 1024
    assert counters["total"]["loaded"] == 2 * 4 * SIZE and counters["total"]["flops"] == 2 * 1024
    assert document["kernels"][0]["limits"] == {
        "why": "Limits are measured on this machine, and this is code for cpu:x86-64-v3: none is known."
    }


def test_the_limit_and_the_estimate_of_a_launch() -> None:
    (entry,) = build([request("cpu")])["kernels"]
    (code,) = entry["limits"]["codes"]
    assert code["cycles"]["memory"] == pytest.approx(3 * 4 * SIZE / 1e10 * 1e6)
    assert code["cycles"]["arithmetic"] == pytest.approx(2 * 1024 / 6.4e10 * 1e6)
    assert (code["limit"], code["bound"]) == ("memory", code["cycles"]["memory"])
    assert (
        code["estimate"] == max(code["cycles"].values()) and "1.21 us, for memory: 0.0121 MB at 10 GB/s" in code["text"]
    )
    metrics = {name: (value, of) for name, value, of in entry["metrics"]}
    assert metrics["limit"] == ("memory", "1.21 us of the launch") and 0 < metrics["estimate"][0] <= 100


@tilework.jit
def busy(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i))
    tl.store(out + tl.program_id(0), tl.sum(v))


@tilework.jit
def product(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)
    tl.store(out + i, tl.dot(tl.load(a + i), tl.load(b + i)))


def requested(kernel: Any, types: dict[str, str], arrays: list[Any], size: int, programs: int) -> Request:
    source = ASTSource(kernel, {**types, "N": "constexpr"}, {"N": size})
    return Request(source, GPUTarget.parse("cpu"), {}, Launch.of(kernel, (*arrays, size), (programs,)).copied())


def test_functions_reductions_and_dots_have_their_costs() -> None:
    lanes = host_counts.named_machine("").facts.lanes(32)
    x, out = np.ones(256, np.float32), np.zeros(1000, np.float32)
    made = build([requested(busy, {"x": "*fp32", "out": "*fp32"}, [x, out], 256, 1000)])
    counters = made["kernels"][0]["counters"]
    first = busy.def_line
    lines = by_line(made)
    assert (counters["programs"], counters["of"]) == (4, 1000)
    assert lines[first + 2]["instructions"] == 4 * (1 + host_counts.FUNCTION) * 256 // lanes
    assert counters["total"]["flops"] == 4 * 2 * 256 and lines[first + 3]["stored"] == 4 * 4
    (code,) = made["kernels"][0]["limits"]["codes"]
    each = counters["total"]["instructions"] / 4
    assert code["cycles"]["vector instructions"] == pytest.approx(each * 1000 * 2 * lanes / 6.4e10 * 1e6, rel=0.01)
    assert code["limit"] == "arithmetic" and code["estimate"] > 10 * code["bound"]
    a = np.ones((32, 32), np.float32)
    made = build([requested(product, {"a": "*fp32", "b": "*fp32", "out": "*fp32"}, [a, a, a.copy()], 32, 1)])
    assert made["kernels"][0]["counters"]["total"]["flops"] == 2 * 32**3


def test_what_cannot_be_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = build([request("cpu", launched=False)])["kernels"][0]
    assert unknown["limits"]["why"].startswith("A limit is that of a launch, and no launch is known: explore a program")
    assert unknown["counters"]["note"].startswith("These are of the assembly alone: no launch is known")
    assert [name for name, *_ in unknown["counters"]["columns"]] == ["code", "vector", "width", "spills"]
    use_limits(monkeypatch, "cpu, test", {})
    assert "have not been measured" in build([request("cpu")])["kernels"][0]["limits"]["why"]
    use_limits(monkeypatch, "cuda:90, 132 multiprocessors", {})
    assert "The active device is cuda:90" in build([request("cpu")])["kernels"][0]["limits"]["why"]
    monkeypatch.setattr(host_counts, "evaluate", lambda *args, **more: 1 // 0)
    failed = build([request("cpu")])["kernels"][0]["counters"]
    assert "the launch failed in the evaluator: integer division" in failed["note"] and "programs" not in failed


def test_unknown_limits_are_measured_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"copy": 2e10, "fp32": 1e11}
    use_limits(monkeypatch, "cpu, test", {})
    monkeypatch.setattr(Limits, "get", lambda self, name, measure: values[name])
    assert "codes" not in build([request("cpu")])["kernels"][0]["limits"]
    (code,) = build([request("cpu")], measures=True)["kernels"][0]["limits"]["codes"]
    assert code["cycles"]["memory"] == pytest.approx(3 * 4 * SIZE / 2e10 * 1e6)


def test_arguments_stay_as_they_are() -> None:
    made = request("cpu")
    assert made.launch is not None
    before = [value.copy() for value in made.launch.values if isinstance(value, np.ndarray)]
    build([made])
    after = [value for value in made.launch.values if isinstance(value, np.ndarray)]
    assert all(map(np.array_equal, before, after))


def test_two_kernels_are_compared() -> None:
    shown = comparison_text(compare(build([request("cpu")]), build([request("cpu", block=128)])))
    assert "bytes loaded" in shown and "by the evaluator" in shown


@pytest.mark.parametrize(
    ("text", "vector", "width", "spills"),
    [
        ("        vaddps  64(%rax,%r10,4), %zmm2, %zmm2", 1, 512, 0),
        ("        vmulps  %ymm0, %ymm1, %ymm1", 1, 256, 0),
        ("        addps   %xmm0, %xmm1", 1, 128, 0),
        ("        vaddss  %xmm0, %xmm1, %xmm1", 0, 0, 0),
        ("        vcvtsi2ss %eax, %xmm1, %xmm1", 0, 0, 0),
        ("        vmovd   %eax, %xmm1", 0, 0, 0),
        ("        movq    %rax, -8(%rsp)", 0, 0, 1),
        ("        vmovups %zmm3, 64(%rsp)", 1, 512, 1),
        ("        addq    $64, %rsp", 0, 0, 0),
        ("        fadd    v1.4s, v2.4s, v6.4s", 1, 128, 0),
        ("        ldp     q0, q1, [x15, #32]", 1, 128, 0),
        ("        str     q0, [sp, #16]", 1, 128, 1),
        ("        ldr     x8, [sp]", 0, 0, 1),
        ("        stp     x29, x30, [sp, #-16]!", 0, 0, 0),
        ("        fadd    s0, s1, s2", 0, 0, 0),
        ("        ret", 0, 0, 0),
    ],
)
def test_instructions_of_the_assembly(text: str, vector: int, width: int, spills: int) -> None:
    lines: dict[Any, HostCounts] = {}
    count_instruction(text, lines, [("k.py", 3, 0)])
    counts = lines["k.py", 3]
    assert (counts.code, counts.vector, counts.width, counts.spills) == (1, vector, width, spills)


@pytest.mark.parametrize("text", [".LBB0_2:", "        .p2align 4", "", "scaled_sum:", "// a comment"])
def test_what_is_no_instruction(text: str) -> None:
    lines: dict[Any, HostCounts] = {}
    count_instruction(text, lines, [("k.py", 3, 0)])
    assert not lines
