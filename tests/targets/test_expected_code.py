"""Code that programs written for Triton look for in their kernels: assumptions, options of loops, poison."""

import re
from typing import Any

import pytest

import tilework.language as tl
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.runtime.launch.python.jit import jit

HOPPER = GPUTarget("cuda", 90, 32)


@jit
def assumes(p, n):
    tl.assume(n > 3)
    tl.store(p + n, 1)


@jit
def counts(p, n):
    for i in tl.range(0, n, disable_licm=True):
        tl.store(p + i, n)


@jit
def waits(p, n):
    while tl.condition(n > 0, disable_licm=True):
        n -= tl.load(p + n)


@jit
def unrolls(p, n):
    for i in tl.range(0, n, loop_unroll_factor=4):
        tl.atomic_add(p, i)


@jit
def sometimes(x):
    never = False
    if never:
        return x


@jit
def stores_nothing(p, n):
    tl.store(p, sometimes(n))


LICM = ['!{!"llvm.licm.disable"}', '!{!"llvm.loop.licm_versioning.disable"}']


@pytest.mark.parametrize(
    ("kernel", "stage", "texts"),
    [
        (assumes, "llir", ["call void @llvm.assume(i1 %"]),
        (counts, "llir", LICM),
        (counts, "ttir", ["#llvm.loop_licm<disable = true, versioningDisable = true>"]),
        (waits, "llir", LICM),
        (unrolls, "ttir", ["tt.atomic_rmw"] * 5),  # four, and one in the loop over what is left
        (stores_nothing, "ttir", ["ub.poison : i32"]),
        (stores_nothing, "llir", ["freeze i32 poison"]),
        (stores_nothing, "ptx", ["st.global.b32"]),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_code(kernel: Any, stage: str, texts: list[str]) -> None:
    text = lower(ASTSource(kernel, {"p": "*i32", "n": "i32"}), HOPPER, [stage])[stage]
    for expected in texts:
        assert text.count(expected) >= texts.count(expected), text


@jit
def multiplies(a, b, c, n, STAGES: tl.constexpr, IMPRECISE: tl.constexpr):
    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 128)[None, :]
    total = tl.zeros((128, 128), tl.float32)
    for k in tl.range(n, num_stages=STAGES):
        left, right = tl.load(a + i * 128 + j + k * 16384), tl.load(b + i + j * 128 + k * 16384)
        total = tl.dot(left, right, total, max_num_imprecise_acc=IMPRECISE)
    tl.store(c + i * 128 + j, total)


@pytest.mark.parametrize(("stages", "imprecise"), [(5, 32), (2, 64)])
def test_stages_decide_what_is_waited_for_and_imprecision_how_often_is_added(stages: int, imprecise: int) -> None:
    constants = {"STAGES": stages, "IMPRECISE": imprecise}
    signature = {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*fp32", "n": "i32", **dict.fromkeys(constants, "constexpr")}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(3)}
    source = ASTSource(multiplies, signature, constants, aligned)
    text = lower(source, HOPPER, ["ptx"], num_warps=8)["ptx"]
    assert f"cp.async.wait_group \t{2 * (stages - 2)};" in text
    assert (
        text.count("add.rn.f32") + text.count("add.f32") == 64 * 128 // imprecise
    )  # registers of a thread, pieces of K


@jit
def exchanges(p, q):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    x = tl.load(p + i * 64 + j)
    tl.store(q + j * 64 + i, tl.dot(x, x) + tl.cumsum(x, 0) + tl.sum(tl.histogram(tl.reshape(x, 4096), 64), 0))


@pytest.mark.parametrize("arch", [80, 90])
def test_addresses_of_shared_memory_have_32_bits(arch: int) -> None:
    text = lower(ASTSource(exchanges, {"p": "*i8", "q": "*i32"}), GPUTarget("cuda", arch, 32), ["ptx"])["ptx"]
    accesses = re.findall(r"\b(\w+)\.[\w.:]*shared[\w.:]*\s.*?\[(%[a-z]+)", text)
    assert {name for name, _ in accesses} >= {"ld", "st", "ldmatrix"} and {kind for _, kind in accesses} == {"%r"}


@jit
def keeps(a, b, c, n):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(n):
        left = tl.load(a + k * 4096 + i * 64 + j, eviction_policy="evict_first")
        total = tl.dot(left, tl.load(b + k * 4096 + i * 64 + j), total)
    total += tl.load(c + i * 64 + j, cache_modifier=".cg", eviction_policy="evict_last")
    tl.store(c + i * 64 + j, total, eviction_policy="evict_last")


@pytest.mark.parametrize(("arch", "policies"), [(75, 0), (80, 1), (90, 1)])
def test_eviction_policies_reach_l2(arch: int, policies: int) -> None:
    """Loads and stores have one as their last operand, which is made once; copies to shared memory have none, which
    ptxas makes illegal ones of."""
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(3)}
    text = lower(ASTSource(keeps, signature, {}, aligned), GPUTarget("cuda", arch, 32), ["ptx"])["ptx"]
    assert text.count("createpolicy.fractional.L2::evict_") == policies
    hinted = set(re.findall(r"(\S+\.global\S*)\.L2::cache_hint", text))
    assert hinted == ({"ld.global.cg", "st.global.L1::evict_last"} if policies else set())
    assert "cp.async.cg.shared.global [" in text or not policies


@jit
def weighs(x, w, n):
    i = tl.arange(0, 512)
    row = tl.program_id(0) * n + i
    tl.store(x + row, tl.load(x + row) * tl.load(w + i))


def test_what_all_programs_load_stays_in_l1_only() -> None:
    text = lower(ASTSource(weighs, {"x": "*fp32", "w": "*fp32", "n": "i32"}), HOPPER, ["ptx"])["ptx"]
    assert "ld.global.L1::evict_last" in text and "L2::" not in text


@jit
def counts_all(p, q):
    tl.store(q, tl.sum(tl.load(p + tl.arange(0, 256))))


@pytest.mark.parametrize(("arch", "reductions", "shuffles"), [(75, 0, 5), (80, 1, 0)])
def test_gpus_before_ampere_reduce_integers_by_shuffles(arch: int, reductions: int, shuffles: int) -> None:
    """LLVM would end the process: it has no instruction for it there."""
    text = lower(ASTSource(counts_all, {"p": "*i32", "q": "*i32"}), GPUTarget("cuda", arch, 32), ["ptx"])["ptx"]
    assert (text.count("redux.sync"), text.count("shfl.sync")) == (reductions, shuffles)
