"""The page about the compiler shows what the compiler makes of its kernel."""

from docsite import stages

PAGE = "docs/stages" + ".md"


def test_every_mark_of_the_page_is_shown_and_is_what_it_says() -> None:
    marks = stages.MARK.findall((stages.ROOT / PAGE).read_text())
    assert set(marks) == set(stages.SHOWN)
    shown = {name: stages.SHOWN[name]() for name in marks}
    assert "def softmax(" in shown["source"] and "tt.call @" in shown["frontend"] and "tt.call" not in shown["ttir"]
    assert "sizePerThread = [4]" in shown["ttgir"] and "+ #blocked1" in shown["coalescing"]
    assert "ld.global.v4.b32" in shown["ptx_memory"] and "ttc.nest [1024]" in shown["ttcir"]
    assert (
        "| `tritongpu-coalesce` | Give every access of global memory a layout" in shown["ttgir_passes"]
        and "**+" in shown["ttgir_passes"]
    )
    assert "<svg" in shown["layout"] and "loc(" not in shown["ttir"]
    assert stages.expand("a\n<!-- show source -->\nb") == f"a\n{shown['source']}\nb"
