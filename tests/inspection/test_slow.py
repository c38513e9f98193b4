"""Why a kernel is slow: what the passes say at the user's lines, ordered, with what to try; counters of the emulator;
the CPU."""

import json
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.inspect.findings import Finding


@tilework.jit
def strided(x, out, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * stride)  # far apart
    tl.store(out + i, v + 1)  # side by side


@tilework.jit
def counts(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i), 1)


@tilework.jit
def gathered(x, out, index, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (tl.load(index + i) if STEP == 0 else i * STEP)))


def slow(kernel: Any, *args: Any, **options: Any) -> list[Finding]:
    section = kernel.explain(*args, why="slow", **options).section("slow")
    assert section is not None
    return list(section.findings)


def test_what_is_not_vectorised_on_the_cpu() -> None:
    x, out = np.zeros(4096, np.float32), np.zeros(512, np.float32)
    found = slow(strided, x, out, 3, BLOCK=256, grid=(64,))
    assert len(found) == 1 and found[0].span is not None and "# far apart" in found[0].span.text
    assert (
        "this load is done one element at a time: how far its addresses are apart is known only at run time"
        in found[0].title
    )
    (found,) = slow(strided, x, out, 1, BLOCK=256, grid=(64,))
    assert "nothing that would make it slow was found" in found.title
    (found,) = slow(counts, np.zeros(64, np.int32), np.zeros(8, np.int32), BLOCK=64)
    assert "tt.atomic_rmw has no vector form" in found.title


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (0, "its addresses follow no line that the compiler can see"),
        (2, "its addresses are 8 bytes apart, and an element has 4"),
    ],
)
def test_reasons_for_loads_of_one_element(step: int, reason: str) -> None:
    x, out, index = np.zeros(512, np.float32), np.zeros(256, np.float32), np.zeros(256, np.int32)
    (found,) = slow(gathered, x, out, index, BLOCK=256, STEP=step)
    assert f"this load is done one element at a time: {reason}" in found.title


@tilework.jit
def rows(x, out, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tl.store(out + i[:, None] * stride + j, tl.load(x + i[:, None] * stride + j) * 2)


@pytest.mark.parametrize(
    ("machine", "columns", "words"),
    [
        ("cpu:armv8-a", 4, ""),  # 32 are computed at once where there are so many, and a register holds 4
        (
            "cpu:armv8-a",
            2,
            "vectors have 2 elements here, and a register of 128 bits holds 4: the tile has 2 along dimension 1",
        ),
        ("cpu:x86-64-v3", 8, ""),
        ("cpu:x86-64-v3", 4, "vectors have 4 elements here, and a register of 256 bits holds 8"),
        ("cpu:x86-64-v4", 16, ""),
        ("cpu:x86-64-v4", 8, "vectors have 8 elements here, and a register of 512 bits holds 16"),
    ],
)
def test_vectors_are_measured_by_the_registers_of_the_machine(machine: str, columns: int, words: str) -> None:
    x = np.zeros((64, 32), np.float32)
    (found,) = slow(rows, x, x.copy(), 32, ROWS=64, COLUMNS=columns, grid=(1,), target=machine)
    assert (words or "nothing that would make it slow was found") in found.title
    assert (found.help == "make that dimension of the tile longer") == bool(words)


@pytest.mark.parametrize(
    ("target", "operands"),
    [("cuda:75", ""), ("cuda:80", "f16, bf16, int8 or"), ("cuda:89", "f16, bf16, fp8, int8 or")],
)
def test_advice_about_dots_is_what_the_gpu_can_do(target: str, operands: str) -> None:
    a, c = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    found = [one for one in slow(precise, a, a, c, B=32, grid=(1,), target=target) if "tensor cores" in one.title]
    assert found and all(operands in one.help and bool(one.help) == bool(operands) for one in found)
    assert all((one.weight > 1) == bool(operands) for one in found)


@tilework.jit
def precise(a, b, c, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i), input_precision="ieee"))


def test_cores_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "8")
    x, out = np.zeros(1 << 18, np.float32), np.zeros(512, np.float32)
    found = slow(strided, x, out, 1, BLOCK=256, grid=(2,))
    assert "the grid has 2 programs for 8 threads" in found[0].title and found[0].weight == 4.0


def test_what_limits_it_on_a_gpu_with_the_emulators_counts() -> None:
    x, out = np.zeros(8192, np.float32), np.zeros(1024, np.float32)
    found = slow(strided, x, out, 8, BLOCK=128, num_warps=1, grid=(4,), target="cuda:90")
    first = found[0]
    assert first.span is not None and "# far apart" in first.span.text and first.weight == 8.0
    assert (
        "accesses are not coalesced: 512 sectors of memory are touched, 64 would hold what threads want" in first.title
    )
    assert sum("not coalesced" in finding.title for finding in found) == 1, "reported once, as it was counted"
    assert any("the limit of this kernel is DRAM" in finding.title and finding.notes for finding in found)
    held = next(finding for finding in found if "on a multiprocessor" in finding.title)
    assert held.facts["blocks"] == 32 and held.facts["limit"] == "blocks"
    assert [finding.weight for finding in found] == sorted((finding.weight for finding in found), reverse=True)


@tilework.jit
def product(a, b, c, K, B: tl.constexpr):
    i, k = tl.arange(0, B), tl.arange(0, 32)
    acc = tl.zeros((B, B), tl.float32)
    for s in range(0, K, 32):
        acc += tl.dot(tl.load(a + i[:, None] * K + s + k), tl.load(b + (s + k)[:, None] * B + i))
    tl.store(c + i[:, None] * B + i, acc)


def test_spills_come_first() -> None:
    if tilework.knobs.nvidia.find_tool("ptxas") is None:
        pytest.skip("ptxas tells registers")
    a, c = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32)
    found = slow(product, a, a, c, 64, B=64, num_stages=1, maxnreg=32, target="cuda:80")
    spills = next(finding for finding in found if "registers are spilled" in finding.title)
    assert spills.facts["registers"] == 32 and spills.facts["spilled_bytes"] > 0 and spills.weight > 2
    pipelined = next(finding for finding in found if "the loop is not pipelined: num_stages is 1" in finding.title)
    assert pipelined.help.startswith("num_stages=3") and found.index(spills) < found.index(pipelined)


def test_compiled_kernels_explain_themselves_and_json_says_the_same() -> None:
    x, out = np.zeros(4096, np.float32), np.zeros(256, np.float32)
    kernel = strided[(1,)](x, out, 5, BLOCK=256)
    shown = kernel.explain()
    assert "one element at a time" in str(shown)
    data = json.loads(shown.to_json())
    assert data["slow"]["findings"][0]["span"]["line"] == strided.def_line + 2
    assert "cannot be compiled" not in str(kernel.explain(target="hip:gfx942"))


def test_questions_without_an_answer() -> None:
    with pytest.raises(ValueError, match="explain answers compiled, tuned, slow, different, not 'fast'"):
        strided.explain(why="fast")
    with pytest.raises(TypeError, match="give it the arguments of one, and grid="):
        strided.explain(why="different")
    with pytest.raises(TypeError, match="missing"):
        strided.explain(np.zeros(4, np.float32))
