"""A tuning that is interrupted goes on; what one process measures others need not; what cannot win or fit ends
early."""

import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime.test_autotuner import Clock, Recorder, blocks, floats, tuner
from tests.runtime.test_autotuner_results import Timer, grid
from tests.runtime.test_benchmark_timing import FakeDevice
from tests.runtime.tuning_kernels import add_one
from tilework import knobs
from tilework.errors import DoesNotFit
from tilework.runtime import progress as progress_module
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.remote.guard import flush_all
from tilework.runtime.progress import LongStep, Progress
from tilework.runtime.tuning import autotuner, benchmark
from tilework.runtime.tuning.autotuner import Config, autotune
from tilework.runtime.tuning.benchmark import do_bench, is_precise, settles, steps, time_to_beat
from tilework.targets.base import GPUTarget

ROOT = Path(__file__).parent.parent.parent
CONFIGS = blocks(16, 32, 64, 128)


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope(), knobs.autotuning.scope():
        knobs.autotuning.workers = 0
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path / "cache"


class Interrupted(Timer):
    """A benchmarker that raises KeyboardInterrupt, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        if self.count == self.after:
            self.after = -1
            raise KeyboardInterrupt
        return super().__call__(call, quantiles)


def tune(bench: Any, **settings: Any) -> Any:
    """Tune as a new process would."""
    tuned = autotune(CONFIGS, ["n"], do_bench=bench, **settings)(add_one)
    tuned[grid](floats(64), floats(64), 64)
    return tuned


def test_the_next_call_goes_on() -> None:
    bench = Interrupted(after=2)
    tuned = autotune(CONFIGS, ["n"], do_bench=bench)(add_one)
    with pytest.raises(KeyboardInterrupt):
        tuned[grid](floats(64), floats(64), 64)
    assert bench.count == 2 and not tuned.cache
    tuned[grid](floats(64), floats(64), 64)
    assert bench.count == 4 and list(tuned.configs_timings) == CONFIGS and not tuned.unfinished


def test_the_next_process_goes_on(cache_dir: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(Interrupted(after=3), cache_results=True)
    assert len(list(cache_dir.rglob("*.timing.json"))) == 3
    tune(bench := Timer(), cache_results=True)
    assert bench.count == 1


def test_what_another_process_measures_meanwhile_is_not_measured() -> None:
    def bench(call: Any, quantiles: Any) -> list[float]:
        measured.append(1)
        if len(measured) == 1:
            tune(other, cache_results=True)
        return [1.0, 1.0, 1.0]

    measured, other = [], Timer()
    tune(bench, cache_results=True)
    assert other.count == 4 and len(measured) == 1


def test_processes_divide_the_measuring(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that another process is measuring comes last, and its result is reused; a killed process leaves
    nothing."""
    monkeypatch.setattr(autotuner, "MOST_WAIT", 0.05)
    order: list[int] = []
    tuned = autotune(CONFIGS, ["n"], do_bench=lambda call, quantiles: [1.0], cache_results=True)(add_one)
    monkeypatch.setattr(tuned, "_bench", lambda *args, config, **meta: order.append(config.kwargs["BLOCK"]) or [1.0])
    results = tuned.results_of(tuned.tuning_key({"x": floats(64), "y": floats(64), "n": 64}, {}), CONFIGS)
    first, second = (results.lock_path(config) for config in CONFIGS[:2])
    assert first and second
    code = (
        "import fcntl, sys\nf = [open(p, 'w') for p in sys.argv[1:]]\n[fcntl.flock(x, 2) for x in f]\n"
        "print(flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, first, second], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        results.store(CONFIGS[0], [0.5], None)
        tuned[grid](floats(64), floats(64), 64)
        other.kill()
    assert order == [64, 128, 32] and tuned.configs_timings[CONFIGS[0]] == [0.5]
    assert {Path(first), Path(second)} >= set(cache_dir.rglob(".*.json"))


def test_a_fleet_shares_timings(tmp_path: Path) -> None:
    (folder := tmp_path / "shared").mkdir()
    knobs.cache.url = f"file://{folder}"
    with pytest.raises(KeyboardInterrupt):
        tune(Interrupted(after=3), cache_results=True)
    assert flush_all(5)
    knobs.cache.dir = str(tmp_path / "another machine")
    tune(bench := Timer(), cache_results=True)
    assert flush_all(5)
    knobs.cache.dir = str(tmp_path / "a third one")
    tune(last := Timer(), cache_results=True)
    assert (bench.count, last.count) == (1, 0)


def test_saved_results_are_for_every_run() -> None:
    tune(Timer(), cache_results=True)
    tune(bench := Timer())
    assert bench.count == 4, "without cache_results or `save` no timings are loaded"
    with knobs.autotuning.scope():
        knobs.autotuning.save = True
        tune(Timer())
    tune(bench := Timer())
    assert bench.count == 0


def test_parts_of_a_tuning_make_a_whole(cache_dir: Path) -> None:
    counts = []
    for part in ("0/3", "1/3", "2/3", "4/9"):
        with knobs.autotuning.scope():
            knobs.autotuning.part = part
            tune(bench := Timer(), cache_results=True)
            counts.append(bench.count)
    assert counts == [2, 1, 1, 0] and not list(cache_dir.rglob("*.autotune.json"))
    tune(bench := Timer(), cache_results=True)
    assert bench.count == 0


def test_ctrl_c_puts_arguments_back() -> None:
    class Slow(Recorder):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            super().run(*args, **kwargs)
            raise KeyboardInterrupt

    x = floats(3)
    with pytest.raises(KeyboardInterrupt):
        tuner(Slow(), CONFIGS, restore_value=["x"])[(1,)](x, floats(1), 1)
    assert x.tolist() == [0, 0, 0]


def test_a_program_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    """A program is interrupted while workers compile for it; `test_worker_pool.py` tests how they end."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        import numpy as np
        import tilework, tilework.language as tl
        from tilework.runtime.tuning.precompile import Precompilation

        configs = [tilework.Config({"BLOCK": 2**k}) for k in range(3, 9)]

        @tilework.autotune(configs, key=["n"], do_bench=lambda call, quantiles: call() or [1.0])
        @tilework.jit
        def scale(x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)

        def take(self, *kernel):
            print("interrupted", flush=True)
            os.kill(os.getpid(), signal.SIGINT)
            original(self, *kernel)

        Precompilation.costs = lambda self: (1.0, 1e-9)
        original = Precompilation.take
        if len(sys.argv) > 1:
            Precompilation.take = take
        signal.signal(signal.SIGINT, signal.default_int_handler)
        scale[(4,)](np.ones(32, np.float32), 32)
        print("done")
        """)
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment |= {
        "TILEWORK_NATIVE_LAUNCH": "0",
        "TRITON_CACHE_AUTOTUNING": "1",
        "TILEWORK_COMPILE_WORKERS": "2",
    }
    run = lambda *args: subprocess.run(
        [sys.executable, str(script), *args], env=environment, capture_output=True, text=True, timeout=120
    )
    first = run("interrupt")
    assert (
        first.stdout == "interrupted\n" and "KeyboardInterrupt" in first.stderr and first.returncode == -signal.SIGINT
    )
    second = run()
    assert second.stdout == "done\n", second.stderr


# ---- what ends early


def test_a_configuration_that_cannot_win_is_not_measured_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice()
    monkeypatch.setattr(driver, "_active", device)

    def count(times: list[float], best: float) -> int:
        """Return the count of measured calls for calls of the given lengths, in order."""
        calls: list[float] = []

        def call() -> None:
            calls.append(times[len(calls) % len(times)])
            device.now += calls[-1]

        token = time_to_beat.set(best)
        measured = do_bench(call, warmup=10, rep=200, return_mode="all")
        time_to_beat.reset(token)
        return len(measured)

    noisy = [1.0, 1.4, 1.9, 1.0, 2.3, 1.2, 3.0]
    everything = count(noisy, math.inf)
    assert everything > 50 and count(noisy, 1.0) == count(noisy, 0.99) == everything
    assert count(noisy, 0.6) == 5, "half as slow again"
    assert count(noisy, 0.8) == everything // 10, "a tenth shows that it is a fifth slower"
    assert count(noisy, 0.94) == everything // 4, "a quarter shows less"
    assert count([9.0] * 11 + noisy * 40, 0.99) > 5, "one round is slow, the next is not"


def test_a_rested_gpu_is_warmed_up_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 0.1 s after a rest are faster than what follows; the autotuner does not count them."""
    device = FakeDevice()
    monkeypatch.setattr(driver, "_active", device)

    def median(rest: float) -> float:
        """Return the median of calls that begin after a rest; their clocks are higher for 90 ms then."""
        monkeypatch.setattr(benchmark, "ENDED", [time.monotonic() - rest])
        begun = device.now

        def call() -> None:
            device.now += 0.9 if rest and device.now < begun + 90 else 1.0

        return do_bench(call, warmup=5, rep=20, return_mode="median")

    assert median(rest=0) == pytest.approx(1.0)
    assert median(rest=0.5) == pytest.approx(0.9), "a user's own measurement is as short as the user wants"
    token = settles.set(True)
    try:
        assert median(rest=0.5) == pytest.approx(1.0)
        before = device.now
        assert median(rest=0) == pytest.approx(1.0) and device.now - before < 60
        device.target = GPUTarget("cpu", 0, 1)
        assert median(rest=0.5) == pytest.approx(0.9), "a processor has no such clocks"
    finally:
        settles.reset(token)


def test_what_is_known_well_is_not_measured_on() -> None:
    assert is_precise([1.0, 1.001] * 25) and not is_precise([1.0, 1.001] * 24) and not is_precise([1.0, 1.5] * 100)


def test_steps_add_up() -> None:
    assert list(steps(100, 0.5)) == [(10, 1.2), (15, 1.05), (75, math.inf)]
    for total in range(1, 60):
        assert sum(count for count, _ in steps(total, 0.5)) == total
        assert list(steps(total, math.inf)) == [(total, math.inf)]


def test_a_users_benchmarker_is_left_alone() -> None:
    seen: list[float] = []
    bench = lambda call, quantiles: seen.append(time_to_beat.get()) or [float(len(seen))]
    tune(bench)
    assert seen == [math.inf] * 4


def test_what_cannot_fit_is_reported(capsys: Any) -> None:
    knobs.autotuning.print = True
    tuned = tuner(Recorder({16: DoesNotFit(300, 200, "shared memory")}), blocks(16, 32))
    tuned[(1,)](floats(1), floats(1), 1)
    text = capsys.readouterr().out
    assert "1 of 2 configurations pruned: they cannot fit," in text
    assert "failed config: BLOCK: 16" in text and "Required: 300, Hardware limit: 200" in text


def test_when_nothing_fits_into_registers_something_must_run() -> None:
    class Large(Recorder):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            if len(self.launches) < 2:
                self.launches.append((args, kwargs))
                raise DoesNotFit(300, 255, "registers")
            return super().run(*args, **kwargs)

    kernel = Large()
    tuned = autotune(blocks(16, 32), ["n"], do_bench=Clock(kernel, {16: 2.0, 32: 1.0}))(kernel)
    tuned[(1,)](floats(1), floats(1), 1)
    assert tuned.best_config == Config({"BLOCK": 32}) and tuned.configs_timings[tuned.configs[0]] == 2.0


def test_progress(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Progress("tuning", 3, 1) as progress:
        progress.step()
    assert capsys.readouterr().err == ""
    with Progress("tuning", 3, 1, is_listed=True) as progress:
        progress.step()
        progress.step()
    assert capsys.readouterr().err == "tuning: 2/3, 0 s left\ntuning: 3/3\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress_module, "BARS", ())  # without rich and tqdm
    with Progress("tuning", 3, 1, delay=0), Progress("inner", 2, delay=0) as inner:
        inner.step()
    assert capsys.readouterr().err == "\r\x1b[Ktuning: 1/3\r\x1b[K"
    with LongStep("compiling k", 2, delay=0.01) as steps:
        steps.step("ttir")
        steps.step("ptx")
        for _ in range(1000):
            if "ptx" in (text := capsys.readouterr().err):
                break
            time.sleep(0.01)
    assert text.startswith("\r\x1b[Kcompiling k (ptx): 1/2, 0 s")
    monkeypatch.setenv("TILEWORK_PROGRESS", "0")
    with Progress("tuning", 3, 1, delay=0):
        pass
    with Progress("tuning", 3, 1):  # over at once: no message
        pass
    assert capsys.readouterr().err == "\r\x1b[K"


class Shell:
    """IPython's shell in a notebook."""

    kernel = object()


def test_progress_in_notebooks(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []

    class DisplayHandle:
        def display(self, data: dict[str, str], raw: bool, what: str = "display") -> None:
            shown.append((what, data["text/html"]))

        def update(self, data: dict[str, str], raw: bool) -> None:
            self.display(data, raw, "update")

    shell: Any = Shell()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython)["get_ipython"], vars(display)["DisplayHandle"] = lambda: shell, DisplayHandle
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress_module, "find_spec", lambda name: None)  # neither tqdm nor ipywidgets
    monkeypatch.setattr(progress_module, "INTERVAL", 0)
    with Progress("tuning <k>", 3, delay=0) as progress, Progress("inner", 2, delay=0) as inner:
        inner.step()
        progress.step()
    assert [what for what, _ in shown] == ["display", "update", "update"] and shown[-1][1] == ""
    assert shown[0][1] == '<progress value="0" max="3"></progress> tuning &lt;k&gt;: 0/3'
    assert 'value="1" max="3"' in shown[-2][1] and capsys.readouterr().err == ""
    shown.clear()
    monkeypatch.setenv("TILEWORK_PROGRESS", "0")
    with Progress("tuning", 3, delay=0):
        pass
    monkeypatch.delenv("TILEWORK_PROGRESS")
    shell = None  # IPython is imported, and this is no notebook
    with Progress("tuning", 3, delay=0):
        pass
    assert shown == []


def test_notebooks_with_tqdm_and_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "is_notebook", lambda: True)
    installed, made = set[str](), list[str]()
    monkeypatch.setattr(progress_module, "find_spec", lambda name: name in installed or None)
    bars = [
        (packages, lambda progress, name=bar.__name__: made.append(name))
        for packages, bar in progress_module.NOTEBOOK_BARS
    ]
    monkeypatch.setattr(progress_module, "NOTEBOOK_BARS", bars)
    for name in ("tqdm", "ipywidgets"):
        installed.add(name)
        progress_module.made_bar(Progress("tuning", 3))
    assert made == ["DisplayBar", "TqdmBar"]
