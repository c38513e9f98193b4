"""`tt.load` to cp.async.

at the load       memdesc_index %buffers[insert], async_copy_global_to_local, async_commit_group
at the first use  async_wait, memdesc_index %buffers[extract], local_load;  select(mask, loaded, other) if other is not 0
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.arith_ext import SelectOp
from tilework.ir.create import create_op, set_type
from tilework.ir.encodings import encoding_attr
from tilework.ir.forms import SEGMENTS
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.rewrite import erase_op, replace_all_uses
from tilework.ir.ttg.memdesc_types import as_mutable, async_token, is_memdesc
from tilework.ir.types import Tensor, i32, i32_array, int_attr, is_tensor, tensor_type
from tilework.layouts.construct import default_blocked
from tilework.transforms.ttg.pipeline.load_plans import LoadPlan, needs_other
from tilework.transforms.ttg.pipeline.lowering import Lowering


def lower_copy(low: Lowering, plan: LoadPlan) -> None:
    """Copy what `plan.load` loads in the background, and read it from the buffer where it is used first."""
    load, place, use = plan.load, plan.place, plan.first_use
    assert isinstance(load, tt.LoadOp)
    is_scalar = not is_tensor(load.result.type)
    pointers, mask, other = load.ptr, load.mask, load.other
    if is_scalar:
        pointers, mask, other = (splatted(low, plan, value) for value in (pointers, mask, other))
    assert pointers is not None
    counters, buffers = low.counters[plan.buffers], low.allocs[load]
    target = low.value(load, ttg.MemDescIndexOp.make(buffers, counters.insert, load.location), place)
    token = low.value(load, async_copy(load, pointers, target, mask, other, plan.contiguity), place)
    group = low.value(load, ttg.AsyncCommitGroupOp.make((token,), load.location), place)
    wait = low.value(load, ttg.AsyncWaitOp.make((group,), 0, load.location), use)
    view = low.value(load, ttg.MemDescIndexOp.make(buffers, counters.extract, load.location), use)
    replace_allocs(low, plan, view)
    if load.result.first_use is not None:
        loaded = low.value(load, ttg.LocalLoadOp.make(view, value_type(plan), load.location, wait), use)
        if mask is not None and other is not None and needs_other(load):
            loaded = low.value(load, SelectOp.make(mask, loaded, other, load.location), use)
        if is_scalar:
            loaded = low.value(load, tt.UnsplatOp.make(loaded, load.location), use)
        replace_all_uses(load.result, loaded)
    low.schedule.places.pop(load)
    erase_op(load)


def async_copy(
    load: Operation,
    pointers: SSAValue,
    target: SSAValue,
    mask: SSAValue | None,
    other: SSAValue | None,
    contiguity: int,
) -> Operation:
    """The copy that `load` becomes, with its cache policy."""
    operands = [value for value in (pointers, target, mask, other) if value is not None]
    properties = {name: load.properties[name] for name in ("cache", "evict", "isVolatile")}
    properties["contiguity"] = int_attr(contiguity, i32)
    properties[SEGMENTS] = i32_array(1, 1, int(mask is not None), int(other is not None))
    return create_op(ttg.AsyncCopyGlobalToLocalOp, operands, (async_token,), load.location, properties)


def splatted(low: Lowering, plan: LoadPlan, value: SSAValue | None) -> SSAValue | None:
    """A tensor of one element for a scalar."""
    if value is None:
        return None
    type = one_element(plan.load, value)
    return low.value(plan.load, tt.SplatOp.make(value, type, plan.load.location), plan.place)


def one_element(op: Operation, value: SSAValue) -> Tensor:
    encoding = default_blocked((1,), None, None, num_warps(op), threads_per_warp(op), num_ctas(op))
    return tensor_type((1,), value.type, encoding_attr(encoding))


def value_type(plan: LoadPlan) -> Tensor:
    """The type of the tensor that is read from the buffer."""
    result = plan.load.results[0]
    return result.type if is_tensor(result.type) else one_element(plan.load, result)  # pyright: ignore


def replace_allocs(low: Lowering, plan: LoadPlan, view: SSAValue) -> None:
    """Use `view` of a buffer for the memory that users of the load made. Unlike that it may be written."""
    for alloc in plan.allocs:
        read_instead(alloc.results[0], view)
        low.schedule.places.pop(alloc)
        erase_op(alloc)


def read_instead(memory: SSAValue, other: SSAValue) -> None:
    """Use `other`, which may be written, for `memory`; its views, and those behind waits, may be written then, too."""
    let_views_write(memory)
    replace_all_uses(memory, other)


def let_views_write(memory: SSAValue) -> None:
    for use in memory.uses:
        results = use.operation.results
        for result in results[use.index : use.index + 1] if len(results) > 1 else results:
            if is_memdesc(result.type):
                set_type(result, as_mutable(result.type))
                let_views_write(result)
