"""Show a layout: the owner of each element of a tensor, the elements of each thread, or their offsets in shared memory.

    tilework layout --shape 16x16 \\
        "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 2], order = [1, 0]}>"
    tilework layout "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>" --shape 8x64 --bits 16
    tilework layout -i kernel.ttgir -alias-names=blocked,mma -t "tensor<16x16xf16>" -use-hw-view
    tilework layout -i kernel.ttgir -alias-names=mma --shape 16x16 --svg mma.svg

If several threads hold an element, all of them are shown: T0:0|T4:0. Sizes that are not powers of two are laid out with
padding, which is marked (by dashes; by [9,1] in the hardware view; in grey in a picture). For shared memory, the bank
conflicts of a warp that reads a row or a column are also shown. Old spellings (`#triton_gpu.blocked`,
`#triton_nvidia_gpu...`) are accepted, too. An error prints one line to stderr and sets exit code 1.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path

from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tilework.errors import UsageError
from tilework.ir.encodings import EncodingAttr, encoding_attr
from tilework.ir.parser import ALIAS_DEFINITION, IRParser, IRSyntaxError
from tilework.layouts.banks import access_table
from tilework.layouts.encodings import Encoding, NvmmaShared, Shared
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.picture import draw, hardware_view, tensor_view
from tilework.layouts.to_linear import to_linear
from tilework.tools.cli import read_text

MISTAKES = (OSError,)

SINGLE_DASH = {
    "-alias-names": "--alias-names",
    "-use-hw-view": "--hw-view",
    "--use-hw-view": "--hw-view",
}
TENSOR = re.compile(r"tensor<((?:\d+x)+)([^,>]+)(?:,.*)?>", re.ASCII)
SHAPE = re.compile(r"\d+(?:x\d+)*", re.ASCII)
ELEMENT_BITS = re.compile(r"\D*(\d+)")
MOST_ELEMENTS = 1 << 20  # of a text that is still readable


def normalise(argv: Sequence[str]) -> list[str]:
    """Long options with one dash, as `triton-tensor-layout` has them."""
    result = []
    for arg in argv:
        name, has_value, value = arg.partition("=")
        if name in SINGLE_DASH:
            result.append(SINGLE_DASH[name] + has_value + value)
        elif has_value and name in ("-l", "-i", "-t", "-o"):
            result += [name, value]
        else:
            result.append(arg)
    return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("encoding", nargs="?", help="the layout: '#ttg.blocked<{...}>'")
    parser.add_argument("-l", dest="attribute", metavar="ENCODING", help="the layout; print only its view")
    parser.add_argument("-i", dest="file", help="a file of IR that defines layouts as aliases")
    parser.add_argument("--alias-names", default="", help="show only these aliases of the file, separated by commas")
    parser.add_argument("--shape", help="the shape of the tensor: 16x16")
    parser.add_argument("-t", dest="tensor", metavar="TYPE", help="the type of the tensor: 'tensor<16x16xf16>'")
    parser.add_argument(
        "--bits", type=int, help="the size of an element, for bank conflicts (default: of the type; 32)"
    )
    parser.add_argument(
        "--hw-view", action="store_true", help="show what each thread holds, or the element at each offset"
    )
    parser.add_argument("--svg", metavar="FILE", help="draw the layout into a file instead")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the text to a file")


def run(args: argparse.Namespace) -> int:
    """Print or draw the layouts that the options name, and return the exit code."""
    try:
        text = answer(args)
    except LayoutError as error:
        raise UsageError(" ".join(str(error).split())) from None
    if args.output:
        Path(args.output).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


def answer(args: argparse.Namespace) -> str:
    """The text of all views."""
    if sum(given is not None for given in (args.encoding, args.attribute, args.file)) != 1:
        raise LayoutError("give one layout: an encoding, -l ENCODING, or -i FILE")
    seen, bits = tensor_of(args)
    shape = tuple(1 << (size - 1).bit_length() for size in seen)
    sizes, laid_out = ("x".join(map(str, each)) for each in (seen, shape))
    note = "" if seen == shape else f"{sizes} is laid out as {laid_out}: the rest is padding, which no program sees\n"
    if args.file is not None:
        aliases = read_aliases(args.file, [name for name in args.alias_names.split(",") if name])
        if args.svg and len(aliases) != 1:
            raise LayoutError(f"one layout is drawn: name one of {', '.join(aliases)} with -alias-names")
        named = [(f"{name} = ", encoding, "\n") for name, encoding in aliases.items()]
    else:
        named = [("", read_encoding(args.encoding or args.attribute or ""), "")]
    pieces = []
    for name, encoding, after in named:
        layout = to_linear(encoding, shape)
        size = bits or (encoding.element_bit_width if isinstance(encoding, NvmmaShared) else 32)
        if args.svg:
            Path(args.svg).write_text(
                draw(layout, str(encoding_attr(encoding)), args.hw_view, size, seen if note else None)
            )
            pieces.append(f"wrote {args.svg}\n")
            continue
        view = (hardware_view if args.hw_view else tensor_view)(layout, seen if note else None)
        pieces.append(f"Print layout attribute: {name}{encoding_attr(encoding)}\n{view}{note}{after}")
        if args.encoding is not None and isinstance(encoding, Shared):
            pieces.append(conflicts_text(layout, size))
    return "".join(pieces)


def tensor_of(args: argparse.Namespace) -> tuple[tuple[int, ...], int | None]:
    """The shape, and the bits of an element where they are known."""
    if (args.shape is None) == (args.tensor is None):
        raise LayoutError("give the tensor: --shape 16x16, or -t 'tensor<16x16xf16>'")
    bits = args.bits
    if args.shape is not None:
        if not SHAPE.fullmatch(args.shape):
            raise LayoutError(f"'{args.shape}' is no shape: write 16x16")
        sizes = args.shape
    else:
        match = TENSOR.fullmatch(args.tensor.replace(" ", ""))
        if match is None:
            raise LayoutError(f"'{args.tensor}' is no tensor type: write tensor<16x16xf16>")
        sizes, element = match[1].rstrip("x"), match[2]
        found = ELEMENT_BITS.match(element)
        bits = bits or (64 if element.startswith("!tt.ptr") else int(found[1]) if found else None)
    if bits is not None and bits not in (1, 2, 4, 8, 16, 32, 64):
        raise LayoutError(f"elements have 8, 16, 32 or 64 bits, not {bits}")
    shape = tuple(map(int, sizes.split("x")))
    for size in shape:
        if size < 1:
            raise LayoutError(f"shape {sizes}: {size} is not positive")
    if prod(shape) > MOST_ELEMENTS:
        raise LayoutError(
            f"shape {sizes}: {prod(shape)} elements are too many to show; at most {MOST_ELEMENTS} are possible"
        )
    return shape, None if bits is None else max(8, bits)


def read_encoding(text: str) -> Encoding:
    """The encoding that `text` spells."""
    try:
        parser = IRParser(text, "layout")
        attribute = parser.parse_attribute()
        if parser._current_token.kind is not MLIRTokenKind.EOF:
            raise LayoutError(f"'{text[parser.pos :]}' follows the layout")
    except (ParseError, IRSyntaxError) as error:
        raise LayoutError(f"'{text}' is no layout: {message_of(error)}") from error
    if not isinstance(attribute, EncodingAttr):
        raise LayoutError(f"'{text}' is no layout")
    return attribute.data


def message_of(error: ParseError | IRSyntaxError) -> str:
    """The message of a parse error without the excerpt of the text."""
    return error.msg.strip() if isinstance(error, ParseError) else error.message


def read_aliases(file: str, wanted: Sequence[str]) -> dict[str, Encoding]:
    """The layouts that a file defines as aliases, in its order; only the wanted ones, if any are named."""
    text = read_text(file)
    found: dict[str, Encoding] = {}
    names = [match[1] for match in ALIAS_DEFINITION.finditer(text) if match[1].startswith("#")]
    for name in names:
        if wanted and name.removeprefix("#") not in wanted:
            continue
        try:
            attribute = IRParser(text, file)._alias(name)
        except (ParseError, IRSyntaxError) as error:
            raise LayoutError(f"{file}: {name}: {message_of(error)}") from error
        if isinstance(attribute, EncodingAttr):
            found[name] = attribute.data
    if missing := [name for name in wanted if f"#{name}" not in found]:
        raise LayoutError(f"{file} defines no layout {', '.join(missing)}")
    if not found:
        raise LayoutError(f"{file} defines no layout")
    return found


def conflicts_text(layout: LinearLayout, bits: int) -> str:
    """A table: a warp that reads along a row or a column, one element or 16 bytes for each lane."""
    head = f"bank conflicts of one warp ({bits}-bit elements)"
    lines = ["", f"{head}   one element per lane   16 bytes per lane"]
    for name, *counts in access_table(layout, bits):
        cells = ["-" if count is None else str(count) for count in counts]
        lines.append(f"{f'  {name}-wise':<{len(head)}}   {cells[0]:<20}   {cells[1]}")
    return "\n".join(lines) + "\n"
