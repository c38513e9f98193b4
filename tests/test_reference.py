"""Every public name has a docstring that teaches, and an example that runs: `docsite/public_names.py` says how they
look."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilework
import tilework.language as tl
from docsite.public_names import Entry, entries, run_example, split_example
from tilework import compiler, knobs, profiler, testing
from tilework.language.extra import cuda, hip

ENTRIES = list(entries())
NAMES = Counter(entry.name for entry in ENTRIES)
INTERPRETED = [entry for entry in ENTRIES if entry.family.part == "language" and entry.example]
COMPILED = [entry for entry in ENTRIES if entry.family.part == "runtime" and entry.example] + INTERPRETED
API = (Path(__file__).parent.parent / "docs" / "api.md").read_text()


@pytest.fixture
def interpreted() -> Iterator[None]:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        yield


@pytest.mark.filterwarnings("ignore:view is deprecated")
@pytest.mark.parametrize("entry", COMPILED, ids=lambda entry: entry.name)
def test_the_example_runs_compiled(entry: Entry) -> None:
    run_example(entry)


@pytest.mark.filterwarnings("ignore:view is deprecated")
@pytest.mark.parametrize("entry", INTERPRETED, ids=lambda entry: entry.name)
def test_the_example_runs_in_the_interpreter(entry: Entry, interpreted: None) -> None:
    run_example(entry)


def test_every_name_is_documented() -> None:
    assert not [entry.name for entry in ENTRIES if not entry.summary.endswith((".", ":"))]
    assert not [entry.name for entry in ENTRIES if not entry.example]


def test_every_public_name_is_listed_once() -> None:
    assert not [name for name, times in NAMES.items() if times > 1]
    assert not sorted(name for name in public_names() if name not in NAMES)


def public_names() -> Iterator[str]:
    """The public names; a name of two modules is documented under the first, a method as the function of that name."""
    seen: list[Any] = []
    for prefix, module in (
        ("tl", tl),
        ("tl.target_info", tl.target_info),
        ("tl.extra.cuda", cuda),
        ("tl.extra.hip", hip),
        ("tilework", tilework),
        ("tilework.testing", testing),
        ("tilework.compiler", compiler),
        ("tilework.profiler", profiler),
    ):
        for name in public_in(module):
            value = getattr(module, name)
            if not any(value is other for other in seen) and not {f"tilework.{name}", f"tilework.errors.{name}"} & set(
                NAMES
            ):
                yield f"{prefix}.{name}"
            seen.append(value)
    for owner in (tl.tensor, tl.tensor_descriptor):
        methods = [name for name in vars(owner) if not name.startswith("_") and f"tl.{name}" not in NAMES]
        yield from (f"tl.{owner.__name__}.{name}" for name in methods)
    yield from (f"tilework.errors.{name}" for name in errors_of_api() if f"tilework.{name}" not in NAMES)


def public_in(module: ModuleType) -> list[str]:
    """Names of a module that are its own and not modules; `tl` has what `from ... import` put into it."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    ours = [name for name in names if not isinstance(getattr(module, name), ModuleType)]
    return [name for name in ours if getattr(getattr(module, name), "__module__", "tilework").startswith("tilework")]


def errors_of_api() -> list[str]:
    row = re.search(r"\| `tilework\.errors` \|(.*)\|", API)
    assert row is not None
    return re.findall(r"`(\w+)`", row[1])


def test_an_example_is_the_last_section_of_a_docstring() -> None:
    text, example = split_example("Twice.\n\n    Of numbers.\n\n    Example:\n        x = 1\n\n        assert x\n    ")
    assert (text, example) == ("Twice.\n\nOf numbers.", "x = 1\n\nassert x\n")
