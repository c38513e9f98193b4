"""Tiles with strides of any sign: reversed, transposed, broadcast, overlapping, with gaps, with masks at every edge.

    o1 = (tl.arange(0, 16)[:, None] * -33 + tl.arange(0, 32)[None, :] * m)
    v2 = tl.load(in_i8_0 + 4096 + o1, mask=(i < 13) & (j >= 3), other=7)
    tl.store(io_i8_0 + 2048 + pid * 4096 + i * 40 - j, v2, mask=j < n)

Where a tile is stored its elements are apart, and so are the programs. All of it is exact, on every device.
"""

from tests.fuzz.expressions import Shape, Value, unknown
from tests.fuzz.rules import BF16, FP16, FP32, FP64, INT8, INT16, INT32, INT64, UINT8, UINT32, DType
from tests.fuzz.statements import NESTED, Statements

KINDS = (INT8, UINT8, INT16, INT32, INT32, INT64, FP16, BF16, FP32, FP64)
MIDDLE, FAR, HALF = (
    4096,
    4000,
    2048,
)  # the middle of every array, what may be reached from there, what a program may write around its own
NUMBERS = {
    "n": (37, 16, 5, 1, 64, -16),
    "m": (-1, 1, -16, 16, -3, 5, 0, 32, -32),
    "big": (11, -1, -16, 48, 1, 0),
    "flag": (True, False),
}
OWN = (
    ("copied", 8),
    ("walked", 4),
    ("stepped", 3),
    ("reversed_block", 3),
    ("added", 4),
    ("hit", 3),
    ("compute", 2),
    ("scan", 1),
    ("reduction", 1),
    ("permuted", 1),
)


class StrideStatements(Statements):
    """Mostly loads and stores of tiles whose elements are somewhere."""

    def __init__(self, seed: int, capability: int, odd: bool = False) -> None:
        super().__init__(seed, capability, odd=odd)
        self.straight = self.uneven(dict(OWN))
        self.nested = self.uneven({name: 1 for name, _ in NESTED} | {"copied_in_turn": 6, "summed_rows": 4})

    def strides(self, shape: Shape) -> tuple[list[str], int]:
        """Of a tile that is read, and how far it may reach: constants, or what the kernel is given."""
        while True:
            found, reach = [], 0
            for size in shape:
                number = self.random.choice((-1, 1, -1, 1, -2, 3, 0, 16, -16, -33, 64, -64, -shape[-1], shape[-1]))
                text, most = f"{number}", abs(number)
                if self.random.random() < 0.4:
                    text, most = self.random.choice((("m", 32), ("-m", 32), ("n", 64), ("(m * 2)", 64), ("big", 48)))
                found.append(text)
                reach += (size - 1) * most
            if reach < FAR:
                return found, reach

    def apart(self, shape: Shape) -> list[str]:
        """Strides of a tile that is written: no two elements at one address."""
        while True:
            found, stride = [""] * len(shape), 1
            for axis in self.random.sample(range(len(shape)), len(shape)):
                stride *= self.random.choice((1, 1, 1, 2)) if stride > 1 or len(shape) == 1 else 1
                found[axis] = f"{self.random.choice(('', '-'))}{stride}"
                stride = stride * shape[axis] + self.random.choice((0, 0, 1, 8))
            if stride < HALF:
                return found

    def indices(self, shape: Shape) -> list[str]:
        """One name for each axis; perhaps counted from the end."""
        names = []
        for axis, size in enumerate(shape):
            name, position = self.fresh("x"), f"tl.arange(0, {size})"
            if self.random.random() < 0.2:
                position = self.random.choice(
                    (
                        f"({size - 1} - {position})",
                        f"(-{position} + {size - 1})",
                        f"({position} ^ {size - 1 if size & (size - 1) == 0 else 0})",
                    )
                )
            if len(shape) > 1:
                position += "[" + ", ".join(":" if other == axis else "None" for other in range(len(shape))) + "]"
            self.line(f"{name} = {position}")
            names.append(name)
        return names

    def offset(self, names: list[str], strides: list[str]) -> str:
        parts = [name if stride == "1" else f"{name} * {stride}" for name, stride in zip(names, strides, strict=True)]
        self.random.shuffle(parts)
        return " + ".join(parts)

    def edges(self, names: list[str], shape: Shape) -> str:
        """A mask, or nothing."""
        tests = []
        for name, size in zip(names, shape, strict=True):
            near, far = self.random.randint(0, size), self.random.choice((size, size - 1, size // 2, 1, 0))
            ways = (
                f"({name} < {far})",
                f"({name} >= {near // 2})",
                f"({name} < n)",
                f"({name} > m)",
                f"({near} > {name})",
                f"(({name} >= {near // 3}) & ({name} < {far}))",
            )
            if self.random.random() < 0.6:
                tests.append(self.random.choice(ways))
        if self.random.random() < 0.1:
            tests.append(self.random.choice(("flag", "(n > 16)", "(pid == 0)")))
        return f"tl.broadcast_to({' & '.join(tests)}, {list(shape)})" if tests else ""

    def tile(self) -> tuple[Shape, DType]:
        rank = self.random.choice((None, None, None, None, None, None, 4, 5))
        return self.shape(rank, limit=512), self.random.choice(KINDS)

    def read_somewhere(self, shape: Shape, dtype: DType, more: str = "") -> tuple[str, list[str]]:
        """A load, and the names of its indices."""
        names, (strides, reach) = self.indices(shape), self.strides(shape)
        start = self.random.randint(-(FAR - reach) // 2, (FAR - reach) // 2) if self.random.random() < 0.5 else 0
        mask = self.edges(names, shape)
        other = f", other={self.random.randrange(3)}" if mask else ""
        address = f"{self.pointer(dtype, 'in')} + ({MIDDLE + start} + {self.offset(names, strides)}{more})"
        if self.random.random() < 0.5:
            where = self.fresh("p")
            self.line(f"{where} = {address}")
            address = where
        whole = f"tl.broadcast_to({address}, {list(shape)})"
        return f"tl.load({whole}{f', mask={mask}{other}' if mask else ''})", names

    def write_somewhere(self, value: str, shape: Shape, dtype: DType, names: list[str] | None = None) -> None:
        names = self.indices(shape) if names is None else names
        mask = self.edges(names, shape)
        address = f"{self.pointer(dtype, 'io')} + ({HALF} + pid * {2 * HALF} + {self.offset(names, self.apart(shape))})"
        self.line(f"tl.store({address}, {value}{f', mask={mask}' if mask else ''})")

    def copied(self) -> None:
        """Copy a tile, and perhaps copy it back."""
        shape, dtype = self.tile()
        loaded, names = self.read_somewhere(shape, dtype)
        value = self.assign(Value(loaded, dtype, shape, unknown))
        if self.random.random() < 0.7:
            self.write_somewhere(value.text, shape, dtype, self.random.choice((names, None)))

    def copied_in_turn(self, budget: int) -> None:
        """A loop whose tiles go forwards or backwards."""
        shape, dtype = self.tile()
        step = self.random.choice(("m", "-m", "-1", "16", "-16", "(n & 15)"))
        loop, total = self.fresh("i"), self.assign(self.typed(shape, dtype, 1)).text
        bounds = self.random.choice(("3", "n & 3", "2, -1, -1", "m & 3", "0, 4, 2"))
        with self.block(f"for {loop} in {self.random.choice(('range', 'tl.range'))}({bounds}):"):
            loaded, names = self.read_somewhere(shape, dtype, f" + {loop} * {step}")
            self.line(f"{total} = ({total} + {loaded}).to(tl.{dtype.tl})" if dtype.is_int else f"{total} = {loaded}")
            if self.random.random() < 0.4:
                self.write_somewhere(total, shape, dtype, names)
            if self.random.random() < 0.3:
                self.statement(budget)

    def walked(self) -> None:
        """A pointer that is carried."""
        shape, dtype = self.tile()
        names, strides = self.indices(shape), self.apart(shape)
        at, last = self.fresh("p"), self.fresh()
        self.line(f"{at} = {self.pointer(dtype, 'in')} + {MIDDLE} + ({self.offset(names, strides)})")
        mask = self.edges(names, shape)
        masked = f", mask={mask}, other=1" if mask else ""
        self.line(f"{last} = tl.load({at}{masked})")
        with self.block(
            f"for {self.fresh('i')} in tl.range({self.random.choice(('3', 'n & 3', '0'))}, "
            f"num_stages={self.random.choice((1, 2, 3))}):"
        ):
            self.line(f"{at} += {self.random.choice(('m', '-m', '-1', '-16', '16', 'm * 3'))}")
            if self.random.random() < 0.5:
                self.line(f"{last} = tl.load({at}{masked})")
            else:
                self.line(f"{last} = tl.where({names[0]} > 2, tl.load({at}{masked}), {last})")
        self.define(last, dtype, shape)

    def stepped(self) -> None:
        """Neighbours along an axis, each beside the one before it: one load serves several."""
        shape, dtype = self.tile()
        names, strides = self.indices(shape), self.apart(shape)
        source, made = self.pointer(dtype, "in"), []
        for _ in range(self.random.randint(2, 4)):
            name, shift = self.fresh(), self.random.choice((-1, 1, 0, 16, -16, 2))
            mask = self.edges(names, shape) if self.random.random() < 0.3 else ""
            self.line(
                f"{name} = tl.load({source} + ({MIDDLE + shift} + "
                f"{self.offset(names, strides)}){f', mask={mask}, other=2' if mask else ''})"
            )
            made.append(name)
        text = " ^ ".join(made) if not dtype.is_float else f"tl.where({made[0]} > {made[1]}, {made[0]}, {made[-1]})"
        value = self.assign(Value(text, dtype, shape, unknown))
        self.write_somewhere(value.text, shape, dtype)

    def reversed_block(self) -> None:
        """A block pointer with strides of any sign."""
        dtype, shape = self.random.choice(KINDS), (self.size(5), self.size(6))
        strides = self.random.choice(("(-64, 1)", "(64, -1)", "(-64, -1)", "(1, -32)", "(m, 1)", "(40, m)", "(0, -1)"))
        order, block = self.random.choice(("(1, 0)", "(0, 1)")), self.fresh("b")
        position = self.random.choice(("0, 0", "pid, m & 15", "3, -2", "-1, n & 7"))
        self.line(
            f"{block} = tl.make_block_ptr({self.pointer(dtype, 'in')} + {MIDDLE}, (20, 30), {strides}, ({position}), "
            f"{shape}, {order})"
        )
        if self.random.random() < 0.5:
            self.line(f"{block} = tl.advance({block}, {self.random.choice(('(1, -1)', '(-2, 4)', '(m & 3, 0)'))})")
        value = Value(f"tl.load({block}, boundary_check=(0, 1), padding_option='zero')", dtype, shape, unknown)
        self.write_somewhere(self.assign(value).text, shape, dtype)

    def added(self) -> None:
        """Atomics where elements are apart, or at a few shared addresses; the old values are unused, or only a tile
        without shared addresses uses them."""
        shape, dtype = self.shape(limit=1024), self.random.choice((INT32, INT32, UINT32, INT64))
        names, value = self.indices(shape), self.typed(shape, dtype, 1).text
        strides = self.apart(shape)
        if meets := self.random.random() < 0.6:
            strides = [self.random.choice(("0", "1", "-1", "1", "m" if size <= 32 else "2")) for size in shape]
        offset = f"({self.offset(names, strides)})"
        if meets and self.random.random() < 0.6:
            offset = (
                f"({offset} "
                f"{self.random.choice(('// 4', '>> 5', '// 64', '& -16', '& 3', '// 3', '% 7', '// 32 * 8'))})"
            )
        mask = self.edges(names, shape)
        position = f"{self.pointer(dtype, 'io')} + ({HALF} + pid * {2 * HALF} + {offset})"
        kind = self.random.choice(("add", "add", "max", "min", "xor", "or", "and"))
        call = f"tl.atomic_{kind}(tl.broadcast_to({position}, {list(shape)}), {value}{f', mask={mask}' if mask else ''}"
        call += self.random.choice((")", ")", ", sem='relaxed')"))
        if not meets and self.random.random() < 0.4:
            self.assign(Value(call, dtype, shape, unknown))
        else:
            self.line(call)

    def hit(self) -> None:
        """Atomics where data says, many of which shared memory may collect."""
        dtype, size = self.random.choice((INT32, UINT32)), self.random.choice((256, 512, 1024, 2048))
        data, position = self.fresh(), self.fresh()
        self.line(f"{data} = tl.load({self.pointer(INT32, 'in')} + pid * 2048 + tl.arange(0, {size}))")
        self.line(
            f"{position} = "
            f"{self.random.choice((f'({data} & 31)', f'({data} & 1023)', f'({data} & 2047) - 100', f'({data} % 100)'))}"
        )
        value = self.random.choice(("1", f"{data}", f"({data} >> 3)", "-1"))
        mask = self.random.choice(("", f", mask={data} > 9", ", mask=flag", f", mask=tl.arange(0, {size}) < n * 8"))
        kind = self.random.choice(("add", "add", "max", "min", "xor", "or", "and"))
        pointer = f"{self.pointer(dtype, 'io')} + ({HALF} + pid * {2 * HALF} + {position})"
        call = f"tl.atomic_{kind}({pointer}, tl.broadcast_to({value}, [{size}]).to(tl.{dtype.tl}){mask})"
        if self.random.random() < 0.3:
            with self.block(f"for {self.fresh('i')} in range({self.random.choice(('2', 'n & 3', 'm & 1'))}):"):
                self.line(call)
        else:
            self.line(call)

    def summed_rows(self, budget: int) -> None:
        """Reductions that a loop carries, of whole numbers that are exact in any order."""
        shape, dtype = self.shape(2, 1024), self.random.choice((FP32, FP32, INT32, FP16))
        axis, total, x = self.random.randrange(2), self.fresh(), self.fresh()
        left = (shape[1 - axis],)
        start = self.random.choice(("0", "3", "-5"))
        self.line(f"{total} = tl.full({list(left)}, {start}, tl.{dtype.tl})")
        index = self.fresh("i")
        way = self.random.choice(("max", "min") if dtype is FP16 else ("sum", "sum", "max", "min"))
        with self.block(f"for {index} in tl.range({self.random.choice(('3', 'n & 3', '0', 'm & 7'))}):"):
            loaded, names = self.read_somewhere(shape, INT8, f" + {index} * {self.random.choice(('m', '16', '-1'))}")
            self.line(f"{x} = ({loaded} & 15).to(tl.{dtype.tl})")
            if self.random.random() < 0.3:
                self.line(f"{x} = tl.where(tl.broadcast_to({names[0]} > m, {list(shape)}), {x}, 0)")
            row = f"tl.{way}({x}, {axis}).to(tl.{dtype.tl})"
            if way == "sum":
                if self.random.random() < 0.3:
                    self.line(f"{total} = {total} * {self.random.choice(('2', '-1', f'({index} & 1)'))}")
                self.line(f"{total} {self.random.choice(('+=', '+=', '-='))} {row}")
            else:
                self.line(f"{total} = tl.{way}imum({total}, {row})")
            if self.random.random() < 0.2:
                self.statement(budget)
        if dtype is FP16:
            self.line(f"{total} = {total}.to(tl.float32)")
        self.define(total, FP32 if dtype is FP16 else dtype, left)
