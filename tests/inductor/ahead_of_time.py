"""AOTInductor with a kernel of the user's: the package must compute what eager torch does, for other sizes too.

python -m tilework.as_triton -m tests.inductor.ahead_of_time PACKAGE.pt2
"""

# pyright takes tests/triton for triton.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_sum_kernel(x_ptr, y_ptr, out_ptr, n, scale, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.device_assert(x < 1000, "too large")
    tl.store(out_ptr + i, x * scale + (y + shift), mask=i < n)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scaled_sum_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), 2.5, 7, BLOCK=64, debug=True)
        return torch.softmax(out.sin(), -1)


def main(package: str) -> None:
    model, x, y = Model(), torch.randn(8, 100), torch.randn(8, 100)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (x, y), dynamic_shapes=({0: rows}, {0: rows}), strict=True)
    loaded = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=package))
    for count in (8, 3):
        torch.testing.assert_close(loaded(x[:count], y[:count]), model(x[:count], y[:count]))
    try:
        loaded(x + 1e6, y)
    except RuntimeError as error:
        print("refused:", " ".join(str(error).split()))
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
