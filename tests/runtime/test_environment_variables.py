"""Variables without a knob: those of the cache key, diagnostics, dumps, timing, reproducers."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.pipeline import slow_kernels
from tests.runtime.launch_kernels import AMPERE, BLACKWELL, HOPPER, fill, fill_source
from tilework import knobs
from tilework.compiler import ASTSource, compile, lower
from tilework.process import plugins
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING, cache_invalidating_env_vars
from tilework.targets import base
from tilework.tools.cli import main

pytestmark = pytest.mark.usefixtures("fresh_cache")

ROOT = Path(__file__).parent.parent.parent


@tilework.jit
def square(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))


@tilework.jit
def specialized(a, n):
    total = 0.0
    for i in tl.range(0, n, warp_specialize=True):
        total += tl.load(a + i)
    tl.store(a, total)


def dot(dtype: str = "fp16", size: int = 32) -> ASTSource:
    return ASTSource(square, dict.fromkeys("abc", f"*{dtype}"), {"N": size})


LISTED = """
AMDGCN_ENABLE_DUMP AMDGCN_USE_BUFFER_ATOMICS AMDGCN_USE_BUFFER_OPS DISABLE_LLVM_OPT DISABLE_MMA_V3 DISABLE_MMA_V5
DISABLE_PTXAS_OPT LLVM_IR_ENABLE_DUMP LLVM_ENABLE_TIMING LLVM_PASS_PLUGIN_PATH LLVM_EXTRACT_DI_LOCAL_VARIABLES
MLIR_ENABLE_DIAGNOSTICS MLIR_ENABLE_DUMP MLIR_DUMP_PATH MLIR_ENABLE_TIMING MLIR_DISABLE_MULTITHREADING
TRITON_DEFAULT_FP_FUSION TRITON_DISABLE_LINE_INFO TRITON_DUMP_MIR TRITON_ENABLE_LLVM_DEBUG TRITON_HIP_USE_ASYNC_COPY
TRITON_HIP_USE_BLOCK_PINGPONG TRITON_HIP_USE_IN_THREAD_TRANSPOSE TRITON_LLVM_DEBUG_ONLY TRITON_ENABLE_ASAN
TRITON_OVERRIDE_ARCH USE_IR_LOC NVPTX_ENABLE_DUMP ALLOW_LHS_TMEM_LAYOUT_CONVERSION TRITON_F32_DEFAULT
TRITON_PREFER_TMEM_16x256_LAYOUT TRITON_ENABLE_EXPERIMENTAL_CONSAN TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT
TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY TRITON_PLUGIN_VERSION_CHECK
TRITON_PLUGIN_PATHS
""".split()


WITHOUT_EFFECT = [
    "MLIR_DISABLE_MULTITHREADING", "ALLOW_LHS_TMEM_LAYOUT_CONVERSION", "TRITON_PREFER_TMEM_16x256_LAYOUT",
    "DISABLE_MMA_V5", "TRITON_ENABLE_EXPERIMENTAL_CONSAN",
]  # fmt: skip


def test_the_list_is_complete() -> None:
    assert set(CACHE_INVALIDATING) == {
        *LISTED,
        "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE",
        "TRITON_SWAP_MIR",
        "PTXAS_OPTIONS",
        "TILEWORK_PERFORMANCE_REMARKS",
        "TILEWORK_PERSISTENT_PROGRAMS",
        "TILEWORK_PLAIN_DOTS",
        "TILEWORK_STRICT_TRITON",
        "TILEWORK_TRITON_VERSION",
        "TILEWORK_WARP_SPECIALIZE",
    }


@pytest.mark.parametrize("name", LISTED)
def test_each_listed_variable_is_another_cache_entry(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that mean nothing to the variable will do: the key does not know what they mean."""
    from tilework.runtime.kernel_cache.managers import get_cache_key

    backend = base.find_backend(HOPPER)

    def key() -> str:
        return get_cache_key(fill_source(), backend, backend_options, cache_invalidating_env_vars())

    backend_options = backend.parse_options({})
    keys: dict[str | None, str] = {None: key()}
    for text in ("1", "0", "sm80"):
        monkeypatch.setenv(name, text)
        keys[text] = key()
    assert len(set(keys.values())) == 4
    for texts in (("1", "on", "ON", "true", "True"), ("0", "off", "false", "FALSE")):
        for text in texts:
            monkeypatch.setenv(name, text)
            assert key() == keys[texts[0]], text


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_variables_about_what_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same code for every target, in an entry of its own that says so."""
    targets = (AMPERE, HOPPER, BLACKWELL)
    plain = [lower(dot(), target, ["ttgir"])["ttgir"] for target in targets]
    first = compile(fill_source())
    monkeypatch.setenv(name, "1")
    assert [lower(dot(), target, ["ttgir"])["ttgir"] for target in targets] == plain
    second = compile(fill_source())
    assert first.hash != second.hash and getattr(second.metadata, name) == "true" and not hasattr(first.metadata, name)
    assert first.asm["ttir"] == second.asm["ttir"] and capfd.readouterr().err == ""


def test_tensor_cores_of_hopper_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    def versions() -> set[str]:
        return set(re.findall(r"versionMajor = \d", lower(dot(size=64), HOPPER, ["ttgir"])["ttgir"]))

    assert versions() == {"versionMajor = 3"}
    monkeypatch.setenv("DISABLE_MMA_V3", "1")
    assert versions() == {"versionMajor = 2"}


def said(text: str, work: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("MLIR_ENABLE_DIAGNOSTICS", text)
    work()
    return capfd.readouterr().err


def remarkable() -> None:
    """A dot that misses a tensor core, and a load that is not coalesced."""
    lower(dot(), HOPPER, ["ttgir"])


def alarming() -> None:
    """A loop that is not done as the user wanted."""
    lower(ASTSource(specialized, {"a": "*fp32", "n": "i32"}), HOPPER, ["ttgir"])


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("text", ["", "0", "operations", "stacktraces", "errors"])
def test_diagnostics_are_off_unless_named(
    text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert said(text, remarkable, monkeypatch, capfd) == said(text, alarming, monkeypatch, capfd) == ""


def test_diagnostics_warnings(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert said("warnings", remarkable, monkeypatch, capfd) == ""
    printed = said("warnings", alarming, monkeypatch, capfd)
    location = f"{__file__}:{line_of('warp_specialize=True)')}:"
    assert printed.startswith(location) and ": warning: the loop is not warp specialized" in printed
    assert "remark:" not in printed


@pytest.mark.parametrize("text", ["remarks", "REMARKS", " remarks , warnings"])
def test_diagnostics_remarks(text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    printed = said(text, remarkable, monkeypatch, capfd)
    number = line_of("tl.store(c + i, tl.dot(")
    assert re.search(
        (
            rf"{re.escape(__file__)}:{number}:\d+: remark: MMA version 3 acceleration not applied due to unsupported "
            r"shapes"
        ),
        printed,
    )
    assert f"{number:5d} |     tl.store(c + i, tl.dot(" in printed and "see current operation" not in printed
    assert ": warning: the loop is not warp specialized" in said(text, alarming, monkeypatch, capfd)


def test_diagnostics_look_at_the_finished_module(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32", "BLOCK": "constexpr"}
    strided = ASTSource(slow_kernels.strided, types, {"BLOCK": 1024})
    printed = said("remarks", lambda: lower(strided, HOPPER, ["ttgir"]), monkeypatch, capfd)
    assert "remark: Warning: vectorization fails vec = 1 origin vec = 1 numElems = 8 mask is -1" in printed
    assert "this load is not coalesced" in printed


def test_diagnostics_operations(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    printed = said("remarks,operations", remarkable, monkeypatch, capfd)
    assert re.search(
        r"note: see current operation: %\w+ = tt\.dot %\w+, %\w+, %\w+.* : tensor<32x32xf16, #ttg", printed
    )
    assert "#blocked = #ttg.blocked<" in printed and "trace" not in printed
    printed = said("warnings,operations", alarming, monkeypatch, capfd)
    assert re.search(r"see current operation: %\w+ = scf\.for .*\{\n", printed) and "tt.load" not in printed


def test_diagnostics_stacktraces(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    printed = said("remarks,stacktraces", remarkable, monkeypatch, capfd)
    assert "note: diagnostic emitted with trace:" in printed and "accelerate_matmul.py" in printed
    assert "in remarkable" in printed and "see current operation" not in printed


def test_diagnostics_of_a_pass_that_fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Earlier diagnostics are shown, and the handler is removed."""
    from tilework.transforms.passes import DECLARED
    from tilework.transforms.remarks import is_heard
    from tilework.transforms.ttg import prefetch

    def fail(self: Any, module: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(DECLARED[prefetch.prefetch], "run", fail)
    with pytest.raises(ZeroDivisionError):
        said("remarks", remarkable, monkeypatch, capfd)
    assert "MMA version 3" in capfd.readouterr().err and not is_heard()


def test_diagnostics_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "dot.ttir"
    file.write_text(lower(dot(), HOPPER)["ttir"])
    passes = "convert-triton-to-tritongpu{target=cuda:90},tritongpu-accelerate-matmul"
    command = ["opt", str(file), "-p", passes, "-o", str(tmp_path / "out")]
    assert main(command) == 0 and capfd.readouterr().err == ""
    printed = said("remarks,operations", lambda: main(command), monkeypatch, capfd)
    assert (
        ": remark: MMA version 3 acceleration not applied" in printed and ": note: see current operation: " in printed
    )


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT"])
@pytest.mark.parametrize("text", ["1", "0"])
def test_the_stack_of_a_crash(name: str, text: str) -> None:
    code = (
        "import os, sys, tilework\nsys.stderr = None\n"
        f"def somewhere():\n    os.kill(os.getpid(), {int(getattr(signal, name))})\nsomewhere()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TRITON_ENABLE_PYTHON_STACKTRACE": text},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -getattr(signal, name)
    assert ("line 4 in somewhere" in done.stderr) is (text == "1")


def test_backends_in_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Packages that register a backend or a driver are left out."""
    package = tmp_path / "mine-1.0.dist-info"
    package.mkdir()
    lines = ("[tilework.backends]", "mine = tests.runtime.fake_gpu:FakeBackend", "[tilework.drivers]", "mine = a:b")
    (package / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert base.backend_class("mine").__name__ == "FakeBackend"
    assert plugins.find("tilework.drivers", "mine") is not None
    monkeypatch.setenv("TRITON_BACKENDS_IN_TREE", "1")
    with pytest.raises(ValueError, match="no backend called 'mine'; known: cpu, cuda"):
        base.backend_class("mine")
    assert plugins.find("tilework.drivers", "mine") is None and base.backend_class("cpu").__name__ == "CpuBackend"


def test_every_stage_is_timed_and_written_down(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MLIR_ENABLE_TIMING", "1")
    monkeypatch.setenv("TRITON_REPRODUCER_PATH", str(tmp_path / "crash"))
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "fill")
    monkeypatch.setenv("MLIR_DUMP_PATH", str(tmp_path / "dump.mlir"))
    lower(fill_source(), HOPPER, ["ttgir"])
    lower(dot(), HOPPER, ["ttgir"])
    printed = capfd.readouterr().err
    assert printed.count("===- passes of fill: ") == printed.count("===- passes of square: ") == 2
    assert re.search(r"ms +[\d.]+ %  tritongpu-coalesce\n", printed) and "IR Dump" not in printed
    files = sorted(path.name for path in tmp_path.glob("crash.*"))
    assert files == ["crash.make_ttgir.repro.mlir", "crash.make_ttir.repro.mlir"]
    dumped = (tmp_path / "dump.mlir").read_text()
    assert "IR Dump Before tritongpu-coalesce (fill)" in dumped and "(square)" not in dumped


def test_a_dump_path_alone_dumps_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MLIR_DUMP_PATH", str(tmp_path / "dump.mlir"))
    lower(fill_source(), HOPPER)
    assert not (tmp_path / "dump.mlir").exists() and capfd.readouterr().err == ""


def test_invalidating_variables_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile(fill_source())
    monkeypatch.setenv("DISABLE_LLVM_OPT", "on")
    second = compile(fill_source())
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    third = compile(fill_source())
    assert first.hash != second.hash == third.hash and second.metadata.DISABLE_LLVM_OPT == "true"
    assert os.environ["DISABLE_LLVM_OPT"] == "1"


def test_mlir_enable_dump(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for text, shown in (("1", True), ("fill", True), ("other", False), ("0", False)):
        monkeypatch.setenv("MLIR_ENABLE_DUMP", text)
        lower(fill_source(), HOPPER)
        printed = capfd.readouterr().err
        assert ("IR Dump Before canonicalize (fill)" in printed) is shown, text
        assert (printed.count("tt.func public @fill") > 3) is shown
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    monkeypatch.setenv("MLIR_DUMP_PATH", str(tmp_path / "dump.mlir"))
    lower(fill_source(), HOPPER)
    assert "IR Dump Before" in (tmp_path / "dump.mlir").read_text() and not capfd.readouterr().err


def test_mlir_enable_timing(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLIR_ENABLE_TIMING", "1")
    lower(fill_source(), HOPPER)
    printed = capfd.readouterr().err
    assert "===- passes of fill: " in printed and re.search(r"ms +[\d.]+ %  canonicalize", printed)


def test_reproducers_can_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One file for each stage, as Triton names them; each repeats its stage."""
    from tilework.tools.cli import main

    monkeypatch.setenv("TRITON_REPRODUCER_PATH", str(tmp_path / "crash"))
    stages = lower(fill_source(), HOPPER, ["ttir", "ttgir", "llir"])
    monkeypatch.delenv("TRITON_REPRODUCER_PATH")
    texts = {
        tag: (tmp_path / f"crash.{tag}.repro.mlir").read_text() for tag in ("make_ttir", "make_ttgir", "make_llir")
    }
    named = {
        "make_ttir": "triton-combine",
        "make_ttgir": "tritongpu-coalesce",
        "make_llir": "convert-triton-gpu-to-llvm",
    }
    for tag, text in texts.items():
        (pipeline,) = re.findall(
            r'mlir_reproducer: {\n      pipeline: "builtin.module\(any\((.*)\)\)",$', text, re.MULTILINE
        )
        assert named[tag] in pipeline
    for stage in ("ttir", "ttgir", "llir"):
        command = texts[f"make_{stage}"].splitlines()[0].removeprefix("// tilework ").split()
        out = tmp_path / "out.mlir"
        assert main([*command, "--mlir-print-debuginfo", "-o", str(out)]) == 0
        assert out.read_text() == stages[stage]


def test_llvm_variables(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LLVM_IR_ENABLE_DUMP", "1")
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    knobs.runtime.device = "native"
    out = np.zeros(16, "f4")
    fill[(1,)](out, 2.0, 16)
    assert (out == 2).all() and "define" in capfd.readouterr().err
