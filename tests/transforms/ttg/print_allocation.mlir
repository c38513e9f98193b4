// RUN: tilework opt %s -p test-print-allocation

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK:      @two
// CHECK-NEXT: ttg.local_alloc => offset = 0, size = 4096
// CHECK-NEXT: ttg.convert_layout => offset = 4096, size = 4096
// CHECK-NEXT: size = 8192
// CHECK-NEXT: @none
// CHECK-NEXT: size = 0
tt.func public @two(%x: tensor<32x32xf32, #a>) {
  %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
  %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
  %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #a>
  tt.return
}
tt.func public @none(%x: tensor<32x32xf32, #a>) {
  tt.return
}
}
