"""Branches, loops and phi: part of `Builder`.

    with b.loop(0, n) as i:                               # for i in range(0, n)
        ...
    with b.loop_carrying(0, n, 1, [zero]) as loop:        # values that change from one round to the next
        loop.next([b.fadd(loop.carried[0], x)])
    total = loop.results[0]
    with b.if_(condition): ...
    (y,) = b.if_else(condition, lambda: [a()], lambda: [c()])

A loop whose constant bounds show that it runs at least once tests at the bottom; a constant condition builds only
its side.
"""

# pyright: reportGeneralTypeIssues=false
# A mixin annotates `self` with the class that it is mixed into.

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import Type, i64, struct, void
from tilework.targets.llvm.values import Value, constant, signed

if TYPE_CHECKING:
    from tilework.targets.llvm.builder import Builder


class Loop:
    """A loop being built: `index`, the `carried` values of this round, and after the loop its `results`."""

    def __init__(self, index: Value, carried: Sequence[Value]) -> None:
        self.index = index
        self.carried = tuple(carried)
        self.following: tuple[Value, ...] = tuple(carried)
        self.results: tuple[Value, ...] = ()

    def next(self, values: Sequence[Value]) -> None:
        """The values that the next iteration carries."""
        assert len(values) == len(self.carried), f"{len(values)} values for {len(self.carried)} carried ones"
        self.following = tuple(values)


class Control:
    """Methods that end blocks and begin new ones."""

    def end(self: "Builder", text: str) -> None:
        assert not self.block.terminated, f"block {self.block.name} is finished"
        self.line(text)
        self.block.terminated = True

    def ret_all(self: "Builder", values: Sequence[Value]) -> None:
        """Return several values, in a struct."""
        whole = self.build_struct(struct(*[value.type for value in values]), values) if len(values) > 1 else None
        self.ret(whole or (values[0] if values else None))

    def ret(self: "Builder", value: Value | None = None) -> None:
        self.end("ret void" if value is None or value.type is void else f"ret {value.typed}")

    def br(self: "Builder", target: Block, loop: str = "") -> None:
        self.end(f"br label %{target.name}{f', !llvm.loop {loop}' if loop else ''}")

    def cond_br(
        self: "Builder",
        condition: Value,
        then: Block,
        otherwise: Block,
        weights: tuple[int, int] | None = None,
        loop: str = "",
    ) -> None:
        """Branch on an i1; `weights` say how often each side is taken."""
        if condition.constant is not None:
            self.br(then if condition.constant else otherwise, loop)
            return
        ending = f", !llvm.loop {loop}" if loop else ""
        if weights:
            node = f'!{{!"branch_weights", i32 {weights[0]}, i32 {weights[1]}}}'
            ending += f", !prof {self.module.node(node)}"
        self.end(f"br {condition.typed}, label %{then.name}, label %{otherwise.name}{ending}")

    def switch(self: "Builder", value: Value, default: Block, cases: Sequence[tuple[int, Block]]) -> None:
        listed = " ".join(f"{constant(value.type, case).typed}, label %{block.name}" for case, block in cases)
        self.end(f"switch {value.typed}, label %{default.name} [ {listed} ]")

    def phi(self: "Builder", type: Type, incoming: Sequence[tuple[Value, Block]]) -> Value:
        """The value of the block that control came from; must precede other instructions of its block."""
        listed = ", ".join(f"[ {value.text}, %{block.name} ]" for value, block in incoming)
        return self.effect(f"phi {type.text} {listed}", type)

    def open_phi(
        self: "Builder", type: Type, first: Value, block: Block
    ) -> tuple[Value, Callable[[Value, Block], None]]:
        """A phi whose second edge is not known yet, and the function that adds it."""
        lines = self.block.lines
        position = len(lines)
        made = self.effect("", type)

        def close(value: Value, latch: Block) -> None:
            lines[position] = (
                f"  {made.text} = phi {type.text} [ {first.text}, %{block.name} ], [ {value.text}, %{latch.name} ]"
            )

        return made, close

    def until(self: "Builder", first: Value, step: Callable[[Value], tuple[Value, Value]]) -> Value:
        """Repeat ``value, done = step(value)`` from `first` on until `done`; return the last argument of `step`."""
        before, again, done = self.block, self.function.block("again"), self.function.block("over")
        self.br(again)
        with self.scope():
            self.resume(again)
            value, close = self.open_phi(first.type, first, before)
            following, is_over = step(value)
            close(following, self.block)
            self.cond_br(is_over, done, again)
        self.resume(done)
        return value

    # Structured control flow

    @contextmanager
    def loop(self: "Builder", start: Any, end: Any, step: Any = 1, *, unroll: int | None = None) -> Iterator[Value]:
        """``for index in range(start, end, step)``, for a positive step and signed bounds; Python integers alone are
        i64.
        """
        with self.loop_carrying(start, end, step, (), unroll=unroll) as made:
            yield made.index

    @contextmanager
    def loop_carrying(
        self: "Builder",
        start: Any,
        end: Any,
        step: Any,
        initial: Sequence[Value],
        *,
        unroll: int | None = None,
        runs: bool = False,
        may_wrap: bool = False,
        hints: Sequence[str] = (),
    ) -> Iterator[Loop]:
        """A loop with values carried from round to round; `unroll` 1 forbids unrolling, n requests it.

        `runs` says that there is a first round, `may_wrap` that the step after the last one may overflow the index
        type, where the loop ends too; `hints` are names of LLVM's loop metadata.
        """
        if start.__class__ is int and end.__class__ is int:
            start = constant(i64, start)
        start, end = self.pair(start, end)
        step = step if step.__class__ is Value else constant(start.type, step)
        at_least_once = runs or (
            start.constant is not None
            and end.constant is not None
            and signed(start.type, start.constant) < signed(end.type, end.constant)
        )
        furthest = self.sub((1 << (start.type.bits - 1)) - 1, step) if may_wrap else None
        before = self.block
        header, body, after = (self.function.block(name) for name in ("loop", "body", "done"))
        self.br(header)
        with self.scope():
            self.resume(header)
            index, close_index = self.open_phi(start.type, start, before)
            carried, closers = [], []
            for value in initial:
                made, close = self.open_phi(value.type, value, before)
                carried.append(made)
                closers.append(close)
            if not at_least_once:
                self.cond_br(self.icmp("slt", index, end), body, after)
                self.resume(body)
            loop = Loop(index, carried)
            yield loop
            following = self.add(index if furthest is None else self.smin(index, furthest), step, "nsw")
            latch = self.block
            close_index(following, latch)
            for close, value in zip(closers, loop.following):
                close(value, latch)
            node = self.loop_node(unroll, hints)
            if at_least_once:
                self.cond_br(self.icmp("slt", following, end), header, after, loop=node)
                loop.results = loop.following
            else:
                self.br(header, node)
                loop.results = tuple(carried)
        self.resume(after)

    @contextmanager
    def loop_up_to(
        self: "Builder",
        start: Value,
        end: Value,
        step: Value,
        initial: Sequence[Value],
        *,
        unroll: int | None = None,
        may_wrap: bool = False,
        hints: Sequence[str] = (),
    ) -> Iterator[Loop]:
        """`loop_carrying` whose rounds end with the comparison, as ptxas expects of loops that it unrolls.

        `may_wrap` says that the step after the last round may overflow: from a start that is not negative no unsigned
        sum does; from any other the index ends at the first number behind the bound, which it reaches though it wraps.
        """
        enters, relation = self.icmp("slt", start, end), "slt"
        counts_up = start.text in self.ranges if start.constant is None else signed(start.type, start.constant) >= 0
        if may_wrap and counts_up:
            end, relation = self.smax(end, start), "ult"
            enters = self.icmp("ult", start, end)
        elif may_wrap:
            relation = "ne"
            distance = self.sub(self.sub(end, start), 1)  # unsigned, from the start to the last number before the bound
            end = self.add(start, self.add(self.sub(distance, self.urem(distance, step)), step))
        before, body, after = self.block, self.function.block("body"), self.function.block("done")
        if enters.constant == 1:
            self.br(body)
        else:
            self.end(f"br {enters.typed}, label %{body.name}, label %{after.name}")
        with self.scope():
            self.resume(body)
            opened = [self.open_phi(value.type, value, before) for value in (start, *initial)]
            loop = Loop(opened[0][0], [made for made, _ in opened[1:]])
            yield loop
            following = self.add(loop.index, step)
            goes_on = self.icmp(relation, following, end)
            latch = self.block
            for (_, close), value in zip(opened, (following, *loop.following), strict=True):
                close(value, latch)
            self.cond_br(goes_on, body, after, loop=self.loop_node(unroll, hints))
        self.resume(after)
        loop.results = loop.following
        if enters.constant != 1:
            ends = zip(initial, loop.following, strict=True)
            loop.results = tuple(self.phi(one.type, [(one, before), (other, latch)]) for one, other in ends)

    def rounds(
        self: "Builder",
        start: Any,
        end: Any,
        initial: Sequence[Value],
        step: Callable[[Value, tuple[Value, ...]], Sequence[Value]],
        unroll: int | None = 1,
    ) -> tuple[Value, ...]:
        """``values = step(index, values)`` for every index from `start` to `end`, in a loop."""
        with self.loop_carrying(start, end, 1, initial, unroll=unroll) as loop:
            loop.next(step(loop.index, loop.carried))
        return loop.results

    def loop_node(self: "Builder", unroll: int | None, hints: Sequence[str] = ()) -> str:
        texts = [f'!{{!"{hint}"}}' for hint in hints]
        if unroll is not None:
            texts.append(
                '!{!"llvm.loop.unroll.disable"}' if unroll == 1 else f'!{{!"llvm.loop.unroll.count", i32 {unroll}}}'
            )
        return self.module.distinct_node(*map(self.module.node, texts)) if texts else ""

    @contextmanager
    def if_(self: "Builder", condition: Value, weights: tuple[int, int] | None = None) -> Iterator[None]:
        """Build what follows under a condition. Code under a constant false condition is built in an unreachable block.
        So is the code after it, if the condition is a constant true and the code inside ends the function.
        """
        if condition.constant == 1:
            yield
            if self.block.terminated:
                self.resume(self.function.block("endif"))
            return
        then, after = self.function.block("then"), self.function.block("endif")
        self.cond_br(condition, then, after, weights)
        with self.scope():
            self.resume(then)
            yield
            if not self.block.terminated:
                self.br(after)
        self.resume(after)

    def if_else(
        self: "Builder",
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
        weights: tuple[int, int] | None = None,
    ) -> tuple[Value, ...]:
        """The values that one of two sides computes; values that are the same on both need no phi."""
        if condition.constant is not None:
            return tuple(then() if condition.constant else otherwise())
        sides = (self.function.block("then"), self.function.block("else"))
        after = self.function.block("endif")
        self.cond_br(condition, *sides, weights)
        results: list[tuple[Sequence[Value], Block]] = []
        for block, compute in zip(sides, (then, otherwise)):
            with self.scope():
                self.resume(block)
                values = compute()
                if not self.block.terminated:
                    results.append((values, self.block))
                    self.br(after)
        if not results:
            return ()
        self.resume(after)
        if len(results) == 1:
            return tuple(results[0][0])
        (left, left_end), (right, right_end) = results
        return tuple(
            a if a.text == b.text else self.phi(a.type, [(a, left_end), (b, right_end)]) for a, b in zip(left, right)
        )
