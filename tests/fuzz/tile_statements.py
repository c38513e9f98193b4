"""Several uses of one tile: sorts, reductions, scans, products, views and accesses of the same loaded values.

    v1 = tl.load(in_i32_0 + o1, mask=o1 < n, other=-3)
    v2 = tl.sort(v1)
    v3 = tl.sum(v1, axis=1)
    v4 = tl.topk(v1, 2)

On a GPU a tile whose sizes are no powers of two has padded lanes. Each use wants something else in them (0, 1, the
least number, the greatest one, index 0), so these kernels find a use that sees what another one put there. All values
are integers or small whole floats: results are exact in any order.
"""

from math import prod

from tests.fuzz.expressions import Shape, Value, unknown
from tests.fuzz.kernels import ELEMENTS
from tests.fuzz.rules import FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT32, UINT64, DType, extreme, summed
from tests.fuzz.statements import Statements

KINDS = (INT8, INT16, INT32, INT32, INT64, UINT8, UINT32, UINT64, FP32)
SORTED_LIMIT = 32  # of the last dimension of what is sorted: the code is long
HELPERS = """@jit
def combine_product(a, b):
    return a * b


@jit
def divide_first(a, b):
    return a + (b - b // b * b)


@jit(noinline=True)
def tile_apart(p, SIZE: tl.constexpr):
    x = tl.load(p + tl.arange(0, SIZE), mask=tl.arange(0, SIZE) < SIZE - 1, other=1)
    return tl.sort(x), x, tl.sum(x, 0)


"""
STRAIGHT = {
    **{"ordered": 6, "reduced": 8, "scanned": 4, "chosen": 3, "picked": 2, "counted_tile": 2},
    **{"viewed": 3, "permuted": 2, "joined_tile": 2, "concatenated": 2, "flipped": 2, "repeated": 1, "kept": 2},
    **{"added": 2, "multiplied": 2, "called": 2, "described": 2, "mapped_tile": 1, "divided": 2, "part": 1},
}
NESTED = {"carried_tile": 3, "either_tile": 2}


class TileStatements(Statements):
    """Mostly further uses of tiles that are there already."""

    def __init__(self, seed: int, capability: int, odd: bool = True) -> None:
        super().__init__(seed, capability, odd=True)
        self.straight, self.nested = self.uneven(STRAIGHT), self.uneven(NESTED)
        self.focus: Value | None = None  # the tile that the next statements use

    def statement(self, budget: int) -> None:
        """Several uses of one tile, of those that are loaded more often than of others."""
        if budget < 2:
            return super().statement(budget)
        self.focus = self.tile() if self.random.random() < 0.3 else self.masked(self.shape(), self.random.choice(KINDS))
        for _ in range(self.random.randint(2, 5)):
            super().statement(budget - 1)

    def shape(self, rank: int | None = None, limit: int = 256) -> Shape:
        """Small tiles, so that one kernel has many uses."""
        rank = rank or self.random.choice((1, 1, 2, 2, 2, 3))
        while True:
            shape = tuple(
                self.random.choice((1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 11, 13, 15, 16, 33)) for _ in range(rank)
            )
            if prod(shape) <= limit:
                return shape

    def load(self, shape: Shape, dtype: DType) -> Value:
        return self.masked(shape, dtype if dtype in KINDS else INT32)

    def masked(self, shape: Shape, dtype: DType) -> Value:
        """A masked load of which the lanes that are not read hold anything, mostly not 0."""
        source, offsets, name = self.pointer(INT8 if dtype.is_float else dtype, "in"), self.fresh("o"), self.fresh()
        self.line(f"{offsets} = {self.offsets(shape)}")
        bound = self.random.choice(("n", "m", f"{prod(shape)}", f"{prod(shape) + 12}", f"{prod(shape) // 2}"))
        other = self.random.choice((0, 1, 1, 3, 100 if dtype.is_float or dtype.signed else 200))
        ways = (f", mask={offsets} < {bound}, other={other}", f", mask={offsets} < {bound}, other={other}", "")
        text = f"tl.load({source} + pid * {prod(shape)} + {offsets}{self.random.choice(ways)})"
        self.line(f"{name} = {text}.to(tl.{dtype.tl})" if dtype.is_float else f"{name} = {text}")
        return self.define(name, dtype, shape)

    def tile(self, limit: int = 512, rank: int = 1, integers: bool = False) -> Value:
        """A tile in scope, or another loaded one."""
        found = [v for v in self.pool if len(v.shape) >= rank and prod(v.shape) <= limit and v.dtype in KINDS]
        found = [v for v in found if not (integers and v.dtype.is_float)]
        if self.focus in found and self.random.random() < 0.8:
            return self.focus
        if found and self.random.random() < 0.95:
            return self.random.choice(found)
        return self.masked(self.shape(rank if rank > 1 else None, limit), INT32)

    def ordered(self) -> None:
        """Sort, or the greatest ones, along the last dimension or another one."""
        x = self.tile()
        if x.shape[-1] > SORTED_LIMIT:
            return
        descending = self.random.random() < 0.5
        kind = self.random.randrange(4)
        if kind == 0 and x.dtype in (INT32, UINT32, INT64, FP32):  # of narrow integers the result may be wider
            k = self.random.randint(1, x.shape[-1])
            self.assign(Value(f"tl.topk({x.text}, {k})", x.dtype, (*x.shape[:-1], k), unknown))
        elif kind == 1 and len(x.shape) == 2 and x.shape[0] <= SORTED_LIMIT:
            text = f"tl.trans(tl.sort(tl.trans({x.text}), descending={descending}))"
            self.assign(Value(text, x.dtype, x.shape, unknown))
        else:
            self.assign(Value(f"tl.sort({x.text}, descending={descending})", x.dtype, x.shape, unknown))

    def reduced(self) -> None:
        """Along any dimension, by any function."""
        x = self.tile()
        axis = self.random.randrange(len(x.shape))
        shape = tuple(s for d, s in enumerate(x.shape) if d != axis)
        names = ["sum", "max", "min", "argmax", "argmin", "first", "last", "pair", "whole"]
        names += [] if x.dtype.is_float else ["xor_sum", "reduce_or", "product", "affine", "dividing"]
        match name := self.random.choice(names):
            case "sum":
                self.assign(Value(f"tl.sum({x.text}, {axis})", summed(x.dtype), shape, unknown))
            case "max" | "min":
                self.assign(Value(f"tl.{name}({x.text}, {axis})", extreme(x.dtype), shape, unknown))
            case "argmax" | "argmin":
                ties = self.random.choice((", tie_break_left=True", ""))
                self.assign(Value(f"tl.{name}({x.text}, {axis}{ties})", INT32, shape, unknown))
            case "first":
                self.assign(Value(f"tl.reduce({x.text}, {axis}, combine_max)", x.dtype, shape, unknown))
            case "last":
                self.assign(Value(f"tl.reduce({x.text}, {axis}, combine_add)", x.dtype, shape, unknown))
            case "pair":
                where = f"tl.broadcast_to({self.iota(x.shape, axis)}, {list(x.shape)})"
                self.two(f"tl.reduce(({x.text}, {where}), {axis}, combine_first)", (x.dtype, INT32), shape)
            case "affine":
                self.two(f"tl.reduce(({x.text} | 1, {x.text}), {axis}, combine_affine)", (x.dtype, x.dtype), shape)
            case "dividing":
                self.assign(Value(f"tl.reduce({x.text} | 1, {axis}, divide_first)", x.dtype, shape, unknown))
            case "product":
                text = f"tl.reduce({x.text}, {axis}, combine_product)"
                self.assign(Value(text, x.dtype, shape, unknown))
            case "whole":
                self.assign(Value(f"tl.sum({x.text})", summed(x.dtype), (), unknown))
            case _:
                self.assign(Value(f"tl.{name}({x.text}, {axis})", x.dtype, shape, unknown))

    def two(self, text: str, dtypes: tuple[DType, DType], shape: Shape) -> None:
        left, right = self.fresh(), self.fresh()
        self.line(f"{left}, {right} = {text}")
        self.define(left, dtypes[0], shape)
        self.define(right, dtypes[1], shape)

    def scanned(self) -> None:
        """From either end."""
        x = self.tile(integers=True)
        axis, reverse = self.random.randrange(len(x.shape)), self.random.random() < 0.6
        way = f"{axis}, reverse={reverse}"
        match self.random.randrange(5):
            case 0:
                self.assign(Value(f"tl.cumsum({x.text}, {way})", summed(x.dtype), x.shape, unknown))
            case 1:
                self.assign(Value(f"tl.cumprod({x.text}, {way})", x.dtype, x.shape, unknown))
            case 2:
                text = f"tl.associative_scan({x.text}, {axis}, combine_max, reverse={reverse})"
                self.assign(Value(text, x.dtype, x.shape, unknown))
            case 3:
                where = f"tl.broadcast_to({self.iota(x.shape, axis)}, {list(x.shape)})"
                pair = f"tl.associative_scan(({x.text}, {where}), {axis}, combine_first, reverse={reverse})"
                self.two(pair, (x.dtype, INT32), x.shape)
            case _:
                pair = f"tl.associative_scan(({x.text}, {x.text}), {axis}, combine_affine, reverse={reverse})"
                self.two(pair, (x.dtype, x.dtype), x.shape)

    def chosen(self) -> None:
        """Some elements of one tile and some of another."""
        x = self.tile()
        same = [v for v in self.pool if (v.shape, v.dtype) == (x.shape, x.dtype)]
        y, number = self.random.choice(same).text if same else x.text, self.random.randrange(8)
        texts = (f"tl.where({x.text} > {number}, {x.text}, {y})", f"({x.text} + {y})", f"tl.maximum({x.text}, {y})")
        texts += (f"tl.where({self.offsets(x.shape)} < m, {y}, {number})",)
        if not x.dtype.is_float:
            self.assign(Value(self.random.choice(texts), x.dtype, x.shape, unknown))
        else:
            self.assign(Value(f"tl.where({x.text} > {number}, {x.text}, {y})", x.dtype, x.shape, unknown))

    def picked(self) -> None:
        """A gather of as many, or of another number of elements."""
        x = self.tile()
        axis = self.random.randrange(len(x.shape))
        size = self.random.choice((x.shape[axis], self.random.randint(1, 9)))
        shape = tuple(size if d == axis else s for d, s in enumerate(x.shape))
        index = f"tl.broadcast_to({self.iota(shape, axis)}, {list(shape)})"
        text = f"tl.gather({x.text}, ({index} * 5 + m) % {x.shape[axis]}, {axis})"
        self.assign(Value(text, x.dtype, shape, unknown))

    def counted_tile(self) -> None:
        x = self.tile(integers=True)
        bins = self.random.choice((3, 8, 11, 16))
        flat = f"tl.ravel({x.text})" if len(x.shape) > 1 else x.text
        mask = f", mask=tl.arange(0, {prod(x.shape)}) < n" if self.random.random() < 0.5 else ""
        self.assign(Value(f"tl.histogram(({flat} & 15).to(tl.int32), {bins}{mask})", INT32, (bins,), unknown))

    def viewed(self) -> None:
        self.reshaped()

    def joined_tile(self) -> None:
        """Two tiles as one and perhaps in two again."""
        x = self.tile(256)
        if len(x.shape) not in (1, 2):
            return
        both = self.assign(Value(f"tl.join({x.text}, {x.text})", x.dtype, (*x.shape, 2), unknown))
        if self.random.random() < 0.6:
            self.two(f"tl.split({both.text})", (x.dtype, x.dtype), x.shape)
        else:
            text, shape = f"tl.interleave({x.text}, {x.text})", (*x.shape[:-1], 2 * x.shape[-1])
            self.assign(Value(text, x.dtype, shape, unknown))

    def concatenated(self) -> None:
        """In any order, so it is sorted."""
        x = self.tile(16)
        if len(x.shape) == 1:
            text = f"tl.sort(tl.cat({x.text}, {x.text}, can_reorder=True))"
            self.assign(Value(text, x.dtype, (2 * x.shape[0],), unknown))

    def repeated(self) -> None:
        """A new dimension, or a row for each of several ones."""
        x = self.tile(64)
        if len(x.shape) > 2:
            return
        axis, size = self.random.randint(0, len(x.shape)), self.random.choice((3, 4, 5))
        shape = (*x.shape[:axis], size, *x.shape[axis:])
        text = f"tl.broadcast_to(tl.expand_dims({x.text}, {axis}), {list(shape)})"
        self.assign(Value(text, x.dtype, shape, unknown))

    def part(self) -> None:
        """The first elements, as topk takes them: a sort of them."""
        x = self.tile(64)
        if x.dtype not in (INT32, UINT32, INT64, FP32) or x.shape[-1] > SORTED_LIMIT:
            return
        k = self.random.randint(1, x.shape[-1])
        text = f"tl.sort(tl.topk({x.text}, {k}))"
        self.assign(Value(text, x.dtype, (*x.shape[:-1], k), unknown))

    def kept(self) -> None:
        """A store without a mask."""
        self.store(self.tile())

    def added(self) -> None:
        """Atomics without a mask: a lane that is not seen must change nothing."""
        x = self.tile(128, integers=True)
        if x.dtype not in (INT32, UINT32, INT64, UINT64):
            return
        name = self.random.choice(("add", "max", "min", "xor"))
        self.line(f"tl.atomic_{name}({self.pointer(x.dtype, 'io')} + pid * 1024 + {self.offsets(x.shape)}, {x.text})")

    def multiplied(self) -> None:
        """Dots of small whole numbers."""
        x = self.tile(rank=2)
        if len(x.shape) != 2:
            return
        m, k = x.shape
        n = self.random.choice((1, 3, 8, 16))
        dtype, out = self.random.choice(((FP16, FP32), (FP32, FP32), (INT8, INT32)))
        is_transposed = self.random.random() >= 0.5 or n > k
        if is_transposed and 2 * m * m > ELEMENTS:  # of both programs: more than an array of results holds
            return
        a, b, c = self.fresh("a"), self.fresh("b"), self.fresh()
        narrow = f"({x.text} != 0).to(tl.int8)" if x.dtype.is_float else f"({x.text} & 3).to(tl.int8)"
        self.line(f"{a} = {narrow}.to(tl.{dtype.tl})")
        if is_transposed:
            n = m
            self.line(f"{b} = tl.trans({a})")
        else:
            self.line(f"{b} = (tl.load({self.pointer(INT8, 'in')} + {self.offsets((k, n))}) & 3).to(tl.{dtype.tl})")
        self.line(f"{c} = tl.dot({a}, {b}, input_precision='ieee', out_dtype=tl.{out.tl})")
        self.store(Value(c, out, (m, n), unknown))
        if out is INT32:
            self.define(c, out, (m, n))

    def called(self) -> None:
        """A function that is not inlined and returns tiles."""
        dtype, size = self.random.choice((INT32, INT64, UINT32)), self.random.choice((3, 5, 8, 11))
        names = [self.fresh() for _ in range(3)]
        self.line(f"{', '.join(names)} = tile_apart({self.pointer(dtype, 'in')} + pid, {size})")
        for name, shape in zip(names, ((size,), (size,), ()), strict=True):
            self.define(name, dtype, shape)

    def described(self) -> None:
        """A tile that a descriptor loads, whose edges lie inside it."""
        dtype = self.random.choice((INT32, UINT32, INT8, FP32))
        shape = (self.random.choice((1, 3, 5, 8)), self.random.choice((3, 7, 16, 20)))
        source, desc = self.pointer(INT32 if dtype is FP32 else dtype, "in"), self.fresh("d")
        self.line(f"{desc} = tl.make_tensor_descriptor({source}, [4, 16], [16, 1], {list(shape)})")
        name, where = self.fresh(), self.random.choice(("[0, 0]", "[pid, 16]", "[-1, -16]", "[-2, 0]"))
        text = f"{desc}.load({where})"
        self.line(f"{name} = ({text} & 15).to(tl.float32)" if dtype is FP32 else f"{name} = {text}")
        self.define(name, dtype, shape)

    def mapped_tile(self) -> None:
        x = self.tile(64)
        if x.dtype not in (INT32, FP32):
            return
        self.assign(Value(f"tl.map_elementwise(scalar_choice, {x.text}, {x.text})", x.dtype, x.shape, unknown))

    def divided(self) -> None:
        """By a tile that is nowhere 0 where the user sees it."""
        x = self.tile(integers=True)
        symbol = self.random.choice(("//", "%"))
        divisor = f"(({x.text} & 7) + 1)"
        self.assign(Value(f"{x.text} {symbol} {divisor}", x.dtype, x.shape, unknown))

    def carried_tile(self, budget: int) -> None:
        """A loop that carries a tile, with other uses of it inside."""
        x = self.tile(128, integers=True)
        name = self.assign(Value(f"{x.text} + 1", x.dtype, x.shape, unknown)).text
        index = self.fresh("i")
        with self.block(f"for {index} in range(m & 3):"):
            for _ in range(self.random.randint(0, 2)):
                self.statement(budget)
            axis = len(x.shape) - 1
            sums = f"tl.sum({name}, {axis}, keep_dims=True).to(tl.{x.dtype.tl})"
            ways = [f"{name} + {sums}", f"{name} - tl.flip({name}, {axis})", f"{name} + {x.text}"]
            ways += [f"tl.sort({name})"] if x.shape[-1] <= SORTED_LIMIT else []
            self.line(f"{name} = {self.random.choice(ways)}")

    def either_tile(self, budget: int) -> None:
        """One tile or another one of the same type, by a branch."""
        x = self.tile(128, integers=True)
        name = self.fresh()
        with self.block(f"if {self.random.choice(('n > 20', 'm > 20', 'flag', 'pid == 0'))}:"):
            self.statement(budget)
            self.line(f"{name} = {x.text}")
        with self.block("else:"):
            other = f"tl.sort({x.text})" if x.shape[-1] <= SORTED_LIMIT else f"tl.flip({x.text}, {len(x.shape) - 1})"
            self.line(f"{name} = {other}")
        self.define(name, x.dtype, x.shape)
