"""The examples in the documentation of the layouts run."""

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import tilework.layouts

MODULES = sorted(path.stem for path in Path(tilework.layouts.__file__ or "").parent.glob("*.py"))


def docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Those of what a module defines. (`doctest` would look through all modules that there are for each of them.)"""
    yield module.__name__, module.__doc__ or ""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) == module.__name__:
            members = vars(value).items() if isinstance(value, type) else ()
            for path, one in ((name, value), *((f"{name}.{inner}", member) for inner, member in members)):
                yield path, getattr(one, "__doc__", None) or ""


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = import_module("tilework.layouts" if name == "__init__" else f"tilework.layouts.{name}")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for path, text in docstrings(module):
        if ">>>" in text:
            reported: list[str] = []
            test = parser.get_doctest(text, dict(vars(module)), path, module.__file__, 0)
            assert runner.run(test, out=reported.append).failed == 0, "".join(reported)
