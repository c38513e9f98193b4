// RUN: tilework opt %s --split-input-file -p 'tritongpu-combine-tensor-select-and-if'
// The branch gives the tensor; the missing else block is made.
// CHECK-LABEL: tt.func @same_condition(
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V0]] : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @same_condition(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Each select is a result, in order.
// CHECK-LABEL: tt.func @several_selects(
// CHECK-NEXT: %[[V0:[0-9]+]]:2 = scf.if %c -> (tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z, %a : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a, %z : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[V0]]#1 : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return %[[V0]]#0 : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @several_selects(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  %s2 = arith.select %c, %a, %z : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.store %p, %s2 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Both blocks are there already.
// CHECK-LABEL: tt.func @with_else(
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V0]] : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @with_else(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  } else {
    tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Behind the results that the branch has.
// CHECK-LABEL: tt.func @with_results(
// CHECK-NEXT: %[[V0:[0-9]+]]:2 = scf.if %c -> (tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %a, %z : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z, %a : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[V0]]#0 : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return %[[V0]]#1 : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @with_results(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  %r = scf.if %c -> (tensor<64x64xf32, #b>) {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
    scf.yield %a : tensor<64x64xf32, #b>
  } else {
    tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #b>
    scf.yield %z : tensor<64x64xf32, #b>
  }
  tt.store %p, %r : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Inside a branch the condition is known.
// CHECK-LABEL: tt.func @used_in_both_branches(
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V0]] : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @used_in_both_branches(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #b>
  } else {
    tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Nothing is left of the select.
// CHECK-LABEL: tt.func @used_only_in_a_branch(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @used_only_in_a_branch(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}
}

// -----

// Also deep inside.
// CHECK-LABEL: tt.func @used_in_a_loop_in_a_branch(
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %n  : i32 {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V0]] : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @used_in_a_loop_in_a_branch(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %n step %n : i32 {
      tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #b>
    }
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// The first branch is taken.
// CHECK-LABEL: tt.func @first_of_two_branches(
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[V0]] : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @first_of_two_branches(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  scf.if %c {
    tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Each select goes to the branch on its condition.
// CHECK-LABEL: tt.func @two_conditions(
// CHECK-NEXT: %[[V0:[0-9]+]]:2 = scf.if %c -> (tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z, %a : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a, %z : tensor<64x64xf32, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:[0-9]+]] = scf.if %e -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[V1]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.store %p, %[[V0]]#1 : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return %[[V0]]#0 : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @two_conditions(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  %s1 = arith.select %e, %z, %a : tensor<64x64xf32, #b>
  %s2 = arith.select %c, %a, %z : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  scf.if %e {
    tt.store %p, %z : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.store %p, %s1 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.store %p, %s2 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// An accumulator that is reset.
// CHECK-LABEL: tt.func @in_a_loop(
// CHECK-NEXT: %c0 = arith.constant 0 : i32
// CHECK-NEXT: %r = scf.for %i = %c0 to %n step %n iter_args(%acc = %a) -> (tensor<64x64xf32, #blocked>)  : i32 {
// CHECK-NEXT: %g = arith.cmpi eq, %i, %c0 : i32
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %g -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %acc : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %acc : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[V0]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %r : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @in_a_loop(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32) -> tensor<64x64xf32, #b> {
  %c0 = arith.constant 0 : i32
  %r = scf.for %i = %c0 to %n step %n iter_args(%acc = %a) -> (tensor<64x64xf32, #b>) : i32 {
    %g = arith.cmpi eq, %i, %c0 : i32
    %s = arith.select %g, %z, %acc : tensor<64x64xf32, #b>
    scf.if %g {
      tt.store %p, %acc : tensor<64x64x!tt.ptr<f32>, #b>
    }
    scf.yield %s : tensor<64x64xf32, #b>
  }
  tt.return %r : tensor<64x64xf32, #b>
}
}

// -----

// The first one is used in front of the branch and stays.
// CHECK-LABEL: tt.func @select_of_select(
// CHECK-NEXT: %s = arith.select %c, %z, %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[V0:[0-9]+]] = scf.if %c -> (tensor<64x64xf32, #blocked>) {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.yield %s : tensor<64x64xf32, #blocked>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %z : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %p, %[[V0]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @select_of_select(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  %s2 = arith.select %c, %s, %z : tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.store %p, %s2 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Must not fire: a use in front of the branch.
// CHECK-LABEL: tt.func @used_between(
// CHECK-NEXT: %s = arith.select %c, %z, %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @used_between(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  tt.store %p, %s : tensor<64x64x!tt.ptr<f32>, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Must not fire: the branch comes first.
// CHECK-LABEL: tt.func @select_behind(
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %s = arith.select %c, %z, %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @select_behind(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Must not fire: another condition.
// CHECK-LABEL: tt.func @other_condition(
// CHECK-NEXT: %s = arith.select %c, %z, %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: scf.if %e {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @other_condition(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %e {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Must not fire: a scalar.
// CHECK-LABEL: tt.func @scalar(
// CHECK-NEXT: %s = arith.select %c, %x, %y : f32
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %s : f32
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @scalar(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %x: f32, %y: f32) -> f32 {
  %s = arith.select %c, %x, %y : f32
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : f32
}
}

// -----

// Must not fire: a condition for each element.
// CHECK-LABEL: tt.func @tensor_condition(
// CHECK-NEXT: %s = arith.select %tc, %a, %z : tensor<64x64xi1, #blocked>, tensor<64x64xf32, #blocked>
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @tensor_condition(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %tc: tensor<64x64xi1, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %tc, %a, %z : tensor<64x64xi1, #b>, tensor<64x64xf32, #b>
  scf.if %c {
    tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}

// -----

// Must not fire: the branch is deeper than the select.
// CHECK-LABEL: tt.func @branch_in_other_block(
// CHECK-NEXT: %s = arith.select %c, %z, %a : tensor<64x64xf32, #blocked>
// CHECK-NEXT: scf.if %e {
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %s : tensor<64x64xf32, #blocked>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @branch_in_other_block(%c: i1, %e: i1, %a: tensor<64x64xf32, #b>, %z: tensor<64x64xf32, #b>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) -> tensor<64x64xf32, #b> {
  %s = arith.select %c, %z, %a : tensor<64x64xf32, #b>
  scf.if %e {
    scf.if %c {
      tt.store %p, %a : tensor<64x64x!tt.ptr<f32>, #b>
    }
  }
  tt.return %s : tensor<64x64xf32, #b>
}
}
