"""Kernels from the compile server, for a process without a compiler: the same bytes, or compiled here as if nobody had been asked."""

import ast
import builtins
import copy
import importlib
import linecache
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import HOPPER, HOST
from tests.runtime.server_fixture import end_servers, server_process
from tests.runtime.server_fixture import place as place
from tilework import JITFunction, knobs, metrics, plugins
from tilework.compiler import ASTSource, GPUTarget, compile
from tilework.errors import CompilationError
from tilework.runtime.compile import cached
from tilework.runtime.workers import first_kernels, server_place
from tilework.runtime.workers.compile_ahead import CompileAhead
from tilework.runtime.workers.process_context import is_as_written
from tilework.runtime.workers.sent_kernel import NotSendable, Sender
from tilework.targets.base import find_backend

ROOT = Path(__file__).parent.parent.parent
SCALE = tl.constexpr(3)
STATE = {"offset": 5}


@pytest.fixture(scope="module")
def server(place: Path) -> Path:
    """A server that has loaded the compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(place))
        patch.setenv("TILEWORK_SERVER_IDLE", "60")
        path = server_place.socket_path()
        assert path is not None and server_place.start(path, ("cpu", "host", 1), in_background=True)
        wait_until(lambda: server_place.is_ready(path))
    return place


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the compiler were not loaded; an empty cache."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setattr(cached, "is_compiler_loaded", lambda: False)
    monkeypatch.setattr(first_kernels, "PATIENCE", 20.0)  # the machines that run tests are busy
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.runtime.scope(), knobs.autotuning.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.compilation.server = "use"
        yield


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What became of each question."""
    found: list[bool] = []
    ask = first_kernels.is_compiled

    def asked(channel: Any) -> bool:
        found.append(ask(channel))
        return found[-1]

    monkeypatch.setattr(first_kernels, "is_compiled", asked)
    return found


def wait_until(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@tilework.jit
def twice(value):
    return value + value


@tilework.jit
def thrice(value):
    return twice(value) + value


@tilework.jit
def store(out, BLOCK: tl.constexpr, how: tl.constexpr = None, dtype: tl.constexpr = tl.float32):
    i = tl.arange(0, BLOCK)
    value = (twice(i) * SCALE).to(dtype)
    if how is not None:
        value = how(value)
    tl.store(out + i, value)


@tilework.jit
def talkative(out):
    tl.static_print("the value is", SCALE)
    tl.store(out, 1)


@tilework.jit
def broken(out):
    tl.store(out, undefined_name)  # noqa: F821


@tilework.jit
def old_fashioned(out):
    tl.store(out + tl.arange(0, 16), tl.view(tl.arange(0, 16), (16,)))


@tilework.constexpr_function
def offset():
    return STATE["offset"]


@tilework.jit
def offset_by_state(out):
    tl.store(out, offset())


def captured(factor: int) -> Any:
    @tilework.jit
    def store(out):
        tl.store(out, FACTOR * SCALE)

    FACTOR = tl.constexpr(factor)
    return store


def source(kernel: Any, **constants: Any) -> ASTSource:
    return ASTSource(kernel, {"out": "*fp32", **dict.fromkeys(constants, "constexpr")}, constants)


def products(kernel: Any) -> dict[str, bytes]:
    return {Path(path).name: Path(path).read_bytes() for path in kernel.metadata_group.values()}


CASES = {
    "a constant and a function": lambda: source(store, BLOCK=16),
    "another constant": lambda: source(store, BLOCK=32),
    "a function and a dtype as constants": lambda: source(store, BLOCK=16, how=thrice, dtype=tl.float16),
    "a captured variable": lambda: source(captured(5)),
    "another value of it": lambda: source(captured(7)),
}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("target", [HOST, HOPPER], ids=str)
def test_it_is_what_would_have_been_compiled_here(target: Any, answers: list[bool], tmp_path: Path) -> None:
    for name, made in CASES.items() if target is HOST else [("a constant", CASES["another constant"])]:
        before = metrics.total("compiles")
        served = compile(made(), target, {"num_warps": 8})
        assert answers.pop() and metrics.total("compiles") == before + 1, name
        knobs.cache.dir, knobs.compilation.server = str(tmp_path / "here"), "off"
        here = compile(made(), target, {"num_warps": 8})
        assert products(served) == products(here) and served.hash == here.hash, name
        knobs.cache.dir, knobs.compilation.server = str(tmp_path / "cache"), "use"
    assert not answers


@pytest.mark.usefixtures("server")
def test_what_is_said_is_said_here(answers: list[bool], capfd: Any) -> None:
    compile(source(talkative), HOST)
    assert capfd.readouterr().out.count("the value is") == 1 and answers == [False]
    with pytest.raises(CompilationError, match="undefined_name") as error:
        compile(source(broken), HOST)
    assert "test_first_kernels.py" in str(error.value) and answers == [False, False]
    with pytest.warns(DeprecationWarning, match="view is deprecated"):
        compile(source(old_fashioned), HOST)
    assert answers == [False] * 3


@pytest.mark.usefixtures("server")
def test_files_change_under_a_running_server(answers: list[bool], tmp_path: Path, monkeypatch: Any) -> None:
    """The text, and what it refers to, are those of this process, whatever stands in files or was true at import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which has seconds, and these files change within one
    text = (
        "import tilework, tilework.language as tl\nimport served_settings\nLOCAL = tl.constexpr({local})\n\n"
        "@tilework.jit\ndef kernel(out):\n    tl.store(out, LOCAL + served_settings.OTHER)\n"
    )
    file = tmp_path / "served_module.py"
    (tmp_path / "served_settings.py").write_text("import tilework.language as tl\nOTHER = tl.constexpr(100)\n")
    found = []
    for local, other in ((1, 100), (2, 100), (3, 200)):
        file.write_text(text.format(local=local))
        sys.modules.pop("served_module", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        module = importlib.import_module("served_module")
        file.write_text("this is not Python any more")
        module.served_settings.OTHER = tl.constexpr(other)
        found.append(stored(compile(source(module.kernel), HOST)))
    assert found == [101, 102, 203] and answers == [True] * 3


def stored(kernel: Any) -> int:
    """The constant that a kernel stores."""
    out = np.zeros(1, np.float32)
    kernel[(1, 1, 1)](out)
    return int(out[0])


@pytest.mark.usefixtures("server")
def test_state_that_no_key_tells_stays_here(answers: list[bool]) -> None:
    """What runs at compile time may look at anything: another process would look at something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STATE, "offset", 9)
        assert stored(compile(source(offset_by_state), HOST)) == 9
    assert not answers
    for kernel in (offset_by_state, tilework.jit(repr=lambda found: "name")(broken.fn), tilework.jit(made_by_exec())):
        with pytest.raises(NotSendable):
            Sender().value(kernel)


def made_by_exec() -> Any:
    text = "def kernel(out):\n    pass\n"
    linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
    scope: dict[str, Any] = {}
    exec(builtins.compile(text, "<made>", "exec"), scope)
    return scope["kernel"]


WATCHED: dict[str, Callable[[pytest.MonkeyPatch, Path], Any]] = {
    "listener": lambda patch, folder: setattr(knobs.compilation, "listener", lambda **event: None),
    "always": lambda patch, folder: setattr(knobs.compilation, "always_compile", True),
    "dump": lambda patch, folder: patch.setenv("TRITON_KERNEL_DUMP", "1"),
    "override": lambda patch, folder: patch.setenv("TRITON_KERNEL_OVERRIDE", "1"),
    "off": lambda patch, folder: setattr(knobs.compilation, "server", "off"),
    "no workers": lambda patch, folder: setattr(knobs.autotuning, "workers", 0),
    "remarks": lambda patch, folder: patch.setenv("MLIR_ENABLE_DIAGNOSTICS", "remarks"),
    "reproducers": lambda patch, folder: patch.setenv("TRITON_REPRODUCER_PATH", str(folder / "repro")),
    "no disk": lambda patch, folder: setattr(knobs.cache, "dir", str(Path(__file__) / "cache")),
    "a compiler": lambda patch, folder: patch.setattr(cached, "is_compiler_loaded", lambda: True),
}


@pytest.mark.usefixtures("server")
@pytest.mark.filterwarnings("ignore:tilework cannot use the cache")
@pytest.mark.parametrize("way", WATCHED)
def test_who_watches_compilations_compiles(way: str, answers: list[bool], monkeypatch: Any, tmp_path: Path) -> None:
    for folder in ("DUMP", "OVERRIDE"):
        monkeypatch.setenv(f"TRITON_{folder}_DIR", str(tmp_path / folder))
    WATCHED[way](monkeypatch, tmp_path)
    compile(source(captured(11)), HOST)
    assert not answers


def test_a_backend_that_somebody_changed_is_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = importlib.import_module("tilework.triton.backends.nvidia.compiler").CUDABackend
    backends = (ours, *(type(find_backend(target)) for target in (HOST, HOPPER, GPUTarget("hip", "gfx942", 64))))
    assert all(map(is_as_written, backends))
    original = ours.__mro__[1].stages
    for other in (lambda self, options: {}, wraps(original)(lambda self, options: {})):
        monkeypatch.setattr(ours.__mro__[1], "stages", other)
        assert not is_as_written(ours)
    monkeypatch.undo()
    launch = ((np.zeros(16, np.float32), 16), {})
    assert CompileAhead(store, [launch]).left
    host = type(find_backend(HOST))
    monkeypatch.setattr(host, "hash", wraps(host.hash)(lambda self: "the same"))
    assert not is_as_written(host) and not CompileAhead(store, [launch]).left
    monkeypatch.setitem(
        plugins.PREFERRED, ("tilework.backends", "cuda"), plugins.Plugin("", "", "mine:Backend", "mine")
    )
    assert not is_as_written(ours)


class Doubled(JITFunction):
    """A kernel that is read in a way of its own."""

    def parse(self) -> ast.Module:
        tree = copy.deepcopy(super().parse())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == 21:
                node.value = 42
        return tree


class Replaced(ASTSource):
    """A source that gives another module."""

    def product(self, options: Any) -> Any:
        return source(captured(14)).product(options)


def store_21(out):
    tl.store(out, 21)


@pytest.mark.usefixtures("server")
def test_kernels_and_sources_of_other_kinds_stay_here(answers: list[bool]) -> None:
    assert stored(compile(source(Doubled(store_21)), HOST)) == 42 and not answers
    assert stored(compile(Replaced(tilework.jit(store_21), {"out": "*fp32"}), HOST)) == 42 and not answers


@pytest.mark.usefixtures("server")
def test_what_was_found_for_other_sources_is_not_taken(answers: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False, False, True, True])
    for module in (first_kernels, cached):
        monkeypatch.setattr(module, "is_assumed_rightly", lambda: next(looks))
    assert stored(compile(source(tilework.jit(store_21)), HOST)) == 21 and answers == [False, True]
    looks = iter([False, True])
    assert stored(compile(source(tilework.jit(store_21)), HOST)) == 21 and len(answers) == 2, "from the cache"


def test_a_server_that_was_killed_while_it_was_loading_is_replaced(tmp_path: Path, monkeypatch: Any) -> None:
    path = str(tmp_path / "socket")
    monkeypatch.setattr(server_place, "socket_path", lambda: path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        assert first_kernels.connected({}, ("cpu", "host", 1)) is None and not first_kernels.WANTED
    assert first_kernels.connected({}, ("cpu", "host", 1)) is None and first_kernels.WANTED
    first_kernels.WANTED.clear()


def test_where_a_server_can_be(tmp_path: Path, monkeypatch: Any) -> None:
    """Its folder has one name everywhere, what the compiler remembers is a part of its name, and it is run by Python."""
    path = server_place.socket_path()
    monkeypatch.setenv("TILEWORK_CPU_DOTS", "0")
    assert path is not None and server_place.socket_path() not in (None, path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "run")
    monkeypatch.setenv("TMPDIR", str(tmp_path.parent))
    path = server_place.socket_path()
    assert (path is None or os.path.isabs(path)) and not list((tmp_path / "run").iterdir())
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert server_place.socket_path() is None


def acting(answer: Callable[[socket.socket], None], path: str) -> threading.Thread:
    """A server that does `answer` with its one client."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def mute(connection: socket.socket) -> None:
    connection.recv(1 << 20)
    connection.recv(1)  # until the client is gone


def dying(connection: socket.socket) -> None:
    connection.sendall(b'{"state": "ready"}\n{"state": "lo')
    connection.recv(10)


def lying(connection: socket.socket) -> None:
    connection.sendall(b'{"state": "ready"}\n{"state": "compiled"}\n')
    connection.recv(1 << 20)


def raving(connection: socket.socket) -> None:
    connection.sendall(b"[7]\n")
    connection.recv(1 << 20)


@pytest.mark.parametrize("answer", [mute, dying, lying, raving])
def test_a_bad_server_costs_little(answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_kernels, "PATIENCE", 0.2)
    path = str(tmp_path / "socket")
    os.chmod(tmp_path, 0o700)
    monkeypatch.setattr(server_place, "socket_path", lambda: path)
    thread = acting(answer, path)
    began = time.monotonic()
    assert stored(compile(source(captured(2)), HOST)) == 6
    thread.join(5.0)
    assert not thread.is_alive() and time.monotonic() - began < 20


@pytest.mark.usefixtures("server")
def test_a_worker_that_is_stopped_is_not_waited_for(answers: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_kernels, "PATIENCE", 0.3)
    process = server_process()
    os.kill(process, signal.SIGSTOP)
    try:
        assert stored(compile(source(captured(13)), HOST)) == 39 and answers == [False]
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.usefixtures("server")
def test_waiting_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Interrupted(server_place.Channel):
        def wait(self, seconds: float | None = None) -> None:
            raise KeyboardInterrupt

        def close(self) -> None:
            closed.append(self)
            super().close()

    monkeypatch.setattr(server_place, "Channel", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile(source(captured(3)), HOST)
    assert closed


@pytest.mark.usefixtures("server")
def test_many_threads_ask_at_once(answers: list[bool]) -> None:
    found: dict[int, int] = {}
    kernels = {factor: captured(factor) for factor in range(30, 34)}

    def ask(factor: int) -> None:
        found[factor] = stored(compile(source(kernels[factor]), HOST))

    threads = [threading.Thread(target=ask, args=(factor,)) for factor in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {factor: 3 * factor for factor in kernels} and answers == [True] * 4


@pytest.mark.parametrize(
    ("mode", "terminal", "starts"), [("auto", True, 1), ("auto", False, 0), ("start", False, 1), ("use", True, 0)]
)
def test_where_no_server_runs_one_may_be_started(
    mode: str, terminal: bool, starts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(server_place, "socket_path", lambda: str(tmp_path / "none"))
    monkeypatch.setattr(server_place, "start", lambda *place, in_background: started.append(in_background))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=len, flush=lambda: None))
    knobs.compilation.server = mode
    compile(source(captured(2)), HOST)
    assert started == [True] * starts


def test_a_word_that_is_no_mode_is_an_error() -> None:
    knobs.compilation.server = "sometimes"
    with pytest.raises(ValueError, match="TILEWORK_COMPILE_SERVER is auto, start, use or off, not 'sometimes'"):
        compile(source(captured(2)), HOST)


def sockets_in(folder: Path) -> list[str]:
    return list(map(str, (folder / "tilework").glob("*")))


SCRIPT = """
import sys
import numpy as np
import tilework, tilework.language as tl
from tilework.runtime.workers import first_kernels
first_kernels.PATIENCE = 20

@tilework.jit
def fill(out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), 7)

out = np.zeros(64, np.int32)
fill[(1,)](out, int(sys.argv[1]))
assert out.sum() == 7 * int(sys.argv[1])
print("tilework.frontend.generator" in sys.modules)
"""


def test_the_second_run_of_a_script_loads_no_compiler(place: Path, tmp_path: Path, warm_cache: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(warm_cache)}
    environment |= {"TILEWORK_COMPILE_SERVER": "start", "TILEWORK_SERVER_IDLE": "60", "TILEWORK_DEVICE": "native"}
    (own := place / "own").mkdir(0o700)
    environment["XDG_RUNTIME_DIR"] = str(own)
    loaded = []
    for size in (16, 32):
        command = [sys.executable, str(tmp_path / "script.py"), str(size)]
        loaded.append(subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120))
        wait_until(lambda: any(map(server_place.is_ready, sockets_in(own))))
    end_servers(own)
    assert loaded[-1].stdout == "False\n" and not any(done.stderr for done in loaded)
