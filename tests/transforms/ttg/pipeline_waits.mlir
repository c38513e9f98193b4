// RUN: tilework opt %s -p tritongpu-pipeline

#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
!M = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!P = tensor<64x64x!tt.ptr<f16>, #B>
!L = tensor<64x64xf16, #B>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// One group was committed after the one that is waited for.
// CHECK-LABEL: @straight
// CHECK: ttg.async_wait %{{.*}} {num = 1 : i32}
tt.func public @straight(%p: !P, %a: !M, %b: !M) -> !L {
  %t0 = ttg.async_copy_global_to_local %p, %a : !P -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %p, %b : !P -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w = ttg.async_wait %g0 {num = 0 : i32}
  %x = ttg.local_load %a token %w : !M -> !L
  tt.return %x : !L
}

// The shorter way counts: into the loop (one commit) or around it (none).
// CHECK-LABEL: @around
// CHECK: ttg.async_wait %{{.*}} {num = 0 : i32}
tt.func public @around(%p: !P, %a: !M, %b: !M, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t0 = ttg.async_copy_global_to_local %p, %a : !P -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %g1 = ttg.async_commit_group
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%g = %g0) -> (!ttg.async.token) : i32 {
    %w = ttg.async_wait %g {num = 0 : i32}
    %x = ttg.local_load %a token %w : !M -> !L
    tt.store %p, %x : !P
    %t = ttg.async_copy_global_to_local %p, %a : !P -> <64x64xf16, #s, #smem, mutable>
    %h = ttg.async_commit_group tokens %t
    scf.yield %h : !ttg.async.token
  }
  tt.return
}

// A branch may commit or not: the fewer count.
// CHECK-LABEL: @branch
// CHECK: ttg.async_wait %{{.*}} {num = 1 : i32}
tt.func public @branch(%p: !P, %a: !M, %c: i1) -> !L {
  %t0 = ttg.async_copy_global_to_local %p, %a : !P -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  scf.if %c {
    %g1 = ttg.async_commit_group
    %g2 = ttg.async_commit_group
  } else {
    %g3 = ttg.async_commit_group
  }
  %w = ttg.async_wait %g0 {num = 0 : i32}
  %x = ttg.local_load %a token %w : !M -> !L
  tt.return %x : !L
}

// Waits with no commit between them are one, for the lesser number.
// CHECK-LABEL: @merged
// CHECK: %[[W:.*]] = ttg.async_wait %[[G0:.*]], %[[G1:.*]] {num = 0 : i32}
// CHECK-NEXT: ttg.local_load %a token %[[W]]
// CHECK-NEXT: ttg.local_load %b token %[[W]]
tt.func public @merged(%p: !P, %a: !M, %b: !M) -> !L {
  %t0 = ttg.async_copy_global_to_local %p, %a : !P -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %p, %b : !P -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w0 = ttg.async_wait %g0 {num = 0 : i32}
  %x = ttg.local_load %a token %w0 : !M -> !L
  %w1 = ttg.async_wait %g1 {num = 0 : i32}
  %y = ttg.local_load %b token %w1 : !M -> !L
  %s = arith.addf %x, %y : !L
  tt.return %s : !L
}
}
