"""Programs whose loops run longer the larger their number along x is, start first: short ones fill the gaps at the end.

    for k in range(0, tl.program_id(0) * BM, BN)        causal attention: "tilework.longest-first" on the module

The grid is started in the order of its numbers; which program a block runs is computed from its number there
(`targets/gpu/codegen.py`): of eight y those with the largest x, then the next x, and so on, then the next eight y, which
may load from other places. Programs that might wait for each other (atomics, volatile loads, `while`), or whose assembly asks for the
number of its block, stay in order.
Stage: TTGIR. Cost: one walk.
"""

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from tilework.analysis.inline_assembly import depends_on_block
from tilework.ir import tt, ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.enums import ProgramDim
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import LONGEST_FIRST, num_ctas
from tilework.ir.rewrite import constant_value, defining_op
from tilework.transforms.passes import module_pass

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
    slopes = [slope(loop.operands[1]) - slope(loop.operands[0]) for loop in ops if type(loop) is scf.ForOp]
    if num_ctas(module) == 1 and max(slopes, default=0) > 0 <= min(slopes) and not any(map(is_bound, ops)):
        module.attributes[LONGEST_FIRST] = UnitAttr()


def is_bound(op: Operation) -> bool:
    """`op` may see what another program does meanwhile, or which block runs it."""
    is_volatile = isinstance(op, tt.LoadOp) and bool(op.is_volatile.value.data)
    return depends_on_block(op) or (not is_pure(op) and (type(op) not in ALONE or is_volatile))


def slope(value: SSAValue) -> float:
    """1 if `value` grows with the program's number along x, -1 if it falls, 0 if it stays or is not known to."""
    op = defining_op(value)
    kind = type(op)
    if op is None:
        return 0
    if kind is tt.GetProgramIdOp:
        return float(op.properties["axis"].value.data == ProgramDim.X)  # pyright: ignore[reportAttributeAccessIssue]
    if kind in SAME:
        return slope(op.operands[0])
    if kind in SCALED:
        return slope(op.operands[0]) if (constant_value(op.operands[1]) or 0) > 0 else 0
    if kind is arith.AddiOp or kind in EITHER:
        sides = [slope(side) for side in op.operands]
        return max(sides) if min(sides) >= 0 else 0
    return 0
