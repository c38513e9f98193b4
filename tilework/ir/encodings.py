"""Encodings as attributes, and their text: the part after the comma of ``tensor<16x32xf32, #blocked>``.

The values are those of `layouts/encodings.py`; an attribute wraps one and adds only its text:

    >>> from tilework.layouts.encodings import Blocked
    >>> blocked = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
    >>> str(encoding_attr(blocked))
    '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>'
    >>> encoding_attr(blocked) is encoding_attr(Blocked((1, 4), (4, 8), (4, 1), (1, 0)))
    True

Passes read the plain value of a type with `encoding_of` and change it with `with_encoding`. In a module the text is
shortened by aliases: those with an `ALIAS_STEM` are defined at the top (`#blocked`, `#mma`, `#shared` ...), slices and
dot operands are written in full, with their parent by name.

    slice            #ttg.slice<{dim = 1, parent = #blocked}>
    shared_linear    #ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>
    padded_shared    #ttg.padded_shared<[16:+4] {order = [1, 0], shape = [16, 32]}>

`encoding_parts` returns the text after the name in parts, because the printer chooses the text of a parent (an alias,
mostly); `read_encoding` reads the same. A linear layout is written as its bases, that of padded memory without a
swizzle as an order and a shape. The distribution over the blocks of a cluster (`CGALayout`) is left out when there is
one block.

Older names and fields are read too:

    #triton_gpu.shared<{vec = 8, ..., hasLeadingOffset = true}>      #ttg.nvmma_shared
    #triton_gpu.mma<{version = 2, warpsPerCTA = [4, 1]}>             #ttg.nvidia_mma
    CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]     CGALayout = [[1, 0]]
    #ttg.amd_wmma<{version = 2, warpsPerCTA = [2, 2]}>               ctaLayout = {warp = [[0, 1], [1, 0]]}
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from tilework.ir.attr_text import WRITERS, AttributeText
from tilework.ir.types import PointerType, Tensor, TensorDescType, shape_of, tensor_type, tensordesc_type
from tilework.layouts.amd import TileGrid, tile_grid  # has kinds too
from tilework.layouts.construct import cga_from
from tilework.layouts.encodings import (
    DISTRIBUTED_INS,
    KINDS,
    SHARED_INS,
    Bases,
    Distributed,
    DotOperand,
    Encoding,
    Linear,
    NvidiaMma,
    PaddedShared,
    Shared,
    SharedLinear,
    SwizzledShared,
)
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import first_moved, to_linear

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

Fields = dict[str, Any]
OLD_NAMES = ("mma", "shared")


def modernize_mma(fields: Fields) -> str:
    if version := fields.pop("version", None):
        fields["versionMajor"] = version
    fields.setdefault("versionMinor", 0)
    fields.setdefault("instrShape", (16, 8))
    return "nvidia_mma"


def modernize_dot_operand(fields: Fields) -> str:
    fields.pop("isMMAv1Row", None)
    return "dot_op"


def modernize_shared(fields: Fields) -> str:
    """Swizzled by the compiler, or by the hardware with ``hasLeadingOffset = true``."""
    if not fields.pop("hasLeadingOffset", False):
        return "swizzled_shared"
    order, vec, max_phase = fields.pop("order"), fields.pop("vec"), fields.pop("maxPhase")
    fields.pop("perPhase")
    fields["swizzlingByteWidth"] = 16 * max_phase if max_phase > 1 else 0
    fields["elementBitWidth"] = 128 // vec
    fields["transposed"] = order[0] == 0
    fields["rank"] = len(order)
    return "nvmma_shared"


def modernize_nvmma(fields: Fields) -> str:
    fields.setdefault("transposed", False)
    if fields.get("elementBitWidth") == 0:
        raise LayoutError("elementBitWidth must be non-zero")
    if "CTAsPerCGA" in fields:
        fields.setdefault("rank", len(fields["CTAsPerCGA"]))
    return "nvmma_shared"


def modernize_wmma(fields: Fields) -> str:
    """A grid of warps and tiles, of compilers before 3.7; without ``isTranspose`` before 3.3."""
    fields.setdefault("isTranspose", False)
    if "warpsPerCTA" in fields:
        fields["ctaLayout"] = tile_grid(fields.pop("warpsPerCTA"), fields.pop("tilesPerWarp", ()))
    elif "ctaLayout" in fields:
        fields["ctaLayout"] = read_grid(fields["ctaLayout"])
    return "amd_wmma"


def read_grid(value: Any) -> TileGrid:
    """The grid with the bases of ``{register = [[1, 0]], warp = [[0, 1]]}``."""

    def are_bases(vectors: Any) -> bool:
        return type(vectors) is tuple and all(
            type(vector) is tuple and all(type(entry) is int for entry in vector)
            for vector in cast("tuple[Any, ...]", vectors)
        )

    if type(value) is not dict or (given := cast(Fields, value)).keys() - {field.name for field in fields(TileGrid)}:
        raise LayoutError("ctaLayout must be {register = ..., warp = ...}, either of which may be left out")
    for name, vectors in given.items():
        if not are_bases(vectors):
            raise LayoutError(f"{name} of ctaLayout must be a list of lists of integers")
    return TileGrid(**given)


RULES: dict[str, Callable[[Fields], str]] = {
    "amd_wmma": modernize_wmma,
    "dot_op": modernize_dot_operand,
    "mma": modernize_mma,
    "nvidia_mma": modernize_mma,
    "nvmma_shared": modernize_nvmma,
    "shared": modernize_shared,
}


def modernize(name: str, fields: Fields) -> str:
    """The name that the encoding has today; `fields` become those of today."""
    name = RULES[name](fields) if name in RULES else name
    counts, splits, order = (fields.pop(old, None) for old in ("CTAsPerCGA", "CTASplitNum", "CTAOrder"))
    if counts is not None and splits is not None and "CGALayout" not in fields:
        fields["CGALayout"] = cga_from(counts, splits, order or tuple(reversed(range(len(counts)))))
    return name


Parts = Sequence[str | Encoding]
BY_NAME = {kind.NAME: kind for kind in KINDS}
NAMES = {f"ttg.{name}": name for name in (*BY_NAME, *OLD_NAMES)}
"""The encodings that can be read, by the name of their attribute."""


@cache
def written_fields(kind: type[Encoding]) -> tuple[tuple[str, Field[Any]], ...]:
    """Each field of `kind` and how it is called in text: ``sizePerThread``."""
    camel = lambda name: re.sub("_(.)", lambda found: found[1].upper(), name)  # noqa: E731
    return tuple((field.metadata.get("name") or camel(field.name), field) for field in fields(kind))  # type: ignore


def unwritten(field: Field[Any], known: Fields) -> Any:
    """The value of a field that is not written, or MISSING."""
    implied = field.metadata.get("implied")
    return field.default if implied is None else implied(known)


# Writing


def encoding_parts(encoding: Encoding) -> Parts:
    """The text after ``#ttg.name``: strings, and the parent where it is named."""
    known = vars(encoding)
    before: list[str | Encoding] = ["<"]
    inside: list[str | Encoding] = []
    after = ""
    for name, field in written_fields(type(encoding)):
        value = known[field.name]
        if isinstance(value, LinearLayout):
            inside.append(layout_text(type(encoding), value))
        elif field.name == "intervals":
            before = [f"<[{', '.join(f'{interval}:+{padding}' for interval, padding in value)}] "]
        elif field.metadata.get("outside"):
            after = f", {name} = {value}"
        elif value != unwritten(field, known):
            inside += [", "] if inside else []
            inside += [f"{name} = ", value] if isinstance(value, Encoding) else [f"{name} = {value_text(value)}"]
    return [*before, "{", *inside, "}", after, ">"]


def value_text(value: Any) -> str:
    """``[[0, 1], [1, 0]]``, ``true``, ``8``."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, TileGrid):
        given = ((name, bases) for name, bases in (("register", value.register), ("warp", value.warp)) if bases)
        return f"{{{', '.join(f'{name} = {value_text(bases)}' for name, bases in given)}}}"
    return str(value).lower()


def layout_text(kind: type[Encoding], layout: LinearLayout) -> str:
    """``offset = [[0, 1]], block = []``, or ``order = [1, 0], shape = [16, 32]``."""
    if kind is PaddedShared:
        order, shape = first_moved(layout, "offset"), tuple(size for _, size in layout.outs)
        if layout == plain_layout(order, shape):
            return f"order = {value_text(order)}, shape = {value_text(shape)}"
    text = ", ".join(f"{name} = {value_text(bases)}" for name, bases in layout.bases)
    return text.removesuffix(", block = []") if kind is SharedLinear else text


def plain_layout(order: tuple[int, ...], shape: tuple[int, ...]) -> LinearLayout:
    """Elements one after the other, dimension ``order[0]`` fastest."""
    return to_linear(SwizzledShared(1, 1, 1, order), shape)


# Reading


def read_value(parser: "AttrParser") -> Any:
    """An integer, a boolean, a list of these, ``{warp = [[0, 1]]}`` as a dictionary, or an encoding."""
    position = parser.pos
    if (
        entries := parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, lambda: read_entry(parser))
    ) is not None:
        return unique(entries, parser, position)
    if (
        values := parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: read_value(parser))
    ) is not None:
        return tuple(values)
    if (flag := parser.parse_optional_boolean()) is not None:
        return flag
    if (integer := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return integer
    attribute = parser.parse_attribute()
    if not isinstance(encoding := getattr(attribute, "data", None), Encoding):
        parser.raise_error(f"an encoding is expected here, not {attribute}", position)
    return encoding


def read_entry(parser: "AttrParser") -> tuple[str, Any]:
    """``sizePerThread = [1, 8]``."""
    name = parser.parse_identifier(" for a field of an encoding")
    parser.parse_punctuation("=")
    return name, read_value(parser)


def read_interval(parser: "AttrParser") -> tuple[int, int]:
    """``16:+4``."""
    interval = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation(":")
    parser.parse_punctuation("+")
    return interval, parser.parse_integer(allow_boolean=False)


def read_fields(name: str, parser: "AttrParser") -> Fields:
    """``<{sizePerThread = [1, 8], ...}>``, with the text before or after the braces."""
    position = parser.pos
    entries: list[tuple[str, Any]] = []
    known = written_fields(BY_NAME[name]) if name in BY_NAME else ()
    outside = [field.name for _, field in known if field.metadata.get("outside")]
    with parser.in_angle_brackets():
        if outside == ["intervals"]:
            pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: read_interval(parser))
            entries.append(("intervals", tuple(pairs)))
        entries += parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: read_entry(parser))
        if outside == ["alignment"] and parser.parse_optional_punctuation(","):
            entries.append(read_entry(parser))
    return unique(entries, parser, position)


def unique(entries: Sequence[tuple[str, Any]], parser: "AttrParser", position: int) -> Fields:
    """The fields by name, or raise an error if there are two of one name."""
    if len(dict(entries)) != len(entries):
        parser.raise_error("a field of this encoding is given twice", position)
    return dict(entries)


def read_encoding(name: str, parser: "AttrParser") -> Encoding:
    """``<{...}>`` of ``#ttg.name``."""
    position = parser.pos
    return make_encoding(name, read_fields(name, parser), parser, position)


def make_encoding(name: str, given: Fields, parser: "AttrParser", position: int) -> Encoding:
    """The encoding with these fields, or raise an error at its location."""
    try:
        kind = BY_NAME[modernize(name, given)]
        encoding = kind(**dict(field_values(kind, given)))
    except KeyError as error:
        parser.raise_error(f"this encoding needs the field {error.args[0]}", position)
    except (LayoutError, TypeError, AttributeError, IndexError) as error:
        parser.raise_error(str(error), position)
    if given:
        parser.raise_error(f"unexpected key: {', '.join(given)}", position)
    return encoding


def field_values(kind: type[Encoding], given: Fields) -> Iterator[tuple[str, Any]]:
    """The fields of `kind` by their names there; what is used of `given` is taken out."""
    known: Fields = {}
    for name, field in written_fields(kind):
        if field.name == "layout":
            known[field.name] = read_layout(kind, given)
        elif name in given or field.default is MISSING:
            known[field.name] = given.pop(name)
    for _, field in written_fields(kind):
        if field.name not in known:
            known[field.name] = unwritten(field, {"cga": (), **known})
    yield from known.items()


def read_layout(kind: type[Encoding], given: Fields) -> LinearLayout:
    """The layout with these bases; each dimension is as large as they reach."""
    if kind is PaddedShared and "order" in given:
        return plain_layout(given.pop("order"), given.pop("shape"))
    names = DISTRIBUTED_INS if kind is Linear else SHARED_INS
    if kind is not Linear:
        given.setdefault("block", ())
    bases: list[tuple[str, Bases]] = [(name, given.pop(name)) for name in names]
    ranks = {len(basis) for _, vectors in bases for basis in vectors}
    if len(ranks) != 1:
        raise LayoutError("the bases of a layout have one rank" if ranks else "a layout needs at least one basis")
    return LinearLayout(bases, [f"dim{dim}" for dim in range(ranks.pop())])


class EncodingAttr(Data[Any]):
    """The base of all encodings; `data` is the value of `layouts/encodings.py`."""

    def __hash__(self) -> int:
        return hash(self.data)

    @classmethod
    def parse_parameter(cls, parser: "AttrParser") -> Any:
        return read_encoding(cls.name.removeprefix("ttg."), parser)

    def print_parameter(self, printer: "Printer") -> None:
        for part in encoding_parts(self.data):
            if isinstance(part, str):
                printer.print_string(part)
            else:
                printer.print_attribute(encoding_attr(part))


def write_encoding(texts: AttributeText, attribute: EncodingAttr) -> str:
    """``#ttg.slice<{dim = 1, parent = #blocked}>``."""
    parts = encoding_parts(attribute.data)
    written = (part if isinstance(part, str) else texts.of(encoding_attr(part)) for part in parts)
    return f"#{attribute.name}{''.join(written)}"


def attribute_class(kind: type[Encoding]) -> type[EncodingAttr]:
    """The attribute of a kind of encodings: ``BlockedAttr`` for ``Blocked``."""
    body = {"name": f"ttg.{kind.NAME}", "__hash__": EncodingAttr.__hash__, "__doc__": kind.__doc__}
    if kind.ALIAS is not None:
        body["ALIAS_STEM"] = kind.ALIAS
    return irdl_attr_definition(type(f"{kind.__name__}Attr", (EncodingAttr,), {"__module__": __name__, **body}))


@irdl_attr_definition
class SharedMemoryAttr(ParametrizedAttribute):
    """The memory space of a block: ``#ttg.shared_memory``, written ``#smem``."""

    name = "ttg.shared_memory"
    ALIAS_STEM: ClassVar[str] = "smem"


CLASSES: dict[type[Encoding], type[EncodingAttr]] = {kind: attribute_class(kind) for kind in KINDS}
ENCODING_CLASSES = frozenset(CLASSES.values())
WRITERS.update(dict.fromkeys(ENCODING_CLASSES, write_encoding))
SHARED_MEMORY = SharedMemoryAttr()


@cache
def encoding_attr(encoding: Encoding) -> EncodingAttr:
    """The attribute of `encoding`, always the same object."""
    return CLASSES[type(encoding)](encoding)


def encoding_of(type: Attribute) -> Encoding | None:
    """The encoding of a tensor, a memory descriptor, or of the block that a pointer or tensor descriptor names."""
    if type.__class__ is PointerType:
        type = cast(PointerType, type).pointee
    elif type.__class__ is TensorDescType:
        type = cast(TensorDescType, type).block
    attribute: Any = getattr(type, "encoding", None)
    return attribute.data if attribute.__class__ in ENCODING_CLASSES else None


def distributed_of(type: Attribute) -> Distributed | None:
    """Return the layout of a tensor in registers; None for memory, scalars and tensors without an encoding."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, Distributed) else None


def spread_of(type: Attribute) -> Distributed:
    """The same of a tensor that is known to be spread over threads."""
    encoding = distributed_of(type)
    assert encoding is not None, f"{type} has no layout over threads"
    return encoding


def tensor_core_of(type: Attribute) -> NvidiaMma | None:
    """The instruction that gives a tensor as its result, if tensor cores do."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, NvidiaMma) else None


def shared_of(type: Attribute) -> Shared | None:
    """Return the layout of a memory descriptor, or of the blocks of a tensor descriptor, in shared memory."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, Shared) else None


def dot_operand_of(type: Attribute) -> DotOperand | None:
    """The layout of a tensor that is laid out as an operand of a dot."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, DotOperand) else None


def operand_index(type: Attribute) -> int | None:
    """0 or 1 for a tensor that is laid out as operand A or B of a dot."""
    return None if (encoding := dot_operand_of(type)) is None else encoding.op_idx


def is_accumulator(type: Attribute) -> bool:
    """Return True if a tensor is laid out as tensor cores give their results."""
    return (encoding := distributed_of(type)) is not None and encoding.is_accumulator


@cache
def with_encoding(type: Attribute, encoding: Encoding | None) -> Tensor:
    """The tensor type `type` laid out in another way; None takes the encoding away."""
    assert isinstance(type, TensorType), type
    attribute = NoneAttr() if encoding is None else encoding_attr(encoding)
    return tensor_type(shape_of(type), type.element_type, attribute)


@cache
def descriptor_with_encoding(type: Attribute, encoding: Encoding | None) -> TensorDescType:
    """``!tt.tensordesc<tensor<64x64xf16>>`` with a shared encoding for its block."""
    assert isinstance(type, TensorDescType), type
    return tensordesc_type(with_encoding(type.block, encoding))


@cache
def layout_of(type: Attribute) -> LinearLayout:
    """The linear layout of a tensor or memory descriptor; of the last dimensions of its allocation for the latter."""
    encoding = encoding_of(type)
    assert encoding is not None, f"{type} has no encoding"
    shape = getattr(type, "alloc_dims", None) or shape_of(type)
    return to_linear(encoding, shape[len(shape) - encoding.rank :])


ENCODING_ATTRIBUTES = cast("list[type[Attribute]]", [*CLASSES.values(), SharedMemoryAttr])
