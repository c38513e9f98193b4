"""Pages of the tests' kernels, and questions to their data."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.inspection import kernels_to_explore as kernels
from tilework.compiler import ASTSource
from tilework.inspect.compilation import Request
from tilework.inspect.explorer.document import build
from tilework.inspect.replay import Launch
from tilework.targets.base import GPUTarget

SIGNATURE = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
DIVISIBLE = {(position,): [["tt.divisibility", 16]] for position in range(4)}
SIZE = 1008
Rows = dict[tuple[str, int], list[str]]


def request(target: str, block: int = 256, launched: bool = True, **settings: Any) -> Request:
    """`scaled_sum` for a target, perhaps with the arguments of a launch."""
    arrays = [np.ones(SIZE, np.float32) for _ in range(3)]
    source = ASTSource(kernels.scaled_sum, SIGNATURE, {"BLOCK": block}, DIVISIBLE)
    launch = Launch.of(kernels.scaled_sum, (*arrays, SIZE, block), (4,)).copied() if launched else None
    return Request(source, GPUTarget.parse(target), settings, launch)


@cache
def compiled(target: str, warps: int = 4) -> dict[str, Any]:
    """Without a launch, for tests that only look."""
    return build([request(target, launched=False, num_warps=warps)])


@cache
def odd_tiles() -> dict[str, Any]:
    """The same with a tile that GPUs pad."""
    return build([request("cuda:90", block=200, launched=False)])


def explored(target: str) -> dict[str, Any]:
    return build([request(target)])


def line_of(text: str) -> int:
    """The first line of the kernels' file that has `text`."""
    lines = Path(kernels.__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def text_of(document: dict[str, Any], rows: list[int]) -> list[str]:
    return [document["strings"][document["rowStrings"][row]] for row in rows]


def keys_by_stage(document: dict[str, Any], entry: dict[str, Any]) -> dict[str, Rows]:
    """For each stage, the lines that each line of the source is linked with."""
    found: dict[str, Rows] = {}
    for stage in entry["stages"]:
        lines: Rows = {}
        for row, text in zip(stage["rows"], text_of(document, stage["rows"]), strict=True):
            for file, line in document["locations"][document["rowLocations"][row]]:
                lines.setdefault((document["files"][file]["path"], line), []).append(text)
        found[stage["name"]] = lines
    return found
