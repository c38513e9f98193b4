// RUN: tilework opt %s -p convert-triton-to-tile-loops

// A carried tile is updated in place.

// CHECK-LABEL: tt.func public @in_place(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<16xf32>
// CHECK-NOT: ttc.alloc
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %n step %{{.*}}  : i32 {
// CHECK: ttc.nest [16] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32):
// CHECK-NEXT: %[[OLD:.*]] = ttc.read %[[B]][%[[I]]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f32
// CHECK-NEXT: ttc.write %[[NEW]], %[[B]][%[[I]]]
// CHECK: ttc.nest [16] {
// CHECK: ttc.read %[[B]]
// CHECK: tt.store
tt.func public @in_place(%x: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.000000e+00> : tensor<16xf32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%u = %z) -> (tensor<16xf32>) : i32 {
    %v = tt.load %q : tensor<16x!tt.ptr<f32>>
    %w = arith.addf %u, %v : tensor<16xf32>
    scf.yield %w : tensor<16xf32>
  }
  tt.store %q, %s : tensor<16x!tt.ptr<f32>>
  tt.return
}

// Where the new value needs other elements of the old one, it goes to a temporary first.

// CHECK-LABEL: tt.func public @through_temporary(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<16x16xf32>
// CHECK: %[[T:.*]] = ttc.alloc : !ttc.buf<16x16xf32>
// CHECK: scf.for
// CHECK: ttc.nest [16, 16] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK-NEXT: %[[OLD:.*]] = ttc.read %[[B]][%[[J]], %[[I]]]
// CHECK-NEXT: ttc.write %[[OLD]], %[[T]][%[[I]], %[[J]]]
// CHECK: ttc.nest [16, 16] {
// CHECK: %[[NEW:.*]] = ttc.read %[[T]]
// CHECK-NEXT: ttc.write %[[NEW]], %[[B]]
tt.func public @through_temporary(%x: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %q2 = tt.reshape %q : tensor<256x!tt.ptr<f32>> -> tensor<16x16x!tt.ptr<f32>>
  %v = tt.load %q2 : tensor<16x16x!tt.ptr<f32>>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%u = %v) -> (tensor<16x16xf32>) : i32 {
    %t = tt.trans %u {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %t : tensor<16x16xf32>
  }
  tt.store %q2, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// A dot adds to the buffer of the carried accumulator.

// CHECK-LABEL: tt.func public @dot(
// CHECK: %[[C:.*]] = ttc.alloc : !ttc.buf<16x16xf32>
// CHECK: scf.for
// CHECK: tt.load
// CHECK: ttc.dot %[[A:.*]], %[[A]], %[[C]] : !ttc.buf<16x16xf32>, !ttc.buf<16x16xf32>, !ttc.buf<16x16xf32>
// CHECK-NEXT: }
// CHECK: ttc.read %[[C]]
// CHECK: tt.store
tt.func public @dot(%x: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %q2 = tt.reshape %q : tensor<256x!tt.ptr<f32>> -> tensor<16x16x!tt.ptr<f32>>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%u = %z) -> (tensor<16x16xf32>) : i32 {
    %v = tt.load %q2 : tensor<16x16x!tt.ptr<f32>>
    %d = tt.dot %v, %v, %u : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.store %q2, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// Both branches write the same buffer.

// CHECK-LABEL: tt.func public @branches(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<16xi32>
// CHECK: scf.if %c {
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: } else {
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: ttc.read %[[B]]
tt.func public @branches(%x: !tt.ptr<i32>, %c: i1, %n: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %s = tt.splat %n : i32 -> tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %v = scf.if %c -> (tensor<16xi32>) {
    %a = arith.addi %r, %s : tensor<16xi32>
    scf.yield %a : tensor<16xi32>
  } else {
    %b = arith.muli %r, %s : tensor<16xi32>
    scf.yield %b : tensor<16xi32>
  }
  tt.store %q, %v : tensor<16x!tt.ptr<i32>>
  tt.return
}

// A tile that one branch passes on is updated in place by the other.

// CHECK-LABEL: tt.func public @one_branch(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<16xi32>
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: scf.if %c {
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: } else {
// CHECK-NEXT: }
// CHECK: ttc.read %[[B]]
tt.func public @one_branch(%x: !tt.ptr<i32>, %c: i1, %n: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %s = tt.splat %n : i32 -> tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %v = scf.if %c -> (tensor<16xi32>) {
    %a = arith.addi %r, %s : tensor<16xi32>
    scf.yield %a : tensor<16xi32>
  } else {
    scf.yield %s : tensor<16xi32>
  }
  tt.store %q, %v : tensor<16x!tt.ptr<i32>>
  tt.return
}

// Functions get tiles by reference, and return them the same way.

// CHECK-LABEL: tt.func private @twice(
// CHECK-SAME: %a: !ttc.buf<16xi32>, %k: i32, %[[OUT:.*]]: !ttc.buf<16xi32>) -> i32
// CHECK: ttc.read %a
// CHECK: ttc.write %{{.*}}, %[[OUT]]
// CHECK: tt.return %{{.*}} : i32
tt.func private @twice(%a: tensor<16xi32>, %k: i32) -> (tensor<16xi32>, i32) attributes {noinline = true} {
  %s = arith.addi %a, %a : tensor<16xi32>
  %k2 = arith.addi %k, %k : i32
  tt.return %s, %k2 : tensor<16xi32>, i32
}

// CHECK-LABEL: tt.func public @call(
// CHECK: ttc.write %{{.*}}, %[[IN:[^ \[]+]][
// CHECK: tt.call @twice(%[[IN]], %n, %[[RESULT:.*]]) : (!ttc.buf<16xi32>, i32, !ttc.buf<16xi32>) -> i32
// CHECK: ttc.read %[[RESULT]]
tt.func public @call(%x: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %y, %k = tt.call @twice(%r, %n) : (tensor<16xi32>, i32) -> (tensor<16xi32>, i32)
  tt.store %q, %y : tensor<16x!tt.ptr<i32>>
  tt.return
}
