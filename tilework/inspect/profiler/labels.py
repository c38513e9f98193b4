"""Where the labels of a picture go, so that none covers another one, or a point.

free = FreeSpace(Box(56, 4, 996, 324))
free.take(Box(100, 100, 120, 120))               a point
free.avoid(line_boxes(56, 300, 500, 26))         a line: a label crosses it only where there is no other position
box = free.place(around(110, 110, 10, width), width)
"""

from collections.abc import Iterable, Iterator
from itertools import product
from math import hypot
from typing import NamedTuple

HEIGHT = 15.0  # of a line of text of 13 pixels
LETTER, WIDE = 8.0, 13.0  # pixels, of the widest of the usual fonts; of one of WIDE_LETTERS
WIDE_LETTERS = frozenset("mwMW@%")
GAP = 3.0
RINGS = (0.0, 12.0, 26.0, 42.0, 60.0, 80.0, 105.0, 135.0, 170.0, 210.0)  # pixels from the point


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        is_beside = self.right <= other.left or other.right <= self.left
        return not (is_beside or self.bottom <= other.top or other.bottom <= self.top)

    def contains(self, other: "Box") -> bool:
        is_wide = self.left <= other.left and other.right <= self.right
        return is_wide and self.top <= other.top and other.bottom <= self.bottom


def width_of(text: str) -> float:
    return sum(WIDE if letter in WIDE_LETTERS else LETTER for letter in text)


class FreeSpace:
    """The part of a frame that nothing is drawn on."""

    def __init__(self, frame: Box) -> None:
        self.frame = frame
        self.taken: list[Box] = []
        self.labels: list[Box] = []
        self.crossed: list[Box] = []

    def take(self, box: Box) -> None:
        self.taken.append(box)

    def avoid(self, boxes: Iterable[Box]) -> None:
        self.crossed += boxes

    def place(
        self, corners: Iterable[tuple[float, float]], width: float, origin: tuple[float, float] | None = None
    ) -> Box | None:
        """Take the first of the boxes at these left upper corners that is free, and return it; None if none is.

        One that crosses a line, or whose own line to `origin` crosses a label, is taken only if all do.
        """
        boxes = [Box(x, y, x + width, y + HEIGHT) for x, y in corners]
        free = [box for box in boxes if self.frame.contains(box) and not any(map(box.overlaps, self.taken))]
        clear = (
            box
            for box in free
            if not any(map(box.overlaps, self.crossed)) and not (origin and self.is_label_between(box, *origin))
        )
        found = next(clear, free[0] if free else None)
        if found is not None:
            self.take(Box(found.left - GAP, found.top, found.right + GAP, found.bottom))
            self.labels.append(found)
        return found

    def is_label_between(self, box: Box, x: float, y: float) -> bool:
        line = line_boxes(x, y, *nearest(box, x, y))
        return any(part.overlaps(label) for part in line for label in self.labels)


def around(x: float, y: float, radius: float, width: float) -> Iterator[tuple[float, float]]:
    """Yield corners of a label of a point: right of it, left, above, below, then farther away."""
    for ring in RINGS:
        away = radius + GAP + ring
        columns = (x + away, x - away - width)
        yield from ((column, y - HEIGHT / 2) for column in columns)
        yield from ((x - width / 2, row) for row in (y - away - HEIGHT, y + away))
        yield from product(columns, (y - ring / 2 - HEIGHT, y + ring / 2))
        yield from product((x - width, x), (y - away - HEIGHT, y + away))


def line_boxes(x: float, y: float, end_x: float, end_y: float, step: float = 6.0) -> Iterator[Box]:
    """Yield small boxes that cover a line."""
    count = max(1, round(hypot(end_x - x, end_y - y) / step))
    for index in range(count):
        (left, right), (top, bottom) = (
            sorted((start + (end - start) * index / count, start + (end - start) * (index + 1) / count))
            for start, end in ((x, end_x), (y, end_y))
        )
        yield Box(left - 1, top - 1, right + 1, bottom + 1)


def nearest(box: Box, x: float, y: float) -> tuple[float, float]:
    """The point of a box that is nearest to another point: where a line from there to the box ends."""
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
