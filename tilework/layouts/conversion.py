"""Conversion of a tensor from one distributed layout to another, as cheaply as the two allow.

`comp`, the location in the source of the element at each location of the destination, decides. The levels that it
leaves alone, starting from the slowest (block, then warp, lane, register), cost nothing:

    nothing left        "none"       the layouts agree
    registers           "register"   each thread renames its registers
    lanes, registers    "shuffle"    the lanes of a warp exchange registers, if one exchange is enough
                        "warp"       ... else through shared memory, and only the warp has to wait
    warps               "shared"     through shared memory, with a barrier
    blocks              "cluster"    through the shared memory of other blocks

>>> a = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)], "block": []}, ("dim0", "dim1"))
>>> d = LinearLayout({"register": [(1, 0)], "lane": [(0, 1), (0, 2)], "warp": [(2, 0)], "block": []}, ("dim0", "dim1"))
>>> conversion(a, d).kind
'shuffle'

`shared_plan` is the layout of shared memory between the two with the fewest bank conflicts. The memory has 32 banks of
4 bytes. A warp that stores or loads 16 bytes per lane does so eight lanes at a time, and those eight should access 8 x
4 different banks. An offset has three parts, from the lowest bit:

    vector    the elements that one lane moves in one instruction, up to 16 bytes
    bank      the bank: with the vector, 128 bytes
    segment   the 128-byte row; two lanes of one access that differ only here conflict

So the bits of the tensor's index in which the lanes of one access differ, in the source (they write) and in the
destination (they read), should be bank bits. If the lanes of the two sides differ in different bits, the segment gets
the xor of one of each: that is the swizzle. Neither side then has two lanes that differ in the segment alone.

A 32x32 tensor of 4-byte elements written by rows and read by columns, one element at a time:

>>> rows = LinearLayout({"register": [(1 << i, 0) for i in range(5)], "lane": [(0, 1 << i) for i in range(5)],
...                      "warp": [], "block": []}, ("dim0", "dim1"))
>>> columns = rows.transpose_outs(("dim1", "dim0")).rename_outs(("dim0", "dim1"))
>>> plan = shared_plan(rows, columns, 32)
>>> plan.write_conflicts, plan.read_conflicts
(0, 0)
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.to_linear import MEMO
from tilework.light_dataclass import light_dataclass

VECTOR_BITS = 128  # bits that one lane moves in one instruction
BANK_BITS = 1024  # all banks together
WORD_BITS = 32  # one bank


@light_dataclass
class Instruction:
    """A store or load instruction: the lane bits inside of a 16-byte row, and those that select among eight rows."""

    name: str
    contiguous: tuple[int, ...]
    address: tuple[int, ...]


PLAIN = Instruction("plain", (), (0, 1, 2))
MATRIX = Instruction("matrix", (0, 1), (2, 3, 4))
MATRIX_TRANS = Instruction("matrix.trans", (2, 3, 4), (0, 1))


@light_dataclass
class SharedPlan:
    """The arrangement in shared memory of the part of a tensor that one block has.

    `layout` maps an offset (in elements: vector, bank, segment bits, then the bits of the round) to the index of the
    element, one integer of the bits `index_bits` of its packed coordinates. `vector` is the elements that move
    together, `reps` the number of rounds that reuse the same memory.
    """

    layout: LinearLayout
    index_bits: tuple[int, ...]
    vector: int
    reps: int
    write_conflicts: int
    read_conflicts: int
    store: str
    load: str
    bytes: int

    def offsets(self, side: LinearLayout) -> LinearLayout:
        """Return the offset of each register of each lane and warp, for the layout that is written or the one that is
        read."""
        return squeezed(side, self.index_bits).invert_and_compose(self.layout)


@light_dataclass
class Side:
    """A layout with the tensor's index as a single integer: the columns of each level."""

    register: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]


@light_dataclass
class Choice:
    """An arrangement in shared memory: bases of the vector, the banks and the segments, and its cost."""

    vector: tuple[int, ...]
    bank: tuple[int, ...]
    segment: tuple[int, ...]
    reps: tuple[int, ...]
    conflicts: tuple[int, int]
    instructions: tuple[str, str]


@lru_cache(maxsize=MEMO)
def shared_plan(
    src: LinearLayout, dst: LinearLayout, bits: int, loads_matrices: bool = True, stores_matrices: bool = True
) -> SharedPlan:
    """Return the best way through shared memory for elements of `bits` bits, on a GPU that has these instructions or
    not."""
    bits = max(bits, 8)
    kept, sides = flatten(src, dst)
    dims = len(kept)
    choices = [
        choice
        for store in instructions(bits, stores_matrices)
        for load in instructions(bits, loads_matrices)
        if (choice := arrange(sides, dims, bits, store, load)) is not None
    ]
    best = min(choices, key=cost) if choices else fall_back(sides, dims, bits)
    offsets = (*best.vector, *best.bank, *(base for base in best.segment if base not in best.reps), *best.reps)
    layout = LinearLayout.packed((("offset", offsets),), (("index", 1 << dims),))
    rounds = 1 << len(best.reps)
    return SharedPlan(
        layout,
        kept,
        1 << len(best.vector),
        rounds,
        *best.conflicts,
        *best.instructions,
        bytes=(1 << dims) // rounds * bits // 8,
    )


def cost(choice: Choice) -> tuple[int, int]:
    """The key to minimise: conflicts, then memory, which more rounds need less of."""
    return sum(choice.conflicts), -len(choice.reps)


def flatten(src: LinearLayout, dst: LinearLayout) -> tuple[tuple[int, ...], tuple[Side, Side]]:
    """Return the bits of the index within one block, and both layouts in them, without copies in registers."""
    taken = 0
    for column in src.by_in.get("block", ()):
        taken |= column
    kept = tuple(bit for bit in range(src.total_out_bits) if not taken >> bit & 1)
    sides = []
    for layout in (src, dst):
        levels = squeezed(layout, kept).by_in
        registers = tuple(column for column in levels["register"] if column)
        sides.append(Side(registers, levels["lane"], levels["warp"]))
    return kept, (sides[0], sides[1])


def squeezed(layout: LinearLayout, kept: Sequence[int]) -> LinearLayout:
    """Return the layout of one block, with the index of an element as one integer: the bits `kept` of its packed
    coordinates."""
    columns = tuple(
        (name, tuple([sum((column >> bit & 1) << index for index, bit in enumerate(kept)) for column in columns]))
        for name, columns in layout.columns
        if name != "block"
    )
    return LinearLayout.packed(columns, (("index", 1 << len(kept)),))


def instructions(bits: int, has_matrix: bool) -> list[Instruction]:
    """Return the instructions that can move elements of `bits` bits."""
    if not has_matrix or bits > 32:
        return [PLAIN]
    return [PLAIN, MATRIX, MATRIX_TRANS] if bits == 16 else [PLAIN, MATRIX]


def arrange(sides: tuple[Side, Side], dims: int, bits: int, store: Instruction, load: Instruction) -> Choice | None:
    """Return the arrangement for one pair of instructions with full vectors; None if the layouts do not allow it."""
    vector = vector_basis(sides, bits, store, load)
    if vector is None:
        return None
    tiles = []
    for side, instruction in zip(sides, (store, load), strict=True):
        extra = [column for column in side.register if column not in vector]
        wanted = 3 - len(instruction.address)
        if len(extra) < wanted or len(side.lane) <= max(instruction.address):
            return None
        tiles.append((*extra[:wanted], *(side.lane[lane] for lane in instruction.address)))
    leave = 2 if PLAIN not in (store, load) else 0
    return swizzled(sides, dims, bits, vector, (tiles[0], tiles[1]), leave, (store.name, load.name))


def vector_basis(sides: tuple[Side, Side], bits: int, store: Instruction, load: Instruction) -> tuple[int, ...] | None:
    """Return the bases of the 16 bytes that both instructions move as one piece."""
    src, dst = sides
    total = log2(VECTOR_BITS // bits)
    needs = [total - len(store.contiguous), total - len(load.contiguous)]
    fewest = min(needs)
    few, many = (0, 1) if needs[0] < needs[1] else (1, 0)
    common = [column for column in sides[many].register if column in sides[few].register]
    if fewest < 0 or len(common) < fewest:
        return None
    if max((*store.contiguous, *load.contiguous), default=-1) >= min(len(src.lane), len(dst.lane)):
        return None
    lanes = [[side.lane[lane] for lane in way.contiguous] for side, way in zip(sides, (store, load), strict=True)]
    extra = needs[many] - fewest
    inside, same = lanes[few][:extra], lanes[few][extra:]
    if not all(lanes[few]) or same != lanes[many]:
        return None
    if any(column not in sides[many].register for column in inside):
        return None
    return (*common[:fewest], *lanes[few])


def swizzled(
    sides: tuple[Side, Side],
    dims: int,
    bits: int,
    vector: tuple[int, ...],
    tiles: tuple[Sequence[int], Sequence[int]],
    leave: int,
    names: tuple[str, str],
) -> Choice:
    """Choose banks and segments around a vector, so that the lanes of `tiles` (written, read) access different
    banks."""
    tiles = ([base for base in tiles[0] if base], [base for base in tiles[1] if base])
    bank_count = min(log2(max(1, BANK_BITS // (bits << len(vector)))), dims - len(vector))
    segment = segments(dims, vector, tiles, dims - bank_count - len(vector))
    bank = complete(dims, (*vector, *segment))
    shared = [base for base in segment if base in sides[0].register and base in sides[1].register]
    conflicts = tuple((1 << overlap(segment, tile)) - 1 for tile in tiles)
    return Choice(vector, bank, segment, tuple(shared[leave:]), (conflicts[0], conflicts[1]), names)


def segments(
    dims: int, vector: Sequence[int], tiles: tuple[Sequence[int], Sequence[int]], count: int
) -> tuple[int, ...]:
    """Return the `count` bases that select a row of all banks: bits that no access needs, then xors of both sides."""
    written, read = {*vector, *tiles[0]}, {*vector, *tiles[1]}
    found = [1 << bit for bit in range(dims) if 1 << bit not in written and 1 << bit not in read]
    if len(found) < count:
        first, second = sorted(written - read), sorted(read - written)
        if len(first) > len(second):
            first, second = second, first
        bad = max(0, min(count - len(first) - len(found), len(first)))
        found += [a ^ b for a, b in zip(first[bad:], second[bad:], strict=False)]
        found += [*first[:bad], *second[:bad]]
    return tuple(found[:count])


def complete(dims: int, bases: Sequence[int]) -> tuple[int, ...]:
    """Return the unit vectors that make `bases` a basis of the whole space.

    >>> complete(3, [0b001, 0b110])
    (2,)
    """
    span: dict[int, int] = {}
    for base in bases:
        reduce_into(span, base)
    return tuple(1 << bit for bit in range(dims) if reduce_into(span, 1 << bit))


def reduce_into(span: dict[int, int], value: int) -> bool:
    """Add `value` to the span; return True if it was not in it."""
    while value:
        height = value.bit_length()
        if height not in span:
            span[height] = value
            return True
        value ^= span[height]
    return False


def span_size(bases: Iterable[int]) -> int:
    """Return the dimension of the span."""
    span: dict[int, int] = {}
    return sum(reduce_into(span, base) for base in bases)


def overlap(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the dimension of the intersection of two spans.

    >>> overlap([0b01, 0b10], [0b11])
    1
    """
    return span_size(first) + span_size(second) - span_size((*first, *second))


def fall_back(sides: tuple[Side, Side], dims: int, bits: int) -> Choice:
    """Plain stores and loads with shorter vectors: what the layouts have in common, at least a bank if possible."""
    src, dst = sides
    vector = [column for column in src.register if column in dst.register][: log2(VECTOR_BITS // bits)]
    word = max(0, log2(max(1, WORD_BITS // bits)))
    if len(vector) < word:
        vector += [base for base in word_fillers(src, dst) if base not in vector][: word - len(vector)]
    wide = max(0, len(vector) + log2(bits) - log2(WORD_BITS))
    tiles = tuple(side.lane[: len(side.lane) - wide] for side in sides)
    choice = swizzled(sides, dims, bits, tuple(vector), (tiles[0], tiles[1]), 0, (PLAIN.name, PLAIN.name))
    bank = choice.bank if bits << len(vector) > 64 else longer_first(choice.bank, sides)
    inside = bank[: max(0, word - len(vector))]  # of one bank, if the vector is shorter
    conflicts = [1 << overlap((*choice.segment, *inside), tile) - overlap(inside, tile) for tile in tiles]
    return replace(choice, bank=bank, conflicts=(conflicts[0] - 1, conflicts[1] - 1))


def word_fillers(src: Side, dst: Side) -> list[int]:
    """Return bases that can complete a 4-byte word: registers of one side that are warps of the other, then warps."""
    left = sorted(column for column in src.register if column in dst.warp)
    right = sorted(column for column in dst.register if column in src.warp)
    first = min((left, right), key=lambda bases: (-len(bases), bases))
    both = [column for column in src.warp if column and column in dst.warp]
    alternating = [column for pair in zip_longest(src.warp, dst.warp, fillvalue=0) for column in pair if column]
    return list(dict.fromkeys([*first, *both, *alternating]))


def longer_first(bank: tuple[int, ...], sides: tuple[Side, Side]) -> tuple[int, ...]:
    """Return the bank bases with the registers of one side first: that side moves longer vectors."""
    kept = [[base for base in bank if base in side.register] for side in sides]
    chosen = max(kept, key=len)
    return (*chosen, *(base for base in bank if base not in chosen))


SLOWEST_FIRST = ("block", "warp", "lane", "register")


@light_dataclass
class Conversion:
    """`kind` as in the module; `comp` maps locations of the destination to locations of the source, trivial levels
    dropped.

    `exchanges` counts the register bits that swap with lane bits, for "shuffle" and "warp".
    """

    kind: str
    comp: LinearLayout
    exchanges: int = 0


@lru_cache(maxsize=MEMO)
def conversion(src: LinearLayout, dst: LinearLayout) -> Conversion:
    """Return the cheapest way from `src` to `dst`, two layouts of the same tensor."""
    comp = minimal_conversion(src, dst)
    if "block" in comp.by_in:
        return Conversion("cluster", comp)
    if "warp" in comp.by_in:
        return Conversion("shared", comp)
    if "lane" in comp.by_in:
        permutation = shuffle_permutation(src, dst)
        exchanges = -1 if permutation is None else count_exchanges(permutation, register_bits(src, dst))
        if 0 <= exchanges < 2:
            return Conversion("shuffle", comp, exchanges)
        return Conversion("warp" if can_sync_in_warp(src, dst) else "shared", comp, max(exchanges, 0))
    return Conversion("register" if comp.by_in else "none", comp)


@lru_cache(maxsize=MEMO)
def minimal_conversion(src: LinearLayout, dst: LinearLayout) -> LinearLayout:
    """Return the map from locations of `dst` to locations of `src`, without the slow levels that are unchanged."""
    comp = dst.invert_and_compose(src)
    for level in SLOWEST_FIRST:
        if level not in comp.by_in:
            continue
        rest = comp.quotient([level])
        if rest is None:
            break
        comp = rest
    return comp


def needs_shared(src: LinearLayout, dst: LinearLayout) -> bool:
    """Return True if the elements go through shared memory."""
    return conversion(src, dst).kind in ("warp", "shared", "cluster")


def can_sync_in_warp(src: LinearLayout, dst: LinearLayout) -> bool:
    """Return True if each warp reads only what it wrote itself: no level above lanes moves, and no warp holds
    copies."""
    return not src.free_variable_masks["warp"] and not dst.free_variable_masks["warp"]


# Shuffles


def register_bits(src: LinearLayout, dst: LinearLayout) -> int:
    """Return the register bits that a shuffle works on: those of the side that has more, without copies."""
    return max(len([column for column in side.by_in["register"] if column]) for side in (src, dst))


def shuffle_permutation(src: LinearLayout, dst: LinearLayout) -> tuple[int, ...] | None:
    """Return for each bit of a location in `src` its index in `dst`: the register bits, then the lane bits. None if
    bits are mixed.

    A register bit that holds copies is not counted. A lane bit that holds copies on both sides does not move; other
    bits without an element take the free indices, in order.
    """
    bits = register_bits(src, dst)
    lanes = max(len(side.by_in["lane"]) for side in (src, dst))
    mine, theirs = (padded_columns(side, bits, lanes) for side in (src, dst))
    goes: list[int | None] = [None] * len(mine)
    free = set(range(len(theirs)))
    for index, column in enumerate(mine):
        if column:
            if theirs.count(column) != 1 or mine.count(column) != 1:
                return None
            goes[index] = theirs.index(column)
        elif not theirs[index]:
            goes[index] = index
        if (to := goes[index]) is not None:
            free.discard(to)
    left = iter(sorted(free))
    return tuple(next(left) if to is None else to for to in goes)


def padded_columns(side: LinearLayout, bits: int, lanes: int) -> list[int]:
    """Return the register columns without copies and the lane columns, both padded with zeros."""
    registers = [column for column in side.by_in["register"] if column]
    own = side.by_in["lane"]
    return [*registers, *[0] * (bits - len(registers)), *own, *[0] * (lanes - len(own))]


def only_exchange(comp: LinearLayout) -> tuple[int, int] | None:
    """Return the register bit and the lane bit that are swapped, if nothing else moves."""
    names, bases = comp.out_names, dict(comp.bases)
    if names not in (("register", "lane"), ("lane", "register")) or set(bases) != set(names):
        return None
    at = names.index("lane")
    moved = {
        (name, bit): (vector[1 - at], vector[at])
        for name, vectors in bases.items()
        for bit, vector in enumerate(vectors)
        if (vector[1 - at], vector[at]) != ((1 << bit, 0) if name == "register" else (0, 1 << bit))
    }
    if len(moved) != 2 or {name for name, _ in moved} != set(names):
        return None
    register, lane = (next(bit for name, bit in moved if name == kind) for kind in ("register", "lane"))
    is_exchange = moved["register", register] == (0, 1 << lane) and moved["lane", lane] == (1 << register, 0)
    return (register, lane) if is_exchange else None


def count_exchanges(permutation: tuple[int, ...], bits: int) -> int:
    """Return the register bits that become lane bits: each needs one exchange between lanes.

    >>> count_exchanges((1, 2, 0), 1)  # r0 -> l0 -> l1 -> r0
    1
    """
    return sum(permutation[bit] >= bits for bit in range(bits))


# Shared memory


@lru_cache(maxsize=MEMO)
def scratch_bytes(
    src: LinearLayout, dst: LinearLayout, bits: int, loads_matrices: bool = True, stores_matrices: bool = True
) -> int:
    """Return the bytes of shared memory that the conversion needs for elements of `bits` bits: 0 if it needs none.

    Pointers have 64 bits; elements smaller than a byte are stored as bytes. Each block of a cluster has memory for its
    own part (Triton gives every block memory for the whole tensor).
    """
    way = conversion(src, dst).kind
    if way not in ("warp", "shared", "cluster"):
        return 0
    if way == "cluster":
        return (1 << (src.total_out_bits - len([c for c in src.by_in["block"] if c]))) * max(8, bits) // 8
    return shared_plan(src, dst, bits, loads_matrices, stores_matrices).bytes
