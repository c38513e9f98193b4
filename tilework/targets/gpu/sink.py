"""Move arithmetic whose results are needed only after a loop behind it: they take no registers in the loop.

    %a = f(%tid)                            loop: ...
    loop: ...                       ==>     done: %a = f(%tid)
    done: store to %a                             store to %a

Rules compute the addresses and masks of stores where the kernel's source does, often before its loops. LLVM's code
generator moves comparisons only, and ptxas leaves the others where they are; it then has fewer registers for loads in
flight. What moves are integers and addresses; but not where their operands, live in the loop instead, take more bits.

The blocks of a function are in structured order: an edge to an earlier block closes a loop.
"""

import re
from collections import defaultdict
from functools import reduce

from tilework.targets.llvm.module import Function

SINKABLE = frozenset(
    "add sub mul and or xor shl lshr ashr icmp select zext sext trunc getelementptr addrspacecast ptrtoint".split()
)
NAME = re.compile(r"%[-\w.$]+")
LABEL = re.compile(r"label %([-\w.$]+)")
ORIGIN = re.compile(r"(%[-\w.$]+), %([-\w.$]+) \]")  # an operand of a phi, and the block from which it comes
SCALAR = re.compile(r"\b(?:i(\d+)|ptr|float|double)\b")
DEEP = 8  # operands of operands that are looked at


class Graph:
    """The loops of a function, as positions of their first and last blocks, and the dominators of its blocks."""

    def __init__(self, function: Function) -> None:
        self.positions = {block.name: position for position, block in enumerate(function.blocks)}
        self.loops: dict[int, int] = {}
        self.above = [0] * len(function.blocks)
        origins: list[list[int]] = [[] for _ in function.blocks]
        for position, block in enumerate(function.blocks):
            for name in LABEL.findall(block.lines[-1]):
                if (target := self.positions[name]) <= position:
                    self.loops[target] = position
                else:
                    origins[target].append(position)
        for position, found in enumerate(origins):
            if found:
                self.above[position] = reduce(self.dominator, found)

    def dominator(self, one: int, other: int) -> int:
        """Return the nearest block that dominates both."""
        while one != other:
            one, other = min(one, other), self.above[max(one, other)]
        return one

    def outside(self, position: int, origin: int) -> int:
        """Return the nearest dominator of a block, or the block, that is in no loop but those of `origin`."""
        while any(first <= position <= last and not first <= origin <= last for first, last in self.loops.items()):
            position = self.above[position]
        return position

    def loop_between(self, origin: int, position: int) -> int | None:
        """Return the first block of the first loop between two blocks."""
        found = (first for first, last in self.loops.items() if origin < first and last < position)
        return min(found, default=None)


class Sinking:
    """The values of a function, and the instructions that move."""

    def __init__(self, function: Function, graph: Graph) -> None:
        self.graph, self.blocks = graph, function.blocks
        self.bits: dict[str, int] = {}
        self.users: defaultdict[str, list[int]] = defaultdict(list)  # the blocks that use a value
        self.operands: dict[str, list[str]] = {}  # of values that may move
        self.placed: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)  # for a block: before which line
        self.first: dict[int, dict[str, int]] = {}  # for a block: the first line that uses a value
        for position, block in enumerate(function.blocks):
            for line in block.lines:
                name = line[2 : line.index(" = ")] if line[2] == "%" else ""
                text = line[len(name) + 5 :] if name else line
                opcode = text[: text.find(" ")]
                if opcode == "phi":
                    for value, origin in ORIGIN.findall(text):
                        self.users[value].append(graph.positions[origin])
                else:
                    for value in NAME.findall(text):
                        self.users[value].append(position)
                if name:
                    self.bits[name] = bits_of(opcode, text)
                    if opcode in SINKABLE and name not in function.effects:
                        self.operands[name] = NAME.findall(text)

    def run(self) -> None:
        for position in reversed(range(len(self.blocks))):
            kept: list[str] = []
            for line in reversed(self.blocks[position].lines):
                name = line[2 : line.index(" = ")] if line[2] == "%" else ""
                if name not in self.operands or (target := self.target(name, position)) is None:
                    kept.append(line)
                    continue
                for operand in self.operands[name]:
                    self.users[operand].remove(position)
                    self.users[operand].append(target)
                    self.first_uses(target)[operand] = min(self.line_of(operand, target), self.line_of(name, target))
                self.placed[target].append((self.line_of(name, target), line))
            self.blocks[position].lines = kept[::-1]
        for position, placed in self.placed.items():
            lines, start = list[str](), 0
            placed.reverse()  # as they were written
            for index, line in sorted(placed, key=lambda one: one[0]):
                lines += [*self.blocks[position].lines[start:index], line]
                start = index
            self.blocks[position].lines = [*lines, *self.blocks[position].lines[start:]]

    def target(self, name: str, position: int) -> int | None:
        """Return the block behind a loop to which an instruction of the block at `position` should move."""
        users = self.users[name]
        if not users or position in users:
            return None
        found = self.graph.outside(reduce(self.graph.dominator, users), position)
        loop = self.graph.loop_between(position, found)
        if loop is None:
            return None
        added = sum(self.added(operand, loop, DEEP) for operand in set(self.operands[name]))
        return found if self.bits[name] == 1 or added <= self.bits[name] else None

    def added(self, name: str, loop: int, depth: int) -> int:
        """Return the bits live in the loop if a value is used after it: 0 if it is live anyway or can be made there."""
        if not self.bits.get(name) or any(user >= loop for user in self.users[name]):
            return 0
        if name in self.operands and len(self.users[name]) == 1 and depth:
            return min(self.bits[name], sum(self.added(one, loop, depth - 1) for one in set(self.operands[name])))
        return self.bits[name]

    def first_uses(self, position: int) -> dict[str, int]:
        if position not in self.first:
            self.first[position] = found = {}
            for index, line in enumerate(self.blocks[position].lines):
                if " = phi " not in line:
                    for name in NAME.findall(line):
                        found.setdefault(name, index)
        return self.first[position]

    def line_of(self, name: str, position: int) -> int:
        """Return the line of a block before which a value is needed."""
        return self.first_uses(position).get(name, len(self.blocks[position].lines) - 1)


def bits_of(opcode: str, text: str) -> int:
    """Return the bits of registers that a value takes; none for what hardware registers hold."""
    if "()" in text:
        return 0
    if opcode == "icmp":
        return 1
    found = SCALAR.search(text.rpartition(" to ")[2])
    return 32 if found is None else int(found[1] or (32 if found[0] == "float" else 64))


def sink_past_loops(function: Function) -> None:
    graph = Graph(function)
    if graph.loops:
        Sinking(function, graph).run()
