"""Kernels that cannot be compiled are refused at their line: one that takes a tensor, a function that no library
has."""

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


EXTERN = """module {
  tt.func public @kernel(%o: !tt.ptr<f32>, %x: f32) {
    %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "nobody_has_it"} : (f32) -> f32
    tt.store %o, %y : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_a_function_that_the_cpu_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "kernel.ttir"
    path.write_text(EXTERN)
    with pytest.raises(PassError, match=r"the function 'nobody_has_it' .* cannot be compiled for the CPU") as caught:
        compile(str(path), target=GPUTarget("cpu", "host", 1))
    assert f'"{path}":3:5' in str(caught.value)
