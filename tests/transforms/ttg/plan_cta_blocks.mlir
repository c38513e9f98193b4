// RUN: tilework opt %s -p 'triton-nvidia-gpu-plan-cta' --verify-each

// What a branch passes to a block is divided like the argument of the block.
// CHECK: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @blocks(
// CHECK:      cf.cond_br %c, ^bb1(%x : tensor<64x64xf32, #blocked1>), ^bb1(%y : tensor<64x64xf32, #blocked1>)
// CHECK-NEXT: ^bb1(%a: tensor<64x64xf32, #blocked1>):
  tt.func public @blocks(%c: i1, %v: f32) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> {
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #blocked>
    %y = tt.splat %v : f32 -> tensor<64x64xf32, #blocked>
    cf.cond_br %c, ^bb1(%x : tensor<64x64xf32, #blocked>), ^bb1(%y : tensor<64x64xf32, #blocked>)
  ^bb1(%a: tensor<64x64xf32, #blocked>):
    %r = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %s = arith.addf %l, %m : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %d = ttg.convert_layout %r : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
    tt.return %d : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
  }

// A tensor in any layout can be stored to shared memory: that does not fix its layout.
// CHECK-LABEL: @stored_too(
// CHECK:      ttg.local_store %x, %{{.*}} : tensor<64x64xf32, #blocked1> ->
  tt.func public @stored_too(%v: f32) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> {
    %x = tt.splat %v : f32 -> tensor<64x64xf32, #blocked>
    %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
    ttg.local_store %x, %m : tensor<64x64xf32, #blocked> -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
    %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %n: f32):
      %s = arith.addf %l, %n : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %d = ttg.convert_layout %r : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
    tt.return %d : tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
  }
}
