"""What a shared cache may cost a job whose server is slow, hangs or is gone, and what its claims mean then."""

import json
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.shared_caches import (
    FILES,
    KEY,
    OTHER,
    SECRET,
    Server,
    eventually,
    failures,
    objects,
)
from tests.runtime.shared_caches import folder as folder
from tests.runtime.shared_caches import server as server
from tilework import knobs, metrics
from tilework.aot.in_processes import results
from tilework.runtime.kernel_cache.managers import load_entry, store_entry
from tilework.runtime.kernel_cache.remote import guard as guards
from tilework.runtime.kernel_cache.remote import shared_cache, statistics
from tilework.runtime.kernel_cache.remote.folder_store import FolderStore
from tilework.runtime.kernel_cache.remote.guard import Guard, flush_all
from tilework.runtime.kernel_cache.remote.store import CLAIM, Failure, Timeouts

pytestmark = pytest.mark.usefixtures("fresh_cache")


def test_one_failure_and_nobody_asks_until_it_is_there_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "FIRST_PAUSE", 0.02)
    server.fail("unreachable")
    guard = Guard(server)
    guard.pause = 0.02
    with pytest.warns(UserWarning, match=r"redis://user@cachehost:7000/0 is not used now .unreachable: with \*\*\*"):
        assert guard.get("a") is None
    asked = server.asked
    assert asked == 1 and guard.is_down
    guard.put("a", b"dropped")
    assert metrics.total("remote_entries", direction="dropped") == 1
    assert eventually(lambda: server.asked > asked + 2), "a thread tries"
    server.does = lambda: None
    assert eventually(lambda: not guard.is_down)
    server.data["a"] = b"1"
    assert guard.get("a") == b"1"


def test_a_server_that_hangs(server: Server) -> None:
    released = threading.Event()
    server.does = lambda: released.wait(60)
    guard, began = Guard(server), time.monotonic()
    with pytest.warns(UserWarning, match="time-out"):
        assert [guard.get(str(number)) for number in range(100)] == [None] * 100
    assert guard.flush()
    released.set()
    assert time.monotonic() - began < 5 * server.timeouts.object, "one waited, 99 did not"
    assert metrics.total("remote_requests", outcome="skipped") == 99


def test_waits_are_never_longer_than_compilations(server: Server) -> None:
    guard = Guard(server)
    server.does = lambda: time.sleep(0.02)
    guard.allowance = 0.1
    assert [guard.get(str(number)) for number in range(50)] == [None] * 50
    assert 1 <= server.asked <= 6, "the allowance is used up"
    waited = metrics.total("remote_seconds", what="waited")
    assert waited >= 0.02 * server.asked
    guard.received("saved", 0.1)
    before = server.asked
    guard.get("once more")
    assert server.asked == before + 1


def test_what_was_compiled_is_sent_at_the_end(server: Server) -> None:
    """The end of a process waits for as long as compiling took, although all other waiting is used up."""
    sent = list[str]()
    server.does = lambda: sent.append("object") or time.sleep(0.02)
    guard = Guard(server)
    guard.allowance, server.timeouts = 0.0, Timeouts(5, 60)
    guard.timeouts = server.timeouts
    guard.compiled(600)
    guard.allowance = 0.0
    for number in range(10):
        guard.put(str(number), b"data")
    guard.finish()
    assert len(sent) == 10 == metrics.total("remote_entries", direction="sent")
    assert metrics.total("remote_seconds", what="waited") > 0


def test_what_is_not_sent_at_the_end_is_counted(server: Server) -> None:
    released = threading.Event()
    server.does = lambda: released.wait(60)
    guard = Guard(server)
    guard.allowance = 0.0
    for number in range(3):
        guard.put(str(number), b"data")
        guard.release(str(number), "me")
    assert eventually(lambda: guard.is_sending)
    guard.finish()
    assert metrics.total("remote_entries", direction="dropped") == 2 and not guard.queue
    released.set()
    assert guard.flush(60) and list(server.data) == ["0"]


def test_one_entry_that_hangs_ends_the_waiting(server: Server) -> None:
    released = threading.Event()
    server.does = lambda: released.wait(60)
    guard = Guard(server, Timeouts(0.01, 0.05))
    guard.compiled(600)
    guard.put("a", b"data")
    assert not guard.flush()
    released.set()


def test_a_small_allowance_says_nothing_about_the_server(server: Server) -> None:
    """A server at some distance is still sent kernels, and other processes still ask it."""
    guard = Guard(server)
    server.does = lambda: time.sleep(0.3)
    server.timeouts = guard.timeouts = Timeouts(0.2, 2.0)
    guard.allowance = 0.25
    assert guard.get("a") is None and not guard.is_down and not os.path.exists(guard.note)
    guard.put("b", b"data")
    assert eventually(lambda: server.data == {"b": b"data"})


def test_messages_of_a_server_are_one_line(server: Server) -> None:
    server.client_failure = lambda error: Failure("unreachable", "\0\x1b[31m" + 9 * "gar\nbage " + 999 * "x")
    server.fail("unreachable")
    with pytest.warns(UserWarning) as caught:
        Guard(server).get("a")
    text = str(caught[0].message)
    assert text.isprintable() and "gar bage gar bage" in text and len(text) < 600


def test_what_stops_writing_does_not_stop_reading(server: Server) -> None:
    guard = Guard(server)
    server.data["a"] = b"1"
    server.fail("full")
    with pytest.warns(UserWarning, match="takes no kernels now .full"):
        guard.put("b", b"2")
        assert eventually(lambda: failures() == {"full": 1})
    server.does = lambda: None
    assert guard.get("a") == b"1" and not guard.is_down
    guard.put("c", b"3")
    assert guard.flush() and "c" not in server.data, "not for the next second"
    guard.no_writes_before = 0.0
    guard.put("c", b"3")
    assert guard.flush() and server.data["c"] == b"3"


def test_a_claim_that_cannot_be_written_does_not_stop_reading(server: Server) -> None:
    guard = Guard(server)
    server.data["a"] = b"1"
    server.fail("full")
    with pytest.warns(UserWarning, match="takes no kernels now .full"):
        assert guard.claim("b", "me", 10.0) is None
    server.does = lambda: None
    asked = server.asked
    assert guard.claim("b", "me", 10.0) is None and server.asked == asked, "not for the next second"
    assert guard.get("a") == b"1" and not guard.is_down
    guard.no_writes_before = 0.0
    assert guard.claim("b", "me", 10.0) is True


def test_the_queue_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "QUEUE_ENTRIES", 3)
    released = threading.Event()
    server.does = lambda: released.wait(60)
    guard = Guard(server)
    for number in range(20):
        guard.put(str(number), b"data")
    assert not guard.flush(0.01)
    released.set()
    assert guard.flush() and 3 <= len(server.data) <= 5
    assert metrics.total("remote_entries", direction="dropped") + len(server.data) == 20


def test_the_queue_is_bounded_in_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "QUEUE_BYTES", 100)
    store_entry(KEY, "add", {"add.json": bytes(101)})
    store_entry(OTHER, "add", {"add.json": b"{}"})
    assert flush_all(5) and len(objects(folder)) == 1
    assert metrics.total("remote_entries", direction="dropped") == 1


def test_nothing_waits_for_a_thread_that_cannot_start(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a process Python starts no more threads."""
    guard = Guard(server)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        guard.put("a", b"data")
        guard.release("a", "me")
    assert guard.flush(0) and metrics.total("remote_entries", direction="dropped") == 1
    guard.put("b", b"data")
    assert guard.flush(60) and list(server.data) == ["b"]


def test_a_callback_of_metrics_may_use_the_cache(server: Server) -> None:
    """No lock is held when users' functions run."""
    guard = Guard(server)
    stop = metrics.subscribe(lambda name, amount, labels: guard.compiled(0.1))
    try:
        server.fail("unreachable")
        with pytest.warns(UserWarning) as caught:
            guard.put("a", b"data")
            guard.get("a")
            assert eventually(lambda: guard.is_down and len(caught))  # by another thread, perhaps
        guard.put("a", b"data")
        assert guard.flush()
    finally:
        stop()


def test_each_kind_is_warned_about_once(server: Server) -> None:
    guard = Guard(server)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            guard.refuse("a", "damaged", "it is cut")
            guard.refuse("b", "signature", "whose is it")
    assert len(caught) == 2 and failures() == {"damaged": 3, "signature": 3}


def test_another_process_need_not_find_out_again(server: Server) -> None:
    began_before = Guard(patient := Server())
    server.fail("unreachable")
    with pytest.warns(UserWarning):
        Guard(server).get("a")
    asked = server.asked
    later = Guard(server)
    assert later.is_down and later.get("a") is None
    began_before.revive = lambda pause: None
    assert began_before.get("a") is None and patient.asked == 0, "nor one that runs already"
    server.does = lambda: None
    assert eventually(lambda: not Guard(server).is_down), "the note goes when the server answers"
    assert server.asked > asked


def test_a_forked_child_begins_anew(folder: Path) -> None:
    store_entry(KEY, "add", FILES)
    assert flush_all(5)
    guard = next(iter(guards.GUARDS.values()))
    guard.lock.acquire()  # as a thread of the parent might have
    child = os.fork()
    if child == 0:
        code = 1
        try:
            knobs.cache.dir += " of the child"
            store_entry(OTHER, "add", FILES)
            code = 0 if load_entry(KEY, "add") == FILES and flush_all(5) else 2
        finally:
            os._exit(code)
    guard.lock.release()
    assert os.waitpid(child, 0)[1] == 0
    assert (folder / shared_cache.object_name(OTHER, "add")).is_file()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_send_before_they_end(folder: Path, method: str) -> None:
    import multiprocessing

    start: Any = multiprocessing.get_context(method)
    child = start.Process(target=store_in_child, args=(knobs.cache.dir,))
    child.start()
    child.join(60)
    assert child.exitcode == 0 and (folder / shared_cache.object_name(OTHER, "add")).is_file()


def test_workers_that_end_at_once_send_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = FolderStore.put
    monkeypatch.setattr(FolderStore, "put", lambda *arguments: time.sleep(0.3) or put(*arguments))
    knobs.cache.timeout = 60.0
    keys = [f"{number:064x}" for number in range(3)]
    answers = list(results(lambda index: len(store_entry(keys[index], "add", FILES, seconds=600)), len(keys), 2))
    assert sorted(answers) == [(index, len(FILES), None) for index in range(3)]
    assert len(objects(folder)) == 3 and statistics.known(knobs.cache.dir)[1] >= 1


def store_in_child(folder: str) -> None:
    knobs.cache.dir = folder
    store_entry(OTHER, "add", FILES)


def test_threads_share_a_server(folder: Path) -> None:
    keys = [f"{number:064x}" for number in range(40)]
    for key in keys:
        store_entry(key, "add", FILES)
    assert flush_all(5)
    found: list[object] = []
    knobs.cache.dir += " elsewhere"
    threads = [
        threading.Thread(target=lambda part=keys[start::8]: found.extend(load_entry(key, "add") for key in part))
        for start in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [FILES] * 40


# ---- claims


def test_claims(folder: Path) -> None:
    assert shared_cache.claim(KEY, "add", "one", 60) is True
    assert shared_cache.claim(KEY, "add", "two", 60) is False
    assert shared_cache.claim(KEY, "add", "one", 60) is True, "it is renewed"
    assert shared_cache.holder(KEY, "add") == "one"
    store_entry(KEY, "add", FILES)
    shared_cache.release(KEY, "add", "one")
    assert flush_all(5) and shared_cache.holder(KEY, "add") is None
    assert shared_cache.fetch(KEY, "add") == (FILES, 0.0)
    assert shared_cache.claim(OTHER, "add", "one", 0.001) is True
    time.sleep(0.01)
    assert shared_cache.claim(OTHER, "add", "two", 60) is True, "that of a dead owner runs out"
    assert not [path for path in objects(folder) if "tmp" in path.name]
    assert len([path for path in objects(folder) if path.name.endswith(CLAIM)]) == 1


@pytest.mark.parametrize(
    "late", [3600, 1e300, 10**400, float("inf"), float("nan")], ids=["hour", "years", "integer", "inf", "nan"]
)
def test_a_claim_by_a_clock_that_is_wrong(late: float, server: Server) -> None:
    guard = Guard(server)
    server.data["a" + CLAIM] = json.dumps({"owner": "one", "until": int(time.time()) + late}).encode()
    assert guard.holder("a") is None, "the caller does not wait for it"
    assert guard.claim("a", "two", 10.0) is True and guard.holder("a") == "two"
    assert not failures()


@pytest.mark.parametrize(
    "text",
    [b"", b"\0\xff", b"[]", b"null", b"{}", b"[" * 100_000, b'{"owner": "one"}', b'{"owner": 1, "until": [9]}'],
    ids=lambda text: text[:9].decode(errors="replace"),
)
def test_a_claim_that_says_nothing_sensible(text: bytes, server: Server) -> None:
    guard = Guard(server)
    server.data["a" + CLAIM] = text
    assert guard.holder("a") is None
    assert guard.claim("a", "two", 10.0) is True and guard.holder("a") == "two"
    assert not failures()


def test_nobody_to_claim_from() -> None:
    assert shared_cache.claim(KEY, "add", "one", 60) is None, "there is no shared cache"
    knobs.cache.url, knobs.cache.key = "file:///nowhere/at/all", SECRET
    with pytest.warns(UserWarning, match="is not used now"):
        assert shared_cache.claim(KEY, "add", "one", 60) is None, "it cannot be asked"
    assert shared_cache.claim(KEY, "add", "one", 60) is None and shared_cache.holder(KEY, "add") is None
