"""Split the body of a loop into the clusters that its borders mark, and put them one after the other again for LLVM.

    scf.for ... {                                                   scf.for ... {
      %x = amdg.buffer_load ...                                       %x = scf.execute_region -> ... no_inline {
      rocdl.sched.barrier 0 {triton.warp_pipeline.border = "load"}      %y = amdg.buffer_load ...
      %z = arith.addf %x, %acc                                          scf.yield %y
      rocdl.sched.barrier 0 {triton.warp_pipeline.border = "add"}     } {triton.warp_pipeline.stage = "load"}
    }                                                        ==>      %z = scf.execute_region ... "add"
                                                                    } {triton.warp_pipeline.pipelined_for}

Waits and barriers may only be between clusters: a loop with one inside a cluster, or with fewer than two clusters, is
left alone. Passes move no op out of a cluster. The second pass replaces the regions by their ops, after a barrier for
LLVM's scheduler and the priority of the cluster.

All waves of a workgroup run the same cluster: a barrier between two clusters is where shared memory needs one. (Triton
lets half of the waves run one cluster behind, which is only faster.)
Stage: TTGIR to TTGIR. Cost: one walk, the ops of the loops.
"""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region

from tilework.analysis.membar import WAITS
from tilework.ir import amdg, scf, ttg
from tilework.ir.module_facts import integer
from tilework.ir.nesting import body_of, end_of
from tilework.ir.rewrite import erase_op, insert_before, move_before, replace_uses, replace_values
from tilework.ir.types import string_attr
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import op_pass
from tilework.transforms.ttg.pipeline.loops import body_ops

BORDER, STAGE = "triton.warp_pipeline.border", "triton.warp_pipeline.stage"
PRIORITY, PIPELINED = "triton.warp_pipeline.priority", "triton.warp_pipeline.pipelined_for"
UNNAMED = "last_cluster"  # the ops after the last border
BETWEEN = WAITS | {ttg.BarrierOp}


@light_dataclass
class ClusterOps:
    """The ops of a cluster, and the attributes of its region."""

    ops: tuple[Operation, ...]
    attributes: dict[str, Attribute]


@op_pass("tritonamdgpu-warp-pipeline", scf.ForOp)
def warp_pipeline(loop: Operation) -> None:
    clusters = clusters_of(loop)
    if clusters is None or len(clusters) < 2:
        return
    for op in body_ops(loop):
        if BORDER in op.attributes:
            erase_op(op)
    for cluster in clusters:
        wrap(cluster, loop)
    loop.attributes[PIPELINED] = UnitAttr()


def clusters_of(loop: Operation) -> list[ClusterOps] | None:
    """Return the clusters of a loop in order; None if it has no borders, or waits inside a cluster."""
    found: list[ClusterOps] = []
    ops: list[Operation] = []
    for op in body_ops(loop):
        if BORDER in op.attributes:
            given = {STAGE: op.attributes[BORDER]}
            if PRIORITY in op.attributes:
                given[PRIORITY] = op.attributes[PRIORITY]
            found.append(ClusterOps(tuple(ops), given))
            ops = []
        elif type(op) not in BETWEEN:
            ops.append(op)
        elif ops:
            return None
    if found and ops:
        found.append(ClusterOps(tuple(ops), {STAGE: string_attr(UNNAMED)}))
    return found or None


def wrap(cluster: ClusterOps, loop: Operation) -> None:
    """Move the ops of a cluster into a region, which yields what others use."""
    if not cluster.ops:
        return
    inside = set(cluster.ops)
    body = body_of(loop)

    def is_outside(user: Operation) -> bool:
        around: Operation | None = user
        while around is not None and around.parent is not body:
            around = around.parent_op()
        return around not in inside

    values = [
        result for op in cluster.ops for result in op.results if any(is_outside(use.operation) for use in result.uses)
    ]
    last = cluster.ops[-1].next_op
    assert last is not None, "the body of a loop has a terminator"
    block = Block()
    region = scf.ExecuteRegionOp.create(
        result_types=[value.type for value in values],
        properties={"no_inline": UnitAttr()},
        attributes=cluster.attributes,
        regions=[Region(block)],
        location=loop.location,
    )
    insert_before(last, region)
    for value, result in zip(values, region.results, strict=True):
        result.name_hint = value.name_hint
        replace_uses(value, result, is_outside)
    block.add_op(end := scf.YieldOp.create(operands=values, location=loop.location))
    move_before(end, *cluster.ops)


@op_pass("convert-warp-pipeline", scf.ForOp)
def convert_warp_pipeline(loop: Operation) -> None:
    if loop.attributes.pop(PIPELINED, None) is None:
        return
    regions = [op for op in body_ops(loop) if is_cluster(op)]
    has_priorities = any(PRIORITY in op.attributes for op in regions)
    for region in regions:
        location = region.location
        insert_before(region, amdg.SchedBarrierOp.make(0, location))
        if has_priorities:
            level = integer(region.attributes, PRIORITY) or 0
            insert_before(region, amdg.SetPrioOp.make(level, location))
        inline(region)
    if has_priorities:
        insert_before(end_of(body_of(loop)), amdg.SetPrioOp.make(0, loop.location))


def is_cluster(op: Operation) -> bool:
    """Return True for a region of one block that is a cluster; one of several blocks stays a region."""
    return type(op) is scf.ExecuteRegionOp and STAGE in op.attributes and len(op.regions[0].blocks) == 1


def inline(region: Operation) -> None:
    """Replace a region of one block by its ops."""
    (block,) = region.regions[0].blocks
    end = end_of(block)
    replace_values(region.results, tuple(end.operands))
    erase_op(end)
    move_before(region, *block.ops)
    erase_op(region)
