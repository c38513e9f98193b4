// RUN: tilework opt %s -p optimize-amd-lds-usage,allocate-shared-memory

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 2], warpsPerCTA = [1, 4], order = [0, 1]}>

// What needs 128 KiB at once passes through the 64 KiB that there are.
// CHECK: ttg.shared = {{65536|32768|16384}} : i32
// CHECK-LABEL: @two_steps
// CHECK:      %[[T:.*]] = ttg.convert_layout %x {{.*}} : tensor<128x256xf32, #{{.*}}> -> tensor<128x256xf32, #[[TMP:.*]]>
// CHECK-NEXT: ttg.convert_layout %[[T]] {{.*}} : tensor<128x256xf32, #[[TMP]]>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @two_steps(%x: tensor<128x256xf32, #rows>) -> tensor<128x256xf32, #columns> {
  %y = ttg.convert_layout %x : tensor<128x256xf32, #rows> -> tensor<128x256xf32, #columns>
  tt.return %y : tensor<128x256xf32, #columns>
}
}
