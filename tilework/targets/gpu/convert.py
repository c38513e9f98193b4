"""`ttg.convert_layout`: move elements between registers, lanes and warps, as cheaply as the two layouts allow.

`layouts/conversion.py` chooses the method. A conversion through shared memory proceeds in rounds that reuse the same
bytes: all threads write, wait, read, and wait before the next round writes.
"""

from collections.abc import Sequence
from functools import partial

from xdsl.ir import Operation

from tilework.analysis.cost import should_load_at_once
from tilework.ir import ttg
from tilework.ir.encodings import layout_of
from tilework.ir.types import bit_width, element_type
from tilework.layouts.conversion import conversion, only_exchange, shared_plan
from tilework.layouts.linear import LinearLayout, log2
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.packing import REGISTER_BITS, pack_registers, unpack_register
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.views import chosen, xor_columns
from tilework.targets.llvm.types import Type
from tilework.targets.llvm.values import Value


@lowers(ttg.ConvertLayoutOp)
def lower_convert(low: Lowering, op: Operation) -> Registers:
    source, result = layout_of(op.operands[0].type), layout_of(op.results[0].type)
    registers: Registers = low[op.operands[0]]
    way = conversion(source, result)
    if way.kind == "none":
        return registers
    if way.kind == "register":
        sources = [way.comp.apply(register=register) for register in range(result.in_size("register"))]
        return tuple(registers[source["register"]] for source in sources)
    if way.kind == "shuffle":
        return through_shuffles(low, registers, way.comp, result.in_size("register"))
    if way.kind == "cluster":
        raise low.refuse(op, "a layout conversion between the blocks of a cluster")
    return through_memory(low, op, registers, source, result, in_warp=way.kind == "warp")


def through_shuffles(low: Lowering, registers: Registers, comp: LinearLayout, count: int) -> Registers:
    """Convert by shuffles, in which each lane names its source lane.

    Where the source register depends on the lane, it reads all candidates and selects.
    """
    b = low.builder
    if (exchange := only_exchange(comp)) is not None and (found := through_exchanges(low, registers, *exchange)):
        return found
    names, held = comp.out_names, elements_together(comp, registers[0].type.bits)
    sent = pack_registers(low, registers) if held > 1 else registers
    lane_at, register_at = names.index("lane"), names.index("register")
    vectors = dict(comp.bases)["lane"]
    lanes = xor_columns(b, [(low.lane, [vector[lane_at] for vector in vectors])]).value
    choices = xor_columns(b, [(low.lane, [vector[register_at] // held for vector in vectors])])
    shuffled: dict[tuple[int, int], Value] = {}

    def read(away: int, register: int) -> Value:
        if (register, away) not in shuffled:
            shuffled[register, away] = low.shuffle(sent[register], b.xor(lanes, away))
        return shuffled[register, away]

    bits = [(1 << bit, 1 << bit) for bit in range(choices.mask.bit_length()) if choices.mask >> bit & 1]
    made = []
    for register in range(0, count, held):
        source = comp.apply(register=register) if "register" in comp.by_in else {"register": register, "lane": 0}
        made.append(chosen(b, choices.value, bits, source["register"] // held, partial(read, source["lane"])))
    return unpacked(low, made, registers[0].type) if held > 1 else tuple(made)


def unpacked(low: Lowering, packed: Sequence[Value], type: Type) -> Registers:
    return tuple(element for one in packed for element in unpack_register(low, one, type))


def elements_together(comp: LinearLayout, bits: int) -> int:
    """Return how many elements, in adjacent registers, move together as one 32-bit register."""
    bases = dict(comp.bases)
    at, held, count = comp.out_names.index("register"), REGISTER_BITS // bits if bits in (8, 16) else 1, 1
    while count < held and (bit := log2(count)) < len(bases.get("register", ())):
        others = [
            vector
            for level in bases
            for index, vector in enumerate(bases[level])
            if (level, index) != ("register", bit)
        ]
        if bases["register"][bit] != unit(comp, count) or any(vector[at] & count for vector in others):
            break
        count *= 2
    return count if count == held else 1


def unit(comp: LinearLayout, register: int) -> tuple[int, ...]:
    """Return the output vector of this register in lane 0."""
    return tuple(register if name == "register" else 0 for name in comp.out_names)


def through_exchanges(low: Lowering, registers: Registers, register: int, lane: int) -> Registers | None:
    """Swap pairs of 32-bit registers between lanes; return None if the GPU has no such instruction."""
    b, type = low.builder, registers[0].type
    held = REGISTER_BITS // type.bits if type.bits in (16, REGISTER_BITS) else 0  # elements per register
    if not low.gpu.exchanges(1 << lane) or not held or (1 << register) % held or len(registers) % held:
        return None
    packed = pack_registers(low, registers)
    away = (1 << register) // held
    for first in range(len(packed)):
        if not first & away:
            both = low.gpu.exchange(b, packed[first], packed[first | away], 1 << lane)
            packed[first], packed[first | away] = both
    return unpacked(low, packed, type)


def through_memory(
    low: Lowering, op: Operation, registers: Registers, source: LinearLayout, result: LinearLayout, in_warp: bool
) -> Registers:
    element = element_type(op.operands[0].type)
    plan = shared_plan(source, result, bit_width(element), *low.gpu.target.matrix_access)
    base = low.scratch_address(op)
    wait = low.warp_barrier if in_warp else low.barrier
    size = plan.bytes * 8 // max(8, bit_width(element))
    store = Move(low, base, plan.offsets(source), element, round_size=size, matrices=plan.store != "plain")
    load = Move(low, base, plan.offsets(result), element, round_size=size, matrices=plan.load != "plain")
    made: dict[int, Value] = {}
    if should_load_at_once(op):
        low.warp_barrier()  # it costs nothing here, and keeps later loads from being issued before it
    for round_index in range(plan.reps):
        if round_index or in_warp:
            wait()  # in round 0 for the previous iteration of a loop around it (`membar.waits_for_itself`)
        store.store(registers, round_index)
        wait()
        made.update(load.load_some(round_index))
    return load.with_copies(made)
