"""What `CublasLt` checks before it calls the library, on tensors of which only the shapes are there."""

from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from tilework.triton import cublas


def tensor(dtype: str, *shape: int) -> Any:
    return SimpleNamespace(
        dtype=f"torch.{dtype}",
        shape=shape,
        ndim=len(shape),
        device=SimpleNamespace(type="cuda"),
        is_contiguous=lambda: True,
        numel=lambda: prod(shape),
        element_size=lambda: 1,
    )


@pytest.mark.parametrize(
    ("kind", "rows", "k", "least"),
    [
        (cublas.MXFP8, 128, 128, 512),
        (cublas.MXFP8, 16, 32, 512),
        (cublas.MXFP8, 129, 128, 1024),
        (cublas.MXFP8, 128, 160, 1024),
        (cublas.MXFP8, 384, 4096, 384 * 128),
        (cublas.NVFP4, 128, 64, 512),
        (cublas.NVFP4, 200, 80, 256 * 8),
    ],
)
def test_scales_fill_tiles(kind: cublas.Scaled, rows: int, k: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLAS reads scales in tiles of 128 rows x 4 blocks along K."""
    monkeypatch.setattr(cublas, "capability", lambda tensor: (10, 0))
    a, c = tensor(kind.dtype, rows, k // kind.per_byte), tensor("float32", rows, rows)
    enough, too_few = tensor("uint8", least), tensor("uint8", least - 1)
    cublas.check_scaled(kind, a, a, c, enough, enough)
    for letter, scales in (("A", (too_few, enough)), ("B", (enough, too_few))):
        with pytest.raises(RuntimeError, match=f"{letter} has {rows} rows of .* reads {least} scales.* {least - 1}$"):
            cublas.check_scaled(kind, a, a, c, *scales)
