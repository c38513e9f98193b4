// RUN: tilework opt %s -p 'tritongpu-F32DotTC'

#b = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// No tf32 on this target.
// CHECK-LABEL: @tf32x3(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xf32, #blocked>
tt.func public @tf32x3(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}
}
