// RUN: tilework opt %s -p canonicalize

// Loops and branches.

// only the sum is carried
// CHECK-LABEL: tt.func public @carried_unchanged(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = scf.for %[[D:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[E:[^ :,)]+]] = %y) -> (i32)  : i32 {
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addi %[[E]], %x : i32
// CHECK-NEXT: scf.yield %[[F]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %x, %[[C]], %x : i32, i32, i32
tt.func public @carried_unchanged(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> (i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %e = %x, %u = %y) -> (i32, i32, i32, i32)  : i32 {
    %s = arith.addi %b, %a : i32
    scf.yield %a, %s, %x, %n : i32, i32, i32, i32
  }
  tt.return %r#0, %r#1, %r#2 : i32, i32, i32
}

// the second value is read by the loop itself
// CHECK-LABEL: tt.func public @carried_chain_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]]:2 = scf.for %[[D:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[E:[^ :,)]+]] = %x, %[[F:[^ :,)]+]] = %y) -> (i32, i32)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.addi %[[F]], %x : i32
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.addi %[[E]], %x : i32
// CHECK-NEXT: scf.yield %[[H]], %[[G]] : i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[C]]#0 : i32
tt.func public @carried_chain_stays(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (i32, i32)  : i32 {
    %s = arith.addi %b, %x : i32
    %t = arith.addi %a, %x : i32
    scf.yield %t, %s : i32, i32
  }
  tt.return %r#0 : i32
}

// CHECK-LABEL: tt.func public @runs_never(
// CHECK-NEXT: tt.return %x : i32
tt.func public @runs_never(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r = scf.for %i = %c7 to %c1 step %c1 iter_args(%a = %x) -> (i32)  : i32 {
    %s = arith.addi %a, %y : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @runs_once(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %[[A]] : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @runs_once(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r = scf.for %i = %c1 to %c7 step %c7 iter_args(%a = %x) -> (i32)  : i32 {
    %s = arith.addi %a, %i : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @does_nothing(
// CHECK-NEXT: tt.return %y : i32
tt.func public @does_nothing(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r = scf.for %i = %c1 to %c7 step %c1 iter_args(%a = %x) -> (i32)  : i32 {
    scf.yield %y : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @runs_often_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 7 : i32
// CHECK-NEXT: %[[D:[^ :,)]+]] = scf.for %[[E:[^ :,)]+]] = %[[A]] to %[[C]] step %[[B]] iter_args(%[[F:[^ :,)]+]] = %x) -> (i32)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.addi %[[F]], %[[E]] : i32
// CHECK-NEXT: scf.yield %[[G]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[D]] : i32
tt.func public @runs_often_stays(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %x) -> (i32)  : i32 {
    %s = arith.addi %a, %i : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @if_known(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.muli %x, %y : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @if_known(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %t = arith.constant true
  %r = scf.if %t -> (i32) {
    %s = arith.muli %x, %y : i32
    scf.yield %s : i32
  } else {
    scf.yield %x : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @if_to_select(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.select %c, %x, %y : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = scf.if %c -> (i32) {
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %x, %y : i32
// CHECK-NEXT: scf.yield %[[C]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %x : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[B]], %[[A]] : i32, i32
tt.func public @if_to_select(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> (i32, i32) {
  %r:2 = scf.if %c -> (i32, i32) {
    %s = arith.muli %x, %y : i32
    scf.yield %s, %x : i32, i32
  } else {
    scf.yield %x, %y : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: tt.func public @if_same(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %y : i32
tt.func public @if_same(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %r = scf.if %c -> (i32) {
    tt.store %p, %x : !tt.ptr<i32>
    scf.yield %y : i32
  } else {
    scf.yield %y : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @if_unused_result(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @if_unused_result(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) {
  %r = scf.if %c -> (i32) {
    tt.store %p, %x : !tt.ptr<i32>
    scf.yield %y : i32
  } else {
    scf.yield %x : i32
  }
  tt.return
}

// CHECK-LABEL: tt.func public @if_empty(
// CHECK-NEXT: tt.return
tt.func public @if_empty(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) {
  scf.if %c {
  } else {
  }
  tt.return
}

// CHECK-LABEL: tt.func public @if_not(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %y : !tt.ptr<i32>
// CHECK-NEXT: } else {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @if_not(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) {
  %t = arith.constant true
  %m = arith.xori %c, %t : i1
  scf.if %m {
    tt.store %p, %x : !tt.ptr<i32>
  } else {
    tt.store %p, %y : !tt.ptr<i32>
  }
  tt.return
}

// CHECK-LABEL: tt.func public @if_twice(
// CHECK-NEXT: %[[A:[^ :,)]+]] = scf.if %c -> (i32) {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.muli %x, %y : i32
// CHECK-NEXT: scf.yield %[[B]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %x : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @if_twice(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  scf.if %c {
    tt.store %p, %x : !tt.ptr<i32>
  }
  %r = scf.if %c -> (i32) {
    %s = arith.muli %x, %y : i32
    scf.yield %s : i32
  } else {
    scf.yield %x : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @if_nested(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.andi %c, %d : i1
// CHECK-NEXT: scf.if %[[A]] {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @if_nested(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) {
  scf.if %c {
    scf.if %d {
      tt.store %p, %x : !tt.ptr<i32>
    }
  }
  tt.return
}

// The second branches yield the same; other results are selects.
// CHECK-LABEL: tt.func public @if_nested_with_results(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.andi %c, %d : i1
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.select %c, %y, %x : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = scf.if %[[A]] -> (i32) {
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.load %p : !tt.ptr<i32>
// CHECK-NEXT: scf.yield %[[D]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %x : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[B]] : !tt.ptr<i32>
// CHECK-NEXT: tt.store %p, %[[C]] : !tt.ptr<i32>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @if_nested_with_results(%c: i1, %d: i1, %p: !tt.ptr<i32>, %x: i32, %y: i32) {
  %s:2 = scf.if %c -> (i32, i32) {
    %t = scf.if %d -> (i32) {
      %v = tt.load %p : !tt.ptr<i32>
      scf.yield %v : i32
    } else {
      scf.yield %x : i32
    }
    scf.yield %y, %t : i32, i32
  } else {
    scf.yield %x, %x : i32, i32
  }
  tt.store %p, %s#0 : !tt.ptr<i32>
  tt.store %p, %s#1 : !tt.ptr<i32>
  tt.return
}

// Here they do not.
// CHECK-LABEL: tt.func public @if_nested_with_other_results(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = scf.if %c -> (i32) {
// CHECK-NEXT: %[[B:[^ :,)#]+]] = scf.if %d -> (i32) {
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.load %p : !tt.ptr<i32>
// CHECK-NEXT: scf.yield %[[C]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %y : i32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[B]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %x : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[A]] : !tt.ptr<i32>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @if_nested_with_other_results(%c: i1, %d: i1, %p: !tt.ptr<i32>, %x: i32, %y: i32) {
  %s = scf.if %c -> (i32) {
    %t = scf.if %d -> (i32) {
      %v = tt.load %p : !tt.ptr<i32>
      scf.yield %v : i32
    } else {
      scf.yield %y : i32
    }
    scf.yield %t : i32
  } else {
    scf.yield %x : i32
  }
  tt.store %p, %s : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: tt.func public @if_knows_condition(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: } else {
// CHECK-NEXT: tt.store %p, %[[A]] : !tt.ptr<i32>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @if_knows_condition(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) {
  scf.if %c {
    %s = arith.select %c, %x, %y : i32
    tt.store %p, %s : !tt.ptr<i32>
  } else {
    %e = arith.extui %c : i1 to i32
    tt.store %p, %e : !tt.ptr<i32>
  }
  tt.return
}

// CHECK-LABEL: tt.func public @if_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = scf.if %c -> (i32) {
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: scf.yield %[[B]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %x : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @if_stays(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %r = scf.if %c -> (i32) {
    tt.store %p, %x : !tt.ptr<i32>
    %s = arith.addi %x, %y : i32
    scf.yield %s : i32
  } else {
    scf.yield %x : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @while_carries_less(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = scf.while (%[[C:[^ :,)]+]] = %x) : (i32) -> i32 {
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.cmpi slt, %[[C]], %n : i32
// CHECK-NEXT: scf.condition(%[[D]]) %[[C]] : i32
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[C]]: i32):
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.addi %[[C]], %[[A]] : i32
// CHECK-NEXT: scf.yield %[[E]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[B]], %y : i32, i32
tt.func public @while_carries_less(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> (i32, i32) {
  %c1 = arith.constant 1 : i32
  %r:3 = scf.while (%a = %x, %b = %y, %u = %n) : (i32, i32, i32) -> (i32, i32, i32) {
    %l = arith.cmpi slt, %a, %n : i32
    scf.condition(%l) %a, %b, %a : i32, i32, i32
  } do {
  ^bb0(%a: i32, %b: i32, %u: i32):
    %s = arith.addi %a, %c1 : i32
    scf.yield %s, %b, %u : i32, i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: tt.func public @while_passes_outside(
// CHECK-NEXT: %[[A:[^ :,)]+]] = scf.while (%[[B:[^ :,)]+]] = %x) : (i32) -> i32 {
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.cmpi slt, %[[B]], %n : i32
// CHECK-NEXT: scf.condition(%[[C]]) %[[B]] : i32
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[B]]: i32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addi %[[B]], %y : i32
// CHECK-NEXT: scf.yield %[[D]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]], %y : i32, i32
tt.func public @while_passes_outside(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> (i32, i32) {
  %r:2 = scf.while (%a = %x) : (i32) -> (i32, i32) {
    %l = arith.cmpi slt, %a, %n : i32
    scf.condition(%l) %a, %y : i32, i32
  } do {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    scf.yield %s : i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: tt.func public @while_knows_condition(
// CHECK-NEXT: %[[A:[^ :,)]+]] = scf.while (%[[B:[^ :,)]+]] = %x) : (i32) -> i32 {
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.cmpi slt, %[[B]], %n : i32
// CHECK-NEXT: scf.condition(%[[C]]) %[[B]] : i32
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[B]]: i32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addi %[[B]], %y : i32
// CHECK-NEXT: scf.yield %[[D]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @while_knows_condition(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %r:2 = scf.while (%a = %x) : (i32) -> (i32, i1) {
    %l = arith.cmpi slt, %a, %n : i32
    scf.condition(%l) %a, %l : i32, i1
  } do {
  ^bb0(%a: i32, %b: i1):
    %s = arith.select %b, %y, %a : i32
    %t = arith.addi %a, %s : i32
    scf.yield %t : i32
  }
  tt.return %r#0 : i32
}

// CHECK-LABEL: tt.func public @while_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = scf.while (%[[B:[^ :,)]+]] = %x) : (i32) -> i32 {
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.cmpi slt, %[[B]], %n : i32
// CHECK-NEXT: scf.condition(%[[C]]) %[[B]] : i32
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[B]]: i32):
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.addi %[[B]], %y : i32
// CHECK-NEXT: scf.yield %[[D]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @while_stays(%n: i32, %x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %r = scf.while (%a = %x) : (i32) -> (i32) {
    %l = arith.cmpi slt, %a, %n : i32
    scf.condition(%l) %a : i32
  } do {
  ^bb0(%a: i32):
    %s = arith.addi %a, %y : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// Two carried values that start alike and go on alike are one.
// CHECK-LABEL: tt.func public @carried_twice(
// CHECK:      %[[A:[^ :,)]+]] = scf.for %[[I:[^ :,)]+]] = %{{.*}} to %n step %{{.*}} iter_args(%[[B:[^ :,)]+]] = %x) -> (i32)
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.muli %[[B]], %[[B]] : i32
// CHECK-NEXT: scf.yield %[[C]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.subi %[[A]], %y : i32
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.divsi %[[D]], %[[A]] : i32
// CHECK-NEXT: tt.return %[[E]] : i32
tt.func public @carried_twice(%n: i32, %x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %s = arith.muli %a, %b : i32
    scf.yield %s, %s : i32, i32
  }
  %d = arith.subi %r#0, %y : i32
  %e = arith.divsi %d, %r#1 : i32
  tt.return %e : i32
}

// Two folds that give the same constant: what chooses between them has nothing to choose.
// CHECK-LABEL: tt.func public @equal_constants(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 5 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @equal_constants(%c: i1) -> i32 {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.addi %c2, %c3 : i32
  %b = arith.addi %c4, %c1 : i32
  %s = arith.select %c, %a, %b : i32
  tt.return %s : i32
}

// A step that is not positive has no trip count: the loop is the program's own mistake, and stays.
// CHECK-LABEL: tt.func public @steps_that_are_not_positive(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
tt.func public @steps_that_are_not_positive(%x: i32) -> (i32, i32, i32) {
  %zero = arith.constant 0 : i32
  %minus = arith.constant -1 : i32
  %ten = arith.constant 10 : i32
  %a = scf.for %i = %zero to %ten step %zero iter_args(%v = %x) -> (i32) : i32 {
    %s = arith.addi %v, %i : i32
    scf.yield %s : i32
  }
  %b = scf.for %i = %zero to %ten step %minus iter_args(%v = %x) -> (i32) : i32 {
    %s = arith.muli %v, %i : i32
    scf.yield %s : i32
  }
  %c = scf.for %i = %ten to %zero step %zero iter_args(%v = %x) -> (i32) : i32 {
    %s = arith.subi %v, %i : i32
    scf.yield %s : i32
  }
  tt.return %a, %b, %c : i32, i32, i32
}
