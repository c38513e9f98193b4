// RUN: tilework opt %s -p convert-triton-to-tile-loops

// Elementwise work is one nest without buffers; addresses and masks are computed where they are used.

// CHECK-LABEL: tt.func public @elementwise(
// CHECK-NOT: ttc.alloc
// CHECK: ttc.nest [64] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32):
// CHECK-NEXT: %[[P:.*]] = tt.addptr %x, %[[I]] : !tt.ptr<f32>, i32
// CHECK-NEXT: %[[M:.*]] = arith.cmpi slt, %[[I]], %n : i32
// CHECK-NEXT: %[[V:.*]] = tt.load %[[P]], %[[M]] : !tt.ptr<f32>
// CHECK-NEXT: %[[E:.*]] = math.exp %[[V]] : f32
// CHECK-NEXT: tt.store %[[P]], %[[E]], %[[M]] : !tt.ptr<f32>
// CHECK-NEXT: ttc.end
// CHECK-NOT: ttc.nest
// CHECK: tt.return
tt.func public @elementwise(%x: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %s = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %r, %s : tensor<64xi32>
  %v = tt.load %q, %m : tensor<64x!tt.ptr<f32>>
  %e = math.exp %v : tensor<64xf32>
  tt.store %q, %e, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// A reduction joins the nest of its source; the source is kept for the nest that needs both.

// CHECK-LABEL: tt.func public @reduction(
// CHECK-DAG: %[[ACC:.*]] = ttc.alloc : !ttc.buf<f32>
// CHECK-DAG: %[[KEPT:.*]] = ttc.alloc : !ttc.buf<64xf32>
// CHECK: ttc.nest [64] {
// CHECK: %[[V:.*]] = tt.load
// CHECK: ttc.reduce %[[V]] into %[[ACC]][] {
// CHECK: ttc.write %[[V]], %[[KEPT]][%{{.*}}] : !ttc.buf<64xf32>
// CHECK: %[[S:.*]] = ttc.read %[[ACC]][] : !ttc.buf<f32>
// CHECK: ttc.nest [64] {
// CHECK: %[[W:.*]] = ttc.read %[[KEPT]][%{{.*}}] : !ttc.buf<64xf32>
// CHECK: arith.subf %[[W]], %[[S]] : f32
// CHECK: tt.store
tt.func public @reduction(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %q : tensor<64x!tt.ptr<f32>>
  %t = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %s = tt.splat %t : f32 -> tensor<64xf32>
  %d = arith.subf %v, %s : tensor<64xf32>
  %py = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qy = tt.addptr %py, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %qy, %d : tensor<64x!tt.ptr<f32>>
  tt.return
}

// A row that is added to every row of a tile is loaded once, in front; the tile itself needs no buffer.

// CHECK-LABEL: tt.func public @bias(
// CHECK: %[[ROW:.*]] = ttc.alloc : !ttc.buf<16xf32>
// CHECK-NOT: ttc.alloc
// CHECK: ttc.nest [16] {
// CHECK: ttc.write %{{.*}}, %[[ROW]][%{{.*}}] : !ttc.buf<16xf32>
// CHECK: ttc.nest [16, 16] {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[J:.*]]: i32):
// CHECK: tt.load
// CHECK: ttc.read %[[ROW]][%[[J]]] : !ttc.buf<16xf32>
// CHECK: tt.store
tt.func public @bias(%x: !tt.ptr<f32>, %b: !tt.ptr<f32>, %stride: i32) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %e0 = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %e1 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %st = tt.splat %stride : i32 -> tensor<16x1xi32>
  %m = arith.muli %e1, %st : tensor<16x1xi32>
  %b0 = tt.broadcast %e0 : tensor<1x16xi32> -> tensor<16x16xi32>
  %b1 = tt.broadcast %m : tensor<16x1xi32> -> tensor<16x16xi32>
  %o = arith.addi %b0, %b1 : tensor<16x16xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.addptr %p, %o : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  %v = tt.load %q : tensor<16x16x!tt.ptr<f32>>
  %bp = tt.splat %b : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %bq = tt.addptr %bp, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %bias = tt.load %bq : tensor<16x!tt.ptr<f32>>
  %be = tt.expand_dims %bias {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  %bb = tt.broadcast %be : tensor<1x16xf32> -> tensor<16x16xf32>
  %s = arith.addf %v, %bb : tensor<16x16xf32>
  tt.store %q, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// A store to other elements of the array that was loaded waits until all elements are loaded.

// CHECK-LABEL: tt.func public @reverse(
// CHECK: %[[ALL:.*]] = ttc.alloc : !ttc.buf<64xf32>
// CHECK: ttc.nest [64] {
// CHECK: tt.load
// CHECK-NOT: tt.store
// CHECK: ttc.write %{{.*}}, %[[ALL]]
// CHECK: ttc.nest [64] {
// CHECK: ttc.read %[[ALL]]
// CHECK: tt.store
tt.func public @reverse(%x: !tt.ptr<f32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c63 = arith.constant dense<63> : tensor<64xi32>
  %back = arith.subi %c63, %r : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %w = tt.addptr %p, %back : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %q : tensor<64x!tt.ptr<f32>>
  tt.store %w, %v : tensor<64x!tt.ptr<f32>>
  tt.return
}

// Joins, reshapes and splits are index arithmetic: nothing is kept but what crosses elements.

// CHECK-LABEL: tt.func public @interleave(
// CHECK-NOT: ttc.alloc
// CHECK: ttc.nest [64, 2] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32, %[[K:.*]]: i32):
// CHECK-DAG: arith.cmpi eq, %[[K]], %{{.*}} : i32
// CHECK: arith.select
// CHECK: tt.store
tt.func public @interleave(%y: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %s = tt.splat %n : i32 -> tensor<64xi32>
  %j = tt.join %r, %s : tensor<64xi32> -> tensor<64x2xi32>
  %f = tt.reshape %j : tensor<64x2xi32> -> tensor<128xi32>
  %r2 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %p = tt.splat %y : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %q = tt.addptr %p, %r2 : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %q, %f : tensor<128x!tt.ptr<i32>>
  tt.return
}

// A transposed tile goes through a buffer.

// CHECK-LABEL: tt.func public @transposed(
// CHECK: %[[T:.*]] = ttc.alloc : !ttc.buf<16x8xf32>
// CHECK: ttc.nest
// CHECK: tt.load
// CHECK: ttc.nest [8, 16] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK: ttc.read %[[T]][%[[J]], %[[I]]] : !ttc.buf<16x8xf32>
tt.func public @transposed(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %q2 = tt.reshape %q : tensor<128x!tt.ptr<f32>> -> tensor<16x8x!tt.ptr<f32>>
  %v = tt.load %q2 : tensor<16x8x!tt.ptr<f32>>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<16x8xf32> -> tensor<8x16xf32>
  %py = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %qy = tt.addptr %py, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %qy2 = tt.reshape %qy : tensor<128x!tt.ptr<f32>> -> tensor<8x16x!tt.ptr<f32>>
  tt.store %qy2, %t : tensor<8x16x!tt.ptr<f32>>
  tt.return
}

// A gather reads a buffer at a computed index; an index that may be outside is taken modulo the size.

// CHECK-LABEL: tt.func public @gathered(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<64xi32>
// CHECK: ttc.nest [64] {
// CHECK: ttc.write %{{.*}}, %[[B]]
// CHECK: ttc.nest [64] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: i32):
// CHECK: %[[X:.*]] = arith.xori %[[I]], %{{.*}} : i32
// CHECK-NEXT: ttc.read %[[B]][%[[X]]] : !ttc.buf<64xi32>
// CHECK: %[[S:.*]] = arith.addi %[[I]], %{{.*}} : i32
// CHECK-NEXT: %[[A:.*]] = arith.andi %[[S]], %{{.*}} : i32
// CHECK-NEXT: ttc.read %[[B]][%[[A]]] : !ttc.buf<64xi32>
tt.func public @gathered(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %v = tt.load %q : tensor<64x!tt.ptr<i32>>
  %c4 = arith.constant dense<4> : tensor<64xi32>
  %i = arith.xori %r, %c4 : tensor<64xi32>
  %g = tt.gather %v[%i] {axis = 0 : i32} : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  %s = tt.splat %n : i32 -> tensor<64xi32>
  %i2 = arith.addi %r, %s : tensor<64xi32>
  %g2 = tt.gather %v[%i2] {axis = 0 : i32} : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  %z = arith.addi %g, %g2 : tensor<64xi32>
  %py = tt.splat %y : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %qy = tt.addptr %py, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  tt.store %qy, %z : tensor<64x!tt.ptr<i32>>
  tt.return
}

// A load that is needed only behind a reduction waits for it; its row needs no buffer.

// CHECK-LABEL: tt.func public @late_load(
// CHECK: ttc.alloc : !ttc.buf<f32>
// CHECK-NEXT: ttc.nest [64] {
// CHECK: tt.load
// CHECK: ttc.reduce
// CHECK: ttc.nest [64] {
// CHECK: tt.load
// CHECK: tt.store
tt.func public @late_load(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %q : tensor<64x!tt.ptr<f32>>
  %pw = tt.splat %w : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qw = tt.addptr %pw, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %vw = tt.load %qw : tensor<64x!tt.ptr<f32>>
  %t = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %s = tt.splat %t : f32 -> tensor<64xf32>
  %d = arith.mulf %vw, %s : tensor<64xf32>
  %py = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qy = tt.addptr %py, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %qy, %d : tensor<64x!tt.ptr<f32>>
  tt.return
}
