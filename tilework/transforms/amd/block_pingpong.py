"""Ping-pong scheduling of two waves of a SIMD: one loads while the other runs its dot.

    %a = ttg.local_load        rocdl.s.setprio 1            the matrix unit continues with the other wave
    %p = tt.load               rocdl.sched.barrier 0        the scheduler moves no op across it
    %b = ttg.local_load        rocdl.s.setprio 0
    %q = tt.load               rocdl.sched.barrier 1
    rocdl.s.setprio 1          tt.dot %a, %b                rocdl.s.setprio 0

That is the form for four warps. Of eight warps, the upper half runs one *cluster* behind the lower half: the dot is
split along K, and its loads and parts alternate, separated by barriers. Two warps of a SIMD never load at the same
time.

    ttg.barrier all ; amdg.cond_barrier %upper                                                         before the loop
    %p = tt.load ; local_load of slice 0 | dot 0 | %q = tt.load ; local_load of slice 1 | dot 1 |
        local_load of slices 2, 3 | dot 2 | local_stores | dot 3 |
    amdg.cond_barrier %lower                                                                       after it

With asynchronous copies in three buffers the dot is not split. The wait for the copies of the iteration before ends the
first cluster, a barrier of waves the second; the scheduler places the first products between the barriers' scalar
instructions.

    local_loads | first copy, wait for earlier ones | second copy, dot |

Fires in pipelined loops with one dot on the matrix unit of CDNA whose operands are the only loads. Changes no value.
Stage: TTGIR to TTGIR. Cost: one walk of each body.
"""

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.scratch import scratch_size
from tilework.ir import amdg, arith, scf, tt, ttg
from tilework.ir.effects import is_elementwise, is_pure, writes
from tilework.ir.encodings import dot_operand_of, encoding_of
from tilework.ir.enums import AddrSpace
from tilework.ir.module_facts import find_target, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, end_of, ops_behind
from tilework.ir.rewrite import defining_op, erase_op, insert_after, insert_before, move_before, recreate, replace_op
from tilework.ir.types import bit_width, i32, int_attr, int_property, shape_of, with_shape
from tilework.layouts.amd import AmdMfma
from tilework.light_dataclass import light_dataclass
from tilework.target import Target
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass
from tilework.transforms.ttg.pipeline.loops import DOTS, body_ops

# rows * columns * depth * bits
ONE_CLUSTER = range(1 << 18, (1 << 24) + 1)
CUT_IN_TWO, CUT_IN_FOUR = 1 << 25, 1 << 26
MOST_BITS = 16  # of elements that are copied
MATRIX, SCALAR = 8, 4  # kinds of instructions
BETWEEN_BARRIERS = ((MATRIX, 1, 0), (SCALAR, 3, 0), (MATRIX, 1, 0), (SCALAR, 3, 0), (MATRIX, 1, 0))
PASSED = frozenset({tt.LoadOp, ttg.LocalLoadOp, ttg.LocalStoreOp})


class AmdBlockPingpongPass(Pass):
    name = "tritonamdgpu-block-pingpong"
    num_stages: int = 2

    def run(self, module: ModuleOp) -> None:
        for op in tuple(module.walk()):
            if type(op) is scf.ForOp and (found := matmul_of(op)) is not None:
                size, warps = size_of(found.dot), num_warps(op)
                if warps == 4 and size in ONE_CLUSTER:
                    interleave_loads(found)
                elif warps == 8 and self.num_stages == 2 and (parts := parts_of(found, size)):
                    stagger_by_cluster(op, found, parts)
            elif type(op) is scf.ForOp and num_warps(op) == 8 and self.num_stages == 3:
                if (copied := copied_matmul_of(op)) is not None:
                    stagger_copies(op, copied)


@light_dataclass
class Matmul:
    """The only dot of a loop, its loads from global memory, and the loads of its operands from LDS."""

    dot: Operation
    mma: AmdMfma
    loads: list[Operation]
    reads: list[Operation]


def matmul_of(loop: Operation) -> Matmul | None:
    """Return the dot of `loop` if its operands are the only loads, and no op writes between the loads and the dot."""
    ops = body_ops(loop)
    dots, loads, reads = ([op for op in ops if type(op) in kinds] for kinds in (DOTS, (tt.LoadOp,), (ttg.LocalLoadOp,)))
    if len(dots) != 1 or len(loads) != 2 or len(reads) != 2:
        return None
    (dot,) = dots
    mma = encoding_of(dot.results[0].type)
    if not isinstance(mma, AmdMfma) or len(shape_of(dot.results[0].type)) != 2:
        return None
    if reads != [source_of(operand) for operand in dot.operands[:2]]:
        return None
    positions = {op: position for position, op in enumerate(ops)}
    makers = [maker for read in reads for value in read.operands if (maker := defining_op(value)) is not None]
    made = [positions[maker] for maker in makers if maker in positions]
    above = ops[min(positions[op] for op in (*loads, *reads)) : positions[dot]]
    if max(made, default=-1) > positions[loads[0]] or loads[1] not in above or any(map(writes, above)):
        return None
    return Matmul(dot, mma, loads, reads)


COPIED = tuple(
    frozenset(kinds)
    for kinds in (
        DOTS, {ttg.LocalLoadOp}, {ttg.AsyncCopyGlobalToLocalOp}, {ttg.AsyncCommitGroupOp}, {ttg.AsyncWaitOp}
    )
)  # fmt: skip


@light_dataclass
class CopiedMatmul:
    """The only dot of a loop, the loads of its operands from LDS, the copies that fill LDS with their commits, and the
    wait for earlier ones."""

    dot: Operation
    reads: list[Operation]
    copies: list[tuple[Operation, Operation]]
    wait: Operation


def copied_matmul_of(loop: Operation) -> CopiedMatmul | None:
    """Return the dot of `loop` if its operands are copied asynchronously and all else is arithmetic."""
    ops = body_ops(loop)
    dots, reads, copies, commits, waits = ([op for op in ops if type(op) in kinds] for kinds in COPIED)
    if [len(found) for found in (dots, reads, copies, commits, waits)] != [1, 2, 2, 2, 1]:
        return None
    dot, wait, end = dots[0], waits[0], end_of(body_of(loop))
    if type(dot) is not tt.DotOp or not isinstance(encoding_of(dot.results[0].type), AmdMfma):
        return None
    pairs = list(zip(copies, commits, strict=True))
    used, known, target = [*dot.results, *wait.results], frozenset().union(*COPIED), find_target(dot)
    fits = (
        bit_width(dot.operands[0].type) <= MOST_BITS
        and [read.results[0] for read in reads] == list(dot.operands[:2])
        and all(list(commit.operands) == list(copy.results) for copy, commit in pairs)
        and all(op.parent_op() is loop and (type(op) in known or is_alone(op, target)) for op in ops if op is not end)
        and all(use.operation is end for value in used for use in value.uses)
    )
    return CopiedMatmul(dot, reads, pairs, wait) if fits else None


def stagger_copies(loop: Operation, found: CopiedMatmul) -> None:
    """Schedule a loop with asynchronous copies for eight warps."""
    dot, wait, location = found.dot, found.wait, found.dot.location
    first, second = found.copies
    end = end_of(body_of(loop))
    pending = int_property(wait, "num")
    wait.properties["num"] = int_attr(max(pending - 1, 0), i32)  # the second copy starts behind it
    for op in (*found.reads, *first, wait, *second, dot):
        op.detach()
    groups = [amdg.SchedGroupBarrierOp.make(*group, location) for group in BETWEEN_BARRIERS]
    insert_before(
        end, *found.reads, hold(0, location), *first, hold(0, location), wait, hold(0, location), *groups, *second, dot,
        hold(0, location), amdg.WaveBarrierOp.make(location), hold(0, location),
    )  # fmt: skip
    stagger(loop, AddrSpace.LOCAL)


def interleave_loads(found: Matmul) -> None:
    """Schedule the loop for four warps."""
    dot, (first, _), reads = found.dot, found.loads, found.reads
    location = dot.location
    for read in reads:
        move_before(first, read)
    first.detach()
    insert_after(reads[0], prio(1, location), first, hold(0, location))
    insert_after(reads[1], prio(0, location))
    insert_before(dot, hold(1, location), prio(1, location))
    insert_after(dot, prio(0, location))


def parts_of(found: Matmul, size: int) -> int:
    """Return the number of parts into which a dot of eight warps is split along K; 0 if it is not split."""
    dot = found.dot
    parts = 2 if size == CUT_IN_TWO else 4 if size >= CUT_IN_FOUR else 0
    operand = dot_operand_of(dot.operands[0].type)
    assert operand is not None
    rows, _, step = found.mma.instr_shape
    if parts == 0 or (parts == 4 and rows == 16 and operand.k_width == 8):
        return 0
    block = dot.parent_block()
    assert block is not None
    if not all(is_alone(op, find_target(dot)) for op in block.ops if op is not block.last_op):
        return 0
    after = set(ops_behind(dot))
    uses = [use.operation for load in found.loads for use in load.results[0].uses]
    is_last = all(use.operation is block.last_op for use in dot.results[0].uses)
    is_direct = all(read.results[0] in dot.operands for read in found.reads)
    depth = shape_of(dot.operands[0].type)[1]
    return parts if is_last and is_direct and depth % (parts * step) == 0 and after.issuperset(uses) else 0


def is_alone(op: Operation, target: Target) -> bool:
    """Return True if `op` needs no barrier, which the two halves of the warps would reach at different times."""
    return type(op) in PASSED or (is_pure(op) and not op.regions and scratch_size(op, target) == 0)


def stagger_by_cluster(loop: Operation, found: Matmul, parts: int) -> None:
    """Schedule the loop for eight warps."""
    dot, (first, second), location = found.dot, found.loads, found.dot.location
    end, total = dot.parent_block().last_op, dot.operands[2]  # pyright: ignore
    assert end is not None
    depth = shape_of(dot.operands[0].type)[1] // parts
    for load in (first, second):
        load.detach()
    loads = {0: [first], 1: [second]} if parts == 4 else {0: [first, second]}
    sliced = {0: [0], 1: [1], 2: [2, 3]} if parts == 4 else {0: [0, 1]}
    pieces: dict[int, list[SSAValue]] = {}
    for part in range(parts):
        anchor = end if part == parts - 1 else dot
        new: list[Operation] = list(loads.get(part, ()))
        for piece_index in sliced.get(part, ()):
            pieces[piece_index] = []
            for read, axis in zip(found.reads, (1, 0), strict=True):
                view, piece = slice_of(read, axis, piece_index * depth, depth)
                new += [view, piece]
                pieces[piece_index] += piece.results
        partial = recreate(dot, operands=(*pieces[part], total))
        total = partial.results[0]
        insert_before(
            anchor, *new, *end_cluster(location), prio(1, location), partial, prio(0, location), *end_cluster(location)
        )
    replace_op(dot, results=(total,))
    for read in found.reads:
        erase_op(read)
    stagger(loop)


def slice_of(read: Operation, axis: int, start: int, size: int) -> tuple[Operation, Operation]:
    """Return a view and a load of a slice of what `read` reads, from `start` on along `axis`."""
    whole = read.results[0].type
    shape = tuple(size if dim == axis else length for dim, length in enumerate(shape_of(whole)))
    offsets = [start if dim == axis else 0 for dim in range(2)]
    view = ttg.MemDescSubsliceOp.make(read.operands[0], offsets, shape, read.location)
    return view, ttg.LocalLoadOp.make(view.results[0], with_shape(whole, shape), read.location, *read.operands[1:])


def stagger(loop: Operation, memory: AddrSpace = AddrSpace.ALL) -> None:
    """Let the upper half of the threads wait once more before `loop`, the lower half after it."""
    code = Emitter(loop.location)
    code.ops.append(ttg.BarrierOp.make(memory, loop.location))
    thread = code.append(amdg.WorkitemIdXOp.make(loop.location))
    zero, half = code.constant(0, i32), code.constant(num_warps(loop) * threads_per_warp(loop) // 2, i32)
    group = code.binary(arith.DivSIOp, thread, half)
    lower, upper = code.compare("eq", group, zero), code.compare("ne", group, zero)
    code.ops.append(amdg.CondBarrierOp.make(upper, loop.location))
    code.insert_before(loop)
    insert_after(loop, amdg.CondBarrierOp.make(lower, loop.location))


def end_cluster(location: LocationAttr) -> list[Operation]:
    """Return the ops that end a cluster."""
    return [ttg.BarrierOp.make(AddrSpace.ALL, location), hold(0, location)]


def size_of(dot: Operation) -> int:
    (rows, depth), columns = shape_of(dot.operands[0].type)[-2:], shape_of(dot.results[0].type)[-1]
    return rows * columns * depth * bit_width(dot.operands[0].type)


def source_of(value: SSAValue) -> Operation | None:
    """Return the op that defines `value`, looking through casts."""
    while isinstance(value, OpResult) and is_elementwise(value.op) and len(value.op.operands) == 1:
        value = value.op.operands[0]
    return value.op if isinstance(value, OpResult) else None


def prio(level: int, location: LocationAttr) -> Operation:
    return amdg.SetPrioOp.make(level, location)


def hold(mask: int, location: LocationAttr) -> Operation:
    return amdg.SchedBarrierOp.make(mask, location)
