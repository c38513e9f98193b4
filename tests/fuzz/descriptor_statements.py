"""Statements about descriptors as values, and about the memory that they and pointers share.

Functions that are not inlined make descriptors, loops make and carry them, and what is stored one way is loaded the
other way. Each program works on rows of its own, so that only the order within a program decides.
"""

from tests.fuzz.expressions import Value, unknown
from tests.fuzz.memory_statements import COLUMNS, MemoryStatements
from tests.fuzz.rules import FP16, FP32, INT8, INT32, DType

ROWS = 16  # of each program


class DescriptorStatements(MemoryStatements):
    """See the module docstring."""

    def own_rows(self, dtype: DType) -> str:
        """The address of the rows of this program."""
        name = self.fresh("p")
        self.line(f"{name} = {self.pointer(dtype, 'io')} + pid * {ROWS * COLUMNS}")
        return name

    def block_shape(self, dtype: DType) -> tuple[int, int]:
        return self.size(4, 1), self.columns(dtype, 6, 3)

    def made(self, address: str, shape: tuple[int, int]) -> str:
        """An expression that makes a descriptor of the rows from `address` on."""
        if self.random.random() < 0.5:
            return f"described({address}, {ROWS}, {COLUMNS}, {shape})"
        return f"tl.make_tensor_descriptor({address}, [{ROWS}, {COLUMNS}], [{COLUMNS}, 1], {list(shape)})"

    def descriptors_of_calls(self) -> None:
        """Each call makes a descriptor of its own."""
        dtype = self.random.choice((INT8, INT32, FP16, FP32))
        shape, rows = self.block_shape(dtype), self.own_rows(dtype)
        names = [self.fresh("d") for _ in range(3)]
        for number, name in enumerate(names[:2]):
            self.line(f"{name} = {self.made(f'{rows} + {number * COLUMNS}', shape)}")
        self.line(f"{names[2]} = copied_rows({rows}, {rows} + {8 * COLUMNS}, {COLUMNS}, {shape})")
        if self.random.random() < 0.5:
            with self.block(f"if n > {self.random.randrange(30, 45)}:"):
                self.line(f"{names[0]} = {names[1]}")
        for name in self.random.sample(names, 2):
            self.assign(Value(f"{name}.load([{self.random.randrange(3)}, 0])", dtype, shape, unknown))

    def carried_descriptors(self) -> None:
        """Descriptors of earlier iterations are used in later ones, and behind the loop."""
        dtype = self.random.choice((INT8, INT32, FP32))
        shape, rows, total = self.block_shape(dtype), self.own_rows(dtype), self.fresh()
        last, before, index = self.fresh("d"), self.fresh("d"), self.fresh("i")
        self.line(f"{last} = {self.made(rows, shape)}")
        self.line(f"{before} = {last}")
        self.line(f"{total} = tl.zeros({list(shape)}, tl.{dtype.tl})")
        loop = self.random.choice(("range(m & 7)", "tl.range(0, 5, num_stages=3)", "while"))
        if loop == "while":
            self.line(f"{index} = m & 3")
        with self.block(f"while {index} < 5:" if loop == "while" else f"for {index} in {loop}:"):
            here = self.fresh("d")
            self.line(f"{here} = {self.made(f'{rows} + {index} * {COLUMNS}', shape)}")
            self.line(f"{total} += {here}.load([0, 0]) + {last}.load([1, 0]) * 2 + {before}.load([0, 0]) * 3")
            if self.random.random() < 0.5:
                with self.block(f"if {self.boolean((), 1).text}:"):
                    self.line(f"{before} = {last}")
            else:
                self.line(f"{before} = {last}")
            self.line(f"{last} = {here}")
            if loop == "while":
                self.line(f"{index} += 1")
        self.define(total, dtype, shape)
        self.assign(Value(f"{last}.load([0, 0]) + {before}.load([1, 0])", dtype, shape, unknown))

    def one_way_or_the_other(self) -> None:
        """Store through a descriptor or pointers and load through the other, or the same descriptor, once or in a
        loop."""
        dtype = self.random.choice((INT32, FP32))
        shape, rows, desc, cells = self.block_shape(dtype), self.own_rows(dtype), self.fresh("d"), self.fresh("o")
        self.line(f"{desc} = {self.made(rows, shape)}")
        self.line(f"{cells} = tl.arange(0, {shape[0]})[:, None] * {COLUMNS} + tl.arange(0, {shape[1]})[None, :]")
        total = self.assign(self.typed(shape, dtype, 1))
        index = self.fresh("i")
        with self.block(f"for {index} in range({self.random.choice(('1', 'm & 3', '2'))}):"):
            by_descriptor = self.random.random() < 0.6
            by_adding = by_descriptor and self.random.random() < 0.3 and not (self.promises and dtype is FP32)
            change = f"{total.text} + {index}"
            if by_adding:
                self.line(f"{desc}.atomic_add([{index}, 0], {change})")
            elif by_descriptor:
                self.line(f"{desc}.store([{index}, 0], {change})")
            else:
                self.line(f"tl.store({rows} + {index} * {COLUMNS} + {cells}, {change})")
            if not by_descriptor or self.random.random() < 0.5:
                self.line(f"{total.text} = {desc}.load([{index}, 0])")
            else:
                self.line(f"{total.text} = tl.load({rows} + {index} * {COLUMNS} + {cells})")
