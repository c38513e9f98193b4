"""Effects of knobs; `test_knobs.py` tests setting them."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import HOPPER, HOST, fill, fill_source
from tilework import knobs
from tilework.compiler import ASTSource, compile, lower

pytestmark = pytest.mark.usefixtures("fresh_cache")


def test_dump_and_override(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.cache.override_dir = str(tmp_path / "override")
    knobs.compilation.always_compile = True
    out = np.zeros(1, "i4")
    knobs.compilation.dump_ir = True

    @tilework.jit
    def k(p):
        tl.store(p, 11)

    k[(1,)](out)
    assert f"k.{k.warmup(out, grid=(1,)).metadata.binary_ext}" in files_in(tmp_path / "dump")
    (dumped,) = (tmp_path / "dump").rglob("k.ttir")
    knobs.compilation.dump_ir = False
    target = tmp_path / "override" / dumped.parent.name / "k.ttir"
    target.parent.mkdir(parents=True)
    target.write_text(dumped.read_text().replace("11 : i32", "12 : i32"))
    knobs.compilation.override = True
    k.device_caches.clear()
    k[(1,)](out)
    assert out[0] == 12
    assert "Overriding kernel with file" in capsys.readouterr().out


@tilework.jit
def checked(p, n):
    tl.device_assert(n > 0, "n is positive")
    tl.store(p, n)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and path.name != ".tilework"}


def test_store_binary_only(tmp_path: Path) -> None:
    knobs.compilation.store_binary_only = True
    kernel = compile(fill_source())
    binary = f"fill.{kernel.metadata.binary_ext}"
    assert files_in(tmp_path / "cache") == {binary, "fill.json", "__grp__fill.json"}
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    fill[(1,)](out, 2.0, 16)
    assert (out == 2).all()


def test_always_compile() -> None:
    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    compile(fill_source())
    knobs.compilation.always_compile = True
    compile(fill_source())
    knobs.compilation.always_compile = False
    compile(fill_source())
    assert hits == [False, False, True]


def test_use_ir_loc_points_into_the_file_of_the_stage() -> None:
    knobs.compilation.use_ir_loc = "ttir"
    kernel = compile(fill_source())
    text = kernel.asm["ttir"]
    path = kernel.metadata_group["fill.ttir"]
    assert f'"{path}":' in text and "launch_kernels.py" not in text
    plain = text.splitlines()
    line = next(number for number, found in enumerate(plain) if "tt.store" in found)
    assert re.search(rf'loc\("{re.escape(path)}":{line + offset(plain)}:\d+\)', text)


def offset(lines: list[str]) -> int:
    """Lines are counted from 1 in the text without location aliases above the module."""
    return 1 - next(number for number, line in enumerate(lines) if line.startswith("module"))


def test_line_tables_can_be_left_out() -> None:
    assert "launch_kernels.py" in compile(fill_source(), HOPPER).asm["ttir"]
    knobs.compilation.disable_line_info = True
    assert "loc(" not in compile(fill_source(), HOPPER).asm["ttir"]


def test_front_end_debugging_raises_raw_exceptions() -> None:
    @tilework.jit
    def bad(p):
        tl.arange(3, 3)

    knobs.compilation.front_end_debugging = True
    with pytest.raises(ValueError, match="must be greater than the start"):
        bad.warmup(np.zeros(1, "f4"), grid=(1,))


def test_dot_precision_default() -> None:
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


def test_fp_fusion_default() -> None:
    knobs.language.default_fp_fusion = False
    assert compile(fill_source()).metadata.enable_fp_fusion is False


def test_consan_forces_debug() -> None:
    knobs.compilation.instrumentation_mode = "consan"
    kernel = checked.warmup(np.zeros(1, "i4"), 5, grid=(1,))
    assert kernel.metadata.instrumentation_mode == "consan" and kernel.metadata.debug is True


def test_a_changed_instrumentation_mode_is_another_kernel() -> None:
    out = np.zeros(16, "f4")
    for _ in range(3):
        first = fill[(1,)](out, 1.0, 16)
    knobs.compilation.instrumentation_mode = "consan"
    second = fill[(1,)](out, 1.0, 16)
    assert first.hash != second.hash and second.metadata.debug


def test_line_information_of_a_later_stage() -> None:
    knobs.compilation.use_ir_loc = "ttgir"
    kernel = compile(fill_source(), HOPPER)
    path = kernel.metadata_group["fill.ttgir"]
    assert f'loc("{path}":' in kernel.asm["ttgir"] and "launch_kernels.py" in kernel.asm["ttir"]
    assert "launch_kernels.py" not in kernel.asm["ttgir"]


def test_asan_is_for_amd_only() -> None:
    knobs.compilation.enable_asan = True
    for target in (HOPPER, HOST):
        with pytest.raises(
            ValueError, match=f"TRITON_ENABLE_ASAN: .* AMD GPUs only, and the target is {target.backend}"
        ):
            compile(fill_source(), target)


def test_interpret_and_debug_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert type(tilework.jit(fill.fn)).__name__ == "InterpretedFunction"
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    kernel = tilework.jit(fill.fn)
    assert type(kernel) is tilework.JITFunction
    monkeypatch.setenv("TRITON_DEBUG", "1")
    assert kernel.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,)).metadata.debug is False  # read once
    knobs.refresh_knobs()
    assert kernel.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,)).metadata.debug is True
    monkeypatch.delenv("TRITON_DEBUG")
    knobs.refresh_knobs()


def test_a_knob_that_stays_here_has_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    before = dict(os.environ)
    knobs.language.default_fp_fusion = False
    knobs.compilation.always_compile = True
    assert compile(fill_source()).metadata.enable_fp_fusion is False and dict(os.environ) == before
    knobs.language.default_fp_fusion = None
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "name", ["CacheManager", "no.module:Thing", "tilework.runtime.kernel_cache.managers:triton_key"]
)
def test_a_bad_cache_manager_stops_the_launch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_MANAGER", name)
    with pytest.raises(RuntimeError, match="TRITON_CACHE_MANAGER"):
        compile(fill_source())


def test_groups_are_knob_groups() -> None:
    names = "env_str env_str_callable_default env_bool env_int env_opt_str env_opt_bool env_class env_nvidia_tool"
    assert all(issubclass(getattr(knobs, name), knobs.env_base) for name in names.split())
    for name in "build redis cache compilation autotuning runtime language nvidia amd proton".split():
        assert isinstance(getattr(knobs, name), knobs.base_knobs)
