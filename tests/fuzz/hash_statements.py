"""Integers that overflow on purpose, as hash functions and counters of random numbers do, where addresses, masks and
divisors are made of them.

    x1 = (pid * 1540483477) * 16 + tl.arange(0, 64)
    x2 = (x1 ^ (x1 >> 15)) * 747796405
    r3 = ((x2 % 48) + 48) % 48
    v4 = tl.load(in_i32_0 + r3, mask=x2 < n, other=x1)

All of it is exact, on every device: a product that does not fit loses its upper bits, and nothing else.
"""

from math import prod
from random import Random

from tests.fuzz.expressions import Shape
from tests.fuzz.kernels import ELEMENTS
from tests.fuzz.rules import BOOL, INT8, INT32, INT64, UINT32, UINT64, DType
from tests.fuzz.statements import Statements

FACTORS = (3, 5, 9, 16, 33, 64, 128, 4096, 65536, 65599, 1 << 20, 1 << 24, 40503, 1664525, 16777619)
HASHES = (0x1B873593, 0x27D4EB2D, 747796405, 1540483477, 0x9E3779B1, 0xCC9E2D51, 2654435761, -1640531527)
WIDE = (0x9E3779B97F4A7C15 - (1 << 64), 6364136223846793005, 4294967311, 1 << 33)
ADDENDS = (1, -1, 15, 16, 61, 1013904223, 0x7FFFFFF0, 0x7FFFFF00, -0x7FFFFFF0, 0xE6546B64)
STARTS = (
    *("0", "pid * 64", "pid * 128 + n", "n", "m", "n * 16", "m * 16", "pid * n", "n * n", "n * m", "big", "big * 16",
      "n << 4", "pid << 28"),
    *("pid * 1540483477 * 16", "n * 747796405", "(n * 40503) << 4", "(pid + 1) * 0x7FFFFFC0", "(pid + 7) * 268435456",
      "2147483600", "2147483632"),
    *("(pid.to(tl.int64) + 3) * 1073741824", "(n ^ (n << 13)) * 16", "((pid + 5) * 9 ^ 61) * 0x27D4EB2D", "-2147483648",
      "-m", "n - m"),
    *("(pid + 2) * 0x27D4EB2D * 16", "(pid + 9) << 27", "((pid + 3) ^ ((pid + 3) << 30)) * 16",
      "(pid.to(tl.int64) * 4096 + 0xFFFFFF40).to(tl.int32)"),
    *("(pid + 1) * 65536 * 32768 + 64", "(pid + 3) * 268435456"),
)  # fmt: skip
STRIDES = (2, 1540483477, 1 << 26, 1 << 28, (1 << 29) + 1, 1 << 30, "n", "(m | 1)", "(n * 40503)")
DIVISORS = (7, 16, 32, 48, 64, 100, 128, 1000, 1024)
NUMBERS = {
    "n": (37, 16, 48, 1 << 20, (1 << 31) - 16, (1 << 31) - 5, 1 << 30),
    "m": (6, -16, 64, -(1 << 31), (1 << 31) - 64, -(1 << 30)),
    "big": (11, 3000, 1 << 31, (1 << 40) + 16, (1 << 63) - 32, -(1 << 33)),
    "flag": (True, False),
}
KINDS = (INT32, INT32, INT32, UINT32, INT64, UINT64)


def literal(number: int, kind: DType) -> str:
    """A number as `kind` has it."""
    rest = number % (1 << kind.bits)
    return str(rest - (1 << kind.bits) if kind.signed and rest >> (kind.bits - 1) else rest)


class HashStatements(Statements):
    """Statements about a few tiles of integers of one shape."""

    def __init__(self, seed: int, capability: int, odd: bool = False) -> None:
        super().__init__(seed, capability, odd=odd)
        self.tiles: list[tuple[str, DType]] = []
        self.form: Shape = ()
        self.more = Random(-seed)  # seeds that are known keep their kernels, and have more in them
        self.most = Random(~seed << 1)

    def statement(self, budget: int) -> None:
        if not self.tiles:
            self.form = self.shape(self.random.choice((1, 1, 2)), 512)
        if not self.tiles or self.random.random() < 0.2:
            self.begin()
        for _ in range(self.random.randint(0, 3)):
            self.mix()
        if budget > 0 and self.random.random() < 0.2:
            self.rounds()
        self.use()
        if self.more.random() < 0.3:
            self.guarded()
        if self.more.random() < 0.5:
            self.combined()
        if self.most.random() < 0.4:
            self.narrow()

    def begin(self) -> None:
        """A tile of neighbours somewhere."""
        x, i = self.fresh("x"), self.fresh("o")
        self.line(f"{i} = tl.broadcast_to({self.offsets(self.form)}, {list(self.form)})")
        kind = self.random.choice(KINDS)
        stride = self.random.choice(("", "", "", "", *(f" * {number}" for number in STRIDES)))
        self.line(f"{x} = (({self.random.choice(STARTS)}) + {i}{stride}).to(tl.{kind.tl})")
        self.tiles.append((x, kind))

    def mixed(self, x: str, kind: DType) -> str:
        """Another number of `x`."""
        random, shift = self.random, self.random.randrange(1, 31)
        y = random.choice([name for name, other in self.tiles if other is kind])
        ways = [
            f"{x} * {random.choice(FACTORS)}",
            f"{x} * {literal(random.choice(HASHES), kind)}",
            f"{x} + {literal(random.choice(ADDENDS), kind)}",
            f"{x} ^ ({x} {random.choice(('<<', '>>'))} {shift})",
            f"{x} {random.choice(('<<', '>>'))} {shift}",
            f"{x} & {random.choice((15, 255, 4095, 0x7FFFFFFF))}",
            f"{x} | {random.choice((1, 16, 0x70000000))}",
            f"{x} // {random.choice(DIVISORS)}",
            f"{x} // {random.choice(DIVISORS)} * 1000 + {x} % {random.choice(DIVISORS)}",
            f"{x} % {random.choice(DIVISORS)}",
            f"({x} << 13) | ({x} >> 19)",
            f"{x} + {self.offsets(self.form)}",
            f"{x} * 16 + {self.offsets(self.form)}",
            f"{x} {random.choice('+-*^')} {y}",
            f"{x} {random.choice('+-*')} {random.choice(('n', 'm', 'pid'))}",
            f"{x} // ((n & 63) + 1).to(tl.{kind.tl})",
            f"{x} % (n | 16).to(tl.{kind.tl})",
            f"tl.{random.choice(('minimum', 'maximum'))}({x}, {y})",
            f"tl.where({y} < {random.choice((0, 64, 0x7FFFFFF0))}, {x}, {y})",
        ]
        if kind.bits == 64:
            ways += [
                f"{x} * {literal(random.choice(WIDE), kind)}",
                f"{x} >> 33",
                f"{x}.to(tl.int32)",
                f"{x}.to(tl.uint32)",
            ]
        else:
            ways += [f"tl.umulhi({x}.to(tl.uint32), 0x9E3779B1)", f"(({x}.to(tl.int64) * 747796405) >> 16)"]
        return random.choice(ways)

    def mix(self) -> None:
        x, kind = self.random.choice(self.tiles[-4:])
        made = self.random.choice(KINDS) if self.random.random() < 0.3 else kind
        name = self.fresh("x")
        self.line(f"{name} = ({self.mixed(x, kind)}).to(tl.{made.tl})")
        self.tiles.append((name, made))

    def rounds(self) -> None:
        """A loop that goes on from what it had."""
        (x, kind), name = self.random.choice(self.tiles[-4:]), self.fresh("x")
        self.line(f"{name} = {x}")
        self.tiles.append((name, kind))
        with self.block(f"for {self.fresh('i')} in range({self.random.choice(('3', 'n & 7', 'pid + 1'))}):"):
            for _ in range(self.random.randint(1, 2)):
                self.line(f"{name} = ({self.mixed(name, kind)}).to(tl.{kind.tl})")

    def guarded(self) -> None:
        """Divisors that may be 0, tested before or afterwards."""
        (x, kind), d, v = self.more.choice(self.tiles[-4:]), self.fresh("d"), self.fresh()
        divisors = ("n & 3", "pid", "m & 15", f"{x} & 3", f"({x} >> 3) & 1", "n - n", f"({x} & 1) * 16")
        self.line(f"{d} = ({self.more.choice(divisors)}).to(tl.{kind.tl})")
        requested = self.more.choice((f"{d} == 0", f"{d} < 1", f"({d} == 0) | ({x} == 5)"))
        symbol, number = self.more.choice(("//", "%")), self.more.randrange(99)
        if self.more.random() < 0.5:
            self.line(f"{v} = {x} {symbol} {d}")
            self.line(f"{v} = tl.where({requested}, {number}, {v}).to(tl.{kind.tl})")
        else:
            self.line(f"{v} = {x}")
            with self.block(
                f"for {self.fresh('i')} in range(tl.max(({d} + {x} * 0).to(tl.int32).reshape([{prod(self.form)}]), 0)):"
            ):
                self.line(f"{v} += tl.where({requested}, 3, {x} {symbol} {d}).to(tl.{kind.tl})")
        self.pool.append(self.define(v, kind, self.form))
        self.store(self.pool[-1])

    def combined(self) -> None:
        """Numbers of 32 and 64 bits of all that the kernel is given, of which assemblers make fewer instructions."""
        kind, name = self.more.choice((INT32, INT64)), self.fresh()
        self.line(f"{name} = tl.broadcast_to({self.made_of(kind, self.more.randint(2, 5))}, {list(self.form)})")
        self.pool.append(self.define(name, kind, self.form))
        self.store(self.pool[-1])

    def narrow(self) -> None:
        """Numbers of 8 and 16 bits near the ends of their type, what they wrap to, and what that is in more bits."""
        most, name = self.most, self.fresh()
        bits, sign = most.choice((8, 16, 16)), most.choice(("", "u"))
        kind, end = f"tl.{sign}int{bits}", most.choice((-1 << bits - 1, 0, 1 << bits - 1))
        a = f"(({most.choice(self.tiles[-4:])[0]} & 3).to(tl.int32) + {end - 2}).to({kind})"
        ways = [
            "(-{0})",
            "tl.abs({0})",
            "(~{0})",
            "({0} * {1})",
            "({0} + {1})",
            "({0} << 1)",
            "({0} >> 1)",
            "tl.minimum({0}, {1})",
        ]
        made = a
        for _ in range(most.randint(1, 3)):
            made = f"{most.choice(ways[2:] if sign else ways).format(made, a)}.to({kind})"
        ends = [
            "{0}.to(tl.int64)",
            "{0}.to(tl.int32).to(tl.int64)",
            "({0} < {1}).to(tl.int64)",
            "({0} >> 2).to(tl.int64)",
            "{0}.to(tl.float32).to(tl.int64)",
        ]
        self.line(f"{name} = tl.broadcast_to({most.choice(ends).format(made, a)}, {list(self.form)})")
        self.pool.append(self.define(name, INT64, self.form))
        self.store(self.pool[-1])

    def made_of(self, kind: DType, depth: int) -> str:
        more, other = self.more, INT64 if kind is INT32 else INT32
        if depth == 0:
            x = more.choice(self.tiles[-4:])[0]
            return f"({more.choice(('n', 'm', 'pid', 'n', 'm', 'big', x, x))}).to(tl.{kind.tl})"
        a = self.made_of(kind, depth - 1)
        b = self.made_of(kind, more.randrange(depth))
        k = more.choice((0, 1, 3, 16, 31, 5, 255, 65535, 0x7FFFFFFF))
        ways = (
            *(f"(-{a})", f"(~{a})", f"tl.minimum({a}, {b})", f"tl.maximum({a}, {b})", f"tl.abs({a})", f"({a} + {k})"),
            *(
                f"({a} - {b})",
                f"({b} - {a})",
                f"({a} + {b})",
                f"({a} * {b})",
                f"({a} ^ {b})",
                f"({a} & {k})",
                f"({a} | {b})",
            ),
            *(
                f"({a} >> {k % 31})",
                f"({a} << {k % 31})",
                f"tl.where({a} < {b}, {a}, {b} + {k})",
                f"tl.minimum({a}, {k})",
            ),
            *(
                f"{a}.to(tl.{more.choice(('int8', 'uint8', 'int16', 'uint16', 'uint32'))}).to(tl.{kind.tl})",
                f"(0 - {a})",
            ),
            f"tl.umulhi({a}.to(tl.uint32), {b}.to(tl.uint32)).to(tl.{kind.tl})",
            f"tl.umulhi({a}.to(tl.uint64), {b}.to(tl.uint64)).to(tl.{kind.tl})",
            *(
                f"{self.made_of(other, depth - 1)}.to(tl.{kind.tl})",
                f"({a} == {b}).to(tl.{kind.tl})",
                f"({a} // {k % 65536 + 1})",
            ),
            f"({a}.to(tl.uint32) // {k % 65536 + 1}).to(tl.{kind.tl})",
        )
        return more.choice(ways)

    def index(self, x: str, kind: DType) -> str:
        """An index into an array, of any number."""
        d = self.random.choice(DIVISORS)
        ways = [f"({x} & {self.random.choice((63, 1023))})", f"((({x} % {d}) + {d}) % {d})"]
        ways += [f"((({x} // {d}) & 7) * 128 + ((({x} % {d}) + {d}) % {d}))", f"((({x} * 16) & 4095) + ({x} & 15))"]
        ways += [
            f"({x}.to(tl.uint32) % {d}).to(tl.int32)",
            f"(((({x} % (n | 16).to(tl.{kind.tl})) & 255) * 16) + ({x} & 15))",
        ]
        if not kind.signed:
            ways += [f"({x} % {d})", f"({x} % {d} * 8)"]
        return self.random.choice(ways)

    def test(self, x: str, kind: DType) -> str:
        bound = self.random.choice(("n", "m", "0", "64", "2147483632", literal(-2147483600, kind)))
        return f"({x} {self.random.choice(('<', '<=', '>', '>=', '!='))} {bound})"

    def use(self) -> None:
        (x, kind), (y, other) = (self.random.choice(self.tiles[-4:]) for _ in range(2))
        dtype = self.random.choice((INT8, INT32, INT64))
        source, name = self.pointer(dtype, "in"), self.fresh()
        way = self.random.choice((0, 1, 2, 3, 3, 3, 4, 5, 6))
        if way < 2:
            self.line(f"{name} = tl.load({source} + {self.index(x, kind)})")
        elif way == 2:
            rest = f"mask={self.test(y, other)}, other={self.random.randrange(9)}"
            self.line(f"{name} = tl.load({source} + {self.index(x, kind)}, {rest})")
        elif way == 3:
            inside = f"({x} >= 0) & ({x} < {ELEMENTS})"
            self.line(f"{name} = tl.load({source} + {x}, mask={inside}, other=-3)")
        elif way == 4:
            target = self.pointer(INT32, "io")
            self.line(f"tl.atomic_add({target} + {self.index(x, kind)}, 1, mask={self.test(y, other)})")
            return
        elif way == 5:
            self.line(f"{name} = {self.test(x, kind)} & {self.test(y, other)}")
            dtype = BOOL
        else:
            name, dtype = x, kind
        self.pool.append(self.define(name, dtype, self.form))
        self.store(self.pool[-1])
