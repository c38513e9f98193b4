"""Matmul-like kernels with unusual details, generated from a seed; `run_matmuls.py` runs them.

Generated are: the program order, the addresses, bounds and padding of tiles, other code before, in and after the loop,
the layouts of the arrays (padded, overlapping, transposed, broadcast, off by one element), dtypes and options. Values
are small integers, so that dot products are exact. Each case is launched with several shapes. Accumulators go through
some steps before they are stored, with stores of all kinds: every program stores to addresses of its own, or adds with
atomics, so that the order of programs does not matter.

"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

STEPS = {
    "positive": "acc = tl.maximum(acc, 0)",
    "gate": "acc = tl.where(tl.load(g + rm[:, None] * N + rn[None, :], mask=mask, other=0) > 0, acc, -acc)",
    "highest": "acc = tl.where(acc > tl.max(acc, 1)[:, None] - 3, acc, 0)",
    "middle": "acc = acc - tl.max(acc, 0)[None, :]",
    "chain": (
        "rw = tl.arange(0, BN)\nacc += tl.dot(tl.clamp(acc.to(tl.float32), -1, 1).to(tl.float16), "
        "tl.load(g + rw[:, None] * BN + rw[None, :])).to(acc.dtype)"
    ),
    "sums": "acc = tl.cumsum(tl.clamp(acc.to(tl.float32), -1, 1), 1).to(acc.dtype)",
    "transposed": "acc = tl.trans(tl.trans(acc) + rn[:, None])",
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
    "transposed": "tl.store(o + rn[:, None] * M + rm[None, :], {}.T, mask=mask.T)",
    "chosen": "tl.store(o + rm[:, None] * N + rn[None, :], {}, mask=mask & (acc > 0))",
    "gated": (
        "tl.store(o + rm[:, None] * N + rn[None, :], {}, mask=mask & (tl.load(g + rm[:, None] * N + rn[None, "
        ":], mask=mask, other=0) > 0))"
    ),
    "rows": "tl.store(o + pn * M + rm, tl.sum({}, 1), mask=rm < M)",
    "columns": "tl.store(o + pm * N + rn, tl.max({}, 0), mask=rn < N)",
    "halves": """left, right = {}.reshape((BM, 2, BN // 2)).permute(0, 2, 1).split()
rh = on + tl.arange(0, BN // 2)
tl.store(o + rm[:, None] * N + rh[None, :], left, mask=(rm[:, None] < M) & (rh[None, :] < N))
tl.store(o + rm[:, None] * N + (rh + BN // 2)[None, :], right, mask=(rm[:, None] < M) & (rh[None, :] + BN // 2 < N))""",
    "twice": """tl.store(o + rm[:, None] * N + rn[None, :], {0}, mask=mask)
tl.store(o + rm[:, None] * N + rn[None, :], {0} + 1, mask=mask & (rn[None, :] % 3 == 0))""",
    "highest": "tl.atomic_max(e + 400 + tl.arange(0, BM), tl.clamp(tl.max({}, 1), -9, 9).to(tl.int32))",
    "counts": (
        "tl.atomic_add(e + 300 + 400 + tl.arange(0, 16), tl.histogram((tl.clamp({}, 0, "
        "15)).to(tl.int32).reshape([BM * BN]), 16))"
    ),
    "added": ADDED,
}
EACH = "tl.store(o + rm[:, None] * N + rn[None, :], acc.to(tl.float32), mask=(rm[:, None] < M) & (rn[None, :] < N))"
OF_NUMBERS = frozenset({"highest", "chain", "counts", "sums"})  # not of what is none
ELSEWHERE = frozenset({"transposed", "rows", "columns"})  # than EACH: there another program may store


SIZES = {"f16": 2, "bf16": 2, "f32": 4, "fp8": 1, "fp8e5": 1, "i8": 1}  # bytes
TILES = [
    (128, 256, 64), (128, 128, 64), (256, 128, 64), (64, 256, 64), (128, 256, 32), (128, 128, 128), (64, 64, 64),
    (64, 128, 32), (128, 64, 64), (16, 64, 32), (32, 32, 32),
]  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """The layout of a matrix in memory: it begins at `offset`, with strides `row` and `column`."""

    offset: int
    row: int
    column: int


@dataclass
class Launch:
    m: int
    n: int
    k: int
    batch: int
    layouts: dict[str, Layout]


@dataclass
class Case:
    seed: int
    source: str
    tile: tuple[int, int, int]
    dtype: str
    way: str
    grid: str
    options: dict[str, Any]
    launches: list[Launch] = field(default_factory=list)
    alias: str = ""
    stores: bool = False  # the result, by a descriptor


NUMBERS = {
    "line": "pid = tl.program_id(0)\nnum_n = tl.cdiv(N, BN)\npm = pid // num_n\npn = pid % num_n",
    "columns": "pid = tl.program_id(0)\nnum_m = tl.cdiv(M, BM)\npm = pid % num_m\npn = pid // num_m",
    "plane": "pm = tl.program_id(0)\npn = tl.program_id(1)",
    "turned plane": "pm = tl.program_id(1)\npn = tl.program_id(0)",
    "far planes": "pm = tl.program_id(1)\npn = tl.program_id(2)",
    "programs": (
        "pid = tl.num_programs(0) - 1 - tl.program_id(0)\nnum_n = tl.cdiv(N, BN)\npm = pid // num_n\npn = pid % num_n"
    ),
    "split": (
        "pid = tl.program_id(0)\nnum_n = tl.cdiv(N, BN)\npm = pid // num_n\npn = pid % num_n\npart = tl.program_id(1)"
    ),
    "tiles": (
        "num_n = tl.cdiv(N, BN)\nfor tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * num_n, tl.num_programs(0){}):"
    ),
    "groups": """pid = tl.program_id(0)
num_m = tl.cdiv(M, BM)
num_n = tl.cdiv(N, BN)
group = pid // (GROUP * num_n)
size = min(num_m - group * GROUP, GROUP)
pm = group * GROUP + (pid % (GROUP * num_n)) % size
pn = (pid % (GROUP * num_n)) // size""",
}


def grid_of(case: Case, launch: Launch) -> tuple[int, ...]:
    rows, columns = -(-launch.m // case.tile[0]), -(-launch.n // case.tile[1])
    plane = {
        "split": (rows * columns, 3),
        "plane": (rows, columns),
        "turned plane": (columns, rows),
        "far planes": (1, rows, columns),
    }
    count = rows * columns
    return plane.get(case.grid, (count if case.grid != "tiles" else min(count, 1 + case.seed % 2), 1, 1))


class Lines:
    """The body of a kernel that is generated."""

    def __init__(self, kind: str, seed: int) -> None:
        self.random, self.seed = Random(f"{kind} {seed}"), seed
        self.lines: list[str] = []
        self.base = 0  # loops around everything

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def add(self, text: str, depth: int = 1) -> None:
        self.lines += ["    " * (self.base + depth) + line for line in text.splitlines()]


class MatmulGenerator(Lines):
    """Generates one case."""

    def __init__(self, seed: int, large: bool) -> None:
        super().__init__("products", seed)
        self.large = large

    def case(self) -> Case:
        self.dtype = self.one("f16", "f16", "f16", "bf16", "f32", "fp8", "fp8e5", "i8")
        self.tile: tuple[int, int, int] = self.random.choice(TILES[: 7 if self.chance(0.7) else None])
        self.large_one = self.chance(0.4)  # so that CTAs are persistent
        if self.large_one:
            self.dtype, self.tile = (
                self.one("f16", "bf16", "f16", "bf16", "fp8", "i8", "f32"),
                self.one((128, 256, 64), (256, 128, 64)),
            )
            if SIZES[self.dtype] == 1:
                self.tile = (self.tile[0], self.tile[1], 128)
        if SIZES[self.dtype] == 4:
            self.tile = (self.tile[0], self.tile[1], 32)
        ways = ("pointers", "carried", "descriptors", "descriptors", "made")
        self.way = self.one(*ways) if self.large_one else self.one("pointers", "carried", *ways)
        self.requested = self.chance(0.4)
        self.in_place = self.way in ("pointers", "carried") and self.chance(0.06)
        self.grid = "plane" if self.in_place else self.one(*NUMBERS)
        self.rows = "mask" if self.in_place else self.one("wrap", "wrap", "mask", "none", "where")
        self.inner = self.one("left", "index", "none") if self.way in ("pointers", "carried") else "none"
        self.stores = self.way in ("descriptors", "made") and self.chance(0.5)
        self.other = self.one("0.0", "0.0", "0.0", "", "1.0", "-0.0", "float('nan')")
        if self.dtype in ("i8", "fp8", "fp8e5"):
            self.other = self.one("0", "0", "", "1")
        self.unit = {name: self.chance(0.7) for name in "ab"}  # the contiguous stride is not an argument
        self.transposed = (
            {name: self.chance(0.3) for name in "ab"}
            if self.way in ("pointers", "carried")
            else {"a": False, "b": self.chance(0.3)}
        )
        self.extra: list[str] = []
        if self.in_place:
            self.transposed = {"a": False, "b": False}
        self.body()
        stages = self.one(1, 2, 3, 3, 3, 4, 5)
        options: dict[str, Any] = {"num_warps": self.one(4, 4, 8, 8, 8, 1, 2, 16), "num_stages": stages}
        if self.tile[0] * self.tile[1] > 128 * 128:
            options["num_warps"] = 8
        if self.large_one:
            options["num_stages"] = self.one(3, 3, 4, 2)
        if self.chance(0.3):
            options["auto_tma"] = True
        if self.chance(0.04):
            options["launch_cooperative_grid"] = True
        if self.rare(0.08):
            options["num_ctas"] = 2
        source = "\n".join([*self.head(), *self.lines, ""])
        case = Case(self.seed, source, self.tile, self.dtype, self.way, self.grid, options)
        case.stores = self.stores
        case.alias = "c" if self.in_place else "b" if self.chance(0.08) and self.way in ("pointers", "carried") else ""
        case.launches = [self.launch(case, first=number == 0) for number in range(3 if self.large else 2)]
        case.launches += [case.launches[0]] if self.large else []
        return case

    def head(self) -> list[str]:
        return [
            "import tilework.language as tl",
            "from tilework import jit",
            "",
            "",
            "@jit",
            (
                "def kernel(a, b, c, d, e, g, o, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, "
                "BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):"
            ),
        ]

    def rare(self, part: float) -> bool:
        """For what keeps blocks from staying: not so often where they may."""
        return self.chance(part * 0.3 if self.large_one else part)

    def body(self) -> None:
        flags = self.one("", ", flatten=True", ", warp_specialize=True", ", flatten=True, warp_specialize=True")
        self.add(NUMBERS[self.grid].format(flags))
        if self.grid == "tiles":
            self.base = 1
            self.add("pm = tile // num_n\npn = tile % num_n")
        acc_type = "tl.int32" if self.dtype == "i8" else "tl.float32"
        if self.rare(0.05) and not self.base:
            self.add("if pm * BM >= M + 7:\n    return")
        if self.rare(0.05):
            self.add("tl.store(e + pm, pm)")
        if self.rare(0.05):
            self.add("tl.device_assert(pm >= 0)")
        self.add(
            "om = pm * BM\non = pn * BN\nrm = om + tl.arange(0, BM)\nrn = on + tl.arange(0, BN)\nrk = tl.arange(0, BK)"
        )
        self.offsets()
        self.add(f"acc = tl.zeros((BM, BN), dtype={acc_type})")
        if self.rare(0.08):
            self.add(f"acc = acc + tl.load(d + tl.arange(0, BN))[None, :].to({acc_type})")
        self.loop(acc_type)
        if self.rare(0.08):
            self.loop(acc_type)
        self.end()

    def offsets(self) -> None:
        if self.way == "descriptors":
            return
        if self.way == "made":
            self.add("da = tl.make_tensor_descriptor(a, [M, K], [sam, 1], [BM, BK])")
            b = "[N, K], [sbn, 1], [BN, BK]" if self.transposed["b"] else "[K, N], [sbk, 1], [BK, BN]"
            self.add(f"db = tl.make_tensor_descriptor(b, {b})")
            return
        kept = {
            "wrap": "{r} % {L}",
            "where": "tl.where({r} < {L}, {r}, 0)",
            "mask": "{r}",
            "none": "{r}",
        }[self.rows]
        for name, limit in (("rm", "M"), ("rn", "N")):
            self.add(f"q{name[1]} = {kept.format(r=name, L=limit)}")
        strides = {"a": ("sam", "sak"), "b": ("sbk", "sbn")}
        for name in "ab":
            if self.unit[name]:
                first, second = strides[name]
                strides[name] = ("1", second) if self.transposed[name] else (first, "1")
        rest = [
            f"{where} * {stride}" if stride != "1" else where
            for where, stride in zip(
                ("qm[:, None]", "rk[None, :]", "rk[:, None]", "qn[None, :]"),
                (*strides["a"], *strides["b"]),
                strict=True,
            )
        ]
        wide = self.chance(0.15)
        start = "om.to(tl.int64) * 0 + " if wide else ""
        self.add(f"pa = a + ({start}{rest[0]} + {rest[1]})\npb = b + ({start}{rest[2]} + {rest[3]})")
        self.steps = [f"BK * {strides['a'][1]}", f"BK * {strides['b'][0]}"]

    def mask(self, row: str, limit: str, is_first: bool) -> str:
        outer, inner = ("[:, None]", "[None, :]") if is_first else ("[None, :]", "[:, None]")
        parts = [f"({row}{outer} < {limit})"] if self.rows == "mask" else []
        if self.inner == "left":
            parts.append(f"(rk{inner} < K - k * BK)")
        elif self.inner == "index":
            parts.append(f"(k * BK + rk{inner} < K)")
        if not parts:
            return ""
        return f", mask={' & '.join(parts)}" + (f", other={self.other}" if self.other else "")

    def loop(self, acc_type: str) -> None:
        kind = self.one("range", "range", "short", "late", "while") if self.rare(0.3) else "range"
        extra = [
            name
            for name in (
                "sum",
                "if",
                "where",
                "max",
                "count",
                "atomic",
                "scalar",
                "second",
                "turn",
                "scale",
                "half",
                "doubled",
                "again",
                "limit",
                "around",
                "each",
            )
            if self.rare(0.07)
        ]
        if self.dtype in ("i8", "fp8", "fp8e5"):
            extra = [name for name in extra if name not in ("sum", "second", "scale", "doubled")]
        if "sum" in extra:
            self.add("sums = tl.zeros((BM,), dtype=tl.float32)")
        if "max" in extra:
            self.add(f"top = tl.full((BM,), -1000, {acc_type})")
        if "count" in extra:
            self.add("count = 0\nother = pm")
        if "second" in extra:
            self.add(f"acc2 = tl.zeros((BM, BN), dtype={acc_type})")
        self.extra, depth = [*self.extra, *extra], 1
        requested = ", warp_specialize=True" if self.requested else ""
        if self.rare(0.3):
            requested += f", num_stages={self.one(1, 2, 3, 4, 5)}"
        if kind == "while":
            self.add("done = 0\nwhile done < 2:\n    done += 1")
            depth = 2
        bounds = {"short": "0, tl.cdiv(K, BK) - 1", "late": "1, tl.cdiv(K, BK)"}.get(kind, "0, tl.cdiv(K, BK)")
        if self.grid == "split":
            bounds = bounds.replace("0, ", "part, ") + ", 3"
        if "limit" in extra:
            bounds = "0, tl.minimum(tl.load(e + 300), tl.cdiv(K, BK))"
        if "around" in extra:
            self.add("if pm % 2 == 0:", depth)
            depth += 1
        outer = kind == "range" and self.rare(0.07)
        if outer:
            self.add(f"for turn in range({self.one('2', 'M // M + 1', '0', '1')}):", depth)
            depth += 1
        if self.way == "carried":
            self.add("fa = pa\nfb = pb", depth)
        header = f"tl.range({bounds}{requested})" if requested or self.chance(0.3) else f"range({bounds})"
        self.add(f"for k in {header}:", depth)
        depth += 1
        if "half" in extra:
            self.add(f"if {self.one('k % 2 == 0', 'pm + k != 1', 'tl.load(d + k) > 0')}:", depth)
            depth += 1
        self.loads(depth)
        if "doubled" in extra:
            self.add("x = x * 2", depth)
        if "turn" in extra:
            self.add("y = y + (k - k).to(y.dtype)" if self.dtype not in ("fp8", "fp8e5") else "k2 = k", depth)
        if "sum" in extra:
            self.add("sums += tl.sum(x.to(tl.float32), 1)", depth)
        if "scale" in extra:
            self.add("acc = acc * 1.0", depth)
        if "if" in extra:
            self.add(f"if k % 2 == 1:\n    acc = acc + {self.one('1', 'pm')}", depth)
        precise = ", input_precision='tf32'" if self.dtype == "f32" else ""
        out = ", out_dtype=tl.int32" if self.dtype == "i8" else ""
        form = self.one("acc = tl.dot(x, y, acc{})", "acc += tl.dot(x, y{})", "acc = acc + tl.dot(x, y{})")
        self.add(form.format(precise + out), depth)
        if "again" in extra:
            self.loads(depth)
            self.add(form.format(precise + out), depth)
        if "second" in extra:
            self.add(f"acc2 = tl.dot(x, y, acc2{precise}{out})", depth)
        if "where" in extra:
            self.add("acc = tl.where(rm[:, None] >= 0, acc, 7)", depth)
        if "max" in extra:
            self.add("top = tl.maximum(top, tl.max(acc, 1))", depth)
        if "count" in extra:
            self.add("count, other = other, count + 1", depth)
        if "atomic" in extra:
            self.add("tl.atomic_add(e + 100, 1)", depth)
        if "each" in extra and self.grid != "split":
            self.add(EACH, depth)
        if "scalar" in extra:
            self.add(f"acc += tl.load(d + k).to({acc_type})", depth)
        depth -= "half" in extra
        if self.way == "carried":
            names = ("fa", "fb")
            self.add("\n".join(f"{name} += {step}" for name, step in zip(names, self.steps, strict=True)), depth)

    def loads(self, depth: int) -> None:
        if self.way in ("descriptors", "made"):
            da, db = ("a", "b") if self.way == "descriptors" else ("da", "db")
            transposed = f"{db}.load([on, k * BK]).T" if self.transposed["b"] else f"{db}.load([k * BK, on])"
            self.add(f"x = {da}.load([om, k * BK])\ny = {transposed}", depth)
            return
        names = ["pa", "pb"]
        if self.way == "carried":
            names = ["fa", "fb"]
        else:
            names = [f"{name} + k * {step}" for name, step in zip(names, self.steps, strict=True)]
        self.add(f"x = tl.load({names[0]}{self.mask('rm', 'M', True)}{self.wish()})", depth)
        self.add(f"y = tl.load({names[1]}{self.mask('rn', 'N', False)}{self.wish()})", depth)

    def wish(self) -> str:
        """About caches: ptxas makes other instructions of it."""
        evict, cache = self.one("evict_first", "evict_last"), self.one("", "", ", cache_modifier='.cg'")
        return f", eviction_policy='{evict}'{cache}" if self.chance(0.12) else ""

    def end(self) -> None:
        if "sum" in self.extra:
            self.add("acc += sums[:, None]")
        if "max" in self.extra:
            self.add("acc += top[:, None]")
        if "count" in self.extra:
            self.add("acc += count + other * 2")
        if "second" in self.extra:
            self.add("acc += acc2")
        if self.chance(0.07):
            self.add("acc += tl.num_programs(0) % 5")
        if self.chance(0.07):
            self.add("acc += tl.load(d + on + tl.arange(0, BN), mask=rn < N, other=0)[None, :].to(acc.dtype)")
        if self.chance(0.05):
            self.add("acc += tl.program_id(2) + tl.program_id(1) % 2")
        self.add("mask = (rm[:, None] < M) & (rn[None, :] < N)")
        few = [name for name in (*STEPS, *STORES) if self.other != "float('nan')" or name not in OF_NUMBERS]
        for name in few:
            if name in STEPS and self.chance(0.03):
                self.add(STEPS[name])
        if self.grid == "split":
            self.add(ADDED.format("acc.to(tl.float32)"))
            self.add("if part == 0:")
            self.base += 1
        stores = [name for name in few if name in STORES and not ("each" in self.extra and name in ELSEWHERE)]
        if self.chance(0.25) and self.grid != "split":
            self.add(STORES[self.one(*stores)].format("acc.to(tl.float32)"))
        self.store()
        self.base -= self.grid == "split"
        if self.chance(0.1):
            self.add("tl.store(e + 200 + pm * 7 % 50, pm * 7 % 50)")

    def store(self) -> None:
        """The result goes to `c`."""
        if self.stores:
            made = "tl.make_tensor_descriptor(c, [M, N], [scm, 1], [BM, BN])"
            self.add("dc = c" if self.way == "descriptors" else f"dc = {made}")
            if self.chance(0.1):
                self.add("acc += dc.load([om, on]).to(acc.dtype)")
            self.add("dc.store([om, on], acc.to(dc.dtype))")
            return
        index = (
            "c + (rm[:, None] * scm + rn[None, :] * scn)" if self.chance(0.5) else "c + rm[:, None] * scm + rn[None, :]"
        )
        if self.chance(0.07) and not self.in_place:
            self.add(f"acc += tl.load({index}, mask=mask, other=0).to(acc.dtype)")
        if self.chance(0.04) and not self.in_place:
            self.add(f"tl.store({index}, 1, mask=mask)")
        if self.chance(0.06) and not self.in_place and self.dtype in ("f16", "f32"):
            self.add(f"tl.atomic_add({index}, acc.to(c.dtype.element_ty), mask=mask)")
        else:
            self.add(f"tl.store({index}, acc.to(c.dtype.element_ty), mask=mask{self.wish()})")

    def launch(self, case: Case, first: bool) -> Launch:
        bm, bn, bk = self.tile
        most = 3 if not self.large else self.one(4, 4, 40, 200)
        tiles_m = self.random.randint(1, min(most, 24))
        tiles_n = max(1, most // tiles_m)
        if self.in_place:
            tiles_n = 1
        exact = (first or self.large_one) and self.chance(0.5)
        m, n = tiles_m * bm, tiles_n * bn
        most = 5 if self.large else 2
        k = self.random.choice(
            [bk * self.random.randint(1, most), bk * most + 16, bk + 8, bk + 1, bk * 2 - 3, 16, 1, 0]
        )
        if exact:
            k = bk * self.random.randint(2, most + 1)
        else:
            m -= self.one(0, 0, 8, 16, 1, bm // 2)
            n -= self.one(0, 0, 8, 16, 1, bn // 2)
        m, n = max(m, 1), max(n, 1)
        if self.rows == "none" or self.inner == "none":
            k = -(-k // bk) * bk if self.way in ("pointers", "carried") else max(k, 1)
        if self.way in ("descriptors", "made"):
            k = max(k, 1)
        layouts = {
            "a": self.layout(m, k, self.transposed["a"], "a", exact),
            "b": self.layout(k, n, self.transposed["b"], "b", exact),
        }
        layouts["c"] = layouts["a"] if case.alias == "c" else Layout(0, n + self.one(0, 0, 3, 8), 1)
        if self.stores:
            layouts["c"] = Layout(0, -(-n // 8) * 8 + self.one(0, 8), 1)
        if case.alias == "c" and (layouts["a"].column != 1 or layouts["a"].row < max(n, k)):
            layouts["a"] = layouts["c"] = Layout(0, max(n, k) + 8, 1)
        return Launch(m, n, k, 1, layouts)

    def layout(self, rows: int, columns: int, transposed: bool, name: str, exact: bool) -> Layout:
        """A layout that the kernel can read: a stride that is not an argument is 1."""
        if transposed:
            found = self.layout(columns, rows, False, name, exact)
            return Layout(found.offset, found.column, found.row)
        size = SIZES[self.dtype]
        align = 16 // size
        if self.way in ("descriptors", "made"):
            return Layout(0, -(-columns // align) * align + self.one(0, 0, align), 1)
        row, column, offset = max(columns, 1), 1, 0
        if exact:
            return Layout(0, -(-row // align) * align, 1)
        kind = self.one(
            "plain",
            "plain",
            "padded",
            "odd",
            "offset",
            "aligned offset",
            "overlap",
            "zero",
            "negative",
            "wide",
            "backwards",
        )
        if kind == "padded":
            row = -(-row // align) * align + align
        elif kind == "odd":
            row += 3
        elif kind == "offset":
            offset = self.one(1, 3)
        elif kind == "aligned offset":
            row, offset = -(-row // align) * align, align
        elif kind == "overlap":
            row = align * max(1, row // align // 2)
        elif kind == "zero":
            row = 0
        elif kind == "negative":
            row, offset = -(-(-row // align) * align), -1
        elif kind == "wide" and not self.unit[name]:
            column, row = 2, 2 * row
        elif kind == "backwards" and not self.unit[name]:
            column, row = -1, self.one(row, -row)
        return Layout(offset, row, column)
