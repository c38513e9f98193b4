"""Our kernels for AMD GPUs, in the emulator with its checks on: waves of 64 and of 32 lanes give what NumPy gives."""

# pyright: reportMissingParameterType=false

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource, compile, lower
from tilework.errors import OutOfResources
from tilework.ir.parser import parse_module
from tilework.language.extra import hip, libdevice
from tilework.numerics.rounding import narrow, saturate
from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.emulator.syntax import Trapped
from tilework.target import Target
from tilework.targets.amd.code_object import metadata
from tilework.targets.amd.lower.emit import emit_module

WARPS = 4


@tilework.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@tilework.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=float("-inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * n + i, values / tl.sum(values, 0), mask=i < n)


@tilework.jit
def product(a, b, out, SIZE: tl.constexpr, STEP: tl.constexpr):
    i, k = tl.arange(0, SIZE), tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, SIZE, STEP):
        left = tl.load(a + i[:, None] * SIZE + start + k[None, :])
        total = tl.dot(left, tl.load(b + (start + k[:, None]) * SIZE + i[None, :]), total)
    tl.store(out + i[:, None] * SIZE + i[None, :], total)


@tilework.jit
def scan_and_sort(x, sums, sorted_, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(values, 0))
    tl.store(sorted_ + i, tl.sort(values))


@tilework.jit
def transpose(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i[None, :], tl.trans(tl.load(x + i[:, None] * N + i[None, :])))


@tilework.jit
def count(x, out, chosen, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.atomic_add(out + values, 1)
    tl.store(chosen + i, tl.gather(values, (i + 1) % N, 0) * tl.num_programs(0))


def launch(
    kernel: Any,
    arch: str,
    args: Sequence[Any],
    grid: int = 1,
    debug: bool = False,
    num_stages: int = 2,
    num_warps: int = WARPS,
    stage: str = "ttgir",
    whole: bool = True,
    **constants: Any,
) -> str:
    """Run a kernel on arrays; its TTGIR, or another stage. Unless it is compiled `whole`, no machine code is made,
    which is not run here."""
    kinds = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16", "int32": "*i32", "int8": "*i8"}
    kinds |= {
        "float64": "*fp64",
        "int64": "*i64",
        "uint8": "*u8",
        "float8_e5m2": "*fp8e5",
        "float8_e4m3fnuz": "*fp8e4b8",
        "float8_e4m3fn": "*fp8e4nv",
        "float8_e5m2fnuz": "*fp8e5b16",
    }
    types = [kinds[arg.dtype.name] if isinstance(arg, np.ndarray) else "i32" for arg in args]
    facts = {
        (position,): [["tt.pointer_range", 32], *([["tt.divisibility", 16]] if arg.ctypes.data % 16 == 0 else [])]
        for position, arg in enumerate(args)
        if isinstance(arg, np.ndarray)
    }
    signature = dict(zip(kernel.arg_names, types, strict=False))
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=facts)
    target = Target.parse(f"hip:{arch}")
    options = {"num_warps": num_warps, "num_stages": num_stages, "debug": debug}
    if whole:
        stages = compile(source, target=target.name, options=options).asm
    else:
        stages = lower(source, target.name, ["llir", stage], **options)
    text = stages["llir"]
    threads = num_warps * target.warp_size
    run(text, [*args, 0, 0], grid=grid, threads=threads, lds_bytes=metadata(text)["shared"], arch=arch)
    return stages[stage]


@tilework.jit
def added(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i), mask=i < n * 32)


@pytest.mark.parametrize(("arch", "dtype", "instruction"), [
    ("gfx942", "float16", "buffer_atomic_pk_add_f16"), ("gfx942", "bfloat16", "global_atomic_pk_add_bf16"),
    ("gfx942", "float64", "buffer_atomic_add_f64"), ("gfx950", "bfloat16", "buffer_atomic_pk_add_bf16"),
    ("gfx1201", "float16", "buffer_atomic_pk_add_f16"), ("gfx1201", "bfloat16", "buffer_atomic_pk_add_bf16"),
    ("gfx1201", "float32", "buffer_atomic_add_f32"), ("gfx1201", "int64", "buffer_atomic_add_u64"),
    ("gfx1201", "float64", "global_atomic_cmpswap_b64"), ("gfx1100", "float32", "global_atomic_"),
    ("gfx1250", "int32", "global_atomic_add_u32"),
])  # fmt: skip
def test_sums_in_memory(arch: str, dtype: str, instruction: str) -> None:
    """By the atomics that Triton 3.7.1 chooses."""
    type = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, out = (np.random.default_rng(seed).integers(0, 9, 512).astype(type) for seed in (1, 2))
    wanted = out + np.where(np.arange(512) < 416, x, 0).astype(type)
    assert instruction in launch(added, arch, [x, out, 13], BLOCK=512, stage="amdgcn")
    assert np.array_equal(out, wanted)


@tilework.jit
def from_one_of(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    chosen, other = x, y + 1
    if n > 4:
        chosen, other = y + n, x
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(n):
        total += tl.load(chosen + i) * (step + 1)
        chosen, other = other, chosen + BLOCK
    tl.store(out + i, total)


@pytest.mark.parametrize("n", [0, 3, 6])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_loads_from_one_of_several_arrays(arch: str, n: int) -> None:
    x, y = (np.random.default_rng(seed).integers(0, 9, 1024).astype(np.float32) for seed in (1, 2))
    out, wanted = np.zeros(128, np.float32), np.zeros(128, np.float32)
    (chosen, at), (other, other_at) = ((y, n), (x, 0)) if n > 4 else ((x, 0), (y, 1))
    for step in range(n):
        wanted += chosen[at : at + 128] * (step + 1)
        (chosen, at), (other, other_at) = (other, other_at), (chosen, at + 128)
    ttgir = launch(from_one_of, arch, [x, y, out, n], BLOCK=128)
    assert np.array_equal(out, wanted)
    assert "amdg.buffer_load" in ttgir and "tt.load" not in ttgir


@tilework.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@pytest.mark.parametrize(("arch", "threads"), [("gfx942", 256), ("gfx90a", 256), ("gfx1100", 128)])
def test_atomics_follow_the_layout_of_their_addresses(arch: str, threads: int) -> None:
    """Loads are 128 bits wide, and nothing is converted between them and the atomics."""
    x = np.random.default_rng(0).integers(0, 7, 2000).astype(np.int32)
    out = np.zeros(7, np.int32)
    text = launch(histogram, arch, [x, out, 1900], grid=2, stage="ttgir", whole=False, BLOCK=1024)
    assert np.array_equal(out, np.bincount(x[:1900], minlength=7))
    assert "sizePerThread = [4]" in text and "ttg.convert_layout" not in text


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_kernels_equal_numpy(arch: str) -> None:
    random = np.random.default_rng(0)
    x, y, out = random.standard_normal((3, 1000), dtype=np.float32)
    launch(add, arch, [x, y, out, 1000], grid=4, BLOCK=256)
    assert np.array_equal(out, x + y)
    rows = random.standard_normal((3, 300), dtype=np.float32)
    found = np.zeros_like(rows)
    launch(softmax, arch, [rows, found, 300], grid=3, BLOCK=512)
    powers = np.exp(rows - rows.max(1, keepdims=True))
    assert np.allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    a, b = random.standard_normal((2, 32, 32)).astype(np.float16)
    products = np.zeros((32, 32), np.float32)
    launch(product, arch, [a, b, products], SIZE=32, STEP=16)
    assert np.allclose(products, a.astype(np.float32) @ b.astype(np.float32), atol=1e-5)
    sums, in_order = np.zeros((2, 256), np.float32)
    launch(scan_and_sort, arch, [x[:256].copy(), sums, in_order], N=256)
    assert np.allclose(sums, np.cumsum(x[:256]), atol=1e-4) and np.array_equal(in_order, np.sort(x[:256]))
    square, transposed = random.standard_normal((2, 64, 64), dtype=np.float32)
    launch(transpose, arch, [square, transposed], N=64)
    assert np.array_equal(transposed, square.T)
    numbers = random.integers(0, 16, 512).astype(np.int32)
    counts, chosen = np.zeros(16, np.int32), np.zeros(512, np.int32)
    launch(count, arch, [numbers, counts, chosen], N=512)
    assert np.array_equal(counts, np.bincount(numbers, minlength=16)) and np.array_equal(chosen, np.roll(numbers, -1))


@tilework.jit
def chosen_products(a, b, chosen, out, sums, count, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    total, rows = tl.zeros((SIZE, SIZE), tl.float32), tl.zeros((SIZE,), tl.float32)
    for k in range(count):
        at = tl.load(chosen + k) * SIZE * SIZE + i[:, None] * SIZE + i[None, :]
        left = tl.load(a + at, mask=i[None, :] < SIZE - k, other=0)
        total = tl.dot(left, tl.load(b + at), total)
        rows += tl.sum(left.to(tl.float32), 1) * k
    tl.store(out + i[:, None] * SIZE + i[None, :], total)
    tl.store(sums + i, rows)


@pytest.mark.parametrize(("arch", "num_stages"), [("gfx942", 4), ("gfx1100", 2)])
def test_pipelined_loops(arch: str, num_stages: int) -> None:
    """Loads wait in LDS and, where more than a product uses them, in registers; those of their addresses run further
    ahead."""
    random = np.random.default_rng(0)
    a, b = random.integers(-3, 4, (2, 6, 32, 32)).astype(np.float16)
    chosen = random.permutation(6).astype(np.int32)
    for count in (0, 5):
        out, sums = np.full((32, 32), 7, np.float32), np.full(32, 7, np.float32)
        ttgir = launch(
            chosen_products, arch, [a, b, chosen, out, sums, count], num_stages=num_stages, whole=count > 0, SIZE=32
        )
        left, right = (given[chosen[:count]].astype(np.float32) for given in (a, b))
        for k in range(count):
            left[k, :, 32 - k :] = 0
        assert np.array_equal(out, np.einsum("kij,kjl->il", left, right)), count
        assert f"memdesc<{max(num_stages - 2, 1)}x32x32xf16" in ttgir
        assert np.array_equal(sums, np.einsum("kij,k->i", left, np.arange(count))), count


@tilework.jit
def attention(q, k, v, out, n, CAUSAL: tl.constexpr, D: tl.constexpr):
    m, s, d = tl.arange(0, 64), tl.arange(0, 16), tl.arange(0, D)
    left, total = tl.load(q + m[:, None] * D + d[None, :]), tl.zeros((64,), tl.float32)
    peak, acc = tl.full((64,), -1e30, tl.float32), tl.zeros((64, D), tl.float32)
    for start in range(0, n, 16):
        scores = tl.dot(left, tl.load(k + (start + s[None, :]) * D + d[:, None]))
        if CAUSAL:
            scores = tl.where(m[:, None] >= start + s[None, :], scores, -1e30)
        high = tl.maximum(peak, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - high[:, None]), tl.exp2(peak - high)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + (start + s[:, None]) * D + d[None, :]), acc * shrink[:, None])
        peak = high
    tl.store(out + m[:, None] * D + d[None, :], acc / tl.where(n > 0, total, 1.0)[:, None])


@tilework.jit
def recurrence(a, b, out, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at, state = i[:, None] * SIZE + i[None, :], tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(n):
        inner = tl.dot(tl.load(a + step * SIZE * SIZE + at), state.to(tl.float16)) + 1
        state = tl.dot(tl.load(b + step * SIZE * SIZE + at), inner.to(tl.float16), state)
    tl.store(out + at, state)


IN_TURN = ("tt.dot", "local_store", "local_load", "buffer_load") * 2


@pytest.mark.parametrize(("arch", "counts"), [("gfx942", (0, 5)), ("gfx1100", (2,)), ("gfx950", (4,))])
def test_two_products_in_turn(monkeypatch: pytest.MonkeyPatch, arch: str, counts: Sequence[int]) -> None:
    """Attention with four stages: a product, then memory for the other one; one buffer each, two where copies go there
    by themselves."""
    copies = arch == "gfx950"
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", str(int(copies)))
    random, width = np.random.default_rng(0), 64 if copies else 32
    for count in counts:
        q = random.standard_normal((64, width)).astype(np.float16)
        k, v = random.standard_normal((2, 16 * count + 1, width)).astype(np.float16)
        found = np.full((64, width), 7, np.float32)
        text = launch(
            attention, arch, [q, k, v, found, 16 * count], num_stages=4, whole=count > 0, CAUSAL=count == 5, D=width
        )
        scores = q.astype(np.float32) @ k[:-1].astype(np.float32).T
        if count == 5:
            scores = np.where(np.arange(64)[:, None] >= np.arange(80), scores, -1e30)
        p = np.exp2(scores - scores.max(1, keepdims=True, initial=-1e30))
        wanted = p @ v[:-1].astype(np.float32) / np.maximum(p.sum(1, keepdims=True), 1e-9)
        assert np.allclose(found, wanted, atol=4e-3), count
        body = text[text.index("scf.for") :].split("scf.yield")[0]
        order = re.findall(r"tt\.dot|local_store|local_load(?=.*mutable)|buffer_load", body)
        assert copies or (order == list(IN_TURN) and text.count("memdesc<1x") and "memdesc<2x" not in text), order
        assert not copies or ("memdesc<2x" in text and "memdesc<3x" not in text)


def test_products_that_need_each_other() -> None:
    """The first product needs the second of the iteration before: they stay in one stage."""
    a, b = np.random.default_rng(0).integers(-1, 2, (2, 3, 32, 32)).astype(np.float16) * np.float16(0.125)
    found, state = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    text = launch(recurrence, "gfx942", [a, b, found, 3], num_stages=4, SIZE=32)
    for left, right in zip(a.astype(np.float32), b.astype(np.float32), strict=True):
        state += right @ (left @ state + 1)
    assert np.allclose(found, state, atol=2e-2) and "memdesc<3x32x32xf16" in text


@pytest.mark.parametrize(("arch", "num_stages", "width"), [("gfx950", 2, 8), ("gfx942", 3, 2)])
def test_copies_to_lds(monkeypatch: pytest.MonkeyPatch, arch: str, num_stages: int, width: int) -> None:
    """Lanes exchange their offsets where LDS is swizzled; some of the copies are under way at each wait."""
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    a, b = np.random.default_rng(0).integers(-3, 4, (2, 64, 64)).astype(np.float16)
    out = np.zeros((64, 64), np.float32)
    ttgir = launch(product, arch, [a, b, out], num_stages=num_stages, SIZE=64, STEP=64 // num_stages // 16 * 16)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert f"{{contiguity = {width} : i32}}" in ttgir and "ttg.local_store" not in ttgir


@tilework.jit
def long_product(a, b, out, steps, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((N, N), tl.float32)
    for step in range(steps):
        left = tl.load(a + step * N * K + n[:, None] * K + k[None, :])
        total = tl.dot(left, tl.load(b + step * K * N + k[:, None] * N + n[None, :]), total)
    tl.store(out + n[:, None] * N + n[None, :], total)


def loop_of(assembly: str) -> str:
    """The innermost loop with the most matrix instructions."""
    parts = re.split(r"^(\.LBB\w+):", assembly, flags=re.M)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    return max(
        (text for label, text in bodies.items() if re.search(rf"s_cbranch_\w+ {re.escape(label)}\b", text)),
        key=lambda text: text.count("v_mfma"),
    )


@pytest.mark.parametrize(("arch", "num_stages"), [("gfx950", 2), ("gfx950", 3), ("gfx950", 4), ("gfx942", 3)])
def test_copies_stay_in_flight(monkeypatch: pytest.MonkeyPatch, arch: str, num_stages: int) -> None:
    """A loop has one barrier and one wait, which leaves the later copies in flight; with any number of iterations."""
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    random, text = np.random.default_rng(0), ""
    for steps in range(6):
        a, b = (random.integers(-3, 4, (max(1, steps), *shape)).astype(np.float16) for shape in ((64, 32), (32, 64)))
        out = np.ones((64, 64), np.float32)
        text = launch(long_product, arch, [a, b, out, steps], num_stages=num_stages, stage="amdgcn", N=64, K=32)
        assert np.array_equal(out, np.einsum("kij,kjl->il", a[:steps].astype(np.float32), b[:steps]))
    loop = loop_of(text)
    waits = [int(count) for count in re.findall(r"vmcnt\((\d+)\)", loop)]
    copies = loop.count("offen lds")
    assert loop.count("s_barrier") == 1 and copies and waits == [copies * (num_stages - 2)]


def test_a_copy_without_its_wait_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    a, b = np.zeros((2, 5, 64, 64), np.float16)
    out = np.ones((64, 64), np.float32)
    text = launch(long_product, "gfx950", [a, b, out, 5], num_stages=3, stage="llir", whole=False, N=64, K=64)
    waits = [line for line in text.splitlines() if "s.waitcnt(" in line and "49279" not in line and "call" in line]
    assert len(waits) == 3
    for wait in dict.fromkeys(waits):
        with pytest.raises(CheckFailed) as caught:
            mistaken = text.replace(wait, "", 1)
            run(mistaken, [a, b, out, 5, 0, 0], threads=256, lds_bytes=metadata(text)["shared"], arch="gfx950")
        assert "used before its wait" in {finding.kind for finding in caught.value.findings}


@tilework.jit
def wide_product(a, b, out, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for step in range(steps):
        left = tl.load(a + step * M * K + m[:, None] * K + k[None, :])
        total = tl.dot(left, tl.load(b + step * K * N + k[:, None] * N + n[None, :]), total)
    tl.store(out + m[:, None] * N + n[None, :], total)


def test_half_of_the_waves_runs_behind() -> None:
    """Barriers that only some waves come to, in front of the loop and behind it, keep the halves one step apart."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, (2, *shape)).astype(np.float16) for shape in ((256, 64), (64, 128)))
    out = np.zeros((256, 128), np.float32)
    ttgir = launch(wide_product, "gfx942", [a, b, out, 2], num_warps=8, M=256, N=128, K=64)
    assert np.array_equal(out, np.einsum("kij,kjl->il", a.astype(np.float32), b.astype(np.float32)))
    assert ttgir.count("amdg.cond_barrier") == 2 and ttgir.count("ttg.memdesc_subslice") == 4


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("steps", range(5))
def test_half_of_the_waves_runs_behind_copies(monkeypatch: pytest.MonkeyPatch, arch: str, steps: int) -> None:
    """Copies are in flight over both barriers of an iteration."""
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, (max(1, steps), *shape)).astype(np.float16) for shape in ((128, 32), (32, 128)))
    out = np.ones((128, 128), np.float32)
    ttgir = launch(wide_product, arch, [a, b, out, steps], num_warps=8, num_stages=3, M=128, N=128, K=32)
    assert np.array_equal(out, np.einsum("kij,kjl->il", a[:steps].astype(np.float32), b[:steps]))
    assert ttgir.count("amdg.cond_barrier") == 2 and ttgir.count("rocdl.s.barrier") == 1


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("num_stages", [2, 3, 4])
def test_f32_products_without_matrix_instructions(steps: int, num_stages: int) -> None:
    """The dots of the loop and of its last iterations read the buffers of the pipeliner, and need no other memory."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((max(1, steps), *shape), dtype=np.float32) for shape in ((64, 32), (32, 64)))
    out = np.ones((64, 64), np.float32)
    options = {"stage": "llir", "num_stages": num_stages, "num_warps": 1}
    text = launch(wide_product, "gfx1100", [a, b, out, steps], **options, M=64, N=64, K=32, whole=False)
    expected = np.einsum("kij,kjl->il", a[:steps].astype(np.float64), b[:steps])
    assert np.allclose(out, expected, rtol=1e-4, atol=1e-4)
    assert metadata(text)["shared"] == (num_stages - 1) * 2 * 64 * 32 * 4
    assert len(text) < 1_000_000  # the dots are loops


def test_too_much_lds() -> None:
    a = np.zeros((256, 256), np.float16)
    line = product.fn.__code__.co_firstlineno
    with pytest.raises(
        OutOfResources, match=rf"LDS of `product` .*:{line + 1}\) on hip:gfx942, Required: 262144, .* 65536"
    ):
        launch(product, "gfx942", [a, a, a], num_stages=3, SIZE=256, STEP=128)


@tilework.jit
def dot(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    total: tl.constexpr = tl.int32 if left.dtype == tl.int8 else tl.float32
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(left, right, out_dtype=total))


DOTS = [
    ("gfx942", (64, 64, 64), "float16", "[32, 32, 8]"),
    ("gfx942", (64, 8, 64), "float16", "[64, 4, 64]"),
    ("gfx942", (8, 64, 64), "float16", "[4, 64, 64]"),
    ("gfx942", (32, 32, 32), "float8_e4m3fnuz", "[32, 32, 16]"),
    ("gfx908", (32, 32, 32), "bfloat16", "[32, 32, 4]"),
    ("gfx908", (64, 8, 64), "bfloat16", "[64, 4, 32]"),
    ("gfx908", (8, 64, 64), "bfloat16", "[4, 64, 32]"),
    ("gfx908", (64, 8, 64), "int8", "[64, 4, 64]"),
    ("gfx90a", (16, 32, 32), "bfloat16", "[16, 16, 16]"),
    ("gfx950", (32, 32, 32), "int8", "[32, 32, 32]"),
    ("gfx1100", (32, 32, 16), "float16", "version = 1"),
    ("gfx1100", (16, 32, 8), "int8", "version = 1"),
    ("gfx1201", (16, 32, 32), "float8_e4m3fn", "version = 2"),
    ("gfx1201", (32, 32, 4), "bfloat16", "version = 2"),
    ("gfx1201", (16, 16, 8), "float8_e5m2", "version = 2"),
    ("gfx1201", (8, 32, 32), "float16", ""),
    ("gfx1250", (32, 32, 64), "float16", "instrShape = [16, 16, 32]"),
    ("gfx1250", (16, 64, 8), "bfloat16", "instrShape = [16, 16, 32]"),
    ("gfx1250", (32, 32, 64), "int8", "instrShape = [16, 16, 64]"),
    ("gfx1250", (32, 32, 64), "float8_e4m3fn", "instrShape = [16, 16, 64]"),
    ("gfx1250", (32, 32, 128), "float8_e5m2", "instrShape = [16, 16, 128]"),
    ("gfx1250", (16, 16, 16), "float32", ""),
    ("gfx1100", (16, 48, 3), "float16", "version = 1"),  # sizes that are no powers of two
    ("gfx1201", (24, 40, 20), "float16", "version = 2"),
    ("gfx1250", (32, 16, 12), "float16", "version = 3"),
    ("gfx942", (8, 8, 16), "float8_e4m3fnuz", ""),  # too small for an instruction
]


@pytest.mark.parametrize(("arch", "shape", "dtype", "form"), DOTS)
def test_dots_on_matrix_units(arch: str, shape: tuple[int, int, int], dtype: str, form: str) -> None:
    random = np.random.default_rng(0)
    m, n, k = shape
    type = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a, b = (random.integers(-7, 8, size).astype(type) for size in ((m, k), (k, n)))
    out = np.zeros((m, n), np.int32 if dtype == "int8" else np.float32)
    ttgir = launch(dot, arch, [a, b, out], M=m, N=n, K=k)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert any(form in line for line in ttgir.splitlines() if line.startswith("#mma")) == bool(form), ttgir


def test_mixed_8_bit_floats() -> None:
    """Under a transposed layout the formats in the name of the instruction are exchanged like its operands."""
    random = np.random.default_rng(0)
    types = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz
    a, b = (random.integers(-4, 5, (32, 32)).astype(type) for type in types)
    out = np.zeros((32, 32), np.float32)
    launch(dot, "gfx942", [a, b, out], M=32, N=32, K=32)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@tilework.jit
def shown(x, most, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.device_print("50%: x", values.to(tl.float16), values.to(tl.int64))
    tl.device_print("in hex", values, hex=True)
    tl.device_assert(values < most, "too: large")


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_print_and_assert(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the runtime's buffer; the first lane that fails an assert says so."""
    x = np.arange(-2, 6, dtype=np.int32)
    launch(shown, arch, [x, 6], debug=True, N=8)
    wanted = [f"pid (0, 0, 0) idx ({i}) 50%: x: (operand 0) {v:f}" for i, v in enumerate(x)]
    wanted += [f"pid (0, 0, 0) idx ({i}) 50%: x: (operand 1) {v}" for i, v in enumerate(x)]
    wanted += [f"pid (0, 0, 0) idx ({i}) in hex: 0x{int(v) & 0xFFFFFFFF:08x}" for i, v in enumerate(x)]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(wanted)
    with pytest.raises(Trapped, match=r"device assertion failed: 'too: large', in shown at .*py:"):
        launch(shown, arch, [x, 5], debug=True, N=8)
    assert capsys.readouterr().out.count("assertion failed") == WARPS  # each of them holds the elements


@tilework.jit
def elementary(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    made = (
        libdevice.tanh(v)
        + hip.libdevice.pow(v, 2)
        + libdevice.fast_tanhf(v)
        + libdevice.rint(v)
        + hip.libdevice.isnan(v)
    )
    tl.debug_barrier()
    tl.store(out + i, made + (hip.memrealtime() * 0).to(tl.float32))


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_functions_of_the_device_library(arch: str) -> None:
    """AMD's own symbols where there are such, NVIDIA's for the rest; the code is ours. The clock needs no assembler."""
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    out = np.zeros_like(x)
    ttgir = launch(elementary, arch, [x, out], N=64)
    assert np.allclose(out, 2 * np.tanh(x) + x * x + np.rint(x), atol=2e-6)
    symbols = re.findall(r'symbol = "(\w+)"', ttgir)
    assert symbols == [
        "__ocml_tanh_f32",
        "__ocml_pown_f32",
        "__triton_hip_fast_tanhf",
        "__triton_hip_rint",
        "__ocml_isnan_f32",
    ]


def test_operands_turn_over_in_registers() -> None:
    """On gfx942 an operand that memory holds across K is stored to LDS along K, and read from there in words."""
    a, b = np.random.default_rng(1).standard_normal((2, 64, 64)).astype(np.float16)
    out = np.zeros((64, 64), np.float32)
    text = launch(product, "gfx942", [a, b, out], num_stages=2, SIZE=64, STEP=64)
    assert "#ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>" in text
    assert text.count("amdg.in_thread_transpose") >= 1
    assert np.allclose(out, a.astype(np.float32) @ b.astype(np.float32), atol=1e-4)


@tilework.jit
def narrowed(x, out, back, half, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    short = values.to(out.dtype.element_ty)
    tl.store(out + i, short)
    tl.store(back + i, short.to(tl.bfloat16))
    tl.store(half + i, values.to(tl.float16, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize(
    ("arch", "name"), [("gfx942", "float8_e4m3fnuz"), ("gfx942", "float8_e4m3fn"), ("gfx950", "float8_e5m2")]
)
def test_float_conversions(arch: str, name: str) -> None:
    """By instructions for the formats of the GPU, saturating as everywhere; the others in software."""
    random = np.random.default_rng(0)
    x = np.zeros(256, np.float32)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 449, 2.0**-10, 70000]
    x[8:] = random.standard_normal(248) * 10.0 ** random.integers(-5, 5, 248)
    type = np.dtype(getattr(ml_dtypes, name))
    out, back, half = np.zeros(256, type), np.zeros(256, ml_dtypes.bfloat16), np.zeros(256, np.float16)
    launch(narrowed, arch, [x, out, back, half], N=256)
    wanted = narrow(saturate(x, type), type)
    assert np.array_equal(out.view(np.uint8), wanted.view(np.uint8))
    assert np.array_equal(back.astype(np.float32), wanted.astype(np.float32), equal_nan=True)
    with np.errstate(over="ignore"):
        assert np.array_equal(
            half[5:],
            np.where(np.abs(near := x[5:].astype(np.float16)) > np.abs(x[5:]), np.nextafter(near, np.float16(0)), near),
        )


@tilework.jit
def half_product(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)).to(tl.float16))


def test_halves_of_waves_exchange_results() -> None:
    """On gfx950 lanes exchange 16-bit results in one instruction and store eight neighbours each."""
    a, b = np.random.default_rng(1).standard_normal((2, 64, 64)).astype(np.float16)
    out = np.zeros((64, 64), np.float16)
    text = launch(half_product, "gfx950", [a, b, out], stage="llir", SIZE=64)
    assert "llvm.amdgcn.permlane32.swap" in text
    assert np.allclose(out, a.astype(np.float32) @ b.astype(np.float32), atol=3e-2)


def test_halves_of_a_wave_change_places() -> None:
    """On gfx950 a reduction reads the other half of the wave without LDS."""
    rows = np.random.default_rng(0).standard_normal((1, 64), dtype=np.float32)
    found = np.zeros_like(rows)
    text = launch(softmax, "gfx950", [rows, found, 64], stage="llir", BLOCK=64)
    powers = np.exp(rows - rows.max())
    assert np.allclose(found, powers / powers.sum(), rtol=1e-5)
    assert "permlane32.swap" in text and "permlane16.swap" in text and "bpermute" not in text and "swizzle" not in text


@pytest.mark.parametrize("is_transpose", [True, False])
def test_wmma_of_mixed_formats(is_transpose: bool) -> None:
    """Transposed, the instruction takes the right operand first, and its format too."""
    source = ASTSource(
        product,
        signature={"a": "*fp8e4nv", "b": "*fp8e5", "out": "*fp32"},
        constexprs={"SIZE": 32, "STEP": 32},
    )
    target = Target.parse("hip:gfx1201")
    ttgir = lower(source, target.name, ["ttgir"], num_warps=1)["ttgir"]
    assert "isTranspose = true" in ttgir
    module = parse_module(ttgir.replace("isTranspose = true", f"isTranspose = {str(is_transpose).lower()}"))
    text = emit_module(module, target)
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (32, 32)).astype(dtype) for dtype in ("float8_e4m3fn", "float8_e5m2"))
    out = np.zeros((32, 32), np.float32)
    run(text, [a, b, out, 0, 0], threads=32, lds_bytes=metadata(text)["shared"], arch="gfx1201")
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
