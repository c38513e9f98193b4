// RUN: tilework opt %s -p 'tritongpu-schedule-loops{overlap=true},tritongpu-pipeline'

// The second product runs an iteration late, under what is computed for its next one: the first has been waited for, the second
// is waited for where its left factor is overwritten, behind the sums of rows.
// CHECK-LABEL: tt.func @attention(
// CHECK: ttng.warp_group_dot
// CHECK: scf.for {{.*}} iter_args(
// CHECK: %[[S:.*]] = ttng.warp_group_dot %q, %{{.*}}, %{{.*}} {inputPrecision = 0 : i32, isAsync = true}
// CHECK: arith.mulf %acc
// CHECK: %[[D:.*]] = ttng.warp_group_dot %arg{{[0-9]+}}, %{{.*}}, %{{.*}} {inputPrecision = 0 : i32, isAsync = true}
// CHECK: %[[SW:.*]]:3 = ttng.warp_group_dot_wait %[[S]], {{.*}} {pendings = 1 : i32}
// CHECK: %[[E:.*]] = math.exp2 %[[SW]]#0
// CHECK: %[[L:.*]] = "tt.reduce"(%[[E]])
// CHECK: %[[W:.*]]:4 = ttng.warp_group_dot_wait %[[D]], %[[E]], %[[L]], {{.*}} {pendings = 0 : i32}
// CHECK: arith.truncf %[[W]]#1
// CHECK: tt.load
// CHECK: scf.yield
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.slice<{dim = 1, parent = #mma}>
#op = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @attention(%q: !ttg.memdesc<64x64xf16, #shared, #smem>, %k0: tensor<64x64x!tt.ptr<f16>, #blocked>, %v0: tensor<64x64x!tt.ptr<f16>, #blocked>, %n: i32, %step: tensor<64x64xi32, #blocked>) -> (tensor<64x64xf32, #mma>, tensor<64xf32, #rows>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %none = arith.constant dense<0.000000e+00> : tensor<64xf32, #rows>
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %l = %none, %kp = %k0, %vp = %v0) -> (tensor<64x64xf32, #mma>, tensor<64xf32, #rows>, tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64x!tt.ptr<f16>, #blocked>) : i32 {
    %k = tt.load %kp {tt.latency = 2 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
    %km = ttg.local_alloc %k : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %kt = ttg.memdesc_trans %km {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
    %s = ttng.warp_group_dot %q, %kt, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
    %e = math.exp2 %s : tensor<64x64xf32, #mma>
    %row = "tt.reduce"(%e) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #rows>
    %l1 = arith.addf %l, %row : tensor<64xf32, #rows>
    %shrink = tt.expand_dims %l1 {axis = 1 : i32} : tensor<64xf32, #rows> -> tensor<64x1xf32, #mma>
    %wide = tt.broadcast %shrink : tensor<64x1xf32, #mma> -> tensor<64x64xf32, #mma>
    %scaled = arith.mulf %acc, %wide : tensor<64x64xf32, #mma>
    %h = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %p = ttg.convert_layout %h : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #op>
    %v = tt.load %vp {tt.latency = 2 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
    %vm = ttg.local_alloc %v : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %d = ttng.warp_group_dot %p, %vm, %scaled {inputPrecision = 0 : i32} : tensor<64x64xf16, #op> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %kn = tt.addptr %kp, %step : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
    %vn = tt.addptr %vp, %step : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
    scf.yield %d, %l1, %kn, %vn : tensor<64x64xf32, #mma>, tensor<64xf32, #rows>, tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64x!tt.ptr<f16>, #blocked>
  }
  tt.return %r#0, %r#1 : tensor<64x64xf32, #mma>, tensor<64xf32, #rows>
}
}
