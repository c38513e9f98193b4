"""Persistent kernels: each multiprocessor gets one block, which runs several programs of the grid.

    tt.func @matmul(...) {                        %me = tt.get_program_id x, %all = tt.get_num_programs x
      %pid = tt.get_program_id x                  %step = the number of multiprocessors
      scf.for ... { load a, b; dot }      ==>     scf.for %pid = (%me < %step ? %me : %all) to %all step %step {
      store                                         scf.for ... { load a, b; dot }
    }                                               store
                                                  }

A block that occupies a whole multiprocessor leaves it idle while it starts, loads its first tiles and stores its
result. With warp specialization (`warp_specialize/`) the producer warps continue with the next program while the
consumers still store. The grid is unchanged: blocks beyond the number of multiprocessors end at once. A GPU with fewer
multiprocessors than it reports runs the rest later.

Fires for one loop of dots that read tiles as descriptors load them, or transposed by their warps, with the same trip
count in every program, where partitions pay. Programs that might wait for each other (atomics, volatile loads), or
whose assembly reads the block id, are left alone.

Warps store the rows that they have computed (`store_layouts.py`): no barrier keeps one warp group from starting the
dots of the next program while the other stores.

A loop has no more stages than keep tensor cores busy: more stages read more from L2, by blocks that share tiles,
which is slower at the power limit (docs/cost-model.md).
Stage: TTGIR. Cost: one walk, and the cost model of loops with dots.
"""

import re
from math import ceil

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.axis_info import axis_info
from tilework.analysis.cost import loop_cost
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.enums import ProgramDim
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import LONGEST_FIRST, find_target, num_ctas, num_warps
from tilework.ir.rewrite import constant_value, defining_op, erase_op, insert_before, replace_all_uses
from tilework.ir.scf import make_for
from tilework.ir.types import i32, int_attr, int_property, is_tensor
from tilework.target import Feature
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass, module_pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, group_dots, num_stages, set_integer
from tilework.transforms.ttg.row_loads import is_program_id
from tilework.transforms.warp_specialize.channels import Refusal, find_rings, loads_of_dots, will_split

# Start programs with longer loops first, where the trip count grows with the program id along an axis: short ones fill
# the tail.
#
#     for k in range(0, tl.program_id(0) * BM, BN)        causal attention: "tilework.longest-first" on the module
#
# Blocks start in the order of their ids; the program of a block is computed from its id
# (`targets/gpu/codegen.py`). Along x: for eight y those with the largest x, then the next smaller x, and so on, then
# the next eight y, which may load other data. Along y and z, where all x start before the next id: the largest id
# first. Programs that might wait for each other (atomics, volatile loads, `while`), or
# whose assembly reads the block id, keep their order.
# Stage: TTGIR. Cost: one walk.

SAME = frozenset({arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp})
EITHER = frozenset({arith.MinSIOp, arith.MaxSIOp})
SCALED = frozenset({arith.MuliOp, arith.DivSIOp, arith.ShLIOp})
ALONE = frozenset({
    tt.FuncOp, tt.ReturnOp, scf.ForOp, scf.IfOp, tt.LoadOp, tt.StoreOp, tt.DescriptorLoadOp, tt.DescriptorStoreOp,
    ttg.LocalAllocOp, ttg.LocalLoadOp, ttng.WarpGroupDotOp, tt.ReduceOp, tt.ScanOp,
})  # fmt: skip


@module_pass("tritongpu-longest-first")
def longest_first(module: ModuleOp) -> None:
    ops = ops_in_order(*module.regions)
    if num_ctas(module) > 1 or any(map(is_bound, ops)):
        return
    loops = [op for op in ops if type(op) is scf.ForOp]
    for axis in ProgramDim:
        slopes = [slope(loop.operands[1], axis) - slope(loop.operands[0], axis) for loop in loops]
        if max(slopes, default=0) > 0 <= min(slopes):
            module.attributes[LONGEST_FIRST] = int_attr(axis, i32)
            return


BLOCK_REGISTERS = re.compile(r"%n?(ctaid|clusterid|cluster_\w+)")  # assembly with them is pure: uniform in a program


def is_bound(op: Operation) -> bool:
    """Return True if `op` may observe another program that runs at the same time, or the block that runs it."""
    is_volatile = isinstance(op, tt.LoadOp) and bool(op.is_volatile.value.data)
    reads_block_id = isinstance(op, tt.ElementwiseInlineAsmOp) and BLOCK_REGISTERS.search(op.asm_string.data)
    return bool(reads_block_id) or (not is_pure(op) and (type(op) not in ALONE or is_volatile))


def slope(value: SSAValue, axis: int) -> float:
    """Return 1 if `value` likely grows with the program id along `axis`, -1 if it falls, 0 if it is constant or
    unknown.
    """
    op = defining_op(value)
    kind = type(op)
    if op is None:
        return 0
    if kind is tt.GetProgramIdOp:
        return float(int_property(op, "axis") == axis)
    if kind in SAME:
        return slope(op.operands[0], axis)
    if kind in SCALED and (factor := constant_value(op.operands[1])) is not None:
        return slope(op.operands[0], axis) if factor > 0 else 0
    if kind is arith.AddiOp or kind is arith.MuliOp or kind in EITHER:
        sides = [slope(side, axis) for side in op.operands]
        return max(sides) if min(sides) >= 0 else 0
    return 0


MULTIPROCESSORS = "mov.u32 $0, %nsmid;"
GROUP = 4  # warps of a warp group


class PersistentProgramsPass(Pass):
    name = "tritongpu-persistent-programs"
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            if (
                has_body(function)
                and has_one_loop(function)
                and will_split(function, "pays", self.num_stages)
                and reads_buffers_directly(module, function, self.num_stages)
            ):
                limit_stages(function, self.num_stages)
                make_persistent(function)
                remark(function, "each multiprocessor runs programs of the grid one after the other, in one block")


def has_one_loop(function: Operation) -> bool:
    """Return True if the kernel has the form above, apart from profitability."""
    ops = ops_in_order(*function.regions)
    dots = group_dots(function)
    if len(dots) != 1 or num_ctas(function) != 1 or Feature.TMA not in find_target(function).features:
        return False
    loop = dots[0].parent_op()
    return (
        type(loop) is scf.ForOp
        and loop.parent_op() is function
        and len(function.regions[0].blocks) == 1
        and any(map(is_program_id, ops))
        and not loads_of_dots(function)
        and not any(map(is_bound, ops))
        and varying(function).isdisjoint(loop.operands[:3])
    )


def reads_buffers_directly(module: ModuleOp, function: Operation, stages: int) -> bool:
    """Return True if dots, or two warp groups that transpose an operand for them, read the buffers of copies directly:
    other forms have not been measured, and a second block may fit beside a single transposing group.

    A descriptor that each program creates would be created in the loop, where partitions cannot use it.
    """
    try:
        rings = find_rings(function, stages, axis_info(module))
    except Refusal:
        return False
    if num_warps(function) == GROUP and any(type(op) is ttg.LocalLoadOp for op in ops_in_order(*function.regions)):
        return False
    channels, differ = [channel for ring in rings for channel in ring.channels], varying(function)
    return all(channel.allocs and channel.load.operands[0] not in differ for channel in channels)


def varying(function: Operation) -> set[SSAValue]:
    """Return the values that may differ between programs."""
    found: set[SSAValue] = set()
    for op in function.regions[0].blocks[0].ops:
        if type(op) is tt.GetProgramIdOp or op.regions or not is_pure(op) or not found.isdisjoint(op.operands):
            found.update(op.results)
    return found


def limit_stages(function: Operation, default: int) -> None:
    """Limit the stages to one that dots read, one that they have just read, and those that hide the memory latency."""
    loop = group_dots(function)[0].parent_op()
    assert loop is not None
    cost, rates = loop_cost(loop), find_target(function).rates
    if cost is not None and rates is not None:
        requested, enough = num_stages(loop, default), 2 + ceil(rates.memory_cycles / cost.bound)
        set_integer(loop, NUM_STAGES, min(requested, enough))
        if requested > enough:
            remark(loop, f"{enough} stages keep tensor cores busy, of {requested} requested")


def make_persistent(function: Operation) -> None:
    """Wrap the body in a loop over the programs of this block."""
    block = function.regions[0].blocks[0]
    end = block.last_op
    assert end is not None, "a function returns"
    ops, inside = list[Operation](), varying(function)
    for op in block.ops:
        if op is not end and not is_common(op, inside):
            ops.append(op)
            inside.update(op.results)
    start = Emitter(function.location)
    me = start.append(tt.GetProgramIdOp.make(ProgramDim.X, function.location))
    count = start.append(tt.GetNumProgramsOp.make(ProgramDim.X, function.location))
    step = start.append(tt.ElementwiseInlineAsmOp.make((), (i32,), MULTIPROCESSORS, "=r", True, 1, function.location))
    own = start.select(start.compare("slt", me, step), me, count)
    each = Block(arg_types=[i32])
    for op in ops:
        op.detach()
    each.add_ops([*ops, scf.YieldOp.create(location=function.location)])
    region = Region(each)
    for op in ops_in_order(region):
        if is_program_id(op):
            replace_all_uses(op.results[0], each.args[0])
            erase_op(op)
    insert_before(end, *start.ops, make_for(own, count, step, (), region, function.location))


def is_common(op: Operation, inside: set[SSAValue]) -> bool:
    """Return True if all programs have the same value: a constant, or a scalar that does not depend on values `inside`
    the loop over programs.
    """
    if type(op) is arith.ConstantOp:
        return True
    is_invariant = inside.isdisjoint((*op.operands, *op.results))
    return bool(op.results) and is_invariant and not any(is_tensor(value.type) for value in op.results)
