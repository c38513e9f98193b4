// RUN: tilework opt %s -p tritongpu-pipeline

#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
!D = !tt.tensordesc<tensor<64x64xf16, #s>>
!DR = !tt.tensordesc<tensor<1x64xf16, #s>>
!L = tensor<64x64xf16, #B>
!X = tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// All stores of one shape share a buffer; each waits for the one before it, the last one behind the loop.
// CHECK-LABEL: @stores
// CHECK:      %[[BUF:.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: scf.for
// CHECK-NEXT:   ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:   ttg.local_store %x, %[[BUF]]
// CHECK-NEXT:   ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:   ttng.async_tma_copy_local_to_global %d[%{{.*}}, %{{.*}}] %[[BUF]]
// CHECK-NEXT:   scf.if %c
// CHECK-NEXT:     ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:     ttg.local_store %x, %[[BUF]]
// CHECK-NEXT:     ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:     ttng.async_tma_reduce max, %d[%{{.*}}, %{{.*}}] %[[BUF]]
// CHECK:        ttng.async_tma_scatter %e[%i, %{{.*}}] %[[BUF]]
// CHECK-NEXT: }
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_dealloc %[[BUF]]
tt.func public @stores(%d: !D, %e: !DR, %x: !L, %i: !X, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    tt.descriptor_store %d[%c0, %k], %x : !D, !L
    scf.if %c {
      tt.descriptor_reduce max, %d[%k, %c0], %x : !D, !L
    }
    tt.descriptor_scatter %e[%i, %k], %x : !DR, !X, i32, !L
  }
  tt.return
}

// A descriptor made in the loop has two slots, used in turn.
// CHECK-LABEL: @made_in_the_loop
// CHECK:      %[[S:.*]] = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 256 : i32} : !tt.ptr<i8>
// CHECK:      scf.for %{{.*}} iter_args(%[[I:.*]] = %{{.*}}) -> (i32)
// CHECK:        %[[O:.*]] = arith.muli %{{.*}}, %[[I]] : i32
// CHECK-NEXT:   %[[P:.*]] = tt.addptr %[[S]], %[[O]] : !tt.ptr<i8>, i32
// CHECK:        ttng.tensormap_create %[[P]], %b, [%{{.*}}, %{{.*}}], [%n, %n], [%{{.*}}], [%{{.*}}, %{{.*}}] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}
// CHECK-NEXT:   ttng.tensormap_fenceproxy_acquire %[[P]]
// CHECK-NEXT:   %[[D:.*]] = ttng.reinterpret_tensor_descriptor %[[P]]
// CHECK:        %[[J:.*]] = arith.select
// CHECK:        ttng.async_tma_copy_local_to_global %[[D]]
// CHECK-NEXT:   scf.yield %[[J]]
tt.func public @made_in_the_loop(%b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %stride: i64, %x: !L, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i32 {
    %d = tt.make_tensor_descriptor %b, [%n, %n], [%stride, %one] : !tt.ptr<f16>, !D
    tt.descriptor_store %d[%c0, %k], %x : !D, !L
  }
  tt.return
}

// One stage: stores stay as they are.
// CHECK-LABEL: @one_stage
// CHECK: tt.descriptor_store
tt.func public @one_stage(%d: !D, %x: !L, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    tt.descriptor_store %d[%c0, %k], %x : !D, !L
  } {tt.num_stages = 1 : i32}
  tt.return
}
}
