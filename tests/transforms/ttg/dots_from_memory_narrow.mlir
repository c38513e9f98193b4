// RUN: tilework opt %s -p 'tritongpu-dots-from-memory{narrow=true}'

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #c}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #c}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Factors of 16 bits stay as they are.
// CHECK-LABEL: @filled(
// CHECK-NEXT: %[[B:.*]] = ttg.local_alloc %y
// CHECK-NEXT: %[[A:.*]] = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared
// CHECK-NEXT: ttg.local_dot %[[A]], %[[B]], %z : !ttg.memdesc<64x64xf16, #shared{{.*}}> * !ttg.memdesc<64x64xf32
tt.func public @filled(%x: tensor<64x64xf16, #b>, %y: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %xw = arith.extf %x : tensor<64x64xf16, #b> to tensor<64x64xf32, #b>
  %m = ttg.local_alloc %xw : (tensor<64x64xf32, #b>) -> !ttg.memdesc<64x64xf32, #s, #smem>
  %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #s, #smem> -> tensor<64x64xf32, #d0>
  %b = ttg.convert_layout %y : tensor<64x64xf32, #b> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}

// ... also where a copy put them.
// CHECK-LABEL: @copied(
// CHECK-NEXT: ttg.local_dot %m, %{{.*}}, %z : !ttg.memdesc<64x64xf16
tt.func public @copied(%m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %n: !ttg.memdesc<64x64xf32, #s, #smem, mutable>, %z: tensor<64x64xf32, #c>) -> tensor<64x64xf32, #c> {
  %x = ttg.local_load %m : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> tensor<64x64xf16, #b>
  %xw = arith.extf %x : tensor<64x64xf16, #b> to tensor<64x64xf32, #b>
  %f = ttg.local_alloc %xw : (tensor<64x64xf32, #b>) -> !ttg.memdesc<64x64xf32, #s, #smem>
  %a = ttg.local_load %f : !ttg.memdesc<64x64xf32, #s, #smem> -> tensor<64x64xf32, #d0>
  %b = ttg.local_load %n : !ttg.memdesc<64x64xf32, #s, #smem, mutable> -> tensor<64x64xf32, #d1>
  %d = tt.dot %a, %b, %z : tensor<64x64xf32, #d0> * tensor<64x64xf32, #d1> -> tensor<64x64xf32, #c>
  tt.return %d : tensor<64x64xf32, #c>
}
}
