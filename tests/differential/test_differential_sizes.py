"""Every op on tiles whose sizes are no powers of two: NumPy's results in the interpreter, the evaluator and as code of
the host.

One shape for each op is generated; ``TILEWORK_ALL_TILE_SIZES=1`` runs 1 to 130 elements and 20 pairs (ten minutes of
one core; ``-n 16`` shares them). The same rows on emulated GPUs: `tests/targets/gpu_odd_tiles.py`, on a real one
`tests/device/check_odd_tiles.py`.
"""

import os
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.differential.devices import HOSTS
from tests.differential.harness import agree, compare, launch
from tests.differential.tile_accesses import ACCESSES, arrays
from tests.differential.tile_ops import ROWS, Row, Shape, inputs
from tests.targets.odd_tiles import LINES, PAIRS

ALL = os.environ.get("TILEWORK_ALL_TILE_SIZES") == "1"
SHAPES: list[Shape] = [*((size,) for size in LINES), *PAIRS]


def shapes_for(name: str, ranks: Any = (2,), most: int = 1024) -> list[Shape]:
    """All of `ranks`, or one that is always the same."""
    known = [shape for shape in SHAPES if len(shape) in ranks and (ALL or prod(shape) <= most)]
    return known if ALL or not known else [known[crc32(name.encode()) % len(known)]]


CELLS = [(name, shape) for name, row in ROWS.items() for shape in shapes_for(name, row.ranks, row.most)]


@pytest.mark.parametrize(("name", "shape"), CELLS)
def test_op(name: str, shape: Shape) -> None:
    row: Row = ROWS[name]
    blocks, params = inputs(row, shape, sum(shape)), row.params(shape)
    got = agree(row.fn, *blocks, params=params, rtol=row.rtol, atol=row.rtol, devices=HOSTS)
    with np.errstate(all="ignore"):
        wanted: Any = row.numpy(*blocks, *params)
    if wanted is None:
        return
    wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
    for number, (left, right) in enumerate(zip(map(np.asarray, wanted), got, strict=True)):
        assert left.shape == right.shape
        compare(left.astype(right.dtype), right, f"result {number} of NumPy", rtol=row.rtol, atol=row.rtol)


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in ACCESSES for shape in shapes_for(name)])
def test_access(name: str, shape: Shape) -> None:
    access = ACCESSES[name]
    args, constants = arrays(access, *shape)
    got = launch(access.kernel, args, constants, devices=HOSTS)
    wanted = args["out"].copy()
    access.numpy(args["x"], wanted, *shape)
    compare(wanted, got["out"], "NumPy")
