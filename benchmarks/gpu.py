"""Kernels on an NVIDIA GPU beside Triton's code for the same source, and torch's routine for the same work.

    python -m benchmarks.gpu [NAME ...]

Every kernel of `gpu_kernels.py` is compiled by tilework and, if it is installed, by Triton, with the same configuration. Times are
medians of `do_bench`, which empties the L2 cache before each launch, in one process per row; compile times are those of the first
launch with an empty cache. The ratio is Triton's time divided by ours: 1.00 is as fast.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SOURCE = Path(__file__).with_name("gpu_kernels.py")
Launch = Callable[[Any], Any]


@dataclass
class Row:
    """One kernel: `launch(kernels)` starts it with the module of one compiler, `result` is what it wrote."""

    launch: Launch
    result: Any
    expected: Any
    reference: Callable[[], Any]
    work: float  # bytes, or floating-point operations
    unit: str
    rtol: float = 1e-2


def load(name: str, compiler: str) -> ModuleType:
    """The kernels, with `tl` and `triton` of one compiler."""
    text = SOURCE.read_text()
    if compiler == "triton":
        text = text.replace("import tilework.language as tl", "import triton.language as tl").replace(
            "import tilework as triton", "import triton"
        )
    path = Path(tempfile.mkdtemp()) / f"{name}_{compiler}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def add_row() -> Row:
    n = 1 << 26
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    return Row(
        lambda k: k.add[(n // 1024,)](x, y, out, n, BLOCK=1024),
        out,
        x + y,
        lambda: torch.add(x, y, out=out),
        12 * n,
        "GB/s",
    )


def softmax_row() -> Row:
    m, c = 8192, 4096
    a = torch.randn(m, c, device="cuda")
    b = torch.empty_like(a)
    return Row(
        lambda k: k.softmax[(m,)](b, a, c, BLOCK=4096, num_warps=8), b, torch.softmax(a, 1), lambda: torch.softmax(a, 1),
        8 * m * c, "GB/s",
    )  # fmt: skip


def layernorm_row() -> Row:
    m, c = 8192, 4096
    h = torch.randn(m, c, device="cuda", dtype=torch.bfloat16)
    g = torch.empty_like(h)
    w, v = (torch.randn(c, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    norm = lambda: torch.nn.functional.layer_norm(h, (c,), w, v)  # noqa: E731
    return Row(
        lambda k: k.layernorm[(m,)](g, h, w, v, c, 1e-5, BLOCK=4096, num_warps=8),
        g,
        norm(),
        norm,
        4 * m * c,
        "GB/s",
        5e-2,
    )


def matmul_row(size: int, dtype: torch.dtype, warps: int, stages: int, bm: int, bn: int, bk: int) -> Row:
    p, q = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
    r = torch.empty(size, size, device="cuda", dtype=dtype)
    torch.backends.cuda.matmul.allow_tf32 = True
    grid = (size // bm * (size // bn),)
    return Row(
        lambda k: k.matmul[grid](
            p, q, r, size, size, size, size, size, size, BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages
        ),
        r, p @ q, lambda: torch.matmul(p, q, out=r), 2 * size**3, "TF/s", 3e-2,
    )  # fmt: skip


def attention_row() -> Row:
    z, heads, length, depth = 4, 32, 2048, 64
    q, k, v = (torch.randn(z, heads, length, depth, device="cuda", dtype=torch.float16) for _ in range(3))
    o = torch.empty_like(q)
    attend = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)  # noqa: E731
    return Row(
        lambda kernels: kernels.attention[(length // 128, z * heads)](
            q, k, v, o, length, depth**-0.5, BM=128, BN=64, D=depth, num_warps=4, num_stages=3
        ),
        o, attend(), attend, 4 * z * heads * length * length * depth, "TF/s", 3e-2,
    )  # fmt: skip


ROWS: dict[str, Callable[[], Row]] = {
    "add f32 64M": add_row,
    "softmax f32 8192x4096": softmax_row,
    "layernorm bf16 8192x4096": layernorm_row,
    "matmul f16 4096 128x256x64": lambda: matmul_row(4096, torch.float16, 8, 3, 128, 256, 64),
    "matmul f16 4096 128x128x64": lambda: matmul_row(4096, torch.float16, 4, 4, 128, 128, 64),
    "matmul tf32 2048 128x128x32": lambda: matmul_row(2048, torch.float32, 4, 3, 128, 128, 32),
    "attention f16 4x32x2048x64": attention_row,
}


def measure(row: Row, kernels: ModuleType, do_bench: Any) -> tuple[float, float, str]:
    """Milliseconds of a launch, seconds of the first one, and whether the result is right."""
    row.result.zero_()
    start = time.perf_counter()
    kernel = row.launch(kernels)
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    error = ((row.result - row.expected).abs().max() / row.expected.abs().max()).item()
    facts = f"{kernel.n_regs} regs" + (f", {kernel.n_spills} spills" if kernel.n_spills else "")
    return do_bench(lambda: row.launch(kernels)), first, facts if error <= row.rtol else f"WRONG by {error:.2g}"


def show(name: str) -> None:
    """Measure one row and print it."""
    import tilework.testing as ours

    compilers = {"tilework": (load("kernels", "tilework"), ours.do_bench)}
    if importlib.util.find_spec("triton") is not None:
        import triton.testing

        compilers["triton"] = (load("kernels", "triton"), triton.testing.do_bench)
    torch.manual_seed(0)
    row = ROWS[name]()
    reference = ours.do_bench(row.reference, return_mode="median")  # first: the GPU's clocks are up for what follows
    found: dict[str, tuple[float, float, str]] = {}
    for compiler, (kernels, bench) in compilers.items():
        try:
            found[compiler] = measure(row, kernels, lambda call, bench=bench: bench(call, return_mode="median"))
        except Exception as error:
            print(f"{name:30}{compiler}: {type(error).__name__}: {str(error)[:500]}")
    nothing = (float("nan"), float("nan"), "")
    own, first, facts = found.get("tilework", nothing)
    other, second, theirs = found.get("triton", nothing)
    rate = row.work / own / (1e6 if row.unit == "GB/s" else 1e9)
    print(
        f"{name:30}{own:7.3f} ms{other:7.3f} ms{reference:7.3f} ms{rate:9.1f} {row.unit}{other / own:8.2f}"
        f"{first * 1e3:8.0f} ms{second * 1e3:7.0f} ms   {facts} | {theirs}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if len(given.names) == 1 and given.names[0] in ROWS:
        os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
        show(given.names[0])
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        f"{'':30}{'ours':>10}{'Triton':>10}{'torch':>10}{'':>14}{'ratio':>8}{'compile':>11}{'Triton':>10}   registers",
        flush=True,
    )
    for name in ROWS:
        if not given.names or any(word in name for word in given.names):
            subprocess.run([sys.executable, "-m", "benchmarks.gpu", name], check=False)


if __name__ == "__main__":
    main()
