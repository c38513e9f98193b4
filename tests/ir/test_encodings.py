"""Encodings as attributes: their text both ways, older spellings, aliases, and what is refused."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilework.ir.encodings import (
    descriptor_with_encoding,
    encoding_attr,
    encoding_of,
    layout_of,
    with_encoding,
)
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.ttg import memdesc_type
from tilework.ir.types import f16, f32, pointer_type, tensor_type, tensordesc_type
from tilework.layouts.encodings import (
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
from tilework.layouts.linear import LinearLayout

TILE = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
TILE_TEXT = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MMA = NvidiaMma(2, 0, (4, 1), (16, 8))
MMA_TEXT = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
OFFSETS = LinearLayout({"offset": [(0, 1), (0, 2), (1, 2), (2, 0)], "block": []}, {"dim0": 4, "dim1": 4})
PLAIN = LinearLayout({"offset": [(0, 1), (1, 0)], "block": []}, {"dim0": 2, "dim1": 2})

TEXTS: list[tuple[Encoding, str]] = [
    (TILE, TILE_TEXT),
    (
        Blocked((1, 4), (4, 8), (4, 1), (1, 0), ((1, 0), (0, 0))),
        TILE_TEXT.replace("[1, 0]}", "[1, 0], CGALayout = [[1, 0], [0, 0]]}"),
    ),
    (Slice(1, TILE), f"#ttg.slice<{{dim = 1, parent = {TILE_TEXT}}}>"),
    (DotOperand(0, MMA, 2), f"#ttg.dot_op<{{opIdx = 0, parent = {MMA_TEXT}, kWidth = 2}}>"),
    (DotOperand(1, TILE), f"#ttg.dot_op<{{opIdx = 1, parent = {TILE_TEXT}}}>"),
    (MMA, MMA_TEXT),
    (
        NvidiaMma(3, 0, (4, 1), (16, 64, 16), cga=((1, 0),)),
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], CGALayout = [[1, 0]], "
        "instrShape = [16, 64, 16]}>",
    ),
    (
        Linear(
            LinearLayout(
                {"register": [(0, 1)], "lane": [(0, 2), (0, 4), (0, 8), (1, 0), (2, 0)], "warp": [(4, 0)], "block": []},
                {"dim0": 8, "dim1": 16},
            )
        ),
        (
            "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0]], "
            "block = []}>"
        ),
    ),
    (SwizzledShared(8, 1, 8, (1, 0)), "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"),
    (
        NvmmaShared(128, False, 16),
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
    ),
    (
        NvmmaShared(64, True, 8, True, 3),
        (
            "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8, fp4Padded = true, "
            "rank = 3}>"
        ),
    ),
    (
        NvmmaShared(64, True, 8, False, 2, ((1, 0),)),
        "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8, CGALayout = [[1, 0]]}>",
    ),
    (SharedLinear(OFFSETS, 128), "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 2], [2, 0]]}, alignment = 128>"),
    (
        SharedLinear(LinearLayout({"offset": [(1,), (2,)], "block": [(4,)]}, {"dim0": 8})),
        "#ttg.shared_linear<{offset = [[1], [2]], block = [[4]]}, alignment = 16>",
    ),
    (PaddedShared(((16, 4), (32, 8)), PLAIN), "#ttg.padded_shared<[16:+4, 32:+8] {order = [1, 0], shape = [2, 2]}>"),
    (
        PaddedShared(((16, 4),), OFFSETS),
        "#ttg.padded_shared<[16:+4] {offset = [[0, 1], [0, 2], [1, 2], [2, 0]], block = []}>",
    ),
]


def read(text: str) -> Encoding:
    module = parse_module(f"module attributes {{x.e = {text}}} {{}}")
    attribute = module.attributes["x.e"]
    return attribute.data  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("encoding", "text"), TEXTS, ids=[text[:40] for _, text in TEXTS])
def test_text_both_ways(encoding: Encoding, text: str) -> None:
    assert str(encoding_attr(encoding)) == text
    assert read(text) == encoding
    assert parse_module(f"module attributes {{x.e = {text}}} {{}}").attributes["x.e"] is encoding_attr(encoding)


OLD = [
    (
        "#triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], "
        "CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}>",
        TILE,
    ),
    (
        "#triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], "
        "CTAsPerCGA = [4, 2], CTASplitNum = [2, 2], CTAOrder = [0, 1]}>",
        Blocked((1, 4), (4, 8), (4, 1), (1, 0), ((1, 0), (0, 0), (0, 1))),
    ),
    (
        "#triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = false}>",
        SwizzledShared(8, 1, 8, (1, 0)),
    ),
    (
        "#triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1], hasLeadingOffset = true}>",
        NvmmaShared(64, True, 16),
    ),
    ("#triton_gpu.mma<{version = 2, warpsPerCTA = [4, 1]}>", MMA),
    (
        "#triton_gpu.dot_op<{opIdx = 0, parent = #triton_gpu.mma<{versionMajor = 2, versionMinor = 0, "
        "warpsPerCTA = [4, 1]}>, kWidth = 2}>",
        DotOperand(0, MMA, 2),
    ),
]


@pytest.mark.parametrize(("text", "encoding"), OLD, ids=[str(number) for number in range(len(OLD))])
def test_old_spellings(text: str, encoding: Encoding) -> None:
    assert read(text) == encoding


BAD = [
    ("Every element in threadsPerWarp must be a power of two.", TILE_TEXT.replace("[4, 8]", "[4, 6]")),
    ("must all have the same rank", TILE_TEXT.replace("[4, 8]", "[8]")),
    ("order must be a permutation of 0..(rank-1), but was [1, 1]",
     TILE_TEXT.replace("order = [1, 0]", "order = [1, 1]")),
    ("this encoding needs the field order", TILE_TEXT.replace(", order = [1, 0]", "")),
    ("unexpected key: colour", TILE_TEXT.replace("}>", ", colour = 3}>")),
    ("a field of this encoding is given twice", TILE_TEXT.replace("}>", ", order = [1, 0]}>")),
    ("an encoding is expected here", "#ttg.slice<{dim = 1, parent = @x}>"),
    ("parent layout must have at least rank >= 2", (f"#ttg.slice<{{dim = 0, parent = #ttg.slice<{{dim = 0, "
                                                    f"parent = {TILE_TEXT}}}>}}>")),
    ("must be less than the parent rank", f"#ttg.slice<{{dim = 2, parent = {TILE_TEXT}}}>"),
    ("opIdx parameter can be 0 or 1", f"#ttg.dot_op<{{opIdx = 2, parent = {MMA_TEXT}, kWidth = 2}}>"),
    ("kWidth parameter is mandatory", f"#ttg.dot_op<{{opIdx = 1, parent = {MMA_TEXT}}}>"),
    ("a layout needs at least one basis", "#ttg.linear<{register = [], lane = [], warp = [], block = []}>"),
    ("the bases of a layout have one rank", "#ttg.linear<{register = [[1]], lane = [[1, 0]], warp = [], block = []}>"),
    ("elementBitWidth must be non-zero",
     "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 0}>"),
    ("swizzlingByteWidth must be 0, 32, 64, or 128",
     "#ttg.nvmma_shared<{swizzlingByteWidth = 48, transposed = false, elementBitWidth = 16}>"),
    ("Broadcasting in offset dimension is not supported.",
     "#ttg.padded_shared<[64:+4] {offset = [[0, 1], [0, 0], [1, 0]], block = []}>"),
    ("In a distributed layout, each base must move in at most one dimension",
     "#ttg.linear<{register = [[1, 1]], lane = [], warp = [], block = []}>"),
    ("alignment = 3 must be a power of two", "#ttg.shared_linear<{offset = [[1]]}, alignment = 3>"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), BAD, ids=[case[0] for case in BAD])
def test_what_is_refused(message: str, text: str) -> None:
    with pytest.raises(IRSyntaxError, match="error:") as caught:
        read(text)
    assert message in caught.value.message


def test_aliases_have_the_names_of_the_kind() -> None:
    module = ModuleOp([])
    for number, (encoding, _) in enumerate(TEXTS):
        module.attributes[f"x.e{number:02}"] = encoding_attr(encoding)
    text = print_module(module)
    names = [line.split(" = ")[0] for line in text.splitlines() if line.startswith("#")]
    assert names == [
        *("#blocked", "#blocked1", "#linear", "#mma", "#mma1"),
        *("#shared", "#shared1", "#shared2", "#shared3", "#shared4", "#shared5", "#shared6", "#shared7"),
    ]
    assert "x.e02 = #ttg.slice<{dim = 1, parent = #blocked}>" in text
    assert "x.e03 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>" in text
    assert parse_module(text).attributes == module.attributes


def test_types_and_their_encodings() -> None:
    bare = tensor_type((64, 64), f32)
    laid = with_encoding(bare, TILE)
    assert encoding_of(bare) is None and encoding_of(f32) is None
    assert encoding_of(laid) == TILE and with_encoding(laid, None) == bare
    assert laid is with_encoding(bare, Blocked((1, 4), (4, 8), (4, 1), (1, 0)))
    assert encoding_of(pointer_type(laid)) == TILE
    shared = SwizzledShared(8, 1, 8, (1, 0))
    assert encoding_of(descriptor_with_encoding(tensordesc_type(bare), shared)) == shared
    assert encoding_of(memdesc_type((3, 64, 64), f16, shared)) == shared


def test_the_layout_of_memory_is_that_of_one_buffer() -> None:
    shared = SwizzledShared(8, 1, 8, (1, 0))
    whole, part = memdesc_type((3, 64, 64), f16, shared), memdesc_type((64, 16), f16, shared, alloc_shape=(64, 64))
    assert layout_of(whole) == layout_of(part)
    assert dict(layout_of(whole).outs) == {"dim0": 64, "dim1": 64}
    assert layout_of(with_encoding(tensor_type((16, 32), f32), TILE)).in_size("lane") == 32
