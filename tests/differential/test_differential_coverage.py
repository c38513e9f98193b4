"""Every function of the language has a differential test: its name stands in a test of this folder."""

import inspect
import re
from pathlib import Path

import tilework.language as tl
from tilework.language.function import JITFunction

NOT_COMPARED = {
    "_experimental_descriptor_load": "removed from the language",
    "_experimental_descriptor_store": "removed from the language",
    "inline_asm_elementwise": "assembly of a GPU",
}


def functions() -> list[str]:
    names = []
    for name, value in vars(tl).items():
        is_type = inspect.isclass(value) or inspect.ismodule(value)
        if not is_type and (tl.core.is_builtin(value) or isinstance(value, JITFunction)):
            names.append(name)
    return names


def test_every_function_is_compared() -> None:
    text = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"\btl\.(\w+)|\.(\w+)\(", text))
    named = {name for pair in named for name in pair}
    missing = [name for name in functions() if name not in named and name not in NOT_COMPARED]
    assert not missing, f"no differential test mentions {missing}"
    assert len(functions()) > 100
