// RUN: tilework opt %s -p tritonamdgpu-canonicalize-pointers,canonicalize,cse,tritonamdgpu-convert-buffer-ops,canonicalize
// RUN: tilework opt %s -p tritonamdgpu-canonicalize-pointers,canonicalize,cse,tritonamdgpu-convert-buffer-ops,canonicalize --check-each | filecheck %s

#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// One of two small arrays: the base is chosen too.
// CHECK-LABEL: @select(
// CHECK: %[[BASE:.*]] = arith.select %c, %x, %y : !tt.ptr<f32>
// CHECK: amdg.buffer_load %[[BASE]][%i] :
tt.func @select(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %b = arith.select %c, %x, %y : !tt.ptr<f32>
  %p = tt.splat %b : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %v = tt.load %q : tensor<256x!tt.ptr<f32>, #line>
  tt.return %v : tensor<256xf32, #line>
}
// CHECK-LABEL: @select_tensor(
// CHECK-DAG: %[[OFFSET:.*]] = arith.select %c, %{{.*}}, %i : tensor<256xi32, #blocked>
// CHECK-DAG: %[[BASE:.*]] = arith.select %c, %x, %y : !tt.ptr<f32>
// CHECK: amdg.buffer_load %[[BASE]][%[[OFFSET]]] :
tt.func @select_tensor(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %x1 = tt.addptr %x, %n : !tt.ptr<f32>, i32
  %p = tt.splat %x1 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %p2 = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q2 = tt.addptr %p2, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %b = arith.select %c, %q, %q2 : tensor<256x!tt.ptr<f32>, #line>
  %v = tt.load %b : tensor<256x!tt.ptr<f32>, #line>
  tt.return %v : tensor<256xf32, #line>
}
// CHECK-LABEL: @if_tensor(
// CHECK: %[[BASE:.*]] = arith.select %c, %x, %y : !tt.ptr<f32>
// CHECK: %[[OFFSET:.*]] = scf.if %c -> (tensor<256xi32, #blocked>)
// CHECK: amdg.buffer_load %[[BASE]][%[[OFFSET]]] :
tt.func @if_tensor(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %b = scf.if %c -> (tensor<256x!tt.ptr<f32>, #line>) {
  %x1 = tt.addptr %x, %n : !tt.ptr<f32>, i32
  %p = tt.splat %x1 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
    scf.yield %q : tensor<256x!tt.ptr<f32>, #line>
  } else {
  %p2 = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q2 = tt.addptr %p2, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
    scf.yield %q2 : tensor<256x!tt.ptr<f32>, #line>
  }
  %v = tt.load %b : tensor<256x!tt.ptr<f32>, #line>
  tt.return %v : tensor<256xf32, #line>
}
// One of the arrays may be large: both stay whole.
// CHECK-LABEL: @if_mixed(
// CHECK: tt.addptr %x, %n : !tt.ptr<f32>, i32
// CHECK-NEXT: scf.yield %{{.*}} : !tt.ptr<f32>
tt.func @if_mixed(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32>, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %b = scf.if %c -> (!tt.ptr<f32>) {
  %x1 = tt.addptr %x, %n : !tt.ptr<f32>, i32
    scf.yield %x1 : !tt.ptr<f32>
  } else {
    scf.yield %y : !tt.ptr<f32>
  }
  %p = tt.splat %b : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %v = tt.load %q : tensor<256x!tt.ptr<f32>, #line>
  tt.return %v : tensor<256xf32, #line>
}
// CHECK-LABEL: @loop(
// CHECK: scf.for {{.*}} iter_args(%a = %zero, %[[BASE:.*]] = %x)
// CHECK-NEXT: amdg.buffer_load %[[BASE]][%i] :
// CHECK: scf.yield %{{.*}}, %y : tensor<256xf32, #blocked>, !tt.ptr<f32>
tt.func @loop(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %p2 = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q2 = tt.addptr %p2, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %q) -> (tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>)  : i32 {
    %v = tt.load %at : tensor<256x!tt.ptr<f32>, #line>
    %t = arith.addf %a, %v : tensor<256xf32, #line>
    scf.yield %t, %q2 : tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>
  }
  tt.return %r#0 : tensor<256xf32, #line>
}

// Neighbours may be in different arrays, which a buffer instruction cannot read.
// CHECK-LABEL: @elementwise(
// CHECK: tt.load
// CHECK: arith.select %m, %at, %{{.*}} : tensor<256xi1, #blocked>, tensor<256x!tt.ptr<f32>, #blocked>
tt.func @elementwise(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf32, #line>
  %s = tt.splat %n : i32 -> tensor<256xi32, #line>
  %m = arith.cmpi slt, %i, %s : tensor<256xi32, #line>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %p2 = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q2 = tt.addptr %p2, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %q) -> (tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>)  : i32 {
    %v = tt.load %at : tensor<256x!tt.ptr<f32>, #line>
    %t = arith.addf %a, %v : tensor<256xf32, #line>
    %next = arith.select %m, %at, %q2 : tensor<256xi1, #line>, tensor<256x!tt.ptr<f32>, #line>
    scf.yield %t, %next : tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>
  }
  tt.return %r#0 : tensor<256xf32, #line>
}
// Two pointers that a loop exchanges, one of another type.
// CHECK-LABEL: @cast_in_loop(
// CHECK: %[[Y:.*]] = tt.bitcast %y : !tt.ptr<i32> -> !tt.ptr<f32>
// CHECK: scf.for {{.*}} iter_args(%a = %zero, %[[AT:.*]] = %c0_i32, %[[X1:.*]] = %x, %[[OTHER:.*]] = %c0_i32, %[[Y1:.*]] = %[[Y]])
// CHECK: %[[BASE:.*]] = tt.bitcast %[[X1]] : !tt.ptr<f32> -> !tt.ptr<i32>
// CHECK: amdg.buffer_load %[[BASE]][
// CHECK: scf.yield %{{.*}}, %[[OTHER]], %[[Y1]], %{{.*}}, %[[X1]] :
tt.func @cast_in_loop(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<i32> {tt.pointer_range = 32 : i32}, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf32, #line>
  %yf = tt.bitcast %y : !tt.ptr<i32> -> !tt.ptr<f32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %x, %other = %yf) -> (tensor<256xf32, #line>, !tt.ptr<f32>, !tt.ptr<f32>)  : i32 {
    %p = tt.splat %at : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
    %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
    %qi = tt.bitcast %q : tensor<256x!tt.ptr<f32>, #line> -> tensor<256x!tt.ptr<i32>, #line>
    %vi = tt.load %qi : tensor<256x!tt.ptr<i32>, #line>
    %v = tt.bitcast %vi : tensor<256xi32, #line> -> tensor<256xf32, #line>
    %t = arith.addf %a, %v : tensor<256xf32, #line>
    %next = tt.addptr %at, %n : !tt.ptr<f32>, i32
    scf.yield %t, %other, %next : tensor<256xf32, #line>, !tt.ptr<f32>, !tt.ptr<f32>
  }
  tt.return %r#0 : tensor<256xf32, #line>
}
// CHECK-LABEL: @loop_in_if(
// CHECK: %[[BASE:.*]] = arith.select %c, %x, %y : !tt.ptr<f32>
// CHECK: amdg.buffer_load %[[BASE]][%{{.*}}] :
tt.func @loop_in_if(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %y: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %c: i1, %n: i32) -> tensor<256xf32, #line> {
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tt.splat %n : i32 -> tensor<256xi32, #line>
  %zero = arith.constant dense<0.0> : tensor<256xf32, #line>
  %b = scf.if %c -> (!tt.ptr<f32>) {
    %l = scf.for %k = %c0 to %n step %c1 iter_args(%at = %x) -> (!tt.ptr<f32>)  : i32 {
      %next = tt.addptr %at, %k : !tt.ptr<f32>, i32
      scf.yield %next : !tt.ptr<f32>
    }
    scf.yield %l : !tt.ptr<f32>
  } else {
    scf.yield %y : !tt.ptr<f32>
  }
  %p = tt.splat %b : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %at = %q) -> (tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>)  : i32 {
    %v = tt.load %at : tensor<256x!tt.ptr<f32>, #line>
    %t = arith.addf %a, %v : tensor<256xf32, #line>
    %next = tt.addptr %at, %s : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
    scf.yield %t, %next : tensor<256xf32, #line>, tensor<256x!tt.ptr<f32>, #line>
  }
  tt.return %r#0 : tensor<256xf32, #line>
}

// A descriptor keeps its own pointer.
// CHECK-LABEL: @descriptor(
// CHECK: %[[P:.*]] = tt.addptr %x, %n : !tt.ptr<f32>, i32
// CHECK: tt.make_tensor_descriptor %[[P]],
// CHECK: amdg.buffer_load %x[
tt.func @descriptor(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %n: i32) -> (!tt.tensordesc<tensor<8x32xf32>>, tensor<256xf32, #line>) {
  %one = arith.constant 1 : i64
  %stride = arith.constant 32 : i64
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %p = tt.addptr %x, %n : !tt.ptr<f32>, i32
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%stride, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<8x32xf32>>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #line>
  %q = tt.addptr %s, %i : tensor<256x!tt.ptr<f32>, #line>, tensor<256xi32, #line>
  %v = tt.load %q : tensor<256x!tt.ptr<f32>, #line>
  tt.return %d, %v : !tt.tensordesc<tensor<8x32xf32>>, tensor<256xf32, #line>
}
}
