"""Statements that touch memory: loads and stores of all kinds, atomics, block pointers, descriptors; and dots."""

from math import prod

from tests.fuzz.expressions import Value, clamped, unknown
from tests.fuzz.rules import BF16, BOOL, FP16, FP32, FP64, INT8, INT16, INT32, INT64, INTS, UINT32, UINT64, DType
from tests.fuzz.value_statements import ValueStatements

ATOMIC = (INT32, UINT32, INT64, UINT64, FP32, FP64)
COLUMNS = 64  # of the matrices seen through block pointers and descriptors; their number of rows is `n`


class MemoryStatements(ValueStatements):
    """Statements that read or write arrays."""

    def read(self) -> None:
        self.load(self.shape(), self.random.choice((BOOL, *INTS, FP16, BF16, FP32, FP64)))

    def masked_copy(self) -> None:
        """Lanes that are masked off are undefined, and never stored."""
        shape, dtype = self.shape(), self.random.choice(INTS)
        source, target, offsets, mask = self.pointer(dtype, "in"), self.pointer(dtype, "io"), self.fresh(), self.fresh()
        self.line(f"{offsets} = {self.offsets(shape)} + pid * {prod(shape)}")
        self.line(f"{mask} = {offsets} < n * {self.random.choice((1, 4, 16))}")
        value = f"tl.load({source} + {offsets}, mask={mask}) + 1"
        self.line(f"tl.store({target} + {offsets}, {value}, mask={mask})")

    def selected_load(self) -> None:
        """A load whose mask is a splat, selected by the same condition."""
        shape, dtype = self.shape(), self.random.choice((*INTS, FP32))
        condition = self.assign(self.boolean((), 1))
        other = self.cast(self.leaf(shape), dtype)
        pointer = self.pointer(dtype, "in")
        mask = f"tl.broadcast_to({condition.text}, {list(shape)})"
        loaded = f"tl.load({pointer} + {self.offsets(shape)}, mask={mask}, other={other.text})"
        self.assign(Value(f"tl.where({condition.text}, {loaded}, {other.text})", dtype, shape, unknown))

    def stale_load(self) -> None:
        """A load selected after a store to the same address."""
        shape, dtype = self.shape(limit=256), self.random.choice((INT32, FP32, INT8))
        condition = self.assign(self.boolean((), 1))
        pointer, address, loaded = self.pointer(dtype, "io"), self.fresh("p"), self.fresh()
        other, new = self.typed(shape, dtype, 1), self.typed(shape, dtype, 1)
        self.line(f"{address} = {pointer} + {self.offsets(shape)}")
        mask = f"tl.broadcast_to({condition.text}, {list(shape)})"
        self.line(f"{loaded} = tl.load({address}, mask={mask}, other=0)")
        self.line(f"tl.store({address}, {new.text})")
        self.assign(Value(f"tl.where({condition.text}, {loaded}, {other.text})", dtype, shape, unknown))

    def update_in_place(self) -> None:
        """Read, write, read again: the second read must see the write."""
        shape, dtype = self.shape(limit=256), self.random.choice((BOOL, *INTS, FP32))
        pointer = self.pointer(dtype, "io")
        address = self.fresh("p")
        self.line(f"{address} = {pointer} + pid * {prod(shape)} + {self.offsets(shape)}")
        first = self.assign(Value(f"tl.load({address})", dtype, shape, unknown))
        self.line(f"tl.store({address}, {self.cast(self.expression(shape, 1), dtype).text})")
        second = self.assign(Value(f"tl.load({address})", dtype, shape, unknown))
        if dtype is not BOOL:
            self.assign(Value(f"{first.text} + {second.text}", dtype, shape, unknown))

    def atomic(self) -> None:
        shape, dtype = self.random.choice(((), self.shape(limit=128))), self.random.choice(ATOMIC)
        names = ["add", "max", "min", "xchg"] if dtype.is_float else ["add", "max", "min", "xchg", "and", "or", "xor"]
        pointer, value = self.pointer(dtype, "io"), self.typed(shape, dtype, 1)
        address = f"{pointer} + ({self.offsets(shape)}) // 2" if shape else pointer
        order = ", ordered=True" if self.promises else ""
        name = self.random.choice(names)
        text = f"tl.atomic_{name}({address}, {self.operand_of(name, value).text}{order})"
        self.assign(Value(text, dtype, shape, unknown))

    def operand_of(self, name: str, value: Value) -> Value:
        """Return the operand of an atomic, without NaNs for max and min: they order a NaN by its sign bit, which is not
        defined for a computed NaN."""
        if not value.dtype.is_float or name not in ("max", "min"):
            return value
        return self.cast(clamped(value, -1000.0, 1000.0), value.dtype)

    def swap(self) -> None:
        dtype = self.random.choice((INT16, INT32, UINT32, INT64))
        pointer, a, b = self.pointer(dtype, "io"), self.typed((), dtype, 1), self.typed((), dtype, 1)
        self.assign(Value(f"tl.atomic_cas({pointer} + 3, {a.text}, {b.text})", dtype, (), unknown))

    def product(self) -> None:
        """A dot of small whole numbers; what is added to it may be rounded in another order, so it is only stored."""
        dtype, out = self.random.choice(((FP16, FP32), (BF16, FP32), (FP32, FP32), (FP64, FP64), (INT8, INT32)))
        batch = (2,) if self.random.random() < 0.3 else ()
        m, n, k = (16 << self.random.randrange(2) for _ in range(3))
        if dtype is INT8:
            k = 32
        scale = ""
        if self.promises and self.odd and dtype is not INT8:  # sums that are zeros, with either sign
            m, n, k = (self.random.randint(1, 33) for _ in range(3))
            tiny = "1e-170" if dtype is FP64 else "1e-24"  # products of two are nearly 0, and -0 if they are negative
            scale = f" * {self.random.choice(('0.0', '1.0', tiny, tiny))}"
        a, b, c = self.fresh(), self.fresh(), self.fresh()
        source = self.pointer(dtype if scale else INT8, "in")
        for name, shape in ((a, (*batch, m, k)), (b, (*batch, k, n))):
            loaded = f"tl.load({source} + {self.offsets(shape)})"
            self.line(f"{name} = ({loaded}{scale or ' & 7'}).to(tl.{dtype.tl})")
        shape = (*batch, m, n)
        addend = self.typed(shape, out, 1)
        call = f"tl.dot({a}, {b}, input_precision='ieee', out_dtype=tl.{out.tl})"
        forms = (call, f"{call} + {addend.text}", f"{addend.text} + {call}", f"{call} * 2")
        accumulated = f"tl.dot({a}, {b}, {addend.text}, input_precision='ieee', out_dtype=tl.{out.tl})"
        self.line(f"{c} = {self.random.choice((*forms, accumulated))}")
        self.line(f"tl.static_assert({c}.dtype is tl.{out.tl})")
        self.store(Value(c, out, shape, unknown))

    def product_by_sum(self) -> None:
        """Multiply and sum, which may become a dot."""
        m, n, k = 16, 16, 16
        dtype = self.random.choice((FP32, FP16))
        a, b, c = self.fresh(), self.fresh(), self.fresh()
        source = self.pointer(INT8, "in")
        self.line(f"{a} = (tl.load({source} + {self.offsets((m, k))}) & 7).to(tl.{dtype.tl})")
        self.line(f"{b} = (tl.load({source} + {self.offsets((k, n))}) & 7).to(tl.{dtype.tl})")
        self.line(f"{c} = tl.sum({a}[:, :, None] * {b}[None, :, :], 1)")
        self.store(Value(c, dtype, (m, n), unknown))

    def block_pointer(self) -> None:
        """A block of a matrix of RT rows, walked over in a loop."""
        dtype = self.random.choice((*INTS, FP16, FP32))
        shape = (self.size(5), self.size(6))
        pointer, block, total = self.pointer(dtype, "in"), self.fresh("b"), self.fresh()
        order = self.random.choice(("(1, 0)", "(0, 1)"))
        self.line(
            f"{block} = tl.make_block_ptr({pointer}, (n, {COLUMNS}), ({COLUMNS}, 1), (pid, m & 15), {shape}, {order})"
        )
        self.line(f"{total} = tl.zeros({list(shape)}, tl.{dtype.tl})")
        if self.random.random() < 0.4:
            with self.block("if m > 20:"):
                self.line(f"{block} = tl.advance({block}, (2, 3))")
        iterator = self.random.choice(("range(m & 3)", "tl.static_range(2)", "range(0, 4, 2)"))
        with self.block(f"for {self.fresh('i')} in {iterator}:"):
            load = f'tl.load({block}, boundary_check=(0, 1), padding_option="zero")'
            self.line(f"{total} += {load}")
            step = self.random.choice(("(0, 8)", "(4, 0)", "(1, -1)", f"({self.typed((), INT32, 0).text} & 3, 0)"))
            self.line(f"{block} = tl.advance({block}, {step})")
        self.define(total, dtype, shape)
        if self.random.random() < 0.5:
            target = self.pointer(dtype, "io")
            self.line(
                f"{block} = tl.make_block_ptr({target}, (n, {COLUMNS}), ({COLUMNS}, 1), (m & 7, 4), {shape}, (1, 0))"
            )
            self.line(f"tl.store({block}, {total}, boundary_check=(0, 1))")

    def columns(self, dtype: DType, bits: int, least: int = 0) -> int:
        """Of a descriptor's block: 16 bytes at least, where they are a power of two."""
        size = self.size(bits, least)
        return max(128 // dtype.bits, size) if size & (size - 1) == 0 else size

    def descriptor(self) -> None:
        dtype = self.random.choice((INT8, INT32, UINT32, FP16, FP32, FP64))
        rows, columns = self.size(4), self.columns(dtype, 6)
        shape = (rows, columns)
        pointer, desc = self.pointer(dtype, "io"), self.fresh("d")
        padding = ', padding_option="nan"' if dtype.is_float and self.random.random() < 0.3 else ""
        self.line(
            f"{desc} = tl.make_tensor_descriptor({pointer}, [n, {COLUMNS}], [{COLUMNS}, 1], {list(shape)}{padding})"
        )
        value = self.assign(Value(f"{desc}.load([pid * 2, {columns}])", dtype, shape, unknown))
        if self.random.random() < 0.5:
            name = self.assign(self.typed(shape, dtype, 1)).text
            with self.block("for _i in range(m & 3):"):
                self.line(f"{name} += {desc}.load([_i * {rows}, 0])")
        change = self.typed(shape, dtype, 1)
        atomic = (INT32, UINT32) if self.promises else (INT32, UINT32, FP32)
        if dtype in atomic and self.random.random() < 0.5:
            kind = self.random.choice(("add",) if dtype is FP32 else ("add", "max", "min", "and", "or", "xor"))
            self.line(f"{desc}.atomic_{kind}([m & 15, 0], {change.text})")
        else:
            self.line(f"{desc}.store([m & 15, 0], {change.text})")
        self.assign(Value(f"{desc}.load([m & 7, 0])", value.dtype, shape, unknown))
