"""One entry of the cache: it appears whole, damage is seen, and a bad folder means memory."""

import errno
import json
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tilework import knobs
from tilework.runtime.kernel_cache import entry as cache_entry
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.entry import STAMP, Damaged, EntryStore
from tilework.runtime.kernel_cache.managers import load_entry, store_entry

KEY = "ab" * 32
FOLDER = "VOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOVQ"
OLD = {"add.source": b"old", "add.ttir": b"module { }", "add.json": b'{"n": 1}', "add.cubin": bytes(range(256))}
NEW = {"add.source": b"new", "add.ttir": b"module { tt }", "add.json": b'{"n": 2}'}


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "home" / "cache")
        yield tmp_path / "home" / "cache"


@pytest.fixture
def entry(root: Path) -> Path:
    store_entry(KEY, "add", OLD)
    return root / FOLDER


def test_what_was_stored_is_loaded(entry: Path) -> None:
    assert load_entry(KEY, "add") == OLD
    assert load_entry(KEY, "mul") is None
    assert load_entry("cd" * 32, "add") is None


def test_files_lie_where_triton_users_look(entry: Path) -> None:
    paths = store_entry(KEY, "add", OLD)
    assert paths == {file: str(entry / file) for file in OLD} == cache.entry_paths(KEY, OLD)
    assert {path.name for path in entry.iterdir()} == {*OLD, "__grp__add.json", STAMP}
    manifest = json.loads((entry / "__grp__add.json").read_text())
    assert manifest["child_paths"] == paths
    assert manifest["files"]["add.source"]["size"] == 3


def test_folders_and_files_are_private(entry: Path, root: Path) -> None:
    for folder in (root.parent, root, root / ".tmp", entry):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in entry.iterdir()} == {0o600}


def test_nothing_is_left_behind(entry: Path, root: Path) -> None:
    store_entry(KEY, "add", NEW)
    assert list((root / ".tmp").iterdir()) == []


def test_a_long_name_is_cut(root: Path) -> None:
    for name in ("k" * 400, "核" * 400):
        stem = cache.file_stem(name)
        assert len(stem) <= 150
        assert store_entry(KEY, name, {f"{stem}.json": b"{}"})
        assert load_entry(KEY, name) == {f"{stem}.json": b"{}"}


@pytest.mark.parametrize("file", ["a/b", "..", "", "a\0b"])
def test_a_file_name_stays_in_its_folder(file: str) -> None:
    with pytest.raises(ValueError, match="not the name of a cache file"):
        store_entry(KEY, "add", {file: b""})


def test_storing_again_replaces_the_entry(entry: Path) -> None:
    store_entry(KEY, "add", NEW)
    assert load_entry(KEY, "add") == NEW
    assert not (entry / "add.cubin").exists()


def test_storing_the_same_again_writes_nothing(entry: Path) -> None:
    before = entry.stat().st_ino
    store_entry(KEY, "add", OLD)
    assert entry.stat().st_ino == before


def test_other_files_of_a_key_survive_a_replacement(entry: Path) -> None:
    cache.get_cache_manager(KEY).put(b"timings", "add.autotune.json")
    store_entry(KEY, "mul", {"mul.json": b"{}"})
    store_entry(KEY, "add", NEW)
    assert load_entry(KEY, "add") == NEW
    assert load_entry(KEY, "mul") == {"mul.json": b"{}"}
    assert (entry / "add.autotune.json").read_bytes() == b"timings"


# Damage


def truncate(entry: Path) -> None:
    os.truncate(entry / "add.cubin", 100)


def lengthen(entry: Path) -> None:
    (entry / "add.ttir").write_bytes(OLD["add.ttir"] + b"x")


def flip_a_bit(entry: Path) -> None:
    data = bytearray(OLD["add.cubin"])
    data[77] ^= 4
    (entry / "add.cubin").write_bytes(data)


def lose_a_file(entry: Path) -> None:
    (entry / "add.source").unlink()


def empty_manifest(entry: Path) -> None:
    os.truncate(entry / "__grp__add.json", 0)


def cut_manifest(entry: Path) -> None:
    os.truncate(entry / "__grp__add.json", 200)


def foreign_manifest(entry: Path) -> None:
    (entry / "__grp__add.json").write_text('{"child_paths": {}}')


def escaping_manifest(entry: Path) -> None:
    path = entry / "__grp__add.json"
    path.write_text(path.read_text().replace('"add.source": {"sha256"', '"../add.source": {"sha256"'))


def symbolic_link(entry: Path) -> None:
    (entry / "add.ttir").rename(entry.parent / "elsewhere")
    (entry / "add.ttir").symlink_to(entry.parent / "elsewhere")


def writable_file(entry: Path) -> None:
    (entry / "add.ttir").chmod(0o666)


def folder_instead_of_a_file(entry: Path) -> None:
    (entry / "add.ttir").unlink()
    (entry / "add.ttir").mkdir()


def file_instead_of_the_folder(entry: Path) -> None:
    entry.rename(entry.parent / "elsewhere")
    entry.write_text("")


DAMAGE = [
    truncate, lengthen, flip_a_bit, lose_a_file, empty_manifest, cut_manifest, foreign_manifest, escaping_manifest,
    symbolic_link, writable_file, folder_instead_of_a_file, file_instead_of_the_folder,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_seen_and_the_entry_is_built_again(entry: Path, damage: Callable[[Path], None]) -> None:
    damage(entry)
    with pytest.warns(UserWarning, match="damaged .* was deleted and will be built again"):
        assert load_entry(KEY, "add") is None
    assert not entry.exists()
    store_entry(KEY, "add", NEW)
    assert load_entry(KEY, "add") == NEW


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_entry_can_be_stored_over(entry: Path, damage: Callable[[Path], None]) -> None:
    damage(entry)
    store_entry(KEY, "add", OLD)
    assert load_entry(KEY, "add") == OLD


def test_a_lost_manifest_is_a_missing_entry(entry: Path) -> None:
    (entry / "__grp__add.json").unlink()
    assert load_entry(KEY, "add") is None
    store_entry(KEY, "add", OLD)
    assert load_entry(KEY, "add") == OLD


def test_trouble_that_is_not_damage_deletes_nothing(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_entry, "read_file", fail_with(errno.EMFILE))
    assert load_entry(KEY, "add") is None
    monkeypatch.undo()
    assert EntryStore(str(entry.parent)).read(FOLDER, "add.json") == OLD


def test_a_new_entry_is_not_deleted_for_the_damage_of_the_old(entry: Path, root: Path) -> None:
    store = EntryStore(str(root))
    truncate(entry)
    with pytest.raises(Damaged) as caught:
        store.read(FOLDER, "add.json")
    store.write(FOLDER, "add.json", NEW)
    store.discard(FOLDER, caught.value.folder)
    assert store.read(FOLDER, "add.json") == NEW


# Privacy


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `path` another user's."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        return
    real = cache_entry.is_private
    other = path.stat().st_ino
    monkeypatch.setattr(cache_entry, "is_private", lambda info: info.st_ino != other and real(info))


def test_an_entry_of_someone_else_is_ignored(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(entry, monkeypatch)
    assert load_entry(KEY, "add") is None
    assert cache.get_cache_manager(KEY).get_file("add.ttir") is None


def test_an_entry_that_others_may_write_is_ignored_and_replaced(entry: Path) -> None:
    entry.chmod(0o770)
    assert load_entry(KEY, "add") is None
    store_entry(KEY, "add", OLD)
    assert load_entry(KEY, "add") == OLD
    assert stat.S_IMODE(entry.stat().st_mode) == 0o700


def test_a_sticky_folder_protects_what_is_in_it(entry: Path, root: Path) -> None:
    root.chmod(0o1777)
    assert load_entry(KEY, "add") == OLD


# A folder that cannot be used


def fail_with(code: int) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(code, os.strerror(code), "somewhere")

    return fail


def a_file(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.parent.mkdir()
    root.write_text("")


def below_a_file(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.parent.write_text("")


def not_private(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    root.chmod(0o777)


def of_someone_else(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    give_away(root, patch)


def impossible_to_make(root: Path, patch: pytest.MonkeyPatch) -> None:
    knobs.cache.dir = "/proc/nowhere/cache"


def read_only(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    patch.setattr(cache_entry.os, "mkdir", fail_with(errno.EROFS))


def not_permitted(root: Path, patch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    patch.setattr(cache_entry.os, "mkdir", fail_with(errno.EACCES))


def full(root: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", fail_with(errno.ENOSPC))


UNUSABLE: dict[Callable[[Path, pytest.MonkeyPatch], None], str] = {
    a_file: "not a directory",
    below_a_file: "not a directory",
    not_private: "others may write to it",
    of_someone_else: "",
    impossible_to_make: "does not exist and cannot be made",
    read_only: "read-only file system",
    not_permitted: "not writable",
    full: "the disk is full",
}


@pytest.mark.parametrize("spoil", UNUSABLE, ids=lambda spoil: spoil.__name__)
def test_without_a_folder_entries_stay_in_memory_after_one_warning(
    root: Path, spoil: Callable[[Path, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        spoil(root, patch)
        monkeypatch.setattr("tilework.runtime.kernel_cache.file_manager._warned", set())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert load_entry(KEY, "add") is None
            assert store_entry(KEY, "add", OLD) == {}
            assert load_entry(KEY, "add") == OLD
            assert store_entry(KEY, "add", NEW) == {}
            assert load_entry(KEY, "add") == NEW
        (warning,) = caught
        assert warning.category is UserWarning
        assert f"cannot use the cache directory {knobs.cache.dir}: " in str(warning.message)
        assert UNUSABLE[spoil] in str(warning.message)


def test_a_read_only_cache_is_still_read(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("mkdir", "rename", "utime", "unlink", "write"):
        monkeypatch.setattr(cache_entry.os, call, fail_with(errno.EROFS))
    monkeypatch.setattr(cache_entry, "TOUCH_EVERY", -1.0)
    assert load_entry(KEY, "add") == OLD


def test_a_file_still_gets_a_path_without_a_folder(root: Path) -> None:
    a_file(root, pytest.MonkeyPatch())
    manager = cache.get_cache_manager(KEY)
    with pytest.warns(UserWarning, match="cannot use the cache directory"):
        path = manager.put(b"ELF", "helper.so")
    assert Path(path).read_bytes() == b"ELF"
    assert manager.get_file("helper.so") == path
    manager.put_group("helper.json", {"helper.so": path})
    assert manager.get_group("helper.json") == {"helper.so": path}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MEMORY_BOUND", 10)
    monkeypatch.setattr(cache, "_memory", {})
    for number in range(5):
        cache.remember(("root", str(number), "add.json"), {"add": b"1234"})
    assert [folder for _, folder, _ in cache._memory] == ["3", "4"]


def test_a_folder_that_is_deleted_is_made_again(entry: Path, root: Path) -> None:
    cache_entry.remove_tree(str(root))
    assert load_entry(KEY, "add") is None
    store_entry(KEY, "add", OLD)
    assert load_entry(KEY, "add") == OLD
