"""An insertion point: where the next op goes, and with which location.

    builder.set_to_end(block)
    builder.loc = loc
    total = builder.insert(binary(arith.AddiOp, a, b, builder.loc)).results[0]

Constants are kept once per function, at the start of its entry block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir.create import append_op
from tilework.ir.locations import unknown, unnamed
from tilework.ir.rewrite import constant, splat_attr

OpT = TypeVar("OpT", bound=Operation)


class Builder:
    """Inserts ops at the end of `block`."""

    def __init__(self, block: Block | None = None, loc: LocationAttr = unknown) -> None:
        self.block = block
        self.loc = loc
        self._entry: Block | None = None
        self._last_constant: Operation | None = None
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}

    def insert(self, op: OpT) -> OpT:
        """Put `op` at the insertion point; the point stays behind it."""
        assert self.block is not None, "the builder has no insertion point"
        append_op(self.block, op)
        return op

    def set_to_end(self, block: Block) -> None:
        """Go on at the end of `block`."""
        self.block = block

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Come back to this insertion point and location afterwards."""
        state = self.block, self.loc
        try:
            yield
        finally:
            self.block, self.loc = state

    @contextmanager
    def enter_function(self, entry_block: Block) -> Iterator[None]:
        """Build the function that starts with `entry_block`, with constants of its own."""
        outer = self._entry, self._last_constant, self._constants
        self._entry, self._last_constant, self._constants = entry_block, None, {}
        with self.saved():
            self.set_to_end(entry_block)
            yield
        self._entry, self._last_constant, self._constants = outer

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        """The number as a value of `type`; the same value each time, so it has no variable's name."""
        key = splat_attr(value, type), type
        found = self._constants.get(key)
        if found is None:
            op = constant(value, type, unnamed(self.loc))
            self._insert_constant(op)
            found = self._constants[key] = op.results[0]
        return found

    def _insert_constant(self, op: Operation) -> None:
        """Behind the constants that are there, so that they stay in the order of their first use."""
        if self._entry is None:
            self.insert(op)
        elif self._last_constant is not None:
            self._entry.insert_op_after(op, self._last_constant)
        elif (first := self._entry.first_op) is not None:
            self._entry.insert_op_before(op, first)
        else:
            self._entry.add_op(op)
        if self._entry is not None:
            self._last_constant = op
