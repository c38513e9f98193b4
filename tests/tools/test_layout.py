"""`tilework layout`: what it prints, draws and refuses."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tilework.tools.cli import main

BLOCKED = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [2, 1], order = [1, 0]}>"
SWIZZLED = "#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
VIEW = "[[T0:0, T0:1, T1:0, T1:1]\n[ T2:0, T2:1, T3:0, T3:1]\n[ T4:0, T4:1, T5:0, T5:1]\n[ T6:0, T6:1, T7:0, T7:1]]\n"


def layout(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["layout", *argv]) == 0
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["layout", *argv]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("how", [[BLOCKED, "--shape", "4x4"], ["-l", BLOCKED, "-t", "tensor<4x4xf16>"]])
def test_who_owns_each_element(capsys: pytest.CaptureFixture[str], how: list[str]) -> None:
    assert layout(capsys, *how) == f"Print layout attribute: {BLOCKED}\n{VIEW}"


@pytest.mark.parametrize("flag", ["--hw-view", "-use-hw-view", "--use-hw-view"])
def test_what_each_thread_holds(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    text = layout(capsys, BLOCKED, "--shape=4x4", flag)
    assert text.split("\n")[1:4] == ["Warp0:", "(0,0), (0,2), (1,0), (1,2)", "(0,1), (0,3), (1,1), (1,3)"]


@pytest.mark.parametrize(
    "old",
    [
        BLOCKED.replace("#ttg.", "#triton_gpu."),
        BLOCKED.replace("#ttg.", "#triton_gpu.").replace(
            "}>", ", CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}>"
        ),
    ],
)
def test_old_spellings(capsys: pytest.CaptureFixture[str], old: str) -> None:
    assert layout(capsys, old, "--shape", "4x4").endswith(VIEW)


def test_an_old_shared_layout(capsys: pytest.CaptureFixture[str]) -> None:
    old = "#triton_gpu.shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
    assert layout(capsys, "-l", old, "--shape", "4x8") == layout(capsys, "-l", SWIZZLED, "--shape", "4x8")


def test_shared_memory_with_its_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    text = layout(capsys, SWIZZLED, "--shape", "4x8")
    assert "[ (1:2),(1:3),(1:0),(1:1),(1:6),(1:7),(1:4),(1:5)]\n" in text
    swizzled = SWIZZLED.replace("vec = 2", "vec = 8").replace("maxPhase = 4", "maxPhase = 8")
    table = layout(capsys, swizzled, "-t", "tensor<32x64xf16>").split("\n")[-4:]
    assert table == [
        "bank conflicts of one warp (16-bit elements)   one element per lane   16 bytes per lane",
        "  row-wise                                     0                      0",
        "  column-wise                                  3                      0",
        "",
    ]


def test_the_plain_view_of_shared_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """With `-l` there is nothing but the view, as `triton-tensor-layout` prints it."""
    assert layout(capsys, "-l", SWIZZLED, "--shape", "4x8").endswith("(3:0),(3:1)]]\n")
    assert "Offset: 8 -> (1,2)\n" in layout(capsys, "-l", SWIZZLED, "--shape", "4x8", "-use-hw-view")


def test_elements_of_an_nvmma_layout_have_its_bits(capsys: pytest.CaptureFixture[str]) -> None:
    tile = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
    assert "(16-bit elements)" in layout(capsys, tile, "--shape", "8x64")


MODULE = f"""#blocked = {BLOCKED}
#loc = loc("k.py":1:2)
#shared = {SWIZZLED}
#blocked1 = {BLOCKED.replace("order = [1, 0]", "order = [0, 1]")}
module {{ tt.func @f() {{ tt.return }} }}
"""


def test_the_layouts_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kernel.ttgir"
    file.write_text(MODULE)
    text = layout(capsys, "-i", str(file), "-alias-names=blocked", "-t", "tensor<4x4xf16>")
    assert text == f"Print layout attribute: #blocked = {BLOCKED}\n{VIEW}\n"
    every = layout(capsys, "-i", str(file), "-t", "tensor<4x8xf16>")
    heads = [line.split(" = ")[0] for line in every.split("\n") if line.startswith("Print")]
    assert heads == [f"Print layout attribute: {name}" for name in ("#blocked", "#shared", "#blocked1")]


def test_output_to_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, drawing = tmp_path / "out.txt", tmp_path / "out.svg"
    assert layout(capsys, BLOCKED, "--shape", "4x4", "-o", str(file)) == ""
    assert file.read_text().endswith(VIEW)
    assert layout(capsys, BLOCKED, "--shape", "4x4", "--svg", str(drawing)) == f"wrote {drawing}\n"
    assert ET.parse(drawing).getroot().tag.endswith("svg")
    assert BLOCKED in "".join(ET.parse(drawing).getroot().itertext())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([BLOCKED], "give the tensor: --shape 16x16"),
        ([BLOCKED, "--shape", "4x4", "-t", "tensor<4x4xf16>"], "give the tensor"),
        (["--shape", "4x4"], "give one layout"),
        ([BLOCKED, "-l", BLOCKED, "--shape", "4x4"], "give one layout"),
        ([BLOCKED, "--shape", "4,4"], "'4,4' is no shape"),
        ([BLOCKED, "--shape", "0x4"], "0 is not positive"),
        ([BLOCKED, "--shape", "16"], "rank 2 does not fit a tensor of shape [16]"),
        ([BLOCKED, "-t", "vector<4xf32>"], "is no tensor type"),
        ([BLOCKED, "--shape", "4x4", "--bits", "7"], "not 7"),
        (["#ttg.blocked<{sizePerThread = [1]}>", "--shape", "4"], "needs the field threadsPerWarp"),
        (["#ttg.blockd<{}>", "--shape", "4"], "is no layout"),
        (["blocked", "--shape", "4"], "is no layout"),
        (["", "--shape", "4"], "is no layout"),
        ([BLOCKED + " and more", "--shape", "4x4"], "follows the layout"),
        (["#ttg.shared_memory", "--shape", "4"], "is no layout"),
        (["-i", "no/such/file", "--shape", "4"], "no such file"),
        ([BLOCKED, "--shape", "1024x1024", "--svg", "x.svg"], "too large to read"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    text = refusal(capsys, *argv)
    assert text.startswith("tilework layout: error: ")
    assert message in text


def test_files_without_the_layout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kernel.ttgir"
    file.write_text(MODULE)
    assert "defines no layout mma" in refusal(capsys, "-i", str(file), "-alias-names=mma", "--shape", "4x4")
    argv = ["-i", str(file), "--shape", "4x8", "--svg", str(tmp_path / "x.svg")]
    assert "name one of #blocked, #shared, #blocked1" in refusal(capsys, *argv)
    file.write_text("module {}")
    assert "defines no layout" in refusal(capsys, "-i", str(file), "--shape", "4x4")
    file.write_text("#blocked = #ttg.blocked<{order = }>\n")
    assert "#blocked" in refusal(capsys, "-i", str(file), "--shape", "4x4")


MFMA = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 2], instrShape = [16, 16, 16], isTransposed = true}>"
AMD = [
    (MFMA, "16x32", "[[T0:0,T0:1,T0:2,T0:3,T16:0,T16:1,", "T127:3]]"),
    (f"#ttg.dot_op<{{opIdx = 0, parent = {MFMA}, kWidth = 4}}>", "16x16", "[[T0:0|T64:0,T0:1|T64:1,", "T63:3|T127:3]]"),
    ("#ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [1, 1]}>", "16x16", "[[T0:0,T16:0,T0:1,",
     "T31:7]]"),
    ("#ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [1, 1]}>", "16x16", "[[T0:0,T0:1,", "T31:7]]"),
    (
        "#ttg.amd_rotating_shared<{vec = 2, perPhase = 2, maxPhase = 2, order = [1, 0]}>", "8x16",
        "[(2:2),(2:3),(2:0),(2:1),(2:6),", "[(6:0),(6:1),(6:2),",
    ),
    ("#ttg.padded_shared<[16:+4] {order = [1, 0], shape = [8, 16]}>", "8x16", "[[(0:0),(0:1),", "(7:15)]]"),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "shape", "begin", "end"), AMD)
def test_layouts_of_amd_gpus(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, encoding: str, shape: str, begin: str, end: str
) -> None:
    """Waves of 64 lanes and of 32, what they share, rows that rotate; each can be drawn."""
    text = layout(capsys, "-l", encoding, "--shape", shape).replace(" ", "")
    assert begin in text and end in text, text
    picture = tmp_path / "layout.svg"
    layout(capsys, encoding, "--shape", shape, "--svg", str(picture))
    rows, columns = map(int, shape.split("x"))
    assert len(ET.parse(picture).getroot().findall(".//{http://www.w3.org/2000/svg}rect")) >= rows * columns


def test_padding_is_shown_as_such(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [1, 1], order = [1, 0]}>"
    assert main(["layout", small, "--shape", "3x3"]) == 0
    assert capsys.readouterr().out.split("\n")[1:6] == [
        "[[T0:0, T0:1, T1:0, ----]",
        "[ T2:0, T2:1, T3:0, ----]",
        "[ T0:2, T0:3, T1:2, ----]",
        "[ ----, ----, ----, ----]]",
        "3x3 is laid out as 4x4: the rest is padding, which no program sees",
    ]
    assert main(["layout", small, "--shape", "3x3", "--hw-view"]) == 0
    assert "(0,1), [0,3], (1,1), [1,3]" in capsys.readouterr().out
    picture = tmp_path / "padded.svg"
    assert main(["layout", small, "--shape", "3x3", "--svg", str(picture)]) == 0
    assert picture.read_text().count("<title>padding: ") == 7
