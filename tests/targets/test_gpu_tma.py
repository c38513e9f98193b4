"""TMA: blocks of host descriptors and of descriptors that kernels make, copied and combined in the emulator."""

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.pipeline.gpu import Config
from tests.runtime.emulator_fixture import emulator
from tests.targets.gpu_descriptors import Block, compiled, generated, run
from tests.targets.gpu_run import check
from tilework.analysis import allocation
from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.runtime.devices.cuda.device import fill_tma_descriptor_tiled
from tilework.runtime.devices.gpu.parameters import packer_for
from tilework.target import GPUTarget, Target
from tilework.targets.amd.lower.emit import emit_module as emit_for_amd
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.transforms.registry import parse_pipeline, run_pipeline


@tilework.jit
def copy_1d(x, y, start):
    y.store([start], x.load([start]))


@tilework.jit
def copy_2d(x, y, row, column):
    y.store([row, column], x.load([row, column]))


@tilework.jit
def copy_3d(x, y, plane, row, column):
    y.store([plane, row, column], x.load([plane, row, column]))


@tilework.jit
def transpose(x, y, row, column):
    y.store([column, row], tl.trans(x.load([row, column])))


@tilework.jit
def scale(x, y, row, column):
    y.store([row, column], x.load([row, column]) * 2)


BY_VALUE = """
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @kernel(%map: !tt.ptr<i8, 0> {tt.nv_tma_desc = 1 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %row: i32, %x: !tt.ptr<f16>) {
  %c0 = arith.constant 0 : i32
  %true = arith.constant true
  %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8, 0> to !tt.tensordesc<tensor<16x64xf16, #nv>>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #one, #smem, mutable>
  %m = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #nv, #smem, mutable>
  ttng.barrier_expect %bar, 2048, %true : !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%row, %c0] %m, %bar, %true : !tt.tensordesc<tensor<16x64xf16, #nv>>, !ttg.memdesc<1xi64, #one, #smem, mutable> -> !ttg.memdesc<16x64xf16, #nv, #smem, mutable>
  ttng.wait_barrier %bar, %c0 : !ttg.memdesc<1xi64, #one, #smem, mutable>
  %v = ttg.local_load %m : !ttg.memdesc<16x64xf16, #nv, #smem, mutable> -> tensor<16x64xf16, #b>
  %c64 = arith.constant dense<64> : tensor<16x1xi32, #b>
  %r0 = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r1 = tt.expand_dims %r0 {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<16x1xi32, #b>
  %r2 = arith.muli %r1, %c64 : tensor<16x1xi32, #b>
  %r3 = tt.broadcast %r2 : tensor<16x1xi32, #b> -> tensor<16x64xi32, #b>
  %l0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %l1 = tt.expand_dims %l0 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %l2 = tt.broadcast %l1 : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
  %at = arith.addi %r3, %l2 : tensor<16x64xi32, #b>
  %s = tt.splat %y : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #b>
  %p = tt.addptr %s, %at : tensor<16x64x!tt.ptr<f16>, #b>, tensor<16x64xi32, #b>
  tt.store %p, %v : tensor<16x64x!tt.ptr<f16>, #b>
  tt.return
}
}
"""  # noqa: E501


def test_a_tensor_map_that_is_passed_by_value(tmp_path: Path) -> None:
    """``tt.nv_tma_desc`` in an IR file: its kernel takes the 128 bytes of a tensor map, which the launch is given."""
    path = tmp_path / "kernel.ttgir"
    path.write_text(BY_VALUE)
    x, y = generated((64, 64), np.float16), np.zeros((16, 64), np.float16)
    with emulator("sm_90", str(tmp_path)):
        kernel = tilework.compile(path, GPUTarget("cuda", 90, 32))
        assert re.search(r"\.param \.align 128 \.b8 kernel_param_0\[128\]", kernel.asm["ptx"])
        map = fill_tma_descriptor_tiled(x.ctypes.data, 3, 2, 6, (16, 64), x.shape, (64, 1))
        kernel[(1, 1, 1)](map, y, 32, x)
    np.testing.assert_array_equal(y, x[32:48])
    with pytest.raises(PassError, match="a tensor map as argument cannot be compiled for hip:gfx942"):
        other = BY_VALUE.replace("cuda:90", "hip:gfx942").replace('threads-per-warp" = 32', 'threads-per-warp" = 64')
        emit_for_amd(parse_module(other), Target.parse("hip:gfx942"))


def test_memory_is_allocated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Barriers, proxy fences and code need the same allocation."""
    allocated: list[Any] = []
    allocate = allocation.function_allocation
    monkeypatch.setattr(
        allocation, "function_allocation", lambda op, *more: allocated.append(op) or allocate(op, *more)
    )
    emit_module(parse_module(BY_VALUE), 90)
    assert len(allocated) == 1


def in_a_cluster(bases: str, size: int) -> str:
    """The kernel for two blocks, or four, each with a barrier, after a barrier of the cluster."""
    ctas, barriers = (2, "[[1]]") if bases.count("[") == 2 else (4, "[[1], [2]]")
    meet = ("fence_mbarrier_init_release_cluster", "cluster_arrive {relaxed = true}", "cluster_wait")
    ready = "".join(f"  ttng.{op}\n" for op in meet) + "  %m ="
    new = {
        '"ttg.num-ctas" = 1': f'"ttg.num-ctas" = {ctas}', "1xi64": f"{ctas}xi64",
        "order = [0]": f"order = [0], CGALayout = {barriers}",
        "order = [1, 0]": f"order = [1, 0], CGALayout = {bases}", "  %m =": ready, "2048": str(size),
        "elementBitWidth = 16": f"elementBitWidth = 16, CGALayout = {bases}",
        "%bar, %true :": "%bar, %true {multicast} :",
    }  # fmt: skip
    text = BY_VALUE
    for old, replacement in new.items():
        text = text.replace(old, replacement)
    return text


@pytest.mark.parametrize(("bases", "rows"), [
    ("[[0, 0]]", 16), ("[[1, 0]]", 8), ("[[0, 0], [1, 0]]", 8), ("[[1, 0], [0, 0]]", 8), ("[[0, 0], [0, 0]]", 16),
])  # fmt: skip
def test_the_barriers_of_a_cluster(bases: str, rows: int, tmp_path: Path) -> None:
    """Each block copies its part, or all, to its own buffer, and waits on its own barrier."""
    path = tmp_path / "kernel.ttgir"
    path.write_text(in_a_cluster(bases, rows * 128))
    x, y = generated((64, 64), np.float16), np.zeros((16, 64), np.float16)
    with emulator("sm_90", str(tmp_path)):
        kernel = tilework.compile(path, GPUTarget("cuda", 90, 32))
        map = fill_tma_descriptor_tiled(x.ctypes.data, 3, 2, 6, (rows, 64), x.shape, (64, 1))
        kernel[(1, 1, 1)](map, y, 32, x)
    np.testing.assert_array_equal(y, x[32:48])
    ptx = kernel.asm["ptx"]
    assert ptx.count("complete_tx::bytes.multicast::cluster") == ("[0, 0]" in bases)
    for text in ("fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed.aligned;"):
        assert text in ptx


@pytest.mark.parametrize(("old", "new", "message"), [
    ("2xi64", "1xi64", "an mbarrier that several blocks of a cluster share cannot be compiled for cuda:90"),
    ("!tt.tensordesc", "!ttng.tensordesc_im2col", "a TMA copy through an im2col descriptor cannot be compiled"),
])  # fmt: skip
def test_what_blocks_of_a_cluster_cannot_do(old: str, new: str, message: str) -> None:
    text = in_a_cluster("[[1, 0]]", 1024).replace(old, new).replace("[[1]]", "[[0]]" if new == "1xi64" else "[[1]]")
    if "im2col" in new:
        text = re.sub(r"  %d = .*\n", "", text).replace("%map: !tt.ptr<i8, 0> {tt.nv_tma_desc = 1 : i32}",
            "%d: !ttng.tensordesc_im2col<tensor<16x64xf16, #nv>>, %o: i16")  # fmt: skip
        text = text.replace("%d[%row, %c0]", "%d[%row, %c0, %c0] offsets = [%o]")
    module = parse_module(text)
    verify(module)
    with pytest.raises(PassError, match=message):
        emit_module(module, 90)


DTYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(one).name for one in DTYPES])
def test_copy_2d(dtype: Any) -> None:
    x = generated((64, 96), dtype)
    y = np.zeros_like(x)
    run(scale, {"x": Block(x, (16, 32)), "y": Block(y, (16, 32)), "row": 16, "column": 32})
    wanted = np.zeros_like(x)
    wanted[16:32, 32:64] = x[16:32, 32:64] * np.asarray(2, x.dtype)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(("row", "column", "warps"), [(48, 64, 1), (48, 64, 8), (-8, -16, 4), (56, -64, 4), (64, 0, 4)])
def test_outside(row: int, column: int, warps: int) -> None:
    """Elements outside read as zero and are not written."""
    x, y = generated((56, 72), np.float16), np.ones((56, 72), np.float16)
    z = np.ones((100, 200), np.float16)
    run(copy_2d, {"x": Block(x, (16, 64)), "y": Block(y, (16, 64)), "row": row, "column": column}, warps=warps)
    padded = np.zeros((200, 300), np.float16)
    padded[100:156, 100:172] = x
    wanted = np.ones_like(y)
    r, c = max(row, 0), max(column, 0)
    wanted[r : max(row + 16, 0), c : max(column + 64, 0)] = x[r : max(row + 16, 0), c : max(column + 64, 0)]
    np.testing.assert_array_equal(y, wanted)
    run(shift, {"x": Block(x, (16, 64)), "y": Block(z, (16, 64)), "row": row, "column": column}, warps=warps)
    np.testing.assert_array_equal(z[16:32, 64:128], padded[100 + row : 116 + row, 100 + column : 164 + column])
    assert z.sum() == z[16:32, 64:128].sum() + z.size - 16 * 64


@tilework.jit
def shift(x, y, row, column):
    y.store([16, 64], x.load([row, column]))


@pytest.mark.parametrize(("size", "block", "start"), [(100, 64, 64), (1000, 512, 256), (64, 16, -16)])
def test_1d(size: int, block: int, start: int) -> None:
    x, y = generated((size,), np.float16), np.ones(size, np.float16)
    run(copy_1d, {"x": Block(x, (block,)), "y": Block(y, (block,)), "start": start})
    wanted = np.ones_like(y)
    part = slice(max(start, 0), start + block)
    wanted[part] = x[part]
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(
    ("block", "dtype"),
    [
        ((2, 4, 32), np.float16),
        ((4, 2, 128), np.float32),
        ((1, 8, 64), np.int8),
        ((8, 1, 16), np.float16),
        ((2, 2, 16), np.int8),
    ],
)
def test_3d(block: tuple[int, int, int], dtype: Any) -> None:
    x = generated((6, 9, 160), dtype)
    y = np.full_like(x, 7)
    run(copy_3d, {"x": Block(x, block), "y": Block(y, block), "plane": 3, "row": 4, "column": 32})
    wanted = np.full_like(x, 7)
    part = tuple(slice(start, start + size) for start, size in zip((3, 4, 32), block, strict=True))
    wanted[part] = x[part]
    np.testing.assert_array_equal(y, wanted)


WIDE = [
    (np.float16, (16, 256), 4),  # four panels as wide as the swizzle
    (np.float32, (512, 8), 2),  # more rows than a box has
    (np.int8, (4, 512), 2),  # no swizzle
    (np.float16, (512, 128), 4),
]


@pytest.mark.parametrize(("dtype", "block", "boxes"), WIDE)
def test_several_boxes(dtype: Any, block: tuple[int, int], boxes: int) -> None:
    x = generated((block[0] + 24, block[1] + 48), dtype)
    y = np.full_like(x, 7)
    text = run(scale, {"x": Block(x, block), "y": Block(y, block), "row": 3, "column": 16})
    wanted = np.full_like(x, 7)
    part = (slice(3, 3 + block[0]), slice(16, 16 + block[1]))
    wanted[part] = x[part] * np.asarray(2, x.dtype)
    np.testing.assert_array_equal(y, wanted)
    assert text.count("cp.async.bulk.tensor.2d.shared::cluster") == boxes
    assert text.count("cp.async.bulk.tensor.2d.global") == boxes and text.count("cp.async.bulk.commit_group") == 1


@pytest.mark.parametrize(("dtype", "warps"), [(np.float16, 4), (np.float32, 8), (np.int8, 4)])
def test_transposed(dtype: Any, warps: int) -> None:
    x, y = generated((64, 128), dtype), np.zeros((128, 64), dtype)
    run(transpose, {"x": Block(x, (32, 64)), "y": Block(y, (64, 32)), "row": 32, "column": 64}, warps=warps)
    np.testing.assert_array_equal(y[64:, 32:], x[32:, 64:].T)


@tilework.jit
def reduce(y, x, row, column, KIND: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if KIND == "add":
        y.atomic_add([row, column], value)
    elif KIND == "min":
        y.atomic_min([row, column], value)
    elif KIND == "max":
        y.atomic_max([row, column], value)
    elif KIND == "and":
        y.atomic_and([row, column], value)
    elif KIND == "or":
        y.atomic_or([row, column], value)
    else:
        y.atomic_xor([row, column], value)


FUNCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
REDUCTIONS = [
    *[("add", dtype) for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.int32, np.uint32, np.uint64)],
    *[
        (kind, dtype)
        for kind in ("min", "max")
        for dtype in (np.float16, ml_dtypes.bfloat16, np.int32, np.uint32, np.int64)
    ],
    *[(kind, np.int32) for kind in ("and", "or", "xor")],
]


@pytest.mark.parametrize(
    ("kind", "dtype"), REDUCTIONS, ids=[f"{kind}-{np.dtype(dtype).name}" for kind, dtype in REDUCTIONS]
)
def test_reduce(kind: str, dtype: Any) -> None:
    x, y = generated((16, 32), dtype), generated((24, 40), dtype)
    if dtype is np.uint32:
        x[0, 0], y[8, 16] = 1 << 31, 5  # negative as an i32
    wanted = y.copy()
    wanted[8:24, 16:40] = FUNCTIONS[kind](y[8:24, 16:40], x[:, :24])
    constants = {"KIND": kind, "M": 16, "N": 32}
    run(reduce, {"y": Block(y, (16, 32)), "x": x, "row": 8, "column": 16}, constants)
    np.testing.assert_array_equal(y, wanted)


@tilework.jit
def made_copy(x, y, M, N, row, column, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN], padding_option=PADDING)
    target = tl.make_tensor_descriptor(y, [BM, BN], [BN, 1], [BM, BN])
    target.store([0, 0], source.load([row, column]))


@pytest.mark.parametrize(("padding", "warps"), [("zero", 4), ("zero", 1), ("nan", 8)])
def test_made_descriptor(padding: str, warps: int) -> None:
    x, y = generated((40, 64), np.float32), np.zeros((32, 32), np.float32)
    constants = {"BM": 32, "BN": 32, "PADDING": padding}
    run(
        made_copy,
        {"x": x, "y": y, "M": 40, "N": 64, "row": 24, "column": 16},
        constants,
        warps=warps,
        aligned=("M", "N"),
    )
    np.testing.assert_array_equal(y[:16], x[24:, 16:48])
    assert np.isnan(y[16:]).all() if padding == "nan" else not y[16:].any()


MADE = [
    (np.float16, (64, 64)),
    (np.float64, (16, 4)),
    (ml_dtypes.bfloat16, (8, 256)),
    (np.int8, (16, 16)),
    (np.int64, (512, 4)),
]


@pytest.mark.parametrize(("dtype", "block"), MADE)
def test_made_types(dtype: Any, block: tuple[int, int]) -> None:
    x, y = generated((block[0] + 8, block[1] + 16), dtype), np.zeros(block, dtype)
    constants = {"BM": block[0], "BN": block[1], "PADDING": "zero"}
    run(made_copy, {"x": x, "y": y, "M": x.shape[0], "N": x.shape[1], "row": 1, "column": 16}, constants)
    np.testing.assert_array_equal(y, x[1 : 1 + block[0], 16:])


@tilework.jit
def made_5d(x, y, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [3, 3, 3, 3, N], [27 * N, 9 * N, 3 * N, N, 1], [1, 2, 1, 2, N])
    target = tl.make_tensor_descriptor(y, [1, 2, 1, 2, N], [4 * N, 2 * N, 2 * N, N, 1], [1, 2, 1, 2, N])
    target.store([0, 0, 0, 0, 0], source.load([1, 2, 0, 1, 0]))


def test_made_5d() -> None:
    x, y = generated((3, 3, 3, 3, 16), np.float32), np.ones((1, 2, 1, 2, 16), np.float32)
    run(made_5d, {"x": x, "y": y}, {"N": 16})
    np.testing.assert_array_equal(y[:, :1], x[1:2, 2:, :1, 1:])
    assert not y[:, 1:].any()


@tilework.jit
def batch(x, y, plane, M: tl.constexpr, N: tl.constexpr):
    """A block of one plane, without its first dimension."""
    tile = tl.reshape(x.load([plane, 0, 0]), (M, N))
    y.store([0, 0], tile * 2)


def test_dropped_dimension() -> None:
    x, y = generated((4, 16, 64), np.float16), np.zeros((16, 64), np.float16)
    text = run(batch, {"x": Block(x, (1, 16, 64)), "y": Block(y, (16, 64)), "plane": 2}, {"M": 16, "N": 64})
    np.testing.assert_array_equal(y, x[2] * 2)
    assert "cp.async.bulk.tensor.3d" in text


@tilework.jit
def choose(x, y, which, N: tl.constexpr):
    """Descriptors as values of a branch, and made in a loop."""
    for row in range(0, 4):
        target = tl.make_tensor_descriptor(y + row * 8 * N, [8, N], [N, 1], [8, N])
        if which > row:
            source = tl.make_tensor_descriptor(x, [32, N], [N, 1], [8, N])
        else:
            source = tl.make_tensor_descriptor(x + N, [32, N], [N, 1], [8, N])
        target.store([0, 0], source.load([row * 8, 0]))


def test_chosen_descriptors() -> None:
    x, y = generated((40, 32), np.float16), np.zeros((32, 32), np.float16)
    run(choose, {"x": x, "y": y, "which": 2}, {"N": 32})
    np.testing.assert_array_equal(y, np.concatenate([x[:16], x[17:33]]))


@tilework.jit(noinline=True)
def doubled(x, row):
    return x.load([row, 0]) * 2


@tilework.jit
def calls(x, y):
    y.store([0, 0], doubled(x, 8))


def test_called_with_descriptor() -> None:
    x, y = generated((32, 32), np.float32), np.zeros((8, 32), np.float32)
    run(calls, {"x": Block(x, (8, 32)), "y": Block(y, (8, 32))})
    np.testing.assert_array_equal(y, x[8:16] * 2)


@tilework.jit
def streamed(x, y, n, N: tl.constexpr, STAGES: tl.constexpr):
    """Blocks in a pipelined loop: each buffer must lie where TMA can write."""
    total = tl.zeros((N,), tl.float32)
    for start in tl.range(0, n, N, num_stages=STAGES):
        total += x.load([start]).to(tl.float32)
    tl.store(y + tl.arange(0, N), total)


@pytest.mark.parametrize(("size", "stages"), [(16, 3), (64, 5)])
def test_pipelined_buffers_are_aligned(size: int, stages: int) -> None:
    x, y = generated((8 * size,), np.float16), np.zeros(size, np.float32)
    text = run(streamed, {"x": Block(x, (size,)), "y": y, "n": 7 * size}, {"N": size, "STAGES": stages})
    np.testing.assert_array_equal(y, x[: 7 * size].astype("f4").reshape(7, size).sum(0))
    fence = text.rindex("fence.proxy.async")  # of all threads, which have read what the next copy overwrites
    assert "bra" not in text[text.rindex("bar.sync", 0, fence) : fence]


@tilework.jit
def matmul(a, b, c, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, TRANSPOSED: tl.constexpr):
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, STEP):
        right = b.load([0, k]).T if TRANSPOSED else b.load([k, 0])
        acc = tl.dot(a.load([0, k]), right, acc)
    c.store([0, 0], acc.to(c.dtype))


@pytest.mark.parametrize(("arch", "warps", "transposed"), [(90, 4, False), (90, 8, True), (80, 4, True)])
def test_matmul_of_host_descriptors(arch: int, warps: int, transposed: bool) -> None:
    a, b = generated((56, 120), np.float16), generated((64, 120) if transposed else (120, 64), np.float16)
    c = np.zeros((56, 64), np.float32)
    constants = {"M": 64, "N": 64, "STEP": 32, "TRANSPOSED": transposed}
    right = Block(b, (64, 32) if transposed else (32, 64))
    text = run(
        matmul,
        {"a": Block(a, (64, 32)), "b": right, "c": Block(c, (64, 64)), "K": 120},
        constants,
        warps=warps,
        arch=arch,
    )
    np.testing.assert_array_equal(c, a.astype("f4") @ (b.T if transposed else b).astype("f4"))
    assert ("cp.async.bulk.tensor" in text) == (arch == 90)
    if arch == 90:  # the others than the first warp have nothing to do with copies
        loop, copy = (
            text.rindex("bar.sync", 0, text.rindex("global.mbarrier::complete")),
            text.rindex("global.mbarrier::complete"),
        )
        assert "bra" in text[loop:copy]


def test_reported_to_the_launcher() -> None:
    """The launcher packs a map for each descriptor of sm_90, and the parts of one for sm_80."""
    types = {"x": "tensordesc<fp16[16, 256]>", "y": "tensordesc<i8[4, 512]>", "row": "i32", "column": "i32"}
    facts = ptx_text.metadata(compiled(casting, types, {}))
    first = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [16, 64], "fp4_padded": False}
    second = {"swizzle": 0, "elem_size": 1, "elem_type": 0, "block_size": [4, 256], "fp4_padded": False}
    assert facts["tensordesc_meta"] == [first, second]
    sizes = packer_for("casting", [*types.values()], facts["tensordesc_meta"]).layout.sizes
    assert sizes[:10] == (128, 4, 4, 8, 8, 128, 4, 4, 8, 8)
    assert "tensordesc_meta" not in ptx_text.metadata(compiled(casting, types, {}, arch=80))


@tilework.jit
def casting(x, y, row, column):
    y.store([row, column], tl.zeros((4, 512), tl.int8))
    x.store([row, column], x.load([row, column]) + 1)


@tilework.jit
def gathered(x, y, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [64, N], [N, 1], [1, N])
    tile = source.gather(tl.arange(0, 8) * 3, 0)
    tl.store(y + tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :], tile)


def test_gather_is_refused() -> None:
    with pytest.raises(PassError, match=r"gather of rows .* sm_100, cannot be compiled for cuda:90"):
        compiled(gathered, {"x": "*fp32", "y": "*fp32"}, {"N": 32})


@pytest.mark.parametrize(("name", "warps"), [("persistent_descriptors", 4)])
def test_samples(name: str, warps: int) -> None:
    assert check(Config(name, 90, warps)) is None


SWIZZLED = """
#bl = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%d: !tt.tensordesc<tensor<64x64xf16, #sw>>, %x: i32) {
    %v = arith.constant dense<1.0> : tensor<64x64xf16, #bl>
    tt.descriptor_store %d[%x, %x], %v : !tt.tensordesc<tensor<64x64xf16, #sw>>, tensor<64x64xf16, #bl>
    tt.return
  }
}
"""  # noqa: E501


def test_a_store_through_a_swizzled_descriptor_is_lowered_and_refused_at_its_line() -> None:
    """The pass makes a copy of it; the engine knows no such layout (Triton fails there without a word)."""
    module = parse_module(SWIZZLED)
    run_pipeline(module, parse_pipeline("triton-nvidia-tma-lowering"))
    assert "ttng.async_tma_copy_local_to_global" in print_module(module)
    with pytest.raises(PassError, match=r"a buffer with the layout SwizzledShared.* cannot be compiled for cuda:90"):
        emit_module(module, 90)
