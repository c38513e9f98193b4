// RUN: tilework opt %s -p triton-check-bounds

// A store goes only where its argument is: lanes that would leave it are recorded, and masked off.

// CHECK: module attributes {tilework.sanitizer =
// CHECK-LABEL: tt.func public @stored(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !tt.ptr<i64>
// CHECK: %[[A:.*]] = tt.ptr_to_int %p
// CHECK: %[[OFF:.*]] = arith.subi %[[A]], %{{.*}} : tensor<8xi64>
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[OFF]], %{{.*}} : tensor<8xi64>
// CHECK: %[[GOOD:.*]] = arith.andi %[[IN]], %{{.*}} : tensor<8xi1>
// CHECK: "tt.reduce"
// CHECK: scf.if
// CHECK: tt.atomic_rmw add, relaxed, gpu
// CHECK: %[[M:.*]] = arith.andi %[[GOOD]], %m : tensor<8xi1>
// CHECK-NEXT: tt.store %p, %v, %[[M]] : tensor<8x!tt.ptr<f32>>
tt.func public @stored(%x: !tt.ptr<f32>, %i: tensor<8xi32>, %v: tensor<8xf32>, %m: tensor<8xi1>) {
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %p = tt.addptr %s, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %p, %v, %m : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// An address without an origin is looked for in all arrays of the launch. A load without a mask gets one; its `other` stays.

// CHECK-LABEL: tt.func public @loaded(
// CHECK: %[[IN:.*]] = scf.for {{.*}} -> (i1)
// CHECK: tt.load %p, %{{.*}} : !tt.ptr<i8>
// CHECK: tt.load %p, %{{.*}}, %o : !tt.ptr<i8>
tt.func public @loaded(%n: i64, %m: i1, %o: i8) {
  %p = tt.int_to_ptr %n : i64 -> !tt.ptr<i8>
  %a = tt.load %p : !tt.ptr<i8>
  %b = tt.load %p, %m, %o : !tt.ptr<i8>
  tt.return
}

// -----

// Functions that are called get the table too. An exchange, which has no mask, goes to a word of the table instead.

// CHECK-LABEL: tt.func private @f(
// CHECK: %[[Q:.*]] = arith.select %{{.*}}, %p, %{{.*}} : !tt.ptr<i32>
// CHECK-NEXT: tt.atomic_cas acq_rel, gpu, %[[Q]],
// CHECK-LABEL: tt.func public @k(
// CHECK: tt.call @f(%x, %{{.*}}) : (!tt.ptr<i32>, !tt.ptr<i64>) -> ()
tt.func private @f(%p: !tt.ptr<i32>) {
  %c = arith.constant 0 : i32
  %old = tt.atomic_cas acq_rel, gpu, %p, %c, %c : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}
tt.func public @k(%x: !tt.ptr<i32>) {
  tt.call @f(%x) : (!tt.ptr<i32>) -> ()
  tt.return
}

// -----

// Asserts of the sanitizer's become records and warnings, those of the user's stay.

// CHECK-LABEL: tt.func public @asserted(
// CHECK: tt.atomic_rmw add
// CHECK-NOT: "sanitizer: wrong"
// CHECK: tt.store
// CHECK: tt.assert %m, "mine"
tt.func public @asserted(%x: !tt.ptr<i32>, %m: tensor<8xi1>) {
  tt.assert %m, "sanitizer: wrong" : tensor<8xi1>
  tt.assert %m, "sanitizer warning: odd" : tensor<8xi1>
  tt.assert %m, "mine" : tensor<8xi1>
  tt.return
}
