"""Diagnostics of `tilework opt`, and the check that a test file's `expected-error` comments match them.

    // expected-error @below {{only matching widths}}
    %0 = tt.bitcast %a : tensor<128xf32> -> tensor<128xi16>

The comment holds a substring of the message. `@below`, `@above`, `@+2` and `@-1` move to another line; without one the
diagnostic is on the comment's own line. `expected-remark`, `expected-warning` and `expected-note` work the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

EXPECTATION = re.compile(
    r"//\s*expected-(error|remark|warning|note)(-re)?\s*(?:@(below|above|unknown|[+-]\d+))?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class Position:
    """A place in a text: `line` and `column` count from 1, 0 when unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Diagnostic:
    """One message about one place."""

    severity: str
    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.severity}: {self.message}"


@dataclass(frozen=True)
class Expectation:
    """What a comment of a test file announces; `line` 0 stands for an unknown place."""

    severity: str
    line: int
    text: str
    is_regex: bool
    anywhere: bool

    def accepts(self, diagnostic: Diagnostic) -> bool:
        if self.severity != diagnostic.severity or not (self.anywhere or self.line == diagnostic.position.line):
            return False
        if self.is_regex:
            return re.search(self.text, diagnostic.message) is not None
        return self.text in diagnostic.message


def expectations(text: str) -> list[Expectation]:
    """Every expectation in the comments of `text`; a line of comments above an op counts as one place."""
    lines = text.split("\n")
    found: list[Expectation] = []
    for number, line in enumerate(lines, start=1):
        for severity, is_regex, place, words in EXPECTATION.findall(line):
            found.append(Expectation(severity, target(lines, number, place), words, bool(is_regex), place == "unknown"))
    return found


def target(lines: Sequence[str], number: int, place: str) -> int:
    """The line an expectation on line `number` speaks of; `@below` skips further expectations."""
    if place == "below":
        number += 1
        while number < len(lines) and EXPECTATION.search(lines[number - 1]):
            number += 1
        return number
    if place == "above":
        return number - 1
    return number + int(place) if place and place != "unknown" else number


def unmet(text: str, file: str, diagnostics: Sequence[Diagnostic], only_expected: bool = False) -> list[Diagnostic]:
    """What is wrong: expected and not produced, or produced and not expected (errors only, with `only_expected`)."""
    open_ends = expectations(text)
    wrong: list[Diagnostic] = []
    for diagnostic in diagnostics:
        matching = next((e for e in open_ends if e.accepts(diagnostic)), None)
        if matching is not None:
            open_ends.remove(matching)
        elif not only_expected or diagnostic.severity == "error":
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(Diagnostic("error", diagnostic.position, message))
    for missing in open_ends:
        message = f'expected {missing.severity} "{missing.text}" was not produced'
        wrong.append(Diagnostic("error", Position(file, missing.line, 1), message))
    return wrong
