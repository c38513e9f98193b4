"""Replace aggregate values, such as descriptors and block pointers, by their components.

    scf.for ... iter_args(%b = %first) -> (T)             scf.for ... iter_args(%x = ..., %y = ...) -> (A, B)
      scf.yield %next : T                           ==>     scf.yield %u, %v : A, B

The components replace the value in signatures, calls, loops, branches and selects; `canonicalize` later removes
components that a loop never changes. Each pass has rules for the ops that make and use such a value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilework.analysis.value_flows import CONTROL_FLOW
from tilework.errors import PassError
from tilework.ir import arith, tt, ub
from tilework.ir.arith import SelectOp
from tilework.ir.fields import SEGMENTS
from tilework.ir.rewrite import erase_op, insert_before, recreate
from tilework.ir.types import Shape, array_values, i32_array, i64
from tilework.transforms.building.emitter import Emitter

FLOW = CONTROL_FLOW | {tt.CallOp, tt.ReturnOp}
Values = tuple[SSAValue, ...]
Rule = Callable[["Flattening", Operation], None]


class Flattening:
    """A rewrite in program order; `known` maps each replaced value to the values that replace it.

    Values of types for which `replaces` holds are replaced by values of the types that `components` gives; messages
    call them `what`. The first replacement of a function argument gets the argument's attributes, and `mark`.
    """

    def __init__(
        self,
        what: str,
        replaces: Callable[[Attribute], bool],
        components: Callable[[Attribute], tuple[Attribute, ...]],
        rules: Mapping[type[Operation], Rule],
        mark: Mapping[str, Attribute] | None = None,
    ) -> None:
        self.what, self.replaces, self.held, self.mark = what, replaces, components, mark or {}
        self.rules = {
            tt.FuncOp: flatten_function,
            ub.PoisonOp: flatten_poison,
            SelectOp: flatten_select,
            **rules,
        }
        self.known: dict[SSAValue, Values] = {}
        self.dead: list[Operation] = []

    def run(self, module: ModuleOp) -> None:
        self.regions(module)
        for dead in reversed(self.dead):
            erase_op(dead)

    def components(self, type: Attribute) -> tuple[Attribute, ...]:
        """The types that replace `type`."""
        return self.held(type) if self.replaces(type) else (type,)

    def regions(self, op: Operation) -> None:
        for region in op.regions:
            blocks = tuple(region.blocks)
            old_arguments = [argument for block in blocks for argument in self.expand_arguments(block)]
            for block in blocks:
                for inner in tuple(block.ops):
                    self.visit(inner)
            for argument in old_arguments:
                argument.block.erase_arg(argument, safe_erase=False)

    def visit(self, op: Operation) -> None:
        if (rule := self.rules.get(type(op))) is not None:
            rule(self, op)
        elif any(self.replaces(value.type) for value in (*op.operands, *op.results)):
            if type(op) not in FLOW:
                raise PassError(f"'{op.name}' cannot use {self.what} on this target", op.location)
            self.expand(op)
        elif op.regions:
            self.regions(op)

    def expand_arguments(self, block: Block) -> Iterator[BlockArgument]:
        """Put the components in front of each replaced argument. Yield the old arguments, which are to be erased."""
        for argument in block.args:
            if self.replaces(argument.type):
                first = argument.index
                self.known[argument] = tuple(
                    block.insert_arg(type, first + position, argument.location)
                    for position, type in enumerate(self.held(argument.type))
                )
                yield argument

    def values(self, value: SSAValue, user: Operation) -> Values:
        """The values that replace `value`."""
        if not self.replaces(value.type):
            return (value,)
        if (values := self.known.get(value)) is None:
            raise PassError(f"'{user.name}' uses {self.what} of unknown origin", user.location)
        return values

    def replace(self, op: Operation, code: Emitter, values: Values) -> None:
        """Let `values`, which `code` computes in front of `op`, replace its result."""
        code.insert_before(op)
        self.known[op.results[0]] = values
        self.dead.append(op)

    def expand(self, op: Operation) -> None:
        """Flatten operands, results and regions of a loop, branch, call or terminator."""
        operands = [new for value in op.operands for new in self.values(value, op)]
        if not op.results and not op.regions:
            if SEGMENTS in op.properties:
                op.properties[SEGMENTS] = self.segments(op)
            op.operands = operands
            return
        types = [type for result in op.results for type in self.components(result.type)]
        new = recreate(op, operands=operands, result_types=types, regions=op.regions)
        insert_before(op, new)
        results = iter(new.results)
        for result in op.results:
            values = tuple(next(results) for _ in self.components(result.type))
            if self.replaces(result.type):
                self.known[result] = values
            else:
                result.replace_all_uses_with(values[0])
        self.dead.append(op)
        self.regions(new)

    def segments(self, op: Operation) -> DenseArrayBase:
        """The sizes of the operand groups, after flattening."""
        sizes, position = [], 0
        for size in array_values(op.properties[SEGMENTS]):
            group = op.operands[position : position + size]
            sizes.append(sum(len(self.components(value.type)) for value in group))
            position += size
        return i32_array(*sizes)


def flatten_function(rewrite: Flattening, op: Operation) -> None:
    """New signature; the attributes of an argument go to the first of its components."""
    signature = op.properties["function_type"]
    assert isinstance(signature, FunctionType)
    inputs, outputs = (
        [new for type in types for new in rewrite.components(type)] for types in (signature.inputs, signature.outputs)
    )
    attributes = op.properties.get("arg_attrs")
    if isinstance(attributes, ArrayAttr) or rewrite.mark:
        given = attributes.data if isinstance(attributes, ArrayAttr) else [DictionaryAttr({})] * len(signature.inputs)
        expanded: list[Attribute] = []
        for type, own in zip(signature.inputs, given, strict=True):
            mark = rewrite.mark if rewrite.replaces(type) else {}
            own = DictionaryAttr({**own.data, **mark})  # pyright: ignore
            expanded.extend((own, *(DictionaryAttr({}),) * (len(rewrite.components(type)) - 1)))
        op.properties["arg_attrs"] = ArrayAttr(expanded)
    op.properties["function_type"] = FunctionType.from_lists(inputs, outputs)
    rewrite.regions(op)


def flatten_poison(rewrite: Flattening, op: Operation) -> None:
    """Replace a value that was never set by poison components."""
    (result,) = op.results
    if rewrite.replaces(result.type):
        code = Emitter(op.location)
        types = rewrite.components(result.type)
        rewrite.replace(op, code, tuple(code.append(recreate(op, result_types=(type,))) for type in types))


def flatten_select(rewrite: Flattening, op: Operation) -> None:
    """Select between the components that differ."""
    condition, a, b = op.operands
    if rewrite.replaces(a.type):
        code = Emitter(op.location)
        pairs = zip(rewrite.values(a, op), rewrite.values(b, op), strict=True)
        chosen = (x if x is y else code.select(condition, x, y) for x, y in pairs)
        rewrite.replace(op, code, tuple(chosen))


# The addresses and bounds of a block of an array, as tensors.
#
# A block of 8x4 elements at (o0, o1) of an array with strides (s0, s1) has the addresses
#
#     base + broadcast((o0 + 0..7)[:, None] * s0) + broadcast((o1 + 0..3)[None, :] * s1)
#
# and is inside the array where ``0 <= (o0 + 0..7) < shape0``, and the same on axis 1. Each stride is splat to the
# *expanded* shape (8x1), so that its divisibility survives: a broadcast keeps it, a multiplication at the full shape
# would not.


class BlockAccess:
    """An access to a block; the offsets along each axis are built once, for addresses and mask."""

    def __init__(self, code: Emitter, block: Shape, offsets: Sequence[SSAValue]) -> None:
        """`offsets` are i64 scalars, the first element of the block along each axis."""
        self.code = code
        self.block = block
        self.start = offsets
        self.expanded: dict[int, SSAValue] = {}

    def offset(self, axis: int) -> SSAValue:
        """The coordinates along `axis`, as a tensor that is 1 wide on the other axes."""
        if axis not in self.expanded:
            code, size = self.code, self.block[axis]
            start = code.splat(self.start[axis], (size,))
            steps = code.sign_extended(code.append(tt.MakeRangeOp.make(0, size, code.loc)))
            others = [other for other in range(len(self.block)) if other != axis]
            self.expanded[axis] = code.expanded(code.binary(arith.AddiOp, start, steps), others)
        return self.expanded[axis]

    def pointers(self, base: SSAValue, strides: Sequence[SSAValue]) -> SSAValue:
        """The address of every element."""
        code = self.code
        pointers = code.splat(base, self.block)
        for axis, stride in enumerate(strides):
            offset = self.offset(axis)
            scaled = code.binary(arith.MuliOp, offset, code.splat(stride, self.unit_shape(axis)))
            pointers = code.append(tt.AddPtrOp.make(pointers, code.broadcast(scaled, self.block), code.loc))
        return pointers

    def mask(self, shape: Sequence[SSAValue], axes: Sequence[int]) -> SSAValue | None:
        """The mask of elements inside the array on all of `axes`; None if no axis has to be checked."""
        code, mask = self.code, None
        for axis in axes:
            offset, unit = self.offset(axis), self.unit_shape(axis)
            above = code.compare("sge", offset, code.splat(code.constant(0, i64), unit))
            below = code.compare("slt", offset, code.splat(shape[axis], unit))
            inside = code.broadcast(code.binary(arith.AndIOp, above, below), self.block)
            mask = inside if mask is None else code.binary(arith.AndIOp, mask, inside)
        return mask

    def unit_shape(self, axis: int) -> Shape:
        """The shape of the block on `axis`, 1 elsewhere."""
        return tuple(size if other == axis else 1 for other, size in enumerate(self.block))
