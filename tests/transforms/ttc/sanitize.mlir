// RUN: tilework opt %s -p ttc-sanitize

// Every access gets a check of its pointer, with the parameters that it may come from.

// CHECK: module attributes {ttc.sanitized}
// CHECK-LABEL: tt.func public @origins(
// CHECK: %[[A:.*]] = ttc.check %p {arguments = array<i32: 0>, verb = "reads"} : !tt.ptr<f32>
// CHECK-NEXT: %v = tt.load %[[A]] : !tt.ptr<f32>
// CHECK: %[[B:.*]] = ttc.check %q, %c {arguments = array<i32: 0, 1>, verb = "writes"} : !tt.ptr<f32>
// CHECK-NEXT: tt.store %[[B]], %v, %c : !tt.ptr<f32>
tt.func public @origins(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i1) {
  %p = tt.addptr %x, %n : !tt.ptr<f32>, i32
  %v = tt.load %p : !tt.ptr<f32>
  %q = arith.select %c, %y, %p : !tt.ptr<f32>
  tt.store %q, %v, %c : !tt.ptr<f32>
  tt.return
}

// A pointer that was loaded may point into any array; a parameter of a function into those it is called with.

// CHECK-LABEL: tt.func public @loaded(
// CHECK: ttc.check %p {arguments = array<i32>, verb = "updates"} : !tt.ptr<i32>
tt.func public @loaded(%n: i32, %x: !tt.ptr<i64>, %y: !tt.ptr<f32>) {
  %a = tt.load %x : !tt.ptr<i64>
  %p = tt.int_to_ptr %a : i64 -> !tt.ptr<i32>
  %r = tt.atomic_rmw add, relaxed, gpu, %p, %n : (!tt.ptr<i32>, i32) -> i32
  tt.call @callee(%y) : (!tt.ptr<f32>) -> ()
  tt.return
}

// CHECK-LABEL: tt.func private @callee(
// CHECK: ttc.check %p {arguments = array<i32: 2>, verb = "reads"}
tt.func private @callee(%p: !tt.ptr<f32>) attributes {noinline = true} {
  %v = tt.load %p : !tt.ptr<f32>
  tt.store %p, %v : !tt.ptr<f32>
  tt.return
}

// Sums and products of an address must be exact, in lanes that are on; two accesses with one address share the checks.

// CHECK-LABEL: tt.func public @arithmetic(
// CHECK: %[[WIDE:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[WIDE]], %{{.*}} : i64
// CHECK: %[[OFF:.*]] = arith.xori %m, %{{.*}} : i1
// CHECK-NEXT: %[[OK:.*]] = arith.ori %[[SAME]], %[[OFF]] : i1
// CHECK-NEXT: ttc.assert %[[OK]], "sanitizer: int32 overflow detected for operation mul, in the address of argument #0" : i1
// CHECK: ttc.assert %{{.*}}, "sanitizer: int32 overflow detected for operation add, in the address of argument #0" : i1
// CHECK-NEXT: ttc.check %p, %m
// CHECK-NEXT: tt.load
// CHECK-NEXT: ttc.check %p, %m
// CHECK-NEXT: tt.store
tt.func public @arithmetic(%x: !tt.ptr<f32>, %start: i32, %step: i32, %n: i32) {
  ttc.nest [64] {
  ^bb0(%i: i32):
    %m = arith.cmpi slt, %i, %n : i32
    %a = arith.muli %i, %step : i32
    %o = arith.addi %start, %a : i32
    %p = tt.addptr %x, %o : !tt.ptr<f32>, i32
    %v = tt.load %p, %m : !tt.ptr<f32>
    tt.store %p, %v, %m : !tt.ptr<f32>
    ttc.end
  }
  tt.return
}

// Numbers of a nest are small, and a remainder may be of anything.

// CHECK-LABEL: tt.func public @not_checked(
// CHECK-NOT: ttc.assert
// CHECK: tt.return
tt.func public @not_checked(%x: !tt.ptr<f32>, %n: i32) {
  %c8 = arith.constant 8 : i32
  %c7 = arith.constant 7 : i32
  ttc.nest [64] {
  ^bb0(%i: i32):
    %a = arith.muli %i, %c8 : i32
    %p = tt.addptr %x, %a : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %h = arith.muli %n, %n : i32
    %r = arith.andi %h, %c7 : i32
    %q = tt.addptr %x, %r : !tt.ptr<f32>, i32
    tt.store %q, %v : !tt.ptr<f32>
    ttc.end
  }
  tt.return
}

// What a loop adds up is checked where it is added.

// CHECK-LABEL: tt.func public @carried(
// CHECK: %next = arith.addi %at, %step : i32
// CHECK: ttc.assert %{{.*}}, "sanitizer: int32 overflow detected for operation add, in the address of argument #0" : i1
// CHECK-NEXT: scf.yield %next : i32
tt.func public @carried(%x: !tt.ptr<f32>, %step: i32, %n: i32, %v: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    tt.store %p, %v : !tt.ptr<f32>
    %next = arith.addi %at, %step : i32
    scf.yield %next : i32
  }
  tt.return
}
