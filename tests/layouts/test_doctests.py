"""The examples in the documentation of the layouts run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import tilework.layouts

MODULES = sorted(path.stem for path in Path(tilework.layouts.__file__ or "").parent.glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = import_module("tilework.layouts" if name == "__init__" else f"tilework.layouts.{name}")
    assert doctest.testmod(module).failed == 0
