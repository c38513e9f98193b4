"""`tilework cache push` and `pull`: copies of a part of a cache through a shared one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import fresh_cache as fresh_cache
from tests.runtime.redis_server import redis_server
from tilework import knobs
from tilework.runtime.kernel_cache.entry import EntryStore, manifest_name
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.kernel_cache.managers import FileCacheManager, load_entry, load_local, store_local
from tilework.runtime.kernel_cache.remote.folder_store import FolderStore
from tilework.runtime.kernel_cache.remote.packed import pack, unpack
from tilework.runtime.signing import Key
from tilework.tools.cli import main

pytestmark = pytest.mark.usefixtures("fresh_cache")
KEYS = ["ab" * 32, "cd" * 32, "ef" * 32]
SECRET = "0123456789abcdef"
TIMINGS = json.dumps({"kernel": "add", "key": "(1,)", "timings": {"{'BLOCK': 64}": [0.1, 0.1, 0.1]}}).encode()


def files(name: str) -> dict[str, bytes]:
    return {f"{name}.obj": name.encode() * 100, f"{name}.json": b"{}"}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Fill a cache with three kernels, and return an empty shared one."""
    for key, name in zip(KEYS, ("add", "mul", "attention_forward")):
        store_local(key, name, files(name), 1.25 if name == "mul" else 0.0)
    FileCacheManager(KEYS[0]).put(TIMINGS, "add.autotune.json")
    (folder := tmp_path / "shared").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{folder}", SECRET
    return folder


def another_machine(tmp_path: Path) -> None:
    knobs.cache.dir = str(tmp_path / "another machine")


def objects(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def move(capsys: Any, *arguments: str) -> str:
    code = main(["cache", *arguments])
    printed = capsys.readouterr()
    return f"{code} {printed.out}{printed.err}"


def check_round_trip(capsys: Any, tmp_path: Path) -> None:
    assert move(capsys, "push").startswith("0 4 entries sent to ")
    assert "0 0 entries sent" in (said := move(capsys, "push")) and "4 already there" in said
    another_machine(tmp_path)
    assert move(capsys, "pull", "--kernel", "add").startswith("0 2 entries received from ")
    assert load_local(KEYS[0], "add") == files("add") and load_local(KEYS[1], "mul") is None
    assert move(capsys, "pull").startswith("0 2 entries received from ")
    assert [load_local(key, name) for key, name in zip(KEYS[1:], ("mul", "attention_forward"))] == [
        files("mul"),
        files("attention_forward"),
    ]
    timings = FileCacheManager(KEYS[0]).get_file("add.autotune.json")
    assert timings is not None and Path(timings).read_bytes() == TIMINGS
    assert "4 already there" in move(capsys, "pull")


def test_a_folder(shared: Path, capsys: Any, tmp_path: Path) -> None:
    check_round_trip(capsys, tmp_path)


def test_a_redis(shared: Path, capsys: Any, tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        knobs.cache.url = server.url
        check_round_trip(capsys, tmp_path)


def test_some_kernels(shared: Path, capsys: Any) -> None:
    assert move(capsys, "push", "--kernel", "attention_*", "--kernel", "mul").startswith("0 2 entries sent")
    assert objects(shared) == ["attention_forward", "mul"]
    path = next(shared.rglob("mul"))
    found = unpack(str(path.relative_to(shared)), path.read_bytes(), Key.of(SECRET))
    assert found == (files("mul"), 1.25), "what it saves lets a job wait for the next"
    path = next(shared.rglob("attention_forward"))
    found = unpack(str(path.relative_to(shared)), path.read_bytes(), Key.of(SECRET))
    assert found == (files("attention_forward"), 0.0), "nothing is known"


@pytest.mark.parametrize("is_job", [True, False], ids=["job", "pull"])
def test_how_long_compiling_took_travels_with_an_entry(shared: Path, capsys: Any, tmp_path: Path, is_job: bool) -> None:
    assert move(capsys, "push", "--kernel", "mul").startswith("0 1 entry sent")
    another_machine(tmp_path)
    assert load_entry(KEYS[1], "mul") if is_job else move(capsys, "pull").startswith("0 1 entry received")
    path = next(shared.rglob("mul"))
    sent = path.read_bytes()
    path.unlink()
    assert move(capsys, "push").startswith("0 1 entry sent") and path.read_bytes() == sent


@pytest.mark.parametrize("seconds", ["1.0", True, [], -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none(shared: Path, seconds: Any) -> None:
    store, folder = EntryStore(knobs.cache.dir), folder_of(KEYS[1])
    manifest = Path(store.path(folder), manifest_name("mul.json"))
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "seconds": seconds}))
    assert store.seconds(folder, "mul.json") == 0 == store.seconds(folder, "add.json")
    assert load_local(KEYS[1], "mul") == files("mul")


def test_entries_that_are_damaged_or_of_others(shared: Path, capsys: Any, tmp_path: Path) -> None:
    Path(knobs.cache.dir, folder_of(KEYS[0]), "add.obj").write_bytes(b"something else")
    said = move(capsys, "push", "--kernel", "add", "--kernel", "mul")
    assert said.startswith("1 2 entries sent") and "1 failed" in said and "add.obj should have 300 bytes" in said
    path = next(shared.rglob("mul"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    another_machine(tmp_path)
    said = move(capsys, "pull", "--kernel", "mul")
    assert said.startswith("1 0 entries received") and "it does not have its checksum" in said
    knobs.cache.key = "another secret of 16 bytes"
    said = move(capsys, "pull", "--kernel", "add")
    assert said.startswith("1 0 entries received") and "1 failed" in said
    assert not list(Path(knobs.cache.dir).glob("*/*.obj"))


def test_names_that_are_none(shared: Path, capsys: Any, tmp_path: Path) -> None:
    """Names of objects are not trusted, because anyone with access to the server can choose them."""
    assert move(capsys, "push", "--kernel", "mul").startswith("0 1 entry sent")
    data = next(shared.rglob("mul")).read_bytes()
    for name in ("kernels/1/..", "kernels/1/lower", "kernels/1/A", "other/1/A"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (shared / name / "mul").write_bytes(data)
    another_machine(tmp_path)
    said = move(capsys, "pull")
    assert said.startswith("1 1 entry received") and "1 failed" in said, "one that is signed for another name"


def test_a_name_that_no_disk_takes(shared: Path, capsys: Any, tmp_path: Path) -> None:
    assert move(capsys, "push", "--kernel", "mul").startswith("0 1 entry sent")
    name = f"kernels/1/A/{'m' * 250}"
    (shared / name).parent.mkdir()
    (shared / name).write_bytes(pack(name, {"mul.json": b"{}"}, 1.0, Key.of(SECRET)))
    another_machine(tmp_path)
    said = move(capsys, "pull")
    assert said.startswith("1 1 entry received") and "1 failed" in said and "File name too long" in said


def test_mistakes(shared: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def names(self: Any, prefix: str) -> None:
        raise NotImplementedError

    with monkeypatch.context() as patched:
        patched.setattr(FolderStore, "names", names)
        assert "cannot list what it has" in (said := move(capsys, "pull")) and said.startswith("1 ")
    shared.rmdir()
    assert "error: file://" in (said := move(capsys, "push")) and said.startswith("1 ")
    knobs.cache.key = None
    assert "nothing says who may make the entries" in move(capsys, "push")
    knobs.cache.url = None
    assert "there is no shared cache: TILEWORK_CACHE_URL" in move(capsys, "pull")
