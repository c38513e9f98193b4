// RUN: tilework opt %s -p 'triton-nvidia-gpu-plan-cta'

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// One block: nothing changes.
// CHECK-LABEL: @one(
// CHECK-NEXT: %[[A:[^ :,)]+]] = "tt.reduce"(%a) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[B:[^ :,)]+]]: f32, %[[C:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addf %[[B]], %[[C]] : f32
// CHECK-NEXT: tt.reduce.return %[[D]] : f32
// CHECK-NEXT: }) : (tensor<64x32xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: tt.return %[[A]] : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
tt.func public @one(%a: tensor<64x32xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> {
  %0 = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %m: f32):
    %x = arith.addf %l, %m : f32
    tt.reduce.return %x : f32
  }) : (tensor<64x32xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
  tt.return %0 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
}
}
