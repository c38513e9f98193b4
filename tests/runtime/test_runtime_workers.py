"""Candidates compiled in worker processes: what is sent, what comes back, who survives."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tuning_kernels
from tuning_kernels import add_one, broken, fragile, talkative

from tilework import knobs
from tilework.errors import CompilationError
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.jit import jit
from tilework.runtime.tuning.autotuner import Config, autotune, heuristics
from tilework.runtime.workers import compile_workers
from tilework.runtime.workers.compile_requests import find_kernel, request_for, settings
from tilework.runtime.workers.compile_workers import CompilerDied, compile_candidates, the_pool
from tilework.runtime.workers.module_slice import slice_for
from tilework.targets.base import GPUTarget

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def fresh_caches(tmp_path: Path) -> Iterator[None]:
    """An empty disk cache, and kernels that this process has not compiled."""
    kernels = [value for value in vars(tuning_kernels).values() if hasattr(value, "device_caches")]
    for kernel in kernels:
        kernel.device_caches.clear()
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.autotuning.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in kernels:
        kernel.device_caches.clear()


@pytest.fixture(autouse=True)
def two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_workers, "available_cores", lambda: 2)


def x() -> np.ndarray:
    return np.zeros(64, np.float32)


def launches(*sizes: int) -> list[Any]:
    return [((x(), x(), 64), {"BLOCK": size}) for size in sizes]


def test_workers_fill_the_disk_cache() -> None:
    request = request_for(add_one, *launches(16)[0])
    assert request is not None
    assert compile_candidates(add_one, launches(16, 32, 64)) == {}
    hits = []
    knobs.compilation.listener = lambda cache_hit, **others: hits.append(cache_hit)
    kernel = add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=16)
    add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=64)
    assert hits == [True, True]
    assert kernel.hash == request.entry_key


def test_what_is_cached_is_not_sent() -> None:
    assert request_for(add_one, *launches(16)[0]) is not None
    add_one.warmup(x(), x(), 64, grid=(1,), BLOCK=16)
    assert request_for(add_one, *launches(16)[0]) is None  # in memory
    add_one.device_caches.clear()
    assert request_for(add_one, *launches(16)[0]) is None  # on disk


def test_workers_are_used_again() -> None:
    compile_candidates(add_one, launches(16, 32))
    before = {worker.process.pid for worker in the_pool().idle}
    compile_candidates(add_one, launches(64, 128))
    assert before and before <= {worker.process.pid for worker in the_pool().idle}


def test_a_crash_takes_only_its_candidate() -> None:
    configs = [Config({"BLOCK": size}) for size in (16, 32, 64)]
    tuned = autotune(configs, ["n"], do_bench=lambda call, quantiles: call() or [1.0, 1.0, 1.0])(fragile)
    y = x()
    with pytest.warns(
        UserWarning, match=r"fragile: the compiler crashed on the configuration \(BLOCK: 32, num_warps: 4"
    ):
        tuned[(1,)](y, 64)
    assert tuned.best_config == configs[0] and y[:16].tolist() == list(range(16))
    failure = tuned.failures[configs[1]]
    assert isinstance(failure, CompilerDied) and str(failure).endswith(f"was killed by signal {signal.SIGABRT.value}")
    with pytest.raises(CompilerDied), pytest.warns(UserWarning, match="BLOCK: 32"):
        fragile.device_caches.clear()
        tuned.warmup(x(), 63, grid=(1,))


def test_a_killed_worker_is_replaced() -> None:
    compile_candidates(add_one, launches(16, 32))
    for worker in the_pool().idle:
        worker.process.kill()
    assert compile_candidates(add_one, launches(64)) == {}
    assert request_for(add_one, *launches(64)[0]) is None


def test_what_kernels_print_is_printed_here(capsys: Any) -> None:
    compile_candidates(talkative, [((x(),), {"BLOCK": 16})])
    out = capsys.readouterr().out
    assert "block is 16" in out.replace(",", "") and "importing" not in out


def test_progress_is_told_when_asked_for(capsys: Any) -> None:
    compile_candidates(add_one, launches(16))
    assert capsys.readouterr().err == ""
    knobs.autotuning.print = True
    compile_candidates(add_one, launches(32, 64))
    assert capsys.readouterr().err.startswith("compiled 2 of 2 configurations of add_one in ")


def test_errors_are_raised_by_the_launch(capsys: Any) -> None:
    knobs.autotuning.print = True
    assert compile_candidates(broken, [((x(),), {"BLOCK": 16})]) == {}
    assert "compiled 0 of 1 configurations of broken" in (text := capsys.readouterr().err) and "failed: " in text
    with pytest.raises(CompilationError, match="undefined_name"):
        autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], [])(broken)[(1,)](x())


def test_other_targets_need_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        utils = SimpleNamespace(get_device_properties=lambda device: {"multiprocessor_count": 132})

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 3

    monkeypatch.setattr(driver, "_active", Elsewhere())
    assert compile_candidates(add_one, launches(16)) == {}
    assert request_for(add_one, *launches(16)[0]) is None


def test_heuristics_are_applied_first() -> None:
    ruled = heuristics({"BLOCK": lambda args: args["n"]})(add_one)
    assert compile_candidates(ruled, [((x(), x(), 64), {})]) == {}
    assert request_for(add_one, *launches(64)[0]) is None


def test_kernels_without_a_place_to_import_them_from_are_not_sent() -> None:
    @jit
    def local(y, BLOCK):
        pass

    assert request_for(local, (x(), 16), {}) is None
    assert compile_candidates(SimpleNamespace(run=None), launches(16)) == {}


def test_launches_that_cannot_work_are_not_sent() -> None:
    assert request_for(add_one, (x(),), {"BLOCK": 16}) is None
    assert request_for(add_one, (x(), x(), 64), {"BLOCK": 16, "num_warps": 3}) is None


def test_a_kernel_that_changed_is_refused() -> None:
    source = add_one.src
    try:
        add_one._unsafe_update_src(source.replace("+ GLOBAL", "+ 2"))
        request = request_for(add_one, *launches(16)[0])
        assert request is not None
        outcome = the_pool().compile(request)
        assert outcome.state == "refused" and "another kernel" in outcome.detail
    finally:
        add_one._unsafe_update_src(source)


@pytest.mark.parametrize(
    "group, knob",
    [("runtime", "jit_cache_hook"), ("runtime", "add_stages_inspection_hook"), ("compilation", "always_compile")],
)
def test_hooks_keep_compilation_here(group: str, knob: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setattr(getattr(knobs, group), knob, lambda *args, **kwargs: None)
    monkeypatch.setattr(compile_workers, "the_pool", lambda: pytest.fail("nothing may be sent"))
    assert compile_candidates(add_one, launches(16)) == {}
    delattr(getattr(knobs, group), knob)


def test_without_a_disk_cache_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert compile_workers.can_write(str(tmp_path / "new" / "folder"))
    assert not compile_workers.can_write(str(tmp_path / "file" / "folder"))


def test_workers_have_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_workers, "is_worker", True)
    assert compile_workers.worker_limit() == 0


def test_settings_are_those_of_the_knobs() -> None:
    knobs.compilation.disable_line_info = True
    found = settings()
    assert found["TRITON_CACHE_DIR"] == knobs.cache.dir and found["TRITON_DISABLE_LINE_INFO"] == "1"
    assert found["TRITON_INTERPRET"] is None and found["TRITON_DEBUG"] == "0"


def test_a_request_finds_the_kernel_it_was_made_of() -> None:
    request = request_for(add_one, *launches(16)[0])
    assert request is not None and find_kernel(request) is add_one


# ---- scripts

SCRIPT = """
import sys
import numpy as np
import tilework.language as tl
from tilework.runtime.tuning.autotuner import Config, autotune
from tilework.runtime.launch.jit import jit

print("the script runs")
SCALE = tl.constexpr(3)

@autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], key=["n"], do_bench=lambda call, quantiles: call() or [1.0])
@jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * SCALE, mask=i < n)

x = np.ones(32, np.float32)
scale[lambda meta: (2,)](x, 32)
from tilework.runtime.workers.compile_workers import the_pool
print("workers", *(worker.process.pid for worker in the_pool().idle), flush=True)
"""


def script(tmp_path: Path, text: str) -> tuple[list[str], dict[str, str]]:
    path = tmp_path / "script.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "script_cache")}
    return [sys.executable, str(path)], environment | {"TRITON_PRINT_AUTOTUNING": "1"}


def test_a_script_is_not_run_again_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command, environment = script(tmp_path, SCRIPT)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script runs") == 1 and "the script runs" not in done.stderr
    assert "compiled 2 of 2 configurations of scale" in done.stderr
    pids = workers_of(done.stdout)
    assert pids and all_gone(pids, within=5)


def test_a_script_that_says_triton(tmp_path: Path) -> None:
    text = SCRIPT.replace("import tilework.language as tl", "import triton\nimport triton.language as tl")
    (command, path), environment = script(
        tmp_path, text.replace("@autotune", "@triton.autotune").replace("@jit", "@triton.jit")
    )
    command = [command, "-m", "tilework.as_triton", path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "compiled 2 of 2 configurations of scale" in done.stderr


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    command, environment = script(tmp_path, SCRIPT + "import time\ntime.sleep(100)\n")
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    pids = next(workers_of(line) for line in process.stdout if line.startswith("workers"))
    process.kill()
    process.wait()
    process.stdout.close()
    assert pids and all_gone(pids, within=10)


def workers_of(text: str) -> list[int]:
    return [int(word) for line in text.splitlines() if line.startswith("workers") for word in line.split()[1:]]


def all_gone(pids: list[int], within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# ---- slices


def kept(text: str, wanted: str) -> list[str]:
    return ast.unparse(slice_for(ast.parse(textwrap.dedent(text)), wanted)).splitlines()


def test_a_slice_has_what_the_kernel_needs_and_no_more() -> None:
    text = """
    from __future__ import annotations
    import lib
    import other
    A = lib.make(B := 2)
    x = lib.expensive()
    def helper(v): return v + A
    @lib.jit
    def kernel(p, x: lib.constexpr, n=DEFAULT):
        y = helper(x)
        for i in range(y):
            z = i
        return z
    DEFAULT = 3
    other.run(kernel, x)
    if __name__ == "__main__":
        kernel = None
    """
    assert kept(text, "kernel") == [
        "from __future__ import annotations", "import lib", "A = lib.make((B := 2))", "", "def helper(v):",
        "    return v + A",
        "", "@lib.jit", "def kernel(p, x: lib.constexpr, n=DEFAULT):", "    y = helper(x)", "    for i in range(y):",
        "        z = i", "    return z", "DEFAULT = 3",
    ]  # fmt: skip


def test_names_bound_in_branches_and_globals_are_found() -> None:
    text = """
    try:
        import fast as impl
    except ImportError:
        impl = None
    COUNT = 0
    UNUSED = 1
    def kernel():
        global COUNT
        COUNT = impl
        return (lambda UNUSED: UNUSED)(0)
    """
    assert "UNUSED = 1" not in kept(text, "kernel")
    assert {"try:", "COUNT = 0"} <= set(kept(text, "kernel"))
