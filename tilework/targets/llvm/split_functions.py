"""Split functions that are too long for LLVM's code generator.

Instruction selection, scheduling and register allocation take time that grows faster than the length of a block, or
than the number of blocks of a function. A straight sequence of more than LONGEST instructions, with the loops and
conditions in it, is therefore cut into parts of about PART, each an internal function:

    entry:                                            entry:
      %v0 = load ptr, ptr %args                         %frame = alloca %frame.kernel
      ... 250 instructions                              %v0 = load ptr, ptr %args
      %v251 = fadd float %v250, %v249           ==>     store ptr %v0 to field 0 of %frame
      ... 250 more                                      call void @kernel.part.0(ptr %frame)
      ret void                                          call void @kernel.part.1(ptr %frame)
                                                        ret void

A value that is defined in one function and used in another has a field of the frame: it is stored behind its
definition, and loaded before its uses. The cuts are where few values are live. A part that may return from the
original function returns an i1: whether it did.

A part begins and ends inside of blocks, at gaps between two instructions. One edge of control enters it and one leaves
it if the branches that pass over the gap at its beginning are those that pass over the one at its end. Sequences inside
of loops are cut first, if they are too long themselves.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from random import Random

from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, i1, ptr, void

LONGEST = 2000  # instructions of a sequence that stays whole; ordinary kernels have less than 1,000
PART = 250  # also where most instructions store values for other parts, LLVM takes no longer for each
SLACK = PART // 4  # how far from PART the best gap may be
FUSED = 1000
NAME = re.compile(r"%([\w.]+)")
LABEL = re.compile(r"label %([\w.]+)")
FRAME = "parts"  # begins the names of what is inserted: no name of the builder does


class Part:
    """The lines `first` to `end - 1`, which become a separate function, except those of the parts inside."""

    def __init__(self, first: int, end: int, gaps: Sequence[int]) -> None:
        self.first, self.end = first, end
        self.gaps = gaps  # before these lines of the part, code can be inserted
        self.inner: list[Part] = []
        self.function: Function | None = None
        self.returns = False  # it may return from the whole function

    def holding(self, line: int) -> "Part | None":
        """Return the inner part that contains a line, if any."""
        found = bisect_right(self.inner, line, key=lambda part: part.first) - 1
        return self.inner[found] if found >= 0 and line < self.inner[found].end else None

    def walk(self) -> "Iterator[Part]":
        """Yield this part and all parts inside, outer parts first."""
        yield self
        for part in self.inner:
            yield from part.walk()


def split_long_functions(module: Module) -> None:
    """Split all functions of the module that have a sequence of more than LONGEST instructions.

    Functions with a line table are not split: a location belongs to one function.
    """
    for function in tuple(module.functions.values()):
        if function.subprogram is None and sum(len(block.lines) for block in function.blocks) > LONGEST:
            Splitter(module, function).split()


class Splitter:
    """Splits one function. Its lines are numbered; the head of a block is an empty line."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.blocks = function.blocks
        self.lines: list[str] = []
        self.heads: list[int] = []  # of the blocks
        for block in self.blocks:
            self.heads.append(len(self.lines))
            self.lines += ["", *block.lines]
        self.types = {value.text[1:]: value.type for value in (*function.args, *function.values)}
        self.defined = [self.defined_by(line) for line in self.lines]
        self.used = [[name for name in NAME.findall(line) if name in self.types] for line in self.lines]

    def defined_by(self, line: str) -> str:
        return line[3 : line.index(" =")] if line.startswith("  %") else ""

    def block_of(self, line: int) -> Block:
        return self.blocks[bisect_right(self.heads, line) - 1]

    def split(self) -> None:
        parts = self.chosen_parts()
        if not parts:
            return
        whole = Part(0, len(self.lines), [])
        nest(whole, parts)
        numbers, names = count(), self.module.functions
        for part in list(whole.walk())[1:]:
            part.returns = any(self.lines[line].startswith("  ret ") for line in range(part.first, part.end))
            part.function = self.module.function(
                next(name for k in numbers if (name := f"{self.function.name}.part.{k}") not in names),
                i1 if part.returns else void,
                [(ptr, FRAME)],
                linkage="internal",
                attributes=("noinline", "nounwind"),
            )
        Writer(self, whole).write()

    # ---- The choice of the parts

    def chosen_parts(self) -> list[Part]:
        """Return the parts into which sequences that are too long are cut, inner parts before the outer ones."""
        weights = [1] * len(self.lines)
        live = self.live_values()
        parts: list[Part] = []
        for gaps in self.sequences():
            sizes = [0, *accumulate(weights[gaps[0] : gaps[-1]])]
            before = [sizes[gap - gaps[0]] for gap in gaps]  # lines from the first gap to each
            if before[-1] <= LONGEST:
                continue
            start = 0
            while before[-1] - before[start] > PART + SLACK:
                least = bisect_left(before, before[start] + PART - SLACK)
                most = max(least + 1, bisect_right(before, before[start] + PART + SLACK))
                end = min(range(least, most), key=lambda k: (live[gaps[k]], -k))
                first, last = gaps[start], gaps[end]
                parts.append(Part(first, last, gaps[start:end]))
                weights[first:last] = [1] + [0] * (last - first - 1)
                start = end
        return parts

    def sequences(self) -> list[list[int]]:
        """Return the sequences of more than LONGEST lines, inner ones first: lists of gaps over which the same branches
        pass."""
        keys, depths = [0] * (len(self.lines) + 1), [0] * (len(self.lines) + 1)
        position = dict(zip([block.name for block in self.blocks], self.heads, strict=True))
        random = Random(0)  # noqa: S311
        for block, end in zip(self.blocks, [*self.heads[1:], len(self.lines)], strict=True):
            for label in LABEL.findall(block.lines[-1]):
                low, high = sorted((end - 1, position[label]))
                key = random.getrandbits(128)  # sets of branches are equal if the exclusive or of their keys is
                keys[low + 1] ^= key
                keys[high + 1] ^= key
                depths[low + 1] += 1
                depths[high + 1] -= 1
        found: dict[int, tuple[int, list[int]]] = {}
        key = depth = 0
        for gap, line in enumerate(self.lines):
            key, depth = key ^ keys[gap], depth + depths[gap]
            if line and " = phi " not in line and " = alloca " not in line:
                found.setdefault(key, (depth, []))[1].append(gap)
        long = [(depth, gaps) for depth, gaps in found.values() if gaps[-1] - gaps[0] > LONGEST]
        return [gaps for _, gaps in sorted(long, key=lambda item: -item[0])]

    def live_values(self) -> list[int]:
        """Return the number of values that are live before each line. A product that LLVM may fuse with a sum counts as
        FUSED values, because LLVM cannot fuse it with a sum in another function."""
        last: dict[str, int] = {}
        for number, names in enumerate(self.used):
            last.update(dict.fromkeys(names, number))
        changes = [0] * (len(self.lines) + 1)
        for number, name in enumerate(self.defined):
            if (end := last.get(name, 0)) > number:
                cost = FUSED if " = fmul contract " in self.lines[number] else 1
                changes[number + 1] += cost
                changes[end + 1] -= cost
        return list(accumulate(changes))


def nest(whole: Part, parts: Sequence[Part]) -> None:
    """Add each part to the `inner` parts of the innermost part around it."""
    around = [whole]
    for part in sorted(parts, key=lambda part: (part.first, -part.end)):
        while part.first >= around[-1].end:
            around.pop()
        around[-1].inner.append(part)
        around.append(part)


class Writer:
    """Writes the parts into their functions, and the remaining lines into the original function."""

    def __init__(self, splitter: Splitter, whole: Part) -> None:
        self.splitter, self.whole = splitter, whole
        self.lines, self.function = splitter.lines, splitter.function
        self.owners: list[Part] = []  # by line
        for part in whole.walk():
            self.owners[part.first : part.end] = [part] * (part.end - part.first)
        self.loads: dict[tuple[Part, int], list[str]] = defaultdict(list)  # of a part, by the gap
        self.fields = self.shared_values()

    def shared_values(self) -> dict[str, int]:
        """Return the fields of the frame by value, one for each value that is used in another function than the one
        that defines it. `loads` records where it is loaded."""
        definition = {name: number for number, name in enumerate(self.splitter.defined) if name}
        seen: set[tuple[str, Part]] = set()
        fields: dict[str, int] = {}
        for number, names in enumerate(self.splitter.used):
            user = self.owners[number]
            for name in names:
                line = definition.get(name, 0)
                if self.owners[line] is user or (name, user) in seen:
                    continue
                seen.add((name, user))
                fields.setdefault(name, len(fields))
                if (inner := user.holding(line)) is not None:
                    gap = inner.end
                else:
                    gap = user.gaps[bisect_right(user.gaps, number) - 1]
                self.loads[user, gap].append(name)
        return fields

    def write(self) -> None:
        types: list[Type] = [self.splitter.types[name] for name in self.fields]
        if self.function.result is not void:
            types.append(self.function.result)
        self.frame = self.splitter.module.named_struct(f"{FRAME}.{self.function.name}", *types)
        for part in self.whole.walk():
            function = part.function or self.function
            function.blocks = self.blocks(part)
        entry = self.function.blocks[0]
        entry.lines.insert(0, f"  %{FRAME} = alloca {self.frame.text}, align 64")

    def address(self, field: int) -> str:
        """The line that computes the address of a field, as ``%parts.7``."""
        return f"  %{FRAME}.{field} = getelementptr inbounds {self.frame.text}, ptr %{FRAME}, i32 0, i32 {field}"

    def store(self, name: str) -> list[str]:
        field = self.fields[name]
        return [self.address(field), f"  store {self.splitter.types[name].text} %{name}, ptr %{FRAME}.{field}"]

    def load(self, name: str) -> list[str]:
        field = self.fields[name]
        return [self.address(field), f"  %{name} = load {self.splitter.types[name].text}, ptr %{FRAME}.{field}"]

    def blocks(self, part: Part) -> list[Block]:
        """Return the blocks of the function of a part."""
        old = self.splitter.block_of(part.first)
        made = [started(old.name)]
        renamed: dict[str, str] = {}  # blocks that end in a block of another name, because their beginning is elsewhere
        ahead = [arg.text[1:] for arg in self.function.args] if part is self.whole else []
        to_store = [name for name in ahead if name in self.fields]
        returns = False
        number = part.first
        while number < part.end:
            line = self.lines[number]
            lines = made[-1].lines
            is_first = not line or " = phi " in line or " = alloca " in line
            if not is_first:
                for name in to_store:
                    lines += self.store(name)
                to_store = []
                for name in self.loads.get((part, number), ()):
                    lines += self.load(name)
            if (inner := part.holding(number)) is not None:
                assert inner.function is not None
                number = inner.end
                old = self.splitter.block_of(number)
                call = f"call {inner.function.result.text} @{inner.function.name}(ptr %{FRAME})"
                if not inner.returns:
                    lines.append(f"  {call}")
                    continue
                returns = True
                after = f"{FRAME}.after.{number}"
                lines.append(f"  %{after}.ends = {call}")
                lines.append(f"  br i1 %{after}.ends, label %{FRAME}.returned, label %{after}")
                made.append(started(after))
                continue
            number += 1
            if not line:
                if number > 1:
                    old = self.splitter.block_of(number)
                    made.append(started(old.name))
                continue
            if line.startswith("  ret ") and part is not self.whole:
                lines += self.early_return(line)
            else:
                lines.append(line)
            if line is old.lines[-1] and old.name != made[-1].name:
                renamed[old.name] = made[-1].name
            if (name := self.splitter.defined[number - 1]) in self.fields:
                to_store.append(name)
        if part is not self.whole:
            for name in to_store:
                made[-1].lines += self.store(name)
            made[-1].lines.append("  ret i1 false" if part.returns else "  ret void")
        if returns:
            made.append(started(f"{FRAME}.returned"))
            made[-1].lines += self.final_return(part)
        for block in made if renamed else ():
            rename_origins(block, renamed)
        return made

    def early_return(self, line: str) -> list[str]:
        """Return the lines by which a part returns from the original function."""
        if self.function.result is void:
            return ["  ret i1 true"]
        field = len(self.fields)
        return [self.address(field), f"  store {line.removeprefix('  ret ')}, ptr %{FRAME}.{field}", "  ret i1 true"]

    def final_return(self, part: Part) -> list[str]:
        """Return the lines that a caller runs after a part has returned from the original function."""
        if part is not self.whole:
            return ["  ret i1 true"]
        if (result := self.function.result) is void:
            return ["  ret void"]
        field = len(self.fields)
        loaded = f"%{FRAME}.result"
        return [
            self.address(field),
            f"  {loaded} = load {result.text}, ptr %{FRAME}.{field}",
            f"  ret {result.text} {loaded}",
        ]


def started(name: str) -> Block:
    """Return a new block that is already in its function and will be terminated."""
    block = Block(name)
    block.placed = block.terminated = True
    return block


def rename_origins(block: Block, renamed: dict[str, str]) -> None:
    """Rename the predecessors in phis: `renamed` maps the blocks that were split to their last parts."""
    for number, line in enumerate(block.lines):
        if " = phi " not in line:
            break
        block.lines[number] = re.sub(r", %([\w.]+) \]", lambda found: f", %{renamed.get(found[1], found[1])} ]", line)
