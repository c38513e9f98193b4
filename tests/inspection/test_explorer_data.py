"""The data of the explorer: every stage linked to the source in both directions, every pass, layouts, limits,
counters, small pages."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inspection import kernels_to_explore as kernels
from tests.inspection.documents import SIZE, compiled, explored, keys_by_stage, line_of, odd_tiles, request, text_of
from tilework.inspect.explorer.document import NotExplored, layouts_of, read, sizes_in, watching, write
from tilework.inspect.page import data_of, page
from tilework.inspect.replay import Launch, count
from tilework.inspect.source_lines import Tables, edited, located_assembly, located_ir, located_llvm, located_sass
from tilework.ir.parser import parse_module
from tilework.targets.base import run_passes
from tilework.targets.observe import observer, recording
from tilework.tools.cli import main

LIMIT = 5_000_000  # bytes of a page
FILE = kernels.__file__
LONG = """import tilework
import tilework.language as tl
@tilework.jit
def long_kernel(x_ptr, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK)"""


@pytest.fixture(scope="module")
def gpu() -> dict[str, Any]:
    return explored("cuda:90")


def test_every_line_of_the_source_leads_to_every_stage_and_back(gpu: dict[str, Any]) -> None:
    (entry,) = gpu["kernels"]
    found = keys_by_stage(gpu, entry)
    assert {"ttir", "ttgir", "llir", "ptx"} <= set(found)
    for stage in ("ttir", "ttgir", "llir", "ptx"):
        for text, words in (("x = tl.load", "load|ld"), ("tl.store", "store|st"), ("return x", "mulf?|fmul")):
            rows = found[stage].get((FILE, line_of(text)), [])
            assert any(re.search(rf"\b(\w+\.)?({words})\b", row) for row in rows), (stage, text, rows)
    # what is inlined belongs to the line that calls it, too
    for stage in found:
        assert set(found[stage][FILE, line_of("return x")]) <= set(found[stage][FILE, line_of("total =")]), stage


def test_every_pass_is_there_and_its_edits_give_the_text_behind_it(gpu: dict[str, Any]) -> None:
    from tilework.target import Target
    from tilework.targets.nvidia.pipeline import ttgir_pipeline
    from tilework.transforms.registry import ttir_pipeline

    (entry,) = gpu["kernels"]
    ran = {run["tag"]: [step["name"] for step in run["steps"]] for run in entry["runs"]}
    target = Target.parse("cuda:90")
    assert ran["make_ttir"] == ttir_pipeline(target)
    splits = ("tt-unroll-short-loops{num-warps=4}", "tt-split-masked-loops{num-warps=4}")
    own = ("tt-load-runs", *splits, "tt-scaled-maximum")
    assert [name for name in ran["make_ttgir"] if name not in own] == ttgir_pipeline(target)
    assert all(step["ms"] >= 0 for run in entry["runs"] for step in run["steps"])
    stages = {stage["name"]: stage["rows"] for stage in entry["stages"]}
    for tag, stage in (("make_ttir", "ttir"), ("make_ttgir", "ttgir")):
        (run,) = [run for run in entry["runs"] if run["tag"] == tag]
        rows = run["rows"]
        for step in run["steps"]:
            rows = edited(rows, step["edits"])
        assert text_of(gpu, rows) == text_of(gpu, stages[stage])


def test_types_have_the_layouts_of_the_layout_tool(gpu: dict[str, Any]) -> None:
    (entry,) = gpu["kernels"]
    (data,) = [data for type, data in entry["layouts"].items() if type.startswith("tensor<256xf32")][:1]
    assert data["encoding"].startswith("#ttg.blocked<{sizePerThread = [2]")
    assert data["bases"]["register"] == [[1]]
    assert data["bases"]["lane"] == [[2], [4], [8], [16], [32]]
    assert data["bases"]["warp"] == [[64], [128]]


def test_layouts_of_padded_tiles_say_how_much_is_seen() -> None:
    (entry,) = odd_tiles()["kernels"]
    seen = {tuple(data["shape"]): data.get("seen") for type, data in entry["layouts"].items() if "xf32" in type}
    assert seen == {(256,): [[200]]}
    both = (
        "tensor<64x128xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, "
        "2], order = [1, 0]}>>"
    )
    (data,) = layouts_of([[both]], sizes_in(["tensor<48x96xf32> -> tensor<64x128xf32>, tensor<48x128xi1>"])).values()
    assert data["seen"] == [[48, 96], [64, 128], [48, 128]]


def test_counters_limits_and_remarks_are_those_of_the_tools(gpu: dict[str, Any]) -> None:
    (entry,) = gpu["kernels"]
    counters = entry["counters"]
    assert (counters["programs"], counters["of"]) == (4, 4)
    by_line = {gpu["locations"][index][0][1]: numbers for index, numbers in counters["lines"]}
    # 1008 floats of 4 bytes in sectors of 32, of each array once
    assert by_line[line_of("x = tl.load")]["sectors"] == by_line[line_of("tl.store")]["sectors"] == 126
    assert counters["total"]["coalescing"] == 1.0 and counters["findings"] == []
    metrics = {name: value for name, value, _ in entry["metrics"]}
    assert metrics["limit"] == "DRAM" and metrics["shared memory"] == 0
    assert any("the limit of this kernel is DRAM" in remark["text"] for remark in entry["remarks"])


@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx1201"])
def test_amd_gpus_have_counters(target: str) -> None:
    document = explored(target)
    counters = document["kernels"][0]["counters"]
    assert (counters["programs"], counters["of"], counters["findings"]) == (4, 4, [])
    by_line = {document["locations"][index][0][1]: numbers for index, numbers in counters["lines"]}
    # 1008 floats of 4 bytes in requests of 64, of each array once
    assert by_line[line_of("x = tl.load")]["sectors"] == by_line[line_of("tl.store")]["sectors"] == 63
    assert counters["total"]["coalescing"] == 1.0
    assert {name for name, *_ in counters["columns"]} <= set(counters["total"])


def test_the_cpu_has_loops_llvm_and_assembly_with_lines() -> None:
    document = compiled("cpu")
    (entry,) = document["kernels"]
    found = keys_by_stage(document, entry)
    assert {"ttir", "ttcir", "llir", "asm"} <= set(found)
    for stage in ("ttcir", "llir", "asm"):
        assert found[stage][FILE, line_of("tl.store")], stage
    assert "no launch is known" in entry["counters"]["note"] and "no launch is known" in entry["limits"]["why"]
    by_line = {document["locations"][index][0][1]: numbers for index, numbers in entry["counters"]["lines"]}
    assert by_line[line_of("tl.store")]["vector"] >= 1 and entry["counters"]["total"]["width"] in (128, 256, 512)


def test_a_page_for_a_long_kernel_is_small(tmp_path: Path) -> None:
    path, page = tmp_path / "long_kernel.py", tmp_path / "long.html"
    lines = [f"    x = {'x * x' if n % 10 else 'tl.load(x_ptr + x, mask=x < n)'} + {n}" for n in range(300)]
    path.write_text("\n".join([LONG, *lines, "    tl.store(x_ptr + x, x)", ""]))
    argv = ["explore", f"{path}:long_kernel", "--signature", "*i32:16, i32, 64", "--target", "cpu", "-o", str(page)]
    assert main([*argv, "--no-open"]) == 0
    assert len(path.read_text().splitlines()) >= 300
    assert page.stat().st_size < LIMIT


def test_a_program_is_run_and_its_kernels_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.json"
    assert main(["explore", "--no-counters", "-o", str(page), FILE]) == 0
    assert "500.0" not in capsys.readouterr().err
    document = read(page)
    assert [entry["name"] for entry in document["kernels"]] == ["scaled_sum"]
    assert document["kernels"][0]["constants"] == {"BLOCK": "256"}


def test_mistakes_are_reported_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = tmp_path / "quiet.py"
    quiet.write_text("print('no kernel')")
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:")
    other = tmp_path / "other.html"
    other.write_text("<html></html>")
    for argv, words in (
        ([str(quiet)], "has compiled no kernel: does it launch one in this process?"),
        ([str(broken)], "has compiled no kernel: the program failed before its first launch"),
        ([str(tmp_path / "none.py")], "there is no file"),
        ([f"{FILE}:scaled_sum"], "--signature"),
        ([f"{FILE}:scaled_sum", "--target", "cuda:banana", "--signature", "*fp32"], "banana"),
    ):
        assert main(["explore", "--no-open", *argv]) == 1
        assert words in (reported := capsys.readouterr().err) and "Traceback" not in reported, reported
    with pytest.raises(NotExplored, match="no page"):
        read(other)


def test_a_kernel_explores_itself(tmp_path: Path) -> None:
    fresh = kernels.scaled_sum
    fresh.device_caches.clear()
    with pytest.raises(NotExplored, match="launch it first"):
        fresh.explore(open=False)
    kernels.launch()
    made = fresh.explore(output=tmp_path / "page.html", open=False)
    assert [entry["target"] for entry in read(made)["kernels"]] == ["cpu"]
    with watching() as seen:
        kernels.launch(300)
    (request,) = seen.requests()
    assert request.launch is not None and request.launch.grid[0] == 2


def test_locations_are_read_in_all_their_forms() -> None:
    text = """#loc = loc("a (b).py":1:2)
#loc1 = loc(callsite(#loc at #loc2))
#loc2 = loc("x"("c.py":3:4))
func @f(%a: i32 loc("a"(#loc))) {
  scf.for %i = %a {
    %y = op "loc(" loc(fused[#loc, #loc2])
  } loc(#loc1)
} loc(unknown)
"""
    first, second = ("a (b).py", 1, 2), ("c.py", 3, 4)
    assert located_ir(text) == [
        ("func @f(%a: i32) {", ()),
        ("  scf.for %i = %a {", (first, second)),
        ('    %y = op "loc("', (first, second)),
        ("  }", (first, second)),
        ("}", ()),
    ]
    llvm = (
        '!1 = !DIFile(filename: "k.py", directory: "/d")\n'
        '!2 = distinct !DISubprogram(name: "k", file: !1, line: 9)\n'
        "!3 = !DILocation(line: 7, column: 2, scope: !2)"
    )
    assert located_llvm(f"  %1 = add i32 1, 2, !dbg !3\n{llvm}\n") == [("  %1 = add i32 1, 2", (("/d/k.py", 7, 2),))]
    ptx = '\t.loc\t1 5 3\n\tadd.s32 %r1, %r2, 1;\n$L__tmp0:\n\t.loc 1 0 0\n\tret;\n\t.file\t1 "/d/k.py"\n'
    assert located_assembly(ptx) == [
        ("        add.s32 %r1, %r2, 1;", (("/d/k.py", 5, 3),)),
        ("        ret;", ()),
    ]
    assert located_sass("Function:k\n; /d/k.py:4\n--:-:-:-:1\tNOP;\n")[1][1] == (("/d/k.py", 4, 0),)


def test_edits_give_the_other_text() -> None:
    tables = Tables()
    old = tables.rows([(line, ()) for line in "a b c d e".split()])
    new = tables.rows([(line, ()) for line in "a x c e f".split()])
    assert edited(old, tables.edits(old, new)) == new
    assert tables.edits(old, old) == []


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_a_page_keeps_its_data(
    gpu: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr("tilework.inspect.page.LARGE", large)
    tricky = {**gpu, "strings": [*gpu["strings"], "</script><b>&amp;</b> <!-- "]}
    write(tricky, tmp_path / "page.html")
    assert read(tmp_path / "page.html") == json.loads(json.dumps(tricky))
    text = (tmp_path / "page.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", text.partition('id="data"')[0]), (
        "it needs nothing else"
    )


def test_nothing_is_recorded_unless_requested() -> None:
    module = parse_module("module {\n}\n")
    assert observer(module, ["cse"], "make_ttir") is None
    with recording() as seen:
        run_passes(module, ["canonicalize", "cse"], "make_ttir")
    assert [(run.tag, [step.name for step in run.steps]) for run in seen.runs] == [
        ("make_ttir", ["canonicalize", "cse"])
    ]
    assert observer(module, ["cse"], "make_ttir") is None


def test_of_a_large_grid_the_first_programs_are_counted() -> None:
    arrays = [np.ones(SIZE, np.float32) for _ in range(3)]
    requested = request("cuda:90", launched=False)
    found = count(
        requested.source, requested.target, {}, Launch.of(kernels.scaled_sum, (*arrays, SIZE, 256), (1000, 2)).copied()
    )
    assert (found["programs"], found["of"]) == (4, 2000)
    assert found["total"]["sectors"] == 3 * 126
    requested = request("hip:gfx942", launched=False)
    found = count(
        requested.source, requested.target, {}, Launch.of(kernels.scaled_sum, (*arrays, SIZE, 256), (1000, 2)).copied()
    )
    assert (found["programs"], found["of"]) == (4, 2000) and found["total"]["sectors"] == 3 * 63


@given(st.lists(st.text(alphabet="<>!-/script{}data\\u03c \u2028\ud800é", max_size=40) | st.text(max_size=20)))
def test_data_survive_the_page_they_are_in(texts: list[str]) -> None:
    """Whatever a source holds, the script element ends where it should: an HTML parser reads "<!--" and "</script" in
    it."""
    whole = page(json.dumps(texts), "title")
    data = data_of(whole)
    assert "<" not in data and json.loads(data) == texts


def test_launches_of_a_kernel_from_a_file_are_kept() -> None:
    values = (np.ones(SIZE, np.float32), SIZE)
    copied = Launch.of(None, values, (4,)).copied()
    assert copied is not None and copied.grid == (4, 1, 1) and copied.bytes == 4 * SIZE
    assert copied.values[0] is not values[0] and copied.values[1] == SIZE
