"""Every public name has its entry in the generated reference, and every page is in the navigation."""

import re
from pathlib import Path

import tilework.language as tl
from docsite import reference
from docsite.docstrings import as_markdown
from docsite.generated import generated
from docsite.navigation import navigation
from docsite.public_names import documented
from tests.language.test_language_surface import FUNCTIONS, OBJECTS
from tilework.tools.cli import SUBCOMMANDS

ROOT = Path(__file__).parent.parent.parent


def entries() -> set[str]:
    """The anchors of all pages of the reference: ``tl.load``."""
    return set(re.findall(r"^## .* { #([\w.]+) }$", "\n".join(reference.pages().values()), re.MULTILINE))


def test_every_public_name_has_an_entry() -> None:
    modules = {name for name in OBJECTS if type(getattr(tl, name)) is type(tl)}
    public = {f"tl.{name}" for name in {*FUNCTIONS, *OBJECTS} - modules if not name.startswith("_")}
    public |= {"tilework.jit", "tilework.autotune", "tilework.testing.do_bench", "tilework.compiler.CompiledKernel"}
    assert public | set(reference.public_names()) <= entries() | aliases()
    without = [one.name for one in reference.all_entries() if one.family.title == reference.OTHERS]
    assert not without, "names that no family of docsite/public_names.py has"


def aliases() -> set[str]:
    """Names of what has an entry under another name: ``tilework.CompilationError``."""
    values = [one.value for one in reference.all_entries()]
    return {name for name in reference.public_names() if any(documented(name)[0] is value for value in values)}


def test_entries_show_signature_documentation_example_and_source() -> None:
    (text,) = [reference.rendered(one) for one in reference.all_entries() if one.name == "tl.program_id"]
    assert "```python\ntl.program_id(axis)\n```" in text
    assert "The index of this program" in text and "**Example**\n\n```python\n" in text
    path = re.search(r"repo:(tilework/language/program_builtins.py)#L(\d+)", text)
    assert path and "def program_id(" in (ROOT / path[1]).read_text().splitlines()[int(path[2]) - 1]


def test_defaults_are_shown_as_programs_write_them() -> None:
    shown = {one.name: one.signature for one in reference.all_entries()}
    assert shown["tl.rand"] == "(seed, offset, n_rounds=10)"
    assert shown["tl.dot"].endswith("out_dtype=tl.float32)")
    assert shown["tl.minimum"].endswith("propagate_nan=tl.PropagateNan.NONE)")
    wrong = {name: text for name, text in shown.items() if re.search(r"triton\.|constexpr\[|[<>]|\b0x", text)}
    assert not wrong


def test_libdevice_and_commands_are_listed() -> None:
    pages = generated()
    (functions,) = [text for path, text in pages.items() if "libdevice" in path]
    assert "| `sinh` | `(fp32) -> fp32`, `(fp64) -> fp64` |" in functions and functions.count("\n| `") > 150
    (commands,) = [text for path, text in pages.items() if "command_line" in path]
    assert all(f"## tilework {name}" in commands for name in SUBCOMMANDS)
    assert "| `--target TARGET`" in commands and "==SUPPRESS==" not in commands


def test_long_signatures_have_a_line_for_each_parameter() -> None:
    parameters = ", ".join(f"parameter_{number}=({number}, 0)" for number in range(9))
    assert reference.call_text("f", f"({parameters})").splitlines()[1:3] == [
        "    parameter_0=(0, 0),",
        "    parameter_1=(1, 0),",
    ]


def test_code_of_docstrings_is_shown_as_code() -> None:
    text = as_markdown("Adds.\n\n    x = f(1)\n\n    y = 2\n\nThen more prose, in a line.\n\nExample:\n    z = 3\n")
    assert text == (
        "Adds.\n\n```python\nx = f(1)\n\ny = 2\n```\n\nThen more prose, in a line.\n\n**Example**\n\n```python\n"
        "z = 3\n```"
    )


def test_a_page_that_no_row_names_is_listed() -> None:
    lesson, news = (f"{name}.md" for name in ("tutorials/01", "unheard_of"))
    found = navigation([news, lesson])
    assert found == [{"Tutorials": [lesson]}, {"More": [news]}]
