"""Targets as values: what names them, what describes them, and what a package can add."""

import subprocess
import sys
from pathlib import Path

import pytest

import tilework.language as tl
from tilework.target import Feature, GPUTarget, Limits, Target, UnknownTarget

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("text", "name"), [("cuda:90", GPUTarget("cuda", 90, 32)), ("cpu", GPUTarget("cpu", "host", 1))]
)
def test_a_target_and_its_name(text: str, name: GPUTarget) -> None:
    target = Target.parse(text)
    assert target is Target.parse(text) is Target.of(name)
    assert target.name == GPUTarget.parse(text) == name
    assert str(target) == str(name) == text and len({target, Target.of(name)}) == 1


@pytest.mark.parametrize("text", ["metal:m1", "sycl:1"])
def test_no_backend_compiles_for_it(text: str) -> None:
    with pytest.raises(UnknownTarget, match=rf"{text}'.* no compiler for .*; there are compilers for cpu, cuda, hip"):
        Target.parse(text)


@pytest.mark.parametrize("text", ["", ":90", "cuda", "cuda:", "cuda:ninety"])
def test_no_target_at_all(text: str) -> None:
    with pytest.raises(UnknownTarget, match=r"expected BACKEND:ARCH, for example cuda:90, hip:gfx942 or cpu"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("arch", "has", "lacks", "shared"),
    [
        (70, "", "matrix_load", 98304),
        (75, "matrix_load", "mma async_copy", 65536),
        (80, "mma async_copy mma_f64 mbarrier", "mma_fp8 tma wgmma", 166912),
        (86, "mma", "mma_f64 fp8_convert", 101376),
        (89, "fp8_convert mma_fp8_fast", "tma", 101376),
        (90, "wgmma tma clusters mma_f64 mma_fp8", "mma_fp8_fast", 232448),
        (100, "tma clusters mma", "wgmma mma_f64", 232448),
        (120, "mma_fp8_fast", "wgmma", 101376),
    ],
)
def test_nvidia_gpus(arch: int, has: str, lacks: str, shared: int) -> None:
    target = Target.of(GPUTarget("cuda", arch, 32))
    assert target.features >= set(has.split()) and not target.features & set(lacks.split())
    assert target.features <= set(Feature) and target.limits == Limits(128, 1024, 65536, shared)
    assert target.min_dot_size(tl.float8e5, tl.int8) == (1, 1, 32)
    assert target.min_dot_size(tl.float8e5, tl.float16) == target.min_dot_size(tl.float32, tl.float32) == (1, 1, 16)


def test_another_package_adds_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wide_gpu.py").write_text(
        "from tilework.target import Target\n"
        "def describe(arch):\n    return Target('wide', arch, warp_size=64, features=frozenset({'mma'}))\n"
    )
    package = tmp_path / "wide_gpu-1.0.dist-info"
    package.mkdir()
    (package / "entry_points.txt").write_text("[tilework.targets]\nwide = wide_gpu:describe\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert GPUTarget.parse("wide:x1") == GPUTarget("wide", "x1", 64)
    assert Target.parse("wide:x1").features == {Feature.MMA}


def test_a_target_costs_no_compiler() -> None:
    code = "import sys; from tilework.target import Target; Target.parse('cuda:90'); Target.parse('cpu')"
    heavy = "xdsl numpy llvmlite tilework.ir tilework.transforms importlib.metadata".split()
    code += f"; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")
