"""TMA copies of blocks between global memory, through a tensor descriptor, and shared memory; mbarriers and fences.

    elect.sync _|%p, -1;  and.pred %p, %p, %is_warp_0;
    @%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%buffer], [%desc, {%column, %row}], [%bar];
    @%p cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%desc, {%column, %row}], [%buffer];
    @%p cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;

One thread issues all copies, or one thread of each warp those of the rows that the warp has written
(`analysis/single_warp.py`): groups belong to the thread that committed them, and `elect.sync` always elects the same
one. One instruction copies a box: at most 256 elements in each dimension and one row of the swizzle. A larger block is
split into boxes, whose offsets in shared memory come from the layout of the buffer. Coordinates start with the
contiguous dimension.

A wait for stores completes when shared memory has been read and may be reused; the writes are complete at the end of
the kernel.

Barriers in shared memory (mbarrier), proxy fences, and cluster barriers:

    mbarrier.init.shared::cta.b64 [%bar], 1;                            # one thread, before a barrier of the block
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16384;         # one thread
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], %phase;     # every thread, until the phase completes
       @!%p bra W;

Threads access shared memory through the generic proxy, TMA and tensor cores through the async proxy: the fence orders
writes of a thread before their accesses.

Tensor descriptors are tensor maps of 128 bytes that kernels take as parameters or create. A host descriptor is passed
by value; the launcher encodes it from metadata of the compiler:

    describe(type)      # {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "fp4_padded": false}

A kernel creates one in shared memory, field by field, and the first warp copies it to global memory:

    st.shared.b32 [%s + 4 * lane], 0;                                          # no field has an old value
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s], %base;   # one thread; rank, sizes, strides ...
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [%s], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;                   # every thread, before copies use it

A stride that no tensor map can have (not a multiple of 16 bytes, negative, or at least 2^40 bytes) traps. The value of
a descriptor is the generic address of its map.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.membar import arrive_by_warps
from tilework.analysis.single_warp import step_of
from tilework.ir import ttg, ttng
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.enums import DescriptorReduceKind, EvictionPolicy
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import TensorDescType, array_values, bit_width, element_type, int_property, shape_of
from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import shape_per_cta
from tilework.target import LARGEST_MAP_STRIDE, MAP_ALIGNMENT, Feature
from tilework.targets.gpu.lowering import Lowering, Registers, Shared
from tilework.targets.gpu.views import spread_of
from tilework.targets.llvm.types import i1, i16, i32, i64, ptr
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import lowers
from tilework.targets.nvidia.lower.inline_ptx import MAP_BYTES, eviction_policy, ptx, shared_address
from tilework.transforms.building.tma import SWIZZLE_MODES, box_shape, element_kind

BYTES = 8  # of an mbarrier
OWN_COPY = frozenset({ttng.InitBarrierOp, ttng.InvalBarrierOp, ttng.ArriveBarrierOp})  # in every block, even if shared
GROUP_BITS = 2  # of the warp id: the index in its warp group


def barrier_address(low: Lowering, op: Operation, barrier: SSAValue) -> Value:
    """Return the address of the barrier of this block."""
    if prod(shape_of(barrier.type)) < low.facts.num_ctas and type(op) not in OWN_COPY:
        raise low.refuse(op, "an mbarrier that several blocks of a cluster share")
    memory: Shared = low[barrier]
    return shared_address(low.builder, memory.base, memory.offset * BYTES)


def by_one(
    low: Lowering, text: str, inputs: list[Value], condition: SSAValue | None = None, of_warp: bool = False
) -> None:
    """Emit instructions for the first thread, of all or of each warp, if `condition` is true."""
    b = low.builder
    first = b.icmp("eq", low.lane if of_warp else low.thread, 0)
    chosen = first if condition is None else b.and_(first, low.scalar(condition))
    guard = f"@${len(inputs)} "
    ptx(b, " ".join(f"{guard}{part};" for part in text.split(";") if part), [], [*inputs, chosen], effect="write")


def needs(low: Lowering, op: Operation, feature: Feature, what: str) -> None:
    if not low.gpu.has(feature):
        raise low.refuse(op, what)


@lowers(ttng.InitBarrierOp)
def lower_init_barrier(low: Lowering, op: Operation) -> None:
    """Initialise an mbarrier. It is visible to other blocks of the cluster and to TMA after a fence (one for a run of
    adjacent ops) and a barrier (`analysis/membar.py`).
    """
    scope, fence = (
        ("::cta", ";fence.mbarrier_init.release.cluster") if low.gpu.has(Feature.MBARRIER_BYTES) else ("", "")
    )
    following = op.next_op
    while isinstance(following, ttg.MemDescIndexOp) or (
        isinstance(following, ttg.LocalAllocOp) and not following.operands
    ):
        following = following.next_op
    fence = "" if isinstance(following, ttng.InitBarrierOp) else fence
    text = f"mbarrier.init.shared{scope}.b64 [$0], {int_property(op, 'count', 1)}{fence}"
    by_one(low, text, [barrier_address(low, op, op.operands[0])])


@lowers(ttng.InvalBarrierOp)
def lower_inval_barrier(low: Lowering, op: Operation) -> None:
    by_one(low, "mbarrier.inval.shared.b64 [$0]", [barrier_address(low, op, op.operands[0])])


@lowers(ttng.BarrierExpectOp)
def lower_barrier_expect(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.MBARRIER_BYTES, "a barrier that counts bytes")
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {int_property(op, 'size', 0)}"
    by_one(low, text, [barrier_address(low, op, op.operands[0])], op.operands[1])


@lowers(ttng.ArriveBarrierOp)
def lower_arrive_barrier(low: Lowering, op: Operation) -> None:
    """Arrive once per warp if `count` allows it, else one thread for all, after a barrier that `analysis/membar.py`
    inserts.
    """
    share = arrive_by_warps(op)
    if share:
        low.warp_barrier()
    count = share or int_property(op, "count", 1)
    if count > 1:
        needs(low, op, Feature.MBARRIER_BYTES, "an arrival that counts more than once")
    scope, counted = ("::cta", f", {count}" if count > 1 else "") if low.gpu.has(Feature.MBARRIER_BYTES) else ("", "")
    barrier, *pred = op.operands
    by_one(
        low,
        f"mbarrier.arrive.shared{scope}.b64 _, [$0]{counted}",
        [barrier_address(low, op, barrier)],
        pred[0] if pred else None,
        of_warp=share > 0,
    )


@lowers(ttng.WaitBarrierOp)
def lower_wait_barrier(low: Lowering, op: Operation) -> None:
    """Wait in every thread until the phase completes; a thread whose predicate is false does not wait."""
    inputs = [barrier_address(low, op, op.operands[0]), low.scalar(op.operands[1])]
    has_pred = array_values(op.properties["operandSegmentSizes"])[2]
    wait_for_phase(low, inputs, low.scalar(op.operands[2]) if has_pred else None)


def wait_for_phase(low: Lowering, inputs: list[Value], condition: Value | None = None) -> None:
    """Poll the mbarrier at an address until the phase with a parity completes, if `condition` is true."""
    test = "try_wait.parity.shared::cta" if low.gpu.has(Feature.MBARRIER_BYTES) else "test_wait.parity.shared"
    again = f"WAIT: mbarrier.{test}.b64 done, [$0], $1; @!done bra WAIT;"
    if condition is not None:
        inputs, again = [*inputs, condition], f"@!$2 bra OVER; {again} OVER:"
    ptx(low.builder, f"{{ .reg .pred done; {again} }}", [], inputs, effect="write")


@lowers(ttng.AsyncCopyMbarrierArriveOp)
def lower_async_copy_arrive(low: Lowering, op: Operation) -> None:
    """Arrive in each thread when its own copies are complete; without `noinc` the op increments the pending count."""
    kind = ".noinc" if "noIncrement" in op.properties else ""
    text = f"cp.async.mbarrier.arrive{kind}.shared.b64 [$0];"
    ptx(low.builder, text, [], [barrier_address(low, op, op.operands[0])], effect="write")


@lowers(ttng.FenceAsyncSharedOp)
def lower_fence(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.ASYNC_PROXY, "a fence before TMA and tensor cores")
    space = "cluster" if int_property(op, "bCluster", 0) else "cta"
    ptx(low.builder, f"fence.proxy.async.shared::{space};", [], [], effect="write")


@lowers(ttng.PingPongWaitOp)
def lower_pingpong_wait(low: Lowering, op: Operation) -> None:
    """Wait on the ping-pong barrier of this warp group.

    The first group waits for the preceding phase: at first for the one before phase 0, which is complete.
    """
    b = low.builder
    group = b.lshr(low.warp, GROUP_BITS)
    parity = b.xor(low.scalar(op.operands[1]), b.xor(group, 1))
    wait_for_phase(low, [barrier_of_group(low, op, group), parity])


@lowers(ttng.PingPongSignalOp)
def lower_pingpong_signal(low: Lowering, op: Operation) -> None:
    """Arrive on the other warp group's barrier, once per warp."""
    b = low.builder
    low.warp_barrier()
    other = b.xor(b.lshr(low.warp, GROUP_BITS), 1)
    by_one(low, "mbarrier.arrive.shared::cta.b64 _, [$0]", [barrier_of_group(low, op, other)], of_warp=True)


def barrier_of_group(low: Lowering, op: Operation, group: Value) -> Value:
    return low.builder.add(barrier_address(low, op, op.operands[0]), low.builder.mul(group, BYTES))


@lowers(ttng.FenceMbarrierInitReleaseClusterOp)
def lower_init_fence(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.CLUSTERS, "a fence of the barriers of a cluster")
    by_one(low, "fence.mbarrier_init.release.cluster", [])


@lowers(ttng.ClusterArriveOp, ttng.ClusterWaitOp)
def lower_cluster_barrier(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.CLUSTERS, "a barrier of a cluster")
    step = (
        "wait" if type(op) is ttng.ClusterWaitOp else "arrive.relaxed" if int_property(op, "relaxed", 0) else "arrive"
    )
    ptx(low.builder, f"barrier.cluster.{step}.aligned;", [], [], effect="write", convergent=True)


BOX_ALIGNMENT, LEAST_ROW = 128, 16  # bytes
U32, S32, U64, S64, F16, F32, BF16 = 2, 3, 4, 5, 6, 7, 10  # CUtensorMapDataType
INTEGERS = frozenset({U32, S32, U64, S64})
HALVES = frozenset({F16, BF16})
REDUCED = {
    DescriptorReduceKind.ADD: frozenset({U32, S32, U64, F32}) | HALVES,
    DescriptorReduceKind.MIN: INTEGERS | HALVES,
    DescriptorReduceKind.MAX: INTEGERS | HALVES,
    DescriptorReduceKind.INC: frozenset({U32}),
    DescriptorReduceKind.DEC: frozenset({U32}),
    DescriptorReduceKind.AND: INTEGERS,
    DescriptorReduceKind.OR: INTEGERS,
    DescriptorReduceKind.XOR: INTEGERS,
}


def issuer(low: Lowering) -> Value:
    """Return True in the thread that issues TMA copies: always the same lane of the first warp."""
    return low.builder.and_(elected(low), low.builder.icmp("eq", low.warp, 0))


def elected(low: Lowering) -> Value:
    """Return True in the elected lane of each warp: always the same lane."""
    (found,) = ptx(low.builder, "elect.sync _|$0, 0xffffffff;", [i1], [], convergent=True)
    return found


def block_of(descriptor: SSAValue) -> Attribute:
    """Return the block type of a descriptor: a tensor with the layout of the buffers that it is copied to."""
    assert isinstance(descriptor.type, TensorDescType)
    return descriptor.type.block


class Boxes:
    """The boxes of a block, each with its coordinates and its address in shared memory."""

    def __init__(
        self, low: Lowering, op: Operation, descriptor: SSAValue, coordinates: Sequence[SSAValue], memory: SSAValue
    ):
        self.low, self.op, self.type = low, op, memory.type
        self.rows = low.barriers.stores.rows.get(descriptor)  # of one warp, where each warp copies its own
        self.box, self.held = box_shape(block_of(descriptor), self.rows), low[memory]
        self.map: Value = low.scalar(descriptor)
        self.encoding = self.checked(encoding_of(block_of(descriptor)), encoding_of(memory.type))
        self.layout = layout_of(memory.type)
        self.bytes = bit_width(memory.type) // 8
        if self.box[-1] * self.bytes % LEAST_ROW:  # only for a part of a block: whole blocks are checked before
            raise low.refuse(op, f"a TMA copy of rows of {self.box[-1] * self.bytes} bytes in each block of a cluster")
        self.dropped = len(coordinates) - len(self.layout.outs)  # leading dimensions of size 1 that the buffer lacks
        self.first = [self.in_cluster(dim, low.scalar(value)) for dim, value in enumerate(coordinates)]

    def checked(self, described: object, encoding: object) -> NvmmaShared:
        """Return the encoding of the buffer; refuse one that differs from what TMA writes."""
        if not isinstance(encoding, NvmmaShared) or not isinstance(described, NvmmaShared):
            raise self.low.refuse(self.op, f"a TMA copy of a buffer with the layout {encoding}")
        swizzle = encoding.swizzling_byte_width
        if (encoding.transposed and swizzle) or encoding.fp4_padded or swizzle != described.swizzling_byte_width:
            raise self.low.refuse(
                self.op, f"a TMA copy of blocks with the layout {described} and a buffer with {encoding}"
            )
        return encoding

    def in_cluster(self, dim: int, start: Value) -> Value:
        """Return the first coordinate of the part that this CTA copies."""
        if dim < self.dropped or self.low.block.constant is not None:
            return start
        return self.low.builder.add(start, spread_of(self.low, self.layout, f"dim{dim - self.dropped}").value)

    def __iter__(self) -> Iterator[tuple[list[Value], Value]]:
        """Yield (coordinates, address) of each box, the contiguous dimension first."""
        assert isinstance(self.type, MemDescType)
        b, inverse = self.low.builder, self.layout.pseudoinvert()
        own = shape_per_cta(self.encoding, self.type.dims)
        own = own if self.rows is None else (self.rows, *own[1:])
        steps = [range(0, size, part) for size, part in zip(own, self.box[self.dropped :], strict=True)]
        for starts in product(*steps):
            offset = (
                inverse.apply({f"dim{dim}": start for dim, start in enumerate(starts)})["offset"] ^ self.held.offset
            )
            if offset * self.bytes % BOX_ALIGNMENT:
                raise self.low.refuse(
                    self.op, f"a TMA copy of a buffer that starts {offset * self.bytes} bytes into another"
                )
            moved = [b.add(first, start) for first, start in zip(self.first, (0,) * self.dropped + starts, strict=True)]
            address = shared_address(b, self.held.base, offset * self.bytes)
            if self.rows is not None:
                step = step_of(self.layout, self.rows, self.type.dims[0] // self.rows)
                assert step is not None, "`warp_stores` guarantees it"
                moved[0] = b.add(moved[0], b.mul(self.low.warp, self.rows))
                address = b.add(address, b.mul(self.low.warp, step * self.bytes))
            yield moved[::-1], address

    def tensor_operand(self, first: int) -> str:
        """Return ``[$2, {$3, $4}]``: the descriptor and the coordinates, which are the inputs from `first` on."""
        coordinates = ", ".join(f"${first + 1 + dim}" for dim in range(len(self.first)))
        return f"[${first}, {{{coordinates}}}]"

    @property
    def rank(self) -> int:
        return len(self.first)


@lowers(ttng.AsyncTMACopyGlobalToLocalOp)
def lower_tma_load(low: Lowering, op: Operation) -> None:
    """Copy the part of each block of a cluster; with `multicast` the first block copies for all that have the same
    part."""
    descriptor, *coordinates, barrier, memory, predicate = op.operands
    if isinstance(descriptor.type, ttng.TensorDescIm2ColType):
        raise low.refuse(op, "a TMA copy through an im2col descriptor")
    boxes = Boxes(low, op, descriptor, coordinates, memory)
    arrives_at = barrier_address(low, op, barrier)
    mine = low.builder.and_(issuer(low), low.scalar(predicate))
    policy = eviction_policy(low.builder, EvictionPolicy(int_property(op, "evict", EvictionPolicy.NORMAL)))
    receivers = receiving_blocks(low, boxes.layout) if "multicast" in op.properties else ()
    if receivers:
        first = low.is_first_copy(boxes.layout.sublayout(("block",), boxes.layout.out_names))
        assert first is not None, "a block whose part others have"
        mine = low.builder.and_(mine, first)
    more = [*receivers, *policy]
    forms = (".multicast::cluster" if receivers else "") + (".L2::cache_hint" if policy else "")
    last = "".join(f", ${boxes.rank + 4 + position}" for position in range(len(more)))
    text = (
        f"@$0 cp.async.bulk.tensor.{boxes.rank}d.shared::cluster.global.mbarrier::complete_tx::bytes{forms} "
        f"[$1], {boxes.tensor_operand(3)}, [$2]{last};"
    )
    for coords, address in boxes:
        ptx(low.builder, text, [], [mine, address, arrives_at, boxes.map, *coords, *more], effect="write")


def receiving_blocks(low: Lowering, layout: LinearLayout) -> tuple[Value, ...]:
    """Return the mask of the blocks that have the same part as this one; none where each has a part of its own."""
    alike = [1 << bit for bit, column in enumerate(layout.by_in["block"]) if not column]
    if not alike:
        return ()
    pattern = reduce(lambda found, step: found | found << step, alike, 1)
    b = low.builder
    return (b.trunc(b.shl(constant(i32, pattern), b.and_(low.block, ~sum(alike) & 0xF)), i16),)


@lowers(ttng.AsyncTMACopyLocalToGlobalOp)
def lower_tma_store(low: Lowering, op: Operation) -> None:
    store(low, op, "cp.async", "")


@lowers(ttng.AsyncTMAReduceOp)
def lower_tma_reduce(low: Lowering, op: Operation) -> None:
    """Combine each element with global memory atomically."""
    kind = DescriptorReduceKind(int_property(op, "kind", 1))
    element = element_type(block_of(op.operands[0]))
    if element_kind(element) not in REDUCED[kind]:
        raise low.refuse(op, f"atomic {kind.name.lower()} of {element} through a tensor descriptor")
    store(low, op, "cp.reduce.async", f".{kind.name.lower()}")


def store(low: Lowering, op: Operation, name: str, function: str) -> None:
    """Copy the boxes of a block to global memory, as one group."""
    b = low.builder
    descriptor, *coordinates, memory = op.operands
    boxes = Boxes(low, op, descriptor, coordinates, memory)
    if boxes.rows is not None:
        low.warp_barrier()
    mine = issuer(low) if boxes.rows is None else elected(low)
    if (is_first := low.is_first_copy(boxes.layout)) is not None:
        mine = b.and_(mine, is_first)
    text = (
        f"@$0 {name}.bulk.tensor.{boxes.rank}d.global.shared::cta{function}.bulk_group {boxes.tensor_operand(2)}, [$1];"
    )
    for coords, address in boxes:
        ptx(b, text, [], [mine, address, boxes.map, *coords], effect="write")
    ptx(b, "@$0 cp.async.bulk.commit_group;", [], [mine], effect="write")


@lowers(ttng.AsyncTMAStoreWaitOp)
def lower_tma_store_wait(low: Lowering, op: Operation) -> None:
    """Wait in all threads; those that committed no groups return at once.

    Where each warp copies its own rows, the lanes wait for the elected one.
    """
    ptx(low.builder, f"cp.async.bulk.wait_group.read {int_property(op, 'pendings', 0)};", [], [], effect="write")
    if op in low.barriers.stores.waits:
        low.warp_barrier()


@lowers(ttng.AsyncTMAGatherOp, ttng.AsyncTMAScatterOp)
def refuse_rows(low: Lowering, op: Operation) -> None:
    """Refuse gathers and scatters of rows, which need compute capability 10.0."""
    what = "gather" if type(op) is ttng.AsyncTMAGatherOp else "scatter"
    raise low.refuse(op, f"the {what} of rows through a tensor descriptor, which needs sm_100,")


WORD_BYTES = 4


def describe(type: Attribute, rows: int | None = None) -> dict[str, Any]:
    """Return the metadata from which the launcher encodes the map of a host descriptor; sizes outermost first."""
    assert isinstance(type, TensorDescType)
    block = type.block
    encoding = encoding_of(block)
    laid_out = encoding if isinstance(encoding, NvmmaShared) else None
    return {
        "swizzle": SWIZZLE_MODES[laid_out.swizzling_byte_width if laid_out else 0],
        "elem_size": bit_width(block) // 8,
        "elem_type": element_kind(element_type(block)),
        "block_size": list(box_shape(block, rows)),
        "fp4_padded": laid_out is not None and laid_out.fp4_padded,
    }


@lowers(ttng.TensormapCreateOp)
def lower_create(low: Lowering, op: Operation) -> None:
    """Create a map. The barrier at the end frees the op's scratch memory, and lets all threads acquire the map."""
    b = low.builder
    slot, memory = low.scalar(op.operands[0]), low.scratch_address(op)
    map = shared_address(b, memory)
    with low.only_if(b.icmp("eq", low.warp, 0)):
        b.store(constant(i32, 0), b.gep(memory, b.mul(low.lane, WORD_BYTES)), align=WORD_BYTES)
        low.warp_barrier()
        with low.only_if(b.icmp("eq", low.lane, 0)):
            write_fields(low, op, map)
        low.warp_barrier()
        text = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        ptx(b, f"{text} [$0], [$1], {MAP_BYTES};", [], [slot, map], effect="write", convergent=True)
    low.barrier()


def write_fields(low: Lowering, op: Operation, map: Value) -> None:
    """Write all fields of a map, the contiguous dimension first; the rank field is rank - 1."""
    values = [low.scalar(operand) for operand in op.operands]
    first, groups = 0, []
    for size in array_values(op.properties["operandSegmentSizes"]):
        groups.append(values[first : first + size])
        first += size
    _, (base,), box, sizes, strides, steps = groups

    def replace(field: str, width: int, text: str, *inputs: Value) -> None:
        line = f"tensormap.replace.tile.{field}.shared::cta.b1024.b{width} [$0], {text};"
        ptx(low.builder, line, [], [map, *inputs], effect="write")

    replace("global_address", 64, "$1", base)
    replace("rank", 32, str(len(box) - 1))
    for field, width, values in (
        ("box_dim", 32, box), ("global_dim", 32, sizes), ("global_stride", 64, strides), ("element_stride", 32, steps),
    ):  # fmt: skip
        for dim, value in enumerate(values):
            replace(field, width, f"{dim}, $1", value)
    replace("elemtype", 32, str(int_property(op, "elem_type", 0)))
    for field in ("interleave_layout", "swizzle_mode", "fill_mode"):
        replace(field, 32, str(int_property(op, field, 0)))
    stop_at_impossible(low, sizes[1:], strides)


def stop_at_impossible(low: Lowering, sizes: list[Value], strides: list[Value]) -> None:
    """Trap on invalid strides: the hardware checks bases and sizes when a copy uses them, but not strides.

    The stride of a dimension of size 1 is unused.
    """
    b = low.builder
    pairs = zip(sizes, strides, strict=True)
    used = reduce(b.or_, [b.select(b.icmp("sgt", size, 1), stride, 0) for size, stride in pairs], constant(i64, 0))
    wrong = b.or_(b.and_(used, MAP_ALIGNMENT - 1), b.lshr(used, LARGEST_MAP_STRIDE.bit_length() - 1))
    if wrong.constant != 0:
        text = "{ .reg .pred wrong; setp.ne.b64 wrong, $0, 0; @wrong trap; }"
        ptx(b, text, [], [wrong], effect="write")


@lowers(ttng.TensormapFenceproxyAcquireOp)
def lower_acquire(low: Lowering, op: Operation) -> None:
    """Acquire a map; the wait for an empty group keeps ptxas from hoisting copies above the fence."""
    text = f"fence.proxy.tensormap::generic.acquire.gpu [$0], {MAP_BYTES}; "
    text += "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
    ptx(low.builder, text, [], [low.scalar(op.operands[0])], effect="write")


@lowers(ttng.ReinterpretTensorDescOp)
def lower_reinterpret(low: Lowering, op: Operation) -> Registers:
    return (low.builder.addrspacecast(low.scalar(op.operands[0]), ptr),)
