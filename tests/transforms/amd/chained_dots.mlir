// RUN: tilework opt %s -p tritonamdgpu-accelerate-matmul

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #b}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #b}>
// Two instructions of the first dot, whose result has 16 columns, are side by side.
// CHECK-DAG: #[[HEAD:.*]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true, tilesPerWarp = [2, 1]}>
// CHECK-DAG: #[[TAIL:.*]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// A lane holds four elements of the result, which are its operand of the second dot.
// CHECK-LABEL: @chain
// CHECK:      tt.dot {{.*}} : tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[HEAD]], kWidth = 8}>>
// CHECK:      tt.dot {{.*}} : tensor<128x16xf16, #ttg.dot_op<{opIdx = 0, parent = #[[TAIL]], kWidth = 4}>>
tt.func public @chain(%a: tensor<128x32xf16, #d0>, %b: tensor<32x16xf16, #d1>, %c: tensor<128x16xf32, #b>, %v: tensor<16x64xf16, #d1>, %z: tensor<128x64xf32, #b>) -> tensor<128x64xf32, #b> {
  %s = tt.dot %a, %b, %c : tensor<128x32xf16, #d0> * tensor<32x16xf16, #d1> -> tensor<128x16xf32, #b>
  %h = arith.truncf %s : tensor<128x16xf32, #b> to tensor<128x16xf16, #b>
  %p = ttg.convert_layout %h : tensor<128x16xf16, #b> -> tensor<128x16xf16, #d0>
  %d = tt.dot %p, %v, %z : tensor<128x16xf16, #d0> * tensor<16x64xf16, #d1> -> tensor<128x64xf32, #b>
  tt.return %d : tensor<128x64xf32, #b>
}
}
