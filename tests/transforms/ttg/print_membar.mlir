// RUN: tilework opt %s -p test-print-membar

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#w0 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
#w1 = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#s1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!T = tensor<32x32xf32, #a>
!M = !ttg.memdesc<32x32xf32, #s, #smem, mutable>
!B = !ttg.memdesc<1xi64, #s1, #smem, mutable>
#h = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
!H = tensor<64x64xf16, #h>
!F = !ttg.memdesc<64x64xf16, #nv, #smem, mutable>
!D = tensor<64x64xf32, #mma>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Read after write, write after read, write after write; two reads are fine.
// CHECK-LABEL: @hazards(
// CHECK-NEXT: %m = ttg.local_alloc %x :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %r0 = ttg.local_load %m :
// CHECK-NEXT: %r1 = ttg.local_load %m :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %r0, %m :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %r1, %m :
tt.func public @hazards(%x: !T) {
  %m = ttg.local_alloc %x : (!T) -> !M
  %r0 = ttg.local_load %m : !M -> !T
  %r1 = ttg.local_load %m : !M -> !T
  ttg.local_store %r0, %m : !T -> !M
  ttg.local_store %r1, %m : !T -> !M
  tt.return
}

// Different bytes: no barrier at all.
// CHECK-LABEL: @apart(
// CHECK:      ttg.local_store %x, %m :
// CHECK-NEXT: ttg.local_store %x, %k :
tt.func public @apart(%x: !T) {
  %m = ttg.local_alloc : () -> !M
  %k = ttg.local_alloc : () -> !M
  ttg.local_store %x, %m : !T -> !M
  ttg.local_store %x, %k : !T -> !M
  ttg.local_dealloc %m : !M
  tt.return
}

// The conversion waits in itself: the store before it is over for all threads.
// CHECK-LABEL: @scratch(
// CHECK-NEXT: %m = ttg.local_alloc %x :
// CHECK-NEXT: %y = ttg.convert_layout %x :
// CHECK-NEXT: %z = ttg.local_load %m :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
tt.func public @scratch(%x: !T) {
  %m = ttg.local_alloc %x : (!T) -> !M
  %y = ttg.convert_layout %x : !T -> tensor<32x32xf32, #b>
  %z = ttg.local_load %m : !M -> !T
  %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %h: f32):
    tt.reduce.return %h : f32
  }) : (!T) -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #a}>>
  tt.return
}

// The last store of an iteration meets the load of the next.
// CHECK-LABEL: @loop(
// CHECK:        ttg.barrier local
// CHECK-NEXT:   %z = ttg.local_load %m :
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   ttg.local_store %z, %m :
tt.func public @loop(%x: !T, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc : () -> !M
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = ttg.local_load %m : !M -> !T
    ttg.local_store %z, %m : !T -> !M
  }
  tt.return
}

// What only the store in front of the loops left behind is waited for once, not in each round.
// CHECK-LABEL: @before_loops(
// CHECK:      %m = ttg.local_alloc %x :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: scf.for
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     %z = ttg.local_load %m :
// CHECK-NEXT:   }
tt.func public @before_loops(%x: !T, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc %x : (!T) -> !M
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %z = ttg.local_load %m : !M -> !T
    }
  }
  tt.return
}

// A round of the outer loop leaves a store behind: each one waits in front of the inner loop.
// CHECK-LABEL: @before_inner_loop(
// CHECK:      %m = ttg.local_alloc %x :
// CHECK-NEXT: scf.for
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     %z = ttg.local_load %m :
// CHECK-NEXT:   }
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   ttg.local_store %x, %m :
tt.func public @before_inner_loop(%x: !T, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc %x : (!T) -> !M
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %z = ttg.local_load %m : !M -> !T
    }
    ttg.local_store %x, %m : !T -> !M
  }
  tt.return
}

// The barrier for the store in front serves what a round leaves, too: as many without it would be others.
// CHECK-LABEL: @serves_both(
// CHECK:      %m = ttg.local_alloc %x :
// CHECK:      scf.for
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   %z = ttg.local_load %m :
// CHECK-NEXT:   ttg.local_store %x, %o :
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   %y = ttg.local_load %o :
tt.func public @serves_both(%x: !T, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = ttg.local_alloc : () -> !M
  %m = ttg.local_alloc %x : (!T) -> !M
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = ttg.local_load %m : !M -> !T
    ttg.local_store %x, %o : !T -> !M
    %y = ttg.local_load %o : !M -> !T
  }
  tt.return
}

// One branch leaves a write behind: the op after the if must wait.
// CHECK-LABEL: @branch(
// CHECK:        ttg.local_store %x, %m :
// CHECK:        ttg.local_store %x, %m :
// CHECK-NEXT:   ttg.barrier local
// CHECK:      ttg.barrier local
// CHECK-NEXT: %z = ttg.local_load %m :
tt.func public @branch(%x: !T, %p: i1) {
  %m = ttg.local_alloc : () -> !M
  scf.if %p {
    ttg.local_store %x, %m : !T -> !M
  } else {
    ttg.local_store %x, %m : !T -> !M
    ttg.barrier local
  }
  %z = ttg.local_load %m : !M -> !T
  tt.return
}

// A while loop: the write in its body meets the read in its condition.
// CHECK-LABEL: @while(
// CHECK:        ttg.barrier local
// CHECK-NEXT:   %z = ttg.local_load %m :
// CHECK:        ttg.barrier local
// CHECK-NEXT:   ttg.local_store %x, %m :
tt.func public @while(%x: !T, %p: i1) {
  %m = ttg.local_alloc : () -> !M
  scf.while : () -> () {
    %z = ttg.local_load %m : !M -> !T
    scf.condition(%p)
  } do {
    ttg.local_store %x, %m : !T -> !M
    scf.yield
  }
  tt.return
}

// What a thread waited for is there for it, and behind the barrier for all.
// CHECK-LABEL: @wait(
// CHECK:      %w = ttg.async_wait %g {num = 0 : i32}
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %z = ttg.local_load %m token %w :
// CHECK-NEXT: %w2 = ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %z2 = ttg.local_load %m :
tt.func public @wait(%p: tensor<32x32x!tt.ptr<f32>, #a>) {
  %m = ttg.local_alloc : () -> !M
  %t = ttg.async_copy_global_to_local %p, %m : tensor<32x32x!tt.ptr<f32>, #a> -> <32x32xf32, #s, #smem, mutable>
  %g = ttg.async_commit_group tokens %t
  %w = ttg.async_wait %g {num = 0 : i32}
  %z = ttg.local_load %m token %w : !M -> !T
  %w2 = ttg.async_wait {num = 0 : i32}
  ttg.barrier local
  %z2 = ttg.local_load %m : !M -> !T
  tt.return
}

// Barriers of memory are memory too.
// CHECK-LABEL: @mbarrier(
// CHECK:      ttng.init_barrier %b, 1 :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.wait_barrier %b, %c :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.arrive_barrier %b, 1 :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.inval_barrier %b :
tt.func public @mbarrier(%c: i32) {
  %b = ttg.local_alloc : () -> !B
  ttng.init_barrier %b, 1 : !B
  ttng.wait_barrier %b, %c : !B
  ttng.arrive_barrier %b, 1 : !B
  ttng.inval_barrier %b : !B
  tt.return
}

// The callee may use the bytes that the caller has just read, and leaves a read behind.
// CHECK-LABEL: @leaf(
// CHECK-NEXT: %m = ttg.local_alloc %x :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %z = ttg.local_load %m :
tt.func private @leaf(%x: !T) attributes {noinline = true} {
  %m = ttg.local_alloc %x : (!T) -> !M
  ttg.barrier local
  %z = ttg.local_load %m : !M -> !T
  tt.return
}
// CHECK-LABEL: @calls(
// CHECK:      %z = ttg.local_load %m :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: tt.call @leaf(%x) :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %k = ttg.local_alloc %x :
tt.func public @calls(%x: !T) {
  %m = ttg.local_alloc : () -> !M
  %z = ttg.local_load %m : !M -> !T
  tt.call @leaf(%x) : (!T) -> ()
  %k = ttg.local_alloc %x : (!T) -> !M
  tt.return
}

// Ways through blocks meet, and go around.
// CHECK-LABEL: @blocks(
// CHECK:      ttg.barrier local
// CHECK-NEXT: %z = ttg.local_load %m :
// CHECK:      ttg.barrier local
// CHECK-NEXT: ttg.local_store %x, %m :
// CHECK:      %z2 = ttg.local_load %m :
tt.func public @blocks(%x: !T, %p: i1) {
  %m = ttg.local_alloc : () -> !M
  cf.br ^again
^again:
  %z = ttg.local_load %m : !M -> !T
  cf.cond_br %p, ^more, ^end
^more:
  ttg.local_store %x, %m : !T -> !M
  cf.br ^again
^end:
  %z2 = ttg.local_load %m : !M -> !T
  tt.return
}
// A product in the background reads until its wait: a barrier in front of that orders nothing, and one behind the wait does.
// CHECK-LABEL: @product_in_the_background(
// CHECK:      ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.warp_group_dot_wait %d {pendings = 0 : i32}
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %x, %b :
tt.func public @product_in_the_background(%x: !H, %a: !F, %c: !D) -> !D {
  %b = ttg.local_alloc : () -> !F
  %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true} : !F * !F -> !D
  ttg.barrier local
  %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : !D
  ttg.local_store %x, %b : !H -> !F
  tt.return %w : !D
}

// Behind its wait, a barrier is enough.
// CHECK-LABEL: @product_that_is_over(
// CHECK:      ttng.warp_group_dot_wait %d {pendings = 0 : i32}
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %x, %b :
tt.func public @product_that_is_over(%x: !H, %a: !F, %c: !D) -> !D {
  %b = ttg.local_alloc : () -> !F
  %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true} : !F * !F -> !D
  %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : !D
  ttg.barrier local
  ttg.local_store %x, %b : !H -> !F
  tt.return %w : !D
}

// Parts of a buffer without a common element need no barrier, parts of parts neither; those that overlap do.
// CHECK-LABEL: @parts(
// CHECK:      ttg.local_store %y, %low :
// CHECK-NEXT: ttg.local_store %y, %high :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: %z = ttg.local_load %low :
// CHECK-NEXT: %e = ttg.memdesc_subslice %high[0, 16]
// CHECK-NEXT: ttg.local_store %z, %high :
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load %e :
// CHECK-NEXT: ttg.local_load %m :
tt.func public @parts(%y: tensor<16x32xf32, #a>) {
  %m = ttg.local_alloc : () -> !M
  %low = ttg.memdesc_subslice %m[0, 0] : !M -> !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32>
  %high = ttg.memdesc_subslice %m[16, 0] : !M -> !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32>
  ttg.local_store %y, %low : tensor<16x32xf32, #a> -> !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32>
  ttg.local_store %y, %high : tensor<16x32xf32, #a> -> !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32>
  %z = ttg.local_load %low : !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32> -> tensor<16x32xf32, #a>
  %e = ttg.memdesc_subslice %high[0, 16] : !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32> -> !ttg.memdesc<16x16xf32, #s, #smem, mutable, 32x32>
  ttg.local_store %z, %high : tensor<16x32xf32, #a> -> !ttg.memdesc<16x32xf32, #s, #smem, mutable, 32x32>
  %v = ttg.local_load %e : !ttg.memdesc<16x16xf32, #s, #smem, mutable, 32x32> -> tensor<16x16xf32, #a>
  %w = ttg.local_load %m : !M -> !T
  tt.return
}
}
