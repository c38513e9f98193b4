"""Errors and lengths of f32 functions on an NVIDIA GPU, ours beside libdevice's as Triton calls it.

    python -m benchmarks.gpu_functions [NAME ...]                 every argument: 2^32 of them, or 2^28 pairs
    python -m benchmarks.gpu_functions --pairs 20 tanh pow        2^20 pairs of a function of two arguments

The largest error in units of the last place against f64 functions of torch, where no argument and no result is
subnormal; the largest error elsewhere (a unit is 2^-149 there), or how many results are infinite, NaN or finite where
they should not be; and the instructions of a kernel that loads, computes and stores one element. Each compiler runs in
a process of its own.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE = """tanh exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinh cosh asinh acosh atanh asin acos atan erf erfc
    erfinv normcdf cbrt rcbrt sqrt rsqrt""".split()
TWO = "pow atan2 hypot fmod".split()
CHUNK = 1 << 26
SOURCE = """import {compiler}
import {compiler}.language as tl
from {compiler}.language.extra import libdevice

@{compiler}.jit
def kernel(x, y, out, N: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    tl.store(out + at, libdevice.{name}({args}))
"""


def references(torch: Any) -> dict[str, Callable[..., Any]]:
    """The functions in f64."""
    found = {name: getattr(torch, name, None) for name in (*ONE, *TWO)}
    return {name: function for name, function in found.items() if function is not None} | {
        "exp10": lambda x: torch.pow(10.0, x),
        "cbrt": lambda x: torch.copysign(torch.pow(torch.abs(x), 1 / 3), x),
        "rcbrt": lambda x: torch.copysign(torch.pow(torch.abs(x), -1 / 3), x),
        "normcdf": lambda x: torch.erfc(x * -(0.5**0.5)) / 2,
    }


def kernel_of(compiler: str, name: str, folder: str) -> Any:
    """The kernel of a function, from a file of its own: compilers read sources."""
    args = "tl.load(x + at), tl.load(y + at)" if name in TWO else "tl.load(x + at)"
    path = Path(folder) / f"{compiler}_{name}.py"
    path.write_text(SOURCE.format(compiler=compiler, name=name, args=args))
    scope: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["kernel"]


def instructions(cubin: bytes, folder: str) -> int:
    path = Path(folder) / "kernel.cubin"
    path.write_bytes(cubin)
    listing = subprocess.run(["cuobjdump", "-sass", str(path)], capture_output=True, text=True, check=True).stdout
    opcodes = re.findall(r"^\s+/\*[0-9a-f]{4}\*/\s+(?:@!?\w+ )?([A-Z][\w.]*)", listing, re.M)
    return sum(opcode != "NOP" for opcode in opcodes)


SMALLEST = 2.0**-126


def errors(torch: Any, args: list[Any], got: Any, exact: Any) -> tuple[float, int, float, int]:
    """The largest error of normal numbers, where it is, that of others, and how many results are of the wrong kind."""
    rounded, wide = exact.float(), got.double()
    exponent = torch.frexp(exact)[1].clamp(min=-125, max=128)
    error = torch.ldexp((wide - exact).abs(), 24 - exponent)
    special = ~(torch.isfinite(rounded) & torch.isfinite(got))
    same = (torch.isnan(rounded) & torch.isnan(got)) | (rounded == got)
    same |= torch.isinf(got) & (exact.abs() > 3.4028233e38) & (got.sign() == exact.sign())
    error = torch.where(special, 0.0, error)
    tiny = (exact.abs() < SMALLEST) & (exact != 0)
    for arg in args:
        tiny |= (arg.abs() < SMALLEST) & (arg != 0)
    normal = torch.where(tiny, 0.0, error)
    worst = int(normal.argmax())
    return float(normal[worst]), worst, float((error * tiny).max()), int((special & ~same).sum())


def measure(compiler: str, names: list[str], pair_bits: int) -> dict[str, Any]:
    """Of each function: largest error, its argument, that with subnormals, results of the wrong kind, instructions."""
    import torch  # lazily: the process that prints needs none

    found: dict[str, Any] = {}
    exact = references(torch)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            kernel = kernel_of(compiler, name, folder)
            total, others, wrong, at, length = 0.0, 0.0, 0, 0.0, 0
            size = CHUNK if name in ONE else min(CHUNK, 1 << pair_bits)
            random = torch.Generator("cuda").manual_seed(7)
            for chunk in range((1 << (32 if name in ONE else pair_bits)) // size):
                first = chunk * CHUNK - (1 << 31)
                if name in ONE:
                    x = (torch.arange(CHUNK, device="cuda") + first).int().view(torch.float32)
                    y = x
                else:
                    draws = [torch.randint(-(2**31), 2**31, (size,), generator=random, device="cuda") for _ in "xy"]
                    x, y = (draw.int().view(torch.float32) for draw in draws)
                    if chunk % 2:  # of moderate size, too
                        x, y = (torch.rand(size, generator=random, device="cuda") * scale for scale in (8.0, 40.0))
                out = torch.full_like(x, float("nan"))
                made = kernel[(size // 128,)](x, y, out, 128)
                length = length or instructions(made.asm["cubin"], folder)
                wanted = exact[name](x.double(), y.double()) if name in TWO else exact[name](x.double())
                worst, index, other, kinds = errors(torch, [x, y], out, wanted)
                wrong, others = wrong + kinds, max(others, other)
                if worst > total:
                    total, at = worst, float(x[index])
            found[name] = total, at, others, wrong, length
            print(compiler, name, *found[name], file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*ONE, *TWO])
    parser.add_argument("--pairs", type=int, default=28, help="the logarithm of the number of pairs of arguments")
    parser.add_argument("--compiler", help="measure with this one only, and print JSON")
    args = parser.parse_args()
    if args.compiler:
        print(json.dumps(measure(args.compiler, args.names, args.pairs)))
        return
    command = [sys.executable, "-m", "benchmarks.gpu_functions", *args.names, "--pairs", str(args.pairs)]
    runs = {
        compiler: json.loads(subprocess.run([*command, "--compiler", compiler], stdout=-1, check=True).stdout)
        for compiler in ("tilework", "triton")
    }
    print("| function | error (ulp) | libdevice | with subnormals | libdevice | instructions | libdevice |")
    print("|---|---|---|---|---|---|---|")
    for name in args.names:
        ours, theirs = (run[name] for run in runs.values())
        columns = [f"{ours[0]:.2f}", f"{theirs[0]:.2f}", subnormals(ours), subnormals(theirs), ours[4], theirs[4]]
        print(f"| {name} | {' | '.join(map(str, columns))} |")


def subnormals(row: list[Any]) -> str:
    """The error with subnormal numbers: flushed where it is a whole number."""
    kinds = f", {row[3]} of the wrong kind" if row[3] else ""
    return ("flushed" if row[2] > 1e5 else f"{row[2]:.2f}") + kinds


if __name__ == "__main__":
    main()
