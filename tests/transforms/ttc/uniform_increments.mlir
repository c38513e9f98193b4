// RUN: tilework opt %s -p ttc-uniform-increments

// The loop carries how far the pointers have moved.

// CHECK-LABEL: tt.func public @pointers(
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[M:.*]] = %{{.*}}) -> (i64)
// CHECK-NEXT: %[[S:.*]] = tt.splat %[[M]] : i64 -> tensor<16xi64>
// CHECK-NEXT: %[[P:.*]] = tt.addptr %q, %[[S]] : tensor<16x!tt.ptr<f32>>, tensor<16xi64>
// CHECK: tt.store %[[P]]
// CHECK: %[[E:.*]] = arith.extsi %n : i32 to i64
// CHECK-NEXT: %[[N:.*]] = arith.addi %[[M]], %[[E]] : i64
// CHECK-NEXT: scf.yield %[[N]] : i64
tt.func public @pointers(%q: tensor<16x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.000000e+00> : tensor<16xf32>
  %step = tt.splat %n : i32 -> tensor<16xi32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%p = %q) -> (tensor<16x!tt.ptr<f32>>) : i32 {
    tt.store %p, %z : tensor<16x!tt.ptr<f32>>
    %next = tt.addptr %p, %step : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    scf.yield %next : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}

// Integers wrap as they did; after the loop the tile is put together again.

// CHECK-LABEL: tt.func public @offsets(
// CHECK: %[[F:.*]] = scf.for %{{.*}} iter_args(%[[M:.*]] = %{{.*}}) -> (i32)
// CHECK: arith.addi %[[M]], %{{.*}} : i32
// CHECK: %[[S:.*]] = tt.splat %[[F]] : i32 -> tensor<16xi32>
// CHECK-NEXT: %[[R:.*]] = arith.addi %q, %[[S]] : tensor<16xi32>
// CHECK-NEXT: tt.return %[[R]]
tt.func public @offsets(%q: tensor<16xi32>, %n: i32) -> tensor<16xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<4> : tensor<16xi32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%p = %q) -> (tensor<16xi32>) : i32 {
    %next = arith.addi %step, %p : tensor<16xi32>
    scf.yield %next : tensor<16xi32>
  }
  tt.return %s : tensor<16xi32>
}

// A tile that grows by another tile stays.

// CHECK-LABEL: tt.func public @by_a_tile(
// CHECK: iter_args(%p = %q) -> (tensor<16xi32>)
tt.func public @by_a_tile(%q: tensor<16xi32>, %step: tensor<16xi32>, %n: i32) -> tensor<16xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%p = %q) -> (tensor<16xi32>) : i32 {
    %next = arith.addi %p, %step : tensor<16xi32>
    scf.yield %next : tensor<16xi32>
  }
  tt.return %s : tensor<16xi32>
}
