"""Statements that call the library (sort, top k, random numbers, softmax), functions of tiles, and the rarer forms of
builtins: masks and orders of atomics, gathers of another size, dots of every type, scalar functions mapped over tiles.
"""

from collections.abc import Sequence
from math import prod

from tests.fuzz.descriptor_statements import DescriptorStatements
from tests.fuzz.expressions import Shape, Value, clamped, unknown
from tests.fuzz.kernels import CPU
from tests.fuzz.memory_statements import ATOMIC
from tests.fuzz.order_statements import OrderStatements
from tests.fuzz.rules import (
    BF16,
    FP8E4B8,
    FP8E4NV,
    FP8E5,
    FP8E5B16,
    FP16,
    FP32,
    FP64,
    INT8,
    INT32,
    INT64,
    INTS,
    UINT32,
    DType,
    summed,
)

DOTS = ((FP16, FP32), (FP16, FP16), (BF16, FP32), (FP32, FP32), (FP64, FP64), (INT8, INT32))


class LibraryStatements(OrderStatements, DescriptorStatements):
    """See the module docstring."""

    @property
    def fp8(self) -> tuple[DType, ...]:
        """The fp8 types of the target; the CPU has all of them."""
        if self.capability == CPU:
            return FP8E5, FP8E4NV, FP8E4B8, FP8E5B16
        return (FP8E5, FP8E4NV) if self.capability >= 89 else (FP8E5,)

    def orderable(self, limit: int, dtypes: Sequence[DType] = (*INTS, FP32)) -> Value:
        """A block without NaN, whose last dimension is at most `limit`."""
        shape = self.shape(limit=256)
        shape = (*shape[:-1], min(shape[-1], limit))
        x = self.cast(self.expression(shape, 1), self.random.choice(dtypes))
        return self.assign(clamped(x, -100.0, 100.0) if x.dtype.is_float else x)

    def sorted_values(self) -> None:
        x = self.orderable(16)
        descending = self.random.random() < 0.5
        text = f"tl.sort({x.text}, descending={descending})"
        if len(x.shape) == 2 and x.shape[0] <= 64 and not self.promises and self.random.random() < 0.4:
            text = f"tl.trans(tl.sort(tl.trans({x.text}), descending={descending}))"
        self.assign(Value(text, x.dtype, x.shape, unknown))

    def largest_values(self) -> None:
        x = self.orderable(16, (INT32, UINT32, INT64, FP32))  # the result of narrow integers is wider for some k
        k = min(self.size(x.shape[-1].bit_length()), x.shape[-1])
        self.assign(Value(f"tl.topk({x.text}, {k})", x.dtype, (*x.shape[:-1], k), unknown))

    def reduced_with_nan(self) -> None:
        """NaN among numbers: what it does must not depend on the order in which a target combines elements.

        The block itself stays out of the pool: other statements compare, and with NaN their order would show.
        """
        x, noisy = self.orderable(16, (FP32, FP16)), self.fresh("q")
        axis = self.random.randrange(len(x.shape))
        mask = self.boolean(x.shape, 1)
        self.line(f'{noisy} = tl.where({mask.text}, float("nan"), {x.text})')
        shape = tuple(s for d, s in enumerate(x.shape) if d != axis)
        wide = FP32 if x.dtype is FP16 else x.dtype
        name = self.random.choice(("max", "min"))
        match self.random.randrange(5):
            case 0:
                value, index = self.fresh(), self.fresh()
                self.line(f"{value}, {index} = tl.{name}({noisy}, {axis}, return_indices=True)")
                self.define(index, INT32, shape)
                self.without_nan(value, x.dtype, shape)
            case 1:
                self.assign(Value(f"tl.arg{name}({noisy}, {axis})", INT32, shape, unknown))
            case 2:
                self.without_nan(f"tl.{name}({noisy}, {axis})", wide, shape)
            case 3:
                self.without_nan(f"tl.sort({noisy}, descending={self.random.random() < 0.5})", x.dtype, x.shape)
            case _:
                loud = self.random.choice(("", ", propagate_nan=tl.PropagateNan.ALL"))
                self.without_nan(f"tl.{name}imum({noisy}, {x.text}{loud})", x.dtype, x.shape)

    def without_nan(self, text: str, dtype: DType, shape: Shape) -> None:
        """A value with a number for each NaN."""
        name = self.fresh("q")
        self.line(f"{name} = {text}")
        self.assign(Value(f"tl.where({name} == {name}, {name}, -7.0)", dtype, shape, unknown))

    def random_numbers(self) -> None:
        shape = self.shape(limit=256)
        offsets = self.typed(shape, self.random.choice((INT32, UINT32)), 1)
        if self.random.random() < 0.5:
            self.assign(Value(f"tl.rand(n, {offsets.text})", FP32, shape, unknown))
        else:
            name = self.fresh()
            self.line(f"{name} = tl.randint(m, {offsets.text}).to(tl.int32, bitcast=True)")
            self.define(name, INT32, shape)

    def softmaxed(self) -> None:
        shape = self.shape(self.random.choice((1, 2)))
        x = self.assign(clamped(self.cast(self.expression(shape, 1), FP32), -20.0, 20.0))
        if self.random.random() < 0.5:
            self.assign(Value(f"tl.softmax({x.text}, {len(shape) - 1}, keep_dims=True)", FP32, shape, unknown))
        else:
            self.assign(Value(f"tl.sigmoid({x.text})", FP32, shape, unknown))

    def whole_reduction(self) -> None:
        """Over all dimensions at once."""
        x = self.block_value()
        if x.dtype is BF16:
            x = self.assign(self.cast(x, FP32))
        self.assign(Value(f"tl.sum({x.text})", summed(x.dtype), (), unknown))

    def running_first(self) -> None:
        """A scan of pairs, in either direction."""
        x = self.orderable(64)
        axis, reverse = self.random.randrange(len(x.shape)), self.random.random() < 0.5
        position = f"tl.broadcast_to({self.iota(x.shape, axis)}, {list(x.shape)})"
        left, right = self.fresh(), self.fresh()
        self.line(
            f"{left}, {right} = tl.associative_scan(({x.text}, {position}), {axis}, combine_first, reverse={reverse})"
        )
        self.define(left, x.dtype, x.shape)
        self.define(right, INT32, x.shape)

    def call_apart_on_memory(self) -> None:
        """A function that is not inlined reads and writes tiles, and gives back two numbers."""
        dtype = self.random.choice((*INTS, FP32))
        pointer, left, right = self.pointer(dtype, "io"), self.fresh(), self.fresh()
        self.line(
            f"{left}, {right} = apart_memory({pointer} + {self.random.randrange(100)}, {self.typed((), INT32, 1).text})"
        )
        self.define(left, dtype, ())
        self.define(right, INT32, ())

    def mapped(self) -> None:
        """A scalar function with a branch and a loop in it, on every element."""
        shape, dtype = self.target_shape(), self.random.choice((INT32, FP32))
        if not shape:
            return
        x, y = (self.assign(self.typed(shape, dtype, 1)) for _ in range(2))
        self.assign(Value(f"tl.map_elementwise(scalar_choice, {x.text}, {y.text})", dtype, shape, unknown))

    def masked_atomic(self) -> None:
        """With a mask, an order and a scope; what lanes without access get is undefined, so nothing is kept."""
        shape, dtype = self.shape(limit=128), self.random.choice((*ATOMIC, FP16))
        names = ["add"] if dtype is FP16 else ["add", "max", "min", "xchg"]
        names += [] if dtype.is_float else ["and", "or", "xor"]
        pointer, value = self.pointer(dtype, "io"), self.typed(shape, dtype, 1)
        mask = self.boolean(shape, 1)
        if mask.shape != shape:
            mask = Value(f"({self.offsets(shape)} < n)", mask.dtype, shape, unknown)
        sem, scope = (
            self.random.choice(("relaxed", "acquire", "release", "acq_rel")),
            self.random.choice(("cta", "gpu", "sys")),
        )
        name = self.random.choice(names)
        value = self.operand_of(name, value)
        call = f"tl.atomic_{name}({pointer} + {self.offsets(shape)}, {value.text}, mask={mask.text}"
        order = ", ordered=True" if self.promises and (dtype.is_float or self.random.random() < 0.3) else ""
        self.line(f'{call}, sem="{sem}", scope="{scope}"{order})')

    def swap_tiles(self) -> None:
        shape, dtype = self.shape(limit=64), self.random.choice((INT32, UINT32))
        pointer, a, b = self.pointer(dtype, "io"), self.typed(shape, dtype, 1), self.typed(shape, dtype, 1)
        text = f"tl.atomic_cas({pointer} + {self.offsets(shape)}, {a.text}, {b.text})"
        self.assign(Value(text, dtype, shape, unknown))

    def gathered_elsewhere(self) -> None:
        """An index of another size along the axis."""
        x = self.block_value()
        axis, size = self.random.randrange(len(x.shape)), self.size(5)
        shape = tuple(size if d == axis else s for d, s in enumerate(x.shape))
        if prod(shape) > 1024:
            return
        index = self.typed(shape, INT32, 1)
        text = f"tl.gather({x.text}, {self.index_in(index.text, x.shape[axis])}, {axis})"
        self.assign(Value(text, x.dtype, shape, unknown))

    def counted_with_mask(self) -> None:
        shape = self.shape(1)
        x, bins = (
            self.assign(self.typed(shape, self.random.choice((INT32, UINT32)), 1)),
            self.size(7, 1),
        )
        mask = f", mask={self.offsets(shape)} < n" if self.random.random() < 0.7 else ""
        wider = self.random.choice((1, 1, 4))  # what is outside the bins is not counted
        wider = 1 if self.is_checked else wider
        self.assign(Value(f"tl.histogram({x.text} & {wider * bins - 1}, {bins}{mask})", INT32, (bins,), unknown))

    def product_of_types(self) -> None:
        """Dots of small whole numbers in every type, with transposed operands; they are exact in any order."""
        pairs = [*DOTS, *((dtype, FP32) for dtype in self.fp8)] if self.capability != 80 else DOTS
        dtype, out = self.random.choice(pairs)
        least = 4 if self.capability == CPU else 16
        m, n = (least << self.random.randrange(3) for _ in range(2))
        k = max(least, 32) if dtype.bits == 8 else least << self.random.randrange(2)
        m, n, k = (self.random.randint(1, 40) for _ in range(3)) if self.odd else (m, n, k)
        a, b, c = self.fresh(), self.fresh(), self.fresh()
        source = self.pointer(INT8, "in")
        for name, shape in ((a, (m, k)), (b, (k, n))):
            transposed = self.random.random() < 0.4
            offsets = self.offsets(shape[::-1] if transposed else shape)
            text = f"(tl.load({source} + {offsets}) & 3).to(tl.{'float32' if dtype in self.fp8 else dtype.tl})"
            text += f".to(tl.{dtype.tl})" if dtype in self.fp8 else ""
            self.line(f"{name} = tl.trans({text})" if transposed else f"{name} = {text}")
        self.line(f"{c} = tl.dot({a}, {b}, input_precision='ieee', out_dtype=tl.{out.tl})")
        with self.block("for _k in range(m & 1):"):
            self.line(f"{c} = tl.dot({a}, {b}, {c}, input_precision='ieee', out_dtype=tl.{out.tl})")
        self.define(c, out, (m, n))

    def read_fp8(self) -> None:
        """fp8 is only loaded, converted, moved and stored."""
        shape, wide, own = self.shape(), self.random.choice((FP16, BF16, FP32)), self.random.choice(self.fp8)
        pointer, name = self.pointer(own, "in"), self.fresh("f")
        self.line(f"{name} = tl.load({pointer} + {self.offsets(shape)})")
        if self.random.random() < 0.3:
            flat = (prod(shape),)
            self.line(f"{name} = tl.reshape({name}, {list(flat)})")
            shape = flat
        self.assign(Value(f"{name}.to(tl.{wide.tl})", wide, shape, unknown))
        self.store(Value(name, own, shape, unknown))
        narrow = clamped(self.cast(self.expression(shape, 1), FP32), -100.0, 100.0)
        self.store(Value(f"{narrow.text}.to(tl.{own.tl})", own, shape, unknown))
