"""Statements that Triton's kernels do not have: exits from loops and functions, subscripts, `match`, comprehensions
(`docs/python.md`)."""

from math import prod

from tests.fuzz.expressions import Shape, Value, compare, unknown
from tests.fuzz.rules import BOOL, INT32
from tests.fuzz.statements import NESTED, STRAIGHT, Statements

OWN = (
    *(("element", 3), ("element_somewhere", 3), ("slice_of", 3), ("strided", 2), ("column", 3), ("new_axis", 2)),
    *(("with_part", 4), ("with_element", 4), ("chained_comparison", 3), ("unpacked", 3), ("comprehended", 3)),
    *(
        ("matched", 3),
        ("assigned_twice", 2),
        ("asserted", 2),
        ("printed", 1),
        ("call_found", 3),
        ("call_apart_found", 3),
    ),
    ("chosen", 2),
)
OWN_NESTED = (("left_loop", 14), ("skipping_loop", 8), ("endless_loop", 8), ("unrolled_and_left", 4))
HELPERS = """
@jit
def found(x, n, limit):
    for i in range(n & 7):
        if i == limit:
            return x + x, i
        if i & 1:
            continue
        x = x + i
        if n > 60:
            break
    else:
        x = x + 3
    return x, n


@jit(noinline=True)
def apart_found(x, n):
    at = 0
    while True:
        at += 1
        if at > (n & 7):
            return x
        if at == 3:
            continue
        x = x * 3
        if at == 5:
            break
    return x + at


"""
FAR = (
    "2147483640, 2147483647, 3",
    "n + 2147483600, 2147483647, 5",
    "1, 3, 2147483647",
    "m, 2147483647, n * 20000000",
)  # whose ends do not fit


class PythonStatements(Statements):
    """Mostly what is beyond Triton, among all else."""

    def __init__(self, seed: int, capability: int, odd: bool = False) -> None:
        super().__init__(seed, capability, odd=odd)
        few = {name: weight for name, weight in STRAIGHT if self.random.random() < 0.3}
        self.straight = self.uneven(few | dict(OWN))
        self.nested = self.uneven({name: 1 for name, _ in NESTED} | dict(OWN_NESTED))

    # subscripts

    def taken(self, x: Value, key: str, shape: Shape) -> Value:
        return self.assign(Value(f"{x.text}[{key}]", x.dtype, shape, unknown))

    def somewhere(self, size: int) -> str:
        """A run-time scalar below `size`."""
        return f"(n & {size - 1})" if self.random.random() < 0.7 else f"(m % {size})"

    def element(self) -> None:
        x = self.block_value()
        offsets = [self.random.randrange(-size, size) for size in x.shape]
        self.taken(x, ", ".join(map(str, offsets)), ())

    def element_somewhere(self) -> None:
        x = self.block_value()
        self.taken(x, self.somewhere(x.shape[0]), x.shape[1:])

    def column(self) -> None:
        x = self.block_value(2)
        last = x.shape[-1]
        key = self.random.choice((str(self.random.randrange(-last, last)), self.somewhere(last)))
        prefix = "..." if self.random.random() < 0.5 else ", ".join(":" * (len(x.shape) - 1))
        self.taken(x, f"{prefix}, {key}", x.shape[:-1])

    def bounds(self, size: int) -> tuple[str, int]:
        """A slice of an axis, and how many elements it has: a power of two."""
        count = 1 << self.random.randrange(size.bit_length())
        start = self.random.randrange(size - count + 1)
        first = "" if start == 0 else str(start if self.random.random() < 0.7 else start - size)
        return f"{first}:{'' if start + count == size else start + count}", count

    def slice_of(self) -> None:
        x = self.block_value()
        axis = self.random.randrange(len(x.shape))
        text, count = self.bounds(x.shape[axis])
        key = [text if position == axis else ":" for position in range(axis + 1)]
        self.taken(
            x, ", ".join(key), tuple(count if position == axis else size for position, size in enumerate(x.shape))
        )

    def strided(self) -> None:
        x = self.block_value(minimum=2)
        size = x.shape[-1]
        step = self.random.choice((2, -1, -2)) if size > 1 else -1
        count = len(range(size)[::step])
        self.taken(x, f"..., ::{step}", (*x.shape[:-1], count))

    def new_axis(self) -> None:
        x = self.block_value()
        if len(x.shape) < 3:
            self.taken(x, self.random.choice(("..., None", ":" + ", :" * (len(x.shape) - 1) + ", None")), (*x.shape, 1))

    def copied(self) -> Value:
        """A variable of a block that may be given new parts."""
        x = self.block_value()
        return self.assign(Value(x.text, x.dtype, x.shape, unknown))

    def with_part(self) -> None:
        x = self.copied()
        text, count = self.bounds(x.shape[0])
        shape = self.random.choice(((), (count, *x.shape[1:])))
        self.line(f"{x.text}[{text}] = {self.typed(shape, x.dtype, 1).text}")

    def with_element(self) -> None:
        x = self.copied()
        position = self.random.choice((str(self.random.randrange(-x.shape[0], x.shape[0])), self.somewhere(x.shape[0])))
        value = self.typed(x.shape[1:], x.dtype, 1).text
        if x.dtype.is_int and not x.dtype.is_bool and self.random.random() < 0.5:
            self.line(f"{x.text}[{position}] ^= {value}")
        else:
            self.line(f"{x.text}[{position}] = {value}")

    # expressions and assignments

    def chained_comparison(self) -> None:
        shape = self.random.choice(((), self.target_shape()))
        parts = [self.typed(self.random.choice(((), shape)), INT32, 1) for _ in range(3)]
        widest = max((part.shape for part in parts), key=len)
        signs = [self.random.choice(("<", "<=", ">", "!=", "==")) for _ in range(2)]
        text = f"({parts[0].text}) {signs[0]} ({parts[1].text}) {signs[1]} ({parts[2].text})"
        self.assign(Value(text, BOOL, widest, unknown))

    def unpacked(self) -> None:
        values = [self.expression(self.target_shape(), 1) for _ in range(4)]
        names = [self.fresh() for _ in range(2)]
        rest = self.fresh("t")
        form, first, middle, last = self.random.choice(
            (("{0}, *{2}, {1}", 0, 1, 3), ("*{2}, {0}, {1}", 2, 0, 3), ("{0}, {1}, *{2}", 0, 2, 1))
        )
        self.line(f"{form.format(*names, rest)} = ({', '.join(value.text for value in values)})")
        self.line(f"{(name := self.fresh())} = {rest}[0]")
        for bound, value in ((names[0], first), (names[1], last), (name, middle)):
            self.define(bound, values[value].dtype, values[value].shape)

    def comprehended(self) -> None:
        x = self.typed(self.target_shape(), INT32, 1)
        parts = self.fresh("t")
        source = self.random.choice(("(1, 2, 5)", "range(1, 7, 2)", "tl.static_range(3)"))
        condition = self.random.choice(("", " if k != 1", " if 0 < k < 9"))
        self.line(f"{parts} = [({x.text}) * k + 1 for k in {source}{condition}]")
        self.assign(Value(f"{parts}[0] ^ {parts}[-1]", INT32, x.shape, unknown))

    def matched(self) -> None:
        subject = self.random.choice(("3", '"one"', "(1, 2)", "None"))
        target = self.carried()[0]
        cases = ["3 | 4", '"one"', "(1, rest)", "_"]
        with self.block(f"match {subject}:"):
            for case in cases:
                with self.block(f"case {case}:"):
                    self.rebind(target)

    def assigned_twice(self) -> None:
        value, names = self.expression(self.target_shape(), 2), [self.fresh(), self.fresh()]
        self.line(f"{' = '.join(names)} = {value.text}")
        for name in names:
            self.define(name, value.dtype, value.shape)

    def asserted(self) -> None:
        x = self.typed(self.target_shape(), INT32, 1)
        self.line(f'assert (({x.text}) & 7) < 8, "a number below eight"')

    def printed(self) -> None:
        with self.block("if n > 1000000:"):
            self.line('print("n", n)')

    def chosen(self) -> None:
        """A conditional expression on scalars, with effects of neither side on the other."""
        one, other = self.typed((), INT32, 1), self.typed((), INT32, 1)
        self.assign(Value(f"(({one.text}) if {self.boolean((), 1).text} else ({other.text}))", INT32, (), unknown))

    def call_found(self) -> None:
        x = self.assign(self.typed(self.target_shape(), INT32, 1))
        names = [self.fresh(), self.fresh()]
        self.line(f"{', '.join(names)} = found({x.text}, n, {self.random.choice(('m', '2', 'n & 3'))})")
        self.define(names[0], INT32, x.shape)
        self.define(names[1], INT32, ())

    def call_apart_found(self) -> None:
        x = self.assign(self.typed((), INT32, 1))
        self.assign(Value(f"apart_found({x.text}, n)", INT32, (), unknown))

    # loops

    def reason(self, counter: str) -> str:
        """The condition that ends a loop: the counter, scalars, what is loaded or what tiles hold."""
        kind = self.random.randrange(5)
        if kind == 0:
            return f"{counter} {self.random.choice(('>=', '>', '=='))} {self.random.choice(('n & 3', 'm & 3', '2'))}"
        if kind == 1:
            return self.boolean((), 1).text
        if kind == 2:
            return f"tl.load({self.pointer(INT32, 'in')} + ({counter} & 63)) > 40"
        tile = self.typed(self.random.choice(((8,), (4, 2))), INT32, 1)
        whole = f"tl.max(tl.reshape({tile.text}, [{prod(tile.shape)}]), 0)"
        return compare(">", Value(whole, INT32, (), unknown), Value(f"30 + {counter}", INT32, (), unknown)).text

    def leave(self, counter: str, words: tuple[str, ...], targets: list[Value]) -> None:
        with self.block(f"if {self.reason(counter)}:"):
            if self.random.random() < 0.4:
                self.rebind(self.random.choice(targets))
            self.line(self.random.choice(words))

    def body(self, counter: str, words: tuple[str, ...], targets: list[Value], budget: int) -> None:
        """The body of a loop, with an exit before, between or after its statements."""
        self.pool.append(Value(counter, INT32, (), unknown))
        if self.random.random() < 0.7:
            self.leave(counter, words, targets)
        self.change(targets, budget)
        if self.random.random() < 0.6:
            self.leave(counter, words, targets)

    def otherwise(self, targets: list[Value]) -> None:
        if self.random.random() < 0.3:
            with self.block("else:"):
                self.rebind(self.random.choice(targets))

    def left_loop(self, budget: int) -> None:
        targets, index = self.carried(), self.fresh("i")
        bounds = self.random.choice(("n & 7", "m & 3, m & 7", "1, 6, 2", "n & 3, 0, -1", "0, 9, (n & 3) + 1", *FAR))
        hint = self.random.choice(("", "", ", num_stages=3"))
        with self.block(f"for {index} in tl.range({bounds}{hint}):"):
            words = ("break", "break", "break", "continue", "return" if self.random.random() < 0.2 else "break")
            self.body(index, words, targets, budget)
        self.otherwise(targets)

    def skipping_loop(self, budget: int) -> None:
        targets, index = self.carried(), self.fresh("i")
        with self.block(f"for {index} in tl.range(0, m & 7{self.random.choice(('', ', num_stages=3'))}):"):
            self.body(index, ("continue",), targets, budget)

    def endless_loop(self, budget: int) -> None:
        targets, counter = self.carried(), self.fresh("w")
        self.line(f"{counter} = 0")
        with self.block(self.random.choice(("while True:", f"while {counter} < 9:"))):
            self.line(f"{counter} += 1")
            with self.block(f"if {counter} > {self.random.choice(('3', '(n & 3)'))}:"):
                self.line("break")
            self.body(counter, ("break", "continue"), targets, budget)
        self.otherwise(targets)

    def unrolled_and_left(self, budget: int) -> None:
        targets, index = self.carried(), self.fresh("i")
        with self.block(f"for {index} in tl.static_range(3):"):
            self.line(f"{(name := self.fresh('w'))} = {index}")
            self.body(name, ("break", "continue"), targets, budget)
        self.otherwise(targets)
