"""cp.async and cp.async.bulk: bytes move at the wait, not before; groups, fills, barriers, reductions."""

from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.tensor_programs import HEADER, registers_in_and_out, run, run_registers
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.machine import Stuck
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.emulator.translate import Unsupported

RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 1 << 32, (64, 4)).astype(np.uint32)


def copies(instructions: str, outputs: int = 4, threads: int = 32, shared: int = 4096, after: str = "") -> np.ndarray:
    """Every thread copies from its row of DATA to its 16 bytes at %s, then loads them: %o0.. is what it sees."""
    body = f"""
    .reg .b32 %s, %n; .reg .pred %p; mov.u32 %s, smem; mad.lo.u32 %s, %t, 16, %s;
    {instructions}
    ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%s]; {after}"""
    return run_registers(registers_in_and_out(body, 4, outputs, shared=shared), DATA[:threads], outputs, threads)


@pytest.mark.parametrize(
    ("kind", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16), ("ca.shared::cta.global.L2::128B", 16)]
)
def test_sizes(kind: str, size: int) -> None:
    space = "" if "::" in kind else ".shared.global"
    found = copies(f"cp.async.{kind}{space} [%s], [%in], {size}; cp.async.commit_group; cp.async.wait_group 0;")
    expected = DATA[:32].copy()
    expected[:, size // 4 :] = 0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("length", [0, 1, 6, 15, 16])
def test_the_rest_is_filled_with_zeros(length: int) -> None:
    found = copies(
        f"st.shared.v4.b32 [%s], {{%i3, %i3, %i3, %i3}}; mov.u32 %n, {length}; "
        "cp.async.cg.shared.global [%s], [%in], 16, %n; cp.async.wait_all;"
    )
    expected = DATA[:32].copy().view(np.uint8)
    expected[:, length:] = 0
    np.testing.assert_array_equal(found, expected.view(np.uint32))


def test_a_source_that_is_not_read_may_be_anywhere() -> None:
    found = copies(".reg .b64 %g; mov.b64 %g, 16; cp.async.cg.shared.global [%s], [%g], 16, 0; cp.async.wait_all;")
    assert (found == 0).all()


@pytest.mark.parametrize("sign", ["", "!"])
def test_a_predicate_ignores_the_source(sign: str) -> None:
    found = copies(f"setp.lt.u32 %p, %t, 5; cp.async.ca.shared.global [%s], [%in], 16, {sign}%p; cp.async.wait_all;")
    ignored = (np.arange(32) < 5) == (sign == "")
    np.testing.assert_array_equal(found, np.where(ignored[:, None], 0, DATA[:32]))


def test_a_cache_policy_follows_the_size() -> None:
    found = copies(
        ".reg .b64 %c; createpolicy.fractional.L2::evict_last.b64 %c, 1.0; "
        "cp.async.cg.shared.global.L2::cache_hint [%s], [%in], 16, 8, %c; cp.async.wait_all;"
    )
    np.testing.assert_array_equal(found[:, :2], DATA[:32, :2])
    assert (found[:, 2:] == 0).all()


def test_some_threads_only() -> None:
    found = copies(
        "setp.lt.u32 %p, %t, 7; @%p cp.async.cg.shared.global [%s], [%in], 16; cp.async.commit_group; "
        "cp.async.wait_group 0;"
    )
    np.testing.assert_array_equal(found, np.where(np.arange(32)[:, None] < 7, DATA[:32], 0))


def test_nothing_moves_before_the_wait() -> None:
    found = copies("cp.async.cg.shared.global [%s], [%in], 16; cp.async.commit_group;", after="cp.async.wait_all;")
    assert (found == 0).all()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_wait_leaves_the_last_groups(left: int) -> None:
    """Three groups of one copy each, to different addresses."""
    body = f"""
    .reg .b32 %s; mov.u32 %s, smem; mad.lo.u32 %s, %t, 16, %s;
    cp.async.ca.shared.global [%s], [%in], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%s+4], [%in+4], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%s+8], [%in+8], 4; cp.async.commit_group;
    cp.async.wait_group {left};
    ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%s];"""
    found = run_registers(registers_in_and_out(body, 4, 4, shared=512), DATA[:32], 4)
    np.testing.assert_array_equal(found[:, : 3 - left], DATA[:32, : 3 - left])
    assert (found[:, 3 - left :] == 0).all()


def test_groups_belong_to_threads() -> None:
    """Threads below 16 commit one group more; the others' last group is still open after wait_group 1."""
    found = copies("""
    cp.async.cg.shared.global [%s], [%in], 16; cp.async.commit_group;
    setp.lt.u32 %p, %t, 16; @%p cp.async.commit_group; cp.async.wait_group 1;""")
    np.testing.assert_array_equal(found, np.where(np.arange(32)[:, None] < 16, DATA[:32], 0))


def test_wait_all_needs_no_commit() -> None:
    np.testing.assert_array_equal(copies("cp.async.cg.shared.global [%s], [%in], 16; cp.async.wait_all;"), DATA[:32])
    assert (copies("cp.async.cg.shared.global [%s], [%in], 16; cp.async.wait_group 0;") == 0).all()


@pytest.mark.parametrize("noinc", ["", ".noinc"])
def test_an_mbarrier_learns_of_copies(noinc: str) -> None:
    """64 threads copy; those of the other warp read after the barrier's phase."""
    body = f"""
    .reg .b32 %s, %b, %x; .reg .pred %p, %done; mov.u32 %b, smem; mad.lo.u32 %s, %t, 16, %b; add.u32 %s, %s, 16;
    setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%b], 64; bar.sync 0;
    cp.async.cg.shared.global [%s], [%in], 16; cp.async.mbarrier.arrive{noinc}.shared.b64 [%b];
    {"mbarrier.arrive.shared.b64 _, [%b];" if not noinc else ""}
    W: mbarrier.test_wait.parity.shared.b64 %done, [%b], 0; @!%done bra W;
    xor.b32 %x, %t, 32; mad.lo.u32 %s, %x, 16, %b;
    ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%s+16];"""
    found = run_registers(registers_in_and_out(body, 4, 4, shared=2048), DATA, 4, threads=64)
    np.testing.assert_array_equal(found, DATA[np.arange(64) ^ 32])


@pytest.mark.parametrize(
    ("instruction", "error", "why"),
    [
        (
            "add.u32 %s, %s, 4; cp.async.cg.shared.global [%s], [%in], 16",
            MemoryFault,
            "shared address 0x4 is not a multiple of 16",
        ),
        ("cp.async.ca.shared.global [%s], [%in+4], 8", MemoryFault, "is not a multiple of 8"),
        ("cp.async.cg.shared.global [%s+8192], [%in], 16", MemoryFault, "outside of its 4096 bytes"),
        ("cp.async.cg.shared.global [%s], [%in+4096], 16", MemoryFault, "not allocated|after an allocation"),
        ("cp.async.cg.shared.global [%s], [%in], 16, 17", EmulatorError, "a copy of 16 bytes that reads 17"),
        ("cp.async.cg.shared.global [%s], [%in], 8", Unsupported, "copies of 8 bytes"),
    ],
)
def test_mistakes_of_copies(instruction: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        copies(f"{instruction};")


# bulk copies


def bulk(before: str, copy: str, after: str, shared: int = 1024) -> str:
    """kernel(source, target): thread 0 runs `copy`. Shared memory is filled from the source, in words, when `before`
    asks for it (FILL)."""
    fill = "ld.global.b32 %w, [%from]; st.shared.b32 [%at], %w;"
    return f"""{HEADER}.shared .align 128 .b8 smem[{shared}];
.shared .align 8 .b64 bar;
.visible .entry kernel(.param .u64 source, .param .u64 target) {{
    .reg .b32 %t, %s, %at, %b, %w, %n; .reg .b64 %in, %out, %from, %to, %off; .reg .pred %p, %done;
    ld.param.u64 %in, [source]; ld.param.u64 %out, [target]; mov.u32 %t, %tid.x; mov.u32 %s, smem; mov.u32 %b, bar;
    mov.u32 %n, 512;
    shl.b32 %at, %t, 2; cvt.u64.u32 %off, %at; add.u64 %from, %in, %off; add.u64 %to, %out, %off; add.u32 %at, %at, %s;
    setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [%b], 1; {before.replace("FILL", fill)}
    fence.proxy.async.shared::cta; bar.sync 0;
    {copy}
    {after}
    ret;
}}
"""


WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %done, [%b], 0; @!%done bra W;"
WORDS = RNG.integers(0, 1 << 32, 128).astype(np.uint32)
LOAD = "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], %n, [%b];"


def test_bulk_load() -> None:
    text = bulk(
        "",
        f"@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512; {LOAD}",
        f"{WAIT} ld.shared.b32 %w, [%at]; st.global.b32 [%to], %w;",
    )
    np.testing.assert_array_equal(run(text, 128, [WORDS], np.zeros_like(WORDS)), WORDS)


def test_a_bulk_load_is_not_there_before_the_wait() -> None:
    text = bulk(
        "",
        f"@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512; {LOAD}",
        f"ld.shared.b32 %w, [%at]; st.global.b32 [%to], %w; {WAIT}",
    )
    assert (run(text, 128, [WORDS], np.ones_like(WORDS)) == 0).all()


def test_bulk_load_with_multicast_and_policy() -> None:
    load = """.reg .b16 %m; .reg .b64 %c; mov.b16 %m, 1; createpolicy.fractional.L2::evict_first.b64 %c, 1.0;
        @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
    @%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%s], [%in],
    %n, [%b], %m, %c;"""
    text = bulk("", load, f"{WAIT} ld.shared.b32 %w, [%at]; st.global.b32 [%to], %w;")
    np.testing.assert_array_equal(run(text, 128, [WORDS], np.zeros_like(WORDS)), WORDS)
    with pytest.raises(EmulatorError, match="of a cluster of 1"):
        run(text.replace("mov.b16 %m, 1", "mov.b16 %m, 3"), 128, [WORDS], np.zeros_like(WORDS))


def test_a_bulk_load_to_both_blocks_of_a_cluster() -> None:
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    load = f""".reg .b16 %m; .reg .b32 %k; .reg .pred %q; mov.b16 %m, MASK; mov.u32 %k, %cluster_ctarank;
        setp.eq.and.u32 %q, %k, 0, %p;
    @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512; {meet}
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%in], %n, [%b],
    %m;"""
    store = (
        f"{WAIT} ld.shared.b32 %w, [%at]; mul.wide.u32 %off, %k, 512; add.u64 %to, %to, %off; "
        f"st.global.b32 [%to], %w; {meet}"
    )
    for mask, raised in ((3, nullcontext()), (1, pytest.raises(EmulatorError, match="wait"))):
        device = Device(check=True)
        source, target = device.upload(WORDS), device.upload(np.zeros((2, 128), np.uint32))
        function = device.load(bulk("", load.replace("MASK", str(mask)), store)).function("kernel")
        with raised:
            device.launch(function, 2, 128, [source, target], 0, (2, 1, 1))
            device.synchronize()
            assert (device.download(target, np.zeros((2, 128), np.uint32)) == WORDS).all()


def test_bulk_copy_inside_of_shared_memory() -> None:
    copy = """@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512; .reg .b32 %far; add.u32 %far, %s, 512;
    @%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far], [%s], %n, [%b];"""
    text = bulk("FILL", copy, f"{WAIT} ld.shared.b32 %w, [%at+512]; st.global.b32 [%to], %w;")
    np.testing.assert_array_equal(run(text, 128, [WORDS], np.zeros_like(WORDS)), WORDS)


STORE = "@%p cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], %n; @%p cp.async.bulk.commit_group;"


@pytest.mark.parametrize("wait", ["@%p cp.async.bulk.wait_group 0;", "@%p cp.async.bulk.wait_group.read 0;", ""])
def test_bulk_store(wait: str) -> None:
    """It arrives even if no thread waits for it."""
    np.testing.assert_array_equal(run(bulk("FILL", STORE, wait), 128, [WORDS], np.zeros_like(WORDS)), WORDS)


def test_a_source_may_be_overwritten_after_it_was_read() -> None:
    overwrite = "bar.sync 0; st.shared.b32 [%at], 7;"
    found = run(
        bulk("FILL", STORE, f"@%p cp.async.bulk.wait_group.read 0; {overwrite} @%p cp.async.bulk.wait_group 0;"),
        128,
        [WORDS],
        np.zeros_like(WORDS),
    )
    np.testing.assert_array_equal(found, WORDS)
    assert (
        run(bulk("FILL", STORE, f"{overwrite} @%p cp.async.bulk.wait_group 0;"), 128, [WORDS], np.zeros_like(WORDS))
        == 7
    ).all()


def test_prefetch_of_rows_does_nothing() -> None:
    text = bulk("", "@%p cp.async.bulk.prefetch.L2.global [%in], %n;", "")
    assert (run(text, 128, [WORDS], np.zeros_like(WORDS)) == 0).all()


BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("operation", "dtype", "function"),
    [
        ("add.u32", np.uint32, np.add), ("add.s32", np.int32, np.add), ("add.u64", np.uint64, np.add),
        ("add.f32", np.float32, np.add),
        ("add.f64", np.float64, np.add), ("add.noftz.f16", np.float16, np.add), ("add.noftz.bf16", BF16, np.add),
        ("min.f16", np.float16, np.minimum),
        ("max.bf16", BF16, np.maximum), ("min.s64", np.int64, np.minimum), ("max.u32", np.uint32, np.maximum),
        ("and.b32", np.uint32, np.bitwise_and),
        ("or.b64", np.uint64, np.bitwise_or), ("xor.b32", np.uint32, np.bitwise_xor),
    ],
)  # fmt: skip
def test_bulk_reductions(operation: str, dtype: Any, function: np.ufunc) -> None:
    kind = np.dtype(dtype)
    make = lambda: RNG.integers(0, 100, 512 // kind.itemsize).astype(kind)  # noqa: E731
    old, new = make(), make()
    text = bulk(
        "FILL",
        (
            f"@%p cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%out], [%s], %n; "
            "@%p cp.async.bulk.commit_group;"
        ),
        "@%p cp.async.bulk.wait_group 0;",
    )
    found = run(text, 128, [new.view(np.uint32)], old)
    np.testing.assert_array_equal(
        found.view(f"u{kind.itemsize}"), function(old, new).astype(kind).view(f"u{kind.itemsize}")
    )


def test_counting_reductions_wrap_at_their_limit() -> None:
    old, new = np.arange(128, dtype=np.uint32), np.full(128, 60, np.uint32)
    for name, expected in (
        ("inc", np.where(old >= 60, 0, old + 1)),
        ("dec", np.where((old == 0) | (old > 60), 60, old - 1)),
    ):
        text = bulk(
            "FILL",
            (
                f"@%p cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}.u32 [%out], [%s], %n; "
                "@%p cp.async.bulk.commit_group;"
            ),
            "",
        )
        np.testing.assert_array_equal(run(text, 128, [new], old), expected)


def test_a_bulk_reduction_in_shared_memory() -> None:
    copy = """st.shared.b32 [%at+512], 5; fence.proxy.async.shared::cta; bar.sync 0;
        @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
    .reg .b32 %far; add.u32 %far, %s, 512;
    @%p cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%far], [%s], %n, [%b];"""
    text = bulk("FILL", copy, f"{WAIT} ld.shared.b32 %w, [%at+512]; st.global.b32 [%to], %w;")
    np.testing.assert_array_equal(run(text, 128, [WORDS], np.zeros_like(WORDS)), WORDS + np.uint32(5))


@pytest.mark.parametrize("expected", [496, 528])
def test_a_wrong_number_of_bytes_is_found(expected: int) -> None:
    """The phase never ends: an error that says where, not a hang."""
    text = bulk("", f"@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {expected}; {LOAD}", WAIT)
    with pytest.raises(Stuck, match="wait for something that does not happen"):
        run(text, 128, [WORDS], np.zeros_like(WORDS))


@pytest.mark.parametrize(
    ("old", "new", "error", "why"),
    [
        ("mov.u32 %n, 512", "mov.u32 %n, 500", EmulatorError, "500 bytes, which is not a multiple of 16"),
        ("mov.u32 %n, 512", "mov.u32 %n, 528", MemoryFault, "after an allocation of 512 bytes"),
        ("mov.u32 %s, smem", "mov.u32 %s, smem+8", MemoryFault, "is not a multiple of 16"),
        ("mov.u32 %s, smem", "mov.u32 %s, smem+768", MemoryFault, "outside of its"),
        ("complete_tx::bytes [%s]", "complete_tx::bytes.ignore_oob [%s]", Unsupported, "sm_100"),
    ],
)
def test_mistakes_of_bulk_copies(old: str, new: str, error: type[Exception], why: str) -> None:
    text = bulk("", f"@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512; {LOAD}", WAIT)
    assert old in text
    with pytest.raises(error, match=why):
        run(text.replace(old, new), 128, [WORDS], np.zeros_like(WORDS))
