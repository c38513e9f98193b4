// RUN: tilework opt %s -p "nvgpu-warp-specialization{num-stages=3}"

// Memory that a loop carries is cut like what was stored there: each consumer has half of the rows.
// CHECK-LABEL: @carried_memory
// CHECK:      partition0
// CHECK:      ttg.memdesc_subslice %{{.*}}[0, 0]
// CHECK:      %[[M:.*]] = ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK:      ttng.warp_group_dot %[[M]], %{{.*}} -> tensor<64x64xf32, #mma>
// CHECK:      partition1
// CHECK:      ttg.memdesc_subslice %{{.*}}[64, 0]
// CHECK:      ttng.warp_group_dot
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#bl = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#st = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @carried_memory(%q: !tt.tensordesc<tensor<128x64xf16, #s>>, %k: !tt.tensordesc<tensor<64x64xf16, #s>>, %o: !tt.tensordesc<tensor<128x64xf32, #s>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32, #mma>
  %x = tt.descriptor_load %q[%c0, %c0] : !tt.tensordesc<tensor<128x64xf16, #s>> -> tensor<128x64xf16, #bl>
  %m = ttg.local_alloc %x : (tensor<128x64xf16, #bl>) -> !ttg.memdesc<128x64xf16, #s, #smem>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %qm = %m) -> (tensor<128x64xf32, #mma>, !ttg.memdesc<128x64xf16, #s, #smem>) : i32 {
    %y = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #s>> -> tensor<64x64xf16, #bl>
    %ym = ttg.local_alloc %y : (tensor<64x64xf16, #bl>) -> !ttg.memdesc<64x64xf16, #s, #smem>
    %yt = ttg.memdesc_trans %ym {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #s, #smem> -> !ttg.memdesc<64x64xf16, #st, #smem>
    %d = ttng.warp_group_dot %qm, %yt, %acc {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #s, #smem> * !ttg.memdesc<64x64xf16, #st, #smem> -> tensor<128x64xf32, #mma>
    scf.yield %d, %qm : tensor<128x64xf32, #mma>, !ttg.memdesc<128x64xf16, #s, #smem>
  } {tt.warp_specialize}
  %p = ttg.convert_layout %r#0 : tensor<128x64xf32, #mma> -> tensor<128x64xf32, #bl>
  tt.descriptor_store %o[%c0, %c0], %p : !tt.tensordesc<tensor<128x64xf32, #s>>, tensor<128x64xf32, #bl>
  tt.return
}
}
