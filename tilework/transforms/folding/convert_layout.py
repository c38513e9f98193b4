"""Rules of `canonicalize` for `ttg.convert_layout`: merge a conversion into a neighbouring op.

    convert x to its own type                    -> x
    convert (convert x)                          -> convert x
    convert (splat, range, splat constant)       -> the same op in the new layout
    convert (reshape allow_reorder x)            -> reshape, if that only renames registers
    convert (histogram, cat, local_load)         -> the same op in the new layout
    reshape, trans (convert x)                   -> of x, if nothing moves or any order will do
    histogram, gather, split (convert x)         -> of x
    local_alloc, local_store (convert x)         -> of x

A conversion from a tensor-core accumulator to a dot operand is kept: it is cheap, and other passes match it.
`clean_converts` applies these rules, and all folds, to one function; `canonicalize` applies them with everything else.
"""

from functools import cache

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import arith, tt, ttg
from tilework.ir.encodings import distributed_of, encoding_of, is_accumulator, layout_of, operand_index, with_encoding
from tilework.ir.rewrite import recreate
from tilework.ir.types import array_values, shape_of
from tilework.layouts.infer import can_split, infer_split
from tilework.layouts.to_linear import is_expensive_view
from tilework.transforms.folding import arith as folding_arith
from tilework.transforms.folding import casts as folding_casts
from tilework.transforms.folding import tiles as folding_tt
from tilework.transforms.folding.arith import producer
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.tiles import known_scalar
from tilework.transforms.folding.worklist import Driver, Fold, Rewrite, is_same, rule_table


def clean_converts(function: Operation) -> bool:
    """Fold, and remove the conversions that are not needed. True if anything changed."""
    return Driver(RULES, bottom_up=True).run(function, simplify_blocks)


# Predicates on types


@cache
def is_kept(source: Attribute, result: Attribute) -> bool:
    """Return True for a conversion from an accumulator to a dot operand, as between the two dots of attention."""
    return is_accumulator(source) and operand_index(result) is not None


@cache
def is_trivial_convert(source: Attribute, result: Attribute) -> bool:
    """Return True if every thread holds the same elements in the same registers."""
    return layout_of(source) == layout_of(result)


@cache
def is_expensive_reshape(source: Attribute, result: Attribute) -> bool:
    """Return True if a reshape that may reorder would have to move elements between threads."""
    before, after = distributed_of(source), distributed_of(result)
    if before is None or after is None:
        return True
    return is_expensive_view(shape_of(source), before, shape_of(result), after)


@cache
def registers(type: Attribute) -> int:
    """The elements that a thread holds."""
    return layout_of(type).in_size("register")


def converted_source(op: Operation, index: int = 0) -> SSAValue | None:
    """The source of the `ttg.convert_layout` that produces operand `index` of `op`; None if there is none."""
    convert = producer(op._operands[index], ttg.ConvertLayoutOp)
    return None if convert is None else convert._operands[0]


# convert_layout of something


def fold_convert(op: Operation) -> SSAValue | None:
    """Drop a conversion to the same type."""
    (source,) = op._operands
    return source if is_same(source.type, op.results[0].type) else None


def rewrite_convert(op: Operation, driver: Driver) -> bool:
    (source,) = op._operands
    owner = source.owner
    if not isinstance(owner, Operation) or is_kept(source.type, op.results[0].type):
        return False
    rule = CONVERT_OF.get(owner.name)
    return rule is not None and rule(op, owner, driver)


def of_constant(op: Operation, inner: Operation, driver: Driver) -> bool:
    """A constant that is the same in every element."""
    (source,) = op._operands
    if (known := known_scalar(source)) is None:
        return False
    return driver.replace(op, (driver.constant(op, known, op.results[0].type),))


def of_rebuilt(op: Operation, inner: Operation, driver: Driver) -> bool:
    """The producer can compute its result in any layout."""
    return driver.replace_with(op, recreate(inner, result_types=(op.results[0].type,)))


def of_local_load(op: Operation, inner: Operation, driver: Driver) -> bool:
    """Load at the location of the old load: later the memory may hold something else."""
    again = recreate(inner, result_types=(op.results[0].type,))
    driver.insert(inner, again)
    return driver.replace(op, again.results)


def of_reshape(op: Operation, inner: Operation, driver: Driver) -> bool:
    result = op.results[0].type
    if "allow_reorder" not in inner.properties or "efficient_layout" in inner.properties:
        return False
    if operand_index(result) is not None or is_expensive_reshape(inner._operands[0].type, result):
        return False
    return driver.replace_with(op, tt.ReshapeOp.make(inner.results[0], result, op.location, allow_reorder=True))


def of_cat(op: Operation, inner: Operation, driver: Driver) -> bool:
    if registers(op.results[0].type) < registers(inner.results[0].type):
        return False
    return of_rebuilt(op, inner, driver)


CONVERT_OF = {
    arith.ConstantOp.name: of_constant,
    ttg.ConvertLayoutOp.name: lambda op, inner, driver: driver.set_operands(op, inner._operands),
    tt.SplatOp.name: of_rebuilt,
    tt.MakeRangeOp.name: of_rebuilt,
    tt.HistogramOp.name: of_rebuilt,
    tt.ReshapeOp.name: of_reshape,
    tt.CatOp.name: of_cat,
    ttg.LocalLoadOp.name: of_local_load,
}


# Something of a convert_layout


def drop_convert(op: Operation, driver: Driver) -> bool:
    """`local_alloc` and `local_store` write any layout, `gather` reads any."""
    if not op._operands or (source := converted_source(op)) is None:
        return False
    return driver.set_operands(op, (source, *op._operands[1:]))


def rewrite_reshape(op: Operation, driver: Driver) -> bool:
    if (source := converted_source(op)) is None:
        return False
    if not is_trivial_convert(source.type, op._operands[0].type):
        if "allow_reorder" not in op.properties or is_expensive_reshape(source.type, op.results[0].type):
            return False
    return driver.set_operands(op, (source,))


def rewrite_trans(op: Operation, driver: Driver) -> bool:
    """A transposition that leaves the dimensions where they are only changes the name of the layout."""
    source = op._operands[0]
    before = converted_source(op)
    if before is not None and is_trivial_convert(before.type, source.type):
        source = before
    order = array_values(op.properties["order"])
    if order == tuple(range(len(order))) and distributed_of(source.type) is not None:
        return driver.replace_with(op, ttg.ConvertLayoutOp.make(source, op.results[0].type, op.location))
    return source is before and driver.set_operands(op, (source,))


def rewrite_histogram(op: Operation, driver: Driver) -> bool:
    """Count in the layout of the integers; the mask is converted to it."""
    if (source := converted_source(op)) is None:
        return False
    operands = [source]
    if len(op._operands) > 1:
        mask = op._operands[1]
        type = with_encoding(mask.type, encoding_of(source.type))
        operands.append(driver.insert(op, ttg.ConvertLayoutOp.make(mask, type, op.location)).results[0])
    return driver.set_operands(op, operands)


def rewrite_gather(op: Operation, driver: Driver) -> bool:
    """The source may have any layout; a layout that was chosen for the gather is kept."""
    return "efficient_layout" not in op.properties and drop_convert(op, driver)


def rewrite_split(op: Operation, driver: Driver) -> bool:
    if (source := converted_source(op)) is None or (encoding := distributed_of(source.type)) is None:
        return False
    shape = shape_of(source.type)
    if not can_split(encoding, shape) or infer_split(encoding, shape) != encoding_of(op.results[0].type):
        return False
    return driver.set_operands(op, (source,))


# Shared memory


def fold_local_alloc(op: Operation) -> SSAValue | None:
    """Return the memory that the initial value was loaded from, if it has the same type and is immutable."""
    if not op._operands or (load := producer(op._operands[0], ttg.LocalLoadOp)) is None:
        return None
    memory, type = load._operands[0], op.results[0].type
    assert isinstance(type, ttg.MemDescType)
    return memory if not type.is_mutable and is_same(memory.type, type) else None


FOLDS: dict[type[Operation], Fold] = {
    ttg.ConvertLayoutOp: fold_convert,
    ttg.LocalAllocOp: fold_local_alloc,
    ttg.MemDescTransOp: folding_tt.fold_trans,
}
REWRITES: dict[type[Operation], Rewrite] = {
    ttg.ConvertLayoutOp: rewrite_convert,
    ttg.LocalAllocOp: drop_convert,
    ttg.LocalStoreOp: drop_convert,
    tt.ReshapeOp: rewrite_reshape,
    tt.TransOp: rewrite_trans,
    tt.HistogramOp: rewrite_histogram,
    tt.GatherOp: rewrite_gather,
    tt.SplitOp: rewrite_split,
}
CLEAN_FOLDS: dict[type[Operation], Fold] = {
    **folding_arith.FOLDS,
    **folding_casts.FOLDS,
    **folding_tt.FOLDS,
    **FOLDS,
}
# Folding also moves a constant to the right of a comparison, and makes one of two transpositions.
CLEAN_REWRITES: dict[type[Operation], Rewrite] = {
    **REWRITES,
    arith.CmpiOp: folding_arith.rewrite_cmpi,
    tt.TransOp: lambda op, driver: folding_tt.rewrite_trans(op, driver) or rewrite_trans(op, driver),
    ttg.MemDescTransOp: folding_tt.rewrite_trans,
}
RULES = rule_table(CLEAN_FOLDS, CLEAN_REWRITES)
