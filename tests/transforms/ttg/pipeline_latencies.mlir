// RUN: tilework opt %s -p "tritongpu-assign-latencies{num-stages=3}"

#A = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#B = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#N = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#V = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dA = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#dB = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!PA = tensor<64x32x!tt.ptr<f16>, #A>
!PB = tensor<32x64x!tt.ptr<f16>, #B>
!C = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Both loads of a product, over all stages but the last.
// CHECK-LABEL: @product
// CHECK: tt.load %{{.*}} {tt.latency = 2 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK: tt.load %{{.*}} {tt.latency = 2 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>
tt.func public @product(%pa: !PA {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %pb: !PB {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32, %z: !C) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %x = tt.load %pa : !PA
    %y = tt.load %pb : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// What the loop also stores to may have changed since the last iteration: it is not loaded early.
// CHECK-LABEL: @stored
// CHECK: tt.load %pa : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK: tt.load %pb {tt.latency = 2 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>
tt.func public @stored(%pa: !PA {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %pb: !PB {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32, %z: !C) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %x = tt.load %pa : !PA
    %y = tt.load %pb : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    tt.store %pa, %x : !PA
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// A loop that stores where it has just loaded, and moves on by at least a tile, never loads what it has stored.
// CHECK-LABEL: @in_place
// CHECK: tt.load %{{.*}} {tt.latency = 2 : i32} : tensor<512x!tt.ptr<f32>, #blocked{{.*}}>
tt.func public @in_place(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<512> : tensor<512xi32, #V>
  %start = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #V>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #V>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%o = %start) -> (tensor<512xi32, #V>) : i32 {
    %q = tt.addptr %base, %o : tensor<512x!tt.ptr<f32>, #V>, tensor<512xi32, #V>
    %x = tt.load %q : tensor<512x!tt.ptr<f32>, #V>
    %y = arith.addf %x, %x : tensor<512xf32, #V>
    tt.store %q, %y : tensor<512x!tt.ptr<f32>, #V>
    %next = arith.addi %o, %step : tensor<512xi32, #V>
    scf.yield %next : tensor<512xi32, #V>
  } {tt.num_stages = 3 : i32}
  tt.return
}

// One that moves on by half a tile loads some of it.
// CHECK-LABEL: @half_in_place
// CHECK: tt.load %{{[^{]*}} : tensor<512x!tt.ptr<f32>, #blocked{{.*}}>
tt.func public @half_in_place(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c256 = arith.constant 256 : i32
  %start = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #V>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #V>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %far = arith.muli %k, %c256 : i32
    %here = tt.splat %far : i32 -> tensor<512xi32, #V>
    %o = arith.addi %here, %start : tensor<512xi32, #V>
    %q = tt.addptr %base, %o : tensor<512x!tt.ptr<f32>, #V>, tensor<512xi32, #V>
    %x = tt.load %q : tensor<512x!tt.ptr<f32>, #V>
    tt.store %q, %x : tensor<512x!tt.ptr<f32>, #V>
  } {tt.num_stages = 3 : i32}
  tt.return
}

// A load for the address of another is one level up: each level gets one stage of two.
// CHECK-LABEL: @indirect
// CHECK: tt.load %{{.*}} {tt.latency = 1 : i32} : !tt.ptr<i32>
// CHECK: tt.load %{{.*}} {tt.latency = 1 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>
// CHECK: tt.load %{{.*}} {tt.latency = 1 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>
tt.func public @indirect(%idx: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %pa: !PA, %pb: !PB {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32, %z: !C) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %ip = tt.addptr %idx, %k : !tt.ptr<i32>, i32
    %i = tt.load %ip : !tt.ptr<i32>
    %is = tt.splat %i : i32 -> tensor<64x32xi32, #A>
    %q = tt.addptr %pa, %is {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>} : !PA, tensor<64x32xi32, #A>
    %x = tt.load %q : !PA
    %y = tt.load %pb : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// Two bytes at a time are not worth a copy.
// CHECK-LABEL: @too_narrow
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @too_narrow(%pa: !PA, %pb: !PB, %n: i32, %z: !C) -> !C {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> (!C) : i32 {
    %x = tt.load %pa : !PA
    %y = tt.load %pb : !PB
    %xa = ttg.convert_layout %x : tensor<64x32xf16, #A> -> tensor<64x32xf16, #dA>
    %yb = ttg.convert_layout %y : tensor<32x64xf16, #B> -> tensor<32x64xf16, #dB>
    %d = tt.dot %xa, %yb, %acc : tensor<64x32xf16, #dA> * tensor<32x64xf16, #dB> -> !C
    scf.yield %d : !C
  }
  tt.return %r : !C
}

// Without a product, and without being asked, nothing is pipelined.
// CHECK-LABEL: @copy
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @copy(%p: tensor<512x!tt.ptr<f32>, #V> {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = dense<512> : tensor<1xi32>}, %q: tensor<512x!tt.ptr<f32>, #V>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    tt.store %q, %x : tensor<512x!tt.ptr<f32>, #V>
  }
  tt.return
}

// A loop that asks for stages gets them for every load.
// CHECK-LABEL: @asked
// CHECK: tt.load %{{.*}} {tt.latency = 3 : i32}
tt.func public @asked(%p: tensor<512x!tt.ptr<f32>, #V> {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = dense<512> : tensor<1xi32>}, %q: tensor<512x!tt.ptr<f32>, #V>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    tt.store %q, %x : tensor<512x!tt.ptr<f32>, #V>
  } {tt.num_stages = 4 : i32}
  tt.return
}

// One stage is none.
// CHECK-LABEL: @one_stage
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @one_stage(%p: tensor<512x!tt.ptr<f32>, #V> {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = dense<512> : tensor<1xi32>}, %q: tensor<512x!tt.ptr<f32>, #V>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    tt.store %q, %x : tensor<512x!tt.ptr<f32>, #V>
  } {tt.num_stages = 1 : i32}
  tt.return
}

// Latencies that are there stay, and no others are added.
// CHECK-LABEL: @given
// CHECK: tt.load %{{.*}} {tt.latency = 1 : i32}
// CHECK: tt.load
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @given(%p: tensor<512x!tt.ptr<f32>, #V> {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = dense<512> : tensor<1xi32>}, %q: tensor<512x!tt.ptr<f32>, #V>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.load %p {tt.latency = 1 : i32} : tensor<512x!tt.ptr<f32>, #V>
    %y = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    %s = arith.addf %x, %y : tensor<512xf32, #V>
    tt.store %q, %s : tensor<512x!tt.ptr<f32>, #V>
  } {tt.num_stages = 3 : i32}
  tt.return
}

// Not the outer loop, nor one that carries a value over two iterations.
// CHECK-LABEL: @outer_and_distant
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @outer_and_distant(%p: tensor<512x!tt.ptr<f32>, #V> {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = dense<512> : tensor<1xi32>}, %q: tensor<512x!tt.ptr<f32>, #V>, %n: i32, %z: tensor<512xf32, #V>) -> tensor<512xf32, #V> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %o = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tt.store %q, %x : tensor<512x!tt.ptr<f32>, #V>
    }
  } {tt.num_stages = 3 : i32}
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %z, %b = %z) -> (tensor<512xf32, #V>, tensor<512xf32, #V>) : i32 {
    %x = tt.load %p : tensor<512x!tt.ptr<f32>, #V>
    %s = arith.addf %x, %b : tensor<512xf32, #V>
    scf.yield %s, %a : tensor<512xf32, #V>, tensor<512xf32, #V>
  } {tt.num_stages = 3 : i32}
  tt.return %r#0 : tensor<512xf32, #V>
}
}
