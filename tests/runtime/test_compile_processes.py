"""Several processes need the same kernels: one of them compiles each, the others wait for it, but never for long, and
not for a process that has died. Processes are copies of the test's, so nothing is imported again."""

import errno
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tests.runtime.redis_server import redis_server
from tilework import knobs, metrics
from tilework.errors import CompilationError
from tilework.runtime.compile import stages
from tilework.runtime.kernel_cache import claims, compile_once
from tilework.runtime.kernel_cache.claims import COMPILING, DONE, LATE, MEASURING, OURS, UNFINISHED, claimed
from tilework.runtime.kernel_cache.compile_once import making
from tilework.runtime.kernel_cache.remote import shared_cache
from tilework.runtime.kernel_cache.remote.guard import flush_all

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.usefixtures("fresh_cache"),
]
ROOT = Path(__file__).parent.parent.parent
SECONDS = 60  # after which a process of a test has hung


@tilework.jit
def plus(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + 2)


@tilework.jit
def times(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) * 2)


@tilework.jit
def wrong(x, B: tl.constexpr):
    tl.store(x, undefined_name)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821


def launch(*kernels: Any) -> None:
    for kernel in kernels:
        x = np.ones(16, np.float32)
        kernel[(1,)](x, B=16)
        assert (x == (3 if kernel is plus else 2)).all()


class Started:
    """Processes that a test has forked, each with a file of what it has counted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, list[int]()

    def start(self, work: Callable[[], object], compile_seconds: float = 0) -> int:
        """Fork a process that notes its compilations and takes some time for each."""
        process = os.fork()
        if process:
            self.processes.append(process)
            return process
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            metrics.reset()
            build = stages.build

            def noted(source: Any, *rest: Any) -> Any:
                with open(self.folder / "compiled", "ab", 0) as file:
                    file.write(f"{source.name} {os.getpid()}\n".encode())
                time.sleep(compile_seconds)
                return build(source, *rest)

            stages.build = noted
            work()
            code = 0
        finally:
            (self.folder / f"{os.getpid()}.json").write_text(json.dumps(metrics.snapshot()))
            os._exit(code)

    def compiled(self) -> list[str]:
        """Return the kernels that were compiled, in order."""
        file = self.folder / "compiled"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    def end(self, *processes: int) -> list[int]:
        """Wait for processes, and return their exit codes."""
        codes = []
        for process in processes or tuple(self.processes):
            codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
            self.processes.remove(process)
        return codes

    def counts(self, process: int, name: str) -> dict[str, float]:
        return json.loads((self.folder / f"{process}.json").read_text())[name]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    launch(plus)  # LLVM is loaded and the launcher made: children only compile kernels
    for kernel in (plus, times, wrong):
        kernel.device_caches.clear()
    knobs.cache.dir = str(tmp_path / "empty")
    yield (found := Started(tmp_path))
    for process in found.processes:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


@pytest.fixture
def quick_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BEAT_SECONDS", 0.1), ("STALE_SECONDS", 1.0), ("LOOK_SECONDS", 0.1)):
        monkeypatch.setattr(claims, name, seconds)


def left() -> list[str]:
    """Return the claims in the cache."""
    return [file for file in os.listdir(Path(knobs.cache.dir, ".tmp")) if file.endswith(".claim")]


def test_eight_processes_compile_each_kernel_once(started: Started) -> None:
    processes = [started.start(lambda: launch(plus, times)) for _ in range(8)]
    assert started.end() == [0] * 8
    assert sorted(started.compiled()) == ["plus", "times"]
    compiles = [sum(started.counts(process, "compiles").values()) for process in processes]
    hits = [sum(started.counts(process, "cache_hits").values()) for process in processes]
    assert sum(compiles) == 2 and [a + b for a, b in zip(compiles, hits)] == [2] * 8 and not left()


def test_without_waiting_every_process_compiles(started: Started) -> None:
    knobs.cache.compile_wait = 0
    for _ in range(3):
        started.start(lambda: launch(plus), compile_seconds=0.5)
    assert started.end() == [0] * 3 and started.compiled() == ["plus"] * 3


def test_a_pool_that_is_forked_compiles_each_kernel_once(started: Started) -> None:
    def program() -> None:
        with get_context("fork").Pool(3) as pool:
            pool.map(launch, [plus, times] * 6, chunksize=1)

    started.start(program, compile_seconds=0.1)
    assert started.end() == [0] and sorted(started.compiled()) == ["plus", "times"]


@pytest.mark.parametrize("locks", ["flock", "none"])
def test_an_owner_that_is_killed(
    started: Started, quick_heartbeat: None, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if locks == "none":
        forbid_locks(monkeypatch)
    owner = started.start(lambda: launch(plus), compile_seconds=SECONDS)
    started.wait_for(started.compiled)
    others = [started.start(lambda: launch(plus)) for _ in range(3)]
    time.sleep(0.3)
    assert started.compiled() == ["plus"]
    os.kill(owner, signal.SIGKILL)
    start = time.monotonic()
    assert started.end(owner) == [-signal.SIGKILL] and started.end(*others) == [0] * 3
    assert started.compiled() == ["plus"] * 2 and time.monotonic() - start < 20
    outcomes = [list(started.counts(process, "waits")) for process in others]
    assert sum('outcome="ours"' in text for (text,) in outcomes) == 1


def forbid_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, what: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    assert claims.fcntl is not None
    monkeypatch.setattr(claims.fcntl, "flock", flock)


def test_an_owner_that_is_stopped(started: Started, quick_heartbeat: None) -> None:
    owner = started.start(lambda: launch(plus), compile_seconds=0.2)
    started.wait_for(started.compiled)
    os.kill(owner, signal.SIGSTOP)
    others = [started.start(lambda: launch(plus), compile_seconds=0.3) for _ in range(3)]
    assert started.end(*others) == [0] * 3
    assert started.compiled() == ["plus"] * 2, "one of the others"
    os.kill(owner, signal.SIGCONT)
    assert started.end(owner) == [0] and not left()


def test_who_was_stopped_does_not_take_the_owner_for_dead(started: Started, quick_heartbeat: None) -> None:
    owner = started.start(lambda: launch(plus), compile_seconds=4)
    started.wait_for(started.compiled)
    other = started.start(lambda: launch(plus))
    time.sleep(0.3)
    os.kill(other, signal.SIGSTOP)
    time.sleep(2)
    os.kill(other, signal.SIGCONT)
    assert started.end(owner, other) == [0, 0] and started.compiled() == ["plus"]


def test_patience_ends(started: Started) -> None:
    knobs.cache.compile_wait = 1
    owner = started.start(lambda: launch(plus), compile_seconds=SECONDS)
    started.wait_for(started.compiled)
    other = started.start(lambda: launch(plus))
    assert started.end(other) == [0] and started.compiled() == ["plus"] * 2
    (labels,) = started.counts(other, "waits")
    assert 'outcome="late"' in labels and 0.9 < sum(started.counts(other, "wait_seconds").values()) < 10
    os.kill(owner, signal.SIGKILL)


def test_each_gets_its_own_error(started: Started) -> None:
    def fails() -> None:
        with pytest.raises(CompilationError, match="undefined_name"):
            launch(wrong)

    first = started.start(fails, compile_seconds=0.5)
    started.wait_for(started.compiled)
    others = [started.start(fails) for _ in range(3)]
    assert started.end(first, *others) == [0] * 4 and len(started.compiled()) == 4 and not left()
    assert all('outcome="unfinished"' in labels for process in others for labels in started.counts(process, "waits"))


def test_ctrl_c_ends_the_waiting(started: Started) -> None:
    def interrupted() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            launch(plus)

    owner = started.start(lambda: launch(plus), compile_seconds=SECONDS)
    started.wait_for(started.compiled)
    other = started.start(interrupted)
    time.sleep(0.5)
    os.kill(other, signal.SIGINT)
    assert started.end(other) == [0] and started.compiled() == ["plus"]
    os.kill(owner, signal.SIGKILL)


def test_a_cache_that_cannot_be_written(started: Started, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    knobs.cache.dir = str(tmp_path / "file" / "cache")

    def program() -> None:
        with pytest.warns(UserWarning, match="cannot use the cache directory"):
            launch(plus)

    started.start(program, compile_seconds=0.2)
    started.start(program, compile_seconds=0.2)
    assert started.end() == [0, 0] and started.compiled() == ["plus"] * 2


def test_what_cannot_be_stored_is_not_waited_for(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk an empty file can be created, but nothing can be written to it."""

    def write(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tilework.runtime.kernel_cache.entry.EntryStore.write", write)

    def program() -> None:
        with pytest.warns(UserWarning, match="the disk is full"):
            launch(plus)

    first = started.start(program, compile_seconds=0.5)
    started.wait_for(started.compiled)
    others = [started.start(program, compile_seconds=1) for _ in range(3)]
    start = time.monotonic()
    assert started.end(first, *others) == [0] * 4 and time.monotonic() - start < 3, "at the same time"


def test_settings_that_compile_always(started: Started) -> None:
    knobs.compilation.always_compile = True
    for _ in range(2):
        started.start(lambda: launch(plus), compile_seconds=0.3)
    assert started.end() == [0, 0] and started.compiled() == ["plus"] * 2


def test_a_warm_cache_claims_nothing(warm_cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport tilework, tilework.language as tl\n"
        "@tilework.jit\ndef seven(x):\n    tl.store(x, 7)\n\n"
        "seven[(1,)](x := np.zeros(1, np.int32))\n"
        "print(x[0], [name for name in sys.modules if name.endswith(('.claims', '.compile_once'))])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(warm_cache)}
    run_python(str(script), cwd=tmp_path, env=environment)
    assert run_python(str(script), cwd=tmp_path, env=environment).stdout == "7 []\n"


# ---- claims by themselves


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "one.claim")


def test_a_fork_does_not_keep_the_claim(path: str, started: Started) -> None:
    """The child of an owner lives longer than the owner."""

    def owner() -> None:
        with claimed(path, 1) as claim:
            assert claim.outcome == OURS
            if os.fork() == 0:
                assert claim.handle is None and not claims.HELD
                time.sleep(5)
                os._exit(0)
            Path(path + ".forked").touch()
            time.sleep(SECONDS)

    process = started.start(owner)
    started.wait_for(Path(path + ".forked").exists)
    with claimed(path, 0) as claim:
        assert claim.outcome == LATE
    os.kill(process, signal.SIGKILL)
    started.end(process)
    with claimed(path, 0) as claim:
        assert claim.outcome == OURS


@pytest.mark.parametrize("is_pool", [False, True], ids=["fork", "pool"])
def test_a_fork_while_another_thread_compiles(started: Started, is_pool: bool) -> None:
    """The child waits for the thread of its parent, and its end does not end the claim."""

    def program() -> None:
        build, begun, over = stages.build, threading.Event(), threading.Event()

        def held(*arguments: Any) -> Any:
            begun.set()
            assert over.wait(SECONDS)
            return build(*arguments)

        stages.build = held
        (thread := threading.Thread(target=launch, args=(plus,))).start()
        assert begun.wait(SECONDS)
        if is_pool:
            with get_context("fork").Pool(2) as pool:
                pool.map(own_nothing, range(4))
                assert left()
                launched = pool.map_async(launch, [plus, plus])
                over.set()
                launched.get(SECONDS)
        else:
            assert os.waitpid(fork(lambda: own_nothing(0)), 0)[1] == 0 and left()
            child = fork(lambda: launch(plus))
            over.set()
            assert os.waitpid(child, 0)[1] == 0
        thread.join()

    started.start(program)
    assert started.end() == [0] and started.compiled() == ["plus"] and not left()


def own_nothing(number: int) -> None:
    assert not claims.HELD and not claims.OPEN, "a forked process believes that it owns its parent's claims"


def fork(work: Callable[[], object]) -> int:
    """Fork a child that works, and ends with code 0 if it succeeds."""
    if process := os.fork():
        return process
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def test_a_child_of_the_thread_that_compiles_does_not_wait_for_it(started: Started) -> None:
    """The thread waits for the child, as in a hook of the compiler that uses a process."""
    build = stages.build

    def program() -> None:
        def forking(*arguments: Any) -> Any:
            stages.build = build
            assert os.waitpid(fork(lambda: launch(plus)), 0)[1] == 0 and left()
            return build(*arguments)

        stages.build = forking
        launch(plus)

    assert started.end(started.start(program)) == [0] and not left()


def test_a_child_does_not_release_what_its_parent_has_reserved(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{tmp_path / 'shared'}", "0123456789abcdef"

    def child() -> None:
        raise ValueError("an error in the child ends the block there")

    key, parent = "ab" * 32, os.getpid()
    with suppress(ValueError), making(key, "add", "compiles add") as claim:
        assert claim.is_ours and shared_cache.holder(key, "add")
        process = os.fork()
        if process == 0:
            child()
        assert os.waitpid(process, 0)[1] == 0 and shared_cache.holder(key, "add") and left()
    if os.getpid() != parent:
        os._exit(0 if flush_all(SECONDS) else 1)
    assert flush_all(SECONDS) and shared_cache.holder(key, "add") is None and not left()


def test_a_thread_that_owns_a_compilation_waits_for_nothing(path: str) -> None:
    taken, over = threading.Event(), threading.Event()

    def other() -> None:
        with claimed(path, 1):
            taken.set()
            over.wait(SECONDS)

    thread = threading.Thread(target=other)
    thread.start()
    taken.wait()
    start = time.monotonic()
    with claimed(path + "2", SECONDS), claimed(path, SECONDS) as claim:
        assert claim.outcome == LATE and time.monotonic() - start < 1
    with claimed(path + "2", SECONDS, rank=MEASURING), claimed(path, 0.2, rank=COMPILING) as claim:
        assert claim.outcome == LATE and claim.waited > 0.1, "a tuning waits for compilations"
    over.set()
    thread.join()
    assert not claims.HELD and not claims.OPEN and not claims.BEATING


def test_a_thread_claims_the_same_twice(path: str) -> None:
    with claimed(path, SECONDS) as first, claimed(path, SECONDS) as second:
        assert (first.outcome, second.outcome) == (OURS, LATE)


def test_threads_wait_for_each_other(path: str) -> None:
    inside, order = threading.Lock(), list[str]()

    def work() -> None:
        with claimed(path, SECONDS, lambda: order or None) as claim:
            if claim.found is None:
                assert inside.acquire(blocking=False)
                time.sleep(0.1)
                order.append("made")
                claim.is_done = True
                inside.release()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order == ["made"] and not os.path.exists(path)


def test_outcomes(path: str) -> None:
    found: list[str] = []

    def wait() -> None:
        with claimed(path, SECONDS, lambda: "entry") as claim:
            found.append(claim.outcome)

    for is_done, outcome in ((True, DONE), (False, UNFINISHED)):
        with claimed(path, SECONDS) as claim:
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.1)
            claim.is_done = is_done
        thread.join()
        assert found.pop() == outcome


def test_what_was_made_before_the_claim_is_there_for_others_too(path: str) -> None:
    with claimed(path, SECONDS, lambda: "entry") as claim:
        assert claim.found == "entry" and claim.is_done


def test_a_file_that_remained_is_no_obstacle(path: str) -> None:
    Path(path).write_bytes(claims.FAILED)
    with claimed(path, 0) as claim:
        assert claim.outcome == OURS and f'"process": {os.getpid()}' in Path(path).read_text()
    assert not os.path.exists(path)


def test_a_claim_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (str(tmp_path / "missing" / "one"), str(tmp_path), str(tmp_path / "link"), None):
        with claimed(path, SECONDS) as claim:
            assert claim.outcome == claims.IMPOSSIBLE and claim.found is None
    assert not (tmp_path / "elsewhere").exists()


# ---- machines with a shared cache


@pytest.fixture
def shared(started: Started, tmp_path: Path) -> Started:
    (tmp_path / "shared").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{tmp_path / 'shared'}", "0123456789abcdef"
    return started


def on_machine(name: str, folder: Path, *kernels: Any) -> Callable[[], None]:
    """Return the work of a process on a machine with its own cache folder: it launches the kernels."""

    def work() -> None:
        knobs.cache.dir = str(folder / name)
        launch(*kernels)
        assert flush_all(SECONDS)

    return work


def check_cluster(started: Started, folder: Path) -> None:
    """Two machines with three processes each."""
    for number in range(6):
        started.start(on_machine(f"machine {number % 2}", folder, plus, times), compile_seconds=0.5)
    processes = list(started.processes)
    assert started.end() == [0] * 6
    assert sorted(started.compiled()) == ["plus", "times"]
    remote = [text for process in processes for text in started.counts(process, "cache_hits") if "remote" in text]
    assert len(remote) == 2, "each kernel is sent once"


def test_machines_compile_each_kernel_once(shared: Started, tmp_path: Path) -> None:
    check_cluster(shared, tmp_path)


def test_machines_with_a_redis_compile_each_kernel_once(shared: Started, tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        knobs.cache.url = server.url
        check_cluster(shared, tmp_path)
        names = server.keys()
        assert names and not [name for name in names if name.endswith(".claim")]


def test_a_machine_that_dies(shared: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_once, "RESERVED_SECONDS", 1.5)
    monkeypatch.setattr(compile_once, "RENEW_SECONDS", 0.3)
    owner = shared.start(on_machine("first", tmp_path, plus), compile_seconds=SECONDS)
    shared.wait_for(shared.compiled)
    other = shared.start(on_machine("second", tmp_path, plus))
    time.sleep(3)
    assert shared.compiled() == ["plus"], "the reservation is renewed"
    os.kill(owner, signal.SIGKILL)
    assert shared.end(other) == [0] and shared.compiled() == ["plus"] * 2
    (labels,) = shared.counts(other, "waits")
    assert 'outcome="ours"' in labels


def test_another_process_of_the_machine_that_has_it_reserved(shared: Started, tmp_path: Path) -> None:
    owner = shared.start(on_machine("first", tmp_path, plus), compile_seconds=SECONDS)
    shared.wait_for(shared.compiled)
    os.kill(owner, signal.SIGKILL)
    shared.end(owner)
    start = time.monotonic()
    assert shared.end(shared.start(on_machine("first", tmp_path, plus))) == [0]
    assert time.monotonic() - start < compile_once.RESERVED_SECONDS / 2, "it does not wait for its own machine"


def test_what_is_made_before_the_reservation_is_not_compiled(
    shared: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.end(shared.start(on_machine("first", tmp_path, plus)))
    fetch, asked = shared_cache.fetch, list[str]()

    def too_early(key: str, name: str) -> Any:
        asked.append(name)
        return None if asked.count(name) == 1 else fetch(key, name)

    monkeypatch.setattr(shared_cache, "fetch", too_early)
    assert shared.end(shared.start(on_machine("second", tmp_path, plus))) == [0] and shared.compiled() == ["plus"]


def test_patience_with_machines_ends(shared: Started, tmp_path: Path) -> None:
    knobs.cache.compile_wait = 2
    owner = shared.start(on_machine("first", tmp_path, plus), compile_seconds=SECONDS)
    shared.wait_for(shared.compiled)
    assert shared.end(shared.start(on_machine("second", tmp_path, plus))) == [0] and shared.compiled() == ["plus"] * 2
    os.kill(owner, signal.SIGKILL)


def test_machines_get_their_own_errors(shared: Started, tmp_path: Path) -> None:
    def fails(machine: str) -> Callable[[], None]:
        def work() -> None:
            with pytest.raises(CompilationError, match="undefined_name"):
                on_machine(machine, tmp_path, wrong)()
            assert flush_all(SECONDS)

        return work

    for machine in ("first", "second"):
        shared.start(fails(machine), compile_seconds=0.3)
    assert shared.end() == [0, 0] and shared.compiled() == ["wrong"] * 2
