"""Generated kernels as code for GPUs in the emulators: seeds that have found something."""

from pathlib import Path

import pytest

from tests.fuzz.gpu import depends_on_order, problem_of
from tests.fuzz.kernels import HEADER, Kernel
from tests.fuzz.rules import INT32

CASES = [
    *((seed, "cuda:90", True) for seed in (7, 18, 40, 53)),
    (40, "cuda:80", True),
    (92, "hip:gfx942", False),
    (40, "hip:gfx1100", True),
]


@pytest.mark.parametrize(("seed", "target", "about_descriptors"), CASES)
def test_generated_kernel(seed: int, target: str, about_descriptors: bool, tmp_path: Path) -> None:
    problem = problem_of(seed, target, tmp_path, about_descriptors=about_descriptors)
    words = "--descriptors " if about_descriptors else ""
    assert problem is None, f"python -m tests.fuzz.gpu {words}--target {target} --seed {seed}\n{problem}"


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_generated_loops(target: str, tmp_path: Path) -> None:
    problem = problem_of(3, target, tmp_path, about_loops=True)
    assert problem is None, f"python -m tests.fuzz.gpu --loops --target {target} --seed 3\n{problem}"


@pytest.mark.parametrize(
    ("seed", "target"), [(44, "cuda:90"), (59, "cuda:90"), (44, "cuda:80"), (59, "hip:gfx942"), (0, "hip:gfx1100")]
)
def test_generated_tiles_with_many_uses(seed: int, target: str, tmp_path: Path) -> None:
    problem = problem_of(seed, target, tmp_path, about_tiles=True)
    assert problem is None, f"python -m tests.fuzz.gpu --tiles --target {target} --seed {seed}\n{problem}"


def test_generated_strides_in_clusters(tmp_path: Path) -> None:
    problem = problem_of(8, "cuda:90", tmp_path, ctas=2, about_strides=True)
    assert problem is None, f"python -m tests.fuzz.gpu --strides --ctas 2 --seed 8\n{problem}"


@pytest.mark.parametrize(
    ("index", "is_kept", "depends"), [("0", True, True), ("0", False, False), ("pid", True, False)]
)
def test_atomics_that_tell_which_program_was_first(index: str, is_kept: bool, depends: bool, tmp_path: Path) -> None:
    kept = "old" if is_kept else "1"
    body = f"    pid = tl.program_id(0)\n    old = tl.atomic_add(io + {index}, 3)\n    tl.store(out + pid, {kept})\n"
    kernel = Kernel(
        0,
        f"{HEADER}@jit\ndef kernel(io, out):\n{body}",
        dict.fromkeys(("io", "out"), "*i32"),
        (),
        {"io": INT32, "out": INT32},
    )
    assert depends_on_order(kernel, tmp_path) == depends
