"""Code for every CPU of `other_cpus.py`, for tiles of 1 to 40 elements: LLVM must accept it and must not abort.

    python -m tests.targets.cpu_code_cases                     all of it: an hour of one core
    python -m tests.targets.cpu_code_cases cast_i64 --size 3   casts of int64 to all types

A row is a source type of casts, whose functions for all result types are compiled together, a type with the functions
of `OPS`, or a kernel of `odd_tiles.py`. Cases run in processes of their own: LLVM ends the process where it finds a
mistake of its own.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

import tilework.language as tl
from tests.differential.devices import FLOATS, INTS, unoptimised
from tests.sweep import chosen, options, size_text, sweep
from tests.targets.odd_tiles import LINE, PAIR
from tests.targets.other_cpus import CPUS, MACHINES, OtherCpu
from tilework.errors import CompilationError
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.kernel import FrontendOptions
from tilework.ir import tt
from tilework.language.function import jit
from tilework.target import Target
from tilework.targets.cpu.pipeline import tile_loops
from tilework.targets.llvm.object_loader import Layout, Object
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

TYPES = "u1 i8 i16 i32 i64 u8 u16 u32 u64 fp16 bf16 fp32 fp64 fp8e5 fp8e4nv fp8e4b8 fp8e5b16".split()
CASTS = {f"cast_{source}": source for source in TYPES}
NUMBERS = {f"ops_{code}": code for code in (*INTS, *FLOATS)}
SIZES = range(1, 41)
# of libc and libm, which every process has; on x86-64 before SSE 4.1 floats are rounded by functions
CALLED = {
    "memcpy",
    "memset",
    *(f"{name}{end}" for name in ("fma", "floor", "ceil", "trunc", "rint") for end in ("", "f")),
}


@jit
def cast(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@jit
def choice(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    tl.store(out + i, tl.where((a < b) | (a == 3), a, tl.maximum(a, -b)), mask=a != b)


@jit
def masked(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(
        out + i * 2, tl.load(x + i * 3, mask=i < N - 1, other=1) + tl.load(x + i, mask=i > 1, other=2), mask=i < N - 1
    )


@jit
def reductions(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(a, 0))
    tl.store(out + 1, tl.max(a, 0) + tl.min(a, 0))
    tl.store(out + 2, tl.argmax(a, 0) + tl.argmin(a, 0))


@jit
def scans(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.cumsum(a, 0) + tl.flip(a) + tl.sort(a))


@jit
def rows(x, out, N: tl.constexpr):
    i = tl.arange(0, 5)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    tl.store(out + i, a - tl.max(a, 1)[:, None] * tl.sum(a, 0)[None, :])
    tl.store(out + 5 * N + tl.arange(0, N)[:, None] * 5 + tl.arange(0, 5)[None, :], tl.trans(a))


@jit
def updates(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i, tl.load(x + i), mask=i < N - 1)


OPS = (choice, masked, reductions, scans, rows)
ATOMIC = ("i32", "i64", "u32", "u64", "fp16", "bf16", "fp32", "fp64")


def nests_of(module: ModuleOp) -> ModuleOp:
    run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cpu")))))
    return tile_loops(module)


def casts(source: str, size: int) -> ModuleOp:
    """Functions that cast a tile to each type that the language casts to."""
    functions: list[Any] = []
    for target in TYPES:
        try:
            functions.append(function_of(cast, source, target, size))
        except CompilationError:  # fp8 and integers
            continue
    return ModuleOp(functions)


def operations(code: str, size: int) -> ModuleOp:
    """The functions of `OPS` for one type."""
    chosen_ops = (*OPS, updates) if code in ATOMIC else OPS
    return ModuleOp([function_of(fn, code, code, size) for fn in chosen_ops])


def function_of(fn: Any, source: str, target: str, size: int) -> tt.FuncOp:
    """Loop nests of a kernel, as a function that is no kernel: without what runs it over a grid."""
    signature = {"x": f"*{source}", "out": f"*{target}", "N": "constexpr"}
    module = compile_to_ttir(fn, signature, {"N": size}, {}, FrontendOptions(backend_name="cpu"))
    (function,) = (op for op in nests_of(module).body.block.ops if isinstance(op, tt.FuncOp))
    function.detach()
    name = StringAttr(f"{fn.__name__}_{target}")
    function.properties |= {"sym_name": name, "sym_visibility": StringAttr("private")}
    return function


def kernel(row: str, size: tuple[int, ...]) -> ModuleOp:
    case = (LINE if row in LINE else PAIR)[row]
    args: dict[str, Any] = dict(zip(("x", "y", "out"), case.arrays(*size), strict=True))
    return nests_of(unoptimised(case.kernel, args, dict(zip("NM", size, strict=False)))[0])


def check(cpu: OtherCpu, module: ModuleOp) -> None:
    """Compile, and look for calls of functions that may be missing."""
    found = Layout(Object(cpu.compiled(cpu.text(module)), MACHINES[cpu.facts.arch]))
    if strange := found.stubs.keys() - CALLED:
        raise AssertionError(f"the code calls {', '.join(sorted(strange))}")


def run_case(row: str, cpu: str, size: tuple[int, ...]) -> None:
    if row in CASTS:
        module = casts(CASTS[row], *size)
    else:
        module = operations(NUMBERS[row], *size) if row in NUMBERS else kernel(row, size)
    check(CPUS[cpu], module)


def cases() -> Iterator[tuple[str, str, tuple[int, ...]]]:
    for cpu in CPUS:
        yield from ((row, cpu, (size,)) for row in (*CASTS, *NUMBERS, *LINE) for size in SIZES)
        yield from ((row, cpu, (size, other)) for row in PAIR for size in SIZES for other in (3, 7, 35))


def few_cases() -> list[tuple[str, str, tuple[int, ...]]]:
    """Some of all rows for all CPUs: the sizes in turn, so that neighbouring rows and CPUs have others, and a third of
    `OPS`."""
    lines, pairs = (3, 11, 5, 7, 19, 35, 13), ((3, 11), (7, 5), (11, 35), (5, 3))
    found = []
    for number, cpu in enumerate(CPUS):
        rows = [*CASTS, *LINE, *(row for index, row in enumerate(NUMBERS) if (index + number) % 3 == 0)]
        found += [(row, cpu, (3,)) for row in ("cast_i64", "cast_fp64")]
        found += [(row, cpu, (lines[(index + number) % len(lines)],)) for index, row in enumerate(rows)]
        found += [(row, cpu, pairs[(index + number) % len(pairs)]) for index, row in enumerate(PAIR)]
    return found


def repeat(case: tuple[Any, ...]) -> str:
    row, cpu, size = case
    return f"python -m tests.targets.cpu_code_cases {row} --cpu {cpu} --size {size_text(size)}"


def main() -> int:
    parser: argparse.ArgumentParser = options(__doc__)
    parser.add_argument("--cpu", action="append", choices=list(CPUS), help="only for this one")
    parser.add_argument("--few", action="store_true", help="those of `make test`")
    args = parser.parse_args()
    wanted = (case for case in (few_cases() if args.few else cases()) if not args.cpu or case[1] in args.cpu)
    return sweep(chosen(wanted, args), run_case, repeat, args)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
