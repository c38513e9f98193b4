// RUN: tilework opt %s --split-input-file -p 'tritongpu-accelerate-matmul'
// Copies right behind the loads.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @loaded(
// CHECK-NEXT: %a = tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared, #smem>
// CHECK-NEXT: %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V0]], %[[V1]], %[[V2]] : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @loaded(%pa: tensor<64x32x!tt.ptr<f16>, #blocked>,%pb: tensor<32x64x!tt.ptr<f16>, #blocked>,%c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a = tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
  %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Loaded and transposed is still from memory.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @loaded_and_transposed(
// CHECK-NEXT: %a0 = tt.load %pa0 : tensor<32x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %b0 = tt.load %pb0 : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %a = tt.trans %a0 {order = array<i32: 1, 0>} : tensor<32x64xf16, #blocked> -> tensor<64x32xf16, #blocked1>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf16, #blocked1>) -> !ttg.memdesc<64x32xf16, #shared, #smem>
// CHECK-NEXT: %b = tt.trans %b0 {order = array<i32: 1, 0>} : tensor<64x32xf16, #blocked> -> tensor<32x64xf16, #blocked1>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #blocked1>) -> !ttg.memdesc<32x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked1> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V0]], %[[V1]], %[[V2]] : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked1>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#blockedT = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @loaded_and_transposed(%pa0: tensor<32x64x!tt.ptr<f16>, #blockedT>, %pb0: tensor<64x32x!tt.ptr<f16>, #blockedT>,%c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a0 = tt.load %pa0 : tensor<32x64x!tt.ptr<f16>, #blockedT>
  %b0 = tt.load %pb0 : tensor<64x32x!tt.ptr<f16>, #blockedT>
  %a = tt.trans %a0 {order = array<i32: 1, 0>} : tensor<32x64xf16, #blockedT> -> tensor<64x32xf16, #blocked>
  %b = tt.trans %b0 {order = array<i32: 1, 0>} : tensor<64x32xf16, #blockedT> -> tensor<32x64xf16, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// A computed left operand stays in registers.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @from_registers(
// CHECK-NEXT: %a0 = tt.load %pa0 : tensor<64x32x!tt.ptr<i8>, #blocked>
// CHECK-NEXT: %b = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
// CHECK-NEXT: %a = arith.sitofp %a0 : tensor<64x32xi8, #blocked> to tensor<64x32xf16, #blocked>
// CHECK-NEXT: %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %x : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V2]], %[[V0]], %[[V1]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @from_registers(%pa0: tensor<64x32x!tt.ptr<i8>, #blocked>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
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

// Values from outside are copied at the start of the block.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @arguments(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V2]] : !ttg.memdesc<64x32xf16, #shared1, #smem> * !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @arguments(%a: tensor<64x32xf16, #blocked>, %b: tensor<32x64xf16, #blocked>,%c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Loaded by TMA.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @descriptor(
// CHECK-SAME: %da: !tt.tensordesc<tensor<64x32xf16>>, %db: !tt.tensordesc<tensor<32x64xf16>>, %i: i32, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
// CHECK-NEXT: %a = tt.descriptor_load %da[%i, %i] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared, #smem>
// CHECK-NEXT: %b = tt.descriptor_load %db[%i, %i] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16, #blocked>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V0]], %[[V1]], %[[V2]] : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @descriptor(%da: !tt.tensordesc<tensor<64x32xf16>>, %db: !tt.tensordesc<tensor<32x64xf16>>,%i: i32, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a = tt.descriptor_load %da[%i, %i] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16, #blocked>
  %b = tt.descriptor_load %db[%i, %i] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #d1>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Only 16-bit elements can be transposed by wgmma: a right factor of other elements that is contiguous along N becomes the left one, read into
// registers.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 8]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
// CHECK-LABEL: tt.func @tf32(
// CHECK: %[[M:.*]] = ttg.local_alloc %b : (tensor<32x64xf32, #blocked>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
// CHECK: %[[T:.*]] = ttg.memdesc_trans %[[M]] {order = array<i32: 1, 0>}
// CHECK: %[[A:.*]] = tt.trans %a {order = array<i32: 1, 0>}
// CHECK: %[[R:.*]] = ttg.local_alloc %[[A]] : (tensor<32x64xf32, #blocked1>) -> !ttg.memdesc<32x64xf32, #shared1, #smem>
// CHECK: ttg.memdesc_reshape %[[T]] : !ttg.memdesc<64x32xf32, #shared1, #smem> -> !ttg.memdesc<2x2x4x4x32xf32,
// CHECK: %[[F:.*]] = ttg.local_load {{.*}} -> tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>>
// CHECK: %[[D:.*]] = ttng.warp_group_dot %[[F]], %[[R]],
// CHECK: tt.trans
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @tf32(%pa: tensor<64x32x!tt.ptr<f32>, #blocked>,%pb: tensor<32x64x!tt.ptr<f32>, #blocked>,%c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %a = tt.load %pa : tensor<64x32x!tt.ptr<f32>, #blocked>
  %b = tt.load %pb : tensor<32x64x!tt.ptr<f32>, #blocked>
  %x = ttg.convert_layout %a : tensor<64x32xf32, #blocked> -> tensor<64x32xf32, #d0>
  %y = ttg.convert_layout %b : tensor<32x64xf32, #blocked> -> tensor<32x64xf32, #d1>
  %d = tt.dot %x, %y, %c, inputPrecision = tf32 : tensor<64x32xf32, #d0> * tensor<32x64xf32, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// A left factor of i8 that is contiguous along M is read into registers, with its rows in the order that ldmatrix gives; the right one,
// of which K is contiguous, stays in memory.
// CHECK-LABEL: tt.func @int8_left(
// CHECK: %[[M:.*]] = ttg.local_alloc %a : (tensor<128x64xi8, #blocked>) -> !ttg.memdesc<128x64xi8, #shared, #smem>
// CHECK: %[[R:.*]] = ttg.local_alloc %b
// CHECK: ttg.memdesc_reshape %[[M]] : !ttg.memdesc<128x64xi8, #shared, #smem> -> !ttg.memdesc<8x8x2x1x64xi8,
// CHECK: ttg.memdesc_trans {{.*}} {order = array<i32: 0, 2, 1, 3, 4>}
// CHECK: %[[F:.*]] = ttg.local_load {{.*}} -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK: tt.reshape %c
// CHECK: ttng.warp_group_dot %[[F]], %[[R]],
// CHECK: tt.reshape {{.*}} -> tensor<8x2x8x1x128xi32,
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#blockedT = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @int8_left(%pa: tensor<128x64x!tt.ptr<i8>, #blockedT>, %pb: tensor<64x128x!tt.ptr<i8>, #blockedT>, %c: tensor<128x128xi32, #blocked>) -> tensor<128x128xi32, #blocked> {
  %a = tt.load %pa : tensor<128x64x!tt.ptr<i8>, #blockedT>
  %b = tt.load %pb : tensor<64x128x!tt.ptr<i8>, #blockedT>
  %x = ttg.convert_layout %a : tensor<128x64xi8, #blockedT> -> tensor<128x64xi8, #d0>
  %y = ttg.convert_layout %b : tensor<64x128xi8, #blockedT> -> tensor<64x128xi8, #d1>
  %d = tt.dot %x, %y, %c : tensor<128x64xi8, #d0> * tensor<64x128xi8, #d1> -> tensor<128x128xi32, #blocked>
  tt.return %d : tensor<128x128xi32, #blocked>
}
}

// -----

// fp8 that may be added imprecisely.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 32]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = true, elementBitWidth = 8}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 8}>
// CHECK-LABEL: tt.func @fp8(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<32x64xf8E4M3FN, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> !ttg.memdesc<64x32xf8E4M3FN, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V2]] {maxNumImpreciseAcc = 32 : i32} : !ttg.memdesc<64x32xf8E4M3FN, #shared1, #smem> * !ttg.memdesc<32x64xf8E4M3FN, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @fp8(%a: tensor<64x32xf8E4M3FN, #d0>, %b: tensor<32x64xf8E4M3FN, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c {maxNumImpreciseAcc = 32 : i32} : tensor<64x32xf8E4M3FN, #d0> * tensor<32x64xf8E4M3FN, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// Instructions of i8 are at most 224 wide: 128 divides 256.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 32]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
// CHECK-LABEL: tt.func @int8_width(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<64x256xi8, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<64x256xi8, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> !ttg.memdesc<128x64xi8, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<128x256xi32, #blocked> -> tensor<128x256xi32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V2]] : !ttg.memdesc<128x64xi8, #shared1, #smem> * !ttg.memdesc<64x256xi8, #shared, #smem> -> tensor<128x256xi32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<128x256xi32, #mma> -> tensor<128x256xi32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<128x256xi32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @int8_width(%a: tensor<128x64xi8, #d0>, %b: tensor<64x256xi8, #d1>, %c: tensor<128x256xi32, #blocked>) -> tensor<128x256xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<128x64xi8, #d0> * tensor<64x256xi8, #d1> -> tensor<128x256xi32, #blocked>
  tt.return %d : tensor<128x256xi32, #blocked>
}
}

// -----

// 64 rows for 8 warps: two groups side by side, 128 columns each.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 128, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @warps_beside(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<64x256xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<64x256xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<64x256xf32, #blocked> -> tensor<64x256xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V2]] : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x256xf16, #shared, #smem> -> tensor<64x256xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x256xf32, #mma> -> tensor<64x256xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x256xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @warps_beside(%a: tensor<64x64xf16, #d0>, %b: tensor<64x256xf16, #d1>, %c: tensor<64x256xf32, #blocked>) -> tensor<64x256xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x64xf16, #d0> * tensor<64x256xf16, #d1> -> tensor<64x256xf32, #blocked>
  tt.return %d : tensor<64x256xf32, #blocked>
}
}

// -----

// 128 rows: one below the other.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 256, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @warps_below(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<64x256xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<64x256xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %c : tensor<128x256xf32, #blocked> -> tensor<128x256xf32, #mma>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V2]] : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x256xf16, #shared, #smem> -> tensor<128x256xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<128x256xf32, #mma> -> tensor<128x256xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<128x256xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @warps_below(%a: tensor<128x64xf16, #d0>, %b: tensor<64x256xf16, #d1>, %c: tensor<128x256xf32, #blocked>) -> tensor<128x256xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #d0> * tensor<64x256xf16, #d1> -> tensor<128x256xf32, #blocked>
  tt.return %d : tensor<128x256xf32, #blocked>
}
}

// -----

// A dot that feeds another has its warps along M; the last one has not.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 32, 16]}>
// CHECK: #mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 32, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @chained(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.local_alloc %b : (tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.local_alloc %a : (tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> !ttg.memdesc<64x32xf16, #shared1, #smem>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.local_alloc %b2 : (tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[V3:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttng.warp_group_dot %[[V1]], %[[V0]], %[[V3]] : !ttg.memdesc<64x32xf16, #shared1, #smem> * !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V5:[0-9]+]] = ttg.convert_layout %[[V4]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %e = arith.truncf %[[V5]] : tensor<64x64xf32, #blocked> to tensor<64x64xf16, #blocked>
// CHECK-NEXT: %g = ttg.convert_layout %e : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %c2 : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma1>
// CHECK-NEXT: %[[V7:[0-9]+]] = ttg.convert_layout %g : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>>
// CHECK-NEXT: %[[V8:[0-9]+]] = ttng.warp_group_dot %[[V7]], %[[V2]], %[[V6]] : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma1>
// CHECK-NEXT: %[[V9:[0-9]+]] = ttg.convert_layout %[[V8]] : tensor<64x64xf32, #mma1> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V9]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @chained(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf32, #blocked>, %b2: tensor<64x64xf16, #d1>, %c2: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  %e = arith.truncf %d : tensor<64x64xf32, #blocked> to tensor<64x64xf16, #blocked>
  %g = ttg.convert_layout %e : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #d0>
  %h = tt.dot %g, %b2, %c2 : tensor<64x64xf16, #d0> * tensor<64x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %h : tensor<64x64xf32, #blocked>
}
}

// -----

// fp8 with exact sums: mma.sync.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @precise_fp8(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.fp_to_fp %[[V1]] : tensor<64x32xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V4:[0-9]+]] = tt.fp_to_fp %[[V2]] : tensor<32x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V5:[0-9]+]] = tt.dot %[[V3]], %[[V4]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V6:[0-9]+]] = ttg.convert_layout %[[V5]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V6]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @precise_fp8(%a: tensor<64x32xf8E4M3FN, #d0>, %b: tensor<32x64xf8E4M3FN, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf8E4M3FN, #d0> * tensor<32x64xf8E4M3FN, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// K too small: mma.sync.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @small_k(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x32xi32, #blocked> -> tensor<64x32xi32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x16xi8, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x16xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<16x32xi8, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x32xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x16xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<16x32xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x32xi32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x32xi32, #mma> -> tensor<64x32xi32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x32xi32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @small_k(%a: tensor<64x16xi8, #d0>, %b: tensor<16x32xi8, #d1>, %c: tensor<64x32xi32, #blocked>) -> tensor<64x32xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x16xi8, #d0> * tensor<16x32xi8, #d1> -> tensor<64x32xi32, #blocked>
  tt.return %d : tensor<64x32xi32, #blocked>
}
}

// -----

// No group of four warps: mma.sync.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @two_warps(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x64xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [2, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @two_warps(%a: tensor<64x32xf16, #d0>, %b: tensor<32x64xf16, #d1>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x64xf16, #d1> -> tensor<64x64xf32, #blocked>
  tt.return %d : tensor<64x64xf32, #blocked>
}
}

// -----

// 32 rows: mma.sync.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @few_rows(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<32x128xf32, #blocked> -> tensor<32x128xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x128xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x128xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<32x128xf32, #mma> -> tensor<32x128xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<32x128xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @few_rows(%a: tensor<32x32xf16, #d0>, %b: tensor<32x128xf16, #d1>, %c: tensor<32x128xf32, #blocked>) -> tensor<32x128xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf16, #d0> * tensor<32x128xf16, #d1> -> tensor<32x128xf32, #blocked>
  tt.return %d : tensor<32x128xf32, #blocked>
}
}

// -----

// 8 columns: mma.sync.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func @eight_columns(
// CHECK-NEXT: %[[V0:[0-9]+]] = ttg.convert_layout %c : tensor<64x8xf32, #blocked> -> tensor<64x8xf32, #mma>
// CHECK-NEXT: %[[V1:[0-9]+]] = ttg.convert_layout %a : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V2:[0-9]+]] = ttg.convert_layout %b : tensor<32x8xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x8xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: %[[V3:[0-9]+]] = tt.dot %[[V1]], %[[V2]], %[[V0]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x8xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x8xf32, #mma>
// CHECK-NEXT: %[[V4:[0-9]+]] = ttg.convert_layout %[[V3]] : tensor<64x8xf32, #mma> -> tensor<64x8xf32, #blocked>
// CHECK-NEXT: tt.return %[[V4]] : tensor<64x8xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @eight_columns(%a: tensor<64x32xf16, #d0>, %b: tensor<32x8xf16, #d1>, %c: tensor<64x8xf32, #blocked>) -> tensor<64x8xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #d0> * tensor<32x8xf16, #d1> -> tensor<64x8xf32, #blocked>
  tt.return %d : tensor<64x8xf32, #blocked>
}
}
