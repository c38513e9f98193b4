"""Triton's interface: managers, keys, remote caches."""

import hashlib
import inspect
import json
import marshal
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.runtime.conftest import fresh_shared_cache
from tilework import knobs
from tilework.runtime.kernel_cache import key as package_key
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.key import folder_of, hash_of_sources
from tilework.runtime.kernel_cache.managers import (
    CacheManager,
    FileCacheManager,
    RemoteCacheBackend,
    RemoteCacheManager,
    get_cache_key,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
    load_entry,
    store_entry,
    triton_key,
)
from tilework.runtime.kernel_cache.remote.guard import flush_all

KEY = "ab" * 32
FOLDER = "VOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOVQ"
FILES = {"add.ttir": b"module {}", "add.json": b"{}"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope(), knobs.redis.scope(), fresh_shared_cache():
        for name in ("dir", "dump_dir", "override_dir", "manager_class", "remote_manager_class"):
            delattr(knobs.cache, name)
            os.environ.pop(knobs.cache.knob_descriptors[name].key, None)
        knobs.cache.home_dir = str(tmp_path)
        yield tmp_path / ".triton"


# Files


def test_files_are_below_the_key(home: Path) -> None:
    manager = get_cache_manager(KEY)
    assert isinstance(manager, FileCacheManager)
    assert manager.cache_dir == str(home / "cache" / FOLDER)
    assert manager.get_file("add.ttir") is None and not manager.has_file("add.ttir")
    path = manager.put(b"\x00\x01", "add.cubin")
    assert path == manager.get_file("add.cubin") == str(home / "cache" / FOLDER / "add.cubin")
    assert manager.has_file("add.cubin")
    assert Path(path).read_bytes() == b"\x00\x01"


@pytest.mark.parametrize("binary", [True, False])
def test_text_is_utf8(binary: bool) -> None:
    path = get_cache_manager(KEY).put("é", "add.ttir", binary=binary)
    assert Path(path).read_bytes() == "é".encode()


def test_putting_again_replaces() -> None:
    manager = get_cache_manager(KEY)
    manager.put("1", "add.json", binary=False)
    assert Path(manager.put("2", "add.json", binary=False)).read_text() == "2"


def test_groups(home: Path) -> None:
    manager = get_cache_manager(KEY)
    assert manager.get_group("add.json") is None
    group = {file: manager.put(data, file) for file, data in FILES.items()}
    path = manager.put_group("add.json", group)
    assert path == str(home / "cache" / FOLDER / "__grp__add.json")
    assert json.loads(Path(path).read_text())["child_paths"] == group
    assert manager.get_group("add.json") == group
    assert load_entry(KEY, "add") == FILES, "files and entries are two views of the same thing"


def test_an_entry_is_a_group() -> None:
    paths = store_entry(KEY, "add", FILES)
    assert get_cache_manager(KEY).get_group("add.json") == paths
    assert get_cache_manager(KEY).get_file("add.ttir") == paths["add.ttir"]


def test_a_damaged_group_is_deleted() -> None:
    paths = store_entry(KEY, "add", FILES)
    os.truncate(paths["add.ttir"], 1)
    with pytest.warns(UserWarning, match="damaged"):
        assert get_cache_manager(KEY).get_group("add.json") is None
    assert not os.path.exists(paths["add.json"])


@pytest.mark.parametrize("content", ["{not json", "[]", '{"child_paths": 3}', ""])
@pytest.mark.filterwarnings("ignore:the cache entry")
def test_a_group_that_cannot_be_parsed_is_a_miss(content: str) -> None:
    store_entry(KEY, "add", FILES)
    (group,) = Path(FileCacheManager(KEY).cache_dir).glob("__grp__*")
    group.write_text(content)
    assert get_cache_manager(KEY).get_group("add.json") is None and load_entry(KEY, "add") is None
    store_entry(KEY, "add", FILES)
    assert load_entry(KEY, "add") == FILES


@pytest.mark.filterwarnings("ignore:the cache entry")
def test_an_incomplete_group_is_a_miss() -> None:
    """As in Triton 3.8; 3.7 returns what is left."""
    paths = store_entry(KEY, "add", FILES)
    os.remove(paths["add.ttir"])
    assert get_cache_manager(KEY).get_group("add.json") is None


def test_dump_and_override_have_their_own_folders(home: Path) -> None:
    dump, override = get_dump_manager(KEY), get_override_manager(KEY)
    path = dump.put("module {}", "add.ttir", binary=False)
    assert path == str(home / "dump" / FOLDER / "add.ttir")
    assert override.get_file("add.ttir") is None
    folder = home / "override" / FOLDER
    folder.mkdir(parents=True)
    (folder / "add.ttir").write_text("module { }")
    folder.chmod(0o775)  # its user made it, by hand: that is what overrides are for
    assert override.get_file("add.ttir") == str(folder / "add.ttir")
    assert get_cache_manager(KEY).get_file("add.ttir") is None


def test_a_dump_folder_that_cannot_be_used(home: Path) -> None:
    home.mkdir()
    (home / "dump").write_text("")
    with pytest.warns(UserWarning, match="set TRITON_DUMP_DIR"):
        path = get_dump_manager(KEY).put("module {}", "add.ttir")
    assert Path(path).read_text() == "module {}"


def test_the_interface_of_managers() -> None:
    for manager in (CacheManager, FileCacheManager, RemoteCacheManager):
        parameters = inspect.signature(manager).parameters
        assert list(parameters) == ["key", "override", "dump"]
        assert (parameters["override"].default, parameters["dump"].default) == (False, False)
        for method in ("get_file", "put", "get_group", "put_group"):
            assert callable(getattr(manager, method))
        assert inspect.signature(manager.put).parameters["binary"].default is True
    with pytest.raises(TypeError, match="abstract"):
        CacheManager("key")  # pyright: ignore[reportAbstractUsage]


# A manager of the user's


class Recorder(CacheManager):
    """A user's manager, which keeps files in a dict."""

    files: ClassVar[dict[tuple[str, str], bytes]] = {}

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        self.local = FileCacheManager(f"local {key}")

    def get_file(self, filename: str) -> str | None:
        return self.local.get_file(filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        assert isinstance(data, bytes)
        self.files[self.key, filename] = data
        return self.local.put(data, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        return self.local.get_group(filename)

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        return self.local.put_group(filename, group)


def test_entries_go_through_the_users_manager(home: Path) -> None:
    knobs.cache.manager_class = Recorder
    assert load_entry(KEY, "add") is None
    paths = store_entry(KEY, "add", FILES)
    assert load_entry(KEY, "add") == FILES
    assert cache.entry_paths(KEY, FILES) == paths
    assert Recorder.files == {(KEY, file): data for file, data in FILES.items()}
    assert not (home / "cache" / FOLDER).exists()
    assert isinstance(get_dump_manager(KEY), Recorder)
    os.unlink(paths["add.ttir"])
    with pytest.warns(UserWarning):
        assert load_entry(KEY, "add") is None


# Remote caches: `test_shared_cache.py` and `test_shared_redis.py` have what they share with TILEWORK_CACHE_URL


class Shelf(RemoteCacheBackend):
    """A remote cache in this process."""

    files: ClassVar[dict[tuple[str, str], bytes]] = {}
    requested: ClassVar[list[list[str]]] = []

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        self.requested.append(filenames)
        return {name: self.files[self.key, name] for name in filenames if (self.key, name) in self.files}

    def put(self, filename: str, data: bytes) -> None:
        self.files[self.key, filename] = data


@pytest.fixture
def shelf() -> type[Shelf]:
    Shelf.files.clear()
    Shelf.requested.clear()
    knobs.cache.manager_class = RemoteCacheManager
    knobs.cache.remote_manager_class = Shelf
    knobs.cache.trust_server = True
    return Shelf


def test_a_remote_manager_needs_a_backend() -> None:
    with pytest.raises(RuntimeError, match="Unable to instantiate RemoteCacheManager"):
        RemoteCacheManager(KEY)


def test_a_remote_entry_is_copied_to_this_machine(shelf: type[Shelf], home: Path, tmp_path: Path) -> None:
    store_entry(KEY, "add", FILES)
    assert flush_all(5) and list(shelf.files) == [(f"kernels/1/{FOLDER}", "add")]
    knobs.cache.dir = str(tmp_path / "another machine")
    assert load_entry(KEY, "add") == FILES
    shelf.files.clear()
    assert load_entry(KEY, "add") == FILES, "it is local now"
    assert get_cache_manager(KEY).get_group("add.json") == {
        file: str(tmp_path / "another machine" / FOLDER / file) for file in FILES
    }


def test_a_single_remote_file(shelf: type[Shelf], tmp_path: Path) -> None:
    assert get_cache_manager(KEY).get_file("add.autotune.json") is None
    get_cache_manager(KEY).put("{}", "add.autotune.json", binary=False)
    assert flush_all(5)
    knobs.cache.dir = str(tmp_path / "another machine")
    path = get_cache_manager(KEY).get_file("add.autotune.json")
    assert path is not None and Path(path).read_text() == "{}"


def test_a_remote_group(shelf: type[Shelf], tmp_path: Path) -> None:
    manager = get_cache_manager(KEY)
    manager.put_group("add.json", {file: manager.put(data, file) for file, data in FILES.items()})
    assert flush_all(5)
    knobs.cache.dir = str(tmp_path / "another machine")
    found = get_cache_manager(KEY).get_group("add.json")
    assert found == {file: str(tmp_path / "another machine" / FOLDER / file) for file in FILES}
    assert found is not None and {file: Path(path).read_bytes() for file, path in found.items()} == FILES


@pytest.mark.parametrize("damage", [b"[]", b"\x89TWKRNL\n", None])
def test_a_damaged_remote_entry_is_missing(shelf: type[Shelf], tmp_path: Path, damage: bytes | None) -> None:
    store_entry(KEY, "add", FILES)
    assert flush_all(5)
    ((name, data),) = shelf.files.items()
    shelf.files[name] = data[:-1] + b"?" if damage is None else damage
    knobs.cache.dir = str(tmp_path / "another machine")
    with pytest.warns(UserWarning, match="an entry that is not used.*damaged"):
        assert load_entry(KEY, "add") is None


def test_dumps_and_overrides_stay_local(shelf: type[Shelf], home: Path) -> None:
    for manager in (get_dump_manager(KEY), get_override_manager(KEY)):
        path = manager.put("module {}", "add.ttir")
        manager.put_group("add.json", {"add.ttir": path})
        assert manager.get_file("add.ttir") == path
        assert manager.get_file("add.ptx") is None
    assert shelf.files == {} and shelf.requested == []


# Keys


def part(name: str) -> Any:
    return SimpleNamespace(hash=lambda: name)


def key_of(parts: list[Any], variables: dict[str, str]) -> str:
    source, backend, options = parts
    return get_cache_key(source, backend, options, variables)


def test_every_part_is_in_the_key() -> None:
    parts = [part("source"), part("backend"), part("options")]
    base = key_of(parts, {"A": "1", "B": "2"})
    assert len(bytes.fromhex(base)) == 32
    assert base == key_of(parts, {"B": "2", "A": "1"}), "the order of variables does not matter"
    others = {key_of(parts, {"A": "1"})}
    for index in range(3):
        others.add(key_of([*parts[:index], part("other"), *parts[index + 1 :]], {"A": "1", "B": "2"}))
    assert len(others | {base}) == 5


def test_the_package_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [part("source"), part("backend"), part("options")]
    before = key_of(parts, {})
    monkeypatch.setattr("tilework.runtime.kernel_cache.key.triton_key", lambda: "another version")
    assert key_of(parts, {}) != before


def test_the_package_key_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        triton_key.cache_clear()
        return triton_key()

    monkeypatch.setattr(package_key, "ROOT", str(tmp_path))
    (tmp_path / "ir" / "__pycache__").mkdir(parents=True)
    (tmp_path / "ir" / "tt.py").write_text("one")
    first = key()
    assert key() == first
    (tmp_path / "ir" / "__pycache__" / "tt.py").write_text("ignored")
    assert key() == first
    (tmp_path / "ir" / "tt.py").write_text("two")
    second = key()
    (tmp_path / "ir" / "tt.py").rename(tmp_path / "ir" / "ttg.py")
    assert len({first, second, key()}) == 3
    monkeypatch.undo()
    triton_key.cache_clear()


def test_every_byte_of_a_source_is_hashed(tmp_path: Path) -> None:
    found = set()
    for end in ("1", "2"):
        (tmp_path / "large.py").write_text("#" * (1 << 17) + end)
        found.add(hash_of_sources(str(tmp_path)))
    assert len(found) == 2


def test_the_hash_of_sources_is_kept_like_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, kept = tmp_path / "ir", tmp_path / "__pycache__"
    source = folder / "tt.py"
    for path in (kept, folder):
        path.mkdir()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def written(text: str, changed: int) -> str:
        source.write_text(text)
        for path in (source, folder, tmp_path):
            os.utime(path, (changed, changed))
        return hash_of_sources(str(tmp_path))

    first = written("one", int(time.time()))
    assert not list(kept.iterdir())  # another change may follow that has the same time
    assert written("one", 1000) == first and len(list(kept.iterdir())) == 1
    (file,) = kept.iterdir()
    file.write_bytes(b"0" * 64 + file.read_bytes()[64:])
    assert written("one", 1000) == "0" * 64
    assert written("one", 1001) == first
    assert written("two", 1000) not in (first, "0" * 64)
    assert written("three", 1000) != written("two", 1000)
    for nonsense in (
        b"never written",
        b"",
        b"0" * 64,
        b"0" * 64 + marshal.dumps(([], [])),
        b"0" * 64 + marshal.dumps(7),
    ):
        file.write_bytes(nonsense)
        assert written("one", 1000) == first
    (folder / "ops.py").write_text("new")
    os.utime(folder / "ops.py", (1000, 1000))
    assert (second := hash_of_sources(str(tmp_path))) != first
    (folder / "ops.py").rename(folder / "types.py")
    assert hash_of_sources(str(tmp_path)) not in (first, second)
    (folder / "types.py").unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file.unlink()
    assert written("one", 1000) == first and not file.exists()


def test_the_package_key_is_the_same_in_every_process() -> None:
    command = "from tilework.runtime.kernel_cache.managers import triton_key; print(triton_key())"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == triton_key()


@pytest.mark.parametrize("key", ["", "not hex", "ab" * 500])
def test_any_text_can_be_a_key(key: str) -> None:
    assert len(folder_of(key)) == 52
    assert folder_of(key) == folder_of(hashlib.sha256(key.encode()).hexdigest())
    store_entry(key, "add", FILES)
    assert load_entry(key, "add") == FILES
