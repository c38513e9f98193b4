"""Every op on tiles whose sizes are no powers of two: what NumPy gives, on every device.

A few shapes for each op are drawn; ``DIFFERENTIAL_SIZES=all`` runs sizes 1 to 130 in one dimension and 20 pairs in two (an hour
on two cores), and ``DIFFERENTIAL_SIZES=5:8`` the fifth of eight parts of that.
"""

import os
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.differential.devices import DEVICES, HOSTS, Device
from tests.differential.harness import agree, compare, launch
from tests.differential.tile_accesses import ACCESSES, arrays
from tests.differential.tile_ops import ROWS, Row, Shape, inputs

LINES: list[Shape] = [(size,) for size in range(1, 131)]
PAIRS: list[Shape] = [
    *(
        (1, 1),
        (1, 3),
        (3, 1),
        (2, 3),
        (3, 2),
        (3, 5),
        (5, 3),
        (6, 6),
        (7, 8),
        (8, 7),
        (1, 96),
        (96, 1),
        (12, 10),
        (9, 33),
    ),
    *((33, 9), (17, 31), (48, 80), (65, 3), (3, 65), (15, 16)),
]
ASKED = os.environ.get("DIFFERENTIAL_SIZES", "")


def shapes_for(name: str, known: list[Shape], most: int = 4096) -> list[Shape]:
    """One of `known` that is always the same one, or the part of all that is asked for."""
    if not ASKED:
        some = [shape for shape in known if prod(shape) <= most]
        return [some[crc32(name.encode()) % len(some)]]
    part, _, parts = ASKED.partition(":")
    return known if ASKED == "all" else known[int(part) % int(parts) :: int(parts)]


CELLS = [
    pytest.param(row, shape, id=f"{name}-{'x'.join(map(str, shape))}")
    for name, row in ROWS.items()
    for rank, known in ((1, LINES), (2, PAIRS))
    if rank in row.ranks and (ASKED or rank == max(row.ranks) or crc32(name.encode()) % 3 == 0)
    for shape in shapes_for(name, known, row.most)
]


@pytest.mark.parametrize(("row", "shape"), CELLS)
def test_op(row: Row, shape: Shape) -> None:
    blocks, params = inputs(row, shape, sum(shape)), row.params(shape)
    got = agree(row.fn, *blocks, params=params, rtol=row.rtol, atol=row.rtol, devices=devices_of(shape))
    with np.errstate(all="ignore"):
        wanted: Any = row.numpy(*blocks, *params)
    if wanted is None:
        return
    wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
    for number, (left, right) in enumerate(zip(map(np.asarray, wanted), got, strict=True)):
        assert left.shape == right.shape
        compare(left.astype(right.dtype), right, f"result {number} of NumPy", rtol=row.rtol, atol=row.rtol)


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, shape) for name in ACCESSES for shape in shapes_for(name, PAIRS)],
)
def test_access(name: str, shape: Shape) -> None:
    access = ACCESSES[name]
    args, constants = arrays(access, *shape)
    got = launch(access.kernel, args, constants, devices=devices_of(shape))
    wanted = args["out"].copy()
    access.numpy(args["x"], wanted, *shape)
    compare(wanted, got["out"], "NumPy")


def devices_of(shape: Shape) -> dict[str, Device]:
    """All; emulating large tiles is left to the full run."""
    return DEVICES if ASKED or prod(shape) < 256 else HOSTS
