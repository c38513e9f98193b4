"""The arithmetic of tensor cores, bit for bit, against what an H200 computed."""

from pathlib import Path

import numpy as np
import pytest

from tilework.oracles.emulator import tensor_cores
from tilework.oracles.emulator.rules.matrix import halves, small_floats

MEASURED = [
    line.split()
    for line in (Path(__file__).parent / "h200_dots.txt").read_text().splitlines()
    if not line.startswith("#")
]
BITS = {"f32": np.uint32, "f16": np.uint16}


def elements(text: str, type: str) -> np.ndarray:
    """A row of numbers, (1, 1, k), from its digits."""
    size = tensor_cores.bits_of(type) // 4
    words = np.array([int(text[at : at + size], 16) for at in range(0, len(text), size)])
    return tensor_cores.elements_of(words.astype(f"u{size // 2}"), type)[None, None]


@pytest.mark.parametrize("types", sorted({tuple(line[:4]) for line in MEASURED}), ids=" ".join)
def test_measured_sums(types: tuple[str, ...]) -> None:
    instruction, d, a, b = types
    for line in [line for line in MEASURED if tuple(line[:4]) == types]:
        left, right = elements(line[4], a), elements(line[5], b)
        added = np.array([int(line[6], 16)]).astype(BITS[d]).view(f"f{np.dtype(BITS[d]).itemsize}").reshape(1, 1, 1)
        if instruction == "mma" and a in ("e4m3", "e5m2"):
            found = small_floats(halves(left, a), halves(right, b), added, d)
        else:
            found = tensor_cores.fused(
                tensor_cores.Factor.of(left, tensor_cores.FLOATS[a]),
                tensor_cores.Factor.of(right, tensor_cores.FLOATS[b]),
                added,
                d,
            )
        assert found.reshape(1).view(BITS[d])[0] == int(line[7], 16), line


def test_there_are_many() -> None:
    assert len(MEASURED) > 100


def test_a_deep_product_is_a_chain_of_steps() -> None:
    """32 of k are two steps of 16: the second starts from the cut result of the first."""
    a, b = np.zeros((1, 1, 32)), np.ones((1, 1, 32))
    a[0, 0, 0], a[0, 0, 1], a[0, 0, 16] = 1, 2.0**-24, 2.0**-24
    one = tensor_cores.fused(
        tensor_cores.Factor.of(a, tensor_cores.F16), tensor_cores.Factor.of(b, tensor_cores.F16), np.zeros((1, 1, 1))
    )
    assert one.item() == 1  # both are cut, though together they would count


@pytest.mark.parametrize(
    ("type", "word", "expected"),
    [
        ("s4", 0x1F, [-1, 1]),
        ("u4", 0x1F, [15, 1]),
        ("b1", 0x81, [1, 0, 0, 0, 0, 0, 0, 1]),
        ("s8", 0xFF, [-1]),
        ("u8", 0xFF, [255]),
    ],
)
def test_low_bits_come_first(type: str, word: int, expected: list[int]) -> None:
    assert tensor_cores.elements_of(np.array([[word]], np.uint8), type).tolist() == [expected]


def test_doubles_take_turns() -> None:
    """((c + a0 b0) + a1 b1), each rounded once."""
    a, b, c = np.array([[[2.0**53, 1.0]]]), np.array([[[1.0], [-1.0]]]), np.array([[[1.0]]])
    assert tensor_cores.chained(a, b, c).item() == 2.0**53 - 1
