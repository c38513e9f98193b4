"""Offsets of buffers with random lifetimes; pairs are found by comparing all with all."""

import random
from itertools import combinations

from tilework.analysis.allocation import FOREVER, Buffer, Interval, Overlaps, assign_offsets, interference
from tilework.ir.locations import unknown
from tilework.ir.tt import GetProgramIdOp


def random_buffers(pick: random.Random) -> list[Buffer]:
    """Some live for one op, some forever, some in a region beside others, or freed in one."""
    owners = [GetProgramIdOp.make(0, unknown) for _ in range(pick.randint(1, 16))]
    buffers: list[Buffer] = []
    for owner in owners:
        start = pick.randrange(30)
        end = pick.choice([start + 1, start + 1, pick.randint(start + 1, 40), FOREVER])
        buffer = Buffer(owner, "scratch", pick.choice([16, 16, 48, 512]), pick.choice([16, 128]), Interval(start, end))
        if pick.random() < 0.2:
            buffer.regions = ((owners[0], pick.randrange(3)),)
        if pick.random() < 0.1:
            buffer.freed_in = pick.choice(owners)
        buffers.append(buffer)
    return buffers


def test_interference_finds_all_pairs() -> None:
    pick = random.Random(39)
    for _ in range(200):
        buffers = random_buffers(pick)
        for buffer in buffers:
            buffer.offset = pick.randrange(8) * 16
        pairs = {
            (i, j) for (i, a), (j, b) in combinations(enumerate(buffers), 2) if a.bytes.overlaps(b.bytes) and a.meets(b)
        }
        found = interference(buffers)
        assert found == [
            [j for j in range(len(buffers)) if (min(i, j), max(i, j)) in pairs] for i in range(len(buffers))
        ]


def test_buffers_in_use_together_share_nothing() -> None:
    pick = random.Random(40)
    for _ in range(200):
        buffers = random_buffers(pick)
        assert assign_offsets(buffers) == max(buffer.end for buffer in buffers)
        assert all(buffer.offset % buffer.alignment == 0 for buffer in buffers)
        assert not any(a.bytes.overlaps(b.bytes) and a.meets(b) for a, b in combinations(buffers, 2))


def test_one_op_after_the_other_uses_the_same_bytes() -> None:
    owner = GetProgramIdOp.make(0, unknown)
    buffers = [Buffer(owner, "scratch", 512, 128, Interval(2 * k, 2 * k + 1)) for k in range(50)]
    assert assign_offsets(buffers) == 512


def test_overlaps_are_counted() -> None:
    pick = random.Random(41)
    spans = [Interval(start, start + pick.randint(1, 9)) for start in (pick.randrange(30) for _ in range(40))]
    counted, present = Overlaps(spans[:20]), list(spans[:20])
    for new in spans[20:]:
        counted.add(new)
        present.append(new)
        counted.remove(present.pop(pick.randrange(len(present))))
        assert counted.count(new) == sum(new.overlaps(other) for other in present)
