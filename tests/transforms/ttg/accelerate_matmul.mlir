// RUN: tilework opt %s --split-input-file -p 'tritongpu-accelerate-matmul'
// 4x8 instructions for 2x2 warps.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @f16_80(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @f16_80(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// 128x256 for 8 warps: 2x4.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 4], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @many_warps(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<128x256xf32, #blocked> -> tensor<128x256xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<64x256xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x256xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x256xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<128x256xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<128x256xf32, #mma> -> tensor<128x256xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<128x256xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @many_warps(%a: tensor<128x64xf16, #d0>, %b: tensor<64x256xf16, #d1>, %c: tensor<128x256xf32, #blocked>) -> tensor<128x256xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #d0> * tensor<64x256xf16, #d1> -> tensor<128x256xf32, #blocked>
  tt.return %d : tensor<128x256xf32, #blocked>
}
}

// -----

// Fewer rows than an instruction has.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @one_row(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<1x16xf32, #blocked> -> tensor<1x16xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<1x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<1x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<1x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<1x16xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<1x16xf32, #mma> -> tensor<1x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<1x16xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @one_row(%a: tensor<1x16xf16, #d0>, %b: tensor<16x16xf16, #d1>, %c: tensor<1x16xf32, #blocked>) -> tensor<1x16xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<1x16xf16, #d0> * tensor<16x16xf16, #d1> -> tensor<1x16xf32, #blocked>
  tt.return %d : tensor<1x16xf32, #blocked>
}
}

// -----

// A batch: all warps along it.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>
// CHECK-LABEL: tt.func @batched(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<4x64x64xf32, #blocked> -> tensor<4x64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<4x64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<4x64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<4x32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<4x32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<4x64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<4x32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<4x64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<4x64x64xf32, #mma> -> tensor<4x64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<4x64x64xf32, #blocked>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#e0 = #ttg.dot_op<{opIdx = 0, parent = #blocked3}>
#e1 = #ttg.dot_op<{opIdx = 1, parent = #blocked3}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @batched(%a: tensor<4x64x32xf16, #e0>, %b: tensor<4x32x64xf16, #e1>, %c: tensor<4x64x64xf32, #blocked3>) -> tensor<4x64x64xf32, #blocked3> {
  %d = tt.dot %a, %b, %c : tensor<4x64x32xf16, #e0> * tensor<4x32x64xf16, #e1> -> tensor<4x64x64xf32, #blocked3>
  tt.return %d : tensor<4x64x64xf32, #blocked3>
}
}

// -----

// bf16.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @bf16(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:86", "ttg.threads-per-warp" = 32 : i32} {
tt.func @bf16(%a: tensor<64x32xbf16, #d0>, %b: tensor<32x64xbf16, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xbf16, #d0> * tensor<32x64xbf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// 8 bits: four neighbours along K in a register.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @int8(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xi32, #blocked> -> tensor<64x64xi32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xi8, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xi32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xi32, #mma> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xi32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @int8(%a: tensor<64x32xi8, #d0>, %b: tensor<32x64xi8, #d1>, %c: tensor<64x64xi32, #blocked>) -> tensor<64x64xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xi8, #d0> * tensor<32x64xi8, #d1> -> tensor<64x64xi32, #blocked>
  tt.return %d : tensor<64x64xi32, #blocked>
}
}

// -----

// f32 as tf32.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @tf32(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]], inputPrecision = tf32 : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>> * tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @tf32(%a: tensor<64x32xf32, #d0>, %b: tensor<32x64xf32, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf32, #d0> * tensor<32x64xf32, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// f64 has tensor cores on 80 and 90.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @f64_80(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf64, #blocked> -> tensor<64x64xf64, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>> * tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>> -> tensor<64x64xf64, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf64, #mma> -> tensor<64x64xf64, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf64, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @f64_80(%a: tensor<64x32xf64, #d0>, %b: tensor<32x64xf64, #d1>, %c: tensor<64x64xf64, #blocked>) -> tensor<64x64xf64, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf64, #d0> * tensor<32x64xf64, #d1> -> tensor<64x64xf64, #blocked>
  tt.return %d : tensor<64x64xf64, #blocked>
}
}

// -----

// mma.sync has no fp8 before 89: the operands become f16 behind the conversion.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @fp8_upcast(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.fp_to_fp %[[V1]] : tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V4:[0-9]+]] = tt.fp_to_fp %[[V2]] : tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V5:[0-9]+]] = tt.dot %[[V3]], %[[V4]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %[[V5]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V6]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @fp8_upcast(%a: tensor<64x32xf8E5M2, #d0>, %b: tensor<32x64xf8E5M2, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf8E5M2, #d0> * tensor<32x64xf8E5M2, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}

// The FNUZ kinds stay what they are.
// CHECK-LABEL: tt.func @fnuz(
// CHECK-NOT: tt.fp_to_fp
// CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x32xf8E4M3FNUZ, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf8E5M2FNUZ, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
tt.func @fnuz(%a: tensor<64x32xf8E4M3FNUZ, #d0>, %b: tensor<32x64xf8E5M2FNUZ, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf8E4M3FNUZ, #d0> * tensor<32x64xf8E5M2FNUZ, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// And has it on 89.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @fp8_native(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:89", "ttg.threads-per-warp" = 32 : i32} {
tt.func @fp8_native(%a: tensor<64x32xf8E4M3FN, #d0>, %b: tensor<32x64xf8E4M3FN, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf8E4M3FN, #d0> * tensor<32x64xf8E4M3FN, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// The end of a chain decides for all: 16 columns, so warps go along M.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @chained(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<32x128xf32, #blocked> -> tensor<32x128xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<16x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x128xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<32x128xf32, #mma> -> tensor<32x128xf32, #blocked>
// CHECK-NEXT: %e = arith.truncf %[[V4]] : tensor<32x128xf32, #blocked> to tensor<32x128xf16, #blocked>
// CHECK-NEXT: %g = ttg.convert_layout %e : tensor<32x128xf16, #blocked> -> tensor<32x128xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %c2 : tensor<32x16xf32, #blocked> -> tensor<32x16xf32, #mma>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %g : tensor<32x128xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<32x128xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V7:[0-9]+]] = ttg.convert_layout %b2 : tensor<128x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.dot %[[V6]], %[[V7]], %[[V5]] : tensor<32x128xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<128x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x16xf32, #mma>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<32x16xf32, #mma> -> tensor<32x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[V9]] : tensor<32x16xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @chained(%a: tensor<32x16xf16, #d0>, %b: tensor<16x128xf16, #d1>, %c: tensor<32x128xf32, #blocked>, %b2: tensor<128x16xf16, #d1>, %c2: tensor<32x16xf32, #blocked>) -> tensor<32x16xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<32x16xf16, #d0> * tensor<16x128xf16, #d1> -> tensor<32x128xf32, #blocked>
  %e = arith.truncf %d : tensor<32x128xf32, #blocked> to tensor<32x128xf16, #blocked>
  %g = ttg.convert_layout %e : tensor<32x128xf16, #blocked> -> tensor<32x128xf16, #d0>
  %h = tt.dot %g, %b2, %c2 : tensor<32x128xf16, #d0> * tensor<128x16xf16, #d1> -> tensor<32x16xf32, #blocked>
  tt.return %h : tensor<32x16xf32, #blocked>
}
}

// -----

// A transposition separates dots.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @separated(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %t = tt.trans %[[V4]] {order = array<i32: 1, 0>} : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: %u = ttg.convert_layout %t : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %u : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V7:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V8:[0-9]+]] = tt.dot %[[V6]], %[[V7]], %[[V5]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V9]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#blockedT = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @separated(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d1 = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  %t = tt.trans %d1 {order = array<i32: 1, 0>} : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blockedT>
  %u = ttg.convert_layout %t : tensor<64x64xf32, #blockedT> -> tensor<64x64xf32, #blocked>
  %d2 = tt.dot %a, %b, %u : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d2 : tensor<64x64xf32, #blocked>
}
}

// -----

// Loaded as 8 bits: kWidth 4.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @mixed_width(
// CHECK-NEXT: %a0 = tt.load %pa0 : tensor<64x32x!tt.ptr<i8>, #blocked>
// CHECK-NEXT: %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %a = arith.sitofp %a0 : tensor<64x32xi8, #blocked> to tensor<64x32xf16, #blocked>
// CHECK-NEXT: %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %x : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %y : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @mixed_width(%pa0: tensor<64x32x!tt.ptr<i8>, #blocked>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a0 = tt.load %pa0 : tensor<64x32x!tt.ptr<i8>, #blocked>
  %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
  %a = arith.sitofp %a0 : tensor<64x32xi8, #blocked> to tensor<64x32xf16, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Two halves joined: kWidth 4 for f16.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @joined(
// CHECK-NEXT: %a0 = tt.load %pa : tensor<64x16x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %a1 = tt.join %a0, %a0 : tensor<64x16xf16, #blocked> -> tensor<64x16x2xf16, #blocked2>
// CHECK-NEXT: %a2 = tt.reshape %a1 : tensor<64x16x2xf16, #blocked2> -> tensor<64x32xf16, #blocked3>
// CHECK-NEXT: %a = ttg.convert_layout %a2 : tensor<64x32xf16, #blocked3> -> tensor<64x32xf16, #blocked1>
// CHECK-NEXT: %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked1> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>>
// CHECK-NEXT: %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked1> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %x : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %y : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked1>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @joined(%pa: tensor<64x16x!tt.ptr<f16>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a0 = tt.load %pa : tensor<64x16x!tt.ptr<f16>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %a1 = tt.join %a0, %a0 : tensor<64x16xf16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<64x16x2xf16, #ttg.blocked<{sizePerThread = [1, 4, 2], threadsPerWarp = [8, 4, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>>
  %a2 = tt.reshape %a1 : tensor<64x16x2xf16, #ttg.blocked<{sizePerThread = [1, 4, 2], threadsPerWarp = [8, 4, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>> -> tensor<64x32xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %a = ttg.convert_layout %a2 : tensor<64x32xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<64x32xf16, #blocked>
  %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// No tensor cores before 80: operands get the type of the result.
// CHECK-LABEL: tt.func @no_tensor_cores_75(
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.extf %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extf %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %d = tt.dot %[[V0]], %[[V1]], %c : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:75", "ttg.threads-per-warp" = 32 : i32} {
tt.func @no_tensor_cores_75(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Integers are sign-extended.
// CHECK-LABEL: tt.func @integers_75(
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.extsi %a : tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<64x32xi32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extsi %b : tensor<32x64xi8, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<32x64xi32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %d = tt.dot %[[V0]], %[[V1]], %c : tensor<64x32xi32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xi32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xi32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:75", "ttg.threads-per-warp" = 32 : i32} {
tt.func @integers_75(%a: tensor<64x32xi8, #d0>, %b: tensor<32x64xi8, #d1>, %c: tensor<64x64xi32, #blocked>) -> tensor<64x64xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xi8, #d0> * tensor<32x64xi8, #d1> -> tensor<64x64xi32, #blocked>
  tt.return %d : tensor<64x64xi32, #blocked>
}
}

// -----

// fp8 has its own op.
// CHECK-LABEL: tt.func @fp8_75(
// CHECK-NEXT: %[[V0:[0-9]+]] = tt.fp_to_fp %a : tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V1:[0-9]+]] = tt.fp_to_fp %b : tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %d = tt.dot %[[V0]], %[[V1]], %c : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:75", "ttg.threads-per-warp" = 32 : i32} {
tt.func @fp8_75(%a: tensor<64x32xf8E5M2, #d0>, %b: tensor<32x64xf8E5M2, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf8E5M2, #d0> * tensor<32x64xf8E5M2, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Must not fire: f32 without tf32.
// CHECK-LABEL: tt.func @ieee(
// CHECK-NEXT: %d = tt.dot %a, %b, %c : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @ieee(%a: tensor<64x32xf32, #d0>, %b: tensor<32x64xf32, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf32, #d0> * tensor<32x64xf32, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Must not fire: no f64 tensor cores.
// CHECK-LABEL: tt.func @f64_86(
// CHECK-NEXT: %d = tt.dot %a, %b, %c : tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf64, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf64, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:86", "ttg.threads-per-warp" = 32 : i32} {
tt.func @f64_86(%a: tensor<64x32xf64, #d0>, %b: tensor<32x64xf64, #d1>, %c: tensor<64x64xf64, #blocked>) -> tensor<64x64xf64, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf64, #d0> * tensor<32x64xf64, #d1> -> tensor<64x64xf64, #blocked>
  tt.return %d : tensor<64x64xf64, #blocked>
}
}

// -----

// Must not fire: no tensor cores for i64.
// CHECK-LABEL: tt.func @int64(
// CHECK-NEXT: %d = tt.dot %a, %b, %c : tensor<64x32xi64, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xi64, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xi64, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xi64, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @int64(%a: tensor<64x32xi64, #d0>, %b: tensor<32x64xi64, #d1>, %c: tensor<64x64xi64, #blocked>) -> tensor<64x64xi64, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xi64, #d0> * tensor<32x64xi64, #d1> -> tensor<64x64xi64, #blocked>
  tt.return %d : tensor<64x64xi64, #blocked>
}
}

// -----

// No tensor core adds f16 in f64.
// CHECK-LABEL: tt.func @f64_accumulator(
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.extf %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.extf %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %d = tt.dot %[[V0]], %[[V1]], %c : tensor<64x32xf64, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf64, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf64, #blocked>
// CHECK-NEXT: tt.return %d : tensor<64x64xf64, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @f64_accumulator(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf64, #blocked>) -> tensor<64x64xf64, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf64, #blocked>
  tt.return %d : tensor<64x64xf64, #blocked>
}
}

// -----

// Must not fire: done already.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @done_already(
// CHECK-NEXT: %d = tt.dot %a, %b, %c : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: tt.return %d : tensor<64x64xf32, #mma>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func @done_already(%a: tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %b: tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}
}
