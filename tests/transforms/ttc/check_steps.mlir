// RUN: tilework opt %s -p ttc-check-steps

// CHECK-LABEL: tt.func public @runtime(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[OK:.*]] = arith.cmpi sgt, %s, %[[ZERO]] : i64
// CHECK-NEXT: tt.assert %[[OK]], "the step of a loop must be positive" : i1
// CHECK-NEXT: scf.for %{{.*}} = %a to %b step %s
tt.func public @runtime(%p: !tt.ptr<i64>, %a: i64, %b: i64, %s: i64) {
  scf.for %i = %a to %b step %s : i64 {
    tt.store %p, %i : !tt.ptr<i64>
  }
  tt.return
}

// CHECK-LABEL: tt.func public @constant(
// CHECK-NOT: tt.assert
tt.func public @constant(%p: !tt.ptr<i32>, %a: i32, %b: i32) {
  %c4 = arith.constant 4 : i32
  scf.for %i = %a to %b step %c4 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  }
  tt.return
}
