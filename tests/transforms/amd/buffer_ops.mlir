// RUN: tilework opt %s -p tritonamdgpu-canonicalize-pointers,canonicalize,tritonamdgpu-convert-buffer-ops,tritonamdgpu-fold-true-cmpi,canonicalize,cse

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #blocked}>
#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// What is the same for all elements is added up as scalars; the stride of rows is a hint.
// CHECK-LABEL: @parts
// CHECK-DAG:  %[[ROW:.*]] = arith.muli %{{.*}}, %stride : i32
// CHECK-DAG:  %[[ROWS:.*]] = tt.splat %[[ROW]] : i32 -> tensor<16x64xi32, #blocked>
// CHECK:      %[[OFFSETS:.*]] = arith.addi %[[ROWS]],
// CHECK:      amdg.buffer_load %x[%[[OFFSETS]]] stride = %stride : tensor<16x64xf32, #blocked>
// CHECK:      %[[OWN:.*]] = arith.addi
// CHECK-NEXT: amdg.buffer_load %x[%[[OWN]]] stride = %stride : tensor<16x64xf32, #blocked>
tt.func @parts(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %stride: i32, %start: i32) -> (tensor<16x64xf32, #blocked>, tensor<16x64xf32, #blocked>) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #rows>
  %first = tt.splat %start : i32 -> tensor<16xi32, #rows>
  %rows = arith.addi %first, %r : tensor<16xi32, #rows>
  %s = tt.splat %stride : i32 -> tensor<16x1xi32, #blocked>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #blocked>
  %e = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #blocked>
  %m = arith.muli %e, %s : tensor<16x1xi32, #blocked>
  %b = tt.broadcast %m : tensor<16x1xi32, #blocked> -> tensor<16x64xi32, #blocked>
  %q = tt.addptr %p, %b : tensor<16x64x!tt.ptr<f32>, #blocked>, tensor<16x64xi32, #blocked>
  %v = tt.load %q : tensor<16x64x!tt.ptr<f32>, #blocked>
  %e2 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #blocked>
  %m2 = arith.muli %e2, %s : tensor<16x1xi32, #blocked>
  %b2 = tt.broadcast %m2 : tensor<16x1xi32, #blocked> -> tensor<16x64xi32, #blocked>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %e3 = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %b3 = tt.broadcast %e3 : tensor<1x64xi32, #blocked> -> tensor<16x64xi32, #blocked>
  %o = arith.addi %b2, %b3 : tensor<16x64xi32, #blocked>
  %q2 = tt.addptr %p, %o : tensor<16x64x!tt.ptr<f32>, #blocked>, tensor<16x64xi32, #blocked>
  %v2 = tt.load %q2 : tensor<16x64x!tt.ptr<f32>, #blocked>
  tt.return %v, %v2 : tensor<16x64xf32, #blocked>, tensor<16x64xf32, #blocked>
}

// A loop carries offsets of 32 bits in place of pointers; what 64 bits add is cut.
// CHECK-LABEL: @carried
// CHECK:      %[[STEP:.*]] = arith.trunci %step : i64 to i32
// CHECK:      scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[O:.*]] = %{{.*}}) -> (tensor<1024xf32, #blocked1>, tensor<1024xi32, #blocked1>)
// CHECK:        amdg.buffer_load %x[%[[O]]], %{{.*}}, %{{.*}} cacheModifier = cg : tensor<1024xf32, #blocked1>
// CHECK-NOT:    tt.addptr
tt.func @carried(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %n: i32, %step: i64, %mask: tensor<1024xi1, #line>, %other: tensor<1024xf32, #line>) -> tensor<1024xf32, #line> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #line>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
  %s = tt.splat %step : i64 -> tensor<1024xi64, #line>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %q) -> (tensor<1024xf32, #line>, tensor<1024x!tt.ptr<f32>, #line>)  : i32 {
    %v = tt.load %at, %mask, %other cacheModifier = cg : tensor<1024x!tt.ptr<f32>, #line>
    %t = arith.addf %a, %v : tensor<1024xf32, #line>
    %next = tt.addptr %at, %s : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi64, #line>
    scf.yield %t, %next : tensor<1024xf32, #line>, tensor<1024x!tt.ptr<f32>, #line>
  }
  tt.return %r#0 : tensor<1024xf32, #line>
}

// An array of which nothing is known, and one that is read as it may change: no buffers, though the first offsets would fit.
// CHECK-LABEL: @plain
// CHECK:      amdg.buffer_load %y[
// CHECK:      tt.load {{.*}} {isVolatile = true}
// CHECK:      tt.load
// CHECK:      amdg.buffer_store %{{.*}}, %x[%{{.*}}] : tensor<1024xf32, #blocked1>
tt.func @plain(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32>, %n: i32) {
  %true = arith.constant dense<true> : tensor<1024xi1, #line>
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #line>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #line>
  %s = tt.splat %n : i32 -> tensor<1024xi32, #line>
  %o = arith.addi %i, %s : tensor<1024xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
  %q = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
  %p1 = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
  %q1 = tt.addptr %q, %i : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
  %q2 = tt.addptr %q, %o : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
  %v = tt.load %q1 : tensor<1024x!tt.ptr<f32>, #line>
  %w = tt.load %p1 {isVolatile = true} : tensor<1024x!tt.ptr<f32>, #line>
  %u = tt.load %q2 : tensor<1024x!tt.ptr<f32>, #line>
  %a = arith.addf %v, %w : tensor<1024xf32, #line>
  %b = arith.addf %a, %u : tensor<1024xf32, #line>
  tt.store %p1, %b, %true : tensor<1024x!tt.ptr<f32>, #line>
  tt.return
}

// CHECK-LABEL: @always
// CHECK-DAG:  %[[TRUE:.*]] = arith.constant true
// CHECK-DAG:  %[[MAYBE:.*]] = arith.cmpi slt, %{{.*}}, %n : i32
// CHECK:      tt.return %[[TRUE]], %[[MAYBE]], %[[TRUE]]
tt.func @always(%n: i32) -> (i1, i1, i1) {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %pid = tt.get_program_id x : i32
  %rest = arith.remsi %pid, %c8 : i32
  %a = arith.cmpi sge, %pid, %c0 : i32
  %b = arith.cmpi slt, %pid, %n : i32
  %c = arith.cmpi ult, %rest, %c8 : i32
  tt.return %a, %b, %c : i1, i1, i1
}

// A masked element is 0 without `other`; -0.0 and other values have to be given.
// CHECK-LABEL: @others
// CHECK:      %[[MINUS:.*]] = arith.constant dense<-0.000000e+00>
// CHECK:      amdg.buffer_load %x[%{{.*}}], %mask : tensor<1024xf32
// CHECK:      amdg.buffer_load %x[%{{.*}}], %mask, %[[MINUS]] : tensor<1024xf32
tt.func @others(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %mask: tensor<1024xi1, #line>) -> (tensor<1024xf32, #line>, tensor<1024xf32, #line>) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #line>
  %minus = arith.constant dense<-0.0> : tensor<1024xf32, #line>
  %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %r : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
  %u = tt.load %q, %mask, %zero : tensor<1024x!tt.ptr<f32>, #line>
  %v = tt.load %q, %mask, %minus : tensor<1024x!tt.ptr<f32>, #line>
  tt.return %u, %v : tensor<1024xf32, #line>, tensor<1024xf32, #line>
}
}
