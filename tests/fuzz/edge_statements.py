"""Statements that meet on a few tiles of odd sizes: masks with other values, sorts, reductions, scans, slices and
products of the same tile; and numbers at their limits: division, shifts, narrow and unsigned integers, fp8, NaN.

    v1 = tl.load(in_u64_0 + o2, mask=o2 < 57, other=1)
    v3 = tl.sort(v1)
    v4 = tl.sum(v1, axis=1)
    v1[2:10] = v4[3]

Most statements of other generators take a tile of this pool too, so that one tile goes through several of them. What
the language leaves undefined (a divisor of 0, the least integer by -1, a shift by the width) is computed and replaced.
"""

from collections.abc import Sequence
from math import prod

from tests.fuzz.expressions import Shape, Value, clamped, unknown
from tests.fuzz.kernels import CPU
from tests.fuzz.python_statements import OWN as PYTHON
from tests.fuzz.python_statements import OWN_NESTED, PythonStatements
from tests.fuzz.rules import (
    BF16,
    BOOL,
    FLOATS,
    FP8E4NV,
    FP8E5,
    FP16,
    FP32,
    FP64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    extreme,
    summed,
)
from tests.fuzz.statements import NESTED, STRAIGHT

OWN = (
    *(("masked_tile", 8), ("sorted_values", 5), ("largest_values", 3), ("reduction", 8), ("scan", 4), ("divided", 4)),
    *(("shifted", 3), ("special_floats", 4), ("mixed_fp8", 3), ("odd_product", 3), ("edge_descriptor", 3)),
    *(("tuple_call", 3), ("counted_focus", 2), ("gathered", 2), ("chosen_by_mask", 3), ("own_atomic", 2)),
    *(("converted", 4), ("whole_focus", 10), ("ties", 3), ("kept", 4), ("slice_of", 2), ("with_part", 3),
      ("reshaped", 2)),
    *(("permuted", 2), ("flipped", 1), ("joined", 2), ("compute", 3), ("narrowed", 3), ("cancelled", 6)),
)  # fmt: skip
HELPERS = """
@jit
def swapped(pair):
    return pair[1], pair[0]


@jit
def spread(pair, more):
    low, (high, rest) = pair[0], (pair[1], more)
    return (low + high, rest), high


@jit
def summed_tuple(values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total = total + values[i]
    return total


@jit(noinline=True)
def pair_apart(pair, n):
    if n > 20:
        return pair[1], pair[0] + 1
    return pair[0], pair[1]


"""
KINDS = (*INTS, INT32, INT64, UINT32, UINT64, FP16, FP32, FP32, FP64, BOOL)
SIZES = (1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 11, 13, 15, 16, 17, 21, 31, 32, 33, 40, 64, 65, 100)
MOST = 640  # elements of a tile
LAST = 64  # elements of a row that is sorted


def limits(dtype: DType) -> tuple[int, int]:
    low = -(1 << dtype.bits - 1) if dtype.signed else 0
    return low, low + (1 << dtype.bits) - 1


class EdgeStatements(PythonStatements):
    """See the module docstring."""

    def __init__(self, seed: int, capability: int, odd: bool = True) -> None:
        super().__init__(seed, capability, odd=odd)
        self.focus: list[Value] = []
        few = {name: 1 for name, _ in STRAIGHT if self.random.random() < 0.15}
        few |= {name: 2 for name, _ in PYTHON if self.random.random() < 0.3}
        self.straight = self.uneven(few | dict(OWN))
        self.nested = self.uneven({name: 1 for name, _ in (*NESTED, *OWN_NESTED)})

    # The tiles that statements share

    def prologue(self) -> None:
        super().prologue()
        self.masked_tile()
        self.masked_tile()

    def share(self, value: Value) -> Value:
        """Return `value`, which later statements may use if it is a small tile."""
        if value.shape and prod(value.shape) <= MOST:
            self.focus.append(value)
        return value

    def scoped(self) -> list[Value]:
        """The shared tiles that are still in scope."""
        names = {value.text for value in self.pool}
        self.focus = [value for value in self.focus if value.text in names]
        return self.focus

    def block_value(self, rank: int = 0, minimum: int = 1) -> Value:
        found = [v for v in self.scoped() if len(v.shape) >= max(rank, 1) and prod(v.shape) >= minimum]
        if found and self.random.random() < 0.75:
            return self.random.choice(found[-4:])
        return super().block_value(rank, minimum)

    def orderable(self, limit: int, dtypes: Sequence[DType] = (*INTS, FP32)) -> Value:
        found = [v for v in self.scoped() if v.dtype in dtypes and v.shape[-1] <= LAST]
        if not found or self.random.random() < 0.2:
            return super().orderable(limit, dtypes)
        x = self.random.choice(found[-4:])
        return self.assign(clamped(x, -100.0, 100.0)) if x.dtype.is_float else x

    def tile_shape(self) -> Shape:
        while True:
            rank = self.random.choice((1, 2, 2, 2, 3))
            shape = tuple(self.random.choice(SIZES[: len(SIZES) if rank < 3 else 11]) for _ in range(rank))
            if prod(shape) <= MOST:
                return shape

    def masked_tile(self) -> None:
        """A load with a mask at an edge, and another value where it is false."""
        shape, dtype = self.tile_shape(), self.random.choice(KINDS)
        if self.focus and self.random.random() < 0.4:
            shape = self.random.choice(self.scoped() or [Value("", dtype, shape, unknown)]).shape
        offsets = self.fresh("o")
        self.line(f"{offsets} = {self.offsets(shape)}")
        source = INT8 if dtype.is_float and self.random.random() < 0.7 else dtype  # whose sums are exact
        address = f"{self.pointer(source, 'in')} + {self.random.randrange(64)} + pid * {prod(shape)} + {offsets}"
        text = f"tl.load({address})"
        if self.random.random() < 0.75:
            text = f"tl.load({address}, mask={self.edge(shape, offsets)}, other={self.other(source, shape)})"
        if source is not dtype:
            text = f"({text} & 15).to(tl.{dtype.tl})"
        elif dtype.is_int and self.random.random() < 0.4:
            text = f"({text} & {self.random.choice((1, 3, 7))})"
        self.share(self.assign(Value(text, dtype, shape, unknown)))

    def edge(self, shape: Shape, offsets: str) -> str:
        """A mask that is false for few, many, all or no elements."""
        size = prod(shape)
        numbers = (0, 1, size - 1, size, size // 2, max(size - 3, 0), self.random.randint(0, size))
        limit = self.random.choice((*map(str, numbers), "n", "m * 3", "n * 4"))
        ways = [f"{offsets} < {limit}", f"{offsets} >= {limit}", f"({offsets} % 3) != 1"]
        axis = self.random.randrange(len(shape))
        index, near = self.iota(shape, axis), self.random.randint(0, shape[axis])
        ways += [f"tl.broadcast_to({index} {s} {near}, {list(shape)})" for s in ("<", ">", "!=")]
        mask = self.boolean(shape, 1)
        ways += [mask.text] if mask.shape == shape else []
        return f"({self.random.choice(ways)})"

    def other(self, dtype: DType, shape: Shape) -> str:
        """The values of masked lanes: neutral elements of some operation, and others."""
        if self.random.random() < 0.15:
            return self.typed(shape, dtype, 1).text
        if dtype is BOOL:
            return self.random.choice(("0", "1"))
        if dtype.is_float:
            return self.random.choice(("0.0", "1.0", "-1.0", 'float("inf")', 'float("-inf")', "2.5"))
        low, high = limits(dtype)
        return str(self.random.choice((0, 1, 1, 2, max(low, -1), low, high)))

    def kept(self) -> None:
        """A shared tile goes to memory as it is now."""
        if self.scoped():
            self.store(self.random.choice(self.focus[-4:]))

    def whole_focus(self) -> None:
        """A sort and a reduction of one tile, which a target that pads tiles must keep apart."""
        x = self.orderable(LAST)
        y = self.assign(Value(f"tl.sort({x.text}, descending={self.random.random() < 0.5})", x.dtype, x.shape, unknown))
        names = ["sum", "max", "min"] + ([] if x.dtype.is_float else ["xor_sum", "reduce_or"])
        for axis in range(len(x.shape)):
            shape = tuple(size for position, size in enumerate(x.shape) if position != axis)
            for one in self.random.sample((x, y), self.random.choice((1, 1, 2))):
                name = self.random.choice(names)
                made = summed(x.dtype) if name == "sum" else extreme(x.dtype) if name in ("max", "min") else x.dtype
                self.store(self.assign(Value(f"tl.{name}({one.text}, axis={axis})", made, shape, unknown)))
        self.store(y)

    def ties(self) -> None:
        """The index of the first largest or smallest of equal elements."""
        x = self.orderable(LAST)
        axis = self.random.randrange(len(x.shape))
        shape = tuple(size for position, size in enumerate(x.shape) if position != axis)
        few = self.assign(
            Value(f"({x.text} & 1)" if x.dtype.is_int else f"tl.floor({x.text} * 0.02)", x.dtype, x.shape, unknown)
        )
        name = self.random.choice(("max", "min"))
        value, index = self.fresh(), self.fresh()
        self.line(f"{value}, {index} = tl.{name}({few.text}, {axis}, return_indices=True)")
        self.define(value, x.dtype, shape)
        self.store(self.define(index, INT32, shape))
        self.store(self.assign(Value(f"tl.arg{name}({few.text}, {axis})", INT32, shape, unknown)))

    # Numbers at their limits

    def edgy(self, shape: Shape, dtype: DType) -> str:
        """A tile that also has the least, the largest and the small integers of its type."""
        low, high = limits(dtype)
        position = f"({self.offsets(shape)})"
        text = self.typed(shape, dtype, 1).text
        for number in self.random.sample((low, high, 0, 1, max(low, -1)), 3):
            rest = self.random.randrange(7)
            text = f"tl.where({position} % 7 == {rest}, tl.full([], {number}, tl.{dtype.tl}), {text})"
        return text

    def divided(self) -> None:
        shape, dtype = self.target_shape() or (16,), self.random.choice(INTS)
        x, y, result = self.fresh("x"), self.fresh("y"), self.fresh()
        self.line(f"{x} = {self.edgy(shape, dtype)}")
        symbol = self.random.choice(("//", "%"))
        if self.random.random() < 0.5:
            divisor = self.random.choice((1, 2, 3, 7, 8, 10, 100, limits(dtype)[1], limits(dtype)[0] or 5))
            if dtype.signed and self.random.random() < 0.4:
                divisor = max(-divisor, limits(dtype)[0])
            if divisor == -1:
                divisor = -2
            self.line(f"{result} = {x} {symbol} tl.full([], {divisor}, tl.{dtype.tl})")
        else:
            self.line(f"{y} = {self.edgy(shape, dtype)}")
            self.line(f"{result} = {x} {symbol} {y}")
            undefined = f"({y} == 0)"
            if dtype.signed:
                undefined = f"({undefined} | (({x} == {limits(dtype)[0]}) & ({y} == -1)))"
            self.line(f"{result} = tl.where({undefined}, {x}, {result})")
        self.store(self.define(result, dtype, shape))

    def shifted(self) -> None:
        """Counts up to the width; what larger ones give is replaced."""
        shape, dtype = self.target_shape() or (16,), self.random.choice(INTS)
        x, y, result = self.fresh("x"), self.fresh("y"), self.fresh()
        self.line(f"{x} = {self.edgy(shape, dtype)}")
        symbol = self.random.choice(("<<", ">>"))
        if self.random.random() < 0.4:
            self.line(f"{result} = {x} {symbol} {self.random.choice((0, 1, dtype.bits - 1, dtype.bits // 2))}")
        else:
            self.line(f"{y} = ({self.typed(shape, INT32, 1).text} & {2 * dtype.bits - 1}).to(tl.{dtype.tl})")
            self.line(f"{result} = {x} {symbol} {y}")
            self.line(f"{result} = tl.where({y} < {dtype.bits}, {result}, {x})")
        self.store(self.define(result, dtype, shape))

    def narrowed(self) -> None:
        """Sums, products and negation that wrap in 8 and 16 bits, then widen."""
        shape, dtype = self.target_shape() or (16,), self.random.choice((INT8, UINT8, INT16, UINT16, UINT64, INT64))
        x, result = self.fresh("x"), self.fresh()
        self.line(f"{x} = {self.edgy(shape, dtype)}")
        way = self.random.choice(
            ("{x} + {x}", "{x} * {x}", "-{x}", "~{x}", "{x} - {y}", "tl.abs({x})", "{x} * 3 + {y}")
        )
        self.line(f"{result} = {way.format(x=x, y=self.typed(shape, dtype, 1).text)}")
        self.define(result, dtype, shape)
        wide = self.random.choice((INT32, INT64, UINT64, FP32, FP64, INT8))
        self.store(self.assign(Value(f"{result}.to(tl.{wide.tl})", wide, shape, unknown)))

    def cancelled(self) -> None:
        """Sums, bits and choices in which something cancels out: what folding looks for."""
        shape, dtype = self.random.choice(((), self.target_shape())), self.random.choice((*INTS, BOOL))
        x, y = (self.assign(self.typed(shape, dtype, 1)).text for _ in range(2))
        count = self.random.randrange(1, dtype.bits) if dtype.is_int else 0
        low, high = limits(dtype)
        ways = [
            "({x} ^ {y}) ^ {x}",
            "({x} & {y}) | {x}",
            "({x} | {y}) & {y}",
            "({x} ^ {x}) | {y}",
            "~(~{x} & {y})",
            "{x} & ~{x}",
        ]
        if dtype.is_int:
            ways += [
                "({x} + {y}) - {x}",
                "({x} + {y}) - {y}",
                "({x} - {y}) + {y}",
                "{x} - ({x} - {y})",
                "({x} - {y}) - {x}",
            ] * 2
            ways += [
                "{x} - {x} + {y}",
                "{x} * 1 + {y} * 0",
                "-(-{x})",
                "{x} + {y} * -1",
                "({x} * 2) - {x}",
                "{x} * 3 - {x} * 2",
            ]
            ways += [
                "({x} << {k}) >> {k}",
                "({x} >> {k}) << {k}",
                "{x} // 1 + {y} % 1",
                "{x} // 4 * 4 + {x} % 4",
                "{x} % 8 // 8",
            ]
            ways += ["tl.minimum({x}, {low}) | {y}", "tl.maximum({x}, {low})", "tl.minimum({x}, {high})"]
            ways += [
                "tl.minimum(tl.maximum({x}, {y}), {x})",
                "tl.where({x} < {y}, {x}, {y})",
                "tl.where({x} >= {x}, {y}, {x})",
            ]
            ways += [
                "({x} + 3) + 5 - {y}",
                "({x} - 7) + 7",
                "5 - ({x} + 2)",
                "({x} * 5) * 7",
                "({x} & 12) & 10",
                "({x} | 12) ^ 12",
            ]
        if not dtype.signed:
            ways = [way for way in ways if "-1" not in way and not way.startswith("-")]
        text = self.random.choice(ways).format(x=x, y=y, k=count, low=low, high=high)
        name = self.fresh()
        self.line(f"{name} = ({text}).to(tl.{dtype.tl})")
        self.store(self.define(name, dtype, shape))

    def special_floats(self) -> None:
        """Infinities, NaN, zeros of both signs and tiny numbers through what keeps lanes apart, or is defined for
        NaN."""
        dtype = self.random.choice((FP16, BF16, FP32, FP64))
        shape = self.target_shape() or (16,)
        x, y = self.fresh("x"), self.fresh("y")
        tiny = {FP16: "6e-8", BF16: "1e-40", FP32: "1e-42", FP64: "5e-324"}[dtype]
        for name in (x, y):
            text = self.typed(shape, dtype, 1).text
            for number in self.random.sample(('float("inf")', 'float("-inf")', 'float("nan")', "-0.0", "0.0", tiny), 3):
                rest = self.random.randrange(5)
                text = f"tl.where(({self.offsets(shape)}) % 5 == {rest}, tl.full([], {number}, tl.{dtype.tl}), {text})"
            self.line(f"{name} = {text}")
        loud = self.random.choice(("", ", propagate_nan=tl.PropagateNan.ALL"))
        wide = FP32 if dtype is BF16 else dtype
        ways = [
            (f"{x} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {y}", BOOL),
            (f"tl.{self.random.choice(('minimum', 'maximum'))}({x}, {y}{loud})", wide),
            (f"tl.where({x} == {x}, {x}, {y})", dtype),
            (f"{x} {self.random.choice('+-*')} {y}", dtype),
            (f"tl.abs({x})", dtype),
            (f"(-{x})", dtype),
            (f"tl.clamp({x}.to(tl.float32), -1.0, 1.0{loud})", FP32),
            (f"{x}.to(tl.{(other := self.random.choice(FLOATS)).tl})", other),
            (f"{x} != {x}", BOOL),
        ]
        text, made = self.random.choice(ways)
        name = self.fresh("q")
        self.line(f"{name} = {text}")
        if made.is_float:  # the sign and the pattern of a NaN are the device's own
            self.store(self.assign(Value(f"tl.where({name} == {name}, {name}, -7.0)", made, shape, unknown)))
        else:
            self.store(self.define(name, made, shape))

    def mixed_fp8(self) -> None:
        """fp8 meets other floats, numbers and itself; two kinds of fp8 meet in fp16."""
        kinds = [FP8E5, FP8E4NV] if self.capability == CPU or self.capability >= 89 else [FP8E5]
        shape, one = self.tile_shape(), self.random.choice(kinds)
        x, y, result = self.fresh("f"), self.fresh("f"), self.fresh("f")
        self.line(f"{x} = tl.load({self.pointer(one, 'in')} + {self.offsets(shape)})")
        other = self.random.choice((*kinds, FP16, BF16, FP32, FP64))
        self.line(f"{y} = tl.load({self.pointer(other, 'in')} + 7 + {self.offsets(shape)})")
        symbol = self.random.choice(("+", "-", "*"))
        if self.random.random() < 0.3:
            made, right = one, self.random.choice(("2", "0.5", "1", "-1.5"))
        else:
            made, right = one if other is one else FP16 if other in kinds else FP32 if other is BF16 else other, y
        self.line(f"{result} = {x} {symbol} {right}")
        self.line(f"tl.static_assert({result}.dtype is tl.{made.tl})")
        self.store(Value(result, made, shape, unknown))
        choice = f"tl.where({self.offsets(shape)} < n, {x}, {y if other is one else x})"
        self.store(Value(choice, one, shape, unknown))

    def converted(self) -> None:
        """A shared tile in another type, which wraps, rounds, or stays."""
        x = self.block_value()
        self.share(self.assign(self.cast(x, self.random.choice(KINDS))))

    # Tiles together

    def odd_product(self) -> None:
        """A dot of odd sizes, with a batch perhaps; its operands may be parts of shared tiles."""
        dtype, out = self.random.choice(((FP16, FP32), (BF16, FP32), (FP32, FP32), (INT8, INT32), (FP64, FP64)))
        batch = self.random.choice(((), (), (2,), (3,)))
        m, n, k = (self.random.choice((1, 3, 5, 8, 15, 16, 17, 24, 32, 33)) for _ in range(3))
        a, b, source = self.fresh("a"), self.fresh("b"), self.pointer(INT8, "in")
        for name, shape in ((a, (*batch, m, k)), (b, (*batch, k, n))):
            offsets = self.fresh("o")
            self.line(f"{offsets} = {self.offsets(shape)}")
            masked = f", mask={self.edge(shape, offsets)}, other={self.random.randrange(4)}"
            masked = masked if self.random.random() < 0.5 else ""
            self.line(f"{name} = (tl.load({source} + {offsets}{masked}) & 7).to(tl.{dtype.tl})")
        shape = (*batch, m, n)
        value = Value(f"tl.dot({a}, {b}, input_precision='ieee', out_dtype=tl.{out.tl})", out, shape, unknown)
        value = self.assign(value)
        self.store(value)
        if m * n <= MOST and not batch:
            self.share(value)

    def edge_descriptor(self) -> None:
        """Blocks that begin before the tensor, end behind it, or are outside."""
        dtype = self.random.choice((INT8, INT32, UINT32, FP16, FP32, INT64))
        rows, columns = self.random.choice((1, 2, 3, 4, 8)), self.columns(dtype, 6)
        height, width = self.random.choice((5, 8, 13)), 64
        source, desc = self.pointer(dtype, "in"), self.fresh("d")
        padding = ', padding_option="nan"' if dtype.is_float and self.random.random() < 0.3 else ""
        self.line(
            f"{desc} = tl.make_tensor_descriptor({source}, [{height}, {width - self.random.choice((0, 0, 3, 16))}],"
            f" [{width}, 1], {[rows, columns]}{padding})"
        )
        aligned = 128 // dtype.bits
        row = self.random.choice((0, -1, -rows, 1 - rows, height - 1, height, height + 3, -7))
        column = self.random.choice((0, -aligned, width - aligned, width, aligned, -columns // aligned * aligned))
        if columns % aligned:  # such rows may begin anywhere
            column = self.random.choice((column, -3, width - 1, 5))
        position = f"{row} + (n - 37), {column}" if self.random.random() < 0.5 else f"{row}, {column}"
        name = self.fresh("q")
        self.line(f"{name} = {desc}.load([{position}])")
        if padding:
            value = self.assign(Value(f"tl.where({name} == {name}, {name}, -7.0)", dtype, (rows, columns), unknown))
        else:
            value = self.define(name, dtype, (rows, columns))
        self.share(value)
        self.store(value)

    def tuple_call(self) -> None:
        """Functions that take and return tuples."""
        shape = self.random.choice(((), self.target_shape()))
        dtype = self.random.choice((INT32, INT64, FP32))
        x, y, z = (self.assign(self.typed(shape, dtype, 1)).text for _ in range(3))
        left, right = self.fresh(), self.fresh()
        match self.random.randrange(4):
            case 0:
                self.line(f"{left}, {right} = swapped(({x}, {y}))")
            case 1:
                self.line(f"({left}, {self.fresh()}), {right} = spread(({x}, {y}), {z})")
            case 2:
                self.line(f"{left}, {right} = summed_tuple(({x}, {y}, {z})), {z}")
            case _:
                self.line(f"{left}, {right} = pair_apart(({x}, {y}), n)")
        self.store(self.define(left, dtype, shape))
        self.store(self.define(right, dtype, shape))

    def counted_focus(self) -> None:
        x = self.assign(self.typed((self.random.choice(SIZES),), INT32, 1))
        bins = self.random.choice((1, 3, 8, 10, 16))
        mask = (
            f", mask={self.offsets(x.shape)} < {self.random.randint(0, x.shape[0])}"
            if self.random.random() < 0.5
            else ""
        )
        self.store(self.assign(Value(f"tl.histogram({x.text} & 15, {bins}{mask})", INT32, (bins,), unknown)))

    def chosen_by_mask(self) -> None:
        """`tl.where` over shared tiles of one shape."""
        x = self.block_value()
        y = self.typed(x.shape, x.dtype, 1)
        offsets = f"tl.broadcast_to({self.offsets(x.shape)}, {list(x.shape)})"
        text = f"tl.where({self.edge(x.shape, offsets)}, {x.text}, {y.text})"
        self.share(self.assign(Value(text, x.dtype, x.shape, unknown)))

    def own_atomic(self) -> None:
        """Every element of a tile has an address of its own; the old values are stored."""
        shape, dtype = self.tile_shape(), self.random.choice((INT32, UINT32, INT64, UINT64, FP32))
        kind = self.random.choice(("add", "max", "min", "xchg") + (() if dtype.is_float else ("and", "or", "xor")))
        pointer, offsets = self.pointer(dtype, "io"), self.fresh("o")
        self.line(f"{offsets} = pid * {prod(shape)} + {self.offsets(shape)}")
        value = self.typed(shape, dtype, 1).text
        self.line(f"tl.atomic_{kind}({pointer} + {offsets}, {value}, mask={self.edge(shape, offsets)})")
