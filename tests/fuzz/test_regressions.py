"""Mistakes that generated kernels found, as small as they became."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.devices import SAME, outcome_of
from tests.fuzz.kernels import CPU, HEADER, Kernel
from tests.fuzz.rules import INT32
from tests.fuzz.workers import results
from tilework.inspect.check_each import check_each
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import LINUX, target_machine, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import bf16, f16, f32, i8, i16, ptr, vector, void
from tilework.transforms.registry import parse_pipeline, run_pipeline

TWIN_SUMS = """module {
  tt.func public @sums(%out: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c0) -> (i32, i32)  : i32 {
      %x = arith.addi %a, %i overflow<none> : i32
      %y = arith.addi %b, %i : i32
      scf.yield %x, %y : i32, i32
    }
    %s = arith.addi %r#0, %r#1 : i32
    tt.store %out, %s : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_loop_aware_cse_reads_the_flags_of_ops_in_the_body() -> None:
    """Ops with properties in a loop with two carried values: their flags are compared, and none equals absent."""
    module = parse_module(TWIN_SUMS)
    assert check_each(module, "triton-loop-aware-cse").ok
    run_pipeline(module, parse_pipeline("triton-loop-aware-cse"))
    verify(module)
    assert print_module(module).count("arith.addi") == 2


def outcome(body: str, device: str, folder: Path, seed: int = 1) -> tuple[str, str]:
    """Of a kernel that has arrays `x` and `out` of int32, n = 37 and m = 6."""
    found = outcome_of(
        Kernel(
            seed,
            f"{HEADER}@jit\ndef kernel(x, out, n, m):\n{body}",
            {"x": "*i32", "out": "*i32", "n": "i32", "m": "i32"},
            (),
            {"x": INT32, "out": INT32},
            capability=CPU if device == "native" else 90,
        ),
        device,
        folder,
    )
    return found.kind, found.why


LOOPS = {
    "for": "for {name} in range(n & 3):\n",
    "while": "{name} = 0\n{indent}while {name} < (m & 3):\n{indent}    {name} += 1\n",
    "if": "if n > 3:\n",
}


@pytest.mark.parametrize("nest", list(product(LOOPS, repeat=3)), ids="-".join)
def test_pointers_that_nested_loops_carry(nest: tuple[str, ...], tmp_path: Path) -> None:
    """Each block moves the pointer in front of the inner one and behind it; AMD's offsets go around with it."""
    lines = ["    i = tl.arange(0, 16)\n    p = x + 4096\n    v = tl.load(p + i)\n"]
    for depth, kind in enumerate(nest, 1):
        indent = "    " * depth
        lines += [indent + LOOPS[kind].format(name=f"k{depth}", indent=indent), f"{indent}    p += {depth}\n"]
    lines += [f"{'    ' * 4}v += tl.load(p + i)\n"]
    for depth in (3, 2, 1):
        lines += [f"{'    ' * (depth + 1)}p += {depth + 3}\n"]
    body = "".join([*lines, "    tl.store(out + i, v + tl.load(p + i))\n"])
    assert outcome(body, "hip:gfx942", tmp_path) == (SAME, "")


def copied_in_all_sizes(case: tuple[str, str]) -> int:
    """The bytes of functions for a CPU with all its features that copy vectors of 1 to 40 elements, and reverse
    them."""
    name, element = case
    module = Module("copies")
    scalar: Any = {"bf16": bf16, "f16": f16, "f32": f32, "i8": i8, "i16": i16}[element]
    for size in range(1, 41):
        function = module.function(f"copy{size}", void, [(ptr, "source"), (ptr, "target")])
        b, (source, target) = Builder(function), function.args
        loaded = b.load(vector(scalar, size), source, align=scalar.bits // 8)
        b.store(b.shuffle(loaded, None, range(size)[::-1]), target, align=scalar.bits // 8)
        b.store(loaded, target, align=scalar.bits // 8)
        b.ret(None)
    machine = target_machine(LINUX.format("aarch64" if name.startswith("neo") else "x86_64"), name, "")
    return len(to_object(module.text(), 0, machine, verify=True))


def test_vectors_of_all_sizes_are_moved_on_all_cpus() -> None:
    """LLVM aborts on 9, 17, 25 ... of bf16 for CPUs that have vectors of them but no scalars."""
    names = ("x86-64", "x86-64-v3", "skylake-avx512", "cooperlake", "emeraldrapids", "neoverse-n1", "neoverse-v2")
    cases = list(product(names, ("bf16", "f16", "f32", "i8", "i16")))
    lost = {case: found for case, found in results(copied_in_all_sizes, cases, jobs=1) if not isinstance(found, int)}
    assert not lost
