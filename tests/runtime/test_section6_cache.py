"""The cache: what the files `test_cache_*.py` and `test_rows_driver.py` leave open."""

import json
import sys
from base64 import b32encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.test_cache_managers import FakeRedis, Shelf
from tilework import knobs
from tilework.compiler import ASTSource, compile
from tilework.runtime.kernel_cache import remote as cache_remote
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.kernel_cache.managers import (
    CacheManager,
    FileCacheManager,
    RedisRemoteCacheBackend,
    RemoteCacheManager,
)
from tilework.targets.base import GPUTarget, find_backend
from tilework.triton.runtime import build

HOPPER = GPUTarget("cuda", 90, 32)
LONG = "k" * 400


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.redis.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    fill.device_caches.clear()


@pytest.fixture
def hits() -> list[bool]:
    seen: list[bool] = []
    knobs.compilation.listener = lambda **event: seen.append(event["cache_hit"])
    return seen


def source(kernel: Any = fill) -> ASTSource:
    return ASTSource(kernel, {"p": "*fp32", "value": "fp32", "n": "i32"}, {"BLOCK": 16})


def launch() -> Any:
    """As in a new process: nothing in memory."""
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    kernel = fill[(1,)](out, 2.0, 16)
    assert (out == 2).all()
    return kernel


# -- keys and files ------------------------------------------------------------------------------------------------


def test_6_15_the_folder_is_the_key_in_base_32() -> None:
    kernel = compile(source(), HOPPER)
    folder = Path(kernel.metadata_group["fill.json"]).parent
    assert folder.name == b32encode(bytes.fromhex(kernel.hash)).decode().rstrip("=") == folder_of(kernel.hash)


def test_6_15_stage_files_and_their_group() -> None:
    kernel = compile(source(), HOPPER)
    folder = Path(kernel.metadata_group["fill.json"]).parent
    assert {"fill.source", "fill.ttir", "fill.ttgir", "fill.json"} <= set(kernel.metadata_group)
    for name, path in kernel.metadata_group.items():
        assert Path(path) == folder / name and Path(path).is_file()
    assert (folder / "fill.ttgir").read_text() == kernel.asm["ttgir"]
    assert json.loads((folder / "fill.json").read_text())["hash"] == kernel.hash
    children = json.loads((folder / "__grp__fill.json").read_text())["child_paths"]
    assert set(children) == set(kernel.metadata_group)


def test_6_15_long_names_are_cut(tmp_path: Path, hits: list[bool]) -> None:
    """Two kernels that differ behind the cut are two kernels."""
    path = tmp_path / "long.py"
    body = "(p, value, n, BLOCK: tl.constexpr):\n    tl.store(p, value)\n"
    text = "import tilework\nimport tilework.language as tl\n"
    path.write_text(text + "".join(f"@tilework.jit\ndef {LONG}{end}{body}" for end in "ab"))
    scope: dict[str, Any] = {"__name__": "long", "__file__": str(path)}
    exec(compile_text(path), scope)
    for end in "ab":
        kernel = compile(source(scope[LONG + end]), HOPPER)
        assert kernel.name == LONG + end and len(kernel.metadata_group) > 3
        assert all(len(Path(name).stem) <= 150 for name in kernel.metadata_group)
        assert compile(source(scope[LONG + end]), HOPPER).hash == kernel.hash
    assert hits == [False, True] * 2


def compile_text(path: Path) -> Any:
    import builtins

    return builtins.compile(path.read_text(), str(path), "exec")


def test_6_15_a_hit_needs_the_json(hits: list[bool]) -> None:
    kernel = compile(source(), HOPPER)
    compile(source(), HOPPER)
    group = Path(kernel.metadata_group["fill.json"]).with_name("__grp__fill.json")
    children = json.loads(group.read_text())["child_paths"]
    group.write_text(
        json.dumps({"child_paths": {name: path for name, path in children.items() if name != "fill.json"}})
    )
    with pytest.warns(UserWarning, match="damaged"):
        compile(source(), HOPPER)
    assert hits == [False, True, False]


def test_6_15_the_backend_is_its_architecture_and_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [GPUTarget("cuda", 80, 32), HOPPER, GPUTarget("cpu", "host", 1)]
    assert len({find_backend(target).hash() for target in targets}) == 3
    before = compile(source()).hash
    monkeypatch.setattr(type(find_backend(targets[2])), "hash", lambda self: "another compiler")
    assert compile(source()).hash != before


def test_6_15_dumps_are_found_by_the_source_alone(tmp_path: Path) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    for warps in (4, 8):
        compile(source(), HOPPER, {"num_warps": warps})
    (folder,) = [path for path in (tmp_path / "dump").iterdir() if not path.name.startswith(".")]
    assert folder.name == folder_of(source().hash()) and (folder / "fill.ttgir").is_file()


# -- managers ------------------------------------------------------------------------------------------------------


def test_6_15_the_interface_of_managers() -> None:
    import inspect

    for manager in (CacheManager, FileCacheManager, RemoteCacheManager):
        parameters = inspect.signature(manager).parameters
        assert list(parameters) == ["key", "override", "dump"]
        assert (parameters["override"].default, parameters["dump"].default) == (False, False)
        for method in ("get_file", "put", "get_group", "put_group"):
            assert callable(getattr(manager, method))
        assert inspect.signature(manager.put).parameters["binary"].default is True
    with pytest.raises(TypeError, match="abstract"):
        CacheManager("key")  # pyright: ignore[reportAbstractUsage]


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> FakeRedis:
    fake = FakeRedis()
    monkeypatch.setitem(sys.modules, "redis", fake)
    cache_remote.connection.cache_clear()
    cache_remote.warn_unreachable.cache_clear()
    knobs.cache.manager_class = RemoteCacheManager
    knobs.cache.remote_manager_class = RedisRemoteCacheBackend
    return fake


def test_6_15_a_kernel_travels_through_redis(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
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


def test_6_15_redis_from_the_environment(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    del knobs.cache.manager_class, knobs.cache.remote_manager_class
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "tilework.runtime.kernel_cache.managers:RemoteCacheManager")
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend")
    monkeypatch.setenv("TRITON_REDIS_HOST", "cachehost")
    monkeypatch.setenv("TRITON_REDIS_PORT", "7001")
    monkeypatch.setenv("TRITON_REDIS_KEY_FORMAT", "{filename}@{key}")
    kernel = launch()
    assert redis.made == [("cachehost", 7001)] and f"fill.ttir@{kernel.hash}" in redis.data


def test_6_15_a_damaged_value_in_redis_is_compiled_again(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
    kernel = launch()
    redis.data[f"triton:{kernel.hash}:fill.{kernel.metadata.binary_ext}"] = b"damaged"
    knobs.cache.dir = str(tmp_path / "another machine")
    launch()
    assert hits == [False, False]


def test_6_15_a_redis_that_goes_away(redis: FakeRedis, hits: list[bool], tmp_path: Path) -> None:
    redis.up = False
    with pytest.warns(UserWarning, match="cannot be used"):
        launch()
    launch()
    assert hits == [False, True], "the local cache is still there"


def test_6_15_dumps_and_overrides_of_a_remote_cache_are_local(redis: FakeRedis, tmp_path: Path) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    kernel = launch()
    assert list((tmp_path / "dump").rglob("fill.ttir"))
    assert {key.split(":")[1] for key in redis.data} == {kernel.hash}


def test_6_15_a_remote_manager_without_a_backend() -> None:
    knobs.cache.manager_class = RemoteCacheManager
    knobs.cache.remote_manager_class = None
    with pytest.raises(RuntimeError, match="RemoteCacheManager"):
        launch()


def test_6_15_a_backend_of_ones_own(hits: list[bool], tmp_path: Path) -> None:
    Shelf.files.clear()
    knobs.cache.manager_class, knobs.cache.remote_manager_class = RemoteCacheManager, Shelf
    launch()
    knobs.cache.dir = str(tmp_path / "another machine")
    launch()
    assert hits == [False, True] and all(isinstance(data, bytes) for data in Shelf.files.values())


# -- helper modules in C -------------------------------------------------------------------------------------------


def test_6_15_helper_modules_are_kept_by_source_and_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the key is made of decides the folder of the cache that is looked into."""
    keys: list[str] = []

    class Stop(Exception):
        pass

    def look(key: str) -> Any:
        keys.append(key)
        raise Stop

    monkeypatch.setattr(build, "get_cache_manager", look)

    def key_of(text: str) -> str:
        with pytest.raises(Stop):
            build.compile_module_from_src(text, "helper")
        return keys.pop()

    one = key_of("/* one */")
    assert one == key_of("/* one */") != key_of("/* two */")
    monkeypatch.setattr(build, "platform_key", lambda: "another machine")
    assert key_of("/* one */") != one
