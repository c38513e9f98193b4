"""The `ttc` dialect: tiles as loop nests over buffers, the last stage before machine code on the CPU.

A tile is not a value here. Its elements are computed by a *nest*, which runs a scalar body once per index, or stored in
a *buffer*, row-major, in the scratch memory of the program:

    %b = ttc.alloc : !ttc.buf<64x128xf32>
    ttc.nest [64, 128] {
    ^bb0(%i: i32, %j: i32):
      %x = tt.load %p : !tt.ptr<f32>
      ttc.write %x, %b[%i, %j] : !ttc.buf<64x128xf32>
      ttc.end
    }

The indices of a nest are visited in any order, or many at once: no iteration sees what another one wrote, except that
`ttc.reduce` folds over them. Whole-tile work that is no such nest (`ttc.dot`, `ttc.scan`, `ttc.gather`,
`ttc.histogram`) goes from buffer to buffer. Everything else in a function is scalar code. Arguments of a private
function may be buffers: they are passed by reference, results that are tiles too (as further arguments, written by the
callee).
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1_PROPERTY, I32, I32_ARRAY, I32_PROPERTY, POINTER, SCALAR, Kind, is_element, names
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.effects import register
from tilework.ir.fields import (
    ASSERT,
    COMBINE_RETURN,
    PRINT,
    SEGMENTS,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from tilework.ir.tt.function_ops import MESSAGE, PrintBase
from tilework.ir.tt.reduce_ops import (
    input_precision_prop,
    max_imprecise_prop,
    verify_axis,
    verify_combine,
    verify_dot_shapes,
    verify_runs,
)
from tilework.ir.types import Shape, array_values, cached_hash, i1, i32, is_integer

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

SANITIZED = "ttc.sanitized"  # on a module: its accesses are checked (`CheckOp`)
APART = "ttc.apart"  # on a kernel: positions of parameters, two by two, whose memory must not overlap


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A row-major tile in scratch memory: ``!ttc.buf<64x128xf32>``; ``!ttc.buf<f32>`` holds one scalar."""

    name = "ttc.buf"
    dimensions: ArrayAttr[IntAttr]
    element: Attribute
    __hash__ = cached_hash

    @property
    def shape(self) -> Shape:
        """The dimensions as plain integers."""
        if (memo := vars(self).get("_shape")) is None:
            memo = vars(self)["_shape"] = tuple(dimension.data for dimension in self.dimensions)
        return memo

    @classmethod
    def parse_parameters(cls, parser: "AttrParser") -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
        return (ArrayAttr([IntAttr(size) for size in shape]), element)

    def print_parameters(self, printer: "Printer") -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{size}x" for size in self.shape))
            printer.print_attribute(self.element)

    def verify(self) -> None:
        if any(size < 1 for size in self.shape):
            raise VerifyException(f"a buffer needs positive dimensions, but got {self.shape}")
        if not is_element(self.element):
            raise VerifyException(f"a buffer holds floats, integers or pointers, not {self.element}")


@cache
def buffer_type(shape: Shape, element: Attribute) -> BufferType:
    """``!ttc.buf<SHAPExELEMENT>``, interned."""
    return BufferType(ArrayAttr([IntAttr(size) for size in shape]), element)


def is_buffer(type: Attribute) -> bool:
    """``!ttc.buf<...>``."""
    return isinstance(type, BufferType)


def buffer_of(value: SSAValue) -> BufferType:
    """The type of a buffer operand."""
    assert isinstance(value.type, BufferType), value.type
    return value.type


def element_of(type: Attribute) -> Attribute:
    """The element of a buffer; any other type is its own element."""
    return type.element if isinstance(type, BufferType) else type


BUFFER = Kind("a buffer", is_buffer)
BUFFER_OR_SCALAR = Kind("a buffer, float, integer or pointer", lambda type: is_buffer(type) or is_element(type))
INT_BUFFER = Kind("a buffer of integers", lambda type: isinstance(type, BufferType) and is_integer(type.element))
MASK = Kind(
    "an i1 or a buffer of them", lambda type: type == i1 or (isinstance(type, BufferType) and type.element == i1)
)


class AllocOp(Op):
    """Scratch memory with undefined contents: ``%b = ttc.alloc : !ttc.buf<64x128xf32>``."""

    name = "ttc.alloc"
    result = result_def(BUFFER)
    form = "{} : type($result)"


class TableOp(Op):
    """A buffer of constants, never written: ``%b = ttc.table dense<[1, 2]> : tensor<2xi32> into !ttc.buf<2xi32>``."""

    name = "ttc.table"
    value = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(BUFFER)
    form = "$value into type($result)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        table, buffer = self.value, buffer_of(self.results[0])
        if tuple(table.get_shape() or ()) != buffer.shape or table.get_element_type() != buffer.element:
            raise VerifyException(f"ttc.table of {table.type} cannot give {buffer}")


class EndOp(Op):
    """The end of the body of a nest: ``ttc.end``."""

    name = "ttc.end"
    form = "{}"
    traits = traits_def(Pure(), IsTerminator())


class NestOp(Op):
    """Run the body once for every index below `shape`: ``ttc.nest [64, 128] { ^bb0(%i: i32, %j: i32): ... ttc.end }``.

    The body is scalar code; it may use scalars from outside.
    """

    name = "ttc.nest"
    shape = prop_def(I32_ARRAY)
    body = region_def("single_block")
    form = "$shape $body {}"

    def verify_(self) -> None:
        shape = array_values(self.shape)
        block = self.regions[0].block
        if [argument.type for argument in block.args] != [i32] * len(shape):
            found = names([argument.type for argument in block.args])
            raise VerifyException(f"a nest over {shape} needs one i32 argument per dimension, but got {found}")
        if not isinstance(block.last_op, EndOp):
            raise VerifyException("the body of ttc.nest must end with ttc.end")


def require_indices(op: Operation, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Check that there is one index per dimension of the buffer, or a single row-major index."""
    rank = len(buffer_of(buffer).shape)
    if len(indices) != rank and (len(indices) != 1 or rank == 0):
        raise VerifyException(f"{op.name} of {buffer.type} has {len(indices)} indices")


class ReadOp(Op):
    """One element of a buffer: ``%x = ttc.read %b[%i, %j] : !ttc.buf<64x128xf32>``.

    A single index counts the elements row by row, as if the buffer had one dimension.
    """

    name = "ttc.read"
    buffer = operand_def(BUFFER)
    indices = var_operand_def(I32)
    result = result_def(SCALAR)
    form = "$buffer[$indices] {} : type($buffer)"
    infer = {"result": (element_of, "buffer")}
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        require_indices(self, self.operands[0], self.operands[1:])
        if self.results[0].type != buffer_of(self.operands[0]).element:
            raise VerifyException(f"ttc.read of {self.operands[0].type} cannot give {self.results[0].type}")


class WriteOp(Op):
    """Set one element of a buffer: ``ttc.write %x, %b[%i, %j] : !ttc.buf<64x128xf32>``; see `ReadOp`."""

    name = "ttc.write"
    value = operand_def(SCALAR)
    buffer = operand_def(BUFFER)
    indices = var_operand_def(I32)
    form = "$value, $buffer[$indices] {} : type($buffer)"
    infer = {"value": (element_of, "buffer")}
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        require_indices(self, self.operands[1], self.operands[2:])
        if self.operands[0].type != buffer_of(self.operands[1]).element:
            raise VerifyException(f"ttc.write of {self.operands[0].type} into {self.operands[1].type}")


class YieldOp(Op):
    """The result of combining two elements: ``ttc.yield %r : f32``."""

    name = "ttc.yield"
    result = var_operand_def()
    form = COMBINE_RETURN
    traits = traits_def(Pure(), IsTerminator())


class ReduceOp(Op):
    """Fold the values of a nest along one of its dimensions.

    ``ttc.reduce %x, %k into %best, %at[%i] { ^bb0(...): ... ttc.yield %r, %s : f32, i32 } : <types of %best, %at>``

    Used in the body of a nest. The indices are the arguments of the nest without the folded one, in order. The
    accumulators are overwritten, defined after the nest, and may be read only then. The region takes the left values of
    all sources, then the right ones, and is associative.
    """

    name = "ttc.reduce"
    srcs = var_operand_def(SCALAR)
    accumulators = var_operand_def(BUFFER)
    indices = var_operand_def(I32)
    combine = region_def()
    form = "$srcs into $accumulators[$indices] $combine {} : type($accumulators)"
    infer = {"srcs": (element_of, "accumulators")}

    def verify_(self) -> None:
        verify_combine(self, [value.type for value in self.srcs], YieldOp)
        if len(self.srcs) != len(self.accumulators):
            raise VerifyException(f"ttc.reduce has {len(self.srcs)} sources and {len(self.accumulators)} accumulators")
        for source, accumulator in zip(self.srcs, self.accumulators, strict=True):
            if buffer_of(accumulator).element != source.type:
                raise VerifyException(f"ttc.reduce of {source.type} into {accumulator.type}")
            require_indices(self, accumulator, self.indices)
        if not isinstance(nest := self.parent_op(), NestOp):
            raise VerifyException("ttc.reduce must be in the body of ttc.nest")
        if reduced_axis(self) is None:
            raise VerifyException(f"ttc.reduce must leave out one index of the nest over {array_values(nest.shape)}")


def reduced_axis(op: ReduceOp) -> int | None:
    """The dimension of the nest that a `ttc.reduce` folds."""
    arguments = list(op.parent.args) if op.parent is not None else []
    sizes = array_values(op.properties[SEGMENTS])
    indices = list(op.operands)[sizes[0] + sizes[1] :]
    for axis in range(len(arguments)):
        if arguments[:axis] + arguments[axis + 1 :] == indices:
            return axis
    return None


class DotOp(Op):
    """``c += a @ b`` in place, of matrices or of batches of them.

    ``ttc.dot %a, %b, %c, inputPrecision = tf32 : !ttc.buf<16x32xf16>, !ttc.buf<32x8xf16>, !ttc.buf<16x8xf32>``
    """

    name = "ttc.dot"
    a = operand_def(BUFFER)
    b = operand_def(BUFFER)
    c = operand_def(BUFFER)
    input_precision = input_precision_prop()
    max_num_imprecise_acc = max_imprecise_prop()
    form = "$a, $b, $c(?, inputPrecision = $input_precision) {} : type($operands)"

    def verify_(self) -> None:
        verify_dot_shapes(self, *(buffer_of(value).shape for value in self.operands))


class ScanOp(Op):
    """Running combinations along an axis, from the end with `reverse`.

    ``ttc.scan %x into %y {axis = 0 : i32, reverse = false} { ^bb0(%a: f32, %b: f32): ... ttc.yield %r : f32 } :
    <types>``

    The types are those of the sources, which the targets share. A target may be its own source.
    """

    name = "ttc.scan"
    srcs = var_operand_def(BUFFER)
    targets = var_operand_def(BUFFER)
    axis = prop_def(I32_PROPERTY)
    reverse = prop_def(I1_PROPERTY)
    combine = region_def()
    form = "$srcs into $targets {} $combine : type($srcs)"
    infer = {"targets": "srcs"}

    def verify_(self) -> None:
        sources, targets = [v.type for v in self.srcs], [v.type for v in self.targets]
        if sources != targets:
            raise VerifyException(f"ttc.scan of {names(sources)} into {names(targets)}")
        verify_axis(self, self.axis.value.data, [buffer_of(value).shape for value in self.srcs])
        verify_combine(self, [buffer_of(value).element for value in self.srcs], YieldOp)


class SortRunsOp(Op):
    """As `tt.sort_runs`: ``ttc.sort_runs %x into %y {bits = 3 : i32, ...} : <two types>``. A target may be its
    source."""

    name = "ttc.sort_runs"
    src = operand_def(INT_BUFFER)
    target = operand_def(INT_BUFFER)
    bits = prop_def(I32_PROPERTY)
    order = prop_def(I32_PROPERTY)
    merges = prop_def(I1_PROPERTY)
    signed = prop_def(I1_PROPERTY)
    form = "$src into $target {} : type($operands)"

    def verify_(self) -> None:
        source, target = (buffer_of(value) for value in self.operands)
        if source.element != target.element or prod(source.shape) != prod(target.shape):
            raise VerifyException(f"ttc.sort_runs of {source} into {target}")
        verify_runs(self, self.bits.value.data, self.order.value.data, source.shape)


class GatherOp(Op):
    """Pick elements along an axis by index: ``ttc.gather %src, %at into %dst {axis = 0 : i32} : <three types>``."""

    name = "ttc.gather"
    src = operand_def(BUFFER)
    indices = operand_def(INT_BUFFER)
    target = operand_def(BUFFER)
    axis = prop_def(I32_PROPERTY)
    form = "$src, $indices into $target {} : type($operands)"

    def verify_(self) -> None:
        source, indices, target = (buffer_of(value) for value in self.operands)
        if target.shape != indices.shape or target.element != source.element:
            raise VerifyException(f"ttc.gather of {source} at {indices} cannot give {target}")
        if len(source.shape) != len(indices.shape) or not 0 <= self.axis.value.data < len(source.shape):
            raise VerifyException(f"ttc.gather along {self.axis.value.data} of {source} at {indices}")


class HistogramOp(Op):
    """Count each integer from 0; only where the mask is set: ``ttc.histogram %x, %mask into %h : <types>``.

    The target is overwritten. Integers beyond its size are not counted.
    """

    name = "ttc.histogram"
    src = operand_def(INT_BUFFER)
    mask = opt_operand_def(BUFFER)
    target = operand_def(INT_BUFFER)
    form = "$src(?, $mask) into $target {} : type($operands)"

    def verify_(self) -> None:
        if self.mask is not None and prod(buffer_of(self.mask).shape) != prod(buffer_of(self.src).shape):
            raise VerifyException(f"ttc.histogram of {self.src.type} with a mask of {self.mask.type}")


class PrintOp(PrintBase):
    """Print scalars and whole tiles: ``ttc.print "x: " {hex = false, isSigned = array<i32: 1>} : %b :
    !ttc.buf<4xi32>``."""

    name = "ttc.print"
    args = var_operand_def(BUFFER_OR_SCALAR)
    is_signed = prop_def(I32_ARRAY, prop_name="isSigned")
    form = PRINT


class AssertOp(Op):
    """Stop the kernel where a condition is false: ``ttc.assert %ok, "message" : !ttc.buf<8xi1>``."""

    name = "ttc.assert"
    condition = operand_def(MASK)
    message = prop_def(MESSAGE)
    form = ASSERT


class CheckOp(Op):
    """A pointer that may be used: stop the kernel where memory outside of its arrays would be touched.

    ``%q = ttc.check %p, %mask {arguments = array<i32: 0>, verb = "reads"} : !tt.ptr<f32>``

    `arguments` are the parameters of the kernel whose arrays the pointer may come from; none of them means any array of
    the launch. The result is the pointer, so that no access can come before its check.
    """

    name = "ttc.check"
    pointer = operand_def(POINTER)
    mask = opt_operand_def(MASK)
    result = result_def(POINTER)
    arguments = prop_def(I32_ARRAY)
    verb = prop_def(StringAttr)
    form = "$pointer(?, $mask) {} : type($pointer)"
    infer = {"result": "pointer", "mask": i1}

    def verify_(self) -> None:
        if self.results[0].type != self.operands[0].type:
            raise VerifyException(f"ttc.check of {self.operands[0].type} cannot give {self.results[0].type}")


TTC = Dialect("ttc", dialect_ops("ttc"), [BufferType])
register(TTC)
