// RUN: tilework opt %s -p 'relayout-tritongpu'

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
// CHECK-NEXT: #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// CHECK-NEXT: #smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Tensors without a layout get one; the others keep theirs.
// CHECK-LABEL: @some(
// CHECK-NEXT: %[[A:[^ :,)]+]] = ttg.local_load %m : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> tensor<64xf32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xf32, #blocked1> -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked2}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.expand_dims %[[B]] {axis = 0 : i32} : tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked2}>> -> tensor<1x64xf32, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<1x64xf32, #blocked2> -> tensor<1x64xf32, #blocked3>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.broadcast %[[D]] : tensor<1x64xf32, #blocked3> -> tensor<16x64xf32, #blocked3>
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addf %[[E]], %[[E]] : tensor<16x64xf32, #blocked3>
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.addf %q, %q : tensor<64xf32, #blocked>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #blocked3>
// CHECK-NEXT: tt.store %[[H]], %[[F]] : tensor<16x64x!tt.ptr<f32>, #blocked3>
// CHECK-NEXT: ttg.local_store %[[G]], %m : tensor<64xf32, #blocked> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @some(%p: !tt.ptr<f32>, %m: !ttg.memdesc<64xf32, #shared, #smem, mutable>, %q: tensor<64xf32, #blocked>) {
  %0 = ttg.local_load %m : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> tensor<64xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %2 = tt.broadcast %1 : tensor<1x64xf32> -> tensor<16x64xf32>
  %3 = arith.addf %2, %2 : tensor<16x64xf32>
  %4 = arith.addf %q, %q : tensor<64xf32, #blocked>
  %5 = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
  tt.store %5, %3 : tensor<16x64x!tt.ptr<f32>>
  ttg.local_store %4, %m : tensor<64xf32, #blocked> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
  tt.return
}

// Everything has a layout.
// CHECK-LABEL: @none(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addf %q, %q : tensor<64xf32, #blocked>
// CHECK-NEXT: tt.return %[[A]] : tensor<64xf32, #blocked>
tt.func public @none(%q: tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked> {
  %0 = arith.addf %q, %q : tensor<64xf32, #blocked>
  tt.return %0 : tensor<64xf32, #blocked>
}

// A partition of two warps.
// CHECK-LABEL: @partition(
// CHECK-NEXT: ttg.warp_specialize(%p)
// CHECK-NEXT: default {
// CHECK-NEXT: ttg.warp_yield
// CHECK-NEXT: }
// CHECK-NEXT: partition0(%[[A:[^ :,)]+]]: !tt.ptr<f32>) num_warps(2) {
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.splat %[[A]] : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked4>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.load %[[B]] : tensor<128x!tt.ptr<f32>, #blocked4>
// CHECK-NEXT: tt.store %[[B]], %[[C]] : tensor<128x!tt.ptr<f32>, #blocked4>
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : (!tt.ptr<f32>) -> ()
// CHECK-NEXT: tt.return
tt.func public @partition(%p: !tt.ptr<f32>) {
  ttg.warp_specialize(%p)
  default {
    ttg.warp_yield
  }
  partition0(%a: !tt.ptr<f32>) num_warps(2) {
    %0 = tt.splat %a : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %1 = tt.load %0 : tensor<128x!tt.ptr<f32>>
    tt.store %0, %1 : tensor<128x!tt.ptr<f32>>
    ttg.warp_return
  } : (!tt.ptr<f32>) -> ()
  tt.return
}
}
