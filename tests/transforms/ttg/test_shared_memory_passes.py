"""Shared memory: where Triton places the buffers of the reference kernels, and laws that hold for all."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.allocation import Buffer, Interval, aligned, assign_offsets, module_allocation
from tilework.analysis.membar import barriers
from tilework.inspect.check_each import check_each, parts
from tilework.ir import ttg
from tilework.ir.create import clone_op
from tilework.ir.enums import AddrSpace
from tilework.ir.locations import unknown
from tilework.ir.module_facts import target
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import first_problem
from tilework.target import Target
from tilework.transforms.registry import parse_pipeline, run_pipeline

TESTS = Path(__file__).parent.parent.parent
REFERENCE = TESTS / "ir" / "reference"
# The kernel, Triton's bytes of shared memory and offsets in program order, and the barriers it inserts between ops.
TRITON = (
    ("sm_80/add", 0, (), 0),
    ("sm_80/attention", 49152, (0, 16384, 32768, 0), 4),
    ("sm_80/cumsum", 64, (0,), 0),
    ("sm_80/histogram", 8192, (0, 0), 1),  # and ours collects atomics in shared memory
    ("sm_80/layernorm", 32, (0, 0), 1),
    ("sm_80/matmul_f16", 98304, (65536, 0, 0), 4),
    ("sm_80/softmax", 32, (0, 0), 1),
    ("sm_80/transpose", 16384, (0,), 0),
    ("sm_90/add", 0, (), 0),
    ("sm_90/attention", 65536, (49152, 0, 24576, 0), 4),
    ("sm_90/matmul_descriptor", 147480, (98304, 0, 147456, 0), 15),  # Triton: 17; one warp starts all copies of a turn
    ("sm_90/matmul_f16", 147456, (98304, 0, 0), 4),
    ("sm_90/matmul_fp8", 32768, (0, 24576, 0), 5),
    ("sm_90/matmul_tf32", 98304, (0, 49152, 0), 4),
    ("sm_90/softmax", 32, (0, 0), 1),
)
PASSES = (
    "allocate-shared-memory",
    "allocate-shared-memory-nv",
    "tritongpu-reduce-data-duplication",
    "tritongpu-reorder-instructions",
    "triton-nvidia-gpu-fence-insertion",
    "triton-nvidia-gpu-proxy-fence-insertion",
    "triton-nvidia-tma-lowering",
    "tritongpu-prefetch",
    "tritongpu-coalesce-async-copy",
    "tritongpu-global-scratch-memory-allocation",
    "tritongpu-allocate-warp-groups",
    "test-print-membar",
)
SEVERAL = (
    "// -----",
    "not tilework",
    "--allow-unregistered",
)  # several modules in a file, one that is refused, ops of no dialect
FILES = [
    file
    for file in sorted([*Path(__file__).parent.glob("*.mlir"), *REFERENCE.rglob("*.ttgir")])
    if not any(mark in file.read_text() for mark in SEVERAL)
]


@pytest.mark.parametrize(("kernel", "size", "offsets", "count"), TRITON, ids=[row[0] for row in TRITON])
def test_buffers_and_barriers_are_where_triton_puts_them(
    kernel: str, size: int, offsets: tuple[int, ...], count: int
) -> None:
    module = parse_module((REFERENCE / f"{kernel}.ttgir").read_text())
    found = barriers(module, target(module))
    assert len(found.before) + len(found.after) == count
    run_pipeline(module, parse_pipeline("allocate-shared-memory-nv"))
    text = print_module(module)
    assert f"ttg.shared = {size} : i32" in text
    assert tuple(map(int, re.findall(r"allocation.offset = (\d+)", text))) == offsets


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_passes_take_any_module_and_repeat_themselves(file: Path) -> None:
    """Every pass on every module at hand: the result is valid, and, where it changes something, the same each time."""
    module = parse_module(file.read_text())
    assert first_problem(module) is None
    valid, copy = {print_module(module)}, clone_op(module, {})
    untouched = parts(copy)
    for name in PASSES:
        run_pipeline(copy, parse_pipeline(name))
        if parts(copy) == untouched:
            continue
        text = print_module(copy)
        if text not in valid:
            assert first_problem(copy) is None, name
            assert file.suffix != ".ttgir" or after(module, name) == text, name
        valid.add(text)
        copy = clone_op(module, {})
        untouched = parts(copy)


def after(module: ModuleOp, name: str) -> str:
    """The text of what a pass makes of a copy."""
    copy = clone_op(module, {})
    run_pipeline(copy, parse_pipeline(name))
    return print_module(copy)


def generated_buffers(numbers: list[tuple[int, int, int, int]]) -> list[Buffer]:
    """(size, log2 of the alignment, start, length) of each."""
    return [
        Buffer(
            ttg.BarrierOp.make(AddrSpace.LOCAL, unknown), "scratch", size, 1 << bits, Interval(start, start + length)
        )
        for size, bits, start, length in numbers
    ]


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 10), st.integers(0, 30), st.integers(1, 12)), max_size=14)
)
def test_what_lives_together_lies_apart(numbers: list[tuple[int, int, int, int]]) -> None:
    buffers = generated_buffers(numbers)
    size = assign_offsets(buffers)
    for index, one in enumerate(buffers):
        assert one.offset % one.alignment == 0 and one.end <= size
        for other in buffers[index + 1 :]:
            assert not (one.live.overlaps(other.live) and one.bytes.overlaps(other.bytes))


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=10))
def test_a_place_is_used_again(numbers: list[tuple[int, int, int]]) -> None:
    """Of buffers of one size, no more are needed than live at once, rounded up by what first fit loses."""
    buffers = generated_buffers([(256, 0, start, length) for _, start, length in numbers])
    most = max(sum(b.live.start <= t < b.live.end for b in buffers) for t in range(50))
    assert most * 256 <= assign_offsets(buffers) <= 2 * most * 256


def test_aligned() -> None:
    assert [aligned(offset, 16) for offset in (0, 1, 16, 17)] == [0, 16, 16, 32]


PREFETCHED = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!M = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: tensor<64x64xf16, #a>, %y: tensor<64x64xf16, #a>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc %x : (tensor<64x64xf16, #a>) -> !M
    %n = ttg.local_alloc %y : (tensor<64x64xf16, #a>) -> !M
    %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %c, %p = %m, %q = %n) -> (tensor<64x64xf32, #mma>, !M, !M) : i32 {
      %la = ttg.local_load %p : !M -> tensor<64x64xf16, #d0>
      %lb = ttg.local_load %q : !M -> tensor<64x64xf16, #d1>
      %d = tt.dot %la, %lb, %acc : tensor<64x64xf16, #d0> * tensor<64x64xf16, #d1> -> tensor<64x64xf32, #mma>
      scf.yield %d, %q, %p : tensor<64x64xf32, #mma>, !M, !M
    }
    tt.return %r#0 : tensor<64x64xf32, #mma>
  }
}
"""  # noqa: E501


def test_prefetching_keeps_the_product() -> None:
    """The two factors change places in every iteration, so a slice from the wrong one is noticed."""
    module = parse_module(PREFETCHED)
    passes = parse_pipeline("tritongpu-prefetch,canonicalize,tritongpu-reorder-instructions")
    report = check_each(module, passes, 3)
    assert report.ok, report
    run_pipeline(module, passes)
    assert print_module(module).count("ttg.memdesc_subslice") == 10


def test_a_function_that_calls_itself_ends() -> None:
    module = parse_module(
        'module attributes {"ttg.num-warps" = 4 : i32} { tt.func private @f() { tt.call @f() : () -> ()\n tt.return } }'
    )
    assert module_allocation(module, Target.parse("cuda:90"))["f"].size == 0
    run_pipeline(module, parse_pipeline("tritongpu-global-scratch-memory-allocation,test-print-membar"))


def test_deep_nests_and_many_buffers_are_fast_enough_to_end() -> None:
    """200 buffers in nested loops and branches: every one is placed, none twice at once."""
    rng = random.Random(5)
    kind = "!ttg.memdesc<16x16xf32, #s, #smem, mutable>"
    lines, depth = [], 0
    for number in range(200):
        lines.append(f"%b{number} = ttg.local_alloc : () -> {kind}")
        if rng.random() < 0.2 and depth < 6:
            lines.append(rng.choice(["scf.if %p {", f"scf.for %i{number} = %n to %n step %n : i32 {{"]))
            depth += 1
        elif rng.random() < 0.2 and depth:
            lines.append("}")
            depth -= 1
    body = "\n".join([*lines, *["}"] * depth])
    module = parse_module(
        "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>\n#smem = #ttg.shared_memory\n"
        f'module attributes {{"ttg.num-warps" = 4 : i32}} {{ tt.func public @k(%n: i32, %p: i1) {{ {body}\n'
        f" tt.return }} }}"
    )
    assert module_allocation(module, Target.parse("cuda:90"))["k"].size == 1024
