// RUN: tilework opt %s -p triton-count-exits

// Marked loops of another form than the frontend makes stay as they are: a condition that is carried itself, one of two that suffice, and
// a condition that hands on what it computes.

// CHECK-LABEL: tt.func public @carried_condition(
// CHECK: scf.while
// CHECK-NOT: scf.for
tt.func public @carried_condition(%p: !tt.ptr<i32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %r:2 = scf.while (%i = %c0, %more = %true) : (i32, i1) -> (i32, i1) {
    scf.condition(%more) %i, %more : i32, i1
  } do {
  ^bb0(%i: i32, %more: i1):
    tt.store %p, %i : !tt.ptr<i32>
    %next = arith.addi %i, %c1 : i32
    %again = arith.cmpi slt, %next, %n : i32
    scf.yield %next, %again : i32, i1
  } attributes {tt.counted}
  tt.return
}

// CHECK-LABEL: tt.func public @either_suffices(
// CHECK: scf.while
// CHECK-NOT: scf.for
tt.func public @either_suffices(%p: !tt.ptr<i32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %false = arith.constant false
  %r:2 = scf.while (%i = %c0, %done = %false) : (i32, i1) -> (i32, i1) {
    %a = arith.cmpi slt, %i, %n : i32
    %b = arith.xori %done, %true : i1
    %c = arith.ori %a, %b : i1
    scf.condition(%c) %i, %done : i32, i1
  } do {
  ^bb0(%i: i32, %done: i1):
    tt.store %p, %i : !tt.ptr<i32>
    %end = arith.cmpi sge, %i, %m : i32
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %end : i32, i1
  } attributes {tt.counted}
  tt.return
}

// CHECK-LABEL: tt.func public @hands_on_a_sum(
// CHECK: scf.while
// CHECK-NOT: scf.for
tt.func public @hands_on_a_sum(%p: !tt.ptr<i32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %false = arith.constant false
  %r:2 = scf.while (%i = %c0, %done = %false) : (i32, i1) -> (i32, i32) {
    %a = arith.cmpi slt, %i, %n : i32
    %b = arith.xori %done, %true : i1
    %c = arith.andi %a, %b : i1
    %sum = arith.addi %i, %m : i32
    scf.condition(%c) %i, %sum : i32, i32
  } do {
  ^bb0(%i: i32, %sum: i32):
    tt.store %p, %sum : !tt.ptr<i32>
    %end = arith.cmpi sge, %i, %m : i32
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %end : i32, i1
  } attributes {tt.counted}
  tt.return
}

// A limit that the body computes from values of before the loop is computed in front of it.
// CHECK-LABEL: tt.func public @limit_of_the_body(
// CHECK: %[[TWICE:.*]] = arith.muli %m, %{{.*}} : i32
// CHECK: %[[LIMIT:.*]] = arith.subi %[[TWICE]], %n : i32
// CHECK: arith.cmpi slt, %[[LIMIT]], %n : i32
// CHECK-NOT: scf.while
// CHECK: scf.for
tt.func public @limit_of_the_body(%p: !tt.ptr<i32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %true = arith.constant true
  %false = arith.constant false
  %r:2 = scf.while (%i = %c0, %done = %false) : (i32, i1) -> (i32, i1) {
    %a = arith.cmpi slt, %i, %n : i32
    %b = arith.xori %done, %true : i1
    %c = arith.andi %a, %b : i1
    scf.condition(%c) %i, %done : i32, i1
  } do {
  ^bb0(%i: i32, %done: i1):
    tt.store %p, %i : !tt.ptr<i32>
    %twice = arith.muli %m, %c2 : i32
    %limit = arith.subi %twice, %n : i32
    %end = arith.cmpi sge, %i, %limit : i32
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %end : i32, i1
  } attributes {tt.counted}
  tt.return
}
