"""Mistakes that drawn kernels found, as small as they became."""

from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.tools.check_each import check_each
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
