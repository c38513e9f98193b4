"""The parameters that other tests leave at their defaults, and what kernels ask about their target."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import DEVICES, FLOATS, INTS, ON_NVIDIA, Refused
from tests.differential.harness import agree, launch, sample
from tests.differential.settings import few_examples, seeds, shapes
from tilework.language.extra import cuda
from tilework.language.function import jit
from tilework.target import Target
from tilework.transforms.registry import ttir_pipeline

SEMANTICS = st.sampled_from(["acquire", "release", "acq_rel", "relaxed"])
SCOPES = st.sampled_from(["gpu", "cta", "sys"])


@jit
def atomics(p, q, v, SEM: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(v + i)
    tl.atomic_add(p + i, x, sem=SEM, scope=SCOPE)
    tl.atomic_max(p + i, x + 1, sem=SEM, scope=SCOPE)
    tl.atomic_min(p + i, 3 * x, sem=SEM, scope=SCOPE)
    tl.atomic_and(p + i, x | 6, sem=SEM, scope=SCOPE)
    tl.atomic_or(p + i, x & 9, sem=SEM, scope=SCOPE)
    tl.atomic_xor(p + i, x, sem=SEM, scope=SCOPE)
    tl.store(q + i, tl.atomic_xchg(p + i, x, sem=SEM, scope=SCOPE))
    tl.atomic_poll(p + i, x, sem=SEM, scope=SCOPE, timeout_ns=None)
    tl.store(q + N + i, tl.atomic_cas(p + i, x, x + x, sem=SEM, scope=SCOPE))


@few_examples
@given(st.sampled_from(["i32", "u32", "i64", "u64"]), SEMANTICS, SCOPES, seeds)
def test_atomics_with_semantics_and_scopes(code: str, sem: str, scope: str, seed: int) -> None:
    arrays = {"p": sample(code, (16,), seed), "q": sample(code, (32,), seed + 1), "v": sample(code, (16,), seed + 2)}
    launch(atomics, arrays, {"SEM": sem, "SCOPE": scope, "N": 16})


@jit
def bit_casts(x, UNSIGNED: tl.constexpr):
    return tl.cast(x, UNSIGNED, bitcast=True), tl.cast(tl.cast(x, UNSIGNED, bitcast=True), x.dtype, bitcast=True)


@few_examples
@given(
    st.sampled_from([("fp32", tl.uint32), ("i16", tl.float16), ("fp64", tl.int64), ("u8", tl.int8)]), shapes(), seeds
)
def test_cast_bitcast(types: Any, shape: tuple[int, ...], seed: int) -> None:
    agree(bit_casts, sample(types[0], shape, seed), params=(types[1],))


@jit
def checks(x, FILE: tl.constexpr):
    positive = x > 0
    tl.device_assert(positive, "only where it holds", mask=positive)
    tl.device_print("bits", x, hex=True)
    x = tl.expect_zero(x, x == 0)
    tl.static_print("type", x.dtype, sep="=", end=";", file=FILE, flush=True)
    return x


def test_checks_and_prints_change_nothing() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        agree(checks, sample("i32", (8,), 3), params=(printed,))
    compilations = len(DEVICES) - 1  # the evaluator and the CPU run the same module
    assert printed.getvalue() == "type=int32;" * compilations


ONLY_GPUS = ("pad-tiles", "triton-lift-skipped-loads")


def test_the_cpu_shares_the_passes_of_ttir() -> None:
    """The harness relies on it, but for descriptors, odd tiles, pipelines and arguments that overlap."""
    shared, own = (
        [name.partition("{")[0] for name in ttir_pipeline(target) if "descriptor" not in name and name not in ONLY_GPUS]
        for target in map(Target.parse, ("cpu", "cuda:90"))
    )
    assert shared == own


@jit
def products(a, b):
    exact = tl.dot(a, b, allow_tf32=False)
    return exact, tl.dot(a, b, max_num_imprecise_acc=0)


@few_examples
@given(st.sampled_from(["fp16", "bf16", "fp32", "fp8e5", "fp8e4nv"]), seeds)
def test_dot_allow_tf32_and_imprecise_accumulation(code: str, seed: int) -> None:
    a, b = (sample(code, shape, seed + n, special=False) for n, shape in enumerate([(16, 32), (32, 16)]))
    agree(products, a, b, rtol=2e-2, atol=2e-1)


@jit
def packed_along_n(a, b, b_scale):
    return tl.dot_scaled(a, None, "e4m3", b, b_scale, "e2m1", rhs_k_pack=False, fast_math=True, out_dtype=tl.float32)


def test_dot_scaled_packed_along_n() -> None:
    random = np.random.default_rng(0)
    b = random.integers(0, 256, (32, 4)).astype(np.uint8)
    scale = random.integers(125, 129, (8, 1)).astype(np.uint8)
    agree(packed_along_n, sample("fp8e4nv", (4, 32), 1, special=False), b, scale, rtol=1e-5, atol=1e-3)


@jit
def hinted_copy(p, q, EVICT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(q + i, tl.load(p + i, volatile=True, eviction_policy=EVICT), eviction_policy=EVICT)


@pytest.mark.parametrize("policy", ["", "evict_first", "evict_last"])
@pytest.mark.parametrize("code", ["i8", "fp32", "u1"])
def test_volatile_and_eviction(policy: str, code: str) -> None:
    arrays = {"p": sample(code, (32,), 1), "q": sample(code, (32,), 2)}
    launch(hinted_copy, arrays, {"EVICT": policy, "N": 32})


@jit
def wrapping(x, y):
    return tl.sub(x, y, sanitize_overflow=False), tl.mul(x, y, sanitize_overflow=False)


@few_examples
@given(st.sampled_from(INTS), shapes(), seeds)
def test_sub_and_mul_without_overflow_checks(code: str, shape: tuple[int, ...], seed: int) -> None:
    agree(wrapping, sample(code, shape, seed), sample(code, shape, seed + 1))


@jit
def reordered(x, N: tl.constexpr):
    return tl.sum(tl.reshape(x, [N], can_reorder=True)), tl.max(tl.ravel(x, can_reorder=True))


@few_examples
@given(st.sampled_from(["i32", "i64", "u32"]), shapes(min_rank=2), seeds)
def test_reshape_and_ravel_may_reorder(code: str, shape: tuple[int, ...], seed: int) -> None:
    agree(reordered, sample(code, shape, seed), params=(int(np.prod(shape)),))


@jit
def few_rounds(offset, SEED: tl.constexpr, ROUNDS: tl.constexpr):
    a, b, c, d = tl.randint4x(SEED, offset, n_rounds=ROUNDS)
    e, f, g, h = tl.rand4x(SEED, offset, n_rounds=ROUNDS)
    return a, b, c, d, e, f, g, h, tl.randint(SEED, offset, n_rounds=ROUNDS), tl.rand(SEED, offset, n_rounds=ROUNDS)


@jit
def few_normal_rounds(offset, SEED: tl.constexpr, ROUNDS: tl.constexpr):
    return tl.randn(SEED, offset, n_rounds=ROUNDS), tl.randn4x(SEED, offset, n_rounds=ROUNDS)[2]


@pytest.mark.parametrize(
    ("code", "rounds", "seed"), [("i32", 1, 0), ("u32", 12, 921), ("i64", 7, 2**16), ("i32", 4, 5)]
)
def test_random_numbers_of_other_round_counts(code: str, rounds: int, seed: int) -> None:
    offsets = sample(code, (16,), seed)
    agree(few_rounds, offsets, params=(seed, rounds))
    agree(few_normal_rounds, offsets, params=(seed, rounds), rtol=1e-4, atol=1e-6)


@jit
def extremes(x, AXIS: tl.constexpr):
    low = tl.argmin(x, AXIS, tie_break_left=True, keep_dims=True)
    high = tl.argmax(x, AXIS, tie_break_left=True, keep_dims=True)
    top, first = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=True, keep_dims=True)
    bottom, last = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=True, keep_dims=True)
    return low, high, top, first, bottom, last


@jit
def any_tie(x, AXIS: tl.constexpr):
    """The index among equal elements is unspecified; the value is not."""
    low = tl.argmin(x, AXIS, tie_break_left=False, keep_dims=True)
    high = tl.argmax(x, AXIS, tie_break_left=False, keep_dims=True)
    top, _ = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=False)
    bottom, _ = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=False)
    return tl.gather(x, low, AXIS), tl.gather(x, high, AXIS), top, bottom


@few_examples
@given(st.sampled_from(["i8", "u16", "i32", "u64", "fp16", "fp32"]), shapes(min_rank=2), st.data(), seeds)
def test_extremes_and_their_places(code: str, shape: tuple[int, ...], data: Any, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    values = sample(code, shape, seed, special=False)
    agree(extremes, values, params=(axis,))
    values = np.round(values % 4).astype(values.dtype)  # with ties
    agree(extremes, values, params=(axis,))
    agree(any_tie, values, params=(axis,))


@jit
def along_the_last(x, LAST: tl.constexpr, K: tl.constexpr):
    smallest = tl.topk(x, K, dim=LAST, descending=False)
    return tl.sort(x, dim=LAST), tl.topk(x, K, dim=LAST), smallest, tl.bitonic_merge(x, dim=LAST)


@few_examples
@given(st.sampled_from([*INTS, *FLOATS]), st.sampled_from([(4,), (2, 4), (2, 2, 8)]), seeds)
def test_sorting_along_a_named_axis(code: str, shape: tuple[int, ...], seed: int) -> None:
    values = np.sort(sample(code, shape, seed, special=False), axis=-1)
    agree(along_the_last, values, params=(len(shape) - 1, 2))


@jit
def merged_bits(x, AXIS: tl.constexpr):
    return tl.reduce_or(x, AXIS, keep_dims=True), tl.xor_sum(x, AXIS, keep_dims=True)


@few_examples
@given(st.sampled_from(INTS), shapes(min_rank=2), st.data(), seeds)
def test_reduce_or_keeps_axes(code: str, shape: tuple[int, ...], data: Any, seed: int) -> None:
    agree(merged_bits, sample(code, shape, seed), params=(data.draw(st.integers(0, len(shape) - 1)),))


@jit
def rounded_softmax(x):
    return tl.softmax(x, ieee_rounding=True), tl.softmax(x, dim=0, keep_dims=True, ieee_rounding=False)


@few_examples
@given(st.sampled_from(["fp32", "fp64"]), seeds)
def test_softmax_with_rounding(code: str, seed: int) -> None:
    agree(rounded_softmax, sample(code, (32,), seed, special=False), rtol=1e-5)


SYMBOLS = {
    (tl.float32, tl.float32): ("__nv_hypotf", tl.float32),
    (tl.float64, tl.float64): ("__nv_hypot", tl.float64),
}


@jit
def extern_call(x, y, SYMBOLS: tl.constexpr):
    return tl.core.extern_elementwise("libdevice", "", [x, y], SYMBOLS, is_pure=True)


@few_examples
@given(st.sampled_from(["fp32", "fp64"]), shapes(), seeds)
def test_extern_elementwise(code: str, shape: tuple[int, ...], seed: int) -> None:
    x, y = sample(code, shape, seed, special=False), sample(code, shape[-1:], seed + 1, special=False)
    agree(extern_call, x, y, params=(SYMBOLS,), ulps=4)


def test_extern_elementwise_without_a_symbol() -> None:
    with pytest.raises(Refused):
        agree(extern_call, sample("fp16", (4,), 1), sample("fp16", (4,), 2), params=(SYMBOLS,))


@jit
def custom_float8(x):
    narrow = cuda.convert_custom_float8_sm80(x, tl.float8e5, fp_downcast_rounding="rtne")
    cut = cuda.convert_custom_float8_sm70(x.to(tl.float32), tl.float8e5, fp_downcast_rounding="rtz")
    wide = cuda.convert_custom_float8_sm70(narrow, tl.float16)
    return narrow, cut.to(tl.float16), wide


@jit
def custom_float8_bits(x):
    return cuda.convert_custom_float8_sm80(x, tl.float8e5, fp_downcast_rounding="rtne").to(tl.int8, bitcast=True)


@few_examples
@given(seeds)
def test_custom_float8_conversions(seed: int) -> None:
    values = sample("fp16", (16,), seed)
    agree(custom_float8, values)
    agree(custom_float8_bits, values, emulated=False)  # GPUs have another code for NaN


@jit
def sizes(x):
    return x + cuda.num_threads() + cuda.num_warps()


def test_threads_and_warps_are_constants() -> None:
    assert agree(sizes, np.zeros(4, np.int32))[0][0] == 32 * 4 + 4


@jit
def target_facts(x):
    facts = 0
    if tl.target_info.current_target() is None:
        facts += 0
    if tl.target_info.is_hip_cdna3() and tl.target_info.is_hip_cdna4() and tl.target_info.is_hip_gfx1250():
        facts += 2
    if tl.target_info.is_hip() and tl.target_info.is_cuda():
        facts += 4
    if tl.target_info.is_cuda() and tl.target_info.cuda_capability_geq(9, 0):
        facts += 0
    return x + facts


def test_target_facts_are_constants() -> None:
    assert agree(target_facts, np.zeros(4, np.int32), devices=ON_NVIDIA)[0][0] == 0


@jit
def assembled(x):
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)


@pytest.mark.parametrize("name", ["interpreter", "evaluator", "cpu"])
def test_inline_assembly_is_for_gpus(name: str) -> None:
    """No device here has PTX; each of them says so."""
    from tests.differential import devices, harness

    try:
        result = harness.outcome(harness.DEVICES[name], assembled, [np.zeros(4, np.int32)], ())
    except Exception as error:
        result = error
    assert isinstance(result, Exception)
    assert (
        "assembly" in f"{result} {devices.innermost(result)}" or "inline_asm" in f"{result} {devices.innermost(result)}"
    )


@jit
def registers(x):
    cuda.gdc_wait()
    cuda.gdc_launch_dependents()
    return x + cuda.smid() + cuda.globaltimer()


@pytest.mark.parametrize("name", ["interpreter", "evaluator", "cpu"])
def test_registers_of_gpus(name: str) -> None:
    """The interpreter invents them; the others have no such registers and say so."""
    from tests.differential import devices, harness

    try:
        result = harness.outcome(harness.DEVICES[name], registers, [np.zeros(4, np.int64)], ())
    except Exception as error:
        result = error
    if isinstance(result, Exception):
        text = f"{result} {devices.innermost(result)}"
        assert "globaltimer" in text or "smid" in text or "griddepcontrol" in text or "assembly" in text, text
    else:
        assert result[1][0].dtype == np.int64
