// RUN: tilework opt %s -p tritongpu-reduce-data-duplication

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#e0 = #ttg.dot_op<{opIdx = 0, parent = #a}>

// The aliases are numbered as they appear: operand 0 in 64x32, operand 1 in 32x64, and one for a blocked dot.
// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
// CHECK: #shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: @operands(
// CHECK-NEXT: %0 = ttg.local_alloc %x :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: %2 = ttg.local_alloc %y :
// CHECK-NEXT: %3 = ttg.local_load %2 :
// CHECK-NEXT: tt.return %1, %3 :
tt.func public @operands(%x: tensor<64x32xf16, #a>, %y: tensor<32x64xf16, #a>) -> (tensor<64x32xf16, #d0>, tensor<32x64xf16, #d1>) {
  %0 = ttg.convert_layout %x : tensor<64x32xf16, #a> -> tensor<64x32xf16, #d0>
  %1 = ttg.convert_layout %y : tensor<32x64xf16, #a> -> tensor<32x64xf16, #d1>
  tt.return %0, %1 : tensor<64x32xf16, #d0>, tensor<32x64xf16, #d1>
}

// CHECK-LABEL: @fma(
// CHECK-NEXT: %0 = ttg.local_alloc %x :
// CHECK-NEXT: %1 = ttg.local_load %0 :
// CHECK-NEXT: tt.return %1 :
tt.func public @fma(%x: tensor<64x32xf16, #a>) -> tensor<64x32xf16, #e0> {
  %0 = ttg.convert_layout %x : tensor<64x32xf16, #a> -> tensor<64x32xf16, #e0>
  tt.return %0 : tensor<64x32xf16, #e0>
}

// An accumulator becomes an operand by renaming registers.
// CHECK-LABEL: @registers(
// CHECK-NEXT: %0 = ttg.convert_layout %x :
// CHECK-NEXT: tt.return %0 :
tt.func public @registers(%x: tensor<64x32xf16, #mma>) -> tensor<64x32xf16, #d0> {
  %0 = ttg.convert_layout %x : tensor<64x32xf16, #mma> -> tensor<64x32xf16, #d0>
  tt.return %0 : tensor<64x32xf16, #d0>
}

// Not an operand of a dot.
// CHECK-LABEL: @other(
// CHECK-NEXT: %0 = ttg.convert_layout %x :
// CHECK-NEXT: tt.return %0 :
tt.func public @other(%x: tensor<64x32xf16, #mma>) -> tensor<64x32xf16, #a> {
  %0 = ttg.convert_layout %x : tensor<64x32xf16, #mma> -> tensor<64x32xf16, #a>
  tt.return %0 : tensor<64x32xf16, #a>
}
}
