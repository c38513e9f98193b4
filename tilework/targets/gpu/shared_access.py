"""Shared memory: descriptors, and moves between registers and shared memory.

    move = Move(low, base, offsets, f16)        # `offsets`: register, lane, warp -> offset in elements
    move.store(registers)
    registers = move.load()

Registers with adjacent offsets move together, up to 16 bytes at a time. A register that holds a duplicate is not
stored, and on a load gets the value of the register that it duplicates.

`Table` is an array in shared memory that all threads of a block fill and read, adjacent entries in adjacent lanes.

Asynchronous copies go from global to shared memory. One instruction moves some bytes (say 4, 8 or 16) that are adjacent
in the registers of pointers, in global and in shared memory, and share one bit of the mask. Where no instruction is so
narrow, or the GPU has none, elements are loaded and stored by ordinary instructions, and are complete even before the
wait. Elements that are masked off become zero, whatever `other` says: where `other` is not zero, the pipeliner selects
after the wait. Where several threads hold the same element, one copies it, in every block of a cluster.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod

from xdsl.ir import Attribute, Operation

from tilework.analysis.allocation import aligned
from tilework.ir import ttg, ttng
from tilework.ir.encodings import layout_of, shared_of
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import array_values, bit_width, element_type, int_property
from tilework.layouts.banks import offsets_of, vector_bits
from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.to_linear import shape_per_cta
from tilework.targets.gpu.axes import memory_layout, subsets
from tilework.targets.gpu.device import Access, Copy, MatrixForm
from tilework.targets.gpu.global_access import hints_of, load, pointee, segments, width_of
from tilework.targets.gpu.lowering import Lowering, Registers, Shared, layout, lowers
from tilework.targets.gpu.packing import (
    REGISTER_BITS,
    access_shape,
    from_memory,
    held_type,
    pack,
    pack_registers,
    to_memory,
    unpack_register,
)
from tilework.targets.gpu.views import combined, coordinates, spread_of
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import i32, vector
from tilework.targets.llvm.values import Value


class Move:
    """A move of all registers of a thread to or from shared memory.

    With a `round_size` (in elements) the registers move in rounds of that many offsets, which all use the same memory.
    With `matrices` they move as matrices (`Gpu.matrix_form`) where the layout allows it. `more` are values besides
    lane, warp and block on which the layout depends.
    """

    def __init__(
        self,
        low: Lowering,
        base: Value,
        layout: LinearLayout,
        element: Attribute,
        offset: int = 0,
        round_size: int = 0,
        matrices: bool = False,
        more: Mapping[str, Value] | None = None,
    ) -> None:
        self.low, self.base, self.element = low, base, element
        self.held = held_type(element)
        self.bytes = self.held.bits // 8
        self.columns = layout.by_in["register"]
        self.copies = sum(1 << bit for bit, column in enumerate(self.columns) if not column)
        self.round_size = round_size or 1 << 30
        run = vector_bits(layout, self.held.bits)
        self.run = 0 if offset & ((1 << run) - 1) else run
        self.form = self.matrix_form(layout, offset) if matrices else None
        offsets = self.form.addresses(layout) if self.form else layout
        self.spread = spread_of(low, offsets, "offset", more)
        self.fixed = [column ^ offset for column in offsets.images("register")]

    def matrix_form(self, layout: LinearLayout, offset: int) -> MatrixForm | None:
        """Return the matrix access for these registers, if there is one and it is wider than a vector access."""
        if self.held is not register_type(self.element) or offset * self.bytes % 16:
            return None
        form = self.low.gpu.matrix_form(layout, self.held.bits, self.round_size)
        return form if form is not None and form.bytes > self.bytes << self.run else None

    def address(self, offset: int) -> Value:
        """Return the address of the element at this register's contribution to the offset."""
        b = self.low.builder
        apart = offset & ~self.spread.mask
        moved = combined(b, self.spread, offset & self.spread.mask)
        return b.gep(b.gep(self.base, b.mul(moved, self.bytes)), apart * self.bytes)

    def groups(self, round_index: int) -> list[tuple[int, list[int]]]:
        """Return (offset, registers in memory order) of each access, without registers that hold duplicates."""
        lanes = [self.columns.index(1 << bit) for bit in range(self.run)]
        taken, members = sum(1 << bit for bit in lanes), subsets(lanes)
        found = []
        for first, offset in enumerate(self.fixed):
            if first & (taken | self.copies) or offset // self.round_size != round_index:
                continue
            found.append((offset % self.round_size, [first | member for member in members]))
        return found

    def store(self, registers: Registers, round_index: int = 0) -> None:
        if self.form is not None:
            return self.form.store(self, registers, round_index)
        low, b = self.low, self.low.builder
        for offset, members in self.groups(round_index):
            held = [to_memory(low, self.element, registers[member]) for member in members]
            parts = pack_registers(low, held) if self.held.bits < REGISTER_BITS <= self.held.bits * len(held) else held
            b.store(b.joined(parts), self.address(offset), align=self.bytes * len(held))

    def store_if(self, condition: Value | None, registers: Registers) -> None:
        """Store where the condition holds, or unconditionally if it is None."""
        if condition is None or condition.constant == 1:
            self.store(registers)
        else:
            self.store_vectors(condition, registers)

    def store_vectors(self, condition: Value | None, registers: Mapping[int, Value] | Registers) -> None:
        """Store without a branch, even under a condition: all threads of a warp must reach the barrier that follows
        together.
        """
        low = self.low
        for offset, members in self.groups(0):
            moved = access_shape(self.held.bits, len(members))
            given = pack(low, [to_memory(low, self.element, registers[member]) for member in members], moved.type)
            low.gpu.store_shared(low.builder, Access(self.address(offset), moved, condition), given)

    def load(self) -> Registers:
        return self.with_copies(self.load_some(0))

    def load_some(self, round_index: int) -> dict[int, Value]:
        """Load the registers of one round."""
        if self.form is not None:
            return self.form.load(self, round_index)
        low, b = self.low, self.low.builder
        found: dict[int, Value] = {}
        for offset, members in self.groups(round_index):
            size = self.held.bits * len(members)
            type, count = (
                (i32, size // REGISTER_BITS) if self.held.bits < REGISTER_BITS <= size else (self.held, len(members))
            )
            loaded = b.load(vector(type, count) if count > 1 else type, self.address(offset), align=size // 8)
            values = b.lanes(loaded)
            if type is not self.held:
                values = [element for packed in values for element in unpack_register(low, packed, self.held)]
            for member, value in zip(members, values, strict=True):
                found[member] = from_memory(low, self.element, value)
        return found

    def with_copies(self, found: dict[int, Value]) -> Registers:
        return tuple(found[register & ~self.copies] for register in range(len(self.fixed)))


def exchange_moves(
    low: Lowering, op: Operation, layouts: Callable[[int], tuple[LinearLayout, LinearLayout]]
) -> list[tuple[Move, Move, LinearLayout]]:
    """Return, for each operand, its moves to and from scratch memory and the layout of its writes; the operands with
    the largest elements come first in memory. `layouts` returns the layouts of writes and reads for an element size in
    bytes.
    """
    types = [element_type(operand.type) for operand in op.operands]
    sizes = [held_type(type).bits // 8 for type in types]
    base, made = low.scratch_address(op), dict[int, tuple[Move, Move, LinearLayout]]()
    for operand in sorted(range(len(types)), key=lambda operand: -sizes[operand]):
        written, read = layouts(sizes[operand])
        store, load = (Move(low, base, layout, types[operand]) for layout in (written, read))
        made[operand] = store, load, written
        base = low.builder.gep(base, written.out_size("offset") * sizes[operand])
    return [made[operand] for operand in range(len(types))]


def move_of(low: Lowering, memory: Shared, descriptor: Attribute, tensor: Attribute, matrices: bool = False) -> Move:
    """Return the move between the memory of a descriptor and the registers of a tensor."""
    layout = offsets_of(layout_of(tensor), layout_of(descriptor))
    return Move(low, memory.base, layout, element_type(tensor), memory.offset, matrices=matrices)


def check_in_block(low: Lowering, op: Operation, descriptor: Attribute, tensor: Attribute) -> None:
    """Refuse accesses to the shared memory of another block of the cluster, and stores that leave gaps in it."""
    if low.facts.num_ctas == 1:
        return
    way = layout_of(tensor).invert_and_compose(layout_of(descriptor))
    copies = [not any(vector) for vector in dict(layout_of(descriptor).bases)["block"]]
    at, offset = way.out_names.index("block"), way.out_names.index("offset")
    for name, vectors in way.bases:
        for bit, target in enumerate(vectors):
            is_own = name == "block" and not copies[bit]
            strays = any(
                (target[at] ^ (is_own << bit)) >> block & 1 for block, copied in enumerate(copies) if not copied
            )
            lacks = name == "block" and copies[bit] and target[offset] and type(op) is not ttg.LocalLoadOp
            if strays or lacks:
                raise low.refuse(op, "an exchange between the blocks of a cluster")


def buffer_bytes(type: MemDescType) -> int:
    """Return the bytes of one buffer (the dimensions of the encoding) in one block."""
    encoding = shared_of(type)
    assert encoding is not None
    shape = type.alloc_dims[len(type.alloc_dims) - encoding.rank :]
    size = prod(shape_per_cta(encoding, shape)) * max(8, bit_width(type)) // 8
    return aligned(size, encoding.buffer_alignment)


@lowers(ttg.LocalAllocOp)
def lower_local_alloc(low: Lowering, op: Operation) -> Shared:
    made = Shared(low.builder.gep(low.smem, low.allocation.explicit[op.results[0]].offset))
    if op.operands:
        source = op.operands[0]
        check_in_block(low, op, op.results[0].type, source.type)
        move_of(low, made, op.results[0].type, source.type, low.gpu.stores_matrices).store(low[source])
    return made


@lowers(ttg.LocalDeallocOp)
def lower_local_dealloc(low: Lowering, op: Operation) -> None:
    """Emit nothing: memory is allocated statically."""


@lowers(ttg.LocalLoadOp)
def lower_local_load(low: Lowering, op: Operation) -> Registers:
    memory = op.operands[0]
    check_in_block(low, op, memory.type, op.results[0].type)
    return move_of(low, low[memory], memory.type, op.results[0].type, matrices=True).load()


def prepare_reads(low: Lowering, loop: Operation) -> None:
    """Hoist the thread-dependent part of the addresses from which `loop` loads operands of asynchronous MMAs: the MMAs
    wait for these loads.
    """
    for op in loop.regions[0].block.ops:
        if type(op) is ttg.LocalLoadOp and any(
            type(use.operation) is ttng.WarpGroupDotOp for use in op.results[0].uses
        ):
            memory, result = op.operands[0].type, op.results[0].type
            offsets = offsets_of(layout_of(result), layout_of(memory))
            move = Move(low, low.smem, offsets, element_type(result), matrices=True)
            if move.form is not None:
                move.form.prepare(low)


@lowers(ttg.LocalStoreOp)
def lower_local_store(low: Lowering, op: Operation) -> None:
    source, memory = op.operands
    check_in_block(low, op, memory.type, source.type)
    move_of(low, low[memory], memory.type, source.type, low.gpu.stores_matrices).store(low[source])


@lowers(ttg.MemDescIndexOp)
def lower_index(low: Lowering, op: Operation) -> Shared:
    """Select one of several buffers."""
    memory, index = op.operands
    type = memory.type
    assert isinstance(type, MemDescType)
    b, source = low.builder, low[memory]
    result = op.results[0].type
    assert isinstance(result, MemDescType)
    return Shared(b.gep(source.base, b.mul(low.scalar(index), buffer_bytes(result))), source.offset)


@lowers(ttg.MemDescSubsliceOp)
def lower_subslice(low: Lowering, op: Operation) -> Shared:
    """Select a part of a buffer by the offset of its first element."""
    memory = op.operands[0]
    inverse = layout_of(memory.type).pseudoinvert()
    starts = array_values(op.properties["offsets"])
    rank = len(inverse.in_names)
    found = inverse.apply({f"dim{dim}": start for dim, start in enumerate(starts[len(starts) - rank :])})
    return Shared(low[memory].base, low[memory].offset ^ found["offset"])


@lowers(ttg.MemDescTransOp, ttg.MemDescReshapeOp, ttg.MemDescReinterpretOp)
def lower_memory_view(low: Lowering, op: Operation) -> Shared:
    """Return the same memory; the encoding of the result describes it."""
    return low[op.operands[0]]


@lowers(ttg.GlobalScratchAllocOp)
def lower_global_scratch(low: Lowering, op: Operation) -> Registers:
    """Return this program's scratch memory at the offset planned for the op."""
    assert isinstance(op, ttg.GlobalScratchAllocOp)
    if not op.is_default:
        raise low.refuse(op, f"scratch memory of the backend '{op.backend.data}'")
    return (low.builder.gep(low.scratch, low.scratch_offsets[op]),)


class Table:
    """An array of `entries` (a power of two) elements at an address; `like` is any layout of the block's threads."""

    def __init__(self, low: Lowering, base: Value, entries: int, like: LinearLayout, element: Attribute) -> None:
        bits = log2(entries)
        lanes, warps = (len(like.by_in[level]) for level in ("lane", "warp"))
        by_lane = {bit: bit for bit in range(min(lanes, bits))}
        by_warp = {bit: bit + lanes for bit in range(min(warps, max(0, bits - lanes)))}
        self.low, self.layout = low, memory_layout(like, range(lanes + warps, bits), by_lane, by_warp)
        self.move = Move(low, base, self.layout, element)
        self.mine = low.is_first_copy(self.layout)  # whether this thread owns entries

    def fill(self, value: Value) -> None:
        """Store one value to all entries."""
        self.move.store_if(self.mine, (value,) * self.layout.in_size("register"))

    def read(self) -> Iterator[tuple[Value, Value]]:
        """Yield the index and the value of each entry that this thread owns."""
        entries = coordinates(self.low, self.layout.rename_outs(["dim0"]))
        for (entry,), value in zip(entries, self.move.load(), strict=True):
            yield entry, value


@lowers(ttg.AsyncCopyGlobalToLocalOp)
def lower_async_copy(low: Lowering, op: Operation) -> Registers:
    pointers, memory, mask, _ = segments(op)
    assert pointers is not None and memory is not None
    element = pointee(pointers.type)
    buffer: Shared = low[memory]
    move = Move(low, buffer.base, offsets_of(layout(pointers), layout(memory)), element, buffer.offset)
    known = width_of(low, pointers, mask, move.held.bits)
    shortest, longest = low.gpu.copy_bytes or (1 << 30, move.bytes)
    hinted = min(int_property(op, "contiguity", 1), longest // move.bytes)
    width = min(max(known, hinted), in_order(move))
    addresses: Registers = low[pointers]
    masks: Registers | None = low[mask] if mask is not None else None
    if width * move.bytes < shortest:
        loaded: list[Value] = []
        for first in range(0, len(addresses), known):
            loaded += load(
                low, element, addresses[first], known, masks[first] if masks else None, hints=hints_of(low, op)
            )
        with low.only_if(low.is_first_copy(layout(pointers), in_block=True)):
            move.store(tuple(loaded))
        low.gpu.stored_for_matrices(low.builder, memory.type)
        return ()
    mine = low.is_first_copy(layout(pointers), in_block=True)
    for first in range(0, len(addresses), width):
        if not first & move.copies:
            target, apart = address_of(low, move, first)
            mask = masks[first] if masks else None
            copy = Copy(target, apart, addresses[first], width * move.bytes, mask, mine)
            low.gpu.async_copy(low.builder, copy)
    return ()


def in_order(move: Move) -> int:
    """Return how many of the first registers are adjacent in shared memory, aligned and in this order."""
    run = 0
    while run < move.run and move.columns[run] == 1 << run:
        run += 1
    return 1 << run


def address_of(low: Lowering, move: Move, register: int) -> tuple[Value, int]:
    """Return the shared-memory address of `register` as an address and a constant offset in bytes."""
    b, offset = low.builder, move.fixed[register]
    moved = combined(b, move.spread, offset & move.spread.mask)
    return b.gep(move.base, b.mul(moved, move.bytes)), (offset & ~move.spread.mask) * move.bytes


@lowers(ttg.AsyncCommitGroupOp)
def lower_commit_group(low: Lowering, op: Operation) -> Registers:
    low.gpu.commit_copies(low.builder)
    return ()


@lowers(ttg.AsyncWaitOp)
def lower_wait(low: Lowering, op: Operation) -> Registers:
    """Wait for this thread's copies; the barrier that follows (`analysis/membar.py`) publishes them to the block."""
    low.gpu.wait_copies(low.builder, int_property(op, "num"))
    return ()
