"""Branches, loops, calls, barriers, and what happens when a block cannot go on."""

import numpy as np
import pytest

from tests.emulator.ptx import HEAD, kernel, run
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.machine import Stuck, Trapped
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.parser import parse_ptx
from tilework.oracles.emulator.syntax import EmulatorError, PtxSyntaxError

N = np.arange(64, dtype=np.uint32)


def test_every_thread_loops_as_often_as_it_wants() -> None:
    text = (
        "mov.u32 d, 0; mov.u32 %i, 0; LOOP: setp.ge.u32 %p, %i, a; @%p bra DONE; add.u32 d, d, %i; "
        "add.u32 %i, %i, 1; bra LOOP; DONE:"
    )
    got = run(text, N, out=np.uint32, scope=".reg .pred %p; .reg .b32 %i;")
    assert got.tolist() == [n * (n - 1) // 2 for n in range(64)]


def test_nested_divergence() -> None:
    text = """and.b32 %x, a, 3; setp.eq.u32 %p, %x, 0; @%p bra A; setp.eq.u32 %p, %x, 1; @%p bra B;
        mov.u32 d, 30; setp.eq.u32 %p, %x, 3; @!%p bra END; add.u32 d, d, 1; bra END;
        A: mov.u32 d, 10; bra END; B: mov.u32 d, 20; END: add.u32 d, d, 100;"""
    got = run(text, N, out=np.uint32, scope=".reg .pred %p; .reg .b32 %x;")
    assert got.tolist() == [{0: 110, 1: 120, 2: 130, 3: 131}[n % 4] for n in range(64)]


def test_indexed_branches() -> None:
    text = """and.b32 %x, a, 3; TABLE: .branchtargets L0, L1, L2, L3; brx.idx %x, TABLE;
        L0: mov.u32 d, 5; bra END; L1: mov.u32 d, 6; bra END; L2: mov.u32 d, 7; bra END; L3: mov.u32 d, 8; END:"""
    assert run(text, N, out=np.uint32, scope=".reg .b32 %x;").tolist() == [5 + n % 4 for n in range(64)]


def test_some_threads_leave_early() -> None:
    text = "mov.u32 d, 1; setp.lt.u32 %p, a, 40; @%p exit; bar.sync 0; mov.u32 d, 2;"
    assert run(text, N, out=np.uint32, scope=".reg .pred %p;").tolist() == [0] * 40 + [2] * 24


CALLS = (
    HEAD
    + """
.func (.param .b32 r) square(.param .b32 x) {
  .reg .b32 %a, %b;
  ld.param.b32 %a, [x];
  mul.lo.u32 %b, %a, %a;
  st.param.b32 [r], %b;
  ret;
}
.func (.param .b32 r) sum_to(.param .b32 n) {
  .reg .b32 %n, %m, %s; .reg .pred %p;
  ld.param.b32 %n, [n];
  setp.eq.u32 %p, %n, 0;
  mov.u32 %s, 0;
  @%p bra END;
  sub.u32 %m, %n, 1;
  { .param .b32 arg; .param .b32 got; st.param.b32 [arg], %m; call (got), sum_to, (arg); ld.param.b32 %s, [got]; }
  add.u32 %s, %s, %n;
END:
  st.param.b32 [r], %s;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .b32 %t, %a, %b, %x; .reg .b64 %o, %at, %f; .reg .pred %p;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, 20;
  @!%p bra OTHER;
  { .param .b32 arg; .param .b32 got; st.param.b32 [arg], %t; call.uni (got), square, (arg); ld.param.b32 %a, [got]; }
  bra JOIN;
OTHER:
  and.b32 %x, %t, 7;
  { .param .b32 arg; .param .b32 got; st.param.b32 [arg], %x; call (got), sum_to, (arg); ld.param.b32 %a, [got]; }
JOIN:
  mad.wide.u32 %at, %t, 4, %o;
  st.global.u32 [%at], %a;
  mov.u64 %f, square;
  P: .callprototype (.param .b32 _) _ (.param .b32 _);
  { .param .b32 arg; .param .b32 got; st.param.b32 [arg], %a; call (got), %f, (arg), P; ld.param.b32 %b, [got]; }
  st.global.u32 [%at+256], %b;
  ret;
}
"""
)


def test_calls_recursion_and_function_pointers() -> None:
    device = Device(1 << 22)
    out = device.upload(np.zeros(128, np.uint32))
    device.launch(device.load(CALLS).function("k"), 1, 64, [out])
    got = device.copy_out(out, 512).view(np.uint32)
    expected = [t * t if t < 20 else (t & 7) * ((t & 7) + 1) // 2 for t in range(64)]
    assert got[:64].tolist() == expected and got[64:].tolist() == [x * x for x in expected]


def test_a_barrier_orders_shared_memory() -> None:
    text = (
        "shl.b32 %x, %t, 2; mov.u32 %base, buffer; add.u32 %x, %x, %base; st.shared.u32 [%x], a; bar.sync 0; "
        "xor.b32 %y, %t, 63; shl.b32 %y, %y, 2; add.u32 %y, %y, %base; ld.shared.u32 d, [%y];"
    )
    got = run(text, N * 3, out=np.uint32, scope=".reg .b32 %x, %y, %base; .shared .align 4 .b8 buffer[256];")
    assert got.tolist() == [3 * (63 - n) for n in range(64)]


def test_named_barriers_for_some_warps() -> None:
    text = """setp.lt.u32 %p, a, 32; @%p bra FIRST; bar.sync 2, 64; ld.shared.u32 d, [box]; bra END;
        FIRST: mov.u32 %x, 77; st.shared.u32 [box], %x; bar.arrive 2, 64; mov.u32 d, 1; END:"""
    got = run(text, N, out=np.uint32, scope=".reg .pred %p; .reg .b32 %x; .shared .align 4 .b32 box;")
    assert got.tolist() == [1] * 32 + [77] * 32


def test_votes_at_a_barrier() -> None:
    flags = N < 5
    assert (run("bar.red.popc.u32 d, 0, a;", flags, out=np.uint32) == 5).all()
    assert (run("bar.red.or.pred d, 0, a;", flags, out=bool)).all()
    assert not (run("bar.red.and.pred d, 0, a;", flags, out=bool)).any()


def test_a_barrier_that_not_all_reach() -> None:
    text = "setp.lt.u32 %p, a, 32; @%p bar.sync 0; @!%p bar.sync 1; mov.u32 d, 0;"
    with pytest.raises(
        Stuck, match=r"barrier 0 is not reached by all threads: 32 have arrived, threads 32-63 have not"
    ):
        run(text, N, out=np.uint32, scope=".reg .pred %p;")


def test_endless_loops_end() -> None:
    device = Device(1 << 22, max_instructions=20_000)
    with pytest.raises(EmulatorError, match="is a loop endless"):
        device.launch(device.load(kernel("L: bra L;", 0)).function("k"), 1, 32, [])


def test_a_thread_that_waits_for_another() -> None:
    """One warp spins on a flag that another sets; neither starves."""
    text = """setp.lt.u32 %p, a, 32; @!%p bra SET; WAIT: ld.volatile.shared.u32 %x, [flag]; setp.eq.u32 %q, %x, 0;
        @%q bra WAIT; bra END;
        SET: mov.u32 %x, 9; st.volatile.shared.u32 [flag], %x; END: mov.u32 d, %x;"""
    got = run(text, N, out=np.uint32, scope=".reg .pred %p, %q; .reg .b32 %x; .shared .align 4 .b32 flag;")
    assert (got == 9).all()


def test_traps_name_the_thread() -> None:
    with pytest.raises(Trapped, match=r"(?s)trap \(block \(0, 0, 0\), thread \(5, 0, 0\)\).*PTX line"):
        run("setp.eq.u32 %p, a, 5; @%p trap; mov.u32 d, 0;", N, out=np.uint32, scope=".reg .pred %p;")


def test_bad_addresses_are_errors() -> None:
    for text, message in (
        ("ld.global.u32 d, [%q0+300];", "end 48 bytes after an allocation of 256 bytes"),
        ("ld.global.u32 d, [%q0+2];", "not a multiple of 4"),
        ("mov.u64 %at, 0; ld.global.u32 d, [%at];", "4 bytes at 0x0 are not allocated"),
        ("ld.shared.u32 d, [12345];", "not a multiple of 4"),
        ("ld.shared.u32 d, [12344];", "outside of its 0 bytes"),
    ):
        with pytest.raises(MemoryFault, match=message):
            run(text, N, out=np.uint32)


def test_wrong_launches() -> None:
    device = Device(1 << 22)
    function = device.load(kernel("", 1)).function("k")
    for grid, block, args, message in (
        (1, 2000, [0], "a block of 2000 threads"), (0, 32, [0], "a grid of"),
        (1, 32, [], "takes 1 arguments and is given 0"), (1, 32, [np.float32(1)], "has 4 bytes"),
        ((1, 1, 1, 1), 32, [0], "one to three dimensions"),
    ):  # fmt: skip
        with pytest.raises(EmulatorError, match=message):
            device.launch(function, grid, block, args)
    with pytest.raises(EmulatorError, match="no kernel 'missing'; it has k"):
        device.load(kernel("", 0)).function("missing")


@pytest.mark.parametrize(("text", "message"), (
    ("", "this is not PTX"), ("hello", "not known at the top"),
    (HEAD + ".entry k() { add.u32 %r1, %r2; }", "the register %r1 is not declared"),
    (HEAD + ".entry k() { ret", "expected an operand, found 'the end'"),
    (HEAD + ".entry k() { mov.u32 [, 1; }", "expected an operand"), (HEAD + "\x00", "is not PTX"),
    (HEAD + ".reg .b32 %r;", "not known at the top"),
    (HEAD + ".entry k(.param .q32 x) {}", "not the type of a variable"),
    (HEAD + ".entry k() " + "{" * 300 + "}" * 300, "nested more than"), (HEAD + ".address_size 32", "only 64-bit"),
))  # fmt: skip
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        parse_ptx(text)


def test_cut_text_never_crashes() -> None:
    for end in range(0, len(CALLS), 7):
        try:
            parse_ptx(CALLS[:end])
        except PtxSyntaxError:
            continue
