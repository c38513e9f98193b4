// RUN: tilework opt %s -p tritongpu-reorder-instructions

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#st = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#smem = #ttg.shared_memory
!T = tensor<64x64xf16, #a>
!A = tensor<64x64xf16, #d0>
!B = tensor<64x64xf16, #d1>
!C = tensor<64x64xf32, #mma>
!M = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!V = !ttg.memdesc<64x64xf16, #s, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// 1: the conversion can have the memory of the buffer.
// CHECK-LABEL: @below_dealloc(
// CHECK-NEXT: ttg.local_dealloc %m :
// CHECK-NEXT: %y = arith.addf %x, %x :
// CHECK-NEXT: ttg.local_dealloc %k :
// CHECK-NEXT: %c = ttg.convert_layout %x :
// CHECK-NEXT: tt.return %c :
tt.func public @below_dealloc(%x: !T, %m: !M, %k: !M) -> !A {
  %c = ttg.convert_layout %x : !T -> !A
  ttg.local_dealloc %m : !M
  %y = arith.addf %x, %x : !T
  ttg.local_dealloc %k : !M
  tt.return %c : !A
}

// 1: but not below its first use.
// CHECK-LABEL: @used_before_dealloc(
// CHECK-NEXT: %c = ttg.convert_layout %x :
// CHECK-NEXT: %y = arith.addf %c, %c :
// CHECK-NEXT: ttg.local_dealloc %m :
// CHECK-NEXT: tt.return %y :
tt.func public @used_before_dealloc(%x: !T, %m: !M) -> !T {
  %c = ttg.convert_layout %x : !T -> !T
  %y = arith.addf %c, %c : !T
  ttg.local_dealloc %m : !M
  tt.return %y : !T
}

// 2: into the loop that alone uses them.
// CHECK-LABEL: @into_loop(
// CHECK-NEXT: %y = arith.addf %x, %x :
// CHECK-NEXT: %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:   %a = ttg.local_load %v :
// CHECK-NEXT:   %b = ttg.convert_layout %x :
// CHECK-NEXT:   %d = tt.dot %a, %b, %c :
// CHECK-NEXT:   scf.yield %d
// CHECK:      tt.return %r :
tt.func public @into_loop(%x: !T, %v: !V, %acc: !C, %n: i32) -> !C {
  %a = ttg.local_load %v : !V -> !A
  %b = ttg.convert_layout %x : !T -> !B
  %y = arith.addf %x, %x : !T
  %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (!C) : i32 {
    %d = tt.dot %a, %b, %c : !A * !B -> !C
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// 2: not when the loop writes the memory, nor when there are two users.
// CHECK-LABEL: @not_into_loop(
// CHECK-NEXT: %m = ttg.local_alloc :
// CHECK-NEXT: %a = ttg.local_load %m :
// CHECK-NEXT: %b = ttg.convert_layout %x :
// CHECK-NEXT: %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:   %d = tt.dot %a, %b, %c :
// CHECK-NEXT:   ttg.local_store %x, %m :
// CHECK-NEXT:   %e = arith.negf %b :
// CHECK-NEXT:   scf.yield %d
// CHECK:      tt.return %r :
tt.func public @not_into_loop(%x: !T, %acc: !C, %n: i32) -> !C {
  %m = ttg.local_alloc : () -> !M
  %a = ttg.local_load %m : !M -> !A
  %b = ttg.convert_layout %x : !T -> !B
  %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (!C) : i32 {
    %d = tt.dot %a, %b, %c : !A * !B -> !C
    ttg.local_store %x, %m : !T -> !M
    %e = arith.negf %b : !B
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// 3: behind what fills it; not behind a constant or a splat.
// CHECK-LABEL: @alloc_up(
// CHECK-NEXT: %y = arith.addf %x, %x :
// CHECK-NEXT: %m = ttg.local_alloc %y :
// CHECK-NEXT: %k = arith.constant dense<1.000000e+00> :
// CHECK-NEXT: %t = tt.splat %f :
// CHECK-NEXT: %z = arith.mulf %x, %x :
// CHECK-NEXT: %p = ttg.local_alloc %k :
// CHECK-NEXT: %q = ttg.local_alloc %t :
// CHECK-NEXT: tt.return %m, %p, %q :
tt.func public @alloc_up(%x: !T, %f: f16) -> (!V, !V, !V) {
  %y = arith.addf %x, %x : !T
  %k = arith.constant dense<1.0> : !T
  %t = tt.splat %f : f16 -> !T
  %z = arith.mulf %x, %x : !T
  %m = ttg.local_alloc %y : (!T) -> !V
  %p = ttg.local_alloc %k : (!T) -> !V
  %q = ttg.local_alloc %t : (!T) -> !V
  tt.return %m, %p, %q : !V, !V, !V
}

// 3: memory that is written stays where it is filled in each iteration.
// CHECK-LABEL: @filled_again(
// CHECK-NEXT: %y = arith.addf %x, %x :
// CHECK-NEXT: scf.for %i = %n to %n step %n
// CHECK-NEXT:   %m = ttg.local_alloc %y :
// CHECK-NEXT:   %z = ttg.local_load %m :
// CHECK-NEXT:   ttg.local_store %z, %m :
// CHECK:      tt.return
tt.func public @filled_again(%x: !T, %n: i32) {
  %y = arith.addf %x, %x : !T
  scf.for %i = %n to %n step %n : i32 {
    %m = ttg.local_alloc %y : (!T) -> !M
    %z = ttg.local_load %m : !M -> !T
    ttg.local_store %z, %m : !T -> !M
  }
  tt.return
}

// 4
// CHECK-LABEL: @trans_up(
// CHECK-NEXT: %y = arith.addf %x, %x :
// CHECK-NEXT: %m = ttg.local_alloc %y :
// CHECK-NEXT: %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>}
// CHECK-NEXT: %z = arith.mulf %x, %x :
// CHECK-NEXT: tt.return %t :
tt.func public @trans_up(%x: !T) -> !ttg.memdesc<64x64xf16, #st, #smem> {
  %y = arith.addf %x, %x : !T
  %m = ttg.local_alloc %y : (!T) -> !V
  %z = arith.mulf %x, %x : !T
  %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !V -> !ttg.memdesc<64x64xf16, #st, #smem>
  tt.return %t : !ttg.memdesc<64x64xf16, #st, #smem>
}

// 5: first A, then B; not over a write.
// CHECK-LABEL: @a_first(
// CHECK-NEXT: %a = ttg.local_load %ma :
// CHECK-NEXT: %b = ttg.local_load %mb :
// CHECK-NEXT: %d = tt.dot %a, %b, %acc :
// CHECK-NEXT: tt.return %d :
tt.func public @a_first(%ma: !M, %mb: !M, %acc: !C) -> !C {
  %b = ttg.local_load %mb : !M -> !B
  %a = ttg.local_load %ma : !M -> !A
  %d = tt.dot %a, %b, %acc : !A * !B -> !C
  tt.return %d : !C
}
// CHECK-LABEL: @not_over_a_write(
// CHECK-NEXT: %b = ttg.local_load %mb :
// CHECK-NEXT: ttg.local_store %x, %mb :
// CHECK-NEXT: %a = ttg.local_load %ma :
// CHECK-NEXT: %d = tt.dot %a, %b, %acc :
// CHECK-NEXT: tt.return %d :
tt.func public @not_over_a_write(%ma: !M, %mb: !M, %x: !T, %acc: !C) -> !C {
  %b = ttg.local_load %mb : !M -> !B
  ttg.local_store %x, %mb : !T -> !M
  %a = ttg.local_load %ma : !M -> !A
  %d = tt.dot %a, %b, %acc : !A * !B -> !C
  tt.return %d : !C
}
}
