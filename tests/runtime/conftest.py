"""Fixtures of several files of this folder."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.runtime.cuda_fixture import cuda as cuda
from tilework import JITFunction, knobs
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING


@pytest.fixture
def fresh_cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache and knobs of its own, and no kernel or hook left to the next test."""
    for key in CACHE_INVALIDATING:
        monkeypatch.delenv(key, raising=False)
    with ExitStack() as stack:
        for group in (knobs.cache, knobs.redis, knobs.runtime, knobs.compilation, knobs.language):
            stack.enter_context(group.scope())
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in vars(request.module).values():
        if isinstance(kernel, JITFunction):
            kernel.device_caches.clear()
            kernel.pre_run_hooks.clear()


@pytest.fixture
def hits(fresh_cache: None) -> list[bool]:
    """True for each compilation that was found in the cache."""
    seen: list[bool] = []
    knobs.compilation.listener = lambda **event: seen.append(event["cache_hit"])
    return seen
