"""Kernels with two dots in a loop, as in attention, with unusual details, generated from a seed; `run_matmuls.py
--pairs` runs them.

Weights are -1, 0 or 1 and factors 1 or -1, so that all sums are exact. Generated are: the loads of the tiles, masks and
bounds, other carried values of the loop, other uses of the tiles, and the code between the dots.
"""

from dataclasses import dataclass
from typing import Any

from tests.fuzz.matmuls import Lines

BETWEEN = [  # what may happen to scores
    "s = tl.cumsum(tl.clamp(s, -1, 1), 1)", "s = tl.cumsum(tl.clamp(s, -1, 1), 0)", "s = tl.flip(s, 1)",
    "s = tl.flip(s, 0)",
    "s = tl.trans(tl.trans(s) + 1)", "s = tl.reshape(tl.reshape(s, [BM * BN]) + 1, [BM, BN])", "s = tl.sort(s, 1)",
    "s = tl.where(rn[None, :] == tl.argmax(s, 1)[:, None], 1, s)", "s = s + tl.max(tl.max(s, 1), 0)",
    "s0, s1 = tl.split(tl.reshape(s, [BM, BN // 2, 2]))\ns = tl.reshape(tl.join(s1, s0), [BM, BN])",
    "s = tl.gather(s, (rn[None, :] + 1 + 0 * rm[:, None]) % BN, 1)", "s = s + tl.clamp(tl.sum(s, 0), -2, 2)[None, :]",
    "s = s + tl.max(tl.histogram(tl.clamp(tl.max(s, 1), 0, 15).to(tl.int32), 16), 0)",
]  # fmt: skip
SIGNATURE = "q, k, v, o, o2, d, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr"


@dataclass
class Pair:
    """One kernel, and how many keys each of its launches has."""

    seed: int
    source: str
    tile: tuple[int, int, int]  # BM, BN, D
    way: str
    programs: int
    lengths: list[int]
    options: dict[str, Any]
    stores: bool  # the result, by a descriptor


class PairGenerator(Lines):
    def __init__(self, seed: int) -> None:
        super().__init__("pairs", seed)

    def pair(self) -> Pair:
        tile = self.one((128, 64, 64), (128, 128, 64), (64, 64, 64), (64, 32, 32), (128, 64, 128), (128, 32, 64))
        self.way = self.one("descriptors", "descriptors", "pointers", "carried")
        self.pieces = {
            name for name in (
                "mask", "top", "total", "shrink", "row shrink", "before", "after", "count", "if", "bias", "store",
                "atomic", "scores",
                "keys twice", "values first", "late add", "sum of values", "inner", "third", "behind", "tiles",
                "stored", "between", "between", "between",
            ) if self.chance(0.17)
        }  # fmt: skip
        self.masked_rows = self.way != "descriptors" and self.chance(0.3)
        self.body()
        loops = self.one(1, 1, 1, 2)
        for number in range(loops):
            self.loop(number, loops)
        self.end()
        options = {"num_warps": self.one(4, 8), "num_stages": self.one(1, 2, 3, 4)}
        if self.chance(0.3):
            options["auto_tma"] = True
        source = "\n".join(
            [
                "import tilework.language as tl",
                "from tilework import jit",
                "",
                "",
                "@jit",
                f"def kernel({SIGNATURE}):",
                *self.lines,
                "",
            ]
        )
        lengths = [tile[1] * turns for turns in self.random.sample([0, 1, 2, 3, 4, 5], 3)]
        if self.masked_rows:
            lengths[0] = max(1, lengths[0] - 3)
        return Pair(
            self.seed,
            source,
            tile,
            self.way,
            self.one(1, 2),
            lengths,
            options,
            "stored" in self.pieces and self.way == "descriptors",
        )

    def body(self) -> None:
        self.add(
            "row = tl.program_id(0) * BM\nrm = row + tl.arange(0, BM)\nrn = tl.arange(0, BN)\nrd = tl.arange(0, D)"
        )
        self.add("acc = tl.zeros((BM, D), tl.float32)\nkept = tl.full((BM, D), 3, tl.float32)\ncount = 0\nturns = row")
        self.add(
            "top = tl.full((BM,), -99, tl.float32)\ntotal = tl.zeros((BM,), tl.float32)\n"
            "third = tl.zeros((BM, D), tl.float32)"
        )
        self.add("scores = tl.zeros((BM, BN), tl.float32)\nseen = tl.zeros((D,), tl.float32)")
        if self.way == "descriptors":
            self.add("x = q.load([row, 0])")
        else:
            self.add("x = tl.load(q + rm[:, None] * D + rd[None, :])")
            self.add("pk = k + rn[None, :] * D + rd[:, None]\npv = v + rn[:, None] * D + rd[None, :]")

    def loop(self, number: int, loops: int) -> None:
        ends = {(0, 1): "0, N", (0, 2): "0, N // (2 * BN) * BN", (1, 2): "N // (2 * BN) * BN, N"}[number, loops]
        if "inner" in self.pieces and number == 0:
            ends = self.one("0, tl.minimum(row, N)", "0, tl.minimum(row + BM, N)", "BN, N", "0, N - BN")
        requested = self.one(
            ", warp_specialize=True",
            ", warp_specialize=True",
            "",
            f", warp_specialize=True, num_stages={self.one(1, 2, 3)}",
        )
        if self.way == "carried":
            start = ends.split(", ")[0] if "tl." not in ends else "0"
            self.add(f"fk = pk + ({start}) * D\nfv = pv + ({start}) * D")
        self.add(f"for n in tl.range({ends}, BN{requested}):")
        p = self.pieces
        keys, values = {
            "descriptors": ("k.load([n, 0]).T", "v.load([n, 0])"),
            "pointers": (self.load("pk + n * D", "rn[None, :]"), self.load("pv + n * D", "rn[:, None]")),
            "carried": (self.load("fk", "rn[None, :]"), self.load("fv", "rn[:, None]")),
        }[self.way]
        lines = [f"y = {keys}"]
        if "values first" in p:
            lines.append(f"z = {values}")
        lines.append("scores = tl.dot(x, y, scores)\ns = scores" if "scores" in p else "s = tl.dot(x, y)")
        if "bias" in p:
            lines.append("s += tl.load(d + n + rn)[None, :]")
        if "mask" in p:
            lines.append("s = tl.where(rm[:, None] >= n + rn[None, :], s, -1)")
        if "between" in p:
            lines.append(self.one(*BETWEEN))
        if "top" in p:
            lines.append("high = tl.maximum(top, tl.max(s, 1))")
        lines.append("w = tl.clamp(s, -1, 1)")
        if "total" in p:
            lines.append("total = total + tl.sum(w, 1)")
        if "store" in p:
            lines.append("tl.store(o2 + 64 + rm, tl.sum(w, 1))")
        if "before" in p:
            lines.append("kept = acc")
        if "shrink" in p:
            lines.append("acc = acc * (1 - 2 * (n // BN % 2))")
        if "row shrink" in p:
            lines.append("acc = acc * tl.where(tl.max(s, 1) > 3, 1.0, -1.0)[:, None]")
        if "if" in p:
            lines.append("if n // BN % 3 == 1:\n    acc += 1")
        if "values first" not in p:
            lines.append(f"z = {values}")
        second = "tl.dot(w.to(tl.float16), y.T, acc)" if "keys twice" in p else "tl.dot(w.to(tl.float16), z, acc)"
        lines.append(f"acc = {second}")
        if "third" in p:
            lines.append("third = tl.dot(w.to(tl.float16), z, third)")
        if "sum of values" in p:
            lines.append("seen += tl.sum(z.to(tl.float32), 0)")
        if "after" in p:
            lines.append("kept = acc")
        if "late add" in p:
            lines.append("acc = acc + tl.where(rm[:, None] % 2 == 0, 1.0, 0.0)")
        if "top" in p:
            lines.append("top = high")
        if "count" in p:
            lines.append("count, turns = turns, count + 1")
        if "atomic" in p:
            lines.append("tl.atomic_add(o2, 1.0)")
        if self.way == "carried":
            lines.append("fk += BN * D\nfv += BN * D")
        self.add("\n".join(lines), 2)

    def load(self, where: str, index: str) -> str:
        return f"tl.load({where}, mask=n + {index} < N, other=0.0)" if self.masked_rows else f"tl.load({where})"

    def end(self) -> None:
        self.add("acc += count + 2 * turns + top[:, None] + total[:, None] + third + seen[None, :]")
        if "scores" in self.pieces:
            self.add("acc += tl.sum(scores, 1)[:, None]")
        if "behind" in self.pieces:
            self.add(
                "acc = tl.dot(tl.clamp(acc, -1, 1).to(tl.float16), tl.load(d + rd[:, None] * D + rd[None, :]), acc)"
            )
        self.add("acc += 5 * kept")
        if "stored" in self.pieces and self.way == "descriptors":
            self.add("o.store([row, 0], acc)")
        else:
            self.add("tl.store(o + rm[:, None] * D + rd[None, :], acc)")
