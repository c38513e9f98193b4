// RUN: tilework opt %s -p tritonamdgpu-block-pingpong

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [8], order = [0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: @behind
// CHECK:      ttg.barrier all
// CHECK:      amdg.cond_barrier %[[UPPER:.*]]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   tt.load %pa
// CHECK-NEXT:   tt.load %pb
// CHECK-NEXT:   ttg.memdesc_subslice %ma[0, 0]
// CHECK:        ttg.memdesc_subslice %mb[32, 0]
// CHECK:        ttg.barrier all
// CHECK:        tt.dot
// CHECK:        ttg.barrier all
// CHECK:        ttg.local_store
// CHECK-NEXT:   ttg.local_store
// CHECK-NEXT:   ttg.barrier all
// CHECK:        tt.dot
// CHECK:        ttg.barrier all
// CHECK:      amdg.cond_barrier %[[LOWER:.*]]
tt.func public @behind(%pa: tensor<256x64x!tt.ptr<f16>, #blocked>, %pb: tensor<64x128x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<256x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>, %n: i32) -> tensor<256x128xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<256x128xf32, #mma>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #mma>) : i32 {
    %x = tt.load %pa : tensor<256x64x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<256x64xf16, #shared, #smem, mutable> -> tensor<256x64xf16, #a>
    %y = tt.load %pb : tensor<64x128x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<256x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<256x128xf32, #mma>
    ttg.local_store %x, %ma : tensor<256x64xf16, #blocked> -> !ttg.memdesc<256x64xf16, #shared, #smem, mutable>
    ttg.local_store %y, %mb : tensor<64x128xf16, #blocked1> -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
    scf.yield %d : tensor<256x128xf32, #mma>
  }
  tt.return %r : tensor<256x128xf32, #mma>
}

// Twice the work is cut in four: the second load and its slices come behind the first product.
// CHECK-LABEL: @in_four
// CHECK:      scf.for
// CHECK-NEXT:   tt.load %pa
// CHECK-NEXT:   ttg.memdesc_subslice %ma[0, 0]
// CHECK:        tt.dot
// CHECK:        tt.load %pb
// CHECK-NEXT:   ttg.memdesc_subslice %ma[0, 16]
// CHECK:        tt.dot
// CHECK:        ttg.memdesc_subslice %ma[0, 32]
// CHECK:        ttg.memdesc_subslice %ma[0, 48]
// CHECK:        tt.dot
// CHECK:        ttg.local_store
// CHECK-NEXT:   ttg.local_store
// CHECK-NEXT:   ttg.barrier all
// CHECK:        tt.dot
tt.func public @in_four(%pa: tensor<256x64x!tt.ptr<f16>, #blocked>, %pb: tensor<64x256x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<256x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x256xf16, #shared, #smem, mutable>, %n: i32) -> tensor<256x256xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<256x256xf32, #mma>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x256xf32, #mma>) : i32 {
    %x = tt.load %pa : tensor<256x64x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<256x64xf16, #shared, #smem, mutable> -> tensor<256x64xf16, #a>
    %y = tt.load %pb : tensor<64x256x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<64x256xf16, #shared, #smem, mutable> -> tensor<64x256xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<256x64xf16, #a> * tensor<64x256xf16, #b> -> tensor<256x256xf32, #mma>
    ttg.local_store %x, %ma : tensor<256x64xf16, #blocked> -> !ttg.memdesc<256x64xf16, #shared, #smem, mutable>
    ttg.local_store %y, %mb : tensor<64x256xf16, #blocked1> -> !ttg.memdesc<64x256xf16, #shared, #smem, mutable>
    scf.yield %d : tensor<256x256xf32, #mma>
  }
  tt.return %r : tensor<256x256xf32, #mma>
}

// Warps that add up something together cannot be a step apart.
// CHECK-LABEL: @together
// CHECK-NOT:  amdg.cond_barrier
tt.func public @together(%pa: tensor<256x64x!tt.ptr<f16>, #blocked>, %pb: tensor<64x128x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<256x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>, %n: i32, %v: tensor<512xf32, #line>) -> (tensor<256x128xf32, #mma>, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f0 = arith.constant 0.000000e+00 : f32
  %zero = arith.constant dense<0.000000e+00> : tensor<256x128xf32, #mma>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %f0) -> (tensor<256x128xf32, #mma>, f32) : i32 {
    %x = tt.load %pa : tensor<256x64x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<256x64xf16, #shared, #smem, mutable> -> tensor<256x64xf16, #a>
    %y = tt.load %pb : tensor<64x128x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<256x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<256x128xf32, #mma>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tt.reduce.return %t : f32
    }) : (tensor<512xf32, #line>) -> f32
    %u = arith.addf %s, %sum : f32
    ttg.local_store %x, %ma : tensor<256x64xf16, #blocked> -> !ttg.memdesc<256x64xf16, #shared, #smem, mutable>
    ttg.local_store %y, %mb : tensor<64x128xf16, #blocked1> -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
    scf.yield %d, %u : tensor<256x128xf32, #mma>, f32
  }
  tt.return %r#0, %r#1 : tensor<256x128xf32, #mma>, f32
}
}
