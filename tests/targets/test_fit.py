"""Kernels that a GPU cannot run are refused from their TTGIR, where the caller requests that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.errors import DoesNotFit, OutOfResources
from tilework.runtime.compile.sources import ASTSource
from tilework.runtime.compile.stages import device_limits
from tilework.target import GPUTarget
from tilework.targets.nvidia.lower import emit

H100 = {"max_shared_mem": 232448, "max_num_regs": 65536}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


@tilework.jit
def matmul(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, n, K):
        left = tl.load(a + i[:, None] * n + (start + k)[None, :])
        acc = tl.dot(left, tl.load(b + (start + k)[:, None] * n + j[None, :]), acc)
    tl.store(c + i[:, None] * n + j[None, :], acc)


def compiled(M: int, N: int, K: int, limits: dict[str, int] | None, **options: Any) -> Any:
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32", "M": "constexpr", "N": "constexpr", "K": "constexpr"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(4)}
    source = ASTSource(matmul, types, {"M": M, "N": N, "K": K}, aligned)
    token = device_limits.set(limits)
    try:
        return tilework.compile(source, GPUTarget("cuda", 90, 32), options)
    finally:
        device_limits.reset(token)


def test_shared_memory_is_that_of_the_kernel(tmp_path: Path) -> None:
    shared = compiled(64, 64, 32, None).metadata.shared
    knobs.cache.dir = str(tmp_path / "other")
    with pytest.raises(DoesNotFit, match="shared memory") as error:
        compiled(64, 64, 32, H100 | {"max_shared_mem": shared - 1})
    assert (error.value.required, error.value.limit) == (shared, shared - 1)
    assert compiled(64, 64, 32, H100 | {"max_shared_mem": shared}).metadata.shared == shared


@pytest.mark.parametrize(
    "shape, options, name",
    [
        ((128, 128, 64), {"num_stages": 8}, "shared memory"),
        ((256, 128, 64), {"num_warps": 4}, "registers"),
        ((128, 128, 64), {"num_warps": 4, "maxnreg": 96}, "registers"),
        ((64, 64, 32), {"num_warps": 64}, "threads"),
    ],
)
def test_what_cannot_fit_never_reaches_llvm(
    shape: tuple[int, int, int], options: dict[str, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit, "emit_module", lambda *args, **kwargs: pytest.fail("code is made of it"))
    with pytest.raises(OutOfResources, match=name):
        compiled(*shape, H100, **options)
