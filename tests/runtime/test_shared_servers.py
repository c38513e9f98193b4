"""A cache that machines share on other servers than Redis: HTTP, S3, a folder."""

import base64
import errno
import os
import re
import threading
import time
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from tests.runtime.redis_server import redis_server
from tests.runtime.s3_server import ACCESS_KEY, S3Server, s3_server
from tests.runtime.shared_caches import another_machine, eventually, failures, objects
from tilework import knobs, metrics
from tilework.runtime.kernel_cache.managers import load_entry, store_entry
from tilework.runtime.kernel_cache.remote import folder_store, http_store, shared_cache
from tilework.runtime.kernel_cache.remote.guard import flush_all
from tilework.runtime.kernel_cache.remote.http_store import Redirections
from tilework.runtime.kernel_cache.remote.store import RemoteStore, Timeouts, open_store

pytestmark = pytest.mark.usefixtures("fresh_cache")

KEY, OTHER = "ab" * 32, "cd" * 32
FILES = {"add.ttir": b"module {}", "add.obj": bytes(range(256)), "add.json": b"{}"}
SECRET = "0123456789abcdef"
PATIENT = Timeouts(5.0, 20.0)


class Web(ThreadingHTTPServer):
    """A file server with GET, PUT and DELETE."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WebRequest)
        self.files: dict[str, bytes] = {}
        self.password, self.status, self.delay, self.elsewhere = "", 0, 0.0, ""
        self.passwords = list[str | None]()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        user = f"ci:{self.password}@" if self.password else ""
        return f"http://{user}127.0.0.1:{self.server_address[1]}/cache/"


class WebRequest(BaseHTTPRequestHandler):
    server: Web  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        """Discard the message."""

    def answer(self) -> None:
        web, data = self.server, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(web.delay)
        web.passwords.append(self.headers.get("Authorization"))
        if web.elsewhere and not self.path.startswith("/moved"):
            return self.reply(302, Location=f"{web.elsewhere}/moved{self.path}")
        given = base64.b64encode(f"ci:{web.password}".encode()).decode()
        if web.password and self.headers.get("Authorization") != f"Basic {given}":
            return self.reply(401)
        if web.status:
            return self.reply(web.status)
        if self.command == "GET":
            return self.reply(200, web.files[self.path]) if self.path in web.files else self.reply(404)
        if self.command == "DELETE":
            return self.reply(204 if web.files.pop(self.path, None) is not None else 404)
        if self.headers.get("If-None-Match") == "*" and self.path in web.files:
            return self.reply(412)
        web.files[self.path] = data
        self.reply(201)

    do_GET = do_PUT = do_DELETE = answer

    def reply(self, status: int, data: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def web() -> Iterator[Web]:
    metrics.reset()
    server = Web()
    knobs.cache.url, knobs.cache.key = server.url, SECRET
    yield server
    server.shutdown()
    server.server_close()


# ---- what every kind of server does


def check_store(store: RemoteStore, has_names: bool = True) -> None:
    assert store.get("kernels/1/A/add") is None
    store.put("kernels/1/A/add", b"1")
    store.put("kernels/1/A/add", b"2")
    store.put("kernels/1/B/add", b"")
    store.put("timings/1/A/add", b"3")
    assert [store.get(f"kernels/1/{name}/add") for name in "ABC"] == [b"2", b"", None]
    assert not store.create("kernels/1/A/add", b"4") and store.create("kernels/1/C/add", b"5")
    assert [store.claim("kernels/1/D/add", owner, 60) for owner in ("one", "two", "one")] == [True, False, True]
    store.release("kernels/1/D/add", "two")
    assert store.holder("kernels/1/D/add") == "one"
    if has_names:
        assert sorted(store.names("kernels/1/")) == [f"kernels/1/{name}/add" for name in "ABC"]
        assert list(store.names("kernels/1/A")) == ["kernels/1/A/add"] and list(store.names("none/")) == []
    else:
        with pytest.raises(NotImplementedError):
            list(store.names(""))
    store.release("kernels/1/D/add", "one")
    assert store.holder("kernels/1/D/add") is None
    store.delete("kernels/1/A/add")
    store.delete("kernels/1/A/add")
    assert store.get("kernels/1/A/add") is None
    store.ping()


def check_cache(tmp_path: Path) -> None:
    """Check the cache through the guard, as launches use it."""
    assert load_entry(KEY, "add") is None
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    assert load_entry(KEY, "add") == FILES and not failures()


def check_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """An object that is too large is not used, however patient the client is; others are."""
    knobs.cache.connect_timeout, knobs.cache.timeout = PATIENT
    store_entry(KEY, "add", FILES)
    store_entry(OTHER, "add", {"add.obj": bytes(4 << 20)})
    another_machine(tmp_path)
    monkeypatch.setattr(module, "LARGEST", 1 << 20)
    with pytest.warns(UserWarning, match="has an entry that is not used .damaged: it has more than"):
        assert load_entry(OTHER, "add") is None
    assert load_entry(KEY, "add") == FILES and failures() == {"damaged": 1}
    assert metrics.total("remote_bytes", direction="received") < 1 << 20


def test_a_large_object_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "mnt").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{folder}", SECRET
    metrics.reset()
    check_large(tmp_path, monkeypatch, folder_store)


def test_a_large_object_of_http(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_large(tmp_path, monkeypatch, http_store)


def test_a_large_object_of_s3(own_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilework.runtime.kernel_cache.remote import object_store

    check_large(tmp_path, monkeypatch, object_store)


def test_a_large_value_of_redis(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilework.runtime.kernel_cache.remote import redis_store

    check_large(tmp_path, monkeypatch, redis_store)


def test_a_folder(tmp_path: Path) -> None:
    (folder := tmp_path / "mnt").mkdir()
    check_store(open_store(f"file://{folder}"))
    assert not [path for path in folder.rglob("*") if "tmp" in path.name]


def test_http(web: Web, tmp_path: Path) -> None:
    check_store(open_store(web.url, PATIENT), has_names=False)
    check_cache(tmp_path)


@pytest.fixture(params=["redis", "unix"])
def redis_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty Redis, reached by TCP or by a socket."""
    with TemporaryDirectory() as folder:  # the path of a socket must be short
        socket = f"{folder}/redis.sock"
        with redis_server(tmp_path, "--unixsocket", socket) as server:
            url = server.url if request.param == "redis" else f"unix://{socket}"
            knobs.cache.url, knobs.cache.key = url, SECRET
            metrics.reset()
            server.client.ping()  # it listens at the socket, too
            yield url


def test_redis(redis_url: str, tmp_path: Path) -> None:
    check_store(open_store(redis_url, PATIENT))
    check_cache(tmp_path)


# ---- S3


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment variables from which s3fs reads credentials."""
    pytest.importorskip("s3fs")
    names = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED"
    for name, value in zip(names, (ACCESS_KEY, "secret", "us-east-1", "true"), strict=True):
        monkeypatch.setenv(name, value)
    knobs.cache.connect_timeout, knobs.cache.timeout = PATIENT
    metrics.reset()


@pytest.fixture
def own_s3(credentials: None) -> Iterator[S3Server]:
    with s3_server("bucket") as server:
        knobs.cache.url, knobs.cache.key = s3_url(server), SECRET
        yield server


def s3_url(server: S3Server, bucket: str = "bucket") -> str:
    return f"s3://{bucket}/team?endpoint_url={server.endpoint}"


@pytest.fixture(params=["own", "moto"])
def s3(request: pytest.FixtureRequest, credentials: None) -> Iterator[str]:
    """The URL of an empty bucket on the server of this folder and, where it is installed, on moto.

    `pip install 'moto[s3]' flask flask-cors` is not in the extra `test`, because pip needs six minutes to find versions
    of it that fit s3fs (November 2026).
    """
    if request.param == "own":
        with s3_server("bucket") as server:
            yield s3_url(server)
        return
    moto = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    moto.start()
    host, port = moto.get_host_and_port()
    import s3fs

    endpoint, bucket = f"http://{host}:{port}", f"bucket-{port}"  # moto servers of a process share their buckets
    s3fs.S3FileSystem(client_kwargs={"endpoint_url": endpoint}, skip_instance_cache=True).mkdir(bucket)
    yield f"s3://{bucket}/team?endpoint_url={endpoint}"
    moto.stop()


def test_s3(s3: str, tmp_path: Path) -> None:
    check_store(open_store(s3, PATIENT))
    knobs.cache.url, knobs.cache.key = s3, SECRET
    check_cache(tmp_path)


def test_an_object_of_s3_is_one_request(own_s3: S3Server) -> None:
    store = open_store(s3_url(own_s3), PATIENT)
    store.put("a", b"1")
    assert (store.get("a"), store.get("b")) == (b"1", None) and own_s3.requests == ["PUT", "GET", "GET"]


def test_s3_without_its_bucket(s3: str) -> None:
    knobs.cache.url, knobs.cache.key = re.sub("s3://[^/]*/", "s3://nothing/", s3), SECRET
    with pytest.warns(UserWarning, match="s3://nothing/team is not used now .unreachable"):
        assert load_entry(KEY, "add") is None


def test_a_wrong_access_key_of_s3(own_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "unknown")
    with pytest.warns(UserWarning, match="is not used now .password: .*InvalidAccessKeyId"):
        assert load_entry(KEY, "add") is None


def test_a_bucket_that_may_only_be_read(own_s3: S3Server, tmp_path: Path) -> None:
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    own_s3.is_read_only = True
    with pytest.warns(UserWarning, match="takes no kernels now .permission: .*AccessDenied"):
        store_entry(OTHER, "add", FILES)
        assert eventually(lambda: failures() == {"permission": 1})
    assert load_entry(KEY, "add") == FILES


def test_a_poisoned_object(own_s3: S3Server, tmp_path: Path) -> None:
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    (objects,) = own_s3.buckets.values()
    objects.update({name: data[:-1] + b"?" for name, data in objects.items()})
    with pytest.warns(UserWarning, match="signature|damaged"):
        assert load_entry(KEY, "add") is None


def test_s3_that_is_gone(own_s3: S3Server) -> None:
    own_s3.server_close()
    with pytest.warns(UserWarning, match="is not used now .unreachable"):
        assert load_entry(KEY, "add") is None


# ---- HTTP


def test_a_password_of_http(web: Web, tmp_path: Path) -> None:
    web.password = "hunter2"
    knobs.cache.url = web.url
    check_cache(tmp_path)
    knobs.cache.url = web.url.replace("hunter2", "wrong4")
    with pytest.warns(UserWarning, match=r"password: HTTP 401") as caught:
        assert load_entry(OTHER, "add") is None
    assert "wrong4" not in str(caught[0].message) and "hunter2" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("status", "kind"), [(403, "permission"), (500, "refused"), (503, "refused"), (429, "unreachable")]
)
def test_a_server_of_http_that_fails(web: Web, status: int, kind: str) -> None:
    web.status = status
    with pytest.warns(UserWarning, match=f"is not used now .{kind}: HTTP {status}"):
        assert load_entry(KEY, "add") is None


@pytest.mark.parametrize(("status", "kind"), [(405, "read-only"), (507, "full"), (413, "full")])
def test_a_server_of_http_that_takes_nothing(web: Web, tmp_path: Path, status: int, kind: str) -> None:
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    web.status = status
    with pytest.warns(UserWarning, match=f"takes no kernels now .{kind}"):
        store_entry(OTHER, "add", FILES)
        assert eventually(lambda: failures() == {kind: 1})
    web.status = 0
    assert load_entry(KEY, "add") == FILES


def test_a_server_of_http_that_hangs(web: Web) -> None:
    web.delay, knobs.cache.timeout = 30.0, 0.2
    with pytest.warns(UserWarning, match="time-out"):
        assert load_entry(KEY, "add") is None
    assert load_entry(OTHER, "add") is None
    assert metrics.total("remote_seconds", what="waited") < 2


@pytest.fixture
def elsewhere() -> Iterator[Web]:
    """Run a second HTTP server."""
    server = Web()
    yield server
    server.shutdown()
    server.server_close()


def test_a_password_is_not_sent_to_where_a_server_redirects(web: Web, elsewhere: Web) -> None:
    elsewhere.files["/moved/cache/a"] = b"1"
    web.password, web.elsewhere = "hunter2", f"http://127.0.0.1:{elsewhere.server_address[1]}"
    assert open_store(web.url, PATIENT).get("a") == b"1"
    assert len(web.passwords) == 1 and web.passwords[0] and elsewhere.passwords == [None]
    with pytest.raises(HTTPError, match="302"):
        open_store(web.url, PATIENT).put("a", b"2")
    assert elsewhere.files == {"/moved/cache/a": b"1"}


def test_a_password_stays_with_its_host(web: Web) -> None:
    web.files["/moved/cache/a"], web.password = b"1", "hunter2"
    web.elsewhere = f"http://127.0.0.1:{web.server_address[1]}"
    assert open_store(web.url, PATIENT).get("a") == b"1"
    assert len(web.passwords) == 2 and web.passwords[0] == web.passwords[1]


@pytest.mark.parametrize(
    ("url", "target", "followed"),
    [
        ("https://host/a", "https://host:443/b", "with the password"),
        ("https://host/a", "https://HOST/b", "with the password"),
        ("https://host/a", "https://host.example/b", "without"),
        ("https://host/a", "https://host:444/b", "without"),
        ("http://host/a", "https://host/b", "without"),
        ("https://host/a", "http://host/b", "http://host, which is not encrypted"),
        ("http://host/a", "ftp://host/b", "no URL of HTTP"),
        ("http://host/a", "http://host:x/b", "no URL of HTTP"),
    ],
)
def test_redirections(url: str, target: str, followed: str) -> None:
    request, found = Request(url, headers={"Authorization": "Basic x"}), ""
    try:
        following = Redirections().redirect_request(request, None, 302, "Found", Message(), target)
        assert following is not None and following.full_url == target
        found = "with the password" if following.has_header("Authorization") else "without"
    except HTTPError as error:
        found = str(error)
    assert followed in found


# ---- folders


def test_a_folder_that_is_not_mounted(tmp_path: Path) -> None:
    knobs.cache.url, knobs.cache.key = f"file://{tmp_path / 'mnt'}", SECRET
    with pytest.warns(UserWarning, match="unreachable: No such file"):
        assert load_entry(KEY, "add") is None
    store_entry(KEY, "add", FILES)
    assert flush_all(5) and not (tmp_path / "mnt").exists(), "it is not made"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES], ids=["mounted read-only", "no permission"])
def test_a_folder_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    (folder := tmp_path / "mnt").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{folder}", SECRET
    metrics.reset()
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    before = objects(folder)

    def refuse(path: str, mode: str) -> Any:
        if mode != "rb":
            raise OSError(number, os.strerror(number), path)
        return open(path, mode)

    monkeypatch.setattr(folder_store, "open", refuse, raising=False)  # file permissions do not stop root
    assert load_entry(KEY, "add") == FILES
    with pytest.warns(UserWarning, match="takes no kernels now .read-only"):
        store_entry(OTHER, "add", FILES)
        assert eventually(lambda: failures() == {"read-only": 1})
    assert load_entry(OTHER, "add") == FILES, "kept in the local cache"
    assert load_entry(KEY, "add") == FILES and objects(folder) == before


def test_a_file_that_its_writer_keeps_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "mnt").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{folder}", SECRET
    metrics.reset()
    for key in (KEY, OTHER):
        store_entry(key, "add", FILES)
    another_machine(tmp_path)
    private = str(folder / shared_cache.object_name(KEY, "add"))

    def refuse(path: str, mode: str) -> Any:
        if path == private:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open(path, mode)

    monkeypatch.setattr(folder_store, "open", refuse, raising=False)  # file permissions do not stop root
    with pytest.warns(UserWarning, match="has an entry that is not used .unreadable: Permission denied"):
        assert load_entry(KEY, "add") is None
    assert load_entry(OTHER, "add") == FILES and failures() == {"unreadable": 1}


def test_a_writer_of_a_folder_that_is_killed_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "mnt").mkdir()
    store = open_store(f"file://{folder}")
    monkeypatch.setattr(os, "replace", lambda source, target: None)  # it dies before
    store.put(shared_cache.object_name(KEY, "add"), b"data")
    assert list(store.names("")) == [] and len(objects(folder)) == 1


def test_what_is_no_file_of_a_folder(tmp_path: Path) -> None:
    """Opening a pipe waits for its writer, and a folder cannot be read."""
    (folder := tmp_path / "mnt").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{folder}", SECRET
    metrics.reset()
    store_entry(KEY, "add", FILES)
    another_machine(tmp_path)
    pipe, inner = (folder / shared_cache.object_name(key, "add") for key in ("01" * 32, "02" * 32))
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    inner.mkdir(parents=True)
    with pytest.warns(UserWarning, match="has an entry that is not used .wrong type: it is not a file"):
        assert [load_entry(key, "add") for key in ("01" * 32, "02" * 32)] == [None, None]
    assert load_entry(KEY, "add") == FILES and failures() == {"wrong type": 2}


@pytest.mark.parametrize("name", ["../x", "a//b", "/a", "a/.", ""])
def test_names_stay_inside_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        open_store(f"file://{tmp_path}").put(name, b"")
