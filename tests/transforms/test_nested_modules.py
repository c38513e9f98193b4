"""Modules inside of modules: each is a table of names, and every pass and analysis reaches the functions in it."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.allocation import module_allocation
from tilework.analysis.axis_info import axis_info
from tilework.analysis.membar import barriers
from tilework.ir import tt
from tilework.ir.functions import functions, modules, symbol_of
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.target import Target
from tilework.transforms.registry import parse_pipeline, run_pipeline

BLOCKED = "#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
SHARED = "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>"
FACTS = '"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"'
KERNEL = """
tt.func public @kernel(%x: tensor<128xf32, #blocked>, %p: !tt.ptr<f32>) {
  %a = tt.call @half(%x) : (tensor<128xf32, #blocked>) -> tensor<128xf32, #blocked>
  %m = ttg.local_alloc %a : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #ttg.shared_memory>
  %y = ttg.local_load %m : !ttg.memdesc<128xf32, #shared, #ttg.shared_memory> -> tensor<128xf32, #blocked>
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
  %q = tt.addptr %s, %i : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
  tt.store %q, %y : tensor<128x!tt.ptr<f32>, #blocked>
  tt.return
}
tt.func private @half(%x: tensor<128xf32, #blocked>) -> tensor<128xf32, #blocked> {
  %c = arith.constant dense<FACTOR> : tensor<128xf32, #blocked>
  %y = arith.mulf %x, %c : tensor<128xf32, #blocked>
  tt.return %y : tensor<128xf32, #blocked>
}
tt.func private @unused() {
  tt.return
}
"""


FACTORS = ("5.0e-01", "2.5e-01")
PASSES = (
    *("canonicalize", "sccp", "cse", "dce", "inline", "symbol-dce", "triton-combine", "triton-loop-aware-cse"),
    *("triton-reorder-broadcast", "tt-spin-loads", "triton-check-undefined"),
    *("tritongpu-remove-layout-conversions", "tritongpu-coalesce", "triton-nvidia-optimize-descriptor-encoding"),
    *("tritongpu-optimize-dot-operands", "tritongpu-pipeline", "tritongpu-global-scratch-memory-allocation"),
    *("allocate-shared-memory", "test-print-membar", "test-print-alias", "test-print-allocation"),
)


def kernel(factor: str) -> str:
    return KERNEL.replace("FACTOR", factor)


def alone(factor: str) -> ModuleOp:
    return parse_module(f"{BLOCKED}\n{SHARED}\nmodule attributes {{{FACTS}}} {{ {kernel(factor)} }}")


def nested() -> ModuleOp:
    """Two modules with functions of the same names that differ in one constant, the second two levels down."""
    one, two = map(kernel, FACTORS)
    inside = f"module {{ {one} }}\nmodule {{ module {{ {two} }} }}"
    return parse_module(f"{BLOCKED}\n{SHARED}\nmodule attributes {{{FACTS}}} {{ {inside} }}")


def test_functions_of_modules_in_modules() -> None:
    module = nested()
    assert [symbol_of(function) for function in functions(module)] == ["kernel", "half", "unused"] * 2
    assert len(modules(module)) == 4


@pytest.mark.parametrize("name", PASSES)
def test_a_function_becomes_what_it_becomes_alone(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Constants stay in their functions, calls mean the function beside them, shared memory has offsets and
    barriers."""
    texts: list[str] = []
    for factor in FACTORS:
        module = alone(factor)
        run_pipeline(module, parse_pipeline(name))
        texts += map(print_module, functions(module))
    printed = capsys.readouterr().out
    together = nested()
    run_pipeline(together, parse_pipeline(name))
    together.verify()
    assert [print_module(function) for function in functions(together)] == texts
    assert capsys.readouterr().out == printed


def test_facts_about_values_of_inner_modules() -> None:
    module = nested()
    facts = axis_info(module)
    ranges = [op for op in module.walk() if type(op) is tt.MakeRangeOp]
    assert [facts.of(op.results[0]).contiguity for op in ranges] == [(128,), (128,)]


def test_barriers_of_inner_modules_beside_known_offsets() -> None:
    """The offsets that are given are those of the outer module."""
    module, target = nested(), Target.parse("cuda:90")
    found = barriers(module, target)
    assert len(found.before) == 2
    given = barriers(module, target, own=module_allocation(module, target))
    assert (given.before, given.after) == (found.before, found.after)
