"""mbarrier objects, cluster barriers, fences, and what waits in vain."""

import numpy as np
import pytest

from tests.emulator.tensor_programs import HEADER, registers_in_and_out, run_registers
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.machine import Stuck
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.rules.mbarrier import LARGEST, Phase
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.emulator.translate import Unsupported

DECLARED = ".reg .b32 %b, %s, %x, %y; .reg .b64 %st<6>; .reg .pred %p, %q, %z; mov.u32 %b, smem; setp.eq.u32 %z, %t, 0;"


def barriers(
    body: str,
    outputs: int = 1,
    threads: int = 32,
    shared: int = 1024,
    inputs: int = 1,
    values: np.ndarray | None = None,
) -> np.ndarray:
    """%b is the address of a barrier, %z says that this is thread 0."""
    text = registers_in_and_out(f"{DECLARED}\n{body}", inputs, outputs, shared=shared)
    given = np.zeros((threads, inputs), np.uint32) if values is None else values
    return run_registers(text, given, outputs, threads)


def as_number(question: str, register: str) -> str:
    """Ask, and put the answer into a register as 0 or 1."""
    return f"{question.replace('DONE', '%p')} selp.u32 {register}, 1, 0, %p;"


def alone(body: str, outputs: int) -> np.ndarray:
    """Return %o of thread 0; the others do nothing."""
    return barriers(f"@!%z bra END; {body}\nEND:", outputs)[0]


TEST = "mbarrier.test_wait.parity.shared::cta.b64 DONE, [%b], {};"


def test_phases_and_parities() -> None:
    """A new barrier is in phase 0: that of parity 1 counts as over. Checked on an H200, like the next one."""
    found = alone(
        f"""mbarrier.init.shared::cta.b64 [%b], 2;
        {as_number(TEST.format(0), "%o0")} {as_number(TEST.format(1), "%o1")}
        mbarrier.arrive.shared::cta.b64 _, [%b]; {as_number(TEST.format(0), "%o2")}
        mbarrier.arrive.shared::cta.b64 _, [%b]; {as_number(TEST.format(0), "%o3")} {as_number(TEST.format(1), "%o4")}
        mbarrier.arrive.shared::cta.b64 _, [%b], 2;
        {as_number(TEST.format(0), "%o5")} {as_number(TEST.format(1), "%o6")}""",
        7,
    )
    assert found.tolist() == [0, 1, 0, 1, 0, 0, 1]


def test_states_and_pending_counts() -> None:
    ask = "mbarrier.test_wait.shared::cta.b64 DONE, [%b], %st0;"
    found = alone(
        f"""mbarrier.init.shared::cta.b64 [%b], 5;
        mbarrier.arrive.shared::cta.b64 %st0, [%b]; mbarrier.arrive.shared::cta.b64 %st1, [%b], 2;
        mbarrier.pending_count.b64 %o0, %st0; mbarrier.pending_count.b64 %o1, %st1;
        {as_number(ask, "%o2")}
        mbarrier.arrive_drop.shared::cta.b64 %st2, [%b]; mbarrier.pending_count.b64 %o3, %st2;
        mbarrier.arrive.shared::cta.b64 %st3, [%b]; {as_number(ask, "%o4")}
        mbarrier.arrive.shared::cta.b64 %st4, [%b]; mbarrier.pending_count.b64 %o5, %st4;""",
        6,
    )
    assert found.tolist() == [5, 4, 0, 2, 1, 4]  # after the drop, a phase has four


def test_bytes_hold_a_phase_open() -> None:
    found = alone(
        f"""mbarrier.init.shared::cta.b64 [%b], 1;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 100;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 28; {as_number(TEST.format(0), "%o0")}
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 100; {as_number(TEST.format(0), "%o1")}
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 28; {as_number(TEST.format(0), "%o2")}""",
        3,
    )
    assert found.tolist() == [0, 0, 1]


def test_arrive_without_completing() -> None:
    body = (
        "mbarrier.init.shared::cta.b64 [%b], 3; mbarrier.arrive.noComplete.shared::cta.b64 %st0, [%b], 2; "
        "mbarrier.pending_count.b64 %o0, %st0;"
    )
    assert alone(body, 1).tolist() == [3]
    with pytest.raises(EmulatorError, match="noComplete"):
        alone(body.replace("[%b], 2", "[%b], 3"), 1)


@pytest.mark.parametrize(
    "question",
    [
        "try_wait.parity.shared::cta.b64 %p, [%b], 0",
        "try_wait.parity.acquire.cta.shared::cta.b64 %p, [%b], 0, 1000",
        "test_wait.parity.b64 %p, [%g], 0",
    ],
)
def test_threads_wait_for_each_other(question: str) -> None:
    """Warp 1 writes after a while, arrives; warp 0 waits and reads."""
    found = barriers(
        f"""
        .reg .b64 %g; cvt.u64.u32 %g, %b; cvta.shared.u64 %g, %g; mad.lo.u32 %s, %lane, 4, %b;
        @%z mbarrier.init.shared::cta.b64 [%b], 32; @%z fence.mbarrier_init.release.cluster; bar.sync 0;
        setp.lt.u32 %q, %t, 32; @%q bra WAIT;
        mov.u32 %x, 0;
        LOOP: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 3000; @%p bra LOOP;
        add.u32 %x, %x, %lane; st.shared.b32 [%s+64], %x;
        mbarrier.arrive.shared::cta.b64 _, [%b]; mov.u32 %o0, 1; bra.uni DONE;
        WAIT: mbarrier.{question}; @%p bra READY; bra WAIT;
        READY: ld.shared.b32 %o0, [%s+64];
        DONE:""",
        threads=64,
    )
    np.testing.assert_array_equal(found[:32, 0], 3000 + np.arange(32))


def test_a_ring_of_stages() -> None:
    """A producer and a consumer warp, two stages, eight rounds, full and empty barriers."""
    found = barriers(
        """
        .reg .b32 %i, %f, %e, %par, %v; .reg .pred %w;
        @%z mbarrier.init.shared::cta.b64 [%b], 32; @%z mbarrier.init.shared::cta.b64 [%b+8], 32;
        @%z mbarrier.init.shared::cta.b64 [%b+16], 32; @%z mbarrier.init.shared::cta.b64 [%b+24], 32; bar.sync 0;
        mov.u32 %i, 0; mov.u32 %o0, 0; setp.ge.u32 %q, %t, 32; @%q bra CONSUME;
        PRODUCE: and.b32 %x, %i, 1; shr.u32 %par, %i, 1; and.b32 %par, %par, 1; xor.b32 %y, %par, 1;
        mad.lo.u32 %f, %x, 8, %b; mad.lo.u32 %s, %x, 128, %b; mad.lo.u32 %s, %lane, 4, %s;
        P: mbarrier.try_wait.parity.shared::cta.b64 %p, [%f+16], %y; @!%p bra P;
        mad.lo.u32 %v, %i, 1000, %lane; st.shared.b32 [%s+64], %v; mbarrier.arrive.shared::cta.b64 _, [%f];
        add.u32 %i, %i, 1; setp.lt.u32 %w, %i, 8; @%w bra PRODUCE; bra.uni END;
        CONSUME: and.b32 %x, %i, 1; shr.u32 %par, %i, 1; and.b32 %par, %par, 1;
        mad.lo.u32 %f, %x, 8, %b; mad.lo.u32 %s, %x, 128, %b; mad.lo.u32 %s, %lane, 4, %s;
        C: mbarrier.try_wait.parity.shared::cta.b64 %p, [%f], %par; @!%p bra C;
        ld.shared.b32 %v, [%s+64]; mad.lo.u32 %o0, %o0, 3, %v; mbarrier.arrive.shared::cta.b64 _, [%f+16];
        add.u32 %i, %i, 1; setp.lt.u32 %w, %i, 8; @%w bra CONSUME;
        END:""",
        threads=64,
    )
    expected = np.zeros(32, np.uint32)
    for i in range(8):
        expected = expected * np.uint32(3) + np.uint32(1000 * i) + np.arange(32, dtype=np.uint32)
    np.testing.assert_array_equal(found[32:, 0], expected)


@pytest.mark.parametrize(
    "loop",
    [
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;",
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @%p bra D; bra W; D:",
    ],
)
def test_a_phase_that_never_ends_is_an_error(loop: str) -> None:
    with pytest.raises(Stuck, match=r"wait for something that does not happen(.|\n)*PTX line"):
        barriers(
            f"@%z mbarrier.init.shared::cta.b64 [%b], 33; bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [%b]; {loop}"
        )


def test_a_barrier_and_an_mbarrier_that_wait_for_each_other() -> None:
    with pytest.raises(Stuck):
        barriers(
            """@%z mbarrier.init.shared::cta.b64 [%b], 1; bar.sync 0; setp.lt.u32 %q, %t, 32; @%q bra A;
            W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
            bar.sync 1; bra.uni END;
            A: bar.sync 1; mbarrier.arrive.shared::cta.b64 _, [%b];
            END:""",
            threads=64,
        )


@pytest.mark.parametrize(
    ("body", "error", "why"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%b];", EmulatorError, "holds no initialised mbarrier"),
        (("mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.inval.shared::cta.b64 [%b]; "
          "mbarrier.arrive.shared::cta.b64 _, [%b];"), EmulatorError, "holds no initialised"),
        ("mbarrier.init.shared::cta.b64 [%b], 0;", EmulatorError, "for 0 arrivals"),
        (f"mbarrier.init.shared::cta.b64 [%b], {LARGEST + 1};", EmulatorError, "arrivals; 1 to"),
        ("mbarrier.init.shared::cta.b64 [%b+4], 1;", MemoryFault, "0x4 is not a multiple of 8"),
        ("mbarrier.init.shared::cta.b64 [%b+1024], 1;", MemoryFault, "outside of its 1024 bytes"),
        ("mbarrier.init.shared::cta.b64 [%b], 2; mbarrier.arrive.shared::cta.b64 _, [%b], 3;", EmulatorError,
         "expects 2 more of 2 arrivals, and 3 come"),
        ("mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 2000000;",
         EmulatorError, "2000000 bytes"),
        ("mbarrier.init.b64 [%in], 1;", MemoryFault, "no address of shared memory"),
        ("mbarrier.try_cancel.shared::cta.b64 [%b];", Unsupported, "mbarrier.try_cancel"),
    ],
)  # fmt: skip
def test_mistakes(body: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        alone(body, 1)


def test_phases_survive_packing() -> None:
    for phase in (Phase(1, 1), Phase(LARGEST, 5, -LARGEST, 1), Phase(7, LARGEST, LARGEST, 0)):
        assert Phase.unpack(phase.pack()) == phase


def test_stores_and_reductions_that_signal() -> None:
    body = """
    @%z mbarrier.init.shared::cta.b64 [%b], 1; bar.sync 0; mad.lo.u32 %s, %t, 16, %b;
    @%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 640;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%s+16], {%i0, %i1, %i2, %i3}, [%b];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%s+528], %i0, [%b];
    ld.shared.b32 %o2, [%s+16];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
    ld.shared.b32 %o0, [%s+28]; ld.shared.b32 %o1, [%s+528];"""
    values = np.arange(128, dtype=np.uint32).reshape(32, 4) + 10
    found = barriers(body, 3, inputs=4, values=values, shared=2048)
    np.testing.assert_array_equal(found[:, 0], values[:, 3])
    np.testing.assert_array_equal(found[:, 1], values[:, 0])
    assert (found[:, 2] == 0).all()  # not before the wait


# the cluster's barrier


def test_the_barrier_of_a_cluster_holds_all_threads() -> None:
    """Warp 1 takes long before it writes and arrives."""
    found = barriers(
        """
        mad.lo.u32 %s, %lane, 4, %b; setp.lt.u32 %q, %t, 32; @%q bra MEET; mov.u32 %x, 0;
        LOOP: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 500; @%p bra LOOP;
        st.shared.b32 [%s], %x;
        MEET: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
        ld.shared.b32 %o0, [%s];
        barrier.cluster.arrive; barrier.cluster.wait;""",
        threads=64,
    )
    assert (found == 500).all()


def test_a_cluster_barrier_that_some_do_not_reach() -> None:
    with pytest.raises(Stuck, match="not reached by all"):
        barriers(
            (
                "setp.lt.u32 %q, %t, 32; @%q bra WAIT; bar.sync 0; WAIT: barrier.cluster.arrive; "
                "barrier.cluster.wait; bar.sync 1;"
            ),
            threads=64,
        )


# what does nothing here


@pytest.mark.parametrize(
    "instruction",
    [
        "fence.sc.gpu", "fence.acq_rel.cta", "fence.acq_rel.cluster", "membar.gl", "membar.cta", "fence.proxy.async",
        "fence.proxy.async.shared::cta",
        "fence.proxy.async.global", "fence.proxy.alias", "fence.mbarrier_init.release.cluster",
        "fence.proxy.tensormap::generic.release.gpu",
        "fence.proxy.tensormap::generic.acquire.gpu [%in], 128", "griddepcontrol.wait",
        "griddepcontrol.launch_dependents",
    ],
)  # fmt: skip
def test_fences_and_hints(instruction: str) -> None:
    assert barriers(f"mov.u32 %o0, 3; {instruction};")[0, 0] == 3


@pytest.mark.parametrize(
    "instruction",
    [
        "fence.nonsense",
        "fence.proxy.nonsense",
        "membar.proxy.nonsense",
        "griddepcontrol.nonsense",
        "setmaxnreg.inc.sync.aligned.u32 20",
    ],
)
def test_unknown_fences_and_hints(instruction: str) -> None:
    with pytest.raises(Unsupported, match=instruction.split()[0]):
        barriers(f"{instruction};")


def test_setmaxnreg() -> None:
    assert barriers("mov.u32 %o0, 3; setmaxnreg.dec.sync.aligned.u32 40;", threads=128)[0, 0] == 3


def test_blocks_start_without_barriers() -> None:
    """State of a block does not reach the next one: the second would find the first one's barrier."""
    text = f"""{HEADER}.shared .align 8 .b64 bar;
.visible .entry kernel() {{
    .reg .b32 %b, %c; .reg .pred %p; .reg .b64 %x; mov.u32 %b, bar; mov.u32 %c, %ctaid.x; ld.shared.b64 %x, [%b];
    setp.ne.b64 %p, %x, 0; @%p trap;
    mbarrier.init.shared::cta.b64 [%b], 1; ret;
}}
"""
    device = Device(1 << 28)
    device.launch(device.load(text).function("kernel"), 2, 1, [])
