"""Helpers for tests of the sanitizer: the text of a report, and the line that it must name."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilework import errors
from tilework.errors import SanitizerError, SanitizerWarning


def report(call: Callable[[], object]) -> str:
    """The text of the error of a call."""
    with pytest.raises(SanitizerError) as found:
        call()
    return str(found.value)


def line_of(text: str) -> int:
    """The number of the first line of the calling file that has `text`."""
    here = inspect.stack(0)[1].filename
    return 1 + next(n for n, line in enumerate(Path(here).read_text().splitlines()) if text in line)


@contextmanager
def every_warning_once() -> Iterator[None]:
    """Each warning is shown once in a process: here, in each test. One that is not expected fails it."""
    errors.SHOWN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", SanitizerWarning)
        yield
