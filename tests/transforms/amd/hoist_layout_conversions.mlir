// RUN: tilework opt %s -p tritonamdgpu-hoist-layout-conversions

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#other = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = true}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// The operand that the loop does not change is converted in front of it; the other conversions stay where they are.
// CHECK-LABEL: @queries
// CHECK:      %[[Q:.*]] = arith.addf %q, %q
// CHECK-NEXT: ttg.convert_layout %[[Q]] : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #ttg.dot_op
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addf
// CHECK-NEXT: ttg.convert_layout %[[Q]] : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked1>
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: ttg.convert_layout %{{.*}} : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #ttg.dot_op
tt.func @queries(%q: tensor<64x64xf16, #blocked>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %twice = arith.addf %q, %q : tensor<64x64xf16, #blocked>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %own = arith.addf %twice, %q : tensor<64x64xf16, #blocked>
    %elsewhere = ttg.convert_layout %twice : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #other>
    %more = arith.mulf %own, %own : tensor<64x64xf16, #blocked>
    %moves = ttg.convert_layout %twice : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #left>
    %stays = ttg.convert_layout %own : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #left>
    tt.print " : " {hex = false, isSigned = array<i32: 0, 0>} : %moves, %stays : tensor<64x64xf16, #left>, tensor<64x64xf16, #left>
  }
  tt.return
}
}
