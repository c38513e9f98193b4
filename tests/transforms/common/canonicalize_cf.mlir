// RUN: tilework opt %s -p canonicalize

// Blocks and branches.

// what the frontend makes of a return in an if
// CHECK-LABEL: tt.func public @early_return(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpi sgt, %x, %y : i32
// CHECK-NEXT: cf.cond_br %[[A]], ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: tt.return %x : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @early_return(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %l = arith.cmpi sgt, %x, %y : i32
  cf.cond_br %l, ^bb1, ^bb2
^bb1:
  tt.return %x : i32
^bb2:
  cf.br ^bb4
^bb3:
  cf.br ^bb4
^bb4:
  %s = arith.addi %x, %y : i32
  tt.return %s : i32
^bb5:
  %u = ub.poison : i32
  tt.return %u : i32
}

// CHECK-LABEL: tt.func public @known_condition(
// CHECK-NEXT: tt.return %y : i32
tt.func public @known_condition(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  %f = arith.constant false
  cf.cond_br %f, ^bb1, ^bb2
^bb1:
  tt.return %x : i32
^bb2:
  tt.return %y : i32
}

// CHECK-LABEL: tt.func public @pass_through(
// CHECK-NEXT: cf.cond_br %c, ^bb2(%x : i32), ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: cf.br ^bb2(%[[A]] : i32)
// CHECK-NEXT: ^bb2(%[[B:[^ :,)]+]]: i32):
// CHECK-NEXT: tt.return %[[B]] : i32
tt.func public @pass_through(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1(%x : i32), ^bb2
^bb1(%a: i32):
  cf.br ^bb3(%a : i32)
^bb2:
  %s = arith.addi %x, %y : i32
  cf.br ^bb3(%s : i32)
^bb3(%b: i32):
  tt.return %b : i32
}

// CHECK-LABEL: tt.func public @same_target(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.select %c, %x, %y : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @same_target(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1(%x : i32), ^bb1(%y : i32)
^bb1(%a: i32):
  tt.return %a : i32
}

// CHECK-LABEL: tt.func public @same_condition(
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: tt.store %p, %x : !tt.ptr<i32>
// CHECK-NEXT: tt.return %y : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: tt.return %x : i32
tt.func public @same_condition(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  tt.store %p, %x : !tt.ptr<i32>
  cf.cond_br %c, ^bb3, ^bb2
^bb2:
  tt.return %x : i32
^bb3:
  tt.return %y : i32
}

// CHECK-LABEL: tt.func public @condition_is_known_inside(
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: tt.return %x : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: tt.return %y : i32
tt.func public @condition_is_known_inside(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %s = arith.select %c, %x, %y : i32
  tt.return %s : i32
^bb2:
  %t = arith.select %c, %x, %y : i32
  tt.return %t : i32
}

// CHECK-LABEL: tt.func public @unused_argument(
// CHECK-NEXT: cf.cond_br %c, ^bb1(%x : i32), ^bb2
// CHECK-NEXT: ^bb1(%[[A:[^ :,)]+]]: i32):
// CHECK-NEXT: tt.store %p, %[[A]] : !tt.ptr<i32>
// CHECK-NEXT: tt.return %[[A]] : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addi %x, %y : i32
// CHECK-NEXT: cf.br ^bb1(%[[B]] : i32)
tt.func public @unused_argument(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1(%x, %y : i32, i32), ^bb2
^bb1(%a: i32, %b: i32):
  tt.store %p, %a : !tt.ptr<i32>
  tt.return %a : i32
^bb2:
  %s = arith.addi %x, %y : i32
  cf.br ^bb1(%s, %s : i32, i32)
}

// CHECK-LABEL: tt.func public @branches_stay(
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: tt.return %x : i32
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: tt.return %y : i32
tt.func public @branches_stay(%x: i32, %y: i32, %c: i1, %d: i1, %p: !tt.ptr<i32>) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  tt.return %x : i32
^bb2:
  tt.return %y : i32
}
