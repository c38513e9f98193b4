"""A program is recorded, compiled ahead of time, and served from the bundle: what fits is served, all else says what
differs."""

import json
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime import served_program as program
from tests.runtime.bundles import bundle_of, stop_recording
from tests.runtime.forked_script import run_forked
from tests.runtime.without_compiler import run_without_compiler
from tilework import knobs
from tilework.errors import BundleError, NotRecorded
from tilework.process.events import BUNDLES
from tilework.runtime.bundle import missing, serving
from tilework.runtime.bundle.bundle_file import Contents, Entry, write_bundle
from tilework.runtime.bundle.serving import parse_target
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.manifest import append, read_manifest, record_into
from tilework.runtime.recording.specialization_record import SpecializationRecord
from tilework.target import GPUTarget
from tilework.tools.cli import main

KERNELS = [program.add, program.scaled, program.fill.fn, program.applied]


def forget() -> None:
    """Drop all kernels and choices from memory."""
    program.fill.cache.clear()
    for kernel in KERNELS:
        kernel.device_caches.clear()
        kernel.__dict__.pop("_bind_grid", None)
    program.fill.__dict__.pop("_bind_grid", None)


@pytest.fixture(autouse=True)
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with knobs.runtime.scope(), knobs.cache.scope():
        forget()
        yield
    BUNDLES.clear()
    stop_recording()
    missing.SAID.clear()
    forget()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the record of two runs of the program."""
    file = tmp_path_factory.mktemp("recorded") / "app.jsonl"
    for _ in range(2):
        forget()
        with knobs.runtime.scope():
            knobs.runtime.record = str(file)
            program.run_add(1024)
            program.run_fill(100)
            program.run_applied()
        stop_recording()
    return file


@pytest.fixture(scope="module")
def bundle_file(recorded: Path) -> Path:
    return bundle_of(recorded)


@pytest.fixture
def served(bundle_file: Path, tmp_path: Path) -> Any:
    """Serve launches from the bundle alone, without cache and compiler."""
    knobs.runtime.no_jit = True
    knobs.cache.dir = str(tmp_path / "cache")
    with tilework.load(bundle_file) as bundle:
        yield bundle


def refused(launch: Any) -> str:
    with pytest.raises(NotRecorded) as caught:
        launch()
    return str(caught.value)


def test_a_run_writes_what_it_needs_and_what_it_may_choose(recorded: Path) -> None:
    lines = recorded.read_text().splitlines()
    records = read_manifest([str(recorded)])
    assert len(lines) == 2 * len(records) == 10
    names = sorted((record["record"], record["kernel"].rpartition(":")[2]) for record in records)
    needed = [("kernel", "add"), ("kernel", "applied"), ("kernel", "fill")]
    assert names == [("candidate", "fill"), *needed, ("tuning", "fill")]
    assert not any(str(Path(__file__).parents[2]) in json.dumps({**record, "file": ""}) for record in records)


def test_launches_are_served_and_nothing_is_compiled(served: Any) -> None:
    for _ in range(2):  # the second launch is native
        program.run_add(1024)
        program.run_add(2048)  # of the same kind
        program.run_fill(100)
        program.run_applied()
    assert not os.path.exists(knobs.cache.dir)
    assert [name.rpartition(":")[2] for name in served.kernels] == ["add", "applied", "fill"]


def test_arguments_that_overlap_are_served_too(served: Any) -> None:
    for _ in range(2):
        x = np.arange(1028, dtype=np.float32)
        wanted = 3 * x[:1024]
        program.add[(1,)](x[:1024], x[:1024], x[4:], 1024, BLOCK=64)
        np.testing.assert_array_equal(x[4:68], wanted[:64])
        program.run_add(1024)
    assert not os.path.exists(knobs.cache.dir)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (lambda: program.run_add(1000), "`n` = 1000 is not a multiple of 16, and 1024 was"),
        (lambda: program.run_add(1), "`n` is 1, which the code takes as a constant"),
        (lambda: program.run_add(1024, block=32), "the constant `BLOCK` is 32, not 64"),
        (lambda: program.add[(1,)](*[np.zeros(16)] * 3, 16, BLOCK=64), "`x` points to fp64, not to fp32"),
        (lambda: program.add[(1,)](*[np.zeros(16, "f4")] * 3, 16, BLOCK=64, num_warps=8),
         "num_warps is 8, and was not set"),
        (lambda: program.scaled[(1,)](1.0), "there are those of"),
        (lambda: program.fill[(4,)](np.zeros(100, "f4"), 100),
         "no choice of the autotuner for fill and the key (100, 'float32')"),
    ],
)  # fmt: skip
def test_what_is_missing_says_what_differs(served: Any, launch: Any, words: str) -> None:
    text = refused(launch)
    assert words in text and "TILEWORK_NO_JIT=1" in text and "tilework precompile" in text


def test_a_global_a_variable_and_a_changed_kernel(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served.file.facts["python"] = "2.7"
    monkeypatch.setenv("TRITON_F32_DEFAULT", "tf32")
    assert "the variable TRITON_F32_DEFAULT is tf32" in refused(lambda: program.run_add(1024))
    monkeypatch.delenv("TRITON_F32_DEFAULT")
    for before, after, words in (
        ("constexpr(2.0)", "constexpr(3.0)", "the global SCALE is 3.0, not 2.0"),
        ("return x * SCALE", "return SCALE * x", "the function `scaled`, which it calls, has changed"),
        ("tl.arange(0, BLOCK)\n    tl.store(out + i, scaled", "tl.arange(0, BLOCK)\n    tl.store(i + out, scaled",
         "the text of the kernel has changed"),
    ):  # fmt: skip
        other = changed_program(before, after)
        text = refused(lambda other=other: other.run_add(1024))
        assert words in text and "with Python 2.7, and this is" in text
    knobs.runtime.no_jit = False
    with pytest.warns(RuntimeWarning, match=r"compiled, although .*the text of the kernel has changed.*precompile"):
        other.run_add(1024)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.run_add(1000)  # not there, and the kernel is what it was: it is compiled
    moved_program = changed_program("import enum", "import enum\n\n# a line that moves all others")
    knobs.runtime.no_jit = True
    moved_program.run_add(1024)


def changed_program(before: str, after: str) -> Any:
    import linecache
    from types import ModuleType

    text = Path(program.__file__).read_text()
    assert before in text
    made = ModuleType("changed")
    file = f"<changed {hash(after)}>"
    linecache.cache[file] = (len(text), None, text.replace(before, after).splitlines(keepends=True), file)
    sys.modules["changed"] = made
    exec(compile(text.replace(before, after), file, "exec"), vars(made))
    return made


def test_the_environment_loads_it_too(bundle_file: Path, tmp_path: Path) -> None:
    knobs.cache.dir = str(tmp_path / "cache")
    knobs.runtime.no_jit, knobs.runtime.bundle = True, f"{bundle_file}{os.pathsep}{bundle_file}"
    program.run_fill(100)
    program.run_add(1024)
    assert len(BUNDLES) == 1
    knobs.runtime.bundle_digest = "00"
    forget()
    with pytest.raises(BundleError, match="not the requested bundle"):
        program.run_add(1024)


def test_without_a_bundle_the_cache_serves_and_nothing_is_compiled(tmp_path: Path) -> None:
    knobs.cache.dir = str(tmp_path / "cache")
    program.run_add(1024)
    forget()
    knobs.runtime.no_jit = True
    program.run_add(1024)
    assert "`n` is not a multiple of 16" in refused(lambda: program.run_add(1000))
    assert "forbids to tune fill" in refused(lambda: program.run_fill(100))


def test_code_for_other_machines_is_refused_and_named(bundle_file: Path, tmp_path: Path) -> None:
    with tilework.load(bundle_file) as bundle:
        other = {**bundle.file.targets[0], "arch": "z80", "machine": "z80"}
        entries = [Entry(0, e.kernel, e.key, bundle.file.files(e)) for e in bundle.file.entries()]
        contents = Contents([other], bundle.file.kernels, entries)
    write_bundle(file := tmp_path / "z80.tilebundle", contents)
    with tilework.load(file), pytest.raises(BundleError, match=r"for z80.*--target cpu"):
        program.run_add(1024)


def test_which_target_fits() -> None:
    def chosen(device: str, *targets: str) -> list[tuple[str, str]]:
        has = [serving.target_facts(GPUTarget.parse(text), has_ptx=True) for text in targets]
        found = serving.fitting_targets(has, GPUTarget.parse(device))
        return [(targets[number], file) for number, file in found]

    assert chosen("cuda:86", "cuda:75", "cuda:80", "cuda:86", "cuda:90", "cpu") == [
        ("cuda:86", ""), ("cuda:80", ""), ("cuda:75", "ptx"),
    ]  # fmt: skip
    assert chosen("cuda:90", "cuda:80", "cuda:89") == [("cuda:89", "ptx"), ("cuda:80", "ptx")]
    assert chosen("cuda:120", "cuda:90") == [] == chosen("hip:gfx942", "hip:gfx90a", "cuda:90")
    assert chosen("hip:gfx942", "hip:gfx942") == [("hip:gfx942", "")]
    here = serving.target_facts(parse_target("cpu"))
    assert serving.fitting_targets([here], GPUTarget("cpu", "host", 1)) == [(0, "")]
    assert "does not have avx9" in (serving.cpu_mismatch({**here, "instructions": ["avx9"]}) or "")
    with pytest.raises(ValueError, match="no such CPU"):
        parse_target("cpu:z80")


def test_many_threads_and_one_bundle(served: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(program.run_add, [1024] * 32))


def test_a_damaged_kernel_is_not_run_and_the_others_are(bundle_file: Path, tmp_path: Path) -> None:
    knobs.runtime.no_jit = True
    file = Path(shutil.copy(bundle_file, tmp_path))
    with tilework.load(file) as bundle:
        entry = next(e for e in bundle.file.entries() if bundle.kernels[e.kernel].endswith(":add"))
        code = bundle.file.files(entry)["obj"]
    data = bytearray(file.read_bytes())
    data[data.index(code) + len(code) // 2] ^= 1
    file.write_bytes(data)
    with tilework.load(file):
        with pytest.raises(BundleError, match="damaged"):
            program.run_add(1024)
        program.run_fill(100)


def test_constants_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    record_into(str(tmp_path / "app.jsonl"))

    @tilework.jit
    def inside(out: Any):
        tl.store(out, 1)

    with pytest.warns(RuntimeWarning, match=r"TILEWORK_RECORD: .*inside.* is not recorded: .*defined where no other"):
        inside[(1,)](np.zeros(1, np.int32))
    with pytest.raises(tilework.CompilationError):
        program.applied[(1,)](program.Pair(np.ones(4, "f4"), 4), np.ones(4), program.scaled, 3, 4, (5,))
    assert not (tmp_path / "app.jsonl").exists(), "what does not compile is not needed"


def test_code_for_large_arrays_serves_small_ones() -> None:
    backend: Any = SimpleNamespace(specializes_small_arrays=True, launch_defaults=lambda: {"auto_tma": "pays"})
    both = [["tt.divisibility", 16], ["tt.pointer_range", 32]]

    def needed(facts: list[Any], options: dict[str, Any]) -> SpecializationRecord:
        types: dict[str, object] = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        return SpecializationRecord(
            Specialization(program.add, types, {(4,): 64}, {(0,): facts}, options, ""), backend, {}
        )

    small, plain = needed(both, {"auto_tma": "pays"}), needed(both[:1], {"maxnreg": None})
    assert small.key != plain.key and plain.key in small.usable_keys() and small.key not in plain.usable_keys()
    assert needed(both, {"num_warps": 8}).key not in small.usable_keys()


def test_processes_that_write_at_once(tmp_path: Path) -> None:
    file = str(tmp_path / "app.jsonl")
    record = {"record": "tuning", "version": 1, "kernel": "a:b", "source": "", "tuning": [], "config": {}}
    children = []
    for process in range(4):
        if (child := os.fork()) == 0:
            for number in range(50):
                append(file, {**record, "tuning": [process, number], "more": "x" * 5000})
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(read_manifest([file, file])) == 200
    with open(file, "a") as half:
        half.write('{"record": "tuni')  # killed while it wrote
    append(file, {**record, "tuning": ["after"]})
    with pytest.raises(BundleError, match=r"app\.jsonl:201: this is not JSON"):
        read_manifest([file])


def test_kernels_are_counted_alike(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`precompile`, `tilework bundle` and the served bundle report the same counts."""
    output = str(tmp_path / "out.tilebundle")
    assert main(["precompile", str(recorded), "-o", output, "-t", "cpu:native", "-t", "cpu:x86-64-v3"]) == 0
    count = re.search(r": (\d+ kernels in (\d+) specialisations) for", compiled := capsys.readouterr().out)
    assert count is not None, compiled
    assert main(["bundle", output]) == 0
    targets = [line for line in capsys.readouterr().out.splitlines() if line.startswith("target ")]
    of_targets = [re.search(r"(\d+) kernels in (\d+) specialisations", line) for line in targets]
    assert len(of_targets) == 2 and sum(int(found[2]) for found in of_targets if found) == int(count[2])
    with tilework.load(output) as bundle:
        assert f": {count[1]} for cpu" in repr(bundle)
        assert len(bundle.kernels) == len(set(bundle.kernels)) == int(count[1].split()[0])


def test_the_commands(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.tilebundle"
    manifest = tmp_path / "some.jsonl"
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    add = next(line for line in lines if line["kernel"].endswith(":add"))
    gone = {**add, "kernel": "tests.runtime.served_program:gone"}
    bad = {**add, "constants": {"BLOCK": 48.5}}
    manifest.write_text("".join(json.dumps(line) + "\n" for line in (gone, bad, add)))
    assert main(["precompile", str(manifest), "--list"]) == 0
    assert "add(x: *fp32:16, y: *fp32:16, out: *fp32:16, n: i32:16, BLOCK=64)" in capsys.readouterr().out
    assert main(["precompile", str(manifest), "-o", str(output), "-j", "2"]) == 1
    printed = capsys.readouterr()
    assert "1 kernel in 1 specialisation for cpu, 2 failed" in printed.out and "does not define gone" in printed.err
    first = output.read_bytes()
    main(["precompile", str(manifest), "-o", str(output), "-j", "1"])
    assert output.read_bytes() == first
    capsys.readouterr()
    assert main(["bundle", str(output)]) == 0 and main(["bundle", str(output), "--verify"]) == 0
    assert "add(x: *fp32:16" in capsys.readouterr().out
    knobs.runtime.bundle_key = "secret"
    main(["precompile", str(manifest), "-o", str(output), "-j", "1"])
    assert tilework.load(output).file.is_signed and output.read_bytes() != first
    with pytest.raises(BundleError, match="another key"):
        tilework.load(output, key=b"guessed")
    assert "(signed)" in capsys.readouterr().out
    del knobs.runtime.bundle_key
    output.write_bytes(first[:-1])
    assert main(["bundle", str(output)]) == 1
    assert "cut short" in capsys.readouterr().err


SCRIPT = """
import multiprocessing, sys
import numpy as np
import tilework, tilework.language as tl

@tilework.jit
def fill(out, value, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, value, mask=i < n)

def run(n):
    out = np.zeros(n, np.float32)
    fill[(1,)](out, 1.5, n, N=32)
    assert (out == 1.5).all()

if __name__ == "__main__":
    run(int(sys.argv[-1]) if sys.argv[-1].isdecimal() else 16)
    if "spawn" in sys.argv:
        child = multiprocessing.get_context("spawn").Process(target=run, args=(10,))
        child.start()
        child.join()
        assert child.exitcode == 0
    assert "xdsl" not in sys.modules or "spawn" in sys.argv
    print("served")
"""


def test_a_script_its_children_and_a_machine_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script := tmp_path / "app.py").write_text(SCRIPT)
    monkeypatch.setattr(sys, "argv", ["app.py", "spawn"])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    code, _, errors = run_forked(script, {"TILEWORK_RECORD": str(tmp_path / "app.jsonl")})
    assert code == 0, errors
    records = read_manifest([str(tmp_path / "app.jsonl")])
    assert [record["kernel"] for record in records] == ["__main__:fill"] * 2
    assert main(["precompile", str(tmp_path / "app.jsonl"), "-j", "1", "-t", "cpu"]) == 0
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    settings = {"TILEWORK_BUNDLE": str(tmp_path / "app.tilebundle")}
    served = run_without_compiler(moved, SCRIPT, settings)
    assert (served.returncode, served.stdout) == (0, "served\n"), served.stderr
    assert not (moved / "cache").exists()
    refused = run_without_compiler(moved, SCRIPT.replace("else 16", "else 1"), settings)
    assert "`n` is 1, which the code takes as a constant" in refused.stderr and "not installed here" in refused.stderr
