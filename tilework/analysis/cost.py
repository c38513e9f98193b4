"""Lower bounds of the cost of code: the cycles that each resource of a multiprocessor is busy with it
(docs/cost-model.md).

    found = loop_cost(loop)                       found.limit       "tensor cores"
    found.cycles["tensor cores"]    1024.0        found.bound       1024.0 cycles per iteration and block, at least
    found.serial                    1024.0        if nothing in a block overlaps but copies: dots, then the rest
    occupancy(loop, registers=188)                Occupancy(blocks=1, limit="registers")

128x256 += 128x64 @ 64x256 in f16 on an H200: 2097152 multiply-adds at 2048 a cycle. All blocks of a multiprocessor
share it, so `bound` is also the time between the ends of iterations of any two of its blocks, as long as there are
enough of them.

The rates are those of the module's `Target`; a target without rates has no costs. An estimate from below: addresses and
masks count once per 16 bytes, branches as taken, and operands of dots come from L2 (other programs read them too),
everything else from DRAM.

The cost of moving a tile from one layout to another, and to global memory:

    128x128 f16 of tensor cores, 8 warps, to [1, 8] elements of a thread   65536 bytes of shared memory, 2 barriers
        stored in that layout                                              64 instructions, 1024 sectors
        stored as it was computed, [1, 2]                                  256 instructions, 2048 half sectors

A thread that holds two adjacent elements of 2 bytes writes 4 bytes, and four threads write 16 bytes of a row. L2 has to
read the rest of such a sector from DRAM, and may write it back before the other half arrives. A conversion through
shared memory costs the bytes that it writes and reads there, with bank conflicts; all warps wait for each other before
the memory is read and before it is written again, unless each warp reads only what it wrote.

DRAM delivers 17.8 bytes per cycle to a multiprocessor, 700 cycles after a request, and a block lives about 3.5 times as
long as it waits for its tiles: blocks that hold 43 KB of tiles together keep DRAM busy (`keep_dram_busy`). Stage:
TTGIR. Cost: one walk over the code.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.allocation import module_allocation
from tilework.analysis.value_flows import reached
from tilework.ir import arith, math, scf, tt, ttg, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.effects import is_pure
from tilework.ir.encodings import distributed_of, layout_of, spread_of, tensor_core_of
from tilework.ir.functions import function_around, ops_in_order, symbol_of
from tilework.ir.module_facts import find_num_warps, find_target, num_warps, partition_warps
from tilework.ir.rewrite import defining_op
from tilework.ir.scf import LOOPS, loop_around
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.ir.types import bit_width, element_type, int_property, is_float, is_tensor, shape_of, tile_bits
from tilework.layouts.conversion import conversion, shared_plan, span_size
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import MEMO, order
from tilework.light_dataclass import light_dataclass
from tilework.target import Rates, Target

SECTOR = 32  # bytes of a request to L2
LANES = 32
REGISTER_BYTES = 4


class Trip(NamedTuple):
    """The cost for all threads of converting a tile to another layout."""

    kind: str  # `layouts/conversion.py`
    shared_bytes: int = 0  # through the banks of shared memory; conflicts count as more bytes
    instructions: int = 0  # of warps
    barriers: int = 0  # of all warps
    scratch: int = 0  # bytes of shared memory that it occupies


def trip(source: LinearLayout, result: LinearLayout, bits: int, matrices: tuple[bool, bool]) -> Trip:
    """Return the cost of a conversion, on a GPU whose warps load and store matrices or not."""
    kind = conversion(source, result).kind
    if kind == "shuffle":
        count = held_bytes(result, bits) // (LANES * REGISTER_BYTES) or 1
        return Trip(kind, count * LANES * REGISTER_BYTES, count)
    if kind not in ("warp", "shared", "cluster"):
        return Trip(kind)
    plan = shared_plan(source, result, bits, *matrices)
    written, read = held_bytes(source, bits), held_bytes(result, bits)
    moved = written * (1 + plan.write_conflicts) + read * (1 + plan.read_conflicts)
    each = LANES * max(plan.vector * bits // 8, 1)
    return Trip(kind, moved, (written + read) // each or 1, 0 if kind == "warp" else 2 * plan.reps, plan.bytes)


def held_bytes(layout: LinearLayout, bits: int) -> int:
    """Return the bytes that all threads have in their registers."""
    registers = sum(map(bool, layout.by_in["register"]))
    return ((max(bits, 8) // 8) << registers) * layout.in_size("lane") * layout.in_size("warp")


class Accesses(NamedTuple):
    """The accesses of a store of a tile to global memory."""

    instructions: int  # of warps
    sectors: int  # written, once for each instruction
    are_full: bool  # an instruction writes all of a sector

    @property
    def dram_bytes(self) -> int:
        """The DRAM traffic: partial sectors are read, and written each time."""
        return self.sectors * SECTOR * (1 if self.are_full else 2)


@lru_cache(maxsize=MEMO)
def accesses(layout: LinearLayout, fastest: int, most: int, bits: int) -> Accesses:
    """Return the accesses of a store in `layout`, of memory contiguous along the dimension `fastest`, with at most
    `most` elements of a thread per access.

    >>> from tilework.layouts.encodings import NvidiaMma
    >>> from tilework.layouts.to_linear import to_linear
    >>> accesses(to_linear(NvidiaMma(3, 0, (4, 1), (16, 64, 16)), (64, 64)), 1, 8, 16)
    Accesses(instructions=64, sectors=512, are_full=False)
    """
    levels = dict(layout.bases)
    registers, warps = [vector for vector in levels["register"] if any(vector)], levels["warp"]
    run = 1
    while run < most and registers and registers[0][fastest] == run and sum(map(bool, registers[0])) == 1:
        registers, run = registers[1:], 2 * run
    shift = max(SECTOR * 8 // max(bits, 8), 1).bit_length() - 1
    lanes = [sector_at(layout, vector, fastest, shift) for vector in levels["lane"]]
    each, touched = 1 << len(registers), 1 << span_size(lanes)
    written = (run << sum(map(any, levels["lane"]))) * max(bits, 8) // 8
    return Accesses(each << len(warps), each * touched << sum(map(any, warps)), written >= touched * SECTOR)


def sector_at(layout: LinearLayout, coordinates: tuple[int, ...], fastest: int, shift: int) -> int:
    """Return the index of a sector: the higher bits of the coordinate along `fastest`, and the other dimensions."""
    index = 0
    for dim, value in enumerate(coordinates):
        index = index * layout.outs[dim][1] + (value >> shift if dim == fastest else value)
    return index


TENSOR, MUFU, ISSUE, SHARED, L2, DRAM = "tensor cores", "MUFU", "issue slots", "shared memory", "L2", "DRAM"
RESOURCES = (TENSOR, MUFU, ISSUE, SHARED, L2, DRAM)  # of equal ones the first is the limit
WIDEST = 16  # bytes that one access of a thread moves
WGMMA_ROWS = 64


@light_dataclass
class Cost:
    """Cycles of one multiprocessor that code takes of each resource, once."""

    cycles: Mapping[str, float]
    macs: int = 0  # multiply-adds of its dots
    drains: bool = False  # it waits for all of its dots before it continues
    latency: float = 0.0  # cycles that a block waits for memory; less if copies were started iterations before

    @property
    def limit(self) -> str:
        return max(RESOURCES, key=lambda name: self.cycles[name])

    @property
    def bound(self) -> float:
        return self.cycles[self.limit]

    @property
    def serial(self) -> float:
        """The cycles of a block that is alone: dots, then the rest if it waits for them, or the memory latency."""
        rest = max(self.cycles[MUFU], self.cycles[ISSUE])
        return max(self.bound, self.latency, self.cycles[TENSOR] + rest if self.drains else 0)

    def estimate(self, blocks: int) -> float:
        """Return the cycles per iteration of a multiprocessor with `blocks` blocks: one may run while another waits."""
        return max(self.bound, self.serial / max(blocks, 1))


@light_dataclass
class Occupancy:
    """The number of concurrent blocks of a multiprocessor, and the resource that limits it."""

    blocks: int
    limit: str


def loop_cost(loop: Operation) -> Cost | None:
    """Return the cost of one iteration of a loop, or of a function, without the loops in it; None for a target without
    rates."""
    rates, ops = find_target(loop).rates, own_ops(loop)
    if rates is None:
        return None
    meter = Meter(rates, find_num_warps(loop) or 1, address_ops(ops), find_target(loop).matrix_access)
    for op in ops:
        meter.add(op)
    waits = [op for op in ops if type(op) is ttng.WarpGroupDotWaitOp]
    is_async = any(isinstance(op, ttng.WarpGroupDotOp) and op.is_async.value.data for op in ops)
    drains = bool(meter.macs) and (not is_async or any(int_property(wait, "pendings") == 0 for wait in waits))
    latency = rates.memory_cycles / iterations_ahead(ops) if is_loading(ops) else 0
    return Cost(meter.cycles(), meter.macs, drains, latency)


def concurrent_cost(costs: Sequence[Cost]) -> Cost:
    """Return the cost of concurrent code: the partitions of a warp-specialized loop. None of them waits for another's
    dots."""
    cycles = {name: sum(cost.cycles[name] for cost in costs) for name in RESOURCES}
    latency = max(cost.latency for cost in costs)
    return Cost(cycles, sum(cost.macs for cost in costs), len(costs) == 1 and costs[0].drains, latency)


def own_ops(op: Operation) -> list[Operation]:
    """Return the ops inside of `op`, but not inside of a loop in it."""
    found: list[Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                found.append(inner)
                if type(inner) not in LOOPS:
                    found += own_ops(inner)
    return found


def hot_loops(function: Operation) -> list[Operation]:
    """Return the innermost loops, in program order."""
    loops = [op for op in ops_in_order(*function.regions) if type(op) in LOOPS]
    return [loop for loop in loops if not any(type(inner) in LOOPS for inner in ops_in_order(*loop.regions))]


def occupancy(op: Operation, registers: int | None = None, shared: int | None = None) -> Occupancy | None:
    """Return the blocks per multiprocessor of the kernel around `op`, with so many registers per thread, at least its
    accumulators, and bytes of shared memory; the default is the code as it is."""
    rates = find_target(op).rates
    if rates is None:
        return None
    function = function_around(op) if type(op) is not tt.FuncOp else op
    warps = (find_num_warps(function) or 1) + partition_warps(function)
    module = function.parent_op()
    if shared is None:
        assert isinstance(module, ModuleOp)
        shared = module_allocation(module, find_target(op))[symbol_of(function)].size
    return resident_blocks(find_target(op), max(registers or 0, carried_registers(function)), shared, warps)


def resident_blocks(target: Target, registers: int, shared: int, warps: int) -> Occupancy | None:
    """Return the blocks per multiprocessor of a kernel with so many registers per thread, bytes of shared memory and
    warps; None if the target's rates are not known."""
    rates, limits = target.rates, target.limits
    if rates is None:
        return None
    per_warp = -(-max(registers, 24) // 8) * 8 * LANES
    capacities = {
        "shared memory": rates.shared_memory // (shared + rates.reserved_shared),
        "registers": limits.registers // (per_warp * warps),
        "threads": rates.warps // warps,
        "blocks": rates.blocks,
    }
    limit = min(capacities, key=lambda name: capacities[name])
    return Occupancy(capacities[limit], limit)


LEAST_SHARE = 0.75  # of a kernel's registers: with fewer it would spill


def registers_for_another_block(target: Target, registers: int, shared: int, warps: int) -> int | None:
    """Return the registers of a thread with which one more block fits a multiprocessor; None if they are far fewer than
    a kernel has, or if half of the multiprocessor's warps are in use already: more hide little latency.
    """
    held = resident_blocks(target, registers, shared, warps)
    if target.rates is None or held is None or held.limit != "registers":
        return None
    fewer = target.limits.registers // (LANES * warps * (held.blocks + 1)) // 8 * 8
    if held.blocks * warps >= enough_warps(target.rates) or fewer < LEAST_SHARE * registers:
        return None
    return fewer


def enough_warps(rates: Rates) -> int:
    """Return the warps of a multiprocessor beyond which more hide little latency."""
    return rates.warps // 2


def registers_for_blocks(target: Target, registers: int, shared: int, warps: int) -> int:
    """Return the most registers of a thread with which as many blocks fit a multiprocessor as with `registers`."""
    held = resident_blocks(target, registers, shared, warps)
    return target.limits.registers // (LANES * warps * max(held.blocks if held is not None else 1, 1)) // 8 * 8


SPILL_BYTES = 45  # per cycle of a multiprocessor: spills of kernels that are limited by DRAM pass through L2


def assembled_cost(target: Target, registers: int, spilled: int, shared: int, warps: int, loaded: int = 0) -> float:
    """Return the cycles of a block that depend on its registers: its lifetime, in which other blocks run, and the bytes
    that each thread spills and reads back. A block whose loads fill `loaded` registers at a time waits for memory half
    as long again if it has not that many.
    """
    rates, held = target.rates, resident_blocks(target, registers, shared, warps)
    assert rates is not None and held is not None, "a target without rates has no costs"
    blocks = max(min(held.blocks, enough_warps(rates) // warps), 1)
    lives = LIVES + (0.5 if loaded and registers < loaded + OTHERS else 0)
    return lives * rates.memory_cycles / blocks + spilled * LANES * warps / SPILL_BYTES


def carried_registers(function: Operation) -> int:
    """Return the registers of a thread that the floats carried by one loop take."""
    carried = [
        sum(
            registers(arg.type) * bit_width(arg.type) // 32 for arg in op.body.block.args[1:] if is_float_tile(arg.type)
        )
        for op in ops_in_order(*function.regions)
        if isinstance(op, scf.ForOp)
    ]
    return max(carried, default=0)


def is_float_tile(type: Attribute) -> bool:
    return is_tensor(type) and distributed_of(type) is not None and is_float(element_type(type))


def registers(type: Attribute) -> int:
    """Return the elements of a tensor that one thread has."""
    return layout_of(type).in_size("register")


def is_loading(ops: Iterable[Operation]) -> bool:
    return any(type(op) in COPIES or (type(op) is tt.LoadOp and is_tensor(op.results[0].type)) for op in ops)


def iterations_ahead(ops: Iterable[Operation]) -> int:
    """Return how many iterations before their use tiles are requested: one less than there are buffers; 1 for loads."""
    buffers = [ring for op in ops if type(op) in COPIES if (ring := ring_size(op)) is not None]
    loads = any(type(op) is tt.LoadOp and is_tensor(op.results[0].type) for op in ops)
    return 1 if loads or not buffers else max(min(buffers) - 1, 1)


def copied_to(op: Operation) -> SSAValue:
    """Return the shared memory that a copy writes, the operand after its barrier."""
    return next(value for value in reversed(op.operands) if is_memdesc(value.type))


def ring_size(op: Operation) -> int | None:
    """Return the number of slots of the ring buffer that a copy writes."""
    view = defining_op(copied_to(op))
    return shape_of(view.operands[0].type)[0] if isinstance(view, ttg.MemDescIndexOp) else None


def address_ops(ops: Iterable[Operation]) -> set[Operation]:
    """Return the ops that only compute addresses and masks."""

    def makers(op: Operation) -> list[Operation]:
        indices = (value for value in op.operands if is_index(value.type))
        return [made for made in map(defining_op, indices) if made is not None]

    return set(reached((made for op in ops if type(op) in ACCESSES for made in makers(op)), makers))


def is_index(type: Attribute) -> bool:
    return is_tensor(type) and not is_float(element_type(type))


class Meter:
    """Counts the resources that ops need."""

    def __init__(self, rates: Rates, warps: int, addresses: set[Operation], matrices: tuple[bool, bool]) -> None:
        self.rates, self.warps, self.addresses, self.matrices = rates, warps, addresses, matrices
        self.macs, self.tensor_cycles = 0, 0.0
        self.used: dict[str, float] = dict.fromkeys((MUFU, ISSUE, SHARED, L2, DRAM), 0.0)

    def cycles(self) -> dict[str, float]:
        rates = self.rates
        per_cycle = {MUFU: rates.mufu, ISSUE: rates.issues, SHARED: rates.shared_bytes}
        per_cycle |= {L2: rates.l2_bytes, DRAM: rates.dram_bytes}
        return {TENSOR: self.tensor_cycles} | {name: self.used[name] / rate for name, rate in per_cycle.items()}

    def add(self, op: Operation) -> None:
        """Count one op."""
        kind = type(op)
        if (rule := RULES.get(kind)) is not None:
            rule(self, op)
        elif kind in FREE or not op.results:
            return
        else:
            type_ = op.results[0].type
            if not is_tensor(type_):
                self.used[ISSUE] += self.warps  # a scalar: every warp computes it
            elif distributed_of(type_) is not None:
                self.elementwise(op, type_)

    def elementwise(self, op: Operation, type_: Attribute) -> None:
        instructions, mufu = WEIGHTS.get(type(op), (1.0, 0))
        count = registers(type_) * layout_of(type_).in_size("warp")
        if op in self.addresses:
            instructions /= WIDEST // 2
        elif is_float(element_type(type_)) and bit_width(type_) == 16:
            instructions /= 2  # two in one register
        self.used[ISSUE] += count * instructions
        self.used[MUFU] += count * LANES * mufu

    def move(self, type_: Attribute, *resources: str) -> None:
        """Count a tile through some resources."""
        size = tile_bits(type_) / 8
        for name in resources:
            self.used[name] += size

    def instructions(self, type_: Attribute) -> None:
        """Count the accesses of threads to a tile."""
        self.used[ISSUE] += tile_bits(type_) / 8 / (WIDEST * LANES)


def load(meter: Meter, op: Operation) -> None:
    type_ = op.results[0].type
    if is_tensor(type_):
        meter.move(type_, L2, *([] if feeds_dot(op.results[0]) else [DRAM]))
        meter.instructions(type_)


def feeds_dot(value: SSAValue, depth: int = 4) -> bool:
    """Return True if a tile becomes an operand of a dot without being computed with."""
    for use in value.uses:
        op = use.operation
        if type(op) in DOTS and use.index < 2:
            return True
        if depth and type(op) in PASSING and op.results and feeds_dot(op.results[0], depth - 1):
            return True
    return False


def store(meter: Meter, op: Operation) -> None:
    value = op.operands[1].type
    if is_tensor(value):
        shape, spread = shape_of(value), spread_of(value)
        fastest = order(spread, shape)[0]
        made = accesses(layout_of(value), fastest, WIDEST * 8 // max(bit_width(value), 8), bit_width(value))
        meter.used[DRAM] += made.dram_bytes
        meter.used[L2] += made.sectors * SECTOR
        meter.used[ISSUE] += made.instructions


def copy_in(meter: Meter, op: Operation) -> None:
    """A copy from global to shared memory: mostly operands of dots, which come from L2."""
    target = copied_to(op).type
    meter.move(target, L2, SHARED)
    if type(op) is ttg.AsyncCopyGlobalToLocalOp:
        meter.instructions(target)


def copy_out(meter: Meter, op: Operation) -> None:
    memory = next(value.type for value in op.operands if is_memdesc(value.type))
    meter.move(memory, SHARED, L2, DRAM)


def shared_access(meter: Meter, op: Operation) -> None:
    tile = next((value.type for value in (*op.results, *op.operands) if is_tensor(value.type)), None)
    if tile is not None:
        meter.move(tile, SHARED)
        meter.instructions(tile)


def convert(meter: Meter, op: Operation) -> None:
    source, result = op.operands[0].type, op.results[0].type
    moved = trip(layout_of(source), layout_of(result), bit_width(result), meter.matrices)
    meter.used[SHARED] += moved.shared_bytes
    meter.used[ISSUE] += moved.instructions


def reduce(meter: Meter, op: Operation) -> None:
    """Count one combination per element, and across lanes a shuffle and a combination per step."""
    for operand, result in zip(op.operands, op.results, strict=False):
        layout = layout_of(operand.type)
        steps = 2 * layout.in_size("lane").bit_length() * (registers(result.type) if is_tensor(result.type) else 1)
        meter.used[ISSUE] += layout.in_size("warp") * (registers(operand.type) + steps)


def dot(meter: Meter, op: Operation) -> None:
    left, right, result = op.operands[0].type, op.operands[1].type, op.results[0].type
    *_, m, k = shape_of(left)
    count, bits, mma = prod(shape_of(result)) * k, max(bit_width(left), 8), tensor_core_of(result)
    meter.macs += count
    if mma is None:
        meter.used[ISSUE] += count / LANES
        return
    rate = meter.rates.macs[min(bits, 64)] * (1 if mma.is_hopper else meter.rates.warp_macs)
    meter.tensor_cycles += count / rate
    if mma.is_hopper:
        columns = shape_of(right)[-1]
        if is_memdesc(left):
            meter.used[SHARED] += prod(shape_of(left)) * bits / 8 * max(columns // mma.instr_shape[1], 1)
        meter.used[SHARED] += prod(shape_of(right)) * bits / 8 * max(m // WGMMA_ROWS, 1)
        meter.used[ISSUE] += meter.warps * count / (WGMMA_ROWS * mma.instr_shape[1] * mma.instr_shape[2]) / 4
    else:
        meter.used[ISSUE] += count / (16 * 8 * 16 * 16 / bits)


COPIES = frozenset({ttg.AsyncCopyGlobalToLocalOp, ttng.AsyncTMACopyGlobalToLocalOp})
DOTS = frozenset({tt.DotOp, tt.DotScaledOp, ttng.WarpGroupDotOp})
PASSING = frozenset({
    ttg.ConvertLayoutOp, ttg.LocalAllocOp, ttg.LocalLoadOp, ttg.MemDescTransOp, tt.TransOp, tt.FpToFpOp,
    arith.ExtFOp, arith.TruncFOp,
})  # fmt: skip
ACCESSES = frozenset({tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp, ttg.AsyncCopyGlobalToLocalOp})
FREE = frozenset({
    arith.ConstantOp, arith.BitcastOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp,
    tt.BitcastOp, tt.SplitOp, tt.JoinOp, tt.UnsplatOp, tt.CatOp, tt.MakeRangeOp, ttng.WarpGroupDotWaitOp,
    ttg.MemDescIndexOp, ttg.MemDescTransOp, ttg.MemDescSubsliceOp, scf.IfOp, scf.ForOp, scf.WhileOp,
})  # fmt: skip
# (instructions, of them MUFU) per element; anything else is one instruction
WEIGHTS: dict[type[Operation], tuple[float, int]] = {
    math.Exp2Op: (1, 1),
    math.ExpOp: (2, 1),
    math.Log2Op: (1, 1),
    math.LogOp: (2, 1),
    math.RsqrtOp: (1, 1),
    math.SqrtOp: (3, 1),
    math.SinOp: (8, 1),
    math.CosOp: (8, 1),
    math.ErfOp: (12, 1),
    arith.DivfOp: (4, 1),
    tt.PreciseDivFOp: (8, 1),
    tt.PreciseSqrtOp: (8, 1),
    arith.DivSIOp: (16, 1),
    arith.RemSIOp: (16, 1),
    arith.DivUIOp: (16, 1),
    arith.RemUIOp: (16, 1),
    arith.ExtSIOp: (0, 0),
    arith.ExtUIOp: (0, 0),
    SelectOp: (1, 0),
}
Rule = Callable[[Meter, Operation], None]
RULES: dict[type[Operation], Rule] = {
    tt.LoadOp: load,
    tt.DescriptorLoadOp: lambda meter, op: meter.move(op.results[0].type, L2),
    tt.StoreOp: store,
    ttg.AsyncCopyGlobalToLocalOp: copy_in,
    ttng.AsyncTMACopyGlobalToLocalOp: copy_in,
    ttng.AsyncTMACopyLocalToGlobalOp: copy_out,
    ttg.LocalLoadOp: shared_access,
    ttg.LocalStoreOp: shared_access,
    ttg.LocalAllocOp: shared_access,
    ttg.ConvertLayoutOp: convert,
    tt.ReduceOp: reduce,
    tt.ScanOp: reduce,
    tt.DotOp: dot,
    ttng.WarpGroupDotOp: dot,
}


OTHERS = 16  # registers of a thread besides its parts of tiles
LIVES = 3.5  # lifetime of a block / time it waits for its tiles


def keep_dram_busy(op: Operation, tiles: Iterable[Attribute], taken: int, shared: int | None) -> bool:
    """Return True if the blocks around `op` that load `tiles` keep DRAM busy, with `taken` registers of a thread for
    tiles, and `shared` bytes (None: as they are)."""
    rates, fitting = find_target(op).rates, occupancy(op, OTHERS + taken, shared)
    if rates is None or fitting is None:
        return False
    requested = fitting.blocks * sum(map(tile_registers, tiles)) * 4 * LANES * num_warps(op)
    return requested >= busy_bytes(rates)


def busy_bytes(rates: Rates) -> float:
    """Return the bytes that the blocks of a multiprocessor have to hold together to keep DRAM busy."""
    return LIVES * rates.memory_cycles * rates.dram_bytes


def should_load_at_once(op: Operation) -> bool:
    """Return True if all loads of the tile that `op` writes to shared memory should be issued before any of it is
    written.

    ptxas targets so few registers that a multiprocessor is full of warps, 32, and loads a tile that needs more in
    parts, each when the previous one is written: a block waits for memory several times. In a loop the pipeliner
    decides.
    """
    rates = find_target(op).rates
    if rates is None or loop_around(op) is not None:
        return False
    first = defining_op(op.operands[0])
    loads = [made for made in reached([first] if first is not None else [], makers) if type(made) is tt.LoadOp]
    tiles = [load.results[0].type for load in loads]
    taken, full = sum(map(tile_registers, tiles)), find_target(op).limits.registers // (rates.warps * LANES)
    return OTHERS + taken > full and keep_dram_busy(op, tiles, taken, None)


def makers(op: Operation) -> list[Operation]:
    """Return the ops that compute the tile operands of `op` in registers."""
    if not is_pure(op) or op.regions:
        return []
    return [made for operand in op.operands if is_tensor(operand.type) and (made := defining_op(operand)) is not None]


def tile_registers(type: Attribute) -> int:
    """Return the registers of a thread that a tile takes."""
    return registers(type) * bit_width(type) // 32 if is_tensor(type) else 0
