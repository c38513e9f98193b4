"""Loops as rare kernels have them: small tiles, masks, numbers and pointers that go around nested loops, branches and
`while`, with bounds at the ends of integers, negative or empty; and addresses made of quotients and rests of any
numbers.

    for i in tl.range(2147483640, 2147483647, 3):
        if (v4 & 3) == 1:
            v1, v2 = v2, v1
        while w6 < 2:
            v3 = v3 ^ (o5 < v4)
            v1 = tl.load(p7 + o5, mask=v3, other=v2)

All of it is exact, on every device.
"""

from math import prod

from tests.fuzz.expressions import Shape, Value, unknown
from tests.fuzz.kernels import CPU
from tests.fuzz.rules import BF16, BOOL, FP8E4NV, FP8E5, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT16, DType
from tests.fuzz.statements import NESTED, STRAIGHT, Statements

LEAST, MOST = -(2**31), 2**31 - 1
BOUNDS = (
    *(
        "0, n & 3",
        "m & 3, m & 7",
        "-3, 2",
        "0, 0",
        "5, 2",
        "0, 7, 3",
        "2, -5, -3",
        "n & 7, m & 3",
        "-2, 9, (n & 3) + 1",
    ),
    *("-(n & 3), m & 3", "m & 7, -(n & 3), -2", "n, n + 2", "pid, 3", "0, 2 - pid", "s, s + 2", "s & 3, -(s & 3), -1"),
    *(f"{MOST - 7}, {MOST}, 3", f"{LEAST}, {LEAST + 8}, 3", f"{LEAST + 8}, {LEAST}, -3", f"{MOST}, {MOST - 7}, -4"),
    *(f"{MOST - 1}, {MOST}", f"n + {MOST - 40}, {MOST}", f"{LEAST} + m, {LEAST} + n, n - 3", f"0, {MOST}, {MOST - 5}"),
)
WIDE_BOUNDS = (
    *(
        "0, big & 3",
        "big - 12, big - 9",
        "big * 1000000007, big * 1000000007 + 5, 2",
        "-big * 4294967296, 1, big * 4294967295",
    ),
    *("big * 4294967296, big * 4294967296 - 5, -2",),
)
HINTS = (
    "",
    "",
    "",
    ", num_stages=3",
    ", loop_unroll_factor=2",
    ", flatten=True",
    ", warp_specialize=True",
    ", disable_licm=True",
)
OWN = (("quotients", 6), ("compute_scalar", 2), ("read", 2), ("reduction", 1), ("scan", 1))
DIVISORS = (8, 16, 20, 33, 64, 100, 128)
MIDDLE = 4096  # the middle of every array


class LoopStatements(Statements):
    """Mostly loops, short and odd."""

    def __init__(self, seed: int, capability: int, odd: bool = False) -> None:
        super().__init__(seed, capability, odd=odd)
        few = {name: 1 for name, _ in STRAIGHT if self.random.random() < 0.1}
        self.straight = self.uneven(few | dict(OWN))
        self.nested = self.uneven({name: 1 for name, _ in NESTED} | {"around": 20})

    # What goes around

    def around(self, budget: int) -> None:
        """Values of every kind, and loops and branches that change them."""
        small = [INT8, UINT8, INT16, UINT16, FP16, BF16, FP8E5, BOOL, INT32, INT64, FP32]
        if self.capability == CPU or self.capability >= 89:
            small.append(FP8E4NV)
        dtype = self.random.choice(small)
        rank = self.random.choice((1, 1, 2))
        shape = self.shape(rank, 512)
        self.offset, self.own = self.fresh("o"), (dtype, shape)
        self.line(f"{self.offset} = tl.broadcast_to({self.offsets(shape)}, {list(shape)})")
        source = self.pointer(dtype, "in")
        self.tiles = [self.fresh() for _ in range(self.random.randint(2, 3))]
        for at, name in enumerate(self.tiles):
            self.line(f"{name} = {self.start(dtype, shape, f'{source} + {MIDDLE - 100 * at}')}")
        self.mask, self.total, self.at = self.fresh(), self.fresh(), self.fresh("p")
        self.line(f"{self.mask} = {self.offset} < {self.random.choice(('n', 'm * 16', '0', str(prod(shape))))}")
        self.line(f"{self.total} = {self.random.choice(('n', 'm - 9', 'n * m', 'pid * 5 - 3'))}")
        self.line(f"{self.at} = {source} + {MIDDLE}")
        self.body(1 if budget < 1 else 2)
        self.loop(1 if budget < 1 else 2)
        for name in self.tiles:
            if dtype in (FP8E5, FP8E4NV):  # which little can be done with
                self.line(f"{name} = {name}.to(tl.int8, bitcast=True)")
            self.define(name, INT8 if dtype in (FP8E5, FP8E4NV) else dtype, shape)
        self.define(self.mask, BOOL, shape)
        self.define(self.total, INT32, ())

    def start(self, dtype: DType, shape: Shape, address: str) -> str:
        """A tile that is loaded, computed or the same everywhere."""
        loaded = f"tl.load({address} + {self.offset})"
        if self.random.random() < 0.7 or (dtype.bits == 8 and dtype.is_float):
            return loaded
        if dtype is BOOL:
            return f"({loaded} ^ ({self.offset} % 3 == 1))"
        return (
            f"({self.offset} * 3 - {self.random.randrange(90)}).to(tl.{dtype.tl})"
            if self.random.random() < 0.6
            else f"tl.full({list(shape)}, {self.random.randrange(3)}, tl.{dtype.tl})"
        )

    def body(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            way = self.random.randrange(4) if depth else 0
            if way < 2:
                self.change_one()
            elif way == 2:
                self.fork(depth - 1)
            else:
                self.loop(depth - 1)

    def change_one(self) -> None:
        x, y = self.random.sample(self.tiles, 2)
        ways = self.new_tile(x, y), self.new_tile(x, y), self.new_mask(), self.new_number(x), self.moved()
        self.line(self.random.choice(ways))

    def new_tile(self, x: str, y: str) -> str:
        dtype, shape = self.own
        texts = [
            f"{x}, {y} = {y}, {x}",
            f"{x} = {y}",
            f"{x} = tl.where({self.mask}, {x}, {y})",
            f"{x} = tl.where({self.total} > 9, {x}, {y})",
        ]
        texts += [f"{x} = tl.load({self.at} + {self.offset}, mask={self.mask}, other={y})"]
        if dtype.bits != 8 or not dtype.is_float:
            texts += [f"{x} = {x} {s} {y}" for s in "&|^"] if not dtype.is_float else [f"{x} = -{y}"] * 2
            if dtype.is_int:
                texts += [f"{x} = {x} + {y}", f"{x} = {x} - {y}", f"{x} = ({y} + {self.total}).to(tl.{dtype.tl})"] * 2
                texts += [f"{x} = tl.cumsum({y}, 0).to(tl.{dtype.tl})", f"{x} = tl.flip({y}, {len(shape) - 1})"]
            if len(shape) == 2:
                texts += [f"{x} = tl.trans(tl.reshape({y}, {[shape[1], shape[0]]}))"] * 2
        return self.random.choice(texts)

    def new_mask(self) -> str:
        c, o, s = self.mask, self.offset, self.total
        k = self.random.choice(DIVISORS)
        tests = (
            f"{o} < {s}",
            f"{o} >= {s}",
            f"({o} + {s}) % {k} < {k // 2}",
            f"({o} - {s}) // {k} == 0",
            f"(({o} + {s}) & 31) < 20",
            f"({o} - {s}).to(tl.uint32) < 40",
            f"{o} + ({s} ^ {MOST}) < n",  # which wraps around within the tile
            f"({o} + ({s} ^ {LEAST})) >= m",
        )
        return self.random.choice(
            (
                f"{c} = ~{c}",
                f"{c} = {c} ^ ({self.random.choice(tests)})",
                f"{c} = {self.random.choice(tests)}",
                f"{c} = {c} & ({self.random.choice(tests)})",
            )
        )

    def new_number(self, x: str) -> str:
        s, (dtype, shape) = self.total, self.own
        texts = [
            f"{s} += 1",
            f"{s} = {s} * 3 - 7",
            f"{s} = ({s} + n) % 7",
            f"{s} = {s} // 3 - m",
            f"{s} = -{s}",
            f"{s} = apart({s}, n)",
            f"{s} += tl.sum({self.mask}.to(tl.int32).reshape([{prod(shape)}]), 0)",
        ]
        if not dtype.is_float:
            texts += [f"{s} += tl.max({x}.to(tl.int32).reshape([{prod(shape)}]), 0)"] * 2
        return self.random.choice(texts)

    def moved(self) -> str:
        return f"{self.at} += {self.random.choice(('1', '16', '-5', f'({self.total} & 15)', f'{self.total} % 9'))}"

    def fork(self, depth: int) -> None:
        s = self.total
        tests = (f"{s} > 3", f"({s} & 3) == 1", f"{s} % 3 == 2", "flag", "n > 40", "n < m", f"{s} < -{s}")
        with self.block(f"if {self.random.choice(tests)}:"):
            self.body(depth)
        if self.random.random() < 0.5:
            with self.block("else:"):
                self.body(depth)

    def loop(self, depth: int) -> None:
        if self.random.random() < 0.3:
            count = self.fresh("w")
            self.line(f"{count} = {self.random.choice(('0', 'm & 3', f'{self.total} & 3'))}")
            test = self.random.choice(
                (f"{count} < 3", f"({count} < 3) & ({self.total} > -50)", f"({self.total} < 99) and ({count} < 2)")
            )
            with self.block(f"while {test}:"):
                self.body(depth)
                self.line(f"{count} += 1")
            return
        index, is_wide = self.fresh("i"), self.random.random() < 0.2
        bounds = self.random.choice(WIDE_BOUNDS if is_wide else BOUNDS)
        if "s" in bounds:
            start = self.fresh("s")
            self.line(f"{start} = {self.total} & 1023")
            bounds = bounds.replace("s", start)
        hint = self.random.choice(HINTS)
        with self.block(f"for {index} in tl.range({bounds}{hint}):" if hint else f"for {index} in range({bounds}):"):
            self.body(depth)
            if self.random.random() < 0.7:
                self.line(f"{self.total} {self.random.choice('+-^')}= {index}{'.to(tl.int32)' if is_wide else ''}")

    # Addresses

    def quotients(self) -> None:
        """Loads, with masks, at what is left of a division, and at its result."""
        dtype = self.random.choice((INT8, INT16, INT32, INT64, FP32))
        shape = self.shape(self.random.choice((1, 1, 2)), 1024)
        x, q, r, d = self.fresh("x"), self.fresh("q"), self.fresh("r"), self.random.choice(DIVISORS)
        start = self.random.choice(
            ("0", "5", "-7", "n * 16", "-n * 3", "pid * 100", "m - 70", "big", "-big * 3", "n * m - 250")
            + ("m * 16", "m * 128 - 256", f"n + {MOST - 100}")
        )
        self.line(f"{x} = {start} + {self.offsets(shape)}")
        if self.random.random() < 0.3:
            self.line(f"{x} = {x}.to(tl.{self.random.choice(('int64', 'uint32', 'int32'))})")
        power = 1 << self.random.randrange(3, 8)
        ways = (
            (f"{x} // {d}", f"{x} % {d}"),
            (f"{x} >> {power.bit_length() - 1}", f"{x} & {power - 1}"),
            (f"{x} // {d}", f"{x} - {x} // {d} * {d}"),
            (f"({x} % {4 * d}) // {d}", f"{x} % {d}"),
        )
        first, second = self.random.choice(ways)
        self.line(f"{q} = {first}")
        self.line(f"{r} = {second}")
        address = self.random.choice(
            (
                f"{r} + {q} % 8 * {self.random.choice((d, 3 * d, 200))}",
                f"{r} * 8 + ({q} & 7)",
                f"{r}",
                f"{q} % 500 * 4",
                f"({q} & 3) * 128 + {r}",
            )
        )
        limits = ("n", "m", "0", "-1", str(d // 2), "n * 16")
        tests = [
            f"({name} {self.random.choice(('<', '>=', '<=', '>', '!='))} {self.random.choice(limits)})"
            for name in (x, q, r)
        ]
        mask = " & ".join(self.random.sample(tests, self.random.randint(1, 2)))
        mask = "" if self.random.random() < 0.4 else f", mask={mask}, other={self.random.randrange(3)}"
        self.assign(
            Value(f"tl.load({self.pointer(dtype, 'in')} + {MIDDLE} + ({address}){mask})", dtype, shape, unknown)
        )
        if self.random.random() < 0.5:
            self.assign(Value(f"({q} * 1000 + {r}).to(tl.int32)", INT32, shape, unknown))
