"""Pad tiles to powers of two, with lanes that nobody sees: GPUs lay out nothing else.

    %i = tt.make_range {end = 96, start = 0} : tensor<96xi32>     %i = tt.make_range {end = 128, start = 0} : tensor<128xi32>
    %x = tt.load %p : tensor<96x!tt.ptr<f32>>                     %x = tt.load %p, %seen : tensor<128x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) ... addf                           ==>   %y = arith.select %seen, %x, %minus_zero
                                                                  %s = "tt.reduce"(%y) ... addf

where ``%seen`` is ``0..127 < 96``, made once at the start of the function. All types go through one map, each dimension to the next
power of two, so that most ops (whatever works element by element, and loops, branches and calls) only change their types: what
they compute in the invisible lanes is never looked at. `RULES` lists the ops that could show it, and how they are kept from
it: accesses get a mask, reductions neutral elements (`combining.py`), dots zeros along K (`products.py`), views of other rows
a gather (`views.py`).
Stage: TTIR to TTIR, GPUs, behind all passes over TTIR. Cost: one look at the types where no tile is odd.
"""

from collections.abc import Callable, Iterable

from xdsl.dialects import arith, ub
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilework.analysis.value_flows import CONTROL_FLOW
from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.property_text import is_true
from tilework.ir.tt.function_ops import function_type_of
from tilework.ir.types import is_odd
from tilework.transforms.building.masks import MASKS
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.common.cse import eliminate_common_subexpressions
from tilework.transforms.padding import combining, elements, products, views
from tilework.transforms.padding.padded import Padding
from tilework.transforms.passes import module_pass


@module_pass("pad-tiles")
def pad_tiles(module: ModuleOp) -> None:
    if not has_odd_tiles(module):
        return
    for function in functions(module):
        pad(function)
        if has_body(function):
            canonicalize(function)
            eliminate_common_subexpressions(function)


def has_odd_tiles(module: ModuleOp) -> bool:
    """Whether a size of a tile is no power of two. Types are shared: each is looked at once."""
    types = {id(result.type): result.type for op in ops_in_order(*module.regions) for result in op.results}
    given = [type for function in functions(module) if isinstance(function, tt.FuncOp) for type in inputs_of(function)]
    return any(map(is_odd, (*types.values(), *given)))


def inputs_of(function: tt.FuncOp) -> Iterable[Attribute]:
    return function_type_of(function).inputs


def pad(function: Operation) -> None:
    """Give every value of `function` its padded type, then see to the ops that could show the padding."""
    padding = Padding(function)
    ops = padding.change_types()
    for op in ops:
        if padding.touches(op):
            if type(op) in SIZED:
                tt.set_visible_sizes(op, map(padding.size, op.operands))
            if (rule := RULES.get(type(op))) is not None:
                rule(padding, op)
            elif type(op) not in PLAIN:
                raise PassError(f"'{op.name}' has no rule for tiles whose sizes are not powers of two", op.location)
    padding.finish()


# What an invisible lane holds stays there.
PLAIN = (
    ELEMENTWISE
    | CONTROL_FLOW
    | {
        tt.BroadcastOp,
        tt.CallOp,
        tt.ExpandDimsOp,
        tt.JoinOp,
        tt.PrintOp,
        tt.ReturnOp,
        tt.SortRunsOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        ub.PoisonOp,
    }
)
# Who prints, or counts bytes and operations, asks these for their sizes.
SIZED = frozenset({tt.AtomicCASOp, tt.AtomicRMWOp, tt.DotOp, tt.DotScaledOp, tt.LoadOp, tt.PrintOp, tt.StoreOp})
RULES: dict[type[Operation], Callable[[Padding, Operation], None]] = {
    arith.ConstantOp: elements.pad_constant,
    tt.MakeRangeOp: elements.pad_range,
    **dict.fromkeys(elements.DIVISIONS, elements.pad_division),
    tt.MapElementwiseOp: elements.pad_map,
    tt.AssertOp: elements.pad_assert,
    **dict.fromkeys(MASKS, elements.pad_masked),
    tt.GatherOp: elements.pad_gather,
    tt.ReduceOp: lambda padding, op: combining.combine(padding, op, counts=True),
    tt.ScanOp: lambda padding, op: combining.combine(padding, op, counts=is_true(op.properties["reverse"])),
    tt.DotOp: products.pad_dot,
    tt.DotScaledOp: products.pad_scaled_dot,
    tt.ReshapeOp: views.pad_reshape,
    tt.ResizeOp: views.pad_resize,
    tt.CatOp: views.pad_cat,
}
