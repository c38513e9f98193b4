// RUN: tilework opt %s -p tritongpu-schedule-loops

#A = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dA = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#dB = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!PA = tensor<64x32x!tt.ptr<f16>, #A>
!PB = tensor<32x64x!tt.ptr<f16>, #B>
!C = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Loads first, the next pointers one stage behind and in front of them, the product last but in the first cluster.
// CHECK-LABEL: @product
// CHECK: tt.load %{{.*}} {loop.cluster = 3 : i32, loop.stage = 0 : i32} : tensor<64x32
// CHECK: tt.load %{{.*}} {loop.cluster = 3 : i32, loop.stage = 0 : i32} : tensor<32x64
// CHECK: ttg.convert_layout %{{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK: tt.dot {{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
// CHECK: tt.addptr {{.*}} {loop.cluster = 2 : i32, loop.stage = 1 : i32}
// CHECK: } {tt.scheduled_max_stage = 2 : i32}
tt.func public @product(%pa: !PA, %pb: !PB, %n: i32, %z: !C, %step: tensor<64x32xi32, #A>) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z, %q = %pa) -> (!C, !PA) : i32 {
    %x = tt.load %q {tt.latency = 2 : i32} : !PA
    %y = tt.load %pb {tt.latency = 2 : i32} : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    %next = tt.addptr %q, %step : !PA, tensor<64x32xi32, #A>
    scf.yield %d, %next : !C, !PA
  }
  tt.return %r#0 : !C
}

// A branch that a load needs comes first, at the stage of the load; one that no op needs comes last.
// CHECK-LABEL: @branches
// CHECK: arith.cmpi {{.*}} {loop.cluster = 0 : i32, loop.stage = 0 : i32}
// CHECK: scf.if
// CHECK: } {loop.cluster = 0 : i32, loop.stage = 0 : i32}
// CHECK: tt.load %{{.*}} {loop.cluster = 3 : i32, loop.stage = 0 : i32} : tensor<64x32
// CHECK: tt.dot {{.*}} {loop.cluster = 1 : i32, loop.stage = 2 : i32}
// CHECK: scf.if
// CHECK: } {loop.cluster = 5 : i32, loop.stage = 2 : i32}
tt.func public @branches(%pa: !PA, %pa2: !PA, %pb: !PB, %pc: tensor<64x64x!tt.ptr<f32>, #mma>, %n: i32, %m: i32, %c: i1, %z: !C, %offs: tensor<64x32xi32, #A>) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %f = arith.cmpi slt, %k, %m : i32
    %q = scf.if %f -> (!PA) {
      %t = tt.addptr %pa, %offs : !PA, tensor<64x32xi32, #A>
      scf.yield %t : !PA
    } else {
      scf.yield %pa2 : !PA
    }
    %x = tt.load %q {tt.latency = 2 : i32} : !PA
    %y = tt.load %pb {tt.latency = 2 : i32} : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    scf.if %c {
      tt.store %pc, %z : tensor<64x64x!tt.ptr<f32>, #mma>
    }
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// Two levels of loads: a stage each.
// CHECK-LABEL: @indirect
// CHECK: tt.load %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>
// CHECK: tt.load %{{.*}} {loop.cluster = 1 : i32, loop.stage = 1 : i32} : tensor<64x32
// CHECK: tt.load %{{.*}} {loop.cluster = 1 : i32, loop.stage = 1 : i32} : tensor<32x64
// CHECK: tt.dot {{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
tt.func public @indirect(%idx: !tt.ptr<i32>, %pa: !PA, %pb: !PB, %n: i32, %z: !C) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %ip = tt.addptr %idx, %k : !tt.ptr<i32>, i32
    %i = tt.load %ip {tt.latency = 1 : i32} : !tt.ptr<i32>
    %is = tt.splat %i : i32 -> tensor<64x32xi32, #A>
    %q = tt.addptr %pa, %is : !PA, tensor<64x32xi32, #A>
    %x = tt.load %q {tt.latency = 1 : i32} : !PA
    %y = tt.load %pb {tt.latency = 1 : i32} : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// No latencies, no schedule; a barrier or an assertion, none either.
// CHECK-LABEL: @untouched
// CHECK-NOT: loop.stage
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @untouched(%pa: !PA, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %pa : !PA
    tt.store %pa, %x : !PA
  }
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %pa {tt.latency = 2 : i32} : !PA
    ttg.barrier all
    tt.store %pa, %x : !PA
  }
  scf.for %k = %c0 to %n step %c1 : i32 {
    %is_low = arith.cmpi slt, %k, %n : i32
    tt.assert %is_low, "k < n" : i1
    %x = tt.load %pa {tt.latency = 2 : i32} : !PA
    tt.store %pa, %x : !PA
  }
  tt.return
}
}
