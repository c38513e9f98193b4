// RUN: tilework opt %s -p triton-loop-unroll

// CHECK-LABEL: tt.func public @dynamic
// CHECK:       %[[TRIP:.*]] = arith.maxsi %n, %{{.*}} : i32
// CHECK-NEXT:  %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-NEXT:  %[[LEFT:.*]] = arith.remui %[[TRIP]], %[[TWO]] : i32
// CHECK-NEXT:  %[[STEP:.*]] = arith.muli %c1, %[[TWO]] : i32
// CHECK-NEXT:  %[[EVEN:.*]] = arith.subi %[[TRIP]], %[[LEFT]] : i32
// CHECK-NEXT:  %[[LEN:.*]] = arith.muli %[[EVEN]], %c1 : i32
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT:  %[[WHOLE:.*]] = arith.cmpi eq, %[[LEFT]], %[[ZERO]] : i32
// CHECK-NEXT:  %[[END:.*]] = arith.addi %c0, %[[LEN]] : i32
// CHECK-NEXT:  %[[MID:.*]] = arith.select %[[WHOLE]], %n, %[[END]] : i32
// CHECK-NEXT:  %[[MAIN:.*]] = scf.for %k = %c0 to %[[MID]] step %[[STEP]] iter_args(%acc = %f) -> (f32)
// CHECK-NEXT:    %[[F0:.*]] = arith.sitofp %k : i32 to f32
// CHECK-NEXT:    %[[T0:.*]] = arith.addf %acc, %[[F0]] : f32
// CHECK-NEXT:    %[[I:.*]] = arith.constant 1 : i32
// CHECK-NEXT:    %[[DIST:.*]] = arith.muli %c1, %[[I]] : i32
// CHECK-NEXT:    %[[K1:.*]] = arith.addi %k, %[[DIST]] : i32
// CHECK-NEXT:    %[[F1:.*]] = arith.sitofp %[[K1]] : i32 to f32
// CHECK-NEXT:    %[[T1:.*]] = arith.addf %[[T0]], %[[F1]] : f32
// CHECK-NEXT:    scf.yield %[[T1]] : f32
// CHECK-NEXT:  } {tt.num_stages = 3 : i32}
// CHECK-NEXT:  %[[REST:.*]] = scf.for %{{.*}} = %[[MID]] to %n step %c1 iter_args(%{{.*}} = %[[MAIN]]) -> (f32)
// CHECK:       } {tt.num_stages = 1 : i32}
// CHECK-NEXT:  tt.return %[[REST]] : f32
tt.func public @dynamic(%n: i32, %f: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  } {tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32}
  tt.return %r : f32
}

// Another step: if two of them would not fit, the loop behind runs all iterations. The unused counter is not computed.
// CHECK-LABEL: tt.func public @dynamic_step
// CHECK:       %[[SPAN:.*]] = arith.maxsi %n, %{{.*}} : i64
// CHECK-NEXT:  %[[TRIP:.*]] = arith.ceildivui %[[SPAN]], %s : i64
// CHECK:       %[[WIDE:.*]] = arith.muli %s,
// CHECK-NEXT:  %[[MOST:.*]] = arith.constant 4611686018427387903 : i64
// CHECK-NEXT:  %[[FITS:.*]] = arith.cmpi sle, %s, %[[MOST]] : i64
// CHECK-NEXT:  arith.select %[[FITS]], %{{.*}}, %[[TRIP]] : i64
// CHECK-NEXT:  arith.select %[[FITS]], %[[WIDE]], %s : i64
// CHECK:       scf.for
// CHECK-NEXT:    %[[T0:.*]] = arith.addf %a, %b : f32
// CHECK-NEXT:    %[[T1:.*]] = arith.addf %b, %[[T0]] : f32
// CHECK-NEXT:    scf.yield %[[T0]], %[[T1]] : f32, f32
tt.func public @dynamic_step(%n: i64, %s: i64, %f: f32, %g: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : i64
  %r:2 = scf.for %k = %c0 to %n step %s iter_args(%a = %f, %b = %g) -> (f32, f32) : i64 {
    %t = arith.addf %a, %b : f32
    scf.yield %b, %t : f32, f32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return %r#0, %r#1 : f32, f32
}

// Seven iterations by three: two groups, and one more behind them.
// CHECK-LABEL: tt.func public @remainder_of_one
// CHECK:       %[[MID:.*]] = arith.constant 6 : i32
// CHECK-NEXT:  %[[STEP:.*]] = arith.constant 3 : i32
// CHECK-NEXT:  %[[MAIN:.*]] = scf.for %{{.*}} = %c0 to %[[MID]] step %[[STEP]]
// CHECK:       }
// CHECK-NEXT:  %[[F:.*]] = arith.sitofp %[[MID]] : i32 to f32
// CHECK-NEXT:  %[[R:.*]] = arith.addf %[[MAIN]], %[[F]] : f32
// CHECK-NEXT:  tt.return %[[R]] : f32
tt.func public @remainder_of_one(%f: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %r = scf.for %k = %c0 to %c7 step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %kf = arith.sitofp %k : i32 to f32
    %t = arith.addf %acc, %kf : f32
    scf.yield %t : f32
  } {tt.loop_unroll_factor = 3 : i32}
  tt.return %r : f32
}

// No remainder: one loop.
// CHECK-LABEL: tt.func public @exact
// CHECK:       %[[STEP:.*]] = arith.constant 4 : i32
// CHECK-NEXT:  %[[R:.*]] = scf.for %k = %c0 to %c8 step %[[STEP]]
// CHECK:       }
// CHECK-NEXT:  tt.return %[[R]] : f32
tt.func public @exact(%f: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %k = %c0 to %c8 step %c2 iter_args(%acc = %f) -> (f32) : i32 {
    %t = arith.addf %acc, %f : f32
    scf.yield %t : f32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return %r : f32
}

// All iterations in one group: no loop.
// CHECK-LABEL: tt.func public @complete
// CHECK-NOT:   scf.for
// CHECK:       %[[T0:.*]] = arith.addf %f, %f : f32
// CHECK-NEXT:  %[[T1:.*]] = arith.addf %[[T0]], %f : f32
// CHECK-NEXT:  tt.return %[[T1]] : f32
tt.func public @complete(%f: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %k = %c0 to %c2 step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    %t = arith.addf %acc, %f : f32
    scf.yield %t : f32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return %r : f32
}

// Fewer iterations than the factor: only the loop for the rest.
// CHECK-LABEL: tt.func public @too_short
// CHECK:       %c4 = arith.constant 4 : i32
// CHECK-NEXT:  %[[MID:.*]] = arith.constant 0 : i32
// CHECK:       scf.for %{{.*}} = %[[MID]] to %c4 step %c1
// CHECK:       } {tt.num_stages = 1 : i32}
// CHECK-NEXT:  tt.return
tt.func public @too_short(%p: !tt.ptr<f32>, %f: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  scf.for %k = %c0 to %c4 step %c1 : i32 {
    tt.store %p, %f : !tt.ptr<f32>
  } {tt.loop_unroll_factor = 8 : i32}
  tt.return
}

// Not unrolled: a factor of one, no factor, an empty body.
// CHECK-LABEL: tt.func public @untouched
// CHECK:       scf.for %k = %c0 to %n step %c1
// CHECK-NEXT:    tt.store %p, %f : !tt.ptr<f32>
// CHECK-NEXT:  } {tt.loop_unroll_factor = 1 : i32}
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    tt.store %p, %f : !tt.ptr<f32>
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    scf.yield %f : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  tt.return
tt.func public @untouched(%p: !tt.ptr<f32>, %n: i32, %f: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    tt.store %p, %f : !tt.ptr<f32>
  } {tt.loop_unroll_factor = 1 : i32}
  scf.for %l = %c0 to %n step %c1 : i32 {
    tt.store %p, %f : !tt.ptr<f32>
  }
  %r = scf.for %m = %c0 to %n step %c1 iter_args(%acc = %f) -> (f32) : i32 {
    scf.yield %f : f32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return %r : f32
}
