"""The items that wait in a schedule: their order, and which of them accesses which memory.

Positions and accesses are looked up instead of searched for, because thousands of items may wait.
"""

from bisect import insort
from collections.abc import Iterator
from heapq import merge

from xdsl.ir import SSAValue

from tilework.transforms.ttc.loops.hazards import Access, Bases, conflict
from tilework.transforms.ttc.loops.nests import Item, Nest

Nests = dict[SSAValue | None, list[Nest]]  # by the argument that they access, in order; None: any memory


class Waiting:
    """The list of the items, with lookups by item and by accessed argument."""

    def __init__(self, bases: Bases) -> None:
        self.bases = bases
        self.items: list[Item] = []
        self.positions: dict[Item, int] = {}
        self.numbered = 0  # the number of items at the start whose positions are valid
        self.accessing: Nests = {}
        self.writing: Nests = {}

    def insert(self, position: int, item: Item) -> None:
        self.items.insert(position, item)
        self.numbered = min(self.numbered, position)

    def position(self, item: Item) -> int:
        """The index of a waiting item; -1 if it does not wait."""
        if self.numbered < len(self.items):
            for index in range(self.numbered, len(self.items)):
                self.positions[self.items[index]] = index
            self.numbered = len(self.items)
        return self.positions.get(item, -1)

    def clear(self) -> None:
        self.items.clear()
        self.numbered = 0
        for lookup in (self.positions, self.accessing, self.writing):
            lookup.clear()

    def access(self, nest: Nest, access: Access) -> None:
        """Record that a waiting nest accesses memory."""
        nest.accesses.append(access)
        base = None if access.orders else access.base
        for lookup in (self.accessing, self.writing) if access.writes or access.orders else (self.accessing,):
            nests = lookup.setdefault(base, [])
            if not nests or self.position(nests[-1]) < self.position(nest):
                nests.append(nest)
            elif nest not in nests:
                insort(nests, nest, key=self.position)

    def last_conflict(self, access: Access, floor: int) -> int:
        """The position of the last item from `floor` on that `access` must follow, or -1."""
        return self.conflict(access, floor, -1)

    def has_conflict(self, access: Access) -> bool:
        """Return True if `access` must follow an item."""
        return self.conflict(access, 0, 1) >= 0

    def conflict(self, access: Access, floor: int, direction: int) -> int:
        """The position of the first conflict in one direction, or -1.

        The items before it are assumed not to conflict: `Bases.apart` records the arguments that must not overlap.
        """
        lookup = self.accessing if access.writes or access.orders else self.writing
        if access.orders or access.base is None or self.bases.may_alias:
            keys = tuple(lookup)
        else:
            keys = (access.base, None)
        ways = [self.along(lookup, key, floor, direction) for key in keys]
        found = -1
        for nest in merge(*ways, key=lambda nest: direction * self.position(nest)):
            if any(conflict(earlier, access, self.bases) for earlier in nest.accesses):
                found = self.position(nest)
                break
        for key in lookup:
            if key not in keys and (nest := next(self.along(lookup, key, floor, direction), None)) is not None:
                if found < 0 or direction * self.position(nest) < direction * found:
                    assert key is not None and access.base is not None, "accesses without a base are searched"
                    self.bases.apart.add(frozenset((key, access.base)))
        return found

    def along(self, lookup: Nests, key: SSAValue | None, floor: int, direction: int) -> Iterator[Nest]:
        """Yield the nests from the position `floor` on that access an argument, in one direction."""
        nests = lookup.get(key, ())
        for nest in nests if direction > 0 else reversed(nests):
            if self.position(nest) >= floor:
                yield nest
            elif direction < 0:
                return
