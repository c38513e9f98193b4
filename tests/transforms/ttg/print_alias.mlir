// RUN: tilework opt %s -p test-print-alias

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
!M = !ttg.memdesc<32x32xf32, #s, #smem, mutable>

// Views name the memory of their operand; an argument and poison name none.
// CHECK:      @views
// CHECK-NEXT: %a -> %a
// CHECK-NEXT: %b -> %a
// CHECK-NEXT: %c -> %a
// CHECK-NEXT: %d -> %a
// CHECK-NEXT: @loops
tt.func public @views(%m: !M, %i: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #s, #smem, mutable>
  %b = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x32x32xf32, #s, #smem, mutable> -> !M
  %c = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !M -> !ttg.memdesc<32x32xf32, #t, #smem, mutable>
  %d = ttg.memdesc_subslice %b[0, 16] : !M -> !ttg.memdesc<32x16xf32, #s, #smem, mutable, 32x32>
  %e = ub.poison : !M
  %f = ttg.memdesc_reinterpret %e : !M -> !M
  tt.return
}

// The two change places in every iteration: each argument and each result may be either.
// CHECK-NEXT: %a -> %a
// CHECK-NEXT: %b -> %b
// CHECK-NEXT: %r#0 -> %a,%b
// CHECK-NEXT: %r#1 -> %a,%b
// CHECK-NEXT: %x -> %a,%b
// CHECK-NEXT: %y -> %a,%b
// CHECK-NEXT: @choices
tt.func public @loops(%n: i32) {
  %a = ttg.local_alloc : () -> !M
  %b = ttg.local_alloc : () -> !M
  %r:2 = scf.for %i = %n to %n step %n iter_args(%x = %a, %y = %b) -> (!M, !M) : i32 {
    scf.yield %y, %x : !M, !M
  }
  tt.return
}

// CHECK:      %c -> %a,%b
// CHECK-NEXT: %d -> %a
// CHECK-NEXT: %x -> %a
// CHECK-NEXT: %y -> %a
// CHECK-NEXT: @blocks
tt.func public @choices(%p: i1) {
  %a = ttg.local_alloc : () -> !M
  %b = ttg.local_alloc : () -> !M
  %c = scf.if %p -> (!M) {
    scf.yield %a : !M
  } else {
    scf.yield %b : !M
  }
  %d = scf.while (%x = %a) : (!M) -> !M {
    scf.condition(%p) %x : !M
  } do {
  ^bb0(%y: !M):
    scf.yield %y : !M
  }
  tt.return
}

// CHECK:      %x -> %a,%b
tt.func public @blocks(%p: i1) {
  %a = ttg.local_alloc : () -> !M
  %b = ttg.local_alloc : () -> !M
  cf.cond_br %p, ^next(%a : !M), ^next(%b : !M)
^next(%x: !M):
  tt.return
}
