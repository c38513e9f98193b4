"""The blocks of a function with `cf` branches: their order, and the phis of their arguments.

    branches = Branches(builder, blocks, types_of, bind)
    branches.run(lower_block)            # enters each block, then lowers it

`types_of` gives the LLVM types of an IR type: one of a scalar, several of a tile in registers. `bind` is told the LLVM values of
a block argument. The rules of branches call `jump`. A phi is written when all edges are known.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, SSAValue

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block as Label
from tilework.targets.llvm.types import Type, i1
from tilework.targets.llvm.values import Value


class Branches:
    """See the module."""

    def __init__(
        self,
        builder: Builder,
        blocks: Sequence[Block],
        types_of: Callable[[Attribute], Sequence[Type]],
        bind: Callable[[SSAValue, list[Value]], None],
        bit: Type = i1,
    ) -> None:
        self.bit = bit  # what carries a bit
        self.builder, self.blocks, self.types_of, self.bind = builder, blocks, types_of, bind
        self.labels: dict[Block, Label] = {block: builder.new_block("block") for block in blocks[1:]}
        self.edges: dict[Block, list[tuple[Sequence[Value], Label]]] = {block: [] for block in blocks}
        self.places: dict[Block, tuple[Label, int, list[Value]]] = {}

    def run(self, lower_block: Callable[[Block], None]) -> None:
        """All blocks that can be reached."""
        for block in self.order():
            self.enter(block)
            lower_block(block)
        self.close()

    def order(self) -> list[Block]:
        """Reverse postorder: a block comes after those that dominate it."""
        seen: set[Block] = set()
        finished: list[Block] = []

        def visit(block: Block) -> None:
            seen.add(block)
            last = block.last_op
            for successor in reversed(last.successors if last is not None else ()):
                if successor not in seen:
                    visit(successor)
            finished.append(block)

        visit(self.blocks[0])
        return finished[::-1]

    def enter(self, block: Block) -> None:
        """Continue in a block; its arguments become known."""
        if block is self.blocks[0]:
            return
        b, label = self.builder, self.labels[block]
        b.enter(label)
        position, types = len(label.lines), [self.types_of(arg.type) for arg in block.args]
        phis = [b.effect("", self.bit if type is i1 else type) for parts in types for type in parts]
        self.places[block] = (label, position, phis)
        left = iter(phis)
        for arg, parts in zip(block.args, types, strict=True):
            self.bind(arg, [b.bit(made) if type is i1 else made for type, made in zip(parts, left)])

    def jump(self, block: Block, values: Sequence[Value]) -> None:
        """Leave the current block for `block`, with the LLVM values of all its arguments."""
        b = self.builder
        carried = [b.zext(value, self.bit) if value.type is i1 else value for value in values]
        self.edges[block].append((carried, b.block))
        b.br(self.labels[block])

    def close(self) -> None:
        """Write the phis."""
        for block, (label, position, phis) in self.places.items():
            for number, made in enumerate(phis):
                listed = ", ".join(f"[ {values[number].text}, %{origin.name} ]" for values, origin in self.edges[block])
                label.lines[position + number] = f"  {made.text} = phi {made.type.text} {listed}"
