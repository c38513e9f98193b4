"""Candidates compiled by the server: what is sent, what comes back, who survives."""

import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.python_programs import run_python
from tests.runtime import tuning_kernels
from tests.runtime.server_fixture import all_gone, kill, server_process
from tests.runtime.server_fixture import place as place
from tests.runtime.tuning_kernels import add_one, broken, fragile, talkative
from tilework import knobs
from tilework.errors import CompilationError
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.files import can_write
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.tuning.autotuner import Config, autotune, heuristics
from tilework.runtime.workers import compile_ahead, compile_server, server_place
from tilework.runtime.workers.compile_ahead import CompileAhead, CompilerDied
from tilework.runtime.workers.compile_requests import find_kernel, request_for
from tilework.runtime.workers.compile_server import Server
from tilework.runtime.workers.line_channel import Channel
from tilework.runtime.workers.process_context import settings
from tilework.targets.base import GPUTarget

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def eager(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty disk cache, kernels that this process has not compiled, and a server for whatever can be sent."""
    kernels = [value for value in vars(tuning_kernels).values() if hasattr(value, "device_caches")]
    for kernel in kernels:
        kernel.device_caches.clear()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("TILEWORK_SERVER_IDLE", "20")
    monkeypatch.setattr(compile_ahead, "FORK_SECONDS", -1.0)
    monkeypatch.setattr(compile_ahead, "START_SECONDS", -100.0)
    monkeypatch.setattr(compile_ahead, "CROWDED", 1e9)
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.autotuning.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in kernels:
        kernel.device_caches.clear()


def x() -> np.ndarray:
    return np.zeros(64, np.float32)


def launches(*sizes: int) -> list[Any]:
    return [((x(), x(), 64), {"BLOCK": size}) for size in sizes]


class Elsewhere(CompileAhead):
    """Leaves everything to the server, as long as there is one."""

    def compile_here(self, index: int) -> None:
        if not self.attempts and self.server is None:
            super().compile_here(index)
        self.times.append(1.0)
        time.sleep(0.01)


def sent(fn: Any, given: list[Any], step: Callable[[CompileAhead], None] = lambda ahead: None) -> CompileAhead:
    """Have everything compiled by a server; `step` is called before each launch."""
    with Elsewhere(fn, given) as ahead:
        for index in range(len(given)):
            step(ahead)
            ahead.ready(index)
    return ahead


def is_compiled(fn: Any, launch: Any) -> bool:
    return request_for(fn, *launch) is None


def test_the_server_fills_the_disk_cache() -> None:
    request = request_for(add_one, *launches(16)[0])
    assert request is not None
    ahead = sent(add_one, launches(16, 32, 64))
    assert ahead.elsewhere == 3 and not ahead.errors and not ahead.notes
    hits = []
    knobs.compilation.listener = lambda cache_hit, **others: hits.append(cache_hit)
    kernel = add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=16)
    add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=64)
    assert hits == [True, True]
    assert kernel.hash == request.entry_key


def test_what_is_cached_is_not_sent() -> None:
    assert request_for(add_one, *launches(16)[0]) is not None
    add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=16)
    assert is_compiled(add_one, launches(16)[0])  # in memory
    add_one.device_caches.clear()
    assert is_compiled(add_one, launches(16)[0])  # on disk


def test_one_server_serves_many() -> None:
    """As many as there are, at the same time, and what two of them want is compiled once."""
    done: list[CompileAhead] = []
    sent(add_one, launches(8))
    before = server_process()
    given = [launches(*(16, 32, 64, 128, 256)) for _ in range(4)]
    threads = [threading.Thread(target=lambda work=work: done.append(sent(add_one, work))) for work in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4 and not any(ahead.left or ahead.notes for ahead in done)
    assert all(is_compiled(add_one, launch) for launch in given[0]) and server_process() == before


def test_few_and_quick_compilations_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(server_place, "start", lambda *place: pytest.fail("nothing may be started"))
    monkeypatch.setattr(server_place, "connect", lambda path: None)
    with CompileAhead(add_one, launches(16, 32, 64, 128)) as ahead:
        assert [ahead.ready(index) for index in range(4)] == [None] * 4
    assert not ahead.left and ahead.elsewhere == 0


@pytest.mark.parametrize(
    "times, is_loaded, count, limit, starts",
    [
        ([], False, 10, 16, False),  # nothing is known yet
        ([], False, 16, 16, True),  # but so many take long
        ([3.0], False, 3, 16, False),  # that was loading the compiler
        ([1.2, 0.1], False, 10, 16, False),
        ([1.2, 0.1], False, 20, 16, True),
        ([0.1], True, 10, 16, False),
        ([0.5], True, 10, 16, True),
        ([5.0], True, 10, 1, False),  # one worker is no faster than this process
    ],
)
def test_a_server_is_started_when_it_pays(
    times: list[float], is_loaded: bool, count: int, limit: int, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_ahead, "FORK_SECONDS", 0.1)
    monkeypatch.setattr(compile_ahead, "START_SECONDS", 0.3)
    monkeypatch.setattr(server_place, "connect", lambda path: None)
    monkeypatch.setattr(server_place, "start", lambda *place: None)
    with CompileAhead(add_one, launches(*(2**k for k in range(3, 3 + count)))) as ahead:
        assert len(ahead.left) == count
        ahead.limit, ahead.times, ahead.is_loaded = limit, times, is_loaded
        ahead.is_crowded = True
        ahead.consider()
        assert ahead.server is None, "there are no cores for it"
        ahead.is_crowded = False
        ahead.consider()
        assert (ahead.server is not None) == starts


def test_a_crash_takes_only_its_candidate() -> None:
    configs = [Config({"BLOCK": size}) for size in (16, 32, 64)]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: call() or [1.0, 1.0, 1.0])(fragile)
    y = x()
    knobs.autotuning.workers = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tilework.runtime.tuning.autotuner.CompileAhead", Elsewhere)
        with pytest.warns(
            UserWarning, match=r"fragile: the compiler crashed on the configuration \(BLOCK: 32, num_warps: 4"
        ):
            tuned[(1,)](y, 64)
        assert tuned.best_config == configs[0] and y[:16].tolist() == list(range(16))
        failure = tuned.failures[configs[1]]
        assert isinstance(failure, CompilerDied)
        assert str(failure).endswith(f"was killed by signal {signal.SIGABRT.value}")
        with pytest.raises(CompilerDied), pytest.warns(UserWarning, match="BLOCK: 32"):
            fragile.device_caches.clear()
            tuned.warmup(x(), 63, grid=(1,))


def test_a_killed_server_is_replaced() -> None:
    """At any moment: before it is asked, while it works, and while it starts."""
    sent(add_one, launches(8))
    kill(server_process())
    assert sent(add_one, launches(16, 32)).elsewhere == 2
    with Elsewhere(add_one, given := launches(64, 128, 256, 512)) as ahead:
        ahead.compile_here(0)
        ahead.consider()
        assert ahead.server is not None
        while not ahead.server.is_ready():
            time.sleep(0.01)
        kill(server_process())
        ahead.ready(0)
    assert ahead.elsewhere and not ahead.left and all(is_compiled(add_one, launch) for launch in given)


def test_without_a_server_everything_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_place, "connect", lambda path: None)
    monkeypatch.setattr(server_place, "start", lambda *place: None)
    with CompileAhead(add_one, given := launches(16, 32, 64)) as ahead:
        assert [ahead.ready(index) for index in range(3)] == [None] * 3
    assert ahead.elsewhere == 0 and all(is_compiled(add_one, launch) for launch in given)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_ahead, "PATIENCE", 0.2)
    pairs = []

    def mute(path: str) -> Channel:
        pairs.append(socket.socketpair())
        pairs[-1][0].send(b'{"state": "ready"}\n')
        return Channel(pairs[-1][1])

    monkeypatch.setattr(server_place, "connect", mute)
    with CompileAhead(add_one, given := launches(16, 32, 64, 128)) as ahead:
        ahead.ready(3)
        ahead.ready(0)
    assert 1 < len(pairs) <= compile_ahead.ATTEMPTS
    assert is_compiled(add_one, given[3]) and is_compiled(add_one, given[0])


def test_nobody_waits_for_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may import for seconds before they compile: this process goes on, from the other end."""
    begun, done = socket.socketpair(), []
    begun[0].send(b'{"state": "ready"}\n')
    monkeypatch.setattr(server_place, "connect", lambda path: Channel(begun[1]))
    here = CompileAhead.compile_here
    monkeypatch.setattr(CompileAhead, "compile_here", lambda self, index: done.append(index) or here(self, index))
    with CompileAhead(add_one, given := launches(16, 32, 64, 128)) as ahead:
        assert ahead.ready(0) is None
    assert done[0] in (0, 3) and set(done) == {0, 1, 2, 3} and is_compiled(add_one, given[0])


def test_a_client_that_is_killed_disturbs_nobody() -> None:
    """Also in the middle of a message, and one who talks nonsense."""
    sent(add_one, launches(8))
    path, before = server_place.socket_path(), server_process()
    assert path is not None
    for data in (b'{"context": {', b"nonsense\n", b'[1]\n{"id": 2}\n', b'{"limit": 1}\n', b""):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(data)
    crowd = [server_place.connect(path) for _ in range(100)]  # at once, and then gone
    assert all(crowd)
    for channel in filter(None, crowd):
        channel.close()
    assert sent(add_one, launches(16)).elsewhere == 1 and server_process() == before


def test_left_over_sockets_idle_servers_and_foreign_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="tw") as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        path = server_place.socket_path()
        assert path is not None and os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)  # nobody listens
        assert server_place.connect(path) is None
        monkeypatch.setenv("TILEWORK_SERVER_IDLE", "1")
        assert sent(add_one, launches(16)).elsewhere == 1
        assert all_gone([server_process()], within=20) and not os.path.exists(path), "nobody asked for a second"
        folder = os.path.dirname(path)
        os.chmod(folder, 0o750)
        assert not server_place.is_own_folder(folder), "others may look into it"
        os.chmod(folder, 0o700)
        monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert not server_place.is_own_folder(folder), "it is somebody else's"
        monkeypatch.setattr(server_place, "temporary_folders", lambda: ["/absent"])
        assert server_place.socket_path() is None, "there is no place for it"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    assert server_place.socket_path() is None, "a socket cannot have such a name"


def test_a_server_keeps_nothing_of_clients_that_are_gone(tmp_path: Path) -> None:
    """It lives long, and collects no cycles: workers share its pages."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as connection:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        server = Server(listener)
        connection.connect(str(tmp_path / "socket"))
        server.accept()
        (client,) = map(weakref.ref, server.clients)
        gc.disable()
        try:
            connection.close()
            ((key, mask),) = server.selector.select(10)
            key.data(mask)
            del key
            assert not server.clients and client() is None
        finally:
            gc.enable()


def test_another_tilework_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {server_place.server_name()}
    with monkeypatch.context() as patch:
        patch.setattr(server_place, "triton_key", lambda: "another version")
        names.add(server_place.server_name())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "another python")
        names.add(server_place.server_name())
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", "something")
        names.add(server_place.server_name())
    assert len(names) == 4


def test_what_kernels_print_is_printed_here(capsys: Any) -> None:
    sent(talkative, [((x(),), {"BLOCK": 16})])
    out = capsys.readouterr().out
    assert "block is 16" in out.replace(",", "") and "importing" not in out


def test_errors_are_raised_by_the_launch() -> None:
    ahead = sent(broken, [((x(),), {"BLOCK": 16})])
    assert not ahead.errors and ahead.notes[0].startswith("failed: CompilationError")
    with pytest.raises(CompilationError, match="undefined_name"):
        autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], [])(broken)[(1,)](x())


def test_other_targets_need_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        utils = SimpleNamespace(get_device_properties=lambda device: {"multiprocessor_count": 132})

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 3

    monkeypatch.setattr(driver, "_active", Device())
    assert sent(add_one, launches(16)).elsewhere == 1
    assert is_compiled(add_one, launches(16)[0])


def test_heuristics_are_applied_first() -> None:
    ruled = heuristics({"BLOCK": lambda args: args["n"]})(add_one)
    assert sent(ruled, [((x(), x(), 64), {})]).elsewhere == 1
    assert is_compiled(add_one, launches(64)[0])


def test_kernels_without_a_place_to_import_them_from_are_not_sent() -> None:
    @jit
    def local(y, BLOCK):
        pass

    assert request_for(local, (x(), 16), {}) is None
    assert not CompileAhead(SimpleNamespace(run=None), launches(16)).left


def test_launches_that_cannot_work_are_not_sent() -> None:
    assert request_for(add_one, (x(),), {"BLOCK": 16}) is None
    assert request_for(add_one, (x(), x(), 64), {"BLOCK": 16, "num_warps": 3}) is None


def test_a_kernel_that_changed_is_refused() -> None:
    source = add_one.src
    try:
        add_one._unsafe_update_src(source.replace("+ GLOBAL", "+ 2"))
        ahead = sent(add_one, launches(16))
        assert "refused: " in ahead.notes[0] and "another kernel" in ahead.notes[0]
    finally:
        add_one._unsafe_update_src(source)


@pytest.mark.parametrize(
    "group, knob",
    [("runtime", "jit_cache_hook"), ("runtime", "add_stages_inspection_hook"), ("compilation", "always_compile")],
)
def test_hooks_keep_compilation_here(group: str, knob: str) -> None:
    setattr(getattr(knobs, group), knob, lambda *args, **kwargs: None)
    assert not CompileAhead(add_one, launches(16)).left
    delattr(getattr(knobs, group), knob)


def test_without_a_disk_cache_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert can_write(str(tmp_path / "new" / "folder")) and can_write("a/new/folder")
    assert not can_write(str(tmp_path / "file" / "folder"))


def test_settings_are_those_of_the_knobs() -> None:
    knobs.compilation.disable_line_info = True
    found = settings(knobs.environment_without(()))
    assert found["TRITON_CACHE_DIR"] == knobs.cache.dir and found["TRITON_DISABLE_LINE_INFO"] == "1"
    assert found["TRITON_INTERPRET"] is None and found["TRITON_DEBUG"] == "0"


def test_workers_load_no_more_than_the_kernel_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what its module imports besides, nor what it is tuned with."""
    heavy = (
        "import os\nassert os.environ.get('TILEWORK_COMPILE_WORKERS') != '0', 'loaded in a worker'\nSIZES = [1, 2]\n"
    )
    (tmp_path / "heavy_module.py").write_text(heavy)
    (tmp_path / "light_kernels.py").write_text(
        "import heavy_module\nimport tilework\nimport tilework.language as tl\n\n"
        "@tilework.autotune([tilework.Config({'BLOCK': size}) for size in heavy_module.SIZES], key=[])\n"
        "@tilework.jit\ndef fill(x, BLOCK: tl.constexpr):\n    tl.store(x + tl.arange(0, BLOCK), 1.0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fill = importlib.import_module("light_kernels").fill.fn
    ahead = sent(fill, [((x(),), {"BLOCK": 16})])
    assert ahead.elsewhere == 1, ahead.notes


def test_workers_do_not_load_what_decides_over_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries ask for versions, with torch, before they import a function that the kernel calls."""
    heavy = "import os\nassert os.environ.get('TILEWORK_COMPILE_WORKERS') != '0', 'loaded in a worker'\nNEW = True\n"
    (tmp_path / "deciding_module.py").write_text(heavy)
    (tmp_path / "decided_kernels.py").write_text(
        "import tilework\nimport tilework.language as tl\nfrom deciding_module import NEW\n"
        "if NEW:\n    from tilework.language.extra.libdevice import tanh\n    from tilework.language import load\n\n"
        "@tilework.jit\ndef curve(x, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    tl.store(x + i, tanh(load(x + i)))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    curve = importlib.import_module("decided_kernels").curve
    ahead = sent(curve, [((x(),), {"BLOCK": 16})])
    assert ahead.elsewhere == 1, ahead.notes


def test_a_request_finds_the_kernel_it_was_made_of() -> None:
    request = request_for(add_one, *launches(16)[0])
    assert request is not None and find_kernel(request).cache_key == add_one.cache_key


# ---- scripts

SCRIPT = """
import sys
import numpy as np
import tilework.language as tl
from tilework.runtime.tuning.autotuner import Config, autotune
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.workers import compile_ahead

print("the script runs")
compile_ahead.FORK_SECONDS, compile_ahead.START_SECONDS, compile_ahead.CROWDED = -1, -100, 1e9
compile_here = compile_ahead.CompileAhead.compile_here
compile_ahead.CompileAhead.compile_here = lambda self, index: compile_here(self, index) if self.server is None else None
SCALE = tl.constexpr(3)

@autotune(
    [Config({"BLOCK": 2**k}) for k in range(3, 12)], key=["n"], do_bench=lambda call, quantiles: call() or [1.0]
)
@jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * SCALE, mask=i < n)

x = np.ones(32, np.float32)
scale[lambda meta: (2,)](x, 32)
"""


def run_script(tmp_path: Path, text: str, *command: str) -> "subprocess.CompletedProcess[str]":
    path = tmp_path / "script.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "script_cache")}
    environment |= {"TRITON_PRINT_AUTOTUNING": "1", "TILEWORK_SERVER_IDLE": "5"}
    return run_python(*command, str(path), env=environment)


def test_a_script_is_not_run_again(tmp_path: Path) -> None:
    done = run_script(tmp_path, SCRIPT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script runs") == 1 and "the script runs" not in done.stderr
    assert "configurations compiled in other processes" in done.stdout
    assert "autotuning scale: 9/9" in done.stderr and "s left" in done.stderr


def test_a_script_that_says_triton(tmp_path: Path) -> None:
    text = SCRIPT.replace("import tilework.language as tl", "import triton\nimport triton.language as tl")
    text = text.replace("@autotune", "@triton.autotune").replace("@jit", "@triton.jit")
    done = run_script(tmp_path, text, "-m", "tilework.as_triton")
    assert done.returncode == 0, done.stderr
    assert "configurations compiled in other processes" in done.stdout


def test_nobody_who_may_ask_again_waits_for_a_fork() -> None:
    worker = compile_server.Worker(0, None, free_since=time.monotonic())  # pyright: ignore[reportArgumentType]
    server = compile_server.Server(None, workers=[worker])  # pyright: ignore[reportArgumentType]
    assert not server.is_quiet()
    worker.free_since -= 2 * compile_server.PAUSE
    assert server.is_quiet()
    worker.job = compile_server.Job("key", [])
    assert not server.is_quiet()
