"""Sessions, scopes and what ends up in their files, on the host and by events of an emulated GPU."""

import io
import json
import math
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilework
import tilework.inspect.profiler as proton
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.inspect.profiler.hooks import Hook, HookManager, LaunchHook
from tilework.inspect.profiler.launches import metric_value
from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.report import Statistics
from tilework.inspect.profiler.sessions import DATA, SESSIONS, TreeData, message_pack
from tilework.inspect.profiler.stacks import flags
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import GPUS, DeviceArray
from tilework.runtime.devices.gpu.own_interface import CUDAGraph
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


def test_a_session_may_be_finalized_twice() -> None:
    session = proton.start("first")
    proton.finalize(session)
    proton.finalize(session)
    proton.finalize(session, "a format that nothing is written in")
    other = proton.start("other")
    with pytest.raises(RuntimeError, match=f"Session has not been initialized: {session}"):
        proton.finalize(session)
    proton.finalize(other)


def test_profiling_can_be_disabled_between_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proton.start("first") is not None
    proton.finalize()
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")
    assert proton.start("second") is None
    launch()
    proton.finalize()
    assert Path("first.hatchet").exists() and not Path("second.hatchet").exists()


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
    assert found["scale_4_64",]["x"] == 2 and not knobs.runtime.launch_enter_hook
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        proton.start("old", hook="triton")
        launch()
        proton.finalize()
    assert "x" not in nodes("old.hatchet")["scale_4_64",] and "bytes" in nodes("old.hatchet")["scale_4_64",]


@pytest.mark.parametrize(
    ("patterns", "name"),
    [
        ({"include": "sc"}, "scale_4_64"),
        ({"include": "^x"}, "scale"),
        ({"exclude": "le$"}, "scale"),
        ({"include": "sc", "exclude": "a"}, "scale"),
        ({}, "scale_4_64"),
    ],
)
def test_the_hook_of_some_kernels(patterns: dict[str, str], name: str) -> None:
    """Others are in the profile under their own name."""
    LaunchHook().configure(**patterns)
    try:
        proton.start("some", hook="triton")
        launch()
        proton.finalize()
    finally:
        LaunchHook().configure()
    assert [*nodes("some.hatchet")] == [(name,)]


def test_a_hook_of_ones_own() -> None:
    class Names(Hook):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def init_handle(self, *args: Any) -> None: ...

        def enter(self, metadata: Any) -> None:
            self.seen.append(metadata.get()["name"])

        def exit(self, metadata: Any) -> None: ...

        def activate(self) -> None: ...

        def deactivate(self) -> None: ...

    hook = Names()
    session = proton.start("own", hook=hook)
    launch()
    proton.deactivate(session, flushing=True)
    launch()
    proton.finalize()
    assert hook.seen == ["scale_4_64"] and nodes("own.hatchet")["scale",]["count"] == 1


VECTOR = np.array([1.5, 2])
METRICS: list[tuple[Any, Any]] = [  # a value, and what two of it are
    (3, 6), (1.5, 3.0), (True, 2), (np.float32(0.5), 1.0), (np.array(4), 8), (np.array([[4]]), 8), ([4], [8]),
    ([1, 2], [2, 4]), ((1, 2.5), [2.0, 5.0]), (VECTOR, [3.0, 4.0]), ([], []), (range(3), [0, 2, 4]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sum"), METRICS, ids=[repr(value) for value, _ in METRICS])
def test_kinds_of_metrics(value: Any, sum: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Of scopes and of launches; the viewer shows vectors and sums numbers."""
    proton.start("kinds")
    for _ in range(2):
        with proton.scope("outer"), proton.scope("a", {"m": value, "name (pty)": value}):
            pass
    proton.finalize()
    found = nodes("kinds.hatchet")["outer", "a"]
    assert found["m"] == sum and type(found["m"]) is type(sum)
    proton.specs.main(["-m", "m", "kinds.hatchet"])
    assert "a" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["text", None, [[1]], np.ones((2, 2)), ["a"], {"a": 1}, b"ab"], ids=repr)
def test_values_that_are_no_metrics(value: Any) -> None:
    proton.start("wrong")
    with pytest.raises(TypeError, match="a metric is a name and a number, or a sequence of numbers, not 'm'"):
        proton.scope("a", {"m": value}).__enter__()
    proton.exit_scope()
    with proton.scope("b", {"m": [1, 2]}):
        pass
    with pytest.raises(RuntimeError, match="Metric value type mismatch for m"), proton.scope("b", {"m": [1, 2, 3]}):
        pass
    proton.exit_scope()


@given(st.lists(st.integers(0, 3), max_size=4))
@example([1, 1, 5, 1])
def test_arrays_of_more_dimensions_are_not_read(shape: list[int]) -> None:
    """Leading dimensions of size 1 do not count; the others are known by the shape, without a conversion."""

    class Array:
        def __init__(self) -> None:
            self.shape, self.was_read = tuple(shape), False

        def tolist(self) -> Any:
            self.was_read = True
            return np.ones(self.shape).tolist()

    array = Array()
    rest = shape[next((i for i, size in enumerate(shape) if size != 1), len(shape)) :]
    expected = None if len(rest) > 1 else [1.0] * rest[0] if rest else 1.0
    assert metric_value(array) == expected and array.was_read == (len(rest) <= 1)


class DeviceTensor:
    """A tensor on a GPU, as far as metrics need one; it counts how often one is read."""

    is_cuda, is_cpu, reads = True, False, 0

    def __init__(self, *values: float) -> None:
        self.values: Sequence[float] = [*values]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.values),)

    def clone(self) -> "DeviceTensor":
        return DeviceTensor(*self.values)

    def tolist(self) -> list[float]:
        DeviceTensor.reads += 1
        return [*self.values]


def with_metrics(metrics: dict[str, Any]) -> Any:
    """`scale` with these metrics, which the test changes between launches."""
    return tilework.jit(launch_metadata=lambda grid, metadata, args: {"name": "k", **metrics})(scale.fn)


@pytest.mark.parametrize("read", [lambda id: proton.data.get(id), lambda id: proton.deactivate(id, flushing=True)])
def test_tensors_on_a_gpu_are_read_when_the_profile_is(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the value of the moment of its launch."""
    monkeypatch.setattr(DeviceTensor, "reads", 0)
    tokens = DeviceTensor(1)
    kernel = with_metrics({"tokens": tokens, "pair": [tokens, DeviceTensor(2.5)], "n": 1})
    id = proton.start("device", hook="triton")
    assert id is not None
    for count in (1, 10, 100):
        tokens.values = [count]
        kernel[(2,)](np.ones(64, "f4"), 64, BLOCK=32)
    assert DeviceTensor.reads == 0
    proton.data.advance_phase(id)
    kernel[(2,)](np.ones(64, "f4"), 64, BLOCK=32)
    assert DeviceTensor.reads == 9
    read(id)
    assert DeviceTensor.reads == 12
    proton.finalize()
    for phase, total, count in ((0, 111, 3), (1, 100, 1)):
        found = nodes(f"device.part_{phase}.hatchet")["k",]
        assert found["tokens"] == total and found["pair"] == [total, 2.5 * count] and found["n"] == count


def test_tensors_on_a_gpu_are_left_out_while_a_graph_is_captured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)
    monkeypatch.setattr(DeviceTensor, "reads", 0)
    kernel = with_metrics({"tokens": DeviceTensor(3)})
    with knobs.cache.scope(), emulated_cuda():
        knobs.cache.dir = str(tmp_path)
        x = DeviceArray.of(np.ones(64, "f4"))
        proton.start("graph", hook="triton")
        kernel[(2,)](x, 64, BLOCK=32)
        graph = CUDAGraph(GPUS)
        with GPUS.graph(graph):
            copies: list[Any] = []
            monkeypatch.setattr(DeviceTensor, "clone", lambda tensor: copies.append(tensor))
            kernel[(2,)](x, 64, BLOCK=32)
        assert not copies and DeviceTensor.reads == 0
        proton.finalize()
    assert nodes("graph.hatchet")["k",]["tokens"] == 3 and DeviceTensor.reads == 1


def test_metrics_of_launches_that_do_not_add_up() -> None:
    """Integers and floats do; other values are left out with one warning: the launch is not the place for an error."""
    metrics: dict[str, Any] = {}
    kernel = with_metrics(metrics)
    proton.start("mixed", hook="triton")
    with pytest.warns(RuntimeWarning) as caught:
        for n, v, w in ((1, [1, 2], [1, 2]), (2.5, [1, 2, 3], [0.5, 1]), (3, [1], [1, 1]), (4, 5, [0, 0])):
            metrics.update({"n": n, "v": v, "w": w, "p (pty)": n})
            kernel[(2,)](np.ones(64, "f4"), 64, BLOCK=32)
    proton.finalize()
    assert [str(warning.message).partition(":")[0] for warning in caught] == ["Metric value type mismatch for v"]
    found = nodes("mixed.hatchet")["k",]
    assert {name: found[name] for name in "nvwp"} == {"n": 10.5, "v": [1, 2], "w": [2.5, 4], "p": 4}
    assert found["count"] == 4


def test_phases() -> None:
    """Launches belong to the phase in which they are made, on the way through the log too."""
    session = proton.start("phases")
    launch()
    for count in (1, 2, 3):
        for _ in range(count):
            launch()
        assert proton.data.advance_phase(session) == count
    with proton.metadata_state():
        launch()
    counts = [proton.data.get(session, phase)[0]["children"][0]["metrics"]["count"] for phase in range(3)]
    assert (
        counts == [2, 2, 3]
        and [proton.data.is_phase_complete(session, p) for p in range(5)] == [True] * 3 + [False] * 2
    )
    (above,) = proton.data.get(session, 3)[0]["children"]
    assert above["frame"]["name"] == "__proton_launch_metadata" and above["children"][0]["metrics"]["count"] == 1
    proton.data.clear(session, 1)
    for phase in (1, 4):
        with pytest.raises(RuntimeError, match=rf"\[PROTON\] Phase {phase} has no data\."):
            proton.data.get(session, phase)
    proton.data.clear(session, 3)
    assert proton.data.get(session, 3)[0]["children"] == []
    launch()
    proton.finalize()
    found = {path.name: nodes(path.name)["scale",]["count"] for path in Path().glob("*.hatchet")}
    assert found == {"phases.part_0.hatchet": 2, "phases.part_2.hatchet": 3, "phases.part_3.hatchet": 1}


def test_phases_up_to_one_are_cleared() -> None:
    session = proton.start("upto")
    for _ in range(3):
        proton.data.advance_phase(session)
    proton.data.clear(session, 2, clear_up_to_phase=True)
    proton.finalize()
    assert [path.name for path in Path().iterdir()] == ["upto.part_3.hatchet"]


@pytest.mark.parametrize("change", [lambda id: proton.data.advance_phase(id), lambda id: proton.data.clear(id)])
@pytest.mark.parametrize("mode", ["", "periodic_flushing"])
def test_launches_while_the_phase_changes(change: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of a session is there at every moment: another thread launches while it is replaced, and while the file of
    the phase that is over is written."""
    id = proton.start("race", mode=mode or None)
    assert id is not None
    session = SESSIONS.get(id)

    class LaunchesMeanwhile(TreeData):
        def __init__(self) -> None:
            launch_meanwhile()
            super().__init__()

    class Phases(dict[int, Any]):
        def __setitem__(self, phase: int, data: Any) -> None:
            super().__setitem__(phase, data)
            launch_meanwhile()

        def __delitem__(self, phase: int) -> None:
            super().__delitem__(phase)
            launch_meanwhile()

    def launch_meanwhile() -> None:
        session.add_metrics(("a",), {"m": 1})
        seen.append(session.phase)

    seen: list[int] = []
    monkeypatch.setitem(DATA, "tree", LaunchesMeanwhile)
    session.phases = Phases(session.phases)
    change(id)
    assert len(seen) >= 2


def test_sessions_whose_data_is_not_there() -> None:
    data = proton.data
    calls = (data.get, data.get_msgpack, data.advance_phase, data.is_phase_complete, data.clear)
    assert [call(None) for call in calls] == [None, None, None, False, None]
    for call in calls:
        with pytest.raises(RuntimeError, match="Session has not been initialized: 123456"):
            call(123456)
    trace = proton.start("trace", data="trace")
    for call in (data.get, data.get_msgpack):
        with pytest.raises(RuntimeError, match=r"Only TreeData is supported for getData\(\) for now"):
            call(trace)


@pytest.mark.parametrize("mode", ["periodic_flushing", "periodic_flushing:format=hatchet_msgpack"])
def test_each_phase_is_written_when_it_is_over(mode: str) -> None:
    format = mode.partition("=")[2] or "hatchet"
    session = proton.start("often", mode=mode)
    for phase in range(3):
        launch()
        assert not Path(f"often.part_{phase}.{format}").exists()
        proton.data.advance_phase(session)
        assert Path(f"often.part_{phase}.{format}").exists()
        with pytest.raises(RuntimeError, match="has no data"):
            proton.data.get(session, phase)
    proton.finalize()
    assert sorted(path.name for path in Path().iterdir()) == [f"often.part_{phase}.{format}" for phase in range(4)]


def test_traces_of_phases() -> None:
    session = proton.start("often", data="trace", mode="periodic_flushing:format=chrome_trace")
    launch()
    proton.data.advance_phase(session)
    proton.finalize()
    assert json.loads(Path("often.part_0.chrome_trace").read_text())["traceEvents"][0]["name"] == "scale"


JSON = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=4), inner, max_size=20),
)


def unpacked(data: bytes) -> tuple[Any, bytes]:
    """A value of MessagePack and what is behind it, by the tables of its specification."""
    stream = io.BytesIO(data)
    return unpacked_value(stream), stream.read()


def unpacked_value(stream: io.BytesIO) -> Any:
    """The next value of a stream."""
    tag = stream.read(1)[0]
    sizes = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag]
    if tag in (0xCB, 0xD3):
        return struct.unpack(">d" if tag == 0xCB else ">q", stream.read(8))[0]
    if tag < 0x80 or tag >= 0xE0:
        return tag if tag < 0x80 else tag - 256
    if tag in sizes:
        count = int.from_bytes(stream.read(sizes[tag]), "big")
        if tag <= 0xCF:
            return count
        kind = "text" if tag <= 0xDB else "list" if tag <= 0xDD else "map"
    else:
        kind = "map" if tag < 0x90 else "list" if tag < 0xA0 else "text"
        count = tag & (31 if kind == "text" else 15)
    if kind == "text":
        return stream.read(count).decode()
    items = [unpacked_value(stream) for _ in range(count * (2 if kind == "map" else 1))]
    return dict(zip(items[::2], items[1::2], strict=True)) if kind == "map" else items


@given(JSON)
@example({"a" * 40: [*range(70000)], "b": "x" * 70000, "c": {str(i): i for i in range(70000)}})
@settings(deadline=None)
def test_message_pack(value: Any) -> None:
    found, rest = unpacked(message_pack(value))
    assert found == value and not rest and json.dumps(found) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2**64 - 1, 2**64 - 1), (2**64, 2.0**64), (10**30, 1e30), (-(2**63), -(2**63)), (-(2**63) - 1, -(2.0**63)),
        (10**400, math.inf), (-(10**400), -math.inf),
    ],
)  # fmt: skip
def test_integers_that_message_pack_has_not_are_floats(value: int, stored: float) -> None:
    found, rest = unpacked(message_pack([1, {"a": value}, "end"]))
    assert found == [1, {"a": stored}, "end"] and not rest and type(found[1]["a"]) is type(stored)


def test_files_of_message_pack() -> None:
    session = proton.start("packed")
    launch()
    data, packed = proton.data.get(session), proton.data.get_msgpack(session)
    assert packed is not None and unpacked(packed) == (data, b"")
    assert packed[0] == 0x92  # the root and the devices
    proton.finalize(output_format="hatchet_msgpack")
    assert unpacked(Path("packed.hatchet_msgpack").read_bytes()) == (data, b"")


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
    (lambda: proton.start(hook="launch"), "Unsupported hook: 'launch'"),
    (lambda: proton.start(hook=cast(Any, 3)), "Unsupported hook: 3"),
    (lambda: proton.start(mode="zz"), "Unknown mode: zz"),
    (lambda: proton.start(mode="periodic_flushing:format=zz"), "Unknown output format: zz; there are chrome_trace, h"),
    (lambda: proton.start(mode="periodic_flushing:format=chrome_trace"), "Unknown output format: chrome_trace"),
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
