"""Kernels that travel through remote caches; `test_cache_managers.py` has the caches themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.launch_kernels import fill
from tests.runtime.test_cache_managers import FakeRedis, Shelf
from tests.runtime.test_cache_managers import redis as server  # noqa: F401 - a fixture
from tilework import knobs, metrics
from tilework.runtime.kernel_cache.managers import (
    RedisRemoteCacheBackend,
    RemoteCacheManager,
)

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture
def hits() -> list[bool]:
    seen: list[bool] = []
    knobs.compilation.listener = lambda **event: seen.append(event["cache_hit"])
    return seen


def launch() -> Any:
    """As in a new process: nothing in memory."""
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    kernel = fill[(1,)](out, 2.0, 16)
    assert (out == 2).all()
    return kernel


@pytest.fixture
def redis(server: FakeRedis) -> FakeRedis:  # noqa: F811
    knobs.cache.manager_class = RemoteCacheManager
    knobs.cache.remote_manager_class = RedisRemoteCacheBackend
    return server


def test_a_kernel_travels_through_redis(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
    metrics.reset()
    first = launch()
    assert {key.rpartition(":")[0] for key in redis.data} == {f"triton:{first.hash}"}
    names = {key.rpartition(":")[2] for key in redis.data}
    assert {"fill.ttir", "fill.json", "__grp__fill.json"} <= names
    knobs.cache.dir = str(tmp_path / "another machine")
    second = launch()
    assert hits == [False, True] and second.asm["ttir"] == first.asm["ttir"]
    assert all(path.startswith(knobs.cache.dir) and Path(path).is_file() for path in second.metadata_group.values())
    redis.data.clear()
    launch()
    assert hits == [False, True, True], "it is local now"
    assert [metrics.total("cache_hits", cache=cache) for cache in ("remote", "disk")] == [1, 1]


def test_redis_from_the_environment(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    del knobs.cache.manager_class, knobs.cache.remote_manager_class
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "tilework.runtime.kernel_cache.managers:RemoteCacheManager")
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend")
    monkeypatch.setenv("TRITON_REDIS_HOST", "cachehost")
    monkeypatch.setenv("TRITON_REDIS_PORT", "7001")
    monkeypatch.setenv("TRITON_REDIS_KEY_FORMAT", "{filename}@{key}")
    kernel = launch()
    assert redis.made == [("cachehost", 7001)] and f"fill.ttir@{kernel.hash}" in redis.data


def test_a_damaged_value_in_redis_is_compiled_again(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
    kernel = launch()
    redis.data[f"triton:{kernel.hash}:fill.{kernel.metadata.binary_ext}"] = b"damaged"
    knobs.cache.dir = str(tmp_path / "another machine")
    launch()
    assert hits == [False, False]


def test_a_redis_that_goes_away(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
    redis.up = False
    with pytest.warns(UserWarning, match="cannot be used"):
        launch()
    launch()
    assert hits == [False, True], "the local cache is still there"


def test_dumps_and_overrides_of_a_remote_cache_are_local(redis: FakeRedis, tmp_path: Path) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    kernel = launch()
    assert list((tmp_path / "dump").rglob("fill.ttir"))
    assert {key.split(":")[1] for key in redis.data} == {kernel.hash}


def test_a_backend_of_ones_own(hits: list[bool], tmp_path: Path) -> None:
    Shelf.files.clear()
    knobs.cache.manager_class, knobs.cache.remote_manager_class = RemoteCacheManager, Shelf
    launch()
    knobs.cache.dir = str(tmp_path / "another machine")
    launch()
    assert hits == [False, True] and all(isinstance(data, bytes) for data in Shelf.files.values())
