"""Straight-line statements on values: numbers, reductions, scans, shapes, calls."""

from math import prod

from tests.fuzz.expressions import Shape, Value, clamped, unknown
from tests.fuzz.kernels import Writer
from tests.fuzz.rules import BF16, BOOL, FP16, FP32, FP64, INT32, INT64, INTS, extreme, summed


class ValueStatements(Writer):
    """Statements that bind new values."""

    def block_value(self, rank: int = 0, minimum: int = 1) -> Value:
        """A block in scope (of at least `rank` dimensions), or a new one."""
        found = [v for v in self.pool if len(v.shape) >= max(rank, 1) and prod(v.shape) >= minimum]
        if found and self.random.random() < 0.9:
            return self.random.choice(found)
        shape = self.shape(max(rank, self.random.randint(1, 3)))
        while prod(shape) < minimum:
            shape = self.shape(max(rank, 1))
        return self.assign(self.expression(shape, 1))

    def target_shape(self) -> Shape:
        return self.random.choice([value.shape for value in self.pool])

    def compute(self) -> None:
        self.assign(self.expression(self.target_shape(), 3))

    def compute_scalar(self) -> None:
        self.assign(self.expression((), 2))

    def literal(self) -> None:
        """A number bound by `=` becomes a value of its own type."""
        if self.random.random() < 0.5:
            self.assign(Value(str(self.random.choice((0, 1, 2, 3, 7, 16))), INT32, (), unknown))
        else:
            self.assign(Value(str(self.random.choice((0.0, 1.0, 0.5, 2.0))), FP32, (), unknown))

    def filled(self) -> None:
        shape, dtype = self.shape(), self.random.choice((*INTS, FP16, BF16, FP32, FP64))
        number = self.random.choice((0, 1, 2, 3))
        self.assign(Value(f"tl.full({list(shape)}, {number}, tl.{dtype.tl})", dtype, shape, unknown))

    def constants(self) -> None:
        """Expressions over nothing but numbers, which the passes compute."""
        scope, self.pool = self.pool, []
        shape = self.random.choice(((), self.shape(limit=64)))
        for _ in range(3):
            dtype = self.random.choice((BOOL, *INTS, FP16, BF16, FP32, FP64))
            numbers = (0, 1) if dtype is BOOL else (0, 1, 2, 3, 7, 100, -1, -5, -100)
            number = self.random.choice([n for n in numbers if n >= 0 or dtype.signed])
            if dtype.is_float:
                number = self.random.choice((number, 0.3, -0.0, 1e-3))
            own = self.random.choice(((), shape))
            self.assign(Value(f"tl.full({list(own)}, {number}, tl.{dtype.tl})", dtype, own, unknown))
        for _ in range(3):
            self.assign(self.expression(shape, 3))
        self.pool = scope + self.pool

    def transposed(self) -> None:
        """Permutations of permutations, also of constants and of what is the same everywhere."""
        shape = self.shape(3, 256)
        source = self.random.choice((self.expression(shape, 1), self.typed(shape, INT32, 0)))
        x = self.assign(source)
        for _ in range(2):
            order = [0, 1, 2]
            self.random.shuffle(order)
            shape = tuple(shape[d] for d in order)
            x = self.assign(Value(f"tl.permute({x.text}, {order})", x.dtype, shape, unknown))
        if self.random.random() < 0.5:
            self.assign(
                Value(f"tl.reshape(tl.reshape({x.text}, [{prod(shape)}]), {list(shape)})", x.dtype, shape, unknown)
            )

    def reduction(self) -> None:
        x = self.block_value()
        if x.dtype is BF16:
            x = self.assign(self.cast(x, FP32))
        axis = self.random.randrange(len(x.shape))
        keep = self.random.random() < 0.3
        shape = tuple(1 if d == axis else s for d, s in enumerate(x.shape) if keep or d != axis)
        names = ["sum", "max", "min", "argmax", "argmin", "reduce", "first"]
        names += [] if x.dtype.is_float else ["xor_sum", "reduce_or"]
        if not self.promises:  # whose kernels have digests: they stay as they are
            names += ["ravelled"] if x.dtype.is_float or x.dtype is BOOL else ["ravelled", "affine"]
        name = self.random.choice(names)
        written = axis if self.random.random() < 0.7 else axis - len(x.shape)
        options = f"axis={written}, keep_dims={keep}"
        match name:
            case "sum":
                self.assign(Value(f"tl.sum({x.text}, {options})", summed(x.dtype), shape, unknown))
            case "max" | "min":
                self.assign(Value(f"tl.{name}({x.text}, {options})", extreme(x.dtype), shape, unknown))
            case "argmax" | "argmin":
                self.assign(Value(f"tl.{name}({x.text}, {options})", INT32, shape, unknown))
            case "reduce":
                combine = self.random.choice(
                    ("combine_add", "combine_max") if x.dtype is not BOOL else ("combine_max",)
                )
                self.assign(Value(f"tl.reduce({x.text}, {axis}, {combine}, keep_dims={keep})", x.dtype, shape, unknown))
            case "first":
                position = f"tl.broadcast_to({self.iota(x.shape, axis)}, {list(x.shape)})"
                left, right = self.fresh(), self.fresh()
                pair = f"tl.reduce(({x.text}, {position}), {axis}, combine_first, keep_dims={keep})"
                self.line(f"{left}, {right} = {pair}")
                self.define(left, x.dtype, shape)
                self.define(right, INT32, shape)
            case "affine":
                left, right = self.fresh(), self.fresh()
                self.line(
                    f"{left}, {right} = tl.reduce(({x.text} | 1, {x.text}), {axis}, combine_affine, keep_dims={keep})"
                )
                self.define(left, x.dtype, shape)
                self.define(right, x.dtype, shape)
            case "ravelled":
                transposed = f"tl.trans({x.text})" if len(x.shape) == 2 else x.text
                self.assign(Value(f"tl.argmax(tl.ravel({transposed}), 0)", INT32, (), unknown))
            case _:
                self.assign(Value(f"tl.{name}({x.text}, {options})", x.dtype, shape, unknown))

    def iota(self, shape: Shape, axis: int) -> str:
        index = f"tl.arange(0, {shape[axis]})"
        if len(shape) == 1:
            return index
        return index + "[" + ", ".join(":" if d == axis else "None" for d in range(len(shape))) + "]"

    def scan(self) -> None:
        x = self.block_value()
        if x.dtype is BF16 or x.dtype is BOOL:
            x = self.assign(self.cast(x, FP32))
        axis, reverse = self.random.randrange(len(x.shape)), self.random.random() < 0.3
        match self.random.randrange(4):
            case 0:
                self.assign(Value(f"tl.cumsum({x.text}, {axis}, reverse={reverse})", summed(x.dtype), x.shape, unknown))
            case 1:
                x = self.small(x)
                self.assign(Value(f"tl.cumprod({x.text}, {axis}, reverse={reverse})", x.dtype, x.shape, unknown))
            case 2:
                text = f"tl.associative_scan({x.text}, {axis}, combine_max, reverse={reverse})"
                self.assign(Value(text, x.dtype, x.shape, unknown))
            case _:
                x = self.small(x)
                left, right = self.fresh(), self.fresh()
                pair = f"tl.associative_scan(({x.text}, {x.text}), {axis}, combine_affine)"
                self.line(f"{left}, {right} = {pair}")
                self.define(left, x.dtype, x.shape)
                self.define(right, x.dtype, x.shape)

    def small(self, x: Value) -> Value:
        """Return a tile whose products do not overflow: the order of the multiplications of a scan is not defined."""
        return self.assign(self.cast(clamped(x, -1.0, 1.0), x.dtype)) if x.dtype.is_float else x

    def reshaped(self) -> None:
        x = self.block_value()
        whole = prod(x.shape)
        first = self.random.choice(divisors(whole))
        second = self.random.choice(divisors(whole // first))
        shapes = (whole,), (first, whole // first), (first, second, whole // first // second)
        shape = self.random.choice(shapes)
        self.assign(Value(f"tl.reshape({x.text}, {list(shape)})", x.dtype, shape, unknown))

    def permuted(self) -> None:
        x = self.block_value(rank=2)
        order = list(range(len(x.shape)))
        self.random.shuffle(order)
        shape = tuple(x.shape[d] for d in order)
        if len(order) == 2 and order == [1, 0] and self.random.random() < 0.5:
            self.assign(Value(self.random.choice((f"{x.text}.T", f"tl.trans({x.text})")), x.dtype, shape, unknown))
        else:
            self.assign(Value(f"tl.permute({x.text}, {order})", x.dtype, shape, unknown))

    def expanded(self) -> None:
        """A new axis of size 1, then perhaps a wider one."""
        x = self.block_value()
        if len(x.shape) == 3:
            return
        axis = self.random.randint(0, len(x.shape))
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        y = self.assign(Value(f"tl.expand_dims({x.text}, {axis})", x.dtype, shape, unknown))
        size = self.size(5)
        wide = (*x.shape[:axis], size, *x.shape[axis:])
        if prod(wide) <= 1024:
            self.assign(Value(f"tl.broadcast_to({y.text}, {list(wide)})", x.dtype, wide, unknown))

    def joined(self) -> None:
        x = self.leaf(self.target_shape())
        if len(x.shape) == 3 or prod(x.shape) > 512:
            return
        y = self.typed(x.shape, x.dtype, 1)
        both = self.assign(Value(f"tl.join({x.text}, {y.text})", x.dtype, (*x.shape, 2), unknown))
        if self.random.random() < 0.5:
            left, right = self.fresh(), self.fresh()
            self.line(f"{left}, {right} = tl.split({both.text})")
            self.define(left, x.dtype, x.shape)
            self.define(right, x.dtype, x.shape)
        elif x.shape:
            shape = (*x.shape[:-1], 2 * x.shape[-1])
            self.assign(Value(f"tl.interleave({x.text}, {y.text})", x.dtype, shape, unknown))

    def gathered(self) -> None:
        x = self.block_value()
        axis = self.random.randrange(len(x.shape))
        index = self.typed(x.shape, INT32, 1)
        text = f"tl.gather({x.text}, {self.index_in(index.text, x.shape[axis])}, {axis})"
        self.assign(Value(text, x.dtype, x.shape, unknown))

    def flipped(self) -> None:
        x = self.block_value()
        self.assign(Value(f"tl.flip({x.text}, {self.random.randrange(len(x.shape))})", x.dtype, x.shape, unknown))

    def counted(self) -> None:
        x = self.assign(self.typed(self.shape(1), INT32, 1))
        self.assign(Value(f"tl.histogram({x.text} & 15, 16)", INT32, (16,), unknown))

    def call_early(self) -> None:
        x = self.leaf(self.target_shape())
        if x.dtype.is_bool:
            return
        self.assign(Value(f"early({x.text}, {self.typed((), INT32, 1).text})", x.dtype, x.shape, unknown))

    def call_recursive(self) -> None:
        x = self.leaf(self.target_shape())
        if x.dtype.is_bool:
            return
        result, times = self.fresh("t"), self.random.randint(1, 3)
        self.line(f"{result} = twice({x.text}, m, {times})")
        self.assign(Value(result + "[0]" * times, x.dtype, x.shape, unknown))

    def call_apart(self) -> None:
        x = self.typed((), self.random.choice((INT32, INT64, FP32)), 1)
        self.assign(Value(f"apart({x.text}, n)", x.dtype, (), unknown))

    def call_passed(self) -> None:
        """A function that is a constant: an argument, an item of one, a global; or one that the type decides about."""
        x = self.leaf(self.target_shape())
        if x.dtype.is_bool:
            return
        n = self.typed((), INT32, 1).text
        ways = f"passed({x.text}, {n}, early)", f"passed({x.text}, {n}, PASSED)", f"PASSED({x.text}, {n})"
        items = f"passed_item({x.text}, {n}, (combine_add, early))", f"by_type({x.text}, combine_add, combine_max)"
        self.assign(Value(self.random.choice((*ways, *items)), x.dtype, x.shape, unknown))

    def rounded_function(self) -> None:
        """Functions of fp32 that are correctly rounded, and the fused product."""
        shape = self.target_shape()
        x, y, z = (self.cast(self.expression(shape, 1), FP32) for _ in range(3))
        texts = (f"tl.sqrt_rn({x.text})", f"tl.div_rn({x.text}, {y.text})", f"tl.fma({x.text}, {y.text}, {z.text})")
        self.assign(Value(self.random.choice((*texts, f"tl.erf({x.text})")), FP32, shape, unknown))

    def hinted(self) -> None:
        self.assign(Value("tl.multiple_of(n * 16, 16)", INT32, (), unknown))
        size = self.size(7)
        self.assign(Value(f"tl.max_contiguous(tl.arange(0, {size}) + m, [{size}])", INT32, (size,), unknown))
        self.line("tl.assume(n > 0)")

    def ternary(self) -> None:
        shape, dtype = self.target_shape(), self.random.choice((BOOL, *INTS, FP32))
        condition, a, b = self.boolean((), 1), self.typed(shape, dtype, 1), self.typed(shape, dtype, 1)
        self.assign(Value(f"({a.text} if {condition.text} else {b.text})", dtype, shape, unknown))


def divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
