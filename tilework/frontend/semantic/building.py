"""The base of all families of operations: types, the insertion point, the options, and constants.

    ir_type(float32)                      f32
    ir_type(uint8)                        i8              signless: the sign is in the op (divui, extui ...)
    ir_type(pointer_type(int1))           !tt.ptr<i1>
    ir_type(block_type(float16, [4, 8]))  tensor<4x8xf16>

Only the element of a tensor descriptor keeps its sign (``!tt.tensordesc<tensor<16x16xui32>>``), because the hardware
reduces through it. `fp8e4b15` exists in no instruction set: it is an `i8` in the IR, and `arith.py` converts it.

One value may be several IR values: `ir_types` lists them in the order of `_flatten_ir`.

A Python int or float becomes a constant of the type it is used with, converted at compile time:

    offsets < 8     %cst = arith.constant dense<8> : tensor<64xi32>        no i32 constant, no cast, no tt.splat

Constants are kept once per function, at the start of its entry block, in the order and with the locations that
`canonicalize` would give them if each use had an op of its own: see `Constant`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import copysign, isfinite, trunc
from typing import Any, TypeVar

from xdsl.dialects.builtin import IntegerType, LocationAttr, Signedness
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.errors import LIBRARY, warn_at, warn_beyond_triton
from tilework.ir import types as ir
from tilework.ir.create import append_op
from tilework.ir.locations import source_positions, unknown
from tilework.ir.rewrite import constant, constant_bits
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, float32, int64, pointer_type
from tilework.language.semantic import Semantic as Meaning
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.promotion import (
    DTYPES,
    NUMBERS,
    check_constant,
    constant_dtype,
    plain,
    promote_constant,
)
from tilework.language.typing.shapes import block
from tilework.language.values import tensor_descriptor_type
from tilework.numerics.formats import FORMATS, IR_NAMES, nearest_odd, rounded
from tilework.process.plugins import find

OpT = TypeVar("OpT", bound=Operation)


class Constant:
    """A constant of a function. The order is that of Triton's IR, where each use has a separate op until `canonicalize`
    moves them to the entry block.

    Constants that only folds create (casts of constants and of loop bounds) come first. The others follow, later ones
    before earlier ones. Those at the start of the function (`leads`) are last, in program order. A constant that is
    used once, and not in a nested block, keeps its location.
    """

    def __init__(self, leads: bool) -> None:
        self.leads = leads
        self.is_nested = False
        self.op: Operation | None = None
        self.folded = 0  # uses by folds
        self.plain = 0  # other uses
        self.mentioned = 0  # unused copies in Triton's IR

    @property
    def rank(self) -> int:
        return 2 if self.leads else 1 if self.plain else 0

    @property
    def keeps_location(self) -> bool:
        return not self.is_nested and self.folded + self.plain + (self.mentioned if self.plain else 0) == 1


class Builder:
    """Inserts ops at the end of `block`."""

    def __init__(self, block: Block | None = None, loc: LocationAttr = unknown) -> None:
        self.block = block
        self.loc = loc
        self._entry: Block | None = None
        self._constants: dict[tuple[bytes | int, Attribute], Constant] = {}

    def __getattr__(self, name: str) -> Callable[[Sequence[SSAValue]], SSAValue]:
        """Return the method that a package adds (`tilework.ops` of `process/plugins.py`)."""
        plugin = None if name.startswith("_") else find("tilework.ops", name)
        if plugin is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return partial(plugin.load(), self)

    def insert(self, op: OpT) -> OpT:
        """Put `op` at the insertion point; the insertion point is after it."""
        assert self.block is not None, "the builder has no insertion point"
        append_op(self.block, op)
        return op

    def set_to_end(self, block: Block) -> None:
        self.block = block

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Come back to this insertion point and location afterwards."""
        state = self.block, self.loc
        try:
            yield
        finally:
            self.block, self.loc = state

    @contextmanager
    def enter_function(self, entry_block: Block) -> Iterator[None]:
        """Build the function that starts with `entry_block`, with constants of its own."""
        outer = self._entry, self._constants
        self._entry, self._constants = entry_block, {}
        with self.saved():
            self.set_to_end(entry_block)
            yield
            self._insert_constants()
        self._entry, self._constants = outer

    def constant(self, value: int | float, type: Attribute, folds_later: bool = False) -> SSAValue:
        """Return the constant `value` of `type`, the same SSA value each time; `folds_later`: Triton has a cast of
        another constant here."""
        if self._entry is None:
            return self.insert(constant(value, type, self.loc)).results[0]
        known = self._known(value, type)
        if folds_later:
            known.folded += 1
        else:
            known.plain += 1
        known.is_nested |= self.block is not self._entry
        if (op := known.op) is None:
            op = known.op = constant(value, type, self.loc)
        return op.results[0]

    def mention(self, value: int | float, type: Attribute) -> None:
        """Count an unused constant of Triton's IR."""
        if self._entry is not None:
            self._known(value, type).mentioned += 1

    def _known(self, value: int | float, type: Attribute) -> Constant:
        key = constant_bits(value, type), type
        known = self._constants.get(key)
        if known is None:
            is_first = self.block is not None and self.block.first_op is None
            known = self._constants[key] = Constant(leads=is_first and self.block is self._entry)
        return known

    def _insert_constants(self) -> None:
        """Put the constants at the start of the function."""
        found = [known for known in self._constants.values() if known.op is not None]
        ordered = [known for rank in (0, 1) for known in reversed(found) if known.rank == rank]
        ordered += [known for known in found if known.rank == 2]
        entry = self._entry
        assert entry is not None, "constants of a function"
        first = entry.first_op
        for known in ordered:
            assert known.op is not None
            if not known.keeps_location:
                known.op.location = unknown
            if first is None:
                entry.add_op(known.op)
            else:
                entry.insert_op_before(known.op, first)


INTEGERS = {"int8": ir.i8, "int16": ir.i16, "int32": ir.i32, "int64": ir.i64}
SCALARS: dict[str, Attribute] = {
    "int1": ir.i1,
    **{f"{sign}{type}": bits for type, bits in INTEGERS.items() for sign in ("", "u")},
    **{name: getattr(ir, in_ir) for in_ir, name in IR_NAMES.items()},
    "fp8e4b15": ir.i8,
}

NO_RUNTIME_PART = (tl.constexpr_type, tl.slice_type)


@cache
def ir_type(ty: tl.base_type) -> Attribute:
    """The IR type of one runtime value; a descriptor's is that of the descriptor alone."""
    if isinstance(ty, block_type):
        return ir.tensor_type(ty.sizes, ir_type(ty.element_ty))
    if isinstance(ty, pointer_type):
        return ir.pointer_type(ir_type(ty.element_ty), ty.address_space)
    if isinstance(ty, tensor_descriptor_type):
        element = descriptor_element(ty.block_type.element_ty)
        return ir.tensordesc_type(ir.tensor_type(ty.block_type.sizes, element))
    if isinstance(ty, dtype) and ty.name in SCALARS:
        return SCALARS[ty.name]
    raise TypeError(f"a value of type {ty} has no single IR value")


@cache
def descriptor_element(element: dtype) -> Attribute:
    """The element inside a descriptor type: integers keep their sign, and a bool is a byte as in memory."""
    if not isinstance(ir_type(element), IntegerType):
        return ir_type(element)
    sign = Signedness.SIGNED if element.is_int_signed() else Signedness.UNSIGNED
    return IntegerType(max(element.primitive_bitwidth, 8), sign)


def ir_types(ty: tl.base_type) -> list[Attribute]:
    """Every IR type inside a value of type `ty`: one for a tensor, none for a constant, one per part of a tuple."""
    if isinstance(ty, dtype):
        return [] if ty.is_void() else [ir_type(ty)]
    if isinstance(ty, NO_RUNTIME_PART):
        return []
    if isinstance(ty, tensor_descriptor_type):
        return [ir_type(ty), *ir_types(ty.shape_type), *ir_types(ty.strides_type)]
    return [part for element in element_types(ty) for part in ir_types(element)]


def element_types(ty: tl.base_type) -> list[tl.base_type]:
    """The types of the parts of a tuple or an aggregate, in order."""
    if isinstance(ty, tl.tuple_type):
        return ty.types
    if isinstance(ty, tl._aggregate_type):
        return [field for _, field in ty.fields]
    raise TypeError(f"a value of type {ty} cannot exist at run time")


class Building(Meaning):
    """Builds ops at the insertion point of `builder`; `options` describe the target and the build."""

    def __init__(self, builder: Builder, options: Any) -> None:
        self.builder = builder
        self.options = options
        self.argument_hints: dict[SSAValue, dict[str, Attribute]] = {}
        self.has_ordered_atomics = False
        self.called_at: tuple[LocationAttr, ...] = ()  # the calls that led to the function that is being compiled

    def beyond_triton(self, refusal: Exception) -> None:
        """An error or a warning, at the user's line, where programs shall run on Triton too."""
        if self.options.beyond_triton == "error":
            raise refusal
        if self.options.beyond_triton == "warn":
            warn_beyond_triton(refusal, *self._users_line())

    def warn(self, text: str, category: type[Warning]) -> None:
        """Warn at the user's line."""
        warn_at(text, category, *self._users_line())

    def _users_line(self) -> tuple[str, int]:
        """Return the file and line of the op being built; inside the library, of the call of the library."""
        callers = reversed(self.called_at)
        positions = [found for loc in (self.builder.loc, *callers) for found in source_positions(loc)]
        own = [found for found in positions if not found[0].startswith(LIBRARY)]
        file, line, _ = next(iter(own or positions), ("unknown", 0, 0))
        return file, line

    def _emit(self, op: Operation, type: dtype) -> tl.tensor:
        return tl.tensor(self.builder.insert(op).results[0], type)


class Constants(Building):
    """Constants of every type, beside tensors and alone."""

    ir_type = staticmethod(ir_type)
    ir_types = staticmethod(ir_types)

    def constant(self, value: Any, type: dtype, folds_later: bool = False) -> tl.tensor:
        """A constant of a scalar or block type; floats are rounded, integers wrap."""
        element = type.scalar
        if not isinstance(value, NUMBERS):
            check_constant(value, element.name)
        if element.is_fp8():
            return self._fp8_constant(value, type)
        stored = cached_by_value(stored_constant, value, element.name)
        return tl.tensor(self.builder.constant(stored, ir_type(type), folds_later), type)

    def _fp8_constant(self, value: int | float, type: dtype) -> tl.tensor:
        """An fp8 constant. Values of the format are direct; others, and -0, which not all formats have, are rounded by
        the cast at run time, as variables are."""
        self.check_dtype(type.scalar)
        check_constant(value, type.scalar.name)
        is_bytes = ir_type(type.scalar) is ir.i8
        if value == 0 and copysign(1.0, value) > 0:
            return tl.tensor(self.builder.constant(0 if is_bytes else 0.0, ir_type(type)), type)
        if (
            not is_bytes
            and value != 0
            and isfinite(value)
            and rounded(float(value), FORMATS[type.scalar.name]) == value
        ):
            return tl.tensor(self.builder.constant(float(value), ir_type(type)), type)
        wide = tl.tensor(self.builder.constant(rounded(float(value), FORMATS["fp32"]), ir.f32), float32)
        return self.stretch(self.cast(wide, type.scalar), type.sizes)

    def constant_operand(self, x: tl.tensor, value: Any, side: int, operator: str, weak: bool) -> Pair:
        """`x` and the constant `value`, in the type of the operation and the shape of `x`."""
        element, given, own = x.dtype, value, constant_dtype(value)
        result, value = cached_by_value(constant_beside, value, element.name, side, operator, weak)
        if element is not result:
            x = self.cast(x, result)
        if result.is_fp8():
            return x, self._fp8_constant(value, x.type)
        builder, is_block = self.builder, x.type.is_block()
        if weak or is_block or own is not result:
            builder.mention(given, ir_type(own))
        if weak and is_block:
            builder.mention(value, ir_type(result))
        folds_later = not weak and own is not result
        return x, tl.tensor(builder.constant(value, x.handle.type, folds_later), x.type)

    def as_element(self, value: Any, element: dtype, shape: Shape) -> tl.tensor:
        """`value` cast to `element`. An int or float becomes a constant of the final type and shape at once."""
        constant = plain(value)
        if not isinstance(constant, NUMBERS):
            return self.cast(constant, element)
        if element.is_ptr() or (element.is_int() and not isfinite(constant)):
            return self.stretch(self.cast(constant, element), shape)
        own = constant_dtype(constant)
        if shape or own is not element:
            self.builder.mention(constant, ir_type(own))
        if not element.is_fp8():
            constant = converted_constant(constant, own, element)
        return self.constant(constant, block(element, shape), own is not element)

    def index(self, value: int | tl.tensor, type: dtype) -> Any:
        """An int or a scalar integer as an SSA value of the integer type `type`."""
        return (self.constant(value, type) if isinstance(value, int) else self.cast(value, type)).handle


def cached_by_value(function: Any, value: Any, *arguments: Any) -> Any:
    """``function(value, kind, *arguments)``, with `kind` in the key: 1, 1.0 and True are equal, and so are 0.0 and
    -0.0."""
    if value.__class__ is float and (value == 0 or value != value):
        return function.__wrapped__(value, float, *arguments)
    return function(value, value.__class__, *arguments)


@cache
def stored_constant(value: Any, kind: type, name: str) -> int | float:
    """`value` as the type `name` holds it; integers wrap, floats round."""
    check_constant(value, name)
    element = DTYPES[name]
    if element.is_bool():
        return bool(value)
    if element.is_int():
        return converted_constant(int(value), element, element)
    return converted_constant(value, element if kind is float else int64, element)


@cache
def constant_beside(
    value: Any, kind: type, element: str, side: int, operator: str, weak: bool
) -> tuple[dtype, int | float]:
    """The type of an operation between a constant and a tensor of type `element`, and the constant in that type."""
    result, own = promote_constant(value, element, side, operator, weak)
    if not weak:
        return result, converted_constant(value, own, result)
    return result, value if result.is_fp8() else cached_by_value(stored_constant, value, result.name)


def converted_constant(value: int | float, own: dtype, result: dtype) -> int | float:
    """`value` of type `own` as `result` holds it (integers wrap, floats round).

    Constants are converted here, while compiling, as the cast from `own` to `result` would do when running.
    """
    if result.is_bool():
        return value != 0
    if result.is_int():
        bits = result.int_bitwidth
        if own.is_floating():  # a cast saturates at 16, 32 or 64 bits
            width, sign = max(bits, 16), result.is_int_signed()
            value = rounded(float(value), FORMATS[own.name])
            value = min(max(trunc(value), -(1 << (width - 1)) if sign else 0), (1 << (width - sign)) - 1)
        value = trunc(value) & ((1 << bits) - 1)
        return value - (1 << bits) if result.is_int_signed() and value >> (bits - 1) else value
    if own.is_floating():
        return rounded(rounded(float(value), FORMATS[own.name]), FORMATS[result.name])
    return rounded(float(value) if result.name == "fp64" else nearest_odd(int(value)), FORMATS[result.name])
