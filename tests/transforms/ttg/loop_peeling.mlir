// RUN: tilework opt %s -p triton-test-loop-peeling

// CHECK-LABEL: @peeled
// CHECK-NEXT:  %[[END:.*]] = arith.subi %ub, %s : i32
// CHECK-NEXT:  %[[R:.*]] = scf.for %i = %lb to %[[END]] step %s iter_args(%a = %x) -> (f32)
// CHECK:       %[[SPAN:.*]] = arith.subi %ub, %lb : i32
// CHECK:       %[[LESS:.*]] = arith.subi %[[SPAN]], %{{.*}} : i32
// CHECK-NEXT:  %[[STEPS:.*]] = arith.divsi %[[LESS]], %s : i32
// CHECK-NEXT:  %[[FAR:.*]] = arith.muli %[[STEPS]], %s : i32
// CHECK-NEXT:  %[[LAST:.*]] = arith.addi %[[FAR]], %lb : i32
// CHECK-NEXT:  %[[ANY:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK-NEXT:  %[[P:.*]] = scf.if %[[ANY]] -> (f32) {
// CHECK-NEXT:    %[[K:.*]] = arith.sitofp %[[LAST]] : i32 to f32
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[R]], %[[K]] : f32
// CHECK-NEXT:    scf.yield %[[B]] : f32
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield %[[R]] : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  tt.return %[[P]] : f32
tt.func public @peeled(%lb: i32, %ub: i32, %s: i32, %x: f32) -> f32 {
  %r = scf.for %i = %lb to %ub step %s iter_args(%a = %x) -> (f32) : i32 {
    %k = arith.sitofp %i : i32 to f32
    %b = arith.addf %a, %k : f32
    scf.yield %b : f32
  } {__test_peel_epilogue}
  tt.return %r : f32
}

// CHECK-LABEL: @without_results
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: tt.store
// CHECK-NEXT: }
tt.func public @without_results(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {__test_peel_epilogue}
  tt.return
}

// CHECK-LABEL: @not_asked
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func public @not_asked(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  }
  tt.return
}
