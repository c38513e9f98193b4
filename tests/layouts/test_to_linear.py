"""Encodings as linear layouts: worked examples."""

import pytest

from tests.layouts.worked_examples import DISTRIBUTED, SHARED
from tilework.layouts.encodings import Encoding
from tilework.layouts.to_linear import to_linear

Bases = list[tuple[int, ...]]


@pytest.mark.parametrize(("encoding", "shape", "register", "lane", "warp"), DISTRIBUTED)
def test_a_distributed_encoding(
    encoding: Encoding, shape: tuple[int, ...], register: Bases, lane: Bases, warp: Bases
) -> None:
    layout = to_linear(encoding, shape)
    wanted = {"register": tuple(register), "lane": tuple(lane), "warp": tuple(warp), "block": ()}
    assert dict(layout.bases) == wanted
    assert layout.outs == tuple((f"dim{i}", size) for i, size in enumerate(shape))


@pytest.mark.parametrize(("encoding", "shape", "offset"), SHARED)
def test_a_shared_encoding(encoding: Encoding, shape: tuple[int, ...], offset: Bases) -> None:
    assert dict(to_linear(encoding, shape).bases) == {"offset": tuple(offset), "block": ()}
