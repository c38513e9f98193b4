"""A cache that machines share on a real Redis: what happens when it is killed, hangs, is full, or has been tampered
with. `test_shared_cache.py` has what does not depend on the server."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.runtime.redis_server import RedisServer, free_port, knows_tls, redis_server
from tests.runtime.shared_caches import another_machine, eventually, failures
from tilework import knobs, metrics
from tilework.runtime.kernel_cache import compile_once
from tilework.runtime.kernel_cache.compile_once import making
from tilework.runtime.kernel_cache.managers import RemoteCacheManager, load_entry, store_entry
from tilework.runtime.kernel_cache.remote import guard, shared_cache
from tilework.runtime.kernel_cache.remote.guard import flush_all
from tilework.runtime.kernel_cache.remote.packed import pack, unpack
from tilework.runtime.kernel_cache.remote.store import open_store
from tilework.tools.cli import main

pytestmark = pytest.mark.usefixtures("fresh_cache")

ROOT = Path(__file__).parents[2]
KEYS = [f"{number:02x}" * 32 for number in range(8)]
FILES = {"add.ttir": b"module {}", "add.obj": bytes(range(256)), "add.json": b"{}"}
SECRET = "0123456789abcdef"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        knobs.cache.url, knobs.cache.key = server.url, SECRET
        metrics.reset()
        yield server


def redis_key(key: str) -> str:
    return f"tilework:{shared_cache.object_name(key, 'add')}"


# ---- jobs: other processes, with a kernel in a file of their own

APP = """
import sys, time
import numpy as np
import tilework, tilework.language as tl
from tilework import metrics

@tilework.jit
def fill(out, value, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), value)

out = np.zeros(64, "f4")
for N in (16, 32, 64):
    fill[(1,)](out, 2.0, N)
    print(N, flush=True)
    if "wait" in sys.argv:
        sys.stdin.readline()
assert (out == 2).all()
print(int(metrics.total("compiles")), int(metrics.total("cache_hits", cache="remote")),
      metrics.total("remote_seconds", what="waited"))
"""


def job(folder: Path, url: str, *arguments: str, **settings: str) -> "subprocess.Popen[str]":
    """Start the program from a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(APP)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TILEWORK_CACHE_URL": url,
        "TILEWORK_CACHE_KEY": SECRET,
        "TILEWORK_NATIVE_LAUNCH": "0",
        **settings,
    }
    return subprocess.Popen(
        [sys.executable, "app.py", *arguments], cwd=folder, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def results(process: "subprocess.Popen[str]", answer: str | None = None) -> tuple[int, int, float, str]:
    """Return (compilations, hits, seconds of waiting, the text on stderr) of a job."""
    output, errors = process.communicate(answer, timeout=300)
    assert process.returncode == 0, errors
    compiles, hits, waited = output.splitlines()[-1].split()
    return int(compiles), int(hits), float(waited), errors


def test_a_hit_from_another_checkout(redis: RedisServer, tmp_path: Path) -> None:
    assert results(job(tmp_path / "one", redis.url))[:2] == (3, 0)
    compiles, hits, waited, errors = results(job(tmp_path / "another", redis.url))
    assert (compiles, hits, errors) == (0, 3, "")
    assert waited < guard.START


def test_a_server_that_is_killed_in_the_middle(redis: RedisServer, tmp_path: Path) -> None:
    process = job(tmp_path / "job", redis.url, "wait")
    assert process.stdout is not None and process.stdout.readline() == "16\n"
    redis.kill()
    compiles, hits, waited, errors = results(process, "\n\n\n")
    assert (compiles, hits) == (3, 0) and errors.count("UserWarning") == 1 and "unreachable" in errors
    assert waited < guard.START


def test_a_server_that_hangs_costs_a_job_no_more_than_it_may(redis: RedisServer, tmp_path: Path) -> None:
    redis.stop()
    try:
        compiles, hits, waited, errors = results(job(tmp_path / "job", redis.url))
    finally:
        redis.go_on()
    assert (compiles, hits) == (3, 0) and errors.count("UserWarning") == 1 and "time-out" in errors
    assert waited <= guard.START + 0.5, "all its waits together; the issue allows 3 s"


def test_a_host_that_does_not_answer_connections() -> None:
    """A listener whose queue is full behaves like a firewall that drops packets."""
    pytest.importorskip("redis")
    metrics.reset()
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        knobs.cache.url, knobs.cache.key = f"redis://127.0.0.1:{listener.getsockname()[1]}", SECRET
        with pytest.warns(UserWarning, match="time-out"):
            assert [load_entry(key, "add") for key in KEYS] == [None] * len(KEYS)
    waited = metrics.total("remote_seconds", what="waited")
    assert 0.19 < waited < 1.5, "0.2 s, once"


# ---- entries


def test_an_entry_is_one_signed_value(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES, seconds=0.25)
    another_machine(tmp_path)
    assert load_entry(KEYS[0], "add") == FILES
    assert redis.keys() == [redis_key(KEYS[0])]
    assert metrics.total("remote_seconds", what="saved") == 0.25
    assert list(open_store(redis.url).names(shared_cache.KERNELS)) == [shared_cache.object_name(KEYS[0], "add")]
    assert list(open_store(redis.url).names("kernels/*")) == []


def test_a_poisoned_value(redis: RedisServer, tmp_path: Path) -> None:
    """An attacker with access to Redis can compute valid checksums."""
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    evil = pack(shared_cache.object_name(KEYS[0], "add"), {**FILES, "add.obj": b"evil"})
    assert unpack(shared_cache.object_name(KEYS[0], "add"), evil).files["add.obj"] == b"evil", "it is whole"
    redis.client.set(redis_key(KEYS[0]), evil)
    with pytest.warns(UserWarning, match="signature: it is not signed"):
        assert load_entry(KEYS[0], "add") is None
    assert failures() == {"signature": 1}


def test_an_entry_that_is_renamed(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    redis.client.rename(redis_key(KEYS[0]), redis_key(KEYS[1]))
    with pytest.warns(UserWarning, match="signature: .* changed without the key"):
        assert load_entry(KEYS[1], "add") is None


def test_a_value_of_another_type(redis: RedisServer, tmp_path: Path) -> None:
    redis.client.lpush(redis_key(KEYS[0]), "a list")
    store_entry(KEYS[1], "add", FILES)
    another_machine(tmp_path)
    with pytest.warns(UserWarning, match="wrong type"):
        assert load_entry(KEYS[0], "add") is None
    assert [metrics.total("remote_requests", outcome=outcome) for outcome in ("refused", "failed")] == [1, 0]
    assert load_entry(KEYS[1], "add") == FILES, "all others are as good as before"


def test_pull_takes_all_entries_but_those_of_another_type(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in KEYS[:2]:
        store_entry(key, "add", FILES)
    assert flush_all(5) and redis.client.delete(redis_key(KEYS[0]))
    redis.client.lpush(redis_key(KEYS[0]), "not a value")
    another_machine(tmp_path)
    assert main(["cache", "pull"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("1 entry received") and "1 failed" in printed.out + printed.err
    assert "WRONGTYPE" in printed.err


def test_full_memory_of_a_claim_does_not_stop_reading(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES)
    assert flush_all(5)
    another_machine(tmp_path)
    redis.client.config_set("maxmemory", 1)
    with pytest.warns(UserWarning, match=r"takes no kernels now \(full"):
        assert shared_cache.claim(KEYS[1], "add", "me", 10.0) is None
    assert load_entry(KEYS[0], "add") == FILES


def test_a_server_that_is_killed_and_starts_again(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    redis.kill()
    with pytest.warns(UserWarning, match="unreachable"):
        assert load_entry(KEYS[0], "add") is None
    redis.start()
    (found,) = guard.GUARDS.values()
    assert eventually(lambda: not found.is_down)
    store_entry(KEYS[1], "add", FILES)
    assert flush_all(5) and redis.client.exists(redis_key(KEYS[1]))


def test_a_server_that_restarts_between_two_requests_is_not_noticed(redis: RedisServer, tmp_path: Path) -> None:
    assert load_entry(KEYS[0], "add") is None
    redis.kill()
    redis.start()
    assert load_entry(KEYS[0], "add") is None and not failures()


def test_full_memory(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES)
    assert flush_all(5)
    redis.client.config_set("maxmemory", redis.client.info("memory")["used_memory"] + 1000)  # noeviction by default
    with pytest.warns(UserWarning, match=r"takes no kernels now \(full.*allkeys-lru"):
        for key in KEYS[1:]:
            store_entry(key, "add", {**FILES, "add.obj": os.urandom(1 << 20)})
        assert eventually(lambda: failures().get("full"))
    another_machine(tmp_path)
    assert load_entry(KEYS[0], "add") == FILES, "reading goes on"


def test_a_server_that_is_read_only(redis: RedisServer, tmp_path: Path) -> None:
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    with redis_server(tmp_path, "--replicaof", "127.0.0.1", str(redis.port)) as replica:
        assert eventually(lambda: replica.client.exists(redis_key(KEYS[0])))
        knobs.cache.url = replica.url
        assert load_entry(KEYS[0], "add") == FILES
        with pytest.warns(UserWarning, match="takes no kernels now .read-only"):
            store_entry(KEYS[1], "add", FILES)
            assert eventually(lambda: failures().get("read-only"))


# ---- passwords and permissions


def test_a_password(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "hunter2") as server:
        knobs.cache.url, knobs.cache.key = server.url, SECRET
        store_entry(KEYS[0], "add", FILES)
        another_machine(tmp_path)
        assert load_entry(KEYS[0], "add") == FILES
        server.client.acl_setuser("ci", enabled=True, passwords=["+hunter3"], keys=["tilework:*"], commands=["+@all"])
        knobs.cache.url = f"redis://ci:hunter3@127.0.0.1:{server.port}"
        knobs.cache.dir += " of ci"
        assert load_entry(KEYS[0], "add") == FILES
        for number, user in enumerate(("", "ci:wrong4@", ":wrong4@")):
            knobs.cache.dir += " again"
            knobs.cache.url = f"redis://{user}127.0.0.1:{server.port}"
            began = time.monotonic()
            with pytest.warns(UserWarning, match="password.*the right user and password") as caught:
                assert load_entry(KEYS[0], "add") is None
                assert load_entry(KEYS[number + 1], "add") is None
            assert time.monotonic() - began < 2
            assert len(caught) == 1 and "wrong4" not in str(caught[0].message)


def test_users_with_few_permissions(redis: RedisServer, tmp_path: Path) -> None:
    """Users have the permissions that the documentation recommends."""
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    for user, commands in (("ci", "+get +set +del +pttl +scan +info +dbsize"), ("reader", "+get"), ("other", "")):
        rules = ["on", ">pw", "~tilework:*", "+@connection", *commands.split()]
        redis.client.execute_command("ACL", "SETUSER", user, *rules)
    writer = open_store(f"redis://ci:pw@127.0.0.1:{redis.port}/0")
    assert writer.claim("kernels/1/A/add", "one", 60) and not writer.claim("kernels/1/A/add", "two", 60)
    writer.release("kernels/1/A/add", "one")
    assert len(list(writer.names("kernels/"))) == 1 and writer.facts()
    knobs.cache.url = f"redis://reader:pw@127.0.0.1:{redis.port}/0"
    with pytest.warns(UserWarning, match="takes no kernels now .permission"):
        store_entry(KEYS[1], "add", FILES)
        assert eventually(lambda: failures() == {"permission": 1})
    assert load_entry(KEYS[0], "add") == FILES
    knobs.cache.url, knobs.cache.dir = f"redis://other:pw@127.0.0.1:{redis.port}/0", str(tmp_path / "a third one")
    with pytest.warns(UserWarning, match="is not used now .permission"):
        assert load_entry(KEYS[0], "add") is None


def test_tls(tmp_path: Path) -> None:
    for name in ("server", "stranger"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
    certificate, key = str(tmp_path / "server.pem"), str(tmp_path / "server.key")
    port = free_port()
    options = ("--tls-port", str(port), "--port", "0", "--tls-cert-file", certificate, "--tls-key-file", key)
    if not knows_tls():
        pytest.skip("this redis-server was built without TLS")
    server = RedisServer(tmp_path, *options, "--tls-auth-clients", "no", port=port)
    try:
        knobs.cache.key = SECRET
        knobs.cache.url = f"rediss://localhost:{port}/0?ca={certificate}"
        store_entry(KEYS[0], "add", FILES)
        another_machine(tmp_path)
        assert load_entry(KEYS[0], "add") == FILES
        for number, url in enumerate(
            (f"rediss://localhost:{port}", f"rediss://localhost:{port}?ca={tmp_path / 'stranger.pem'}")
        ):
            knobs.cache.url = url
            with pytest.warns(UserWarning, match=r"TLS: .*\?ca=FILE"):
                assert load_entry(KEYS[number + 1], "add") is None
            os.unlink(next(iter([*guard.GUARDS.values()][-1:])).note)
        knobs.cache.url = f"redis://localhost:{port}"
        with pytest.warns(UserWarning, match="is not used now"):
            assert load_entry(KEYS[3], "add") is None
    finally:
        server.kill()


def test_options_that_are_none(redis: RedisServer) -> None:
    knobs.cache.url = f"{redis.url}?no_such_option=7"
    with pytest.raises(RuntimeError, match=r"TILEWORK_CACHE_URL=redis://\.\.\.: .*'no_such_option'"):
        load_entry(KEYS[0], "add")


# ---- Triton's settings


def test_redis_from_tritons_environment(redis: RedisServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    del knobs.cache.url
    os.environ.pop("TILEWORK_CACHE_URL")  # the fixture puts back what was there before it
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "tilework.runtime.kernel_cache.managers:RemoteCacheManager")
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend")
    monkeypatch.setenv("TRITON_REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("TRITON_REDIS_PORT", str(redis.port))
    monkeypatch.setenv("TRITON_REDIS_KEY_FORMAT", "{filename}@{key}")
    store_entry(KEYS[0], "add", FILES)
    another_machine(tmp_path)
    folder = shared_cache.object_name(KEYS[0], "add").rpartition("/")[0]
    assert redis.keys() == [f"add@{folder}"]
    assert load_entry(KEYS[0], "add") == FILES
    manager = RemoteCacheManager(KEYS[1])
    manager.put_group("a.json", {"a.json": manager.put("{}", "a.json")})
    another_machine(tmp_path, "a third one")
    group = RemoteCacheManager(KEYS[1]).get_group("a.json")
    assert group is not None and json.loads(Path(group["a.json"]).read_text()) == {}


def test_tritons_class_itself(redis: RedisServer) -> None:
    from tilework.runtime.kernel_cache.managers import RedisRemoteCacheBackend

    knobs.redis.host, knobs.redis.port = "127.0.0.1", redis.port
    knobs.redis.key_format = "mine/{filename}/{key}"
    backend = RedisRemoteCacheBackend(KEYS[0])
    backend.put("add.ttir", b"module {}")
    assert flush_all(5) and redis.keys() == [f"mine/add.ttir/{KEYS[0]}"]
    assert backend.get(["add.ttir", "add.json"]) == {"add.ttir": b"module {}"} and backend.get([]) == {}


# ---- claims


def test_claims(redis: RedisServer) -> None:
    assert shared_cache.claim(KEYS[0], "add", "one", 60) is True
    assert shared_cache.claim(KEYS[0], "add", "two", 60) is False
    assert shared_cache.claim(KEYS[0], "add", "one", 60) is True
    assert shared_cache.holder(KEYS[0], "add") == "one"
    shared_cache.release(KEYS[0], "add", "two")
    assert flush_all(5) and shared_cache.holder(KEYS[0], "add") == "one", "only the owner releases a claim"
    shared_cache.release(KEYS[0], "add", "one")
    assert flush_all(5) and shared_cache.claim(KEYS[0], "add", "two", 0.02) is True
    assert eventually(lambda: shared_cache.claim(KEYS[0], "add", "three", 60)), "that of a dead owner runs out"
    assert list(open_store(redis.url).names("")) == []


@pytest.mark.parametrize("milliseconds", [None, 3_600_000], ids=["for ever", "an hour"])
def test_a_claim_that_holds_for_too_long_is_none(redis: RedisServer, milliseconds: int | None) -> None:
    """A client that can write to the server cannot make jobs wait by a claim that does not expire."""
    for key in KEYS[:2]:
        redis.client.set(f"{redis_key(key)}.claim", "another host", px=milliseconds)
    began = time.monotonic()
    with making(KEYS[0], "add", "compiles add", kernel="add") as claim:
        assert claim.found is None and time.monotonic() - began < 2
        assert shared_cache.holder(KEYS[0], "add") == compile_once.this_machine(), "it is taken over"
    assert shared_cache.holder(KEYS[1], "add") is None
    assert not metrics.total("waits") and not failures()


def test_the_text_of_a_claim_is_shown_without_control_characters(redis: RedisServer) -> None:
    redis.client.set(f"{redis_key(KEYS[0])}.claim", b"\x1b[2Jhost\xff\n" + b"x" * 1000, px=5000)
    owner = shared_cache.holder(KEYS[0], "add")
    assert owner is not None and owner.isprintable() and owner.startswith("?[2Jhost") and len(owner) == 80


def test_a_claim_that_is_no_text_is_none(redis: RedisServer) -> None:
    redis.client.lpush(f"{redis_key(KEYS[0])}.claim", "a list")
    with pytest.warns(UserWarning, match="wrong type"):
        assert shared_cache.claim(KEYS[0], "add", "one", 60) is None
    assert shared_cache.holder(KEYS[0], "add") is None and failures() == {"wrong type": 2}


def test_a_user_who_may_not_ask_for_how_long_a_claim_holds(redis: RedisServer) -> None:
    """Such a user never waits for other machines, and keeps reading and writing."""
    rules = ["on", ">pw", "~tilework:*", "+@connection", "+get", "+set", "+del"]
    redis.client.execute_command("ACL", "SETUSER", "ci", *rules)
    knobs.cache.url = f"redis://ci:pw@127.0.0.1:{redis.port}/0"
    assert shared_cache.claim(KEYS[0], "add", "one", 60) is True
    assert shared_cache.claim(KEYS[0], "add", "two", 60) is False
    assert shared_cache.holder(KEYS[0], "add") is None and not failures()
