// RUN: tilework opt %s -p 'tritonamdgpu-block-pingpong{num-stages=3}'

#blocked = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// Copies are in flight in both halves of the loop; the wait in the first one no longer counts the second copy.
// CHECK-LABEL: @copies
// CHECK:      ttg.barrier local
// CHECK:      amdg.cond_barrier %[[UPPER:.*]]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   ttg.memdesc_index %ra
// CHECK-NEXT:   ttg.memdesc_index %rb
// CHECK-NEXT:   ttg.local_load %ma token %ready
// CHECK-NEXT:   ttg.local_load %mb token %ready
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   ttg.async_copy_global_to_local %pa
// CHECK-NEXT:   ttg.async_commit_group
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   ttg.async_wait %ta, %tb {num = 1 : i32}
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:   rocdl.sched.group.barrier 4, 3, 0
// CHECK-NEXT:   rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:   rocdl.sched.group.barrier 4, 3, 0
// CHECK-NEXT:   rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:   ttg.async_copy_global_to_local %pb
// CHECK-NEXT:   ttg.async_commit_group
// CHECK-NEXT:   tt.dot
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   rocdl.s.barrier
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   scf.yield
// CHECK:      amdg.cond_barrier %[[LOWER:.*]]
tt.func public @copies(%pa: tensor<128x32x!tt.ptr<f16>, #blocked>, %pb: tensor<32x128x!tt.ptr<f16>, #blocked>, %ra: !ttg.memdesc<3x128x32xf16, #shared, #smem, mutable>, %rb: !ttg.memdesc<3x32x128xf16, #shared, #smem, mutable>, %a0: !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, %b0: !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, %a1: !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, %b1: !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, %t: !ttg.async.token, %n: i32, %i: i32) -> tensor<128x128xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
  %r:8 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %ma = %a0, %na = %a1, %ready = %t, %mb = %b0, %nb = %b1, %ta = %t, %tb = %t) -> (tensor<128x128xf32, #mma>, !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, !ttg.async.token, !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, !ttg.async.token, !ttg.async.token) : i32 {
    %va = ttg.memdesc_index %ra[%i] : !ttg.memdesc<3x128x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<128x32xf16, #shared, #smem, mutable>
    %ca = ttg.async_copy_global_to_local %pa, %va : tensor<128x32x!tt.ptr<f16>, #blocked> -> <128x32xf16, #shared, #smem, mutable>
    %ga = ttg.async_commit_group tokens %ca
    %x = ttg.local_load %ma token %ready : !ttg.memdesc<128x32xf16, #shared, #smem, mutable> -> tensor<128x32xf16, #a>
    %vb = ttg.memdesc_index %rb[%i] : !ttg.memdesc<3x32x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x128xf16, #shared, #smem, mutable>
    %cb = ttg.async_copy_global_to_local %pb, %vb : tensor<32x128x!tt.ptr<f16>, #blocked> -> <32x128xf16, #shared, #smem, mutable>
    %gb = ttg.async_commit_group tokens %cb
    %y = ttg.local_load %mb token %ready : !ttg.memdesc<32x128xf16, #shared, #smem, mutable> -> tensor<32x128xf16, #b>
    %d = tt.dot %x, %y, %acc : tensor<128x32xf16, #a> * tensor<32x128xf16, #b> -> tensor<128x128xf32, #mma>
    %w = ttg.async_wait %ta, %tb {num = 2 : i32}
    scf.yield %d, %na, %va, %w, %nb, %vb, %ga, %gb : tensor<128x128xf32, #mma>, !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, !ttg.memdesc<128x32xf16, #shared, #smem, mutable>, !ttg.async.token, !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, !ttg.memdesc<32x128xf16, #shared, #smem, mutable>, !ttg.async.token, !ttg.async.token
  }
  tt.return %r#0 : tensor<128x128xf32, #mma>
}

// Elements of 32 bits are left alone.
// CHECK-LABEL: @words
// CHECK-NOT:  amdg.cond_barrier
tt.func public @words(%pa: tensor<128x32x!tt.ptr<f32>, #blocked>, %pb: tensor<32x128x!tt.ptr<f32>, #blocked>, %ra: !ttg.memdesc<3x128x32xf32, #shared, #smem, mutable>, %rb: !ttg.memdesc<3x32x128xf32, #shared, #smem, mutable>, %a0: !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, %b0: !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, %a1: !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, %b1: !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, %t: !ttg.async.token, %n: i32, %i: i32) -> tensor<128x128xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
  %r:8 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %ma = %a0, %na = %a1, %ready = %t, %mb = %b0, %nb = %b1, %ta = %t, %tb = %t) -> (tensor<128x128xf32, #mma>, !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, !ttg.async.token, !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, !ttg.async.token, !ttg.async.token) : i32 {
    %va = ttg.memdesc_index %ra[%i] : !ttg.memdesc<3x128x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<128x32xf32, #shared, #smem, mutable>
    %ca = ttg.async_copy_global_to_local %pa, %va : tensor<128x32x!tt.ptr<f32>, #blocked> -> <128x32xf32, #shared, #smem, mutable>
    %ga = ttg.async_commit_group tokens %ca
    %x = ttg.local_load %ma token %ready : !ttg.memdesc<128x32xf32, #shared, #smem, mutable> -> tensor<128x32xf32, #a>
    %vb = ttg.memdesc_index %rb[%i] : !ttg.memdesc<3x32x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x128xf32, #shared, #smem, mutable>
    %cb = ttg.async_copy_global_to_local %pb, %vb : tensor<32x128x!tt.ptr<f32>, #blocked> -> <32x128xf32, #shared, #smem, mutable>
    %gb = ttg.async_commit_group tokens %cb
    %y = ttg.local_load %mb token %ready : !ttg.memdesc<32x128xf32, #shared, #smem, mutable> -> tensor<32x128xf32, #b>
    %d = tt.dot %x, %y, %acc : tensor<128x32xf32, #a> * tensor<32x128xf32, #b> -> tensor<128x128xf32, #mma>
    %w = ttg.async_wait %ta, %tb {num = 2 : i32}
    scf.yield %d, %na, %va, %w, %nb, %vb, %ga, %gb : tensor<128x128xf32, #mma>, !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, !ttg.memdesc<128x32xf32, #shared, #smem, mutable>, !ttg.async.token, !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, !ttg.memdesc<32x128xf32, #shared, #smem, mutable>, !ttg.async.token, !ttg.async.token
  }
  tt.return %r#0 : tensor<128x128xf32, #mma>
}
}
