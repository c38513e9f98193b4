// RUN: tilework opt %s -p tritonamdgpu-move-up-prologue-loads

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
!P = tensor<256x!tt.ptr<f32>, #b>
!V = tensor<256xf32, #b>
!M = tensor<256xi1, #b>
!O = tensor<256xi32, #b>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// A marked load is hoisted to its pointers, with the ops of its mask; one that is not marked stays.
// CHECK-LABEL: @to_its_pointers(
// CHECK-NEXT: %a = tt.addptr %p, %o
// CHECK-NEXT: %e = arith.andi %k, %k
// CHECK-NEXT: %l = tt.load %a, %e {amd.pipeliner_part = "prologue"}
// CHECK-NEXT: %w = arith.addf %v, %v
// CHECK-NEXT: %u = tt.load %a, %e :
tt.func public @to_its_pointers(%p: !P, %v: !V, %k: !M, %o: !O) -> (!V, !V, !V) {
  %a = tt.addptr %p, %o : !P, !O
  %w = arith.addf %v, %v : !V
  %e = arith.andi %k, %k : !M
  %u = tt.load %a, %e : !P
  %l = tt.load %a, %e {amd.pipeliner_part = "prologue"} : !P
  tt.return %l, %w, %u : !V, !V, !V
}

// Without an op that makes the pointers: to the start of the block.
// CHECK-LABEL: @to_the_start(
// CHECK-NEXT: %e = arith.andi %k, %k
// CHECK-NEXT: %l = tt.load %p, %e {{.*}}prologue
// CHECK-NEXT: %w = arith.addf %v, %v
tt.func public @to_the_start(%p: !P, %v: !V, %k: !M) -> (!V, !V) {
  %w = arith.addf %v, %v : !V
  %e = arith.andi %k, %k : !M
  %l = tt.load %p, %e {amd.pipeliner_part = "prologue"} : !P
  tt.return %l, %w : !V, !V
}

// Not over a store: it may write what is read. (Triton does.)
// CHECK-LABEL: @behind_a_store(
// CHECK: tt.store %q, %w
// CHECK-NEXT: %e = arith.andi %k, %k
// CHECK-NEXT: %l = tt.load %p, %e {{.*}}prologue
// CHECK-NEXT: %x = arith.mulf %v, %v
tt.func public @behind_a_store(%p: !P, %q: !P, %v: !V, %k: !M) -> (!V, !V) {
  %w = arith.addf %v, %v : !V
  tt.store %q, %w : !P
  %x = arith.mulf %v, %v : !V
  %e = arith.andi %k, %k : !M
  %l = tt.load %p, %e {amd.pipeliner_part = "prologue"} : !P
  tt.return %l, %x : !V, !V
}

// Not over a loop, an atomic or a barrier.
// CHECK-LABEL: @behind_a_loop(
// CHECK: scf.for
// CHECK: }
// CHECK-NEXT: %l = tt.load
// CHECK-NEXT: %x = arith.mulf
tt.func public @behind_a_loop(%p: !P, %v: !V, %n: i32) -> (!V, !V, !V) {
  %r = scf.for %i = %n to %n step %n iter_args(%s = %v) -> (!V) : i32 {
    %t = arith.addf %s, %v : !V
    scf.yield %t : !V
  }
  %x = arith.mulf %v, %v : !V
  %l = tt.load %p {amd.pipeliner_part = "prologue"} : !P
  tt.return %l, %x, %r : !V, !V, !V
}

// CHECK-LABEL: @behind_a_barrier(
// CHECK: ttg.barrier local|global_read|global_write
// CHECK-NEXT: %l = tt.load
// CHECK-NEXT: %x = arith.mulf
tt.func public @behind_a_barrier(%p: !P, %v: !V) -> (!V, !V) {
  ttg.barrier local|global_read|global_write
  %x = arith.mulf %v, %v : !V
  %l = tt.load %p {amd.pipeliner_part = "prologue"} : !P
  tt.return %l, %x : !V, !V
}
}
