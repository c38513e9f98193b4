// RUN: tilework opt %s -p 'tritongpu-shorten-partitions,canonicalize'

// Each lane carries its own part of the sum, rescaled with the factor of the row; lanes meet behind the loop. A sum that does
// not start as zero is the first part. A sum of products is not rescaled where all factors of a warp are 1.
// CHECK-LABEL: tt.func @attention(
// CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x4xi1, {{.*}}>, tensor<64x4xf32
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[P:.*]] = %[[FIRST]])
// CHECK: %[[V:.*]] = tt.reshape %{{.*}} : tensor<64x32xf32, #mma> -> tensor<64x4x4x2xf32, #linear>
// CHECK-NEXT: "tt.reduce"(%[[V]]) <{axis = 3 : i32}>
// CHECK: %[[S:.*]] = "tt.reduce"(%{{.*}}) <{axis = 1 : i32}>
// CHECK: %[[M:.*]] = arith.mulf %[[P]], %{{.*}} : tensor<64x4xf32
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[M]], %[[S]]
// CHECK: arith.mulf %{{.*}}, %f2 {"tilework.skip-ones"}
// CHECK: scf.yield %{{.*}}, %[[U]]
// CHECK: "tt.reduce"(%[[R]]#1) <{axis = 1 : i32}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#rows = #ttg.slice<{dim = 1, parent = #mma}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @attention(%a: !ttg.memdesc<64x16xf16, #shared, #smem>, %b: !ttg.memdesc<16x32xf16, #shared, #smem>, %f: tensor<64xf32, #rows>, %f2: tensor<64x32xf32, #mma>, %t0: tensor<64xf32, #rows>, %n: i32, %out: tensor<64x!tt.ptr<f32>, #rows>, %outs: tensor<64x32x!tt.ptr<f32>, #mma>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x32xf32, #mma>
  ttg.warp_specialize()
  default {
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %t = %t0) -> (tensor<64x32xf32, #mma>, tensor<64xf32, #rows>) : i32 {
      %e = math.exp2 %acc : tensor<64x32xf32, #mma>
      %m = arith.mulf %t, %f : tensor<64xf32, #rows>
      %s = "tt.reduce"(%e) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        tt.reduce.return %z : f32
      }) : (tensor<64x32xf32, #mma>) -> tensor<64xf32, #rows>
      %u = arith.addf %m, %s : tensor<64xf32, #rows>
      %scaled = arith.mulf %acc, %f2 : tensor<64x32xf32, #mma>
      %d = ttng.warp_group_dot %a, %b, %scaled {inputPrecision = 0 : i32} : !ttg.memdesc<64x16xf16, #shared, #smem> * !ttg.memdesc<16x32xf16, #shared, #smem> -> tensor<64x32xf32, #mma>
      scf.yield %d, %u : tensor<64x32xf32, #mma>, tensor<64xf32, #rows>
    }
    tt.store %out, %r#1 : tensor<64x!tt.ptr<f32>, #rows>
    tt.store %outs, %r#0 : tensor<64x32x!tt.ptr<f32>, #mma>
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}
