"""The loads that the producer warps execute, which of them share barriers, and the loops for which partitions pay.

    %a = tt.descriptor_load ...        one ring: both are read first by the same op, so they are full together
    %b = tt.descriptor_load ...
    warp_group_dot %a, %b

A channel is a load that goes through shared memory from the producer to the consumers: every load by descriptor, and
the loads by pointer that feed dots. Channels of one block whose first reader is the same op form a ring buffer, with
one "full" and one "empty" barrier per stage.
"""

from collections.abc import Iterator
from dataclasses import field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.cost import hot_loops, loop_cost, occupancy, registers
from tilework.analysis.value_flows import reached
from tilework.ir import arith, scf, tt, ttng
from tilework.ir.functions import is_private, ops_in_order
from tilework.ir.module_facts import MOST_TRIPS, integer
from tilework.ir.nesting import enclosing_op, ops_around, start_of
from tilework.ir.rewrite import constant_value
from tilework.ir.scf import LOOPS
from tilework.ir.types import bit_width, element_type, is_tensor, shape_of, tensor_type, tile_bits
from tilework.layouts.encodings import Shared
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttg.pipeline.load_plans import (
    Clash,
    address_registers,
    buffer_encoding,
    copy_problem,
    copy_width,
    needs_other,
    replaceable_allocs,
    users_of,
)
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, body_ops, group_dots, num_stages
from tilework.transforms.ttg.pipeline.wgmma import BLOCKS, half_share, may_run_on

STAGING: dict[type[Operation], int] = {
    tt.DescriptorStoreOp: 1,
    tt.DescriptorReduceOp: 1,
    tt.DescriptorScatterOp: 1,
    tt.StoreOp: 2,
}
RESERVED = 2048  # barriers, captured values, alignment
GROUP = 4  # warps of a warp group
LANES = 32
OUTER_STAGES = 2  # for loads in a loop around the dots, such as the queries of a tile: this one and the next


class Refusal(Exception):
    """The reason why a function is not specialized, at the op that causes it."""

    def __init__(self, op: Operation, reason: str) -> None:
        super().__init__(reason)
        self.op, self.reason = op, reason


@light_dataclass
class Channel:
    """A load that the producer executes."""

    load: Operation
    encoding: Shared
    contiguity: int  # of cp.async; 0 if a descriptor is used
    allocs: tuple[Operation, ...]  # the memory of consumers that the buffer replaces

    @property
    def kind(self) -> tuple[Attribute, Shared, bool]:
        """The type of the buffers, their encoding, and True if threads fill them."""
        result = self.load.results[0].type
        return tensor_type(shape_of(result), element_type(result)), self.encoding, bool(self.contiguity)

    @property
    def bytes(self) -> int:
        """The size of one buffer."""
        return tile_bytes(self.load)

    @property
    def addresses(self) -> int:
        """The registers of a producer thread that hold its addresses from iteration to iteration."""
        return address_registers(self.load.operands[0], GROUP * LANES, self.contiguity) if self.contiguity else 0


def tile_bytes(load: Operation) -> int:
    """Return the bytes of the tile that `load` reads."""
    result = load.results[0].type
    return tile_bits(result) // 8


@light_dataclass(frozen=False, eq=False)
class Ring:
    """Channels that are full and empty together, and their number of stages.

    Loops that run one after the other and load the same kinds of tiles share memory: `like` is the first such ring,
    `blocks` are the blocks of all of them.
    """

    block: Block
    anchor: Operation  # the first op of the block that reads one of them
    channels: list[Channel]
    stages: int = 1
    like: "Ring | None" = None
    blocks: list[Block] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """The size of all buffers."""
        return 0 if self.like is not None else self.stages * sum(channel.bytes for channel in self.channels)

    def is_like(self, other: "Ring") -> bool:
        """Return True if `other` loads the same kinds of tiles, in a loop that does not run at the same time."""
        mine, theirs = ([channel.kind for channel in ring.channels] for ring in (self, other))
        return (
            self.is_reused
            and other.is_reused
            and (self.stages, mine) == (other.stages, theirs)
            and all(are_apart(self.block, block) for block in other.blocks)
        )

    @property
    def is_reused(self) -> bool:
        """True if its stages are reused: the block runs more than once."""
        return any(type(op) in LOOPS for op in ops_around(self.channels[0].load))


def find_rings(function: Operation, default_stages: int, facts: AxisFacts) -> list[Ring]:
    """Return the rings of `function`, in program order. Raises `Refusal` if a load cannot move to a producer."""
    needed = loads_of_dots(function)
    rings: dict[Operation, Ring] = {}
    for op in ops_in_order(*function.regions):
        if type(op) is tt.DescriptorGatherOp:
            raise Refusal(op, "it gathers rows by descriptor")
        if type(op) is not tt.DescriptorLoadOp and op not in needed:
            continue
        if any(type(outer) not in (scf.ForOp, scf.IfOp, tt.FuncOp, ModuleOp) for outer in ops_around(op)):
            raise Refusal(op, "a load for it is in a `while` loop")
        if type(op) is tt.DescriptorLoadOp and not is_made_once(op.operands[0], function):
            raise Refusal(op, "a descriptor for it is created in a loop, or selected")
        channel = make_channel(op, facts)
        block, anchor = op.parent, first_reader(channel)
        assert block is not None
        if (ring := rings.get(anchor)) is None:
            rings[anchor] = Ring(block, anchor, [channel])
        else:
            ring.channels.append(channel)
    found = list(rings.values())
    for ring in found:
        ring.stages = stages_of(ring, found, default_stages)
    share(found)
    return found


def share(rings: list[Ring]) -> None:
    """Let rings share the memory of earlier ones of the same kind."""
    for position, ring in enumerate(rings):
        ring.like = next((other for other in rings[:position] if other.like is None and ring.is_like(other)), None)
        ring.blocks = [ring.block] if ring.like is None else ring.like.blocks
        if ring.like is not None:
            ring.blocks.append(ring.block)


def are_apart(one: Block, other: Block) -> bool:
    """Return True if neither block is inside the other."""
    return enclosing_op(start_of(one), other) is None and enclosing_op(start_of(other), one) is None


def is_made_once(descriptor: SSAValue, function: Operation) -> bool:
    """Return True if `descriptor` is valid until the kernel ends: it is an argument, or created in the entry block."""
    op = descriptor.owner
    return (type(op) is tt.MakeTensorDescOp and op.parent_op() is function) or op is function.regions[0].blocks[0]


def fit_stages(function: Operation, rings: list[Ring], limit: int) -> None:
    """Remove stages until the rings and the staging memory of stores fit into `limit` bytes. Raises `Refusal`."""
    stored = {op: store_bytes(op) for op in ops_in_order(*function.regions) if type(op) in STAGING}
    most = {kind: max((size for op, size in stored.items() if type(op) is kind), default=0) for kind in STAGING}
    left = limit - RESERVED - sum(most.values())
    while sum(ring.bytes for ring in rings) > left:
        deepest = max((ring for ring in rings if ring.like is None), key=lambda ring: (ring.stages, ring.bytes))
        if deepest.stages <= 2:
            raise Refusal(function, "its buffers do not fit into shared memory")
        for ring in rings:
            if ring is deepest or ring.like is deepest:
                ring.stages -= 1


def store_bytes(store: Operation) -> int:
    """Return the staging memory of a store; a store by pointers exchanges a tile in two halves."""
    value = store.operands[1].type
    return tile_bits(value) // 8 // STAGING[type(store)]


def loads_of_dots(function: Operation) -> set[Operation]:
    """Return the `tt.load` ops of tiles from which dot operands are computed."""
    dots = group_dots(function)
    ends = (tt.LoadOp, ttng.WarpGroupDotOp)
    needed = reached(
        [value for dot in dots for value in dot.operands[:2]],
        lambda value: value.op.operands if isinstance(value, OpResult) and type(value.op) not in ends else (),
    )
    loaded = [value for value in needed if is_tensor(value.type) and len(shape_of(value.type)) > 1]
    return {value.owner for value in loaded if isinstance(value.owner, tt.LoadOp)}


def make_channel(load: Operation, facts: AxisFacts) -> Channel:
    """Return the channel of `load`. Raises `Refusal`."""
    try:
        encoding = buffer_encoding(load)
    except Clash as clash:
        raise Refusal(load, str(clash)) from None
    if encoding is None:
        raise Refusal(load, "a tile that it loads has no layout in shared memory")
    width = 0
    if type(load) is tt.LoadOp:
        width = copy_width(load, facts)
        if reason := copy_problem(load, width, encoding):
            raise Refusal(load, f"a load for it cannot be an asynchronous copy: {reason}")
        if needs_other(load):
            raise Refusal(load, "a load for it has a mask with a value other than 0")
    return Channel(load, encoding, width, replaceable_allocs(load, encoding))


def first_reader(channel: Channel) -> Operation:
    """Return the first op of the block that reads the tile from memory; the load itself if some use needs registers."""
    load = channel.load
    block = load.parent
    assert block is not None
    if len(channel.allocs) < len(list(load.results[0].uses)):
        return load
    readers = {enclosing_op(op, block) for alloc in channel.allocs for op in readers_of(alloc.results[0])}
    return next((op for op in block.ops if op in readers), load)


def readers_of(memory: SSAValue) -> Iterator[Operation]:
    """Return the ops that read `memory`, also through views, without waits for other readers."""
    return (user for user in users_of(memory) if type(user) is not ttng.WarpGroupDotWaitOp)


def stages_of(ring: Ring, rings: list[Ring], default: int) -> int:
    """Return the stages that the loop requests; fewer around another loop with rings, and one outside of loops."""
    loops = [op for op in ops_around(ring.channels[0].load) if type(op) is scf.ForOp]
    if not loops:
        return 1
    if any(loops[0] in ops_around(other.channels[0].load) and other.block is not ring.block for other in rings):
        return OUTER_STAGES
    requested = (integer(loop.attributes, NUM_STAGES) for loop in loops)
    return max(1, next((count for count in requested if count is not None), default))


# Decide by the cost model if partitions pay for loops that do not request them (docs/cost-model.md).
#
#     all warps run dots, then other work      tensor cores ####----####----      an iteration takes the sum of both,
#                                              other units  ----####----####      divided by the resident blocks
#     two consumers with half of the rows      tensor cores ########              one works while the other's dots run
#
# Two consumers, or two warp groups of one, take no longer than the busiest unit; so they pay where a block waits for
# its dots, and no other block fills the gap. Otherwise only copy instructions are saved: one producer thread issues a
# whole tile by descriptor, and consumers do not wait for each other. Copies by threads are as many as before, by half
# as many threads.

WARP_SPECIALIZE = "tt.warp_specialize"
OTHERS = 32  # registers of a thread besides accumulators and operands of its dots
FEW = 2  # iterations: too few to overlap
LEAST_GAIN = 1.1  # smaller gains are within the error of a throughput model


def will_split(function: Operation, when: str, default_stages: int) -> bool:
    """Return True if partitions are tried for `function`: a loop requests them, or (`when` is "pays") the cost model
    favours them.
    """
    ops = ops_in_order(*function.regions)
    if (
        when not in ("requested", "pays")
        or is_private(function)
        or not any(type(op) is ttng.WarpGroupDotOp for op in ops)
    ):
        return False
    is_requested = any(WARP_SPECIALIZE in op.attributes for op in ops)
    return is_requested or (when == "pays" and reason_not_to_split(function, default_stages) is None)


def reason_not_to_split(function: Operation, default_stages: int) -> str | None:
    """Return the reason why all warps should run the loops of `function`; None if partitions pay for one of them."""
    loops = [loop for loop in hot_loops(function) if any(type(op) is ttng.WarpGroupDotOp for op in body_ops(loop))]
    loads = loads_of_dots(function) | {op for op in ops_in_order(*function.regions) if type(op) is tt.DescriptorLoadOp}
    reasons = [loop_reason(loop, loads, num_stages(loop, default_stages)) for loop in loops]
    return None if None in reasons else next(iter(reasons), "it has no loop with dots")


def loop_reason(loop: Operation, loads: set[Operation], stages: int) -> str | None:
    dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
    inside = loads & set(body_ops(loop))
    if not inside:
        return "its dots read nothing that it loads"
    if is_short(loop):
        return f"it runs no more than {FEW} times"
    once = [load for load in loads if not any(type(op) in LOOPS for op in ops_around(load))]
    shared = stages * sum(map(tile_bytes, inside)) + sum(map(tile_bytes, once))
    sums = sum(registers(dot.results[0].type) for dot in dots)
    operands = sum(registers(kind) * bit_width(kind) // 32 for dot in dots if is_tensor(kind := dot.operands[0].type))
    share = half_share(loop, dots, may_spill=False)
    if share is not None and (fits := occupancy(loop, share, shared)) is not None and fits.blocks >= BLOCKS:
        return f"{fits.blocks} blocks share a multiprocessor if dots complete in their iteration"
    held, cost = occupancy(loop, sums + operands + OTHERS, shared), loop_cost(loop)
    if held is None or cost is None:
        return "the target has no cost model"
    waits = not all(may_run_on(loop, dot) for dot in dots)
    gain = replace(cost, drains=waits, latency=0).estimate(held.blocks) / cost.bound
    if gain >= LEAST_GAIN:
        return None
    if held.blocks > 1:
        return f"{held.blocks} blocks on a multiprocessor overlap dots with other work"
    if any(type(load) is tt.LoadOp for load in inside):
        return "its dots already overlap all other work, and threads would copy as much as before"
    return None


def is_short(loop: Operation) -> bool:
    """Return True if a loop over a constant distance runs at most a few times: the masked tiles of causal attention."""
    if (trips := integer(loop.attributes, MOST_TRIPS)) is not None:
        return trips <= FEW
    lower, upper, step = loop.operands[:3]
    distance, by = constant_value(upper), constant_value(step)
    if constant_value(lower) is not None and distance is not None:
        distance -= constant_value(lower) or 0
    elif isinstance(upper, OpResult) and type(upper.op) is arith.AddiOp and lower in upper.op.operands:
        distance = constant_value(upper.op.operands[1 - list(upper.op.operands).index(lower)])
    else:
        return False
    return type(loop) is scf.ForOp and distance is not None and by is not None and distance <= FEW * by
