// RUN: tilework opt %s -p tritonamdgpu-reorder-instructions,tritonamdgpu-block-pingpong

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: @take_turns
// CHECK:      scf.for
// CHECK-NEXT:   %[[A:.*]] = ttg.local_load %ma
// CHECK-NEXT:   rocdl.s.setprio 1
// CHECK-NEXT:   tt.load %pa
// CHECK-NEXT:   rocdl.sched.barrier 0
// CHECK-NEXT:   %[[B:.*]] = ttg.local_load %mb
// CHECK-NEXT:   rocdl.s.setprio 0
// CHECK-NEXT:   %[[MASK:.*]] = tt.splat %c
// CHECK-NEXT:   tt.load %pb, %[[MASK]]
// CHECK-NEXT:   rocdl.sched.barrier 1
// CHECK-NEXT:   rocdl.s.setprio 1
// CHECK-NEXT:   tt.dot %[[A]], %[[B]]
// CHECK-NEXT:   rocdl.s.setprio 0
// CHECK-NEXT:   ttg.local_store
tt.func public @take_turns(%pa: tensor<64x32x!tt.ptr<f16>, #blocked>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %c: i1, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %x = tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #a>
    %m = tt.splat %c : i1 -> tensor<32x64xi1, #blocked1>
    %y = tt.load %pb, %m : tensor<32x64x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<32x64xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    ttg.local_store %x, %ma : tensor<64x32xf16, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    ttg.local_store %y, %mb : tensor<32x64xf16, #blocked1> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}

// A store in front of the second operand's read: that of the next iteration.
// CHECK-LABEL: @stored_between
// CHECK-NOT:  rocdl
tt.func public @stored_between(%pa: tensor<64x32x!tt.ptr<f16>, #blocked>, %pb: tensor<32x64x!tt.ptr<f16>, #blocked1>, %ma: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %x = tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
    %a = ttg.local_load %ma : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #a>
    ttg.local_store %x, %ma : tensor<64x32xf16, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %y = tt.load %pb : tensor<32x64x!tt.ptr<f16>, #blocked1>
    %b = ttg.local_load %mb : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<32x64xf16, #b>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}

// A load in front of a pipelined loop moves up, with its mask, but not over a store.
// CHECK-LABEL: @raised
// CHECK:      tt.addptr %p, %c1
// CHECK-NEXT: %[[MASK:.*]] = arith.cmpi sgt, %n, %c1
// CHECK-NEXT: tt.load %{{.*}}, %[[MASK]] {amd.pipeliner_part = "prologue"}
// CHECK:      tt.store %p
// CHECK-NEXT: tt.load %{{.*}} {amd.pipeliner_part = "prologue"}
tt.func public @raised(%p: !tt.ptr<i32>, %n: i32, %m: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, %v: tensor<64x32xf16, #blocked>) -> (i32, i32) {
  %c1 = arith.constant 1 : i32
  %q = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
  %r = tt.addptr %q, %c1 : !tt.ptr<i32>, i32
  ttg.local_store %v, %m : tensor<64x32xf16, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
  %c = arith.cmpi sgt, %n, %c1 : i32
  %x = tt.load %q, %c {amd.pipeliner_part = "prologue"} : !tt.ptr<i32>
  tt.store %p, %n : !tt.ptr<i32>
  %s = arith.addi %n, %c1 : i32
  %y = tt.load %r {amd.pipeliner_part = "prologue"} : !tt.ptr<i32>
  tt.return %x, %y : i32, i32
}
}
