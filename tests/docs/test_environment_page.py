"""Every environment variable that the package reads is in the table, with its meaning; and nothing else is."""

import ast
import re
from functools import cache
from pathlib import Path

import tilework
from docsite import environment
from tilework import knobs
from tilework.knobs.meanings import MEANINGS, WITHOUT_KNOB

PACKAGE = Path(tilework.__file__).parent
READERS = ("getenv", "is_on")
OTHER_TEXTS = {
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "O_BINARY",
    "IMPORT_NAME",
}  # set for processes that tilework starts; a flag of os.open; an instruction of Python


@cache
def read_anywhere() -> dict[str, str]:
    """Variables that are read, each with a location; where a name is computed, all texts of the file that look like
    one."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if not re.search(r"getenv|is_on|environ", text):
            continue
        tree = ast.parse(text)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.Subscript) and reads(node)]
        keys = [node.args[0] if isinstance(node, ast.Call) else node.slice for node in calls]
        names = [key.value for key in keys if isinstance(key, ast.Constant)]
        if len(names) < len(keys) and path.parent.name != "knobs":
            constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            names += [
                one
                for one in constants
                if isinstance(one, str) and re.fullmatch(r"[A-Z]+_\w*[A-Z0-9]|PYTHON[A-Z]+", one)
            ]
        found |= dict.fromkeys(map(str, names), str(path.relative_to(PACKAGE)))
    return found


def reads(node: ast.Call | ast.Subscript) -> bool:
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value) == "os.environ"
    called = ast.unparse(node.func)
    return bool(node.args) and (called.rpartition(".")[2] in READERS or called == "os.environ.get")


def test_every_variable_is_in_the_table() -> None:
    of_knobs = {key for group in environment.groups().values() for key in group.variables}
    assert of_knobs == set(MEANINGS), "MEANINGS of tilework/knobs/meanings.py has the variables of knobs"
    others = {key: index for key, index in read_anywhere().items() if key not in of_knobs | OTHER_TEXTS}
    assert {key: index for key, index in others.items() if key not in WITHOUT_KNOB} == {}
    assert set(WITHOUT_KNOB) <= set(others), "variables that are never read"


def test_the_table_says_type_default_and_meaning() -> None:
    (page,) = environment.pages().values()
    rows = dict(re.findall(r"^\| <span id='(\w+)'>`\w+`</span> \| (.*) \|$", page, re.MULTILINE))
    assert set(rows) == {*MEANINGS, *WITHOUT_KNOB}
    assert rows["TRITON_INTERPRET"].startswith("on or off | off | `interpret` | Run kernels as plain Python")
    assert rows["TILEWORK_CACHE_MAX_SIZE"].startswith("bytes: 500000, 64k, 4G | 4G |")
    assert str(Path.home()) not in page.replace("~/", "")


def test_every_kind_of_knob_has_a_word() -> None:
    kinds = {type(knob).__name__ for group in environment.groups().values() for knob in all_knobs(group)}
    assert kinds <= set(environment.TYPES)


def all_knobs(group: knobs.base_knobs) -> list[knobs.env_base[object]]:
    return [*group.knob_descriptors.values(), *group.READ_ONCE.values()]
