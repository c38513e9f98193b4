// RUN: tilework opt %s -p tritonamdgpu-warp-pipeline | filecheck %s
// RUN: tilework opt %s -p tritonamdgpu-warp-pipeline,convert-warp-pipeline | filecheck %s --check-prefix=FLAT

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!V = tensor<1024xf32, #blocked>
!M = !ttg.memdesc<1024xf32, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// The ops after the last border are a cluster too; a wait may be between clusters.
// CHECK-LABEL: @clusters(
// CHECK: scf.for
// CHECK-NEXT: scf.execute_region no_inline {
// CHECK-NEXT: tt.load
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } {triton.warp_pipeline.priority = 3 : i32, triton.warp_pipeline.stage = "load"}
// CHECK-NEXT: ttg.async_wait
// CHECK-NEXT: %[[Y:.*]] = scf.execute_region -> tensor<1024xf32, #blocked> no_inline {
// CHECK-NEXT: %[[READ:.*]] = ttg.local_load
// CHECK-NEXT: scf.yield %[[READ]]
// CHECK-NEXT: } {triton.warp_pipeline.stage = "read"}
// CHECK-NEXT: %[[Z:.*]] = scf.execute_region -> tensor<1024xf32, #blocked> no_inline {
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %s, %[[Y]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK-NEXT: } {triton.warp_pipeline.stage = "last_cluster"}
// CHECK-NEXT: scf.yield %[[Z]]
// CHECK-NEXT: } {triton.warp_pipeline.pipelined_for}
// FLAT-LABEL: @clusters(
// FLAT: scf.for
// FLAT-NEXT: rocdl.sched.barrier 0
// FLAT-NEXT: rocdl.s.setprio 3
// FLAT-NEXT: tt.load
// FLAT-NEXT: ttg.local_store
// FLAT-NEXT: ttg.async_wait
// FLAT-NEXT: rocdl.sched.barrier 0
// FLAT-NEXT: rocdl.s.setprio 0
// FLAT-NEXT: %[[READ:.*]] = ttg.local_load
// FLAT-NEXT: rocdl.sched.barrier 0
// FLAT-NEXT: rocdl.s.setprio 0
// FLAT-NEXT: %[[SUM:.*]] = arith.addf %s, %[[READ]]
// FLAT-NEXT: rocdl.s.setprio 0
// FLAT-NEXT: scf.yield %[[SUM]]
// FLAT-NEXT: }
// FLAT-NOT: warp_pipeline
// FLAT-LABEL: @waits_inside(
tt.func public @clusters(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %m: !M, %v: !V, %n: i32) -> !V {
  %r = scf.for %i = %n to %n step %n iter_args(%s = %v) -> (!V) : i32 {
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>, #blocked>
    ttg.local_store %x, %m : !V -> !M
    rocdl.sched.barrier 0 {triton.warp_pipeline.border = "load", triton.warp_pipeline.priority = 3 : i32}
    %w = ttg.async_wait {num = 0 : i32}
    %y = ttg.local_load %m : !M -> !V
    rocdl.sched.barrier 0 {triton.warp_pipeline.border = "read"}
    %z = arith.addf %s, %y : !V
    scf.yield %z : !V
  }
  tt.return %r : !V
}

// A wait inside a cluster, and a single cluster: the loop is left alone.
// CHECK-LABEL: @waits_inside(
// CHECK-NOT: execute_region
// CHECK-LABEL: @one_cluster(
// CHECK-NOT: execute_region
tt.func public @waits_inside(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %m: !M, %v: !V, %n: i32) -> !V {
  %r = scf.for %i = %n to %n step %n iter_args(%s = %v) -> (!V) : i32 {
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>, #blocked>
    %w = ttg.async_wait {num = 0 : i32}
    rocdl.sched.barrier 0 {triton.warp_pipeline.border = "load"}
    %z = arith.addf %s, %x : !V
    rocdl.sched.barrier 0 {triton.warp_pipeline.border = "add"}
    scf.yield %z : !V
  }
  tt.return %r : !V
}

tt.func public @one_cluster(%v: !V, %n: i32) -> !V {
  %r = scf.for %i = %n to %n step %n iter_args(%s = %v) -> (!V) : i32 {
    %z = arith.addf %s, %v : !V
    rocdl.sched.barrier 0 {triton.warp_pipeline.border = "add"}
    scf.yield %z : !V
  }
  tt.return %r : !V
}

// An op that is no region keeps its attribute, as does a region of several blocks.
// CHECK-LABEL: @no_clusters(
// FLAT-LABEL: @no_clusters(
// FLAT: arith.addi {{.*}} {triton.warp_pipeline.stage = "x"}
// FLAT-NEXT: scf.execute_region no_inline {
// FLAT: } {triton.warp_pipeline.stage = "y"}
// FLAT-NEXT: rocdl.sched.barrier 0
// FLAT-NEXT: ttg.local_store
// FLAT-NEXT: }
tt.func public @no_clusters(%m: !M, %v: !V, %n: i32) {
  scf.for %i = %n to %n step %n : i32 {
    %y = arith.addi %i, %n {triton.warp_pipeline.stage = "x"} : i32
    scf.execute_region no_inline {
      cf.br ^bb1
    ^bb1:
      ttg.local_store %v, %m : !V -> !M
      scf.yield
    } {triton.warp_pipeline.stage = "y"}
    scf.execute_region no_inline {
      ttg.local_store %v, %m : !V -> !M
      scf.yield
    } {triton.warp_pipeline.stage = "z"}
  } {triton.warp_pipeline.pipelined_for}
  tt.return
}
}
