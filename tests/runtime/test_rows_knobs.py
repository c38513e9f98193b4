"""The effects of the knobs, and of the variables without one, rule by rule; `test_knobs.py` has the rest."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, compile, lower
from tilework.targets.base import GPUTarget

HOPPER = GPUTarget("cuda", 90, 32)


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.jit
def checked(p, n):
    tl.device_assert(n > 0, "n is positive")
    tl.store(p, n)


SIGNATURE = {"p": "*fp32", "value": "fp32", "n": "i32"}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope(), knobs.language.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in (fill, checked):
        kernel.device_caches.clear()


def source(**constants: Any) -> ASTSource:
    return ASTSource(fill, SIGNATURE, {"BLOCK": 16, **constants})


# -- 6.14 what the knobs do ----------------------------------------------------------------------------------------


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and path.name != ".tilework"}


def test_6_14_store_binary_only(tmp_path: Path) -> None:
    knobs.compilation.store_binary_only = True
    kernel = compile(source())
    binary = f"fill.{kernel.metadata.binary_ext}"
    assert files_in(tmp_path / "cache") == {binary, "fill.json", "__grp__fill.json"}
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    fill[(1,)](out, 2.0, 16)
    assert (out == 2).all()


def test_6_14_always_compile() -> None:
    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    compile(source())
    knobs.compilation.always_compile = True
    compile(source())
    knobs.compilation.always_compile = False
    compile(source())
    assert hits == [False, False, True]


def test_6_14_dump_and_override_with_a_notice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.cache.dump_dir, knobs.cache.override_dir = str(tmp_path / "dump"), str(tmp_path / "override")
    knobs.compilation.dump_ir = True
    kernel = compile(source())
    assert {"fill.ttir", f"fill.{kernel.metadata.binary_ext}"} <= files_in(tmp_path / "dump")
    knobs.compilation.dump_ir = False
    (dumped,) = (tmp_path / "dump").rglob("fill.ttir")
    target = tmp_path / "override" / dumped.parent.name / "fill.ttir"
    target.parent.mkdir(parents=True)
    target.write_text(dumped.read_text().replace("fill", "other"))
    knobs.compilation.override, knobs.compilation.always_compile = True, True
    assert "@other" in compile(source()).asm["ttir"]
    assert "Overriding kernel with file" in capsys.readouterr().out


def test_6_14_use_ir_loc_points_into_the_file_of_the_stage() -> None:
    knobs.compilation.use_ir_loc = "ttir"
    kernel = compile(source())
    text = kernel.asm["ttir"]
    path = kernel.metadata_group["fill.ttir"]
    assert f'"{path}":' in text and "test_rows_knobs.py" not in text
    plain = text.splitlines()
    line = next(number for number, found in enumerate(plain) if "tt.store" in found)
    assert re.search(rf'loc\("{re.escape(path)}":{line + offset(plain)}:\d+\)', text)


def offset(lines: list[str]) -> int:
    """Lines are counted from 1 in the text without location aliases above the module."""
    return 1 - next(number for number, line in enumerate(lines) if line.startswith("module"))


def test_6_14_asan_is_an_error() -> None:
    knobs.compilation.enable_asan = True
    with pytest.raises(ValueError, match="TRITON_ENABLE_ASAN: the address sanitizer is for AMD GPUs only"):
        compile(source(), HOPPER)


def test_6_14_line_tables_can_be_left_out() -> None:
    assert "test_rows_knobs.py" in compile(source(), HOPPER).asm["ttir"]
    knobs.compilation.disable_line_info = True
    assert "loc(" not in compile(source(), HOPPER).asm["ttir"]


def test_6_14_front_end_debugging_raises_raw_exceptions() -> None:
    @tilework.jit
    def bad(p):
        tl.arange(0, 3)

    knobs.compilation.front_end_debugging = True
    with pytest.raises(ValueError, match="power of 2"):
        bad.warmup(np.zeros(1, "f4"), grid=(1,))


def test_6_14_dot_precision_default() -> None:
    @tilework.jit
    def product(p):
        i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
        x = tl.load(p + i)
        tl.store(p + i, tl.dot(x, x))

    texts = []
    for precision in (None, "ieee", "tf32x3"):
        knobs.language.fp32_default = precision
        texts.append(lower(ASTSource(product, {"p": "*fp32"}), HOPPER)["ttir"])
    assert "inputPrecision = tf32 " in texts[0] and "inputPrecision = tf32x3" in texts[2]
    assert "inputPrecision = tf32" not in texts[1]


def test_6_14_fp_fusion_default() -> None:
    knobs.language.default_fp_fusion = False
    assert compile(source()).metadata.enable_fp_fusion is False


def test_6_14_consan_forces_debug() -> None:
    knobs.compilation.instrumentation_mode = "consan"
    kernel = checked.warmup(np.zeros(1, "i4"), 5, grid=(1,))
    assert kernel.metadata.instrumentation_mode == "consan" and kernel.metadata.debug is True


def test_6_14_invalidating_variables_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile(source())
    monkeypatch.setenv("DISABLE_LLVM_OPT", "on")
    second = compile(source())
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    third = compile(source())
    assert first.hash != second.hash == third.hash and second.metadata.DISABLE_LLVM_OPT == "true"
    assert os.environ["DISABLE_LLVM_OPT"] == "1"


def test_6_14_a_changed_instrumentation_mode_is_another_kernel() -> None:
    out = np.zeros(16, "f4")
    for _ in range(3):
        first = fill[(1,)](out, 1.0, 16)
    knobs.compilation.instrumentation_mode = "consan"
    second = fill[(1,)](out, 1.0, 16)
    assert first.hash != second.hash and second.metadata.debug


# -- 6.14 variables without a knob ---------------------------------------------------------------------------------


def test_6_14_mlir_enable_dump(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for text, shown in (("1", True), ("fill", True), ("other", False), ("0", False)):
        monkeypatch.setenv("MLIR_ENABLE_DUMP", text)
        lower(source(), HOPPER)
        printed = capfd.readouterr().err
        assert ("IR Dump Before canonicalize (fill)" in printed) is shown, text
        assert (printed.count("tt.func public @fill") > 3) is shown
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    monkeypatch.setenv("MLIR_DUMP_PATH", str(tmp_path / "dump.mlir"))
    lower(source(), HOPPER)
    assert "IR Dump Before" in (tmp_path / "dump.mlir").read_text() and not capfd.readouterr().err


def test_6_14_mlir_enable_timing(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLIR_ENABLE_TIMING", "1")
    lower(source(), HOPPER)
    printed = capfd.readouterr().err
    assert "===- passes of fill: " in printed and re.search(r"ms +[\d.]+ %  canonicalize", printed)


def test_6_14_reproducers_can_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One file for each stage, as Triton names them; each repeats its stage."""
    from tilework.tools.cli import main

    monkeypatch.setenv("TRITON_REPRODUCER_PATH", str(tmp_path / "crash"))
    stages = lower(source(), HOPPER, ["ttir", "ttgir", "llir"])
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
    for stage in ("ttir", "ttgir"):
        command = texts[f"make_{stage}"].splitlines()[0].removeprefix("// tilework ").split()
        out = tmp_path / "out.mlir"
        assert main([*command, "--mlir-print-debuginfo", "-o", str(out)]) == 0
        assert out.read_text() == stages[stage]


def test_6_14_llvm_variables(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LLVM_IR_ENABLE_DUMP", "1")
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    knobs.runtime.device = "native"
    out = np.zeros(16, "f4")
    fill[(1,)](out, 2.0, 16)
    assert (out == 2).all() and "define" in capfd.readouterr().err
