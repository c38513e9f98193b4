"""Shuffles, votes, matches and reductions of a warp, against formulas over lanes."""

import numpy as np
import pytest

from tests.emulator.ptx import kernel, run
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.syntax import EmulatorError

LANES = np.arange(64, dtype=np.uint32)
VALUES = np.random.default_rng(0).integers(0, 2**32, 64, dtype=np.uint32)
FULL = 0xFFFFFFFF


@pytest.mark.parametrize("width", (32, 16, 8))
@pytest.mark.parametrize("step", (0, 1, 3, 8, 31))
@pytest.mark.parametrize("mode", ("up", "down", "bfly", "idx"))
def test_shuffles(mode: str, step: int, width: int) -> None:
    segment = (32 - width) << 8
    bound = segment if mode == "up" else segment | 31
    got, valid = run(f"shfl.sync.{mode}.b32 d0|d1, a, {step}, {bound}, -1;", VALUES, out=(np.uint32, bool))
    for thread in range(64):
        warp, lane = divmod(thread, 32)
        base, inside = lane // width * width, lane % width
        source = {"up": inside - step, "down": inside + step, "bfly": (lane ^ step) - base, "idx": step % width}[mode]
        ok = 0 <= source < width or (mode == "bfly" and source < 0)
        assert valid[thread] == ok
        assert got[thread] == VALUES[warp * 32 + (base + source if ok else lane)]


def test_votes() -> None:
    flags = np.array([(lane % 3 == 0) for lane in range(32)] + [True] * 32)
    assert run("vote.sync.all.pred d, a, -1;", flags, out=bool).tolist() == [False] * 32 + [True] * 32
    assert run("vote.sync.any.pred d, a, -1;", flags, out=bool).all()
    assert run("vote.sync.any.pred d, !a, -1;", flags, out=bool).tolist() == [True] * 32 + [False] * 32
    assert run("vote.sync.uni.pred d, a, -1;", flags, out=bool).tolist() == [False] * 32 + [True] * 32
    ballot = run("vote.sync.ballot.b32 d, a, -1;", flags, out=np.uint32)
    assert set(ballot[:32].tolist()) == {sum(1 << i for i in range(0, 32, 3))} and (ballot[32:] == FULL).all()


def test_matches() -> None:
    values = np.array([lane % 5 for lane in range(32)] + [9] * 32, np.uint32)
    got = run("match.any.sync.b32 d, a, -1;", values, out=np.uint32)
    for thread in range(64):
        base = thread // 32 * 32
        assert got[thread] == sum(1 << i for i in range(32) if values[base + i] == values[thread])
    got, same = run("match.all.sync.b32 d0|d1, a, -1;", values, out=(np.uint32, bool))
    assert not same[:32].any() and same[32:].all() and (got[:32] == 0).all() and (got[32:] == FULL).all()


@pytest.mark.parametrize(("name", "dtype", "function"), (
    ("add.s32", np.int32, lambda x: x.sum(dtype=np.int64).astype(np.int32)),
    ("add.u32", np.uint32, lambda x: x.sum(dtype=np.uint64).astype(np.uint32)), ("min.s32", np.int32, np.min),
    ("max.u32", np.uint32, np.max), ("and.b32", np.uint32, np.bitwise_and.reduce),
    ("or.b32", np.uint32, np.bitwise_or.reduce), ("xor.b32", np.uint32, np.bitwise_xor.reduce),
))  # fmt: skip
def test_reductions(name: str, dtype: type, function) -> None:  # noqa: ANN001
    values = VALUES.view(dtype)
    got = run(f"redux.sync.{name} d, a, -1;", values, out=dtype)
    with np.errstate(over="ignore"):
        assert (got[:32] == function(values[:32])).all() and (got[32:] == function(values[32:])).all()


def test_one_lane_is_elected() -> None:
    leader, flag = run("elect.sync d0|d1, -1;", VALUES, out=(np.uint32, bool))
    assert (leader == 0).all() and np.flatnonzero(flag).tolist() == [0, 32]


def test_active_lanes() -> None:
    got = run(
        "mov.u32 d, 0; setp.lt.u32 %p, a, 10; @%p activemask.b32 d;", LANES, out=np.uint32, scope=".reg .pred %p;"
    )
    assert (got[:10] == 0x3FF).all() and (got[10:] == 0).all()


def test_part_of_a_warp() -> None:
    text = "mov.u32 d, 7; setp.lt.u32 %p, a, 16; @!%p bra OUT; shfl.sync.idx.b32 d, b, 3, 31, 0xffff; OUT:"
    got = run(text, np.arange(32, dtype=np.uint32), VALUES[:32], out=np.uint32, scope=".reg .pred %p;")
    assert (got[:16] == VALUES[3]).all() and (got[16:] == 7).all()


def test_both_sides_of_a_branch_meet_at_a_shuffle() -> None:
    text = (
        "and.b32 %x, a, 1; setp.eq.u32 %p, %x, 0; @%p bra EVEN; add.u32 %y, b, 1; bra JOIN; "
        "EVEN: add.u32 %y, b, 2; JOIN: shfl.sync.bfly.b32 d, %y, 1, 31, -1;"
    )
    b = VALUES[:32]
    got = run(text, np.arange(32, dtype=np.uint32), b, out=np.uint32, scope=".reg .pred %p; .reg .b32 %x, %y;")
    own = b + np.where(np.arange(32) % 2 == 0, 2, 1).astype(np.uint32)
    assert (got == own[np.arange(32) ^ 1]).all()


def test_a_lane_that_is_missing_is_an_error() -> None:
    text = "mov.u32 d, 7; setp.lt.u32 %p, a, 16; @!%p bra OUT; shfl.sync.idx.b32 d, a, 3, 31, -1; OUT: bar.sync 0;"
    with pytest.raises(EmulatorError, match=r"names lane 16, which is not here"):
        run(text, np.arange(32, dtype=np.uint32), out=np.uint32, scope=".reg .pred %p;")


def test_lane_masks() -> None:
    lanes = np.arange(32, dtype=np.uint64)
    for name, expected in (
        ("eq", 1 << lanes),
        ("lt", (1 << lanes) - 1),
        ("le", (2 << lanes) - 1),
        ("gt", FULL - ((2 << lanes) - 1)),
        ("ge", FULL - ((1 << lanes) - 1)),
    ):
        got = run(f"mov.u32 d, %lanemask_{name};", np.zeros(32, np.uint32), out=np.uint32)
        assert got.tolist() == expected.tolist()


def test_special_registers() -> None:
    text = kernel(
        "mov.u32 %a, %tid.y; mov.u32 %b, %ctaid.x; mad.lo.u32 %a, %b, 100, %a; mov.u32 %b, %ntid.x; "
        "mad.lo.u32 %a, %b, 10000, %a;" "mov.u32 %b, %tid.y; mov.u32 %c, %ntid.x; mad.lo.u32 %b, %b, %c, %t; "
                                        "mov.u32 %c, %ctaid.x; mad.lo.u32 %b, %c, 8, %b; "
                                        "mad.wide.u32 %at, %b, 4, %q0; st.global.u32 [%at], %a;",
        1, ".reg .b32 %a, %b, %c;",
    )  # fmt: skip
    device = Device(1 << 22)
    out = device.upload(np.zeros(16, np.uint32))
    device.launch(device.load(text).function("k"), 2, (4, 2), [out])
    assert device.copy_out(out, 64).view(np.uint32).tolist() == [
        40000 + y + 100 * block for block in (0, 1) for y in (0, 1) for _ in range(4)
    ]
