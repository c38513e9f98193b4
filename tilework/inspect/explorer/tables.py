"""What a page stores once: every different line of text, place and row, by number.

    tables = Tables()
    tables.rows([("%0 = tt.load %p : f32", (("k.py", 3, 4),))])          [0]
    tables.data()["strings"][0]                                          "%0 = tt.load %p : f32"

A row is a line of text with its places, a text a list of rows. The IR behind forty passes differs little from pass to pass, so that a
page stores the first text and, for each pass, what it replaced (`edits`).
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

from tilework.inspect.explorer.located import Located, Place, Places

Edit = list[Any]  # at which row, how many rows go, the rows that come


class Numbered:
    """Different values, each with the number of its first use."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def __getitem__(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def __iter__(self) -> Any:
        return iter(self.numbers)


class Tables:
    """The numbers of strings, files, places and rows of one page."""

    def __init__(self) -> None:
        self.strings, self.files, self.places, self.row_numbers = Numbered(), Numbered(), Numbered(), Numbered()
        self.place(())  # number 0: nowhere
        self.callers: dict[Place | tuple[str, int], dict[Place, None]] = {}

    def place(self, places: Iterable[Place]) -> int:
        """The number of the lines of the source that some places name: columns do not count."""
        return self.places[tuple(dict.fromkeys((self.files[file], line) for file, line, _ in places if file and line))]

    def rows(self, lines: Iterable[Located]) -> list[int]:
        return [self.row_numbers[self.strings[text], self.place(places)] for text, places in lines]

    def learn_callers(self, lines: Iterable[Located]) -> None:
        """Remember which calls led to each place: assembly tells only the place itself."""
        for _, places in lines:
            for index, (file, line, column) in enumerate(places[:-1]):
                calls = dict.fromkeys(places[index + 1 :])
                self.callers.setdefault((file, line, column), {}).update(calls)
                self.callers.setdefault((file, line), {}).update(calls)

    def with_callers(self, lines: Iterable[Located]) -> list[Located]:
        """Lines whose places are single ones, with the calls that may have led there."""
        return [(text, self.called(places)) for text, places in lines]

    def called(self, places: Places) -> Places:
        if len(places) != 1:
            return places
        ((file, line, column),) = places
        found = self.callers.get((file, line, column)) or self.callers.get((file, line)) or {}
        return (*places, *found)

    def edits(self, before: Sequence[int], after: Sequence[int]) -> list[Edit]:
        """What turns one text into the other."""
        if before == after:
            return []
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        return [
            [first, last - first, list(after[new:end])]
            for kind, first, last, new, end in matcher.get_opcodes()
            if kind != "equal"
        ]

    def data(self) -> dict[str, Any]:
        """For the page: strings, places as lists of [file, line], rows as strings and places side by side."""
        rows = list(self.row_numbers)
        return {
            "strings": list(self.strings),
            "places": [[list(place) for place in places] for places in self.places],
            "rowStrings": [text for text, _ in rows],
            "rowPlaces": [place for _, place in rows],
        }


def edited(before: Sequence[int], edits: Iterable[Edit]) -> list[int]:
    """The text that `edits` make of one."""
    after: list[int] = []
    done = 0
    for at, removed, rows in edits:
        after += [*before[done:at], *rows]
        done = at + removed
    return [*after, *before[done:]]
