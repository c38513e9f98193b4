"""An insertion point: where the next op goes, and with which location.

    builder.set_to_end(block)
    builder.loc = loc
    total = builder.insert(binary(arith.AddiOp, a, b, builder.loc)).results[0]

Constants are kept once per function, at the start of its entry block, in the order and with the locations that
`canonicalize` would give them if each use had an op of its own: see `Constant`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir.create import append_op
from tilework.ir.locations import unknown
from tilework.ir.rewrite import constant, splat_attr
from tilework.light_dataclass import light_dataclass

OpT = TypeVar("OpT", bound=Operation)


@light_dataclass(frozen=False)
class Constant:
    """A constant of a function, ordered as in Triton's IR, where each use has an op of its own until `canonicalize`
    moves them to the entry block.

    Constants that only folds create (casts of constants and of loop bounds) come first, then the others, each in front
    of earlier ones; those that the function starts with (`leads`) are last, in program order. A constant that is used
    once, and not in a nested block, keeps its location.
    """

    leads: bool
    is_nested: bool = False
    op: Operation | None = None
    folded: int = 0  # uses by folds
    plain: int = 0  # other uses
    mentioned: int = 0  # unused copies in Triton's IR

    @property
    def rank(self) -> int:
        return 2 if self.leads else 1 if self.plain else 0

    @property
    def keeps_location(self) -> bool:
        return not self.is_nested and self.folded + self.plain + (self.mentioned if self.plain else 0) == 1


class Builder:
    """Inserts ops at the end of `block`."""

    def __init__(self, block: Block | None = None, loc: LocationAttr = unknown) -> None:
        self.block = block
        self.loc = loc
        self._entry: Block | None = None
        self._constants: dict[tuple[Attribute, Attribute], Constant] = {}

    def insert(self, op: OpT) -> OpT:
        """Put `op` at the insertion point; the insertion point is after it."""
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
        outer = self._entry, self._constants
        self._entry, self._constants = entry_block, {}
        with self.saved():
            self.set_to_end(entry_block)
            yield
            self._insert_constants()
        self._entry, self._constants = outer

    def constant(self, value: int | float, type: Attribute, folds_later: bool = False) -> SSAValue:
        """Return the constant `value` of `type`, the same SSA value each time; `folds_later`: Triton has a cast of
        another constant here."""
        if self._entry is None:
            return self.insert(constant(value, type, self.loc)).results[0]
        known = self._known(value, type)
        if folds_later:
            known.folded += 1
        else:
            known.plain += 1
        known.is_nested |= self.block is not self._entry
        if known.op is None:
            known.op = constant(value, type, self.loc)
        return known.op.results[0]

    def mention(self, value: int | float, type: Attribute) -> None:
        """Count an unused constant of Triton's IR."""
        if self._entry is not None:
            self._known(value, type).mentioned += 1

    def _known(self, value: int | float, type: Attribute) -> Constant:
        key = splat_attr(value, type), type
        known = self._constants.get(key)
        if known is None:
            is_first = self.block is not None and self.block.first_op is None
            known = self._constants[key] = Constant(leads=is_first and self.block is self._entry)
        return known

    def _insert_constants(self) -> None:
        """Put the constants at the start of the function."""
        found = [known for known in self._constants.values() if known.op is not None]
        ordered = [known for rank in (0, 1) for known in reversed(found) if known.rank == rank]
        ordered += [known for known in found if known.rank == 2]
        entry = self._entry
        assert entry is not None, "constants of a function"
        first = entry.first_op
        for known in ordered:
            assert known.op is not None
            if not known.keeps_location:
                known.op.location = unknown
            if first is None:
                entry.add_op(known.op)
            else:
                entry.insert_op_before(known.op, first)
