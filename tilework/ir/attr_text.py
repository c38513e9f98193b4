"""The text of attributes, types, locations and floats, and the aliases that shorten it.

Locations and encodings are written once, as aliases, and referred to by name:

    #blocked = #ttg.blocked<{sizePerThread = [1], ...}>         at the top: used by types
    #loc = loc("k.py":3:0)                                      at the top: used by a block argument
    module { ... %0 = tt.splat ... loc(#loc1) }
    #loc1 = loc("k.py":4:8)                                     at the end: the rest

An attribute takes part by having a class attribute `ALIAS_STEM` (`blocked`, `mma`, `shared` ...). The first of a stem
has no number, the next ones 1, 2, ...; first those that refer to no other alias, then those that do. So a number is
known only when all text has been produced: until then a reference is a mark (`MARK`), replaced by `finish`. Marks
cannot clash with the text, which is printable ASCII everywhere else.

A float is written in the first of MLIR's forms that reads back as the same bits:

    six digits and a zero   1.500000e+00
    all significant digits  1.44269502, 9.99999974E-6     (only when a `.` appears)
    the bits in hexadecimal 0x7FC00000, 0x4B800000        (NaN, infinities, large integers)

The digits of the second form are cut, not rounded, when the exact decimal expansion is much longer than needed:
1e-5 in f32 is 9.99999974737875e-06 and prints as 9.99999974E-6.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, reduce
from io import StringIO
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    CallSiteLoc,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    NameLoc,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from tilework.ir.enums import Keyword
from tilework.ir.types import (
    FLOAT_WIDTHS,
    GLOBAL_ADDRESS_SPACE,
    PointerType,
    TensorDescType,
    array_values,
    i32,
    i32_array,
    int_attr,
    string_attr,
)
from tilework.light_dataclass import light_dataclass

if TYPE_CHECKING:
    from xdsl.parser import Parser


# Significant bits of a float, with the hidden one.
PRECISION: dict[str, int] = {
    "f16": 11,
    "bf16": 8,
    "f32": 24,
    "f64": 53,
    "f8E4M3FN": 4,
    "f8E4M3FNUZ": 4,
    "f8E5M2": 3,
    "f8E5M2FNUZ": 3,
}
PADDING = 3  # leading zeros after the point before the text switches to scientific form


def float_bits(value: float, type: AnyFloat) -> int:
    """The bit pattern of `value`, rounded to `type`."""
    return int.from_bytes(type.pack((value,)), "little")


def float_from_bits(bits: int, type: AnyFloat) -> float:
    """The value of a bit pattern; ValueError when it has more bits than the type."""
    size = type.compile_time_size
    if bits >> (8 * size):
        raise ValueError(f"0x{bits:X} does not fit {type}")
    return next(iter(type.iter_unpack(bits.to_bytes(size, "little"))))


@lru_cache(maxsize=1024)
def float_text(value: float, type: AnyFloat, negative_zero: bool = False) -> str:
    """`value` as MLIR prints it. Call through `scalar_text`: the cache does not distinguish -0.0 from 0.0."""
    if value == 0.0:
        return "-0.000000e+00" if negative_zero else "0.000000e+00"
    bits = float_bits(value, type)
    if math.isfinite(value):
        short = scientific(*decimal_digits(abs(value), 6), precision=6)
        short = f"-{short}" if value < 0 else short
        if float_bits(float(short), type) == bits:
            return short
        full = shortest(*decimal_digits(abs(value), precision := digits_of(type)), precision)
        if "." in full:
            return f"-{full}" if value < 0 else full
    return f"0x{bits:X}"


def scalar_text(value: float, type: AnyFloat) -> str:
    """The text of one float: ``scalar_text(0.5, f32)`` is ``5.000000e-01``."""
    return float_text(value, type, value == 0.0 and math.copysign(1.0, value) < 0)


def bits_text(raw: bytes, type: AnyFloat) -> str:
    """The text of one element given by its bytes; NaN bits are kept as they are."""
    value = next(iter(type.iter_unpack(raw)))
    if value != value or math.isinf(value):
        return f"0x{int.from_bytes(raw, 'little'):X}"
    return scalar_text(value, type)


def digits_of(type: AnyFloat) -> int:
    """Return the decimal digits that distinguish every value of `type` from its neighbours."""
    return 2 + PRECISION.get(type.name, 53) * 59 // 196


def decimal_digits(value: float, precision: int) -> tuple[str, int]:
    """Digits d and exponent e with value = d * 10**e, at most `precision` digits, no trailing zeros.

    59/196 is log10(2) from below: the significand is first divided by the powers of ten it can surely spare (this
    cuts), and only what is still too long is rounded, half up.
    """
    significand, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()  # the denominator is a power of two: n/2**k = n*5**k / 10**k
    significand *= 5**-exponent
    spare = significand.bit_length() - (precision * 196 + 58) // 59
    if spare > 0 and (tens := spare * 59 // 196):
        significand //= 10**tens
        exponent += tens
    digits = str(significand)
    if (extra := len(digits) - precision) > 0:
        kept = int(digits[:precision]) + (digits[precision] >= "5")
        digits, exponent = str(kept), exponent + extra
    stripped = digits.rstrip("0")
    return stripped, exponent + len(digits) - len(stripped)


def scientific(digits: str, exponent: int, precision: int) -> str:
    """``1.500000e+00``: one digit more than `precision`, filled with zeros."""
    power = exponent + len(digits) - 1
    return f"{digits[0]}.{digits[1:].ljust(precision, '0')}e{'-' if power < 0 else '+'}{abs(power):02d}"


def shortest(digits: str, exponent: int, precision: int) -> str:
    """``1.44269502``, ``0.00765``, ``9.99999974E-6``, or plain digits for an integer."""
    count = len(digits)
    power = exponent + count - 1
    if exponent >= 0:
        if exponent <= PADDING and count + exponent <= precision:
            return digits + "0" * exponent
    elif power >= 0:
        return f"{digits[: power + 1]}.{digits[power + 1 :]}"
    elif -power <= PADDING:
        return f"0.{'0' * (-power - 1)}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{'-' if power < 0 else '+'}{abs(power)}"


MARK = re.compile("\x00([0-9]+)\x01")
BARE_IDENTIFIER = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
PLAIN_STRING = re.compile(r"[ !#-\[\]-~]*")
LOCATIONS = (UnknownLoc, FileLineColLoc, NameLoc, CallSiteLoc, FusedLoc)
HEX_LIMIT = 100  # a longer list of different elements is written as raw data


class Alias:
    """One definition: ``#stemN = text``."""

    __slots__ = ("children", "deferred", "depth", "stem", "text")

    def __init__(self, stem: str) -> None:
        self.stem, self.text, self.depth, self.deferred = stem, "", 0, True
        self.children: list[Alias] = []

    def define_first(self) -> None:
        """Move the definition, and all it refers to, to the top of the file."""
        if self.deferred:
            self.deferred = False
            for child in self.children:
                child.define_first()


class AttributeText:
    """Text of attributes for one printed module; equal questions are answered from a table."""

    def __init__(self) -> None:
        self._text: dict[int, str] = {}  # by identity: hashing an attribute costs more than writing it
        self._alive: list[Attribute] = []  # keeps the identities above unique
        self._indices: dict[int, int] = {}  # alias by identity
        self._by_text: dict[str, int] = {}
        self._definitions: list[Alias] = []
        self._open: list[Alias] = []  # aliases whose text is being written, outermost first

    def of(self, attribute: Attribute) -> str:
        """`attribute` as it appears in an op: ``16 : i32``, ``tensor<64xf32, #blocked>``."""
        text = self._text.get(id(attribute))
        if text is not None and not self._open:
            return text
        if (stem := getattr(attribute, "ALIAS_STEM", None)) is not None:
            text = f"#\x00{self._alias(attribute, stem, self._write, deferred=False)}\x01"
        elif isinstance(attribute, LOCATIONS):
            text = f"#\x00{self._alias(attribute, 'loc', location_definition, deferred=False)}\x01"
        elif text is None or "\x00" in text:
            text = self._write(self, attribute)
        self._text[id(attribute)] = text
        self._alive.append(attribute)
        return text

    def full(self, attribute: Attribute) -> str:
        """`attribute` without alias for itself."""
        return self._write(self, attribute)

    def written_out(self, attribute: Attribute) -> str:
        """`attribute` with every alias replaced by its definition."""
        text = self.of(attribute)
        while MARK.search(text):
            text = re.sub(f"#{MARK.pattern}", lambda match: self._definitions[int(match[1])].text, text)
        return text

    def location(self, location: LocationAttr) -> str:
        """`` loc(#loc3)``, what follows an op."""
        return f" loc(#\x00{self._alias(location, 'loc', location_definition, deferred=True)}\x01)"

    def argument_location(self, location: LocationAttr) -> str:
        """`` loc("x"(#loc))``, what follows a block argument: written out, but its parts are aliases."""
        index = self._alias(location, "loc", location_definition, deferred=False)
        return f" {self._definitions[index].text}"

    def nested_location(self, location: Attribute) -> str:
        """``#loc3``, a location inside another."""
        return f"#\x00{self._alias(location, 'loc', location_definition, deferred=True)}\x01"

    @staticmethod
    def _write(texts: "AttributeText", attribute: Attribute) -> str:
        return WRITERS.get(attribute.__class__, write_with_printer)(texts, attribute)

    def _alias(
        self,
        attribute: Attribute,
        stem: str,
        write: Callable[["AttributeText", Attribute], str],
        deferred: bool,
    ) -> int:
        """The index of the alias of `attribute`, written on first sight; equal text is the same alias."""
        index = self._indices.get(id(attribute))
        if index is None:
            alias = Alias(stem)
            self._open.append(alias)
            alias.text = write(self, attribute)
            self._open.pop()
            index = self._by_text.setdefault(alias.text, len(self._definitions))
            if index == len(self._definitions):
                self._definitions.append(alias)
                alias.depth = 1 + max([child.depth for child in alias.children], default=-1)
            self._indices[id(attribute)] = index
            self._alive.append(attribute)
        alias = self._definitions[index]
        if alias.deferred and not deferred:
            alias.define_first()
        if self._open:
            self._open[-1].children.append(alias)
        return index

    def finish(self, parts: Iterable[str]) -> str:
        """The whole text: definitions used early, `parts`, the other definitions."""
        text = "".join(parts)
        if not self._definitions:
            return text
        counts: dict[str, int] = {}
        names: dict[int, str] = {}
        order = sorted(
            range(len(self._definitions)), key=lambda i: (self._definitions[i].depth, self._definitions[i].stem)
        )
        for index in order:
            stem = self._definitions[index].stem
            count = counts[stem] = counts.get(stem, -1) + 1
            names[index] = f"{stem}{'_' if count and stem[-1].isdigit() else ''}{count or ''}"
        lines = {index: f"#{names[index]} = {self._definitions[index].text}\n" for index in order}
        first = [lines[index] for index in order if not self._definitions[index].deferred]
        last = [lines[index] for index in order if self._definitions[index].deferred]
        return MARK.sub(lambda match: names[int(match[1])], "".join([*first, text, *last]))


@lru_cache(4096)
def quoted(text: str) -> str:
    """A string literal: quotes, backslashes and what is not printable ASCII are escaped."""
    if PLAIN_STRING.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(ESCAPES[byte] for byte in text.encode()) + '"'


ESCAPES = [
    "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x22 else f"\\{byte:02X}"
    for byte in range(256)
]


def bare_or_quoted(text: str) -> str:
    """An attribute name: ``tt.divisibility``, ``"ttg.num-warps"``."""
    return text if BARE_IDENTIFIER.fullmatch(text) else quoted(text)


def dictionary(texts: AttributeText, entries: Mapping[str, Attribute]) -> str:
    """``{a = 1 : i32, b}``, sorted by name."""
    parts = [
        bare_or_quoted(name) if value.__class__ is UnitAttr else f"{bare_or_quoted(name)} = {texts.of(value)}"
        for name, value in sorted(entries.items())
    ]
    return "{" + ", ".join(parts) + "}"


def location_definition(texts: AttributeText, location: Attribute) -> str:
    """``loc("x"(#loc1))``."""
    return f"loc({location_body(texts, location)})"


def location_body(texts: AttributeText, location: Any) -> str:
    kind = location.__class__  # faster than `isinstance`, which asks the metaclass
    if kind is FileLineColLoc:
        return f"{quoted(location.filename.data)}:{location.line.data}:{location.column.data}"
    if kind is NameLoc:
        if location.location.__class__ in (NoneAttr, UnknownLoc):
            return quoted(location.desc.data)
        return f"{quoted(location.desc.data)}({texts.nested_location(location.location)})"
    if kind is CallSiteLoc:
        return f"callsite({texts.nested_location(location.callee)} at {texts.nested_location(location.caller)})"
    if kind is FusedLoc:
        meta = "" if isinstance(location.metadata, NoneAttr) else f"<{texts.of(location.metadata)}>"
        return f"fused{meta}[{', '.join(texts.nested_location(one) for one in location.locations)}]"
    return "unknown"


SIGNS = {Signedness.SIGNLESS: "i", Signedness.SIGNED: "si", Signedness.UNSIGNED: "ui"}


def write_tensor(texts: AttributeText, type: TensorType[Attribute]) -> str:
    dims = "".join("?x" if dim < 0 else f"{dim}x" for dim in type.get_shape())
    encoding = "" if type.encoding.__class__ is NoneAttr else f", {texts.of(type.encoding)}"
    return f"tensor<{dims}{texts.of(type.element_type)}{encoding}>"


def write_pointer(texts: AttributeText, type: PointerType) -> str:
    space = type.address_space.value.data
    return f"!tt.ptr<{texts.of(type.pointee)}{'' if space == GLOBAL_ADDRESS_SPACE else f', {space}'}>"


def signature(texts: AttributeText, inputs: Iterable[Attribute], outputs: Iterable[Attribute]) -> str:
    """``(i32, f32) -> i32``, ``() -> ()``."""
    return f"({', '.join(map(texts.of, inputs))}) -> {result_types(texts, tuple(outputs))}"


def result_types(texts: AttributeText, types: tuple[Attribute, ...]) -> str:
    """``i32``, ``(i32, f32)``, ``()``; a function type is always in parentheses."""
    if len(types) == 1 and not isinstance(types[0], FunctionType):
        return texts.of(types[0])
    return f"({', '.join(map(texts.of, types))})"


def write_integer(texts: AttributeText, attribute: IntegerAttr) -> str:
    type, value = attribute.type, attribute.value.data
    if isinstance(type, IntegerType) and type.width.data == 1:
        return "true" if value else "false"
    return f"{value} : {texts.of(type)}"


def array_element(texts: AttributeText, element: Attribute) -> str:
    """The default types i64 and f64 are left out inside an array."""
    text = texts.of(element)
    if element.__class__ is IntegerAttr and text.endswith(" : i64"):
        return text[:-6]
    if element.__class__ is FloatAttr and text.endswith(" : f64"):
        return text[:-6]
    return text


def write_dense_array(texts: AttributeText, attribute: Any) -> str:
    type = attribute.elt_type
    if not isinstance(type, IntegerType):
        items = [scalar_text(value, type) for value in attribute.get_values()]
    elif type.width.data == 1:
        items = ["true" if value else "false" for value in attribute.get_values()]
    else:
        items = [str(value) for value in attribute.get_values()]
    return f"array<{texts.of(type)}{': ' if items else ''}{', '.join(items)}>"


def dense_elements(attribute: DenseIntOrFPElementsAttr) -> str:
    """One element for a splat, nested lists otherwise, raw data for long ones."""
    data, type = attribute.data.data, attribute.get_element_type()
    size = type.compile_time_size
    count = len(data) // size if data else 0
    if count == 0:
        return ""
    if data == data[:size] * count:
        return element_text(data[:size], type)
    if count > HEX_LIMIT:
        return f'"0x{data.hex().upper()}"'
    items = [element_text(data[start : start + size], type) for start in range(0, len(data), size)]
    for dim in reversed(attribute.get_shape()):
        items = [f"[{', '.join(items[start : start + dim])}]" for start in range(0, len(items), dim)]
    return items[0]


def element_text(raw: bytes, type: Attribute) -> str:
    if isinstance(type, AnyFloat):
        return bits_text(raw, type)
    if isinstance(type, IntegerType):
        if type.width.data == 1:
            return "true" if any(raw) else "false"
        return str(int.from_bytes(raw, "little", signed=type.signedness.data != Signedness.UNSIGNED))
    return str(int.from_bytes(raw, "little", signed=True))


def integer_type_text(type: IntegerType) -> str:
    """``i32``."""
    return f"{SIGNS[type.signedness.data]}{type.width.data}"


def write_symbol(texts: AttributeText, attribute: SymbolRefAttr) -> str:
    names = [attribute.root_reference, *attribute.nested_references]
    return "::".join(f"@{bare_or_quoted(name.data)}" for name in names)


def write_with_printer(texts: AttributeText, attribute: Attribute) -> str:
    """Any other attribute prints itself, with nested attributes coming back here."""
    stream = StringIO()
    nested_printer()(stream, texts).print_itself(attribute)
    return stream.getvalue()


@cache
def nested_printer() -> Any:
    """Return the class of printers that write our text for the attributes inside the one they print."""
    from xdsl.printer import Printer  # it loads the lexer, and few kernels need it

    class NestedPrinter(Printer):
        def __init__(self, stream: StringIO, texts: AttributeText) -> None:
            super().__init__(stream)
            self.texts = texts

        def print_itself(self, attribute: Attribute) -> None:
            super().print_attribute(attribute)

        def print_attribute(self, attribute: Attribute) -> None:
            self.print_string(self.texts.of(attribute))

    return NestedPrinter


WRITERS: dict[type[Attribute], Callable[[AttributeText, Any], str]] = {
    IntegerType: lambda texts, type: integer_type_text(type),
    IndexType: lambda texts, type: "index",
    TensorType: write_tensor,
    PointerType: write_pointer,
    TensorDescType: lambda texts, type: f"!tt.tensordesc<{texts.of(type.block)}>",
    FunctionType: lambda texts, type: signature(texts, type.inputs, type.outputs),
    IntegerAttr: write_integer,
    FloatAttr: lambda texts, float: f"{scalar_text(float.value.data, float.type)} : {texts.of(float.type)}",
    StringAttr: lambda texts, attribute: quoted(attribute.data),
    UnitAttr: lambda texts, attribute: "unit",
    ArrayAttr: lambda texts, array: f"[{', '.join(array_element(texts, element) for element in array)}]",
    DictionaryAttr: lambda texts, attribute: dictionary(texts, attribute.data),
    DenseArrayBase: write_dense_array,
    DenseIntOrFPElementsAttr: lambda texts, dense: f"dense<{dense_elements(dense)}> : {texts.of(dense.type)}",
    SymbolRefAttr: write_symbol,
    **dict.fromkeys(FLOAT_WIDTHS, lambda texts, type: type.name),
}


# ---- Properties as what a builder takes and as what the text shows.
#
#     kind       in `make`             in the IR             where a form names it
#     enum       CacheModifier.CA      2 : i32               ca
#     integer    16                    16 : i32              16
#     flag       True                  unit                  its name
#     array      (1, 0)                array<i32: 1, 0>      [1, 0]
#     string     "x: "                 "x: "                 "x: "
#     symbol     "f"                   @f                    @f
#
# Any other attribute is itself in all three columns.


UNIT = UnitAttr()


class OpPrinter(Protocol):
    """The interface of the printer that the text of an op uses: names, attribute text, blocks, and the output before
    a region."""

    names: dict[SSAValue, str]
    texts: AttributeText
    out: list[str]
    indent: str

    def argument(self, argument: BlockArgument) -> str: ...
    def argument_location(self, location: LocationAttr) -> str: ...
    def block_name(self, block: Block) -> str: ...
    def region(
        self, region: Region, *, entry_arguments: bool = True, empty_block: bool = True, terminators: bool = True
    ) -> None: ...


def same(value: Any) -> Any:
    return value


@light_dataclass
class Codec:
    """One kind of property: what `make` takes, the attribute, the text."""

    description: str
    attribute: Callable[[Any], Attribute]
    value: Callable[[Any], Any]
    text: Callable[[OpPrinter, Any], str]
    parse: Callable[["Parser"], Any]  # the value, or None where the text has something else
    is_hashable: bool = True  # the value may be the key of a cache

    def read(self, parser: "Parser") -> Attribute | None:
        """The property, if it is here."""
        found = self.parse(parser)
        return None if found is None else self.attribute(found)

    def require(self, parser: "Parser") -> Attribute:
        """The property, which must be here."""
        position = parser.pos
        if (found := self.read(parser)) is None:
            found_text = parser.parse_optional_identifier() or ""
            parser.raise_error(f"expected {self.description}, but got {found_text}", position, parser.pos)
        return found


def is_true(attribute: Attribute | None) -> bool:
    """A boolean property that is set and not false; a unit attribute is true."""
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data != 0
    return isinstance(attribute, UnitAttr)


def integer_value(attribute: Any) -> int:
    return attribute.value.data


def attribute_text(printer: OpPrinter, attribute: Attribute) -> str:
    return printer.texts.of(attribute)


def keywords(
    spellings: tuple[str, ...], codes: Iterable[int], type: IntegerType, value: Callable[[int], Any] = int
) -> Codec:
    """An integer that the text shows as a keyword."""
    spelling_of = dict(zip(codes, spellings, strict=True))
    code_of = {spelling: code for code, spelling in spelling_of.items()}
    return Codec(
        f"one of {', '.join(spellings)}",
        lambda value: int_attr(value, type),
        lambda attribute: value(integer_value(attribute)),
        lambda printer, attribute: spelling_of[attribute.value.data],
        lambda parser: code_of.get(parser.parse_optional_keyword_in(spellings) or ""),
    )


@cache
def enum_codec(enum: type[Keyword]) -> Codec:
    return keywords(enum.keywords(), enum, i32, enum)


@cache
def flags_codec(enum: type[Keyword]) -> Codec:
    """An integer that the text shows as the keywords of its bits, ``local|global_read``, or of all of them."""
    code_of = {member.keyword: member.value for member in enum}
    word_of = {code: word for word, code in code_of.items()}
    bits = [code for code in word_of if code.bit_count() == 1]

    def text(printer: OpPrinter, attribute: Any) -> str:
        code = integer_value(attribute)
        return word_of.get(code) or "|".join(word_of[bit] for bit in bits if code & bit)

    def parse(parser: "Parser") -> int | None:
        words = [parser.parse_optional_keyword_in(tuple(code_of))]
        while words[0] is not None and parser.parse_optional_punctuation("|") is not None:
            words.append(parser.expect(lambda: parser.parse_optional_keyword_in(tuple(code_of)), another))
        return None if words[0] is None else reduce(or_, (code_of[word] for word in words if word is not None))

    listed = ", ".join(code_of)
    description, another = f"words of {listed}, with | in between", f"expected one of {listed} behind |"
    return Codec(description, lambda value: int_attr(int(value), i32), integer_value, text, parse)


def integer_codec(type: IntegerType, value: Callable[[Any], Any] = int) -> Codec:
    return Codec(
        "an integer",
        lambda value: int_attr(int(value), type),
        lambda attribute: value(integer_value(attribute)),
        lambda printer, attribute: str(integer_value(attribute)),
        lambda parser: parser.parse_optional_integer(),
    )


def flag_codec(name: str) -> Codec:
    """A unit attribute, shown as its name."""
    return Codec(
        name,
        lambda value: UNIT,
        is_true,
        lambda printer, attribute: name,
        lambda parser: parser.parse_optional_keyword(name),
    )


@cache
def symbol(name: str) -> SymbolRefAttr:
    return SymbolRefAttr(name)


def parse_symbol(parser: "Parser") -> str | None:
    found = parser.parse_optional_symbol_name()
    return None if found is None else found.data


ARRAY = Codec(
    "a list of integers",
    lambda values: i32_array(*values),
    array_values,
    lambda printer, attribute: f"[{', '.join(map(str, array_values(attribute)))}]",
    lambda parser: parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer),
)
STRING = Codec(
    "a string",
    string_attr,
    lambda attribute: attribute.data,
    attribute_text,
    lambda parser: parser.parse_optional_str_literal(),
)
SYMBOL = Codec("a symbol", symbol, lambda attribute: attribute.root_reference.data, attribute_text, parse_symbol)
ANY_ATTRIBUTE = Codec(
    "an attribute", same, same, attribute_text, lambda parser: parser.parse_optional_attribute(), is_hashable=False
)
I32_INTEGER = integer_codec(i32)


CODECS: dict[Any, Codec] = {StringAttr: STRING, SymbolRefAttr: SYMBOL, IntegerAttr: I32_INTEGER}


@cache
def codec_of(name: str, constraint: Any) -> Codec:
    """Return the codec of the property `name`, which is of a kind (`ir/constraints.py`) or of an attribute class."""
    if (known := getattr(constraint, "codec", None)) is not None:
        return known
    return flag_codec(name) if constraint is UnitAttr else CODECS.get(constraint, ANY_ATTRIBUTE)
