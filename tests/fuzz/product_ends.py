"""What drawn products do with their sums: steps before they are stored, and stores of all kinds, several of them.

Every program stores to places of its own, or adds with atomics, so that the order of programs does not matter. Sums stay exact.
"""

STEPS = {
    "positive": "acc = tl.maximum(acc, 0)",
    "gate": "acc = tl.where(tl.load(g + rm[:, None] * N + rn[None, :], mask=mask, other=0) > 0, acc, -acc)",
    "highest": "acc = tl.where(acc > tl.max(acc, 1)[:, None] - 3, acc, 0)",
    "middle": "acc = acc - tl.max(acc, 0)[None, :]",
    "chain": "rw = tl.arange(0, BN)\nacc += tl.dot(tl.clamp(acc.to(tl.float32), -1, 1).to(tl.float16), tl.load(g + rw[:, None] * BN + rw[None, :])).to(acc.dtype)",
    "sums": "acc = tl.cumsum(tl.clamp(acc.to(tl.float32), -1, 1), 1).to(acc.dtype)",
    "turned": "acc = tl.trans(tl.trans(acc) + rn[:, None])",
    "two rows": "acc += tl.load(d + pm)",
    "again": "acc = acc * 2 + acc",
    "flipped": "acc = tl.flip(acc, 1)",
    "if": "if pm % 2 == 0:\n    acc += 3",
    "round": "for turn in range(pm % 3):\n    acc += turn",
}
ADDED = "tl.atomic_add(o + rm[:, None] * N + rn[None, :], {}, mask=mask)"
STORES = {
    "wide": "tl.store(o + rm[:, None] * N + rn[None, :], {}, mask=mask)",
    "far": "tl.store(o + rm.to(tl.int64)[:, None] * N + rn[None, :], {}, mask=mask)",
    "turned": "tl.store(o + rn[:, None] * M + rm[None, :], {}.T, mask=mask.T)",
    "chosen": "tl.store(o + rm[:, None] * N + rn[None, :], {}, mask=mask & (acc > 0))",
    "gated": "tl.store(o + rm[:, None] * N + rn[None, :], {}, mask=mask & (tl.load(g + rm[:, None] * N + rn[None, :], mask=mask, other=0) > 0))",
    "rows": "tl.store(o + pn * M + rm, tl.sum({}, 1), mask=rm < M)",
    "columns": "tl.store(o + pm * N + rn, tl.max({}, 0), mask=rn < N)",
    "halves": """left, right = {}.reshape((BM, 2, BN // 2)).permute(0, 2, 1).split()
rh = on + tl.arange(0, BN // 2)
tl.store(o + rm[:, None] * N + rh[None, :], left, mask=(rm[:, None] < M) & (rh[None, :] < N))
tl.store(o + rm[:, None] * N + (rh + BN // 2)[None, :], right, mask=(rm[:, None] < M) & (rh[None, :] + BN // 2 < N))""",
    "twice": """tl.store(o + rm[:, None] * N + rn[None, :], {0}, mask=mask)
tl.store(o + rm[:, None] * N + rn[None, :], {0} + 1, mask=mask & (rn[None, :] % 3 == 0))""",
    "highest": "tl.atomic_max(e + 400 + tl.arange(0, BM), tl.clamp(tl.max({}, 1), -9, 9).to(tl.int32))",
    "counts": "tl.atomic_add(e + 300 + 400 + tl.arange(0, 16), tl.histogram((tl.clamp({}, 0, 15)).to(tl.int32).reshape([BM * BN]), 16))",
    "added": ADDED,
}
EACH = "tl.store(o + rm[:, None] * N + rn[None, :], acc.to(tl.float32), mask=(rm[:, None] < M) & (rn[None, :] < N))"
OF_NUMBERS = frozenset({"highest", "chain", "counts", "sums"})  # not of what is none
ELSEWHERE = frozenset({"turned", "rows", "columns"})  # than EACH: there another program may store
