"""Targets of asynchronous copies: a tile of 64-bit elements is not a barrier."""

from tilework.analysis.cost import COPIES, copied_to
from tilework.ir.parser import parse_module

TEXT = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%p: tensor<32x!tt.ptr<i64>, #blocked>, %m: !ttg.memdesc<32xi64, #shared, #ttg.shared_memory, mutable>) {
    %t = ttg.async_copy_global_to_local %p, %m : tensor<32x!tt.ptr<i64>, #blocked> -> <32xi64, #shared, #ttg.shared_memory, mutable>
    tt.return
  }
}
"""  # noqa: E501


def test_tiles_of_64_bits() -> None:
    (copy,) = (op for op in parse_module(TEXT).walk() if type(op) in COPIES)
    assert copied_to(copy) is copy.operands[1]
