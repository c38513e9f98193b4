"""Whole modules as the first compilers on MLIR wrote them, with tensors in shared memory."""

import re
from pathlib import Path

# Every copy is a group, slices are of the `tensor` dialect, dot_op has no kWidth.
MATMUL = (Path(__file__).parent / "old_matmul.mlir").read_text()


def grouped(text: str) -> str:
    """`text` as it was written one year later: groups are closed by an op, and the names are all `triton_gpu`."""
    text = re.sub(r"(\n *%b\w+ = triton_gpu\.insert_slice_async .*)", r"\1\n    triton_gpu.async_commit_group", text)
    text = text.replace("num = 2 : i32", "num = 1 : i32").replace("tensor.extract_slice", "triton_gpu.extract_slice")
    text = re.sub(r"(dot_op<\{opIdx = ., parent = #mma)\}", r"\1, kWidth = 2}", text)
    return text.replace("func.func", "tt.func").replace("    return\n", "    tt.return\n")


GROUPED = grouped(MATMUL)

# C = transpose(A) @ transpose(B), with operands that are read from shared memory by the dot itself.
TRANSPOSED = """
#blocked = #triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #triton_gpu.mma<{version = 2, warpsPerCTA = [4, 1]}>
#shared = #triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#sharedT = #triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
module attributes {"triton_gpu.num-warps" = 4 : i32} {
  func public @product(%a_ptr: !tt.ptr<f16>, %b_ptr: !tt.ptr<f16>, %c_ptr: !tt.ptr<f32>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<32x32xf32, #mma>
    %width = arith.constant dense<32> : tensor<32x1xi32, #blocked>
    %row = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>
    %column = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>
    %row_2d = tt.expand_dims %row {axis = 1 : i32} : (tensor<32xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>) -> tensor<32x1xi32, #blocked>
    %column_2d = tt.expand_dims %column {axis = 0 : i32} : (tensor<32xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>) -> tensor<1x32xi32, #blocked>
    %start = arith.muli %row_2d, %width : tensor<32x1xi32, #blocked>
    %rows = tt.broadcast %start : (tensor<32x1xi32, #blocked>) -> tensor<32x32xi32, #blocked>
    %columns = tt.broadcast %column_2d : (tensor<1x32xi32, #blocked>) -> tensor<32x32xi32, #blocked>
    %offsets = arith.addi %rows, %columns : tensor<32x32xi32, #blocked>
    %a_base = tt.splat %a_ptr : (!tt.ptr<f16>) -> tensor<32x32x!tt.ptr<f16>, #blocked>
    %a_ptrs = tt.addptr %a_base, %offsets : tensor<32x32x!tt.ptr<f16>, #blocked>
    %a = tt.load %a_ptrs {cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<32x32xf16, #blocked>
    %b_base = tt.splat %b_ptr : (!tt.ptr<f16>) -> tensor<32x32x!tt.ptr<f16>, #blocked>
    %b_ptrs = tt.addptr %b_base, %offsets : tensor<32x32x!tt.ptr<f16>, #blocked>
    %b = tt.load %b_ptrs {cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<32x32xf16, #blocked>
    %a_shared = triton_gpu.convert_layout %a : (tensor<32x32xf16, #blocked>) -> tensor<32x32xf16, #shared>
    %b_shared = triton_gpu.convert_layout %b : (tensor<32x32xf16, #blocked>) -> tensor<32x32xf16, #shared>
    %b_again = triton_gpu.convert_layout %b_shared : (tensor<32x32xf16, #shared>) -> tensor<32x32xf16, #shared>
    %b_turned = tt.trans %b_again : (tensor<32x32xf16, #shared>) -> tensor<32x32xf16, #sharedT>
    %c = tt.dot %a_shared, %b_turned, %zero {allowTF32 = true, transA = true, transB = false} : tensor<32x32xf16, #shared> * tensor<32x32xf16, #sharedT> -> tensor<32x32xf32, #mma>
    %c_blocked = triton_gpu.convert_layout %c : (tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #blocked>
    %c_base = tt.splat %c_ptr : (!tt.ptr<f32>) -> tensor<32x32x!tt.ptr<f32>, #blocked>
    %c_ptrs = tt.addptr %c_base, %offsets : tensor<32x32x!tt.ptr<f32>, #blocked>
    tt.store %c_ptrs, %c_blocked : tensor<32x32xf32, #blocked>
    return
  }
}
"""  # noqa: E501

# Both operands in shared memory, as the tensor cores of Hopper read them.
HOPPER = """
#blocked = #triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}>
#mma = #triton_gpu.mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0], instrShape = [16, 64, 16]}>
#shared = #triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0], hasLeadingOffset = true}>
module attributes {"triton_gpu.compute-capability" = 90 : i32, "triton_gpu.num-ctas" = 1 : i32, "triton_gpu.num-warps" = 4 : i32, "triton_gpu.threads-per-warp" = 32 : i32} {
  tt.func public @product(%a_ptr: !tt.ptr<f16, 1>, %b_ptr: !tt.ptr<f16, 1>, %c_ptr: !tt.ptr<f32, 1>) attributes {noinline = false} {
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %width = arith.constant dense<64> : tensor<64x1xi32, #blocked>
    %row = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>
    %column = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>
    %row_2d = tt.expand_dims %row {axis = 1 : i32} : (tensor<64xi32, #triton_gpu.slice<{dim = 1, parent = #blocked}>>) -> tensor<64x1xi32, #blocked>
    %column_2d = tt.expand_dims %column {axis = 0 : i32} : (tensor<64xi32, #triton_gpu.slice<{dim = 0, parent = #blocked}>>) -> tensor<1x64xi32, #blocked>
    %start = arith.muli %row_2d, %width : tensor<64x1xi32, #blocked>
    %rows = tt.broadcast %start : (tensor<64x1xi32, #blocked>) -> tensor<64x64xi32, #blocked>
    %columns = tt.broadcast %column_2d : (tensor<1x64xi32, #blocked>) -> tensor<64x64xi32, #blocked>
    %offsets = arith.addi %rows, %columns : tensor<64x64xi32, #blocked>
    %a_base = tt.splat %a_ptr : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>, #blocked>
    %a_ptrs = tt.addptr %a_base, %offsets : tensor<64x64x!tt.ptr<f16, 1>, #blocked>, tensor<64x64xi32, #blocked>
    %a = tt.load %a_ptrs {cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<64x64xf16, #blocked>
    %b_base = tt.splat %b_ptr : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>, #blocked>
    %b_ptrs = tt.addptr %b_base, %offsets : tensor<64x64x!tt.ptr<f16, 1>, #blocked>, tensor<64x64xi32, #blocked>
    %b = tt.load %b_ptrs {cache = 1 : i32, evict = 1 : i32, isVolatile = false} : tensor<64x64xf16, #blocked>
    %a_shared = triton_gpu.convert_layout %a : (tensor<64x64xf16, #blocked>) -> tensor<64x64xf16, #shared>
    %b_shared = triton_gpu.convert_layout %b : (tensor<64x64xf16, #blocked>) -> tensor<64x64xf16, #shared>
    triton_nvidia_gpu.fence_async_shared {bCluster = false}
    %c = tt.dot %a_shared, %b_shared, %zero {allowTF32 = true, maxNumImpreciseAcc = 0 : i32} : tensor<64x64xf16, #shared> * tensor<64x64xf16, #shared> -> tensor<64x64xf32, #mma>
    %c_blocked = triton_gpu.convert_layout %c : (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #blocked>
    %c_base = tt.splat %c_ptr : (!tt.ptr<f32, 1>) -> tensor<64x64x!tt.ptr<f32, 1>, #blocked>
    %c_ptrs = tt.addptr %c_base, %offsets : tensor<64x64x!tt.ptr<f32, 1>, #blocked>, tensor<64x64xi32, #blocked>
    tt.store %c_ptrs, %c_blocked {cache = 1 : i32, evict = 1 : i32} : tensor<64x64xf32, #blocked>
    tt.return
  }
}
"""  # noqa: E501
