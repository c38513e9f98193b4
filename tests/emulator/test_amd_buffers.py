"""Buffer instructions of AMD GPUs: where pointers come from, what masks give, which offsets fit, in the emulator, which
knows their bounds."""

# pyright: reportMissingParameterType=false

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.kernel import FrontendOptions
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.evaluator import evaluate
from tilework.oracles.evaluator.values import EvaluationError
from tilework.runtime.launch.python.specialize import parse_attr
from tilework.target import Target
from tilework.targets.amd.code_object import metadata
from tilework.targets.amd.lower.emit import emit_module
from tilework.targets.amd.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

WARPS, N = 2, 128
CODES = {"float32": "fp32", "float16": "fp16", "int32": "i32", "int64": "i64", "int8": "i8", "bool": "u1"}
CDNA, RDNA = "gfx942", "gfx1100"


def launch(kernel: Any, arch: str, *args: Any, small: str = "S", evaluates: bool = True, **constants: Any) -> str:
    """Run a kernel on the evaluator and on the emulator, which must agree; its TTGIR."""
    codes = {name: code_of(arg) for name, arg in zip(kernel.arg_names, args, strict=False)}
    facts = {(index,): parse_attr(small) for index, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    signature, target = {**codes, **dict.fromkeys(constants, "constexpr")}, Target.parse(f"hip:{arch}")
    module = compile_to_ttir(kernel, signature, constants, facts, FrontendOptions(backend_name="hip"))
    passes = [*ttir_pipeline(target), *ttgir_pipeline(target, WARPS, 1)]
    run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
    again = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    if evaluates:
        evaluate(module, args=again)
    text = emit_module(module, target)
    run(text, [*args, 0, 0], 1, WARPS * target.warp_size, metadata(text)["shared"], arch)
    for found, wanted in zip(args, again, strict=True) if evaluates else ():
        assert np.array_equal(found, wanted)
    return print_module(module)


def code_of(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        return f"*{CODES[arg.dtype.name]}"
    return "i32" if abs(arg) < 2**31 else "i64"


def uses(ttgir: str) -> tuple[int, int]:
    """Return the number of buffer accesses and of plain ones."""
    return ttgir.count("= amdg.buffer_") + ttgir.count(" amdg.buffer_store"), sum(
        ttgir.count(name) for name in ("tt.load", "tt.store", "tt.atomic")
    )


def draw(*shape: int) -> Any:
    return np.random.default_rng(7).integers(-99, 99, shape).astype(np.float32)


@tilework.jit
def backwards(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    p, total = x + (n - 1) * N + i, tl.zeros((N,), tl.float32)
    for _ in range(n):
        total = total * 2 + tl.load(p)
        p -= N
    tl.store(out + i, total)


@tilework.jit
def swapped(x, y, out, n, N: tl.constexpr, ONE: tl.constexpr):
    i = tl.arange(0, N)
    p, q, total = x + i, (x + N + i) if ONE else (y + i), tl.zeros((N,), tl.float32)
    for _ in range(n):
        total = total * 2 + tl.load(p)
        p, q = q, p
    tl.store(out + i, total)


@tilework.jit
def spinning(x, out, n, N: tl.constexpr):
    i, k = tl.arange(0, N), 0
    p, total = x + i, tl.zeros((N,), tl.float32)
    while k < n:
        total += tl.load(p) * (k + 1)
        if k % 2 == 0:
            p += 2 * N
        else:
            p -= N
        k += 1
    tl.store(out + i, total + tl.load(p))


@tilework.jit
def chosen(x, y, out, flag, N: tl.constexpr, ONE: tl.constexpr):
    i = tl.arange(0, N)
    if flag > 0:
        p = x
    else:
        p = x + N if ONE else y
    q = tl.where(i % 2 == 0, x + i, (x + 3 + i) if ONE else (y + i))
    tl.store(out + i, tl.load(p + i) + 100 * tl.load(q))


@pytest.mark.parametrize("arch", [CDNA, RDNA])
def test_pointers_through_control_flow(arch: str) -> None:
    """Offsets are carried, and a base where it may be one of several; elements of several arrays have no base."""
    x, y, out = draw(8, N), draw(N) + 500, np.zeros(N, np.float32)
    assert uses(launch(backwards, arch, x, out, 5, N=N)) == (2, 0)
    assert np.array_equal(out, sum(x[k] * 2**k for k in range(5)))
    assert uses(launch(spinning, arch, x, out, 4, N=N)) == (3, 0)
    assert np.array_equal(out, x[0] + 2 * x[2] + 3 * x[1] + 4 * x[3] + x[2])
    for is_one, other in ((True, x[1]), (False, y)):
        assert uses(launch(swapped, arch, x, y, out, 3, N=N, ONE=is_one)) == (2, 0)
        assert np.array_equal(out, 4 * x[0] + 2 * other + x[0])
    flat, even = x.reshape(-1), np.arange(N) % 2 == 0
    for is_one, counts in ((True, (3, 0)), (False, (2, 1))):
        assert uses(launch(chosen, arch, x, y, out, 0, N=N, ONE=is_one)) == counts
        p, q = (flat[N : 2 * N], flat[3 : 3 + N]) if is_one else (y, y)
        assert np.array_equal(out, p + 100 * np.where(even, x[0], q))


@tilework.jit
def masked(x, out, far, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i - 1, mask=i > 0, other=7.0))
    tl.store(out + N + i, tl.load(x + i + 1, mask=i + 1 < N, other=-0.0))
    tl.store(out + 2 * N + i, tl.load(x + (i - 5) * far, mask=i == 5, other=3.0))
    tl.store(out + i - 100 * far, tl.load(x + far + i.to(tl.int64) - far), mask=i < 0)


@tilework.jit
def cast(x, flags, out, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, N)
    words = tl.load((x + 2 * i).to(tl.pointer_type(tl.int16), bitcast=True)).to(tl.int32)
    tl.store(out + i * M, words + tl.load(flags + i) + tl.load(x.to(tl.pointer_type(tl.int32), bitcast=True) + i // 4))


def test_masks_and_types() -> None:
    """Masked-off elements are `other`, wherever their offsets point to; elements of another type and size."""
    x, out = draw(N), np.zeros(3 * N, np.float32)
    assert uses(launch(masked, CDNA, x, out, 100_000_000, N=N)) == (8, 0)
    zeros = np.where(np.arange(N) == 5, x[0], np.float32(3))
    assert np.array_equal(out, np.concatenate([[7], x[:-1], x[1:], [0], zeros])) and np.signbit(out[2 * N - 1])
    bytes, flags = np.arange(256).astype(np.int8), np.arange(N) % 3 == 0
    for arch in (CDNA, RDNA):
        words = np.zeros((N, 3), np.int32)
        assert uses(launch(cast, arch, bytes, flags, words, N=N, M=3)) == (3, 1)
        wanted = bytes.view(np.int16) + flags + bytes.view(np.int32)[np.arange(N) // 4]
        assert np.array_equal(words[:, 0], wanted) and not words[:, 1:].any()


@tilework.jit
def ranges(x, out, n, start, N: tl.constexpr):
    tl.assume(n >= 0)
    tl.assume(n < 1000)
    i = tl.arange(0, N)
    base = x + start
    total = (
        tl.load(base + i) + tl.load(base + (i % 7 + n * 4)) + tl.load(base + ((i & 15) << 2 | (n >= 0).to(tl.int32)))
    )
    total += tl.load(base + (i + start)) + tl.load(base + (i - 1), mask=i > 0, other=0) + tl.load(base + i.to(tl.int64))
    for k in range(n):
        total += tl.load(base + (k * 4 + i // 64))
    tl.store(out + i, total)


def test_ranges_of_offsets() -> None:
    """Without a promise about the array offsets must be known: not negative, of 32 bits, and less than 2 GiB."""
    x, out = draw(4 * N), np.zeros(N, np.float32)
    ttgir = launch(ranges, RDNA, x, out, 3, 2, small="", N=N)
    assert uses(ttgir) == (5, 3) and "arith.cmpi sge" in ttgir  # the assumption stays
    i, y = np.arange(N), x[2:]
    wanted = y[i] + y[i % 7 + 12] + y[(i & 15) * 4 + 1] + y[i + 2] + np.where(i > 0, y[i - 1], 0) + y[i]
    assert np.array_equal(out, wanted + sum(y[4 * k + i // 64] for k in range(3)))


@tilework.jit
def atomics(at, x, cells, old, swaps, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(old + i, tl.atomic_add(cells + tl.load(at + i), value, mask=i % 3 != 0, sem="release"))
    tl.store(old + N + i, tl.atomic_cas(swaps + i, value, value + 1, sem="acquire"))
    tl.atomic_xor(swaps + N + i, value, scope="cta")


@pytest.mark.parametrize(("arch", "counts"), [(CDNA, (7, 0)), (RDNA, (5, 2)), ("gfx1201", (7, 0))])
def test_atomics(arch: str, counts: tuple[int, int]) -> None:
    random = np.random.default_rng(7)
    at, x = random.permutation(N).astype(np.int32), random.integers(0, 9, N)
    cells, swaps, old = np.zeros(N, np.int64), random.integers(0, 9, 2 * N), np.full(2 * N, -1)
    before, on = swaps.copy(), np.arange(N) % 3 != 0
    assert uses(launch(atomics, arch, at, x, cells, old, swaps, N=N)) == counts
    sums = np.zeros(N, np.int64)
    np.add.at(sums, at[on], x[on])
    assert np.array_equal(cells, sums) and not old[:N].any() and np.array_equal(old[N:], before[:N])
    assert np.array_equal(swaps, np.concatenate([np.where(before[:N] == x, x + 1, before[:N]), before[N:] ^ x]))


@tilework.jit
def before(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x - N + i))


def test_the_bounds_of_a_buffer_are_looked_at() -> None:
    """A negative offset that no mask explains is found, though the hardware would give 0."""
    args = draw(8, N), np.zeros(N, np.float32), 9
    for finder, words in (
        (EvaluationError, "no buffer of 31 bits reaches"),
        (CheckFailed, "offset -512 of a buffer is negative"),
    ):
        with pytest.raises(finder, match=words):
            launch(before, CDNA, *args, evaluates=finder is EvaluationError, N=N)


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables disable buffer operations, or those of atomics, or require proof of small offsets."""
    x, y, out = draw(8, N), draw(N), np.zeros(N, np.float32)
    swaps = np.zeros(2 * N, np.int64)
    args = np.arange(N, dtype=np.int32), swaps[:N].copy(), swaps[:N].copy(), swaps.copy(), swaps
    monkeypatch.setenv("AMDGCN_USE_BUFFER_ATOMICS", "0")
    assert uses(launch(atomics, CDNA, *args, N=N)) == (4, 3)
    monkeypatch.setenv("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE", "1")
    assert uses(launch(swapped, CDNA, x, y, out, 3, N=N, ONE=True)) == (2, 0)
    assert uses(launch(backwards, CDNA, x, out, 5, N=N)) == (1, 1)
    monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "0")
    assert uses(launch(swapped, CDNA, x, y, out, 3, N=N, ONE=True)) == (0, 2)


COPY = """
#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [2], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @copy(%x: !tt.ptr<i32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<i32> {tt.pointer_range = 32 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : TENSOR
    %end = tt.splat %n : i32 -> TENSOR
    %mask = arith.cmpi slt, %i, %end : TENSOR
    %seven = arith.constant dense<7> : TENSOR
    %m = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #shared, #smem, mutable>
    %t = amdg.buffer_load_to_local %x[%i] mask = %mask OTHER into %m : <i32>[TENSOR] TYPE -> <128xi32, #shared, #smem, mutable>
    %w = amdg.async_wait %t {num_inst = 0 : i32}
    %v = ttg.local_load %m token %w : !ttg.memdesc<128xi32, #shared, #smem, mutable> -> TENSOR
    amdg.buffer_store %v, %y[%i] : TENSOR
    tt.return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("other", [0, 7])
def test_copies_to_lds_with_other_values(other: int) -> None:
    """The instruction writes 0 where it is masked off; other values need a load and a store."""
    operand, kind = ("other = %seven", "TENSOR") if other else ("", "")
    source = COPY.replace("OTHER", operand).replace("TYPE", kind).replace("TENSOR", "tensor<128xi32, #row>")
    text = emit_module(parse_module(source), Target.parse("hip:gfx942"))
    x, y = np.arange(1, 129, dtype=np.int32), np.zeros(128, np.int32)
    run(text, [x, y, 100, 0, 0], 1, 128, metadata(text)["shared"], "gfx942")
    np.testing.assert_array_equal(y, np.where(x <= 100, x, other))
    assert ("load.lds" in text) == (other == 0)
