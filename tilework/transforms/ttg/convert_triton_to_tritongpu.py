"""Give every tensor a layout over threads: TTIR becomes TTGIR.

    %r = tt.make_range {..} : tensor<64xi32>             %r = tt.make_range {..} : tensor<64xi32, #blocked>
    %e = tt.expand_dims %r {axis = 1}              ==>   %s = ttg.convert_layout %r : .. -> tensor<64xi32, #slice>
    %m = arith.muli %e, %n : tensor<64x1xi32>            %e = tt.expand_dims %s : .. -> tensor<64x1xi32, #blocked1>
                                                         %d = ttg.convert_layout %e : .. -> tensor<64x1xi32, #blocked2>
                                                         %m = arith.muli %d, %n : tensor<64x1xi32, #blocked2>

Each type has a default layout (`default_blocked`: one element per thread, rows first), and each op takes its operands
in the default layouts of their types. Some ops have results in another layout (`RESULTS`) or need operands in another
one (`OPERANDS`): then a `ttg.convert_layout` is inserted, which later passes move and remove. A result that differs
from its default is converted once, directly after its op; an operand before the op.

Module attributes hold the `target`, warps, lanes and blocks (`ir/module_facts.py`). Tensors that have a layout already
keep it.
Stage: TTIR to TTGIR. Cost: two walks.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, tt, ttg
from tilework.ir.create import set_type
from tilework.ir.encodings import encoding_of, spread_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.locations import unknown
from tilework.ir.module_facts import machine_attributes, num_ctas, num_warps, threads_per_warp
from tilework.ir.nesting import location_of
from tilework.ir.rewrite import insert_after, put
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.tt.shape_ops import joined_type, reduced_type, transposed_type
from tilework.ir.types import PointerType, Tensor, array_values, axis_of, is_tensor, pointer_type, shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed, DotOperand, Slice
from tilework.layouts.infer import can_split, infer_split
from tilework.layouts.to_linear import total_elems_per_thread
from tilework.light_dataclass import light_dataclass
from tilework.target import Target, UnknownTarget
from tilework.transforms.passes import Pass, module_pass


class ConvertTritonToTritonGPUPass(Pass):
    name = "convert-triton-to-tritongpu"

    target: str = ""
    num_warps: int = 4
    threads_per_warp: int = 0  # 0: that of the target
    num_ctas: int = 1
    enable_source_remat: bool = False  # accepted, without effect

    def run(self, module: ModuleOp) -> None:
        try:
            target = Target.parse(self.target)
        except UnknownTarget as error:
            raise PassError(f"{self.name}: {error}") from None
        threads = self.threads_per_warp or target.warp_size
        module.attributes.update(machine_attributes(self.num_warps, self.num_ctas, target, threads))
        machine = Machine(self.num_warps, threads, self.num_ctas)
        lay_out(module, lambda inner: machine)


@light_dataclass
class Machine:
    """The warps, threads and CTAs over which tensors are distributed."""

    num_warps: int
    threads_per_warp: int
    num_ctas: int

    def blocked(self, shape: tuple[int, ...], held: tuple[int, ...] | None = None) -> Blocked:
        """Return the default encoding of `shape`, rows first, with `held` elements per thread (one by default)."""
        return default_blocked(shape, held, None, self.num_warps, self.threads_per_warp, self.num_ctas)


@cache
def converted_type(machine: Machine, type: Attribute) -> Attribute:
    """Return `type` with the default encoding, if it is a tensor, or a pointer to one, without encoding."""
    if isinstance(type, TensorType):
        if not isinstance(type.encoding, NoneAttr) or not shape_of(type):
            return type
        return with_encoding(type, machine.blocked(shape_of(type)))
    if isinstance(type, PointerType) and isinstance(type.pointee, TensorType):
        return pointer_type(converted_type(machine, type.pointee), type.address_space.value.data)
    return type


def lay_out(root: Operation, machine_of: Callable[[Operation], Machine]) -> None:
    """Give the tensors under `root` without encoding one; `machine_of` returns the machine that runs an op."""
    conversion = LayOut(machine_of)
    ops = ops_in_order(*root.regions)
    for op in ops:
        conversion.convert_results(op)
    for op in ops:
        conversion.convert_operands(op)


class LayOut:
    """Sets the types of results, then converts the operands of every op."""

    def __init__(self, machine_of: Callable[[Operation], Machine]) -> None:
        self.machine_of = machine_of
        self.machine = Machine(1, 1, 1)  # of the current op
        self.wanted: dict[SSAValue, Attribute] = {}  # the default types of values that have another one
        self.defaults: dict[SSAValue, SSAValue] = {}  # such values, converted
        self.special: set[Operation] = set()  # ops whose results had no encoding

    def converted(self, type: Attribute) -> Attribute:
        return converted_type(self.machine, type)

    def convert_results(self, op: Operation) -> None:
        """Set the types of the results of `op`, and of the arguments of its blocks."""
        for region in op.regions:
            for block in region.blocks:
                self.machine = self.machine_of(block.first_op or op)
                for arg in block.args:
                    self.set(arg, self.converted(arg.type))
        self.machine = self.machine_of(op)
        defaults = [self.converted(result.type) for result in op.results]
        changes = any(default is not result.type for default, result in zip(defaults, op.results, strict=True))
        if changes:
            self.special.add(op)
        rule = RESULTS.get(type(op)) if changes else None
        types = defaults if rule is None else rule(self, op, defaults)
        for result, own, default in zip(op.results, types, defaults, strict=True):
            if own is not default:
                self.wanted[result] = default
            self.set(result, own)
        if (update := PROPERTIES.get(type(op))) is not None:
            update(self, op)

    def set(self, value: SSAValue, type: Attribute) -> None:
        if type is not value.type:
            set_type(value, type)

    def default(self, value: SSAValue) -> Attribute:
        """Return the type in which users take `value`."""
        return self.wanted.get(value) or self.converted(value.type)

    def convert_operands(self, op: Operation) -> None:
        """Take operands in their default layouts, or in those that the rule for `op` requires."""
        for index, value in enumerate(op.operands):
            if value in self.wanted:
                op.operands[index] = self.in_default(value, op)
        rule = OPERANDS.get(type(op))
        if rule is None:
            return
        self.machine = self.machine_of(op)
        for index, type_ in rule(self, op):
            value = op.operands[index]
            if value.type is not type_ or type(op) is tt.DotOp:
                location = op.location if type(op) in NAMED_BY_OP else location_of(value)
                op.operands[index] = put(op, ttg.ConvertLayoutOp.make(value, type_, location))

    def in_default(self, value: SSAValue, user: Operation) -> SSAValue:
        """Return `value` in its default layout, converted after its op on the first request."""
        if (found := self.defaults.get(value)) is None:
            convert = ttg.ConvertLayoutOp.make(value, self.wanted[value], user.location)
            assert isinstance(value, OpResult), "arguments have default layouts"
            insert_after(value.op, convert)
            found = self.defaults[value] = convert.results[0]
        return found


# The layouts of results


def tensor_operand(conversion: LayOut, op: Operation, index: int = 0) -> Tensor:
    """Return the type in which `op` takes an operand, before its own rule."""
    type = conversion.default(op.operands[index])
    assert isinstance(type, TensorType), type
    return type


def expand_parent(conversion: LayOut, op: Operation) -> Distributed:
    """Return the layout of the operand with a new dimension of one thread and one warp, rows first."""
    source, axis = tensor_operand(conversion, op), axis_of(op)
    encoding = encoding_of(source)
    if not isinstance(encoding, Blocked):  # the rule below needs blocked fields
        encoding = conversion.machine.blocked(shape_of(source))

    def with_one(values: Sequence[int]) -> tuple[int, ...]:
        return (*values[:axis], 1, *values[axis:])

    return Blocked(
        with_one(encoding.size_per_thread),
        with_one(encoding.threads_per_warp),
        with_one(encoding.warps_per_cta),
        tuple(range(encoding.rank + 1)),
        tuple((*basis[:axis], 0, *basis[axis:]) for basis in encoding.cga),
    )


def expand_dims_operands(conversion: LayOut, op: Operation) -> list[tuple[int, Attribute]]:
    """Return the operand as a slice of the result, without the new dimension."""
    if op not in conversion.special:
        return []
    parent = spread_of(op.results[0].type)
    return [(0, with_encoding(op.operands[0].type, Slice(axis_of(op), parent)))]


def dot_results(conversion: LayOut, op: Operation, defaults: Sequence[Attribute]) -> Sequence[Attribute]:
    """Return layouts in which each thread computes a square of up to 4 by 4 elements."""
    machine, shape = conversion.machine, shape_of(defaults[0])
    each = prod(shape) // (machine.num_warps * machine.threads_per_warp)
    side = 4 if each >= 16 else 2 if each >= 4 else 1
    held = (*(1 for _ in shape[:-2]), *(min(side, size) for size in shape[-2:]))
    return [with_encoding(defaults[0], machine.blocked(shape, held))]


def dot_operands(conversion: LayOut, op: Operation) -> list[tuple[int, Attribute]]:
    """Convert all three operands, the accumulator even to the same layout, as the reference compiler does."""
    if op not in conversion.special:
        return []
    parent = spread_of(op.results[0].type)
    a, b, c = op.operands
    return [
        (0, with_encoding(a.type, DotOperand(0, parent))),
        (1, with_encoding(b.type, DotOperand(1, parent))),
        (2, with_encoding(c.type, parent)),
    ]


def cat_results(conversion: LayOut, op: Operation, defaults: Sequence[Attribute]) -> Sequence[Attribute]:
    """Return a layout in which each thread keeps its elements of both operands."""
    result = conversion.machine.blocked(shape_of(defaults[0]))
    parts = [tensor_operand(conversion, op, index) for index in (0, 1)]
    have = sum(total_elems_per_thread(spread_of(part), shape_of(part)) for part in parts)
    factor = (1 << (have - 1).bit_length()) // total_elems_per_thread(result, shape_of(defaults[0]))
    if factor <= 1:
        return defaults
    held = list(result.size_per_thread)
    held[result.order[0]] *= factor
    wider = Blocked(tuple(held), result.threads_per_warp, result.warps_per_cta, result.order, result.cga)
    return [with_encoding(defaults[0], wider)]


def split_source(conversion: LayOut, op: Operation) -> Distributed:
    """Return a layout in which each thread holds both halves."""
    source = tensor_operand(conversion, op)
    if can_split(spread_of(source), shape_of(source)):
        return spread_of(source)
    half = conversion.machine.blocked(shape_of(source)[:-1])
    return Blocked(
        (*half.size_per_thread, 2),
        (*half.threads_per_warp, 1),
        (*half.warps_per_cta, 1),
        (half.rank, *half.order),
        tuple((*basis, 0) for basis in half.cga),
    )


def split_results(conversion: LayOut, op: Operation, defaults: Sequence[Attribute]) -> Sequence[Attribute]:
    shape = shape_of(op.operands[0].type)
    half = infer_split(split_source(conversion, op), shape)
    return [with_encoding(default, half) for default in defaults]


def split_operands(conversion: LayOut, op: Operation) -> list[tuple[int, Attribute]]:
    if op not in conversion.special:
        return []
    return [(0, with_encoding(op.operands[0].type, split_source(conversion, op)))]


def gather_offsets(conversion: LayOut, op: Operation) -> list[tuple[int, Attribute]]:
    """Return the layout of the rows that TMA gathers or scatters: four per warp at a time."""
    machine = conversion.machine
    rows = op.operands[1]
    if not is_tensor(rows.type):
        return []
    cga = ((0, 0),) * (machine.num_ctas.bit_length() - 1)  # all blocks of a cluster have the same rows
    parent = Blocked((1, 4), (machine.threads_per_warp, 1), (1, machine.num_warps), (1, 0), cga)
    return [(1, with_encoding(rows.type, Slice(0, parent)))]


RESULTS: dict[type[Operation], Callable[[LayOut, Operation, Sequence[Attribute]], Sequence[Attribute]]] = {
    tt.BroadcastOp: lambda low, op, given: [with_encoding(given[0], encoding_of(tensor_operand(low, op)))],
    tt.ExpandDimsOp: lambda low, op, given: [with_encoding(given[0], expand_parent(low, op))],
    tt.DotOp: dot_results,
    tt.CatOp: cat_results,
    tt.JoinOp: lambda low, op, given: [joined_type(tensor_operand(low, op))],
    tt.SplitOp: split_results,
    tt.TransOp: lambda low, op, given: [transposed_type(tensor_operand(low, op), array_values(op.properties["order"]))],
    tt.ReduceOp: lambda low, op, given: [
        reduced_type(tensor_operand(low, op, index), axis_of(op)) for index in range(len(op.operands))
    ],
}
OPERANDS: dict[type[Operation], Callable[[LayOut, Operation], list[tuple[int, Attribute]]]] = {
    tt.ExpandDimsOp: expand_dims_operands,
    tt.DotOp: dot_operands,
    tt.SplitOp: split_operands,
    tt.DescriptorGatherOp: gather_offsets,
    tt.DescriptorScatterOp: gather_offsets,
}
NAMED_BY_OP = frozenset({tt.ExpandDimsOp, tt.SplitOp})  # conversions have their location, else the operand's


# Types in properties


def retype_constant(conversion: LayOut, op: Operation) -> None:
    """Retype a constant and drop its location, as Triton's text does."""
    op.location = unknown
    value = op.properties["value"]
    if isinstance(value, DenseIntOrFPElementsAttr) and value.type is not op.results[0].type:
        op.properties["value"] = retyped(value, op.results[0].type)


@cache
def retyped(value: DenseIntOrFPElementsAttr, type: Attribute) -> DenseIntOrFPElementsAttr:
    """Return the same elements in a tensor of `type`."""
    return DenseIntOrFPElementsAttr(type, value.data)  # pyright: ignore[reportArgumentType]


def retype_function(conversion: LayOut, op: Operation) -> None:
    type = function_type_of(op)
    inputs, outputs = (tuple(map(conversion.converted, side)) for side in (type.inputs, type.outputs))
    op.properties["function_type"] = function_type(inputs, outputs)


PROPERTIES: dict[type[Operation], Callable[[LayOut, Operation], None]] = {
    arith.ConstantOp: retype_constant,
    tt.FuncOp: retype_function,
}


# Give a layout to the tensors of TTGIR that have none yet.
#
#     %0 = ttg.local_load %m : !ttg.memdesc<..> -> tensor<64xf32>       ==>       .. -> tensor<64xf32, #blocked>
#
# The same rules as `convert-triton-to-tritongpu`, for a module that has these attributes already; in the partitions of
# a `ttg.warp_specialize` tensors are distributed over the warps of the partition.
# Stage: TTGIR. Cost: two walks.


@module_pass("relayout-tritongpu")
def relayout_tritongpu(module: ModuleOp) -> None:
    lanes, ctas = threads_per_warp(module), num_ctas(module)

    def machine_of(inner: Operation) -> Machine:
        return Machine(num_warps(inner), lanes, ctas)

    lay_out(module, machine_of)
