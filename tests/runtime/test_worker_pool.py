"""Worker processes: what is sent to them, what comes back, and how they end."""

import ast
import builtins
import copy
import importlib
import linecache
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import is_running, wait_until
from tests.runtime import tuning_kernels
from tests.runtime.launch_kernels import HOPPER, HOST
from tests.runtime.tuning_kernels import add_one, broken, fragile, talkative
from tilework import AsyncCompileMode, FutureKernel, JITFunction, knobs
from tilework.compiler import ASTSource, GPUTarget, compile
from tilework.errors import CompilationError, DoesNotFit
from tilework.process import plugins
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.file_manager import can_write
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.tuning import precompile
from tilework.runtime.tuning.autotuner import Config, autotune, heuristics
from tilework.runtime.tuning.precompile import Precompilation
from tilework.runtime.workers import pool
from tilework.runtime.workers.async_compile import CompilerDied
from tilework.runtime.workers.sent_kernel import NotSendable, Sender, decoded_compilation
from tilework.targets.base import find_backend

ROOT = Path(__file__).parent.parent.parent
SCALE = tl.constexpr(3)
STATE = {"offset": 5}


@pytest.fixture(autouse=True)
def cold(tmp_path: Path) -> Iterator[None]:
    """An empty disk cache, kernels that this process has not compiled, and up to two workers, whatever this machine
    has."""
    kernels = [value for value in vars(tuning_kernels).values() if hasattr(value, "device_caches")]
    for kernel in kernels:
        kernel.device_caches.clear()
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.autotuning.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.autotuning.workers = 2
        yield
    for kernel in kernels:
        kernel.device_caches.clear()


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    pool.end_pool()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tunings use workers for all compilations."""
    monkeypatch.setattr(precompile, "LOAD_SECONDS", 1e-9)
    monkeypatch.setattr(precompile, "CROWDED", 1e9)
    monkeypatch.setattr(Precompilation, "costs", lambda self: (1.0, 1e-9))
    monkeypatch.setattr("concurrent.futures.Future.cancel", lambda self: False)


def x() -> np.ndarray:
    return np.zeros(64, np.float32)


def future_of(kernel: Any, *args: Any, **kwargs: Any) -> FutureKernel:
    with AsyncCompileMode(ignore_errors=True):
        future = kernel.warmup(*args, grid=(1,), **kwargs)
    assert isinstance(future, FutureKernel)
    return future


def answer(kernel: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return a worker's answer to the compilation of a launch."""
    return future_of(kernel, *args, **kwargs).future.result()


def launches(*sizes: int) -> list[Any]:
    return [((x(), x(), 64), {"BLOCK": size}) for size in sizes]


# ---- what is sent


@tilework.jit
def twice(value):
    return value + value


@tilework.jit
def thrice(value):
    return twice(value) + value


@tilework.jit
def store(
    out, BLOCK: tl.constexpr,
    how: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    dtype: tl.constexpr = tl.float32,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    value = (twice(i) * SCALE).to(dtype)
    if how is not None:
        value = how(value)
    tl.store(out + i, value)


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


def compiled_elsewhere(made: ASTSource, target: GPUTarget = HOST, **options: Any) -> Any:
    """Return the kernel after a worker has put it into the cache."""
    key = compiled_here(made, target, **options).hash
    state = pool.compile_in_worker(key, partial(compile, made, target, options)).result()
    assert state["state"] == "compiled", state
    hits: list[bool] = []
    knobs.compilation.listener = lambda cache_hit, **others: hits.append(cache_hit)
    kernel = compile(made, target, options)
    knobs.compilation.listener = None
    assert hits == [True]
    return kernel


def compiled_here(made: ASTSource, target: GPUTarget, **options: Any) -> Any:
    """Compile the kernel in this process, with a cache of its own."""
    with knobs.cache.scope():
        knobs.cache.dir += "_here"
        return compile(made, target, options)


CASES = {
    "a constant and a function": lambda: source(store, BLOCK=16),
    "another constant": lambda: source(store, BLOCK=32),
    "a function and a dtype as constants": lambda: source(store, BLOCK=16, how=thrice, dtype=tl.float16),
    "a captured variable": lambda: source(captured(5)),
    "another value of it": lambda: source(captured(7)),
}


@pytest.mark.parametrize("target", [HOST, HOPPER], ids=str)
def test_workers_produce_the_same_bytes(target: Any) -> None:
    for name, made in CASES.items() if target is HOST else [("a constant", CASES["another constant"])]:
        assert products(compiled_elsewhere(made(), target, num_warps=8)) == products(
            compiled_here(made(), target, num_warps=8)
        ), name


def test_files_change_while_workers_run(tmp_path: Path, monkeypatch: Any) -> None:
    """The text, and what it refers to, are those of this process, whatever files contain now or modules had at
    import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which has seconds, and these files change within one
    text = (
        "import tilework, tilework.language as tl\nimport sent_settings\nLOCAL = tl.constexpr({local})\n\n"
        "@tilework.jit\ndef kernel(out):\n    tl.store(out, LOCAL + sent_settings.OTHER)\n"
    )
    file = tmp_path / "sent_module.py"
    (tmp_path / "sent_settings.py").write_text("import tilework.language as tl\nOTHER = tl.constexpr(100)\n")
    found = []
    for local, other in ((1, 100), (2, 100), (3, 200)):
        file.write_text(text.format(local=local))
        sys.modules.pop("sent_module", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        module = importlib.import_module("sent_module")
        file.write_text("this is not Python any more")
        module.sent_settings.OTHER = tl.constexpr(other)
        out = np.zeros(1, np.float32)
        compiled_elsewhere(source(module.kernel))[(1, 1, 1)](out)
        found.append(int(out[0]))
    assert found == [101, 102, 203]


def test_kernels_whose_text_cannot_be_sent_are_sent_by_name() -> None:
    compiled_elsewhere(source(offset_by_state))
    for kernel in (offset_by_state, tilework.jit(repr=lambda found: "name")(broken.fn), tilework.jit(made_by_exec())):
        with pytest.raises(NotSendable):
            Sender().value(kernel)
    assert answer(tilework.jit(made_by_exec()), x())["state"] == "not sent"


def made_by_exec() -> Any:
    text = "def kernel(out):\n    pass\n"
    linecache.cache["<made>"] = (len(text), None, list[str](text.splitlines(True)), "<made>")
    scope: dict[str, Any] = {}
    exec(builtins.compile(text, "<made>", "exec"), scope)
    return scope["kernel"]


class Doubled(JITFunction):
    """A kernel class that reads its text differently."""

    def parse(self) -> ast.Module:
        return copy.deepcopy(super().parse())


class Replaced(ASTSource):
    """A source that returns another module."""


def store_21(out):
    tl.store(out, 21)


def test_subclasses_are_not_sent() -> None:
    for made in (source(Doubled(captured(3).fn)), Replaced(tilework.jit(store_21), {"out": "*fp32"})):
        assert pool.compile_in_worker("key", partial(compile, made, HOST, {})).result()["state"] == "not sent"


def test_a_backend_that_the_user_changed_is_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = importlib.import_module("tilework.triton.backends").CUDABackend
    backends = (ours, *(type(find_backend(target)) for target in (HOST, HOPPER, GPUTarget("hip", "gfx942", 64))))
    assert all(map(pool.is_unpatched, backends))
    original = ours.__mro__[1].stages
    for other in (lambda self, options: {}, wraps(original)(lambda self, options: {})):
        monkeypatch.setattr(ours.__mro__[1], "stages", other)
        assert not pool.is_unpatched(ours)
    monkeypatch.undo()
    host = type(find_backend(HOST))
    assert pool.request_for("key", source(store, BLOCK=16), HOST, {}, None) is not None
    monkeypatch.setattr(host, "hash", wraps(host.hash)(lambda self: "the same"))
    assert pool.request_for("key", source(store, BLOCK=16), HOST, {}, None) is None
    monkeypatch.setitem(
        plugins.PREFERRED, ("tilework.backends", "cuda"), plugins.Plugin("", "", "mine:Backend", "mine")
    )
    assert not pool.is_unpatched(ours)


def test_a_request_finds_the_kernel_it_was_made_of() -> None:
    for kernel in (store, offset_by_state):
        request = pool.request_for("key", source(kernel), HOST, {"num_warps": 2}, None)
        assert request is not None
        made, target, options = decoded_compilation(request)
        assert made.fn.cache_key == kernel.cache_key and target == HOST and options == {"num_warps": 2}


def test_a_kernel_that_changed_is_refused() -> None:
    text = add_one.src
    try:
        add_one._unsafe_update_src(text.replace("+ GLOBAL", "+ 2"))
        found = answer(add_one, x(), x(), 64, BLOCK=16)
        assert found["state"] == "refused" and "another kernel" in found["detail"]
    finally:
        add_one._unsafe_update_src(text)


def test_without_a_disk_cache_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert can_write(str(tmp_path / "new" / "folder")) and can_write("a/new/folder")
    assert not can_write(str(tmp_path / "file" / "folder"))
    for name in ("always_compile", "override"):
        with knobs.compilation.scope():
            setattr(knobs.compilation, name, True)
            assert not pool.can_share()
    assert pool.can_share()


def test_settings_are_those_of_the_knobs() -> None:
    knobs.compilation.disable_line_info = True
    found = pool.settings(knobs.environment_without(()))
    assert found["TRITON_CACHE_DIR"] == knobs.cache.dir and found["TRITON_DISABLE_LINE_INFO"] == "1"
    assert found["TRITON_INTERPRET"] is None and found["TRITON_DEBUG"] == "0"


def test_workers_load_no_more_than_the_kernel_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers load no other imports of a kernel's module, no configurations, and no condition around an import."""
    heavy = (
        "import os\nassert os.environ.get('TILEWORK_COMPILE_WORKERS') != '0', 'loaded in a worker'\n"
        "SIZES, NEW = [1, 2], True\n"
    )
    (tmp_path / "heavy_module.py").write_text(heavy)
    (tmp_path / "light_kernels.py").write_text(
        "import heavy_module\nimport tilework\nimport tilework.language as tl\n"
        "if heavy_module.NEW:\n    from tilework.language.extra.libdevice import tanh\n\n"
        "@tilework.autotune([tilework.Config({'BLOCK': size}) for size in heavy_module.SIZES], key=[])\n"
        "@tilework.jit\ndef fill(x, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    tl.store(x + i, tanh(tl.load(x + i)))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fill = importlib.import_module("light_kernels").fill.fn
    assert answer(fill, x(), BLOCK=16)["state"] == "compiled"


# ---- what comes back


def test_workers_fill_the_disk_cache() -> None:
    hits: list[bool] = []
    knobs.compilation.listener = lambda cache_hit, **others: hits.append(cache_hit)
    with AsyncCompileMode():
        futures = [add_one.warmup(*args, grid=(1,), **kwargs) for args, kwargs in launches(16, 32, 64)]
    assert hits == [True] * 3 and [future.future.result()["state"] for future in futures] == ["compiled"] * 3
    assert len(pool.shared_pool().workers) <= 2
    assert add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=16) is futures[0].kernel


def test_output_is_printed_here(capsys: Any) -> None:
    assert answer(talkative, x(), BLOCK=16)["state"] == "compiled"
    out = capsys.readouterr().out
    assert out.replace(",", "").count("block is 16") == 1 and "importing" not in out


def test_errors_are_raised_here() -> None:
    with AsyncCompileMode(ignore_errors=True):
        future = broken.warmup(x(), BLOCK=16, grid=(1,))
    assert future.future.result()["state"] == "failed"
    with pytest.raises(CompilationError, match="undefined_name"):
        future.result()
    with pytest.raises(CompilationError, match="undefined_name"), AsyncCompileMode():
        broken.warmup(x(), BLOCK=32, grid=(1,))


@pytest.mark.usefixtures("eager")
def test_errors_are_raised_by_the_launch() -> None:
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
    assert answer(add_one, x(), x(), 64, BLOCK=16)["state"] == "compiled"


def test_what_exceeds_the_device_is_pruned() -> None:
    made = source(store, BLOCK=1024)
    request = pool.request_for(
        "key", made, HOPPER, {"num_warps": 32}, {"max_num_threads_per_block": 64, "max_threads": 64}
    )
    assert request is not None and request["limits"]["max_threads"] == 64
    future = FutureKernel(print, done({"state": "pruned", "needs": [300, 200, "shared memory"]}), lambda: None)
    with pytest.raises(DoesNotFit, match="Required: 300"):
        future.result()


def done(result: Any) -> Any:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    future.set_result(result)
    return future


# ---- tuning


@pytest.mark.usefixtures("eager")
def test_a_crash_takes_only_its_configuration() -> None:
    configs = [Config({"BLOCK": size}) for size in (16, 32, 64)]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: call() or [1.0, 1.0, 1.0])(fragile)
    y = x()
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


@pytest.mark.usefixtures("eager")
def test_heuristics_are_applied_first() -> None:
    ruled = heuristics({"BLOCK": lambda args: args["n"]})(add_one)
    with Precompilation(ruled, [((x(), x(), n), {}) for n in (32, 64)]) as compiling:
        assert compiling.ready(0) is None and compiling.elsewhere == 2
    kernels = next(iter(add_one.device_caches.values()))[0]
    assert len(kernels) == 2


def test_few_and_quick_compilations_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", [])
    monkeypatch.setattr(pool.WorkerPool, "submit", lambda *request: pytest.fail("nothing may be started"))
    with Precompilation(add_one, launches(16, 32, 64, 128)) as compiling:
        assert [compiling.ready(index) for index in range(4)] == [None] * 4
    assert not compiling.left and compiling.elsewhere == 0 and len(compiling.times) == 4


@pytest.mark.parametrize(
    "times, is_loaded, count, limit, workers",
    [
        ([], False, 10, 15, 0),  # nothing is known yet
        ([], False, 40, 15, 5),  # but so many take long
        ([3.0], False, 3, 15, 0),  # that was loading the compiler
        ([1.1, 0.1], False, 10, 15, 0),
        ([1.1, 0.1], False, 20, 15, 1),
        ([0.1], True, 10, 15, 0),
        ([0.5], True, 10, 15, 7),
        ([5.0], True, 10, 15, 9),  # one less than there are: this process compiles, too
        ([5.0], True, 10, 1, 1),
    ],
)
def test_workers_are_started_when_they_pay(
    times: list[float], is_loaded: bool, count: int, limit: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "POOL", [])
    compiling = Precompilation(add_one, launches(*(2**k for k in range(3, 3 + count))))
    assert len(compiling.left) == count
    compiling.most_workers, compiling.times, compiling.is_loaded = limit, times, is_loaded
    assert compiling.worker_count(count) == workers
    compiling.is_crowded = True
    assert compiling.worker_count(count) == 0, "there are no cores for them"


def test_this_process_compiles_what_no_worker_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", [])
    monkeypatch.setattr(
        pool.WorkerPool, "grow", lambda self, size: self.workers.setdefault("a stuck one", pool.Worker())
    )
    monkeypatch.setattr(Precompilation, "costs", lambda self: (1.0, 1e-9))
    with Precompilation(add_one, launches(16, 32, 64)) as compiling:
        assert compiling.ready(0) is None
    assert len(compiling.times) == 3 and compiling.elsewhere == 0 and not compiling.submitted


@pytest.mark.parametrize("knob", ["jit_cache_hook", "jit_post_compile_hook", "add_stages_inspection_hook"])
def test_hooks_keep_compilation_here(knob: str) -> None:
    setattr(knobs.runtime, knob, lambda *args, **kwargs: None)
    assert not Precompilation(add_one, launches(16, 32)).left
    delattr(knobs.runtime, knob)
    assert Precompilation(add_one, launches(16, 32)).left


def test_what_is_not_a_kernel_is_left_alone() -> None:
    assert not Precompilation(SimpleNamespace(run=None), launches(16, 32)).left


def test_launches_that_cannot_work_are_left_to_the_launch() -> None:
    with Precompilation(
        add_one, [((x(),), {"BLOCK": 16}), ((x(), x(), 64), {"BLOCK": 16, "num_warps": 3})]
    ) as compiling:
        assert compiling.ready(0) is None and compiling.ready(1) is None and not compiling.errors


def test_a_tuning_inside_of_a_mode_uses_its_executor() -> None:
    submitted: list[Any] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            submitted.append(args)
            return super().submit(*args, **kwargs)

    configs = [Config({"BLOCK": size}) for size in (16, 32, 64)]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: call() or [1.0])(jit(add_one.fn))
    y = x()
    with Counting(2) as threads, AsyncCompileMode(threads):
        tuned[(1,)](x(), y, 64)
        assert len(submitted) == 3 and y[:16].tolist() == [1.0] * 16


# ---- how workers end


def processes() -> list[int]:
    return [worker.process.pid for worker in pool.shared_pool().workers.values() if worker.process is not None]


def test_a_killed_worker_is_replaced() -> None:
    assert answer(add_one, x(), x(), 64, BLOCK=16)["state"] == "compiled"
    for process in (found := processes()):
        os.kill(process, signal.SIGKILL)
    assert found and answer(add_one, x(), x(), 64, BLOCK=32)["state"] == "compiled"
    wait_until(lambda: not any(map(is_running, found)))


def test_a_stopped_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(add_one, x(), x(), 64, BLOCK=16)["state"] == "compiled"
    limits = iter([0.5])
    monkeypatch.setattr(pool, "time_limit", lambda: next(limits, None))  # none for the new one
    for process in (found := processes()):
        os.kill(process, signal.SIGSTOP)
    assert found and answer(add_one, x(), x(), 64, BLOCK=32)["state"] == "compiled"
    left = [process for process in found if is_running(process)]
    assert len(left) == len(found) - 1
    for process in left:
        os.kill(process, signal.SIGCONT)


@pytest.mark.usefixtures("eager")
def test_a_configuration_without_an_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that hangs: the worker says that it has the kernel, and nothing more."""
    started: list[Any] = []

    def start(self: pool.Worker) -> "subprocess.Popen[bytes]":
        hangs = ["sh", "-c", """echo '{"state": "loaded"}'; exec sleep 1000"""]
        started.append(subprocess.Popen(hangs, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(pool, "POOL", [])
    monkeypatch.setattr(pool.Worker, "start", start)
    knobs.autotuning.worker_timeout = 1
    configs = [Config({"BLOCK": 16}), Config({"BLOCK": 32})]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: call() or [1.0])(jit(add_one.fn))
    with pytest.warns(UserWarning, match=r"the compiler gave no answer on the configuration \(BLOCK: (16|32)"):
        tuned[(1,)](x(), x(), 64)
    assert len(started) == 4 and all(process.returncode == -signal.SIGKILL for process in started)
    for config in configs:
        assert "gave no answer for 1 s (TILEWORK_WORKER_TIMEOUT)" in str(tuned.failures[config])
    pool.end_pool()


def test_idle_workers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", [])
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    assert answer(add_one, x(), x(), 64, BLOCK=16)["state"] == "compiled"
    wait_until(lambda: not pool.shared_pool().workers)
    assert answer(add_one, x(), x(), 64, BLOCK=32)["state"] == "compiled", "a new one is started"
    pool.end_pool()


def test_without_processes_everything_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: pool.Worker) -> Any:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(pool, "POOL", [])
    monkeypatch.setattr(pool.Worker, "start", refuse)
    future = future_of(add_one, x(), x(), 64, BLOCK=16)
    assert future.future.result()["state"] == "refused" and future.kernel is not None
    knobs.autotuning.workers = 0
    assert answer(add_one, x(), x(), 64, BLOCK=32)["state"] == "not sent"
    pool.end_pool()


def test_a_pool_is_closed_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", [own := pool.WorkerPool()])
    requests = [pool.request_for("key", source(store, BLOCK=size), HOST, {}, None) for size in (16, 32, 64)]
    futures = [own.submit(request, 1) for request in requests if request is not None]
    pool.end_pool()
    assert not own.workers and not any(future.done() for future in futures) and own.jobs.empty()
