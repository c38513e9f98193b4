"""All statements of generated kernels; here those with blocks in them: branches and loops with carried values."""

from tests.fuzz.expressions import Value, binary, unknown
from tests.fuzz.library_statements import LibraryStatements
from tests.fuzz.rules import BOOL, FP32, INT8, INT32, INT64, INTS, DType

STRAIGHT = (
    *(
        ("compute", 10),
        ("compute_scalar", 3),
        ("literal", 2),
        ("constants", 3),
        ("stale_load", 2),
        ("transposed", 2),
        ("filled", 2),
        ("read", 4),
        ("read_fp8", 1),
    ),
    *(("masked_copy", 1), ("selected_load", 2), ("update_in_place", 2), ("atomic", 2), ("swap", 1), ("reduction", 5)),
    *(("scan", 2), ("reshaped", 2), ("permuted", 2), ("expanded", 3), ("joined", 2), ("gathered", 1), ("flipped", 1)),
    *(
        ("counted", 1),
        ("call_early", 2),
        ("call_recursive", 1),
        ("call_apart", 1),
        ("call_passed", 1),
        ("rounded_function", 1),
    ),
    *(("hinted", 1), ("ternary", 2), ("product", 2), ("product_by_sum", 1), ("block_pointer", 2), ("descriptor", 2)),
    *(("sorted_values", 1), ("largest_values", 1), ("random_numbers", 1), ("softmaxed", 1), ("whole_reduction", 1)),
    *(("running_first", 1), ("call_apart_on_memory", 1), ("mapped", 1), ("masked_atomic", 2), ("swap_tiles", 1)),
    *(("gathered_elsewhere", 1), ("counted_with_mask", 1), ("reduced_with_nan", 2), ("product_of_types", 2)),
    *(("barrier", 1), ("volatile_read", 2), ("locked", 2), ("awaited", 2)),
)
DESCRIPTORS = (
    *(("descriptors_of_calls", 3), ("carried_descriptors", 3), ("one_way_or_the_other", 3), ("descriptor", 1)),
    *(("compute", 1), ("read", 1)),
)
NESTED = (
    ("branch", 6),
    ("counted_loop", 6),
    ("unrolled_loop", 2),
    ("bounded_while", 4),
    ("memory_loop", 2),
    ("twins", 3),
)
MORE_HINTS = (", flatten=True", ", warp_specialize=True", ", num_stages=2, disallow_acc_multi_buffer=True")


class Statements(LibraryStatements):
    """Draws statements; the budget bounds the nesting."""

    def __init__(self, seed: int, capability: int, about_descriptors: bool = False, odd: bool = False) -> None:
        super().__init__(seed, capability, odd)
        straight = DESCRIPTORS if about_descriptors else STRAIGHT
        self.straight, self.nested = self.uneven(dict(straight)), self.uneven(dict(NESTED))

    def statement(self, budget: int) -> None:
        weights = {**self.straight, **(self.nested if budget > 0 else {})}
        name = self.random.choices(list(weights), list(weights.values()))[0]
        if name in self.nested:
            getattr(self, name)(budget - 1)
        else:
            getattr(self, name)()

    def rebind(self, target: Value) -> None:
        """``target = something of the same type``."""
        self.line(f"{target.text} = {self.typed(target.shape, target.dtype, 2).text}")

    def carried(self) -> list[Value]:
        """Variables that a block below will rebind: made by assignments, never parameters."""
        own = [value for value in self.pool if value.text[0] == "v"]
        while len(own) < 2:
            own.append(self.assign(self.expression(self.target_shape(), 1)))
        return self.random.sample(own, min(len(own), self.random.randint(1, 3)))

    def change(self, targets: list[Value], budget: int) -> None:
        """The body of a loop or branch: some statements, then new values for the targets."""
        for _ in range(self.random.randint(0, 2)):
            self.statement(budget)
        for position, target in enumerate(targets):
            twins = [t for t in targets if (t.dtype, t.shape) == (target.dtype, target.shape) and t is not target]
            if twins and self.random.random() < 0.3:
                twin = self.random.choice(twins)
                self.line(f"{target.text}, {twin.text} = {twin.text}, {target.text}")
            elif position == 0 or self.random.random() < 0.8:
                self.rebind(target)

    def branch(self, budget: int) -> None:
        condition, targets = self.boolean((), 2), self.carried()
        both = self.fresh() if self.random.random() < 0.5 else ""
        shape, dtype = self.target_shape(), self.random.choice((*INTS, FP32, BOOL))
        with self.block(f"if {condition.text}:"):
            self.change(targets, budget)
            if both:
                self.line(f"{both} = {self.typed(shape, dtype, 1).text}")
        if both or self.random.random() < 0.5:
            with self.block("else:"):
                self.change(self.random.sample(targets, len(targets) - 1), budget)
                if both:
                    self.line(f"{both} = {self.typed(shape, dtype, 1).text}")
                self.line("pass")
        if both:
            self.define(both, dtype, shape)

    def counted_loop(self, budget: int) -> None:
        targets, index = self.carried(), self.fresh("i")
        bounds, dtype = self.random.choice(
            (
                ("0, n & 3", INT32),
                ("m & 3, m & 7", INT32),
                ("1, 6, 2", INT32),
                ("n & 3, 0, -1", INT32),
                ("0, big & 3", INT64),
                ("3, 3", INT32),
                ("0, 1", INT32),
                ("n, n + 2", INT32),
                ("n & 7, m & 3", INT32),
                ("0, 9, (n & 3) + 1", INT32),
            )
        )
        hints = ("", "", ", loop_unroll_factor=2", ", num_stages=3", ", loop_unroll_factor=4")
        hint = self.random.choice((*hints, *MORE_HINTS) if self.promises else hints)
        iterator = f"tl.range({bounds}{hint})" if hint else f"range({bounds})"
        with self.block(f"for {index} in {iterator}:"):
            counter = Value(index, dtype, (), unknown)
            self.pool.append(counter)
            self.change(targets, budget)
            if self.random.random() < 0.5:
                target = self.random.choice(targets)
                step = binary(self.random.choice("+-*"), target, counter)
                self.line(f"{target.text} = {self.cast(step, target.dtype).text}")

    def twins(self, budget: int) -> None:
        """Carried values of one type that start or change alike, or almost."""
        dtype, shape = self.random.choice((INT32, INT64, FP32, INT8)), self.random.choice(((), self.shape(limit=64)))
        starts = [self.typed(shape, dtype, 1) for _ in range(2)]
        steps = [self.random.choice(("+ 1", "+ 2", "* 3")) for _ in range(2)]
        names = [self.assign(self.random.choice(starts)).text for _ in range(3)]
        index = self.fresh("i")
        hint = self.random.choice(("", ", loop_unroll_factor=2", ", loop_unroll_factor=3"))
        with self.block(f"for {index} in tl.range(0, m & 7{hint}):"):
            for name in names:
                step = self.random.choice((*steps, f"+ {index}"))
                source = name if self.random.random() < 0.8 else self.random.choice(names)
                self.line(f"{name} = ({source} {step}).to(tl.{dtype.tl})")
            if self.random.random() < 0.3:
                self.statement(budget)
        for name in names:
            self.store(Value(name, dtype, shape, unknown))

    def unrolled_loop(self, budget: int) -> None:
        targets, index = self.carried(), self.fresh("i")
        with self.block(f"for {index} in tl.static_range({self.random.choice(('2', '3', '2, 0, -1', '1, 6, 4'))}):"):
            self.line(f"{targets[0].text} = {self.cast_text(targets[0], index)}")
            self.change(targets, budget)

    def cast_text(self, target: Value, index: str) -> str:
        """Add the compile-time index, keeping the type."""
        if target.dtype.is_bool:
            return f"{target.text} ^ ({index} > 1)"
        return f"{target.text} + {index}"

    def bounded_while(self, budget: int) -> None:
        targets, counter = self.carried(), self.fresh("w")
        self.line(f"{counter} = {self.random.choice(('0', 'n & 1', 'm & 3'))}")
        extra = self.boolean((), 1)
        condition = self.random.choice((f"{counter} < 3", f"({counter} < 4) & {extra.text}", f"{counter} < (n & 3)"))
        with self.block(f"while {condition}:"):
            self.pool.append(Value(counter, INT32, (), unknown))
            self.change(targets, budget)
            self.line(f"{counter} += {self.random.choice((1, 2))}")

    def memory_loop(self, budget: int) -> None:
        """Each iteration reads what the one before it wrote; an invariant load stands beside it."""
        dtype: DType = self.random.choice((INT32, FP32, INT64))
        shape = self.shape(1, 64)
        pointer, source, total = self.pointer(dtype, "io"), self.pointer(dtype, "in"), self.fresh()
        self.line(f"{total} = tl.zeros({list(shape)}, tl.{dtype.tl})")
        with self.block("for _k in range(m & 3):"):
            self.line(f"{total} += tl.load({pointer} + {self.offsets(shape)})")
            self.line(f"tl.store({pointer} + {self.offsets(shape)} + _k * 4, {total} + tl.load({source}))")
            if self.random.random() < 0.5:
                self.statement(budget)
        self.define(total, dtype, shape)
