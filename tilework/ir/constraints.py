"""Constraints on the operands, results and properties of ops, and the rules shared by many ops.

A constraint names a kind of element and accepts it alone or as the element of a tensor: `FLOAT_LIKE` is ``f32`` or
``tensor<8xf32>``. The traits are the rules between operands and results (`SameShape`, `SameEncoding`, ...).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from io import StringIO
from math import prod
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import ARRAY, Codec, enum_codec, flags_codec, integer_codec
from tilework.ir.enums import Keyword
from tilework.ir.types import (
    PointerType,
    TensorDescType,
    element_type,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
    int_attr,
    is_block_pointer,
    is_float,
    is_pointer,
    is_tensor,
    pointer_type,
    read_block,
    shape_of,
    tensordesc_type,
)
from tilework.layouts.encodings import is_power_of_two
from tilework.light_dataclass import light_dataclass

if TYPE_CHECKING:
    from xdsl.parser import Parser

MAX_ELEMENTS = 1 << 20
INTEGERS = frozenset({i1, i4, i8, i16, i32, i64})


KindT = TypeVar("KindT", bound=Attribute, covariant=True)


@light_dataclass
class Kind(Generic[KindT]):
    """A type, or a property, for which `accepts` holds; named `text` in messages."""

    text: str
    accepts: Callable[[Attribute], bool]
    only: Attribute | None = None  # the one type there is
    bare: Callable[["Parser"], Attribute] | None = None  # reads a type whose prefix is left out
    codec: Codec | None = None  # of a property


def exactly(text: str, type: Attribute) -> Kind[Attribute]:
    """Return the kind that only `type` matches."""
    return Kind(text, lambda other: other == type, only=type)


def like(text: str, accepts: Callable[[Attribute], bool]) -> Kind[Attribute]:
    """A scalar that `accepts` takes, or a tensor of it; `text` names the scalar."""
    return Kind(f"{text} or a tensor of {text}", lambda type: accepts(element_type(type)))


def is_int(type: Attribute) -> bool:
    """An integer that ops compute with; ``ui8`` exists only inside a descriptor."""
    return type in INTEGERS


def is_numeric(type: Attribute) -> bool:
    return is_float(type) or is_int(type)


def is_element(type: Attribute) -> bool:
    """Return True for an element type of tensors: a float, an integer or a pointer."""
    return is_numeric(type) or is_pointer(type)


def is_plain_tensor(type: Attribute) -> bool:
    """A ranked tensor of floats, integers or pointers."""
    return is_tensor(type) and is_element(element_type(type))


FLOAT_LIKE = like("a float", is_float)
INT_LIKE = like("an integer", is_int)
BOOL_LIKE = like("an i1", lambda type: type == i1)
I64_LIKE = like("an i64", lambda type: type == i64)
PTR_LIKE = like("a pointer", is_pointer)
ANY = like("a float, integer or pointer", is_element)
SCALAR = Kind("a float, integer or pointer", is_element)
TENSOR = Kind("a ranked tensor of floats, integers or pointers", is_plain_tensor)
NUMERIC_TENSOR = Kind("a tensor of floats or integers", lambda type: is_tensor(type) and is_numeric(element_type(type)))
INT_TENSOR = Kind("a tensor of integers", lambda type: is_tensor(type) and is_int(element_type(type)))
I32_TENSOR = Kind("a tensor of i32", lambda type: is_tensor(type) and element_type(type) == i32)


def read_pointer(parser: "Parser") -> Attribute:
    """``<f32>``."""
    pointee, space = PointerType.parse_parameters(parser)
    assert isinstance(space, IntegerAttr)
    return pointer_type(pointee, space.value.data)


def read_descriptor(parser: "Parser") -> Attribute:
    """``<tensor<64x64xf16>>``, or ``<64x64xf16>``."""
    return tensordesc_type(read_block(parser))


POINTER = Kind("a pointer", is_pointer, bare=read_pointer)
BLOCK_POINTER = Kind("a pointer to a block", is_block_pointer, bare=read_pointer)
DESCRIPTOR = Kind("a tensor descriptor", lambda type: isinstance(type, TensorDescType), bare=read_descriptor)
I1, I16, I32, I64 = exactly("i1", i1), exactly("i16", i16), exactly("i32", i32), exactly("i64", i64)


def integer_property(type: IntegerType) -> "Kind[IntegerAttr]":
    """A property that is an integer of `type`."""
    codec = integer_codec(type, bool if type == i1 else int)
    return Kind(
        f"an integer of i{type.width.data}",
        lambda value: isinstance(value, IntegerAttr) and value.type == type,
        codec=codec,
    )


@cache
def enum_property(enum: type[Keyword]) -> "Kind[IntegerAttr]":
    """A property that is the code of a member of `enum`."""
    codes = frozenset(int_attr(member, i32) for member in enum)
    listed = ", ".join(f"{member.value} ({member.keyword})" for member in enum)
    return Kind(f"an i32 that is one of {listed}", lambda value: value in codes, codec=enum_codec(enum))


def flags_property(enum: type[Keyword]) -> "Kind[IntegerAttr]":
    """A property whose bits are members of `enum`."""
    codec, most = flags_codec(enum), max(enum)
    return Kind(
        f"an i32 of {codec.description}",
        lambda value: isinstance(value, IntegerAttr) and value.type == i32 and 0 <= value.value.data <= most,
        codec=codec,
    )


I1_PROPERTY = integer_property(i1)
I32_PROPERTY = integer_property(i32)
RUN_PROPERTY: "Kind[IntegerAttr]" = Kind(  # elements that a thread accesses at once
    "a power of two as i32",
    lambda value: I32_PROPERTY.accepts(value) and is_power_of_two(cast("IntegerAttr", value).value.data),
    codec=I32_PROPERTY.codec,
)
I32_ARRAY: "Kind[DenseArrayBase]" = Kind(
    "an array of i32", lambda value: isinstance(value, DenseArrayBase) and value.elt_type == i32, codec=ARRAY
)


def types_of(op: Operation) -> list[Attribute]:
    """The types of the operands, then of the results."""
    return [value.type for value in (*op.operands, *op.results)]


def encodings(types: Iterable[Attribute]) -> set[Attribute]:
    """The distinct encodings of the tensors among `types` that have one."""
    return {type.encoding for type in types if isinstance(type, TensorType) and not isinstance(type.encoding, NoneAttr)}


class TensorSize(OpTrait):
    """Every tensor has elements, at most 2**20; with a layout it has a power of two of them."""

    def verify(self, op: Operation) -> None:
        for type in types_of(op):
            if not isinstance(type, TensorType):
                continue
            count = prod(shape_of(type))
            if any(size < 0 for size in shape_of(type)):
                raise VerifyException(f"{op.name} needs tensors of a known shape, but got {type}")
            if count > MAX_ELEMENTS:
                raise VerifyException(
                    f"Maximum allowed number of elements is {MAX_ELEMENTS}, but {generic_text(op)} has more than that"
                )
            if count == 0:
                raise VerifyException(f"Number of elements must be positive, but {generic_text(op)} has none")
            if count & (count - 1) and not isinstance(type.encoding, NoneAttr):
                raise VerifyException(
                    f"Number of elements must be power-of-two, but {generic_text(op)} "
                    f"doesn't follow the rule ({count}) elements"
                )


def generic_text(op: Operation) -> str:
    """``%1 = "tt.splat"(%0) : (f32) -> tensor<3xf32>``."""
    from xdsl.printer import Printer  # it loads the lexer, and only errors need it

    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(op)
    return stream.getvalue()


class Elementwise(OpTrait):
    """Each element of a result depends on the elements of the operands at the same index."""


class OneShape(OpTrait):
    """The tensors have one shape; scalars are allowed too, but a scalar result needs scalar operands and a tensor
    result a tensor operand."""

    def verify(self, op: Operation) -> None:
        operands = [value.type for value in op.operands if is_tensor(value.type)]
        results = [value.type for value in op.results if is_tensor(value.type)]
        if operands and not results:
            raise VerifyException("if an operand is non-scalar, then there must be at least one non-scalar result")
        if results and not operands:
            raise VerifyException("if a result is non-scalar, then at least one operand must be non-scalar")
        if len({shape_of(type) for type in (*operands, *results)}) > 1:
            raise VerifyException(
                "all non-scalar operands/results must have the same shape and base type:"
                f" {names((*operands, *results))}"
            )


class SameShape(OpTrait):
    """Operands and results have one shape; scalars count as shape ()."""

    def verify(self, op: Operation) -> None:
        require_equal(op, "shape", (shape_of(type) for type in types_of(op)))


class SameEncoding(OpTrait):
    """The tensors that have an encoding have the same one."""

    def verify(self, op: Operation) -> None:
        if len(found := encodings(types_of(op))) > 1:
            names = ", ".join(sorted(str(encoding) for encoding in found))
            raise VerifyException(f"requires the same encoding for all operands and results, got {names}")


class SameElement(OpTrait):
    """Operands and results have one element type."""

    def verify(self, op: Operation) -> None:
        require_equal(op, "element type", (element_type(type) for type in types_of(op)))


class SameType(OpTrait):
    """Operands and results have one type."""

    def verify(self, op: Operation) -> None:
        require_equal(op, "type", types_of(op))


def require_equal(op: Operation, what: str, facts: Iterable[object]) -> None:
    """Check that all `facts` are equal; the message names the distinct ones in order."""
    distinct = list(dict.fromkeys(facts))
    if len(distinct) > 1:
        names = ", ".join(str(fact) for fact in distinct)
        raise VerifyException(f"requires the same {what} for all operands and results, got {names}")


def verify_returns(op: Operation, elements: Sequence[Attribute], terminator: type[Operation]) -> None:
    """Check that each block of the region returns `elements` through `terminator`, or branches on."""
    for last in (block.last_op for block in op.regions[0].blocks):
        if last is None or not (last.successors or isinstance(last, terminator)):
            other = "nothing" if last is None else last.name
            raise VerifyException(f"{op.name} region must end with {terminator.name}, not {other}")
        if isinstance(last, terminator) and (found := [value.type for value in last.operands]) != list(elements):
            if len(found) != len(elements):
                raise VerifyException(
                    f"expected combine operation to return {len(elements)} values but got {len(found)}: {op.name}"
                    f" region must return {names(elements)}, got {names(found)}"
                )
            raise VerifyException(f"{op.name} region must return {names(elements)}, got {names(found)}")


def names(types: Sequence[Attribute]) -> str:
    """The types in parentheses, for a message."""
    return f"({', '.join(map(str, types))})"
