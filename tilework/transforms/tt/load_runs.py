"""Load once what the pointers of a dot's operand repeat in runs.

    %row = (%start + range(0, 128)) / 8                       %row = (%start + 8 * range(0, 16)) / 8
    %p = %base + %row[:, None] * %n + %column[None, :]        %p = %base + %row[:, None] * %n + %column[None, :]
    %x = tt.load %p : 128x64                           ==>    %y = tt.load %p : 16x64
                                                              %x = reshape (broadcast %y[:, None, :] : 16x8x64) : 128x64

Weights of 2 to 8 bits are packed into larger integers, and kernels load the integer of every weight. The repeated
elements would be copied to shared memory and read from there one by one. Pointers, and the mask and `other` if there
are any, must be equal in aligned runs along an axis (`analysis/axis_info.py`). The smaller tile holds the first element
of each run: it is computed from ranges with a step, also where loops carry the pointers.

Fires for loads whose elements reach dots or reductions only, through arithmetic; the layout of a stored tile is chosen
for its stores. Stage: TTIR to TTIR. Cost: AxisInfo where there are dots or reductions.
"""

from math import gcd

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.ir import arith, scf, tt
from tilework.ir.attr_text import is_true
from tilework.ir.effects import is_elementwise
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import constant_value, insert_after, recreate, replace_op
from tilework.ir.scf import also_carry, also_yield
from tilework.ir.types import Tensor, axis_of, int_property, is_tensor, shape_of, with_shape
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.passes import module_pass

FOLLOWED = (tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.JoinOp)
ENDS = (tt.DotOp, tt.DotScaledOp, tt.ReduceOp)


@module_pass("tt-load-runs")
def load_runs(module: ModuleOp) -> None:
    loads = {
        function: [op for op in ops_in_order(*function.regions) if type(op) is tt.LoadOp and is_only_combined(op)]
        for function in filter(has_body, functions(module))
    }
    facts = axis_info(module) if any(loads.values()) else AxisFacts({})
    for function, found in loads.items():
        if sum([shrink(load, facts) for load in found]):
            canonicalize(function)


def is_only_combined(load: Operation) -> bool:
    """Return True if dots and reductions, and no other ops, use what is computed from the loaded tile."""
    if not is_tensor(load.results[0].type) or is_true(load.properties.get("isVolatile")):
        return False
    pending, seen = [load], set[Operation]()
    while pending:
        for user in (use.operation for result in pending.pop().results for use in result.uses):
            if type(user) in ENDS or user in seen:
                continue
            if not is_elementwise(user) and type(user) not in FOLLOWED:
                return False
            seen.add(user)
            pending.append(user)
    return True


def shrink(load: Operation, facts: AxisFacts) -> bool:
    """Load the first element of each run, if there are runs; return True if there are."""
    shape = shape_of(load.results[0].type)
    runs = [gcd(size, *(facts.of(value).constancy[axis] for value in load.operands)) for axis, size in enumerate(shape)]
    run = max(runs)
    axis = runs.index(run)
    thinned = Thinned(run)
    if run == 1 or not all(thinned.can_build(value, axis) for value in load.operands):
        return False
    operands = [thinned.built(value, axis) for value in load.operands]
    code = Emitter(load.location)
    value = code.append(recreate(load, operands=operands, result_types=[thinned.type_of(load.results[0], axis)]))
    if run < shape[axis]:
        value = code.reshaped(value, (*shape[:axis], shape[axis] // run, 1, *shape[axis + 1 :]))
        value = code.broadcast(value, (*shape[:axis], shape[axis] // run, run, *shape[axis + 1 :]))
        value = code.reshaped(value, shape)
    else:
        value = code.broadcast(value, shape)
    replace_op(load, *code.ops, results=[value])
    return True


class Thinned:
    """The elements 0, `run`, 2 * `run` ... of tiles along an axis, computed anew, each after the tile itself."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.made: dict[tuple[SSAValue, int], SSAValue] = {}

    def type_of(self, value: SSAValue, axis: int) -> Tensor:
        shape = shape_of(value.type)
        return with_shape(value.type, (*shape[:axis], shape[axis] // self.run, *shape[axis + 1 :]))

    def can_build(self, value: SSAValue, axis: int) -> bool:
        pending, seen = [(value, axis)], set[tuple[SSAValue, int]]()
        while pending:
            entry = pending.pop()
            if entry not in seen:
                seen.add(entry)
                if (needed := self.needs(*entry)) is None:
                    return False
                pending += needed
        return True

    def needs(self, value: SSAValue, axis: int) -> list[tuple[SSAValue, int]] | None:
        """Return the tiles of which some elements along an axis are needed for those of `value`; None if there is no
        rule.
        """
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if type(loop) is not scf.ForOp or value.index == 0:
                return None
            return [(loop.operands[value.index + 2], axis), (yielded(value), axis)]
        assert isinstance(value, OpResult)
        op, kind = value.op, type(value.op)
        if constant_value(value) is not None or kind is tt.SplatOp or kind is tt.MakeRangeOp:
            return []
        if kind is tt.ExpandDimsOp:
            return [(op.operands[0], axis - (axis > axis_of(op)))]
        if kind is tt.BroadcastOp:
            return [] if shape_of(op.operands[0].type)[axis] == 1 else [(op.operands[0], axis)]
        return [(operand, axis) for operand in op.operands if is_tensor(operand.type)] if is_elementwise(op) else None

    def built(self, value: SSAValue, axis: int) -> SSAValue:
        if (value, axis) not in self.made:
            make = self.carried if isinstance(value, BlockArgument) else self.computed
            self.made[value, axis] = make(value, axis)
        return self.made[value, axis]

    def carried(self, value: SSAValue, axis: int) -> SSAValue:
        """Carry the thinned tile beside a loop's tile."""
        assert isinstance(value, BlockArgument)
        loop, end = value.block.parent_op(), end_of(value.block)
        assert loop is not None
        (made,) = also_carry(loop, [self.built(loop.operands[value.index + 2], axis)])
        also_yield(value.block, [made])
        self.made[value, axis] = made
        end.operands[made.index - 1] = self.built(yielded(value), axis)
        return made

    def computed(self, value: SSAValue, axis: int) -> SSAValue:
        assert isinstance(value, OpResult)
        op, thin = value.op, self.type_of(value, axis)
        code = Emitter(op.location)
        if (number := constant_value(value)) is not None:
            made = code.constant(number, thin)
        elif type(op) is tt.MakeRangeOp:
            made = code.append(tt.MakeRangeOp.make(0, shape_of(thin)[0], op.location))
            made = code.binary(arith.MuliOp, made, self.run)
            made = code.binary(arith.AddiOp, made, int_property(op, "start"))
        else:
            needed = dict(self.needs(value, axis) or ())
            operands = [self.built(one, needed[one]) if one in needed else one for one in op.operands]
            made = code.append(recreate(op, operands=operands, result_types=[thin]))
        insert_after(op, *code.ops)
        return made


def yielded(argument: BlockArgument) -> SSAValue:
    """Return the value of a loop-carried argument for the next iteration."""
    return end_of(argument.block).operands[argument.index - 1]
