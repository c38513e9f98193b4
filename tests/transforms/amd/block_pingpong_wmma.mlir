// RUN: tilework opt %s -p tritonamdgpu-block-pingpong

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1201", "ttg.threads-per-warp" = 32 : i32} {

// The matrix unit of RDNA takes no turns.
// CHECK-LABEL: @wmma
// CHECK:      scf.for
// CHECK-NOT:  rocdl
// CHECK:      tt.return
tt.func public @wmma(%pa: tensor<64x32x!tt.ptr<f16>, #blocked>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %c: i1, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %x = tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #a>
    %m = tt.splat %c : i1 -> tensor<32x64xi1, #blocked1>
    %y = tt.load %pb, %m : tensor<32x64x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<32x64xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    ttg.local_store %x, %ma : tensor<64x32xf16, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    ttg.local_store %y, %mb : tensor<32x64xf16, #blocked1> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}
}
