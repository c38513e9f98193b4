"""A cache that machines share: what is sent, which entries are trusted, statistics and settings.

`test_shared_limits.py` is about what a server may cost, `test_shared_redis.py` has real servers.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.shared_caches import (
    FILES,
    KEY,
    OTHER,
    ROOT,
    SECRET,
    another_machine,
    failures,
    launch,
    objects,
)
from tests.runtime.shared_caches import folder as folder
from tests.runtime.shared_caches import server as server
from tests.runtime.test_cache_managers import Shelf
from tests.runtime.test_signing import key_pair
from tilework import knobs, metrics
from tilework.runtime.kernel_cache.compile_once import making
from tilework.runtime.kernel_cache.managers import RemoteCacheManager, load_entry, store_entry
from tilework.runtime.kernel_cache.remote import guard as guards
from tilework.runtime.kernel_cache.remote import shared_cache, statistics
from tilework.runtime.kernel_cache.remote.folder_store import FolderStore
from tilework.runtime.kernel_cache.remote.guard import flush_all
from tilework.runtime.kernel_cache.remote.packed import Unusable, pack, unpack
from tilework.runtime.kernel_cache.remote.store import Address, Timeouts, open_store
from tilework.runtime.signing import Key
from tilework.tools.cli import main

pytestmark = pytest.mark.usefixtures("fresh_cache")

# ---- the entries that are sent


def test_a_kernel_is_shared(folder: Path, hits: list[bool], tmp_path: Path) -> None:
    first = launch()
    another_machine(tmp_path)
    assert len([path for path in objects(folder) if path.name == "fill"]) == 1
    second = launch()
    assert hits == [False, True] and second.asm["ttir"] == first.asm["ttir"]
    assert all(path.startswith(knobs.cache.dir) and Path(path).is_file() for path in second.metadata_group.values())
    for path in objects(folder):
        path.unlink()
    launch()
    assert hits == [False, True, True], "it is local now"
    assert [metrics.total("cache_hits", cache=cache) for cache in ("remote", "disk")] == [1, 1]
    assert metrics.total("remote_seconds", what="saved") > 0 and metrics.total("remote_bytes", direction="sent") > 0


@pytest.mark.parametrize("is_url", [True, False], ids=["url", "triton"])
def test_an_entry_on_disk_needs_no_server(is_url: bool, tmp_path: Path, warm_cache: Path) -> None:
    """A second process neither imports a client nor compiles the launcher again."""
    settings = {"TILEWORK_CACHE_URL": "redis://localhost:1/0"} if is_url else {
        "TRITON_CACHE_MANAGER": "tilework.runtime.kernel_cache.managers:RemoteCacheManager",
        "TRITON_REMOTE_CACHE_BACKEND": "tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend",
        "TRITON_REDIS_PORT": "1",
    }  # fmt: skip
    (script := tmp_path / "app.py").write_text(
        "import sys\nimport numpy as np\nimport tilework\nimport tilework.language as tl\n"
        "@tilework.jit\ndef fill(out):\n    tl.store(out, 3)\n"
        "out = np.zeros(1, 'i4')\nfill[(1,)](out)\n"
        "assert out[0] == 3\nassert sys.argv[1:] or not {'redis', 'llvmlite.binding'} & sys.modules.keys(), 'loaded'\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "TRITON_CACHE_DIR": str(warm_cache),
    }
    subprocess.run([sys.executable, str(script), "first"], env=environment, check=True)
    subprocess.run([sys.executable, str(script)], env={**environment, **settings}, check=True)


def test_the_folder_has_one_object_per_entry(folder: Path) -> None:
    store_entry(KEY, "add", FILES, seconds=1.5)
    assert flush_all(5)
    (path,) = objects(folder)
    name = str(path.relative_to(folder))
    assert name == shared_cache.object_name(KEY, "add")
    found = unpack(name, path.read_bytes(), Key.of(SECRET))
    assert found.files == FILES and found.seconds == 1.5
    store, key = shared_cache.opened()
    assert list(store.names(shared_cache.KERNELS)) == [name] and key is not None and key.name == Key.of(SECRET).name


def test_a_backend_of_ones_own(hits: list[bool], tmp_path: Path) -> None:
    Shelf.files.clear()
    knobs.cache.manager_class, knobs.cache.remote_manager_class = RemoteCacheManager, Shelf
    knobs.cache.trust_server = True
    launch()
    another_machine(tmp_path)
    launch()
    assert hits == [False, True] and all(isinstance(data, bytes) for data in Shelf.files.values())


def test_a_backend_that_hangs_costs_as_little_as_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = threading.Event()
    monkeypatch.setattr(Shelf, "get", lambda self, filenames: event.wait(60) and {})
    knobs.cache.manager_class, knobs.cache.remote_manager_class = RemoteCacheManager, Shelf
    knobs.cache.trust_server, knobs.cache.timeout = True, 0.05
    metrics.reset()
    with pytest.warns(UserWarning, match=r"test_cache_managers:Shelf is not used now \(time-out"):
        assert load_entry(KEY, "add") is None
    assert load_entry(OTHER, "add") is None
    event.set()
    assert 0.05 <= metrics.total("remote_seconds", what="waited") < 1


def test_dumps_and_overrides_are_local(folder: Path, tmp_path: Path) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    launch()
    assert flush_all(5) and list((tmp_path / "dump").rglob("fill.ttir"))
    assert {path.name for path in objects(folder)} <= {"fill", "tilework_pool", "tilework_launcher"} | {
        path.name for path in objects(folder) if path.name.startswith("tilework")
    }
    assert not objects(folder, "files")


# ---- keys and trusted servers


def test_without_a_key_no_machine_code_is_sent(folder: Path, hits: list[bool], tmp_path: Path) -> None:
    launch()
    another_machine(tmp_path)
    before = objects(folder)
    del knobs.cache.key
    os.environ.pop("TILEWORK_CACHE_KEY")
    with pytest.warns(UserWarning, match=r"set TILEWORK_CACHE_KEY .* or TILEWORK_CACHE_TRUST_SERVER=1") as caught:
        launch()
        store_entry(OTHER, "add", FILES)
    assert len(caught) == 1 and hits == [False, False]
    assert flush_all(5) and objects(folder) == before


def test_a_server_that_is_trusted_in_so_many_words(folder: Path, hits: list[bool], tmp_path: Path) -> None:
    del knobs.cache.key
    os.environ.pop("TILEWORK_CACHE_KEY")
    knobs.cache.trust_server = True
    launch()
    another_machine(tmp_path)
    launch()
    assert hits == [False, True]
    another_machine(tmp_path, "one with a key")
    knobs.cache.key = SECRET  # trust does not make up for a signature that is required
    with pytest.warns(UserWarning, match="signature: it is not signed"):
        launch()
    assert hits == [False, True, False]


def test_a_wrong_signature_is_a_warning_and_a_compilation(folder: Path, hits: list[bool], tmp_path: Path) -> None:
    launch()
    another_machine(tmp_path)
    knobs.cache.key = "another key of another team"
    ours, theirs = Key.of("another key of another team").name, Key.of(SECRET).name
    with pytest.warns(UserWarning, match=f"signature: it is signed with the key {theirs}, not with {ours}") as caught:
        launch()
    text = "".join(str(one.message) for one in caught)
    assert hits == [False, False] and failures()["signature"] >= 1
    assert SECRET not in text and "another team" not in text


def test_who_recomputes_the_checksum_is_found_out(folder: Path, tmp_path: Path) -> None:
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    (path,) = objects(folder)
    name = str(path.relative_to(folder))
    signed, evil = path.read_bytes(), bytearray(pack(name, {**FILES, "add.obj": b"evil"}))
    path.write_bytes(evil)
    with pytest.warns(UserWarning, match="it is not signed"):
        assert load_entry(KEY, "add") is None
    evil[24:104] = signed[24:104]
    path.write_bytes(evil)
    assert load_entry(KEY, "add") is None and failures() == {"signature": 2}


def test_an_entry_under_the_name_of_another(folder: Path, tmp_path: Path) -> None:
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    (path,) = objects(folder)
    other = folder / shared_cache.object_name(OTHER, "add")
    other.parent.mkdir(parents=True)
    path.rename(other)
    with pytest.warns(UserWarning, match="changed without the key"):
        assert load_entry(OTHER, "add") is None
    assert load_entry(KEY, "add") is None, "it is not there any more"


def test_readers_with_a_public_key(folder: Path, hits: list[bool], tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    private, public = key_pair()
    (file := tmp_path / "builder.pem").write_text(private)
    del knobs.cache.key
    os.environ.pop("TILEWORK_CACHE_KEY")
    knobs.cache.key_file = str(file)
    launch()
    another_machine(tmp_path)
    sent = objects(folder)
    file.write_text(public)
    shared_cache._keys.clear()
    launch()
    assert hits == [False, True]
    store_entry(OTHER, "add", FILES)
    assert flush_all(5) and objects(folder) == sent, "a reader sends nothing"


# ---- objects


@pytest.mark.parametrize("key", [None, Key.of(SECRET)], ids=["plain", "signed"])
def test_every_flipped_byte_and_every_length_is_found(key: Key | None) -> None:
    data = pack("kernels/1/X/add", {"add.json": b"{}", "add.obj": b"\x7fELF"}, 0.5, key)
    assert unpack("kernels/1/X/add", data, key).files == {"add.json": b"{}", "add.obj": b"\x7fELF"}
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        if key is None and 24 <= position < 104:
            continue  # the signature, which is not read without a key
        with pytest.raises(Unusable):
            unpack("kernels/1/X/add", bytes(changed), key)
    for size in range(len(data)):
        with pytest.raises(Unusable):
            unpack("kernels/1/X/add", data[:size], key)
    with pytest.raises(Unusable):
        unpack("kernels/1/X/add", data + b"\0", key)
    with pytest.raises(Unusable):
        unpack("kernels/1/X/sub", data, key)


@pytest.mark.parametrize(
    "change",
    [
        {"files": [["../x", 0]]},
        {"files": [["a/b", 0]]},
        {"files": [["a", -1]]},
        {"files": [["a", 1 << 70]]},
        {"files": [["a", 0], ["a", 0]]},
        {"files": [["a", True]]},
        {"files": 7},
        {"seconds": "long"},
        {"seconds": 10**300 * 10**300},
        {"files": [["a" * 256, 0]]},
        {"files": [["\ud800", 0]]},
        {"name": "kernels/1/X/sub"},
    ],
)
def test_an_index_that_says_nothing_sensible(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = json.dumps
    monkeypatch.setattr(json, "dumps", lambda index, **options: dumps({**index, **change}, **options))
    data = pack("kernels/1/X/add", {"a": b""})
    with pytest.raises(Unusable, match="sensible"):
        unpack("kernels/1/X/add", data)


# ---- statistics


def test_what_it_did_for_this_machine(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        metrics.reset()
        load_entry(KEY, "add")
        store_entry(KEY, "add", FILES, seconds=2.0)
        another_machine(tmp_path, f"machine {number}")
        load_entry(KEY, "add")
        if number:
            with pytest.warns(UserWarning, match="damaged: cut"):
                next(iter(guards.GUARDS.values())).refuse("x", "damaged", "cut")
        knobs.cache.dir = str(tmp_path / "cache")
        statistics.keep()
    assert main(["cache", "info"]) == 0
    printed = capsys.readouterr().out
    assert f"shared     file://{folder}, signed with the HMAC-SHA256 key {Key.of(SECRET).name}" in printed
    assert "server     answers in" in printed and "by 2 processes" in printed and SECRET not in printed
    assert "2 hits, 1 misses, 1 refused" in printed and "saved 4.0 s" in printed and "failures: damaged 1" in printed
    assert "others" not in printed
    with (tmp_path / "cache" / ".remote" / "statistics.jsonl").open("ab") as file:
        file.write(b'{"time": 1, "remote_requests": 7}\n{"cut')
    assert statistics.known(knobs.cache.dir)[1] >= 1, "a line that is none is left out"
    folder.rename(tmp_path / "unmounted")
    assert main(["cache", "info"]) == 0
    assert "server     unreachable: No such file" in capsys.readouterr().out


def test_a_compilation_is_one_miss(folder: Path) -> None:
    """The server is asked before and after the compilation is reserved."""

    def make(key: str) -> None:
        assert load_entry(key, "add") is None
        with making(key, "add", "compiles add") as claim:
            assert claim.found is None and shared_cache.holder(key, "add")
            claim.is_done = bool(store_entry(key, "add", FILES))

    make(KEY)
    assert flush_all(5) and requests() == {"miss": 1}
    name = folder / shared_cache.object_name(KEY, "add")
    name.unlink()
    knobs.cache.dir += " of a machine that lacks it too"
    make(KEY)
    assert flush_all(5) and requests() == {"miss": 2}, "what was sent, and is gone, is missed again"
    name.write_bytes(b"something else")
    knobs.cache.dir += " of a third one"
    with pytest.warns(UserWarning, match="damaged"):
        make(KEY)
    assert requests() == {"miss": 2, "refused": 1}


def requests() -> dict[str, float]:
    return {name.split('"')[1]: value for name, value in metrics.snapshot()["remote_requests"].items()}


def test_statistics_do_not_grow_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "LARGEST", 300)
    assert load_entry(KEY, "add") is None
    for _ in range(20):
        statistics.keep()
    files = list(Path(knobs.cache.dir, ".remote").iterdir())
    assert sum(path.stat().st_size for path in files) < 1000 and statistics.known(knobs.cache.dir)[1] >= 2


# ---- settings


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("cachehost:6379", "=cachehost:6379: it begins with no scheme|it begins with cachehost"),
        ("ftp://user:hunter2@host/x", "=ftp://...: it begins with ftp://; expected redis://"),
        ("redis://", "it names no host"),
        ("redis://user:hunter2@host:port/0", "=redis://...: its host or port is none"),
        ("s3:///prefix", "it names no bucket"),
        ("file://relative/path", "three slashes"),
        ("hunter2@host", "=...: it begins with no scheme"),
        ("redis://user:hunter2@host/main", "its database 'main' is not a number"),
        ("rediss://user:hunter2@host?ca=/nowhere/ca.pem", "its ca=/nowhere/ca.pem is not a file"),
        ("https://user:hunter2@host?ca=/nowhere/ca.pem", "its ca=/nowhere/ca.pem is not a file"),
        ("s3://bucket?endpoint=http://host", "s3:// has no option 'endpoint'"),
        ("file:///tmp?ca=x", "file:// has no option 'ca'"),
    ],
)
def test_a_url_that_is_none(url: str, message: str) -> None:
    knobs.cache.url, knobs.cache.key = url, SECRET
    with pytest.raises(RuntimeError, match=message) as caught:
        load_entry(KEY, "add")
    assert "hunter2" not in str(caught.value) and caught.value.__cause__ is None


def test_a_password_is_never_shown() -> None:
    address = Address("rediss://ci:hunter2@cachehost:7001/3?ca=/etc/ca.pem&ssl_password=hunter3")
    assert str(address) == "rediss://ci@cachehost:7001/3" and "hunter" not in repr(address)
    assert address.hidden("hunter2 and hunter3 of /etc/ca.pem") == "*** and *** of /etc/ca.pem"
    assert "hunter" not in repr(FolderStore(address, Timeouts()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"key": "short"}, "Unable to use TILEWORK_CACHE_KEY: it has 5 characters, and needs 16"),
        ({"key_file": "/no/such/file"}, "TILEWORK_CACHE_KEY_FILE=/no/such/file: No such file"),
        ({"key": SECRET, "key_file": "/no/such/file"}, "both set"),
        ({"key": "-----BEGIN PRIVATE KEY-----\nabc"}, "no whole key|needs the package cryptography"),
    ],
)
def test_keys_that_are_none(folder: Path, settings: dict[str, str], message: str) -> None:
    del knobs.cache.key
    os.environ.pop("TILEWORK_CACHE_KEY")
    for name, value in settings.items():
        setattr(knobs.cache, name, value)
    with pytest.raises(RuntimeError, match=message) as caught:
        load_entry(KEY, "add")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "inf", "nan"])
def test_time_outs_that_are_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE_TIMEOUT", text)
    with pytest.raises(RuntimeError, match="expected seconds"):
        Timeouts.of_knobs()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(RuntimeError, match=r"needs the package redis: pip install 'tilework\[redis\]', or unset"):
        open_store("redis://localhost")
    knobs.cache.manager_class = RemoteCacheManager
    knobs.cache.remote_manager_class = "tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend"
    knobs.cache.trust_server = True
    with pytest.raises(RuntimeError, match=r"RedisRemoteCacheBackend needs the package redis.*REMOTE_CACHE_BACKEND"):
        load_entry(KEY, "add")
