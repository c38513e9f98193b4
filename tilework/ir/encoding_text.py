"""The text of encodings, both ways, on the plain values of `layouts/encodings.py`.

    blocked          #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
    slice            #ttg.slice<{dim = 1, parent = #blocked}>
    swizzled_shared  #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>

`encoding_parts` gives the text after the name in parts, because the text of a parent is for the printer to choose (an
alias, mostly); `READERS` reads the same. How blocks share a tensor (`CGALayout`) is left out when there is one block.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.parser import AttrParser

from tilework.layouts.encodings import (
    DISTRIBUTED,
    DISTRIBUTED_INS,
    SHARED,
    SHARED_INS,
    Bases,
    Blocked,
    DotOperand,
    Encoding,
    Linear,
    NvidiaMma,
    NvmmaShared,
    PaddedShared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout

Fields = dict[str, Any]
Parts = Sequence[str | Encoding]

# Writing


def ints(values: Sequence[int]) -> str:
    """``[1, 8]``."""
    return f"[{', '.join(map(str, values))}]"


def vectors(bases: Sequence[Sequence[int]]) -> str:
    """``[[0, 1], [1, 0]]``."""
    return f"[{', '.join(map(ints, bases))}]"


def cga_text(cga: Bases) -> str:
    """``, CGALayout = [[1, 0]]``, or nothing for one block."""
    return f", CGALayout = {vectors(cga)}" if cga else ""


def blocked_parts(e: Blocked) -> Parts:
    return (
        f"<{{sizePerThread = {ints(e.size_per_thread)}, threadsPerWarp = {ints(e.threads_per_warp)}, "
        f"warpsPerCTA = {ints(e.warps_per_cta)}, order = {ints(e.order)}{cga_text(e.cga)}}}>",
    )


def mma_parts(e: NvidiaMma) -> Parts:
    return (
        f"<{{versionMajor = {e.version_major}, versionMinor = {e.version_minor}, warpsPerCTA = {ints(e.warps_per_cta)}"
        f"{cga_text(e.cga)}, instrShape = {ints(e.instr_shape)}}}>",
    )


def linear_parts(e: Linear) -> Parts:
    return (f"<{{{bases_text(e.layout)}}}>",)


def dot_operand_parts(e: DotOperand) -> Parts:
    width = f", kWidth = {e.k_width}" if e.k_width else ""
    return f"<{{opIdx = {e.op_idx}, parent = ", e.parent, f"{width}}}>"


def swizzled_parts(e: SwizzledShared) -> Parts:
    return (
        f"<{{vec = {e.vec}, perPhase = {e.per_phase}, maxPhase = {e.max_phase}, order = {ints(e.order)}"
        f"{cga_text(e.cga)}}}>",
    )


def nvmma_parts(e: NvmmaShared) -> Parts:
    padded = ", fp4Padded = true" if e.fp4_padded else ""
    rank = f", rank = {e.rank}" if e.rank != 2 and not e.cga else ""
    return (
        f"<{{swizzlingByteWidth = {e.swizzling_byte_width}, transposed = {str(e.transposed).lower()}, "
        f"elementBitWidth = {e.element_bit_width}{padded}{rank}{cga_text(e.cga)}}}>",
    )


def bases_text(layout: LinearLayout) -> str:
    """``offset = [[0, 1]], block = []``."""
    return ", ".join(f"{name} = {vectors(bases)}" for name, bases in layout.bases)


def shared_linear_parts(e: SharedLinear) -> Parts:
    """Without the blocks where there is one."""
    return (f"<{{{bases_text(e.layout).removesuffix(', block = []')}}}, alignment = {e.alignment}>",)


def padded_parts(e: PaddedShared) -> Parts:
    pairs = ", ".join(f"{interval}:+{padding}" for interval, padding in e.intervals)
    order = row_major_order(e.layout)
    shape = [size for _, size in e.layout.outs]
    body = bases_text(e.layout) if order is None else f"order = {ints(order)}, shape = {ints(shape)}"
    return (f"<[{pairs}] {{{body}}}>",)


def row_major_order(layout: LinearLayout) -> tuple[int, ...] | None:
    """The order of the dimensions of an unswizzled layout of one block, fastest first; None for any other."""
    shape = [size for _, size in layout.outs]
    order: list[int] = []
    for basis in dict(layout.bases)["offset"]:
        moved = [dim for dim, value in enumerate(basis) if value]
        if moved and moved[0] not in order:
            order.append(moved[0])
    order += [dim for dim in reversed(range(len(shape))) if dim not in order]
    return tuple(order) if layout == plain_layout(tuple(order), tuple(shape)) else None


def plain_layout(order: tuple[int, ...], shape: tuple[int, ...]) -> LinearLayout:
    """Elements one after the other, dimension ``order[0]`` fastest."""
    bases = [
        tuple(1 << bit if axis == dim else 0 for axis in range(len(shape)))
        for dim in order
        for bit in range(shape[dim].bit_length() - 1)
    ]
    outs = tuple((f"dim{dim}", size) for dim, size in enumerate(shape))
    return LinearLayout((("offset", tuple(bases)), ("block", ())), outs)


PARTS: dict[type, Callable[[Any], Parts]] = {
    Blocked: blocked_parts,
    Slice: lambda e: (f"<{{dim = {e.dim}, parent = ", e.parent, "}>"),
    DotOperand: dot_operand_parts,
    NvidiaMma: mma_parts,
    Linear: linear_parts,
    SwizzledShared: swizzled_parts,
    NvmmaShared: nvmma_parts,
    SharedLinear: shared_linear_parts,
    PaddedShared: padded_parts,
}


def encoding_parts(encoding: Encoding) -> Parts:
    """The text after ``#ttg.name``: strings, and the parent where it is named."""
    return PARTS[type(encoding)](encoding)


# Reading


def read_value(parser: AttrParser) -> Any:
    """A number, a truth value, a list of these, or an encoding."""
    if (
        values := parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: read_value(parser))
    ) is not None:
        return tuple(values)
    if (flag := parser.parse_optional_boolean()) is not None:
        return flag
    if (number := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return number
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(encoding := getattr(attribute, "data", None), (*DISTRIBUTED, *SHARED)):
        parser.raise_error(f"an encoding is expected here, not {attribute}", position)
    return encoding


def read_entry(parser: AttrParser) -> tuple[str, Any]:
    """``sizePerThread = [1, 8]``."""
    name = parser.parse_identifier(" for a field of an encoding")
    parser.parse_punctuation("=")
    return name, read_value(parser)


def read_fields(parser: AttrParser) -> Fields:
    """``{sizePerThread = [1, 8], ...}``."""
    position = parser.pos
    entries = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: read_entry(parser))
    fields = dict(entries)
    if len(fields) != len(entries):
        parser.raise_error("a field of this encoding is given twice", position)
    return fields


def cga_of(fields: Fields, rank: int) -> Bases:
    """The blocks of a cluster; old fields give bases for the splits of each dimension, then for its copies."""
    if "CGALayout" in fields:
        return fields.pop("CGALayout")
    counts, splits = fields.pop("CTAsPerCGA", None), fields.pop("CTASplitNum", None)
    order = fields.pop("CTAOrder", tuple(reversed(range(rank))))
    if counts is None or splits is None:
        return ()
    bases: list[tuple[int, ...]] = []
    for dim in order:
        for bit in range(splits[dim].bit_length() - 1):
            bases.append(tuple(1 << bit if axis == dim else 0 for axis in range(rank)))
        bases += [(0,) * rank] * ((counts[dim] // splits[dim]).bit_length() - 1)
    return tuple(bases)


def make_blocked(fields: Fields) -> Encoding:
    order = fields.pop("order")
    size, threads, warps = (fields.pop(name) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA"))
    return Blocked(size, threads, warps, order, cga_of(fields, len(order)))


def make_slice(fields: Fields) -> Encoding:
    return Slice(fields.pop("dim"), fields.pop("parent"))


def make_dot_operand(fields: Fields) -> Encoding:
    fields.pop("isMMAv1Row", None)
    return DotOperand(fields.pop("opIdx"), fields.pop("parent"), fields.pop("kWidth", 0))


def make_mma(fields: Fields) -> Encoding:
    """Also ``#triton_gpu.mma<{version = 2, warpsPerCTA = [4, 1]}>``."""
    major = fields.pop("version", None) or fields.pop("versionMajor")
    minor, warps = fields.pop("versionMinor", 0), fields.pop("warpsPerCTA")
    instruction = fields.pop("instrShape", (16, 8))
    return NvidiaMma(major, minor, warps, instruction, cga_of(fields, len(warps)))


def make_swizzled(fields: Fields) -> Encoding:
    order = fields.pop("order")
    vec, per_phase, max_phase = (fields.pop(name) for name in ("vec", "perPhase", "maxPhase"))
    return SwizzledShared(vec, per_phase, max_phase, order, cga_of(fields, len(order)))


def make_old_shared(fields: Fields) -> Encoding:
    """``#triton_gpu.shared``: swizzled by the compiler, or by the hardware with ``hasLeadingOffset = true``."""
    if not fields.pop("hasLeadingOffset", False):
        return make_swizzled(fields)
    order, vec, max_phase = fields.pop("order"), fields.pop("vec"), fields.pop("maxPhase")
    fields.pop("perPhase")
    swizzle = 16 * max_phase if max_phase > 1 else 0
    cga = cga_of(fields, len(order))
    return NvmmaShared(swizzle, order[0] == 0, 128 // vec, False, len(order), cga)


def make_nvmma(fields: Fields) -> Encoding:
    width, bits = fields.pop("swizzlingByteWidth"), fields.pop("elementBitWidth", 0)
    transposed, padded = fields.pop("transposed", False), fields.pop("fp4Padded", False)
    rank = fields.pop("rank", len(fields.get("CTAsPerCGA", ())) or 2)
    cga = cga_of(fields, rank)
    return NvmmaShared(width, transposed, bits, padded, len(cga[0]) if cga else rank, cga)


def layout_from(names: Sequence[str], bases: Mapping[str, Bases]) -> LinearLayout:
    """The layout with these bases; each dimension is as large as they reach."""
    given = tuple((name, tuple(bases.get(name, ()))) for name in names)
    ranks = {len(basis) for _, vectors in given for basis in vectors}
    if len(ranks) != 1:
        raise LayoutError("the bases of a layout have one rank" if ranks else "a layout needs at least one basis")
    return LinearLayout(given, [f"dim{dim}" for dim in range(ranks.pop())])


def make_linear(fields: Fields) -> Encoding:
    return Linear(layout_from(DISTRIBUTED_INS, {name: fields.pop(name) for name in DISTRIBUTED_INS}))


def make_padded(intervals: tuple[tuple[int, int], ...], fields: Fields) -> Encoding:
    if "order" in fields:
        return PaddedShared(intervals, plain_layout(fields.pop("order"), fields.pop("shape")))
    return PaddedShared(
        intervals, layout_from(SHARED_INS, {"offset": fields.pop("offset"), "block": fields.pop("block", ())})
    )


def finish(parser: AttrParser, position: int, make: Callable[[Fields], Encoding], fields: Fields) -> Encoding:
    """The encoding, or an error at the place where it is written."""
    try:
        encoding = make(fields)
    except KeyError as error:
        parser.raise_error(f"this encoding needs the field {error.args[0]}", position)
    except (LayoutError, TypeError, AttributeError, IndexError) as error:
        parser.raise_error(str(error), position)
    if fields:
        parser.raise_error(f"unexpected key: {', '.join(fields)}", position)
    return encoding


def reader(make: Callable[[Fields], Encoding]) -> Callable[[AttrParser], Encoding]:
    def read(parser: AttrParser) -> Encoding:
        """``<{...}>``."""
        position = parser.pos
        with parser.in_angle_brackets():
            fields = read_fields(parser)
        return finish(parser, position, make, fields)

    return read


def read_shared_linear(parser: AttrParser) -> Encoding:
    """``<{offset = [[0, 1]], block = []}, alignment = 16>``."""
    position = parser.pos
    with parser.in_angle_brackets():
        fields = read_fields(parser)
        alignment = 16
        if parser.parse_optional_punctuation(","):
            parser.parse_keyword("alignment")
            parser.parse_punctuation("=")
            alignment = parser.parse_integer(allow_boolean=False)

    def make(fields: Fields) -> Encoding:
        bases = {"offset": fields.pop("offset"), "block": fields.pop("block", ())}
        return SharedLinear(layout_from(SHARED_INS, bases), alignment)

    return finish(parser, position, make, fields)


def read_padded(parser: AttrParser) -> Encoding:
    """``<[16:+4] {order = [1, 0], shape = [16, 32]}>``."""

    def read_pair() -> tuple[int, int]:
        interval = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation(":")
        parser.parse_punctuation("+")
        return interval, parser.parse_integer(allow_boolean=False)

    position = parser.pos
    with parser.in_angle_brackets():
        intervals = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, read_pair))
        fields = read_fields(parser)
    return finish(parser, position, lambda fields: make_padded(intervals, fields), fields)


READERS: dict[str, Callable[[AttrParser], Encoding]] = {
    "ttg.blocked": reader(make_blocked),
    "ttg.slice": reader(make_slice),
    "ttg.dot_op": reader(make_dot_operand),
    "ttg.nvidia_mma": reader(make_mma),
    "ttg.mma": reader(make_mma),
    "ttg.linear": reader(make_linear),
    "ttg.swizzled_shared": reader(make_swizzled),
    "ttg.shared": reader(make_old_shared),
    "ttg.nvmma_shared": reader(make_nvmma),
    "ttg.shared_linear": read_shared_linear,
    "ttg.padded_shared": read_padded,
}
