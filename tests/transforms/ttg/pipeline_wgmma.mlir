// RUN: tilework opt %s -p "tritongpu-pipeline,canonicalize"

#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!M = !ttg.memdesc<64x64xf16, #s, #smem>
!W = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!L = tensor<64x64xf16, #B>
!T = tensor<64x64xf32, #mma>
!P = tensor<64x64x!tt.ptr<f32>, #mma>
!R = tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
!K = !ttg.memdesc<32x64xf16, #s, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The product of this iteration runs on; that of the one before is done. All are done behind the loop.
// CHECK-LABEL: @runs_on
// CHECK:      %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %z)
// CHECK-NEXT:   %[[D:.*]] = ttng.warp_group_dot %a, %b, %[[ACC]] {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT:   %[[W:.*]]:3 = ttng.warp_group_dot_wait %[[D]], %a, %b {pendings = 1 : i32}
// CHECK-NEXT:   scf.yield %[[W]]#0
// CHECK:      ttng.warp_group_dot_wait %[[R]] {pendings = 0 : i32}
tt.func public @runs_on(%a: !M, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !M * !M -> !T
    scf.yield %d : !T
  }
  tt.return %r : !T
}

// Two sums: one wait behind the last product, for both.
// CHECK-LABEL: @two_sums
// CHECK: %[[D:.*]] = ttng.warp_group_dot %a, %b
// CHECK-NEXT: %[[E:.*]] = ttng.warp_group_dot %b, %b
// CHECK-NEXT: %[[W:.*]]:4 = ttng.warp_group_dot_wait %[[D]], %[[E]], %a, %b {pendings = 2 : i32}
// CHECK-NEXT: scf.yield %[[W]]#0, %[[W]]#1
tt.func public @two_sums(%a: !M, %b: !M, %n: i32, %z: !T) -> (!T, !T) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %z, %y = %z) -> (!T, !T) : i32 {
    %d = ttng.warp_group_dot %a, %b, %x {inputPrecision = 0 : i32} : !M * !M -> !T
    %e = ttng.warp_group_dot %b, %b, %y {inputPrecision = 0 : i32} : !M * !M -> !T
    scf.yield %d, %e : !T, !T
  }
  tt.return %r#0, %r#1 : !T, !T
}

// A result that is read at once is waited for at once.
// CHECK-LABEL: @read
// CHECK: %[[D:.*]] = ttng.warp_group_dot {{.*}} isAsync = true
// CHECK-NEXT: %[[W:.*]]:3 = ttng.warp_group_dot_wait %[[D]], %a, %b {pendings = 0 : i32}
// CHECK-NEXT: arith.addf %[[W]]#0, %[[W]]#0
// CHECK-NOT: ttng.warp_group_dot_wait
// CHECK: tt.return
tt.func public @read(%a: !M, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !M * !M -> !T
    %e = arith.addf %d, %d : !T
    scf.yield %e : !T
  }
  tt.return %r : !T
}

// The sum is read behind a full wait, and goes through it: the second product may run on.
// CHECK-LABEL: @read_behind_a_wait
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %z)
// CHECK: %[[S:.*]] = ttng.warp_group_dot %a, %b, %z
// CHECK-NEXT: %[[W:.*]]:4 = ttng.warp_group_dot_wait %[[S]], %a, %b, %[[ACC]] {pendings = 0 : i32}
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[W]]#3, %[[W]]#0
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot %a, %b, %[[F]]
// CHECK-NEXT: scf.yield %[[D]]
tt.func public @read_behind_a_wait(%a: !M, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %s = ttng.warp_group_dot %a, %b, %z {inputPrecision = 0 : i32} : !M * !M -> !T
    %f = arith.mulf %acc, %s : !T
    %d = ttng.warp_group_dot %a, %b, %f {inputPrecision = 0 : i32} : !M * !M -> !T
    scf.yield %d : !T
  }
  tt.return %r : !T
}

// A branch waits if it reads. That it passes the sum on stays a branch: a select would read it.
// CHECK-LABEL: @branch
// CHECK: %[[W:.*]]:3 = ttng.warp_group_dot_wait %{{.*}}, %a, %b {pendings = 1 : i32}
// CHECK-NEXT: %[[E:.*]] = scf.if %c
// CHECK-NEXT:   %[[V:.*]]:3 = ttng.warp_group_dot_wait %[[W]]#0, %a, %b {pendings = 0 : i32}
// CHECK-NEXT:   tt.store %p, %[[V]]#0
// CHECK-NEXT:   scf.yield %z
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield %[[W]]#0
// CHECK:      scf.yield %[[E]]
tt.func public @branch(%a: !M, %b: !M, %n: i32, %z: !T, %c: i1, %p: !P) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !M * !M -> !T
    %e = scf.if %c -> (!T) {
      tt.store %p, %d : !P
      scf.yield %z : !T
    } else {
      scf.yield %d : !T
    }
    scf.yield %e : !T
  }
  tt.return %r : !T
}

// Memory that the loop fills anew must not be overwritten: wait.
// CHECK-LABEL: @filled_in_the_loop
// CHECK: %[[M:.*]] = ttg.local_alloc %x
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot %[[M]], %b
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]], %[[M]], %b {pendings = 0 : i32}
tt.func public @filled_in_the_loop(%x: !L, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %a = ttg.local_alloc %x : (!L) -> !M
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !M * !M -> !T
    scf.yield %d : !T
  }
  tt.return %r : !T
}

// The registers of a left factor that is computed anew are free when the product is done.
// CHECK-LABEL: @registers
// CHECK:      %[[A:.*]] = tt.load
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot %[[A]], %b, %{{.*}} {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT: %[[W:.*]]:2 = ttng.warp_group_dot_wait %[[D]], %b {pendings = 0 : i32}
// CHECK-NEXT: scf.yield %[[W]]#0
tt.func public @registers(%p: tensor<64x32x!tt.ptr<f16>, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %b: !K, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!T) : i32 {
    %a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !R * !K -> !T
    scf.yield %d : !T
  }
  tt.return %r : !T
}

// The copy goes to the only buffer there is, which the product reads.
// CHECK-LABEL: @overwritten
// CHECK: %[[D:.*]] = ttng.warp_group_dot
// CHECK: ttng.warp_group_dot_wait %[[D]], {{.*}} {pendings = 0 : i32}
// CHECK-NEXT: ttg.async_copy_global_to_local
tt.func public @overwritten(%p: tensor<64x64x!tt.ptr<f16>, #B>, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 1 : i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #s, #smem, mutable>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z, %i = %c0) -> (!T, i32) : i32 {
    %i1 = arith.addi %i, %c1 : i32
    %ends = arith.cmpi sge, %i1, %size : i32
    %j = arith.select %ends, %c0, %i1 : i32
    %a = ttg.memdesc_index %ring[%i] : !ttg.memdesc<1x64x64xf16, #s, #smem, mutable> -> !W
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !W * !M -> !T
    %to = ttg.memdesc_index %ring[%j] : !ttg.memdesc<1x64x64xf16, #s, #smem, mutable> -> !W
    %t = ttg.async_copy_global_to_local %p, %to : tensor<64x64x!tt.ptr<f16>, #B> -> !W
    scf.yield %d, %j : !T, i32
  }
  tt.return %r#0 : !T
}

// It goes to another one.
// CHECK-LABEL: @beside
// CHECK: %[[D:.*]] = ttng.warp_group_dot
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]], {{.*}} {pendings = 1 : i32}
// CHECK: ttg.async_copy_global_to_local
tt.func public @beside(%p: tensor<64x64x!tt.ptr<f16>, #B>, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 2 : i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #s, #smem, mutable>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z, %i = %c0) -> (!T, i32) : i32 {
    %i1 = arith.addi %i, %c1 : i32
    %ends = arith.cmpi sge, %i1, %size : i32
    %j = arith.select %ends, %c0, %i1 : i32
    %a = ttg.memdesc_index %ring[%i] : !ttg.memdesc<2x64x64xf16, #s, #smem, mutable> -> !W
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !W * !M -> !T
    %to = ttg.memdesc_index %ring[%j] : !ttg.memdesc<2x64x64xf16, #s, #smem, mutable> -> !W
    %t = ttg.async_copy_global_to_local %p, %to : tensor<64x64x!tt.ptr<f16>, #B> -> !W
    scf.yield %d, %j : !T, i32
  }
  tt.return %r#0 : !T
}

// It goes to the one that was read in the iteration before.
// CHECK-LABEL: @overwritten_next
// CHECK: ttg.async_copy_global_to_local
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]], {{.*}} {pendings = 0 : i32}
tt.func public @overwritten_next(%p: tensor<64x64x!tt.ptr<f16>, #B>, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 2 : i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #s, #smem, mutable>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z, %i = %c0) -> (!T, i32) : i32 {
    %i1 = arith.addi %i, %c1 : i32
    %ends = arith.cmpi sge, %i1, %size : i32
    %j = arith.select %ends, %c0, %i1 : i32
    %a = ttg.memdesc_index %ring[%i] : !ttg.memdesc<2x64x64xf16, #s, #smem, mutable> -> !W
    %to = ttg.memdesc_index %ring[%j] : !ttg.memdesc<2x64x64xf16, #s, #smem, mutable> -> !W
    %t = ttg.async_copy_global_to_local %p, %to : tensor<64x64x!tt.ptr<f16>, #B> -> !W
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !W * !M -> !T
    scf.yield %d, %j : !T, i32
  }
  tt.return %r#0 : !T
}

// With three it is another one.
// CHECK-LABEL: @beside_next
// CHECK: ttg.async_copy_global_to_local
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot
// CHECK-NEXT: ttng.warp_group_dot_wait %[[D]], {{.*}} {pendings = 1 : i32}
tt.func public @beside_next(%p: tensor<64x64x!tt.ptr<f16>, #B>, %b: !M, %n: i32, %z: !T) -> !T {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 3 : i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #s, #smem, mutable>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z, %i = %c0) -> (!T, i32) : i32 {
    %i1 = arith.addi %i, %c1 : i32
    %ends = arith.cmpi sge, %i1, %size : i32
    %j = arith.select %ends, %c0, %i1 : i32
    %a = ttg.memdesc_index %ring[%i] : !ttg.memdesc<3x64x64xf16, #s, #smem, mutable> -> !W
    %to = ttg.memdesc_index %ring[%j] : !ttg.memdesc<3x64x64xf16, #s, #smem, mutable> -> !W
    %t = ttg.async_copy_global_to_local %p, %to : tensor<64x64x!tt.ptr<f16>, #B> -> !W
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : !W * !M -> !T
    scf.yield %d, %j : !T, i32
  }
  tt.return %r#0 : !T
}

// Outside of loops a product is waited for where it is.
// CHECK-LABEL: @outside
// CHECK-NOT: isAsync
// CHECK: tt.return
tt.func public @outside(%a: !M, %b: !M, %z: !T) -> !T {
  %d = ttng.warp_group_dot %a, %b, %z {inputPrecision = 0 : i32} : !M * !M -> !T
  tt.return %d : !T
}
}
