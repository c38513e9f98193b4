"""`tilework profile`: what it prints and writes, whatever the program does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.inspection.profiled_kernel import double
from tests.runtime.forked_script import run_forked
from tilework.inspect.profiler import disturbance
from tilework.inspect.profiler.disturbance import Disturbance, Moment
from tilework.inspect.profiler.estimate import estimate
from tilework.inspect.profiler.launches import work_of
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.page import roofline_caption
from tilework.inspect.profiler.report import CompileEvent, Report, Row, advice, limit_lines, text_of
from tilework.ir.parser import parse_module
from tilework.tools.cli import main
from tilework.tools.program import Program

PROGRAM = """
import sys, threading
import numpy as np
import tilework.profiler as proton
from tests.inspection.profiled_kernel import double

x = np.ones(256, "f4")
with proton.scope("part"):
    for n in (256, 256, 256, 128):
        double[(4,)](x, n, BLOCK=64)
thread = threading.Thread(target=lambda: double[(4,)](x, 256, BLOCK=64))
thread.start()
print("printed by the program", sys.argv[1:])
if sys.argv[1:] == ["exit"]:
    sys.exit(7)
if sys.argv[1:] == ["raise"]:
    raise KeyError("a mistake")
if sys.argv[1:] == ["session"]:
    proton.start("own")
    double[(4,)](x, 256, BLOCK=64)
    proton.finalize()
    double[(4,)](x, 256, BLOCK=64)
"""
KNOWN = {"copy": 1e9, "fp32": 1e10}  # nothing is measured


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    double.warmup(np.zeros(256, "f4"), 256, BLOCK=64, grid=(1,))
    double.device_caches.clear()


def profile(folder: Path, *arguments: str, text: str = PROGRAM) -> tuple[int, str, str]:
    """Run the command on a program, in a copy of this process that does not measure the machine."""
    (folder / "program.py").write_text(text)
    (folder / "command.py").write_text(
        "from tilework.inspect.profiler.limits import Limits\n"
        f"Limits.load = classmethod(lambda cls: cls('cpu, test', {KNOWN!r}, None))\n"
        "Limits.get = lambda self, name, measure: self.found.get(name)\n"
        "from tilework.tools.cli import main\n"
        f"import sys, os; code = main(['profile', *{list(arguments)!r}]); sys.stdout.flush(); os._exit(code)\n"
    )
    return run_forked(folder / "command.py", {})


def test_a_profile_is_printed_and_written(tmp_path: Path) -> None:
    files = ["--trace", "t.json", "--output", "o.hatchet", "--html", "p.html"]
    code, printed, errors = profile(tmp_path, *files, "program.py", "x")
    assert code == 0, errors
    assert "printed by the program ['x']" in printed and "program.py x: " in printed and "5 launches" in printed
    (row,) = [line for line in printed.splitlines() if line.endswith("└─ double") and line.split()[2] == "4"]
    assert "~" in row and (" % mem" in row or "%*" in row) and " hit" in row
    assert "look first:" in printed and "copies 1 GB/s" in printed
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(event["cat"] == "kernel" for event in events) == 5 and any(event["cat"] == "compile" for event in events)
    assert len({event["tid"] for event in events if event["cat"] == "kernel"}) == 2
    tree = json.loads((tmp_path / "o.hatchet").read_text())[0]
    assert {child["frame"]["name"] for child in tree["children"]} == {"part", "double"}
    page = (tmp_path / "p.html").read_text()
    assert (
        page.count("<svg") >= 2
        and "prefers-color-scheme: dark" in page
        and "http://" not in page.replace("http://www.w3.org", "")
    )


@pytest.mark.parametrize(("argument", "code", "words"), [("exit", 7, ""), ("raise", 1, "KeyError: 'a mistake'")])
def test_the_exit_code_is_the_programs(tmp_path: Path, argument: str, code: int, words: str) -> None:
    found, printed, errors = profile(tmp_path, "program.py", argument)
    assert found == code and words in errors and "look first:" in printed and "tilework/" not in errors


def test_sessions_of_the_program_are_its_own(tmp_path: Path) -> None:
    code, printed, errors = profile(tmp_path, "program.py", "session")
    assert code == 0 and "7 launches" in printed, errors
    (own,) = json.loads((tmp_path / "own.hatchet").read_text())[0]["children"]
    assert own["metrics"]["count"] == 1


def test_a_copy_of_the_program_shows_nothing(tmp_path: Path) -> None:
    text = "import os, sys\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\nsys.exit(0 if child else 5)\n"
    code, printed, _ = profile(tmp_path, "program.py", text=text)
    assert code == 0 and printed.count("look first:") == 1


def test_a_program_without_kernels(tmp_path: Path) -> None:
    code, printed, _ = profile(tmp_path, "program.py", text="print(1)")
    assert code == 0 and "no kernel was launched" in printed
    assert main(["profile", str(tmp_path / "none.py")]) == 2
    assert main(["profile", "--html", str(tmp_path / "no" / "x.html"), str(tmp_path / "program.py")]) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import triton", True),
        ("import torch, triton", True),
        ("    from triton.runtime import driver", True),
        ("import tritonclient", False),
        ("print('import triton')", False),
        ("import tilework; tilework.as_triton()\nimport triton", False),
    ],
)
def test_programs_that_say_triton(line: str, says: bool, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(f"{line}\n")
    assert Program(str(tmp_path / "p.py"), ()).says_triton() == says


def test_an_emulated_device_counts_steps(tmp_path: Path) -> None:
    steps = report(row("a", 5.0, None), seconds=1.0)
    steps.is_real, steps.bandwidth = False, None
    shown = text_of(steps)
    assert "its clock counts steps" in shown and "% of it in" not in shown and "look first: `a` has 100 %" in shown
    assert main(["profile", "-m", "no.such.module"]) == 2


# ---- estimates


@tilework.jit
def products(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left, right = a + m[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + m[:, None] * N + n[None, :], total)


@tilework.jit
def until(p, limit):
    x = tl.load(p)
    while x < limit:
        x = x * 2.0
    tl.store(p, x)


@tilework.jit
def triangle(p, out, BLOCK: tl.constexpr):
    """Program i adds i + 1 rows; the arrays are larger than what is read."""
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0) + 1):
        total += tl.load(p + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


def needs(kernel: Any, grid: tuple[int, int, int], *args: Any) -> Any:
    compiled = kernel.warmup(*args, grid=grid)
    return estimate(parse_module(compiled.asm["ttir"]), work_of(compiled.launcher, grid, args))


def test_work_is_estimated_from_ir_and_arguments() -> None:
    M, N, K = 64, 32, 96
    a, b, c = (np.zeros(shape, "f2") for shape in ((M, K), (K, N), (M, N)))
    found = needs(products, (2, 2, 1), a, b, c, M, N, K, 32, 16, 32)
    assert found.flops == {"fp16": 2 * M * N * K} and found.bytes == a.nbytes + b.nbytes + c.nbytes
    unknown = needs(until, (1, 1, 1), np.zeros(1, "f4"), 7.0)
    assert unknown.flops is None and unknown.bytes == 8
    part = needs(triangle, (7, 1, 1), np.zeros((100, 16), "f4"), np.zeros((100, 16), "f4"), 16)
    assert part.flops == {"simd": 28 * 16} and part.bytes == (28 + 7) * 16 * 4


def test_metadata_that_fail_are_a_warning() -> None:
    compiled = tilework.jit(launch_metadata=lambda grid, metadata, args: 1 // 0)(until.fn).warmup(
        np.zeros(1, "f4"), 7.0, grid=(1,)
    )
    with pytest.warns(UserWarning, match="launch_metadata of until raised ZeroDivisionError"):
        found = work_of(compiled.launcher, (1, 1, 1), (np.zeros(1, "f4"), 7.0))
    assert found.reported == () and found.name == ""


# ---- what to look at first


def report(*rows: Row, seconds: float = 1.0, compiling: float = 0.0) -> Report:
    root = Row("all", (), sum(row.seconds for row in rows), sum(row.calls for row in rows), children=list(rows))
    kernel: Any = type("Kernel", (), {"name": rows[0].name if rows else ""})
    compilations = [CompileEvent(kernel, False, compiling, 0)] if compiling else []
    return Report(root, "p.py", "cpu", seconds, compilations, 1e9, {})


def row(name: str, seconds: float, share: float | None, calls: int = 10, overhead: float = 0.0, path: Any = ()) -> Row:
    bounds = {} if share is None else {"memory": seconds * share}
    return Row(name, (*path, name), seconds, calls, bounds=bounds, overhead=overhead, device_type="CPU")


FIRST = (
    (report(), "no kernel was launched"),
    (report(row("a", 0.1, 0.5), compiling=0.8), "80 % of the time is compiling"),
    (
        report(row("a", 0.2, 0.5, calls=10_000, overhead=3e-5)),
        "`a` runs for 20.0 us, and each of its 10000 launches costs 30.0 us",
    ),
    (report(row("a", 0.2, 0.5)), "80 % of the time is outside of kernels"),
    (report(row("slow", 0.3, 0.1), row("good", 0.6, 0.9)), "`slow` has 33 % of the kernels' time and reaches 10 %"),
    (report(row("good", 0.9, 0.9)), "make it need less"),
    (report(row("cached", 0.9, 3.0)), "comes from caches"),
    (report(row("other", 0.9, None)), "what limits it is not known"),
    (report(row("tuned", 0.9, 0.1, path=("autotuning tuned",))), "tilework tune p.py"),
)


@pytest.mark.parametrize(("made", "words"), FIRST, ids=[words for _, words in FIRST])
def test_what_to_look_at_first(made: Report, words: str) -> None:
    assert words in advice(made)


def test_limits_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disturbance, "share_of_others", lambda before, after: None)
    monkeypatch.setattr(Limits, "measure_copy", lambda self: measured.append("copy") or 5.0)
    first, second = Limits.load(), Limits.load()
    assert first.bandwidth == first.bandwidth == second.bandwidth == Limits.load().bandwidth == 5.0
    assert measured == ["copy", "copy"], "the second was loaded before the first had measured"
    again = Limits.load()
    again.measure_again()
    monkeypatch.setattr(Limits, "measure_copy", lambda self: 4.0)
    assert again.bandwidth == 5.0, "the larger value counts"


def test_limits_of_a_busy_machine_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter((3.0, 4.0, 5.0, 2.0, 2.0))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def measure_copy(self: Limits) -> float:
        with self.watch:
            return next(values)

    monkeypatch.setattr(Limits, "measure_copy", measure_copy)
    monkeypatch.setattr(disturbance, "share_of_others", lambda before, after: 0.62)
    busy = Limits.load()
    assert busy.bandwidth == 4.0 == busy.bandwidth, "the better of two attempts counts for this report"
    words = "may be too low, and are not kept: while they were measured, other programs used 62 % of the processors"
    found = report(row("a", 0.5, 0.1))
    found.disturbed = busy.disturbed
    assert words in "\n".join(limit_lines(found)) and words in roofline_caption(found)
    monkeypatch.setattr(disturbance, "share_of_others", lambda before, after: 0.02)
    idle = Limits.load()
    assert (idle.bandwidth, idle.disturbed) == (5.0, "")
    monkeypatch.setattr(disturbance, "share_of_others", lambda before, after: 0.62)
    again = Limits.load()
    again.measure_again()
    assert (again.bandwidth, again.disturbed) == (5.0, ""), "the stored limits were measured undisturbed"
    assert Limits.load().bandwidth == 5.0


def test_a_limit_that_needs_another_one_is_kept_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement is watched alone."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disturbance, "share_of_others", lambda before, after: None)
    limits = Limits.load()

    def outer() -> float:
        limits.get("inner", lambda: limits.watch.best([1.0, 2.0, 2.0, 2.0]))
        return limits.watch.best([3.0, 3.0])

    assert limits.get("outer", outer) == 3.0 and limits.found["inner"] == 1.0
    assert Limits.load().found == {"outer": 3.0} and "100 % longer" in limits.disturbed


def test_what_others_use_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = Moment(10.0, 1.0, 100.0, 4)
    share = lambda used, seconds=1.0: disturbance.share_of_others(start, Moment(10.0 + seconds, 3.0, used, 4))  # noqa: E731
    assert share(104.0) == 0.5 and share(102.0) == share(101.9) == 0.0
    assert share(None) is share(100.0) is share(104.0, 0.05) is None
    (tmp_path / "stat").write_text("cpu  100 20 30 5000 9 1 2 3 0 0\ncpu0 50 0 0 0\ncpu1 50 0 0 0\nintr 5\n")
    monkeypatch.setattr(disturbance, "COUNTERS", tmp_path / "stat")
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    assert disturbance.all_processors() == (1.56, 2)
    monkeypatch.setattr(disturbance, "COUNTERS", tmp_path / "none")
    assert disturbance.all_processors() == (None, 1)


def test_times_that_differ_are_noticed() -> None:
    steady, unsteady = Disturbance(), Disturbance()
    assert steady.best([1.0, 1.1, 1.05, 5.0]) == 1.0 and steady.reason == ""
    assert unsteady.best([1.0, 1.5, 1.5, 1.6]) == 1.0 and "at least 50 % longer" in unsteady.reason
