"""The printer's examples, literally; and drawings that are well formed."""

import xml.etree.ElementTree as ET

import pytest

from tilework.layouts.encodings import Blocked, NvmmaShared, SwizzledShared
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.picture import draw, hardware_view, tensor_view
from tilework.layouts.to_linear import to_linear

SVG = "{http://www.w3.org/2000/svg}"


def small(lane: list[tuple[int, int]]) -> LinearLayout:
    bases = {"register": [(0, 1)], "lane": lane, "warp": [(2, 0)], "block": []}
    return LinearLayout(bases, {"dim0": 4, "dim1": 4})


def test_the_tensor_view() -> None:
    assert tensor_view(small([(0, 2), (1, 0)])) == (
        "[[T0:0, T0:1, T1:0, T1:1]\n[ T2:0, T2:1, T3:0, T3:1]\n[ T4:0, T4:1, T5:0, T5:1]\n[ T6:0, T6:1, T7:0, T7:1]]\n"
    )


def test_the_hardware_view() -> None:
    assert hardware_view(small([(0, 2), (1, 0)])) == (
        "Warp0:\n(0,0), (0,2), (1,0), (1,2)\n(0,1), (0,3), (1,1), (1,3)\n"
        "Warp1:\n(2,0), (2,2), (3,0), (3,2)\n(2,1), (2,3), (3,1), (3,3)\n"
    )


def test_elements_that_several_threads_hold() -> None:
    view = tensor_view(small([(0, 2), (0, 0), (1, 0)]))
    assert view.split("\n")[0] == "[[ T0:0| T2:0,  T0:1| T2:1,  T1:0| T3:0,  T1:1| T3:1]"


def test_shared_memory() -> None:
    layout = to_linear(SwizzledShared(2, 1, 4, (1, 0)), (4, 8))
    assert tensor_view(layout).split("\n")[1] == "[ (1:2),(1:3),(1:0),(1:1),(1:6),(1:7),(1:4),(1:5)]"
    assert hardware_view(layout).split("\n")[:3] == ["Block: 0:", "Offset: 0 -> (0,0)", "Offset: 1 -> (0,1)"]
    assert "Offset: 8 -> (1,2)" in hardware_view(layout)


def test_one_and_three_dimensions() -> None:
    line = LinearLayout({"register": [], "lane": [(1,), (2,)], "warp": [], "block": []}, {"dim0": 4})
    assert tensor_view(line) == "[T0:0, T1:0, T2:0, T3:0]\n"
    cube = LinearLayout({"register": [(0, 0, 1), (0, 1, 0)], "lane": [(1, 0, 0)], "warp": [], "block": []},
                        {"dim0": 2, "dim1": 2, "dim2": 2})  # fmt: skip
    assert tensor_view(cube) == "[[[T0:0, T0:1]\n[  T0:2, T0:3]]\n[[ T1:0, T1:1]\n[  T1:2, T1:3]]]\n"


def test_several_blocks() -> None:
    layout = LinearLayout({"register": [], "lane": [(1,)], "warp": [], "block": [(2,)]}, {"dim0": 4})
    assert tensor_view(layout) == "[B0:T0:0, B0:T1:0, B1:T0:0, B1:T1:0]\n"
    assert hardware_view(layout) == "Block0:\nWarp0:\n(0), (1)\nBlock1:\nWarp0:\n(2), (3)\n"


# Drawings


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def colours(svg: str) -> set[str]:
    """The colours of the cells: boxes with a hint."""
    boxes = ET.fromstring(svg).iter(f"{SVG}rect")
    return {box.get("fill", "") for box in boxes if box.find(f"{SVG}title") is not None}


def test_a_drawing_of_a_tensor() -> None:
    layout = to_linear(Blocked((1, 2), (8, 4), (1, 2), (1, 0)), (16, 16))
    svg = draw(layout, "#ttg.blocked<{...}>")
    words = texts(svg)
    assert words[0] == "#ttg.blocked<{...}>"
    assert "16 x 16 tensor on 2 warps x 32 lanes x 4 registers: each cell is thread:register" in words
    assert {"T0:0", "T0:1", "T63:3", "warp 0: T0 to T31", "warp 1: T32 to T63"} <= set(words)
    assert len(colours(svg)) == 64
    assert len(list(ET.fromstring(svg).iter(f"{SVG}path"))) > 0


def test_cells_stay_inside_the_page() -> None:
    svg = ET.fromstring(draw(to_linear(Blocked((1, 8), (1, 32), (4, 1), (1, 0)), (8, 256)), "wide"))
    width, height = float(svg.get("width", "0")), float(svg.get("height", "0"))
    for box in svg.iter(f"{SVG}rect"):
        if box.get("width") != "100%":
            assert float(box.get("x", "0")) + float(box.get("width", "0")) <= width
            assert float(box.get("y", "0")) + float(box.get("height", "0")) <= height


def test_a_drawing_counts_copies_and_names_them() -> None:
    svg = draw(to_linear(Blocked((1, 1), (8, 4), (1, 1), (1, 0)), (4, 4)), "copies")
    assert texts(svg).count("x2") == 16
    assert "(0, 0) in T0:0, T16:0" in svg


def test_a_drawing_of_the_hardware() -> None:
    words = texts(draw(to_linear(Blocked((1, 2), (8, 4), (1, 2), (1, 0)), (8, 16)), "hw", hardware=True))
    assert {"warp 0", "warp 1", "r0", "r1", "T33", "(0,1)", "(7,15)"} <= set(words)


def test_a_drawing_of_shared_memory_has_a_colour_for_each_bank() -> None:
    svg = draw(to_linear(NvmmaShared(128, False, 16), (8, 64)), "tile", bits=16)
    assert len(colours(svg)) == 32
    assert "bank 0 to 31" in texts(svg)


def test_a_line_is_wrapped() -> None:
    words = texts(draw(to_linear(Blocked((1,), (32,), (4,), (0,)), (128,)), "line"))
    assert {"0", "32", "64", "96"} <= set(words)


def test_drawings_escape_and_refuse() -> None:
    layout = to_linear(Blocked((1,), (32,), (4,), (0,)), (128,))
    assert "&lt;{a &amp; b}&gt;" in draw(layout, "<{a & b}>")
    with pytest.raises(LayoutError, match="too large to read"):
        draw(to_linear(Blocked((1, 1), (1, 32), (4, 1), (1, 0)), (512, 512)), "huge")
