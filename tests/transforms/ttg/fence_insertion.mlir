// RUN: tilework opt %s -p triton-nvidia-gpu-fence-insertion

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#st = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!T = tensor<64x64xf16, #a>
!C = tensor<64x64xf32, #mma>
!M = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!V = !ttg.memdesc<64x64xf16, #s, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// One fence for both operands, also through views.
// CHECK-LABEL: @filled(
// CHECK-NEXT: %a = ttg.local_alloc %x :
// CHECK-NEXT: %b = ttg.local_alloc %x :
// CHECK-NEXT: %t = ttg.memdesc_trans %b {order = array<i32: 1, 0>}
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %t, %acc :
// CHECK-NEXT: tt.return %d :
tt.func public @filled(%x: !T, %acc: !C) -> !C {
  %a = ttg.local_alloc %x : (!T) -> !V
  %b = ttg.local_alloc %x : (!T) -> !V
  %t = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !V -> !ttg.memdesc<64x64xf16, #st, #smem>
  %d = ttng.warp_group_dot %a, %t, %acc : !V * !ttg.memdesc<64x64xf16, #st, #smem> -> !C
  tt.return %d : !C
}

// Memory filled by cp.async, or never filled: no fence.
// CHECK-LABEL: @copied(
// CHECK-NEXT: %b = ttg.local_alloc :
// CHECK-NEXT: %t = ttg.async_copy_global_to_local %p, %b :
// CHECK-NEXT: %w = ttg.async_wait %t {num = 0 : i32}
// CHECK-NEXT: %d = ttng.warp_group_dot %x, %b, %acc :
// CHECK-NEXT: tt.return %d :
tt.func public @copied(%p: tensor<64x64x!tt.ptr<f16>, #a>, %x: tensor<64x64xf16, #d0>, %acc: !C) -> !C {
  %b = ttg.local_alloc : () -> !M
  %t = ttg.async_copy_global_to_local %p, %b : tensor<64x64x!tt.ptr<f16>, #a> -> <64x64xf16, #s, #smem, mutable>
  %w = ttg.async_wait %t {num = 0 : i32}
  %d = ttng.warp_group_dot %x, %b, %acc : tensor<64x64xf16, #d0> * !M -> !C
  tt.return %d : !C
}

// Out of the loops in which nothing is stored; the second dot finds the fence.
// CHECK-LABEL: @hoisted(
// CHECK-NEXT: %a = ttg.local_alloc %x :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:   %s = scf.for %j = %n to %n step %n iter_args(%e = %c) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:     %d = ttng.warp_group_dot %a, %a, %e :
// CHECK-NEXT:     %f = ttng.warp_group_dot %a, %a, %d :
// CHECK-NEXT:     scf.yield %f
// CHECK:        scf.yield %s
// CHECK:      tt.return %r :
tt.func public @hoisted(%x: !T, %acc: !C, %n: i32) -> !C {
  %a = ttg.local_alloc %x : (!T) -> !V
  %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (!C) : i32 {
    %s = scf.for %j = %n to %n step %n iter_args(%e = %c) -> (!C) : i32 {
      %d = ttng.warp_group_dot %a, %a, %e : !V * !V -> !C
      %f = ttng.warp_group_dot %a, %a, %d : !V * !V -> !C
      scf.yield %f : !C
    }
    scf.yield %s : !C
  }
  tt.return %r : !C
}

// It stays in the loop that stores, and leaves the one that does not.
// CHECK-LABEL: @stored_in_loop(
// CHECK-NEXT: %m = ttg.local_alloc :
// CHECK-NEXT: %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:   ttg.local_store %x, %m :
// CHECK-NEXT:   ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:   %s = scf.for %j = %n to %n step %n iter_args(%e = %c) -> (tensor<64x64xf32, #mma>)  : i32 {
// CHECK-NEXT:     %d = ttng.warp_group_dot %m, %m, %e :
// CHECK-NEXT:     scf.yield %d
// CHECK:        scf.yield %s
// CHECK:      tt.return %r :
tt.func public @stored_in_loop(%x: !T, %acc: !C, %n: i32) -> !C {
  %m = ttg.local_alloc : () -> !M
  %r = scf.for %i = %n to %n step %n iter_args(%c = %acc) -> (!C) : i32 {
    ttg.local_store %x, %m : !T -> !M
    %s = scf.for %j = %n to %n step %n iter_args(%e = %c) -> (!C) : i32 {
      %d = ttng.warp_group_dot %m, %m, %e : !M * !M -> !C
      scf.yield %d : !C
    }
    scf.yield %s : !C
  }
  tt.return %r : !C
}

// A fence is there already.
// CHECK-LABEL: @fenced(
// CHECK-NEXT: %a = ttg.local_alloc %x :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: %d = ttng.warp_group_dot %a, %a, %acc :
// CHECK-NEXT: tt.return %d :
tt.func public @fenced(%x: !T, %acc: !C) -> !C {
  %a = ttg.local_alloc %x : (!T) -> !V
  ttng.fence_async_shared {bCluster = false}
  %d = ttng.warp_group_dot %a, %a, %acc : !V * !V -> !C
  tt.return %d : !C
}
}
