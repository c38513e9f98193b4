"""Kernels that use what they import from the library by its bare name, in functions that torch compiles: Inductor
copies the source of a kernel, and imports a name where its `__module__` is one of Triton's. The copy must compute what
the kernel does.

python -m tilework.as_triton -m tests.inductor.imported_names FOLDER        writes the kernels there
"""

import importlib
import sys
from pathlib import Path

import torch

# kernels by name: what they import, and an expression of `x`, 64 floats between 0 and 1
KERNELS = {
    "libdevice": (
        "from triton.language.extra.libdevice import tanh, asin, expm1, pow, isnan, fast_dividef as my_divide",
        "tanh(x) + asin(x) + expm1(x) + pow(x, x) + isnan(x) + my_divide(x, x + 1)",
    ),
    "vendors": (
        "from triton.language.extra.cuda.libdevice import atan, log1p as log_of_more",
        "atan(x) + log_of_more(x)",
    ),
    "math": (
        "from triton.language.math import abs, ceil, cos, exp, exp2, floor, fma, log, log2, rsqrt, sin, sqrt",
        "abs(x) + ceil(x) + cos(x) + exp(x) + exp2(x) + floor(x) + fma(x, x, x) + log(x + 1) + log2(x + 1)"
        " + rsqrt(x + 1) + sin(x) + sqrt(x)",
    ),
    "standard": (
        ("from triton.language.standard import sigmoid, softmax, max, min, sum, argmax, cumsum, sort, flip, "
         "zeros_like, cdiv"),
        "sigmoid(x) + softmax(x) + max(x, 0) - min(x, 0) + sum(x, 0) + argmax(x, 0) + cumsum(x, 0) + sort(x) + flip(x)"
        " + zeros_like(x) + cdiv(N, 3)",
    ),
    "core": (
        ("from triton.language import arange, cast, full, load, maximum, program_id, static_range, trans, where, "
         "expand_dims"),
        "where(arange(0, N) > program_id(0), maximum(cast(x, tl.float64), 0.5), full((N,), 2.0, tl.float64))"
        " + load(x_ptr + arange(0, N)) + trans(expand_dims(x, 0)).reshape([N])",
    ),
    "types": (
        ("from triton.language.core import float16, float64 as double, int32, dtype, tensor, constexpr\n"
         "HALF = constexpr(0.5)"),
        "x.to(float16).to(double) + (x * 10).to(int32) + HALF + (x.dtype == dtype('fp32'))",
    ),
    "random": ("from triton.language.random import rand, randint4x", "rand(7, i) + randint4x(3, i)[0] % 5"),
    "targets": ("from triton.language.target_info import current_target, is_cuda", ("x + (current_target() is "
                                                                                    "None) + is_cuda()")),
    "host": (
        "from triton import cdiv, next_power_of_2 as rounded",
        "x + cdiv(N, 5) + rounded(N + 1)",
    ),
    "constexpr functions": (
        "from triton.language.standard import _log2\nint_dtype = triton.constexpr_function(tl.core.get_int_dtype)\n"
        "\n@triton.constexpr_function\ndef half(dtype: tl.dtype):\n"
        "    return int_dtype(dtype.primitive_bitwidth // 2, True)\n",
        "x.to(int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True), bitcast=True).to(half(x.dtype)) + _log2(N)",
    ),
}  # fmt: skip
TEXT = """import triton
import triton.language as tl
{imports}


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, {expression})
"""


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    x = torch.rand(64)
    for number, (name, (imports, expression)) in enumerate(KERNELS.items()):
        (folder / f"kernel{number}.py").write_text(TEXT.format(imports=imports, expression=expression))
        kernel = importlib.import_module(f"kernel{number}").kernel

        def launch(x: torch.Tensor, kernel=kernel) -> torch.Tensor:
            out = torch.empty(64, dtype=torch.float64)
            kernel[(1,)](x, out, N=64)
            return out

        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(launch, fullgraph=True)(x), launch(x), rtol=0, atol=0)
        print(name, "ok", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
