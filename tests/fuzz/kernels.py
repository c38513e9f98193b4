"""Whole kernels, generated from a seed: the same seed gives the same text.

`generate_elementwise` makes kernels of loads, expressions and stores, which NumPy can follow; `generate_kernel` makes
everything else: loops with carried values, branches, reductions, scans, shapes, calls, block pointers, descriptors,
atomics.
Every statement is followed by an assertion of the dtype and shape that it must have.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from random import Random

import numpy as np

from tests.fuzz.expressions import Expressions, Shape, Value, unknown
from tests.fuzz.rules import ARITHMETIC, BOOL, FP32, INT32, INT64, DType, convert

ELEMENTS = 8192  # of every array
CPU = 0  # the capability that stands for the host
SCALARS = {"n": INT32, "m": INT32, "big": INT64, "real": FP32, "flag": BOOL}
HEADER = """import tilework.language as tl
from tilework import jit


@jit
def combine_add(a, b):
    return a + b


@jit
def combine_max(a, b):
    return tl.where(a > b, a, b)


@jit
def combine_first(a, i, b, j):
    keep = (a < b) | ((a == b) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@jit
def combine_affine(a, b, c, d):
    return a * c, b * c + d


@jit
def early(x, n):
    if n > 40:
        return x + x
    if n > 20:
        y = x * x
        return y
    return x


@jit
def twice(x, n, TIMES: tl.constexpr):
    for i in range(n & 3):
        x = x + x
    if TIMES > 1:
        return twice(x, n, TIMES - 1), n + 1
    else:
        return x, n


@jit(noinline=True)
def apart(x, n):
    if n % 3 == 0:
        x = x + x
    return x


@jit(noinline=True)
def apart_memory(p, n):
    x = tl.load(p + tl.arange(0, 16))
    for i in range(n & 3):
        x = x + tl.flip(x, 0)
    tl.store(p + 16 + tl.arange(0, 16), x)
    return tl.max(x, 0).to(x.dtype), n + 1


PASSED = tl.constexpr(early)


@jit
def passed(x, n, F: tl.constexpr):
    return F(x, n)


@jit
def passed_item(x, n, F: tl.constexpr):
    return F[1](x, n)


@jit
def by_type(x, F: tl.constexpr, G: tl.constexpr):
    if x.dtype is tl.float32:
        return F(x, x)
    elif x.dtype is tl.int32 or x.dtype is tl.float16:
        return G(x, x)
    else:
        return x


@jit(noinline=True)
def described(p, ROWS: tl.constexpr, WIDTH: tl.constexpr, SHAPE: tl.constexpr):
    return tl.make_tensor_descriptor(p, [ROWS, WIDTH], [WIDTH, 1], SHAPE)


@jit(noinline=True)
def copied_rows(p, q, WIDTH: tl.constexpr, SHAPE: tl.constexpr):
    source, target = described(p, 16, WIDTH, SHAPE), described(q, 16, WIDTH, SHAPE)
    target.store([0, 0], source.load([0, 0]))
    return source


@jit
def scalar_choice(x, y):
    if x > y:
        return x - y
    z = y
    for i in range(2):
        z = z + x
    return z


"""


@dataclass
class Kernel:
    """The text of a kernel, the types of its parameters, and what it must store (elementwise kernels only)."""

    seed: int
    source: str
    signature: dict[str, str]
    divisible: tuple[str, ...]
    inputs: dict[str, DType] = field(default_factory=dict)
    stores: list[tuple[str, Value]] = field(default_factory=list)
    capability: int = 90
    numbers: dict[str, int] = field(default_factory=dict)  # arguments that are not those of all kernels
    grid: tuple[int] = (2,)
    aliases: dict[str, tuple[str, int]] = field(
        default_factory=dict
    )  # arrays that are in another one, so many elements behind


class Writer(Expressions):
    """Statements of one kernel, and the values in scope after them."""

    def __init__(self, seed: int, capability: int = 90, odd: bool = False) -> None:
        super().__init__(Random(seed))
        self.odd = odd  # sizes need not be powers of two
        self.promises = False  # the same bits everywhere
        self.is_checked = False  # nothing that the sanitizer reports
        self.seed = seed
        self.capability = capability
        self.lines: list[str] = []
        self.indent = 1
        self.counter = 0
        self.signature: dict[str, str] = {}
        self.inputs: dict[str, DType] = {}
        self.stores: list[tuple[str, Value]] = []
        self.used: dict[str, int] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix: str = "v") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    @contextmanager
    def block(self, header: str):
        """An indented block; what it defines is out of scope afterwards."""
        self.line(header)
        self.indent += 1
        before = list(self.pool)
        try:
            yield
        finally:
            self.indent -= 1
            self.pool = before

    def assign(self, value: Value, name: str = "") -> Value:
        """``name = value``, asserted and in scope."""
        name = name or self.fresh()
        self.line(f"{name} = {value.text}")
        return self.define(name, value.dtype, value.shape, value)

    def define(self, name: str, dtype: DType, shape: Shape, value: Value | None = None) -> Value:
        """A variable that the line above has bound."""
        self.line(f"tl.static_assert({name}.dtype is tl.{dtype.tl})")
        if shape:
            self.line(f"tl.static_assert({name}.shape == {list(shape)})")
        compute = once(name, value.compute) if value is not None else unknown
        defined = Value(name, dtype, shape, compute)
        self.pool.append(defined)
        return defined

    def size(self, bits: int, least: int = 0) -> int:
        """A size below ``2**bits``: a power of two that is at least ``2**least``, or, in kernels with odd ones, any."""
        power = 1 << self.random.randrange(least, bits)
        return self.random.randint(1, (1 << bits) - 1) if self.odd and self.random.random() < 0.6 else power

    def index_in(self, index: str, size: int) -> str:
        """Any integers as indices along an axis of `size`."""
        return f"({index} & {size - 1})" if size & (size - 1) == 0 else f"(({index} & 1023) % {size})"

    def shape(self, rank: int | None = None, limit: int = 1024) -> Shape:
        rank = rank or self.random.choice((1, 1, 1, 2, 2, 3))
        while True:
            shape = tuple(self.size(7 if rank < 3 else 5) for _ in range(rank))
            if prod(shape) <= limit:
                return shape

    def pointer(self, dtype: DType, prefix: str) -> str:
        """A parameter that points to `dtype`; there are at most two of each kind."""
        name = f"{prefix}_{dtype.code}_{self.random.randrange(2)}"
        self.signature.setdefault(name, f"*{dtype.code}")
        self.inputs.setdefault(name, dtype)
        return name

    def offsets(self, shape: Shape) -> str:
        """The row-major positions of a block."""
        parts = []
        for axis, size in enumerate(shape):
            index = f"tl.arange(0, {size})"
            if len(shape) > 1:
                index += "[" + ", ".join(":" if other == axis else "None" for other in range(len(shape))) + "]"
            stride = prod(shape[axis + 1 :])
            parts.append(f"{index} * {stride}" if stride > 1 else index)
        return " + ".join(parts)

    def load(self, shape: Shape, dtype: DType) -> Value:
        """A block from memory, perhaps masked."""
        pointer = self.pointer(dtype, "in")
        start = self.random.randrange(0, 64)
        name, offsets = self.fresh(), self.fresh("o")
        self.line(f"{offsets} = {self.offsets(shape)}")
        address = f"{pointer} + {start} + pid * {prod(shape)} + {offsets}"
        read = reader(pointer, start, shape, dtype)
        if self.random.random() < 0.5:
            mask, other = self.boolean(shape, 1), self.number(dtype, ("int",))
            if mask.shape != shape:
                mask = Value(f"({offsets} < n * 8)", BOOL, shape, below(shape))
            self.line(f"{name} = tl.load({address}, mask={mask.text}, other={other.text})")
            literal = other.literal
            compute = lambda e: np.where(mask.compute(e), read(e), convert(np.asarray(literal), dtype))
        else:
            self.line(f"{name} = tl.load({address})")
            compute = read
        return self.define(name, dtype, shape, Value(name, dtype, shape, compute))

    def store(self, value: Value) -> None:
        """Store a value where no other statement does."""
        dtype = value.dtype
        size = prod(value.shape)
        name = f"out_{dtype.code}"
        number = 0
        assert 2 * size <= ELEMENTS, f"a result of {value.shape} does not fit into an array"
        while self.used.get(f"{name}_{number}", 0) + 2 * size > ELEMENTS:
            number += 1
        pointer = f"{name}_{number}"
        base = self.used.get(pointer, 0)
        self.used[pointer] = base + 2 * size
        self.signature.setdefault(pointer, f"*{dtype.code}")
        self.inputs.setdefault(pointer, dtype)
        address = f"{pointer} + {base} + pid * {size}"
        if value.shape:
            address += f" + {self.offsets(value.shape)}"
        self.line(f"tl.store({address}, {value.text})")
        self.stores.append((f"{pointer}:{base}", value))

    def prologue(self) -> None:
        self.line("pid = tl.program_id(0)")
        for name, dtype in SCALARS.items():
            self.signature[name] = dtype.code
            self.pool.append(Value(name, dtype, (), lambda e, name=name, dtype=dtype: convert(e[name], dtype)))

    def finish(self, helpers: str = "") -> Kernel:
        """The text: parameters are known only now."""
        pointers = [p for p in self.signature if self.signature[p].startswith("*")]
        order = [*pointers, *(p for p in self.signature if p not in pointers)]
        divisible = tuple(p for p in order if self.random.random() < 0.4 and p not in ("real", "flag"))
        text = HEADER + helpers + f"@jit\ndef kernel({', '.join(order)}):\n" + "\n".join(self.lines) + "\n"
        signature = {p: self.signature[p] for p in order}
        return Kernel(self.seed, text, signature, divisible, self.inputs, self.stores, self.capability)


def once(name: str, compute: Callable) -> Callable:
    """A variable is computed when it is first read."""

    def read(environment):
        if name not in environment:
            environment[name] = compute(environment)
        return environment[name]

    return read


def reader(pointer: str, start: int, shape: Shape, dtype: DType) -> Callable:
    def read(environment):
        first = start + environment["pid"] * prod(shape)
        return environment[pointer][first : first + prod(shape)].reshape(shape).astype(dtype.numpy)

    return read


def below(shape: Shape) -> Callable:
    return lambda environment: np.arange(prod(shape)).reshape(shape) < environment["n"] * 8


def generate_elementwise(seed: int, odd: bool = False) -> Kernel:
    """Loads, expressions and stores only."""
    writer = Writer(seed, odd=odd)
    writer.prologue()
    for _ in range(writer.random.randint(1, 2)):
        shape = writer.shape()
        for _ in range(2):
            writer.load(shape, writer.random.choice(ARITHMETIC))
        for _ in range(4):
            writer.store(writer.assign(writer.expression(shape, 3)))
    return writer.finish()


def generate_kernel(
    seed: int,
    capability: int = 90,
    about_descriptors: bool = False,
    odd: bool = False,
    about_python: bool = False,
    promises: bool = False,
    about_loops: bool = False,
    checked: bool = False,
    about_hashes: bool = False,
    about_strides: bool = False,
    about_tiles: bool = False,
    about_edges: bool = False,
) -> Kernel:
    """A kernel with everything that Triton has in it, or mostly with descriptors, with loops, with integers that
    overflow, with tiles of all strides, with odd tiles that have many uses, with values at their limits, or with Python
    that Triton does not have.

    `odd`: with sizes that are no powers of two. `promises`: what it computes may be the same bits everywhere, so
    atomics whose order matters take turns; and it may return between its accesses to memory. `checked`: with nothing
    that the sanitizer reports.
    """
    from tests.fuzz import edge_statements, stride_statements, tile_statements
    from tests.fuzz.hash_statements import NUMBERS, HashStatements
    from tests.fuzz.loop_statements import LoopStatements
    from tests.fuzz.python_statements import HELPERS, PythonStatements
    from tests.fuzz.statements import Statements

    plain = Statements(seed, capability, about_descriptors, odd)
    own = (
        PythonStatements
        if about_python
        else LoopStatements
        if about_loops
        else HashStatements
        if about_hashes
        else stride_statements.StrideStatements
        if about_strides
        else tile_statements.TileStatements
        if about_tiles
        else edge_statements.EdgeStatements
        if about_edges
        else None
    )
    writer = own(seed, capability, odd) if own is not None else plain
    writer.promises, writer.is_checked = promises, checked
    writer.prologue()
    if writer.random.random() < 0.1:
        with writer.block(f"if n > {writer.random.randrange(30, 70)}:"):
            writer.line("return")
    for _ in range(2):
        writer.load(writer.shape(), writer.random.choice(ARITHMETIC))
    for _ in range(writer.random.randint(2, 4) if about_loops or about_tiles else writer.random.randint(4, 7)):
        writer.statement(2)
        if promises and writer.random.random() < 0.1:
            with writer.block(f"if n > {writer.random.randrange(30, 100)}:"):
                writer.line("return")
    generated = [value for value in writer.pool if value.text not in SCALARS]
    for value in writer.random.sample(generated, len(generated) if about_tiles else min(9, len(generated))):
        writer.store(value)
    helpers = (
        tile_statements.HELPERS
        if about_tiles
        else HELPERS + edge_statements.HELPERS
        if about_edges
        else HELPERS
        if about_python
        else ""
    )
    made = writer.finish(helpers)
    if about_loops:
        choices = {"n": (37, 5, 16, 40), "m": (6, 0, 15, -3, -16), "big": (11, 1, 3000), "flag": (True, False)}
        made.numbers = {name: writer.random.choice(numbers) for name, numbers in choices.items()}
    if about_hashes:
        made.numbers = {name: writer.random.choice(numbers) for name, numbers in NUMBERS.items()}
    if about_strides:
        numbers = stride_statements.NUMBERS
        made.numbers = {name: writer.random.choice(choices) for name, choices in numbers.items()}
    return made
