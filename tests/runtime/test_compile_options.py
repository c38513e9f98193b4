"""Options of a compilation: defaults, what each does, and that each is part of the key."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import HOPPER, fill
from tilework import knobs
from tilework.targets.base import find_backend

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def checked(p, n):
    tl.device_assert(n > 0, "n is positive")
    tl.store(p, n)


DEFAULTS = {
    "num_warps": 4, "num_ctas": 1, "num_stages": 3, "maxnreg": None, "arch": "sm90", "ptx_version": None,
    "ptx_options": None,
    "ir_override": None, "enable_fp_fusion": True, "enable_reflect_ftz": True, "launch_cooperative_grid": False,
    "launch_pdl": False, "debug": False, "sanitize_overflow": True, "deprecated_fp8_dot_operand_dtypes": ("fp8e4b15",),
    "default_dot_input_precision": "tf32", "max_num_imprecise_acc_default": 2**30, "backend_name": "cuda",
    "warp_size": 32,
    "instrumentation_mode": "", "supported_fp8_dtypes": ("fp8e4b15", "fp8e4nv", "fp8e5"),
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
}  # fmt: skip


GIVEN = {
    "num_warps": 8, "num_ctas": 2, "num_stages": 5, "maxnreg": 64, "arch": "sm80", "ptx_version": 84,
    "ptx_options": "-v",
    "enable_fp_fusion": False, "enable_reflect_ftz": False, "launch_cooperative_grid": True, "launch_pdl": True,
    "debug": True, "sanitize_overflow": False, "extern_libs": {"mine": "/nowhere.bc"},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_of_option(name: str) -> None:
    assert getattr(find_backend(HOPPER).parse_options({}), name) == DEFAULTS[name]
    assert getattr(find_backend(HOPPER).parse_options({name: None}), name) == DEFAULTS[name]


@pytest.mark.parametrize("name", [name for name in GIVEN if name not in ("num_ctas", "arch")])
def test_option_reaches_the_metadata_and_the_key(name: str) -> None:
    out = np.zeros(16, "f4")
    plain, given = fill[(1,)](out, 1.0, 16), fill[(1,)](out, 1.0, 16, **{name: GIVEN[name]})
    assert plain.hash != given.hash
    wanted = GIVEN[name] if name != "extern_libs" else [["mine", "/nowhere.bc"]]
    assert getattr(given.metadata, name) == wanted


def test_clusters_need_hopper() -> None:
    assert find_backend(HOPPER).parse_options({"num_ctas": 2}).num_ctas == 2
    for settings in ({"num_ctas": 2, "arch": "sm80"},):
        with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
            find_backend(HOPPER).parse_options(settings)


def test_arch_overrides_the_target_and_the_knob_wins() -> None:
    options = find_backend(HOPPER).parse_options({"arch": "sm80"})
    assert options.arch == "sm80" and "fp8e4nv" not in options.supported_fp8_dtypes
    knobs.runtime.override_arch = "sm75"
    options = find_backend(HOPPER).parse_options({"arch": "sm80"})
    assert options.arch == "sm75" and options.max_num_imprecise_acc_default == 0
    knobs.runtime.override_arch = "hopper"
    with pytest.raises(ValueError, match="arch 'hopper': expected sm and a number"):
        find_backend(HOPPER).parse_options({})


DEBUG_CASES = [
    # (environment, keyword, decorator) -> on
    (False, None, None, False), (False, None, True, True), (False, True, None, True), (False, False, True, False),
    (True, None, None, True), (True, False, None, True), (True, False, True, True), (True, None, False, True),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "keyword", "decorator", "on"), DEBUG_CASES)
def test_debug_is_environment_or_keyword_or_decorator(
    environment: bool, keyword: bool | None, decorator: bool | None, on: bool
) -> None:
    kernel = tilework.jit(debug=decorator)(checked.fn)
    knobs.runtime.debug = environment
    settings = {} if keyword is None else {"debug": keyword}
    compiled = kernel.warmup(np.zeros(1, "i4"), 5, grid=(1,), **settings)
    assert compiled.metadata.debug is on
    assert ("tt.assert" in compiled.asm["ttir"]) is on


def test_libraries_count_with_their_content(tmp_path: Path) -> None:
    path = tmp_path / "mine.bc"
    hashes = set()
    for content in (b"one", b"two", b"one"):
        path.write_bytes(content)
        hashes.add(find_backend(HOPPER).parse_options({"extern_libs": {"mine": str(path)}}).hash())
    assert len(hashes) == 2
    (tmp_path / "elsewhere").mkdir()
    other = shutil.copy(path, tmp_path / "elsewhere" / "other.bc")
    assert find_backend(HOPPER).parse_options({"extern_libs": {"mine": str(other)}}).hash() in hashes
    assert find_backend(HOPPER).parse_options({"extern_libs": {"yours": str(other)}}).hash() not in hashes


def test_a_library_that_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.bc"
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    options = find_backend(HOPPER).parse_options({"extern_libs": {"mine": str(path)}})
    before = options.hash()
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("it was read"))
    assert options.hash() == before
    monkeypatch.undo()
    path.write_bytes(b"two")
    os.utime(path, (2, 2))
    assert options.hash() != before


@tilework.jit
def axpy(x, y, a):
    i = tl.arange(0, 16)
    tl.store(y + i, tl.load(x + i) * a + tl.load(y + i))


def test_fusion_rounds_once_or_twice() -> None:
    x = np.full(16, 1 + 2**-12, "f4")
    once = np.float32(np.float64(x[0]) * x[0] - 1)
    twice = np.float32(np.float32(x[0] * x[0]) - np.float32(1))
    assert once != twice
    for fuses, wanted in ((True, (once, twice)), (False, (twice,))):
        y = np.full(16, -1, "f4")
        axpy[(1,)](x, y, float(x[0]), enable_fp_fusion=fuses)
        assert y[0] in wanted, fuses


def test_overflow_checks_can_be_left_out() -> None:
    @tilework.jit(debug=True)
    def add(p, n):
        tl.store(p, tl.load(p) + n)

    out = np.zeros(1, "i4")
    checked = add.warmup(out, 5, grid=(1,)).asm["ttir"]
    plain = add.warmup(out, 5, grid=(1,), sanitize_overflow=False).asm["ttir"]
    assert "tt.assert" in checked and "tt.assert" not in plain


def test_libraries_are_pairs_in_hooks() -> None:
    seen: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **info: seen.append(info["compile"]["extern_libs"])
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4, extern_libs={"mine": "/nowhere.bc", "other": "/else.bc"})
    assert seen == [(("mine", "/nowhere.bc"), ("other", "/else.bc"))]


@pytest.mark.parametrize("stage", ["ttir", "ttcir", "llir"])
def test_a_file_replaces_its_stage(stage: str, tmp_path: Path) -> None:
    @tilework.jit
    def constant(p):
        tl.store(p, 11)

    out = np.zeros(1, "i4")
    text = constant[(1,)](out).asm[stage]
    assert out[0] == 11 and ("i32 11" in text or "11 : i32" in text)
    file = tmp_path / f"other.{stage}"
    file.write_text(text.replace("i32 11", "i32 13").replace("11 : i32", "13 : i32"))
    kernel = constant[(1,)](out, ir_override=str(file))
    assert out[0] == 13 and kernel.metadata.ir_override == str(file)


def test_options_without_a_value_are_those_by_default() -> None:
    out = np.zeros(4, "f4")
    nothing = {"num_warps": None, "num_stages": None, "maxnreg": None, "enable_fp_fusion": None}
    assert fill[(1,)](out, 1.0, 4, **nothing).hash == fill[(1,)](out, 1.0, 4).hash
