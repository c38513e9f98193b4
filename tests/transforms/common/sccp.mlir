// RUN: tilework opt %s -p sccp

// Constants along the paths that can be taken.

// CHECK-LABEL: tt.func public @loop_carries_a_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @loop_carries_a_constant(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c1) -> (i32)  : i32 {
    %s = arith.muli %a, %a : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @loop_that_counts_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = scf.for %[[D:[^ :,)]+]] = %[[B]] to %n step %[[A]] iter_args(%[[E:[^ :,)]+]] = %[[A]]) -> (i32)  : i32 {
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addi %[[E]], %[[E]] : i32
// CHECK-NEXT: scf.yield %[[F]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[C]] : i32
tt.func public @loop_that_counts_stays(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c1) -> (i32)  : i32 {
    %s = arith.addi %a, %a : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @only_the_branch_taken(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @only_the_branch_taken(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = arith.cmpi slt, %c0, %c1 : i32
  %r = scf.if %t -> (i32) {
    %s = arith.addi %c1, %c1 : i32
    scf.yield %s : i32
  } else {
    %s = arith.addi %n, %c1 : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @both_branches_agree(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @both_branches_agree(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.if %c -> (i32) {
    %s = arith.addi %c1, %c1 : i32
    scf.yield %s : i32
  } else {
    %s = arith.shli %c1, %c1 : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @branches_disagree(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[D:[^ :,)]+]] = scf.if %c -> (i32) {
// CHECK-NEXT: scf.yield %[[A]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[B]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[D]] : i32
tt.func public @branches_disagree(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.if %c -> (i32) {
    %s = arith.addi %c1, %c1 : i32
    scf.yield %s : i32
  } else {
    scf.yield %c1 : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @while_carries_a_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @while_carries_a_constant(%n: i32, %c: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%a = %c1) : (i32) -> i32 {
    %l = arith.cmpi slt, %a, %n : i32
    scf.condition(%l) %a : i32
  } do {
  ^bb0(%a: i32):
    %s = arith.muli %a, %c1 : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @blocks(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: cf.cond_br %[[B]], ^bb2(%[[C]] : i32), ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: cf.br ^bb2(%n : i32)
// CHECK-NEXT: ^bb2(%[[D:[^ :,)]+]]: i32):
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @blocks(%n: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  cf.cond_br %true, ^bb2(%c1 : i32), ^bb1
^bb1:
  cf.br ^bb2(%n : i32)
^bb2(%a: i32):
  %r = arith.addi %a, %a : i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @a_value_compared_with_itself(
// CHECK: %[[T:[^ :,)]+]] = arith.constant true
// CHECK: tt.return %[[T]] : i1
tt.func public @a_value_compared_with_itself(%n: i32) -> i1 {
  %r = arith.cmpi sle, %n, %n : i32
  tt.return %r : i1
}
