// RUN: tilework opt %s -p tritonamdgpu-canonicalize-pointers,canonicalize,cse
// RUN: tilework opt %s -p 'tritonamdgpu-canonicalize-pointers{enable-large-tensor-ptr-canon=true},canonicalize,cse' | filecheck %s --check-prefix=LARGE
// RUN: tilework opt %s -p 'tritonamdgpu-canonicalize-pointers{enable-large-tensor-ptr-canon=true},canonicalize,cse' --check-each | filecheck %s --check-prefix=LARGE

#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// An array that may be large: nothing, unless requested. Its offsets have 64 bits, and the pointer is no longer carried.
// CHECK-LABEL: @carried(
// CHECK: scf.for {{.*}} -> (tensor<256xf32, #blocked>, tensor<256x!tt.ptr<f32>, #blocked>)
// LARGE-LABEL: @carried(
// LARGE: scf.for {{.*}} -> (tensor<256xf32, #blocked>, tensor<256xi64, #blocked>)
// LARGE: %[[P:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi64, #blocked>
// LARGE: tt.load %[[P]]
// LARGE: arith.addi %{{.*}} : tensor<256xi64, #blocked>
tt.func @carried(%x: !tt.ptr<f32>, %n: i32, %step: i64) -> tensor<256xf32, #line> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf32, #line>
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %s = tt.splat %step : i64 -> tensor<256xi64, #line>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %q) -> (tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>)  : i32 {
    %v = tt.load %at : tensor<256x!tt.ptr<f32>, #line>
    %t = arith.addf %a, %v : tensor<256xf32, #line>
    %next = tt.addptr %at, %s : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi64, #line>
    scf.yield %t, %next : tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>
  }
  tt.return %r#0 : tensor<256xf32, #line>
}

// A sum of 32 bits may overflow: it is extended as a whole. One of 64 bits is split.
// LARGE-LABEL: @sums(
// LARGE: %[[NARROW:.*]] = arith.addi %{{.*}} : tensor<256xi32, #blocked>
// LARGE: arith.extsi %[[NARROW]] : tensor<256xi32, #blocked> to tensor<256xi64, #blocked>
// LARGE: %[[BOTH:.*]] = arith.addi %a, %b : i64
// LARGE: tt.splat %[[BOTH]] : i64 -> tensor<256xi64, #blocked>
tt.func @sums(%x: !tt.ptr<f32>, %n: i32, %a: i64, %b: i64, %o: tensor<256xf32, #line>) {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %s = tt.splat %n : i32 -> tensor<256xi32, #line>
  %j = arith.addi %i, %s : tensor<256xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %j : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %sa = tt.splat %a : i64 -> tensor<256xi64, #line>
  %sb = tt.splat %b : i64 -> tensor<256xi64, #line>
  %ab = arith.addi %sa, %sb : tensor<256xi64, #line>
  %r = tt.addptr %q, %ab : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi64, #line>
  tt.store %r, %o : tensor<256x!tt.ptr<f32>, #line>
  tt.return
}
}
