"""Properties as what a builder takes and as what the text shows.

    kind       in `make`             in the IR             where a form names it
    enum       CacheModifier.CA      2 : i32               ca
    integer    16                    16 : i32              16
    flag       True                  unit                  its name
    array      (1, 0)                array<i32: 1, 0>      [1, 0]
    string     "x: "                 "x: "                 "x: "
    symbol     "f"                   @f                    @f

Any other attribute is itself in all three columns.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from tilework.ir.attr_text import AttributeText
from tilework.ir.enums import Keyword
from tilework.ir.types import array_values, i32, i32_array, int_attr, string_attr
from tilework.light_dataclass import light_dataclass

if TYPE_CHECKING:
    from xdsl.parser import Parser

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
