"""Hoist loop-invariant ops out of loops.

    scf.for %k = %lb to %ub {                       %g = arith.cmpi slt, %lb, %ub
      %m = arith.muli %n, %n                        %m = arith.muli %n, %n
      %v = tt.load %p, %mask              ==>       %w = arith.andi (tt.splat %g), %mask
      ...                                           %v = tt.load %p, %w
    }                                               scf.for %k = %lb to %ub { ... }

An op moves if its operands come from outside and it may run when the loop would not (pure and speculatable; an `scf.if`
of such ops moves whole). A `tt.load` moves out of an `scf.for` that only reads memory; its mask then also requires that
the loop runs at all. Loads remain in `scf.while`, whose body may not be reached. Inner loops go first, so that an op
can leave several. A loop marked `disable_licm` (``llvm.loop_annotation``) is left alone.
Stage: TTIR or TTGIR to itself. Cost: one walk per nesting level.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilework.ir import scf, tt
from tilework.ir.effects import is_speculatable, writes
from tilework.ir.llvm import licm_hints
from tilework.ir.nesting import blocks_within, home_of
from tilework.ir.rewrite import move_before
from tilework.ir.scf import LOOPS
from tilework.ir.types import is_block_pointer
from tilework.transforms.building.emitter import Emitter, narrowed, set_mask
from tilework.transforms.passes import module_pass


@module_pass("triton-licm")
def licm(module: ModuleOp) -> None:
    for loop in [inner for inner in module.walk(region_first=True) if type(inner) in LOOPS]:
        if "llvm.licm.disable" not in licm_hints(loop):
            hoist_invariants(loop)


def hoist_invariants(loop: Operation) -> None:
    """Move the invariant ops of the top level of `loop` in front of it, in order."""
    inside = set(blocks_within(loop))
    may_hoist_loads = type(loop) is scf.ForOp and not any(
        writes(op) for block in inside for op in block.ops if not op.regions
    )
    for region in loop.regions:
        for block in region.blocks:
            for op in tuple(block.ops):
                if not is_invariant(op, inside):
                    continue
                if is_speculatable(op):
                    move_before(loop, op)
                elif may_hoist_loads and type(op) is tt.LoadOp and not is_block_pointer(op.operands[0].type):
                    hoist_load(op, loop)


def is_invariant(op: Operation, inside: set[Block]) -> bool:
    """Return True if `op` and its regions only use values from outside of the loop, or from `op` itself."""
    if any(home_of(value) in inside for value in op.operands):
        return False
    if not op.regions:
        return True
    own = set(blocks_within(op))
    return all(
        (block := home_of(value)) in own or block not in inside
        for inner_block in own
        for inner in inner_block.ops
        for value in inner.operands
    )


def hoist_load(load: Operation, loop: Operation) -> None:
    """Load in front of `loop`, unless `loop` has no iterations."""
    code = Emitter(load.location)
    set_mask(load, narrowed(code, load, code.compare("slt", loop.operands[0], loop.operands[1])))
    code.insert_before(loop)
    move_before(loop, load)
