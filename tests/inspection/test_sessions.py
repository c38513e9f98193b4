"""Sessions, scopes and what ends up in their files, on the host and by events of an emulated GPU."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tilework
import tilework.inspect.profiler as proton
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.inspect.profiler.hooks import Hook, HookManager
from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.report import Statistics
from tilework.inspect.profiler.stacks import flags
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.launch.native import launch_log
from tilework.runtime.launch.native import machine as native_machine


def launch_metadata(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"scale_{metadata.num_warps}_{args['n']}",
        "flops32": float(args["n"]),
        "bytes": 8 * args["n"],
        "x": 1,
    }


@tilework.jit(launch_metadata=launch_metadata)
def scale(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)


def launch(n: int = 64) -> None:
    scale[(2,)](np.ones(64, "f4"), n, BLOCK=32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    proton.finalize()
    assert launch_log.STATE.listener is None and not HookManager.active_hooks


def nodes(file: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """The metrics of each frame by its path."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}

    def visit(node: dict[str, Any], above: tuple[str, ...]) -> None:
        for child in node["children"]:
            path = (*above, child["frame"]["name"])
            found[path] = child["metrics"]
            visit(child, path)

    visit(json.loads(Path(file).read_text())[0], ())
    return found


def test_kernels_are_filed_under_their_scopes_and_states() -> None:
    launch()
    assert proton.start("step") is not None
    with proton.scope("a", {"m (exc)": 2}):
        launch()
        launch()
        with proton.state("warm"), proton.scope("b"):
            launch()
    launch()
    thread = threading.Thread(target=lambda: (proton.enter_scope("t"), launch(), proton.exit_scope()))
    with proton.scope("main"):
        thread.start()
        thread.join()
    proton.finalize()
    found = nodes("step.hatchet")
    counts = {path: metrics["count"] for path, metrics in found.items() if "count" in metrics}
    one = ("scale",)
    assert counts == {("a", *one): 2, ("a", "b", "warm", *one): 1, one: 1, ("main", "t", *one): 1}
    assert found["a",] == {"m": 2} and all(found[path]["time (ns)"] > 0 for path in counts)
    root, devices = json.loads(Path("step.hatchet").read_text())
    assert root["metrics"] == {"count": 0, "time (ns)": 0} and devices["CPU"]["0"]["num_sms"] > 0
    assert found[one]["device_type"] == "CPU" and found[one]["device_id"] == "0"


def test_launches_in_machine_code_are_counted_and_stay_there() -> None:
    launch()
    launch()
    through_python: list[Any] = []
    watch, RECORDER.watch = RECORDER.watch, lambda *args: through_python.append(args)  # pyright: ignore
    try:
        proton.start("fast")
        for _ in range(3 * launch_log.MOST_LINES // 2):  # more than the room of the log
            launch()
        proton.finalize()
    finally:
        RECORDER.watch = watch
    assert not through_python and nodes("fast.hatchet")["scale",]["count"] == 3 * launch_log.MOST_LINES // 2


def test_hooks_come_and_go_and_launches_are_in_machine_code_again() -> None:
    """Entries watch the lists of hooks: one that is empty again is the same list, and nothing is described anew."""
    launch()
    launch()
    for _ in range(3):
        proton.start("hook", hook="triton")
        launch()
        proton.finalize()
    before = launch_log.COUNTER.__reduce__()
    launch()
    assert launch_log.COUNTER.__reduce__() == before, "no new entry was made"


def test_a_kernel_with_very_many_works_stays_in_machine_code() -> None:
    """With the same numbers only, until so many have been seen; then whatever they are."""
    scale.device_caches.clear()
    vars(scale).pop("_bind_grid", None)
    statistics, seen = Statistics(), []
    watch = RECORDER.watch
    RECORDER.watch = lambda *args: (seen.append(args[4][1]), watch(*args))[1]  # pyright: ignore
    try:
        with statistics.collecting():
            for n in [*range(2, 64), *range(2, 64)]:
                launch(n)
    finally:
        RECORDER.watch = watch
    (found,) = statistics.kernels.values()
    assert found.count == 124 and launch_log.MOST_WAYS <= len(seen) < 64
    assert {work.integers[0][1] for work in found.works} == set(seen)


def test_only_active_sessions_record() -> None:
    first, second = proton.start("first"), proton.start("second")
    assert first is not None and second == first + 1
    launch()
    proton.deactivate(first)
    proton.deactivate(first)
    launch()
    proton.activate()
    launch()
    proton.finalize(first)
    launch()
    proton.finalize()
    assert nodes("first.hatchet")["scale",]["count"] == 2 and nodes("second.hatchet")["scale",]["count"] == 4
    assert not flags.profiling_on and proton.enter_scope("x") is None and proton.exit_scope() is None
    with pytest.raises(RuntimeError, match="Session has not been initialized: 99"):
        proton.activate(99)


def test_the_hook_gives_names_flops_and_bytes() -> None:
    proton.start("hook", hook="triton")
    launch()
    launch()
    proton.deactivate()
    launch(63)
    proton.finalize()
    found = nodes("hook.hatchet")
    assert (
        [*found] == [("scale_4_64",)]
        and found["scale_4_64",]["flops32"] == 128
        and found["scale_4_64",]["bytes"] == 1024
    )
    assert "x" not in found["scale_4_64",] and not knobs.runtime.launch_enter_hook


def test_hooks_follow_their_sessions_and_priorities() -> None:
    seen: list[str] = []

    class Notified(Hook):
        def __init__(self, name: str, priority: int) -> None:
            self.name, self.priority = name, priority

        def init_handle(self, *args: Any) -> None: ...

        def enter(self, metadata: Any) -> None:
            seen.append(f"enter {self.name}")

        def exit(self, metadata: Any) -> None:
            seen.append(f"exit {self.name}")

        def activate(self) -> None:
            seen.append(f"on {self.name}")

        def deactivate(self) -> None:
            seen.append(f"off {self.name}")

    low = Notified("low", 1)
    HookManager.register(low, 0)
    HookManager.register(Notified("high", 5), 1)
    HookManager.register(low, 1)
    launch()
    HookManager.deactivate(1)
    HookManager.unregister()
    assert seen == "on low,on high,enter high,enter low,exit low,exit high,off high,off low".split(",")


def test_a_trace_has_a_line_for_each_stream() -> None:
    proton.start("when", data="trace")
    with proton.scope("a"):
        launch()
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    proton.finalize(output_format="chrome_trace")
    first, second = map(json.loads, Path("when.chrome_trace").read_text().splitlines())
    (event,) = first["traceEvents"]
    assert event["ts"] == 0 and event["dur"] > 0 and event["args"] == {"call_stack": ["ROOT", "a", "scale"]}
    assert first["displayTimeUnit"] == "us" and second["traceEvents"][0]["tid"] != event["tid"]


def test_the_python_context_is_the_call_stack() -> None:
    session = proton.start("stack", context="python")
    proton.start("scopes")
    with proton.scope("a"):
        launch()
        launch()
    assert (proton.context.depth(session) or 0) > 1
    proton.finalize()
    (path,) = [path for path, metrics in nodes("stack.hatchet").items() if "count" in metrics][:1]
    assert path[-1] == "scale" and path[-2].startswith(f"{__file__}:") and path[-2].endswith("@launch")
    assert nodes("scopes.hatchet")["a", "scale"]["count"] == 2


def test_decorators_and_timed_scopes(capsys: pytest.CaptureFixture[str]) -> None:
    @proton.profile(name="-")
    @proton.scope("all")
    def work() -> None:
        with proton.cpu_timed_scope("host"):
            launch()

    work()
    launch()
    proton.finalize()
    (root, _) = json.loads(capsys.readouterr().out)
    (found,) = root["children"]
    assert found["frame"]["name"] == "all" and found["children"][0]["metrics"]["cpu_time (ns)"] > 0
    assert "cpu_time (ns)" not in root["metrics"] and found["children"][0]["children"][0]["metrics"]["count"] == 1
    with pytest.raises(ValueError, match=r"The metric name 'cpu_time' is reserved\."):
        proton.cpu_timed_scope("x", {"cpu_time": 1})


MISTAKES = (
    (lambda: proton.start(backend="zz"), "Unknown profiler: zz"),
    (lambda: proton.start(context="zz"), "Unknown context source: zz"),
    (lambda: proton.start(data="zz"), "Unknown data: zz"),
    (lambda: proton.start(hook="launch"), "Unknown hook: launch"),
    (lambda: proton.start(mode="zz"), "Unknown mode: zz"),
    (lambda: proton.start(mode=proton.mode.PCSampling(7)), "pcsampling:interval=7"),
    (lambda: proton.start(backend="instrumentation", mode="default:granularity=x"), "Unknown granularity: x"),
    (lambda: proton.start(backend="instrumentation", mode="default:z"), "Malformed instrumentation option: 'z'"),
    (lambda: proton.start(backend="instrumentation"), "puts clocks into kernels"),
    (lambda: proton.mode.PCSampling(interval=0), "Interval must be a positive integer."),
    (lambda: (proton.start(), proton.finalize(output_format="zz")), "Unknown output format: zz"),
    (lambda: (proton.start(), proton.enter_scope("a"), proton.exit_scope("zz")), "Scope name mismatch: zz != a"),
    (lambda: (proton.start(), proton.exit_scope()), "Context stack is empty"),
    (
        lambda: (proton.start(), proton.enter_scope("a", metrics=cast(Any, {"m": "x"}))),
        "a metric is a name and a number",
    ),
)


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_named(mistake: Any, words: str) -> None:
    with pytest.raises((ValueError, RuntimeError, TypeError)) as caught:
        mistake()
    assert words in str(caught.value)
    proton.stacks.LOCAL.stack.scopes.clear()  # pyright: ignore[reportAttributeAccessIssue]
    proton.stacks.LOCAL.stack.changed()  # pyright: ignore[reportAttributeAccessIssue]


def test_events_time_kernels_of_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Through Python, then in machine code; the clock of the emulated device moves by a millisecond for each kernel."""
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    native_machine.machine()  # while it is made, launches go through Python
    with knobs.cache.scope(), emulated_cuda():
        knobs.cache.dir = str(tmp_path)
        x = DeviceArray.of(np.ones(64, "f4"))
        on_gpu = tilework.jit(scale.fn)
        proton.start("gpu")
        watched: list[str] = []
        watch = RECORDER.watch
        monkeypatch.setattr(RECORDER, "watch", lambda *args: (watched.append(args[0].name), watch(*args))[1])
        for _ in range(4):
            on_gpu[(2,)](x, 64, BLOCK=32)
            with proton.scope("inner"):
                on_gpu[(2,)](x, 64, BLOCK=32)
        proton.finalize()
    found = nodes("gpu.hatchet")
    assert watched == ["scale"], "the other launches were in machine code"
    for path in (("scale",), ("inner", "scale")):
        assert (
            found[path]["count"] == 4 and found[path]["time (ns)"] == 4_000_000 and found[path]["device_type"] == "CUDA"
        )
