"""Whether the blocks of a multiprocessor ask for enough at once to keep DRAM busy, and which tiles they should ask for at once.

DRAM gives a multiprocessor 17.8 bytes in a cycle, 700 cycles after it was asked, and a block lives about 3.5 times as long as it waits for its
tiles: blocks that hold 43 KB of them together are enough (docs/cost-model.md).
"""

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation

from tilework.analysis.cost import LANES, occupancy, registers
from tilework.analysis.value_flows import reached
from tilework.ir import tt
from tilework.ir.effects import is_pure
from tilework.ir.module_facts import find_target, num_warps
from tilework.ir.nesting import loop_around
from tilework.ir.rewrite import defining_op
from tilework.ir.types import bit_width, is_tensor
from tilework.target import Rates

OTHERS = 16  # registers of a thread beside its parts of tiles
LIVES = 3.5  # times as long as a block waits for its tiles


def keep_dram_busy(op: Operation, tiles: Iterable[Attribute], taken: int, shared: int | None) -> bool:
    """Blocks around `op` that load `tiles`, with `taken` registers of a thread for tiles, and `shared` bytes (None: as they are)."""
    rates, room = find_target(op).rates, occupancy(op, OTHERS + taken, shared)
    if rates is None or room is None:
        return False
    asked = room.blocks * sum(map(words, tiles)) * 4 * LANES * num_warps(op)
    return asked >= busy_bytes(rates)


def busy_bytes(rates: Rates) -> float:
    """What the blocks of a multiprocessor have to hold together, that DRAM always has some of it to bring."""
    return LIVES * rates.memory_cycles * rates.dram_bytes


def comes_at_once(op: Operation) -> bool:
    """Whether all of the tile that `op` writes to shared memory should be asked for before any of it is written.

    ptxas has so few registers in mind that a multiprocessor is full of warps, 32, and loads a tile that needs more in parts, each when the one
    before is written: a block waits for memory several times. In a loop others do that, and it is the pipeliner's business.
    """
    rates = find_target(op).rates
    if rates is None or loop_around(op) is not None:
        return False
    first = defining_op(op.operands[0])
    loads = [made for made in reached([first] if first is not None else [], makers) if type(made) is tt.LoadOp]
    tiles = [load.results[0].type for load in loads]
    taken, full = sum(map(words, tiles)), find_target(op).limits.registers // (rates.warps * LANES)
    return OTHERS + taken > full and keep_dram_busy(op, tiles, taken, None)


def makers(op: Operation) -> list[Operation]:
    """What a tile is computed from, as far as it is computed in registers."""
    if not is_pure(op) or op.regions:
        return []
    return [made for operand in op.operands if is_tensor(operand.type) and (made := defining_op(operand)) is not None]


def words(type: Attribute) -> int:
    """The registers of a thread that a tile takes."""
    return registers(type) * bit_width(type) // 32 if is_tensor(type) else 0
