"""Every public name has a docstring that teaches, and an example that runs: `tilework/tools/reference.py` says how they look."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tilework import knobs
from tilework.tools.reference import Entry, entries, run_example

ENTRIES = list(entries())
RUN = [entry for entry in ENTRIES if entry.example]
LANGUAGE = [entry for entry in RUN if entry.family.part == "language"]


@pytest.fixture
def interpreted() -> Iterator[None]:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        yield


@pytest.mark.parametrize("entry", RUN, ids=lambda entry: entry.name)
def test_the_example_runs(entry: Entry) -> None:
    run_example(entry)


@pytest.mark.parametrize("entry", LANGUAGE, ids=lambda entry: entry.name)
def test_the_example_runs_in_the_interpreter(entry: Entry, interpreted: None) -> None:
    run_example(entry)


def test_names_are_listed_once() -> None:
    assert not [name for name, times in Counter(entry.name for entry in ENTRIES).items() if times > 1]
