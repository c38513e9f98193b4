// RUN: tilework opt %s -p convert-triton-to-tile-loops

// A reshape between sizes of which loops can have both needs no buffer: 6x4 and 12x2 are the loops 6, 2, 2.

// CHECK-LABEL: tt.func public @same_loops(
// CHECK-NOT: ttc.alloc
// CHECK: ttc.nest [6, 2, 2] {
// CHECK-NOT: div
// CHECK: tt.store
tt.func public @same_loops(%y: !tt.ptr<i32>) {
  %r = tt.make_range {end = 6 : i32, start = 0 : i32} : tensor<6xi32>
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<6xi32> -> tensor<6x1xi32>
  %v = tt.broadcast %e : tensor<6x1xi32> -> tensor<6x4xi32>
  %w = tt.reshape %v : tensor<6x4xi32> -> tensor<12x2xi32>
  %c = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
  %f = tt.expand_dims %c {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  %g = tt.broadcast %f : tensor<1x2xi32> -> tensor<12x2xi32>
  %p = tt.splat %y : !tt.ptr<i32> -> tensor<12x2x!tt.ptr<i32>>
  %q = tt.addptr %p, %g : tensor<12x2x!tt.ptr<i32>>, tensor<12x2xi32>
  tt.store %q, %w : tensor<12x2x!tt.ptr<i32>>
  tt.return
}

// One to 8x3 goes through a buffer, which is read as one row.

// CHECK-LABEL: tt.func public @no_loops_of_both(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<6x4xf32>
// CHECK: ttc.nest [6, 4] {
// CHECK: ttc.write %{{.*}}, %[[B]][%{{.*}}, %{{.*}}] : !ttc.buf<6x4xf32>
// CHECK: ttc.nest [8, 3] {
// CHECK: ttc.read %[[B]][%{{[^,]*}}] : !ttc.buf<6x4xf32>
tt.func public @no_loops_of_both(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %r = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %e = tt.expand_dims %r {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %o = tt.broadcast %e : tensor<1x4xi32> -> tensor<6x4xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<6x4x!tt.ptr<f32>>
  %a = tt.addptr %s, %o : tensor<6x4x!tt.ptr<f32>>, tensor<6x4xi32>
  %v = tt.load %a : tensor<6x4x!tt.ptr<f32>>
  %w = tt.reshape %v : tensor<6x4xf32> -> tensor<8x3xf32>
  %c = tt.make_range {end = 3 : i32, start = 0 : i32} : tensor<3xi32>
  %f = tt.expand_dims %c {axis = 0 : i32} : tensor<3xi32> -> tensor<1x3xi32>
  %g = tt.broadcast %f : tensor<1x3xi32> -> tensor<8x3xi32>
  %p = tt.splat %y : !tt.ptr<f32> -> tensor<8x3x!tt.ptr<f32>>
  %q = tt.addptr %p, %g : tensor<8x3x!tt.ptr<f32>>, tensor<8x3xi32>
  tt.store %q, %w : tensor<8x3x!tt.ptr<f32>>
  tt.return
}

// A larger tile is a buffer of which the part that exists is written, a smaller one a part that is read.

// CHECK-LABEL: tt.func public @resized(
// CHECK: %[[B:.*]] = ttc.alloc : !ttc.buf<8xi32>
// CHECK: ttc.nest [6] {
// CHECK: ttc.write %{{.*}}, %[[B]][%{{.*}}] : !ttc.buf<8xi32>
// CHECK: ttc.nest [5] {
// CHECK: ttc.read %[[B]]
tt.func public @resized(%y: !tt.ptr<i32>) {
  %r = tt.make_range {end = 6 : i32, start = 0 : i32} : tensor<6xi32>
  %v = tt.resize %r : tensor<6xi32> -> tensor<8xi32>
  %w = tt.resize %v : tensor<8xi32> -> tensor<5xi32>
  %c = tt.make_range {end = 5 : i32, start = 0 : i32} : tensor<5xi32>
  %p = tt.splat %y : !tt.ptr<i32> -> tensor<5x!tt.ptr<i32>>
  %q = tt.addptr %p, %c : tensor<5x!tt.ptr<i32>>, tensor<5xi32>
  tt.store %q, %w : tensor<5x!tt.ptr<i32>>
  tt.return
}
