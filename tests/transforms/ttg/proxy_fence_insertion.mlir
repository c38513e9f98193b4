// RUN: tilework opt %s -p allocate-shared-memory-nv,triton-nvidia-gpu-proxy-fence-insertion

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#s1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!T = tensor<64x64xf16, #a>
!D = !tt.tensordesc<tensor<64x64xf16, #s>>
!M = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!B = !ttg.memdesc<1xi64, #s1, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The load may still be under way when TMA writes.
// CHECK-LABEL: @after_load(
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: %x = ttg.local_load %m :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p :
// CHECK-NEXT: tt.return %x :
tt.func public @after_load(%d: !D, %b: !B, %i: i32, %p: i1) -> !T {
  %m = ttg.local_alloc : () -> !M
  %x = ttg.local_load %m : !M -> !T
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !D, !B -> !M
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !D, !B -> !M
  tt.return %x : !T
}

// Another buffer, but the same bytes.
// CHECK-LABEL: @same_bytes(
// CHECK-NEXT: %k = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p :
// CHECK-NEXT: tt.return
tt.func public @same_bytes(%d: !D, %b: !B, %i: i32, %p: i1, %x: !T) {
  %k = ttg.local_alloc %x : (!T) -> !M
  %m = ttg.local_alloc : () -> !M
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !D, !B -> !M
  tt.return
}

// Other bytes, a fence, and what the tensor cores read: nothing to do.
// CHECK-LABEL: @nothing(
// CHECK-NEXT: %k = ttg.local_alloc %x {allocation.offset = 0 : i32}
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 8192 : i32}
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %k, %b, %p :
// CHECK-NEXT: %r = ttng.warp_group_dot %k, %m, %c :
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %d[%i, %i] %k, %b, %p :
// CHECK-NEXT: tt.return
tt.func public @nothing(%d: !D, %b: !B, %i: i32, %p: i1, %x: !T, %c: tensor<64x64xf32, #mma>) {
  %k = ttg.local_alloc %x : (!T) -> !M
  %m = ttg.local_alloc : () -> !M
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !D, !B -> !M
  ttng.fence_async_shared {bCluster = false}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %k, %b, %p : !D, !B -> !M
  %r = ttng.warp_group_dot %k, %m, %c : !M * !M -> tensor<64x64xf32, #mma>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %k, %b, %p : !D, !B -> !M
  tt.return
}

// Around the loop.
// CHECK-LABEL: @loop(
// CHECK-NEXT: %m = ttg.local_alloc {allocation.offset = 0 : i32}
// CHECK-NEXT: scf.for %j = %i to %i step %i
// CHECK-NEXT:   ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:   ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p :
// CHECK-NEXT:   %x = ttg.local_load %m :
// CHECK:      tt.return
tt.func public @loop(%d: !D, %b: !B, %i: i32, %p: i1) {
  %m = ttg.local_alloc : () -> !M
  scf.for %j = %i to %i step %i : i32 {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !D, !B -> !M
    %x = ttg.local_load %m : !M -> !T
  }
  tt.return
}

// Tensor cores read what cp.async has written, in each iteration once; what threads store is fenced where it is stored.
// CHECK-LABEL: @copied(
// CHECK:      scf.for
// CHECK-NEXT:   {{.*}} = ttg.async_copy_global_to_local %q, %k :
// CHECK-NEXT:   {{.*}} = ttg.async_wait {num = 0 : i32}
// CHECK-NEXT:   {{.*}} = ttng.warp_group_dot %n, %n, %c :
// CHECK-NEXT:   ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:   {{.*}} = ttng.warp_group_dot %n, %k, %c :
// CHECK-NEXT:   {{.*}} = ttng.warp_group_dot %k, %n, %c :
// CHECK-NEXT: }
tt.func public @copied(%q: tensor<64x64x!tt.ptr<f16>, #a>, %i: i32, %x: !T, %c: tensor<64x64xf32, #mma>) {
  %k = ttg.local_alloc : () -> !M
  %n = ttg.local_alloc %x : (!T) -> !M
  scf.for %j = %i to %i step %i : i32 {
    %t = ttg.async_copy_global_to_local %q, %k : tensor<64x64x!tt.ptr<f16>, #a> -> <64x64xf16, #s, #smem, mutable>
    %w = ttg.async_wait {num = 0 : i32}
    %r = ttng.warp_group_dot %n, %n, %c : !M * !M -> tensor<64x64xf32, #mma>
    %u = ttng.warp_group_dot %n, %k, %c : !M * !M -> tensor<64x64xf32, #mma>
    %v = ttng.warp_group_dot %k, %n, %c : !M * !M -> tensor<64x64xf32, #mma>
  }
  tt.return
}

// So does a TMA store.
// CHECK-LABEL: @stored(
// CHECK:      {{.*}} = ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %d[%i, %i] %k :
// CHECK-NEXT: tt.return
tt.func public @stored(%q: tensor<64x64x!tt.ptr<f16>, #a>, %d: !D, %i: i32) {
  %k = ttg.local_alloc : () -> !M
  %t = ttg.async_copy_global_to_local %q, %k : tensor<64x64x!tt.ptr<f16>, #a> -> <64x64xf16, #s, #smem, mutable>
  %w = ttg.async_wait {num = 0 : i32}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %k : !D, !M
  tt.return
}

// What was copied in front of partitions is read by one of them.
// CHECK-LABEL: @before_partitions(
// CHECK:      {{.*}} = ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttg.warp_specialize(%k)
// CHECK-NOT:  ttng.fence_async_shared
tt.func public @before_partitions(%q: tensor<64x64x!tt.ptr<f16>, #a>) {
  %k = ttg.local_alloc : () -> !M
  %t = ttg.async_copy_global_to_local %q, %k : tensor<64x64x!tt.ptr<f16>, #a> -> <64x64xf16, #s, #smem, mutable>
  %w = ttg.async_wait {num = 0 : i32}
  ttg.warp_specialize(%k)
  default {
    ttg.warp_yield
  }
  partition0(%m: !M) num_warps(4) {
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %e = ttng.warp_group_dot %m, %m, %z : !M * !M -> tensor<64x64xf32, #mma>
    tt.print "e" {hex = false, isSigned = array<i32: 0>} : %e : tensor<64x64xf32, #mma>
    ttg.warp_return
  } : (!M) -> ()
  tt.return
}

// One partition copies, another multiplies.
// CHECK-LABEL: @between_partitions(
// CHECK:      ttng.wait_barrier %n, %c :
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: %e = ttng.warp_group_dot %m, %m, %z :
tt.func public @between_partitions(%q: tensor<64x64x!tt.ptr<f16>, #a>) {
  %k = ttg.local_alloc : () -> !M
  %b = ttg.local_alloc : () -> !B
  ttng.init_barrier %b, 1 : !B
  ttg.warp_specialize(%k, %b)
  default {
    %t = ttg.async_copy_global_to_local %q, %k : tensor<64x64x!tt.ptr<f16>, #a> -> <64x64xf16, #s, #smem, mutable>
    %w = ttg.async_wait {num = 0 : i32}
    ttng.arrive_barrier %b, 1 : !B
    ttg.warp_yield
  }
  partition0(%m: !M, %n: !B) num_warps(4) {
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %c = arith.constant 0 : i32
    ttng.wait_barrier %n, %c : !B
    %e = ttng.warp_group_dot %m, %m, %z : !M * !M -> tensor<64x64xf32, #mma>
    tt.print "e" {hex = false, isSigned = array<i32: 0>} : %e : tensor<64x64xf32, #mma>
    ttg.warp_return
  } : (!M, !B) -> ()
  tt.return
}
}
