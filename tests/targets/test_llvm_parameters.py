"""A kernel takes numbers, pointers and descriptors; one that takes a tensor is refused, at its line, by every target."""

from pathlib import Path

import pytest

from tilework.compiler import compile
from tilework.errors import PassError
from tilework.targets.base import GPUTarget

TEXT = """module {{
  tt.func public @kernel(%o: !tt.ptr<f32>, %x: tensor<{size}xf32>) {{
    %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>
    %p = tt.splat %o : !tt.ptr<f32> -> tensor<{size}x!tt.ptr<f32>>
    %q = tt.addptr %p, %r : tensor<{size}x!tt.ptr<f32>>, tensor<{size}xi32>
    tt.store %q, %x : tensor<{size}x!tt.ptr<f32>>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (GPUTarget("cpu", "host", 1), "the CPU"),
        (GPUTarget("cuda", 80, 32), "cuda:80"),
        (GPUTarget("cuda", 90, 32), "cuda:90"),
    ],
)
@pytest.mark.parametrize("size", [64, 1024])  # one register of each thread, and several
def test_a_kernel_argument_that_is_a_tensor(tmp_path: Path, target: GPUTarget, shown: str, size: int) -> None:
    path = tmp_path / "kernel.ttir"
    path.write_text(TEXT.format(size=size))
    with pytest.raises(PassError) as caught:
        compile(str(path), target=target)
    assert f"a kernel argument that is a tensor cannot be compiled for {shown}: argument %x of @kernel" in str(
        caught.value
    )
    assert f'"{path}":2:3' in str(caught.value)
