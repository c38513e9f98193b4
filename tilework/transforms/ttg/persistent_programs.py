"""Blocks that stay: each multiprocessor gets one, which runs programs of the grid one after the other.

    tt.func @matmul(...) {                        %me = tt.get_program_id x, %all = tt.get_num_programs x
      %pid = tt.get_program_id x                  %step = the number of multiprocessors
      scf.for ... { load a, b; dot }      ==>     scf.for %pid = (%me < %step ? %me : %all) to %all step %step {
      store                                         scf.for ... { load a, b; dot }
    }                                               store
                                                  }

Where a block has a multiprocessor for itself nothing is computed while it starts, loads its first tiles and stores its result. In
partitions (`warp_specialize/`) the warps that copy go on to the next program while the others still store. The grid is what it was:
blocks beyond the number of multiprocessors end at once. A GPU with fewer than it says runs the rest later.

It is for one loop of products that read tiles as descriptors load them, or turned by their warps, equally long in every program, and where partitions pay. Programs
that might wait for each other (atomics, volatile loads) need all their blocks, and so do those whose assembly asks for the number of its block.

Warps store the rows that they have computed (`store_layouts.py`): no barrier keeps one warp group from the next program's products
while the other stores.

A loop has no more stages than keep its products busy: with more of them L2 was asked for more, by blocks that read the same tiles, and at the
limit of power that is slower (docs/cost-model.md).
Stage: TTGIR. Cost: one walk, and the cost model of loops with products.
"""

from math import ceil

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.axis_info import axis_info
from tilework.analysis.cost import loop_cost
from tilework.ir import tt, ttg
from tilework.ir.effects import is_pure
from tilework.ir.enums import ProgramDim
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import find_target, num_ctas, num_warps
from tilework.ir.rewrite import erase_op, insert_before, replace_all_uses
from tilework.ir.scf_ext import make_for
from tilework.ir.types import i32, is_tensor
from tilework.target import Feature
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.longest_first import is_bound
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, group_dots, num_stages, set_integer
from tilework.transforms.warp_specialize.channels import Refusal, find_rings, loads_of_products
from tilework.transforms.warp_specialize.profit import will_split

MULTIPROCESSORS = "mov.u32 $0, %nsmid;"
GROUP = 4  # warps that tensor cores treat as one


class PersistentProgramsPass(Pass):
    name = "tritongpu-persistent-programs"
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            if (
                has_body(function)
                and has_one_loop(function)
                and will_split(function, "pays", self.num_stages)
                and is_read_as_it_comes(module, function, self.num_stages)
            ):
                limit_stages(function, self.num_stages)
                stay(function)
                remark(function, "each multiprocessor runs programs of the grid one after the other, in one block")


def has_one_loop(function: Operation) -> bool:
    """The kernel is what the module says, but for whether it pays."""
    ops = ops_in_order(*function.regions)
    dots = group_dots(function)
    if len(dots) != 1 or num_ctas(function) != 1 or Feature.TMA not in find_target(function).features:
        return False
    loop = dots[0].parent_op()
    return (
        type(loop) is scf.ForOp
        and loop.parent_op() is function
        and len(function.regions[0].blocks) == 1
        and any(map(is_number, ops))
        and not loads_of_products(function)
        and not any(map(is_bound, ops))
        and varying(function).isdisjoint(loop.operands[:3])
    )


def is_read_as_it_comes(module: ModuleOp, function: Operation, stages: int) -> bool:
    """Products, or two warp groups that turn a factor for them, read what copies write: others have not been measured, and beside
    one group that turns another block may have room.

    A descriptor that each program makes for itself would be made in a loop, where no partition copies by it.
    """
    try:
        rings = find_rings(function, stages, axis_info(module))
    except Refusal:
        return False
    if num_warps(function) == GROUP and any(type(op) is ttg.LocalLoadOp for op in ops_in_order(*function.regions)):
        return False
    channels, differ = [channel for ring in rings for channel in ring.channels], varying(function)
    return all(channel.allocs and channel.load.operands[0] not in differ for channel in channels)


def is_number(op: Operation) -> bool:
    """``tt.get_program_id x``."""
    return type(op) is tt.GetProgramIdOp and op.properties["axis"].value.data == ProgramDim.X  # pyright: ignore[reportAttributeAccessIssue]


def varying(function: Operation) -> set[SSAValue]:
    """What may differ between programs."""
    found: set[SSAValue] = set()
    for op in function.regions[0].blocks[0].ops:
        if type(op) is tt.GetProgramIdOp or op.regions or not is_pure(op) or not found.isdisjoint(op.operands):
            found.update(op.results)
    return found


def limit_stages(function: Operation, default: int) -> None:
    """One stage that products read, one that they have just read, and those that come while memory lets wait."""
    loop = group_dots(function)[0].parent_op()
    assert loop is not None
    cost, rates = loop_cost(loop), find_target(function).rates
    if cost is not None and rates is not None:
        asked, enough = num_stages(loop, default), 2 + ceil(rates.memory_cycles / cost.bound)
        set_integer(loop, NUM_STAGES, min(asked, enough))
        if asked > enough:
            remark(loop, f"{enough} stages keep its products busy, of {asked} that it may have")


def stay(function: Operation) -> None:
    """Run the body for every program that this block takes."""
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
        if is_number(op):
            replace_all_uses(op.results[0], each.args[0])
            erase_op(op)
    insert_before(end, *start.ops, make_for(own, count, step, (), region, function.location))


def is_common(op: Operation, inside: set[SSAValue]) -> bool:
    """One for all programs: a constant, or a number that is not made of tiles, nor of what is `inside` of the loop over programs."""
    if type(op) is arith.ConstantOp:
        return True
    is_made = inside.isdisjoint((*op.operands, *op.results))
    return bool(op.results) and is_made and not any(is_tensor(value.type) for value in op.results)
