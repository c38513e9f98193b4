"""The counts of kernels on AMD GPUs: requests to memory, cycles of LDS, instructions by line, matrix operations."""

import numpy as np
import pytest

from tilework.oracles.emulator.llvm.run_llvm import load_kernel, wave_size
from tilework.oracles.emulator.llvm.wave_counters import WaveCounters

# thread i moves a word from x[i * GLOBAL] through the word i * LOCAL of LDS
TEXT = """
@lds = internal addrspace(3) global [65536 x i8] undef, align 16
define amdgpu_kernel void @move(ptr addrspace(1) %x, ptr addrspace(1) %out) !dbg !2 {
  %i = call i32 @llvm.amdgcn.workitem.id.x(), !dbg !3
  %from = mul i32 %i, GLOBAL, !dbg !3
  %p = getelementptr KIND, ptr addrspace(1) %x, i32 %from, !dbg !3
  %v = load KIND, ptr addrspace(1) %p, align SIZE, !dbg !4
  %at = mul i32 %i, LOCAL, !dbg !4
  %l = getelementptr KIND, ptr addrspace(3) @lds, i32 %at, !dbg !4
  store KIND %v, ptr addrspace(3) %l, align SIZE, !dbg !5
  %q = getelementptr KIND, ptr addrspace(1) %out, i32 %i, !dbg !6
  store KIND %v, ptr addrspace(1) %q, align SIZE
  ret void
}
!1 = !DIFile(filename: "k.py", directory: "/d")
!2 = distinct !DISubprogram(name: "move", file: !1, line: 1)
!3 = !DILocation(line: 3, column: 1, scope: !2)
!4 = !DILocation(line: 4, column: 1, scope: !2)
!5 = !DILocation(line: 5, column: 1, scope: !2)
!6 = !DILocation(line: 6, column: 1, scope: !2)
"""
FILE = "/d/k.py"


def counted(arch: str, step: int = 1, local: int = 1, kind: str = "i32", groups: int = 1) -> WaveCounters:
    size = int(kind[1:]) // 8
    text = (
        TEXT.replace("GLOBAL", str(step)).replace("LOCAL", str(local)).replace("KIND", kind).replace("SIZE", str(size))
    )
    memory = np.zeros((1 << 16) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    x, out = (memory[start + at : start + at + (1 << 15)].view(f"i{size}") for at in (0, 1 << 15))
    counters = WaveCounters(arch, wave_size(arch))
    load_kernel(text, arch).launch(8, 64, [x, out], counters=counters, most_groups=groups)
    return counters


@pytest.mark.parametrize(("step", "requests", "share"), [(1, 4, 1.0), (2, 8, 0.5), (16, 64, 1 / 16), (0, 1, 1 / 16)])
def test_requests_to_memory(step: int, requests: int, share: float) -> None:
    """64 lanes with 4 bytes each."""
    line = counted("gfx942", step).lines[FILE, 4]
    assert (line.sectors, line.requests) == (requests, 1) and line.coalescing == pytest.approx(share)


def test_narrow_waves_request_alone() -> None:
    assert counted("gfx1100", 0).lines[FILE, 4].sectors == 2, "64 threads are two waves of 32"


@pytest.mark.parametrize(
    ("arch", "local", "kind", "cycles", "conflicts"),
    [
        ("gfx942", 1, "i32", 2, 0),  # 64 lanes, 32 banks
        ("gfx942", 2, "i32", 4, 2),
        ("gfx942", 32, "i32", 64, 62),
        ("gfx942", 33, "i32", 2, 0),
        ("gfx942", 0, "i32", 2, 0),  # one word for all
        ("gfx942", 1, "i64", 4, 0),
        ("gfx942", 2, "i64", 8, 4),
        ("gfx950", 1, "i32", 1, 0),  # 64 banks
        ("gfx950", 32, "i32", 32, 31),
        ("gfx1100", 1, "i32", 2, 0),  # two waves of 32
        ("gfx1100", 32, "i32", 64, 62),
    ],
)
def test_cycles_of_lds(arch: str, local: int, kind: str, cycles: int, conflicts: int) -> None:
    line = counted(arch, local=local, kind=kind).lines[FILE, 5]
    assert (line.wavefronts, line.conflicts) == (cycles, conflicts)


def test_instructions_are_counted_for_waves() -> None:
    once, twice = counted("gfx942"), counted("gfx942", groups=2)
    assert dict(once.lines[FILE, 3].instructions) == {"move": 1, "integer": 2}
    assert dict(once.lines[FILE, 4].instructions) == {"memory": 1, "integer": 2} and once.lines[FILE, 4].threads == 192
    assert dict(twice.total.instructions) == {kind: 2 * count for kind, count in once.total.instructions.items()}
    assert dict(counted("gfx1100").lines[FILE, 4].instructions) == {"memory": 2, "integer": 4}
    placeless = [line for line in once.lines if line[0] == "LLVM"]
    assert len(placeless) == 2, "the last store and the return have no line"


def test_the_table_names_the_lines() -> None:
    assert f"{FILE}:4" in (shown := str(counted("gfx942", 16))) and "6%" in shown


def test_matrix_operations() -> None:
    import tilework
    import tilework.language as tl
    from tilework.compiler import ASTSource
    from tilework.inspect.replay import Launch, count
    from tilework.targets.base import GPUTarget

    @tilework.jit
    def product(a, b, out, N: tl.constexpr):
        i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)
        tl.store(out + i, tl.dot(tl.load(a + i), tl.load(b + i)))

    a, out = np.ones((32, 32), np.float16), np.zeros((32, 32), np.float32)
    source = ASTSource(product, {"a": "*fp16", "b": "*fp16", "out": "*fp32", "N": "constexpr"}, {"N": 32})
    for target in ("hip:gfx942", "hip:gfx1201"):
        launch = Launch.of(product, (a, a, out, 32), (1,)).copied()
        found = count(source, GPUTarget.parse(target), {"num_warps": 1}, launch)
        assert found["total"]["tensor"] == 2 * 32**3, target
        assert found["total"]["wavefronts"] > 0 and found["by"] == "the emulator"
