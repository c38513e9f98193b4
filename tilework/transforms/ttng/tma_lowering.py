"""Lower the remaining descriptor ops to synchronous TMA copies.

    %t = tt.descriptor_load %d[%x, %y]      %m = ttg.local_alloc, %b = ttg.local_alloc : 1xi64
                                            ttng.init_barrier %b, 1
                                     ==>    ttng.barrier_expect %b, 8192, %true
                                            ttng.async_tma_copy_global_to_local %d[%x, %y] %m, %b, %true
                                            ttng.wait_barrier %b, 0 ; ttng.inval_barrier %b
                                            %t = ttg.local_load %m

    tt.descriptor_store %d[%x, %y], %t      %m = ttg.local_alloc %t ; ttng.fence_async_shared
                                     ==>    ttng.async_tma_copy_local_to_global %d[%x, %y] %m
                                            ttng.async_tma_store_wait {pendings = 0}

Gathers, scatters and reductions are lowered alike. A `ttg.local_alloc` of a loaded block in the layout of the TMA copy
reuses its memory. A descriptor created in the kernel is written to scratch memory (`building/tma.py`). Loads in
pipelined loops were lowered before, in `pipeline/`. Stores, scatters and gathers take a `swizzled_shared` descriptor,
too; a load needs `nvmma_shared`. An op whose descriptor has no layout is left as it is. Stage: TTGIR to TTGIR, sm_90
and later. Cost: one walk.
"""

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.alias import VIEWS
from tilework.errors import PassError
from tilework.ir import arith, tt, ttg, ttng
from tilework.ir.effects import is_terminator
from tilework.ir.encodings import shared_of
from tilework.ir.functions import entry_around, ops_in_order
from tilework.ir.module_facts import num_ctas
from tilework.ir.nesting import start_of
from tilework.ir.rewrite import constant, constant_value, defining_op, erase_op, put, replace_all_uses
from tilework.ir.ttg.memory_types import MemDescType, barrier_type, memdesc_type
from tilework.ir.types import bit_width, element_type, i1, i32, shape_of
from tilework.layouts.encodings import (
    Shared,
)
from tilework.layouts.to_linear import shape_per_cta
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.tma import (
    LOADS,
    STORES,
    TENSORMAP_BYTES,
    start_load,
    start_store,
    stored_value,
    write_tensormap,
)
from tilework.transforms.passes import module_pass
from tilework.transforms.ttg.pipeline.lower_loads import replace_memory


@module_pass("triton-nvidia-tma-lowering")
def tma_lowering(module: ModuleOp) -> None:
    made: set[SSAValue] = set()
    for inner in ops_in_order(*module.regions):
        if (rule := RULES.get(type(inner))) is not None:
            rule(inner, made)


class EntryEmitter(Emitter):
    """New ops before an op; constants are reused from, or inserted at, the start of the function or partition."""

    def __init__(self, loc: LocationAttr, entry: Block) -> None:
        super().__init__(loc)
        self.entry = entry

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        op = self.entry.first_op
        while op is not None and op.__class__ is arith.ConstantOp:
            result = op.results[0]
            if result.type == type and constant_value(result) == value:
                return result
            op = op.next_op
        return put(start_of(self.entry), constant(value, type, self.loc))


def emitter(op: Operation) -> EntryEmitter:
    """Return an emitter of ops that replace `op`."""
    return EntryEmitter(op.location, entry_around(op))


def block_layout(descriptor: SSAValue, tensor: Attribute) -> Shared | None:
    """Return the shared layout of a block of `descriptor` as `tensor`, which may lack leading dimensions of size 1."""
    encoding = shared_of(descriptor.type)
    return None if encoding is None else encoding.without_leading(encoding.rank - len(shape_of(tensor)))


def memory_type(tensor: Attribute, encoding: Shared, mutable: bool) -> MemDescType:
    return memdesc_type(shape_of(tensor), element_type(tensor), encoding, mutable)


def lower_load(load: Operation, made: set[SSAValue]) -> None:
    """Load a block, or rows of one, into new shared memory."""
    tensor = load.results[0].type
    encoding = block_layout(load.operands[0], tensor)
    if encoding is None:
        return
    if type(load) is tt.DescriptorLoadOp and not encoding.is_matrix_tile:
        raise PassError(
            "'ttng.async_tma_copy_global_to_local' op TMA result must have NVMMA shared layout", load.location
        )
    code = emitter(load)
    always, zero = code.constant(1, i1), code.constant(0, i32)
    memory = code.append(ttg.LocalAllocOp.make(None, memory_type(tensor, encoding, True), code.loc))
    barrier = code.append(ttg.LocalAllocOp.make(None, barrier_type(num_ctas(load)), code.loc))
    size = prod(shape_per_cta(encoding, shape_of(tensor))) * bit_width(tensor) // 8
    code.ops.append(ttng.InitBarrierOp.make(barrier, 1, code.loc))
    code.ops.append(ttng.BarrierExpectOp.make(barrier, size, always, code.loc))
    code.ops.append(start_load(load, memory, barrier, always))
    code.ops.append(ttng.WaitBarrierOp.make(barrier, zero, None, (), code.loc))
    code.ops.append(ttng.InvalBarrierOp.make(barrier, code.loc))
    made.add(memory)
    take_memory(load.results[0], memory, load.parent)
    if load.results[0].first_use is not None:
        replace_all_uses(load.results[0], code.append(ttg.LocalLoadOp.make(memory, tensor, code.loc)))
    code.insert_before(load)
    erase_op(load)


def take_memory(loaded: SSAValue, memory: SSAValue, load_block: Block | None) -> None:
    """Use `memory` for each `ttg.local_alloc` of the loaded value, where the layout is the same and no op writes it."""
    kind = memory.type
    users = tuple(loaded.uses)
    for use in users:
        alloc = use.operation
        if type(alloc) is not ttg.LocalAllocOp:
            continue
        wanted = alloc.results[0].type
        assert isinstance(wanted, MemDescType)
        own = len(users) == 1 and alloc.parent is load_block
        if wanted.encoding != kind.encoding or not (own or not wanted.is_mutable):  # pyright: ignore
            continue
        if wanted.is_mutable or can_be_mutable(alloc.results[0]):
            replace_memory(alloc.results[0], memory)
            erase_op(alloc)


def can_be_mutable(memory: SSAValue) -> bool:
    """Return True if the type of `memory` may change: its views follow, but loops and branches keep their types."""
    for use in memory.uses:
        user = use.operation
        if user.regions or is_terminator(user):
            return False
        if type(user) is ttng.WarpGroupDotWaitOp and not can_be_mutable(user.results[use.index]):
            return False
        if type(user) in VIEWS and not can_be_mutable(user.results[0]):
            return False
    return True


def lower_store(store: Operation, made: set[SSAValue]) -> None:
    """Store a tensor to a block, or to rows of one, through shared memory."""
    value = stored_value(store)
    encoding = block_layout(store.operands[0], value.type)
    if encoding is None:
        return
    code = emitter(store)
    memory = loaded_memory(value, memory_type(value.type, encoding, True), made)
    if memory is None:
        memory = code.append(ttg.LocalAllocOp.make(value, memory_type(value.type, encoding, False), code.loc))
    code.ops.append(ttng.FenceAsyncSharedOp.make(False, code.loc))
    code.ops.append(start_store(store, memory))
    code.ops.append(ttng.AsyncTMAStoreWaitOp.make(0, code.loc))
    code.insert_before(store)
    erase_op(store)
    load = defining_op(value)
    if type(load) is ttg.LocalLoadOp and value.first_use is None:
        erase_op(load)


def loaded_memory(value: SSAValue, kind: MemDescType, made: set[SSAValue]) -> SSAValue | None:
    """Return the memory that `value` was loaded from, if it has the type `kind` and this pass allocated it, so that no
    other op writes it.
    """
    load = defining_op(value)
    if type(load) is not ttg.LocalLoadOp:
        return None
    memory = load.operands[0]
    return memory if memory in made and memory.type == kind else None


def lower_descriptor(make: Operation, made: set[SSAValue]) -> None:
    """Create a descriptor in the scratch memory of this program."""
    encoding = shared_of(make.results[0].type)
    if encoding is None or not encoding.is_matrix_tile:
        return
    code = emitter(make)
    slot = code.append(ttg.GlobalScratchAllocOp.make(TENSORMAP_BYTES, TENSORMAP_BYTES, code.loc))
    replace_all_uses(make.results[0], write_tensormap(code, make, slot))
    code.insert_before(make)
    erase_op(make)


RULES: dict[type[Operation], Callable[[Operation, set[SSAValue]], None]] = {
    **dict.fromkeys(LOADS, lower_load),
    **dict.fromkeys(STORES, lower_store),
    tt.MakeTensorDescOp: lower_descriptor,
}
