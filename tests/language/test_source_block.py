"""The lines of a function: as Python's tokenizer finds them, in less time."""

import ast
import inspect
from pathlib import Path

import pytest

import tilework.language.core as core
from tilework.language.dependencies import block_of, cut

HARD = {
    "a string that is indented less": 'def f():\n    x = """\nno indent\n"""\n    return x\n',
    "brackets closed at the margin": "def f(\n    a,\n) -> None:\n    return g(\n        a,\n)\n",
    "a decorator with a def in it": '@d("""\ndef fake(): pass\n""")\ndef f(): return 1\n',
    "continued at the margin": "def f():\n    x = 1 + \\\n2\n    return x\n",
    "comments behind it": (
        "def f():\n    if x:\n        y()\n\n        # deep\n    # of the body\n  # of nobody\n# behind\n"
    ),
    "comments inside": "def f():\n# at the margin\n    return 1\n",
    "one line": "@d\ndef f(): return 1\n",
    "indented": "    @d\n    def f(self):\n        return 1\n",
}


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name: str) -> None:
    lines = [*HARD[name].splitlines(keepends=True), "\n", "x = 1\n"]
    if name == "indented":
        lines[-1] = "    x = 1\n"
    block = block_of(lines)
    assert block is not None and block.lines == inspect.getblock(lines)
    assert block.lines[block.header].lstrip().startswith("def f(")
    (function,) = block.tree.body
    assert isinstance(function, ast.FunctionDef) and (function.name, function.lineno) == ("f", 1)


def test_whole_files() -> None:
    found = 0
    for path in (Path(core.__file__), Path(__file__)):
        lines = path.read_text().splitlines(keepends=True)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                block = cut(lines[first - 1 :])
                assert block is not None and block.lines == inspect.getblock(lines[first - 1 :]), (path, first)
                found += 1
    assert found > 10


def test_what_is_no_function() -> None:
    assert block_of(["x = 1\n"]) is None
    with pytest.raises(SyntaxError):
        block_of(["def f(:\n", "    pass\n"])
