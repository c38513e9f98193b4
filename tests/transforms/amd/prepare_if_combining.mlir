// RUN: tilework opt %s -p tritonamdgpu-prepare-if-combining | filecheck %s
// RUN: tilework opt %s -p tritonamdgpu-prepare-if-combining,canonicalize | filecheck %s --check-prefix=MERGED

// CHECK-LABEL: @pure_ops_between(
// CHECK-NEXT: %u = arith.muli
// CHECK-NEXT: %w = arith.addi %u
// CHECK-NEXT: %r = scf.if %c
// CHECK: %s = scf.if %c
// MERGED-LABEL: @pure_ops_between(
// MERGED: scf.if
// MERGED-NOT: scf.if
// MERGED: tt.return
tt.func public @pure_ops_between(%c: i1, %x: i32, %y: i32) -> i32 {
  %r = scf.if %c -> i32 {
    %q = arith.addi %x, %y : i32
    scf.yield %q : i32
  } else {
    scf.yield %x : i32
  }
  %u = arith.muli %x, %y : i32
  %w = arith.addi %u, %x : i32
  %s = scf.if %c -> i32 {
    %q = arith.addi %w, %r : i32
    scf.yield %q : i32
  } else {
    scf.yield %w : i32
  }
  tt.return %s : i32
}

// Three branches become one.
// MERGED-LABEL: @three(
// MERGED: scf.if
// MERGED-NOT: scf.if
// MERGED: tt.return
tt.func public @three(%c: i1, %x: i32, %y: i32, %p: !tt.ptr<i32>) {
  scf.if %c {
    tt.store %p, %x : !tt.ptr<i32>
  }
  %u = arith.muli %x, %y : i32
  scf.if %c {
    tt.store %p, %u : !tt.ptr<i32>
  }
  %w = arith.addi %u, %x : i32
  scf.if %c {
    tt.store %p, %w : !tt.ptr<i32>
  }
  tt.return
}

// An op that uses a result of the first branch, one with an effect, and another condition: nothing moves.
// CHECK-LABEL: @uses_the_first(
// CHECK-NEXT: %r = scf.if
// CHECK: %u = arith.muli %r
// CHECK-NEXT: %w = arith.addi %x
tt.func public @uses_the_first(%c: i1, %x: i32, %y: i32) -> i32 {
  %r = scf.if %c -> i32 {
    %q = arith.addi %x, %y : i32
    scf.yield %q : i32
  } else {
    scf.yield %x : i32
  }
  %u = arith.muli %r, %y : i32
  %w = arith.addi %x, %x : i32
  %s = scf.if %c -> i32 {
    %q = arith.addi %w, %u : i32
    scf.yield %q : i32
  } else {
    scf.yield %w : i32
  }
  tt.return %s : i32
}

// CHECK-LABEL: @has_an_effect(
// CHECK-NEXT: scf.if
// CHECK: %u = arith.muli
// CHECK-NEXT: tt.store
tt.func public @has_an_effect(%c: i1, %x: i32, %p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
  scf.if %c {
    tt.store %p, %x : !tt.ptr<i32>
  }
  %u = arith.muli %x, %x : i32
  tt.store %q, %u : !tt.ptr<i32>
  scf.if %c {
    tt.store %p, %u : !tt.ptr<i32>
  }
  tt.return
}

// CHECK-LABEL: @another_condition(
// CHECK-NEXT: scf.if %c
// CHECK: %u = arith.muli
// CHECK-NEXT: scf.if %d
tt.func public @another_condition(%c: i1, %d: i1, %x: i32, %p: !tt.ptr<i32>) {
  scf.if %c {
    tt.store %p, %x : !tt.ptr<i32>
  }
  %u = arith.muli %x, %x : i32
  scf.if %d {
    tt.store %p, %u : !tt.ptr<i32>
  }
  tt.return
}
