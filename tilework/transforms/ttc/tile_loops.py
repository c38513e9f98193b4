"""Lower tiles to loop nests over scalars, with buffers where a tile must be stored.

    %x = tt.load %p : tensor<1024x!tt.ptr<f32>>          ttc.nest [1024] {
    %y = math.exp %x : tensor<1024xf32>                  ^bb0(%i: i32):
    tt.store %q, %y : tensor<1024x!tt.ptr<f32>>   ==>      %x = tt.load ... : !tt.ptr<f32>
                                                           %y = math.exp %x : f32
                                                           tt.store ..., %y : !tt.ptr<f32>
                                                           ttc.end
                                                         }

The ops of each block are read once, in order. Pure ops are only recorded; they are emitted into the nests that need
them (`index_maps.py`, `nests.py`). Loads, stores, atomics and reductions are put into nests (`schedule.py`), in an
order that memory dependences allow (`hazards.py`); dots and scans work on buffers. Tiles that loops and branches carry
are stored in buffers (`carried.py`). The original ops are erased at the end: no tile is left.
Stage: TTIR to TTCIR. Cost: one walk, and one small walk per load, store and reduction.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.errors import PassError
from tilework.ir import cf, scf, tt, ttc, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.create import create_op
from tilework.ir.effects import DECLARED, is_pure, reads, writes
from tilework.ir.functions import functions, has_body, is_private
from tilework.ir.llvm import AssumeOp
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import (
    attr_value,
    constant_value,
    erase_op,
    insert_before,
    replace_all_uses,
    replace_op,
    replace_values,
)
from tilework.ir.types import element_type, i32_array, is_pointer, is_tensor, shape_of, tensor_type
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass, op_pass
from tilework.transforms.ttc.loops import carried
from tilework.transforms.ttc.loops.hazards import MEMORY, Access, access_of
from tilework.transforms.ttc.loops.index_maps import (
    agree,
    axis_of,
    fixed,
    is_lazy,
    is_small_reduce,
    no_growth,
    spans,
    whole,
)
from tilework.transforms.ttc.loops.nests import Buffer, Item, Nest, Root, Scope, inline, slot
from tilework.transforms.ttc.loops.schedule import Schedule, at_index, is_table, table

ANYTHING = Access(None, None, True, True)
DEPENDENT_LAUNCH = "griddepcontrol."  # how its instructions begin
STEP_MESSAGE = "the step of a loop must be positive"
MAX_DEPTH = 40  # of the expression of an element: deeper ones are cut by computing a value early


class TileLoopsPass(Pass):
    """See the module docstring; with `may_alias` any two arguments may be the same or overlapping memory."""

    name = "convert-triton-to-tile-loops"
    may_alias: bool = False

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            if has_body(function) and isinstance(function, tt.FuncOp):
                Converter(function, self.may_alias or is_private(function)).run()


class Converter:
    """The conversion of one function."""

    def __init__(self, function: tt.FuncOp, may_alias: bool = False) -> None:
        self.function = function
        self.region = function.body
        self.schedule = Schedule(self.region.blocks[0], function.location, may_alias)
        self.dead: list[Operation] = []
        self.control: list[Operation] = []
        self.loops: list[tuple[Operation, dict[SSAValue, Buffer]]] = []
        self.arguments: dict[SSAValue, Buffer] = {}
        self.returned: list[Buffer] = []
        self.depth: dict[SSAValue, int] = {}

    def run(self) -> None:
        for op in tuple(self.region.walk()):
            if type(op) is tt.DotScaledOp:
                from tilework.transforms.building.scaled_dot import expand_dot_scaled  # lazily: few kernels have one

                expand_dot_scaled(op)
        carried.split_edges(self.region)
        outer = self.schedule.scope
        self.enter_function(outer)
        for block in tuple(self.region.blocks):
            self.schedule.scope = Scope(outer, outer)
            self.convert_block(block)
            terminator = end_of(block)
            TERMINATORS.get(type(terminator), carried.end_block)(self, terminator)
        self.clean_up()
        if self.schedule.bases.apart:
            self.function.attributes[ttc.APART] = i32_array(*self.apart_arguments())

    def apart_arguments(self) -> list[int]:
        """The positions of the arguments that must not overlap, two by two."""
        pairs = sorted(sorted(value.index for value in pair) for pair in self.schedule.bases.apart)  # pyright: ignore
        return [position for pair in pairs for position in pair]

    def enter_function(self, scope: Scope) -> None:
        """Buffers for the tiles that are passed in and out, and those that branches pass on."""
        entry = self.region.blocks[0]
        parameters = list(entry.args)
        for value in carried.convert_signature(self.function):
            self.returned.append(self.passed_buffer(value, scope))
        for parameter in parameters:
            if is_tensor(parameter.type):
                new = entry.insert_arg(carried.buffer_for(parameter.type), parameter.index, parameter.location)
                new.name_hint = parameter.name_hint
                scope.stored[parameter] = self.passed_buffer(new, scope)
        for block in tuple(self.region.blocks)[1:]:
            for argument in carried.tiles(block.args):
                buffer = scope.stored[argument] = carried.exact_buffer(self.schedule, argument)
                buffer.is_reusable = False
                self.arguments[argument] = buffer

    def passed_buffer(self, value: SSAValue, scope: Scope) -> Buffer:
        type = ttc.buffer_of(value)
        return Buffer(type.shape, type.element, scope, value, is_reusable=False)

    def clean_up(self) -> None:
        """Erase the tiles, last ones first, and take them out of loops and branches."""
        for op in self.control:
            op.operands = carried.scalars(op.operands)
        for op in reversed(self.dead):
            erase_op(op)
        for op in self.control:
            carried.finish_control(op)
        for block in self.region.blocks:
            for argument in reversed(carried.tiles(block.args)):
                block.erase_arg(argument)  # pyright: ignore[reportArgumentType]

    def keep(self, op: Operation, buffers: Sequence[Buffer], writer: Item | None = None) -> None:
        """Record that the result tiles of `op` are in `buffers`, which `writer` writes."""
        for result, buffer in zip(carried.tiles(op.results), buffers, strict=True):
            buffer.writer = writer
            self.outer_scope.stored[result] = buffer

    def whole(self, value: SSAValue) -> SSAValue:
        """A scalar, or the buffer of a tile in its own shape."""
        return slot(self.schedule.materialise(value, exact=True)) if is_tensor(value.type) else value

    @property
    def outer_scope(self) -> Scope:
        """The scope in which values are known as long as they may be used."""
        return self.schedule.scope.region or self.schedule.scope

    @contextmanager
    def inside(self, arguments: Sequence[tuple[SSAValue, Buffer]]) -> Iterator[None]:
        """Convert the block of a region, whose tile arguments are in buffers."""
        outer = self.schedule.scope
        self.schedule.scope = Scope(outer, stored=dict(arguments))
        yield
        self.schedule.scope = outer

    def convert_block(self, block: Block) -> None:
        """Convert all ops but the terminator."""
        last = block.last_op
        for op in tuple(block.ops):
            if op is not last:
                self.convert(op)

    def convert(self, op: Operation) -> None:
        rule = RULES.get(type(op))
        if rule is not None:
            rule(self, op)
        elif any(is_tensor(value.type) for value in (*op._operands, *op.results)):
            self.convert_tile(op)
        elif op.regions or not is_pure(op):
            self.schedule.flush(op)
        else:
            self.schedule.delay(op)

    def convert_tile(self, op: Operation) -> None:
        """An op that computes a tile: nothing to do until it is used."""
        if type(op) in DECLARED and not is_true(op.properties.get("pure")):
            self.add_elements(op, ANYTHING)
        elif is_table(op):
            value = self.schedule.constants.at_start(table(op))
            self.outer_scope.stored[op.results[0]] = self.passed_buffer(value, self.outer_scope)
        elif not is_lazy(op):
            raise PassError(f"{op.name} of tiles cannot be compiled for the CPU", op.location)
        else:
            if type(op) is tt.ReshapeOp:
                self.keep_source(op)
            self.limit_depth(op)
        self.dead.append(op)

    def keep_source(self, op: Operation) -> None:
        """Store a value that is computed and read with sizes that no loop nest has both of, to read it as one row."""
        source = op.operands[0]
        shapes = shape_of(source.type), shape_of(op.results[0].type)
        if not agree(*shapes) and not is_pointer(element_type(source.type)):
            self.schedule.materialise(source)

    def limit_depth(self, op: Operation) -> None:
        """Elements are computed by recursion, so long chains of ops are cut."""
        depth = 1 + max((self.depth.get(operand, 0) for operand in op._operands), default=0)
        if depth > MAX_DEPTH and type(op) is not tt.SplitOp:
            value = op.results[0]
            self.schedule.add(Root(at_index((value,)), lambda nest, values: None, op.location), shape_of(value.type))
            depth = 0
        for result in op.results:
            self.depth[result] = depth

    def add_elements(self, op: Operation, access: Access | None) -> None:
        """Run `op` on each element at its index; a plain load at its first use."""

        def emit(nest: Nest, values: Sequence[SSAValue]) -> None:
            types = [element_type(result.type) for result in op.results]
            new = nest.insert(create_op(type(op), values, types, op.location, op.properties))
            for result, scalar in zip(op.results, new.results, strict=True):
                nest.define(result, scalar)

        shape = next(shape_of(value.type) for value in (*op.operands, *op.results) if is_tensor(value.type))
        root = Root(at_index(op.operands), emit, op.location, op.results, access)
        if type(op) is tt.LoadOp and access is not None and not access.orders:
            self.schedule.defer(root, shape)
        else:
            self.schedule.add(root, shape)


def convert_memory(converter: Converter, op: Operation) -> None:
    """Loads, stores and atomics, of tiles or of single elements."""
    schedule = converter.schedule
    access = access_of(op, schedule.bases)
    if is_tensor(op.operands[0].type):
        converter.add_elements(op, access)
        converter.dead.append(op)
        return
    schedule.force_before(access)
    waits = any(operand in schedule.pending for operand in op.operands)
    if waits or schedule.waiting.has_conflict(access):
        schedule.flush(op)


def convert_reduce(converter: Converter, op: Operation) -> None:
    """A fold in the nest that computes the sources."""
    if is_small_reduce(op):
        converter.convert_tile(op)
        return
    schedule = converter.schedule
    shape, fold = shape_of(op.operands[0].type), spans(shape_of(op.operands[0].type))[axis_of(op)]
    buffers = [Buffer(shape_of(r.type), element_type(r.type), schedule.scope, exact=False) for r in op.results]
    is_scalar = not is_tensor(op.results[0].type)
    if is_scalar:
        for buffer in buffers:
            schedule.constants.allocate(buffer, op.location)

    def emit(nest: Nest, values: Sequence[SSAValue]) -> None:
        loop = nest.fold_loop(fold)
        kept = [index for index, (low, high, _) in enumerate(nest.loops) if index != loop and high > low]
        for buffer in buffers:
            if not is_scalar:
                buffer.shape = tuple(nest.loops[index][1] // nest.loops[index][0] for index in kept)
                schedule.constants.allocate(buffer, op.location)
        indices = [nest.loops[index][2] for index in kept]
        if loop is None:
            for value, buffer in zip(values, buffers, strict=True):
                nest.insert(ttc.WriteOp.make(value, slot(buffer), indices, op.location))
            return
        accumulators = [slot(buffer) for buffer in buffers]
        region = op.detach_region(op.regions[0])
        end_with_yield(region)
        nest.insert(ttc.ReduceOp.make(values, accumulators, indices, region, op.location))

    nest = schedule.add(Root(at_index(op.operands), emit, op.location, fold=fold), shape)
    if not is_scalar:
        converter.keep(op, buffers, nest)
    else:
        found = [ttc.ReadOp.make(slot(buffer), (), op.location) for buffer in buffers]
        schedule.insert_behind(nest, *found)
        replace_values(op.results, [read.results[0] for read in found])
    converter.dead.append(op)


def end_with_yield(region: Region) -> None:
    """The region of a reduction or scan, as that of a `ttc` op."""
    convert_asserts(region)
    for end in map(end_of, region.blocks):
        if type(end) in (tt.ReduceReturnOp, tt.ScanReturnOp):
            replace_op(end, ttc.YieldOp.make(tuple(end.operands), end.location))


def convert_asserts(region: Region) -> None:
    for inner in tuple(region.walk()):
        if type(inner) is tt.AssertOp:
            replace_op(inner, create_op(ttc.AssertOp, tuple(inner.operands), (), inner.location, inner.properties))


def convert_scan(converter: Converter, op: Operation) -> None:
    found, targets = sources_and_targets(converter, op)
    region = op.detach_region(op.regions[0])
    end_with_yield(region)
    scan = ttc.ScanOp.make(
        [slot(buffer) for buffer in found],
        [slot(buffer) for buffer in targets],
        axis_of(op),
        is_true(op.properties["reverse"]),
        region,
        op.location,
    )
    store_results(converter, op, targets, scan)


def convert_sort_runs(converter: Converter, op: Operation) -> None:
    (source,), (target,) = found = sources_and_targets(converter, op)
    buffers = [slot(buffer) for buffer in (source, target)]
    store_results(converter, op, found[1], create_op(ttc.SortRunsOp, buffers, (), op.location, op.properties))


def sources_and_targets(converter: Converter, op: Operation) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers of the operands, and of results of the same types: in place where nothing else needs the source."""
    schedule = converter.schedule
    found = [schedule.materialise(operand, exact=True) for operand in op.operands]
    targets: list[Buffer] = []
    for operand, source in zip(op.operands, found, strict=True):
        own = source.is_reusable and source.scope is schedule.scope and operand.has_one_use()
        targets.append(source if own else carried.exact_buffer(schedule, operand))
    return found, targets


def convert_histogram(converter: Converter, op: Operation) -> None:
    schedule = converter.schedule
    found = [converter.whole(operand) for operand in op.operands]
    target = carried.exact_buffer(schedule, op.results[0])
    mask = found[1] if len(found) > 1 else None
    new = ttc.HistogramOp.make(found[0], mask, slot(target), op.location)
    store_results(converter, op, [target], new)


def store_results(converter: Converter, op: Operation, targets: Sequence[Buffer], new: Operation) -> None:
    """`new` puts the results of `op` into `targets`."""
    converter.keep(op, targets, converter.schedule.append(new))
    converter.dead.append(op)


def convert_resize(converter: Converter, op: Operation) -> None:
    """A larger tile is a buffer of which a part is written; the other elements are never read."""
    if no_growth(op):
        converter.convert_tile(op)
        return
    schedule, source = converter.schedule, op.operands[0]
    shape = tuple(map(min, shape_of(source.type), shape_of(op.results[0].type)))
    if shape != shape_of(source.type):
        smaller = tt.ResizeOp.make(source, tensor_type(shape, element_type(source.type)), op.location)
        insert_before(op, smaller)
        converter.convert_tile(smaller)
        source = smaller.results[0]
    target = carried.exact_buffer(schedule, op.results[0])

    def emit(nest: Nest, values: Sequence[SSAValue]) -> None:
        indices = nest.indices(shape, whole(nest.count))
        nest.insert(ttc.WriteOp.make(values[0], slot(target), indices, op.location))

    nest = schedule.add(Root(at_index((source,)), emit, op.location), shape)
    nest.cuts.update(end for span in spans(shape) for end in span)
    converter.keep(op, [target], nest)
    converter.dead.append(op)


def convert_unsplat(converter: Converter, op: Operation) -> None:
    schedule = converter.schedule
    buffer = schedule.materialise(op.operands[0], exact=True)
    zero = schedule.constants.integer(0)
    read = ttc.ReadOp.make(slot(buffer), [zero] * len(buffer.shape), op.location)
    schedule.append(read)
    replace_all_uses(op.results[0], read.results[0])
    converter.dead.append(op)


def convert_debug(converter: Converter, op: Operation) -> None:
    """Prints and assertions see whole tiles, in program order."""
    schedule = converter.schedule
    operands = [converter.whole(value) for value in op.operands]
    schedule.flush(op)
    kind = ttc.PrintOp if type(op) is tt.PrintOp else ttc.AssertOp
    insert_before(op, create_op(kind, operands, (), op.location, op.properties))
    converter.dead.append(op)


def convert_map(converter: Converter, op: Operation) -> None:
    """The region runs on each element, or on `pack` neighbours at once."""
    schedule = converter.schedule
    pack = attr_value(op.properties["pack"])
    assert isinstance(pack, int)
    region = op.regions[0]
    convert_asserts(region)
    access = Access(None, None, False) if any(reads(inner) for inner in region.walk()) else None
    if any(writes(inner) for inner in region.walk()):
        access = ANYTHING
    count = prod(shape_of(op.operands[0].type)) // pack
    lanes = [(*([fixed(lane, pack)] if pack > 1 else []), *whole(count)) for lane in range(pack)]
    needs = [(operand, lane) for operand in op.operands for lane in lanes]
    buffers = [schedule.new_buffer(result.type, op.location) for result in op.results] if pack > 1 else []

    def emit(nest: Nest, values: Sequence[SSAValue]) -> None:
        found = map_results(nest, op, values)
        for index, result in enumerate(op.results):
            if pack == 1:
                nest.define(result, found[index])
                continue
            for lane, digits in enumerate(lanes):
                indices = nest.indices(buffers[index].shape, digits)
                value = found[index * pack + lane]
                nest.insert(ttc.WriteOp.make(value, slot(buffers[index]), indices, op.location))

    shape = shape_of(op.operands[0].type) if pack == 1 else (count,)
    nest = schedule.add(Root(needs, emit, op.location, op.results if pack == 1 else (), access), shape)
    if buffers:
        converter.keep(op, buffers, nest)
    converter.dead.append(op)


def map_results(nest: Nest, op: Operation, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The region of a map on scalars; one of several blocks becomes an op of its own."""
    region = op.regions[0]
    if len(region.blocks) == 1:
        return inline(nest, region.block, values)
    moved = op.detach_region(region)
    entry = moved.blocks[0]
    for argument, value in zip(tuple(entry.args), values, strict=True):
        replace_all_uses(argument, value)
        entry.erase_arg(argument)
    types = [element_type(result.type) for result in op.results]
    for inner in tuple(moved.walk()):
        if type(inner) is tt.MapElementwiseReturnOp:
            replace_op(inner, create_op(scf.YieldOp, tuple(inner.operands), (), inner.location))
    new = scf.ExecuteRegionOp.create(result_types=types, regions=(moved,), location=op.location)
    return nest.insert(new).results


def convert_asm(converter: Converter, op: Operation) -> None:
    """Assembly is for GPUs; kernels that wait for those before them (programmatic dependent launch) have nothing to
    wait for here."""
    text = op.properties["asm_string"]
    assert isinstance(text, StringAttr)
    if text.data.startswith(DEPENDENT_LAUNCH) and not any(result.uses for result in op.results):
        return erase_op(op)
    text = "inline assembly (tl.inline_asm_elementwise) is GPU code and cannot run on the CPU"
    raise PassError(
        f"{text}\nhelp: compute it with functions of `tl` where the target is a CPU, or run on a GPU or its emulator",
        op.location,
    )


RULES: dict[type[Operation], Callable[[Converter, Operation], object]] = {
    **dict.fromkeys(MEMORY, convert_memory),
    AssumeOp: lambda converter, op: converter.schedule.delay(op),
    ttg.BarrierOp: lambda converter, op: converter.schedule.flush(
        op
    ),  # one thread per program: only the memory order matters
    scf.ForOp: carried.convert_for,
    scf.IfOp: carried.convert_if,
    scf.WhileOp: carried.convert_while,
    tt.AssertOp: convert_debug,
    tt.CallOp: carried.convert_call,
    tt.DotOp: carried.convert_dot,
    tt.ElementwiseInlineAsmOp: convert_asm,
    tt.HistogramOp: convert_histogram,
    tt.MapElementwiseOp: convert_map,
    tt.PrintOp: convert_debug,
    tt.ReduceOp: convert_reduce,
    tt.ResizeOp: convert_resize,
    tt.ScanOp: convert_scan,
    tt.SortRunsOp: convert_sort_runs,
    tt.UnsplatOp: convert_unsplat,
}
TERMINATORS: dict[type[Operation], Callable[[Converter, Operation], None]] = {
    cf.BranchOp: carried.convert_branch,
    tt.ReturnOp: carried.convert_return,
}


# A loop whose step is not positive would never end: stop the kernel instead, before the conversion to nests.
#
#     scf.for %i = %lb to %ub step %s {...}   ==>   %ok = arith.cmpi sgt, %s, %zero : i32
#                                                   tt.assert %ok, "the step of a loop must be positive" : i1
#                                                   scf.for %i = %lb to %ub step %s {...}
#
# Loops with a constant step are left alone: the frontend has refused those that are not positive, or reversed the loop.


@op_pass("ttc-check-steps", scf.ForOp)
def check_step(loop: Operation) -> None:
    """Put the assertion in front of `loop`, if its step is not known."""
    step = loop.operands[2]
    if constant_value(step) is None:
        code = Emitter(loop.location)
        code.ops.append(tt.AssertOp.make(code.compare("sgt", step, 0), STEP_MESSAGE, loop.location))
        code.insert_before(loop)
