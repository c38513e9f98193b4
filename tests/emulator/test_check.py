"""The instructions that order two accesses for the checker, and those that do not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilework.oracles.emulator.check import Checker
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.findings import CheckFailed, Finding
from tilework.oracles.emulator.shadow import PAGE, PLAIN, STRONG, Accesses, Clocks, PagedShadow, ReplicaShadow, Shadow

HEAD = """.version 8.6
.target sm_90a
.shared .align 16 .b8 words[1024];
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, words;
    mad.lo.u32 %r4, %r1, 4, %r3;
    setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r2, 0;
"""


def findings(body: str, block: int = 64, grid: int = 1, size: int = 1024, **way: Any) -> list[Finding]:
    device = Device(check=True, max_instructions=100_000, **way)
    kernel = device.load(HEAD + body + "ret; }").function("k")
    try:
        device.launch(kernel, grid, block, [device.upload(np.zeros(size, np.uint8))])
    except CheckFailed as failed:
        return failed.findings
    return []


WAYS = ({"seed": 0}, {"seed": 1}, {"together": True})  # in which warps run


def kinds(body: str, **options: int) -> set[str]:
    found = [{finding.kind for finding in findings(body, **way, **options)} for way in WAYS]
    assert found[0] == found[1] == found[2], found
    return found[0]


STORE_OWN = "st.shared.u32 [%r4], %r1;"
READ_FIRST = "ld.shared.u32 %r5, [words];"


def test_a_barrier_orders() -> None:
    assert kinds(STORE_OWN + "bar.sync 0;" + READ_FIRST) == set()
    assert "race" in {f.kind for seed in range(3) for f in findings(STORE_OWN + READ_FIRST, seed=seed)}


def test_a_barrier_of_other_threads_does_not() -> None:
    """Each warp has its own barrier."""
    body = STORE_OWN + "shr.u32 %r6, %r1, 5; add.u32 %r6, %r6, 1; bar.sync %r6, 32;" + READ_FIRST
    assert findings(body)


def test_threads_that_wait_at_two_places() -> None:
    """`bar.sync` is one instruction for all that wait; `barrier.sync` may be several."""
    apart = "@%p2 bar.sync 1, 64;\n@!%p2 bar.sync 1, 64;\n"
    assert kinds(STORE_OWN + apart) == {"barrier in divergent code"}
    assert kinds(STORE_OWN + apart.replace("bar.sync", "barrier.sync") + READ_FIRST) == set()
    assert kinds(STORE_OWN + "bar.sync 1, 64;\nbar.sync 1, 64;\n") == set()


def test_what_comes_after_an_arrival_is_not_ordered_by_it() -> None:
    """The first warp arrives at barrier 1 and stores then; the second one waits there and loads."""
    late = (
        "@%p2 bar.arrive 1, 64;\n@%p2 st.shared.u32 [%r4], %r1;\n@!%p2 bar.sync 1, 64;\n"
        "@!%p2 ld.shared.u32 %r5, [%r4+-128];"
    )
    assert findings(late)
    early = (
        "@%p2 st.shared.u32 [%r4], %r1;\n@%p2 bar.arrive 1, 64;\n@!%p2 bar.sync 1, 64;\n"
        "@!%p2 ld.shared.u32 %r5, [%r4+-128];"
    )
    assert kinds(early) == set()


def test_the_barrier_of_a_cluster_orders() -> None:
    body = STORE_OWN + "barrier.cluster.arrive.aligned;\nmov.u32 %r7, 1;\nbarrier.cluster.wait.aligned;\n" + READ_FIRST
    assert kinds(body) == set()


def test_lanes_of_a_warp_need_bar_warp_sync() -> None:
    exchange = "xor.b32 %r5, %r1, 1; mad.lo.u32 %r5, %r5, 4, %r3; ld.shared.u32 %r6, [%r5];"
    assert kinds(STORE_OWN + "bar.warp.sync -1;" + exchange, block=32) == set()
    assert kinds(STORE_OWN + exchange, block=32) == {"race"}


def test_atomic_accesses_do_not_race_with_one_another() -> None:
    first = "@%p1 st.shared.u32 [words], 0; bar.sync 0;"
    assert kinds(first + "atom.shared.add.u32 %r5, [words], 1; ld.volatile.shared.u32 %r6, [words];") == set()
    assert "race" in {
        f.kind for f in findings(first + "atom.shared.add.u32 %r5, [words], 1; ld.shared.u32 %r6, [words];")
    }


def test_writing_the_same_value_is_no_race() -> None:
    assert kinds("mov.u32 %r5, 7; st.shared.u32 [words], %r5;") == set()
    assert kinds("st.shared.u32 [words], %r1;") == {"race"}


FLAG = """
    @!%p3 bra read;
    @%p1 st.global.u32 [%rd1], 5;
    {release}
    bra done;
read:
    {acquire}
    @%p1 ld.global.u32 %r6, [%rd1];
done:
"""


@pytest.mark.parametrize(
    ("release", "acquire", "ordered"),
    [
        ("@%p1 st.release.gpu.global.u32 [%rd1+64], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1+64];", True),
        (
            "fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.u32 [%rd1+64], 1;",
            "ld.relaxed.gpu.global.u32 %r5, [%rd1+64]; fence.acq_rel.gpu;",
            True,
        ),
        ("membar.gl; @%p1 red.global.add.u32 [%rd1+64], 1;", "atom.global.add.u32 %r5, [%rd1+64], 1; membar.gl;", True),
        (
            "@%p1 atom.release.gpu.global.add.u32 %r7, [%rd1+64], 1;",
            "atom.acquire.gpu.global.add.u32 %r5, [%rd1+64], 1;",
            True,
        ),
        ("@%p1 st.relaxed.gpu.global.u32 [%rd1+64], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1+64];", False),
        ("@%p1 st.release.gpu.global.u32 [%rd1+64], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd1+64];", False),
        ("@%p1 st.release.gpu.global.u32 [%rd1+64], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1+128];", False),
        ("", "", False),
    ],
)
def test_blocks_are_ordered_by_fences_and_flags_only(release: str, acquire: str, ordered: bool) -> None:
    found = kinds(FLAG.format(release=release, acquire=acquire), block=32, grid=2)
    assert found == (set() if ordered else {"race"})


def test_what_a_flag_carries_goes_on_through_a_barrier() -> None:
    body = FLAG.format(
        release="bar.sync 0; @%p1 st.release.gpu.global.u32 [%rd1+64], 1;",
        acquire="@%p1 ld.acquire.gpu.global.u32 %r5, [%rd1+64]; bar.sync 0;",
    )
    body = body.replace(
        "@%p1 st.global.u32 [%rd1], 5;", "mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3+256], %r1;"
    )
    body = body.replace(
        "@%p1 ld.global.u32 %r6, [%rd1];",
        "xor.b32 %r8, %r1, 63; mad.wide.u32 %rd3, %r8, 4, %rd1; ld.global.u32 %r6, [%rd3+256];",
    )
    assert kinds(body, grid=2) == set()


def test_a_launch_orders_everything() -> None:
    device = Device(check=True)
    kernel = device.load(
        HEAD + "mad.wide.u32 %rd2, %r1, 4, %rd1; xor.b32 %r5, %r1, 63; st.global.u32 [%rd2], %r5; ret; }"
    ).function("k")
    address = device.allocate(1024)
    for _ in range(2):
        device.launch(kernel, 1, 64, [address])


def test_mbarriers_order_the_phases_that_were_waited_for() -> None:
    start = (
        "@%p1 mbarrier.init.shared.b64 [words+512], 32; bar.sync 0; @%p2 st.shared.u32 [%r4], %r1; "
        "@%p2 mbarrier.arrive.shared.b64 _, [words+512];"
    )
    wait = "again: mbarrier.try_wait.parity.shared.b64 %p4, [words+512], 0; @!%p4 bra again;"
    assert kinds(start + wait + READ_FIRST) == set()
    assert findings(start + READ_FIRST)


def test_an_mbarrier_is_used_after_its_initialisation_is_known() -> None:
    body = "@%p1 mbarrier.init.shared.b64 [words+512], 64; {sync} mbarrier.arrive.shared.b64 _, [words+512];"
    assert kinds(body.format(sync="bar.sync 0;")) == set()
    for way in (*WAYS, {"seed": 5}):  # warps that come too early find no mbarrier, the others a race
        assert findings(body.format(sync=""), **way), way


def test_a_register_may_be_undefined_as_long_as_it_does_not_matter() -> None:
    moved = "@%p1 mov.u32 %r5, 3; add.u32 %r6, %r5, 1; mov.u32 %r7, %r6; selp.b32 %r8, %r7, 9, %p1;"
    assert kinds(moved + "st.shared.u32 [%r4], %r8;") == set()
    assert kinds(moved + "st.shared.u32 [%r4], %r7;") == {"uninitialised register"}
    assert kinds("setp.eq.u32 %p5, %r9, 1; @%p5 bra end; mov.u32 %r5, 1; end:") == {"uninitialised register"}
    assert kinds("add.u32 %r5, %r4, %r9; @%p1 ld.shared.u32 %r6, [%r5];", block=32) >= {"uninitialised register"}


def test_findings_are_reported_once_and_can_be_collected() -> None:
    device = Device(check=True, collect=True)
    kernel = device.load(
        HEAD
        + (
            "{ .reg .b32 i; mov.u32 i, 0; again: st.shared.u32 [words], %r1; add.u32 i, i, 1; "
            "setp.lt.u32 %p5, i, 9; @%p5 bra again; } ret; }"
        )
    ).function("k")
    device.launch(kernel, 2, 64, [device.allocate(64)])
    assert isinstance(device.checker, Checker) and len(device.checker.findings) == 1
    (finding,) = device.checker.findings
    assert finding.kind == "race" and "PTX line" in str(finding) and "thread (" in finding.what


def test_the_order_of_warps_follows_the_seed() -> None:
    def order(seed: int) -> list[str]:
        lines: list[str] = []
        device = Device(check=True, seed=seed, collect=True)
        kernel = device.load(
            HEAD
            + "atom.global.add.u32 %r5, [%rd1], 1; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2+4], %r5; ret; }"
        ).function("k")
        address = device.upload(np.zeros(2048, np.uint8))
        device.launch(kernel, 1, 256, [address])
        lines += [str(value) for value in device.copy_out(address, 1028).view(np.uint32)[1::32]]
        return lines

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(3)}) > 1


def accesses(at: list[int], threads: list[int], clocks: Clocks, kind: int = PLAIN) -> Accesses:
    agents = np.array(threads)
    return Accesses(np.array(at), agents, clocks.own(agents), agents, 0, kind)


def test_a_shadow_keeps_a_reader_that_is_not_the_writer() -> None:
    clocks, shadow = Clocks(64, 0), Shadow(64, 2)
    assert shadow.read(accesses([3] * 64, list(range(64)), clocks), clocks) is None
    for writer in (0, 31, 40, 63):
        copy = Shadow(64, 2)
        copy.read(accesses([3] * 64, list(range(64)), clocks), clocks)
        found = copy.write(accesses([3], [writer], clocks), clocks)
        assert found is not None and found.agent != writer and not found.was_write
    assert shadow.write(accesses([4], [1], clocks), clocks) is None
    assert shadow.write(accesses([4], [2], clocks, STRONG), clocks) is not None
    assert shadow.write(accesses([4], [3], clocks, STRONG), clocks) is None


def test_pages_of_a_shadow_are_made_when_they_are_needed() -> None:
    shadow = PagedShadow(1)
    far = np.array([5, 1 << 33, (1 << 33) + 1, PAGE, 5])
    pointers = shadow.locate(far)
    assert len(set(pointers.tolist())) == 4 and len(shadow.table) == 3
    assert (shadow.locate(far) == pointers).all() and shadow.size <= 32 * PAGE
    assert len(shadow.locate(np.arange(40 * PAGE))) == 40 * PAGE and shadow.size >= 40 * PAGE


@pytest.mark.parametrize(
    "make",
    [lambda: Shadow(512, 2), lambda: PagedShadow(2), lambda: ReplicaShadow(2)],
    ids="plain paged replicas".split(),
)
def test_units_of_a_shadow_say_what_bytes_say(make: Callable[[], Shadow]) -> None:
    """Words become halves and bytes when the first access is of one; what was known before is found as before."""
    random = np.random.default_rng(1)
    races = 0
    for _ in range(12):
        clocks, units, bytes = Clocks(64, 0), make(), make()
        bytes.refine(1)
        sizes = [16, 8, 4]
        for step in range(24):
            if step in (10, 17):
                sizes.append({10: 2, 17: 1}[step])
            size = int(random.choice(sizes))
            threads = random.permutation(64)[: random.integers(1, 8)]
            addresses = random.integers(0, 512 // size, len(threads)).astype(np.uint64) * np.uint64(size)
            if step % 6 == 5:
                clocks.deliver(threads, clocks.collect(threads))
                clocks.tick(threads)
            writes, number = random.random() < 0.5, int(random.integers(3))
            found = []
            for shadow in (units, bytes):
                unit = shadow.unit_of(addresses, size)
                at = (addresses.astype(np.int64)[:, None] // unit + np.arange(size // unit)).reshape(-1)
                agents = np.repeat(threads, size // unit)
                given = Accesses(shadow.locate(at), agents, clocks.own(agents), agents, number, PLAIN, unit)
                conflict = shadow.write(given, clocks) if writes else shadow.read(given, clocks)
                found.append(
                    conflict and (conflict.agent, conflict.ins, conflict.was_write, int(at[conflict.index]) * unit)
                )
            assert found[0] == found[1], (step, size)
            races += found[0] is not None
        assert units.unit in (1, 2)
    assert races > 20


def test_clocks_learn_from_one_another() -> None:
    clocks = Clocks(4, 0)
    engine = clocks.column("engine", 4)
    for _ in range(80):
        clocks.column(object())
    first, second = np.array([0]), np.array([1])
    clocks.learn(first, engine, 3)
    clocks.deliver(second, clocks.collect(first))
    clocks.tick(first)
    zero = np.array([0])
    assert (
        clocks.ordered(second, zero, np.array([0]), np.array([1])).all()
        and not clocks.ordered(second, zero, np.array([0]), np.array([2])).any()
    )
    assert clocks.ordered(second, zero, np.array([engine]), np.array([3])).all() and clocks.owner(engine + 2) == (2, 2)
    assert not clocks.ordered(second, np.array([5]), np.array([0]), np.array([1])).any()
